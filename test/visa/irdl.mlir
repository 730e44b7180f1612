// Stock mlir-opt loads the dialect's IRDL definition, and reads and checks generic form with it.

// REQUIRES: mlir-opt
// RUN: xegpu-opt --dump-irdl=visa -o %t.irdl.mlir
// RUN: xegpu-opt --mlir-print-op-generic %S/arithmetic.mlir -o %t.mlir
// RUN: %mlir-opt --irdl-file=%t.irdl.mlir --canonicalize --cse %t.mlir | xegpu-opt | FileCheck %S/arithmetic.mlir
// RUN: sed 's/exec_size = 16/exec_size = 17/' %t.mlir > %t.size.mlir
// RUN: not %mlir-opt --irdl-file=%t.irdl.mlir %t.size.mlir 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: sed 's/mask = "M5"/mask = "M9"/' %t.mlir > %t.mask.mlir
// RUN: not %mlir-opt --irdl-file=%t.irdl.mlir %t.mask.mlir 2>&1 | FileCheck %s --check-prefix=MASK
// RUN: sed 's/condition = "lt"/condition = "lo"/' %t.mlir > %t.word.mlir
// RUN: not %mlir-opt --irdl-file=%t.irdl.mlir %t.word.mlir 2>&1 | FileCheck %s --check-prefix=WORD

// SIZE: error: '17 : i64' does not satisfy the constraint
// MASK: error: '"M9"' does not satisfy the constraint
// WORD: error: '"lo"' does not satisfy the constraint
