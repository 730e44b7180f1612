"""Copy propagation, address strength reduction and dead code elimination."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from msgspec import structs

from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.visa_optimize.constant_propagation import (
    Constants,
    Depends,
    ElementSource,
    Facts,
    VariableAliases,
    bytes_of,
    chunks_of,
    converted,
    is_number,
    never,
    start_of,
)
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import (
    ControlFlowGraph,
    Liveness,
    Root,
    effects,
    flow_of,
    liveness_of,
    referenced_variables,
    span_bits,
    writes_all,
)
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.messages import holds_payload
from xegpu_py.visa.operands import (
    BUILTINS,
    Address,
    Destination,
    Flag,
    Immediate,
    Predicate,
    Raw,
    Region,
    Variable,
    Vector,
)
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import OperandSpec
from xegpu_py.visa.verify import instruction_problem

# The walk over a program that simplifies instructions by the known facts about their operands.


def rewrite_values(program: Program, target: Target, steps: Container[str], depends: Depends = never) -> Program:
    """The program after those of the steps "fold", "copies" and "addresses" that are in `steps`.

    Args:
        depends: the instructions that are not folded, since modes that `%cr0` has change their results.
    """
    flow = flow_of(program)
    walk = _Walk(program, target, flow, steps, depends)
    rewritten: dict[int, list[Instruction]] = {}
    for number in sorted(flow.spans, key=lambda n: flow.spans[n]):
        block = flow.blocks[number]
        rewritten[number] = walk.block(number, program.instructions[block.start : block.stop])
    instructions: list[Instruction] = []
    for number, block in enumerate(flow.blocks):
        instructions += rewritten.get(number, program.instructions[block.start : block.stop])
    if walk.places.added:
        program = structs.replace(program, variables=(*program.variables, *walk.places.added))
    return program.with_instructions(instructions)


class _Walk:
    """One walk over a program."""

    def __init__(
        self, program: Program, target: Target, flow: ControlFlowGraph, steps: Container[str], depends: Depends
    ) -> None:
        self.flow, self.steps = flow, steps
        self.facts = Facts(program, flow, target)
        self.places = VariableAliases(program, target)
        reads: dict[Root, int] = {}
        for inst in program.instructions:
            for access in effects(inst, target).reads:
                reads[access.var] = reads.get(access.var, 0) + 1
        self.copies = Copies(self.facts, self.places, target)
        self.constants = Constants(self.facts, target, depends)
        self.addresses = Addresses(self.facts, self.places, target, reads)
        self.target = target

    def block(self, number: int, instructions: Sequence[Instruction]) -> list[Instruction]:
        """A block's instructions, rewritten."""
        self.facts.enter(number)
        rewritten = []
        for inst in instructions:
            new = self._rewrite(inst)
            if new is not None and self._note(new):
                rewritten.append(new)
        self.facts.leave()
        return rewritten

    def _rewrite(self, inst: Instruction) -> Instruction | None:
        if "copies" in self.steps:
            inst = self.copies.rewrite(inst)
        if "fold" in self.steps:
            folded = self.constants.rewrite(inst)
            if folded is None:
                return None
            inst = folded
        return self.addresses.rewrite(inst) if "addresses" in self.steps else inst

    def _note(self, inst: Instruction) -> bool:
        """Record the facts that hold after an instruction; False if all of them held before it."""
        dst = inst.values.get("dst")
        if not isinstance(dst, (Destination, Flag)) or not self.flow.certain(inst):
            self.facts.write(inst)
            return True
        root, offsets, size = self._result(inst)
        constants = self.constants.results(inst) if "fold" in self.steps else None
        copies = copied_elements(inst, self.facts, self.target) if is_copy(inst) and "copies" in self.steps else []
        sums = self.addresses.sums(inst) if "addresses" in self.steps else []
        if copies and all((s.root, s.at) == (root, offset) for offset, s in copies):
            return False
        self.facts.write(inst)
        for offset, bits in zip(offsets, constants or ()):
            self.facts.note_constant(root, offset, size, bits)
        for offset, source in copies:
            self.facts.note_copy(root, offset, size, source)
        for offset, source in sums:
            self.facts.note_sum(root, offset, size, source)
        return True

    def _result(self, inst: Instruction) -> tuple[Root, list[int], int]:
        """The variable that an arithmetic instruction writes, the first byte of each lane's element, and its width."""
        dst = inst["dst"]
        if isinstance(dst, Flag):
            return dst.var, list(range(inst.first_lane, inst.first_lane + inst.exec_size)), 1
        root, offsets = bytes_of(dst, inst.exec_size, self.target)
        return root, offsets, dst.var.format.bytes


# Copy propagation: operands read the source of a copy instead of its destination.


class Copies:
    """Rewrites the sources of instructions."""

    def __init__(self, facts: Facts, places: VariableAliases, target: Target) -> None:
        """Use these facts; `places` declares aliases for operands of other types."""
        self._facts, self._places, self._target = facts, places, target

    def rewrite(self, inst: Instruction) -> Instruction:
        """The instruction with its sources replaced by those that they are copies of."""
        for slot in INSTRUCTIONS[inst.name].slots:
            if slot.use == "read":
                inst = self._rewrite_slot(inst, slot)
        return inst

    def _rewrite_slot(self, inst: Instruction, slot: OperandSpec) -> Instruction:
        value = inst[slot.name]
        var = getattr(value, "var", None)
        # No instruction copies a predicate to another one.
        if var is None or isinstance(value, Flag) or not self._facts.has_copies(var.root[0]):
            return inst
        new: Any = None
        if isinstance(value, Region):
            new = self._region(inst, slot, value)
        elif isinstance(value, (Raw, Vector, Address)) and slot.bytes:
            new = self._run(slot, value, slot.bytes(inst, self._target))
        if new is None:
            return inst
        root = new.var.root[0]
        dst = getattr(inst.values.get("dst"), "var", None)
        payload = isinstance(value, Address) and holds_payload(value, inst, self._target)
        if payload and not holds_payload(new, inst, self._target):
            return inst
        if dst is not None and not isinstance(inst["dst"], Flag) and dst.root[0] == root:
            # The instruction would overwrite bytes that it reads, and not all hardware executes it in one step.
            return inst
        replaced = inst.replaced(values={**inst.values, slot.name: new})
        return inst if instruction_problem(replaced, self._target) else replaced

    def _sources(self, root: Root, offsets: list[int], size: int) -> list[ElementSource] | None:
        """The bytes that these elements are copies of; None if these are not all in one variable."""
        sources: list[ElementSource] = []
        for at in offsets:
            source = self._facts.copied(root, at, size)
            if source is None or (sources and source.root != sources[0].root):
                return None
            sources.append(source)
        return sources

    def _region(self, inst: Instruction, slot: OperandSpec, value: Region) -> Region | None:
        root, offsets = bytes_of(value, 1 if slot.kind == "scalar" else inst.exec_size, self._target)
        size = value.var.format.bytes
        sources = self._sources(root, offsets, size)
        if sources is None:
            return None
        source = sources[0].root
        assert isinstance(source, Variable)
        at = [s.at for s in sources]
        region = self._places.region(source, value.var.type, at, value.modifier)
        if region is None and source in BUILTINS.values() and self._wraps(inst, slot, value):
            # A built-in variable has no aliases; its own type works where the sign does not matter.
            region = self._places.region(source, source.type, at, value.modifier)
        if region is None or slot.kind == "scalar" or region.is_scalar:
            return region
        plain = (value.vstride, value.width, value.hstride)
        strides = (region.vstride, region.width, region.hstride)
        repeats = region.hstride == 0 or (region.vstride == 0 and region.hstride == 1)
        # The finalizer may insert a copy for a region of rows: for a move no more than it replaces.
        return region if strides == plain or strides == (1, 1, 0) or repeats or inst.name == "mov" else None

    def _wraps(self, inst: Instruction, slot: OperandSpec, value: Region) -> bool:
        dst = inst.values.get("dst")
        if slot.kind == "scalar":
            return False
        same = value.var.format.kind in "us" and value.var.format.bytes == 4
        wraps = INSTRUCTIONS[inst.name].low_bits and not inst.saturate and not value.modifier
        if not wraps or dst is None or isinstance(dst, Flag):
            return False
        return same and not TYPES[dst.var.type].is_float and dst.var.format.bytes <= value.var.format.bytes

    def _run(self, slot: OperandSpec, value: Raw | Vector | Address, size: int) -> Any:
        """Consecutive bytes as the consecutive bytes that they were copied from."""
        root, start = start_of(value, self._target)
        at, source, first = start, None, 0
        while at < start + size:
            width = self._facts.copy_size(root, at)
            copied = self._facts.copied(root, at, width) if width else None
            if copied is None:
                return None
            if source is None:
                source, first = copied.root, copied.at
            elif copied.root != source or copied.at - first != at - start:
                return None
            at += width
        if at != start + size or not isinstance(source, Variable):
            return None
        # The type of a message's payload does not matter.
        type_name = value.var.type if slot.types or isinstance(value, Address) else source.type
        if isinstance(value, Vector):
            return self._places.vector(source, type_name, first, first + size)
        raw = self._places.raw(source, type_name, first, first + size)
        if raw is None:
            return None
        return Address(raw.var, raw.offset, value.plus) if isinstance(value, Address) else raw


def is_copy(inst: Instruction) -> bool:
    """Whether an instruction moves bits unchanged."""
    if inst.name != "mov" or inst.saturate:
        return False
    source = inst["src0"]
    if not isinstance(source, Region) or source.modifier:
        return False
    to, of = inst["dst"].var.format, source.var.format
    return bool(to.name == of.name or (to.bytes == of.bytes and not to.is_float and not of.is_float))


def copied_elements(inst: Instruction, facts: Facts, target: Target) -> list[tuple[int, ElementSource]]:
    """For each element that a copy writes its first byte, and the location of its source."""
    _, to = bytes_of(inst["dst"], inst.exec_size, target)
    root, offsets = bytes_of(inst["src0"], inst.exec_size, target)
    size = inst["dst"].var.format.bytes
    at = offsets * len(to) if len(offsets) == 1 else offsets
    return [(offset, ElementSource(root, a, facts.stamp(root, a, a + size))) for offset, a in zip(to, at)]


# Address strength reduction: products become shifts, and constants become offsets of messages.

_OFFSETS = range(-(1 << 19), 1 << 19)
"""Range of the constant offset that a message adds to its addresses."""


class Addresses:
    """Rewrites products as shifts, and moves added constants into messages."""

    def __init__(self, facts: Facts, places: VariableAliases, target: Target, reads: dict[Root, int]) -> None:
        """Use these facts; `reads` is the number of operands that read each variable."""
        self._facts, self._places, self._target, self._reads = facts, places, target, reads

    def rewrite(self, inst: Instruction) -> Instruction:
        """The instruction, cheaper."""
        if inst.name == "mul":
            return self._shifted(inst)
        if isinstance(inst.values.get("address"), Address):
            return self._with_offset(inst)
        return inst

    def _shifted(self, inst: Instruction) -> Instruction:
        source, factor, dst = inst["src0"], inst["src1"], inst["dst"]
        if not isinstance(source, Region) or not is_number(factor) or inst.saturate or source.modifier:
            return inst
        if any(TYPES[t].is_float for t in (source.var.type, factor.type, dst.var.type)):
            return inst
        if dst.var.format.bytes != 4 or source.var.format.bytes != 4 or factor.bits & (factor.bits - 1):
            return inst
        if factor.bits < 2 or factor.bits >> (TYPES[factor.type].bits - 1):
            return inst
        count = Immediate(factor.bits.bit_length() - 1, "ud")
        return inst.replaced(name="shl", values={"dst": dst, "src0": source, "src1": count})

    def _with_offset(self, inst: Instruction) -> Instruction:
        operand: Address = inst["address"]
        root, start = start_of(operand, self._target)
        if self._reads.get(root, 0) != 1:
            # Other operands read the sum, so it is computed in any case.
            return inst
        size = 8 if inst["address_size"] == "a64" else 4
        lanes = range(inst.exec_size)
        sums = [self._facts.sum_of(root, start + size * i, size) for i in lanes]
        first = sums[0]
        if first is None or not isinstance(first.root, Variable):
            return inst
        for i, address_sum in zip(lanes, sums):
            location = (address_sum.root, address_sum.at - size * i, address_sum.plus) if address_sum else None
            if location != (first.root, first.at, first.plus):
                return inst
        plus = operand.plus + first.plus
        plus -= (1 << 8 * size) if plus >= 1 << (8 * size - 1) else 0
        raw = self._places.raw(first.root, operand.var.type, first.at, first.at + size * inst.exec_size)
        if raw is None or plus not in _OFFSETS:
            return inst
        address = Address(raw.var, raw.offset, plus)
        changed = inst.replaced(values={**inst.values, "address": address})
        if holds_payload(operand, inst, self._target) and not holds_payload(address, inst, self._target):
            return inst
        return inst if instruction_problem(changed, self._target) else changed

    def sums(self, inst: Instruction) -> list[tuple[int, ElementSource]]:
        """For an addition of a constant: the first byte of each element written, and the sum that it holds."""
        source, constant = inst.values.get("src0"), inst.values.get("src1")
        if inst.name != "add" or not isinstance(source, Region) or not is_number(constant):
            return []
        dst = inst["dst"]
        if inst.saturate or source.modifier or isinstance(dst, Flag):
            return []
        types = [TYPES[t] for t in (source.var.type, constant.type, dst.var.type)]
        if any(t.is_float for t in types) or types[0].bytes != types[2].bytes:
            return []
        plus, size = converted(constant, types[2]), types[2].bytes
        _, to = bytes_of(dst, inst.exec_size, self._target)
        root, offsets = bytes_of(source, inst.exec_size, self._target)
        at = offsets * len(to) if len(offsets) == 1 else offsets
        found = []
        for offset, a in zip(to, at):
            inner = self._facts.sum_of(root, a, size)
            if inner:
                total = (inner.plus + plus) % (1 << 8 * size)
                found.append((offset, ElementSource(inner.root, inner.at, inner.stamp, total)))
            else:
                found.append((offset, ElementSource(root, a, self._facts.stamp(root, a, a + size), plus)))
        return found


# Dead code elimination: unread results, jumps to the next instruction, unused labels and unreachable code.


def remove_dead_code(program: Program, target: Target) -> Program:
    """The program without instructions, jumps and labels that have no effect."""
    program = _remove_idle_jumps(_remove_unreachable(program))
    if len(flow_of(program).blocks) > 1:
        # In a single block the backward walk finds all unread results.
        program = _remove_unread(program, target)
    return _remove_overwritten(program, target)


def is_removable(inst: Instruction) -> bool:
    """Whether an instruction has no effect besides writing registers: arithmetic, dpas, and loads."""
    category = INSTRUCTIONS[inst.name].category
    if category == "load":
        # A load with a null destination is a prefetch.
        dst = inst["dst"]
        return isinstance(dst, Raw) and dst.var is not None
    return category in ("alu", "math", "dpas")


def _remove_unreachable(program: Program) -> Program:
    flow = flow_of(program)
    reached = set(flow.order)
    reachable = [program.instructions[b.start : b.stop] for n, b in enumerate(flow.blocks) if n in reached]
    return program.with_instructions([i for block in reachable for i in block])


def _remove_idle_jumps(program: Program) -> Program:
    """Remove jumps to the next instruction, and labels that no jump names."""
    instructions = program.instructions
    remaining = []
    for at, inst in enumerate(instructions):
        if not INSTRUCTIONS[inst.name].uniform or not _is_next(instructions, at, inst["label"]):
            remaining.append(inst)
    named = {i["label"] for i in remaining if INSTRUCTIONS[i.name].jumps}
    remaining = [i for i in remaining if i.name != "label" or i["label"] in named]
    return program.with_instructions(remaining)


def _is_next(instructions: tuple[Instruction, ...], at: int, label: str) -> bool:
    for inst in instructions[at + 1 :]:
        if inst.name != "label":
            return False
        if inst["label"] == label:
            return True
    return False


def _remove_unread(program: Program, target: Target) -> Program:
    """Remove instructions whose results no instruction with an effect depends on, in any order of execution."""
    # By variable and chunk; a predicate has one chunk.
    writers: dict[Root, dict[int, list[int]]] = {}
    instructions = program.instructions
    worklist = []
    for at, inst in enumerate(instructions):
        if is_removable(inst):
            accesses = effects(inst, target)
            for access in accesses.writes:
                chunks = writers.setdefault(access.var, {})
                for chunk in chunks_of(access.start, access.end):
                    chunks.setdefault(chunk, []).append(at)
            if accesses.sets:
                writers.setdefault(accesses.sets, {}).setdefault(0, []).append(at)
        else:
            worklist.append(at)
    live = set(worklist)
    while worklist:
        accesses = effects(instructions[worklist.pop()], target)
        read = [
            by.pop(c)
            for a in accesses.reads
            if (by := writers.get(a.var))
            for c in chunks_of(a.start, a.end)
            if c in by
        ]
        read += [by.pop(0) for p in accesses.tests if (by := writers.get(p))]
        # All writers of a needed location are needed.
        new = {at for found in read for at in found} - live
        live |= new
        worklist += new
    return program.with_instructions([i for at, i in enumerate(instructions) if at in live])


def _remove_overwritten(program: Program, target: Target) -> Program:
    """Remove writes that are overwritten before they are read."""
    flow = flow_of(program)
    liveness = liveness_of(program, target)
    remaining: list[Instruction] = []
    for number in reversed(range(len(flow.blocks))):
        block = flow.blocks[number]
        live = _Live(liveness, number)
        for inst in reversed(program.instructions[block.start : block.stop]):
            if _step_back(inst, live, flow, target):
                remaining.append(inst)
    return program.with_instructions(remaining[::-1])


class _Live:
    """The live bytes of variables and live bits of predicates at a point of a block, as masks."""

    def __init__(self, liveness: Liveness, block: int) -> None:
        self._liveness, self._block = liveness, block
        self._masks: dict[Variable | Predicate, int] = {}

    def __getitem__(self, var: Variable | Predicate) -> int:
        mask = self._masks.get(var)
        if mask is None:
            # At the end of a block a variable is live as a whole or not at all.
            mask = _every(var) if self._liveness.leaves(self._block, var) else 0
            self._masks[var] = mask
        return mask

    def __setitem__(self, var: Variable | Predicate, mask: int) -> None:
        self._masks[var] = mask


def _every(var: Variable | Predicate) -> int:
    return (1 << (var.count if isinstance(var, Predicate) else var.bytes)) - 1


def _step_back(inst: Instruction, live: _Live, flow: ControlFlowGraph, target: Target) -> bool:
    """Update the live set from after an instruction to before it; False if the instruction is dead."""
    accesses = effects(inst, target)
    if is_removable(inst):
        needed = any(live[a.var] & span_bits(a) for a in accesses.writes)
        if not needed and not (accesses.sets and live[accesses.sets]):
            return False
    for access in accesses.writes:
        if writes_all(inst, access, flow) and live[access.var]:
            live[access.var] &= ~span_bits(access)
    if accesses.sets and accesses.lanes and flow.certain(inst):
        first, end = accesses.lanes
        live[accesses.sets] &= ~((1 << end) - (1 << first))
    for access in accesses.reads:
        live[access.var] |= span_bits(access)
    for predicate in accesses.tests:
        live[predicate] = _every(predicate)
    return True


def without_unused_declarations(program: Program) -> Program:
    """The program without variables and predicates that no instruction names. Inputs are kept."""
    used = referenced_variables(program.instructions) | {i.var for i in program.inputs}
    variables = tuple(v for v in program.variables if v in used)
    predicates = tuple(p for p in program.predicates if p in used)
    if len(variables) == len(program.variables) and len(predicates) == len(program.predicates):
        return program
    return structs.replace(program, variables=variables, predicates=predicates)
