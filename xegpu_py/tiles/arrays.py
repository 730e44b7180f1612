"""Arrays, their tiles, and scattered elements."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, memref, scf, vector
from msgspec import Struct

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.dialects.xetile.types import SHARED
from xegpu_py.ir.builtin import number_attribute
from xegpu_py.tiles import element_types
from xegpu_py.tiles.element_types import DType, dtype_of
from xegpu_py.tiles.tile_values import Product, Value, as_index, constant, value_of
from xegpu_py.tiles.value_base import BUILDING, Handle, Number, concatenate, matrix_shape, static_shape

# Arrays in global and in shared local memory, and the pointers to their elements.


class Array:
    """An array in memory: an argument of a kernel, or an allocation in shared local memory.

    `array + indices` are pointers, as in Triton: the indices count elements from the array's first one.

    Attributes:
        ir: the memref.
        dtype: the type of the elements.
    """

    def __init__(
        self,
        value: mlir.Value,
        dtype: Any = None,
        shape: Sequence[int | Value] | None = None,
        strides: Sequence[int | Value] | None = None,
    ) -> None:
        BUILDING.check(value.context)
        self.ir = value
        self.dtype = dtype_of(str(self._type.element_type) if dtype is None else dtype)
        self._extents: dict[int, Value | int] = {} if shape is None else dict(enumerate(shape))
        self._strides = None if strides is None else tuple(strides)

    @property
    def type(self) -> DType:
        """The type of the elements, for Triton's `pointer.type.element_ty`."""
        return self.dtype

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
        """Its extents; one that is known only at run time is a value of type index."""
        dynamic = mlir.ShapedType.get_dynamic_size()
        return tuple(self._extent(d) if n == dynamic else n for d, n in enumerate(self._type.shape))

    @property
    def strides(self) -> tuple[int | Value, ...]:
        """The strides, in elements."""
        if self._strides is not None:
            return self._strides
        static_strides, _ = self._type.get_strides_and_offset()
        unknown = mlir.ShapedType.get_dynamic_stride_or_offset()
        if isinstance(self._type.layout, mlir.StridedLayoutAttr) and unknown in static_strides:
            with _beginning(self.ir):
                steps = _runtime_strides(self.ir)
            self._strides = tuple(
                Value(s, element_types.index) if n == unknown else int(n) for n, s in zip(static_strides, steps)
            )
            return self._strides
        found: list[int | Value] = []
        for dim in reversed(range(self.ndim)):
            if static_strides[dim] != unknown:
                found.insert(0, int(static_strides[dim]))
            else:
                found.insert(0, self.shape[dim + 1] * found[0])
        return tuple(found)

    def _extent(self, dim: int) -> Value | int:
        if dim not in self._extents:
            with _beginning(self.ir):
                dim_index = arith.constant(mlir.IndexType.get(), dim)
                self._extents[dim] = Value(memref.dim(self.ir, dim_index), element_types.index)
        return self._extents[dim]

    @property
    def T(self) -> Array:
        """The array with its last two dimensions swapped: its tiles are column-major, and no data moves."""
        extents, strides = list(self.shape), list(self.strides)
        extents[-2:], strides[-2:] = extents[:-3:-1], strides[:-3:-1]
        return self._recast(extents, strides)

    def tile(
        self, shape: int | Sequence[int], at: int | Value | Sequence[int | Value], map: WgMap | None = None
    ) -> Any:
        """A tile of this shape that begins at these indices.

        Args:
            shape: the tile's extents, in the array's last dimensions.
            at: an index for each dimension of the array.
            map: which part of the last two dimensions each subgroup works on.

        Raises:
            ValueError: if the numbers of dimensions do not fit.
            TypeError: if the shape is not known at compile time.
        """
        tile_shape, at = self._block(shape, at)
        if len(tile_shape) == 1:
            return self._line(tile_shape[0], at, map)
        if len(tile_shape) > 2:
            return self._stack(tile_shape, at, map)
        strides = self._type.get_strides_and_offset()[0]
        if 1 not in strides[-2:]:
            return self._strided(tile_shape, at, map, (tile_shape[0], tile_shape[1]))
        order = (0, 1) if strides[-2] == 1 and strides[-1] != 1 else (1, 0)
        attr = xetile.TileAttr(wg_map=map, order=order, memory_space=self._space)
        tile_type = xetile.Tile(tile_shape, self.dtype.memory.mlir, attr)
        return Tile(xetile.init_tile(self.ir, [as_index(n) for n in at], tile=tile_type.to_ir()), self.dtype)

    def _block(
        self, shape: int | Sequence[int], at: int | Value | Sequence[int | Value]
    ) -> tuple[tuple[int, ...], Sequence[int | Value]]:
        block_shape, at = static_shape(shape), (at,) if isinstance(at, (int, Value)) else at
        if len(at) != self.ndim or not 1 <= len(block_shape) <= self.ndim:
            raise ValueError(
                f"a tile of {len(block_shape)} dimensions at {len(at)} indices does not fit an array of "
                f"{self.ndim} dimensions"
            )
        return block_shape, at

    def _line(self, count: int, at: Sequence[int | Value], map: WgMap | None) -> LineTile | StridedTile:
        """A 1D tile: a row of a matrix, or part of a 1D array, which is viewed as a matrix of one row."""
        array: Array = self
        if self.ndim == 1:
            # A matrix of one row may have any pitch; this one is legal for 2D block messages.
            granule = 512 // self.dtype.memory.bits
            pitch = (self.shape[0] + granule - 1) // granule * granule
            array = self.view((1, *self.shape), (pitch, *self.strides))
            at = (0, *at)
        if map is not None and len(map.sg_data) == 1:
            map = WgMap((1, *map.sg_layout), (1, *map.sg_data))
        if 1 not in array._type.get_strides_and_offset()[0][-2:]:
            return array._strided((count,), at, map, (1, count))
        return LineTile(array.tile((1, count), at, map).ir, self.dtype)

    def _strided(
        self, shape: Sequence[int], at: Sequence[int | Value], map: WgMap | None, block: tuple[int, int]
    ) -> StridedTile:
        bounds = tuple(zip(self.strides, self.shape))
        return StridedTile(lambda index: self.at(index, map), self.dtype, bounds, shape, at, block)

    def _stack(self, shape: tuple[int, ...], at: Sequence[int | Value], map: WgMap | None) -> TileStack:
        leading_dims = self.ndim - len(shape)
        tiles, inside = [], []
        for block_index in np.ndindex(*shape[:-2]):
            leading = [*at[:leading_dims], *(a + p for a, p in zip(at[leading_dims:-2], block_index))]
            in_bounds: Value | bool = True
            for dim, index in enumerate(leading):
                extent = self.shape[dim]
                if dim < leading_dims or (isinstance(index, int) and isinstance(extent, int) and 0 <= index < extent):
                    continue
                leading_index = value_of(index, element_types.index).to(element_types.index)
                low, below_extent = leading_index >= 0, leading_index < extent
                in_bounds = low & below_extent if in_bounds is True else in_bounds & low & below_extent
                # The index of a tile that exists, in place of one out of bounds.
                leading[dim] = (
                    (low & below_extent).broadcast(())._selected(leading_index, constant(element_types.index, 0))
                )
            tiles.append(self.tile(shape[-2:], [*leading, *at[-2:]], map))
            inside.append(in_bounds)
        return TileStack(shape, tiles, inside)

    def view(self, shape: Sequence[int | Value], strides: Sequence[int | Value]) -> Array:
        """The array's memory from its first element on, with other extents and strides.

        Args:
            shape: the extents.
            strides: the strides, in elements.

        Raises:
            ValueError: if the numbers of extents and strides differ.
        """
        if len(shape) != len(strides):
            raise ValueError(f"an array of {len(shape)} dimensions needs as many strides, not {len(strides)}")
        return self._recast(
            *([n if isinstance(n, int) else _known_or_index(value_of(n)) for n in of] for of in (shape, strides))
        )

    def _recast(self, extents: list[int | Value], strides: list[int | Value]) -> Array:
        """The array's memory with other extents and strides, dynamic ones as values of type index."""
        unknown = mlir.ShapedType.get_dynamic_size()
        sizes, steps = ([unknown if isinstance(n, Value) else n for n in of] for of in (extents, strides))
        old_type = self._type
        memref_type = mlir.MemRefType.get(
            sizes, old_type.element_type, mlir.StridedLayoutAttr.get(0, steps), old_type.memory_space
        )
        dynamic = ([n.ir for n in of if isinstance(n, Value)] for of in (extents, strides))
        return Array(
            memref.reinterpret_cast(memref_type, self.ir, [], *dynamic, [0], sizes, steps), self.dtype, extents, strides
        )

    def at(self, indices: Value, map: WgMap | None = None) -> Scattered:
        """The elements at these indices, which count from the array's first element."""
        return _elements(self, indices, xetile.TileAttr(wg_map=map, memory_space=self._space, scattered=True))

    def __add__(self, indices: Value | int) -> Pointers:
        return Pointers(self, indices)

    __radd__ = __add__

    def _place(self, key: Any) -> list[mlir.Value]:
        """The SSA values of the indices of a single element."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != self.ndim:
            raise IndexError(f"an array of {self.ndim} dimensions is indexed by {self.ndim} integers, not {len(keys)}")
        indices = (as_index(k) for k in keys)
        return [constant(element_types.index, p).ir if isinstance(p, int) else p for p in indices]

    def __getitem__(self, key: Any) -> Value:
        """A single element."""
        return loaded(memref.load(self.ir, self._place(key)), self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a single element."""
        element = converted(value, self.dtype)
        if element.shape:
            raise TypeError(f"a single element cannot become {element.describe()}")
        memref.store(element.to(self.dtype.memory).ir, self.ir, self._place(key))
        BUILDING.built()

    def __repr__(self) -> str:
        shape_text = ", ".join(str(n) if isinstance(n, int) else "?" for n in self.shape)
        return f"<array of {self.dtype}[{shape_text}]>"


def _beginning(array: mlir.Value) -> mlir.InsertionPoint:
    """Where an array begins to exist, which dominates every use: the start of the kernel, or after a choice of one."""
    owner = array.owner
    return (
        mlir.InsertionPoint.at_block_begin(owner) if isinstance(owner, mlir.Block) else mlir.InsertionPoint.after(owner)
    )


class ArrayFrom(Array):
    """The memory of an array from one of its elements on, with extents and strides of its own.

    Where that element is may be known only at run time: tiles are gathered, unless they are blocks of a matrix whose
    alignment is known (`xetile-scattered-to-tiles`).
    """

    def __init__(
        self, array: Array, first_index: Value, shape: Sequence[int | Value], strides: Sequence[int | Value]
    ) -> None:
        super().__init__(array.ir, array.dtype)
        self._first = first_index
        self._bounds = [*zip(strides, shape)]
        if len(shape) != len(strides):
            raise ValueError(f"an array of {len(shape)} dimensions needs as many strides, not {len(strides)}")

    @property
    def ndim(self) -> int:
        return len(self._bounds)

    @property
    def shape(self) -> tuple[int | Value, ...]:
        return tuple(n for _, n in self._bounds)

    @property
    def strides(self) -> tuple[int | Value, ...]:
        return tuple(n for n, _ in self._bounds)

    def tile(
        self, shape: int | Sequence[int], at: int | Value | Sequence[int | Value], map: WgMap | None = None
    ) -> Any:
        tile_shape, at = self._block(shape, at)
        if len(tile_shape) > 2:
            return self._stack(tile_shape, at, map)
        bounds = self._bounds
        if self.ndim == 1:
            bounds, at = [(0, 1), *bounds], (0, *at)
        block = (tile_shape[0], tile_shape[1]) if len(tile_shape) == 2 else (1, tile_shape[0])
        return StridedTile(lambda index: self.at(index, map), self.dtype, bounds, tile_shape, at, block)

    def _recast(self, extents: list[int | Value], strides: list[int | Value]) -> Array:
        return ArrayFrom(Array(self.ir, self.dtype), self._first, extents, strides)

    def at(self, indices: Value, map: WgMap | None = None) -> Scattered:
        return super().at(indices + self._first, map)

    def _element(self, key: Any) -> Scattered:
        indices = [Value(i, element_types.index) for i in self._place(key)]
        return (self + sum(i * n for i, n in zip(indices, self.strides))).place()

    def __getitem__(self, key: Any) -> Value:
        return self._element(key).load().reshape(())

    def __setitem__(self, key: Any, value: Any) -> None:
        self._element(key).store(value)


def _known_or_index(n: Value) -> int | Value:
    """An extent or stride: an integer if it is a constant, else a value of type index."""
    owner = n.ir.owner
    if not isinstance(owner, mlir.Block) and owner.operation.name == "arith.constant" and n.dtype.is_integer:
        return mlir.IntegerAttr(owner.operation.attributes["value"]).value
    return n.to(element_types.index)


def _runtime_strides(array: mlir.Value) -> Sequence[mlir.Value]:
    """The strides of an array as SSA values."""
    memref_type = mlir.MemRefType(array.type)
    base = mlir.MemRefType.get([], memref_type.element_type, memory_space=memref_type.memory_space)
    results = [base, *[mlir.IndexType.get()] * (1 + 2 * memref_type.rank)]
    metadata = mlir.Operation.create("memref.extract_strided_metadata", results=results, operands=[array]).results
    return [*metadata][2 + memref_type.rank :]


def shared(shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
    """An array in the shared local memory of the workgroup."""
    BUILDING.check()
    element = dtype_of(dtype).memory.vector()
    space = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), SHARED)
    memref_type = mlir.MemRefType.get(list(static_shape(shape)), element, memory_space=space)
    return Array(memref.alloc(memref_type, [], []), dtype)


def _elements(memory: Array | Memory, indices: Value, attr: xetile.TileAttr) -> Scattered:
    tile_type = xetile.Tile(matrix_shape(indices.shape), memory.dtype.memory.mlir, attr)
    element_tile = xetile.init_tile(memory.ir, [], indices=indices.to(element_types.index).ir, tile=tile_type.to_ir())
    return Scattered(element_tile, memory.dtype, indices.shape)


class PointerType(Struct, frozen=True):
    """The type of pointers to elements of a type; `Value.to` makes pointers of it of the numbers in a table.

    Attributes:
        element_ty: the type of the elements.
    """

    element_ty: DType

    def of_number(self, address: Value) -> Pointers:
        """The pointer to the first element at an address.

        Raises:
            TypeError: if it is no single integer of 64 bits.
        """
        if address.shape or not address.dtype.is_integer or address.dtype.bits != 64:
            raise TypeError(f"a pointer is one integer of 64 bits, not {address.describe()}")
        return Pointers(Memory(address.to(element_types.int64).ir, self.element_ty), 0)


def pointer_type(element_ty: Any, address_space: int = 1) -> PointerType:
    """The type of pointers to elements of a type, by Triton's name.

    Raises:
        ValueError: for another address space than that of global memory, 1.
    """
    if address_space != 1:
        raise ValueError(f"pointers are to global memory, address space 1, not {address_space}")
    return PointerType(dtype_of(element_ty))


class Memory:
    """Memory that begins at an address, such as a number of a `PointerTable`.

    Attributes:
        ir: the address, of type i64.
        dtype: the type of the elements.
    """

    def __init__(self, address: mlir.Value, dtype: DType) -> None:
        BUILDING.check(address.context)
        self.ir, self.dtype = address, dtype

    def at(self, indices: Value, map: WgMap | None = None) -> Scattered:
        """The elements at these indices."""
        return _elements(self, indices, xetile.TileAttr(wg_map=map, scattered=True))

    def __repr__(self) -> str:
        return f"<memory of {self.dtype}>"


class Pointers:
    """Triton's pointers to elements of an array: `array + indices`.

    Attributes:
        array: the array.
        indices: where the elements are, counted from the array's first one, as values of type index.

    Raises:
        TypeError: if the indices are not integers.
    """

    def __init__(self, array: Array | Memory, indices: Value | Product | int) -> None:
        offsets = value_of(indices, element_types.index)
        if not offsets.dtype.is_integer:
            raise TypeError(f"pointers are counted in integers, not in {offsets.describe()}")
        self.array, self.indices = array, offsets.to(element_types.index)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the loaded value."""
        return self.indices.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.array.dtype

    type = dtype

    def __add__(self, offset: Value | int) -> Pointers:
        return Pointers(self.array, self.indices + offset)

    __radd__ = __add__

    def __sub__(self, less: Value | int) -> Pointers:
        return Pointers(self.array, self.indices - less)

    def __getitem__(self, key: Any) -> Pointers:
        return Pointers(self.array, self.indices[key])

    def __repr__(self) -> str:
        return f"<pointers to {self.dtype}{list(self.shape)}>"

    def place(self) -> Scattered:
        """The elements, to load and store; a scalar pointer is a line of one."""
        indices = self.indices if self.indices.shape else self.indices.broadcast((1,))
        return self.array.at(indices)


# Block tiles of arrays in memory: what `Array.tile` gives for elements that a 2D block message can move.

ATOMICS = {
    "add": ("addf", "addi", "addi"),
    "max": ("maxnumf", "maxs", "maxu"),
    "min": ("minnumf", "mins", "minu"),
    "and": ("", "andi", "andi"),
    "or": ("", "ori", "ori"),
    "xor": ("", "xori", "xori"),
    "xchg": ("assign", "assign", "assign"),
}
"""MLIR's `AtomicRMWKind`s for floating-point, signed and unsigned elements, by the language's names."""


def converted(value: Any, dtype: DType) -> Value:
    """Convert what a kernel stores to the elements' type: values as `to` does, and Python numbers, which must fit.

    Raises:
        TypeError: if it is neither a value nor a number.
        OverflowError: if a number does not fit.
    """
    return value_of(value, dtype).to(dtype)


def loaded(value: mlir.Value, dtype: DType, shape: Sequence[int] | None = None) -> Value:
    """The value that a load from memory with elements of a type gives."""
    return Value(value, dtype.memory, shape).to(dtype)


class ArrayTile(ABC):
    """A tile of an array: its elements within bounds are loaded and stored.

    Attributes:
        shape: the shape of the loaded value.
        dtype: the type of the elements.
        assignable: whether loops and branches carry it as a variable that they assign, as those of Triton's `advance`.
        handles: what moves as the tile moves.
    """

    shape: Any
    dtype: DType
    assignable = False
    handles: Sequence[Handle] = ()

    @abstractmethod
    def load(self, padding: Number | None = None) -> Value:
        """The elements of the tile. Out-of-bounds elements are `padding`, or zero."""

    @abstractmethod
    def store(self, value: Any) -> None:
        """Store a value. Out-of-bounds elements are not written."""

    @abstractmethod
    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        """Combine a value with memory atomically; gives the old elements, of out-of-bounds ones 0.

        Args:
            operation: a name of `ATOMICS`.
            value: the operand; for "xchg" the new elements.
            expected: what memory must hold for the exchange (`cmp` of `atomic_cas`).
        """

    @abstractmethod
    def advance(self, *by: Any, **named: Any) -> None:
        """Move the tile, in place."""

    @abstractmethod
    def copy(self) -> ArrayTile:
        """Another tile of the same elements, which moves on its own."""

    def add(self, value: Any) -> None:
        """Add a value to memory atomically."""
        self.atomic("add", value)

    def prefetch(self) -> None:  # noqa: B027
        """Bring the tile into the cache. Only blocks can be prefetched; other tiles are not."""

    def __repr__(self) -> str:
        return f"<tile of {self.dtype}{list(self.shape)}>"


def assignable(tile: ArrayTile) -> ArrayTile:
    """The tile, which loops and branches carry as a variable that they assign."""
    tile.assignable = True
    return tile


class Place(Handle):
    """Elements in memory that one message loads or stores: a tile of XeTile.

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
        """The shape of the loaded value."""
        return self.type.shape

    def _stored(self, value: Any) -> mlir.Value:
        """The SSA value to store: converted to the elements' type, repeated to the tile's shape."""
        return converted(value, self.dtype).broadcast(self.shape).to(self.dtype.memory).ir

    def _padding(self, padding: Number | None) -> str | None:
        """The attribute with the number that masked and out-of-bounds elements are read as.

        Raises:
            TypeError: if it is not a number that is known at compile time.
            OverflowError: if it does not fit the type.
        """
        if padding is None:
            return None
        if not isinstance(padding, (bool, int, float, np.generic)):
            raise TypeError("the padding of a tile is a number that is known at compile time")
        return str(number_attribute(self.dtype.memory.vector(), self.dtype.signless(padding)))

    def _kind(self, operation: str) -> str:
        """MLIR's `AtomicRMWKind` of an atomic operation on these elements."""
        if self.dtype.kind == "bool":
            raise TypeError(f"atomic {operation} needs numbers, not {self.dtype}")
        kind_names = ATOMICS[operation]
        kind_name = kind_names[0] if self.dtype.is_float else kind_names[1] if self.dtype.is_signed else kind_names[2]
        if not kind_name:
            raise TypeError(f"atomic {operation} needs integers, not {self.dtype}")
        return kind_name


class Tile(Place, ArrayTile):
    """A tile of a matrix in memory."""

    def load(self, padding: Number | None = None) -> Value:
        return loaded(xetile.load_tile(self.ir, padding=self._padding(padding)), self.dtype)

    def store(self, value: Any) -> None:
        xetile.store_tile(self._stored(value), self.ir)
        BUILDING.built()

    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        compared = None if expected is None else self._stored(expected)
        old_elements = xetile.atomic_rmw(self._kind(operation), self._stored(value), self.ir, None, compared)
        return Value(old_elements, self.dtype).reshape(self.shape)

    def prefetch(self) -> None:
        xetile.prefetch_tile(self.ir)
        BUILDING.built()

    @property
    def handles(self) -> tuple[Handle, ...]:  # type: ignore[override]
        return (self,)

    def copy(self) -> Tile:
        return type(self)(self.ir, self.dtype)

    def advance(self, rows: int | Value = 0, columns: int | Value = 0) -> None:
        """Move the tile, in place."""
        self.ir = xetile.update_tile_offset(self.ir, [as_index(rows), as_index(columns)])


class LineTile(Tile):
    """A 1D tile: in XeTile, a matrix of one row."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape[1:]

    def load(self, padding: Number | None = None) -> Value:
        return super().load(padding).reshape(self.shape)

    def advance(self, by: int | Value = 0) -> None:  # type: ignore[override]
        """Move the tile, in place."""
        super().advance(columns=by)

    def _stored(self, value: Any) -> mlir.Value:
        full_line = converted(value, self.dtype).broadcast(self.shape).reshape(self.type.shape)
        return full_line.to(self.dtype.memory).ir


class TileStack(ArrayTile):
    """A tile of more than two dimensions: a 2D tile for each index of the leading dimensions.

    Attributes:
        tiles: the 2D tiles, in row-major order of the leading dimensions.
        inside: for each 2D tile, whether its indices in the leading dimensions are within bounds.
    """

    def __init__(self, shape: Sequence[int], tiles: Sequence[Tile], inside: Sequence[Value | bool]) -> None:
        self.shape, self.tiles, self.inside = tuple(shape), tuple(tiles), tuple(inside)
        self.handles = self.tiles
        self.dtype = tiles[0].dtype

    def load(self, padding: Number | None = None) -> Value:
        matrices = []
        for tile, inside in zip(self.tiles, self.inside):
            matrix = tile.load(padding)
            if isinstance(inside, Value):
                outside = constant(self.dtype, 0 if padding is None else padding, matrix.shape)
                matrix = inside.broadcast(matrix.shape)._selected(matrix, outside)
            matrices.append(matrix.expand_dims(0))
        return concatenate(matrices, 0).reshape(self.shape)

    def store(self, value: Any) -> None:
        self._each(lambda tile, matrix: tile.store(matrix), value)

    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        values = [value] if expected is None else [value, expected]
        old_matrices = self._each(lambda tile, *parts: tile.atomic(operation, *parts), *values, results=True)
        return concatenate(old_matrices, 0).reshape(self.shape)

    def _each(self, act: Callable[..., Any], *values: Any, results: bool = False) -> list[Value]:
        """Do `act` with each 2D tile that is within bounds and its parts of values.

        Returns:
            With `results`, what `act` gives for each tile, and zeros for tiles out of bounds.
        """
        operands = [converted(v, self.dtype).broadcast(self.shape).reshape((-1, *self.shape[-2:])) for v in values]
        found = []
        for i, (tile, inside) in enumerate(zip(self.tiles, self.inside)):
            matrices = [v[i] for v in operands]
            if not isinstance(inside, Value):
                found.append(act(tile, *matrices))
                continue
            branch = scf.IfOp(inside.ir, [matrices[0].ir.type] if results else [], has_else=results)
            with mlir.InsertionPoint(branch.then_block):
                result = act(tile, *matrices)
                scf.YieldOp([result.ir] if results else [])
            if results:
                with mlir.InsertionPoint(branch.else_block):
                    scf.YieldOp([matrices[0]._number(0).ir])
                found.append(Value(branch.results[0], self.dtype, matrices[0].shape))
            BUILDING.built()
        return [result_matrix.expand_dims(0) for result_matrix in found] if results else []

    def prefetch(self) -> None:
        for tile in self.tiles:
            tile.prefetch()

    def copy(self) -> TileStack:
        return TileStack(self.shape, [tile.copy() for tile in self.tiles], self.inside)

    def advance(self, rows: int | Value = 0, columns: int | Value = 0) -> None:
        """Move the tile along its last two dimensions, in place."""
        for tile in self.tiles:
            tile.advance(rows, columns)


# Elements in memory that are gathered and scattered, each at its own index, under masks.


class Scattered(Place):
    """Elements of an array, each at its own index: a gather and a scatter.

    Attributes:
        shape: the shape of the indices, of any number of dimensions.
    """

    def __init__(self, value: mlir.Value, dtype: DType, shape: Sequence[int] | None = None) -> None:
        super().__init__(value, dtype)
        self._shape = self.type.shape if shape is None else tuple(shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def with_ir(self, value: mlir.Value) -> Scattered:
        return Scattered(value, self.dtype, self._shape)

    def _masked(self, mask: Any) -> mlir.Value | None:
        """The SSA value of a mask in the shape of the indices."""
        return None if mask is None else value_of(mask).to(element_types.bool_).broadcast(self.shape).ir

    def load(self, mask: Any = None, padding: Any = None) -> Value:
        """The elements. Masked elements are not read: they are `padding`, a number or a value, or zero."""
        if isinstance(padding, (Value, Product)):
            elements, bits = self.load(mask), self._masked(mask)
            fill = converted(padding, self.dtype).broadcast(self.shape)
            return elements if bits is None else Value(bits, element_types.bool_, self.shape)._selected(elements, fill)
        return loaded(xetile.load(self.ir, self._masked(mask), padding=self._padding(padding)), self.dtype, self.shape)

    def store(self, value: Any, mask: Any = None) -> None:
        """Store a value where the mask is set."""
        xetile.store(self._stored(value), self.ir, self._masked(mask))
        BUILDING.built()

    def atomic(self, operation: str, value: Any, mask: Any = None, expected: Any = None) -> Value:
        """Combine a value with memory atomically where the mask is set; gives the old elements. See `Block.atomic`."""
        compared = None if expected is None else self._stored(expected)
        old_elements = xetile.atomic_rmw(
            self._kind(operation), self._stored(value), self.ir, self._masked(mask), compared
        )
        return Value(old_elements, self.dtype, self.shape)

    def add(self, value: Any, mask: Any = None) -> None:
        """Add a value to memory atomically where the mask is set."""
        self.atomic("add", value, mask)

    def advance(self, by: Value | int) -> None:
        """Add to the indices, in place: a number for each element, or the same for all."""
        if isinstance(by, Value):
            offsets = by.to(element_types.index).broadcast(self.shape)
        else:
            offsets = constant(element_types.index, by, self.shape, self.type.wg_map)
        self.ir = xetile.update_tile_offset(self.ir, [], offsets.ir)


class MovingIndex(Handle):
    """An index that `advance` moves."""

    def with_ir(self, value: mlir.Value) -> MovingIndex:
        return MovingIndex(value)


class StridedTile(ArrayTile):
    """A tile of a matrix with unit stride in neither rows nor columns: its elements are gathered and scattered.

    Attributes:
        positions: the indices of the first row and the first column.
    """

    def __init__(
        self,
        elements: Callable[[Value], Scattered],
        dtype: DType,
        bounds: Sequence[tuple[int | Value, int | Value]],
        shape: Sequence[int],
        at: Sequence[int | Value],
        block: tuple[int, int],
    ) -> None:
        """Make one.

        Args:
            elements: the array's elements at indices that count from its first one.
            bounds: the stride and the extent of each dimension of the array.
            at: an index for each dimension of the array.
            block: the tile's rows and columns.
        """
        self.shape, self.dtype = tuple(shape), dtype
        self._at, self._bounds, self._lead, self._block = elements, tuple(bounds), tuple(at[:-2]), block
        self.positions = self.handles = tuple(
            MovingIndex(value_of(n, element_types.index).to(element_types.index).ir) for n in at[-2:]
        )

    def _elements(self) -> tuple[Scattered, Value]:
        """The elements, and which of them are within bounds."""
        shape, inside = self._block, None
        index = constant(element_types.index, 0, shape)
        coordinates: list[int | Value] = [*self._lead]
        for dim, position in enumerate(self.positions):
            line = Value(vector.step(element_types.index.vector((shape[dim],))), element_types.index)
            line_index = line.reshape((-1, 1) if dim == 0 else (1, -1)).broadcast(shape)
            coordinates.append(line_index + Value(position.ir, element_types.index))
        for coordinate, (stride, extent) in zip(coordinates, self._bounds):
            index_value = value_of(coordinate, element_types.index)
            index = index + index_value * stride
            in_bounds = ((index_value >= 0) & (index_value < extent)).broadcast(shape)
            inside = in_bounds if inside is None else inside & in_bounds
        assert inside is not None
        return self._at(index), inside

    def load(self, padding: Number | None = None) -> Value:
        elements, inside = self._elements()
        return elements.load(inside, padding).reshape(self.shape)

    def store(self, value: Any) -> None:
        elements, inside = self._elements()
        elements.store(self._matrix(value), inside)

    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        elements, inside = self._elements()
        compared = None if expected is None else self._matrix(expected)
        return elements.atomic(operation, self._matrix(value), inside, compared).reshape(self.shape)

    def copy(self) -> StridedTile:
        duplicate = copy.copy(self)
        duplicate.positions = duplicate.handles = tuple(MovingIndex(position.ir) for position in self.positions)
        return duplicate

    def advance(self, *by: int | Value, **named: int | Value) -> None:
        """Move the tile, in place: by `rows` and `columns`, or a 1D tile `by` elements.

        Raises:
            TypeError: if there are more steps, or other names.
        """
        names = ("by",) if len(self.shape) == 1 else ("rows", "columns")
        steps = dict(zip(names, by)) | named
        if len(by) + len(named) > len(steps) or not steps.keys() <= set(names):
            raise TypeError(f"a tile of {len(self.shape)} dimensions is advanced by {' and '.join(map(repr, names))}")
        for name, position in zip(names, self.positions[-len(names) :]):
            position.ir = (Value(position.ir, element_types.index) + steps.get(name, 0)).ir

    def _matrix(self, value: Any) -> Value:
        """A value to store, in the shape of the gathered elements."""
        return converted(value, self.dtype).broadcast(self.shape).reshape(self._block)
