"""Ops on scattered tiles, whose elements have addresses of their own."""

from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.dialects.xegpu.checks import check_update, check_value
from xegpu_py.dialects.xegpu.interfaces import Hinted
from xegpu_py.dialects.xetile.checks import check_access, check_mask
from xegpu_py.dialects.xetile.interfaces import TileLoad, TileStore
from xegpu_py.dialects.xetile.tiles import LoadTileOp, Padding
from xegpu_py.dialects.xetile.types import Tile, XeTile
from xegpu_py.ir.constraints import MaskVector, Vector
from xegpu_py.ir.definition import Attribute, Operand, Result
from xegpu_py.ir.operation import Operation


class LoadOp(Operation, dialect=XeTile, name="load", interfaces=(TileLoad, Hinted)):
    """Loads the elements of a scattered tile. Those that the mask leaves out are `padding`, or zero, and not read."""

    tile: Operand[Tile]
    mask: Operand[MaskVector] | None = None
    value: Result[Vector]
    padding: Attribute[Padding] | None = None

    effects = frozenset(["read"])
    assembly_format = "$tile (`,` $mask^)? attr-dict `:` type($tile) (`,` type($mask)^)? `->` type($value)"

    def verify_op(self) -> None:
        check_access(self, scattered=True, instead="load_tile")

    infer = LoadTileOp.infer


class StoreOp(Operation, dialect=XeTile, name="store", interfaces=(TileStore, Hinted)):
    """Stores to the elements of a scattered tile whose mask bit is set, or to all."""

    value: Operand[Vector]
    tile: Operand[Tile]
    mask: Operand[MaskVector] | None = None

    effects = frozenset(["write"])
    assembly_format = "$value `,` $tile (`,` $mask^)? attr-dict `:` type($value) `,` type($tile) (`,` type($mask)^)?"

    def verify_op(self) -> None:
        check_access(self, scattered=True, instead="store_tile")


class AtomicRmwOp(Operation, dialect=XeTile, name="atomic_rmw", interfaces=(TileStore,)):
    """Reads, modifies and writes each element of a tile atomically; gives what was read.

    The kinds are those of arith's `AtomicRMWKind`. Read as well are the kind in quotes, or without `<>`. The tile may
    be scattered or not; what lies outside the matrix of one that is not is left alone and reads as zero. With
    `expecting` the op is a compare and swap: `assign` writes only where memory holds the bits that are expected.
    """

    kind: Attribute[AtomicRMWKind]
    value: Operand[Vector]
    tile: Operand[Tile]
    mask: Operand[MaskVector] | None = None
    expected: Operand[Vector] | None = None
    result: Result[Vector]

    effects = frozenset(["read", "write"])
    same_type = ("result", "value")
    assembly_format = (
        "`<` $kind `>` `,` $value `,` $tile (`,` $mask^)? (`expecting` $expected^)? attr-dict `:` "
        "type($value) `,` type($tile) (`,` type($mask)^)? (`expecting` type($expected)^)? `->` type($result)"
    )
    also_reads = (
        "$kind (`,`)? $value `,` $tile (`,` $mask^)? attr-dict `:` "
        "type($value) `,` type($tile) (`,` type($mask)^)? `->` type($result)",
    )

    def verify_op(self) -> None:
        tile = Tile.of(self.tile)
        check_mask(self, tile.shape)
        if self.mask is not None and not tile.scattered:
            self.fail("accepts a mask only for a scattered tile")
        check_value(self, "value", [tile.shape], tile.element, "one value for each element of the tile")
        check_update(self, tile.element)
