// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xegpu-to-visa-pipeline)' | FileCheck %s

// Bytes up to 2^32 - 8 are 32 bits; one element more needs products of 64 bits.

!lanes = !xegpu.tensor_desc<16xf64, #xegpu.scattered>

gpu.module @m {
  // CHECK-LABEL: gpu.func @narrow(
  gpu.func @narrow(%in: memref<?xf64>, %at: memref<16xi32>, %out: memref<16xf64>) kernel {
    %c0 = arith.constant 0 : index
    %most = arith.constant dense<536870911> : vector<16xindex>
    %mask = arith.constant dense<true> : vector<16xi1>
    %v = vector.load %at[%c0] : memref<16xi32>, vector<16xi32>
    %any = arith.index_castui %v : vector<16xi32> to vector<16xindex>
    // CHECK: visa.min (M1_NM, 16) %{{.*}} 0x1fffffff:uq
    %offsets = arith.minui %any, %most : vector<16xindex>
    // CHECK-NOT: visa.mul (M1_NM, 16)
    // CHECK: visa.shl (M1_NM, 16) %[[BYTES:[0-9a-z]+]](0,0)<1> %{{.*}} 0x3:uw
    // CHECK: visa.add (M1_NM, 16) %{{.*}}(0,0)<1> %[[BYTES]](0,0)<1;1,0> %in0(0,0)<0;1,0>
    %d = xegpu.create_tdesc %in, %offsets {mode = vc} : memref<?xf64>, vector<16xindex> -> !lanes
    %x = xegpu.load_gather %d, %mask {mode = vc} : !lanes, vector<16xi1> -> vector<16xf64>
    vector.store %x, %out[%c0] : memref<16xf64>, vector<16xf64>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @wide(
  gpu.func @wide(%in: memref<?xf64>, %at: memref<16xi32>, %out: memref<16xf64>) kernel {
    %c0 = arith.constant 0 : index
    %most = arith.constant dense<536870912> : vector<16xindex>
    %mask = arith.constant dense<true> : vector<16xi1>
    %v = vector.load %at[%c0] : memref<16xi32>, vector<16xi32>
    %any = arith.index_castui %v : vector<16xi32> to vector<16xindex>
    // CHECK: visa.min (M1_NM, 16) %{{.*}} 0x20000000:uq
    %offsets = arith.minui %any, %most : vector<16xindex>
    // CHECK-NOT: visa.shl (M1_NM, 16)
    // CHECK: visa.mul (M1_NM, 16) %[[BYTES:[0-9a-z]+]](0,0)<1> %{{.*}} 0x8:ud
    // CHECK: visa.add (M1_NM, 16) %{{.*}}(0,0)<1> %[[BYTES]]_q(0,0)<1;1,0> %in0(0,0)<0;1,0>
    %d = xegpu.create_tdesc %in, %offsets {mode = vc} : memref<?xf64>, vector<16xindex> -> !lanes
    %x = xegpu.load_gather %d, %mask {mode = vc} : !lanes, vector<16xi1> -> vector<16xf64>
    vector.store %x, %out[%c0] : memref<16xf64>, vector<16xf64>
    gpu.return
  }
}
