"""Random kernels of the tile language: all engines, and numpy with the rules of docs/tile-language.md, agree."""

from __future__ import annotations

import importlib.util
import random
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from effort import examples

import xegpu_py
import xegpu_py.language as xl

pytestmark = pytest.mark.native

LANES = 16
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
FLOATS = ("float16", "bfloat16", "float32")
REAL = (*FLOATS, "float64")
TYPES = {name: np.dtype(getattr(ml_dtypes, name, None) or name) for name in (*INTEGERS, "uint64", *REAL)}


class Value:
    """A value of the language by its rules: a numpy array whose operators have the language's types."""

    def __init__(self, held: Any) -> None:
        self.held = np.asarray(held)

    @property
    def real(self) -> bool:
        return self.held.dtype.name in REAL

    def to(self, dtype: np.dtype) -> Value:
        with np.errstate(all="ignore"):
            return Value(self.held.astype(dtype))

    def _both(self, other: Any, division: bool = False) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(other, Value):
            common = common_type(self, other)
        else:
            common = np.dtype(np.float32) if isinstance(other, float) and not self.real else self.held.dtype
        if division and common.name not in REAL:
            common = np.dtype(np.float32)
        if isinstance(other, int) and other < 0 and common.kind == "u":
            raise OverflowError(f"{other} does not fit {common}")
        with np.errstate(all="ignore"):
            held = other.held if isinstance(other, Value) else np.asarray(other)
            return self.held.astype(common), held.astype(common)

    def _made(self, name: str, other: Any, reflected: bool = False, division: bool = False) -> Value:
        a, b = self._both(other, division)
        a, b = (b, a) if reflected else (a, b)
        dtype = None if name in COMPARISONS.values() else a.dtype
        if dtype and a.dtype.name in FLOATS:
            # Quotients and remainders of narrow numbers are rounded once.
            a, b = a.astype(np.float32), b.astype(np.float32)
        elif name.endswith("_shift"):
            # Numbers are shifted in at least 32 bits, by the lowest 5 or 6 bits of the count.
            bits = max(a.dtype.itemsize * 8, 32)
            a = a.astype(f"{a.dtype.kind}{bits // 8}")
            b = (b.astype(a.dtype) & a.dtype.type(bits - 1)).astype(a.dtype)
        with np.errstate(all="ignore"):
            return Value(getattr(np, name)(a, b).astype(dtype))

    def __abs__(self) -> Value:
        return Value(np.abs(self.held))

    def __bool__(self) -> bool:
        return bool(self.held)

    def __index__(self) -> int:
        return int(self.held)

    def __neg__(self) -> Value:
        return Value(np.negative(self.held))

    def __invert__(self) -> Value:
        return Value(np.invert(self.held))

    def __truediv__(self, other: Any) -> Value:
        return self._made("divide", other, division=True)


COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "floordiv": "floor_divide", "mod": "mod", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
for _name, _function in {**OPERATORS, **COMPARISONS}.items():
    setattr(Value, f"__{_name}__", lambda self, other, f=_function: self._made(f, other))
    setattr(Value, f"__r{_name}__", lambda self, other, f=_function: self._made(f, other, reflected=True))


def common_type(a: Value, b: Value) -> np.dtype:
    """The type of an operation on two values."""
    x, y = a.held.dtype, b.held.dtype
    if a.real == b.real:
        if a.real and x != y:
            return np.dtype(np.float32) if x.itemsize == y.itemsize else max(x, y, key=lambda t: t.itemsize)
        return np.result_type(x, y) if not a.real else x
    return x if a.real else y


def where(condition: Value, a: Any, b: Any) -> Value:
    x, y = a._both(b)
    return Value(np.where(condition.held, x, y))


MODEL = SimpleNamespace(where=where, **TYPES)


class Tile:
    """A tile of an array of the model."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def tile(self, shape: Any, at: Any) -> Tile:
        return self

    def load(self) -> Value:
        return Value(self.array.copy())

    def store(self, value: Value) -> None:
        self.array[...] = value.to(self.array.dtype).held


class Source:
    """The text of a random kernel, and the types of its variables."""

    def __init__(self, r: random.Random) -> None:
        self.r, self.lines, self.depth, self.loops = r, [], 1, 0
        # One has integers, so that each number of the kernel can become a tile.
        self.types = {name: r.choice((*INTEGERS, *FLOATS)) for name in "ab"} | {"c": r.choice(INTEGERS)}
        self.scalars = ["n"]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def scalar(self) -> str:
        return self.r.choice(self.scalars)

    def integer(self, depth: int) -> str:
        """An expression of integers; indices are wide, so that they meet all types but those of floats."""
        known = [n for n, t in self.types.items() if t in INTEGERS]
        how = self.r.random()
        if depth == 0 or how < 0.2:
            return self.r.choice(known) if self.r.random() < 0.8 else f"(c * 0 + {self.scalar()})"
        x = self.integer(depth - 1)
        if how < 0.3:
            return f"({x} {self.r.choice(['//', '%'])} {self.r.choice([3, 7, 100])})"
        if how < 0.4:
            return f"({x} {self.r.choice(['<<', '>>'])} {self.r.randint(0, 7)})"
        if how < 0.5:
            return f"({self.r.randint(0, 99)} {self.r.choice('+-*')} {x})"
        if how < 0.6:
            return f"{self.r.choice('-~')}{x}"
        y = self.integer(depth - 1)
        if how < 0.68:
            return f"({x} {self.r.choice(['//', '%'])} (({y} & 15) + 1))"
        if how < 0.78:
            return f"xl.where({self.condition(depth - 1)}, {x}, {y})"
        if how < 0.85:
            return f"({x}).to(xl.{self.r.choice(INTEGERS)})"
        return f"({x} {self.r.choice('+-*&|^')} {y})"

    def real(self, depth: int) -> str:
        """An expression of floats."""
        known = [n for n, t in self.types.items() if t in FLOATS]
        how = self.r.random()
        if depth == 0 or not known or how < 0.2:
            return self.r.choice(known) if known and how < 0.8 else f"({self.integer(1)}).to(xl.float32)"
        x = self.real(depth - 1)
        if how < 0.3:
            return f"({x} {self.r.choice('+-*/')} {self.r.choice(['2', '0.1', '3.5'])})"
        if how < 0.4:
            return f"({self.r.choice(['1', '0.7'])} {self.r.choice('+-*')} {x})"
        if how < 0.5:
            return f"xl.where({self.condition(depth - 1)}, {x}, {self.real(depth - 1)})"
        if how < 0.6:
            return f"({x}).to(xl.{self.r.choice(FLOATS)})"
        return f"({x} {self.r.choice('+-*/')} {self.real(depth - 1)})"

    def condition(self, depth: int) -> str:
        made = self.r.choice([self.integer, self.real])
        x, y = made(min(depth, 1)), made(min(depth, 1))
        return f"({x} {self.r.choice(['<', '<=', '>', '>=', '==', '!='])} {y})"

    def uniform(self) -> str:
        other = self.r.choice([str(self.r.randint(0, 5)), self.scalar()])
        return f"({self.scalar()} {self.r.choice(['%', '&'])} 3) {self.r.choice(['<', '>', '==', '!='])} {other}"

    def assign(self) -> None:
        name = self.r.choice("abc")
        made = self.integer(2) if self.types[name] in INTEGERS else self.real(2)
        self.line(f"{name} = ({made}).to(xl.{self.types[name]})")

    def block(self, count: int) -> None:
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.depth -= 1

    def statement(self) -> None:
        how = self.r.random()
        if how < 0.6 or self.depth > 3:
            self.assign()
        elif how < 0.75:
            self.line(f"if {self.uniform()}:")
            self.block(self.r.randint(1, 2))
            if self.r.random() < 0.6:
                self.line(f"elif {self.uniform()}:" if self.r.random() < 0.3 else "else:")
                self.block(1)
        elif how < 0.85:
            name = self.r.choice("abc")
            same = [n for n, t in self.types.items() if t == self.types[name]]
            self.line(f"{name} = {self.r.choice(same)} if {self.uniform()} else {self.r.choice(same)}")
        else:
            self.loops += 1
            counter = f"i{self.loops}"
            bounds = self.r.choice(["n", "1, n, 2", "n, 0, -2", "3", "n % 4"])
            self.line(f"for {counter} in range({bounds}):")
            self.scalars.append(counter)
            self.block(self.r.randint(1, 2))
            if self.r.random() < 0.5:
                self.depth += 1
                self.line(f"if {self.uniform()}:")
                self.line(f"    {self.r.choice(['break', 'continue'])}")
                self.depth -= 1
                self.block(1)
            self.scalars.remove(counter)

    def text(self) -> str:
        """The kernel's source."""
        for name in "abc":
            self.line(f"{name} = {name.upper()}.tile((1, {LANES}), at=(0, 0)).load()")
        for _ in range(self.r.randint(2, 5)):
            self.statement()
        for name in "abc":
            self.line(f"{name.upper()}.tile((1, {LANES}), at=(0, 0)).store({name})")
        return "\n".join(["def kernel(A, B, C, n):", *self.lines, ""])


def numbers(r: random.Random, name: str) -> np.ndarray:
    """A row of numbers of a type, small ones and those at its ends."""
    if name in FLOATS:
        found = [r.choice([r.uniform(-9, 9), 0.0, -0.0, float("inf"), 300.0, 1e-3]) for _ in range(LANES)]
        return np.array(found).astype(TYPES[name])[None]
    info = np.iinfo(TYPES[name])
    near = [info.min, info.max, 0, 1, max(info.min, -7), 100]
    found = [r.choice([*near, r.randint(int(info.min), int(info.max))]) for _ in range(LANES)]
    return np.array(found, dtype=object).astype(TYPES[name])[None]


def imported(text: str, folder: Path, globals_: dict[str, Any]) -> Any:
    """The kernel of a source in a file, which the language reads."""
    path = folder / "kernel.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    vars(module).update(globals_)
    spec.loader.exec_module(module)
    return module.kernel


def run(seed: int, folder: Path) -> None:
    """Compare the engines and the model on a random kernel."""
    r = random.Random(seed)
    source = Source(r)
    text, n = source.text(), r.randint(0, 6)
    arrays = [numbers(r, source.types[name]) for name in "abc"]
    wanted = [a.copy() for a in arrays]
    steps = lambda *bounds: map(Value, range(*(int(b) for b in bounds)))  # noqa: E731
    imported(text, folder, {"xl": MODEL, "range": steps})(*map(Tile, wanted), Value(np.int64(n)))
    for engine in ("eager", "reference", "both"):
        found = [a.copy() for a in arrays]
        kernel = imported(text, folder, {"xl": xl})
        xegpu_py.jit(kernel, engine=engine)(*found, n, grid=1)
        for name, mine, theirs in zip("abc", wanted, found):
            same = (
                (mine == theirs) & (np.signbit(mine) == np.signbit(theirs))
                if mine.dtype.name in FLOATS
                else mine == theirs
            )
            if mine.dtype.name in FLOATS:
                same |= np.isnan(mine) & np.isnan(theirs)
            assert same.all(), f"{name} by {engine}, n = {n}: {theirs[~same]} instead of {mine[~same]}\n{text}"


@pytest.mark.parametrize("seed", range(examples(4)))
def test_engines_and_numpy_agree(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path)


# All operators, on special values of random types.

PAIRS = 64


def extremum(name: str, a: Value, b: Value) -> Value:
    """The lesser or greater of two values, where -0 is less than 0."""
    x, y = a._both(b)
    equal = np.where(np.signbit(x) == (name == "minimum"), x, y)
    return Value(np.where(x == y, equal, a._made(name, b).held))


EXTREMA = {"min": lambda a, b: extremum("minimum", a, b), "max": lambda a, b: extremum("maximum", a, b)}

BINARY = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=")
UNARY = ("-x", "~x", "abs(x)", "x // 3", "x % 3", "3 // x", "3 % x", "x // -1", "x % -1", "x << 3", "x >> 3", "x * 0.1")
FUNCTIONS = ("min(x, y)", "max(x, y)", "xl.where(x > y, x, y)")


def special(r: random.Random, name: str) -> np.ndarray:
    """Numbers of a type at which operators have rules of their own."""
    if name in REAL:
        least, great = (float(getattr(ml_dtypes.finfo(TYPES[name]), n)) for n in ("smallest_subnormal", "max"))
        near = [0.0, -0.0, 1, -1, 0.1, -2.5, 3, 7.5, least, -least, great, -great, np.inf, -np.inf, np.nan, 65536]
        with np.errstate(all="ignore"):
            return np.array(r.choices(near, k=PAIRS)).astype(TYPES[name])[None]
    info = np.iinfo(name)
    near = [
        info.min,
        info.max,
        info.min + 1,
        info.max - 1,
        0,
        0,
        1,
        max(info.min, -1),
        max(info.min, -7),
        7,
        31,
        32,
        63,
    ]
    return np.array(r.choices(near, k=PAIRS), dtype=object).astype(name)[None]


def run_operators(seed: int, folder: Path) -> None:
    """Compare the engines and numpy on all operators of special values of two random types."""
    r = random.Random(seed)
    names = [r.choice([*TYPES]), r.choice([*TYPES])]
    if "uint64" in names and any(n.startswith("int") for n in names):
        names = ["uint64", "uint64"]
    a, b = (special(r, name) for name in names)
    expressions = [*(f"x {sign} y" for sign in BINARY), *UNARY, *FUNCTIONS]
    wanted = {}
    for expression in expressions:
        try:
            wanted[expression] = eval(expression, {"x": Value(a), "y": Value(b), "xl": MODEL, **EXTREMA}).held
        except (TypeError, OverflowError):
            # The operands have no such operator.
            continue
    outputs = [f"O{i}" for i in range(len(wanted))]
    lines = [f"def kernel(A, B, {', '.join(outputs)}):"]
    lines += [f"    {n.lower()} = {m}.tile((1, {PAIRS}), at=(0, 0)).load()" for n, m in (("X", "A"), ("Y", "B"))]
    lines += [f"    {o}.tile((1, {PAIRS}), at=(0, 0)).store({e})" for o, e in zip(outputs, wanted)]
    for engine in ("eager", "reference", "both"):
        found = [np.zeros(w.shape, np.uint8 if w.dtype == bool else w.dtype) for w in wanted.values()]
        kernel = imported("\n".join([*lines, ""]), folder, {"xl": xl})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            xegpu_py.jit(kernel, engine=engine)(a, b, *found)
        for (expression, mine), theirs in zip(wanted.items(), found):
            same = mine == theirs
            if Value(mine).real:
                same = (same & (np.signbit(mine) == np.signbit(theirs))) | (np.isnan(mine) & np.isnan(theirs))
            shown = f"{a[~same][:3]}, {b[~same][:3]}: {theirs[~same][:3]} instead of {mine[~same][:3]}"
            assert same.all(), f"{expression} of {names} by {engine}, {shown}"


@pytest.mark.parametrize("seed", range(examples(6)))
def test_operators_of_special_values(seed: int, tmp_path: Path) -> None:
    run_operators(seed, tmp_path)
