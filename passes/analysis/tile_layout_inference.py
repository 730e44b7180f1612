"""Layout inference for tiles: the map of each tile and vector."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects.xetile import (
    AtomicRmwOp,
    BroadcastOp,
    ConvertLayoutOp,
    InitTileOp,
    ReductionOp,
    Tile,
    TileMmaOp,
    TransposeOp,
    UpdateTileOffsetOp,
    WgMap,
)
from xegpu_py.dialects.xetile.ops import (
    attached_map,
    given_map,
    mapped_subgroups,
    stated_subgroups,
    subgroups,
    subgroups_of,
)
from xegpu_py.dialects.xetile.types import TileAccess, TileLoad, TileStore
from xegpu_py.ir import element_movement
from xegpu_py.ir.builtin import MATRIX_PRODUCT, CombiningKind, call_with_types, is_intrinsic, is_print
from xegpu_py.ir.control_flow import STRUCTURED, UnionFind, carried, forwarded
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.element_movement import WHOLE, has_one_shape, permutation_of
from xegpu_py.ir.module import walk
from xegpu_py.layout import WgTiles
from xegpu_py.layout.maps import dealing_problem
from xegpu_py.passes.analysis.ir_queries import (
    attributes_of,
    bits_of,
    element_of,
    is_used,
    is_vector,
    shape_of,
)
from xegpu_py.passes.analysis.shuffle_distribution import LEAST_COLUMNS, SHUFFLE_OPS, even_map, part_size, shuffle_map
from xegpu_py.passes.analysis.sweeps import Sweeps
from xegpu_py.passes.rewriting.builders import (
    MOST_SUBGROUPS,
    broadcast,
    constant,
    create,
    extract,
    replace_op,
    shape_cast,
    with_shape,
)
from xegpu_py.passes.rewriting.tile_conversion import is_tile

# Inference of the maps of a workgroup's values from the maps in the IR.

ALIASED = "xetile.aliased"
"""The attribute of a kernel whose arguments may share memory, although each subgroup accesses parts of them."""

LEAST_PRODUCT_ROWS = 8
"""The least number of rows of a subgroup's part of a product: those of a dpas."""

_LONGEST_STEPS, _LEAST_DEPTH = 64, 4
"""The most fused multiplications and additions that a contraction becomes without a loop over K, and the least part of
K that an iteration adds."""


def has_maps(func: ir.Operation) -> bool:
    """Return whether a kernel contains any map, and therefore is at workgroup level."""
    return subgroups_of(func) is not None


def chooses_maps(func: ir.Operation) -> bool:
    """Return whether a kernel has no maps, but states a number of subgroups for which they are chosen."""
    return stated_subgroups(func) is not None and mapped_subgroups(func) is None


class Layouts:
    """The map of each vector and tile of a kernel. Values that control flow joins have the same map."""

    def __init__(self, func: ir.Operation) -> None:
        self._maps: dict[ir.Value, WgMap] = {}
        self._same: UnionFind[ir.Value] = UnionFind()
        self._ops = walk(func)
        for op in self._ops:
            groups = [values for _, values in forwarded(op)] if op.name in STRUCTURED else []
            if is_tile_choice(op):
                groups = [[*op.results, *list(op.operands)[1:]]]
            for values in groups:
                self._same.join(values)
        # The ops whose maps may follow from a class's map: sweeps visit them when the class gets it.
        self._related: dict[ir.Value, set[int]] = {}
        for number, op in enumerate(self._ops):
            for value in itertools.chain(op.operands, op.results, *carried(op)):
                self._related.setdefault(self._same.find(value), set()).add(number)
        self._forward_sweeps, self._backward_sweeps = Sweeps(len(self._ops)), Sweeps(len(self._ops), backward=True)
        for op in self._ops:
            self._seed(op)
        # Known maps are propagated forward to uses first, and backward to operands only after that.
        self._propagate()
        for value, wg_map in self._anchors(func):
            if self.put(value, wg_map):
                self._propagate()

    def _anchors(self, func: ir.Operation) -> Iterator[tuple[ir.Value, WgMap]]:
        """Values and their default maps, which apply if no other value determines a map, in order of priority.

        In a kernel with maps, products are divided by rows, then by columns: a layout never changes a value. Other
        vectors without a map are replicated in each subgroup, as are tiles that only store such vectors. In a kernel
        that states only the number of its subgroups, all values are divided: products first, then tiles, then vectors.
        Splats come last, since their users determine their maps, except ops on replicated vectors of any rank.
        """
        chosen = stated_subgroups(func) if chooses_maps(func) else None
        count = chosen or next((subgroups(wg_map) for wg_map in self._maps.values()), None)
        if not count:
            return
        products = [op.results[0] for op in self._ops if product_operands(op)]
        vectors = [value for op in sorted(self._ops, key=is_splat) if (value := _undetermined_value(op)) is not None]
        if not chosen:
            yield from ((value, _row_map(shape_of(value), count)) for value in products)
            for value in vectors:
                yield value, WgMap((count, *[1] * (len(_shape(value)) - 1)), _shape(value))
            return
        classes = value_classes(self._ops)
        rows, columns = _whole_rows_and_columns(self._ops, classes)
        for value in sorted(products, key=_descending_size):
            yield value, _product_map(shape_of(value), count, classes.find(value) in rows)
        tiles = {op.opview.tile: None for op in self._ops if isinstance(op.opview, TileAccess)}
        for value in (*sorted(tiles, key=_descending_size), *vectors):
            root = classes.find(value)
            down = root in columns - rows or (is_tile(value) and Tile.of(value).column_major)
            if len(_shape(value)) <= 2:
                yield value, even_map(_shape(value), count, down)

    def _propagate(self) -> None:
        while self._sweep(forward=True) or self._sweep(forward=False):
            pass

    def get(self, value: ir.Value) -> WgMap | None:
        """The map of a value."""
        return self._maps.get(self._same.find(value))

    def put(self, value: ir.Value, wg_map: WgMap | None) -> bool:
        """Set the map of a value if it has none and the map fits it; returns whether the map was set."""
        root = self._same.find(value)
        if wg_map is None or root in self._maps or wg_map.problem_for(_shape(value)):
            return False
        self._maps[root] = wg_map
        for number in self._related.get(root, ()):
            self._forward_sweeps.add(number)
            self._backward_sweeps.add(number)
        return True

    def _seed(self, op: ir.Operation) -> None:
        for result in op.results:
            if is_tile(result):
                self.put(result, Tile.of(result).wg_map)
            elif is_vector(result):
                self.put(result, _map_for_shape(given_map(result) or attached_map(op), shape_of(result)))
        if isinstance(op.opview, TileMmaOp):
            self.put(op.opview.d, _product(op.opview))

    def _sweep(self, forward: bool) -> bool:
        changed = False
        for number in (self._forward_sweeps if forward else self._backward_sweeps).sweep():
            op = self._ops[number]
            pairs = self._forward(op) if forward else self._backward(op)
            for value, wg_map in pairs:
                changed |= self.put(value, wg_map)
            if op.name in STRUCTURED:
                for uses, values in forwarded(op):
                    if not (is_vector(values[0]) or is_tile(values[0])):
                        continue
                    group = [*(user.operands[number] for user, number in uses), values[0]]
                    known = next(filter(None, map(self.get, group)), None)
                    for value in group:
                        changed |= self.put(value, known)
        return changed

    def _forward(self, op: ir.Operation) -> Iterator[tuple[ir.Value, WgMap | None]]:
        get, view = self.get, op.opview
        match view:
            case TileLoad():
                yield view.value, get(view.tile)
            case UpdateTileOffsetOp() | AtomicRmwOp():
                yield view.result, get(view.tile)
            case InitTileOp() if view.indices is not None:
                yield view.tile, get(view.indices)
            case _ if operands := product_operands(op):
                if operands[2] is not None:
                    yield op.results[0], get(operands[2])
            case _:
                yield from self._related_maps(op, list(op.operands), list(op.results))

    def _backward(self, op: ir.Operation) -> Iterator[tuple[ir.Value, WgMap | None]]:
        get, view = self.get, op.opview
        if is_splat(op):
            return
        yield from self.required_maps(op)
        if isinstance(view, (TileLoad, TileStore)):
            yield view.tile, get(view.value)
        if isinstance(view, (UpdateTileOffsetOp, AtomicRmwOp)):
            yield view.tile, get(view.result)
        else:
            yield from self._related_maps(op, list(op.results), list(op.operands))

    def _related_maps(
        self, op: ir.Operation, sources: Sequence[ir.Value], targets: Sequence[ir.Value]
    ) -> Iterator[tuple[ir.Value, WgMap | None]]:
        """The maps of an op's results from those of its operands, or the reverse."""
        view: Any = op.opview
        source = next(filter(self.get, filter(is_vector, sources)), None)
        wg_map = None if source is None else self.get(source)
        if isinstance(view, TransposeOp):
            yield targets[0], wg_map if view.permutation == (0, 1) else _transposed(wg_map)
        elif isinstance(view, (ReductionOp, BroadcastOp)):
            yield targets[0], _reduction_map(wg_map, view, targets[0])
        elif op.name == "vector.shape_cast":
            yield targets[0], _cast_map(wg_map, shape_of(sources[0]), shape_of(targets[0]))
        elif op.name == "vector.bitcast":
            yield targets[0], bitcast_map(wg_map, sources[0], targets[0])
        elif op.name in SHUFFLE_OPS or is_elementwise(op):
            for value in filter(is_vector, targets):
                moves = op.name in SHUFFLE_OPS and source is not None
                yield value, shuffle_map(op, value, source, wg_map) if moves else wg_map

    def required_maps(self, op: ir.Operation) -> Iterator[tuple[ir.Value, WgMap | None]]:
        """(operand, map) for each vector operand that must have a certain map.

        Operands of reductions, broadcasts and transposes may have any map, since these ops exchange elements.
        """
        view: Any = op.opview
        get = self.get
        match view:
            case TileLoad() | TileStore():
                vectors = [view.value] if isinstance(view, TileStore) else []
                for vector in (*vectors, getattr(view, "mask", None), getattr(view, "expected", None)):
                    if vector is not None:
                        yield vector, get(view.tile)
            case InitTileOp() | UpdateTileOffsetOp() if view.indices is not None:
                yield view.indices, get(op.results[0])
            case TileMmaOp():
                yield from zip((view.a, view.b), factors(get(view.d), view))
                if view.c is not None:
                    yield view.c, get(view.d)
                for scale, of_rows in ((view.scale_a, True), (view.scale_b, False)):
                    if scale is not None:
                        yield scale, scale_map(get(view.d), scale, of_rows)
            case _ if product_operands(op):
                a, b, c = op.operands
                wg_map = get(op.results[0])
                if wg_map is not None:
                    tiles = WgTiles.of(shape_of(c), wg_map.sg_layout, wg_map.sg_data)
                    if contracted_at_once(op, tiles) == shape_of(a)[1]:
                        yield from zip((a, b), factor_maps(wg_map, shape_of(a)[1]))
                yield c, wg_map
            case ConvertLayoutOp() if view.wg_map_source:
                yield view.value, view.wg_map_source


def bitcast_map(wg_map: WgMap | None, have: ir.Value, want: ir.Value) -> WgMap | None:
    """The map after a bitcast to rows of more or fewer elements; None if it would divide an element."""
    columns, columns_after = shape_of(have)[-1], shape_of(want)[-1]
    if wg_map is None or wg_map.sg_data[-1] * columns_after % columns:
        return None
    return WgMap(wg_map.sg_layout, (*wg_map.sg_data[:-1], wg_map.sg_data[-1] * columns_after // columns))


def _undetermined_value(op: ir.Operation) -> ir.Value | None:
    """The result or stored tile of an op that needs a map even if no other op determines it."""
    if isinstance(op.opview, TileStore) and not op.results:
        return op.opview.tile
    if op.name in STRUCTURED or len(op.results) != 1:
        return None
    (result,) = op.results
    return result if is_vector(result) and len(shape_of(result)) <= 2 else None


def check_counts(func: ir.Operation, layouts: Layouts, complete: bool = True) -> None:
    """Check that maps agree in a possible number of subgroups, and if `complete`, that each vector and tile has a map.

    Raises:
        DiagnosticError: at the first op whose results violate this.
    """
    first: tuple[int, WgMap] | None = None
    stated = stated_subgroups(func)
    for op in walk(func):
        for uses, values in forwarded(op) if complete else ():
            result_map = layouts.get(values[0])
            for value in (user.operands[number] for user, number in uses):
                if layouts.get(value) != result_map and not is_splat(value.owner):
                    emit_error(
                        op,
                        f"forwards a value with map {layouts.get(value)} as {result_map}",
                        "run xetile-infer-layout, which inserts conversions",
                    )
        for result in op.results:
            if not (is_vector(result) or is_tile(result)):
                continue
            wg_map = layouts.get(result)
            if wg_map is None:
                if complete and not is_splat(op) and len(_shape(result)) <= 2:
                    emit_error(op, "has no map", "run xetile-infer-layout, which infers maps from the given ones")
                continue
            count = subgroups(wg_map)
            if count > MOST_SUBGROUPS:
                emit_error(
                    op,
                    f"is divided by {wg_map} among {count} subgroups, but a workgroup has at most {MOST_SUBGROUPS}",
                    "use a smaller sg_layout and more workgroups",
                )
            if count != (stated or count):
                emit_error(op, f"is divided by {wg_map} among {count} subgroups, but the kernel has {stated}")
            first = first or (count, wg_map)
            if count != first[0]:
                emit_error(op, f"is divided by {wg_map} among {count} subgroups, but by {first[1]} it is {first[0]}")


def _row_map(shape: Sequence[int], count: int) -> WgMap:
    rows = math.gcd(shape[0], count)
    across = count // rows
    return WgMap((rows, across), (shape[0] // rows, shape[1] // math.gcd(shape[1], across)))


def _whole_rows_and_columns(
    ops: Iterable[ir.Operation], classes: UnionFind[ir.Value]
) -> tuple[set[ir.Value], set[ir.Value]]:
    """The classes of values whose rows, and whose columns, should not be divided among subgroups."""
    rows, columns = set[ir.Value](), set[ir.Value]()
    for op in ops:
        view: Any = op.opview
        if operands := product_operands(op):
            rows.add(classes.find(operands[0]))
        elif isinstance(view, ReductionOp):
            (columns if view.dims == (0,) else rows).add(classes.find(view.value))
    # The tiles from which these values are loaded must not be divided either.
    for op in ops:
        if isinstance(op.opview, TileLoad):
            for whole_classes in (rows, columns):
                if classes.find(op.opview.value) in whole_classes:
                    whole_classes.add(classes.find(op.opview.tile))
    return rows, columns


def _descending_size(value: ir.Value) -> int:
    return -math.prod(_shape(value))


def _product_map(shape: tuple[int, ...], count: int, in_rows: bool) -> WgMap:
    """The map of a product: parts are as small as possible, and then of the least circumference.

    Args:
        in_rows: whether to divide columns only if there are more subgroups than groups of 8 rows.
    """
    maps = []
    for down in (n for n in range(1, count + 1) if count % n == 0):
        data = (part_size(shape[0], down, LEAST_PRODUCT_ROWS), part_size(shape[1], count // down, LEAST_COLUMNS))
        maps.append(WgMap((down, count // down), data))
    return min(maps, key=lambda m: (math.prod(m.sg_data), 0 if in_rows else sum(m.sg_data), -m.sg_layout[0]))


def _shape(value: ir.Value) -> tuple[int, ...]:
    return Tile.of(value).shape if is_tile(value) else shape_of(value)


def _product(view: Any) -> WgMap | None:
    """The map of a product, from its own attribute or from the maps of its factors."""
    if view.wg_map_c:
        return view.wg_map_c
    a, b = view.wg_map_a, view.wg_map_b
    return WgMap(a.sg_layout, (a.sg_data[0], b.sg_data[1])) if a and b and a.sg_layout == b.sg_layout else None


def factors(product: WgMap | None, view: Any) -> tuple[WgMap | None, WgMap | None]:
    """The maps of the factors of a product: the rows of A and the columns of B, each with all of K."""
    return (view.wg_map_a, view.wg_map_b) if product is None else factor_maps(product, shape_of(view.a)[1])


def factor_maps(product: WgMap, depth: int) -> tuple[WgMap, WgMap]:
    """The maps of the factors of a product over `depth` of K."""
    rows, columns = product.sg_data
    return WgMap(product.sg_layout, (rows, depth)), WgMap(product.sg_layout, (depth, columns))


def product_operands(op: ir.Operation) -> tuple[ir.Value, ir.Value, ir.Value | None] | None:
    """The factors and the accumulator of a product of matrices, an `xetile.tile_mma` or a contraction; None for others.

    A contraction adds each product by one fused multiplication and addition, in the order of K.
    """
    if isinstance(op.opview, TileMmaOp):
        return op.opview.a, op.opview.b, op.opview.c
    if op.name == "vector.contract" and all(
        op.attributes[name] == ir.Attribute.parse(text, op.context) for name, text in MATRIX_PRODUCT.items()
    ):
        a, b, c = op.operands
        return a, b, c
    return None


def contracted_at_once(op: ir.Operation, tiles: WgTiles) -> int:
    """The part of K that a contraction adds in an iteration of a loop over K; all of K without a loop.

    Args:
        tiles: the distribution of its result.
    """
    (a, b), depth = map(element_of, list(op.operands)[:2]), shape_of(op.operands[0])[1]
    steps = math.prod(tiles.data) * tiles.own_count * bits_of(element_of(op.results[0])) // 512
    while a == b and depth > _LEAST_DEPTH and depth % 2 == 0 and depth * steps > _LONGEST_STEPS:
        depth //= 2
    return depth


def scale_map(product: WgMap | None, scale: ir.Value, of_rows: bool) -> WgMap | None:
    """The map of the scales of a factor: for A by the product's rows, for B by its columns."""
    if product is None:
        return None
    (rows, columns), shape = product.sg_data, shape_of(scale)
    return WgMap(product.sg_layout, (rows, shape[1]) if of_rows else (shape[0], columns))


def _map_for_shape(wg_map: WgMap | None, shape: tuple[int, ...]) -> WgMap | None:
    """A map without its first dimension, if that has one row of subgroups and the vector is 1D."""
    if wg_map and len(shape) == 1 and len(wg_map.sg_data) == 2 and (wg_map.sg_layout[0], wg_map.sg_data[0]) == (1, 1):
        return WgMap(wg_map.sg_layout[1:], wg_map.sg_data[1:])
    return wg_map


def _cast_map(wg_map: WgMap | None, have: tuple[int, ...], want: tuple[int, ...]) -> WgMap | None:
    """The map of the same elements in another shape. Along a line, parts keep their size if possible."""
    if wg_map is None or not 1 <= len(want) <= 2:
        return None
    count = subgroups(wg_map)
    axes = [i for i, n in enumerate(want) if n > 1] or [0]
    axis = axes[0]
    if wg_map.sg_data == have:
        # Each subgroup has the whole vector.
        return WgMap(tuple(count if i == axis else 1 for i in range(len(want))), want)
    along = [(n, d) for n, d in zip(have, wg_map.sg_data) if n > 1]
    size = want[axis]
    data = size // count if size % count == 0 else 1 if count % size == 0 else size
    if len(axes) == 1 and len(along) == 1 and dealing_problem(size, count, along[0][1]) is None:
        data = along[0][1]
    parts = tuple(data if i == axis else n for i, n in enumerate(want))
    return WgMap(tuple(count if i == axis else 1 for i in range(len(want))), parts)


def _transposed(wg_map: WgMap | None) -> WgMap | None:
    return WgMap(wg_map.sg_layout[::-1], wg_map.sg_data[::-1]) if wg_map else None


def _reduction_map(wg_map: WgMap | None, view: Any, to: ir.Value) -> WgMap | None:
    """The map of the operand of a reduction or broadcast from the map of its result, or the reverse.

    One of the two has an element for each group of elements of the other along a dimension, or for all of them. If
    groups cross the bounds of parts, each subgroup has the whole dimension.
    """
    if wg_map is None:
        return None
    (dim,), reduces = view.dims, isinstance(view, ReductionOp)
    group = view.reduction_size if reduces else view.broadcast_size
    size, data, layout = shape_of(to)[dim], wg_map.sg_data[dim], wg_map.sg_layout[dim]
    if reduces == (to == view.result):
        data = 1 if group is None else size if data % group else data // group
    elif group is not None:
        data *= group
    else:
        data = size // layout if size % layout == 0 else size
    return WgMap(wg_map.sg_layout, tuple(data if i == dim else n for i, n in enumerate(wg_map.sg_data)))


# Queries about ops on vectors and tiles, copies of ops for other shapes, and classes of values with the same map.


def is_elementwise(op: ir.Operation) -> bool:
    """Return whether each result's element depends only on scalars and the operands' elements at its position."""
    also = op.name == "xegpu.truncf" or is_intrinsic(op) or is_print(op)
    return element_movement.is_elementwise(op) or (also and has_one_shape(op))


def is_splat(op: ir.Operation) -> bool:
    """Return whether all elements of the op's vector are equal: a constant, a repeated scalar, or poison."""
    if op.name == "arith.constant" and is_vector(op.results[0]):
        value = op.attributes["value"]
        return isinstance(value, ir.DenseElementsAttr) and value.is_splat
    if op.name == "ub.poison":
        return is_vector(op.results[0])
    return op.name == "vector.broadcast" and not is_vector(op.operands[0])


def splat_with_shape(op: ir.Operation, operands: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """A splat of another shape, with new operands."""
    if op.name != "arith.constant":
        return clone_with_shape(op, operands, shape)[0]
    value = ir.DenseElementsAttr(op.attributes["value"])
    return constant(with_shape(op.results[0].type, shape), value.get_splat_value())


def clone_with_shape(op: ir.Operation, operands: Sequence[ir.Value], shape: Sequence[int]) -> list[ir.Value]:
    """An elementwise op on vectors of another shape."""
    results = [with_shape(r.type, shape) if is_vector(r) else r.type for r in op.results]
    if op.name == "func.call":
        return call_with_types(op, list(operands), results)
    attributes = {name: value for name, value in attributes_of(op).items() if name != "map"}
    return list(create(op.name, results, operands, attributes).results)


def is_tile_choice(op: ir.Operation) -> bool:
    """Return whether an op selects one of two tiles."""
    return op.name == "arith.select" and is_tile(op.results[0])


def value_classes(ops: Iterable[ir.Operation]) -> UnionFind[ir.Value]:
    """Classes of vectors that elementwise ops and control flow relate, and of tiles that differ only in position."""
    classes: UnionFind[ir.Value] = UnionFind()
    for op in ops:
        for group in carried(op):
            classes.join(group)
        if is_elementwise(op) or (is_splat(op) and op.name != "arith.constant"):
            classes.join(v for v in (*op.operands, *op.results) if is_vector(v))
        elif is_tile_choice(op):
            classes.join([op.results[0], *list(op.operands)[1:]])
        elif isinstance(op.opview, (UpdateTileOffsetOp, ConvertLayoutOp)):
            classes.join([op.operands[0], op.results[0]])
        elif (operands := product_operands(op)) and operands[2] is not None:
            classes.join([operands[2], op.results[0]])
    return classes


# Rewrites ops of the vector dialect as the ops of XeTile that have the same meaning.


def use_tile_ops(func: ir.Operation) -> None:
    """Replace transposes, broadcasts and reductions of a workgroup's vectors by ops of XeTile.

    Vectors of one dimension, such as the results of reductions, become a row or a column. A `vector.shape_cast` that
    divides a dimension into groups and a reduction of these groups together become one reduction.
    """
    casts: list[ir.Operation] = []
    for op in walk(func):
        if op.name == "vector.shape_cast":
            casts.append(op)
        rule = _TILE_OP_RULES.get(op.name)
        if rule is None:
            continue
        with ir.InsertionPoint(op), op.location:
            replacement = rule(op)
        if replacement is not None:
            replace_op(op, replacement)
    for op in reversed(casts):
        if not is_used(op.results[0]):
            op.erase()


def _cast_shape(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Cast a value to another shape; a splat remains a splat."""
    owner = value.owner
    if shape_of(value) != tuple(shape) and not isinstance(owner, ir.Block) and is_splat(owner.operation):
        return splat_with_shape(owner.operation, list(owner.operation.operands), shape)
    return shape_cast(value, shape)


def _transpose_or_broadcast(op: ir.Operation) -> ir.Value | None:
    order = permutation_of(op)
    if order is not None and len(order) == 2:
        return TransposeOp(op.operands[0], order, result=op.results[0].type, map=attached_map(op)).result
    wide = shape_of(op.results[0])
    value = op.operands[0]
    if order is not None or not is_vector(value) or len(wide) != 2:
        return None
    narrow = shape_of(value)
    narrow = (*[1] * (2 - len(narrow)), *narrow)
    value = _cast_shape(value, narrow)
    dims = [i for i in range(2) if narrow[i] != wide[i]]
    for dim in dims:
        narrow = tuple(wide[i] if i == dim else n for i, n in enumerate(narrow))
        kind = with_shape(value.type, narrow)
        value = BroadcastOp(value, (dim,), result=kind, map=attached_map(op) if dim == dims[-1] else None).result
    return value


def _reduction(op: ir.Operation) -> ir.Value | None:
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]))
    source, start = op.operands
    kind = CombiningKind.of(op)
    if dims == (0, 1) and len(shape_of(source)) == 2:
        return _reduce_matrix(kind, source, start)
    if len(dims) != 1 or not is_vector(op.results[0]):
        return None
    shape, (dim,), size = shape_of(source), dims, None
    owner = source.owner
    if len(shape) == 3 and not isinstance(owner, ir.Block) and owner.name == "vector.shape_cast":
        # Each group consists of consecutive elements.
        source, size = owner.operands[0], shape[dim]
        merged = (*shape[: dim - 1], shape[dim - 1] * size, *shape[dim + 1 :])
        if dim == 0 or shape_of(source) != merged:
            return None
        dim, shape = dim - 1, merged
    if len(shape) != 2:
        return None
    reduced = tuple(n // (size or n) if i == dim else n for i, n in enumerate(shape))
    attached = attached_map(op)
    fits = attached is not None and attached.problem_for(reduced) is None
    value = ReductionOp(
        kind.value,
        source,
        (dim,),
        result=with_shape(source.type, reduced),
        reduction_size=size,
        map=attached if fits else None,
    ).result
    return _cast_shape(kind.combine(value, _cast_shape(start, reduced)), shape_of(op.results[0]))


def _reduce_matrix(kind: CombiningKind, source: ir.Value, start: ir.Value) -> ir.Value:
    """Reduce a matrix to a scalar, by columns first."""
    row, scalar_shape = (1, shape_of(source)[1]), (1, 1)
    line = ReductionOp(kind.value, source, (0,), result=with_shape(source.type, row)).result
    value = ReductionOp(kind.value, line, (1,), result=with_shape(source.type, scalar_shape)).result
    whole = kind.combine(value, broadcast(start, with_shape(source.type, scalar_shape)))
    return extract(whole, [0, 0])


_TILE_OP_RULES: dict[str, Callable[[ir.Operation], ir.Value | None]] = {
    **dict.fromkeys(WHOLE, _transpose_or_broadcast),
    "vector.multi_reduction": _reduction,
}
"""By op name, the function that rewrites an op as ops of XeTile; it returns None if the op is not rewritten."""
