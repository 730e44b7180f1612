"""The pictures of the documentation. `make docs` writes them: `python docs/site/pictures.py docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from xegpu_py.layout import NestedLayout, from_sg_map, from_wg_map
from xegpu_py.layout.maps import tile_picture
from xegpu_py.layout.nested import layout_picture
from xegpu_py.layout.pictures import dpas_picture

OPERANDS = {
    "dpas-16bit": ("bf", "bf"),
    "dpas-8bit": ("s8", "s8"),
    "dpas-4bit": ("s4", "s4"),
    "dpas-2bit": ("s2", "s2"),
    "dpas-s4-s8": ("s4", "s8"),
}
"""Of dpas-layout.md: precisions of src1 and src2."""

LAYOUTS = {
    "nested-64x64": (
        "The specification's 64x64 example over 4 subgroups of 64 lanes",
        NestedLayout((2, 1), (2, 4), (1, 1), (16, 4), (1, 4), (1, 0), (1, 16)),
        4,
    ),
    "outers": (
        "A grid of 2x5 lanes, two outers of it",
        NestedLayout((1, 1), (1, 1), (2, 1), (2, 5), (1, 1), (0, 0), (5, 1)),
        None,
    ),
    "sg-map": (
        "sg_map wi_layout = [2, 8], wi_data = [1, 2] of an 8x16 block: four rounds",
        from_sg_map([2, 8], [1, 2], [8, 16]),
        None,
    ),
    "wg-map": (
        "wg_map sg_layout = [2, 2], sg_data = [4, 8] of a 16x16 tile: two rounds",
        from_wg_map([2, 2], [4, 8], [16, 16]),
        4,
    ),
}
"""Of layouts.md: title, layout, and subgroups."""

TILES = {
    "c": ("C: 256x256, sg_layout = [8, 4], sg_data = [32, 64]", (256, 256), (8, 4), (32, 64)),
    "a": ("A: 256x32, sg_layout = [8, 4], sg_data = [32, 32]: shared by four", (256, 32), (8, 4), (32, 32)),
    "b": ("B: 32x256, sg_layout = [8, 4], sg_data = [32, 64]: shared by eight", (32, 256), (8, 4), (32, 64)),
    "round-robin": ("64x128, sg_layout = [2, 2], sg_data = [16, 32]: round robin", (64, 128), (2, 2), (16, 32)),
}
"""Of xetile.md: title, shape, sg_layout and sg_data."""


def pictures() -> dict[str, str]:
    """All pictures, by the paths of their files in docs/."""
    return {
        **{f"visa/{name}.svg": dpas_picture(W, A) for name, (W, A) in OPERANDS.items()},
        **{
            f"layout/{name}.svg": layout_picture(layout, subgroups=subgroups, title=title)
            for name, (title, layout, subgroups) in LAYOUTS.items()
        },
        **{f"xetile/{name}.svg": tile_picture(*given) for name, given in TILES.items()},
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(print("pictures.py: skipped: needs the folder of the pages: python docs/site/pictures.py docs"))
    for path, svg in pictures().items():
        target = Path(sys.argv[1], path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(svg, encoding="utf-8")
