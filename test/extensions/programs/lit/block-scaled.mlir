// Memrefs of 4 bits of a program are packed, as its kernels have them.

// RUN: xegpu-run %s -e main --target=cri | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @product(%a: memref<8x64xf4E2M1FN>, %b: memref<32x16xi8>, %c: memref<8x16xf32>, %s: memref<8x2xf8E8M0FNU>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %da = xegpu.create_nd_tdesc %a : memref<8x64xf4E2M1FN> -> !xegpu.tensor_desc<8x64xf4E2M1FN>
      %va = xegpu.load_nd %da[0, 0] : !xegpu.tensor_desc<8x64xf4E2M1FN> -> vector<32xf4E2M1FN>
      %db = xegpu.create_nd_tdesc %b : memref<32x16xi8> -> !xegpu.tensor_desc<32x16xi8>
      %bytes = xegpu.load_nd %db[0, 0] <{packed}> : !xegpu.tensor_desc<32x16xi8> -> vector<32xi8>
      %vb = vector.bitcast %bytes : vector<32xi8> to vector<64xf4E2M1FN>
      %lane = gpu.thread_id x
      %row = arith.remui %lane, %c8 : index
      %first = memref.load %s[%row, %c0] : memref<8x2xf8E8M0FNU>
      %second = memref.load %s[%row, %c1] : memref<8x2xf8E8M0FNU>
      %vs = vector.from_elements %first, %second : vector<2xf8E8M0FNU>
      %d = xegpu.dpas_mx %va, %vb scale_a = %vs : (vector<32xf4E2M1FN>, vector<64xf4E2M1FN>, vector<2xf8E8M0FNU>) -> vector<8xf32>
      %dc = xegpu.create_nd_tdesc %c : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
      xegpu.store_nd %d, %dc[0, 0] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
      gpu.return
    }
  }
  func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    // 1 is 0x2, and 1.5 is 0x3: columns of A alternate between 1.5 and 1.
    %ones = arith.constant 0x22 : i8
    %mixed = arith.constant 0x23 : i8
    %one = arith.constant 1.0 : f8E8M0FNU
    %four = arith.constant 4.0 : f8E8M0FNU
    %bytes = memref.alloc() : memref<256xi8>
    %view = memref.view %bytes[%c0][] : memref<256xi8> to memref<8x64xf4E2M1FN>
    %hb = memref.alloc() : memref<32x16xi8>
    %hs = memref.alloc() : memref<8x2xf8E8M0FNU>
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c32 step %c1 {
        %row = arith.muli %i, %c32 : index
        %at = arith.addi %row, %j : index
        memref.store %mixed, %bytes[%at] : memref<256xi8>
      }
      memref.store %one, %hs[%i, %c0] : memref<8x2xf8E8M0FNU>
      memref.store %four, %hs[%i, %c1] : memref<8x2xf8E8M0FNU>
    }
    scf.for %i = %c0 to %c32 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        memref.store %ones, %hb[%i, %j] : memref<32x16xi8>
      }
    }
    %a = gpu.alloc () : memref<8x64xf4E2M1FN>
    %b = gpu.alloc () : memref<32x16xi8>
    %s = gpu.alloc () : memref<8x2xf8E8M0FNU>
    %c = gpu.alloc host_shared () : memref<8x16xf32>
    gpu.memcpy %a, %view : memref<8x64xf4E2M1FN>, memref<8x64xf4E2M1FN>
    gpu.memcpy %b, %hb : memref<32x16xi8>, memref<32x16xi8>
    gpu.memcpy %s, %hs : memref<8x2xf8E8M0FNU>, memref<8x2xf8E8M0FNU>
    gpu.launch_func @kernels::@product blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
      args(%a : memref<8x64xf4E2M1FN>, %b : memref<32x16xi8>, %c : memref<8x16xf32>, %s : memref<8x2xf8E8M0FNU>)
    %shown = memref.cast %c : memref<8x16xf32> to memref<*xf32>
    call @printMemrefF32(%shown) : (memref<*xf32>) -> ()
    gpu.dealloc %a : memref<8x64xf4E2M1FN>
    gpu.dealloc %b : memref<32x16xi8>
    gpu.dealloc %s : memref<8x2xf8E8M0FNU>
    gpu.dealloc %c : memref<8x16xf32>
    return
  }
}

// 32 x 1.25 x 1 and 32 x 1.25 x 4.
// CHECK-COUNT-8: [200,   200,   200,   200,   200,   200,   200,   200,   200,   200,   200,   200,   200,   200,   200,   200]
