"""Kernels with branches between blocks, in vector compute mode, of work items and of tiles."""

import numpy as np
import pytest

import xegpu_py

VECTORS = """
gpu.module @m {
  gpu.func @k(%A: memref<64x16xf32>, %B: memref<8x16xf32>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %cst = arith.constant dense<0.0> : vector<8x16xf32>
    %d0 = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<64x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    cf.br ^loop(%c0, %cst, %d0 : i32, vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>)
  ^loop(%i: i32, %v: vector<8x16xf32>, %d: !xegpu.tensor_desc<8x16xf32>):
    %go = arith.cmpi slt, %i, %n : i32
    cf.cond_br %go, ^body, ^end(%d, %v: !xegpu.tensor_desc<8x16xf32>, vector<8x16xf32>)
  ^body:
    %y = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %x = arith.addf %v, %y : vector<8x16xf32>
    %j = arith.addi %i, %c1 : i32
    %e = xegpu.update_nd_offset %d, [8, 0] {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %stop = arith.cmpi eq, %i, %c5 : i32
    cf.cond_br %stop, ^end(%d0, %y : !xegpu.tensor_desc<8x16xf32>, vector<8x16xf32>),
      ^loop(%j, %x, %e : i32, vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>)
  ^end(%f: !xegpu.tensor_desc<8x16xf32>, %g: vector<8x16xf32>):
    %o = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %h = xegpu.load_nd %f {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %s = arith.addf %g, %h : vector<8x16xf32>
    xegpu.store_nd %s, %o {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""

ITEMS = """
gpu.module @m {
  gpu.func @k(%A: memref<64xi32>, %B: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %i = gpu.thread_id x
    %n = memref.load %A[%i] : memref<64xi32>
    cf.br ^loop(%n, %c0 : i32, i32)
  ^loop(%x: i32, %steps: i32):
    %one = arith.cmpi ule, %x, %c1 : i32
    cf.cond_br %one, ^end(%steps : i32), ^body
  ^body:
    %bit = arith.andi %x, %c1 : i32
    %odd = arith.cmpi eq, %bit, %c1 : i32
    %next = arith.addi %steps, %c1 : i32
    cf.cond_br %odd, ^triple, ^halve
  ^triple:
    %y = arith.muli %x, %c3 : i32
    %z = arith.addi %y, %c1 : i32
    cf.br ^loop(%z, %next : i32, i32)
  ^halve:
    %w = arith.shrui %x, %c1 : i32
    cf.br ^loop(%w, %next : i32, i32)
  ^end(%r: i32):
    memref.store %r, %B[%i] : memref<64xi32>
    gpu.return
  }
}
"""

TILES = """
!t = !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [16, 32]>>>
gpu.module @m {
  func.func private @twice(%x: f32, %n: index) -> f32 {
    %c0 = arith.constant 0 : index
    %big = arith.cmpi ugt, %n, %c0 : index
    cf.cond_br %big, ^a, ^b
  ^a:
    %y = arith.addf %x, %x : f32
    return %y : f32
  ^b:
    return %x : f32
  }
  gpu.func @k(%A: memref<?x32xf32>, %B: memref<64x32xf32>, %n: index, %stop: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : f32
    %f = func.call @twice(%one, %n) : (f32, index) -> f32
    %zero = vector.broadcast %f : f32 to vector<64x32xf32>
    %t0 = xetile.init_tile %A[0, 0] : memref<?x32xf32> -> !t
    cf.br ^loop(%c0, %zero, %t0 : index, vector<64x32xf32>, !t)
  ^loop(%i: index, %sum: vector<64x32xf32>, %t: !t):
    %go = arith.cmpi ult, %i, %n : index
    cf.cond_br %go, ^body, ^end(%sum : vector<64x32xf32>)
  ^body:
    %v = xetile.load_tile %t : !t -> vector<64x32xf32>
    %next = arith.addf %sum, %v : vector<64x32xf32>
    %u = xetile.update_tile_offset %t, [64, 0] : !t
    %j = arith.addi %i, %c1 : index
    %over = arith.cmpi eq, %i, %stop : index
    cf.cond_br %over, ^end(%v : vector<64x32xf32>), ^loop(%j, %next, %u : index, vector<64x32xf32>, !t)
  ^end(%r: vector<64x32xf32>):
    %b = xetile.init_tile %B[0, 0] : memref<64x32xf32> -> !t
    xetile.store_tile %r, %b : vector<64x32xf32>, !t
    gpu.return
  }
}
"""


def rounds(n):
    """Steps of the Collatz sequence from n down to 1."""
    steps = 0
    while n > 1:
        n = 3 * n + 1 if n & 1 else n >> 1
        steps += 1
    return steps


@pytest.mark.parametrize("n", [0, 1, 4, 7])
def test_descriptors_are_carried_by_branches(n):
    """A loop with two exits, each of which gives another descriptor."""
    a, b = np.arange(64 * 16, dtype=np.float32).reshape(64, 16), np.zeros((8, 16), np.float32)
    xegpu_py.compile(VECTORS, target="pvcxt", engine="both")(a, b, n)
    blocks = np.concatenate([a, np.zeros_like(a)]).reshape(-1, 8, 16)
    wanted = blocks[5] + blocks[0] if n > 5 else blocks[:n].sum(0) + blocks[n]
    np.testing.assert_array_equal(b, wanted)


def test_work_items_branch_apart():
    a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    xegpu_py.compile(ITEMS, target="pvcxt", engine="both")(a, b, block=64)
    assert list(b) == [rounds(n) for n in range(64)]


@pytest.mark.parametrize(("n", "stop"), [(0, 9), (3, 9), (4, 2)])
def test_workgroups_branch(n, stop):
    a, b = np.random.default_rng(0).integers(0, 9, (256, 32)).astype(np.float32), np.zeros((64, 32), np.float32)
    xegpu_py.compile(TILES, target="pvcxt", engine="both")(a, b, n, stop, block=4)
    tiles = a.reshape(4, 64, 32)
    wanted = tiles[stop] if stop < n else tiles[:n].sum(0) + (2 if n else 1)
    np.testing.assert_array_equal(b, wanted)
