"""`xetile-infer-layout`: the maps that were left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir
from mlir.dialects import gpu

from xegpu_py.dialects.xetile import AtomicRmwOp, ConvertLayoutOp, InitTileOp, Tile, TileMmaOp, WgMap
from xegpu_py.dialects.xetile.types import TileAccess
from xegpu_py.ir.bindings import AtomicRMWKind, blocks_in
from xegpu_py.ir.control_flow import STRUCTURED, Use, forwarded
from xegpu_py.ir.definition import FUNCTIONS
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import Operation
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.layout import WgTiles
from xegpu_py.passes.analysis.block_surfaces import buffer_of
from xegpu_py.passes.analysis.ir_queries import (
    attributes_of,
    block_of,
    defining_op,
    is_used,
    is_vector,
    shape_of,
    tile_kernels,
)
from xegpu_py.passes.analysis.memory_effects import effects_of
from xegpu_py.passes.analysis.tile_layout_inference import (
    ALIASED,
    Layouts,
    check_counts,
    chooses_maps,
    factors,
    has_maps,
    is_elementwise,
    is_splat,
    use_tile_ops,
    value_classes,
)
from xegpu_py.passes.rewriting.tile_conversion import is_tile


@register_pass("xetile-infer-layout")
class XeTileInferLayout(Pass):
    """Infer the maps of tiles and vectors.

    Each tile and vector of a workgroup gets a map, which is derived from the given maps. Maps are propagated forwards,
    from operands to results, and backwards, from results to operands and from a product to its factors. If an op
    requires another map of an operand than the operand has, an `xetile.convert_layout` is inserted. A kernel without
    any map is a kernel of subgroups and is not changed, unless its attribute `xetile.subgroups` gives a number of
    subgroups. Then maps are chosen: those of products first, which are divided into parts as square as possible, or
    into rows if these are reduced or multiplied again; then those of tiles, and last those of other vectors. Where a
    subgroup could access elements of memory before another has changed or read them, a barrier is inserted. So it is
    before an atomic update after any change, of which it may tell other workgroups, and after one whose result is used,
    which may tell of theirs. With the attribute `xetile.aliased`, any argument may have the memory of another.

        %a = xetile.load_tile %ta : !xetile.tile<256x32xbf16> -> vector<256x32xbf16>
        %d = xetile.tile_mma %a, %b {wg_map_c = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>} : ...

    becomes

        %a = xetile.load_tile %ta : !xetile.tile<256x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data =
          [32, 32]>>> -> vector<256x32xbf16>
        %d = xetile.tile_mma %a, %b {wg_map_a = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 32]>, wg_map_b = ...,
          wg_map_c = ...} : ...
    """

    def run(self, op: ir.Operation) -> None:
        for func in tile_kernels(op):
            if has_maps(func):
                maps_of_author = chooses_maps(func)
                infer(func)
                if maps_of_author:
                    _Order(func).run()


# Writes inferred maps into a kernel, and inserts the conversions that give all operands these maps.


def infer(func: ir.Operation) -> None:
    """Give each tile and vector of a kernel its map.

    Raises:
        DiagnosticError: at the op that defines a value whose map cannot be derived.
    """
    use_tile_ops(func)
    _separate_splats(func)
    layouts = Layouts(func)
    check_counts(func, layouts, complete=False)
    ops = walk(func)
    for op in ops:
        _convert(op, layouts)
    for op in ops:
        for value in (*op.results, *(a for block in blocks_in(op) for a in block.arguments)):
            if is_tile(value) or is_vector(value):
                _settle(op, value, layouts.get(value))
    kind = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
    argument_types = [a.type for a in func.regions[0].blocks[0].arguments]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(argument_types, kind.results))


def _settle(op: ir.Operation, value: ir.Value, wg_map: WgMap | None) -> None:
    if wg_map is not None:
        _write(op, value, wg_map)
    elif is_vector(value) and len(shape_of(value)) > 2:
        # Each subgroup has the whole vector.
        return
    elif is_used(value) or not is_splat(op):
        subject = "a tile's" if is_tile(value) else "the vector's"
        emit_error(
            op,
            f"cannot infer {subject} map, which assigns elements to subgroups",
            "set a wg_map on a tile or on xetile.tile_mma, or 'map' on the op",
        )


def _convert(op: ir.Operation, layouts: Layouts) -> None:
    """Convert each operand to the map that the op needs."""
    if op.name in STRUCTURED:
        for uses, values in forwarded(op):
            for use in uses:
                _convert_passed(op, use, layouts.get(values[0]), layouts)
        return
    conversions: list[tuple[ir.Value, WgMap | None]] = []
    if isinstance(op.opview, Operation):
        conversions = list(layouts.required_maps(op))
    elif is_elementwise(op):
        result_map = next((layouts.get(v) for v in op.results if is_vector(v)), None)
        conversions = [(value, result_map) for value in op.operands if is_vector(value)]
    # An op may use a value several times, each time with another map; the numbers are in the order of the operands.
    numbers: dict[ir.Value, Iterator[int]] = {}
    for value, _ in conversions:
        numbers.setdefault(value, iter([i for i, v in enumerate(op.operands) if v == value]))
    for value, wg_map in conversions:
        _insert_conversion(op, next(numbers[value]), wg_map, layouts)


def _convert_passed(op: ir.Operation, use: Use, wg_map: WgMap | None, layouts: Layouts) -> None:
    """Convert a value that control flow forwards to the map that the value has afterwards."""
    user, number = use
    value = user.operands[number]
    if is_tile(value) and layouts.get(value) != wg_map:
        emit_error(
            op,
            f"merges tiles with different maps, {layouts.get(value)} and {wg_map}",
            "set the same wg_map on both; vectors stored to them are converted",
        )
    _insert_conversion(user, number, wg_map, layouts)


def _write(op: ir.Operation, value: ir.Value, wg_map: WgMap) -> None:
    if is_tile(value):
        value.set_type(Tile.of(value).with_map(wg_map).to_ir())
    elif isinstance(op.opview, TileMmaOp):
        for name, factor_map in zip("abc", (*factors(wg_map, op.opview), wg_map)):
            if factor_map is not None:
                op.attributes[f"wg_map_{name}"] = factor_map.to_ir()
    elif isinstance(op.opview, ConvertLayoutOp):
        op.attributes["wg_map_result"] = wg_map.to_ir()
    elif op.name not in STRUCTURED and not isinstance(op.opview, TileAccess):
        op.attributes["map"] = wg_map.to_ir()


def _separate_splats(func: ir.Operation) -> None:
    """Clone a splat for each of its uses, so that each clone can have the map that its use needs."""
    for op in walk(func):
        if is_splat(op) and "map" not in op.attributes:
            for use in list(op.results[0].uses)[1:]:
                with ir.InsertionPoint(op):
                    clone = op.clone()
                use.owner.operands[use.operand_number] = clone.results[0]


def _insert_conversion(user: ir.Operation, number: int, wg_map: WgMap | None, layouts: Layouts) -> None:
    """Convert an operand to a map if it has another one."""
    value = user.operands[number]
    if wg_map is None or layouts.get(value) in (None, wg_map):
        return
    with ir.InsertionPoint(user), user.location:
        conversion = ConvertLayoutOp(value, wg_map, result=value.type, wg_map_source=layouts.get(value))
    layouts.put(conversion.result, wg_map)
    user.operands[number] = conversion.result


# Barriers, in a kernel that was written for one subgroup and is divided among several.

_Place = tuple[Any, ...] | None
"""The elements that each subgroup accesses, its own ones only; None if it may access those of others."""

_READ, _WRITE = "read", "write"

_Mode = str | tuple[AtomicRMWKind, ir.Value]
"""How memory is accessed: `_READ`, `_WRITE`, or the kind and tile of updates whose order changes no result."""

_ACQUIRED = "acquired"
"""Stands for the buffers about which an atomic update tells something by its result, which can be any."""

_Accesses = dict[ir.Value | str | None, set[tuple[_Mode, _Place]]]
"""The accesses of each buffer since the last barrier."""


class _Order:
    """Inserts barriers between accesses of a buffer by which subgroups may change what others access."""

    def __init__(self, func: ir.Operation) -> None:
        self._func = func
        ops = walk(func)[1:]
        self._classes = value_classes(ops)
        self._buffers: dict[ir.Value, set[ir.Value | None]] = {}
        for op in ops:
            if isinstance(op.opview, InitTileOp):
                tile = self._classes.find(op.opview.tile)
                self._buffers.setdefault(tile, set()).add(_own_buffer(op.opview.source))
        accessed = [self._accessed(op) for op in ops if op.name not in STRUCTURED and effects_of(op) & {_READ, _WRITE}]
        # A buffer at an address, or one that control flow chooses, may alias any other.
        self._alike = ALIASED in func.attributes or any(None in buffers for buffers in accessed)
        self._since: _Accesses = {}

    def run(self) -> None:
        if any(_WRITE in effects_of(op) for op in walk(self._func)[1:]):
            self._block(self._func.regions[0].blocks[0])

    def _block(self, block: ir.Block) -> None:
        for op in [o.operation for o in block.operations]:
            if op.name in ("scf.for", "scf.while"):
                for inner in blocks_in(op):
                    self._block(inner)
                self._next_iteration(op)
                # A second time for what an iteration and the next one access.
                for inner in blocks_in(op):
                    self._block(inner)
            elif op.name in STRUCTURED:
                self._branches(op)
            elif op.name == "gpu.barrier":
                self._since = {}
            elif effects_of(op) & {_READ, _WRITE}:
                self._access(op)

    def _next_iteration(self, loop: ir.Operation) -> None:
        """Forget which elements were accessed where that depends on values of the loop, which are others now."""
        self._since = {
            buffer: {
                (mode, None if any(_is_within(v, loop) for v in offsets or ()) else offsets)
                for mode, offsets in accesses
            }
            for buffer, accesses in self._since.items()
        }

    def _branches(self, op: ir.Operation) -> None:
        before = self._since
        ends = [before]
        for block in blocks_in(op):
            self._since = {buffer: {*accesses} for buffer, accesses in before.items()}
            self._block(block)
            ends.append(self._since)
        self._since = {b: set().union(*(end.get(b, ()) for end in ends)) for b in set().union(*ends)}

    def _access(self, op: ir.Operation) -> None:
        access = _mode(op), _place_of(op)
        buffers = {None} if self._alike else self._accessed(op)
        is_update = isinstance(op.opview, AtomicRmwOp)
        # An update may tell other workgroups that all is written.
        written = self._since.values() if is_update else ()
        earlier = [
            *(other for buffer in (*buffers, _ACQUIRED) for other in self._since.get(buffer, ())),
            *((mode, None) for accesses in written for mode, _ in accesses if mode != _READ),
        ]
        if any(_conflict(access, other) for other in earlier):
            with ir.InsertionPoint(op), op.location:
                gpu.barrier()
            self._since = {}
        for buffer in buffers:
            self._since.setdefault(buffer, set()).add(access)
        if is_update and is_used(op.opview.result):
            self._since.setdefault(_ACQUIRED, set()).add((_WRITE, None))

    def _accessed(self, op: ir.Operation) -> set[ir.Value | None]:
        """The buffers that an op may access; None is one that is not known."""
        view: Any = op.opview
        if isinstance(view, TileAccess):
            return self._buffers.get(self._classes.find(view.tile), {None})
        return {_own_buffer(v) for v in op.operands if isinstance(v.type, ir.MemRefType)} or {None}


def _mode(op: ir.Operation) -> _Mode:
    view = op.opview
    if isinstance(view, AtomicRmwOp) and view.kind != AtomicRMWKind.assign and not is_used(view.result):
        return view.kind, view.tile
    return _WRITE if _WRITE in effects_of(op) else _READ


def _conflict(one: tuple[_Mode, _Place], other: tuple[_Mode, _Place]) -> bool:
    """Whether the order of two accesses by different subgroups may change a result."""
    (mode, offsets), (earlier, before) = one, other
    changes = earlier != _READ or mode != _READ
    return changes and (offsets is None or offsets != before) and (isinstance(mode, str) or mode != earlier)


def _place_of(op: ir.Operation) -> _Place:
    view: Any = op.opview
    init = defining_op(view.tile) if isinstance(view, TileAccess) else None
    if init is None or not isinstance(init.opview, InitTileOp) or init.opview.indices is not None:
        # Several of the indices may be equal.
        return None
    tile = Tile.of(view.tile)
    if tile.wg_map is None or not WgTiles.of(tile.shape, tile.wg_map.sg_layout, tile.wg_map.sg_data).is_exclusive:
        return None
    return (view.tile.type, *init.operands, *map(str, attributes_of(init).items()))


def _is_within(value: Any, loop: ir.Operation) -> bool:
    """Whether a value is one of a loop's body; parts of a place that are no values are not."""
    if not isinstance(value, ir.Value):
        return False
    op = block_of(value).owner.operation
    while op != loop and op.name not in FUNCTIONS:
        op = op.parent.operation
    return bool(op == loop)


def _own_buffer(source: ir.Value) -> ir.Value | None:
    """The argument or allocation that a memref is a view of; None if it is not known to be one."""
    buffer = buffer_of(source)
    producer = defining_op(buffer)
    is_own = (
        producer.name == "memref.alloc" if producer is not None else buffer.owner.owner.operation.name == "gpu.func"
    )
    return buffer if is_own and isinstance(buffer.type, ir.MemRefType) else None
