// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-infer-layout,xetile-wg-to-sg,xetile-to-xegpu,xegpu-dce,xegpu-legalize)' --split-input-file --verify-diagnostics

!t = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 64]>>>

gpu.module @m {
  gpu.func @open(%X: memref<32x64xf32>, %Y: memref<32x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !t
    // expected-error @below {{'xetile.init_tile' op cannot infer a tile's map, which assigns elements to subgroups}}
    // expected-note @below {{set a wg_map on a tile or on xetile.tile_mma, or 'map' on the op}}
    %u = xetile.init_tile %Y[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    xetile.prefetch_tile %u : !xetile.tile<32x64xf32>
    xetile.prefetch_tile %t : !t
    gpu.return
  }
}

// -----

!t = !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [65536, 4294967296], sg_data = [16, 16]>>>

gpu.module @m {
  gpu.func @most(%X: memref<64x64xf32>) kernel {
    // expected-note @below {{use a smaller sg_layout and more workgroups}}
    // expected-error @below {{'xetile.init_tile' op is divided by #xetile.wg_map<sg_layout = [65536, 4294967296], sg_data = [16, 16]> among 281474976710656 subgroups, but a workgroup has at most 64}}
    %t = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !t
    %v = xetile.load_tile %t : !t -> vector<64x64xf32>
    xetile.store_tile %v, %t : vector<64x64xf32>, !t
    gpu.return
  }
}

// -----

!t = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 64]>>>
!u = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 1], sg_data = [4, 64]>>>

gpu.module @m {
  gpu.func @counts(%X: memref<32x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !t
    // expected-error @below {{'xetile.init_tile' op is divided by #xetile.wg_map<sg_layout = [8, 1], sg_data = [4, 64]> among 8 subgroups, but by #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]> it is 4}}
    %u = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !u
    gpu.return
  }
}

// -----

!t = !xetile.tile<256x256xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [64, 256]>>>

gpu.module @m {
  // expected-error @below {{'gpu.func' op exchanges 262144 bytes through shared local memory, but target pvcxt has 131072}}
  // expected-note @below {{use maps under which subgroups own more of the elements that they use, or smaller tiles}}
  gpu.func @too_much(%X: memref<256x256xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<256x256xf32> -> !t
    %v = xetile.load_tile %t : !t -> vector<256x256xf32>
    %w = xetile.transpose %v, [1, 0] {map = <sg_layout = [4, 1], sg_data = [64, 256]>} : vector<256x256xf32> -> vector<256x256xf32>
    xetile.store_tile %w, %t : vector<256x256xf32>, !t
    gpu.return
  }
}

// -----

!t = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [8, 32]>>>

gpu.module @m {
  gpu.func @other_ops(%X: memref<32x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !t
    %v = xetile.load_tile %t : !t -> vector<32x64xf32>
    %c0 = arith.constant 0 : index
    // expected-error @below {{'vector.store' op on vectors cannot be divided among subgroups}}
    vector.store %v, %X[%c0, %c0] : memref<32x64xf32>, vector<32x64xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has an argument of type !xetile.tile<32x64xf32>}}
  // expected-note @below {{create the tile in the kernel}}
  gpu.func @outside(%t: !xetile.tile<32x64xf32>) kernel {
    %v = xetile.load_tile %t : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @either(%X: ui64, %Y: memref<32x63xf32>, %which: i1) kernel {
    %t = scf.if %which -> (!xetile.tile<5x3xf32>) {
      // expected-error @below {{'xegpu.create_nd_tdesc' op has an address of type ui64, but control flow passes its descriptor on as one with those of other sources, and no 2D block message serves it: its tensor has a pitch of 252 bytes, but 2D block messages need a multiple of 16}}
      // expected-note @below {{use addresses of type i64 in control flow that also passes memrefs}}
      %x = xetile.init_tile %X[0, 0], [32, 63], [63, 1] : ui64 -> !xetile.tile<5x3xf32>
      scf.yield %x : !xetile.tile<5x3xf32>
    } else {
      %y = xetile.init_tile %Y[0, 0] : memref<32x63xf32> -> !xetile.tile<5x3xf32>
      scf.yield %y : !xetile.tile<5x3xf32>
    }
    %v = xetile.load_tile %t : !xetile.tile<5x3xf32> -> vector<5x3xf32>
    %y = xetile.init_tile %Y[0, 0] : memref<32x63xf32> -> !xetile.tile<5x3xf32>
    xetile.store_tile %v, %y : vector<5x3xf32>, !xetile.tile<5x3xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has unstructured control flow, which is not supported with tiles}}
  // expected-note @below {{run xegpu-lift-cf first, which converts branches to scf ops}}
  gpu.func @jumps(%X: memref<32x64xf32>) kernel {
    %x = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    cf.br ^bb1
  ^bb1:
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has xetile.unaligned = array<i64: 0, 1>, which does not count arguments}}
  // expected-note @below {{write 'xetile.unaligned = array<i64: 0, 2>', of its 1 arguments from 0}}
  gpu.func @beyond(%X: memref<32x64xf32>) kernel attributes {xetile.unaligned = array<i64: 0, 1>} {
    %x = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    xetile.prefetch_tile %x : !xetile.tile<32x64xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has xetile.unaligned = true, which does not count arguments}}
  // expected-note @below {{write 'xetile.unaligned = array<i64: 0, 2>', of its 1 arguments from 0}}
  gpu.func @no_list(%X: memref<32x64xf32>) kernel attributes {xetile.unaligned = true} {
    %x = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    xetile.prefetch_tile %x : !xetile.tile<32x64xf32>
    gpu.return
  }
}
