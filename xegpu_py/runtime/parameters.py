"""The parameters of a lowered kernel: which arguments fit them, and what the lowering may assume about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from msgspec import Struct, structs

from xegpu_py.numerics.formats import ARRAYS, STORAGE, dtype_named, element_bits
from xegpu_py.runtime.host_arrays import packed_shape
from xegpu_py.target import GRID_LIMIT
from xegpu_py.target.message_rules import Block2DLimits
from xegpu_py.visa.program import Input, extent

SMALL = {"bytes": (1 << 31) - (1 << 16), "index": 1 << 30, "grid": GRID_LIMIT}
"""The limits that the first version of a kernel is compiled for: the bytes from the first to the last byte of an array,
the absolute value of index arguments, and the workgroups in each dimension."""

_ALSO = {"tf32": ("f32",), "index": ("i64", "ui64"), **{f"i{n}": (f"i{n}", f"ui{n}") for n in (8, 16, 32, 64)}}
"""The types of array elements that fit an MLIR element type, if they are not just the type of the same name."""


class Parameter(Struct, frozen=True):
    """A parameter of a kernel. It is plain data, so that kernels from the cache need no MLIR context.

    Attributes:
        type: the MLIR type.
        element: the MLIR type of an element; for a scalar the type itself.
        kind: "scalar", "vector" or "memref"; or "input", of a kernel of assembly.
        shape: extents of a memref or vector; None for dynamic ones.
        strides: strides of a memref in elements; None for dynamic ones.
        offset: offset of a memref's first element, in elements; None if it is dynamic.
        contiguous: whether a memref is row-major without gaps.
        name: the user's name of it: `%C` in MLIR, of assembly the input's name; empty if the text has none.
    """

    type: str
    element: str
    kind: str = "scalar"
    shape: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] = ()
    offset: int | None = 0
    contiguous: bool = True
    name: str = ""

    @property
    def is_packed(self) -> bool:
        """Whether it is a memref whose elements are smaller than a byte."""
        return self.is_memref and self.element in ARRAYS

    @property
    def is_memref(self) -> bool:
        """Whether it is a memref."""
        return self.kind == "memref"

    def listed(self, index: int) -> str:
        """The parameter in a list of all."""
        return self.name if self.kind == "input" else f"{self.name or index}: {self.type}"

    def title(self, index: int, kernel: str) -> str:
        """The parameter in a message about its argument."""
        if self.kind == "input":
            return self.shown(index)
        return f"{self.shown(index)} of kernel '{kernel}', {_article(self.type)},"

    def shown(self, index: int) -> str:
        """The parameter's argument in other messages."""
        return f"argument '{self.name}'" if self.name else f"argument {index}"

    def inputs(self, index: int, argument: Any, title: str) -> dict[str, Any]:
        """The inputs of the lowered kernel for an argument: the array or number, then extents and strides.

        Args:
            index: the parameter's number.
            title: the argument's name in messages.

        Raises:
            TypeError, ValueError: if the argument does not fit.
        """
        name = self.name if self.kind == "input" else f"in{index}"
        if not self.is_memref:
            if self.kind == "scalar" and not _is_number(argument):
                array = isinstance(argument, np.ndarray)
                raise TypeError(f"{title} must be a number, but got {'an array' if array else type(argument).__name__}")
            return {name: argument}
        if not isinstance(argument, np.ndarray):
            raise TypeError(f"{title} must be a numpy array, but got {type(argument).__name__}")
        self._check_element(argument, title)
        shape = packed_shape(self.shape, self.element)
        shape_matches = len(argument.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, argument.shape)
        )
        if not shape_matches:
            packed = f" of bytes, which hold {8 // element_bits(self.element)} elements each" if self.is_packed else ""
            raise ValueError(f"{title} cannot be an array of shape {argument.shape}{packed}")
        # An array without dimensions is not a number, which would be an address.
        return {name: np.atleast_1d(argument)} | self._layout(name, argument, title)

    def _check_element(self, argument: np.ndarray[Any, Any], title: str) -> None:
        if self.is_packed:
            if argument.dtype not in (np.uint8, np.int8):
                names = " or ".join(ARRAYS[self.element])
                raise TypeError(
                    f"{title} must be an array of {names}, or packed in uint8, but got an array of {argument.dtype}"
                )
            return
        types = _ALSO.get(self.element, (self.element.removeprefix("s"),))
        legal_dtypes = [dtype_named(STORAGE[t]) for t in types if t in STORAGE]
        if not legal_dtypes:
            raise TypeError(f"{title} has elements of {self.element}, which no array has")
        if argument.dtype not in legal_dtypes:
            names = " or ".join(str(d) for d in legal_dtypes)
            raise TypeError(f"{title} must be an array of {names}, but got an array of {argument.dtype}")

    def _layout(self, name: str, argument: np.ndarray[Any, Any], title: str) -> dict[str, int]:
        input_values = {f"{name}_size{d}": n for d, n in enumerate(argument.shape)}
        if self.contiguous:
            if not argument.flags.c_contiguous:
                raise ValueError(f"{title} must lie in memory in row-major order; numpy.ascontiguousarray makes it so")
            return input_values
        if argument.size and any(s % argument.itemsize for s in argument.strides):
            raise ValueError(
                f"{title} cannot be an array of strides {argument.strides} bytes, which are not multiples of "
                f"{argument.itemsize}, the size of its elements; numpy.ascontiguousarray makes a copy"
            )
        element_strides = [s // argument.itemsize for s in argument.strides]
        per_byte = 8 // element_bits(self.element) if self.is_packed else 1
        strides = [
            n if n is None or i == len(element_strides) - 1 else n // per_byte for i, n in enumerate(self.strides)
        ]
        # numpy gives empty arrays strides of 0.
        strides_match = not argument.size or all(
            want in (None, have) or size == 1 for want, have, size in zip(strides, element_strides, argument.shape)
        )
        if not strides_match:
            raise ValueError(f"{title} cannot be an array of strides {tuple(element_strides)} elements")
        if self.offset not in (0, None):
            raise ValueError(
                f"{title} begins {self.offset} elements into its buffer, which no array does; let it be dynamic"
            )
        return input_values | {f"{name}_stride{d}": s for d, s in enumerate(element_strides)} | {f"{name}_offset": 0}

    def misfits(self, array: Any, limits: Block2DLimits | None) -> bool:
        """Whether an array has a dynamic shape or stride, and 2D block messages cannot address it."""
        if limits is None or not (self.is_memref and isinstance(array, np.ndarray) and array.ndim > 1):
            return False
        if None not in (*self.shape[-2:], *self.strides):
            return False
        return limits.array_problem(array) is not None

    def is_strided(self, array: Any) -> bool:
        """Whether an array has an innermost stride other than 1, and the type's innermost stride is dynamic."""
        unknown = self.is_memref and bool(self.strides) and self.strides[-1] is None
        return unknown and isinstance(array, np.ndarray) and array.strides[-1:] != (array.itemsize,)

    def reach(self, argument: Any) -> int:
        """The greatest of: the bytes that an array spans, its extents in bytes, its strides in bytes."""
        if not (self.is_memref and isinstance(argument, np.ndarray)):
            return 0
        strides = [abs(n) for n in argument.strides]
        # Strides of contiguous memrefs are computed from their extents, even if there are no elements.
        contiguous = math.prod(argument.shape[1:]) * argument.itemsize
        reach = sum((n - 1) * s for n, s in zip(argument.shape, strides)) + argument.itemsize
        return int(max(*(n * argument.itemsize for n in argument.shape), *strides, contiguous, reach))

    def greatest_index(self, argument: Any) -> int:
        """The greatest absolute value of an index argument or a vector of indices; 0 for other arguments."""
        if self.is_memref or self.element != "index":
            return 0
        index_array = np.asarray(argument)
        is_integral = np.issubdtype(index_array.dtype, np.integer) or index_array.dtype == object
        return max((abs(int(n)) for n in index_array.ravel()), default=0) if is_integral else 0


def parameters_of(types: Sequence[mlir.Type], names: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """The parameters of these MLIR types, and their names in the text."""
    return tuple(structs.replace(_parameter(t), name=n) for t, n in zip(types, names or [""] * len(types)))


def _parameter(type_: mlir.Type) -> Parameter:
    text = str(type_)
    if isinstance(type_, mlir.VectorType):
        vector = mlir.VectorType(type_)
        return Parameter(text, str(vector.element_type), "vector", tuple(vector.shape))
    if not isinstance(type_, mlir.MemRefType):
        return Parameter(text, text)
    memref = mlir.MemRefType(type_)
    strides, offset = memref.get_strides_and_offset()
    size, step = mlir.ShapedType.get_dynamic_size(), mlir.ShapedType.get_dynamic_stride_or_offset()
    identity = mlir.AffineMapAttr.get(mlir.AffineMap.get_identity(memref.rank, memref.context))
    return Parameter(
        text,
        str(memref.element_type),
        "memref",
        tuple(None if n == size else int(n) for n in memref.shape),
        tuple(None if n == step else int(n) for n in strides),
        None if offset == step else int(offset),
        memref.layout == identity,
    )


def beyond(
    parameters: Sequence[Parameter],
    arguments: Sequence[Any],
    grid: int | Sequence[int],
    limits: Mapping[str, int] = SMALL,
) -> str | None:
    """Return the limit that a call exceeds, as a clause; None if it does not. A limit of 0 means no limit."""
    if not any(limits.values()):
        return None
    limit_of = {quantity: limits.get(quantity) or math.inf for quantity in SMALL}
    if max(extent(grid, "grid")) > limit_of["grid"]:
        return f"'grid' has more than {limit_of['grid']} workgroups in a dimension"
    for i, (parameter, argument) in enumerate(zip(parameters, arguments)):
        if parameter.reach(argument) > limit_of["bytes"]:
            return f"{parameter.shown(i)} is an array of more than {limit_of['bytes']} bytes"
        if parameter.greatest_index(argument) > limit_of["index"]:
            return f"{parameter.shown(i)} is an index of more than {limit_of['index']}"
    return None


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' or noun.startswith('f') else 'a'} {noun}"


def _is_number(argument: Any) -> bool:
    return isinstance(argument, (bool, int, float, np.generic)) or (
        isinstance(argument, np.ndarray) and argument.ndim == 0
    )


def is_pointer(item: Input) -> bool:
    """Whether an input takes the address of an array."""
    return item.var.type == "uq" and item.var.count == 1


def value_of(item: Input, argument: Any, title: str) -> bytes:
    """The bytes of an argument that is passed by value.

    Raises:
        TypeError, ValueError: if it does not fit the input.
    """
    fmt, count = item.var.format, item.var.count
    number_kind = "number" if fmt.is_float else "integer"
    expected_text = f"{count} {number_kind}s" if count > 1 else f"a{'n' * (number_kind == 'integer')} {number_kind}"
    requirement = f"{title} must be {expected_text} of type {fmt.name}"
    if is_pointer(item):
        requirement = f"{title} must be a numpy array, or an integer as its address"
    try:
        array = np.asarray(argument)
    except ValueError:
        raise TypeError(f"{requirement}, but got {argument!r}") from None
    if array.dtype == bool and not is_pointer(item):
        array = array.astype(np.uint8)
    if array.dtype == fmt.dtype and array.size == count:
        return array.tobytes()
    is_convertible = np.issubdtype(array.dtype, np.integer) or (
        fmt.is_float and np.issubdtype(array.dtype, np.floating)
    )
    # numpy represents integers of more than 64 bits as objects.
    if not is_convertible and not (array.dtype == object and all(isinstance(v, int) for v in array.ravel())):
        actual_type = array.dtype if isinstance(argument, (np.ndarray, np.generic)) else type(argument).__name__
        raise TypeError(f"{requirement}, but got {actual_type}")
    if array.size != count:
        raise ValueError(f"{requirement}, but got {array.size} of them")
    if not fmt.is_float:
        info = np.iinfo(fmt.dtype)
        if any(not info.min <= int(v) <= info.max for v in array.ravel()):
            raise ValueError(f"{requirement}, from {info.min} to {info.max}, but got {argument!r}")
        return array.astype(fmt.dtype).tobytes()
    try:
        with np.errstate(over="ignore"):
            values = array.astype(fmt.dtype)
    except OverflowError:
        values = np.full(array.shape, np.inf, fmt.dtype)
    if (np.isinf(values) & (array != values)).any():
        raise ValueError(f"{requirement} in its range, but got {argument!r}")
    return values.tobytes()
