"""Matrices that only dpas reads: block messages load them in the format that dpas multiplies, and skip the registers.

For all other operands, dpas widens the elements that it reads from registers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from xegpu_py.engines.jit.panels import panel_stride, steps_together
from xegpu_py.numerics.formats import PRECISIONS
from xegpu_py.target import Target
from xegpu_py.visa.accesses import Access, accesses
from xegpu_py.visa.liveness import live_ranges
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Instruction, Program, analysis
from xegpu_py.visa.spec import BlockShape

MOST_BESIDE = 4
"""Loads whose blocks are one panel if they lie side by side."""

_SAME = ("block", "base", "width", "height", "pitch")
"""The operands that are the same in such loads."""


class Matrix(Struct, frozen=True):
    """The layout of a variable's elements as f32 or as wider integers, in memory outside the registers.

    Attributes:
        precision: the precision of its elements.
        bits: of an element as it is multiplied; of words of B, two of a column lie side by side.
        columns: those of B, whose elements of one column lie in a channel of 32 bits each; 0 for A, row after row.
        place: byte offset of the matrix in that memory.
        shared: whether each part that dpas reads is of one message's block, which is a panel then (see `panels`) and
            has no place.
    """

    precision: str
    columns: int
    bits: int = 32
    place: int = 0
    shared: bool = False

    @property
    def scale(self) -> int:
        """The ratio of the memory that an element needs here to the memory that it needs in registers."""
        return self.bits // PRECISIONS[self.precision].bits

    @property
    def name(self) -> str:
        """The part that the matrix adds to the name of a function that loads it."""
        return f"{'b' if self.columns else 'a'}{self.columns or ''}_{self.precision}"

    def at(self, offset: int) -> int:
        """The byte offset in that memory of a byte of the variable."""
        return self.place + self.scale * offset


class _Uses(Struct):
    """The uses of a variable in a program.

    Attributes:
        kinds: the kinds of matrix that dpas reads it as.
        loads: the block messages that load it, and their destinations.
        order: all accesses.
    """

    kinds: set[Matrix] = field(default_factory=set)
    loads: list[tuple[BlockShape, int]] = field(default_factory=list)
    order: list[Access] = field(default_factory=list)


class Matrices:
    """The matrices of a program that are loaded as dpas multiplies them.

    Attributes:
        bytes: size of the memory that holds them.
        panel_bytes: size of the largest panel; 0 if there is none.
        step_bytes: maximum size of all panels that a thread loads in a basic block.
        steps: maximum number of loop iterations that are multiplied together.
    """

    def __init__(
        self,
        program: Program,
        target: Target,
        live: Mapping[Variable, tuple[int, int]],
        starts: Sequence[int],
        share: bool = True,
        byte_bits: int = 0,
    ) -> None:
        """Find the matrices of a program.

        Args:
            live: the instructions between which each variable is needed.
            starts: instructions that begin blocks, behind each of which the thread may be left.
            share: whether panels are allowed.
            byte_bits: the width to which bytes are widened before multiplication; 0 if they are not widened.
        """
        self._found: dict[Variable, Matrix] = {}
        self.bytes = self.panel_bytes = 0
        within = [
            (live[var], var, uses)
            for var, uses in _uses(program, target, byte_bits).items()
            if bisect_right(starts, live[var][0]) == bisect_right(starts, live[var][1]) and _fits(uses, target)
        ]
        # Those that are needed at the same time are as many as registers hold.
        taken: list[tuple[int, int, int]] = []
        for (first, last), var, uses in sorted(within, key=lambda found: found[0]):
            (matrix,) = uses.kinds
            if share and _shared(uses, target):
                self._found[var] = replace(matrix, shared=True)
                continue
            size, place = -(-var.bytes * matrix.scale // 64) * 64, 0
            taken = sorted(place for place in taken if place[2] >= first)
            for start, end, _ in taken:
                if start >= place + size:
                    break
                place = max(place, end)
            taken.append((place, place + size, last))
            self._found[var] = replace(matrix, place=place)
            self.bytes = max(self.bytes, place + size)
        blocks: Counter[int] = Counter()
        for at, inst in enumerate(program.instructions):
            if self.shares(inst):
                size = block_bytes(inst["block"], target.grf_bytes) * self._of(inst).scale
                # Blocks that could lie side by side may also be panels of their own.
                blocks[bisect_right(starts, at)] += panel_stride(size)
                together = self.beside(program.instructions[at : at + MOST_BESIDE])
                self.panel_bytes = max(self.panel_bytes, panel_stride(together * size))
        self.step_bytes = max(blocks.values(), default=0)
        self.steps = steps_together(self.step_bytes)

    def shares(self, inst: Instruction) -> bool:
        """Whether an instruction loads a panel."""
        found = self.of(inst["dst"].var) if _loads(inst) else None
        return found is not None and found[0].shared

    def beside(self, run: Sequence[Instruction]) -> int:
        """How many instructions, from the first on, load panels of one kind that may lie side by side; 1 if none do.

        They have the same surface. Generated code checks at run time whether their blocks lie side by side.
        """
        first, count = run[0], 1
        if not self.shares(first) or first["block"].transpose:
            return 1
        for inst in run[1:]:
            same = self.shares(inst) and all(inst[name] == first[name] for name in _SAME)
            if not same or self._of(inst) != self._of(first):
                break
            count += 1
        return count

    def _of(self, inst: Instruction) -> Matrix:
        """The matrix that an instruction loads."""
        return self._found[inst["dst"].var.root[0]]

    def of(self, var: Variable) -> tuple[Matrix, int] | None:
        """The matrix that holds a variable, and its byte offset there; None if the variable is in registers."""
        root, offset = var.root
        found = self._found.get(root)
        return (found, offset) if found else None


@analysis
def found_matrices(
    program: Program, target: Target, starts: tuple[int, ...], share: bool, byte_bits: int = 0
) -> Matrices:
    """The matrices of a program; see `Matrices`."""
    return Matrices(program, target, live_ranges(program, target), starts, share, byte_bits)


def block_bytes(shape: BlockShape, grf_bytes: int) -> int:
    """Bytes of the registers that a message writes."""
    return shape.count * shape.block_bytes(grf_bytes)


def _shared(uses: _Uses, target: Target) -> bool:
    """Whether each part that dpas reads comes from the block of one message."""
    loads = iter(uses.loads)
    latest: list[tuple[int, int]] = []
    for access in uses.order:
        if access.writes:
            shape, start = next(loads)
            latest.insert(0, (start, start + block_bytes(shape, target.grf_bytes)))
        else:
            # The last message that has written a byte of it has written all of it.
            start, end = next(load for load in latest if load[0] < access.end and access.start < load[1])
            if access.start < start or end < access.end:
                return False
    return True


def _uses(program: Program, target: Target, byte_bits: int) -> dict[Variable, _Uses]:
    """The uses of each variable that only block messages write and only dpas reads."""
    found: dict[Variable, _Uses] = {}
    loaded = {inst["dst"].var.root[0] for inst in program.instructions if _loads(inst)}
    if not any(inst.name == "dpas" and _factors(inst) & loaded for inst in program.instructions):
        return found
    others = {item.var.root[0] for item in program.inputs}
    for inst in program.instructions:
        for access in accesses(inst, target):
            uses = found.setdefault(access.var, _Uses())
            uses.order.append(access)
            kinds = _kinds(inst, access, byte_bits)
            if access.writes and access.whole and inst.name == "lsc_load_block2d":
                uses.loads.append((inst["block"], access.start))
            elif kinds:
                uses.kinds |= kinds
            else:
                others.add(access.var)
    return {var: uses for var, uses in found.items() if var not in others and uses.loads and uses.kinds}


def _loads(inst: Instruction) -> bool:
    """Whether an instruction loads a block to registers."""
    return inst.name == "lsc_load_block2d" and inst["dst"].var is not None


def _factors(inst: Instruction) -> set[Variable]:
    """The variables that dpas reads as factors."""
    return {inst[name].var.root[0] for name in ("src1", "src2")}


def _kinds(inst: Instruction, access: Access, byte_bits: int) -> set[Matrix]:
    """What dpas reads a variable as; nothing if it is no matrix of floats or wider bytes there, or another reads it."""
    if access.writes or inst.name != "dpas" or inst["W"] in ("df", "e2m1"):
        return set()
    is_float = PRECISIONS[inst["W"]].is_float
    if not is_float and not (byte_bits and {inst["W"], inst["A"]} <= {"s8", "u8"}):
        return set()
    bits = 32 if is_float else byte_bits
    if inst["src0"].var is not None and inst["src0"].var.root[0] == access.var:
        return set()
    kinds = set()
    if inst["src1"].var.root[0] == access.var:
        kinds.add(Matrix(inst["W"], inst.exec_size, bits))
    if inst["src2"].var.root[0] == access.var:
        kinds.add(Matrix(inst["A"], 0, bits))
    return kinds


def _fits(uses: _Uses, target: Target) -> bool:
    """Whether it is read as one kind of matrix, only where it was loaded, and in whole rows of the messages' lines."""
    if len(uses.kinds) != 1:
        return False
    (matrix,) = uses.kinds
    grain = 4 * matrix.columns or PRECISIONS[matrix.precision].bits // 8
    for shape, start in uses.loads:
        _, columns, pack = shape.register_shape()
        sizes = start, columns * pack * shape.size // 8, shape.block_bytes(target.grf_bytes)
        if any(size % grain for size in sizes):
            return False
    loaded = 0
    for access in uses.order:
        bits = ((1 << (access.end - access.start)) - 1) << access.start
        if access.writes:
            loaded |= bits
        elif bits & ~loaded or access.start % grain:
            return False
    return True
