"""Address strength reduction: products become shifts, and constants become offsets of messages."""

from __future__ import annotations

from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.visa_optimize.constants import converted
from xegpu_py.passes.visa_optimize.facts import Facts, Source
from xegpu_py.passes.visa_optimize.places import Places, bytes_of, start_of
from xegpu_py.target import Target
from xegpu_py.visa.accesses import Root
from xegpu_py.visa.memory import holds_payload
from xegpu_py.visa.operands import Address, Flag, Immediate, Region, Variable
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.verify import instruction_problem

_OFFSETS = range(-(1 << 19), 1 << 19)
"""Range of the constant offset that a message adds to its addresses."""


class Addresses:
    """Rewrites products as shifts, and moves added constants into messages."""

    def __init__(self, facts: Facts, places: Places, target: Target, reads: dict[Root, int]) -> None:
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
        if not isinstance(source, Region) or not isinstance(factor, Immediate) or inst.saturate or source.modifier:
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
        for i, found in zip(lanes, sums):
            place = (found.root, found.at - size * i, found.plus) if found else None
            if place != (first.root, first.at, first.plus):
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

    def sums(self, inst: Instruction) -> list[tuple[int, Source]]:
        """For an addition of a constant: the first byte of each element written, and the sum that it holds."""
        source, constant = inst.values.get("src0"), inst.values.get("src1")
        if inst.name != "add" or not isinstance(source, Region) or not isinstance(constant, Immediate):
            return []
        dst = inst["dst"]
        if inst.saturate or source.modifier or isinstance(dst, Flag):
            return []
        types = [TYPES[t] for t in (source.var.type, constant.type, dst.var.type)]
        if any(t.is_float for t in types) or types[0].bytes != types[2].bytes or types[0].bytes < 4:
            return []
        plus, size = converted(constant, types[2]), types[2].bytes
        _, to = bytes_of(dst, inst.exec_size, self._target)
        root, places = bytes_of(source, inst.exec_size, self._target)
        at = places * len(to) if len(places) == 1 else places
        found = []
        for place, a in zip(to, at):
            inner = self._facts.sum_of(root, a, size)
            if inner:
                total = (inner.plus + plus) % (1 << 8 * size)
                found.append((place, Source(inner.root, inner.at, inner.stamp, total)))
            else:
                found.append((place, Source(root, a, self._facts.stamp(root, a, a + size), plus)))
        return found
