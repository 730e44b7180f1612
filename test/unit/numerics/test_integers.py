"""Quotients and remainders of integers against exact rationals."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from xegpu_py.numerics import integers

ROUNDED: dict[str, Callable[[Fraction], int]] = {"floordivsi": math.floor, "ceildivsi": math.ceil, "divsi": math.trunc}
NUMBERS = [*range(-9, 10), -(1 << 62), (1 << 62) + 1]


@pytest.mark.parametrize("name", ROUNDED)
def test_quotients(name: str) -> None:
    divide = integers.SIGNED[name]
    for b in NUMBERS:
        wanted = [ROUNDED[name](Fraction(a, b)) if b else 0 for a in NUMBERS]
        assert [divide(a, b) for a in NUMBERS] == wanted
        assert divide(np.array(NUMBERS), np.array(b)).tolist() == wanted


def test_remainders() -> None:
    for b in NUMBERS:
        wanted = [a - math.trunc(Fraction(a, b)) * b if b else 0 for a in NUMBERS]
        assert integers.SIGNED["remsi"](np.array(NUMBERS), np.array(b)).tolist() == wanted


def test_unsigned_numbers_of_all_bits() -> None:
    numbers = [0, 1, 3, 1 << 63, (1 << 64) - 1]
    for name, divide in (("divui", "floordivsi"), ("ceildivui", "ceildivsi")):
        for b in numbers:
            wanted = [ROUNDED[divide](Fraction(a, b)) if b else 0 for a in numbers]
            found = integers.UNSIGNED[name](np.array(numbers, np.uint64), np.array(b, np.uint64))
            assert found.dtype == np.uint64
            assert found.tolist() == wanted
