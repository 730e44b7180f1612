"""Copies of whole variables: where both can share registers they do, elsewhere they become moves."""

from __future__ import annotations

from collections.abc import Sequence

from xegpu_py.passes.xegpu_to_visa.emit import COPY, Emitter
from xegpu_py.passes.xegpu_to_visa.values import Reg

from xegpu_py.target import Target
from xegpu_py.visa.accesses import accesses
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Instruction


class _Merged:
    """Which variables share registers (a union-find)."""

    def __init__(self) -> None:
        self._parent: dict[Variable, Variable] = {}

    def find(self, var: Variable) -> Variable:
        root = var
        while (above := self._parent.get(root)) is not None:
            root = above
        return root

    def merge(self, into: Variable, var: Variable) -> None:
        self._parent[var] = into


def coalesce(
    instructions: Sequence[Instruction], target: Target, fixed: frozenset[Variable]
) -> dict[Variable, Variable]:
    """Which variables take the registers of which others, so that copies between them go.

    Two variables can share registers if neither is written while the other's contents are still needed, except by the
    copy itself. The results of dpas and their accumulators share registers too where they can.

    Args:
        fixed: variables that keep their registers, such as inputs; they are never shared.
    """
    pairs = [(i["dst"].var, i["src0"].var) for i in instructions if i.name == COPY]
    pairs += _sums(instructions)
    tracked = {v: n for n, v in enumerate(dict.fromkeys(v for pair in pairs for v in pair))}
    if not tracked:
        return {}
    interferes = _interference(instructions, target, tracked)
    merged = _Merged()
    for to, source in pairs:
        a, b = merged.find(to), merged.find(source)
        if a == b or {a, b} & fixed or interferes[tracked[a]] >> tracked[b] & 1:
            continue
        merged.merge(a, b)
        n, m = tracked[a], tracked[b]
        interferes[n] |= interferes[m]
        for other in range(len(interferes)):
            if interferes[m] >> other & 1:
                interferes[other] |= 1 << n
    return {v: merged.find(v) for v in tracked if merged.find(v) != v}


def _sums(instructions: Sequence[Instruction]) -> list[tuple[Variable, Variable]]:
    """Results of dpas and what they are added to: in the same registers, sums of several products need no others."""
    found = []
    for inst in instructions:
        if inst.name == "dpas" and inst["src0"].var is not None:
            to, acc = inst["dst"], inst["src0"]
            plain = not (to.offset or acc.offset or to.var.alias or acc.var.alias)
            if plain and to.var != acc.var and (to.var.type, to.var.count) == (acc.var.type, acc.var.count):
                found.append((to.var, acc.var))
    return found


def _uses(inst: Instruction, target: Target, tracked: dict[Variable, int]) -> tuple[int, int, int]:
    """Bits of the variables that an instruction reads, writes, and writes as a whole."""
    reads = writes = whole = 0
    if inst.name == COPY:
        return 1 << tracked[inst["src0"].var], 1 << tracked[inst["dst"].var], 1 << tracked[inst["dst"].var]
    for access in accesses(inst, target):
        number = tracked.get(access.var)
        if number is None:
            continue
        if access.writes:
            writes |= 1 << number
            if access.whole and access.end - access.start >= access.var.bytes:
                whole |= 1 << number
        else:
            reads |= 1 << number
    return reads, writes, whole


def _first_writes(uses: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The same, where a variable's first write counts as one of all of it.

    A value is written where it is defined, and no earlier contents of its registers are ever read, even if it takes
    several instructions to write it.
    """
    seen = 0
    found = []
    for reads, writes, whole in uses:
        found.append((reads, writes, whole | (writes & ~seen)))
        seen |= writes
    return found


def _interference(instructions: Sequence[Instruction], target: Target, tracked: dict[Variable, int]) -> list[int]:
    """For each tracked variable the bits of those that are needed where it is written."""
    uses = _first_writes([_uses(i, target, tracked) for i in instructions])
    labels = {i["label"]: n for n, i in enumerate(instructions) if i.name == "label"}
    starts = sorted(
        {0, *labels.values(), *(n + 1 for n, i in enumerate(instructions) if i.name in ("jmp", "goto", "ret"))}
    )
    starts = [s for s in starts if s < len(instructions)]
    ends = [*starts[1:], len(instructions)]
    block_at = {s: n for n, s in enumerate(starts)}
    follows: list[list[int]] = []
    for end in ends:
        last = instructions[end - 1]
        found = [block_at[labels[last["label"]]]] if last.name in ("jmp", "goto") else []
        if last.name != "ret" and (last.name != "jmp" or last.guard) and end in block_at:
            found.append(block_at[end])
        follows.append(found)
    needed_in = [0] * len(starts)
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(starts))):
            live = 0
            for f in follows[n]:
                live |= needed_in[f]
            for reads, _, whole in reversed(uses[starts[n] : ends[n]]):
                live = (live & ~whole) | reads
            if live != needed_in[n]:
                needed_in[n] = live
                changed = True
    interferes = [0] * len(tracked)
    for n in range(len(starts)):
        live = 0
        for f in follows[n]:
            live |= needed_in[f]
        for at in reversed(range(starts[n], ends[n])):
            reads, writes, whole = uses[at]
            inst = instructions[at]
            others = live & ~reads if inst.name == COPY else live
            _note(interferes, writes, others | (writes & ~whole))
            live = (live & ~whole) | reads
    return interferes


def _note(interferes: list[int], writes: int, live: int) -> None:
    remaining = writes
    while remaining:
        number = remaining.bit_length() - 1
        remaining &= ~(1 << number)
        others = live & ~(1 << number)
        interferes[number] |= others
        while others:
            other = others.bit_length() - 1
            others &= ~(1 << other)
            interferes[other] |= 1 << number


def expand(emit: Emitter, merged: dict[Variable, Variable]) -> None:
    """Remove copies within shared registers, and make the others moves."""
    old, emit.instructions = emit.instructions, []
    for inst in old:
        if inst.name != COPY:
            emit.instructions.append(inst)
            continue
        to, source = (merged.get(inst[n].var, inst[n].var) for n in ("dst", "src0"))
        if to != source:
            emit.where = inst.where
            emit.apply("mov", to.type, to.count, Reg(source, 0, source.count), into=Reg(to, 0, to.count))
