"""Arrays in memory, and the places in them that kernels load from and store to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, memref

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.dialects.xetile.types import SHARED
from xegpu_py.ir.numbers import number_attribute
from xegpu_py.language import types
from xegpu_py.language.types import DType, dtype_of
from xegpu_py.language.values import (
    BUILDING,
    Handle,
    Number,
    Product,
    Value,
    as_index,
    constant,
    element_name,
    value_of,
)

_ATOMICS = {
    "add": ("addf", "addi", "addi"),
    "max": ("maxnumf", "maxs", "maxu"),
    "min": ("minnumf", "mins", "minu"),
    "and": ("", "andi", "andi"),
    "or": ("", "ori", "ori"),
    "xor": ("", "xori", "xori"),
    "xchg": ("assign", "assign", "assign"),
}
"""`AtomicRMWKind`s of floating-point, signed and unsigned elements, by the language's names."""


def _spelled(number: Number, element: str) -> str:
    """A number with its type, as attributes have it."""
    return str(number_attribute(mlir.Type.parse(element), number))


def _converted(value: Any, dtype: DType) -> Value:
    """A value to store as elements of a type: numbers as they fit, other types where no number is lost.

    Raises:
        TypeError: if numbers may be lost.
        OverflowError: if a number does not fit.
    """
    if isinstance(value, Product):
        value = value.value
    if not isinstance(value, Value):
        return value_of(value, dtype)
    if value.dtype != dtype and not types.holds_all(dtype, value.dtype):
        raise TypeError(f"cannot store {value.dtype} to elements of {dtype}; convert it with .to({dtype})")
    return value.to(dtype)


class Place(Handle):
    """Elements of an array that are loaded and stored together.

    Attributes:
        dtype: the type of the elements.
    """

    def __init__(self, value: mlir.Value, dtype: DType) -> None:
        super().__init__(value)
        self.dtype = dtype

    def with_ir(self, value: mlir.Value) -> Place:
        return type(self)(value, self.dtype)

    @property
    def type(self) -> xetile.Tile:
        """The type of the tile."""
        return xetile.Tile.of(self.ir)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is loaded."""
        return self.type.shape

    def _stored(self, value: Any) -> mlir.Value:
        """The SSA value to store: of the elements' type, repeated to the tile's shape.

        Raises:
            TypeError: if it has another type.
        """
        return _converted(value, self.dtype).broadcast(self.shape).ir

    def _padding(self, padding: Number | None) -> str | None:
        if padding is None:
            return None
        types.with_scalar(self.dtype, padding)
        return _spelled(padding, self.dtype.mlir)

    def _kind(self, operation: str) -> str:
        kinds = _ATOMICS[operation]
        kind = kinds[0] if self.dtype.is_float else kinds[1] if self.dtype.is_signed else kinds[2]
        if not kind:
            raise TypeError(f"atomic {operation} needs integers, not {self.dtype}")
        return kind

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} of {self.dtype}{list(self.shape)}>"


class Tile(Place):
    """A tile of a matrix in memory."""

    def load(self, padding: Number | None = None) -> Value:
        """The elements of the tile. Out-of-bounds elements are `padding`, or zero."""
        return Value(xetile.load_tile(self.ir, padding=self._padding(padding)), self.dtype)

    def store(self, value: Any) -> None:
        """Store a value. Out-of-bounds elements are not written."""
        xetile.store_tile(self._stored(value), self.ir)
        BUILDING.built()

    def atomic(self, operation: str, value: Any) -> Value:
        """Combine a value with what is in memory, atomically; gives what was there before."""
        return Value(xetile.atomic_rmw(self._kind(operation), self._stored(value), self.ir), self.dtype)

    def add(self, value: Any) -> None:
        """Add a value to what is in memory, atomically."""
        self.atomic("add", value)

    def prefetch(self) -> None:
        """Bring the tile into the cache."""
        xetile.prefetch_tile(self.ir)
        BUILDING.built()

    def advance(self, rows: int | Value = 0, columns: int | Value = 0) -> None:
        """Move the tile, in place."""
        self.ir = xetile.update_tile_offset(self.ir, [as_index(rows), as_index(columns)])


class Scattered(Place):
    """Elements of an array, each at an index of its own."""

    def _masked(self, mask: Any) -> mlir.Value | None:
        if mask is None:
            return None
        return value_of(mask).to(types.bool_).broadcast(self.shape).ir

    def load(self, mask: Any = None, padding: Number | None = None) -> Value:
        """The elements. Those whose mask bit is not set are `padding`, or zero, and are not read."""
        return Value(xetile.load(self.ir, self._masked(mask), padding=self._padding(padding)), self.dtype)

    def store(self, value: Any, mask: Any = None) -> None:
        """Store a value where the mask is set."""
        xetile.store(self._stored(value), self.ir, self._masked(mask))
        BUILDING.built()

    def atomic(self, operation: str, value: Any, mask: Any = None) -> Value:
        """Combine a value with what is in memory where the mask is set, atomically; gives what was there before."""
        made = xetile.atomic_rmw(self._kind(operation), self._stored(value), self.ir, self._masked(mask))
        return Value(made, self.dtype)

    def add(self, value: Any, mask: Any = None) -> None:
        """Add a value to what is in memory where the mask is set, atomically."""
        self.atomic("add", value, mask)

    def advance(self, by: Value | int) -> None:
        """Move on, in place: each element by its own number, or all by the same."""
        if isinstance(by, Value):
            offsets = by.to(types.index).broadcast(self.shape)
        else:
            offsets = constant(types.index, by, self.shape, self.type.wg_map)
        self.ir = xetile.update_tile_offset(self.ir, [], offsets.ir)


class Array:
    """An argument of a kernel, or a part of shared local memory: an array in memory.

    `array + indices` are pointers, as in Triton: elements counted from the array's first one.

    Attributes:
        ir: the memref.
        dtype: the type of the elements.
    """

    def __init__(self, value: mlir.Value, dtype: Any = None, shape: Sequence[int | Value] | None = None) -> None:
        BUILDING.check(value.context)
        self.ir = value
        self.dtype = types.of_mlir(str(self._type.element_type)) if dtype is None else dtype_of(dtype)
        self._extents: dict[int, Value | int] = {} if shape is None else dict(enumerate(shape))

    @property
    def _type(self) -> mlir.MemRefType:
        return mlir.MemRefType(self.ir.type)

    @property
    def _space(self) -> int:
        return 0 if self._type.memory_space is None else SHARED

    @property
    def ndim(self) -> int:
        """Its number of dimensions."""
        return int(self._type.rank)

    @property
    def shape(self) -> tuple[int | Value, ...]:
        """Its extents; one that is not known when compiling is a value of type index."""
        dynamic = mlir.ShapedType.get_dynamic_size()
        return tuple(self._extent(d) if n == dynamic else n for d, n in enumerate(self._type.shape))

    @property
    def strides(self) -> tuple[int | Value, ...]:
        """Elements from one index of each dimension to the next."""
        known, _ = self._type.get_strides_and_offset()
        unknown = mlir.ShapedType.get_dynamic_stride_or_offset()
        found: list[int | Value] = []
        for dim in reversed(range(self.ndim)):
            if known[dim] != unknown:
                found.insert(0, int(known[dim]))
            else:
                found.insert(0, _product(self.shape[dim + 1], found[0]))
        return tuple(found)

    def _extent(self, dim: int) -> Value | int:
        if dim not in self._extents:
            # At the start of the kernel, where every use of it can see it.
            with mlir.InsertionPoint.at_block_begin(self.ir.owner):
                place = arith.constant(mlir.IndexType.get(), dim)
                self._extents[dim] = Value(memref.dim(self.ir, place), types.index)
        return self._extents[dim]

    @property
    def T(self) -> Array:
        """The same array with its last two dimensions swapped: its tiles are column-major, and nothing is moved."""
        extents, strides = list(self.shape), list(self.strides)
        extents[-2:], strides[-2:] = extents[:-3:-1], strides[:-3:-1]
        unknown = mlir.ShapedType.get_dynamic_size()
        sizes, steps = ([unknown if isinstance(n, Value) else n for n in of] for of in (extents, strides))
        old = self._type
        kind = mlir.MemRefType.get(sizes, old.element_type, mlir.StridedLayoutAttr.get(0, steps), old.memory_space)
        dynamic = ([n.ir for n in of if isinstance(n, Value)] for of in (extents, strides))
        return Array(memref.reinterpret_cast(kind, self.ir, [], *dynamic, [0], sizes, steps), self.dtype, extents)

    def tile(self, shape: Sequence[int], at: Sequence[int | Value], map: WgMap | None = None) -> Tile:
        """A tile of this shape that begins at these indices. `map` says which part each subgroup works on."""
        strides = self._type.get_strides_and_offset()[0]
        order = (0, 1) if strides[-2] == 1 and strides[-1] != 1 else (1, 0)
        attr = xetile.TileAttr(wg_map=map, order=order, memory_space=self._space)
        kind = xetile.Tile(tuple(shape), self.dtype.mlir, attr)
        return Tile(xetile.init_tile(self.ir, [as_index(n) for n in at], tile=kind.to_ir()), self.dtype)

    def at(self, indices: Value, map: WgMap | None = None) -> Scattered:
        """The elements at these indices, a line or matrix of them, counted from the array's first element."""
        attr = xetile.TileAttr(wg_map=map, memory_space=self._space, scattered=True)
        kind = xetile.Tile(indices.shape, self.dtype.mlir, attr)
        made = xetile.init_tile(self.ir, [], indices=indices.to(types.index).ir, tile=kind.to_ir())
        return Scattered(made, self.dtype)

    def __add__(self, indices: Value | int) -> Pointers:
        return Pointers(self, value_of(indices, types.index))

    __radd__ = __add__

    def _place(self, key: Any) -> list[mlir.Value]:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != self.ndim:
            raise IndexError(f"an array of {self.ndim} dimensions is indexed by {self.ndim} integers, not {len(keys)}")
        return [value_of(as_index(k) if isinstance(k, int) else k, types.index).to(types.index).ir for k in keys]

    def __getitem__(self, key: Any) -> Value:
        """A single element."""
        return Value(memref.load(self.ir, self._place(key)), self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a single element."""
        given = _converted(value, self.dtype)
        if given.shape:
            raise TypeError(f"a single element cannot become {given.describe()}")
        memref.store(given.ir, self.ir, self._place(key))
        BUILDING.built()

    def __repr__(self) -> str:
        shown = ", ".join(str(n) if isinstance(n, int) else "?" for n in self.shape)
        return f"<array of {self.dtype}[{shown}]>"


class Pointers:
    """Elements of an array at given indices, as Triton's pointers: `array + indices`.

    Attributes:
        array: the array.
        indices: where from its first element on, as values of type index.
    """

    def __init__(self, array: Array, indices: Value) -> None:
        self.array, self.indices = array, indices.to(types.index)

    def __add__(self, more: Value | int) -> Pointers:
        return Pointers(self.array, self.indices + more)

    __radd__ = __add__

    def place(self) -> Scattered:
        """What loads and stores these elements."""
        indices = self.indices if self.indices.shape else self.indices.broadcast((1,))
        return self.array.at(indices)


def load(pointer: Place | Pointers, mask: Any = None, other: Number | None = None) -> Value:
    """The elements of a tile, or those that pointers lead to.

    Args:
        mask: where to read; a tile takes none, as its array bounds it.
        other: what stands where nothing is read, by default zero.

    Raises:
        TypeError: if a tile is given a mask.
    """
    if isinstance(pointer, Tile):
        if mask is not None:
            raise TypeError("a tile takes no mask: out-of-bounds elements are not read")
        return pointer.load(other)
    place = pointer.place() if isinstance(pointer, Pointers) else pointer
    assert isinstance(place, Scattered)
    found = place.load(mask, other)
    return found.reshape(pointer.indices.shape) if isinstance(pointer, Pointers) else found


def store(pointer: Place | Pointers, value: Any, mask: Any = None) -> None:
    """Store to a tile, or where pointers lead and the mask is set.

    Raises:
        TypeError: if a tile is given a mask.
    """
    if isinstance(pointer, Tile):
        if mask is not None:
            raise TypeError("a tile takes no mask: out-of-bounds elements are not written")
        return pointer.store(value)
    place = pointer.place() if isinstance(pointer, Pointers) else pointer
    assert isinstance(place, Scattered)
    return place.store(value, mask)


def _atomic(operation: str) -> Any:
    def atomic(pointer: Place | Pointers, value: Any, mask: Any = None) -> Value:
        place = pointer.place() if isinstance(pointer, Pointers) else pointer
        if isinstance(place, Tile):
            return place.atomic(operation, value)
        assert isinstance(place, Scattered)
        found = place.atomic(operation, value, mask)
        return found.reshape(pointer.indices.shape) if isinstance(pointer, Pointers) else found

    atomic.__name__ = atomic.__qualname__ = f"atomic_{operation}"
    atomic.__doc__ = f"Atomic {operation} of a value and what is in memory; gives what was there before."
    return atomic


atomic_add, atomic_max, atomic_min, atomic_and, atomic_or, atomic_xor, atomic_xchg = map(_atomic, _ATOMICS)


def _product(a: int | Value, b: int | Value) -> int | Value:
    found: int | Value = a * b
    return found


def shared(shape: Sequence[int], dtype: Any = np.float32) -> Array:
    """An array in the shared local memory of the workgroup."""
    BUILDING.check()
    element = mlir.Type.parse(element_name(dtype))
    kind = mlir.MemRefType.get(list(shape), element, memory_space=mlir.Attribute.parse(str(SHARED)))
    return Array(memref.alloc(kind, [], []), dtype)
