"""The XeGPU dialect, as the XeGPU RFC defines it.

Where a docstring says "RFC" it means that document. What it leaves open, and what was chosen, is in docs/xegpu.md.
"""

from xegpu_py.dialects.xegpu.block import CreateNdTdescOp, LoadNdOp, PrefetchNdOp, StoreNdOp, UpdateNdOffsetOp
from xegpu_py.dialects.xegpu.matrix import DpasMxOp, DpasOp
from xegpu_py.dialects.xegpu.registers import LaneShuffleMode, LaneShuffleOp, TruncfOp
from xegpu_py.dialects.xegpu.scattered import (
    AtomicRmwOp,
    CreateTdescOp,
    LoadGatherOp,
    PrefetchOp,
    StoreScatterOp,
    UpdateOffsetOp,
)
from xegpu_py.dialects.xegpu.sync import (
    AllocNbarrierOp,
    CompileHintOp,
    FenceOp,
    InitNbarrierOp,
    NbarrierArriveOp,
    NbarrierWaitOp,
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
