"""Shapes of values: reshaping, broadcasting, permuting, slicing and joining.

XeTile has 1D and 2D vectors. A value of more dimensions is held as a matrix whose rows are its leading dimensions. Any
dimension of a value can become the rows or the columns of a matrix by a reshape.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from mlir.dialects import vector

from xegpu_py.dialects import xetile
from xegpu_py.language.held import BUILDING, Elements, around, axis_of, matrix_shape, static_extent

if TYPE_CHECKING:
    from typing_extensions import Self


class Shapes(Elements):
    """The methods of `Value` that change shapes."""

    def reshape(self, *shape: Any, can_reorder: bool = False) -> Self:
        """The same elements in row-major order in another shape; one extent may be -1.

        Triton's `can_reorder` has no effect.

        Raises:
            ValueError: if it has another number of elements.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        wanted: list[int] = [static_extent(n) for n in given]
        if wanted.count(-1) == 1:
            rest = math.prod(n for n in wanted if n != -1)
            if rest and self.size % rest == 0:
                wanted[wanted.index(-1)] = self.size // rest
        if any(n < 1 for n in wanted) or math.prod(wanted) != self.size:
            raise ValueError(f"cannot reshape {self.describe()} into shape {tuple(wanted)}")
        have, want = matrix_shape(self.shape), matrix_shape(wanted)
        if have == want:
            return self._made(self.ir, shape=wanted)
        if not want:
            return self._made(vector.extract(self.ir, [], [0] * len(have)), shape=())
        if not have:
            return self._made(vector.broadcast(self._type(wanted), self.ir), shape=wanted)
        return self._made(vector.shape_cast(self._type(wanted), self.ir), shape=wanted)

    view = reshape

    def ravel(self, can_reorder: bool = False) -> Self:
        """The elements in row-major order as a line. Triton's `can_reorder` has no effect."""
        return self.reshape((self.size,))

    def expand_dims(self, axis: int | Sequence[int]) -> Self:
        """The value with dimensions of extent 1 where `axis` says, counted in the result.

        Raises:
            ValueError: if the result has no such dimension, or one is named twice.
        """
        axes = [axis] if isinstance(axis, int) else list(axis)
        rank = self.ndim + len(axes)
        places = [axis_of(a, rank) for a in axes]
        if len(set(places)) != len(places):
            raise ValueError("repeated axis")
        rest = iter(self.shape)
        return self.reshape(tuple(1 if d in places else next(rest) for d in range(rank)))

    def squeeze(self, axis: int) -> Self:
        """The value without a dimension of extent 1.

        Raises:
            ValueError: if the dimension has another extent.
        """
        at = axis_of(axis, self.ndim)
        if self.shape[at] != 1:
            raise ValueError(f"cannot squeeze axis {axis} of {self.describe()}, whose extent is not 1")
        return self.reshape((*self.shape[:at], *self.shape[at + 1 :]))

    def broadcast_to(self, *shape: Any) -> Self:
        """Broadcast to a shape by numpy's rules.

        Raises:
            ValueError: if the shapes do not fit; numpy's message.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        wanted = tuple(static_extent(n) for n in given)
        if self.shape == wanted:
            return self._made(self.ir)
        if np.broadcast_shapes(self.shape, wanted) != wanted:
            raise ValueError(f"cannot broadcast shape {self.shape} to {wanted}")
        if self.size == 1:
            return self._made(vector.broadcast(self._type(wanted), self.reshape(()).ir), shape=wanted)
        found = self.reshape((*(1,) * (len(wanted) - self.ndim), *self.shape))
        for dim, extent in enumerate(wanted):
            if found.shape[dim] != extent:
                found = found._repeated(dim, extent)
        return found

    broadcast = broadcast_to

    def _repeated(self, dim: int, extent: int) -> Self:
        """Repeat a dimension of extent 1."""
        before, _, after = around(self.shape, dim)
        wide = (*self.shape[:dim], extent, *self.shape[dim + 1 :])
        if after == 1:
            # All later dimensions have extent 1.
            column = self.reshape((before, 1))
            made = xetile.broadcast(column.ir, (1,), result=self._type((before, extent)))
            return self._made(made, shape=(before, extent)).reshape(wide)
        rows = self.reshape((before, after))
        shape = (before * extent, after)
        times = extent if before > 1 else None
        made = xetile.broadcast(rows.ir, (0,), result=self._type(shape), broadcast_size=times)
        return self._made(made, shape=shape).reshape(wide)

    # Permutations.

    @property
    def T(self) -> Self:
        """The value with its last two dimensions swapped: the transpose of a matrix."""
        if self.ndim < 2:
            return self._made(self.ir)
        return self.permute(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def permute(self, *dims: Any) -> Self:
        """The dimensions in another order: dimension i of the result is dimension `dims[i]`.

        Raises:
            ValueError: if `dims` does not name each dimension once.
        """
        given = dims[0] if len(dims) == 1 and isinstance(dims[0], Sequence) else dims
        if len(given) != self.ndim:
            raise ValueError(f"axes don't match: {self.describe()} has {self.ndim} dimensions, but {len(given)} axes")
        order = [axis_of(d, self.ndim) for d in given]
        if len(set(order)) != len(order):
            raise ValueError("repeated axis in transpose")
        shape = tuple(self.shape[d] for d in order)
        # Dimensions of extent 1 are ignored, and dimensions that stay adjacent are merged.
        groups = _groups([d for d in order if self.shape[d] > 1], [d for d, n in enumerate(self.shape) if n > 1])
        if len(groups) < 2:
            return self.reshape(shape)
        BUILDING.check_together("move elements")
        ranked = sorted(range(len(groups)), key=lambda g: groups[g][0])
        extents = [math.prod(self.shape[d] for d in groups[g]) for g in ranked]
        places = [ranked.index(g) for g in range(len(groups))]
        merged = self.reshape(extents)
        return merged._permuted(places).reshape(shape)

    def _permuted(self, order: Sequence[int]) -> Self:
        """A permutation in which no two dimensions stay adjacent."""
        shape = tuple(self.shape[d] for d in order)
        if len(order) == 2:
            return self._made(xetile.transpose(self.ir, (1, 0), result=self._type(shape)), shape=shape)
        numbers = np.arange(self.size).reshape(self.shape).transpose(order)
        if order[-1] == self.ndim - 1:
            rows = numbers[..., 0].ravel() // self.shape[-1]
            return self.reshape((-1, self.shape[-1])).rows(rows.tolist()).reshape(shape)
        return self.ravel().rows(numbers.ravel().tolist()).reshape(shape)

    # Parts.

    def rows(self, places: Sequence[int]) -> Self:
        """The elements of a line, or the rows of a matrix, at constant indices, which may repeat."""
        BUILDING.check_together("select elements")
        assert 1 <= self.ndim <= 2
        count, first = len(places), places[0]
        shape = (count, *self.shape[1:])
        if list(places) == list(range(first, first + count)):
            if count == self.shape[0]:
                return self._made(self.ir)
            starts, sizes = [first, *[0] * (self.ndim - 1)], list(shape)
            made = vector.extract_strided_slice(self._type(shape), self.ir, starts, sizes, [1] * self.ndim)
            return self._made(made, shape=shape)
        return self._made(vector.shuffle(self.ir, self.ir, list(places)), shape=shape)

    def rows_with(self, other: Self, places: Sequence[int]) -> Self:
        """Rows of this value and of another one, whose rows are numbered after those of this one."""
        shape = (len(places), *self.shape[1:])
        count = self.shape[0]
        if self.ndim == 1 and other.shape == self.shape and list(places) == alternating(count):
            return self._made(vector.interleave(self.ir, other.ir), shape=shape)
        return self._made(vector.shuffle(self.ir, other.ir, list(places)), shape=shape)

    def with_first(self, axis: int) -> Self:
        """A matrix whose rows are a dimension and whose columns are all others; a line if the others have extent 1.

        `from_first` is the inverse.
        """
        before, extent, after = around(self.shape, axis)
        if before * after == 1:
            return self.reshape((extent,))
        if before == 1:
            return self.reshape((extent, after))
        return self.reshape((before, extent, after)).permute(1, 0, 2).reshape((extent, before * after))

    def from_first(self, shape: Sequence[int], axis: int) -> Self:
        """The inverse of `with_first` on a value of this shape; the extent along the axis may differ."""
        before, _, after = around(shape, axis)
        extent = self.shape[0]
        wanted = (*shape[:axis], extent, *shape[axis + 1 :])
        if before == 1 or before * after == 1:
            return self.reshape(wanted)
        return self.reshape((extent, before, after)).permute(1, 0, 2).reshape(wanted)

    def along(self, axis: int, places: Sequence[int]) -> Self:
        """The elements at constant indices along a dimension."""
        BUILDING.check_together("select elements")
        before, extent, after = around(self.shape, axis)
        shape = (*self.shape[:axis], len(places), *self.shape[axis + 1 :])
        first, count = places[0], len(places)
        near = list(places) == list(range(first, first + count))
        if near and count == extent:
            return self._made(self.ir)
        if after > 1 or before == 1:
            found = self.reshape((before * extent, after) if after > 1 else (extent,))
            chosen = [b * extent + p for b in range(before) for p in places]
            return found.rows(chosen).reshape(shape)
        if near:
            kind = self._type((before, count))
            line = self.reshape((before, extent))
            made = vector.extract_strided_slice(kind, line.ir, [0, first], [before, count], [1, 1])
            return self._made(made, shape=(before, count)).reshape(shape)
        return self.with_first(axis).rows(places).from_first(self.shape, axis)

    def __getitem__(self, key: Any) -> Self:
        """A part, by constant slices and indices; None and `...` as in numpy.

        Raises:
            IndexError: as numpy, and if an index is not a constant.
        """
        keys = list(key) if isinstance(key, tuple) else [key]
        if sum(k is Ellipsis for k in keys) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        used = sum(k is not None and k is not Ellipsis for k in keys)
        if used > self.ndim:
            raise IndexError(f"too many indices: {self.describe()} has {self.ndim} dimensions, but {used} were indexed")
        fill = [slice(None)] * (self.ndim - used)
        at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
        keys = keys[:at] + fill + keys[at + 1 :]
        result: list[int] = []
        found, dim = self._made(self.ir), 0
        for k in keys:
            if k is None:
                result.append(1)
                continue
            places, kept = _part(k, self.shape[dim])
            found = found.along(dim, places)
            result += [len(places)] if kept else []
            dim += 1
        return found.reshape(tuple(result))


def _groups(order: Sequence[int], source: Sequence[int]) -> list[list[int]]:
    """Group dimensions in a new order: dimensions that are adjacent in the old order too share a group."""
    after = dict(itertools.pairwise(source))
    groups: list[list[int]] = []
    for d in order:
        if groups and after.get(groups[-1][-1]) == d:
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def alternating(count: int) -> list[int]:
    """The places, as `rows_with` counts them, that interleave the rows of two values."""
    return [p for i in range(count) for p in (i, count + i)]


def _part(key: Any, extent: int) -> tuple[list[int], bool]:
    """The indices that a key selects from a dimension, and whether the dimension is kept."""
    if isinstance(key, slice):
        bounds = (key.start, key.stop, key.step)
        if not all(n is None or (isinstance(n, int) and not isinstance(n, bool)) for n in bounds):
            raise IndexError("slices of values have constant bounds")
        if key.step == 0:
            raise ValueError("slice step cannot be zero")
        places = list(range(*key.indices(extent)))
        if not places:
            raise IndexError(f"a slice of {extent} elements by {_shown(key)} is empty")
        return places, True
    if isinstance(key, bool) or not isinstance(key, int):
        raise IndexError(f"values are indexed by constants, slices, None and '...', not by {key!r}")
    if not -extent <= key < extent:
        raise IndexError(f"index {key} is out of bounds for a dimension of extent {extent}")
    return [key % extent], False


def _shown(key: slice) -> str:
    parts = ["" if n is None else str(n) for n in (key.start, key.stop)]
    return ":".join([*parts, *([] if key.step is None else [str(key.step)])])


S = TypeVar("S", bound=Shapes)


def concatenate(values: Sequence[S], axis: int) -> S:
    """Concatenate values of one element type along a dimension.

    Raises:
        ValueError: if they differ in other dimensions; numpy's message.
    """
    first, *rest = values
    at = axis_of(axis, first.ndim)
    np.concatenate([np.broadcast_to(False, value.shape) for value in values], at)
    found = first
    for value in rest:
        found = _joined(found, value, at)
    return found


def _joined(a: S, b: S, axis: int) -> S:
    before, first, after = around(a.shape, axis)
    second = b.shape[axis]
    shape = (*a.shape[:axis], first + second, *a.shape[axis + 1 :])
    if after > 1 or before == 1:
        one, other = (v.reshape((before * n, after) if after > 1 else (n,)) for v, n in ((a, first), (b, second)))
        places: list[int] = []
        for i in range(before):
            places += range(i * first, (i + 1) * first)
            places += range(before * first + i * second, before * first + (i + 1) * second)
        return one.rows_with(other, places).reshape(shape)
    # Insert the columns of both, which avoids two transposes.
    wide = (before, first + second)
    whole = a.constant(a.dtype, 0, wide).ir
    for part, start in ((a.reshape((before, first)), 0), (b.reshape((before, second)), first)):
        whole = vector.insert_strided_slice(part.ir, whole, [0, start], [1, 1])
    return a._made(whole, shape=wide).reshape(shape)
