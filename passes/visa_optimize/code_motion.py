"""Code motion: result forwarding, loop-invariant code motion, and scheduling of loads before their uses."""

from __future__ import annotations

import heapq
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import itemgetter

import numpy as np
from msgspec import Struct, field, structs

from xegpu_py.passes.visa_optimize.constant_propagation import VariableAliases, bytes_of, chunks_of, write_sites
from xegpu_py.passes.visa_optimize.simplify import is_copy
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import ControlFlowGraph, Liveness, Root, effects, flow_of, liveness_of, span_bits
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.messages import written_back
from xegpu_py.visa.operands import Destination, Predicate, Raw, Region, Variable
from xegpu_py.visa.program import Instruction, Program, analysis
from xegpu_py.visa.spec import MESSAGES
from xegpu_py.visa.verify import instruction_problem

# Result forwarding: a value that is only moved elsewhere is computed, or loaded, at the move's destination.


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
        program = structs.replace(program, variables=(*program.variables, *walk.places.added))
    return program.with_instructions(instructions)


class _Moved(Struct):
    """The positions of the instructions that write a variable, and of the copies, its only readers."""

    writers: list[int]
    copies: list[int]

    @property
    def first(self) -> tuple[int, bool]:
        """The position of the first of them, and whether that is a copy; an instruction writes before it is one."""
        is_written = bool(self.writers) and self.writers[0] <= self.copies[0]
        return (self.writers[0] if is_written else self.copies[0]), not is_written


@analysis
def _only_moved(program: Program, target: Target) -> dict[Variable, _Moved]:
    """The variables that only copies read, in the order of their first accesses."""
    moved: dict[Variable, _Moved] = {}
    for at, inst in enumerate(program.instructions):
        if is_copy(inst):
            moved.setdefault(inst["src0"].var.root[0], _Moved([], [])).copies.append(at)
    for item in program.inputs:
        moved.pop(item.var.root[0], None)
    reads = dict.fromkeys(moved, 0)
    for at, inst in enumerate(program.instructions if moved else ()):
        accesses = effects(inst, target)
        for access in accesses.reads:
            if access.var in reads:
                reads[access.var] += 1
        for access in accesses.writes:
            if access.var in moved:
                moved[access.var].writers.append(at)
    only = [(known.first, v) for v, known in moved.items() if reads[v] == len(known.copies)]
    return {v: moved[v] for _, v in sorted(only, key=itemgetter(0))}


def _forward_whole(program: Program, target: Target) -> Program:
    """The program without copies of whole variables to one destination, in the block that writes them."""
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
    program = structs.replace(program, variables=(*program.variables, *walk.places.added))
    return program.with_instructions(instructions)


class _Whole:
    """Lets instructions write to where copies take their results.

    Attributes:
        kept: the program's instructions, None for those that were removed.
        places: the variables, and aliases that were added.
    """

    def __init__(self, program: Program, moved: Sequence[_Moved], target: Target) -> None:
        self.kept: list[Instruction | None] = list(program.instructions)
        self.places = VariableAliases(program, target)
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
        destination_bytes = written << delta if delta >= 0 else written >> -delta
        accessed, copy_positions = self._accesses[to], {*moved.copies}
        if any(
            bits & destination_bytes for at, bits in accessed.items() if first <= at < last and at not in copy_positions
        ):
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
        written = 0
        for at in writers:
            inst = self.kept[at]
            if inst is None or not isinstance(inst.values.get("dst"), (Raw, Destination)):
                return 0
            writes = effects(inst, self._target).writes
            if len(writes) > 1 or not writes[0].whole or not self._flow.certain(inst):
                return 0
            written |= span_bits(writes[0])
        return written

    def _destination(self, copies: Sequence[int]) -> tuple[Variable, int, int] | None:
        """Where copies take bytes: the variable, the distance, and the bytes as a mask; None for several distances."""
        destination_bytes, targets = 0, set()
        for at in copies:
            inst = self.kept[at]
            if inst is None or not self._flow.certain(inst):
                return None
            source, places = bytes_of(inst["src0"], inst.exec_size, self._target)
            to, target_bytes = bytes_of(inst["dst"], inst.exec_size, self._target)
            targets |= {(to, t - p) for p, t in zip(places, target_bytes)}
            if len(places) != len(target_bytes) or source == to or len(targets) > 1:
                return None
            element = (1 << inst["dst"].var.format.bytes) - 1
            for place in places:
                destination_bytes |= element << place
        ((to, delta),) = targets
        return to, delta, destination_bytes

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
    def __init__(self, program: Program, target: Target, flow: ControlFlowGraph) -> None:
        self.target, self.flow = target, flow
        self.places = VariableAliases(program, target)
        moved = _only_moved(program, target).items()
        self.only_moved = {v for v, known in moved if len(known.writers) == len(known.copies) == 1}

    def block(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        """A block's instructions, with results written to the destinations of moves."""
        rewritten: list[Instruction | None] = []
        results: dict[Variable, _Result] = {}
        accessed: dict[Variable, int] = {}
        for at, inst in enumerate(instructions):
            moved = self._moved(inst, results, accessed, rewritten)
            if moved:
                result, new = moved
                rewritten[result] = new
                rewritten.append(None)
                at, inst = result, new
            else:
                rewritten.append(inst)
            accesses = effects(inst, self.target)
            for access in (*accesses.reads, *accesses.writes):
                accessed[access.var] = max(at, accessed.get(access.var, -1))
            dst = inst.values.get("dst")
            if isinstance(dst, Destination) and self._is_plain(inst) and dst.var.root[0] in self.only_moved:
                results[dst.var.root[0]] = _Result(at, bytes_of(dst, inst.exec_size, self.target)[1])
        return [inst for inst in rewritten if inst]

    def _is_plain(self, inst: Instruction) -> bool:
        plain = INSTRUCTIONS[inst.name].category in ("alu", "math") and len(effects(inst, self.target).written) == 1
        return plain and self.flow.certain(inst)

    def _moved(
        self,
        inst: Instruction,
        results: dict[Variable, _Result],
        accessed: dict[Variable, int],
        rewritten: Sequence[Instruction | None],
    ) -> tuple[int, Instruction] | None:
        """For a move of a result: the position of its definition, and the definition with the move's destination."""
        if not is_copy(inst) or not self.flow.certain(inst):
            return None
        root, places = bytes_of(inst["src0"], inst.exec_size, self.target)
        result = results.get(root)
        if result is None or places != result.places:
            return None
        maker = rewritten[result.at]
        to, target_bytes = bytes_of(inst["dst"], inst.exec_size, self.target)
        if maker is None or maker.exec_size != inst.exec_size or accessed.get(to, -1) > result.at:
            return None
        if accessed.get(to) == result.at and not self._reads_in_place(maker, to, target_bytes):
            return None
        size = maker["dst"].var.format.bytes
        dst = self.places.destination(
            to, maker["dst"].var.type, target_bytes[0], target_bytes[-1] + size, inst["dst"].stride
        )
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


# Loop-invariant code motion.


class _Loop(Struct, frozen=True):
    """The blocks from a label to the last jump back to it. Control enters only from the preceding block."""

    first: int
    last: int


def hoist(program: Program, target: Target, budget: int) -> Program:
    """The program with invariant arithmetic moved out of loops, innermost loops first.

    This is correct for any number of iterations: a moved instruction has no side effect, its result is written nowhere
    else and is not live into the loop, and its operands are defined before the loop.

    Args:
        budget: bytes of registers that the moved values may occupy during their loops.
    """
    flow = flow_of(program)
    loops = _loops(flow)
    if not loops:
        return program
    return _Hoist(program, flow, target, budget).run(loops)


def has_loops(program: Program) -> bool:
    """Whether the program has a loop that `hoist` handles."""
    return bool(_loops(flow_of(program)))


def _loops(flow: ControlFlowGraph) -> list[_Loop]:
    """Loops that control enters only at the first block, from the preceding block; inner loops first."""
    last: dict[int, int] = {}
    for number, successors in enumerate(flow.successors):
        for successor in successors:
            # A back edge of divergent lanes forms no loop of the whole thread.
            if 0 < successor <= number and number in flow.spans and flow.blocks[number]:
                last[successor] = max(last.get(successor, 0), number)
    loops = [_Loop(first, end) for first, end in last.items() if _is_closed(flow, first, end)]
    return sorted(loops, key=lambda loop: (loop.last - loop.first, loop.first))


def _is_closed(flow: ControlFlowGraph, first: int, last: int) -> bool:
    if first - 1 not in flow.predecessors[first]:
        return False
    for number in range(first, last + 1):
        for predecessor in flow.predecessors[number]:
            inside = first <= predecessor <= last
            if not inside and (number != first or predecessor != first - 1):
                return False
    return True


class _Hoist:
    """Moves instructions; `before` has those to insert in front of each block."""

    def __init__(self, program: Program, flow: ControlFlowGraph, target: Target, budget: int) -> None:
        self.program, self.flow, self.target, self.budget = program, flow, target, budget
        self.liveness = liveness_of(program, target)
        self.blocks: list[list[Instruction]] = [list(program.instructions[b.start : b.stop]) for b in flow.blocks]
        self.before: dict[int, list[Instruction]] = {}
        self.sites, self.rewritten = write_sites(program, flow, target)

    def run(self, loops: Sequence[_Loop]) -> Program:
        for loop in loops:
            self._empty(loop)
        if not any(self.before.values()):
            return self.program
        instructions: list[Instruction] = []
        for number, block in enumerate(self.blocks):
            instructions += [*self.before.get(number, ()), *block]
        return self.program.with_instructions(instructions)

    def _inside(self, loop: _Loop) -> Iterator[list[Instruction]]:
        """The lists of instructions of a loop, in order."""
        for number in range(loop.first, loop.last + 1):
            if number > loop.first and number in self.before:
                yield self.before[number]
            yield self.blocks[number]

    def _empty(self, loop: _Loop) -> None:
        changing: dict[Root, int] = {}
        for block in self._inside(loop):
            for inst in block:
                for root in effects(inst, self.target).written:
                    changing[root] = changing.get(root, 0) + 1
        out = self.before.setdefault(loop.first, [])
        for block in self._inside(loop):
            remaining = []
            for inst in block:
                if self._is_invariant(inst, loop, changing):
                    out.append(inst)
                    self._leave(inst, changing)
                else:
                    remaining.append(inst)
            block[:] = remaining

    def _leave(self, inst: Instruction, changing: dict[Root, int]) -> None:
        accesses = effects(inst, self.target)
        for root in accesses.written:
            changing[root] -= 1
        self.budget -= sum(access.end - access.start for access in accesses.writes)

    def _is_invariant(self, inst: Instruction, loop: _Loop, changing: dict[Root, int]) -> bool:
        if INSTRUCTIONS[inst.name].category not in ("alu", "math") or not self.flow.certain(inst):
            return False
        accesses = effects(inst, self.target)
        if accesses.sets:
            # A longer live range of one of the few predicates costs more than it saves.
            return False
        results = [a.var for a in accesses.writes]
        if any(root in self.rewritten or self.liveness.enters(loop.first, root) for root in results):
            return False
        if sum(a.end - a.start for a in accesses.writes) > self.budget:
            return False
        return all(self._is_fixed(root, loop, changing) for root in accesses.read)

    def _is_fixed(self, root: Root, loop: _Loop, changing: dict[Root, int]) -> bool:
        """Whether a variable is defined before a loop and unchanged in it."""
        if changing.get(root, 0):
            return False
        sites = self.sites.get(root)
        if not sites:
            return isinstance(root, Variable)
        if root in self.rewritten:
            # The loop does not write it, so it needs a definition before the loop.
            return any(self.flow.dominates(n, loop.first - 1) for n in sites)
        # Definitions that were moved out of the loop precede it.
        return all(loop.first <= n <= loop.last or self.flow.dominates(n, loop.first - 1) for n in sites)


# Scheduling of loads before their use: a load starts as soon as its address is known.
#
# Messages keep their order, so that memory sees the same accesses. No instruction moves across a jump, a label, a
# barrier, a fence, or `fence_sw` (the lowering of `xegpu.compile_hint`). Arithmetic that no load depends on follows the
# loads, in its original order.

_FENCES = ("control", "sync")


def schedule_loads(program: Program, target: Target, budget: int) -> Program:
    """The program with loads moved up.

    Args:
        budget: bytes of registers that may be live at once; a load that would exceed it is not moved.
    """
    flow = flow_of(program)
    liveness = liveness_of(program, target)
    instructions: list[Instruction] = []
    for number, block in enumerate(flow.blocks):
        inside = program.instructions[block.start : block.stop]
        if not any(_is_load(i) for i in inside):
            instructions += inside
            continue
        instructions += _schedule_block(inside, _Live(liveness, number), target, budget)
    return program.with_instructions(instructions)


def _is_load(inst: Instruction) -> bool:
    return INSTRUCTIONS[inst.name].category == "load"


def _schedule_block(instructions: Sequence[Instruction], live: _Live, target: Target, budget: int) -> list[Instruction]:
    """Schedule each piece of a block between its fences."""
    pieces: list[tuple[list[Instruction], Instruction | None]] = []
    inside: list[Instruction] = []
    for inst in instructions:
        if INSTRUCTIONS[inst.name].category in _FENCES:
            pieces.append((inside, inst))
            inside = []
        else:
            inside.append(inst)
    reversed_order: list[Instruction] = []
    # Liveness is known at the end of the block, so pieces are scheduled from the last one.
    for piece, fence in reversed([*pieces, (inside, None)]):
        if fence:
            reversed_order.append(fence)
            live.add(_read(fence, target))
        order = _Piece(piece, live, target, budget).order() if any(map(_is_load, piece)) else piece
        reversed_order += reversed(order)
        for inst in piece:
            live.add(_read(inst, target))
    return reversed_order[::-1]


class _Live:
    """The live variables at a point of a backward walk over a block, and their total bytes."""

    def __init__(self, liveness: Liveness, block: int) -> None:
        self._liveness, self._block = liveness, block
        self._read: set[Root] = set()
        self.bytes = liveness.bytes_after(block)

    def __contains__(self, root: Root) -> bool:
        return root in self._read or self._liveness.leaves(self._block, root)

    def add(self, roots: set[Root]) -> None:
        """Add variables to the live set."""
        for root in roots:
            if root not in self:
                self._read.add(root)
                self.bytes += _size(root)


def _read(inst: Instruction, target: Target) -> set[Root]:
    return set(effects(inst, target).read)


class _Places(Struct):
    """The last writer of a location, and its readers since."""

    writer: int = -1
    readers: list[int] = field(default_factory=list)


class _Piece:
    """Consecutive instructions without a fence."""

    def __init__(self, instructions: Sequence[Instruction], after: _Live, target: Target, budget: int) -> None:
        self.instructions, self.after, self.target, self.budget = instructions, after, target, budget
        # Instructions after the last load are not moved.
        self.count = max(at + 1 for at, inst in enumerate(instructions) if _is_load(inst))
        self.next: list[set[int]] = [set() for _ in range(self.count)]
        self.waits = [0] * self.count
        self._depend()

    def _depend(self) -> None:
        locations: dict[tuple[Root, int], _Places] = {}
        message = -1
        for at, inst in enumerate(self.instructions[: self.count]):
            accesses = effects(inst, self.target)
            reads: list[tuple[Root, int]] = [(a.var, c) for a in accesses.reads for c in chunks_of(a.start, a.end)]
            writes: list[tuple[Root, int]] = [(a.var, c) for a in accesses.writes for c in chunks_of(a.start, a.end)]
            reads += [(p, 0) for p in accesses.tests]
            writes += [(accesses.sets, 0)] if accesses.sets else []
            for key in (*reads, *writes):
                if key not in locations:
                    locations[key] = _Places()
            for key in reads:
                location = locations[key]
                self._edge(location.writer, at)
                location.readers.append(at)
            for key in writes:
                location = locations[key]
                self._edge(location.writer, at)
                for reader in location.readers:
                    self._edge(reader, at)
                locations[key] = _Places(at)
            if INSTRUCTIONS[inst.name].category in MESSAGES:
                self._edge(message, at)
                message = at

    def _edge(self, before: int, after: int) -> None:
        if before >= 0 and before != after and after not in self.next[before]:
            self.next[before].add(after)
            self.waits[after] += 1

    def _urgency(self) -> list[int]:
        """For each instruction the first load that depends on it; the number of instructions if none does."""
        none = self.count
        first_loads = [none] * none
        for at in reversed(range(none)):
            own_load = at if _is_load(self.instructions[at]) else none
            first_loads[at] = min([own_load, *(first_loads[n] for n in self.next[at])])
        return first_loads

    def order(self) -> list[Instruction]:
        """The order with loads, and the instructions they depend on, as early as the registers allow."""
        urgency = self._urgency()
        count = self.count
        early: list[tuple[int, int]] = []
        plain: list[int] = []
        waits = list(self.waits)
        scheduled = [False] * count
        ahead = _Ahead(self.instructions, _profile(self.instructions, self.after, self.target), self.target)

        def ready(at: int) -> None:
            heapq.heappush(plain, at)
            if urgency[at] < count:
                heapq.heappush(early, (urgency[at], at))

        for at, waiting in enumerate(waits):
            if not waiting:
                ready(at)
        found: list[Instruction] = []
        while len(found) < count:
            while early and scheduled[early[0][1]]:
                heapq.heappop(early)
            while scheduled[plain[0]]:
                heapq.heappop(plain)
            at = plain[0]
            if early and ahead.with_early(early[0][1]) <= self.budget:
                at = early[0][1]
            scheduled[at] = True
            found.append(self.instructions[at])
            ahead.run(at)
            for successor in self.next[at]:
                waits[successor] -= 1
                if not waits[successor]:
                    ready(successor)
        return [*found, *self.instructions[count:]]


def _profile(instructions: Sequence[Instruction], after: _Live, target: Target) -> list[int]:
    """The live bytes at each instruction in the original order. A variable is live as a whole."""
    first: dict[Root, int] = {}
    last: dict[Root, int] = {}
    for at, inst in enumerate(instructions):
        reads = _read(inst, target)
        for root in reads:
            # A variable that is read before it is written is live into the piece.
            first.setdefault(root, 0)
            last[root] = at
        for access in effects(inst, target).writes:
            first.setdefault(access.var, at)
            last[access.var] = at
    change = [0] * (len(instructions) + 1)
    through = after.bytes
    for root, begin in first.items():
        size = _size(root)
        change[begin] += size
        if root in after:
            through -= size
        else:
            change[last[root] + 1] -= size
    return [through + live for live in accumulate(change[:-1])]


class _Ahead:
    """The registers that instructions moved ahead of their original position occupy."""

    def __init__(self, instructions: Sequence[Instruction], profile: Sequence[int], target: Target) -> None:
        self._writes = [[a.var for a in effects(inst, target).writes] for inst in instructions]
        self._done = [False] * len(instructions)
        self._next = 0
        self._held: dict[Root, int] = {}
        self._bytes = 0
        # Row n holds, for each instruction, the maximum over the 2^n instructions that start with it.
        self._most = [np.array(profile)]
        while len(self._most[-1]) > 1 << (len(self._most) - 1):
            step, row = 1 << (len(self._most) - 1), self._most[-1]
            self._most.append(np.maximum(row[:-step], row[step:]))

    def with_early(self, at: int) -> int:
        """The most live bytes between the current position and instruction `at`, if it is moved here."""
        span = at - self._next + 1
        row = self._most[span.bit_length() - 1]
        most = max(row[self._next], row[at + 1 - (1 << (span.bit_length() - 1))])
        return int(most) + self._bytes + sum(_size(r) for r in set(self._writes[at]) if r not in self._held)

    def run(self, at: int) -> None:
        """Schedule instruction `at` next."""
        self._done[at] = True
        if at > self._next:
            for root in self._writes[at]:
                if root not in self._held:
                    self._bytes += _size(root)
                self._held[root] = self._held.get(root, 0) + 1
            return
        self._next += 1
        while self._next < len(self._done) and self._done[self._next]:
            for root in self._writes[self._next]:
                self._held[root] -= 1
                if not self._held[root]:
                    del self._held[root]
                    self._bytes -= _size(root)
            self._next += 1


def _size(root: Root) -> int:
    return 0 if isinstance(root, Predicate) else root.bytes
