"""Differential testing of MLIR's own passes: the result of a kernel before the first pass, and after each pass."""
