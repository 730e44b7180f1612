"""SRND: stochastic rounding, F to HF and HF to BF8 (SRND.md)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.formats import BF8, HF, Array, F, as_format, bits_of
from xegpu_py.numerics.rounding import narrow_bits

SOURCES = {HF: F, BF8: HF}
"""The source format of each result. Rounding uses as many random bits as the mantissa loses."""
_TARGETS = {target.name: target for target in SOURCES}


def srnd(src0: npt.ArrayLike, src1: npt.ArrayLike, dst_type: Literal["hf", "bf8"]) -> Array:
    """Round stochastically: add random bits to the mantissa from its lowest bit on, and truncate (SRND.md).

    Subnormal sources and results are kept. Overflow and infinity give infinity, NaN gives the canonical NaN.

    Args:
        src0: the numbers, of any shape: float32 for "hf", float16 for "bf8", or their unsigned bit patterns.
        src1: random numbers of the same type or as unsigned integers of the same width, broadcast against `src0`; the
            lowest 13 bits of each are used for "hf", the lowest 8 for "bf8".
        dst_type: "hf" or "bf8".

    Returns:
        float16 or float8_e5m2, of the broadcast shape of `src0` and `src1`.

    Raises:
        TypeError: if `src0` or `src1` has another type.
        ValueError: if `dst_type` is neither.
    """
    if dst_type not in _TARGETS:
        raise ValueError(f"'dst_type' must be 'hf' or 'bf8', but got {dst_type!r}")
    target = _TARGETS[dst_type]
    source = SOURCES[target]
    count = source.mantissa - target.mantissa
    values = as_format(src0, source, "src0")
    random = bits_of(as_format(src1, source, "src1")).astype(np.uint64) & np.uint64((1 << count) - 1)
    bits = bits_of(values).astype(np.uint64)
    sign = bits >> np.uint64(source.bits - 1)
    magnitude = bits & np.uint64((1 << (source.bits - 1)) - 1)
    infinity = np.uint64(source.infinity)
    # A finite number and the random bits may pass the pattern of infinity, which means infinity.
    moved = magnitude + np.where(magnitude >= infinity, np.uint64(0), random)
    rounded = narrow_bits(moved, source.fields, target.fields, nearest=False)
    result = np.where(magnitude > infinity, np.uint64(target.nan), rounded | sign << np.uint64(target.bits - 1))
    return np.asarray(result.astype(f"u{target.bytes}")).view(target.dtype)
