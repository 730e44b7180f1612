"""Number formats: the bits of each, and the packing of 2 and 4 bit elements into bytes."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

# Number formats: vISA's register types, and the precisions of DPAS operands.
#
# Sources: DPAS.md (operand precisions, legal combinations), FCVT.md (BF8, TF32). Storage types are types of numpy and
# ml_dtypes.

Array = npt.NDArray[Any]


class Format(Struct, frozen=True, dict=True):
    """One format.

    Attributes:
        name: vISA's lower-case name.
        bits: width in bits; 32 for tf32, which has a 32-bit container.
        kind: unsigned integer, signed integer or floating point.
        storage: the name of `dtype`.
        nan: bit pattern of the canonical NaN, which is quiet and positive; 0 for integers and e2m1, which have none.
        exponent, mantissa: bits of these fields of a floating-point format.
        mlir: MLIR's name of a floating-point format.
        register: vISA's name of the register type that holds it, if it is another one.
    """

    name: str
    bits: int
    kind: Literal["u", "s", "f"]
    storage: str
    nan: int = 0
    exponent: int = 0
    mantissa: int = 0
    mlir: str = ""
    register: str = ""

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of numpy or ml_dtypes that stores it; one byte for formats of less than 8 bits."""
        return dtype_named(self.storage)

    @cached_property
    def is_float(self) -> bool:
        """Whether it is a floating-point format."""
        return self.kind == "f"

    @cached_property
    def bytes(self) -> int:
        """Width in bytes."""
        return self.bits // 8

    @property
    def fields(self) -> tuple[int, int]:
        """The number of exponent bits, and of mantissa bits."""
        return self.exponent, self.mantissa

    @property
    def bias(self) -> int:
        """The exponent's bias."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        """The bit pattern of an exponent of ones: infinity, if the floating-point format has one."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def finite(self) -> float:
        """The greatest finite value of a floating-point format."""
        import ml_dtypes

        return float(ml_dtypes.finfo(self.dtype).max)  # type: ignore[no-untyped-call]

    @property
    def greatest(self) -> float:
        """The greatest value of a floating-point format: infinity if it has one."""
        with np.errstate(all="ignore"):
            return np.inf if np.isinf(np.float32(np.inf).astype(self.dtype)) else self.finite


@cache
def dtype_named(name: str) -> np.dtype[Any]:
    """The type of numpy or ml_dtypes of a name."""
    if hasattr(np, name):
        return np.dtype(name)
    # Imported only for kernels with elements of such a type: the import takes 4 ms.
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def _float(
    name: str, mlir: str, bits: int, fields: tuple[int, int], storage: str, nan: int, register: str = ""
) -> Format:
    """A floating-point format by the widths of its exponent and mantissa."""
    return Format(name, bits, "f", storage, nan, *fields, mlir, register or name)


F = _float("f", "f32", 32, (8, 23), "float32", 0x7FC00000)

HF = _float("hf", "f16", 16, (5, 10), "float16", 0x7E00)

BF = _float("bf", "bf16", 16, (8, 7), "bfloat16", 0x7FC0)

DF = _float("df", "f64", 64, (11, 52), "float64", 0x7FF8 << 48)

BF8 = _float("bf8", "f8E5M2", 8, (5, 2), "float8_e5m2", 0x7E, "ub")

HF8 = _float("hf8", "f8E4M3FN", 8, (4, 3), "float8_e4m3fn", 0x7F, "ub")

TF32 = _float("tf32", "tf32", 32, (8, 10), "float32", 0x7FC00000, "f")

E8M0 = _float("e8m0", "f8E8M0FNU", 8, (8, 0), "float8_e8m0fnu", 0xFF, "ub")

E2M1 = Format("e2m1", 4, "f", "float4_e2m1fn", 0, 2, 1, "f4E2M1FN", "ub")

BYTE_FLOATS = (BF8.mlir, HF8.mlir)
"""The numbers of 8 bits that products and conversions take, by MLIR's names."""

IEEE = {f.bits: f for f in (HF, F, DF)}
"""The formats of IEEE 754 by their widths."""

FLOATS = {f.mlir: f for f in (HF, BF, F, DF, TF32, BF8, HF8, E8M0, E2M1)}
"""The floating-point formats by MLIR's names."""

TYPES = {
    f.name: f
    for f in (
        Format("ub", 8, "u", "uint8"),
        Format("b", 8, "s", "int8"),
        Format("uw", 16, "u", "uint16"),
        Format("w", 16, "s", "int16"),
        Format("ud", 32, "u", "uint32"),
        Format("d", 32, "s", "int32"),
        Format("uq", 64, "u", "uint64"),
        Format("q", 64, "s", "int64"),
        HF,
        BF,
        F,
        DF,
    )
}
"""The types of registers, by vISA's names."""

STORAGE = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"{sign}i{bits}": f"{sign}int{bits}" for bits in (2, 4) for sign in ("", "u")},
    **{name: fmt.storage for name, fmt in FLOATS.items() if name != "tf32"},
}
"""The types of array elements, see `dtype_named`, by MLIR's names."""

PRECISIONS = {
    **{
        f"{sign}{bits}": Format(f"{sign}{bits}", bits, sign, f"{'u' if sign == 'u' else ''}int8")
        for bits in (1, 2, 4, 8)
        for sign in ("u", "s")
    },
    **{f.name: f for f in (BF, HF, TF32, BF8, HF8, E2M1, DF)},
}
"""The precisions of DPAS operands, by vISA's names (DPAS.md, "all operand precisions"; e2m1 is of later vISA)."""


def bits_of(values: Array) -> Array:
    """The bit patterns of an array, as unsigned integers of the same width. Unsigned integers are patterns already."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def canonical(values: Array, fmt: Format) -> Array:
    """Replace each NaN of the array by the canonical one, in place, and return the array."""
    if fmt.is_float:
        with np.errstate(invalid="ignore"):
            bits_of(values)[np.isnan(values)] = fmt.nan
    return values


def flush(values: Array, fmt: Format) -> Array:
    """The numbers of an array, zeros of their signs in place of subnormal ones."""
    bits = bits_of(values)
    exponent, sign = (bits.dtype.type(mask) for mask in (fmt.infinity, 1 << (fmt.bits - 1)))
    return np.where(bits & exponent == 0, bits & sign, bits).view(values.dtype)


def as_format(values: npt.ArrayLike, fmt: Format, name: str) -> Array:
    """An argument as an array of a format's storage type; it has this type, or unsigned bit patterns of its width.

    Args:
        name: the argument's name in errors.

    Raises:
        TypeError: if it has another type.
    """
    array = np.asarray(values)
    if array.dtype == fmt.dtype:
        return array
    if array.dtype == np.dtype(f"u{fmt.dtype.itemsize}"):
        return array.view(fmt.dtype)
    raise TypeError(
        f"'{name}' must be {fmt.dtype} or its bit patterns, u{fmt.dtype.itemsize * 8}, but got {array.dtype}"
    )


def broadcast(*arrays: Array) -> tuple[Array, ...]:
    """Arrays of one shape, as `numpy.broadcast_arrays`.

    Raises:
        ValueError: if the shapes do not broadcast.
    """
    try:
        return np.broadcast_arrays(*arrays)
    except ValueError:
        raise ValueError(f"shapes {', '.join(str(list(a.shape)) for a in arrays)} do not broadcast") from None


# Arrays of 2-bit and 4-bit elements: conversion between packed bytes (first element lowest) and one element a byte.

ARRAYS: dict[str, tuple[str, ...]] = {
    **{f"{sign}i4": ("int4", "uint4") for sign in ("", "s", "u")},
    **{f"{sign}i2": ("int2", "uint2") for sign in ("", "s", "u")},
    "f4E2M1FN": ("float4_e2m1fn",),
}
"""The MLIR element types of less than a byte, and the types of ml_dtypes that store one element in a byte."""


def element_bits(element: str) -> int:
    """The width of an element type of less than a byte in bits; 0 for other types."""
    return int(element.lstrip("suif")[0]) if element in ARRAYS else 0


def pack_bytes(values: Array, bits: int) -> Array:
    """Pack elements, uint8[..., n], one a byte, along the last axis. The last packed byte is padded with zeros."""
    *lead, count = values.shape
    each = 8 // bits
    padded = np.zeros((*lead, -(-count // each), each), np.uint8)
    padded.reshape(*lead, -1)[..., :count] = values & np.uint8((1 << bits) - 1)
    return np.bitwise_or.reduce(padded << np.arange(0, 8, bits, dtype=np.uint8), axis=-1)


def unpack_bytes(packed: Array, bits: int) -> Array:
    """Unpack bytes, uint8[..., n], along the last axis: one element a byte, zero-extended."""
    fields = packed[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return fields.reshape(*packed.shape[:-1], -1)
