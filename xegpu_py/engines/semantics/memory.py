"""Messages to memory: gathers and scatters, 2D blocks, atomics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from xegpu_py import numerics
from xegpu_py.engines.faults import AccessFault
from xegpu_py.engines.operands import (
    Batch,
    Mask,
    Read,
    RegisterPositions,
    Rows,
    count_of,
    data_offsets,
    masker,
    raw_reader,
    raw_writer,
    reader,
)
from xegpu_py.engines.semantics import Table
from xegpu_py.engines.semantics.alu import Step
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.formats import IEEE, Array, Format, canonical
from xegpu_py.target import verdict
from xegpu_py.target.message_rules import LEGALIZED, RULES, SURFACE_RULES, broken_rules
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.messages import ATOMICS, address_base, alignment
from xegpu_py.visa.operands import Immediate, Region
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import BlockShape, DataShape

STEPS = Table()
"""Functions that build the step of a message."""


def lane_addresses(inst: Instruction, layout: RegisterPositions) -> Read:
    """Reads each lane's address as uint64[threads, lanes].

    Sums are of 64 bits: offsets of 32 bits are widened before they are scaled, a32s with their sign. Without a
        base, and in shared local memory, sums have the width of the address.
    """
    operand, address_size = inst["address"], inst["address_size"]
    read = raw_reader(operand, INSTRUCTIONS[inst.name].size("address", inst, layout.target), layout)
    dtype = {"a64": np.uint64, "a32s": np.int32}.get(address_size, np.uint32)
    base_operand = address_base(inst)
    base = None if base_operand is None else _scalar(base_operand, layout)
    bits = 64 if address_size == "a64" or (base_operand and inst["sfid"] != "slm") else 32
    address_mask = layout.local_bits if inst["sfid"] == "slm" else (1 << bits) - 1
    plus, scale, low = (np.uint64(n % (1 << 64)) for n in (operand.plus, operand.scale, address_mask))

    def addresses(batch: Batch, rows: Rows) -> Array:
        offsets = np.ascontiguousarray(read(batch, rows)).view(dtype).astype(np.uint64) * scale + plus
        return (offsets if base is None else offsets + base(batch, rows).astype(np.uint64)) & low

    return addresses


def _lanes(batch: Batch, rows: Rows, mask: Array | None, count: int) -> tuple[Array, Array]:
    """The (thread among the rows, lane) pairs that act."""
    threads = count_of(batch, rows)
    if mask is None:
        return np.divmod(np.arange(threads * count), count)
    thread, lane = np.nonzero(np.broadcast_to(mask, (threads, count)))
    return thread, lane


def _locate(
    inst: Instruction,
    layout: RegisterPositions,
    batch: Batch,
    rows: Rows,
    addresses: Array,
    lanes: tuple[Array, Array],
    size: int,
    verb: str,
    values: Array | None = None,
    required_bytes: Array | None = None,
) -> tuple[Array, Array]:
    """The memory that a message accesses, and offsets[lanes] into it.

    Args:
        values: uint8[lanes, size], what a store writes.
        required_bytes: see `GlobalMemory.locate`.

    Raises:
        AccessFault: with the index, among all threads' lanes, of the lane at fault.
    """
    thread, lane = lanes
    active_addresses = addresses[thread, lane]
    slm = inst["sfid"] == "slm"
    batch.traffic[inst["sfid"], INSTRUCTIONS[inst.name].category] += len(active_addresses) * size
    try:
        if slm:
            groups = batch.groups[rows][thread]
            data, offsets = batch.slm.data, batch.slm.locate(groups, active_addresses[:, None], size, verb)[:, 0]
        else:
            data, offsets = batch.memory.data, batch.memory.locate(active_addresses, size, verb, required_bytes)
    except AccessFault as fault:
        raise AccessFault(int(thread[fault.index]) * inst.exec_size + int(lane[fault.index]), fault.reason) from None
    aligned, rule = alignment(inst, layout.exact_addresses)
    if aligned > 1 and not layout.lenient and (misplaced := active_addresses % np.uint64(aligned) != 0).any():
        i = int(np.argmax(misplaced))
        whose = "that" if size == aligned else str(aligned)
        reason = f"{verb} {size} bytes at an address that is not a multiple of {whose}"
        notes = [verdict(RULES[rule], layout.target)] if rule else []
        raise AccessFault(int(thread[i]) * inst.exec_size + int(lane[i]), reason, notes)
    if batch.races:
        batch.races.note(inst, np.arange(batch.threads)[rows][thread], offsets, size, slm, data, values)
    return data, offsets


class _Data:
    """The register layout of a message's data.

    Attributes:
        element_offsets: [lanes, elements], the first byte of each element of each lane.
        columns: [elements * bytes], offsets from a lane's address of its bytes in memory.
        register_columns: [lanes, elements * bytes], positions in the operand of the bytes that a lane has in memory.
    """

    def __init__(self, inst: Instruction, layout: RegisterPositions) -> None:
        self.shape: DataShape = inst["data"]
        self.element_offsets = data_offsets(self.shape, inst.exec_size, layout.target.grf_bytes)
        self.bytes = INSTRUCTIONS[inst.name].size("dst" if "dst" in inst.values else "src0", inst, layout.target)
        byte_columns = np.arange(self.shape.memory_bytes)
        self.columns = np.arange(self.shape.vector * self.shape.memory_bytes)
        self.register_columns = (self.element_offsets[:, :, None] + byte_columns).reshape(len(self.element_offsets), -1)


@STEPS.of("lsc_load")
def lsc_load(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Load from each lane's address."""
    mask = masker(inst, layout)
    if inst["dst"].var is None:
        return lambda batch, rows, active: None
    read_addresses, data = lane_addresses(inst, layout), _Data(inst, layout)
    columns, into, shape = data.columns, data.register_columns, data.shape
    read = raw_reader(inst["dst"], data.bytes, layout)
    write = raw_writer(inst["dst"], layout)
    widened = shape.register_bytes > shape.memory_bytes
    upper = (data.element_offsets[:, :, None] + np.arange(shape.memory_bytes, shape.register_bytes)).reshape(
        len(into), -1
    )

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        lanes = _lanes(batch, rows, mask(batch, rows, active), inst.exec_size)
        memory, offsets = _locate(inst, layout, batch, rows, read_addresses(batch, rows), lanes, len(columns), "reads")
        byte_offsets = offsets[:, None] + columns
        loaded_bytes = (
            batch.delayed.read(inst["sfid"] == "slm", memory, byte_offsets) if batch.delayed else memory[byte_offsets]
        )
        result = np.array(read(batch, rows))
        result[lanes[0][:, None], into[lanes[1]]] = loaded_bytes
        if widened:
            result[lanes[0][:, None], upper[lanes[1]]] = 0
        write(batch, rows, result)

    return step


@STEPS.of("lsc_store")
def lsc_store(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Store to each lane's address; of lanes with equal addresses the last one wins."""
    mask, read_addresses, data = masker(inst, layout), lane_addresses(inst, layout), _Data(inst, layout)
    columns, out_of = data.columns, data.register_columns
    read = raw_reader(inst["src0"], data.bytes, layout)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        lanes = _lanes(batch, rows, mask(batch, rows, active), inst.exec_size)
        values = read(batch, rows)[lanes[0][:, None], out_of[lanes[1]]]
        memory, offsets = _locate(
            inst, layout, batch, rows, read_addresses(batch, rows), lanes, len(columns), "writes", values
        )
        byte_offsets = offsets[:, None] + columns
        if batch.delayed:
            batch.delayed.add(inst["sfid"] == "slm", memory, byte_offsets.ravel(), values.ravel())
        else:
            memory[byte_offsets] = values

    return step


class _Surfaces:
    """The surfaces of a 2D block message, one for each thread, and the positions in memory of its elements."""

    def __init__(self, inst: Instruction, layout: RegisterPositions, mask: Mask) -> None:
        self.inst, self.mask, self.strict = inst, mask, layout.is_strict(inst)
        self.block: BlockShape = inst["block"]
        self.target = layout.target
        assert self.target.block2d
        self.limits = self.target.block2d.executed
        self.rules = () if layout.lenient else SURFACE_RULES if layout.exact else LEGALIZED
        self.watches_columns = layout.watches_columns
        self.reads = {n: _scalar(inst[n], layout) for n in ("base", "width", "height", "pitch", "x", "y")}
        # The dimensions are threads, the blocks of an array, rows and columns.
        self.element_x = np.arange(self.block.count * self.block.width).reshape(1, self.block.count, 1, -1)
        self.element_y = np.arange(self.block.height).reshape(1, 1, -1, 1)

    def threads(self, batch: Batch, rows: Rows, active: Array | None) -> Array:
        """The threads that act."""
        thread, _ = _lanes(batch, rows, self.mask(batch, rows, active), 1)
        return thread

    def element_offsets(self, batch: Batch, rows: Rows, thread: Array, verb: str) -> tuple[Array, Array]:
        """Offsets of the elements in memory, int64[threads, elements], and which of them lie in the surface.

        Raises:
            AccessFault: if a surface is not legal, or not within one allocation; with the check `bounds` also if a
                block is not within its surface. A surface whose extents are the bounds of a mask may reach beyond the
                allocation: only what the message accesses of it must be within one.
        """
        value = self._read(batch, rows, thread)
        width, height, pitch = (value[n] for n in ("width", "height", "pitch"))
        size = self.block.size // 8
        # The padding after the last row need not be allocated.
        located, start, extent, access = (
            np.arange(len(thread)),
            np.zeros_like(pitch),
            (height - 1) * pitch + width,
            "a surface",
        )
        if self.inst.clipped:
            start, extent = self._accessed(value)
            located, access = np.flatnonzero(extent > 0), "a block"
        base = np.zeros_like(pitch)
        try:
            addresses = value["base"] + start.view(np.uint64)
            base[located] = batch.memory.surface(addresses[located], extent[located], f"{verb} {access}")
        except AccessFault as fault:
            raise AccessFault(int(thread[located[fault.index]]), fault.reason) from None
        base -= start
        base, width, height, pitch = (n.reshape(-1, 1, 1, 1) for n in (base, width, height, pitch))
        x = value["x"].reshape(base.shape) + self.element_x
        y = value["y"].reshape(base.shape) + self.element_y
        inside: Array = ((x >= 0) & ((x + 1) * size <= width)) & ((y >= 0) & (y < height))
        offsets: Array = (base + y * pitch) + x * size
        if not inside.all():
            if self.strict:
                thread_index = int(np.argmin(inside.reshape(len(thread), -1).all(axis=1)))
                where = [int(n.reshape(len(thread), -1)[thread_index, 0]) for n in (y, x, height, width, base)]
                raise AccessFault(int(thread[thread_index]), self._out_of_bounds(batch, verb, *where))
            offsets[~inside] = 0
        batch.traffic["ugm", INSTRUCTIONS[self.inst.name].category] += int(inside.sum()) * size
        elements = len(thread), self.element_x.size * self.element_y.size
        return offsets.reshape(elements), inside.reshape(elements)

    def _accessed(self, value: Mapping[str, Array]) -> tuple[Array, Array]:
        """The first byte that each thread accesses of its surface, and how many bytes lie from it to the last one; 0 or
        less if the block is outside of the surface."""
        size = self.block.size // 8
        left, top = (np.maximum(value[n], 0).astype(np.int64) for n in ("x", "y"))
        right = np.minimum(value["x"] + np.int64(self.block.count * self.block.width), value["width"] // size)
        bottom = np.minimum(value["y"] + np.int64(self.block.height), value["height"])
        extent = (bottom - 1 - top) * value["pitch"] + (right - left) * size
        return top * value["pitch"] + left * size, np.where((right > left) & (bottom > top), extent, 0)

    def _out_of_bounds(self, batch: Batch, verb: str, y: int, x: int, rows: int, width: int, base: int) -> str:
        """Return the error for a block at row `y` and column `x` of a surface of `rows` rows and `width` bytes."""
        block, columns = self.block, width // (self.block.size // 8)
        ranges = []
        for dimension, at, size, count in (
            ("row", y, block.height, rows),
            ("column", x, block.count * block.width, columns),
        ):
            if at < 0 or at + size > count:
                ranges.append(f"{dimension}s {at} to {at + size - 1} of {count}")
        return (
            f"{verb} a block of {block.height} x {block.count * block.width} elements of {block.size} bits beyond its "
            f"surface, which begins at {batch.memory.byte_name(base)}: {' and '.join(ranges)}"
        )

    def note(self, batch: Batch, rows: Array, offsets: Array, inside: Array, values: Array | None = None) -> None:
        """Report accesses by threads `rows` to the race detector; `values` are what in-bounds stores write.

        Raises:
            RaceFault: if an access races with another.
        """
        if batch.races:
            acting_threads = np.broadcast_to(rows[:, None], offsets.shape)[inside]
            stored_bytes = None if values is None else values[:, None].view(np.uint8)
            size = self.block.size // 8
            batch.races.note(self.inst, acting_threads, offsets[inside], size, False, batch.memory.data, stored_bytes)

    def _read(self, batch: Batch, rows: Rows, thread: Array) -> dict[str, Array]:
        """The operands of threads in bytes, rows and elements, of which the width, height and pitch are sent less one.

        Raises:
            AccessFault: at the first thread whose message breaks the first rule that is broken.
        """
        operands = {}
        for name, read in self.reads.items():
            values = np.broadcast_to(read(batch, rows), (count_of(batch, rows), 1))[thread, 0]
            if name in ("x", "y"):
                values = values.view(np.int32)
            operands[name] = values if name == "base" else values.astype(np.int64) + (name not in ("x", "y"))
        size = self.block.size // 8
        for rule in self.rules:
            misfits = rule.broken(self.limits, **{n: operands.get(n, size) for n in rule.operands})
            if misfits.any():
                i = int(np.argmax(misfits))
                own = {n: int(v[i]) for n, v in operands.items()} | {"size": size}
                place = f", column {own['x']}" if "x" in rule.operands else ""
                raise AccessFault(
                    int(thread[i]),
                    f"accesses a surface whose {rule.at_fault(self.limits, size)}: base {own['base']:#x}, width "
                    f"{own['width']} bytes, height {own['height']} rows, pitch {own['pitch']} bytes{place}",
                    [verdict(r, self.target, own) for r in broken_rules(self.limits, own)],
                )
        if self.watches_columns and RULES["block2d-x-multiple"].broken(self.limits, x=operands["x"], size=size).any():
            batch.misplaced = batch.misplaced or self.inst
        return operands

    def check(self, batch: Batch, rows: Rows, active: Array | None) -> None:
        """Check the rules of a message that moves nothing here, such as a prefetch; see `_read`."""
        self._read(batch, rows, self.threads(batch, rows, active))


def _scalar(operand: Region | Immediate, layout: RegisterPositions) -> Read:
    """Reads one element as an unsigned number."""
    read = reader(operand, 1, layout)
    return lambda batch, rows: np.ascontiguousarray(read(batch, rows)).view(f"u{operand.format.bytes}")


def _block_order(block: BlockShape, grf_bytes: int) -> tuple[Array, int]:
    """Return, for each element of the message's registers, the index of its element in memory, or -1; and their size in
    bytes.

    Elements of memory are counted block by block, row by row.
    """
    rows, columns, pack = block.register_shape()
    elements_per_block = block.block_bytes(grf_bytes) // (block.size // 8)
    order = np.full((block.count, elements_per_block), -1)
    source = np.arange(block.height * block.width).reshape(block.height, block.width)
    if block.transpose:
        source = source.T
    padded = np.full((rows * pack, columns), -1)
    padded[: source.shape[0], : source.shape[1]] = source
    packed = padded.reshape(rows, pack, columns).transpose(0, 2, 1).ravel()
    for b in range(block.count):
        order[b, : len(packed)] = np.where(packed >= 0, packed + b * block.height * block.width, -1)
    return order.ravel(), order.size * block.size // 8


def _bytes_at(offsets: Array, size: int) -> Array:
    """Return the offsets of the bytes of elements, int64[..., size]."""
    return offsets[..., None] + np.arange(size)


@STEPS.of("lsc_load_block2d")
def lsc_load_block2d(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Load blocks of a surface. A prefetch may be of memory that is not allocated."""
    surfaces = _Surfaces(inst, layout, masker(inst, layout))
    if inst["dst"].var is None:
        return surfaces.check if layout.exact or layout.watches_columns else lambda batch, rows, active: None
    dtype = np.dtype(f"u{surfaces.block.size // 8}")
    order, size = _block_order(surfaces.block, layout.target.grf_bytes)
    write = raw_writer(inst["dst"], layout)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        thread = surfaces.threads(batch, rows, active)
        offsets, inside = surfaces.element_offsets(batch, rows, thread, "reads")
        surfaces.note(batch, np.arange(batch.threads)[rows][thread], offsets, inside)
        # The element after the last one is zero, and padding selects it.
        values = np.zeros((len(thread), offsets.shape[1] + 1), dtype)
        if batch.delayed:
            visible_bytes = batch.delayed.read(False, batch.memory.data, _bytes_at(offsets, dtype.itemsize))
            values[:, :-1] = visible_bytes.reshape(len(thread), -1).view(dtype)
        else:
            values[:, :-1] = batch.memory.data.view(dtype)[offsets >> (dtype.itemsize.bit_length() - 1)]
        if not inside.all():
            values[:, :-1][~inside] = 0
        thread_numbers = rows if len(thread) == count_of(batch, rows) else np.arange(batch.threads)[rows][thread]
        write(batch, thread_numbers, np.take(values, order, axis=1).view(np.uint8).reshape(len(thread), size))

    return step


@STEPS.of("lsc_store_block2d")
def lsc_store_block2d(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Store a block to a surface."""
    surfaces = _Surfaces(inst, layout, masker(inst, layout))
    dtype = np.dtype(f"u{surfaces.block.size // 8}")
    order, size = _block_order(surfaces.block, layout.target.grf_bytes)
    register_order = np.argsort(np.where(order < 0, len(order), order), kind="stable")[
        : surfaces.block.width * surfaces.block.height
    ]
    read = raw_reader(inst["src0"], size, layout)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        thread = surfaces.threads(batch, rows, active)
        offsets, inside = surfaces.element_offsets(batch, rows, thread, "writes")
        values = np.ascontiguousarray(read(batch, rows)[thread]).view(dtype)[:, register_order][inside]
        surfaces.note(batch, np.arange(batch.threads)[rows][thread], offsets, inside, values)
        if batch.delayed:
            byte_offsets = _bytes_at(offsets[inside], dtype.itemsize)
            batch.delayed.add(False, batch.memory.data, byte_offsets.ravel(), values.view(np.uint8))
        else:
            batch.memory.data.view(dtype)[offsets[inside] >> (dtype.itemsize.bit_length() - 1)] = values

    return step


def _of_floats(fmt: Format, function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda old, operand: canonical(function(old, operand), fmt)


def _exchange(memory_value: Array, expected: Array, new: Array) -> Array:
    """The new value if the old value is the expected one, otherwise the old value."""
    return np.where(memory_value == expected, new, memory_value)


def atomic_function(name: str, bits: int) -> tuple[np.dtype[Any], Callable[..., Array]]:
    """The type of an atomic operation, and the function of the old value and the operands."""
    unsigned, signed = np.dtype(f"u{bits // 8}"), np.dtype(f"i{bits // 8}")
    fmt = IEEE[bits]
    functions: dict[str, tuple[np.dtype[Any], Callable[..., Array]]] = {
        "iinc": (unsigned, lambda old: old + unsigned.type(1)),
        "idec": (unsigned, lambda old: old - unsigned.type(1)),
        "load": (unsigned, lambda old: old),
        "store": (unsigned, lambda old, a: a),
        "iadd": (unsigned, lambda old, a: old + a),
        "isub": (unsigned, lambda old, a: old - a),
        "smin": (signed, np.minimum),
        "smax": (signed, np.maximum),
        "umin": (unsigned, np.minimum),
        "umax": (unsigned, np.maximum),
        "and": (unsigned, np.bitwise_and),
        "or": (unsigned, np.bitwise_or),
        "xor": (unsigned, np.bitwise_xor),
        "icas": (unsigned, _exchange),
        "fadd": (fmt.dtype, _of_floats(fmt, np.add)),
        "fsub": (fmt.dtype, _of_floats(fmt, np.subtract)),
        "fmin": (fmt.dtype, _of_floats(fmt, numerics.minimum_number)),
        "fmax": (fmt.dtype, _of_floats(fmt, numerics.maximum_number)),
        "fcas": (fmt.dtype, _exchange),
    }
    return functions[name]


@STEPS.of(*(f"lsc_atomic_{name}" for name in ATOMICS))
def lsc_atomic(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Update each lane's location in the order of threads and lanes."""
    mask, read_addresses, data = masker(inst, layout), lane_addresses(inst, layout), _Data(inst, layout)
    shape, data_offsets = data.shape, data.element_offsets[:, 0]
    operation = INSTRUCTIONS[inst.name].atomic
    dtype, function = atomic_function(operation, shape.memory_bytes * 8)
    columns = data_offsets[:, None] + np.arange(shape.memory_bytes)
    operands = [raw_reader(inst[n], data.bytes, layout) for n in ("src0", "src1") if inst[n].var is not None]
    wants_old = inst["dst"].var is not None
    into = raw_reader(inst["dst"], data.bytes, layout) if wants_old else None
    write = raw_writer(inst["dst"], layout) if wants_old else None
    upper = data_offsets[:, None] + np.arange(shape.memory_bytes, shape.register_bytes)
    width = np.arange(shape.memory_bytes)
    swaps_words = operation == "icas" and shape.memory_bytes == 4

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        lanes = _lanes(batch, rows, mask(batch, rows, active), inst.exec_size)
        thread, lane = lanes
        values = [
            np.ascontiguousarray(r(batch, rows)[thread[:, None], columns[lane]]).view(dtype)[:, 0] for r in operands
        ]
        required_bytes = _changed_bytes(*values) if swaps_words else None
        addresses = read_addresses(batch, rows)
        memory, offsets = _locate(
            inst,
            layout,
            batch,
            rows,
            addresses,
            lanes,
            shape.memory_bytes,
            "atomically accesses",
            required_bytes=required_bytes,
        )
        if batch.delayed:
            batch.delayed.release(inst["sfid"] == "slm", (offsets[:, None] + width).ravel())
        old_values = np.zeros(len(offsets), dtype)
        for group in _distinct(offsets):
            byte_offsets = offsets[group][:, None] + width
            current = memory[byte_offsets].view(dtype)[:, 0]
            old_values[group] = current
            new_values = np.asarray(function(current, *(v[group] for v in values)), dtype)
            memory[byte_offsets] = np.ascontiguousarray(new_values)[:, None].view(np.uint8)
        if into and write:
            result = np.array(into(batch, rows))
            result[thread[:, None], columns[lane]] = old_values[:, None].view(np.uint8)
            result[thread[:, None], upper[lane]] = 0
            write(batch, rows, result)

    return step


def _changed_bytes(expected: Array, new: Array) -> Array:
    """The number of bytes, of the 4 that are compared and swapped, that must be in an allocation.

    The 4 bytes may extend beyond the end of the allocation if the bytes beyond do not change. Kernels update 8-bit
    elements with atomics on the 32 bits that contain them. Allocations begin at multiples of 4 bytes, and on hardware
    they consist of whole pages, so that these bytes exist.
    """
    difference = expected ^ new
    return 1 + sum((difference >> np.uint32(bits) != 0).astype(np.int64) for bits in (8, 16, 24))


def _distinct(offsets: Array) -> list[Array]:
    """Groups of indices: within a group all offsets differ, and equal offsets are in later groups, in order."""
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    begins_group = np.r_[True, ordered[1:] != ordered[:-1]] if len(offsets) else np.zeros(0, bool)
    group_start = np.maximum.accumulate(np.where(begins_group, np.arange(len(offsets)), 0))
    rank = np.arange(len(offsets)) - group_start
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.searchsorted(rank[by_rank], np.arange(int(rank.max(initial=-1)) + 2))
    return [order[by_rank[a:b]] for a, b in pairwise(bounds)]


@STEPS.of("lsc_fence")
def lsc_fence(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Report the fence to the race detector; other accesses than delayed stores are complete before."""
    slm, wide = inst["sfid"] == "slm", inst["scope"] not in ("group", "local")

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        if batch.races:
            batch.races.fence(np.arange(batch.threads)[rows], slm, wide)
        if batch.delayed:
            batch.delayed.release(slm)

    return step


@STEPS.of("fence_sw")
def fence_sw(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """No operation: instructions run in program order."""
    return lambda batch, rows, active: None
