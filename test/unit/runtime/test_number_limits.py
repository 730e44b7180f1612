"""Numbers of every integer type are passed up to both ends of the type, and none beyond."""

import re

import numpy as np
import pytest

import xegpu_py

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
