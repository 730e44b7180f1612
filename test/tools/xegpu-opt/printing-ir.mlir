// RUN: xegpu-opt --cse --xegpu-dce --mlir-print-ir-after-all %s 2>&1 >/dev/null | FileCheck %s --check-prefix=AFTER
// RUN: xegpu-opt --cse --xegpu-dce --mlir-print-ir-before-all %s 2>&1 >/dev/null | FileCheck %s --check-prefix=BEFORE
// RUN: xegpu-opt --cse --xegpu-dce --mlir-print-ir-after=xegpu-dce %s 2>&1 >/dev/null | FileCheck %s --check-prefix=ONE
// RUN: xegpu-opt --cse --xegpu-dce --mlir-print-ir-before=cse %s 2>&1 >/dev/null | FileCheck %s --check-prefix=FIRST
// RUN: xegpu-opt --pass-pipeline='builtin.module(func.func(xegpu-dce))' --mlir-print-ir-after-all %s 2>&1 >/dev/null | FileCheck %s --check-prefix=NESTED
// RUN: xegpu-opt --pass-pipeline='builtin.module(func.func(xegpu-dce))' --mlir-print-ir-after-all --mlir-print-ir-module-scope %s 2>&1 >/dev/null | FileCheck %s --check-prefix=SCOPE
// RUN: xegpu-opt --cse --xegpu-dce --cse --mlir-print-ir-after-all --mlir-print-ir-after-change --verify-each=0 %s 2>&1 >/dev/null | FileCheck %s --check-prefix=CHANGE
// RUN: xegpu-opt --cse --mlir-print-ir-after-all --mlir-print-op-generic %s 2>&1 >/dev/null | FileCheck %s --check-prefix=GENERIC

// AFTER: // -----// IR Dump After cse //----- //
// AFTER: xegpu.load_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
// AFTER: // -----// IR Dump After xegpu-dce //----- //
// AFTER-NOT: xegpu.load_nd
// BEFORE: // -----// IR Dump Before cse //----- //
// BEFORE: xegpu.load_nd
// BEFORE: // -----// IR Dump Before xegpu-dce //----- //
// BEFORE: xegpu.load_nd
// ONE-NOT: IR Dump After cse
// ONE: IR Dump After xegpu-dce
// FIRST: IR Dump Before cse
// FIRST-NOT: IR Dump
// NESTED: IR Dump After xegpu-dce ('func.func' operation: @f)
// NESTED-NEXT: func.func @f
// SCOPE: IR Dump After xegpu-dce ('func.func' operation: @f)
// SCOPE-NEXT: module
// CHANGE-NOT: IR Dump After cse
// CHANGE: IR Dump After xegpu-dce
// CHANGE-NOT: IR Dump
// GENERIC: IR Dump After cse
// GENERIC: "xegpu.load_nd"(
func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  %1 = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}
