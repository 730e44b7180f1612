"""Blocks that are kept in the form in which a dpas multiplies them."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from xegpu_py.engines.faults import aligned
from xegpu_py.engines.jit.host import LINE_BYTES
from xegpu_py.engines.jit.ir_text import PTR, FunctionBody, LLVMValue
from xegpu_py.engines.jit.native_launch_struct import context_offset, traffic_offset
from xegpu_py.numerics.formats import PRECISIONS
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import Access, accesses, liveness_of
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Instruction, Program, analysis
from xegpu_py.visa.spec import BlockShape

# Matrices that only dpas reads: block messages load them as panels, which dpas multiplies, and not to registers.
#
# For all other operands, dpas widens the elements that it reads from registers.

_NEVER = 1 << 62
"""More than the total size of panels ever reaches."""

MAX_BESIDE = 4
"""Loads whose blocks are one panel if they lie side by side."""

_SAME = ("block", "base", "width", "height", "pitch")
"""The operands that are the same in such loads."""


class Matrix(Struct, frozen=True):
    """The layout of a variable's elements as f32 or as wider integers, in panels instead of registers.

    Attributes:
        precision: the precision of its elements.
        bits: of an element as it is multiplied; of words of B, two of a column lie side by side.
        columns: those of B, whose elements of one column lie in a channel of 32 bits each; 0 for A, row after row.
    """

    precision: str
    columns: int
    bits: int = 32

    @property
    def scale(self) -> int:
        """The ratio of the memory that an element needs here to the memory that it needs in registers."""
        return self.bits // PRECISIONS[self.precision].bits

    @property
    def name(self) -> str:
        """The part that the matrix adds to the name of a function that loads it."""
        return f"{'b' if self.columns else 'a'}{self.columns or ''}_{self.precision}"


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
        byte_bits: int = 0,
    ) -> None:
        """Find the matrices of a program.

        Args:
            live: the instructions between which each variable is needed.
            starts: instructions that begin blocks, behind each of which the thread may be left.
            byte_bits: the width to which bytes are widened before multiplication; 0 if they are not widened.
        """
        self._matrices: dict[Variable, Matrix] = {}
        self.panel_bytes = 0
        for var, uses in _uses(program, target, byte_bits).items():
            in_one_block = bisect_right(starts, live[var][0]) == bisect_right(starts, live[var][1])
            if in_one_block and _is_one_matrix(uses, target):
                (self._matrices[var],) = uses.kinds
        blocks: Counter[int] = Counter()
        for at, inst in enumerate(program.instructions):
            if self.shares(inst):
                size = block_bytes(inst["block"], target.grf_bytes) * self._of(inst).scale
                # Blocks that could lie side by side may also be panels of their own.
                blocks[bisect_right(starts, at)] += panel_stride(size)
                beside_count = self.beside(program.instructions[at : at + MAX_BESIDE])
                self.panel_bytes = max(self.panel_bytes, panel_stride(beside_count * size))
        self.step_bytes = max(blocks.values(), default=0)
        self.steps = steps_together(self.step_bytes)

    def shares(self, inst: Instruction) -> bool:
        """Whether an instruction loads a panel."""
        return _loads(inst) and self.of(inst["dst"].var) is not None

    def beside(self, run: Sequence[Instruction]) -> int:
        """Count the instructions, from the first on, that load panels of one kind that may be adjacent; 1 if none do.

        They have the same surface. Generated code checks at run time whether their blocks lie side by side.
        """
        first_inst, count = run[0], 1
        if not self.shares(first_inst) or first_inst["block"].transpose:
            return 1
        for inst in run[1:]:
            same = self.shares(inst) and all(inst[name] == first_inst[name] for name in _SAME)
            same = same and inst.clipped == first_inst.clipped
            if not same or self._of(inst) != self._of(first_inst):
                break
            count += 1
        return count

    def _of(self, inst: Instruction) -> Matrix:
        return self._matrices[inst["dst"].var.root[0]]

    def of(self, var: Variable) -> tuple[Matrix, int] | None:
        """The matrix that holds a variable, and its byte offset there; None if the variable is in registers."""
        root, offset = var.root
        matrix = self._matrices.get(root)
        return (matrix, offset) if matrix else None


@analysis
def find_matrices(program: Program, target: Target, starts: tuple[int, ...], byte_bits: int = 0) -> Matrices:
    """The matrices of a program; see `Matrices`."""
    return Matrices(program, target, liveness_of(program, target).ranges, starts, byte_bits)


def block_bytes(shape: BlockShape, grf_bytes: int) -> int:
    """Bytes of the registers that a message writes."""
    return shape.count * shape.block_bytes(grf_bytes)


def _uses(program: Program, target: Target, byte_bits: int) -> dict[Variable, _Uses]:
    """The uses of each variable that only block messages write and only dpas reads."""
    uses_by_variable: dict[Variable, _Uses] = {}
    loaded_variables = {inst["dst"].var.root[0] for inst in program.instructions if _loads(inst)}
    if not any(inst.name == "dpas" and _factors(inst) & loaded_variables for inst in program.instructions):
        return uses_by_variable
    input_variables = {item.var.root[0] for item in program.inputs}
    for inst in program.instructions:
        for access in accesses(inst, target):
            uses = uses_by_variable.setdefault(access.var, _Uses())
            uses.order.append(access)
            matrix_kinds = _kinds(inst, access, byte_bits)
            if access.writes and access.whole and inst.name == "lsc_load_block2d":
                uses.loads.append((inst["block"], access.start))
            elif matrix_kinds:
                uses.kinds |= matrix_kinds
            else:
                input_variables.add(access.var)
    return {
        var: uses for var, uses in uses_by_variable.items() if var not in input_variables and uses.loads and uses.kinds
    }


def _loads(inst: Instruction) -> bool:
    return inst.name == "lsc_load_block2d" and inst["dst"].var is not None


def _factors(inst: Instruction) -> set[Variable]:
    return {inst[name].var.root[0] for name in ("src1", "src2")}


def _kinds(inst: Instruction, access: Access, byte_bits: int) -> set[Matrix]:
    """Return the kinds of matrix as which dpas reads a variable; empty for narrow integers, or if another instruction
    reads it.
    """
    if access.writes or inst.name != "dpas" or inst["W"] in ("df", "e2m1"):
        return set()
    is_float = PRECISIONS[inst["W"]].is_float
    if not is_float and not (byte_bits and {inst["W"], inst["A"]} <= {"s8", "u8"}):
        return set()
    bits = 32 if is_float else byte_bits
    if inst["src0"].var is not None and inst["src0"].var.root[0] == access.var:
        return set()
    matrix_kinds = set()
    if inst["src1"].var.root[0] == access.var:
        matrix_kinds.add(Matrix(inst["W"], inst.exec_size, bits))
    if inst["src2"].var.root[0] == access.var:
        matrix_kinds.add(Matrix(inst["A"], 0, bits))
    return matrix_kinds


def _is_one_matrix(uses: _Uses, target: Target) -> bool:
    """Whether it is read as one kind of matrix, in whole rows of the messages' lines, and each part that dpas reads
    comes from the block of one message."""
    if len(uses.kinds) != 1:
        return False
    (matrix,) = uses.kinds
    grain = 4 * matrix.columns or PRECISIONS[matrix.precision].bits // 8
    loads, latest = iter(uses.loads), list[tuple[int, int]]()
    for access in uses.order:
        if access.writes:
            shape, start = next(loads)
            _, columns, pack = shape.register_shape()
            sizes = start, columns * pack * shape.size // 8, shape.block_bytes(target.grf_bytes)
            if any(size % grain for size in sizes):
                return False
            latest.insert(0, (start, start + block_bytes(shape, target.grf_bytes)))
        else:
            # The last message that has written a byte of it has written all of it.
            load_range = next((load for load in latest if load[0] < access.end and access.start < load[1]), None)
            if load_range is None or access.start < load_range[0] or load_range[1] < access.end or access.start % grain:
                return False
    return True


# Panels: loaded blocks in the format in which dpas multiplies them. The threads that a worker runs share them.
#
# Subgroups of a workgroup load the same blocks of A and B. The first subgroup that loads a block widens it into a
# panel; the others find the panel by a key that is made from the message's operands. Panels are kept in a ring buffer,
# in which a new panel overwrites the oldest. A table has two entries for each hash of a key; the first entry has the
# newer panel.
#
# A panel is valid until the worker accesses memory in another way. Stores of blocks to allocations from which no panel
# was loaded are the exception: they leave panels valid. So a thread sees its own stores, and those after which a
# barrier, a fence or an atomic orders it. Without such an order the two race, and the panel has a value that the place
# had, which the memory model of docs/visa.md allows.


class Fields(ctypes.Structure):
    """The begin of the memory of panels. Pointers are host addresses."""

    _fields_ = [
        ("made", ctypes.c_int64),  # the total size in bytes of all panels made so far
        ("floor", ctypes.c_int64),  # panels that were made before the total reached this size are not found
        ("span", ctypes.c_int64),  # panels that were made more than this number of bytes ago are not found
        ("next_panel", ctypes.c_int64),  # the address of the next panel
        ("ring", ctypes.c_int64),  # the first address of the ring
        ("ring_end", ctypes.c_int64),  # the address behind the ring
        ("steps", ctypes.c_int64),  # the number of steps of a loop for which panels are kept before they are multiplied
        ("sources", ctypes.c_int64),  # allocations with panels: bit n stands for numbers with remainder n modulo 64
        ("last_entry", ctypes.c_int64),  # the index of the last entry of the table that is in use
        ("cursor", ctypes.c_int64),  # the address of the next item of the list of lines to prefetch
        ("lines_end", ctypes.c_int64),  # the address of this list's end
    ]


_HASH_BITS = 10

_ENTRIES, _ENTRY = 128, 64

_LINES, _LINES_BYTES = _ENTRIES + (_ENTRY << _HASH_BITS), 1 << 15

_LINES_AT_ONCE = 2
"""Behind the fields are the table of panels and the list of lines to prefetch. `_ENTRIES` is the offset of the table,
which has an entry of `_ENTRY` bytes for each hash. `_LINES` and `_LINES_BYTES` are the offset and size of the list,
which has a pointer for each line. Each step of a multiplication prefetches `_LINES_AT_ONCE` lines.

The panel that is being made determines the lines that later iterations of the loop load. A core can wait for about 16
lines at once, and a prefetch beyond these blocks all other loads. So only a few lines are prefetched at a time, spread
over the multiplications."""

WORDS = {
    **{name: getattr(Fields, name).offset for name, *_ in Fields._fields_},
    # Odd factors of the hash function: their products with small numbers differ in the upper bits.
    "first_factor": "u0x9E3779B97F4A7C15",
    "second_factor": "u0xC2B2AE3D27D4EB4F",
    "hash_shift": 64 - _HASH_BITS,
    "entries": _ENTRIES,
    "entry_bytes": _ENTRY,
    "entry_before": 32,
    "entry_panel": 40,
    "entry_moved": 48,
    "lines": _LINES,
    "lines_bytes": _LINES_BYTES,
    "at_once": _LINES_AT_ONCE,
    "loaded": traffic_offset("ugm", "load"),
}
"""Placeholders of `packed_operand_cache.ll`. An entry has the four words of a key, the total size of earlier panels,
the panel's address, and the number of bytes that its message moves.
"""

_RING_BYTES, _THREAD_BYTES = 3 << 16, 1 << 12
"""The size in bytes of a ring for several threads, and the additional size for each thread. The ring holds the panels
of one time slice of a GEMM with 32 or 64 threads. It fits into a part of a second-level cache of 1 MiB.
"""

_MAX_STEPS = 8

_STEPS_BYTES = 51 << 10
"""The largest number of steps of a loop that are multiplied together, and the largest size in bytes of the panels that
a thread loads in these steps. Larger panels do not stay in the first-level cache while the rows of the accumulators are
computed."""


def panel_stride(size: int) -> int:
    """Bytes from one panel to the next. It is not a multiple of the page size, with which the lines of all panels would
    map to the same cache sets."""
    return -(-size // 64) * 64 + 64


def steps_together(step_bytes: int) -> int:
    """The number of steps of a loop that are multiplied together, a power of two.

    Args:
        step_bytes: bytes of the panels that a thread loads in each step.
    """
    step_limit = min(_MAX_STEPS, _STEPS_BYTES // max(step_bytes, 1))
    return 1 << max(step_limit.bit_length() - 1, 0)


class Panels:
    """The panels of one worker."""

    def __init__(self, largest: int, step_bytes: int) -> None:
        """Create an empty set of panels.

        Args:
            largest: bytes of the largest panel.
            step_bytes: bytes of the panels that a thread loads in a step of a loop.
        """
        self._largest, self._step_bytes = largest, step_bytes
        self._ring = aligned(0)
        # A step reads beyond the end of the list. These words must be addresses that the TLB can translate.
        self._memory = aligned(_LINES + _LINES_BYTES + 8 * _LINES_AT_ONCE).view(np.int64)
        self._memory[_LINES // 8 :] = self.address
        self._fields = Fields.from_address(self.address)

    @property
    def address(self) -> int:
        """The address of the panels' memory, for native code."""
        return int(self._memory.ctypes.data)

    @property
    def total_bytes(self) -> int:
        """The total size in bytes of all panels made so far."""
        return int(self._fields.made)

    def begin(self, threads: int, share_panels: bool = True) -> None:
        """Forget all panels, and provide a ring for workgroups of `threads` threads: a short one for one thread.

        Args:
            share_panels: whether threads multiply panels that others have made.
        """
        steps = 1 if threads == 1 else steps_together(self._step_bytes)
        # At the ring's end some bytes are left over.
        ring_bytes = self._step_bytes * steps + 2 * self._largest
        length = ring_bytes + (
            self._largest if threads == 1 else max(ring_bytes, _RING_BYTES + _THREAD_BYTES * threads)
        )
        if len(self._ring) != length:
            self._ring = aligned(length)
        fields = self._fields
        fields.floor, fields.sources = fields.made if share_panels else _NEVER, 0
        fields.span, fields.steps = length - ring_bytes, steps
        # A thread alone seldom loads a block again: one entry stays in the first-level cache.
        fields.last_entry = 0 if threads == 1 else (1 << _HASH_BITS) - 1
        fields.cursor = fields.lines_end = self.address + _LINES
        fields.ring = fields.next_panel = self._ring.ctypes.data
        fields.ring_end = fields.ring + length


def listed_lines(shape: BlockShape) -> dict[str, object]:
    """Placeholders of the function of `packed_operand_cache.ll` that lists the lines of a later block."""
    size = shape.size // 8
    line_offsets = [
        (row, at) for row in range(shape.height) for at in range(0, shape.count * shape.width * size, LINE_BYTES)
    ]
    rows, offsets = (", ".join(f"i64 {n}" for n in numbers) for numbers in zip(*line_offsets))
    return {
        "shape": str(shape).replace(".", "_"),
        "element_bytes": size,
        "count": len(line_offsets),
        "list_bytes": 8 * len(line_offsets),
        "row_numbers": rows,
        "line_offsets": offsets,
    }


class Prefetches:
    """The prefetches of listed lines, in the code of a multiplication."""

    def __init__(self, code: FunctionBody, ctx: LLVMValue) -> None:
        """Start after the lines that earlier code has prefetched."""
        self._code, self._panels = code, _panels(code, ctx)
        self._cursor = code.alloca(8, 8)
        cursor, self._stop = (_field(code, self._panels, name) for name in ("cursor", "lines_end"))
        code.store(cursor, self._cursor, 8)

    def some(self) -> None:
        """Prefetch some lines. If no others are listed, prefetch the last ones again."""
        code = self._code
        cursor = code.load(self._cursor, "i64", 8)
        line_pointer = code.op(f"inttoptr {cursor} to ptr", PTR)
        for i in range(_LINES_AT_ONCE):
            # To be read, into the second-level cache, of data.
            line = code.load(code.at(line_pointer, 8 * i), PTR, 8)
            code.call("llvm.prefetch.p0", line, *(code.const(n, "i32") for n in (0, 2, 1)))
        next_cursor = code.add(cursor, 8 * _LINES_AT_ONCE)
        code.store(code.intrinsic("umin", next_cursor, self._stop), self._cursor, 8)

    def end(self) -> None:
        """Record which lines are not prefetched yet."""
        code = self._code
        code.store(code.load(self._cursor, "i64", 8), code.at(self._panels, Fields.cursor.offset), 8)


def steps_of(code: FunctionBody, ctx: LLVMValue) -> LLVMValue:
    """Steps of a loop after which panels must be multiplied, an i64."""
    return _field(code, _panels(code, ctx), "steps")


def _panels(code: FunctionBody, ctx: LLVMValue) -> LLVMValue:
    return code.load(code.at(ctx, context_offset("panels")), PTR, 8)


def _field(code: FunctionBody, panels: LLVMValue, name: str) -> LLVMValue:
    return code.load(code.at(panels, getattr(Fields, name).offset), "i64", 8)
