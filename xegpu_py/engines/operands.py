"""The state of a batch of threads, and how operands are read and written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from xegpu_py.engines.faults import GlobalMemory, LocalMemory
from xegpu_py.numerics.formats import IEEE, TYPES, Array
from xegpu_py.target import Target
from xegpu_py.visa.allocate import Allocation
from xegpu_py.visa.instructions import FIELDS, INSTRUCTIONS
from xegpu_py.visa.operands import (
    HEADER,
    Address,
    AddressOf,
    Destination,
    Flag,
    Immediate,
    Indirect,
    Predicate,
    Raw,
    Region,
    Variable,
    Vector,
    first_byte,
)
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import LANES, DataShape, Span

if TYPE_CHECKING:
    from typing_extensions import Self

    from xegpu_py.engines.races import Races


# Operands as functions: each operand is decoded once into a function that reads or writes it for many threads.

Read = Callable[["Batch", "Rows"], Array]
"""Returns an operand's elements, [threads, lanes], or [threads, 1] if all lanes share one."""

Write = Callable[["Batch", "Rows", Array, "Array | None"], None]
"""Takes values of the operand's type, and the lanes to write; None for all."""

Mask = Callable[["Batch", "Rows", "Array | None"], "Array | None"]
"""Maps the enabled lanes [threads, 32] to those in which an instruction acts, [threads, lanes]; None for all."""

BUILTIN_OFFSETS = {"%r0": 0, "%group_id_x": 4, "%group_id_y": 24, "%group_id_z": 28}
"""The positions of builtin variables in the header, as Intel's finalizer places them."""


class RegisterPositions(Struct, frozen=True):
    """Positions in registers of the operands of instructions.

    Attributes:
        target: the GPU.
        allocation: places of variables.
        predicates: index of each predicate in a batch's flags.
        watch: whether reads of unwritten registers are looked for.
        watch_products: whether of these only reads of factors of dpas count.
        races: whether races are looked for.
        bounds: whether 2D blocks that are not within their surface are errors; see `is_strict`.
        exact: whether messages are as the program's author wrote them, and so must keep all rules of the target: also
            those about the columns of 2D blocks, prefetches, and addresses of vectors. The lowering of this project
            assumes of unknown columns and addresses that they are aligned.
        watches_columns: whether 2D blocks whose column breaks a rule are noted; see `Statistics.misplaced`.
        exact_addresses: whether addresses of vectors and of consecutive elements must keep the rules, too.
        lenient: whether messages that break a rule run nevertheless.
        local_bits: the bits of addresses of shared local memory that count; see `Program.local_bits`.
        logs: whether native code records its messages; see `engines.jit.checks.Log`.
    """

    target: Target
    allocation: Allocation
    predicates: Mapping[Predicate, int]
    watch: bool = False
    races: bool = False
    bounds: bool = False
    exact: bool = False
    local_bits: int = (1 << 32) - 1
    logs: bool = False
    watch_products: bool = False
    exact_addresses: bool = False
    watches_columns: bool = False
    lenient: bool = False

    def is_strict(self, inst: Instruction) -> bool:
        """Whether it is an error if the 2D block of a message is not within its surface."""
        return self.bounds and not inst.clipped

    def offset(self, var: Variable) -> int:
        """Byte offset of a variable in the register file."""
        root, alias_offset = var.root
        if root.name in HEADER:
            return BUILTIN_OFFSETS[root.name] + alias_offset
        return self.allocation.offset(var)


def _columns(elements: list[int], base: int) -> slice | Array:
    """Columns as a slice if they are equidistant."""
    if len(elements) == 1:
        return slice(base + elements[0], base + elements[0] + 1)
    step = elements[1] - elements[0]
    if step > 0 and all(b - a == step for a, b in pairwise(elements)):
        return slice(base + elements[0], base + elements[-1] + 1, step)
    return np.array(elements) + base


def _take(view: Array, rows: Rows, columns: slice | Array) -> Array:
    are_slices = isinstance(columns, slice) or isinstance(rows, slice)
    return view[rows, columns] if are_slices else view[rows[:, None], columns]


def reader(operand: Region | Immediate | Indirect | AddressOf, exec_size: int, layout: RegisterPositions) -> Read:
    """Reads a source's elements in the source's type; its modifier is not applied."""
    if isinstance(operand, AddressOf):
        operand = Immediate(layout.offset(operand.var) + operand.offset, operand.format.name)
    if isinstance(operand, Immediate):
        fmt, bits = operand.format, operand.elements(exec_size if operand.is_packed else 1)
        value = np.array(bits, f"u{fmt.bytes}").view(fmt.dtype).reshape(1, -1)
        return lambda batch, rows: value
    if isinstance(operand, Indirect):
        return _indirect_reader(operand, exec_size, layout)
    var = operand.var
    size = var.format.bytes
    base = (layout.offset(var) + first_byte(operand, layout.target.grf_bytes)) // size
    columns = _columns([0] if operand.is_scalar else operand.elements(exec_size), base)
    name = var.type
    return lambda batch, rows: _take(batch.views[name], rows, columns)


def indirect_offsets(operand: Indirect, exec_size: int, layout: RegisterPositions) -> Read:
    """The places in the register file of an indirect operand's elements, int64[threads, lanes]."""
    size = TYPES["ud"].bytes
    first_address, address_count = layout.offset(operand.var) // size + operand.col, operand.addresses(exec_size)
    address_index, displacements = (np.array(n) for n in zip(*operand.elements(exec_size)))
    offsets = displacements + operand.plus

    return lambda batch, rows: (
        batch.views["ud"][rows, first_address : first_address + address_count].astype(np.int64)[:, address_index]
        + offsets
    )


def _indirect_reader(operand: Indirect, exec_size: int, layout: RegisterPositions) -> Read:
    element_offsets, fmt = indirect_offsets(operand, exec_size, layout), operand.format
    columns = np.arange(fmt.bytes)

    def read(batch: Batch, rows: Rows) -> Array:
        # Disabled lanes may have any address.
        at = np.clip(element_offsets(batch, rows), 0, batch.regs.shape[1] - fmt.bytes)
        threads = np.arange(batch.threads)[rows][:, None, None]
        return batch.regs[threads, at[:, :, None] + columns].view(fmt.dtype)[:, :, 0]

    return read


def raw_reader(operand: Raw | Vector | Address, size: int, layout: RegisterPositions) -> Read:
    """Reads the bytes of an operand, uint8[threads, size]."""
    start = layout.offset(operand.var) + first_byte(operand, layout.target.grf_bytes)
    return lambda batch, rows: batch.regs[rows, start : start + size]


def writer(operand: Destination | Indirect, exec_size: int, layout: RegisterPositions) -> Write:
    """Writes a destination's elements."""
    if isinstance(operand, Indirect):
        return _indirect_writer(operand, exec_size, layout)
    var = operand.var
    size = var.format.bytes
    base = (layout.offset(var) + first_byte(operand, layout.target.grf_bytes)) // size
    columns = _columns(operand.elements(exec_size), base)
    name = var.type
    return lambda batch, rows, values, mask: _put(batch.views[name], rows, columns, values, mask)


def _indirect_writer(operand: Indirect, exec_size: int, layout: RegisterPositions) -> Write:
    element_offsets, columns = indirect_offsets(operand, exec_size, layout), np.arange(operand.format.bytes)

    def write(batch: Batch, rows: Rows, values: Array, mask: Array | None) -> None:
        at, threads = element_offsets(batch, rows), np.arange(batch.threads)[rows]
        acting = np.ones(at.shape, bool) if mask is None else np.broadcast_to(mask, at.shape)
        data = np.ascontiguousarray(np.broadcast_to(values, at.shape)).view(np.uint8).reshape(*at.shape, -1)
        # The last lane wins if several write one element.
        for lane in range(exec_size):
            acting_threads = acting[:, lane]
            batch.regs[threads[acting_threads][:, None], at[acting_threads, lane][:, None] + columns] = data[
                acting_threads, lane
            ]

    return write


def _put(view: Array, rows: Rows, columns: slice | Array, values: Array, mask: Array | None) -> None:
    if mask is None:
        if isinstance(columns, slice) or isinstance(rows, slice):
            view[rows, columns] = values
        else:
            view[rows[:, None], columns] = values
        return
    if isinstance(rows, slice) and isinstance(columns, slice):
        np.copyto(view[rows, columns], values, where=mask)
        return
    current = _take(view, rows, columns).copy()
    np.copyto(current, values, where=mask)
    _put(view, rows, columns, current, None)


def raw_writer(operand: Raw, layout: RegisterPositions) -> Callable[..., None]:
    """Writes bytes uint8[threads, size] to an operand; with a mask bool[threads, size] only the selected bytes."""
    start = layout.offset(operand.var) + operand.offset

    def write(batch: Batch, rows: Rows, values: Array, mask: Array | None = None) -> None:
        byte_range = slice(start, start + values.shape[1])
        batch.regs[rows, byte_range] = values if mask is None else np.where(mask, values, batch.regs[rows, byte_range])

    return write


def data_offsets(shape: DataShape, lanes: int, grf_bytes: int) -> Array:
    """The byte offsets of each lane's elements in a message's data operand, [lanes, elements].

    The first elements of all lanes come first, then the second elements, and so on; each group begins at a register. In
    transposed messages the elements of one lane are adjacent.
    """
    size = shape.register_bytes
    if shape.transpose:
        return np.arange(shape.vector)[None, :] * size
    return np.arange(lanes)[:, None] * size + np.arange(shape.vector)[None, :] * shape.row_bytes(lanes, grf_bytes)


def masker(inst: Instruction, layout: RegisterPositions) -> Mask:
    """The lanes in which an instruction acts: those that its predicate sets and, without NoMask, that are enabled."""
    first_lane, lane_count, spec = inst.first_lane, inst.exec_size, INSTRUCTIONS[inst.name]
    read_predicate = flag_reader(inst, layout) if inst.guard and not spec.selects else None
    no_mask = inst.no_mask or not spec.exec_sizes

    def mask(batch: Batch, rows: Rows, active: Array | None) -> Array | None:
        enabled = None if no_mask or active is None else active[:, first_lane : first_lane + lane_count]
        if read_predicate is None:
            return enabled
        bits = read_predicate(batch, rows)
        return bits if enabled is None else bits & enabled

    return mask


def flag_reader(inst: Instruction, layout: RegisterPositions) -> Read:
    """Reads the guard's bits, bool[threads, lanes]. Inversion comes after `any` and `all`."""
    guard = inst.guard
    assert guard
    index = layout.predicates[guard.var]
    first_lane, lane_count, size = inst.first_lane, inst.exec_size, guard.var.count
    uniform = INSTRUCTIONS[inst.name].goes_together(inst)

    def read(batch: Batch, rows: Rows) -> Array:
        if guard.control:
            bits = batch.flags[rows, index, :size]
            any_or_all = (np.any if guard.control == "any" else np.all)(bits, axis=1)
            lane_bits = np.repeat(any_or_all[:, None], lane_count, axis=1)
        elif uniform:
            lane_bits = batch.flags[rows, index, :1]
        else:
            lane_bits = batch.flags[rows, index, first_lane : first_lane + lane_count]
        return ~lane_bits if guard.inverted else lane_bits

    return read


# The state of hardware threads that run together.

Rows = Any
"""The threads of a batch: a slice for all, or an array of their indices."""

ENDED = 1 << 30
"""The program counter of a lane that has ended."""

MAX_CALLS = 256
"""The most calls of functions in each other."""

RETURNED = ("%retval", "%sp", "%fp", "%cr0")
"""The parts of its state that a function gives its caller."""


def count_of(batch: Batch, rows: Rows) -> int:
    """The number of threads that `rows` selects."""
    return batch.threads if isinstance(rows, slice) else len(rows)


class Barriers(Struct):
    """The barriers of workgroups: number 0 is that of the whole workgroup, followed by the named barriers.

    A signal counts towards the barrier's current phase. A phase is complete when all have signalled, and each thread
    can then pass one wait.

    Attributes:
        arrived: int64[workgroups, barriers], signals towards the current phase.
        phases: int64[workgroups, barriers], phases that are complete.
        passed: int64[threads, barriers], phases that each thread has waited for.
    """

    arrived: Array
    phases: Array
    passed: Array

    def signal(self, groups: Array, barrier: Array, expected: Array) -> bool:
        """Count one signal of each thread, in the workgroups `groups`; return whether a phase became complete."""
        complete = False
        np.add.at(self.arrived, (groups, barrier), 1)
        for group, number, signal_count in {(int(g), int(b), int(e)) for g, b, e in zip(groups, barrier, expected)}:
            while signal_count and self.arrived[group, number] >= signal_count:
                self.arrived[group, number] -= signal_count
                self.phases[group, number] += 1
                complete = True
        return complete

    def ready(self, rows: Array, groups: Array, barrier: Array) -> Array:
        """The threads whose waits are satisfied; their phases are advanced."""
        satisfied = np.asarray(self.phases[groups, barrier] > self.passed[rows, barrier])
        self.passed[rows[satisfied], barrier[satisfied]] += 1
        return satisfied


class DelayedStores(Struct):
    """Stores that other threads do not see yet, while threads run one at a time.

    A thread sees its own stores at once. They become visible to others at its next fence of their memory, or, where an
    atomic of its own changes the same bytes, with that; the rest at the end.

    Attributes:
        thread: the thread that runs.
        pending: for each thread its stores in order: whether they are to shared local memory, that memory, the places
            of bytes in it, and these bytes.
    """

    thread: int = 0
    pending: dict[int, list[tuple[bool, Array, Array, Array]]] = field(default_factory=dict)

    def add(self, slm: bool, memory: Array, byte_offsets: Array, values: Array) -> None:
        """Delay a store of the running thread: bytes uint8[n] at places int64[n] of a memory."""
        self.pending.setdefault(self.thread, []).append((slm, memory, byte_offsets, values))

    def read(self, slm: bool, memory: Array, byte_offsets: Array) -> Array:
        """The bytes at places of a memory that the running thread sees, uint8 of the places' shape."""
        older_stores = []
        for _, _, store_offsets, values in (e for e in self.pending.get(self.thread, ()) if e[0] == slm):
            older_stores.append((store_offsets, memory[store_offsets]))
            memory[store_offsets] = values
        visible_bytes: Array = memory[byte_offsets]
        for store_offsets, values in reversed(older_stores):
            memory[store_offsets] = values
        return visible_bytes

    def release(self, slm: bool, byte_offsets: Array | None = None) -> None:
        """Make the running thread's stores to a memory visible: all of them, or those to some places."""
        pending_stores = []
        for own_slm, memory, store_offsets, values in self.pending.pop(self.thread, []):
            is_released = (
                np.full(len(store_offsets), own_slm == slm)
                if byte_offsets is None or own_slm != slm
                else np.isin(store_offsets, byte_offsets)
            )
            memory[store_offsets[is_released]] = values[is_released]
            if not is_released.all():
                pending_stores.append((own_slm, memory, store_offsets[~is_released], values[~is_released]))
        if pending_stores:
            self.pending[self.thread] = pending_stores

    def end(self) -> None:
        """Make all stores visible."""
        for stores in self.pending.values():
            for _, memory, byte_offsets, values in stores:
                memory[byte_offsets] = values
        self.pending.clear()


class Batch(Struct):
    """Hardware threads that run together, of whole workgroups.

    Attributes:
        regs: uint8[threads, bytes], the register files.
        flags: bool[threads, predicates, 32].
        groups: int64[threads], index of each thread's workgroup within the batch.
        numbers: int64[threads], each thread's number within its workgroup.
        group_size: threads of a workgroup.
        memory: global memory.
        slm: shared local memory of the batch's workgroups.
        barriers: their barriers.
        pc: int64[threads], index of each thread's next instruction.
        lane_pc: int64[threads, 32], the same for each lane if lanes can diverge; otherwise None.
        waiting: bool[threads], whether each thread waits at a barrier.
        signalled: bool[threads], whether each thread has signalled the barrier at which it is.
        stack: int64[threads, MAX_CALLS, 32], where each lane continues after each of its calls; None without calls.
        frames: for each thread the registers and predicates of the callers of its functions.
        written: bool[threads, bytes], the bytes of registers that have been written; None if this is not recorded.
        races: the race detector; None if races are not looked for.
        delayed: stores that are delayed; None if each store is visible at once.
        traffic: bytes that messages moved, by memory ("ugm", "slm") and category ("load", "store", "atomic").
        misplaced: the first message of a 2D block at a column that breaks a rule, if such are noted.
    """

    regs: Array
    flags: Array
    groups: Array
    numbers: Array
    group_size: int
    memory: GlobalMemory
    slm: LocalMemory
    barriers: Barriers
    pc: Array
    lane_pc: Array | None
    waiting: Array
    signalled: Array
    stack: Array | None = None
    frames: list[list[tuple[Array, Array]]] = field(default_factory=list)
    written: Array | None = None
    races: Races | None = None
    delayed: DelayedStores | None = None
    traffic: Counter[tuple[str, str]] = field(default_factory=Counter)
    misplaced: Instruction | None = None
    views: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.views = {name: self.regs.view(fmt.dtype) for name, fmt in TYPES.items()}

    @property
    def threads(self) -> int:
        """Number of threads."""
        return len(self.regs)


def new_batch(
    workgroups: int,
    group_size: int,
    register_bytes: int,
    predicates: int,
    named_barriers: int,
    slm_bytes: int,
    memory: GlobalMemory,
    *,
    divergent: bool,
    watch: bool,
    calls: bool = False,
) -> Batch:
    """The state of workgroups before their first instruction; registers are zero.

    Args:
        register_bytes: bytes of a register file, a multiple of 8.
        divergent: whether the program has a `goto`.
        watch: whether reads of unwritten registers are looked for.
        calls: whether the program calls functions.
    """
    threads = workgroups * group_size
    barriers = 1 + named_barriers
    return Batch(
        regs=np.zeros((threads, register_bytes), np.uint8),
        flags=np.zeros((threads, max(predicates, 1), LANES), bool),
        groups=np.repeat(np.arange(workgroups), group_size),
        numbers=np.tile(np.arange(group_size), workgroups),
        group_size=group_size,
        memory=memory,
        slm=LocalMemory(np.zeros(workgroups * slm_bytes, np.uint8), slm_bytes),
        barriers=Barriers(
            np.zeros((workgroups, barriers), np.int64),
            np.zeros((workgroups, barriers), np.int64),
            np.zeros((threads, barriers), np.int64),
        ),
        pc=np.zeros(threads, np.int64),
        lane_pc=np.zeros((threads, LANES), np.int64) if divergent else None,
        waiting=np.zeros(threads, bool),
        signalled=np.zeros(threads, bool),
        stack=np.zeros((threads, MAX_CALLS, LANES), np.int64) if calls else None,
        frames=[[] for _ in range(threads if calls else 0)],
        written=np.zeros((threads, register_bytes), bool) if watch else None,
    )


# The types in which arithmetic instructions compute, for all engines.


class AluOp(Struct, kw_only=True):
    """Properties of an instruction that its arithmetic functions may use.

    Attributes:
        name: the instruction's name.
        format: execution type of floats, "hf", "f" or "df"; "" for integers.
        bits: execution width of shifts: 64 if the destination or the first source has 64 bits, otherwise 32.
        size: bits of the first source.
        condition: the condition of `cmp`.
        function: the function of `bfn`.
        field_bits: bits of a field of `lfsr`.
        signs: whether the type of each source is signed.
    """

    name: str
    format: str = ""
    bits: int = 32
    size: int = 32
    condition: str = ""
    function: int = 0
    field_bits: int = 32
    signs: tuple[bool, ...] = ()

    @classmethod
    def of(cls, inst: Instruction, **more: Any) -> Self:
        """The properties of an instruction whose sources are numbers."""
        formats, values = [source.format for source in inst.sources], inst.values
        types = [fmt.name for fmt in formats]
        return cls(
            name=inst.name,
            format=execution_format(inst, types),
            bits=execution_bits(inst, types),
            size=formats[0].bits,
            condition=values.get("condition", ""),
            function=values.get("function", 0),
            field_bits=FIELDS.get(values.get("fields", ""), 32),
            signs=tuple(fmt.kind == "s" for fmt in formats),
            **more,
        )


def execution_format(inst: Instruction, sources: Sequence[str]) -> str:
    """The type in which floats are computed: the widest of the operands' types, with bf as f; "" for integers.

    Args:
        sources: types of the sources.
    """
    dst = inst["dst"]
    has_numbers = not INSTRUCTIONS[inst.name].compares and not isinstance(dst, (Flag, Raw))
    types = [*sources, dst.format.name] if has_numbers else sources
    floats = [t for t in types if TYPES[t].is_float]
    if not floats:
        return ""
    return IEEE[max(32 if t == "bf" else TYPES[t].bits for t in floats)].name


def execution_bits(inst: Instruction, sources: Sequence[str]) -> int:
    """The width of shifts: 64 if the first source or the result has 64 bits, otherwise 32."""
    dst = inst["dst"]
    return 64 if TYPES[sources[0]].bits == 64 or (not isinstance(dst, Flag) and dst.var.format.bits == 64) else 32


@cache
def span(name: str, modifier: str = "") -> Span:
    """The minimum and maximum of an integer source."""
    info = np.iinfo(TYPES[name].dtype)
    limits = [int(info.min), int(info.max)]
    if "abs" in modifier:
        limits = [0, max(map(abs, limits))]
    if modifier.startswith("-"):
        limits = [-e for e in limits]
    return min(limits), max(limits)
