"""The tiles of each subgroup of a workgroup under a `wg_map`: distributed round robin, or shared.

`size` elements of a dimension in tiles of `data` are `count = size / data` tiles. With `grid` subgroups along it,
subgroup i owns tiles i, i + grid, ... if there are at least as many tiles as subgroups (round robin). Otherwise
it shares tile i modulo count.

The subgroup is the outermost level of a nested layout, so only one dimension can have several rounds. Here each
dimension is two of a nested layout: the rounds, which are batches, and the tiles of a round, which subgroups own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from xegpu_py.layout.ids import LayoutError
from xegpu_py.layout.nested import NestedLayout


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


@dataclass(frozen=True)
class WgTiles:
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
    def own_count(self) -> int:
        """The number of all tiles that a subgroup owns."""
        return math.prod(self.rounds)

    @property
    def is_shared(self) -> bool:
        """Whether several subgroups own the same tile."""
        return self.owners != self.grid

    @property
    def layout(self) -> NestedLayout:
        """The shape of the grid of tiles: for each dimension the number of rounds and of the tiles of a round."""
        rank = len(self.shape)
        one, none = (1,) * 2 * rank, (0,) * 2 * rank
        owners = tuple(n for owners in self.owners for n in (1, owners))
        rounds = tuple(n for rounds in self.rounds for n in (rounds, 1))
        strides = tuple(n for owners, stride in zip(self.owners, self.strides) for n in (0, stride * (owners > 1)))
        return NestedLayout(owners, rounds, one, one, one, strides, none)

    def starts(self, subgroup: int) -> list[tuple[int, ...]]:
        """The start of each tile of a subgroup, by round; the last dimension varies fastest."""
        return _starts(self)[subgroup]

    def by_start(self) -> dict[tuple[int, ...], list[int]]:
        """The subgroups that own each tile, by the tile's start."""
        found: dict[tuple[int, ...], list[int]] = {}
        for subgroup in range(self.subgroups):
            for start in self.starts(subgroup):
                found.setdefault(start, []).append(subgroup)
        return found

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
    """For each subgroup, the starts of its tiles."""
    dims = list(zip(tiles.strides, tiles.grid, tiles.owners, tiles.rounds, tiles.data))
    found = []
    for subgroup in range(tiles.subgroups):
        places = [(n, subgroup // stride % n % owners, rounds, data) for stride, n, owners, rounds, data in dims]
        found.append(list(product(*([(i * n + at) * data for i in range(rounds)] for n, at, rounds, data in places))))
    return found
