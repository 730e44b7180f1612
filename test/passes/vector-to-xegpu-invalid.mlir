// RUN: xegpu-opt %s --vector-to-xegpu --split-input-file --verify-diagnostics

gpu.module @k {
  gpu.func @tensor(%t: tensor<64xf32>, %pad: f32, %i: index) kernel {
    // expected-error @below {{'vector.transfer_read' op accesses tensor<64xf32>, which is not in memory}}
    // expected-note @below {{run bufferization first}}
    %x = vector.transfer_read %t[%i], %pad : tensor<64xf32>, vector<4xf32>
    gpu.return
  }
}
