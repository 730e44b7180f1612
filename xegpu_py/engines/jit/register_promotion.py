"""Registers that LLVM may keep as values outside of the thread's block, and registers whose NaNs no one observes."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from msgspec import Struct

from xegpu_py.engines.jit.consecutive_addresses import FirstAddress, SharedNumber, consecutive_addresses
from xegpu_py.engines.jit.native_launch_struct import TABLES
from xegpu_py.engines.operands import execution_format
from xegpu_py.engines.semantics import ROUNDED
from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import accesses, effects, span_bits
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import AddressOf, Destination, Flag, Indirect, Predicate, Region, Variable
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import FLOATS

_WIDEST_VALUE = 128
"""The largest size in bytes of a variable that LLVM keeps in registers although parts of it that overlap are accessed.
LLVM joins and divides wider values by shuffles of all their elements: the backward pass of attention, which transposes
blocks, takes twice as long to compile, and its code is no faster.
"""

BY_SEMANTICS = ("tanh", "sigm", "pow", "lrp", "madw", "invm", "rsqtm", "shfl_idx4", "faddr")
"""Instructions that their semantic functions execute."""

_IN_PLACE = ("setp", "addc", "subb", *BY_SEMANTICS, *TABLES)
"""Instructions that access the thread's block, some of them only when their semantic function executes them."""

_FLOATS = tuple(TYPES[name] for name in FLOATS)


class Repeat(Struct, frozen=True, eq=False):
    """Instructions that execute as iterations of a loop.

    Attributes:
        start: the first one.
        period: the number of instructions of an iteration.
        count: the number of iterations.
        length: instructions from the first one on that are alike, of which the last may be no whole iteration.
        distances: how far the iterations are from the first one, for what differs between them: places in the thread's
            block of its operands and predicates, its constants, and of its messages, which are numbers of instructions,
            "strides" and "plus" of `FirstAddress`.
    """

    start: int
    period: int
    count: int
    length: int
    distances: Mapping[Hashable, tuple[int, ...]] = {}

    @property
    def first(self) -> range:
        """The instructions of the first iteration."""
        return range(self.start, self.start + self.period)

    def places(self, at: int) -> range:
        """The instructions of all iterations that correspond to one of the first."""
        return range(at, at + self.period * self.count, self.period)

    def iteration_of(self, at: int) -> int | None:
        """The iteration of an instruction, or None."""
        iteration = (at - self.start) // self.period
        return iteration if 0 <= iteration < self.count else None


class RegisterPromotion(Struct, frozen=True, dict=True):
    """Variables and predicates that LLVM may keep anywhere, and variables whose NaNs may have any bits.

    Attributes:
        variables: see `temporaries`.
        predicates: see `temporary_predicates`.
        nans: see `free_nans`.
        addresses: see `consecutive_addresses`.
        repeats: loops of instructions, by the first one; see `with_repeats`.
    """

    variables: Set[Variable] = frozenset()
    predicates: Set[Predicate] = frozenset()
    nans: Set[Variable] = frozenset()
    addresses: Mapping[int, FirstAddress] = {}
    repeats: Mapping[int, Repeat] = {}

    @cached_property
    def numbers(self) -> Mapping[int, list[SharedNumber]]:
        """The numbers of these addresses, by the instruction before which each has its value."""
        numbers: dict[int, list[SharedNumber]] = {}
        for number in dict.fromkeys(address.number for address in self.addresses.values()):
            numbers.setdefault(number.at, []).append(number)
        return numbers


def promotion_of(
    program: Program, target: Target, starts: Sequence[int], *, within_blocks: bool, records: bool
) -> RegisterPromotion:
    """The promotion of registers that a program allows, if its registers hold no results at the end.

    Args:
        starts: instructions that begin blocks.
        within_blocks: whether nothing reads registers between the instructions of a block.
        records: whether the addresses of messages are recorded.
    """
    nans = free_nans(program)
    if not within_blocks:
        return RegisterPromotion(nans=nans)
    addresses = {} if records else consecutive_addresses(program, target, tuple(starts))
    variables = temporaries(program, target, starts, addresses)
    return RegisterPromotion(variables, temporary_predicates(program, target, starts), nans, addresses)


def _in_blocks(program: Program, starts: Sequence[int]) -> Iterator[tuple[int, int, Instruction]]:
    """The number of each instruction's block, the instruction's index, and the instruction."""
    block, next_start = 0, [*starts[1:], len(program.instructions)]
    for at, inst in enumerate(program.instructions):
        while at >= next_start[block]:
            block += 1
        yield block, at, inst


def temporaries(
    program: Program, target: Target, starts: Sequence[int], addresses: Collection[int] = ()
) -> set[Variable]:
    """The variables that LLVM can keep in registers of the host.

    These variables are not aliases. Only arithmetic instructions of a single basic block access them, and the block
    always writes an element before it reads it. All other variables are in the thread's block, where the golden
    function, and a thread that resumes, find them. So are those whose parts would have to be joined; see
    `_WIDEST_VALUE`.

    Args:
        starts: instructions that begin blocks.
        addresses: messages that do not read their addresses from registers; see `consecutive_addresses`.
    """
    homes: dict[Variable, int] = {}
    writing_block: dict[Variable, int] = {}
    parts: defaultdict[Variable, set[tuple[int, int]]] = defaultdict(set)
    shared_variables: set[Variable] = set()
    for block, at, inst in _in_blocks(program, starts):
        promotable = _is_free(inst)
        known_address = inst["address"].var.root[0] if at in addresses else None
        for access in accesses(inst, target):
            var, bits = access.var, span_bits(access)
            if var is known_address:
                continue
            earlier_block = writing_block.get(var, 0)
            parts[var].add((access.start, access.end))
            if not promotable or homes.setdefault(var, block) != block:
                shared_variables.add(var)
            elif access.writes and access.whole:
                writing_block[var] = earlier_block | bits
            elif bits & ~earlier_block:
                shared_variables.add(var)
    return {v for v in homes.keys() - shared_variables if v.bytes <= _WIDEST_VALUE or _are_disjoint(parts[v])}


def _are_disjoint(parts: Set[tuple[int, int]]) -> bool:
    """Whether no two of these ranges of bytes overlap."""
    ordered = sorted(parts)
    return all(end <= start for (_, end), (start, _) in itertools.pairwise(ordered))


def temporary_predicates(program: Program, target: Target, starts: Sequence[int]) -> set[Predicate]:
    """The predicates that can be values of LLVM: vectors of i1.

    Only arithmetic instructions of a single basic block access these predicates. They always access the same lanes, and
    the block always writes a predicate before it reads it.

    Args:
        starts: instructions that begin blocks.
    """
    homes: dict[Predicate, tuple[int, int, int]] = {}
    written_predicates: set[Predicate] = set()
    shared_predicates: set[Predicate] = set()
    for block, _, inst in _in_blocks(program, starts):
        inst_effects = effects(inst, target)
        # Some guards, and moves of predicates, take all lanes of a predicate.
        by_lane = isinstance(inst.values.get("dst"), Flag) or not any(isinstance(o, Flag) for o in inst.sources)
        promotable = _is_free(inst) and by_lane and not (inst.guard and inst.guard.control)
        home = block, inst.first_lane, inst.exec_size
        shared_predicates.update(p for p in inst_effects.tests if p not in written_predicates)
        for predicate in (*inst_effects.tests, *([inst_effects.sets] if inst_effects.sets else ())):
            if not promotable or homes.setdefault(predicate, home) != home:
                shared_predicates.add(predicate)
        if inst_effects.sets:
            written_predicates.add(inst_effects.sets)
            if inst_effects.lanes is None:
                shared_predicates.add(inst_effects.sets)
    return homes.keys() - shared_predicates


def _is_free(inst: Instruction) -> bool:
    has_addresses = any(isinstance(value, (Indirect, AddressOf)) for value in inst.values.values())
    in_place = inst.name in _IN_PLACE or has_addresses or by_semantics(inst)
    return INSTRUCTIONS[inst.name].is_arithmetic and not in_place


def rounds_directed(inst: Instruction) -> bool:
    """Whether the result of an instruction depends on a rounding mode other than to nearest."""
    dst = inst.values.get("dst")
    if inst.rounding == "even" or dst is None or getattr(dst, "format", None) not in _FLOATS:
        return False
    formats = [source.format for source in inst.sources]
    if INSTRUCTIONS[inst.name].copies:
        return any(not fmt.is_float or fmt.bits > dst.format.bits for fmt in formats)
    return inst.name in ROUNDED or execution_format(inst, [fmt.name for fmt in formats]) not in ("", dst.format.name)


def by_semantics(inst: Instruction) -> bool:
    """Whether the semantic function of an instruction executes its alternatives, but for those of NaNs, or its directed
    rounding. Hosts round only to f and df, and negated 64-bit integers are not of that type.
    """
    if any(name != "nan-bits" for name, _ in inst.alternatives):
        return True
    if not rounds_directed(inst):
        return False
    wide = any(source.modifier and source.format.name in ("q", "uq") for source in inst.sources)
    return inst.saturate or inst["dst"].format.name not in ("f", "df") or inst.name == "sel" or wide


def free_nans(program: Program) -> set[Variable]:
    """The variables, none of them an alias, whose NaN bits no instruction observes.

    They are always accessed as one type of floats. Instructions that compute with them make the NaNs of the result
    canonical. Instructions that copy them write to such variables only.
    """
    types: dict[Variable, set[str]] = {}
    observed: set[Variable] = set()
    copies: dict[Variable, list[Variable]] = {}
    for inst in program.instructions:
        for name, value in inst.values.items():
            var = getattr(value, "var", None)
            if not isinstance(var, Variable):
                continue
            root = var.root[0]
            if isinstance(value, (Indirect, AddressOf)):
                observed.update(base.root[0] for base in getattr(value, "bases", (var,)))
                continue
            if isinstance(value, (Region, Destination)):
                types.setdefault(root, set()).add(var.type)
            if name != "dst" and _copies(inst, var):
                copies.setdefault(inst["dst"].var.root[0], []).append(root)
            elif name != "dst" and not _computes(inst, name):
                observed.add(root)
    unobserved = {var for var, names in types.items() if names in ({"f"}, {"df"})} - observed
    pending = [to for to in copies if to not in unobserved]
    while pending:
        for source in copies.get(pending.pop(), ()):
            if source in unobserved:
                unobserved.remove(source)
                pending.append(source)
    return unobserved


def _copies(inst: Instruction, source: Variable) -> bool:
    """Whether an instruction copies a source's bits."""
    dst = inst.values.get("dst")
    copies = INSTRUCTIONS[inst.name].copies and not inst.saturate and not isinstance(dst, Indirect)
    return copies and source.format is inst["dst"].var.format


def _computes(inst: Instruction, name: str) -> bool:
    """Whether an instruction reads a source as numbers, and makes the NaNs of its result canonical."""
    spec = INSTRUCTIONS[inst.name]
    if spec.category == "dpas":
        return name == "src0"
    if not spec.is_arithmetic or spec.on_bits or (isinstance(inst["dst"], Flag) and not spec.compares):
        return False
    types = [source.format.name for source in inst.sources if not isinstance(source, Flag)]
    return bool(execution_format(inst, types))
