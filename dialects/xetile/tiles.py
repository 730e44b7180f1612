"""Ops on tiles of matrices."""

from typing import Annotated

from mlir import ir

from xegpu_py.dialects.xegpu.checks import Address, check_hints, check_memref
from xegpu_py.dialects.xegpu.interfaces import Hinted
from xegpu_py.dialects.xetile.checks import NumberCodec, check_access
from xegpu_py.dialects.xetile.interfaces import TileAccess, TileLoad, TileStore
from xegpu_py.dialects.xetile.types import SHARED, Tile, XeTile
from xegpu_py.ir.builtin import strides_of, vector_of, vector_text
from xegpu_py.ir.constraints import MemRef, OffsetVector, Vector
from xegpu_py.ir.definition import DYNAMIC, Attribute, IndexList, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp

Padding = Annotated[str, NumberCodec()]
"""A number with its type, such as `1.0 : f32`."""


class InitTileOp(Operation, dialect=XeTile, name="init_tile"):
    """Makes a tile of a matrix in memory.

    The source is a memref of two or more dimensions, whose innermost two are the matrix, or an address with
    the matrix's shape and strides in elements. Offsets, one for each dimension, are where the tile begins; each is an
    index value or a constant. A memref's shape and strides may be given too, where its type does not give them. A
    column-major tile (`order = [0, 1]`) has stride 1 along the rows.

        %0 = xetile.init_tile %A[%m, 16] : memref<1024x1024xf16> -> !xetile.tile<32x64xf16>
        %1 = xetile.init_tile %A[%m, 16], [%h, %w], [%w, %c1] : memref<?x?xf16> -> !xetile.tile<32x64xf16>

    A scattered tile is made of a base and a vector that has the index of each element from there on, in elements:

        %2 = xetile.init_tile %B, %indices : memref<1024xf32>, vector<64xindex>
          -> !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>

    `in_bounds = true` promises that the tile, and whatever it is moved to, lies inside the matrix, so that no lowering
    has to check it.
    """

    source: Operand[Address | MemRef]
    offsets: IndexList
    shape: IndexList
    strides: IndexList
    indices: Operand[OffsetVector] | None = None
    tile: Result[Tile]
    in_bounds: Attribute[bool] = default(False)

    effects = frozenset()
    assembly_format = (
        "$source (`` $offsets^)? (`,` $shape^ `,` $strides)? (`,` $indices^)? attr-dict `:` "
        "type($source) (`,` type($indices)^)? `->` type($tile)"
    )

    def verify_op(self) -> None:
        tile = Tile.of(self.tile)
        is_memref = isinstance(self.source.type, ir.MemRefType)
        if is_memref:
            space = tile.attr.memory_space
            check_memref(self, "tile", tile.element, space == SHARED, f"memory_space = {space}")
        if tile.scattered:
            self._verify_scattered(tile)
            return
        if self.indices is not None:
            self.fail("accepts indices only for a scattered tile", "add scattered = true to the tile")
        if is_memref:
            self._verify_memref(tile)
        else:
            self._verify_address(tile)

    def _verify_scattered(self, tile: Tile) -> None:
        if self.indices is None:
            self.fail("requires a vector of indices for a scattered tile")
        if self.static_offsets or self.static_shape or self.static_strides:
            self.fail("does not accept offsets, shape or strides for a scattered tile")
        if vector_of(str(self.indices.type))[0] != tile.shape:
            self.fail(
                f"requires one index for each element, {vector_text(tile.shape, 'index')}, but got {self.indices.type}"
            )

    def _verify_address(self, tile: Tile) -> None:
        if tile.attr.memory_space == SHARED:
            self.fail("cannot make a tile in shared local memory from an address", "use a memref in memory space 3")
        for name in ("offsets", "shape", "strides"):
            given = getattr(self, f"static_{name}")
            if len(given) != 2:
                self.fail(
                    f"requires two entries in '{name}' with an address, but got {len(given)}",
                    "write '%address[%row, %column], [%rows, %columns], [%stride, 1]'",
                )
        self._verify_order(tile, self.static_strides)

    def _verify_memref(self, tile: Tile) -> None:
        memref = ir.MemRefType(self.source.type)
        if memref.rank < 2:
            self.fail(f"requires a memref of rank 2 or higher, but got {memref}")
        if len(self.static_offsets) != memref.rank:
            self.fail(f"requires {memref.rank} offsets for {memref}, but got {len(self.static_offsets)}")
        strides = strides_of(memref)
        if bool(self.static_shape) != bool(self.static_strides):
            self.fail("requires both 'shape' and 'strides', or neither")
        for name, known in (("shape", list(memref.shape)), ("strides", strides)):
            given = getattr(self, f"static_{name}")
            if given and len(given) != memref.rank:
                self.fail(f"requires {memref.rank} entries in '{name}' for {memref}, but got {len(given)}")
            for a, b in zip(given, known or []):
                if DYNAMIC not in (a, b) and a != b:
                    self.fail(f"'{name}' {_listed(given)} does not match {memref}")
        if strides is None and not self.static_strides:
            self.fail(f"requires 'shape' and 'strides', because the layout of {memref} has no strides")
        self._verify_order(tile, self.static_strides or tuple(strides or ()))

    def _verify_order(self, tile: Tile, strides: tuple[int, ...]) -> None:
        """The dimension that the order calls innermost has stride 1 (where that is known)."""
        row, column = strides[-2:]
        inner, other = (row, column) if tile.column_major else (column, row)
        if inner not in (1, DYNAMIC):
            order = list(tile.attr.order)
            hint = f"order = {'[1, 0]' if tile.column_major else '[0, 1]'} matches strides {_listed(strides)}"
            self.fail(
                f"order = {order} requires a stride of 1 along the {'rows' if tile.column_major else 'columns'}, "
                f"but the strides are {_listed(strides)}",
                *([hint] if other == 1 else []),
            )


def _listed(values: tuple[int, ...]) -> str:
    return f"[{', '.join('?' if v == DYNAMIC else str(v) for v in values)}]"


class LoadTileOp(Operation, dialect=XeTile, name="load_tile", interfaces=(TileLoad, Hinted)):
    """Loads a tile. What lies outside the matrix reads as `padding`, by default zero."""

    tile: Operand[Tile]
    value: Result[Vector]
    padding: Attribute[Padding] | None = None

    effects = frozenset(["read"])
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($value)"

    def verify_op(self) -> None:
        check_access(self, scattered=False, instead="load")

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        tile = Tile.decode(parsed.type_of("tile"))
        return {"value": vector_text(tile.shape, tile.element)}


class StoreTileOp(Operation, dialect=XeTile, name="store_tile", interfaces=(TileStore, Hinted)):
    """Stores a vector to a tile. What lies outside the matrix is dropped."""

    value: Operand[Vector]
    tile: Operand[Tile]

    effects = frozenset(["write"])
    assembly_format = "$value `,` $tile attr-dict `:` type($value) `,` type($tile)"

    def verify_op(self) -> None:
        check_access(self, scattered=False, instead="store")


class PrefetchTileOp(Operation, dialect=XeTile, name="prefetch_tile", interfaces=(TileAccess, Hinted)):
    """Brings a tile into the cache. Scattered tiles may be prefetched too."""

    tile: Operand[Tile]

    effects = frozenset(["read", "write"])
    assembly_format = "$tile attr-dict `:` type($tile)"

    def verify_op(self) -> None:
        check_hints(self)


class UpdateTileOffsetOp(Operation, dialect=XeTile, name="update_tile_offset"):
    """Moves a tile by offsets in elements: by rows and columns, or by an index for each element if it is scattered.

    Older text, which gives the types of offsets and the result, is read, too.
    """

    tile: Operand[Tile]
    offsets: IndexList
    indices: Operand[OffsetVector] | None = None
    result: Result[Tile]

    effects = frozenset()
    same_type = ("result", "tile")
    assembly_format = "$tile (`,` $offsets^)? (`,` $indices^)? attr-dict `:` type($tile) (`,` type($indices)^)?"
    also_reads = (
        "$tile $offsets attr-dict `:` type($tile)",
        "$tile (`,`)? $offsets attr-dict `:` type($tile) `,` `index` (`,` `index`)? (`->` type($result))?",
    )

    def verify_op(self) -> None:
        tile = Tile.of(self.tile)
        if self.result.type != self.tile.type:
            self.fail(f"result must have the operand's type {tile}, but got {Tile.of(self.result)}")
        if tile.scattered:
            if self.indices is None or self.static_offsets:
                self.fail("requires a vector of offsets for a scattered tile")
            if vector_of(str(self.indices.type))[0] != tile.shape:
                self.fail(
                    f"requires one offset for each element, {vector_text(tile.shape, 'index')}, but got "
                    f"{self.indices.type}"
                )
        elif self.indices is not None or len(self.static_offsets) != 2:
            got = "a vector" if self.indices is not None else f"{len(self.static_offsets)}"
            self.fail(f"requires two offsets, of rows and of columns, but got {got}")
