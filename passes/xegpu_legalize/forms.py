"""Ops that are other ops: rewritten one by one, before anything is split."""

from __future__ import annotations

from typing import Any

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.passes.xegpu_legalize.numbers import rewrite_arithmetic

from xegpu_py.ir.builtin import vector_text
from xegpu_py.ir.verifier import walk
from xegpu_py.target import Target


def rewrite_forms(func: ir.Operation, target: Target) -> None:
    """Rewrite what has no message or instruction, of whatever size it is."""
    for op in walk(func)[1:]:
        if op.name == "xegpu.load_nd":
            _turn_in_registers(op)
        else:
            rewrite_arithmetic(op, target)


def _turn_in_registers(op: ir.Operation) -> None:
    """A load that turns a block of more than two dimensions becomes a load, and a transposition of what it loaded."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    rank = len(desc.shape)
    if view.mode != Mode.VC or view.transpose is None or rank < 3 or view.transpose_bit_width is not None:
        return
    plain = xegpu.load_nd(
        view.tdesc,
        value=vector_text(desc.shape, desc.element),
        mode=view.mode,
        l1_hint=view.l1_hint,
        l2_hint=view.l2_hint,
        l3_hint=view.l3_hint,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    turned = ir.Operation.create(
        "vector.transpose",
        results=[op.results[0].type],
        operands=[plain],
        attributes={"permutation": ir.DenseI64ArrayAttr.get(list(view.transpose))},
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    op.results[0].replace_all_uses_with(turned.results[0])
    op.erase()
