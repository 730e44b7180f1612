// RUN: xegpu-opt %s --xetile-scattered-to-tiles --xegpu-dce --split-input-file | FileCheck %s

// A line of one buffer, bounded by a mask, becomes a tile of a matrix of one row.

!line = !xetile.tile<256xf32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @line
gpu.module @line {
  gpu.func @line(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) kernel {
    %c256 = arith.constant 256 : index
    %id = gpu.block_id x
    %first = arith.muli %id, %c256 : index
    %s = vector.step : vector<256xindex>
    %f = vector.broadcast %first : index to vector<256xindex>
    %i = arith.addi %f, %s : vector<256xindex>
    %b = vector.broadcast %n : index to vector<256xindex>
    %m = arith.cmpi slt, %i, %b : vector<256xindex>
    // CHECK: %[[M:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [1, %{{.*}}], strides: [%{{.*}}, 1]
    // CHECK: %[[T:.*]] = xetile.init_tile %[[M]][0, %{{.*}}] {clipped = true} : {{.*}} -> !xetile.tile<1x256xf32>
    // CHECK: xetile.load_tile %[[T]] {padding = 1.000000e+00 : f32} : !xetile.tile<1x256xf32> -> vector<1x256xf32>
    %a = xetile.init_tile %A, %i : memref<?xf32>, vector<256xindex> -> !line
    %x = xetile.load %a, %m {padding = 1.0 : f32} : !line, vector<256xi1> -> vector<256xf32>
    // One more mask, on what was loaded: these elements stay scattered.
    // CHECK: xetile.store {{.*}} : vector<256xf32>, !xetile.tile<256xf32, #xetile.tile_attr<scattered = true>>, vector<256xi1>
    %p = arith.cmpf ogt, %x, %x : vector<256xf32>
    %both = arith.andi %m, %p : vector<256xi1>
    %t = xetile.init_tile %B, %i : memref<?xf32>, vector<256xindex> -> !line
    xetile.store %x, %t, %both : vector<256xf32>, !line, vector<256xi1>
    gpu.return
  }
}

// -----

// Calls probably pass lengths that are multiples of 16 numbers, 64 bytes: they are assumed to do so. Multiples of 24 do not
// tell whether the line consists of whole registers.

!line = !xetile.tile<256xf32, #xetile.tile_attr<scattered = true>>

gpu.module @likely {
  // CHECK: gpu.func @whole_registers(%{{.*}}) kernel attributes {{{.*}}xetile.divided = array<i64: 0, 1, -1, 16>
  gpu.func @whole_registers(%A: memref<?xf32>, %n: index, %o: i32) kernel attributes {xetile.likely_multiples = array<i64: 2, 48, 1, 16>} {
    %c256 = arith.constant 256 : index
    %id = gpu.block_id x
    %first = arith.muli %id, %c256 : index
    %s = vector.step : vector<256xindex>
    %f = vector.broadcast %first : index to vector<256xindex>
    %i = arith.addi %f, %s : vector<256xindex>
    %b = vector.broadcast %n : index to vector<256xindex>
    %m = arith.cmpi slt, %i, %b : vector<256xindex>
    %a = xetile.init_tile %A, %i : memref<?xf32>, vector<256xindex> -> !line
    %x = xetile.load %a, %m : !line, vector<256xi1> -> vector<256xf32>
    xetile.store %x, %a, %m : vector<256xf32>, !line, vector<256xi1>
    gpu.return
  }

  // CHECK: gpu.func @other
  // CHECK-NOT: xetile.divided
  // CHECK: xetile.load_tile
  gpu.func @other(%A: memref<?xf32>, %n: index, %o: i32) kernel attributes {xetile.likely_multiples = array<i64: 2, 16, 1, 24>} {
    %c256 = arith.constant 256 : index
    %id = gpu.block_id x
    %first = arith.muli %id, %c256 : index
    %s = vector.step : vector<256xindex>
    %f = vector.broadcast %first : index to vector<256xindex>
    %i = arith.addi %f, %s : vector<256xindex>
    %b = vector.broadcast %n : index to vector<256xindex>
    %m = arith.cmpi slt, %i, %b : vector<256xindex>
    %a = xetile.init_tile %A, %i : memref<?xf32>, vector<256xindex> -> !line
    %x = xetile.load %a, %m : !line, vector<256xi1> -> vector<256xf32>
    xetile.store %x, %a, %m : vector<256xf32>, !line, vector<256xi1>
    gpu.return
  }
}

// -----

// Indices that a loop carries: the column is a multiple of the counter, and the loop carries no vector.

!block = !xetile.tile<32x16xf32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @carried
gpu.module @carried {
  gpu.func @carried(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %k: index, %pitch: index) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %r = vector.step : vector<32xindex>
    %p = vector.broadcast %pitch : index to vector<32xindex>
    %rp = arith.muli %r, %p : vector<32xindex>
    %rows = vector.shape_cast %rp : vector<32xindex> to vector<32x1xindex>
    %down = vector.broadcast %rows : vector<32x1xindex> to vector<32x16xindex>
    %c = vector.step : vector<16xindex>
    %along = vector.broadcast %c : vector<16xindex> to vector<32x16xindex>
    %i = arith.addi %down, %along : vector<32x16xindex>
    %step = arith.constant dense<16> : vector<32x16xindex>
    // CHECK: %[[M:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [32, %{{.*}}], strides: [%{{.*}}, 1]
    // CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
    %e = scf.for %n = %c0 to %k step %c16 iter_args(%at = %i) -> (vector<32x16xindex>) {
      %left = arith.subi %k, %n : index
      %m = vector.create_mask %c16, %left : vector<32x16xi1>
      %ta = xetile.init_tile %A, %at : memref<?x?xf32>, vector<32x16xindex> -> !block
      // CHECK: xetile.init_tile %[[M]][0, %[[K]]] {clipped = true} : {{.*}} -> !xetile.tile<32x16xf32>
      %b = vector.broadcast %left : index to vector<32x16xindex>
      %inside = arith.cmpi slt, %along, %b : vector<32x16xindex>
      %x = xetile.load %ta, %inside : !block, vector<32x16xi1> -> vector<32x16xf32>
      %tb = xetile.init_tile %B[0, 0] : memref<?x?xf32> -> !xetile.tile<32x16xf32>
      xetile.store_tile %x, %tb : vector<32x16xf32>, !xetile.tile<32x16xf32>
      %next = arith.addi %at, %step : vector<32x16xindex>
      scf.yield %next : vector<32x16xindex>
    }
    gpu.return
  }
}

// -----

// A block may begin left of its row, where the buffer has the elements of the row above: nothing bounds it there.
// A column of which 2D messages do not know that it is a multiple of 4 bytes.

!row = !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @stays
gpu.module @stays {
  gpu.func @stays(%A: memref<?x?xf16>, %B: memref<?xf16>, %n: index, %pitch: index, %shift: index) kernel {
    %y = gpu.block_id y
    %s = vector.step : vector<64xindex>
    %b = vector.broadcast %n : index to vector<64xindex>
    %by = vector.broadcast %shift : index to vector<64xindex>
    %j = arith.addi %s, %by : vector<64xindex>
    %m = arith.cmpi slt, %j, %b : vector<64xindex>
    %row = arith.muli %y, %pitch : index
    %f = vector.broadcast %row : index to vector<64xindex>
    %i = arith.addi %f, %j : vector<64xindex>
    %a = xetile.init_tile %A, %i : memref<?x?xf16>, vector<64xindex> -> !row
    // CHECK: xetile.load {{.*}} -> vector<64xf16>
    %x = xetile.load %a, %m : !row, vector<64xi1> -> vector<64xf16>
    %t = xetile.init_tile %B, %j : memref<?xf16>, vector<64xindex> -> !row
    // CHECK: xetile.store {{.*}} : vector<64xf16>
    xetile.store %x, %t, %m : vector<64xf16>, !row, vector<64xi1>
    gpu.return
  }
}

// -----

// Equal scalars of two blocks are used where they are defined. Without a mask nothing is left out.

!line = !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @in_a_loop_and_after
gpu.module @in_a_loop_and_after {
  gpu.func @in_a_loop_and_after(%A: memref<?xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %s = vector.step : vector<64xindex>
    // CHECK: scf.for
    scf.for %k = %c0 to %n step %c1 {
      // CHECK: %[[INSIDE:.*]] = gpu.block_id x
      // CHECK: %[[AT:.*]] = arith.muli %[[INSIDE]], %{{.*}}
      // CHECK: memref.reinterpret_cast %{{.*}} to offset: [%[[AT]]]
      %id = gpu.block_id x
      %first = arith.muli %id, %c64 : index
      %f = vector.broadcast %first : index to vector<64xindex>
      %i = arith.addi %f, %s : vector<64xindex>
      %t = xetile.init_tile %A, %i : memref<?xf32>, vector<64xindex> -> !line
      %x = xetile.load %t : !line -> vector<64xf32>
      %y = arith.addf %x, %x : vector<64xf32>
      xetile.store %y, %t : vector<64xf32>, !line
    }
    // CHECK-NOT: clipped
    // CHECK: %[[AFTER:.*]] = gpu.block_id x
    // CHECK: %[[AT:.*]] = arith.muli %[[AFTER]], %{{.*}}
    // CHECK: memref.reinterpret_cast %{{.*}} to offset: [%[[AT]]]
    %id = gpu.block_id x
    %first = arith.muli %id, %c64 : index
    %f = vector.broadcast %first : index to vector<64xindex>
    %i = arith.addi %f, %s : vector<64xindex>
    %t = xetile.init_tile %A, %i : memref<?xf32>, vector<64xindex> -> !line
    %x = xetile.load %t : !line -> vector<64xf32>
    %y = arith.mulf %x, %x : vector<64xf32>
    xetile.store %y, %t : vector<64xf32>, !line
    gpu.return
  }
}

// -----

// Positions modulo an argument are consecutive if that is a multiple of how many there are, which is noted. A divisor
// that another condition chooses is no argument.

!row = !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>

// CHECK: gpu.func @modulo{{.*}}xetile.divided = array<i64: 0, 2, -1, 64>
gpu.module @modulo {
  gpu.func @modulo(%A: memref<?xf32>, %B: memref<?xf32>, %n: index, %c: i1) kernel {
    %c64 = arith.constant 64 : index
    %id = gpu.block_id x
    %first = arith.muli %id, %c64 : index
    %s = vector.step : vector<64xindex>
    %f = vector.broadcast %first : index to vector<64xindex>
    %p = arith.addi %f, %s : vector<64xindex>
    %m = vector.broadcast %n : index to vector<64xindex>
    %i = arith.remsi %p, %m : vector<64xindex>
    // CHECK: arith.remsi {{.*}} : index
    // CHECK: xetile.load_tile
    %a = xetile.init_tile %A, %i : memref<?xf32>, vector<64xindex> -> !row
    %x = xetile.load %a : !row -> vector<64xf32>
    %one = arith.constant dense<1> : vector<64xindex>
    %d = arith.select %c, %one, %m : vector<64xindex>
    %j = arith.remsi %p, %d : vector<64xindex>
    %b = xetile.init_tile %A, %j : memref<?xf32>, vector<64xindex> -> !row
    // CHECK: xetile.load %
    %y = xetile.load %b : !row -> vector<64xf32>
    %z = arith.addf %x, %y : vector<64xf32>
    %t = xetile.init_tile %B, %s : memref<?xf32>, vector<64xindex> -> !row
    xetile.store %z, %t : vector<64xf32>, !row
    gpu.return
  }
}

// -----

// Quotients are not negative if their divisors are not: those of arguments are noted, unless a call cannot tell. The
// number of a program may be divided by another one that depends on it.

!row = !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>

// CHECK: gpu.func @quotients{{.*}}xetile.divided = array<i64: 0, 1, -1, 64, 0, 2, -1, 1>
gpu.module @quotients {
  gpu.func @quotients(%A: memref<?xf32>, %m: index, %n: index, %o: index) kernel {
    %c64 = arith.constant 64 : index
    %c63 = arith.constant 63 : index
    %c8 = arith.constant 8 : index
    %id = gpu.block_id x
    %s = vector.step : vector<64xindex>
    %modulus = vector.broadcast %m : index to vector<64xindex>
    %above = arith.addi %n, %c63 : index
    %blocks = arith.divsi %above, %c64 : index
    %group = arith.muli %blocks, %c8 : index
    %number = arith.divsi %id, %group : index
    %left = arith.subi %c8, %number : index
    %rows = arith.minsi %left, %c8 : index
    %difference = arith.subi %n, %o : index
    // CHECK: xetile.load_tile
    %q0 = arith.divsi %id, %rows : index
    %q1 = arith.addi %q0, %number : index
    %f0 = arith.muli %q1, %c64 : index
    %g0 = vector.broadcast %f0 : index to vector<64xindex>
    %p0 = arith.addi %g0, %s : vector<64xindex>
    %i0 = arith.remsi %p0, %modulus : vector<64xindex>
    %t0 = xetile.init_tile %A, %i0 : memref<?xf32>, vector<64xindex> -> !row
    %x0 = xetile.load %t0 : !row -> vector<64xf32>
    // CHECK: xetile.load %
    %q2 = arith.divsi %id, %difference : index
    %f2 = arith.muli %q2, %c64 : index
    %g2 = vector.broadcast %f2 : index to vector<64xindex>
    %p2 = arith.addi %g2, %s : vector<64xindex>
    %i2 = arith.remsi %p2, %modulus : vector<64xindex>
    %t2 = xetile.init_tile %A, %i2 : memref<?xf32>, vector<64xindex> -> !row
    %x2 = xetile.load %t2 : !row -> vector<64xf32>
    %y = arith.addf %x0, %x2 : vector<64xf32>
    xetile.store %y, %t2 : vector<64xf32>, !row
    gpu.return
  }
}

// -----

// The map that the kernel gives its indices is that of the tile.

!line = !xetile.tile<256xf32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @mapped
gpu.module @mapped {
  gpu.func @mapped(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) kernel {
    %i = vector.step {map = #xetile.wg_map<sg_layout = [4], sg_data = [64]>} : vector<256xindex>
    %b = vector.broadcast %n : index to vector<256xindex>
    %m = arith.cmpi slt, %i, %b : vector<256xindex>
    // CHECK: xetile.load_tile {{.*}} : !xetile.tile<1x256xf32, #xetile.tile_attr<wg_map = <sg_layout = [1, 4], sg_data = [1, 64]>>>
    // CHECK: xetile.store_tile {{.*}}, !xetile.tile<1x256xf32, #xetile.tile_attr<wg_map = <sg_layout = [1, 4], sg_data = [1, 64]>>>
    %a = xetile.init_tile %A, %i : memref<?xf32>, vector<256xindex> -> !line
    %x = xetile.load %a, %m : !line, vector<256xi1> -> vector<256xf32>
    %t = xetile.init_tile %B, %i : memref<?xf32>, vector<256xindex> -> !line
    xetile.store %x, %t, %m : vector<256xf32>, !line, vector<256xi1>
    gpu.return
  }
}

// -----

// A map of two dimensions that only one of the steps has.

!block = !xetile.tile<32x16xf32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @mapped_rows
gpu.module @mapped_rows {
  gpu.func @mapped_rows(%A: memref<?xf32>, %n: index) kernel {
    %r = vector.step {map = #xetile.wg_map<sg_layout = [4], sg_data = [8]>} : vector<32xindex>
    %c = vector.step : vector<16xindex>
    %c64 = arith.constant dense<64> : vector<32xindex>
    %p = arith.muli %r, %c64 : vector<32xindex>
    %q = vector.shape_cast %p : vector<32xindex> to vector<32x1xindex>
    %rows = vector.broadcast %q : vector<32x1xindex> to vector<32x16xindex>
    %columns = vector.broadcast %c : vector<16xindex> to vector<32x16xindex>
    %i = arith.addi %rows, %columns : vector<32x16xindex>
    // CHECK: xetile.load %{{.*}} : !xetile.tile<32x16xf32, #xetile.tile_attr<scattered = true>>
    // CHECK: xetile.store
    %a = xetile.init_tile %A, %i : memref<?xf32>, vector<32x16xindex> -> !block
    %x = xetile.load %a : !block -> vector<32x16xf32>
    xetile.store %x, %a : vector<32x16xf32>, !block
    gpu.return
  }
}

// -----

// A matrix of each batch: rows of earlier batches are no part of the bound, so the matrix begins after them.

!rows = !xetile.tile<16x32xbf16, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @batches
gpu.module @batches {
  gpu.func @batches(%A: memref<?xbf16>, %n: index) kernel {
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %y = gpu.block_id y
    %z = gpu.block_id z
    %before = arith.muli %z, %n : index
    %begin = arith.muli %before, %c64 : index
    %row = arith.muli %y, %c16 : index
    %s = vector.step : vector<16xindex>
    %f = vector.broadcast %row : index to vector<16xindex>
    %r = arith.addi %f, %s : vector<16xindex>
    %b = vector.broadcast %n : index to vector<16xindex>
    %below = arith.cmpi slt, %r, %b : vector<16xindex>
    %column = vector.shape_cast %below : vector<16xi1> to vector<16x1xi1>
    %m = vector.broadcast %column : vector<16x1xi1> to vector<16x32xi1>
    %p = arith.constant dense<64> : vector<16xindex>
    %rp = arith.muli %r, %p : vector<16xindex>
    %rows = vector.shape_cast %rp : vector<16xindex> to vector<16x1xindex>
    %down = vector.broadcast %rows : vector<16x1xindex> to vector<16x32xindex>
    %c = vector.step : vector<32xindex>
    %along = vector.broadcast %c : vector<32xindex> to vector<16x32xindex>
    %in = arith.addi %down, %along : vector<16x32xindex>
    %g = vector.broadcast %begin : index to vector<16x32xindex>
    %i = arith.addi %in, %g : vector<16x32xindex>
    %t = xetile.init_tile %A, %i : memref<?xbf16>, vector<16x32xindex> -> !rows
    // CHECK: %[[M:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [%{{.*}}, 32], strides: [64, 1]
    // CHECK: %[[T:.*]] = xetile.init_tile %[[M]][%{{.*}}, 0] {clipped = true} : {{.*}} -> !xetile.tile<16x32xbf16>
    // CHECK: xetile.load_tile %[[T]]
    %x = xetile.load %t, %m {padding = 0.0 : bf16} : !rows, vector<16x32xi1> -> vector<16x32xbf16>
    %u = xetile.init_tile %A, %i : memref<?xbf16>, vector<16x32xindex> -> !rows
    xetile.store %x, %u, %m : vector<16x32xbf16>, !rows, vector<16x32xi1>
    gpu.return
  }
}
