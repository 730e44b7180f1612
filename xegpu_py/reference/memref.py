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

from xegpu_py.dialects.xegpu.types import is_slm
from xegpu_py.ir.bindings import AtomicRMWKind
from xegpu_py.ir.builtin import CombiningKind, keeps_bits
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.numerics.formats import Array
from xegpu_py.reference.arith_math import dense_numbers
from xegpu_py.reference.machine import (
    CallFrame,
    EvaluatedSubgroup,
    Lane,
    Lanes,
    Node,
    Steps,
    controls,
    evaluates,
    evaluates_in,
    mixed,
    symbol,
)
from xegpu_py.reference.storage import AddressSpace, ElementType, Fault, MemRef, allocated, element_of, row_major
from xegpu_py.reference.vector import combine


@evaluates("memref.load")
def load(node: Node, memref: MemRef, *indices: Any) -> Array:
    """One element."""
    return memref.load(indices)


@evaluates("memref.store")
def store(node: Node, value: Array, memref: MemRef, *indices: Any) -> None:
    """One element written."""
    memref.store(np.asarray(value), indices)


def update(kind_name: str, element: ElementType, old_element: Array, value: Array) -> Array:
    """The new value of an atomic update of a kind (arith.AtomicRMWKind), computed by the op of arith of that name."""
    if kind_name == "assign":
        return value
    return combine(CombiningKind.of_atomic(kind_name).value, element, old_element, value)


def atomic(
    memory: AddressSpace,
    addresses: Array,
    kind_name: str,
    element: ElementType,
    values: Array,
    expected_elements: Array | None = None,
) -> Array:
    """Update elements one after the other, in row-major order.

    Args:
        addresses: int64, of `values`' shape.
        expected_elements: of the same shape; only elements with equal bits are updated. None to update all.

    Returns:
        The elements before the update.

    Raises:
        Fault: if an address is out of bounds.
    """
    flat, operands = addresses.ravel(), np.asarray(values).ravel()
    expected_bits = None if expected_elements is None else element.to_memory(np.asarray(expected_elements).ravel())
    old_elements = np.empty(flat.shape, element.dtype)
    for turn in _turns(flat):
        old_turn = element.from_memory(memory.read(flat[turn], element.memory))
        old_elements[turn] = old_turn
        new_turn = element.to_memory(update(kind_name, element, old_turn, operands[turn]))
        turn_addresses = flat[turn]
        if expected_bits is not None:
            same = _bits(element.to_memory(old_turn)) == _bits(expected_bits[turn])
            turn_addresses, new_turn = turn_addresses[same], new_turn[same]
        memory.write(turn_addresses, new_turn)
    return old_elements.reshape(addresses.shape)


def _bits(elements: Array) -> Array:
    return elements.view(f"u{elements.dtype.itemsize}")


def _turns(addresses: Array) -> list[list[int]]:
    """Indices in groups without repeated addresses, so that updates of one address keep their order."""
    count: dict[int, int] = {}
    groups: list[list[int]] = []
    for i, address in enumerate(addresses.tolist()):
        turn = count.get(address, 0)
        count[address] = turn + 1
        if turn == len(groups):
            groups.append([])
        groups[turn].append(i)
    return groups


@evaluates("memref.atomic_rmw")
def atomic_rmw(node: Node, value: Array, memref: MemRef, *indices: Any) -> Array:
    """Update one element; the result is the old element."""
    kind_name = AtomicRMWKind(node.attribute("kind")).name.lower()
    if memref.element.shares_bytes:
        old_element = memref.load(indices)
        memref.store(update(kind_name, memref.element, old_element, np.asarray(value)), indices)
        return old_element
    return atomic(memref.memory, memref.addresses(indices), kind_name, memref.element, np.asarray(value))


@controls("memref.generic_atomic_rmw")
def generic_atomic_rmw(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """Update one element by a region; the result is the old element."""
    body = node.regions[0][0]
    for lane in lanes:
        memref, *indices = [frame.values[p][lane] for p in node.operands]
        old_element = memref.load(indices)
        frame.values[body.arguments[0]][lane] = old_element
        yield_node = yield from subgroup.block(frame, body, (lane,))
        memref.store(np.asarray(frame.values[yield_node.operands[0]][lane]), indices)
        frame.set(node.results, old_element, lane)


@evaluates("memref.subview")
def subview(node: Node, memref: MemRef, *dynamic: Any) -> MemRef:
    """A part of a memref; dimensions of size 1 may be dropped."""
    offsets, sizes, strides = _lists(node, (memref, *dynamic))
    start = memref.offset + sum(o * s for o, s in zip(offsets, memref.strides))
    kept_dims = _kept_dims(sizes, ir.MemRefType(node.op.results[0].type))
    combined = [a * b for a, b in zip(strides, memref.strides)]
    return memref.part(start, [sizes[i] for i in kept_dims], [combined[i] for i in kept_dims])


@evaluates("memref.reinterpret_cast")
def reinterpret_cast(node: Node, memref: MemRef, *dynamic: Any) -> MemRef:
    """The same buffer with another offset, shape and strides."""
    (offset,), sizes, strides = _lists(node, (memref, *dynamic))
    return memref.part(offset, sizes, strides)


def _lists(node: Node, operands: Sequence[Any]) -> list[list[int]]:
    _, *groups = node.groups(operands)
    return [mixed(node.attribute(f"static_{n}"), g) for n, g in zip(("offsets", "sizes", "strides"), groups)]


def _kept_dims(sizes: Sequence[int], result: ir.MemRefType) -> list[int]:
    """The dimensions that a subview keeps; dropped ones have size 1."""
    dropped = len(sizes) - result.rank
    kept_dims: list[int] = []
    for i, size in enumerate(sizes):
        if dropped and size == 1 and (len(kept_dims) >= result.rank or result.shape[len(kept_dims)] != 1):
            dropped -= 1
        else:
            kept_dims.append(i)
    return kept_dims


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
        per_byte = 8 // address.element.bits
        shape = (*address.shape[:-1], *(-(-n // per_byte) for n in address.shape[-1:]))
        strides = (*(n // per_byte for n in address.strides[:-1]), *address.strides[-1:])
        element = element_of(str(ir.MemRefType(result).element_type))
        return MemRef(address.memory, address.base, address.offset // per_byte, shape, strides, element)
    if not isinstance(result, ir.MemRefType):
        raise Fault("is supported only to convert an address to a memref", "use an operand of type i64")
    memref_type = ir.MemRefType(result)
    memory = lane.workgroup.shared if is_slm(memref_type.memory_space) else lane.launch.memory
    strides, offset = memref_type.get_strides_and_offset()
    shape = tuple((1 << 62) if memref_type.is_dynamic_dim(i) else memref_type.shape[i] for i in range(memref_type.rank))
    return MemRef(memory, int(address), offset, shape, tuple(strides), element_of(str(memref_type.element_type)))


@evaluates("memref.view")
def view(node: Node, memref: MemRef, shift: Any, *sizes: Any) -> MemRef:
    """Bytes of a buffer as elements of another type."""
    memref_type = ir.MemRefType(node.op.results[0].type)
    shape = tuple(
        mixed(
            [DYNAMIC if memref_type.is_dynamic_dim(i) else memref_type.shape[i] for i in range(memref_type.rank)], sizes
        )
    )
    base = memref.address + int(shift)
    return MemRef(memref.memory, base, 0, shape, row_major(shape), element_of(str(memref_type.element_type)))


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
    """Return the parts of the memref: its buffer, offset, shape and strides."""
    numbers = (memref.offset, *memref.shape, *memref.strides)
    return (memref.part(0, (), ()), *(np.asarray(n, np.int64) for n in numbers))


@evaluates("memref.copy")
def copy(node: Node, source: MemRef, target: MemRef) -> None:
    """Copy all elements of one memref to another."""
    indices = list(np.indices(source.shape))
    target.store(source.load(indices), indices)


@evaluates("memref.dealloc", "memref.prefetch")
def nothing(node: Node, *operands: Any) -> None:
    """No effect: shared local memory lasts as long as the workgroup, and prefetches change no value."""


@evaluates_in("memref.get_global")
def get_global(lane: Lane, node: Node) -> MemRef:
    """A table of constants."""
    memref_type = ir.MemRefType(node.op.results[0].type)
    table = symbol(node.op, ir.FlatSymbolRefAttr(node.op.attributes["name"]).value).attributes
    if "constant" not in table or not isinstance(table["initial_value"], ir.DenseElementsAttr):
        raise Fault("refers to memory that is no constant with a value", "pass the memref as an argument")
    table_memref = allocated(AddressSpace("constants"), memref_type, "constants")
    for index, number in zip(
        np.ndindex(*memref_type.shape), dense_numbers(table["initial_value"], table_memref.element)
    ):
        table_memref.store(np.asarray(number), index)
    return table_memref


@evaluates_in("memref.alloc", "memref.alloca")
def allocate(lane: Lane, node: Node, *extents: Any) -> MemRef:
    """Allocate shared local memory, once for the workgroup, or private memory of a work item."""
    memref_type = ir.MemRefType(node.op.results[0].type)
    if is_slm(memref_type.memory_space):
        return lane.workgroup.shared_memref(str(node.op.location) if lane.launch.built_apart else node, memref_type)
    return allocated(AddressSpace("private memory"), memref_type, "private memory")
