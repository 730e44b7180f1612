// RUN: xegpu-opt %s --xegpu-legalize=target=pvc --canonicalize --cse --xegpu-dce | FileCheck %s
// RUN: xegpu-opt %s --xegpu-to-visa-pipeline='target=pvc kernel=padded' | FileCheck %s --check-prefix=VISA

// Numbers in place of elements that are out of bounds, in blocks that no 2D message moves.

gpu.module @kernels {
  // The row is in bounds, since its matrix has one row more than its number. Lanes out of bounds load the padding.
  // CHECK-LABEL: gpu.func @padded(
  // CHECK: %[[MASK:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : vector<32xindex>
  // CHECK-NOT: arith.andi
  // CHECK: %[[LOADED:.*]] = xegpu.load_gather %{{.*}}, %[[MASK]] {mode = vc}
  // CHECK-NEXT: arith.select %[[MASK]], %[[LOADED]], %{{.*}} : vector<32xi1>, vector<32xf32>
  // CHECK-NOT: vector.create_mask
  // VISA: visa.mov (M1_NM, 32) %[[V:.*]]_ud(0,0)<1> 0xff800000:ud
  // VISA-COUNT-2: visa.lsc_load
  // VISA-NOT: visa.sel
  // VISA: visa.ret
  gpu.func @padded(%A: memref<?xf32>, %B: memref<?xf32>, %n: index, %pitch: index) kernel attributes {xegpu.unaligned = array<i64: 0, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %infinity = arith.constant dense<0xFF800000> : vector<1x64xf32>
    %row = gpu.block_id x
    %column = gpu.block_id y
    %rows = arith.addi %row, %c1 : index
    %matrix = memref.reinterpret_cast %A to offset: [0], sizes: [%rows, %n], strides: [%pitch, 1] : memref<?xf32> to memref<?x?xf32, strided<[?, 1]>>
    %height = memref.dim %matrix, %c0 : memref<?x?xf32, strided<[?, 1]>>
    %width = memref.dim %matrix, %c1 : memref<?x?xf32, strided<[?, 1]>>
    %d = xegpu.create_nd_tdesc %matrix[%row, %column] {mode = vc} : memref<?x?xf32, strided<[?, 1]>> -> !xegpu.tensor_desc<1x64xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
    %up = arith.subi %height, %row : index
    %left = arith.subi %width, %column : index
    %mask = vector.create_mask %up, %left : vector<1x64xi1>
    %y = arith.select %mask, %x, %infinity : vector<1x64xi1>, vector<1x64xf32>
    %to = xegpu.create_nd_tdesc %B[%c0] {mode = vc} : memref<?xf32> -> !xegpu.tensor_desc<64xf32>
    %z = vector.shape_cast %y : vector<1x64xf32> to vector<64xf32>
    xegpu.store_nd %z, %to {mode = vc} : vector<64xf32>, !xegpu.tensor_desc<64xf32>
    gpu.return
  }

  // The column may be before the first one: elements there are zero.
  // CHECK-LABEL: gpu.func @before(
  // CHECK-COUNT-2: xegpu.load_gather
  // CHECK: %[[WHOLE:.*]] = vector.create_mask
  // CHECK: arith.select %[[WHOLE]], %{{.*}}, %{{.*}} : vector<1x64xi1>, vector<1x64xf32>
  gpu.func @before(%A: memref<?xf32>, %B: memref<?xf32>, %n: index, %column: index) kernel attributes {xegpu.unaligned = array<i64: 0, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %infinity = arith.constant dense<0xFF800000> : vector<1x64xf32>
    %matrix = memref.reinterpret_cast %A to offset: [0], sizes: [1, %n], strides: [%n, 1] : memref<?xf32> to memref<1x?xf32, strided<[?, 1]>>
    %d = xegpu.create_nd_tdesc %matrix[0, %column] {mode = vc} : memref<1x?xf32, strided<[?, 1]>> -> !xegpu.tensor_desc<1x64xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
    %left = arith.subi %n, %column : index
    %mask = vector.create_mask %c1, %left : vector<1x64xi1>
    %y = arith.select %mask, %x, %infinity : vector<1x64xi1>, vector<1x64xf32>
    %to = xegpu.create_nd_tdesc %B[%c0] {mode = vc} : memref<?xf32> -> !xegpu.tensor_desc<64xf32>
    %z = vector.shape_cast %y : vector<1x64xf32> to vector<64xf32>
    xegpu.store_nd %z, %to {mode = vc} : vector<64xf32>, !xegpu.tensor_desc<64xf32>
    gpu.return
  }

  // Parts of a row that are narrower than an instruction do not divide the arithmetic on it.
  // CHECK-LABEL: gpu.func @parts(
  // CHECK-COUNT-2: math.exp2 %{{.*}} : vector<1x32xf32>
  // CHECK-NOT: math.exp2
  // CHECK: gpu.return
  gpu.func @parts(%x: vector<1x64xf32>, %B: memref<16xf32>) kernel {
    %y = math.exp2 %x : vector<1x64xf32>
    %a = vector.extract_strided_slice %y {offsets = [0, 0], sizes = [1, 16], strides = [1, 1]} : vector<1x64xf32> to vector<1x16xf32>
    %b = vector.extract_strided_slice %y {offsets = [0, 16], sizes = [1, 16], strides = [1, 1]} : vector<1x64xf32> to vector<1x16xf32>
    %c = vector.extract_strided_slice %y {offsets = [0, 32], sizes = [1, 16], strides = [1, 1]} : vector<1x64xf32> to vector<1x16xf32>
    %d = vector.extract_strided_slice %y {offsets = [0, 48], sizes = [1, 16], strides = [1, 1]} : vector<1x64xf32> to vector<1x16xf32>
    %ab = arith.addf %a, %b : vector<1x16xf32>
    %cd = arith.addf %c, %d : vector<1x16xf32>
    %sum = arith.addf %ab, %cd : vector<1x16xf32>
    %line = vector.shape_cast %sum : vector<1x16xf32> to vector<16xf32>
    %to = xegpu.create_nd_tdesc %B[0] {mode = vc} : memref<16xf32> -> !xegpu.tensor_desc<16xf32>
    xegpu.store_nd %line, %to {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32>
    gpu.return
  }
}
