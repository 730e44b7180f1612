// Attention without the matrix of scores in memory (flash attention): a workgroup has 64 queries, 8 for each subgroup,
// and goes through the keys and values 32 at a time with a running maximum and sum of each row.

// RUN: xegpu-run %s zeros:bf16:64x64 zeros:bf16:128x64 ones:bf16:128x64 zeros:f32:64x64 --block 8 --registers 256 --print 3 | FileCheck %s
// CHECK: {{\[\[}}1. 1. 1.

#rows = #xetile.wg_map<sg_layout = [8, 1], sg_data = [8, 32]>
#out = #xetile.wg_map<sg_layout = [8, 1], sg_data = [8, 64]>

gpu.module @kernels {
  gpu.func @attention(%Q: memref<?x64xbf16>, %K: memref<?x64xbf16>, %V: memref<?x64xbf16>, %O: memref<?x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %keys = memref.dim %K, %c0 : memref<?x64xbf16>
    %b = gpu.block_id x
    %m = arith.muli %b, %c64 : index
    %tq = xetile.init_tile %Q[%m, 0] : memref<?x64xbf16> -> !xetile.tile<64x64xbf16>
    %q = xetile.load_tile %tq : !xetile.tile<64x64xbf16> -> vector<64x64xbf16>
    %k0 = xetile.init_tile %K[0, 0] : memref<?x64xbf16> -> !xetile.tile<32x64xbf16>
    %v0 = xetile.init_tile %V[0, 0] : memref<?x64xbf16> -> !xetile.tile<32x64xbf16>
    %low = arith.constant dense<-1.0e30> : vector<64x1xf32>
    %none = arith.constant dense<0.0> : vector<64x1xf32>
    %nothing = arith.constant dense<0.0> : vector<64x64xf32>
    %eighth = arith.constant dense<0.125> : vector<64x32xf32>
    %r:5 = scf.for %at = %c0 to %keys step %c32 iter_args(%most = %low, %sum = %none, %acc = %nothing, %tk = %k0, %tv = %v0)
        -> (vector<64x1xf32>, vector<64x1xf32>, vector<64x64xf32>, !xetile.tile<32x64xbf16>, !xetile.tile<32x64xbf16>) {
      %k = xetile.load_tile %tk : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
      %kt = xetile.transpose %k, [1, 0] : vector<32x64xbf16> -> vector<64x32xbf16>
      %s = xetile.tile_mma %q, %kt {wg_map_c = #rows} : vector<64x64xbf16>, vector<64x32xbf16> -> vector<64x32xf32>
      %scores = arith.mulf %s, %eighth : vector<64x32xf32>
      %here = xetile.reduction <maximumf>, %scores [1] : vector<64x32xf32> -> vector<64x1xf32>
      %new = arith.maximumf %most, %here : vector<64x1xf32>
      %news = xetile.broadcast %new [1] : vector<64x1xf32> -> vector<64x32xf32>
      %shifted = arith.subf %scores, %news : vector<64x32xf32>
      %p = math.exp %shifted : vector<64x32xf32>
      %psum = xetile.reduction <add>, %p [1] : vector<64x32xf32> -> vector<64x1xf32>
      %change = arith.subf %most, %new : vector<64x1xf32>
      %factor = math.exp %change : vector<64x1xf32>
      %kept = arith.mulf %sum, %factor : vector<64x1xf32>
      %total = arith.addf %kept, %psum : vector<64x1xf32>
      %factors = xetile.broadcast %factor [1] : vector<64x1xf32> -> vector<64x64xf32>
      %faded = arith.mulf %acc, %factors : vector<64x64xf32>
      %weights = arith.truncf %p : vector<64x32xf32> to vector<64x32xbf16>
      %v = xetile.load_tile %tv : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
      %next = xetile.tile_mma %weights, %v, %faded {wg_map_c = #out}
        : vector<64x32xbf16>, vector<32x64xbf16>, vector<64x64xf32> -> vector<64x64xf32>
      %tk1 = xetile.update_tile_offset %tk, [32, 0] : !xetile.tile<32x64xbf16>
      %tv1 = xetile.update_tile_offset %tv, [32, 0] : !xetile.tile<32x64xbf16>
      scf.yield %new, %total, %next, %tk1, %tv1
        : vector<64x1xf32>, vector<64x1xf32>, vector<64x64xf32>, !xetile.tile<32x64xbf16>, !xetile.tile<32x64xbf16>
    }
    %sums = xetile.broadcast %r#1 [1] : vector<64x1xf32> -> vector<64x64xf32>
    %o = arith.divf %r#2, %sums : vector<64x64xf32>
    %to = xetile.init_tile %O[%m, 0] : memref<?x64xf32> -> !xetile.tile<64x64xf32>
    xetile.store_tile %o, %to : vector<64x64xf32>, !xetile.tile<64x64xf32>
    gpu.return
  }
}
