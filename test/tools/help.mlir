// RUN: xegpu-opt --help | FileCheck %s

// CHECK: usage: xegpu-opt
// CHECK: --pass-pipeline
// CHECK: --xegpu-dce
// CHECK-NEXT: Remove ops of our dialects whose results are not used.
