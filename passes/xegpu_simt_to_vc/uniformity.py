"""Uniformity analysis: the values that vary among the work items of a subgroup."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from xegpu_py.ir.builtin import enumerator
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.control_flow import FIXED_OPERANDS, STRUCTURED, forwarded, yielded
from xegpu_py.passes.common.fragments import mapped
from xegpu_py.passes.common.values import constant_of

_SOURCES = frozenset(
    (
        "gpu.thread_id",
        "gpu.global_id",
        "gpu.lane_id",
        "gpu.rotate",
        "memref.atomic_rmw",
        "memref.generic_atomic_rmw",
        "xegpu.lane_shuffle",
    )
)
"""Ops whose results vary even if their operands are uniform."""

_UNIFORM = frozenset(("gpu.subgroup_broadcast", "gpu.all_reduce"))
"""Ops whose results are uniform even if their operands vary."""


def lane_of_broadcast(shuffle: ir.Operation, lanes: int) -> int | None:
    """The lane whose value all lanes get from a `gpu.shuffle` in a subgroup of so many lanes; None if it is not one."""
    lane, width = (constant_of(v) for v in list(shuffle.operands)[1:])
    broadcasts = enumerator(shuffle.attributes["mode"]) == "idx" and width == lanes and lane is not None
    return lane if broadcasts and lane in range(lanes) else None


class Uniformity:
    """The values of a kernel that vary from lane to lane.

    A value is uniform if it is the same in all work items of a subgroup that reach its definition. It varies if it
    depends on the work item's position in the subgroup, on a block that is distributed by an `sg_map`, or on a varying
    condition.
    """

    def __init__(self, func: ir.Operation, lanes: int) -> None:
        self._lanes = lanes
        self._varying: set[ir.Value] = set()
        ops = walk(func)[1:]
        known = -1
        while len(self._varying) > known:
            known = len(self._varying)
            for op in ops:
                self._op(op)

    def varies(self, value: ir.Value) -> bool:
        """Whether a value differs from lane to lane."""
        return value in self._varying

    def _any(self, values: Iterable[ir.Value]) -> bool:
        return any(v in self._varying for v in values)

    def _op(self, op: ir.Operation) -> None:
        name = op.name
        if name in STRUCTURED:
            self._control_flow(op)
        elif name in _SOURCES:
            self._varying.update(op.results)
        elif name == "gpu.shuffle":
            if lane_of_broadcast(op, self._lanes) is None:
                self._varying.update(op.results)
        elif name == "gpu.subgroup_reduce":
            if "cluster_size" in op.attributes:
                self._varying.add(op.results[0])
        elif name == "xegpu.load_nd":
            if mapped(op):
                self._varying.add(op.results[0])
        elif name not in _UNIFORM and self._any(op.operands):
            self._varying.update(op.results)

    def diverges(self, op: ir.Operation) -> bool:
        """Whether work items may take different ways through a structured loop or branch."""
        decides = list(op.operands)[: FIXED_OPERANDS.get(op.name, 1)]
        if op.name == "scf.while":
            decides = yielded(op.regions[0].blocks[0])[:1]
        return self._any(decides)

    def _control_flow(self, op: ir.Operation) -> None:
        divergent = self.diverges(op)
        if divergent and op.name == "scf.for":
            self._varying.add(op.regions[0].blocks[0].arguments[0])
        for uses, values in forwarded(op):
            if divergent or self._any(user.operands[number] for user, number in uses):
                self._varying.update(values)
