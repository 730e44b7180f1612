"""How our xegpu is written as upstream's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from mlir import ir
from mlir.dialects import arith

from xegpu_py.dialects import xegpu as ours
from xegpu_py.dialects.xegpu import Mode, block_ops, matrix_ops, scattered_ops, sync_ops
from xegpu_py.dialects.xegpu.fragments import Placements, coordinates, of_registers
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess
from xegpu_py.dialects.xegpu.types import UpstreamXeGPU
from xegpu_py.dialects.xegpu.upstream_types import (
    BlockTdescAttr,
    ScatterTdescAttr,
    UpstreamNBarrier,
    UpstreamTensorDesc,
)
from xegpu_py.ir.bindings import is_kernel
from xegpu_py.ir.builtin import bit_width, number_attribute
from xegpu_py.ir.context import Context
from xegpu_py.ir.control_flow import UnionFind, forwarded_groups
from xegpu_py.ir.diagnostics import Source, emit_error
from xegpu_py.ir.module import Module, parse_source, print_op, walk
from xegpu_py.passes.analysis.ir_queries import SUBGROUP_SIZE, constant_of, defining_op, shape_of
from xegpu_py.passes.rewriting.builders import add, index, index_type, integer_type, strided_layout, transpose
from xegpu_py.passes.rewriting.rewriter import Conversion, Rewriter, Rule, Rules
from xegpu_py.upstream import import_common
from xegpu_py.upstream.classification import classify
from xegpu_py.upstream.import_common import cast, element_of, given_hints, mixed, parts, values_of, vector_type
from xegpu_py.upstream.levels import LANES, LANES_ATTR
from xegpu_py.upstream.subgroup import is_static

# Printing kernels of our `xegpu` in the syntax of LLVM 22.1.8, which stock `mlir-opt` of that version reads.

_OURS = "xegpu."

REQUIRED_SIZE = "intel_reqd_sub_group_size"
"""Upstream's attribute of kernels with the lanes of their subgroups."""


def export_upstream(module: Module, *, count_lanes: bool = False, debuginfo: bool = False) -> str:
    """A module's text in upstream's syntax of LLVM 22.1.8. The module is not changed; it may be in that syntax.

    Kernels of subgroups (`mode = vc`) are exported op by op. Launches of a kernel without `xegpu.lanes_per_subgroup`
    count subgroups: such a kernel gets the attribute `VectorComputeFunctionINTEL`, by which upstream's tools know that.

    Args:
        count_lanes: whether ids and sizes of all kernels shall count lanes, 16 a subgroup, as upstream's lowering does.
        debuginfo: whether to print locations.

    Raises:
        DiagnosticError: at an op that has no equivalent upstream, such as one of `xetile` or of work items.
    """
    if classify(module).of("upstream"):
        return module.text(debuginfo=debuginfo)
    made = parse_source(Source(module.text(debuginfo=True), "<exported>"), context=Context.from_pool())
    context = made.context
    context.define((UpstreamXeGPU,))
    with context, ir.Location.unknown():
        for func in [op for op in walk(made.outline) if op.name in ("gpu.func", "func.func")]:
            _Export(func, count_lanes).run()
    return print_op(made.outline, debuginfo=debuginfo, verified=True) + "\n"


class _Export(Rewriter):
    """Rewrites one function, in place, by a rule for each op of our dialect. Replaced ops are erased at the end."""

    rules = rule = Rules[Rule[Any]]()

    def __init__(self, func: ir.Operation, count_lanes: bool = False) -> None:
        self.func = func
        self.count_lanes = count_lanes
        self.places: dict[ir.Value, tuple[ir.Value, list[Any]]] = {}
        """Descriptors whose offsets are those of the ops that use them: upstream's, and the offsets."""

    def run(self) -> None:
        pass_offsets(self.func)
        found = parts(self.func)
        is_simt = SUBGROUP_SIZE in self.func.attributes or any(
            op.name.startswith(_OURS) and getattr(op.opview, "mode", None) == Mode.SIMT for op in found
        )
        self.lanes = LaneExport(self.func) if is_simt else None
        own = [op for op in found if op.name.startswith(_OURS)]
        others = [op for op in found if not op.name.startswith(_OURS)]
        for op in found:
            if op.name.startswith("xetile."):
                refuse_export(op, "upstream has no tiles", "lower the kernel first, by --xetile-to-xegpu-pipeline")
        for value in (*values_of(self.func), *(v for op in others for v in values_of(op))):
            if str(value.type).startswith("!xegpu."):
                value.set_type(self.kind(value))
        for op in own:
            self.op(op.opview)
        for op in reversed(own):
            op.erase()
        self._fold_casts()
        if self.func.name == "gpu.func":
            self._launches(others)

    def replace(self, op: ir.Operation, *results: ir.Value) -> None:
        for result, value in zip(op.results, results):
            result.replace_all_uses_with(value)

    def _fold_casts(self) -> None:
        """Remove shape casts that other shape casts undo."""
        casts = [op for op in parts(self.func) if op.name == "vector.shape_cast"]
        for op in casts:
            inner = defining_op(op.operands[0])
            if inner is not None and inner.name == op.name and inner.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(inner.operands[0])
        for op in reversed(casts):
            if next(iter(op.results[0].uses), None) is None:
                op.erase()

    def _launches(self, found: Sequence[ir.Operation]) -> None:
        attributes = self.func.attributes
        if self.lanes is not None:
            # Launches of kernels of work items count work items, in our dialect and upstream.
            attributes[REQUIRED_SIZE] = attributes.get(SUBGROUP_SIZE) or number_attribute(integer_type(32), LANES)
            if SUBGROUP_SIZE in attributes:
                del attributes[SUBGROUP_SIZE]
            return
        if LANES_ATTR not in attributes and not self.count_lanes:
            if is_kernel(self.func):
                attributes["VectorComputeFunctionINTEL"] = ir.UnitAttr.get()
            return
        if LANES_ATTR in attributes:
            del attributes[LANES_ATTR]
        if import_common.KNOWN in attributes:
            x, *rest = ir.DenseI32ArrayAttr(attributes[import_common.KNOWN])
            attributes[import_common.KNOWN] = ir.DenseI32ArrayAttr.get([x * LANES, *rest])
        for op in found:
            if op.name in import_common.COUNTED and import_common.counts_x(op):
                with ir.InsertionPoint.after(op), op.location:
                    subgroup = arith.divui(op.results[0], index(LANES))
                op.results[0].replace_all_uses_except(subgroup, subgroup.owner.operation)

    def kind(self, value: ir.Value) -> ir.Type:
        """Upstream's type of a value."""
        if ours.NBarrier.accepts(str(value.type)):
            return UpstreamNBarrier().to_ir()
        desc = ours.TensorDesc.of(value)
        space = desc.attr.memory_scope
        if desc.attr.scattered:
            encoding = ScatterTdescAttr(space, desc.chunk).encode()
            return UpstreamTensorDesc(desc.shape, desc.element, encoding).to_ir()
        attr = BlockTdescAttr(space, desc.attr.array_length, desc.attr.boundary_check or len(desc.shape) == 1)
        plain = attr == BlockTdescAttr()
        return UpstreamTensorDesc(desc.shape, desc.element, "unit" if plain else attr.encode()).to_ir()

    def hints(self, made: Any, view: Any) -> None:
        """Give an op of upstream's the cache hints of ours."""
        for name, hint in given_hints(view).items():
            made.operation.attributes[name] = UpstreamXeGPU.enums["cache_hint"].to_ir(hint)

    # Blocks.

    @rule("xegpu.create_nd_tdesc")
    def create_nd_tdesc(self, op: Any) -> None:
        source = op.source
        memory = ir.MemRefType(source.type) if isinstance(source.type, ir.MemRefType) else None
        shape, strides = list(op.shape), list(op.strides)
        if memory is not None and not shape and not is_static(source):
            _, shape, strides = strided_layout(source)
        kind, offsets = self.kind(op.tdesc), list(op.offsets)
        if not offsets or not _is_local(op.tdesc):
            self.replace(
                op, block_ops.UpstreamCreateNdTdescOp(source, offsets, shape or None, strides or None, tdesc=kind).tdesc
            )
            return
        made = block_ops.UpstreamCreateNdTdescOp(source, [], shape or None, strides or None, tdesc=kind)
        self.places[op.tdesc] = made.tdesc, offsets

    def placed(self, tdesc: ir.Value) -> tuple[ir.Value, list[Any]]:
        """A descriptor of upstream's, and the offsets that are given to an op that uses it."""
        return self.places.get(tdesc) or (tdesc, [])

    @rule("xegpu.update_nd_offset")
    def update_nd_offset(self, op: Any) -> None:
        if op.tdesc in self.places:
            made, offsets = self.places[op.tdesc]
            moved = [add(a, b) for a, b in zip(offsets, op.offsets, strict=True)]
            self.places[op.result] = made, moved
            return
        self.replace(op, block_ops.UpstreamUpdateNdOffsetOp(op.tdesc, op.offsets, result=op.tdesc.type).result)

    @rule("xegpu.load_nd")
    def load_nd(self, op: Any) -> None:
        tdesc, offsets = self.placed(op.tdesc)
        desc = UpstreamTensorDesc.of(tdesc)
        bits, rank = bit_width(desc.element), len(desc.shape)
        block = desc.block
        assert block is not None
        outer = (block.array_length,) if block.array_length > 1 else ()
        shape = (*outer, *desc.shape)
        options: dict[str, Any] = {}
        if self.lanes is not None:
            self.replace(op, self.load_of_lanes(self.lanes, op, tdesc, offsets, outer))
            return
        turned = op.transpose is not None and tuple(op.transpose) != tuple(range(rank))
        if op.vnni_axis == 0 and self.count_lanes and len(outer) == 0 and _only_multiplied(op.value):
            # Upstream's passes pack it themselves.
            made = block_ops.UpstreamLoadNdOp(tdesc, offsets, value=vector_type(desc.shape, desc.element))
            self.hints(made, op)
            self.replace(op, made.value)
            return
        if op.vnni_axis == 0:
            factor = 32 // bits
            options["packed"] = True
            shape = (*outer, desc.shape[0] // factor, desc.shape[1], factor)
        elif turned and rank == 2 and bits == 32 and op.transpose_bit_width in (None, bits):
            options["transpose"] = (1, 0)
            shape = (*outer, desc.shape[1], desc.shape[0])
        made = block_ops.UpstreamLoadNdOp(tdesc, offsets, value=vector_type(shape, desc.element), **options)
        self.hints(made, op)
        value = made.value
        if turned and "transpose" not in options:
            value = _turned(value, len(outer), tuple(op.transpose), (op.transpose_bit_width or bits) // bits)
        self.replace(op, _side_by_side(value, shape_of(op.value), len(outer)))

    def load_of_lanes(
        self, lanes: LaneExport, view: Any, tdesc: ir.Value, offsets: list[Any], outer: tuple[int, ...]
    ) -> ir.Value:
        """A lane's fragment of a block, in the shape that ours has."""
        options, shape = lanes.load(view)
        element = element_of(view.value)
        made = block_ops.UpstreamLoadNdOp(
            tdesc, offsets, value=vector_type((math.prod(shape_of(view.value)),), element), **options
        )
        self.hints(made, view)
        return _side_by_side(cast(made.value, (*outer, *shape)), shape_of(view.value), len(outer))

    @rule("xegpu.store_nd")
    def store_nd(self, op: Any) -> None:
        tdesc, offsets = self.placed(op.tdesc)
        desc = UpstreamTensorDesc.of(tdesc)
        if desc.block and desc.block.array_length > 1:
            refuse_export(op, "it stores an array of blocks", "xegpu-legalize makes one store of each")
        shape = desc.shape
        if self.lanes is not None:
            self.lanes.store(op)
            shape = (math.prod(shape_of(op.value)),)
        self.hints(block_ops.UpstreamStoreNdOp(cast(op.value, shape), tdesc, offsets), op)

    @rule("xegpu.prefetch_nd")
    def prefetch_nd(self, op: Any) -> None:
        self.hints(block_ops.UpstreamPrefetchNdOp(*self.placed(op.tdesc)), op)

    @rule("xegpu.dpas")
    def dpas(self, op: Any) -> None:
        a, b, acc = op.lhs, op.rhs, op.acc
        if element_of(a) != element_of(b):
            refuse_export(op, f"it multiplies {element_of(a)} by {element_of(b)}, which upstream does not mix")
        if acc is not None and acc.type != op.result.type:
            refuse_export(op, f"its accumulator, {acc.type}, differs from its result, {op.result.type}")
        shape = shape_of(a)
        if self.lanes is not None:
            self.lanes.check_product(op)
            a, b, acc = (None if v is None else cast(v, (math.prod(shape_of(v)),)) for v in (a, b, acc))
            kind = vector_type((math.prod(shape_of(op.result)),), element_of(op.result))
            self.replace(op, cast(matrix_ops.UpstreamDpasOp(a, b, acc, result=kind).result, shape_of(op.result)))
            return
        a = cast(a, (shape[0], math.prod(shape[1:])))
        self.replace(op, matrix_ops.UpstreamDpasOp(a, b, acc, result=op.result.type).result)

    # Scattered accesses.

    @rule("xegpu.create_tdesc")
    def create_tdesc(self, op: Any) -> None:
        made = scattered_ops.UpstreamCreateTdescOp(op.source, _indices(op.offsets), tdesc=self.kind(op.tdesc))
        self.replace(op, made.tdesc)

    @rule("xegpu.update_offset")
    def update_offset(self, op: Any) -> None:
        self.replace(
            op, scattered_ops.UpstreamUpdateOffsetOp(op.tdesc, _indices(op.offsets), result=op.tdesc.type).result
        )

    @rule("xegpu.load_gather")
    def load_gather(self, op: Any) -> None:
        shape = UpstreamTensorDesc.of(op.tdesc).shape
        made = scattered_ops.UpstreamLoadGatherOp(
            op.tdesc, mask=op.mask, value=vector_type(shape, element_of(op.value))
        )
        self.hints(made, op)
        self.replace(op, transpose(made.value, [1, 0]) if len(shape) == 2 else made.value)

    @rule("xegpu.store_scatter")
    def store_scatter(self, op: Any) -> None:
        value = transpose(op.value, [1, 0]) if len(shape_of(op.value)) == 2 else op.value
        self.hints(scattered_ops.UpstreamStoreScatterOp(value, op.tdesc, mask=op.mask), op)

    @rule("xegpu.prefetch")
    def prefetch(self, op: Any) -> None:
        self.hints(scattered_ops.UpstreamPrefetchOp(op.tdesc), op)

    @rule("xegpu.atomic_rmw")
    def atomic_rmw(self, op: Any) -> None:
        if op.expected is not None:
            refuse_export(op, "upstream's atomic_rmw does not compare")
        if len(shape_of(op.value)) == 2:
            refuse_export(op, f"it works on {shape_of(op.value)[0]} elements a lane")
        made = scattered_ops.UpstreamAtomicRmwOp(
            kind=op.kind, tdesc=op.tdesc, mask=op.mask, value=op.value, result=op.result.type
        )
        self.replace(op, made.result)

    # Barriers.

    @rule("xegpu.alloc_nbarrier")
    def alloc_nbarrier(self, op: Any) -> None:
        count = op.nbarrier_num if op.count is None else constant_of(op.count)
        if count is None:
            refuse_export(op, "its number of barriers is not a constant")
        sync_ops.UpstreamAllocNbarrierOp(nbarrier_num=count)

    @rule("xegpu.init_nbarrier")
    def init_nbarrier(self, op: Any) -> None:
        kind = UpstreamNBarrier().to_ir()
        self.replace(
            op, UpstreamXeGPU.operations["init_nbarrier"](op.nbarrier_id, op.participant_thread_num, result=kind).result
        )

    @rule("xegpu.nbarrier_arrive")
    def nbarrier_arrive(self, op: Any) -> None:
        sync_ops.UpstreamNbarrierArriveOp(op.nbarrier)

    @rule("xegpu.nbarrier_wait")
    def nbarrier_wait(self, op: Any) -> None:
        sync_ops.UpstreamNbarrierWaitOp(op.nbarrier)

    @rule("xegpu.fence")
    def fence(self, op: Any) -> None:
        names = {"shared": "slm", "global": "global"}
        kinds = ["global", "slm"] if op.memory_kind is None else [names[op.memory_kind.value]]
        for kind in kinds:
            sync_ops.UpstreamFenceOp(memory_kind=kind, fence_scope="gpu" if op.scope is None else op.scope.value)

    @rule("xegpu.compile_hint")
    def compile_hint(self, op: Any) -> None:
        """Emit nothing: LLVM has no such hint, and the hint changes no value."""


def _only_multiplied(value: ir.Value) -> bool:
    """Whether a matrix is used only as a second factor."""
    return all(
        use.owner.operation.name == "xegpu.dpas" and use.owner.operation.opview.rhs == value for use in value.uses
    )


def _is_local(tdesc: ir.Value) -> bool:
    """Whether only ops of blocks use a descriptor, or what it is moved to, and no control flow passes it on."""
    for use in tdesc.uses:
        user = use.owner.operation
        if user.name == "xegpu.update_nd_offset":
            if not _is_local(user.results[0]):
                return False
        elif not isinstance(user.opview, BlockAccess):
            return False
    return True


def _turned(value: ir.Value, outer: int, order: tuple[int, ...], unit: int) -> ir.Value:
    """A block whose dimensions are permuted, where units of elements that lie side by side stay so."""
    shape = shape_of(value)
    units = (*shape[:-1], shape[-1] // unit, unit)
    permutation = [*range(outer), *(outer + d for d in order), len(shape)]
    *moved, last, _ = (units[d] for d in permutation)
    return cast(transpose(cast(value, units), permutation), (*moved, last * unit))


def _side_by_side(value: ir.Value, wanted: tuple[int, ...], outer: int) -> ir.Value:
    """An array of blocks in our dialect's shape: as loaded, or with the blocks side by side along the columns."""
    shape = shape_of(value)
    if not outer or len(wanted) == len(shape):
        return cast(value, wanted)
    return cast(transpose(value, [1, 0, *range(2, len(shape))]), wanted)


def _indices(offsets: ir.Value) -> ir.Value:
    """Offsets as index."""
    if element_of(offsets) == "index":
        return offsets
    return arith.index_cast(vector_type(shape_of(offsets), "index"), offsets)


# Exporting kernels of work items: which of our fragments exist at upstream's lane level, which has no maps.
#
# At lane level a block is a vector of one dimension. Its elements are in the order in which the message leaves them in
# registers.


def refuse_export(op: ir.Operation | ir.OpView, reason: str, *notes: str) -> NoReturn:
    """Raise the diagnostic that an op cannot be exported.

    Raises:
        DiagnosticError: always.
    """
    emit_error(op, f"cannot be exported: {reason}", *notes)


class LaneExport:
    """The fragments of blocks in a kernel of work items."""

    def __init__(self, func: ir.Operation) -> None:
        self.placements = Placements(func)

    def load(self, view: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
        """The attributes of upstream's load, and the shape of the elements of each block.

        Raises:
            DiagnosticError: if lanes have other elements than any load of upstream's leaves them.
        """
        desc = _mapped(view)
        rows, columns = _fragment(desc)
        if view.transpose is not None and tuple(view.transpose) == (1, 0):
            if desc.bits != 32 or not _is(desc, (LANES, 1), (1, 1)):
                self.refuse(view, desc)
            return {"transpose": (1, 0)}, (columns, rows)
        if view.vnni_axis == 1:
            self.refuse(view, desc)
        side = max(16 // desc.bits, 1)
        if view.vnni_axis is None and _is(desc, (1, LANES), (1, side)):
            return {}, (rows, columns) if len(desc.shape) > 1 else (columns,)
        if desc.bits >= 32 or len(desc.shape) == 1 or desc.shape[1] != LANES or not _is(desc, (1, LANES), (1, 1)):
            self.refuse(view, desc)
        factor = 32 // desc.bits
        return {"packed": True}, (rows, columns) if view.vnni_axis is None else (rows // factor, columns, factor)

    def store(self, view: Any) -> None:
        """Check the fragments that lanes store.

        Raises:
            DiagnosticError: if they have other elements than upstream's store takes from them.
        """
        desc = _mapped(view)
        if not _is(desc, (1, LANES), (1, max(16 // desc.bits, 1))):
            self.refuse(view, desc)

    def refuse(self, view: Any, desc: ours.TensorDesc) -> NoReturn:
        """Raise that lanes have other elements than upstream's lane level gives them."""
        refuse_export(
            view,
            f"its {desc.attr.map} does not leave elements where upstream's lane level has them",
            f"there wi_layout is [1, {LANES}], with units of 16 bits or more of each row, or with columns of what is "
            f"packed; or [{LANES}, 1] of what is transposed",
        )

    def check_product(self, view: Any) -> None:
        """Check that the fragments of a product lie as dpas's registers have them.

        Raises:
            DiagnosticError: if the maps of their defining ops give another layout.
        """
        a, b, d = (math.prod(shape_of(v)) * LANES for v in (view.lhs, view.rhs, view.result))
        bits = bit_width(element_of(view.rhs))
        factor = max(32 // bits, 1)
        rows, depth = d // LANES, b // LANES
        shapes = {
            "lhs": (view.lhs, (rows, depth)),
            "rhs": (view.rhs, (depth // factor, LANES, factor) if factor > 1 else (depth, LANES)),
            "result": (view.result, (rows, LANES)),
        }
        for role, (value, shape) in shapes.items():
            for found in self.placements.of(value):
                if not found.same(of_registers(value, role, shape, LANES)):
                    refuse_export(view, f"its {role} does not lie as dpas's registers have it")
        if a != rows * depth:
            refuse_export(view, f"its lhs has {a} elements in a subgroup, which are not {rows} rows of {depth}")


def _mapped(view: Any) -> ours.TensorDesc:
    """The descriptor of an op on a block that lanes divide."""
    desc = ours.TensorDesc.of(view.tdesc)
    if desc.attr.map is None:
        refuse_export(view, "all work items have the whole block, as its descriptor has no sg_map", "give it an sg_map")
    if math.prod(desc.attr.map.wi_layout) != LANES:
        refuse_export(view, f"its sg_map is of {math.prod(desc.attr.map.wi_layout)} work items, not {LANES}")
    return desc


def _fragment(desc: ours.TensorDesc) -> tuple[int, int]:
    """The rows and columns of a lane's part of a block."""
    found = desc.fragment()[-2:]
    return (1, found[-1]) if len(desc.shape) == 1 else (found[0], found[1])


def _is(desc: ours.TensorDesc, layout: tuple[int, int], data: tuple[int, int]) -> bool:
    """Whether a descriptor's map gives lanes the same elements as another map."""
    rows, columns = (1, *desc.shape) if len(desc.shape) == 1 else desc.shape
    if rows % layout[0] or columns % (layout[1] * data[1]) or desc.attr.map is None:
        return False
    wanted = coordinates(desc.shape, ours.SgMap(layout, data))
    return np.array_equal(coordinates(desc.shape, desc.attr.map), wanted)


# Descriptors that loops and branches pass on, before kernels are exported: their offsets are passed on instead.
#
# Upstream's passes lower descriptors that are created without offsets and used by ops that have offset operands.

rule: Rules[Any] = Rules()


class DescriptorsToOffsets(Conversion):
    """One function, in which descriptors that are all made by one op are passed on as their offsets.

    Attributes:
        bases: the descriptor without offsets, by the class of a descriptor.
    """

    rules = rule

    def __init__(self, func: ir.Operation) -> None:
        super().__init__()
        self.bases: dict[ir.Value, ir.Value] = {}
        self._alike: UnionFind[ir.Value] = UnionFind()
        made: dict[ir.Value, int] = {}
        ops = parts(func)
        passed: list[ir.Value] = []
        for op in ops:
            for values in forwarded_groups(op):
                if _is_block(values[-1]):
                    self._alike.join(values)
                    passed += values
            if op.name == "xegpu.update_nd_offset":
                self._alike.join([op.operands[0], op.results[0]])
            elif op.name == "arith.select" and _is_block(op.results[0]):
                self._alike.join([*list(op.operands)[1:], op.results[0]])
                made[self._alike.find(op.results[0])] = 2
        for op in ops:
            if op.name == "xegpu.create_nd_tdesc":
                group = self._alike.find(op.results[0])
                made[group] = made.get(group, 0) + 1
        self._chosen = {g for g in map(self._alike.find, passed) if made.get(g) == 1}

    def group(self, desc: ir.Value) -> ir.Value | None:
        """The class of a descriptor whose offsets are passed on; None for all other values."""
        found = self._alike.find(desc)
        return found if found in self._chosen else None

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> Sequence[ir.Type] | None:
        if not _is_block(value) or self.group(value) is None:
            return None
        return [index_type()] * len(ours.TensorDesc.of(value).shape)

    def at(self, desc: ir.Value) -> ir.Value:
        """A descriptor where it is used."""
        group = self.group(desc)
        if group is None:
            return desc
        base = self.bases[group]
        return ours.UpdateNdOffsetOp(base, list(self.get(desc)), mode=base.owner.opview.mode, result=base.type).result


def _is_block(value: ir.Value) -> bool:
    return str(value.type).startswith("!xegpu.tensor_desc") and not ours.TensorDesc.of(value).attr.scattered


@rule("xegpu.create_nd_tdesc")
def create(places: DescriptorsToOffsets, op: ir.Operation) -> None:
    """A descriptor without offsets, and its offsets."""
    group = places.group(op.results[0])
    if group is None:
        places.keep(op)
        return
    view: Any = op.opview
    rank = len(view.offsets)
    made = ours.CreateNdTdescOp(
        view.source, [0] * rank, view.shape or None, view.strides or None, tdesc=view.tdesc.type, mode=view.mode
    )
    places.bases[group] = made.tdesc
    places.replace(op, mixed(view.offsets))


@rule("xegpu.update_nd_offset")
def update(places: DescriptorsToOffsets, op: ir.Operation) -> None:
    """Add to the offsets of a descriptor that is moved."""
    view: Any = op.opview
    if places.group(view.result) is None:
        places.keep(op)
        return
    moved = [index(add(a, b)) for a, b in zip(places.get(view.tdesc), view.offsets, strict=True)]
    places.replace(op, moved)


@rule(*ours.XeGPU.implementing(BlockAccess))
def access(places: DescriptorsToOffsets, op: ir.Operation) -> None:
    """Apply the op to the descriptor with its offsets."""
    number = 1 if op.name == "xegpu.store_nd" else 0
    op.operands[number] = places.at(op.operands[number])


def pass_offsets(func: ir.Operation) -> None:
    """Let loops and branches of a function pass on offsets in place of descriptors, where these have one origin."""
    places = DescriptorsToOffsets(func)
    for region in func.regions:
        places.region(region)
    places.finish()
