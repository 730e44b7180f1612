"""Scans, sorts and reductions by functions.

They work on the rows of a matrix: the dimension becomes the first one (`Shapes.with_first`). Rows are selected by
constant indices, so results do not depend on the distribution of elements over lanes and subgroups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xegpu_py.language import types
from xegpu_py.language.functions import arange, where
from xegpu_py.language.held import BUILDING, axis_of
from xegpu_py.language.math import maximum, minimum
from xegpu_py.language.reductions import axes_of, reduced_shape
from xegpu_py.language.shapes import concatenate
from xegpu_py.language.values import Value, constant, value_of

Combine = Callable[..., Any]
Values = tuple[Value, ...]


def takes_functions(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of the language that calls functions of the user; the compiler compiles these at each call."""
    function.__takes_functions__ = True  # type: ignore[attr-defined]
    return function


def _tuple_of(given: Any) -> tuple[Values, bool]:
    """A value or a tuple of values as a tuple, and whether it was a single value."""
    if isinstance(given, (tuple, list)):
        return tuple(value_of(v) for v in given), False
    return (value_of(given),), True


def _combined(combine: Combine, a: Values, b: Values, name: str) -> Values:
    """Combine both sides; the results are converted to the types of the operands, and numbers to values."""
    with BUILDING.elementwise(name):
        made = combine(*a, *b)
    found = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    if len(found) != len(a):
        raise TypeError(f"{name}: the function takes {2 * len(a)} values and must return {len(a)}, not {len(found)}")
    for v in found:
        if isinstance(v, Value) and v.shape not in ((), a[0].shape):
            raise TypeError(
                f"{name}: the function of {a[0].describe()} returns {v.describe()}, which is not elementwise"
            )
    return tuple(value_of(v).to(x.dtype).broadcast(x.shape) for v, x in zip(found, a))


def _rows(values: Values, places: Sequence[int]) -> Values:
    return tuple(v.rows(places) for v in values)


@takes_functions
def reduce(value: Any, axis: Any, combine_fn: Combine, keep_dims: bool | None = None) -> Any:
    """Combine the elements along dimensions by a function, in their order: ((a b) (c d)) ((e f) g).

    Args:
        value: a value, or a tuple of values of one shape.
        axis: a dimension, several, or None for all.
        combine_fn: an associative function of two values, parts of `value`; for a tuple of n values it takes 2n and
            returns n. Its results are converted to the types of its operands.
        keep_dims: whether dimensions stay, with extent 1; by default unless all are reduced.

    Raises:
        TypeError: if the function returns another number of values.
    """
    given, single = _tuple_of(value)
    shape = np.broadcast_shapes(*(v.shape for v in given))
    given = tuple(v.broadcast(shape) for v in given)
    dims = sorted(axes_of(axis, len(shape)))
    left = given
    if axis is None:
        left, dims = tuple(v.ravel() for v in given), [0]
    for dim in reversed(dims):
        old = left[0].shape
        left = tuple(v.from_first(old, dim) for v in _reduced(tuple(v.with_first(dim) for v in left), combine_fn))
    whole = (1,) * len(shape) if axis is None else left[0].shape
    made = tuple(reduced_shape(v.reshape(whole), shape, axis, keep_dims) for v in left)
    return made[0] if single else made


def _reduced(rows: Values, combine: Combine) -> Values:
    """Combine all rows: pairs of neighbours first, and an odd last row at the end."""
    count = rows[0].shape[0]
    if count == 1:
        return rows
    pairs = count // 2 * 2
    found = _combined(combine, _rows(rows, range(0, pairs, 2)), _rows(rows, range(1, pairs, 2)), "reduce")
    found = _reduced(found, combine)
    return found if pairs == count else _combined(combine, found, _rows(rows, [count - 1]), "reduce")


@takes_functions
def associative_scan(value: Any, axis: int, combine_fn: Combine, reverse: bool = False) -> Any:
    """Combine each element with all earlier ones along a dimension, or with all later ones if `reverse` is set.

    Element i is the combination of elements 0 to i, in their order. The function must be associative: pairs of
    neighbours are combined and scanned; every other result combines one of these with one more element.

    Args:
        value: a value, or a tuple of values of one shape.
        axis: the dimension.
        combine_fn: as of `reduce`.
        reverse: whether the scan begins at the last element.

    Raises:
        TypeError: if the function gives another number of values.
    """
    given, single = _tuple_of(value)
    shape = np.broadcast_shapes(*(v.shape for v in given))
    dim = axis_of(axis, len(shape))
    rows = tuple(v.broadcast(shape).with_first(dim) for v in given)
    backward = list(range(shape[dim]))[::-1]
    rows = _rows(rows, backward) if reverse else rows
    rows = _scanned(rows, combine_fn)
    rows = _rows(rows, backward) if reverse else rows
    made = tuple(v.from_first(shape, dim) for v in rows)
    return made[0] if single else made


def _scanned(rows: Values, combine: Combine) -> Values:
    count = rows[0].shape[0]
    if count == 1:
        return rows
    pairs = count // 2
    even, odd = _rows(rows, range(0, 2 * pairs, 2)), _rows(rows, range(1, 2 * pairs, 2))
    sums = _scanned(_combined(combine, even, odd, "associative_scan"), combine)
    # Elements 2, 4, ... follow the sums of the pairs before them.
    later = range(2, count, 2)
    if not later:
        return tuple(e.rows_with(s, [0, 1]) for e, s in zip(even, sums))
    between = _combined(combine, _rows(sums, range(len(later))), _rows(rows, later), "associative_scan")
    firsts = tuple(concatenate([r.rows([0]), b], 0) for r, b in zip(rows, between))
    wholes = firsts[0].shape[0]
    places = [(i // 2 if i % 2 == 0 else wholes + i // 2) for i in range(count)]
    return tuple(f.rows_with(s, places) for f, s in zip(firsts, sums))


def cumsum(value: Any, axis: int = 0, reverse: bool = False, dtype: Any = None) -> Value:
    """The sums of the elements up to each one along a dimension; with `reverse`, from each one to the last.

    Args:
        value: the numbers.
        axis: the dimension.
        reverse: whether to begin at the last element.
        dtype: the type of the sums; by default int32 or uint32 for narrower integers and bools, as in Triton.
    """
    return associative_scan(value_of(value)._summed(dtype), axis, lambda a, b: a + b, reverse)


def cumprod(value: Any, axis: int = 0, reverse: bool = False, dtype: Any = None) -> Value:
    """The products of the elements up to each one along a dimension; see `cumsum`."""
    return associative_scan(value_of(value)._summed(dtype), axis, lambda a, b: a * b, reverse)


# Sorting.


def _keys(value: Value) -> Value:
    """Integers that sort as the numbers do, with NaN last and -0 before 0."""
    if value.dtype.kind == "bool":
        return value.to(types.int32)
    if not value.dtype.is_float:
        return value
    bits = value.bitcast(types.integer_of(value.dtype.bits, signed=True))
    low = (1 << value.dtype.bits - 1) - 1
    ordered = where(bits < 0, bits ^ low, bits)
    number = value if value.dtype.bits > 8 else value.to(types.float16)
    return where(number != number, low, ordered)


def _numbers(keys: Value, like: Value) -> Value:
    """The numbers of keys that `_keys` made of a value like `like`."""
    if like.dtype.kind == "bool":
        return keys != 0
    if not like.dtype.is_float:
        return keys
    low = (1 << like.dtype.bits - 1) - 1
    return where(keys < 0, keys ^ low, keys).bitcast(like.dtype)


def sort(value: Any, dim: int | None = None, descending: bool = False) -> Value:
    """The elements in order along a dimension, by default the last: a bitonic network.

    NaN is greater than all numbers, as in numpy, and becomes the canonical NaN; -0 comes before 0.

    Args:
        value: the elements; the extent need not be a power of two.
        dim: the dimension.
        descending: whether the greatest comes first.

    Raises:
        ValueError: if there is no such dimension.
    """
    given = value_of(value)
    axis = axis_of(-1 if dim is None else dim, given.ndim)
    return _numbers(_sorted(_keys(given), axis, descending), given)


def topk(value: Any, k: int, dim: int | None = None, descending: bool = True) -> Value:
    """The k greatest elements along a dimension, by default the last, in descending order.

    Args:
        value: the elements.
        k: how many, at most the dimension's extent.
        dim: the dimension.
        descending: with False the k least in ascending order, as in Triton.

    Raises:
        ValueError: if there are fewer elements.
    """
    given = value_of(value)
    axis = axis_of(-1 if dim is None else dim, given.ndim)
    if not 1 <= k <= given.shape[axis]:
        raise ValueError(
            f"topk takes 1 to {given.shape[axis]} elements of {given.describe()} along axis {axis}, not {k}"
        )
    return sort(given, axis, descending).along(axis, list(range(k)))


def bitonic_merge(value: Any, dim: int | None = None, descending: bool = False) -> Value:
    """Sort elements along a dimension along which they form a bitonic sequence: rising then falling, or the reverse.

    Raises:
        ValueError: if the extent is not a power of two.
    """
    given = value_of(value)
    axis = axis_of(-1 if dim is None else dim, given.ndim)
    extent = given.shape[axis]
    if extent & (extent - 1):
        raise ValueError(f"bitonic_merge needs an extent that is a power of two, but got {extent}")
    rows = _keys(given).with_first(axis)
    stride = extent // 2
    while stride:
        rows = _exchanged(rows, stride, lambda i: descending)
        stride //= 2
    return _numbers(rows.from_first(given.shape, axis), given)


ROW_LANES = 16
"""The length of a row from which on whole rows are compared and exchanged."""


def _sorted(keys: Value, axis: int, descending: bool) -> Value:
    shape, extent = keys.shape, keys.shape[axis]
    padded = 1 << (extent - 1).bit_length()
    if padded > extent:
        most, least = keys.dtype.limits[::-1]
        wide = (*shape[:axis], padded - extent, *shape[axis + 1 :])
        keys = concatenate([keys, constant(keys.dtype, least if descending else most, wide)], axis)
    lines = keys.size // padded
    if lines >= ROW_LANES or padded <= ROW_LANES:
        rows = keys.with_first(axis)
        size = 2
        while size <= padded:
            rows = _merged(rows, size, size, padded, descending)
            size *= 2
        found = rows.from_first(keys.shape, axis)
    else:
        front = (*shape[:axis], *shape[axis + 1 :], padded)
        order = [*range(axis), *range(axis + 1, len(shape)), axis]
        line = _sorted_line(keys.permute(order).ravel(), padded, descending)
        back = [*range(axis), len(shape) - 1, *range(axis, len(shape) - 1)]
        found = line.reshape(front).permute(back)
    return found.along(axis, list(range(extent)))


def _merged(rows: Value, size: int, first: int, whole: int, descending: bool) -> Value:
    """Merge rows to sorted runs of `size`, alternately ascending and descending; the last merge in one direction."""
    stride = first // 2
    while stride:
        rows = _exchanged(rows, stride, _falling(1, size, whole, descending))
        stride //= 2
    return rows


def _falling(step: int, size: int, whole: int, descending: bool) -> Callable[[int], bool]:
    """Whether the run of `size` elements that contains row i is descending; rows are `step` elements apart."""
    if size >= whole:
        return lambda i: descending
    return lambda i: bool(i * step & size) != descending


def _exchanged(rows: Value, stride: int, falling: Callable[[int], bool]) -> Value:
    """Compare and exchange rows that are `stride` apart: the lesser comes first unless the run is descending."""
    count = rows.shape[0]
    firsts = [i for i in range(count) if not i & stride]
    a, b = rows.rows(firsts), rows.rows([i + stride for i in firsts])
    low, high = minimum(a, b), maximum(a, b)
    half = len(firsts)
    places = [0] * count
    for n, i in enumerate(firsts):
        lesser, greater = (i + stride, i) if falling(i) else (i, i + stride)
        places[lesser], places[greater] = n, half + n
    return low.rows_with(high, places)


def _sorted_line(line: Value, extent: int, descending: bool) -> Value:
    """Sort a line in runs of `extent`, a power of two greater than a row.

    In a matrix of rows of 16, elements at a distance of a multiple of 16 share a column. In its transpose, the
    elements of a row do.
    """
    across = ROW_LANES
    height = line.size // across
    transposed = line.reshape((height, across)).T
    # Runs of up to 16 elements; runs of 16 alternate between the columns of the transpose.
    size = 2
    while size < across:
        transposed = _merged(transposed, size, size, extent, descending)
        size *= 2
    while size <= extent:
        if size > across:
            rows = transposed.T
            stride = size // 2
            while stride >= across:
                near = stride // across
                rows = _exchanged(rows, near, _falling(across, size, extent, descending))
                stride //= 2
            transposed = rows.T
        transposed = _near(transposed, size, extent, descending)
        size *= 2
    return transposed.T.ravel()


def _near(transposed: Value, size: int, extent: int, descending: bool) -> Value:
    """The exchanges within 16 elements of a merge of runs of `size`; descending columns are complemented for them."""
    across, columns = transposed.shape
    mask = None
    if size < extent:
        runs = (arange(columns) & (size // across)) != 0
        mask = where(runs, -1 if not descending else 0, 0 if not descending else -1).to(types.int32)
        mask = mask.to(types.integer_of(transposed.dtype.bits, signed=True)).to(transposed.dtype).reshape((1, columns))
        transposed = transposed ^ mask
    stride = across // 2
    while stride:
        transposed = _exchanged(transposed, stride, lambda i: descending and mask is None)
        stride //= 2
    return transposed if mask is None else transposed ^ mask


COMPARED = 4096
"""Comparisons that `histogram` makes at a time."""


def histogram(value: Any, num_bins: int, mask: Any = None) -> Value:
    """Count the elements that are 0, 1, ... num_bins - 1: a line of int32. Other elements are ignored.

    Args:
        value: integers.
        num_bins: the number of bins.
        mask: which elements are counted; by default all.

    Raises:
        TypeError: for other types.
    """
    given = value_of(value)
    if not given.dtype.is_integer:
        raise TypeError(f"histogram needs integers, not {given.dtype}")
    if num_bins < 1:
        raise ValueError(f"histogram needs at least one bin, not {num_bins}")
    line = given.ravel()
    line = line.to(types.int32) if line.dtype.bits < 32 else line
    if mask is not None:
        counted = value_of(mask).to(types.bool_).broadcast(given.shape).ravel()
        line = where(counted, line, line.dtype.limits[1])
    # One reduction of a matrix of comparisons serves as many bins as registers hold.
    most = max(COMPARED // line.size, 1)
    found = []
    for first in range(0, num_bins, most):
        bins = arange(first, min(first + most, num_bins)).to(line.dtype)
        hit = bins.expand_dims(1) == line.expand_dims(0)
        found.append(hit.to(types.int32).sum(1).reshape((bins.size,)))
    return concatenate(found, 0)


@takes_functions
def map_elementwise(function: Combine, *values: Any, pack: int = 1) -> Any:
    """Apply a function to all elements.

    The function is compiled once, for whole values: it must use `where` instead of `if`.

    Args:
        function: the function.
        values: its operands, which are broadcast.
        pack: Triton's number of elements for a call; must be 1.

    Raises:
        ValueError: for another `pack`.
    """
    if pack != 1:
        raise ValueError("map_elementwise calls its function for all elements at once: pack must be 1")
    given = [value_of(v) for v in values]
    shape = np.broadcast_shapes(*(v.shape for v in given))
    with BUILDING.elementwise("map_elementwise"):
        return function(*(v.broadcast(shape) for v in given))
