// Numbers of f32 to bf8 (f8E5M2) with a scale. @nearest rounds to nearest even: arith.truncf, which is fcvt on the GPU.
// @stochastic rounds by random bits, which are hashed from each number's place: a call of llvm.genx.srnd, which is srnd.

// RUN: xegpu-run %s --kernel nearest full:f32:256:1.1 f32:2.0 zeros:f8E5M2:256 --grid 2 --print 2 | FileCheck %s --check-prefix=NEAREST
// NEAREST: [2 2 2 2
// NEAREST-NOT: 2.5
// RUN: xegpu-run %s --kernel stochastic full:f32:256:1.1 f32:2.0 i32:7 zeros:f8E5M2:256 --grid 2 --print 3 \
// RUN:   | FileCheck %s --check-prefix=STOCHASTIC
// STOCHASTIC-DAG: 2.5
// STOCHASTIC-DAG: 2 2

!desc = !xegpu.tensor_desc<128xf32, #xegpu.tdesc_attr<boundary_check = false>>
!out_desc = !xegpu.tensor_desc<128xf8E5M2, #xegpu.tdesc_attr<boundary_check = false>>

gpu.module @kernels {
  func.func private @llvm.genx.srnd(vector<128xf16>, vector<128xi8>) -> vector<128xf8E5M2>

  gpu.func @nearest(%X: memref<256xf32>, %scale: f32, %Y: memref<256xf8E5M2>) kernel {
    %c128 = arith.constant 128 : index
    %x = gpu.block_id x
    %at = arith.muli %x, %c128 : index
    %from = xegpu.create_nd_tdesc %X[%at] {mode = vc} : memref<256xf32> -> !desc
    %numbers = xegpu.load_nd %from {mode = vc} : !desc -> vector<128xf32>
    %scales = vector.broadcast %scale : f32 to vector<128xf32>
    %scaled = arith.mulf %numbers, %scales : vector<128xf32>
    %half = arith.truncf %scaled : vector<128xf32> to vector<128xf16>
    %small = arith.truncf %half : vector<128xf16> to vector<128xf8E5M2>
    %to = xegpu.create_nd_tdesc %Y[%at] {mode = vc} : memref<256xf8E5M2> -> !out_desc
    xegpu.store_nd %small, %to {mode = vc} : vector<128xf8E5M2>, !out_desc
    gpu.return
  }

  gpu.func @stochastic(%X: memref<256xf32>, %scale: f32, %seed: i32, %Y: memref<256xf8E5M2>) kernel {
    %c128 = arith.constant 128 : index
    %x = gpu.block_id x
    %at = arith.muli %x, %c128 : index
    %from = xegpu.create_nd_tdesc %X[%at] {mode = vc} : memref<256xf32> -> !desc
    %numbers = xegpu.load_nd %from {mode = vc} : !desc -> vector<128xf32>
    %scales = vector.broadcast %scale : f32 to vector<128xf32>
    %scaled = arith.mulf %numbers, %scales : vector<128xf32>
    %half = arith.truncf %scaled : vector<128xf32> to vector<128xf16>

    // Two rounds of xorshift and multiplication; the highest bits are the best ones.
    %lanes = vector.step : vector<128xindex>
    %ats = vector.broadcast %at : index to vector<128xindex>
    %places_index = arith.addi %lanes, %ats : vector<128xindex>
    %places = arith.index_cast %places_index : vector<128xindex> to vector<128xi32>
    %seeds = vector.broadcast %seed : i32 to vector<128xi32>
    %first = arith.xori %places, %seeds : vector<128xi32>
    %factor0 = arith.constant dense<0x7FEB352D> : vector<128xi32>
    %factor1 = arith.constant dense<0x46CA68B5> : vector<128xi32>
    %c15 = arith.constant dense<15> : vector<128xi32>
    %c24 = arith.constant dense<24> : vector<128xi32>
    %spread0 = arith.muli %first, %factor0 : vector<128xi32>
    %high0 = arith.shrui %spread0, %c15 : vector<128xi32>
    %mixed0 = arith.xori %spread0, %high0 : vector<128xi32>
    %spread1 = arith.muli %mixed0, %factor1 : vector<128xi32>
    %high1 = arith.shrui %spread1, %c24 : vector<128xi32>
    %random = arith.trunci %high1 : vector<128xi32> to vector<128xi8>

    %small = func.call @llvm.genx.srnd(%half, %random) : (vector<128xf16>, vector<128xi8>) -> vector<128xf8E5M2>
    %to = xegpu.create_nd_tdesc %Y[%at] {mode = vc} : memref<256xf8E5M2> -> !out_desc
    xegpu.store_nd %small, %to {mode = vc} : vector<128xf8E5M2>, !out_desc
    gpu.return
  }
}
