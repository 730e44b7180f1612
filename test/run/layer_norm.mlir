// Layer norm of 1000 numbers in each row: (x - mean) / sqrt(variance + eps) * gamma + beta, a subgroup to a row. A row is
// read in pieces of 32 numbers; the last has 8, and its other lanes are masked off.

// RUN: xegpu-run %s arange:f32:4x1000 ones:f32:1000 zeros:f32:1000 zeros:f32:4x1000 --grid 4 --print 3 | FileCheck %s
// CHECK-COUNT-4: [-1.730{{[0-9]+}} {{.*}} 1.730{{[0-9]+}}]

!desc = !xegpu.tensor_desc<32xf32, #xegpu.scattered>
!piece = vector<32xf32>
!places = vector<32xindex>
!mask = vector<32xi1>

gpu.module @kernels {
  gpu.func @layer_norm(%X: memref<4x1000xf32>, %gamma: memref<1000xf32>, %beta: memref<1000xf32>,
                       %Y: memref<4x1000xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %length = arith.constant 1000 : index
    %row = gpu.block_id x
    %start = arith.muli %row, %length : index
    %x_line = memref.collapse_shape %X [[0, 1]] : memref<4x1000xf32> into memref<4000xf32>
    %y_line = memref.collapse_shape %Y [[0, 1]] : memref<4x1000xf32> into memref<4000xf32>
    %lanes = vector.step : !places
    %zeros = arith.constant dense<0.0> : !piece
    %zero = arith.constant 0.0 : f32
    %count = arith.constant 1000.0 : f32
    %eps = arith.constant 1.0e-5 : f32

    %sums = scf.for %at = %c0 to %length step %c32 iter_args(%acc = %zeros) -> (!piece) {
      %rest = arith.subi %length, %at : index
      %mask = vector.create_mask %rest : !mask
      %first = arith.addi %start, %at : index
      %firsts = vector.broadcast %first : index to !places
      %places = arith.addi %firsts, %lanes : !places
      %desc = xegpu.create_tdesc %x_line, %places {mode = vc} : memref<4000xf32>, !places -> !desc
      %loaded = xegpu.load_gather %desc, %mask {mode = vc} : !desc, !mask -> !piece
      %x = arith.select %mask, %loaded, %zeros : !mask, !piece
      %more = arith.addf %acc, %x : !piece
      scf.yield %more : !piece
    }
    %sum = vector.reduction <add>, %sums : !piece into f32
    %mean = arith.divf %sum, %count : f32
    %means = vector.broadcast %mean : f32 to !piece

    %squares = scf.for %at = %c0 to %length step %c32 iter_args(%acc = %zeros) -> (!piece) {
      %rest = arith.subi %length, %at : index
      %mask = vector.create_mask %rest : !mask
      %first = arith.addi %start, %at : index
      %firsts = vector.broadcast %first : index to !places
      %places = arith.addi %firsts, %lanes : !places
      %desc = xegpu.create_tdesc %x_line, %places {mode = vc} : memref<4000xf32>, !places -> !desc
      %loaded = xegpu.load_gather %desc, %mask {mode = vc} : !desc, !mask -> !piece
      %x = arith.select %mask, %loaded, %means : !mask, !piece
      %centred = arith.subf %x, %means : !piece
      %more = vector.fma %centred, %centred, %acc : !piece
      scf.yield %more : !piece
    }
    %square = vector.reduction <add>, %squares : !piece into f32
    %variance = arith.divf %square, %count : f32
    %shifted = arith.addf %variance, %eps : f32
    %scale = math.rsqrt %shifted : f32
    %scales = vector.broadcast %scale : f32 to !piece

    scf.for %at = %c0 to %length step %c32 {
      %rest = arith.subi %length, %at : index
      %mask = vector.create_mask %rest : !mask
      %first = arith.addi %start, %at : index
      %firsts = vector.broadcast %first : index to !places
      %places = arith.addi %firsts, %lanes : !places
      %ats = vector.broadcast %at : index to !places
      %columns = arith.addi %ats, %lanes : !places
      %x_desc = xegpu.create_tdesc %x_line, %places {mode = vc} : memref<4000xf32>, !places -> !desc
      %gamma_desc = xegpu.create_tdesc %gamma, %columns {mode = vc} : memref<1000xf32>, !places -> !desc
      %beta_desc = xegpu.create_tdesc %beta, %columns {mode = vc} : memref<1000xf32>, !places -> !desc
      %y_desc = xegpu.create_tdesc %y_line, %places {mode = vc} : memref<4000xf32>, !places -> !desc
      %x = xegpu.load_gather %x_desc, %mask {mode = vc} : !desc, !mask -> !piece
      %g = xegpu.load_gather %gamma_desc, %mask {mode = vc} : !desc, !mask -> !piece
      %b = xegpu.load_gather %beta_desc, %mask {mode = vc} : !desc, !mask -> !piece
      %centred = arith.subf %x, %means : !piece
      %normal = arith.mulf %centred, %scales : !piece
      %y = vector.fma %normal, %g, %b : !piece
      xegpu.store_scatter %y, %y_desc, %mask {mode = vc} : !piece, !desc, !mask
    }
    gpu.return
  }
}
