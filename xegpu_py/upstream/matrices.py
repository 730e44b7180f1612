"""Matrices in shared local memory (`!xegpu.mem_desc`): where their elements lie."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from mlir import ir
from mlir.dialects import arith, memref, vector

from xegpu_py.ir.builtin import bit_width
from xegpu_py.passes.common.builders import constant, dense_integers, index, make
from xegpu_py.upstream.rebuilding import mixed, vector_type
from xegpu_py.upstream.types import MemDesc


def strides_of(desc: MemDesc) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The block of a matrix, the strides from block to block and those in a block, in elements.

    A matrix without blocks has blocks of one element. The rule is MemDescType::getStrideShape's: what lies side by
    side in a block is what has the smaller stride, and so it is from block to block.
    """
    placed, shape = desc.placed, desc.shape
    rank = len(shape)
    strides = placed.stride or tuple(math.prod(shape[i + 1 :]) for i in range(rank))
    if not placed.block:
        return (1,) * rank, strides, (0,) * rank
    block = placed.block
    order = sorted(range(rank), key=lambda i: strides[i])
    inner, outer = [0] * rank, [0] * rank
    inner[order[0]], outer[order[0]] = 1, math.prod(block)
    for before, dim in itertools.pairwise(order):
        inner[dim] = inner[before] * block[before]
        outer[dim] = outer[before] * (strides[dim] // strides[before] // block[before])
    return block, tuple(outer), tuple(inner)


def buffer_of(source: ir.Value, element: str) -> ir.Value:
    """A buffer in shared local memory as one dimension of elements."""
    kind = ir.MemRefType(source.type)
    size = math.prod(kind.shape) * bit_width(str(kind.element_type)) // 8
    if kind.rank > 1:
        groups = ir.Attribute.parse(f"[{list(range(kind.rank))}]")
        flat = ir.MemRefType.get([math.prod(kind.shape)], kind.element_type, memory_space=kind.memory_space)
        source = make("memref.collapse_shape", flat, source, reassociation=groups)
    if str(kind.element_type) == element:
        return source
    result = ir.MemRefType.get([size * 8 // bit_width(element)], ir.Type.parse(element), memory_space=kind.memory_space)
    return memref.view(result, source, index(0), [])


def places(desc: MemDesc, offsets: Sequence[ir.Value | int], shape: Sequence[int]) -> ir.Value:
    """The places of the elements of a block of a matrix, row by row, as a vector of one dimension."""
    count = math.prod(shape)
    kind = vector_type((count,), "index")
    block, outer, inner = strides_of(desc)
    total: ir.Value | None = None
    grids = np.indices((1,) * (len(desc.shape) - len(shape)) + tuple(shape)).reshape(len(desc.shape), count)
    for dim, start in enumerate(mixed(offsets)):
        at = arith.addi(vector.broadcast(kind, start), dense_integers(grids[dim], ir.IndexType.get()))
        if block[dim] > 1:
            side = constant(kind, block[dim])
            place = arith.addi(
                arith.muli(arith.divui(at, side), constant(kind, outer[dim])),
                arith.muli(arith.remui(at, side), constant(kind, inner[dim])),
            )
        else:
            place = arith.muli(at, constant(kind, outer[dim]))
        total = place if total is None else arith.addi(total, place)
    assert total is not None
    return total
