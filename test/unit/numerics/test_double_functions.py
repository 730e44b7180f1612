"""Functions of f64, against decimals of many digits, within the errors that docs/numerics.md states."""

import math
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from effort import examples

from xegpu_py.numerics.double_functions import _TWO_OVER_PI, DOUBLE_FUNCTIONS, evaluate

from .decimals import LN2, PI, circular, pi

TABLE = (Path(__file__).parents[3] / "docs/numerics.md").read_text().partition("## Functions of f64")[2]

BOUNDS = {name: float(bound) for name, bound in re.findall(r"(?m)^\| (\w+)\([xy, ]+\) \|.*\| ([\d.]+) \|$", TABLE)}

DIGITS = 60

TINY = Decimal("1e-40")
"""Below this number the next term of a series is far below the last digit of f64."""


def series(x: Decimal) -> Decimal:
    """exp(x^2) erf(x) sqrt(pi) / 2, whose terms all have the sign of x."""
    total, term, n = Decimal(0), x, 0
    while total + term != total:
        total += term
        n += 1
        term *= 2 * x * x / (2 * n + 1)
    return total


def erf(x: Decimal) -> Decimal:
    return 2 * series(x) * (-x * x).exp() / PI.sqrt()


def erfc(x: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = DIGITS + int(abs(x * x)) // 2
        return 1 - erf(x)


def atan(x: Decimal) -> Decimal:
    """By three halvings of the angle, and the series."""
    for _ in range(3):
        x = x / (1 + (1 + x * x).sqrt())
    total, term, n = Decimal(0), x, 1
    while total + term / n != total:
        total += term / n
        term *= -x * x
        n += 2
    return 8 * total


def expm1(x: Decimal) -> Decimal:
    return (x / 2).exp() * 2 * sinh(x / 2)


def sinh(x: Decimal) -> Decimal:
    if abs(x) < TINY:
        return x
    with localcontext() as context:
        context.prec = 2 * DIGITS
        return (x.exp() - (-x).exp()) / 2


def asinh(x: Decimal) -> Decimal:
    if abs(x) < TINY:
        return x
    with localcontext() as context:
        context.prec = 3 * DIGITS
        return (abs(x) + (x * x + 1).sqrt()).ln().copy_sign(x)


def asin(x: Decimal) -> Decimal:
    return PI.copy_sign(x) / 2 if abs(x) == 1 else atan(x / (1 - x * x).sqrt())


def acos(x: Decimal) -> Decimal:
    return PI if x == -1 else 2 * atan(((1 - x) / (1 + x)).sqrt())


def log1p(x: Decimal) -> Decimal:
    if abs(x) < TINY:
        return x
    with localcontext() as context:
        context.prec = 2 * DIGITS
        return (1 + x).ln()


def cbrt(x: Decimal) -> Decimal:
    return (abs(x).ln() / 3).exp().copy_sign(x)


def atan2(y: Decimal, x: Decimal) -> Decimal:
    angle = atan(abs(y) / abs(x))
    return (angle if x > 0 else PI - angle).copy_sign(y)


ANY = ("any", "usual", "tiny")
EXACT: dict[str, tuple[Callable[..., Decimal], tuple[str, ...]]] = {
    "exp": (Decimal.exp, ("power", "usual", "tiny")),
    "exp2": (lambda x: (x * LN2).exp(), ("power", "usual", "tiny")),
    "expm1": (expm1, ("power", "usual", "tiny")),
    "log": (Decimal.ln, ("positive", "near one")),
    "log2": (lambda x: x.ln() / LN2, ("positive", "near one")),
    "log10": (Decimal.log10, ("positive", "near one")),
    "log1p": (log1p, ("positive", "proper", "tiny")),
    "sin": (lambda x: circular(x, False), (*ANY, "turns")),
    "cos": (lambda x: circular(x, True), (*ANY, "turns")),
    "tan": (lambda x: circular(x, False) / circular(x, True), (*ANY, "turns")),
    "sinh": (sinh, ("power", "usual", "tiny")),
    "cosh": (lambda x: (x.exp() + (-x).exp()) / 2, ("power", "usual", "tiny")),
    "tanh": (lambda x: sinh(x) / ((x.exp() + (-x).exp()) / 2), ("usual", "tiny")),
    "asinh": (asinh, ANY),
    "acosh": (lambda x: asinh(((x - 1) * (x + 1)).sqrt()), ("above one",)),
    "atanh": (lambda x: (log1p(x) - log1p(-x)) / 2, ("proper", "tiny")),
    "cbrt": (cbrt, ANY),
    "atan": (atan, ANY),
    "asin": (asin, ("proper", "tiny")),
    "acos": (acos, ("proper", "tiny")),
    "erf": (erf, ("usual", "tiny")),
    "erfc": (erfc, ("usual", "tiny", "tail")),
    "powf": (lambda x, y: (y * x.ln()).exp(), ("positive", "near one")),
    "atan2": (atan2, ANY),
}
"""The functions in decimals, and the sets of numbers on which they are compared."""


def numbers(kind: str, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], count)
    patterns = rng.integers(0, 0x7FEFFFFFFFFFFFFF, count, np.uint64).view(np.float64)
    return {
        "any": lambda: signs * patterns,
        "positive": lambda: patterns,
        "above one": lambda: np.concatenate([1 + patterns[::2], 1 + np.exp2(rng.uniform(-52, 20, count // 2))]),
        "usual": lambda: rng.uniform(-6, 6, count),
        "tail": lambda: rng.uniform(0.4, 27, count),
        "tiny": lambda: signs * np.exp2(rng.uniform(-60, -0.001, count)),
        "proper": lambda: np.tanh(signs * np.exp2(rng.uniform(-4, 4, count))) * (1 - 2.0**-53),
        "near one": lambda: 1 + signs * np.exp2(rng.uniform(-52, -1, count)),
        "power": lambda: rng.uniform(-744, 709, count),
        "turns": lambda: np.round(rng.uniform(0, 1e7, count)) * (np.pi / 2),
    }[kind]()


def operands(name: str, kind: str, count: int) -> list[np.ndarray]:
    x = numbers(kind, count)
    if name == "powf":
        # Most results are finite, of all sizes.
        rest = np.random.default_rng(1).uniform(-1000, 1000, len(x)) / np.log2(x)
        return [x, np.clip(rest, -1e12, 1e12)]
    return [x, numbers("usual", count, 1)] if name == "atan2" else [x]


def errors(name: str, *values: np.ndarray) -> np.ndarray:
    """The errors in units in the last place, of results that are numbers."""
    found = evaluate(f"math.{name}", *values)
    largest = Decimal(float(np.finfo(np.float64).max))
    result = []
    with localcontext() as context:
        context.prec = DIGITS
        for number, *given in zip(found.tolist(), *(v.tolist() for v in values)):
            exact = EXACT[name][0](*map(Decimal, given))
            if abs(exact) > largest:
                assert abs(number) == np.inf, (name, given)
                continue
            unit = Decimal(float(np.spacing(np.abs(np.float64(float(exact))))))
            result.append(float(abs(Decimal(number) - exact) / unit))
    return np.array(result)


def test_each_has_a_bound():
    assert {f"math.{name}" for name in EXACT} == set(DOUBLE_FUNCTIONS)
    assert set(EXACT) == set(BOUNDS)


@pytest.mark.parametrize("name", EXACT)
def test_errors(name):
    for kind in EXACT[name][1]:
        count = examples(200 if name == "erfc" else 1000)
        worst = errors(name, *operands(name, kind, count))
        assert worst.max(initial=0) <= BOUNDS[name], kind


SPECIAL = np.array(
    [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308, 0.5, -2]
)


@pytest.mark.parametrize("name", EXACT)
def test_special_numbers(name):
    """Results are those of the C library, within the errors, and of NaN the canonical one."""
    c_names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "powf": "power"}
    c_names |= {f"a{n}": f"arc{n}" for n in ("sinh", "cosh", "tanh")}
    values = [SPECIAL]
    if name in ("powf", "atan2"):
        values = [v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL)]
    found = evaluate(f"math.{name}", *values)
    if name in ("erf", "erfc"):
        wanted = np.array([getattr(math, name)(x) for x in SPECIAL])
    else:
        with np.errstate(all="ignore"):
            wanted = getattr(np, c_names.get(name, name))(*values)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert set(found[np.isnan(found)].view(np.uint64).tolist()) <= {0x7FF8 << 48}
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(wanted)[known])
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    found, wanted = found[np.isfinite(wanted)], wanted[np.isfinite(wanted)]
    assert (np.abs(found - wanted) <= (BOUNDS[name] + 1) * np.spacing(np.abs(wanted))).all()


def test_the_bits_of_two_over_pi():
    with localcontext() as context:
        context.prec = 420
        whole = int(Decimal(2) / pi() * (1 << 1216))
    assert (0, *(whole >> 64 * n & (1 << 64) - 1 for n in reversed(range(19)))) == _TWO_OVER_PI


def test_numbers_nearest_to_quarter_turns():
    """Numbers whose rests are the smallest, by continued fractions of powers of two over a quarter turn."""
    found = []
    for exponent in range(-53, 971, 3):
        with localcontext() as context:
            context.prec = 700
            rest = Decimal(2) ** exponent * 2 / PI
            before, denominator = 0, 1
            for _ in range(120):
                whole = int(rest)
                if rest == whole:
                    break
                rest = 1 / (rest - whole)
                before, denominator = denominator, int(rest) * denominator + before
                if denominator >= 1 << 53:
                    break
                found.append(np.ldexp(float(denominator), exponent))
    chosen = np.array(found)
    chosen = chosen[np.argsort(np.abs(evaluate("math.cos", chosen)) * np.abs(evaluate("math.sin", chosen)))[:20]]
    assert np.abs(np.sin(chosen) * np.cos(chosen)).max() < 1e-12
    for name in ("sin", "cos", "tan"):
        assert errors(name, chosen).max() <= BOUNDS[name]
