"""`memref` and `vector`: accesses of lanes become gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.checks import is_slm
from xegpu_py.dialects.xegpu.types import CHUNK_SIZES
from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.elements import message_element, no_messages, with_index, without_index
from xegpu_py.passes.common.messages import pieces
from xegpu_py.passes.common.ops import clone
from xegpu_py.passes.common.values import shape_of
from xegpu_py.passes.xegpu_simt_to_vc.widen import Widener, elementwise, pattern


def offsets(w: Widener, memref: ir.Value, indices: Sequence[ir.Value], added: Sequence[int] = ()) -> ir.Value:
    """vector of index: the offset of each lane's element from the memref's first, in elements.

    Args:
        memref: a memref of the subgroup.
        indices: the work items' indices.
        added: constants to add to the indices.
    """
    kind = w.vector(build.index_type())
    terms: list[ir.Value] = []
    known = 0
    for i, (place, more) in enumerate(zip(indices, added or [0] * len(indices))):
        stride, own = build.stride_of(memref, i), w.wide(place)
        if isinstance(stride, int):
            known += more * stride
            terms.append(build.multiply(own, stride))
        else:
            terms.append(build.multiply(build.add(own, more), build.broadcast(stride, kind)))
    return build.add(*terms, known) if terms else build.constant(kind, known)


def lanes_of(w: Widener, memref: ir.Value, places: ir.Value, chunk: int = 1) -> ir.Value:
    """A scattered descriptor of `chunk` elements for each lane."""
    kind = ir.MemRefType(memref.type)
    element = message_element(kind.element_type)
    if element is None:
        w.fail(*no_messages(kind.element_type))
    scope = "memory_scope = slm, " if is_slm(kind.memory_space) else ""
    shape = f"{w.lanes}x{chunk}" if chunk > 1 else f"{w.lanes}"
    tdesc = f"!xegpu.tensor_desc<{shape}x{element}, #xegpu.tdesc_attr<{scope}scattered = true>>"
    return xegpu.create_tdesc(memref, places, tdesc=tdesc, mode="vc", chunk_size_per_lane=chunk)


def gather_elements(w: Widener, memref: ir.Value, places: ir.Value, mask: ir.Value, chunk: int = 1) -> ir.Value:
    """Load the elements of the lanes whose mask bit is set."""
    found = xegpu.load_gather(lanes_of(w, memref, places, chunk), mask, mode="vc")
    return with_index(found, ir.MemRefType(memref.type).element_type)


def scatter_elements(
    w: Widener, value: ir.Value, memref: ir.Value, places: ir.Value, mask: ir.Value, chunk: int = 1
) -> None:
    """Store the elements of the lanes whose mask bit is set."""
    xegpu.store_scatter(without_index(value), lanes_of(w, memref, places, chunk), mask, mode="vc")


@pattern("memref.load")
def load(w: Widener, op: ir.Operation) -> None:
    """One element for all, or a gather."""
    memref, *indices = op.operands
    if w.kept(op):
        return
    source = w.uniform(memref)
    w.widen(op, gather_elements(w, source, offsets(w, source, indices), w.active()))


@pattern("memref.store")
def store(w: Widener, op: ir.Operation) -> None:
    """A scatter; if the location is uniform, only one lane stores."""
    value, memref, *indices = op.operands
    if w.kept(op):
        return
    source = w.uniform(memref)
    scatter_elements(w, w.wide(value), source, offsets(w, source, indices), w.active())
    w.erase(op)


@pattern("memref.atomic_rmw")
def atomic_rmw(w: Widener, op: ir.Operation) -> None:
    """Each lane's own."""
    value, memref, *indices = op.operands
    source = w.uniform(memref)
    tdesc = lanes_of(w, source, offsets(w, source, indices))
    kind = AtomicRMWKind(int(ir.IntegerAttr(op.attributes["kind"]).value))
    w.widen(op, xegpu.atomic_rmw(kind, w.wide(value), tdesc, w.active(), mode="vc"))


@pattern("memref.generic_atomic_rmw")
def generic_atomic_rmw(w: Widener, op: ir.Operation) -> None:
    """Execute lane by lane, because XeGPU has no compare and swap, which a region needs."""
    memref, *indices = op.operands
    body, result = op.regions[0].blocks[0], op.results[0]
    inner = walk(op)[1:]
    for found in inner:
        if found.name.startswith("gpu."):
            w.fail(f"has {found.name} in its region", "compute the value before the op")
    own = {v for o in inner for v in o.results}
    own |= {a for o in (op, *inner) for block in blocks_in(o) for a in block.arguments}
    used = dict.fromkeys(v for o in inner for v in o.operands if v not in own)
    source = w.uniform(memref)
    values = {v: w.wide(v) if w.varies(v) else None for v in dict.fromkeys((*indices, *used))}
    found = build.constant(w.vector(result.type), 0)

    def nothing() -> list[ir.Value]:
        return [build.constant(result.type, 0)]

    for lane in range(w.lanes):

        def update(lane: int = lane) -> list[ir.Value]:
            mine = {v: w.uniform(v) if wide is None else _of_lane(w, wide, v, lane) for v, wide in values.items()}
            made = build.create(
                "memref.generic_atomic_rmw", [result.type], [source, *(mine[i] for i in indices)], {}, 1
            )
            block = ir.Block.create_at_start(made.regions[0], [result.type])
            mine[body.arguments[0]] = block.arguments[0]
            with ir.InsertionPoint(block):
                for old in body.operations:
                    clone(old.operation, mine)
            return list(made.results)

        if w.mask is None:
            (before,) = update()
        else:
            (before,) = build.if_(build.extract(w.mask, [lane]), [result.type], update, nothing)
        found = build.insert(before, found, [lane])
    w.widen(op, found)


def _of_lane(w: Widener, wide: ir.Value, value: ir.Value, lane: int) -> ir.Value:
    """One lane's value of a scalar."""
    if shape_of(value):
        w.fail(f"uses a value of type {value.type} in its region", "extract the elements before the op")
    return build.extract(wide, [lane])


@pattern("memref.alloca", "memref.alloc")
def allocate(w: Widener, op: ir.Operation) -> None:
    """Allocate the workgroup's shared memory."""
    if not is_slm(ir.MemRefType(op.results[0].type).memory_space):
        w.fail("private memory of a work item is not supported", "use shared local memory, which is memory space 3")
    w.keep(op)


def read_lanes(
    w: Widener, source: ir.Value, indices: Sequence[ir.Value], added: Sequence[int], count: int, mask: ir.Value
) -> ir.Value:
    """Load `count` elements along the innermost dimension for each lane, [count, lanes]."""
    parts = []
    for first, chunk in pieces(count, CHUNK_SIZES):
        places = offsets(w, source, indices, [*added[:-1], added[-1] + first])
        value = gather_elements(w, source, places, mask, chunk)
        parts.append((first, build.shape_cast(value, (chunk, w.lanes))))
    if len(parts) == 1:
        return parts[0][1]
    result = build.constant(build.vector_type((count, w.lanes), ir.MemRefType(source.type).element_type), 0)
    for first, value in parts:
        result = build.insert_slice(value, result, [first, 0])
    return result


def write_lanes(
    w: Widener, value: ir.Value, target: ir.Value, indices: Sequence[ir.Value], added: Sequence[int], mask: ir.Value
) -> None:
    """Store each lane's elements, [count, lanes], along the innermost dimension."""
    for first, chunk in pieces(shape_of(value)[0], CHUNK_SIZES):
        places = offsets(w, target, indices, [*added[:-1], added[-1] + first])
        part = build.extract_slice(value, [first, 0], [chunk, w.lanes])
        part = build.shape_cast(part, (chunk, w.lanes) if chunk > 1 else (w.lanes,))
        scatter_elements(w, part, target, places, mask, chunk)


def _rows(shape: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(map(int, r)) for r in np.ndindex(*shape[:-1])]


@pattern("vector.load")
def vector_load(w: Widener, op: ir.Operation) -> None:
    """Rows of consecutive elements."""
    memref, *indices = op.operands
    w.widen(op, read_rows(w, w.uniform(memref), indices, shape_of(op.results[0]), w.active()))


def read_rows(
    w: Widener, source: ir.Value, indices: Sequence[ir.Value], shape: tuple[int, ...], mask: ir.Value
) -> ir.Value:
    """Load vectors of this shape for each lane, [*shape, lanes], whose rows are consecutive elements."""
    if not shape:
        return gather_elements(w, source, offsets(w, source, indices), mask)
    outer = len(indices) - len(shape)
    result: ir.Value | None = None
    for row in _rows(shape):
        found = read_lanes(w, source, indices, [*[0] * outer, *row, 0], shape[-1], mask)
        if not row:
            return found
        if result is None:
            result = build.constant(build.vector_type((*shape, w.lanes), ir.MemRefType(source.type).element_type), 0)
        result = build.insert(found, result, row)
    assert result is not None
    return result


@pattern("vector.store")
def vector_store(w: Widener, op: ir.Operation) -> None:
    """Rows of consecutive elements."""
    value, memref, *indices = op.operands
    write_rows(w, w.wide(value), w.uniform(memref), indices, shape_of(value), w.active())
    w.erase(op)


def write_rows(
    w: Widener,
    data: ir.Value,
    target: ir.Value,
    indices: Sequence[ir.Value],
    shape: tuple[int, ...],
    mask: ir.Value,
) -> None:
    """Store vectors of this shape, given as [*shape, lanes], as rows of consecutive elements."""
    if not shape:
        scatter_elements(w, data, target, offsets(w, target, indices), mask)
        return
    outer = len(indices) - len(shape)
    for row in _rows(shape):
        write_lanes(w, build.extract(data, row), target, indices, [*[0] * outer, *row, 0], mask)


@pattern(
    "memref.dim", "memref.cast", "memref.subview", "memref.view", "memref.reinterpret_cast", "memref.transpose",
    "memref.get_global", "memref.expand_shape", "memref.collapse_shape", "memref.memory_space_cast",
)  # fmt: skip
def view(w: Widener, op: ir.Operation) -> None:
    """Memrefs are uniform in the subgroup."""
    w.keep(op)


@pattern("memref.prefetch")
def prefetch(w: Widener, op: ir.Operation) -> None:
    """Removed: a prefetch of an element is a hint."""


@pattern("builtin.unrealized_conversion_cast")
def conversion(w: Widener, op: ir.Operation) -> None:
    """A memref at an address is uniform; numbers cast from f32 to tf32 may vary."""
    if isinstance(op.results[0].type, ir.MemRefType):
        w.keep(op)
    elif not w.kept(op):
        elementwise(w, op)
