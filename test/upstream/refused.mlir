// RUN: xegpu-opt %s --import-upstream --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @matrices(%a: memref<2x8x16xf32>) kernel {
    // expected-error @+2 {{'xegpu.create_nd_tdesc' op cannot be imported: lanes divide the last two dimensions, and 2x8x16 has others}}
    // expected-note @+1 {{load one matrix at a time}}
    %d = xegpu.create_nd_tdesc %a : memref<2x8x16xf32> -> !xegpu.tensor_desc<2x8x16xf32>
    %v = xegpu.load_nd %d[0, 0, 0] : !xegpu.tensor_desc<2x8x16xf32> -> vector<16xf32>
    gpu.return
  }
}

// -----

// expected-error @+1 {{'func.func' op cannot be imported: kernels are functions of a gpu.module, and other functions have a body}}
func.func private @declared(!xegpu.tensor_desc<8x16xf32>)

// -----

gpu.module @kernels {
  gpu.func @unknown(%a: memref<64x64xf32>) kernel {
    // expected-error @+1 {{unknown operation 'xegpu.load_and'; did you mean 'xegpu.load_nd'?}}
    %v = xegpu.load_and %a : memref<64x64xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @scales(%a: vector<8x32xf8E5M2>, %b: vector<32x16xf8E5M2>, %c: vector<8x16xf32>, %p: vector<4x1xf8E8M0FNU>) kernel {
    // expected-error @+1 {{'xegpu.dpas_mx' op scale_a must have the rank of its factor and 8 along its dimension, not 4x1}}
    %d = xegpu.dpas_mx %a, %b, %c scale_a = %p : (vector<8x32xf8E5M2>, vector<32x16xf8E5M2>, vector<8x16xf32>, vector<4x1xf8E8M0FNU>) -> vector<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @rules(%a: memref<64x64xf32>, %v: vector<8x16xf16>) kernel {
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-error @+1 {{'xegpu.store_nd' op the elements of vector<8x16xf16> differ from the descriptor's, f32}}
    xegpu.store_nd %v, %d : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @lanes(%a: memref<64x64xf32>, %o: memref<64xf32>) kernel {
    // expected-error @+2 {{'gpu.thread_id' op cannot be imported: 'memref.load' uses it, which would differ between the lanes of a subgroup}}
    // expected-note @+1 {{divide it by a multiple of 16, or use gpu.subgroup_id}}
    %x = gpu.thread_id x
    %c = memref.load %o[%x] : memref<64xf32>
    %s = vector.broadcast %c : f32 to vector<8x16xf32>
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %s, %d : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @halves(%a: memref<64x64xf32>, %o: memref<64xf32>) kernel {
    %c8 = arith.constant 8 : index
    // expected-error @+2 {{'gpu.thread_id' op cannot be imported: 'arith.divui' uses it}}
    // expected-note @+1 {{divide it by a multiple of 16, or use gpu.subgroup_id}}
    %x = gpu.thread_id x
    %h = arith.divui %x, %c8 : index
    %d = xegpu.create_nd_tdesc %a[%h, 0] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %d : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op cannot be imported: known_block_size has 24 work items in x}}
  gpu.func @block(%a: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 24, 1, 1>} {
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @extents(%a: memref<64x64xf32>) kernel {
    // expected-error @+1 {{its strides [32, 1] differs from that of memref<64x64xf32>}}
    %d = xegpu.create_nd_tdesc %a, shape : [64, 64], strides : [32, 1] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @shape(%a: memref<64x64xf32>) kernel {
    // expected-error @+2 {{'gpu.thread_id' op cannot be imported: layouts determine the subgroups of a workgroup}}
    // expected-note @+1 {{set known_block_size, or use gpu.subgroup_id}}
    %y = gpu.thread_id y
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>>
    %v = xegpu.load_nd %d[%y, 0] : !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>> -> vector<32x32xf32>
    xegpu.store_nd %v, %d[0, 0] : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @shape0(%a: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
    // expected-error @+2 {{'gpu.thread_id' op cannot be imported: layouts determine the subgroups of a workgroup}}
    // expected-note @+1 {{set known_block_size, or use gpu.subgroup_id}}
    %y = gpu.thread_id x
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>>
    %v = xegpu.load_nd %d[%y, 0] : !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>> -> vector<32x32xf32>
    xegpu.store_nd %v, %d[0, 0] : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @shape1(%a: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 2>} {
    // expected-error @+2 {{'gpu.thread_id' op cannot be imported: layouts determine the subgroups of a workgroup}}
    // expected-note @+1 {{set known_block_size, or use gpu.subgroup_id}}
    %y = gpu.thread_id x
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>>
    %v = xegpu.load_nd %d[%y, 0] : !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>> -> vector<32x32xf32>
    xegpu.store_nd %v, %d[0, 0] : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @shape2(%a: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 16, 4, 1>} {
    // expected-error @+2 {{'gpu.thread_id' op cannot be imported: layouts determine the subgroups of a workgroup}}
    // expected-note @+1 {{set known_block_size, or use gpu.subgroup_id}}
    %y = gpu.thread_id y
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>>
    %v = xegpu.load_nd %d[%y, 0] : !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>> -> vector<32x32xf32>
    xegpu.store_nd %v, %d[0, 0] : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32, #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 32]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @shuffle(%a: memref<64x64xf16>, %v: vector<2xf16>) kernel {
    // expected-error @+2 {{'xegpu.lane_shuffle' op cannot be imported: it is for kernels of lanes}}
    // expected-note @+1 {{give --level=lane if this is one}}
    %s = xegpu.lane_shuffle %v pack : vector<2xf16>
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %b = xegpu.load_nd %d : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @wider(%v: vector<16xf16>) kernel {
    // expected-error @+1 {{'xegpu.truncf' op requires a type wider than the result's, vector<16xf32>, but got vector<16xf16>}}
    %s = xegpu.truncf %v : vector<16xf16> -> vector<16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @generic(%a: memref<64x64xf16>, %x: index) kernel {
    // expected-error @+1 {{segment sizes do not match the number of values}}
    %0 = "xegpu.create_nd_tdesc"(%a, %x) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (memref<64x64xf16>, index) -> !xegpu.tensor_desc<16x16xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @generic(%t: !xegpu.tensor_desc<8x16xf16>, %x: index) kernel {
    // expected-error @+1 {{the number of operands of 'offsets' does not match its constants}}
    %0 = "xegpu.load_nd"(%t, %x) <{const_offsets = array<i64: 0, 0>}> : (!xegpu.tensor_desc<8x16xf16>, index) -> vector<8x16xf16>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @another_shape(%v: vector<8x16xf32>) kernel {
    // expected-error @+1 {{'xegpu.convert_layout' op result must have the source's type vector<8x16xf32>, but got vector<16x8xf32>}}
    %w = "xegpu.convert_layout"(%v) : (vector<8x16xf32>) -> vector<16x8xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @lane_descriptor(%a: memref<64xf32>, %o: vector<1xindex>) -> !xegpu.tensor_desc<1xf32, #xegpu.scatter_tdesc_attr<>> {
    %d = xegpu.create_tdesc %a, %o : memref<64xf32>, vector<1xindex> -> !xegpu.tensor_desc<1xf32, #xegpu.scatter_tdesc_attr<>>
    // expected-error @+1 {{'gpu.return' op cannot be imported: it uses a value of 'xegpu.create_tdesc', which only accesses of memory can use}}
    gpu.return %d : !xegpu.tensor_desc<1xf32, #xegpu.scatter_tdesc_attr<>>
  }
}

// -----

gpu.module @kernels {
  gpu.func @unfinished(%a: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %e = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-error @+1 {{'builtin.unrealized_conversion_cast' op cannot be imported: a pass left it, and it does not say how its descriptors become one another}}
    %w = builtin.unrealized_conversion_cast %d, %e : !xegpu.tensor_desc<8x16xf32>, !xegpu.tensor_desc<8x16xf32> to !xegpu.tensor_desc<8x32xf32>
    xegpu.prefetch_nd %w[0, 0] : !xegpu.tensor_desc<8x32xf32>
    gpu.return
  }
}
