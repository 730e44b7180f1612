// RUN: xegpu-opt %s --xegpu-emulate-narrow-types --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @read(%m: memref<8x16xi4>, %i: index) kernel {
    %z = arith.constant 0 : i4
    %m1 = vector.create_mask %i : vector<16xi1>
    // expected-error @below {{'vector.transfer_read' op of memref<8x16xi4> has a mask, or dimensions in another order}}
    // expected-note @below {{read bytes, or whole rows}}
    %x = vector.transfer_read %m[%i, %i], %z, %m1 : memref<8x16xi4>, vector<16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @write(%m: memref<8x16xi4>, %i: index) kernel {
    %x = arith.constant dense<1> : vector<8xi4>
    // expected-error @below {{'vector.transfer_write' op of memref<8x16xi4> has a mask, or dimensions in another order}}
    // expected-note @below {{write bytes, or whole rows}}
    vector.transfer_write %x, %m[%i, %i] {permutation_map = affine_map<(d0, d1) -> (d0)>} : vector<8xi4>, memref<8x16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @row(%m: memref<8x16xi4>, %i: index) kernel {
    %z = arith.constant 0 : i4
    // expected-error @below {{'vector.transfer_read' op may reach out of bounds, and does not begin and end at bytes}}
    // expected-note @below {{read rows that begin and end at bytes}}
    %x = vector.transfer_read %m[%i, %i], %z : memref<8x16xi4>, vector<16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @row(%m: memref<8x16xi4>, %i: index) kernel {
    %x = arith.constant dense<1> : vector<16xi4>
    // expected-error @below {{'vector.transfer_write' op may reach out of bounds, and does not begin and end at bytes}}
    // expected-note @below {{rows of a store begin at bytes: let the column be a multiple of 2, for example by arith.muli}}
    vector.transfer_write %x, %m[%i, %i] : vector<16xi4>, memref<8x16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @stride(%a: i64, %n: index, %s: index) kernel {
    // expected-error @below {{'xegpu.create_nd_tdesc' op has an innermost stride that is not known to be 1, so that elements do not fill bytes}}
    %d = xegpu.create_nd_tdesc %a[0, 0], [64, 64], [64, %s] {mode = vc} : i64 -> !xegpu.tensor_desc<8x16xi4>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xi4> -> vector<8x16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @shape(%a: i64) kernel {
    // expected-error @below {{'xegpu.create_nd_tdesc' op has shape of 63 elements, which do not fill bytes}}
    // expected-note @below {{let it be a multiple of 2}}
    %d = xegpu.create_nd_tdesc %a[0, 0], [64, 63], [64, 1] {mode = vc} : i64 -> !xegpu.tensor_desc<8x16xi4>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xi4> -> vector<8x16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @pitch(%a: i64) kernel {
    // expected-error @below {{'xegpu.create_nd_tdesc' op has strides of 66 elements, which do not fill bytes}}
    // expected-note @below {{let it be a multiple of 4}}
    %d = xegpu.create_nd_tdesc %a[0, 0], [64, 64], [66, 1] {mode = vc} : i64 -> !xegpu.tensor_desc<8x16xi2>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xi2> -> vector<8x16xi2>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @view(%m: memref<64x64xi4>, %s: index) kernel {
    // expected-error @below {{'memref.subview' op has an innermost stride that is not known to be 1, so that elements do not fill bytes}}
    %v = memref.subview %m[0, 0] [8, 16] [1, %s] : memref<64x64xi4> to memref<8x16xi4, strided<[64, ?]>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @view(%m: memref<64x64xi4>) kernel {
    // expected-error @below {{'memref.subview' op has offsets that are not known to be whole bytes}}
    // expected-note @below {{let them be multiples of 2 elements}}
    %v = memref.subview %m[0, 1] [8, 16] [1, 1] : memref<64x64xi4> to memref<8x16xi4, strided<[64, 1], offset: 1>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @view(%m: memref<4096xi4>) kernel {
    // expected-error @below {{'memref.reinterpret_cast' op has strides that are not known to be whole bytes}}
    // expected-note @below {{let them be multiples of 2 elements}}
    %v = memref.reinterpret_cast %m to offset: [0], sizes: [8, 16], strides: [63, 1] : memref<4096xi4> to memref<8x16xi4, strided<[63, 1]>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @extent(%m: memref<?x?xi4>, %i: index, %o: memref<1xindex>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'memref.dim' op requires a constant dimension}}
    %n = memref.dim %m, %i : memref<?x?xi4>
    memref.store %n, %o[%c0] : memref<1xindex>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @shared(%n: index) kernel {
    // expected-error @below {{'memref.alloc' op has extents of elements of less than a byte that are not known}}
    %m = memref.alloc(%n) : memref<?xi4, 3>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @odd(%m: memref<8x16xi4>, %o: memref<6xi8>, %i: index) kernel {
    %x = arith.constant dense<1> : vector<3xi4>
    // expected-error @below {{'vector.bitcast' op requires whole bytes, but got vector<3xi4>}}
    %y = vector.bitcast %x : vector<3xi4> to vector<6xi2>
    %z = arith.extui %y : vector<6xi2> to vector<6xi8>
    vector.store %z, %o[%i] : memref<6xi8>, vector<6xi8>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{has memref<8x16xi4, strided<[32, 2]>>, whose innermost stride is not 1, so elements do not fill bytes}}
  // expected-note @below {{use a type whose innermost stride is 1, such as strided<[?, 1]>}}
  gpu.func @apart(%m: memref<8x16xi4, strided<[32, 2]>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{has memref<8x15xi4>, whose rows end within a byte: 15 elements of i4}}
  gpu.func @rows(%m: memref<8x15xi4>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @shape(%m: memref<?x?xi4>, %n: index) kernel {
    // expected-error @below {{'xegpu.create_nd_tdesc' op has shape not known to be whole bytes}}
    // expected-note @below {{let it be a multiple of 2}}
    %d = xegpu.create_nd_tdesc %m[0, 0], [%n, %n], [64, 1] {mode = vc} : memref<?x?xi4> -> !xegpu.tensor_desc<8x16xi4>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xi4> -> vector<8x16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @pitch(%m: memref<?x?xi2>, %n: index) kernel {
    // expected-error @below {{'xegpu.create_nd_tdesc' op has strides not known to be whole bytes}}
    // expected-note @below {{let it be a multiple of 4}}
    %d = xegpu.create_nd_tdesc %m[0, 0], [%n, 64], [%n, 1] {mode = vc} : memref<?x?xi2> -> !xegpu.tensor_desc<8x16xi2>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xi2> -> vector<8x16xi2>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @view(%m: memref<64x64xi4>, %n: index) kernel {
    // expected-error @below {{'memref.subview' op has sizes that are not known to be whole bytes}}
    // expected-note @below {{let them be multiples of 2 elements}}
    %v = memref.subview %m[0, 0] [8, %n] [1, 1] : memref<64x64xi4> to memref<8x?xi4, strided<[64, 1]>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @rows(%m: memref<?xi2>, %n: index) kernel {
    // expected-error @below {{'memref.expand_shape' op has rows that are not known to be whole bytes}}
    // expected-note @below {{let them be multiples of 4 elements}}
    %v = memref.expand_shape %m [[0, 1]] output_shape [2, %n] : memref<?xi2> into memref<2x?xi2>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @block(%m: memref<8x16xi4>) kernel {
    // expected-error @below {{'xegpu.create_nd_tdesc' op has rows of 3 elements of i4, which do not fill bytes}}
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<8x16xi4> -> !xegpu.tensor_desc<8x3xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @update(%m: memref<16xf4E2M1FN>, %i: index) kernel {
    %x = memref.load %m[%i] : memref<16xf4E2M1FN>
    // expected-error @below {{'memref.atomic_rmw' op addf of memref<16xf4E2M1FN> is not supported}}
    %y = memref.atomic_rmw addf %x, %m[%i] : (f4E2M1FN, memref<16xf4E2M1FN>) -> f4E2M1FN
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @cast(%m: memref<16xi4>, %i: index) kernel {
    %x = vector.load %m[%i] : memref<16xi4>, vector<3xi4>
    // expected-error @below {{'vector.bitcast' op requires whole bytes, but got vector<3xi4>}}
    %y = vector.bitcast %x : vector<3xi4> to vector<6xi2>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @lanes(%m: memref<16x16xi4>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] : memref<16x16xi4>
      -> !xegpu.tensor_desc<8x16xi4, #xegpu.sg_map<wi_layout = [1, 2], wi_data = [1, 8]>>
    // expected-error @below {{'xegpu.load_nd' op moves single elements of i4, which work items do not have whole bytes of}}
    // expected-note @below {{let the matrix be packed in memory as the product needs it, or load it in VC mode}}
    %x = xegpu.load_nd %d {vnni_axis = 1} : !xegpu.tensor_desc<8x16xi4, #xegpu.sg_map<wi_layout = [1, 2], wi_data = [1, 8]>>
      -> vector<8x1x8xi4>
    gpu.return
  }
}
