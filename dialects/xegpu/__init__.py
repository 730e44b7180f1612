"""The XeGPU dialect, as the XeGPU RFC defines it.

Where a docstring says "RFC" it means that document. docs/xegpu.md lists the questions that it leaves open, and choices.
"""

from xegpu_py.dialects.xegpu.matrix_ops import DpasMxOp, DpasOp, LaneShuffleMode, LaneShuffleOp, TruncfOp
from xegpu_py.dialects.xegpu.memory_ops import (
    AllocNbarrierOp,
    AtomicRmwOp,
    CompileHintOp,
    CreateNdTdescOp,
    CreateTdescOp,
    FenceOp,
    InitNbarrierOp,
    LoadGatherOp,
    LoadNdOp,
    NbarrierArriveOp,
    NbarrierWaitOp,
    PrefetchNdOp,
    PrefetchOp,
    StoreNdOp,
    StoreScatterOp,
    UpdateNdOffsetOp,
    UpdateOffsetOp,
)
from xegpu_py.dialects.xegpu.types import (
    CacheHint,
    FenceScope,
    Hint,
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
