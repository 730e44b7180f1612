// RUN: xegpu-opt %s --xegpu-simt-to-vc --split-input-file --verify-diagnostics

// Lanes that are not known while compiling are read by a shuffle.
gpu.module @k {
  gpu.func @variable_lane(%m: memref<64xf32>, %lane: i32) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %x = memref.load %m[%t] : memref<64xf32>
    // expected-error @below {{'gpu.subgroup_broadcast' op requires a constant lane}}
    // expected-note @below {{use gpu.shuffle idx}}
    %y = gpu.subgroup_broadcast %x, specific_lane %lane : f32
    memref.store %y, %m[%t] : memref<64xf32>
    gpu.return
  }
}
