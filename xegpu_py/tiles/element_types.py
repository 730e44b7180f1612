"""Element types, how they combine, and the types of arguments."""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeGuard, get_args, get_origin

import ml_dtypes
import numpy as np
from mlir import ir

from xegpu_py.runtime.host_arrays import PointerTable, check_numbers, from_dlpack, is_masked
from xegpu_py.target.message_rules import Block2DLimits

# Element types of the tile language, and the rules by which they combine.
#
# This is the only place with type rules. The table in docs/tile-language.md is made from it.

Kind = Literal["bool", "int", "uint", "index", "float"]


@dataclass(frozen=True)
class DType:
    """An element type.

    Attributes:
        name: its name in the language and in diagnostics, numpy's name if numpy has the type.
        mlir: MLIR's element type. Integers are signless; the ops define their sign.
        kind: the kind of number.
        bits: its width in memory; `index` has 64, and tf32 occupies 32.
        digits: bits of a floating-point type's significand, with the leading one.
        dtype: numpy's type; None for `index`, tf32 and types without one.
    """

    name: str
    mlir: str
    kind: Kind
    bits: int
    digits: int = 0
    # None is hidden from type checkers, which otherwise refuse `array.astype(bfloat16)`.
    dtype: np.dtype[Any] = None  # type: ignore[assignment]

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type or `index`; bool is not."""
        return self.kind in ("int", "uint", "index")

    @property
    def is_signed(self) -> bool:
        """Whether the integer has a sign."""
        return self.kind in ("int", "index")

    @property
    def is_narrow(self) -> bool:
        """Whether it is a floating-point type without arithmetic of its own: those of 8 bits, and tf32."""
        return self.is_float and (self.bits == 8 or self.name == "tf32")

    def vector(self, shape: Sequence[int] = ()) -> ir.Type:
        """MLIR's type of a vector of these elements; without dimensions that of an element."""
        element = ir.Type.parse(self.mlir)
        return ir.VectorType.get(list(shape), element) if shape else element

    @property
    def memory(self) -> DType:
        """The type of the elements in memory: bools are bytes, as in numpy."""
        return uint8 if self.kind == "bool" else self

    @property
    def element_ty(self) -> DType:
        """The type itself: Triton's name for the type to which the pointers of this type point."""
        return self

    scalar = element_ty

    @property
    def primitive_bitwidth(self) -> int:
        """The number of bits, by Triton's name."""
        return self.bits

    def is_floating(self) -> bool:
        """Whether it is a floating-point type, by Triton's name."""
        return self.is_float

    def is_int(self) -> bool:
        """Whether it is an integer type or bool, by Triton's name."""
        return not self.is_float

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest number of an integer type."""
        if self.kind == "bool":
            return 0, 1
        return (0, (1 << self.bits) - 1) if self.kind == "uint" else (-(1 << self.bits - 1), (1 << self.bits - 1) - 1)

    @property
    def most(self) -> float:
        """The greatest finite number of a floating-point type."""
        if self.dtype is None:
            return float(np.uint32(0x7F7FE000).view(np.float32))
        finfo: Any = ml_dtypes.finfo
        return float(finfo(self.dtype).max)

    @property
    def infinite(self) -> bool:
        """Whether the floating-point type has infinities."""
        return self.name != "float8_e4m3fn"

    def holds(self, number: Any) -> bool:
        """Whether a Python number can become an element: integers exactly, others rounded to a finite number."""
        if self.kind == "bool":
            return isinstance(number, (bool, np.bool_)) or number in (0, 1)
        if self.is_float:
            if isinstance(number, int) and abs(number) > sys.float_info.max:
                return False
            return not math.isfinite(number) or math.isfinite(self.rounded(float(number)))
        low, high = self.limits
        return isinstance(number, (int, np.integer, np.bool_)) and bool(low <= number <= high)

    def signless(self, number: Any) -> Any:
        """A Python number as MLIR's constants of this type hold it: integers as if they had a sign.

        Raises:
            OverflowError: if it does not fit the type.
        """
        if not self.holds(number):
            raise OverflowError(f"{number} does not fit {self}")
        return number - (1 << self.bits) if self.kind == "uint" and number >= 1 << self.bits - 1 else number

    def rounded(self, number: float) -> float:
        """A Python number rounded to nearest even in this floating-point type."""
        if self.dtype is None:
            return number if abs(number) < 2.0**128 else math.copysign(math.inf, number)
        with np.errstate(over="ignore"):
            return float(np.float64(number).astype(self.dtype))

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


def _integers() -> list[DType]:
    return [
        DType(f"{sign}int{bits}", f"i{bits}", "uint" if sign else "int", bits, dtype=np.dtype(f"{sign}int{bits}"))
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    ]


bool_ = DType("bool", "i1", "bool", 1, dtype=np.dtype(bool))

index = DType("index", "index", "index", 64)

int8, int16, int32, int64, uint8, uint16, uint32, uint64 = _integers()

float8_e5m2 = DType("float8_e5m2", "f8E5M2", "float", 8, 3, np.dtype(ml_dtypes.float8_e5m2))

float8_e4m3fn = DType("float8_e4m3fn", "f8E4M3FN", "float", 8, 4, np.dtype(ml_dtypes.float8_e4m3fn))

float16 = DType("float16", "f16", "float", 16, 11, np.dtype(np.float16))

bfloat16 = DType("bfloat16", "bf16", "float", 16, 8, np.dtype(ml_dtypes.bfloat16))

tfloat32 = DType("tf32", "tf32", "float", 32, 11)

float32 = DType("float32", "f32", "float", 32, 24, np.dtype(np.float32))

float64 = DType("float64", "f64", "float", 64, 53, np.dtype(np.float64))

DTYPES = (
    *(bool_, index, *_integers()),
    *(float8_e5m2, float8_e4m3fn, float16, bfloat16, tfloat32, float32, float64),
)
"""All element types."""

_BY_NAME = {t.name: t for t in DTYPES} | {t.mlir: t for t in DTYPES if t.kind != "uint"}

_BY_NAME |= {f"ui{t.bits}": t for t in DTYPES if t.kind == "uint"}

_BY_NUMPY = {t.dtype: t for t in DTYPES if t.dtype is not None}


def dtype_of(given: Any) -> DType:
    """The element type of a `DType`, a numpy type, or the name of either or of an MLIR type.

    Raises:
        ValueError: if there is no such element type.
    """
    if isinstance(given, DType):
        return given
    if isinstance(given, str) and given in _BY_NAME:
        return _BY_NAME[given]
    try:
        # numpy takes None for float64.
        dtype = None if given is None else _BY_NUMPY.get(np.dtype(given))
    except TypeError:
        dtype = None
    if dtype is None:
        raise ValueError(f"no element type matches {given!r}; expected {', '.join(t.name for t in DTYPES)}")
    return dtype


def integer_of(bits: int, signed: bool) -> DType:
    """The integer type of a width."""
    return dtype_of(f"{'' if signed else 'u'}int{bits}")


def summed(dtype: DType) -> DType:
    """The type of sums and products of values: int32 or uint32 for narrower integers, as in Triton."""
    if dtype.kind == "bool":
        return int32
    if dtype.kind in ("int", "uint") and dtype.bits < 32:
        return int32 if dtype.is_signed else uint32
    return dtype


def promote(a: DType, b: DType) -> DType:
    """The type in which values of two types are combined.

    Of integers the smallest type that holds both, as in numpy; an integer and a floating-point value give the
    floating-point type, as in Triton and JAX; two floating-point types give the wider one, and float32 where neither
    holds the other. bool is converted to the other type, and two bools to int32.

    Raises:
        TypeError: for uint64 with a signed type, which no integer type holds.
    """
    if a is b:
        return int32 if a.kind == "bool" else a
    for first, second in ((a, b), (b, a)):
        if first.kind == "bool" or (second.is_float and not first.is_float):
            return second
    if a.is_float:
        return _wider_float(a, b)
    return _wider_integer(a, b)


def _wider_float(a: DType, b: DType) -> DType:
    low, high = sorted((a, b), key=lambda t: (t.bits, t.digits))
    if low.bits == high.bits and low.bits < 32:
        return float32
    return high


def _wider_integer(a: DType, b: DType) -> DType:
    if a.is_signed == b.is_signed:
        # index counts as wider than int64, so that indices stay indices.
        return max(a, b, key=lambda t: (t.bits, t.kind == "index"))
    unsigned, signed = (a, b) if b.is_signed else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits == 64:
        raise TypeError(f"no integer type holds both {a} and {b}; convert one with .to(...)")
    return {16: int16, 32: int32, 64: int64}[2 * unsigned.bits]


def holds_all(wide: DType, narrow: DType) -> bool:
    """Whether a type holds every number of another type of its kind: integers, or floating-point numbers."""
    if {wide, narrow} == {index, int64}:
        return True
    if wide.is_float or narrow.is_float:
        return wide.is_float and narrow.is_float and _wider_float(wide, narrow) is wide and wide.bits > narrow.bits
    if narrow.kind == "bool":
        return wide.is_integer
    try:
        return wide.is_integer and _wider_integer(wide, narrow) is wide
    except TypeError:
        return False


def with_scalar(tile: DType, number: Any) -> DType:
    """The type in which values are combined with a Python number, which is weakly typed (NEP 50).

    An integer takes the values' type. Another number takes the type of floating-point values; with integers the result
    is float32. True and False take any type.

    Raises:
        TypeError: if it is not a number.
        OverflowError: if it does not fit the type.
    """
    if isinstance(number, (bool, np.bool_)):
        return tile
    if isinstance(number, (int, np.integer)):
        dtype = int32 if tile.kind == "bool" else tile
    elif isinstance(number, (float, np.floating)):
        dtype = tile if tile.is_float else float32
    else:
        raise TypeError(f"a value of {tile} cannot be combined with {number!r}")
    if not dtype.holds(number):
        raise OverflowError(f"{number} does not fit {dtype}")
    return dtype


def of_scalar(number: Any) -> DType:
    """The type of a Python number that becomes a value of the kernel on its own.

    Raises:
        TypeError: if it is not a number.
    """
    if isinstance(number, np.generic):
        return dtype_of(number.dtype)
    if isinstance(number, bool):
        return bool_
    if isinstance(number, int):
        return index
    if isinstance(number, float):
        return float32
    raise TypeError(f"{number!r} cannot become a value of the kernel")


# Arguments of kernels, and their types, for which a kernel is compiled.


if TYPE_CHECKING:
    # For a type checker such a parameter has any type: `arange(0, BLOCK)` takes it, and it may have a default.
    Constexpr: TypeAlias = Any
else:

    class Constexpr:
        """Annotates a parameter of a kernel that is known at compile time: `BLOCK: Constexpr`.

        `Constexpr(3)` is 3, for Triton's global variables: `BLOCK = constexpr(64)`.
        """

        def __new__(cls, value: Any) -> Any:
            return value


@dataclass(frozen=True)
class ArrayType:
    """The type of an array argument.

    Attributes:
        dtype: its element type.
        shape: its extents; None for an extent that is known only at run time.
        strides: its strides in elements, as `shape`; None for a contiguous row-major array.
        aligned: whether 2D block messages can access it.
    """

    dtype: DType
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None = None
    aligned: bool = True

    @property
    def mlir(self) -> str:
        """MLIR's type."""
        extents = "x".join("?" if n is None else str(n) for n in (*self.shape, self.dtype.memory.mlir))
        if self.strides is None:
            return f"memref<{extents}>"
        return f"memref<{extents}, strided<[{', '.join('?' if n is None else str(n) for n in self.strides)}]>>"

    def argument(self, array: Any) -> Any:
        """The array as it is passed: bools as bytes."""
        return array.view(np.uint8) if isinstance(array, np.ndarray) and array.dtype == bool else array

    def __str__(self) -> str:
        shape_text = ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype}[{shape_text}]{'' if self.aligned else ' unaligned'}"


@dataclass(frozen=True)
class ScalarType:
    """The type of a number.

    Attributes:
        dtype: its type.
        number: the number, if a kernel is compiled for it; else it is passed at run time.
    """

    dtype: DType
    number: int | None = None

    @property
    def mlir(self) -> str:
        """MLIR's type."""
        return self.dtype.mlir

    def argument(self, number: Any) -> Any:
        """The number as it is passed. MLIR's integers are signless: great unsigned ones become negative."""
        if self.dtype.kind == "uint" and number >= 1 << self.dtype.bits - 1:
            return int(number) - (1 << self.dtype.bits)
        return number

    def __str__(self) -> str:
        return str(self.dtype if self.number is None else self.number)


@dataclass(frozen=True, eq=False)
class Known:
    """An argument that is known at compile time. Equal numbers of different types are different arguments.

    Attributes:
        value: the argument.
    """

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and identity(self.value) == identity(other.value)

    def __hash__(self) -> int:
        return hash(identity(self.value))

    def __str__(self) -> str:
        return repr(self.value)


def identity(value: Any) -> Any:
    """The key of an object that is known at compile time: 2 and 2.0 have different ones, and so have 0.0 and -0.0."""
    if isinstance(value, tuple):
        return type(value), tuple(map(identity, value))
    if isinstance(value, frozenset):
        return type(value), frozenset(map(identity, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and type(value).__eq__ is not object.__eq__:
        hash(value)
        return type(value), tuple(identity(getattr(value, f.name)) for f in dataclasses.fields(value))
    return type(value), value.hex() if isinstance(value, float) else value


ArgumentType = ArrayType | ScalarType | Known


def is_passed(argument_type: ArgumentType) -> TypeGuard[ArrayType | ScalarType]:
    """Whether an argument is passed to the kernel at run time."""
    return isinstance(argument_type, ArrayType) or (
        isinstance(argument_type, ScalarType) and argument_type.number is None
    )


def flattened(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, the elements of tuples of arrays by the names `X[0]`, `X[1]`, ...; `nested` is the inverse."""
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, tuple) and has_arrays(value):
            flat |= flattened({f"{name}[{i}]": as_argument(element) for i, element in enumerate(value)})
        else:
            flat[name] = value
    return flat


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with a tuple for names `X[0]`, `X[1]`, ..."""
    arguments: dict[str, Any] = {}
    elements_of: dict[str, dict[str, Any]] = {}
    for name, value in flat.items():
        tuple_name, opened, index_text = name.partition("[")
        if not opened:
            arguments[name] = value
            continue
        number, _, suffix = index_text.partition("]")
        arguments.setdefault(tuple_name, None)
        elements_of.setdefault(tuple_name, {})[number + suffix] = value
    return arguments | {tuple_name: tuple(nested(elements).values()) for tuple_name, elements in elements_of.items()}


def has_arrays(argument: Any) -> bool:
    """Whether a tuple contains arrays."""
    if isinstance(argument, tuple):
        return any(map(has_arrays, argument))
    if isinstance(argument, (np.generic, type)):
        return False
    return hasattr(argument, "__array_interface__") or hasattr(argument, "__dlpack__")


def argument_type(
    parameter: inspect.Parameter,
    argument: Any,
    limits: Block2DLimits | None,
    kernel: str,
    specialized: bool = True,
    name: str = "",
) -> ArgumentType:
    """The type for which a kernel is compiled, of an argument that `as_argument` gives.

    Args:
        limits: the limits of 2D block messages, if the target has these messages.
        kernel: the kernel's name, for error messages.
        specialized: whether the kernel is compiled for the integer 1.
        name: the argument's name, if it is not the parameter's: that of an element of a tuple.

    Raises:
        TypeError: if it is neither an array nor a number, or an array with other elements or a negative stride.
        OverflowError: if it does not fit the type with which the parameter is annotated.
    """
    annotation, name = parameter.annotation, name or parameter.name
    if get_origin(annotation) is Annotated:
        # `Annotated[float, float16]` is a type for type checkers, which `float16` is not.
        annotation = get_args(annotation)[1]
    if annotation is Constexpr or isinstance(argument, (bool, str, tuple, type(None), DType)):
        constant = Known(argument)
        try:
            hash(constant)
        except TypeError:
            raise TypeError(
                f"argument '{name}' of kernel '{kernel}' must be hashable, unlike {type(argument).__name__}: "
                "it is known at compile time"
            ) from None
        return constant
    if isinstance(argument, np.ndarray) and argument.ndim:
        if isinstance(annotation, DType):
            raise TypeError(
                f"argument '{name}' of kernel '{kernel}' must be a number of {annotation}, but got an array"
            )
        check_numbers(argument, f"argument '{name}' of kernel '{kernel}'")
        try:
            return _array_type(argument, limits)
        except ValueError as e:
            hint = "; pack it in uint8, which unpack_int4 reads" if argument.dtype.name.endswith("int4") else ""
            raise TypeError(f"argument '{name}' of kernel '{kernel}': {e}{hint}") from None
    if isinstance(argument, (int, float, np.generic)):
        if annotation not in (inspect.Parameter.empty, int, float):
            try:
                dtype = dtype_of(annotation)
            except ValueError as e:
                parameter_title = f"parameter '{name}' of kernel '{kernel}'"
                raise TypeError(
                    f"{parameter_title} is annotated {annotation!r}, which is neither Constexpr nor a type: {e}"
                ) from None
            if not dtype.holds(argument.item() if isinstance(argument, np.generic) else argument):
                raise OverflowError(f"argument '{name}': {argument} does not fit {dtype}")
            # No register holds a single bit: the kernel is compiled for the value, as for Python's bools.
            return Known(bool(argument)) if dtype.kind == "bool" else ScalarType(dtype)
        if isinstance(argument, (int, np.integer)):
            # A stride that is known to be 1 makes tiles of adjacent elements.
            fitting_types = [t for t in (int32, int64, uint64) if t.holds(argument)]
            if not fitting_types:
                raise OverflowError(f"argument '{name}': no integer type holds {argument}")
            return ScalarType(fitting_types[0], 1 if argument == 1 and specialized else None)
        return ScalarType(of_scalar(argument))
    if callable(argument):
        return Known(argument)
    raise TypeError(
        f"argument '{name}' of kernel '{kernel}' must be an array or a number, but got {type(argument).__name__}"
    )


class Reversed(TypeError):
    """An array has a negative stride; the caller passes a copy."""


def is_reversed(array: Any) -> bool:
    """Whether an argument is an array with a negative stride."""
    return isinstance(array, np.ndarray) and array.size > 0 and min(array.strides, default=0) < 0


def _array_type(array: np.ndarray[Any, Any], limits: Block2DLimits | None) -> ArrayType:
    if is_reversed(array):
        raise Reversed
    dtype, shape = dtype_of(array.dtype), (None,) * array.ndim
    aligned = limits is None or limits.array_problem(array) is None
    if array.flags.c_contiguous:
        return ArrayType(dtype, shape, None, aligned)
    steps = [s // array.itemsize for s in array.strides]
    return ArrayType(dtype, shape, tuple(1 if s == 1 else None for s in steps), aligned)


def as_argument(argument: Any) -> Any:
    """An argument, arrays of any library as numpy arrays that share their memory. 0-dimensional ones get one dimension.
    numpy's bools are Python's.

    Raises:
        TypeError: if an array is not in the host's memory.
    """
    if isinstance(argument, np.bool_):
        return bool(argument)
    if isinstance(argument, (np.generic, int, float, str, tuple, type, type(None))):
        return argument
    if is_masked(argument) or isinstance(argument, PointerTable):
        # `argument_type` refuses it by its name; asarray would drop the mask.
        return argument
    if hasattr(argument, "__array_interface__"):
        argument = np.asarray(argument)
    elif hasattr(argument, "__dlpack__"):
        # A tensor that requires a gradient exports DLPack only when it is detached.
        argument = from_dlpack(argument.detach() if hasattr(argument, "detach") else argument)
    return argument.reshape(1) if isinstance(argument, np.ndarray) and not argument.ndim else argument
