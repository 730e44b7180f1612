"""XeTile's ops: tiles, scattered tiles, computation on them, and the agreement of their maps."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from mlir import ir

from xegpu_py.dialects.xegpu.matrix_ops import FACTORS, SCALE, SCALE_BLOCK, accumulators, scaled_accumulators
from xegpu_py.dialects.xegpu.op_interfaces import Address, Hinted, check_hints, check_memref, check_update, check_value
from xegpu_py.dialects.xetile.types import (
    SHARED,
    NumberCodec,
    ReductionKind,
    Tile,
    TileAccess,
    TileLoad,
    TileStore,
    WgMap,
    XeTile,
    check_access,
    check_map,
    check_mask,
)
from xegpu_py.ir.bindings import AtomicRMWKind
from xegpu_py.ir.builtin import (
    MaskVector,
    MemRef,
    OffsetVector,
    Vector,
    by,
    is_float,
    shape_and_element,
    shape_of,
    strides_of,
    vector_text,
)
from xegpu_py.ir.definition import DYNAMIC, Attribute, IndexList, Operand, Result, default
from xegpu_py.ir.diagnostics import Diagnostic, emit_error, op_error, position_of
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import Operation, ParsedOp
from xegpu_py.ir.pending_functions import PendingFunctions

# Ops on tiles of matrices.

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
    has to check it. `clipped = true` says that the elements outside are those that a mask leaves out: the check
    `bounds` does not report them.
    """

    source: Operand[Address | MemRef]
    offsets: IndexList
    shape: IndexList
    strides: IndexList
    indices: Operand[OffsetVector] | None = None
    tile: Result[Tile]
    in_bounds: Attribute[bool] = default(False)
    clipped: Attribute[bool] = default(False)

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
        if shape_of(self.indices) != tile.shape:
            self.fail(
                f"requires one index for each element, {vector_text(tile.shape, 'index')}, but got {self.indices.type}"
            )

    def _verify_address(self, tile: Tile) -> None:
        if tile.attr.memory_space == SHARED:
            self.fail("cannot make a tile in shared local memory from an address", "use a memref in memory space 3")
        for name in ("offsets", "shape", "strides"):
            stated = getattr(self, f"static_{name}")
            if len(stated) != 2:
                self.fail(
                    f"requires two entries in '{name}' with an address, but got {len(stated)}",
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
        for name, of_memref in (("shape", list(memref.shape)), ("strides", strides)):
            stated = getattr(self, f"static_{name}")
            if stated and len(stated) != memref.rank:
                self.fail(f"requires {memref.rank} entries in '{name}' for {memref}, but got {len(stated)}")
            for a, b in zip(stated, of_memref or []):
                if DYNAMIC not in (a, b) and a != b:
                    self.fail(f"'{name}' {_listed(stated)} does not match {memref}")
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
    """Loads a tile. Elements outside of the matrix read as `padding`, by default zero."""

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
    """Stores a vector to a tile. Elements outside of the matrix are dropped."""

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
        if tile.scattered:
            if self.indices is None or self.static_offsets:
                self.fail("requires a vector of offsets for a scattered tile")
            if shape_of(self.indices) != tile.shape:
                self.fail(
                    f"requires one offset for each element, {vector_text(tile.shape, 'index')}, but got "
                    f"{self.indices.type}"
                )
        elif self.indices is not None or len(self.static_offsets) != 2:
            actual = "a vector" if self.indices is not None else f"{len(self.static_offsets)}"
            self.fail(f"requires two offsets, of rows and of columns, but got {actual}")


# Ops on scattered tiles, whose elements have addresses of their own.


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


# Ops on the vectors that tiles are loaded into.


class TileMmaOp(Operation, dialect=XeTile, name="tile_mma"):
    """Multiplies matrices: `d = a x b`, or `d = a x b + c`.

    `a` is MxK, `b` KxN, `c` and `d` MxN. The maps say which parts each subgroup works on: `wg_map_c` is that of `c`
    and `d`. A subgroup multiplies the rows of `a` and the columns of `b` that its part of `d` has, over all of K;
    factors whose maps give them to others are exchanged through shared local memory.

    With scales the factors are block-scaled, as those of `xegpu.dpas_mx`: `scale_a` is Mxceil(K/32), and `scale_b`
    ceil(K/32)xN. A subgroup has the scales of its rows and columns.
    """

    a: Operand[Vector]
    b: Operand[Vector]
    c: Operand[Vector] | None = None
    scale_a: Operand[Vector] | None = None
    scale_b: Operand[Vector] | None = None
    d: Result[Vector]
    wg_map_a: Attribute[WgMap] | None = None
    wg_map_b: Attribute[WgMap] | None = None
    wg_map_c: Attribute[WgMap] | None = None

    effects = frozenset()
    assembly_format = (
        "$a `,` $b (`,` $c^)? (`scale_a` `=` $scale_a^)? (`scale_b` `=` $scale_b^)? attr-dict `:` "
        "type($a) `,` type($b) (`,` type($c)^)? (`,` type($scale_a)^)? (`,` type($scale_b)^)? `->` type($d)"
    )

    def verify_op(self) -> None:
        (a, a_element), (b, b_element), (d, d_element) = (shape_and_element(v) for v in (self.a, self.b, self.d))
        for name, shape in (("a", a), ("b", b), ("d", d)):
            if len(shape) != 2:
                self.fail(f"'{name}' must be a matrix, but got {getattr(self, name).type}")
        if a[1] != b[0]:
            self.fail(f"'a' has {a[1]} columns, but 'b' has {b[0]} rows")
        if d != (a[0], b[1]):
            self.fail(f"'d' must be {a[0]}x{b[1]} for {by(a)} times {by(b)}, but got {by(d)}")
        if self.c is not None and self.c.type != self.d.type:
            self.fail(f"'c' must have the type of the result, {self.d.type}, but got {self.c.type}")
        scaled = self.is_scaled
        legal_types = (scaled_accumulators if scaled else accumulators)(a_element, b_element)
        if not legal_types:
            self.fail(f"cannot multiply {a_element} by {b_element}", FACTORS[scaled])
        self._verify_scales(a, b)
        if d_element not in legal_types:
            self.fail(f"result of {a_element} x {b_element} must be of {' or '.join(legal_types)}, but got {d_element}")
        self._verify_maps(a, b, d)

    @property
    def is_scaled(self) -> bool:
        """Whether the factors have scales."""
        return self.scale_a is not None or self.scale_b is not None

    def _verify_scales(self, a: tuple[int, ...], b: tuple[int, ...]) -> None:
        blocks = -(-a[1] // SCALE_BLOCK)
        scales = {"scale_a": (self.scale_a, (a[0], blocks)), "scale_b": (self.scale_b, (blocks, b[1]))}
        for name, (value, shape) in scales.items():
            if value is not None and shape_and_element(value) != (shape, SCALE):
                note = f"{SCALE_BLOCK} elements of K share a scale"
                self.fail(f"'{name}' must be {vector_text(shape, SCALE)}, but got {value.type}", note)

    def _verify_maps(self, a: tuple[int, ...], b: tuple[int, ...], d: tuple[int, ...]) -> None:
        maps = {"a": self.wg_map_a, "b": self.wg_map_b, "c": self.wg_map_c}
        for (name, wg_map), shape in zip(maps.items(), (a, b, d)):
            check_map(self, f"wg_map_{name}", wg_map, shape)
        counts = {name: subgroups(m) for name, m in maps.items() if m}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"wg_map_{name} has {count}" for name, count in counts.items())
            self.fail(f"requires maps of the same number of subgroups, but {listed}")


class TransposeOp(Operation, dialect=XeTile, name="transpose"):
    """Swaps the dimensions of a matrix. `permutation` is `[1, 0]`; `[0, 1]` leaves it as it is.

    At workgroup level `map` says which subgroup has which part of the result, as it does for the ops below.
    """

    value: Operand[Vector]
    permutation: Attribute[tuple[int, ...]]
    result: Result[Vector]
    map: Attribute[WgMap] | None = None

    effects = frozenset()
    assembly_format = "$value `,` $permutation attr-dict `:` type($value) `->` type($result)"
    also_reads = ("$value $permutation attr-dict `:` type($value) `->` type($result)",)

    def verify_op(self) -> None:
        shape, element = shape_and_element(self.value)
        if len(shape) != 2:
            self.fail(f"requires a matrix, but got {self.value.type}")
        if sorted(self.permutation) != [0, 1]:
            self.fail(f"permutation must be [1, 0] or [0, 1], but got {list(self.permutation)}")
        check_result(self, tuple(shape[i] for i in self.permutation), element)


def check_result(op: Any, shape: tuple[int, ...], element: str) -> None:
    """Check that the op's result has this shape and element type, and that its map divides the shape."""
    if shape_and_element(op.result) != (shape, element):
        op.fail(f"result must be {vector_text(shape, element)}, but got {op.result.type}")
    check_map(op, "map", op.map, shape)


REDUCED_ROWS, REDUCED_BYTES = 8, 64
"""Rows, and bytes of a row, that a reduction combines with their like before it combines what is in them.

This is the order of sums that docs/numerics.md gives; it has nothing to do with what the hardware has.
"""


def reduced_block(dim: int, bits: int) -> int:
    """The number of elements along a dimension in a block of a reduction.

    Args:
        bits: of an element.
    """
    return REDUCED_ROWS if dim == 0 else REDUCED_BYTES * 8 // max(bits, 8)


class ReductionOp(Operation, dialect=XeTile, name="reduction", also_named=("reduce",)):
    """Combines the elements along a dimension, which has size 1 then.

    With `reduction_size = n` each n elements that follow each other are combined, and one of them is left.

        %r = xetile.reduction <add>, %v [1] : vector<64x32xf32> -> vector<64x1xf32>
        %p = xetile.reduction <add>, %v [1] {reduction_size = 8} : vector<64x32xf32> -> vector<64x4xf32>
    """

    kind: Attribute[ReductionKind]
    value: Operand[Vector]
    dims: Attribute[tuple[int, ...]]
    result: Result[Vector]
    reduction_size: Attribute[int] | None = None
    map: Attribute[WgMap] | None = None

    effects = frozenset()
    assembly_format = "`<` $kind `>` `,` $value (`,`)? $dims attr-dict `:` type($value) `->` type($result)"

    def verify_op(self) -> None:
        shape, element = shape_and_element(self.value)
        check_dimension(self, shape)
        kind: str = self.kind.value
        if kind not in ("add", "mul") and kind.endswith("f") != is_float(element):
            number_kind = "floating-point" if kind.endswith("f") else "integer"
            self.fail(f"<{kind}> requires {number_kind} elements, but got {element}")
        (dim,) = self.dims
        size = shape[dim] if self.reduction_size is None else self.reduction_size
        if size < 1 or shape[dim] % size:
            self.fail(f"reduction_size = {size} does not divide the {shape[dim]} elements along dimension {dim}")
        check_result(self, tuple(n // size if i == dim else n for i, n in enumerate(shape)), element)


class BroadcastOp(Operation, dialect=XeTile, name="broadcast"):
    """Repeats a matrix along a dimension, which has size 1 in the operand.

    With `broadcast_size = n` each element is repeated n times instead, whatever the dimension's size.

        %b = xetile.broadcast %v [0] : vector<1x32xf32> -> vector<64x32xf32>
        %p = xetile.broadcast %v [1] {broadcast_size = 8} : vector<64x4xf32> -> vector<64x32xf32>
    """

    value: Operand[Vector]
    dims: Attribute[tuple[int, ...]]
    result: Result[Vector]
    broadcast_size: Attribute[int] | None = None
    map: Attribute[WgMap] | None = None

    effects = frozenset()
    assembly_format = "$value (`,`)? $dims attr-dict `:` type($value) `->` type($result)"

    def verify_op(self) -> None:
        (shape, element), (wide, wide_element) = (shape_and_element(v) for v in (self.value, self.result))
        check_dimension(self, shape)
        (dim,) = self.dims
        if wide_element != element or len(wide) != 2 or wide[1 - dim] != shape[1 - dim]:
            self.fail(f"cannot broadcast {self.value.type} to {self.result.type} along dimension {dim}")
        check_map(self, "map", self.map, wide)
        if self.broadcast_size is None:
            if shape[dim] != 1:
                self.fail(
                    f"requires size 1 along dimension {dim}, but got {self.value.type}",
                    "with broadcast_size = n each element is repeated n times",
                )
        elif self.broadcast_size < 1 or shape[dim] * self.broadcast_size != wide[dim]:
            self.fail(
                f"broadcast_size = {self.broadcast_size} makes {shape[dim]} elements "
                f"{shape[dim] * self.broadcast_size}, not {wide[dim]}"
            )


def check_dimension(op: Any, shape: tuple[int, ...]) -> None:
    """Check that the op's `dims` are one dimension of a matrix."""
    if len(shape) != 2:
        op.fail(f"requires a matrix, but got {op.value.type}")
    if op.dims not in ((0,), (1,)):
        op.fail(f"dimension must be [0] or [1], but got {list(op.dims)}")


class ConvertLayoutOp(Operation, dialect=XeTile, name="convert_layout"):
    """Gives each subgroup the part of a value that `wg_map_result` says, where it had that of `wg_map_source`.

    Without `wg_map_source` it is the map that the value has.
    """

    value: Operand[Vector]
    result: Result[Vector]
    wg_map_result: Attribute[WgMap]
    wg_map_source: Attribute[WgMap] | None = None

    effects = frozenset()
    same_type = ("result", "value")
    assembly_format = "$value attr-dict `:` type($value)"

    def verify_op(self) -> None:
        shape = shape_of(self.value)
        check_map(self, "wg_map_result", self.wg_map_result, shape)
        check_map(self, "wg_map_source", self.wg_map_source, shape)
        source = self.wg_map_source
        if source and subgroups(source) != subgroups(self.wg_map_result):
            self.fail(
                f"needs as many subgroups in both maps, but {subgroups(source)} have the source and "
                f"{subgroups(self.wg_map_result)} the result"
            )


def subgroups(wg_map: WgMap) -> int:
    """The number of subgroups of a map."""
    count = 1
    for n in wg_map.sg_layout:
        count *= n
    return count


# Agreement of maps between the op that makes a value and those that use it.

MAP = "map"
"""The attribute of an op of another dialect that gives the map of its results."""


def given_map(value: ir.Value) -> WgMap | None:
    """The map that the defining op of a value gives it; None if it gives none."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    view = owner.opview
    if isinstance(view, (LoadTileOp, LoadOp, AtomicRmwOp)):
        return Tile.of(view.tile).wg_map
    if isinstance(view, TileMmaOp):
        return view.wg_map_c
    if isinstance(view, ConvertLayoutOp):
        return view.wg_map_result
    if isinstance(view, (TransposeOp, ReductionOp, BroadcastOp)):
        return view.map
    return attached_map(owner)


def attached_map(op: Any) -> WgMap | None:
    """The `map` attribute of an op of another dialect; None if it has none."""
    attributes = op.operation.attributes
    if MAP not in attributes:
        return None
    text = str(attributes[MAP])
    return WgMap.decode(text) if text.startswith(WgMap.mnemonic() + "<") else None


SUBGROUPS = "xetile.subgroups"
"""The attribute of a kernel without maps that gives the number of subgroups among which its tiles are divided."""


def stated_subgroups(func: ir.Operation) -> int | None:
    """The number of subgroups in the attribute `SUBGROUPS` of a kernel; None if it has none.

    Raises:
        DiagnosticError: if the attribute is no positive integer.
    """
    attribute = func.attributes.get(SUBGROUPS)
    if attribute is None:
        return None
    number = int(ir.IntegerAttr(attribute).value) if isinstance(attribute, ir.IntegerAttr) else 0
    if number < 1:
        emit_error(func, f"has {SUBGROUPS} = {attribute}, which is no positive integer")
    return number


def mapped_subgroups(func: ir.Operation) -> int | None:
    """The number of subgroups of a kernel's maps; None if it has no maps."""
    for op in walk(func):
        maps = [Tile.of(v).wg_map for v in op.results if Tile.matches(v)]
        # Only upstream's attributes have classes, and their text may be long.
        texts = [str(attribute) for _, attribute in op.attributes.items() if type(attribute) is ir.Attribute]
        maps += [WgMap.decode(t) for t in texts if t.startswith(f"{WgMap.mnemonic()}<")]
        for wg_map in maps:
            if wg_map:
                return subgroups(wg_map)
    return None


def subgroups_of(func: ir.Operation) -> int | None:
    """The number of subgroups of a kernel's maps, or of its attribute `SUBGROUPS`.

    None if it has neither, and is a kernel of one subgroup.
    """
    return stated_subgroups(func) or mapped_subgroups(func)


def subgroups_of_kernel(func: ir.Operation) -> int | None:
    """The same; None for a kernel that has no op of XeTile."""
    return subgroups_of(func) if any(op.name.startswith("xetile.") for op in walk(func)) else None


def wanted_maps(view: Operation) -> Iterator[tuple[str, ir.Value, WgMap]]:
    """(operand's name, operand, map) for each operand whose map an op gives."""
    if isinstance(view, (StoreTileOp, StoreOp, AtomicRmwOp)):
        wg_map = Tile.of(view.tile).wg_map
        if wg_map:
            yield "value", view.value, wg_map
    elif isinstance(view, TileMmaOp):
        for name in ("a", "b", "c"):
            operand, wg_map = getattr(view, name), getattr(view, f"wg_map_{name}")
            if operand is not None and wg_map:
                yield name, operand, wg_map
    elif isinstance(view, ConvertLayoutOp) and view.wg_map_source:
        yield "value", view.value, view.wg_map_source


@XeTile.rule
def disagreements(ops: Sequence[Operation], bodies: PendingFunctions) -> list[Diagnostic]:
    """Operands for which an op requires another map than their defining op gives them."""
    diagnostics = []
    for view in ops:
        for name, operand, required_map in wanted_maps(view):
            operand_map = given_map(operand)
            if operand_map and operand_map != required_map:
                producer_position = position_of(operand.owner.location)
                message = f"requires '{name}' to have the map {required_map}, but got {operand_map}"
                origin = Diagnostic("note", f"'{operand.owner.name}' gives the operand this map", producer_position)
                diagnostics.append(
                    op_error(view, message, origin, "use xetile.convert_layout to change the map of a value")
                )
    return diagnostics
