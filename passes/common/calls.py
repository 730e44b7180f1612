"""Calls, and the functions that kernels can call."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from xegpu_py.ir.passes import ROOT
from xegpu_py.ir.verifier import walk

CALL = "func.call"


def calls(op: ir.Operation) -> list[ir.Operation]:
    """The calls in an op, or the op if it is one."""
    return [inner for inner in walk(op) if inner.name == CALL]


class Functions:
    """The functions that a kernel can call: those of its module. MLIR verifies that they exist."""

    def __init__(self, op: ir.Operation) -> None:
        """Collect the functions that ops in `op` can call."""
        module = op.parent.operation
        while module.name not in ("gpu.module", ROOT):
            module = module.parent.operation
        self._symbols = ir.SymbolTable(module)

    def called(self, call: ir.Operation) -> ir.Operation:
        """The function that a call names."""
        return self.named(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)

    def named(self, name: str) -> ir.Operation:
        """The op of the module that defines a symbol."""
        found: ir.Operation = self._symbols[name].operation
        return found

    def reached(self, op: ir.Operation) -> Iterator[ir.Operation]:
        """The functions with bodies that an op calls directly or indirectly, each once."""
        seen: set[ir.Operation] = set()
        pending = [op]
        while pending:
            for call in calls(pending.pop()):
                callee = self.called(call)
                if callee not in seen and len(callee.regions[0].blocks):
                    seen.add(callee)
                    pending.append(callee)
                    yield callee
