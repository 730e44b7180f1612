"""Running kernels: device memory, launches over a grid, and what is measured of them."""
