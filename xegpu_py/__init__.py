"""XeTile and XeGPU for Intel Xe GPUs, in Python on MLIR."""
