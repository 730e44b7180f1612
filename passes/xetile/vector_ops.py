"""Rewrites ops of the vector dialect as the ops of XeTile that have the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from xegpu_py.dialects.xetile import BroadcastOp, ReductionOp, TransposeOp
from xegpu_py.dialects.xetile.agreement import attached_map
from xegpu_py.ir.combining import CombiningKind
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.builders import broadcast, extract, shape_cast, with_shape
from xegpu_py.passes.common.ops import replace_op
from xegpu_py.passes.common.values import is_used, is_vector, shape_of
from xegpu_py.passes.xetile.vectors import is_splat, splat_of


def use_tile_ops(func: ir.Operation) -> None:
    """Replace transposes, broadcasts and reductions of a workgroup's vectors by ops of XeTile.

    Vectors of one dimension, such as the results of reductions, become a row or a column. A `vector.shape_cast` that
    divides a dimension into groups and a reduction of these groups together become one reduction.
    """
    casts: list[ir.Operation] = []
    for op in walk(func):
        if op.name == "vector.shape_cast":
            casts.append(op)
        rule = _RULES.get(op.name)
        if rule is None:
            continue
        with ir.InsertionPoint(op), op.location:
            made = rule(op)
        if made is not None:
            replace_op(op, made)
    for op in reversed(casts):
        if not is_used(op.results[0]):
            op.erase()


def _cast(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Cast a value to another shape; a splat remains a splat."""
    owner = value.owner
    if shape_of(value) != tuple(shape) and not isinstance(owner, ir.Block) and is_splat(owner.operation):
        return splat_of(owner.operation, list(owner.operation.operands), shape)
    return shape_cast(value, shape)


def _transpose(op: ir.Operation) -> ir.Value | None:
    order = tuple(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    if len(order) != 2:
        return None
    made: ir.Value = TransposeOp(op.operands[0], order, result=op.results[0].type, map=attached_map(op)).result
    return made


def _broadcast(op: ir.Operation) -> ir.Value | None:
    wide = shape_of(op.results[0])
    value = op.operands[0]
    if not is_vector(value) or len(wide) != 2:
        return None
    narrow = shape_of(value)
    narrow = (*[1] * (2 - len(narrow)), *narrow)
    value = _cast(value, narrow)
    dims = [i for i in range(2) if narrow[i] != wide[i]]
    for dim in dims:
        narrow = tuple(wide[i] if i == dim else n for i, n in enumerate(narrow))
        kind = with_shape(value.type, narrow)
        value = BroadcastOp(value, (dim,), result=kind, map=attached_map(op) if dim == dims[-1] else None).result
    return value


def _reduction(op: ir.Operation) -> ir.Value | None:
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]))
    source, start = op.operands
    kind = CombiningKind.of(op)
    if dims == (0, 1) and len(shape_of(source)) == 2:
        return _total(kind, source, start)
    if len(dims) != 1 or not is_vector(op.results[0]):
        return None
    shape, (dim,), size = shape_of(source), dims, None
    owner = source.owner
    if len(shape) == 3 and not isinstance(owner, ir.Block) and owner.name == "vector.shape_cast":
        # Each group consists of consecutive elements.
        source, size = owner.operands[0], shape[dim]
        merged = (*shape[: dim - 1], shape[dim - 1] * size, *shape[dim + 1 :])
        if dim == 0 or shape_of(source) != merged:
            return None
        dim, shape = dim - 1, merged
    if len(shape) != 2:
        return None
    left = tuple(n // (size or n) if i == dim else n for i, n in enumerate(shape))
    own = attached_map(op)
    fits = own is not None and own.problem_for(left) is None
    value = ReductionOp(
        kind.value, source, (dim,), result=with_shape(source.type, left), reduction_size=size, map=own if fits else None
    ).result
    return _cast(kind.combine(value, _cast(start, left)), shape_of(op.results[0]))


def _total(kind: CombiningKind, source: ir.Value, start: ir.Value) -> ir.Value:
    """The scalar to which a matrix is reduced."""
    row, one = (1, shape_of(source)[1]), (1, 1)
    line = ReductionOp(kind.value, source, (0,), result=with_shape(source.type, row)).result
    value = ReductionOp(kind.value, line, (1,), result=with_shape(source.type, one)).result
    whole = kind.combine(value, broadcast(start, with_shape(source.type, one)))
    return extract(whole, [0, 0])


_RULES: dict[str, Callable[[ir.Operation], ir.Value | None]] = {
    "vector.transpose": _transpose,
    "vector.broadcast": _broadcast,
    "vector.multi_reduction": _reduction,
}
"""By op name, the function that rewrites an op as ops of XeTile; it returns None if the op is not rewritten."""
