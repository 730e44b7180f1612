"""FCVT: conversions of BF8 and TF32 (FCVT.md)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.formats import BF8, HF, TF32, Array, F, as_format, bits_of, canonical
from xegpu_py.numerics.rounding import round_float

_DROPPED = F.mantissa - TF32.mantissa


def fcvt(src0: npt.ArrayLike, dst_type: Literal["bf8", "hf", "tf32"]) -> Array:
    """Convert HF to BF8, BF8 to HF, or F to TF32 (FCVT.md).

    HF to BF8 rounds to nearest even, keeps subnormals, and overflows to infinity. BF8 to HF is exact. F to TF32 rounds
    to nearest even and flushes subnormal numbers to zeros of their sign. NaN gives the canonical NaN.

    Args:
        src0: numbers of any shape: float16 for "bf8", float8_e5m2 for "hf", float32 for "tf32", or their unsigned bit
            patterns.
        dst_type: what to convert to.

    Returns:
        float8_e5m2, float16, or for "tf32" float32 whose lowest 13 bits are zero.

    Raises:
        TypeError: if `src0` has another type.
        ValueError: if `dst_type` is none of these.
    """
    if dst_type == "bf8":
        return round_float(as_format(src0, HF, "src0"), BF8)
    if dst_type == "hf":
        return round_float(as_format(src0, BF8, "src0"), HF)
    if dst_type == "tf32":
        return _to_tf32(as_format(src0, F, "src0"))
    raise ValueError(f"'dst_type' must be 'bf8', 'hf' or 'tf32', but got {dst_type!r}")


def _to_tf32(values: Array) -> Array:
    bits = np.array(bits_of(values))
    exponent = bits & np.uint32(F.infinity)
    subnormal, special = exponent == 0, exponent == F.infinity
    odd = (bits >> np.uint32(_DROPPED)) & np.uint32(1)
    half = np.uint32((1 << (_DROPPED - 1)) - 1)
    rounded = (bits + np.where(special, np.uint32(0), half + odd)) & np.uint32(0xFFFFFFFF << _DROPPED & 0xFFFFFFFF)
    result = np.where(subnormal, bits & np.uint32(0x80000000), rounded).astype(np.uint32)
    nan = np.isnan(values)
    return canonical(np.where(nan, np.uint32(TF32.nan), result).view(np.float32), TF32)
