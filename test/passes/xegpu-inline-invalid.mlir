// RUN: xegpu-opt %s --xegpu-inline --split-input-file --verify-diagnostics

gpu.module @m {
  func.func @again(%x: i32) -> i32 {
    // expected-error @below {{'func.call' op is recursive}}
    // expected-note @below {{vISA kernels do not have a stack}}
    %y = func.call @again(%x) : (i32) -> i32
    return %y : i32
  }
  gpu.func @calls(%x: i32) kernel {
    %y = func.call @again(%x) : (i32) -> i32
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func @jumps(%x: i1) -> i1 {
    cf.cond_br %x, ^a, ^b
  ^a:
    cf.br ^b
  ^b:
    return %x : i1
  }
  gpu.func @calls(%x: i1) kernel {
    // expected-error @below {{'func.call' op calls a function with unstructured control flow}}
    // expected-note @below {{run xegpu-lift-cf first, which converts branches to scf ops}}
    %y = func.call @jumps(%x) : (i1) -> i1
    gpu.return
  }
}

// -----

gpu.module @m {
  memref.global "private" @state : memref<8xf32>
  gpu.func @reads(%o: memref<16xf32>, %i: index) kernel {
    // expected-error @below {{'memref.get_global' op refers to memory that is no constant with a value}}
    // expected-note @below {{pass the memref as an argument}}
    %t = memref.get_global @state : memref<8xf32>
    %g = memref.load %t[%i] : memref<8xf32>
    memref.store %g, %o[%i] : memref<16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  memref.global "private" constant @table : memref<8xf32> = dense<2.0>
  gpu.func @views(%o: memref<16xf32>, %i: index) kernel {
    // expected-error @below {{'memref.get_global' op is a constant table that 'memref.subview' uses}}
    // expected-note @below {{kernels can only load its elements}}
    %t = memref.get_global @table : memref<8xf32>
    %s = memref.subview %t[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
    gpu.return
  }
}
