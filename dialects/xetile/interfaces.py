"""What ops of XeTile are: what passes ask instead of names."""

from typing import TYPE_CHECKING

from mlir import ir

from xegpu_py.ir.definition import Interface


class TileAccess(Interface):
    """Accesses memory by a tile, its operand `tile`."""

    if TYPE_CHECKING:

        @property
        def tile(self) -> ir.Value: ...


class TileLoad(TileAccess):
    """Gives what a tile holds, its result `value`."""

    if TYPE_CHECKING:

        @property
        def value(self) -> ir.Value: ...


class TileStore(TileAccess):
    """Writes a vector, its operand `value`, to a tile, or updates the tile by it."""

    if TYPE_CHECKING:

        @property
        def value(self) -> ir.Value: ...
