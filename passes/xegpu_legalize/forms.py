"""Ops that are other ops: rewritten one by one, before anything is split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.shapes import block_shapes, vnni_factor
from xegpu_py.passes.common.all_reduce import combine_subgroups, kind_of
from xegpu_py.passes.common.divisors import transposes_in_message
from xegpu_py.passes.xegpu_legalize.doubles import rewrite_double
from xegpu_py.passes.xegpu_legalize.numbers import rewrite_arithmetic
from xegpu_py.passes.xegpu_legalize.plan import is_desc
from xegpu_py.passes.xegpu_legalize.surfaces import Surfaces

from xegpu_py.ir.builtin import vector_of, vector_text
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, position_of, remark
from xegpu_py.ir.verifier import walk
from xegpu_py.target import Target


def branch_among_descriptors(func: ir.Operation) -> None:
    """Make branches of choices between descriptors: branches may carry what these become."""
    for op in walk(func)[1:]:
        if op.name == "arith.select" and is_desc(op.results[0]):
            _branch(op)


def rewrite_forms(func: ir.Operation, target: Target, surfaces: Surfaces) -> None:
    """Rewrite what has no message or instruction, of whatever size it is."""
    for op in [op for op in walk(func) if op.name == "gpu.all_reduce"]:
        _combine_subgroups(op)
    for op in walk(func)[1:]:
        if op.name == "xegpu.load_nd":
            _transform_in_registers(op, target, surfaces)
        elif not rewrite_double(op):
            rewrite_arithmetic(op, target)


def _combine_subgroups(op: ir.Operation) -> None:
    """In VC mode a work item is a subgroup."""
    kind = kind_of(op)
    where = position_of(op.location)
    if kind is None:
        message = "'gpu.all_reduce' op has a region that is not a single op of arith on both arguments"
        note = Diagnostic("note", "name the operation: gpu.all_reduce add", where)
        raise DiagnosticError([Diagnostic("error", message, where, (note,))])
    with op.location, ir.InsertionPoint(op):
        index = ir.IndexType.get()
        number, count = (
            ir.Operation.create(name, [index], []).results[0] for name in ("gpu.subgroup_id", "gpu.num_subgroups")
        )
        op.results[0].replace_all_uses_with(combine_subgroups(op.operands[0], kind, number, count))
    op.erase()


def _branch(op: ir.Operation) -> None:
    condition, *values = op.operands
    made = ir.Operation.create(
        "scf.if",
        results=[op.results[0].type],
        operands=[condition],
        regions=2,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    for region, value in zip(made.regions, values):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])), op.location:
            ir.Operation.create("scf.yield", operands=[value])
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


def _transform_in_registers(op: ir.Operation, target: Target, surfaces: Surfaces) -> None:
    """A load whose transform no message does becomes one of the block as it lies, and the transform of what it loaded.

    Messages transpose blocks of two dimensions, in units of at least 32 bits that begin at a multiple of their size.
    """
    op = _with_units_side_by_side(op)
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    if view.mode != Mode.VC or len(desc.shape) < 2:
        return
    gathered = surfaces.problem(view.tdesc) is not None
    is_turned = view.transpose is not None and tuple(view.transpose) != tuple(range(len(desc.shape)))
    limits = target.block2d
    if is_turned and limits and not gathered and len(desc.shape) == 2:
        if transposes_in_message(view, desc, limits):
            return
        remark(op, "transposes its block in registers: it is not known to begin at a multiple of a message's unit")
    if gathered and view.vnni_axis is not None:
        _pack(op, view, desc)
    elif is_turned and (gathered or limits):
        _transpose(op, view, desc)


def _with_units_side_by_side(op: ir.Operation) -> ir.Operation:
    """A load that gives the elements of a transposed unit a dimension of their own, as one that does not."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    shape, element = vector_of(str(view.value.type))
    if view.transpose_bit_width is None or len(shape) == len(desc.shape) or desc.attr.array_length > 1:
        return op
    attributes = dict(op.attributes.items())
    plain = ir.Type.parse(vector_text((*shape[:-2], shape[-2] * shape[-1]), element), op.context)
    place: dict[str, Any] = {"loc": op.location, "ip": ir.InsertionPoint(op)}
    made = ir.Operation.create(op.name, [plain], list(op.operands), attributes, **place)
    cast = ir.Operation.create("vector.shape_cast", [view.value.type], [made.results[0]], **place)
    op.results[0].replace_all_uses_with(cast.results[0])
    op.erase()
    return made


def _pack(op: ir.Operation, view: Any, desc: TensorDesc) -> None:
    """Elements along the axis that is packed become the innermost dimension."""
    *lead, rows, columns = _plain_shape(op, desc)
    factor = vnni_factor(desc.bits)
    if view.vnni_axis == 1:
        _load_and_move(op, view, desc, (*lead, rows, columns // factor, factor), range(len(lead) + 3))
        return
    n = len(lead)
    _load_and_move(op, view, desc, (*lead, rows // factor, factor, columns), (*range(n), n, n + 2, n + 1))


def _transpose(op: ir.Operation, view: Any, desc: TensorDesc) -> None:
    """Dimensions change places; what is in a unit of `transpose_bit_width` stays together."""
    shape = _plain_shape(op, desc)
    unit = (view.transpose_bit_width or desc.bits) // desc.bits
    lead = len(shape) - len(desc.shape)
    order = [*range(lead), *(lead + i for i in view.transpose)]
    if unit > 1:
        shape = (*shape[:-1], shape[-1] // unit, unit)
        order.append(len(order))
    _load_and_move(op, view, desc, shape, order)


def _plain_shape(op: ir.Operation, desc: TensorDesc) -> tuple[int, ...]:
    """The shape of a load without its transform; an array's blocks are a dimension if they are one in the result."""
    rank = len(vector_of(str(op.results[0].type))[0]) - (op.opview.vnni_axis is not None)
    return next(s for s in block_shapes(desc, Mode.VC) if len(s) == rank)


def _load_and_move(op: ir.Operation, view: Any, desc: TensorDesc, shape: tuple[int, ...], order: Sequence[int]) -> None:
    """Load the block as it lies, and give its dimensions, seen as `shape`, another order."""
    place: dict[str, Any] = {"loc": op.location, "ip": ir.InsertionPoint(op)}

    def emit(name: str, shape: tuple[int, ...], value: ir.Value, **attributes: ir.Attribute) -> ir.Value:
        kind = ir.Type.parse(vector_text(shape, desc.element), op.context)
        if value.type == kind and name == "vector.shape_cast":
            return value
        made = ir.Operation.create(name, results=[kind], operands=[value], attributes=attributes, **place)
        return made.results[0]

    hints = {name: getattr(view, name) for name in ("l1_hint", "l2_hint", "l3_hint")}
    plain = vector_text(_plain_shape(op, desc), desc.element)
    value = emit("vector.shape_cast", shape, xegpu.load_nd(view.tdesc, value=plain, mode=view.mode, **hints, **place))
    if list(order) != list(range(len(order))):
        permutation = ir.DenseI64ArrayAttr.get(list(order))
        value = emit("vector.transpose", tuple(shape[i] for i in order), value, permutation=permutation)
    op.results[0].replace_all_uses_with(emit("vector.shape_cast", vector_of(str(op.results[0].type))[0], value))
    op.erase()
