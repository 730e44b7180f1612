"""Functions and operators of Triton's language, for each type of element, against numpy on both engines."""

import itertools
import linecache

import ml_dtypes
import numpy as np
import pytest

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402  (after the skip)

from xegpu_py.extensions.triton.api import options, wrap  # noqa: E402

COUNT = 32

SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
HALVES = [np.float16, ml_dtypes.bfloat16]
FLOATS = [*HALVES, np.float32, np.float64]
INTEGERS = [*SIGNED, *UNSIGNED]
NUMBERS = itertools.count()

LOADED = "i = tl.arange(0, N)\nx, y = tl.load(X + i), tl.load(Y + i)\n"


def name_of(value):
    """The name of a case: of types theirs, without characters that pytest escapes."""
    return np.dtype(value).name if isinstance(value, type) else None


def kernel(body, parameters="X, Y, Z", constants="N: tl.constexpr"):
    """A kernel of some lines. Triton reads its source as if a file had it."""
    lines = ["@triton.jit", f"def k({parameters}, {constants}):", *(f"    {line}" for line in body.splitlines())]
    file = f"/test_language_{next(NUMBERS)}.py"
    source = "\n".join([*lines, ""])
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = {"triton": triton, "tl": tl, "__name__": file}
    exec(compile(source, file, "exec"), scope)
    return scope["k"]


def launched(body, *arguments, grid=(1,), parameters="X, Y, Z", **constants):
    """Run a kernel of some lines on both engines, which must agree, and return its last array."""
    made = kernel(body, parameters, ", ".join(f"{name}: tl.constexpr" for name in constants or ["N"]))
    with options(engine="both"):
        made[grid](*(wrap(a) if isinstance(a, np.ndarray) else a for a in arguments), **(constants or {"N": COUNT}))
    return next(a for a in reversed(arguments) if isinstance(a, np.ndarray))


def elementwise(expression, x, y, to):
    """The elements of an expression of `x` and `y`."""
    body = f"{LOADED}tl.store(Z + i, {expression})"
    return launched(body, x, y, np.zeros(len(x), to), N=len(x))


def rows(text, x, y, *out, **constants):
    """Run lines on a matrix `x` of all rows and columns, whose positions are `p`, and on a vector `y`."""
    positions = "p = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]\n"
    m, n = x.shape
    body = f"{positions}x, y = tl.load(X + p), tl.load(Y + tl.arange(0, N))\n{text}"
    return launched(body, x, y, *out, M=m, N=n, **constants)


def numbers(dtype, seed=0, shape=COUNT, low=None, high=None):
    """Random numbers: of integers all bits, of floats small multiples of a quarter, unless bounds are given."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        low, high = info.min if low is None else low, info.max if high is None else high
        return rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    return (rng.integers(-40 if low is None else low, 40 if high is None else high, shape) / 4).astype(dtype)


def is_float(dtype):
    return np.dtype(dtype).kind not in "iub"


# Operators.

OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.uint32, np.int64], ids=name_of)
@pytest.mark.parametrize("operator", OPERATORS)
def test_integers_wrap_around(operator, dtype):
    x, y = numbers(dtype), numbers(dtype, 1)
    found = elementwise(f"x {operator} y", x, y, dtype)
    np.testing.assert_array_equal(found, OPERATORS[operator](x, y))


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("operator", "+-*/")
def test_floats_are_rounded_once(operator, dtype):
    x, y = numbers(dtype), numbers(dtype, 1, low=1)
    found = elementwise(f"x {operator} y", x, y, dtype)
    exact = {**OPERATORS, "/": np.divide}[operator](x.astype(np.float64), y.astype(np.float64))
    # A quotient of halves is one of f32, rounded to the type of the array that takes it.
    wanted = exact.astype(np.float32).astype(dtype) if operator == "/" and dtype in HALVES else exact.astype(dtype)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", INTEGERS, ids=name_of)
def test_integers_are_divided_toward_zero(dtype):
    x, y = numbers(dtype), numbers(dtype, 1)
    y[y == 0] = 3
    y[:4], x[:2] = 7, (np.iinfo(dtype).min, np.iinfo(dtype).max)
    body = f"{LOADED}tl.store(Z + i, x // y)\ntl.store(Z + N + i, x % y)"
    found = launched(body, x, y, np.zeros(2 * COUNT, dtype))
    wide = [v.astype(object) for v in (x, y)]
    quotients = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(*wide)]
    remainders = [a - q * b for a, b, q in zip(*wide, quotients)]
    wanted = np.array([(n & (1 << 64) - 1) for n in quotients + remainders], np.uint64)
    np.testing.assert_array_equal(found, wanted.astype(dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=name_of)
def test_shifts(dtype):
    bits = np.dtype(dtype).itemsize * 8
    x, y = numbers(dtype), numbers(dtype, 1, low=0, high=bits - 1)
    body = f"{LOADED}tl.store(Z + i, x << y)\ntl.store(Z + N + i, x >> y)"
    found = launched(body, x, y, np.zeros(2 * COUNT, dtype))
    np.testing.assert_array_equal(found, [*(x << y), *(x >> y)])


COMPARISONS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=name_of)
def test_comparisons(dtype):
    x, y = numbers(dtype), numbers(dtype, 1)
    x[::3] = y[::3]
    if is_float(dtype):
        x[1], y[4], x[7], y[7], x[8] = np.nan, np.nan, np.nan, np.nan, np.inf
    lines = [f"tl.store(Z + {i} * N + i, x {operator} y)" for i, operator in enumerate(COMPARISONS)]
    body = "\n".join([LOADED, *lines])
    found = launched(body, x, y, np.zeros(len(lines) * COUNT, np.int8))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, np.concatenate([f(x, y) for f in COMPARISONS.values()]))


WIDER = [
    (np.int8, np.int32, np.int32), (np.uint8, np.int16, np.int16), (np.int32, np.uint32, np.uint32),
    (np.int64, np.uint8, np.int64), (np.int32, np.float16, np.float16), (np.float16, np.float32, np.float32),
    (ml_dtypes.bfloat16, np.float32, np.float32), (np.float32, np.float64, np.float64), (np.int8, np.uint8, np.uint8),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "to"), WIDER, ids=name_of)
def test_two_types_become_the_wider_one(left, right, to):
    x, y = numbers(left, low=0, high=9), numbers(right, 1, low=0, high=9)
    body = (
        "i = tl.arange(0, N)\nz = tl.load(X + i) * tl.load(Y + i) + tl.load(X + i)\n"
        "tl.static_assert(z.dtype == Z.dtype.element_ty)\ntl.store(Z + i, z)"
    )
    found = launched(body, x, y, np.zeros(COUNT, to))
    np.testing.assert_array_equal(found, x.astype(to) * y.astype(to) + x.astype(to))


@pytest.mark.parametrize("dtype", [*SIGNED, *FLOATS], ids=name_of)
def test_signs(dtype):
    x = numbers(dtype)
    x[0] = np.iinfo(dtype).min if not is_float(dtype) else -0.0
    body = "i = tl.arange(0, N)\nx = tl.load(X + i)\ntl.store(Z + i, -x)\ntl.store(Z + N + i, tl.abs(x))"
    found = launched(body, x, np.zeros(2 * COUNT, dtype), parameters="X, Z")
    wanted = np.concatenate([-x, np.abs(x)])
    np.testing.assert_array_equal(found.view(f"u{x.itemsize}"), wanted.view(f"u{x.itemsize}"))


# Types.

TYPES = [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, *FLOATS]
BYTES = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


PAIRS = [(a, b) for i, a in enumerate(TYPES) for j, b in enumerate(TYPES) if a is not b and (i + j) % 3 == 0]


@pytest.mark.parametrize(("dtype", "to"), PAIRS, ids=name_of)
def test_conversions(dtype, to):
    signed = np.dtype(dtype).kind != "u" and np.dtype(to).kind != "u"
    x = numbers(dtype, low=-100 if signed else 0, high=100)
    if not is_float(dtype) and not is_float(to):
        x = numbers(dtype)
    found = elementwise("x.to(Z.dtype.element_ty)", x, x, to)
    np.testing.assert_array_equal(found, x.astype(to))


@pytest.mark.parametrize("to", [*HALVES, np.float32], ids=name_of)
@pytest.mark.parametrize("dtype", BYTES, ids=name_of)
def test_all_numbers_of_8_bits(dtype, to):
    x = np.arange(256, dtype=np.uint8).view(dtype)
    found = launched("i = tl.arange(0, N)\ntl.store(Z + i, tl.load(X + i).to(Z.dtype.element_ty))",
                     x, np.zeros(256, to), parameters="X, Z", N=256)  # fmt: skip
    np.testing.assert_array_equal(found.astype(np.float32), x.astype(np.float32))


@pytest.mark.parametrize(("dtype", "to"), [
    (np.float32, np.int32), (np.uint32, np.float32), (np.float16, np.uint16), (np.int16, ml_dtypes.bfloat16),
    (np.int64, np.float64), (np.uint8, ml_dtypes.float8_e5m2),
], ids=name_of)  # fmt: skip
def test_bits_of_one_type_as_another(dtype, to):
    x = numbers(dtype, low=0, high=100)
    found = elementwise("x.to(Z.dtype.element_ty, bitcast=True)", x, x, to)
    assert found.tobytes() == x.tobytes()


# Functions of elements.

FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "floor": np.floor, "ceil": np.ceil,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_f32(name):
    x = np.concatenate([np.linspace(0.01, 40, COUNT - 4), [1, 2, 0.5, 4]]).astype(np.float32)
    found = elementwise(f"tl.{name}(x)", x, x, np.float32)
    exact = FUNCTIONS[name](x.astype(np.float64))
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6 if name in ("sin", "cos", "log", "log2") else 0)


@pytest.mark.parametrize("name", ["sqrt", "floor", "ceil"])
def test_functions_of_f64(name):
    x = np.linspace(0.01, 40, COUNT)
    found = elementwise(f"tl.{name}(x)", x, x, np.float64)
    np.testing.assert_allclose(found, FUNCTIONS[name](x), rtol=1e-12)


def test_error_functions():
    from math import erf

    x = np.linspace(-4, 4, COUNT).astype(np.float32)
    found = elementwise("tl.erf(x)", x, x, np.float32)
    np.testing.assert_allclose(found, [erf(v) for v in x], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.uint32], ids=name_of)
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_least_and_greatest_of_two(name, dtype):
    x, y = numbers(dtype), numbers(dtype, 1)
    if is_float(dtype):
        x[3], y[5] = np.nan, np.nan
    found = elementwise(f"tl.{name}(x, y)", x, y, dtype)
    # The number of a number and a NaN, as IEEE's minimumNumber.
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, {"minimum": np.fmin, "maximum": np.fmax}[name](x, y))


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_nans_of_two_if_they_propagate(name):
    x, y = numbers(np.float32), numbers(np.float32, 1)
    x[3], y[5] = np.nan, np.nan
    found = elementwise(f"tl.{name}(x, y, propagate_nan=tl.PropagateNan.ALL)", x, y, np.float32)
    np.testing.assert_array_equal(found, getattr(np, name)(x, y))


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=name_of)
def test_one_rounding_of_fma(dtype):
    x, y = (np.random.default_rng(seed).standard_normal(COUNT).astype(dtype) for seed in (0, 1))
    found = elementwise("tl.fma(x, y, -x)", x, y, dtype)
    if dtype == np.float32:
        wide = x.astype(np.longdouble) * y.astype(np.longdouble) - x
        np.testing.assert_array_equal(found, wide.astype(dtype))
    else:
        np.testing.assert_allclose(found, x * y - x, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64], ids=name_of)
def test_high_halves_of_products(dtype):
    x, y = numbers(dtype), numbers(dtype, 1)
    bits = np.dtype(dtype).itemsize * 8
    found = elementwise("tl.umulhi(x, y)", x, y, dtype).view(f"u{bits // 8}")
    left, right = (v.view(f"u{bits // 8}").astype(object) for v in (x, y))
    np.testing.assert_array_equal(found, [a * b >> bits for a, b in zip(left, right)])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, *FLOATS], ids=name_of)
def test_choices(dtype):
    x, y = numbers(dtype), numbers(dtype, 1)
    np.testing.assert_array_equal(elementwise("tl.where(x < y, x, y * 0)", x, y, dtype), np.where(x < y, x, y * 0))


# Reductions and scans.


def small(dtype, shape=(4, 16), seed=0):
    """Numbers whose sums and products are exact in any order."""
    return numbers(dtype, seed, shape, *((0, 3) if not is_float(dtype) else (-8, 8)))


REDUCED = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize(("dtype", "axis"), list(zip(REDUCED, itertools.cycle([0, 1, None]))), ids=name_of)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reductions(name, dtype, axis):
    x = small(dtype) if name == "sum" else numbers(dtype, 0, (4, 16))
    size = {0: 16, 1: 4, None: 1}[axis]
    line = f"r = tl.{name}(x, axis={axis})\ntl.store(Z{f' + tl.arange(0, {size})' if axis is not None else ''}, r)"
    # Sums of integers of few bits are of i32, as Triton widens them.
    to = np.dtype(dtype)
    if name == "sum" and to.kind in "iu" and to.itemsize < 4:
        to = np.dtype(f"{to.kind}4")
    found = rows(line, x, x[0], np.zeros(size, to))
    wide = x if name != "sum" else x.astype(np.float64 if is_float(dtype) else np.int64)
    np.testing.assert_array_equal(found, np.atleast_1d(getattr(np, name)(wide, axis=axis)).astype(to))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float16, np.float32], ids=name_of)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_the_greatest_and_least(name, dtype):
    x = numbers(dtype, 0, (4, 16))
    x[:, 9] = x[:, 3]
    x[1, 3] = x[1, 9] = 100
    found = rows(f"tl.store(Z + tl.arange(0, M), tl.{name}(x, axis=1))", x, x[0], np.zeros(4, np.int32))
    np.testing.assert_array_equal(found, getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32, np.int64], ids=name_of)
def test_reductions_by_exclusive_or(dtype):
    x = numbers(dtype, 0, (4, 16))
    found = rows("tl.store(Z + tl.arange(0, N), tl.xor_sum(x, axis=0))", x, x[0], np.zeros(16, dtype))
    np.testing.assert_array_equal(found, np.bitwise_xor.reduce(x, axis=0))


@pytest.mark.parametrize(
    ("dtype", "axis"), [(np.int32, 0), (np.int64, 1), (np.float32, 1), (np.float64, 0)], ids=name_of
)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans(name, dtype, axis):
    x = small(dtype) if name == "cumsum" else np.random.default_rng(0).integers(1, 3, (4, 16)).astype(dtype)
    found = rows(f"tl.store(Z + p, tl.{name}(x, axis={axis}))", x, x[0], np.zeros(x.shape, dtype))
    np.testing.assert_array_equal(found, getattr(np, name)(x, axis=axis, dtype=dtype))


# Shapes.

SHAPES = {
    "tl.store(Z + p, tl.flip(x, 1))": lambda x: x[:, ::-1],
    "tl.store(Z + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(x))": lambda x: x.T,
    "tl.store(Z + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], x.reshape(N, M))": lambda x: x,
    "tl.store(Z + tl.arange(0, M * N), tl.ravel(x))": lambda x: x,
    "tl.store(Z + p, x + y[None, :] - tl.expand_dims(y, 0))": lambda x: x,
    "tl.store(Z + p, tl.broadcast_to(y[None, :], (M, N)))": lambda x: np.broadcast_to(x[0], x.shape),
    "a, b = tl.split(x.reshape(M, N // 2, 2))\ntl.store(Z + p, tl.join(b, a).reshape(M, N))":
        lambda x: x.reshape(-1, 2)[:, ::-1],
    "a, b = tl.split(x.reshape(M, N // 2, 2))\ntl.store(Z + p, tl.interleave(a, b))": lambda x: x,
    "tl.store(Z + tl.arange(0, M * N), tl.permute(x.reshape(2, M // 2, N), (2, 0, 1)).reshape(M * N))":
        lambda x: x.reshape(2, 2, 16).transpose(2, 0, 1),
    "tl.store(Z + p, tl.gather(x, (p * 7) % N, axis=1))":
        lambda x: np.take_along_axis(x, np.arange(64).reshape(4, 16) * 7 % 16, 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int8, np.float32], ids=name_of)
@pytest.mark.parametrize("text", SHAPES, ids=lambda text: text.partition("tl.")[2].partition("(")[0] + str(len(text)))
def test_shapes(text, dtype):
    x = numbers(dtype, 0, (4, 16))
    found = rows(text, x, x[0], np.zeros(64, dtype))
    np.testing.assert_array_equal(found, np.ravel(SHAPES[text](x)))


def test_gathers_of_more_than_shared_memory_has():
    """The bytes leave 48 KiB of it, through which the numbers go in three parts of 171, 171 and 170 rows."""
    x = numbers(np.int32, 0, (512, 64), -128, 127)
    at = np.arange(256, dtype=np.int32).reshape(4, 64) * 37 % 512
    body = """
        columns = tl.arange(0, N)[None, :]
        p = tl.arange(0, 4)[:, None] * N + columns
        at = tl.load(I + p)
        few = tl.load(X + tl.arange(0, M // 2)[:, None] * N + columns).to(tl.int8)
        tl.store(Z + p, tl.gather(few, at % 256, 0))
        tl.store(Z + 256 + p, tl.gather(tl.load(X + tl.arange(0, M)[:, None] * N + columns), at, 0))
    """
    found = launched(body, x, at, np.zeros((2, 4, 64), np.int32), parameters="X, I, Z", M=512, N=64)
    np.testing.assert_array_equal(found, [np.take_along_axis(x, at % 256, 0), np.take_along_axis(x, at, 0)])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [np.int16, np.uint32, np.float32], ids=name_of)
def test_sorted_elements(dtype, descending):
    x = numbers(dtype, 0, (2, 16))
    found = rows(f"tl.store(Z + p, tl.sort(x, descending={descending}))", x, x[0], np.zeros(x.shape, dtype))
    np.testing.assert_array_equal(found, np.sort(x, 1)[:, :: -1 if descending else 1])


@pytest.mark.parametrize("bins", [8, 16])
def test_histograms(bins):
    x = numbers(np.int32, 0, 64, 0, bins - 1)
    body = "tl.store(Z + tl.arange(0, B), tl.histogram(tl.load(X + tl.arange(0, N)), B))"
    found = launched(body, x, np.zeros(bins, np.int32), parameters="X, Z", N=64, B=bins)
    np.testing.assert_array_equal(found, np.bincount(x, minlength=bins))


# Memory.


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=name_of)
def test_masks_choose_other_elements(dtype):
    x = numbers(np.float32, low=0, high=8).astype(dtype) if is_float(dtype) else numbers(dtype)
    body = "i = tl.arange(0, N)\nx = tl.load(X + 2 * i, mask=i < 10, other=0)\ntl.store(Z + i, x, mask=i % 3 != 1)"
    found = launched(body, np.repeat(x[:10], 2), np.full(COUNT, 1, dtype), parameters="X, Z")
    i = np.arange(COUNT)
    wanted = np.where(i % 3 != 1, np.where(i < 10, x, 0).astype(np.float64), 1)
    np.testing.assert_array_equal(found.astype(np.float64), wanted)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.float32], ids=name_of)
@pytest.mark.parametrize("kind", ["add", "max", "min", "xchg"])
def test_atomic_updates_of_all_programs(kind, dtype):
    x, v = numbers(dtype, low=0, high=50, shape=8), numbers(dtype, 1, 40, 0, 50)
    body = f"i = tl.program_id(0) * N + tl.arange(0, N)\ntl.atomic_{kind}(Z + i % N, tl.load(X + i))"
    if kind == "xchg":
        v = np.tile(v[:8], 5)
    found = launched(body, v, x.copy(), grid=(5,), parameters="X, Z", N=8)
    update = {"add": np.add, "max": np.maximum, "min": np.minimum, "xchg": lambda a, b: b}[kind]
    wanted = x
    for part in v.reshape(5, 8):
        wanted = update(wanted, part)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=name_of)
@pytest.mark.parametrize("kind", ["and", "or", "xor"])
def test_atomic_updates_of_bits(kind, dtype):
    x, v = numbers(dtype, shape=8), numbers(dtype, 1, 40)
    body = f"i = tl.program_id(0) * N + tl.arange(0, N)\ntl.atomic_{kind}(Z + i % N, tl.load(X + i))"
    found = launched(body, v, x.copy(), grid=(5,), parameters="X, Z", N=8)
    update = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[kind]
    np.testing.assert_array_equal(found, update(x, update.reduce(v.reshape(5, 8))))


@pytest.mark.parametrize(
    ("dtype", "block"),
    [*((dtype, (8, 16)) for dtype in [np.int8, np.int32, *FLOATS]), (np.float32, (4, 32)), (np.float16, (1, 64))],
    ids=name_of,
)
def test_descriptors_reach_over_edges(block, dtype):
    m, n = 6, 40
    x = numbers(dtype, 0, (m, n), 0, 50)
    if n * x.itemsize % 16:
        n = 48
        x = numbers(dtype, 0, (m, n), 0, 50)
    body = (
        "x = tl.make_tensor_descriptor(X, [M, N], [N, 1], [BM, BN])\n"
        "z = tl.make_tensor_descriptor(Z, [M, N], [N, 1], [BM, BN])\n"
        "m, n = tl.program_id(0) * BM, tl.program_id(1) * BN\nz.store([m, n], x.load([m, n]) + 1)"
    )
    grid = (-(-m // block[0]), -(-n // block[1]))
    found = launched(body, x, np.zeros((m, n), dtype), grid=grid, parameters="X, Z", M=m, N=n, BM=block[0], BN=block[1])
    np.testing.assert_array_equal(found, (x + np.ones((), dtype)).astype(dtype))


# Products.

PRODUCTS = [
    (np.int8, np.int32), (np.float16, np.float32), (np.float16, np.float16), (ml_dtypes.bfloat16, np.float32),
    (np.float32, np.float32), (ml_dtypes.float8_e5m2, np.float32), (ml_dtypes.float8_e4m3fn, np.float32),
]  # fmt: skip


@pytest.mark.each_value
@pytest.mark.parametrize(("m", "n", "k"), [(8, 16, 32), (32, 8, 16)])
@pytest.mark.parametrize(("dtype", "to"), PRODUCTS, ids=name_of)
def test_products(dtype, to, m, n, k):
    a, b = (
        np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype) for seed, shape in ((0, (m, k)), (1, (k, n)))
    )
    body = (
        "m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)\n"
        "x, y = tl.load(X + m[:, None] * K + k[None, :]), tl.load(Y + k[:, None] * N + n[None, :])\n"
        "tl.store(Z + m[:, None] * N + n[None, :], tl.dot(x, y, out_dtype=Z.dtype.element_ty))"
    )
    found = launched(body, a, b, np.zeros((m, n), to), M=m, N=n, K=k)
    np.testing.assert_array_equal(found, (a.astype(np.float64) @ b.astype(np.float64)).astype(to))


@pytest.mark.parametrize("batch", [2, 4])
def test_batches_of_products(batch):
    a, b = (np.random.default_rng(seed).integers(-3, 4, (batch, 16, 16)).astype(np.float16) for seed in (0, 1))
    body = (
        "i = tl.arange(0, 16)\np = tl.arange(0, B)[:, None, None] * 256 + i[None, :, None] * 16 + i[None, None, :]\n"
        "tl.store(Z + p, tl.dot(tl.load(X + p), tl.load(Y + p)))"
    )
    found = launched(body, a, b, np.zeros((batch, 16, 16), np.float32), B=batch)
    np.testing.assert_array_equal(found, a.astype(np.float32) @ b.astype(np.float32))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
"""The numbers of the format, by their bits (OCP Microscaling Formats 1.0, section 5.3.3)."""


@pytest.mark.each_value
@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("group", [16, 32])
@pytest.mark.parametrize("scale", [np.uint8, ml_dtypes.float8_e4m3fn], ids=name_of)
def test_products_of_scaled_blocks(scale, group, batch):
    """MXFP4 has a power of two for 32 elements, NVFP4 a number of 8 bits for 16; also matrices of a stack."""
    m, n, k, rng = 8, 16, 64, np.random.default_rng(0)
    count = max(batch, 1)
    a, b = rng.integers(0, 256, (count, m, k // 2), np.uint8), rng.integers(0, 256, (count, k // 2, n), np.uint8)
    sizes = [(count, m, k // group), (count, n, k // group)]
    if scale == np.uint8:
        s, t = (rng.integers(124, 130, size, np.uint8) for size in sizes)
        factors = [2.0 ** (v.astype(int) - 127) for v in (s, t)]
    else:
        s, t = (rng.integers(1, 9, size).astype(scale) for size in sizes)
        factors = [v.astype(np.float64) for v in (s, t)]
    lead = "tl.arange(0, B)[:, None, None], tl.arange(0, {})[None, :, None], tl.arange(0, {})[None, None, :]"
    flat = "0, tl.arange(0, {})[:, None], tl.arange(0, {})[None, :]"
    lines = [
        f"b, i, j = {(lead if batch else flat).format(rows, columns)}\n"
        f"{name} = tl.load({name.upper()} + b * {rows * columns} + i * {columns} + j)"
        for name, rows, columns in (("x", m, k // 2), ("y", k // 2, n), ("s", m, k // group), ("t", n, k // group))
    ]
    lines.append(f"b, i, j = {(lead if batch else flat).format(m, n)}")
    lines.append(f"tl.store(Z + b * {m * n} + i * {n} + j, tl.dot_scaled(x, s, 'e2m1', y, t, 'e2m1'))")
    out = np.zeros((count, m, n), np.float32)
    found = launched("\n".join(lines), a, b, s, t, out, parameters="X, Y, S, T, Z", B=count)
    left = E2M1[np.stack([a & 15, a >> 4], -1).reshape(count, m, k)] * np.repeat(factors[0], group, 2)
    right = E2M1[np.stack([b & 15, b >> 4], 2).reshape(count, k, n)] * np.repeat(factors[1], group, 2).swapaxes(1, 2)
    np.testing.assert_array_equal(found, left @ right)


# Programs, arguments and control flow.


@pytest.mark.parametrize("grid", [(3,), (2, 3), (2, 3, 4)], ids=str)
def test_numbers_of_programs(grid):
    body = (
        "n = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)\n"
        "tl.store(Z + n, n * 1000 + tl.num_programs(0) * 100 + tl.num_programs(1) * 10 + tl.num_programs(2))"
    )
    sizes = (*grid, 1, 1)[:3]
    found = launched(body, np.zeros(int(np.prod(grid)), np.int32), grid=grid, parameters="Z")
    np.testing.assert_array_equal(found, np.arange(found.size) * 1000 + sizes[0] * 100 + sizes[1] * 10 + sizes[2])


@pytest.mark.parametrize("number", [0, 1, -1, 16, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63, 2.5, True, 1e300])
def test_numbers_as_arguments(number):
    to = np.uint64 if number == 2**63 else np.float32 if isinstance(number, float) else np.int64
    found = launched("tl.store(Z + tl.arange(0, N), n)", number, np.zeros(COUNT, to), parameters="n, Z")
    # Triton's numbers with a point are of f32.
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, np.array(number).astype(to))


LOOPS = [(0, 7, 1), (0, 7, 3), (5, 0, 1), (-3, 4, 2), (2, 2, 1)]


@pytest.mark.parametrize(("first", "end", "step"), LOOPS)
def test_loops(first, end, step):
    body = "t = 0\nfor j in range(first, end, step):\n    t = t * 3 + j\ntl.store(Z, t)"
    found = launched(body, first, end, step, np.zeros(1, np.int32), parameters="first, end, step, Z")
    wanted = 0
    for j in range(first, end, step):
        wanted = wanted * 3 + j
    assert found[0] == wanted


@pytest.mark.parametrize(("first", "end"), [(7, 0), (3, -4), (0, 0)])
def test_loops_that_count_down(first, end):
    body = "t = 0\nfor j in range(first, end, -2):\n    t = t * 3 + j\ntl.store(Z, t)"
    found = launched(body, first, end, np.zeros(1, np.int32), parameters="first, end, Z")
    wanted = 0
    for j in range(first, end, -2):
        wanted = wanted * 3 + j
    assert found[0] == wanted


@pytest.mark.parametrize("number", range(4))
def test_nested_branches(number):
    body = (
        "t = tl.load(X)\nif n > 0:\n    t += 1\n    if n > 2:\n        t *= 5\n    else:\n        t *= 3\n"
        "elif t > 2:\n    t -= 7\ntl.store(Z, t)"
    )
    found = launched(body, np.full(1, 4, np.int32), number, np.zeros(1, np.int32), parameters="X, n, Z")
    assert found[0] == {0: -3, 1: 15, 2: 15, 3: 25}[number]


def philox(seed, offsets):
    """Random words of Philox 4x32-10, as its authors define them."""
    c = [offsets.astype(np.uint64), *[np.zeros(len(offsets), np.uint64)] * 3]
    k, mask = [seed & 0xFFFFFFFF, seed >> 32], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]),
            b & mask,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]),
            a & mask,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return [v.astype(np.uint32) for v in c]


@pytest.mark.parametrize("seed", [0, 42, 0x0123456789ABCDEF])
def test_random_words_are_those_of_philox(seed):
    body = (
        "i = tl.arange(0, N)\na, b, c, d = tl.randint4x(seed, i)\n"
        "tl.store(Z + i, a)\ntl.store(Z + N + i, b)\ntl.store(Z + 2 * N + i, c)\ntl.store(Z + 3 * N + i, d)"
    )
    found = launched(body, seed, np.zeros(4 * COUNT, np.int32), parameters="seed, Z")
    np.testing.assert_array_equal(found.view(np.uint32), np.concatenate(philox(seed, np.arange(COUNT))))


@pytest.mark.parametrize(("name", "mean", "deviation"), [("rand", 0.5, 12**-0.5), ("randn", 0, 1)])
def test_distributions_of_random_numbers(name, mean, deviation):
    found = launched(
        f"i = tl.arange(0, N)\ntl.store(Z + i, tl.{name}(7, i))", np.zeros(512, np.float32), parameters="Z", N=512
    )
    assert abs(found.mean() - mean) < 0.1 and abs(found.std() - deviation) < 0.1
