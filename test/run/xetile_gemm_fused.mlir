// GELU(scale * A x dequantize(B) + bias) in bf16: A is scaled by a number for each row, B is i8 with a scale for each
// column, and both are made bf16 in registers. Sizes need not be multiples of the tile's.

// RUN: xegpu-run %s ones:bf16:32x48 ones:f32:32x1 ones:i8:48x32 ones:f32:1x32 zeros:f32:1x32 zeros:bf16:32x32 --block 4 --registers 256 --print 5 | FileCheck %s
// CHECK: {{\[\[}}48 48 48

#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 16]>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<?x?xbf16>, %scales: memref<?x1xf32>, %B: memref<?x?xi8>, %by: memref<1x?xf32>,
                 %bias: memref<1x?xf32>, %C: memref<?x?xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %K = memref.dim %A, %c1 : memref<?x?xbf16>
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c32 : index
    %n = arith.muli %y, %c32 : index
    %ts = xetile.init_tile %scales[%m, 0] : memref<?x1xf32> -> !xetile.tile<32x1xf32>
    %tby = xetile.init_tile %by[0, %n] : memref<1x?xf32> -> !xetile.tile<1x32xf32>
    %scale = xetile.load_tile %ts : !xetile.tile<32x1xf32> -> vector<32x1xf32>
    %by0 = xetile.load_tile %tby : !xetile.tile<1x32xf32> -> vector<1x32xf32>
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %a0 = xetile.init_tile %A[%m, 0] : memref<?x?xbf16> -> !xetile.tile<32x16xbf16>
    %b0 = xetile.init_tile %B[0, %n] : memref<?x?xi8> -> !xetile.tile<16x32xi8>
    %r:3 = scf.for %k = %c0 to %K step %c16 iter_args(%sum = %zero, %a = %a0, %b = %b0)
        -> (vector<32x32xf32>, !xetile.tile<32x16xbf16>, !xetile.tile<16x32xi8>) {
      %va = xetile.load_tile %a : !xetile.tile<32x16xbf16> -> vector<32x16xbf16>
      %wide = arith.extf %va : vector<32x16xbf16> to vector<32x16xf32>
      %rows = xetile.broadcast %scale [1] : vector<32x1xf32> -> vector<32x16xf32>
      %scaled = arith.mulf %wide, %rows : vector<32x16xf32>
      %left = arith.truncf %scaled : vector<32x16xf32> to vector<32x16xbf16>
      %vb = xetile.load_tile %b : !xetile.tile<16x32xi8> -> vector<16x32xi8>
      %real = arith.sitofp %vb : vector<16x32xi8> to vector<16x32xf32>
      %columns = xetile.broadcast %by0 [0] : vector<1x32xf32> -> vector<16x32xf32>
      %times = arith.mulf %real, %columns : vector<16x32xf32>
      %right = arith.truncf %times : vector<16x32xf32> to vector<16x32xbf16>
      %next = xetile.tile_mma %left, %right, %sum {wg_map_c = #c}
        : vector<32x16xbf16>, vector<16x32xbf16>, vector<32x32xf32> -> vector<32x32xf32>
      %a1 = xetile.update_tile_offset %a, [0, 16] : !xetile.tile<32x16xbf16>
      %b1 = xetile.update_tile_offset %b, [16, 0] : !xetile.tile<16x32xi8>
      scf.yield %next, %a1, %b1 : vector<32x32xf32>, !xetile.tile<32x16xbf16>, !xetile.tile<16x32xi8>
    }
    %tbias = xetile.init_tile %bias[0, %n] : memref<1x?xf32> -> !xetile.tile<1x32xf32>
    %bias0 = xetile.load_tile %tbias : !xetile.tile<1x32xf32> -> vector<1x32xf32>
    %biases = xetile.broadcast %bias0 [0] : vector<1x32xf32> -> vector<32x32xf32>
    %z = arith.addf %r#0, %biases : vector<32x32xf32>
    %half = arith.constant dense<0.5> : vector<32x32xf32>
    %one = arith.constant dense<1.0> : vector<32x32xf32>
    %root = arith.constant dense<0.70710678> : vector<32x32xf32>
    %scaled_z = arith.mulf %z, %root : vector<32x32xf32>
    %erf = math.erf %scaled_z : vector<32x32xf32>
    %plus = arith.addf %erf, %one : vector<32x32xf32>
    %halved = arith.mulf %z, %half : vector<32x32xf32>
    %gelu = arith.mulf %halved, %plus : vector<32x32xf32>
    %out = arith.truncf %gelu : vector<32x32xf32> to vector<32x32xbf16>
    %c = xetile.init_tile %C[%m, %n] : memref<?x?xbf16> -> !xetile.tile<32x32xbf16>
    xetile.store_tile %out, %c : vector<32x32xbf16>, !xetile.tile<32x32xbf16>
    gpu.return
  }
}
