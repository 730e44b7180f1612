// A program allocates, copies, launches and prints; asynchronous ops too.
// RUN: xegpu-run %s -e main | FileCheck %s
// RUN: xegpu-run %s -e main --engine=interpreter | FileCheck %s
// RUN: xegpu-run %s -e main --engine=reference | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale(%a: memref<16x32xf32>, %b: memref<16x32xf32>, %factor: f32, %more: vector<16xf32>) kernel {
      %x = gpu.block_id x
      %y = gpu.block_id y
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %m = arith.muli %x, %c8 : index
      %n = arith.muli %y, %c16 : index
      %from = xegpu.create_nd_tdesc %a[%m, %n] {mode = vc} : memref<16x32xf32> -> !xegpu.tensor_desc<8x16xf32>
      %to = xegpu.create_nd_tdesc %b[%m, %n] {mode = vc} : memref<16x32xf32> -> !xegpu.tensor_desc<8x16xf32>
      %v = xegpu.load_nd %from {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
      %f = vector.broadcast %factor : f32 to vector<8x16xf32>
      %o = vector.broadcast %more : vector<16xf32> to vector<8x16xf32>
      %scaled = arith.mulf %v, %f : vector<8x16xf32>
      %w = arith.addf %scaled, %o : vector<8x16xf32>
      xegpu.store_nd %w, %to {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
      gpu.return
    }
  }

  func.func @main() -> i32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %host = memref.alloc() : memref<16x32xf32>
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c32 step %c1 {
        %k = arith.addi %i, %j : index
        %int = arith.index_cast %k : index to i32
        %x = arith.sitofp %int : i32 to f32
        memref.store %x, %host[%i, %j] : memref<16x32xf32>
      }
    }
    %factor = arith.constant 2.5 : f32
    %more = arith.constant dense<1.0> : vector<16xf32>
    %t0 = gpu.wait async
    %a, %t1 = gpu.alloc async [%t0] () : memref<16x32xf32, 1>
    %b = gpu.alloc host_shared () : memref<16x32xf32>
    // New memory is zero.
    // CHECK: 0, 0, 0, 0
    %zero = vector.load %b[%c0, %c0] : memref<16x32xf32>, vector<4xf32>
    vector.print %zero : vector<4xf32>
    %t2 = gpu.memcpy async [%t1] %a, %host : memref<16x32xf32, 1>, memref<16x32xf32>
    %global = memref.memory_space_cast %a : memref<16x32xf32, 1> to memref<16x32xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@scale blocks in (%c2, %c2, %c1) threads in (%c1, %c1, %c1)
        args(%global : memref<16x32xf32>, %b : memref<16x32xf32>, %factor : f32, %more : vector<16xf32>)
    %t4 = gpu.dealloc async [%t3] %a : memref<16x32xf32, 1>
    gpu.wait [%t4]
    %unranked = memref.cast %b : memref<16x32xf32> to memref<*xf32>
    // CHECK: Unranked Memref base@ = 0x{{[0-9a-f]+}} rank = 2 offset = 0 sizes = [16, 32] strides = [32, 1] data =
    // CHECK-NEXT: {{^\[\[}}1,   3.5,   6,   8.5,
    // CHECK-NEXT: {{^}} [3.5,   6,   8.5,   11,
    // CHECK-COUNT-13: {{^}} [
    // CHECK-NEXT: {{^}} [38.5,{{.*}}   116{{\]\]}}
    call @printMemrefF32(%unranked) : (memref<*xf32>) -> ()

    // Tokens may pass through loops.
    %filled = gpu.alloc () : memref<4xi32>
    %t5 = gpu.wait async
    %t6 = scf.for %i = %c0 to %c2 step %c1 iter_args(%t = %t5) -> (!gpu.async.token) {
      %int = arith.index_cast %i : index to i32
      %next = gpu.memset async [%t] %filled, %int : memref<4xi32>, i32
      scf.yield %next : !gpu.async.token
    }
    gpu.wait [%t6]
    %filled_cast = memref.cast %filled : memref<4xi32> to memref<*xi32>
    // CHECK: [1,  1,  1,  1]
    call @printMemrefI32(%filled_cast) : (memref<*xi32>) -> ()
    gpu.dealloc %b : memref<16x32xf32>
    gpu.dealloc %filled : memref<4xi32>
    memref.dealloc %host : memref<16x32xf32>
    %ok = arith.constant 0 : i32
    return %ok : i32
  }

  func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
  func.func private @printMemrefI32(memref<*xi32>)
}
