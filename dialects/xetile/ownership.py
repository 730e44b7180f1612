"""Who owns what: the parts that a `wg_map` gives to each subgroup of a workgroup.

Each dimension is divided by itself. `size` elements in parts of `data` are `count = size / data` parts. With `layout`
subgroups along the dimension, subgroup i owns parts i, i + layout, ... if there are at least as many parts as subgroups
(round robin), and else part i modulo count, which it shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def parts_problem(size: int, layout: int, data: int, what: str = "elements") -> str | None:
    """Why `size` elements cannot be dealt out in parts of `data` to `layout` subgroups; None if they can."""
    if size % data:
        return f"{size} {what} are not divisible by sg_data = {data}"
    count = size // data
    if count % layout and layout % count:
        return (
            f"{count} parts of {data} {what} can neither be dealt out evenly to sg_layout = {layout} subgroups nor be "
            "shared evenly by them"
        )
    return None


@dataclass(frozen=True)
class Division:
    """One dimension, divided.

    Attributes:
        size: elements.
        layout: subgroups along the dimension.
        data: elements of a part.
    """

    size: int
    layout: int
    data: int

    @property
    def count(self) -> int:
        """Parts in all."""
        return self.size // self.data

    @property
    def rounds(self) -> int:
        """Parts that a subgroup owns."""
        return max(self.count // self.layout, 1)

    @property
    def owners(self) -> int:
        """Subgroups among which the parts of a round are dealt out; others share with them."""
        return min(self.count, self.layout)

    @property
    def is_shared(self) -> bool:
        """Whether several subgroups own the same part."""
        return self.count < self.layout

    def start(self, index: int, round_: int = 0) -> int:
        """Where the part begins that subgroup `index` owns in a round."""
        return (index % self.owners + round_ * self.layout) * self.data

    def owned(self, index: int) -> frozenset[int]:
        """The elements that subgroup `index` owns."""
        return frozenset(self.start(index, r) + i for r in range(self.rounds) for i in range(self.data))


@dataclass(frozen=True)
class Ownership:
    """A whole shape, divided in each dimension.

    Attributes:
        dims: the dimensions.
        numbering: the dimensions from the slowest to the fastest as subgroups are numbered; by default row by row.
    """

    dims: tuple[Division, ...]
    numbering: tuple[int, ...] = ()

    @classmethod
    def of(cls, shape: Sequence[int], layout: Sequence[int], data: Sequence[int]) -> Ownership:
        """The division of a shape by a map."""
        return cls(tuple(Division(*d) for d in zip(shape, layout, data)))

    @property
    def subgroups(self) -> int:
        """Subgroups in all."""
        return math.prod(d.layout for d in self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that is divided."""
        return tuple(d.size for d in self.dims)

    @property
    def part(self) -> tuple[int, ...]:
        """The shape of a part."""
        return tuple(d.data for d in self.dims)

    @property
    def rounds(self) -> tuple[int, ...]:
        """Parts that a subgroup owns, along each dimension."""
        return tuple(d.rounds for d in self.dims)

    @property
    def is_shared(self) -> bool:
        """Whether several subgroups own the same part."""
        return any(d.is_shared for d in self.dims)

    def strides(self) -> dict[int, int]:
        """For each dimension how many subgroups on the next one along it is, the slowest first."""
        found: dict[int, int] = {}
        stride = self.subgroups
        for d in self.numbering or range(len(self.dims)):
            stride //= self.dims[d].layout
            found[d] = stride
        return found

    def place(self, subgroup: int) -> tuple[int, ...]:
        """A subgroup's place in the grid of subgroups."""
        strides = self.strides()
        return tuple(subgroup // strides[d] % dim.layout for d, dim in enumerate(self.dims))

    def replaced(self, dim: int, size: int, data: int) -> Ownership:
        """The same grid of subgroups on another division of one dimension."""
        dims = tuple(Division(size, d.layout, data) if i == dim else d for i, d in enumerate(self.dims))
        return Ownership(dims, self.numbering)

    def transposed(self) -> Ownership:
        """The same parts with rows and columns changed; each subgroup keeps its own."""
        return Ownership(self.dims[::-1], tuple(1 - d for d in self.numbering or (0, 1)))

    def starts(self, subgroup: int) -> list[tuple[int, ...]]:
        """Where the parts of a subgroup begin, round by round, the last dimension fastest."""
        found: list[tuple[int, ...]] = [()]
        for d, index in zip(self.dims, self.place(subgroup)):
            found = [(*f, d.start(index, r)) for f in found for r in range(d.rounds)]
        return found
