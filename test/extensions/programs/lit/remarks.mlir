// Remarks on the kernels of a program are printed at their launch: an update without a message becomes a loop, others do not.
// RUN: xegpu-run %s -e main --remarks 2>&1 | FileCheck %s
// RUN: xegpu-run %s -e main 2>&1 | FileCheck %s --check-prefix=SILENT --allow-empty

// CHECK: remarks.mlir:16:{{[0-9]+}}: remark: 'xegpu.atomic_rmw' op becomes a compare-and-swap loop: there is no atomic message for mulf of f32
// CHECK-NOT: becomes a compare-and-swap loop
// SILENT-NOT: remark

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @update(%m: memref<16xf32>) kernel {
      %all = arith.constant dense<true> : vector<16xi1>
      %places = vector.step : vector<16xindex>
      %two = arith.constant dense<2.0> : vector<16xf32>
      %d = xegpu.create_tdesc %m, %places {mode = vc} : memref<16xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<scattered = true>>
      %a = xegpu.atomic_rmw mulf, %two, %d, %all {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<scattered = true>>, vector<16xi1> -> vector<16xf32>
      %b = xegpu.atomic_rmw addf, %two, %d, %all {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<scattered = true>>, vector<16xi1> -> vector<16xf32>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %m = gpu.alloc host_shared () : memref<16xf32>
    gpu.launch_func @kernels::@update blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<16xf32>)
    return
  }
}
