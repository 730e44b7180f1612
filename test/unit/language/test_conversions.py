"""Conversions of the tile language against numpy and ml_dtypes, and against exact arithmetic where numpy has none."""

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import xegpu_py.language as xl
from xegpu_py import DiagnosticError, numerics
from xegpu_py.tiles import element_types

from .computing import check, computed

FLOATS = {
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def numbers(dtype) -> np.ndarray:
    """Numbers of a type: all of 8 bits; else ties, numbers next to limits of narrower types, and random ones."""
    dtype = np.dtype(dtype)
    if dtype.itemsize == 1:
        return np.arange(256, dtype=np.uint8).view(dtype).reshape(16, 16)
    rng = np.random.default_rng(1)
    limits = [448, 464, 465, 480, 57344, 61440, 61441, 65504, 65519, 65520, 2**-9, 2**-10, 2**-17, 3 * 2**-11, 1e-8]
    special = [0, -0.0, 1, 3.4e38, np.inf, -np.inf, np.nan, 2**31, 2**32, 2**63, 2**64, 0.5, 1.5, 2.5, 255.5, 127.5]
    ties = rng.integers(0, 1 << 13, 64) * 2.0**-12 + 2.0**-13
    rest = rng.standard_normal(256) * 10.0 ** rng.integers(-9, 6, 256)
    found = np.concatenate([limits, np.negative(limits), np.array(special, float), ties, rest])[:256]
    with np.errstate(all="ignore"):
        return found.astype(dtype).reshape(16, 16)


@pytest.mark.parametrize("source", FLOATS)
def test_between_floating_point_types(source):
    """Conversions round once, to nearest even."""
    x = numbers(FLOATS[source])
    others = [name for name in FLOATS if name != source]
    with np.errstate(all="ignore"):
        expected = tuple(x.astype(FLOATS[name]) for name in others)
    check(lambda v: tuple(v.to(FLOATS[name]) for name in others), [x], expected)


@pytest.mark.parametrize("source", ["float8_e5m2", "float16", "float32", "float64"])
def test_float8_where_no_instruction_converts(source):
    x = numbers(FLOATS[source])
    others = ["float16", "float32"] if source == "float8_e5m2" else ["float8_e5m2"]
    with np.errstate(all="ignore"):
        expected = tuple(x.astype(FLOATS[name]) for name in others)
    check(lambda v: tuple(v.to(FLOATS[name]) for name in others), [x], expected, target="dg2")


@pytest.mark.parametrize("name", INTEGERS)
def test_of_integers(name):
    """The low bits as another integer type, and rounded to nearest even as floating-point."""
    info = np.iinfo(name)
    rng = np.random.default_rng(2)
    edges = np.array([info.min, info.max, info.max - 1, 0, 1], name)
    x = np.concatenate([edges, rng.integers(info.min, info.max, 123, name, True)]).reshape(8, 16)
    others = [n for n in INTEGERS if n != name]
    floats = ["float32", "bfloat16", "float16"]

    def function(v):
        found = [v.to(element_types.dtype_of(n)) for n in (*others, "float32")]
        return *found, *(v.to(xl.float32).to(element_types.dtype_of(n)) for n in floats[1:]), v.to(xl.bool_)

    with np.errstate(all="ignore"):
        single = x.astype(np.float32)
        narrow = [single.astype(FLOATS[n]) for n in floats[1:]]
        check(function, [x], (*(x.astype(n) for n in others), single, *narrow, x.astype(bool)))


def saturated(x: np.ndarray, name: str, rounding=np.trunc) -> np.ndarray:
    """Numbers as integers: rounded, the limits beyond them, and 0 of NaN; exactly."""
    info = np.iinfo(name)
    found = []
    for n in x.ravel().astype(np.float64):
        if np.isnan(n):
            found.append(0)
        elif np.isinf(n):
            found.append(info.max if n > 0 else info.min)
        else:
            found.append(min(max(int(Fraction(float(rounding(n)))), info.min), info.max))
    return np.array(found, name).reshape(x.shape)


@pytest.mark.parametrize("source", ["float32", "bfloat16", "float8_e4m3fn"])
def test_to_integers(source):
    x = numbers(FLOATS[source])
    modes = {"zero": np.trunc, "nearest": np.rint, "up": np.ceil, "down": np.floor}
    names = ("int8", "uint8", "int32", "uint32")
    plain = np.where(abs(x.astype(np.float32)) < 127, x, np.zeros_like(x))

    def function(v, small):
        found = [v.to(element_types.dtype_of(n), saturate=True) for n in names]
        found += [v.to(xl.int16, rounding=m, saturate=True) for m in modes]
        return *found, small.to(xl.int32), small.to(xl.int8, rounding="nearest")

    expected = (
        *(saturated(x, n) for n in names),
        *(saturated(x, "int16", r) for r in modes.values()),
        np.trunc(plain.astype(np.float32)).astype(np.int32),
        np.rint(plain.astype(np.float32)).astype(np.int8),
    )
    check(function, [x, plain], expected)


def test_integers_saturate():
    x = np.array([-(2**31), -40000, -129, -128, -1, 0, 127, 128, 255, 256, 65536, 2**31 - 1] * 4, np.int32).reshape(
        4, 12
    )
    names = ("int8", "uint8", "int16", "uint32", "uint64")
    expected = tuple(
        np.clip(x.astype(object), np.iinfo(n).min, np.iinfo(n).max).astype(n) for n in names
    )  # fmt: skip
    check(lambda v: tuple(v.to(element_types.dtype_of(n), saturate=True) for n in names), [x], expected)
    bits = x.view(np.uint32)
    check(lambda v: v.to(xl.int32, saturate=True), [bits], np.minimum(bits, 2**31 - 1).astype(np.int32))


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint16"])
def test_integers_saturate_as_floating_point(source):
    info = np.iinfo(source)
    edges = [0, 1, 447, 448, 449, 465, 480, 57344, 61440, 65503, 65504, 65519, 65520, info.max]
    x = np.array([n for n in edges for n in (n, -n) if info.min <= n <= info.max], source)
    x = np.resize(x, (4, 16))
    for name in ("float16", "float8_e5m2", "float8_e4m3fn"):
        most = int(float(ml_dtypes.finfo(FLOATS[name]).max))
        expected = np.clip(x.astype(object), -most, most).astype(np.float64).astype(FLOATS[name])
        check(lambda v, n=name: v.to(FLOATS[n], saturate=True), [x], expected)


def test_integers_as_tf32_round_once():
    """Half-way between two numbers of tf32 and one more, which float32 does not hold."""
    x = np.array([2**30 + 2**19 + 1, 2**30 + 2**19, 2**30 + 3 * 2**19 - 1, -(2**30) - 2**19 - 1] * 4, np.int32).reshape(
        1, 16
    )
    expected = np.array([2**30 + 2**20, 2**30, 2**30 + 2**20, -(2**30) - 2**20] * 4, np.float32).reshape(1, 16)
    check(lambda v: v.to(xl.tfloat32).to(xl.float32), [x], expected)


def directed(x: np.ndarray, dtype, mode: str) -> np.ndarray:
    """Numbers rounded toward zero, up or down: of all numbers of a narrow type the nearest on that side."""
    bits = np.dtype(dtype).itemsize * 8
    every = np.arange(1 << bits, dtype=f"u{bits // 8}").view(dtype)
    wide = every.astype(np.float64)
    finite = ~np.isnan(wide)
    values = np.unique(wide[finite])
    has_infinities = np.isinf(values).any()
    found = []
    for n in x.ravel().astype(np.float64):
        if np.isnan(n) or (np.isinf(n) and not has_infinities):
            found.append(np.nan)
            continue
        toward = {"zero": n < 0, "up": True, "down": False}[mode]
        at = np.searchsorted(values, n, "left" if toward else "right") - (0 if toward else 1)
        finite_values = values[np.isfinite(values)]
        if not has_infinities and not 0 <= at < len(values):
            found.append(np.copysign(finite_values[-1], n))
        else:
            found.append(values[at] if values[at] != 0 else np.copysign(0.0, n))
    with np.errstate(all="ignore"):
        return np.array(found).reshape(x.shape).astype(dtype)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("float32", "float8_e5m2"),
        ("float32", "float8_e4m3fn"),
        ("float32", "float16"),
        ("bfloat16", "float16"),
        ("float16", "float8_e5m2"),
    ],
)
def test_directed_rounding(source, name):
    x = numbers(FLOATS[source])
    if name == "float8_e4m3fn":
        x = np.where(np.isinf(x), np.float32(3), x)
    modes = ("zero", "up", "down")
    expected = [directed(x, FLOATS[name], mode) for mode in modes]
    found = computed(lambda v: tuple(v.to(FLOATS[name], rounding=mode) for mode in modes), [x], expected)
    for got, want in zip(found, expected):
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def test_directed_rounding_of_tf32():
    x = (numbers(np.float32).view(np.uint32) & 0xFFFFE000).view(np.float32)
    expected = directed(x, np.float16, "up")
    (found,) = computed(lambda v: v.to(xl.tfloat32).to(xl.float16, rounding="up"), [x], [expected])
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def test_toward_zero_by_tritons_name():
    x = numbers(np.float32)
    expected = (x.view(np.uint32) & 0xFFFF0000).view(np.float32).astype(ml_dtypes.bfloat16)
    number = ~np.isnan(x)
    (found,) = computed(lambda v: v.to(xl.bfloat16, fp_downcast_rounding="rtz"), [x], [expected])
    assert found[number].tobytes() == expected[number].tobytes()


def test_floating_point_saturates():
    x = numbers(np.float32)
    for name in ("float8_e5m2", "float8_e4m3fn", "float16"):
        most = np.float32(ml_dtypes.finfo(FLOATS[name]).max)
        check(lambda v, n=name: v.to(FLOATS[n], saturate=True), [x], np.clip(x, -most, most).astype(FLOATS[name]))


@pytest.mark.parametrize("workgroup", [False, True])
def test_stochastic_rounding(workgroup):
    """It is SRND, whose definition is `numerics.srnd`."""
    rng = np.random.default_rng(3)
    single, half = rng.standard_normal((2, 8, 16)).astype(np.float32) * 100
    half = half.astype(np.float16)
    random = rng.integers(0, 2**31, (8, 16)).astype(np.int32)
    to_half = numerics.srnd(single, random.view(np.uint32), "hf")
    expected = (
        to_half,
        numerics.srnd(half, random.astype(np.uint16), "bf8"),
        numerics.srnd(to_half, (random >> 13).astype(np.uint16), "bf8"),
    )

    def function(a, b, r):
        return (
            a.to(xl.float16, rounding="stochastic", random=r),
            b.to(xl.BF8, rounding="stochastic", random=r.to(xl.uint16)),
            a.to(xl.BF8, rounding="stochastic", random=r),
        )

    check(function, [single, half, random], expected, workgroup)


def test_tf32():
    """Rounded to 10 bits of mantissa."""
    x = np.random.default_rng(4).standard_normal((8, 16)).astype(np.float32)
    bits = x.view(np.uint32)
    near = ((bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000).view(np.float32)
    cut = (bits & 0xFFFFE000).view(np.float32)
    check(
        lambda v: (v.to(xl.tfloat32).to(xl.float32), v.to(xl.tfloat32, rounding="zero").to(xl.float32)),
        [x],
        (near, cut),
    )


def test_bits():
    x = numbers(np.float32)
    with np.errstate(over="ignore"):
        halves = x.astype(np.float16)
    check(
        lambda v: (
            v.bitcast(xl.uint32),
            v.to(xl.int32, bitcast=True),
            xl.cast(v.to(xl.float16), xl.uint16, bitcast=True),
        ),
        [x],
        (x.view(np.uint32), x.view(np.int32), halves.view(np.uint16)),
    )


REFUSED = {
    "rounding": (lambda v: v.to(xl.float16, rounding="away"), "there is no rounding 'away'"),
    "random bits left out": (lambda v: v.to(xl.float16, rounding="stochastic"), "stochastic rounding needs random="),
    "random bits of no use": (lambda v: v.to(xl.float16, random=v.to(xl.int32)), "takes no random bits"),
    "stochastic to bfloat16": (
        lambda v: v.to(xl.bfloat16, rounding="stochastic", random=v.to(xl.int32)),
        "no stochastic rounding of float32 to bfloat16",
    ),
    "random floats": (lambda v: v.to(xl.float16, rounding="stochastic", random=v), "are integers"),
    "integers by mode": (lambda v: v.to(xl.int32).to(xl.int8, rounding="up"), "becomes int8 without rounding"),
    "bits of another width": (lambda v: v.bitcast(xl.int16), "they have 32 and 16"),
    "number beyond the type": (lambda v: v.to(xl.float16) + 1e6, "1000000.0 does not fit float16"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    from xegpu_py import language

    function, message = REFUSED[name]
    with pytest.raises(DiagnosticError) as caught:

        @language.tile_kernel((np.float32, (1, 16)))
        def kernel(V):
            function(V.tile((1, 16), at=(0, 0)).load())

    assert message in caught.value.diagnostics[0].message


def test_every_pair_of_types_has_a_conversion():
    """No conversion ends in a traceback, or in an op that cannot be lowered."""
    kinds = [t for t in element_types.DTYPES if t.name != "index"]
    x = np.array([0, 1, 2, 4, 8, 16, 32, 64] * 2, np.float32).reshape(1, 16)
    pairs = list(itertools.product(kinds, kinds))
    truth = np.array(x > 0, np.float32)
    expected = tuple(truth if "bool" in (a.name, b.name) else x for a, b in pairs)
    for first in range(0, len(pairs), 60):
        part = pairs[first : first + 60]
        check(
            lambda v, part=part: tuple(v.to(a).to(b).to(xl.float32) for a, b in part),
            [x],
            expected[first : first + 60],
        )


def extremes(dtype: element_types.DType) -> list[Fraction]:
    """The least and the greatest numbers of a type; of a floating-point type also those nearest to 0 and 1."""
    if not dtype.is_float:
        return [*map(Fraction, dtype.limits)]
    about = ml_dtypes.finfo(dtype.dtype)
    return [Fraction(float(n)) for n in (about.min, about.max, about.smallest_subnormal, 1 + float(about.eps))]


def test_types_that_hold_all_numbers_of_another():
    types = [t for t in element_types.DTYPES if t.dtype is not None] + [element_types.index]
    for wide, narrow in itertools.product(types, types):
        if wide.is_float and narrow.is_float:
            with np.errstate(over="ignore"):
                found = [float(wide.dtype.type(float(n))) for n in extremes(narrow)]
            held = wide is not narrow and found == [*map(float, extremes(narrow))]
        else:
            held = wide.is_integer and not narrow.is_float
            held = held and all(wide.limits[0] <= n <= wide.limits[1] for n in extremes(narrow))
        assert element_types.holds_all(wide, narrow) == held, (wide, narrow)


@pytest.mark.parametrize("dtype", element_types.DTYPES, ids=str)
def test_numbers_at_both_ends_of_their_types(dtype):
    if dtype.is_float:
        most = int(dtype.most)
        for sign in (1, -1):
            assert dtype.holds(sign * most) and dtype.holds(sign * np.inf) and not dtype.holds(sign * 2 * most)
            assert dtype.holds(sign * float(most)) and not dtype.holds(sign * (1 << 1024))
        assert dtype.holds(np.nan) and dtype.signless(0.5) == 0.5
    elif dtype.kind == "bool":
        assert [n for n in (-1, 0, 1, 2, 0.5, False, True, np.True_) if dtype.holds(n)] == [0, 1, False, True, True]
    else:
        low, high = dtype.limits
        half = 1 << dtype.bits - 1
        for number in {low, 0, half - 1, min(half, high), high}:
            assert dtype.holds(number) and dtype.signless(number) == (number + half) % (2 * half) - half
        for number in (low - 1, high + 1):
            with pytest.raises(OverflowError, match=f"^{number} does not fit {dtype}$"):
                dtype.signless(number)
        assert not dtype.holds(0.5) and not dtype.holds(1.0)
