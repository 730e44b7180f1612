"""What an SSA value of a kernel is in registers."""

from __future__ import annotations

from dataclasses import dataclass, field

from xegpu_py.passes.common.registers import INDEX

from xegpu_py.numerics.formats import TYPES, Format
from xegpu_py.visa.operands import Predicate, Variable

NARROW = "d"
"""The register type of an index that is known to fit in 32 bits."""

Bounds = tuple[int, int]
"""The least and the greatest of some integers."""

_NARROW_BOUNDS: Bounds = (-(1 << 31), (1 << 31) - 1)


def index_type(bounds: Bounds) -> str:
    """The register type of indices that lie within bounds."""
    return NARROW if _NARROW_BOUNDS[0] <= bounds[0] and bounds[1] <= _NARROW_BOUNDS[1] else INDEX


def clamp(bounds: Bounds) -> Bounds:
    """Bounds brought to the range of 32 bits."""
    low, high = (min(max(n, _NARROW_BOUNDS[0]), _NARROW_BOUNDS[1]) for n in bounds)
    return low, high


@dataclass(frozen=True)
class Reg:
    """Numbers that lie side by side in registers, in row-major order.

    Attributes:
        var: the variable; its element type is the numbers'.
        first: index of the first number in the variable.
        count: how many numbers.
        bounds: what integers are known to lie within, if that is less than all of their type.
    """

    var: Variable
    first: int
    count: int
    bounds: Bounds | None = field(default=None, compare=False)

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


def bounds_of(numbers: Numbers) -> Bounds:
    """What integers lie within."""
    if isinstance(numbers, Const):
        return numbers.value, numbers.value
    if numbers.bounds is not None:
        return numbers.bounds
    fmt = numbers.format
    return (-(1 << fmt.bits - 1), (1 << fmt.bits - 1) - 1) if fmt.kind == "s" else (0, (1 << fmt.bits) - 1)


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
        lead: extents of the dimensions outside the innermost two, d or q, which no message checks; nothing where
            out-of-bounds accesses are not checked.
        strides: the tensor's strides in elements, d or q.
        offsets: where the block begins, in elements, d or q; of the innermost two of a surface d, since a surface is
            smaller than that: what is out of its range is brought to its ends.
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
        offset: the memref's offset in elements, d or q.
        shape: its extent in elements, d or q.
        strides: its strides in elements, d or q.
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
