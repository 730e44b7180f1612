// Stock mlir-opt loads the dialect's IRDL definition, and reads, transforms and checks our generic form with it.

// REQUIRES: mlir-opt
// RUN: xegpu-opt --dump-irdl=xegpu -o %t.irdl.mlir
// RUN: xegpu-opt --mlir-print-op-generic %examples/gemm.mlir -o %t.mlir
// RUN: %mlir-opt --irdl-file=%t.irdl.mlir --canonicalize --cse %t.mlir | xegpu-opt -o %t.stock.mlir
// RUN: xegpu-opt --canonicalize --cse %examples/gemm.mlir -o %t.ours.mlir
// RUN: diff %t.stock.mlir %t.ours.mlir
// RUN: sed 's/"vc"/"vcc"/' %t.mlir > %t.bad.mlir
// RUN: not %mlir-opt --irdl-file=%t.irdl.mlir %t.bad.mlir 2>&1 | FileCheck %s

// CHECK: error: '"vcc"' does not satisfy the constraint
