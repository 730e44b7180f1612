"""Running kernels: device memory, launches over a grid, traces and statistics."""
