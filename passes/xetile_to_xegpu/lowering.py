"""The rebuilding of a kernel with descriptors for tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir
from mlir.dialects import vector
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import TdescAttr, TensorDesc
from xegpu_py.dialects.xetile import InitTileOp, Tile, TileMmaOp
from xegpu_py.passes.xetile.expansion import Expansion, fail, rebuilds
from xegpu_py.passes.xetile.vectors import cut, element_of, shape_of, vector_type
from xegpu_py.passes.xetile_to_xegpu.elements import VC, Elements, hints
from xegpu_py.passes.xetile_to_xegpu.forms import (
    PACKED_BITS,
    Forms,
    LoadForm,
    TileForm,
    Way,
    is_padded,
)
from xegpu_py.passes.xetile_to_xegpu.matrices import (
    UNALIGNED,
    Matrix,
    Number,
    add,
    factor,
    facts_of,
    matrix_of,
    value,
)
from xegpu_py.passes.xetile_to_xegpu.reductions import broadcast, reduce

from xegpu_py.ir.builtin import bit_width
from xegpu_py.target import Target


class Lowering(Expansion):
    """Lowers one kernel."""

    def __init__(self, func: ir.Operation, target: Target) -> None:
        super().__init__(func)
        self.target = target
        self.forms = Forms(func, target)
        self._matrices: dict[int, Matrix] = {}
        self._loads: dict[ir.Value, LoadForm] = {}
        self._packed: set[ir.Value] = set()
        self._unaligned = unaligned_arguments(func)
        for form in self.forms.tiles():
            form.way = self._way(form)

    def _way(self, form: TileForm) -> Way:
        """How the tiles of a class are accessed."""
        tile = form.tile
        if tile.scattered:
            return Way.SCATTERED
        if not form.roots:
            where = (form.loads + form.stores + form.atomics + form.updates or [self.func])[0]
            fail(
                where,
                "has a tile that comes from outside of the kernel",
                "make the tile once, and move it by xetile.update_tile_offset",
            )
        size = tile.bits // 8
        if form.atomics:
            return Way.ELEMENTS
        if tile.attr.memory_space:
            plain = form.in_bounds and not form.merged and not tile.column_major
            whole = plain and self._aligned_lines(form, form.known()[1][0])
            return Way.LINES if whole else Way.ELEMENTS
        limits = self.target.block2d
        rows, columns = form.memory_block
        trusted = not any(self._is_unaligned(r.operands[0]) for r in form.roots)
        places = [r.opview.offsets[-2 if tile.column_major else -1] for r in form.roots]
        moves = [u.opview.offsets[0 if tile.column_major else 1] for u in form.updates]
        steps = [n if trusted or isinstance(n, int) else factor(n) for n in (*places, *moves)]
        odd = any(isinstance(n, int) and n * size % 4 for n in steps)
        fits = (
            limits is not None
            and not any(facts_of(r.opview).misfit(limits, size, tile.column_major, trusted) for r in form.roots)
            and not odd
            and rows <= limits.load_height
            and columns * size <= limits.row_bytes
            and columns * size % 4 == 0
        )
        return Way.BLOCK if fits else Way.ELEMENTS

    def _is_unaligned(self, source: ir.Value) -> bool:
        """Whether what is not known of a memref, or address, may not be taken to be aligned."""
        if not self._unaligned:
            return False
        while not isinstance(source.owner, ir.Block) and source.owner.operation.name.startswith("memref."):
            if not source.owner.operation.operands:
                return False
            source = source.owner.operation.operands[0]
        if not isinstance(source.owner, ir.Block) or source.owner != self.func.regions[0].blocks[0]:
            # It comes out of control flow, or is computed.
            return True
        return ir.BlockArgument(source).arg_number in self._unaligned

    @staticmethod
    def _aligned_lines(form: TileForm, pitch: int | None) -> bool:
        """Whether each row of a tile in shared local memory begins at a multiple of 4 bytes, and ends at one."""
        size = form.tile.bits // 8
        root = form.roots[0].opview
        columns: list[Number] = [root.offsets[-1], *(u.opview.offsets[1] for u in form.updates)]
        steps = [factor(n) for n in columns] + [form.tile.shape[1]]
        return pitch is not None and all(n * size % 4 == 0 for n in (*steps, pitch))

    def _desc(self, form: TileForm) -> TensorDesc:
        """The descriptor of a tile that is accessed by block messages."""
        rows, columns = form.memory_block
        return TensorDesc((rows, columns // form.array), form.tile.element, TdescAttr(array_length=form.array))

    def types(self, value: ir.Value) -> list[ir.Type]:
        if not Tile.accepts(str(value.type)):
            return [value.type]
        form = self.forms.tile(value)
        if form.way == Way.SCATTERED:
            return Elements.descriptor_types(form.tile)
        block = form.way == Way.BLOCK
        index = ir.IndexType.get()
        found = [self._desc(form).to_ir()] if block else []
        if block and not form.needs_place:
            return found
        found += [index] * 2
        if form.merged:
            found += [] if block else [form.address]
            found += [index] * sum(known.count(None) for known in self._needed(form))
        return found

    @staticmethod
    def _needed(form: TileForm) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
        """The extents and strides of merged tiles' matrices that accesses need; None for those that vary."""
        extents, strides = form.known()
        return extents, () if form.way == Way.BLOCK else strides

    def _held(self, form: TileForm, matrix: Matrix, offsets: Sequence[Number]) -> list[ir.Value]:
        """What stands for a tile: its descriptor, its place, and what there is to know of the matrix if it varies."""
        block = form.way == Way.BLOCK
        found = [self._descriptor(form, matrix, offsets)] if block else []
        if block and not form.needs_place:
            return found
        found += [value(n) for n in offsets]
        if form.merged:
            found += [] if block else [matrix.address()]
            for known, here in zip(self._needed(form), (matrix.extents, matrix.strides)):
                found += [value(n) for k, n in zip(known, here) if k is None]
        return found

    def _elements(self, form: TileForm, held: Sequence[ir.Value]) -> Elements:
        """What `_held` has made, once more."""
        if not form.merged:
            row, column = held[-2:]
            return Elements(form.tile, self._matrices[id(form)], (row, column), form.in_bounds)
        block = form.way == Way.BLOCK
        row, column, *more = held[block:]
        source = held[0] if block else more.pop(0)
        rest = iter(more)
        extents, strides = ([next(rest) if n is None else n for n in known] for known in self._needed(form))
        matrix = Matrix(source, (extents[0], extents[1]), (strides[0], strides[1]) if strides else (0, 1))
        return Elements(form.tile, matrix, (row, column), form.in_bounds)

    @rebuilds("xetile.init_tile")
    def _init_tile(self, view: InitTileOp) -> list[ir.Value]:
        form = self.forms.tile(view.tile)
        if form.way == Way.SCATTERED:
            return Elements.descriptors(self.one(view.source), self.one(view.indices), form.tile)
        matrix = matrix_of(view, self.one)
        if not form.merged:
            self._matrices[id(form)] = matrix
        return self._held(form, matrix, [v if isinstance(v, int) else self.one(v) for v in view.offsets[-2:]])

    def _descriptor(self, form: TileForm, matrix: Matrix, offsets: Sequence[Number]) -> ir.Value:
        turned = form.tile.column_major
        kind = matrix.memref
        extents, strides, places = matrix.extents, matrix.strides, list(offsets)
        if turned:
            extents, strides, places = extents[::-1], strides[::-1], places[::-1]
        given: dict[str, Any] = {}
        source = matrix.source
        if kind is not None and kind.rank == 2 and not turned:
            if matrix.given:
                given = {"shape": list(matrix.extents), "strides": list(matrix.strides)}
        elif kind is not None:
            source = Matrix(source, extents, strides, matrix.lead).as_2d()
        else:
            given = {"shape": list(extents), "strides": list(strides)}
        made: ir.Value = xegpu.create_nd_tdesc(source, places, tdesc=self._desc(form).to_ir(), **given, **VC)
        return made

    @rebuilds("xetile.update_tile_offset")
    def _update(self, view: Any) -> list[ir.Value]:
        form = self.forms.tile(view.tile)
        held = self.get(view.tile)
        if form.way == Way.SCATTERED:
            return Elements.moved(held, self.one(view.indices), form.tile)
        offsets: list[Number] = [v if isinstance(v, int) else self.one(v) for v in view.offsets]
        made: list[ir.Value] = []
        if form.way == Way.BLOCK:
            by = offsets[::-1] if form.tile.column_major else offsets
            made.append(xegpu.update_nd_offset(held[0], by, result=held[0].type, **VC))
            held = held[1:]
        return [*made, *(value(add(a, b)) for a, b in zip(held, offsets)), *held[2:]]

    @rebuilds("xetile.prefetch_tile")
    def _prefetch(self, view: Any) -> list[ir.Value]:
        form = self.forms.tile(view.tile)
        if form.tile.attr.memory_space:
            return []
        if form.way == Way.BLOCK:
            xegpu.prefetch_nd(self.get(view.tile)[0], **VC, **hints(view))
        elif form.way == Way.SCATTERED:
            for desc in self.get(view.tile):
                xegpu.prefetch(desc, **VC, **hints(view))
        return []

    @rebuilds("xetile.load_tile")
    def _load_tile(self, view: Any) -> list[ir.Value]:
        form = self.forms.tile(view.tile)
        result = view.operation.results[0]
        held = self.get(view.tile)
        if form.way != Way.BLOCK:
            elements = self._elements(form, held)
            found = elements.load_lines() if form.way == Way.LINES else elements.load(view)
            return [found]
        load = self.forms.load(view.operation)
        shape = form.memory_block
        if load.turned != form.tile.column_major:
            found, packed = self._load_turned(form, held[0], view, load.packed)
            if packed:
                self._packed.add(result)
            if load.turned:
                self._loads[result] = load
            elif is_padded(view) and not form.in_bounds:
                found = self._elements(form, held).pad(view, found, form.before)
            return [found]
        packed = load.packed and not form.tile.column_major
        array = form.array
        pack = PACKED_BITS // form.tile.bits if packed else 1
        width = shape[1] // array
        listed = (shape[0] // pack, width, pack) if packed else (shape[0], width)
        if load.array == array and array > 1:
            listed = (array, *listed)
        elif array > 1:
            listed = (listed[0], shape[1], *listed[2:])
        kind = vector_type(listed, form.tile.element)
        vnni = {"vnni_axis": 0} if packed else {}
        found = xegpu.load_nd(held[0], value=kind, **vnni, **VC, **hints(view))
        if packed or load.array > 1:
            self._loads[result] = LoadForm(load.array if len(listed) > 2 + packed else 1, packed)
        if packed:
            self._packed.add(result)
        if form.tile.column_major and not load.turned:
            found = vector.transpose(vector_type(shape[::-1], form.tile.element), found, [1, 0])
        elif load.turned:
            self._loads[result] = load
        if is_padded(view) and not form.in_bounds:
            found = self._elements(form, held).pad(view, found, form.before)
        return [found]

    def _load_turned(self, form: TileForm, desc: ir.Value, view: Any, packed: bool) -> tuple[ir.Value, bool]:
        """A block loaded with rows and columns changed, and whether it is in VNNI layout."""
        tile = form.tile
        rows, columns = form.memory_block
        unit = max(tile.bits, PACKED_BITS)
        pack = unit // tile.bits
        assert self.target.block2d is not None
        width, height = self.target.block2d.transposed[unit]
        if columns % pack or columns // pack > width or rows > height:
            kind = vector_type((rows, columns), tile.element)
            plain = xegpu.load_nd(desc, value=kind, **VC, **hints(view))
            return vector.transpose(vector_type((columns, rows), tile.element), plain, [1, 0]), False
        bits = {"transpose_bit_width": unit} if pack > 1 else {}
        kind = vector_type((columns // pack, rows * pack), tile.element)
        found = xegpu.load_nd(desc, value=kind, transpose=[1, 0], **bits, **VC, **hints(view))
        if pack == 1:
            return found, False
        apart = vector.shape_cast(vector_type((columns // pack, rows, pack), tile.element), found)
        if packed:
            return apart, True
        lines = vector.transpose(vector_type((columns // pack, pack, rows), tile.element), apart, [0, 2, 1])
        return vector.shape_cast(vector_type((columns, rows), tile.element), lines), False

    @rebuilds("xetile.store_tile")
    def _store_tile(self, view: Any) -> list[ir.Value]:
        form = self.forms.tile(view.tile)
        held = self.get(view.tile)
        stored = self.one(view.value)
        if form.way != Way.BLOCK:
            elements = self._elements(form, held)
            if form.way == Way.LINES:
                elements.store_lines(stored)
            else:
                elements.store(view, stored)
            return []
        if form.tile.column_major:
            stored = vector.transpose(vector_type(form.memory_block, form.tile.element), stored, [1, 0])
        xegpu.store_nd(stored, held[0], **VC, **hints(view))
        return []

    @rebuilds("xetile.load")
    def _load(self, view: Any) -> list[ir.Value]:
        mask = None if view.mask is None else self.one(view.mask)
        return [Elements.gather(self.get(view.tile), mask, view, Tile.of(view.tile))]

    @rebuilds("xetile.store")
    def _store(self, view: Any) -> list[ir.Value]:
        mask = None if view.mask is None else self.one(view.mask)
        Elements.scatter(self.get(view.tile), self.one(view.value), mask, view, Tile.of(view.tile))
        return []

    @rebuilds("xetile.atomic_rmw")
    def _atomic(self, view: Any) -> list[ir.Value]:
        form = self.forms.tile(view.tile)
        given = self.one(view.value)
        if form.way == Way.SCATTERED:
            mask = None if view.mask is None else self.one(view.mask)
            return [Elements.update(self.get(view.tile), given, mask, view, form.tile)]
        return [self._elements(form, self.get(view.tile)).atomic(view, given)]

    @rebuilds("vector.extract_strided_slice")
    def _slice(self, view: Any) -> list[ir.Value] | None:
        """A slice of what was loaded as an array of blocks, or in VNNI layout."""
        load = self._loads.get(view.operation.operands[0])
        if load is None or load.turned:
            return None
        source = self.one(view.operation.operands[0])
        at, size = (
            [ir.IntegerAttr(a).value for a in ir.ArrayAttr(view.operation.attributes[n])] for n in ("offsets", "sizes")
        )
        if load.array > 1:
            block = shape_of(source)[1:]
            which = at[1] // block[1]
            source = vector.extract(source, [], [which])
            at[1] = 0
        if load.packed:
            self._packed.add(view.operation.results[0])
            pack = PACKED_BITS // Tile.of(view.operation.operands[0].owner.operation.operands[0]).bits
            return [cut(source, [at[0] // pack, at[1], 0], [size[0] // pack, size[1], pack])]
        return [cut(source, at, size)]

    @rebuilds("xetile.tile_mma")
    def _mma(self, view: TileMmaOp) -> list[ir.Value]:
        a, b = self.one(view.a), self.one(view.b)
        acc = None if view.c is None else self.one(view.c)
        if view.b not in self._packed:
            b = packed(b)
        rows, columns = shape_of(view.d)
        if rows > 8 or columns != self.target.dpas_exec_size:
            fail(
                view.operation,
                f"of {rows}x{columns} is no dpas of target {self.target.name}, which has up to 8 rows and "
                f"{self.target.dpas_exec_size} columns",
                "run xetile-blocking first",
            )
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
        held = self.one(view.value)
        load = self._loads.get(view.value)
        if view.permutation == (0, 1):
            return [held]
        if load is not None and load.turned:
            if view.value in self._packed:
                self._packed.add(view.operation.results[0])
            return [held]
        return [vector.transpose(view.operation.results[0].type, held, [1, 0])]


def unaligned_arguments(func: ir.Operation) -> list[int]:
    """The numbers of a kernel's arguments that are not taken to be aligned.

    Raises:
        DiagnosticError: at the kernel, if its attribute is no list of such numbers.
    """
    if UNALIGNED not in func.attributes:
        return []
    given = func.attributes[UNALIGNED]
    count = len(func.regions[0].blocks[0].arguments)
    numbers = list(ir.DenseI64ArrayAttr(given)) if isinstance(given, ir.DenseI64ArrayAttr) else [-1]
    if not all(0 <= n < count for n in numbers):
        fail(func, f"{UNALIGNED} = {given} is no list of its {count} arguments' numbers, such as array<i64: 0, 2>")
    return numbers


def packed(b: ir.Value) -> ir.Value:
    """A matrix in VNNI layout, made so in registers."""
    bits, (rows, columns), element = bit_width(element_of(b)), shape_of(b), element_of(b)
    if bits >= PACKED_BITS:
        return b
    pack = PACKED_BITS // bits
    apart = vector.shape_cast(vector_type((rows // pack, pack, columns), element), b)
    return vector.transpose(vector_type((rows // pack, columns, pack), element), apart, [0, 2, 1])
