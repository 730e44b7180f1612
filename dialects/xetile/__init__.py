"""The XeTile dialect: kernels in terms of the tiles that workgroups and subgroups work on."""

from xegpu_py.dialects.xetile.ops import (
    SUBGROUPS,
    AtomicRmwOp,
    BroadcastOp,
    ConvertLayoutOp,
    InitTileOp,
    LoadOp,
    LoadTileOp,
    PrefetchTileOp,
    ReductionOp,
    StoreOp,
    StoreTileOp,
    TileMmaOp,
    TransposeOp,
    UpdateTileOffsetOp,
    mapped_subgroups,
    stated_subgroups,
    subgroups_of,
    subgroups_of_kernel,
)
from xegpu_py.dialects.xetile.types import ReductionKind, SgMap, Tile, TileAttr, WgMap, XeTile

DIALECT = XeTile

__getattr__ = XeTile.function
