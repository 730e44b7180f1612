"""Converts a kernel of subgroups: tiles become descriptors, and ops of XeTile become ops of XeGPU of the same size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, vector

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.shapes import vnni_factor
from xegpu_py.dialects.xegpu.types import LANES
from xegpu_py.dialects.xetile import InitTileOp, Tile, TileMmaOp
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.numbers import number_of
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import Index
from xegpu_py.passes.common.gpu_functions import target_for
from xegpu_py.passes.common.messages import hints_of
from xegpu_py.passes.common.patterns import PatternSet
from xegpu_py.passes.common.surfaces import UNALIGNED, unaligned_arguments
from xegpu_py.passes.common.target_rules import require_registers
from xegpu_py.passes.common.transforms import vnni_packed
from xegpu_py.passes.common.values import bits_of, defining_op, element_of, shape_of
from xegpu_py.passes.xetile.conversion import Pattern, TileConversion, is_tile
from xegpu_py.passes.xetile.matrices import Matrix, matrix_of
from xegpu_py.passes.xetile_to_xegpu import reductions
from xegpu_py.passes.xetile_to_xegpu.forms import Forms, TileForm, is_padded, scattered_desc, scattered_lanes

VC: dict[str, Any] = {"mode": "vc"}

pattern: PatternSet[Pattern] = PatternSet()
"""The lowering patterns, by op name."""


class Lowering(TileConversion):
    """The conversion of one kernel. A tile becomes the values that `TileForm.types` lists.

    Attributes:
        forms: the forms of the tiles and loads.
        matrices: by the identity of a form whose tiles are of one matrix, that matrix.
        vnni, transposed: loaded values that are in VNNI layout, and those that have been transposed.
    """

    patterns = pattern

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
        self.matrices: dict[int, Matrix] = {}
        self.vnni: set[ir.Value] = set()
        self.transposed: set[ir.Value] = set()

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> list[ir.Type] | None:
        return self.forms.tile(value).types() if is_tile(value) else None

    def numbers(self, numbers: Sequence[ir.Value | int]) -> list[Index]:
        return [n if isinstance(n, int) else self.one(n) for n in numbers]

    # Tiles.

    @staticmethod
    def descriptor(form: TileForm, matrix: Matrix, offsets: Sequence[Index]) -> ir.Value:
        extents, strides, places = matrix.extents, matrix.strides, list(offsets)
        if form.tile.column_major:
            extents, strides, places = extents[::-1], strides[::-1], places[::-1]
        given: dict[str, Any] = {}
        source = matrix.source
        if matrix.memref is None or (matrix.memref.rank == 2 and matrix.given and not form.tile.column_major):
            given = {"shape": list(extents), "strides": list(strides)}
        elif matrix.memref.rank != 2 or form.tile.column_major:
            source = Matrix(source, extents, strides, matrix.lead).as_2d()
        made: ir.Value = xegpu.create_nd_tdesc(source, places, tdesc=form.desc().to_ir(), **given, **VC)
        return made

    # Blocks.

    def padded(self, form: TileForm, view: Any, loaded: ir.Value) -> ir.Value:
        """Replace the out-of-bounds elements of a loaded block by `padding`."""
        matrix, place = self.place(form, self.get(view.tile))
        kind = build.vector_type(form.tile.shape, build.integer_type(1))
        left = [arith.subi(build.index(extent), build.index(at)) for extent, at in zip(matrix.extents, place)]
        padding = build.constant(loaded.type, number_of(view.padding))
        found = build.select(vector.create_mask(kind, left), loaded, padding)
        for dim, at in enumerate(place) if form.before else ():
            bounds = [build.index(n) for n in form.tile.shape]
            bounds[dim] = arith.subi(build.index(0), build.index(at))
            found = build.select(vector.create_mask(kind, bounds), padding, found)
        return found

    def place(self, form: TileForm, held: Sequence[ir.Value]) -> tuple[Matrix, tuple[Index, Index]]:
        """The matrix of a tile, and the tile's first row and column, from the values that replace the tile."""
        row, column, *more = held[form.is_block :]
        if not form.merged:
            return self.matrices[id(form)], (row, column)
        source = more.pop(0) if form.atomics else held[0]
        rows, columns, *strides = more
        return Matrix(source, (rows, columns), (strides[0], strides[1]) if strides else (0, 1)), (row, column)

    # Elements with individual addresses.

    def lanes(self, view: Any) -> Iterator[tuple[ir.Value, ir.Value, int]]:
        """(descriptor, mask, lanes) of the messages that access the elements of a tile."""
        form, held = self.forms.tile(view.tile), self.get(view.tile)
        if not form.tile.scattered:
            yield from self.elements(form, *self.place(form, held))
            return
        masks = _parts(None if view.mask is None else self.one(view.mask), form.tile.shape)
        for desc, (mask, lanes) in zip(held, masks, strict=True):
            yield desc, mask, lanes

    @staticmethod
    def elements(
        form: TileForm, matrix: Matrix, place: tuple[Index, Index]
    ) -> Iterator[tuple[ir.Value, ir.Value, int]]:
        """(descriptor, mask, lanes) of the messages that access the elements of a block; each accesses several rows."""
        tile, (by_row, by_column) = form.tile, matrix.strides
        start = build.add(build.add(build.multiply(place[0], by_row), build.multiply(place[1], by_column)), matrix.lead)
        for first, lanes in scattered_lanes(math.prod(tile.shape), max(LANES)):
            row, column = divmod(first, tile.shape[1])
            # Rows and columns are relative to those of the first lane, so that messages share vectors.
            rows, across = zip(*(divmod(column + i, tile.shape[1]) for i in range(lanes)))
            across = tuple(c - column for c in across)
            begin = build.add(start, build.add(build.multiply(by_row, row), build.multiply(by_column, column)))
            offsets = build.index_splat(begin, lanes)
            if isinstance(by_row, int) and isinstance(by_column, int):
                offsets = arith.addi(
                    offsets, build.index_vector([r * by_row + c * by_column for r, c in zip(rows, across)])
                )
            else:
                for numbers, stride in ((rows, by_row), (across, by_column)):
                    offsets = arith.addi(
                        offsets, arith.muli(build.index_vector(numbers), build.index_splat(stride, lanes))
                    )
            desc = xegpu.create_tdesc(matrix.source, offsets, tdesc=scattered_desc(tile, lanes).to_ir(), **VC)
            mask = None
            limits = zip((rows, across), place, (row, column), matrix.extents) if not form.in_bounds else ()
            for numbers, at, by, extent in limits:
                # The comparison is unsigned, so that elements before the matrix are out of bounds too.
                here = arith.addi(build.index_vector([n + by for n in numbers]), build.index_splat(at, lanes))
                below = build.compare("ult", here, build.index_splat(extent, lanes))
                mask = below if mask is None else arith.andi(mask, below)
            yield desc, _all(lanes) if mask is None else mask, lanes

    # Vectors.


@pattern("xetile.init_tile")
def init_tile(low: Lowering, view: InitTileOp) -> list[ir.Value]:
    """Create the tile's descriptors, and its position if it is needed."""
    form = low.forms.tile(view.tile)
    if form.tile.scattered:
        source, offsets = low.one(view.source), low.one(view.indices)
        return [
            xegpu.create_tdesc(source, part, tdesc=scattered_desc(form.tile, lanes).to_ir(), **VC)
            for part, lanes in _parts(offsets)
        ]
    matrix, offsets = matrix_of(view, low.one), low.numbers(view.offsets[-2:])
    found = [low.descriptor(form, matrix, offsets)] if form.is_block else []
    if form.has_place:
        found += [build.index(n) for n in offsets]
    if not form.merged:
        low.matrices[id(form)] = matrix
    elif form.has_place:
        found += [matrix.address()] if form.atomics else []
        found += map(build.index, (*matrix.extents, *(matrix.strides if form.atomics else ())))
    return found


@pattern("xetile.update_tile_offset")
def update_tile_offset(low: Lowering, view: Any) -> list[ir.Value]:
    """Move the descriptors and the position."""
    form, held = low.forms.tile(view.tile), low.get(view.tile)
    if form.tile.scattered:
        moves = _parts(low.one(view.indices))
        return [
            xegpu.update_offset(desc, by, result=desc.type, **VC) for desc, (by, _) in zip(held, moves, strict=True)
        ]
    offsets = low.numbers(view.offsets)
    made: list[ir.Value] = []
    if form.is_block:
        by = offsets[::-1] if form.tile.column_major else offsets
        made.append(xegpu.update_nd_offset(held[0], by, result=held[0].type, **VC))
        held = held[1:]
    return [*made, *(build.index(build.add(a, b)) for a, b in zip(held, offsets)), *held[2:]]


@pattern("xetile.prefetch_tile")
def prefetch_tile(low: Lowering, view: Any) -> list[ir.Value]:
    """Prefetch by each descriptor; tiles in shared local memory are not prefetched."""
    form = low.forms.tile(view.tile)
    if form.tile.attr.memory_space:
        return []
    op = xegpu.prefetch if form.tile.scattered else xegpu.prefetch_nd
    for desc in low.get(view.tile) if form.tile.scattered else low.get(view.tile)[:1]:
        op(desc, **VC, **hints_of(view))
    return []


@pattern("xetile.load_tile")
def load_tile(low: Lowering, view: Any) -> list[ir.Value]:
    """Load the block, transposed or in VNNI layout if all uses need it so."""
    form, held = low.forms.tile(view.tile), low.get(view.tile)
    load = low.forms.load(view.operation)
    tile = form.tile
    rows, columns = form.memory_block
    pack = vnni_factor(tile.bits) if load.vnni else 1
    given: dict[str, Any] = {}
    shape: tuple[int, ...] = (rows, columns)
    if load.transposed != tile.column_major:
        shape, given = (columns // pack, rows * pack), {"transpose": [1, 0]}
        if load.vnni:
            given["transpose_bit_width"] = pack * tile.bits
    elif load.vnni:
        shape, given = (rows // pack, columns, pack), {"vnni_axis": 0}
    found = xegpu.load_nd(held[0], value=build.with_shape(view.value.type, shape), **given, **VC, **hints_of(view))
    if load.vnni:
        low.vnni.add(view.value)
        if len(shape) == 2:
            found = build.shape_cast(found, (columns // pack, rows, pack))
    if load.transposed:
        low.transposed.add(view.value)
    return [low.padded(form, view, found) if is_padded(view) and not form.in_bounds else found]


@pattern("xetile.store_tile")
def store_tile(low: Lowering, view: Any) -> list[ir.Value]:
    """Store the block in its layout in memory."""
    tile, stored = Tile.of(view.tile), low.one(view.value)
    if tile.column_major:
        stored = build.transpose(stored, [1, 0])
    xegpu.store_nd(stored, low.get(view.tile)[0], **VC, **hints_of(view))
    return []


@pattern("xetile.load")
def load(low: Lowering, view: Any) -> list[ir.Value]:
    """Gather the elements of each message."""
    pieces = []
    for desc, mask, _ in low.lanes(view):
        kind = build.with_shape(view.value.type, shape_of(mask))
        found = xegpu.load_gather(desc, mask, value=kind, **VC, **hints_of(view))
        if view.mask is not None and is_padded(view):
            found = build.select(mask, found, build.constant(found.type, number_of(view.padding)))
        pieces.append(found)
    return [_joined(pieces, shape_of(view.value))]


@pattern("xetile.store")
def store(low: Lowering, view: Any) -> list[ir.Value]:
    """Scatter the elements of each message."""
    for (desc, mask, _), (part, _) in zip(low.lanes(view), _parts(low.one(view.value)), strict=True):
        xegpu.store_scatter(part, desc, mask, **VC, **hints_of(view))
    return []


@pattern("xetile.atomic_rmw")
def atomic_rmw(low: Lowering, view: Any) -> list[ir.Value]:
    """Update the elements of each message atomically."""
    line = build.flat(low.one(view.value))
    expected = None if view.expected is None else build.flat(low.one(view.expected))
    pieces, at = [], 0
    for desc, mask, lanes in low.lanes(view):
        part, wanted = (None if v is None else build.extract_slice(v, [at], [lanes]) for v in (line, expected))
        pieces.append(xegpu.atomic_rmw(view.kind, part, desc, mask, wanted, **VC))
        at += lanes
    return [_joined(pieces, shape_of(view.value))]


@pattern("xetile.tile_mma")
def tile_mma(low: Lowering, view: TileMmaOp) -> list[ir.Value]:
    """Multiply; the second operand is in VNNI layout."""
    a, b = low.one(view.a), low.one(view.b)
    acc = None if view.c is None else low.one(view.c)
    if view.b not in low.vnni:
        pack = vnni_factor(bits_of(element_of(b)))
        depth = -(-shape_of(b)[0] // max(pack, 1)) * max(pack, 1)
        a, b = build.padded(a, (shape_of(a)[0], depth)), build.padded(b, (depth, shape_of(b)[1]))
        b = _vnni(b, pack)
    if not view.is_scaled:
        return [xegpu.dpas(a, b, acc, result=view.d.type, **VC)]
    scales = {n: low.one(v) for n, v in (("scale_a", view.scale_a), ("scale_b", view.scale_b)) if v is not None}
    return [xegpu.dpas_mx(a, b, acc, result=view.d.type, **scales, **VC)]


@pattern("xetile.convert_layout")
def convert_layout(low: Lowering, view: Any) -> Sequence[ir.Value]:
    """Remove the conversion, because maps have no meaning for a single subgroup."""
    return low.get(view.value)


@pattern("xetile.reduction")
def reduction(low: Lowering, view: Any) -> list[ir.Value]:
    """Reduce by ops of the vector dialect."""
    return [reductions.reduce(view, low.one(view.value))]


@pattern("xetile.broadcast")
def repeated(low: Lowering, view: Any) -> list[ir.Value]:
    """Broadcast by ops of the vector dialect."""
    return [reductions.broadcast(view, low.one(view.value))]


@pattern("xetile.transpose")
def transposed(low: Lowering, view: Any) -> list[ir.Value]:
    """Transpose in registers, unless the value was loaded transposed."""
    held, result = low.one(view.value), view.operation.results[0]
    if view.permutation == (0, 1):
        return [held]
    if view.value not in low.transposed:
        return [build.transpose(held, [1, 0])]
    if view.value in low.vnni:
        low.vnni.add(result)
    return [held]


def _vnni(b: ir.Value, pack: int) -> ir.Value:
    """Pack a matrix to VNNI layout in registers."""
    if pack <= 1:
        return b
    rows, columns = shape_of(b)
    held = _bytes_of(b)
    if held is not None:
        # In VNNI layout, the elements of each byte remain in that byte.
        vnni = _vnni(held, vnni_factor(8))
        return ir.Operation.create(
            "vector.bitcast", [build.with_shape(b.type, (rows // pack, columns, pack))], [vnni]
        ).result
    return vnni_packed(b, 0, pack)


def _bytes_of(b: ir.Value) -> ir.Value | None:
    """The matrix of bytes that is bitcast along columns to this matrix; None if there is no such matrix."""
    chain = b
    for name in ("vector.transpose", "vector.bitcast", "vector.transpose"):
        op = defining_op(chain)
        if op is None or op.name != name:
            return None
        chain = op.operands[0]
        if name == "vector.bitcast" and bits_of(element_of(chain)) != 8:
            return None
    return chain


def _parts(given: ir.Value | None, shape: Sequence[int] = ()) -> list[tuple[ir.Value, int]]:
    """The elements of a vector for each message of a scattered tile; without a vector, masks of `shape` of ones."""
    if given is None:
        return [(_all(lanes), lanes) for _, lanes in scattered_lanes(math.prod(shape))]
    line = build.flat(given)
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


def _all(lanes: int) -> ir.Value:
    return build.constant(build.vector_type((lanes,), build.integer_type(1)), True)
