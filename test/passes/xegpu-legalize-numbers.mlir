// Arithmetic of types for which the target has no instructions.

// RUN: xegpu-opt %s --xegpu-legalize=target=pvc | FileCheck %s
// RUN: xegpu-opt %s --xegpu-legalize=target=pvc --xegpu-verify-target=target=pvc -o /dev/null

gpu.module @m {
  // CHECK-LABEL: gpu.func @sum
  // CHECK-SAME: %[[A:.*]]: vector<16xbf16>, %[[B:.*]]: vector<16xbf16>
  // CHECK: %[[WA:.*]] = arith.extf %[[A]] : vector<16xbf16> to vector<16xf32>
  // CHECK: %[[WB:.*]] = arith.extf %[[B]] : vector<16xbf16> to vector<16xf32>
  // CHECK: %[[S:.*]] = arith.addf %[[WA]], %[[WB]] : vector<16xf32>
  // CHECK: arith.truncf %[[S]] : vector<16xf32> to vector<16xbf16>
  gpu.func @sum(%a: vector<16xbf16>, %b: vector<16xbf16>) kernel {
    %0 = arith.addf %a, %b : vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @bytes
  // CHECK: arith.mulf %{{.*}}, %{{.*}} : vector<16xf16>
  // CHECK: arith.truncf %{{.*}} : vector<16xf16> to vector<16xf8E5M2>
  gpu.func @bytes(%a: vector<16xf8E5M2>) kernel {
    %0 = arith.mulf %a, %a : vector<16xf8E5M2>
    gpu.return
  }

  // A sum is rounded once, at its end.
  // CHECK-LABEL: gpu.func @reduction
  // CHECK: %[[W:.*]] = arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
  // CHECK: %[[R:.*]] = vector.reduction <add>, %[[W]] : vector<16xf32> into f32
  // CHECK: arith.truncf %[[R]] : f32 to bf16
  gpu.func @reduction(%a: vector<16xbf16>) kernel {
    %0 = vector.reduction <add>, %a : vector<16xbf16> into bf16
    gpu.return
  }

  // Rounded to odd first: the last rounding then is as if from the exact value.
  // CHECK-LABEL: gpu.func @truncation
  // CHECK: %[[NEAR:.*]] = arith.truncf %[[X:.*]] : f32 to f16
  // CHECK: %[[BACK:.*]] = arith.extf %[[NEAR]] : f16 to f32
  // CHECK: %[[REST:.*]] = arith.subf %[[X]], %[[BACK]] : f32
  // CHECK: arith.cmpf one, %[[REST]], %{{.*}} : f32
  // CHECK: arith.bitcast %{{.*}} : i16 to f16
  // CHECK: arith.truncf %{{.*}} : f16 to f8E5M2
  gpu.func @truncation(%x: f32) kernel {
    %0 = arith.truncf %x : f32 to f8E5M2
    gpu.return
  }

  // The product is exact in f64.
  // CHECK-LABEL: gpu.func @fma
  // CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<16xf64>
  // CHECK: arith.addf %[[P]], %{{.*}} : vector<16xf64>
  // CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
  gpu.func @fma(%a: vector<16xbf16>) kernel {
    %0 = vector.fma %a, %a, %a : vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @native
  // CHECK-NEXT: arith.addf %{{.*}} : vector<16xf16>
  // CHECK-NEXT: arith.truncf %{{.*}} : vector<16xf16> to vector<16xf8E5M2>
  // CHECK-NEXT: gpu.return
  gpu.func @native(%a: vector<16xf16>) kernel {
    %0 = arith.addf %a, %a : vector<16xf16>
    %1 = arith.truncf %0 : vector<16xf16> to vector<16xf8E5M2>
    gpu.return
  }
}
