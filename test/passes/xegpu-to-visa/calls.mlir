// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Calls are inlined, calls of calls too.

gpu.module @m {
  func.func private @llvm.genx.srnd.small(vector<16xf16>, vector<16xi8>) -> vector<16xf8E5M2>
  func.func private @llvm.genx.srnd(vector<16xf32>, vector<16xi32>) -> vector<16xf16>
  func.func @square(%x: vector<16xf32>) -> vector<16xf32> {
    %r = arith.mulf %x, %x : vector<16xf32>
    return %r : vector<16xf32>
  }
  func.func @fourth(%x: vector<16xf32>) -> vector<16xf32> {
    %y = func.call @square(%x) : (vector<16xf32>) -> vector<16xf32>
    %z = func.call @square(%y) : (vector<16xf32>) -> vector<16xf32>
    return %z : vector<16xf32>
  }

  // CHECK-LABEL: gpu.func @inlined(
  // CHECK: visa.mul (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<1;1,0> [[V0]](0,0)<1;1,0>
  gpu.func @inlined(%x: vector<16xf32>) kernel {
    %y = func.call @fourth(%x) : (vector<16xf32>) -> vector<16xf32>
    gpu.return
  }
}
