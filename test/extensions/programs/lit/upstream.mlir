// A program in upstream's dialect: the host code stays, and a launch counts lanes, 16 a subgroup.
// RUN: xegpu-run %s -e main | FileCheck %s
// RUN: xegpu-run %s -e main --engine=reference | FileCheck %s
// RUN: xegpu-run %s -e main --stats 2>&1 | FileCheck %s --check-prefix=STATS
// STATS: launch 1: kernel 'double': 4 hardware threads

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @double(%a: memref<32x16xf32>) kernel {
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %x = gpu.thread_id x
      %subgroup = arith.divui %x, %c16 : index
      %row = arith.muli %subgroup, %c8 : index
      %block = xegpu.create_nd_tdesc %a : memref<32x16xf32> -> !xegpu.tensor_desc<8x16xf32>
      %v = xegpu.load_nd %block[%row, 0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
      %w = arith.addf %v, %v : vector<8x16xf32>
      xegpu.store_nd %w, %block[%row, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %three = arith.constant 3.0 : f32
    %a = gpu.alloc host_shared () : memref<32x16xf32>
    gpu.memset %a, %three : memref<32x16xf32>, f32
    gpu.launch_func @kernels::@double blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%a : memref<32x16xf32>)
    %cast = memref.cast %a : memref<32x16xf32> to memref<*xf32>
    // CHECK: sizes = [32, 16]
    // CHECK-NEXT: {{^\[\[}}6,   6,
    // CHECK-COUNT-30: {{^}} [6,   6,
    // CHECK-NEXT: {{^}} [6,   6,
    call @printMemrefF32(%cast) : (memref<*xf32>) -> ()
    return
  }
  func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
}
