"""Ops that are other ops: rewritten one by one, before anything is split."""

from __future__ import annotations

from typing import Any

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.shapes import block_shapes
from xegpu_py.passes.common.divisors import transposes_in_message
from xegpu_py.passes.xegpu_legalize.numbers import rewrite_arithmetic

from xegpu_py.ir.builtin import vector_of, vector_text
from xegpu_py.ir.verifier import walk
from xegpu_py.target import Target


def rewrite_forms(func: ir.Operation, target: Target) -> None:
    """Rewrite what has no message or instruction, of whatever size it is."""
    for op in walk(func)[1:]:
        if op.name == "xegpu.load_nd":
            _transpose_in_registers(op, target)
        else:
            rewrite_arithmetic(op, target)


def _transpose_in_registers(op: ir.Operation, target: Target) -> None:
    """A transposed load that no message does becomes a load, and a transposition of what it loaded.

    Messages transpose blocks of two dimensions, in units of at least 32 bits that begin at a multiple of their size.
    """
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    if view.mode != Mode.VC or view.transpose is None or tuple(view.transpose) == tuple(range(len(desc.shape))):
        return
    limits = target.block2d
    if limits and (len(desc.shape) > 2 or not transposes_in_message(view, desc, limits)):
        unit = (view.transpose_bit_width or desc.bits) // desc.bits
        _replace(op, view, desc, unit)


def _replace(op: ir.Operation, view: Any, desc: TensorDesc, unit: int) -> None:
    """Load the block as it lies, and transpose units of elements."""
    place: dict[str, Any] = {"loc": op.location, "ip": ir.InsertionPoint(op)}

    def emit(name: str, shape: tuple[int, ...], value: ir.Value, **attributes: ir.Attribute) -> ir.Value:
        kind = ir.Type.parse(vector_text(shape, desc.element), op.context)
        made = ir.Operation.create(name, results=[kind], operands=[value], attributes=attributes, **place)
        return made.results[0]

    shapes = block_shapes(desc, Mode.VC)
    whole, _ = vector_of(str(op.results[0].type))
    shape = next(s for s in shapes if len(s) == len(whole))
    hints = {name: getattr(view, name) for name in ("l1_hint", "l2_hint", "l3_hint")}
    value = xegpu.load_nd(view.tdesc, value=vector_text(shape, desc.element), mode=view.mode, **hints, **place)
    lead = len(shape) - len(desc.shape)
    order = [*range(lead), *(lead + i for i in view.transpose)]
    if unit > 1:
        shape = (*shape[:-1], shape[-1] // unit, unit)
        order.append(len(order))
        value = emit("vector.shape_cast", shape, value)
    moved = tuple(shape[i] for i in order)
    value = emit("vector.transpose", moved, value, permutation=ir.DenseI64ArrayAttr.get(order))
    if unit > 1:
        value = emit("vector.shape_cast", whole, value)
    op.results[0].replace_all_uses_with(value)
    op.erase()
