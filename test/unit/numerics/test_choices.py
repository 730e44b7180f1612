"""Chosen rules: their records, and their alternatives against exact arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from xegpu_py import numerics
from xegpu_py.numerics.alternatives import negative_nans, neighbour
from xegpu_py.numerics.block_scaled import bdpas
from xegpu_py.numerics.choices import CHOICES, FUNCTIONS, NEIGHBOURS, selected
from xegpu_py.numerics.dpas import MODELS, dpas, pack_a, pack_b, round_tf32, unpack_c
from xegpu_py.numerics.elementary import decide
from xegpu_py.numerics.formats import TYPES, bits_of
from xegpu_py.numerics.systolic import VARIANTS
from xegpu_py.runtime.options import DENORMALS, Options

from .exact import nearest, value

DOCS = Path(__file__).parents[3] / "docs"


def test_options_have_the_values_of_the_records() -> None:
    assert {*CHOICES["dpas-sums"].values} == {*MODELS, *VARIANTS} and CHOICES["dpas-sums"].default == Options().model
    assert CHOICES["dpas-denormals"].values == DENORMALS and Options().dpas_denormals == DENORMALS[0]
    for name, choice in CHOICES.items():
        assert bool(choice.alternatives) == bool(choice.option), name
        assert choice.name == name and choice.default not in choice.alternatives, name


def test_sections_exist() -> None:
    for choice in CHOICES.values():
        page, _, anchor = choice.section.partition("#")
        headings = re.findall(r"^#+ (.*)", (DOCS / page).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}, choice.name


def test_selection() -> None:
    texts = ["division=inverse", "nan-bits=negative", "nan-bits=canonical"]
    assert selected(texts) == {"division": "inverse"}
    for text, message in (
        ("divison=inverse", "must be NAME=ALTERNATIVE with a name of dpas-mask"),
        ("dpas-sums=stage", "must be NAME=ALTERNATIVE"),
        ("division", "choice 'division' must be one of quotient, inverse, but got ''"),
    ):
        with pytest.raises(ValueError, match=message):
            Options.from_keywords(choices=text)
    with pytest.raises(ValueError, match="engine 'reference' does not support the option choices"):
        Options.from_keywords(engine="reference", choices=["division=inverse"])


ONE = Fraction(1)

IS_EXACT: dict[str, Callable[..., bool]] = {
    "inv": lambda r, x: r * x == 1,
    "sqrt": lambda r, x: r * r == x,
    "rsqrt": lambda r, x: r * r * x == 1,
    "exp": lambda r, x: x.denominator == 1,
    "log": lambda r, x: r.denominator == 1 and Fraction(2) ** int(r) == x,
    "invm": lambda r, x, y: r * y == x,
}
"""Whether a result is exact. Those of the functions that are not here are irrational, but where the argument is 0."""


def result_of(name: str, sources: list[np.ndarray], fmt: str) -> np.ndarray:
    if name == "invm":
        return numerics.div(*sources, fmt)
    return getattr(numerics, {"rsqtm": "rsqrt"}.get(name, name))(*sources, fmt)


INTERESTING = st.one_of(
    st.integers(0, (1 << 32) - 1),
    st.integers(-40, 40).map(lambda n: int(np.float32(n / 4).view(np.uint32))),
    # Powers of two, of which every other is a square.
    st.integers(127 - 9, 127 + 9).map(lambda n: n << 23),
)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "pow"])
@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(["f", "hf"]), st.data())
def test_neighbours(name: str, fmt: str, data: st.DataObject) -> None:
    """The result differs by one unit in the last place, unless it is exact, or has no such neighbour."""
    dtype = TYPES[fmt].dtype
    count = 2 if name == "invm" else 1
    with np.errstate(all="ignore"):
        sources = [np.array([data.draw(INTERESTING)], np.uint32).view(np.float32).astype(dtype) for _ in range(count)]
        rounded = result_of(name, sources, fmt)
    found = {which: neighbour(name, sources, rounded, fmt, which) for which in NEIGHBOURS}
    one = float(rounded[0])
    numbers = [float(s[0]) for s in sources]
    if isnan(one) or abs(one) == inf or one == 0:
        exact = True
    else:
        known = IS_EXACT.get({"rsqtm": "rsqrt"}.get(name, name), lambda r, x: x == 0)
        exact = known(Fraction(one), *map(Fraction, numbers)) if all(map(np.isfinite, numbers)) else numbers[-1] == 0
    for which, result in found.items():
        step = int(bits_of(result)[0]) - int(bits_of(rounded)[0])
        most = 1 if name in ("sin", "cos", "tanh", "sigm") else float(np.finfo(dtype).max)
        stays = exact or (which == "greater" and abs(one) >= most)
        assert step == (0 if stays else 1 if which == "greater" else -1), (name, fmt, numbers, which)


@pytest.mark.parametrize("fmt", ["f", "hf"])
def test_the_exact_value_lies_within_the_neighbours(fmt: str) -> None:
    """The neighbours enclose the value, as `decide` computes it in wider numbers."""
    x = np.random.default_rng(0).uniform(0.01, 3, 40).astype(TYPES[fmt].dtype)
    for name in ("exp", "log", "sin", "tanh", "sigm", "rsqrt"):
        rounded = result_of(name, [x], fmt)
        low, high = (neighbour(name, [x], rounded, fmt, which).astype(np.float64) for which in NEIGHBOURS)
        wide = np.array([value(decide(name, float(n), TYPES["df"]), "df") for n in x], np.float64)
        assert ((np.abs(low) < np.abs(wide)) & (np.abs(wide) < np.abs(high))).all(), name


def test_powers() -> None:
    x, y = np.array([3, 4, 1, 2.5, 7], np.float32), np.array([2, -3, 9.5, 0, 0.5], np.float32)
    rounded = numerics.exp(numerics.log(x, "f") * y, "f")
    steps = [bits_of(neighbour("pow", [x, y], rounded, "f", w)).astype(np.int64) - bits_of(rounded) for w in NEIGHBOURS]
    np.testing.assert_array_equal(steps, [[-1, 0, 0, 0, -1], [1, 0, 0, 0, 1]])


@settings(max_examples=examples(100), deadline=None)
@given(st.one_of(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 19) - 1).map(lambda n: n << 13 | 0x1000)))
def test_tf32_rounds(bits: int) -> None:
    number = value(bits, "f")
    found = int(round_tf32(np.array([bits], np.uint32).view(np.float32)).view(np.uint32)[0])
    if isinstance(number, Fraction) and number:
        assert found == nearest(number, "tf32") << 13
    else:
        assert found == bits


def test_products_of_rounded_tf32() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((8, 8)).astype(np.float32), rng.standard_normal((8, 16)).astype(np.float32)
    types = {"W": "tf32", "A": "tf32", "SD": 8, "RC": 8, "exec_size": 16, "dst_type": "f", "src0_type": "f"}
    found = dpas(None, pack_b(b, "tf32"), pack_a(a, "tf32"), **types, rounds_tf32=True)
    wanted = dpas(None, pack_b(round_tf32(b), "tf32"), pack_a(round_tf32(a), "tf32"), **types)
    np.testing.assert_array_equal(found, wanted)
    assert (found != dpas(None, pack_b(b, "tf32"), pack_a(a, "tf32"), **types)).any()


def test_scaled_elements_rounded_to_f32() -> None:
    """Scales so great that f32 has no scaled element; those of the other factor make the product finite again."""
    a, b = np.full((8, 32), 1.5, TYPES["f"].dtype), np.full((32, 16), 1.25, np.float32)
    packed = [p(m.astype(numerics.formats.HF8.dtype), "hf8") for p, m in ((pack_b, b), (pack_a, a))]
    great, small = np.full(16, 254, np.uint8), np.full(8, 0, np.uint8)
    types = {"W": "hf8", "A": "hf8", "dst_type": "f", "src0_type": "f"}
    exact, rounded = (
        unpack_c(bdpas(None, *packed, great, small, **types, rounds=rounds), 8, 16, "f") for rounds in (False, True)
    )
    assert (exact == 32 * 1.5 * 1.25).all()
    # 1.25 * 2^127 is a number of f32, but 1.5 * 2^-127 is subnormal, and exact: so nothing changes but for lost bits.
    np.testing.assert_array_equal(rounded, exact)
    packed[0] = pack_b(np.full((32, 16), 2.5).astype(numerics.formats.HF8.dtype), "hf8")
    assert np.isinf(unpack_c(bdpas(None, *packed, great, small, **types, rounds=True), 8, 16, "f")).all()


@pytest.mark.parametrize("fmt", ["f", "hf", "df"])
def test_negative_nans(fmt: str) -> None:
    form = TYPES[fmt]
    found = negative_nans(np.array([1, np.nan, -np.inf, 0], form.dtype), form)
    assert np.isnan(found[1]) and np.signbit(found[1]) and int(bits_of(found)[1]) == form.nan | 1 << (form.bits - 1)
    np.testing.assert_array_equal(found[[0, 2, 3]], np.array([1, -np.inf, 0], form.dtype))
