"""Shuffles of rows that equal parts of a vector do alone, against the rows of all parts."""

import itertools

import numpy as np
import pytest

from xegpu_py.passes.analysis.shuffle_distribution import _local_rows


def rows_of_parts(local, first, second, parts):
    """The rows of the whole result if each part shuffles its own rows."""
    a, b = first // parts, second // parts
    return [n * a + row if row < a else first + n * b + row - a for n in range(parts) for row in local]


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_each_shuffle_of_the_parts_is_found(parts):
    for a, b, size in itertools.product(range(1, 4), range(4), range(1, 4)):
        for local in itertools.product(range(a + b), repeat=size):
            rows = tuple(rows_of_parts(local, a * parts, b * parts, parts))
            assert _local_rows(rows, a * parts, b * parts, parts) == local


@pytest.mark.parametrize("parts", [2, 3])
def test_no_other_shuffle_is_local(parts):
    rng = np.random.default_rng(parts)
    found = 0
    for _ in range(3000):
        first, second, size = (int(n) for n in rng.integers((1, 0, 1), 7))
        rows = tuple(rng.integers(0, first + second, size).tolist())
        local = _local_rows(rows, first, second, parts)
        if first % parts or second % parts or size % parts:
            assert local is None
        elif local is not None:
            assert tuple(rows_of_parts(local, first, second, parts)) == rows
            found += 1
    assert found
