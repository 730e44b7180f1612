"""What instructions read and write: bytes of variables, and lanes of predicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Destination, Flag, Predicate, Region, Variable, first_byte
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import OperandSpec


class Access(NamedTuple):
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


def accesses(inst: Instruction, target: Target) -> tuple[Access, ...]:
    """What an instruction reads, then what it writes."""
    found = effects(inst, target)
    return found.reads + found.writes


def _access(slot: OperandSpec, inst: Instruction, target: Target) -> Access | None:
    value = inst[slot.name]
    var = getattr(value, "var", None)
    if not isinstance(var, Variable):
        return None
    root, offset = var.root
    packed = True
    start = offset + first_byte(value, target.grf_bytes)
    if isinstance(value, (Region, Destination)):
        last, packed = value.reach(1 if slot.kind == "scalar" else inst.exec_size)
        end = start + (last + 1) * var.format.bytes
    else:
        assert slot.bytes
        end = start + slot.bytes(inst, target)
    spec = INSTRUCTIONS[inst.name]
    # A predicate that selects decides what is written, and not whether.
    guarded = inst.guard is not None and not spec.selects
    whole = packed and not guarded and (inst.no_mask or spec.all_lanes or slot.kind == "dst")
    if spec.is_message and inst.exec_size == 1:
        whole = not guarded
    if "data" in inst.values and inst["data"].vector > 1 and not inst["data"].transpose:
        # Each element's lanes begin at a register, and may leave the rest of it alone.
        whole &= inst.exec_size * inst["data"].register_bytes % target.grf_bytes == 0
    return Access(root, slot.use == "write", start, end, whole)


def span_bits(access: Access) -> int:
    """The bytes of an access as a mask of those of its variable."""
    return ((1 << (access.end - access.start)) - 1) << access.start


Root = Variable | Predicate
"""What holds something: a variable that is no alias, whose places are its bytes; or a predicate, and its bits."""


@dataclass(frozen=True)
class Effects:
    """What an instruction does to a thread's state.

    Attributes:
        reads, writes: accesses to general variables.
        tests: predicates that it reads, its guard among them.
        sets: the predicate that it writes, or None.
        lanes: lanes of that predicate that it writes for certain, as (first, end); None where it may leave some.
    """

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
    """What an instruction reads and writes, on its own: whether its lanes are enabled is not asked."""
    # An instruction does not change, and is asked for its effects by each analysis.
    known: tuple[Target, Effects] | None = inst.__dict__.get("_effects")
    if known is None or known[0] is not target:
        known = inst.__dict__["_effects"] = (target, _effects(inst, target))
    return known[1]


def _effects(inst: Instruction, target: Target) -> Effects:
    reads: list[Access] = []
    writes: list[Access] = []
    tests = [inst.guard.var] if inst.guard else []
    sets = None
    for slot in INSTRUCTIONS[inst.name].slots:
        value = inst.values[slot.name]
        if isinstance(value, Flag):
            if slot.use == "write":
                sets = value.var
            else:
                tests.append(value.var)
            continue
        access = _access(slot, inst, target)
        if access:
            (writes if slot.use == "write" else reads).append(access)
    lanes = None
    if sets and inst.guard is None:
        lanes = (inst.first_lane, inst.first_lane + inst.exec_size)
    return Effects(tuple(reads), tuple(writes), tuple(tests), sets, lanes)
