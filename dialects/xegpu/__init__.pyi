# Made by `make docs` from the dialect's classes; changes belong there.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from mlir import ir

from xegpu_py.ir.definition import Type as _Type
from xegpu_py.dialects.xegpu.block_ops import CreateNdTdescOp as CreateNdTdescOp
from xegpu_py.dialects.xegpu.block_ops import LoadNdOp as LoadNdOp
from xegpu_py.dialects.xegpu.block_ops import PrefetchNdOp as PrefetchNdOp
from xegpu_py.dialects.xegpu.block_ops import StoreNdOp as StoreNdOp
from xegpu_py.dialects.xegpu.block_ops import UpdateNdOffsetOp as UpdateNdOffsetOp
from xegpu_py.dialects.xegpu.matrix_ops import DpasMxOp as DpasMxOp
from xegpu_py.dialects.xegpu.matrix_ops import DpasOp as DpasOp
from xegpu_py.dialects.xegpu.matrix_ops import LaneShuffleOp as LaneShuffleOp
from xegpu_py.dialects.xegpu.matrix_ops import TruncfOp as TruncfOp
from xegpu_py.dialects.xegpu.scattered_ops import AtomicRmwOp as AtomicRmwOp
from xegpu_py.dialects.xegpu.scattered_ops import CreateTdescOp as CreateTdescOp
from xegpu_py.dialects.xegpu.scattered_ops import LoadGatherOp as LoadGatherOp
from xegpu_py.dialects.xegpu.scattered_ops import PrefetchOp as PrefetchOp
from xegpu_py.dialects.xegpu.scattered_ops import StoreScatterOp as StoreScatterOp
from xegpu_py.dialects.xegpu.scattered_ops import UpdateOffsetOp as UpdateOffsetOp
from xegpu_py.dialects.xegpu.sync_ops import AllocNbarrierOp as AllocNbarrierOp
from xegpu_py.dialects.xegpu.sync_ops import CompileHintOp as CompileHintOp
from xegpu_py.dialects.xegpu.sync_ops import CreateNbarrierOp as CreateNbarrierOp
from xegpu_py.dialects.xegpu.sync_ops import FenceOp as FenceOp
from xegpu_py.dialects.xegpu.sync_ops import InitNbarrierOp as InitNbarrierOp
from xegpu_py.dialects.xegpu.sync_ops import NbarrierArriveOp as NbarrierArriveOp
from xegpu_py.dialects.xegpu.sync_ops import NbarrierWaitOp as NbarrierWaitOp
from xegpu_py.dialects.xegpu.types import CacheHint as CacheHint
from xegpu_py.dialects.xegpu.types import FenceScope as FenceScope
from xegpu_py.dialects.xegpu.types import Hint as Hint
from xegpu_py.dialects.xegpu.types import LaneShuffleMode as LaneShuffleMode
from xegpu_py.dialects.xegpu.types import MemoryKind as MemoryKind
from xegpu_py.dialects.xegpu.types import MemoryScope as MemoryScope
from xegpu_py.dialects.xegpu.types import Mode as Mode
from xegpu_py.dialects.xegpu.types import NBarrier as NBarrier
from xegpu_py.dialects.xegpu.types import SgMap as SgMap
from xegpu_py.dialects.xegpu.types import TdescAttr as TdescAttr
from xegpu_py.dialects.xegpu.types import TensorDesc as TensorDesc
from xegpu_py.dialects.xegpu.types import XeGPU as XeGPU

_Value: TypeAlias = ir.Value | ir.OpView | ir.Operation
_ResultType: TypeAlias = ir.Type | _Type | str
_CacheHint: TypeAlias = CacheHint | Literal['cached', 'uncached', 'streaming', 'read_invalidate', 'write_through', 'write_back']
_FenceScope: TypeAlias = FenceScope | Literal['workgroup', 'gpu']
_Hint: TypeAlias = Hint | Literal['schedule_barrier']
_LaneShuffleMode: TypeAlias = LaneShuffleMode | Literal['pack', 'unpack']
_MemoryKind: TypeAlias = MemoryKind | Literal['global', 'shared']
_MemoryScope: TypeAlias = MemoryScope | Literal['global', 'slm']
_Mode: TypeAlias = Mode | Literal['simt', 'vc']

DIALECT = XeGPU

def dpas(
    lhs: _Value,
    rhs: _Value,
    acc: _Value | None = None,
    *,
    result: _ResultType | None = None,
    mode: _Mode | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Multiplies matrices and adds an accumulator: `result = acc + lhs x rhs` (RFC, dpas)."""

def dpas_mx(
    lhs: _Value,
    rhs: _Value,
    acc: _Value | None = None,
    scale_a: _Value | None = None,
    scale_b: _Value | None = None,
    *,
    result: _ResultType | None = None,
    mode: _Mode | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Multiplies block-scaled matrices and adds an accumulator: `result = acc + (lhs * scale_a) x (rhs * scale_b)`."""

def truncf(
    source: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Rounds to a format of 8 or 4 bits: to nearest even, and saturated (OCP Microscaling Formats 1.0, section 6.3)."""

def lane_shuffle(
    source: _Value,
    shuffle: _LaneShuffleMode,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Distributes the elements that the work items of a subgroup hold in another way."""

def create_nd_tdesc(
    source: _Value,
    offsets: Sequence[_Value | int],
    shape: Sequence[_Value | int] | None = None,
    strides: Sequence[_Value | int] | None = None,
    *,
    tdesc: _ResultType | None = None,
    mode: _Mode | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Creates the descriptor of a block of an n-dimensional tensor (RFC, create_nd_tdesc)."""

def load_nd(
    tdesc: _Value,
    *,
    value: _ResultType | None = None,
    mode: _Mode | None = None,
    transpose: Sequence[int] | None = None,
    transpose_bit_width: int | None = None,
    vnni_axis: int | None = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads the block that a descriptor describes (RFC, load_nd)."""

def store_nd(
    value: _Value,
    tdesc: _Value,
    *,
    mode: _Mode | None = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores a vector to a descriptor's block (RFC, store_nd)."""

def prefetch_nd(
    tdesc: _Value,
    *,
    mode: _Mode | None = None,
    memory_scope: _MemoryScope | None = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Brings the block that a descriptor describes into the cache (RFC, prefetch_nd)."""

def update_nd_offset(
    tdesc: _Value,
    offsets: Sequence[_Value | int],
    *,
    result: _ResultType | None = None,
    mode: _Mode | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Moves a descriptor's block by offsets in elements, relative to where it is (RFC, update_nd_offset)."""

def create_tdesc(
    source: _Value,
    offsets: _Value,
    *,
    tdesc: _ResultType | None = None,
    mode: _Mode | None = None,
    chunk_size_per_lane: int | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Creates a scattered descriptor from a base address and one offset in elements for each lane (RFC, create_tdesc)."""

def update_offset(
    tdesc: _Value,
    offsets: _Value,
    *,
    result: _ResultType | None = None,
    mode: _Mode | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Moves each lane's address by an offset in elements (RFC, update_offset)."""

def update_offsets(
    tdesc: _Value,
    offsets: _Value,
    *,
    result: _ResultType | None = None,
    mode: _Mode | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Moves each lane's address by an offset in elements (RFC, update_offset)."""

def load_gather(
    tdesc: _Value,
    mask: _Value,
    *,
    value: _ResultType | None = None,
    mode: _Mode | None = None,
    transpose: Sequence[int] | None = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads elements from the address of each lane (RFC, load_gather)."""

def load(
    tdesc: _Value,
    mask: _Value,
    *,
    value: _ResultType | None = None,
    mode: _Mode | None = None,
    transpose: Sequence[int] | None = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads elements from the address of each lane (RFC, load_gather)."""

def store_scatter(
    value: _Value,
    tdesc: _Value,
    mask: _Value,
    *,
    mode: _Mode | None = None,
    memory_scope: _MemoryScope | None = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores elements to the address of each lane whose mask bit is set (RFC, store_scatter)."""

def store(
    value: _Value,
    tdesc: _Value,
    mask: _Value,
    *,
    mode: _Mode | None = None,
    memory_scope: _MemoryScope | None = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores elements to the address of each lane whose mask bit is set (RFC, store_scatter)."""

def prefetch(
    tdesc: _Value,
    *,
    mode: _Mode | None = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Brings the elements at the address of each lane into the cache (RFC, prefetch)."""

def atomic_rmw(
    kind: Any,
    value: _Value,
    tdesc: _Value,
    mask: _Value,
    expected: _Value | None = None,
    *,
    result: _ResultType | None = None,
    mode: _Mode | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Reads, modifies and writes the element of each lane atomically; gives what was read (RFC, atomic_rmw)."""

def alloc_nbarrier(
    count: _Value | None = None,
    *,
    nbarrier_num: int | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Sets the number of named barriers of the work group (RFC, alloc_nbarrier): a constant or a value."""

def init_nbarrier(
    nbarrier_id: _Value,
    participant_thread_num: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Gives this thread the named barrier of an id, at which a number of threads meet (RFC, init_nbarrier)."""

def create_nbarrier(
    nbarrier_id: _Value,
    nbarrier_role: _Value,
    num_producers: int,
    num_consumers: int,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """`init_nbarrier` as IMEX had it when the RFC was written."""

def nbarrier_arrive(
    nbarrier: _Value,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Tells the other threads of a named barrier that this one has arrived (RFC, nbarrier_arrive)."""

def nbarrier_wait(
    nbarrier: _Value,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Waits until all threads of a named barrier have arrived (RFC, nbarrier_wait)."""

def fence(
    scope: _FenceScope | None = None,
    memory_kind: _MemoryKind | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Orders the memory accesses before it and those after it (RFC, fence)."""

def compile_hint(
    hint: _Hint | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Tells a lower-level compiler not to move instructions across this place (RFC, compile_hint)."""
