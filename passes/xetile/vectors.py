"""Facts about ops on vectors and tiles, copies of ops for other shapes, and classes of values with the same map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from xegpu_py.dialects.xetile import ConvertLayoutOp, Tile, TileMmaOp, UpdateTileOffsetOp
from xegpu_py.ir.calls import is_intrinsic, recalled
from xegpu_py.passes.common import values
from xegpu_py.passes.common.builders import constant, create, with_shape
from xegpu_py.passes.common.control_flow import carried
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.passes.common.values import attributes_of, has_one_shape, is_vector


def is_elementwise(op: ir.Operation) -> bool:
    """Whether each element of the results depends only on scalars and the operands' elements at the same position."""
    also = op.name == "xegpu.truncf" or is_intrinsic(op)
    return values.is_elementwise(op) or (also and has_one_shape(op))


def is_splat(op: ir.Operation) -> bool:
    """Whether all elements of the op's vector are equal: a constant, a repeated scalar, or poison."""
    if op.name == "arith.constant" and is_vector(op.results[0]):
        value = op.attributes["value"]
        return isinstance(value, ir.DenseElementsAttr) and value.is_splat
    if op.name == "ub.poison":
        return is_vector(op.results[0])
    return op.name in ("vector.broadcast", "vector.splat") and not is_vector(op.operands[0])


def splat_of(op: ir.Operation, operands: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """A splat of another shape, with new operands."""
    if op.name != "arith.constant":
        return resized(op, operands, shape)[0]
    value = ir.DenseElementsAttr(op.attributes["value"])
    return constant(with_shape(op.results[0].type, shape), value.get_splat_value())


def resized(op: ir.Operation, operands: Sequence[ir.Value], shape: Sequence[int]) -> list[ir.Value]:
    """An elementwise op on vectors of another shape."""
    results = [with_shape(r.type, shape) if is_vector(r) else r.type for r in op.results]
    if is_intrinsic(op):
        return [recalled(op, list(operands), results[0])]
    attributes = {name: value for name, value in attributes_of(op).items() if name != "map"}
    return list(create(op.name, results, operands, attributes).results)


def is_tile_choice(op: ir.Operation) -> bool:
    """Whether an op selects one of two tiles."""
    return op.name == "arith.select" and Tile.accepts(str(op.results[0].type))


def value_classes(ops: Iterable[ir.Operation]) -> UnionFind[ir.Value]:
    """Classes of vectors that elementwise ops and control flow relate, and of tiles that differ only in position."""
    classes: UnionFind[ir.Value] = UnionFind()
    for op in ops:
        for group in carried(op):
            classes.join(group)
        if is_elementwise(op) or (is_splat(op) and op.name != "arith.constant"):
            classes.join(v for v in (*op.operands, *op.results) if is_vector(v))
        elif is_tile_choice(op):
            classes.join([op.results[0], *list(op.operands)[1:]])
        elif isinstance(op.opview, (UpdateTileOffsetOp, ConvertLayoutOp)):
            classes.join([op.operands[0], op.results[0]])
        elif isinstance(op.opview, TileMmaOp) and op.opview.c is not None:
            classes.join([op.opview.c, op.opview.d])
    return classes
