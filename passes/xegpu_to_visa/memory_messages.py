"""Lowering of blocks, gathers, scatters and atomics to messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mlir import ir
from msgspec import Struct
from msgspec.structs import replace

from xegpu_py.dialects.xegpu import CreateNdTdescOp, TensorDesc
from xegpu_py.ir.builtin import CombiningKind, bit_width, is_float
from xegpu_py.ir.control_flow import yielded
from xegpu_py.ir.diagnostics import remark
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.analysis.integer_analysis import join
from xegpu_py.passes.analysis.ir_queries import (
    defining_op,
    element_bytes,
    gather_padding,
    register_type,
    shape_and_element,
    splat_of,
    unsigned,
)
from xegpu_py.passes.analysis.target_messages import (
    atomic_message_of,
    atomic_shape,
    block_load,
    caches_of,
    chunk_messages,
)
from xegpu_py.passes.xegpu_to_visa.addresses import address_of, load_line, prefetch_line, store_line
from xegpu_py.passes.xegpu_to_visa.arith_expansion import Combine, assign, combiner
from xegpu_py.passes.xegpu_to_visa.casts_and_math import f8_to_hf, hf_to_f8
from xegpu_py.passes.xegpu_to_visa.emitter import MOST_OFFSET, Emitter
from xegpu_py.passes.xegpu_to_visa.lowering import Lowering, vc_lowering_rule
from xegpu_py.passes.xegpu_to_visa.register_values import (
    MASK_LANES,
    NARROW,
    BlockDescriptor,
    Const,
    KnownMask,
    Lanes,
    Mask,
    MemRefValue,
    Numbers,
    Reg,
    Value,
    bounds_of,
    const,
    index_type,
)
from xegpu_py.visa.operands import Guard, Immediate, Raw, Region
from xegpu_py.visa.spec import BlockShape, DataShape, payload_lanes

# `xegpu`: descriptors of n-dimensional blocks, and the messages that load, store and prefetch the blocks.


@vc_lowering_rule("xegpu.create_nd_tdesc")
def create_nd_tdesc(low: Lowering, op: ir.Operation) -> Value:
    """The base address, the tensor's extents and strides, and the block's offsets."""
    view = low.require_vc(op)
    source, desc = low.value(view.source), TensorDesc.of(op.results[0])
    offsets = tuple(low.index_list(view.offsets))
    if isinstance(source, MemRefValue):
        base = low.address(source.base, source.offset, element_bytes(source.element), source.slm)
        shape, strides = source.shape, source.strides
    else:
        base = low.emit.in_registers(low.numbers(view.source), "ud" if desc.in_slm else "uq")
        shape, strides = (), ()
    if explicit_shape := view.shape:
        shape = tuple(low.index_list(explicit_shape))
        strides = tuple(low.index_list(view.strides))
    surface: tuple[Numbers, ...] = ()
    lead = tuple(shape[:-2]) if desc.attr.boundary_check else ()
    if len(shape) > 1 and not desc.in_slm:
        size = 1 if desc.attr.message else bit_width(desc.element) // 8
        height, width = shape[-2:]
        rows = low.add_clamped(height, low.index(-1))
        across = _bytes_less_one(low, width, size)
        surface = (across, rows, across if strides[-2] == width else _bytes_less_one(low, strides[-2], size))
        offsets = (*offsets[:-2], *map(low.clamp_to_32_bits, offsets[-2:]))
    return BlockDescriptor(low.emit.in_registers(base), surface, lead, strides, offsets)


@vc_lowering_rule("xegpu.update_nd_offset")
def update_nd_offset(low: Lowering, op: ir.Operation) -> Value:
    """Add to the offsets."""
    view = op.opview
    block = low.handle(view.tdesc, BlockDescriptor)
    pairs = list(zip(block.offsets, low.index_list(view.offsets)))
    inner = len(pairs) - 2 if block.surface else len(pairs)
    moved = tuple(low.add(a, b) if i < inner else low.add_clamped(a, b) for i, (a, b) in enumerate(pairs))
    return low.with_range(BlockDescriptor(block.base, block.surface, block.lead, block.strides, moved), op.results[0])


def _scalar_operand(low: Lowering, numbers: Numbers) -> Region | Immediate:
    """An operand of a 2D block message."""
    if isinstance(numbers, Const):
        return Immediate(numbers.bits & 0xFFFFFFFF, "ud")
    return Region(numbers.var, *low.emit.register_and_element(numbers, 0), 0, 1, 0)


def _bytes_less_one(low: Lowering, numbers: Numbers, size: int) -> Numbers:
    """An extent converted from elements to bytes, less one."""
    return low.add_clamped(low.multiply(numbers, low.index(size)), low.index(-1))


def _surface_operands(low: Lowering, block: BlockDescriptor, desc: TensorDesc, scale: int = 1) -> dict[str, Any]:
    """The operands that describe the surface and the block's position in it.

    Args:
        scale: elements of the tensor per element of the message.
    """
    width, height, pitch = block.surface
    x: Numbers = block.offsets[-1]
    if scale > 1:
        shift = scale.bit_length() - 1
        x = (
            low.index(x.value >> shift)
            if isinstance(x, Const)
            else low.emit.cse("asr", NARROW, 1, x, const(shift, "uw"))
        )
    base, y = _matrix_address(low, block, bit_width(desc.element) // 8)
    if isinstance(x, Const) != isinstance(y, Const):
        x, y = low.emit.in_registers(x), low.emit.in_registers(y)
    return {
        "base": _scalar_operand(low, low.emit.in_registers(base)),
        "width": _scalar_operand(low, width),
        "height": _scalar_operand(low, height),
        "pitch": _scalar_operand(low, pitch),
        "x": _scalar_operand(low, x),
        "y": _scalar_operand(low, y),
    }


def _matrix_address(low: Lowering, block: BlockDescriptor, size: int) -> tuple[Numbers, Numbers]:
    """The address of the 2D matrix that contains a block of more dimensions, and the block's first row in it.

    Messages check only the innermost two dimensions. For a block that is out of bounds along another dimension, the
    tensor's first matrix is used with a first row below its end, so that the whole block is out of bounds.
    """
    base, y = block.base, block.offsets[-2]
    limits = low.target.block2d
    below = low.index(limits.most_extent if limits else 0)
    for i, (offset, stride) in enumerate(list(zip(block.offsets, block.strides))[:-2]):
        if block.lead:
            inside = _in_bounds(low, offset, block.lead[i])
            offset, y = _select_index(low, inside, offset, low.index(0)), _select_index(low, inside, y, below)
            offset = low.as_index(offset, (0, bounds_of(block.lead[i])[1]))
        base = low.address(base, low.multiply(offset, stride), size)
    return base, y


def _in_bounds(low: Lowering, offset: Numbers, extent: Numbers) -> Mask | KnownMask:
    """Return whether 0 <= offset < extent."""
    if isinstance(offset, Const) and offset.value < 0:
        return KnownMask(False)
    if isinstance(offset, Const) and isinstance(extent, Const):
        return KnownMask(offset.value < extent.value)
    # The comparison is unsigned, so that negative offsets are out of bounds.
    name = index_type(join(bounds_of(offset), bounds_of(extent)))
    a, b = (low.emit.as_type(low.cast(n, name), unsigned(name)) for n in (offset, extent))
    if isinstance(a, Const):
        return low.emit.compare("gt", 1, b, a)
    return low.emit.compare("lt", 1, a, b)


def _select_index(low: Lowering, mask: Mask | KnownMask, a: Numbers, b: Numbers) -> Numbers:
    """`a` where the mask is set, else `b`."""
    if isinstance(mask, KnownMask):
        return a if mask.value else b
    bounds = join(bounds_of(a), bounds_of(b))
    name = index_type(bounds)
    if a == b:
        return a
    return replace(low.emit.select(mask, name, 1, low.cast(a, name), low.cast(b, name)), bounds=bounds)


@vc_lowering_rule("xegpu.load_nd")
def load_nd(low: Lowering, op: ir.Operation) -> Value:
    """A 2D block message, or for one dimension a transposed load."""
    view = low.require_vc(op)
    tdesc = view.tdesc
    desc, block = TensorDesc.of(tdesc), low.handle(tdesc, BlockDescriptor)
    shape, element = shape_and_element(view.value)
    name = register_type(element)
    if len(desc.shape) == 1:
        count = desc.shape[0] * desc.attr.array_length
        address = _line_address(low, tdesc)
        return load_line(low, address, desc.in_slm, caches_of(view), count, name)
    transposed = list(view.transpose or ()) == [1, 0]
    message = block_load(desc, transposed, view.transpose_bit_width, view.vnni_axis)
    scale = message.size // bit_width(element)
    grf = low.target.grf_bytes
    count = math.prod(shape)
    result = low.emit.grf_reg(name, message.count * message.block_bytes(grf) // TYPES[name].bytes)
    low.emit.emit(
        "lsc_load_block2d",
        dst=low.emit.raw(result),
        **_surface_operands(low, block, desc, scale=scale),
        sfid="ugm",
        caches=caches_of(view),
        block=message,
        clipped=desc.attr.clipped,
    )
    return _to_vector_layout(low, result, message, shape, name, count)


def _to_vector_layout(
    low: Lowering, loaded: Reg, message: BlockShape, shape: tuple[int, ...], name: str, count: int
) -> Reg:
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
    result = low.emit.grf_reg(name, count)
    for b in range(message.count):
        for r in range(rows):
            to = (r * message.count + b) * used if side_by_side else (b * rows + r) * used
            part = Reg(loaded.var, b * each + r * row, used)
            low.emit.apply("mov", name, used, part, into=Reg(result.var, to, used))
    return Reg(result.var, 0, count)


def _line_address(low: Lowering, tdesc: ir.Value) -> tuple[Reg, int]:
    """The address of a one-dimensional block: a register, and the bytes that messages add to it."""
    desc, block, op = TensorDesc.of(tdesc), low.handle(tdesc, BlockDescriptor), defining_op(tdesc)
    maker = op.opview if op is not None else None
    index = low.affine_term(maker.offsets[0] if isinstance(maker, CreateNdTdescOp) else block.offsets[0])
    strides = block.strides or (low.index(1),)
    return low.element_address(block.base, [index], strides, max(bit_width(desc.element) // 8, 1), desc.in_slm)


@vc_lowering_rule("xegpu.store_nd")
def store_nd(low: Lowering, op: ir.Operation) -> None:
    """A 2D block message, or for one dimension transposed stores."""
    view = low.require_vc(op)
    tdesc = view.tdesc
    desc, block = TensorDesc.of(tdesc), low.handle(tdesc, BlockDescriptor)
    name = register_type(desc.element)
    value = low.reg(view.value, name)
    if len(desc.shape) == 1:
        store_line(low, _line_address(low, tdesc), desc.in_slm, caches_of(view, True), value)
        return
    rows, columns = desc.shape[-2:]
    message = BlockShape(bit_width(desc.element), 1, columns, rows)
    low.emit.emit(
        "lsc_store_block2d",
        **_surface_operands(low, block, desc),
        src0=low.emit.raw(_to_message_layout(low, value, message, name)),
        sfid="ugm",
        caches=caches_of(view, True),
        block=message,
        clipped=desc.attr.clipped,
    )


def _to_message_layout(low: Lowering, at: Reg, message: BlockShape, name: str) -> Reg:
    """Rows in a message's layout: aligned to a register, each padded to a power of two."""
    grf = low.target.grf_bytes
    rows, columns, _ = message.register_shape()
    fits = at.var.count * at.format.bytes - at.first * at.format.bytes >= message.block_bytes(grf)
    if low.emit.is_aligned(at) and fits and columns == message.width:
        return at
    padded = low.emit.grf_reg(name, message.block_bytes(grf) // TYPES[name].bytes)
    for r in range(rows):
        part = at.slice(r * message.width, message.width)
        low.emit.apply("mov", name, message.width, part, into=Reg(padded.var, r * columns, message.width))
    return padded


@vc_lowering_rule("xegpu.prefetch_nd")
def prefetch_nd(low: Lowering, op: ir.Operation) -> None:
    """A load without a destination."""
    view = low.require_vc(op)
    tdesc = view.tdesc
    desc, block = TensorDesc.of(tdesc), low.handle(tdesc, BlockDescriptor)
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
        **_surface_operands(low, block, desc),
        sfid="ugm",
        caches=caches_of(view) or "ca.ca",
        block=BlockShape(bit_width(desc.element), desc.attr.array_length, columns, rows),
    )


# `xegpu`: scattered descriptors, gathers and scatters.

_ACCESSES = ("xegpu.load_gather", "xegpu.store_scatter", "xegpu.prefetch", "xegpu.atomic_rmw")


def _lane_addresses(low: Lowering, base: Numbers, offsets: Reg, size: int, slm: bool) -> Reg:
    """The address of each lane's elements."""
    emit = low.emit
    count = offsets.count
    if slm:
        return low.add_slm_offsets(
            emit.in_registers(low.slm_offset_in_bytes(offsets, size)), base, into=emit.grf_reg("ud", count)
        )
    addresses = emit.grf_reg("uq", count)
    return emit.apply(
        "add", "uq", count, low.lane_offsets_in_bytes(offsets, size), emit.in_registers(base), into=addresses
    )


@vc_lowering_rule("xegpu.create_tdesc")
def create_tdesc(low: Lowering, op: ir.Operation) -> Value:
    """Each lane's address: the base plus an offset in elements."""
    view = low.require_vc(op)
    desc = TensorDesc.of(view.tdesc)
    source = low.value(view.source)
    base = source
    if isinstance(source, MemRefValue):
        base = low.address(source.base, source.offset, element_bytes(source.element), source.slm)
    size = bit_width(desc.element) // 8
    varying, constant = _split_constant(low, view.tdesc, desc, size)
    first, offsets = low.split_uniform(varying)
    if not desc.in_slm:
        # Not added by messages: finalizers add their constants to the 64-bit addresses of all lanes.
        first, constant = low.add(first, low.index(constant)), 0
    assert isinstance(base, (Reg, Const))
    if isinstance(source, (Reg, Const)):
        kind = "ud" if desc.in_slm else "uq"
        base = low.emit.memoized(("base", source, kind), lambda: low.emit.in_registers(source, kind), hoists=False)
    base = low.address(base, first, size, desc.in_slm)
    key = ("lanes", base, offsets, size, desc.in_slm)
    lanes = low.emit.memoized(key, lambda: _lane_addresses(low, base, offsets, size, desc.in_slm), hoists=False)
    return Lanes(lanes, constant * size)


def _split_constant(low: Lowering, tdesc: ir.Value, desc: TensorDesc, size: int) -> tuple[ir.Value, int]:
    """Split a descriptor's offsets into a vector and a constant of all lanes, where that takes no more ops."""
    source, sums = tdesc.owner.operands[:2]
    offsets, constant = sums, 0
    while (op := defining_op(offsets)) is not None and op.name == "arith.addi":
        splat = splat_of(op.operands[1])
        if splat is None:
            break
        offsets, constant = op.operands[0], constant + ir.IntegerAttr(splat).value
    if desc.in_slm:
        # Messages add the constant. The descriptor must have no other use, and addresses must not wrap around.
        least, most = (n * size for n in low.integers.bounds(offsets))
        offset = constant * size
        splits = all(use.owner.name in _ACCESSES for use in tdesc.uses)
        splits = splits and least >= 0 and max(most, most + offset) < 1 << 30 and abs(offset) < MOST_OFFSET
    else:
        # The sums are scaled once for all arrays.
        makers = [use.owner for use in sums.uses]
        splits = size > 1 and all(o.name == "xegpu.create_tdesc" and o.operands[0] == source for o in makers)
    return (offsets, constant) if splits else (sums, 0)


@vc_lowering_rule("xegpu.update_offset")
def update_offset(low: Lowering, op: ir.Operation) -> Value:
    """Add to each lane's address."""
    view = op.opview
    desc = TensorDesc.of(view.tdesc)
    lanes = low.value(view.tdesc)
    assert isinstance(lanes, Lanes)
    size = bit_width(desc.element) // 8
    deltas = low.reg(view.offsets)
    name = lanes.addresses.type
    into = Reg(low.emit.variable(name, lanes.addresses.var.count), 0, lanes.addresses.count)
    if desc.in_slm:
        moved = low.add_slm_offsets(lanes.addresses, low.slm_offset_in_bytes(deltas, size), into)
    else:
        moved = low.emit.apply("add", name, deltas.count, lanes.addresses, low.in_bytes(deltas, size), into=into)
    return Lanes(moved, lanes.plus)


def scattered_addresses(low: Lowering, op: ir.Operation) -> tuple[TensorDesc, Reg, int]:
    """The type of an op's descriptor, its addresses, and the bytes that messages add to these."""
    low.require_vc(op)
    desc = TensorDesc.of(op.opview.tdesc)
    lanes = low.handle(op.opview.tdesc, Lanes)
    return desc, lanes.addresses, lanes.plus


def lane_guards(low: Lowering, op: ir.Operation, lanes: int, most: int = 32) -> list[tuple[int, int, Guard | None]]:
    """(first lane, lanes, guard) of the messages of a masked op; each has at most `most` lanes."""
    mask_value = low.value(op.opview.mask)
    if isinstance(mask_value, KnownMask) and mask_value.value:
        most = min(most, 32 if low.target.grf_bytes == 64 else 16)
        return [(at, min(most, lanes - at), None) for at in range(0, lanes, most)]
    mask = low.mask(op.opview.mask)
    return [(16 * i, min(16, lanes - 16 * i), Guard(p)) for i, p in enumerate(mask.predicates)]


def payload_row_elements(low: Lowering, lanes: int, size: int) -> int:
    """Elements of a row of a message (one element per lane), padded to whole registers."""
    grf = low.target.grf_bytes
    return -(-payload_lanes(lanes, grf) * size // grf) * grf // size


def usable_payload(low: Lowering, numbers: Reg, start: int, lanes: int, count: int, shape: DataShape) -> Reg | None:
    """The vector's own registers as the payload of a message of `count` lanes; None if they do not fit.

    They fit if they are aligned to a register, and the rows of the op's vector have the stride of the message's rows.
    """
    size = numbers.format.bytes
    if size < 4:
        return None
    row, part = payload_row_elements(low, count, size), numbers.slice(start, shape.vector * count)
    follows = shape.vector == 1 or row == count == lanes
    fits = (part.first + shape.vector * row) * size <= numbers.var.bytes
    return part if follows and fits and low.emit.is_aligned(part) else None


def _scattered_messages(
    low: Lowering, op: ir.Operation, numbers: Reg, type_name: str
) -> Iterator[tuple[Reg, list[tuple[Reg, Reg]], bool, list[tuple[Raw, Callable[..., None]]]]]:
    """The messages of a gather or scatter of numbers. Those of single elements use adjacent registers.

    Yields:
        The payload registers of messages, of type `type_name` unless they are the vector's own; for each row of other
        payloads its lanes and the vector's numbers; whether the messages are guarded; and for each message its operand
        and a function that emits it.
    """
    desc, addresses, plus = scattered_addresses(low, op)
    lanes, size = desc.lanes, numbers.format.bytes
    each = lane_guards(low, op, lanes)
    for first, shape in chunk_messages(desc.chunk, size):
        for parts in [each] if shape.vector == 1 else [[part] for part in each]:
            lane, count = parts[0][0], sum(part[1] for part in parts)
            row = payload_row_elements(low, count, max(size, 4))
            vector_payload = usable_payload(low, numbers, first * lanes + lane, lanes, count, shape)
            payload = vector_payload or low.emit.grf_reg(type_name, row * shape.vector)
            rows: list[tuple[Reg, Reg]] = []
            for e in range(0 if vector_payload else shape.vector):
                rows.append((payload.slice(e * row, count), numbers.slice((first + e) * lanes + lane, count)))
            sends: list[tuple[Raw, Callable[..., None]]] = []
            for first_lane, lane_count, guard in parts:
                send = partial(
                    low.emit.message, data=shape, addresses=addresses.slice(first_lane, lane_count), slm=desc.in_slm
                )
                operand = low.emit.raw(payload.slice(first_lane - lane, lane_count))
                sends.append((operand, partial(send, lanes=lane_count, offset=plus + first * size, guard=guard)))
            yield payload, rows, parts[0][2] is not None, sends


@vc_lowering_rule("xegpu.load_gather")
def load_gather(low: Lowering, op: ir.Operation) -> Value:
    """Gathers. Elements narrower than 32 bits are packed afterwards. The chunk is the outer dimension.

    Lanes that the mask disables read zero, or the number that `gather_padding` gives.
    """
    desc = TensorDesc.of(op.opview.tdesc)
    emit, name = low.emit, register_type(desc.element)
    result = emit.grf_reg(name, desc.lanes * desc.chunk)
    size = TYPES[name].bytes
    bits = {1: "ub", 2: "uw"}.get(size, name)
    padding = gather_padding(op)
    others = None if padding is None else low.numbers(padding)
    for payload, rows, guarded, sends in _scattered_messages(low, op, result, name if size >= 4 else "ud"):
        if guarded and others is not None:
            assert isinstance(others, Const)
            words = unsigned(payload.type)
            emit.apply("mov", words, payload.count, Const(others.bits, words), into=emit.as_type(payload, words))
        elif guarded:
            emit.apply("mov", payload.type, payload.count, const(0, payload.type), into=payload)
        for operand, send in sends:
            send("lsc_load", caches=caches_of(op.opview), dst=operand)
        for part, to in rows:
            emit.apply("mov", bits, part.count, part, into=emit.as_type(to, bits))
    return result


@vc_lowering_rule("xegpu.store_scatter")
def store_scatter(low: Lowering, op: ir.Operation) -> None:
    """Scatters. Elements narrower than 32 bits are widened first."""
    name = register_type(scattered_addresses(low, op)[0].element)
    source = low.emit.as_unsigned(low.reg(op.opview.value, name))
    for payload, rows, _, sends in _scattered_messages(low, op, source, "uq" if source.type == "uq" else "ud"):
        for to, part in rows:
            low.emit.apply("mov", payload.type, part.count, part, into=to)
        for operand, send in sends:
            send("lsc_store", caches=caches_of(op.opview, True), src0=operand)


@vc_lowering_rule("xegpu.prefetch")
def prefetch(low: Lowering, op: ir.Operation) -> None:
    """Gathers without a destination."""
    desc, addresses, _ = scattered_addresses(low, op)
    lanes, chunk = desc.lanes, desc.chunk
    if desc.in_slm:
        return
    size = bit_width(desc.element) // 8
    at, caches = addresses.slice(0, 1), caches_of(op.opview) or "ca.ca"
    for first, shape in chunk_messages(chunk, size):
        low.emit.message("lsc_load", shape, at, lanes=lanes, offset=first * size, caches=caches, dst=Raw(None))


# Atomic updates: messages, and compare-and-swap loops for updates without a message.


@vc_lowering_rule("xegpu.atomic_rmw")
def atomic_rmw(low: Lowering, op: ir.Operation) -> Value:
    """Update each lane's element; the result is its old value."""
    desc, addresses, plus = scattered_addresses(low, op)
    lanes, chunk = desc.lanes, desc.chunk
    view, emit = op.opview, low.emit
    kind = view.kind.name
    name = register_type(desc.element)
    size = TYPES[name].bytes
    operation = atomic_message_of(view, desc.element, desc.in_slm, low.target)
    swaps = view.expected is not None
    loops = operation == "icas" and (size == 1 or not swaps)
    if loops and not swaps:
        remark(op, f"becomes a compare-and-swap loop: there is no atomic message for {kind} of {desc.element}")
    value = low.reg(view.value, name)
    shape = atomic_shape(8 * size)
    result = emit.grf_reg(name, lanes * chunk)
    bits = unsigned(name)
    sources = [emit.as_type(v, bits) for v in ([low.reg(view.expected, name)] if swaps else []) + [value]]
    used = any(True for _ in op.results[0].uses)
    for first in range(chunk):
        for lane, count, guard in lane_guards(low, op, lanes, MASK_LANES if operation == "icas" else 32):
            target = AtomicTarget(addresses.slice(lane, count), plus + first * size, shape, desc.in_slm)
            start = first * lanes + lane
            if loops:
                part = value.slice(start, count)
                if size == 1:
                    combine = (
                        _swap_if_expected(emit, Reg(sources[0].var, sources[0].first + start, count))
                        if swaps
                        else byte_combiner(emit, kind, name, desc.element)
                    )
                    before = cas_update_bytes(low, target, count, guard, part, combine)
                else:
                    before = cas_update(low, target, count, guard, part, _combiner(emit, kind, name))
                emit.apply(
                    "mov", bits, count, emit.as_type(before, bits), into=_slice_as(low, result, start, count, bits)
                )
                continue
            row = payload_row_elements(low, count, max(size, 4))
            operands = []
            for source in sources:
                payload = usable_payload(low, source, start, lanes, count, shape)
                if not payload:
                    payload = emit.grf_reg(target.register_type, row)
                    part = source.slice(start, count)
                    emit.apply("mov", payload.type, count, part, into=Reg(payload.var, 0, count))
                operands.append(payload)
            result_payload = usable_payload(low, result, start, lanes, count, shape)
            old = (result_payload or emit.grf_reg(target.register_type, row)) if used else None
            if old and guard:
                # Lanes that the mask disables read zero.
                zeroed = emit.as_type(old.slice(0, count), target.register_type)
                emit.apply("mov", zeroed.type, count, const(0, zeroed.type), into=zeroed)
            target.message(low, operation, count, guard, old, *operands)
            if old and not result_payload:
                into = _slice_as(low, result, start, count, bits)
                emit.apply("mov", bits, count, Reg(old.var, 0, count), into=into)
    return result


@vc_lowering_rule("memref.generic_atomic_rmw")
def generic_atomic_rmw(low: Lowering, op: ir.Operation) -> Value:
    """Update one element by the ops of a region; the result is its old value."""
    target, *indices = op.operands
    mem = low.handle(target, MemRefValue)
    name, block = register_type(mem.element), op.regions[0].blocks[0]
    size = TYPES[name].bytes
    address, offset = address_of(low, mem, indices)
    target_ = AtomicTarget(address, offset, atomic_shape(8 * size), mem.slm)

    def combine(before: Reg, _: Reg) -> Reg:
        low.values[block.arguments[0]] = before
        low.block(block)
        return low.reg(yielded(block)[0], name)

    update_function = cas_update_bytes if size == 1 else cas_update
    return update_function(low, target_, 1, None, low.emit.reg(name, 1), combine)


def _slice_as(low: Lowering, numbers: Reg, start: int, count: int, type_name: str) -> Reg:
    return low.emit.as_type(numbers.slice(start, count), type_name)


class AtomicTarget(Struct, frozen=True):
    """The memory locations of the elements of an atomic message.

    Attributes:
        addresses: an address for each lane: uq, or ud in shared local memory.
        offset: bytes from the addresses.
        data: the elements' size in memory and in registers.
        slm: whether they are in shared local memory.
    """

    addresses: Reg
    offset: int
    data: DataShape
    slm: bool

    @property
    def register_type(self) -> str:
        """The type of a lane's element in the registers of a message."""
        return {4: "ud", 8: "uq"}[self.data.register_bytes]

    def message(
        self, low: Lowering, operation: str, count: int, guard: Guard | None, old: Reg | None, *operands: Reg
    ) -> None:
        """One atomic message of `count` lanes."""
        src0, src1 = (low.emit.raw(operands[i]) if i < len(operands) else Raw(None) for i in range(2))
        low.emit.message(
            f"lsc_atomic_{operation}",
            self.data,
            self.addresses,
            self.slm,
            lanes=count,
            offset=self.offset,
            guard=guard,
            dst=low.emit.raw(old) if old else Raw(None),
            src0=src0,
            src1=src1,
        )


def cas_update(
    low: Lowering, target: AtomicTarget, count: int, guard: Guard | None, value: Reg, combine: Combine
) -> Reg:
    """Replace each lane's element by its combination with a value, in a compare-and-swap loop.

    Each iteration combines the expected contents of memory, which are 0 at first, with the value, and swaps in the
    result where memory has the expected contents. The other lanes take part in the next iteration and expect the
    contents that they read.

    Args:
        count: the number of lanes, at most 16.
        guard: the mask of active lanes; None for all.
        value: the second operand of `combine`, a number for each lane.
        combine: builds the combination of two numbers.

    Returns:
        The old value of each element, of the type of `value`.
    """
    emit, register_type = low.emit, target.register_type
    bits = unsigned(value.type)

    def write(word: Reg, element: Reg, into: Reg) -> None:
        emit.apply("mov", register_type, count, emit.as_type(element, bits), into=into)

    return _cas_loop(
        low, target, count, guard, value, combine, lambda w: emit.as_type(emit.in_registers(w, bits), value.type), write
    )


def cas_update_bytes(
    low: Lowering, target: AtomicTarget, count: int, guard: Guard | None, value: Reg, combine: Combine
) -> Reg:
    """Update elements of 8 bits by compare and swap of the 32-bit words that contain them.

    A lane also retries if another lane or thread has changed other bytes of its word.
    """
    emit = low.emit
    kind = target.addresses.type
    addresses = target.addresses
    if target.offset:
        addresses = emit.apply("add", kind, count, addresses, const(target.offset, "d"))
    byte_in_word = emit.apply("and", "ud", count, emit.in_registers(addresses, "ud"), const(3, "ud"))
    aligned = emit.apply(
        "add", kind, count, addresses, byte_in_word, modifiers=("", "-"), into=emit.grf_reg(kind, count)
    )
    word_target = AtomicTarget(aligned, 0, DataShape("d32"), target.slm)
    shift = emit.apply("shl", "ud", count, byte_in_word, const(3, "ud"))
    byte_mask = emit.apply("shl", "ud", count, emit.broadcast(const(0xFF, "ud"), count), shift)
    other_bytes_mask = emit.apply("not", "ud", count, byte_mask)

    def read(word: Reg) -> Reg:
        return emit.as_type(emit.in_registers(emit.apply("shr", "ud", count, word, shift), "ub"), value.type)

    def write(word: Reg, element: Reg, into: Reg) -> None:
        placed = emit.apply("shl", "ud", count, emit.in_registers(emit.as_type(element, "ub"), "ud"), shift)
        emit.apply("or", "ud", count, emit.apply("and", "ud", count, word, other_bytes_mask), placed, into=into)

    return _cas_loop(low, word_target, count, guard, value, combine, read, write)


def _combiner(emit: Emitter, kind: str, name: str) -> Combine:
    return (lambda _, b: b) if kind == "assign" else combiner(emit, CombiningKind.of_atomic(kind), name)


def byte_combiner(emit: Emitter, kind: str, name: str, element: str) -> Combine:
    """A function that combines elements of 8 bits: integers in 32 bits, floats in hf with a second rounding.

    The two roundings equal a single one (see `xegpu-expand-arith`).
    """
    if kind == "assign":
        return _combiner(emit, kind, name)
    if is_float(element):
        half = _combiner(emit, kind, "hf")

        def combine_floats(a: Reg, b: Reg) -> Reg:
            return hf_to_f8(emit, element, half(f8_to_hf(emit, element, a), f8_to_hf(emit, element, b)))

        return combine_floats
    signed = not kind.endswith("u")
    narrow, wide = ("b", "d") if signed else ("ub", "ud")
    combine = _combiner(emit, kind, wide)

    def combine_bytes(a: Reg, b: Reg) -> Reg:
        a_wide, b_wide = (emit.in_registers(emit.as_type(n, narrow), wide) for n in (a, b))
        return emit.as_type(emit.in_registers(emit.as_type(combine(a_wide, b_wide), "ud"), "ub"), name)

    return combine_bytes


def _swap_if_expected(emit: Emitter, expected: Reg) -> Combine:
    """A function that gives the new value of an 8-bit compare and swap: `b` where `a` has the expected bits."""
    expected_bits = emit.in_registers(emit.as_type(expected, "ub"), "ud")

    def combine(a: Reg, b: Reg) -> Reg:
        same = emit.compare("eq", a.count, emit.in_registers(emit.as_type(a, "ub"), "ud"), expected_bits)
        wide = [emit.in_registers(emit.as_type(n, "ub"), "ud") for n in (b, a)]
        return emit.as_type(emit.in_registers(emit.select(same, "ud", a.count, *wide), "ub"), b.type)

    return combine


def _cas_loop(
    low: Lowering,
    target: AtomicTarget,
    count: int,
    guard: Guard | None,
    value: Reg,
    combine: Combine,
    read: Callable[[Reg], Reg],
    write: Callable[[Reg, Reg, Reg], None],
) -> Reg:
    """Compare and swap until all lanes have succeeded.

    Args:
        read: extracts the element from the contents of memory.
        write: inserts an element into the contents of memory, in new registers.
    """
    emit, register_type = low.emit, target.register_type
    pending = emit.mask(count)
    assign(emit, pending, Mask((guard.var,), count) if guard else KnownMask(True, count))
    expected, new, contents = (emit.grf_reg(register_type, count) for _ in range(3))
    emit.apply("mov", register_type, count, const(0, register_type), into=expected)
    begin = emit.label("Update")
    emit.emit_label(begin)
    before = read(expected)
    write(expected, combine(before, value), new)
    emit.apply("mov", register_type, count, expected, into=contents)
    target.message(low, "icas", count, Guard(pending.predicates[0]), contents, expected, new)
    emit.compare("ne", count, contents, expected, into=pending)
    emit.apply("mov", register_type, count, contents, into=expected)
    any_pending = emit.any_or_all(pending, "any") if count > 1 else pending
    emit.jump(begin, when=any_pending)
    return before
