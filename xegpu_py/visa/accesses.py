"""Uses and defs of instructions: bytes of variables, and lanes of predicates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, structs

from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Destination, Flag, Predicate, Region, Variable, first_byte
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import MESSAGES


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
    known = effects(inst, target)
    return known.reads + known.writes


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
        """Everything that it reads."""
        return [*(access.var for access in self.reads), *self.tests]

    @property
    def written(self) -> list[Root]:
        """Everything that it writes."""
        return [*(access.var for access in self.writes), *([self.sets] if self.sets else [])]


def effects(inst: Instruction, target: Target) -> Effects:
    """The effects of an instruction, if all its lanes are enabled."""
    # Instructions are immutable and every analysis needs their effects, so the result is kept.
    known: Effects | None = inst.effects
    if known is None or known.target is not target:
        known = _effects(inst, target)
        structs.force_setattr(inst, "effects", known)
    return known


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
        var = getattr(value, "var", None)
        if isinstance(value, Flag):
            if slot.use == "write":
                sets = var
            else:
                tests.append(var)
        elif isinstance(var, Variable):
            root, offset = var.root
            packed = True
            start = offset + first_byte(value, grf)
            if isinstance(value, (Region, Destination)):
                last, packed = value.reach(1 if slot.kind == "scalar" else inst.exec_size)
                end = start + (last + 1) * var.format.bytes
            else:
                assert slot.bytes
                end = start + slot.bytes(inst, target)
            whole = not guarded and not ragged and (single or (packed and (all_lanes or slot.kind == "dst")))
            access = Access(root, slot.use == "write", start, end, whole)
            (writes if access.writes else reads).append(access)
    lanes = None
    if sets and inst.guard is None:
        lanes = (inst.first_lane, inst.first_lane + inst.exec_size)
    return Effects(target, tuple(reads), tuple(writes), tuple(tests), sets, lanes)


def named_by(instructions: Iterable[Instruction]) -> set[Variable | Predicate]:
    """The variables and predicates that instructions name, and the variables that these are aliases of."""
    known = list(instructions)
    found: set[Variable | Predicate | Any] = {
        getattr(operand, "var", None) for inst in known for operand in inst.values.values()
    }
    found |= {inst.guard.var for inst in known if inst.guard}
    found.discard(None)
    for var in list(found):
        while isinstance(var, Variable) and var.alias:
            var = var.alias[0]
            found.add(var)
    return found
