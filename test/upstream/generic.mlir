// RUN: xegpu-opt %s --xegpu-spelling=rfc --split-input-file | FileCheck %s
// MLIR's generic form of upstream's ops, as mlir-opt --mlir-print-op-generic prints it.

gpu.module @m {
  // CHECK-LABEL: gpu.func @blocks
  gpu.func @blocks(%a: memref<64x64xf16>, %b: memref<?x?xf32>, %x: index, %n: index) kernel {
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    %0 = "xegpu.create_nd_tdesc"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (memref<64x64xf16>) -> !xegpu.tensor_desc<16x16xf16>
    // CHECK: xegpu.update_nd_offset %{{.*}}, [%{{.*}}, 32]
    // CHECK: xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0, l1_hint = cached} : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    %1 = "xegpu.load_nd"(%0, %x) <{const_offsets = array<i64: -9223372036854775808, 32>, l1_hint = #xegpu.cache_hint<cached>, packed}> : (!xegpu.tensor_desc<16x16xf16>, index) -> vector<8x16x2xf16>
    %2 = "xegpu.create_nd_tdesc"(%a) <{const_offsets = array<i64: 8, 0>, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (memref<64x64xf16>) -> !xegpu.tensor_desc<8x16xf16>
    %3 = "xegpu.load_nd"(%2) : (!xegpu.tensor_desc<8x16xf16>) -> vector<8x16xf16>
    // CHECK: %[[D:.*]] = xegpu.dpas
    %4 = "xegpu.dpas"(%3, %1) : (vector<8x16xf16>, vector<8x16x2xf16>) -> vector<8x16xf32>
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, %{{.*}}], [%{{.*}}, 64], [64, 1]
    %5 = "xegpu.create_nd_tdesc"(%b, %x, %n) <{const_offsets = array<i64: 0, -9223372036854775808>, const_shape = array<i64: -9223372036854775808, 64>, const_strides = array<i64: 64, 1>, operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (memref<?x?xf32>, index, index) -> !xegpu.tensor_desc<8x16xf32>
    // CHECK: xegpu.store_nd %[[D]]
    "xegpu.store_nd"(%4, %5) <{l1_hint = #xegpu.cache_hint<write_back>}> {note = "kept"} : (vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>) -> ()
    // CHECK: xegpu.fence
    "xegpu.fence"() <{fence_scope = #xegpu<fence_scope workgroup>, memory_kind = #xegpu<memory_space slm>}> : () -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  // CHECK-LABEL: gpu.func @lanes
  gpu.func @lanes(%a: memref<1024xf32>, %i: index, %m: i1, %b: memref<8x64xf8E5M2>, %s: vector<1xf8E8M0FNU>) kernel {
    // CHECK: memref.load
    %0 = "xegpu.load"(%a, %i, %m) <{chunk_size = 1 : i64}> : (memref<1024xf32>, index, i1) -> vector<1xf32>
    "xegpu.store"(%0, %a, %i, %m) : (vector<1xf32>, memref<1024xf32>, index, i1) -> ()
    // CHECK: memref.atomic_rmw addf
    %1 = vector.broadcast %i : index to vector<1xindex>
    %2 = vector.broadcast %m : i1 to vector<1xi1>
    %3 = "xegpu.atomic_rmw"(%a, %1, %2, %0) <{kind = 0 : i64}> : (memref<1024xf32>, vector<1xindex>, vector<1xi1>, vector<1xf32>) -> vector<1xf32>
    gpu.return
  }
}
