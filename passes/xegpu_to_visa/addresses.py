"""The address of an element: index arithmetic and memrefs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mlir import ir

from xegpu_py.dialects.xegpu.types import is_slm
from xegpu_py.ir.builtin import keeps_bits
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.analysis.ir_queries import (
    byte_memref,
    element_bytes,
    element_of,
    memref_bits,
    register_type,
    view_numbers,
)
from xegpu_py.passes.analysis.target_messages import line_messages
from xegpu_py.passes.xegpu_to_visa.lowering import Lowering, vc_lowering_rule
from xegpu_py.passes.xegpu_to_visa.register_values import Const, MemRefValue, Numbers, Reg, Value, const
from xegpu_py.visa.operands import Guard, Raw
from xegpu_py.visa.spec import DataShape

# `memref`: addresses, and single elements.


def linear_offset(low: Lowering, mem: MemRefValue, indices: Sequence[Numbers]) -> Numbers:
    """The offset of an element from the start of the buffer, in elements."""
    total = mem.offset
    for index, stride in zip(indices, mem.strides):
        total = low.add(total, low.multiply(index, stride))
    return total


def address_of(low: Lowering, mem: MemRefValue, indices: Iterable[ir.Value]) -> tuple[Reg, int]:
    """The address of an element: a register, and the bytes that messages add to it."""
    terms, strides = map(low.affine_term, (mem.offset, *indices)), (low.index(1), *mem.strides)
    return low.element_address(mem.base, terms, strides, element_bytes(mem.element), mem.slm)


def _element_shape(size: int) -> DataShape:
    """One element. A message that is not transposed also reads registers for the addresses of the other lanes."""
    return DataShape({1: "d8c32", 2: "d16c32", 4: "d32", 8: "d64"}[size], transpose=size >= 4)


@vc_lowering_rule("memref.load")
def load(low: Lowering, op: ir.Operation) -> Value:
    """One element."""
    mem = low.handle(op.operands[0], MemRefValue)
    address, offset = address_of(low, mem, list(op.operands)[1:])
    size, name = element_bytes(mem.element), register_type(mem.element)
    data = low.emit.grf_reg({8: "uq"}.get(size, "ud"), 1)
    low.emit.message("lsc_load", _element_shape(size), address, mem.slm, offset=offset, dst=low.emit.raw(data))
    return Reg(low.emit.as_type(data, name).var, 0, 1)


@vc_lowering_rule("memref.store")
def store(low: Lowering, op: ir.Operation) -> None:
    """One element."""
    value, target, *indices = op.operands
    mem = low.handle(target, MemRefValue)
    address, offset = address_of(low, mem, indices)
    size, name = element_bytes(mem.element), register_type(mem.element)
    data = low.emit.grf_reg({8: "uq"}.get(size, "ud"), 1)
    target_reg = Reg(low.emit.as_type(data, name).var, 0, 1)
    low.emit.apply("mov", name, 1, low.numbers(value), into=target_reg)
    low.emit.message("lsc_store", _element_shape(size), address, mem.slm, offset=offset, src0=low.emit.raw(data))


def _static_and_dynamic(low: Lowering, static: Iterable[int], operands: Sequence[ir.Value]) -> list[Numbers]:
    dynamic, dynamic_operands = ir.ShapedType.get_dynamic_size(), iter(operands)
    return [low.numbers(next(dynamic_operands)) if n == dynamic else low.index(n) for n in static]


@vc_lowering_rule("memref.subview", "memref.reinterpret_cast")
def subview(low: Lowering, op: ir.Operation) -> Value:
    """A part of a memref: another offset, shape and strides."""
    mem = low.handle(op.operands[0], MemRefValue)
    offsets, sizes, strides = map(low.index_list, view_numbers(op))
    result = ir.MemRefType(op.results[0].type)
    if op.name == "memref.reinterpret_cast":
        return MemRefValue(mem.base, offsets[0], tuple(sizes), tuple(strides), mem.element, mem.slm)
    offset = linear_offset(low, mem, offsets)
    combined = [low.multiply(a, b) for a, b in zip(strides, mem.strides)]
    dims = _kept_dimensions(low, sizes, result)
    shape, steps = (tuple(group[i] for i in dims) for group in (sizes, combined))
    return MemRefValue(mem.base, offset, shape, steps, mem.element, mem.slm)


def _kept_dimensions(low: Lowering, sizes: Sequence[Numbers], result: ir.MemRefType) -> list[int]:
    """The dimensions that a subview keeps; dropped dimensions have size 1."""
    dropped = len(sizes) - result.rank
    dims: list[int] = []
    for i, size in enumerate(sizes):
        if dropped and size == low.index(1) and (len(dims) >= result.rank or result.shape[len(dims)] != 1):
            dropped -= 1
            continue
        dims.append(i)
    return dims


@vc_lowering_rule("memref.collapse_shape", "memref.expand_shape")
def reshape(low: Lowering, op: ir.Operation) -> Value:
    """Collapse contiguous dimensions, or expand one."""
    mem = low.handle(op.operands[0], MemRefValue)
    result = ir.MemRefType(op.results[0].type)
    groups = [[ir.IntegerAttr(i).value for i in ir.ArrayAttr(g)] for g in ir.ArrayAttr(op.attributes["reassociation"])]
    if op.name == "memref.collapse_shape":
        shape: list[Numbers] = []
        for group in groups:
            extent: Numbers = low.index(1)
            for i in group:
                extent = low.multiply(extent, mem.shape[i])
            shape.append(extent)
        strides = [mem.strides[group[-1]] for group in groups] if groups else []
    else:
        shape = _static_and_dynamic(low, op.attributes["static_output_shape"], list(op.operands)[1:])
        strides = [low.index(1)] * len(shape)
        for group, stride in zip(groups, mem.strides):
            for i in reversed(group):
                strides[i] = stride
                stride = low.multiply(stride, shape[i])
    return MemRefValue(mem.base, mem.offset, tuple(shape), tuple(strides), str(result.element_type), mem.slm)


@vc_lowering_rule("memref.transpose")
def transpose(low: Lowering, op: ir.Operation) -> Value:
    """Permute the dimensions; no element moves."""
    mem = low.handle(op.operands[0], MemRefValue)
    order = [ir.AffineDimExpr(e).position for e in ir.AffineMapAttr(op.attributes["permutation"]).value.results]
    shape, strides = (tuple(group[i] for i in order) for group in (mem.shape, mem.strides))
    return MemRefValue(mem.base, mem.offset, shape, strides, mem.element, mem.slm)


@vc_lowering_rule("memref.cast", "memref.memory_space_cast", "memref.assume_alignment")
def cast(low: Lowering, op: ir.Operation) -> Value | None:
    """The same memref."""
    return low.value(op.operands[0]) if len(op.results) else None


@vc_lowering_rule("builtin.unrealized_conversion_cast")
def unrealized_cast(low: Lowering, op: ir.Operation) -> Value:
    """Lower the `unrealized_conversion_cast`s that are supported.

    - From an i64 address to a memref; dynamic extents are unlimited.
    - From f32 to tf32, which have the same representation in registers.
    - Between integers of one width with another sign, and memrefs of such: the bits stay the same.
    - From an argument with elements of 2 or 4 bits to the memref of bytes in whose form calls pass it.
    """
    result = op.results[0]
    if len(op.operands) == 1 and [str(element_of(v)) for v in (op.operands[0], result)] == ["f32", "tf32"]:
        return low.value(op.operands[0])
    if len(op.operands) == 1 and memref_bits(op.operands[0].type):
        return low.handle(op.operands[0], MemRefValue)
    if len(op.operands) == 1 and keeps_bits(op.operands[0].type, result.type):
        if isinstance(result.type, ir.MemRefType):
            mem = low.handle(op.operands[0], MemRefValue)
            element = str(result.type.element_type)
            return MemRefValue(mem.base, mem.offset, mem.shape, mem.strides, element, mem.slm)
        return low.emit.as_type(low.numbers(op.operands[0]), register_type(str(element_of(result))))
    if len(op.operands) != 1 or not isinstance(result.type, ir.MemRefType):
        low.fail("is supported only to convert an address to a memref, or f32 to tf32", "use one operand of type i64")
    kind = ir.MemRefType(result.type)
    strides, offset = kind.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if unknown in (*strides, offset):
        low.fail(f"result must have known strides and offset, but got {kind}")
    shape = tuple(low.index((1 << 62) if kind.is_dynamic_dim(i) else kind.shape[i]) for i in range(kind.rank))
    slm = is_slm(kind.memory_space)
    base = low.emit.as_type(low.emit.in_registers(low.numbers(op.operands[0])), "q")
    base = low.emit.apply("mov", "ud", 1, base) if slm else low.emit.as_type(base, "uq")
    stride_numbers = tuple(low.index(s) for s in strides)
    return MemRefValue(base, low.index(offset), shape, stride_numbers, str(kind.element_type), slm)


@vc_lowering_rule("memref.dim")
def dim(low: Lowering, op: ir.Operation) -> Value:
    """An extent."""
    index = low.numbers(op.operands[1])
    if not isinstance(index, Const):
        low.fail("requires a constant dimension")
    shape = low.handle(op.operands[0], MemRefValue).shape
    if not 0 <= index.value < len(shape):
        low.fail(f"dimension {index.value} is out of range for a memref of rank {len(shape)}")
    return shape[index.value]


@vc_lowering_rule("memref.extract_aligned_pointer_as_index")
def pointer(low: Lowering, op: ir.Operation) -> Value:
    """The buffer's address."""
    return low.handle(op.operands[0], MemRefValue).base


@vc_lowering_rule("memref.extract_strided_metadata")
def extract_strided_metadata(low: Lowering, op: ir.Operation) -> tuple[Value, ...]:
    """The base, offset, extents and strides of the memref."""
    mem = low.handle(op.operands[0], MemRefValue)
    base = MemRefValue(mem.base, low.index(0), (), (), mem.element, mem.slm)
    return base, mem.offset, *mem.shape, *mem.strides


@vc_lowering_rule("memref.alloc", "memref.alloca")
def allocate(low: Lowering, op: ir.Operation) -> Value:
    """Shared local memory."""
    memref = ir.MemRefType(op.results[0].type)
    if not is_slm(memref.memory_space):
        low.fail("can allocate only shared local memory", "use a memref in memory space 3")
    return allocate_slm(low, memref)


def allocate_slm(low: Lowering, memref: ir.MemRefType) -> MemRefValue:
    """Allocate shared local memory; elements of 2 or 4 bits become bytes."""
    memref = byte_memref(memref) if memref_bits(memref) else memref
    element = str(memref.element_type)
    size = math.prod(memref.shape) * element_bytes(element)
    start = -(-low.slm_bytes // 64) * 64
    low.slm_bytes = start + size
    strides, _ = memref.get_strides_and_offset()
    return MemRefValue(
        const(start, "ud"),
        low.index(0),
        tuple(low.index(n) for n in memref.shape),
        tuple(low.index(s) for s in strides),
        element,
        True,
    )


@vc_lowering_rule("memref.dealloc", "memref.prefetch")
def dealloc(low: Lowering, op: ir.Operation) -> None:
    """Emits nothing: shared local memory is freed at the end of the workgroup, and a prefetch is a hint."""


@vc_lowering_rule("memref.view")
def view(low: Lowering, op: ir.Operation) -> Value:
    """Bytes of a buffer as elements of another type."""
    source, shift, *sizes = op.operands
    mem = low.handle(source, MemRefValue)
    memref = ir.MemRefType(op.results[0].type)
    shape = _static_and_dynamic(low, memref.shape, sizes)
    strides: list[Numbers] = [low.index(1)]
    for n in reversed(shape[1:]):
        strides.insert(0, low.multiply(strides[0], n))
    start = low.numbers(shift)
    base = low.address(mem.base, start, 1, mem.slm)
    return MemRefValue(base, low.index(0), tuple(shape), tuple(strides), str(memref.element_type), mem.slm)


# Accesses to consecutive bytes by messages of one lane. An address is in a register, plus a constant in bytes.


def load_line(low: Lowering, address: tuple[Reg, int], slm: bool, caches: str, count: int, name: str) -> Reg:
    """Load `count` numbers of vISA's type `name`, which one message moves, into new registers."""
    ((_, shape),) = line_messages(count * TYPES[name].bytes)
    result = low.emit.grf_reg(name, count)
    low.emit.message("lsc_load", shape, address[0], slm, offset=address[1], caches=caches, dst=low.emit.raw(result))
    return result


def store_line(
    low: Lowering, address: tuple[Reg, int], slm: bool, caches: str, value: Reg, guard: Guard | None = None
) -> None:
    """Store numbers, if the guard's predicate is set."""
    for at, shape in line_messages(value.count * value.format.bytes):
        start = value.first * value.format.bytes + at
        size = shape.vector * shape.memory_bytes
        root = value.var.root
        is_payload = (root[1] + start) % low.target.grf_bytes == 0 and shape.transpose and root[0].align == "GRF"
        data = value if is_payload else low.emit.grf_reg("ud", max(shape.vector, 1))
        if not is_payload:
            _move_bytes(low, Reg(value.var, 0, 1), start, data, 0, size)
        source = Raw(data.var, start if is_payload else 0)
        address_reg, offset = address
        low.emit.message(
            "lsc_store", shape, address_reg, slm, offset=offset + at, guard=guard, caches=caches, src0=source
        )


def prefetch_line(low: Lowering, address: tuple[Reg, int], caches: str, size: int) -> None:
    """Prefetch `size` bytes, which one message moves, into the caches."""
    ((_, shape),) = line_messages(size)
    low.emit.message("lsc_load", shape, address[0], offset=address[1], caches=caches, dst=Raw(None))


def _move_bytes(low: Lowering, source: Reg, source_at: int, to: Reg, to_at: int, size: int) -> None:
    unit = next(n for n in (4, 2, 1) if size % n == 0 and to_at % n == 0 and source_at % n == 0)
    name = {4: "ud", 2: "uw", 1: "ub"}[unit]
    a, b = low.emit.as_type(Reg(source.var, 0, 1), name), low.emit.as_type(Reg(to.var, 0, 1), name)
    part = Reg(a.var, source_at // unit, size // unit)
    low.emit.apply("mov", name, size // unit, part, into=Reg(b.var, to_at // unit, size // unit))
