"""The decomposition of subgroup ids or lane ids into virtual ids, one for each dimension of a grid of tiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class LayoutError(ValueError):
    """An invalid layout, or one that another kind of layout cannot express."""


@dataclass(frozen=True)
class Ids:
    """The ids of one level: `virtual[i] = (id // strides[i]) % tile[i]`.

    A dimension with stride zero is not distributed: each owner of a part of the grid owns all of that dimension.

    Attributes:
        what: "subgroup" or "thread", for messages.
        tile: the size of the grid in each dimension.
        strides: the difference between the ids of neighbours in each dimension.
    """

    what: str
    tile: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def split(self) -> list[int]:
        """The distributed dimensions, in order of decreasing stride."""
        dims = [i for i, (n, stride) in enumerate(zip(self.tile, self.strides)) if n > 1 and stride > 0]
        return sorted(dims, key=lambda i: -self.strides[i])

    @property
    def whole(self) -> list[int]:
        """The dimensions of more than one tile that are not distributed."""
        return [i for i, (n, stride) in enumerate(zip(self.tile, self.strides)) if n > 1 and stride == 0]

    @property
    def period(self) -> int:
        """The number of ids after which virtual ids repeat; at least 1."""
        return max((self.strides[i] * self.tile[i] for i in self.split), default=1)

    @property
    def copies_in_round(self) -> int:
        """The number of tiles of each owner for one virtual id: those of the dimensions that are not distributed."""
        return math.prod(self.tile[i] for i in self.whole)

    def problem(self) -> str | None:
        """The reason why virtual ids and ids do not determine each other; None if they do."""
        for i, stride in enumerate(self.strides):
            if stride < 0:
                return f"{self.what}_strides must not be negative, but dimension {i} has {stride}"
        inner_to_outer = self.split[::-1]
        for inner, outer in itertools.pairwise(inner_to_outer):
            reach = self.strides[inner] * self.tile[inner]
            if self.strides[outer] % reach:
                return (
                    f"{self.what}_strides {list(self.strides)} mix dimensions {inner} and {outer}: the stride "
                    f"{self.strides[outer]} must be a multiple of {self.strides[inner]} x {self.tile[inner]} = {reach}"
                )
        return None

    def virtual(self, ids: Any) -> list[Ints]:
        """The virtual id in each dimension, of any array of ids; 0 where a dimension is not distributed."""
        array = np.asarray(ids, np.int64)
        return [array // stride % n if stride else np.zeros_like(array) for n, stride in zip(self.tile, self.strides)]

    def ids(self, virtual: Sequence[Any]) -> Ints:
        """The least id that has the given virtual id in each dimension."""
        total = np.zeros((), np.int64)
        for v, stride in zip(virtual, self.strides):
            total = total + np.asarray(v, np.int64) * stride
        return total

    def rounds(self, present: int) -> int:
        """The number of rounds in which `present` subgroups (or lanes) cover all tiles.

        Raises:
            LayoutError: if the tiles cannot be divided evenly among them.
        """
        period = self.period
        if present < 1 or (period % present and present % period):
            raise LayoutError(
                f"a layout over {period} {self.what}s cannot be spread evenly over {present}: "
                "one of the two numbers must be a multiple of the other"
            )
        return max(period // present, 1)

    def same(self, present: int) -> Ints:
        """The ids whose virtual ids are all zero. Added to `ids(v)` they give all ids that have `v`."""
        every = np.arange(max(self.period, present))
        first = np.ones(every.shape, bool)
        for v in self.virtual(every):
            first &= v == 0
        return every[first]
