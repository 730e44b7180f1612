"""Loops of affine, linalg and parallel scf ops in kernels: each thread, or work item, runs all iterations in order."""

import numpy as np
import pytest

import xegpu_py

CASES = {
    "forall": "scf.forall (%i) = (4) to (32) step (4) { memref.store %x, %m[%i] : memref<64xf32> }",
    "parallel": "scf.parallel (%i) = (%c4) to (%c32) step (%c4) { memref.store %x, %m[%i] : memref<64xf32> }",
    "affine": "affine.for %i = 1 to 8 { affine.store %x, %m[%i * 4] : memref<64xf32> }",
    "affine.if": """affine.for %i = 0 to 32 {
      affine.if affine_set<(d0) : (d0 mod 4 == 0, d0 - 4 >= 0)>(%i) { affine.store %x, %m[%i] : memref<64xf32> }
    }""",
    "affine.parallel": "affine.parallel (%i) = (4) to (32) step (4) { affine.store %x, %m[%i] : memref<64xf32> }",
    "affine.apply": """%word = memref.load %places[%c4] : memref<64xi32>
    %d = arith.index_cast %word : i32 to index
    %p = affine.apply affine_map<(d0) -> (d0 floordiv 4 + 24)>(%d)
    affine.for %i = 1 to 7 { affine.store %x, %m[%i * 4] : memref<64xf32> }
    memref.store %x, %m[%p] : memref<64xf32>""",
    "linalg": """%v = memref.subview %m[4] [7] [4] : memref<64xf32> to memref<7xf32, strided<[4], offset: 4>>
    linalg.fill ins(%x : f32) outs(%v : memref<7xf32, strided<[4], offset: 4>>)""",
    "copy": """%v = memref.subview %m[4] [7] [4] : memref<64xf32> to memref<7xf32, strided<[4], offset: 4>>
    %w = memref.subview %ones[0] [7] [1] : memref<64xf32> to memref<7xf32, strided<[1]>>
    memref.copy %w, %v : memref<7xf32, strided<[1]>> to memref<7xf32, strided<[4], offset: 4>>""",
}


@pytest.mark.parametrize("simt", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_loops(name, simt):
    attributes = "attributes {xegpu.subgroup_size = 16 : i32}" * simt
    text = f"""
gpu.module @k {{
  gpu.func @k(%m: memref<64xf32>, %ones: memref<64xf32>, %places: memref<64xi32>) kernel {attributes} {{
    %x = arith.constant 1.0 : f32
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    {CASES[name]}
    gpu.return
  }}
}}
"""
    m, ones = np.zeros(64, np.float32), np.ones(64, np.float32)
    wanted = m.copy()
    wanted[4:32:4] = 1
    kernel = xegpu_py.compile(text, target="pvc", engine="both")
    places = np.full(64, 16, np.int32)
    kernel(m, ones, places, grid=1, block=16 if simt else 1)
    np.testing.assert_array_equal(m, wanted)
