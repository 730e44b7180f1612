"""Barriers and fences."""

from __future__ import annotations

from mlir import ir as mlir
from mlir.dialects import gpu

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.types import FenceScope, MemoryKind
from xegpu_py.language import types
from xegpu_py.language.held import BUILDING, Handle
from xegpu_py.language.values import constant


def barrier() -> None:
    """Wait for all subgroups of the workgroup. Afterwards each can read what the others have written."""
    BUILDING.check()
    gpu.barrier()
    BUILDING.built()


def debug_barrier() -> None:
    """Wait for all subgroups of the workgroup: Triton's name of `barrier`."""
    barrier()


def fence(memory: str = "both", scope: str = "gpu") -> None:
    """Make this subgroup's earlier writes visible before its later ones.

    Args:
        memory: "global", "shared" or "both".
        scope: to whom: "workgroup" or "gpu".

    Raises:
        ValueError: for another memory or scope.
    """
    BUILDING.check()
    kinds = {"global": MemoryKind.GLOBAL, "shared": MemoryKind.SHARED, "both": None}
    scopes = {"workgroup": FenceScope.WORKGROUP, "gpu": FenceScope.GPU}
    if memory not in kinds:
        raise ValueError(f"fence orders accesses of {', '.join(kinds)}, not {memory!r}")
    if scope not in scopes:
        raise ValueError(f"the scope of a fence is {' or '.join(scopes)}, not {scope!r}")
    xegpu.fence(memory_kind=kinds[memory], scope=scopes[scope])
    BUILDING.built()


class NamedBarrier(Handle):
    """A barrier for some subgroups of a workgroup."""

    def arrive(self) -> None:
        """Signal that this subgroup has arrived, without waiting."""
        xegpu.nbarrier_arrive(self.ir)
        BUILDING.built()

    def wait(self) -> None:
        """Wait until all subgroups have arrived."""
        xegpu.nbarrier_wait(self.ir)
        BUILDING.built()

    def with_ir(self, value: mlir.Value) -> NamedBarrier:
        return NamedBarrier(value)


def named_barrier(number: int, participants: int) -> NamedBarrier:
    """A named barrier, for kernels without maps, whose subgroups follow different control flow.

    Args:
        number: the barrier's number in the workgroup, from 1 to 31; `barrier` uses 0.
        participants: the number of subgroups that wait for each other, from 1 to 64.

    Raises:
        ValueError: for another number.
    """
    BUILDING.check()
    if not 1 <= number < 32 or not 1 <= participants <= 64:
        raise ValueError(
            f"barriers are numbered 1 to 31 and are for 1 to 64 subgroups, not {number} for {participants}"
        )
    xegpu.alloc_nbarrier(nbarrier_num=number + 1)
    ident, count = (constant(types.uint8, n).ir for n in (number, participants))
    return NamedBarrier(xegpu.init_nbarrier(ident, count))
