"""The layouts of vectors: their relations by ops, and their propagation through a function."""

LAYOUTS = "iree_vector_ext.layouts"
"""Attribute of an op: the layouts of its results, `unit` for those without."""
