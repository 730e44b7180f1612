// Every option, and each pass with its docstring and options.

// RUN: xegpu-opt --help | FileCheck %s
// RUN: xegpu-opt -h | FileCheck %s
// RUN: xegpu-opt --version | FileCheck %s --check-prefix=VERSION

// CHECK: usage: xegpu-opt
// CHECK: --pass-pipeline
// CHECK: --xegpu-dce
// CHECK-NEXT: Remove ops of our dialects whose results are not used.
// CHECK: becomes
// CHECK: keep-loads: bool = False
// VERSION: xegpu-opt {{[0-9]+\.[0-9]+}}
