"""Descriptors that loops and branches pass on, before kernels are exported: their offsets are passed on instead.

Upstream's passes lower descriptors that are created without offsets and used by ops that have offset operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects import xegpu as ours
from xegpu_py.passes.common.builders import add, index, index_type
from xegpu_py.passes.common.control_flow import forwarded_groups
from xegpu_py.passes.common.conversion import Conversion
from xegpu_py.passes.common.patterns import PatternSet
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.upstream.rebuilding import mixed, parts

pattern: PatternSet[Any] = PatternSet()
_USERS = ("xegpu.load_nd", "xegpu.store_nd", "xegpu.prefetch_nd")


class Places(Conversion):
    """One function, in which descriptors that are all made by one op are passed on as their offsets.

    Attributes:
        bases: the descriptor without offsets, by the class of a descriptor.
    """

    patterns = pattern

    def __init__(self, func: ir.Operation) -> None:
        super().__init__()
        self.bases: dict[ir.Value, ir.Value] = {}
        self._alike: UnionFind[ir.Value] = UnionFind()
        made: dict[ir.Value, int] = {}
        ops = parts(func)
        passed: list[ir.Value] = []
        for op in ops:
            for values in forwarded_groups(op):
                if _is_block(values[-1]):
                    self._alike.join(values)
                    passed += values
            if op.name == "xegpu.update_nd_offset":
                self._alike.join([op.operands[0], op.results[0]])
            elif op.name == "arith.select" and _is_block(op.results[0]):
                self._alike.join([*list(op.operands)[1:], op.results[0]])
                made[self._alike.find(op.results[0])] = 2
        for op in ops:
            if op.name == "xegpu.create_nd_tdesc":
                group = self._alike.find(op.results[0])
                made[group] = made.get(group, 0) + 1
        self._chosen = {g for g in map(self._alike.find, passed) if made.get(g) == 1}

    def group(self, desc: ir.Value) -> ir.Value | None:
        """The class of a descriptor whose offsets are passed on; None for all other values."""
        found = self._alike.find(desc)
        return found if found in self._chosen else None

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> Sequence[ir.Type] | None:
        if not _is_block(value) or self.group(value) is None:
            return None
        return [index_type()] * len(ours.TensorDesc.of(value).shape)

    def at(self, desc: ir.Value) -> ir.Value:
        """A descriptor where it is used."""
        group = self.group(desc)
        if group is None:
            return desc
        base = self.bases[group]
        return ours.UpdateNdOffsetOp(base, list(self.get(desc)), mode=base.owner.opview.mode, result=base.type).result


def _is_block(value: ir.Value) -> bool:
    return str(value.type).startswith("!xegpu.tensor_desc") and not ours.TensorDesc.of(value).attr.scattered


@pattern("xegpu.create_nd_tdesc")
def create(places: Places, op: ir.Operation) -> None:
    """A descriptor without offsets, and its offsets."""
    group = places.group(op.results[0])
    if group is None:
        places.keep(op)
        return
    view: Any = op.opview
    rank = len(view.offsets)
    made = ours.CreateNdTdescOp(
        view.source, [0] * rank, view.shape or None, view.strides or None, tdesc=view.tdesc.type, mode=view.mode
    )
    places.bases[group] = made.tdesc
    places.replace(op, mixed(view.offsets))


@pattern("xegpu.update_nd_offset")
def update(places: Places, op: ir.Operation) -> None:
    """Add to the offsets of a descriptor that is moved."""
    view: Any = op.opview
    if places.group(view.result) is None:
        places.keep(op)
        return
    moved = [index(add(a, b)) for a, b in zip(places.get(view.tdesc), view.offsets, strict=True)]
    places.replace(op, moved)


@pattern(*_USERS)
def access(places: Places, op: ir.Operation) -> None:
    """Apply the op to the descriptor with its offsets."""
    number = 1 if op.name == "xegpu.store_nd" else 0
    op.operands[number] = places.at(op.operands[number])


def pass_offsets(func: ir.Operation) -> None:
    """Let loops and branches of a function pass on offsets in place of descriptors, where these have one origin."""
    places = Places(func)
    for region in func.regions:
        places.region(region)
    places.finish()
