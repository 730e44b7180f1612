"""Operands as functions: each is decoded once into one that reads or writes it for many threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from xegpu_py.engines.batch import Batch, Rows
from xegpu_py.numerics.formats import TYPES, Array
from xegpu_py.target import Target
from xegpu_py.visa.allocate import Allocation
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import (
    BUILTINS,
    Address,
    Destination,
    Immediate,
    Predicate,
    Raw,
    Region,
    Variable,
    Vector,
    first_byte,
)
from xegpu_py.visa.program import Instruction

Read = Callable[[Batch, Rows], Array]
"""Gives an operand's elements, [threads, lanes] or, where all lanes share one, [threads, 1]."""
Write = Callable[[Batch, Rows, Array, "Array | None"], None]
"""Takes values of the operand's type, and which lanes to write; None for all."""
Mask = Callable[[Batch, Rows, "Array | None"], "Array | None"]
"""Takes the enabled lanes [threads, 32], gives those in which an instruction acts, [threads, lanes]; None for all."""

BUILTIN_OFFSETS = {"%r0": 0, "%group_id_x": 4, "%group_id_y": 24, "%group_id_z": 28}
"""Where builtin variables lie: in the header, as Intel's finalizer places them."""


class UnwrittenFault(Exception):
    """A register is read that was never written.

    Attributes:
        thread: index among the threads that read.
        byte: its offset in the operand's variable.
        var: the variable.
    """

    def __init__(self, thread: int, byte: int, var: Variable) -> None:
        self.thread, self.byte, self.var = thread, byte, var
        super().__init__(thread, byte, var)


@dataclass(frozen=True)
class Layout:
    """Where things lie that instructions name.

    Attributes:
        target: the GPU.
        allocation: places of variables.
        predicates: index of each predicate in a batch's flags.
        watch: whether reads of registers never written are looked for.
    """

    target: Target
    allocation: Allocation
    predicates: Mapping[Predicate, int]
    watch: bool = False

    def offset(self, var: Variable) -> int:
        """Byte offset of a variable in the register file."""
        if var.name in BUILTINS:
            return BUILTIN_OFFSETS[var.name]
        return self.allocation.offset(var)


def _columns(elements: list[int], base: int) -> slice | Array:
    """Columns as a slice, where their distance is the same."""
    if len(elements) == 1:
        return slice(base + elements[0], base + elements[0] + 1)
    step = elements[1] - elements[0]
    if step > 0 and all(b - a == step for a, b in pairwise(elements)):
        return slice(base + elements[0], base + elements[-1] + 1, step)
    return np.array(elements) + base


def _take(view: Array, rows: Rows, columns: slice | Array) -> Array:
    both = isinstance(columns, slice) or isinstance(rows, slice)
    found: Array = view[rows, columns] if both else view[rows[:, None], columns]
    return found


def reader(operand: Region | Immediate, exec_size: int, layout: Layout) -> Read:
    """Reads a source's elements in its type, without its modifier."""
    if isinstance(operand, Immediate):
        fmt = TYPES[operand.type]
        value = np.frombuffer(operand.bits.to_bytes(fmt.bytes, "little"), fmt.dtype).reshape(1, 1)
        return lambda batch, rows: value
    var = operand.var
    size = var.format.bytes
    base = (layout.offset(var) + first_byte(operand, layout.target.grf_bytes)) // size
    elements = operand.elements(exec_size)
    columns = _columns([0] if operand.is_scalar else elements, base)
    name = var.type

    def read(batch: Batch, rows: Rows) -> Array:
        return _take(batch.views[name], rows, columns)

    return _watched(read, var, [(base + e) * size for e in elements], size, layout) if layout.watch else read


def raw_reader(operand: Raw | Vector | Address, size: int, layout: Layout) -> Read:
    """Reads the bytes of an operand, uint8[threads, size]."""
    start = layout.offset(operand.var) + _raw_start(operand, layout)

    def read(batch: Batch, rows: Rows) -> Array:
        found: Array = batch.regs[rows, start : start + size]
        return found

    return _watched(read, operand.var, [start], size, layout) if layout.watch else read


def _raw_start(operand: Raw | Vector | Address, layout: Layout) -> int:
    return first_byte(operand, layout.target.grf_bytes) if isinstance(operand, Vector) else operand.offset


def _watched(read: Read, var: Variable, starts: list[int], size: int, layout: Layout) -> Read:
    columns = np.unique(np.concatenate([np.arange(s, s + size) for s in starts]))
    base = layout.offset(var)

    def watching(batch: Batch, rows: Rows) -> Array:
        assert batch.written is not None
        missing = ~_take(batch.written, rows, columns)
        if var.name not in BUILTINS and missing.any():
            thread, column = np.argwhere(missing)[0]
            raise UnwrittenFault(int(thread), int(columns[column]) - base, var)
        return read(batch, rows)

    return watching


def writer(operand: Destination, exec_size: int, layout: Layout) -> Write:
    """Writes a destination's elements."""
    var = operand.var
    size = var.format.bytes
    base = (layout.offset(var) + first_byte(operand, layout.target.grf_bytes)) // size
    elements = operand.elements(exec_size)
    columns = _columns(elements, base)
    name = var.type
    all_bytes = np.array([[(base + e) * size + b for b in range(size)] for e in elements])

    def write(batch: Batch, rows: Rows, values: Array, mask: Array | None) -> None:
        _put(batch.views[name], rows, columns, values, mask)
        if batch.written is not None:
            _mark(batch, rows, all_bytes, mask)

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


def _mark(batch: Batch, rows: Rows, all_bytes: Array, mask: Array | None) -> None:
    written = batch.written
    assert written is not None
    threads = np.arange(batch.threads)[rows]
    lanes = np.ones((len(threads), len(all_bytes)), bool) if mask is None else mask
    thread, lane = np.nonzero(np.broadcast_to(lanes, (len(threads), len(all_bytes))))
    written[threads[thread][:, None], all_bytes[lane]] = True


def raw_writer(operand: Raw, layout: Layout) -> Callable[[Batch, Rows, Array], None]:
    """Writes bytes uint8[threads, size] to an operand."""
    start = layout.offset(operand.var) + operand.offset

    def write(batch: Batch, rows: Rows, values: Array) -> None:
        batch.regs[rows, start : start + values.shape[1]] = values
        if batch.written is not None:
            batch.written[rows, start : start + values.shape[1]] = True

    return write


def masker(inst: Instruction, layout: Layout) -> Mask:
    """Which lanes of an instruction act: the enabled ones, unless it has NoMask, that its predicate sets."""
    first, count = inst.first_lane, inst.exec_size
    guard = None if inst.name == "sel" else inst.guard
    chosen = flag_reader(inst, layout) if guard else None
    no_mask = inst.no_mask or not INSTRUCTIONS[inst.name].exec_sizes

    def mask(batch: Batch, rows: Rows, active: Array | None) -> Array | None:
        enabled = None if no_mask or active is None else active[:, first : first + count]
        if chosen is None:
            return enabled
        bits = chosen(batch, rows)
        return bits if enabled is None else bits & enabled

    return mask


def flag_reader(inst: Instruction, layout: Layout) -> Read:
    """Reads the guard's bits, bool[threads, lanes]. Inversion comes after `any` and `all`."""
    guard = inst.guard
    assert guard
    index = layout.predicates[guard.var]
    first, count, size = inst.first_lane, inst.exec_size, guard.var.count

    def read(batch: Batch, rows: Rows) -> Array:
        if guard.control:
            bits = batch.flags[rows, index, :size]
            joined = (np.any if guard.control == "any" else np.all)(bits, axis=1)
            found = np.repeat(joined[:, None], count, axis=1)
        elif inst.name == "jmp":
            found = batch.flags[rows, index, :1]
        else:
            found = batch.flags[rows, index, first : first + count]
        return ~found if guard.inverted else found

    return read
