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

// RUN: xegpu-opt --help-pass=canonicalize | FileCheck %s --check-prefix=MLIR
// RUN: xegpu-opt --help-pass=cse | FileCheck %s --check-prefix=CSE
// RUN: not xegpu-opt --help-pass=canonicalise 2>&1 | FileCheck %s --check-prefix=NEAR
// RUN: not xegpu-opt --help-pass='cse)x' 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not xegpu-opt --convert-linalg-to-looops %s 2>&1 | FileCheck %s --check-prefix=FLAG
// RUN: xegpu-opt --list-passes | FileCheck %s --check-prefix=LIST

// MLIR: --canonicalize
// MLIR: A pass of MLIR: https://mlir.llvm.org/docs/Passes/#-canonicalize
// MLIR: options and defaults:
// MLIR-NEXT: max-iterations=10
// CSE: It has no options.
// NEAR: xegpu-opt: error: there is no pass 'canonicalise'; did you mean 'canonicalize'?
// TEXT: xegpu-opt: error: there is no pass 'cse)x'
// FLAG: unknown pass 'convert-linalg-to-looops'; did you mean 'convert-linalg-to-loops'?
// LIST: {{^}}xegpu-dce{{$}}
// LIST: {{^}}canonicalize{{$}}
// LIST-NOT: xegpu
