"""Kernels as users of Triton write them, by theme; `test_kernel_suite.py` runs all of them on all engines.

A module has kernels, and below each a function that gives a `Run` of it: random arguments of odd sizes, and what numpy
says of them.
"""
