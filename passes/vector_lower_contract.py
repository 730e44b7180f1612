"""`vector-lower-contract`: contractions, outer products, scans, masks and compressing accesses become simpler ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir

from xegpu_py.ir.builtin import CombiningKind
from xegpu_py.ir.control_flow import masked_op, yielded
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Contents, Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import attributes_of, chosen_kernels, element_of, integers, shape_of
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.memory_access import Transfer

_PRODUCTS = ("vector.contract", "vector.outerproduct")


@register_pass("vector-lower-contract")
class VectorLowerContract(Pass):
    """Lower contractions, outer products and scans.

    Contractions, outer products, scans and compressing accesses in kernels become simpler ops of the dialect vector.
    Scans combine the slices along their dimension one after the other. vector.compressstore becomes vector.scatter, and
    vector.expandload vector.gather: an element's index is the number of set mask bits before it.

    vector.contract becomes one step for each index of its reduced dimensions, in row-major order. vector.outerproduct
    has no reduced dimensions and becomes one step. Floats are added by fma, with one rounding for each product;
    operands narrower than the accumulator are extended before. Products that a vector.mask leaves out are not added.
    Transfers and gathers under a vector.mask take it as an operand, and reductions combine the identity in its place.

        %c = vector.contract {... matmul ...} %a, %b, %z : vector<8x2xf32>, vector<2x16xf32> into vector<8x16xf32>

    becomes

        %a0 = vector.extract_strided_slice %a {offsets = [0, 0], sizes = [8, 1]} : vector<8x2xf32> to vector<8x1xf32>
        %b0 = vector.extract %b[0] : vector<16xf32> from vector<2x16xf32>
        %c0 = math.fma %a0_broadcast, %b0_broadcast, %z : vector<8x16xf32>
        %c = math.fma %a1_broadcast, %b1_broadcast, %c0 : vector<8x16xf32>
    """

    kernel: str = ""

    def concerns(self, contents: Contents) -> bool:
        return not contents.names.isdisjoint((*_PRODUCTS, *_REWRITES))

    def run(self, op: ir.Operation) -> None:
        for func in chosen_kernels(op, self.kernel):
            ops = walk(func)
            contracts = [o for o in ops if o.name in _PRODUCTS]
            for contract in contracts:
                parent = contract.parent
                masked = parent is not None and parent.name == "vector.mask"
                outer = parent.operation if parent is not None and masked else contract
                with contract.location, ir.InsertionPoint(outer):
                    build.replace_op(outer, self._lowered(contract, outer if masked else None))
            for other in [o for o in (walk(func) if contracts else ops) if o.name in _REWRITES]:
                with other.location, ir.InsertionPoint(other):
                    build.replace_op(other, *_REWRITES[other.name](other))

    def _lowered(self, op: ir.Operation, outer: ir.Operation | None) -> ir.Value:
        maps = _maps(op)
        lhs, rhs, *acc = op.operands
        result = op.results[0].type
        element = element_of(result)
        result_map = maps[2]
        reduced = sorted({d for m in maps[:2] for d in m} - set(result_map))
        sizes = {d: n for m, v in zip(maps, (lhs, rhs)) for d, n in zip(m, shape_of(v))}
        kind = CombiningKind.of(op) if "kind" in op.attributes else CombiningKind.ADD
        is_float = isinstance(element, ir.FloatType)
        combine = kind.scalar_op(element)
        assert combine
        sides = [_Side(m, v, reduced, result_map, sizes, element) for m, v in zip(maps, (lhs, rhs))]
        flags = None
        if outer is not None:
            # A mask has all iteration dimensions.
            flags = _Side(list(range(len(sizes))), outer.operands[0], reduced, result_map, sizes, build.integer_type(1))
        total = acc[0] if acc else None
        for position in np.ndindex(*(sizes[d] for d in reduced)):
            at = [int(p) for p in position]
            a, b = (side.at(at) for side in sides)
            if is_float and kind == CombiningKind.ADD and total is not None:
                fused = build.make("math.fma", result, a, b, total)
            else:
                product = build.make("arith.mulf" if is_float else "arith.muli", result, a, b)
                fused = build.make(combine, result, total, product) if total is not None else product
            # Without an accumulator, what a mask leaves out is undefined.
            total = build.select(flags.at(at), fused, total) if flags and total is not None else fused
        assert total is not None
        return total


class _Side:
    """An operand with its reduced dimensions outermost.

    Attributes:
        own: dimensions that the operand shares with the result, in the result's order.
    """

    def __init__(
        self,
        dimensions: list[int],
        value: ir.Value,
        reduced: list[int],
        kept: list[int],
        sizes: dict[int, int],
        element: ir.Type,
    ) -> None:
        self._reduced = [d for d in reduced if d in dimensions]
        self._index = [reduced.index(d) for d in self._reduced]
        self._own = [d for d in kept if d in dimensions]
        self._kept, self._sizes, self._element = kept, sizes, element
        if element_of(value) != element:
            extend = "arith.extf" if isinstance(element, ir.FloatType) else "arith.extsi"
            value = build.make(extend, build.with_element(value.type, element), value)
        # A matrix whose columns are reduced need not be transposed.
        self._by_columns = dimensions == [*self._own, *self._reduced] and len(self._own) == len(self._reduced) == 1
        self._value = value
        if not self._by_columns:
            self._value = build.transpose(value, [dimensions.index(d) for d in (*self._reduced, *self._own)])

    def at(self, position: Sequence[int]) -> ir.Value:
        """The elements at a place along the reduced dimensions, in the shape of the result."""
        own_sizes = [self._sizes[d] for d in self._own]
        index = [position[i] for i in self._index]
        if self._by_columns:
            part = build.extract_slice(self._value, [0, *index], [*own_sizes, 1])
        else:
            part = build.extract(self._value, index)
        shape = [self._sizes[d] for d in self._kept]
        if own_sizes == shape:
            return build.shape_cast(part, shape)
        if own_sizes:
            part = build.shape_cast(part, [self._sizes[d] if d in self._own else 1 for d in self._kept])
        return build.broadcast(part, build.vector_type(shape, self._element))


def _maps(op: ir.Operation) -> list[list[int]]:
    """The iteration dimensions of both factors and of the result."""
    if op.name == "vector.contract":
        maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
        return [[e.position for e in m.results] for m in maps]
    # The second factor of a result of one dimension is a scalar.
    rank = len(shape_of(op.results[0]))
    return [[0], list(range(1, rank)), list(range(rank))]


def _scan(op: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """The slices along a dimension, each combined with what is before it; and the last one."""
    value, first = op.operands
    dim, inclusive = ir.IntegerAttr(op.attributes["reduction_dim"]).value, ir.BoolAttr(op.attributes["inclusive"]).value
    shape, kind = shape_of(value), CombiningKind.of(op)
    size = [1 if d == dim else n for d, n in enumerate(shape)]
    result = build.zero(value.type)
    last = build.shape_cast(first, size)
    for position in range(shape[dim]):
        at = [position if d == dim else 0 for d in range(len(shape))]
        if inclusive:
            here = build.extract_slice(value, at, size)
            last = kind.combine(last, here) if position else here
        elif position:
            last = kind.combine(last, build.extract_slice(value, [max(n - 1, 0) for n in at], size))
        result = build.insert_slice(last, result, at)
    return result, last if last.type == first.type else build.make("vector.shape_cast", first.type, last)


def _places(mask: ir.Value) -> ir.Value:
    """The number of set bits before each bit of a mask, in i32."""
    (count,) = shape_of(mask)
    flags = build.make("arith.extui", build.with_element(mask.type, build.integer_type(32)), mask)
    total, none = flags, build.zero(flags.type)
    by = 1
    while by < count:
        shifted = build.shuffle(total, none, [i - by if i >= by else count for i in range(count)])
        total, by = build.binary("addi", total, shifted), 2 * by
    return build.binary("subi", total, flags)


def _compress(op: ir.Operation) -> tuple[()]:
    """Write the elements that the mask chooses, one behind the other."""
    memref, *indices, mask, value = op.operands
    build.create("vector.scatter", [], [memref, *indices, _places(mask), mask, value])
    return ()


def _expand(op: ir.Operation) -> tuple[ir.Value]:
    """Read consecutive elements to where the mask is set."""
    memref, *indices, mask, otherwise = op.operands
    return (build.make("vector.gather", op.results[0].type, memref, *indices, _places(mask), mask, otherwise),)


def _unmasked(op: ir.Operation) -> tuple[ir.Value, ...]:
    """The op below a vector.mask, as one that takes the mask as an operand, or combines only what the mask selects."""
    mask, *passed = op.operands
    inner = masked_op(op)
    if inner is None:
        values = yielded(op.regions[0].blocks[0])
    elif inner.name in ("vector.transfer_read", "vector.transfer_write"):
        sizes = [*integers(inner.attributes["operandSegmentSizes"])[:-1], 1]
        attributes = {**attributes_of(inner), "operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes)}
        kinds = [r.type for r in inner.results]
        values = list(ir.Operation.create(inner.name, kinds, [*inner.operands, mask], attributes).results)
    elif inner.name == "vector.gather":
        *operands, inner_mask, otherwise = inner.operands
        both = build.make("arith.andi", mask.type, inner_mask, mask)
        values = list(build.create_like(inner, [inner.results[0].type], [*operands, both, otherwise]).results)
    else:
        # A reduction: contractions and outer products are lowered before, and no other op can be masked.
        source, *rest = inner.operands
        identity = build.constant(source.type, CombiningKind.of(inner).identity(element_of(source)))
        selected = build.select(mask, source, identity)
        values = list(build.create_like(inner, [inner.results[0].type], [selected, *rest]).results)
    if passed:
        is_read = inner is not None and inner.name == "vector.transfer_read"
        order = Transfer(inner).mask_dims if is_read else []
        if shape_of(values[0]) != shape_of(mask) or order != sorted(order):
            emit_error(op, "cannot be lowered because the mask does not have the dimensions of the pass-through value")
        values = [build.select(mask, values[0], passed[0])]
    return tuple(values)


_REWRITES: dict[str, Callable[[ir.Operation], tuple[ir.Value, ...]]] = {
    "vector.scan": _scan,
    "vector.compressstore": _compress,
    "vector.expandload": _expand,
    "vector.mask": _unmasked,
}
