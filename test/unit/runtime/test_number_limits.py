"""Numbers of every integer type are passed up to both ends of the type, and none beyond."""

import re

import numpy as np
import pytest

import xegpu_py
from xegpu_py.runtime.executable import SMALL, beyond

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
