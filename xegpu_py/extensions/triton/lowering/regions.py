"""Rules of ops with regions, and of calls: loops, branches, early returns, functions of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir as mlir
from mlir.dialects import scf
from msgspec import Struct

from xegpu_py.extensions.triton.lowering.lowering import Item, Lowering, Rule, place_of
from xegpu_py.extensions.triton.lowering.types import Kind, kind_of
from xegpu_py.extensions.triton.lowering.values import Descriptor, Pointer, chosen
from xegpu_py.ir.control_flow import yielded
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.tiles import element_types
from xegpu_py.tiles.tile_values import Value
from xegpu_py.tiles.value_base import BUILDING, concatenate, matrix_shape

# SSA values that control flow carries, of which items are made.


class Slot(Struct, frozen=True):
    """How a loop carries a value of TTIR.

    Attributes:
        kind: its type in TTIR.
        is_position: whether it is an integer that is carried as an index.
        like: the pointer or descriptor of whose memory all that is carried is; None for numbers, and for pointers that
            are carried as addresses.
    """

    kind: Kind
    is_position: bool = False
    like: Pointer | Descriptor | None = None

    @property
    def types(self) -> list[mlir.Type]:
        """The types of its SSA values."""
        index = element_types.index
        if isinstance(self.like, Descriptor):
            return [index.vector()] * (1 + 2 * len(self.like.shape))
        if isinstance(self.like, Pointer) or self.is_position:
            dtype = index
        elif self.kind.is_pointer:
            dtype = element_types.int64
        else:
            dtype = self.kind.dtype
        return [dtype.vector(matrix_shape(self.kind.shape))]

    def parts(self, item: Item) -> list[Value] | None:
        """The values of an item; None if it is a pointer to other memory than is carried.

        Raises:
            ValueError: if it is a descriptor of other memory.
        """
        if isinstance(item, Descriptor):
            if not isinstance(self.like, Descriptor) or item.base.memory is not self.like.base.memory:
                raise ValueError("it carries a descriptor of another tensor")
            return [item.base.offsets, *item.shape, *item.strides]
        if isinstance(item, Pointer):
            if self.like is None:
                return [item.addresses()]
            assert isinstance(self.like, Pointer)
            return [item.offsets] if item.memory is self.like.memory else None
        assert isinstance(item, Value)
        return [item.to(element_types.index if self.is_position else self.kind.dtype)]

    def item(self, values: Sequence[mlir.Value]) -> Item:
        """The item of SSA values."""
        index = element_types.index
        if isinstance(self.like, Descriptor):
            first, *rest = (Value(v, index) for v in values)
            count = len(self.like.shape)
            base = Pointer(self.like.base.memory, first, (), self.like.base.element)
            return Descriptor(
                base, tuple(rest[:count]), tuple(rest[count:]), self.like.block, self.like.padding, self.like.is_rounded
            )
        if isinstance(self.like, Pointer):
            index_values = Value(values[0], index, self.kind.shape)
            return Pointer(self.like.memory, index_values, self.kind.shape, self.like.element)
        if self.kind.is_pointer:
            return Pointer.of_addresses(Value(values[0], element_types.int64, self.kind.shape), self.kind)
        dtype = index if self.is_position else self.kind.dtype
        return Value(values[0], dtype, self.kind.shape)


class _OtherMemory(Exception):
    """A loop carries pointers to several arrays, which it has to carry as addresses."""

    def __init__(self, index: int) -> None:
        self.index = index


def _slot(low: Lowering, value: mlir.Value, item: Item, addresses: bool) -> Slot:
    like = item if isinstance(item, (Pointer, Descriptor)) and not addresses else None
    return Slot(kind_of(value), low.is_position(value), like)


def _flat(slots: Sequence[Slot], items: Sequence[Item]) -> list[mlir.Value]:
    """The SSA values of items.

    Raises:
        _OtherMemory: if one is a pointer to other memory.
    """
    values: list[mlir.Value] = []
    for index, (slot, item) in enumerate(zip(slots, items)):
        parts = slot.parts(item)
        if parts is None:
            raise _OtherMemory(index)
        values += [v.ir for v in parts]
    return values


def _items(slots: Sequence[Slot], values: Sequence[mlir.Value]) -> list[Item]:
    """The items of SSA values."""
    items, at = [], 0
    for slot in slots:
        count = len(slot.types)
        items.append(slot.item(list(values)[at : at + count]))
        at += count
    return items


def _until_memory_agrees(build: Callable[[set[int]], list[Item]]) -> list[Item]:
    """Build a loop, again with addresses where it carries pointers to several arrays."""
    addresses: set[int] = set()
    while True:
        try:
            return build(addresses)
        except _OtherMemory as e:
            addresses.add(e.index)


# Loops.


def _for(low: Lowering, op: mlir.Operation) -> list[Item]:
    body = op.regions[0].blocks[0]
    bounds = [_bound(low, v, "unsignedCmp" in op.attributes) for v in list(op.operands)[:3]]
    initial = [low.same(v) for v in list(op.operands)[3:]]
    counter, *carried = body.arguments

    def build(addresses: set[int]) -> list[Item]:
        slots = [_slot(low, v, item, i in addresses) for i, (v, item) in enumerate(zip(carried, initial))]
        loop = scf.ForOp(*(b.ir for b in bounds), _flat(slots, initial))
        try:
            with BUILDING.inside(loop.body), low.scope():
                low.values[counter] = Value(loop.induction_variable, element_types.index)
                low.values |= dict(zip(carried, _items(slots, loop.inner_iter_args)))
                after = [low.same(v) for v in low.block(body)]
                with place_of(op.location):
                    scf.YieldOp(_flat(slots, after))
        except _OtherMemory:
            loop.operation.erase()
            raise
        return _items(slots, loop.results)

    return _until_memory_agrees(build)


def _bound(low: Lowering, value: mlir.Value, is_unsigned: bool) -> Value:
    if not is_unsigned:
        return low.position(value)
    bound = low.value(value)
    return bound.to(element_types.integer_of(bound.dtype.bits, signed=False)).to(element_types.index)


def _while(low: Lowering, op: mlir.Operation) -> list[Item]:
    before, after = (region.blocks[0] for region in op.regions)
    initial = [low.same(v) for v in op.operands]
    passed_on = yielded(before)[1:]

    def build(addresses: set[int]) -> list[Item]:
        slots = [_slot(low, v, item, i in addresses) for i, (v, item) in enumerate(zip(before.arguments, initial))]
        passed = [Slot(kind_of(v), low.is_position(v)) for v in after.arguments]
        values = _flat(slots, initial)
        # Pointers that the condition passes on are to the memory of an argument, whose place is known.
        indices = [list(before.arguments).index(v) if v in list(before.arguments) else None for v in passed_on]
        passed = [
            slots[index] if index is not None and (slot.kind.is_pointer or slot.kind.is_descriptor) else slot
            for slot, index in zip(passed, indices)
        ]
        types = [t for slot in passed for t in slot.types]
        loop = scf.WhileOp(types, values)
        where = mlir.Location.current
        try:
            own = [v.type for v in values]
            block = loop.before.blocks.append(*own, arg_locs=[where] * len(own))
            with BUILDING.inside(block), low.scope():
                low.values |= dict(zip(before.arguments, _items(slots, block.arguments)))
                condition, *operands = low.block(before)
                again = low.value(condition)
                scf.ConditionOp(again.ir, _flat(passed, [low.same(v) for v in operands]))
            block = loop.after.blocks.append(*types, arg_locs=[where] * len(types))
            with BUILDING.inside(block), low.scope():
                low.values |= dict(zip(after.arguments, _items(passed, block.arguments)))
                scf.YieldOp(_flat(slots, [low.same(v) for v in low.block(after)]))
        except _OtherMemory:
            loop.operation.erase()
            raise
        return _items(passed, loop.results)

    return _until_memory_agrees(build)


# Branches.

Side = Callable[[], list[Item]]


def branch(low: Lowering, condition: Value, sides: Sequence[Side]) -> list[Item]:
    """Build both sides of a branch, and give what they give: of several memories pointers as addresses."""
    if condition.shape:
        return _both(low, condition, sides)
    draft = scf.IfOp(condition.ir, has_else=True)
    blocks, branch_results = (draft.then_block, draft.else_block), []
    for block, side in zip(blocks, sides):
        with BUILDING.inside(block), low.scope():
            branch_results.append(side())
    slots, columns = [], [list[Value](), list[Value]()]
    for pair in zip(*branch_results):
        slot = _common_slot(*pair)
        slots.append(slot)
        for block, column, item in zip(blocks, columns, pair):
            with mlir.InsertionPoint(block):
                parts = slot.parts(item)
                assert parts is not None
                column += parts
    if_op = scf.IfOp(condition.ir, [v.ir.type for v in columns[0]], has_else=True)
    for block, draft_block, column in zip((if_op.then_block, if_op.else_block), blocks, columns):
        with mlir.InsertionPoint(block):
            end = scf.YieldOp([v.ir for v in column])
        for inner in list(draft_block.operations):
            inner.operation.move_before(end.operation)
    draft.operation.erase()
    return _items(slots, if_op.results)


def _common_slot(a: Item, b: Item) -> Slot:
    """The slot of what a branch gives on both sides."""
    if isinstance(a, Descriptor):
        return Slot(Kind(a.block, a.base.element, is_descriptor=True), like=a)
    if isinstance(a, Pointer):
        assert isinstance(b, Pointer)
        kind = Kind(a.shape, a.element, is_pointer=True)
        return Slot(kind, like=a if a.memory is b.memory else None)
    assert isinstance(a, Value) and isinstance(b, Value)
    both = a.dtype == b.dtype == element_types.index
    dtype = b.dtype if a.dtype == element_types.index else a.dtype
    return Slot(Kind(a.shape, "i64" if both else dtype.mlir), is_position=both)


def _both(low: Lowering, condition: Value, sides: Sequence[Side]) -> list[Item]:
    """A branch of each element, whose sides only compute: both are computed, and one is chosen."""
    pairs = []
    for side in sides:
        with low.scope():
            pairs.append(side())
    items: list[Item] = []
    for a, b in zip(*pairs):
        assert isinstance(a, Value) and isinstance(b, Value)
        items.append(chosen(condition, a, b.to(a.dtype)))
    return items


def _if(low: Lowering, op: mlir.Operation) -> list[Item]:
    def side(number: int) -> Side:
        def run() -> list[Item]:
            blocks = list(op.regions[number].blocks)
            return [low.same(v) for v in low.block(blocks[0])] if blocks else []

        return run

    return branch(low, low.value(op.operands[0]), [side(0), side(1)])


# Functions.


def function_body(low: Lowering, block: mlir.Block) -> list[Item]:
    """Build a function from a block on; gives its results. The ops after an early return are a side of a branch."""
    for op in block.operations:
        one = op.operation
        if one.name not in ("cf.br", "cf.cond_br"):
            continue
        # The last op of the block.
        low.block_up_to(block, one)
        if one.name == "cf.br":
            target = one.successors[0]
            low.values |= dict(zip(target.arguments, [low.same(v) for v in one.operands]))
            return function_body(low, target)
        condition, counts = low.value(one.operands[0]), [len(s.arguments) for s in one.successors]
        passed = [list(one.operands)[1 : 1 + counts[0]], list(one.operands)[1 + counts[0] :]]

        def side(target: mlir.Block, operands: Sequence[mlir.Value]) -> Side:
            def run() -> list[Item]:
                low.values |= dict(zip(target.arguments, [low.same(v) for v in operands]))
                return function_body(low, target)

            return run

        with place_of(one.location):
            return branch(low, condition, [side(t, v) for t, v in zip(one.successors, passed)])
    return [low.same(v) for v in low.block(block)]


def _call(low: Lowering, op: mlir.Operation) -> list[Item]:
    name = mlir.FlatSymbolRefAttr(op.attributes["callee"]).value
    operands = [low.same(v) for v in op.operands]
    with low.call(op, name) as function, low.scope():
        entry = function.regions[0].blocks[0]
        low.values |= dict(zip(entry.arguments, operands))
        return function_body(low, entry)


def _map(low: Lowering, op: mlir.Operation) -> list[Any]:
    """A function of elements, or of `pack` consecutive elements of the last dimension."""
    view: Any = op.opview
    values, pack = [low.value(v) for v in view.srcs], int(view.pack)
    entry = op.regions[0].blocks[0]
    shape = values[0].shape
    if pack > 1:
        if shape[-1] % pack:
            emit_error(op, f"packs {pack} elements, but the last dimension has {shape[-1]}")
        whole = [v.reshape((*shape[:-1], shape[-1] // pack, pack)) for v in values]
        values = [v[..., i] for v in whole for i in range(pack)]
    outer, low.elementwise = low.elementwise, True
    try:
        with low.scope():
            low.values |= dict(zip(entry.arguments, values))
            results = [_as_value(item) for item in function_body(low, entry)]
    finally:
        low.elementwise = outer
    results = [v.broadcast(values[0].shape) for v in results]
    if pack == 1:
        return results
    groups = [results[i : i + pack] for i in range(0, len(results), pack)]
    last = len(shape)
    return [concatenate([v.expand_dims(last) for v in group], last).reshape(shape) for group in groups]


def _as_value(item: Item) -> Value:
    assert isinstance(item, Value)
    return item


RULES: dict[str, Rule] = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "func.call": _call,
    "tt.call": _call,
    "tt.map_elementwise": _map,
}
"""The rules of ops with regions, by their names."""
