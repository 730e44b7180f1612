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
    found: dict[Variable, list[tuple[int, Access]]] = {}
    for at, inst in enumerate(program.instructions):
        for access in accesses(inst, target):
            found.setdefault(access.var, []).append((at, access))
    ranges = {var: (uses[0][0], uses[-1][0]) for var, uses in found.items()}
    for item in program.inputs:
        root = item.var.root[0]
        ranges[root] = (0, ranges.get(root, (0, 0))[1])
    jumps = [(at, program.labels[i["label"]]) for at, i in enumerate(program.instructions) if i.name in ("jmp", "goto")]
    loops = sorted((to, at) for at, to in jumps if to <= at)
    spans = _skipped(len(program.instructions), [(at, to) for at, to in jumps if to > at])
    parts = any(i.name == "goto" for i in program.instructions)
    certain = [not parts or i.no_mask for i in program.instructions]
    changed = bool(loops)
    while changed:
        changed = False
        for var, span in ranges.items():
            new = _over_loops(span, loops, found.get(var, []), spans, certain)
            if new != span:
                ranges[var] = new
                changed = True
    return ranges


def _skipped(length: int, jumps: list[tuple[int, int]]) -> list[frozenset[int]]:
    """For each instruction the forward jumps that may pass over it."""
    begins: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for number, (at, to) in enumerate(jumps):
        begins.setdefault(at + 1, []).append(number)
        ends.setdefault(to, []).append(number)
    current: frozenset[int] = frozenset()
    found = []
    for at in range(length):
        if at in begins or at in ends:
            current = (current | frozenset(begins.get(at, ()))) - frozenset(ends.get(at, ()))
        found.append(current)
    return found


def _over_loops(
    span: tuple[int, int],
    loops: list[tuple[int, int]],
    uses: list[tuple[int, Access]],
    spans: list[frozenset[int]],
    certain: list[bool],
) -> tuple[int, int]:
    """A live range with the loops around it over which the value lives on."""
    first, last = span
    for start, end in loops:
        if last < start or first > end:
            continue
        if first < start:
            # Alive where the loop begins, it is needed in every turn.
            last = max(last, end)
        elif _reads_earlier_turn([u for u in uses if start <= u[0] <= end], spans, certain):
            first, last = min(first, start), max(last, end)
    return first, last


def _reads_earlier_turn(uses: list[tuple[int, Access]], spans: list[frozenset[int]], certain: list[bool]) -> bool:
    """Whether within one turn of a loop bytes are read that were not written for certain before, in that turn."""
    written: list[tuple[int, int, frozenset[int]]] = []
    for at, access in uses:
        if access.writes:
            if access.whole and certain[at]:
                written.append((access.start, access.end, spans[at]))
            continue
        reached = access.start
        for start, end, skipped in sorted(written, key=lambda w: w[:2]):
            if start <= reached and skipped <= spans[at]:
                reached = max(reached, end)
        if reached < access.end:
            return True
    return False


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
