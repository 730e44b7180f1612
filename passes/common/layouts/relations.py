"""Relations between the layouts of an op's operands and results.

An op has a space of iteration dimensions, and each dimension of its vectors is one of them. Vectors that share an
iteration dimension have the same layout in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from functools import lru_cache

from mlir import ir
from msgspec import Struct

from xegpu_py.layout import LayoutError, NestedLayout
from xegpu_py.passes.common.control_flow import masked_op
from xegpu_py.passes.common.patterns import PatternSet
from xegpu_py.passes.common.transfers import Transfer
from xegpu_py.passes.common.values import integers, is_vector, shape_of

Dim = tuple[int, ...]
"""A layout of one dimension: the five tiles, and both strides."""

UNIT: Dim = (1, 1, 1, 1, 1, 0, 0)
"""The layout of a dimension of size 1."""


class Slot(Struct, frozen=True):
    """A vector that an op uses or defines.

    Attributes:
        value: the vector.
        dims: the iteration dimension of each of its dimensions; -1 for a dimension of size 1 without one.
        use: the op and the number of its operand; None for a result.
    """

    value: ir.Value
    dims: tuple[int, ...]
    use: tuple[ir.Operation, int] | None = None


@lru_cache(maxsize=4096)
def dims_of(layout: NestedLayout) -> tuple[Dim, ...]:
    """A layout's numbers by dimension; the strides of single tiles have no meaning and are 0."""
    found: list[Dim] = []
    for numbers in zip(*astuple(layout)):
        *tiles, subgroup, thread = numbers
        found.append((*tiles, subgroup if tiles[0] > 1 else 0, thread if tiles[3] > 1 else 0))
    return tuple(found)


@lru_cache(maxsize=4096)
def layout_of(dims: tuple[Dim, ...]) -> NestedLayout | None:
    """The layout of these dimensions; None if their strides are inconsistent."""
    columns = zip(*dims) if dims else [()] * 7
    try:
        return NestedLayout(*(tuple(c) for c in columns))
    except LayoutError:
        return None


Relation = Callable[[ir.Operation], "list[Slot] | None"]
_RELATIONS: PatternSet[Relation] = PatternSet()
"""The functions that relate an op's vectors, by op name."""


def relation(op: ir.Operation) -> list[Slot] | None:
    """The vectors of an op, results first; None if layouts do not propagate through it."""
    found = _RELATIONS.get(op.name)
    if found:
        return found(op)
    return _elementwise(op) if op.name.partition(".")[0] in ("arith", "math") else None


def _identity(value: ir.Value) -> tuple[int, ...]:
    return tuple(range(len(shape_of(value))))


def _made(op: ir.Operation) -> Iterator[Slot]:
    for result in op.results:
        if is_vector(result):
            yield Slot(result, _identity(result))


def _used(op: ir.Operation, index: int, dims: Sequence[int] | None = None) -> Slot:
    value = op.operands[index]
    return Slot(value, _identity(value) if dims is None else tuple(dims), (op, index))


@_RELATIONS("vector.fma", "vector.gather")
def _elementwise(op: ir.Operation) -> list[Slot] | None:
    slots = [*_made(op), *(_used(op, i) for i, v in enumerate(op.operands) if is_vector(v))]
    return slots if len({shape_of(s.value) for s in slots}) == 1 else None


@_RELATIONS("vector.step", "vector.create_mask", "vector.constant_mask", "ub.poison")
def _source(op: ir.Operation) -> list[Slot]:
    return list(_made(op))


@_RELATIONS("vector.broadcast")
def _broadcast(op: ir.Operation) -> list[Slot]:
    slots = list(_made(op))
    if is_vector(op.operands[0]):
        given, made = shape_of(op.operands[0]), shape_of(op.results[0])
        lead = len(made) - len(given)
        slots.append(_used(op, 0, [lead + i if n == made[lead + i] else -1 for i, n in enumerate(given)]))
    return slots


@_RELATIONS("vector.transpose")
def _transpose(op: ir.Operation) -> list[Slot]:
    return [Slot(op.results[0], tuple(integers(op.attributes["permutation"]))), _used(op, 0)]


@_RELATIONS("vector.shape_cast")
def _shape_cast(op: ir.Operation) -> list[Slot] | None:
    """Relate the vectors of a cast that adds or drops dimensions of size 1."""
    slots = []
    for value, use in ((op.results[0], None), (op.operands[0], (op, 0))):
        kept = [i for i, n in enumerate(shape_of(value)) if n != 1]
        slots.append(Slot(value, tuple(kept.index(i) if i in kept else -1 for i in _identity(value)), use))
    sizes = [[shape_of(s.value)[i] for i, d in enumerate(s.dims) if d >= 0] for s in slots]
    return slots if sizes[0] == sizes[1] else None


@_RELATIONS("vector.multi_reduction")
def _multi_reduction(op: ir.Operation) -> list[Slot]:
    reduced = integers(op.attributes["reduction_dims"])
    kept = [i for i in _identity(op.operands[0]) if i not in reduced]
    slots = [Slot(r, tuple(kept)) for r in op.results if is_vector(r)]
    slots.append(_used(op, 0))
    return slots + ([_used(op, 1, kept)] if is_vector(op.operands[1]) else [])


@_RELATIONS("vector.reduction")
def _reduction(op: ir.Operation) -> list[Slot]:
    return [_used(op, 0)]


def map_of(attribute: ir.Attribute) -> tuple[int, ...]:
    """The dimensions that an affine map's results name; -1 for a constant."""
    return tuple(int(str(e)[1:]) if str(e).startswith("d") else -1 for e in ir.AffineMapAttr(attribute).value.results)


@_RELATIONS("vector.contract")
def _contract(op: ir.Operation) -> list[Slot] | None:
    lhs, rhs, acc = (map_of(a) for a in ir.ArrayAttr(op.attributes["indexing_maps"]))
    slots = [Slot(r, acc) for r in op.results if is_vector(r)]
    slots += [_used(op, 2, acc)] if is_vector(op.operands[2]) else []
    return [*slots, _used(op, 0, lhs), _used(op, 1, rhs)]


@_RELATIONS("vector.transfer_read", "vector.transfer_write")
def _transfer(op: ir.Operation) -> list[Slot]:
    transfer = Transfer(op)
    slots = [_used(op, 0)] if transfer.padding is None else list(_made(op))
    return slots + ([_used(op, len(op.operands) - 1, transfer.mask_dims)] if transfer.mask else [])


def masked_over(op: ir.Operation) -> tuple[int, ...] | None:
    """The iteration dimensions of a mask on this op, in the mask's order; None if the op cannot be masked."""
    if op.name.startswith("vector.transfer"):
        return tuple(Transfer(op).mask_dims)
    if op.name in ("vector.multi_reduction", "vector.reduction", "vector.gather"):
        return _identity(op.operands[0] if op.name != "vector.gather" else op.results[0])
    if op.name == "vector.contract":
        return tuple(range(len(ir.ArrayAttr(op.attributes["iterator_types"]))))
    return None


@_RELATIONS("vector.mask")
def _mask(op: ir.Operation) -> list[Slot] | None:
    inner = masked_op(op)
    slots = relation(inner) if inner else None
    over = masked_over(inner) if inner else None
    if slots is None or over is None:
        return None
    made = [s.dims for s in slots if s.use is None]
    found = [Slot(outer, dims) for outer in op.results for dims in made]
    # The inner op's own relation covers its operands; here they only determine the mask's layout.
    found += [*(s for s in slots if s.use), _used(op, 0, over)]
    return found + [_used(op, 1, dims) for dims in made if len(op.operands) > 1]
