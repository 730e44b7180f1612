"""The XeGPU dialect in its two spellings, the RFC's and upstream MLIR's.

Where a docstring says "RFC" it means that document. docs/xegpu.md lists the questions that it leaves open, and choices.
"""

from xegpu_py.dialects.xegpu.block_ops import CreateNdTdescOp, LoadNdOp, PrefetchNdOp, StoreNdOp, UpdateNdOffsetOp
from xegpu_py.dialects.xegpu.matrix_ops import DpasMxOp, DpasOp, LaneShuffleOp, TruncfOp
from xegpu_py.dialects.xegpu.scattered_ops import (
    AtomicRmwOp,
    CreateTdescOp,
    LoadGatherOp,
    PrefetchOp,
    StoreScatterOp,
    UpdateOffsetOp,
)
from xegpu_py.dialects.xegpu.sync_ops import (
    AllocNbarrierOp,
    CompileHintOp,
    CreateNbarrierOp,
    FenceOp,
    InitNbarrierOp,
    NbarrierArriveOp,
    NbarrierWaitOp,
)
from xegpu_py.dialects.xegpu.types import (
    CacheHint,
    FenceScope,
    Hint,
    LaneShuffleMode,
    MemoryKind,
    MemoryScope,
    Mode,
    NBarrier,
    SgMap,
    TdescAttr,
    TensorDesc,
    XeGPU,
)

DIALECT = XeGPU

__getattr__ = XeGPU.function
