// A matrix whose extents and strides are arguments: rows of 16 bytes have no 2D block messages, rows of 64 have.
// RUN: xegpu-run %s arange:i8:8x16 i64:16 i64:16 zeros:i8:8x16 --print 3 | FileCheck %s
// RUN: xegpu-run %s arange:i8:8x16 i64:10 i64:12 zeros:i8:8x16 --print 3 | FileCheck %s --check-prefix=NARROW
// CHECK: 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127
// NARROW: 84 85 86 87 88 89 90 91 92 93 0 0 0 0 0 0

gpu.module @kernels {
  gpu.func @copy(%a: memref<8x16xi8>, %columns: index, %pitch: index, %b: memref<8x16xi8>) kernel {
    %from = xetile.init_tile %a[0, 0], [8, %columns], [%pitch, 1] : memref<8x16xi8> -> !xetile.tile<8x16xi8>
    %x = xetile.load_tile %from : !xetile.tile<8x16xi8> -> vector<8x16xi8>
    %to = xetile.init_tile %b[0, 0] : memref<8x16xi8> -> !xetile.tile<8x16xi8>
    xetile.store_tile %x, %to : vector<8x16xi8>, !xetile.tile<8x16xi8>
    gpu.return
  }
}
