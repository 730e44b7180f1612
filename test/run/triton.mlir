// TTIR of libtriton runs without Triton, with errors at the lines of the Python program.

// RUN: xegpu-run %S/../dialects/tt/dumped/add.ttir arange:f32:4 ones:f32:4 zeros:f32:4 i32:4 --print 2 | FileCheck %s
// RUN: xegpu-run --engine reference %S/../dialects/tt/dumped/add.ttir arange:f32:4 ones:f32:4 zeros:f32:4 i32:4 --print out_ptr | FileCheck %s
// RUN: not xegpu-run %S/../dialects/tt/dumped/add.ttir zeros:f32:4 zeros:f32:4 zeros:f32:4 i32:5 2>&1 | FileCheck %s --check-prefix=LOWERED
// RUN: not xegpu-run --engine reference %S/../dialects/tt/dumped/add.ttir zeros:f32:4 zeros:f32:4 zeros:f32:4 i32:5 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: xegpu-bisect %S/../dialects/tt/dumped/add.ttir rand:f32:300 rand:f32:300 zeros:f32:300 i32:300 --grid 2 | FileCheck %s --check-prefix=BISECT

// CHECK: {{2|out_ptr}} =
// CHECK-NEXT: [1. 2. 3. 4.]
// LOWERED: kernels.py:20:9: error:
// OUTSIDE: kernels.py:20:9: error: 'tt.load' op reads 4 bytes at {{.*}} reaching 4 bytes over the end of '%x_ptr', which has 16 bytes
// BISECT: no difference: {{[1-9][0-9]*}} passes that changed the kernel
