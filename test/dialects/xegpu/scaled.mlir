// Products of block-scaled matrices, and rounding to their element types.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt --mlir-print-op-generic %s | xegpu-opt | FileCheck %s

// CHECK-LABEL: func.func @dpas_mx
func.func @dpas_mx(%a: vector<8x32xf8E5M2>, %b: vector<8x16x4xf8E4M3FN>, %c: vector<8x16xf32>,
                   %p: vector<8x1xf8E8M0FNU>, %q: vector<1x16xf8E8M0FNU>) {
  // CHECK: xegpu.dpas_mx %{{.*}}, %{{.*}}, %{{.*}} scale_a = %{{.*}} scale_b = %{{.*}} {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E4M3FN>, vector<8x16xf32>, vector<8x1xf8E8M0FNU>, vector<1x16xf8E8M0FNU>) -> vector<8x16xf32>
  %0 = xegpu.dpas_mx %a, %b, %c scale_a = %p scale_b = %q {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E4M3FN>, vector<8x16xf32>, vector<8x1xf8E8M0FNU>, vector<1x16xf8E8M0FNU>) -> vector<8x16xf32>
  // Without parentheses, as LLVM had it first. The type is that of the operand that is there.
  // CHECK: xegpu.dpas_mx %{{.*}}, %{{.*}} scale_b = %{{.*}} {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E4M3FN>, vector<1x16xf8E8M0FNU>) -> vector<8x16xf32>
  %1 = xegpu.dpas_mx %a, %b scale_b = %q {mode = vc} : vector<8x32xf8E5M2>, vector<8x16x4xf8E4M3FN>, vector<1x16xf8E8M0FNU> -> vector<8x16xf32>
  // CHECK: xegpu.dpas_mx %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E4M3FN>, vector<8x16xf32>) -> vector<8x16xf32>
  %2 = xegpu.dpas_mx %a, %b, %c {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E4M3FN>, vector<8x16xf32>) -> vector<8x16xf32>
  return
}

// CHECK-LABEL: func.func @truncf
func.func @truncf(%x: vector<8x16xf16>, %y: vector<16xf32>) {
  // CHECK: xegpu.truncf %{{.*}} : vector<8x16xf16> -> vector<8x16xf8E5M2>
  %0 = xegpu.truncf %x : vector<8x16xf16> -> vector<8x16xf8E5M2>
  // CHECK: xegpu.truncf %{{.*}} : vector<16xf32> -> vector<16xf4E2M1FN>
  %1 = xegpu.truncf %y : vector<16xf32> -> vector<16xf4E2M1FN>
  return
}

// CHECK-LABEL: func.func @lane_shuffle
func.func @lane_shuffle(%x: vector<4xf16>) {
  // CHECK: xegpu.lane_shuffle %{{.*}} pack : vector<4xf16>
  %0 = xegpu.lane_shuffle %x pack : vector<4xf16>
  // CHECK: xegpu.lane_shuffle %{{.*}} unpack : vector<4xf16>
  %1 = xegpu.lane_shuffle %0 unpack : vector<4xf16>
  return
}
