"""Number formats: vISA's register types, and the precisions of DPAS operands.

Sources: DPAS.md (operand precisions, legal combinations), FCVT.md (BF8, TF32). Storage types are those of numpy and of
ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass
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
        bits: width in bits; tf32 is carried in 32.
        kind: unsigned integer, signed integer or floating point.
        dtype: what holds it in numpy; a byte for formats below 8 bits.
        nan: bit pattern of the canonical NaN, which is quiet and positive; 0 for integers.
    """

    name: str
    bits: int
    kind: Literal["u", "s", "f"]
    dtype: np.dtype[Any]
    nan: int = 0

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point format."""
        return self.kind == "f"

    @property
    def bytes(self) -> int:
        """Width in bytes."""
        return self.bits // 8


def _float(name: str, bits: int, dtype: Any, nan: int) -> Format:
    return Format(name, bits, "f", np.dtype(dtype), nan)


F = _float("f", 32, np.float32, 0x7FC00000)
HF = _float("hf", 16, np.float16, 0x7E00)
BF = _float("bf", 16, ml_dtypes.bfloat16, 0x7FC0)
DF = _float("df", 64, np.float64, 0x7FF8 << 48)
BF8 = _float("bf8", 8, ml_dtypes.float8_e5m2, 0x7E)
HF8 = _float("hf8", 8, ml_dtypes.float8_e4m3fn, 0x7F)
TF32 = _float("tf32", 32, np.float32, 0x7FC00000)

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
    **{f.name: f for f in (BF, HF, TF32, BF8, HF8, DF)},
}
"""The precisions of DPAS operands, by vISA's names (DPAS.md, "all operand precisions")."""


def bits_of(values: Array) -> Array:
    """The bit patterns of an array, as unsigned integers of the same width. Unsigned integers are patterns already."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def canonical(values: Array, fmt: Format) -> Array:
    """The array with every NaN made the canonical one. It is changed in place, and returned."""
    if fmt.is_float:
        with np.errstate(invalid="ignore"):
            bits_of(values)[np.isnan(values)] = fmt.nan
    return values


def as_format(values: npt.ArrayLike, fmt: Format, name: str) -> Array:
    """An argument that holds values of a format: in its storage type, or as unsigned bit patterns of its width.

    Args:
        name: what to call the argument in errors.

    Raises:
        TypeError: if it has another type.
    """
    array = np.asarray(values)
    if array.dtype == fmt.dtype:
        return array
    if array.dtype == np.dtype(f"u{fmt.dtype.itemsize}"):
        return array.view(fmt.dtype)
    raise TypeError(f"'{name}' must be {fmt.dtype} or its bit patterns, u{fmt.dtype.itemsize * 8}, not {array.dtype}")
