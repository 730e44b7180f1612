"""Arguments of kernels, and their types, for which a kernel is compiled."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from xegpu_py.language import types
from xegpu_py.language.types import DType, dtype_of
from xegpu_py.numerics.arrays import check_numbers, is_masked
from xegpu_py.runtime.dlpack import from_dlpack
from xegpu_py.target import Block2DLimits


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

    def argument(self, given: Any) -> Any:
        """The array as it is passed: bools as bytes."""
        return given.view(np.uint8) if isinstance(given, np.ndarray) and given.dtype == bool else given

    def __str__(self) -> str:
        shown = ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype}[{shown}]{'' if self.aligned else ' unaligned'}"


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

    def argument(self, given: Any) -> Any:
        """The number as it is passed. MLIR's integers are signless: great unsigned ones become negative."""
        if self.dtype.kind == "uint" and given >= 1 << self.dtype.bits - 1:
            return int(given) - (1 << self.dtype.bits)
        return given

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


def is_passed(kind: ArgumentType) -> TypeGuard[ArrayType | ScalarType]:
    """Whether an argument is passed to the kernel at run time."""
    return isinstance(kind, ArrayType) or (isinstance(kind, ScalarType) and kind.number is None)


def flattened(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, the elements of tuples of arrays by the names `X[0]`, `X[1]`, ...; `nested` is the inverse."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, tuple) and has_arrays(value):
            found |= flattened({f"{name}[{i}]": as_argument(one) for i, one in enumerate(value)})
        else:
            found[name] = value
    return found


def nested(found: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with a tuple for names `X[0]`, `X[1]`, ..."""
    made: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in found.items():
        outer, opened, inner = name.partition("[")
        if not opened:
            made[name] = value
            continue
        number, _, rest = inner.partition("]")
        made.setdefault(outer, None)
        parts.setdefault(outer, {})[number + rest] = value
    return made | {outer: tuple(nested(elements).values()) for outer, elements in parts.items()}


def has_arrays(given: Any) -> bool:
    """Whether a tuple contains arrays."""
    if isinstance(given, tuple):
        return any(map(has_arrays, given))
    if isinstance(given, (np.generic, type)):
        return False
    return hasattr(given, "__array_interface__") or hasattr(given, "__dlpack__")


def argument_type(
    parameter: inspect.Parameter,
    given: Any,
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
    wanted, name = parameter.annotation, name or parameter.name
    if wanted is Constexpr or isinstance(given, (bool, str, tuple, type(None), DType)):
        known = Known(given)
        try:
            hash(known)
        except TypeError:
            raise TypeError(
                f"argument '{name}' of kernel '{kernel}' must be hashable, unlike {type(given).__name__}: "
                "it is known at compile time"
            ) from None
        return known
    if isinstance(given, np.ndarray) and given.ndim:
        if isinstance(wanted, DType):
            raise TypeError(f"argument '{name}' of kernel '{kernel}' must be a number of {wanted}, but got an array")
        check_numbers(given, f"argument '{name}' of kernel '{kernel}'")
        try:
            return _array_type(given, limits)
        except ValueError as e:
            hint = "; pack it in uint8, which unpack_int4 reads" if given.dtype.name.endswith("int4") else ""
            raise TypeError(f"argument '{name}' of kernel '{kernel}': {e}{hint}") from None
    if isinstance(given, (int, float, np.generic)):
        if wanted not in (inspect.Parameter.empty, int, float):
            try:
                dtype = dtype_of(wanted)
            except ValueError as e:
                what = f"parameter '{name}' of kernel '{kernel}'"
                raise TypeError(f"{what} is annotated {wanted!r}, which is neither Constexpr nor a type: {e}") from None
            if not dtype.holds(given.item() if isinstance(given, np.generic) else given):
                raise OverflowError(f"argument '{name}': {given} does not fit {dtype}")
            return ScalarType(dtype)
        if isinstance(given, (int, np.integer)):
            # A stride that is known to be 1 makes tiles of adjacent elements.
            fitting = [t for t in (types.int32, types.int64, types.uint64) if t.holds(given)]
            if not fitting:
                raise OverflowError(f"argument '{name}': no integer type holds {given}")
            return ScalarType(fitting[0], 1 if given == 1 and specialized else None)
        return ScalarType(types.of_scalar(given))
    if callable(given):
        return Known(given)
    raise TypeError(
        f"argument '{name}' of kernel '{kernel}' must be an array or a number, but got {type(given).__name__}"
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


def as_argument(given: Any) -> Any:
    """An argument, arrays of any library as numpy arrays that share their memory. 0-dimensional ones get one dimension.

    Raises:
        TypeError: if an array is not in the host's memory.
    """
    if isinstance(given, (np.generic, int, float, str, tuple, type, type(None))):
        return given
    if is_masked(given):
        # `argument_type` refuses it by its name; asarray would drop the mask.
        return given
    if hasattr(given, "__array_interface__"):
        given = np.asarray(given)
    elif hasattr(given, "__dlpack__"):
        # A tensor that requires a gradient exports DLPack only when it is detached.
        given = from_dlpack(given.detach() if hasattr(given, "detach") else given)
    return given.reshape(1) if isinstance(given, np.ndarray) and not given.ndim else given
