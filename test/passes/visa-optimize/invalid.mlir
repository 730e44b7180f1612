// RUN: xegpu-opt %s --visa-optimize='grf=100' --verify-diagnostics

gpu.module @kernels attributes {visa.target = "pvc"} {
  // expected-error @+1 {{target pvc has 128 or 256 registers, not 100}}
  gpu.func @registers() kernel {
    visa.ret (M1, 1)
    gpu.return
  }
}
