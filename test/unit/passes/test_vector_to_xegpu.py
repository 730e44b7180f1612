"""`vector-to-xegpu`: memory accesses of the vector dialect equal numpy's indexing."""

import numpy as np

import xegpu_py

KERNEL = """
gpu.module @k {
  gpu.func @f(%in: memref<?x64xf32>, %out: memref<?x64xf32>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %pad = arith.constant 9.0 : f32
    %a = vector.load %in[%i, %c3] : memref<?x64xf32>, vector<2x5xf32>
    vector.store %a, %out[%c0, %c0] : memref<?x64xf32>, vector<2x5xf32>
    %c60 = arith.constant 60 : index
    %b = vector.transfer_read %in[%i, %c60], %pad : memref<?x64xf32>, vector<4x8xf32>
    %c2 = arith.constant 2 : index
    vector.transfer_write %b, %out[%c2, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, memref<?x64xf32>
    %t = vector.transfer_read %in[%c0, %c0], %pad {in_bounds = [true, true],
      permutation_map = affine_map<(a, b) -> (b, a)>}
      : memref<?x64xf32>, vector<4x8xf32>
    vector.transfer_write %t, %out[%i, %c60] {permutation_map = affine_map<(a, b) -> (a, b)>}
      : vector<4x8xf32>, memref<?x64xf32>
    %g = vector.transfer_read %in[%c0, %c3], %pad {in_bounds = [true, true],
      permutation_map = affine_map<(a, b) -> (0, b)>}
      : memref<?x64xf32>, vector<2x8xf32>
    %c32 = arith.constant 32 : index
    vector.transfer_write %g, %out[%c0, %c32] {in_bounds = [true, true]} : vector<2x8xf32>, memref<?x64xf32>
    %p = arith.constant dense<[5, 1, 0, 2]> : vector<4xindex>
    %m = arith.constant dense<[true, true, false, true]> : vector<4xi1>
    %z = arith.constant dense<-1.0> : vector<4xf32>
    %h = vector.gather %in[%c2, %c3] [%p], %m, %z
      : memref<?x64xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    vector.scatter %out[%c3, %c32] [%p], %m, %h : memref<?x64xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
    %l = vector.maskedload %in[%c2, %c0], %m, %z : memref<?x64xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    vector.store %l, %out[%c0, %c60] : memref<?x64xf32>, vector<4xf32>
    vector.maskedstore %out[%c2, %c32], %m, %l : memref<?x64xf32>, vector<4xi1>, vector<4xf32>
    gpu.return
  }
}
"""


def test_accesses_of_memory():
    kernel = xegpu_py.compile(KERNEL, registers=256)
    x = np.random.default_rng(6).standard_normal((12, 64)).astype(np.float32)
    out, want, first = np.zeros_like(x), np.zeros_like(x), 10
    kernel(x, out, np.int32(first))
    outside = np.full((32, 128), 9, np.float32)
    outside[:12, :64] = x
    want[0:2, 0:5] = x[first : first + 2, 3:8]
    want[2:6, 0:8] = outside[first : first + 4, 60:68]
    want[first:, 60:64] = x[0:8, 0:4].T[:2, :4]
    want[0:2, 32:40] = x[0, 3:11]
    places, mask = [5, 1, 0, 2], np.array([True, True, False, True])
    for place, active in zip(places, mask):
        if active:
            want[3, 32 + place] = x[2, 3 + place]
    masked = np.where(mask, x[2, :4], -1)
    want[0, 60:64] = masked
    want[2, 32:36] = np.where(mask, masked, want[2, 32:36])
    np.testing.assert_array_equal(out, want)


ATOMICS = """
gpu.module @m {
  gpu.func @k(%numbers: memref<8xi32>, %sum: memref<?x4xf32>, %out: memref<2xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0 : i32
    %slm = memref.alloc() : memref<2x2xi32, 3>
    %t = gpu.thread_id x
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      memref.store %zero, %slm[%c1, %c0] : memref<2x2xi32, 3>
    }
    gpu.barrier
    %x = memref.load %numbers[%t] : memref<8xi32>
    %most = memref.atomic_rmw maxs %x, %out[%c1] : (i32, memref<2xi32>) -> i32
    %f = arith.sitofp %x : i32 to f32
    %before = memref.atomic_rmw addf %f, %sum[%c2, %c1] : (f32, memref<?x4xf32>) -> f32
    %old = memref.atomic_rmw addi %x, %slm[%c1, %c0] : (i32, memref<2x2xi32, 3>) -> i32
    gpu.barrier
    scf.if %first {
      %total = memref.load %slm[%c1, %c0] : memref<2x2xi32, 3>
      memref.store %total, %out[%c0] : memref<2xi32>
    }
    gpu.return
  }
}
"""


def test_atomics_of_single_elements():
    numbers = np.array([5, -3, 12, 7, 0, 1, -20, 4], np.int32)
    total, out = np.ones((3, 4), np.float32), np.array([0, -100], np.int32)
    xegpu_py.compile(ATOMICS, check="races")(numbers, total, out, block=8)
    want = np.ones((3, 4), np.float32)
    want[2, 1] += numbers.sum()
    np.testing.assert_array_equal(total, want)
    assert out.tolist() == [numbers.sum(), 12]


def test_any_number_of_elements():
    """Messages are for powers of two of lanes, up to 32."""
    text = """
gpu.module @k {
  gpu.func @f(%in: memref<64xf32>, %at: memref<43xi32>, %out: memref<64xf32>, %masked: memref<64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c40 = arith.constant 40 : index
    %none = arith.constant dense<-1.0> : vector<43xf32>
    %p = vector.load %at[%c0] : memref<43xi32>, vector<43xi32>
    %m = vector.create_mask %c40 : vector<43xi1>
    %g = vector.gather %in[%c2] [%p], %m, %none
      : memref<64xf32>, vector<43xi32>, vector<43xi1>, vector<43xf32> into vector<43xf32>
    vector.scatter %out[%c2] [%p], %m, %g : memref<64xf32>, vector<43xi32>, vector<43xi1>, vector<43xf32>
    vector.maskedstore %masked[%c0], %m, %g : memref<64xf32>, vector<43xi1>, vector<43xf32>
    %all = vector.constant_mask [43] : vector<43xi1>
    %l = vector.maskedload %in[%c2], %all, %none : memref<64xf32>, vector<43xi1>, vector<43xf32> into vector<43xf32>
    %s = vector.reduction <maximumf>, %l : vector<43xf32> into f32
    memref.store %s, %masked[%c40] : memref<64xf32>
    gpu.return
  }
}
"""
    rng = np.random.default_rng(8)
    x = rng.standard_normal(64).astype(np.float32)
    at = rng.permutation(60)[:43].astype(np.int32)
    out, masked = np.zeros_like(x), np.zeros_like(x)
    xegpu_py.compile(text)(x, at, out, masked)
    want = np.zeros_like(x)
    want[2 + at[:40]] = x[2 + at[:40]]
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(masked[:40], x[2 + at[:40]])
    assert masked[40] == x[2:45].max() and not masked[41:].any()


def test_masks_have_the_order_of_memory():
    """A transposing write and a read that repeats columns, whose mask has the rows alone."""
    text = """
gpu.module @k {
  gpu.func @f(%in: memref<8x4xf32>, %other: memref<4x8xf32>, %repeated: memref<8x4xf32>, %n: index, %m: index) kernel {
    %c0 = arith.constant 0 : index
    %pad = arith.constant -1.0 : f32
    %x = vector.load %in[%c0, %c0] : memref<8x4xf32>, vector<8x4xf32>
    %some = vector.create_mask %n, %m : vector<4x8xi1>
    vector.transfer_write %x, %other[%c0, %c0], %some {in_bounds = [true, true],
      permutation_map = affine_map<(a, b) -> (b, a)>} : vector<8x4xf32>, memref<4x8xf32>
    %rows = vector.create_mask %m : vector<8xi1>
    %y = vector.transfer_read %in[%c0, %n], %pad, %rows {in_bounds = [true, true],
      permutation_map = affine_map<(a, b) -> (a, 0)>} : memref<8x4xf32>, vector<8x4xf32>
    vector.store %y, %repeated[%c0, %c0] : memref<8x4xf32>, vector<8x4xf32>
    gpu.return
  }
}
"""
    x = np.arange(1, 33, dtype=np.float32).reshape(8, 4)
    swapped, repeated = np.zeros((4, 8), np.float32), np.zeros((8, 4), np.float32)
    xegpu_py.compile(text)(x, swapped, repeated, np.int64(3), np.int64(5))
    want = np.zeros_like(swapped)
    want[:3, :5] = x.T[:3, :5]
    np.testing.assert_array_equal(swapped, want)
    np.testing.assert_array_equal(repeated, np.where(np.arange(8)[:, None] < 5, x[:, 3:], -1).repeat(4, 1)[:, :4])


def test_vectors_of_no_dimensions():
    text = """
gpu.module @k {
  gpu.func @f(%a: memref<i64>, %b: memref<4xi64>, %out: memref<i64>) kernel {
    %c2 = arith.constant 2 : index
    %x = vector.load %a[] : memref<i64>, vector<i64>
    %y = vector.load %b[%c2] : memref<4xi64>, vector<i64>
    %sum = arith.addi %x, %y : vector<i64>
    vector.store %sum, %out[] : memref<i64>, vector<i64>
    vector.store %x, %b[%c2] : memref<4xi64>, vector<i64>
    gpu.return
  }
}
"""
    for engine in ("both", "reference"):
        # Arrays of no dimensions are arrays, and not numbers or addresses.
        a, b, out = np.array(5), np.arange(4) * 100, np.array(0)
        xegpu_py.compile(text, engine=engine)(a, b, out)
        assert (out.tolist(), b.tolist()) == (205, [0, 100, 5, 300])
