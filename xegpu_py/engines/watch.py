"""Detection of reads of unwritten registers, lane by lane."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from xegpu_py.engines.access import Layout, data_places, masker
from xegpu_py.engines.batch import Batch, Rows
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Address, Destination, Region, Variable, first_byte
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import BlockShape, DataShape, OperandSpec

if TYPE_CHECKING:
    from xegpu_py.engines.arithmetic import Step
    from xegpu_py.engines.golden.control import Next


class UnwrittenFault(Exception):
    """A read of an unwritten register.

    Attributes:
        thread: index among the threads that read.
        byte: its offset in the operand's variable.
        var: the variable.
    """

    def __init__(self, thread: int, byte: int, var: Variable) -> None:
        self.thread, self.byte, self.var = thread, byte, var
        super().__init__(thread, byte, var)


class OperandBytes(Struct, frozen=True, dict=True):
    """Positions in the register file of an operand's bytes, [lanes, bytes]; one lane for scalar operands."""

    var: Variable
    places: Array

    @cached_property
    def span(self) -> slice:
        """The positions from the first byte to the last."""
        return slice(int(self.places.min()), int(self.places.max()) + 1)

    @cached_property
    def is_dense(self) -> bool:
        """Whether the operand has all bytes of the span."""
        return bool(np.unique(self.places).size == self.span.stop - self.span.start)


def watched_step(step: Step, inst: Instruction, layout: Layout) -> Step:
    """The step of an instruction, which checks the bytes that it reads and marks those that it writes.

    Raises:
        UnwrittenFault: when the step runs, if a lane that acts reads unwritten bytes.
    """
    reads, writes = operand_bytes(inst, "read", layout), operand_bytes(inst, "write", layout)
    mask = masker(inst, layout)

    def watching(batch: Batch, rows: Rows, active: Array | None) -> None:
        acting = mask(batch, rows, active)
        _look(batch, rows, acting, reads, layout)
        step(batch, rows, active)
        assert batch.written is not None
        for operand in writes:
            count = len(operand.places)
            lanes = np.ones((1, count), bool) if acting is None else _lanes(acting, count)
            if operand.is_dense and lanes.all():
                batch.written[rows, operand.span] = True
            else:
                threads = np.arange(batch.threads)[rows]
                thread, lane = np.nonzero(np.broadcast_to(lanes, (len(threads), count)))
                batch.written[threads[thread][:, None], operand.places[lane]] = True

    return watching


def watched_next(decide: Next, inst: Instruction, layout: Layout) -> Next:
    """The `Next` of an instruction, which checks the registers that it reads."""
    reads, mask = operand_bytes(inst, "read", layout), masker(inst, layout)

    def watching(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        _look(batch, rows, mask(batch, rows, active), reads, layout)
        return decide(batch, rows, at, active)

    return watching


def _look(batch: Batch, rows: Rows, acting: Array | None, reads: list[OperandBytes], layout: Layout) -> None:
    for operand in reads:
        assert batch.written is not None
        if batch.written[rows, operand.span].all():
            continue
        missing = ~batch.written[rows][:, operand.places]
        if acting is not None:
            missing &= _lanes(acting, len(operand.places))[:, :, None]
        if missing.any():
            thread, lane, byte = (int(i) for i in np.argwhere(missing)[0])
            place = int(operand.places[lane, byte])
            raise UnwrittenFault(thread, place - layout.offset(operand.var), operand.var)


def operand_bytes(inst: Instruction, use: str, layout: Layout) -> list[OperandBytes]:
    """The bytes of registers that the operands of an instruction access.

    Args:
        use: "read" or "write".
    """
    slots = [s for s in INSTRUCTIONS[inst.name].slots if s.use == use]
    return [b for b in (_bytes(s, inst, layout) for s in slots) if b and b.places.size]


def _lanes(acting: Array, count: int) -> Array:
    return np.any(acting, axis=1, keepdims=True) if count == 1 else acting


def _bytes(slot: OperandSpec, inst: Instruction, layout: Layout) -> OperandBytes | None:
    operand = inst[slot.name]
    var = getattr(operand, "var", None)
    if not isinstance(var, Variable):
        return None
    start, size = layout.offset(var) + first_byte(operand, layout.target.grf_bytes), var.format.bytes
    if isinstance(operand, (Region, Destination)):
        elements = np.array(operand.elements(1 if slot.kind == "scalar" else inst.exec_size))
        return OperandBytes(var, start + elements[:, None] * size + np.arange(size))
    assert slot.bytes
    total = slot.bytes(inst, layout.target)
    if slot.lane_bytes:
        return OperandBytes(var, start + slot.lane_bytes(inst, layout.target))
    if isinstance(operand, Address):
        return OperandBytes(var, start + np.arange(total).reshape(inst.exec_size, -1))
    if "data" in inst.values:
        shape: DataShape = inst["data"]
        moved = shape.register_bytes if slot.use == "write" else shape.memory_bytes
        places = data_places(shape, inst.exec_size, layout.target.grf_bytes)[:, :, None] + np.arange(moved)
        return OperandBytes(var, start + places.reshape(len(places), -1))
    if "block" in inst.values and slot.use == "read":
        # Padding of rows and the rest of the last register are not written.
        block: BlockShape = inst["block"]
        lines, columns, _ = block.register_shape()
        row = np.arange(block.width * block.size // 8)
        places = np.arange(lines)[:, None] * (columns * block.size // 8) + row
        return OperandBytes(var, start + places.reshape(1, -1))
    return OperandBytes(var, start + np.arange(total)[None, :])
