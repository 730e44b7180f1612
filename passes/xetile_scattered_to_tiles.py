"""`xetile-scattered-to-tiles`: loads and stores of scattered elements that form a block of a matrix become tiles."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith
from msgspec import Struct, field

from xegpu_py.dialects.xetile import InitTileOp, LoadOp, LoadTileOp, StoreOp, StoreTileOp, Tile, TileAttr, WgMap
from xegpu_py.dialects.xetile.ops import given_map
from xegpu_py.ir.control_flow import STRUCTURED
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.affine_analysis import (
    ZERO,
    IndexForm,
    IndexForms,
    Polynomial,
    conditions,
    constant,
    constant_part,
    divide_polynomial,
    plus,
    product,
    scalar_polynomial,
)
from xegpu_py.passes.analysis.block_surfaces import argument_of
from xegpu_py.passes.analysis.ir_queries import (
    bits_of,
    constant_of,
    defining_op,
    is_used,
    sees,
    shape_of,
    target_for,
    tile_kernels,
)
from xegpu_py.passes.analysis.launch_assumptions import (
    ASSUMED_32_BIT,
    ASSUMED_MULTIPLES,
    WINDOWS,
    AssumedMultiple,
    likely_multiples,
    unaligned_arguments,
)
from xegpu_py.passes.analysis.target_messages import hints_of
from xegpu_py.passes.rewriting.builders import (
    Index,
    fold_index,
    index,
    multiply,
    reinterpret_cast,
    replace_op,
    shape_cast,
)
from xegpu_py.target.message_rules import Block2DLimits


@register_pass("xetile-scattered-to-tiles")
class XeTileScatteredToTiles(Pass):
    """Replace scattered accesses of blocks by tiles.

    The indices of the elements must be linear in their position, with a factor of 1 along one dimension. The
    comparisons of positions with bounds, of which the mask must consist, become the extents of the matrix. Elements
    that 2D block messages cannot address for certain, because of their alignment, stay scattered, as do tiles with a
    map, atomic ops, and shared local memory. A map of indices of one dimension becomes that of the tile; elements
    whose indices of two dimensions have one stay scattered. An index of 64 bits counts as one that does not
    overflow, and one that may overflow a narrower type has no form. Positions
    modulo a number that is an argument are consecutive if the number is a multiple of how many there are. This is
    assumed of arrays that are not in `xegpu.unaligned`, and noted in the kernel's attribute `xetile.divided`; calls
    check it. So are multiples of arguments by which the first element of a matrix is aligned, those of
    `xetile.likely_multiples` that are the pitch or length of a single row, that arguments by which positions are
    multiplied or divided are positive, and that sums and products of arguments, such as a stride times a constant, fit
    32 bits, which the attribute `xetile.narrow` notes.

        %i = arith.addi %first, %step : vector<256xindex>
        %m = arith.cmpi slt, %i, %bound : vector<256xindex>
        %t = xetile.init_tile %A, %i : memref<?xf32>, vector<256xindex>
          -> !xetile.tile<256xf32, #xetile.tile_attr<scattered = true>>
        %v = xetile.load %t, %m : !xetile.tile<256xf32, #xetile.tile_attr<scattered = true>>, vector<256xi1>
          -> vector<256xf32>

    becomes, where `%first` is splat of `%x`, and `%bound` of `%n`,

        %M = memref.reinterpret_cast %A to offset: [0], sizes: [1, %n], strides: [%pitch, 1]
        %t = xetile.init_tile %M[0, %x] : ... -> !xetile.tile<1x256xf32>
        %w = xetile.load_tile %t : !xetile.tile<1x256xf32> -> vector<1x256xf32>
        %v = vector.shape_cast %w : vector<1x256xf32> to vector<256xf32>
    """

    target: str = ""

    def run(self, op: ir.Operation) -> None:
        for func in tile_kernels(op):
            limits = target_for(func, self.target).block2d
            if limits is not None:
                _Blocks(func, limits).run()


class _Bounds(Struct):
    """Bounds that a mask gives for the positions in one dimension.

    Attributes:
        above: numbers that the positions are below.
        below: numbers whose sum with the positions is not negative.
    """

    above: list[Polynomial] = field(default_factory=list)
    below: list[Polynomial] = field(default_factory=list)


class _MatrixBlock(Struct):
    """A block of a matrix in a buffer. Along a row, the elements are consecutive.

    Attributes:
        shape: its rows and columns.
        lead: the index of the matrix's first element.
        pitch: elements from one row of the matrix to the next; none for a matrix of one row.
        row, column: where the block begins.
        rows, columns: the matrix's extents; of several the least.
        turned: whether rows of memory are the second dimension of the vector.
        multiples: of which scalars it is assumed that they are multiples of numbers.
        fits: the scalars of 32 bits that are assumed not to overflow.
        wg_map: the map of the tile, if its indices have one.
    """

    shape: tuple[int, int]
    lead: Polynomial
    pitch: Polynomial
    row: Polynomial
    column: Polynomial
    rows: list[Polynomial]
    columns: list[Polynomial]
    turned: bool
    multiples: dict[int, int]
    wg_map: WgMap | None = None
    fits: set[int] = field(default_factory=set)


class _Blocks:
    """Replaces the scattered accesses of one kernel."""

    def __init__(self, func: ir.Operation, limits: Block2DLimits) -> None:
        self._func, self._limits = func, limits
        self._forms = IndexForms(unwraps=True)
        self._unaligned = {*unaligned_arguments(func, "xetile.unaligned"), *unaligned_arguments(func)}
        self._divided: set[AssumedMultiple] = set()
        self._narrow: set[tuple[int, ...]] = set()
        self._windows = WINDOWS in func.attributes
        self._likely = likely_multiples(func)

    def run(self) -> None:
        blocks = []
        for op in walk(self._func):
            view: Any = op.opview
            if isinstance(view, (LoadOp, StoreOp)):
                init = defining_op(view.tile)
                if init is not None and isinstance(init.opview, InitTileOp):
                    block = self._block(init.opview, view.mask)
                    if block is not None and self._assume(init.opview.source, block):
                        blocks.append((op, init, block))
        for op, init, block in blocks:
            with ir.InsertionPoint(op), op.location:
                self._replace(op, init.opview, block)
        for tile in {init.results[0] for _, init, _ in blocks}:
            if not is_used(tile):
                tile.owner.erase()

        if self._divided:
            self._func.attributes[ASSUMED_MULTIPLES] = ir.DenseI64ArrayAttr.get(
                [n for one in sorted(self._divided) for n in one]
            )
        if self._narrow:
            sums = [ir.DenseI64ArrayAttr.get(list(one)) for one in sorted(self._narrow)]
            self._func.attributes[ASSUMED_32_BIT] = ir.ArrayAttr.get(sums)

    def _assume(self, source: ir.Value, block: _MatrixBlock) -> bool:
        """Note what a block assumes of the arguments of calls; whether a call can say that it does not hold."""
        numbers = [block.lead, block.row, block.column, *block.rows, *block.columns]
        scalars = {s for p in numbers for m in p for s in m if s in self._forms.assumed}
        array = argument_of(source)
        multiples = [(self._forms.representative(scalar), count) for scalar, count in block.multiples.items()]
        for scalar in scalars:
            number, count, positive = self._forms.assumed[scalar]
            multiples += [(self._forms.representative(s), 1) for s in positive]
            if number is not None:
                multiples.append((number, count))
        for number, count in multiples:
            giver = self._giver(number)
            if array is None or array in self._unaligned or giver is None:
                return False
            self._divided.add((array, *giver, count))
        for scalar in block.fits:
            sum_ = self._forms.unwrapped({(scalar,): 1})
            givers = [self._giver(self._forms.representative(s)) for m in sum_ for s in m]
            if array is None or array in self._unaligned or None in givers:
                return False
            remaining = iter(givers)
            terms = [[n, len(m), *(d for _ in m for d in next(remaining) or ())] for m, n in sum_.items()]
            self._narrow.add((array, *(n for term in terms for n in term)))
        if block.shape[0] == 1 and array is not None and array not in self._unaligned:
            # Pitch and length of one row, which xegpu-expand-rows makes several.
            for multiple in map(self._likely_multiple, (block.pitch, *block.columns)):
                if multiple and multiple[1] % _granule(source) == 0:
                    self._divided.add((array, multiple[0], -1, multiple[1]))
        return True

    def _likely_multiple(self, number: Polynomial) -> tuple[int, int] | None:
        """The argument that a number is, and of what calls pass multiples, if that is known."""
        if len(number) != 1:
            return None
        ((monomial, factor),) = number.items()
        giver = self._giver(self._forms.representative(*monomial)) if factor == len(monomial) == 1 else None
        is_known = giver is not None and giver[1] < 0 and giver[0] in self._likely
        return (giver[0], self._likely[giver[0]]) if giver and is_known else None

    def _giver(self, number: ir.Value) -> tuple[int, int] | None:
        """The argument that a number is, and -1, or the array of which it is an extent, and the dimension."""
        producer = defining_op(number)
        if producer is not None and producer.name != "memref.dim":
            return None
        dim = constant_of(producer.operands[1]) if producer is not None else -1
        giver = argument_of(producer.operands[0] if producer is not None else number)
        return None if giver is None or dim is None else (giver, dim)

    # The block and the matrix of an access.

    def _block(self, init: Any, mask: ir.Value | None) -> _MatrixBlock | None:
        tile = Tile.of(init.tile)
        if tile.attr != TileAttr(scattered=True) or tile.bits < 8 or not isinstance(init.source.type, ir.MemRefType):
            return None
        if ir.MemRefType(init.source.type).get_strides_and_offset()[1] != 0:
            return None
        affine_form = self._forms.of(init.indices)
        if affine_form is None:
            return None
        fits: set[int] = set()
        form = self._forms.without_overflow(affine_form, fits)
        bounds, maps = self._bounds(mask, form.shape, fits), _maps_of(init.indices)
        if bounds is None or len(maps) > 1 or (maps and len(form.shape) > 1):
            return None
        block = self._of_form(form, bounds, tile, maps)
        if block is not None:
            block.fits = fits
        return block

    def _of_form(self, form: IndexForm, bounds: Sequence[_Bounds], tile: Tile, maps: set[WgMap]) -> _MatrixBlock | None:
        shape, steps = form.shape, [constant_part(s) for s in form.steps]
        if len(shape) == 1:
            block = self._of_rows((1, *shape), ZERO, form.start, bounds, tile) if steps == [1] else None
            if block is not None and maps:
                (wg_map,) = maps
                block.wg_map = WgMap((1, *wg_map.sg_layout), (1, *wg_map.sg_data))
            return block
        if steps[1] == 1 and shape[1] > 1:
            return self._of_rows(shape, form.steps[0], form.start, bounds, tile)
        if steps[0] == 1 and shape[0] > 1:
            block = self._of_rows(shape[::-1], form.steps[1], form.start, bounds[::-1], tile)
            if block is not None:
                block.turned = True
            return block
        return None

    def _bounds(self, mask: ir.Value | None, shape: Sequence[int], fits: set[int]) -> list[_Bounds] | None:
        """The bounds that a mask gives for rows and columns; None if it has another form."""
        limits = [_Bounds(), _Bounds()]
        for condition in conditions(self._forms, mask) if mask is not None else ():
            if condition is None:
                return None
            form = self._forms.without_overflow(condition, fits)
            steps = [constant_part(s) for s in form.steps]
            moving = [d for d, s in enumerate(steps) if s != 0]
            if len(moving) != 1:
                return None
            dim = moving[0]
            bounds = limits[dim + 2 - len(shape)]
            if steps[dim] == -1:
                bounds.above.append(form.start)
            elif steps[dim] == 1:
                bounds.below.append(plus(form.start, constant(-1)))
            else:
                return None
        return limits

    def _of_rows(
        self, shape: Sequence[int], step: Polynomial, start: Polynomial, bounds: Sequence[_Bounds], tile: Tile
    ) -> _MatrixBlock | None:
        """The block whose columns are consecutive, and whose rows are a step apart."""
        if shape[0] > 1:
            return self._split(shape, step, start, bounds, tile) if len(step) == 1 else None
        pitches = [ZERO, *(scalar_polynomial(s) for m in start for s in m)]
        blocks = [b for p in pitches if (b := self._split(shape, p, start, bounds, tile)) is not None]
        return min(blocks, key=lambda b: len(b.multiples), default=None)

    def _split(
        self, shape: Sequence[int], pitch: Polynomial, start: Polynomial, bounds: Sequence[_Bounds], tile: Tile
    ) -> _MatrixBlock | None:
        """The block for a pitch: the terms of the first index become a row, a column, and the begin of a matrix.

        Positions that are compared with 0 say which row and column these are.
        """
        forms, (rows, columns), size = self._forms, bounds, tile.bits // 8
        column = ZERO
        if columns.above:
            bound, whole = columns.above[0], not pitch and forms.depends_on_arguments(plus(columns.above[0], start))
            # Constants that are added to positions are subtracted from their bounds.
            column = start if whole else {m: n for m, n in start.items() if bound.get(m, 0) == -n}
        if columns.below:
            column = columns.below[0]
        rest = plus(start, column, -1)
        row, lead = divide_polynomial(rest, pitch) if pitch else (ZERO, rest)
        if rows.below and pitch:
            row = rows.below[0]
            lead = plus(rest, product(row, pitch), -1)
        elif rows.above and pitch and not forms.depends_on_arguments(plus(rows.above[0], row)):
            # Rows of earlier matrices are no part of their bounds.
            row = {m: n for m, n in row.items() if rows.above[0].get(m, 0) == -n}
            lead = plus(rest, product(row, pitch), -1)
        widths = [plus(n, column) for n in columns.above] or [plus(column, constant(shape[1]))]
        heights = [plus(n, row) for n in rows.above] or [plus(row, constant(shape[0]))]
        extents = [*widths, *(heights if rows.above else []), pitch]
        unlike = any(n != column for n in columns.below) or any(n != row for n in rows.below)
        multiples = self._multiples(lead, size)
        if (
            unlike
            or multiples is None
            or not all(map(forms.depends_on_arguments, extents))
            or not self._is_addressed(widths, pitch, column, size)
        ):
            return None
        # Such a matrix may have no rows and begin anywhere; calls see it if it depends on nothing but their arguments.
        if rows.below and not forms.depends_on_arguments(row):
            positive = self._positive(row)
            if positive is None:
                return None
            multiples = {**positive, **multiples}
        # Before the first row and column a matrix has no elements, but the buffer may have some.
        for position, is_known, others in ((column, columns.below, row or lead), (row, rows.below, lead)):
            is_first = not others and not self._windows
            positive = {} if is_known or is_first or not position else self._positive(position)
            if positive is None:
                return None
            multiples = {**positive, **multiples}
        return _MatrixBlock((shape[0], shape[1]), lead, pitch, row, column, heights, widths, False, multiples)

    def _positive(self, p: Polynomial) -> dict[int, int] | None:
        """The arguments that must be positive for a polynomial not to be negative; None if it may be all the same."""
        positive: set[int] = set()
        return dict.fromkeys(positive, 1) if self._forms.is_nonnegative(p, positive) else None

    def _multiples(self, lead: Polynomial, size: int) -> dict[int, int] | None:
        """Of which arguments, such as strides of batches, which multiples align the matrix; None if none do."""
        unit = self._limits.base_alignment // math.gcd(self._limits.base_alignment, size)
        multiples: dict[int, int] = {}
        for m, n in lead.items():
            factor = unit // math.gcd(unit, self._forms.divisor({m: n}))
            if factor > 1:
                givers = [s for s in m if s not in self._forms.assumed and self._giver(self._forms.representative(s))]
                if not givers:
                    return None
                multiples[givers[-1]] = max(multiples.get(givers[-1], 1), factor)
        return multiples

    def _is_addressed(self, widths: Sequence[Polynomial], pitch: Polynomial, column: Polynomial, size: int) -> bool:
        """Whether messages can address the block, as far as it is known before the kernel is called."""
        limits, numbers = self._limits, [constant_part(n) for n in widths]
        width = None if None in numbers else min(n for n in numbers if n is not None)
        stride = constant_part(pitch) if pitch else None
        in_bytes = [None if n is None else n * size for n in (width, stride)]
        return (
            limits.surface_problem(in_bytes[0], None, in_bytes[1], None) is None
            and self._forms.divisor(column) * size % limits.column_granule == 0
        )

    # The access of a tile.

    def _replace(self, op: ir.Operation, init: Any, block: _MatrixBlock) -> None:
        view: Any = op.opview
        scattered = Tile.of(init.tile)
        source = self._matrix(op, init.source, block)
        offsets = [fold_index(self._forms.build(p, op)) for p in (block.row, block.column)]
        turned = block.turned and block.shape[0] > 1
        shape = block.shape[::-1] if turned else block.shape
        kind = Tile(shape, scattered.element, TileAttr(order=(0, 1) if turned else (1, 0), wg_map=block.wg_map))
        clipped = view.mask is not None
        tile = InitTileOp(source, offsets[::-1] if turned else offsets, tile=kind.to_ir(), clipped=clipped).tile
        if isinstance(view, StoreOp):
            StoreTileOp(shape_cast(view.value, shape), tile, **hints_of(view))
            op.erase()
            return
        value = LoadTileOp(tile, padding=view.padding, **hints_of(view)).value
        replace_op(op, shape_cast(value, shape_of(view.value)))

    def _matrix(self, op: ir.Operation, source: ir.Value, block: _MatrixBlock) -> ir.Value:
        """The matrix, made outside of the loops in which it is the same."""
        forms = self._forms
        symbols = {s for p in (block.lead, block.pitch, *block.rows, *block.columns) for m in p for s in m}
        while (parent := op.parent.operation).name in STRUCTURED and sees(parent, source):
            if any(forms.dominating_value(s, parent) is None for s in symbols):
                break
            op = parent
        with ir.InsertionPoint(op):
            rows, columns = (self._least(extents, op) for extents in (block.rows, block.columns))
            pitch = fold_index(forms.build(block.pitch, op)) if block.pitch else _rounded_up(columns, _granule(source))
            sizes, strides = [rows, columns], [pitch, 1]
            if block.turned and block.shape[0] > 1:
                sizes, strides = sizes[::-1], strides[::-1]
            return reinterpret_cast(source, forms.build(block.lead, op), sizes, strides)

    def _least(self, extents: Sequence[Polynomial], op: ir.Operation) -> Index:
        candidates = [self._forms.build(p, op) for p in extents]
        least = functools.reduce(lambda a, b: arith.minsi(index(a), index(b)), candidates)
        # A bound below the first position, such as a negative number of elements, leaves none.
        return least if all(map(self._forms.is_nonnegative, extents)) else arith.maxsi(index(least), index(0))


def _maps_of(indices: ir.Value) -> set[WgMap]:
    """The maps that ops give the values of which indices are computed."""
    maps, visited, pending = set[WgMap](), {indices}, [indices]
    while pending:
        value = pending.pop()
        wg_map, producer = given_map(value), defining_op(value)
        if wg_map is not None:
            maps.add(wg_map)
        elif producer is not None:
            more = {v for v in producer.operands if shape_of(v)} - visited
            visited |= more
            pending += more
    return maps


def _granule(memref: ir.Value) -> int:
    """The elements of 64 bytes."""
    return 512 // bits_of(ir.MemRefType(memref.type).element_type)


def _rounded_up(number: Index, granule: int) -> Index:
    if isinstance(number, int):
        return -(-number // granule) * granule
    more = arith.addi(number, index(granule - 1))
    return multiply(arith.divui(more, index(granule)), granule)
