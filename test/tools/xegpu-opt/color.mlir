// Diagnostics and IR are coloured at a terminal, or by --color.

// RUN: xegpu-opt %s --color=always | FileCheck %s --check-prefix=IR
// RUN: xegpu-opt %s --color=always -o %t && FileCheck %s --check-prefix=PLAIN < %t
// RUN: xegpu-opt %s | FileCheck %s --check-prefix=PLAIN
// RUN: not xegpu-opt --color=always %S/Inputs/bad.mlir 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not xegpu-opt %S/Inputs/bad.mlir 2>&1 | FileCheck %s --check-prefix=PLAIN-ERROR
// RUN: not xegpu-opt --color=sometimes %s 2>&1 | FileCheck %s --check-prefix=CHOICE

gpu.module @kernels {
  gpu.func @nothing() kernel {
    gpu.return
  }
}

// IR: {{.}}[36mgpu.func{{.}}[39
// PLAIN: {{^}}  gpu.module @kernels {
// ERROR: {{.}}[1;31merror:{{.}}[0m {{.}}[1m
// ERROR: {{.}}[1;32m^{{.}}[0m
// PLAIN-ERROR: bad.mlir:1:10: error:
// CHOICE: argument --color: invalid choice: 'sometimes'
