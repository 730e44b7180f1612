"""Triton's block pointers and tensor descriptors: tiles of arrays that are views of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xegpu_py.language.arrays import Array
from xegpu_py.language.memory import load, store
from xegpu_py.language.tiles import Block, assignable
from xegpu_py.language.types import DType
from xegpu_py.language.values import Value


def make_block_ptr(
    base: Array,
    shape: Sequence[int | Value],
    strides: Sequence[int | Value],
    offsets: Sequence[int | Value],
    block_shape: Sequence[int],
    order: Sequence[int] | None = None,
) -> Any:
    """A tile of a view of an array's memory, which `load` and `store` take and `advance` moves.

    Args:
        base: the array whose memory is viewed, from its first element on.
        shape: the extents of the view.
        strides: the strides of the view, in elements.
        offsets: the indices at which the tile begins.
        block_shape: the tile's extents.
        order: Triton's order of dimensions in memory, without effect: it follows from the strides.

    Raises:
        ValueError: if the numbers of dimensions do not fit.
    """
    return assignable(base.view(shape, strides).tile(block_shape, at=offsets))


def advance(base: Any, offsets: Sequence[int | Value]) -> Any:
    """A tile that is moved by these numbers of elements, one for each of its dimensions; `base` itself does not move.

    Raises:
        TypeError: if it is no tile of one or two dimensions.
    """
    if not isinstance(base, Block) or len(base.shape) != len(offsets):
        raise TypeError(f"advance moves a tile by a number for each dimension, but got {base!r} and {offsets!r}")
    moved = assignable(base.copy())
    moved.advance(*offsets)
    return moved


class TensorDescriptor:
    """A view of an array's memory from which tiles of one shape are loaded.

    Attributes:
        array: the view.
        block_shape: the shape of the tiles.
    """

    def __init__(self, array: Array, block_shape: Sequence[int]) -> None:
        self.array, self.block_shape = array, tuple(block_shape)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.array.dtype

    @property
    def shape(self) -> tuple[int | Value, ...]:
        """The extents of the view."""
        return self.array.shape

    @property
    def strides(self) -> tuple[int | Value, ...]:
        """The strides, in elements."""
        return self.array.strides

    def tile(self, offsets: Sequence[int | Value]) -> Any:
        """The tile that begins at these indices."""
        return self.array.tile(self.block_shape, at=offsets)

    def load(self, offsets: Sequence[int | Value]) -> Value:
        """The elements of a tile; out-of-bounds elements are zero."""
        return load(self.tile(offsets))

    def store(self, offsets: Sequence[int | Value], value: Any) -> None:
        """Store to a tile; out-of-bounds elements are not written."""
        store(self.tile(offsets), value)

    def atomic_add(self, offsets: Sequence[int | Value], value: Any) -> None:
        """Add to a tile, atomically."""
        self.tile(offsets).add(value)


def make_tensor_descriptor(
    base: Array,
    shape: Sequence[int | Value],
    strides: Sequence[int | Value],
    block_shape: Sequence[int],
    padding_option: str = "zero",
) -> TensorDescriptor:
    """A view of an array's memory from which tiles of one shape are loaded.

    Args:
        base: the array whose memory is viewed, from its first element on.
        shape: the extents of the view.
        strides: the strides of the view, in elements.
        block_shape: the shape of the tiles.
        padding_option: the value of out-of-bounds elements: "zero".

    Raises:
        ValueError: for another padding, or if the numbers of dimensions do not fit.
    """
    if padding_option != "zero":
        raise ValueError(f"out-of-bounds elements of a tensor descriptor are zero, not {padding_option!r}")
    if len(block_shape) != len(shape):
        raise ValueError(f"blocks of {len(block_shape)} dimensions do not fit a tensor of {len(shape)} dimensions")
    return TensorDescriptor(base.view(shape, strides), block_shape)


def load_tensor_descriptor(desc: TensorDescriptor, offsets: Sequence[int | Value]) -> Value:
    """The elements of the tile that begins at these indices: `desc.load(offsets)`."""
    return desc.load(offsets)


def store_tensor_descriptor(desc: TensorDescriptor, offsets: Sequence[int | Value], value: Any) -> None:
    """Store to the tile that begins at these indices: `desc.store(offsets, value)`."""
    desc.store(offsets, value)
