"""Constant propagation: constants, copies and sums in registers at each point of a program, and constant folding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeGuard, TypeVar

from msgspec import Struct, field

from xegpu_py.deferred import deferred
from xegpu_py.numerics.formats import TYPES, Format
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import ControlFlowGraph, Root, effects, writes_all
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import (
    BUILTINS,
    Address,
    Destination,
    Flag,
    Guard,
    Immediate,
    Raw,
    Region,
    Variable,
    Vector,
    first_byte,
    strides_of,
)
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.verify import instruction_problem

if TYPE_CHECKING:
    from xegpu_py.engines import interpreter
else:
    interpreter = deferred("xegpu_py.engines.interpreter")

# Facts about registers and predicates at a point of a program: constants, copies and sums.
#
# A fact whose locations are all written once holds wherever its definition dominates. Any other fact holds to the end
# of its basic block, or until one of its locations is written again.

F = TypeVar("F")

_CHUNK = 64
"""Bytes of a variable whose writes are counted, and whose readers are tracked, together."""

_WIDEST = 8
"""Bytes of the widest element."""


class ElementSource(NamedTuple):
    """The value of an element as another element plus a constant, modulo its width.

    Attributes:
        root, at: the variable and first byte of the other element.
        stamp: the number of writes to it so far.
        plus: the constant; 0 for a copy.
    """

    root: Root
    at: int
    stamp: int
    plus: int = 0


class _Table(Struct, Generic[F]):
    """Facts about elements, by root and first byte; each has the element's width."""

    here: dict[Root, dict[int, tuple[int, F]]] = field(default_factory=dict)
    lasting: dict[Root, dict[int, tuple[int, F, int]]] = field(default_factory=dict)

    def forget(self, root: Root, first: int, end: int) -> None:
        """Drop the facts about elements that overlap these bytes."""
        facts = self.here.get(root)
        if not facts:
            return
        near = range(first - _WIDEST + 1, end)
        for at in near if len(near) < len(facts) else list(facts):
            fact = facts.get(at)
            if fact and at < end and first < at + fact[0]:
                del facts[at]


class Facts:
    """The facts that hold at the current instruction of a walk over a program's dominator tree."""

    def __init__(self, program: Program, flow: ControlFlowGraph, target: Target) -> None:
        """Begin without facts."""
        self.flow = flow
        self._target = target
        sites, self._rewritten = write_sites(program, flow, target)
        self._total = {root: len(blocks) for root, blocks in sites.items()}
        self._done: dict[Root, int] = {}
        self._versions: dict[Root, dict[int, int]] = {}
        self._written: dict[Root, int] = {}
        self._constants: _Table[int] = _Table()
        self._copies: _Table[ElementSource] = _Table()
        self._sums: _Table[ElementSource] = _Table()
        self._path: list[tuple[int, dict[Root, int]]] = []

    def enter(self, block: int) -> None:
        """Enter a block: restore the facts that hold at its beginning."""
        while self._path and not self.flow.dominates(self._path[-1][0], block):
            for root, count in self._path.pop()[1].items():
                self._done[root] -= count
        self._path.append((block, {}))
        for table in (self._constants, self._copies, self._sums):
            table.here = {}

    def leave(self) -> None:
        """Leave a block: keep the facts that hold in all blocks that it dominates."""
        block = self._path[-1][0]
        self._keep(self._constants, block)
        self._keep(self._copies, block)
        self._keep(self._sums, block)

    def _keep(self, table: _Table[F], block: int) -> None:
        for root, facts in table.here.items():
            if not facts or not self.is_settled(root):
                continue
            lasting = table.lasting.setdefault(root, {})
            for at, (size, fact) in facts.items():
                if not isinstance(fact, ElementSource) or self._is_kept(fact.root, fact.at, fact.at + size, fact.stamp):
                    lasting[at] = (size, fact, block)

    def _is_kept(self, root: Root, first: int, end: int, stamp: int) -> bool:
        return self.is_settled(root) and stamp == self.stamp(root, first, end)

    def is_settled(self, root: Root) -> bool:
        """Whether all writes to a variable have been executed at this point, and none can be executed again."""
        total = self._total.get(root, 0)
        return not total or (root not in self._rewritten and self._done.get(root, 0) == total)

    def stamp(self, root: Root, first: int, end: int) -> int:
        """The number of writes to some bytes so far; every write to one of them increases it."""
        if root not in self._rewritten:
            # Bytes that are written once need only a flag.
            return (self._written.get(root, 0) >> first & ((1 << (end - first)) - 1)).bit_count()
        versions = self._versions.get(root)
        if not versions:
            return 0
        return sum(versions.get(c, 0) for c in chunks_of(first, end))

    def write(self, inst: Instruction) -> None:
        """Drop the facts about everything that an instruction may write."""
        writes_in_block = self._path[-1][1]
        for root, first, end, _ in writes(inst, self.flow, self._target):
            for table in (self._constants, self._copies, self._sums):
                table.forget(root, first, end)
            if root not in self._rewritten:
                self._written[root] = self._written.get(root, 0) | ((1 << end) - (1 << first))
            else:
                versions = self._versions.setdefault(root, {})
                for chunk in chunks_of(first, end):
                    versions[chunk] = versions.get(chunk, 0) + 1
            self._done[root] = self._done.get(root, 0) + 1
            writes_in_block[root] = writes_in_block.get(root, 0) + 1

    def constant(self, root: Root, at: int, size: int) -> int | None:
        """The bits of an element; None if they are unknown."""
        return self._find(self._constants, root, at, size)

    def constants(self, root: Root, offsets: Sequence[int], size: int) -> tuple[int, ...] | None:
        """The bits of elements; None if any are unknown."""
        if not self._constants.here.get(root) and not self._constants.lasting.get(root):
            return None
        values = []
        for at in offsets:
            bits = self.constant(root, at, size)
            if bits is None:
                return None
            values.append(bits)
        return tuple(values)

    def copied(self, root: Root, at: int, size: int) -> ElementSource | None:
        """The element that an element is a copy of."""
        return self._current(self._copies, root, at, size)

    def sum_of(self, root: Root, at: int, size: int) -> ElementSource | None:
        """The element and constant that an element is the sum of."""
        return self._current(self._sums, root, at, size)

    def has_copies(self, root: Root) -> bool:
        """Whether a variable has elements that are known copies."""
        return bool(self._copies.here.get(root) or self._copies.lasting.get(root))

    def copy_size(self, root: Root, at: int) -> int:
        """The width of the copied element that begins at a byte; 0 if none does."""
        for facts in (self._copies.here.get(root), self._copies.lasting.get(root)):
            if facts and at in facts:
                return facts[at][0]
        return 0

    def _find(self, table: _Table[F], root: Root, at: int, size: int) -> F | None:
        facts = table.here.get(root)
        if facts:
            fact = facts.get(at)
            if fact:
                return fact[1] if fact[0] == size else None
        lasting = table.lasting.get(root)
        if lasting:
            lasting_fact = lasting.get(at)
            if lasting_fact and lasting_fact[0] == size and self.flow.dominates(lasting_fact[2], self._path[-1][0]):
                return lasting_fact[1]
        return None

    def _current(self, table: _Table[ElementSource], root: Root, at: int, size: int) -> ElementSource | None:
        source = self._find(table, root, at, size)
        return source if source and self.stamp(source.root, source.at, source.at + size) == source.stamp else None

    def note_constant(self, root: Root, at: int, size: int, bits: int) -> None:
        """Record that an element has these bits."""
        self._constants.here.setdefault(root, {})[at] = (size, bits)

    def note_copy(self, root: Root, at: int, size: int, source: ElementSource) -> None:
        """Record that an element is a copy of another one."""
        self._copies.here.setdefault(root, {})[at] = (size, source)

    def note_sum(self, root: Root, at: int, size: int, source: ElementSource) -> None:
        """Record that an element is another one plus a constant."""
        self._sums.here.setdefault(root, {})[at] = (size, source)


def writes(inst: Instruction, flow: ControlFlowGraph, target: Target) -> Iterator[tuple[Root, int, int, bool]]:
    """The writes of an instruction: variable or predicate, first byte, end, and whether all of the range is written."""
    accesses = effects(inst, target)
    for access in accesses.writes:
        yield access.var, access.start, access.end, writes_all(inst, access, flow)
    if accesses.sets:
        first, end = accesses.lanes or (0, accesses.sets.count)
        yield accesses.sets, first, end, accesses.lanes is not None and flow.certain(inst)


def write_sites(program: Program, flow: ControlFlowGraph, target: Target) -> tuple[dict[Root, list[int]], set[Root]]:
    """The block of each write of a variable, and the variables with bytes that may be written several times."""
    sites: dict[Root, list[int]] = {}
    written: dict[Root, int] = {}
    rewritten: set[Root] = {i.var.root[0] for i in program.inputs}
    for number, block in enumerate(flow.blocks):
        for inst in program.instructions[block.start : block.stop]:
            for root, first, end, certain in writes(inst, flow, target):
                sites.setdefault(root, []).append(number)
                byte_mask = (1 << end) - (1 << first)
                if not certain or written.get(root, 0) & byte_mask:
                    rewritten.add(root)
                written[root] = written.get(root, 0) | byte_mask
    return sites, rewritten


def chunks_of(start: int, end: int) -> range:
    """The numbers of the chunks of a variable that have bytes of this range."""
    return range(start // _CHUNK, (end - 1) // _CHUNK + 1)


def tested_bits(inst: Instruction, guard: Guard) -> range:
    """The bits of its predicate that an instruction tests."""
    if guard.control:
        return range(guard.var.count)
    return range(1) if INSTRUCTIONS[inst.name].uniform else range(inst.first_lane, inst.first_lane + inst.exec_size)


# Operands for bytes of registers: variables of a type that cover them, and regions that address them.

_MOST_REGISTERS = 2
"""Registers that an operand of an arithmetic instruction may span."""


def bytes_of(operand: Region | Destination, lanes: int, target: Target) -> tuple[Variable, list[int]]:
    """The root variable (not an alias) of an operand, and the first byte in it of each element.

    A source that broadcasts one element to all lanes has one.
    """
    key = lanes, target.grf_bytes
    if key not in operand.byte_offsets:
        operand.byte_offsets[key] = _bytes_of(operand, lanes, target)
    return operand.byte_offsets[key]


def _bytes_of(operand: Region | Destination, lanes: int, target: Target) -> tuple[Variable, list[int]]:
    root, inner = operand.var.root
    size = operand.var.format.bytes
    start = inner + first_byte(operand, target.grf_bytes)
    count = 1 if isinstance(operand, Region) and operand.is_scalar else lanes
    return root, [start + e * size for e in operand.elements(count)]


def start_of(operand: Raw | Vector | Address, target: Target) -> tuple[Variable, int]:
    """The root variable (not an alias) of an operand, and the operand's first byte in it."""
    root, inner = operand.var.root
    return root, inner + (first_byte(operand, target.grf_bytes) if isinstance(operand, Vector) else operand.offset)


class VariableAliases:
    """The variables of a program, and the aliases that passes add to access bytes as another type."""

    def __init__(self, program: Program, target: Target) -> None:
        """Begin with the variables that the program declares."""
        self._grf = target.grf_bytes
        self._names = {v.name for v in program.variables} | {p.name for p in program.predicates}
        self._known: dict[tuple[Variable, str], list[Variable]] = {}
        for var in (*program.variables, *BUILTINS.values()):
            self._known.setdefault((var.root[0], var.type), []).append(var)
        self.added: list[Variable] = []

    def variable(self, root: Variable, type_name: str, start: int, end: int) -> Variable | None:
        """A variable of this type that covers bytes `start` to `end` of `root`; None if none can."""
        size = TYPES[type_name].bytes
        for var in self._known.get((root, type_name), ()):
            inner = var.root[1]
            if inner <= start and end <= inner + var.bytes and (start - inner) % size == 0:
                return var
        if root in BUILTINS.values() or root.bytes < size or start % size or end > root.bytes // size * size:
            return None
        name = f"{root.name}_{type_name}"
        while name in self._names:
            name += "_"
        var = Variable(name, type_name, root.bytes // size, root.align, (root, 0))
        self._names.add(name)
        self._known.setdefault((root, type_name), []).append(var)
        self.added.append(var)
        return var

    def region(self, root: Variable, type_name: str, offsets: Sequence[int], modifier: str) -> Region | None:
        """A source whose lanes read elements at these first bytes; None if no region describes them."""
        size = TYPES[type_name].bytes
        low, high = min(offsets), max(offsets) + size
        var = self.variable(root, type_name, low, high)
        strides = strides_of([(p - offsets[0]) // size for p in offsets]) if low == offsets[0] else None
        if var is None or strides is None or any((p - low) % size for p in offsets):
            return None
        inner = low - var.root[1]
        if len(offsets) > 1 and (low % self._grf + high - low) > _MOST_REGISTERS * self._grf:
            return None
        return Region(var, inner // self._grf, inner % self._grf // size, *strides, modifier)

    def destination(self, root: Variable, type_name: str, start: int, end: int, stride: int) -> Destination | None:
        """A result whose first element is at this byte; None if no alias of the type covers it."""
        vector = self.vector(root, type_name, start, end)
        return Destination(vector.var, vector.row, vector.col, stride) if vector else None

    def raw(self, root: Variable, type_name: str, start: int, end: int) -> Raw | None:
        """An operand of whole registers that starts at this byte; None if no alias of the type can."""
        var = self.variable(root, type_name, start, end)
        return Raw(var, start - var.root[1]) if var else None

    def vector(self, root: Variable, type_name: str, start: int, end: int) -> Vector | None:
        """Consecutive elements that start at this byte; None if no alias of the type can."""
        var = self.variable(root, type_name, start, end)
        if var is None:
            return None
        row, rest = divmod(start - var.root[1], self._grf)
        return Vector(var, row, rest // var.format.bytes)


# Constant folding and constant propagation.
#
# The interpreter evaluates the folded instructions, so that folding and execution give the same bits.

_IMMEDIATE_TYPES = ("uw", "w", "ud", "d", "hf", "f")
"""Types that an immediate operand of an instruction with two sources can have."""


@cache
def _constant_slots(instruction: str) -> tuple[list[str], list[str]]:
    """The scalar operands of an instruction that can be immediates, and all its sources."""
    slots = INSTRUCTIONS[instruction].slots
    return [s.name for s in slots if s.kind == "scalar" and s.immediate], [s.name for s in slots if s.kind == "src"]


def is_number(value: object) -> TypeGuard[Immediate]:
    """Whether an operand is one constant for all lanes."""
    return isinstance(value, Immediate) and not value.is_packed


def converted(value: Immediate, to: Format) -> int:
    """The bits of an integer constant in another integer type."""
    fmt = value.format
    negative = fmt.kind == "s" and value.bits >> (fmt.bits - 1)
    return (value.bits - (1 << fmt.bits if negative else 0)) % (1 << to.bits)


Depends = Callable[[Instruction], bool]
"""Whether the results of an instruction depend on modes of `%cr0`."""


def never(inst: Instruction) -> bool:
    """No instruction depends on them."""
    return False


class Constants:
    """Folds instructions."""

    def __init__(self, facts: Facts, target: Target, depends: Depends) -> None:
        """Use these facts; fold no instructions that depend on modes."""
        self._facts, self._target, self._depends = facts, target, depends
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
        if spec.category not in ("alu", "math") or spec.selects or self._depends(inst):
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
        return interpreter.evaluate(inst, sources, self._target)

    def _known(self, value: Region, lanes: int) -> tuple[int, ...] | None:
        root, offsets = bytes_of(value, lanes, self._target)
        bits = self._facts.constants(root, offsets, value.var.format.bytes)
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
        place = {"x", "y"} & {*scalars}
        for name in scalars:
            if name not in place:
                inst = self._with_immediate(inst, name)
        if place:
            # Both coordinates of a block are in registers, or both immediate.
            inst = self._with_immediate(inst, *sorted(place))
        regions = [name for name in sources if isinstance(inst.values[name], (Region, Immediate))]
        if len(regions) != 2 or INSTRUCTIONS[inst.name].named_barrier:
            return inst
        changed = self._with_immediate(inst, "src1")
        if changed is inst and INSTRUCTIONS[inst.name].commutes and isinstance(inst["src1"], Region):
            swapped = {**inst.values, "src0": inst["src1"], "src1": inst["src0"]}
            swapped_inst = inst.replaced(values=swapped)
            changed = self._with_immediate(swapped_inst, "src1")
            changed = inst if changed is swapped_inst else changed
        return changed

    def _with_immediate(self, inst: Instruction, *names: str) -> Instruction:
        """The instruction with immediates in place of sources, if all are known."""
        immediates = {name: self._immediate(inst, name) for name in names}
        if None in immediates.values():
            return inst
        changed = inst.replaced(values={**inst.values, **immediates})
        return inst if instruction_problem(changed, self._target) else changed

    def _immediate(self, inst: Instruction, name: str) -> Immediate | None:
        """The known value of a scalar source in a register."""
        value = inst[name]
        if not isinstance(value, Region) or value.var.type not in _IMMEDIATE_TYPES:
            return None
        fmt = value.var.format
        if value.modifier and not fmt.is_float:
            # A negated integer may need one bit more than its type has.
            return None
        lanes = 1 if INSTRUCTIONS[inst.name].slot(name).kind == "scalar" else inst.exec_size
        bits = self._known(value, lanes)
        if bits is None or len(set(bits)) > 1 or INSTRUCTIONS[inst.name].category == "math":
            return None
        pattern = bits[0]
        if value.modifier:
            sign = 1 << (fmt.bits - 1)
            pattern = pattern & ~sign if "abs" in value.modifier else pattern
            pattern = pattern ^ sign if value.modifier.startswith("-") else pattern
        return Immediate(pattern, value.var.type)

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
        source, operand = inst.values.get("src0"), inst.values.get("src1")
        if not isinstance(source, Region) or not is_number(operand) or source.modifier:
            return inst
        dst = inst["dst"]
        if isinstance(dst, Flag) or any(TYPES[t].is_float for t in (source.var.type, operand.type, dst.var.type)):
            return inst
        if inst.saturate and not source.var.type == operand.type == dst.var.type:
            return inst
        spec, constant = INSTRUCTIONS[inst.name], converted(operand, dst.var.format)
        if constant == 0 and spec.zero:
            return self._moved(inst, Immediate(0, dst.var.type)) or inst
        if spec.identity is None or constant != spec.identity[0] % (1 << dst.var.format.bits):
            return inst
        wider = dst.var.format.bytes - source.var.format.bytes
        if (spec.identity[1] == "narrower" and wider > 0) or (spec.identity[1] == "same" and wider):
            return inst
        return self._moved(inst, source) or inst
