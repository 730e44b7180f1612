"""Rules of ops that work on each element: arithmetic, comparisons, conversions, functions of libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir as mlir
from mlir.dialects import arith

from xegpu_py.deferred import deferred
from xegpu_py.extensions.triton.lowering.lowering import Item, Lowering, Rule
from xegpu_py.extensions.triton.lowering.positions import is_signed_comparison
from xegpu_py.extensions.triton.lowering.types import elements_of, integer_bits, kind_of, number_of
from xegpu_py.extensions.triton.lowering.values import Constant, Pointer, applied, chosen, signed, unsigned
from xegpu_py.ir.builtin import rounding_mode
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.passes.analysis.ir_queries import defining_op
from xegpu_py.passes.rewriting.builders import require_nearest
from xegpu_py.tiles import element_types
from xegpu_py.tiles.effects import device_assert
from xegpu_py.tiles.functions import PropagateNan, clamp, flip, umulhi
from xegpu_py.tiles.tile_values import Value
from xegpu_py.tiles.value_base import BUILDING, common_shape, matrix_shape

if TYPE_CHECKING:
    from xegpu_py.extensions.triton.lowering import libdevice
else:
    libdevice = deferred("xegpu_py.extensions.triton.lowering.libdevice")

# Constants and integers.


def _constant(low: Lowering, op: mlir.Operation) -> Constant:
    kind, number = kind_of(op.results[0]), number_of(op)
    return Constant(kind, number) if number is not None else Constant(kind, None, tuple(elements_of(op).ravel()))


def _poison(low: Lowering, op: mlir.Operation) -> Item:
    kind = kind_of(op.results[0])
    if kind.is_pointer:
        zero = Constant(kind_of(mlir.IntegerType.get_signless(64)), 0).value(element_types.int64, kind.shape)
        return Pointer.of_addresses(zero, kind)
    return Constant(kind, False if kind.element == "i1" else 0.0 if kind.dtype.is_float else 0)


def _integer(low: Lowering, op: mlir.Operation) -> Value:
    """An op on signed integers, which wrap around, or on positions."""
    operands = low.integers(list(op.operands), low.is_position(op.results[0]))
    _check_divisor(low, op, operands[1])
    return applied(op.name, operands[0].dtype, *operands)


def _exclusive_or(low: Lowering, op: mlir.Operation) -> Value:
    """The exclusive or; of an element and the exclusive or of its pair along an axis, the other element of the pair.

    `triton.language.sort` writes each exchange of neighbours so.
    """
    for value, both in (op.operands, list(op.operands)[::-1]):
        axis = _axis_of_pairs(both, value)
        if axis is not None:
            return flip(low.value(value), axis)
    return _integer(low, op)


def _axis_of_pairs(value: mlir.Value, of: mlir.Value) -> int | None:
    """The axis of two elements along which a value has the exclusive or of another's elements; None if it has not."""
    chain = []
    for name in ("tt.broadcast", "tt.expand_dims", "tt.reduce"):
        op = defining_op(value)
        if op is None or op.name != name:
            return None
        chain.append(op)
        value = op.operands[0]
    axis, inserted = (op.opview.axis for op in chain[:0:-1])
    is_pair = value == of and axis == inserted and mlir.ShapedType(of.type).shape[axis] == 2
    block = chain[2].regions[0].blocks[0]
    first, *rest = (inner.operation for inner in block.operations)
    combines = first.name == "arith.xori" and {*first.operands} == {*block.arguments}
    return axis if is_pair and combines and [*rest[0].operands] == [*first.results] else None


_DIVISIONS = frozenset(
    f"arith.{name}" for name in ("divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi", "ceildivui")
)


def _check_divisor(low: Lowering, op: mlir.Operation, divisor: Value) -> None:
    """Assert that no element is divided by zero, if that is asked for."""
    item = low.item(op.operands[1])
    if not low.divisions or op.name not in _DIVISIONS or (isinstance(item, Constant) and item.number):
        return
    # An assertion in the function of a reduction is one of all elements together.
    with BUILDING.elementwise(""):
        device_assert(divisor != 0, "integer division by zero")


def _unsigned(low: Lowering, op: mlir.Operation) -> Value:
    a, b = (low.value(v) for v in op.operands)
    if a.dtype.kind == "bool":
        name = {"arith.maxui": "arith.ori", "arith.minui": "arith.andi"}.get(op.name, op.name)
        return applied(name, a.dtype, a, b)
    a = unsigned(a)
    _check_divisor(low, op, b)
    return signed(applied(op.name, a.dtype, a, unsigned(b)))


def _compared(low: Lowering, op: mlir.Operation) -> Value:
    a, b = op.operands
    predicate = op.attributes["predicate"]
    comparison = op.opview.predicate.value
    if integer_bits(a.type) == 1 and comparison in (arith.CmpIPredicate.eq, arith.CmpIPredicate.ne):
        differ = applied("arith.xori", element_types.bool_, low.value(a), low.value(b))
        return differ if comparison == arith.CmpIPredicate.ne else ~differ
    if integer_bits(a.type) == 1:
        # True is -1 as a signed number.
        one, other = (_extended(low.value(v), element_types.int32) for v in (a, b))
    else:
        positions = is_signed_comparison(op) and low.is_position(a) and low.is_position(b)
        one, other = low.integers([a, b], positions)
    return applied("arith.cmpi", element_types.bool_, one, other, predicate=predicate)


def _compared_floats(low: Lowering, op: mlir.Operation) -> Value:
    a, b = (low.value(v) for v in op.operands)
    if a.dtype.is_narrow:
        a, b = a.to(element_types.float32), b.to(element_types.float32)
    return applied("arith.cmpf", element_types.bool_, a, b, predicate=op.attributes["predicate"])


def _select(low: Lowering, op: mlir.Operation) -> Item:
    condition = low.value(op.operands[0])
    a, b = list(op.operands)[1:]
    if kind_of(a).is_pointer:
        return _chosen_pointer(condition, low.pointer(a), low.pointer(b), op)
    if low.is_position(op.results[0]):
        return chosen(condition, low.position(a), low.position(b))
    return chosen(condition, low.value(a), low.value(b))


def _chosen_pointer(condition: Value, a: Pointer, b: Pointer, op: mlir.Operation) -> Pointer:
    if a.memory is b.memory:
        index = chosen(condition, a.offsets, b.offsets)
        return Pointer(a.memory, index, index.shape, a.element)
    return Pointer.of_addresses(chosen(condition, a.addresses(), b.addresses()), kind_of(op.results[0]))


def _mulhi(low: Lowering, op: mlir.Operation) -> Value:
    a, b = (unsigned(low.value(v)) for v in op.operands)
    return signed(umulhi(a, b))


# Conversions.


def _extended(value: Value, dtype: element_types.DType) -> Value:
    """Signed integers in a wider type; True is -1."""
    if value.dtype.kind != "bool":
        return value.to(dtype)
    wide = value.to(dtype)
    return Constant(kind_of(mlir.IntegerType.get_signless(dtype.bits)), 0).value(dtype, wide.shape) - wide


def _extend(low: Lowering, op: mlir.Operation) -> Value:
    if low.is_position(op.results[0]):
        return low.position(op.operands[0])
    return _extended(low.value(op.operands[0]), kind_of(op.results[0]).dtype)


def _truncate(low: Lowering, op: mlir.Operation) -> Value:
    if low.is_position(op.results[0]):
        return low.position(op.operands[0])
    value, dtype = low.value(op.operands[0]), kind_of(op.results[0]).dtype
    return (value & 1).to(dtype) if dtype.kind == "bool" else value.to(dtype)


def _to_float(low: Lowering, op: mlir.Operation) -> Value:
    value, dtype = low.value(op.operands[0]), kind_of(op.results[0]).dtype
    if op.name == "arith.uitofp":
        return unsigned(value).to(dtype)
    return (_extended(value, element_types.int32) if value.dtype.kind == "bool" else value).to(dtype)


def _from_unsigned(low: Lowering, op: mlir.Operation) -> Value:
    return signed(unsigned(low.value(op.operands[0])).to(kind_of(op.results[0]).dtype))


def _to_unsigned(low: Lowering, op: mlir.Operation) -> Value:
    dtype = kind_of(op.results[0]).dtype
    return signed(low.value(op.operands[0]).to(element_types.integer_of(dtype.bits, signed=False)))


def _converted(low: Lowering, op: mlir.Operation) -> Value:
    return low.value(op.operands[0]).to(kind_of(op.results[0]).dtype)


def _rounded(low: Lowering, op: mlir.Operation) -> Value:
    """Numbers in another floating-point type; what is beyond those of 8 bits becomes their greatest number."""
    value, dtype = low.value(op.operands[0]), kind_of(op.results[0]).dtype
    rounding = op.opview.rounding
    return value.to(dtype, rounding=None if rounding is None else rounding.name, saturate=dtype.bits == 8)


_MODES = {0: None, 1: "down", 2: "up", 3: "zero"}
"""The roundings of `arith.truncf`, by their numbers in MLIR."""


def _narrowed(low: Lowering, op: mlir.Operation) -> Value:
    mode = rounding_mode(op)
    if mode not in _MODES:
        require_nearest(op)
    return low.value(op.operands[0]).to(kind_of(op.results[0]).dtype, rounding=_MODES[mode])


def _bitcast(low: Lowering, op: mlir.Operation) -> Item:
    kind = kind_of(op.results[0])
    if not kind.is_pointer:
        return low.value(op.operands[0]).bitcast(kind.dtype)
    pointer = low.pointer(op.operands[0])
    if pointer.element == kind.element or pointer.memory.dtype == kind.stored:
        return pointer.of_type(pointer.memory, kind.element)
    return Pointer.of_addresses(pointer.addresses(), kind)


# Functions.


def _same(low: Lowering, op: mlir.Operation) -> Value:
    """An op whose meaning is that of the same op on vectors; numbers of 8 bits compute in float32."""
    return _widened(op.name, kind_of(op.results[0]).dtype, *(low.value(v) for v in op.operands))


def _widened(name: str, dtype: element_types.DType, *operands: Value) -> Value:
    if not dtype.is_narrow:
        return applied(name, dtype, *operands)
    wide = [v.to(element_types.float32) if v.dtype.is_narrow else v for v in operands]
    return applied(name, element_types.float32, *wide).to(dtype)


def _extended_pair(low: Lowering, op: mlir.Operation) -> list[Value]:
    """An op on integers with two results: a sum and its carry, or the halves of a product."""
    a, b = (low.value(v) for v in op.operands)
    shape = common_shape(a.shape, b.shape)
    dtypes = [kind_of(result).dtype for result in op.results]
    types = [dtype.vector(matrix_shape(shape)) for dtype in dtypes]
    pair = mlir.Operation.create(op.name, types, [v.broadcast(shape).ir for v in (a, b)])
    return [Value(result, dtype, shape) for result, dtype in zip(pair.results, dtypes)]


def _sincos(low: Lowering, op: mlir.Operation) -> list[Value]:
    x, dtype = low.value(op.operands[0]), kind_of(op.results[0]).dtype
    return [_widened(name, dtype, x) for name in ("math.sin", "math.cos")]


def _as(name: str) -> Rule:
    def rule(low: Lowering, op: mlir.Operation) -> Value:
        return applied(name, kind_of(op.results[0]).dtype, *(low.value(v) for v in op.operands))

    return rule


def _clamp(low: Lowering, op: mlir.Operation) -> Value:
    x, least, most = (low.value(v) for v in op.operands)
    nan = PropagateNan.ALL if op.opview.propagateNan.name == "all" else PropagateNan.NONE
    clamped: Value = clamp(x, least, most, propagate_nan=nan)
    return clamped


def _extern(low: Lowering, op: mlir.Operation) -> Value:
    """A function of a library by its symbol, such as `__nv_expf`."""
    symbol = str(op.opview.symbol)
    function = libdevice.function_of(symbol)
    if function is None:
        emit_error(op, f"calls '{symbol}', which is not known", "docs/triton.md says which functions of libdevice are")
    result = signed(function(*(low.value(v) for v in op.operands)))
    dtype = kind_of(op.results[0]).dtype
    return result if result.dtype == dtype else result.to(dtype)


_INTEGERS = ("addi", "subi", "muli", "divsi", "remsi", "minsi", "maxsi", "andi", "ori", "shli", "shrsi",
             "floordivsi", "ceildivsi")  # fmt: skip
_UNSIGNED = ("divui", "remui", "ceildivui", "minui", "maxui", "shrui")
_FLOATS = ("addf", "subf", "mulf", "divf", "remf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf")
_MATH = (
    "exp", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt", "erf", "floor",
    "ceil", "round", "roundeven", "trunc", "absf", "absi", "fma", "ctlz", "cttz", "ctpop", "copysign", "atan2", "powf",
    "expm1", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "clampf", "cosh", "erfc", "fpowi", "ipowi",
    "isfinite", "isinf", "isnan", "isnormal", "sinh",
)  # fmt: skip

RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    "ub.poison": _poison,
    **{f"arith.{name}": _integer for name in _INTEGERS},
    "arith.xori": _exclusive_or,
    **{f"arith.{name}": _unsigned for name in _UNSIGNED},
    **{f"arith.{name}": _same for name in _FLOATS},
    **{f"math.{name}": _same for name in _MATH},
    "arith.cmpi": _compared,
    "arith.cmpf": _compared_floats,
    "arith.select": _select,
    "arith.extsi": _extend,
    "arith.extui": _from_unsigned,
    "arith.trunci": _truncate,
    "arith.sitofp": _to_float,
    "arith.uitofp": _to_float,
    "arith.fptosi": _converted,
    "arith.fptoui": _to_unsigned,
    "arith.extf": _converted,
    "arith.truncf": _narrowed,
    "arith.addui_extended": _extended_pair,
    "arith.mulsi_extended": _extended_pair,
    "arith.mului_extended": _extended_pair,
    "math.sincos": _sincos,
    "arith.bitcast": _bitcast,
    "tt.bitcast": _bitcast,
    "tt.fp_to_fp": _rounded,
    "tt.mulhiui": _mulhi,
    "tt.clampf": _clamp,
    "tt.precise_sqrt": _as("math.sqrt"),
    "tt.precise_divf": _as("arith.divf"),
    "tt.approx_divf": _as("arith.divf"),
    "tt.extern_elementwise": _extern,
}
"""The rules of elementwise ops, by their names."""
