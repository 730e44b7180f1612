"""Rules of ops with effects: pointers, loads and stores, atomics, descriptors, the grid, and checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir as mlir
from mlir.dialects import scf

from xegpu_py.extensions.triton.lowering.lowering import Lowering, Rule
from xegpu_py.extensions.triton.lowering.types import Kind, kind_of
from xegpu_py.extensions.triton.lowering.values import Constant, Descriptor, Pointer
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.tiles import element_types
from xegpu_py.tiles.arrays import Array, Memory
from xegpu_py.tiles.effects import (
    TensorDescriptor,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_store,
    atomic_xchg,
    atomic_xor,
    debug_barrier,
    device_assert,
    fence,
    load,
    make_tensor_descriptor,
    print_each,
    store,
)
from xegpu_py.tiles.functions import arange, block_id, grid_size
from xegpu_py.tiles.tile_values import Value, constant
from xegpu_py.tiles.value_base import BUILDING

_ATOMICS = {
    "add": atomic_add, "fadd": atomic_add, "and": atomic_and, "or": atomic_or, "xor": atomic_xor, "max": atomic_max,
    "min": atomic_min, "umax": atomic_max, "umin": atomic_min, "exch": atomic_xchg,
}  # fmt: skip

_UNSIGNED = ("umax", "umin")

# Pointers.


def _add_pointer(low: Lowering, op: mlir.Operation) -> Pointer:
    return low.pointer(op.operands[0]).plus(low.position(op.operands[1]))


def _to_address(low: Lowering, op: mlir.Operation) -> Value:
    return low.pointer(op.operands[0]).addresses()


def _of_address(low: Lowering, op: mlir.Operation) -> Pointer:
    return Pointer.of_addresses(low.value(op.operands[0]), kind_of(op.results[0]))


# Loads and stores.


def _mask(low: Lowering, mask: mlir.Value | None, shape: Sequence[int]) -> Value | None:
    """A mask in the shape of an access; None if it has none."""
    return None if mask is None else low.value(mask).broadcast(shape)


def _stored(low: Lowering, value: mlir.Value) -> Any:
    """The value that a store writes: truth values as bytes, and pointers as addresses; a constant as a number."""
    kind, item = kind_of(value), low.item(value)
    if isinstance(item, Pointer):
        return item.addresses()
    if isinstance(item, Constant) and item.number is not None:
        return item.value(kind.stored)
    return low.value(value).to(kind.stored)


def _load(low: Lowering, op: mlir.Operation) -> Any:
    view: Any = op.opview
    pointer, kind = low.pointer(view.ptr), kind_of(op.results[0])
    other: Any = None
    if view.other is not None:
        other_item = low.item(view.other)
        is_number = isinstance(other_item, Constant) and other_item.number is not None
        other = other_item.number if is_number else _stored(low, view.other)  # type: ignore[union-attr]
        if isinstance(other, bool):
            other = int(other)
    loaded = load(pointer.pointers(), _mask(low, view.mask, pointer.shape), other)
    return _loaded(loaded.reshape(pointer.shape), kind)


def _loaded(loaded: Value, kind: Any) -> Any:
    if kind.is_pointer:
        return Pointer.of_addresses(loaded.to(element_types.int64), kind)
    return loaded.to(element_types.bool_) if kind.element == "i1" else loaded


def _store(low: Lowering, op: mlir.Operation) -> None:
    view: Any = op.opview
    pointer = low.pointer(view.ptr)
    value, mask = _stored(low, view.value), _mask(low, view.mask, pointer.shape)
    store(pointer.pointers(), value if pointer.shape else value.broadcast((1,)), mask)


# Atomics.


def _lines(pointer: Pointer, *values: Value | None) -> tuple[Pointer, list[Value | None]]:
    """A pointer and values of one element as lines of one: messages have no scalars."""
    if pointer.shape:
        return pointer, [None if v is None else v.broadcast(pointer.shape) for v in values]
    line = Pointer(pointer.memory, pointer.offsets.broadcast((1,)), (1,), pointer.element)
    return line, [None if v is None else v.broadcast((1,)) for v in values]


def _order(view: Any) -> dict[str, str]:
    return {"sem": view.sem.name, "scope": view.scope.name}


@contextmanager
def _ordered(view: Any) -> Iterator[None]:
    """Order an atomic update: `release` comes after the program's earlier accesses, `acquire` before its later ones."""
    scope = "workgroup" if view.scope.name == "cta" else "gpu"
    if view.sem.name in ("release", "acq_rel"):
        fence(scope=scope)
    yield
    if view.sem.name in ("acquire", "acq_rel"):
        fence(scope=scope)


def _atomic(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview
    name, pointer = view.atomic_rmw_op.name, low.pointer(view.ptr)
    shape, value = pointer.shape, low.value(view.val)
    if name in _UNSIGNED:
        pointer, value = _unsigned(pointer, value)
    pointer, (value_, mask) = _lines(pointer, value, _mask(low, view.mask, shape))
    with _ordered(view):
        old_value = _ATOMICS[name](pointer.pointers(), value_, mask)
    return old_value.reshape(shape).to(kind_of(op.results[0]).dtype)


def _unsigned(pointer: Pointer, value: Value) -> tuple[Pointer, Value]:
    """Pointers to integers, and a value for them, without signs."""
    dtype, memory = element_types.integer_of(value.dtype.bits, signed=False), pointer.memory
    retyped = Memory(memory.ir, dtype) if isinstance(memory, Memory) else Array(memory.ir, dtype)
    return pointer.of_type(retyped, pointer.element), value.to(dtype)


def _compare_and_swap(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview
    pointer = low.pointer(view.ptr)
    line, (expected, value) = _lines(pointer, low.value(view.cmp), low.value(view.val))
    with _ordered(view):
        old_value = atomic_cas(line.pointers(), expected, value)
    return old_value.reshape(pointer.shape)


def _atomic_load(low: Lowering, op: mlir.Operation) -> Any:
    view: Any = op.opview
    pointer = low.pointer(view.ptr)
    loaded = atomic_load(pointer.pointers(), _mask(low, view.mask, pointer.shape), **_order(view))
    return _loaded(loaded.reshape(pointer.shape), kind_of(op.results[0]))


def _atomic_store(low: Lowering, op: mlir.Operation) -> None:
    view: Any = op.opview
    pointer, (value, mask) = _lines(
        low.pointer(view.ptr), _stored(low, view.value), _mask(low, view.mask, low.pointer(view.ptr).shape)
    )
    atomic_store(pointer.pointers(), value, mask, **_order(view))


POLL_NANOSECONDS = 1000
"""For the timeout of a poll, a GPU's time of one load."""


def _atomic_poll(low: Lowering, op: mlir.Operation) -> Value:
    """Load until all elements are the expected ones, or until the timeout is over; at least once."""
    view: Any = op.opview
    pointer, expected = low.pointer(view.ptr), low.value(view.expected)
    line, (expected_line,) = _lines(pointer, expected)
    assert expected_line is not None
    order = _order(view)
    index, zero = element_types.index, constant(element_types.index, 0)
    most = None
    if view.timeout is not None:
        most = low.value(view.timeout).to(index) // POLL_NANOSECONDS + 1
    is_equal = constant(element_types.bool_, False, expected_line.shape)
    loop = scf.WhileOp([index.vector(), is_equal.ir.type], [zero.ir, is_equal.ir])
    where = mlir.Location.current
    before = loop.before.blocks.append(index.vector(), is_equal.ir.type, arg_locs=[where, where])
    with BUILDING.inside(before):
        count = Value(before.arguments[0], index)
        comparison = atomic_load(line.pointers(), None, "relaxed", order["scope"]) == expected_line
        waits = ~comparison.all()
        if most is not None:
            waits = waits & (count + 1 < most)
        scf.ConditionOp(waits.ir, [count.ir, comparison.ir])
    after = loop.after.blocks.append(index.vector(), is_equal.ir.type, arg_locs=[where, where])
    with BUILDING.inside(after):
        scf.YieldOp([(Value(after.arguments[0], index) + 1).ir, after.arguments[1]])
    result = Value(loop.results[1], element_types.bool_, line.shape)
    if order["sem"] != "relaxed":
        atomic_load(line.pointers(), None, "acquire", order["scope"])
    return result.reshape(pointer.shape)


# Descriptors.


def _make_descriptor(low: Lowering, op: mlir.Operation) -> Descriptor:
    view: Any = op.opview
    shape = tuple(low.position(v) for v in view.shape)
    # The last stride is 1, as Triton requires.
    strides = (*(low.position(v) for v in list(view.strides)[:-1]), constant(element_types.index, 1))
    padding = math.nan if view.padding.name == "nan" else 0.0
    return Descriptor(low.pointer(view.base), shape, strides, kind_of(op.results[0]).shape, padding)


def descriptor_of(low: Lowering, value: mlir.Value) -> Descriptor:
    """A value that is a descriptor."""
    item = low.item(value)
    assert isinstance(item, Descriptor)
    return item


def _view(descriptor: Descriptor) -> TensorDescriptor | None:
    """The tiles of a descriptor; None if its memory is known by its address only."""
    base = descriptor.base
    if not isinstance(base.memory, Array):
        return None
    strides: list[Any] = [*descriptor.strides[:-1], 1]
    start = base.memory if base.index is None else base.pointers()
    return make_tensor_descriptor(start, descriptor.shape, strides, descriptor.block)


def _positions(low: Lowering, indices: Sequence[mlir.Value]) -> list[Value]:
    return [low.position(v) for v in indices]


def _load_block(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview
    descriptor, offsets = descriptor_of(low, view.desc), _positions(low, view.indices)
    padding = descriptor.padding if descriptor.base.memory.dtype.is_float else 0
    other = padding if padding != 0 else None
    tiles = _view(descriptor)
    if tiles is not None:
        loaded = load(tiles.tile(offsets), None, other)
    else:
        pointer, inside = descriptor.places(descriptor.lines(offsets))
        loaded = load(pointer.pointers(), inside, other)
    return _rounded(descriptor, loaded).reshape(kind_of(op.results[0]).shape)


def _rounded(descriptor: Descriptor, value: Value) -> Value:
    return value.to(element_types.tfloat32).to(element_types.float32) if descriptor.is_rounded else value


def _store_block(low: Lowering, op: mlir.Operation) -> None:
    view: Any = op.opview
    descriptor, offsets = descriptor_of(low, view.desc), _positions(low, view.indices)
    value = _stored(low, view.src).reshape(descriptor.block)
    tiles = _view(descriptor)
    if tiles is not None:
        store(tiles.tile(offsets), value)
    else:
        pointer, inside = descriptor.places(descriptor.lines(offsets))
        store(pointer.pointers(), value, inside)


def _reduce_block(low: Lowering, op: mlir.Operation) -> None:
    view: Any = op.opview
    name = view.kind.name
    if name not in _ATOMICS:
        emit_error(op, f"updates memory by '{name}', which target '{BUILDING.target.name}' does not support")
    descriptor, offsets = descriptor_of(low, view.desc), _positions(low, view.indices)
    pointer, inside = descriptor.places(descriptor.lines(offsets))
    value = low.value(view.src).reshape(descriptor.block)
    if kind_of(view.desc).element.startswith("u"):
        # The signs of `min` and `max` are those of the descriptor's elements.
        pointer, value = _unsigned(pointer, value)
    _ATOMICS[name](pointer.pointers(), value, inside)


def _rows(low: Lowering, view: Any, shape: Sequence[int]) -> tuple[Pointer, Value]:
    """Pointers to parts of rows of a descriptor's tensor, and which of them are in bounds."""
    descriptor = descriptor_of(low, view.desc)
    rows = low.position(view.x_offsets).reshape((-1, 1)).broadcast(shape)
    block = Descriptor(descriptor.base, descriptor.shape, descriptor.strides, tuple(shape), descriptor.padding)
    _, columns = block.lines([constant(element_types.index, 0), low.position(view.y_offset)])
    return descriptor.places([rows, columns.broadcast(shape)])


def _gather_rows(low: Lowering, op: mlir.Operation) -> Value:
    view: Any = op.opview
    shape = kind_of(op.results[0]).shape
    pointer, inside = _rows(low, view, shape)
    descriptor = descriptor_of(low, view.desc)
    padding = descriptor.padding if pointer.memory.dtype.is_float else 0
    loaded = load(pointer.pointers(), inside, padding if padding != 0 else None)
    return _rounded(descriptor, loaded).reshape(shape)


def _scatter_rows(low: Lowering, op: mlir.Operation) -> None:
    view: Any = op.opview
    pointer, inside = _rows(low, view, kind_of(view.src).shape)
    store(pointer.pointers(), _stored(low, view.src), inside)


# The grid, barriers and checks.


def _program(low: Lowering, op: mlir.Operation) -> Value:
    return block_id(op.opview.axis.name)


def _programs(low: Lowering, op: mlir.Operation) -> Value:
    return grid_size(op.opview.axis.name)


def _barrier(low: Lowering, op: mlir.Operation) -> None:
    debug_barrier()


def _nothing(low: Lowering, op: mlir.Operation) -> None:
    """An op that changes nothing: launches follow each other, and promises of programs need not be used."""


def _assert(low: Lowering, op: mlir.Operation) -> None:
    view: Any = op.opview
    # An assertion in the function of a reduction is one of all elements together.
    with BUILDING.elementwise(""):
        device_assert(low.value(view.condition), str(view.message))


def _print(low: Lowering, op: mlir.Operation) -> None:
    """Print a line for each element of each operand, in Triton's format: program, index, prefix, operand, element."""
    view: Any = op.opview
    program = [block_id(axis) for axis in "xyz"]
    where, prefix = "pid (%u, %u, %u)", str(view.prefix).replace("%", "%%")
    if not len(view.args):
        print_each(f"{where}{prefix}\n", *program)
    for number, (operand, is_signed) in enumerate(zip(view.args, view.isSigned)):
        item = low.item(operand)
        value = item.addresses() if isinstance(item, Pointer) else low.value(operand)
        index = [
            arange(n).reshape([n if e == d else 1 for e in range(len(value.shape))]).broadcast(value.shape)
            for d, n in enumerate(value.shape)
        ]
        widths = ", ".join(f"%{_digits(n)}u" for n in value.shape)
        which = f"(operand {number}) " if len(view.args) > 1 else ""
        conversion = _conversion(kind_of(operand), view.hex, bool(is_signed))
        print_each(f"{where} idx ({widths}){prefix}{which}{conversion}\n", *program, *index, value)


def _digits(size: int) -> int | str:
    """The width in which Triton prints the indices of a dimension."""
    return math.ceil(math.log10(size)) or ""


def _conversion(kind: Kind, is_hex: bool, is_signed: bool) -> str:
    """The conversion of printf that Triton uses for an element."""
    if kind.is_pointer:
        return "%p"
    if kind.dtype.is_float:
        return "%a" if is_hex else "%f"
    if is_hex:
        return f"0x%0{kind.dtype.bits // 4}x" if kind.dtype.kind != "bool" else "0x%x"
    return "%d" if is_signed else "%u"


RULES: dict[str, Rule] = {
    "tt.addptr": _add_pointer,
    "tt.ptr_to_int": _to_address,
    "tt.int_to_ptr": _of_address,
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _atomic,
    "tt.atomic_cas": _compare_and_swap,
    "tt.atomic_load": _atomic_load,
    "tt.atomic_store": _atomic_store,
    "tt.atomic_poll": _atomic_poll,
    "tt.make_tensor_descriptor": _make_descriptor,
    "tt.descriptor_load": _load_block,
    "tt.descriptor_store": _store_block,
    "tt.descriptor_reduce": _reduce_block,
    "tt.descriptor_gather": _gather_rows,
    "tt.descriptor_scatter": _scatter_rows,
    "tt.get_program_id": _program,
    "tt.get_num_programs": _programs,
    "tt.assert": _assert,
    "tt.print": _print,
    "tt.grid_dependency_wait": _nothing,
    "tt.grid_dependency_launch_dependents": _nothing,
    "gpu.barrier": _barrier,
    "ttg.barrier": _barrier,
    "llvm.intr.assume": _nothing,
}
"""The rules of ops with effects, by their names."""
