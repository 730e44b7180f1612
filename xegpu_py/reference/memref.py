"""`memref`: views of memory, single elements, and atomic updates.

Source: MLIR's documentation of the dialect. An index is not checked against the memref's shape; an access must lie in
an allocation (docs/reference.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.dialects.xegpu.types import is_slm
from xegpu_py.ir.builtin import CombiningKind, keeps_bits
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.numerics.formats import Array
from xegpu_py.reference.arith_math import dense_numbers
from xegpu_py.reference.machine import (
    Frame,
    Lane,
    Lanes,
    Node,
    Steps,
    Subgroup,
    controls,
    evaluates,
    evaluates_in,
    mixed,
    symbol,
)
from xegpu_py.reference.storage import Element, Fault, Memory, MemRef, allocated, element_of, row_major
from xegpu_py.reference.vector import combine


@evaluates("memref.load")
def load(node: Node, memref: MemRef, *indices: Any) -> Array:
    """One element."""
    return memref.load(indices)


@evaluates("memref.store")
def store(node: Node, value: Array, memref: MemRef, *indices: Any) -> None:
    """One element written."""
    memref.store(np.asarray(value), indices)


def update(kind: str, element: Element, old: Array, value: Array) -> Array:
    """The new value of an atomic update of a kind (arith.AtomicRMWKind), computed by the op of arith of that name."""
    if kind == "assign":
        return value
    return combine(CombiningKind.of_atomic(kind).value, element, old, value)


def atomic(
    memory: Memory, addresses: Array, kind: str, element: Element, values: Array, expected: Array | None = None
) -> Array:
    """Update elements one after the other, in row-major order.

    Args:
        addresses: int64, of `values`' shape.
        expected: of the same shape; only elements with equal bits are updated. None to update all.

    Returns:
        The elements before the update.

    Raises:
        Fault: if an address is out of bounds.
    """
    flat, given = addresses.ravel(), np.asarray(values).ravel()
    wanted = None if expected is None else element.to_memory(np.asarray(expected).ravel())
    old = np.empty(flat.shape, element.dtype)
    for turn in _turns(flat):
        before = element.from_memory(memory.read(flat[turn], element.memory))
        old[turn] = before
        after = element.to_memory(update(kind, element, before, given[turn]))
        here = flat[turn]
        if wanted is not None:
            same = _bits(element.to_memory(before)) == _bits(wanted[turn])
            here, after = here[same], after[same]
        memory.write(here, after)
    return old.reshape(addresses.shape)


def _bits(elements: Array) -> Array:
    return elements.view(f"u{elements.dtype.itemsize}")


def _turns(addresses: Array) -> list[list[int]]:
    """Indices in groups without repeated addresses, so that updates of one address keep their order."""
    count: dict[int, int] = {}
    found: list[list[int]] = []
    for i, address in enumerate(addresses.tolist()):
        turn = count.get(address, 0)
        count[address] = turn + 1
        if turn == len(found):
            found.append([])
        found[turn].append(i)
    return found


@evaluates("memref.atomic_rmw")
def atomic_rmw(node: Node, value: Array, memref: MemRef, *indices: Any) -> Array:
    """Update one element; the result is the old element."""
    kind = AtomicRMWKind(node.attribute("kind")).name.lower()
    if memref.element.shares_bytes:
        before = memref.load(indices)
        memref.store(update(kind, memref.element, before, np.asarray(value)), indices)
        return before
    return atomic(memref.memory, memref.addresses(indices), kind, memref.element, np.asarray(value))


@controls("memref.generic_atomic_rmw")
def generic_atomic_rmw(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """Update one element by a region; the result is the old element."""
    body = node.regions[0][0]
    for lane in lanes:
        memref, *indices = [frame.values[p][lane] for p in node.operands]
        old = memref.load(indices)
        frame.values[body.arguments[0]][lane] = old
        end = yield from subgroup.block(frame, body, (lane,))
        memref.store(np.asarray(frame.values[end.operands[0]][lane]), indices)
        frame.set(node.results, old, lane)


@evaluates("memref.subview")
def subview(node: Node, memref: MemRef, *dynamic: Any) -> MemRef:
    """A part of a memref; dimensions of size 1 may be dropped."""
    offsets, sizes, strides = _lists(node, (memref, *dynamic))
    start = memref.offset + sum(o * s for o, s in zip(offsets, memref.strides))
    kept = _kept(sizes, ir.MemRefType(node.op.results[0].type))
    combined = [a * b for a, b in zip(strides, memref.strides)]
    return memref.part(start, [sizes[i] for i in kept], [combined[i] for i in kept])


@evaluates("memref.reinterpret_cast")
def reinterpret_cast(node: Node, memref: MemRef, *dynamic: Any) -> MemRef:
    """The same buffer with another offset, shape and strides."""
    (offset,), sizes, strides = _lists(node, (memref, *dynamic))
    return memref.part(offset, sizes, strides)


def _lists(node: Node, operands: Sequence[Any]) -> list[list[int]]:
    _, *groups = node.groups(operands)
    return [mixed(node.attribute(f"static_{n}"), g) for n, g in zip(("offsets", "sizes", "strides"), groups)]


def _kept(sizes: Sequence[int], result: ir.MemRefType) -> list[int]:
    """The dimensions that a subview keeps; dropped ones have size 1."""
    dropped = len(sizes) - result.rank
    kept: list[int] = []
    for i, size in enumerate(sizes):
        if dropped and size == 1 and (len(kept) >= result.rank or result.shape[len(kept)] != 1):
            dropped -= 1
        else:
            kept.append(i)
    return kept


@evaluates("memref.collapse_shape")
def collapse_shape(node: Node, memref: MemRef) -> MemRef:
    """Join contiguous dimensions."""
    groups = node.attribute("reassociation")
    shape = [math.prod(memref.shape[i] for i in group) for group in groups]
    # The innermost dimension with more than one element determines the stride.
    strides = [memref.strides[next((i for i in reversed(g) if memref.shape[i] != 1), g[-1])] for g in groups]
    return memref.part(memref.offset, shape, strides)


@evaluates("memref.expand_shape")
def expand_shape(node: Node, memref: MemRef, *dynamic: Any) -> MemRef:
    """Split a dimension."""
    shape = mixed(node.attribute("static_output_shape"), dynamic)
    strides = [1] * len(shape)
    for group, stride in zip(node.attribute("reassociation"), memref.strides):
        for i in reversed(group):
            strides[i], stride = stride, stride * shape[i]
    return memref.part(memref.offset, shape, strides)


@evaluates("memref.transpose")
def transpose(node: Node, memref: MemRef) -> MemRef:
    """Dimensions in another order."""
    order = [e.position for e in node.attribute("permutation").results]
    return memref.part(memref.offset, [memref.shape[i] for i in order], [memref.strides[i] for i in order])


@evaluates("memref.cast", "memref.memory_space_cast", "memref.assume_alignment", "memref.distinct_objects")
def cast(node: Node, *memrefs: MemRef) -> Any:
    """The same memref."""
    return memrefs if len(memrefs) > 1 else memrefs[0]


@evaluates_in("builtin.unrealized_conversion_cast")
def at_address(lane: Lane, node: Node, address: Any) -> Any:
    """The memref at an address, a 64-bit integer; or f32 numbers as tf32, whose lowest bits dpas ignores.

    Or the bytes of a memref whose elements share them; or integers of another sign, alone or in a memref.
    """
    result = node.op.results[0].type
    if keeps_bits(node.op.operands[0].type, result):
        if not isinstance(result, ir.MemRefType):
            return address
        return replace(address, element=element_of(str(result.element_type)))
    if str(result).rstrip(">").endswith("tf32"):
        return address
    if isinstance(address, MemRef) and address.element.shares_bytes and isinstance(result, ir.MemRefType):
        each = 8 // address.element.bits
        shape = (*address.shape[:-1], *(-(-n // each) for n in address.shape[-1:]))
        strides = (*(n // each for n in address.strides[:-1]), *address.strides[-1:])
        element = element_of(str(ir.MemRefType(result).element_type))
        return MemRef(address.memory, address.base, address.offset // each, shape, strides, element)
    if not isinstance(result, ir.MemRefType):
        raise Fault("is supported only to convert an address to a memref", "use an operand of type i64")
    kind = ir.MemRefType(result)
    memory = lane.workgroup.shared if is_slm(kind.memory_space) else lane.launch.memory
    strides, offset = kind.get_strides_and_offset()
    shape = tuple((1 << 62) if kind.is_dynamic_dim(i) else kind.shape[i] for i in range(kind.rank))
    return MemRef(memory, int(address), offset, shape, tuple(strides), element_of(str(kind.element_type)))


@evaluates("memref.view")
def view(node: Node, memref: MemRef, shift: Any, *sizes: Any) -> MemRef:
    """Bytes of a buffer as elements of another type."""
    kind = ir.MemRefType(node.op.results[0].type)
    shape = tuple(mixed([DYNAMIC if kind.is_dynamic_dim(i) else kind.shape[i] for i in range(kind.rank)], sizes))
    base = memref.address + int(shift)
    return MemRef(memref.memory, base, 0, shape, row_major(shape), element_of(str(kind.element_type)))


@evaluates("memref.dim")
def dim(node: Node, memref: MemRef, index: Any) -> Array:
    """An extent."""
    if not 0 <= int(index) < len(memref.shape):
        raise Fault(f"dimension {int(index)} is out of range for a memref of rank {len(memref.shape)}")
    return np.asarray(memref.shape[int(index)], np.int64)


@evaluates("memref.rank")
def rank(node: Node, memref: MemRef) -> Array:
    """The number of dimensions."""
    return np.asarray(len(memref.shape), np.int64)


@evaluates("memref.extract_aligned_pointer_as_index")
def pointer(node: Node, memref: MemRef) -> Array:
    """The address of the buffer's first byte."""
    return np.asarray(memref.base, np.int64)


@evaluates("memref.extract_strided_metadata")
def extract_strided_metadata(node: Node, memref: MemRef) -> Any:
    """What the memref consists of: its buffer, offset, shape and strides."""
    numbers = (memref.offset, *memref.shape, *memref.strides)
    return (memref.part(0, (), ()), *(np.asarray(n, np.int64) for n in numbers))


@evaluates("memref.copy")
def copy(node: Node, source: MemRef, target: MemRef) -> None:
    """Copy all elements of one memref to another."""
    places = list(np.indices(source.shape))
    target.store(source.load(places), places)


@evaluates("memref.dealloc", "memref.prefetch")
def nothing(node: Node, *operands: Any) -> None:
    """No effect: shared local memory lasts as long as the workgroup, and prefetches change no value."""


@evaluates_in("memref.get_global")
def get_global(lane: Lane, node: Node) -> MemRef:
    """A table of constants."""
    kind = ir.MemRefType(node.op.results[0].type)
    table = symbol(node.op, ir.FlatSymbolRefAttr(node.op.attributes["name"]).value).attributes
    if "constant" not in table or not isinstance(table["initial_value"], ir.DenseElementsAttr):
        raise Fault("refers to memory that is no constant with a value", "pass the memref as an argument")
    made = allocated(Memory("constants"), kind, "constants")
    for place, number in zip(np.ndindex(*kind.shape), dense_numbers(table["initial_value"], made.element)):
        made.store(np.asarray(number), place)
    return made


@evaluates_in("memref.alloc", "memref.alloca")
def allocate(lane: Lane, node: Node) -> MemRef:
    """Allocate shared local memory, once for the workgroup, or private memory of a work item."""
    kind = ir.MemRefType(node.op.results[0].type)
    if is_slm(kind.memory_space):
        return lane.workgroup.shared_memref(str(node.op.location) if lane.launch.built_apart else node, kind)
    return allocated(Memory("private memory"), kind, "private memory")
