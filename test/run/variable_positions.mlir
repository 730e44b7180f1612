// Parts of vectors at positions that are known only at run time, and a table that is read at such a position.

// RUN: xegpu-run %s arange:i32:4x16 zeros:i32:4x16 i64:2 i64:3 --engine both --print 1 | FileCheck %s
// RUN: xegpu-run %s arange:i32:4x16 zeros:i32:4x16 i64:2 i64:3 --engine reference --print 1 | FileCheck %s

// CHECK: 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
// CHECK: 16 17  9 19 20 21 22 23 24 25 26 27 28 29 30 31
// CHECK: 32 33 34 19 36 37 38 39 40 41 42 43 44 45 46 47
// CHECK: 32 33 50 35 36 37 38 39 40 41 42 43 44 45 46 47

gpu.module @m {
  memref.global "private" constant @table : memref<4xi32> = dense<[3, 5, 7, 9]>
  gpu.func @f(%a: memref<4x16xi32>, %out: memref<4x16xi32>, %i: index, %j: index) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<4x16xi32> -> !xegpu.tensor_desc<4x16xi32>
    %e = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<4x16xi32> -> !xegpu.tensor_desc<4x16xi32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<4x16xi32> -> vector<4x16xi32>
    %r = vector.extract %x[%i] : vector<16xi32> from vector<4x16xi32>
    %s = vector.extract %x[%j, %i] : i32 from vector<4x16xi32>
    %t = vector.extract %x[1, %j] : i32 from vector<4x16xi32>
    %p = vector.insert %r, %x [%j] : vector<16xi32> into vector<4x16xi32>
    %q = vector.insert %s, %p [3, %i] : i32 into vector<4x16xi32>
    %w = vector.insert %t, %q [%i, %j] : i32 into vector<4x16xi32>
    %g = memref.get_global @table : memref<4xi32>
    %n = memref.load %g[%j] : memref<4xi32>
    %z = vector.insert %n, %w [1, %i] : i32 into vector<4x16xi32>
    xegpu.store_nd %z, %e {mode = vc} : vector<4x16xi32>, !xegpu.tensor_desc<4x16xi32>
    gpu.return
  }
}
