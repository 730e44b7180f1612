"""Layouts: the subgroup, lane and register position of each element of a vector.

`NestedLayout` is IREE's `nested_layout`; `maps` converts it to and from the `wg_map` and `sg_map` of XeTile and XeGPU,
and `WgTiles` represents any `wg_map`, also with shared tiles and with several rounds in several dimensions.
Plain Python and numpy, without MLIR.
"""

from xegpu_py.layout.maps import (
    SgMapping,
    WgMapping,
    WgTiles,
    dealing_problem,
    from_maps,
    from_sg_map,
    from_wg_map,
    to_maps,
    to_sg_map,
    to_wg_map,
)
from xegpu_py.layout.nested import TILES, LayoutError, NestedLayout, Owners, reshape

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
