"""`xegpu`: named barriers, fences and hints."""

from __future__ import annotations

from mlir import ir

from xegpu_py.dialects.xegpu.types import FenceScope, MemoryKind
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Const, NamedBarrier, Numbers


@pattern("xegpu.alloc_nbarrier")
def alloc_nbarrier(low: Lowering, op: ir.Operation) -> None:
    """Set the kernel's number of named barriers; the target's maximum if the number is dynamic."""
    view = op.opview
    count = view.nbarrier_num
    if count is None:
        known = low.numbers(view.count)
        count = known.value if isinstance(known, Const) else low.target.named_barriers
    low.barriers = max(low.barriers, count)


def _byte(low: Lowering, value: ir.Value) -> Numbers:
    found = low.numbers(value)
    return const(found.value, "ub") if isinstance(found, Const) else low.emit.in_registers(found, "ub")


@pattern("xegpu.init_nbarrier", "xegpu.create_nbarrier")
def init_nbarrier(low: Lowering, op: ir.Operation) -> None:
    """A barrier's number, and the number of threads that meet there."""
    view = op.opview
    creates = op.name == "xegpu.create_nbarrier"
    count = const(view.num_producers, "ub") if creates else _byte(low, view.participant_thread_num)
    low.set(op, NamedBarrier(_byte(low, view.nbarrier_id), count))


def _barrier(low: Lowering, value: ir.Value) -> NamedBarrier:
    found = low.value(value)
    assert isinstance(found, NamedBarrier)
    return found


@pattern("xegpu.nbarrier_arrive")
def nbarrier_arrive(low: Lowering, op: ir.Operation) -> None:
    """Signal."""
    barrier = _barrier(low, op.operands[0])
    low.emit.emit(
        "nbarrier.signal", no_mask=False, id=low.emit.source(barrier.id, 0), count=low.emit.source(barrier.count, 0)
    )


@pattern("xegpu.nbarrier_wait")
def nbarrier_wait(low: Lowering, op: ir.Operation) -> None:
    """Wait."""
    barrier = _barrier(low, op.operands[0])
    low.emit.emit("nbarrier.wait", no_mask=False, id=low.emit.source(barrier.id, 0))


@pattern("xegpu.fence")
def fence(low: Lowering, op: ir.Operation) -> None:
    """A fence of one memory, or of both."""
    view = op.opview
    for kind in (view.memory_kind,) if view.memory_kind else MemoryKind:
        shared = kind == MemoryKind.SHARED
        scope = "group" if shared or view.scope == FenceScope.WORKGROUP else "gpu"
        low.emit.emit("lsc_fence", no_mask=False, sfid="slm" if shared else "ugm", flush="none", scope=scope)


@pattern("xegpu.compile_hint")
def compile_hint(low: Lowering, op: ir.Operation) -> None:
    """A software fence, which `visa-optimize` and Intel's finalizer do not move instructions across."""
    low.emit.emit("fence_sw", no_mask=False)
