// RUN: xegpu-opt --mlir-print-op-generic %s | FileCheck %s --check-prefix=GENERIC
// RUN: xegpu-opt --xegpu-print-defaults %s | FileCheck %s --check-prefix=DEFAULTS
// RUN: xegpu-opt --xegpu-print-defaults %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt --mlir-timing %s --cse 2>&1 >/dev/null | FileCheck %s --check-prefix=TIMING
// RUN: xegpu-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: xegpu-opt --dump-irdl=xegpu | FileCheck %s --check-prefix=IRDL

// GENERIC: "xegpu.load_nd"(%{{.*}}) {mode = #xegpu.mode<"vc">} : (!xegpu.tensor_desc<array<i64: 8, 16>, f16, #xegpu.tdesc_attr<#xegpu.memory_scope<"global">, 1 : i64, true, false, unit, false, false>>) -> vector<8x16xf16>
// DEFAULTS: func.func @f(%{{.*}}: !xegpu.tensor_desc<8x16xf16, #xegpu.tdesc_attr<memory_scope = global, array_length = 1, boundary_check = true, message = false, clipped = false>>)
// DEFAULTS: xegpu.prefetch_nd %{{.*}} {mode = simt} :
// DEFAULTS: xegpu.compile_hint {hint = schedule_barrier}
// CHECK: xegpu.prefetch_nd %{{.*}} : !xegpu.tensor_desc<8x16xf16>
// CHECK: xegpu.compile_hint{{$}}
// TIMING: Execution time report
// TIMING: Total Execution Time: {{[0-9.]+}} seconds
// TIMING: Parser
// TIMING: cse
// TIMING: Output
// TIMING: Total
// DIALECTS: Available Dialects: {{.*}}arith, {{.*}}xegpu
// IRDL: irdl.dialect @xegpu
// IRDL: irdl.operation @load_nd
func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  %1 = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  xegpu.prefetch_nd %t : !xegpu.tensor_desc<8x16xf16>
  xegpu.compile_hint
  return
}
