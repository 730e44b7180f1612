"""Sinks loads to the products that need them, which reduces register pressure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from mlir import ir

from xegpu_py.dialects.xegpu.interfaces import Prefetch
from xegpu_py.ir.operation import implements
from xegpu_py.passes.common.ops import only_reads
from xegpu_py.passes.common.values import defining_op
from xegpu_py.passes.xegpu_legalize.plan import VIEWS

Slab = tuple[ir.Operation, list[ir.Value]]
"""The first of the products of a slab, and the factors of all."""


def sink(slabs: Sequence[Slab]) -> None:
    """Move loads that only their slab and later ones use to the start of their slab."""
    blocks: dict[ir.Block, list[Slab]] = {}
    for start, factors in slabs:
        blocks.setdefault(start.block, []).append((start, factors))
    for block, found in blocks.items():
        ops = [op.operation for op in block.operations]
        place: dict[ir.Operation, int] = {op: i for i, op in enumerate(ops)}
        barred = [0, *accumulate(not (only_reads(op) or implements(op, Prefetch)) for op in ops)]
        for start, factors in found:
            for load in dict.fromkeys(_load(v) for v in factors):
                if load is None or load not in place or place[load] >= place[start]:
                    continue
                users = _users(load, place)
                if users is None or barred[place[load]] != barred[place[start]]:
                    continue
                views = [op for op in users if op.name in VIEWS]
                if any(place[op] < place[start] and op not in views for op in users):
                    continue
                for op in (load, *sorted(views, key=place.__getitem__)):
                    if place[op] < place[start]:
                        op.move_before(start)
                        place[op] = place[start]


def _load(value: ir.Value) -> ir.Operation | None:
    """The block load that a value is a part of."""
    op = defining_op(value)
    while op is not None and op.name in VIEWS and op.operands:
        op = defining_op(op.operands[0])
    return op if op is not None and op.name == "xegpu.load_nd" else None


def _users(op: ir.Operation, place: dict[ir.Operation, int]) -> list[ir.Operation] | None:
    """The ops of a block that use an op's results or views of them; None if ops of other blocks do."""
    found: dict[ir.Operation, None] = {}
    for use in (use for result in op.results for use in result.uses):
        user = use.owner.operation
        if user not in place:
            return None
        found[user] = None
        if user.name in VIEWS:
            inner = _users(user, place)
            if inner is None:
                return None
            found.update(dict.fromkeys(inner))
    return list(found)
