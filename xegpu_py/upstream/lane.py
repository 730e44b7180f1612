"""Kernels of lanes: they become `xegpu` in SIMT mode, where an `sg_map` defines the elements that a lane holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from mlir import ir
from mlir.dialects import arith, memref, vector

from xegpu_py.dialects import xegpu as ours
from xegpu_py.dialects.xegpu.fragments import moves_block
from xegpu_py.dialects.xegpu.matrix_ops import UpstreamDpasMxOp
from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad, Prefetch
from xegpu_py.dialects.xegpu.upstream_types import UpstreamTensorDesc
from xegpu_py.ir.builtin import bit_width, by
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.operation import implements
from xegpu_py.passes.analysis.ir_queries import constant_of, defining_op, shape_of
from xegpu_py.passes.analysis.ir_queries import element_of as element_type_of
from xegpu_py.passes.analysis.uniformity import Uniformity
from xegpu_py.passes.rewriting.builders import (
    add,
    extract,
    extract_at,
    if_,
    index,
    make,
    multiply,
    reinterpret_cast,
    replace_op,
    strided_layout,
    transpose,
    zero,
)
from xegpu_py.passes.rewriting.rewriter import Rule, Rules
from xegpu_py.upstream import import_common
from xegpu_py.upstream.import_common import (
    PREFIX,
    PRODUCTS,
    cast,
    element_of,
    is_true,
    long_address,
    mixed,
    parts,
    put_hints,
    refuse,
    signless,
)
from xegpu_py.upstream.levels import LANES
from xegpu_py.upstream.subgroup import SubgroupImport, is_static, line

Use = Literal["plain", "packed", "transposed"]
"""How a block is loaded, which determines a lane's fragment of it."""


def map_of(desc: UpstreamTensorDesc, use: Use) -> ours.SgMap | None:
    """The elements of a block that each lane has; None if lanes cannot divide it.

    A lane has columns of what is loaded: of a block as it lies, of elements below 16 bits as many side by side as 16
    bits hold, unless VNNI packs them along columns. A transposed block's columns are its rows. Of a block of 16 columns
    of bytes a lane has one column, packed or not: upstream loads both with the message that packs columns, since
    hardware has no other for so narrow a block (LLVM pull request 201645).
    """
    bits = bit_width(desc.element)
    side = max(1, 16 // bits) if use == "plain" and (bits, desc.shape[-1]) != (8, LANES) else 1
    if use == "transposed":
        fits = len(desc.shape) == 2 and desc.shape[0] % LANES == 0
        return ours.SgMap((LANES, 1), (1, 1)) if fits else None
    return ours.SgMap((1, LANES), (1, side)) if desc.shape[-1] % (LANES * side) == 0 else None


class LaneImport(SubgroupImport):
    """Rebuilds one kernel of lanes, in place."""

    rules = rule = Rules[Rule[Any]](SubgroupImport.rules)
    mode = ours.Mode.SIMT

    def __init__(self, func: ir.Operation) -> None:
        super().__init__(func)
        self.uses: dict[str, Use] = {}
        """How the blocks of each type of descriptor are loaded first."""
        self.remade: dict[tuple[ir.Value, Use], ir.Value] = {}

    def prepare(self, ops: Sequence[ir.Operation]) -> None:
        import_common.share_divided(ops)
        for op in ops:
            if moves_block(op):
                self.uses.setdefault(str(op.opview.tdesc.type), _use_of(op.opview) or "plain")

    def finish(self) -> None:
        uniformity = Uniformity(self.func, LANES)
        for op in parts(self.func):
            if op.name == "gpu.subgroup_broadcast" and not uniformity.varies(op.operands[0]):
                replace_op(op, op.operands[0])
        self.func.attributes["xegpu.subgroup_size"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LANES)

    def our_desc(self, desc: UpstreamTensorDesc) -> ours.TensorDesc:
        use = self.uses.get(desc.encode(), "plain")
        return self.dealt(desc, use)

    def dealt(self, desc: UpstreamTensorDesc, use: Use) -> ours.TensorDesc:
        """Our descriptor of a block, with the map that a use needs."""
        if math.prod(desc.shape[:-2]) == 1:
            # Lanes divide the innermost two dimensions.
            desc = replace(desc, shape=desc.shape[-2:])
        found = super().our_desc(desc)
        return replace(found, attr=replace(found.attr, map=map_of(desc, use)))

    def shared(self, value: Any) -> Any:
        """A number that block messages take from the first lane."""
        return value if constant_of(value) is not None else import_common.of_first_lane(value)

    def of_use(self, view: Any) -> ir.Value:
        """The descriptor of an op, with the map that its use needs."""
        tdesc, use = view.tdesc, _use_of(view)
        desc = ours.TensorDesc.of(tdesc)
        if use is None:
            return tdesc
        wanted = map_of(UpstreamTensorDesc(desc.shape, desc.element), use)
        if wanted is None:
            refuse(view, f"{LANES} lanes cannot divide a block of {by(desc.shape)} x {desc.element}")
        if desc.attr.map == wanted:
            return tdesc
        known = self.remade.get((tdesc, use))
        if known is not None:
            return known
        made = self.sources.get(tdesc)
        if made is None:
            refuse(view, "blocks of one descriptor are loaded in two ways, and it is not made where it can be seen")
        owner = tdesc.owner.operation
        with ir.InsertionPoint.after(owner), owner.location:
            kind = replace(desc, attr=replace(desc.attr, map=wanted)).to_ir()
            view_of = owner.opview
            found: ir.Value = ours.CreateNdTdescOp(
                view_of.source, view_of.offsets, view_of.shape or None, view_of.strides or None, tdesc=kind
            ).tdesc
        self.sources[found] = made
        self.remade[(tdesc, use)] = found
        return found

    def rows_of_scales(self, view: Any) -> ir.Value | None:
        """The row that a lane has of a block of the first factor's scales; None if this loads no such block.

        A lane has a row's scales, since so narrow a block has no column for each lane; lanes without a row have bits of
        zero, and so do elements out of bounds. Source: LLVM's test LANE/xegpu_dpas_mx_prepacked_e2m1.mlir.
        """
        desc = ours.TensorDesc.of(view.tdesc)
        made = None if isinstance(view.tdesc.owner, ir.Block) else view.tdesc.owner.opview
        if desc.element != "f8E8M0FNU" or len(desc.shape) != 2 or desc.shape[1] >= LANES or desc.shape[0] > LANES:
            return None
        if _use_of(view) != "plain" or not isinstance(made, ours.CreateNdTdescOp):
            return None
        source = made.source
        if not isinstance(source.type, ir.MemRefType) or not is_static(source) or made.shape:
            return None
        rows, columns = source.type.shape
        lane = make("gpu.lane_id", ir.IndexType.get())
        below = arith.CmpIPredicate.ult
        start = [arith.addi(*mixed(pair)) for pair in zip(made.offsets, list(view.offsets) or [0, 0])]
        row = arith.addi(start[0], lane)
        held = arith.andi(arith.cmpi(below, lane, index(desc.shape[0])), arith.cmpi(below, row, index(rows)))
        byte = ir.IntegerType.get_signless(8)

        def scale_at(column: ir.Value) -> list[ir.Value]:
            return [arith.bitcast(byte, memref.load(source, [row, column]))]

        found = []
        for i in range(desc.shape[1]):
            column = add(start[1], i)
            flag = arith.andi(held, arith.cmpi(below, column, index(columns)))
            found += self.masked(flag, [byte], partial(scale_at, column))
        return _together([arith.bitcast(ir.Float8E8M0FNUType.get(), bits) for bits in found], view.value.type)

    @rule(PREFIX + "create_nd_tdesc")
    def create_nd_tdesc(self, op: Any) -> None:
        shape = UpstreamTensorDesc.of(op.tdesc).shape
        if math.prod(shape[:-2]) != 1:
            refuse(op, f"lanes divide the last two dimensions, and {by(shape)} has others", "load one matrix at a time")
        super().create_nd_tdesc(op)

    @rule(PREFIX + "load_nd")
    def load_nd(self, op: Any) -> None:
        scales = self.rows_of_scales(op)
        if scales is not None:
            self.replace(op, scales)
            return
        tdesc = self.moved(op)
        desc = ours.TensorDesc.of(tdesc)
        use = _use_of(op)
        wanted = shape_of(op.value)
        made = ours.LoadNdOp(tdesc, mode=self.mode, transpose=(1, 0) if use == "transposed" else None)
        put_hints(made, op)
        found = made.value
        if math.prod(shape_of(found)) != math.prod(wanted):
            refuse(
                op,
                f"a lane has {math.prod(shape_of(found))} elements of a block of {by(desc.shape)}, not {by(wanted)}",
                "is this a kernel of subgroups?",
            )
        if use == "packed" and desc.bits < 32 and shape_of(found)[-1] > 1:
            # Elements that VNNI packs lie side by side.
            *outer, rows, columns = shape_of(found)
            factor = 32 // desc.bits
            split = cast(found, (*outer, rows // factor, factor, columns))
            found = transpose(split, [*range(len(outer)), len(outer), len(outer) + 2, len(outer) + 1])
        self.replace(op, cast(found, wanted))

    @rule(*PRODUCTS)
    def dpas(self, op: Any) -> None:
        scales = None
        if isinstance(op, UpstreamDpasMxOp):
            given = {"scale_a": op.scale_a, "scale_b": op.scale_b}
            scales = {name: line(value) for name, value in given.items() if value is not None}
        rows, element = math.prod(shape_of(op.result)), element_of(op.result)
        made = import_common.product_of_lanes(op.lhs, op.rhs, op.acc, rows, element, scales)
        self.replace(op, cast(made, shape_of(op.result)))

    @rule(PREFIX + "lane_shuffle")
    def lane_shuffle(self, op: Any) -> None:
        self.replace(op, ours.LaneShuffleOp(op.source, shuffle=op.mode.value, result=op.result.type).result)

    # Scattered accesses: a lane has one offset, and each of its elements is an access of a memref.

    @rule(*(PREFIX + name for name in ("create_tdesc", "update_offset", "prefetch")))
    def unbuilt(self, op: Any) -> None:
        """Emit nothing: a lane's accesses compute its offsets, and a prefetch changes no value."""

    def place(self, view: Any, source: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The memref that an op accesses, of one dimension, and the lane's first offset in it."""
        if str(source.type).startswith("!"):
            owner = source.owner
            made: Any = None if isinstance(owner, ir.Block) else owner.opview
            if made is None or made.operation.name not in (PREFIX + "create_tdesc", PREFIX + "update_offset"):
                refuse(view, "its descriptor is not made where it can be seen")
            if made.operation.name == PREFIX + "create_tdesc":
                return self.moved_on(self.line_of(view, made.source), _own(made.offsets))
            memory, start = self.place(view, made.tdesc)
            return memory, arith.addi(start, _own(made.offsets))
        return self.moved_on(self.line_of(view, source), _own(view.offsets))

    def moved_on(self, line: tuple[ir.Value, ir.Value | None], offset: ir.Value) -> tuple[ir.Value, ir.Value]:
        """A memref, and an offset from where a line of elements begins in it."""
        memory, start = line
        return memory, offset if start is None else arith.addi(start, offset)

    def line_of(self, view: Any, source: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """A memref of one dimension, and where in it a memref or an address is; None at its beginning."""
        if not isinstance(source.type, ir.MemRefType):
            known = _memref_at(source)
            if known is None:
                return _memory_at(view, source)
            source = known
        if ir.MemRefType(source.type).rank == 1:
            return source, None
        start, extents, strides = strided_layout(source)
        size = add(1, *(multiply(stride, add(n, -1)) for n, stride in zip(extents, strides)))
        return reinterpret_cast(source, start, [size], [1]), None

    def masked(
        self, mask: ir.Value, kinds: Sequence[ir.Type], body: Callable[[], Sequence[ir.Value]]
    ) -> list[ir.Value]:
        """The results of an action that a lane does only if its mask is set; otherwise zeros."""
        flag = _own(mask)
        if is_true(flag):
            return list(body())
        return if_(flag, kinds, body, (lambda: [zero(k) for k in kinds]) if kinds else None)

    @rule(PREFIX + "load")
    def load(self, op: Any) -> None:
        memory, start = self.place(op, op.source)
        shape, element = shape_of(op.value), element_type_of(op.value)
        count = math.prod(shape)

        def body() -> list[ir.Value]:
            return [memref.load(memory, [add(start, i)]) for i in range(count)]

        self.replace(op, _together(self.masked(op.mask, [element] * count, body), op.value.type))

    @rule(PREFIX + "store")
    def store(self, op: Any) -> None:
        memory, start = self.place(op, op.dest)
        values = _elements(op.value)

        def body() -> list[ir.Value]:
            for i, value in enumerate(values):
                memref.store(value, memory, [add(start, i)])
            return []

        self.masked(op.mask, [], body)

    @rule(PREFIX + "atomic_rmw")
    def atomic_rmw(self, op: Any) -> None:
        memory, start = self.place(op, op.tdesc)
        found = _elements(op.value)
        if len(found) != 1:
            refuse(op, f"a lane updates one element, not {len(found)}")
        # The op of memref has signless integers; the kind says how they are compared.
        kind = ir.MemRefType(memory.type)
        number = found[0].type
        signed = isinstance(number, ir.IntegerType) and not number.is_signless
        value = signless(found[0]) if signed else found[0]
        if signed:
            other = ir.MemRefType.get(kind.shape, value.type, kind.layout, kind.memory_space)
            memory = make("builtin.unrealized_conversion_cast", other, memory)

        def body() -> list[ir.Value]:
            made = memref.AtomicRMWOp(kind=op.kind, value=value, memref=memory, indices=[start])
            return [made.result]

        (old,) = self.masked(op.mask, [value.type], body)
        if signed:
            old = make("builtin.unrealized_conversion_cast", number, old)
        self.replace(op, _together([old], op.result.type))

    def matrix_places(self, view: Any, value: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
        """The buffer of a matrix, and the positions of a lane's elements of the block that an op accesses."""
        desc, buffer = self.buffer(view)
        shape = shape_of(value)
        if len(shape) > 1:
            where = import_common.places(desc, view.offsets, shape)
            return buffer, [vector.extract(where, [], [i]) for i in range(math.prod(shape))]
        # A lane's line is what lies in memory from its offset on, whatever the strides. By subgroup_block_io the
        # subgroup moves what lies there, lane by lane.
        by_subgroup = bool(view.subgroup_block_io)
        offsets = [self.shared(o) for o in view.offsets] if by_subgroup else view.offsets
        start = vector.extract(import_common.places(desc, offsets, (1,)), [], [0])
        if by_subgroup:
            start = arith.addi(start, make("gpu.lane_id", ir.IndexType.get()))
        return buffer, [add(start, (LANES if by_subgroup else 1) * i) for i in range(math.prod(shape))]

    @rule(PREFIX + "load_matrix")
    def load_matrix(self, op: Any) -> None:
        buffer, where = self.matrix_places(op, op.value)
        self.replace(op, _together([memref.load(buffer, [at]) for at in where], op.value.type))

    @rule(PREFIX + "store_matrix")
    def store_matrix(self, op: Any) -> None:
        buffer, where = self.matrix_places(op, op.value)
        for value, at in zip(_elements(op.value), where):
            memref.store(value, buffer, [at])


def _use_of(view: Any) -> Use | None:
    """How an op uses a block; None for ops that move no elements to or from lanes."""
    if implements(view.operation, Prefetch):
        return None
    if not implements(view.operation, BlockLoad):
        return "plain"
    if view.transpose is not None and tuple(view.transpose) == (1, 0):
        return "transposed"
    return "packed" if view.packed else "plain"


def _memref_at(address: ir.Value) -> ir.Value | None:
    """The memref at whose first element an address is."""
    while (op := defining_op(address)) is not None:
        if op.name in ("arith.index_cast", "arith.index_castui"):
            address = op.operands[0]
        elif op.name == "memref.extract_aligned_pointer_as_index":
            kind = ir.MemRefType(op.operands[0].type)
            return op.operands[0] if kind.get_strides_and_offset()[1] == 0 else None
        else:
            return None
    return None


def _memory_at(view: Any, address: ir.Value) -> tuple[ir.Value, ir.Value]:
    """All of global memory as elements of what an op accesses, and the number of the one at an address."""
    address = signless(long_address(address))
    element = element_type_of(view.value)
    kind = ir.MemRefType.get([DYNAMIC], element)
    i64 = ir.IntegerType.get_signless(64)
    memory = make("builtin.unrealized_conversion_cast", kind, arith.constant(i64, 0))
    place = arith.divui(address, arith.constant(i64, bit_width(str(element)) // 8))
    return memory, arith.index_cast(ir.IndexType.get(), place)


def _own(value: ir.Value) -> ir.Value:
    """The number of a lane: the single one that it has, or its own of a vector of all lanes."""
    count = math.prod(shape_of(value))
    if not shape_of(value):
        return value
    line = cast(value, (count,))
    return extract(line, [0]) if count == 1 else extract_at(line, make("gpu.lane_id", ir.IndexType.get()))


def _elements(value: ir.Value) -> list[ir.Value]:
    """The elements of a vector, or the number itself if it is a scalar."""
    shape = shape_of(value)
    if not shape:
        return [value]
    line = cast(value, (math.prod(shape),))
    return [vector.extract(line, [], [i]) for i in range(math.prod(shape))]


def _together(values: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
    """Combine numbers to a value of this type."""
    if not isinstance(kind, ir.VectorType):
        return values[0]
    return vector.from_elements(kind, list(values))
