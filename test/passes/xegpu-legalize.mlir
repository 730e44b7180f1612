// Ops that no single message or instruction implements are split.

// RUN: xegpu-opt %s --xegpu-legalize=target=pvc --canonicalize --cse --xegpu-dce | FileCheck %s
// RUN: xegpu-opt %s --xegpu-legalize=target=pvc --xegpu-verify-target=target=pvc -o /dev/null

gpu.module @m {
  // CHECK-LABEL: gpu.func @rows_and_columns
  // CHECK-DAG: %[[LEFT:.*]] = xegpu.create_nd_tdesc %{{.*}}[8, 16] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<32x16xf32>
  // CHECK-DAG: %[[RIGHT:.*]] = xegpu.create_nd_tdesc %{{.*}}[8, 32] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<32x16xf32>
  // CHECK-DAG: %[[X:.*]] = xegpu.load_nd %[[LEFT]] {mode = vc, l1_hint = cached, l3_hint = cached}
  // CHECK-DAG: %[[Y:.*]] = xegpu.load_nd %[[RIGHT]] {mode = vc, l1_hint = cached, l3_hint = cached}
  // CHECK-DAG: xegpu.create_nd_tdesc %{{.*}}[32, 16] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<8x16xf32>
  // CHECK: vector.extract_strided_slice %[[X]] {offsets = [0, 0], sizes = [8, 16]
  // CHECK: xegpu.store_nd %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
  // CHECK: vector.extract_strided_slice %[[Y]] {offsets = [0, 0], sizes = [8, 16]
  // CHECK-COUNT-7: xegpu.store_nd %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
  // CHECK-NOT: xegpu.store_nd
  gpu.func @rows_and_columns(%m: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[8, 16] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<32x32xf32>
    %x = xegpu.load_nd %d {mode = vc, l1_hint = cached, l3_hint = cached}
      : !xegpu.tensor_desc<32x32xf32> -> vector<32x32xf32>
    xegpu.store_nd %x, %d {mode = vc} : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32>
    gpu.return
  }

  // A dynamic offset becomes a sum.
  // CHECK-LABEL: gpu.func @offsets
  // CHECK-SAME: %[[I:arg1]]: index
  // CHECK: %[[C32:.*]] = arith.constant 32 : index
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%[[I]], 0] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<32x16xf32>
  // CHECK: %[[J:.*]] = arith.addi %[[I]], %[[C32]] : index
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%[[J]], 0] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<32x16xf32>
  // CHECK-COUNT-2: xegpu.prefetch_nd %{{.*}} {mode = vc, l1_hint = uncached} : !xegpu.tensor_desc<32x16xf32>
  gpu.func @offsets(%m: memref<64x64xf32>, %i: index) kernel {
    %d = xegpu.create_nd_tdesc %m[%i, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
    xegpu.prefetch_nd %d {mode = vc, l1_hint = uncached} : !xegpu.tensor_desc<64x16xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @lines
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[0] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<64xf32>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[64] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<32xf32>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[96] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<4xf32>
  gpu.func @lines(%m: memref<128xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0] {mode = vc}
      : memref<128xf32> -> !xegpu.tensor_desc<100xf32, #xegpu.tdesc_attr<boundary_check = false>>
    xegpu.prefetch_nd %d {mode = vc} : !xegpu.tensor_desc<100xf32, #xegpu.tdesc_attr<boundary_check = false>>
    gpu.return
  }

  // Loops carry descriptors and the accumulator in pieces, and K is the outermost loop. Adjacent blocks share a
  // message.
  // CHECK-LABEL: gpu.func @loop
  // CHECK: %[[A:.*]] = xegpu.create_nd_tdesc %{{.*}}[0, %{{.*}}] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
  // CHECK: %[[B:.*]] = xegpu.create_nd_tdesc %{{.*}}[%{{.*}}, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<32x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
  // CHECK: %[[R:.*]]:6 = scf.for {{.*}} iter_args(%[[C00:.*]] = %{{.*}}, %[[C01:.*]] = %{{.*}}, %[[C10:.*]] = %{{.*}}, %[[C11:.*]] = %{{.*}}, %[[AT:.*]] = %[[A]], %[[BT:.*]] = %[[B]])
  // CHECK: %[[AV:.*]] = xegpu.load_nd %[[AT]] {mode = vc, vnni_axis = 1} : {{.*}} -> vector<2x16x8x2xbf16>
  // CHECK: %[[BV:.*]] = xegpu.load_nd %[[BT]] {mode = vc, vnni_axis = 0} : {{.*}} -> vector<2x16x16x2xbf16>
  // CHECK: %[[S00:.*]] = xegpu.dpas %[[C00]], %[[A00:.*]], %[[B00:.*]] {mode = vc}
  // CHECK: %[[S01:.*]] = xegpu.dpas %[[C01]], %[[A00]], %[[B01:.*]] {mode = vc}
  // CHECK: %[[S10:.*]] = xegpu.dpas %[[C10]], %[[A10:.*]], %[[B00]] {mode = vc}
  // CHECK: %[[S11:.*]] = xegpu.dpas %[[C11]], %[[A10]], %[[B01]] {mode = vc}
  // CHECK: %[[T00:.*]] = xegpu.dpas %[[S00]],
  // CHECK: %[[T01:.*]] = xegpu.dpas %[[S01]],
  // CHECK: %[[T10:.*]] = xegpu.dpas %[[S10]],
  // CHECK: %[[T11:.*]] = xegpu.dpas %[[S11]],
  // CHECK: %[[A2:.*]] = xegpu.update_nd_offset %[[AT]], [0, 32]
  // CHECK: %[[B2:.*]] = xegpu.update_nd_offset %[[BT]], [32, 0]
  // CHECK: scf.yield %[[T00]], %[[T01]], %[[T10]], %[[T11]], %[[A2]], %[[B2]]
  // CHECK-COUNT-4: xegpu.store_nd %[[R]]#{{[0-3]}}, %{{.*}} : vector<8x16xf32>
  gpu.func @loop(%a: memref<64x64xbf16>, %b: memref<64x64xbf16>, %c: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<16x32xf32>
    %ad = xegpu.create_nd_tdesc %a[0, %c0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<16x32xbf16>
    %bd = xegpu.create_nd_tdesc %b[%c0, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<32x32xbf16>
    %r:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%sum = %zero, %at = %ad, %bt = %bd)
        -> (vector<16x32xf32>, !xegpu.tensor_desc<16x32xbf16>, !xegpu.tensor_desc<32x32xbf16>) {
      %av = xegpu.load_nd %at {mode = vc, vnni_axis = 1} : !xegpu.tensor_desc<16x32xbf16> -> vector<16x16x2xbf16>
      %bv = xegpu.load_nd %bt {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<32x32xbf16> -> vector<16x32x2xbf16>
      %s = xegpu.dpas %sum, %av, %bv {mode = vc}
        : vector<16x32xf32>, vector<16x16x2xbf16>, vector<16x32x2xbf16> -> vector<16x32xf32>
      %a2 = xegpu.update_nd_offset %at, [0, 32] {mode = vc}
        : !xegpu.tensor_desc<16x32xbf16> -> !xegpu.tensor_desc<16x32xbf16>
      %b2 = xegpu.update_nd_offset %bt, [32, 0] {mode = vc}
        : !xegpu.tensor_desc<32x32xbf16> -> !xegpu.tensor_desc<32x32xbf16>
      scf.yield %s, %a2, %b2 : vector<16x32xf32>, !xegpu.tensor_desc<16x32xbf16>, !xegpu.tensor_desc<32x32xbf16>
    }
    %cd = xegpu.create_nd_tdesc %c[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<16x32xf32>
    xegpu.store_nd %r#0, %cd {mode = vc} : vector<16x32xf32>, !xegpu.tensor_desc<16x32xf32>
    gpu.return
  }

  // Blocks that may begin within a unit are transposed in registers.
  // CHECK-LABEL: gpu.func @transpose_at_any_column(
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc} : {{.*}} -> vector<2x16x8xbf16>
  // CHECK: vector.transpose %{{.*}}, [1, 0] : vector<16x8xbf16> to vector<8x16xbf16>
  gpu.func @transpose_at_any_column(%m: memref<64x64xbf16>, %column: index) kernel {
    %d = xegpu.create_nd_tdesc %m[0, %column] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<16x16xbf16>
    %x = xegpu.load_nd %d {transpose = [1, 0], mode = vc} : !xegpu.tensor_desc<16x16xbf16> -> vector<16x16xbf16>
    %e = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<16x16xbf16>
    xegpu.store_nd %x, %e {mode = vc} : vector<16x16xbf16>, !xegpu.tensor_desc<16x16xbf16>
    gpu.return
  }

  // A loop that moves by whole units keeps them aligned.
  // CHECK-LABEL: gpu.func @transpose_in_a_loop(
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0], transpose_bit_width = 32}
  // CHECK-NOT: xegpu.load_nd
  gpu.func @transpose_in_a_loop(%m: memref<64x64xf16>, %o: memref<64x64xf16>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %d0 = xegpu.create_nd_tdesc %m[0, 6] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %e = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x8xf16>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%d = %d0) -> (!xegpu.tensor_desc<8x16xf16>) {
      %x = xegpu.load_nd %d {transpose = [1, 0], mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<16x8xf16>
      xegpu.store_nd %x, %e {mode = vc} : vector<16x8xf16>, !xegpu.tensor_desc<16x8xf16>
      %by = arith.muli %i, %c2 : index
      %next = xegpu.update_nd_offset %d, [0, %by] {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<8x16xf16>
      scf.yield %next : !xegpu.tensor_desc<8x16xf16>
    }
    gpu.return
  }

  // Narrow elements are transposed in units of 32 bits, which are then split.
  // CHECK-LABEL: gpu.func @transposition
  // CHECK: %[[T:.*]] = xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !xegpu.tensor_desc<16x16xbf16> -> vector<8x32xbf16>
  // CHECK: %[[H:.*]] = vector.extract_strided_slice %[[T]] {offsets = [0, 0], sizes = [4, 32]
  // CHECK: %[[S:.*]] = vector.shape_cast %[[H]] : vector<4x32xbf16> to vector<4x16x2x1xbf16>
  // CHECK: %[[P:.*]] = vector.transpose %[[S]], [0, 2, 1, 3] : vector<4x16x2x1xbf16> to vector<4x2x16x1xbf16>
  // CHECK: vector.shape_cast %[[P]] : vector<4x2x16x1xbf16> to vector<8x16xbf16>
  // CHECK: xegpu.store_nd
  gpu.func @transposition(%m: memref<64x64xbf16>, %to: memref<64x64xbf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<16x16xbf16>
    %e = xegpu.create_nd_tdesc %to[0, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<16x16xbf16>
    %x = xegpu.load_nd %d {transpose = [1, 0], mode = vc} : !xegpu.tensor_desc<16x16xbf16> -> vector<16x16xbf16>
    xegpu.store_nd %x, %e {mode = vc} : vector<16x16xbf16>, !xegpu.tensor_desc<16x16xbf16>
    gpu.return
  }

  // Blocks of three dimensions are loaded matrix by matrix.
  // CHECK-LABEL: gpu.func @three_dimensions
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[1, 0, 0] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<1x8x16xf32>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[2, 0, 0] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<1x8x16xf32>
  // CHECK-COUNT-2: xegpu.load_nd %{{.*}} -> vector<1x8x16xf32>
  // CHECK-COUNT-2: xegpu.store_nd %{{.*}} : vector<1x8x16xf32>
  gpu.func @three_dimensions(%m: memref<4x64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[1, 0, 0] {mode = vc} : memref<4x64x64xf32> -> !xegpu.tensor_desc<2x8x16xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<2x8x16xf32> -> vector<2x8x16xf32>
    xegpu.store_nd %x, %d {mode = vc} : vector<2x8x16xf32>, !xegpu.tensor_desc<2x8x16xf32>
    gpu.return
  }

  // A message moves no more than eight registers.
  // CHECK-LABEL: gpu.func @lanes
  // CHECK: %[[O0:.*]] = vector.extract_strided_slice %{{.*}} {offsets = [0], sizes = [16], strides = [1]} : vector<32xindex>
  // CHECK: xegpu.create_tdesc %{{.*}}, %[[O0]] {mode = vc, chunk_size_per_lane = 8}
  // CHECK: %[[O1:.*]] = vector.extract_strided_slice %{{.*}} {offsets = [16], sizes = [16], strides = [1]} : vector<32xindex>
  // CHECK: xegpu.create_tdesc %{{.*}}, %[[O1]] {mode = vc, chunk_size_per_lane = 8}
  // CHECK: %[[X:.*]] = xegpu.load_gather %{{.*}} -> vector<8x16xf32>
  // CHECK: %[[Y:.*]] = xegpu.load_gather %{{.*}} -> vector<8x16xf32>
  // CHECK: xegpu.store_scatter %[[X]]
  // CHECK: xegpu.store_scatter %[[Y]]
  gpu.func @lanes(%m: memref<4096xf32>, %o: vector<32xindex>, %mask: vector<32xi1>) kernel {
    %d = xegpu.create_tdesc %m, %o {mode = vc, chunk_size_per_lane = 8}
      : memref<4096xf32>, vector<32xindex> -> !xegpu.tensor_desc<32x8xf32, #xegpu.scattered>
    %x = xegpu.load_gather %d, %mask {mode = vc}
      : !xegpu.tensor_desc<32x8xf32, #xegpu.scattered>, vector<32xi1> -> vector<8x32xf32>
    xegpu.store_scatter %x, %d, %mask {mode = vc}
      : vector<8x32xf32>, !xegpu.tensor_desc<32x8xf32, #xegpu.scattered>, vector<32xi1>
    gpu.return
  }

  // Elementwise ops are computed piece by piece, and pieces are reduced in the order of the whole vector.
  // CHECK-LABEL: gpu.func @chain
  // CHECK: %[[X:.*]] = xegpu.load_nd %{{.*}} -> vector<64xf32>
  // CHECK: %[[Y:.*]] = xegpu.load_nd %{{.*}} -> vector<64xf32>
  // CHECK: %[[MOST:.*]] = arith.maximumf %[[X]], %[[Y]] : vector<64xf32>
  // CHECK: vector.reduction <maximumf>, %[[MOST]] : vector<64xf32> into f32
  // CHECK: %[[B:.*]] = vector.broadcast %{{.*}} : f32 to vector<64xf32>
  // CHECK-NEXT: %[[X1:.*]] = arith.subf %[[X]], %[[B]] : vector<64xf32>
  // CHECK-NEXT: %[[X2:.*]] = math.exp %[[X1]] : vector<64xf32>
  // CHECK-NEXT: %[[Y1:.*]] = arith.subf %[[Y]], %[[B]] : vector<64xf32>
  // CHECK-NEXT: %[[Y2:.*]] = math.exp %[[Y1]] : vector<64xf32>
  // CHECK: xegpu.store_nd %[[X2]]
  // CHECK: xegpu.store_nd %[[Y2]]
  gpu.func @chain(%m: memref<512xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0] {mode = vc}
      : memref<512xf32> -> !xegpu.tensor_desc<128xf32, #xegpu.tdesc_attr<boundary_check = false>>
    %x = xegpu.load_nd %d {mode = vc}
      : !xegpu.tensor_desc<128xf32, #xegpu.tdesc_attr<boundary_check = false>> -> vector<128xf32>
    %most = vector.reduction <maximumf>, %x : vector<128xf32> into f32
    %mosts = vector.broadcast %most : f32 to vector<128xf32>
    %shifted = arith.subf %x, %mosts : vector<128xf32>
    %powers = math.exp %shifted : vector<128xf32>
    xegpu.store_nd %powers, %d {mode = vc}
      : vector<128xf32>, !xegpu.tensor_desc<128xf32, #xegpu.tdesc_attr<boundary_check = false>>
    gpu.return
  }

  // Vectors that are not operands of messages are split into two registers: 32 elements of 32 bits.
  // CHECK-LABEL: gpu.func @registers
  // CHECK-COUNT-4: math.sin %{{.*}} : vector<32xf32>
  // CHECK-NOT: math.sin
  gpu.func @registers(%m: memref<1xf32>, %by: f32) kernel {
    %c0 = arith.constant 0 : index
    %steps = vector.step : vector<128xindex>
    %numbers = arith.index_cast %steps : vector<128xindex> to vector<128xi32>
    %floats = arith.sitofp %numbers : vector<128xi32> to vector<128xf32>
    %bys = vector.broadcast %by : f32 to vector<128xf32>
    %scaled = arith.mulf %floats, %bys : vector<128xf32>
    %sines = math.sin %scaled : vector<128xf32>
    %sum = vector.reduction <add>, %sines : vector<128xf32> into f32
    memref.store %sum, %m[%c0] : memref<1xf32>
    gpu.return
  }

  // Legal ops are not changed.
  // CHECK-LABEL: gpu.func @legal
  // CHECK: %[[D:.*]] = xegpu.create_nd_tdesc %{{.*}}[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
  // CHECK-NEXT: %[[X:.*]] = xegpu.load_nd %[[D]] {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
  // CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : vector<8x16xf32>
  // CHECK-NEXT: xegpu.store_nd %[[Y]], %[[D]]
  // CHECK-NEXT: gpu.return
  gpu.func @legal(%m: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %y = arith.addf %x, %x : vector<8x16xf32>
    xegpu.store_nd %y, %d {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
