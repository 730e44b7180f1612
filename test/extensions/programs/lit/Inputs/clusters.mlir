module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @nothing() kernel {
      gpu.return
    }
  }
  func.func @main() {
    %c2 = arith.constant 2 : index
    gpu.launch_func @kernels::@nothing clusters in (%c2, %c2, %c2) blocks in (%c2, %c2, %c2) threads in (%c2, %c2, %c2)
    return
  }
}
