"""Copies of ops on other values."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.values import defining_op

from xegpu_py.ir.verifier import walk


def clone(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Clone an op and its regions with some values replaced. The replacements are extended by the clone's results."""
    made = op.clone()
    for inner in walk(made):
        for i, value in enumerate(inner.operands):
            if value in values:
                inner.operands[i] = values[value]
    values.update(zip(op.results, made.results))
    return made


def clone_with_operands(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Clone an op after clones of the ops of the same block that compute its operands."""
    for operand in op.operands:
        maker = defining_op(operand)
        if operand not in values and maker is not None and maker.block == op.block:
            clone_with_operands(maker, values)
    return clone(op, values)
