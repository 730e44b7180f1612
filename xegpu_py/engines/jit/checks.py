"""Native checks: races, and reads of unwritten registers; and the log of messages."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from xegpu_py.deferred import deferred
from xegpu_py.engines.faults import GlobalMemory, RuntimeFault, aligned, granule_bytes
from xegpu_py.engines.jit.ir_text import PTR, FunctionBody, LLVMValue, vector
from xegpu_py.engines.jit.native_launch_struct import COPY_CALL, Context
from xegpu_py.engines.jit.operands import Emitter
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction, Program

if TYPE_CHECKING:
    from xegpu_py.engines import interpreter
else:
    interpreter = deferred("xegpu_py.engines.interpreter")

# Race detection in native code: the records of accesses, and the calls of `races.ll` at each of them, and of
# `race_clocks.ll` at fences and barriers.
#
# Global memory and the shared local memory of each workgroup have a shadow. Each granule
# (`engines.faults.granule_bytes`) has three entries of 8 bytes there: for its latest store, for loads since then, and
# for atomics since then. An entry has the thread and the clock with which later accesses are compared. Clocks are those
# of `engines.faults`. Loads by several threads share one entry, which names no thread. A later access must be ordered
# after everything that the workgroup did up to the last of these loads. The same holds for atomics, and for stores of
# one value.
#
# Loads of global memory need no record unless something changes what they load. So a launch begins without: it only
# notes which allocations were loaded from, and which were changed. If both is true of an allocation, the launch is
# repeated with records of its loads, and later launches of the kernel begin with them. Before an allocation is changed
# for the first time it is copied, for these repetitions.
#
# The result is only a suspicion, since these records are coarser than those of the interpreter, and threads run in
# another order. The interpreter then repeats the whole launch, and reports the race if there is one. Atomics do not
# order accesses here, so workgroups that pass data to each other by atomics are always suspected.

KINDS = {"load": 0, "store": 1, "atomic": 2}
"""Kinds of accesses, by categories of messages."""

_ENTRY = 8

_ENTRIES_READ_AHEAD = 7
"""Entries behind those of an access that native code reads too."""

_LOCKS = 4096

_LINE = 64

MAX_REUSED_BYTES = 1 << 28
"""The size in bytes of the largest shadow whose memory is kept for the next launch."""

_MOST_THREADS = 1 << 31

NULL = LLVMValue("null", PTR)
"""The values of an access that is no store."""


class RaceSuspected(Exception):
    """A suspected race of two accesses, which the interpreter decides."""


def emit_notes(
    code: FunctionBody,
    memory: str,
    category: str,
    lanes: tuple[LLVMValue, LLVMValue, LLVMValue],
    size: int,
    values: LLVMValue | None,
    first_host_address: LLVMValue | None = None,
) -> LLVMValue:
    """Record the accesses of a message's lanes. Returns an i1: whether nothing races with them.

    Args:
        memory: "ugm" or "slm".
        lanes: addresses and the host's addresses, i64 each, and the lanes that act as bits of an i32.
        size: bytes of each access.
        values: for a store, a pointer to the consecutive values of the lanes.
        first_host_address: a pointer to the first lane's place, if those of all lanes are known to lie side by side.
    """
    addresses, hosts, bits = lanes
    context, access_bytes = code.arguments[0], code.const(size, "i64")
    memory_and_kind = [code.const(number, "i32") for number in (int(memory == "slm"), KINDS[category])]
    if first_host_address:
        start = code.extract(addresses, 0)
        return code.call(
            "race_note_beside",
            context,
            start,
            first_host_address,
            bits,
            access_bytes,
            values or NULL,
            *memory_and_kind,
            result="i1",
        )
    lane_arrays = [code.alloca(8 * addresses.lanes, 64) for _ in range(2)]
    for lane_array, lane_addresses in zip(lane_arrays, (addresses, hosts)):
        code.store(lane_addresses, lane_array, 8)
    count = code.const(addresses.lanes, "i64")
    return code.call(
        "race_note_lanes",
        context,
        *lane_arrays,
        count,
        bits,
        access_bytes,
        values or NULL,
        *memory_and_kind,
        result="i1",
    )


def emit_values(code: FunctionBody, source: LLVMValue, element_offsets: list[list[int]], size: int) -> LLVMValue:
    """A pointer to the values of a store's lanes, one behind the other.

    Args:
        source: a pointer to the operand.
        element_offsets: the offsets of each lane's elements in the operand; see `data_offsets`.
        size: bytes of an element in memory.
    """
    lanes, elements, first_offset = len(element_offsets), len(element_offsets[0]), element_offsets[0][0]
    lane_step = element_offsets[1][0] - first_offset if lanes > 1 else elements * size
    step = element_offsets[0][1] - first_offset if elements > 1 else size
    if (lane_step, step) == (elements * size, size):
        return code.at(source, first_offset)
    packed_values = code.alloca(lanes * elements * size, 64)
    numbers = [code.const(n, "i64") for n in (lanes, lane_step, elements, step, size)]
    code.call("race_gather", packed_values, code.at(source, first_offset), *numbers)
    return packed_values


def clock_bytes(threads: int, barriers: int) -> tuple[int, int]:
    """Bytes of a workgroup's clocks that are zero when it begins, and of all of them; see `race_clocks.ll`."""
    zeroed_bytes = 16 + 4 * threads + 12 * threads * (threads + barriers)
    return zeroed_bytes, zeroed_bytes + 48 * barriers * threads


class LocalShadow:
    """The clocks of a workgroup in flight, and the shadow of its shared local memory."""

    def __init__(self, program: Program, threads: int, barriers: int) -> None:
        """Create the clocks and the shadow."""
        self._cleared, size = clock_bytes(threads, barriers)
        self.clocks = aligned(size)
        self.entries = -(-max(program.slm_bytes, 1) // granule_bytes(program, True))
        self.shadow = np.zeros(3 * self.entries + _ENTRIES_READ_AHEAD, np.int64)

    def use(self, context: Context) -> None:
        """Select it for native code."""
        context.clocks, context.clock_bytes = self.clocks.ctypes.data, self._cleared
        context.local_shadow, context.local_stride = self.shadow.ctypes.data, _ENTRY * self.entries


class Shadow:
    """The shadow of global memory in a launch, which all workers share.

    Attributes:
        seen: uint8[allocations, 4]: whether an allocation was loaded from, whether it was changed, and whether its
            loads are recorded.
        bytes: size of the shadow.
    """

    def __init__(
        self,
        program: Program,
        memory: GlobalMemory,
        threads: int,
        workers: int,
        recorded: Collection[int] = (),
        earlier_shadow: Shadow | None = None,
    ) -> None:
        """Create the shadow; the operating system provides only the memory that is used.

        Args:
            memory: global memory.
            threads: hardware threads of the launch.
            workers: threads of the operating system.
            recorded: the numbers of the allocations whose loads are recorded.
            earlier_shadow: the shadow of an earlier launch, whose memory is used again.

        Raises:
            RuntimeFault: if the machine has less memory, or there are too many threads.
        """
        ranges = memory.ranges()
        self._base = min((address for address, _, _ in ranges), default=0)
        memory_bytes = max((address + size for address, size, _ in ranges), default=0) - self._base
        atomics = {i["sfid"] for i in program.instructions if INSTRUCTIONS[i.name].category == "atomic"}
        self.seen = np.zeros((max(len(ranges), 1), 4), np.uint8)
        self.seen[[number for number in recorded if number < len(ranges)], 2] = 1
        self.records_loads = bool(self.seen[:, 2].any())
        self._granules = granule_bytes(program, False, self.records_loads), granule_bytes(program, True)
        self._ranges, self._lock = ranges, Lock()
        self._copy_call = COPY_CALL(self._copy)
        self._atomics = 2 * ("ugm" in atomics) | 4 * ("slm" in atomics)
        self._plain = all(INSTRUCTIONS[i.name].barrier in ("", "both") for i in program.instructions)
        self._entries = -(-memory_bytes // self._granules[0])
        self._tables = 3 if "ugm" in atomics else 2
        size = _ENTRY * self._entries * self._tables
        machine_bytes = physical_memory()
        if size + memory_bytes > machine_bytes:
            raise RuntimeFault(
                f"the check 'races' of kernel '{program.name}' needs {size} bytes of shadow memory",
                [
                    f"that is {size // max(self._entries, 1)} bytes for each {self._granules[0]} of the {memory_bytes} "
                    f"bytes of its arrays; the machine has {machine_bytes} bytes"
                ],
                program.where,
            )
        if threads + 1 >= _MOST_THREADS:
            raise RuntimeFault(
                f"the check 'races' of kernel '{program.name}' is for fewer than 2^31 threads, not {threads}",
                [],
                program.where,
            )
        self.bytes = size
        reused_shadow = earlier_shadow._zeroed() if earlier_shadow and earlier_shadow.bytes >= size else None
        self._shadow = (
            np.zeros(size // _ENTRY + _ENTRIES_READ_AHEAD, np.int64) if reused_shadow is None else reused_shadow
        )
        self._copies: dict[int, Array] = earlier_shadow._copies if earlier_shadow else {}
        self._locks = np.zeros(_LOCKS * _LINE, np.uint8) if workers > 1 else None

    def use(self, context: Context) -> None:
        """Select it for native code."""
        context.shadow, context.shadow_stride = self._shadow.ctypes.data, _ENTRY * self._entries
        context.shadow_base = self._base
        context.granule, context.local_granule = (size.bit_length() - 1 for size in self._granules)
        context.atomics, context.plain = self._atomics, self._plain
        context.locks = None if self._locks is None else self._locks.ctypes.data
        context.yield_ = _yield()
        context.seen, context.accessed = self.seen.ctypes.data, 0
        context.copy_ = ctypes.cast(self._copy_call, ctypes.c_void_p).value
        context.race = 0

    def _copy(self, number: int) -> int:
        """Copy an allocation, unless another worker has."""
        with self._lock:
            if not self.seen[number, 1]:
                allocation_bytes, copy = self._bytes(number), self._copies.get(number)
                if copy is None or copy.size != allocation_bytes.size:
                    copy = self._copies[number] = np.empty_like(allocation_bytes)
                copy[:] = allocation_bytes
                self.seen[number, 1] = 1
        return 1

    def _zeroed(self) -> Array:
        """The memory of the shadow. It is zero again where the launch has written it: clearing it takes less time than
        new memory, which the operating system clears.
        """
        tables = self._shadow[: self._tables * self._entries].reshape(self._tables, self._entries)
        for number, (address, size, _) in enumerate(self._ranges):
            start, end = address - self._base, address - self._base + size
            shadow_rows = tables[:, start // self._granules[0] : -(-end // self._granules[0])]
            _, is_changed, is_recorded, _ = self.seen[number]
            if is_changed:
                shadow_rows[::2] = 0
            if is_recorded:
                shadow_rows[1] = 0
        return self._shadow

    def _bytes(self, number: int) -> Array:
        address, size, distance = self._ranges[number]
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address + distance))

    def restore(self) -> None:
        """Give all allocations the contents that they had before the launch."""
        for number in np.flatnonzero(self.seen[:, 1]).tolist():
            self._bytes(number)[:] = self._copies[number]

    def unrecorded(self) -> set[int]:
        """The allocations that were changed, and whose loads should have been recorded."""
        loaded_allocations, changed_allocations, recorded, _ = self.seen.T
        return {int(number) for number in np.flatnonzero(loaded_allocations & changed_allocations & (recorded ^ 1))}


def physical_memory() -> int:
    """The size of the machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@lru_cache
def _yield() -> int:
    return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0


# Checks for reads of registers that were never written, in native code.
#
# Each byte of a thread's registers has a shadow byte, which is nonzero once the register byte is written. An
# instruction that reads an unwritten byte stops the thread. Its semantic function then reports the error.

_CHECKED_BYTES = 64
"""The maximum number of bytes that are checked together."""

_CHECKED_EXTENT = 256
"""The maximum extent of these bytes in the register file, in bytes."""


def emit_checks(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Emit, before an instruction, checks of the bytes that it reads, and code that marks the bytes that it writes."""
    code = emitter.code
    reads, writes = (
        interpreter.watched_reads(inst, emitter.layout),
        interpreter.operand_bytes(inst, "write", emitter.layout),
    )
    if not reads and not writes and not inst.indirect:
        return
    bits = emitter.acting(inst)
    unwritten_bytes: list[LLVMValue] = []
    for operand in reads:
        for byte_offsets, lanes in _byte_batches(operand):
            is_unwritten = code.icmp("eq", _fetched(emitter, byte_offsets), 0)
            if bits is not None:
                is_unwritten = code.and_(is_unwritten, _mask(code, bits, inst, lanes, len(operand.byte_offsets)))
            unwritten_bytes.append(code.any(is_unwritten))
    for indirect in inst.indirect:
        mask = None if bits is None else code.bits_to_mask(bits, inst.exec_size)
        all_written = code.const(-1, vector(inst.exec_size, f"i{indirect.format.bits}"))
        if indirect is inst["dst"]:
            emitter.write_indirect(indirect, all_written, mask, emitter.frame.written)
            continue
        if emitter.layout.watch_products:
            continue
        is_unwritten = code.icmp(
            "ne", emitter.read_indirect(indirect, inst.exec_size, emitter.frame.written), all_written
        )
        unwritten_bytes.append(code.any(is_unwritten if mask is None else code.and_(is_unwritten, mask)))
    if unwritten_bytes:
        any_unwritten = unwritten_bytes[0]
        for further in unwritten_bytes[1:]:
            any_unwritten = code.or_(any_unwritten, further)
        emitter.require(code.not_(any_unwritten), at)
    for operand in writes:
        for byte_offsets, lanes in _byte_batches(operand):
            mask = None if bits is None else _mask(code, bits, inst, lanes, len(operand.byte_offsets))
            _note(emitter, byte_offsets, mask)


def _byte_batches(operand: interpreter.OperandBytes) -> Iterator[tuple[list[int], list[int]]]:
    """The bytes of an operand in parts that are checked together: places in the registers, and the lane of each."""
    byte_lanes = sorted(
        {(int(byte_offset), lane) for lane, row in enumerate(operand.byte_offsets) for byte_offset in row}
    )
    batch_of_bytes: list[tuple[int, int]] = []
    for byte_offset, lane in byte_lanes:
        if batch_of_bytes and (
            len(batch_of_bytes) == _CHECKED_BYTES or byte_offset - batch_of_bytes[0][0] >= _CHECKED_EXTENT
        ):
            yield [p for p, _ in batch_of_bytes], [n for _, n in batch_of_bytes]
            batch_of_bytes = []
        batch_of_bytes.append((byte_offset, lane))
    if batch_of_bytes:
        yield [p for p, _ in batch_of_bytes], [n for _, n in batch_of_bytes]


def _mask(code: FunctionBody, bits: LLVMValue, inst: Instruction, lanes: Sequence[int], count: int) -> LLVMValue:
    """Whether the lane of each byte acts, i1 each. An operand without lanes is accessed if any lane acts."""
    if count == 1:
        return code.splat(code.icmp("ne", bits, 0), len(lanes))
    lane_mask = code.bits_to_mask(bits, inst.exec_size)
    return code.shuffle(lane_mask, lane_mask, list(lanes))


def _span(byte_offsets: Sequence[int]) -> tuple[int, str]:
    """The first place, and the type of a vector of all bytes from there to the last place."""
    return byte_offsets[0], vector(byte_offsets[-1] - byte_offsets[0] + 1, "i8")


def _fetched(emitter: Emitter, byte_offsets: Sequence[int]) -> LLVMValue:
    """The shadow bytes of registers, whose places are in increasing order."""
    code, (first_offset, bytes_type) = emitter.code, _span(byte_offsets)
    shadow_bytes = code.fetch(emitter.thread, emitter.frame.written + first_offset, bytes_type)
    if shadow_bytes.lanes == len(byte_offsets):
        return shadow_bytes
    return code.shuffle(shadow_bytes, shadow_bytes, [byte_offset - first_offset for byte_offset in byte_offsets])


def _note(emitter: Emitter, byte_offsets: Sequence[int], mask: LLVMValue | None) -> None:
    """Record that bytes of registers are written: those that a mask selects, or all."""
    code, (first_offset, bytes_type) = emitter.code, _span(byte_offsets)
    at, where = emitter.frame.written + first_offset, [-1] * (byte_offsets[-1] - first_offset + 1)
    for index, byte_offset in enumerate(byte_offsets):
        where[byte_offset - first_offset] = index
    if mask is None and -1 not in where:
        code.put(code.const(0xFF, bytes_type), emitter.thread, at)
        return
    shadow_bytes = code.fetch(emitter.thread, at, bytes_type)
    # Select the bytes that are written and that the mask selects.
    lane_selects = code.const(1, vector(len(byte_offsets), "i1")) if mask is None else mask
    picks = [index if index >= 0 else len(byte_offsets) for index in where]
    is_marked = code.shuffle(lane_selects, code.const(0, lane_selects.type), picks)
    code.put(code.select(is_marked, code.const(0xFF, bytes_type), shadow_bytes), emitter.thread, at)


# The log of messages: what native code records of each, from which it is counted what a kernel does.

_HEAD = 4
"""The words of a record that say which thread made it, and when."""

_RECORDED_LANES = 1 << 20
"""The number of lanes, and of rows of blocks, that are recorded before the records are taken."""


class Records(Struct):
    """Executions of a message, of a barrier or of blocks.

    Attributes:
        values: int64[records], the lanes that acted, as bits; of a barrier its number, of a block where it begins.
        clocks: int64[records], how many instructions the thread had executed at the end of the instruction's block.
        workgroups: int64[records, 3], the position of the workgroup in x, y and z.
        threads: int64[records], the number of the thread in the workgroup.
        operands: int64[records, n], the addresses of lanes, or base, width, height, pitch, x and y of a block, the
            extents from one on.
    """

    values: Array
    clocks: Array
    workgroups: Array
    threads: Array
    operands: Array


class Log:
    """The records of a launch on one worker; each instruction has memory of its own.

    Attributes:
        lanes: int64[instructions], the lanes in which an instruction acted that is guarded, or in a program that
            diverges.
        path: how many of the blocks that threads enter are recorded, as those of an instruction behind the last one.
    """

    def __init__(self, program: Program, receive: Callable[[Mapping[int, Records]], None], path: int = 0) -> None:
        """Create the log.

        Args:
            receive: takes records, by the index of their instruction.
        """
        count = len(program.instructions)
        self.lanes, self.path, self._receive = np.zeros(count, np.int64), path, receive
        record_shapes: dict[int, tuple[int, int]] = {}
        for at, inst in enumerate(program.instructions):
            spec = INSTRUCTIONS[inst.name]
            if spec.is_message:
                block = inst.values.get("block")
                record_shapes[at] = (6, block.height) if block else (inst.exec_size, inst.exec_size)
            elif spec.barrier in ("wait", "both"):
                record_shapes[at] = (0, 1)
        record_limit = max(_RECORDED_LANES // max(sum(size for _, size in record_shapes.values()), 1), 16)
        self._records = {
            at: np.empty((record_limit, _HEAD + operand_words), np.int64)
            for at, (operand_words, _) in record_shapes.items()
        }
        self._records[count] = np.empty((path, _HEAD), np.int64)
        self._entries = np.zeros((count + 1, 2), np.int64)
        self._empty()

    def _empty(self) -> None:
        for at, records in self._records.items():
            self._entries[at] = records.ctypes.data, len(records)

    def use(self, context: Context, full: int) -> None:
        """Select it for native code, which calls a function when a memory is full."""
        context.log, context.full = self._entries.ctypes.data, full
        context.lanes, context.path = self.lanes.ctypes.data, self.path

    def take(self) -> None:
        """Take all records."""
        records_by_instruction = {}
        for at, records in self._records.items():
            used_records = records[: len(records) - int(self._entries[at, 1])]
            if len(used_records):
                thread_ids = np.ascontiguousarray(used_records[:, 2:_HEAD]).view(np.int32).astype(np.int64)
                records_by_instruction[at] = Records(
                    used_records[:, 0], used_records[:, 1], thread_ids[:, :3], thread_ids[:, 3], used_records[:, _HEAD:]
                )
        self._empty()
        self._receive(records_by_instruction)


def emit_record(code: FunctionBody, number: int, operand_words: int, value: LLVMValue) -> LLVMValue:
    """Begin a record of an instruction, and give a pointer to the words that come behind its head."""
    numbers = code.const(number, "i64"), code.const(8 * (_HEAD + operand_words), "i64")
    return code.call("log_record", *code.arguments[:2], *numbers, value, result=PTR)
