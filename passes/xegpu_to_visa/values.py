"""What an SSA value of a kernel is in registers."""

from __future__ import annotations

from dataclasses import dataclass

from xegpu_py.ir.builtin import bit_width, signedness, vector_of
from xegpu_py.numerics.formats import TYPES, Format
from xegpu_py.visa.operands import Predicate, Variable

_FLOATS = {"f64": "df", "f32": "f", "f16": "hf", "bf16": "bf", "tf32": "f", "f8E5M2": "ub", "f8E4M3FN": "ub"}
_INTEGERS = {8: "b", 16: "w", 32: "d", 64: "q"}

INDEX = "d"
"""The register type of `index`: 32 bits. What is larger wraps; addresses are 64 bits all the same."""


def register_type(element: str) -> str:
    """vISA's type that holds elements of an MLIR type; signless integers are held as signed ones.

    Raises:
        ValueError: if there is none.
    """
    if element == "index":
        return INDEX
    found = _FLOATS.get(element)
    if found is None:
        found = _INTEGERS.get(bit_width(element))
        if found is None:
            raise ValueError(f"elements of type {element} have no register type")
        if signedness(element) == "u":
            found = "u" + found
    return found


def shape_and_element(type_text: str) -> tuple[tuple[int, ...], str]:
    """The shape and element type of a vector; of a scalar the shape is ()."""
    if type_text.startswith("vector<"):
        return vector_of(type_text)
    return (), type_text


def unsigned(name: str) -> str:
    """The unsigned integer type as wide as a type."""
    return {1: "ub", 2: "uw", 4: "ud", 8: "uq"}[TYPES[name].bytes]


@dataclass(frozen=True)
class Reg:
    """Numbers that lie side by side in registers, in row-major order.

    Attributes:
        var: the variable; its element type is the numbers'.
        first: index of the first number in the variable.
        count: how many numbers.
    """

    var: Variable
    first: int
    count: int

    @property
    def type(self) -> str:
        """vISA's type of the numbers."""
        return self.var.type

    @property
    def format(self) -> Format:
        """The numbers' format."""
        return self.var.format


@dataclass(frozen=True)
class Const:
    """The same number `count` times, known when compiling.

    Attributes:
        bits: its bit pattern.
        type: vISA's type of it.
        count: how many numbers.
    """

    bits: int
    type: str
    count: int = 1

    @property
    def format(self) -> Format:
        """The number's format."""
        return TYPES[self.type]

    @property
    def value(self) -> int:
        """The number, of an integer."""
        fmt = self.format
        return self.bits - (1 << fmt.bits) if fmt.kind == "s" and self.bits >> (fmt.bits - 1) else self.bits


Numbers = Reg | Const
"""Numbers in registers, or known."""


@dataclass(frozen=True)
class Mask:
    """Truth values, one bit each: a scalar i1 or a vector of them.

    Attributes:
        predicates: predicate variables; all but the last have `LANES` bits that count.
        count: how many truth values.
    """

    predicates: tuple[Predicate, ...]
    count: int


MASK_LANES = 16
"""Truth values to a predicate of a mask."""


@dataclass(frozen=True)
class KnownMask:
    """Truth values known when compiling, all the same."""

    value: bool
    count: int = 1


@dataclass(frozen=True)
class Block:
    """A descriptor of an n-dimensional block (`xegpu.create_nd_tdesc`).

    Attributes:
        base: address of the tensor's first element, uq.
        surface: of two and more dimensions in global memory: width, height and pitch of the innermost two, as 2D block
            messages have them, in bytes, rows and bytes, less one; else nothing.
        lead: extents of the dimensions outside the innermost two, d, which no message checks; nothing where
            out-of-bounds accesses are not checked.
        strides: the tensor's strides in elements, d.
        offsets: where the block begins, in elements, d.
    """

    base: Numbers
    surface: tuple[Numbers, ...]
    lead: tuple[Numbers, ...]
    strides: tuple[Numbers, ...]
    offsets: tuple[Numbers, ...]


@dataclass(frozen=True)
class Lanes:
    """A descriptor of scattered elements (`xegpu.create_tdesc`): each lane's address, uq or for SLM ud."""

    addresses: Reg


@dataclass(frozen=True)
class Memory:
    """A memref.

    Attributes:
        base: address of the buffer, uq; in SLM an offset, ud.
        offset: the memref's offset in elements, d.
        shape: its extent in elements, d.
        strides: its strides in elements, d.
        element: MLIR's element type.
        slm: whether it lies in shared local memory.
    """

    base: Numbers
    offset: Numbers
    shape: tuple[Numbers, ...]
    strides: tuple[Numbers, ...]
    element: str
    slm: bool = False


@dataclass(frozen=True)
class NamedBarrier:
    """A named barrier: its number and how many threads meet there, ub."""

    id: Numbers
    count: Numbers


def is_handle(type_text: str) -> bool:
    """Whether values of a type are descriptors, memrefs or barriers, and not numbers."""
    return type_text.startswith(("!xegpu.", "memref<"))


@dataclass(frozen=True)
class Undefined:
    """A descriptor, memref or barrier of which nothing is known: `ub.poison`."""


Value = Numbers | Mask | KnownMask | Block | Lanes | Memory | NamedBarrier | Undefined
"""What an SSA value is."""
