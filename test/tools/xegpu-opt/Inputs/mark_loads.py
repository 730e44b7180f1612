"""A pass of a user's own, for load-pass-plugin.mlir."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

import xegpu_py
from xegpu_py.ir.module import walk


@xegpu_py.register_pass("mark-loads")
@dataclass
class MarkLoads(xegpu_py.Pass):
    """Write an attribute on each load."""

    name_of_mark: str = "test.mark"
    number: int = 1

    def run(self, op: ir.Operation) -> None:
        for inner in walk(op):
            if inner.name == "xegpu.load_nd":
                if self.number < 0:
                    self.fail(inner, "cannot be marked")
                inner.attributes[self.name_of_mark] = ir.IntegerAttr.get(
                    ir.IntegerType.get_signless(64), 64 // self.number
                )
