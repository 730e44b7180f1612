"""Declarations of instructions: operands, attributes, text, rules and traits.

One `InstructionSpec` defines the reading and writing of its assembly, its op in the `visa` dialect, its verification
and its documentation. Tests check that each engine knows it. Properties that passes need, such as whether an
instruction commutes, jumps or accesses memory, are declared there too; passes do not test names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from xegpu_py.numerics.formats import TYPES, Array
from xegpu_py.target import Target
from xegpu_py.visa.operands import Destination
from xegpu_py.visa.program import LABEL, Instruction

OperandKind = Literal["dst", "src", "raw", "vector", "scalar", "address", "flag", "place"]

Use = Literal["read", "write"]

Problem = tuple[str, ...] | None
"""Why an instruction is not legal: a message and notes."""

Check = Callable[[Instruction, Target], Problem]

Span = tuple[int, int]
"""The least and the greatest number that an integer can be."""

INTEGERS = tuple(n for n, f in TYPES.items() if not f.is_float)

FLOATS = tuple(n for n, f in TYPES.items() if f.is_float)

MESSAGES = ("load", "store", "atomic")
"""The categories of instructions that access memory."""

EXEC_SIZES = (1, 2, 4, 8, 16, 32)

LANES = 32
"""SIMD lanes that a thread's execution mask has."""


class OperandSpec(Struct, frozen=True):
    """One operand.

    Attributes:
        name: its name.
        kind: how it names registers: "dst" and "src" are regions, "raw" is a variable from a byte on, "vector"
            consecutive elements, "scalar" one element or an immediate, "address" addresses of a message, "flag" a
            predicate, "place" the place of a variable in the register file, or an address variable.
        use: whether the instruction reads or writes it.
        types: legal element types; empty for any.
        immediate: whether a constant may stand there.
        modifiers: source modifiers that it may have.
        null: whether it may be null.
        indirect: whether it may be registers that an address variable names.
        addresses: whether an address variable may stand there.
        flags: whether a predicate may stand there in the place of a region.
        all_bits: whether such a predicate is read as a whole, and not lane by lane.
        bytes: for "raw" and "vector", how many bytes are accessed.
        lane_bytes: the offsets of the bytes that are accessed for each lane, [lanes, bytes], or [1, bytes] for the
            thread as a whole; None for all `bytes` and the thread as a whole.
    """

    name: str
    kind: OperandKind
    use: Use = "read"
    types: tuple[str, ...] = ()
    immediate: bool = False
    modifiers: tuple[str, ...] = ()
    null: bool = False
    indirect: bool = False
    addresses: bool = False
    flags: bool = False
    all_bits: bool = False
    bytes: Callable[[Instruction, Target], int] | None = None
    lane_bytes: Callable[[Instruction, Target], Array] | None = None


class KeywordAttribute(Struct, frozen=True):
    """An attribute whose value is one of several words."""

    words: tuple[str, ...]


class IntegerAttribute(Struct, frozen=True):
    """An attribute whose value is one of several numbers."""

    values: tuple[int, ...]

    @property
    def summary(self) -> str:
        """The numbers in words, such as `1 to 8`."""
        minimum, maximum = self.values[0], self.values[-1]
        if self.values == tuple(range(minimum, maximum + 1)):
            return f"{minimum} to {maximum}"
        return f"one of {', '.join(map(str, self.values))}"


class CacheAttribute(Struct, frozen=True):
    """Cache options of a message: those for L1 and L3 (`.ca.ca`), on cri those for L1, L2 and L3, or none.

    Attributes:
        pairs: the pairs that messages of this project have.
        words: the options of each cache.
    """

    pairs: tuple[str, ...]
    words: tuple[str, ...]


class DataShapeAttribute(Struct, frozen=True):
    """The data of each lane of a message: `d32`, `d32x4`, `d64x16t`, `d8c32`."""


class BlockShapeAttribute(Struct, frozen=True):
    """The data of a 2D block message: `d16.2x16x16nt`."""


class LabelAttribute(Struct, frozen=True):
    """A label."""


class ByteAttribute(Struct, frozen=True):
    """A number of 8 bits, in two hexadecimal digits."""


class SymbolAttribute(Struct, frozen=True):
    """The name of a function or a constant of another text; `quoted` says whether it is printed in quotes."""

    quoted: bool = False


class SuffixAttribute(Struct, frozen=True):
    """One of some words, which may follow behind a point, as in `ifcall.uniform`, or "" in its place."""

    words: tuple[str, ...]


class LabelsAttribute(Struct, frozen=True):
    """Labels with commas between them."""


class SurfaceAttribute(Struct, frozen=True):
    """The surface of a message of earlier GPUs: always `%slm`, shared local memory."""


Attribute = (
    KeywordAttribute
    | IntegerAttribute
    | CacheAttribute
    | DataShapeAttribute
    | BlockShapeAttribute
    | LabelAttribute
    | ByteAttribute
    | SymbolAttribute
    | SuffixAttribute
    | LabelsAttribute
    | SurfaceAttribute
)


def all_of(*checks: Check) -> Check:
    """The first problem of several checks."""
    return lambda inst, target: next((p for p in (check(inst, target) for check in checks) if p), None)


class InstructionSpec(Struct, frozen=True):
    """One instruction.

    Attributes:
        name: its name in vISA.
        doc: its effect, in one sentence that names its operands.
        form: its text after the guard: literals, `{operand}`, `{attribute}`, and `{sat}` and `{exec}`.
        slots: its operands.
        attributes: its attributes by name.
        category: its class in statistics: "dpas", "alu", "math", "address", "load", "store", "atomic", "sync" or
            "control".
        guard: whether it may be predicated.
        exec_sizes: legal execution sizes; empty if it has none.
        no_mask_only: when it must have NoMask.
        check: its own rules.
        source: where its rules are from.
        commutes: whether `src0` and `src1` may change places.
        identity: the integer that as `src1` leaves an integer `src0` as it is, modulo the result's width, or None; and
            for which results: of any width, none wider than `src0`, or of its width.
        zero: whether an integer `src1` of 0 makes the result 0.
        low_bits: whether the lowest bits of integer operands alone decide those of the result.
        ordered: whether the result depends on which integers are greater, and not on their bits alone.
        interval: the integers that the result can be, from those that the sources can be; None if that is not declared.
        copies: whether its result is a source, converted to the type of the result.
        on_bits: whether it reads floats as bit patterns, whatever the mode of subnormal numbers.
        selects: whether its predicate chooses between sources, and all lanes are written.
        all_lanes: whether it writes all lanes whatever its mask says.
        second: a destination that its text does not name, of an instruction on a target; None if it has none.
        jumps: whether it may continue at its label.
        uniform: whether the predicate's first bit decides for all lanes at once.
        ends: whether it ends lanes, or returns them to a caller.
        calls: whether lanes run a subroutine or function before they continue.
        barrier: its action at a barrier: it signals, waits, or signals and waits; "" for no barrier.
        named_barrier: whether its operand `id` is the number of a barrier.
        atomic: the name of its atomic operation; "" for none.
        expansion: the instructions that engines execute in its place, from it, a target and what makes variables; None
            for those that they execute themselves (see `visa.legacy_messages`).
    """

    name: str
    doc: str
    form: str
    slots: tuple[OperandSpec, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    category: str = "alu"
    guard: bool = False
    exec_sizes: tuple[int, ...] = EXEC_SIZES
    no_mask_only: Callable[[Instruction], bool] = lambda inst: False
    check: Check = lambda inst, target: None
    source: str = "vISA"
    commutes: bool = False
    identity: tuple[int, Literal["any", "narrower", "same"]] | None = None
    zero: bool = False
    low_bits: bool = False
    ordered: bool = False
    interval: Callable[..., Span] | None = None
    copies: bool = False
    on_bits: bool = False
    selects: bool = False
    all_lanes: bool = False
    second: Callable[[Instruction, Target], Destination] | None = None
    jumps: bool = False
    uniform: bool = False
    ends: bool = False
    calls: bool = False
    barrier: Literal["", "signal", "wait", "both"] = ""
    named_barrier: bool = False
    atomic: str = ""
    expansion: Callable[..., Iterator[Instruction]] | None = None

    @property
    def is_label(self) -> bool:
        """Whether it marks the place to which jumps to its label go."""
        return self.name == LABEL

    @property
    def is_message(self) -> bool:
        """Whether it accesses memory."""
        return self.category in MESSAGES

    @property
    def is_arithmetic(self) -> bool:
        """Whether it computes its result lane by lane from its sources."""
        return self.category in ("alu", "math")

    @property
    def decides(self) -> bool:
        """Whether it affects where or when the thread continues: control flow and barriers."""
        return self.category == "control" or bool(self.barrier)

    @property
    def compares(self) -> bool:
        """Whether its result is the truth of a condition."""
        return "condition" in self.attributes

    def diverges(self, inst: Instruction) -> bool:
        """Whether lanes may diverge at an instruction of it."""
        return self.jumps and not self.goes_together(inst)

    def goes_together(self, inst: Instruction) -> bool:
        """Whether all enabled lanes jump or none, by the predicate's first bit: `jmp`, and `goto (M1, 1)`."""
        return self.uniform or (self.jumps and inst.exec_size == 1)

    def targets(self, inst: Instruction) -> Sequence[str]:
        """The labels to which an instruction of it may jump."""
        if not self.jumps:
            return ()
        labels: Sequence[str] = inst.values.get("labels") or (inst["label"],)
        return labels

    @property
    def saturates(self) -> bool:
        """Whether it may have `.sat`."""
        return "{sat}" in self.form

    @property
    def op_name(self) -> str:
        """Its name in the dialect."""
        return self.name.replace(".", "_")

    def size(self, name: str, inst: Instruction, target: Target) -> int:
        """Bytes that an operand of kind "raw", "vector" or "address" accesses."""
        count = self.slot(name).bytes
        assert count
        return count(inst, target)

    def slot(self, name: str) -> OperandSpec:
        """The operand of a name."""
        return next(s for s in self.slots if s.name == name)


def payload_lanes(lanes: int, grf_bytes: int) -> int:
    """The lanes that a message of `lanes` lanes has room for in its registers: at least a GRF of dwords.

    Source: the lengths of messages that Intel's finalizer encodes.
    """
    return max(lanes, grf_bytes // 4)


class DataShape(Struct, frozen=True, gc=False):
    """A message's data for each lane.

    Attributes:
        size: "d8", "d16", "d32", "d64", or "d8c32" and "d16c32": 8 and 16 bits in the lowest part of 32.
        vector: number of elements.
        transpose: whether one lane's elements lie side by side in the register (exec size 1).
    """

    size: str
    vector: int = 1
    transpose: bool = False

    @property
    def memory_bytes(self) -> int:
        """Bytes of an element in memory."""
        return int(self.size[1:].partition("c")[0]) // 8

    @property
    def register_bytes(self) -> int:
        """Bytes of an element in the register."""
        return int(self.size.partition("c")[2] or self.size[1:]) // 8

    def row_bytes(self, lanes: int, grf_bytes: int) -> int:
        """Bytes of one element of each lane in the registers of a message that is not transposed: whole registers."""
        return -(-payload_lanes(lanes, grf_bytes) * self.register_bytes // grf_bytes) * grf_bytes

    def __str__(self) -> str:
        vector = f"x{self.vector}" if self.vector > 1 or self.transpose else ""
        return f"{self.size}{vector}{'t' if self.transpose else ''}"


class BlockShape(Struct, frozen=True, gc=False):
    """A 2D block message's data.

    Attributes:
        size: element width in bits: 8, 16, 32 or 64.
        count: number of blocks, side by side in memory.
        width: columns of a block.
        height: rows of a block.
        transpose: whether each block is transposed.
        vnni: whether rows are packed, so that elements of one column fill 32 bits.
    """

    size: int
    count: int
    width: int
    height: int
    transpose: bool = False
    vnni: bool = False

    def __str__(self) -> str:
        count = f"{self.count}x" if self.count > 1 else ""
        return f"d{self.size}.{count}{self.width}x{self.height}{'nt'[self.transpose]}{'nt'[self.vnni]}"

    def register_shape(self) -> tuple[int, int, int]:
        """A block in registers as (rows, columns, elements packed together); each row is padded to a power of two.

        With VNNI, the product of `size` and the third number is 32 bits.
        """
        rows, columns = (self.width, self.height) if self.transpose else (self.height, self.width)
        pack = max(32 // self.size, 1) if self.vnni else 1
        return -(-rows // pack), 1 << (columns - 1).bit_length(), pack

    def block_bytes(self, grf_bytes: int) -> int:
        """Bytes of one block in registers: whole GRFs."""
        rows, columns, pack = self.register_shape()
        size = rows * columns * pack * self.size // 8
        return -(-size // grf_bytes) * grf_bytes
