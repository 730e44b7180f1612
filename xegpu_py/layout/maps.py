"""`wg_map` and `sg_map`, as tiles and as nested layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from msgspec import Struct

from xegpu_py.drawing import COLOURS, GRID, Canvas, document
from xegpu_py.layout.nested import Ids, LayoutError, NestedLayout

# Conversion of XeTile's `wg_map` and XeGPU's `sg_map` to nested layouts, and back where possible.
#
# A `wg_map` distributes `sg_data` tiles round robin to a grid of `sg_layout` subgroups, a `sg_map` `wi_data` fragments
# to a grid of `wi_layout` work items. Both grids are numbered in row-major order. The order of a fragment's elements is
# that of `NestedLayout.fragment`.


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
    ones = (1,) * len(lanes)
    return NestedLayout(ones, rounds, ones, lanes, data, (0,) * len(lanes), _row_major(lanes))


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
    ones, none = (1,) * layout.rank, (0,) * layout.rank
    inner_tiles = (layout.batch_tile, layout.outer_tile, layout.thread_tile, layout.element_tile)
    return wg_map, to_sg_map(NestedLayout(ones, *inner_tiles, none, layout.thread_strides))


def _wg_of(layout: NestedLayout, subgroups: int | None) -> WgMapping:
    ids = layout.subgroups
    _check_row_major(ids, "a wg_map numbers subgroups")
    data = tuple(size // n for size, n in zip(layout.shape, layout.subgroup_tile))
    if subgroups is None or subgroups >= ids.period:
        return WgMapping(layout.subgroup_tile, data)
    ids.rounds(subgroups)
    first_dim = next(i for i, n in enumerate(layout.subgroup_tile) if n > 1)
    inner_subgroups = math.prod(layout.subgroup_tile[first_dim + 1 :])
    if subgroups % inner_subgroups:
        raise LayoutError(
            f"{subgroups} subgroups are not whole rows of the grid {list(layout.subgroup_tile)}, which each round of a "
            "wg_map has"
        )
    grid = list(layout.subgroup_tile)
    grid[first_dim] = subgroups // inner_subgroups
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
    extents = tuple(values)
    if len(extents) == 2 and rank == 1 and extents[0] == 1:
        extents = extents[1:]
    if len(extents) != rank:
        raise LayoutError(f"{name} = {list(values)} does not fit a shape of {rank} dimensions")
    if any(n < 1 for n in extents):
        raise LayoutError(f"{name} must be positive, but got {list(values)}")
    return extents


def _rounds(shape: Sequence[int], grid: Sequence[int], data: Sequence[int], map_name: str) -> tuple[int, ...]:
    for i, (size, n, tile_size) in enumerate(zip(shape, grid, data)):
        if size < 1 or size % (n * tile_size):
            raise LayoutError(f"{size} in dimension {i} is not divisible by {map_name} = {n} x {tile_size}")
    return tuple(size // (n * tile_size) for size, n, tile_size in zip(shape, grid, data))


def _row_major(grid: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(grid[i + 1 :]) if n > 1 else 0 for i, n in enumerate(grid))


def _check_row_major(ids: Ids, map_name: str) -> None:
    for i, (n, stride, expected_stride) in enumerate(zip(ids.tile, ids.strides, _row_major(ids.tile))):
        if n > 1 and stride == 0:
            raise LayoutError(f"dimension {i} has {n} tiles that are not distributed over {ids.what}s (stride 0)")
        if n > 1 and stride != expected_stride:
            raise LayoutError(
                f"{map_name} row by row without gaps, with a stride of {expected_stride} in dimension {i} of "
                f"{list(ids.tile)}, but {ids.what}_strides = {list(ids.strides)}"
            )


# The tiles of each subgroup of a workgroup under a `wg_map`: distributed round robin, or shared.
#
# `size` elements of a dimension in tiles of `data` are `count = size / data` tiles. With `grid` subgroups along it,
# subgroup i owns tiles i, i + grid, ... if there are at least as many tiles as subgroups (round robin). Otherwise
# it shares tile i modulo count.
#
# The subgroup is the outermost level of a nested layout, so only one dimension can have several rounds. Here each
# dimension is two of a nested layout: the rounds, which are batches, and the tiles of a round, which subgroups own.


def dealing_problem(size: int, grid: int, data: int, what: str = "elements") -> str | None:
    """Why `size` elements cannot be distributed in tiles of `data` to `grid` subgroups; None if they can."""
    if size % data:
        return f"{size} {what} are not divisible by sg_data = {data}"
    count = size // data
    if count % grid and grid % count:
        return (
            f"{count} parts of {data} {what} can neither be distributed evenly to sg_layout = {grid} subgroups nor be "
            "shared evenly by them"
        )
    return None


class WgTiles(Struct, frozen=True):
    """A shape in tiles that subgroups own; each attribute has one number a dimension.

    Attributes:
        shape: elements.
        grid: subgroups along each dimension.
        data: elements of a tile.
        strides: the difference between the ids of neighbours in the grid.

    Raises:
        LayoutError: if the tiles can neither be distributed evenly nor be shared evenly.
    """

    shape: tuple[int, ...]
    grid: tuple[int, ...]
    data: tuple[int, ...]
    strides: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.shape) == len(self.grid) == len(self.data) == len(self.strides):
            raise LayoutError(f"a map of {len(self.grid)} dimensions does not fit a shape of {len(self.shape)}")
        for size, grid, data in zip(self.shape, self.grid, self.data):
            problem = dealing_problem(size, grid, data)
            if problem:
                raise LayoutError(problem)

    @classmethod
    def of(cls, shape: Sequence[int], sg_layout: Sequence[int], sg_data: Sequence[int]) -> WgTiles:
        """The tiles of a shape under a `wg_map`, which numbers subgroups in row-major order."""
        strides = tuple(math.prod(sg_layout[i + 1 :]) for i in range(len(sg_layout)))
        return cls(tuple(shape), tuple(sg_layout), tuple(sg_data), strides)

    @property
    def subgroups(self) -> int:
        """The number of all subgroups."""
        return math.prod(self.grid)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of tiles along each dimension."""
        return tuple(size // data for size, data in zip(self.shape, self.data))

    @property
    def rounds(self) -> tuple[int, ...]:
        """The number of tiles that a subgroup owns along each dimension."""
        return tuple(max(count // grid, 1) for count, grid in zip(self.counts, self.grid))

    @property
    def owners(self) -> tuple[int, ...]:
        """Subgroups along each dimension that own different tiles of a round; others share with them."""
        return tuple(map(min, self.counts, self.grid))

    @property
    def is_exclusive(self) -> bool:
        """Whether no two subgroups own the same tile."""
        return self.owners == self.grid

    @property
    def own_count(self) -> int:
        """The number of all tiles that a subgroup owns."""
        return math.prod(self.rounds)

    @property
    def layout(self) -> NestedLayout:
        """The shape of the grid of tiles: for each dimension the number of rounds and of the tiles of a round."""
        rank = len(self.shape)
        ones, none = (1,) * 2 * rank, (0,) * 2 * rank
        owners = tuple(n for owners in self.owners for n in (1, owners))
        rounds = tuple(n for rounds in self.rounds for n in (rounds, 1))
        strides = tuple(n for owners, stride in zip(self.owners, self.strides) for n in (0, stride * (owners > 1)))
        return NestedLayout(owners, rounds, ones, ones, ones, strides, none)

    def starts(self, subgroup: int) -> list[tuple[int, ...]]:
        """The start of each tile of a subgroup, by round; the last dimension varies fastest."""
        return _starts(self)[subgroup]

    def by_start(self) -> dict[tuple[int, ...], list[int]]:
        """The subgroups that own each tile, by the tile's start."""
        owners_of: dict[tuple[int, ...], list[int]] = {}
        for subgroup in range(self.subgroups):
            for start in self.starts(subgroup):
                owners_of.setdefault(start, []).append(subgroup)
        return owners_of

    def replaced(self, dim: int, size: int, data: int) -> WgTiles:
        """The same subgroups on another division of one dimension."""
        shape, tile = list(self.shape), list(self.data)
        shape[dim], tile[dim] = size, data
        return WgTiles(tuple(shape), self.grid, tuple(tile), self.strides)

    def transposed(self) -> WgTiles:
        """The same tiles with the order of dimensions reversed; each subgroup keeps its own."""
        return WgTiles(*(values[::-1] for values in (self.shape, self.grid, self.data, self.strides)))


@lru_cache(maxsize=1024)
def _starts(tiles: WgTiles) -> list[list[tuple[int, ...]]]:
    """Return, for each subgroup, the starts of its tiles."""
    dims = list(zip(tiles.strides, tiles.grid, tiles.owners, tiles.rounds, tiles.data))
    tile_starts = []
    for subgroup in range(tiles.subgroups):
        dealing = [(n, subgroup // stride % n % owners, rounds, data) for stride, n, owners, rounds, data in dims]
        tile_starts.append(
            list(product(*([(i * n + at) * data for i in range(rounds)] for n, at, rounds, data in dealing)))
        )
    return tile_starts


# Pictures, in SVG, of which subgroups own which tiles under a `wg_map`.

_SCALE, _MARGIN, _TOP, _LEAST = 2.0, 14.0, 44.0, 26.0


def listed(numbers: Sequence[int]) -> str:
    """Numbers as in `0-3`, or `0, 4, ... 28` if they are not consecutive."""
    if len(numbers) == 1:
        return str(numbers[0])
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers)) if len(numbers) < 4 else f"{numbers[0]}, {numbers[1]}, ... {numbers[-1]}"


def tile_picture(title: str, shape: Sequence[int], sg_layout: Sequence[int], sg_data: Sequence[int]) -> str:
    """The text of an SVG file: a matrix in tiles, each with the ids of the subgroups that own it.

    Raises:
        LayoutError: if the map does not divide the shape.
    """
    owners = WgTiles.of(shape, sg_layout, sg_data).by_start()
    label = max(len(listed(ids)) for ids in owners.values()) * 8.0 + 8
    down = max(_SCALE, _LEAST / sg_data[0])
    across = max(_SCALE, _LEAST / sg_data[1], label / sg_data[1])
    canvas = Canvas()
    canvas.text(_MARGIN, 26, title, font_size=15, font_weight="bold")
    for (row, column), ids in owners.items():
        x, y, w, h = _MARGIN + column * across, _TOP + row * down, sg_data[1] * across, sg_data[0] * down
        region_text = f"rows {row} to {row + sg_data[0] - 1}, columns {column} to {column + sg_data[1] - 1}"
        canvas.rect(x, y, w, h, COLOURS[ids[0] % len(COLOURS)], title=region_text, stroke=GRID)
        canvas.text(x + w / 2, y + h / 2 + 4, listed(ids), text_anchor="middle", font_size=13, pointer_events="none")
    width = max(shape[1] * across, 9.0 * len(title)) + 2 * _MARGIN
    owners_text = "; ".join(f"{listed(ids)} from row {row}, column {column}" for (row, column), ids in owners.items())
    return document(canvas, width, _TOP + shape[0] * down + _MARGIN, title, f"Subgroups of each tile: {owners_text}.")
