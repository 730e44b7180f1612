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
