"""Block tiles of arrays in memory: what `Array.tile` gives for elements that a 2D block message can move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import scf

from xegpu_py.dialects import xetile
from xegpu_py.ir.numbers import number_attribute
from xegpu_py.language.held import BUILDING, Handle, Number
from xegpu_py.language.shapes import concatenate
from xegpu_py.language.types import DType
from xegpu_py.language.values import Value, as_index, constant, value_of

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


class Block(ABC):
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
    def copy(self) -> Block:
        """Another tile of the same elements, which moves on its own."""

    def add(self, value: Any) -> None:
        """Add a value to memory atomically."""
        self.atomic("add", value)

    def prefetch(self) -> None:  # noqa: B027
        """Bring the tile into the cache. Only blocks can be prefetched; other tiles are not."""

    def __repr__(self) -> str:
        return f"<tile of {self.dtype}{list(self.shape)}>"


def assignable(tile: Block) -> Block:
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
        return str(number_attribute(mlir.Type.parse(self.dtype.memory.mlir), self.dtype.signless(padding)))

    def _kind(self, operation: str) -> str:
        """MLIR's `AtomicRMWKind` of an atomic operation on these elements."""
        if self.dtype.kind == "bool":
            raise TypeError(f"atomic {operation} needs numbers, not {self.dtype}")
        kinds = ATOMICS[operation]
        kind = kinds[0] if self.dtype.is_float else kinds[1] if self.dtype.is_signed else kinds[2]
        if not kind:
            raise TypeError(f"atomic {operation} needs integers, not {self.dtype}")
        return kind


class Tile(Place, Block):
    """A tile of a matrix in memory."""

    def load(self, padding: Number | None = None) -> Value:
        return loaded(xetile.load_tile(self.ir, padding=self._padding(padding)), self.dtype)

    def store(self, value: Any) -> None:
        xetile.store_tile(self._stored(value), self.ir)
        BUILDING.built()

    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        compared = None if expected is None else self._stored(expected)
        old = xetile.atomic_rmw(self._kind(operation), self._stored(value), self.ir, None, compared)
        return Value(old, self.dtype).reshape(self.shape)

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
        whole = converted(value, self.dtype).broadcast(self.shape).reshape(self.type.shape)
        return whole.to(self.dtype.memory).ir


class TileStack(Block):
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
        parts = []
        for tile, inside in zip(self.tiles, self.inside):
            one = tile.load(padding)
            if isinstance(inside, Value):
                outside = constant(self.dtype, 0 if padding is None else padding, one.shape)
                one = inside.broadcast(one.shape)._selected(one, outside)
            parts.append(one.expand_dims(0))
        return concatenate(parts, 0).reshape(self.shape)

    def store(self, value: Any) -> None:
        self._each(lambda tile, part: tile.store(part), value)

    def atomic(self, operation: str, value: Any, expected: Any = None) -> Value:
        values = [value] if expected is None else [value, expected]
        found = self._each(lambda tile, *parts: tile.atomic(operation, *parts), *values, results=True)
        return concatenate(found, 0).reshape(self.shape)

    def _each(self, act: Callable[..., Any], *values: Any, results: bool = False) -> list[Value]:
        """Do `act` with each 2D tile that is within bounds and its parts of values.

        Returns:
            With `results`, what `act` gives for each tile, and zeros for tiles out of bounds.
        """
        given = [converted(v, self.dtype).broadcast(self.shape).reshape((-1, *self.shape[-2:])) for v in values]
        found = []
        for i, (tile, inside) in enumerate(zip(self.tiles, self.inside)):
            parts = [v[i] for v in given]
            if not isinstance(inside, Value):
                found.append(act(tile, *parts))
                continue
            branch = scf.IfOp(inside.ir, [parts[0].ir.type] if results else [], has_else=results)
            with mlir.InsertionPoint(branch.then_block):
                old = act(tile, *parts)
                scf.YieldOp([old.ir] if results else [])
            if results:
                with mlir.InsertionPoint(branch.else_block):
                    scf.YieldOp([parts[0]._number(0).ir])
                found.append(Value(branch.results[0], self.dtype, parts[0].shape))
            BUILDING.built()
        return [one.expand_dims(0) for one in found] if results else []

    def prefetch(self) -> None:
        for tile in self.tiles:
            tile.prefetch()

    def copy(self) -> TileStack:
        return TileStack(self.shape, [tile.copy() for tile in self.tiles], self.inside)

    def advance(self, rows: int | Value = 0, columns: int | Value = 0) -> None:
        """Move the tile along its last two dimensions, in place."""
        for tile in self.tiles:
            tile.advance(rows, columns)
