"""The layout of each vector: propagation through a function."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from functools import lru_cache

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects import iree_vector_ext
from xegpu_py.ir import module
from xegpu_py.ir.control_flow import dominates, forwarded, masked_op, terminator
from xegpu_py.ir.element_movement import WHOLE, view_of
from xegpu_py.ir.module import walk
from xegpu_py.layout import LayoutError, NestedLayout, reshape
from xegpu_py.passes.analysis.ir_queries import integers, is_vector, shape_of
from xegpu_py.passes.rewriting.memory_access import Transfer
from xegpu_py.passes.rewriting.rewriter import Rules

# Propagation of layouts through a function, and insertion of conversions between different layouts.

Layouts = dict[ir.Value, NestedLayout]

FREE = ("arith.constant", "vector.step", "vector.create_mask", "vector.constant_mask", "ub.poison")
"""Ops that are cloned for another layout instead of converting their result. They have no vector operands."""


def functions(op: ir.Operation) -> list[ir.Operation]:
    """The functions with bodies in `op`."""
    return [func for func in module.functions(op) if len(func.regions[0].blocks)]


def normal(layout: NestedLayout) -> NestedLayout:
    """The layout with strides of 0 in dimensions of one tile."""
    return layout_of(dims_of(layout)) or layout


def reshaped(layout: NestedLayout, shape: tuple[int, ...]) -> NestedLayout | None:
    """The layout of a cast to another shape; None if lanes would have to exchange elements."""
    try:
        return normal(reshape(layout, shape))
    except LayoutError:
        return None


def is_free(value: ir.Value) -> bool:
    """Whether the op that defines a value can be cloned for another layout."""
    if isinstance(value.owner, ir.Block):
        return False
    owner = value.owner
    return owner.name in FREE or (owner.name == "vector.broadcast" and not is_vector(owner.operands[0]))


Tie = list[tuple[ir.Value, "tuple[ir.Operation, int] | None"]]
"""Values with the same layout: results and block arguments first, with None, then operands, with the use of each."""


def ties(op: ir.Operation) -> Iterator[Tie]:
    """The vectors that a control flow op forwards."""
    found = forwarded(op)
    if op.name == "vector.mask" and len(op.results):
        found = iter([([(terminator(op.regions[0].blocks[0]), 0)], list(op.results))])
    for uses, made in found:
        yield [(v, None) for v in reversed(made)] + [(user.operands[i], (user, i)) for user, i in uses]


class Sweeps:
    """A worklist of numbers, processed in sweeps in ascending or descending order.

    A number that is added ahead of the sweep's position is processed in this sweep, any other one in the next. The
    result is that of sweeps over all numbers, but only the numbers on the list are visited.
    """

    def __init__(self, count: int, *, backward: bool = False) -> None:
        self._sign = -1 if backward else 1
        self._next = {self._sign * i for i in range(count)}
        self._heap: list[int] = []
        self._ahead: set[int] = set()
        self._at: int | None = None

    def add(self, number: int) -> None:
        """Add a number."""
        key = self._sign * number
        if self._at is None or key <= self._at:
            self._next.add(key)
        elif key not in self._ahead:
            self._ahead.add(key)
            heapq.heappush(self._heap, key)

    def sweep(self) -> Iterator[int]:
        """The numbers of one sweep."""
        self._heap, self._ahead, self._next = sorted(self._next), self._next, set()
        while self._heap:
            self._at = heapq.heappop(self._heap)
            self._ahead.discard(self._at)
            yield self._sign * self._at
        self._at = None


class _Flow:
    def __init__(self, func: ir.Operation) -> None:
        self.layouts: Layouts = {}
        self.relations: list[tuple[ir.Operation, list[Slot]]] = []
        self.ties: list[Tie] = []
        self.casts: list[ir.Operation] = []
        for op in walk(func)[1:]:
            if isinstance(op.opview, iree_vector_ext.ToLayoutOp):
                self.layouts[op.results[0]] = normal(op.opview.layout.layout)
            slots = relation(op)
            if slots:
                self.relations.append((op, slots))
            elif op.name == "vector.shape_cast":
                self.casts.append(op)
            self.ties += [t for t in ties(op) if is_vector(t[0][0])]
        self.anchors = [op for op in walk(func) if isinstance(op.opview, iree_vector_ext.ToLayoutOp)]
        self._unread = self.anchors
        self._conversions: dict[tuple[ir.Value, NestedLayout], list[ir.Value]] = {}
        self._mentions: dict[ir.Value, list[tuple[Sweeps, Sweeps, int]]] = {}
        related = [[s.value for s in slots] for _, slots in self.relations]
        tied = [[v for v, _ in tie] for tie in self.ties]
        cast = [[op.operands[0], op.results[0]] for op in self.casts]
        self._related, self._tied, self._cast = (self._sweeps(mentioned) for mentioned in (related, tied, cast))

    def _sweeps(self, mentioned: list[list[ir.Value]]) -> tuple[Sweeps, Sweeps]:
        """Sweeps forward and backward over items; an item is added when a vector that it mentions gets a layout."""
        forward, backward = Sweeps(len(mentioned)), Sweeps(len(mentioned), backward=True)
        for i, values in enumerate(mentioned):
            for value in values:
                self._mentions.setdefault(value, []).append((forward, backward, i))
        return forward, backward

    def _set(self, value: ir.Value, layout: NestedLayout) -> None:
        self.layouts[value] = layout
        for forward, backward, i in self._mentions.get(value, ()):
            forward.add(i)
            backward.add(i)

    def spread(self) -> None:
        """Propagate layouts to a fixed point: forward until nothing changes, then backward, and so on."""
        while True:
            while self._forward():
                pass
            if not self._backward():
                return

    def _forward(self) -> bool:
        found = False
        for i in self._tied[0].sweep():
            found |= self._handed_on(self.ties[i], forward=True)
        for i in self._related[0].sweep():
            _, slots = self.relations[i]
            if any(s.use is None and s.value not in self.layouts for s in slots):
                table = self._table([s for s in slots if s.use])
                found |= self._fill([s for s in slots if s.use is None], table)
        for i in self._cast[0].sweep():
            found |= self._reshaped(self.casts[i].operands[0], self.casts[i].results[0])
        return found

    def _reshaped(self, known: ir.Value, other: ir.Value) -> bool:
        """Propagate a layout through a cast, if there is a layout that keeps all elements in their lanes."""
        if known not in self.layouts or other in self.layouts:
            return False
        layout = reshaped(self.layouts[known], shape_of(other))
        if layout is None:
            return False
        self._set(other, layout)
        return True

    def _backward(self) -> bool:
        found = False
        for op in self._unread:
            if op.operands[0] not in self.layouts:
                self._set(op.operands[0], self.layouts[op.results[0]])
                found = True
        # All operands of anchors have a layout now.
        self._unread = []
        for i in self._related[1].sweep():
            _, slots = self.relations[i]
            if any(s.value not in self.layouts for s in slots):
                found |= self._fill(slots, self._table(slots))
        for i in self._cast[1].sweep():
            found |= self._reshaped(self.casts[i].results[0], self.casts[i].operands[0])
        for i in self._tied[1].sweep():
            found |= self._handed_on(self.ties[i], forward=False)
        return found

    def _handed_on(self, tie: Tie, *, forward: bool) -> bool:
        """Propagate a layout through control flow to results and block arguments, and backward also to operands."""
        layout = next((self.layouts[v] for v, _ in tie if v in self.layouts), None)
        found = False
        for value, use in tie if layout else ():
            if layout and value not in self.layouts and not (forward and use):
                self._set(value, layout)
                found = True
        return found

    def _table(self, slots: list[Slot]) -> dict[int, Dim]:
        """The layout of each iteration dimension: that of the first slot with a layout that has the dimension."""
        table: dict[int, Dim] = {-1: UNIT}
        for slot in slots:
            if slot.value in self.layouts:
                for dim, numbers in zip(slot.dims, dims_of(self.layouts[slot.value])):
                    table.setdefault(dim, numbers)
        return table

    def _fill(self, slots: list[Slot], table: dict[int, Dim]) -> bool:
        found = False
        for slot in slots:
            if slot.value not in self.layouts and all(d in table for d in slot.dims):
                layout = layout_of(tuple([table[d] for d in slot.dims]))
                # A vector without dimensions gets no layout before another vector of the op has one.
                if layout and (slot.dims or len(table) > 1):
                    self._set(slot.value, layout)
                    found = True
        return found

    def settle(self) -> None:
        """Insert conversions where the layout of an operand is not the one that its use needs."""
        for _, slots in self.relations:
            table = self._table(slots)
            for slot in slots:
                if slot.use and slot.value in self.layouts and all(d in table for d in slot.dims):
                    wanted = layout_of(tuple([table[d] for d in slot.dims]))
                    if wanted:
                        self._need(slot.use, wanted)
        for cast in self.casts:
            if is_free(cast.operands[0]) and cast.results[0] in self.layouts:
                wanted = reshaped(self.layouts[cast.results[0]], shape_of(cast.operands[0]))
                if wanted:
                    self._need((cast, 0), wanted)
        for tie in self.ties:
            for _, use in tie:
                if use and tie[0][0] in self.layouts:
                    self._need(use, self.layouts[tie[0][0]])
        for op in self.anchors:
            if is_free(op.operands[0]):
                self._need((op, 0), self.layouts[op.results[0]])

    def _need(self, use: tuple[ir.Operation, int], wanted: NestedLayout) -> None:
        op, index = use
        value = op.operands[index]
        layout = self.layouts.get(value)
        if layout is None or layout == wanted:
            return
        # Inside a vector.mask there is only the masked op.
        parent = op.parent
        before = parent if parent is not None and parent.name == "vector.mask" else op
        earlier = self._conversions.setdefault((value, wanted), [])
        made = next((m for m in earlier if dominates(m.owner.operation, before)), None)
        if made is None:
            with ir.InsertionPoint(before), op.location:
                if is_free(value):
                    made = value.owner.clone().results[0]
                else:
                    attribute = iree_vector_ext.NestedLayoutAttr.of(wanted)
                    made = iree_vector_ext.ToLayoutOp(value, attribute, output=value.type).operation.results[0]
                    earlier.append(made)
            self.layouts[made] = wanted
        op.operands[index] = made


def analyze(func: ir.Operation) -> Layouts:
    """Insert conversions into a function, and return the layouts of its vectors."""
    flow = _Flow(func)
    flow.spread()
    flow.settle()
    return flow.layouts


def write(func: ir.Operation, layouts: Layouts) -> None:
    """Write the layouts to attributes of the ops."""
    for op in walk(func)[1:]:
        found = [layouts.get(r) for r in op.results]
        if any(found):
            attributes = [iree_vector_ext.NestedLayoutAttr.of(f).to_ir() if f else ir.UnitAttr.get() for f in found]
            op.attributes[LAYOUTS] = ir.ArrayAttr.get(attributes)


# Relations between the layouts of an op's operands and results.
#
# An op has a space of iteration dimensions, and each dimension of its vectors is one of them. Vectors that share an
# iteration dimension have the same layout in it.

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

_RELATIONS: Rules[Relation] = Rules()
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


@_RELATIONS(*WHOLE)
def _rearranged(op: ir.Operation) -> list[Slot]:
    view = view_of(op)
    return [*_made(op), *([_used(op, 0, view.dims)] if view and is_vector(op.operands[0]) else [])]


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


LAYOUTS = "iree_vector_ext.layouts"
"""Attribute of an op: the layouts of its results, `unit` for those without."""
