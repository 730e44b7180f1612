"""Arrays in memory, and the places in them that kernels load from and store to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, memref, scf, vector

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.dialects.xetile.types import SHARED
from xegpu_py.ir.numbers import number_attribute
from xegpu_py.language import types
from xegpu_py.language.held import BUILDING, Handle, Number, matrix_shape, static_shape
from xegpu_py.language.shapes import concatenate
from xegpu_py.language.types import DType, dtype_of
from xegpu_py.language.values import Product, Value, as_index, constant, value_of

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
    """A value to store as elements of a type: values are converted as by `to`, and Python numbers must fit.

    Raises:
        TypeError: if it is neither value nor number.
        OverflowError: if a number does not fit.
    """
    if isinstance(value, Product):
        value = value.value
    return value.to(dtype) if isinstance(value, Value) else value_of(value, dtype)


def _loaded(value: mlir.Value, dtype: DType, shape: Sequence[int] | None = None) -> Value:
    """What has been read from memory that holds elements of a type."""
    return Value(value, dtype.memory, shape).to(dtype)


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
        """The SSA value to store: converted to the elements' type, repeated to the tile's shape."""
        return _converted(value, self.dtype).broadcast(self.shape).to(self.dtype.memory).ir

    def _padding(self, padding: Number | None) -> str | None:
        """A number as the attribute of what stands where nothing is read.

        Raises:
            TypeError: if it is no number that is known as the kernel is compiled.
            OverflowError: if it does not fit the type.
        """
        if padding is None:
            return None
        if not isinstance(padding, (bool, int, float, np.generic)):
            raise TypeError("the padding of a tile is a number that is known as the kernel is compiled")
        return _spelled(self.dtype.signless(padding), self.dtype.memory.mlir)

    def _kind(self, operation: str) -> str:
        if self.dtype.kind == "bool":
            raise TypeError(f"atomic {operation} needs numbers, not {self.dtype}")
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
        return _loaded(xetile.load_tile(self.ir, padding=self._padding(padding)), self.dtype)

    def store(self, value: Any) -> None:
        """Store a value. Out-of-bounds elements are not written."""
        xetile.store_tile(self._stored(value), self.ir)
        BUILDING.built()

    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        """Combine a value with what is in memory, atomically; gives what was there before. See `atomic_cas`."""
        wanted = None if expected is None else self._stored(expected)
        made = xetile.atomic_rmw(self._kind(operation), self._stored(value), self.ir, None, wanted)
        return Value(made, self.dtype).reshape(self.shape)

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


class LineTile(Tile):
    """A tile of a line in memory, which is a matrix of one row."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape[1:]

    def load(self, padding: Number | None = None) -> Value:
        return super().load(padding).reshape(self.shape)

    def advance(self, by: int | Value = 0) -> None:  # type: ignore[override]
        """Move the tile, in place."""
        super().advance(columns=by)

    def _stored(self, value: Any) -> mlir.Value:
        whole = _converted(value, self.dtype).broadcast(self.shape).reshape(self.type.shape)
        return whole.to(self.dtype.memory).ir


class TileStack:
    """A tile of more than two dimensions: tiles of matrices, one for each place in the leading dimensions.

    Attributes:
        shape: the shape of what is loaded.
        tiles: the tiles, in row-major order of the leading dimensions.
        inside: for each tile whether it lies inside the array, as far as the leading dimensions say.
    """

    def __init__(self, shape: Sequence[int], tiles: Sequence[Tile], inside: Sequence[Value | bool]) -> None:
        self.shape, self.tiles, self.inside = tuple(shape), tuple(tiles), tuple(inside)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.tiles[0].dtype

    def load(self, padding: Number | None = None) -> Value:
        """The elements of the tile. Out-of-bounds elements are `padding`, or zero."""
        found = []
        for tile, inside in zip(self.tiles, self.inside):
            one = tile.load(padding)
            if isinstance(inside, Value):
                outside = constant(self.dtype, 0 if padding is None else padding, one.shape)
                one = inside.broadcast(one.shape)._selected(one, outside)
            found.append(one.expand_dims(0))
        return concatenate(found, 0).reshape(self.shape)

    def store(self, value: Any) -> None:
        """Store a value. Out-of-bounds elements are not written."""
        self._each(value, lambda tile, part: tile.store(part))

    def add(self, value: Any) -> None:
        """Add a value to what is in memory, atomically."""
        self._each(value, lambda tile, part: tile.add(part))

    def _each(self, value: Any, act: Callable[[Tile, Value], None]) -> None:
        given = _converted(value, self.dtype).broadcast(self.shape).reshape((-1, *self.shape[-2:]))
        for i, (tile, inside) in enumerate(zip(self.tiles, self.inside)):
            part = given[i]
            if not isinstance(inside, Value):
                act(tile, part)
                continue
            branch = scf.IfOp(inside.ir)
            with mlir.InsertionPoint(branch.then_block):
                act(tile, part)
                scf.YieldOp([])
            BUILDING.built()

    def prefetch(self) -> None:
        """Bring the tile into the cache."""
        for tile in self.tiles:
            tile.prefetch()

    def advance(self, rows: int | Value = 0, columns: int | Value = 0) -> None:
        """Move the tile along its last two dimensions, in place."""
        for tile in self.tiles:
            tile.advance(rows, columns)

    def __repr__(self) -> str:
        return f"<tile of {self.dtype}{list(self.shape)}>"


class Position(Handle):
    """An index that `advance` moves."""

    def with_ir(self, value: mlir.Value) -> Position:
        return Position(value)


class StridedTile:
    """A tile of a matrix of which neither rows nor columns lie side by side in memory: its elements are gathered.

    Attributes:
        shape: the shape of what is loaded.
        positions: the first row and the first column.
    """

    def __init__(
        self,
        array: Array,
        shape: Sequence[int],
        at: Sequence[int | Value],
        map: WgMap | None,
        block: tuple[int, int],
    ) -> None:
        """Make one.

        Args:
            at: an index for each dimension of the array.
            map: which part each subgroup works on.
            block: the tile's rows and columns.
        """
        self.shape = tuple(shape)
        self._array, self._lead, self._map, self._block = array, tuple(at[:-2]), map, block
        self.positions = tuple(Position(value_of(n, types.index).to(types.index).ir) for n in at[-2:])

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._array.dtype

    def _elements(self) -> tuple[Scattered, Value]:
        """The elements, and which of them lie inside the array."""
        shape, inside = self._block, None
        index = constant(types.index, 0, shape)
        places: list[int | Value] = [*self._lead]
        for dim, position in enumerate(self.positions):
            line = Value(vector.step(mlir.Type.parse(f"vector<{shape[dim]}xindex>")), types.index)
            along = line.reshape((-1, 1) if dim == 0 else (1, -1)).broadcast(shape)
            places.append(along + Value(position.ir, types.index))
        for place, stride, extent in zip(places, self._array.strides, self._array.shape):
            here = value_of(place, types.index)
            index = index + here * stride
            within = ((here >= 0) & (here < extent)).broadcast(shape)
            inside = within if inside is None else inside & within
        assert inside is not None
        return self._array.at(index, self._map), inside

    def load(self, padding: Number | None = None) -> Value:
        """The elements of the tile. Out-of-bounds elements are `padding`, or zero."""
        place, inside = self._elements()
        return place.load(inside, padding).reshape(self.shape)

    def store(self, value: Any) -> None:
        """Store a value. Out-of-bounds elements are not written."""
        place, inside = self._elements()
        place.store(self._matrix(value), inside)

    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        """Combine a value with what is in memory, atomically; gives what was there before. See `atomic_cas`."""
        place, inside = self._elements()
        wanted = None if expected is None else self._matrix(expected)
        return place.atomic(operation, self._matrix(value), inside, wanted).reshape(self.shape)

    def add(self, value: Any) -> None:
        """Add a value to what is in memory, atomically."""
        self.atomic("add", value)

    def prefetch(self) -> None:
        """Nothing: there is no block that a message could bring into the cache."""

    def advance(self, *by: int | Value, **named: int | Value) -> None:
        """Move the tile, in place: by rows and columns, or a line by elements."""
        if len(self.shape) == 1:
            ways = [0, *by, *named.values()]
        else:
            ways = [*by, *(named[n] for n in ("rows", "columns")[len(by) :] if n in named)]
            ways = [named.get("rows", 0), named.get("columns", 0)] if not by else [*ways, 0][:2]
        for position, step in zip(self.positions, ways):
            position.ir = (Value(position.ir, types.index) + step).ir

    def _matrix(self, value: Any) -> Value:
        return _converted(value, self.dtype).broadcast(self.shape).reshape(self._block)

    def __repr__(self) -> str:
        return f"<tile of {self.dtype}{list(self.shape)}>"


class Scattered(Place):
    """Elements of an array, each at an index of its own.

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
        if mask is None:
            return None
        return value_of(mask).to(types.bool_).broadcast(self.shape).ir

    def load(self, mask: Any = None, padding: Any = None) -> Value:
        """The elements. Those whose mask bit is not set are not read: they are `padding`, number or value, or zero."""
        if isinstance(padding, (Value, Product)):
            found, bits = self.load(mask), self._masked(mask)
            other = _converted(padding, self.dtype).broadcast(self.shape)
            return found if bits is None else Value(bits, types.bool_, self.shape)._selected(found, other)
        made = xetile.load(self.ir, self._masked(mask), padding=self._padding(padding))
        return _loaded(made, self.dtype, self.shape)

    def store(self, value: Any, mask: Any = None) -> None:
        """Store a value where the mask is set."""
        xetile.store(self._stored(value), self.ir, self._masked(mask))
        BUILDING.built()

    def atomic(self, operation: str, value: Any, mask: Any = None, expected: Any = None) -> Value:
        """Combine a value with what is in memory where the mask is set, atomically; gives what was there before."""
        wanted = None if expected is None else self._stored(expected)
        made = xetile.atomic_rmw(self._kind(operation), self._stored(value), self.ir, self._masked(mask), wanted)
        return Value(made, self.dtype, self.shape)

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

    def __init__(
        self,
        value: mlir.Value,
        dtype: Any = None,
        shape: Sequence[int | Value] | None = None,
        strides: Sequence[int | Value] | None = None,
    ) -> None:
        BUILDING.check(value.context)
        self.ir = value
        self.dtype = types.of_mlir(str(self._type.element_type)) if dtype is None else dtype_of(dtype)
        self._extents: dict[int, Value | int] = {} if shape is None else dict(enumerate(shape))
        self._strides = None if strides is None else tuple(strides)

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
        if self._strides is not None:
            return self._strides
        known, _ = self._type.get_strides_and_offset()
        unknown = mlir.ShapedType.get_dynamic_stride_or_offset()
        if isinstance(self._type.layout, mlir.StridedLayoutAttr) and unknown in known:
            # At the start of the kernel, where every use of them can see them.
            with mlir.InsertionPoint.at_block_begin(self.ir.owner):
                *_, steps = _metadata(self.ir)
            self._strides = tuple(Value(s, types.index) if n == unknown else int(n) for n, s in zip(known, steps))
            return self._strides
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
        return self._recast(extents, strides)

    def tile(
        self, shape: int | Sequence[int], at: int | Value | Sequence[int | Value], map: WgMap | None = None
    ) -> Any:
        """A tile of this shape that begins at these indices. `map` says which part each subgroup works on.

        Args:
            shape: of any number of dimensions, at most the array's: those that are left out are the first ones.
            at: an index for each dimension of the array.
            map: which part of a matrix, the last two dimensions, each subgroup works on.

        Raises:
            ValueError: if the numbers of dimensions do not fit.
            TypeError: if the shape is not known as the kernel is compiled.
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
            return StridedTile(self, wanted, at, map, (wanted[0], wanted[1]))
        order = (0, 1) if strides[-2] == 1 and strides[-1] != 1 else (1, 0)
        attr = xetile.TileAttr(wg_map=map, order=order, memory_space=self._space)
        kind = xetile.Tile(wanted, self.dtype.memory.mlir, attr)
        return Tile(xetile.init_tile(self.ir, [as_index(n) for n in at], tile=kind.to_ir()), self.dtype)

    def _line(self, count: int, at: Sequence[int | Value], map: WgMap | None) -> LineTile | StridedTile:
        """A tile of one row: of a matrix, or of a line as the matrix of one row."""
        array: Array = self
        if self.ndim == 1:
            # The pitch of a matrix of one row may be any: one that 2D block messages can have.
            granule = 512 // self.dtype.memory.bits
            pitch = _product(_sum(self.shape[0], granule - 1) // granule, granule)
            array = self.view((1, *self.shape), (pitch, *self.strides))
            at = (0, *at)
        if map is not None and len(map.sg_data) == 1:
            map = WgMap((1, *map.sg_layout), (1, *map.sg_data))
        if 1 not in array._type.get_strides_and_offset()[0][-2:]:
            return StridedTile(array, (count,), at, map, (1, count))
        return LineTile(array.tile((1, count), at, map).ir, self.dtype)

    def _stack(self, shape: tuple[int, ...], at: Sequence[int | Value], map: WgMap | None) -> TileStack:
        before = self.ndim - len(shape)
        tiles, inside = [], []
        for place in np.ndindex(*shape[:-2]):
            leading = [*at[:before], *(_sum(a, p) for a, p in zip(at[before:-2], place))]
            within: Value | bool = True
            for dim, index in enumerate(leading):
                extent = self.shape[dim]
                if dim < before or (isinstance(index, int) and isinstance(extent, int) and 0 <= index < extent):
                    continue
                given = value_of(index, types.index).to(types.index)
                low, below = given >= 0, given < extent
                within = low & below if within is True else within & low & below
                # What is read in place of what does not exist.
                leading[dim] = (low & below).broadcast(())._selected(given, constant(types.index, 0))
            tiles.append(self.tile(shape[-2:], [*leading, *at[-2:]], map))
            inside.append(within)
        return TileStack(shape, tiles, inside)

    def view(self, shape: Sequence[int | Value], strides: Sequence[int | Value]) -> Array:
        """The memory of the array, from its first element on, with other extents and strides.

        Args:
            shape: the extents.
            strides: elements from one index of each dimension to the next.

        Raises:
            ValueError: if there are not as many of both.
        """
        if len(shape) != len(strides):
            raise ValueError(f"an array of {len(shape)} dimensions needs as many strides, not {len(strides)}")
        extents: list[int | Value] = [n if isinstance(n, int) else value_of(n).to(types.index) for n in shape]
        steps: list[int | Value] = [n if isinstance(n, int) else value_of(n).to(types.index) for n in strides]
        return self._recast(extents, steps)

    def _recast(self, extents: list[int | Value], strides: list[int | Value]) -> Array:
        unknown = mlir.ShapedType.get_dynamic_size()
        sizes, steps = ([unknown if isinstance(n, Value) else n for n in of] for of in (extents, strides))
        old = self._type
        kind = mlir.MemRefType.get(sizes, old.element_type, mlir.StridedLayoutAttr.get(0, steps), old.memory_space)
        dynamic = ([n.ir for n in of if isinstance(n, Value)] for of in (extents, strides))
        return Array(
            memref.reinterpret_cast(kind, self.ir, [], *dynamic, [0], sizes, steps), self.dtype, extents, strides
        )

    def at(self, indices: Value, map: WgMap | None = None) -> Scattered:
        """The elements at these indices, a line or matrix of them, counted from the array's first element."""
        attr = xetile.TileAttr(wg_map=map, memory_space=self._space, scattered=True)
        kind = xetile.Tile(matrix_shape(indices.shape), self.dtype.memory.mlir, attr)
        made = xetile.init_tile(self.ir, [], indices=indices.to(types.index).ir, tile=kind.to_ir())
        return Scattered(made, self.dtype, indices.shape)

    def __add__(self, indices: Value | int) -> Pointers:
        return Pointers(self, indices)

    __radd__ = __add__

    def _place(self, key: Any) -> list[mlir.Value]:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != self.ndim:
            raise IndexError(f"an array of {self.ndim} dimensions is indexed by {self.ndim} integers, not {len(keys)}")
        places = (as_index(k) for k in keys)
        return [constant(types.index, p).ir if isinstance(p, int) else p for p in places]

    def __getitem__(self, key: Any) -> Value:
        """A single element."""
        return _loaded(memref.load(self.ir, self._place(key)), self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a single element."""
        given = _converted(value, self.dtype)
        if given.shape:
            raise TypeError(f"a single element cannot become {given.describe()}")
        memref.store(given.to(self.dtype.memory).ir, self.ir, self._place(key))
        BUILDING.built()

    def __repr__(self) -> str:
        shown = ", ".join(str(n) if isinstance(n, int) else "?" for n in self.shape)
        return f"<array of {self.dtype}[{shown}]>"


class Pointers:
    """Elements of an array at given indices, as Triton's pointers: `array + indices`.

    Attributes:
        array: the array.
        indices: where from its first element on, as values of type index.

    Raises:
        TypeError: if the indices are no integers.
    """

    def __init__(self, array: Array, indices: Value | Product | int) -> None:
        places = indices.value if isinstance(indices, Product) else value_of(indices, types.index)
        if not places.dtype.is_integer:
            raise TypeError(f"pointers are counted in integers, not in {places.describe()}")
        self.array, self.indices = array, places.to(types.index)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is loaded."""
        return self.indices.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.array.dtype

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
        """What loads and stores these elements."""
        indices = self.indices if self.indices.shape else self.indices.broadcast((1,))
        return self.array.at(indices)


_LOADED = "tiles and pointers are loaded and stored"

_PADDINGS = {"": None, "zero": None, "nan": math.nan}
"""What Triton's `padding_option` stands for."""


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Sequence[int] = (),
    padding_option: str = "",
    **hints: Any,
) -> Value:
    """The elements of a tile, or those that pointers lead to.

    Args:
        pointer: a tile, or pointers.
        mask: where to read; a tile takes none, as its array bounds it.
        other: what stands where nothing is read, by default zero: a number, or with pointers a value too.
        boundary_check: Triton's; a tile never reads out of bounds.
        padding_option: Triton's name of `other` for tiles: "zero" or "nan".
        hints: Triton's hints for caches, which change no result.

    Raises:
        TypeError: if a tile is given a mask.
        ValueError: if there is no such padding.
    """
    _check_hints(hints)
    if padding_option not in _PADDINGS:
        raise ValueError(f"padding_option is 'zero' or 'nan', not {padding_option!r}")
    if isinstance(pointer, (Tile, TileStack, StridedTile)):
        if mask is not None:
            raise TypeError("a tile takes no mask: out-of-bounds elements are not read")
        return pointer.load(_PADDINGS[padding_option] if other is None else other)
    found = _pointers(pointer, _LOADED).load(mask, other)
    return found.reshape(pointer.indices.shape) if isinstance(pointer, Pointers) else found


def store(pointer: Any, value: Any, mask: Any = None, boundary_check: Sequence[int] = (), **hints: Any) -> None:
    """Store to a tile, or where pointers lead and the mask is set.

    Args:
        pointer: a tile, or pointers.
        value: what to store.
        mask: where to write; a tile takes none, as its array bounds it.
        boundary_check: Triton's; a tile never writes out of bounds.
        hints: Triton's hints for caches, which change no result.

    Raises:
        TypeError: if a tile is given a mask.
    """
    _check_hints(hints)
    if isinstance(pointer, (Tile, TileStack, StridedTile)):
        if mask is not None:
            raise TypeError("a tile takes no mask: out-of-bounds elements are not written")
        return pointer.store(value)
    return _pointers(pointer, _LOADED).store(value, mask)


def _pointers(given: Any, rule: str) -> Scattered:
    """What pointers lead to, given as `array + indices` or `array.at(indices)`.

    Args:
        rule: what is done with tiles and pointers, for the message.

    Raises:
        TypeError: if they are none.
    """
    if isinstance(given, Pointers):
        return given.place()
    if isinstance(given, Scattered):
        return given
    hint = "; an array has tiles (array.tile) and pointers (array + indices)" if isinstance(given, Array) else ""
    raise TypeError(f"{rule}, not {given!r}{hint}")


_HINTS = ("cache_modifier", "eviction_policy", "volatile")


def _check_hints(hints: dict[str, Any]) -> None:
    unknown = [name for name in hints if name not in _HINTS]
    if unknown:
        raise TypeError(f"got an unexpected keyword argument '{unknown[0]}'")


_ORDERS, _SCOPES = ("acquire", "release", "acq_rel", "relaxed"), ("gpu", "cta", "sys")


def _check_order(sem: str | None, scope: str | None) -> None:
    if sem not in (None, *_ORDERS):
        raise ValueError(f"the order of an atomic op is {', '.join(_ORDERS)}, not {sem!r}")
    if scope not in (None, *_SCOPES):
        raise ValueError(f"the scope of an atomic op is {', '.join(_SCOPES)}, not {scope!r}")


def _updated(
    operation: str, pointer: Any, value: Any, mask: Any, expected: Any, sem: str | None, scope: str | None
) -> Value:
    _check_order(sem, scope)
    if isinstance(pointer, (Tile, StridedTile)):
        if mask is not None:
            raise TypeError("a tile takes no mask: out-of-bounds elements are not updated")
        return pointer.atomic(operation, value, expected)
    found = _pointers(pointer, "atomic ops update tiles and pointers").atomic(operation, value, mask, expected)
    return found.reshape(pointer.indices.shape) if isinstance(pointer, Pointers) else found


def _atomic(operation: str) -> Any:
    def atomic(pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> Value:
        return _updated(operation, pointer, value, mask, None, sem, scope)

    atomic.__name__ = atomic.__qualname__ = f"atomic_{operation}"
    atomic.__doc__ = (
        f"Atomic {operation} of a value and what is in memory; gives what was there before. "
        "Triton's `sem` and `scope` are read; the memory model is the GPU's, for all of it."
    )
    return atomic


atomic_add, atomic_max, atomic_min, atomic_and, atomic_or, atomic_xor, atomic_xchg = map(_atomic, _ATOMICS)


def atomic_cas(
    pointer: Any, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None, mask: Any = None
) -> Value:
    """Write a value where memory holds what is expected, atomically; gives what was there before.

    Args:
        pointer: pointers, or a tile.
        cmp: what is expected. Bits are compared: -0.0 is not 0.0, and a NaN may equal itself.
        val: what is written.
        sem: Triton's order, which is read; the memory model is the GPU's, for all of it.
        scope: Triton's scope, likewise.
        mask: where to compare and write; elements elsewhere are zero in the result.

    Raises:
        TypeError: if a tile is given a mask, or memory cannot hold a value.
        ValueError: if there is no such order or scope.
    """
    return _updated("xchg", pointer, val, mask, cmp, sem, scope)


def _metadata(array: mlir.Value) -> tuple[mlir.Value, mlir.Value, list[mlir.Value], list[mlir.Value]]:
    """An array's memory, offset, extents and strides."""
    kind = mlir.MemRefType(array.type)
    base = mlir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
    index = mlir.IndexType.get()
    made = mlir.Operation.create(
        "memref.extract_strided_metadata", results=[base, index, *[index] * (2 * kind.rank)], operands=[array]
    )
    memory, offset, *rest = made.results
    return memory, offset, rest[: kind.rank], rest[kind.rank :]


def _sum(a: int | Value, b: int) -> int | Value:
    found: int | Value = a + b
    return found


def _product(a: int | Value, b: int | Value) -> int | Value:
    found: int | Value = a * b
    return found


def shared(shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
    """An array in the shared local memory of the workgroup."""
    BUILDING.check()
    element = mlir.Type.parse(dtype_of(dtype).memory.mlir)
    kind = mlir.MemRefType.get(list(static_shape(shape)), element, memory_space=mlir.Attribute.parse(str(SHARED)))
    return Array(memref.alloc(kind, [], []), dtype)
