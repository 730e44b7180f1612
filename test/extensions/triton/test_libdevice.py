"""Functions of libdevice by their symbols, against numpy, the C library, rational numbers and decimals."""

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import some

import xegpu_py
from xegpu_py.extensions.triton.lowering.libdevice import function_of
from xegpu_py.numerics.double_functions import evaluate_formula
from xegpu_py.numerics.special_functions import SPECIAL_FUNCTIONS

COUNT = 16

TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}

UNKNOWN = {"rcp64h", "fma_rz", "fma_rd", "fma_ru", "jn", "jnf", "yn", "ynf"}
"""The symbols that are refused."""


def numbers(t: str, seed: int, count: int = COUNT) -> np.ndarray:
    """Numbers of all sizes, among them special ones."""
    rng = np.random.default_rng(seed)
    if t in ("i32", "i64"):
        bits = int(t[1:])
        mixed = rng.integers(-(1 << bits - 1), 1 << bits - 1, count, np.int64) >> rng.integers(0, bits, count)
        mixed[:4] = [0, -1, (1 << bits - 1) - 1, -(1 << bits - 1)]
        return rng.permutation(mixed).astype(TYPES[t])
    x = rng.standard_normal(count) * np.exp2(rng.integers(-3, 33, count))
    # Multiples of a half are ties of roundings.
    x[6:10] = np.round(x[6:10] * 2 % 64) / 2
    x[:6] = [0, -0.0, np.inf, -np.inf, np.nan, np.finfo(TYPES[t]).smallest_subnormal]
    return rng.permutation(x).astype(TYPES[t])


def computed(calls: list[tuple[str, list[np.ndarray], str]], **options: Any) -> list[np.ndarray]:
    """The results of symbols, in one kernel: of each the symbol, its operands and the type of its result."""
    parameters, body, arrays = [], [], []

    def pointers(array: np.ndarray) -> tuple[int, str]:
        t, k = next(t for t, dtype in TYPES.items() if array.dtype == dtype), len(arrays)
        arrays.append(array)
        parameters.append(f"%p{k}: !tt.ptr<{t}>")
        kind = f"tensor<{COUNT}x!tt.ptr<{t}>>"
        body.append(f"%s{k} = tt.splat %p{k} : !tt.ptr<{t}> -> {kind}")
        body.append(f"%q{k} = tt.addptr %s{k}, %i : {kind}, tensor<{COUNT}xi32>")
        return k, t

    for c, (symbol, operands, result) in enumerate(calls):
        values, kinds = [], []
        for operand in operands:
            k, t = pointers(np.ascontiguousarray(operand))
            body.append(f"%v{k} = tt.load %q{k} : tensor<{COUNT}x!tt.ptr<{t}>>")
            values.append(f"%v{k}")
            kinds.append(f"tensor<{COUNT}x{t}>")
        name = f'libname = "", libpath = "", pure = true, symbol = "__nv_{symbol}"'
        kind = f"({', '.join(kinds)}) -> tensor<{COUNT}x{result}>"
        body.append(f"%r{c} = tt.extern_elementwise {', '.join(values)} {{{name}}} : {kind}")
        k, t = pointers(np.zeros(COUNT, TYPES[result]))
        body.append(f"tt.store %q{k}, %r{c} : tensor<{COUNT}x!tt.ptr<{t}>>")
    ends = f"{{end = {COUNT} : i32, start = 0 : i32}}"
    lines = "\n    ".join([f"%i = tt.make_range {ends} : tensor<{COUNT}xi32>", *body])
    text = f"module {{\n  tt.func public @k({', '.join(parameters)}) {{\n    {lines}\n    tt.return\n  }}\n}}"
    outputs = []
    at = 0
    for _, operands, _ in calls:
        at += len(operands) + 1
        outputs.append(at - 1)
    xegpu_py.compile(text, cache="off", **options)(*arrays)
    return [arrays[k] for k in outputs]


# Oracles on Python's numbers. Integers have a sign; functions of unsigned ones say so.


def wrapped(n: int, bits: int) -> int:
    return (n + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def unsigned(function: Callable[..., int], bits: int = 32) -> Callable[..., int]:
    return lambda *values: wrapped(function(*(v % (1 << bits) for v in values)), bits)


def rounded(number: Fraction, direction: str) -> int:
    if direction == "rn":
        return round(number)
    return {"rz": math.trunc, "ru": math.ceil, "rd": math.floor}[direction](number)


def to_integer(direction: str, least: int, most: int) -> Callable[[float], int]:
    """Of infinities and what is beyond the type its nearest number; of NaN zero."""

    def convert(x: float) -> int:
        if math.isnan(x):
            return 0
        if math.isinf(x):
            return most if x > 0 else least
        return min(max(rounded(Fraction(x), direction), least), most)

    return convert


def to_float(number: Fraction | float, direction: str, dtype: type) -> float:
    """A rational number in a format, rounded in a direction."""
    if isinstance(number, float):
        return number
    digits, least, most = (24, -149, 128) if dtype is np.float32 else (53, -1074, 1024)
    if number == 0:
        return 0.0
    size = abs(number)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    steps = rounded(number / unit, direction) * unit
    greatest = Fraction(2) ** most - Fraction(2) ** (most - digits)
    if abs(steps) > greatest:
        inward = direction == "rz" or (direction == "rd" and number > 0) or (direction == "ru" and number < 0)
        size = greatest if inward else math.inf
    else:
        size = abs(steps)
    return -float(size) if number < 0 else float(size)


def exact(function: Callable[..., Fraction], special: Callable[..., float], direction: str, dtype: type):
    """A function of rational numbers, rounded; by numpy where a number is not finite or the result is a zero."""

    def apply(*values: float) -> float:
        nearest = float(special(*map(dtype, values)))
        if not all(map(math.isfinite, values)) or math.isnan(nearest):
            return nearest
        try:
            number = function(*map(Fraction, values))
        except ZeroDivisionError:
            return nearest
        return to_float(number, direction, dtype) if number else nearest

    return apply


def root(direction: str, dtype: type) -> Callable[[float], float]:
    def apply(x: float) -> float:
        nearest = float(np.sqrt(dtype(x)))
        if not (0 < x < math.inf):
            return nearest
        error = Fraction(x) - Fraction(nearest) ** 2
        if direction == "ru" and error > 0:
            return float(np.nextafter(dtype(nearest), dtype(math.inf)))
        return float(np.nextafter(dtype(nearest), dtype(0))) if direction in ("rd", "rz") and error < 0 else nearest

    return apply


RATIONAL = {
    "add": (operator.add, np.add, 2),
    "sub": (operator.sub, np.subtract, 2),
    "mul": (operator.mul, np.multiply, 2),
    "div": (operator.truediv, np.divide, 2),
    "rcp": (lambda x: 1 / x, lambda x: type(x)(1) / x, 1),
}

Case = tuple[str, tuple[str, ...], str, Callable[..., Any]]


def arithmetic() -> list[Case]:
    cases: list[Case] = []
    for direction in ("rn", "rz", "ru", "rd"):
        for letter, t in (("f", "f32"), ("d", "f64")):
            for name, (function, special, count) in RATIONAL.items():
                apply = exact(function, special, direction, TYPES[t])
                cases.append((f"{letter}{name}_{direction}", (t,) * count, t, apply))
            cases.append((f"{letter}sqrt_{direction}", (t,), t, root(direction, TYPES[t])))
        fused = exact(lambda a, b, c: a * b + c, lambda a, b, c: a * b + c, direction, np.float32)
        cases.append((f"fmaf_{direction}", ("f32",) * 3, "f32", fused))
    return cases


def conversions() -> list[Case]:
    cases: list[Case] = []
    integers = {"int": (32, True), "uint": (32, False), "ll": (64, True), "ull": (64, False)}
    for direction in ("rn", "rz", "ru", "rd"):
        for real, t in (("float", "f32"), ("double", "f64")):
            for name, (bits, has_sign) in integers.items():
                least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if has_sign else (0, (1 << bits) - 1)
                convert = to_integer(direction, least, most)
                cases.append(
                    (f"{real}2{name}_{direction}", (t,), f"i{bits}", lambda x, c=convert, b=bits: wrapped(c(x), b))
                )
                if (real, bits) == ("double", 32) and direction != "rn":
                    continue

                def back(n: int, bits=bits, has_sign=has_sign, t=t, direction=direction) -> float:
                    return to_float(Fraction(n if has_sign else n % (1 << bits)), direction, TYPES[t])

                cases.append((f"{name}2{real}_{direction}", (f"i{bits}",), t, back))
        narrow = exact(lambda x: x, lambda x: np.float32(x), direction, np.float32)

        def single(x: float, narrow=narrow) -> float:
            return narrow(x) if math.isfinite(x) else x

        cases.append((f"double2float_{direction}", ("f64",), "f32", single))
    return cases


def bits_of(x: float, t: str) -> int:
    return int(np.array(x, TYPES[t]).view(TYPES["i" + t[1:]]))


def number_of(n: int, t: str) -> float:
    return np.array(n, TYPES["i" + t[1:]]).view(TYPES[t]).item()


def permuted(a: int, b: int, selector: int) -> int:
    both = (a % 2**32 | b % 2**32 << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(both[selector >> 4 * n & 7] for n in range(4)), "little", signed=True)


INTEGERS: list[Case] = [
    *((f"{name}{suffix}", (t,), "i32", function) for t, suffix in (("i32", ""), ("i64", "ll")) for name, function in {
        "clz": lambda n, b=int(t[1:]): b - (n % (1 << b)).bit_length(),
        "popc": lambda n, b=int(t[1:]): (n % (1 << b)).bit_count(),
        "ffs": lambda n: (n & -n).bit_length(),
    }.items()),
    *((f"brev{suffix}", (t,), t, lambda n, b=b: wrapped(int(f"{n % (1 << b):0{b}b}"[::-1], 2), b))
      for t, suffix, b in (("i32", "", 32), ("i64", "ll", 64))),
    ("abs", ("i32",), "i32", lambda n: wrapped(abs(n), 32)),
    ("llabs", ("i64",), "i64", lambda n: wrapped(abs(n), 64)),
    ("mulhi", ("i32",) * 2, "i32", lambda a, b: a * b >> 32),
    ("mul64hi", ("i64",) * 2, "i64", lambda a, b: a * b >> 64),
    ("umulhi", ("i32",) * 2, "i32", unsigned(lambda a, b: a * b >> 32)),
    ("umul64hi", ("i64",) * 2, "i64", unsigned(lambda a, b: a * b >> 64, 64)),
    ("mul24", ("i32",) * 2, "i32", lambda a, b: wrapped(wrapped(a, 24) * wrapped(b, 24), 32)),
    ("umul24", ("i32",) * 2, "i32", unsigned(lambda a, b: a % (1 << 24) * (b % (1 << 24)))),
    ("hadd", ("i32",) * 2, "i32", lambda a, b: a + b >> 1),
    ("rhadd", ("i32",) * 2, "i32", lambda a, b: a + b + 1 >> 1),
    ("uhadd", ("i32",) * 2, "i32", unsigned(lambda a, b: a + b >> 1)),
    ("urhadd", ("i32",) * 2, "i32", unsigned(lambda a, b: a + b + 1 >> 1)),
    ("sad", ("i32",) * 3, "i32", lambda a, b, c: wrapped(abs(a - b) + c, 32)),
    ("usad", ("i32",) * 3, "i32", unsigned(lambda a, b, c: abs(a - b) + c)),
    ("byte_perm", ("i32",) * 3, "i32", permuted),
    *((name, ("f32",), "i32", lambda x: bits_of(x, "f32")) for name in ("float_as_int", "float_as_uint")),
    *((name, ("i32",), "f32", lambda n: number_of(n, "f32")) for name in ("int_as_float", "uint_as_float")),
    ("double_as_longlong", ("f64",), "i64", lambda x: bits_of(x, "f64")),
    ("longlong_as_double", ("i64",), "f64", lambda n: number_of(n, "f64")),
    ("double2hiint", ("f64",), "i32", lambda x: bits_of(x, "f64") >> 32),
    ("double2loint", ("f64",), "i32", lambda x: wrapped(bits_of(x, "f64"), 32)),
    ("hiloint2double", ("i32",) * 2, "f64", lambda high, low: number_of(high << 32 | low % 2**32, "f64")),
]  # fmt: skip


def scaled(x: float, n: int, t: str) -> float:
    if not math.isfinite(x) or x == 0:
        return x
    # No number has an exponent beyond these.
    return to_float(Fraction(x) * Fraction(2) ** min(max(n, -5000), 5000), "rn", TYPES[t])


def exponent(x: float) -> int:
    return math.frexp(x)[1] - 1


def ilogb(x: float) -> int:
    if x == 0 or math.isnan(x):
        return -(2**31)
    return 2**31 - 1 if math.isinf(x) else exponent(x)


def logb(x: float) -> float:
    return -math.inf if x == 0 else abs(x) if not math.isfinite(x) else float(exponent(x))


def remainder(x: float, y: float) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0 else math.remainder(x, y)


def saturated(x: float) -> float:
    return min(x, 1.0) if x > 0 else 0.0


def away(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x) if abs(x) < 2**52 else x


def of_both(t: str) -> list[Case]:
    """Functions of f32 and of f64, whose symbols end in f and have no end."""
    end, dtype = ("f" if t == "f32" else ""), TYPES[t]
    integer = to_integer("rn", -(2**63), 2**63 - 1)
    cases: list[Case] = [
        (f"ldexp{end}", (t, "i32"), t, lambda x, n: scaled(x, n, t)),
        (f"scalbn{end}", (t, "i32"), t, lambda x, n: scaled(x, n, t)),
        (f"ilogb{end}", (t,), "i32", ilogb),
        (f"logb{end}", (t,), t, logb),
        (f"nextafter{end}", (t, t), t, lambda x, y: float(np.nextafter(dtype(x), dtype(y)))),
        (f"remainder{end}", (t, t), t, remainder),
        (f"fmod{end}", (t, t), t, lambda x, y: float(np.fmod(dtype(x), dtype(y)))),
        (f"fdim{end}", (t, t), t, lambda x, y: 0.0 if x <= y else float(dtype(x) - dtype(y))),
        (f"fmin{end}", (t, t), t, lambda x, y: y if math.isnan(x) else x if math.isnan(y) else min(x, y)),
        (f"fmax{end}", (t, t), t, lambda x, y: y if math.isnan(x) else x if math.isnan(y) else max(x, y)),
        (f"copysign{end}", (t, t), t, lambda x, y: abs(x) if math.isnan(x) else math.copysign(x, y)),
        (f"llrint{end}", (t,), "i64", integer),
        (f"llround{end}", (t,), "i64", lambda x: integer(away(x) if math.isfinite(x) else x)),
        (f"rint{end}", (t,), t, lambda x: float(np.rint(x))),
        (f"nearbyint{end}", (t,), t, lambda x: float(np.rint(x))),
        (f"round{end}", (t,), t, lambda x: away(x) if math.isfinite(x) else x),
        (f"trunc{end}", (t,), t, lambda x: float(np.trunc(x))),
        (f"floor{end}", (t,), t, lambda x: float(np.floor(x))),
        (f"ceil{end}", (t,), t, lambda x: float(np.ceil(x))),
        (f"fabs{end}", (t,), t, abs),
        (f"sqrt{end}", (t,), t, root("rn", dtype)),
        (f"signbit{'f' if end else 'd'}", (t,), "i32", lambda x: int(np.signbit(x))),
        (f"isnan{'f' if end else 'd'}", (t,), "i32", lambda x: int(math.isnan(x))),
        (f"isinf{'f' if end else 'd'}", (t,), "i32", lambda x: int(math.isinf(x))),
        ("finitef" if end else "isfinited", (t,), "i32", lambda x: int(math.isfinite(x))),
    ]
    return [*cases, ("saturatef", (t,), t, saturated)] if end else cases


EXACT = [*INTEGERS, *conversions(), *arithmetic(), *of_both("f32"), *of_both("f64")]
BATCH = 10
BATCHES = [EXACT[n : n + BATCH] for n in range(0, len(EXACT), BATCH)]


@pytest.mark.parametrize("batch", range(len(BATCHES)))
def test_exact_functions(batch):
    cases = BATCHES[batch]
    operands = [[numbers(t, 100 * batch + 10 * c + n) for n, t in enumerate(case[1])] for c, case in enumerate(cases)]
    results = computed([(case[0], given, case[2]) for case, given in zip(cases, operands)])
    for (symbol, _, result, oracle), given, found in zip(cases, operands, results):
        with np.errstate(all="ignore"):
            wanted = np.array([oracle(*row) for row in zip(*(v.tolist() for v in given))], TYPES[result])
        if result[0] == "f":
            held = ~(np.isnan(wanted) & np.isnan(found))
            wanted, found = (v[held].view(TYPES["i" + result[1:]]) for v in (wanted, found))
            given = [v[held] for v in given]
        np.testing.assert_array_equal(found, wanted, f"{symbol} of {given}")


# Functions that ops of `math` are, and special functions.

REAL = {
    **{
        name: getattr(np, name)
        for name in [
            "cbrt",
            "cos",
            "cosh",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "sin",
            "sinh",
            "tan",
            "tanh",
        ]
    },
    **{f"a{name}": getattr(np, f"arc{name}") for name in ["cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2"]},
    **{f"fast_{name}": getattr(np, name) for name in ["cos", "exp", "log", "log10", "log2", "sin", "tan"]},
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "erfc": np.vectorize(math.erfc),
    "pow": np.power,
    "powi": np.power,
    "fast_pow": np.power,
    "fast_fdivide": np.divide,
    "exp10": lambda x: 10**x,
    "fast_exp10": lambda x: 10**x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "frsqrt_rn": lambda x: 1 / np.sqrt(x),
    "fma": lambda x, y, z: x * y + z,
    "fma_rn": lambda x, y, z: x * y + z,
}
ONE_TYPE = {"frsqrt_rn": "f32", "fma_rn": "f64"}
CASES = [(name, t) for name in REAL for t in TYPES if t[0] == "f" and ONE_TYPE.get(name, t) == t]
CASES = [(name, t) for name, t in CASES if t == "f32" or "fast" not in name]
OPERANDS = {"pow": 2, "powi": 2, "fast_pow": 2, "fast_fdivide": 2, "atan2": 2, "fma": 3, "fma_rn": 3}


def operands_of(name: str, t: str) -> list[np.ndarray]:
    """Numbers from 0.05 to 0.95, and above 1 for acosh; exponents are integers."""
    rng = np.random.default_rng(len(name))
    given = [rng.uniform(0.05, 0.95, COUNT).astype(TYPES[t]) for _ in range(OPERANDS.get(name, 1))]
    if name == "powi":
        given[1] = rng.integers(-5, 6, COUNT).astype(np.int32)
    return [1 / x for x in given] if name == "acosh" else given


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_functions_of_math(t):
    """The functions are found by their symbols; test_double_functions.py and test_expansions.py test their bits."""
    names = [name for name, of in CASES if of == t]
    names = some(names, 0.2) if t == "f64" else names
    given = [operands_of(name, t) for name in names]
    symbols = [name if name in ONE_TYPE or t == "f64" else f"{name}f" for name in names]
    found = computed([(symbol, values, t) for symbol, values in zip(symbols, given)])
    for name, values, result in zip(names, given, found):
        wanted = REAL[name](*(v.astype(np.float64) if v.dtype.kind == "f" else v for v in values))
        np.testing.assert_allclose(result, wanted, rtol=2e-6 if t == "f32" else 2e-15, err_msg=name)


def test_functions_of_f32_on_a_target_without_division_of_f64():
    x = np.array([0, -0.0, np.inf, -np.inf, 1, 2, 3, -1, 39, -50, 38, 10, -45, 0.5, 5, -37.5], np.float32)
    (found,) = computed([("exp10f", [x], "f32")], target="dg2")
    with np.errstate(over="ignore"):
        wanted = 10.0 ** x.astype(np.float64)
        nearest = wanted.astype(np.float32)
    np.testing.assert_array_equal(np.isinf(found), np.isinf(nearest))
    finite = np.isfinite(nearest)
    assert (np.abs(found[finite] - wanted[finite]) <= 1.5 * np.spacing(nearest[finite])).all()


COMPILED = [("j1", "f32"), ("hypot", "f64")]


def test_special_functions_are_compiled():
    """Kernels compute the formulas' bits, and those of f32 are rounded once more."""
    calls, wanted = [], []
    for name, t in COMPILED:
        count = 2 if name == "hypot" else 1
        operands = [numbers(t, n) for n in range(count)]
        calls.append((name + "f" * (t == "f32"), operands, t))
        exact = evaluate_formula(SPECIAL_FUNCTIONS[name], *(v.astype(np.float64) for v in operands))
        with np.errstate(all="ignore"):
            wanted.append(exact.astype(TYPES[t]))
    for call, found, want in zip(calls, computed(calls, engine="interpreter"), wanted):
        np.testing.assert_array_equal(found, want, call[0])


@pytest.mark.skipif(not find_spec("triton"), reason="needs triton")
def test_all_symbols_are_known():
    import triton

    text = (Path(triton.__file__).parent / "language/extra/cuda/libdevice.py").read_text()
    symbols = set(re.findall(r"__nv_(\w+)", text))
    assert ast.parse(text) and len(symbols) > 300
    assert {symbol for symbol in symbols if not function_of(f"__nv_{symbol}")} == UNKNOWN
    tested = {case[0] for case in EXACT} | {name + "f" * (t == "f32") for name, t in CASES if name not in ONE_TYPE}
    tested |= {*ONE_TYPE, *SPECIAL_FUNCTIONS, *(f"{name}f" for name in SPECIAL_FUNCTIONS)}
    assert symbols - tested == UNKNOWN
