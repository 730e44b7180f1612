"""Copies of ops on other values."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.values import defining_op

from xegpu_py.ir.verifier import walk


def clone(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Operation:
    """An op, and what is in it, with others in the place of some values; those get the results of the new op, too."""
    made = op.clone()
    for inner in walk(made):
        for i, value in enumerate(inner.operands):
            if value in values:
                inner.operands[i] = values[value]
    values.update(zip(op.results, made.results))
    return made


def clone_with_operands(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Likewise, after copies of the ops of the same block that its operands are computed by."""
    for operand in op.operands:
        maker = defining_op(operand)
        if operand not in values and maker is not None and maker.block == op.block:
            clone_with_operands(maker, values)
    return clone(op, values)
