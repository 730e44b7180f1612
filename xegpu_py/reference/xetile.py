"""`xetile`: tiles of matrices, as whole arrays. Maps distribute tiles to subgroups, and never change a value.

Source: docs/xetile.md, and the docstrings of the ops in `dialects/xetile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xegpu_py.dialects.xetile import Tile
from xegpu_py.dialects.xetile.compute import reduced_block
from xegpu_py.numerics.formats import Array
from xegpu_py.reference.elements import Element, element_of, to_float
from xegpu_py.reference.machine import Lane
from xegpu_py.reference.memory import MemRef
from xegpu_py.reference.memref import atomic
from xegpu_py.reference.program import Node, evaluates, evaluates_in
from xegpu_py.reference.vector import combine, reduced
from xegpu_py.reference.xegpu import Block, Scattered, product, update_nd_offset


@evaluates_in("xetile.init_tile")
def init_tile(lane: Lane, node: Node, *operands: Any) -> Block | Scattered:
    """A tile of the innermost two dimensions of a memref or of a matrix at an address, or scattered elements."""
    given = node.named(operands)
    tile: Tile = node.memo("tile", lambda: Tile.of(node.op.opview.tile))
    (source,) = given["source"]
    if isinstance(source, MemRef):
        memory, address, element = source.memory, source.address, source.element
    else:
        memory, address, element = lane.launch.memory, int(source), element_of(tile.element)
    if tile.scattered:
        return Scattered(memory, address + _indices(node, given["indices"][0]) * element.bytes, element)
    offsets, shape, strides = (node.index_list(n, given[n]) for n in ("offsets", "shape", "strides"))
    if isinstance(source, MemRef):
        shape, strides = shape or list(source.shape), strides or list(source.strides)
    base = address + sum(o * s for o, s in zip(offsets[:-2], strides[:-2])) * element.bytes
    return Block(memory, base, tuple(shape[-2:]), tuple(strides[-2:]), tuple(offsets[-2:]), element)


def _indices(node: Node, indices: Array) -> Array:
    return node.operand_kind(len(node.operands) - 1).element.numbers(indices)


@evaluates("xetile.update_tile_offset")
def update_tile_offset(node: Node, tile: Block | Scattered, *operands: Any) -> Block | Scattered:
    """The tile moved by offsets in elements, or by an index for each element if it is scattered."""
    if isinstance(tile, Scattered):
        return replace(tile, addresses=tile.addresses + _indices(node, operands[0]) * tile.element.bytes)
    moved: Block = update_nd_offset(node, tile, *operands)
    return moved


@evaluates("xetile.prefetch_tile")
def prefetch_tile(node: Node, tile: Any) -> None:
    """No effect: caches change no value."""


def _padding(node: Node) -> Array:
    """The value of elements that are not accessed: the attribute's number, or zero."""
    element, given = node.element, node.field("padding")
    if given is None:
        return np.zeros((), element.dtype)
    number, _, kind = given.rpartition(" : ")
    if not element.is_float:
        return np.asarray(element.wrap(np.asarray(int(number, 0), np.int64)))
    if number.startswith("0x"):
        own = element_of(kind)
        bits = np.asarray(int(number, 16), f"u{own.dtype.itemsize}").view(own.dtype)
        return to_float(bits, own, element)
    return to_float(np.asarray(float(number)), element_of("f64"), element)


def _accessed(tile: Block | Scattered, shape: tuple[int, ...], mask: Sequence[Array]) -> tuple[Array, Array]:
    """The addresses of a tile's elements, and which of them are accessed: those in bounds, or where a mask is set."""
    if isinstance(tile, Block):
        places, inside = tile.places(shape)
        return tile.base + places * tile.element.bytes, inside
    return tile.addresses, np.asarray(mask[0]) if mask else np.ones(shape, bool)


@evaluates("xetile.load_tile", "xetile.load")
def load(node: Node, tile: Block | Scattered, *mask: Array) -> Array:
    """Load a tile; out-of-bounds and masked elements are padding."""
    addresses, active = _accessed(tile, node.shape, mask)
    found = np.full(addresses.shape, _padding(node), tile.element.dtype)
    found[active] = tile.element.from_memory(tile.memory.read(addresses[active], tile.element.memory))
    return found


@evaluates("xetile.store_tile", "xetile.store")
def store(node: Node, value: Array, tile: Block | Scattered, *mask: Array) -> None:
    """Store a tile; out-of-bounds and masked elements are not written."""
    addresses, active = _accessed(tile, np.shape(value), mask)
    tile.memory.write(addresses[active], tile.element.to_memory(np.asarray(value)[active]))


@evaluates("xetile.atomic_rmw")
def atomic_rmw(node: Node, value: Array, tile: Block | Scattered, *more: Array) -> Array:
    """Update each element; the result is the old elements, and zero for elements that are not accessed."""
    masked = node.op.opview.mask is not None
    addresses, active = _accessed(tile, np.shape(value), more[:masked])
    found = np.zeros(addresses.shape, tile.element.dtype)
    given = [np.asarray(e)[active] for e in more[masked:]]
    kind = node.field("kind").name.lower()
    found[active] = atomic(tile.memory, addresses[active], kind, tile.element, np.asarray(value)[active], *given)
    return found


@evaluates_in("xetile.tile_mma")
def tile_mma(lane: Lane, node: Node, *given: Array) -> Array:
    """`d = a x b`, or `d = a x b + c`, with the bits of dpas; with scales those of bdpas."""
    names = node.memo("factors", lambda: tuple(node.operand_kind(i).element.name for i in (0, 1)))
    groups = {name: np.asarray(found[0]) for name, found in node.named(given).items() if found}
    a, b, acc = groups.pop("a"), groups.pop("b"), groups.pop("c", None)
    return product(node, acc, a, b, names, lane.launch.model, groups)


@evaluates("xetile.transpose")
def transpose(node: Node, a: Array) -> Array:
    """Exchange rows and columns."""
    return np.transpose(a, node.field("permutation"))


@evaluates("xetile.convert_layout")
def convert_layout(node: Node, a: Array) -> Array:
    """The same value, distributed differently."""
    return a


@evaluates("xetile.reduction")
def reduction(node: Node, a: Array) -> Array:
    """Combine the elements along a dimension: each group of `reduction_size` consecutive ones, or all, block by block.

    Blocks of one size are combined element by element, neighbours first; then the elements of the result by halves.
    Lowered kernels use this order, unless a map divides the dimension among subgroups (docs/numerics.md).
    """
    (dim,) = node.field("dims")
    a, kind, element = np.asarray(a), node.field("kind").value, node.element
    size = a.shape[dim] // node.shape[dim]
    if node.shape[dim] > 1:
        apart = a.reshape(*a.shape[:dim], node.shape[dim], size, *a.shape[dim + 1 :])
        return reduced(kind, element, np.moveaxis(apart, dim + 1, 0), None)
    lines, block = np.moveaxis(a, dim, 0), reduced_block(dim, element.bits)
    blocks = [lines[i : i + block] for i in range(0, size, block)]
    whole = [b for b in blocks if len(b) == len(blocks[0])]
    parts = [reduced(kind, element, _tree(kind, element, whole), None)]
    parts += [reduced(kind, element, b, None) for b in blocks[len(whole) :]]
    return np.expand_dims(_tree(kind, element, parts), dim)


def _tree(kind: str, element: Element, values: Sequence[Array]) -> Array:
    """Combine all values, neighbours first."""
    left = list(values)
    while len(left) > 1:
        pairs = [combine(kind, element, a, b) for a, b in zip(left[::2], left[1::2])]
        left = pairs + ([left[-1]] if len(left) % 2 else [])
    return left[0]


@evaluates("xetile.broadcast")
def broadcast(node: Node, a: Array) -> Array:
    """A matrix repeated along a dimension of size 1, or each of its elements repeated."""
    (dim,) = node.field("dims")
    times = node.shape[dim] // np.shape(a)[dim]
    return np.repeat(a, times, axis=dim)
