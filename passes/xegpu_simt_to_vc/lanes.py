"""`gpu`: where a work item stands, and what the work items of a subgroup tell each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from mlir import ir
from mlir.dialects import arith
from xegpu_py.passes.common.all_reduce import combine_subgroups, kind_of
from xegpu_py.passes.common.combining import combining_op, identity
from xegpu_py.passes.xegpu_simt_to_vc.fragments import Order, Placement
from xegpu_py.passes.xegpu_simt_to_vc.widen import Held, Widener, element_of, ordered, shape_of, widens


def _dimension(name: str) -> str:
    return f"#gpu<dim {name}>"


def _dim(w: Widener, op: str, name: str) -> ir.Value:
    """A place or extent of the hardware's, index."""
    if op == "gpu.block_dim" and w.block_size is not None:
        return w.constant(w.block_size["xyz".index(name)], "index")
    return w.make(op, "index", dimension=_dimension(name))


def _lanes(w: Widener) -> ir.Value:
    """0, 1, ... as a vector of index."""
    return w.make("vector.step", f"vector<{w.lanes}xindex>")


def _plus(w: Widener, scalar: ir.Value, vector: ir.Value) -> ir.Value:
    return w.make("arith.addi", vector.type, w.make("vector.broadcast", vector.type, scalar), vector)


def tail(w: Widener) -> ir.Value | None:
    """The work items of the subgroup that there are, vector of i1; None if the workgroup fills its subgroups."""
    size = w.block_size
    if size is not None and size[0] * size[1] * size[2] % w.lanes == 0:
        return None
    total = _items(w)
    index = w.make("gpu.subgroup_id", "index")
    first = w.make("arith.muli", "index", index, w.constant(w.lanes, "index"))
    item = _plus(w, first, _lanes(w))
    limit = w.make("vector.broadcast", item.type, total)
    return w.make("arith.cmpi", f"vector<{w.lanes}xi1>", item, limit, predicate="2 : i64")


def _items(w: Widener) -> ir.Value:
    """Work items of a workgroup."""
    x, y, z = (_dim(w, "gpu.block_dim", d) for d in "xyz")
    return w.make("arith.muli", "index", w.make("arith.muli", "index", x, y), z)


@widens("gpu.thread_id")
def thread_id(w: Widener, op: ir.Operation) -> None:
    """Work items follow each other along x, then y, then z, from where the subgroup's first one is."""
    w.set(op.results[0], _thread_id(w, str(op.attributes["dimension"]).rstrip(">")[-1]))


def _thread_id(w: Widener, dimension: str) -> ir.Value:
    size = w.block_size
    first = _dim(w, "gpu.thread_id", dimension)
    if size is not None and size[0] % w.lanes == 0:
        # The subgroup lies within a row.
        if dimension == "x":
            return _plus(w, first, _lanes(w))
        return w.make("vector.broadcast", f"vector<{w.lanes}xindex>", first)
    if size is not None and size[1] * size[2] == 1:
        return _plus(w, first, _lanes(w)) if dimension == "x" else w.splat(0, "index")
    place = _plus(w, _dim(w, "gpu.thread_id", "x"), _lanes(w))
    for name in "xyz":
        extent = w.make("vector.broadcast", place.type, _dim(w, "gpu.block_dim", name))
        if name == dimension:
            return w.make("arith.remui", place.type, place, extent) if name != "z" else place
        beyond = w.make("arith.divui", place.type, place, extent)
        following = "xyz"["xyz".index(name) + 1]
        place = w.make(
            "arith.addi",
            place.type,
            w.make("vector.broadcast", place.type, _dim(w, "gpu.thread_id", following)),
            beyond,
        )
    return place


@widens("gpu.global_id")
def global_id(w: Widener, op: ir.Operation) -> None:
    """The workgroup's first work item, and the place in it."""
    name = str(op.attributes["dimension"]).rstrip(">")[-1]
    group = w.make("arith.muli", "index", _dim(w, "gpu.block_id", name), _dim(w, "gpu.block_dim", name))
    w.set(op.results[0], _plus(w, group, _thread_id(w, name)))


@widens("gpu.lane_id")
def lane_id(w: Widener, op: ir.Operation) -> None:
    """0, 1, ... along the lanes."""
    w.set(op.results[0], _lanes(w))


@widens("gpu.block_dim")
def block_dim(w: Widener, op: ir.Operation) -> None:
    """Work items of a workgroup."""
    w.held[op.results[0]] = Held(_dim(w, "gpu.block_dim", str(op.attributes["dimension"]).rstrip(">")[-1]))


@widens("gpu.subgroup_size")
def subgroup_size(w: Widener, op: ir.Operation) -> None:
    """Lanes of the subgroup."""
    w.held[op.results[0]] = Held(w.constant(w.lanes, "index"))


@widens("gpu.num_subgroups")
def num_subgroups(w: Widener, op: ir.Operation) -> None:
    """As many as hold all work items."""
    w.held[op.results[0]] = Held(_subgroups(w))


def _subgroups(w: Widener) -> ir.Value:
    above = w.make("arith.addi", "index", _items(w), w.constant(w.lanes - 1, "index"))
    return w.make("arith.divui", "index", above, w.constant(w.lanes, "index"))


@widens("gpu.barrier")
def barrier(w: Widener, op: ir.Operation) -> None:
    """A barrier of whole subgroups."""
    w.together("is a barrier")
    w.keep(op)


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    attribute = owner.operation.attributes["value"]
    return int(ir.IntegerAttr(attribute).value) if isinstance(attribute, ir.IntegerAttr) else None


def _sources(mode: str, offset: Order, width: int, lanes: int) -> tuple[Order, npt.NDArray[np.bool_]]:
    """The lane that each lane reads, and whether it is in its segment of `width` lanes (gpu.shuffle)."""
    lane = np.arange(lanes)
    first = lane // width * width
    place = lane % width
    other = {"xor": place ^ offset, "up": place - offset, "down": place + offset, "idx": offset}[mode]
    valid = (other >= 0) & (other < width)
    return np.where(valid, first + other, lane), valid


@widens("gpu.shuffle")
def shuffle(w: Widener, op: ir.Operation) -> None:
    """Lanes in another order; where that is known only as the kernel runs, a choice among all lanes."""
    value, offset, width = op.operands
    mode = str(op.attributes["mode"]).rstrip(">").split()[-1]
    known_width = _constant(width)
    if known_width is None or known_width < 1 or known_width & (known_width - 1) or known_width > w.lanes:
        w.fail(
            f"has a width that is no constant power of two up to the subgroup's {w.lanes} lanes",
            "the width is what the lanes are divided into",
        )
    data = w.wide(value)
    known = w.known.of(offset)
    if known is not None:
        source, valid = _sources(mode, known, known_width, w.lanes)
        w.set(op.results[0], w.make("vector.shuffle", data.type, data, data, mask=ordered(source)))
        w.held[op.results[1]] = Held(w.integers(valid, "i1"), _scalars(w))
        return
    w.set(op.results[0], *_dynamic(w, op, mode, data, known_width))


def _scalars(w: Widener) -> Placement:
    return Placement((w.lanes,), np.arange(w.lanes)[None])


def _dynamic(w: Widener, op: ir.Operation, mode: str, data: ir.Value, width: int) -> tuple[ir.Value]:
    kind = f"vector<{w.lanes}xi32>"
    offset = w.wide(op.operands[1])
    lane = np.arange(w.lanes)
    place = w.integers(lane % width, "i32")
    first = w.integers(lane // width * width, "i32")
    name = {"xor": "arith.xori", "up": "arith.subi", "down": "arith.addi"}.get(mode)
    other = w.make(name, kind, place, offset) if name else offset
    # Unsigned, what is below the segment is above it.
    valid = w.make("arith.cmpi", f"vector<{w.lanes}xi1>", other, w.splat(width, "i32"), predicate="6 : i64")
    source = w.choose(valid, w.make("arith.addi", kind, first, other), w.integers(lane, "i32"))
    result = data
    for i in range(w.lanes):
        same = w.make("arith.cmpi", f"vector<{w.lanes}xi1>", source, w.splat(i, "i32"), predicate="0 : i64")
        element = w.make("vector.extract", element_of(data.type), data, static_position=ordered(np.array([i])))
        result = w.choose(same, w.make("vector.broadcast", data.type, element), result)
    w.set(op.results[1], valid)
    return (result,)


@widens("gpu.rotate")
def rotate(w: Widener, op: ir.Operation) -> None:
    """Lanes read the one that is `offset` further on, round their segment."""
    offset, width = (int(ir.IntegerAttr(op.attributes[n]).value) for n in ("offset", "width"))
    data = w.wide(op.operands[0])
    lane = np.arange(w.lanes)
    source = lane // width * width + (lane % width + offset) % width
    w.set(op.results[0], w.make("vector.shuffle", data.type, data, data, mask=ordered(source)))
    w.held[op.results[1]] = Held(w.integers(lane < width, "i1"), _scalars(w))


@widens("gpu.subgroup_broadcast")
def subgroup_broadcast(w: Widener, op: ir.Operation) -> None:
    """One lane's value for all."""
    w.together("tells lanes of others")
    if not w.varies(op.operands[0]):
        w.held[op.results[0]] = w.held[op.operands[0]]
        return
    data = w.wide(op.operands[0])
    lane = _constant(op.operands[1]) if len(op.operands) > 1 else 0
    if lane is None:
        w.fail("needs a constant lane", "use gpu.shuffle idx")
    place = ordered(np.array([lane]))
    w.held[op.results[0]] = Held(w.make("vector.extract", element_of(data.type), data, static_position=place))


@widens("gpu.subgroup_reduce")
def subgroup_reduce(w: Widener, op: ir.Operation) -> None:
    """Lane i with lane i + n/2, then those with n/4, and so on: one value for all, or for each cluster of lanes."""
    kind = str(op.attributes["op"]).rstrip(">").split()[-1]
    result = op.results[0]
    data = _present(w, op.operands[0], kind)
    element = ir.VectorType(data.type).element_type
    if "cluster_size" not in op.attributes:
        if shape_of(result.type):
            w.fail("of vectors cannot be lowered", "reduce element by element")
        w.held[result] = Held(w.make("vector.reduction", result.type, data, kind=f"#vector.kind<{kind}>"))
        return
    size = int(ir.IntegerAttr(op.attributes["cluster_size"]).value)
    stride = int(ir.IntegerAttr(op.attributes["cluster_stride"]).value) if "cluster_stride" in op.attributes else 1
    step = size * stride // 2
    while step >= stride:
        lane = np.arange(w.lanes)
        other = w.make("vector.shuffle", data.type, data, data, mask=ordered(lane ^ step))
        data = w.make(combining_op(kind, element), data.type, data, other)
        step //= 2
    w.set(result, data)


def _present(w: Widener, value: ir.Value, kind: str) -> ir.Value:
    """All lanes' values, with the identity of a kind in the lanes that have not come here."""
    data = w.wide(value)
    if w.mask is None:
        return data
    element = ir.VectorType(data.type).element_type
    other = arith.constant(data.type, ir.DenseElementsAttr.get_splat(data.type, identity(kind, element)))
    return w.choose(w.mask, data, other)


@widens("gpu.all_reduce")
def all_reduce(w: Widener, op: ir.Operation) -> None:
    """The lanes of each subgroup as by gpu.subgroup_reduce, then the subgroups in their order."""
    w.together("is a barrier")
    kind = kind_of(op)
    if kind is None:
        w.fail(
            "has a region that is not a single op of arith on both arguments", "name the operation: gpu.all_reduce add"
        )
    value = op.operands[0]
    own = w.make("vector.reduction", value.type, _present(w, value, kind), kind=f"#vector.kind<{kind}>")
    number = w.make("gpu.subgroup_id", "index")
    w.held[op.results[0]] = Held(combine_subgroups(own, kind, number, _subgroups(w)))
