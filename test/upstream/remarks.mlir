// RUN: xegpu-opt %s --import-upstream --remarks --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @hints(%a: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-remark @+1 {{'xegpu.load_nd' op is imported without its cache hints: cache hints read_invalidate/read_invalidate for L1/L3 are not supported}}
    %v = xegpu.load_nd %d[0, 0] <{l1_hint = #xegpu.cache_hint<read_invalidate>, l2_hint = #xegpu.cache_hint<read_invalidate>}> : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    // expected-remark @+1 {{'xegpu.load_nd' op is imported without its cache hints: cache hints cached/read_invalidate for L1/L3 are not supported}}
    %w = xegpu.load_nd %d[0, 0] <{l1_hint = #xegpu.cache_hint<cached>, l2_hint = #xegpu.cache_hint<read_invalidate>}> : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %x = arith.addf %v, %w : vector<8x16xf32>
    // expected-remark @+1 {{'xegpu.store_nd' op is imported without its cache hints: cached is not a hint of a write}}
    xegpu.store_nd %v, %d[0, 0] <{l1_hint = #xegpu.cache_hint<cached>}> : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %x, %d[0, 0] <{l1_hint = #xegpu.cache_hint<write_back>, l2_hint = #xegpu.cache_hint<write_back>}> : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @packed(%a: memref<64xf16>, %o: memref<64xf16>) kernel {
    %d = xegpu.create_nd_tdesc %a : memref<64xf16> -> !xegpu.tensor_desc<16xf16>
    // expected-remark @+1 {{'xegpu.load_nd' op is imported without packed, which is for blocks of two dimensions}}
    %v = xegpu.load_nd %d[0] <{packed}> : !xegpu.tensor_desc<16xf16> -> vector<16xf16>
    %e = xegpu.create_nd_tdesc %o : memref<64xf16> -> !xegpu.tensor_desc<16xf16>
    xegpu.store_nd %v, %e[0] : vector<16xf16>, !xegpu.tensor_desc<16xf16>
    gpu.return
  }
}
