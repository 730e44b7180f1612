// A file or standard input is read, and the output is written only if all went well.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt < %s | FileCheck %s
// RUN: xegpu-opt - < %s | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: xegpu-opt %s -o %t/out.mlir
// RUN: FileCheck %s < %t/out.mlir
// RUN: xegpu-opt -o=%t/equals.mlir %s && FileCheck %s < %t/equals.mlir
// RUN: echo precious > %t/kept.mlir
// RUN: echo "xegpu.nothing" | not xegpu-opt -o %t/kept.mlir 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: FileCheck %s --check-prefix=KEPT < %t/kept.mlir
// RUN: not xegpu-opt %s -o %t/no/such/folder.mlir 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not xegpu-opt %t/missing.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not xegpu-opt %t 2>&1 | FileCheck %s --check-prefix=DIRECTORY

// CHECK: func.func private @f(!xegpu.nbarrier)
func.func private @f(!xegpu.nbarrier)

// BAD: <stdin>:1:1: error: unknown operation 'xegpu.nothing'
// KEPT: precious
// FOLDER: xegpu-opt: error: cannot write output file '{{.*}}folder.mlir': No such file or directory
// MISSING: xegpu-opt: error: cannot open input file '{{.*}}missing.mlir': No such file or directory
// DIRECTORY: xegpu-opt: error: cannot open input file '{{.*}}': Is a directory
