"""Elements in memory that are gathered and scattered, each at its own index, under masks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir as mlir
from mlir.dialects import vector

from xegpu_py.dialects import xetile
from xegpu_py.language import types
from xegpu_py.language.held import BUILDING, Handle, Number
from xegpu_py.language.tiles import Block, Place, converted, loaded
from xegpu_py.language.types import DType
from xegpu_py.language.values import Product, Value, constant, value_of


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
        return None if mask is None else value_of(mask).to(types.bool_).broadcast(self.shape).ir

    def load(self, mask: Any = None, padding: Any = None) -> Value:
        """The elements. Masked elements are not read: they are `padding`, a number or a value, or zero."""
        if isinstance(padding, (Value, Product)):
            found, bits = self.load(mask), self._masked(mask)
            other = converted(padding, self.dtype).broadcast(self.shape)
            return found if bits is None else Value(bits, types.bool_, self.shape)._selected(found, other)
        return loaded(xetile.load(self.ir, self._masked(mask), padding=self._padding(padding)), self.dtype, self.shape)

    def store(self, value: Any, mask: Any = None) -> None:
        """Store a value where the mask is set."""
        xetile.store(self._stored(value), self.ir, self._masked(mask))
        BUILDING.built()

    def atomic(self, operation: str, value: Any, mask: Any = None, expected: Any = None) -> Value:
        """Combine a value with memory atomically where the mask is set; gives the old elements. See `Block.atomic`."""
        compared = None if expected is None else self._stored(expected)
        old = xetile.atomic_rmw(self._kind(operation), self._stored(value), self.ir, self._masked(mask), compared)
        return Value(old, self.dtype, self.shape)

    def add(self, value: Any, mask: Any = None) -> None:
        """Add a value to memory atomically where the mask is set."""
        self.atomic("add", value, mask)

    def advance(self, by: Value | int) -> None:
        """Add to the indices, in place: a number for each element, or the same for all."""
        if isinstance(by, Value):
            offsets = by.to(types.index).broadcast(self.shape)
        else:
            offsets = constant(types.index, by, self.shape, self.type.wg_map)
        self.ir = xetile.update_tile_offset(self.ir, [], offsets.ir)


class Position(Handle):
    """An index that `advance` moves."""

    def with_ir(self, value: mlir.Value) -> Position:
        return Position(value)


class StridedTile(Block):
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
        self.positions = self.handles = tuple(Position(value_of(n, types.index).to(types.index).ir) for n in at[-2:])

    def _elements(self) -> tuple[Scattered, Value]:
        """The elements, and which of them are within bounds."""
        shape, inside = self._block, None
        index = constant(types.index, 0, shape)
        places: list[int | Value] = [*self._lead]
        for dim, position in enumerate(self.positions):
            line = Value(vector.step(mlir.Type.parse(f"vector<{shape[dim]}xindex>")), types.index)
            along = line.reshape((-1, 1) if dim == 0 else (1, -1)).broadcast(shape)
            places.append(along + Value(position.ir, types.index))
        for place, (stride, extent) in zip(places, self._bounds):
            here = value_of(place, types.index)
            index = index + here * stride
            within = ((here >= 0) & (here < extent)).broadcast(shape)
            inside = within if inside is None else inside & within
        assert inside is not None
        return self._at(index), inside

    def load(self, padding: Number | None = None) -> Value:
        place, inside = self._elements()
        return place.load(inside, padding).reshape(self.shape)

    def store(self, value: Any) -> None:
        place, inside = self._elements()
        place.store(self._matrix(value), inside)

    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        place, inside = self._elements()
        compared = None if expected is None else self._matrix(expected)
        return place.atomic(operation, self._matrix(value), inside, compared).reshape(self.shape)

    def copy(self) -> StridedTile:
        made = copy.copy(self)
        made.positions = made.handles = tuple(Position(position.ir) for position in self.positions)
        return made

    def advance(self, *by: int | Value, **named: int | Value) -> None:
        """Move the tile, in place: by `rows` and `columns`, or a 1D tile `by` elements.

        Raises:
            TypeError: if there are more steps, or other names.
        """
        names = ("by",) if len(self.shape) == 1 else ("rows", "columns")
        steps = dict(zip(names, by)) | named
        if len(by) + len(named) > len(steps) or not steps.keys() <= set(names):
            raise TypeError(f"a tile of {len(self.shape)} dimensions is advanced by {' and '.join(names)}")
        for name, position in zip(names, self.positions[-len(names) :]):
            position.ir = (Value(position.ir, types.index) + steps.get(name, 0)).ir

    def _matrix(self, value: Any) -> Value:
        """A value to store, in the shape of the gathered elements."""
        return converted(value, self.dtype).broadcast(self.shape).reshape(self._block)
