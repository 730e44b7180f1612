"""Constant folding and constant propagation.

The interpreter evaluates the folded instructions, so that folding and execution give the same bits.
"""

from __future__ import annotations

from functools import cache

from xegpu_py.numerics.formats import TYPES, Format
from xegpu_py.passes.visa_optimize.facts import Facts, tested_bits
from xegpu_py.passes.visa_optimize.places import bytes_of
from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Flag, Immediate, Region
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.verify import instruction_problem

_IMMEDIATE_TYPES = ("uw", "w", "ud", "d", "hf", "f")
"""Types that an immediate operand of an instruction with two sources can have."""


@cache
def _constant_slots(instruction: str) -> tuple[list[str], list[str]]:
    """The scalar operands of an instruction that can be immediates, and all its sources."""
    slots = INSTRUCTIONS[instruction].slots
    return [s.name for s in slots if s.kind == "scalar" and s.immediate], [s.name for s in slots if s.kind == "src"]


def converted(value: Immediate, to: Format) -> int:
    """The bits of an integer constant in another integer type."""
    fmt = value.format
    negative = fmt.kind == "s" and value.bits >> (fmt.bits - 1)
    return (value.bits - (1 << fmt.bits if negative else 0)) % (1 << to.bits)


class Constants:
    """Folds instructions."""

    def __init__(self, facts: Facts, target: Target) -> None:
        """Use these facts."""
        self._facts, self._target = facts, target
        self._last: tuple[Instruction, tuple[int, ...] | None] | None = None

    def rewrite(self, inst: Instruction) -> Instruction | None:
        """The instruction simplified by the known values of its operands; None if it has no effect."""
        decided = self._decided(inst)
        if decided is not None:
            if INSTRUCTIONS[inst.name].selects:
                inst = self._chosen(inst, decided)
            elif not decided:
                return None
            else:
                inst = inst.replaced(guard=None)
        inst = self._with_immediates(inst)
        if INSTRUCTIONS[inst.name].category in ("alu", "math"):
            return self._without_effect(self._folded(inst))
        return inst

    def results(self, inst: Instruction) -> tuple[int, ...] | None:
        """The bits of each lane's result; None if an operand is unknown."""
        # Cached, because folding an instruction and recording its result both call this.
        if self._last is None or self._last[0] is not inst:
            self._last = inst, self._results(inst)
        return self._last[1]

    def _results(self, inst: Instruction) -> tuple[int, ...] | None:
        spec = INSTRUCTIONS[inst.name]
        if spec.category not in ("alu", "math") or spec.selects:
            return None
        sources: dict[str, tuple[int, ...]] = {}
        for name, value in inst.values.items():
            bits: tuple[int, ...] | None = None
            if name == "dst" or not isinstance(value, (Flag, Region)):
                continue
            if isinstance(value, Flag):
                every = inst.name == "mov"
                first = 0 if every else inst.first_lane
                count = value.var.count if every else inst.exec_size
                bits = self._facts.constants(value.var, range(first, first + count), 1)
            else:
                bits = self._known(value, inst.exec_size)
            if bits is None:
                return None
            sources[name] = bits
        # Imported only for kernels with constants to fold: it imports the golden functions.
        from xegpu_py.engines.evaluate import evaluate

        return evaluate(inst, sources, self._target)

    def _known(self, value: Region, lanes: int) -> tuple[int, ...] | None:
        root, places = bytes_of(value, lanes, self._target)
        bits = self._facts.constants(root, places, value.var.format.bytes)
        return bits * lanes if bits and len(bits) == 1 else bits

    def _decided(self, inst: Instruction) -> bool | None:
        """True if the predicate is set for all lanes of the instruction, False if for none; None if this is unknown."""
        guard = inst.guard
        if guard is None:
            return None
        bits = self._facts.constants(guard.var, tested_bits(inst, guard), 1)
        if bits is None:
            return None
        if guard.control:
            bits = (int(any(bits) if guard.control == "any" else all(bits)),)
        return bool(bits[0]) != guard.inverted if len(set(bits)) == 1 else None

    def _chosen(self, inst: Instruction, first: bool) -> Instruction:
        values = {"dst": inst["dst"], "src0": inst["src0" if first else "src1"]}
        moved = inst.replaced(name="mov", values=values, guard=None)
        return inst if instruction_problem(moved, self._target) else moved

    def _with_immediates(self, inst: Instruction) -> Instruction:
        scalars, sources = _constant_slots(inst.name)
        for name in scalars:
            inst = self._with_immediate(inst, name)
        regions = [name for name in sources if isinstance(inst.values[name], (Region, Immediate))]
        if len(regions) != 2 or INSTRUCTIONS[inst.name].named_barrier:
            return inst
        changed = self._with_immediate(inst, "src1")
        if changed is inst and INSTRUCTIONS[inst.name].commutes and isinstance(inst["src1"], Region):
            swapped = {**inst.values, "src0": inst["src1"], "src1": inst["src0"]}
            other = inst.replaced(values=swapped)
            changed = self._with_immediate(other, "src1")
            changed = inst if changed is other else changed
        return changed

    def _with_immediate(self, inst: Instruction, name: str) -> Instruction:
        """The instruction with an immediate in place of a scalar source."""
        value = inst[name]
        if not isinstance(value, Region) or value.var.type not in _IMMEDIATE_TYPES:
            return inst
        fmt = value.var.format
        if value.modifier and not fmt.is_float:
            # A negated integer may need one bit more than its type has.
            return inst
        lanes = 1 if INSTRUCTIONS[inst.name].slot(name).kind == "scalar" else inst.exec_size
        bits = self._known(value, lanes)
        if bits is None or len(set(bits)) > 1 or INSTRUCTIONS[inst.name].category == "math":
            return inst
        pattern = bits[0]
        if value.modifier:
            sign = 1 << (fmt.bits - 1)
            pattern = pattern & ~sign if "abs" in value.modifier else pattern
            pattern = pattern ^ sign if value.modifier.startswith("-") else pattern
        changed = inst.replaced(values={**inst.values, name: Immediate(pattern, value.var.type)})
        return inst if instruction_problem(changed, self._target) else changed

    def _folded(self, inst: Instruction) -> Instruction:
        """A move of the result, if it is known and equal in all lanes."""
        if isinstance(inst["dst"], Flag) or (inst.name == "mov" and isinstance(inst["src0"], Immediate)):
            return inst
        results = self.results(inst)
        if results is None or len(set(results)) > 1:
            return inst
        return self._moved(inst, Immediate(results[0], inst["dst"].var.type)) or inst

    def _moved(self, inst: Instruction, source: Region | Immediate) -> Instruction | None:
        """The move that replaces an instruction; None if no move can."""
        if isinstance(source, Immediate) and TYPES[source.type].bits == 8:
            return None
        values = {"dst": inst["dst"], "src0": source}
        moved = inst.replaced(name="mov", values=values, saturate=False)
        return None if instruction_problem(moved, self._target) else moved

    def _without_effect(self, inst: Instruction) -> Instruction:
        """The move that replaces an integer operation whose result is one of its operands, or zero."""
        source, other = inst.values.get("src0"), inst.values.get("src1")
        if not isinstance(source, Region) or not isinstance(other, Immediate) or source.modifier:
            return inst
        dst = inst["dst"]
        if isinstance(dst, Flag) or any(TYPES[t].is_float for t in (source.var.type, other.type, dst.var.type)):
            return inst
        if inst.saturate and not source.var.type == other.type == dst.var.type:
            return inst
        spec, constant = INSTRUCTIONS[inst.name], converted(other, dst.var.format)
        if constant == 0 and spec.zero:
            return self._moved(inst, Immediate(0, dst.var.type)) or inst
        if spec.identity is None or constant != spec.identity[0] % (1 << dst.var.format.bits):
            return inst
        wider = dst.var.format.bytes - source.var.format.bytes
        if (spec.identity[1] == "narrower" and wider > 0) or (spec.identity[1] == "same" and wider):
            return inst
        return self._moved(inst, source) or inst
