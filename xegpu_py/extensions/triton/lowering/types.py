"""Queries of TTIR's types and constants for the lowering."""

from __future__ import annotations

from typing import Any

import numpy as np
from mlir import ir as mlir
from msgspec import Struct

from xegpu_py.dialects.tt.types import Ptr, TensorDesc
from xegpu_py.ir.builtin import Decoded
from xegpu_py.tiles import element_types
from xegpu_py.tiles.element_types import DType, dtype_of


class Kind(Struct, frozen=True):
    """A type of TTIR.

    Attributes:
        shape: the extents of a tensor or of a descriptor's blocks; () of a scalar.
        element: MLIR's name of the type of an element; of pointers, that of what they point to.
        is_pointer: whether elements are pointers.
        is_descriptor: whether it is a descriptor.
    """

    shape: tuple[int, ...]
    element: str
    is_pointer: bool = False
    is_descriptor: bool = False

    @property
    def dtype(self) -> DType:
        """The type of an element in registers; integers are signed."""
        return dtype_of(self.element)

    @property
    def stored(self) -> DType:
        """The type of an element in memory: truth values and pointers have their bytes."""
        if self.element.startswith("!tt.ptr"):
            return element_types.int64
        return element_types.int8 if self.element == "i1" else dtype_of(self.element)


def kind_of(of: mlir.Value | mlir.Type) -> Kind:
    """The type of a value."""
    return _KINDS[of.type if isinstance(of, mlir.Value) else of]


def _kind(mlir_type: mlir.Type) -> Kind:
    shape: tuple[int, ...] = ()
    if isinstance(mlir_type, mlir.RankedTensorType):
        shape, mlir_type = tuple(mlir_type.shape), mlir_type.element_type
    if Ptr.matches(mlir_type):
        return Kind(shape, Ptr.of(mlir_type).pointee, is_pointer=True)
    if TensorDesc.matches(mlir_type):
        desc = TensorDesc.of(mlir_type)
        # Descriptors alone have signed integers, which are those of tensors without a sign.
        element = desc.element.removeprefix("s") if desc.element.startswith("si") else desc.element
        return Kind(desc.shape, element, is_descriptor=True)
    return Kind(shape, str(mlir_type))


_KINDS = Decoded(_kind)


def integer_bits(mlir_type: mlir.Type) -> int:
    """The width of an integer, or of the integers of a tensor; 0 for other types."""
    element = mlir_type.element_type if isinstance(mlir_type, mlir.RankedTensorType) else mlir_type
    return mlir.IntegerType(element).width if isinstance(element, mlir.IntegerType) else 0


def number_of(constant: mlir.Operation) -> Any:
    """The number that all elements of an `arith.constant` are; None if they are not equal."""
    attr = constant.attributes["value"]
    if isinstance(attr, mlir.DenseElementsAttr):
        if not attr.is_splat:
            return None
        attr = attr.get_splat_value()
    if isinstance(attr, mlir.BoolAttr):
        return attr.value
    return attr.value if isinstance(attr, (mlir.IntegerAttr, mlir.FloatAttr)) else None


def elements_of(constant: mlir.Operation) -> np.ndarray[Any, Any]:
    """The elements of an `arith.constant` of a tensor."""
    return np.array(mlir.DenseElementsAttr(constant.attributes["value"]))
