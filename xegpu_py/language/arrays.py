"""Arrays in global and in shared local memory, and the pointers to their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, memref

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.dialects.xetile.types import SHARED
from xegpu_py.language import types
from xegpu_py.language.held import BUILDING, matrix_shape, static_shape
from xegpu_py.language.scattered import Scattered, StridedTile
from xegpu_py.language.tiles import LineTile, Tile, TileStack, converted, loaded
from xegpu_py.language.types import DType, dtype_of
from xegpu_py.language.values import Product, Value, as_index, constant, value_of


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
        known, _ = self._type.get_strides_and_offset()
        unknown = mlir.ShapedType.get_dynamic_stride_or_offset()
        if isinstance(self._type.layout, mlir.StridedLayoutAttr) and unknown in known:
            # At the start of the kernel, which dominates every use.
            with mlir.InsertionPoint.at_block_begin(self.ir.owner):
                steps = _runtime_strides(self.ir)
            self._strides = tuple(Value(s, types.index) if n == unknown else int(n) for n, s in zip(known, steps))
            return self._strides
        found: list[int | Value] = []
        for dim in reversed(range(self.ndim)):
            if known[dim] != unknown:
                found.insert(0, int(known[dim]))
            else:
                found.insert(0, self.shape[dim + 1] * found[0])
        return tuple(found)

    def _extent(self, dim: int) -> Value | int:
        if dim not in self._extents:
            # At the start of the kernel, which dominates every use.
            with mlir.InsertionPoint.at_block_begin(self.ir.owner):
                place = arith.constant(mlir.IndexType.get(), dim)
                self._extents[dim] = Value(memref.dim(self.ir, place), types.index)
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
        wanted, at = static_shape(shape), (at,) if isinstance(at, (int, Value)) else at
        if len(at) != self.ndim or not 1 <= len(wanted) <= self.ndim:
            raise ValueError(
                f"a tile of {len(wanted)} dimensions at {len(at)} indices does not fit an array of "
                f"{self.ndim} dimensions"
            )
        if len(wanted) == 1:
            return self._line(wanted[0], at, map)
        if len(wanted) > 2:
            return self._stack(wanted, at, map)
        strides = self._type.get_strides_and_offset()[0]
        if 1 not in strides[-2:]:
            return self._strided(wanted, at, map, (wanted[0], wanted[1]))
        order = (0, 1) if strides[-2] == 1 and strides[-1] != 1 else (1, 0)
        attr = xetile.TileAttr(wg_map=map, order=order, memory_space=self._space)
        kind = xetile.Tile(wanted, self.dtype.memory.mlir, attr)
        return Tile(xetile.init_tile(self.ir, [as_index(n) for n in at], tile=kind.to_ir()), self.dtype)

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
        before = self.ndim - len(shape)
        tiles, inside = [], []
        for place in np.ndindex(*shape[:-2]):
            leading = [*at[:before], *(a + p for a, p in zip(at[before:-2], place))]
            within: Value | bool = True
            for dim, index in enumerate(leading):
                extent = self.shape[dim]
                if dim < before or (isinstance(index, int) and isinstance(extent, int) and 0 <= index < extent):
                    continue
                given = value_of(index, types.index).to(types.index)
                low, below = given >= 0, given < extent
                within = low & below if within is True else within & low & below
                # The index of a tile that exists, in place of one out of bounds.
                leading[dim] = (low & below).broadcast(())._selected(given, constant(types.index, 0))
            tiles.append(self.tile(shape[-2:], [*leading, *at[-2:]], map))
            inside.append(within)
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
        old = self._type
        kind = mlir.MemRefType.get(sizes, old.element_type, mlir.StridedLayoutAttr.get(0, steps), old.memory_space)
        dynamic = ([n.ir for n in of if isinstance(n, Value)] for of in (extents, strides))
        return Array(
            memref.reinterpret_cast(kind, self.ir, [], *dynamic, [0], sizes, steps), self.dtype, extents, strides
        )

    def at(self, indices: Value, map: WgMap | None = None) -> Scattered:
        """The elements at these indices, which count from the array's first element."""
        attr = xetile.TileAttr(wg_map=map, memory_space=self._space, scattered=True)
        kind = xetile.Tile(matrix_shape(indices.shape), self.dtype.memory.mlir, attr)
        made = xetile.init_tile(self.ir, [], indices=indices.to(types.index).ir, tile=kind.to_ir())
        return Scattered(made, self.dtype, indices.shape)

    def __add__(self, indices: Value | int) -> Pointers:
        return Pointers(self, indices)

    __radd__ = __add__

    def _place(self, key: Any) -> list[mlir.Value]:
        """The SSA values of the indices of a single element."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != self.ndim:
            raise IndexError(f"an array of {self.ndim} dimensions is indexed by {self.ndim} integers, not {len(keys)}")
        places = (as_index(k) for k in keys)
        return [constant(types.index, p).ir if isinstance(p, int) else p for p in places]

    def __getitem__(self, key: Any) -> Value:
        """A single element."""
        return loaded(memref.load(self.ir, self._place(key)), self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a single element."""
        given = converted(value, self.dtype)
        if given.shape:
            raise TypeError(f"a single element cannot become {given.describe()}")
        memref.store(given.to(self.dtype.memory).ir, self.ir, self._place(key))
        BUILDING.built()

    def __repr__(self) -> str:
        shown = ", ".join(str(n) if isinstance(n, int) else "?" for n in self.shape)
        return f"<array of {self.dtype}[{shown}]>"


def _known_or_index(n: Value) -> int | Value:
    """An extent or stride: an integer if it is a constant, else a value of type index."""
    owner = n.ir.owner
    if not isinstance(owner, mlir.Block) and owner.operation.name == "arith.constant" and n.dtype.is_integer:
        return mlir.IntegerAttr(owner.operation.attributes["value"]).value
    return n.to(types.index)


def _runtime_strides(array: mlir.Value) -> Sequence[mlir.Value]:
    """The strides of an array as SSA values."""
    kind = mlir.MemRefType(array.type)
    base = mlir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
    results = [base, *[mlir.IndexType.get()] * (1 + 2 * kind.rank)]
    found = mlir.Operation.create("memref.extract_strided_metadata", results=results, operands=[array]).results
    return [*found][2 + kind.rank :]


def shared(shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
    """An array in the shared local memory of the workgroup."""
    BUILDING.check()
    element = mlir.Type.parse(dtype_of(dtype).memory.mlir)
    kind = mlir.MemRefType.get(list(static_shape(shape)), element, memory_space=mlir.Attribute.parse(str(SHARED)))
    return Array(memref.alloc(kind, [], []), dtype)


class Pointers:
    """Triton's pointers to elements of an array: `array + indices`.

    Attributes:
        array: the array.
        indices: where the elements are, counted from the array's first one, as values of type index.

    Raises:
        TypeError: if the indices are not integers.
    """

    def __init__(self, array: Array, indices: Value | Product | int) -> None:
        places = value_of(indices, types.index)
        if not places.dtype.is_integer:
            raise TypeError(f"pointers are counted in integers, not in {places.describe()}")
        self.array, self.indices = array, places.to(types.index)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the loaded value."""
        return self.indices.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.array.dtype

    type = dtype

    def __add__(self, more: Value | int) -> Pointers:
        return Pointers(self.array, self.indices + more)

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
