"""math.powf: the special values of C's pow, as numpy has them, and the bits of the golden algorithm."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.numerics.expansions import evaluate

SPECIAL = (
    *(0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 1.5, 2.5, 0.75, 1e-3, 16777215.0, 16777216.0, 33554434.0, 3e38, 1e-40),
    *(1.1754944e-38, np.inf, np.nan, 5.0, 127.0, 1.0000001, 0.99999994),
)  # fmt: skip
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
KERNEL = """
gpu.module @m {{
  gpu.func @k(%x: memref<?x{t}>, %y: memref<?x{t}>, %out: memref<?x{t}>) kernel {{
    %c64 = arith.constant 64 : index
    %bx = gpu.block_id x
    %at = arith.muli %bx, %c64 : index
    %z = arith.constant 0.0 : {t}
    %a = vector.transfer_read %x[%at], %z {{in_bounds = [true]}} : memref<?x{t}>, vector<64x{t}>
    %b = vector.transfer_read %y[%at], %z {{in_bounds = [true]}} : memref<?x{t}>, vector<64x{t}>
    %r = math.powf %a, %b : vector<64x{t}>
    vector.transfer_write %r, %out[%at] {{in_bounds = [true]}} : vector<64x{t}>, memref<?x{t}>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("t", DTYPES)
def test_special_values(t):
    with np.errstate(over="ignore"):
        values = np.array([s * v for v in SPECIAL for s in (1, -1)], np.float32).astype(DTYPES[t])
    x, y = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(values, values))
    x, y = (np.concatenate([v, np.ones(-len(v) % 64, v.dtype)]) for v in (x, y))
    found = np.zeros_like(x)
    xegpu_py.compile(KERNEL.format(t=t), target="pvc", engine="both")(x, y, found, grid=len(x) // 64)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        wanted = exact.astype(DTYPES[t])
        golden = evaluate("math.powf", x.astype(np.float32), y.astype(np.float32)).astype(DTYPES[t])
    special = ~np.isfinite(exact) | (exact == 0) | (np.abs(exact) == 1)
    width = f"u{x.itemsize}"
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    number = special & ~np.isnan(wanted)
    np.testing.assert_array_equal(found[number].view(width), wanted[number].view(width))
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(wanted[~np.isnan(found)]))
    np.testing.assert_array_equal(found.view(width)[~np.isnan(found)], golden.view(width)[~np.isnan(found)])
    assert len(set(found.view(width)[np.isnan(found)])) == 1, "there is one NaN"
