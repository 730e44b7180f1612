// RUN: xegpu-opt %s --xetile-to-xegpu-pipeline='target=dg2' --verify-diagnostics
// RUN: xegpu-opt %s --xetile-infer-layout --xetile-wg-to-sg='target=pvc' > %t

// Values that subgroups exchange must fit the shared local memory of the pipeline's target.

!t = !xetile.tile<128x192xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [32, 192]>>>
!u = !xetile.tile<192x128xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [48, 128]>>>

gpu.module @m {
  // expected-error @below {{'gpu.func' op exchanges 98304 bytes through shared local memory, but target dg2 has 65536}}
  // expected-note @below {{use maps under which subgroups own more of the elements that they use, or smaller tiles}}
  gpu.func @too_much(%X: memref<128x192xf32>, %Y: memref<192x128xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<128x192xf32> -> !t
    %u = xetile.init_tile %Y[0, 0] : memref<192x128xf32> -> !u
    %v = xetile.load_tile %t : !t -> vector<128x192xf32>
    %w = xetile.transpose %v, [1, 0] : vector<128x192xf32> -> vector<192x128xf32>
    xetile.store_tile %w, %u : vector<192x128xf32>, !u
    gpu.return
  }
}
