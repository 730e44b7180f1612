"""Functions of the tile language that rearrange elements: broadcast, join, split, gather, pack."""

from __future__ import annotations

from typing import Any

import numpy as np

from xegpu_py.language import types
from xegpu_py.language.debug import device_assert
from xegpu_py.language.functions import where
from xegpu_py.language.held import axis_of
from xegpu_py.language.shapes import alternating, concatenate
from xegpu_py.language.values import Product, Value, constant, value_of


def squeeze(value: Any, dim: int) -> Value:
    """The value without a dimension of extent 1.

    Raises:
        ValueError: if the dimension has another extent.
    """
    return value_of(value).squeeze(dim)


def broadcast(a: Any, b: Any) -> tuple[Value, Value]:
    """Two values in the shape that numpy's rules give them.

    Raises:
        ValueError: if the shapes do not fit.
    """
    one, other = value_of(a), value_of(b)
    shape = np.broadcast_shapes(one.shape, other.shape)
    return one.broadcast(shape), other.broadcast(shape)


def trans(value: Any, *dims: Any) -> Value:
    """The dimensions in another order; without one, the last two are swapped."""
    return value_of(value).permute(*dims) if dims else value_of(value).T


def cast(value: Any, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Value:
    """The numbers in another type, or with `bitcast` the bits: `value.to(dtype)`."""
    return value_of(value).to(dtype, fp_downcast_rounding, bitcast=bitcast)


def _in_one_type(*values: Any) -> list[Value]:
    """Values converted to the type in which they are combined; Python numbers take the type of the values."""
    held = [v for v in values if isinstance(v, (Value, Product))]
    if not held:
        return _in_one_type(value_of(values[0]), *values[1:])
    dtype = value_of(held[0]).dtype
    for v in map(value_of, held[1:]):
        dtype = dtype if v.dtype == dtype else types.promote(dtype, v.dtype)
    for v in values:
        if not isinstance(v, (Value, Product)):
            dtype = types.with_scalar(dtype, v)
    return [value_of(v, dtype).to(dtype) for v in values]


def join(a: Any, b: Any) -> Value:
    """Two values side by side in a new last dimension of extent 2."""
    one, other = _in_one_type(a, b)
    one, other = broadcast(one, other)
    shape = (*one.shape, 2)
    left, right = one.ravel(), other.ravel()
    return left.rows_with(right, alternating(left.size)).reshape(shape)


def split(value: Any) -> tuple[Value, Value]:
    """The two parts of a value whose last dimension has extent 2: what `join` has joined.

    Raises:
        ValueError: if it has another extent.
    """
    given = value_of(value)
    if not given.shape or given.shape[-1] != 2:
        raise ValueError(f"split needs a last dimension of extent 2, but got {given.describe()}")
    line = given.ravel()
    first, second = (line.rows(list(range(start, given.size, 2))).reshape(given.shape[:-1]) for start in (0, 1))
    return first, second


def interleave(a: Any, b: Any) -> Value:
    """The elements of two values, alternating along the last dimension.

    Raises:
        ValueError: for scalars.
    """
    joined = join(a, b)
    if joined.ndim < 2:
        raise ValueError("interleave needs values of at least one dimension")
    return joined.reshape((*joined.shape[:-2], 2 * joined.shape[-2]))


def cat(*values: Any, can_reorder: bool = False, dim: int = 0) -> Value:
    """Concatenate values, or a list or tuple of values, along a dimension.

    Args:
        values: two or more, of one shape but for that dimension.
        can_reorder: Triton's, without effect: the order is always kept.
        dim: the dimension.

    Raises:
        ValueError: if they differ in other dimensions.
    """
    given = list(values[0]) if len(values) == 1 and isinstance(values[0], (tuple, list)) else list(values)
    found = _in_one_type(*given) if given else []
    if not found or not all(v.shape for v in found):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    return concatenate(found, dim)


def flip(value: Any, dim: int | None = None) -> Value:
    """The elements in reverse order along a dimension, by default the last.

    Raises:
        ValueError: if there is no such dimension.
    """
    given = value_of(value)
    axis = axis_of(-1 if dim is None else dim, given.ndim)
    return given.along(axis, list(range(given.shape[axis]))[::-1])


def gather(src: Any, index: Any, axis: int) -> Value:
    """The elements of `src` at the indices `index` along a dimension, as numpy's `take_along_axis`.

    As an access of memory, an out-of-bounds index stops the run with an error at this line.

    Args:
        src: the elements.
        index: integers; their shape may differ from that of `src` along `axis` only.
        axis: the dimension.

    Raises:
        ValueError: if the shapes differ along another dimension.
        TypeError: if the indices are not integers.
    """
    given, places = value_of(src), value_of(index)
    dim = axis_of(axis, given.ndim)
    if not places.dtype.is_integer:
        raise TypeError(f"indices are integers, not {places.dtype}")
    if places.ndim != given.ndim or any(a != b for d, (a, b) in enumerate(zip(given.shape, places.shape)) if d != dim):
        raise ValueError(f"gather from {given.describe()} along axis {axis} cannot take indices {places.describe()}")
    # Lanes cannot index registers: each row is compared with all indices.
    places = places.to(types.int32) if places.dtype.bits < 32 else places
    extent = given.shape[dim]
    inside = places < extent
    device_assert(
        inside & (places >= 0) if places.dtype.is_signed else inside, f"gather: an index is not 0 to {extent - 1}"
    )
    wanted = places.with_first(dim)
    rows = given.with_first(dim)
    found = constant(given.dtype, 0, wanted.shape)
    for k in range(extent):
        found = where(wanted == k, rows.rows([k]).broadcast(wanted.shape), found)
    return found.from_first(places.shape, dim)


def unpack_int4(value: Any, signed: bool = True) -> Value:
    """Bytes of two packed 4-bit integers as twice as many integers of 8 bits along the last dimension.

    The first of each two is in the low four bits, as in ONNX and in `ml_dtypes.int4` arrays that are packed.

    Args:
        value: int8 or uint8.
        signed: whether the integers are -8 to 7, which gives int8, and not 0 to 15, which gives uint8.

    Raises:
        TypeError: for other types.
    """
    given = value_of(value)
    if given.dtype not in (types.int8, types.uint8):
        raise TypeError(f"unpack_int4 needs bytes, not {given.dtype}")
    bytes_ = given.to(types.integer_of(8, signed))
    low = (bytes_ << 4) >> 4
    return interleave(low, bytes_ >> 4)


def pack_int4(value: Any) -> Value:
    """The low four bits of integers packed in half as many bytes along the last dimension: uint8.

    Raises:
        TypeError: for floating-point values.
        ValueError: if the last extent is odd.
    """
    given = value_of(value)
    if given.dtype.kind not in ("int", "uint"):
        raise TypeError(f"pack_int4 needs integers, not {given.dtype}")
    if not given.shape or given.shape[-1] % 2:
        raise ValueError(f"pack_int4 needs an even last extent, but got {given.describe()}")
    low, high = split(given.to(types.uint8).reshape((*given.shape[:-1], given.shape[-1] // 2, 2)))
    return (low & 15) | (high << 4)
