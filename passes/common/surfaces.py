"""The tensors that block descriptors are made of, and why 2D block messages cannot address them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir
from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.dialects.xegpu.checks import strides_of
from xegpu_py.dialects.xegpu.types import MemoryScope
from xegpu_py.passes.common.values import constant_of

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, position_of
from xegpu_py.target import Target

UNALIGNED = "xegpu.unaligned"
"""An attribute of kernels: the numbers of those arguments of which nothing that is not known is taken to be aligned."""

_VIEWS = (
    "memref.subview", "memref.reinterpret_cast", "memref.collapse_shape", "memref.expand_shape", "memref.cast",
    "memref.memory_space_cast", "memref.view", "memref.extract_aligned_pointer_as_index", "arith.index_cast",
    "arith.index_castui",
)  # fmt: skip
"""Ops whose result lies in the memory of their first operand."""


def argument_of(value: ir.Value) -> int | None:
    """The number of the function's argument in whose memory a memref or address lies; None if it is not known."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name not in _VIEWS:
            return None
        value = op.operands[0]
    is_function = value.owner.owner is not None and value.owner.owner.operation.name in ("gpu.func", "func.func")
    return ir.BlockArgument(value).arg_number if is_function else None


@dataclass(frozen=True)
class Tensor:
    """The tensor of a descriptor. What is not known is None.

    Attributes:
        extents: its shape.
        strides: elements from one index to the next, of each dimension.
        start: elements from the beginning of its buffer.
    """

    extents: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    start: int | None


def tensor_of(view: Any) -> Tensor:
    """What is known of the tensor of an `xegpu.create_nd_tdesc`."""
    shape, strides = [constant_of(v) for v in view.shape], [constant_of(v) for v in view.strides]
    start: int | None = None
    if isinstance(view.source.type, ir.MemRefType):
        memref = ir.MemRefType(view.source.type)
        dynamic, unknown = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
        shape = shape or [None if n == dynamic else n for n in memref.shape]
        own = strides_of(memref)
        strides = strides or [None if n == unknown else n for n in own or [unknown] * memref.rank]
        offset = memref.get_strides_and_offset()[1] if own is not None else unknown
        start = None if offset == unknown else offset
    return Tensor(tuple(shape), tuple(strides), start)


def surface_problem(view: Any, target: Target, unaligned: Sequence[int] | None = ()) -> str | None:
    """Why 2D block messages cannot address the tensor of an `xegpu.create_nd_tdesc`; None if they can.

    Args:
        unaligned: numbers of arguments of which nothing that is not known is taken to be aligned; None for all memory.
    """
    desc = TensorDesc.of(view.tdesc)
    if len(desc.shape) < 2:
        return None
    if desc.attr.memory_scope == MemoryScope.SLM:
        return "lies in shared local memory, of which there are no 2D block messages"
    if target.block2d is None:
        return f"needs 2D block messages, which target {target.name} has not"
    found, size = tensor_of(view), desc.bits // 8
    width, pitch = found.extents[-1], found.strides[-2]
    in_bytes = [None if n is None else n * size for n in (width, pitch, found.start)]
    problem = target.block2d.surface_problem(in_bytes[0], found.extents[-2], in_bytes[1], in_bytes[2])
    marked = unaligned is not None and argument_of(view.source) in unaligned
    if problem is None and (marked or unaligned is None) and None in in_bytes:
        return "is not known to be aligned as 2D block messages need it"
    if problem is None and marked and found.extents[-2] is None:
        return f"is not known to have at most {target.block2d.most_extent} rows, as 2D block messages need it"
    return problem


def unaligned_arguments(func: ir.Operation) -> tuple[int, ...]:
    """What a kernel's `xegpu.unaligned` says.

    Raises:
        DiagnosticError: if it is no list of the kernel's arguments.
    """
    found = func.attributes.get(UNALIGNED)
    if found is None:
        return ()
    count = len(func.regions[0].blocks[0].arguments)
    numbers = tuple(found) if isinstance(found, ir.DenseI64ArrayAttr) else (-1,)
    if not all(0 <= n < count for n in numbers):
        where = position_of(func.location)
        note = Diagnostic("note", f"write '{UNALIGNED} = array<i64: 0, 2>', of its {count} arguments from 0", where)
        message = f"'{func.name}' op has {UNALIGNED} = {found}, which does not count arguments"
        raise DiagnosticError([Diagnostic("error", message, where, (note,))])
    return numbers
