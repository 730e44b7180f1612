"""A lowered kernel: its parameters, its code, its assumptions and options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from mlir import ir as mlir
from msgspec import Struct

from xegpu_py.numerics.formats import ARRAYS, STORAGE, dtype_named, element_bits
from xegpu_py.runtime.host_arrays import packed_shape
from xegpu_py.target import GRID_LIMIT, Block2DLimits
from xegpu_py.target import target as target_of
from xegpu_py.visa.program import extent

# The parameters of a lowered kernel: which arguments fit them, and what the lowering may assume about them.

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
        kind: "scalar", "vector" or "memref".
        shape: extents of a memref; None for dynamic ones.
        strides: strides of a memref in elements; None for dynamic ones.
        offset: offset of a memref's first element, in elements; None if it is dynamic.
        contiguous: whether a memref is row-major without gaps.
    """

    type: str
    element: str
    kind: str = "scalar"
    shape: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] = ()
    offset: int | None = 0
    contiguous: bool = True

    @property
    def is_packed(self) -> bool:
        """Whether it is a memref whose elements are smaller than a byte."""
        return self.is_memref and self.element in ARRAYS

    @property
    def is_memref(self) -> bool:
        """Whether it is a memref."""
        return self.kind == "memref"

    def inputs(self, index: int, argument: Any, title: str) -> dict[str, Any]:
        """The inputs of the lowered kernel for an argument: the array or number, then extents and strides.

        Args:
            index: the parameter's number.
            title: the argument's name in messages.

        Raises:
            TypeError, ValueError: if the argument does not fit.
        """
        name = f"in{index}"
        if not self.is_memref:
            if self.kind == "scalar" and not _is_number(argument):
                array = isinstance(argument, np.ndarray)
                raise TypeError(f"{title} must be a number, but got {'an array' if array else type(argument).__name__}")
            return {name: argument}
        if not isinstance(argument, np.ndarray):
            raise TypeError(f"{title} must be a numpy array, but got {type(argument).__name__}")
        self._check_element(argument, title)
        shape = packed_shape(self.shape, self.element)
        fits = len(argument.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, argument.shape)
        )
        if not fits:
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
        wanted = [dtype_named(STORAGE[t]) for t in types if t in STORAGE]
        if not wanted:
            raise TypeError(f"{title} has elements of {self.element}, which no array has")
        if argument.dtype not in wanted:
            names = " or ".join(str(d) for d in wanted)
            raise TypeError(f"{title} must be an array of {names}, but got an array of {argument.dtype}")

    def _layout(self, name: str, argument: np.ndarray[Any, Any], title: str) -> dict[str, int]:
        found = {f"{name}_size{d}": n for d, n in enumerate(argument.shape)}
        if self.contiguous:
            if not argument.flags.c_contiguous:
                raise ValueError(f"{title} must lie in memory in row-major order; numpy.ascontiguousarray makes it so")
            return found
        if argument.size and any(s % argument.itemsize for s in argument.strides):
            raise ValueError(
                f"{title} cannot be an array of strides {argument.strides} bytes, which are not multiples of "
                f"{argument.itemsize}, the size of its elements; numpy.ascontiguousarray makes a copy"
            )
        own = [s // argument.itemsize for s in argument.strides]
        each = 8 // element_bits(self.element) if self.is_packed else 1
        strides = [n if n is None or i == len(own) - 1 else n // each for i, n in enumerate(self.strides)]
        # numpy gives empty arrays strides of 0.
        fits = not argument.size or all(
            want in (None, have) or size == 1 for want, have, size in zip(strides, own, argument.shape)
        )
        if not fits:
            raise ValueError(f"{title} cannot be an array of strides {tuple(own)} elements")
        if self.offset not in (0, None):
            raise ValueError(
                f"{title} begins {self.offset} elements into its buffer, which no array does; let it be dynamic"
            )
        return found | {f"{name}_stride{d}": s for d, s in enumerate(own)} | {f"{name}_offset": 0}

    def misfits(self, array: Any, limits: Block2DLimits) -> bool:
        """Whether an array has a dynamic shape or stride, and 2D block messages cannot address it."""
        if not (self.is_memref and isinstance(array, np.ndarray) and array.ndim > 1):
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
        found = np.asarray(argument)
        whole = np.issubdtype(found.dtype, np.integer) or found.dtype == object
        return max((abs(int(n)) for n in found.ravel()), default=0) if whole else 0


def parameters_of(types: Iterable[mlir.Type]) -> tuple[Parameter, ...]:
    """The parameters of these MLIR types."""
    return tuple(map(_parameter, types))


def _parameter(kind: mlir.Type) -> Parameter:
    text = str(kind)
    if isinstance(kind, mlir.VectorType):
        return Parameter(text, str(mlir.VectorType(kind).element_type), "vector")
    if not isinstance(kind, mlir.MemRefType):
        return Parameter(text, text)
    memref = mlir.MemRefType(kind)
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
    """How a call exceeds the limits, as a clause; None if it does not. A limit of 0 means no limit."""
    most = {what: limits.get(what) or math.inf for what in SMALL}
    if max(extent(grid, "grid")) > most["grid"]:
        return f"'grid' has more than {most['grid']} workgroups in a dimension"
    for i, (parameter, given) in enumerate(zip(parameters, arguments)):
        if parameter.reach(given) > most["bytes"]:
            return f"argument {i} is an array of more than {most['bytes']} bytes"
        if parameter.greatest_index(given) > most["index"]:
            return f"argument {i} is an index of more than {most['index']}"
    return None


def unaligned_arrays(parameters: Sequence[Parameter], arguments: Sequence[Any], target: str) -> tuple[int, ...]:
    """The numbers of the arguments that are arrays which 2D block messages cannot address (see `Parameter.misfits`)."""
    limits = target_of(target).block2d
    if limits is None:
        return ()
    return tuple(i for i, (p, given) in enumerate(zip(parameters, arguments)) if p.misfits(given, limits))


def _is_number(argument: Any) -> bool:
    return isinstance(argument, (bool, int, float, np.generic)) or (
        isinstance(argument, np.ndarray) and argument.ndim == 0
    )


# 2D surfaces whose extents a kernel computes from its arguments: whether 2D block messages can address them.

Expression: TypeAlias = "int | tuple[Any, ...]"
"""A number; ("argument", i); ("extent", i, d), of an array; or an op's name and its operands."""

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: a // b,
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": lambda a, b: -(-a // b),
    "floordivsi": lambda a, b: a // b,
    "maxsi": max,
    "maxui": max,
    "minsi": min,
    "minui": min,
    "shli": lambda a, b: a << b if b < 64 else 0,
    "shrui": lambda a, b: a >> b,
    "andi": lambda a, b: a & b,
}
"""Ops of arith on extents, which are not negative and do not wrap around."""


class Surface(Struct, frozen=True):
    """The surface of a descriptor or tile. It is plain data, as parameters are.

    Attributes:
        argument: the number of the argument whose memory contains the surface.
        size: bytes of an element.
        width, rows, pitch: elements of a row, number of rows, and elements from one row to the next; None if it is not
            computed from arguments alone.
    """

    argument: int
    size: int
    width: Expression | None
    rows: Expression | None
    pitch: Expression | None


class Product(Struct, frozen=True):
    """A product of matrices that are loaded from surfaces.

    Attributes:
        where: the product's place in the source.
        columns, rows: the inner sizes of its surfaces: columns of the left one, and rows of the right one.
    """

    where: str
    columns: Expression
    rows: Expression


_PRODUCTS = {"xegpu.dpas": ("lhs", "rhs"), "xetile.tile_mma": ("a", "b")}

_LOADS = ("xegpu.load_nd", "xetile.load_tile")

_PARTS = ("vector.shape_cast", "vector.extract", "vector.extract_strided_slice")

_UPDATES = ("xegpu.update_nd_offset", "xetile.update_tile_offset")


def unlike_products(products: Sequence[Product], arguments: Sequence[Any]) -> str | None:
    """A warning of a product whose inner sizes do not fit in a call; None if there is none.

    Sizes of which one is a multiple of the other are not reported: matrices that are stacked in one array have them.
    """
    for product in products:
        columns, rows = evaluated(product.columns, arguments), evaluated(product.rows, arguments)
        if columns and rows and max(columns, rows) % min(columns, rows):
            return (
                f"{product.where}: the left matrix is loaded from rows of {columns} elements, but the right one from "
                f"{rows} rows; out-of-bounds elements are zero, and check='bounds' finds the first load of them"
            )
    return None


def evaluated(expression: Expression | None, arguments: Sequence[Any]) -> int | None:
    """The value of an expression for the arguments of a call; None if it is not known."""
    if expression is None or isinstance(expression, int):
        return expression
    kind, *rest = expression
    if kind == "argument":
        given = arguments[rest[0]]
        return int(given) if isinstance(given, (int, np.integer)) else None
    if kind == "extent":
        shape = np.shape(arguments[rest[0]])
        return shape[rest[1]] if rest[1] < len(shape) else None
    numbers = [evaluated(e, arguments) for e in rest]
    if None in numbers or min(n for n in numbers if n is not None) < 0:
        return None
    a, b = (n for n in numbers if n is not None)
    return None if not b and ("div" in kind or "rem" in kind) else _OPERATIONS[kind](a, b)


def unaligned_surfaces(surfaces: Sequence[Surface], arguments: Sequence[Any], target: str) -> tuple[int, ...]:
    """The numbers of the arguments with surfaces that 2D block messages cannot address in a call."""
    limits = target_of(target).block2d
    if limits is None:
        return ()
    found = set()
    for surface in surfaces:
        width, rows, pitch = (evaluated(e, arguments) for e in (surface.width, surface.rows, surface.pitch))
        in_bytes = [None if n is None else n * surface.size for n in (width, pitch)]
        address = arguments[surface.argument]
        start = int(address) if isinstance(address, (int, np.integer)) else None
        if limits.surface_problem(in_bytes[0], rows, in_bytes[1], start) is not None:
            found.add(surface.argument)
    return tuple(sorted(found))
