"""Values that control flow forwards: operands and yielded values become block arguments and results."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from mlir import ir

from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.definition import FUNCTIONS

STRUCTURED = ("scf.for", "scf.while", "scf.if", "scf.index_switch", "scf.execute_region")
"""Ops whose regions forward values."""

FIXED_OPERANDS = {"scf.for": 3, "scf.while": 0}
"""The number of operands before the carried ones of a loop; other structured ops carry no operands."""

Use = tuple[ir.Operation, int]
"""An op, and the number of its operand."""


def terminator(block: ir.Block) -> ir.Operation:
    """The last op of a block."""
    operations = block.operations
    return operations[len(operations) - 1].operation


def yielded(block: ir.Block) -> list[ir.Value]:
    """The operands of a block's terminator."""
    return list(terminator(block).operands)


def masked_op(op: ir.Operation) -> ir.Operation | None:
    """The op inside a `vector.mask`; None if it is empty."""
    masked_ops = [o.operation for o in op.regions[0].blocks[0] if o.operation.name != "vector.yield"]
    return masked_ops[0] if masked_ops else None


def successor_operands(op: ir.Operation) -> list[tuple[ir.Block, range]]:
    """Return, for each successor of a terminator of `cf`, the numbers of the operands that become its arguments."""
    successors = list(op.successors)
    if not successors:
        return []
    sizes = [len(op.operands)]
    if op.name == "cf.cond_br":
        sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[1:]
    elif op.name == "cf.switch":
        default = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[1]
        sizes = [default, *ir.DenseI32ArrayAttr(op.attributes["case_operand_segments"])]
    operand_ranges, first_operand = [], len(op.operands) - sum(sizes)
    for block, size in zip(successors, sizes, strict=True):
        operand_ranges.append((block, range(first_operand, first_operand + size)))
        first_operand += size
    return operand_ranges


def forwarded(op: ir.Operation) -> Iterator[tuple[list[Use], list[ir.Value]]]:
    """The values that an op of control flow forwards.

    Yields:
        The uses of forwarded values, and the arguments and results that they become. For a terminator of `cf`, one
        pair for each argument of each successor.
    """
    name = op.name
    if name == "scf.for":
        block = op.regions[0].blocks[0]
        arguments, yield_op = list(block.arguments)[1:], terminator(block)
        for i, (argument, result) in enumerate(zip(arguments, op.results, strict=True)):
            yield [(op, 3 + i), (yield_op, i)], [argument, result]
    elif name == "scf.while":
        before_block, after_block = (r.blocks[0] for r in op.regions)
        exits = terminator(before_block), terminator(after_block)
        for i, argument in enumerate(before_block.arguments):
            yield [(op, i), (exits[1], i)], [argument]
        for i, (argument, result) in enumerate(zip(after_block.arguments, op.results, strict=True)):
            yield [(exits[0], 1 + i)], [argument, result]
    elif name in STRUCTURED:
        terminators = [terminator(block) for block in blocks_in(op)]
        terminators = [yield_op for yield_op in terminators if yield_op.name == "scf.yield"]
        for i, result in enumerate(op.results):
            yield [(yield_op, i) for yield_op in terminators], [result]
    elif name.startswith("cf."):
        for block, numbers in successor_operands(op):
            for argument, number in zip(block.arguments, numbers, strict=True):
                yield [(op, number)], [argument]


def forwarded_groups(op: ir.Operation) -> list[list[ir.Value]]:
    """Groups of values that an op forwards to each other: the forwarded values, arguments and results."""
    return [[*(user.operands[n] for user, n in uses), *to] for uses, to in forwarded(op)]


def carried(op: ir.Operation) -> list[list[ir.Value]]:
    """`forwarded_groups` of a structured op; none of others."""
    return forwarded_groups(op) if op.name in STRUCTURED else []


def sources(value: ir.Value) -> list[ir.Value] | None:
    """The values that control flow may forward to this one; None if no control flow defines it."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        parent = owner.owner
        if parent is None:
            return None
        op = parent.operation
        if len(op.regions) and len(op.regions[0].blocks) > 1 and owner != op.regions[0].blocks[0]:
            terminators = [terminator(b) for b in op.regions[0].blocks]
            return [
                u.operands[n]
                for yield_op in terminators
                for uses, to in forwarded(yield_op)
                if value in to
                for u, n in uses
            ]
    else:
        op = owner.operation
    if op.name not in STRUCTURED:
        return None
    for uses, to in forwarded(op):
        if value in to:
            return [user.operands[number] for user, number in uses]
    return None


def ancestor_in(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The op, or the one around it, that is in a block of the same function; None if there is none."""
    at: ir.Operation | None = op
    while at is not None and at.name not in FUNCTIONS:
        if at.block == block:
            return at
        at = at.parent.operation if at.parent is not None else None
    return None


def dominates(op: ir.Operation, later: ir.Operation) -> bool:
    """Whether an op is before another op, or before an ancestor of it, in the same block."""
    at = ancestor_in(later, op.block)
    return at is not None and bool(op.is_before_in_block(at))


# Classes of values.

T = TypeVar("T", bound=Hashable)


class UnionFind(Generic[T]):
    """Disjoint sets of items; an item that was never joined is in a set of its own."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def find(self, item: T) -> T:
        """The representative of an item's set."""
        parent = self._parent
        root, hops = item, 0
        while (parent_item := parent.get(root)) is not None:
            root, hops = parent_item, hops + 1
        # Items whose parent is not the representative get it as their parent.
        for _ in range(hops - 1):
            parent[item], item = root, parent[item]
        return root

    def join(self, items: Iterable[T]) -> None:
        """Join the sets of these items; the representative is that of the first item."""
        first_item, *other_items = items
        root = self.find(first_item)
        for item in other_items:
            other = self.find(item)
            if other != root:
                self._parent[other] = root
