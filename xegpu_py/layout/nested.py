"""Nested layouts: the subgroup, lane and register that hold an element."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct, structs
from numpy.typing import ArrayLike, NDArray

from xegpu_py.deferred import deferred

if TYPE_CHECKING:
    from xegpu_py.layout import pictures
else:
    pictures = deferred("xegpu_py.layout.pictures")

# Nested layouts: a vector as tiles of tiles, of subgroups, batches, outers, threads and elements.
#
# Each dimension of a vector is split as `subgroup x batch x outer x thread x element`, from the largest part to the
# smallest, so that an element's index in a dimension is
#
#     (((subgroup * batch_tile + batch) * outer_tile + outer) * thread_tile + thread) * element_tile + element
#
# Strides determine the owner of a tile (see `Ids`). A thread's registers hold its batches, outers and elements,
# row-major in this order: `batch_0, .., outer_0, .., element_0, ..`. The rules are those of IREE's NestedLayoutAttr.

TILES = ("subgroup_tile", "batch_tile", "outer_tile", "thread_tile", "element_tile")
"""The five levels, from the outermost to the innermost."""


class Owners(NamedTuple):
    """The owners of elements: arrays of the elements' shape with one more axis, over the copies."""

    subgroup: NDArray[Any]
    thread: NDArray[Any]
    position: NDArray[Any]
    """The position in the thread's registers, in elements."""


_MNEMONIC = "#iree_vector_ext.nested_layout"

_LIST = re.compile(r"\s*(\w+)\s*=\s*\[([\s\d,-]*)\]\s*(,|\Z)")


@dataclass(frozen=True)
class NestedLayout:
    """A layout of a vector of `rank` dimensions; each attribute has one number for each dimension.

    Layouts are equal if their numbers are; `indices` compares the mappings that they describe.

    Attributes:
        subgroup_tile: subgroups that share the vector.
        batch_tile: unrolled instructions of a subgroup.
        outer_tile: repetitions of the grid of threads in an instruction.
        thread_tile: threads (lanes) that share one repetition.
        element_tile: consecutive elements of a thread.
        subgroup_strides: the difference between the ids of neighbouring subgroups; 0 for a dimension that is not
            distributed over subgroups.
        thread_strides: the same for the lanes of a subgroup.

    Raises:
        LayoutError: if the ranks differ, a tile is not positive, or strides do not determine virtual ids.
    """

    subgroup_tile: tuple[int, ...]
    batch_tile: tuple[int, ...]
    outer_tile: tuple[int, ...]
    thread_tile: tuple[int, ...]
    element_tile: tuple[int, ...]
    subgroup_strides: tuple[int, ...]
    thread_strides: tuple[int, ...]

    def __post_init__(self) -> None:
        for f in fields(self):
            values = getattr(self, f.name)
            try:
                object.__setattr__(self, f.name, tuple(v.__index__() for v in values))
            except (TypeError, AttributeError):
                raise LayoutError(f"{f.name} must be a list of integers, but got {values!r}") from None
        rank = len(self.subgroup_tile)
        for f in fields(self):
            values = getattr(self, f.name)
            if len(values) != rank:
                raise LayoutError(f"{f.name} has {len(values)} dimensions, but subgroup_tile has {rank}")
            if f.name in TILES and any(n < 1 for n in values):
                raise LayoutError(f"{f.name} must be positive, but got {list(values)}")
        problem = self.subgroups.problem() or self.threads.problem()
        if problem:
            raise LayoutError(problem)

    def _repr_svg_(self) -> str:

        return layout_picture(self)

    def __str__(self) -> str:
        """The attribute of the dialect `iree_vector_ext`, as `iree-opt` prints it."""
        return f"{_MNEMONIC}<{', '.join(f'{f.name} = {list(getattr(self, f.name))}' for f in fields(self))}>"

    @classmethod
    def parse(cls, text: str) -> NestedLayout:
        """Parse a layout, with or without the enclosing `#iree_vector_ext.nested_layout<>`.

        Raises:
            LayoutError: if the text is malformed, or the layout invalid.
        """
        body = text.strip()
        if body.startswith("#"):
            head, _, parameters_text = body.partition("<")
            if head != _MNEMONIC or not parameters_text.endswith(">"):
                raise LayoutError(f"expected {_MNEMONIC}<...>, but got '{text}'")
            body = parameters_text[:-1]
        found: dict[str, tuple[int, ...]] = {}
        names = [f.name for f in fields(cls)]
        at = 0
        while at < len(body):
            m = _LIST.match(body, at)
            if not m or m[1] not in names or m[1] in found:
                expected_names = ", ".join(n for n in names if n not in found) or "the end"
                raise LayoutError(f"expected one of {expected_names}, each as 'name = [..]', at '{body[at : at + 40]}'")
            try:
                found[m[1]] = tuple(int(n) for n in m[2].split(",")) if m[2].strip() else ()
            except ValueError:
                raise LayoutError(f"{m[1]} must be a list of integers, but got [{m[2]}]") from None
            at = m.end()
        missing_names = [n for n in names if n not in found]
        if missing_names:
            raise LayoutError(f"a nested layout needs {', '.join(missing_names)}")
        return cls(**found)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.subgroup_tile)

    @cached_property
    def subgroups(self) -> Ids:
        """The decomposition of subgroup ids."""
        return Ids("subgroup", self.subgroup_tile, self.subgroup_strides)

    @cached_property
    def threads(self) -> Ids:
        """The decomposition of a subgroup's lane ids."""
        return Ids("thread", self.thread_tile, self.thread_strides)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole, undistributed vector."""
        return tuple(math.prod(tiles) for tiles in zip(*(getattr(self, name) for name in TILES)))

    @property
    def distributed_shape(self) -> tuple[int, ...]:
        """The shape of a thread's vector: batches, then outers, then elements; of rank 3 x `rank`."""
        return self.batch_tile + self.outer_tile + self.element_tile

    @property
    def fragment_shape(self) -> tuple[int, ...]:
        """The shape of a thread's vector with the batches, outers and elements of each dimension joined."""
        return tuple(map(math.prod, zip(self.batch_tile, self.outer_tile, self.element_tile)))

    def _present(self, subgroups: int | None, threads: int | None) -> tuple[int, int]:
        """The numbers of subgroups and lanes; by default as many as the layout needs."""
        return (
            self.subgroups.period if subgroups is None else subgroups,
            self.threads.period if threads is None else threads,
        )

    def part_shape(self, subgroups: int | None = None, threads: int | None = None) -> tuple[int, ...]:
        """The shape of the part of one lane of one subgroup.

        This is `distributed_shape` if each lane has one tile. With fewer subgroups or lanes than tiles, or with
        dimensions of more than one tile that are not distributed, each has several, along an additional first axis.

        Raises:
            LayoutError: if the layout cannot be spread evenly over so many subgroups or lanes.
        """
        present = self._present(subgroups, threads)
        turns = math.prod(
            ids.rounds(n) * ids.copies_in_round for ids, n in zip((self.subgroups, self.threads), present)
        )
        return self.distributed_shape if turns == 1 else (turns, *self.distributed_shape)

    def _axes(self, present: tuple[int, int]) -> Iterator[tuple[str, int, int]]:
        """The digits of a position, outermost first: level, dimension (-1 for rounds) and extent."""
        for level, ids, n in zip(TILES[::3], (self.subgroups, self.threads), present):
            yield level, -1, ids.rounds(n)
            for i in ids.whole:
                yield level, i, ids.tile[i]
        for level in ("batch_tile", "outer_tile", "element_tile"):
            for i, n in enumerate(getattr(self, level)):
                yield level, i, n

    def _position_weights(self, present: tuple[int, int]) -> dict[tuple[str, int], int]:
        weights, weight = {}, 1
        for level, i, n in reversed(list(self._axes(present))):
            weights[level, i] = weight
            weight *= n
        return weights

    def _index_weights(self) -> dict[tuple[str, int], int]:
        """The weight of a level's digit in the index of a dimension."""
        weights = {}
        for i in range(self.rank):
            weight = 1
            for level in reversed(TILES):
                weights[level, i] = weight
                weight *= getattr(self, level)[i]
        return weights

    def owners(
        self, index: Sequence[ArrayLike] | None = None, *, subgroups: int | None = None, threads: int | None = None
    ) -> Owners:
        """The owners of the elements at `index`.

        Args:
            index: integer arrays as numpy's indexing takes them, one a dimension, broadcast against each other, such as
                `(3, 5)` or `np.indices(shape)`; by default all elements of the vector.
            subgroups: the number of subgroups there are, by default those that the layout needs. With fewer, several
                tiles fall to subgroup `id mod subgroups`; with more, some hold the same.
            threads: the same for the lanes of a subgroup.

        Returns:
            Arrays of the index's shape and an axis over copies. Equal layouts and counts give the same order of copies.

        Raises:
            IndexError: if an index is outside the vector, or there are too many or too few.
            LayoutError: if the layout cannot be spread evenly over so many.
        """
        arrays = [np.asarray(x) for x in (np.ix_(*map(range, self.shape)) if index is None else index)]
        if len(arrays) != self.rank:
            raise IndexError(f"expected {self.rank} indices, but got {len(arrays)}")
        present = self._present(subgroups, threads)
        positions = math.prod(n for _, _, n in self._axes(present))
        index_dtype = (
            np.int32 if max(positions, *present, self.subgroups.period, self.threads.period) < 2**31 else np.int64
        )
        pos_weight, index_weight = self._position_weights(present), self._index_weights()
        total: list[NDArray[Any]] = [np.zeros((), index_dtype) for _ in range(3)]
        for i, x in enumerate(arrays):
            if x.size and not (x.min() >= 0 and x.max() < self.shape[i]):
                raise IndexError(f"index in dimension {i} is outside 0 to {self.shape[i] - 1}")
            dim_indices = np.arange(self.shape[i])
            digit = {level: dim_indices // index_weight[level, i] % getattr(self, level)[i] for level in TILES}
            tables = (
                digit["subgroup_tile"] * self.subgroup_strides[i],
                digit["thread_tile"] * self.thread_strides[i],
                sum((digit[level] * pos_weight.get((level, i), 0) for level in TILES), np.zeros_like(dim_indices)),
            )
            # An index that is broadcast is looked up before it grows.
            total = [_sum(sums, table.astype(index_dtype)[x]) for sums, table in zip(total, tables)]
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        owner, where = [], total[2].reshape(*total[2].shape, 1, 1)
        for axis, (level, ids, n) in enumerate(zip(TILES[::3], (self.subgroups, self.threads), present)):
            copies = ids.same(n).astype(index_dtype).reshape((-1, 1) if axis == 0 else (1, -1))
            logical = _sum(total[axis].reshape(*total[axis].shape, 1, 1), copies)
            if ids.rounds(n) > 1:
                where = where + logical // n * pos_weight[level, -1]
                logical = logical % n
            owner.append(logical)
        copies_shape = (*shape, self.subgroups.same(present[0]).size, self.threads.same(present[1]).size)
        owner_arrays = [
            np.broadcast_to(a, copies_shape).reshape(*shape, math.prod(copies_shape[-2:])) for a in (*owner, where)
        ]
        return Owners(*owner_arrays)

    def indices(
        self, subgroup: ArrayLike, thread: ArrayLike, *, subgroups: int | None = None, threads: int | None = None
    ) -> tuple[Ints, ...]:
        """The indices of the elements of lanes, in the order of their registers.

        Args:
            subgroup: subgroup ids, any array; broadcast against `thread`.
            thread: lane ids.
            subgroups: the number of subgroups there are; see `owners`.
            threads: the number of lanes of a subgroup.

        Returns:
            For each dimension an array of the ids' shape and an axis over positions, so that `x[layout.indices(0, 3)]`
            is the part of `x` in lane 3 of subgroup 0.

        Raises:
            IndexError: if there is no such subgroup or lane.
            LayoutError: if the layout cannot be spread evenly over so many.
        """
        present = self._present(subgroups, threads)
        owner_ids = np.broadcast_arrays(np.asarray(subgroup, np.int64), np.asarray(thread, np.int64))
        for level_name, ids, n in zip(("subgroup", "lane"), owner_ids, present):
            if ids.size and not (ids.min() >= 0 and ids.max() < n):
                raise IndexError(f"{level_name} is outside 0 to {n - 1}")
        axes = list(self._axes(present))
        weights = self._index_weights()
        shape = owner_ids[0].shape
        dim_indices = []
        for i in range(self.rank):
            total = np.zeros((1,) * (len(shape) + len(axes)), np.int64)
            for axis, (level, dim, n) in enumerate(axes):
                axis_shape = (1,) * (len(axes) - axis - 1)
                if dim == -1:
                    level_ids, k = (self.subgroups, 0) if level == "subgroup_tile" else (self.threads, 1)
                    logical = owner_ids[k][..., None] + np.arange(n) * present[k]
                    virtual = level_ids.virtual(logical)[i]
                    total = total + virtual.reshape(*shape, *(1,) * axis, n, *axis_shape) * weights[level, i]
                elif dim == i:
                    total = total + np.arange(n).reshape(n, *axis_shape) * weights[level, i]
            all_indices = np.broadcast_to(total, (*shape, *(n for _, _, n in axes)))
            dim_indices.append(all_indices.reshape(*shape, -1))
        return tuple(dim_indices)

    def distribute(self, array: ArrayLike, *, subgroups: int | None = None, threads: int | None = None) -> NDArray[Any]:
        """Distribute a vector.

        Returns:
            An array of shape (subgroups, threads, *part_shape).

        Raises:
            LayoutError: if the array is not of the layout's shape, or it cannot be spread over so many.
        """
        values = np.asarray(array)
        if values.shape != self.shape:
            raise LayoutError(f"expected an array of shape {self.shape}, but got {values.shape}")
        present = self._present(subgroups, threads)
        if not self.rank:
            return np.full((*present, *self.part_shape(*present)), values)
        s, t = np.ogrid[: present[0], : present[1]]
        fragments = values[self.indices(s, t, subgroups=present[0], threads=present[1])]
        return fragments.reshape(*present, *self.part_shape(*present))

    def collect(self, fragments: ArrayLike, *, check: bool = True) -> NDArray[Any]:
        """The vector of the parts that `distribute` returns.

        Args:
            fragments: an array of shape (subgroups, threads, *part_shape).
            check: whether to check that all copies of an element have the same bits.

        Raises:
            LayoutError: if the array is not of such a shape, or copies differ.
        """
        values = np.asarray(fragments)
        if values.ndim < 2:
            raise LayoutError(f"expected an array of shape (subgroups, threads, ...), but got {values.shape}")
        present = (values.shape[0], values.shape[1])
        expected_shape = (*present, *self.part_shape(*present))
        if values.shape != expected_shape:
            raise LayoutError(f"expected an array of shape {expected_shape}, but got {values.shape}")
        flat = np.ascontiguousarray(values.reshape(*present, -1))
        owners = self.owners(subgroups=present[0], threads=present[1])
        vector = flat[owners.subgroup[..., 0], owners.thread[..., 0], owners.position[..., 0]]
        if check:
            redistributed = self.distribute(vector, subgroups=present[0], threads=present[1]).reshape(flat.shape)
            size = flat.dtype.itemsize
            differs = (flat.view(f"V{size}") != np.ascontiguousarray(redistributed).view(f"V{size}")).reshape(-1)
            if differs.any():
                s, t, position = np.unravel_index(int(differs.argmax()), flat.shape)
                at = tuple(int(x[position]) for x in self.indices(s, t, subgroups=present[0], threads=present[1]))
                raise LayoutError(f"copies of element {at} differ: lane {t} of subgroup {s} has another value")
        return vector

    def fragment(self, lane_vector: ArrayLike) -> NDArray[Any]:
        """A thread's vector (or many of them, on leading axes) as `fragment_shape` instead of `distributed_shape`.

        This is the view of XeGPU's SIMT mode, and of the vector's own dimensions.
        """
        values, r = np.asarray(lane_vector), self.rank
        lead = values.ndim - 3 * r
        order = [lead + level * r + i for i in range(r) for level in range(3)]
        return values.transpose(*range(lead), *order).reshape(*values.shape[:lead], *self.fragment_shape)

    def permute(self, permutation: Sequence[int]) -> NestedLayout:
        """The layout of the vector's transpose: dimension i of the result is dimension `permutation[i]` of this.

        Raises:
            LayoutError: if this is not a permutation of the dimensions.
        """
        if sorted(permutation) != list(range(self.rank)):
            raise LayoutError(f"{list(permutation)} is no permutation of {self.rank} dimensions")
        return self._select(permutation)

    def project(self, dims: Sequence[int]) -> NestedLayout:
        """The layout of the vector reduced to the dimensions `dims`, in this order.

        Subgroups and lanes that differ only in dropped dimensions hold the same.

        Raises:
            LayoutError: if `dims` are not different dimensions of this.
        """
        if len(set(dims)) != len(dims) or not set(dims) <= set(range(self.rank)):
            raise LayoutError(f"{list(dims)} are not different dimensions of {self.rank}")
        return self._select(dims)

    def _select(self, dims: Sequence[int]) -> NestedLayout:
        return NestedLayout(*(tuple(values[i] for i in dims) for values in astuple(self)))


def _sum(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """a + b, in the memory of the operand with the shape of the sum, since allocating whole vectors is slow."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    return np.add(a, b, out=a if a.shape == shape else b if b.shape == shape else None)


# The decomposition of subgroup ids or lane ids into virtual ids, one for each dimension of a grid of tiles.

Ints = NDArray[np.int64]


class LayoutError(ValueError):
    """An invalid layout, or one that another kind of layout cannot express."""


class Ids(Struct, frozen=True):
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
        all_ids = np.arange(max(self.period, present))
        is_first = np.ones(all_ids.shape, bool)
        for v in self.virtual(all_ids):
            is_first &= v == 0
        return all_ids[is_first]


# Layouts of the same elements in another shape.

_SUBGROUP, _BATCH, _OUTER, _THREAD, _ELEMENT = TILES

_STRIDES = {_SUBGROUP: "subgroup_strides", _THREAD: "thread_strides"}


class _Digit(Struct, frozen=True):
    """A digit of an element's row-major number.

    Attributes:
        level: the level of tiles in which it is the index.
        extent: the number of tiles.
        stride: the difference between the ids of neighbours; 0 for levels without ids.
    """

    level: str
    extent: int
    stride: int = 0

    def split(self, inner_tiles: int) -> tuple[_Digit, _Digit]:
        """The outer part, and the inner part with the given number of tiles."""
        outer_part = structs.replace(self, extent=self.extent // inner_tiles, stride=self.stride * inner_tiles)
        return outer_part, structs.replace(self, extent=inner_tiles)

    def joins(self, inner_digit: _Digit) -> bool:
        """Whether this digit and the next inner one can be merged to one digit of their level."""
        return self.level == inner_digit.level and self.stride == inner_digit.stride * inner_digit.extent


def reshape(layout: NestedLayout, shape: Sequence[int]) -> NestedLayout:
    """The layout of a vector with the elements of another vector, in row-major order.

    Every lane of every subgroup holds the same elements. If a dimension of the result has registers of several levels
    side by side, they may be in another order.

    Args:
        layout: the layout of a vector.
        shape: the other shape, of as many elements.

    Raises:
        LayoutError: if the number of elements differs, or no nested layout of this shape has the same owners.
    """
    if math.prod(shape) != math.prod(layout.shape):
        raise LayoutError(f"a vector of shape {list(layout.shape)} does not have as many elements as {list(shape)}")
    digits = [d for i in range(layout.rank) for d in _digits(layout, i)]
    dims = []
    for i in reversed(range(len(shape))):
        dims.append(_ordered(_taken(digits, shape[i], i, shape), i, shape))
    tiles_by_level: dict[str, tuple[int, ...]] = {}
    for level in TILES:
        tiles_by_level[level] = tuple(d[level].extent if level in d else 1 for d in reversed(dims))
        if level in _STRIDES:
            tiles_by_level[_STRIDES[level]] = tuple(d[level].stride if level in d else 0 for d in reversed(dims))
    return NestedLayout(**tiles_by_level)


def _digits(layout: NestedLayout, dim: int) -> list[_Digit]:
    """The digits of an index in one dimension, the outermost first."""
    digits_of_index = []
    for level in TILES:
        extent = getattr(layout, level)[dim]
        if extent > 1:
            digits_of_index.append(
                _Digit(level, extent, getattr(layout, _STRIDES[level])[dim] if level in _STRIDES else 0)
            )
    return digits_of_index


def _taken(digits: list[_Digit], size: int, dim: int, shape: Sequence[int]) -> list[_Digit]:
    """Take from the end those digits that make up a dimension; the last one may be split."""
    dim_digits: list[_Digit] = []
    remaining = size
    while remaining > 1:
        last_digit = digits.pop()
        if remaining % last_digit.extent:
            if last_digit.extent % remaining:
                raise LayoutError(
                    f"dimension {dim} of {list(shape)} ends within {last_digit.extent} tiles of {last_digit.level}"
                )
            outer_digit, last_digit = last_digit.split(remaining)
            digits.append(outer_digit)
        remaining //= last_digit.extent
        if dim_digits and last_digit.joins(dim_digits[0]):
            dim_digits[0] = structs.replace(dim_digits[0], extent=dim_digits[0].extent * last_digit.extent)
        else:
            dim_digits.insert(0, last_digit)
    return dim_digits


def _ordered(digits: list[_Digit], dim: int, shape: Sequence[int]) -> dict[str, _Digit]:
    """A dimension's digits by level. Registers may change theirs, as each has two outside of the lanes, one inside."""
    unassigned = list(digits)
    digit_by_level: dict[str, _Digit] = {}
    if unassigned and unassigned[0].level == _SUBGROUP:
        digit_by_level[_SUBGROUP] = unassigned.pop(0)
    lanes = [i for i, d in enumerate(unassigned) if d.level == _THREAD]
    if len(lanes) > 1 or any(d.level == _SUBGROUP for d in unassigned):
        order = ", ".join(f"{d.extent} of {d.level}" for d in digits)
        raise LayoutError(f"dimension {dim} of {list(shape)} would be {order}, from the outermost on")
    if lanes:
        at = lanes[0]
        digit_by_level |= (
            _registers(unassigned[:at], (_BATCH, _OUTER))
            | {_THREAD: unassigned[at]}
            | _registers(unassigned[at + 1 :], (_ELEMENT,))
        )
    else:
        digit_by_level |= _registers(unassigned, (_BATCH, _OUTER, _ELEMENT))
    return digit_by_level


def _registers(digits: list[_Digit], levels: tuple[str, ...]) -> dict[str, _Digit]:
    """Digits of registers by level: their own if they are in the order of these, or else all of one."""
    own = [d.level for d in digits]
    if own == [level for level in levels if level in own]:
        return dict(zip(own, digits))
    level = _ELEMENT if _ELEMENT in levels else levels[0]
    return {level: _Digit(level, math.prod(d.extent for d in digits))}


MOST_CELLS = 20_000
"""The most cells of a picture. Larger pictures are rejected, because viewers show them slowly or not at all."""


def layout_picture(
    layout: NestedLayout, *, subgroups: int | None = None, threads: int | None = None, title: str = ""
) -> str:
    """Draw the owners of a vector's elements.

    A vector of more than two dimensions is drawn as its slices along the last two. Groups carry what they show:
    `data-index` (of their first element), `data-count` (of elements along the last dimension), `data-subgroup`,
    `data-lane` and `data-position` (each a list, over all owners, of the first element).

    Args:
        layout: the layout.
        subgroups: the number of subgroups; by default as many as the layout needs.
        threads: the number of lanes of a subgroup.
        title: the picture's name.

    Returns:
        The text of an SVG file.

    Raises:
        LayoutError: if the layout cannot be distributed evenly, or has more cells than can be shown.
    """
    cells = math.prod(layout.shape) // (layout.element_tile[-1] if layout.rank else 1)
    if cells > MOST_CELLS:
        raise LayoutError(f"a picture of {cells} cells is too large; at most {MOST_CELLS} can be drawn")
    return pictures.draw_layout(layout, layout.owners(subgroups=subgroups, threads=threads), title)
