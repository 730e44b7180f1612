"""Operands of vISA instructions: variables, predicates, and the forms that name parts of them.

The records hold the variable as an object; where only text is available, as in MLIR, they hold its name instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar, final
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
        instance = super().__call__(*args, **kwargs)
        return cls._known.setdefault(astuple(instance), instance)


class _Declared(Struct, frozen=True, eq=False, dict=True, weakref=True, metaclass=_Interned):
    """Base of the declarations of a kernel."""


class Variable(_Declared, frozen=True, eq=False):
    """A general variable: a typed region of registers, mutable, declared once (`.decl v_type=G`).

    Attributes:
        name: its name.
        type: vISA's name of its element type.
        count: number of elements.
        align: one of `ALIGNMENTS`.
        alias: the variable whose registers it shares and the byte offset of it there, or None.
        kind: "G" for a general variable; "A" for an address variable (`.decl v_type=A`), whose elements are places of
            bytes in the register file.
        attrs: IGC's annotations, such as `{Output}`, which has no effect; or nothing.
    """

    name: str
    type: str
    count: int
    align: str = "byte"
    alias: tuple[Variable, int] | None = None
    kind: str = "G"
    attrs: str = ""

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


class Resource(_Declared, frozen=True, eq=False):
    """A sampler or a surface (`.decl v_type=S` or `T`).

    Attributes:
        name: its name.
        kind: "S" for a sampler, "T" for a surface.
        count: number of elements.
        spelling: its second name (`v_name`).
    """

    name: str
    kind: str
    count: int
    spelling: str


MAX_ALIASES = 64
"""The greatest depth of aliases of aliases. Properties of a variable are computed recursively."""

PREDICATE_SIZES = (1, 2, 4, 8, 16, 32)
"""Numbers of bits that predicates have."""

ALIGNMENTS = {
    "byte": 1, "word": 2, "dword": 4, "qword": 8, "oword": 16, "hword": 32, "wordx32": 64, "wordx64": 128,
    "GRF": 0, "GRFx2": 0,
}  # fmt: skip
"""Alignments and their bytes; 0 for those that depend on the size of a GRF."""

HEADER = {
    v.name: v
    for v in (
        Variable("%r0", "ud", 16, "GRF"),
        Variable("%group_id_x", "ud", 1, "dword"),
        Variable("%group_id_y", "ud", 1, "dword"),
        Variable("%group_id_z", "ud", 1, "dword"),
    )
}
"""Variables in the thread's payload header, which is `%r0`. They can only be read."""

GROUP_IDS = frozenset(variable for name, variable in HEADER.items() if name.startswith("%group_id"))
"""The variables that differ between workgroups."""

STATE = {
    v.name: v
    for v in (
        Variable("%cr0", "ud", 4, "oword"),
        Variable("%sr0", "ud", 4, "oword"),
        Variable("%msg0", "ud", 4, "oword"),
        Variable("%tsc", "ud", 4, "oword"),
        Variable("%scratchloc", "uq", 1, "wordx64"),
        Variable("%sp", "uq", 1, "wordx64"),
        Variable("%fp", "uq", 1, "wordx64"),
        Variable("%arg", "ud", 256, "wordx64"),
        Variable("%retval", "ud", 256, "wordx64"),
    )
}
"""Variables of the thread's state: control, state, message and time stamp registers, the address of the thread's part
of scratch memory, and what calls use: the pointers of stack and frame, arguments, and results."""

BUILTINS = HEADER | STATE
"""Variables that each thread has from the start."""

CHANGEABLE = ("%cr0", "%scratchloc", "%sp", "%fp", "%arg", "%retval")
"""Variables among them that instructions can write."""

OTHER_BUILTINS = (
    "%thread_x",
    "%thread_y",
    "%hw_id",
    "%ce0",
    "%dbg0",
    "%color",
    "%impl_arg_buf_ptr",
    "%local_id_buf_ptr",
)
"""Variables of vISA that no engine has."""


def align_bytes(align: str, grf_bytes: int) -> int:
    """The bytes of an alignment."""
    return ALIGNMENTS[align] or grf_bytes * (2 if align == "GRFx2" else 1)


@lru_cache(maxsize=4096)
def _elements(vstride: int, width: int, hstride: int, lanes: int) -> tuple[tuple[int, ...], int, bool]:
    indices = tuple((i // width) * vstride + (i % width) * hstride for i in range(lanes))
    return indices, max(indices), indices == tuple(range(lanes))


class _ByteOperand(Struct, frozen=True, dict=True):
    """Base of the operands whose elements are at computed bytes of registers."""

    @cached_property
    def byte_offsets(self) -> dict[tuple[int, int], tuple[Variable, list[int]]]:
        """Cache of its byte offsets, by lanes and the size of a register."""
        return {}


@final
class Region(_ByteOperand, frozen=True):
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
        """Return the index of each lane's element, counted from that of lane 0."""
        return list(_elements(self.vstride, max(self.width, 1), self.hstride, exec_size)[0])

    def reach(self, exec_size: int) -> tuple[int, bool]:
        """The last of the elements, and whether they lie side by side."""
        return _elements(self.vstride, max(self.width, 1), self.hstride, exec_size)[1:]

    @property
    def format(self) -> Format:
        """The element type."""
        return self.var.format

    @property
    def is_scalar(self) -> bool:
        """Whether all lanes read one element."""
        return self.vstride == 0 and (self.width == 1 or self.hstride == 0)


@final
class Destination(_ByteOperand, frozen=True):
    """A destination `V(row,col)<stride>`: element i is at `i * stride`."""

    var: Any
    row: int = 0
    col: int = 0
    stride: int = 1

    @property
    def format(self) -> Format:
        """The element type."""
        return self.var.format

    def elements(self, exec_size: int) -> list[int]:
        """Return the index of each lane's element, counted from that of lane 0."""
        return list(_elements(self.stride, 1, 0, exec_size)[0])

    def reach(self, exec_size: int) -> tuple[int, bool]:
        """The last of the elements, and whether they lie side by side."""
        return _elements(self.stride, 1, 0, exec_size)[1:]


@final
class Raw(Struct, frozen=True, gc=False):
    """A whole variable from a byte offset on: `V.64`. A `var` of None is the null operand `%null.0`."""

    var: Any
    offset: int = 0


@final
class Vector(Struct, frozen=True, gc=False):
    """Consecutive elements from `V(row,col)` on, such as src2 of dpas."""

    var: Any
    row: int = 0
    col: int = 0


PACKED = {"v": "w", "uv": "uw", "vf": "f"}
"""The types of packed constants, and those of their elements. Eight integers of four bits are signed or unsigned; four
floats have a sign, three bits of exponent (bias 3) and four of mantissa. Lanes beyond them begin with the first again.
"""


@final
class Immediate(Struct, frozen=True, gc=False):
    """A constant: its bit pattern, and vISA's name of its type, which may be one of `PACKED`."""

    bits: int
    type: str
    modifier: ClassVar[str] = ""

    @property
    def format(self) -> Format:
        """The type of an element."""
        return TYPES[PACKED.get(self.type, self.type)]

    @property
    def is_packed(self) -> bool:
        """Whether lanes have elements of their own, so that `bits` is no number."""
        return self.type in PACKED

    def elements(self, exec_size: int) -> list[int]:
        """The bit pattern of each lane's element."""
        if not self.is_packed:
            return [self.bits] * exec_size
        if self.type == "vf":
            return [_float_of_byte(self.bits >> 8 * (i % 4) & 0xFF) for i in range(exec_size)]
        nibbles = [self.bits >> 4 * (i % 8) & 0xF for i in range(exec_size)]
        return [n | 0xFFF0 if self.type == "v" and n & 8 else n for n in nibbles]


def _float_of_byte(byte: int) -> int:
    """The bits of the f32 that a packed float is: of no exponent and mantissa a zero, else 1.m * 2**(e - 3)."""
    sign, magnitude = (byte & 0x80) << 24, byte & 0x7F
    return sign | (((magnitude >> 4) + 124) << 23 | (magnitude & 0xF) << 19 if magnitude else 0)


@final
class Indirect(Struct, frozen=True, dict=True):
    """Elements at places of the register file that an address variable holds.

    A source is `r[A(col),plus]<vstride;width,hstride>:type`, a region that begins at one address, or
    `r[A(col),plus]<width,hstride>:type`, where each row of the region has an address of its own. A destination is
    `r[A(col),plus]<stride>:type`.

    Attributes:
        var: the address variable.
        col: its element that is the first address.
        plus: bytes that are added to each address.
        vstride, width, hstride: the region in elements; a vertical stride of None if each row has its own address.
            The region of a destination is <stride;1,0>.
        type: vISA's name of the element type.
        modifier: that of a source.
        bases: the variables in which the addresses lie: those of which the program takes the address for `var`.
    """

    var: Any
    col: int
    plus: int
    vstride: int | None
    width: int
    hstride: int
    type: str
    modifier: str = ""
    bases: tuple[Variable, ...] = ()

    @property
    def format(self) -> Format:
        """The element type."""
        return TYPES[self.type]

    def addresses(self, exec_size: int) -> int:
        """The number of addresses that it reads."""
        return 1 if self.vstride is not None else -(-exec_size // self.width)

    def elements(self, exec_size: int) -> list[tuple[int, int]]:
        """Return, for each lane, the index of its address, and the displacement of its element in bytes."""
        size = self.format.bytes
        if self.vstride is None:
            return [(i // self.width, i % self.width * self.hstride * size) for i in range(exec_size)]
        indices = _elements(self.vstride, self.width, self.hstride, exec_size)[0]
        return [(0, index * size) for index in indices]


@final
class AddressOf(Struct, frozen=True, dict=True):
    """The place of a variable in the register file, and a number of bytes: `&V`, `&V[64]`."""

    var: Any
    offset: int = 0
    modifier: ClassVar[str] = ""

    @property
    def format(self) -> Format:
        """The type of addresses."""
        return TYPES["ud"]


@final
class Address(Struct, frozen=True, gc=False):
    """Addresses of a message: those in a variable from a byte offset on, each times a scale plus a constant of bytes.

    Attributes:
        var: the variable of lanes' addresses, or of offsets if there is a base.
        offset: the byte of the variable at which they begin.
        plus: bytes that are added.
        scale: the factor of what is in the variable.
        space: the address space: "flat"; "ss", "surf" and "bss" of a surface; "arg" of indirect data.
        base: of "flat", the address or the constant to which offsets are added; of surfaces the surface's offset; or
            None.
    """

    var: Any
    offset: int = 0
    plus: int = 0
    scale: int = 1
    space: str = "flat"
    base: Region | Immediate | None = None


@final
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


Operand = Region | Destination | Raw | Vector | Immediate | Address | Flag | Indirect | AddressOf
"""Any operand but the guard."""


VERTICAL_STRIDES, WIDTHS, HORIZONTAL_STRIDES = (0, 1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16), (0, 1, 2, 4)
"""Legal strides and widths of source regions."""


def strides_of(elements: Sequence[int]) -> tuple[int, int, int] | None:
    """Vertical stride, width and horizontal stride of a region with these elements; None if no region has them.

    They may be strides that no instruction supports.
    """
    if all(e == 0 for e in elements):
        return 0, 1, 0
    step = elements[1]
    if step and all(e == i * step for i, e in enumerate(elements)):
        return step, 1, 0
    width = next(w for w in range(1, len(elements) + 1) if w == len(elements) or elements[w] != w * step)
    if len(elements) % width or width == len(elements):
        return None
    across = elements[width]
    matches = all(e == (i // width) * across + (i % width) * step for i, e in enumerate(elements))
    return (across, width, step) if matches and across >= 0 else None


def first_byte(operand: Region | Destination | Vector | Raw | Address, grf_bytes: int) -> int:
    """Byte offset of an operand's first element from its variable's start."""
    if type(operand) is Raw or type(operand) is Address:
        return operand.offset
    return operand.row * grf_bytes + operand.col * operand.var.format.bytes


def variables(operands: Iterable[object]) -> list[Variable]:
    """The general variables that operands name, in order."""
    return [var for var in (getattr(o, "var", None) for o in operands) if isinstance(var, Variable)]
