"""Reductions and contractions: first within a lane, then across lanes by shuffles, then across subgroups in memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from mlir import ir

from xegpu_py.ir.combining import CombiningKind
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.layout import NestedLayout
from xegpu_py.passes.common.builders import (
    Index,
    add,
    constant,
    create,
    extract,
    from_elements,
    like,
    make,
    multiply,
    shape_cast,
)
from xegpu_py.passes.common.layouts.relations import map_of
from xegpu_py.passes.common.values import attributes_of, element_of, integers, shape_of
from xegpu_py.passes.vector_distribute.accesses import scalars_through_memory, through_memory
from xegpu_py.passes.vector_distribute.distributor import Distributor, pattern
from xegpu_py.passes.vector_distribute.lanes import shuffled


class Reduction:
    """A reduction over some dimensions of a layout.

    Attributes:
        kind: the combining operation.
        layout: the layout of the operand.
        dims: the reduced dimensions.
        kept: the layout of the result.
    """

    def __init__(
        self,
        d: Distributor,
        op: ir.Operation,
        layout: NestedLayout,
        dims: Sequence[int],
        element: ir.Type,
        kept: NestedLayout | None = None,
    ) -> None:
        self.d, self.op, self.layout, self.dims = d, op, layout, list(dims)
        self.kind = CombiningKind.of(op)
        self.kept = kept or layout.project([i for i in range(layout.rank) if i not in self.dims])
        self._name = self.kind.scalar_op(element)
        self._fastmath = {"fastmath": op.attributes["fastmath"]} if "fastmath" in op.attributes else {}
        self.element = element

    @property
    def is_local(self) -> bool:
        """Whether each lane has all elements that it reduces."""
        return all(self.layout.thread_tile[i] == self.layout.subgroup_tile[i] == 1 for i in self.dims)

    def combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Combine two partial results."""
        return make(self._name, a.type, a, b, **(self._fastmath if self._name.endswith("f") else {}))

    def identity(self, kind: ir.Type) -> ir.Value:
        """The identity of a vector or scalar type."""
        return constant(kind, self.kind.identity(self.element))

    def finish(self, partial: ir.Value) -> ir.Value:
        """The result in all lanes, from each lane's partial result."""
        for i in self.dims:
            partial = self._over_lanes(partial, i)
        return self._over_subgroups(partial)

    def _over_lanes(self, partial: ir.Value, dim: int) -> ir.Value:
        n, stride = self.layout.thread_tile[dim], self.layout.thread_strides[dim]
        if n == 1:
            return partial
        if n & (n - 1) or stride & (stride - 1):
            emit_error(
                self.op,
                f"cannot be distributed because dimension {dim} is over {n} lanes with a stride of {stride}",
                "a reduction over lanes requires their number and stride to be powers of two",
            )
        for k in range(n.bit_length() - 1):
            partial = self.combine(partial, self._shuffled(partial, stride << k))
        return partial

    def _shuffled(self, value: ir.Value, offset: int) -> ir.Value:
        """The value of the lane whose number differs in these bits."""
        bits = constant(ir.IntegerType.get_signless(32), offset)
        if not isinstance(value.type, ir.VectorType):
            return shuffled(self.d, value, "xor", bits)
        positions = itertools.product(*map(range, shape_of(value)))
        found = [shuffled(self.d, extract(value, position), "xor", bits) for position in positions]
        return from_elements(found, shape_of(value))

    def _over_subgroups(self, partial: ir.Value) -> ir.Value:
        d, layout = self.d, self.layout
        number: Index = 0
        count = 1
        for i in self.dims:
            n = layout.subgroup_tile[i]
            own, _ = d.virtual_ids(layout, i)
            number = add(multiply(number, n), own)
            count *= n
        if count == 1:
            return partial
        if isinstance(partial.type, ir.VectorType):
            total, *others = through_memory(d, partial, self.kept, self.kept, (count, number))
        else:
            total, *others = scalars_through_memory(d, partial, count, number)
        for other in others:
            total = self.combine(total, other)
        return total


def multi_reduced(d: Distributor, op: ir.Operation, source: ir.Value | None = None) -> ir.Value:
    """A lane's part of a `vector.multi_reduction`; `part` replaces the operand's part if given."""
    layout = d.layout(op, op.operands[0])
    dims, n = integers(op.attributes["reduction_dims"]), layout.rank
    if op.operands[1] not in d.layouts and isinstance(op.operands[1].type, ir.VectorType):
        d.layout(op, op.operands[1])
    acc = d.part(op.operands[1])
    found = Reduction(d, op, layout, dims, element_of(op.operands[0]))
    start = acc if found.is_local else found.identity(acc.type)
    attributes = {
        "kind": op.attributes["kind"],
        "reduction_dims": ir.DenseI64ArrayAttr.get([level * n + i for level in range(3) for i in dims]),
    }
    part = d.part(op.operands[0]) if source is None else source
    partial = make("vector.multi_reduction", acc.type, part, start, **attributes)
    return partial if found.is_local else found.combine(found.finish(partial), acc)


@pattern("vector.multi_reduction")
def multi_reduction(d: Distributor, op: ir.Operation) -> None:
    """Reduce within the lane, then across lanes and subgroups, then add the accumulator."""
    d.replace_parts(op, multi_reduced(d, op))


def reduced(d: Distributor, op: ir.Operation, source: ir.Value | None = None) -> ir.Value:
    """The result of a `vector.reduction`; `part` replaces the operand's part if given."""
    vector = op.operands[0]
    layout = d.layout(op, vector)
    part = d.part(vector) if source is None else source
    found = Reduction(d, op, layout, [0], element_of(vector))
    flat = shape_cast(part, [math.prod(layout.distributed_shape)])
    partial = like(op, [found.element], [flat]).results[0]
    total = found.finish(partial)
    return found.combine(total, op.operands[1]) if len(op.operands) > 1 else total


@pattern("vector.reduction")
def reduction(d: Distributor, op: ir.Operation) -> None:
    """A reduction to a scalar, which is the same in all lanes."""
    d.replace_parts(op, reduced(d, op))


def contracted(d: Distributor, op: ir.Operation, mask: ir.Value | None = None) -> ir.Value:
    """Contract the parts; batches, outers and elements are separate iteration dimensions.

    Args:
        mask: a lane's part of a mask over the iteration dimensions.
    """
    maps = [map_of(a) for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    iterators = list(ir.ArrayAttr(op.attributes["iterator_types"]))
    n = len(iterators)
    reduced = [i for i, kind in enumerate(iterators) if "reduction" in str(kind)]
    lhs = d.layout(op, op.operands[0])
    d.layout(op, op.operands[1])
    if isinstance(op.operands[2].type, ir.VectorType):
        d.layout(op, op.operands[2])
    for i in reduced:
        if i not in maps[0] or i not in maps[1]:
            emit_error(op, "cannot be distributed", f"only one of its operands has the reduced dimension {i}")
    acc = d.part(op.operands[2])
    dims = [maps[0].index(i) for i in reduced]
    found = Reduction(d, op, lhs, dims, element_of(op.results[0]), d.layouts.get(op.results[0]))
    names = ", ".join(f"d{i}" for i in range(3 * n))

    def tripled(dims: Sequence[int]) -> str:
        return f"affine_map<({names}) -> ({', '.join(f'd{level * n + i}' for level in range(3) for i in dims)})>"

    attributes = {
        **attributes_of(op),
        "indexing_maps": ir.Attribute.parse(f"[{', '.join(map(tripled, maps))}]"),
        "iterator_types": ir.ArrayAttr.get(iterators * 3),
    }
    start = acc if found.is_local else found.identity(acc.type)
    operands = [d.part(op.operands[0]), d.part(op.operands[1]), start]
    partial = make("vector.contract", acc.type, *operands, **attributes)
    if mask is not None:
        partial = _under(mask, partial)
    return partial if found.is_local else found.combine(found.finish(partial), acc)


def _under(mask: ir.Value, made: ir.Value) -> ir.Value:
    """Put the op that defines a value into a `vector.mask`."""
    outer = create("vector.mask", [made.type], [mask], regions=1)
    block = outer.regions[0].blocks.append()
    made.owner.move_before(outer)
    block.append(made.owner)
    with ir.InsertionPoint(block):
        create("vector.yield", [], [made])
    return outer.results[0]


@pattern("vector.contract")
def contract(d: Distributor, op: ir.Operation) -> None:
    """Contract within the lane, then reduce across lanes and subgroups, then add the accumulator."""
    d.replace_parts(op, contracted(d, op))
