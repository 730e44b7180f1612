"""`func.call`: the callee's ops in the place of the call."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, lowers

from xegpu_py.ir.verifier import walk


def _callee(low: Lowering, op: ir.Operation) -> ir.Operation:
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    scope = op.parent
    found = None
    while scope is not None and found is None:
        functions = [f for f in walk(scope.operation) if f.name == "func.func"]
        found = next((f for f in functions if ir.StringAttr(f.attributes["sym_name"]).value == name), None)
        scope = scope.operation.parent
    if found is None:
        low.fail(f"calls '{name}', which is not there")
    return found


@lowers("func.call")
def call(low: Lowering, op: ir.Operation) -> None:
    """The callee inlined."""
    callee = _callee(low, op)
    if callee in low.inlined:
        low.fail("is recursive", "vISA kernels have no stack")
    blocks = callee.regions[0].blocks
    if len(blocks) != 1:
        low.fail("calls a function with unstructured control flow, or without a body")
    for argument, value in zip(blocks[0].arguments, op.operands):
        low.values[argument] = low.value(value)
    low.inlined.append(callee)
    low.block(blocks[0])
    low.inlined.pop()
    low.set(op, *(low.value(v) for v in list(blocks[0].operations)[-1].operation.operands))
