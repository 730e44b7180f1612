// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-infer-layout,xetile-wg-to-sg)' --split-input-file --verify-diagnostics

#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>
#columns = #xetile.wg_map<sg_layout = [1, 4], sg_data = [32, 16]>

// A tile gets its map from its uses. Tiles are not converted: a load with another map reads other elements.

gpu.module @m {
  gpu.func @two_maps(%X: memref<32x64xf32>, %Y: memref<32x64xf32>, %which: i1) kernel {
    %x = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    %y = xetile.init_tile %Y[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    %zero = arith.constant dense<0.0> : vector<32x64xf32>
    %by_rows = math.absf %zero {map = #rows} : vector<32x64xf32>
    %by_columns = math.absf %zero {map = #columns} : vector<32x64xf32>
    xetile.store_tile %by_rows, %x : vector<32x64xf32>, !xetile.tile<32x64xf32>
    xetile.store_tile %by_columns, %y : vector<32x64xf32>, !xetile.tile<32x64xf32>
    // expected-error @below {{'scf.if' op merges tiles with different maps, #xetile.wg_map<sg_layout = [1, 4], sg_data = [32, 16]> and #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>}}
    // expected-note @below {{set the same wg_map on both; vectors stored to them are converted}}
    %t = scf.if %which -> (!xetile.tile<32x64xf32>) {
      scf.yield %x : !xetile.tile<32x64xf32>
    } else {
      scf.yield %y : !xetile.tile<32x64xf32>
    }
    xetile.prefetch_tile %t : !xetile.tile<32x64xf32>
    gpu.return
  }
}

// -----

!t = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 64]>>>

gpu.module @m {
  // expected-error @below {{'gpu.func' op has an argument of type vector<32x64xf32>, which cannot be divided among subgroups}}
  gpu.func @argument(%X: memref<32x64xf32>, %v: vector<32x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !t
    xetile.store_tile %v, %t : vector<32x64xf32>, !t
    gpu.return
  }
}
