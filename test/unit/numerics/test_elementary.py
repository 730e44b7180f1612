"""Elementary functions: is the exact value between the middles to both neighbours of the result?

Where doubles of the C library, or products of doubles that are exact, answer that, they do. Else decimals of a hundred
digits do, by series that share nothing with the implementation.
"""

import math
from collections.abc import Callable
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from xegpu_py import numerics
from xegpu_py.numerics import elementary
from xegpu_py.numerics.formats import TYPES

from .decimals import DIGITS, LN2, PI, circular
from .exact import FORMATS, nearest, value

DTYPES = {"hf": np.float16, "bf": ml_dtypes.bfloat16, "f": np.float32, "df": np.float64}
WORDS = {"hf": np.uint16, "bf": np.uint16, "f": np.uint32, "df": np.uint64}
NANS = {"hf": 0x7E00, "bf": 0x7FC0, "f": 0x7FC00000, "df": 0x7FF8 << 48}


def patterns(fmt: str, count: int, seed: int = 1) -> np.ndarray:
    """All patterns of 16 bits. Else random ones, random numbers of usual size, powers of two and their neighbours."""
    if fmt in ("hf", "bf"):
        return np.arange(1 << 16, dtype=np.uint16)
    rng = np.random.default_rng(seed)
    bits = 8 * np.dtype(WORDS[fmt]).itemsize
    fraction = FORMATS[fmt][1]
    random = rng.integers(0, 1 << 63, count, np.uint64) * np.uint64(2) + rng.integers(0, 2, count).astype(np.uint64)
    usual = (rng.standard_normal(count) * np.exp2(rng.integers(-12, 13, count))).astype(DTYPES[fmt]).view(WORDS[fmt])
    edges = np.array([e << fraction for e in range(1 << FORMATS[fmt][0])], np.uint64)
    edges = np.concatenate([edges + np.uint64(d) for d in (0, 1, 2, 3)] + [edges[1:] - np.uint64(d) for d in (1, 2)])
    edges = np.concatenate([edges, edges | np.uint64(1 << (bits - 1)), np.arange(1, 40, dtype=np.uint64)])
    return np.concatenate([(random >> np.uint64(64 - bits)).astype(WORDS[fmt]), usual, edges.astype(WORDS[fmt])])


def magnitudes(bits: np.ndarray, fmt: str) -> np.ndarray:
    """Patterns without sign as doubles; infinity stands for the number that follows the greatest."""
    width, fraction, _ = FORMATS[fmt]
    field = (bits >> fraction).astype(np.int64)
    mantissa = (bits & ((1 << fraction) - 1)).astype(np.float64) + np.where(field > 0, 2.0**fraction, 0.0)
    return np.ldexp(mantissa, np.maximum(field, 1) - ((1 << (width - 1)) - 1) - fraction)


def middles(found: np.ndarray, fmt: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The middles to the neighbours of results, not for df, and whether numbers in these round to the results."""
    width, fraction, _ = FORMATS[fmt]
    infinity = ((1 << width) - 1) << fraction
    bits = found.view(WORDS[fmt]).astype(np.int64) & ((1 << (width + fraction)) - 1)
    here = magnitudes(bits, fmt)
    below = np.where(bits == 0, 0.0, (here + magnitudes(np.maximum(bits, 1) - 1, fmt)) / 2)
    above = np.where(bits == infinity, np.inf, (here + magnitudes(bits + 1, fmt)) / 2)
    return below, above, bits % 2 == 0


def wide(bits: np.ndarray, fmt: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return bits.view(DTYPES[fmt]).astype(np.float64)


def is_nan(found: np.ndarray, fmt: str) -> np.ndarray:
    nan = np.isnan(found.astype(np.float64))
    assert set(found.view(WORDS[fmt])[nan].tolist()) <= {NANS[fmt]}
    return nan


def exact_exp(x: float) -> Decimal | Fraction:
    if x == int(x):
        return Fraction(2) ** int(x)
    with localcontext() as context:
        context.prec = DIGITS
        return (Decimal(x) * LN2).exp()


def exact_log(x: float) -> Decimal | Fraction:
    fraction, exponent = math.frexp(x)
    if fraction == 0.5:
        return Fraction(exponent - 1)
    with localcontext() as context:
        context.prec = DIGITS
        return Decimal(x).ln() / LN2


def double_exp(x: float) -> float:
    return math.inf if x > 1000 else math.pow(2.0, x)


TRANSCENDENTAL: dict[str, tuple[Callable, Callable[[float], float], Callable[[float], Decimal | Fraction]]] = {
    "exp": (numerics.exp, double_exp, exact_exp),
    "log": (numerics.log, math.log2, exact_log),
    "sin": (numerics.sin, math.sin, lambda x: circular(x, False)),
    "cos": (numerics.cos, math.cos, lambda x: circular(x, True)),
}


def check_transcendental(
    name: str, fmt: str, bits: np.ndarray, *, all_exact: bool = False, function: Callable | None = None
) -> None:
    public, double, exact = TRANSCENDENTAL[name]
    function = function or public
    x = wide(bits, fmt)
    usable = np.isfinite(x) & (x > 0 if name == "log" else x != 0)
    bits, x = bits[usable], x[usable]
    found = function(bits, fmt)
    assert found.dtype == DTYPES[fmt]
    assert not is_nan(found, fmt).any()
    estimate = np.array([double(number) for number in x.tolist()])
    below, above, even = middles(found, fmt)
    near = np.abs(estimate)
    sure = (near * (1 - 2.0**-44) > below) & (near * (1 + 2.0**-44) < above) & (near > 2.0**-1000)
    sure |= (near == np.inf) & (above == np.inf) | (name == "exp") & (x < -900) & (above < 1) & (below == 0)
    np.testing.assert_array_equal(np.signbit(found)[sure], np.signbit(estimate)[sure])
    if all_exact:
        sure[:] = False
    assert all_exact or np.count_nonzero(~sure) < 200 + len(x) // 50
    for i in np.flatnonzero(~sure).tolist():
        number = exact(float(x[i]))
        assert number == 0 or bool(np.signbit(found[i])) == (number < 0), (name, fmt, hex(bits[i]))
        low, high, size = float(below[i]), float(above[i]), abs(number)
        inside = low <= size <= high if even[i] else low < size < high
        assert inside, (name, fmt, hex(bits[i]), hex(found.view(WORDS[fmt])[i]))


@pytest.mark.each_value
@pytest.mark.parametrize("fmt", ["hf", "bf", "f"])
@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_transcendental(name: str, fmt: str) -> None:
    check_transcendental(name, fmt, patterns(fmt, 100_000))


@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_transcendental_in_decimals_only(name: str) -> None:
    bits = patterns("f", 40_000, seed=2)
    if name == "exp":
        x = np.random.default_rng(3).uniform(-151, 129, 400).astype(np.float32)
        bits = np.concatenate([bits[40_000:40_300], x.view(np.uint32)])
    chosen = np.random.default_rng(4).choice(bits, 500)
    x = wide(chosen, "f")
    check_transcendental(name, "f", chosen[np.abs(x) < 400] if name == "exp" else chosen, all_exact=True)


@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_transcendental_near_middles(name: str) -> None:
    """Among some million numbers, those with results nearest to a midpoint of two numbers."""
    rng = np.random.default_rng(5)
    if name == "exp":
        x = rng.uniform(-151, 128, 1 << 20).astype(np.float32)
    elif name == "log":
        x = np.exp2(rng.uniform(-3, 3, 1 << 20)).astype(np.float32)
    else:
        x = (np.exp2(rng.uniform(-13, 127, 1 << 20))).astype(np.float32)
    estimate = {"exp": np.exp2, "log": np.log2, "sin": np.sin, "cos": np.cos}[name](x.astype(np.float64))
    single = estimate.astype(np.float32)
    other = np.nextafter(single, np.where(estimate > single, np.inf, -np.inf).astype(np.float32))
    middle = (single.astype(np.float64) + other) / 2
    hardest = np.argsort(np.abs(estimate - middle) / np.abs(other.astype(np.float64) - single))[:150]
    check_transcendental(name, "f", x[hardest].view(np.uint32), all_exact=True)


def near_quarters() -> np.ndarray:
    """Numbers of 24 bits next to multiples of a quarter turn, by continued fractions of powers of two over it."""
    found = []
    for exponent in range(-24, 104):
        with localcontext() as context:
            context.prec = 200
            rest = Decimal(2) ** exponent * 2 / PI
            before, denominator = 0, 1
            for _ in range(60):
                whole = int(rest)
                if rest == whole:
                    break
                rest = 1 / (rest - whole)
                before, denominator = denominator, int(rest) * denominator + before
                if denominator >= 1 << 24:
                    break
                found.append(math.ldexp(denominator, exponent))
    numbers = np.array(found).astype(np.float32)
    return np.concatenate([numbers, -numbers]).view(np.uint32)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_near_quarter_turns(name: str) -> None:
    bits = near_quarters()
    assert np.abs(np.sin(wide(bits, "f"))).min() < 1e-7
    check_transcendental(name, "f", bits, all_exact=True)


def sample(name: str, fmt: str, count: int) -> np.ndarray:
    """Finite numbers that are not zero, for which the function is defined and neither overflows nor underflows."""
    rng = np.random.default_rng(9)
    if name == "exp":
        least, top = {"hf": (-27, 17), "bf": (-136, 129), "f": (-152, 129)}[fmt]
        x = np.concatenate([rng.uniform(least, top, count), np.exp2(rng.uniform(-30, 0, count)), np.arange(least, top)])
        bits = x.astype(DTYPES[fmt]).view(WORDS[fmt])
    else:
        bits = rng.choice(patterns(fmt, 30_000, seed=9), 2 * count)
        near_one = (1 + np.arange(-40, 40) * 2.0 ** -FORMATS[fmt][1]).astype(DTYPES[fmt]).view(WORDS[fmt])
        bits = np.concatenate([bits, near_one])
    x = wide(bits, fmt)
    return bits[np.isfinite(x) & ((x > 0) if name == "log" else (x != 0))]


@pytest.mark.parametrize("fmt", ["hf", "bf", "f"])
@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_decisions(name: str, fmt: str) -> None:
    """The few numbers that f64 does not decide are computed in another way: here all are."""

    def decided(bits: np.ndarray, fmt: str) -> np.ndarray:
        found = [elementary.decide(name, x, TYPES[fmt]) for x in wide(bits, fmt).tolist()]
        return np.array(found, WORDS[fmt]).view(DTYPES[fmt])

    check_transcendental(name, fmt, sample(name, fmt, 200), all_exact=True, function=decided)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", [60, 128, 256])
@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_enclosures(name: str, precision: int) -> None:
    bits = np.concatenate([sample(name, "f", 100), near_quarters()[::6] if name in ("sin", "cos") else []])
    for x in wide(bits.astype(np.uint32), "f").tolist():
        low, high, exponent = elementary.enclosure(name, x, precision)
        number = TRANSCENDENTAL[name][2](x)
        if low == high:
            assert number == Fraction(low) * Fraction(2) ** exponent
            continue
        with localcontext() as context:
            context.prec = 200
            scaled = number / Decimal(2) ** exponent
            assert low < scaled < high, (name, x.hex())
            assert high - low < Decimal(2) ** -precision / Decimal(2) ** exponent * max(1, abs(number))


def test_powers_that_round_to_subnormals() -> None:
    """Ties at the least subnormal, and results on both sides of the least normal number and of overflow."""
    for fmt, least, top in (("hf", -24, 16), ("bf", -133, 128), ("f", -149, 128)):
        at = [least - 1, least, least + 1, least - 2, top, top - 1]
        numbers = np.array(at, np.float64).astype(DTYPES[fmt])
        found = numerics.exp(numbers, fmt).astype(np.float64)
        np.testing.assert_array_equal(found, [0, 2.0**least, 2.0 ** (least + 1), 0, np.inf, 2.0 ** (top - 1)])
        steps = numbers.view(WORDS[fmt])
        around = np.concatenate([steps + WORDS[fmt](d) for d in range(20)] + [steps - WORDS[fmt](d) for d in range(20)])
        check_transcendental("exp", fmt, around, all_exact=True)


# Algebraic functions are compared with products that f64 represents exactly.


def check_between(low: np.ndarray, middle: np.ndarray, high: np.ndarray, even: np.ndarray) -> None:
    assert np.all(np.where(even, (low <= middle) & (middle <= high), (low < middle) & (middle < high)))


@pytest.mark.parametrize("fmt", ["hf", "bf", "f"])
def test_algebraic(fmt: str) -> None:
    bits = patterns(fmt, 500_000)
    x = wide(bits, fmt)
    usable = np.isfinite(x) & (x != 0)
    bits, x = bits[usable], x[usable]
    found = numerics.inv(bits, fmt)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))
    below, above, even = middles(found, fmt)
    check_between(below * np.abs(x), np.ones(len(x)), above * np.abs(x), even)
    bits, x = bits[x > 0], x[x > 0]
    found = numerics.sqrt(bits, fmt)
    below, above, even = middles(found, fmt)
    check_between(below**2, x, above**2, even)
    assert not np.signbit(found).any()
    if fmt != "f":
        found = numerics.rsqrt(bits, fmt)
        below, above, even = middles(found, fmt)
        check_between(below**2 * x, np.ones(len(x)), above**2 * x, even)


def check_root(bits: int, found: int, fmt: str, reciprocal: bool) -> None:
    """Roots are never subnormal, infinite, nor in the middle between two numbers."""
    x = value(bits, fmt)
    here, before, after = (value(found + d, fmt) for d in (0, -1, 1))
    low, high = ((here + other) / 2 for other in (before, after))
    assert (low**2 * x < 1 < high**2 * x) if reciprocal else (low**2 < x < high**2), (hex(bits), hex(found))


@pytest.mark.parametrize("fmt", ["f", "df"])
def test_roots_in_rationals(fmt: str) -> None:
    bits = patterns(fmt, 4000)
    fraction = FORMATS[fmt][1]
    ones = [nearest(Fraction(4) ** k, fmt) + d for k in (0, 3, -7) for d in (*range(1, 60), *range(-60, 0))]
    # The reciprocal roots of these are as near to a middle as any.
    ones += [nearest((1 + Fraction(2 * k + 1, 2 ** (fraction + 1))) ** -2, fmt) for k in range(60)]
    bits = np.concatenate([bits, np.array(ones, WORDS[fmt])])
    x = wide(bits, fmt)
    bits = bits[(x > 0) & (x < np.inf)]
    for function, reciprocal in ((numerics.rsqrt, True), (numerics.sqrt, False)):
        found = function(bits, fmt).view(WORDS[fmt])
        for b, r in zip(bits.tolist(), found.tolist(), strict=True):
            check_root(b, r, fmt, reciprocal)


def test_rsqrt_of_f_next_to_middles() -> None:
    """Squares of midpoints, rounded both ways, and the numbers among a million that are nearest to a midpoint."""
    x = np.random.default_rng(7).uniform(1, 4, 1 << 20).astype(np.float32)
    estimate = 1 / np.sqrt(x.astype(np.float64))
    rest = estimate.view(np.uint64) % np.uint64(1 << 29)
    hardest = np.argsort(np.abs(rest.astype(np.int64) - (1 << 28)))[:300]
    for b, r in zip(
        x[hardest].view(np.uint32).tolist(), numerics.rsqrt(x[hardest], "f").view(np.uint32).tolist(), strict=True
    ):
        check_root(b, r, "f", True)


@pytest.mark.parametrize("fmt", ["hf", "bf", "f"])
def test_quotients(fmt: str) -> None:
    rng = np.random.default_rng(6)
    bits = patterns(fmt, 300_000)
    a = np.concatenate([rng.permutation(bits) for _ in range(1 if fmt == "f" else 12)])
    b = rng.permutation(a)
    # Quotients of numbers with few bits, which are exact or in the middle.
    few = WORDS[fmt](((1 << 64) - (1 << (FORMATS[fmt][1] // 2))) & ((1 << (8 * np.dtype(WORDS[fmt]).itemsize)) - 1))
    a, b = np.concatenate([a, a & few, a]), np.concatenate([b, b & few, b & few])
    x, y = wide(a, fmt), wide(b, fmt)
    found = numerics.div(a, b, fmt)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(is_nan(found, fmt), np.isnan(x / y))
    usable = np.isfinite(x) & np.isfinite(y) & (y != 0)
    found, x, y = found[usable], x[usable], y[usable]
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x) ^ np.signbit(y))
    below, above, even = middles(found, fmt)
    y = np.abs(y)
    check_between(below * y, np.abs(x), above * y, even)


def test_quotients_of_df() -> None:
    bits = patterns("df", 2500)
    others = np.random.default_rng(8).permutation(bits)
    found = numerics.div(bits, others, "df").view(np.uint64)
    inverses = numerics.inv(bits, "df").view(np.uint64)
    for a, b, quotient, inverse in zip(*(s.tolist() for s in (bits, others, found, inverses)), strict=True):
        x, y = value(a, "df"), value(b, "df")
        if isinstance(x, Fraction) and isinstance(y, Fraction) and x != 0 and y != 0:
            assert quotient == nearest(x / y, "df")
            assert inverse == nearest(1 / x, "df")


INTEGRAL = {
    "round_down": (numerics.round_down, math.floor),
    "round_up": (numerics.round_up, math.ceil),
    "round_even": (numerics.round_even, round),
    "round_zero": (numerics.round_zero, math.trunc),
}


@pytest.mark.parametrize("fmt", ["hf", "bf", "f", "df"])
@pytest.mark.parametrize("name", INTEGRAL)
def test_integral(name: str, fmt: str) -> None:
    function, whole = INTEGRAL[name]
    bits = patterns(fmt, 20_000)
    halves = (np.arange(-600, 600) / 4).astype(DTYPES[fmt]).view(WORDS[fmt])
    bits = np.concatenate([bits, halves, halves + WORDS[fmt](1), halves - WORDS[fmt](1)])
    x = wide(bits, fmt)
    found = function(bits, fmt)
    np.testing.assert_array_equal(is_nan(found, fmt), np.isnan(x))
    keep = ~np.isnan(x)
    want = [math.copysign(float(whole(n)), n) if math.isfinite(n) else n for n in x[keep].tolist()]
    np.testing.assert_array_equal(wide(found.view(WORDS[fmt]), fmt)[keep], want)
    np.testing.assert_array_equal(np.signbit(found[keep]), np.signbit(x[keep]))


INF, NAN = math.inf, math.nan
SPECIAL = {
    # -infinity, -1, -0, 0, infinity, NaN
    "inv": [-0.0, -1.0, -INF, INF, 0.0, NAN],
    "sqrt": [NAN, NAN, -0.0, 0.0, INF, NAN],
    "rsqrt": [NAN, NAN, -INF, INF, 0.0, NAN],
    "exp": [0.0, 0.5, 1.0, 1.0, INF, NAN],
    "log": [NAN, NAN, -INF, -INF, INF, NAN],
    "sin": [NAN, None, -0.0, 0.0, NAN, NAN],
    "cos": [NAN, None, 1.0, 1.0, NAN, NAN],
    "round_down": [-INF, -1.0, -0.0, 0.0, INF, NAN],
    "round_up": [-INF, -1.0, -0.0, 0.0, INF, NAN],
    "round_even": [-INF, -1.0, -0.0, 0.0, INF, NAN],
    "round_zero": [-INF, -1.0, -0.0, 0.0, INF, NAN],
}


@pytest.mark.parametrize("fmt", ["hf", "bf", "f", "df"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, fmt: str) -> None:
    function = getattr(numerics, name)
    numbers = np.array([-INF, -1.0, -0.0, 0.0, INF, NAN]).astype(DTYPES[fmt])
    if fmt == "df" and name in ("exp", "log", "sin", "cos"):
        with pytest.raises(ValueError, match="'fmt' must be one of hf, bf, f, but got 'df'"):
            function(numbers, fmt)
        return
    found = function(numbers, fmt)
    for number, want in zip(found.view(WORDS[fmt]).tolist(), SPECIAL[name], strict=True):
        if want is not None:
            pattern = NANS[fmt] if math.isnan(want) else int(np.array(want).astype(DTYPES[fmt]).view(WORDS[fmt]))
            assert number == pattern
    negative_nan = np.array([NANS[fmt] | 1 | 1 << (8 * np.dtype(WORDS[fmt]).itemsize - 1)], WORDS[fmt])
    assert function(negative_nan, fmt).view(WORDS[fmt]).tolist() == [NANS[fmt]]
    assert function(np.ones(1, DTYPES[fmt]), fmt)[0] == {"exp": 2, "log": 0}.get(name, 1) or name in ("sin", "cos")


@pytest.mark.parametrize("fmt", ["hf", "bf", "f", "df"])
def test_special_quotients(fmt: str) -> None:
    a = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]).astype(DTYPES[fmt])
    found = numerics.div(a[:, None], a, fmt)
    assert found.shape == (7, 7)
    words = found.view(WORDS[fmt])
    assert words[0, 0] == words[0, 1] == words[4, 5] == words[6, 2] == words[3, 6] == NANS[fmt]
    assert found[2, 1] == found[3, 0] == -INF
    assert found[5, 3] == INF
    assert words[3, 4] == words[1, 2] == words[0, 3] != 0
    assert words[2, 4] == words[1, 3] == 0


def test_shapes_and_arguments() -> None:
    assert numerics.exp(np.float32(3), "f").shape == ()
    assert float(numerics.exp(np.float32(3), "f")) == 8
    assert numerics.sin(np.zeros((2, 0, 3), np.float16), "hf").shape == (2, 0, 3)
    assert numerics.div(np.float64(3), np.float64(4), "df").shape == ()
    x = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(numerics.log(x.T, "f"), numerics.log(x, "f").T)
    np.testing.assert_array_equal(numerics.inv(x[:, ::2, ::3], "f"), numerics.inv(x, "f")[:, ::2, ::3])
    before = x.copy()
    x.flags.writeable = False
    numerics.round_down(x, "f")
    np.testing.assert_array_equal(x, before)
    # Callers cannot write to a table.
    first = numerics.exp(np.zeros(4, np.float16), "hf")
    first[:] = 7
    assert float(numerics.exp(np.zeros(4, np.float16), "hf")[0]) == 1
    with pytest.raises(TypeError, match="'x' must be float32 or its bit patterns, u32, but got float64"):
        numerics.sqrt(np.zeros(3), "f")
    with pytest.raises(TypeError, match="'b' must be float16"):
        numerics.div(np.zeros(3, np.float16), np.zeros(3), "hf")
    with pytest.raises(ValueError, match="'fmt' must be one of hf, bf, f, df, but got 'd'"):
        numerics.inv(np.zeros(3, np.int32), "d")


def test_zero_is_positive() -> None:
    assert elementary.nearest(0, 5, TYPES["f"]) == 0


def test_decimals() -> None:
    assert getcontext().prec < DIGITS
    assert str(PI).startswith("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_lesser_and_the_greater_of_two_nans(kind: type[np.floating]) -> None:
    """NaNs of any bits: the canonical NaN, and a number if there is one."""
    bits = np.dtype(kind).itemsize * 8
    rng = np.random.default_rng(bits)
    a, b = (rng.integers(0, 1 << 63, 2000, np.uint64) << np.uint64(1) >> np.uint64(64 - bits) for _ in range(2))
    nan = int(np.array(np.inf, kind).view(f"u{bits // 8}"))
    x, y = ((n.astype(f"u{bits // 8}") | np.array(nan | 1, f"u{bits // 8}")).view(kind) for n in (a, b))
    assert np.isnan(x).all() and np.isnan(y).all()
    for function in (numerics.minimum_number, numerics.maximum_number):
        found = function(x, y).view(f"u{bits // 8}")
        assert (found == np.array(np.nan, kind).view(f"u{bits // 8}")).all() and not np.signbit(function(x, y)).any()
        assert (function(x, np.ones_like(y)) == 1).all() and (function(np.ones_like(x), y) == 1).all()
