"""Accesses of memory: descriptors and offsets of a memref's elements, and the operands of vector transfers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import MemoryScope, TdescAttr, TensorDesc
from xegpu_py.dialects.xegpu.types import is_slm
from xegpu_py.passes.analysis.ir_queries import message_element, no_messages, segments, shape_of
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import Index, index_from_memory, index_to_memory

Fail = Callable[..., NoReturn]
"""Reports an error at an op: a message, and notes."""


Numbers = Sequence[int] | npt.NDArray[np.int64]


def lane_offsets(count: int, positions: Sequence[Numbers | ir.Value], strides: Sequence[Index]) -> ir.Value:
    """Compute the sums of positions times strides for each lane: a vector of index of `count` lanes.

    Args:
        positions: for each dimension the position of each lane, or a vector of index with it.
        strides: the stride of each dimension.
    """
    static = np.zeros(count, np.int64)
    total: ir.Value | None = None
    for position, stride in zip(positions, strides, strict=True):
        if isinstance(stride, int) and not isinstance(position, ir.Value):
            static = static + np.multiply(position, stride)
        elif isinstance(position, ir.Value) or np.any(position):
            lanes = position if isinstance(position, ir.Value) else build.index_vector(position)
            scaled = lanes if stride == 1 else build.binary("muli", lanes, build.index_splat(stride, count))
            total = scaled if total is None else build.binary("addi", total, scaled)
    if total is None:
        return build.index_vector(static)
    return build.binary("addi", total, build.index_vector(static)) if static.any() else total


def lanes_in_bounds(positions: Numbers, at: Index, extent: Index) -> ir.Value:
    """Compute the mask of lanes whose position plus `at` is in bounds: at least 0, and less than an extent."""
    lane_positions = build.binary("addi", build.index_vector(positions), build.index_splat(at, len(positions)))
    return build.compare("ult", lane_positions, build.index_splat(extent, len(positions)))


class MemrefElements:
    """The elements of a memref, which messages in VC mode move.

    Attributes:
        memref, type: the memref.
        element: its element type.
    """

    def __init__(self, memref: ir.Value, fail: Fail) -> None:
        """Report an error by `fail` if no message moves such elements."""
        if not isinstance(memref.type, ir.MemRefType):
            fail(f"accesses {memref.type}, which is not in memory", "run bufferization first")
        self.memref, self.type, self.fail = memref, ir.MemRefType(memref.type), fail
        self.element = self.type.element_type
        if message_element(self.element) is None:
            fail(*no_messages(self.element))

    @cached_property
    def strides(self) -> list[Index]:
        """The strides of the memref, in elements."""
        return build.strided_layout(self.memref)[2]

    def desc(self, shape: tuple[int, ...], **attributes: Any) -> TensorDesc:
        """The type of a descriptor of elements."""
        scope = MemoryScope.SLM if is_slm(self.type.memory_space) else MemoryScope.GLOBAL
        element = message_element(self.element)
        assert element
        return TensorDesc(shape, element, TdescAttr(memory_scope=scope, **attributes))

    def lanes(self, offsets: ir.Value, chunk: int = 1) -> ir.Value:
        """The descriptor of `chunk` elements at each offset, in elements, from the memref's first."""
        desc = self.desc((*shape_of(offsets), chunk) if chunk > 1 else shape_of(offsets), scattered=True)
        return xegpu.create_tdesc(self.memref, offsets, tdesc=desc, mode="vc", chunk_size_per_lane=chunk)

    def gather(self, offsets: ir.Value, mask: ir.Value, chunk: int = 1) -> ir.Value:
        """Load the elements of the lanes whose mask bit is set."""
        return index_from_memory(xegpu.load_gather(self.lanes(offsets, chunk), mask, mode="vc"), self.element)

    def scatter(self, value: ir.Value, offsets: ir.Value, mask: ir.Value, chunk: int = 1) -> None:
        """Store the elements of the lanes whose mask bit is set."""
        xegpu.store_scatter(index_to_memory(value), self.lanes(offsets, chunk), mask, mode="vc")


class Transfer:
    """The operands and attributes of a transfer.

    Attributes:
        vector: the vector that is read or written.
        memref, indices: the location of the vector's first element.
        padding: the value of out-of-bounds elements of a read; None for a write.
        mask: the elements that are accessed; None for all. It has the dimensions of memory, in their order.
        dimensions: for each dimension of the vector its dimension of memory; None if elements are broadcast along it.
        in_bounds: for each dimension of the vector whether it stays in bounds.
    """

    def __init__(self, op: ir.Operation) -> None:
        groups = segments(op)
        reads = op.name == "vector.transfer_read"
        self.vector: ir.Value = op.results[0] if reads else groups.pop(0)[0]
        self.memref, self.indices = groups[0][0], groups[1]
        self.padding: ir.Value | None = groups[2][0] if reads else None
        self.mask: ir.Value | None = groups[-1][0] if groups[-1] else None
        permutation = ir.AffineMapAttr(op.attributes["permutation_map"]).value
        self.dimensions = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in permutation.results]
        self.in_bounds = [ir.BoolAttr(b).value for b in ir.ArrayAttr(op.attributes["in_bounds"])]

    @property
    def mask_dims(self) -> list[int]:
        """The dimensions of the vector that the mask has, in the mask's order."""
        return [i for _, i in sorted((d, i) for i, d in enumerate(self.dimensions) if d is not None)]

    def moves_whole_rows(self) -> bool:
        """Return whether the transfer moves whole rows of consecutive elements."""
        rank = len(self.indices)
        minor = list(range(rank - len(self.dimensions), rank))
        strides, _ = ir.MemRefType(self.memref.type).get_strides_and_offset()
        contiguous = bool(self.dimensions) and self.dimensions == minor and strides[-1] == 1
        return contiguous and all(self.in_bounds) and self.mask is None
