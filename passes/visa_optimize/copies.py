"""Copy propagation: operands read the source of a copy instead of its destination."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.visa_optimize.facts import Facts, Source, tested_bits
from xegpu_py.passes.visa_optimize.places import Places, bytes_of, start_of
from xegpu_py.target import Target
from xegpu_py.visa.accesses import Root
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.memory import holds_payload
from xegpu_py.visa.operands import BUILTINS, Address, Flag, Guard, Raw, Region, Variable, Vector
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import OperandSpec
from xegpu_py.visa.verify import instruction_problem


class Copies:
    """Rewrites the sources of instructions."""

    def __init__(self, facts: Facts, places: Places, target: Target) -> None:
        """Use these facts; `places` declares aliases for operands of other types."""
        self._facts, self._places, self._target = facts, places, target

    def rewrite(self, inst: Instruction) -> Instruction:
        """The instruction with its sources and predicates replaced by those that they are copies of."""
        for slot in INSTRUCTIONS[inst.name].slots:
            if slot.use == "read":
                inst = self._rewrite_slot(inst, slot)
        guard = inst.guard
        if guard and self._facts.has_copies(guard.var):
            bits = tested_bits(inst, guard)
            other = self._predicate(guard, bits)
            if other and (not guard.control or other.count == guard.var.count):
                inst = self._accept(inst, inst.replaced(guard=replace(guard, var=other)))
        return inst

    def _rewrite_slot(self, inst: Instruction, slot: OperandSpec) -> Instruction:
        value = inst[slot.name]
        var = getattr(value, "var", None)
        if var is None or not self._facts.has_copies(var if isinstance(value, Flag) else var.root[0]):
            return inst
        new: Any = None
        if isinstance(value, Flag):
            lanes = var.count if inst.name == "mov" else inst.first_lane + inst.exec_size
            other = self._predicate(value, range(0 if inst.name == "mov" else inst.first_lane, lanes))
            if other and (inst.name != "mov" or other.count == var.count):
                new = Flag(other)
        elif isinstance(value, Region):
            new = self._region(inst, slot, value)
        elif isinstance(value, (Raw, Vector, Address)) and slot.bytes:
            new = self._run(slot, value, slot.bytes(inst, self._target))
        if new is None:
            return inst
        root = None if isinstance(new, Flag) else new.var.root[0]
        dst = getattr(inst.values.get("dst"), "var", None)
        payload = isinstance(value, Address) and holds_payload(value, inst, self._target)
        if payload and not holds_payload(new, inst, self._target):
            return inst
        if root is not None and dst is not None and not isinstance(inst["dst"], Flag) and dst.root[0] == root:
            # The instruction would overwrite bytes that it reads, and not all hardware executes it in one step.
            return inst
        return self._accept(inst, inst.replaced(values={**inst.values, slot.name: new}))

    def _accept(self, old: Instruction, new: Instruction) -> Instruction:
        return old if instruction_problem(new, self._target) else new

    def _predicate(self, value: Flag | Guard, bits: range) -> Any:
        """The predicate that all these bits are copied from, at the same bit positions."""
        found: set[Root] = set()
        for bit in bits:
            source = self._facts.copied(value.var, bit, 1)
            if source is None or source.at != bit:
                return None
            found.add(source.root)
        return found.pop() if len(found) == 1 else None

    def _sources(self, root: Root, places: list[int], size: int) -> list[Source] | None:
        """The bytes that these elements are copies of; None if these are not all in one variable."""
        found: list[Source] = []
        for at in places:
            source = self._facts.copied(root, at, size)
            if source is None or (found and source.root != found[0].root):
                return None
            found.append(source)
        return found

    def _region(self, inst: Instruction, slot: OperandSpec, value: Region) -> Region | None:
        root, places = bytes_of(value, 1 if slot.kind == "scalar" else inst.exec_size, self._target)
        size = value.var.format.bytes
        sources = self._sources(root, places, size)
        if sources is None:
            return None
        source = sources[0].root
        assert isinstance(source, Variable)
        at = [s.at for s in sources]
        found = self._places.region(source, value.var.type, at, value.modifier)
        if found is None and source in BUILTINS.values() and self._wraps(inst, slot, value):
            # A built-in variable has no aliases; its own type works where the sign does not matter.
            found = self._places.region(source, source.type, at, value.modifier)
        if found is None or slot.kind == "scalar" or found.is_scalar:
            return found
        plain = (value.vstride, value.width, value.hstride)
        strides = (found.vstride, found.width, found.hstride)
        repeats = found.hstride == 0 or (found.vstride == 0 and found.hstride == 1)
        # The finalizer may insert a copy for a region of rows: for a move no more than it replaces.
        return found if strides == plain or strides == (1, 1, 0) or repeats or inst.name == "mov" else None

    def _wraps(self, inst: Instruction, slot: OperandSpec, value: Region) -> bool:
        dst = inst.values.get("dst")
        if slot.kind == "scalar":
            return False
        same = value.var.format.kind in "us" and value.var.format.bytes == 4
        if (
            not INSTRUCTIONS[inst.name].low_bits
            or inst.saturate
            or value.modifier
            or dst is None
            or isinstance(dst, Flag)
        ):
            return False
        return same and not TYPES[dst.var.type].is_float and dst.var.format.bytes <= value.var.format.bytes

    def _run(self, slot: OperandSpec, value: Raw | Vector | Address, size: int) -> Any:
        """Consecutive bytes as the consecutive bytes that they were copied from."""
        root, start = start_of(value, self._target)
        at, source, first = start, None, 0
        while at < start + size:
            width = self._facts.copy_size(root, at)
            found = self._facts.copied(root, at, width) if width else None
            if found is None:
                return None
            if source is None:
                source, first = found.root, found.at
            elif found.root != source or found.at - first != at - start:
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


def copied_elements(inst: Instruction, facts: Facts, target: Target) -> list[tuple[int, Source]]:
    """For each element that a copy writes its first byte, and the location of its source."""
    _, to = bytes_of(inst["dst"], inst.exec_size, target)
    root, places = bytes_of(inst["src0"], inst.exec_size, target)
    size = inst["dst"].var.format.bytes
    at = places * len(to) if len(places) == 1 else places
    return [(place, Source(root, a, facts.stamp(root, a, a + size))) for place, a in zip(to, at)]
