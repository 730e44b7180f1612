"""Profiles of kernels: exact counts, a model of the time on a GPU, and the report."""
