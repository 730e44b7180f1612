# Made by `make docs` from the dialect's classes; changes belong there.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from mlir import ir

from xegpu_py.ir.definition import Type as _Type
from xegpu_py.dialects.xegpu.types import CacheHint
from xegpu_py.dialects.xetile.ops import AtomicRmwOp as AtomicRmwOp
from xegpu_py.dialects.xetile.ops import BroadcastOp as BroadcastOp
from xegpu_py.dialects.xetile.ops import ConvertLayoutOp as ConvertLayoutOp
from xegpu_py.dialects.xetile.ops import InitTileOp as InitTileOp
from xegpu_py.dialects.xetile.ops import LoadOp as LoadOp
from xegpu_py.dialects.xetile.ops import LoadTileOp as LoadTileOp
from xegpu_py.dialects.xetile.ops import PrefetchTileOp as PrefetchTileOp
from xegpu_py.dialects.xetile.ops import ReductionOp as ReductionOp
from xegpu_py.dialects.xetile.ops import SUBGROUPS as SUBGROUPS
from xegpu_py.dialects.xetile.ops import StoreOp as StoreOp
from xegpu_py.dialects.xetile.ops import StoreTileOp as StoreTileOp
from xegpu_py.dialects.xetile.ops import TileMmaOp as TileMmaOp
from xegpu_py.dialects.xetile.ops import TransposeOp as TransposeOp
from xegpu_py.dialects.xetile.ops import UpdateTileOffsetOp as UpdateTileOffsetOp
from xegpu_py.dialects.xetile.ops import mapped_subgroups as mapped_subgroups
from xegpu_py.dialects.xetile.ops import stated_subgroups as stated_subgroups
from xegpu_py.dialects.xetile.ops import subgroups_of as subgroups_of
from xegpu_py.dialects.xetile.ops import subgroups_of_kernel as subgroups_of_kernel
from xegpu_py.dialects.xetile.types import ReductionKind as ReductionKind
from xegpu_py.dialects.xetile.types import SgMap as SgMap
from xegpu_py.dialects.xetile.types import Tile as Tile
from xegpu_py.dialects.xetile.types import TileAttr as TileAttr
from xegpu_py.dialects.xetile.types import WgMap as WgMap
from xegpu_py.dialects.xetile.types import XeTile as XeTile
from xegpu_py.ir.builtin import CombiningKind

_Value: TypeAlias = ir.Value | ir.OpView | ir.Operation
_ResultType: TypeAlias = ir.Type | _Type | str
_CacheHint: TypeAlias = CacheHint | Literal['cached', 'uncached', 'streaming', 'read_invalidate', 'write_through', 'write_back']
_CombiningKind: TypeAlias = CombiningKind | Literal['add', 'mul', 'minui', 'minsi', 'minnumf', 'minimumf', 'maxui', 'maxsi', 'maxnumf', 'maximumf', 'and', 'or', 'xor']

DIALECT = XeTile

def init_tile(
    source: _Value,
    offsets: Sequence[_Value | int],
    shape: Sequence[_Value | int] | None = None,
    strides: Sequence[_Value | int] | None = None,
    indices: _Value | None = None,
    *,
    tile: _ResultType | None = None,
    in_bounds: bool | None = None,
    clipped: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Makes a tile of a matrix in memory."""

def load_tile(
    tile: _Value,
    *,
    value: _ResultType | None = None,
    padding: Any = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads a tile."""

def store_tile(
    value: _Value,
    tile: _Value,
    *,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores a vector to a tile."""

def prefetch_tile(
    tile: _Value,
    *,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Brings a tile into the cache."""

def update_tile_offset(
    tile: _Value,
    offsets: Sequence[_Value | int],
    indices: _Value | None = None,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Moves a tile by offsets in elements: by rows and columns, or by an index for each element if it is scattered."""

def load(
    tile: _Value,
    mask: _Value | None = None,
    *,
    value: _ResultType | None = None,
    padding: Any = None,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads the elements of a scattered tile."""

def store(
    value: _Value,
    tile: _Value,
    mask: _Value | None = None,
    *,
    l1_hint: _CacheHint | None = None,
    l2_hint: _CacheHint | None = None,
    l3_hint: _CacheHint | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores to the elements of a scattered tile whose mask bit is set, or to all."""

def atomic_rmw(
    kind: Any,
    value: _Value,
    tile: _Value,
    mask: _Value | None = None,
    expected: _Value | None = None,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Reads, modifies and writes each element of a tile atomically; gives what was read."""

def tile_mma(
    a: _Value,
    b: _Value,
    c: _Value | None = None,
    scale_a: _Value | None = None,
    scale_b: _Value | None = None,
    *,
    d: _ResultType | None = None,
    wg_map_a: WgMap | None = None,
    wg_map_b: WgMap | None = None,
    wg_map_c: WgMap | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Multiplies matrices: `d = a x b`, or `d = a x b + c`."""

def transpose(
    value: _Value,
    permutation: Sequence[int],
    *,
    result: _ResultType | None = None,
    map: WgMap | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Swaps the dimensions of a matrix."""

def reduction(
    kind: _CombiningKind,
    value: _Value,
    dims: Sequence[int],
    *,
    result: _ResultType | None = None,
    reduction_size: int | None = None,
    map: WgMap | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Combines the elements along a dimension, which has size 1 then."""

def reduce(
    kind: _CombiningKind,
    value: _Value,
    dims: Sequence[int],
    *,
    result: _ResultType | None = None,
    reduction_size: int | None = None,
    map: WgMap | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Combines the elements along a dimension, which has size 1 then."""

def broadcast(
    value: _Value,
    dims: Sequence[int],
    *,
    result: _ResultType | None = None,
    broadcast_size: int | None = None,
    map: WgMap | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Repeats a matrix along a dimension, which has size 1 in the operand."""

def convert_layout(
    value: _Value,
    wg_map_result: WgMap,
    *,
    result: _ResultType | None = None,
    wg_map_source: WgMap | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Gives each subgroup the part of a value that `wg_map_result` says, where it had that of `wg_map_source`."""
