"""Kernels of work items, and `gpu`: ids and extents, what lanes exchange in a subgroup, printf and assert."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from mlir import ir

from xegpu_py.dialects.xegpu.fragments import Order, Placements
from xegpu_py.ir.builtin import PRINT, TEXT, CombiningKind, call_external, check_format, enum_attribute, enumerator
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.integer_analysis import Limits
from xegpu_py.passes.analysis.ir_queries import (
    SUBGROUP_SIZE,
    WORK_ITEMS,
    attributes_of,
    check_elements,
    constant_of,
    element_of,
    shape_of,
)
from xegpu_py.passes.analysis.uniformity import lane_of_broadcast
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.xegpu_simt_to_vc import lane_access  # noqa: F401  (defines rules)
from xegpu_py.passes.xegpu_simt_to_vc.simt_vectorization import Widener, rule


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


def widen_kernel(func: ir.Operation, count: int, because: ir.Operation, limits: Limits) -> None:
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
    w = Widener(func, count, Placements(func), because, block_size, limits)
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
