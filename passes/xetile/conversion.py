"""The conversion of a kernel of tiles, in which one tile may become several values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir
from xegpu_py.dialects.xetile import Tile
from xegpu_py.passes.common.builders import poison, select
from xegpu_py.passes.common.conversion import Conversion

Pattern = Callable[[Any, Any], Sequence[Any]]
"""What gets the conversion and an op's view, and gives what stands for the op's results.

Of one result that is a list of values; of several results it is a value or a list for each.
"""


def is_tile(value: ir.Value) -> bool:
    """Whether a value is a tile."""
    return Tile.accepts(str(value.type))


class TileConversion(Conversion):
    """A kernel as it is converted.

    Attributes:
        func: the kernel, of one block.
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
        """Choices of two tiles, and undefined ones, are those of what stands for them; all else stays."""
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
                note = ["gpu-kernel-outlining makes a kernel of it"] if op.name == "gpu.launch" else []
                self.fail("cannot stand in a kernel of tiles", *note)
