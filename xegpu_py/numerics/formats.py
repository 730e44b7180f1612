"""Number formats: vISA's register types, and the precisions of DPAS operands.

Sources: DPAS.md (operand precisions, legal combinations), FCVT.md (BF8, TF32). Storage types are types of numpy and
ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
        name: vISA's lower-case name.
        bits: width in bits; 32 for tf32, which has a 32-bit container.
        kind: unsigned integer, signed integer or floating point.
        dtype: the numpy type that stores it; one byte for formats of less than 8 bits.
        nan: bit pattern of the canonical NaN, which is quiet and positive; 0 for integers and e2m1, which have none.
        exponent, mantissa: bits of these fields of a floating-point format.
        mlir: MLIR's name of a floating-point format.
        register: vISA's name of the register type that holds it, if it is another one.
    """

    name: str
    bits: int
    kind: Literal["u", "s", "f"]
    dtype: np.dtype[Any]
    nan: int = 0
    exponent: int = 0
    mantissa: int = 0
    mlir: str = ""
    register: str = ""

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
    def infinity(self) -> int:
        """The bit pattern of an exponent of ones: infinity, if the floating-point format has one."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def finite(self) -> float:
        """The greatest finite value of a floating-point format."""
        return float(ml_dtypes.finfo(self.dtype).max)  # type: ignore[no-untyped-call]

    @property
    def greatest(self) -> float:
        """The greatest value of a floating-point format: infinity if it has one."""
        with np.errstate(all="ignore"):
            return np.inf if np.isinf(np.float32(np.inf).astype(self.dtype)) else self.finite


def _float(name: str, mlir: str, fields: tuple[int, int], dtype: Any, nan: int, register: str = "") -> Format:
    """A floating-point format by the widths of its exponent and mantissa."""
    storage = np.dtype(dtype)
    return Format(name, 8 * storage.itemsize, "f", storage, nan, *fields, mlir, register or name)


F = _float("f", "f32", (8, 23), np.float32, 0x7FC00000)
HF = _float("hf", "f16", (5, 10), np.float16, 0x7E00)
BF = _float("bf", "bf16", (8, 7), ml_dtypes.bfloat16, 0x7FC0)
DF = _float("df", "f64", (11, 52), np.float64, 0x7FF8 << 48)
BF8 = _float("bf8", "f8E5M2", (5, 2), ml_dtypes.float8_e5m2, 0x7E, "ub")
HF8 = _float("hf8", "f8E4M3FN", (4, 3), ml_dtypes.float8_e4m3fn, 0x7F, "ub")
TF32 = _float("tf32", "tf32", (8, 10), np.float32, 0x7FC00000, "f")
E8M0 = _float("e8m0", "f8E8M0FNU", (8, 0), ml_dtypes.float8_e8m0fnu, 0xFF, "ub")
E2M1 = Format("e2m1", 4, "f", np.dtype(ml_dtypes.float4_e2m1fn), 0, 2, 1, "f4E2M1FN", "ub")

IEEE = {f.bits: f for f in (HF, F, DF)}
"""The formats of IEEE 754 by their widths."""

FLOATS = {f.mlir: f for f in (HF, BF, F, DF, TF32, BF8, HF8, E8M0, E2M1)}
"""The floating-point formats by MLIR's names."""

TYPES = {
    f.name: f
    for f in (
        Format("ub", 8, "u", np.dtype(np.uint8)),
        Format("b", 8, "s", np.dtype(np.int8)),
        Format("uw", 16, "u", np.dtype(np.uint16)),
        Format("w", 16, "s", np.dtype(np.int16)),
        Format("ud", 32, "u", np.dtype(np.uint32)),
        Format("d", 32, "s", np.dtype(np.int32)),
        Format("uq", 64, "u", np.dtype(np.uint64)),
        Format("q", 64, "s", np.dtype(np.int64)),
        HF,
        BF,
        F,
        DF,
    )
}
"""The types of registers, by vISA's names."""

PRECISIONS = {
    **{
        f"{sign}{bits}": Format(f"{sign}{bits}", bits, sign, np.dtype(f"{'u' if sign == 'u' else ''}int8"))
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
