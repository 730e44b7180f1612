// In a file with kernels and host code, all kernels or one are lowered, and the host code is not changed.

// RUN: xegpu-opt %s --xegpu-to-visa-pipeline='target=pvcxt' | FileCheck %s
// RUN: xegpu-opt %s --xegpu-to-visa-pipeline='target=pvcxt' | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s --xegpu-to-visa-pipeline='kernel=second' | FileCheck %s --check-prefix=ONE
// RUN: xegpu-opt %s --xegpu-to-visa-pipeline='kernel=second' | xegpu-translate --mlir-to-visaasm --kernel second \
// RUN:   | FileCheck %s --check-prefix=ASM
// RUN: xegpu-translate --mlir-to-visaasm --kernel second %s | FileCheck %s --check-prefix=ASM
// RUN: xegpu-translate --mlir-to-visaasm %s | FileCheck %s --check-prefix=BOTH
// RUN: xegpu-translate --mlir-to-visaasm --line-comments --kernel first %s | FileCheck %s --check-prefix=LINES
// RUN: xegpu-run %s --kernel first zeros:i32:4 --grid 4 --print 0 | FileCheck %s --check-prefix=RESULT

// CHECK: module attributes {gpu.container_module} {
// CHECK: func.func private @print(memref<4xi32>)
// CHECK: func.func @main() {
// CHECK: gpu.launch_func @kernels::@first blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1)
// CHECK: gpu.launch_func @kernels::@second
// CHECK: call @print
// CHECK: gpu.func @first(%arg0: memref<4xi32>) kernel attributes {{.*}}visa.registers = 128
// CHECK-NOT: arith
// CHECK: visa.lsc_store
// CHECK: gpu.func @second(%arg0: memref<4xi32>) kernel attributes {{.*}}visa.registers = 128
// CHECK-NOT: arith
// CHECK: visa.lsc_atomic_iadd

// ONE: func.func @main
// ONE: gpu.func @first(%arg0: memref<4xi32>) kernel {
// ONE: memref.store
// ONE: gpu.func @second(%arg0: memref<4xi32>) kernel attributes {
// ONE-NOT: memref
// ONE: visa.lsc_atomic_iadd

// ASM-NOT: .kernel "first"
// ASM: .kernel "second"
// BOTH: .kernel "first"
// BOTH: .kernel "second"
// LINES: // host.mlir:56
// RESULT: [0 1 2 3]

module attributes {gpu.container_module} {
  func.func private @print(memref<4xi32>)
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %m = gpu.alloc () : memref<4xi32>
    gpu.launch_func @kernels::@first blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<4xi32>)
    gpu.launch_func @kernels::@second blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<4xi32>)
    func.call @print(%m) : (memref<4xi32>) -> ()
    gpu.dealloc %m : memref<4xi32>
    return
  }
  gpu.module @kernels {
    gpu.func @first(%m: memref<4xi32>) kernel {
      %x = gpu.block_id x
      %i = arith.index_cast %x : index to i32
      memref.store %i, %m[%x] : memref<4xi32>
      gpu.return
    }
    gpu.func @second(%m: memref<4xi32>) kernel {
      %places = vector.step : vector<4xindex>
      %all = arith.constant dense<true> : vector<4xi1>
      %ones = arith.constant dense<1> : vector<4xi32>
      %d = xegpu.create_tdesc %m, %places {mode = vc}
        : memref<4xi32>, vector<4xindex> -> !xegpu.tensor_desc<4xi32, #xegpu.scattered>
      %old = xegpu.atomic_rmw addi, %ones, %d, %all {mode = vc}
        : vector<4xi32>, !xegpu.tensor_desc<4xi32, #xegpu.scattered>, vector<4xi1> -> vector<4xi32>
      gpu.return
    }
  }
}
