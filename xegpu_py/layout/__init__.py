"""Layouts: which lane of which subgroup holds which element of a vector, and in which register position.

`NestedLayout` is IREE's `nested_layout`; `maps` goes from it to the `wg_map` and `sg_map` of XeTile and XeGPU and back,
and `WgTiles` is what any `wg_map` gives subgroups, where tiles are shared or go round in several dimensions too.
Plain Python and numpy, without MLIR.
"""

from xegpu_py.layout.ids import LayoutError
from xegpu_py.layout.maps import (
    SgMapping,
    WgMapping,
    from_maps,
    from_sg_map,
    from_wg_map,
    to_maps,
    to_sg_map,
    to_wg_map,
)
from xegpu_py.layout.nested import TILES, NestedLayout, Owners
from xegpu_py.layout.shapes import reshape
from xegpu_py.layout.tiles import WgTiles, dealing_problem

__all__ = [
    "TILES",
    "LayoutError",
    "NestedLayout",
    "Owners",
    "SgMapping",
    "WgMapping",
    "WgTiles",
    "dealing_problem",
    "from_maps",
    "from_sg_map",
    "from_wg_map",
    "reshape",
    "to_maps",
    "to_sg_map",
    "to_wg_map",
]
