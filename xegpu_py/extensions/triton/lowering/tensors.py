"""Rules of ops on whole tensors: shapes, products, reductions, scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlir import ir as mlir

from xegpu_py.extensions.triton.lowering.lowering import Item, Lowering, Rule
from xegpu_py.extensions.triton.lowering.types import integer_bits, kind_of
from xegpu_py.extensions.triton.lowering.values import Constant, Pointer, unsigned
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.passes.analysis.ir_queries import defining_op
from xegpu_py.tiles import element_types
from xegpu_py.tiles.functions import arange, cat, gather, join, split
from xegpu_py.tiles.products import dot, dot_scaled
from xegpu_py.tiles.scans import associative_scan, histogram, reduce
from xegpu_py.tiles.tile_values import Value, value_of

# Shapes.


def _range(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview
    return arange(view.start, view.end)


def _moved(low: Lowering, op: mlir.Operation, change: Callable[[Value], Value]) -> Item:
    """The result of an op that moves elements, of which there are as many as in its type."""
    item, kind = low.item(op.operands[0]), kind_of(op.results[0])
    if isinstance(item, Constant) and item.number is not None:
        return Constant(kind, item.number)
    if isinstance(item, Pointer):
        return item.moved(kind.shape, change)
    return change(low.position(op.operands[0]) if low.is_position(op.results[0]) else low.value(op.operands[0]))


def _repeat(low: Lowering, op: mlir.Operation) -> Item:
    shape = kind_of(op.results[0]).shape
    return _moved(low, op, lambda v: v.broadcast(shape))


def _broadcast(low: Lowering, op: mlir.Operation) -> Item:
    """The elements of a tensor as often as a shape says; masks of nothing but indices are computed at each element.

    In more than two dimensions a mask would be repeated along one after the other, and lie in other subgroups.
    """
    shape = kind_of(op.results[0]).shape
    if len(shape) > 2 and integer_bits(op.results[0].type) == 1:
        mask = _of_indices(low, op.operands[0], shape)
        if mask is not None:
            return mask
    return _repeat(low, op)


def _of_indices(low: Lowering, value: mlir.Value, shape: tuple[int, ...]) -> Value | None:
    """A tensor that is computed of ranges and constants only, at each element of a shape; None for others."""
    item, op = low.item(value), defining_op(value)
    if isinstance(item, Constant) and item.number is not None:
        return item.value(kind_of(value).dtype, shape)
    if op is None or not integer_bits(value.type):
        return None
    if op.name == "tt.broadcast":
        return _of_indices(low, op.operands[0], shape)
    if op.name in ("tt.expand_dims", "tt.reshape"):
        return _index_along(value, shape)
    if not op.name.startswith("arith.") or not op.operands:
        return None
    operands = {}
    for operand in op.operands:
        repeated = _of_indices(low, operand, shape)
        if repeated is None:
            return None
        operands[operand] = repeated
    with low.scope():
        low.values |= operands
        low.op(op)
        return low.value(value)


def _index_along(value: mlir.Value, shape: tuple[int, ...]) -> Value | None:
    """The index in a dimension, if a value is a range along it, at each element of a shape; None for other values."""
    extents, op = kind_of(value).shape, defining_op(value)
    while op is not None and op.name in ("tt.expand_dims", "tt.reshape"):
        op = defining_op(op.operands[0])
    axes = [axis for axis, extent in enumerate(extents) if extent > 1]
    if op is None or op.name != "tt.make_range" or op.opview.start or len(axes) != 1:
        return None
    # Extents are powers of two.
    inner = math.prod(shape[axes[0] + 1 :])
    index = arange(math.prod(shape)).to(element_types.int32).reshape(shape)
    return index >> inner.bit_length() - 1 & extents[axes[0]] - 1


def _reshape(low: Lowering, op: mlir.Operation) -> Item:
    shape = kind_of(op.results[0]).shape
    return _moved(low, op, lambda v: v.reshape(shape))


def _transpose(low: Lowering, op: mlir.Operation) -> Item:
    order = [int(n) for n in op.opview.order]
    return _moved(low, op, lambda v: v.permute(*order))


def _join(low: Lowering, op: mlir.Operation) -> Value:
    return join(*(low.value(v) for v in op.operands))


def _split(low: Lowering, op: mlir.Operation) -> list[Value]:
    return list(split(low.value(op.operands[0])))


def _cat(low: Lowering, op: mlir.Operation) -> Value:
    return cat(*(low.value(v) for v in op.operands))


def _gather(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview
    return gather(low.value(view.src), low.value(view.indices), view.axis)


def _histogram(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview
    kind = kind_of(op.results[0])
    mask = None if view.mask is None else low.value(view.mask)
    return histogram(low.value(view.src), kind.shape[0], mask).to(kind.dtype)


# Products.


def _dot(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview
    a, b, c = (low.value(v) for v in (view.a, view.b, view.c))
    if a.dtype != b.dtype and {a.dtype.bits, b.dtype.bits} != {8}:
        emit_error(op, f"multiplies {a.dtype} by {b.dtype}, which no target supports")
    return value_of(dot(a, b, c, input_precision=view.inputPrecision.name))


def _dot_scaled(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview

    def factor(value: mlir.Value | None) -> Value | None:
        if value is None:
            return None
        scaled = low.value(value)
        return unsigned(scaled) if scaled.dtype == element_types.int8 else scaled

    a, b, a_scale, b_scale = map(factor, (view.a, view.b, view.a_scale, view.b_scale))
    packed = {"lhs_k_pack": view.lhs_k_pack, "rhs_k_pack": view.rhs_k_pack}
    forms = view.a_elem_type.name, view.b_elem_type.name
    return value_of(dot_scaled(a, a_scale, forms[0], b, b_scale, forms[1], acc=low.value(view.c), **packed))


# Reductions and scans.

KINDS = {
    "arith.addf": "add", "arith.addi": "add", "arith.mulf": "mul", "arith.muli": "mul", "arith.maxnumf": "maxnumf",
    "arith.maximumf": "maximumf", "arith.minnumf": "minnumf", "arith.minimumf": "minimumf", "arith.maxsi": "maxsi",
    "arith.minsi": "minsi", "arith.maxui": "maxui", "arith.minui": "minui", "arith.andi": "and", "arith.ori": "or",
    "arith.xori": "xor",
}  # fmt: skip
"""The kinds of reductions by the op that combines two elements."""


def _reduce(low: Lowering, op: mlir.Operation) -> Any:
    view: Any = op.opview
    values, block = [low.value(v) for v in view.srcs], op.regions[0].blocks[0]
    ops = list(block.operations)
    kind = KINDS.get(ops[0].operation.name) if len(ops) == 2 and len(values) == 1 else None
    if kind is not None and values[0].dtype.kind != "bool" and _combines_both(block):
        return values[0].reduce(kind, view.axis)
    return list(reduce(tuple(values), view.axis, low.combining(block)))


def _combines_both(block: mlir.Block) -> bool:
    """Whether the first op of a block combines its two arguments, and the block gives its result."""
    first = block.operations[0].operation
    end = block.operations[1].operation
    return {*first.operands} == {*block.arguments} and list(end.operands) == list(first.results)


def _scan(low: Lowering, op: mlir.Operation) -> Any:
    view: Any = op.opview
    values = tuple(low.value(v) for v in view.srcs)
    return list(associative_scan(values, view.axis, low.combining(op.regions[0].blocks[0]), reverse=view.reverse))


RULES: dict[str, Rule] = {
    "tt.make_range": _range,
    "tt.splat": _repeat,
    "tt.broadcast": _broadcast,
    "tt.expand_dims": _reshape,
    "tt.reshape": _reshape,
    "tt.unsplat": _reshape,
    "tt.trans": _transpose,
    "tt.join": _join,
    "tt.split": _split,
    "tt.cat": _cat,
    "tt.gather": _gather,
    "tt.histogram": _histogram,
    "tt.dot": _dot,
    "tt.dot_scaled": _dot_scaled,
    "tt.reduce": _reduce,
    "tt.scan": _scan,
}
"""The rules of ops on whole tensors, by their names."""
