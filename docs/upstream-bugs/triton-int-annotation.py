"""Triton's test test_annotations.py::test_int_annotation stores the fourth element of an array of one.

$ python triton-int-annotation.py
triton-int-annotation.py:22:5: error: 'lsc_store' writes 4 bytes at 0x10000c,
reaching 12 bytes over the end of 'X', which has 4 bytes
"""

import sys
from pathlib import Path

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def kernel(X, v: tl.uint16):
    """Store a number at its own place, as the test's kernel does."""
    # The test passes 3 for v, and `torch.empty(1)` for X.
    tl.store(X + v, v)


try:
    kernel[(1,)](xegpu_py.triton.wrap(np.zeros(1, np.float32)), 3)
except xegpu_py.DiagnosticError as error:
    message = str(error).splitlines()[0].replace(f"{Path(__file__).parent}/", "")
    print(message.replace(", reaching", ",\nreaching"))
    sys.exit(1)
