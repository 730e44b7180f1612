"""Models of systolic arrays against sums of fractions, which follow the description of each field alone."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from effort import examples

from xegpu_py import numerics
from xegpu_py.numerics import Systolic
from xegpu_py.numerics.systolic import candidates, read_model

FACTORS: dict[str, tuple[Any, int]] = {
    "hf": (np.float16, 2),
    "bf": (ml_dtypes.bfloat16, 2),
    "tf32": (np.float32, 1),
    "bf8": (ml_dtypes.float8_e5m2, 4),
    "hf8": (ml_dtypes.float8_e4m3fn, 4),
}
"""The storage type and the elements of K of a stage of each precision."""

GREATEST = float(np.finfo(np.float32).max)


def exponent(x: Fraction) -> int:
    """The exponent of the greatest power of two that is not above the magnitude."""
    found = abs(x).numerator.bit_length() - x.denominator.bit_length()
    return found if Fraction(2) ** found <= abs(x) else found - 1


def rounded(x: Fraction, rounding: str) -> float:
    """A number other than zero, rounded to f32."""
    place = Fraction(2) ** max(exponent(x) - 23, -149)
    steps, rest = divmod(abs(x), place)
    if rounding == "even" and (2 * rest > place or (2 * rest == place and steps % 2)):
        steps += 1
    beyond = steps * place >= Fraction(2) ** 128
    size = (math.inf if rounding == "even" else GREATEST) if beyond else float(steps * place)
    return math.copysign(size, x)


def summed(terms: list[float], model: Systolic) -> float:
    """The sum of terms, aligned with the greatest and rounded once."""
    if not all(map(math.isfinite, terms)):
        return sum(x for x in terms if not math.isfinite(x))
    numbers = [Fraction(x) for x in terms if x]
    if model.guard is not None and numbers:
        kept = Fraction(2) ** (max(map(exponent, numbers)) - 23 - model.guard)
        numbers = [int(x / kept) * kept for x in numbers]
    total = sum(numbers, Fraction(0))
    if not total:
        return -0.0 if all(math.copysign(1, x) < 0 for x in terms) else 0.0
    return rounded(total, model.rounding)


def dot(accumulator: float, products: list[float], ops: int, model: Systolic) -> float:
    """The accumulator plus the products."""
    size = {"product": 1, "stage": ops, "all": len(products)}[model.group]
    groups = [products[k : k + size] for k in range(0, len(products), size)]
    for group in groups if model.order == "up" else groups[::-1]:
        terms = group
        if model.join == "last":
            terms = [summed(group, model)]
        while model.join == "tree" and len(terms) > 1:
            terms = [summed(terms[n : n + 2], model) for n in range(0, len(terms), 2)]
        accumulator = summed([accumulator, *terms], model)
    return accumulator


def factors(rng: np.random.Generator, shape: tuple[int, int], precision: str) -> np.ndarray:
    """Numbers of many magnitudes, some zeros, and now and then an infinity or a NaN."""
    reach = int(rng.choice([0, 2, 6, 20, 60]))
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-reach, reach + 1, shape) * (rng.random(shape) > 0.2)
    if rng.random() < 0.1:
        x = np.where(rng.random(shape) < 0.05, rng.choice([np.inf, -np.inf, np.nan], shape), x)
    with np.errstate(all="ignore"):
        found = x.astype(np.float32).astype(FACTORS[precision][0])
    return (found.view(np.uint32) & 0xFFFFE000).view(np.float32) if precision == "tf32" else found


@pytest.mark.parametrize("seed", range(examples(60)))
def test_random_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    precision = str(rng.choice(list(FACTORS)))
    model = candidates()[int(rng.integers(len(candidates())))]
    ops = FACTORS[precision][1]
    a, b = factors(rng, (2, 8 * ops), precision), factors(rng, (8 * ops, 16), precision)
    c = (rng.standard_normal((2, 16)) * 2.0 ** rng.choice([-140, -20, 0, 5, 100])).astype(np.float32)
    with np.errstate(all="ignore"):
        data = numerics.dpas(
            numerics.pack_c(c, "f"), numerics.pack_b(b, precision), numerics.pack_a(a, precision),
            W=precision, A=precision, SD=8, RC=2, exec_size=16, dst_type="f", src0_type="f", model=model,
        )  # fmt: skip
    found = numerics.unpack_c(data, 2, 16, "f")
    for i, j in np.ndindex(2, 16):
        products = [float(x) * float(y) for x, y in zip(a[i], b[:, j])]
        wanted = np.float32(dot(float(c[i, j]), products, ops, model))
        assert (np.isnan(wanted) and np.isnan(found[i, j])) or wanted.tobytes() == found[i, j].tobytes(), (model, i, j)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is neither the name of a model nor a file: No such file or directory"),
        ("models", "is not a file of xegpu_py.extensions.hardware_check: "),
        ("{}", "is not a file of xegpu_py.extensions.hardware_check: "),
        ('{"models": [{"group": "none"}]}', "is not a file of xegpu_py.extensions.hardware_check: "),
        ('{"models": []}', "tells 0 models of dpas, but one is needed"),
        ('{"models": [{}, {"order": "down"}]}', "tells 2 models of dpas, but one is needed"),
    ],
)
def test_files_that_tell_no_model(content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=f"'{path}' {message}"):
        read_model(str(path))
    path.write_text('{"models": [{"order": "down"}], "device": "a GPU"}')
    assert read_model(str(path)) == Systolic(order="down")
