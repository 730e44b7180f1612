"""`memref` and `vector`: each lane's own elements of memory are gathered and scattered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.checks import is_slm
from xegpu_py.dialects.xegpu.types import CHUNK_SIZES
from xegpu_py.passes.xegpu_simt_to_vc.widen import (
    Held,
    Widener,
    element_of,
    ordered,
    shape_of,
    vector_text,
    widens,
)

from xegpu_py.ir.verifier import walk


def _stride(w: Widener, memref: ir.Value, dimension: int) -> ir.Value | int:
    """A memref's stride in elements."""
    kind = ir.MemRefType(memref.type)
    strides, _ = kind.get_strides_and_offset()
    if strides[dimension] != ir.ShapedType.get_dynamic_stride_or_offset():
        return int(strides[dimension])
    rank = kind.rank
    base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
    index = ir.IndexType.get()
    made = w.create("memref.extract_strided_metadata", [base, index, *[index] * (2 * rank)], [memref])
    return made.results[2 + rank + dimension]


def offsets(w: Widener, memref: ir.Value, indices: Sequence[ir.Value], added: Sequence[int] = ()) -> ir.Value:
    """vector of index: the place of each lane's element, counted from the memref's first.

    Args:
        memref: a memref of the subgroup.
        indices: the work items' indices.
        added: constants to add to the indices.
    """
    kind = f"vector<{w.lanes}xindex>"
    total: ir.Value | None = None
    constant = 0
    for i, index in enumerate(indices):
        stride = _stride(w, memref, i)
        more = added[i] if added else 0
        place = w.wide(index)
        if more and not isinstance(stride, int):
            place = w.make("arith.addi", kind, place, w.splat(more, "index"))
        if isinstance(stride, int):
            constant += more * stride
            scaled = place if stride == 1 else w.make("arith.muli", kind, place, w.splat(stride, "index"))
        else:
            scaled = w.make("arith.muli", kind, place, w.make("vector.broadcast", kind, stride))
        total = scaled if total is None else w.make("arith.addi", kind, total, scaled)
    if total is None:
        return w.splat(constant, "index")
    return w.make("arith.addi", kind, total, w.splat(constant, "index")) if constant else total


def lanes_of(w: Widener, memref: ir.Value, places: ir.Value, chunk: int = 1) -> ir.Value:
    """A scattered descriptor of `chunk` elements for each lane."""
    kind = ir.MemRefType(memref.type)
    scope = "memory_scope = slm, " if is_slm(kind.memory_space) else ""
    shape = f"{w.lanes}x{chunk}" if chunk > 1 else f"{w.lanes}"
    tdesc = f"!xegpu.tensor_desc<{shape}x{kind.element_type}, #xegpu.tdesc_attr<{scope}scattered = true>>"
    return xegpu.create_tdesc(memref, places, tdesc=tdesc, mode="vc", chunk_size_per_lane=chunk)


def _uniform_place(w: Widener, indices: Sequence[ir.Value]) -> bool:
    return not any(w.varies(i) for i in indices)


@widens("memref.load")
def load(w: Widener, op: ir.Operation) -> None:
    """One element for all, or a gather."""
    memref, *indices = op.operands
    if _uniform_place(w, indices):
        w.keep(op)
        return
    source = w.uniform(memref)
    tdesc = lanes_of(w, source, offsets(w, source, indices))
    w.set(op.results[0], xegpu.load_gather(tdesc, w.active(), mode="vc"))


@widens("memref.store")
def store(w: Widener, op: ir.Operation) -> None:
    """A scatter; of the same place in all lanes, of one lane."""
    value, memref, *indices = op.operands
    if _uniform_place(w, indices) and not w.varies(value):
        w.keep(op)
        return
    source = w.uniform(memref)
    tdesc = lanes_of(w, source, offsets(w, source, indices))
    xegpu.store_scatter(w.wide(value), tdesc, w.active(), mode="vc")


@widens("memref.atomic_rmw")
def atomic_rmw(w: Widener, op: ir.Operation) -> None:
    """Each lane's own."""
    value, memref, *indices = op.operands
    source = w.uniform(memref)
    tdesc = lanes_of(w, source, offsets(w, source, indices))
    kind = AtomicRMWKind(int(ir.IntegerAttr(op.attributes["kind"]).value))
    w.set(op.results[0], xegpu.atomic_rmw(kind, w.wide(value), tdesc, w.active(), mode="vc"))


@widens("memref.generic_atomic_rmw")
def generic_atomic_rmw(w: Widener, op: ir.Operation) -> None:
    """One lane after the other: XeGPU has no compare and swap of lanes, which a region needs."""
    memref, *indices = op.operands
    body, result = op.regions[0].blocks[0], op.results[0]
    inner = [o for o in walk(op) if o is not op]
    for found in inner:
        if found.name.startswith("gpu."):
            w.fail(f"has {found.name} in its region", "compute it before, and use the value")
    own = {v for o in inner for v in o.results} | {
        a for o in (op, *inner) for r in o.regions for b in r.blocks for a in b.arguments
    }
    used = dict.fromkeys(v for o in inner for v in o.operands if v not in own)
    source, kind = w.uniform(memref), vector_text((w.lanes,), str(result.type))
    values = {v: w.wide(v) if w.varies(v) else None for v in dict.fromkeys((*indices, *used))}
    found = w.splat(0.0 if isinstance(result.type, ir.FloatType) else 0, str(result.type))
    for lane in range(w.lanes):
        place = ordered(np.array([lane]))
        active = None if w.mask is None else w.make("vector.extract", "i1", w.mask, static_position=place)

        def update(place: str = place) -> ir.Value:
            mine = {
                v: w.held[v].value if wide is None else _of_lane(w, wide, v.type, place) for v, wide in values.items()
            }
            made = w.create("memref.generic_atomic_rmw", [result.type], [source, *(mine[i] for i in indices)], {}, 1)
            block = ir.Block.create_at_start(made.regions[0], [result.type])
            mine[body.arguments[0]] = block.arguments[0]
            for old in body.operations:
                new = old.operation.clone(ip=ir.InsertionPoint(block))
                mine.update(zip(old.operation.results, new.operation.results))
                for each in walk(new.operation):
                    for i, operand in enumerate(each.operands):
                        if operand in mine:
                            each.operands[i] = mine[operand]
            return made.results[0]

        if active is None:
            before = update()
        else:
            before = _if(w, active, result.type, update)
        found = w.make("vector.insert", kind, before, found, static_position=place)
    w.set(result, found)


def _of_lane(w: Widener, wide: ir.Value, kind: ir.Type, place: str) -> ir.Value:
    """A lane's own value, of a scalar."""
    if shape_of(kind):
        w.fail(f"uses a value of type {kind} in its region", "extract the elements before")
    return w.make("vector.extract", kind, wide, static_position=place)


def _if(w: Widener, condition: ir.Value, kind: ir.Type, then: Callable[[], ir.Value]) -> ir.Value:
    """A value where a condition is true, else zero."""
    made = w.create("scf.if", [kind], [condition], {}, 2)
    for region, value in zip(
        made.regions, (then, lambda: w.constant(0.0 if isinstance(kind, ir.FloatType) else 0, str(kind)))
    ):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            w.create("scf.yield", [], [value()])
    return made.results[0]


@widens("memref.alloca", "memref.alloc")
def allocate(w: Widener, op: ir.Operation) -> None:
    """The workgroup's shared memory."""
    if not is_slm(ir.MemRefType(op.results[0].type).memory_space):
        w.fail("is memory of one work item, of which a subgroup has none", "use shared memory, of space 3")
    w.keep(op)


def _chunks(count: int) -> list[tuple[int, int]]:
    """(first element, elements) of the messages that move consecutive elements."""
    found, at = [], 0
    while at < count:
        size = max(c for c in CHUNK_SIZES if c <= count - at)
        found.append((at, size))
        at += size
    return found


def read_lanes(
    w: Widener, source: ir.Value, indices: Sequence[ir.Value], added: Sequence[int], count: int, mask: ir.Value
) -> ir.Value:
    """`count` elements along the innermost dimension for each lane, [count, lanes]."""
    element = str(ir.MemRefType(source.type).element_type)
    parts = []
    for first, chunk in _chunks(count):
        places = offsets(w, source, indices, [*added[:-1], added[-1] + first])
        value = xegpu.load_gather(lanes_of(w, source, places, chunk), mask, mode="vc")
        parts.append((first, chunk, w.reshape(value, (chunk, w.lanes), element)))
    if len(parts) == 1:
        return parts[0][2]
    kind = vector_text((count, w.lanes), element)
    result = w.make("arith.constant", kind, value=f"dense<{'0.0' if element[0] in 'fbt' else '0'}> : {kind}")
    for first, _, value in parts:
        result = w.make("vector.insert_strided_slice", kind, value, result, offsets=f"[{first}, 0]", strides="[1, 1]")
    return result


def write_lanes(
    w: Widener, value: ir.Value, target: ir.Value, indices: Sequence[ir.Value], added: Sequence[int], mask: ir.Value
) -> None:
    """Store each lane's elements, [count, lanes], along the innermost dimension."""
    element = str(ir.MemRefType(target.type).element_type)
    count = shape_of(value.type)[0]
    for first, chunk in _chunks(count):
        places = offsets(w, target, indices, [*added[:-1], added[-1] + first])
        kind = vector_text((chunk, w.lanes), element)
        part = w.make(
            "vector.extract_strided_slice",
            kind,
            value,
            offsets=f"[{first}, 0]",
            sizes=f"[{chunk}, {w.lanes}]",
            strides="[1, 1]",
        )
        part = w.reshape(part, (chunk, w.lanes) if chunk > 1 else (w.lanes,), element)
        xegpu.store_scatter(part, lanes_of(w, target, places, chunk), mask, mode="vc")


def _rows(shape: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(map(int, r)) for r in np.ndindex(*shape[:-1])]


@widens("vector.load")
def vector_load(w: Widener, op: ir.Operation) -> None:
    """Rows of consecutive elements."""
    memref, *indices = op.operands
    if _uniform_place(w, indices):
        w.keep(op)
        return
    result = op.results[0]
    w.set(result, read_rows(w, w.uniform(memref), indices, shape_of(result.type), w.active()))


def read_rows(
    w: Widener, source: ir.Value, indices: Sequence[ir.Value], shape: tuple[int, ...], mask: ir.Value
) -> ir.Value:
    """Vectors of this shape for each lane, [*shape, lanes], whose rows are consecutive elements."""
    element = str(ir.MemRefType(source.type).element_type)
    outer = len(indices) - len(shape)
    kind = vector_text((*shape, w.lanes), element)
    result: ir.Value | None = None
    for row in _rows(shape):
        found = read_lanes(w, source, indices, [*[0] * outer, *row, 0], shape[-1], mask)
        if not row:
            return found
        if result is None:
            zero = "0.0" if element[0] in "fbt" else "0"
            result = w.make("arith.constant", kind, value=f"dense<{zero}> : {kind}")
        result = w.make("vector.insert", kind, found, result, static_position=ordered(np.array(row)))
    assert result is not None
    return result


@widens("vector.store")
def vector_store(w: Widener, op: ir.Operation) -> None:
    """Rows of consecutive elements."""
    value, memref, *indices = op.operands
    if _uniform_place(w, indices) and not w.varies(value):
        w.keep(op)
        return
    write_rows(w, w.wide(value), w.uniform(memref), indices, shape_of(value.type), w.active())


def write_rows(
    w: Widener,
    data: ir.Value,
    target: ir.Value,
    indices: Sequence[ir.Value],
    shape: tuple[int, ...],
    mask: ir.Value,
) -> None:
    """Store vectors of this shape, which lanes have as [*shape, lanes], as rows of consecutive elements."""
    outer = len(indices) - len(shape)
    for row in _rows(shape):
        part = data
        if row:
            kind = vector_text((shape[-1], w.lanes), element_of(data.type))
            part = w.make("vector.extract", kind, data, static_position=ordered(np.array(row)))
        write_lanes(w, part, target, indices, [*[0] * outer, *row, 0], mask)


@widens("memref.dim", "memref.cast", "memref.subview", "memref.view", "memref.reinterpret_cast", "memref.transpose")
def view(w: Widener, op: ir.Operation) -> None:
    """A memref is the subgroup's."""
    w.keep(op)


@widens(
    "memref.get_global", "memref.transpose", "memref.expand_shape", "memref.collapse_shape", "memref.memory_space_cast"
)
def other_view(w: Widener, op: ir.Operation) -> None:
    """A memref is the subgroup's."""
    made = w.keep(op)
    w.held[op.results[0]] = Held(made.results[0])
