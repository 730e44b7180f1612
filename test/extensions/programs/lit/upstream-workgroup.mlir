// A workgroup kernel of upstream's dialect runs with the subgroups of its layouts, whatever its launches give.
// RUN: xegpu-run %s -e main | FileCheck %s
// RUN: xegpu-run %s -e main 2>&1 | FileCheck %s --check-prefix=WARNING
// WARNING: upstream-workgroup.mlir:[[# @LINE + 28]]:5: warning: kernel 'copy' has layouts for 4 subgroups, but is launched with 3 threads; it runs with 4 subgroups
// WARNING-NOT: warning
// CHECK: sizes = [32, 16]
// CHECK-NEXT: {{^\[\[}}3,   3,
// CHECK-COUNT-30: {{^}} [3,   3,

#layout = #xegpu.layout<sg_layout = [4, 1], sg_data = [8, 16]>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @copy(%a: memref<32x16xf32>, %b: memref<32x16xf32>) kernel {
      %from = xegpu.create_nd_tdesc %a : memref<32x16xf32> -> !xegpu.tensor_desc<32x16xf32, #layout>
      %v = xegpu.load_nd %from[0, 0] {layout = #layout} : !xegpu.tensor_desc<32x16xf32, #layout> -> vector<32x16xf32>
      %to = xegpu.create_nd_tdesc %b : memref<32x16xf32> -> !xegpu.tensor_desc<32x16xf32, #layout>
      xegpu.store_nd %v, %to[0, 0] {layout = #layout} : vector<32x16xf32>, !xegpu.tensor_desc<32x16xf32, #layout>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %three = arith.constant 3.0 : f32
    %a = gpu.alloc host_shared () : memref<32x16xf32>
    %b = gpu.alloc host_shared () : memref<32x16xf32>
    gpu.memset %a, %three : memref<32x16xf32>, f32
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%a : memref<32x16xf32>, %b : memref<32x16xf32>)
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%a : memref<32x16xf32>, %b : memref<32x16xf32>)
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c3, %c1, %c1) args(%a : memref<32x16xf32>, %b : memref<32x16xf32>)
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c3, %c1, %c1) args(%a : memref<32x16xf32>, %b : memref<32x16xf32>)
    %cast = memref.cast %b : memref<32x16xf32> to memref<*xf32>
    call @printMemrefF32(%cast) : (memref<*xf32>) -> ()
    return
  }
  func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
}
