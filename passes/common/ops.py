"""Replacements and copies of ops, and side effects of ops."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.operation import Operation
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.values import defining_op

_COMPUTE = ("arith.", "math.", "index.", "ub.", "vector.")
"""Upstream dialects whose ops compute or access memory."""

WRITES = frozenset((
    "vector.transfer_write", "vector.store", "vector.scatter", "vector.maskedstore", "vector.compressstore",
    "vector.print", "memref.store", "memref.copy", "memref.atomic_rmw", "memref.generic_atomic_rmw", "memref.alloc",
    "gpu.barrier", "gpu.printf",
))  # fmt: skip
"""Upstream ops that write memory, print, or synchronize."""


def only_reads(op: ir.Operation) -> bool:
    """Whether an op only computes and reads memory, so that loads can be moved across it."""
    view = op.opview
    if isinstance(view, Operation):
        return view.effects is not None and view.effects <= {"read"}
    return op.name.startswith(_COMPUTE) and op.name not in WRITES


def replace_op(op: ir.Operation, *values: ir.Value) -> None:
    """Replace the results of an op by values, and erase the op."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


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
