"""Common subexpression elimination.

A repeated computation is recorded as a copy of the first one. Copy propagation then makes instructions read the first
result, and dead code elimination removes the second one if it is no longer read.
"""

from __future__ import annotations

from collections.abc import Hashable

from xegpu_py.passes.visa_optimize.facts import Expression, Facts, Source, tested_bits
from xegpu_py.passes.visa_optimize.places import bytes_of

from xegpu_py.target import Target
from xegpu_py.visa.accesses import Root
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Destination, Flag, Immediate, Region
from xegpu_py.visa.program import Instruction

Need = tuple[Root, int, int, int]
"""Bytes that a value depends on: the variable, first byte, end, and the number of writes to them so far."""


class Common:
    """Identifies the values that instructions compute."""

    def __init__(self, facts: Facts, target: Target) -> None:
        """Use these facts."""
        self._facts, self._target = facts, target

    def result(self, inst: Instruction) -> tuple[Root, list[int], int]:
        """The variable that an arithmetic instruction writes, the first byte of each lane's element, and its width."""
        dst = inst["dst"]
        if isinstance(dst, Flag):
            return dst.var, list(range(inst.first_lane, inst.first_lane + inst.exec_size)), 1
        root, places = bytes_of(dst, inst.exec_size, self._target)
        return root, places, dst.var.format.bytes

    def constant_key(self, inst: Instruction, bits: tuple[int, ...], size: int) -> Hashable | None:
        """A key of constants; None if keeping them in registers would cost more than computing them again."""
        if isinstance(inst["dst"], Flag) or len(bits) * size > self._target.grf_bytes:
            return None
        return "constant", size, bits

    def key(self, inst: Instruction) -> tuple[Hashable, tuple[Need, ...]] | None:
        """A key of the value that an instruction computes, and the bytes it depends on; None if it has no key.

        Call this before the facts record that the instruction writes its result.
        """
        if INSTRUCTIONS[inst.name].category not in ("alu", "math"):
            return None
        parts: list[Hashable] = [inst.name, inst.exec_size, inst.saturate, inst.values.get("condition")]
        needs: list[Need] = []
        in_lanes = False
        for name, value in inst.values.items():
            if isinstance(value, Destination):
                parts.append(value.var.type)
            elif isinstance(value, Immediate):
                parts.append(value)
            elif isinstance(value, Region):
                root, places = bytes_of(value, inst.exec_size, self._target)
                end = max(places) + value.var.format.bytes
                needs.append((root, places[0], end, self._facts.stamp(root, places[0], end)))
                strides = (0, 1, 0) if value.is_scalar else (value.vstride, value.width, value.hstride)
                parts.append((value.var.type, value.modifier, strides, needs[-1]))
            elif isinstance(value, Flag):
                in_lanes = True
                if name == "dst":
                    parts.append("flag")
                    continue
                count = value.var.count
                needs.append((value.var, 0, count, self._facts.stamp(value.var, 0, count)))
                parts.append(needs[-1])
        guard = inst.guard
        if guard:
            bits = tested_bits(inst, guard)
            needs.append((guard.var, bits.start, bits.stop, self._facts.stamp(guard.var, bits.start, bits.stop)))
            parts.append((guard.inverted, guard.control, needs[-1]))
        parts.append(inst.first_lane if in_lanes else 0)
        return tuple(parts), tuple(needs)

    def is_there(self, found: Expression, root: Root, places: list[int]) -> bool:
        """Whether the destination of an instruction already holds the value."""
        return found.root == root and list(found.places) == places

    def copies(self, found: Expression, places: list[int]) -> list[tuple[int, Source]]:
        """For each element of a result its first byte, and another location of the same value."""
        size = found.size
        return [
            (place, Source(found.root, at, self._facts.stamp(found.root, at, at + size)))
            for place, at in zip(places, found.places)
        ]
