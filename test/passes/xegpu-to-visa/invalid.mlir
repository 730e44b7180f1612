// RUN: xegpu-opt %s --xegpu-to-visa --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @cast(%x: i64, %y: i64) kernel {
    // expected-error @below {{'builtin.unrealized_conversion_cast' op is supported only to convert an address to a memref, or f32 to tf32}}
    // expected-note @below {{use one operand of type i64}}
    %m = builtin.unrealized_conversion_cast %x, %y : i64, i64 to memref<16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @cast(%x: i64) kernel {
    // expected-error @below {{'builtin.unrealized_conversion_cast' op is supported only to convert an address to a memref, or f32 to tf32}}
    // expected-note @below {{use one operand of type i64}}
    %m = builtin.unrealized_conversion_cast %x : i64 to f64
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @strides(%x: i64) kernel {
    // expected-error @below {{'builtin.unrealized_conversion_cast' op result must have known strides and offset, but got memref<4x16xf32, strided<[?, 1]>>}}
    %m = builtin.unrealized_conversion_cast %x : i64 to memref<4x16xf32, strided<[?, 1]>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @offset(%x: i64) kernel {
    // expected-error @below {{'builtin.unrealized_conversion_cast' op result must have known strides and offset, but got memref<4xf32, strided<[1], offset: ?>>}}
    %m = builtin.unrealized_conversion_cast %x : i64 to memref<4xf32, strided<[1], offset: ?>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @which(%m: memref<?x?xf32>, %o: memref<1xindex>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'memref.dim' op requires a constant dimension}}
    %n = memref.dim %m, %i : memref<?x?xf32>
    memref.store %n, %o[%c0] : memref<1xindex>
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @llvm.genx.srnd(vector<32xf32>, vector<16xi32>) -> vector<32xf16>
  gpu.func @fewer(%x: vector<32xf32>, %random: vector<16xi32>) kernel {
    // expected-error @below {{'func.call' op values, random bits and result must have the same shape}}
    %y = func.call @llvm.genx.srnd(%x, %random) : (vector<32xf32>, vector<16xi32>) -> vector<32xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @llvm.genx.srnd(vector<32xf32>) -> vector<32xf16>
  gpu.func @none(%x: vector<32xf32>) kernel {
    // expected-error @below {{'func.call' op values, random bits and result must have the same shape}}
    %y = func.call @llvm.genx.srnd(%x) : (vector<32xf32>) -> vector<32xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @llvm.genx.srnd(vector<32xf16>, vector<32xi32>) -> vector<32xf8E5M2>
  gpu.func @wide(%x: vector<32xf16>, %random: vector<32xi32>) kernel {
    // expected-error @below {{'func.call' op cannot round f16 to f8E5M2 with random bits of i32}}
    // expected-note @below {{srnd rounds f32 to f16 with random bits of f32, i32, i16; f16 to f8E5M2 with random bits of f16, i16, i8}}
    %y = func.call @llvm.genx.srnd(%x, %random) : (vector<32xf16>, vector<32xi32>) -> vector<32xf8E5M2>
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @llvm.genx.srnd(vector<32xf32>, vector<32xi32>) -> vector<32xbf16>
  gpu.func @narrow(%x: vector<32xf32>, %random: vector<32xi32>) kernel {
    // expected-error @below {{'func.call' op cannot round f32 to bf16 with random bits of i32}}
    // expected-note @below {{srnd rounds f32 to f16}}
    %y = func.call @llvm.genx.srnd(%x, %random) : (vector<32xf32>, vector<32xi32>) -> vector<32xbf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @nowhere(vector<32xf32>)
  gpu.func @undefined(%x: vector<32xf32>) kernel {
    // expected-error @below {{'func.call' op calls undefined function 'nowhere'}}
    // expected-note @below {{functions that need no body are llvm.genx.srnd}}
    func.call @nowhere(%x) : (vector<32xf32>) -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @mode(%m: memref<8x16xf32>) kernel {
    // expected-error @below {{'xegpu.create_nd_tdesc' op in SIMT mode cannot be lowered to vISA}}
    // expected-note @below {{add 'mode = vc', or run xegpu-simt-to-vc first}}
    %d = xegpu.create_nd_tdesc %m[0, 0] : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{elements of type i4 have no register type}}
  gpu.func @narrow(%x: vector<4x4xi4>) kernel {
    gpu.return
  }
}
