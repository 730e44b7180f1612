"""`xegpu`: descriptors become what messages are addressed by, and each op its message."""

from __future__ import annotations

import math
from typing import Any

from mlir import ir
from xegpu_py.dialects.xegpu import CacheHint, Mode, TensorDesc
from xegpu_py.dialects.xegpu.types import MemoryScope
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, lowers
from xegpu_py.passes.xegpu_to_visa.memref import element_bytes
from xegpu_py.passes.xegpu_to_visa.values import (
    INDEX,
    Block,
    Const,
    KnownMask,
    Lanes,
    Memory,
    NamedBarrier,
    Numbers,
    Reg,
    register_type,
    shape_and_element,
)

from xegpu_py.ir.builtin import bit_width, is_float, is_integer, signedness
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa.operands import Address, Guard, Immediate, Raw, Region
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import BlockShape, DataShape

TYPES_BYTES = {name: fmt.bytes for name, fmt in TYPES.items()}
_READ = {
    CacheHint.CACHED: "ca",
    CacheHint.UNCACHED: "uc",
    CacheHint.STREAMING: "st",
    CacheHint.READ_INVALIDATE: "ri",
}
_WRITE = {
    CacheHint.UNCACHED: "uc",
    CacheHint.WRITE_THROUGH: "wt",
    CacheHint.WRITE_BACK: "wb",
    CacheHint.STREAMING: "st",
}


def _caches(op: ir.Operation, write: bool = False) -> str:
    """The pair of cache options for L1 and L3 that hints mean; a level without a hint is cached, or written back."""
    view = op.opview
    names, default = (_WRITE, "wb") if write else (_READ, "ca")
    l1, l3 = view.l1_hint, view.l3_hint or view.l2_hint
    if l1 is None and l3 is None:
        return ""
    first = names[l1] if l1 else default
    return f"{first}.{names[l3] if l3 else ('uc' if first == 'uc' else default)}"


def _vc(low: Lowering, op: ir.Operation) -> None:
    if op.opview.mode != Mode.VC:
        low.fail("in SIMT mode cannot be lowered to vISA", "write mode = vc")


def _slm(desc: TensorDesc) -> bool:
    return desc.attr.memory_scope == MemoryScope.SLM


@lowers("xegpu.create_nd_tdesc")
def create_nd_tdesc(low: Lowering, op: ir.Operation) -> None:
    """The base address, the tensor's extents, and where the block begins."""
    _vc(low, op)
    view = op.opview
    source = low.value(view.source)
    offsets = tuple(low.index_list(view.offsets))
    if isinstance(source, Memory):
        base = source.base
        if source.offset != const(0, INDEX) and not source.slm:
            base = low.address(base, source.offset, element_bytes(source.element))
        elif source.slm:
            base = low.emit.in_registers(source.base, "ud")
            shift = low.multiply(source.offset, const(element_bytes(source.element), INDEX))
            base = low.emit.apply("add", "ud", 1, base, shift)
        shape, strides = source.shape, source.strides
    else:
        base = low.emit.in_registers(low.numbers(view.source), "uq")
        shape, strides = (), ()
    if view.shape:
        shape = tuple(low.index_list(view.shape))
        strides = tuple(low.index_list(view.strides))
    desc = TensorDesc.of(view.tdesc)
    surface: tuple[Numbers, ...] = ()
    if len(shape) > 1 and not _slm(desc):
        size = bit_width(desc.element) // 8
        height, width = shape[-2:]
        rows = low.add(height, const(-1, INDEX))
        surface = (_less_one(low, width, size), rows, _less_one(low, strides[-2], size))
    low.set(op, Block(low.emit.in_registers(base), surface, strides, offsets))


def _block(low: Lowering, value: ir.Value) -> Block:
    found = low.value(value)
    assert isinstance(found, Block)
    return found


@lowers("xegpu.update_nd_offset")
def update_nd_offset(low: Lowering, op: ir.Operation) -> None:
    """The offsets moved on."""
    block = _block(low, op.opview.tdesc)
    moved = tuple(low.add(a, b) for a, b in zip(block.offsets, low.index_list(op.opview.offsets)))
    low.set(op, Block(block.base, block.surface, block.strides, moved))


def _scalar(low: Lowering, numbers: Numbers) -> Region | Immediate:
    """An operand of a 2D block message."""
    if isinstance(numbers, Const):
        return Immediate(numbers.bits & 0xFFFFFFFF, "ud")
    return Region(numbers.var, *low.emit.place_of(numbers, 0), 0, 1, 0)


def _less_one(low: Lowering, numbers: Numbers, size: int) -> Numbers:
    """An extent of elements in bytes, less one."""
    return low.add(low.multiply(numbers, const(size, INDEX)), const(-1, INDEX))


def _surface(low: Lowering, block: Block, desc: TensorDesc, row: int = 0, scale: int = 1) -> dict[str, Any]:
    """The operands that describe the surface and the block's place in it.

    Args:
        row: rows of the block that are skipped.
        scale: elements that the message takes for one.
    """
    width, height, pitch = block.surface
    x: Numbers = block.offsets[-1]
    if scale > 1:
        x = low.emit.apply("asr", INDEX, 1, low.emit.in_registers(x), const(scale.bit_length() - 1, "uw"))
    return {
        "base": _scalar(low, low.emit.in_registers(_base(low, block, bit_width(desc.element) // 8))),
        "width": _scalar(low, width),
        "height": _scalar(low, height),
        "pitch": _scalar(low, pitch),
        "x": _scalar(low, x),
        "y": _scalar(low, low.add(block.offsets[-2], const(row, INDEX))),
    }


def _base(low: Lowering, block: Block, size: int) -> Numbers:
    """The address of the 2D matrix in which a block of more dimensions lies."""
    base = block.base
    for offset, stride in list(zip(block.offsets, block.strides))[:-2]:
        base = low.address(base, low.multiply(offset, stride), size)
    return base


def _one_dimensional(desc: TensorDesc) -> bool:
    return len(desc.shape) == 1


@lowers("xegpu.load_nd")
def load_nd(low: Lowering, op: ir.Operation) -> None:
    """A 2D block message, or for one dimension a transposed load."""
    _vc(low, op)
    view = op.opview
    desc, block = TensorDesc.of(view.tdesc), _block(low, view.tdesc)
    shape, element = shape_and_element(str(view.value.type))
    name = register_type(element)
    if _one_dimensional(desc):
        low.set(op, _load_line(low, op, block, desc, name))
        return
    if _slm(desc):
        low.fail("of a 2D block in shared local memory has no message", "use load_gather, or a 1D descriptor")
    rows, columns = desc.shape[-2:]
    bits, scale = bit_width(element), 1
    transposed = list(view.transpose or ()) == [1, 0]
    if transposed and view.transpose_bit_width:
        scale = view.transpose_bit_width // bits
        bits, columns = view.transpose_bit_width, columns // scale
    message = BlockShape(bits, desc.attr.array_length, columns, rows, transposed, view.vnni_axis == 0)
    grf = low.target.grf_bytes
    count = math.prod(shape)
    result = low.emit.whole(name, message.count * message.block_bytes(grf) // TYPES_BYTES[name])
    low.emit.emit(
        "lsc_load_block2d",
        dst=low.emit.raw(result),
        **_surface(low, block, desc, scale=scale),
        sfid="ugm",
        caches=_caches(op),
        block=message,
    )
    low.set(op, _packed(low, result, message, shape, name, count))


def _packed(low: Lowering, loaded: Reg, message: BlockShape, shape: tuple[int, ...], name: str, count: int) -> Reg:
    """The message's registers as the vector's: without padding, blocks side by side where the vector has them so."""
    grf = low.target.grf_bytes
    rows, columns, pack = message.register_shape()
    used = (message.height if message.transpose else message.width) * pack
    row = columns * pack * message.size // 8 // TYPES_BYTES[name]
    used = used * message.size // 8 // TYPES_BYTES[name]
    each = message.block_bytes(grf) // TYPES_BYTES[name]
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


def _line_address(low: Lowering, block: Block, desc: TensorDesc) -> Reg:
    """The address of a one-dimensional block."""
    size = max(bit_width(desc.element) // 8, 1)
    offset = block.offsets[0]
    if block.strides:
        offset = low.multiply(offset, block.strides[0])
    if _slm(desc):
        place = low.multiply(offset, const(size, INDEX))
        return low.emit.apply("add", "ud", 1, low.emit.in_registers(block.base), place)
    return low.emit.in_registers(low.address(block.base, offset, size))


def _line_pieces(total: int) -> list[tuple[int, DataShape]]:
    """(first byte, shape) of the messages that move a line of bytes."""
    pieces = []
    at = 0
    while at < total:
        rest = total - at
        unit = next((s for s in (8, 4, 2, 1) if rest % s == 0 and at % s == 0), 1) if rest < 4 else 4
        if rest >= 4:
            count = max(n for n in (64, 32, 16, 8, 4, 3, 2, 1) if n * 4 <= rest)
            pieces.append((at, DataShape("d32", count, True)))
            at += 4 * count
        else:
            unit = 2 if rest >= 2 else 1
            pieces.append((at, DataShape(f"d{8 * unit}c32")))
            at += unit
    return pieces


def _load_line(low: Lowering, op: ir.Operation, block: Block, desc: TensorDesc, name: str) -> Reg:
    address = _line_address(low, block, desc)
    count = desc.shape[0] * desc.attr.array_length
    result = low.emit.whole(name, count)
    for at, shape in _line_pieces(count * TYPES_BYTES[name]):
        whole = at % low.target.grf_bytes == 0 and shape.transpose
        piece = Reg(result.var, 0, count) if whole else low.emit.whole("ud", max(shape.vector, 1))
        low.emit.emit(
            "lsc_load",
            dst=Raw(piece.var, at if whole else 0),
            address=Address(address.var, address.first * address.format.bytes, at),
            sfid="slm" if _slm(desc) else "ugm",
            caches=_caches(op),
            data=shape,
            address_size="a32" if _slm(desc) else "a64",
        )
        if not whole:
            _move_bytes(low, piece, 0, result, at, shape.vector * shape.memory_bytes)
    return Reg(result.var, 0, count)


def _move_bytes(low: Lowering, source: Reg, source_at: int, to: Reg, to_at: int, size: int) -> None:
    unit = next(n for n in (4, 2, 1) if size % n == 0 and to_at % n == 0 and source_at % n == 0)
    name = {4: "ud", 2: "uw", 1: "ub"}[unit]
    a, b = low.emit.as_type(Reg(source.var, 0, 1), name), low.emit.as_type(Reg(to.var, 0, 1), name)
    part = Reg(a.var, source_at // unit, size // unit)
    low.emit.apply("mov", name, size // unit, part, into=Reg(b.var, to_at // unit, size // unit))


@lowers("xegpu.store_nd")
def store_nd(low: Lowering, op: ir.Operation) -> None:
    """2D block messages of up to eight rows, or for one dimension transposed stores."""
    _vc(low, op)
    view = op.opview
    desc, block = TensorDesc.of(view.tdesc), _block(low, view.tdesc)
    name = register_type(desc.element)
    value = low.reg(view.value, name)
    if _one_dimensional(desc):
        _store_line(low, op, block, desc, value)
        return
    if _slm(desc):
        low.fail("of a 2D block in shared local memory has no message", "use store_scatter, or a 1D descriptor")
    limits = low.target.block2d
    if limits is None:
        low.fail(f"needs 2D block messages, which target {low.target.name} has not")
    rows, columns = desc.shape[-2:]
    if desc.attr.array_length != 1:
        low.fail("cannot store several blocks", "use one descriptor for each block")
    for row in range(0, rows, limits.store_height):
        height = min(limits.store_height, rows - row)
        message = BlockShape(bit_width(desc.element), 1, columns, height)
        low.emit.emit(
            "lsc_store_block2d",
            **_surface(low, block, desc, row),
            src0=low.emit.raw(_padded(low, value, row * columns, message, name)),
            sfid="ugm",
            caches=_caches(op, True),
            block=message,
        )


def _padded(low: Lowering, value: Reg, first: int, message: BlockShape, name: str) -> Reg:
    """Rows of a vector as a message wants them: from a register on, each row as wide as a power of two."""
    grf = low.target.grf_bytes
    rows, columns, _ = message.register_shape()
    at = Reg(value.var, value.first + first, rows * message.width)
    starts = (at.var.root[1] + at.first * at.format.bytes) % grf == 0 and at.var.root[0].align in ("GRF", "GRFx2")
    fits = at.var.count * at.format.bytes - at.first * at.format.bytes >= message.block_bytes(grf)
    if starts and fits and columns == message.width:
        return at
    padded = low.emit.whole(name, message.block_bytes(grf) // TYPES_BYTES[name])
    for r in range(rows):
        part = Reg(at.var, at.first + r * message.width, message.width)
        low.emit.apply("mov", name, message.width, part, into=Reg(padded.var, r * columns, message.width))
    return padded


def _store_line(low: Lowering, op: ir.Operation, block: Block, desc: TensorDesc, value: Reg) -> None:
    address = _line_address(low, block, desc)
    count = value.count
    for at, shape in _line_pieces(count * value.format.bytes):
        start = value.first * value.format.bytes + at
        size = shape.vector * shape.memory_bytes
        root = value.var.root
        whole = (root[1] + start) % low.target.grf_bytes == 0 and shape.transpose and root[0].align == "GRF"
        piece = value if whole else low.emit.whole("ud", max(shape.vector, 1))
        if not whole:
            _move_bytes(low, Reg(value.var, 0, 1), start, piece, 0, size)
        low.emit.emit(
            "lsc_store",
            address=Address(address.var, address.first * address.format.bytes, at),
            src0=Raw(piece.var, start if whole else 0),
            sfid="slm" if _slm(desc) else "ugm",
            caches=_caches(op, True),
            data=shape,
            address_size="a32" if _slm(desc) else "a64",
        )


@lowers("xegpu.prefetch_nd")
def prefetch_nd(low: Lowering, op: ir.Operation) -> None:
    """A load without a destination."""
    _vc(low, op)
    desc, block = TensorDesc.of(op.opview.tdesc), _block(low, op.opview.tdesc)
    if _slm(desc):
        return
    if _one_dimensional(desc):
        address = _line_address(low, block, desc)
        size = desc.shape[0] * desc.attr.array_length * bit_width(desc.element) // 8
        for at, shape in _line_pieces(size):
            low.emit.emit(
                "lsc_load",
                dst=Raw(None),
                address=Address(address.var, address.first * address.format.bytes, at),
                sfid="ugm",
                caches=_caches(op) or "ca.ca",
                data=shape,
                address_size="a64",
            )
        return
    rows, columns = desc.shape[-2:]
    low.emit.emit(
        "lsc_load_block2d",
        dst=Raw(None),
        **_surface(low, block, desc),
        sfid="ugm",
        caches=_caches(op) or "ca.ca",
        block=BlockShape(bit_width(desc.element), desc.attr.array_length, columns, rows),
    )


def _precision(element: str) -> str:
    if is_integer(element):
        return f"{'u' if signedness(element) == 'u' else 's'}{bit_width(element)}"
    return {"bf16": "bf", "f16": "hf", "tf32": "tf32", "f64": "df", "f8E5M2": "bf8", "f8E4M3FN": "hf8"}[element]


@lowers("xegpu.dpas")
def dpas(low: Lowering, op: ir.Operation) -> None:
    """One instruction for each systolic depth's worth of K."""
    _vc(low, op)
    view, emit = op.opview, low.emit
    a_shape, a_element = shape_and_element(str(view.lhs.type))
    b_element = shape_and_element(str(view.rhs.type))[1]
    (m, n), d_element = shape_and_element(str(view.result.type))
    w, a = _precision(b_element), _precision(a_element)
    if n != low.target.dpas_exec_size:
        low.fail(f"has {n} columns, but target {low.target.name} multiplies {low.target.dpas_exec_size}")
    for precision in (w, a):
        if precision not in low.target.dpas_precisions:
            low.fail(f"of {precision} is not there on target {low.target.name}")
    depth = max(low.target.dpas_depths)
    k, each = math.prod(a_shape) // m, depth * ops_per_channel(w, a)
    if k % each:
        low.fail(f"multiplies {k} elements along K, but {w} x {a} takes {each} at a time")
    operand = "df" if w == "df" else "d"
    name = register_type(d_element)
    lhs, rhs = (emit.as_type(_aligned(low, low.reg(v)), operand) for v in (view.lhs, view.rhs))
    acc: Numbers | None = low.numbers(view.acc) if view.acc is not None else None
    if isinstance(acc, Const):
        acc = None if acc.bits == 0 else low.reg(view.acc)
    if isinstance(acc, Reg):
        acc = _aligned(low, acc)
    result = emit.whole(name, m * n)
    if isinstance(acc, Reg) and acc.first == 0 and acc.var.alias is None and acc.var.count != result.var.count:
        result = Reg(emit.variable(name, acc.var.count), 0, m * n)
    steps = k // each
    for step in range(steps):
        piece = lhs if steps == 1 else _columns_of(low, lhs, m, k, step * each, each, bit_width(a_element))
        b_first = step * each * n * bit_width(b_element) // 8 // TYPES_BYTES[operand]
        emit.instructions.append(
            _instruction(low, w, a, depth, m, n, result, acc, Reg(rhs.var, rhs.first + b_first, 1), piece)
        )
        acc = result
    low.set(op, result)


def _instruction(
    low: Lowering, w: str, a: str, depth: int, m: int, n: int, result: Reg, acc: Numbers | None, rhs: Reg, lhs: Reg
) -> Instruction:
    emit = low.emit
    return Instruction(
        "dpas",
        {
            "W": w,
            "A": a,
            "SD": depth,
            "RC": m,
            "dst": emit.raw(result),
            "src0": emit.raw(acc) if isinstance(acc, Reg) else Raw(None),
            "src1": emit.raw(rhs),
            "src2": emit.vector(lhs),
        },
        n,
        where=emit.where,
    )


def _aligned(low: Lowering, reg: Reg) -> Reg:
    """The same numbers from a register on."""
    start = reg.var.root[1] + reg.first * reg.format.bytes
    if start % low.target.grf_bytes == 0 and reg.var.root[0].align in ("GRF", "GRFx2"):
        return reg
    result = low.emit.whole(reg.type, reg.count)
    return low.emit.apply("mov", reg.type, reg.count, reg, into=Reg(result.var, 0, reg.count))


def _columns_of(low: Lowering, lhs: Reg, m: int, k: int, first: int, count: int, bits: int) -> Reg:
    """Columns of a row-major matrix, rows side by side, seen as `lhs` is."""
    row, part, skip = k * bits // 32, count * bits // 32, first * bits // 32
    result = low.emit.whole("d", m * part)
    for r in range(m):
        source = Reg(lhs.var, lhs.first + r * row + skip, part)
        low.emit.apply("mov", "d", part, source, into=Reg(result.var, r * part, part))
    return result


def _lane_addresses(low: Lowering, base: Numbers, offsets: Reg, size: int, slm: bool) -> Reg:
    """The address of each lane's elements."""
    emit = low.emit
    count = offsets.count
    scaled: Numbers = offsets
    if slm:
        if size > 1:
            scaled = emit.apply("shl", INDEX, count, offsets, const(size.bit_length() - 1, "uw"))
        made = emit.whole("ud", count)
        return emit.apply("add", "ud", count, scaled, emit.in_registers(base), into=made)
    wide = emit.apply("mul", "q", count, offsets, const(size, INDEX)) if size > 1 else offsets
    made = emit.whole("uq", count)
    return emit.apply("add", "uq", count, wide, emit.in_registers(base), into=made)


@lowers("xegpu.create_tdesc")
def create_tdesc(low: Lowering, op: ir.Operation) -> None:
    """Each lane's address: the base, and an offset of elements."""
    _vc(low, op)
    view = op.opview
    desc = TensorDesc.of(view.tdesc)
    source = low.value(view.source)
    base = source
    if isinstance(source, Memory):
        base = source.base if source.slm else low.address(source.base, source.offset, element_bytes(source.element))
    offsets = low.emit.in_registers(low.reg(view.offsets), INDEX)
    size = bit_width(desc.element) // 8
    assert isinstance(base, (Reg, Const))
    if isinstance(source, (Reg, Const)):
        base = low.emit.in_registers(source, "ud" if _slm(desc) else "uq")
    low.set(op, Lanes(_lane_addresses(low, base, offsets, size, _slm(desc))))


@lowers("xegpu.update_offset")
def update_offset(low: Lowering, op: ir.Operation) -> None:
    """Each lane's address moved on."""
    view = op.opview
    desc = TensorDesc.of(view.tdesc)
    lanes = low.value(view.tdesc)
    assert isinstance(lanes, Lanes)
    size = bit_width(desc.element) // 8
    deltas = low.emit.in_registers(low.reg(view.offsets), INDEX)
    name = lanes.addresses.type
    wide = low.emit.apply("mul", "d" if _slm(desc) else "q", deltas.count, deltas, const(size, INDEX))
    into = Reg(low.emit.variable(name, lanes.addresses.var.count), 0, lanes.addresses.count)
    low.set(op, Lanes(low.emit.apply("add", name, deltas.count, lanes.addresses, wide, into=into)))


def _lanes(low: Lowering, op: ir.Operation) -> tuple[TensorDesc, Reg, int, int]:
    """The descriptor, its addresses, the number of lanes and of elements that each has."""
    _vc(low, op)
    desc = TensorDesc.of(op.opview.tdesc)
    found = low.value(op.opview.tdesc)
    assert isinstance(found, Lanes)
    return desc, found.addresses, desc.shape[0], desc.shape[1] if len(desc.shape) > 1 else 1


def _guards(low: Lowering, op: ir.Operation, lanes: int) -> list[tuple[int, int, Guard | None]]:
    """(first lane, lanes, guard) of the messages of an op with a mask."""
    known = low.value(op.opview.mask)
    if isinstance(known, KnownMask) and known.value:
        most = 32 if low.target.grf_bytes == 64 else 16
        return [(at, min(most, lanes - at), None) for at in range(0, lanes, most)]
    mask = low.mask(op.opview.mask)
    return [(16 * i, min(16, lanes - 16 * i), Guard(p)) for i, p in enumerate(mask.predicates)]


def _chunk_messages(chunk: int, size: int) -> list[tuple[int, DataShape]]:
    """(first element, shape) of the messages that move a lane's elements, of `size` bytes."""
    if size < 4:
        return [(i, DataShape(f"d{8 * size}c32")) for i in range(chunk)]
    shapes = []
    at = 0
    while at < chunk:
        count = max(n for n in (8 if size == 4 else 4, 4, 3, 2, 1) if n <= chunk - at)
        shapes.append((at, DataShape(f"d{8 * size}", count)))
        at += count
    return shapes


def _padded_row(low: Lowering, lanes: int, size: int) -> int:
    """Elements between those of one lane's neighbours in a message's registers."""
    return -(-lanes * size // low.target.grf_bytes) * low.target.grf_bytes // size


@lowers("xegpu.load_gather")
def load_gather(low: Lowering, op: ir.Operation) -> None:
    """Gathers; what is narrower than 32 bits is packed afterwards. The chunk is the outer dimension."""
    desc, addresses, lanes, chunk = _lanes(low, op)
    emit = low.emit
    name = register_type(desc.element)
    size = TYPES_BYTES[name]
    result = emit.whole(name, lanes * chunk)
    held_name = name if size >= 4 else "ud"
    for first, shape in _chunk_messages(chunk, size):
        for lane, count, guard in _guards(low, op, lanes):
            row = _padded_row(low, count, max(size, 4))
            held = emit.whole(held_name, row * shape.vector)
            if guard:
                emit.apply("mov", held_name, held.count, const(0, held_name), into=held)
            emit.emit(
                "lsc_load",
                count,
                guard=guard,
                dst=emit.raw(held),
                address=Address(addresses.var, (addresses.first + lane) * addresses.format.bytes, first * size),
                sfid="slm" if _slm(desc) else "ugm",
                caches=_caches(op),
                data=shape,
                address_size="a32" if _slm(desc) else "a64",
            )
            for e in range(shape.vector):
                part = Reg(held.var, e * row, count)
                _narrow(low, part, Reg(result.var, (first + e) * lanes + lane, count), size)
    low.set(op, result)


def _narrow(low: Lowering, part: Reg, to: Reg, size: int) -> None:
    """Numbers of 32 bits into those of a narrower type, bit by bit."""
    if size >= 4:
        low.emit.apply("mov", to.type, to.count, part, into=to)
        return
    name = {1: "ub", 2: "uw"}[size]
    low.emit.apply("mov", name, to.count, part, into=low.emit.as_type(to, name))


@lowers("xegpu.store_scatter")
def store_scatter(low: Lowering, op: ir.Operation) -> None:
    """Scatters; what is narrower than 32 bits is widened before."""
    desc, addresses, lanes, chunk = _lanes(low, op)
    emit = low.emit
    name = register_type(desc.element)
    size = TYPES_BYTES[name]
    value = low.reg(op.opview.value, name)
    bits = {1: "ub", 2: "uw", 4: "ud", 8: "uq"}[size]
    source = emit.as_type(value, bits)
    for first, shape in _chunk_messages(chunk, size):
        for lane, count, guard in _guards(low, op, lanes):
            row = _padded_row(low, count, max(size, 4))
            held = emit.whole("uq" if size == 8 else "ud", row * shape.vector)
            for e in range(shape.vector):
                to = Reg(held.var, e * row, count)
                part = Reg(source.var, source.first + (first + e) * lanes + lane, count)
                emit.apply("mov", held.type, count, part, into=to)
            emit.emit(
                "lsc_store",
                count,
                guard=guard,
                address=Address(addresses.var, (addresses.first + lane) * addresses.format.bytes, first * size),
                src0=emit.raw(held),
                sfid="slm" if _slm(desc) else "ugm",
                caches=_caches(op, True),
                data=shape,
                address_size="a32" if _slm(desc) else "a64",
            )


@lowers("xegpu.prefetch")
def prefetch(low: Lowering, op: ir.Operation) -> None:
    """Gathers without a destination."""
    desc, addresses, lanes, chunk = _lanes(low, op)
    if _slm(desc):
        return
    size = bit_width(desc.element) // 8
    most = 32 if low.target.grf_bytes == 64 else 16
    for first, shape in _chunk_messages(chunk, size):
        for lane in range(0, lanes, most):
            low.emit.emit(
                "lsc_load",
                min(most, lanes - lane),
                dst=Raw(None),
                address=Address(addresses.var, (addresses.first + lane) * addresses.format.bytes, first * size),
                sfid="ugm",
                caches=_caches(op) or "ca.ca",
                data=shape,
                address_size="a64",
            )


_ATOMICS = {
    "addf": "fadd",
    "addi": "iadd",
    "assign": "store",
    "maximumf": "fmax",
    "maxnumf": "fmax",
    "maxs": "smax",
    "maxu": "umax",
    "minimumf": "fmin",
    "minnumf": "fmin",
    "mins": "smin",
    "minu": "umin",
    "ori": "or",
    "andi": "and",
    "xori": "xor",
}


@lowers("xegpu.atomic_rmw")
def atomic_rmw(low: Lowering, op: ir.Operation) -> None:
    """Atomic messages; the result is what was there before."""
    desc, addresses, lanes, chunk = _lanes(low, op)
    view, emit = op.opview, low.emit
    kind = str(view.kind).rpartition(".")[2].lower()
    operation = _ATOMICS.get(kind)
    name = register_type(desc.element)
    size = TYPES_BYTES[name]
    if operation is None:
        low.fail(f"of kind {kind} has no atomic message", f"there are {', '.join(_ATOMICS)}")
    if size not in (2, 4, 8) or desc.element == "bf16" or (is_float(desc.element) and size == 8 and kind != "addf"):
        low.fail(f"of {desc.element} has no atomic message", "convert to a type of 32 bits")
    value = low.reg(view.value, name)
    shape = DataShape({2: "d16c32", 4: "d32", 8: "d64"}[size])
    result = emit.whole(name, lanes * chunk)
    bits = {2: "uw", 4: "ud", 8: "uq"}[size]
    used = any(True for _ in op.results[0].uses)
    for first in range(chunk):
        for lane, count, guard in _guards(low, op, lanes):
            row = _padded_row(low, count, max(size, 4))
            held = emit.whole("uq" if size == 8 else "ud", row)
            source = emit.as_type(value, bits)
            part = Reg(source.var, source.first + first * lanes + lane, count)
            emit.apply("mov", held.type, count, part, into=Reg(held.var, 0, count))
            old = emit.whole(held.type, row) if used else None
            emit.emit(
                f"lsc_atomic_{operation}",
                count,
                guard=guard,
                dst=emit.raw(old) if old else Raw(None),
                address=Address(addresses.var, (addresses.first + lane) * addresses.format.bytes, first * size),
                src0=emit.raw(held),
                src1=Raw(None),
                sfid="slm" if _slm(desc) else "ugm",
                caches="",
                data=shape,
                address_size="a32" if _slm(desc) else "a64",
            )
            if old:
                to = Reg(result.var, first * lanes + lane, count)
                emit.apply("mov", bits, count, Reg(old.var, 0, count), into=emit.as_type(to, bits))
    low.set(op, result)


@lowers("xegpu.alloc_nbarrier")
def alloc_nbarrier(low: Lowering, op: ir.Operation) -> None:
    """The kernel's number of named barriers."""
    view = op.opview
    count = view.nbarrier_num
    if count is None:
        known = low.numbers(view.count)
        if not isinstance(known, Const):
            low.fail("needs a constant", "the number of named barriers is one of the kernel's own")
        count = known.value
    low.barriers = max(low.barriers, count)


@lowers("xegpu.init_nbarrier")
def init_nbarrier(low: Lowering, op: ir.Operation) -> None:
    """A barrier's number, and how many threads meet there."""
    view = op.opview
    numbers = []
    for value in (view.nbarrier_id, view.participant_thread_num):
        found = low.numbers(value)
        numbers.append(const(found.value, "ub") if isinstance(found, Const) else low.emit.in_registers(found, "ub"))
    low.set(op, NamedBarrier(*numbers))


def _barrier(low: Lowering, value: ir.Value) -> NamedBarrier:
    found = low.value(value)
    assert isinstance(found, NamedBarrier)
    return found


@lowers("xegpu.nbarrier_arrive")
def nbarrier_arrive(low: Lowering, op: ir.Operation) -> None:
    """Signal."""
    barrier = _barrier(low, op.operands[0])
    low.emit.emit(
        "nbarrier.signal", no_mask=False, id=low.emit.source(barrier.id, 0), count=low.emit.source(barrier.count, 0)
    )


@lowers("xegpu.nbarrier_wait")
def nbarrier_wait(low: Lowering, op: ir.Operation) -> None:
    """Wait."""
    barrier = _barrier(low, op.operands[0])
    low.emit.emit("nbarrier.wait", no_mask=False, id=low.emit.source(barrier.id, 0))


@lowers("xegpu.fence")
def fence(low: Lowering, op: ir.Operation) -> None:
    """A fence of one memory."""
    view = op.opview
    shared = view.memory_kind.value == "shared"
    scope = "group" if shared or view.scope.value == "workgroup" else "gpu"
    low.emit.emit("lsc_fence", no_mask=False, sfid="slm" if shared else "ugm", flush="none", scope=scope)


@lowers("xegpu.compile_hint")
def compile_hint(low: Lowering, op: ir.Operation) -> None:
    """A fence for the compilers that follow: `visa-optimize`, and Intel's finalizer."""
    low.emit.emit("fence_sw", no_mask=False)
