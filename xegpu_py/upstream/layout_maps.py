"""From upstream's layouts of subgroups to xetile's maps."""

from __future__ import annotations

import math
from functools import lru_cache

from xegpu_py.dialects.xegpu.upstream_types import Layout, Slice
from xegpu_py.dialects.xetile.types import WgMap


def subgroups_of(layout: Layout | Slice) -> int | None:
    """The number of subgroups of a layout; None if it defines none."""
    return math.prod(layout.sg_layout) if layout.sg_layout else None


@lru_cache(maxsize=1024)
def map_of(layout: Layout | Slice, shape: tuple[int, ...], split: int, subgroups: int) -> WgMap | None:
    """The map of a matrix whose rows are the first `split` dimensions of a vector with a layout.

    A part may belong to another subgroup than upstream says: that changes no value. None if the layout is one of
    other subgroups than the kernel's, or xetile cannot divide the matrix so.
    """
    root, left = layout.base, layout.kept
    if not root.sg_layout or math.prod(root.sg_layout) != subgroups or len(left) != len(shape):
        return None
    grid = [root.sg_layout[d] for d in left]
    data = [root.sg_data[d] for d in left] if root.sg_data else [max(1, n // g) for n, g in zip(shape, grid)]
    found = [math.prod(grid[:split]), math.prod(grid[split:])]
    # Subgroups along removed dimensions share the other dimensions.
    shared = subgroups // math.prod(found)
    if shared > 1:
        if math.prod(shape[split:]) == 1:
            found[1] *= shared
        elif math.prod(shape[:split]) == 1:
            found[0] *= shared
        else:
            return None
    made = WgMap((found[0], found[1]), (math.prod(data[:split]), math.prod(data[split:])))
    return made if made.problem_for((math.prod(shape[:split]), math.prod(shape[split:]))) is None else None


def even_map(shape: tuple[int, int], subgroups: int) -> WgMap:
    """A map by which each subgroup has a part of a matrix; if no map divides it, each subgroup has the whole matrix."""
    rows, columns = shape
    if rows % subgroups == 0:
        return WgMap((subgroups, 1), (rows // subgroups, columns))
    if columns % subgroups == 0:
        return WgMap((1, subgroups), (rows, columns // subgroups))
    return WgMap((1, subgroups), (rows, columns))
