// A pass that fails leaves a file with the module and the pipeline, which runs again; one that succeeds leaves none.

// RUN: rm -f %t.r && not xegpu-opt %s --cse --xegpu-to-visa --mlir-pass-pipeline-crash-reproducer=%t.r 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=FILE < %t.r
// RUN: not xegpu-opt --run-reproducer %t.r 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: not xegpu-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(cse)),xegpu-to-visa)' --mlir-pass-pipeline-crash-reproducer=%t.l --mlir-pass-pipeline-local-reproducer 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOCAL < %t.l
// RUN: rm -f %t.n && xegpu-opt %s --cse --mlir-pass-pipeline-crash-reproducer=%t.n && not ls %t.n
// RUN: not xegpu-opt --run-reproducer %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not xegpu-opt --run-reproducer --cse %t.r 2>&1 | FileCheck %s --check-prefix=BOTH

// CHECK: reproducer.mlir:27:10: error: 'func.call' op calls undefined function 'h'
// CHECK: note: reproducer generated at '{{.*}}'
// FILE: func.call @h() : () -> i32
// FILE: {-#
// FILE: mlir_reproducer: {
// FILE-NEXT: pipeline: "builtin.module(cse,xegpu-to-visa)",
// FILE-NEXT: disable_threading: true,
// FILE-NEXT: verify_each: true
// AGAIN: reproducer.mlir:{{.*}}: error: 'func.call' op calls undefined function 'h'
// LOCAL: pipeline: "builtin.module(xegpu-to-visa)",
// NONE: reproducer.mlir:1:1: error: is not a reproducer
// BOTH: xegpu-opt: error: --run-reproducer runs the pipeline of its input; no other passes can be given
gpu.module @m {
  func.func private @h() -> i32
  gpu.func @f() kernel {
    %c = func.call @h() : () -> i32
    gpu.return
  }
}
