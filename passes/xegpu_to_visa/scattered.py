"""`xegpu`: scattered descriptors, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from mlir import ir

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.ir.builtin import bit_width
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.common.messages import caches_of, chunk_messages
from xegpu_py.passes.common.registers import element_bytes, register_type
from xegpu_py.passes.common.values import defining_op, splat_of
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lower import MOST_OFFSET, Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Const, KnownMask, Lanes, Memory, Numbers, Reg
from xegpu_py.visa.operands import Guard, Raw
from xegpu_py.visa.spec import DataShape, payload_lanes

_ACCESSES = ("xegpu.load_gather", "xegpu.store_scatter", "xegpu.prefetch", "xegpu.atomic_rmw")


def _lane_addresses(low: Lowering, base: Numbers, offsets: Reg, size: int, slm: bool) -> Reg:
    """The address of each lane's elements."""
    emit = low.emit
    count = offsets.count
    if slm:
        return low.local_sum(emit.in_registers(low.local_bytes(offsets, size)), base, into=emit.whole("ud", count))
    made = emit.whole("uq", count)
    return emit.apply("add", "uq", count, low.scaled_lanes(offsets, size), emit.in_registers(base), into=made)


@pattern("xegpu.create_tdesc")
def create_tdesc(low: Lowering, op: ir.Operation) -> None:
    """Each lane's address: the base plus an offset in elements."""
    view = low.require_vc(op)
    desc = TensorDesc.of(view.tdesc)
    source = low.value(view.source)
    base = source
    if isinstance(source, Memory):
        at = low.local_address if source.slm else low.address
        base = at(source.base, source.offset, element_bytes(source.element))
    size = bit_width(desc.element) // 8
    varying, constant = _split_constant(low, view.tdesc, desc, size)
    first, offsets = low.split_uniform(varying)
    if not desc.in_slm:
        # Not added by messages: finalizers add their constants to the 64-bit addresses of all lanes.
        first, constant = low.add(first, low.index(constant)), 0
    assert isinstance(base, (Reg, Const))
    if isinstance(source, (Reg, Const)):
        base = low.emit.in_registers(source, "ud" if desc.in_slm else "uq")
    base = (low.local_address if desc.in_slm else low.address)(base, first, size)
    key = ("lanes", base, offsets, size, desc.in_slm)
    lanes = low.emit.once(key, lambda: _lane_addresses(low, base, offsets, size, desc.in_slm), hoists=False)
    low.set(op, Lanes(lanes, constant * size))


def _split_constant(low: Lowering, tdesc: ir.Value, desc: TensorDesc, size: int) -> tuple[ir.Value, int]:
    """The offsets of a descriptor as the sum of others and a constant of all lanes, where that takes no more ops."""
    source, sums = tdesc.owner.operands[:2]
    offsets, constant = sums, 0
    while (op := defining_op(offsets)) is not None and op.name == "arith.addi":
        more = splat_of(op.operands[1])
        if more is None:
            break
        offsets, constant = op.operands[0], constant + ir.IntegerAttr(more).value
    if desc.in_slm:
        # Messages add the constant. The descriptor must have no other use, and addresses must not wrap around.
        least, most = (n * size for n in low.ranges.of(offsets))
        plus = constant * size
        splits = all(use.owner.name in _ACCESSES for use in tdesc.uses)
        splits = splits and least >= 0 and max(most, most + plus) < 1 << 30 and abs(plus) < MOST_OFFSET
    else:
        # The sums are scaled once for all arrays.
        makers = [use.owner for use in sums.uses]
        splits = size > 1 and all(o.name == "xegpu.create_tdesc" and o.operands[0] == source for o in makers)
    return (offsets, constant) if splits else (sums, 0)


@pattern("xegpu.update_offset")
def update_offset(low: Lowering, op: ir.Operation) -> None:
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
        moved = low.local_sum(lanes.addresses, low.local_bytes(deltas, size), into)
    else:
        moved = low.emit.apply("add", name, deltas.count, lanes.addresses, low.scaled(deltas, size), into=into)
    low.set(op, Lanes(moved, lanes.plus))


def lanes_of(low: Lowering, op: ir.Operation) -> tuple[TensorDesc, Reg, int]:
    """The type of an op's descriptor, its addresses, and the bytes that messages add to these."""
    low.require_vc(op)
    desc = TensorDesc.of(op.opview.tdesc)
    found = low.value(op.opview.tdesc)
    assert isinstance(found, Lanes)
    return desc, found.addresses, found.plus


def guards(low: Lowering, op: ir.Operation, lanes: int, most: int = 32) -> list[tuple[int, int, Guard | None]]:
    """(first lane, lanes, guard) of the messages of a masked op; each has at most `most` lanes."""
    known = low.value(op.opview.mask)
    if isinstance(known, KnownMask) and known.value:
        most = min(most, 32 if low.target.grf_bytes == 64 else 16)
        return [(at, min(most, lanes - at), None) for at in range(0, lanes, most)]
    mask = low.mask(op.opview.mask)
    return [(16 * i, min(16, lanes - 16 * i), Guard(p)) for i, p in enumerate(mask.predicates)]


def padded_row(low: Lowering, lanes: int, size: int) -> int:
    """Elements of a row of a message (one element per lane), padded to whole registers."""
    grf = low.target.grf_bytes
    return -(-payload_lanes(lanes, grf) * size // grf) * grf // size


def in_place(low: Lowering, numbers: Reg, start: int, lanes: int, count: int, shape: DataShape) -> Reg | None:
    """A vector's registers from number `start` on, if a message of `count` lanes can use them directly; else None.

    It can if they are aligned to a register, and the rows of the op's vector have the stride of the message's.
    """
    size = numbers.format.bytes
    if size < 4:
        return None
    row, part = padded_row(low, count, size), numbers.part(start, shape.vector * count)
    follows = shape.vector == 1 or row == count == lanes
    fits = (part.first + shape.vector * row) * size <= numbers.var.bytes
    return part if follows and fits and low.emit.is_aligned(part) else None


def _messages(
    low: Lowering, op: ir.Operation, numbers: Reg, type_name: str
) -> Iterator[tuple[Reg, list[tuple[Reg, Reg]], bool, list[tuple[Raw, Callable[..., None]]]]]:
    """The messages of a gather or scatter of numbers. Those of single elements use adjacent registers.

    Yields:
        The registers that messages use, of type `type_name` if they are not the numbers' own; for each row of
        them, if they are not, its lanes and the numbers that belong there; whether the messages are guarded; and for
        each message its operand and a function that emits it.
    """
    desc, addresses, plus = lanes_of(low, op)
    lanes, size = desc.lanes, numbers.format.bytes
    each = guards(low, op, lanes)
    for first, shape in chunk_messages(desc.chunk, size):
        for parts in [each] if shape.vector == 1 else [[part] for part in each]:
            lane, count = parts[0][0], sum(part[1] for part in parts)
            row = padded_row(low, count, max(size, 4))
            own = in_place(low, numbers, first * lanes + lane, lanes, count, shape)
            held = own or low.emit.whole(type_name, row * shape.vector)
            rows: list[tuple[Reg, Reg]] = []
            for e in range(0 if own else shape.vector):
                rows.append((held.part(e * row, count), numbers.part((first + e) * lanes + lane, count)))
            sends: list[tuple[Raw, Callable[..., None]]] = []
            for at, some, guard in parts:
                send = partial(low.emit.message, data=shape, addresses=addresses.part(at, some), slm=desc.in_slm)
                operand = low.emit.raw(held.part(at - lane, some))
                sends.append((operand, partial(send, lanes=some, offset=plus + first * size, guard=guard)))
            yield held, rows, parts[0][2] is not None, sends


@pattern("xegpu.load_gather")
def load_gather(low: Lowering, op: ir.Operation) -> None:
    """Gathers. Elements narrower than 32 bits are packed afterwards. The chunk is the outer dimension."""
    desc = TensorDesc.of(op.opview.tdesc)
    emit, name = low.emit, register_type(desc.element)
    result = emit.whole(name, desc.lanes * desc.chunk)
    size = TYPES[name].bytes
    bits = {1: "ub", 2: "uw"}.get(size, name)
    for held, rows, guarded, sends in _messages(low, op, result, name if size >= 4 else "ud"):
        if guarded:
            emit.apply("mov", held.type, held.count, const(0, held.type), into=held)
        for operand, send in sends:
            send("lsc_load", caches=caches_of(op.opview), dst=operand)
        for part, to in rows:
            emit.apply("mov", bits, part.count, part, into=emit.as_type(to, bits))
    low.set(op, result)


@pattern("xegpu.store_scatter")
def store_scatter(low: Lowering, op: ir.Operation) -> None:
    """Scatters. Elements narrower than 32 bits are widened first."""
    name = register_type(lanes_of(low, op)[0].element)
    source = low.emit.as_unsigned(low.reg(op.opview.value, name))
    for held, rows, _, sends in _messages(low, op, source, "uq" if source.type == "uq" else "ud"):
        for to, part in rows:
            low.emit.apply("mov", held.type, part.count, part, into=to)
        for operand, send in sends:
            send("lsc_store", caches=caches_of(op.opview, True), src0=operand)


@pattern("xegpu.prefetch")
def prefetch(low: Lowering, op: ir.Operation) -> None:
    """Gathers without a destination."""
    desc, addresses, _ = lanes_of(low, op)
    lanes, chunk = desc.lanes, desc.chunk
    if desc.in_slm:
        return
    size = bit_width(desc.element) // 8
    most, caches = 32 if low.target.grf_bytes == 64 else 16, caches_of(op.opview) or "ca.ca"
    for first, shape in chunk_messages(chunk, size):
        for lane in range(0, lanes, most):
            count, at = min(most, lanes - lane), addresses.part(lane, 1)
            low.emit.message("lsc_load", shape, at, lanes=count, offset=first * size, caches=caches, dst=Raw(None))
