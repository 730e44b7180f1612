// RUN: xegpu-opt %s --xegpu-expand-rows=target=pvc --canonicalize --xegpu-dce | FileCheck %s
// RUN: xegpu-opt %s --xegpu-expand-rows=target=dg2 --canonicalize --xegpu-dce | FileCheck %s --check-prefix=REGISTERS

// Blocks of rows whose length, pitch and begin are known to be multiples of 64 bytes become blocks of rows of 64 bytes.
// A GPU without 2D block messages keeps them.

// REGISTERS-COUNT-16: xegpu.create_nd_tdesc {{.*}}tensor_desc<1x
// REGISTERS-NOT: tensor_desc<8x16xf32

gpu.module @expanded {
// The launch guarantees that %n is a positive multiple of 16.
// CHECK-LABEL: @line
// CHECK: %[[N:.*]] = arith.maxsi
// CHECK: %[[ROWS:.*]] = arith.shrui %[[N]], %c4
// CHECK: %[[M:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%[[ROWS]], 16], strides: [16, 1]
// CHECK: %[[X:.*]] = arith.shrsi %{{.*}}, %c4
// CHECK: %[[D:.*]] = xegpu.create_nd_tdesc %[[M]][%[[X]], 0] {{.*}} -> !xegpu.tensor_desc<8x16xf32, #xegpu.tdesc_attr<clipped = true>>
// CHECK: xegpu.prefetch_nd %[[D]]
// CHECK: %[[V:.*]] = xegpu.load_nd %[[D]] {mode = vc, l1_hint = cached} {{.*}} -> vector<8x16xf32>
// CHECK: xegpu.store_nd %[[V]], %[[D]]
gpu.func @line(%a: memref<?xf32>, %n: i32) kernel attributes {xetile.divided = array<i64: 0, 1, -1, 16>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %id = gpu.block_id x
  %x = arith.muli %id, %c128 : index
  %i = arith.index_cast %n : i32 to index
  %length = arith.maxsi %i, %c0 : index
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, %length], strides: [%length, 1] : memref<?xf32> to memref<1x?xf32, strided<[?, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, %x] {mode = vc} : memref<1x?xf32, strided<[?, 1]>> -> !xegpu.tensor_desc<1x128xf32, #xegpu.tdesc_attr<clipped = true>>
  xegpu.prefetch_nd %d {mode = vc} : !xegpu.tensor_desc<1x128xf32, #xegpu.tdesc_attr<clipped = true>>
  %v = xegpu.load_nd %d {mode = vc, l1_hint = #xegpu.cache_hint<cached>} : !xegpu.tensor_desc<1x128xf32, #xegpu.tdesc_attr<clipped = true>> -> vector<1x128xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x128xf32>, !xegpu.tensor_desc<1x128xf32, #xegpu.tdesc_attr<clipped = true>>
  gpu.return
}

// The row of a matrix is one of its own; the block begins one row of 64 bytes before it.
// CHECK-LABEL: @row
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %{{.*}} : index
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [%[[START]]], sizes: [16, 16], strides: [16, 1]
// CHECK: xegpu.create_nd_tdesc %{{.*}}[-1, 0] {{.*}} -> !xegpu.tensor_desc<4x16xf32>
gpu.func @row(%a: memref<?xf32>, %pitch: i32) kernel attributes {xetile.divided = array<i64: 0, 1, -1, 16>} {
  %c1 = arith.constant 1 : index
  %id = gpu.block_id x
  %rows = arith.addi %id, %c1 : index
  %p = arith.index_cast %pitch : i32 to index
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [%rows, 256], strides: [%p, 1] : memref<?xf32> to memref<?x256xf32, strided<[?, 1]>>
  %d = xegpu.create_nd_tdesc %m[%id, -16] {mode = vc} : memref<?x256xf32, strided<[?, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// Registers of 64 bytes have 32 elements of 16 bits, and 64 of 8 bits.
// CHECK-LABEL: @narrow
// CHECK: -> !xegpu.tensor_desc<2x32xf16>
// CHECK: -> !xegpu.tensor_desc<4x64xi8>
gpu.func @narrow(%a: memref<?xf16>, %b: memref<?xi8>) kernel {
  %m = memref.reinterpret_cast %a to offset: [32], sizes: [1, 1024], strides: [1024, 1] : memref<?xf16> to memref<1x1024xf16, strided<[1024, 1], offset: 32>>
  %d = xegpu.create_nd_tdesc %m[0, 64] {mode = vc} : memref<1x1024xf16, strided<[1024, 1], offset: 32>> -> !xegpu.tensor_desc<1x64xf16>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf16> -> vector<1x64xf16>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf16>, !xegpu.tensor_desc<1x64xf16>
  %n = memref.reinterpret_cast %b to offset: [0], sizes: [1, 1024], strides: [1024, 1] : memref<?xi8> to memref<1x1024xi8, strided<[1024, 1]>>
  %e = xegpu.create_nd_tdesc %n[0, 0] {mode = vc} : memref<1x1024xi8, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x256xi8>
  %w = xegpu.load_nd %e {mode = vc} : !xegpu.tensor_desc<1x256xi8> -> vector<1x256xi8>
  xegpu.store_nd %w, %e {mode = vc} : vector<1x256xi8>, !xegpu.tensor_desc<1x256xi8>
  gpu.return
}
}

gpu.module @kept {
// Each differs in one thing from what is expanded: a length, a begin, a column that is not a multiple, a row that may lie
// outside of its matrix, a length that may be zero, a descriptor that moves, and a block that ends within a register.
// CHECK-LABEL: @length
// CHECK: tensor_desc<1x64xf32>
gpu.func @length(%a: memref<?xf32>) kernel {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, 1000], strides: [1008, 1] : memref<?xf32> to memref<1x1000xf32, strided<[1008, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<1x1000xf32, strided<[1008, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// CHECK-LABEL: @begin
// CHECK: tensor_desc<1x64xf32>
gpu.func @begin(%a: memref<?xf32>) kernel {
  %m = memref.reinterpret_cast %a to offset: [8], sizes: [1, 1024], strides: [1024, 1] : memref<?xf32> to memref<1x1024xf32, strided<[1024, 1], offset: 8>>
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<1x1024xf32, strided<[1024, 1], offset: 8>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// CHECK-LABEL: @column
// CHECK: tensor_desc<1x64xf32>
gpu.func @column(%a: memref<?xf32>) kernel {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, 1024], strides: [1024, 1] : memref<?xf32> to memref<1x1024xf32, strided<[1024, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, 8] {mode = vc} : memref<1x1024xf32, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// CHECK-LABEL: @pitch
// CHECK: tensor_desc<1x64xf32>
gpu.func @pitch(%a: memref<?xf32>) kernel {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [2, 1024], strides: [1032, 1] : memref<?xf32> to memref<2x1024xf32, strided<[1032, 1]>>
  %d = xegpu.create_nd_tdesc %m[1, 0] {mode = vc} : memref<2x1024xf32, strided<[1032, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// CHECK-LABEL: @outside
// CHECK-COUNT-3: xegpu.create_nd_tdesc {{.*}}tensor_desc<1x64xf32>
gpu.func @outside(%a: memref<?xf32>, %rows: index, %row: index) kernel {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [%rows, 1024], strides: [1024, 1] : memref<?xf32> to memref<?x1024xf32, strided<[1024, 1]>>
  %d = xegpu.create_nd_tdesc %m[%row, 0] {mode = vc} : memref<?x1024xf32, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  // A row before the first one, and one behind the last one.
  %c1 = arith.constant 1 : index
  %more = arith.addi %row, %c1 : index
  %n = memref.reinterpret_cast %a to offset: [0], sizes: [%more, 1024], strides: [1024, 1] : memref<?xf32> to memref<?x1024xf32, strided<[1024, 1]>>
  %e = xegpu.create_nd_tdesc %n[%row, 0] {mode = vc} : memref<?x1024xf32, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  xegpu.store_nd %v, %e {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  %o = memref.reinterpret_cast %a to offset: [0], sizes: [1, 1024], strides: [1024, 1] : memref<?xf32> to memref<1x1024xf32, strided<[1024, 1]>>
  %f = xegpu.create_nd_tdesc %o[1, 0] {mode = vc} : memref<1x1024xf32, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  xegpu.store_nd %v, %f {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// CHECK-LABEL: @empty
// CHECK: tensor_desc<1x64xf32>
gpu.func @empty(%a: memref<?xf32>, %n: index) kernel {
  %c4 = arith.constant 4 : index
  %length = arith.shli %n, %c4 : index
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, %length], strides: [%length, 1] : memref<?xf32> to memref<1x?xf32, strided<[?, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<1x?xf32, strided<[?, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// A number of 64 bits may be 2^32.
// CHECK-LABEL: @truncated
// CHECK: tensor_desc<1x64xf32>
gpu.func @truncated(%a: memref<?xf32>, %n: i64) kernel attributes {xetile.divided = array<i64: 0, 1, -1, 16>} {
  %short = arith.trunci %n : i64 to i32
  %length = arith.index_cast %short : i32 to index
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, %length], strides: [%length, 1] : memref<?xf32> to memref<1x?xf32, strided<[?, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<1x?xf32, strided<[?, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// CHECK-LABEL: @moved
// CHECK: tensor_desc<1x64xf32>
gpu.func @moved(%a: memref<?xf32>) kernel {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, 1024], strides: [1024, 1] : memref<?xf32> to memref<1x1024xf32, strided<[1024, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<1x1024xf32, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  %e = xegpu.update_nd_offset %d, [0, 64] {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> !xegpu.tensor_desc<1x64xf32>
  xegpu.store_nd %v, %e {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// CHECK-LABEL: @unaligned
// CHECK: tensor_desc<1x64xf32>
gpu.func @unaligned(%a: memref<?xf32>) kernel attributes {xegpu.unaligned = array<i64: 0>} {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, 1024], strides: [1024, 1] : memref<?xf32> to memref<1x1024xf32, strided<[1024, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<1x1024xf32, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x64xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x64xf32>, !xegpu.tensor_desc<1x64xf32>
  gpu.return
}

// CHECK-LABEL: @width
// CHECK: tensor_desc<1x40xf32>
gpu.func @width(%a: memref<?xf32>) kernel {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, 1024], strides: [1024, 1] : memref<?xf32> to memref<1x1024xf32, strided<[1024, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<1x1024xf32, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x40xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x40xf32> -> vector<1x40xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x40xf32>, !xegpu.tensor_desc<1x40xf32>
  gpu.return
}

// A block of one register has no rows to divide into.
// CHECK-LABEL: @short
// CHECK: tensor_desc<1x16xf32>
gpu.func @short(%a: memref<?xf32>) kernel {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [1, 1024], strides: [1024, 1] : memref<?xf32> to memref<1x1024xf32, strided<[1024, 1]>>
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<1x1024xf32, strided<[1024, 1]>> -> !xegpu.tensor_desc<1x16xf32>
  %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x16xf32> -> vector<1x16xf32>
  xegpu.store_nd %v, %d {mode = vc} : vector<1x16xf32>, !xegpu.tensor_desc<1x16xf32>
  gpu.return
}
}
