// Ops that a target does not support are reported, with the alternative.

// RUN: xegpu-opt %s --xegpu-verify-target=target=pvc --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @block_of_too_many_rows(%m: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
    // expected-error @+2 {{'xegpu.load_nd' op a 2D block load has 1 to 32 rows, not 64}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xf32> -> vector<64x16xf32>
    // expected-error @+2 {{'xegpu.store_nd' op a 2D block store has 1 to 8 rows, not 64}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    xegpu.store_nd %x, %d {mode = vc} : vector<64x16xf32>, !xegpu.tensor_desc<64x16xf32>
    // expected-error @+2 {{'xegpu.prefetch_nd' op a 2D block load has 1 to 32 rows, not 64}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    xegpu.prefetch_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @block_too_wide(%m: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x32xf32>
    // expected-error @+2 {{a 2D block load has rows of 4 to 64 bytes over all its blocks, not 128}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x32xf32> -> vector<8x32xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @block_too_narrow(%m: memref<64x64xf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x1xf16>
    %x = arith.constant dense<0.0> : vector<8x1xf16>
    // expected-error @+2 {{a 2D block store has rows of 4 to 64 bytes over all its blocks, not 2}}
    // expected-note @+1 {{widen the block, or use store_scatter}}
    xegpu.store_nd %x, %d {mode = vc} : vector<8x1xf16>, !xegpu.tensor_desc<8x1xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @three_blocks(%m: memref<64x64xf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc}
      : memref<64x64xf16> -> !xegpu.tensor_desc<8x8xf16, #xegpu.tdesc_attr<array_length = 3>>
    // expected-error @+2 {{a 2D block load moves 1, 2, 4 blocks of 16 bits, not 3}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %x = xegpu.load_nd %d {mode = vc}
      : !xegpu.tensor_desc<8x8xf16, #xegpu.tdesc_attr<array_length = 3>> -> vector<3x8x8xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @transposition_of_halves(%m: memref<64x64xf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    // expected-error @+3 {{a 2D block load cannot transpose elements of 16 bits}}
    // expected-note @+2 {{it transposes 32 and 64 bits}}
    // expected-note @+1 {{xegpu-legalize transposes units of 32 bits, as with transpose_bit_width = 32, and splits them}}
    %x = xegpu.load_nd %d {transpose = [1, 0], mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<16x8xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @transposition_within_a_unit(%m: memref<64x64xf16>, %two: index) kernel {
    %c2 = arith.constant 2 : index
    %even = arith.muli %two, %c2 : index
    %d = xegpu.create_nd_tdesc %m[0, %even] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %x = xegpu.load_nd %d {transpose = [1, 0], transpose_bit_width = 32, mode = vc}
      : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    %e = xegpu.update_nd_offset %d, [0, 1] {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    // expected-error @+2 {{transposes units of 32 bits, but is not known to begin at a multiple of them}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %y = xegpu.load_nd %e {transpose = [1, 0], transpose_bit_width = 32, mode = vc}
      : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @blocks_of_three_dimensions(%m: memref<4x64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0, 0] {mode = vc} : memref<4x64x64xf32> -> !xegpu.tensor_desc<2x8x16xf32>
    // expected-error @+2 {{of a block of 3 dimensions is not supported}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<2x8x16xf32> -> vector<2x8x16xf32>
    %e = xegpu.create_nd_tdesc %m[0, 0, 0] {mode = vc} : memref<4x64x64xf32> -> !xegpu.tensor_desc<1x8x16xf32>
    // expected-error @+2 {{cannot transpose a block of 3 dimensions}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %y = xegpu.load_nd %e {transpose = [0, 2, 1], mode = vc} : !xegpu.tensor_desc<1x8x16xf32> -> vector<1x16x8xf32>
    // expected-error @+2 {{cannot transpose by [1, 0, 2]}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %z = xegpu.load_nd %e {transpose = [1, 0, 2], mode = vc} : !xegpu.tensor_desc<1x8x16xf32> -> vector<8x1x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @long_line(%m: memref<4096xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0] {mode = vc}
      : memref<4096xf32> -> !xegpu.tensor_desc<100xf32, #xegpu.tdesc_attr<boundary_check = false>>
    // expected-error @+2 {{of 400 bytes requires more than one message}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %x = xegpu.load_nd %d {mode = vc}
      : !xegpu.tensor_desc<100xf32, #xegpu.tdesc_attr<boundary_check = false>> -> vector<100xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @elements_without_registers(%m: memref<64x128xi4>) kernel {
    // expected-error @+2 {{elements of type i4 have no register type}}
    // expected-note @+1 {{supported widths are 8, 16, 32 and 64 bits; pack narrower elements}}
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x128xi4> -> !xegpu.tensor_desc<8x16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @blocks_in_shared_memory() kernel {
    %m = memref.alloc() : memref<64x64xf32, 3>
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc}
      : memref<64x64xf32, 3> -> !xegpu.tensor_desc<8x16xf32, #xegpu.tdesc_attr<memory_scope = slm>>
    // expected-error @+2 {{of a 2D block in shared local memory is not supported}}
    // expected-note @+1 {{use 1D descriptors of its rows, or a scattered descriptor}}
    %x = xegpu.load_nd %d {mode = vc}
      : !xegpu.tensor_desc<8x16xf32, #xegpu.tdesc_attr<memory_scope = slm>> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @surfaces(%narrow: memref<64x8xf32>, %odd: memref<64x65xi8>, %pitch: memref<64x50xf16>,
                     %behind: memref<64x64xf32, strided<[64, 1], offset: 8>>, %address: i64) kernel {
    // expected-error @+2 {{has rows of 32 bytes, but 2D block messages need 64}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %0 = xegpu.create_nd_tdesc %narrow[0, 0] {mode = vc} : memref<64x8xf32> -> !xegpu.tensor_desc<8x8xf32>
    // expected-error @+2 {{has rows of 65 bytes, but 2D block messages need a multiple of 4}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %1 = xegpu.create_nd_tdesc %odd[0, 0] {mode = vc} : memref<64x65xi8> -> !xegpu.tensor_desc<8x8xi8>
    // expected-error @+2 {{has a pitch of 100 bytes, but 2D block messages need a multiple of 16}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %2 = xegpu.create_nd_tdesc %pitch[0, 0] {mode = vc} : memref<64x50xf16> -> !xegpu.tensor_desc<8x8xf16>
    // expected-error @+2 {{begins 32 bytes behind its buffer, but 2D block messages need a multiple of 64}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %3 = xegpu.create_nd_tdesc %behind[0, 0] {mode = vc}
      : memref<64x64xf32, strided<[64, 1], offset: 8>> -> !xegpu.tensor_desc<8x8xf32>
    // expected-error @+1 {{has a pitch of 128 bytes, less than its rows' 256}}
    %4 = xegpu.create_nd_tdesc %address[0, 0], [64, 64], [32, 1] {mode = vc} : i64 -> !xegpu.tensor_desc<8x8xf32>
    // expected-error @+1 {{has 33554432 rows, but 2D block messages have at most 16777216}}
    %5 = xegpu.create_nd_tdesc %address[0, 0], [33554432, 64], [64, 1] {mode = vc}
      : i64 -> !xegpu.tensor_desc<8x8xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @cache_hints(%m: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-error @+2 {{cache hints uncached/streaming for L1/L3 are not supported}}
    // expected-note @+1 {{supported pairs are uncached/uncached, uncached/cached, cached/uncached, cached/cached, streaming/uncached, streaming/cached, read_invalidate/cached; a level without a hint is cached}}
    %x = xegpu.load_nd %d {mode = vc, l1_hint = uncached, l3_hint = streaming}
      : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    // expected-error @+2 {{cache hints write_back/uncached for L1/L3 are not supported}}
    // expected-note @+1 {{a level without a hint is written back}}
    xegpu.store_nd %x, %d {mode = vc, l1_hint = write_back, l3_hint = uncached}
      : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @matrices(%a: vector<16x8x2xf16>, %b: vector<8x16x2xf16>, %wide: vector<8x32x2xf16>,
                     %long: vector<8x16x2xf16>, %deep: vector<16x16x2xf16>, %ten: vector<8x10x2xf16>,
                     %bytes: vector<8x4x4xf8E5M2>, %others: vector<4x16x4xf8E5M2>) kernel {
    // expected-error @+2 {{has 16 rows, but the repeat count is at most 8}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %0 = xegpu.dpas %a, %b {mode = vc} : vector<16x8x2xf16>, vector<8x16x2xf16> -> vector<16x16xf32>
    // expected-error @+2 {{has 32 columns, but target 'pvc' requires 16}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %1 = xegpu.dpas %a, %wide {mode = vc} : vector<16x8x2xf16>, vector<8x32x2xf16> -> vector<16x32xf32>
    // expected-error @+2 {{multiplies 32 elements along K, but hf x hf takes 16 at a time}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %2 = xegpu.dpas %long, %deep {mode = vc} : vector<8x16x2xf16>, vector<16x16x2xf16> -> vector<8x16xf32>
    // expected-error @+2 {{has 10 columns, but target 'pvc' requires 16}}
    // expected-note @+1 {{pad B to a multiple of 16 columns}}
    %3 = xegpu.dpas %a, %ten {mode = vc} : vector<16x8x2xf16>, vector<8x10x2xf16> -> vector<16x10xf32>
    // expected-error @+2 {{target 'pvc' does not support precision bf8}}
    // expected-note @+1 {{it supports u2, s2, u4, s4, u8, s8, bf, hf, tf32}}
    %4 = xegpu.dpas %bytes, %others {mode = vc} : vector<8x4x4xf8E5M2>, vector<4x16x4xf8E5M2> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @gathers(%m: memref<4096xf32>, %o: vector<32xindex>, %mask: vector<32xi1>) kernel {
    %0 = xegpu.create_tdesc %m, %o {mode = vc, chunk_size_per_lane = 8}
      : memref<4096xf32>, vector<32xindex> -> !xegpu.tensor_desc<32x8xf32, #xegpu.scattered>
    // expected-error @+2 {{as 'lsc_load' moves 16 registers, but target pvc moves at most 8}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %x = xegpu.load_gather %0, %mask {mode = vc}
      : !xegpu.tensor_desc<32x8xf32, #xegpu.scattered>, vector<32xi1> -> vector<8x32xf32>
    // expected-error @+2 {{as 'lsc_store' moves 16 registers, but target pvc moves at most 8}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    xegpu.store_scatter %x, %0, %mask {mode = vc}
      : vector<8x32xf32>, !xegpu.tensor_desc<32x8xf32, #xegpu.scattered>, vector<32xi1>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @atomics_of_small_floats(%m: memref<4096xf8E4M3FN>, %o: vector<16xindex>, %mask: vector<16xi1>,
                                    %v: vector<16xf8E4M3FN>) kernel {
    %0 = xegpu.create_tdesc %m, %o {mode = vc}
      : memref<4096xf8E4M3FN>, vector<16xindex> -> !xegpu.tensor_desc<16xf8E4M3FN, #xegpu.scattered>
    %1 = xegpu.atomic_rmw assign, %v, %0, %mask {mode = vc}
      : vector<16xf8E4M3FN>, !xegpu.tensor_desc<16xf8E4M3FN, #xegpu.scattered>, vector<16xi1> -> vector<16xf8E4M3FN>
    %2 = xegpu.atomic_rmw addf, %v, %0, %mask {mode = vc}
      : vector<16xf8E4M3FN>, !xegpu.tensor_desc<16xf8E4M3FN, #xegpu.scattered>, vector<16xi1> -> vector<16xf8E4M3FN>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @barriers() kernel {
    // expected-error @+1 {{allocates 33 named barriers, but target 'pvc' supports at most 32}}
    xegpu.alloc_nbarrier 33
    %id = arith.constant 40 : i8
    %one = arith.constant 1 : i8
    %many = arith.constant 100 : i8
    // expected-error @+2 {{uses named barrier 40, but the kernel allocates 33}}
    // expected-note @+1 {{numbers begin at 0}}
    %0 = xegpu.init_nbarrier %id, %one : i8, i8 -> !xegpu.nbarrier
    // expected-error @+1 {{number of threads must be 1 to 64, but got 100}}
    %1 = xegpu.init_nbarrier %one, %many : i8, i8 -> !xegpu.nbarrier
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @no_barriers(%id: i8) kernel {
    // expected-error @+2 {{uses a named barrier, but the kernel allocates none}}
    // expected-note @+1 {{use xegpu.alloc_nbarrier}}
    %0 = xegpu.init_nbarrier %id, %id : i8, i8 -> !xegpu.nbarrier
    gpu.return
  }
}

// -----

// Memory of other spaces is no shared local memory.
gpu.module @m {
  gpu.func @private_memory() workgroup(%w: memref<16384xf32, 3>) private(%p: memref<16384xf32, 5>) kernel {
    %0 = memref.alloc() : memref<16384xf32, 3>
    %1 = memref.alloca() : memref<16384xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @shared_memory() kernel {
    %0 = memref.alloc() : memref<16384xf32, 3>
    %1 = memref.alloc() : memref<16384xf32, 3>
    // expected-error @+2 {{requires 129 KiB of shared local memory, but target 'pvc' has 128 KiB}}
    // expected-note @+1 {{allocations in shared local memory are live until the workgroup ends}}
    %2 = memref.alloc() : memref<1xi8, 3>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @numbers(%e4m3: vector<16xf8E4M3FN>, %e5m2: vector<16xf8E5M2>, %double: vector<16xf64>,
                    %i: vector<16xi64>, %f: vector<16xf32>) kernel {
    %0 = arith.extf %e4m3 : vector<16xf8E4M3FN> to vector<16xf32>
    // expected-error @+2 {{arithmetic on f8E4M3FN is not supported}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %1 = arith.addf %e4m3, %e4m3 : vector<16xf8E4M3FN>
    // expected-error @+2 {{arithmetic on f8E5M2 is not supported}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %2 = arith.addf %e5m2, %e5m2 : vector<16xf8E5M2>
    // expected-error @+2 {{of f64 has no vISA instruction}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %3 = math.exp %double : vector<16xf64>
    %4 = arith.divsi %i, %i : vector<16xi64>
    %5 = arith.remf %f, %f : vector<16xf32>
    // expected-error @+2 {{of f64 has no vISA instruction}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %6 = math.floor %double : vector<16xf64>
    gpu.return
  }
}

// -----

// Legal ops are accepted, and ops outside of kernels are not checked.
gpu.module @m {
  gpu.func @legal(%m: memref<64x64xf16>, %a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<32x16xf16, #xegpu.tdesc_attr<array_length = 2>>
    %x = xegpu.load_nd %d {vnni_axis = 0, mode = vc} : !xegpu.tensor_desc<32x16xf16, #xegpu.tdesc_attr<array_length = 2>> -> vector<2x16x16x2xf16>
    %y = xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
    gpu.return
  }
}
func.func @host(%f: f64) -> f64 {
  %0 = math.exp %f : f64
  return %0 : f64
}

// -----

gpu.module @m {
  gpu.func @exponents(%v: vector<16xf8E8M0FNU>, %t: !xegpu.tensor_desc<16xf8E4M3B11FNUZ, #xegpu.scattered>, %m: vector<16xi1>, %w: vector<16xf8E4M3B11FNUZ>) kernel {
    // expected-error @below {{'arith.addf' op arithmetic on f8E8M0FNU is not supported}}
    // expected-note @below {{convert to f16 or f32 in memory}}
    %x = arith.addf %v, %v : vector<16xf8E8M0FNU>
    // expected-error @below {{'arith.fptosi' op conversion between integers and f8E8M0FNU is not supported}}
    // expected-note @below {{convert in memory}}
    %y = arith.fptosi %v : vector<16xf8E8M0FNU> to vector<16xi32>
    // expected-error @below {{'xegpu.atomic_rmw' op arithmetic on f8E4M3B11FNUZ is not supported}}
    // expected-note @below {{update f16 or f32, or use 'assign'}}
    %z = xegpu.atomic_rmw addf, %w, %t, %m {mode = vc} : vector<16xf8E4M3B11FNUZ>, !xegpu.tensor_desc<16xf8E4M3B11FNUZ, #xegpu.scattered>, vector<16xi1> -> vector<16xf8E4M3B11FNUZ>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @barrier_of_the_workgroup() kernel {
    gpu.barrier
    // expected-error @below {{'xegpu.alloc_nbarrier' op allocates 32 named barriers, but target 'pvc' supports at most 32, of which gpu.barrier takes one}}
    xegpu.alloc_nbarrier 32
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @scaled(%a: vector<8x32xf8E4M3FN>, %b: vector<8x16x4xf8E4M3FN>, %s: vector<8x1xf8E8M0FNU>) kernel {
    // expected-error @below {{'xegpu.dpas_mx' op requires bdpas, which target 'pvc' does not support}}
    // expected-note @below {{target 'cri' supports it (--target=cri); on others multiply bf16 factors by their scales, and use xegpu.dpas}}
    %d = xegpu.dpas_mx %a, %b scale_a = %s {mode = vc} : (vector<8x32xf8E4M3FN>, vector<8x16x4xf8E4M3FN>, vector<8x1xf8E8M0FNU>) -> vector<8x16xf32>
    gpu.return
  }
}
