"""Freedom of code generation: values that need not be in the thread's block, and NaNs whose bits no one observes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from msgspec import Struct

from xegpu_py.engines.execution import execution_format
from xegpu_py.engines.jit.frame import TABLES
from xegpu_py.target import Target
from xegpu_py.visa.accesses import accesses, effects, span_bits
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Destination, Flag, Predicate, Region, Variable
from xegpu_py.visa.program import Instruction, Program

_IN_PLACE = ("setp", *TABLES)
"""Instructions that access the thread's block, some of them only when their golden function executes them."""

_ON_BITS = ("srnd", "fcvt")
"""Instructions that read floats as bit patterns."""


class Freedom(Struct, frozen=True):
    """Variables and predicates that LLVM may keep anywhere, and variables whose NaNs may have any bits.

    Attributes:
        variables: see `temporaries`.
        predicates: see `temporary_predicates`.
        nans: see `free_nans`.
    """

    variables: Set[Variable] = frozenset()
    predicates: Set[Predicate] = frozenset()
    nans: Set[Variable] = frozenset()


def freedom_of(program: Program, target: Target, starts: Sequence[int], *, within_blocks: bool) -> Freedom:
    """The freedom that a program leaves to LLVM, if its registers hold no results at the end.

    Args:
        starts: instructions that begin blocks.
        within_blocks: whether nothing reads registers between the instructions of a block.
    """
    nans = free_nans(program)
    if not within_blocks:
        return Freedom(nans=nans)
    return Freedom(temporaries(program, target, starts), temporary_predicates(program, target, starts), nans)


def _in_blocks(program: Program, starts: Sequence[int]) -> Iterator[tuple[int, Instruction]]:
    """The number of each instruction's block, and the instruction."""
    block, following = 0, [*starts[1:], len(program.instructions)]
    for at, inst in enumerate(program.instructions):
        while at >= following[block]:
            block += 1
        yield block, inst


def temporaries(program: Program, target: Target, starts: Sequence[int]) -> set[Variable]:
    """The variables that LLVM can keep in registers of the host.

    These variables are not aliases. Only arithmetic instructions of a single basic block access them, and the block
    always writes an element before it reads it. All other variables are in the thread's block, where the golden
    function, and a thread that resumes, find them.

    Args:
        starts: instructions that begin blocks.
    """
    homes: dict[Variable, int] = {}
    written: dict[Variable, int] = {}
    others: set[Variable] = set()
    for block, inst in _in_blocks(program, starts):
        own = _is_free(inst)
        for access in accesses(inst, target):
            var, bits = access.var, span_bits(access)
            before = written.get(var, 0)
            if not own or homes.setdefault(var, block) != block:
                others.add(var)
            elif access.writes and access.whole:
                written[var] = before | bits
            elif bits & ~before:
                others.add(var)
    return homes.keys() - others


def temporary_predicates(program: Program, target: Target, starts: Sequence[int]) -> set[Predicate]:
    """The predicates that can be values of LLVM: vectors of i1.

    Only arithmetic instructions of a single basic block access these predicates. They always access the same lanes, and
    the block always writes a predicate before it reads it.

    Args:
        starts: instructions that begin blocks.
    """
    homes: dict[Predicate, tuple[int, int, int]] = {}
    written: set[Predicate] = set()
    others: set[Predicate] = set()
    for block, inst in _in_blocks(program, starts):
        found = effects(inst, target)
        # Some guards, and moves of predicates, take all lanes of a predicate.
        by_lane = isinstance(inst.values.get("dst"), Flag) or not any(isinstance(o, Flag) for o in inst.sources)
        own = _is_free(inst) and by_lane and not (inst.guard and inst.guard.control)
        home = block, inst.first_lane, inst.exec_size
        others.update(p for p in found.tests if p not in written)
        for predicate in (*found.tests, *([found.sets] if found.sets else ())):
            if not own or homes.setdefault(predicate, home) != home:
                others.add(predicate)
        if found.sets:
            written.add(found.sets)
            if found.lanes is None:
                others.add(found.sets)
    return homes.keys() - others


def _is_free(inst: Instruction) -> bool:
    """Whether an instruction's operands may be kept outside the thread's block."""
    return INSTRUCTIONS[inst.name].is_arithmetic and inst.name not in _IN_PLACE


def free_nans(program: Program) -> set[Variable]:
    """The variables, none of them an alias, whose NaN bits no instruction observes.

    They are always accessed as one type of floats. Instructions that compute with them make the NaNs of the result
    canonical. Instructions that copy them write to such variables only.
    """
    types: dict[Variable, set[str]] = {}
    seen: set[Variable] = set()
    copies: dict[Variable, list[Variable]] = {}
    for inst in program.instructions:
        for name, value in inst.values.items():
            var = getattr(value, "var", None)
            if not isinstance(var, Variable):
                continue
            root = var.root[0]
            if isinstance(value, (Region, Destination)):
                types.setdefault(root, set()).add(var.type)
            if name != "dst" and _copies(inst, var):
                copies.setdefault(inst["dst"].var.root[0], []).append(root)
            elif name != "dst" and not _computes(inst, name):
                seen.add(root)
    free = {var for var, names in types.items() if names in ({"f"}, {"df"})} - seen
    pending = [to for to in copies if to not in free]
    while pending:
        for source in copies.get(pending.pop(), ()):
            if source in free:
                free.remove(source)
                pending.append(source)
    return free


def _copies(inst: Instruction, source: Variable) -> bool:
    """Whether an instruction copies a source's bits."""
    return inst.name in ("mov", "sel") and not inst.saturate and source.format is inst["dst"].var.format


def _computes(inst: Instruction, name: str) -> bool:
    """Whether an instruction reads a source as numbers, and makes the NaNs of its result canonical."""
    spec = INSTRUCTIONS[inst.name]
    if spec.category == "dpas":
        return name == "src0"
    if not spec.is_arithmetic or inst.name in _ON_BITS or (isinstance(inst["dst"], Flag) and not spec.compares):
        return False
    types = [source.format.name for source in inst.sources if not isinstance(source, Flag)]
    return bool(execution_format(inst, types))
