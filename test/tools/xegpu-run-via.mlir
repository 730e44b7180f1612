// REQUIRES: mlir-opt
// RUN: xegpu-run %s randn:f16:16x16:seed=1 zeros:f32:16x16 --grid 2 -o 1=%t.ours.npy
// RUN: xegpu-run %s --via=upstream randn:f16:16x16:seed=1 zeros:f32:16x16 --grid 2 -o 1=%t.theirs.npy
// RUN: cmp %t.ours.npy %t.theirs.npy
// RUN: xegpu-run %s --via=upstream ones:f16:16x16 zeros:f32:16x16 --grid 2 --print 1 | FileCheck %s
// RUN: xegpu-opt %s --via=upstream | FileCheck %s --check-prefix=IR
// RUN: xegpu-opt %s --via=upstream --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC
// RUN: not xegpu-run %s --via=upstream -e main 2>&1 | FileCheck %s --check-prefix=ENTRY

// A kernel of subgroups becomes one of work items, of which --block is a subgroup's by default.
// CHECK: 1 =
// CHECK-NEXT: {{\[\[}}2. 2. 2.
// IR: gpu.func @twice(%{{.*}}: memref<16x16xf16>, %{{.*}}: memref<16x16xf32>) kernel attributes {xegpu.exact_addresses, xegpu.subgroup_size = 16 : i32}
// IR: xegpu.load_nd %{{.*}} -> vector<8x1xi16>
// LOC: loc("{{.*}}xegpu-run-via.mlir":{{[0-9]+}}:{{[0-9]+}})
// ENTRY: error: there is no host function 'main'
gpu.module @kernels {
  gpu.func @twice(%a: memref<16x16xf16>, %b: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %x = gpu.block_id x
    %row = arith.muli %x, %c8 : index
    %da = xegpu.create_nd_tdesc %a : memref<16x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    %v = xegpu.load_nd %da[%row, %c0] : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    %f = arith.extf %v : vector<8x16xf16> to vector<8x16xf32>
    %w = arith.addf %f, %f : vector<8x16xf32>
    %db = xegpu.create_nd_tdesc %b : memref<16x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %w, %db[%row, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
