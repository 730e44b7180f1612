"""Conversion between matrices and the register layouts of DPAS operands (DPAS.md, semantics).

A and C are row-major. Each column of B is in one channel of 32 bits (64 for df): for every column, a GRF holds the
consecutive elements of K that fill a channel, for example two bf or hf, four bytes or eight 4-bit elements (VNNI).
Elements of less than a byte are packed from the lowest bit on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.formats import PRECISIONS, TYPES, Array, Format
from xegpu_py.numerics.narrow import pack_bytes, unpack_bytes

_CHANNEL = 32


def pack_a(matrix: npt.ArrayLike, precision: str) -> Array:
    """Lay out A for src2.

    Args:
        matrix: [..., M, K], of the precision's storage type; integers below 8 bits as int8 or uint8.
        precision: u1 to s8, bf, hf, tf32, bf8, hf8, e2m1 or df.

    Returns:
        uint8 [..., bytes].

    Raises:
        ValueError: if the precision is none of these, a value is out of range, or a row or the whole matrix does not
            fill bytes.
    """
    fmt = _precision(precision)
    values = _values(matrix, fmt, "matrix")
    return _pack(values.reshape(*values.shape[:-2], -1), fmt)


def unpack_a(data: npt.ArrayLike, M: int, K: int, precision: str) -> Array:
    """The matrix A [..., M, K] in src2; the inverse of `pack_a`."""
    fmt = _precision(precision)
    elements = _unpack(np.asarray(data), fmt)[..., : M * K]
    return elements.reshape(*elements.shape[:-1], M, K)


def pack_b(matrix: npt.ArrayLike, precision: str) -> Array:
    """Lay out B for src1.

    Args:
        matrix: [..., K, N], of the same types. K is padded with zeros to whole channels.
        precision: as for `pack_a`.

    Returns:
        uint8 [..., bytes]: whole GRFs of N channels.

    Raises:
        ValueError: as `pack_a`.
    """
    fmt = _precision(precision)
    values = _values(matrix, fmt, "matrix")
    per_channel = _per_channel(fmt)
    *lead, k, n = values.shape
    missing = -k % per_channel
    filled = np.concatenate([values, np.zeros((*lead, missing, n), values.dtype)], axis=-2) if missing else values
    grfs = filled.reshape(*lead, -1, per_channel, n)
    channels = _pack(np.ascontiguousarray(np.swapaxes(grfs, -1, -2)), fmt)
    return channels.reshape(*lead, -1)


def unpack_b(data: npt.ArrayLike, K: int, N: int, precision: str) -> Array:
    """The matrix B [..., K, N] in src1; the inverse of `pack_b`."""
    fmt = _precision(precision)
    elements = _unpack(np.asarray(data), fmt)
    channels = elements.reshape(*elements.shape[:-1], -1, N, _per_channel(fmt))
    rows = np.swapaxes(channels, -1, -2)
    return np.ascontiguousarray(rows.reshape(*rows.shape[:-3], -1, N)[..., :K, :])


def pack_c(matrix: npt.ArrayLike, dtype: str) -> Array:
    """Lay out C or D [..., M, N] of a vISA type such as "f" for src0 or dst; uint8 [..., bytes].

    Raises:
        TypeError: if the matrix has another storage type.
        ValueError: if there is no such type.
    """
    fmt = _type(dtype)
    values = np.asarray(matrix)
    if values.dtype != fmt.dtype:
        raise TypeError(f"'matrix' must have the dtype {fmt.dtype} for {dtype}, but got {values.dtype}")
    return np.ascontiguousarray(values).reshape(*values.shape[:-2], -1).view(np.uint8)


def unpack_c(data: npt.ArrayLike, M: int, N: int, dtype: str) -> Array:
    """The matrix C or D [..., M, N] of a vISA type in src0 or dst; the inverse of `pack_c`."""
    fmt = _type(dtype)
    flat = np.ascontiguousarray(np.asarray(data)[..., : M * N * fmt.bytes]).view(fmt.dtype)
    return flat.reshape(*flat.shape[:-1], M, N)


def _precision(name: str) -> Format:
    if name not in PRECISIONS:
        raise ValueError(f"'precision' must be one of {', '.join(PRECISIONS)}, but got {name!r}")
    return PRECISIONS[name]


def _type(name: str) -> Format:
    if name not in TYPES:
        raise ValueError(f"'dtype' must be one of {', '.join(TYPES)}, but got {name!r}")
    return TYPES[name]


def _per_channel(fmt: Format) -> int:
    return max(_CHANNEL // fmt.bits, 1)


def _values(matrix: npt.ArrayLike, fmt: Format, name: str) -> Array:
    values = np.asarray(matrix)
    if values.ndim < 2:
        raise ValueError(f"'{name}' must have at least two dimensions, not {values.ndim}")
    if fmt.is_float:
        if values.dtype != fmt.dtype:
            raise TypeError(f"'{name}' must have the dtype {fmt.dtype} for {fmt.name}, but got {values.dtype}")
        return values
    if values.dtype not in (np.int8, np.uint8):
        raise TypeError(f"'{name}' must have the dtype int8 or uint8 for {fmt.name}, but got {values.dtype}")
    low = -(1 << (fmt.bits - 1)) if fmt.kind == "s" else 0
    high = low + (1 << fmt.bits) - 1
    if values.size and not (low <= int(values.min()) and int(values.max()) <= high):
        raise ValueError(f"'{name}' must be in {low} to {high} for {fmt.name}")
    return values


def _pack(values: Array, fmt: Format) -> Array:
    """Pack along the last axis."""
    if fmt.bits >= 8:
        return np.ascontiguousarray(values).view(np.uint8)
    per_byte = 8 // fmt.bits
    if values.shape[-1] % per_byte:
        raise ValueError(f"{values.shape[-1]} elements of {fmt.name} do not fill bytes")
    return pack_bytes(values.view(np.uint8), fmt.bits)


def _unpack(data: Array, fmt: Format) -> Array:
    """Unpack along the last axis."""
    if fmt.bits >= 8:
        return np.ascontiguousarray(data).view(fmt.dtype)
    fields = unpack_bytes(data, fmt.bits)
    if fmt.kind == "s":
        sign = np.uint8(1 << (fmt.bits - 1))
        fields = (fields ^ sign) - sign
    return fields.view(fmt.dtype)


__all__ = ["pack_a", "pack_b", "pack_c", "unpack_a", "unpack_b", "unpack_c"]
