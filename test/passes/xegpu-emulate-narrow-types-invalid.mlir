// RUN: xegpu-opt %s --xegpu-emulate-narrow-types --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @read(%m: memref<8x16xi4>, %i: index) kernel {
    %z = arith.constant 0 : i4
    %m1 = vector.create_mask %i : vector<16xi1>
    // expected-error @below {{'vector.transfer_read' op of memref<8x16xi4> has a mask, or dimensions in another order}}
    // expected-note @below {{read bytes, or whole rows}}
    %x = vector.transfer_read %m[%i, %i], %z, %m1 : memref<8x16xi4>, vector<16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @write(%m: memref<8x16xi4>, %i: index) kernel {
    %x = arith.constant dense<1> : vector<8xi4>
    // expected-error @below {{'vector.transfer_write' op of memref<8x16xi4> has a mask, or dimensions in another order}}
    // expected-note @below {{write bytes, or whole rows}}
    vector.transfer_write %x, %m[%i, %i] {permutation_map = affine_map<(d0, d1) -> (d0)>} : vector<8xi4>, memref<8x16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @row(%m: memref<8x16xi4>, %i: index) kernel {
    %z = arith.constant 0 : i4
    // expected-error @below {{'vector.transfer_read' op may reach out of bounds, and does not begin and end at bytes}}
    // expected-note @below {{read rows that begin and end at bytes}}
    %x = vector.transfer_read %m[%i, %i], %z : memref<8x16xi4>, vector<16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @row(%m: memref<8x16xi4>, %i: index) kernel {
    %x = arith.constant dense<1> : vector<16xi4>
    // expected-error @below {{'vector.transfer_write' op may reach out of bounds, and does not begin and end at bytes}}
    // expected-note @below {{rows of a store begin at bytes: let the column be a multiple of 2, for example by arith.muli}}
    vector.transfer_write %x, %m[%i, %i] : vector<16xi4>, memref<8x16xi4>
    gpu.return
  }
}
