// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' --split-input-file --verify-diagnostics

gpu.module @m {
  func.func @f(%x: i32) -> i32 {
    return %x : i32
  }
  gpu.func @not_inlined(%x: i32) kernel {
    // expected-error @below {{'func.call' op calls 'f'}}
    // expected-note @below {{run xegpu-inline first}}
    %y = func.call @f(%x) : (i32) -> i32
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @g(i32) -> i32
  gpu.func @unknown(%x: i32) kernel {
    // expected-error @below {{'func.call' op calls undefined function 'g'}}
    // expected-note @below {{functions that need no body are llvm.genx.srnd}}
    %y = func.call @g(%x) : (i32) -> i32
    gpu.return
  }
}
