"""`vector-to-xegpu`: vector's own loads and stores, and memref's atomics, become XeGPU's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.types import LANES
from xegpu_py.ir.bindings import AtomicRMWKind
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Contents, Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import (
    SUBGROUP_SIZE,
    chosen_kernels,
    element_of,
    shape_of,
)
from xegpu_py.passes.analysis.target_messages import message_sizes
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.memory_access import MemrefElements, Transfer, lane_offsets
from xegpu_py.passes.rewriting.rewriter import Rewriter, Rule, Rules

rule: Rules[Rule[Accesses]] = Rules()
"""The rules by op name: each makes the accesses that replace an op."""


class Accesses(Rewriter):
    """Replaces the accesses of a kernel."""

    rules = rule


@register_pass("vector-to-xegpu")
class VectorToXeGPU(Pass):
    """Lower memory accesses of vectors to XeGPU.

    In kernels of subgroups, accesses of the vector dialect and memref.atomic_rmw become blocks, gathers and scatters.
    The pass rewrites load, store, maskedload, maskedstore, gather, scatter, transfer_read and transfer_write. Accesses
    of rows of consecutive elements become 1D blocks. Accesses that have a mask, may reach out of bounds, or have a
    stride become gathers or scatters. An atomic update of an element has a single lane. Kernels of work items are
    lowered by `xegpu-simt-to-vc` instead.

        %v = vector.load %m[%i, %j] : memref<?x64xf32>, vector<16xf32>
        %g = vector.gather %m[%i, %j] [%places], %mask, %v : memref<?x64xf32>, ... into vector<16xf32>

    becomes

        %row = memref.subview %m[%i, %j] [1, 16] [1, 1] : memref<?x64xf32> to memref<16xf32, strided<[1], offset: ?>>
        %block = xegpu.create_nd_tdesc %row[0] {mode = vc} : ... -> !xegpu.tensor_desc<16xf32, ...>
        %v = xegpu.load_nd %block {mode = vc} : !xegpu.tensor_desc<16xf32, ...> -> vector<16xf32>
        %lanes = xegpu.create_tdesc %m, %offsets {mode = vc} : ... -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
        %h = xegpu.load_gather %lanes, %mask {mode = vc} : ... -> vector<16xf32>
        %g = arith.select %mask, %h, %v : vector<16xi1>, vector<16xf32>
    """

    kernel: str = ""

    def concerns(self, contents: Contents) -> bool:
        return not contents.names.isdisjoint(rule)

    def run(self, op: ir.Operation) -> None:
        for func in chosen_kernels(op, self.kernel):
            if SUBGROUP_SIZE not in func.attributes:
                accesses = Accesses()
                for inner in walk(func):
                    accesses.op(inner)


# The accesses of memory that `vector-to-xegpu` rewrites, and what each becomes.

Order = npt.NDArray[np.int64]


def _spread(value: ir.Value, count: int) -> ir.Value:
    return build.broadcast(value, build.vector_type((count,), value.type))


class _Memref(MemrefElements):
    """A memref whose elements are accessed at indices that are given."""

    def __init__(self, accesses: Accesses, value: ir.Value, indices: Sequence[ir.Value]) -> None:
        super().__init__(value, accesses.fail)
        self.indices = list(indices)

    @property
    def rank(self) -> int:
        """Dimensions."""
        return len(self.indices)

    def line(self, added: Sequence[int], count: int) -> ir.Value:
        """The descriptor of consecutive elements, from the indices and what is added to them."""
        offsets = [build.index(build.add(i, a)) for i, a in zip(self.indices, added)]
        row = build.subview(self.memref, offsets, [*[1] * (self.rank - 1), count], 1)
        return xegpu.create_nd_tdesc(row, [0], tdesc=self.desc((count,), boundary_check=False), mode="vc")

    def offsets(self, added: Sequence[ir.Value | Order], count: int) -> ir.Value:
        """The offsets of `count` elements: the indices, and for each dimension what is added to them."""
        lanes = lane_offsets(count, added, self.strides)
        base = build.add(*map(build.multiply, self.indices, self.strides))
        return build.add(lanes, build.index_splat(base, count)) if self.indices else lanes


@rule("vector.load")
def _load(accesses: Accesses, op: ir.Operation) -> ir.Value:
    memory = _Memref(accesses, op.operands[0], list(op.operands)[1:])
    return _read_rows(memory, shape_of(op.results[0]))


def _read_rows(memory: _Memref, shape: tuple[int, ...]) -> ir.Value:
    if not shape:
        one = build.make("memref.load", memory.element, memory.memref, *memory.indices)
        return build.broadcast(one, build.vector_type((), memory.element))
    outer = memory.rank - len(shape)
    rows = [(*r, 0) for r in np.ndindex(*shape[:-1])]
    loads = [xegpu.load_nd(memory.line([*[0] * outer, *map(int, row)], shape[-1]), mode="vc") for row in rows]
    parts = [build.index_from_memory(v, memory.element) for v in loads]
    if len(parts) == 1:
        return build.shape_cast(parts[0], shape)
    block = build.constant(build.vector_type(shape, memory.element), 0)
    for row, part in zip(rows, parts):
        block = build.insert(part, block, row[:-1])
    return block


@rule("vector.store")
def _store(accesses: Accesses, op: ir.Operation) -> None:
    memory = _Memref(accesses, op.operands[1], list(op.operands)[2:])
    _write_rows(memory, op.operands[0])
    accesses.replace(op)


def _write_rows(memory: _Memref, value: ir.Value) -> None:
    shape = shape_of(value)
    if not shape:
        build.create("memref.store", [], [build.extract(value, []), memory.memref, *memory.indices])
        return
    outer = memory.rank - len(shape)
    for row in np.ndindex(*shape[:-1]):
        part = build.index_to_memory(build.extract(value, row))
        xegpu.store_nd(part, memory.line([*[0] * outer, *map(int, row), 0], shape[-1]), mode="vc")


def _consecutive(memory: _Memref, count: int) -> ir.Value:
    return memory.offsets([*[np.zeros(count, np.int64)] * (memory.rank - 1), np.arange(count)], count)


@rule("vector.maskedload")
def _masked_load(accesses: Accesses, op: ir.Operation) -> ir.Value:
    source, *indices, mask, otherwise = op.operands
    memory = _Memref(accesses, source, indices)
    return _gathered(memory, _consecutive(memory, shape_of(mask)[0]), mask, otherwise)


def _gathered(memory: _Memref, offsets: ir.Value, mask: ir.Value, otherwise: ir.Value) -> ir.Value:
    result = otherwise
    for first, size in message_sizes(shape_of(mask)[0], LANES):
        at, active, other = (build.extract_slice(v, [first], [size]) for v in (offsets, mask, otherwise))
        loaded = build.select(active, memory.gather(at, active), other)
        result = build.insert_slice(loaded, result, [first])
    return result


def _scattered(memory: _Memref, value: ir.Value, offsets: ir.Value, mask: ir.Value) -> None:
    for first, size in message_sizes(shape_of(mask)[0], LANES):
        part, at, active = (build.extract_slice(v, [first], [size]) for v in (value, offsets, mask))
        memory.scatter(part, at, active)


@rule("vector.maskedstore")
def _masked_store(accesses: Accesses, op: ir.Operation) -> None:
    target, *indices, mask, value = op.operands
    memory = _Memref(accesses, target, indices)
    _scattered(memory, value, _consecutive(memory, shape_of(mask)[0]), mask)
    accesses.replace(op)


def _places(memory: _Memref, value: ir.Value) -> tuple[ir.Value, int]:
    """Offsets of a gather or scatter, whose indices are along the innermost dimension."""
    shape = shape_of(value)
    count = math.prod(shape)
    flat = build.shape_cast(value, (count,))
    if not isinstance(element_of(flat), ir.IndexType):
        flat = build.make("arith.index_cast", build.with_element(flat.type, build.index_type()), flat)
    return memory.offsets([*[np.zeros(count, np.int64)] * (memory.rank - 1), flat], count), count


@rule("vector.gather")
def _gather(accesses: Accesses, op: ir.Operation) -> ir.Value:
    source, *indices, lane_indices, mask, otherwise = op.operands
    memory = _Memref(accesses, source, indices)
    offsets, count = _places(memory, lane_indices)
    gathered = _gathered(memory, offsets, build.shape_cast(mask, (count,)), build.shape_cast(otherwise, (count,)))
    return build.shape_cast(gathered, shape_of(op.results[0]))


@rule("vector.scatter")
def _scatter(accesses: Accesses, op: ir.Operation) -> None:
    target, *indices, lane_indices, mask, value = op.operands
    memory = _Memref(accesses, target, indices)
    offsets, count = _places(memory, lane_indices)
    _scattered(memory, build.shape_cast(value, (count,)), offsets, build.shape_cast(mask, (count,)))
    accesses.replace(op)


@rule("memref.atomic_rmw")
def _atomic(accesses: Accesses, op: ir.Operation) -> ir.Value:
    value, target, *indices = op.operands
    memory = _Memref(accesses, target, indices)
    offsets = memory.offsets([np.zeros(1, np.int64)] * memory.rank, 1)
    one = build.all_set(1)
    kind = AtomicRMWKind(ir.IntegerAttr(op.attributes["kind"]).value)
    previous = xegpu.atomic_rmw(kind, _spread(value, 1), memory.lanes(offsets), one, mode="vc")
    return build.extract(previous, [0])


def _elements(memory: _Memref, transfer: Transfer) -> tuple[ir.Value, ir.Value, int]:
    """The offsets of all elements in row-major order, which of them are accessed, and how many there are."""
    shape = shape_of(transfer.vector)
    count = math.prod(shape)
    added = [np.zeros(count, np.int64) for _ in range(memory.rank)]
    positions = np.indices(shape).reshape(len(shape), count)
    active = None if transfer.mask is None else _active(transfer, transfer.mask, positions)
    for i, d in enumerate(transfer.dimensions):
        if d is None:
            continue
        added[d] = positions[i]
        if transfer.in_bounds[i]:
            continue
        extent = build.make("memref.dim", build.index_type(), memory.memref, build.index(d))
        remaining = build.binary("subi", extent, memory.indices[d])
        inside = build.compare("slt", build.index_vector(positions[i]), _spread(remaining, count))
        active = inside if active is None else build.binary("andi", active, inside)
    if active is None:
        active = build.all_set(count)
    return memory.offsets(added, count), active, count


def _active(transfer: Transfer, mask: ir.Value, positions: Order) -> ir.Value:
    """The elements that a mask leaves, in row-major order."""
    flat, order = build.shape_cast(mask, (math.prod(shape_of(mask)),)), transfer.mask_dims
    if not order:
        # It has one element, for all.
        return build.permute(flat, np.zeros(positions.shape[1], np.int64))
    shape = shape_of(transfer.vector)
    return build.permute(flat, np.ravel_multi_index(tuple(positions[i] for i in order), tuple(shape[i] for i in order)))


@rule("vector.transfer_read")
def _transfer_read(accesses: Accesses, op: ir.Operation) -> ir.Value:
    transfer = Transfer(op)
    result = transfer.vector
    memory = _Memref(accesses, transfer.memref, transfer.indices)
    if not shape_of(result) or transfer.moves_whole_rows():
        return _read_rows(memory, shape_of(result))
    offsets, active, count = _elements(memory, transfer)
    assert transfer.padding is not None
    gathered = _gathered(memory, offsets, active, _spread(transfer.padding, count))
    return build.shape_cast(gathered, shape_of(result))


@rule("vector.transfer_write")
def _transfer_write(accesses: Accesses, op: ir.Operation) -> None:
    transfer = Transfer(op)
    value = transfer.vector
    memory = _Memref(accesses, transfer.memref, transfer.indices)
    if not shape_of(value) or transfer.moves_whole_rows():
        _write_rows(memory, value)
    else:
        offsets, active, count = _elements(memory, transfer)
        _scattered(memory, build.shape_cast(value, (count,)), offsets, active)
    accesses.replace(op)
