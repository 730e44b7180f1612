"""Which values differ among the work items of a subgroup."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir
from xegpu_py.dialects.xegpu import Mode, TensorDesc

_SOURCES = frozenset(
    (
        "gpu.thread_id",
        "gpu.global_id",
        "gpu.lane_id",
        "gpu.shuffle",
        "gpu.rotate",
        "memref.atomic_rmw",
        "memref.generic_atomic_rmw",
    )
)
"""Ops whose results differ whatever their operands are."""

_UNIFORM = frozenset(("gpu.subgroup_broadcast", "gpu.all_reduce"))
"""Ops whose results are the same whatever their operands are."""


class Uniformity:
    """The values of a kernel that vary from lane to lane, and the ops that only some lanes may reach.

    A value is uniform if every work item of a subgroup that reaches it has the same. It varies if it depends on the
    place of the work item in the subgroup, on a block that is dealt out by an `sg_map`, or on which way a varying
    condition went.
    """

    def __init__(self, func: ir.Operation) -> None:
        self._varying: set[ir.Value] = set()
        self._changed = True
        self._func = func
        while self._changed:
            self._changed = False
            self._block(func.regions[0].blocks[0])

    def varies(self, value: ir.Value) -> bool:
        """Whether a value differs from lane to lane."""
        return value in self._varying

    def _mark(self, value: ir.Value, varies: bool = True) -> None:
        if varies and value not in self._varying:
            self._varying.add(value)
            self._changed = True

    def _mark_all(self, values: Iterable[ir.Value], varies: bool) -> None:
        for value in values:
            self._mark(value, varies)

    def _block(self, block: ir.Block) -> None:
        for op in block.operations:
            self._op(op.operation)

    def _op(self, op: ir.Operation) -> None:
        rule = getattr(self, "_" + op.name.replace(".", "_"), None)
        if rule:
            rule(op)
        elif op.name in _SOURCES:
            self._mark(op.results[0])
        elif op.name == "gpu.subgroup_reduce":
            self._mark(op.results[0], "cluster_size" in op.attributes)
        elif op.name == "xegpu.load_nd":
            mapped = op.opview.mode == Mode.SIMT and TensorDesc.of(op.opview.tdesc).attr.map is not None
            self._mark(op.results[0], mapped)
        elif op.name not in _UNIFORM:
            self._mark_all(op.results, any(self.varies(v) for v in op.operands))

    def _yields(self, block: ir.Block) -> list[ir.Value]:
        return list(list(block.operations)[-1].operation.operands)

    def _scf_if(self, op: ir.Operation) -> None:
        parts = self.varies(op.operands[0])
        for region in op.regions:
            for block in region.blocks:
                self._block(block)
                for result, value in zip(op.results, self._yields(block)):
                    self._mark(result, parts or self.varies(value))

    def _scf_index_switch(self, op: ir.Operation) -> None:
        self._scf_if(op)

    def _scf_for(self, op: ir.Operation) -> None:
        body = op.regions[0].blocks[0]
        operands = list(op.operands)
        parts = any(self.varies(v) for v in operands[:3])
        self._mark(body.arguments[0], parts)
        arguments = list(body.arguments)[1:]
        for init, argument in zip(operands[3:], arguments):
            self._mark(argument, parts or self.varies(init))
        self._block(body)
        for argument, value, result in zip(arguments, self._yields(body), op.results):
            self._mark(argument, self.varies(value))
            self._mark(result, self.varies(argument))

    def _scf_while(self, op: ir.Operation) -> None:
        before, after = (r.blocks[0] for r in op.regions)
        condition, *passed = self._yields(before)
        parts = self.varies(condition)
        for init, argument in zip(op.operands, before.arguments):
            self._mark(argument, parts or self.varies(init))
        self._block(before)
        for value, argument, result in zip(passed, after.arguments, op.results):
            self._mark(argument, parts or self.varies(value))
            self._mark(result, parts or self.varies(value))
        self._block(after)
        for value, argument in zip(self._yields(after), before.arguments):
            self._mark(argument, self.varies(value))
