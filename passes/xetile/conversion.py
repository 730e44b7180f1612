"""The conversion of a kernel with tiles, in which a tile may become several values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects.xetile import Tile
from xegpu_py.passes.common.builders import poison, select
from xegpu_py.passes.common.conversion import Conversion

Pattern = Callable[[Any, Any], Sequence[Any]]
"""A function of the conversion and an op's view that returns the replacements of the op's results.

For one result it returns a list of values; for several results it returns a value or a list for each result.
"""


def is_tile(value: ir.Value) -> bool:
    """Whether a value is a tile."""
    return Tile.accepts(str(value.type))


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

    def one(self, value: ir.Value) -> ir.Value:
        found = self.get(value)
        if len(found) != 1:
            self.fail("cannot take a tile, or a vector that is divided")
        return found[0]

    def apply(self, pattern: Pattern, op: ir.Operation) -> None:
        self.replace_values(op, pattern(self, op.opview))

    def replace_values(self, op: ir.Operation, found: Sequence[ir.Value]) -> None:
        """Replace an op; see `Pattern`."""
        self.replace(op, *([found] if len(op.results) == 1 else [[v] if isinstance(v, ir.Value) else v for v in found]))

    def no_pattern(self, op: ir.Operation) -> None:
        """Convert selects of tiles and undefined tiles to those of their replacements; keep all other ops."""
        tile = op.results[0] if len(op.results) == 1 and is_tile(op.results[0]) else None
        if tile is not None and op.name == "ub.poison":
            self.replace(op, [poison(kind) for kind in self.convert_types(tile) or [tile.type]])
        elif tile is not None and op.name == "arith.select":
            condition, yes, no = op.operands
            chosen = zip(self.get(yes), self.get(no), strict=True)
            self.replace(op, [select(self.one(condition), a, b) for a, b in chosen])
        else:
            self.keep(op)
            if len(op.regions):
                note = ["run gpu-kernel-outlining first"] if op.name == "gpu.launch" else []
                self.fail("is not supported in a kernel with tiles", *note)
