"""Coalescing: copies between variables that can share registers are removed, other copies become moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.passes.xegpu_to_visa.emit import COPY, Emitter
from xegpu_py.passes.xegpu_to_visa.values import Reg
from xegpu_py.target import Target
from xegpu_py.visa.accesses import accesses
from xegpu_py.visa.flow import Flow
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Instruction, Program

_PLAIN = Instruction("fence_sw", {})


def coalesce(
    instructions: Sequence[Instruction], target: Target, fixed: frozenset[Variable]
) -> dict[Variable, Variable]:
    """Map variables to the variables whose registers they share, so that copies between them can be removed.

    Two variables can share registers if neither is written while the other is live, except by the copy itself. A
    result of dpas and its accumulator also share registers if possible.

    Args:
        fixed: variables that never share registers, such as inputs.
    """
    pairs = [(i["dst"].var, i["src0"].var) for i in instructions if i.name == COPY]
    pairs += _sums(instructions)
    tracked = {v: n for n, v in enumerate(dict.fromkeys(v for pair in pairs for v in pair))}
    if not tracked:
        return {}
    # The variables that are live at writes of each one and of those that share its registers, and all of these.
    live = _live_at_writes(instructions, target, tracked)
    members = [1 << n for n in range(len(tracked))]
    merged: UnionFind[Variable] = UnionFind()
    for to, source in pairs:
        a, b = merged.find(to), merged.find(source)
        n, m = tracked[a], tracked[b]
        if a == b or {a, b} & fixed or live[n] & members[m] or live[m] & members[n]:
            continue
        merged.join((a, b))
        live[n] |= live[m]
        members[n] |= members[m]
    return {v: merged.find(v) for v in tracked if merged.find(v) != v}


def _sums(instructions: Sequence[Instruction]) -> list[tuple[Variable, Variable]]:
    """The results and accumulators of dpas: a chain of products needs only one set of registers if they share."""
    found = []
    for inst in instructions:
        if inst.name in ("dpas", "bdpas") and inst["src0"].var is not None:
            to, acc = inst["dst"], inst["src0"]
            plain = not (to.offset or acc.offset or to.var.alias or acc.var.alias)
            if plain and to.var != acc.var and (to.var.type, to.var.count) == (acc.var.type, acc.var.count):
                found.append((to.var, acc.var))
    return found


def _uses(inst: Instruction, target: Target, tracked: dict[Variable, int]) -> tuple[int, int, int]:
    """Bit masks of the variables that an instruction reads, writes, and writes completely."""
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
    """The same masks, with a variable's first write treated as a complete one.

    A value is written at its definition, possibly by several instructions, and no earlier contents are read.
    """
    seen = 0
    found = []
    for reads, writes, whole in uses:
        found.append((reads, writes, whole | (writes & ~seen)))
        seen |= writes
    return found


def _live_at_writes(instructions: Sequence[Instruction], target: Target, tracked: dict[Variable, int]) -> list[int]:
    """For each tracked variable, the bit mask of the variables that are live at one of its writes."""
    uses = _first_writes([_uses(i, target, tracked) for i in instructions])
    # Copies do not affect control flow.
    flow = Flow(Program("", instructions=tuple(_PLAIN if i.name == COPY else i for i in instructions)))
    live_in = [0] * len(flow.blocks)
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(flow.blocks))):
            live = 0
            for successor in flow.successors[n]:
                live |= live_in[successor]
            block = flow.blocks[n]
            for reads, _, whole in reversed(uses[block.start : block.stop]):
                live = (live & ~whole) | reads
            if live != live_in[n]:
                live_in[n] = live
                changed = True
    found = [0] * len(tracked)
    for block, successors in zip(flow.blocks, flow.successors):
        live = 0
        for successor in successors:
            live |= live_in[successor]
        for at in reversed(block):
            reads, writes, whole = uses[at]
            inst = instructions[at]
            others = live & ~reads if inst.name == COPY else live
            for number in _bits(writes):
                found[number] |= others | (writes & ~whole)
            live = (live & ~whole) | reads
    return found


def _bits(mask: int) -> Iterator[int]:
    """The positions of the set bits."""
    while mask:
        at = mask.bit_length() - 1
        mask ^= 1 << at
        yield at


def expand(emit: Emitter, merged: dict[Variable, Variable]) -> None:
    """Remove copies within shared registers, and emit moves for the others."""
    old, emit.instructions = emit.instructions, []
    for inst in old:
        if inst.name != COPY:
            emit.instructions.append(inst)
            continue
        to, source = (merged.get(inst[n].var, inst[n].var) for n in ("dst", "src0"))
        if to != source:
            emit.where = inst.where
            emit.apply("mov", to.type, to.count, Reg(source, 0, source.count), into=Reg(to, 0, to.count))
