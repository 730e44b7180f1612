// Blocks, products and vectors of any size, and transposed memrefs, in XeGPU written by hand: xegpu-legalize divides
// them for the target. The results are those of the reference evaluator for the same text.

// RUN: xegpu-run %s --kernel product small:bf16:40x64:seed=1 small:bf16:64x64:seed=2 small:f32:40x64:seed=3 --engine both -o 2=%t.product.both.npy
// RUN: xegpu-run %s --kernel product small:bf16:40x64:seed=1 small:bf16:64x64:seed=2 small:f32:40x64:seed=3 --engine reference -o 2=%t.product.reference.npy
// RUN: cmp %t.product.both.npy %t.product.reference.npy
// RUN: xegpu-run %s --kernel transposed small:f32:8x64x64:seed=1 zeros:f32:64x64 --engine both -o 1=%t.transposed.both.npy
// RUN: xegpu-run %s --kernel transposed small:f32:8x64x64:seed=1 zeros:f32:64x64 --engine reference -o 1=%t.transposed.reference.npy
// RUN: cmp %t.transposed.both.npy %t.transposed.reference.npy
// RUN: xegpu-run %s --kernel in_registers small:f32:64x64:seed=1 zeros:f32:64x64 --engine both -o 1=%t.in_registers.both.npy
// RUN: xegpu-run %s --kernel in_registers small:f32:64x64:seed=1 zeros:f32:64x64 --engine reference -o 1=%t.in_registers.reference.npy
// RUN: cmp %t.in_registers.both.npy %t.in_registers.reference.npy

// The same on a GPU without 2D block messages, with products of 8 columns.
// RUN: xegpu-run %s --kernel product --target dg2 small:bf16:40x64:seed=1 small:bf16:64x64:seed=2 small:f32:40x64:seed=3 -o 2=%t.dg2.npy
// RUN: cmp %t.dg2.npy %t.product.reference.npy

gpu.module @kernels {
  gpu.func @product(%A: memref<40x64xbf16>, %B: memref<64x64xbf16>, %C: memref<40x64xf32>) kernel {
    %ta = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<40x64xbf16> -> !xegpu.tensor_desc<37x40xbf16>
    %tb = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<40x24xbf16>
    %tc = xegpu.create_nd_tdesc %C[1, 4] {mode = vc} : memref<40x64xf32> -> !xegpu.tensor_desc<37x24xf32>
    %a = xegpu.load_nd %ta {mode = vc} : !xegpu.tensor_desc<37x40xbf16> -> vector<37x40xbf16>
    %b = xegpu.load_nd %tb {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<40x24xbf16> -> vector<20x24x2xbf16>
    %c = xegpu.load_nd %tc {mode = vc} : !xegpu.tensor_desc<37x24xf32> -> vector<37x24xf32>
    %d = xegpu.dpas %c, %a, %b {mode = vc} : vector<37x24xf32>, vector<37x40xbf16>, vector<20x24x2xbf16> -> vector<37x24xf32>
    xegpu.store_nd %d, %tc {mode = vc} : vector<37x24xf32>, !xegpu.tensor_desc<37x24xf32>
    gpu.return
  }
  gpu.func @transposed(%A: memref<8x64x64xf32>, %B: memref<64x64xf32>) kernel {
    %view = memref.transpose %A (i, j, k) -> (j, i, k) : memref<8x64x64xf32> to memref<64x8x64xf32, strided<[64, 4096, 1]>>
    %c5 = arith.constant 5 : index
    %plane = memref.subview %view[5, 0, 0] [1, 8, 64] [1, 1, 1] : memref<64x8x64xf32, strided<[64, 4096, 1]>> to memref<8x64xf32, strided<[4096, 1], offset: 320>>
    %ta = xegpu.create_nd_tdesc %plane[0, 0] {mode = vc} : memref<8x64xf32, strided<[4096, 1], offset: 320>> -> !xegpu.tensor_desc<8x64xf32>
    %tb = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x64xf32>
    %a = xegpu.load_nd %ta {mode = vc} : !xegpu.tensor_desc<8x64xf32> -> vector<8x64xf32>
    xegpu.store_nd %a, %tb {mode = vc} : vector<8x64xf32>, !xegpu.tensor_desc<8x64xf32>
    %columns = memref.transpose %B (i, j) -> (j, i) : memref<64x64xf32> to memref<64x64xf32, strided<[1, 64]>>
    %c1 = arith.constant 1 : index
    %x = memref.load %A[%c1, %c5, %c1] : memref<8x64x64xf32>
    memref.store %x, %columns[%c5, %c1] : memref<64x64xf32, strided<[1, 64]>>
    gpu.return
  }
  gpu.func @in_registers(%A: memref<64x64xf32>, %B: memref<64x64xf32>) kernel {
    %ta = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<24x40xf32>
    %tb = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<40x24xf32>
    %a = xegpu.load_nd %ta {mode = vc} : !xegpu.tensor_desc<24x40xf32> -> vector<24x40xf32>
    %x = vector.transpose %a, [1, 0] : vector<24x40xf32> to vector<40x24xf32>
    xegpu.store_nd %x, %tb {mode = vc} : vector<40x24xf32>, !xegpu.tensor_desc<40x24xf32>
    gpu.return
  }
}
