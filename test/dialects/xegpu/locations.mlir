// Locations are lines and columns of the user's file, although the reader rewrites the text.

// RUN: xegpu-opt --mlir-print-debuginfo %s | FileCheck %s
// RUN: xegpu-opt --mlir-print-debuginfo %s | xegpu-opt --mlir-print-debuginfo | FileCheck %s

// CHECK: func.func @f(%{{.*}}: !xegpu.tensor_desc<8x16xf16> loc("{{.*}}locations.mlir":10:14), %{{.*}}: i1 loc("{{.*}}locations.mlir":10:52)) {
// CHECK: xegpu.load_nd {{.*}} -> vector<8x16xf16> loc(#[[LOAD:.*]])
// CHECK: xegpu.compile_hint loc(#[[FIRST:.*]])
// CHECK: xegpu.compile_hint loc(#[[SECOND:.*]])
func.func @f(%t: !xegpu.tensor_desc<8 x 16 x f16>, %c: i1) {
  %0 = xegpu.load_nd %t
    {mode = vc} : !xegpu.tensor_desc<8x16xf16>
    -> vector<8x16xf16>
  xegpu.compile_hint {hint = schedule_barrier} xegpu.compile_hint
  // CHECK: xegpu.compile_hint loc(#[[NAMED:.*]])
  xegpu.compile_hint loc("kernel.py":3:7)
  // CHECK: return loc(#[[RETURN:.*]])
  return
}
// CHECK-DAG: #[[LOAD]] = loc("{{.*}}locations.mlir":11:8)
// CHECK-DAG: #[[FIRST]] = loc("{{.*}}locations.mlir":14:3)
// CHECK-DAG: #[[SECOND]] = loc("{{.*}}locations.mlir":14:48)
// CHECK-DAG: #[[NAMED]] = loc("kernel.py":3:7)
// CHECK-DAG: #[[RETURN]] = loc("{{.*}}locations.mlir":18:3)
