// RUN: xegpu-opt %s --vector-lower-contract --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @transposed(%s: memref<8x8xf32>, %p: vector<2x3xf32>, %m: vector<3x2xi1>, %i: index, %z: f32) kernel {
    // expected-error @+1 {{'vector.mask' op cannot be lowered because the mask does not have the dimensions of the pass-through value}}
    %r = vector.mask %m, %p {
      vector.transfer_read %s[%i, %i], %z {permutation_map = affine_map<(a, b) -> (b, a)>} : memref<8x8xf32>, vector<2x3xf32>
    } : vector<3x2xi1> -> vector<2x3xf32>
    vector.store %r, %s[%i, %i] : memref<8x8xf32>, vector<2x3xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // Its extents are equal, but not in the same order.
  gpu.func @square(%s: memref<8x8xf32>, %p: vector<2x2xf32>, %m: vector<2x2xi1>, %i: index, %z: f32) kernel {
    // expected-error @+1 {{'vector.mask' op cannot be lowered because the mask does not have the dimensions of the pass-through value}}
    %r = vector.mask %m, %p {
      vector.transfer_read %s[%i, %i], %z {permutation_map = affine_map<(a, b) -> (b, a)>} : memref<8x8xf32>, vector<2x2xf32>
    } : vector<2x2xi1> -> vector<2x2xf32>
    vector.store %r, %s[%i, %i] : memref<8x8xf32>, vector<2x2xf32>
    gpu.return
  }
}
