"""Layouts: which lane of which subgroup holds which element of a vector, and in which register position.

`NestedLayout` is IREE's `nested_layout`; `maps` goes from it to the `wg_map` and `sg_map` of XeTile and XeGPU and back.
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

__all__ = [
    "TILES",
    "LayoutError",
    "NestedLayout",
    "Owners",
    "SgMapping",
    "WgMapping",
    "from_maps",
    "from_sg_map",
    "from_wg_map",
    "reshape",
    "to_maps",
    "to_sg_map",
    "to_wg_map",
]
