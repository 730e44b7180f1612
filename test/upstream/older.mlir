// IMEX's older programs are in dialects of ours, with some names and attributes that the RFC has otherwise.
// RUN: xegpu-opt %s --xegpu-spelling=rfc | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-run %s --kernel barrier zeros:i32:4x16 --block 4 --print 0 | FileCheck %s --check-prefix=MEET
// RUN: xegpu-run %s --kernel barrier zeros:i32:4x16 --block 4 --print 0 --engine=reference | FileCheck %s --check-prefix=MEET
// RUN: xegpu-run %s --kernel transposed arange:f16:16x16 zeros:f16:8x32 --print 1 | FileCheck %s --check-prefix=PAIRS
// RUN: xegpu-run %s --kernel transposed arange:f16:16x16 zeros:f16:8x32 --print 1 --engine=reference | FileCheck %s --check-prefix=PAIRS

// CHECK: !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
#map = #xegpu.sg_map<{mma_block_size = [8, 16], wi_layout = [1, 16], wi_data = [1, 1]}>
func.func private @map(!xegpu.tensor_desc<8x16xf16, #map>)

gpu.module @kernels {
  gpu.func @barrier(%a: memref<4x16xi32>) kernel attributes {VectorComputeFunctionINTEL} {
    xegpu.alloc_nbarrier 2
    %id = arith.constant 1 : i8
    %role = arith.constant 0 : i8
    // CHECK: xegpu.create_nbarrier %{{.*}}, %{{.*}} {num_producers = 4, num_consumers = 4} : (i8, i8) -> !xegpu.nbarrier
    %b = xegpu.create_nbarrier %id, %role {num_producers = 4 : i8, num_consumers = 4 : i8} : (i8, i8) -> !xegpu.nbarrier
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %x = gpu.thread_id x
    %n = arith.index_cast %x : index to i32
    %v = vector.broadcast %n : i32 to vector<16xi32>
    vector.store %v, %a[%x, %c0] : memref<4x16xi32>, vector<16xi32>
    xegpu.fence
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    // Each subgroup adds what the opposite one has written.
    %y = arith.subi %c3, %x : index
    %w = vector.load %a[%y, %c0] : memref<4x16xi32>, vector<16xi32>
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    %sum = arith.addi %v, %w : vector<16xi32>
    vector.store %sum, %a[%x, %c0] : memref<4x16xi32>, vector<16xi32>
    gpu.return
  }
  // MEET: [3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3]
  // MEET-NEXT: [3 3 3
  // MEET-NEXT: [3 3 3
  // MEET-NEXT: [3 3 3

  gpu.func @transposed(%a: memref<16x16xf16>, %b: memref<8x32xf16>) kernel {
    %c0 = arith.constant 0 : index
    %from = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<16x16xf16> -> !xegpu.tensor_desc<16x16xf16>
    // CHECK: -> vector<8x16x2xf16>
    %v = xegpu.load_nd %from {mode = vc, transpose_bit_width = 32, transpose = [1, 0]} : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    %w = vector.shape_cast %v : vector<8x16x2xf16> to vector<8x32xf16>
    %to = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<8x32xf16> -> !xegpu.tensor_desc<8x32xf16>
    xegpu.store_nd %w, %to {mode = vc} : vector<8x32xf16>, !xegpu.tensor_desc<8x32xf16>
    gpu.return
  }
  // Pairs of a row are together: 0, 1 of the first row, then 16, 17 of the second.
  // PAIRS: {{\[\[ *}}0. {{ *}}1. {{ *}}16. {{ *}}17.
}
