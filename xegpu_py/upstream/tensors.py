"""Tensors in memory as the addresses, memrefs and numbers that tiles are made of."""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import arith, memref

from xegpu_py.dialects.xegpu.checks import is_slm
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.passes.common.builders import Index, i64_array, index, make, reinterpret_cast, strided_metadata
from xegpu_py.upstream.rebuilding import mixed


def metadata_of(source: ir.Value) -> tuple[Index, list[Index], list[Index]]:
    """The offset, extents and strides of a memref, in elements; those that its type does not have are computed."""
    kind = ir.MemRefType(source.type)
    steps, offset = kind.get_strides_and_offset()
    numbers: list[Index] = [offset, *kind.shape, *steps]
    if DYNAMIC in numbers:
        numbers = [v if n == DYNAMIC else n for n, v in zip(numbers, strided_metadata(source))]
    return numbers[0], numbers[1 : 1 + kind.rank], numbers[1 + kind.rank :]


def tensor_of(source: ir.Value, shape: list[Any], strides: list[Any]) -> tuple[ir.Value, list[Any], list[Any]]:
    """The address of a tensor's first element, its extents and its strides."""
    i64 = ir.IntegerType.get_signless(64)
    if not isinstance(source.type, ir.MemRefType):
        return source, shape, strides
    kind = ir.MemRefType(source.type)
    start, extents, found = metadata_of(source)
    place = memref.extract_aligned_pointer_as_index(source)
    if start != 0 or not isinstance(start, int):
        bits = bit_width(str(kind.element_type))
        bytes_ = arith.divui(*mixed([start, 8 // bits])) if bits < 8 else arith.muli(*mixed([start, bits // 8]))
        place = arith.addi(place, bytes_)
    return arith.index_cast(i64, place), extents, found


def as_row(source: ir.Value) -> ir.Value:
    """A memref of one dimension as a matrix of one row."""
    kind = ir.MemRefType(source.type)
    size = kind.shape[0]
    strides, offset = kind.get_strides_and_offset()
    if strides[0] != 1:
        return source
    sizes = [memref.dim(source, index(0))] if size == DYNAMIC else []
    # MLIR expands a memref without a layout to one without a layout.
    layout = ir.StridedLayoutAttr.get(offset, [size, 1]) if offset else None
    result = ir.MemRefType.get([1, size], kind.element_type, layout, kind.memory_space)
    return expanded(source, result, *sizes)


def expanded(source: ir.Value, kind: ir.MemRefType, *sizes: ir.Value) -> ir.Value:
    """A memref of one dimension as one of two; `sizes` are those of its extents that are not known."""
    pairs = ir.Attribute.parse("[[0, 1]]")
    return make(
        "memref.expand_shape", kind, source, *sizes, reassociation=pairs, static_output_shape=i64_array(kind.shape)
    )


def first_elements(buffer: ir.Value, size: int) -> ir.Value:
    """The first elements of a buffer of one dimension."""
    kind = ir.MemRefType(buffer.type)
    if kind.shape[0] == size:
        return buffer
    result = ir.MemRefType.get([size], kind.element_type, memory_space=kind.memory_space)
    return reinterpret_cast(buffer, 0, [size], [1], result)


def address_of(source: ir.Value) -> ir.Value | None:
    """The address of a memref's first element, or an address; None if it is in shared local memory."""
    if not isinstance(source.type, ir.MemRefType):
        return source if str(source.type) in ("i64", "ui64", "si64") else None
    kind = ir.MemRefType(source.type)
    if is_slm(kind.memory_space) or kind.get_strides_and_offset() != ([1], 0):
        return None
    place = memref.extract_aligned_pointer_as_index(source)
    return arith.index_cast(ir.IntegerType.get_signless(64), place)
