"""Reductions along dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from xegpu_py.dialects import xetile
from xegpu_py.language import types
from xegpu_py.language.conversions import Conversions
from xegpu_py.language.held import BUILDING, around, axis_of
from xegpu_py.language.shapes import Shapes

if TYPE_CHECKING:
    from typing_extensions import Self

S = TypeVar("S", bound=Shapes)

Axes = int | Sequence[int] | None


class Reductions(Conversions):
    """The methods of `Value` that combine elements.

    All take `axis`: a dimension, several, or None for all. A dimension that is reduced keeps extent 1, so that the
    result broadcasts; with `keep_dims=False`, and by default where all are reduced, it is left out.
    """

    def reduce(self, kind: Any, axis: Axes = None, group: int | None = None, *, keep_dims: bool | None = None) -> Self:
        """Combine the elements along dimensions, or each `group` of consecutive elements.

        Args:
            kind: of combination, as `xetile.reduction` names it: "add", "mul", "maximumf", "minsi", "and", ...
            axis: the dimensions.
            group: the number of elements that are combined; by default all.
            keep_dims: whether the dimensions stay, with extent 1.

        Raises:
            ValueError: if a dimension does not exist, or its extent is not a multiple of the group.
        """
        if group is not None:
            if axis is None or not isinstance(axis, int):
                raise ValueError("a group needs an axis")
            return self._combined(kind, axis_of(axis, self.ndim), group)
        found, dims = self, axes_of(axis, self.ndim)
        if len(dims) == self.ndim and self.ndim > 2:
            found, dims = self.reshape((-1, self.shape[-1])), [0, 1]
        for dim in dims:
            found = found._combined(kind, dim, None)
        return reduced_shape(found, self.shape, axis, keep_dims)

    def _combined(self, kind: str, dim: int, group: int | None) -> Self:
        """Reduce one dimension and keep it."""
        BUILDING.check_together("combine elements")
        if self.dtype.is_narrow:
            return self.to(types.float32)._combined(kind, dim, group).to(self.dtype)
        before, extent, after = around(self.shape, dim)
        size = group or extent
        if extent % size:
            raise ValueError(f"groups of {size} elements do not divide the {extent} along axis {dim}")
        shape = (*self.shape[:dim], extent // size, *self.shape[dim + 1 :])
        if size == 1:
            return self._made(self.ir)
        if after == 1:
            lines, at = self.reshape((before, extent)), 1
        else:
            lines, at = self.reshape((before * extent, after)), 0
        whole = size == lines.shape[at]
        left = tuple(n // size if d == at else n for d, n in enumerate(lines.shape))
        made = xetile.reduction(kind, lines.ir, (at,), result=self._type(left), reduction_size=None if whole else size)
        return self._made(made, shape=left).reshape(shape)

    def _kind(self, real: str, signed: str, unsigned: str) -> str:
        return real if self.dtype.is_float else signed if self.dtype.is_signed else unsigned

    def _summed(self, dtype: Any) -> Self:
        """The value in the type in which sums are taken."""
        return self.to(types.summed(self.dtype) if dtype is None else dtype)

    def sum(
        self, axis: Axes = None, group: int | None = None, *, keep_dims: bool | None = None, dtype: Any = None
    ) -> Self:
        """The sum, in `dtype`; by default in int32 or uint32 of narrower integers and bools, as in Triton."""
        return self._summed(dtype).reduce("add", axis, group, keep_dims=keep_dims)

    def prod(
        self, axis: Axes = None, group: int | None = None, *, keep_dims: bool | None = None, dtype: Any = None
    ) -> Self:
        """The product; types as for `sum`."""
        return self._summed(dtype).reduce("mul", axis, group, keep_dims=keep_dims)

    def max(
        self,
        axis: Axes = None,
        group: int | None = None,
        *,
        keep_dims: bool | None = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
    ) -> Any:
        """The greatest element; NaN where one is NaN. With `return_indices` also the first index that has it."""
        found = self.reduce(self._kind("maximumf", "maxsi", "maxui"), axis, group, keep_dims=keep_dims)
        return (found, self._place_of("max", axis, keep_dims)) if return_indices else found

    def min(
        self,
        axis: Axes = None,
        group: int | None = None,
        *,
        keep_dims: bool | None = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
    ) -> Any:
        """The least element; NaN where one is NaN. With `return_indices` also the first index that has it."""
        found = self.reduce(self._kind("minimumf", "minsi", "minui"), axis, group, keep_dims=keep_dims)
        return (found, self._place_of("min", axis, keep_dims)) if return_indices else found

    def argmax(self, axis: int | None = None, tie_break_left: bool = True, *, keep_dims: bool | None = None) -> Self:
        """The index of the greatest element along a dimension, int32; of several the first. NaN counts as greatest.

        Args:
            axis: the dimension; None for the index in row-major order.
            tie_break_left: Triton's, without effect: the first of several is always chosen.
            keep_dims: whether the dimension stays, with extent 1.
        """
        return self._place_of("max", axis, keep_dims)

    def argmin(self, axis: int | None = None, tie_break_left: bool = True, *, keep_dims: bool | None = None) -> Self:
        """The index of the least element along a dimension, as `argmax`. NaN counts as least."""
        return self._place_of("min", axis, keep_dims)

    def _place_of(self, which: str, axis: Axes, keep_dims: bool | None) -> Self:
        if axis is None:
            place = self.ravel()._place_of(which, 0, False)
            return place.reshape((1,) * self.ndim) if keep_dims else place
        if not isinstance(axis, int):
            raise TypeError(f"arg{which} takes one axis, not {axis!r}")
        dim = axis_of(axis, self.ndim)
        wide = self.to(types.int32) if self.dtype.kind == "bool" else self
        hit = wide == getattr(wide, which)(dim)
        if wide.dtype.is_float:
            hit = hit | (wide != wide)
        places = self._places(dim)
        first = hit._selected(places, places._number(self.shape[dim])).min(dim)
        return reduced_shape(first, self.shape, axis, keep_dims)

    def any(self, axis: Axes = None, *, keep_dims: bool | None = None) -> Self:
        """Whether any element is true."""
        return self.to(types.bool_)._bitwise("or", axis, keep_dims)

    def all(self, axis: Axes = None, *, keep_dims: bool | None = None) -> Self:
        """Whether all elements are true."""
        return self.to(types.bool_)._bitwise("and", axis, keep_dims)

    def xor_sum(self, axis: Axes = None, *, keep_dims: bool | None = None) -> Self:
        """All elements combined by exclusive or.

        Raises:
            TypeError: for floating-point values.
        """
        return self._bitwise("xor", axis, keep_dims)

    def reduce_or(self, axis: Axes = None, *, keep_dims: bool | None = None) -> Self:
        """All elements combined by or.

        Raises:
            TypeError: for floating-point values.
        """
        return self._bitwise("or", axis, keep_dims)

    def _bitwise(self, kind: str, axis: Axes, keep_dims: bool | None) -> Self:
        if self.dtype.is_float:
            raise TypeError(f"a reduction by '{kind}' needs integers or truth values, not {self.dtype}")
        if self.dtype.kind == "bool":
            return self.to(types.int32).reduce(kind, axis, keep_dims=keep_dims).differs(0)
        return self.reduce(kind, axis, keep_dims=keep_dims)

    def mean(self, axis: Axes = None, *, keep_dims: bool | None = None) -> Self:
        """The sum divided by the number of elements."""
        count = math.prod(self.shape[dim] for dim in axes_of(axis, self.ndim))
        return self.sum(axis, keep_dims=keep_dims) / count


def axes_of(axis: Axes, rank: int) -> list[int]:
    """The dimensions that a reduction names.

    Raises:
        ValueError: if there is no such dimension, or one is named twice.
    """
    if axis is None:
        return list(range(rank))
    found = [axis_of(a, rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


def reduced_shape(found: S, shape: Sequence[int], axis: Axes, keep_dims: bool | None) -> S:
    """The result of a reduction with or without the dimensions that it has reduced."""
    keep = axis is not None if keep_dims is None else keep_dims
    dims = axes_of(axis, len(shape))
    return found.reshape(tuple(1 if d in dims else n for d, n in enumerate(shape) if keep or d not in dims))
