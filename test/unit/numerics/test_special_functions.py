"""Special functions of libdevice against decimals of many digits, within the errors that docs/triton.md states."""

import math
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from effort import examples

from xegpu_py.numerics.double_functions import evaluate_formula
from xegpu_py.numerics.special_functions import SPECIAL_FUNCTIONS

from .decimals import PI, circular
from .test_double_functions import erf, erfc

TABLE = (Path(__file__).parents[3] / "docs/triton.md").read_text()

BOUNDS = {name: float(bound) for name, bound in re.findall(r"(?m)^\| `(\w+)` \|.*\| ([\d.e-]+) \|$", TABLE)}
"""The errors: of Bessel functions absolute, of others in units in the last place."""

DIGITS = 60

BERNOULLI = [Fraction(1)]
for m in range(1, 41):
    BERNOULLI.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(BERNOULLI)) / (m + 1))


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def log_gamma(x: Decimal) -> Decimal:
    """By Stirling's series of a number that is forty greater, for positive numbers."""
    product = Decimal(1)
    for n in range(40):
        product *= x + n
    x += 40
    series = sum(decimal(BERNOULLI[2 * k] / (2 * k * (2 * k - 1))) / x ** (2 * k - 1) for k in range(1, 21))
    return (x - Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + series - product.ln()


def sine_of_turns(x: Decimal) -> Decimal:
    return circular(PI * (x % 2), False)


def gamma(x: Decimal) -> Decimal:
    if x > 0:
        return log_gamma(x).exp()
    return PI / (sine_of_turns(x) * log_gamma(1 - x).exp())


def series(x: Decimal, order: int, sign: int) -> Decimal:
    """J or I of order 0 or 1."""
    total, term, k = Decimal(0), (x / 2) ** order, 0
    while total + term != total or k < abs(x):
        total += term
        k += 1
        term *= sign * (x / 2) ** 2 / (k * (k + order))
    return total


def euler() -> Decimal:
    """Euler's constant by Brent's and McMillan's series."""
    n = 50
    a = -Decimal(n).ln()
    u, v, b = a, Decimal(1), Decimal(1)
    for k in range(1, 500):
        b *= Decimal(n) ** 2 / Decimal(k) ** 2
        a = (a * Decimal(n) ** 2 / k + b) / k
        u, v = u + a, v + b
    return u / v


def second_kind(x: Decimal, order: int) -> Decimal:
    """Y of order 0 or 1, by the series with harmonic numbers."""
    total, term, k, harmonic = Decimal(0), (x / 2) ** order, 0, Decimal(0)
    while k < 5 or abs(term) > Decimal(10) ** -DIGITS or k < x:
        following = harmonic + (Decimal(1) / (k + order) if order else 0) if k or order else Decimal(0)
        total += term * (harmonic + following - 2 * EULER)
        k += 1
        harmonic += Decimal(1) / k
        term *= -((x / 2) ** 2) / (k * (k + order))
    log = 2 * (x / 2).ln() * series(x, order, -1)
    return (log - (2 / x if order else 0) - total) / PI


with localcontext() as wider:
    wider.prec = 100
    EULER = euler()


def inverse_error(x: Decimal, y: Decimal, of: Callable[[Decimal], Decimal]) -> Decimal:
    """The number near y whose function erf or erfc is x."""
    slope = 2 / PI.sqrt() * (-y * y).exp()
    return y - (of(y) - x) / (slope if of is erf else -slope)


def logs(least: float, most: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, count: np.exp2(rng.uniform(least, most, count))


def uniform(least: float, most: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, count: rng.uniform(least, most, count)


PLANE = [lambda rng, count: rng.standard_normal(count) * np.exp2(rng.uniform(-30, 30, count))]
EXACT = {
    "sinpi": (sine_of_turns, [uniform(-40, 40), logs(-40, 40)]),
    "cospi": (lambda x: circular(PI * (x % 2), True), [uniform(-40, 40), logs(-40, 40)]),
    "lgamma": (log_gamma, [uniform(0.5, 12), logs(-60, 300)]),
    "tgamma": (gamma, [uniform(0.1, 171), uniform(-170, 0), logs(-60, 7)]),
    "erfcx": (lambda x: (x * x).exp() * erfc(x), [uniform(-26, 26), uniform(-1, 3)]),
    "erfinv": (lambda x, y: inverse_error(x, y, erf), [uniform(-1, 1), logs(-60, -1)]),
    "erfcinv": (lambda x, y: inverse_error(x, y, erfc), [uniform(0, 2), logs(-300, -1)]),
    "normcdf": (lambda x: erfc(-x / Decimal(2).sqrt()) / 2, [uniform(-36, 8)]),
    "normcdfinv": (
        lambda x, y: -Decimal(2).sqrt() * inverse_error(2 * x, -y / Decimal(2).sqrt(), erfc), [logs(-300, -1)],
    ),
    "j0": (lambda x: series(x, 0, -1), [uniform(-60, 60)]),
    "j1": (lambda x: series(x, 1, -1), [uniform(-60, 60)]),
    "y0": (lambda x: second_kind(x, 0), [uniform(0.1, 60)]),
    "y1": (lambda x: second_kind(x, 1), [uniform(0.5, 60)]),
    "cyl_bessel_i0": (lambda x: series(x, 0, 1), [uniform(-60, 60)]),
    "cyl_bessel_i1": (lambda x: series(x, 1, 1), [uniform(-60, 60)]),
    "hypot": (lambda *v: sum(x * x for x in v).sqrt(), PLANE * 2),
    "norm3d": (lambda *v: sum(x * x for x in v).sqrt(), PLANE * 3),
    "norm4d": (lambda *v: sum(x * x for x in v).sqrt(), PLANE * 4),
    "rhypot": (lambda *v: 1 / sum(x * x for x in v).sqrt(), PLANE * 2),
    "rnorm3d": (lambda *v: 1 / sum(x * x for x in v).sqrt(), PLANE * 3),
    "rnorm4d": (lambda *v: 1 / sum(x * x for x in v).sqrt(), PLANE * 4),
    "rcbrt": (lambda x: (-(x.ln()) / 3).exp(), [logs(-900, 900)]),
}  # fmt: skip
"""The functions in decimals, and where they are compared; those of lengths take all sets at once."""

LENGTHS = ("hypot", "norm3d", "norm4d", "rhypot", "rnorm3d", "rnorm4d")


def errors(name: str, *values: np.ndarray) -> float:
    found = evaluate_formula(SPECIAL_FUNCTIONS[name], *values)
    worst, is_absolute = 0.0, name in ("j0", "j1", "y0", "y1")
    with localcontext() as context:
        context.prec = 2 * DIGITS
        for number, *given in zip(found.tolist(), *(v.tolist() for v in values)):
            extra = [Decimal(number)] if "inv" in name else []
            exact = EXACT[name][0](*map(Decimal, given), *extra)
            unit = 1.0 if is_absolute else float(np.spacing(np.abs(np.float64(float(exact)))))
            worst = max(worst, float(abs(Decimal(number) - exact)) / unit)
    return worst


def test_each_has_a_bound():
    assert set(EXACT) == set(SPECIAL_FUNCTIONS) == set(BOUNDS)


@pytest.mark.parametrize("name", EXACT)
def test_errors(name):
    rng = np.random.default_rng(len(name))
    sets = [of(rng, examples(200)) for of in EXACT[name][1]]
    for values in [sets] if name in LENGTHS else [[x] for x in sets]:
        assert errors(name, *values) <= BOUNDS[name], name


NAN, INF = math.nan, math.inf
SPECIAL = {
    "sinpi": [(0.0, 0.0), (-0.0, -0.0), (1.0, 0.0), (-1.0, -0.0), (2.0**60, 0.0), (0.5, 1.0), (INF, NAN), (NAN, NAN)],
    "cospi": [(0.0, 1.0), (1.0, -1.0), (0.5, 0.0), (2.0**60, 1.0), (2.0**53 - 1, -1.0), (-INF, NAN), (NAN, NAN)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF), (NAN, NAN), (1e308, INF)],
    "tgamma": [(1.0, 1.0), (5.0, 24.0), (0.0, INF), (-0.0, -INF), (-2.0, NAN), (172.0, INF), (INF, INF), (-INF, NAN),
               (NAN, NAN), (-200.5, -0.0)],
    "erfcx": [(0.0, 1.0), (-30.0, INF), (INF, 0.0), (-INF, INF), (NAN, NAN), (1e200, 5.641895835477563e-201)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (NAN, NAN)],
    "erfcinv": [(1.0, 0.0), (0.0, INF), (2.0, -INF), (-0.5, NAN), (2.5, NAN), (NAN, NAN)],
    "normcdf": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (-40.0, 0.0)],
    "normcdfinv": [(0.5, 0.0), (0.0, -INF), (1.0, INF), (-0.1, NAN), (NAN, NAN)],
    "j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (NAN, NAN)],
    "y0": [(0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "y1": [(0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "cyl_bessel_i0": [(0.0, 1.0), (800.0, INF), (-INF, INF), (NAN, NAN)],
    "cyl_bessel_i1": [(0.0, 0.0), (-0.0, -0.0), (800.0, INF), (-INF, -INF), (NAN, NAN)],
    "hypot": [(3.0, 4.0, 5.0), (0.0, -0.0, 0.0), (INF, NAN, INF), (NAN, 1.0, NAN), (3e300, 4e300, 5e300)],
    "rhypot": [(3.0, 4.0, 0.2), (0.0, -0.0, INF), (INF, NAN, 0.0)],
    "rcbrt": [(8.0, 0.5), (-8.0, -0.5), (0.0, INF), (INF, 0.0), (NAN, NAN)],
}  # fmt: skip
"""Arguments, and results behind them."""


@pytest.mark.parametrize("name", SPECIAL)
def test_special_numbers(name):
    *values, wanted = (np.array(v) for v in zip(*SPECIAL[name]))
    found = evaluate_formula(SPECIAL_FUNCTIONS[name], *values)
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(wanted)[known])
