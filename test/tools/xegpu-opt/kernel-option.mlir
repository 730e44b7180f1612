// An option that names a kernel which does not exist changes nothing, and says so once.
// RUN: xegpu-opt %s --xegpu-to-visa-pipeline=kernel=frist 2>&1 | FileCheck %s --check-prefix=NEAR
// RUN: xegpu-opt %s --xegpu-unroll=kernel=other --xegpu-dce 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: xegpu-opt %s --xegpu-to-visa-pipeline=kernel=second 2>&1 | FileCheck %s --check-prefix=SECOND
// RUN: xegpu-opt %s --pass-pipeline='builtin.module(gpu-kernel-outlining,xegpu-unroll{kernel=host_kernel})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OUTLINED

// NEAR: gpu.func @first() kernel {
// NEAR: kernel-option.mlir:[[#]]:1: warning: there is no kernel 'frist' for pass 'xegpu-to-visa-pipeline'; did you mean 'first'?
// NEAR-NOT: warning
// OTHER: warning: there is no kernel 'other' for pass 'xegpu-unroll'; there are first, second
// SECOND: gpu.func @first() kernel {
// SECOND: gpu.func @second() kernel attributes
// SECOND-NOT: warning
// OUTLINED: gpu.func @host_kernel() kernel
// OUTLINED-NOT: warning
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @first() kernel {
      gpu.return
    }
    gpu.func @second() kernel {
      gpu.return
    }
  }
  func.func @host(%n: index) {
    gpu.launch blocks(%x, %y, %z) in (%gx = %n, %gy = %n, %gz = %n)
        threads(%tx, %ty, %tz) in (%bx = %n, %by = %n, %bz = %n) {
      gpu.terminator
    }
    return
  }
}
