// RUN: xegpu-opt %s --xegpu-simt-to-vc --split-input-file --verify-diagnostics

// expected-error @+2 {{'gpu.func' op has xegpu.subgroup_size = 12, but a subgroup has 8, 16 or 32 work items}}
gpu.module @k {
  gpu.func @size() kernel attributes {xegpu.subgroup_size = 12 : i32} {
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @barrier() kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c3 = arith.constant 3 : index
    %lane = gpu.lane_id
    %some = arith.cmpi ult, %lane, %c3 : index
    // expected-note @below {{they diverge here}}
    scf.if %some {
      // expected-error @below {{'gpu.barrier' op is a barrier where work items of a subgroup may have diverged}}
      gpu.barrier
    }
    gpu.return
  }
}

// -----

#wide = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
gpu.module @k {
  gpu.func @load(%m: memref<8x16xf32>) kernel {
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = xegpu.create_nd_tdesc %m[0, 0] : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32, #wide>
    // expected-note @below {{they diverge here}}
    scf.for %i = %c0 to %lane step %c1 {
      // expected-error @below {{'xegpu.load_nd' op works on a block of the whole subgroup where work items of a subgroup may have diverged}}
      %x = xegpu.load_nd %t : !xegpu.tensor_desc<8x16xf32, #wide> -> vector<8x1xf32>
    }
    gpu.return
  }
}

// -----

#wide = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
gpu.module @k {
  gpu.func @offset(%m: memref<8x64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %lane = gpu.lane_id
    // expected-error @below {{'xegpu.create_nd_tdesc' op requires a uniform value of type index across the subgroup}}
    // expected-note @below {{this value depends on the lane, or on a block distributed by an sg_map}}
    %t = xegpu.create_nd_tdesc %m[0, %lane] : memref<8x64xf32> -> !xegpu.tensor_desc<8x16xf32, #wide>
    gpu.return
  }
}

// -----

#eight = #xegpu.sg_map<wi_layout = [1, 8], wi_data = [1, 1]>
gpu.module @k {
  gpu.func @lanes(%m: memref<8x64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    // expected-error @below {{'xegpu.create_nd_tdesc' op distributes its block to 8 work items, but a subgroup has 16}}
    %t = xegpu.create_nd_tdesc %m[0, 0] : memref<8x64xf32> -> !xegpu.tensor_desc<8x16xf32, #eight>
    gpu.return
  }
}

// -----

gpu.module @k {
  // expected-note @below {{this op makes the kernel a SIMT kernel}}
  gpu.func @mode(%m: memref<8x64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    // expected-error @below {{'xegpu.create_nd_tdesc' op is in VC mode, but the kernel is in SIMT mode}}
    // expected-note @below {{remove 'mode = vc'}}
    %t = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<8x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @gather(%a: i64) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %o = arith.constant dense<0> : vector<16xindex>
    // expected-error @below {{'xegpu.create_tdesc' op is supported only in VC mode}}
    // expected-note @below {{use memref.load, memref.store or memref.atomic_rmw in SIMT mode}}
    %t = xegpu.create_tdesc %a, %o {mode = vc} : i64, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    gpu.return
  }
}

// -----

#wide = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
#two = #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 1]>
#other = #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>
#pairs = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>
gpu.module @k {
  gpu.func @maps(%a: memref<8x16xf16>, %b: memref<16x16xf16>, %c: memref<8x16xf32>) kernel {
    %ta = xegpu.create_nd_tdesc %a[0, 0] : memref<8x16xf16> -> !xegpu.tensor_desc<8x16xf16, #wide>
    %tb = xegpu.create_nd_tdesc %b[0, 0] : memref<16x16xf16> -> !xegpu.tensor_desc<16x16xf16, #pairs>
    %tc = xegpu.create_nd_tdesc %c[0, 0] : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32, #two>
    %td = xegpu.create_nd_tdesc %c[0, 0] : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32, #other>
    %x = xegpu.load_nd %ta : !xegpu.tensor_desc<8x16xf16, #wide> -> vector<8x1xf16>
    %y = xegpu.load_nd %tb {vnni_axis = 0} : !xegpu.tensor_desc<16x16xf16, #pairs> -> vector<8x1x2xf16>
    %z = xegpu.load_nd %tc : !xegpu.tensor_desc<8x16xf32, #two> -> vector<4x2xf32>
    // expected-error @below {{'xegpu.dpas' op has a result whose elements are distributed in 2 different ways}}
    // expected-note @below {{its loads and stores have different sg_maps, so the fragment's distribution is ambiguous}}
    %d = xegpu.dpas %z, %x, %y : vector<4x2xf32>, vector<8x1xf16>, vector<8x1x2xf16> -> vector<4x2xf32>
    xegpu.store_nd %d, %td : vector<4x2xf32>, !xegpu.tensor_desc<8x16xf32, #other>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @private() kernel attributes {xegpu.subgroup_size = 16 : i32} {
    // expected-error @below {{'memref.alloca' op private memory of a work item is not supported}}
    // expected-note @below {{use shared local memory, which is memory space 3}}
    %m = memref.alloca() : memref<4xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @width(%m: memref<?xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %lane = gpu.lane_id
    %x = memref.load %m[%lane] : memref<?xf32>
    // expected-error @below {{'gpu.shuffle' op width must be a constant power of two up to the subgroup's 16 lanes}}
    // expected-note @below {{the lanes are divided into groups of the width}}
    %y, %v = gpu.shuffle xor %x, %c1, %c5 : f32
    gpu.return
  }
}

// -----

gpu.module @k {
  func.func @outside(%x: i32) -> i32 {
    return %x : i32
  }
  gpu.func @calls(%x: i32) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    // expected-error @below {{'func.call' op calls 'outside'}}
    // expected-note @below {{run xegpu-inline first, which inlines functions that have a body}}
    %y = func.call @outside(%x) : (i32) -> i32
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @forgotten(%m: memref<8x64xf32>) kernel {
    // expected-error @below {{'xegpu.create_nd_tdesc' op is in VC mode, but the kernel is in SIMT mode}}
    // expected-note @below {{remove 'mode = vc'}}
    %t = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<8x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-note @below {{this op makes the kernel a SIMT kernel}}
    %x = xegpu.load_nd %t : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  // expected-error @+1 {{'gpu.func' op has xegpu.subgroup_size = "16", but a subgroup has 8, 16 or 32 work items}}
  gpu.func @text() kernel attributes {xegpu.subgroup_size = "16"} {
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @nibbles(%m: memref<64xi4>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    // expected-error @+2 {{'memref.load' op accesses elements of type i4, which have no addresses}}
    // expected-note @+1 {{xegpu-emulate-narrow-types packs them into bytes}}
    %x = memref.load %m[%t] : memref<64xi4>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @whole_matrices(%a: vector<8x16xf16>, %b: vector<16x16xf16>) kernel {
    // expected-error @below {{'xegpu.dpas' op has fragments of vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32> in a work item, which are no matrices of 16 columns in 16 lanes}}
    // expected-note @below {{a work item has MxK, KxN and MxN elements, divided by the lanes; whole matrices need 'mode = vc'}}
    %d = xegpu.dpas %a, %b : vector<8x16xf16>, vector<16x16xf16> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  // expected-error @below {{'gpu.func' op SIMT kernels must have structured control flow}}
  // expected-note @below {{run xegpu-lift-cf first, which converts branches to scf ops}}
  gpu.func @branches(%c: i1) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    cf.cond_br %c, ^a, ^a
  ^a:
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @choice(%a: memref<64xf32>, %b: memref<64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %c3 = arith.constant 3 : index
    %c = arith.cmpi ult, %t, %c3 : index
    // expected-error @below {{'arith.select' op has a divergent value of type memref<64xf32>}}
    // expected-note @below {{descriptors and memrefs must be uniform}}
    %m = arith.select %c, %a, %b : memref<64xf32>
    %x = memref.load %m[%t] : memref<64xf32>
    memref.store %x, %a[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @lanes(%a: memref<64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %c3 = arith.constant 3 : index
    %i3 = arith.constant 3 : i32
    %c = arith.cmpi ult, %t, %c3 : index
    // expected-note @below {{they diverge here}}
    scf.if %c {
      %x = memref.load %a[%t] : memref<64xf32>
      // expected-error @below {{'gpu.subgroup_broadcast' op tells lanes of others where work items of a subgroup may have diverged}}
      %y = gpu.subgroup_broadcast %x, specific_lane %i3 : f32
      memref.store %y, %a[%t] : memref<64xf32>
    }
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @reduced(%a: memref<64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %x = memref.load %a[%t] : memref<64xf32>
    // expected-error @below {{'gpu.all_reduce' op region must be a single arith op on both arguments}}
    // expected-note @below {{specify the operation, for example gpu.all_reduce add}}
    %y = gpu.all_reduce %x {
    ^bb(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      %s = arith.mulf %r, %q : f32
      gpu.yield %s : f32
    } : (f32) -> f32
    memref.store %y, %a[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @of_one_argument(%a: memref<64xf32>, %w: f32) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %x = memref.load %a[%t] : memref<64xf32>
    // expected-error @below {{'gpu.all_reduce' op region must be a single arith op on both arguments}}
    // expected-note @below {{specify the operation, for example gpu.all_reduce add}}
    %y = gpu.all_reduce %x {
    ^bb(%p: f32, %q: f32):
      %r = arith.addf %p, %p : f32
      gpu.yield %r : f32
    } : (f32) -> f32
    memref.store %y, %a[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @of_another_op(%a: memref<64xf32>, %w: f32) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %x = memref.load %a[%t] : memref<64xf32>
    // expected-error @below {{'gpu.all_reduce' op region must be a single arith op on both arguments}}
    // expected-note @below {{specify the operation, for example gpu.all_reduce add}}
    %y = gpu.all_reduce %x {
    ^bb(%p: f32, %q: f32):
      %r = arith.subf %p, %q : f32
      gpu.yield %r : f32
    } : (f32) -> f32
    memref.store %y, %a[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @vectors(%a: memref<64xf32>, %o: memref<64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %x = vector.load %a[%t] : memref<64xf32>, vector<4xf32>
    // expected-error @below {{'gpu.subgroup_reduce' op of vectors cannot be lowered}}
    // expected-note @below {{reduce element by element}}
    %y = gpu.subgroup_reduce add %x : (vector<4xf32>) -> vector<4xf32>
    vector.store %y, %o[%t] : memref<64xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @ids(%a: memref<64xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    // expected-error @below {{'memref.generic_atomic_rmw' op has gpu.thread_id in its region}}
    // expected-note @below {{compute the value before the op}}
    %old = memref.generic_atomic_rmw %a[%t] : memref<64xi32> {
    ^bb0(%x: i32):
      %u = gpu.thread_id x
      %v = arith.index_cast %u : index to i32
      %y = arith.addi %x, %v : i32
      memref.atomic_yield %y : i32
    }
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @elements(%a: memref<64xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %v = vector.load %a[%t] : memref<64xi32>, vector<2xi32>
    // expected-error @below {{'memref.generic_atomic_rmw' op uses a value of type vector<2xi32> in its region}}
    // expected-note @below {{extract the elements before the op}}
    %old = memref.generic_atomic_rmw %a[%t] : memref<64xi32> {
    ^bb0(%x: i32):
      %e = vector.extract %v[1] : i32 from vector<2xi32>
      %y = arith.muli %x, %e : i32
      memref.atomic_yield %y : i32
    }
    gpu.return
  }
}

// -----

gpu.module @k {
  gpu.func @complex(%a: memref<64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %x = memref.load %a[%t] : memref<64xf32>
    // expected-error @below {{'complex.create' op is not supported in SIMT kernels}}
    // expected-note @below {{there is no lowering of 'complex.create' in SIMT mode}}
    %y = complex.create %x, %x : complex<f32>
    gpu.return
  }
}
