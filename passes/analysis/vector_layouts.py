"""Propagation of IREE's vector layouts through a function."""

from __future__ import annotations

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
from xegpu_py.passes.analysis.sweeps import Sweeps
from xegpu_py.passes.rewriting.memory_access import Transfer
from xegpu_py.passes.rewriting.rewriter import Rules

# Propagation of layouts through a function, and insertion of conversions between different layouts.

Layouts = dict[ir.Value, NestedLayout]

REMATERIALIZABLE = ("arith.constant", "vector.step", "vector.create_mask", "vector.constant_mask", "ub.poison")
"""Ops that are cloned for another layout instead of converting their result. They have no vector operands."""


def functions(op: ir.Operation) -> list[ir.Operation]:
    """The functions with bodies in `op`."""
    return [func for func in module.functions(op) if len(func.regions[0].blocks)]


def canonical(layout: NestedLayout) -> NestedLayout:
    """The canonical form of a layout, whose strides are 0 in dimensions of one tile."""
    return layout_of(dims_of(layout)) or layout


def reshaped(layout: NestedLayout, shape: tuple[int, ...]) -> NestedLayout | None:
    """The layout of a cast to another shape; None if lanes would have to exchange elements."""
    try:
        return canonical(reshape(layout, shape))
    except LayoutError:
        return None


def is_rematerializable(value: ir.Value) -> bool:
    """Return whether the op that defines a value can be cloned for another layout."""
    if isinstance(value.owner, ir.Block):
        return False
    owner = value.owner
    return owner.name in REMATERIALIZABLE or (owner.name == "vector.broadcast" and not is_vector(owner.operands[0]))


Tie = list[tuple[ir.Value, "tuple[ir.Operation, int] | None"]]
"""Values with the same layout: results and block arguments first, with None, then operands, with the use of each."""


def ties(op: ir.Operation) -> Iterator[Tie]:
    """The vectors that a control flow op forwards."""
    groups = forwarded(op)
    if op.name == "vector.mask" and len(op.results):
        groups = iter([([(terminator(op.regions[0].blocks[0]), 0)], list(op.results))])
    for uses, results in groups:
        yield [(v, None) for v in reversed(results)] + [(user.operands[i], (user, i)) for user, i in uses]


class _LayoutPropagation:
    def __init__(self, func: ir.Operation) -> None:
        self.layouts: Layouts = {}
        self.relations: list[tuple[ir.Operation, list[VectorUse]]] = []
        self.ties: list[Tie] = []
        self.casts: list[ir.Operation] = []
        for op in walk(func)[1:]:
            if isinstance(op.opview, iree_vector_ext.ToLayoutOp):
                self.layouts[op.results[0]] = canonical(op.opview.layout.layout)
            slots = relation(op)
            if slots:
                self.relations.append((op, slots))
            elif op.name == "vector.shape_cast":
                self.casts.append(op)
            self.ties += [t for t in ties(op) if is_vector(t[0][0])]
        self.anchors = [op for op in walk(func) if isinstance(op.opview, iree_vector_ext.ToLayoutOp)]
        self._pending_anchors = self.anchors
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

    def propagate(self) -> None:
        """Propagate layouts to a fixed point: forward until nothing changes, then backward, and so on."""
        while True:
            while self._forward():
                pass
            if not self._backward():
                return

    def _forward(self) -> bool:
        changed = False
        for i in self._tied[0].sweep():
            changed |= self._propagate_tie(self.ties[i], forward=True)
        for i in self._related[0].sweep():
            _, slots = self.relations[i]
            if any(s.use is None and s.value not in self.layouts for s in slots):
                table = self._table([s for s in slots if s.use])
                changed |= self._fill([s for s in slots if s.use is None], table)
        for i in self._cast[0].sweep():
            changed |= self._propagate_cast(self.casts[i].operands[0], self.casts[i].results[0])
        return changed

    def _propagate_cast(self, source: ir.Value, target: ir.Value) -> bool:
        """Propagate a layout through a cast, if there is a layout that keeps all elements in their lanes."""
        if source not in self.layouts or target in self.layouts:
            return False
        layout = reshaped(self.layouts[source], shape_of(target))
        if layout is None:
            return False
        self._set(target, layout)
        return True

    def _backward(self) -> bool:
        changed = False
        for op in self._pending_anchors:
            if op.operands[0] not in self.layouts:
                self._set(op.operands[0], self.layouts[op.results[0]])
                changed = True
        # All operands of anchors have a layout now.
        self._pending_anchors = []
        for i in self._related[1].sweep():
            _, slots = self.relations[i]
            if any(s.value not in self.layouts for s in slots):
                changed |= self._fill(slots, self._table(slots))
        for i in self._cast[1].sweep():
            changed |= self._propagate_cast(self.casts[i].results[0], self.casts[i].operands[0])
        for i in self._tied[1].sweep():
            changed |= self._propagate_tie(self.ties[i], forward=False)
        return changed

    def _propagate_tie(self, tie: Tie, *, forward: bool) -> bool:
        """Propagate a layout through control flow to results and block arguments, and backward also to operands."""
        layout = next((self.layouts[v] for v, _ in tie if v in self.layouts), None)
        changed = False
        for value, use in tie if layout else ():
            if layout and value not in self.layouts and not (forward and use):
                self._set(value, layout)
                changed = True
        return changed

    def _table(self, slots: list[VectorUse]) -> dict[int, Dim]:
        """The layout of each iteration dimension: that of the first slot with a layout that has the dimension."""
        table: dict[int, Dim] = {-1: UNIT_DIM}
        for slot in slots:
            if slot.value in self.layouts:
                for dim, numbers in zip(slot.dims, dims_of(self.layouts[slot.value])):
                    table.setdefault(dim, numbers)
        return table

    def _fill(self, slots: list[VectorUse], table: dict[int, Dim]) -> bool:
        changed = False
        for slot in slots:
            if slot.value not in self.layouts and all(d in table for d in slot.dims):
                layout = layout_of(tuple([table[d] for d in slot.dims]))
                # A vector without dimensions gets no layout before another vector of the op has one.
                if layout and (slot.dims or len(table) > 1):
                    self._set(slot.value, layout)
                    changed = True
        return changed

    def insert_conversions(self) -> None:
        """Insert conversions where the layout of an operand is not the one that its use needs."""
        for _, slots in self.relations:
            table = self._table(slots)
            for slot in slots:
                if slot.use and slot.value in self.layouts and all(d in table for d in slot.dims):
                    required = layout_of(tuple([table[d] for d in slot.dims]))
                    if required:
                        self._convert_operand(slot.use, required)
        for cast in self.casts:
            if is_rematerializable(cast.operands[0]) and cast.results[0] in self.layouts:
                required = reshaped(self.layouts[cast.results[0]], shape_of(cast.operands[0]))
                if required:
                    self._convert_operand((cast, 0), required)
        for tie in self.ties:
            for _, use in tie:
                if use and tie[0][0] in self.layouts:
                    self._convert_operand(use, self.layouts[tie[0][0]])
        for op in self.anchors:
            if is_rematerializable(op.operands[0]):
                self._convert_operand((op, 0), self.layouts[op.results[0]])

    def _convert_operand(self, use: tuple[ir.Operation, int], required: NestedLayout) -> None:
        op, index = use
        value = op.operands[index]
        layout = self.layouts.get(value)
        if layout is None or layout == required:
            return
        # Inside a vector.mask there is only the masked op.
        parent = op.parent
        before = parent if parent is not None and parent.name == "vector.mask" else op
        earlier = self._conversions.setdefault((value, required), [])
        conversion = next((m for m in earlier if dominates(m.owner.operation, before)), None)
        if conversion is None:
            with ir.InsertionPoint(before), op.location:
                if is_rematerializable(value):
                    conversion = value.owner.clone().results[0]
                else:
                    attribute = iree_vector_ext.NestedLayoutAttr.of(required)
                    conversion = iree_vector_ext.ToLayoutOp(value, attribute, output=value.type).operation.results[0]
                    earlier.append(conversion)
            self.layouts[conversion] = required
        op.operands[index] = conversion


def infer_layouts(func: ir.Operation) -> Layouts:
    """Insert conversions into a function, and return the layouts of its vectors."""
    flow = _LayoutPropagation(func)
    flow.propagate()
    flow.insert_conversions()
    return flow.layouts


def write_layouts(func: ir.Operation, layouts: Layouts) -> None:
    """Write the layouts to attributes of the ops."""
    for op in walk(func)[1:]:
        result_layouts = [layouts.get(r) for r in op.results]
        if any(result_layouts):
            attributes = [
                iree_vector_ext.NestedLayoutAttr.of(f).to_ir() if f else ir.UnitAttr.get() for f in result_layouts
            ]
            op.attributes[LAYOUTS] = ir.ArrayAttr.get(attributes)


# Relations between the layouts of an op's operands and results.
#
# An op has a space of iteration dimensions, and each dimension of its vectors is one of them. Vectors that share an
# iteration dimension have the same layout in it.

Dim = tuple[int, ...]
"""A layout of one dimension: the five tiles, and both strides."""

UNIT_DIM: Dim = (1, 1, 1, 1, 1, 0, 0)
"""The layout of a dimension of size 1."""


class VectorUse(Struct, frozen=True):
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
    dims: list[Dim] = []
    for numbers in zip(*astuple(layout)):
        *tiles, subgroup, thread = numbers
        dims.append((*tiles, subgroup if tiles[0] > 1 else 0, thread if tiles[3] > 1 else 0))
    return tuple(dims)


@lru_cache(maxsize=4096)
def layout_of(dims: tuple[Dim, ...]) -> NestedLayout | None:
    """The layout of these dimensions; None if their strides are inconsistent."""
    columns = zip(*dims) if dims else [()] * 7
    try:
        return NestedLayout(*(tuple(c) for c in columns))
    except LayoutError:
        return None


Relation = Callable[[ir.Operation], "list[VectorUse] | None"]

_RELATIONS: Rules[Relation] = Rules()
"""The functions that relate an op's vectors, by op name."""


def relation(op: ir.Operation) -> list[VectorUse] | None:
    """The vectors of an op, results first; None if layouts do not propagate through it."""
    rule = _RELATIONS.get(op.name)
    if rule:
        return rule(op)
    return _elementwise(op) if op.name.partition(".")[0] in ("arith", "math") else None


def _all_dims(value: ir.Value) -> tuple[int, ...]:
    return tuple(range(len(shape_of(value))))


def _result_slots(op: ir.Operation) -> Iterator[VectorUse]:
    for result in op.results:
        if is_vector(result):
            yield VectorUse(result, _all_dims(result))


def _operand_slot(op: ir.Operation, index: int, dims: Sequence[int] | None = None) -> VectorUse:
    value = op.operands[index]
    return VectorUse(value, _all_dims(value) if dims is None else tuple(dims), (op, index))


@_RELATIONS("vector.fma", "vector.gather")
def _elementwise(op: ir.Operation) -> list[VectorUse] | None:
    slots = [*_result_slots(op), *(_operand_slot(op, i) for i, v in enumerate(op.operands) if is_vector(v))]
    return slots if len({shape_of(s.value) for s in slots}) == 1 else None


@_RELATIONS("vector.step", "vector.create_mask", "vector.constant_mask", "ub.poison")
def _no_operands(op: ir.Operation) -> list[VectorUse]:
    return list(_result_slots(op))


@_RELATIONS(*WHOLE)
def _rearranged(op: ir.Operation) -> list[VectorUse]:
    view = view_of(op)
    return [*_result_slots(op), *([_operand_slot(op, 0, view.dims)] if view and is_vector(op.operands[0]) else [])]


@_RELATIONS("vector.shape_cast")
def _shape_cast(op: ir.Operation) -> list[VectorUse] | None:
    """Relate the vectors of a cast that adds or drops dimensions of size 1."""
    slots = []
    for value, use in ((op.results[0], None), (op.operands[0], (op, 0))):
        large_dims = [i for i, n in enumerate(shape_of(value)) if n != 1]
        slots.append(
            VectorUse(value, tuple(large_dims.index(i) if i in large_dims else -1 for i in _all_dims(value)), use)
        )
    sizes = [[shape_of(s.value)[i] for i, d in enumerate(s.dims) if d >= 0] for s in slots]
    return slots if sizes[0] == sizes[1] else None


@_RELATIONS("vector.multi_reduction")
def _multi_reduction(op: ir.Operation) -> list[VectorUse]:
    reduced = integers(op.attributes["reduction_dims"])
    remaining = [i for i in _all_dims(op.operands[0]) if i not in reduced]
    slots = [VectorUse(r, tuple(remaining)) for r in op.results if is_vector(r)]
    slots.append(_operand_slot(op, 0))
    return slots + ([_operand_slot(op, 1, remaining)] if is_vector(op.operands[1]) else [])


@_RELATIONS("vector.reduction")
def _reduction(op: ir.Operation) -> list[VectorUse]:
    return [_operand_slot(op, 0)]


def map_of(attribute: ir.Attribute) -> tuple[int, ...]:
    """The dimensions that an affine map's results name; -1 for a constant."""
    return tuple(int(str(e)[1:]) if str(e).startswith("d") else -1 for e in ir.AffineMapAttr(attribute).value.results)


@_RELATIONS("vector.contract")
def _contract(op: ir.Operation) -> list[VectorUse] | None:
    lhs, rhs, acc = (map_of(a) for a in ir.ArrayAttr(op.attributes["indexing_maps"]))
    slots = [VectorUse(r, acc) for r in op.results if is_vector(r)]
    slots += [_operand_slot(op, 2, acc)] if is_vector(op.operands[2]) else []
    return [*slots, _operand_slot(op, 0, lhs), _operand_slot(op, 1, rhs)]


@_RELATIONS("vector.transfer_read", "vector.transfer_write")
def _transfer(op: ir.Operation) -> list[VectorUse]:
    transfer = Transfer(op)
    slots = [_operand_slot(op, 0)] if transfer.padding is None else list(_result_slots(op))
    return slots + ([_operand_slot(op, len(op.operands) - 1, transfer.mask_dims)] if transfer.mask else [])


def masked_over(op: ir.Operation) -> tuple[int, ...] | None:
    """The iteration dimensions of a mask on this op, in the mask's order; None if the op cannot be masked."""
    if op.name.startswith("vector.transfer"):
        return tuple(Transfer(op).mask_dims)
    if op.name in ("vector.multi_reduction", "vector.reduction", "vector.gather"):
        return _all_dims(op.operands[0] if op.name != "vector.gather" else op.results[0])
    if op.name == "vector.contract":
        return tuple(range(len(ir.ArrayAttr(op.attributes["iterator_types"]))))
    return None


@_RELATIONS("vector.mask")
def _mask(op: ir.Operation) -> list[VectorUse] | None:
    inner = masked_op(op)
    slots = relation(inner) if inner else None
    over = masked_over(inner) if inner else None
    if slots is None or over is None:
        return None
    result_dims = [s.dims for s in slots if s.use is None]
    outer_slots = [VectorUse(outer, dims) for outer in op.results for dims in result_dims]
    # The inner op's own relation covers its operands; here they only determine the mask's layout.
    outer_slots += [*(s for s in slots if s.use), _operand_slot(op, 0, over)]
    return outer_slots + [_operand_slot(op, 1, dims) for dims in result_dims if len(op.operands) > 1]


LAYOUTS = "iree_vector_ext.layouts"
"""Attribute of an op: the layouts of its results, `unit` for those without."""
