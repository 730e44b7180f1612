"""The SSA values as vISA has them: numbers in registers, constants, predicates, and the parts of descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from xegpu_py.numerics.formats import TYPES, Format
from xegpu_py.passes.analysis.integer_analysis import Bounds, contains, type_range
from xegpu_py.passes.analysis.ir_queries import INDEX
from xegpu_py.visa.operands import Predicate, Variable

NARROW = "d"
"""The register type of an index that is known to fit in 32 bits."""

_NARROW_BOUNDS: Bounds = type_range(32)


def index_type(bounds: Bounds) -> str:
    """The register type of indices with these bounds."""
    return NARROW if contains(bounds, _NARROW_BOUNDS) else INDEX


def clamp(bounds: Bounds) -> Bounds:
    """Bounds clamped to the range of 32 bits."""
    low, high = (min(max(n, _NARROW_BOUNDS[0]), _NARROW_BOUNDS[1]) for n in bounds)
    return low, high


class Reg(Struct, frozen=True, eq=False, gc=False):
    """Contiguous numbers in registers, in row-major order.

    Attributes:
        var: the variable; its element type is the numbers'.
        first: index of the first number in the variable.
        count: the number of numbers.
        bounds: known bounds of integers, if narrower than those of the type. Equal registers may have different ones.
    """

    var: Variable
    first: int
    count: int
    bounds: Bounds | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reg) and self._location == other._location

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._location)

    @property
    def _location(self) -> tuple[Variable, int, int]:
        return self.var, self.first, self.count

    def slice(self, start: int, count: int) -> Reg:
        """`count` of the numbers, from number `start` on."""
        return Reg(self.var, self.first + start, count)

    @property
    def type(self) -> str:
        """vISA's type of the numbers."""
        return self.var.type

    @property
    def format(self) -> Format:
        """The numbers' format."""
        return self.var.format


@final
class Const(Struct, frozen=True, gc=False):
    """A compile-time constant, repeated `count` times.

    Attributes:
        bits: its bit pattern.
        type: its vISA type.
        count: the number of repetitions.
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
        """The value of an integer constant."""
        fmt = self.format
        return self.bits - (1 << fmt.bits) if fmt.kind == "s" and self.bits >> (fmt.bits - 1) else self.bits


def is_whole_variable(numbers: object) -> bool:
    """Return whether registers begin at the start of a variable that is not an alias."""
    return isinstance(numbers, Reg) and numbers.first == 0 and numbers.var.alias is None


def immediate_bits(value: float | int, type_name: str) -> int:
    """The bit pattern of a number in a type; integers wrap."""
    fmt = TYPES[type_name]
    if fmt.is_float:
        with np.errstate(over="ignore"):
            return int.from_bytes(np.array(value, np.float64).astype(fmt.dtype).tobytes(), "little")
    return int(value) & ((1 << fmt.bits) - 1)


def const(value: float | int, type_name: str, count: int = 1) -> Const:
    """A constant."""
    return Const(immediate_bits(value, type_name), type_name, count)


Numbers = Reg | Const
"""Numbers in registers, or a constant."""

AnyNumbers = TypeVar("AnyNumbers", Reg, Const, Numbers)
"""`Numbers`, of which those in registers become others in registers."""


def bounds_of(numbers: Numbers) -> Bounds:
    """The bounds of integers."""
    if isinstance(numbers, Const):
        return numbers.value, numbers.value
    if numbers.bounds is not None:
        return numbers.bounds
    fmt = numbers.format
    return type_range(fmt.bits) if fmt.kind == "s" else (0, (1 << fmt.bits) - 1)


class Mask(Struct, frozen=True, gc=False):
    """Truth values, one bit each: a scalar i1 or a vector of them.

    Attributes:
        predicates: predicate variables; all but the last have `LANES` significant bits.
        count: the number of truth values.
    """

    predicates: tuple[Predicate, ...]
    count: int


MASK_LANES = 16
"""Truth values per predicate of a mask."""


class KnownMask(Struct, frozen=True, gc=False):
    """Truth values that are the same compile-time constant."""

    value: bool
    count: int = 1


class BlockDescriptor(Struct, frozen=True, gc=False):
    """A descriptor of an n-dimensional block (`xegpu.create_nd_tdesc`).

    Attributes:
        base: address of the tensor's first element, uq.
        surface: for two and more dimensions in global memory: width, height and pitch of the innermost two, in bytes,
            rows and bytes, each less one, as in 2D block messages; else empty.
        lead: extents of the dimensions outside the innermost two, d or q, which no message checks; empty if
            out-of-bounds accesses are not checked.
        strides: the tensor's strides in elements, d or q.
        offsets: the block's offsets in elements, d or q. The innermost two offsets in a surface are d: a surface's
            extents fit in 32 bits, and the offsets are clamped.
    """

    base: Numbers
    surface: tuple[Numbers, ...]
    lead: tuple[Numbers, ...]
    strides: tuple[Numbers, ...]
    offsets: tuple[Numbers, ...]


class Lanes(Struct, frozen=True, gc=False):
    """A descriptor of scattered elements (`xegpu.create_tdesc`).

    Attributes:
        addresses: each lane's, uq or for SLM ud.
        plus: bytes that messages add to them; 0 if control flow merges the descriptor with others.
    """

    addresses: Reg
    plus: int = 0


class MemRefValue(Struct, frozen=True, gc=False):
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


class NamedBarrierNumbers(Struct, frozen=True, gc=False):
    """A named barrier: its number and the number of its threads, ub."""

    id: Numbers
    count: Numbers


def is_handle(type_text: str) -> bool:
    """Return whether a type is a descriptor, memref or barrier, not a numeric type."""
    return type_text.startswith(("!xegpu.", "memref<"))


class Splat(Struct, frozen=True, gc=False):
    """A number in registers that is each of the `count` elements of a vector."""

    number: Reg
    count: int


class Dense(Struct, frozen=True, gc=False):
    """The elements of a constant vector, which are moved to registers at their first use."""

    numbers: tuple[Const, ...]


class UndefinedHandle(Struct, frozen=True, gc=False):
    """An undefined descriptor, memref or barrier: `ub.poison`."""


Value = (
    Numbers
    | Mask
    | KnownMask
    | BlockDescriptor
    | Lanes
    | MemRefValue
    | NamedBarrierNumbers
    | Splat
    | Dense
    | UndefinedHandle
)
"""The representation of an SSA value."""

_Part = Reg | Const | Mask | KnownMask


def value_parts(value: Value) -> list[_Part]:
    """The registers, constants and predicates that a value consists of."""
    if isinstance(value, _Part):
        return [value]
    parts: list[_Part] = []
    for name in value.__struct_fields__:
        part = getattr(value, name)
        parts += part if isinstance(part, tuple) else [part] if isinstance(part, _Part) else []
    return parts


def with_value_parts(value: Value, parts: Sequence[Any]) -> Value:
    """The value with its parts replaced, in the order of `value_parts`."""
    new_parts = iter(parts)
    if isinstance(value, _Part):
        return next(new_parts)
    new: dict[str, Any] = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        if isinstance(old, tuple):
            new[name] = tuple(next(new_parts) for _ in old)
        elif isinstance(old, _Part):
            new[name] = next(new_parts)
    return replace(value, **new)
