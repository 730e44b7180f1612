// RUN: xegpu-opt %s --xegpu-to-visa='target=pvcxt' | FileCheck %s

// Stochastic rounding, by the intrinsic of Intel's vector compiler.

gpu.module @m {
  func.func private @llvm.genx.srnd.small(vector<16xf16>, vector<16xi8>) -> vector<16xf8E5M2>
  func.func private @llvm.genx.srnd(vector<32xf32>, vector<32xi32>) -> vector<32xf16>

  // Random numbers that are narrower than the source are widened.
  // CHECK-LABEL: gpu.func @to_bf8(
  // CHECK: visa.mov (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in1_ub(0,0)<1;1,0>
  // CHECK-NEXT: visa.srnd (M1_NM, 16) [[V1:%\w+]](0,0)<1> %in0(0,0)<1;1,0> [[V0]]_hf(0,0)<1;1,0>
  gpu.func @to_bf8(%x: vector<16xf16>, %random: vector<16xi8>) kernel {
    %y = func.call @llvm.genx.srnd.small(%x, %random) : (vector<16xf16>, vector<16xi8>) -> vector<16xf8E5M2>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @to_half(
  // CHECK: visa.srnd (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in1_f(0,0)<1;1,0>
  // CHECK-NEXT: visa.srnd (M1_NM, 16) [[V0]](0,16)<1> %in0(1,0)<1;1,0> %in1_f(1,0)<1;1,0>
  gpu.func @to_half(%x: vector<32xf32>, %random: vector<32xi32>) kernel {
    %y = func.call @llvm.genx.srnd(%x, %random) : (vector<32xf32>, vector<32xi32>) -> vector<32xf16>
    gpu.return
  }
}
