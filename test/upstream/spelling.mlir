// Kernels in upstream's spelling are read without a flag, and printed in the same spelling.
// RUN: xegpu-opt %s --verify-roundtrip | FileCheck %s
// RUN: xegpu-opt %s --canonicalize | FileCheck %s
// RUN: xegpu-opt %s --emit-bytecode | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s --xegpu-spelling=upstream | FileCheck %s
// RUN: xegpu-opt %s --xegpu-spelling=rfc | FileCheck %s --check-prefix=RFC
// RUN: xegpu-opt %s --xegpu-dce | FileCheck %s --check-prefix=RFC
// RUN: xegpu-opt %s --xegpu-spelling=rfc | xegpu-opt --xegpu-spelling=upstream | FileCheck %s --check-prefix=BACK
// RUN: xegpu-opt %s --xegpu-to-visa-pipeline=target=pvc | FileCheck %s --check-prefix=VISA
// RUN: xegpu-run %s arange:f32:8x16 zeros:f32:8x16 --block 16 --print 1 | FileCheck %s --check-prefix=SUM
// RUN: xegpu-run %s arange:f32:8x16 zeros:f32:8x16 --block 16 --print 1 --engine=reference | FileCheck %s --check-prefix=SUM
// RUN: xegpu-bisect %s arange:f32:8x16 zeros:f32:8x16 | FileCheck %s --check-prefix=SAME
// RUN: xegpu-translate %s --mlir-to-visaasm | FileCheck %s --check-prefix=ASM

// SUM: {{\[\[}}  0.   2.   4.
// SAME: no difference
// ASM: lsc_load_block2d
// VISA: visa.lsc_load_block2d
// RFC-NOT: block_tdesc_attr

!block = !xegpu.tensor_desc<8x16xf32, #xegpu.block_tdesc_attr<boundary_check = false>>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @doubled
  gpu.func @doubled(%a: memref<8x16xf32>, %b: memref<8x16xf32>) kernel {
    // CHECK: xegpu.create_nd_tdesc %{{.*}} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32, #xegpu.block_tdesc_attr<boundary_check = false>>
    // RFC: xegpu.create_nd_tdesc %{{.*}}[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32, #xegpu.tdesc_attr<boundary_check = false>>
    %d = xegpu.create_nd_tdesc %a : memref<8x16xf32> -> !block
    // CHECK: xegpu.load_nd %{{.*}}[0, 0] <{l1_hint = #xegpu.cache_hint<cached>}> :
    // RFC: xegpu.load_nd %{{.*}} {mode = vc, l1_hint = cached} :
    // BACK: xegpu.load_nd %{{.*}}[0, 0] <{l1_hint = #xegpu.cache_hint<cached>}> :
    %v = xegpu.load_nd %d[0, 0] <{l1_hint = #xegpu.cache_hint<cached>}> : !block -> vector<8x16xf32>
    %w = arith.addf %v, %v : vector<8x16xf32>
    %e = xegpu.create_nd_tdesc %b : memref<8x16xf32> -> !block
    // CHECK: xegpu.store_nd %{{.*}}, %{{.*}}[0, 0] : vector<8x16xf32>,
    xegpu.store_nd %w, %e[0, 0] : vector<8x16xf32>, !block
    gpu.return
  }
}
