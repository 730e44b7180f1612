"""Addresses that are a number that all lanes share plus multiples of an element's size, known before a program runs.

The messages of a row's elements have such addresses. Native code computes that of the first lane only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from xegpu_py.target import Target
from xegpu_py.visa.dataflow import effects
from xegpu_py.visa.messages import alignment
from xegpu_py.visa.operands import Address, Destination, Immediate, Region, Variable, first_byte
from xegpu_py.visa.program import Instruction, Program, analysis

_COMPUTED = ("mov", "add", "mul", "shl")
"""The instructions whose results are computed here, if their sources are known."""


class SharedNumber(Struct, frozen=True, eq=False):
    """A 64-bit integer that all lanes share.

    Attributes:
        at: the instruction before which `source` has this value.
        source: the element that has it.
    """

    at: int
    source: Region


class FirstAddress(Struct, frozen=True):
    """The address of a message's first lane: a shared number plus a constant."""

    number: SharedNumber
    plus: int


class _Sequence(Struct, frozen=True):
    """Integers of a variable: a shared number, or nothing, plus `first`, plus `step` for each one before.

    Attributes:
        start, end: their bytes in the variable.
        size: the bytes of each.
    """

    start: int
    end: int
    size: int
    number: SharedNumber | None
    first: int
    step: int

    def last(self) -> int:
        """The last constant."""
        return self.first + ((self.end - self.start) // self.size - 1) * self.step

    def part(self, byte: int, size: int) -> int:
        """The constant of `size` bytes at a byte of the variable, a part of one of these integers."""
        index, offset = divmod(byte - self.start, self.size)
        return (self.first + index * self.step) >> 8 * offset & (1 << 8 * size) - 1

    def joined(self, after: _Sequence) -> _Sequence | None:
        """The sequence that this one and another one are together, if they are one."""
        step = after.first - self.last()
        steps = {s.step for s in (self, after) if s.end - s.start > s.size}
        if self.end != after.start or self.size != after.size or self.number is not after.number or steps - {step}:
            return None
        return _Sequence(self.start, after.end, self.size, self.number, self.first, step)


@analysis
def consecutive_addresses(program: Program, target: Target, starts: tuple[int, ...]) -> Mapping[int, FirstAddress]:
    """The loads and stores whose lanes access consecutive elements, by their indices.

    Args:
        starts: instructions that begin blocks. The first block runs before all others.
    """
    if not any(_may_be_consecutive(inst) for inst in program.instructions):
        return {}
    return _Values(target).addresses(program.instructions, starts)


def _may_be_consecutive(inst: Instruction) -> bool:
    if inst.name not in ("lsc_load", "lsc_store") or inst.exec_size == 1:
        return False
    address: Address = inst["address"]
    is_plain = address.space == "flat" and address.base is None and address.scale == 1 and not address.plus
    is_element = inst["data"].vector == 1 and alignment(inst, exact=True)[0] == 1
    return is_plain and is_element and inst["sfid"] == "ugm" and inst["address_size"] == "a64"


class _Values:
    """The sequences in variables that are not aliases, before an instruction of a block."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[Variable, list[_Sequence]] = {}
        self._numbers: dict[tuple[Variable, int], SharedNumber] = {}

    def addresses(self, instructions: Sequence[Instruction], starts: Sequence[int]) -> dict[int, FirstAddress]:
        """See `consecutive_addresses`."""
        addresses: dict[int, FirstAddress] = {}
        later_starts, constants = {*starts} - {0}, None
        for at, inst in enumerate(instructions):
            if at in later_starts:
                constants = self._constants(instructions[at:]) if constants is None else constants
                self._known, self._numbers = dict(constants), {}
            if _may_be_consecutive(inst):
                var, offset = inst["address"].var.root
                found = self._found(var, offset + inst["address"].offset, 8, inst.exec_size)
                if found and found.number and found.step == inst["data"].memory_bytes:
                    addresses[at] = FirstAddress(found.number, found.first)
            self._run(inst, at)
        return addresses

    def _constants(self, others: Iterable[Instruction]) -> dict[Variable, list[_Sequence]]:
        """The constants of variables that other instructions do not change."""
        changed = {access.var for inst in others for access in effects(inst, self._target).writes}
        return {
            var: [known for known in sequences if known.number is None]
            for var, sequences in self._known.items()
            if var not in changed
        }

    def _run(self, inst: Instruction, at: int) -> None:
        """Change the sequences as an instruction does."""
        result = self._result(inst, at) if inst.name in _COMPUTED else None
        for access in effects(inst, self._target).writes:
            sequences = self._known.get(access.var)
            if sequences:
                left = [s for s in sequences if s.end <= access.start or access.end <= s.start]
                self._known[access.var] = left
            for key in [key for key in self._numbers if key[0] is access.var]:
                del self._numbers[key]
        if result:
            var = inst["dst"].var.root[0]
            sequences = self._known.get(var, [])
            joined = sequences[-1].joined(result) if sequences else None
            self._known[var] = [*sequences[:-1], joined] if joined else [*sequences, result]

    def _result(self, inst: Instruction, at: int) -> _Sequence | None:
        """The result of an instruction, if it is known: constants that no width changes, or 64-bit sums."""
        dst, lanes = inst["dst"], inst.exec_size
        if not isinstance(dst, Destination) or dst.format.is_float or inst.saturate or inst.guard or inst.alternatives:
            return None
        if lanes > 1 and dst.stride != 1:
            return None
        sources: list[_Sequence] = []
        for source in inst.sources:
            known = self._source(source, lanes, at)
            if known is None:
                return None
            sources.append(known)
        computed = _computed(inst.name, sources)
        if computed is None:
            return None
        number, first, step = computed
        size = dst.format.bytes
        start = dst.var.root[1] + first_byte(dst, self._target.grf_bytes)
        result = _Sequence(start, start + lanes * size, size, number, first, step)
        if number is None:
            limit = 1 << 8 * min(size, *(s.size for s in sources)) - 1
            return result if 0 <= first <= result.last() < limit else None
        return result if size == 8 else None

    def _source(self, source: object, lanes: int, at: int) -> _Sequence | None:
        """The lanes of a source, if they are known."""
        if isinstance(source, Immediate):
            fmt = source.format
            if fmt.is_float or source.is_packed or source.bits >> fmt.bits - 1 & 1:
                return None
            return _Sequence(0, fmt.bytes, fmt.bytes, None, source.bits, 0)
        if not isinstance(source, Region) or source.format.is_float or source.modifier:
            return None
        (var, offset), size = source.var.root, source.format.bytes
        start = offset + first_byte(source, self._target.grf_bytes)
        if lanes > 1 and not source.is_scalar:
            return self._found(var, start, size, lanes) if source.reach(lanes) == (lanes - 1, True) else None
        one = self._found(var, start, size, 1)
        if one is None and size == 8:
            number = self._numbers.setdefault((var, start), SharedNumber(at, source))
            return _Sequence(start, start + 8, 8, number, 0, 0)
        return one

    def _found(self, var: Variable, start: int, size: int, count: int) -> _Sequence | None:
        """The integers from a byte of a variable on, of which the first one alone has no step."""
        end = start + count * size
        for s in self._known.get(var, ()):
            if s.start <= start and end <= s.end:
                if (start - s.start) % size:
                    return None
                if s.size == size:
                    first = s.first + (start - s.start) // size * s.step
                    return _Sequence(start, end, size, s.number, first, s.step if count > 1 else 0)
                if size < s.size and s.number is None:
                    parts = [s.part(byte, size) for byte in range(start, end, size)]
                    steps = {b - a for a, b in itertools.pairwise(parts)} or {0}
                    return _Sequence(start, end, size, None, parts[0], *steps) if len(steps) == 1 else None
        return None


def _computed(name: str, sources: Sequence[_Sequence]) -> tuple[SharedNumber | None, int, int] | None:
    """The number, the first constant and the step of a result, if it is a sequence."""
    numbers, (a, *others) = [s.number for s in sources if s.number], sources
    if name == "mov":
        return a.number, a.first, a.step
    b = others[0]
    if name == "add":
        return (numbers[0] if numbers else None, a.first + b.first, a.step + b.step) if len(numbers) < 2 else None
    if numbers or b.step or (name == "shl" and b.first >= 32):
        return None
    factor = b.first if name == "mul" else 1 << b.first
    return None, a.first * factor, a.step * factor
