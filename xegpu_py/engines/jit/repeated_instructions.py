"""Instructions of a block that repeat with other registers and constants, as those of a large tile's parts do.

Native code executes them in a loop. It is compiled in less time than instructions in a row, and stays in the CPU's
cache of instructions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from xegpu_py.engines.jit.consecutive_addresses import SharedNumber
from xegpu_py.engines.jit.prefetching import stride_offset
from xegpu_py.engines.jit.register_promotion import RegisterPromotion, Repeat, by_semantics, rounds_directed
from xegpu_py.engines.operands import RegisterPositions
from xegpu_py.visa.dataflow import effects
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import (
    Address,
    AddressOf,
    Destination,
    Flag,
    Immediate,
    Indirect,
    Predicate,
    Raw,
    Region,
    Variable,
    first_byte,
)
from xegpu_py.visa.program import Instruction, Program

LEAST_PERIOD, MOST_PERIOD = 4, 64
"""The numbers of instructions that an iteration may have."""

LEAST_COUNT = 4
"""The least number of iterations."""

_WHOLE_FIELDS = 8
"""Bytes: parts of wider integers are read in units of at most so many; see `Emitter.read`."""


def with_repeats(
    program: Program, layout: RegisterPositions, promotion: RegisterPromotion, starts: Sequence[int]
) -> RegisterPromotion:
    """Find the instructions of blocks that repeat.

    Variables and predicates that iterations share, but that are not the same in all, are then no values of LLVM.

    Args:
        starts: instructions that begin blocks.
    """
    return _Finder(program, layout, promotion).found(starts)


def _parts(inst: Instruction) -> list[Any]:
    """The operands and predicates of an instruction whose places or values may differ between iterations."""
    parts: list[Any] = [inst.guard.var] if inst.guard else []
    for value in inst.values.values():
        kind = type(value)
        if kind is Flag:
            parts.append(value.var)
        elif kind is Immediate or (kind in (Region, Destination, Raw, Address) and value.var is not None):
            parts.append(value)
        if kind is Address and type(value.base) in (Region, Immediate):
            parts.append(value.base)
    return parts


class _Finder:
    """The search in one program."""

    def __init__(self, program: Program, layout: RegisterPositions, promotion: RegisterPromotion) -> None:
        self._program, self._layout, self._promotion = program, layout, promotion
        self._variables, self._predicates = set(promotion.variables), set(promotion.predicates)
        self._spans: dict[Variable | Predicate, tuple[int, int]] = {}
        self._ends = np.zeros((0, 2), int)
        self._parts: list[list[Any]] = []
        self._readers: dict[SharedNumber, list[int]] = {}
        for at, first in promotion.addresses.items():
            self._readers.setdefault(first.number, []).append(at)

    def found(self, starts: Sequence[int]) -> RegisterPromotion:
        """See `with_repeats`."""
        instructions = self._program.instructions
        codes: dict[Hashable, int] = {}
        numbers = np.array([codes.setdefault(self._key(inst, at), at) for at, inst in enumerate(instructions)])
        candidates: list[Repeat] = []
        for start, end in zip(starts, [*starts[1:], len(instructions)]):
            if end - start >= LEAST_PERIOD * LEAST_COUNT:
                candidates += self._candidates(start, numbers[start:end])
        if not candidates:
            return self._promotion
        self._parts = [_parts(inst) for inst in instructions]
        self._note_spans()
        repeats = [repeat for candidate in candidates for repeat in self._placed(candidate)]
        while any(self._demoted(repeat) for repeat in repeats):
            pass
        final = {r.start: replace(r, distances=d) for r in repeats if (d := self._distances(r)) is not None}
        return replace(self._promotion, variables=self._variables, predicates=self._predicates, repeats=final)

    # Properties that instructions have in common.

    def _key(self, inst: Instruction, at: int) -> Hashable:
        """The properties of an instruction on which its code depends, but for places and constants."""
        spec = INSTRUCTIONS[inst.name]
        values = inst.values.values()
        can_repeat = (spec.is_arithmetic and inst.name != "setp") or (
            inst.name in ("lsc_load", "lsc_store") and inst["sfid"] in ("ugm", "slm")
        )
        if (
            not can_repeat
            or any(type(value) in (Indirect, AddressOf) for value in values)
            or by_semantics(inst)
            or rounds_directed(inst)
        ):
            return at
        guard = inst.guard
        guarded = guard and (guard.inverted, guard.control, guard.var.count, guard.var in self._predicates)
        how = inst.name, inst.exec_size, inst.mask, inst.saturate, inst.flushed, inst.alternatives, guarded
        return (*how, at in self._promotion.addresses, *[self._shape(value, inst.name == "sel") for value in values])

    def _shape(self, value: Any, fixed: bool) -> Hashable:
        kind = type(value)
        if kind is Region:
            return value.var.type, value.vstride, value.width, value.hstride, value.modifier, self._inside(value)
        if kind is Destination:
            return value.var.type, value.stride, value.var.root[0] in self._promotion.nans, self._inside(value)
        if kind is Immediate:
            return value if fixed or value.is_packed else value.type
        if kind is Flag:
            return value.var.count, value.var in self._predicates
        if kind is Raw:
            return value.var is None
        if kind is Address:
            return value.plus, value.scale, value.space, self._shape(value.base, fixed)
        hashable: Hashable = value
        return hashable

    def _inside(self, operand: Region | Destination) -> Hashable:
        """The part of a variable that is a value of LLVM; None of those in registers."""
        root, offset = operand.var.root
        if root not in self._variables:
            return None
        return root.bytes, offset + first_byte(operand, self._layout.target.grf_bytes)

    # Instructions that are iterations.

    @staticmethod
    def _candidates(start: int, numbers: np.ndarray[Any, Any]) -> list[Repeat]:
        """The repeats of a block that leave the fewest instructions, each as long as its instructions are alike."""
        runs: list[tuple[int, int, int]] = []
        for period in range(LEAST_PERIOD, min(MOST_PERIOD, len(numbers) // LEAST_COUNT) + 1):
            same = np.concatenate([[False], numbers[:-period] == numbers[period:], [False]])
            edges = np.flatnonzero(same[1:] != same[:-1])
            for first, past in zip(edges[::2], edges[1::2]):
                if past - first >= period * (LEAST_COUNT - 1):
                    runs.append((int(past - first), period, int(first)))
        chosen: list[Repeat] = []
        taken = np.zeros(len(numbers), bool)
        for length, period, first in sorted(runs, key=lambda run: (-(run[0] // run[1]) * run[1], run[1])):
            if not taken[first : first + length + period].any():
                taken[first : first + length + period] = True
                chosen.append(Repeat(start + first, period, (length + period) // period, length + period))
        return chosen

    def _note_spans(self) -> None:
        """Note the first and the last instruction that access each variable and predicate."""
        for at, inst in enumerate(self._program.instructions):
            inst_effects = effects(inst, self._layout.target)
            for root in (*inst_effects.read, *inst_effects.written):
                self._spans[root] = self._spans.get(root, (at, at))[0], at
        self._ends = np.array(sorted(self._spans.values()), int).reshape(-1, 2)

    def _placed(self, candidate: Repeat) -> Iterator[Repeat]:
        """The candidate, with iterations that begin where the fewest variables of one iteration are live."""
        period, past = candidate.period, candidate.start + candidate.length
        live = np.zeros(candidate.length + 1, int)
        inside = slice(*np.searchsorted(self._ends[:, 0], (candidate.start, past)))
        first, last = self._ends[inside].T
        short = (first < last) & (last < past) & (last - first < period)
        np.add.at(live, first[short] + 1 - candidate.start, 1)
        np.add.at(live, last[short] + 1 - candidate.start, -1)
        # Those of the second iteration: the first one may use results of instructions before.
        crossing = np.cumsum(live)[period : 2 * period]
        start = candidate.start + int(np.argmin(crossing))
        # The first iteration may also be the one that notes numbers which the others use.
        for begin in (start, start + period):
            repeat = replace(candidate, start=begin, count=(past - begin) // period)
            if repeat.count >= LEAST_COUNT and self._has_own_numbers(repeat):
                yield repeat
                return

    def _has_own_numbers(self, repeat: Repeat) -> bool:
        """Whether the addresses of each iteration have numbers of their own, or all have those from before."""
        for number, readers in self._readers.items():
            iteration = repeat.iteration_of(number.at)
            if iteration is not None and any(repeat.iteration_of(at) != iteration for at in readers):
                return False
        for at in repeat.first:
            firsts = [self._promotion.addresses[i] for i in repeat.places(at) if i in self._promotion.addresses]
            places = {i - f.number.at for i, f in zip(repeat.places(at), firsts)}
            inner = [repeat.iteration_of(f.number.at) is not None for f in firsts]
            if any(inner) and (not all(inner) or len(places) > 1):
                return False
            if firsts and not any(inner) and len({id(f.number) for f in firsts}) > 1:
                return False
        return True

    # Values of LLVM: those of an iteration of its own, or the same one in all.

    def _demoted(self, repeat: Repeat) -> bool:
        """Leave in registers what iterations share; whether there was something."""
        variables = self._shared(repeat, self._variables, (Region, Destination)) & self._variables
        predicates = self._shared(repeat, self._predicates, (Predicate,)) & self._predicates
        predicates |= self._read_first(repeat) & self._predicates
        self._variables -= variables
        self._predicates -= predicates
        return bool(variables or predicates)

    def _columns(self, repeat: Repeat) -> Iterator[list[Any]]:
        """Each operand and predicate of the first iteration, with those of the others that correspond to it."""
        for at in repeat.first:
            yield from map(list, zip(*(self._parts[i] for i in repeat.places(at))))

    def _shared(self, repeat: Repeat, free: set[Any], kinds: tuple[type, ...]) -> set[Any]:
        """The values of some iterations that are not the same in all, and not only theirs."""
        shared: set[Any] = set()
        others: dict[tuple[int, Any], Any] = {}
        firsts: dict[tuple[int, Any], Any] = {}
        for column in self._columns(repeat):
            if type(column[0]) not in kinds:
                continue
            roots = column if type(column[0]) is Predicate else [operand.var.root[0] for operand in column]
            first = roots[0]
            if free.isdisjoint(roots):
                continue
            fits = free.issuperset(roots) and (
                all(root is first for root in roots)
                or all(self._is_of(root, repeat, n) for n, root in enumerate(roots))
            )
            for n, root in enumerate(roots):
                if others.setdefault((n, first), root) is not root or firsts.setdefault((n, root), first) is not first:
                    fits = False
            if not fits:
                shared.update(roots)
        return shared

    def _read_first(self, repeat: Repeat) -> set[Predicate]:
        """The predicates that an iteration reads before it writes them: they have no value of the one before."""
        touched, read_first, written = set[Predicate](), set[Predicate](), set[Predicate]()
        for at in repeat.first:
            inst_effects = effects(self._program.instructions[at], self._layout.target)
            read_first.update(p for p in inst_effects.tests if p not in touched)
            touched.update(inst_effects.tests)
            if inst_effects.sets:
                touched.add(inst_effects.sets)
                written.add(inst_effects.sets)
        return read_first & written

    def _is_of(self, root: Variable | Predicate, repeat: Repeat, iteration: int) -> bool:
        """Whether only one iteration accesses a variable or predicate."""
        first, last = self._spans[root]
        return repeat.iteration_of(first) == repeat.iteration_of(last) == iteration

    # Distances between iterations.

    def _distances(self, repeat: Repeat) -> Mapping[Hashable, tuple[int, ...]] | None:
        """See `Repeat`; None if two equal operands of the first iteration differ in others."""
        distances: dict[Hashable, tuple[int, ...]] = {}
        for column in self._columns(repeat):
            values = [value for value in map(self._value, column) if value is not None]
            if not values:
                continue
            found = tuple(value - values[0] for value in values)
            unit = self._unit(column[0])
            if distances.setdefault(column[0], found) != found or any(d % unit for d in found):
                return None
        for at in repeat.first:
            places = repeat.places(at)
            if INSTRUCTIONS[self._program.instructions[at].name].is_message:
                offsets = [stride_offset(self._program, i) for i in places]
                distances["strides", at] = tuple(offset - offsets[0] for offset in offsets)
            if at in self._promotion.addresses:
                pluses = [self._promotion.addresses[i].plus for i in places]
                distances["plus", at] = tuple(plus - pluses[0] for plus in pluses)
        return {key: found for key, found in distances.items() if any(found)}

    def _value(self, part: Any) -> int | None:
        """The place of an operand or predicate, or a constant; None for a value of LLVM."""
        if type(part) is Immediate:
            return int(part.bits)
        if type(part) is Predicate:
            return None if part in self._predicates else 4 * self._layout.predicates[part]
        if part.var.root[0] in self._variables and type(part) in (Region, Destination):
            return None
        return self._layout.offset(part.var) + first_byte(part, self._layout.target.grf_bytes)

    @staticmethod
    def _unit(part: Any) -> int:
        """The bytes of which distances between places are a multiple."""
        if type(part) is Region and not (part.is_scalar or (part.vstride, part.width) in ((1, 1), (0, 1))):
            return _WHOLE_FIELDS
        return _WHOLE_FIELDS if type(part) is Destination and part.stride != 1 else 1
