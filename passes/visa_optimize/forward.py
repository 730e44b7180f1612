"""Result forwarding: a value that is only moved elsewhere is computed, or loaded, at the move's destination."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct

from xegpu_py.passes.visa_optimize.copies import is_copy
from xegpu_py.passes.visa_optimize.places import Places, bytes_of
from xegpu_py.target import Target
from xegpu_py.visa.accesses import effects, span_bits
from xegpu_py.visa.flow import Flow, flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.memory import written_back
from xegpu_py.visa.operands import Destination, Raw, Region, Variable
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.verify import instruction_problem


def forward_results(program: Program, target: Target) -> Program:
    """The program without moves of values that are defined in the same block and read by these moves only."""
    return _forward_computed(_forward_whole(program, target), target)


def _forward_computed(program: Program, target: Target) -> Program:
    flow = flow_of(program)
    walk = _Forward(program, target, flow)
    if not walk.only_moved:
        return program
    instructions: list[Instruction] = []
    for block in flow.blocks:
        instructions += walk.block(program.instructions[block.start : block.stop])
    if walk.places.added:
        program = replace(program, variables=(*program.variables, *walk.places.added))
    return program.with_instructions(instructions)


class _Moved(Struct):
    """The positions of the instructions that write a variable, and of the copies, its only readers."""

    writers: list[int]
    copies: list[int]


def _only_moved(program: Program, target: Target) -> dict[Variable, _Moved]:
    """The variables that only copies read."""
    inputs = {i.var.root[0] for i in program.inputs}
    reads: Counter[Variable] = Counter()
    found: dict[Variable, _Moved] = {}
    for at, inst in enumerate(program.instructions):
        known = effects(inst, target)
        reads.update(access.var for access in known.reads)
        for access in known.writes:
            found.setdefault(access.var, _Moved([], [])).writers.append(at)
        if is_copy(inst):
            found.setdefault(inst["src0"].var.root[0], _Moved([], [])).copies.append(at)
    return {v: m for v, m in found.items() if m.copies and reads[v] == len(m.copies) and v not in inputs}


def _forward_whole(program: Program, target: Target) -> Program:
    """The program without copies that take all of a variable to one place, in the block that writes it."""
    # A single copy of a single result is forwarded as it is met, also where lanes work in place.
    moved = [m for m in _only_moved(program, target).values() if m.writers and len(m.writers) + len(m.copies) > 2]
    if not moved:
        return program
    walk = _Whole(program, moved, target)
    for known in moved:
        walk.forward(known)
    instructions = [inst for inst in walk.kept if inst]
    if len(instructions) == len(walk.kept):
        return program
    program = replace(program, variables=(*program.variables, *walk.places.added))
    return program.with_instructions(instructions)


class _Whole:
    """Lets instructions write to where copies take their results.

    Attributes:
        kept: the program's instructions, None for those that were removed.
        places: the variables, and aliases that were added.
    """

    def __init__(self, program: Program, moved: Sequence[_Moved], target: Target) -> None:
        self.kept: list[Instruction | None] = list(program.instructions)
        self.places = Places(program, target)
        self._target, self._flow = target, flow_of(program)
        self._starts = [block.start for block in self._flow.blocks]
        copies = [program.instructions[at] for known in moved for at in known.copies]
        self._accesses: dict[Variable, dict[int, int]] = {inst["dst"].var.root[0]: {} for inst in copies}
        for at, inst in enumerate(program.instructions):
            self._note(at, inst)

    def _note(self, at: int, inst: Instruction) -> None:
        """Note the bytes that an instruction accesses of the copies' destinations."""
        known = effects(inst, self._target)
        for access in (*known.reads, *known.writes):
            if access.var in self._accesses:
                accessed = self._accesses[access.var]
                accessed[at] = accessed.get(at, 0) | span_bits(access)

    def forward(self, moved: _Moved) -> None:
        """Write a variable where it is copied to, if its copies can be removed."""
        first, last = moved.writers[0], moved.copies[-1]
        if moved.writers[-1] >= moved.copies[0] or bisect(self._starts, first) != bisect(self._starts, last):
            return
        destination, written = self._destination(moved.copies), self._written(moved.writers)
        if destination is None or destination[2] != written:
            return
        to, delta, _ = destination
        there = written << delta if delta >= 0 else written >> -delta
        accessed, own = self._accesses[to], {*moved.copies}
        if any(bits & there for at, bits in accessed.items() if first <= at < last and at not in own):
            return
        changed = {at: self._at(at, to, delta) for at in moved.writers}
        if any(new is None or instruction_problem(new, self._target) for new in changed.values()):
            return
        for at in moved.copies:
            self.kept[at] = None
            del accessed[at]
        for at, new in changed.items():
            assert new is not None
            self.kept[at] = new
            self._note(at, new)

    def _written(self, writers: Sequence[int]) -> int:
        """The bytes that instructions write, as a mask; 0 if one may leave some of them."""
        found = 0
        for at in writers:
            inst = self.kept[at]
            if inst is None or not isinstance(inst.values.get("dst"), (Raw, Destination)):
                return 0
            writes = effects(inst, self._target).writes
            if len(writes) > 1 or not writes[0].whole or not self._flow.certain(inst):
                return 0
            found |= span_bits(writes[0])
        return found

    def _destination(self, copies: Sequence[int]) -> tuple[Variable, int, int] | None:
        """Where copies take bytes: the variable, the distance, and the bytes as a mask; None for several distances."""
        taken, found = 0, set()
        for at in copies:
            inst = self.kept[at]
            if inst is None or not self._flow.certain(inst):
                return None
            source, places = bytes_of(inst["src0"], inst.exec_size, self._target)
            to, there = bytes_of(inst["dst"], inst.exec_size, self._target)
            found |= {(to, t - p) for p, t in zip(places, there)}
            if len(places) != len(there) or source == to or len(found) > 1:
                return None
            element = (1 << inst["dst"].var.format.bytes) - 1
            for place in places:
                taken |= element << place
        ((to, delta),) = found
        return to, delta, taken

    def _at(self, at: int, to: Variable, delta: int) -> Instruction | None:
        """An instruction that writes to another variable, this far from where it writes now; None if it cannot."""
        inst = self.kept[at]
        assert inst is not None
        dst, (access,) = inst["dst"], effects(inst, self._target).writes
        start, end = access.start + delta, access.end + delta
        new: Raw | Destination | None
        if isinstance(dst, Raw):
            grf = self._target.grf_bytes
            # The result of a message of few lanes has registers beyond those that it writes.
            fits = start % grf == 0 and start + written_back(inst, self._target) <= -(-end // grf) * grf
            new = self.places.raw(to, dst.var.type, start, end) if fits else None
        else:
            new = self.places.destination(to, dst.var.type, start, end, dst.stride)
        return inst.replaced(values={**inst.values, "dst": new}) if new else None


class _Result(Struct, frozen=True):
    """The position in its block of the instruction that computes a value, and the first bytes of its elements."""

    at: int
    places: list[int]


class _Forward:
    def __init__(self, program: Program, target: Target, flow: Flow) -> None:
        self.target, self.flow = target, flow
        self.places = Places(program, target)
        moved = _only_moved(program, target).items()
        self.only_moved = {v for v, known in moved if len(known.writers) == len(known.copies) == 1}

    def block(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        """A block's instructions, with results written to the destinations of moves."""
        kept: list[Instruction | None] = []
        results: dict[Variable, _Result] = {}
        accessed: dict[Variable, int] = {}
        for at, inst in enumerate(instructions):
            moved = self._moved(inst, results, accessed, kept)
            if moved:
                result, new = moved
                kept[result] = new
                kept.append(None)
                at, inst = result, new
            else:
                kept.append(inst)
            known = effects(inst, self.target)
            for access in (*known.reads, *known.writes):
                accessed[access.var] = max(at, accessed.get(access.var, -1))
            dst = inst.values.get("dst")
            if isinstance(dst, Destination) and self._is_plain(inst) and dst.var.root[0] in self.only_moved:
                results[dst.var.root[0]] = _Result(at, bytes_of(dst, inst.exec_size, self.target)[1])
        return [inst for inst in kept if inst]

    def _is_plain(self, inst: Instruction) -> bool:
        return INSTRUCTIONS[inst.name].category in ("alu", "math") and self.flow.certain(inst)

    def _moved(
        self,
        inst: Instruction,
        results: dict[Variable, _Result],
        accessed: dict[Variable, int],
        kept: Sequence[Instruction | None],
    ) -> tuple[int, Instruction] | None:
        """For a move of a result: the position of its definition, and the definition with the move's destination."""
        if not is_copy(inst) or not self.flow.certain(inst):
            return None
        root, places = bytes_of(inst["src0"], inst.exec_size, self.target)
        result = results.get(root)
        if result is None or places != result.places:
            return None
        maker = kept[result.at]
        to, there = bytes_of(inst["dst"], inst.exec_size, self.target)
        if maker is None or maker.exec_size != inst.exec_size or accessed.get(to, -1) > result.at:
            return None
        if accessed.get(to) == result.at and not self._reads_in_place(maker, to, there):
            return None
        size = maker["dst"].var.format.bytes
        dst = self.places.destination(to, maker["dst"].var.type, there[0], there[-1] + size, inst["dst"].stride)
        if dst is None:
            return None
        new = maker.replaced(values={**maker.values, "dst": dst})
        return None if instruction_problem(new, self.target) else (result.at, new)

    def _reads_in_place(self, inst: Instruction, root: Variable, places: list[int]) -> bool:
        """Whether each lane of an instruction reads a variable only at the bytes that it would write."""
        for value in inst.values.values():
            if isinstance(value, Region) and value.var.root[0] == root:
                if bytes_of(value, inst.exec_size, self.target)[1] != places:
                    return False
                if value.var.format.bytes != inst["dst"].var.format.bytes:
                    return False
        return True
