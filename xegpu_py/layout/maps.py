"""Conversion of XeTile's `wg_map` and XeGPU's `sg_map` to nested layouts, and back where possible.

A `wg_map` distributes `sg_data` tiles round robin to a grid of `sg_layout` subgroups, a `sg_map` `wi_data` fragments to
a grid of `wi_layout` work items. Both grids are numbered in row-major order.
The order of a fragment's elements is that of `NestedLayout.fragment`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from xegpu_py.layout.ids import Ids, LayoutError
from xegpu_py.layout.nested import NestedLayout


class SgMapping(NamedTuple):
    """The parameters of `#xegpu.sg_map`: the grid of work items, and the fragment of each."""

    wi_layout: tuple[int, ...]
    wi_data: tuple[int, ...]


class WgMapping(NamedTuple):
    """The parameters of `#xetile.wg_map`: the grid of subgroups, and the tile of each."""

    sg_layout: tuple[int, ...]
    sg_data: tuple[int, ...]


def from_sg_map(wi_layout: Sequence[int], wi_data: Sequence[int], shape: Sequence[int]) -> NestedLayout:
    """The layout of a block of `shape` under a `sg_map`; rounds become batches.

    For a 1D block the second numbers of a two-dimensional map are used, and the first must be 1 (RFC, create_nd_tdesc).

    Raises:
        LayoutError: if the block is not divisible by `wi_layout` x `wi_data`.
    """
    lanes, data = _of_rank("wi_layout", wi_layout, shape), _of_rank("wi_data", wi_data, shape)
    rounds = _rounds(shape, lanes, data, "wi_layout x wi_data")
    one = (1,) * len(lanes)
    return NestedLayout(one, rounds, one, lanes, data, (0,) * len(lanes), _row_major(lanes))


def to_sg_map(layout: NestedLayout) -> SgMapping:
    """The `sg_map` with the same elements in each lane as the layout.

    Raises:
        LayoutError: with the reason, if there is none.
    """
    if layout.rank not in (1, 2):
        raise LayoutError(f"a sg_map has one or two dimensions, but the layout has {layout.rank}")
    if math.prod(layout.subgroup_tile) > 1:
        raise LayoutError(
            f"subgroup_tile = {list(layout.subgroup_tile)} splits the vector over subgroups, but a sg_map is of one"
        )
    _check_row_major(layout.threads, "a sg_map numbers work items")
    lead = (1,) * (2 - layout.rank)
    return SgMapping(lead + layout.thread_tile, lead + layout.element_tile)


def from_wg_map(sg_layout: Sequence[int], sg_data: Sequence[int], shape: Sequence[int]) -> NestedLayout:
    """The layout of a tile of `shape` under a `wg_map`, in which every lane holds all data of its subgroup.

    Rounds in a dimension of one subgroup become batches. Rounds in the first of the others become more subgroups than
    there are: give `subgroups = math.prod(sg_layout)` to the layout's methods, so that ids wrap around.

    Raises:
        LayoutError: if the tile is not divisible by `sg_layout` x `sg_data`, or has several rounds in another
            dimension than the first: in a nested layout, the subgroup's part of such a dimension is contiguous.
    """
    data = _of_rank("sg_data", sg_data, shape)
    return _with_subgroups(sg_layout, data, shape, from_sg_map((1,) * len(shape), data, data))


def from_maps(
    sg_layout: Sequence[int],
    sg_data: Sequence[int],
    wi_layout: Sequence[int],
    wi_data: Sequence[int],
    shape: Sequence[int],
) -> NestedLayout:
    """The layout of a tile of `shape` under a `wg_map`, and a `sg_map` in each subgroup's data.

    Raises:
        LayoutError: if a map does not divide the shape, or no layout expresses it; see `from_wg_map`.
    """
    data = _of_rank("sg_data", sg_data, shape)
    return _with_subgroups(sg_layout, data, shape, from_sg_map(wi_layout, wi_data, data))


def to_wg_map(layout: NestedLayout, *, subgroups: int | None = None) -> WgMapping:
    """The `wg_map` with the same elements in each subgroup as the layout, all of them in each lane.

    Args:
        layout: the layout.
        subgroups: the number of subgroups, if it is less than the layout's.

    Raises:
        LayoutError: with the reason, if there is none.
    """
    if math.prod(layout.thread_tile) > 1:
        raise LayoutError(
            f"thread_tile = {list(layout.thread_tile)} splits a subgroup's data over lanes, which a wg_map cannot "
            "express; to_maps gives a wg_map and a sg_map"
        )
    return _wg_of(layout, subgroups)


def to_maps(layout: NestedLayout, *, subgroups: int | None = None) -> tuple[WgMapping, SgMapping]:
    """The `wg_map` and the `sg_map` that together have the same elements in each lane as the layout.

    Raises:
        LayoutError: with the reason, if there are none.
    """
    wg_map = _wg_of(layout, subgroups)
    one, none = (1,) * layout.rank, (0,) * layout.rank
    inner = (layout.batch_tile, layout.outer_tile, layout.thread_tile, layout.element_tile)
    return wg_map, to_sg_map(NestedLayout(one, *inner, none, layout.thread_strides))


def _wg_of(layout: NestedLayout, subgroups: int | None) -> WgMapping:
    ids = layout.subgroups
    _check_row_major(ids, "a wg_map numbers subgroups")
    data = tuple(size // n for size, n in zip(layout.shape, layout.subgroup_tile))
    if subgroups is None or subgroups >= ids.period:
        return WgMapping(layout.subgroup_tile, data)
    ids.rounds(subgroups)
    first = next(i for i, n in enumerate(layout.subgroup_tile) if n > 1)
    inner = math.prod(layout.subgroup_tile[first + 1 :])
    if subgroups % inner:
        raise LayoutError(
            f"{subgroups} subgroups are not whole rows of the grid {list(layout.subgroup_tile)}, which each round of a "
            "wg_map has"
        )
    grid = list(layout.subgroup_tile)
    grid[first] = subgroups // inner
    return WgMapping(tuple(grid), data)


def _with_subgroups(
    sg_layout: Sequence[int], sg_data: Sequence[int], shape: Sequence[int], inner: NestedLayout
) -> NestedLayout:
    groups = _of_rank("sg_layout", sg_layout, shape)
    rounds = _rounds(shape, groups, sg_data, "sg_layout x sg_data")
    tile, batch = list(groups), list(inner.batch_tile)
    for i, n in enumerate(rounds):
        if groups[i] == 1:
            # Rounds of tiles enclose the rounds of fragments, as batches do.
            batch[i] *= n
        elif n > 1 and math.prod(groups[:i]) > 1:
            raise LayoutError(
                f"dimension {i} has {n} rounds of its {groups[i]} subgroups; the subgroup is the outermost level of a "
                "nested layout, so only the first distributed dimension can have several rounds"
            )
        else:
            tile[i] *= n
    strides = tuple(s if n > 1 else 0 for n, s in zip(tile, _row_major(groups)))
    return NestedLayout(
        tuple(tile),
        tuple(batch),
        inner.outer_tile,
        inner.thread_tile,
        inner.element_tile,
        strides,
        inner.thread_strides,
    )


def _of_rank(name: str, values: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    rank = len(shape)
    given = tuple(values)
    if len(given) == 2 and rank == 1 and given[0] == 1:
        given = given[1:]
    if len(given) != rank:
        raise LayoutError(f"{name} = {list(values)} does not fit a shape of {rank} dimensions")
    if any(n < 1 for n in given):
        raise LayoutError(f"{name} must be positive, but got {list(values)}")
    return given


def _rounds(shape: Sequence[int], grid: Sequence[int], data: Sequence[int], what: str) -> tuple[int, ...]:
    for i, (size, n, part) in enumerate(zip(shape, grid, data)):
        if size < 1 or size % (n * part):
            raise LayoutError(f"{size} in dimension {i} is not divisible by {what} = {n} x {part}")
    return tuple(size // (n * part) for size, n, part in zip(shape, grid, data))


def _row_major(grid: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(grid[i + 1 :]) if n > 1 else 0 for i, n in enumerate(grid))


def _check_row_major(ids: Ids, who: str) -> None:
    for i, (n, stride, wanted) in enumerate(zip(ids.tile, ids.strides, _row_major(ids.tile))):
        if n > 1 and stride == 0:
            raise LayoutError(f"dimension {i} has {n} tiles that are not distributed over {ids.what}s (stride 0)")
        if n > 1 and stride != wanted:
            raise LayoutError(
                f"{who} row by row without gaps, with a stride of {wanted} in dimension {i} of "
                f"{list(ids.tile)}, but {ids.what}_strides = {list(ids.strides)}"
            )
