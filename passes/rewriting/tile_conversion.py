"""The conversion of a kernel with tiles, in which a tile may become several values."""

from __future__ import annotations

from mlir import ir

from xegpu_py.dialects.xetile import Tile
from xegpu_py.passes.rewriting.builders import poison, select
from xegpu_py.passes.rewriting.rewriter import Conversion

is_tile = Tile.matches
"""Whether a type, or a value's type, is a tile."""


class TileConversion(Conversion):
    """The conversion of a kernel.

    Attributes:
        func: the kernel, which has one block.
    """

    def __init__(self, func: ir.Operation) -> None:
        super().__init__()
        self.func = func

    def run(self) -> None:
        """Convert the kernel."""
        self.region(self.func.regions[0])
        self.finish()

    def convert_without_rule(self, op: ir.Operation) -> None:
        """Convert selects of tiles and undefined tiles to those of their replacements; keep all other ops."""
        tile = op.results[0] if len(op.results) == 1 and is_tile(op.results[0]) else None
        if tile is not None and op.name == "ub.poison":
            self.replace(op, [poison(kind) for kind in self.convert_types(tile) or [tile.type]])
        elif tile is not None and op.name == "arith.select":
            condition, yes, no = op.operands
            chosen = zip(self.get(yes), self.get(no), strict=True)
            self.replace(op, [select(self.replacement(condition), a, b) for a, b in chosen])
        else:
            self.keep(op)
            if len(op.regions):
                note = ["run gpu-kernel-outlining first"] if op.name == "gpu.launch" else []
                self.fail("is not supported in a kernel with tiles", *note)
