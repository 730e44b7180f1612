"""The XeGPU dialect, as the XeGPU RFC defines it.

Where a docstring says "RFC" it means that document. What it leaves open, and what was chosen, is in docs/xegpu.md.
"""

from xegpu_py.dialects.xegpu.block import (
    CreateNdTdescOp,
    LoadNdOp,
    PrefetchNdOp,
    StoreNdOp,
    UpdateNdOffsetOp,
)
from xegpu_py.dialects.xegpu.matrix import DpasOp
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

__all__ = [
    "DIALECT",
    "AllocNbarrierOp",
    "AtomicRmwOp",
    "CacheHint",
    "CompileHintOp",
    "CreateNdTdescOp",
    "CreateTdescOp",
    "DpasOp",
    "FenceOp",
    "FenceScope",
    "Hint",
    "InitNbarrierOp",
    "LoadGatherOp",
    "LoadNdOp",
    "MemoryKind",
    "MemoryScope",
    "Mode",
    "NBarrier",
    "NbarrierArriveOp",
    "NbarrierWaitOp",
    "PrefetchNdOp",
    "PrefetchOp",
    "SgMap",
    "StoreNdOp",
    "StoreScatterOp",
    "TdescAttr",
    "TensorDesc",
    "UpdateNdOffsetOp",
    "UpdateOffsetOp",
    "XeGPU",
]

__getattr__ = XeGPU.function
