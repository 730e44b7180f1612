"""The tensors of block descriptors, and the rules of 2D block messages that they must satisfy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.ir.bindings import is_kernel
from xegpu_py.ir.builtin import strides_of
from xegpu_py.ir.decoded import Decoded
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.passes.common.divisors import divisor, power_of_two
from xegpu_py.passes.common.values import constant_of, defining_op
from xegpu_py.target import Block2DLimits, Target

UNALIGNED = "xegpu.unaligned"
"""An attribute of kernels: the numbers of the arguments whose unknown alignment is not assumed."""
UNIT_STRIDES = "xegpu.unit_strides"
"""An attribute of kernels: the numbers of the memref arguments whose innermost stride is 1 although it is dynamic in
their types. Launches check it."""

_VIEWS = (
    "memref.subview", "memref.reinterpret_cast", "memref.collapse_shape", "memref.expand_shape", "memref.cast",
    "memref.memory_space_cast", "memref.transpose", "memref.view", "memref.extract_aligned_pointer_as_index",
    "arith.index_cast", "arith.index_castui", "builtin.unrealized_conversion_cast",
)  # fmt: skip
"""Ops whose result is a view of their first operand's memory."""


def argument_of(value: ir.Value) -> int | None:
    """The number of the function argument that contains a memref or address; None if unknown."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name not in _VIEWS:
            return None
        value = op.operands[0]
    is_function = value.owner.owner is not None and value.owner.owner.operation.name in ("gpu.func", "func.func")
    return ir.BlockArgument(value).arg_number if is_function else None


class Tensor(Struct, frozen=True):
    """The tensor of a descriptor. Unknown properties are None.

    Attributes:
        extents: its shape.
        strides: elements from one index to the next, of each dimension.
        start: the offset of its first element from the start of the buffer, in elements.
    """

    extents: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    start: int | None


def tensor_of(view: Any) -> Tensor:
    """The known properties of the tensor of an `xegpu.create_nd_tdesc`."""
    shape, strides = tuple(map(constant_of, view.shape)), tuple(map(constant_of, view.strides))
    source = view.source
    own = _OWN[source.type]
    if own is None:
        return Tensor(shape, strides, None)
    if not strides:
        strides = own.strides
        if strides and strides[-1] is None and _is_unit(source):
            strides = (*strides[:-1], 1)
    return Tensor(shape or own.extents, strides, own.start)


def _own(kind: ir.Type) -> Tensor | None:
    """What a memref's type says of its memory; None for other types."""
    if not isinstance(kind, ir.MemRefType):
        return None
    dynamic, unknown = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
    strides = strides_of(kind)
    offset = unknown if strides is None else kind.get_strides_and_offset()[1]
    return Tensor(
        tuple(None if n == dynamic else n for n in kind.shape),
        tuple(None if n == unknown else n for n in strides or [unknown] * kind.rank),
        None if offset == unknown else offset,
    )


_OWN = Decoded(_own)


def _is_unit(memref: ir.Value) -> bool:
    """Whether the dynamic innermost stride of a memref is known to be 1 from its definition."""
    kind = ir.MemRefType(memref.type)
    steps = strides_of(kind)
    if steps is None or not steps or steps[-1] == 1:
        return bool(steps)
    op = defining_op(memref)
    if op is None:
        argument = ir.BlockArgument(memref)
        func = argument.owner.owner
        of_kernel = func is not None and func.operation.name == "gpu.func"
        return of_kernel and argument.arg_number in unaligned_arguments(func.operation, UNIT_STRIDES)
    if op.name not in ("memref.cast", "memref.subview") or ir.MemRefType(op.operands[0].type).rank != kind.rank:
        return False
    return (op.name == "memref.cast" or list(op.attributes["static_strides"])[-1] == 1) and _is_unit(op.operands[0])


def stride_problem(tensor: Tensor) -> str | None:
    """The reason why no message of consecutive elements addresses a tensor: its innermost stride; None if that is 1."""
    step = tensor.strides[-1] if tensor.strides else 1
    if step == 1:
        return None
    return f"has an innermost stride {'that is not known to be 1' if step is None else f'of {step}'}"


def surface_problem(
    view: Any,
    target: Target,
    unaligned: Sequence[int] | None = (),
    tensor: Tensor | None = None,
    most_bytes: int = 0,
) -> str | None:
    """The reason why block messages cannot address the tensor of an `xegpu.create_nd_tdesc`; None if they can.

    Blocks of one dimension use messages of consecutive elements, others 2D block messages.

    Args:
        unaligned: numbers of the arguments whose unknown alignment is not assumed; None for all memory.
        tensor: the known properties of the tensor, if the caller has them.
        most_bytes: the greatest span of an array that is an argument; 0 for no limit.
    """
    desc = TensorDesc.of(view.tdesc)
    found = tensor or tensor_of(view)
    problem = stride_problem(found)
    if problem is not None or len(desc.shape) < 2:
        return problem
    if desc.in_slm:
        return "is in shared local memory, where 2D block messages are not supported"
    if target.block2d is None:
        return f"requires 2D block messages, which target '{target.name}' does not support"
    size = desc.bits // 8
    width, pitch = found.extents[-1], found.strides[-2]
    start = _start_divisor(view.source) if found.start is None else found.start
    in_bytes = [None if n is None else n * size for n in (width, pitch, start)]
    problem = target.block2d.surface_problem(in_bytes[0], found.extents[-2], in_bytes[1], in_bytes[2])
    outer = [None if n is None else n * size for n, count in zip(found.strides[:-2], found.extents) if count != 1]
    problem = problem or target.block2d.outer_problem(outer)
    in_bytes += outer
    marked = is_unaligned(view, unaligned)
    if problem is None and marked and None in in_bytes:
        return "is not known to have the alignment that 2D block messages require"
    if problem is None and unaligned is not None and marked and found.extents[-2] is None:
        by_pitch = pitch is not None and most_bytes // (pitch * size) < target.block2d.most_extent
        if most_bytes and by_pitch and _is_matrix_argument(view):
            return None
        return f"is not known to have at most {target.block2d.most_extent} rows, which 2D block messages require"
    return problem


def _is_matrix_argument(view: Any) -> bool:
    """Whether the tensor of an `xegpu.create_nd_tdesc` is a matrix that is an argument of a kernel."""
    func = view.source.owner.owner if isinstance(view.source.owner, ir.Block) else None
    of_kernel = func is not None and func.operation.name == "gpu.func" and is_kernel(func.operation)
    kind = view.source.type
    return of_kernel and isinstance(kind, ir.MemRefType) and kind.rank == 2 and not len(view.shape)


def is_unaligned(view: Any, unaligned: Sequence[int] | None) -> bool:
    """Whether the unknown alignment of the tensor of an `xegpu.create_nd_tdesc` is not assumed.

    Args:
        unaligned: numbers of these arguments; None for all memory. If there are any, the alignment of memory that is
            not known to belong to another argument is not assumed either.
    """
    if not unaligned:
        return unaligned is None
    argument = argument_of(view.source)
    return argument is None or argument in unaligned


def column_problem(view: Any, size: int, limits: Block2DLimits, trusted: bool) -> str | None:
    """The reason why 2D block messages cannot address blocks at the columns where an op creates or moves them.

    Args:
        view: an `xegpu.create_nd_tdesc` or `xegpu.update_nd_offset`.
        size: bytes of an element.
        trusted: whether unknown columns are assumed to satisfy the rules of messages.
    """
    column = constant_of(view.offsets[-1])
    if column is None:
        column = 0 if trusted else divisor(view.offsets[-1])
    if column * size % limits.column_granule == 0:
        return None
    return f"begins at columns that are not multiples of {limits.column_granule} bytes, which 2D block messages require"


def _start_divisor(source: ir.Value) -> int | None:
    """A known divisor of a memref's offset, in elements."""
    op = defining_op(source)
    if op is None or op.name != "memref.reinterpret_cast" or len(op.operands) < 2:
        return None
    return _multiple_of(op.operands[1]) if next(iter(op.attributes["static_offsets"])) < 0 else None


def _multiple_of(number: ir.Value) -> int | None:
    known = constant_of(number)
    if known is not None:
        return power_of_two(known)
    op = defining_op(number)
    if op is None or op.name not in ("arith.muli", "arith.addi"):
        return None
    if op.name == "arith.muli":
        return divisor(number) if any(constant_of(v) is not None for v in op.operands) else None
    terms = [_multiple_of(v) for v in op.operands]
    return None if None in terms else math.gcd(*(t for t in terms if t is not None))


def unaligned_arguments(func: ir.Operation, name: str = UNALIGNED) -> tuple[int, ...]:
    """The argument numbers in a kernel's `xegpu.unaligned`, or in another attribute of this form.

    Raises:
        DiagnosticError: if the attribute is not a list of numbers of the kernel's arguments.
    """
    found = func.attributes.get(name)
    if found is None:
        return ()
    count = len(func.regions[0].blocks[0].arguments)
    numbers = tuple(found) if isinstance(found, ir.DenseI64ArrayAttr) else (-1,)
    if not all(0 <= n < count for n in numbers):
        note = f"write '{name} = array<i64: 0, 2>', of its {count} arguments from 0"
        emit_error(func, f"has {name} = {found}, which does not count arguments", note)
    return numbers
