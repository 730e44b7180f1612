# Made by `make docs` from the dialect's classes; changes belong there.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from mlir import ir

from xegpu_py.ir.definition import Type as _Type
from xegpu_py.dialects.iree_vector_ext.ops import IreeVectorExt as IreeVectorExt
from xegpu_py.dialects.iree_vector_ext.ops import NestedLayoutAttr as NestedLayoutAttr
from xegpu_py.dialects.iree_vector_ext.ops import ToLayoutOp as ToLayoutOp
from xegpu_py.dialects.iree_vector_ext.ops import ToSimdOp as ToSimdOp
from xegpu_py.dialects.iree_vector_ext.ops import ToSimtOp as ToSimtOp

_Value: TypeAlias = ir.Value | ir.OpView | ir.Operation
_ResultType: TypeAlias = ir.Type | _Type | str

DIALECT = IreeVectorExt

def to_layout(
    input: _Value,
    layout: NestedLayoutAttr,
    *,
    output: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Gives a vector a layout: the result is the input, held by subgroups and lanes as the layout says."""

def to_simd(
    input: _Value,
    *,
    output: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Takes a lane's part of a vector to the whole, undistributed vector."""

def to_simt(
    input: _Value,
    *,
    output: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Takes a whole, undistributed vector to a lane's part of it; the reverse of `to_simd`."""
