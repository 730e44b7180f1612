"""The rebuilding of a kernel of subgroups: descriptors for tiles, and ops of XeGPU of the same size for XeTile's."""

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
from xegpu_py.passes.common.builders import Index, add, index, multiply
from xegpu_py.passes.common.surfaces import UNALIGNED, unaligned_arguments
from xegpu_py.passes.xetile.expansion import Expansion, rebuilds
from xegpu_py.passes.xetile.matrices import Matrix, matrix_of
from xegpu_py.passes.xetile.vectors import constant, cut, element_of, put, shape_of, vector_type, zero
from xegpu_py.passes.xetile_to_xegpu.forms import Forms, TileForm, is_padded, scattered_desc, scattered_lanes
from xegpu_py.passes.xetile_to_xegpu.reductions import broadcast, reduce

from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.numbers import number_attribute, number_of

VC: dict[str, Any] = {"mode": "vc"}


class Lowering(Expansion):
    """Lowers one kernel. A tile becomes the values that `TileForm.types` lists."""

    def __init__(self, func: ir.Operation) -> None:
        super().__init__(func)
        for argument in func.regions[0].blocks[0].arguments:
            if Tile.accepts(str(argument.type)):
                emit_error(func, f"has an argument of type {Tile.of(argument)}", "make tiles in the kernel, of memrefs")
        unaligned = {*unaligned_arguments(func, "xetile.unaligned"), *unaligned_arguments(func)}
        if unaligned:
            func.attributes[UNALIGNED] = ir.DenseI64ArrayAttr.get(sorted(unaligned))
        self.forms = Forms(func)
        self._matrices: dict[int, Matrix] = {}
        self._vnni: set[ir.Value] = set()
        self._transposed: set[ir.Value] = set()

    def types(self, value: ir.Value) -> list[ir.Type]:
        return self.forms.tile(value).types() if Tile.accepts(str(value.type)) else [value.type]

    def _numbers(self, numbers: Sequence[ir.Value | int]) -> list[Index]:
        return [n if isinstance(n, int) else self.one(n) for n in numbers]

    # Tiles.

    @rebuilds("xetile.init_tile")
    def _init_tile(self, view: InitTileOp) -> list[ir.Value]:
        form = self.forms.tile(view.tile)
        if form.tile.scattered:
            source, offsets = self.one(view.source), self.one(view.indices)
            return [
                xegpu.create_tdesc(source, part, tdesc=scattered_desc(form.tile, lanes).to_ir(), **VC)
                for part, lanes in _parts(offsets)
            ]
        matrix, offsets = matrix_of(view, self.one), self._numbers(view.offsets[-2:])
        found = [self._descriptor(form, matrix, offsets)] if form.is_block else []
        if form.has_place:
            found += [index(n) for n in offsets]
        if not form.merged:
            self._matrices[id(form)] = matrix
        elif form.has_place:
            found += [matrix.address()] if form.atomics else []
            for known, here in zip(form.needed(), (matrix.extents, matrix.strides)):
                found += [index(n) for k, n in zip(known, here) if k is None]
        return found

    @staticmethod
    def _descriptor(form: TileForm, matrix: Matrix, offsets: Sequence[Index]) -> ir.Value:
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

    @rebuilds("xetile.update_tile_offset")
    def _update(self, view: Any) -> list[ir.Value]:
        form, held = self.forms.tile(view.tile), self.get(view.tile)
        if form.tile.scattered:
            moves = _parts(self.one(view.indices))
            return [
                xegpu.update_offset(desc, by, result=desc.type, **VC) for desc, (by, _) in zip(held, moves, strict=True)
            ]
        offsets = self._numbers(view.offsets)
        made: list[ir.Value] = []
        if form.is_block:
            by = offsets[::-1] if form.tile.column_major else offsets
            made.append(xegpu.update_nd_offset(held[0], by, result=held[0].type, **VC))
            held = held[1:]
        return [*made, *(index(add(a, b)) for a, b in zip(held, offsets)), *held[2:]]

    @rebuilds("xetile.prefetch_tile")
    def _prefetch(self, view: Any) -> list[ir.Value]:
        form = self.forms.tile(view.tile)
        if form.tile.attr.memory_space:
            return []
        op = xegpu.prefetch if form.tile.scattered else xegpu.prefetch_nd
        for desc in self.get(view.tile) if form.tile.scattered else self.get(view.tile)[:1]:
            op(desc, **VC, **hints(view))
        return []

    # Blocks.

    @rebuilds("xetile.load_tile")
    def _load_tile(self, view: Any) -> list[ir.Value]:
        form, held = self.forms.tile(view.tile), self.get(view.tile)
        load = self.forms.load(view.operation)
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
        found = xegpu.load_nd(held[0], value=vector_type(shape, tile.element), **given, **VC, **hints(view))
        if load.vnni:
            self._vnni.add(view.value)
            if len(shape) == 2:
                found = vector.shape_cast(vector_type((columns // pack, rows, pack), tile.element), found)
        if load.transposed:
            self._transposed.add(view.value)
        return [self._padded(form, view, found) if is_padded(view) and not form.in_bounds else found]

    def _padded(self, form: TileForm, view: Any, loaded: ir.Value) -> ir.Value:
        """A loaded block with `padding` for what lies outside of the matrix."""
        matrix, place = self._place(form, self.get(view.tile))
        kind = vector_type(form.tile.shape, "i1")
        left = [arith.subi(index(extent), index(at)) for extent, at in zip(matrix.extents, place)]
        padding = _splat_like(loaded, view)
        found = arith.select(vector.create_mask(kind, left), loaded, padding)
        for dim, at in enumerate(place) if form.before else ():
            bounds = [index(n) for n in form.tile.shape]
            bounds[dim] = arith.subi(index(0), index(at))
            found = arith.select(vector.create_mask(kind, bounds), padding, found)
        return found

    def _place(self, form: TileForm, held: Sequence[ir.Value]) -> tuple[Matrix, tuple[Index, Index]]:
        """The matrix of a tile, and the tile's first row and column, of what stands for the tile."""
        row, column, *more = held[form.is_block :]
        if not form.merged:
            return self._matrices[id(form)], (row, column)
        source = more.pop(0) if form.atomics else held[0]
        rest = iter(more)
        extents, strides = ([next(rest) if n is None else n for n in known] for known in form.needed())
        return Matrix(source, (extents[0], extents[1]), (strides[0], strides[1]) if strides else (0, 1)), (row, column)

    @rebuilds("xetile.store_tile")
    def _store_tile(self, view: Any) -> list[ir.Value]:
        tile, stored = Tile.of(view.tile), self.one(view.value)
        if tile.column_major:
            stored = vector.transpose(vector_type(tile.shape[::-1], tile.element), stored, [1, 0])
        xegpu.store_nd(stored, self.get(view.tile)[0], **VC, **hints(view))
        return []

    # Elements at addresses of their own.

    @rebuilds("xetile.load")
    def _load(self, view: Any) -> list[ir.Value]:
        pieces = []
        for desc, mask, _ in self._lanes(view):
            kind = vector_type(shape_of(mask), element_of(view.value))
            found = xegpu.load_gather(desc, mask, value=kind, **VC, **hints(view))
            padded = view.mask is not None and is_padded(view)
            pieces.append(arith.select(mask, found, _splat_like(found, view)) if padded else found)
        return [_joined(pieces, shape_of(view.value))]

    @rebuilds("xetile.store")
    def _store(self, view: Any) -> list[ir.Value]:
        for (desc, mask, _), (part, _) in zip(self._lanes(view), _parts(self.one(view.value)), strict=True):
            xegpu.store_scatter(part, desc, mask, **VC, **hints(view))
        return []

    @rebuilds("xetile.atomic_rmw")
    def _atomic(self, view: Any) -> list[ir.Value]:
        line = _line(self.one(view.value))
        expected = None if view.expected is None else _line(self.one(view.expected))
        pieces, at = [], 0
        for desc, mask, lanes in self._lanes(view):
            part, wanted = (None if v is None else cut(v, [at], [lanes]) for v in (line, expected))
            pieces.append(xegpu.atomic_rmw(view.kind, part, desc, mask, wanted, **VC))
            at += lanes
        return [_joined(pieces, shape_of(view.value))]

    def _lanes(self, view: Any) -> Iterator[tuple[ir.Value, ir.Value, int]]:
        """(descriptor, mask, lanes) of the messages that access the elements of a tile."""
        form, held = self.forms.tile(view.tile), self.get(view.tile)
        if not form.tile.scattered:
            yield from self._elements(form, *self._place(form, held))
            return
        masks = _parts(None if view.mask is None else self.one(view.mask), form.tile.shape)
        for desc, (mask, lanes) in zip(held, masks, strict=True):
            yield desc, mask, lanes

    @staticmethod
    def _elements(
        form: TileForm, matrix: Matrix, place: tuple[Index, Index]
    ) -> Iterator[tuple[ir.Value, ir.Value, int]]:
        """Likewise of a block: a descriptor of the elements of several rows."""
        tile, (by_row, by_column) = form.tile, matrix.strides
        start = add(add(multiply(place[0], by_row), multiply(place[1], by_column)), matrix.lead)
        for first, lanes in scattered_lanes(math.prod(tile.shape), max(LANES)):
            row, column = divmod(first, tile.shape[1])
            # Rows and columns are counted from those of the first lane, so that messages have vectors in common.
            rows, across = zip(*(divmod(column + i, tile.shape[1]) for i in range(lanes)))
            across = tuple(c - column for c in across)
            begin = add(start, add(multiply(by_row, row), multiply(by_column, column)))
            offsets = _splat(begin, lanes)
            if isinstance(by_row, int) and isinstance(by_column, int):
                offsets = arith.addi(offsets, _dense([r * by_row + c * by_column for r, c in zip(rows, across)]))
            else:
                for numbers, stride in ((rows, by_row), (across, by_column)):
                    offsets = arith.addi(offsets, arith.muli(_dense(numbers), _splat(stride, lanes)))
            desc = xegpu.create_tdesc(matrix.source, offsets, tdesc=scattered_desc(tile, lanes).to_ir(), **VC)
            mask = None
            limits = zip((rows, across), place, (row, column), matrix.extents) if not form.in_bounds else ()
            for numbers, at, by, extent in limits:
                # Unsigned, so that what lies before the matrix is outside too.
                here = arith.addi(_dense([n + by for n in numbers]), _splat(at, lanes))
                below = arith.cmpi(arith.CmpIPredicate.ult, here, _splat(extent, lanes))
                mask = below if mask is None else arith.andi(mask, below)
            yield desc, _all(lanes) if mask is None else mask, lanes

    # Vectors.

    @rebuilds("xetile.tile_mma")
    def _mma(self, view: TileMmaOp) -> list[ir.Value]:
        a, b = self.one(view.a), self.one(view.b)
        acc = None if view.c is None else self.one(view.c)
        if view.b not in self._vnni:
            pack = vnni_factor(bit_width(element_of(b)))
            depth = -(-shape_of(b)[0] // max(pack, 1)) * max(pack, 1)
            a, b = _zero_padded(a, (shape_of(a)[0], depth)), _zero_padded(b, (depth, shape_of(b)[1]))
            b = _vnni(b, pack)
        return [xegpu.dpas(a, b, acc, result=view.d.type, **VC)]

    @rebuilds("xetile.convert_layout")
    def _convert(self, view: Any) -> list[ir.Value]:
        return self.get(view.value)

    @rebuilds("xetile.reduction")
    def _reduction(self, view: Any) -> list[ir.Value]:
        return [reduce(view, self.one(view.value))]

    @rebuilds("xetile.broadcast")
    def _broadcast(self, view: Any) -> list[ir.Value]:
        return [broadcast(view, self.one(view.value))]

    @rebuilds("xetile.transpose")
    def _transpose(self, view: Any) -> list[ir.Value]:
        held, result = self.one(view.value), view.operation.results[0]
        if view.permutation == (0, 1):
            return [held]
        if view.value not in self._transposed:
            return [vector.transpose(result.type, held, [1, 0])]
        if view.value in self._vnni:
            self._vnni.add(result)
        return [held]


def hints(view: Any) -> dict[str, Any]:
    """The cache hints of an op, as arguments of those that it becomes."""
    return {name: getattr(view, name) for name in ("l1_hint", "l2_hint", "l3_hint")}


def _vnni(b: ir.Value, pack: int) -> ir.Value:
    """A matrix in VNNI layout, made so in registers."""
    if pack <= 1:
        return b
    (rows, columns), element = shape_of(b), element_of(b)
    apart = vector.shape_cast(vector_type((rows // pack, pack, columns), element), b)
    return vector.transpose(vector_type((rows // pack, columns, pack), element), apart, [0, 2, 1])


def _zero_padded(given: ir.Value, shape: tuple[int, int]) -> ir.Value:
    """A matrix with zeros behind its rows and columns."""
    if shape_of(given) == shape:
        return given
    return put(given, zero(vector_type(shape, element_of(given))), [0, 0])


def _parts(given: ir.Value | None, shape: Sequence[int] = ()) -> list[tuple[ir.Value, int]]:
    """The elements of a vector that each message of a scattered tile has; for none, a mask of `shape` of ones."""
    if given is None:
        return [(_all(lanes), lanes) for _, lanes in scattered_lanes(math.prod(shape))]
    line = _line(given)
    return [(cut(line, [at], [lanes]), lanes) for at, lanes in scattered_lanes(*shape_of(line))]


def _line(given: ir.Value) -> ir.Value:
    """A vector in one dimension."""
    shape = shape_of(given)
    return given if len(shape) == 1 else vector.shape_cast(vector_type((math.prod(shape),), element_of(given)), given)


def _joined(pieces: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """Lines one after the other, as a vector of this shape."""
    whole, element = pieces[0], element_of(pieces[0])
    if len(pieces) > 1:
        whole, at = zero(vector_type((math.prod(shape),), element)), 0
        for piece in pieces:
            whole = put(piece, whole, [at])
            at += shape_of(piece)[0]
    return whole if len(shape) == 1 else vector.shape_cast(vector_type(shape, element), whole)


def _dense(numbers: Sequence[int]) -> ir.Value:
    """A constant vector of indices."""
    kind = vector_type((len(numbers),), "index")
    if len(set(numbers)) == 1:
        return constant(kind, str(numbers[0]))
    return arith.constant(kind, ir.Attribute.parse(f"dense<[{', '.join(map(str, numbers))}]> : {kind}"))


def _splat(number: Index, lanes: int) -> ir.Value:
    kind = vector_type((lanes,), "index")
    return constant(kind, str(number)) if isinstance(number, int) else vector.broadcast(kind, number)


def _all(lanes: int) -> ir.Value:
    return constant(vector_type((lanes,), "i1"), "true")


def _splat_like(given: ir.Value, view: Any) -> ir.Value:
    """The vector of an op's `padding`, of a vector's type."""
    return arith.constant(given.type, number_attribute(given.type, number_of(view.padding)))
