// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s
// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc max-bytes=2147418112 max-index=1073741824' | FileCheck %s --check-prefix=SMALL
// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc max-grid=0' | FileCheck %s --check-prefix=GRID

// An index has 64 bits, and 32 in registers if its range fits.

gpu.module @m {
  // The ranges of arguments follow from the limits of launches only.
  // CHECK-LABEL: gpu.func @arguments(
  // CHECK: visa.decl "in0_size0", q x 1
  // CHECK-NEXT: visa.decl "in1", q x 1
  // SMALL-LABEL: gpu.func @arguments(
  // SMALL: visa.limits = {bytes = 2147418112 : i64, grid = 1048576 : i64, index = 1073741824 : i64}
  // SMALL: visa.decl "in0_size0", d x 1
  // SMALL-NEXT: visa.decl "in1", d x 1
  gpu.func @arguments(%m: memref<?xi8>, %i: index) kernel {
    %x = memref.load %m[%i] : memref<?xi8>
    memref.store %x, %m[%i] : memref<?xi8>
    gpu.return
  }

  // A workgroup's id has 32 bits, as have products of it that fit; others have 64.
  // CHECK-LABEL: gpu.func @places(
  // CHECK: visa.mov (M1_NM, 1) [[X:%\w+]](0,0)<1> %group_id_x
  // CHECK-NEXT: visa.shl (M1_NM, 1) [[FITS:%\w+]](0,0)<1> [[X]](0,0)<0;1,0> 0xa:d
  // CHECK-NEXT: visa.mul (M1_NM, 1) {{%\w+}}(0,0)<1> [[X]]_ud(0,0)<0;1,0> 0x2000:ud
  // GRID-LABEL: gpu.func @places(
  // GRID: visa.decl {{.*}}, q x 1
  // GRID: visa.shl (M1_NM, 1) {{.*}} 0xa:uw
  gpu.func @places(%out: memref<4xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1024 = arith.constant 1024 : index
    %c8192 = arith.constant 8192 : index
    %x = gpu.block_id x
    %fits = arith.muli %x, %c1024 : index
    %far = arith.muli %x, %c8192 : index
    %a = arith.index_cast %fits : index to i64
    %b = arith.index_cast %far : index to i64
    memref.store %a, %out[%c0] : memref<4xi64>
    memref.store %b, %out[%c1] : memref<4xi64>
    gpu.return
  }

  // A value that grows by a step in each iteration fits if its final value does.
  // CHECK-LABEL: gpu.func @loop(
  // CHECK: visa.add (M1_NM, 1) [[AT:%\w+]](0,0)<1> [[AT]](0,0)<0;1,0> 0x1000:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[K:%\w+]](0,0)<1> [[K]](0,0)<0;1,0> 0x10:d
  gpu.func @loop(%out: memref<1xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c4096 = arith.constant 4096 : index
    %last = scf.for %k = %c0 to %c4096 step %c16 iter_args(%at = %c0) -> index {
      %next = arith.addi %at, %c4096 : index
      scf.yield %next : index
    }
    %found = arith.index_cast %last : index to i64
    memref.store %found, %out[%c0] : memref<1xi64>
    gpu.return
  }
}
