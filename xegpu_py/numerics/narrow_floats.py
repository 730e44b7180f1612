"""Conversions between narrow floats and wider ones as formulas of integer ops, written once for ops of the IR,
instructions and native code. numerics/rounding.py defines the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xegpu_py.numerics.formats import HF, TF32, F, Format, bits_of

Ops = Mapping[str, Callable[..., Any]]
"""Builds ops of MLIR's names. Their second operand and the last one of "arith.select" may be a constant.

"ult", "ule" and "ne" are predicates of arith.cmpi; "ord" tells of patterns whether they are of numbers. "number" and
"bits" convert patterns to numbers and back.
"""


def half_of(bits: Any, fmt: Format, ops: Ops, canonical: bool = True) -> Any:
    """Convert floats of at most 8 bits, zero-extended to words, to f16, exactly.

    Their bits are placed as those of f16. Its exponent is then too small by the difference of the biases, also that of
    subnormal numbers.

    Args:
        ops: ops on words and f16.
        canonical: whether a NaN that would stay one becomes the canonical one too.
    """
    sign, distance = 1 << (fmt.bits - 1), HF.mantissa - fmt.mantissa
    truth = None
    if fmt.exponent == HF.exponent:
        if canonical:
            truth = ops["ule"](ops["arith.andi"](bits, sign - 1), fmt.infinity)
        number = ops["number"](ops["arith.shli"](bits, distance))
    else:
        magnitude = ops["arith.andi"](bits, sign - 1)
        signs = ops["arith.shli"](ops["arith.andi"](bits, sign), HF.bits - fmt.bits)
        placed = ops["arith.ori"](ops["arith.shli"](magnitude, distance), signs)
        number = ops["arith.mulf"](ops["number"](placed), 2.0 ** (HF.bias - fmt.bias))
        if fmt.nan:
            truth = ops["ne"](magnitude, fmt.nan)
    return number if truth is None else ops["arith.select"](truth, number, HF.nan)


def round_to(bits: Any, source: Format, fmt: Format, ops: Ops, saturate: bool = False) -> Any:
    """Round floats to nearest even to a format of at most 8 bits: patterns in integers of the source's width.

    NaN becomes the canonical NaN, or the greatest number in a format without NaN.

    Args:
        bits: the patterns of the numbers.
        source: their format, with as many bits in the exponent or more.
        ops: ops on the patterns and the numbers.
        saturate: whether numbers beyond the greatest finite one become that one; else they become infinity, or NaN in a
            format without infinity. A format without NaN saturates.
    """
    dropped = source.mantissa - fmt.mantissa
    if fmt.exponent == source.exponent and not saturate:
        # The sign stays in front of the exponent, since only NaNs could carry into it.
        rounded = ops["arith.shrui"](_raised(bits, dropped, ops), dropped)
        return ops["arith.select"](ops["ord"](bits), rounded, fmt.nan)
    magnitude = ops["arith.andi"](bits, (1 << source.bits - 1) - 1)
    if saturate:
        magnitude = ops["arith.minui"](magnitude, _pattern(fmt.finite, source))
    rounded = ops["arith.shrui"](_raised(magnitude, dropped, ops), dropped)
    normal = ops["arith.subi"](rounded, source.bias - fmt.bias << fmt.mantissa)
    # The sum's last bit has the weight of a subnormal result's.
    unit = 2.0 ** (dropped + 1 - fmt.bias)
    total = ops["bits"](ops["arith.addf"](ops["number"](magnitude), unit))
    subnormal = ops["arith.subi"](total, _pattern(unit, source))
    is_subnormal = ops["ult"](magnitude, source.bias + 1 - fmt.bias << source.mantissa)
    code = ops["arith.select"](is_subnormal, subnormal, normal)
    has_infinity = math.isinf(fmt.greatest)
    if not saturate:
        code = ops["arith.minui"](code, fmt.infinity if has_infinity else fmt.nan)
    truth = ops["ord"](bits) if saturate or has_infinity else ops["ne"](code, fmt.nan)
    sign = ops["arith.andi"](ops["arith.shrui"](bits, source.bits - fmt.bits), 1 << fmt.bits - 1)
    return ops["arith.select"](truth, ops["arith.ori"](code, sign), fmt.nan or (1 << fmt.bits - 1) - 1)


def tf32_of(bits: Any, ops: Ops) -> Any:
    """Round patterns of f32 to nearest even to tf32, subnormal numbers to zeros of their sign."""
    dropped = F.mantissa - TF32.mantissa
    rounded = ops["arith.andi"](_raised(bits, dropped, ops), (1 << F.bits) - (1 << dropped))
    is_normal = ops["ne"](ops["arith.andi"](bits, F.infinity), 0)
    flushed = ops["arith.select"](is_normal, rounded, ops["arith.andi"](bits, 1 << F.bits - 1))
    return ops["arith.select"](ops["ord"](bits), flushed, TF32.nan)


def _raised(bits: Any, dropped: int, ops: Ops) -> Any:
    """Patterns that give the nearest number, to even at ties, once the lowest bits are dropped.

    Half a unit is added, less the lowest bit unless the number is odd. A carry out of the mantissa raises the exponent.
    """
    odd = ops["arith.andi"](ops["arith.shrui"](bits, dropped), 1)
    return ops["arith.addi"](ops["arith.addi"](bits, odd), (1 << dropped - 1) - 1)


def _pattern(number: float, fmt: Format) -> int:
    """The bit pattern of a number of a format."""
    return int(bits_of(np.asarray(number, fmt.dtype))[()])
