"""`xegpu`: descriptors of n-dimensional blocks, and the messages that load, store and prefetch the blocks."""

from __future__ import annotations

import math
from typing import Any

from mlir import ir
from msgspec.structs import replace

from xegpu_py.dialects.xegpu import CreateNdTdescOp, TensorDesc
from xegpu_py.ir.builtin import bit_width
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.common.messages import block_load, caches_of
from xegpu_py.passes.common.ranges import join
from xegpu_py.passes.common.registers import element_bytes, register_type, shape_and_element, unsigned
from xegpu_py.passes.common.values import defining_op
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lines import load_line, prefetch_line, store_line
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import (
    NARROW,
    Block,
    Const,
    KnownMask,
    Mask,
    Memory,
    Numbers,
    Reg,
    bounds_of,
    index_type,
)
from xegpu_py.visa.operands import Immediate, Raw, Region
from xegpu_py.visa.spec import BlockShape


@pattern("xegpu.create_nd_tdesc")
def create_nd_tdesc(low: Lowering, op: ir.Operation) -> None:
    """The base address, the tensor's extents and strides, and the block's offsets."""
    view = low.require_vc(op)
    source, desc = low.value(view.source), TensorDesc.of(op.results[0])
    offsets = tuple(low.index_list(view.offsets))
    if isinstance(source, Memory):
        at = low.local_address if source.slm else low.address
        base = at(source.base, source.offset, element_bytes(source.element))
        shape, strides = source.shape, source.strides
    else:
        base = low.emit.in_registers(low.numbers(view.source), "ud" if desc.in_slm else "uq")
        shape, strides = (), ()
    if given := view.shape:
        shape = tuple(low.index_list(given))
        strides = tuple(low.index_list(view.strides))
    surface: tuple[Numbers, ...] = ()
    lead = tuple(shape[:-2]) if desc.attr.boundary_check else ()
    if len(shape) > 1 and not desc.in_slm:
        size = bit_width(desc.element) // 8
        height, width = shape[-2:]
        rows = low.add_clamped(height, low.index(-1))
        across = _less_one(low, width, size)
        surface = (across, rows, across if strides[-2] == width else _less_one(low, strides[-2], size))
        offsets = (*offsets[:-2], *map(low.clamped, offsets[-2:]))
    low.set(op, Block(low.emit.in_registers(base), surface, lead, strides, offsets))


def _block(low: Lowering, value: ir.Value) -> Block:
    found = low.value(value)
    assert isinstance(found, Block)
    return found


@pattern("xegpu.update_nd_offset")
def update_nd_offset(low: Lowering, op: ir.Operation) -> None:
    """Add to the offsets."""
    view = op.opview
    block = _block(low, view.tdesc)
    pairs = list(zip(block.offsets, low.index_list(view.offsets)))
    inner = len(pairs) - 2 if block.surface else len(pairs)
    moved = tuple(low.add(a, b) if i < inner else low.add_clamped(a, b) for i, (a, b) in enumerate(pairs))
    low.set(op, low.bounded(Block(block.base, block.surface, block.lead, block.strides, moved), op.results[0]))


def _scalar(low: Lowering, numbers: Numbers) -> Region | Immediate:
    """An operand of a 2D block message."""
    if isinstance(numbers, Const):
        return Immediate(numbers.bits & 0xFFFFFFFF, "ud")
    return Region(numbers.var, *low.emit.place_of(numbers, 0), 0, 1, 0)


def _less_one(low: Lowering, numbers: Numbers, size: int) -> Numbers:
    """An extent converted from elements to bytes, less one."""
    return low.add_clamped(low.multiply(numbers, low.index(size)), low.index(-1))


def _surface(low: Lowering, block: Block, desc: TensorDesc, scale: int = 1) -> dict[str, Any]:
    """The operands that describe the surface and the block's position in it.

    Args:
        scale: elements of the tensor per element of the message.
    """
    width, height, pitch = block.surface
    x: Numbers = block.offsets[-1]
    if scale > 1:
        by = scale.bit_length() - 1
        x = low.index(x.value >> by) if isinstance(x, Const) else low.emit.common("asr", NARROW, 1, x, const(by, "uw"))
    base, y = _matrix(low, block, bit_width(desc.element) // 8)
    return {
        "base": _scalar(low, low.emit.in_registers(base)),
        "width": _scalar(low, width),
        "height": _scalar(low, height),
        "pitch": _scalar(low, pitch),
        "x": _scalar(low, x),
        "y": _scalar(low, y),
    }


def _matrix(low: Lowering, block: Block, size: int) -> tuple[Numbers, Numbers]:
    """The address of the 2D matrix that contains a block of more dimensions, and the block's first row in it.

    Messages check only the innermost two dimensions. For a block that is out of bounds along another dimension, the
    tensor's first matrix is used with a first row below its end, so that the whole block is out of bounds.
    """
    base, y = block.base, block.offsets[-2]
    limits = low.target.block2d
    below = low.index(limits.most_extent if limits else 0)
    for i, (offset, stride) in enumerate(list(zip(block.offsets, block.strides))[:-2]):
        if block.lead:
            inside = _inside(low, offset, block.lead[i])
            offset, y = _chosen(low, inside, offset, low.index(0)), _chosen(low, inside, y, below)
            offset = low.as_index(offset, (0, bounds_of(block.lead[i])[1]))
        base = low.address(base, low.multiply(offset, stride), size)
    return base, y


def _inside(low: Lowering, offset: Numbers, extent: Numbers) -> Mask | KnownMask:
    """Whether 0 <= offset < extent."""
    if isinstance(offset, Const) and offset.value < 0:
        return KnownMask(False)
    if isinstance(offset, Const) and isinstance(extent, Const):
        return KnownMask(offset.value < extent.value)
    # The comparison is unsigned, so that negative offsets are out of bounds.
    name = index_type(join(bounds_of(offset), bounds_of(extent)))
    a, b = (low.emit.as_type(low.typed(n, name), unsigned(name)) for n in (offset, extent))
    if isinstance(a, Const):
        return low.emit.compare("gt", 1, b, a)
    return low.emit.compare("lt", 1, a, b)


def _chosen(low: Lowering, mask: Mask | KnownMask, a: Numbers, b: Numbers) -> Numbers:
    """`a` where the mask is set, else `b`."""
    if isinstance(mask, KnownMask):
        return a if mask.value else b
    bounds = join(bounds_of(a), bounds_of(b))
    name = index_type(bounds)
    if a == b:
        return a
    return replace(low.emit.choose(mask, name, 1, low.typed(a, name), low.typed(b, name)), bounds=bounds)


@pattern("xegpu.load_nd")
def load_nd(low: Lowering, op: ir.Operation) -> None:
    """A 2D block message, or for one dimension a transposed load."""
    view = low.require_vc(op)
    tdesc = view.tdesc
    desc, block = TensorDesc.of(tdesc), _block(low, tdesc)
    shape, element = shape_and_element(view.value.type)
    name = register_type(element)
    if len(desc.shape) == 1:
        count = desc.shape[0] * desc.attr.array_length
        address = _line_address(low, tdesc)
        low.set(op, load_line(low, address, desc.in_slm, caches_of(view), count, name))
        return
    transposed = list(view.transpose or ()) == [1, 0]
    message = block_load(desc, transposed, view.transpose_bit_width, view.vnni_axis)
    scale = message.size // bit_width(element)
    grf = low.target.grf_bytes
    count = math.prod(shape)
    result = low.emit.whole(name, message.count * message.block_bytes(grf) // TYPES[name].bytes)
    low.emit.emit(
        "lsc_load_block2d",
        dst=low.emit.raw(result),
        **_surface(low, block, desc, scale=scale),
        sfid="ugm",
        caches=caches_of(view),
        block=message,
    )
    low.set(op, _packed(low, result, message, shape, name, count))


def _packed(low: Lowering, loaded: Reg, message: BlockShape, shape: tuple[int, ...], name: str, count: int) -> Reg:
    """Reorder a message's registers as the vector: remove padding, and interleave the rows of adjacent blocks."""
    grf = low.target.grf_bytes
    rows, columns, pack = message.register_shape()
    used = (message.height if message.transpose else message.width) * pack
    row = columns * pack * message.size // 8 // TYPES[name].bytes
    used = used * message.size // 8 // TYPES[name].bytes
    each = message.block_bytes(grf) // TYPES[name].bytes
    side_by_side = message.count > 1 and len(shape) == (3 if pack > 1 else 2)
    if not side_by_side and (message.count == 1 or each == rows * row) and used == row:
        return Reg(loaded.var, 0, count)
    result = low.emit.whole(name, count)
    for b in range(message.count):
        for r in range(rows):
            to = (r * message.count + b) * used if side_by_side else (b * rows + r) * used
            part = Reg(loaded.var, b * each + r * row, used)
            low.emit.apply("mov", name, used, part, into=Reg(result.var, to, used))
    return Reg(result.var, 0, count)


def _line_address(low: Lowering, tdesc: ir.Value) -> tuple[Reg, int]:
    """The address of a one-dimensional block: one in a register, and the bytes that its messages add to it."""
    desc, block, op = TensorDesc.of(tdesc), _block(low, tdesc), defining_op(tdesc)
    maker = op.opview if op is not None else None
    index = low.term_of(maker.offsets[0] if isinstance(maker, CreateNdTdescOp) else block.offsets[0])
    strides = block.strides or (low.index(1),)
    return low.element_address(block.base, [index], strides, max(bit_width(desc.element) // 8, 1), desc.in_slm)


@pattern("xegpu.store_nd")
def store_nd(low: Lowering, op: ir.Operation) -> None:
    """A 2D block message, or for one dimension transposed stores."""
    view = low.require_vc(op)
    tdesc = view.tdesc
    desc, block = TensorDesc.of(tdesc), _block(low, tdesc)
    name = register_type(desc.element)
    value = low.reg(view.value, name)
    if len(desc.shape) == 1:
        store_line(low, _line_address(low, tdesc), desc.in_slm, caches_of(view, True), value)
        return
    rows, columns = desc.shape[-2:]
    message = BlockShape(bit_width(desc.element), 1, columns, rows)
    low.emit.emit(
        "lsc_store_block2d",
        **_surface(low, block, desc),
        src0=low.emit.raw(_padded(low, value, message, name)),
        sfid="ugm",
        caches=caches_of(view, True),
        block=message,
    )


def _padded(low: Lowering, at: Reg, message: BlockShape, name: str) -> Reg:
    """Rows in a message's layout: aligned to a register, each padded to a power of two."""
    grf = low.target.grf_bytes
    rows, columns, _ = message.register_shape()
    fits = at.var.count * at.format.bytes - at.first * at.format.bytes >= message.block_bytes(grf)
    if low.emit.is_aligned(at) and fits and columns == message.width:
        return at
    padded = low.emit.whole(name, message.block_bytes(grf) // TYPES[name].bytes)
    for r in range(rows):
        part = at.part(r * message.width, message.width)
        low.emit.apply("mov", name, message.width, part, into=Reg(padded.var, r * columns, message.width))
    return padded


@pattern("xegpu.prefetch_nd")
def prefetch_nd(low: Lowering, op: ir.Operation) -> None:
    """A load without a destination."""
    view = low.require_vc(op)
    tdesc = view.tdesc
    desc, block = TensorDesc.of(tdesc), _block(low, tdesc)
    if desc.in_slm:
        return
    if len(desc.shape) == 1:
        size = desc.shape[0] * desc.attr.array_length * bit_width(desc.element) // 8
        prefetch_line(low, _line_address(low, tdesc), caches_of(view) or "ca.ca", size)
        return
    rows, columns = desc.shape[-2:]
    low.emit.emit(
        "lsc_load_block2d",
        dst=Raw(None),
        **_surface(low, block, desc),
        sfid="ugm",
        caches=caches_of(view) or "ca.ca",
        block=BlockShape(bit_width(desc.element), desc.attr.array_length, columns, rows),
    )
