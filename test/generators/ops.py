"""The op table of random programs: ops on numbers, their operands, and what is known of their results.

Generators draw from it by `elementwise.number`, `compare` and `convert`, for scalars, vectors and tensors. An op is added as
an entry here. Its function in numpy checks the readers of other dialects, which the reference evaluator does not see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from xegpu_py.ir.builtin import bit_width, is_float

SIGNLESS = ("i32", "i8", "i16", "i64")
FLOATS = ("f32", "f16", "bf16", "f64", "f8E5M2", "f8E4M3FN")
NUMBERS = (*SIGNLESS, *FLOATS)
"""Elements that arith computes with."""
STORED = ("ui8", "ui16", "ui32", "ui64", "tf32")
"""Elements that are loaded, stored and multiplied only."""
NARROW = ("i4", "i2")
"""Elements of which a byte has several: blocks of subgroups have them."""

HOSTED = (*SIGNLESS, "f32", "f16", "f64", "i1", "index")
"""Elements of which MLIR's lowering to LLVM has arithmetic on every host."""
SINGLE = ("f32", "f16", "bf16", "f8E5M2", "f8E4M3FN")
"""Floats of at most 32 bits: those that functions are computed for."""
DIVIDED = (*SIGNLESS, *NARROW, "index")
COUNTED = (*DIVIDED, "i1")
"""Integers of any kind."""


def width(element: str) -> int:
    """The bits of an element; those of 64-bit indices, which a target may compute in 32 bits."""
    return 64 if element == "index" else bit_width(element)


Array = np.ndarray[Any, Any]
Compute = Callable[..., Any]


@dataclass(frozen=True)
class Op:
    """An op whose result has the shape of its first operand.

    Attributes:
        text: the assembly. `{x}` is the first operand, `{y}` and `{z}` are others of its type, and other names are
            operands of `elementwise.OPERANDS`; `{type}` is the type of `{x}`.
        elements: those of the first operand.
        family: ops that are drawn as often together as `FAMILIES` says.
        compute: the op on numpy's arrays; None if the reference evaluator alone computes it.
        bound: the magnitude of a result, if all operands are integers of some magnitudes; None if it need not be one.
        result: the result's element; empty for that of the first operand.
        second: the same of a second result, "x" for that of the first operand.
        kind: the name of reductions by the op.
        ordered: whether reductions by it depend on the order.
        hosted: elements for which MLIR's lowering to LLVM has the result that our documents have.
        shaped: whether operands must be vectors (True) or scalars (False).
    """

    text: str
    elements: tuple[str, ...]
    family: str
    compute: Compute | None = None
    bound: Callable[..., int] | None = None
    result: str = ""
    second: str = ""
    kind: str = ""
    ordered: bool = False
    hosted: tuple[str, ...] = HOSTED
    shaped: bool | None = None

    @property
    def name(self) -> str:
        """The op's name."""
        return self.text.partition(" ")[0]


FAMILIES = {
    "arithmetic": 45, "shift": 15, "division": 15, "count": 6, "sign": 8, "power": 4, "extended": 8, "fma": 15,
    "rounding": 12, "function": 15, "functions of two": 6, "sincos": 3,
    "index": 24, "index constants": 8, "position": 12,
    "comparison": 80, "class": 20,
}  # fmt: skip
TRUTH = ("comparison", "class")
"""Families whose results are truth values."""
INDEX = ("index", "index constants", "position")
"""Families of indices that no memory is accessed at, which only `core.py` has."""


def unsigned(data: Array) -> Array:
    """Integers without a sign."""
    return data if data.dtype == bool else data.view(f"u{data.dtype.itemsize}")


def _unsigned(function: Compute) -> Compute:
    """A function on integers without a sign."""

    def compute(*operands: Array) -> Array:
        found: Array = function(*map(unsigned, operands))
        return found if found.dtype == bool else found.view(operands[0].dtype)

    return compute


def extreme(larger: bool, numbers: bool, a: Array, b: Array) -> Array:
    """The larger or smaller floats, by the sign of zeros too; with `numbers` that of one NaN and a number is the number."""
    by = {(True, True): np.fmax, (True, False): np.maximum, (False, True): np.fmin, (False, False): np.minimum}
    found: Array = by[larger, numbers](a, b)
    sign = (np.logical_and if larger else np.logical_or)(np.signbit(a), np.signbit(b))
    return np.where((a == 0) & (b == 0), np.where(sign, -0.0, 0.0).astype(found.dtype), found)


def divided(rounding: str, has_sign: bool, rest: bool, a: Array, b: Array) -> Array:
    """Quotients or rests of integers, by exact arithmetic."""
    x, y = ((v if has_sign else unsigned(v)).astype(object) for v in (a, b))
    quotient, uneven = x // y, (x % y != 0).astype(object)
    quotient += uneven * {"floor": 0, "ceil": 1, "zero": ((x < 0) != (y < 0)).astype(object)}[rounding]
    return wrapped(x - quotient * y if rest else quotient, a.dtype)


def wrapped(numbers: Array, dtype: Any) -> Array:
    """Exact integers as an element has them."""
    return np.asarray(numbers & ((1 << 64) - 1), np.uint64).astype(f"u{np.dtype(dtype).itemsize}").view(dtype)


def halves(has_sign: bool, a: Array, b: Array) -> tuple[Array, Array]:
    """The lower and the upper half of products of integers."""
    x, y = ((v if has_sign else unsigned(v)).astype(object) for v in (a, b))
    return wrapped(x * y, a.dtype), wrapped(x * y >> (8 * a.dtype.itemsize), a.dtype)


def high_half(a: Array, b: Array) -> Array:
    """The upper half of products of integers without a sign."""
    return halves(False, a, b)[1]


def sum_and_carry(a: Array, b: Array) -> tuple[Array, Array]:
    """Sums of integers without a sign, and whether they overflow."""
    return a + b, unsigned(a + b) < unsigned(a)


def counted(name: str, a: Array) -> Array:
    """How many bits are set, and how many zeros precede the first or follow the last of them."""
    width = 8 * a.dtype.itemsize
    texts = [f"{n:0{width}b}" for n in unsigned(a).ravel().tolist()]
    counts = {
        "ctpop": lambda t: t.count("1"), "ctlz": lambda t: len(t) - len(t.lstrip("0")),
        "cttz": lambda t: len(t) - len(t.rstrip("0")),
    }  # fmt: skip
    return np.array([counts[name](t) for t in texts], a.dtype).reshape(a.shape)


def powers(a: Array, b: Array) -> Array:
    """Odd integers to the power of others, of which those below 0 leave whole parts of reciprocals."""

    def power(x: int, y: int) -> int:
        return pow(x, y, 1 << 64) if y >= 0 else x ** (y & 1) if abs(x) == 1 else 0

    return wrapped(np.array([*map(power, a.ravel().tolist(), b.ravel().tolist())], object).reshape(a.shape), a.dtype)


def is_normal(a: Array) -> Array:
    return np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).tiny)


def folded(op: Op, data: Array, axis: int) -> Array:
    """The results of an op on the first, the first two, ... elements along an axis."""
    assert op.compute
    parts = [np.take(data, [0], axis)]
    for i in range(1, data.shape[axis]):
        parts.append(op.compute(parts[-1], np.take(data, [i], axis)).astype(data.dtype))
    return np.concatenate(parts, axis)


def _alternatives(text: str) -> list[str]:
    """A text for each choice of `(a|b)` in it."""
    choice = re.search(r"\(([^{}()]*\|[^{}()]*)\)", text)
    if choice is None:
        return [text]
    return [t for word in choice[1].split("|") for t in _alternatives(text.replace(choice[0], word, 1))]


def _ops(texts: str, elements: tuple[str, ...], family: str, **more: Any) -> Iterable[Op]:
    """Ops that differ in their names only."""
    return (Op(text, elements, family, **more) for text in _alternatives(texts))


def _integers() -> Iterable[Op]:
    binary: tuple[tuple[str, str, Compute, Callable[..., int] | None], ...] = (
        ("addi", "add", np.add, lambda x, y: x + y), ("subi", "", np.subtract, lambda x, y: x + y),
        ("muli", "mul", np.multiply, lambda x, y: x * y), ("andi", "and", np.bitwise_and, None),
        ("ori", "or", np.bitwise_or, None), ("xori", "xor", np.bitwise_xor, None),
        ("maxsi", "maxsi", np.maximum, max), ("minsi", "minsi", np.minimum, max),
        ("maxui", "maxui", _unsigned(np.maximum), None), ("minui", "minui", _unsigned(np.minimum), None),
    )  # fmt: skip
    for name, kind, compute, bound in binary:
        yield Op(f"arith.{name} {{x}}, {{y}} : {{type}}", COUNTED, "arithmetic", compute, bound, kind=kind)
    shifts = {"shli": np.left_shift, "shrsi": np.right_shift, "shrui": _unsigned(np.right_shift)}
    for name, compute in shifts.items():
        yield Op(f"arith.{name} {{x}}, {{amount}} : {{type}}", (*SIGNLESS, "index"), "shift", compute)
    for name, rounding, has_sign, rest in (
        ("divui", "zero", False, False), ("divsi", "zero", True, False), ("remui", "zero", False, True),
        ("remsi", "zero", True, True), ("floordivsi", "floor", True, False), ("ceildivsi", "ceil", True, False),
        ("ceildivui", "ceil", False, False),
    ):  # fmt: skip
        compute = partial(divided, rounding, has_sign, rest)
        yield Op(f"arith.{name} {{x}}, {{divisor}} : {{type}}", DIVIDED, "division", compute)
    for name in ("ctpop", "ctlz", "cttz"):
        yield Op(f"math.{name} {{x}} : {{type}}", SIGNLESS, "count", partial(counted, name), lambda x: 64)
    yield Op("math.absi {x} : {type}", SIGNLESS, "sign", np.abs, lambda x: x)
    yield Op("math.ipowi {odd}, {y} : {type}", SIGNLESS, "power", powers)
    yield Op("arith.addui_extended {x}, {y} : {type}, {truths}", SIGNLESS, "extended", sum_and_carry, second="i1")
    for name in ("mulsi", "mului"):
        compute = partial(halves, name == "mulsi")
        yield Op(f"arith.{name}_extended {{x}}, {{y}} : {{type}}", SIGNLESS, "extended", compute, second="x")
    yield Op("tt.mulhiui {x}, {y} : {type}", ("i32",), "extended", high_half)


def _floats() -> Iterable[Op]:
    plus, times, most = (lambda x, y: x + y), (lambda x, y: x * y), max
    for name, compute, bound in (("addf", np.add, plus), ("subf", np.subtract, plus), ("mulf", np.multiply, times)):
        kind = "" if name == "subf" else name[:-1]
        yield Op(f"arith.{name} {{x}}, {{y}} : {{type}}", FLOATS, "arithmetic", compute, bound, kind=kind, ordered=True)
    yield Op("arith.divf {x}, {y} : {type}", FLOATS, "arithmetic", np.divide)
    yield Op("arith.remf {x}, {y} : {type}", FLOATS, "arithmetic")
    for name, larger, numbers in (
        ("maximumf", True, False), ("minimumf", False, False), ("maxnumf", True, True), ("minnumf", False, True),
    ):  # fmt: skip
        # LLVM does not order zeros of different signs.
        hosted = () if numbers else HOSTED
        yield Op(f"arith.{name} {{x}}, {{y}} : {{type}}", FLOATS, "arithmetic", partial(extreme, larger, numbers), most,
                 kind=name, hosted=hosted)  # fmt: skip
    yield Op("arith.negf {x} : {type}", FLOATS, "sign", np.negative, lambda x: x)
    yield Op("math.absf {x} : {type}", FLOATS, "sign", np.abs, lambda x: x)
    # Folders give NaNs other signs than LLVM does.
    yield Op("math.copysign {x}, {y} : {type}", FLOATS, "sign", bound=lambda x, y: x, hosted=())
    # The host rounds sums of f16 twice, through f32.
    sum_: dict[str, Any] = {"bound": lambda x, y, z: x * y + z, "hosted": ("f32", "f64")}
    yield Op("math.fma {x}, {y}, {z} : {type}", FLOATS, "fma", **sum_)
    yield Op("vector.fma {x}, {y}, {z} : {type}", FLOATS, "fma", shaped=True, **{**sum_, "hosted": ()})
    roundings = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "roundeven": np.rint, "round": None}
    for name, rounding in roundings.items():
        yield Op(f"math.{name} {{x}} : {{type}}", FLOATS, "rounding", rounding, lambda x: x)
    yield Op("math.sqrt {x} : {type}", FLOATS, "function", np.sqrt)
    yield Op("math.rsqrt {x} : {type}", FLOATS, "function", hosted=())
    functions = (
        "exp2|log2|sin|cos|exp|log|log10|log1p|expm1|tanh|erf|tan|sinh|cosh|asinh|acosh|atanh|cbrt|atan|asin|acos|erfc"
    )
    yield from _ops(f"math.({functions}) {{x}} : {{type}}", SINGLE, "function", hosted=())
    yield Op("math.sincos {x} : {type}", SINGLE, "sincos", second="x", hosted=())
    for text in ("math.(powf|atan2) {x}, {y} : {type}", "math.fpowi {x}, {integer} : {type}, {integer_type}"):
        yield from _ops(text, SINGLE, "functions of two", hosted=())
    text = "math.clampf {x} to [{y}, {z}] : {type}"
    yield Op(text, SINGLE, "functions of two", lambda x, y, z: np.minimum(np.maximum(x, y), z), hosted=())


def _indices() -> Iterable[Op]:
    index: dict[str, Any] = {"elements": ("index",), "family": "index", "shaped": False, "hosted": ()}
    yield from _ops("index.(add|sub|mul|and|or|xor|maxs|mins|maxu|minu) {x}, {y}", **index)
    yield from _ops("index.(divs|divu|rems|remu|ceildivs|ceildivu|floordivs) {x}, {divisor}", **index)
    yield from _ops("index.(shl|shrs|shru) {x}, {amount}", **index)
    yield from _ops("index.cmp (eq|ne|slt|sle|sgt|sge|ult|ule|ugt|uge)({x}, {y})", result="i1", **index)
    yield from (op for e in SIGNLESS for op in _ops(f"index.cast(s|u) {{x}} : index to {e}", result=e, **index))
    yield from _ops("index.cast(s|u) {x} : {type} to index", result="index", **index | {"elements": SIGNLESS})
    constants = index | {"family": "index constants"}
    yield Op("index.sizeof", **constants)
    yield from _ops("index.constant (0|-1|7|255|4294967296)", **constants)
    yield from _ops("index.bool.constant (true|false)", result="i1", **constants)
    yield from _ops("gpu.(grid_dim|block_dim|block_id|thread_id) (x|y|z)", **index | {"family": "position"})
    yield from _ops("gpu.(subgroup_size|subgroup_id|num_subgroups) : index", **index | {"family": "position"})
    yield Op("gpu.lane_id", **index | {"family": "position"})


def _comparisons() -> Iterable[Op]:
    orders = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
              "ge": np.greater_equal}  # fmt: skip
    for order, compute in orders.items():
        for sign in ("",) if order in ("eq", "ne") else ("s", "u"):
            function = _unsigned(compute) if sign == "u" else compute
            text = f"arith.cmpi {sign}{order}, {{x}}, {{y}} : {{type}}"
            yield Op(text, COUNTED, "comparison", function, result="i1")

    def known(a: Array, b: Array) -> Array:
        return ~(np.isnan(a) | np.isnan(b))

    conditions: dict[str, Compute] = {
        "ord": known, "uno": lambda a, b: ~known(a, b), "true": lambda a, b: np.ones(a.shape, bool),
        "false": lambda a, b: np.zeros(a.shape, bool),
    }  # fmt: skip
    conditions |= {f"o{n}": lambda a, b, f=f: f(a, b) & known(a, b) for n, f in orders.items()}
    conditions |= {f"u{n}": lambda a, b, f=f: f(a, b) | ~known(a, b) for n, f in orders.items()}
    for name, compute in conditions.items():
        yield Op(f"arith.cmpf {name}, {{x}}, {{y}} : {{type}}", FLOATS, "comparison", compute, result="i1")
    # MLIR does not lower two of them to LLVM.
    classes: tuple[tuple[str, Compute, tuple[str, ...]], ...] = (
        ("isnan", np.isnan, HOSTED), ("isfinite", np.isfinite, HOSTED), ("isinf", np.isinf, ()), ("isnormal", is_normal, ()),
    )  # fmt: skip
    for name, compute, hosted in classes:
        yield Op(f"math.{name} {{x}} : {{type}}", FLOATS, "class", compute, result="i1", hosted=hosted)


OPS = (*_integers(), *_floats(), *_indices(), *_comparisons())
"""The table."""

BY_NAME = {op.name.partition(".")[2]: op for op in OPS if op.family == "arithmetic"}
"""Arithmetic of two operands, by its name without the dialect's."""


def comparison(condition: str) -> Op:
    """The comparison of integers by a condition."""
    return next(op for op in OPS if op.text.startswith(f"arith.cmpi {condition},"))


@lru_cache
def on(element: str) -> tuple[Op, ...]:
    """The ops on an element."""
    return tuple(op for op in OPS if element in op.elements)


@lru_cache
def reductions(element: str, ordered: bool = False) -> dict[str, Op]:
    """The kinds of reductions of an element; with `ordered` also those whose result depends on the order."""
    return {op.kind: op for op in on(element) if op.kind and (ordered or not op.ordered)}


@dataclass(frozen=True)
class Conversion:
    """An op that gives the numbers of an operand another element.

    Attributes:
        old, new: the classes of elements, of `_CLASSES`.
        wider: whether the result is wider (True) or narrower (False) than the operand.
        limited: whether the result is not defined for numbers that the new element does not hold.
        keeps: whether small integers stay what they are.
    """

    name: str
    old: str
    new: str
    wider: bool | None = None
    limited: bool = False
    keeps: bool = True

    def fits(self, old: str, new: str) -> bool:
        """Whether it converts between two elements."""
        if (_class_of(old), _class_of(new)) != (self.old, self.new):
            return False
        return self.wider is None or (
            bit_width(new) > bit_width(old) if self.wider else bit_width(new) < bit_width(old)
        )

    def limits(self, new: str) -> tuple[int, int]:
        """Numbers that the new element holds, and that floats of 8 bits hold."""
        top = 1 << bit_width(new) - (self.name[-2] == "s")
        return max(-100, -top) if self.name[-2] == "s" else 0, min(100, top - 1)

    def compute(self, x: Array, dtype: Any) -> Array:
        """The numbers of an array in another element."""
        if np.dtype(dtype) == bool:
            return (x & 1).astype(bool)
        if x.dtype == bool:
            return np.where(x, -1 if "s" in self.name[:4] else 1, 0).astype(dtype)
        return (unsigned(x) if self.name in ("extui", "uitofp") else x).astype(dtype)


def _class_of(element: str) -> str:
    return "index" if element == "index" else "float" if is_float(element) else "integer"


CONVERSIONS = (
    Conversion("extf", "float", "float", True), Conversion("truncf", "float", "float", False),
    Conversion("fptosi", "float", "integer", limited=True),
    Conversion("fptoui", "float", "integer", limited=True, keeps=False),
    Conversion("sitofp", "integer", "float"), Conversion("uitofp", "integer", "float", keeps=False),
    Conversion("extsi", "integer", "integer", True), Conversion("extui", "integer", "integer", True, keeps=False),
    Conversion("trunci", "integer", "integer", False, keeps=False),
    Conversion("index_cast", "index", "integer", keeps=False), Conversion("index_castui", "index", "integer", keeps=False),
    Conversion("index_cast", "integer", "index"), Conversion("index_castui", "integer", "index", keeps=False),
)  # fmt: skip


@lru_cache
def conversions(old: str, new: str) -> tuple[Conversion, ...]:
    """The conversions between two elements."""
    return tuple(c for c in CONVERSIONS if c.fits(old, new))
