"""Triton's dialect: its types, its attributes, and the constraints that ops put on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Annotated, Any

from mlir import ir

from xegpu_py.ir.builtin import ConstraintEmitter, TypeConstraint, bit_width, is_integer
from xegpu_py.ir.codecs import AttributeCodec, Cursor, IntArrayCodec, IntCodec, ParserScope, TypeText, WordCodec
from xegpu_py.ir.definition import Attr, Dialect, Type


class Tt(Dialect, name="tt"):
    """Triton's own IR, TTIR: programs on tensors, as Triton's front end makes them and before any target is chosen.

    These are the ops of Triton 3.9 in Triton's syntax. Functions, calls and terminators are held by MLIR as those of
    `func` and `vector`: `tt.func` is a `func.func` with the attribute `tt.func`.
    """

    names_from_locations = True


FLOATS = ("f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f16", "bf16", "f32", "f64")
INTEGERS = ("i1", "i4", "i8", "i16", "i32", "i64")
GLOBAL, DESCRIPTOR, CONSTANT = "global", "descriptor", "constant"

MOST_ELEMENTS = 1 << 20
"""Triton's limit on the elements of a tensor."""


# Attributes: numbers of 32 bits, and enums that are such numbers.


class Int32Codec(IntCodec):
    """A 32-bit integer with its type, as in `axis = 0 : i32`."""

    def encode(self, value: int) -> str:
        return f"{value} : i32"

    def write(self, value: int) -> str:
        return self.encode(value)


Int32 = Annotated[int, Int32Codec()]


class Int32ArrayCodec(IntArrayCodec):
    """A list of 32-bit integers, as in `order = array<i32: 1, 0>`."""

    summary = "a list of 32-bit integers"
    _RAW = re.compile(r"array<i32(?::(.*))?()>\Z", re.DOTALL)

    def encode(self, value: tuple[int, ...]) -> str:
        return f"array<i32: {', '.join(map(str, value))}>" if value else "array<i32>"

    def to_ir(self, value: tuple[int, ...]) -> ir.Attribute:
        return ir.DenseI32ArrayAttr.get(list(value))

    def write(self, value: tuple[int, ...]) -> str:
        return self.encode(value)


Int32Array = Annotated[tuple[int, ...], Int32ArrayCodec()]


class Int32EnumCodec(AttributeCodec):
    """A case of an enum, which MLIR holds as a 32-bit integer, by its word."""

    def __init__(self, cases: type[IntEnum], number: bool = False) -> None:
        """Hold the cases of an enum.

        Args:
            cases: the enum; its members' names are the words.
            number: whether it is printed as a number, as MLIR prints it in an attribute dictionary.
        """
        self.cases = cases
        self.number = number
        self.summary = f"one of {', '.join(c.name for c in cases)}"

    def read(self, cursor: Cursor, scope: ParserScope) -> Any:
        start = cursor.skip()
        if (value := cursor.integer()) is not None:
            if cursor.accept(":"):
                cursor.type_text()
            return self._decode_at(str(value), cursor, start)
        word = cursor.word() or ""
        if word not in self.cases.__members__:
            cursor.pos = start
            raise cursor.expected(self.summary)
        return self.cases[word]

    def decode(self, raw: str) -> Any:
        try:
            return self.cases(int(raw.partition(":")[0]))
        except ValueError:
            raise self._refuse(raw) from None

    def encode(self, value: Any) -> str:
        return f"{int(value)} : i32"

    def write(self, value: Any) -> str:
        return self.encode(value) if self.number else str(value.name)

    def coerce(self, value: Any) -> Any:
        try:
            return self.cases[value] if isinstance(value, str) else self.cases(value)
        except (KeyError, ValueError):
            raise ValueError(f"expected {self.summary}, but got {value!r}") from None

    def irdl(self, emitter: ConstraintEmitter) -> str:
        return emitter.any_of([emitter.constraint(f"irdl.is {self.encode(c)}") for c in self.cases])


ProgramDim = IntEnum("ProgramDim", {"x": 0, "y": 1, "z": 2})
"""An axis of the grid of programs."""

MemSemantic = IntEnum("MemSemantic", {"relaxed": 1, "acquire": 2, "release": 3, "acq_rel": 4})
"""The memory order of an atomic access."""

MemSyncScope = IntEnum("MemSyncScope", {"gpu": 1, "cta": 2, "sys": 3})
"""Who sees an atomic access as such."""

RMWOp = IntEnum(
    "RMWOp",
    {"and": 1, "or": 2, "xor": 3, "add": 4, "fadd": 5, "max": 6, "min": 7, "umax": 8, "umin": 9, "exch": 10},
)
"""The update of `tt.atomic_rmw`."""

DescriptorReduceKind = IntEnum(
    "DescriptorReduceKind", {"add": 1, "min": 2, "max": 3, "inc": 4, "dec": 5, "and": 6, "or": 7, "xor": 8}
)
"""The update of `tt.descriptor_reduce`."""

RoundingMode = IntEnum("RoundingMode", {"rtz": 0, "rtne": 1})
"""Rounding toward zero, or to nearest even."""

PropagateNan = IntEnum("PropagateNan", {"none": 0, "all": 0xFFFF})
"""Whether a NaN operand makes a NaN."""

PaddingOption = IntEnum("PaddingOption", {"zero": 1, "nan": 2})
"""The elements that a descriptor gives outside of its tensor."""

InputPrecision = IntEnum("InputPrecision", {"tf32": 0, "tf32x3": 1, "ieee": 2, "bf16x3": 3, "bf16x6": 4})
"""How the products of f32 in a `tt.dot` are made."""

ScaleDotElemType = IntEnum(
    "ScaleDotElemType", {"e4m3": 0, "e5m2": 1, "e2m3": 2, "e3m2": 3, "e2m1": 4, "bf16": 5, "fp16": 6}
)
"""The element type of a factor of `tt.dot_scaled`."""

CACHE_MODIFIERS = ("none", "ca", "cg", "wb", "cs", "wt", "cv")
EVICTION_POLICIES = ("evict_normal", "evict_first", "evict_last")


class CachePolicy(Attr, dialect=Tt, name="cache_policy"):
    """Hints to the caches. They change no value.

    #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last>
    """

    cache_modifier: Annotated[str, WordCodec(CACHE_MODIFIERS)]
    eviction_policy: Annotated[str, WordCodec(EVICTION_POLICIES)]


# Types.


class Ptr(Type, dialect=Tt, name="ptr"):
    """A pointer to numbers in memory. Tensors of pointers have an address for each element.

    !tt.ptr<f32>
    !tt.ptr<i8, "constant">
    """

    pointee: TypeText
    address_space: str = GLOBAL

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> Ptr:
        cursor.expect("<")
        start = cursor.skip()
        pointee = scope.resolve(scope.read_type(cursor))
        space = cls._codecs["address_space"].read(cursor, scope) if cursor.accept(",") else GLOBAL
        cursor.expect(">")
        pointer = cls(pointee, space)
        problem = pointer.problem()
        if problem:
            raise cursor.fault(problem, start)
        return pointer

    def write_body(self, print_defaults: bool = False) -> str:
        return f"<{self.pointee}>" if self.address_space == GLOBAL else f'<{self.pointee}, "{self.address_space}">'

    def problem(self) -> str | None:
        if not (self.pointee in FLOATS or is_integer(self.pointee)):
            return f"a pointer must point to integers or floating-point numbers, but got '{self.pointee}'"
        if self.address_space not in (GLOBAL, DESCRIPTOR, CONSTANT):
            return (
                f"the address space of a pointer must be {GLOBAL}, {DESCRIPTOR} or {CONSTANT}, "
                f"but got '{self.address_space}'"
            )
        return None


class TensorDesc(Type, dialect=Tt, name="tensordesc"):
    """A descriptor of a tensor in memory, which is read and written in blocks of this shape.

    !tt.tensordesc<16x32xf16>
    """

    shape: tuple[int, ...]
    element: TypeText

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> TensorDesc:
        cursor.expect("<")
        start = cursor.skip()
        if cursor.at("array"):
            return cls._read_raw(cursor, scope)
        shape = cursor.dimensions("a descriptor's block")
        descriptor = cls(shape, scope.resolve(scope.read_type(cursor)))
        if cursor.at(","):
            raise cursor.fault("a layout in shared memory belongs to TritonGPU's IR, and not to TTIR")
        cursor.expect(">")
        problem = descriptor.problem()
        if problem:
            raise cursor.fault(problem, start)
        return descriptor

    def write_body(self, print_defaults: bool = False) -> str:
        return f"<{'x'.join(map(str, self.shape))}x{self.element}>"

    @property
    def block(self) -> str:
        """The type of a block: of signless integers."""
        return tensor_text(self.shape, self.element.lstrip("su") if is_integer(self.element) else self.element)

    def problem(self) -> str | None:
        if not self.shape or min(self.shape) < 1:
            return "a descriptor's block must have positive dimensions"
        if not (self.element in FLOATS or is_integer(self.element)):
            return f"a descriptor's elements must be integers or floating-point numbers, but got '{self.element}'"
        return None


# Tensors as text and as shape and element.

_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*)>\Z", re.DOTALL)


def tensor_text(shape: Sequence[int], element: str) -> str:
    """The type of a tensor in MLIR's own spelling."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def parts(text: str) -> tuple[tuple[int, ...] | None, str]:
    """The shape and element of a type in MLIR's own spelling; None as shape of what is no tensor."""
    m = _TENSOR.match(text)
    return (tuple(map(int, m[1].split("x")[:-1])), m[2]) if m else (None, text)


def shaped_like(text: str, element: str) -> str:
    """The type of another element in the shape of a type: a tensor, or the element itself."""
    shape, _ = parts(text)
    return element if shape is None else tensor_text(shape, element)


def pointee_type(text: str) -> str:
    """The type of the values that a pointer, or a tensor of pointers, points to."""
    return shaped_like(text, Ptr.decode(parts(text)[1]).pointee)


def pointer_type(text: str) -> str:
    """The type of pointers to values of a type."""
    return shaped_like(text, Ptr(parts(text)[1]).encode())


def shape_and_element(value: ir.Value | ir.Type) -> tuple[tuple[int, ...] | None, str]:
    """The shape and element of a value or type; None as shape of what is no tensor."""
    return parts(str(value.type if isinstance(value, ir.Value) else value))


def element_bits(text: str) -> int:
    """The width of a type's element: 64 for pointers."""
    element = parts(text)[1]
    return 64 if element.startswith("!tt.ptr<") else bit_width(element)


# Constraints.


def _alternatives(elements: Iterable[str]) -> str:
    return "|".join(elements)


_ANY_FLOAT = _alternatives(FLOATS)
_ANY_INTEGER = _alternatives(INTEGERS)
_ANY_POINTER = r"!tt\.ptr<.*>"
_ANY = f"{_ANY_FLOAT}|{_ANY_INTEGER}|{_ANY_POINTER}"


def _like(elements: str) -> str:
    return rf"tensor<(?:\d+x)*(?:{elements})>|{elements}"


def _tensor_of(elements: str) -> str:
    return rf"tensor<(?:\d+x)*(?:{elements})>"


class Number(TypeConstraint):
    """Numbers and pointers, and tensors of them."""

    summary = "number, pointer or tensor of them"
    _pattern = _like(_ANY)


class FloatLike(TypeConstraint):
    """Floating-point numbers, and tensors of them."""

    summary = "floating-point number or tensor of them"
    _pattern = _like(_ANY_FLOAT)


class F32Like(TypeConstraint):
    """Numbers of type f32, and tensors of them."""

    summary = "f32 or tensor of f32"
    _pattern = _like("f32")


class IntLike(TypeConstraint):
    """Integers, and tensors of them."""

    summary = "integer or tensor of integers"
    _pattern = _like(_ANY_INTEGER)


class BoolLike(TypeConstraint):
    """Truth values, and tensors of them."""

    summary = "i1 or tensor of i1"
    _pattern = _like("i1")


class I64Like(TypeConstraint):
    """Integers of 64 bits, and tensors of them."""

    summary = "i64 or tensor of i64"
    _pattern = _like("i64")


class PtrLike(TypeConstraint):
    """Pointers, and tensors of them."""

    summary = "pointer or tensor of pointers"
    _pattern = _like(_ANY_POINTER)


class Tensor(TypeConstraint):
    """Tensors of numbers or pointers."""

    summary = "tensor"
    _pattern = _tensor_of(_ANY)


class NumberTensor(TypeConstraint):
    """Tensors of numbers."""

    summary = "tensor of numbers"
    _pattern = _tensor_of(f"{_ANY_FLOAT}|{_ANY_INTEGER}")


class F32Tensor(TypeConstraint):
    """Tensors of f32."""

    summary = "tensor of f32"
    _pattern = _tensor_of("f32")


class IntTensor(TypeConstraint):
    """Tensors of integers."""

    summary = "tensor of integers"
    _pattern = _tensor_of(_ANY_INTEGER)


class FactorTensor(TypeConstraint):
    """Tensors of floating-point numbers, or of bytes that hold them."""

    summary = "tensor of floating-point numbers or i8"
    _pattern = _tensor_of(f"{_ANY_FLOAT}|i8")


class ScaleTensor(TypeConstraint):
    """Tensors of bytes, which are powers of two, or of numbers of f8E4M3FN."""

    summary = "tensor of i8 or f8E4M3FN"
    _pattern = _tensor_of("i8|f8E4M3FN")


class RowTensor(TypeConstraint):
    """Tensors of i16 or i32: the rows of a gather."""

    summary = "tensor of i16 or i32"
    _pattern = _tensor_of("i16|i32")


class I32(TypeConstraint):
    """The type i32."""

    summary = "i32"
    fixed = "i32"
    _pattern = "i32"
    _irdl = "irdl.is i32"


class I64(TypeConstraint):
    """The type i64."""

    summary = "i64"
    fixed = "i64"
    _pattern = "i64"
    _irdl = "irdl.is i64"
