"""Operands of instructions: variables, predicates, and the forms that name parts of them.

The records hold the variable as an object; where only text is available, as in MLIR, they hold its name instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from msgspec import Struct, StructMeta
from msgspec.structs import astuple

from xegpu_py.numerics.formats import TYPES, Format


class _Interned(StructMeta):
    """Makes equal records one object, compared and hashed by identity, since analyses mostly hash and compare."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> None:
        super().__init__(name, bases, namespace, **options)
        cls._known: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        return cls._known.setdefault(astuple(made), made)


class _Declared(Struct, frozen=True, eq=False, dict=True, weakref=True, metaclass=_Interned):
    """Base of the declarations of a kernel."""


class Variable(_Declared, frozen=True, eq=False):
    """A general variable: a typed region of registers, mutable, declared once (`.decl v_type=G`).

    Attributes:
        name: its name.
        type: vISA's name of its element type.
        count: number of elements.
        align: "byte", "word", "dword", "qword", "oword", "GRF" or "GRFx2".
        alias: the variable whose registers it shares and the byte offset of it there, or None.
    """

    name: str
    type: str
    count: int
    align: str = "byte"
    alias: tuple[Variable, int] | None = None

    @cached_property
    def format(self) -> Format:
        """The element type."""
        return TYPES[self.type]

    @cached_property
    def bytes(self) -> int:
        """Its size in bytes."""
        return self.count * self.format.bytes

    @property
    def aliases(self) -> int:
        """The number of variables that it is an alias of, directly or through other aliases."""
        count, var = 0, self
        while var.alias is not None:
            count, var = count + 1, var.alias[0]
        return count

    @property
    def root(self) -> tuple[Variable, int]:
        """The variable that is not an alias in which it lies, and its byte offset there."""
        if self.alias is None:
            return self, 0
        base, offset = self.alias[0].root
        return base, offset + self.alias[1]


class Predicate(_Declared, frozen=True, eq=False):
    """A predicate variable: one bit for each SIMD lane (`.decl v_type=P`).

    Attributes:
        name: its name.
        count: number of bits: 1, 2, 4, 8, 16 or 32.
    """

    name: str
    count: int


MAX_ALIASES = 64
"""The greatest depth of aliases of aliases. Properties of a variable are computed recursively."""

PREDICATE_SIZES = (1, 2, 4, 8, 16, 32)
"""Numbers of bits that predicates have."""

ALIGNMENTS = {"byte": 1, "word": 2, "dword": 4, "qword": 8, "oword": 16, "GRF": 0, "GRFx2": 0}
"""Alignments and their bytes; 0 for those that depend on the size of a GRF."""


BUILTINS = {
    v.name: v
    for v in (
        Variable("%r0", "ud", 8, "GRF"),
        Variable("%group_id_x", "ud", 1, "dword"),
        Variable("%group_id_y", "ud", 1, "dword"),
        Variable("%group_id_z", "ud", 1, "dword"),
    )
}
"""Variables that each thread has from the start. `%r0` is the thread's payload header."""


def align_bytes(align: str, grf_bytes: int) -> int:
    """The bytes of an alignment."""
    return ALIGNMENTS[align] or grf_bytes * (2 if align == "GRFx2" else 1)


@lru_cache(maxsize=4096)
def _elements(vstride: int, width: int, hstride: int, lanes: int) -> tuple[tuple[int, ...], int, bool]:
    found = tuple((i // width) * vstride + (i % width) * hstride for i in range(lanes))
    return found, max(found), found == tuple(range(lanes))


class Region(Struct, frozen=True, dict=True):
    """A source `V(row,col)<vstride;width,hstride>`: element i is at `(i // width) * vstride + (i % width) * hstride`.

    Attributes:
        var: the variable.
        row: first register, counted in GRFs from the variable's start.
        col: first element, counted in elements from that register's start.
        vstride, width, hstride: the region in elements.
        modifier: "", "-", "abs", "-abs" or "~".
    """

    var: Any
    row: int = 0
    col: int = 0
    vstride: int = 1
    width: int = 1
    hstride: int = 0
    modifier: str = ""

    def elements(self, exec_size: int) -> list[int]:
        """Where each lane's element lies, counted in elements from that of lane 0."""
        return list(_elements(self.vstride, max(self.width, 1), self.hstride, exec_size)[0])

    def reach(self, exec_size: int) -> tuple[int, bool]:
        """The last of the elements, and whether they lie side by side."""
        return _elements(self.vstride, max(self.width, 1), self.hstride, exec_size)[1:]

    @property
    def format(self) -> Format:
        """The element type."""
        found: Format = self.var.format
        return found

    @property
    def is_scalar(self) -> bool:
        """Whether all lanes read one element."""
        return self.vstride == 0 and (self.width == 1 or self.hstride == 0)


class Destination(Struct, frozen=True, dict=True):
    """A destination `V(row,col)<stride>`: element i is at `i * stride`."""

    var: Any
    row: int = 0
    col: int = 0
    stride: int = 1

    def elements(self, exec_size: int) -> list[int]:
        """Where each lane's element lies, counted in elements from that of lane 0."""
        return list(_elements(self.stride, 1, 0, exec_size)[0])

    def reach(self, exec_size: int) -> tuple[int, bool]:
        """The last of the elements, and whether they lie side by side."""
        return _elements(self.stride, 1, 0, exec_size)[1:]


class Raw(Struct, frozen=True, gc=False):
    """A whole variable from a byte offset on: `V.64`. A `var` of None is the null operand `%null.0`."""

    var: Any
    offset: int = 0


class Vector(Struct, frozen=True, gc=False):
    """Consecutive elements from `V(row,col)` on, such as src2 of dpas."""

    var: Any
    row: int = 0
    col: int = 0


class Immediate(Struct, frozen=True, gc=False):
    """A constant: its bit pattern, and vISA's name of its type."""

    bits: int
    type: str
    modifier: ClassVar[str] = ""

    @property
    def format(self) -> Format:
        """The type."""
        return TYPES[self.type]


class Address(Struct, frozen=True, gc=False):
    """Addresses of a message: those in a variable from a byte offset on, each plus a constant number of bytes."""

    var: Any
    offset: int = 0
    plus: int = 0


class Flag(Struct, frozen=True, gc=False):
    """A predicate as source or destination."""

    var: Any


class Guard(Struct, frozen=True, gc=False):
    """The predicate of an instruction.

    Attributes:
        var: the predicate.
        inverted: whether lanes whose bit is 0 run.
        control: "" for each lane by its own bit, "any" or "all" for all lanes by all bits.
    """

    var: Any
    inverted: bool = False
    control: str = ""


Operand = Region | Destination | Raw | Vector | Immediate | Address | Flag
"""Any operand but the guard."""


def first_byte(operand: Region | Destination | Vector | Raw | Address, grf_bytes: int) -> int:
    """Byte offset of an operand's first element from its variable's start."""
    if isinstance(operand, (Raw, Address)):
        return operand.offset
    size: int = operand.var.format.bytes
    return operand.row * grf_bytes + operand.col * size


def variables(operands: Iterable[object]) -> list[Variable]:
    """The general variables that operands name, in order."""
    return [var for var in (getattr(o, "var", None) for o in operands) if isinstance(var, Variable)]
