"""Loads that come right before the products that need them, so that fewer registers are in use at a time."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

_MOVABLE = ("xetile.load_tile", "vector.extract_strided_slice")
_HARMLESS = ("arith.", "math.", "vector.", "xetile.load_tile", "xetile.tile_mma", "xetile.init_tile",
             "xetile.update_tile_offset", "xetile.prefetch_tile")  # fmt: skip


@dataclass
class Slab:
    """Products that use what one message of A brings.

    Attributes:
        start: the first of them.
        pieces: all that they multiply.
    """

    start: ir.Operation
    pieces: list[ir.Value]


def sink(slab: Slab) -> None:
    """Move the loads that only this slab and later ones need to where it starts."""
    block = slab.start.block
    order = {op.operation: i for i, op in enumerate(block.operations)}
    position = order[slab.start]
    moved: dict[ir.Operation, None] = {}
    for piece in slab.pieces:
        owner = piece.owner
        if isinstance(owner, ir.Block) or owner.operation.name not in _MOVABLE:
            continue
        chain = [owner.operation]
        source = owner.operation.operands[0].owner
        if chain[0].name != "xetile.load_tile" and not isinstance(source, ir.Block):
            if source.operation.name != "xetile.load_tile":
                continue
            chain.insert(0, source.operation)
        for op in chain:
            moved.setdefault(op)
    loads = [op for op in moved if op.name == "xetile.load_tile" and _can_wait(op, order, position)]
    slices = [op for op in moved if op.name != "xetile.load_tile"]
    # What else is cut from a load that waits must wait too.
    for load in loads:
        slices += [u.owner.operation for u in load.results[0].uses if u.owner.operation not in moved]
    for op in (*loads, *dict.fromkeys(slices)):
        needed = min((order.get(u.owner.operation, -1) for r in op.results for u in r.uses), default=position)
        if op in order and order[op] < position and (op in loads or needed >= position):
            op.move_before(slab.start)


def _can_wait(load: ir.Operation, order: dict[ir.Operation, int], position: int) -> bool:
    """Whether nothing needs a load's value, or writes memory, before a position."""
    if load not in order or order[load] >= position:
        return False
    for use in load.results[0].uses:
        user = use.owner.operation
        if user.name != "vector.extract_strided_slice" or user not in order:
            return False
        for second in user.results[0].uses:
            if order.get(second.owner.operation, -1) < position:
                return False
    between = [op for op, i in order.items() if order[load] < i < position]
    return all(op.name.startswith(_HARMLESS) for op in between)
