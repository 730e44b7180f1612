"""Rewriting of kernels: rules and their driver, builders of ops, accesses of memory, layout conversions."""
