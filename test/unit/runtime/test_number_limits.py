"""Numbers of every integer type are passed up to both ends of the type, and none beyond."""

import re

import numpy as np
import pytest

import xegpu_py
from xegpu_py.runtime.executable import SMALL, Multiple, Product, Sum, Surface, beyond, evaluated

TEXT = """
gpu.module @m {
  gpu.func @k(%m: memref<4xTYPE>, %v: TYPE) kernel {
    %i = arith.constant 1 : index
    memref.store %v, %m[%i] : memref<4xTYPE>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_numbers_at_both_ends_of_a_type(bits):
    kernel = xegpu_py.compile(TEXT.replace("TYPE", f"i{bits}"), engine="both")
    signed, unsigned = np.iinfo(f"int{bits}"), np.iinfo(f"uint{bits}")
    for value in (signed.min, signed.min + 1, -1, 0, signed.max - 1, signed.max):
        array = np.zeros(4, f"int{bits}")
        kernel(array, value)
        assert array.tolist() == [0, value, 0, 0]
    for value in (signed.min - 1, signed.max + 1, unsigned.max + 1):
        with pytest.raises(ValueError, match=re.escape(f"but got {value}")) as found:
            kernel(np.zeros(4, f"int{bits}"), value)
        assert f"from {signed.min} to {signed.max}" in str(found.value)


SMALL_TEXT = """
gpu.module @m {
  gpu.func @k(%a: memref<?x?xi16>, %n: index, %v: i64) kernel {
    gpu.return
  }
}
"""


def test_the_limits_of_a_small_kernel():
    """Each quantity at its limit and one beyond; without `large=False`, a call compiles the kernel again."""
    small, usual = (xegpu_py.compile(SMALL_TEXT, engine="interpreter", **options) for options in ({"large": False}, {}))
    most, index, grid = (SMALL[name] for name in ("bytes", "index", "grid"))
    tail = ", and kernel 'k' was compiled for less; large=True compiles it for more"

    def spanning(shape, strides):
        return np.lib.stride_tricks.as_strided(np.zeros(1, np.int16), shape, strides)

    array = np.zeros((2, 2), np.int16)
    for fits, beyond_it, message in (
        (
            (spanning((2, 1), (most - 2, 2)), 0, 1),
            (spanning((2, 1), (most, 2)), 0, 1),
            f"an array of more than {most} b",
        ),
        (
            (spanning((1, 2), (2, most - 2)), 0, 1),
            (spanning((1, 2), (2, most)), 0, 1),
            f"an array of more than {most} b",
        ),
        (
            (spanning((most // 2, 0), (2, 2)), 0, 1),
            (spanning((most // 2 + 1, 0), (2, 2)), 0, 1),
            "'%a' is an array of mo",
        ),
        (
            (spanning((0, most // 2), (2, 2)), 0, 1),
            (spanning((0, most // 2 + 1), (2, 2)), 0, 1),
            "'%a' is an array of mo",
        ),
        ((array, index, 1), (array, index + 1, 1), f"argument '%n' is an index of more than {index}"),
        ((array, -index, 1), (array, -index - 1, 1), f"argument '%n' is an index of more than {index}"),
        ((array, 0, (1, grid)), (array, 0, (1, grid + 1)), f"'grid' has more than {grid} workgroups in a dimension"),
    ):
        for (a, n, size), said in ((fits, None), (beyond_it, message)):
            found = beyond(small.executable.parameters, (a, n, 1 << 40), size, small.executable.limits)
            assert (said in found) if said else found is None, (a.shape, a.strides, n, size)
    for arguments, size in (((array, index + 1, 0), 1), ((array, 0, 0), (1, grid + 1))):
        with pytest.raises(ValueError, match=re.escape(tail)):
            small(*arguments, grid=size)
    usual(array, index + 1, 0)


ARRAY = np.zeros((6, 40), np.float32)
ARGUMENTS = (ARRAY, 24, np.int64(-3), 1 << 31, 2.5, 0)
N, NEGATIVE, LARGE, FLOAT, ZERO = (("argument", i) for i in range(1, 6))
ROWS, COLUMNS = ("extent", 0, 0), ("extent", 0, 1)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (None, None), (7, 7), (N, 24), (NEGATIVE, -3), (FLOAT, None), (ROWS, 6), (COLUMNS, 40),
        (("extent", 0, 2), None),
        (("extent", 1, 0), None), (("addi", N, ROWS), 30), (("muli", N, ("subi", COLUMNS, 4)), 24 * 36),
        (("divui", COLUMNS, 3), 13), (("ceildivui", COLUMNS, 3), 14), (("remui", COLUMNS, 3), 1), (("shli", 3, 4), 48),
        (("shli", 3, 63), 3 << 63), (("shli", 3, 64), 0), (("shrui", N, 2), 6), (("addi", N, NEGATIVE), None),
        (("addi", NEGATIVE, N), None), (("addi", ZERO, N), 24), (("addi", FLOAT, N), None), (("addi", N, FLOAT), None),
    ],
)  # fmt: skip
def test_values_of_expressions_of_arguments(expression, value):
    """None if an argument is no integer, an extent is missing, or an operand of an op is negative."""
    assert evaluated(expression, ARGUMENTS) == value


def test_what_a_kernel_assumes_of_numbers():
    for number, of, holds in ((N, 8, True), (N, 24, True), (N, 16, False), (ZERO, 8, False), (NEGATIVE, 3, False),
                              (FLOAT, 1, False), (NEGATIVE, 1, False), (1, 1, True)):  # fmt: skip
        assert Multiple(0, number, of).holds(ARGUMENTS) == holds
    half = 1 << 30
    for terms, holds in (
        ([(1, (LARGE,))], False), ([(1, (LARGE,)), (-1, (1,))], True), ([(-1, (LARGE,))], True),
        ([(-1, (LARGE,)), (-1, (1,))], False), ([(2, (half,))], False), ([(1, (half,)), (half - 1, ())], True),
        ([(3, (N, ROWS)), (LARGE[1], (FLOAT,))], True), ([(1, (half, FLOAT)), (1, (LARGE, FLOAT))], True), ([], True),
        ([(half, (N,)), (-half, (N,))], True), ([(1, (half, NEGATIVE))], False),
    ):  # fmt: skip
        assert Sum(0, tuple(terms)).holds(ARGUMENTS) == holds, terms
    for columns, rows, unlike in ((24, 24, False), (24, 6, False), (6, 24, False), (24, 16, True), (16, 24, True),
                                  (0, 7, False), (7, 0, False), (FLOAT, 7, False), (7, FLOAT, False)):  # fmt: skip
        found = Product("a.py:3", columns, rows).unlike(ARGUMENTS)
        text = (
            f"a.py:3: the left matrix is loaded from rows of {columns} elements, but the right one from {rows} rows; "
        )
        assert found.startswith(text) if unlike else found is None, (columns, rows)


def test_surfaces_that_block_messages_take():
    """Numbers of elements; what is not computed from arguments is not asked for."""

    class Limits:
        def surface_problem(self, *given):
            asked.append(given)
            return None if None in given else "no"

    asked = []
    assert Surface(1, 4, COLUMNS, ROWS, ("addi", COLUMNS, 2)).misfits(ARGUMENTS, Limits())
    assert not Surface(0, 2, None, ROWS, N).misfits(ARGUMENTS, Limits())
    assert not Surface(0, 2, N, FLOAT, None).misfits(ARGUMENTS, Limits())
    assert asked == [(160, 6, 168, 24), (None, 6, 48, None), (48, None, None, None)]
