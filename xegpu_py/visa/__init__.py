"""vISA: the virtual instruction set of Intel GPUs."""
