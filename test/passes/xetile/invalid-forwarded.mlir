// RUN: xegpu-opt %s --xetile-wg-to-sg --verify-diagnostics

#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>
#columns = #xetile.wg_map<sg_layout = [1, 4], sg_data = [32, 16]>
!t = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 64]>>>

gpu.module @m {
  gpu.func @merged(%X: memref<32x64xf32>, %which: i1) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !t
    %x = xetile.load_tile %t : !t -> vector<32x64xf32>
    %zero = arith.constant dense<0.0> : vector<32x64xf32>
    %by_rows = math.absf %x {map = #rows} : vector<32x64xf32>
    %by_columns = math.absf %zero {map = #columns} : vector<32x64xf32>
    // expected-error @below {{'scf.if' op forwards a value with map #xetile.wg_map<sg_layout = [1, 4], sg_data = [32, 16]> as #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>}}
    // expected-note @below {{run xetile-infer-layout, which inserts conversions}}
    %v = scf.if %which -> (vector<32x64xf32>) {
      scf.yield %by_rows : vector<32x64xf32>
    } else {
      scf.yield %by_columns : vector<32x64xf32>
    }
    xetile.store_tile %v, %t : vector<32x64xf32>, !t
    gpu.return
  }
}
