// Bytecode is written with locations, and read by every tool; broken bytecode is one error.

// RUN: xegpu-opt %s --emit-bytecode --verify-roundtrip -o %t.mlirbc
// RUN: xegpu-opt %t.mlirbc | FileCheck %s
// RUN: xegpu-opt %s --emit-bytecode | xegpu-translate --mlir-to-visaasm | FileCheck %s --check-prefix=VISA
// RUN: xegpu-opt %s --xegpu-to-visa --emit-bytecode -o %t.visa && xegpu-opt %t.visa | FileCheck %s --check-prefix=OPS
// RUN: not xegpu-opt %t.mlirbc --xegpu-legalize='target=none' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: head -c 200 %t.mlirbc > %t.short && not xegpu-opt %t.short 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: not xegpu-opt %s --emit-bytecode --split-input-file 2>&1 | FileCheck %s --check-prefix=SPLIT

// CHECK: xegpu.store_nd %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xf32>
// VISA: lsc_store
// OPS: visa.lsc_store
// OPTION: error: {{.*}}target
// SHORT: bytecode.mlir.tmp.short: error: attempting to parse
// SPLIT: xegpu-opt: error: --emit-bytecode writes one module; --split-input-file reads several
gpu.module @m {
  gpu.func @fill(%a: memref<64x64xf32>) kernel {
    %v = arith.constant dense<1.5> : vector<8x16xf32>
    %d = xegpu.create_nd_tdesc %a[8, 16] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %v, %d {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
