"""Tensors in memory as the addresses, memrefs and numbers that tiles are made of."""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import arith, memref

from xegpu_py.dialects.xegpu.checks import is_slm
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.upstream.rebuilding import index, mixed


def tensor_of(source: ir.Value, shape: list[Any], strides: list[Any]) -> tuple[ir.Value, list[Any], list[Any]]:
    """The address of a tensor's first element, its extents and its strides."""
    i64 = ir.IntegerType.get_signless(64)
    if not isinstance(source.type, ir.MemRefType):
        return source, shape, strides
    kind = ir.MemRefType(source.type)
    steps, offset = kind.get_strides_and_offset()
    extents: list[Any] = list(kind.shape)
    found: list[Any] = list(steps)
    start: Any = offset
    if DYNAMIC in (*extents, *found, start):
        meta = memref.ExtractStridedMetadataOp(source)
        start = meta.offset if start == DYNAMIC else start
        extents = [v if n == DYNAMIC else n for n, v in zip(extents, meta.sizes)]
        found = [v if n == DYNAMIC else n for n, v in zip(found, meta.strides)]
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
    extent = "?" if size == DYNAMIC else str(size)
    strides, offset = kind.get_strides_and_offset()
    space = f", {kind.memory_space}" if kind.memory_space is not None else ""
    if strides[0] != 1:
        return source
    sizes = [memref.dim(source, index(0))] if size == DYNAMIC else []
    if offset == 0:
        layout = f"strided<[{extent}, 1]>"
    else:
        layout = f"strided<[{extent}, 1], offset: {'?' if offset == DYNAMIC else offset}>"
    result = ir.Type.parse(f"memref<1x{extent}x{kind.element_type}, {layout}{space}>")
    array = ir.DenseI64ArrayAttr.get
    return ir.Operation.create(
        "memref.expand_shape", results=[result], operands=[source, *sizes],
        attributes={"reassociation": ir.Attribute.parse("[[0, 1]]"), "static_output_shape": array([1, size])},
    ).result  # fmt: skip


def first_elements(buffer: ir.Value, size: int) -> ir.Value:
    """The first elements of a buffer of one dimension."""
    kind = ir.MemRefType(buffer.type)
    if kind.shape[0] == size:
        return buffer
    result = ir.MemRefType.get([size], kind.element_type, memory_space=kind.memory_space)
    return memref.reinterpret_cast(result, buffer, [], [], [], [0], [size], [1])


def address_of(source: ir.Value) -> ir.Value | None:
    """The address of a memref's first element, or an address; None if it is in shared local memory."""
    if not isinstance(source.type, ir.MemRefType):
        return source if str(source.type) in ("i64", "ui64", "si64") else None
    kind = ir.MemRefType(source.type)
    if is_slm(kind.memory_space) or kind.get_strides_and_offset() != ([1], 0):
        return None
    place = memref.extract_aligned_pointer_as_index(source)
    return arith.index_cast(ir.IntegerType.get_signless(64), place)
