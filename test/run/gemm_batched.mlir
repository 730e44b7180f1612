// C[b] = A[b] x B[b] for four pairs of matrices: the third coordinate of a workgroup is the batch, whose matrices are
// subviews of the arrays. Sizes are known at the launch only.

// RUN: xegpu-run %s ones:f16:4x40x48 ones:f16:4x48x80 zeros:f32:4x40x80 --grid 5,5,4 --print 2 | FileCheck %s
// CHECK-COUNT-4: [48. 48. 48. {{.*}} 48. 48. 48.]{{]+$}}

!matrix = memref<?x?xf16, strided<[?, 1], offset: ?>>
!c_matrix = memref<?x?xf32, strided<[?, 1], offset: ?>>
!a_desc = !xegpu.tensor_desc<8x16xf16>
!b_desc = !xegpu.tensor_desc<16x16xf16>
!c_desc = !xegpu.tensor_desc<8x16xf32>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<4x?x?xf16>, %B: memref<4x?x?xf16>, %C: memref<4x?x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %M = memref.dim %A, %c1 : memref<4x?x?xf16>
    %N = memref.dim %B, %c2 : memref<4x?x?xf16>
    %K = memref.dim %A, %c2 : memref<4x?x?xf16>
    %x = gpu.block_id x
    %y = gpu.block_id y
    %batch = gpu.block_id z
    %a_matrix = memref.subview %A[%batch, 0, 0] [1, %M, %K] [1, 1, 1] : memref<4x?x?xf16> to !matrix
    %b_matrix = memref.subview %B[%batch, 0, 0] [1, %K, %N] [1, 1, 1] : memref<4x?x?xf16> to !matrix
    %c_matrix = memref.subview %C[%batch, 0, 0] [1, %M, %N] [1, 1, 1] : memref<4x?x?xf32> to !c_matrix
    %m = arith.muli %x, %c8 : index
    %n = arith.muli %y, %c16 : index
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %sum = scf.for %k = %c0 to %K step %c16 iter_args(%acc = %zero) -> (vector<8x16xf32>) {
      %a_desc = xegpu.create_nd_tdesc %a_matrix[%m, %k] {mode = vc} : !matrix -> !a_desc
      %b_desc = xegpu.create_nd_tdesc %b_matrix[%k, %n] {mode = vc} : !matrix -> !b_desc
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !a_desc -> vector<8x8x2xf16>
      %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0} : !b_desc -> vector<8x16x2xf16>
      %next = xegpu.dpas %acc, %a, %b {mode = vc}
        : vector<8x16xf32>, vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
      scf.yield %next : vector<8x16xf32>
    }
    %c_desc = xegpu.create_nd_tdesc %c_matrix[%m, %n] {mode = vc} : !c_matrix -> !c_desc
    xegpu.store_nd %sum, %c_desc {mode = vc} : vector<8x16xf32>, !c_desc
    gpu.return
  }
}
