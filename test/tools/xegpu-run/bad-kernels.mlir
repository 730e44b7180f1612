// What is wrong with a kernel is told at the op in the user's file, as it is lowered or as it runs, with status 1.

gpu.module @kernels {
  // Out of bounds: the last workgroup reads behind the end.
  // RUN: not xegpu-run %s --kernel copy zeros:f32:64 zeros:f32:64 --grid 5 2>&1 | FileCheck %s --check-prefix=COPY
  // COPY: bad-kernels.mlir:13:10: error: 'lsc_load' reads 64 bytes at 0x100100, reaching 64 bytes over the end of '%from', which has 256 bytes
  // COPY: bad-kernels.mlir:13:10: note: in workgroup (4, 0, 0), subgroup 0
  gpu.func @copy(%from: memref<64xf32>, %to: memref<64xf32>) kernel {
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %at = arith.muli %x, %c16 : index
    %src = xegpu.create_nd_tdesc %from[%at] {mode = vc} : memref<64xf32> -> !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>
    %v = xegpu.load_nd %src {mode = vc} : !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>> -> vector<16xf32>
    %dst = xegpu.create_nd_tdesc %to[0] {mode = vc} : memref<64xf32> -> !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>
    xegpu.store_nd %v, %dst {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>
    gpu.return
  }

  // Out of bounds: lane 13 of a scatter, the first that is.
  // RUN: not xegpu-run %s --kernel scatter zeros:f32:64 2>&1 | FileCheck %s --check-prefix=SCATTER
  // SCATTER: bad-kernels.mlir:30:5: error: 'lsc_store' writes 4 bytes at 0x100104, reaching 8 bytes over the end of '%to', which has 256 bytes
  // SCATTER: bad-kernels.mlir:30:5: note: in workgroup (0, 0, 0), subgroup 0, lane 13
  gpu.func @scatter(%to: memref<64xf32>) kernel {
    %lanes = vector.step : vector<16xindex>
    %five = arith.constant dense<5> : vector<16xindex>
    %places = arith.muli %lanes, %five : vector<16xindex>
    %d = xegpu.create_tdesc %to, %places {mode = vc} : memref<64xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    %ones = arith.constant dense<1.0> : vector<16xf32>
    %all = arith.constant dense<true> : vector<16xi1>
    xegpu.store_scatter %ones, %d, %all {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>
    gpu.return
  }

  // A matrix whose address, known only at run time, is not aligned for 2D block messages.
  // RUN: not xegpu-run %s --kernel misaligned zeros:f16:64x64 i64:1 2>&1 | FileCheck %s --check-prefix=MISALIGNED
  // MISALIGNED: bad-kernels.mlir:43:10: error: 'lsc_load_block2d' accesses a surface whose base is not a multiple of 64:
  // MISALIGNED: note: addresses, extents and strides that are unknown at compile time are assumed to satisfy the rules of 2D block messages, except for arguments listed in the kernel's attribute xegpu.unaligned
  gpu.func @misaligned(%all: memref<64x64xf16>, %first: index) kernel {
    %m = memref.subview %all[0, %first] [64, 32] [1, 1]
      : memref<64x64xf16> to memref<64x32xf16, strided<[64, 1], offset: ?>>
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc}
      : memref<64x32xf16, strided<[64, 1], offset: ?>> -> !xegpu.tensor_desc<8x16xf16>
    %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    xegpu.store_nd %v, %d {mode = vc} : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>
    gpu.return
  }

  // A dpas that no GPU has.
  // RUN: not xegpu-run %s --kernel dpas zeros:f32:64x64 2>&1 | FileCheck %s --check-prefix=DPAS
  // DPAS: bad-kernels.mlir:55:10: error: 'xegpu.dpas' op target 'pvcxt' does not support precision hf8
  gpu.func @dpas(%m: memref<64x64xf32>) kernel {
    %a = arith.constant dense<1.0> : vector<8x32xf8E4M3FN>
    %b = arith.constant dense<1.0> : vector<8x16x4xf8E4M3FN>
    %z = arith.constant 0 : index
    %c = xegpu.dpas %a, %b {mode = vc} : vector<8x32xf8E4M3FN>, vector<8x16x4xf8E4M3FN> -> vector<8x16xf32>
    %e = vector.extract %c[0, 0] : f32 from vector<8x16xf32>
    memref.store %e, %m[%z, %z] : memref<64x64xf32>
    gpu.return
  }

  // A barrier to which one of two subgroups comes.
  // RUN: not xegpu-run %s --kernel barrier --block 2 2>&1 | FileCheck %s --check-prefix=BARRIER
  // BARRIER: bad-kernels.mlir:70:7: error: deadlock: 1 threads of kernel 'barrier' wait for signals that never come
  // BARRIER: bad-kernels.mlir:70:7: note: workgroup (0, 0, 0), subgroup 0 waits at
  gpu.func @barrier() kernel {
    %c0 = arith.constant 0 : index
    %thread = gpu.thread_id x
    %first = arith.cmpi eq, %thread, %c0 : index
    scf.if %first {
      gpu.barrier
    }
    gpu.return
  }

  // A named barrier that waits for three threads of a workgroup of two.
  // RUN: not xegpu-run %s --kernel nbarrier --block 2 2>&1 | FileCheck %s --check-prefix=NBARRIER
  // NBARRIER: bad-kernels.mlir:85:5: error: deadlock: 2 threads of kernel 'nbarrier' wait for signals that never come
  // NBARRIER: bad-kernels.mlir:85:5: note: workgroup (0, 0, 0), subgroup 0 and 1 more wait at
  gpu.func @nbarrier() kernel {
    xegpu.alloc_nbarrier 1
    %id = arith.constant 0 : i8
    %three = arith.constant 3 : i8
    %b = xegpu.init_nbarrier %id, %three : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %b
    xegpu.nbarrier_wait %b
    gpu.return
  }

  // Recursion, by way of another function.
  // RUN: not xegpu-run %s --kernel recursion 2>&1 | FileCheck %s --check-prefix=RECURSION
  // RECURSION: bad-kernels.mlir:98:10: error: 'func.call' op is recursive
  // RECURSION: bad-kernels.mlir:98:10: note: vISA kernels do not have a stack
  func.func @f(%n: index) -> index {
    %r = func.call @g(%n) : (index) -> index
    return %r : index
  }
  func.func @g(%n: index) -> index {
    %r = func.call @f(%n) : (index) -> index
    return %r : index
  }
  gpu.func @recursion() kernel {
    %c0 = arith.constant 0 : index
    %r = func.call @f(%c0) : (index) -> index
    gpu.return
  }

  // An op that has no lowering.
  // RUN: not xegpu-run %s --kernel printing zeros:f32:64x64 2>&1 | FileCheck %s --check-prefix=PRINTING
  // PRINTING: bad-kernels.mlir:113:5: error: 'vector.print' op cannot be lowered to vISA
  // PRINTING: bad-kernels.mlir:113:5: note: kernels can contain supported ops of arith, {{.*}}xegpu
  gpu.func @printing(%m: memref<64x64xf32>) kernel {
    %v = arith.constant dense<1.0> : vector<4xf32>
    vector.print %v : vector<4xf32>
    gpu.return
  }

  // An assertion behind branches that does not hold.
  // RUN: not xegpu-run %s --kernel asserting i8:1 zeros:i8:1 2>&1 | FileCheck %s --check-prefix=ASSERTING
  // ASSERTING: bad-kernels.mlir:129:5: error: assertion failed: zero
  gpu.func @asserting(%n: i8, %m: memref<1xi8>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i8
    %p = arith.cmpi eq, %n, %zero : i8
    cf.cond_br %p, ^a, ^b
  ^a:
    memref.store %n, %m[%c0] : memref<1xi8>
    cf.br ^b
  ^b:
    cf.assert %p, "zero"
    gpu.return
  }

  // More shared local memory than there is.
  // RUN: not xegpu-run %s --kernel slm 2>&1 | FileCheck %s --check-prefix=SLM
  // SLM: bad-kernels.mlir:137:10: error: 'memref.alloc' op requires 3907 KiB of shared local memory, but target 'pvcxt' has 128 KiB
  gpu.func @slm() kernel {
    %m = memref.alloc() : memref<1000x1000xf32, 3>
    %c0 = arith.constant 0 : index
    %f = memref.load %m[%c0, %c0] : memref<1000x1000xf32, 3>
    memref.store %f, %m[%c0, %c0] : memref<1000x1000xf32, 3>
    gpu.return
  }
}
