// RUN: xegpu-opt %s --xegpu-verify-target=target=cri --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @scaled(%a: vector<4x32xf8E5M2>, %b: vector<8x16x4xf8E5M2>, %long: vector<8x64xf8E5M2>,
                   %deep: vector<16x16x4xf8E5M2>, %wide: vector<8x32x4xf8E5M2>, %fit: vector<8x32xf8E5M2>,
                   %x: vector<16xf16>) kernel {
    // expected-error @+2 {{has 4 rows, but bdpas of bf8 x bf8 has 8}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %0 = xegpu.dpas_mx %a, %b {mode = vc} : (vector<4x32xf8E5M2>, vector<8x16x4xf8E5M2>) -> vector<4x16xf32>
    // expected-error @+2 {{has 64 elements along K, but bdpas of bf8 x bf8 has 32}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %1 = xegpu.dpas_mx %long, %deep {mode = vc} : (vector<8x64xf8E5M2>, vector<16x16x4xf8E5M2>) -> vector<8x16xf32>
    // expected-error @+2 {{has 32 columns, but bdpas of bf8 x bf8 has 16}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %2 = xegpu.dpas_mx %fit, %wide {mode = vc} : (vector<8x32xf8E5M2>, vector<8x32x4xf8E5M2>) -> vector<8x32xf32>
    %3 = xegpu.dpas_mx %fit, %b {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E5M2>) -> vector<8x16xf32>
    // expected-error @+2 {{to f8E5M2 has no vISA instruction}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %4 = xegpu.truncf %x : vector<16xf16> -> vector<16xf8E5M2>
    gpu.return
  }
}
