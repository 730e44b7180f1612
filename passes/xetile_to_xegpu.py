"""`xetile-to-xegpu`: tiles of subgroups become XeGPU of the same size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, vector
from msgspec import Struct, field

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import MemoryScope, TdescAttr, TensorDesc
from xegpu_py.dialects.xegpu.matrix_ops import vnni_factor
from xegpu_py.dialects.xegpu.types import LANES, UNALIGNED
from xegpu_py.dialects.xetile import (
    AtomicRmwOp,
    InitTileOp,
    LoadTileOp,
    Tile,
    TileMmaOp,
    TransposeOp,
    UpdateTileOffsetOp,
)
from xegpu_py.dialects.xetile.ops import reduced_block
from xegpu_py.dialects.xetile.types import TileAccess
from xegpu_py.ir.builtin import CombiningKind, bit_width, number_of
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.element_movement import permutation_of
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.affine_analysis import IndexForms
from xegpu_py.passes.analysis.ir_queries import bits_of, defining_op, element_of, shape_of, target_for, tile_kernels
from xegpu_py.passes.analysis.launch_assumptions import unaligned_arguments
from xegpu_py.passes.analysis.target_messages import hints_of, message_sizes, vnni_packed
from xegpu_py.passes.analysis.target_rules import require_registers
from xegpu_py.passes.analysis.tile_layout_inference import has_maps, value_classes
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.memory_access import lane_offsets, lanes_in_bounds
from xegpu_py.passes.rewriting.rewriter import Rule, Rules
from xegpu_py.passes.rewriting.tile_conversion import TileConversion, is_tile


@register_pass("xetile-to-xegpu")
class XeTileToXeGPU(Pass):
    """Lower XeTile of subgroups to XeGPU in VC mode.

    Each op becomes ops on vectors of the same sizes. A tile becomes a descriptor; loads, stores, prefetches and moves
    of tiles become those of descriptors, and products become `xegpu.dpas`. `xegpu-legalize` then divides the ops into
    those that the target supports.

    Column-major tiles, and tiles whose only use is a transpose, are loaded transposed. The second operand of a product
    is loaded in VNNI layout; if it is computed, it is packed in registers. A mask of the elements in bounds selects
    between them and the padding value. Scattered tiles, and blocks that are updated atomically, become descriptors of
    up to 32 elements. A reduction first combines groups of 8 rows, or of 64 bytes of a row, elementwise, and then the
    elements of the last group.

        %t = xetile.init_tile %B[0, %n] : memref<64x256xbf16> -> !xetile.tile<32x64xbf16>
        %b = xetile.load_tile %t : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
        %d = xetile.tile_mma %a, %b, %c : vector<32x32xbf16>, vector<32x64xbf16>, vector<32x64xf32> -> vector<32x64xf32>

    becomes

        %t = xegpu.create_nd_tdesc %B[0, %n] {mode = vc} : memref<64x256xbf16> -> !xegpu.tensor_desc<32x64xbf16>
        %b = xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<32x64xbf16> -> vector<16x64x2xbf16>
        %d = xegpu.dpas %c, %a, %b {mode = vc} : vector<32x64xf32>, vector<32x32xbf16>, vector<16x64x2xbf16> -> ...

    `target` determines how many registers a thread has; much larger vectors are refused.
    """

    target: str = ""

    def run(self, op: ir.Operation) -> None:
        for func in tile_kernels(op):
            if has_maps(func):
                self.fail(func, "distributes tiles over subgroups", "run xetile-wg-to-sg first")
            TileLowering(func, self.target).run()


# The forms that tiles and loads become, determined before any op is rewritten.

_TILE_LANES = 16
"""The lanes of a descriptor of a scattered tile; the descriptor is live as long as the tile."""


def scattered_lanes(count: int, most: int = _TILE_LANES) -> list[tuple[int, int]]:
    """(first element, lanes) of the scattered descriptors for `count` elements, each of at most `most` lanes."""
    return message_sizes(count, [n for n in LANES if n <= most])


def scattered_desc(tile: Tile, lanes: int) -> TensorDesc:
    """A descriptor of some elements of a tile."""
    scope = MemoryScope.SLM if tile.attr.memory_space else MemoryScope.GLOBAL
    return TensorDesc((lanes,), tile.element, TdescAttr(memory_scope=scope, scattered=True))


class TileForm(Struct):
    """The properties of a class of tiles.

    Attributes:
        tile: their type.
        roots: the ops that make them.
        users: the ops that load, store, prefetch or move them.
        atomics: the ops that update their elements atomically.
        padded: whether loads of them are padded.
    """

    tile: Tile
    roots: list[ir.Operation] = field(default_factory=list)
    users: list[ir.Operation] = field(default_factory=list)
    updates: list[ir.Operation] = field(default_factory=list)
    atomics: list[ir.Operation] = field(default_factory=list)
    padded: bool = False

    def types(self) -> list[ir.Type]:
        """The types of the values that replace a tile.

        A scattered tile becomes its descriptors. Any other tile becomes a descriptor and, if necessary, the row and
        column of its first element. Tiles of several matrices also have the extents and, for atomics, the address and
        strides.
        """
        if self.tile.scattered:
            lanes = scattered_lanes(math.prod(self.tile.shape))
            return [scattered_desc(self.tile, n).to_ir() for _, n in lanes]
        index = ir.IndexType.get()
        value_types = [self.desc().to_ir()] if self.is_block else []
        if self.has_place:
            value_types += [index] * 2
            if self.merged:
                value_types += [self.address] if self.atomics else []
                value_types += [index] * (4 if self.atomics else 2)
        return value_types

    def desc(self) -> TensorDesc:
        """The type of the descriptor."""
        scope = MemoryScope.SLM if self.tile.attr.memory_space else MemoryScope.GLOBAL
        inside = scope == MemoryScope.SLM and self.in_bounds
        clipped = all(r.opview.clipped for r in self.roots)
        return TensorDesc(
            self.memory_block, self.tile.element, TdescAttr(scope, boundary_check=not inside, clipped=clipped)
        )

    @property
    def is_block(self) -> bool:
        """Whether the tile has a descriptor of a block."""
        return bool(self.users) or not self.atomics

    @property
    def has_place(self) -> bool:
        """Whether the row and column are needed in addition to a descriptor."""
        return bool(self.atomics) or (self.padded and not self.in_bounds)

    @property
    def in_bounds(self) -> bool:
        """Whether `in_bounds` promises that the tiles are inside their matrix."""
        return all(r.opview.in_bounds for r in self.roots)

    @property
    def address(self) -> ir.Type:
        """The type of the address of each of several matrices."""
        types = {r.operands[0].type for r in self.roots}
        wide = ir.IntegerType.get_signless(64)
        if len(types) == 1 and not isinstance(next(iter(types)), ir.MemRefType):
            return next(iter(types))
        for root in self.roots:
            if not (root.operands[0].type == wide or isinstance(root.operands[0].type, ir.MemRefType)):
                emit_error(
                    root,
                    f"makes a tile of an address of type {root.operands[0].type}, which control flow makes one with "
                    "tiles of other sources",
                    "use addresses of type i64 in control flow that also passes memrefs",
                )
        return wide

    @property
    def merged(self) -> bool:
        """Whether control flow joins tiles of several ops."""
        return len(self.roots) > 1

    @property
    def memory_block(self) -> tuple[int, int]:
        """Rows and columns of the block in memory."""
        rows, columns = self.tile.shape
        return (columns, rows) if self.tile.column_major else (rows, columns)


class LoadForm(Struct, frozen=True):
    """The form of a load of a block.

    Attributes:
        vnni: whether the result is in VNNI layout, because it is only used as the second operand of products.
        transposed: whether the block is loaded transposed, because the result is only transposed.
    """

    vnni: bool = False
    transposed: bool = False


class Forms:
    """The forms of a kernel's tiles and loads."""

    def __init__(self, func: ir.Operation) -> None:
        ops = walk(func)
        self._classes = value_classes(ops)
        self._tiles: dict[ir.Value, TileForm] = {}
        self._indices = IndexForms()
        for op in ops:
            self._note(op)
        for form in self._tiles.values():
            if not form.roots:
                emit_error(
                    (form.users + form.atomics + form.updates or [func])[0],
                    "uses a tile that is created outside of the kernel",
                    "create the tile in the kernel, and move it with xetile.update_tile_offset",
                )

    def tile(self, value: ir.Value) -> TileForm:
        """The form of a tile."""
        root = self._classes.find(value)
        if root not in self._tiles:
            self._tiles[root] = TileForm(Tile.of(value))
        return self._tiles[root]

    def may_begin_before(self, form: TileForm) -> bool:
        """Whether tiles may begin before the first row or column of their matrix."""
        offsets = [n for r in form.roots for n in r.opview.offsets[-2:]]
        offsets += [n for u in form.updates for n in u.opview.offsets]
        return not all(self._indices.is_nonnegative(self._indices.scalar(n)) for n in offsets)

    def _note(self, op: ir.Operation) -> None:
        view: Any = op.opview
        if isinstance(view, InitTileOp):
            self.tile(view.tile).roots.append(op)
        elif isinstance(view, UpdateTileOffsetOp):
            self.tile(view.tile).updates.append(op)
        elif isinstance(view, AtomicRmwOp):
            self.tile(view.tile).atomics.append(op)
        elif isinstance(view, TileAccess):
            form = self.tile(view.tile)
            form.users.append(op)
            form.padded |= isinstance(view, LoadTileOp) and is_padded(view)

    def load(self, op: ir.Operation) -> LoadForm:
        """The form of a load, determined by the uses of its result."""
        form = self.tile(op.operands[0])
        if is_padded(op.opview) and not form.in_bounds:
            return LoadForm()
        (rows, columns), pack = form.tile.shape, vnni_factor(form.tile.bits)
        users = [u.owner.operation for u in op.results[0].uses]
        views = [o.opview for o in users]
        transposed = bool(users) and all(isinstance(v, TransposeOp) and v.permutation == (1, 0) for v in views)
        depth = columns if transposed else rows
        products = map(_feeds_products, [o.results[0] for o in users] if transposed else [op.results[0]])
        return LoadForm(pack > 1 and depth % pack == 0 and all(products), transposed)


def is_padded(view: Any) -> bool:
    """Whether a load pads out-of-bounds elements with a number other than zero, which messages return."""
    if view.padding is None:
        return False
    number = number_of(view.padding)
    return number != 0 or math.copysign(1, number) < 0


def _feeds_products(value: ir.Value) -> bool:
    uses = list(value.uses)
    return bool(uses) and all(isinstance(u.owner.opview, TileMmaOp) and u.operand_number == 1 for u in uses)


# Converts a kernel of subgroups: tiles become descriptors, and ops of XeTile become ops of XeGPU of the same size.

VC: dict[str, Any] = {"mode": "vc"}

rule: Rules[Rule[TileLowering]] = Rules()
"""The lowering rules, by op name."""


class TileLowering(TileConversion):
    """The conversion of one kernel. A tile becomes the values that `TileForm.types` lists.

    Attributes:
        forms: the forms of the tiles and loads.
        matrices: by the identity of a form whose tiles are of one matrix, that matrix.
        vnni, transposed: loaded values that are in VNNI layout, and those that have been transposed.
    """

    rules = rule

    def __init__(self, func: ir.Operation, target: str) -> None:
        super().__init__(func)
        require_registers(walk(func), target_for(func, target))
        for argument in func.regions[0].blocks[0].arguments:
            if is_tile(argument):
                emit_error(func, f"has an argument of type {Tile.of(argument)}", "create the tile in the kernel")
        unaligned = {*unaligned_arguments(func, "xetile.unaligned"), *unaligned_arguments(func)}
        if unaligned:
            func.attributes[UNALIGNED] = ir.DenseI64ArrayAttr.get(sorted(unaligned))
        self.forms = Forms(func)
        self.matrices: dict[int, MemoryMatrix] = {}
        self.vnni: set[ir.Value] = set()
        self.transposed: set[ir.Value] = set()

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> list[ir.Type] | None:
        return self.forms.tile(value).types() if is_tile(value) else None

    def numbers(self, numbers: Sequence[ir.Value | int]) -> list[build.Index]:
        return [n if isinstance(n, int) else self.replacement(n) for n in numbers]

    # Tiles.

    @staticmethod
    def descriptor(form: TileForm, matrix: MemoryMatrix, offsets: Sequence[build.Index]) -> ir.Value:
        extents, strides, positions = matrix.extents, matrix.strides, list(offsets)
        if form.tile.column_major:
            extents, strides, positions = extents[::-1], strides[::-1], positions[::-1]
        keywords: dict[str, Any] = {}
        source = matrix.source
        if matrix.memref is None or (matrix.memref.rank == 2 and matrix.is_stated and not form.tile.column_major):
            keywords = {"shape": list(extents), "strides": list(strides)}
        elif matrix.memref.rank != 2 or form.tile.column_major:
            source = MemoryMatrix(source, extents, strides, matrix.lead).as_2d()
        return xegpu.create_nd_tdesc(source, positions, tdesc=form.desc().to_ir(), **keywords, **VC)

    # Blocks.

    def padded(self, form: TileForm, view: Any, loaded: ir.Value) -> ir.Value:
        """Replace the out-of-bounds elements of a loaded block by `padding`."""
        matrix, start = self.place(form, self.get(view.tile))
        kind = build.vector_type(form.tile.shape, build.integer_type(1))
        remaining = [arith.subi(build.index(extent), build.index(at)) for extent, at in zip(matrix.extents, start)]
        padding = build.constant(loaded.type, number_of(view.padding))
        selected = build.select(vector.create_mask(kind, remaining), loaded, padding)
        for dim, at in enumerate(start) if self.forms.may_begin_before(form) else ():
            bounds = [build.index(n) for n in form.tile.shape]
            bounds[dim] = arith.subi(build.index(0), build.index(at))
            selected = build.select(vector.create_mask(kind, bounds), padding, selected)
        return selected

    def place(
        self, form: TileForm, numbers: Sequence[ir.Value]
    ) -> tuple[MemoryMatrix, tuple[build.Index, build.Index]]:
        """The matrix of a tile, and the tile's first row and column, from the values that replace the tile."""
        row, column, *more = numbers[form.is_block :]
        if not form.merged:
            return self.matrices[id(form)], (row, column)
        source = more.pop(0) if form.atomics else numbers[0]
        rows, columns, *strides = more
        return MemoryMatrix(source, (rows, columns), (strides[0], strides[1]) if strides else (0, 1)), (row, column)

    # Elements with individual addresses.

    def lanes(self, view: Any) -> Iterator[tuple[ir.Value, ir.Value, int]]:
        """(descriptor, mask, lanes) of the messages that access the elements of a tile."""
        form, numbers = self.forms.tile(view.tile), self.get(view.tile)
        if not form.tile.scattered:
            yield from self.elements(form, *self.place(form, numbers))
            return
        masks = _parts(None if view.mask is None else self.replacement(view.mask), form.tile.shape)
        for desc, (mask, lanes) in zip(numbers, masks, strict=True):
            yield desc, mask, lanes

    @staticmethod
    def elements(
        form: TileForm, matrix: MemoryMatrix, positions: tuple[build.Index, build.Index]
    ) -> Iterator[tuple[ir.Value, ir.Value, int]]:
        """(descriptor, mask, lanes) of the messages that access the elements of a block; each accesses several rows."""
        tile, (by_row, by_column) = form.tile, matrix.strides
        start = build.add(
            build.add(build.multiply(positions[0], by_row), build.multiply(positions[1], by_column)), matrix.lead
        )
        for first, lanes in scattered_lanes(math.prod(tile.shape), max(LANES)):
            row, column = divmod(first, tile.shape[1])
            # Rows and columns are relative to those of the first lane, so that messages share vectors.
            rows, across = zip(*(divmod(column + i, tile.shape[1]) for i in range(lanes)))
            across = tuple(c - column for c in across)
            begin = build.add(start, build.add(build.multiply(by_row, row), build.multiply(by_column, column)))
            offsets = arith.addi(build.index_splat(begin, lanes), lane_offsets(lanes, (rows, across), matrix.strides))
            desc = xegpu.create_tdesc(matrix.source, offsets, tdesc=scattered_desc(tile, lanes).to_ir(), **VC)
            mask = None
            limits = zip((rows, across), positions, (row, column), matrix.extents) if not form.in_bounds else ()
            for numbers, at, by, extent in limits:
                below = lanes_in_bounds([n + by for n in numbers], at, extent)
                mask = below if mask is None else arith.andi(mask, below)
            yield desc, build.all_set(lanes) if mask is None else mask, lanes

    # Vectors.


@rule("xetile.init_tile")
def init_tile(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Create the tile's descriptors, and its position if it is needed."""
    view: InitTileOp = op.opview
    form = low.forms.tile(view.tile)
    if form.tile.scattered:
        source, offsets = low.replacement(view.source), low.replacement(view.indices)
        pieces = [(part, scattered_desc(form.tile, lanes).to_ir()) for part, lanes in _parts(offsets)]
        return [xegpu.create_tdesc(source, part, tdesc=kind, **VC) for part, kind in pieces]
    matrix, offsets = matrix_of(view, low.replacement), low.numbers(view.offsets[-2:])
    values = [low.descriptor(form, matrix, offsets)] if form.is_block else []
    if form.has_place:
        values += [build.index(n) for n in offsets]
    if not form.merged:
        low.matrices[id(form)] = matrix
    elif form.has_place:
        values += [matrix.address()] if form.atomics else []
        values += map(build.index, (*matrix.extents, *(matrix.strides if form.atomics else ())))
    return values


@rule("xetile.update_tile_offset")
def update_tile_offset(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Move the descriptors and the position."""
    view: Any = op.opview
    form, values = low.forms.tile(view.tile), low.get(view.tile)
    if form.tile.scattered:
        moves = _parts(low.replacement(view.indices))
        pairs = zip(values, moves, strict=True)
        return [xegpu.update_offset(desc, by, result=desc.type, **VC) for desc, (by, _) in pairs]
    offsets = low.numbers(view.offsets)
    offsets_after: list[ir.Value] = []
    if form.is_block:
        by = offsets[::-1] if form.tile.column_major else offsets
        offsets_after.append(xegpu.update_nd_offset(values[0], by, result=values[0].type, **VC))
        values = values[1:]
    return [*offsets_after, *(build.index(build.add(a, b)) for a, b in zip(values, offsets)), *values[2:]]


@rule("xetile.prefetch_tile")
def prefetch_tile(low: TileLowering, op: ir.Operation) -> None:
    """Prefetch by each descriptor; tiles in shared local memory are not prefetched."""
    view: Any = op.opview
    form = low.forms.tile(view.tile)
    if form.tile.attr.memory_space:
        low.replace(op)
        return
    prefetch = xegpu.prefetch if form.tile.scattered else xegpu.prefetch_nd
    for desc in low.get(view.tile) if form.tile.scattered else low.get(view.tile)[:1]:
        prefetch(desc, **VC, **hints_of(view))
    low.replace(op)


@rule("xetile.load_tile")
def load_tile(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Load the block, transposed or in VNNI layout if all uses need it so."""
    view: Any = op.opview
    form, values = low.forms.tile(view.tile), low.get(view.tile)
    load = low.forms.load(op)
    tile = form.tile
    rows, columns = form.memory_block
    pack = vnni_factor(tile.bits) if load.vnni else 1
    keywords: dict[str, Any] = {}
    shape: tuple[int, ...] = (rows, columns)
    if load.transposed != tile.column_major:
        shape, keywords = (columns // pack, rows * pack), {"transpose": [1, 0]}
        if load.vnni:
            keywords["transpose_bit_width"] = pack * tile.bits
    elif load.vnni:
        shape, keywords = (rows // pack, columns, pack), {"vnni_axis": 0}
    loaded = xegpu.load_nd(
        values[0], value=build.with_shape(view.value.type, shape), **keywords, **VC, **hints_of(view)
    )
    if load.vnni:
        low.vnni.add(view.value)
        if len(shape) == 2:
            loaded = build.shape_cast(loaded, (columns // pack, rows, pack))
    if load.transposed:
        low.transposed.add(view.value)
    return [low.padded(form, view, loaded) if is_padded(view) and not form.in_bounds else loaded]


@rule("xetile.store_tile")
def store_tile(low: TileLowering, op: ir.Operation) -> None:
    """Store the block in its layout in memory."""
    view: Any = op.opview
    tile, stored = Tile.of(view.tile), low.replacement(view.value)
    if tile.column_major:
        stored = build.transpose(stored, [1, 0])
    xegpu.store_nd(stored, low.get(view.tile)[0], **VC, **hints_of(view))
    low.replace(op)


@rule("xetile.load")
def load(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Gather the elements of each message."""
    view: Any = op.opview
    pieces = []
    for desc, mask, _ in low.lanes(view):
        kind = build.with_shape(view.value.type, shape_of(mask))
        loaded = xegpu.load_gather(desc, mask, value=kind, **VC, **hints_of(view))
        if view.mask is not None and is_padded(view):
            loaded = build.select(mask, loaded, build.constant(loaded.type, number_of(view.padding)))
        pieces.append(loaded)
    return [_joined(pieces, shape_of(view.value))]


@rule("xetile.store")
def store(low: TileLowering, op: ir.Operation) -> None:
    """Scatter the elements of each message."""
    view: Any = op.opview
    for (desc, mask, _), (part, _) in zip(low.lanes(view), _parts(low.replacement(view.value)), strict=True):
        xegpu.store_scatter(part, desc, mask, **VC, **hints_of(view))
    low.replace(op)


@rule("xetile.atomic_rmw")
def atomic_rmw(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Update the elements of each message atomically."""
    view: Any = op.opview
    line = build.flatten(low.replacement(view.value))
    expected = None if view.expected is None else build.flatten(low.replacement(view.expected))
    pieces, at = [], 0
    for desc, mask, lanes in low.lanes(view):
        part, expected_part = (None if v is None else build.extract_slice(v, [at], [lanes]) for v in (line, expected))
        pieces.append(xegpu.atomic_rmw(view.kind, part, desc, mask, expected_part, **VC))
        at += lanes
    return [_joined(pieces, shape_of(view.value))]


@rule("xetile.tile_mma")
def tile_mma(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Multiply; the second operand is in VNNI layout."""
    view: TileMmaOp = op.opview
    a, b = low.replacement(view.a), low.replacement(view.b)
    acc = None if view.c is None else low.replacement(view.c)
    if view.b not in low.vnni:
        pack = vnni_factor(bits_of(element_of(b)))
        depth = -(-shape_of(b)[0] // max(pack, 1)) * max(pack, 1)
        a, b = build.pad_with_zeros(a, (shape_of(a)[0], depth)), build.pad_with_zeros(b, (depth, shape_of(b)[1]))
        b = _vnni(b, pack)
    if not view.is_scaled:
        return [xegpu.dpas(a, b, acc, result=view.d.type, **VC)]
    scales = {n: low.replacement(v) for n, v in (("scale_a", view.scale_a), ("scale_b", view.scale_b)) if v is not None}
    return [xegpu.dpas_mx(a, b, acc, result=view.d.type, **scales, **VC)]


@rule("xetile.convert_layout")
def convert_layout(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Remove the conversion, because maps have no meaning for a single subgroup."""
    view: Any = op.opview
    return list(low.get(view.value))


@rule("xetile.transpose")
def transposed(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Transpose in registers, unless the value was loaded transposed."""
    view: Any = op.opview
    replacement, result = low.replacement(view.value), op.results[0]
    if view.permutation != (0, 1):
        if view.value not in low.transposed:
            replacement = build.transpose(replacement, [1, 0])
        elif view.value in low.vnni:
            low.vnni.add(result)
    return [replacement]


def _vnni(b: ir.Value, pack: int) -> ir.Value:
    """Pack a matrix to VNNI layout in registers."""
    if pack <= 1:
        return b
    rows, columns = shape_of(b)
    element_bytes = _bytes_of(b)
    if element_bytes is not None:
        # In VNNI layout, the elements of each byte remain in that byte.
        kind = build.with_shape(b.type, (rows // pack, columns, pack))
        return build.make("vector.bitcast", kind, _vnni(element_bytes, vnni_factor(8)))
    return vnni_packed(b, 0, pack)


def _bytes_of(b: ir.Value) -> ir.Value | None:
    """The matrix of bytes that is bitcast along columns to this matrix; None if there is no such matrix."""
    chain = b
    for casts in (False, True, False):
        op = defining_op(chain)
        if op is None or (op.name != "vector.bitcast" if casts else permutation_of(op) is None):
            return None
        chain = op.operands[0]
        if casts and bits_of(element_of(chain)) != 8:
            return None
    return chain


def _parts(value: ir.Value | None, shape: Sequence[int] = ()) -> list[tuple[ir.Value, int]]:
    """The elements of a vector for each message of a scattered tile; without a vector, masks of `shape` of ones."""
    if value is None:
        return [(build.all_set(lanes), lanes) for _, lanes in scattered_lanes(math.prod(shape))]
    line = build.flatten(value)
    return [(build.extract_slice(line, [at], [lanes]), lanes) for at, lanes in scattered_lanes(*shape_of(line))]


def _joined(pieces: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """Concatenate lines to a vector of this shape."""
    whole = pieces[0]
    if len(pieces) > 1:
        whole, at = build.zero(build.with_shape(whole.type, (math.prod(shape),))), 0
        for piece in pieces:
            whole = build.insert_slice(piece, whole, [at])
            at += shape_of(piece)[0]
    return build.shape_cast(whole, shape)


# Lowers reductions and broadcasts to ops of the vector dialect.


@rule("xetile.reduction")
def reduction(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Reduce all elements, or groups of elements, along a dimension."""
    view: Any = op.opview
    value, (dim,) = low.replacement(view.value), view.dims
    result, kind, element = shape_of(view.result), view.kind, element_of(value)
    if result[dim] > 1 or kind.is_sequential(op):
        return [_reduced(kind, value, dim, result)]
    size, block = shape_of(value)[dim], reduced_block(dim, _bits(element))
    groups: dict[int, list[ir.Value]] = {}
    for start in range(0, size, block):
        extent = tuple(min(block, size - start) if i == dim else n for i, n in enumerate(shape_of(value)))
        part = build.extract_slice(value, [start if i == dim else 0 for i in range(2)], extent)
        groups.setdefault(extent[dim], []).append(part)
    return [_tree(kind, [_reduced(kind, _tree(kind, group), dim, result) for group in groups.values()])]


def _bits(element: ir.Type) -> int:
    return 64 if isinstance(element, ir.IndexType) else bits_of(element)


def _tree(kind: CombiningKind, values: Sequence[ir.Value]) -> ir.Value:
    """Combine all values, adjacent ones first."""
    pending = list(values)
    while len(pending) > 1:
        pairs = [kind.combine(a, b) for a, b in zip(pending[::2], pending[1::2])]
        pending = pairs + ([pending[-1]] if len(pending) % 2 else [])
    return pending[0]


def _reduced(kind: CombiningKind, value: ir.Value, dim: int, result: tuple[int, ...]) -> ir.Value:
    """Reduce by one op."""
    shape = shape_of(value)
    size = shape[dim] // result[dim]
    if size == 1:
        return value
    if result[dim] > 1:
        value = build.shape_cast(value, (*shape[:dim], result[dim], size, *shape[dim + 1 :]))
    axis = dim + (result[dim] > 1)
    reduced_type = build.with_shape(value.type, [n for i, n in enumerate(shape_of(value)) if i != axis])
    start = build.constant(reduced_type, kind.identity(reduced_type.element_type))
    attributes = {"kind": kind.attribute, "reduction_dims": build.i64_array([axis])}
    return build.shape_cast(build.make("vector.multi_reduction", reduced_type, value, start, **attributes), result)


@rule("xetile.broadcast")
def repeated(low: TileLowering, op: ir.Operation) -> list[ir.Value]:
    """Repeat elements along a dimension."""
    view: Any = op.opview
    value, (dim,) = low.replacement(view.value), view.dims
    times, shape = view.broadcast_size, shape_of(value)
    if times is None or shape[dim] == 1:
        return [build.broadcast(value, view.result.type)]
    grouped = build.shape_cast(value, (*shape[: dim + 1], 1, *shape[dim + 1 :]))
    wide = build.with_shape(value.type, (*shape[: dim + 1], times, *shape[dim + 1 :]))
    return [build.shape_cast(build.broadcast(grouped, wide), shape_of(view.result))]


# The matrices in memory that contain tiles.


class MemoryMatrix(Struct):
    """A matrix in memory.

    Attributes:
        source: the memref, or the address.
        extents: rows and columns.
        strides: elements from row to row and from column to column.
        lead: the offset of the matrix's first element from the source's first element, in elements.
        is_stated: whether the op that makes the tile has shape and strides.
    """

    source: ir.Value
    extents: tuple[build.Index, build.Index]
    strides: tuple[build.Index, build.Index]
    lead: build.Index = 0
    is_stated: bool = False

    @property
    def memref(self) -> ir.MemRefType | None:
        """The source's type, if it is a memref."""
        kind = self.source.type
        return ir.MemRefType(kind) if isinstance(kind, ir.MemRefType) else None

    def as_2d(self) -> ir.Value:
        """A memref of two dimensions that contains only this matrix."""
        return build.reinterpret_cast(self.source, self._start(), self.extents, self.strides)

    def address(self) -> ir.Value:
        """The address of the matrix's first element: the source if it is an address, otherwise i64."""
        if self.memref is None:
            return self.source
        return build.element_address(self.source, self._start(), bit_width(str(self.memref.element_type)))

    def _start(self) -> build.Index:
        """The offset of the matrix's first element from the beginning of the buffer, in elements."""
        return build.add(build.strided_layout(self.source)[0], self.lead)


def matrix_of(view: InitTileOp, one: Callable[[ir.Value], ir.Value]) -> MemoryMatrix:
    """The matrix that contains a tile.

    Args:
        one: a function that returns the new value of an old one.
    """
    source = one(view.source)
    shape, strides, offsets = (
        [v if isinstance(v, int) else build.fold_index(one(v)) for v in group]
        for group in (view.shape, view.strides, view.offsets)
    )
    if not isinstance(source.type, ir.MemRefType):
        return MemoryMatrix(source, _pair(shape), _pair(strides), 0, True)
    is_stated = bool(shape)
    if not is_stated:
        _, shape, strides = build.strided_layout(source)
    lead: build.Index = 0
    for offset, stride in zip(offsets[:-2], strides):
        lead = build.add(lead, build.multiply(offset, stride))
    return MemoryMatrix(source, _pair(shape[-2:]), _pair(strides[-2:]), lead, is_stated)


def _pair(numbers: Sequence[build.Index]) -> tuple[build.Index, build.Index]:
    row, column = numbers
    return row, column
