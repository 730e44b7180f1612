// Examples first, then every option, and each pass in one line; --help-pass shows a pass's docstring and options.

// RUN: xegpu-opt --help | FileCheck %s
// RUN: xegpu-opt -h | FileCheck %s
// RUN: xegpu-opt --help-pass=xegpu-dce | FileCheck %s --check-prefix=PASS
// RUN: xegpu-opt --help-pass xegpu-dce | FileCheck %s --check-prefix=PASS
// RUN: not xegpu-opt --help-pass=xegpu-dec 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: xegpu-opt --version | FileCheck %s --check-prefix=VERSION

// CHECK: usage: xegpu-opt [OPTION...] [FILE]
// CHECK: examples:
// CHECK-NEXT: xegpu-opt kernel.mlir
// CHECK: --pass-pipeline
// CHECK: passes ('--NAME'
// CHECK: {{^}}  xegpu-dce {{ +}}Remove unused ops of our dialects.
// CHECK-NOT: becomes

// PASS: --xegpu-dce
// PASS: Remove unused ops of our dialects.
// PASS: becomes
// PASS: options:
// PASS: keep-loads=bool (default False)

// UNKNOWN: xegpu-opt: error: there is no pass 'xegpu-dec'; did you mean 'xegpu-dce'?

// VERSION: xegpu-opt {{[0-9]+\.[0-9]+}}
