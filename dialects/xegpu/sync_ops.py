"""Named barriers, fences and hints to the compiler of XeGPU, in both spellings; see `block_ops` for the form."""

from typing import TYPE_CHECKING, ClassVar

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.op_interfaces import Byte, UpstreamByte
from xegpu_py.dialects.xegpu.types import FenceScope, Hint, MemoryKind, NBarrier, UpstreamXeGPU, XeGPU
from xegpu_py.ir.builtin import Index
from xegpu_py.ir.definition import Attribute, Operand, Result, default
from xegpu_py.ir.operation import Operation

if TYPE_CHECKING:
    from xegpu_py.dialects.xegpu import upstream_types as upstream
else:
    upstream = deferred("xegpu_py.dialects.xegpu.upstream_types")


class AllocNbarrierOp(Operation, dialect=XeGPU, name="alloc_nbarrier"):
    """Sets the number of named barriers of the work group (RFC, alloc_nbarrier): a constant or a value."""

    count: Operand[Byte | Index] | None = None
    nbarrier_num: Attribute[int] | None = None

    effects = frozenset(["sync"])
    assembly_format = "($count^)? ($nbarrier_num^)? attr-dict (`:` type($count)^)?"

    def verify_op(self) -> None:
        if (self.count is None) == (self.nbarrier_num is None):
            self.fail("requires the attribute 'nbarrier_num' or the operand 'count'")
        if self.nbarrier_num is not None and not 1 <= self.nbarrier_num <= 255:
            self.fail(f"the number of barriers must be 1 to 255, but got {self.nbarrier_num}")


class UpstreamAllocNbarrierOp(Operation, dialect=UpstreamXeGPU, name="alloc_nbarrier"):
    """Sets the number of named barriers."""

    nbarrier_num: Attribute[int]

    effects = frozenset(["sync"])
    assembly_format = "$nbarrier_num attr-dict"


class InitNbarrierOp(Operation, dialect=XeGPU, name="init_nbarrier"):
    """Gives this thread the named barrier of an id, at which a number of threads meet (RFC, init_nbarrier)."""

    nbarrier_id: Operand[Byte]
    participant_thread_num: Operand[Byte]
    result: Result[NBarrier]

    effects = frozenset()
    assembly_format = (
        "$nbarrier_id `,` $participant_thread_num attr-dict `:` "
        "type($nbarrier_id) `,` type($participant_thread_num) `->` type($result)"
    )


class UpstreamInitNbarrierOp(InitNbarrierOp, dialect=UpstreamXeGPU, also_named=("create_nbarrier",)):
    """Gives the named barrier of an id; IMEX has another name for it."""

    nbarrier_id: Operand[UpstreamByte]
    participant_thread_num: Operand[UpstreamByte]


class CreateNbarrierOp(Operation, dialect=XeGPU, name="create_nbarrier"):
    """`init_nbarrier` as IMEX had it when the RFC was written.

    All threads of the barrier arrive and wait, which is role 0: they are its producers as well as its consumers.
    """

    nbarrier_id: Operand[Byte]
    nbarrier_role: Operand[Byte]
    result: Result[NBarrier]
    num_producers: Attribute[int]
    num_consumers: Attribute[int]

    effects = frozenset()
    assembly_format = (
        "$nbarrier_id `,` $nbarrier_role attr-dict `:` `(` type($nbarrier_id) `,` type($nbarrier_role) `)` "
        "`->` type($result)"
    )

    def verify_op(self) -> None:
        if self.num_producers != self.num_consumers:
            self.fail(
                f"has {self.num_producers} producers and {self.num_consumers} consumers, but the RFC's named barriers "
                "have threads that all arrive and wait",
                "use one barrier for each direction, with xegpu.init_nbarrier",
            )
        if not 1 <= self.num_producers <= 255:
            self.fail(f"the number of threads must be 1 to 255, but got {self.num_producers}")


class NbarrierArriveOp(Operation, dialect=XeGPU, name="nbarrier_arrive"):
    """Tells the other threads of a named barrier that this one has arrived (RFC, nbarrier_arrive)."""

    nbarrier: Operand[NBarrier]

    effects = frozenset(["sync"])
    assembly_format = "$nbarrier attr-dict (`:` type($nbarrier)^)?"


class UpstreamNbarrierArriveOp(NbarrierArriveOp, dialect=UpstreamXeGPU):
    """Tells that this thread has arrived."""


class NbarrierWaitOp(Operation, dialect=XeGPU, name="nbarrier_wait"):
    """Waits until all threads of a named barrier have arrived (RFC, nbarrier_wait)."""

    nbarrier: Operand[NBarrier]

    effects = frozenset(["sync"])
    assembly_format = "$nbarrier attr-dict (`:` type($nbarrier)^)?"


class UpstreamNbarrierWaitOp(NbarrierWaitOp, dialect=UpstreamXeGPU):
    """Waits until all threads have arrived."""


class FenceOp(Operation, dialect=XeGPU, name="fence"):
    """Orders the memory accesses before it and those after it (RFC, fence).

    Without `scope` it does for the whole GPU, and without `memory_kind` those of both memories.
    """

    scope: Attribute[FenceScope] | None = None
    memory_kind: Attribute[MemoryKind] | None = None

    effects = frozenset(["sync"])
    assembly_format = "attr-dict"


class UpstreamFenceOp(Operation, dialect=UpstreamXeGPU, name="fence"):
    """Orders memory accesses."""

    memory_kind: "Attribute[upstream.Space]"
    fence_scope: Attribute[FenceScope]

    effects = frozenset(["sync"])
    assembly_format = "`memory_kind` `=` $memory_kind `,` `fence_scope` `=` $fence_scope attr-dict"


class CompileHintOp(Operation, dialect=XeGPU, name="compile_hint"):
    """Tells a lower-level compiler not to move instructions across this place (RFC, compile_hint)."""

    hint: Attribute[Hint] = default(Hint.SCHEDULE_BARRIER)

    effects = frozenset(["sync"])
    assembly_format = "attr-dict"
    flags: ClassVar = dict.fromkeys(("schedule_barrier", "scheduling_barrier"), ("hint", Hint.SCHEDULE_BARRIER))


class UpstreamCompileHintOp(Operation, dialect=UpstreamXeGPU, name="compile_hint"):
    """Tells the compiler not to move instructions across this place. IMEX has it."""

    effects = frozenset(["sync"])
    assembly_format = "attr-dict"
