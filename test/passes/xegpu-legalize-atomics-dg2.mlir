// RUN: xegpu-opt %s --xegpu-legalize=target=dg2 --xegpu-dce | FileCheck %s

// An atomic update by a compare-and-swap loop is split into the lanes of this message.

!desc = !xegpu.tensor_desc<32xbf16, #xegpu.scattered>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @greatest
  gpu.func @greatest(%m: memref<64xbf16>, %x: vector<32xbf16>, %at: vector<32xindex>, %mask: vector<32xi1>) kernel {
    // CHECK-COUNT-2: xegpu.atomic_rmw maximumf, {{.*}}tensor_desc<16xbf16
    %t = xegpu.create_tdesc %m, %at {mode = vc} : memref<64xbf16>, vector<32xindex> -> !desc
    %0 = xegpu.atomic_rmw maximumf, %x, %t, %mask {mode = vc} : vector<32xbf16>, !desc, vector<32xi1> -> vector<32xbf16>
    gpu.return
  }
}
