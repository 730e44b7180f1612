"""The XeTile dialect: kernels in terms of the tiles that workgroups and subgroups work on."""

from xegpu_py.dialects.xetile.agreement import subgroups_of
from xegpu_py.dialects.xetile.compute import BroadcastOp, ConvertLayoutOp, ReductionOp, TileMmaOp, TransposeOp
from xegpu_py.dialects.xetile.scattered import AtomicRmwOp, LoadOp, StoreOp
from xegpu_py.dialects.xetile.tiles import InitTileOp, LoadTileOp, PrefetchTileOp, StoreTileOp, UpdateTileOffsetOp
from xegpu_py.dialects.xetile.types import ReductionKind, SgMap, Tile, TileAttr, WgMap, XeTile

DIALECT = XeTile

__getattr__ = XeTile.function
