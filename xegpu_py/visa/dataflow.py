"""Dataflow of instructions: uses and defs, the control-flow graph, and live intervals."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, structs

from xegpu_py.numerics.formats import Array
from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.messages import address_base
from xegpu_py.visa.operands import (
    HEADER,
    STATE,
    Address,
    AddressOf,
    Destination,
    Flag,
    Indirect,
    Predicate,
    Raw,
    Region,
    Variable,
    Vector,
    first_byte,
)
from xegpu_py.visa.program import Instruction, Program, analysis
from xegpu_py.visa.spec import LANES, MESSAGES

# Uses and defs of instructions: bytes of variables, and lanes of predicates.


class Access(Struct, frozen=True, gc=False):
    """An instruction's access to a variable.

    Attributes:
        var: the variable that is not an alias.
        writes: whether it is written, else read.
        start, end: the bytes of `var` in which the access lies.
        whole: whether the access covers all of these bytes, whatever lanes are enabled.
    """

    var: Variable
    writes: bool
    start: int
    end: int
    whole: bool


def accesses(inst: Instruction, target: Target) -> tuple[Access, ...]:
    """The reads of an instruction, then its writes."""
    inst_effects = effects(inst, target)
    return inst_effects.reads + inst_effects.writes


def span_bits(access: Access) -> int:
    """The bytes of an access as a mask of those of its variable."""
    return ((1 << (access.end - access.start)) - 1) << access.start


Root = Variable | Predicate
"""Storage: a variable that is not an alias, of bytes; or a predicate, of bits."""


class Effects(Struct, frozen=True, gc=False):
    """The effects of an instruction on a thread's state.

    Attributes:
        target: the target on which it has them.
        reads, writes: its accesses to general variables.
        tests: predicates that it reads, its guard among them.
        sets: the predicate that it writes, or None.
        lanes: lanes of that predicate that it writes for certain, as (first, end); None where it may leave some.
    """

    target: Target
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    tests: tuple[Predicate, ...]
    sets: Predicate | None
    lanes: tuple[int, int] | None

    @property
    def read(self) -> list[Root]:
        """The variables and predicates that it reads."""
        return [*(access.var for access in self.reads), *self.tests]

    @property
    def written(self) -> list[Root]:
        """The variables and predicates that it writes."""
        return [*(access.var for access in self.writes), *([self.sets] if self.sets else [])]


def effects(inst: Instruction, target: Target) -> Effects:
    """The effects of an instruction, if all its lanes are enabled."""
    # Instructions are immutable and every analysis needs their effects, so the result is kept.
    cached: Effects | None = inst.known.get("effects")
    if cached is None or cached.target is not target:
        cached = _effects(inst, target)
        inst.known["effects"] = cached
    return cached


def _effects(inst: Instruction, target: Target) -> Effects:
    spec, grf = INSTRUCTIONS[inst.name], target.grf_bytes
    reads: list[Access] = []
    writes: list[Access] = []
    tests = [inst.guard.var] if inst.guard else []
    sets = None
    # A predicate that selects decides which value is written, not whether one is written.
    guarded = inst.guard is not None and not spec.selects
    all_lanes = inst.no_mask or spec.all_lanes
    single = spec.category in MESSAGES and inst.exec_size == 1
    data = inst.values.get("data")
    # The lanes of each element begin at a register and may leave the rest of it unwritten.
    rows = data.row_bytes(inst.exec_size, grf) if data and data.vector > 1 and not data.transpose else 0
    ragged = data is not None and rows not in (0, inst.exec_size * data.register_bytes)
    for slot in spec.slots:
        value = inst.values[slot.name]
        # To ask `isinstance` of records takes seven times as long.
        kind, var = type(value), getattr(value, "var", None)
        if kind is Flag:
            if slot.use == "write":
                sets = var
            else:
                tests.append(var)
        elif kind is Indirect:
            address_start = 4 * value.col
            address_end = address_start + 4 * value.addresses(inst.exec_size)
            reads.append(Access(value.var, False, address_start, address_end, True))
            base_accesses = [Access(base.root[0], slot.use == "write", *_extent(base), False) for base in value.bases]
            (writes if slot.use == "write" else reads).extend(base_accesses)
        elif kind is AddressOf:
            pass
        elif type(var) is Variable:
            root, offset = var.root
            packed = True
            start = offset + first_byte(value, grf)
            if kind is Region or kind is Destination:
                address_end, packed = value.reach(1 if slot.kind == "scalar" else inst.exec_size)
                end_byte = start + (address_end + 1) * var.format.bytes
            else:
                assert slot.bytes
                end_byte = start + slot.bytes(inst, target)
            covers_all = not guarded and not ragged and (single or (packed and (all_lanes or slot.kind == "dst")))
            access = Access(root, slot.use == "write", start, end_byte, covers_all)
            (writes if access.writes else reads).append(access)
            if kind is Address and isinstance(base := address_base(inst), Region):
                start = first_byte(base, grf) + base.var.root[1]
                reads.append(Access(base.var.root[0], False, start, start + base.var.format.bytes, True))
    if spec.second:
        (low,), row_distance = writes, spec.second(inst, target).row - inst["dst"].row
        writes.append(structs.replace(low, start=low.start + row_distance * grf, end=low.end + row_distance * grf))
    lanes = None
    if sets and inst.guard is None:
        lanes = (inst.first_lane, inst.first_lane + inst.exec_size)
    return Effects(target, tuple(reads), tuple(writes), tuple(tests), sets, lanes)


def _extent(var: Variable) -> tuple[int, int]:
    """The bytes of a variable in that of which it is an alias."""
    start = var.root[1]
    return start, start + var.bytes


def referenced_variables(instructions: Iterable[Instruction]) -> set[Variable | Predicate]:
    """The variables and predicates of operands of instructions, and the variables that these are aliases of."""
    named: set[Variable | Predicate | Any] = set()
    add = named.add
    for inst in instructions:
        if inst.guard:
            add(inst.guard.var)
        for operand in inst.values.values():
            kind = type(operand)
            if kind in _NAMES_VARIABLE:
                add(operand.var)
            if kind in _WITH_BASES:
                named.update(_bases(operand))
    named.discard(None)
    for var in list(named):
        while type(var) is Variable and var.alias:
            var = var.alias[0]
            add(var)
    return named


_NAMES_VARIABLE = frozenset((Region, Destination, Raw, Vector, Indirect, AddressOf, Address, Flag))
"""The classes of operands with a variable or predicate; other operands are constants and words."""

_WITH_BASES = frozenset((Indirect, Address))


def _bases(operand: Indirect | Address) -> tuple[Variable, ...]:
    """The variables that an operand names beside its own."""
    if isinstance(operand, Indirect):
        return operand.bases
    return (operand.base.var,) if isinstance(operand.base, Region) else ()


# Basic blocks of a program, with their successors, predecessors and dominators.


class ControlFlowGraph:
    """The control-flow graph of a program, as a hardware thread sees it.

    A thread always executes its lanes that are at the earliest instruction of the program. Lanes that diverge at a
    `goto` wait, after the `goto` or at its label, until the other lanes arrive there or move beyond that place. After
    a forward jump or a `ret`, the thread continues at the next place where lanes may wait.

    Attributes:
        blocks: the instructions of each block, by their indices. Blocks without any come last: each leads to a place
            where lanes may wait, and to the next of them.
        successors: for each block those that may run next.
        divergent: whether lanes may diverge, so that an instruction without NoMask may leave lanes of its result.
    """

    def __init__(self, program: Program) -> None:
        """The flow of a program's instructions."""
        instructions, labels = program.instructions, program.labels
        count = len(instructions)
        self.divergent = any(INSTRUCTIONS[i.name].diverges(i) or INSTRUCTIONS[i.name].calls for i in instructions)
        waits = sorted(_reconvergence_points(instructions, labels)) if self.divergent else []
        specs = [INSTRUCTIONS[i.name] for i in instructions]
        block_ends = {at + 1 for at, spec in enumerate(specs) if spec.jumps or spec.ends or spec.calls}
        starts = sorted({0, *labels.values(), *waits, *block_ends} - {count})
        self.blocks = [range(a, b) for a, b in zip(starts, [*starts[1:], count])]
        number = {block.start: n for n, block in enumerate(self.blocks)}
        waiting = {at: len(self.blocks) + n for n, at in enumerate(waits)}
        self.successors: list[list[int]] = []
        callers = _callers(program) if any(spec.calls for spec in specs) else {}
        for block in self.blocks:
            at = block.stop - 1
            terminator, spec = instructions[at], specs[at]
            targets = [number[labels[label]] for label in spec.targets(terminator)]
            if spec.calls:
                targets += [number[labels[name]] for name in callees(terminator, program)]
            if spec.ends and at in callers:
                targets += [number[site] for site in callers[at]]
            if not spec.ends and (not spec.goes_together(terminator) or terminator.guard) and block.stop in number:
                targets.append(number[block.stop])
            if spec.ends or any(labels[label] > at for label in spec.targets(terminator)):
                next_wait = bisect.bisect_right(waits, at)
                targets += [waiting[w] for w in waits[next_wait : next_wait + 1]]
            self.successors.append(targets)
        for n, at in enumerate(waits):
            self.successors.append([number[at], *(waiting[w] for w in waits[n + 1 : n + 2])])
        self.blocks += [range(at, at) for at in waits]

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """The predecessors of each block."""
        predecessors_of: list[list[int]] = [[] for _ in self.blocks]
        for number, successors in enumerate(self.successors):
            for successor in successors:
                predecessors_of[successor].append(number)
        return predecessors_of

    @cached_property
    def order(self) -> list[int]:
        """The blocks that can be reached, in reverse postorder."""
        postorder: list[int] = []
        visited = {0}
        stack = [(0, iter(self.successors[0]))]
        while stack:
            number, pending = stack[-1]
            for successor in pending:
                if successor not in visited:
                    visited.add(successor)
                    stack.append((successor, iter(self.successors[successor])))
                    break
            else:
                postorder.append(number)
                stack.pop()
        return postorder[::-1]

    @cached_property
    def dominators(self) -> dict[int, int]:
        """The immediate dominator of each block that can be reached; the first block's is itself."""
        rank = {number: i for i, number in enumerate(self.order)}
        idom = {0: 0}
        changed = True
        while changed:
            changed = False
            for number in self.order[1:]:
                new_idom = -1
                for predecessor in self.predecessors[number]:
                    if predecessor in idom:
                        new_idom = predecessor if new_idom < 0 else _meet(new_idom, predecessor, idom, rank)
                if idom.get(number) != new_idom:
                    idom[number] = new_idom
                    changed = True
        return idom

    @cached_property
    def spans(self) -> dict[int, tuple[int, int]]:
        """The entry and exit numbers of each reachable block in a walk of the dominator tree."""
        children: dict[int, list[int]] = {}
        for number in self.order[1:]:
            children.setdefault(self.dominators[number], []).append(number)
        intervals: dict[int, tuple[int, int]] = {}
        entered: dict[int, int] = {}
        clock, stack = 0, [0]
        while stack:
            number = stack.pop()
            if number < 0:
                intervals[~number] = (entered[~number], clock)
                continue
            entered[number] = clock
            clock += 1
            stack += [~number, *reversed(children.get(number, []))]
        return intervals

    def dominates(self, a: int, b: int) -> bool:
        """Whether block `a` dominates block `b`: each path to `b` leads through `a`."""
        if a not in self.spans or b not in self.spans:
            return False
        start, end = self.spans[a]
        return start <= self.spans[b][0] < end

    def certain(self, inst: Instruction) -> bool:
        """Whether an instruction writes its result for all its lanes."""
        guarded = inst.guard is not None and not INSTRUCTIONS[inst.name].selects
        return not guarded and (not self.divergent or inst.no_mask)


def divergent_lanes(program: Program) -> range:
    """The lanes in which threads can diverge, those of the instructions at which they do; all if there are none."""
    diverging = [i for i in program.instructions if INSTRUCTIONS[i.name].diverges(i) or INSTRUCTIONS[i.name].calls]
    if not diverging:
        return range(LANES)
    return range(min(i.first_lane for i in diverging), max(i.first_lane + i.exec_size for i in diverging))


@analysis
def flow_of(program: Program) -> ControlFlowGraph:
    """The control-flow graph of a program, computed once."""
    return ControlFlowGraph(program)


def _meet(a: int, b: int, dominators: dict[int, int], rank: dict[int, int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = dominators[a]
        while rank[b] > rank[a]:
            b = dominators[b]
    return a


def callees(inst: Instruction, program: Program) -> list[str]:
    """The labels of the functions that a call may call: of one by address all but the kernel itself."""
    if "label" in inst.values:
        return [inst["label"]]
    return [inst["callee"]] if "callee" in inst.values else list(program.functions[1:])


@analysis
def has_calls(program: Program) -> bool:
    """Whether a program calls functions."""
    return any(INSTRUCTIONS[inst.name].calls for inst in program.instructions)


def returns(program: Program, at: int) -> bool:
    """Whether instruction `at`, which ends lanes, returns them to a caller."""
    return program.instructions[at].name == "fret" or program.function_of[at] > 0


def _callers(program: Program) -> dict[int, list[int]]:
    """The instructions at which each return may continue, by the index of the return."""
    sites: dict[int, list[int]] = {}
    for at, inst in enumerate(program.instructions):
        if INSTRUCTIONS[inst.name].calls:
            for name in callees(inst, program):
                sites.setdefault(program.function_of[program.labels[name]], []).append(at + 1)
    return {
        at: sites.get(program.function_of[at], [])
        for at, inst in enumerate(program.instructions)
        if INSTRUCTIONS[inst.name].ends and returns(program, at)
    }


def _reconvergence_points(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> set[int]:
    """Return the instructions at which lanes that diverged at a `goto` may wait for the others."""
    reconvergence = set()
    for at, inst in enumerate(instructions):
        spec = INSTRUCTIONS[inst.name]
        if spec.calls:
            reconvergence.add(at + 1)
        for label in spec.targets(inst):
            to = labels[label]
            if to > at:
                reconvergence.add(to)
            elif spec.diverges(inst):
                # Lanes that jump back are behind those that do not jump.
                reconvergence.add(at + 1)
    return reconvergence - {len(instructions)}


@analysis
def polls(program: Program) -> bool:
    """Whether workgroups may wait for others: a loop, or anything in a program with calls, reads global memory."""
    instructions = list(enumerate(program.instructions))
    reading = [i for i, inst in instructions if INSTRUCTIONS[inst.name].category in ("load", "atomic")]
    reads = [i for i in reading if program.instructions[i].values.get("sfid") != "slm"]
    if has_calls(program):
        return bool(reads)
    jumps = [(label, i) for i, inst in instructions for label in INSTRUCTIONS[inst.name].targets(inst)]
    loops = [(program.labels[label], i) for label, i in jumps]
    return any(start <= i < end for start, end in loops for i in reads)


def writes_all(inst: Instruction, access: Access, flow: ControlFlowGraph) -> bool:
    """Whether an access certainly writes all of its bytes."""
    return access.whole and flow.certain(inst)


# Live intervals of variables, and live variables at the begin and end of blocks.


_HEADER = frozenset(HEADER.values())

_Change = tuple[int, Root, int, int, bool, bool]
"""The index of an instruction, the bytes or lanes that it accesses, and whether it writes them, and all for certain."""


def _changes(
    instructions: Sequence[Instruction], target: Target, block: range, flow: ControlFlowGraph
) -> Iterator[_Change]:
    """The accesses of a block. Where lanes may have diverged, a masked write kills nothing."""
    for at in block:
        inst = instructions[at]
        inst_effects, kills_lanes = effects(inst, target), not flow.divergent or inst.no_mask
        for predicate in inst_effects.tests:
            yield at, predicate, 0, predicate.count, False, False
        for access in inst_effects.reads:
            yield at, access.var, access.start, access.end, False, False
        for access in inst_effects.writes:
            yield at, access.var, access.start, access.end, True, access.whole and kills_lanes
        if inst_effects.sets and inst_effects.lanes and flow.certain(inst):
            yield at, inst_effects.sets, *inst_effects.lanes, True, True


class Liveness:
    """Live variables and predicates at the begin and end of blocks.

    Variables' bytes and predicates' lanes are cut into pieces, such that each access covers a piece wholly or not at
    all. A set of pieces is the bits of an int. Only those of variables that may hold a value across blocks, or across
    executions of one block, have a bit.
    """

    def __init__(self, program: Program, target: Target) -> None:
        """The liveness of variables that are no aliases, and of predicates.

        It is computed when it is asked for: passes that ask what leaves the one block of a program need nothing of it.
        """
        # Not the program, which keeps this among the results of its analyses.
        self._instructions, self._inputs = program.instructions, program.inputs
        self._target, self._flow = target, flow_of(program)

    @cached_property
    def _changes(self) -> list[list[_Change]]:
        flow = self._flow
        return [list(_changes(self._instructions, self._target, block, flow)) for block in flow.blocks]

    @cached_property
    def _accesses(self) -> tuple[dict[Root, tuple[int, int]], dict[Root, set[int]]]:
        """The first and last access of each variable, inputs being written before the first instruction; its cuts."""
        first: dict[Root, int] = {}
        last: dict[Root, int] = {}
        cuts: dict[Root, set[int]] = {}
        for block_changes in self._changes:
            for at, root, start, end, _, _ in block_changes:
                last[root] = at
                if root in first:
                    cut_points = cuts[root]
                    cut_points.add(start)
                    cut_points.add(end)
                else:
                    first[root], cuts[root] = at, {start, end}
        accessed = {root: (at, last[root]) for root, at in first.items()}
        self._live_in: set[Root] = {item.var.root[0] for item in self._inputs}
        self._live_in |= first.keys() & set(STATE.values())
        for var in self._live_in:
            accessed[var] = (0, last.get(var, 0))
        return accessed, cuts

    @cached_property
    def _in(self) -> list[int]:
        """The pieces that may still be read, where each block begins."""
        _, cuts = self._accesses
        index = {root: {at: n for n, at in enumerate(sorted(cut_points))} for root, cut_points in cuts.items()}
        self._summaries = [_summary(block_changes, index) for block_changes in self._changes]
        # Of a long program they are many.
        del self._changes
        self._number(index)
        return self._solved()

    @cached_property
    def ranges(self) -> dict[Variable, tuple[int, int]]:
        """The first and last instruction, by index, between which each variable that is no alias needs its registers.

        A byte is live where a value may have been written to it and may still be read before the byte is certainly
        overwritten. A variable's range spans all places at which one of its bytes is live, or accessed. Inputs are
        written before the first instruction.
        """
        ranges = dict(self._accesses[0])
        if any(self._flow.successors):
            bounds = self._live_bounds()
            for root, live_from, live_to in zip(self._roots, *(bound.tolist() for bound in bounds)):
                ranges[root] = (min(ranges[root][0], live_from), max(ranges[root][1], live_to))
        return {var: interval for var, interval in ranges.items() if isinstance(var, Variable) and var not in _HEADER}

    @cached_property
    def unwritten(self) -> list[Variable]:
        """The variables, none of them an alias or an input, of which a byte may be read before it is written."""
        entering = self.entering(0) if self._in else []
        return [v for v in entering if isinstance(v, Variable) and v not in self._live_in and v not in _HEADER]

    def _number(self, index: Mapping[Root, Mapping[int, int]]) -> None:
        """Give the pieces of variables that may be live across blocks their bits."""
        blocks = Counter(root for summaries in self._summaries for root in summaries)
        read = {root for summaries in self._summaries for root, summary in summaries.items() if summary.read}
        self._roots = [root for root, count in blocks.items() if count > 1 or root in self._live_in or root in read]
        counts = [len(index[root]) - 1 for root in self._roots]
        bit_ends = np.cumsum(counts, dtype=np.int64)
        self._owner = np.repeat(np.arange(len(counts)), counts)
        self._bits = {root: ((1 << n) - 1, int(bit_end) - n) for root, n, bit_end in zip(self._roots, counts, bit_ends)}
        self._uses, self._kills = (
            [self._union(summaries, name) for summaries in self._summaries] for name in ("read", "killed")
        )

    def _union(self, summaries: Mapping[Root, _Summary], name: str) -> int:
        """Return the union of the pieces in a field of the summaries of a block."""
        fields = (
            (self._bits[root][1], getattr(summary, name)) for root, summary in summaries.items() if root in self._bits
        )
        total = shift = 0
        # From the highest bits on: most variables of a block have adjacent ones, so that few numbers are long.
        for at, field_bits in sorted(fields, reverse=True):
            total, shift = (total << shift - at if total else 0) | field_bits, at
        return total << shift

    def _solved(self) -> list[int]:
        flow = self._flow
        live_in = [0] * len(flow.blocks)
        # Backwards, so that few rounds are needed: one for each level of loops, and two more.
        order = [*reversed(flow.order), *(set(range(len(flow.blocks))) - set(flow.order))] if flow.blocks else []
        changed = True
        while changed:
            changed = False
            for number in order:
                live_out = 0
                for successor in flow.successors[number]:
                    live_out |= live_in[successor]
                live = self._uses[number] | (live_out & ~self._kills[number])
                if live != live_in[number]:
                    live_in[number] = live
                    changed = True
        return live_in

    def _live_bounds(self) -> tuple[Array, Array]:
        """Return, for each variable, the first and the last block boundary at which a live piece may have a value."""
        entering, flow, blocks = self._in, self._flow, self._flow.blocks
        first_point, last_point = np.full(len(self._roots), np.iinfo(np.int64).max), np.full(len(self._roots), -1)
        reaching_in, reaching_out = [0] * len(blocks), [0] * len(blocks)
        if blocks:
            reaching_in[0] = entering[0] & sum(
                mask << at for root, (mask, at) in self._bits.items() if root in self._live_in
            )
        def_bits = [self._union(summaries, "written") for summaries in self._summaries]
        todo = list(range(len(blocks)))[::-1]
        while todo:
            number = todo.pop()
            live_defined = (def_bits[number] | reaching_in[number]) & self._out(number)
            if live_defined == reaching_out[number]:
                continue
            reaching_out[number] = live_defined
            for successor in flow.successors[number]:
                live_in = live_defined & entering[successor]
                if live_in & ~reaching_in[successor]:
                    reaching_in[successor] |= live_in
                    todo.append(successor)
        for block, live_in, live_defined in zip(blocks, reaching_in, reaching_out):
            for at, live_bits in ((block.start, live_in), (block.stop - 1, live_defined)):
                owners = self._owners(live_bits)
                first_point[owners], last_point[owners] = (
                    np.minimum(first_point[owners], at),
                    np.maximum(last_point[owners], at),
                )
        return first_point, last_point

    def _owners(self, piece_bits: int) -> Array:
        """The indices of the variables that have pieces of a set; some more than once."""
        data = np.frombuffer(piece_bits.to_bytes(len(self._owner) // 8 + 1, "little"), np.uint8)
        nonzero = np.flatnonzero(data)
        row, bit = np.nonzero(np.unpackbits(data[nonzero, None], axis=1, bitorder="little"))
        return self._owner[8 * nonzero[row] + bit]

    def _out(self, block: int) -> int:
        live = 0
        for successor in self._flow.successors[block]:
            live |= self._in[successor]
        return live

    def _has(self, piece_bits: int, root: Root) -> bool:
        mask, at = self._bits.get(root, (0, 0))
        return bool(piece_bits >> at & mask)

    def entering(self, block: int) -> list[Root]:
        """The variables that are no aliases, and predicates, that are live at the begin of a block."""
        return [self._roots[n] for n in dict.fromkeys(self._owners(self._in[block]).tolist())]

    def enters(self, block: int, var: Root) -> bool:
        """Whether a variable that is not an alias is live at the begin of a block."""
        return self._has(self._in[block], var)

    def leaves(self, block: int, var: Root) -> bool:
        """Whether a variable that is not an alias is live at the end of a block."""
        return any(self._has(self._in[successor], var) for successor in self._flow.successors[block])

    def bytes_after(self, block: int) -> int:
        """Bytes of the general variables that are live at the end of a block."""
        live_out = self._out(block)
        live = {self._roots[n] for n in set(self._owners(live_out).tolist())} if live_out else ()
        return sum(var.bytes for var in live if isinstance(var, Variable))


class _Summary(Struct):
    """Uses and defs of a variable in a block, by its pieces: read before a def, possibly written, and killed."""

    read: int = 0
    written: int = 0
    killed: int = 0


def _summary(changes: Sequence[_Change], index: Mapping[Root, Mapping[int, int]]) -> dict[Root, _Summary]:
    summaries: dict[Root, _Summary] = {}
    for _, root, start, end, writes, kills in changes:
        piece_bits = (1 << index[root][end]) - (1 << index[root][start])
        summary = summaries.get(root)
        if summary is None:
            summary = summaries[root] = _Summary()
        if not writes:
            summary.read |= piece_bits & ~summary.killed
            continue
        summary.written |= piece_bits
        if kills:
            summary.killed |= piece_bits
    return summaries


FACTORS = ("src1", "src2")
"""The operands of dpas and bdpas that are matrices, of which the rule `dpas-uninitialized` speaks."""


def factors(inst: Instruction) -> list[Variable]:
    """The variables of the matrices that an instruction multiplies; none if it is no dpas."""
    return [inst[name].var for name in FACTORS] if INSTRUCTIONS[inst.name].category == "dpas" else []


@analysis
def may_multiply_unwritten(program: Program, target: Target) -> bool:
    """Whether a dpas may have a factor of which a byte was never written."""
    roots = {var.root[0] for inst in program.instructions for var in factors(inst)}
    return bool(roots) and not roots.isdisjoint(liveness_of(program, target).unwritten)


@analysis
def liveness_of(program: Program, target: Target) -> Liveness:
    """The live variables of a program, computed once."""
    return Liveness(program, target)
