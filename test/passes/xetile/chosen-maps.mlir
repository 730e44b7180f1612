// RUN: xegpu-opt %s --xetile-infer-layout --split-input-file --verify-diagnostics | FileCheck %s

// The maps of a kernel that states only how many subgroups it has. Products are divided first.

// CHECK-LABEL: gpu.func @product
gpu.module @product {
  gpu.func @product(%A: memref<128x32xbf16>, %B: memref<32x128xbf16>, %C: memref<128x128xf32>) kernel attributes {xetile.subgroups = 8 : i64} {
    // CHECK: init_tile {{.*}} -> !xetile.tile<128x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [32, 32]>>>
    %ta = xetile.init_tile %A[0, 0] : memref<128x32xbf16> -> !xetile.tile<128x32xbf16>
    // CHECK: init_tile {{.*}} -> !xetile.tile<32x128xbf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [32, 64]>>>
    %tb = xetile.init_tile %B[0, 0] : memref<32x128xbf16> -> !xetile.tile<32x128xbf16>
    %a = xetile.load_tile %ta : !xetile.tile<128x32xbf16> -> vector<128x32xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x128xbf16> -> vector<32x128xbf16>
    %d = xetile.tile_mma %a, %b : vector<128x32xbf16>, vector<32x128xbf16> -> vector<128x128xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<128x128xf32> -> !xetile.tile<128x128xf32>
    xetile.store_tile %d, %tc : vector<128x128xf32>, !xetile.tile<128x128xf32>
    gpu.return
  }
}

// -----

// A product whose rows are reduced is divided into rows. What one subgroup may read after another has written it waits.

// CHECK-LABEL: gpu.func @rows
gpu.module @rows {
  gpu.func @rows(%A: memref<64x32xbf16>, %B: memref<32x64xbf16>, %C: memref<64x64xf32>) kernel attributes {xetile.subgroups = 8 : i64} {
    %ta = xetile.init_tile %A[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
    %tb = xetile.init_tile %B[0, 0] : memref<32x64xbf16> -> !xetile.tile<32x64xbf16>
    %a = xetile.load_tile %ta : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
    // CHECK: tile_mma {{.*}}wg_map_c = #xetile.wg_map<sg_layout = [8, 1], sg_data = [8, 64]>
    %d = xetile.tile_mma %a, %b : vector<64x32xbf16>, vector<32x64xbf16> -> vector<64x64xf32>
    %r = xetile.reduction <add>, %d [1] : vector<64x64xf32> -> vector<64x1xf32>
    %w = xetile.broadcast %r [1] : vector<64x1xf32> -> vector<64x64xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    // CHECK: store_tile
    // CHECK-NEXT: update_tile_offset
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: load_tile
    xetile.store_tile %w, %tc : vector<64x64xf32>, !xetile.tile<64x64xf32>
    %td = xetile.update_tile_offset %tc, [0, 16] : !xetile.tile<64x64xf32>
    %e = xetile.load_tile %td : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    // CHECK: gpu.barrier
    // CHECK-NEXT: store_tile
    xetile.store_tile %e, %tc : vector<64x64xf32>, !xetile.tile<64x64xf32>
    gpu.return
  }
}

// -----

// What all subgroups have written is there before one of them updates a counter.

!one = !xetile.tile<1xi32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @counted
gpu.module @counted {
  gpu.func @counted(%A: memref<64x64xf32>, %N: memref<?xi32>) kernel attributes {xetile.subgroups = 4 : i64} {
    %x = arith.constant dense<1.0> : vector<64x64xf32>
    %t = xetile.init_tile %A[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %i = arith.constant dense<0> : vector<1xindex>
    %n = xetile.init_tile %N, %i : memref<?xi32>, vector<1xindex> -> !one
    %1 = arith.constant dense<1> : vector<1xi32>
    // CHECK: store_tile
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: atomic_rmw
    // CHECK-NOT: gpu.barrier
    xetile.store_tile %x, %t : vector<64x64xf32>, !xetile.tile<64x64xf32>
    %a = xetile.atomic_rmw <addi>, %1, %n : vector<1xi32>, !one -> vector<1xi32>
    %b = xetile.atomic_rmw <addi>, %1, %n : vector<1xi32>, !one -> vector<1xi32>
    gpu.return
  }
}

// -----

// In a loop the same tile is other elements in the next iteration, which another subgroup has.

// CHECK-LABEL: gpu.func @moving
gpu.module @moving {
  gpu.func @moving(%A: memref<80x64xf32>) kernel attributes {xetile.subgroups = 4 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    scf.for %i = %c0 to %c16 step %c1 {
      %t = xetile.init_tile %A[%i, 0] : memref<80x64xf32> -> !xetile.tile<64x64xf32>
      // CHECK: gpu.barrier
      // CHECK-NEXT: load_tile
      // CHECK-NOT: gpu.barrier
      %x = xetile.load_tile %t : !xetile.tile<64x64xf32> -> vector<64x64xf32>
      %y = arith.addf %x, %x : vector<64x64xf32>
      // CHECK: store_tile
      xetile.store_tile %y, %t : vector<64x64xf32>, !xetile.tile<64x64xf32>
    }
    gpu.return
  }
}

// -----

// What all subgroups load and one of them stores is loaded by all before.

// CHECK-LABEL: gpu.func @small
gpu.module @small {
  gpu.func @small(%A: memref<1x4xf32>) kernel attributes {xetile.subgroups = 8 : i64} {
    %t = xetile.init_tile %A[0, 0] : memref<1x4xf32> -> !xetile.tile<1x4xf32>
    // CHECK: load_tile
    %x = xetile.load_tile %t : !xetile.tile<1x4xf32> -> vector<1x4xf32>
    %y = arith.addf %x, %x : vector<1x4xf32>
    // CHECK: gpu.barrier
    // CHECK-NEXT: store_tile
    xetile.store_tile %y, %t : vector<1x4xf32>, !xetile.tile<1x4xf32>
    gpu.return
  }
}

// -----

// Atomic updates are ordered with other accesses, and with each other unless their order changes nothing.

!line = !xetile.tile<64xi32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @updates
gpu.module @updates {
  gpu.func @updates(%A: memref<64xi32>, %B: memref<64xi32>) kernel attributes {xetile.subgroups = 4 : i64} {
    %i = vector.step : vector<64xindex>
    %a = xetile.init_tile %A, %i : memref<64xi32>, vector<64xindex> -> !line
    %m = arith.constant dense<true> : vector<64xi1>
    // CHECK: xetile.load %
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: atomic_rmw
    %x = xetile.load %a, %m : !line, vector<64xi1> -> vector<64xi32>
    %0 = xetile.atomic_rmw <addi>, %x, %a : vector<64xi32>, !line -> vector<64xi32>
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: atomic_rmw <maxs>
    %1 = xetile.atomic_rmw <maxs>, %x, %a : vector<64xi32>, !line -> vector<64xi32>
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: xetile.load
    %y = xetile.load %a, %m : !line, vector<64xi1> -> vector<64xi32>
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: atomic_rmw
    %2 = xetile.atomic_rmw <assign>, %x, %a : vector<64xi32>, !line -> vector<64xi32>
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: xetile.store
    xetile.store %y, %a, %m : vector<64xi32>, !line, vector<64xi1>
    gpu.return
  }
}

// -----

gpu.module @wrong {
  // expected-error @below {{'gpu.func' op has xetile.subgroups = "eight", which is no positive integer}}
  gpu.func @wrong(%A: memref<64x32xbf16>) kernel attributes {xetile.subgroups = "eight"} {
    %ta = xetile.init_tile %A[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
    xetile.prefetch_tile %ta : !xetile.tile<64x32xbf16>
    gpu.return
  }
}

// -----

// An array that is loaded is not the one that is stored, unless the kernel says that arguments may share memory.

// CHECK-LABEL: gpu.func @apart
gpu.module @apart {
  gpu.func @apart(%A: memref<64x64xf32>, %B: memref<64x64xf32>) kernel attributes {xetile.subgroups = 8 : i64} {
    %a = xetile.init_tile %A[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %b = xetile.init_tile %B[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %x = xetile.load_tile %a : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    // CHECK-NOT: gpu.barrier
    // CHECK: store_tile
    xetile.store_tile %x, %b : vector<64x64xf32>, !xetile.tile<64x64xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @aliased
gpu.module @aliased {
  gpu.func @aliased(%A: memref<64x64xf32>, %B: memref<64x64xf32>) kernel attributes {xetile.aliased, xetile.subgroups = 8 : i64} {
    %a = xetile.init_tile %A[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %b = xetile.init_tile %B[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %x = xetile.load_tile %a : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    // CHECK: gpu.barrier
    // CHECK-NEXT: store_tile
    xetile.store_tile %x, %b : vector<64x64xf32>, !xetile.tile<64x64xf32>
    gpu.return
  }
}

// -----

// The result of an update may tell what other workgroups have done: all subgroups wait for it before they load.

!one = !xetile.tile<1xi32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @acquired
gpu.module @acquired {
  gpu.func @acquired(%A: memref<64x64xf32>, %B: memref<64x64xf32>, %N: memref<?xi32>, %R: memref<?xi32>) kernel attributes {xetile.subgroups = 8 : i64} {
    %i = arith.constant dense<0> : vector<1xindex>
    %n = xetile.init_tile %N, %i : memref<?xi32>, vector<1xindex> -> !one
    %r = xetile.init_tile %R, %i : memref<?xi32>, vector<1xindex> -> !one
    %1 = arith.constant dense<1> : vector<1xi32>
    %a = xetile.init_tile %A[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %b = xetile.init_tile %B[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    // CHECK: atomic_rmw
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: load_tile
    // CHECK-NOT: gpu.barrier
    // CHECK: store_tile
    %o = xetile.atomic_rmw <addi>, %1, %n : vector<1xi32>, !one -> vector<1xi32>
    %x = xetile.load_tile %a : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    xetile.store_tile %x, %b : vector<64x64xf32>, !xetile.tile<64x64xf32>
    %t = arith.constant dense<true> : vector<1xi1>
    xetile.store %o, %r, %t : vector<1xi32>, !one, vector<1xi1>
    gpu.return
  }
}

// -----

// An access in a branch counts after it, and one of a single element by its array.

// CHECK-LABEL: gpu.func @branches
gpu.module @branches {
  gpu.func @branches(%A: memref<64x64xf32>, %B: memref<64x64xf32>, %c: i1, %i: index) kernel attributes {xetile.subgroups = 8 : i64} {
    %a = xetile.init_tile %A[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %b = xetile.init_tile %B[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %z = arith.constant dense<0.0> : vector<64x64xf32>
    // CHECK: scf.if
    // CHECK-NOT: gpu.barrier
    // CHECK: scf.yield
    %v = scf.if %c -> vector<64x64xf32> {
      %w = xetile.load_tile %b : !xetile.tile<64x64xf32> -> vector<64x64xf32>
      scf.yield %w : vector<64x64xf32>
    } else {
      scf.yield %z : vector<64x64xf32>
    }
    // CHECK-NOT: gpu.barrier
    // CHECK: store_tile
    xetile.store_tile %v, %a : vector<64x64xf32>, !xetile.tile<64x64xf32>
    // CHECK: gpu.barrier
    // CHECK-NEXT: store_tile
    %o = xetile.init_tile %B[0, 16] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    xetile.store_tile %v, %o : vector<64x64xf32>, !xetile.tile<64x64xf32>
    // CHECK: scf.if
    // CHECK: gpu.barrier
    // CHECK-NEXT: memref.load
    scf.if %c {
      %e = memref.load %B[%i, %i] : memref<64x64xf32>
      %f = vector.broadcast %e : f32 to vector<64x64xf32>
      // CHECK-NOT: gpu.barrier
      // CHECK: store_tile
      xetile.store_tile %f, %a : vector<64x64xf32>, !xetile.tile<64x64xf32>
    }
    gpu.return
  }
}

// -----

// Two addresses may be those of the same memory.

// CHECK-LABEL: gpu.func @addresses
gpu.module @addresses {
  gpu.func @addresses(%A: i64, %B: i64) kernel attributes {xetile.subgroups = 8 : i64} {
    %a = xetile.init_tile %A[0, 0], [64, 64], [64, 1] : i64 -> !xetile.tile<64x64xf32>
    %b = xetile.init_tile %B[0, 0], [64, 64], [64, 1] : i64 -> !xetile.tile<64x64xf32>
    %x = xetile.load_tile %a : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    // CHECK: gpu.barrier
    // CHECK-NEXT: store_tile
    xetile.store_tile %x, %b : vector<64x64xf32>, !xetile.tile<64x64xf32>
    gpu.return
  }
}
