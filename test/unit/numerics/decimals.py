"""Constants and functions as decimals of many digits, by series."""

from decimal import Decimal, localcontext

DIGITS = 100


def pi() -> Decimal:
    """By the series of 6 asin(1/2)."""
    with localcontext() as context:
        context.prec += 5
        term = total = Decimal(3)
        i, before = 0, Decimal(0)
        while total != before:
            before = total
            i += 1
            term = term * (2 * i - 1) * (2 * i - 1) / (4 * 2 * i * (2 * i + 1))
            total += term
        return total


with localcontext() as wider:
    wider.prec = 720
    PI = pi()
    LN2 = Decimal(2).ln()


def circular(x: float, cosine: bool) -> Decimal:
    with localcontext() as context:
        # The number of f64 with the most digits has 309 before the point.
        context.prec = 420
        angle = Decimal(x)
        angle -= (angle / (2 * PI)).to_integral_value() * 2 * PI
        context.prec = DIGITS
        # By the exponential series of the half angles, in one variable: tan would divide by zero.
        angle = +angle
        term = Decimal(1) if cosine else angle
        total, before, i = term, Decimal(10), int(not cosine)
        while total != before:
            before = total
            term = -term * angle * angle / ((i + 1) * (i + 2))
            i += 2
            total += term
        return total
