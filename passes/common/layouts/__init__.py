"""The layouts of vectors: how ops relate them, and how they flow through a function."""

LAYOUTS = "iree_vector_ext.layouts"
"""Attribute of an op: the layouts of its results, `unit` for those without."""
