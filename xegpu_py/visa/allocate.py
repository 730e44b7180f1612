"""Variables to registers: live ranges, linear scan, and the pressure that results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from xegpu_py.target import Target
from xegpu_py.visa.assembly import align_bytes
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import BUILTINS, Address, Destination, Raw, Region, Variable, Vector, first_byte
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import Slot

HEADER_BYTES = 32
"""Bytes of a thread's header in r0."""


@dataclass(frozen=True)
class Access:
    """An instruction's access to a variable.

    Attributes:
        var: the variable that is no alias.
        writes: whether it is written, else read.
        start, end: the bytes of `var` in which the access lies.
        whole: whether the access covers all of these bytes, whatever lanes are enabled.
    """

    var: Variable
    writes: bool
    start: int
    end: int
    whole: bool


def accesses(inst: Instruction, target: Target) -> Iterator[Access]:
    """What an instruction reads, then what it writes."""
    slots = INSTRUCTIONS[inst.name].slots
    for use in ("read", "write"):
        for slot in slots:
            if slot.use == use:
                found = _access(slot, inst, target)
                if found:
                    yield found


def _access(slot: Slot, inst: Instruction, target: Target) -> Access | None:
    value = inst[slot.name]
    var = getattr(value, "var", None)
    if not isinstance(var, Variable):
        return None
    root, offset = var.root
    size = var.format.bytes
    packed = True
    if isinstance(value, (Region, Destination)):
        elements = value.elements(1 if slot.kind == "scalar" else inst.exec_size)
        start = offset + first_byte(value, target.grf_bytes)
        end = start + (max(elements) + 1) * size
        packed = elements == list(range(len(elements)))
    else:
        assert isinstance(value, (Raw, Vector, Address)) and slot.bytes
        start = offset + (first_byte(value, target.grf_bytes) if isinstance(value, Vector) else value.offset)
        end = start + slot.bytes(inst, target)
    whole = packed and inst.guard is None and (inst.no_mask or inst.name == "dpas" or slot.kind == "dst")
    if inst.name.startswith("lsc_") and inst.exec_size == 1:
        whole = inst.guard is None
    return Access(root, slot.use == "write", start, end, whole)


@dataclass(frozen=True)
class Allocation:
    """Where variables lie in a thread's register file.

    Attributes:
        offsets: byte offset of each variable that is no alias.
        bytes: size of the register file that they need.
        grf_bytes: bytes of a register.
        registers: registers that the kernel is given.
        pressure: most registers' worth of bytes that are live at once.
        peak: index of an instruction at which that is so.
        beyond: variables that lie behind the registers that there are.
    """

    offsets: Mapping[Variable, int]
    bytes: int
    grf_bytes: int
    registers: int
    pressure: int
    peak: int
    beyond: tuple[Variable, ...]

    def offset(self, var: Variable) -> int:
        """Byte offset of a variable in the register file."""
        root, inner = var.root
        return self.offsets[root] + inner

    def report(self) -> str:
        """One sentence on the pressure."""
        text = f"register pressure {self.pressure} of {self.registers} GRFs"
        if self.beyond:
            names = ", ".join(v.name for v in self.beyond[:4]) + (", ..." if len(self.beyond) > 4 else "")
            text += f"; {len(self.beyond)} variables do not fit: {names}"
        return text


def live_ranges(program: Program, target: Target) -> dict[Variable, tuple[int, int]]:
    """First and last instruction, by index, between which each variable that is no alias must keep its registers."""
    ranges: dict[Variable, tuple[int, int]] = {}
    carried: dict[Variable, list[int]] = {}
    diverges = any(i.name == "goto" for i in program.instructions)
    for item in program.inputs:
        ranges[item.var.root[0]] = (0, 0)
    for at, inst in enumerate(program.instructions):
        for access in accesses(inst, target):
            first, _ = ranges.get(access.var, (at, at))
            ranges[access.var] = (first, at)
            fresh = access.writes and access.whole and access.end - access.start == access.var.bytes
            if not fresh or (diverges and not inst.no_mask):
                carried.setdefault(access.var, []).append(at)
    loops = [
        (program.labels[i["label"]], at)
        for at, i in enumerate(program.instructions)
        if i.name in ("jmp", "goto") and program.labels[i["label"]] <= at
    ]
    changed = bool(loops)
    while changed:
        changed = False
        for var, (first, last) in ranges.items():
            new = _over_loops((first, last), loops, carried.get(var, []))
            if new != (first, last):
                ranges[var] = new
                changed = True
    return ranges


def _over_loops(span: tuple[int, int], loops: list[tuple[int, int]], carried: list[int]) -> tuple[int, int]:
    """A live range with the loops around it over which the value lives on."""
    first, last = span
    for start, end in loops:
        if last < start or first > end:
            continue
        if first < start:
            # Alive where the loop begins, it is needed in every turn.
            last = max(last, end)
        elif any(start <= at <= end for at in carried):
            # Not written as a whole in each turn, it may hold what an earlier turn has left.
            first, last = min(first, start), max(last, end)
    return first, last


def allocate(program: Program, target: Target, registers: int | None = None) -> Allocation:
    """Place the variables of a program by linear scan over their live ranges.

    Inputs lie where the thread's payload has them; the others at the first place that is free for as long as they live.

    Args:
        registers: registers that the thread has; by default the target's usual number.
    """
    count = registers or target.grf_counts[0]
    ranges = live_ranges(program, target)
    offsets: dict[Variable, int] = {}
    placed: list[tuple[int, int, int, int]] = []
    header = (0, HEADER_BYTES, 0, len(program.instructions))
    for item in program.inputs:
        root, inner = item.var.root
        offsets.setdefault(root, item.offset - inner)
    for var, at in offsets.items():
        placed.append((at, at + var.bytes, *ranges.get(var, (0, 0))))
    order = sorted((v for v in ranges if v not in offsets and v not in BUILTINS.values()), key=lambda v: ranges[v])
    active: list[tuple[int, int, int, int]] = [header, *placed]
    for var in order:
        first, last = ranges[var]
        active = [a for a in active if a[3] >= first]
        taken = sorted((a[0], a[1]) for a in active if a[2] <= last)
        at = _first_fit(taken, var.bytes, max(align_bytes(var.align, target.grf_bytes), var.format.bytes))
        offsets[var] = at
        active.append((at, at + var.bytes, first, last))
    limit = count * target.grf_bytes
    beyond = tuple(v for v, at in offsets.items() if at + v.bytes > limit)
    used = max([HEADER_BYTES, *(at + v.bytes for v, at in offsets.items())])
    pressure, peak = _pressure({v: r for v, r in ranges.items() if v in offsets}, len(program.instructions), target)
    # Whole registers, and as many as a view of the widest elements needs.
    size = -(-used // target.grf_bytes) * target.grf_bytes
    return Allocation(offsets, size, target.grf_bytes, count, pressure, peak, beyond)


def _first_fit(taken: list[tuple[int, int]], size: int, alignment: int) -> int:
    at = 0
    for start, end in taken:
        if at + size <= start:
            break
        at = max(at, -(-end // alignment) * alignment)
    return at


def _pressure(ranges: Mapping[Variable, tuple[int, int]], length: int, target: Target) -> tuple[int, int]:
    change = np.zeros(length + 2, np.int64)
    for var, (first, last) in ranges.items():
        change[first] += var.bytes
        change[last + 1] -= var.bytes
    live = np.cumsum(change)
    peak = int(np.argmax(live))
    return -(-(int(live[peak]) + HEADER_BYTES) // target.grf_bytes), peak
