// Gathering rows of a table: lane i of 16 reads row index[i] and writes it as row i of the result, with all
// elements of a row in one message, as many as a chunk can have. Lanes whose index is negative do nothing.

// RUN: xegpu-run %s --kernel rows_of_1 arange:f32:64 arange:i32:16 zeros:f32:16 --print 2 | FileCheck %s --check-prefix=ONE
// ONE: [ 0. 1. 2. 3. 4. 5. 6. 7. 8. 9. 10. 11. 12. 13. 14. 15.]
// RUN: xegpu-run %s --kernel rows_of_3 arange:f32:192 full:i32:16:5 zeros:f32:48 --print 2 | FileCheck %s --check-prefix=THREE
// THREE: [15. 16. 17. 15. 16. 17. 15.
// RUN: xegpu-run %s --kernel rows_of_8 arange:f32:512 full:i32:16:-1 zeros:f32:128 --print 2 | FileCheck %s --check-prefix=NONE
// NONE: [0. 0. 0. 0.
// NONE-NOT: 1

!lanes = vector<16xindex>
!mask = vector<16xi1>
!index_desc = !xegpu.tensor_desc<16xi32, #xegpu.tdesc_attr<boundary_check = false>>

gpu.module @kernels {
  gpu.func @rows_of_1(%table: memref<64xf32>, %index: memref<16xi32>, %out: memref<16xf32>) kernel {
    %index_desc = xegpu.create_nd_tdesc %index[0] {mode = vc} : memref<16xi32> -> !index_desc
    %rows_i32 = xegpu.load_nd %index_desc {mode = vc} : !index_desc -> vector<16xi32>
    %rows = arith.index_cast %rows_i32 : vector<16xi32> to !lanes
    %zero = arith.constant dense<0> : !lanes
    %wanted = arith.cmpi sge, %rows, %zero : !lanes
    %elements = arith.constant dense<1> : !lanes
    %lanes = vector.step : !lanes
    %places = arith.muli %rows, %elements : !lanes
    %own = arith.muli %lanes, %elements : !lanes
    %from = xegpu.create_tdesc %table, %places {mode = vc} : memref<64xf32>, !lanes
      -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    %to = xegpu.create_tdesc %out, %own {mode = vc} : memref<16xf32>, !lanes
      -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    %row = xegpu.load_gather %from, %wanted {mode = vc}
      : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, !mask -> vector<16xf32>
    xegpu.store_scatter %row, %to, %wanted {mode = vc}
      : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, !mask
    gpu.return
  }

  gpu.func @rows_of_2(%table: memref<128xf32>, %index: memref<16xi32>, %out: memref<32xf32>) kernel {
    %index_desc = xegpu.create_nd_tdesc %index[0] {mode = vc} : memref<16xi32> -> !index_desc
    %rows_i32 = xegpu.load_nd %index_desc {mode = vc} : !index_desc -> vector<16xi32>
    %rows = arith.index_cast %rows_i32 : vector<16xi32> to !lanes
    %zero = arith.constant dense<0> : !lanes
    %wanted = arith.cmpi sge, %rows, %zero : !lanes
    %elements = arith.constant dense<2> : !lanes
    %lanes = vector.step : !lanes
    %places = arith.muli %rows, %elements : !lanes
    %own = arith.muli %lanes, %elements : !lanes
    %from = xegpu.create_tdesc %table, %places {chunk_size_per_lane = 2, mode = vc} : memref<128xf32>, !lanes
      -> !xegpu.tensor_desc<16x2xf32, #xegpu.scattered>
    %to = xegpu.create_tdesc %out, %own {chunk_size_per_lane = 2, mode = vc} : memref<32xf32>, !lanes
      -> !xegpu.tensor_desc<16x2xf32, #xegpu.scattered>
    %row = xegpu.load_gather %from, %wanted {mode = vc}
      : !xegpu.tensor_desc<16x2xf32, #xegpu.scattered>, !mask -> vector<2x16xf32>
    xegpu.store_scatter %row, %to, %wanted {mode = vc}
      : vector<2x16xf32>, !xegpu.tensor_desc<16x2xf32, #xegpu.scattered>, !mask
    gpu.return
  }

  gpu.func @rows_of_3(%table: memref<192xf32>, %index: memref<16xi32>, %out: memref<48xf32>) kernel {
    %index_desc = xegpu.create_nd_tdesc %index[0] {mode = vc} : memref<16xi32> -> !index_desc
    %rows_i32 = xegpu.load_nd %index_desc {mode = vc} : !index_desc -> vector<16xi32>
    %rows = arith.index_cast %rows_i32 : vector<16xi32> to !lanes
    %zero = arith.constant dense<0> : !lanes
    %wanted = arith.cmpi sge, %rows, %zero : !lanes
    %elements = arith.constant dense<3> : !lanes
    %lanes = vector.step : !lanes
    %places = arith.muli %rows, %elements : !lanes
    %own = arith.muli %lanes, %elements : !lanes
    %from = xegpu.create_tdesc %table, %places {chunk_size_per_lane = 3, mode = vc} : memref<192xf32>, !lanes
      -> !xegpu.tensor_desc<16x3xf32, #xegpu.scattered>
    %to = xegpu.create_tdesc %out, %own {chunk_size_per_lane = 3, mode = vc} : memref<48xf32>, !lanes
      -> !xegpu.tensor_desc<16x3xf32, #xegpu.scattered>
    %row = xegpu.load_gather %from, %wanted {mode = vc}
      : !xegpu.tensor_desc<16x3xf32, #xegpu.scattered>, !mask -> vector<3x16xf32>
    xegpu.store_scatter %row, %to, %wanted {mode = vc}
      : vector<3x16xf32>, !xegpu.tensor_desc<16x3xf32, #xegpu.scattered>, !mask
    gpu.return
  }

  gpu.func @rows_of_4(%table: memref<256xf32>, %index: memref<16xi32>, %out: memref<64xf32>) kernel {
    %index_desc = xegpu.create_nd_tdesc %index[0] {mode = vc} : memref<16xi32> -> !index_desc
    %rows_i32 = xegpu.load_nd %index_desc {mode = vc} : !index_desc -> vector<16xi32>
    %rows = arith.index_cast %rows_i32 : vector<16xi32> to !lanes
    %zero = arith.constant dense<0> : !lanes
    %wanted = arith.cmpi sge, %rows, %zero : !lanes
    %elements = arith.constant dense<4> : !lanes
    %lanes = vector.step : !lanes
    %places = arith.muli %rows, %elements : !lanes
    %own = arith.muli %lanes, %elements : !lanes
    %from = xegpu.create_tdesc %table, %places {chunk_size_per_lane = 4, mode = vc} : memref<256xf32>, !lanes
      -> !xegpu.tensor_desc<16x4xf32, #xegpu.scattered>
    %to = xegpu.create_tdesc %out, %own {chunk_size_per_lane = 4, mode = vc} : memref<64xf32>, !lanes
      -> !xegpu.tensor_desc<16x4xf32, #xegpu.scattered>
    %row = xegpu.load_gather %from, %wanted {mode = vc}
      : !xegpu.tensor_desc<16x4xf32, #xegpu.scattered>, !mask -> vector<4x16xf32>
    xegpu.store_scatter %row, %to, %wanted {mode = vc}
      : vector<4x16xf32>, !xegpu.tensor_desc<16x4xf32, #xegpu.scattered>, !mask
    gpu.return
  }

  gpu.func @rows_of_8(%table: memref<512xf32>, %index: memref<16xi32>, %out: memref<128xf32>) kernel {
    %index_desc = xegpu.create_nd_tdesc %index[0] {mode = vc} : memref<16xi32> -> !index_desc
    %rows_i32 = xegpu.load_nd %index_desc {mode = vc} : !index_desc -> vector<16xi32>
    %rows = arith.index_cast %rows_i32 : vector<16xi32> to !lanes
    %zero = arith.constant dense<0> : !lanes
    %wanted = arith.cmpi sge, %rows, %zero : !lanes
    %elements = arith.constant dense<8> : !lanes
    %lanes = vector.step : !lanes
    %places = arith.muli %rows, %elements : !lanes
    %own = arith.muli %lanes, %elements : !lanes
    %from = xegpu.create_tdesc %table, %places {chunk_size_per_lane = 8, mode = vc} : memref<512xf32>, !lanes
      -> !xegpu.tensor_desc<16x8xf32, #xegpu.scattered>
    %to = xegpu.create_tdesc %out, %own {chunk_size_per_lane = 8, mode = vc} : memref<128xf32>, !lanes
      -> !xegpu.tensor_desc<16x8xf32, #xegpu.scattered>
    %row = xegpu.load_gather %from, %wanted {mode = vc}
      : !xegpu.tensor_desc<16x8xf32, #xegpu.scattered>, !mask -> vector<8x16xf32>
    xegpu.store_scatter %row, %to, %wanted {mode = vc}
      : vector<8x16xf32>, !xegpu.tensor_desc<16x8xf32, #xegpu.scattered>, !mask
    gpu.return
  }
}
