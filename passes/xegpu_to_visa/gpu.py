"""`gpu`: ids and extents of the grid, and barriers."""

from __future__ import annotations

from mlir import ir
from msgspec.structs import replace

from xegpu_py.ir.builtin import enumerator
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import NARROW, Reg, index_type
from xegpu_py.visa.operands import BUILTINS

THREAD_WORD = 2
"""Dword of r0 that holds a thread's number within its workgroup."""


def _dimension(op: ir.Operation) -> int:
    return "xyz".index(enumerator(op.attributes["dimension"]))


def _group(low: Lowering, dimension: int) -> Reg:
    """The workgroup's place in the grid."""
    bounds = low.limits.place("block_id", dimension)
    group = Reg(BUILTINS[f"%group_id_{'xyz'[dimension]}"], 0, 1)
    return replace(low.emit.apply("mov", index_type(bounds), 1, group), bounds=bounds)


@pattern("gpu.block_id")
def block_id(low: Lowering, op: ir.Operation) -> None:
    """The workgroup's place in the grid."""
    low.set(op, _group(low, _dimension(op)))


_IMPLICIT = {"gpu.thread_id": "LOCAL_ID", "gpu.block_dim": "LOCAL_SIZE", "gpu.grid_dim": "GROUP_COUNT"}


@pattern(*_IMPLICIT)
def implicit(low: Lowering, op: ir.Operation) -> None:
    """A thread's place in its workgroup, and extents; in vector compute mode a work item is a hardware thread."""
    low.set(op, low.implicit(_IMPLICIT[op.name], _dimension(op)))


@pattern("gpu.global_id")
def global_id(low: Lowering, op: ir.Operation) -> None:
    """The thread's place among all threads."""
    d = _dimension(op)
    first = low.multiply(_group(low, d), low.implicit("LOCAL_SIZE", d))
    low.set(op, low.add(first, low.implicit("LOCAL_ID", d)))


@pattern("gpu.subgroup_id")
def subgroup_id(low: Lowering, op: ir.Operation) -> None:
    """The thread's number within its workgroup."""
    low.set(op, low.emit.apply("mov", NARROW, 1, Reg(BUILTINS["%r0"], THREAD_WORD, 1)))


@pattern("gpu.num_subgroups")
def num_subgroups(low: Lowering, op: ir.Operation) -> None:
    """Threads of a workgroup."""
    within = low.limits.place("num_subgroups")
    x, y, z = (low.implicit("LOCAL_SIZE", d) for d in range(3))
    low.set(op, low.multiply(low.multiply(x, y, within), z, within))


@pattern("gpu.lane_id", "gpu.subgroup_size")
def one_work_item(low: Lowering, op: ir.Operation) -> None:
    """In vector compute mode a thread is one work item."""
    low.set(op, low.index(int(op.name == "gpu.subgroup_size")))


@pattern("gpu.barrier")
def barrier(low: Lowering, op: ir.Operation) -> None:
    """Barrier with a fence: writes of the workgroup before it are visible after it."""
    for memory in ("slm", "ugm"):
        low.emit.emit("lsc_fence", no_mask=False, sfid=memory, flush="none", scope="group")
    low.emit.emit("barrier", no_mask=False)
