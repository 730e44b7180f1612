"""f32 arithmetic of our own, to the bit, by exact fractions: it shares no code with the product."""

import math
from fractions import Fraction

import numpy as np

LOG2_E, LN_2 = 1.4426950408889634, math.log(2)


def rounded(x):
    """A fraction to the nearest f32, ties to even; the exponent is that of normal numbers."""
    if x == 0:
        return np.float32(0)
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    # Python rounds to even.
    return np.float32(float(round(x / unit) * unit))


@np.vectorize(otypes=[np.float32])
def fma(a, b, c):
    """a x b + c with one rounding, of finite numbers."""
    return rounded(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def exp(x):
    """docs/lowering.md: 2 to the power x log2(e), corrected to first order by what the product lost."""
    high = np.float32(LOG2_E)
    rest = np.float32(LOG2_E - float(high))
    scaled = x * high
    lost = fma(x, np.full_like(x, rest), fma(x, np.full_like(x, high), -scaled))
    power = np.exp2(scaled.astype(np.float64)).astype(np.float32)
    return fma(power * np.float32(LN_2), lost, power)


def butterfly(parts):
    """Sums over lanes, the last axis: those are added whose numbers differ in one bit, the lowest bit first."""
    lanes = parts.shape[-1]
    for k in range(lanes.bit_length() - 1):
        parts = parts + parts[..., np.arange(lanes) ^ (1 << k)]
    return parts[..., :1]
