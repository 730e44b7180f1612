"""The part of IREE's dialect `iree_vector_ext` that speaks of layouts."""

from xegpu_py.dialects.iree_vector_ext.ops import (
    IreeVectorExt,
    NestedLayoutAttr,
    ToLayoutOp,
    ToSimdOp,
    ToSimtOp,
)

DIALECT = IreeVectorExt

__getattr__ = IreeVectorExt.function
