"""Emission of vISA instructions: registers, constants, and operations on as many lanes as fit an instruction."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import Struct, field

from xegpu_py.ir.diagnostics import Position
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.analysis.ir_queries import unsigned
from xegpu_py.passes.xegpu_to_visa.register_values import (
    MASK_LANES,
    AnyNumbers,
    Const,
    KnownMask,
    Mask,
    Numbers,
    Reg,
    const,
    is_whole_variable,
)
from xegpu_py.target import Target
from xegpu_py.visa.operands import (
    Address,
    Destination,
    Flag,
    Guard,
    Immediate,
    Predicate,
    Raw,
    Region,
    Variable,
    Vector,
)
from xegpu_py.visa.program import NOWHERE, Input, Instruction
from xegpu_py.visa.spec import DataShape, payload_lanes

T = TypeVar("T")

COPY = "copy"
"""A pseudo instruction that copies all of `src0` to `dst`. `coalesce` removes it, or replaces it by moves."""

ALIGNMENTS = {1: "byte", 2: "word", 4: "dword", 8: "qword"}
"""The alignment of variables of this size in bytes."""


class _SkippedInstructions(Struct):
    """Instructions that may be skipped or repeated.

    Attributes:
        available: the values that they compute, by their keys.
        front: instructions that precede them.
        is_branch: whether a jump over the scope precedes the instructions in front of it.
    """

    available: dict[Hashable, Any] = field(default_factory=dict)
    front: list[Instruction] = field(default_factory=list)
    is_branch: bool = False


class Emitter(Struct):
    """Builds a program.

    Attributes:
        target: the GPU.
        variables, predicates, inputs, instructions: as in `Program`.
        where: the source location of the op that is being lowered.
    """

    target: Target
    variables: list[Variable] = field(default_factory=list)
    predicates: list[Predicate] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    where: Position = NOWHERE
    _labels: int = 0
    _aliases: dict[tuple[Variable, int, str], Variable] = field(default_factory=dict)
    _scopes: list[_SkippedInstructions] = field(default_factory=lambda: [_SkippedInstructions()])
    _levels: dict[Variable, int] = field(default_factory=dict)

    def variable(self, type_name: str, count: int, name: str = "") -> Variable:
        """A new variable. A variable of at least one register's size is aligned to registers."""
        size = count * TYPES[type_name].bytes
        align = "GRF" if size > 8 else ALIGNMENTS[1 << max(size - 1, 0).bit_length()]
        var = Variable(name or f"v{len(self.variables)}", type_name, count, align)
        self._declare(var)
        return var

    def _declare(self, var: Variable) -> None:
        self.variables.append(var)
        self._levels[var] = len(self._scopes) - 1

    def reg(self, type_name: str, count: int) -> Reg:
        """New registers for `count` numbers."""
        return Reg(self.variable(type_name, count), 0, count)

    def grf_reg(self, type_name: str, count: int) -> Reg:
        """Allocate whole GRFs for `count` numbers, the operand of a message or a dpas.

        Registers of 64-bit numbers have space for the fewest lanes of a message.
        """
        size = TYPES[type_name].bytes
        unit = max(self.target.grf_bytes, payload_lanes(1, self.target.grf_bytes) * size)
        padded = -(-count * size // unit) * unit // size
        var = Variable(f"v{len(self.variables)}", type_name, padded, "GRF")
        self._declare(var)
        return Reg(var, 0, count)

    def predicate(self, count: int) -> Predicate:
        """A new predicate of at least `count` bits."""
        made = Predicate(f"p{len(self.predicates)}", 1 << (count - 1).bit_length())
        self.predicates.append(made)
        return made

    def mask(self, count: int) -> Mask:
        """New predicates for `count` truth values."""
        starts = range(0, count, MASK_LANES)
        return Mask(tuple(self.predicate(min(MASK_LANES, count - s)) for s in starts), count)

    def label(self, name: str) -> str:
        """A new label."""
        self._labels += 1
        return f"{name}{self._labels}"

    def emit_label(self, label: str) -> None:
        """Emit a label."""
        self.instructions.append(Instruction("label", {"label": label}, where=self.where))

    def emit(
        self,
        name: str,
        exec_size: int = 1,
        *,
        guard: Guard | None = None,
        saturate: bool = False,
        no_mask: bool = True,
        clipped: bool = False,
        **values: Any,
    ) -> None:
        """Add an instruction."""
        mask = "M1_NM" if no_mask else "M1"
        self.instructions.append(
            Instruction(name, values, exec_size, mask, guard, saturate, self.where, clipped=clipped)
        )

    def jump(self, label: str, *, when: Mask | None = None, unless: Mask | None = None) -> None:
        """Jump to a label: always, if the only bit of a mask is set, or if it is clear."""
        mask = when or unless
        guard = Guard(mask.predicates[0], unless is not None) if mask else None
        self.emit("jmp", guard=guard, no_mask=False, label=label)

    def message(
        self,
        name: str,
        data: DataShape,
        addresses: Reg,
        slm: bool = False,
        *,
        lanes: int = 1,
        offset: int = 0,
        guard: Guard | None = None,
        caches: str = "",
        **operands: Raw,
    ) -> None:
        """Emit a message in which each lane accesses the elements at its address.

        Args:
            data: size and number of a lane's elements.
            addresses: those of the lanes: uq, or ud in shared local memory (`slm`).
            offset: bytes to add to each.
            caches: the cache options for L1 and L3; "" for the hardware's own choice.
        """
        payload = self._payload(addresses, lanes, 1 if data.transpose else payload_lanes(lanes, self.target.grf_bytes))
        address = Address(payload.var, payload.first * payload.format.bytes, offset)
        values: dict[str, Any] = {"address": address, "data": data, "caches": caches, **operands}
        values |= {"sfid": "slm", "address_size": "a32"} if slm else {"sfid": "ugm", "address_size": "a64"}
        self.emit(name, lanes, guard=guard, **values)

    def _payload(self, addresses: Reg, lanes: int, padded: int) -> Reg:
        """The addresses of lanes at the start of a register, with registers for `padded` lanes after it.

        A message reads whole registers. The finalizer does not align its operand, and crashes if registers beyond the
        last one would be read. One address needs no space after it: it shares its register with other variables.
        """
        registers = Reg(addresses.var, addresses.first, lanes)
        if self.is_aligned(registers) and (registers.first + padded) * registers.format.bytes <= registers.var.bytes:
            return registers

        def copied() -> Reg:
            var = Variable(f"v{len(self.variables)}", registers.type, padded, "GRF")
            self._declare(var)
            return self.apply("mov", registers.type, lanes, registers, into=Reg(var, 0, lanes))

        return self.memoized(("payload", registers, padded), copied, (registers,))

    @contextmanager
    def scope(self, is_branch: bool = False) -> Iterator[None]:
        """Emit instructions that may be skipped or repeated: their results are not available afterwards."""
        outer, self.instructions = self.instructions, []
        self._scopes.append(_SkippedInstructions(is_branch=is_branch))
        yield
        outer += [*self._scopes.pop().front, *self.instructions]
        self.instructions = outer

    def is_available(self, key: Hashable) -> bool:
        """Return whether the value of a key is available."""
        return any(key in scope.available for scope in self._scopes)

    def memoized(
        self, key: Hashable, make: Callable[[], T], sources: Sequence[Numbers] = (), *, hoists: bool = True
    ) -> T:
        """Return the available value of a key, or emit it by `make`; no instruction may overwrite it.

        Args:
            sources: the numbers that it depends on.
            hoists: whether it is emitted in front of the scopes that define none of them.
        """
        scopes, instructions = self._scopes, self.instructions
        for scope in reversed(scopes):
            if key in scope.available:
                return scope.available[key]
        level = max((self._level(s) for s in sources if isinstance(s, Reg)), default=0) if hoists else len(scopes)
        while level < len(scopes) - 1 and scopes[level + 1].is_branch:
            # In front of the branch the instruction would be skipped, but its result would count as available.
            level += 1
        if level < len(scopes) - 1:
            self.instructions, self._scopes = scopes[level + 1].front, scopes[: level + 1]
        value = self._scopes[-1].available[key] = make()
        self.instructions, self._scopes = instructions, scopes
        return value

    def _level(self, reg: Reg) -> int:
        return self._levels.get(reg.var.root[0], 0) if reg.count == 1 else len(self._scopes)

    def as_type(self, numbers: AnyNumbers, type_name: str) -> AnyNumbers:
        """The same registers, or the same constant's bits, as numbers of another type.

        Numbers that do not begin at a multiple of the other type's size, such as those of a slice, are copied first.
        """
        if isinstance(numbers, Const):
            return Const(numbers.bits, type_name, numbers.count)
        reg = numbers
        if reg.type == type_name:
            return reg
        old, new = reg.format.bytes, TYPES[type_name].bytes
        if (reg.first * old) % new or reg.var.root[1] % new:
            reg = self.apply("mov", reg.type, reg.count, reg)
        start = reg.first * old
        root, inner = reg.var.root
        key = (root, inner, type_name)
        alias = self._aliases.get(key)
        if alias is None or alias.count * new < reg.var.bytes // new * new:
            align = root.align if inner % self.target.grf_bytes == 0 else "byte"
            alias = Variable(
                f"{root.name}_{type_name}{inner or ''}", type_name, reg.var.bytes // new, align, (root, inner)
            )
            self.variables.append(alias)
            self._aliases[key] = alias
        return Reg(alias, start // new, reg.count * old // new)

    def as_unsigned(self, numbers: AnyNumbers) -> AnyNumbers:
        """The same bits as unsigned integers."""
        return self.as_type(numbers, unsigned(numbers.type))

    def register_and_element(self, reg: Reg, index: int) -> tuple[int, int]:
        """The register and the element in it of a number."""
        per_register = self.target.grf_bytes // reg.format.bytes
        return divmod(reg.first + index, per_register)

    def source(self, numbers: Numbers, start: int, modifier: str = "") -> Region | Immediate:
        """The operand for lanes from number `start` on; a single number is broadcast."""
        if isinstance(numbers, Const):
            return Immediate(numbers.bits, numbers.type)
        if numbers.count == 1:
            return Region(numbers.var, *self.register_and_element(numbers, 0), 0, 1, 0, modifier)
        return Region(numbers.var, *self.register_and_element(numbers, start), 1, 1, 0, modifier)

    def destination(self, reg: Reg, start: int) -> Destination:
        """The destination for lanes from number `start` on."""
        return Destination(reg.var, *self.register_and_element(reg, start), 1)

    def raw(self, reg: Reg, start: int = 0) -> Raw:
        """The registers from number `start` on."""
        return Raw(reg.var, (reg.first + start) * reg.format.bytes)

    def vector(self, reg: Reg, start: int = 0) -> Vector:
        """Consecutive numbers from number `start` on."""
        return Vector(reg.var, *self.register_and_element(reg, start))

    def chunks(self, count: int, operands: Sequence[Numbers], most: int = 32) -> Iterator[tuple[int, int]]:
        """(first number, lanes) of the instructions that work on `count` numbers of all operands.

        An operand spans at most two registers, and an instruction has a power of two of lanes.
        """
        grf = self.target.grf_bytes
        regs = [o for o in operands if isinstance(o, Reg) and o.count > 1]
        start = 0
        while start < count:
            lanes = 1 << min(count - start, most).bit_length() - 1
            while lanes > 1 and not all(self._fits(r, start, lanes, grf) for r in regs):
                lanes //= 2
            yield start, lanes
            start += lanes

    @staticmethod
    def _fits(reg: Reg, start: int, lanes: int, grf: int) -> bool:
        first = (reg.first + start) * reg.format.bytes
        last = first + lanes * reg.format.bytes - 1
        return last // grf - first // grf < 2

    def apply(
        self,
        name: str,
        type_name: str,
        count: int,
        *sources: Numbers,
        modifiers: Sequence[str] = (),
        into: Reg | None = None,
        saturate: bool = False,
        most: int = 32,
    ) -> Reg:
        """Emit an instruction with one destination for `count` numbers, and return the result.

        Args:
            type_name: type of the result.
            sources: the operands; one of a single number goes to all lanes.
            modifiers: source modifiers, one for each operand.
            into: the registers of the result; by default new ones.
        """
        result = into or self.reg(type_name, count)
        if name == "mov" and isinstance(number := sources[0], Const) and number.type == "bf":
            # vISA has no bf immediates; f constants convert exactly, except NaNs.
            if result.type == "bf" and number.bits & 0x7FFF > 0x7F80 and not modifiers:
                self.apply("mov", "uw", count, Const(number.bits, "uw"), into=self.as_type(result, "uw"))
                return result
            sources = (Const(number.bits << 16, "f", number.count),)
        signs = [*modifiers, *[""] * (len(sources) - len(modifiers))]
        operands = [self._number(s) if m else s for s, m in zip(sources, signs)]
        for start, lanes in self.chunks(count, [result, *operands], most):
            values: dict[str, Any] = {
                f"src{i}": self.source(s, start, m) for i, (s, m) in enumerate(zip(operands, signs))
            }
            self.emit(name, lanes, dst=self.destination(result, start), saturate=saturate, **values)
        return result

    def cse(self, name: str, type_name: str, count: int, *sources: Numbers, saturate: bool = False) -> Reg:
        """Emit an instruction like `apply`, or return the available result of an equal one; it is not overwritten."""
        key = (name, type_name, count, sources, saturate)
        return self.memoized(key, lambda: self.apply(name, type_name, count, *sources, saturate=saturate), sources)

    def double_math(self, name: str, count: int, *sources: Numbers) -> Reg:
        """Emit a function of f64, whose operands must be contiguous and aligned to a register."""
        lanes_of_register = self.target.grf_bytes // 8
        numbers = [self.broadcast(self.in_registers(s), count) for s in sources]
        result = self.grf_reg("df", count)
        for start, lanes in self.chunks(count, [result, *numbers], lanes_of_register):
            pieces = [n.slice(start, lanes) for n in numbers]
            if all(self._begins_register(p) for p in (Reg(result.var, start, lanes), *pieces)):
                self.apply(name, "df", lanes, *pieces, into=Reg(result.var, start, lanes))
                continue
            held = [
                self.apply("mov", "df", lanes, p, into=Reg(self.grf_reg("df", lanes).var, 0, lanes)) for p in pieces
            ]
            found = self.apply(name, "df", lanes, *held, into=self.grf_reg("df", lanes))
            self.apply("mov", "df", lanes, found, into=Reg(result.var, start, lanes))
        return result

    def is_aligned(self, reg: Reg) -> bool:
        """Return whether registers begin at a register boundary whatever the allocation."""
        return reg.var.root[0].align in ("GRF", "GRFx2") and self._begins_register(reg)

    def _begins_register(self, reg: Reg) -> bool:
        return (reg.var.root[1] + reg.first * reg.format.bytes) % self.target.grf_bytes == 0

    def _number(self, numbers: Numbers) -> Reg:
        """Registers, since constants have no modifiers."""
        return self.in_registers(numbers) if isinstance(numbers, Const) else numbers

    def in_registers(self, numbers: Numbers, type_name: str = "") -> Reg:
        """Copy numbers to registers, in their own type or another, unless they are there."""
        if isinstance(numbers, Reg) and type_name in ("", numbers.type):
            return numbers
        if isinstance(numbers, Const) and numbers.count * numbers.format.bytes <= self.target.grf_bytes:
            return self.cse("mov", type_name or numbers.type, numbers.count, numbers)
        return self.apply("mov", type_name or numbers.type, numbers.count, numbers)

    def broadcast(self, numbers: Numbers, count: int) -> Reg:
        """Registers with one number `count` times."""
        if isinstance(numbers, Reg) and numbers.count == count:
            return numbers
        return self.apply("mov", numbers.type, count, numbers)

    def copy(self, target: Reg, numbers: Numbers) -> None:
        """Copy a value into registers. `coalesce` removes the copy if both can share registers."""
        if (
            is_whole_variable(target)
            and isinstance(numbers, Reg)
            and is_whole_variable(numbers)
            and _same_type_and_size(target.var, numbers.var)
        ):
            self.emit(COPY, dst=Raw(target.var), src0=Raw(numbers.var))
        elif target != numbers:
            self.apply("mov", target.type, target.count, numbers, into=target)

    def compare(self, condition: str, count: int, a: Numbers, b: Numbers, into: Mask | None = None) -> Mask:
        """Truth values of a comparison; one of two scalars has the same predicate for each `MASK_LANES` lanes."""
        if into is None and count == 2 * MASK_LANES and all(isinstance(n, Const) or n.count == 1 for n in (a, b)):
            return Mask(2 * self.compare(condition, MASK_LANES, a, b).predicates, count)
        result = into or self.mask(count)
        # The operands must fit an instruction, and the lanes one predicate.
        for at, size, lanes in self._lanes_of_masks(count, [a, b]):
            src0, src1 = (self._padded_source(n, at, size, lanes) for n in (a, b))
            values = {"condition": condition, "dst": Flag(result.predicates[at // MASK_LANES])}
            values |= {"src0": src0, "src1": src1}
            self.instructions.append(Instruction("cmp", values, size, self.lane_mask(at), where=self.where))
        return result

    def _lanes_of_masks(self, count: int, operands: Sequence[Numbers]) -> Iterator[tuple[int, int, int]]:
        """(first lane, lanes, significant lanes) of instructions that use masks; three remaining lanes use four.

        Execution masks begin at a multiple of four lanes, so that three lanes cannot be split into two and one.
        """
        aligned = count - 3 if count % 4 == 3 else count
        for start, lanes in self.chunks(aligned, operands, MASK_LANES):
            for at, size in _aligned_lane_groups(start, lanes):
                yield at, size, size
        if aligned < count:
            yield aligned, 4, 3

    def _padded_source(self, numbers: Numbers, at: int, size: int, lanes: int) -> Region | Immediate:
        """The operand for lanes from `at` on; excess lanes read the first lane's number."""
        if size == lanes or isinstance(numbers, Const) or numbers.count == 1:
            return self.source(numbers, at)
        padded = self.reg(numbers.type, size)
        self.apply("mov", numbers.type, size, numbers.slice(at, 1), into=padded)
        self.apply("mov", numbers.type, lanes, numbers.slice(at, lanes), into=padded)
        return self.source(padded, 0)

    def lane_mask(self, at: int) -> str:
        """The execution mask for a predicate's lanes from bit `at` on."""
        return f"M{1 + at % MASK_LANES // 4}_NM"

    def flags(self, name: str, count: int, *sources: Mask) -> Mask:
        """Combine truth values bitwise by "and", "or", "xor" or "not"."""
        result = self.mask(count)
        for i, predicate in enumerate(result.predicates):
            values: dict[str, Any] = {f"src{k}": Flag(s.predicates[i]) for k, s in enumerate(sources)}
            self.emit(name, predicate.count, dst=Flag(predicate), **values)
        return result

    def set_flags(self, mask: KnownMask, into: Mask | None = None) -> Mask:
        """Predicates that hold known truth values."""
        result = into or self.mask(mask.count)
        for predicate in result.predicates:
            bits = (1 << predicate.count) - 1 if mask.value else 0
            self.emit("setp", predicate.count, dst=Flag(predicate), src0=Immediate(bits, "ud"))
        return result

    def any_or_all(self, mask: Mask, how: str) -> Mask:
        """One truth value: whether "any" or "all" bits of the one predicate of a mask are set."""
        flag = self.reg("w", 1)
        yes, no = Immediate(1, "w"), Immediate(0, "w")
        guard = Guard(mask.predicates[0], False, how)
        self.emit("sel", guard=guard, dst=self.destination(flag, 0), src0=yes, src1=no)
        return self.compare("ne", 1, flag, const(0, "w"))

    def select(self, mask: Mask, type_name: str, count: int, a: Numbers, b: Numbers, into: Reg | None = None) -> Reg:
        """Numbers of `a` where the mask is set, else of `b`; a mask of one truth value chooses for all."""
        result = into or self.reg(type_name, count)
        if mask.count == 1 and count > 1:
            guard = Guard(mask.predicates[0], False, "any")
            for at, size in self.chunks(count, [result, a, b]):
                src0, src1 = self.source(a, at), self.source(b, at)
                self.emit("sel", size, guard=guard, dst=self.destination(result, at), src0=src0, src1=src1)
            return result
        for at, size, lanes in self._lanes_of_masks(count, [result, a, b]):
            lane_result = result if size == lanes else self.reg(type_name, size)
            src0, src1 = (self._padded_source(n, at, size, lanes) for n in (a, b))
            values = {
                "dst": self.destination(lane_result, at if lane_result == result else 0),
                "src0": src0,
                "src1": src1,
            }
            guard = Guard(mask.predicates[at // MASK_LANES])
            self.instructions.append(Instruction("sel", values, size, self.lane_mask(at), guard, where=self.where))
            if lane_result != result:
                to = result.slice(at, lanes)
                self.apply("mov", type_name, lanes, Reg(lane_result.var, 0, lanes), into=to)
        return result


def _aligned_lane_groups(start: int, lanes: int) -> Iterator[tuple[int, int]]:
    """Split lanes into pieces whose execution masks are aligned: to four lanes, or to their size if it is larger."""
    end = start + lanes
    while start < end:
        offset = start % MASK_LANES
        size = 1 << min(end - start, MASK_LANES - offset).bit_length() - 1
        while offset % max(size, 4) and size > 1:
            size //= 2
        yield start, size
        start += size


def _same_type_and_size(a: Variable, b: Variable) -> bool:
    return (a.type, a.count) == (b.type, b.count)


MOST_OFFSET = 1 << 18
"""Messages add constants below this to their addresses, in bytes, besides the offsets of their parts."""


THREAD_WORD = 2
"""Dword of r0 whose low byte is a thread's number within its workgroup."""
