// TTIR of libtriton runs without Triton: on the reference evaluator, with errors at the lines of the Python program.

// RUN: xegpu-run %S/../dialects/tt/dumped/add.ttir arange:f32:4 ones:f32:4 zeros:f32:4 i32:4 --print out_ptr | FileCheck %s
// RUN: not xegpu-run --engine reference %S/../dialects/tt/dumped/add.ttir zeros:f32:4 zeros:f32:4 zeros:f32:4 i32:5 2>&1 | FileCheck %s --check-prefix=OUTSIDE

// CHECK: out_ptr =
// CHECK-NEXT: [1. 2. 3. 4.]
// OUTSIDE: kernels.py:20:9: error: 'tt.load' op reads 4 bytes at {{.*}} reaching 4 bytes over the end of '%x_ptr', which has 16 bytes
