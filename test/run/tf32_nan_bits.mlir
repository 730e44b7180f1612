// A conversion from tf32 to f32 keeps the bits of a NaN.
// RUN: xegpu-run %s bits:f32:64:seed=3 zeros:f32:64 --engine both -o 0=%t.in.npy -o 1=%t.both.npy
// RUN: xegpu-run %s bits:f32:64:seed=3 zeros:f32:64 --engine reference -o 1=%t.reference.npy
// RUN: cmp %t.both.npy %t.reference.npy
// RUN: cmp %t.both.npy %t.in.npy

gpu.module @kernels {
  gpu.func @widen(%x: memref<64xtf32>, %y: memref<64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%c0] : memref<64xtf32>, vector<64xtf32>
    %b = arith.extf %a : vector<64xtf32> to vector<64xf32>
    vector.store %b, %y[%c0] : memref<64xf32>, vector<64xf32>
    gpu.return
  }
}
