"""Vector code with nested layouts: distributed, lowered and run, on one, two and four subgroups."""

from __future__ import annotations

import numpy as np
import pytest

import xegpu_py
from xegpu_py.layout import NestedLayout

LANES = 16


def run(text: str, subgroups: int, *arrays: np.ndarray) -> None:
    module = xegpu_py.parse(text)
    xegpu_py.run_pipeline(module, "builtin.module(vector-distribute)")
    xegpu_py.compile(module, registers=256)(*arrays, block=LANES * subgroups)


def kernel(arguments: str, layouts: dict[str, NestedLayout], body: str) -> str:
    aliases = "\n".join(f"#{name} = {layout}" for name, layout in layouts.items())
    return f"""{aliases}
gpu.module @kernels {{
  gpu.func @f({arguments}) kernel attributes {{xegpu.subgroup_size = {LANES} : i32}} {{
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    {body}
    gpu.return
  }}
}}"""


def rows_of(subgroups: int, rows: int, columns: int) -> NestedLayout:
    """Rows dealt out to subgroups and lanes, four lanes to a row."""
    batch = rows // (subgroups * 4)
    return NestedLayout([subgroups, 1], [batch, 1], [1, 1], [4, 4], [1, columns // 4], [1, 0], [4, 1])


@pytest.mark.parametrize("subgroups", [1, 2, 4])
def test_softmax(subgroups):
    text = kernel(
        "%in: memref<32x64xf32>, %out: memref<32x64xf32>",
        {"l": rows_of(subgroups, 32, 64)},
        """
    %low = arith.constant dense<0xFF800000> : vector<32xf32>
    %zero = arith.constant dense<0.0> : vector<32xf32>
    %x = vector.transfer_read %in[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x64xf32>, vector<32x64xf32>
    %a = iree_vector_ext.to_layout %x to layout(#l) : vector<32x64xf32>
    %m = vector.multi_reduction <maximumf>, %a, %low [1] : vector<32x64xf32> to vector<32xf32>
    %mt = vector.broadcast %m : vector<32xf32> to vector<64x32xf32>
    %mb = vector.transpose %mt, [1, 0] : vector<64x32xf32> to vector<32x64xf32>
    %d = arith.subf %a, %mb : vector<32x64xf32>
    %e = math.exp %d : vector<32x64xf32>
    %s = vector.multi_reduction <add>, %e, %zero [1] : vector<32x64xf32> to vector<32xf32>
    %st = vector.broadcast %s : vector<32xf32> to vector<64x32xf32>
    %sb = vector.transpose %st, [1, 0] : vector<64x32xf32> to vector<32x64xf32>
    %y = arith.divf %e, %sb : vector<32x64xf32>
    vector.transfer_write %y, %out[%c0, %c0] {in_bounds = [true, true]} : vector<32x64xf32>, memref<32x64xf32>""",
    )
    x = np.random.default_rng(1).standard_normal((32, 64)).astype(np.float32)
    out = np.zeros_like(x)
    run(text, subgroups, x, out)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("subgroups", [1, 2, 4])
def test_reduction_of_a_matrix(subgroups, dimension):
    """Integers, so that any order gives the same bits; over subgroups too, which hold different rows."""
    length = (32, 16)[1 - dimension]
    text = kernel(
        f"%in: memref<32x16xi32>, %out: memref<{length}xi32>",
        {"l": NestedLayout([subgroups, 1], [2, 2], [1, 1], [4, 4], [4 // subgroups, 2], [1, 0], [4, 1])},
        f"""
    %none = arith.constant 0 : i32
    %zero = arith.constant dense<7> : vector<{length}xi32>
    %x = vector.transfer_read %in[%c0, %c0], %none {{in_bounds = [true, true]}} : memref<32x16xi32>, vector<32x16xi32>
    %a = iree_vector_ext.to_layout %x to layout(#l) : vector<32x16xi32>
    %s = vector.multi_reduction <add>, %a, %zero [{dimension}] : vector<32x16xi32> to vector<{length}xi32>
    vector.transfer_write %s, %out[%c0] {{in_bounds = [true]}} : vector<{length}xi32>, memref<{length}xi32>""",
    )
    x = np.random.default_rng(2).integers(-(1 << 31), 1 << 31, (32, 16)).astype(np.int32)
    out = np.zeros(length, np.int32)
    run(text, subgroups, x, out)
    np.testing.assert_array_equal(out, (x.sum(axis=dimension) + 7).astype(np.int32))


@pytest.mark.parametrize("subgroups", [1, 2, 4])
def test_matmul(subgroups):
    """Small integers in f32, so that every sum is exact."""
    deal = [subgroups, 1], [1, 0]
    layouts = {
        "a": NestedLayout(deal[0], [1, 1], [1, 1], [8, 1], [2, 16], deal[1], [2, 0]),
        "b": NestedLayout([1, 1], [1, 1], [1, 1], [1, 2], [16, 8], [0, 0], [0, 1]),
        "c": NestedLayout(deal[0], [1, 1], [1, 1], [8, 2], [2, 8], deal[1], [2, 1]),
    }
    rows = 16 * subgroups
    text = kernel(
        f"%A: memref<{rows}x16xf32>, %B: memref<16x16xf32>, %C: memref<{rows}x16xf32>",
        layouts,
        f"""
    %zero = arith.constant dense<0.0> : vector<{rows}x16xf32>
    %x = vector.transfer_read %A[%c0, %c0], %pad {{in_bounds = [true, true]}}
      : memref<{rows}x16xf32>, vector<{rows}x16xf32>
    %y = vector.transfer_read %B[%c0, %c0], %pad {{in_bounds = [true, true]}} : memref<16x16xf32>, vector<16x16xf32>
    %a = iree_vector_ext.to_layout %x to layout(#a) : vector<{rows}x16xf32>
    %b = iree_vector_ext.to_layout %y to layout(#b) : vector<16x16xf32>
    %z = iree_vector_ext.to_layout %zero to layout(#c) : vector<{rows}x16xf32>
    %c = vector.contract {{
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
    }} %a, %b, %z : vector<{rows}x16xf32>, vector<16x16xf32> into vector<{rows}x16xf32>
    vector.transfer_write %c, %C[%c0, %c0] {{in_bounds = [true, true]}}
      : vector<{rows}x16xf32>, memref<{rows}x16xf32>""",
    )
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((rows, 16), (16, 16)))
    c = np.zeros((rows, 16), np.float32)
    run(text, subgroups, a, b, c)
    np.testing.assert_array_equal(c, a @ b)
