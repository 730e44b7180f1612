"""`xegpu-to-visa`: kernels of XeGPU and the dialects around it to vISA."""
