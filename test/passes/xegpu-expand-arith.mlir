// RUN: xegpu-opt %s --xegpu-expand-arith=target=pvc | FileCheck %s

// The pass expands arithmetic and leaves blocks and vectors at their size.

gpu.module @kernels {
// CHECK-LABEL: @sum
// CHECK: %[[X:.*]] = xegpu.load_nd %{{.*}} -> vector<64x64xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]] : vector<64x64xbf16> to vector<64x64xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[WIDE]], %{{.*}} : vector<64x64xf32>
// CHECK: arith.truncf %[[SUM]] : vector<64x64xf32> to vector<64x64xbf16>
gpu.func @sum(%m: memref<64x64xbf16>) kernel {
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<64x64xbf16>
  %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x64xbf16> -> vector<64x64xbf16>
  %y = arith.addf %x, %x : vector<64x64xbf16>
  xegpu.store_nd %y, %d {mode = vc} : vector<64x64xbf16>, !xegpu.tensor_desc<64x64xbf16>
  gpu.return
}

// A power that is a constant is made of products.
// CHECK-LABEL: @powers
// CHECK-NOT: scf.for
// CHECK: %[[POWER:.*]] = arith.muli %{{.*}}, %[[X:.*]] : vector<16xi32>
// CHECK: %[[SQUARE:.*]] = arith.muli %[[X]], %[[X]] : vector<16xi32>
// CHECK: arith.muli %[[POWER]], %[[SQUARE]] : vector<16xi32>
// CHECK-NOT: scf.for
// CHECK: gpu.return
gpu.func @powers(%m: memref<2x16xi32>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0> : vector<16xi32>
  %three = arith.constant dense<3> : vector<16xi32>
  %x = vector.load %m[%c0, %c0] : memref<2x16xi32>, vector<16xi32>
  %p = math.ipowi %x, %none : vector<16xi32>
  %q = math.ipowi %x, %three : vector<16xi32>
  vector.store %p, %m[%c0, %c0] : memref<2x16xi32>, vector<16xi32>
  vector.store %q, %m[%c1, %c0] : memref<2x16xi32>, vector<16xi32>
  gpu.return
}

// CHECK-LABEL: @row
// CHECK: %[[X:.*]] = xegpu.load_nd
// CHECK: %[[IS1:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK: %[[R0:.*]] = vector.extract %[[X]][0]
// CHECK: %[[R1:.*]] = vector.extract %[[X]][1]
// CHECK: %[[R:.*]] = arith.select %[[IS1]], %[[R1]], %[[R0]] : vector<16xi32>
// CHECK: %[[A:.*]] = arith.select %{{.*}}, %[[R]], %{{.*}} : vector<16xi32>
// CHECK: vector.insert %[[A]], %[[X]] [0]
gpu.func @row(%m: memref<2x16xi32>, %i: index) kernel {
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<2x16xi32> -> !xegpu.tensor_desc<2x16xi32>
  %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<2x16xi32> -> vector<2x16xi32>
  %r = vector.extract %x[%i] : vector<16xi32> from vector<2x16xi32>
  %y = vector.insert %r, %x [%i] : vector<16xi32> into vector<2x16xi32>
  xegpu.store_nd %y, %d {mode = vc} : vector<2x16xi32>, !xegpu.tensor_desc<2x16xi32>
  gpu.return
}

// Descriptors that a select chooses from become those of a branch.
// CHECK-LABEL: @either
// CHECK: scf.if %{{.*}} -> (!xegpu.tensor_desc<64x16xf32>)
// CHECK-NOT: arith.select
gpu.func @either(%m: memref<64x64xf32>, %which: i1) kernel {
  %a = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
  %b = xegpu.create_nd_tdesc %m[0, 32] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
  %d = arith.select %which, %a, %b : !xegpu.tensor_desc<64x16xf32>
  %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xf32> -> vector<64x16xf32>
  xegpu.store_nd %x, %a {mode = vc} : vector<64x16xf32>, !xegpu.tensor_desc<64x16xf32>
  gpu.return
}

// Of long vectors of f64 a loop computes one part after the other; each iteration rotates the parts of both operands.
// CHECK-LABEL: @parts
// CHECK: %[[X:.*]] = vector.shape_cast %{{.*}} : vector<8x8xf64> to vector<4x16xf64>
// CHECK: %[[X0:.*]] = vector.extract %[[X]][0]
// CHECK: %[[Y0:.*]] = vector.extract %{{.*}}[0]
// CHECK: %[[R:.*]]:8 = scf.for %{{.*}} = %c0{{.*}} to %c4{{.*}} step %c1{{.*}} iter_args(%[[A:.*]] = %[[X0]], %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}, %[[D:.*]] = %{{.*}}, %[[E:.*]] = %[[Y0]], %[[F:.*]] = %{{.*}}, %[[G:.*]] = %{{.*}}, %[[H:.*]] = %{{.*}})
// CHECK: scf.yield %[[B]], %[[C]], %[[D]], %{{[0-9]+}}, %[[F]], %[[G]], %[[H]], %[[E]]
// CHECK: vector.insert %[[R]]#3, %{{.*}} [3] : vector<16xf64> into vector<4x16xf64>
// CHECK: vector.shape_cast %{{.*}} : vector<4x16xf64> to vector<8x8xf64>
// CHECK-NOT: math.atan2
gpu.func @parts(%m: memref<8x8xf64>, %n: memref<8x8xf64>) kernel {
  %a = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<8x8xf64> -> !xegpu.tensor_desc<8x8xf64>
  %b = xegpu.create_nd_tdesc %n[0, 0] {mode = vc} : memref<8x8xf64> -> !xegpu.tensor_desc<8x8xf64>
  %x = xegpu.load_nd %a {mode = vc} : !xegpu.tensor_desc<8x8xf64> -> vector<8x8xf64>
  %y = xegpu.load_nd %b {mode = vc} : !xegpu.tensor_desc<8x8xf64> -> vector<8x8xf64>
  %r = math.atan2 %x, %y : vector<8x8xf64>
  xegpu.store_nd %r, %a {mode = vc} : vector<8x8xf64>, !xegpu.tensor_desc<8x8xf64>
  gpu.return
}

// A call of a special function is its formula, of scalars and of short vectors in one piece.
// CHECK-LABEL: @special
// CHECK-NOT: func.call
// CHECK: arith.divf %{{.*}} : vector<16xf64>
// CHECK: arith.divf %{{.*}} : f64
func.func private @xegpu.formula.rhypot.v16(vector<16xf64>, vector<16xf64>) -> vector<16xf64>
func.func private @xegpu.formula.rcbrt(f64) -> f64
gpu.func @special(%x: vector<16xf64>, %s: f64, %m: memref<17xf64>) kernel {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %v = func.call @xegpu.formula.rhypot.v16(%x, %x) : (vector<16xf64>, vector<16xf64>) -> vector<16xf64>
  %f = func.call @xegpu.formula.rcbrt(%s) : (f64) -> f64
  vector.store %v, %m[%c0] : memref<17xf64>, vector<16xf64>
  memref.store %f, %m[%c16] : memref<17xf64>
  gpu.return
}

// Long vectors of i64 are divided in a loop, but not by a constant, which may be a power of two.
// CHECK-LABEL: @long_division
// CHECK: scf.for
// CHECK: arith.floordivsi %{{.*}} : vector<16xi64>
// CHECK: arith.divsi %{{.*}}, %{{.*}} : vector<64xi64>
gpu.func @long_division(%m: memref<64xi64>) kernel {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant dense<8> : vector<64xi64>
  %x = vector.load %m[%c0] : memref<64xi64>, vector<64xi64>
  %f = arith.floordivsi %x, %x : vector<64xi64>
  %q = arith.divsi %f, %c8 : vector<64xi64>
  vector.store %q, %m[%c0] : memref<64xi64>, vector<64xi64>
  gpu.return
}

// Remainders of narrow floats are those of wider ones, and a loop carries no constant.
// CHECK-LABEL: @long_remainder
// CHECK: arith.extf %{{.*}} : vector<64xbf16> to vector<64xf32>
// CHECK: arith.remf %{{.*}} : vector<16xf32>
// CHECK: arith.truncf %{{.*}} : vector<64xf32> to vector<64xbf16>
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: %[[C:.*]] = arith.constant dense<{{.*}}> : vector<16xf32>
// CHECK: arith.remf %{{.*}}, %[[C]] : vector<16xf32>
gpu.func @long_remainder(%m: memref<64xbf16>, %n: memref<64xf32>) kernel {
  %c0 = arith.constant 0 : index
  %c = arith.constant dense<0.3> : vector<64xf32>
  %x = vector.load %m[%c0] : memref<64xbf16>, vector<64xbf16>
  %y = vector.load %n[%c0] : memref<64xf32>, vector<64xf32>
  %b = arith.remf %x, %x : vector<64xbf16>
  %r = arith.remf %y, %c : vector<64xf32>
  vector.store %b, %m[%c0] : memref<64xbf16>, vector<64xbf16>
  vector.store %r, %n[%c0] : memref<64xf32>, vector<64xf32>
  gpu.return
}

// A loop has at least four parts, and at most sixteen if the parts are of more than 16 elements; others have none.
// CHECK-LABEL: @numbers_of_parts
// CHECK: arith.remf %{{.*}} : vector<48xf32>
// CHECK: arith.remf %{{.*}} : vector<72xf32>
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c16{{.*}} step %c1
// CHECK: arith.remf %{{.*}} : vector<32xf32>
gpu.func @numbers_of_parts(%m: memref<48xf32>, %n: memref<72xf32>, %k: memref<512xf32>) kernel {
  %c0 = arith.constant 0 : index
  %x = vector.load %m[%c0] : memref<48xf32>, vector<48xf32>
  %y = vector.load %n[%c0] : memref<72xf32>, vector<72xf32>
  %z = vector.load %k[%c0] : memref<512xf32>, vector<512xf32>
  %a = arith.remf %x, %x : vector<48xf32>
  %b = arith.remf %y, %y : vector<72xf32>
  %c = arith.remf %z, %z : vector<512xf32>
  vector.store %a, %m[%c0] : memref<48xf32>, vector<48xf32>
  vector.store %b, %n[%c0] : memref<72xf32>, vector<72xf32>
  vector.store %c, %k[%c0] : memref<512xf32>, vector<512xf32>
  gpu.return
}
}
