// RUN: xegpu-opt %s --xegpu-lower-loops --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @mapped(%m: memref<64xf32>, %x: f32) kernel {
    // expected-error @below {{'scf.forall' op is mapped to blocks or threads}}
    // expected-note @below {{first run transform.gpu.map_nested_forall_to_threads}}
    scf.forall (%i) in (64) {
      memref.store %x, %m[%i] : memref<64xf32>
    } {mapping = [#gpu.thread<x>]}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @tensors(%t: tensor<64xf32>, %x: f32) kernel {
    // expected-error @below {{'linalg.fill' op works on tensors}}
    // expected-note @below {{kernels require memrefs; run one-shot-bufferize first}}
    %r = linalg.fill ins(%x : f32) outs(%t : tensor<64xf32>) -> tensor<64xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @mapped(%m: memref<64xf32>, %x: f32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    // expected-error @below {{'scf.parallel' op is mapped to blocks or threads}}
    // expected-note @below {{first run transform.gpu.map_nested_forall_to_threads or convert-parallel-loops-to-gpu}}
    scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
      memref.store %x, %m[%i] : memref<64xf32>
    } {mapping = [#gpu.loop_dim_map<processor = thread_x, map = (d0) -> (d0), bound = (d0) -> (d0)>]}
    gpu.return
  }
}
