"""`xegpu-simt-to-vc`: rewrites kernels of work items as kernels of subgroups; their ids, and what lanes exchange."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from mlir import ir

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.fragments import Order, Placements
from xegpu_py.ir.builtin import PRINT, TEXT, CombiningKind, call_external, check_format, enum_attribute, enumerator
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import functions, walk
from xegpu_py.ir.operation import field_of
from xegpu_py.ir.passes import Contents, Pass, register_pass
from xegpu_py.passes.analysis.divisibility import lane_of_broadcast
from xegpu_py.passes.analysis.integer_ranges import Limits
from xegpu_py.passes.analysis.ir_queries import (
    DEFAULT_SIZE,
    SUBGROUP_SIZE,
    SUBGROUP_SIZES,
    WORK_ITEMS,
    attributes_of,
    check_elements,
    chosen_kernels,
    constant_of,
    element_of,
    is_desc,
    shape_of,
)
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.xegpu_simt_to_vc import lane_access  # noqa: F401  (defines rules)
from xegpu_py.passes.xegpu_simt_to_vc.simt_vectorization import Widener, rule
from xegpu_py.target import GRID_LIMIT


def _is_simt(op: ir.Operation) -> bool:
    return op.name.startswith("xegpu.") and field_of(op, "mode") == Mode.SIMT


@register_pass("xegpu-simt-to-vc")
class XeGPUSimtToVc(Pass):
    """Lower kernels of work items to subgroups.

    Kernels of work items (SIMT mode) become the program of a subgroup (VC mode). A kernel is one of work items if it
    has `xegpu.subgroup_size`, or an op of XeGPU in SIMT mode. The attribute determines the size of subgroups; without
    it an `sg_map` does; otherwise the size is 16 work items.

    Values that are uniform in a subgroup do not change. Other values become vectors of the values of all lanes, with
    the lanes as the innermost dimension. Fragments of blocks keep the order of the block.

        gpu.func @halve(%m: memref<?xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
          %i = gpu.global_id x
          %half = arith.constant 0.5 : f32
          %x = memref.load %m[%i] : memref<?xf32>
          %small = arith.cmpf olt, %x, %half : f32
          scf.if %small {
            %y = arith.mulf %x, %half : f32
            memref.store %y, %m[%i] : memref<?xf32>
          }
          gpu.return
        }

    becomes, with `known_block_size` a multiple of 16,

        gpu.func @halve(%m: memref<?xf32>) kernel attributes {xegpu.work_items = 16 : i32} {
          ...
          %x = xegpu.load_gather %t, %all {mode = vc} : ... -> vector<16xf32>
          %small = arith.cmpf olt, %x, %halves : vector<16xf32>
          %some = vector.reduction <or>, %small : vector<16xi1> into i1
          scf.if %some {
            %y = arith.mulf %x, %halves : vector<16xf32>
            xegpu.store_scatter %y, %u, %small {mode = vc} : ...
          }
          gpu.return
        }

    `max-bytes`, `max-index` and `max-grid` are those of xegpu-to-visa: a loop whose counter may wrap around in its last
    step within these limits takes one more op in each iteration.
    """

    subgroup_size: int = 0
    kernel: str = ""
    max_bytes: int = 0
    max_index: int = 0
    max_grid: int = GRID_LIMIT

    def concerns(self, contents: Contents) -> bool:
        has_size = any(SUBGROUP_SIZE in func.attributes for func in functions(contents.root))
        return self.subgroup_size not in (0, *SUBGROUP_SIZES) or has_size or any(map(_is_simt, contents.ops))

    def run(self, op: ir.Operation) -> None:
        if self.subgroup_size not in (0, *SUBGROUP_SIZES):
            self.fail(op, f"subgroup-size must be 8, 16 or 32, but got {self.subgroup_size}")
        for func in chosen_kernels(op, self.kernel):
            lanes, because = self._lanes(func)
            if lanes:
                limits = Limits(self.max_bytes, self.max_index, self.max_grid, lanes=lanes)
                widen_kernel(func, lanes, Placements(func), because, limits)

    def _lanes(self, func: ir.Operation) -> tuple[int, ir.Operation]:
        """Work items of a subgroup, 0 if the kernel is not one of work items; and the op that determines this."""

        attribute = func.attributes.get(SUBGROUP_SIZE)
        if attribute is not None:
            size = attribute.value if isinstance(attribute, ir.IntegerAttr) else attribute
            if size not in SUBGROUP_SIZES:
                self.fail(func, f"has {SUBGROUP_SIZE} = {size}, but a subgroup has 8, 16 or 32 work items")
            return self.subgroup_size or size, func
        first: ir.Operation | None = None
        for op in walk(func):
            if not _is_simt(op):
                continue
            first = first or op
            for value in (*op.operands, *op.results):
                sg_map = TensorDesc.of(value).attr.map if is_desc(value) else None
                if sg_map is not None:
                    return self.subgroup_size or math.prod(sg_map.wi_layout), op
        return (self.subgroup_size or DEFAULT_SIZE) if first else 0, first or func


# Kernels of work items, and `gpu`: their ids and extents, what they exchange in a subgroup, printf and assert.


def _dim(w: Widener, op: str, name: str) -> ir.Value:
    """An id or extent of the hardware thread, index."""
    if op == "gpu.block_dim" and w.block_size is not None:
        return build.index(w.block_size["xyz".index(name)])
    return build.make(op, build.index_type(), dimension=enum_attribute("gpu.dim", name))


def _lanes(w: Widener) -> ir.Value:
    """0, 1, ... as a vector of index."""
    return build.make("vector.step", w.vector(build.index_type()))


def _plus(scalar: ir.Value, vector: ir.Value) -> ir.Value:
    return build.add(build.broadcast(scalar, vector.type), vector)


def widen_kernel(func: ir.Operation, count: int, placements: Placements, because: ir.Operation, limits: Limits) -> None:
    """Rewrite a `gpu.func` for subgroups of `count` work items.

    Args:
        because: the op that identifies it as a kernel of work items.
        limits: the limits of its launches.

    Raises:
        DiagnosticError: at the op that cannot be rewritten.
    """
    if len(func.regions[0].blocks) != 1:
        message = "SIMT kernels must have structured control flow"
        emit_error(func, message, "run xegpu-lift-cf first, which converts branches to scf ops")
    check_elements(walk(func))
    size = func.attributes.get("known_block_size")
    block_size = tuple(size) if isinstance(size, ir.DenseI32ArrayAttr) else None
    w = Widener(func, count, placements, because, block_size, limits)
    block = func.regions[0].blocks[0]
    with func.location, ir.InsertionPoint.at_block_begin(block):
        func.attributes[WORK_ITEMS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
        if SUBGROUP_SIZE in func.attributes:
            del func.attributes[SUBGROUP_SIZE]
        ops = list(block.operations)
        w.mask = tail(w)
        for op in ops:
            w.op(op.operation)
        w.finish()


def tail(w: Widener) -> ir.Value | None:
    """The existing work items of the subgroup, vector of i1; None if the workgroup fills its subgroups."""
    size = w.block_size
    if size is not None and size[0] * size[1] * size[2] % w.lanes == 0:
        return None
    total = _items(w)
    first = build.multiply(build.make("gpu.subgroup_id", build.index_type()), w.lanes)
    item = _plus(first, _lanes(w))
    return build.compare("slt", item, build.broadcast(total, item.type))


def _items(w: Widener) -> ir.Value:
    """Work items of a workgroup."""
    x, y, z = (_dim(w, "gpu.block_dim", d) for d in "xyz")
    return build.multiply(build.multiply(x, y), z)


@rule("gpu.thread_id")
def thread_id(w: Widener, op: ir.Operation) -> None:
    """Work items are numbered along x, then y, then z, from the subgroup's first one on."""
    w.widen(op, _thread_id(w, enumerator(op.attributes["dimension"])))


def _thread_id(w: Widener, dimension: str) -> ir.Value:
    size = w.block_size
    first = _dim(w, "gpu.thread_id", dimension)
    if size is not None and size[0] % w.lanes == 0:
        # The subgroup is within a row.
        if dimension == "x":
            return _plus(first, _lanes(w))
        return build.broadcast(first, w.vector(build.index_type()))
    if size is not None and size[1] * size[2] == 1:
        return _plus(first, _lanes(w)) if dimension == "x" else build.constant(w.vector(build.index_type()), 0)
    thread_position = _plus(_dim(w, "gpu.thread_id", "x"), _lanes(w))
    for name, following in zip("xyz", "yz "):
        if name == dimension == "z":
            break
        extent = build.broadcast(_dim(w, "gpu.block_dim", name), thread_position.type)
        if name == dimension:
            return build.binary("remui", thread_position, extent)
        thread_position = _plus(_dim(w, "gpu.thread_id", following), build.binary("divui", thread_position, extent))
    return thread_position


@rule("gpu.global_id")
def global_id(w: Widener, op: ir.Operation) -> None:
    """The workgroup's first work item plus the id in the workgroup."""
    name = enumerator(op.attributes["dimension"])
    group = build.multiply(_dim(w, "gpu.block_id", name), _dim(w, "gpu.block_dim", name))
    w.widen(op, _plus(group, _thread_id(w, name)))


@rule("gpu.lane_id")
def lane_id(w: Widener, op: ir.Operation) -> None:
    """0, 1, ... along the lanes."""
    w.widen(op, _lanes(w))


@rule("gpu.block_dim")
def block_dim(w: Widener, op: ir.Operation) -> None:
    """Work items of a workgroup."""
    w.replace(op, _dim(w, "gpu.block_dim", enumerator(op.attributes["dimension"])))


@rule("gpu.subgroup_size")
def subgroup_size(w: Widener, op: ir.Operation) -> None:
    """Lanes of the subgroup."""
    w.replace(op, build.index(w.lanes))


@rule("gpu.num_subgroups")
def num_subgroups(w: Widener, op: ir.Operation) -> None:
    """The number of work items divided by the size of subgroups, rounded up."""
    w.replace(op, _subgroups(w))


def _subgroups(w: Widener) -> ir.Value:
    return build.binary("divui", build.add(_items(w), w.lanes - 1), w.lanes)


@rule("gpu.barrier")
def barrier(w: Widener, op: ir.Operation) -> None:
    """A barrier of whole subgroups."""
    w.require_convergence("is a barrier")
    w.keep(op)


def _sources(mode: str, offset: Order, width: int, lanes: int) -> tuple[Order, npt.NDArray[np.bool_]]:
    """The lane that each lane reads, and whether it is in its segment of `width` lanes (gpu.shuffle)."""
    lane = np.arange(lanes)
    first = lane // width * width
    lane_in_row = lane % width
    other = {"xor": lane_in_row ^ offset, "up": lane_in_row - offset, "down": lane_in_row + offset, "idx": offset}[mode]
    valid = (other >= 0) & (other < width)
    return np.where(valid, first + other, lane), valid


@rule("gpu.shuffle")
def shuffle(w: Widener, op: ir.Operation) -> None:
    """Permute lanes; if the source lanes are not known at compile time, select among all lanes."""
    value, offset, width = op.operands
    mode = enumerator(op.attributes["mode"])
    known_width = constant_of(width)
    if known_width is None or known_width < 1 or known_width & (known_width - 1) or known_width > w.lanes:
        w.fail(
            f"width must be a constant power of two up to the subgroup's {w.lanes} lanes",
            "the lanes are divided into groups of the width",
        )
    lane = lane_of_broadcast(op, w.lanes)
    if lane is not None:
        w.replace(op, w.value_of_lane(value, lane), build.constant(build.integer_type(1), 1))
        return
    data = w.wide(value)
    constant_offset = w.known.of(offset)
    if constant_offset is not None:
        source, valid = _sources(mode, constant_offset, known_width, w.lanes)
        w.widen(op, build.permute(data, source), build.dense_integers(valid, build.integer_type(1)))
    else:
        w.widen(op, *_dynamic(w, offset, mode, data, known_width))


def _dynamic(w: Widener, offset: ir.Value, mode: str, data: ir.Value, width: int) -> tuple[ir.Value, ir.Value]:
    """The values that lanes read from lanes known only at run time, and whether these are in their segment."""
    i32 = build.integer_type(32)
    offset = w.wide(offset)
    lane = np.arange(w.lanes)
    name = {"xor": "xori", "up": "subi", "down": "addi"}.get(mode)
    first, lane_in_row = build.dense_integers(lane // width * width, i32), build.dense_integers(lane % width, i32)
    other = build.binary(name, lane_in_row, offset) if name else offset
    # The comparison is unsigned, so that lanes below the segment are out of it too.
    valid = build.compare("ult", other, width)
    source = w.choose(valid, build.binary("addi", first, other), build.dense_integers(lane, i32))
    result = data
    for i in range(w.lanes):
        same = build.compare("eq", source, i)
        result = w.choose(same, build.broadcast(build.extract(data, [i]), data.type), result)
    return result, valid


@rule("gpu.rotate")
def rotate(w: Widener, op: ir.Operation) -> None:
    """Each lane reads the lane `offset` further on, modulo its segment."""
    offset, width = (int(ir.IntegerAttr(op.attributes[n]).value) for n in ("offset", "width"))
    data = w.wide(op.operands[0])
    lane = np.arange(w.lanes)
    source = lane // width * width + (lane % width + offset) % width
    w.widen(op, build.permute(data, source), build.dense_integers(lane < width, build.integer_type(1)))


@rule("gpu.subgroup_broadcast")
def subgroup_broadcast(w: Widener, op: ir.Operation) -> None:
    """Broadcast one lane's value."""
    w.require_convergence("tells lanes of others")
    if not w.varies(op.operands[0]):
        w.replace(op, op.operands[0])
        return
    lane = constant_of(op.operands[1]) if len(op.operands) > 1 else 0
    if lane is None:
        w.fail("requires a constant lane", "use gpu.shuffle idx")
    w.replace(op, w.value_of_lane(op.operands[0], lane))


@rule("gpu.subgroup_reduce")
def subgroup_reduce(w: Widener, op: ir.Operation) -> None:
    """Reduce by halves (lane i with lane i + n/2, then n/4, ...) to one value for all lanes or for each cluster."""
    kind = CombiningKind.of(op, "op")
    result = op.results[0]
    data = _present(w, op.operands[0], kind)
    if "cluster_size" not in op.attributes:
        if shape_of(result):
            w.fail("of vectors cannot be lowered", "reduce element by element")
        w.replace(op, kind.reduce(data))
        return
    size = ir.IntegerAttr(op.attributes["cluster_size"]).value
    stride = ir.IntegerAttr(op.attributes["cluster_stride"]).value if "cluster_stride" in op.attributes else 1
    step = size * stride // 2
    while step >= stride:
        other = build.permute(data, np.arange(w.lanes) ^ step)
        data = kind.combine(data, other)
        step //= 2
    w.widen(op, data)


def _present(w: Widener, value: ir.Value, kind: CombiningKind) -> ir.Value:
    """All lanes' values, with the identity of a kind in inactive lanes."""
    data = w.wide(value)
    if w.mask is None:
        return data
    return w.choose(w.mask, data, build.constant(data.type, kind.identity(element_of(data))))


@rule("gpu.all_reduce")
def all_reduce(w: Widener, op: ir.Operation) -> None:
    """Reduce the lanes of each subgroup as gpu.subgroup_reduce does, then the subgroups in order."""
    w.require_convergence("is a barrier")
    kind = build.combining_kind(op)
    lane_result = kind.reduce(_present(w, op.operands[0], kind))
    number = build.make("gpu.subgroup_id", build.index_type())
    w.replace(op, build.combine_subgroups(lane_result, kind, number, _subgroups(w)))


@rule("gpu.printf")
def printf(w: Widener, op: ir.Operation) -> None:
    """Each active lane prints."""
    text = op.attributes["format"]
    try:
        check_format(ir.StringAttr(text).value, [str(v.type) for v in op.operands])
    except ValueError as e:
        w.fail(str(e))
    call_external(PRINT, None, w.active(), *(w.wide(v) for v in op.operands), attributes={TEXT: text})
    w.erase(op)


@rule("cf.assert")
def assert_(w: Widener, op: ir.Operation) -> None:
    """Check the condition in each active lane."""
    if w.kept(op):
        return
    holds = w.wide(op.operands[0])
    if w.mask is not None:
        holds = build.binary("ori", holds, build.binary("xori", w.mask, True))
    build.create("cf.assert", [], [CombiningKind.AND.reduce(holds)], attributes_of(op))
    w.erase(op)
