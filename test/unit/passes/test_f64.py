"""Division and roots of f64: their operands must begin at a register, wherever the vector's elements lie."""

import numpy as np
import pytest

import xegpu_py

BODIES = {
    "div": "%r = arith.divf %v, %w : vector<{n}xf64>",
    "sqrt": "%r = math.sqrt %v : vector<{n}xf64>",
    "part": """
    %p = vector.extract_strided_slice %v {{offsets = [1], sizes = [{m}], strides = [1]}}
      : vector<{n}xf64> to vector<{m}xf64>
    %q = math.sqrt %p : vector<{m}xf64>
    %r = vector.insert_strided_slice %q, %w {{offsets = [0], strides = [1]}} : vector<{m}xf64> into vector<{n}xf64>""",
    "scalar": """
    %p = vector.extract %v[{m}] : f64 from vector<{n}xf64>
    %q = math.sqrt %p : f64
    %r = vector.broadcast %q : f64 to vector<{n}xf64>""",
}


@pytest.mark.each_value
@pytest.mark.parametrize("n", [2, 3, 8, 13, 64])
@pytest.mark.parametrize("form", BODIES)
def test_functions_of_f64(form, n):
    text = f"""
gpu.module @m {{
  gpu.func @k(%a: memref<{n}xf64>, %b: memref<{n}xf64>) kernel {{
    %c0 = arith.constant 0 : index
    %z = arith.constant 0.0 : f64
    %v = vector.transfer_read %a[%c0], %z {{in_bounds = [true]}} : memref<{n}xf64>, vector<{n}xf64>
    %w = vector.transfer_read %b[%c0], %z {{in_bounds = [true]}} : memref<{n}xf64>, vector<{n}xf64>
    {BODIES[form].format(n=n, m=n - 1)}
    vector.transfer_write %r, %a[%c0] {{in_bounds = [true]}} : vector<{n}xf64>, memref<{n}xf64>
    gpu.return
  }}
}}
"""
    rng = np.random.default_rng(n)
    a, b = rng.random(n) * 100, rng.random(n)
    root = np.sqrt(a)
    wanted = {"div": a / b, "sqrt": root, "part": np.r_[root[1:], b[-1]], "scalar": np.full(n, root[-1])}[form]
    xegpu_py.compile(text, target="pvc", engine="both")(a, b, grid=1)
    np.testing.assert_array_equal(a, wanted)
