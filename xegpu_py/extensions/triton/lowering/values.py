"""Representations of values of TTIR: values of tiles, constants, pointers and descriptors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir as mlir
from mlir.dialects import arith, memref
from msgspec import Struct

from xegpu_py.extensions.triton.lowering.types import Kind
from xegpu_py.tiles import element_types
from xegpu_py.tiles.arrays import Array, Memory, Pointers
from xegpu_py.tiles.element_types import DType, integer_of
from xegpu_py.tiles.functions import arange, where
from xegpu_py.tiles.tile_values import Value, constant
from xegpu_py.tiles.value_base import common_shape, concatenate, matrix_shape


def applied(name: str, dtype: DType, *operands: Value, **attributes: mlir.Attribute) -> Value:
    """An elementwise op of MLIR on values, which are broadcast to one shape."""
    shape = common_shape(*(v.shape for v in operands))
    values = [v.broadcast(shape).ir for v in operands]
    op = mlir.Operation.create(name, [dtype.vector(matrix_shape(shape))], values, attributes=attributes)
    return Value(op.result, dtype, shape)


def signed(value: Value) -> Value:
    """Integers with the same bits and a sign."""
    return value.to(integer_of(value.dtype.bits, signed=True)) if value.dtype.kind == "uint" else value


def unsigned(value: Value) -> Value:
    """Integers with the same bits and without a sign."""
    return value.to(integer_of(value.dtype.bits, signed=False)) if value.dtype.kind == "int" else value


def chosen(condition: Value, a: Value, b: Value) -> Value:
    """Elements of `a` where a condition holds, and of `b` elsewhere, of one type."""
    shape = common_shape(condition.shape, a.shape, b.shape)
    if not condition.shape:
        # One condition chooses one element, or whole vectors.
        selected = arith.select(condition.ir, a.broadcast(shape).ir, b.broadcast(shape).ir)
        return Value(selected, a.dtype, shape)
    return where(condition, a.broadcast(shape), b.broadcast(shape))


class Constant(Struct, frozen=True):
    """A constant, which becomes a value of the type in which it is used.

    Attributes:
        kind: its type in TTIR.
        number: the number that all elements are; None if they are not equal.
        rows: the elements of a tensor whose elements are not equal.
    """

    kind: Kind
    number: Any = None
    rows: tuple[Any, ...] = ()

    def value(self, dtype: DType, shape: Sequence[int] | None = None) -> Value:
        """The constant as a value."""
        if self.number is not None:
            number = self.number
            if dtype.kind == "uint" and number < 0:
                number += 1 << dtype.bits
            elif dtype.kind == "int" and number > dtype.limits[1]:
                number -= 1 << dtype.bits
            return _filled(dtype, number, self.kind.shape if shape is None else shape)
        parts = [_filled(dtype, n, (1,)) for n in self.rows]
        return concatenate(parts, 0).reshape(self.kind.shape)


def _filled(dtype: DType, number: Any, shape: Sequence[int]) -> Value:
    if dtype.is_float and not math.isfinite(number) and not dtype.infinite and not math.isnan(number):
        # Without infinities, that of another type is NaN.
        number = math.nan
    return constant(dtype, number, shape)


class Pointer(Struct, frozen=True):
    """Pointers to elements of memory.

    Attributes:
        memory: the array, or the memory behind an address.
        index: which of its elements, as values of type index; None if all point to the first one.
        shape: the shape of the pointers.
        element: MLIR's name of the type of what they point to.
    """

    memory: Array | Memory
    index: Value | None
    shape: tuple[int, ...]
    element: str

    @property
    def offsets(self) -> Value:
        """Indices of the elements that they point to."""
        return constant(element_types.index, 0, self.shape) if self.index is None else self.index

    def pointers(self) -> Pointers:
        """The pointers as functions of tiles take them."""
        return Pointers(self.memory, self.offsets)

    def plus(self, offset: Value) -> Pointer:
        """Pointers to elements that follow, by numbers of type index."""
        index = offset if self.index is None else applied("arith.addi", element_types.index, self.index, offset)
        shape = common_shape(self.shape, offset.shape)
        return Pointer(self.memory, index.broadcast(shape), shape, self.element)

    def moved(self, shape: Sequence[int], change: Callable[[Value], Value]) -> Pointer:
        """The pointers whose elements an op has moved."""
        index = None if self.index is None else change(self.index)
        return Pointer(self.memory, index, tuple(shape), self.element)

    def of_type(self, memory: Array | Memory, element: str) -> Pointer:
        """The pointers with another type of memory and elements of the same size."""
        return Pointer(memory, self.index, self.shape, element)

    def addresses(self) -> Value:
        """The addresses of what they point to, int64."""
        if isinstance(self.memory, Memory):
            base = Value(self.memory.ir, element_types.int64)
        else:
            address = memref.extract_aligned_pointer_as_index(self.memory.ir)
            base = Value(address, element_types.index).to(element_types.int64)
        if self.index is None:
            return base.broadcast(self.shape) if self.shape else base
        size = self.memory.dtype.memory.bits // 8
        return (self.index.to(element_types.int64) * size + base).broadcast(self.shape)

    @classmethod
    def of_addresses(cls, addresses: Value, kind: Kind) -> Pointer:
        """Pointers to elements at addresses.

        Args:
            kind: their type.
        """
        dtype = kind.stored
        if not addresses.shape:
            return cls(Memory(addresses.ir, dtype), None, (), kind.element)
        # Elements of memory that begins at address 0.
        size = dtype.bits // 8
        index = addresses if size == 1 else addresses // size
        zero = constant(element_types.int64, 0)
        return cls(Memory(zero.ir, dtype), index.to(element_types.index), addresses.shape, kind.element)


class Descriptor(Struct, frozen=True):
    """A descriptor of a tensor in memory.

    Attributes:
        base: the pointer to its first element.
        shape: the extents, of type index.
        strides: the strides in elements, of type index; the last one is 1.
        block: the shape of its blocks.
        padding: the number that out-of-bounds elements are read as.
        is_rounded: whether elements that are read are rounded to tf32.
    """

    base: Pointer
    shape: tuple[Value, ...]
    strides: tuple[Value, ...]
    block: tuple[int, ...]
    padding: float
    is_rounded: bool = False

    def places(self, offsets: Sequence[Value]) -> tuple[Pointer, Value]:
        """Pointers to the elements of a block, and which of them are in bounds.

        Args:
            offsets: for each dimension a number, or a value that is broadcast to the block.
        """
        index: Value | None = None
        inside: Value | None = None
        for offset, extent, stride in zip(offsets, self.shape, self.strides):
            term = offset * stride
            index = term if index is None else index + term
            within = (offset >= 0) & (offset < extent)
            inside = within if inside is None else inside & within
        assert index is not None and inside is not None
        return self.base.plus(index), inside.broadcast(index.shape)

    def lines(self, offsets: Sequence[Value]) -> list[Value]:
        """The indices of the elements of a block in each dimension, which broadcast to it."""
        rank, found = len(self.block), []
        for d, (offset, extent) in enumerate(zip(offsets, self.block)):
            line = arange(extent).reshape(tuple(extent if e == d else 1 for e in range(rank)))
            found.append(line + offset)
        return found
