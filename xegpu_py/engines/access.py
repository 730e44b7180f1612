"""Operands as functions: each operand is decoded once into a function that reads or writes it for many threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

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
from xegpu_py.visa.spec import DataShape

if TYPE_CHECKING:
    from xegpu_py.engines.batch import Batch, Rows

Read = Callable[["Batch", "Rows"], Array]
"""Returns an operand's elements, [threads, lanes], or [threads, 1] if all lanes share one."""
Write = Callable[["Batch", "Rows", Array, "Array | None"], None]
"""Takes values of the operand's type, and the lanes to write; None for all."""
Mask = Callable[["Batch", "Rows", "Array | None"], "Array | None"]
"""Maps the enabled lanes [threads, 32] to those in which an instruction acts, [threads, lanes]; None for all."""

BUILTIN_OFFSETS = {"%r0": 0, "%group_id_x": 4, "%group_id_y": 24, "%group_id_z": 28}
"""The positions of builtin variables in the header, as Intel's finalizer places them."""


class Layout(Struct, frozen=True):
    """Positions in registers of the operands of instructions.

    Attributes:
        target: the GPU.
        allocation: places of variables.
        predicates: index of each predicate in a batch's flags.
        watch: whether reads of unwritten registers are looked for.
        races: whether races are looked for.
        bounds: whether 2D blocks that are not within their surface are errors.
    """

    target: Target
    allocation: Allocation
    predicates: Mapping[Predicate, int]
    watch: bool = False
    races: bool = False
    bounds: bool = False

    def offset(self, var: Variable) -> int:
        """Byte offset of a variable in the register file."""
        if var.name in BUILTINS:
            return BUILTIN_OFFSETS[var.name]
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
    both = isinstance(columns, slice) or isinstance(rows, slice)
    found: Array = view[rows, columns] if both else view[rows[:, None], columns]
    return found


def reader(operand: Region | Immediate, exec_size: int, layout: Layout) -> Read:
    """Reads a source's elements in the source's type; its modifier is not applied."""
    if isinstance(operand, Immediate):
        fmt = TYPES[operand.type]
        value = np.frombuffer(operand.bits.to_bytes(fmt.bytes, "little"), fmt.dtype).reshape(1, 1)
        return lambda batch, rows: value
    var = operand.var
    size = var.format.bytes
    base = (layout.offset(var) + first_byte(operand, layout.target.grf_bytes)) // size
    columns = _columns([0] if operand.is_scalar else operand.elements(exec_size), base)
    name = var.type
    return lambda batch, rows: _take(batch.views[name], rows, columns)


def raw_reader(operand: Raw | Vector | Address, size: int, layout: Layout) -> Read:
    """Reads the bytes of an operand, uint8[threads, size]."""
    start = layout.offset(operand.var) + first_byte(operand, layout.target.grf_bytes)

    def read(batch: Batch, rows: Rows) -> Array:
        found: Array = batch.regs[rows, start : start + size]
        return found

    return read


def writer(operand: Destination, exec_size: int, layout: Layout) -> Write:
    """Writes a destination's elements."""
    var = operand.var
    size = var.format.bytes
    base = (layout.offset(var) + first_byte(operand, layout.target.grf_bytes)) // size
    columns = _columns(operand.elements(exec_size), base)
    name = var.type
    return lambda batch, rows, values, mask: _put(batch.views[name], rows, columns, values, mask)


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


def raw_writer(operand: Raw, layout: Layout) -> Callable[..., None]:
    """Writes bytes uint8[threads, size] to an operand; with a mask bool[threads, size] only the selected bytes."""
    start = layout.offset(operand.var) + operand.offset

    def write(batch: Batch, rows: Rows, values: Array, mask: Array | None = None) -> None:
        place = slice(start, start + values.shape[1])
        batch.regs[rows, place] = values if mask is None else np.where(mask, values, batch.regs[rows, place])

    return write


def data_places(shape: DataShape, lanes: int, grf_bytes: int) -> Array:
    """The byte offsets of each lane's elements in a message's data operand, [lanes, elements].

    The first elements of all lanes come first, then the second elements, and so on; each group begins at a register. In
    transposed messages the elements of one lane are adjacent.
    """
    size = shape.register_bytes
    if shape.transpose:
        return np.arange(shape.vector)[None, :] * size
    return np.arange(lanes)[:, None] * size + np.arange(shape.vector)[None, :] * shape.row_bytes(lanes, grf_bytes)


def masker(inst: Instruction, layout: Layout) -> Mask:
    """The lanes in which an instruction acts: those that its predicate sets and, without NoMask, that are enabled."""
    first, count, spec = inst.first_lane, inst.exec_size, INSTRUCTIONS[inst.name]
    chosen = flag_reader(inst, layout) if inst.guard and not spec.selects else None
    no_mask = inst.no_mask or not spec.exec_sizes

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
    uniform = INSTRUCTIONS[inst.name].uniform

    def read(batch: Batch, rows: Rows) -> Array:
        if guard.control:
            bits = batch.flags[rows, index, :size]
            joined = (np.any if guard.control == "any" else np.all)(bits, axis=1)
            found = np.repeat(joined[:, None], count, axis=1)
        elif uniform:
            found = batch.flags[rows, index, :1]
        else:
            found = batch.flags[rows, index, first : first + count]
        return ~found if guard.inverted else found

    return read
