"""`iree_vector_ext`: a layout says who holds which element of a vector, and never changes its value."""

from __future__ import annotations

from xegpu_py.numerics.formats import Array
from xegpu_py.reference.program import Node, evaluates


@evaluates("iree_vector_ext.to_layout")
def to_layout(node: Node, a: Array) -> Array:
    """The same vector."""
    return a
