"""How lanes access memory, and what a subgroup executes on whole blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.fragments import Placement, mapped, placement_of
from xegpu_py.dialects.xegpu.matrix_ops import SCALE_BLOCK, vnni_factor
from xegpu_py.dialects.xegpu.op_interfaces import MatrixProduct
from xegpu_py.dialects.xegpu.types import CHUNK_SIZES, XeGPU, is_slm
from xegpu_py.ir.bindings import AtomicRMWKind, blocks_in
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.diagnostics import Diagnostic, position_of
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.ir_queries import attributes_of, element_of, is_desc, shape_of
from xegpu_py.passes.analysis.target_messages import message_sizes, without_sg_map
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.memory_access import MemrefElements, Transfer
from xegpu_py.passes.xegpu_simt_to_vc.simt_vectorization import Held, Widener, both, elementwise, rule

# `memref` and `vector`: accesses of lanes become gathers and scatters.


class _Lanes(MemrefElements):
    """A memref that each lane accesses at its own indices."""

    def __init__(self, w: Widener, memref: ir.Value, indices: Sequence[ir.Value]) -> None:
        super().__init__(memref, w.fail)
        self.w, self.memref, self.indices = w, w.uniform(memref), indices

    def offsets(self, added: Sequence[int] = ()) -> ir.Value:
        """vector of index: the offset of each lane's element from the memref's first, in elements.

        Args:
            added: constants to add to the indices.
        """
        kind = self.w.vector(build.index_type())
        terms: list[ir.Value] = []
        constant_part = 0
        for index, more, stride in zip(self.indices, added or [0] * len(self.indices), self.strides):
            lane_indices = self.w.wide(index)
            if isinstance(stride, int):
                constant_part += more * stride
                terms.append(build.multiply(lane_indices, stride))
            else:
                terms.append(build.multiply(build.add(lane_indices, more), build.broadcast(stride, kind)))
        return build.add(*terms, constant_part) if terms else build.constant(kind, constant_part)

    def place(self, offsets: ir.Value | None, number: int) -> ir.Value:
        """Offsets of element `number` of an access along the innermost dimension.

        Args:
            offsets: the elements' offsets of gathers and scatters; None if the elements are consecutive.
        """
        if offsets is None:
            return self.offsets([*[0] * (len(self.indices) - 1), number])
        along = build.extract(_flat(self.w, offsets), [number])
        if not isinstance(element_of(along), ir.IndexType):
            along = build.make("arith.index_cast", build.with_element(along.type, build.index_type()), along)
        return build.binary("addi", self.offsets(), along)

    def read(self, offsets: ir.Value, mask: ir.Value | None, otherwise: ir.Value) -> ir.Value:
        """Load an element of each lane; `otherwise` where the mask is clear."""
        value = self.gather(offsets, both(self.w.active(), mask))
        return value if mask is None else self.w.choose(mask, value, otherwise)

    def write(self, value: ir.Value, offsets: ir.Value, mask: ir.Value | None) -> None:
        """Store an element of each lane whose mask bit is set."""
        self.scatter(value, offsets, both(self.w.active(), mask))

    def elements(self, transfer: Transfer, masks: ir.Value | None) -> Iterator[tuple[ir.Value, ir.Value | None]]:
        """The offset of each element of a transfer in each lane, and the lanes that access it; None for all.

        Args:
            masks: the transfer's mask, [count, lanes].
        """
        shape, order = shape_of(transfer.vector), transfer.mask_dims
        for element in np.ndindex(*shape):
            added = [0] * len(self.indices)
            number = int(np.ravel_multi_index([element[i] for i in order], [shape[i] for i in order])) if order else 0
            mask = None if masks is None else build.extract(masks, [number])
            for d, at, bounded in zip(transfer.dimensions, element, transfer.in_bounds):
                if d is not None:
                    added[d] = at
                    mask = mask if bounded else both(self._inside(d, at), mask)
            yield self.offsets(added), mask

    def _inside(self, dimension: int, more: int) -> ir.Value:
        extent = build.make("memref.dim", build.index_type(), self.memref, build.index(dimension))
        limit = build.binary("subi", extent, build.index(more))
        index = self.w.wide(self.indices[dimension])
        return build.compare("slt", index, build.broadcast(limit, index.type))

    def read_rows(self, shape: tuple[int, ...]) -> ir.Value:
        """Load vectors of this shape for each lane, [*shape, lanes], whose rows are consecutive elements."""
        mask, result = self.w.active(), None
        if not shape:
            return self.gather(self.offsets(), mask)
        for row in np.ndindex(*shape[:-1]):
            row_values = self._read_row(row, shape[-1], mask)
            if not row:
                return row_values
            result = build.insert(row_values, result or self._zeros(*shape), list(map(int, row)))
        assert result is not None
        return result

    def _read_row(self, row: tuple[int, ...], count: int, mask: ir.Value) -> ir.Value:
        """Load `count` elements along the innermost dimension for each lane, [count, lanes]."""
        parts = []
        for first, chunk in message_sizes(count, CHUNK_SIZES):
            value = self.gather(self.offsets(self._added(row, first)), mask, chunk)
            parts.append((first, build.shape_cast(value, (chunk, self.w.lanes))))
        if len(parts) == 1:
            return parts[0][1]
        result = self._zeros(count)
        for first, value in parts:
            result = build.insert_slice(value, result, [first, 0])
        return result

    def _zeros(self, *shape: int) -> ir.Value:
        return build.constant(build.vector_type((*shape, self.w.lanes), self.element), 0)

    def _added(self, row: tuple[int, ...], first: int) -> list[int]:
        """The amounts that element `first` of a row adds to the indices."""
        return [*[0] * (len(self.indices) - len(row) - 1), *map(int, row), first]

    def write_rows(self, data: ir.Value, shape: tuple[int, ...]) -> None:
        """Store vectors of this shape, given as [*shape, lanes], as rows of consecutive elements."""
        mask, lanes = self.w.active(), self.w.lanes
        if not shape:
            self.scatter(data, self.offsets(), mask)
            return
        for row in np.ndindex(*shape[:-1]):
            value = build.extract(data, list(map(int, row)))
            for first, chunk in message_sizes(shape[-1], CHUNK_SIZES):
                offsets = self.offsets(self._added(row, first))
                part = build.extract_slice(value, [first, 0], [chunk, lanes])
                self.scatter(build.shape_cast(part, (chunk, lanes) if chunk > 1 else (lanes,)), offsets, mask, chunk)


@rule("memref.load")
def load(w: Widener, op: ir.Operation) -> None:
    """One element for all, or a gather."""
    memref, *indices = op.operands
    if w.kept(op):
        return
    memory = _Lanes(w, memref, indices)
    w.widen(op, memory.gather(memory.offsets(), w.active()))


@rule("memref.store")
def store(w: Widener, op: ir.Operation) -> None:
    """A scatter; if the location is uniform, only one lane stores."""
    value, memref, *indices = op.operands
    if w.kept(op):
        return
    memory = _Lanes(w, memref, indices)
    memory.scatter(w.wide(value), memory.offsets(), w.active())
    w.erase(op)


@rule("memref.atomic_rmw")
def atomic_rmw(w: Widener, op: ir.Operation) -> None:
    """Each lane's own."""
    value, memref, *indices = op.operands
    memory = _Lanes(w, memref, indices)
    tdesc = memory.lanes(memory.offsets())
    kind = AtomicRMWKind(int(ir.IntegerAttr(op.attributes["kind"]).value))
    w.widen(op, xegpu.atomic_rmw(kind, w.wide(value), tdesc, w.active(), mode="vc"))


@rule("memref.generic_atomic_rmw")
def generic_atomic_rmw(w: Widener, op: ir.Operation) -> None:
    """Execute lane by lane, because XeGPU has no compare and swap, which a region needs."""
    memref, *indices = op.operands
    body, result = op.regions[0].blocks[0], op.results[0]
    inner = walk(op)[1:]
    for inner_op in inner:
        if inner_op.name.startswith("gpu."):
            w.fail(f"has {inner_op.name} in its region", "compute the value before the op")
    inner_results = {v for o in inner for v in o.results}
    inner_results |= {a for o in (op, *inner) for block in blocks_in(o) for a in block.arguments}
    outer_operands = dict.fromkeys(v for o in inner for v in o.operands if v not in inner_results)
    source = w.uniform(memref)
    values = {v: w.wide(v) if w.varies(v) else None for v in dict.fromkeys((*indices, *outer_operands))}
    old_elements = build.constant(w.vector(result.type), 0)

    for lane in range(w.lanes):

        def update(lane: int = lane) -> list[ir.Value]:
            mine = {v: w.uniform(v) if wide is None else _of_lane(w, wide, v, lane) for v, wide in values.items()}
            new_op = build.create(
                "memref.generic_atomic_rmw", [result.type], [source, *(mine[i] for i in indices)], {}, 1
            )
            block = ir.Block.create_at_start(new_op.regions[0], [result.type])
            mine[body.arguments[0]] = block.arguments[0]
            with ir.InsertionPoint(block):
                for body_op in body.operations:
                    build.clone(body_op.operation, mine)
            return list(new_op.results)

        if w.mask is None:
            (before,) = update()
        else:
            (before,) = build.if_(
                build.extract(w.mask, [lane]), [result.type], update, lambda: [build.zero(result.type)]
            )
        old_elements = build.insert(before, old_elements, [lane])
    w.widen(op, old_elements)


def _of_lane(w: Widener, wide: ir.Value, value: ir.Value, lane: int) -> ir.Value:
    """One lane's value of a scalar."""
    if shape_of(value):
        w.fail(f"uses a value of type {value.type} in its region", "extract the elements before the op")
    return build.extract(wide, [lane])


@rule("memref.alloca", "memref.alloc")
def allocate(w: Widener, op: ir.Operation) -> None:
    """Allocate the workgroup's shared memory."""
    if not is_slm(ir.MemRefType(op.results[0].type).memory_space):
        w.fail("private memory of a work item is not supported", "use shared local memory, which is memory space 3")
    w.keep(op)


@rule("vector.load")
def vector_load(w: Widener, op: ir.Operation) -> None:
    """Rows of consecutive elements."""
    memref, *indices = op.operands
    w.widen(op, _Lanes(w, memref, indices).read_rows(shape_of(op.results[0])))


@rule("vector.store")
def vector_store(w: Widener, op: ir.Operation) -> None:
    """Rows of consecutive elements."""
    value, memref, *indices = op.operands
    _Lanes(w, memref, indices).write_rows(w.wide(value), shape_of(value))
    w.erase(op)


@rule(
    "memref.dim", "memref.cast", "memref.subview", "memref.view", "memref.reinterpret_cast", "memref.transpose",
    "memref.get_global", "memref.expand_shape", "memref.collapse_shape", "memref.memory_space_cast",
)  # fmt: skip
def view(w: Widener, op: ir.Operation) -> None:
    """Memrefs are uniform in the subgroup."""
    w.keep(op)


@rule("memref.prefetch")
def prefetch(w: Widener, op: ir.Operation) -> None:
    """Removed: a prefetch of an element is a hint."""


@rule("builtin.unrealized_conversion_cast")
def conversion(w: Widener, op: ir.Operation) -> None:
    """A memref at an address is uniform; numbers cast from f32 to tf32 may vary."""
    if isinstance(op.results[0].type, ir.MemRefType):
        w.keep(op)
    elif not w.kept(op):
        elementwise(w, op)


# `vector`: transfers, gathers and masked accesses of each lane's vectors, element by element if necessary.


def _flat(w: Widener, value: ir.Value) -> ir.Value:
    """A value as [count, lanes]."""
    return build.shape_cast(w.wide(value), (math.prod(shape_of(value)), w.lanes))


@rule("vector.transfer_read")
def transfer_read(w: Widener, op: ir.Operation) -> None:
    """Read rows, or single elements, with the padding for those out of bounds."""
    transfer, kind = Transfer(op), op.results[0].type
    memory = _Lanes(w, transfer.memref, transfer.indices)
    if transfer.moves_whole_rows():
        w.widen(op, memory.read_rows(shape_of(kind)))
        return
    assert transfer.padding is not None
    masks, padding = transfer.mask and _flat(w, transfer.mask), w.wide(transfer.padding)
    w.widen(op, w.stacked([memory.read(at, mask, padding) for at, mask in memory.elements(transfer, masks)], kind))


@rule("vector.transfer_write")
def transfer_write(w: Widener, op: ir.Operation) -> None:
    """Write rows, or single elements that are in bounds."""
    w.erase(op)
    transfer = Transfer(op)
    memory, value = _Lanes(w, transfer.memref, transfer.indices), transfer.vector
    if transfer.moves_whole_rows():
        memory.write_rows(w.wide(value), shape_of(value))
        return
    masks, data = transfer.mask and _flat(w, transfer.mask), _flat(w, value)
    for i, (at, mask) in enumerate(memory.elements(transfer, masks)):
        memory.write(build.extract(data, [i]), at, mask)


@rule("vector.gather", "vector.maskedload")
def gather(w: Widener, op: ir.Operation) -> None:
    """Each element of each lane whose bit is set."""
    source, *indices, mask, otherwise = op.operands
    offsets = indices.pop() if op.name == "vector.gather" else None
    memory, kind = _Lanes(w, source, indices), op.results[0].type
    masks, others = _flat(w, mask), _flat(w, otherwise)
    parts = [
        memory.read(memory.place(offsets, i), build.extract(masks, [i]), build.extract(others, [i]))
        for i in range(math.prod(shape_of(kind)))
    ]
    w.widen(op, w.stacked(parts, kind))


@rule("vector.scatter", "vector.maskedstore")
def scatter(w: Widener, op: ir.Operation) -> None:
    """Each element of each lane whose bit is set."""
    w.erase(op)
    target, *indices, mask, value = op.operands
    offsets = indices.pop() if op.name == "vector.scatter" else None
    memory, masks, data = _Lanes(w, target, indices), _flat(w, mask), _flat(w, value)
    for i in range(math.prod(shape_of(value))):
        memory.write(build.extract(data, [i]), memory.place(offsets, i), build.extract(masks, [i]))


# `xegpu`: ops that a subgroup executes on whole blocks.


def _check(w: Widener, op: ir.Operation) -> None:
    view = op.opview
    if view.mode == Mode.VC:
        because = Diagnostic("note", "this op makes the kernel a SIMT kernel", position_of(w.because.location))
        w.fail("is in VC mode, but the kernel is in SIMT mode", "remove 'mode = vc'", because)
    w.require_convergence("works on a block of the whole subgroup")
    for value in (*op.operands, *op.results):
        if is_desc(value):
            sg_map = TensorDesc.of(value).attr.map
            if sg_map is not None and math.prod(sg_map.wi_layout) != w.lanes:
                w.fail(
                    f"distributes its block to {math.prod(sg_map.wi_layout)} work items, but a subgroup has {w.lanes}"
                )


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return attributes_of(op) | {"mode": xegpu.XeGPU.enums["mode"].to_ir(Mode.VC)}


@rule("xegpu.create_nd_tdesc", "xegpu.update_nd_offset", "xegpu.prefetch_nd")
def descriptor(w: Widener, op: ir.Operation) -> None:
    """A descriptor is uniform in the subgroup."""
    _check(w, op)
    operands = [w.uniform(v) for v in op.operands]
    new_op = build.create(op.name, [without_sg_map(r.type) for r in op.results], operands, _attributes(op))
    # The rules of its users still read its map.
    for old_result, new in zip(op.results, new_op.results):
        w.held[old_result] = Held(new)
    w.erase(op)


@rule("arith.select")
def select(w: Widener, op: ir.Operation) -> None:
    """A descriptor that is selected has no map, as those it is selected from."""
    if is_desc(op.results[0]):
        new_op = build.create(op.name, [without_sg_map(op.results[0].type)], [w.uniform(v) for v in op.operands])
        w.held[op.results[0]] = Held(new_op.results[0])
        w.erase(op)
    else:
        w.convert_without_rule(op)


@rule("xegpu.load_nd")
def load_nd(w: Widener, op: ir.Operation) -> None:
    """Load the whole block; the map gives the placement of each lane's fragment."""
    _check(w, op)
    result, source = op.results[0], w.uniform(op.operands[0])
    if mapped(op):
        placement = placement_of(op)
        kind = build.vector_type(placement.shape, element_of(result))
        w.widen(op, build.create(op.name, [kind], [source], _attributes(op)).results[0], placement=placement)
    else:
        w.replace(op, build.create(op.name, [result.type], [source], _attributes(op)).results[0])


@rule("xegpu.store_nd")
def store_nd(w: Widener, op: ir.Operation) -> None:
    """Store the block, with all fragments at the positions that the map gives."""
    _check(w, op)
    view = op.opview
    value = w.at(view.value, placement_of(op)) if mapped(op) else w.uniform(view.value)
    build.create(op.name, [], [value, w.uniform(view.tdesc)], _attributes(op))
    w.erase(op)


def _placement(w: Widener, value: ir.Value, role: str, shape: tuple[int, ...]) -> Placement:
    """The placement by the descriptors of an operand's or result's loads and stores; the default if there are none."""
    try:
        return w.placements.only(value, role, shape, w.lanes)
    except ValueError as e:
        w.fail(*e.args)


@rule(*XeGPU.implementing(MatrixProduct))
def dpas(w: Widener, op: ir.Operation) -> None:
    """Multiply the matrices that consist of the fragments of all lanes."""
    _check(w, op)
    view = op.opview
    lanes = w.lanes
    sizes = [math.prod(shape_of(v)) * lanes for v in (view.lhs, view.rhs, view.result)]
    factor = max(vnni_factor(bit_width(str(element_of(view.rhs)))), 1)
    known = w.placements.of(view.rhs)
    columns = known[0].shape[1] if known else lanes
    rows, depth = sizes[2] // columns, sizes[1] // columns
    if sizes != [rows * depth, depth * columns, rows * columns] or depth % factor:
        shapes = ", ".join(str(v.type) for v in (view.lhs, view.rhs, view.result))
        w.fail(
            f"has fragments of {shapes} in a work item, which are no matrices of {columns} columns in {lanes} lanes",
            "a work item has MxK, KxN and MxN elements, divided by the lanes; whole matrices need 'mode = vc'",
        )
    rhs_shape = (depth // factor, columns, factor) if factor > 1 else (depth, columns)
    lhs = _placement(w, view.lhs, "lhs", (rows, depth))
    rhs = _placement(w, view.rhs, "rhs", rhs_shape)
    acc = _placement(w, view.result, "result", (rows, columns))

    def matrix(value: ir.Value, placement: Placement, shape: tuple[int, ...]) -> ir.Value:
        # Each lane has its own fragment, even if all fragments are equal.
        return build.shape_cast(w.at(value, placement), shape)

    kind = build.vector_type((rows, columns), element_of(view.result))
    operands = {
        "acc": None if view.acc is None else matrix(view.acc, acc, (rows, columns)),
        "lhs": matrix(view.lhs, lhs, (rows, depth)),
        "rhs": matrix(view.rhs, rhs, rhs_shape),
    }
    if isinstance(view, xegpu.DpasMxOp):
        blocks = -(-depth // SCALE_BLOCK)
        operands["scale_a"] = _scales(w, view.scale_a, "scale_a", rows, blocks)
        operands["scale_b"] = _scales(w, view.scale_b, "scale_b", columns, blocks)
    w.widen(op, type(view)(**operands, result=str(kind), mode="vc").result, placement=acc)


def _scales(w: Widener, value: ir.Value | None, name: str, count: int, blocks: int) -> ir.Value | None:
    """The scales of all rows of A or columns of B; in a subgroup of 16 a lane has every 16th."""
    if value is None:
        return None
    here, lanes = math.prod(shape_of(value)), w.lanes
    each = max(count // lanes, 1)
    if here != each * blocks:
        w.fail(
            f"has {here} elements of {name} in a work item, not {each * blocks}",
            f"{SCALE_BLOCK} elements of K share a scale, and lane i has those of row i of A, or column i of B",
        )
    wide = w.wide(value)
    if name == "scale_b":
        return build.shape_cast(wide, (blocks, count))
    rows = min(count, lanes)
    own_scales = build.extract_slice(build.shape_cast(wide, (each * blocks, lanes)), [0, 0], [each * blocks, rows])
    return build.shape_cast(
        build.transpose(build.shape_cast(own_scales, (each, blocks, rows)), [0, 2, 1]), (count, blocks)
    )


@rule(
    "xegpu.alloc_nbarrier",
    "xegpu.init_nbarrier",
    "xegpu.create_nbarrier",
    "xegpu.nbarrier_arrive",
    "xegpu.nbarrier_wait",
)
def named_barrier(w: Widener, op: ir.Operation) -> None:
    """A barrier of whole subgroups."""
    w.require_convergence("is a barrier")
    w.keep(op)


@rule("xegpu.create_tdesc", "xegpu.load_gather", "xegpu.store_scatter", "xegpu.atomic_rmw", "xegpu.update_offset")
def scattered(w: Widener, op: ir.Operation) -> None:
    """Refuse scattered descriptors, which exist only in VC mode (RFC, create_tdesc)."""
    w.fail("is supported only in VC mode", "use memref.load, memref.store or memref.atomic_rmw in SIMT mode")
