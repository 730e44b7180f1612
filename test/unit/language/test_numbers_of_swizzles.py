"""`swizzle2d` of Python's integers numbers elements as it does those of tiles."""

import pytest

import xegpu_py.language as xl


@pytest.mark.parametrize(("rows", "columns", "size"), [(3, 4, 2), (4, 6, 3), (5, 2, 2), (2, 3, 4)])
def test_each_element_has_one_number(rows, columns, size):
    found = [xl.swizzle2d(i, j, rows, columns, size) for i in range(rows) for j in range(columns)]
    groups = [range(first, min(first + size, rows)) for first in range(0, rows, size)]
    assert found == [(row, column) for group in groups for column in range(columns) for row in group]
