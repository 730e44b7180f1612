// RUN: xegpu-opt %s --split-input-file --import-upstream --verify-diagnostics

gpu.module @m {
  llvm.func @other(f32) -> f32
  llvm.func spir_kernelcc @k(%x: f32) {
    // expected-error @+1 {{'llvm.call' op cannot be imported: @other is not a known function}}
    %y = llvm.call @other(%x) : (f32) -> f32
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @_Z16get_sub_group_idv()
  llvm.func spir_kernelcc @k() {
    // expected-error @+1 {{'llvm.call' op cannot be imported: @_Z16get_sub_group_idv is not a known function}}
    llvm.call @_Z16get_sub_group_idv() : () -> ()
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @_Z12get_group_idj(i32)
  llvm.func spir_kernelcc @k(%x: i32) {
    // expected-error @+1 {{'llvm.call' op cannot be imported: @_Z12get_group_idj is not a known function}}
    llvm.call @_Z12get_group_idj(%x) : (i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @intel_sub_group_f16_f16_matrix_mad_k16(vector<8xi16>, vector<8xi32>, vector<8xf32>)
  llvm.func spir_kernelcc @k(%a: vector<8xi16>, %b: vector<8xi32>, %c: vector<8xf32>) {
    // expected-error @+1 {{'llvm.call' op cannot be imported: @intel_sub_group_f16_f16_matrix_mad_k16 is not a known function}}
    llvm.call @intel_sub_group_f16_f16_matrix_mad_k16(%a, %b, %c) : (vector<8xi16>, vector<8xi32>, vector<8xf32>) -> ()
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @sub_group_shuffle(i32, i32)
  llvm.func spir_kernelcc @k(%x: i32) {
    // expected-error @+1 {{'llvm.call' op cannot be imported: @sub_group_shuffle is not a known function}}
    llvm.call @sub_group_shuffle(%x, %x) : (i32, i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @exp(f32)
  llvm.func spir_kernelcc @k(%x: f32) {
    // expected-error @+1 {{'llvm.call' op cannot be imported: @exp is not a known function}}
    llvm.call @exp(%x) : (f32) -> ()
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func spir_kernelcc @k(%n: i32) {
    // expected-error @+1 {{'llvm.alloca' op cannot be imported: private memory can be accessed at constant offsets only; 'llvm.getelementptr' uses it otherwise}}
    %p = llvm.alloca %n x f32 : (i32) -> !llvm.ptr
    %q = llvm.getelementptr %p[%n] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func spir_kernelcc @k(%a: !llvm.ptr<1>, %w: i32) {
    // expected-error @+1 {{'xevm.blockload2d' op cannot be imported: 16 lanes cannot divide a transposed block of 8x8 elements of 32 bits}}
    %v = xevm.blockload2d %a, %w, %w, %w, %w, %w <{elem_size_in_bits = 32 : i32, tile_width = 8 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, transpose = true, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<4xi32>
    llvm.return
  }
}

// -----

gpu.module @m {
  gpu.func @k() kernel {
    %n = llvm.mlir.constant(16 : i32) : i32
    %a = llvm.alloca %n x f32 : (i32) -> !llvm.ptr<3>
    %same = llvm.addrspacecast %a : !llvm.ptr<3> to !llvm.ptr<3>
    // expected-error @+1 {{'llvm.addrspacecast' op cannot be imported: only addresses of global memory can be cast to generic addresses}}
    %b = llvm.addrspacecast %same : !llvm.ptr<3> to !llvm.ptr<4>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @+1 {{'llvm.func' op cannot be imported: its subgroups have 32 work items; its blocks require 16}}
  llvm.func spir_kernelcc @k() attributes {intel_reqd_sub_group_size = 32 : i32} {
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func spir_kernelcc @k(%a: !llvm.ptr<1>, %i: i32) {
    %m = llvm.mlir.constant(dense<true> : vector<4xi1>) : vector<4xi1>
    %z = llvm.mlir.zero : vector<4xf32>
    // expected-error @+1 {{'llvm.intr.masked.load' op cannot be imported: no op of vector or XeGPU does the same}}
    %v = llvm.intr.masked.load %a, %m, %z {alignment = 4 : i32} : (!llvm.ptr<1>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
    llvm.return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: !llvm.ptr<1>) kernel {
      gpu.return
    }
  }
  func.func @main(%p: !llvm.ptr<1>) {
    %c1 = arith.constant 1 : index
    // expected-error @+1 {{'gpu.launch_func' op cannot be imported: its argument 0 is a pointer that is not that of a memref}}
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !llvm.ptr<1>)
    return
  }
}

// -----

gpu.module @m {
  // expected-error @+1 {{'gpu.func' op cannot be imported: it has an argument in shared local memory, whose size is known only at launch}}
  gpu.func @k(%a: !llvm.ptr<3>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  llvm.func spir_kernelcc @k(%a: !llvm.ptr<1>) {
    // expected-error @below {{'builtin.unrealized_conversion_cast' op cannot be imported: it casts several values}}
    %p, %q = builtin.unrealized_conversion_cast %a, %a : !llvm.ptr<1>, !llvm.ptr<1> to i64, i64
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func spir_kernelcc @k(%a: !llvm.ptr<1>, %w: i32) {
    // expected-error @below {{'xevm.blockload2d' op transpose and pack_register exclude each other}}
    %v = xevm.blockload2d %a, %w, %w, %w, %w, %w <{elem_size_in_bits = 32 : i32, tile_width = 8 : i32, tile_height = 16 : i32, v_blocks = 1 : i32, transpose = true, pack_register = true}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi32>
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func spir_kernelcc @k(%a: !llvm.ptr<1>, %w: i32) {
    // expected-error @below {{'xevm.blockload2d' op cannot be imported: 16 lanes cannot divide a block of 1x8 elements of 16 bits}}
    %v = xevm.blockload2d %a, %w, %w, %w, %w, %w <{elem_size_in_bits = 16 : i32, tile_width = 8 : i32, tile_height = 1 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<1xi16>
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func spir_kernelcc @k(%a: !llvm.ptr<1>, %w: i32) {
    // expected-error @below {{'xevm.blockload2d' op cannot be imported: 16 lanes cannot divide a packed block of 32x8 elements of 8 bits}}
    %v = xevm.blockload2d %a, %w, %w, %w, %w, %w <{elem_size_in_bits = 8 : i32, tile_width = 8 : i32, tile_height = 32 : i32, v_blocks = 1 : i32, transpose = false, pack_register = true}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<4xi32>
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @pair() -> !llvm.struct<(i32, i32)> {
    %s = llvm.mlir.undef : !llvm.struct<(i32, i32)>
    // expected-error @below {{'llvm.return' op cannot be imported: it passes on a !llvm.struct<(i32, i32)>}}
    llvm.return %s : !llvm.struct<(i32, i32)>
  }
  llvm.func spir_kernelcc @k() {
    %s = llvm.call @pair() : () -> !llvm.struct<(i32, i32)>
    llvm.return
  }
}
