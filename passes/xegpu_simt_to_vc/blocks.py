"""`xegpu`: ops that a subgroup executes on whole blocks."""

from __future__ import annotations

import math

from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.matrix import SCALE_BLOCK
from xegpu_py.dialects.xegpu.shapes import vnni_factor
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.diagnostics import Diagnostic, position_of
from xegpu_py.passes.common.builders import create, extract_slice, shape_cast, transpose, vector_type
from xegpu_py.passes.common.fragments import Placement, loaded, mapped, of_registers, stored, unmapped
from xegpu_py.passes.common.values import attributes_of, element_of, is_desc, shape_of
from xegpu_py.passes.xegpu_simt_to_vc.widen import Held, Widener, pattern


def _check(w: Widener, op: ir.Operation) -> None:
    view = op.opview
    if view.mode == Mode.VC:
        because = Diagnostic("note", "this op makes the kernel a SIMT kernel", position_of(w.because.location))
        w.fail("is in VC mode, but the kernel is in SIMT mode", "remove 'mode = vc'", because)
    w.require_convergence("works on a block of the whole subgroup")
    for value in (*op.operands, *op.results):
        if is_desc(value):
            found = TensorDesc.of(value).attr.map
            if found is not None and math.prod(found.wi_layout) != w.lanes:
                w.fail(
                    f"distributes its block to {math.prod(found.wi_layout)} work items, but a subgroup has {w.lanes}"
                )


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return attributes_of(op) | {"mode": ir.Attribute.parse('#xegpu.mode<"vc">')}


@pattern("xegpu.create_nd_tdesc", "xegpu.update_nd_offset", "xegpu.prefetch_nd")
def descriptor(w: Widener, op: ir.Operation) -> None:
    """A descriptor is uniform in the subgroup."""
    _check(w, op)
    operands = [w.uniform(v) for v in op.operands]
    made = create(op.name, [unmapped(r.type) for r in op.results], operands, _attributes(op))
    # The patterns of its users still read its map.
    for old, new in zip(op.results, made.results):
        w.held[old] = Held(new)
    w.erase(op)


@pattern("arith.select")
def select(w: Widener, op: ir.Operation) -> None:
    """A descriptor that is selected has no map, as those it is selected from."""
    if is_desc(op.results[0]):
        made = create(op.name, [unmapped(op.results[0].type)], [w.uniform(v) for v in op.operands])
        w.held[op.results[0]] = Held(made.results[0])
        w.erase(op)
    else:
        w.no_pattern(op)


@pattern("xegpu.load_nd")
def load_nd(w: Widener, op: ir.Operation) -> None:
    """Load the whole block; the map gives the placement of each lane's fragment."""
    _check(w, op)
    result, source = op.results[0], w.uniform(op.operands[0])
    if mapped(op):
        placement = loaded(op)
        kind = vector_type(placement.shape, element_of(result))
        w.widen(op, create(op.name, [kind], [source], _attributes(op)).results[0], placement)
    else:
        w.replace(op, create(op.name, [result.type], [source], _attributes(op)).results[0])


@pattern("xegpu.store_nd")
def store_nd(w: Widener, op: ir.Operation) -> None:
    """Store the block, with all fragments at the positions that the map gives."""
    _check(w, op)
    view = op.opview
    value = w.at(view.value, stored(op)) if mapped(op) else w.uniform(view.value)
    create(op.name, [], [value, w.uniform(view.tdesc)], _attributes(op))
    w.erase(op)


def _placement(w: Widener, value: ir.Value, role: str, shape: tuple[int, ...]) -> Placement:
    """The placement by the descriptors of an operand's or result's loads and stores; the default if there are none."""
    found = w.placements.of(value)
    if len(found) > 1:
        w.fail(
            f"has a {role} whose elements are distributed in {len(found)} different ways",
            "its loads and stores have different sg_maps, so the fragment's distribution is ambiguous",
        )
    if found:
        return found[0]
    try:
        return of_registers(shape, w.lanes, bit_width(str(element_of(value))))
    except ValueError:
        w.fail(f"cannot infer the sg_map of its {role} {value.type} from a descriptor")


@pattern("xegpu.dpas", "xegpu.dpas_mx")
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
        return shape_cast(w.at(value, placement), shape)

    kind = vector_type((rows, columns), element_of(view.result))
    operands = {
        "acc": None if view.acc is None else matrix(view.acc, acc, (rows, columns)),
        "lhs": matrix(view.lhs, lhs, (rows, depth)),
        "rhs": matrix(view.rhs, rhs, rhs_shape),
    }
    build = xegpu.dpas
    if op.name == "xegpu.dpas_mx":
        build = xegpu.dpas_mx
        blocks = -(-depth // SCALE_BLOCK)
        operands["scale_a"] = _scales(w, view.scale_a, "scale_a", rows, blocks)
        operands["scale_b"] = _scales(w, view.scale_b, "scale_b", columns, blocks)
    w.widen(op, build(**operands, result=str(kind), mode="vc"), acc)


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
        return shape_cast(wide, (blocks, count))
    rows = min(count, lanes)
    own = extract_slice(shape_cast(wide, (each * blocks, lanes)), [0, 0], [each * blocks, rows])
    return shape_cast(transpose(shape_cast(own, (each, blocks, rows)), [0, 2, 1]), (count, blocks))


@pattern(
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


@pattern("xegpu.create_tdesc", "xegpu.load_gather", "xegpu.store_scatter", "xegpu.atomic_rmw", "xegpu.update_offset")
def scattered(w: Widener, op: ir.Operation) -> None:
    """Refuse scattered descriptors, which exist only in VC mode (RFC, create_tdesc)."""
    w.fail("is supported only in VC mode", "use memref.load, memref.store or memref.atomic_rmw in SIMT mode")
