// The ops and forms that no dumped kernel has, as Triton prints them.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt --mlir-print-op-generic %s | xegpu-opt | FileCheck %s

// CHECK-LABEL: tt.func public @k(%{{.*}}: !tt.ptr<f32>, %{{.*}}: !tt.ptr<i8, "constant">, %{{.*}}: !tt.tensordesc<1x16xui8>, %{{.*}}: tensor<16x16x2xf32>, %{{.*}}: tensor<1xi32>) {
tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<i8, "constant">, %d: !tt.tensordesc<1x16xui8>,
                  %x: tensor<16x16x2xf32>, %one: tensor<1xi32>) {
  // CHECK: %[[S:.*]]:2 = tt.split %{{.*}} : tensor<16x16x2xf32> -> tensor<16x16xf32>
  %a, %b = tt.split %x : tensor<16x16x2xf32> -> tensor<16x16xf32>
  // A conversion that loses no bits may say how it rounds.
  // CHECK: tt.fp_to_fp %{{.*}}, rounding = rtne : tensor<16x16xf32> -> tensor<16x16xf64>
  %wide = tt.fp_to_fp %a, rounding = rtne : tensor<16x16xf32> -> tensor<16x16xf64>
  // CHECK: tt.approx_divf %[[S]]#0, %[[S]]#1 : tensor<16x16xf32>
  %0 = tt.approx_divf %a, %b : tensor<16x16xf32>
  // CHECK: tt.cat %{{.*}}, %{{.*}} : tensor<16x16xf32> -> tensor<32x16xf32>
  %1 = tt.cat %a, %b : tensor<16x16xf32> -> tensor<32x16xf32>
  // CHECK: tt.unsplat %{{.*}} : tensor<1xi32>
  %n = tt.unsplat %one : tensor<1xi32>
  // CHECK: tt.reshape %{{.*}} allow_reorder efficient_layout : tensor<16x16xf32> -> tensor<256xf32>
  %2 = tt.reshape %a allow_reorder efficient_layout : tensor<16x16xf32> -> tensor<256xf32>
  // CHECK: tt.gather %{{.*}}[%{{.*}}] {axis = 0 : i32, efficient_layout} : (tensor<256xf32>, tensor<1xi32>) -> tensor<1xf32>
  %3 = tt.gather %2[%one] {axis = 0 : i32, efficient_layout} : (tensor<256xf32>, tensor<1xi32>) -> tensor<1xf32>
  // CHECK: tt.store %{{.*}}, %{{.*}} {ignore_cta} : !tt.ptr<f32>
  %4 = tt.unsplat %3 : tensor<1xf32>
  tt.store %p, %4 {ignore_cta} : !tt.ptr<f32>
  // CHECK: tt.print "a\\b\22" {hex = false, isSigned = array<i32>}
  tt.print "a\\b\22" {hex = false, isSigned = array<i32>}
  // CHECK: %{{.*}}:2 = tt.elementwise_inline_asm "a" {constraints = "=r,=r,r", packed_element = 1 : i32, pure = true} %{{.*}} : tensor<1xi32> -> tensor<1xi32>, tensor<1xf32>
  %5:2 = tt.elementwise_inline_asm "a" {constraints = "=r,=r,r", packed_element = 1 : i32, pure = true} %one : tensor<1xi32> -> tensor<1xi32>, tensor<1xf32>
  // CHECK: ttg.barrier local|global_read
  ttg.barrier local|global_read
  // CHECK: ttg.barrier none
  ttg.barrier none
  // CHECK: %{{.*}} = tt.call @f(%{{.*}}) : (i32) -> i32
  %6 = tt.call @f(%n) : (i32) -> i32
  %true = arith.constant true
  // CHECK: scf.if
  scf.if %true {
    // CHECK: tt.call @f(%{{.*}}) {tt.x} : (i32) -> i32
    %7 = tt.call @f(%n) {tt.x} : (i32) -> i32
  }
  // Ends of regions and calls in generic form.
  // CHECK: tt.reduce.return %{{.*}}, %{{.*}} : i32, f32
  %8:2 = "tt.reduce"(%one, %5#1) <{axis = 0 : i32}> ({
  ^bb0(%c: i32, %e: f32, %g: i32, %h: f32):
    "tt.reduce.return"(%c, %h) : (i32, f32) -> ()
  }) : (tensor<1xi32>, tensor<1xf32>) -> (i32, f32)
  // CHECK: tt.call @f(%{{.*}}) : (i32) -> i32
  %9 = "tt.call"(%8#0) <{callee = @f}> : (i32) -> i32
  // CHECK: tt.return
  "tt.return"() : () -> ()
}

// A private function, a declaration, and a function that is none of Triton's.

// CHECK: tt.func private @f(%{{.*}}: i32) -> i32 attributes {noinline = true} {
// CHECK-NEXT: tt.return %{{.*}} : i32
tt.func private @f(%x: i32) -> i32 attributes {noinline = true} {
  tt.return %x : i32
}
// CHECK: tt.func private @g(i32, i32) -> (i32, f32) attributes {tt.x}
tt.func private @g(i32, i32) -> (i32, f32) attributes {tt.x}
// CHECK: func.func @h() {
// CHECK-NEXT: return
func.func @h() { return }
