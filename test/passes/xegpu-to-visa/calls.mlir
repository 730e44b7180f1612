// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' --split-input-file --verify-diagnostics

gpu.module @m {
  func.func @f(%x: i32) -> i32 {
    return %x : i32
  }
  gpu.func @not_inlined(%x: i32) kernel {
    // expected-error @below {{'func.call' op calls 'f'}}
    // expected-note @below {{xegpu-inline puts into a kernel what it calls}}
    %y = func.call @f(%x) : (i32) -> i32
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @g(i32) -> i32
  gpu.func @unknown(%x: i32) kernel {
    // expected-error @below {{'func.call' op calls 'g', which has no body}}
    // expected-note @below {{the functions that need none are llvm.genx.srnd}}
    %y = func.call @g(%x) : (i32) -> i32
    gpu.return
  }
}
