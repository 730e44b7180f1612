"""Kernels of workgroups: they become `xetile`.

A layout never changes a value, so a kernel of workgroups is a program on vectors of the whole workgroup. The layouts
of products and stores are kept as maps, and `xetile-infer-layout` finds the others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mlir import ir
from mlir.dialects import arith, scf, vector

from xegpu_py.dialects import xegpu as ours
from xegpu_py.dialects import xetile
from xegpu_py.dialects.xegpu.block_ops import UpstreamCreateNdTdescOp, UpstreamLoadNdOp
from xegpu_py.dialects.xegpu.matrix_ops import SCALE, SCALE_BLOCK, UpstreamDpasMxOp
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, BlockLoad
from xegpu_py.dialects.xegpu.scattered_ops import chunk_of
from xegpu_py.dialects.xegpu.types import is_slm
from xegpu_py.dialects.xegpu.upstream_types import Layout, Slice, UpstreamTensorDesc, layout_of
from xegpu_py.dialects.xetile.ops import given_map, wanted_maps
from xegpu_py.dialects.xetile.ops import subgroups_of as subgroups_of_maps
from xegpu_py.dialects.xetile.types import GLOBAL, SHARED, Tile, TileAttr, WgMap
from xegpu_py.ir.builtin import bit_width, by
from xegpu_py.ir.diagnostics import remark
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import Operation, implements
from xegpu_py.passes.analysis.affine_analysis import IndexForm, IndexForms, constant_part
from xegpu_py.passes.analysis.ir_queries import defining_op, is_used, shape_of
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import Index, add, broadcast, compare, constant, index
from xegpu_py.passes.rewriting.rewriter import Rule, Rules
from xegpu_py.upstream import import_common
from xegpu_py.upstream.import_common import (
    PREFIX,
    PRODUCTS,
    address_of,
    as_row,
    block_attr,
    cast,
    element_of,
    expanded,
    first_elements,
    given_hints,
    is_true,
    long_address,
    parts,
    put_hints,
    refuse,
    tensor_of,
    values_of,
    vector_type,
)
from xegpu_py.upstream.layout_maps import even_map, map_of, subgroups_of
from xegpu_py.upstream.rank_reduction import (
    Shape,
    Splits,
    VectorImport,
    is_elementwise,
    matrix,
    take_bytes,
    take_matrices,
)
from xegpu_py.upstream.subgroup import as_address

_STORES = (PREFIX + "store_nd", PREFIX + "store", PREFIX + "store_matrix", PREFIX + "atomic_rmw")

_MAKES_DESCS = tuple(PREFIX + name for name in ("create_nd_tdesc", "create_tdesc", "update_nd_offset", "update_offset"))

_PURE = (
    "arith.",
    "math.",
    "vector.",
    "index.",
    "xetile.init_tile",
    "memref.extract_aligned_pointer_as_index",
    *import_common.COUNTED,
)


class WorkgroupImport(VectorImport):
    """Rebuilds one kernel of workgroups, in place."""

    rules = rule = Rules[Rule[Any]](VectorImport.rules)

    def __init__(self, func: ir.Operation) -> None:
        super().__init__(func)
        self.subgroups = 1
        self.has_products = self.loads_need_maps = False
        self.index_forms = IndexForms()
        self.forms: list[tuple[ir.Operation, IndexForm]] = []
        """The forms of the offsets of gathers and scatters."""
        self.piles: dict[ir.Value, Any] = {}
        """The ops that make descriptors of more than two dimensions."""
        self.stored: dict[str, WgMap] = {}
        """The maps of tiles that are carried, by the types of their descriptors."""

    def ops(self) -> list[ir.Operation]:
        _load_vectors(self.func)
        ops = super().ops()
        self.subgroups = _most_subgroups(ops)
        for change in (take_matrices, _split_products, take_bytes):
            if change(ops):
                ops = super().ops()
        return ops

    def prepare(self, ops: Sequence[ir.Operation]) -> None:
        _run_ranges(ops)
        import_common.count_workgroup(self.func, ops)
        import_common.count_lanes(ops)
        self.has_products = any(op.name in PRODUCTS for op in ops)
        self.loads_need_maps = not any(op.name in _STORES for op in ops) or any(
            op.name in ("vector.multi_reduction", "vector.reduction", "vector.extract")
            and not isinstance(op.results[0].type, ir.VectorType)
            for op in ops
        )
        for value in (*values_of(self.func), *(v for op in ops for v in values_of(op))):
            if isinstance(value.type, ir.VectorType):
                self.shapes[value] = shape_of(value)
        splits = Splits(ops, self.shapes)
        self.splits = {v: splits.of(v) for v in self.shapes}
        for op in ops:
            if op.name == PREFIX + "store_nd":
                found = self.map_for(op.opview, op.opview.value)
                if found:
                    self.stored[str(op.opview.tdesc.type)] = found
            if op.name in (PREFIX + "load", PREFIX + "store") and op.opview.offsets is not None:
                offsets = op.opview.offsets
                form = self.index_forms.of(offsets) if element_of(offsets) == "index" else None
                if form is not None:
                    self.forms.append((op, form))
        for value, shape in self.shapes.items():
            value.set_type(vector_type(matrix(shape, self.splits[value]), element_of(value)))

    def finish(self) -> None:
        ops = self._clean(parts(self.func))
        if import_common.KNOWN in self.func.attributes:
            del self.func.attributes[import_common.KNOWN]
        import_common.mark_workgroup(self.func)
        self._have_map(ops)
        self._convert(ops)

    @staticmethod
    def _clean(ops: Sequence[ir.Operation]) -> list[ir.Operation]:
        """Erase casts of values to their own type, and pure ops without uses. Returns the other ops in order."""
        remaining = []
        for op in reversed(ops):
            if op.name == "vector.shape_cast" and op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
            if _is_pure(op) and not any(map(is_used, op.results)):
                op.erase()
            else:
                remaining.append(op)
        return remaining[::-1]

    def _convert(self, ops: Sequence[ir.Operation]) -> None:
        """Convert values to the maps that their users have, where these are others than those that they are made in."""
        for op in ops:
            if not isinstance(op.opview, Operation):
                continue
            for _, value, wanted in list(wanted_maps(op.opview)):
                given = given_map(value)
                if given is None or given == wanted:
                    continue
                with ir.InsertionPoint(op), op.location:
                    made = xetile.ConvertLayoutOp(value, wanted, result=value.type, wg_map_source=given).result
                for number, operand in enumerate(op.operands):
                    if operand == value:
                        op.operands[number] = made

    def _have_map(self, ops: Sequence[ir.Operation]) -> None:
        """Make sure that at least one map defines the number of subgroups."""
        if subgroups_of_maps(self.func) is not None:
            return
        for op in ops:
            for value in op.results:
                if isinstance(value.type, ir.VectorType) and len(shape_of(value)) == 2 and is_elementwise(op):
                    whole = WgMap((1, self.subgroups), shape_of(value))
                    op.attributes["map"] = whole.to_ir()
                    return

    # Layouts.

    def map_for(self, view: Any, value: ir.Value, name: str = "layout") -> WgMap | None:
        """The map of a vector that an op's layout, or its descriptor's, says; None if xetile has no such map."""
        given = getattr(view, name)
        if given is None and name == "layout" and hasattr(view, "tdesc"):
            text = str(view.tdesc.type)
            desc = UpstreamTensorDesc.decode(text) if text.startswith(UpstreamTensorDesc.mnemonic()) else None
            given = layout_of(desc.layout) if desc and desc.layout != "unit" else None
        shape, split = self.shapes[value], self.splits[value]
        if isinstance(view, BlockAccess):
            # The rows of the value may be others than those of the tile, which are rows of memory.
            split = len(shape) - 1
        found = map_of(given, shape, split, self.subgroups) if given is not None else None
        if found is None and not self.has_products and (self.loads_need_maps or "store" in view.operation.name):
            # Some op must have a map; a product's map is inferred from the factors.
            return even_map(matrix(shape, split), self.subgroups)
        return found

    # Blocks.

    def retype(self, value: ir.Value) -> None:
        if str(value.type).startswith(UpstreamTensorDesc.mnemonic()):
            desc = UpstreamTensorDesc.of(value)
            value.set_type(_tile(desc, self.stored.get(str(value.type))).to_ir())
        else:
            super().retype(value)

    @rule(PREFIX + "create_nd_tdesc")
    def create_nd_tdesc(self, op: Any) -> None:
        desc = UpstreamTensorDesc.of(op.tdesc)
        if math.prod(desc.shape[:-2]) != 1:
            self.piles[op.tdesc] = op
            return
        if all(implements(use.owner.operation, BlockAccess) for use in op.tdesc.uses):
            # Each access has a tile of its own.
            self.sources[op.tdesc] = op
            return
        made = self.tile(op, list(op.offsets), self.stored.get(str(op.tdesc.type)))
        self.sources[made] = op
        self.replace(op, made)

    def tile(self, view: Any, offsets: list[Any], wg_map: WgMap | None) -> ir.Value:
        """Build the tile of a descriptor at these offsets."""
        desc = UpstreamTensorDesc.of(view.operation.results[0])
        source, shape, strides = view.source, list(view.shape), list(view.strides)
        in_bounds = not block_attr(desc).boundary_check
        if not isinstance(source.type, ir.MemRefType):
            rank = len(shape)
            source, offsets, shape, strides = as_address(
                view, source, offsets or [0] * rank, shape, strides, 2, desc.element
            )
        else:
            memory = ir.MemRefType(source.type)
            if memory.rank == 1:
                source = as_row(source)
                offsets, shape, strides = [0, *(offsets or [0])], [], []
            else:
                offsets = offsets or [0] * memory.rank
                if memory.has_static_shape:
                    shape, strides = [], []
        kind = _tile(desc, wg_map).to_ir()
        return xetile.InitTileOp(source, offsets, shape or None, strides or None, tile=kind, in_bounds=in_bounds).tile

    def placed(self, view: Any, wg_map: WgMap | None = None) -> ir.Value:
        """The tile that an op accesses."""
        made = self.sources.get(view.tdesc)
        offsets = list(view.offsets)
        if made is None and UpstreamTensorDesc.accepts(str(view.tdesc.type)):
            refuse(view, "its descriptor of more than two dimensions is not made where it can be seen")
        if made is None:
            if not offsets or all(isinstance(o, int) and o == 0 for o in offsets):
                return view.tdesc
            two = [*[0] * (2 - len(offsets)), *offsets[-2:]]
            return xetile.UpdateTileOffsetOp(view.tdesc, two, result=view.tdesc.type).result
        rank = ir.MemRefType(made.source.type).rank if isinstance(made.source.type, ir.MemRefType) else len(made.shape)
        base = list(made.offsets) or [0] * rank
        total = [*[0] * (rank - len(offsets)), *offsets]
        return self.tile(made, [add(a, b) for a, b in zip(base, total)], wg_map)

    @rule(PREFIX + "update_nd_offset")
    def update_nd_offset(self, op: Any) -> None:
        offsets = list(op.offsets)
        two = [*[0] * (2 - len(offsets)), *offsets[-2:]]
        self.replace(op, xetile.UpdateTileOffsetOp(op.tdesc, two, result=op.tdesc.type).result)

    @rule(PREFIX + "load_nd")
    def load_nd(self, op: Any) -> None:
        if op.packed:
            refuse(op, "it packs elements, which has no meaning for a workgroup's vector")
        wg_map = None if self.has_products or op.transpose else self.map_for(op, op.value)
        if op.tdesc in self.piles:
            if op.transpose is not None:
                refuse(op, "it transposes a block of more than two dimensions")
            tile, mask = self.pile(op, op.value, self.map_for(op, op.value))
            self.replace(op, self.put(xetile.LoadOp(tile, mask).value, op.value))
            return
        tile = self.placed(op, wg_map)
        found = Tile.of(tile)
        value = xetile.LoadTileOp(tile).value
        put_hints(value.owner, op)
        if op.transpose is not None and list(op.transpose) != sorted(op.transpose):
            kind = vector_type(found.shape[::-1], found.element)
            value = xetile.TransposeOp(value, (1, 0), result=kind).result
        if math.prod(shape_of(value)) != math.prod(self.shapes[op.value]):
            refuse(op, f"a block of {by(found.shape)} is loaded as {by(self.shapes[op.value])}")
        self.replace(op, self.put(value, op.value))

    @rule(PREFIX + "store_nd")
    def store_nd(self, op: Any) -> None:
        if op.tdesc in self.piles:
            tile, mask = self.pile(op, op.value, self.map_for(op, op.value))
            xetile.StoreOp(self.as_split(op.value, len(self.shapes[op.value]) - 1), tile, mask)
            return
        tile = self.placed(op, self.map_for(op, op.value))
        made = xetile.StoreTileOp(cast(op.value, Tile.of(tile).shape), tile)
        put_hints(made, op)

    @rule(PREFIX + "prefetch_nd")
    def prefetch_nd(self, op: Any) -> None:
        desc = UpstreamTensorDesc.of(self.sources[op.tdesc].tdesc) if op.tdesc in self.sources else None
        given = op.layout or (layout_of(desc.layout) if desc and desc.layout != "unit" else None)
        if desc is None or given is None or op.tdesc in self.piles:
            # A prefetch changes no value.
            return
        wg_map = map_of(given, _tile_shape(desc.shape), 1, self.subgroups)
        if wg_map:
            made = xetile.PrefetchTileOp(self.placed(op, wg_map))
            put_hints(made, op)

    def pile(self, view: Any, value: ir.Value, wg_map: WgMap | None) -> tuple[ir.Value, ir.Value | None]:
        """The tile of a block of more than two dimensions, whose elements have an offset each, and its mask."""
        made = self.piles.get(view.tdesc)
        if made is None:
            refuse(view, "its descriptor of more than two dimensions is not made where it can be seen")
        desc = UpstreamTensorDesc.of(made.tdesc)
        shape = desc.shape
        address, extents, strides = tensor_of(made.source, list(made.shape), list(made.strides))
        rank = len(extents)
        given = list(view.offsets)
        offsets = [add(a, b) for a, b in zip(
            list(made.offsets) or [0] * rank, [*[0] * (rank - len(given)), *given]
        )]  # fmt: skip
        indices = _indices((1,) * (rank - len(shape)) + shape, rank - 1)
        here = [_line_of(offset, at, extent) for offset, at, extent in zip(offsets, indices, extents)]
        moved = [arith.muli(at, _splat(at.type, stride)) for (at, _), stride in zip(here[:-1], strides)]
        rows, columns = math.prod(shape[:-1]), shape[-1]
        places = _spread(arith.addi, moved, [here[-1][0]], (rows, columns))
        mask = _spread(arith.andi, [fits for _, fits in here[:-1]], [here[-1][1]], (rows, columns))
        kind = Tile((rows, columns), desc.element, TileAttr(wg_map=wg_map, scattered=True))
        tile = xetile.InitTileOp(address, None, indices=places, tile=kind.to_ir()).tile
        return tile, mask if block_attr(desc).boundary_check else None

    @rule(*PRODUCTS)
    def dpas(self, op: Any) -> None:
        """The product of matrices, with scales if there are any. Batches have become matrices before."""
        shapes = [self.shapes[v] for v in (op.lhs, op.rhs)]
        if {len(s) for s in shapes} != {2}:
            refuse(op, f"it multiplies {by(shapes[0])} and {by(shapes[1])}, which are not matrices")
        is_scaled = isinstance(op, UpstreamDpasMxOp)
        scales: list[ir.Value | None] = [op.scale_a, op.scale_b] if is_scaled else []
        for value in scales:
            if value is not None and value not in self.shapes:
                refuse(op, f"its scale must be a matrix, but got {value.type}", "is this a kernel of lanes?")
        if is_scaled and all(v is None for v in scales):
            # Only scales distinguish this product from a plain one, so scales of one are built here.
            rows, depth = shapes[0]
            shape = (rows, -(-depth // SCALE_BLOCK))
            scales[0] = constant(vector_type(shape, SCALE), 1.0)
            self.shapes[scales[0]] = shape
        wg_map = self.map_for(op, op.result, "layout_cd")
        kind = vector_type(self.shapes[op.result], element_of(op.result))
        factors = [None if v is None else cast(v, self.shapes[v]) for v in (op.lhs, op.rhs, op.acc, *scales)]
        for i, factor in enumerate(factors[:2]):
            if element_of(factor) == "f32":
                remark(op.operation, f"multiplies f32 as tf32: '{('lhs', 'rhs')[i]}' is rounded")
                factors[i] = arith.truncf(vector_type(shape_of(factor), "tf32"), factor)
        self.replace(op, self.put(xetile.TileMmaOp(*factors, d=kind, wg_map_c=wg_map).d, op.result))

    @rule(PREFIX + "truncf")
    def truncf(self, op: Any) -> None:
        if op.result not in self.shapes:
            super().truncf(op)
            return
        self.replace(op, self.put(ours.TruncfOp(op.source, result=op.result.type).result, op.result))

    # Scattered accesses.

    def accessed(self, view: Any, value: ir.Value) -> tuple[ir.Value, ir.Value | None, bool]:
        """The tile that a gather or scatter accesses, its mask, and whether the tile is of a matrix in memory."""
        offsets, mask = view.offsets, view.mask
        if offsets is None:
            refuse(view, "at workgroup level it takes offsets, and no scattered descriptor")
        wg_map = self.map_for(view, value) if not self.has_products or view.operation.name.endswith("store") else None
        masked = None if is_true(mask) else mask
        if chunk_of(view) > 1:
            return self.chunks(view, value), masked and self.chunk_mask(view, value, masked), False
        found = next((form for op, form in self.forms if op == view.operation), None)
        if masked is None and found is not None:
            tile = self.block(view, value, found, wg_map)
            if tile is not None:
                return tile, None, True
        return self.scattered_tile(view.source, value, offsets, wg_map), masked, False

    def scattered_tile(self, source: ir.Value, value: ir.Value, offsets: ir.Value, wg_map: WgMap | None) -> ir.Value:
        """A tile whose elements, of the type of `value`, have an offset each."""
        source = long_address(source)
        space = (
            SHARED if isinstance(source.type, ir.MemRefType) and is_slm(ir.MemRefType(source.type).memory_space) else 0
        )
        attr = TileAttr(wg_map=wg_map, memory_space=space, scattered=True)
        kind = Tile(shape_of(offsets), element_of(value), attr)
        return xetile.InitTileOp(source, None, indices=offsets, tile=kind.to_ir()).tile

    def chunks(self, view: Any, value: ir.Value) -> ir.Value:
        """A tile of several elements that follow each other at each offset."""
        rows, columns = math.prod(self.shapes[view.offsets]), chunk_of(view)
        kind = vector_type((rows, columns), "index")
        starts = xetile.BroadcastOp(cast(view.offsets, (rows, 1)), (1,), result=kind).result
        step = cast(vector.step(vector_type((columns,), "index")), (1, columns))
        at = arith.addi(starts, xetile.BroadcastOp(step, (0,), result=kind).result)
        return self.scattered_tile(view.source, value, at, None)

    def chunk_mask(self, view: Any, value: ir.Value, mask: ir.Value) -> ir.Value:
        """The mask of each element of chunks."""
        rows, columns = math.prod(self.shapes[view.offsets]), chunk_of(view)
        kind = vector_type((rows, columns), "i1")
        return xetile.BroadcastOp(cast(mask, (rows, 1)), (1,), result=kind).result

    def block(self, view: Any, value: ir.Value, found: IndexForm, wg_map: WgMap | None) -> ir.Value | None:
        """The tile of a matrix whose elements have offsets of a form; None if the offsets are not those of a matrix."""
        shape, split = self.shapes[value], self.splits[value]
        rows, columns = matrix(shape, split)
        steps = found.step_of(range(split)), found.step_of(range(split, len(shape)))
        down, along = (None if step is None else constant_part(step) for step in steps)
        size = bit_width(element_of(value)) // 8
        if down is None or along != 1:
            return None
        if rows > 1 and (down < columns or down * size % 16):
            return None
        if size == 0 or columns * size < 64 or self.index_forms.divisor(found.start) * size % 64:
            return None
        address = address_of(view.source)
        if address is None:
            return None
        pitch = down if rows > 1 else columns
        i64 = ir.IntegerType.get_signless(64)
        first = index(self.index_forms.build(found.start, view.operation, self.made))
        moved = arith.addi(address, arith.index_cast(i64, arith.muli(first, index(size))))
        kind = Tile((rows, columns), element_of(value), TileAttr(wg_map=wg_map))
        return xetile.InitTileOp(moved, [0, 0], [rows, columns], [pitch, 1], tile=kind.to_ir(), in_bounds=True).tile

    @rule(PREFIX + "load")
    def load(self, op: Any) -> None:
        tile, mask, is_block = self.accessed(op, op.value)
        made = xetile.LoadTileOp(tile) if is_block else xetile.LoadOp(tile, mask)
        put_hints(made, op)
        self.replace(op, self.put(made.value, op.value))

    @rule(PREFIX + "store")
    def store(self, op: Any) -> None:
        tile, mask, is_block = self.accessed(op, op.value)
        value = cast(op.value, Tile.of(tile).shape)
        put_hints(xetile.StoreTileOp(value, tile) if is_block else xetile.StoreOp(value, tile, mask), op)

    @rule(PREFIX + "prefetch")
    def prefetch(self, op: Any) -> None:
        """Emit nothing: a prefetch changes no value."""

    @rule(PREFIX + "atomic_rmw")
    def atomic_rmw(self, op: Any) -> None:
        if op.offsets is None:
            refuse(op, "at workgroup level it takes offsets, and no scattered descriptor")
        wg_map = None if self.has_products else self.map_for(op, op.value)
        if wg_map is None and self.subgroups == 1:
            wg_map = even_map(matrix(self.shapes[op.value], self.splits[op.value]), self.subgroups)
        tile = self.scattered_tile(op.tdesc, op.value, op.offsets, wg_map)
        mask = None if is_true(op.mask) else op.mask
        self.replace(op, self.put(xetile.AtomicRmwOp(op.kind, op.value, tile, mask).result, op.result))

    # Matrices in shared local memory.

    def matrix_tile(self, view: Any, value: ir.Value) -> tuple[ir.Value, bool]:
        """The tile of a matrix that an op accesses, and whether it is one of rows and columns."""
        desc, buffer = self.buffer(view)
        shape = self.shapes[value]
        rows, columns = matrix(shape, self.splits[value])
        wg_map = None if self.has_products else self.map_for(view, value)
        block, outer, _ = import_common.strides_of(desc)
        plain = all(n == 1 for n in block) and len(desc.shape) == 2 and outer == (desc.shape[1], 1) and len(shape) == 2
        plain = plain and ir.MemRefType(buffer.type).get_strides_and_offset() == ([1], 0)
        if plain:
            memory = ir.MemRefType(buffer.type)
            kind = ir.MemRefType.get(list(desc.shape), memory.element_type, memory_space=memory.memory_space)
            grid = expanded(first_elements(buffer, math.prod(desc.shape)), kind)
            tile = Tile((rows, columns), desc.element, TileAttr(wg_map=wg_map, memory_space=SHARED))
            return xetile.InitTileOp(grid, list(view.offsets), tile=tile.to_ir()).tile, True
        rank, lost = len(desc.shape), len(desc.shape) - len(shape)
        split = lost + self.splits[value]
        indices = _indices((1,) * lost + shape, split)
        parts = [import_common.place_along(desc, d, view.offsets[d], indices[d]) for d in range(rank)]
        where = _spread(arith.addi, parts[:split], parts[split:], (rows, columns))
        attr = TileAttr(wg_map=wg_map, memory_space=SHARED, scattered=True)
        kind_of = Tile((rows, columns), desc.element, attr)
        return xetile.InitTileOp(buffer, None, indices=where, tile=kind_of.to_ir()).tile, False

    @rule(PREFIX + "load_matrix")
    def load_matrix(self, op: Any) -> None:
        tile, plain = self.matrix_tile(op, op.value)
        made = xetile.LoadTileOp(tile) if plain else xetile.LoadOp(tile)
        self.replace(op, self.put(made.value, op.value))

    @rule(PREFIX + "store_matrix")
    def store_matrix(self, op: Any) -> None:
        tile, plain = self.matrix_tile(op, op.value)
        (xetile.StoreTileOp if plain else xetile.StoreOp)(op.value, tile)


# Products whose factors a thread's registers do not hold: loops along K load parts of them, and add their products.

_REGISTER_BYTES = 8192
"""Of a thread of the GPUs that have the fewest."""

_DEPTH = 64
"""The size of a part along K: a multiple of the depth of every instruction, so that the order of sums stays."""


def _split_products(ops: Sequence[ir.Operation]) -> bool:
    """Let products be loops over parts of their factors. Returns whether there were any."""
    found = [op for op in ops if op.name in PRODUCTS and _needs_parts(op.opview)]
    for op in found:
        view: Any = op.opview
        loaded = {name: v.owner.operation for name, v in _factors(view)}
        kind = view.result.type
        with ir.InsertionPoint(op), op.location:
            descs = {name: _part_desc(load.opview, name) for name, load in loaded.items()}
            first = build.zero(kind) if view.acc is None else view.acc
            loop = scf.ForOp(index(0), index(shape_of(view.lhs)[1]), index(_DEPTH), [first])
            with ir.InsertionPoint(loop.body):
                start = loop.induction_variable
                parts = {n: _load_part(load.opview, n, descs[n], start) for n, load in loaded.items()}
                parts |= {"acc": loop.inner_iter_args[0], "layout_cd": view.layout_cd}
                scf.YieldOp([type(view)(**parts, result=kind).result])
        view.result.replace_all_uses_with(loop.results[0])
        for old in (op, *loaded.values()):
            old.erase()
    return bool(found)


def _factors(view: Any) -> Iterator[tuple[str, ir.Value]]:
    """The operands that have a dimension K."""
    for name in ("lhs", "rhs", "scale_a", "scale_b"):
        if (value := getattr(view, name, None)) is not None:
            yield name, value


def _needs_parts(view: Any) -> bool:
    """Whether the factors of a subgroup are more than its registers, and can be loaded in parts at the product."""
    a, b = shape_of(view.lhs), shape_of(view.rhs)
    if len(a) != 2 or len(b) != 2 or a[1] % _DEPTH or view.layout_cd is None or not view.layout_cd.sg_layout:
        return False
    rows, columns = (n // count for n, count in zip((a[0], b[1]), view.layout_cd.sg_layout))
    is_large = (rows + columns) * a[1] * bit_width(element_of(view.lhs)) > 8 * _REGISTER_BYTES
    scales = {"scale_a": (a[0], a[1] // SCALE_BLOCK), "scale_b": (a[1] // SCALE_BLOCK, b[1])}
    return is_large and all(
        shape_of(v) == scales.get(name, shape_of(v)) and _loads_for(defining_op(v), view.operation)
        for name, v in _factors(view)
    )


def _loads_for(load: ir.Operation | None, user: ir.Operation) -> bool:
    """Whether an op loads a matrix for one user in its block, and no op between them may write memory."""
    if load is None or not implements(load, BlockLoad) or load.block != user.block:
        return False
    view: Any = load.opview
    made = defining_op(view.tdesc)
    if made is None or made.name != PREFIX + "create_nd_tdesc" or view.transpose is not None or view.packed:
        return False
    inner = [op.operation for op in load.block.operations]
    between = inner[inner.index(load) + 1 : inner.index(user)]
    is_whole = UpstreamTensorDesc.of(view.tdesc).shape == shape_of(view.value) and len(list(view.value.uses)) == 1
    return is_whole and all(_is_pure(op) or not getattr(op.opview, "effects", {"write"}) - {"read"} for op in between)


def _load_vectors(func: ir.Operation) -> None:
    """Let a function take memrefs in the place of vectors, and load these: each subgroup loads its part."""
    program = func.parent.operation.parent or func.parent
    for argument in func.regions[0].blocks[0].arguments:
        kind = argument.type
        if not isinstance(kind, ir.VectorType):
            continue
        element = element_of(argument)
        if element == "index" or bit_width(element) < 4:
            refuse(func, f"its argument of type {kind} has elements that are not loaded from memory")
        if any(op.name == "gpu.launch_func" and kind in [v.type for v in op.operands] for op in walk(program)):
            refuse(func, f"host code passes its argument of type {kind}", "pass a memref, and load the vector from it")
        argument.set_type(ir.MemRefType.get(kind.shape, kind.element_type))
        uses = [*argument.uses]
        with ir.InsertionPoint.at_block_begin(argument.owner), func.location:
            desc = UpstreamTensorDesc(tuple(kind.shape), element).to_ir()
            tdesc = UpstreamCreateNdTdescOp(argument, [], None, None, tdesc=desc).tdesc
            loaded = UpstreamLoadNdOp(tdesc, [0] * kind.rank, value=kind).value
        for use in uses:
            use.owner.operands[use.operand_number] = loaded


def _is_pure(op: ir.Operation) -> bool:
    """Whether all that an op does is to compute its results. The ops of `vector` that write or print have none."""
    return bool(op.results) and op.name.startswith(_PURE)


def _part_desc(load: Any, factor: str) -> ir.Value:
    """The descriptor of a part of what is loaded whole."""
    made = load.tdesc.owner.operation.opview
    desc = UpstreamTensorDesc.of(load.tdesc)
    size = _DEPTH // SCALE_BLOCK if "scale" in factor else _DEPTH
    shape = (desc.shape[0], size) if factor in ("lhs", "scale_a") else (size, desc.shape[1])
    kind = replace(desc, shape=shape, layout="unit").to_ir()
    places = [list(v) for v in (made.offsets, made.shape, made.strides)]
    return UpstreamCreateNdTdescOp(made.source, *places, tdesc=kind).tdesc


def _load_part(load: Any, factor: str, desc: ir.Value, start: ir.Value) -> ir.Value:
    """The part of what is loaded whole that begins at an index along K."""
    at = arith.divui(start, index(SCALE_BLOCK)) if "scale" in factor else start
    offsets = list(load.offsets) or [0, 0]
    axis = -1 if factor in ("lhs", "scale_a") else -2
    offsets[axis] = add(offsets[axis], at)
    kind = UpstreamTensorDesc.of(desc)
    return UpstreamLoadNdOp(desc, offsets, value=vector_type(kind.shape, kind.element), **given_hints(load)).value


def _splat(kind: ir.Type, value: Index) -> ir.Value:
    """A vector of index whose elements are values or constants."""
    return constant(kind, value) if isinstance(value, int) else broadcast(value, kind)


def _indices(shape: Sequence[int], split: int) -> list[ir.Value]:
    """The indices of a matrix's elements along each dimension of a vector whose first `split` dimensions are its rows.

    Those along rows are of shape (rows, 1), the others of shape (1, columns).
    """
    rows, columns = (math.prod(part) for part in (shape[:split], shape[split:]))
    row, column = (vector.step(vector_type((n,), "index")) for n in (rows, columns))
    numbers = [cast(row, (rows, 1))] * split + [cast(column, (1, columns))] * (len(shape) - split)
    ends = [split] * split + [len(shape)] * (len(shape) - split)
    return [_digit(numbers[d], math.prod(shape[d + 1 : ends[d]]), size) for d, size in enumerate(shape)]


def _spread(
    join: Callable[..., ir.Value], of_rows: Sequence[ir.Value], of_columns: Sequence[ir.Value], shape: tuple[int, int]
) -> ir.Value:
    """Vectors of shape (rows, 1) and vectors of shape (1, columns), joined by an op."""
    both = [(functools.reduce(join, part), axis) for part, axis in ((of_rows, 1), (of_columns, 0)) if part]
    element = element_of(both[0][0])
    wide = vector_type(shape, element)
    return functools.reduce(join, (xetile.BroadcastOp(v, (axis,), result=wide).result for v, axis in both))


def _digit(number: ir.Value, inner: int, size: int) -> ir.Value:
    """The index of numbered elements along a dimension of extent `size` with `inner` elements for each index."""
    if size == 1:
        return _splat(number.type, 0)
    found = number if inner == 1 else arith.divui(number, _splat(number.type, inner))
    return arith.remui(found, _splat(number.type, size))


def _line_of(offset: Any, place: ir.Value, extent: Any) -> tuple[ir.Value, ir.Value]:
    """Indices from an offset on, and which of them are inside of an extent."""
    here = arith.addi(place, _splat(place.type, offset))
    return here, compare("ult", here, _splat(place.type, extent))


def _run_ranges(ops: Sequence[ir.Operation]) -> None:
    """Let all subgroups run code that upstream gives to a range of them: the result is the same."""
    for op in ops:
        if op.name != "scf.if" or "sg_id_range" not in op.attributes:
            continue
        if list(op.regions[1].blocks):
            refuse(op, "some subgroups of its range execute it and others do not")
        with ir.InsertionPoint(op), op.location:
            op.operands[0] = arith.constant(ir.IntegerType.get_signless(1), 1)


def _most_subgroups(ops: Sequence[ir.Operation]) -> int:
    """The subgroups of a workgroup: those of the layouts of products, else the largest number in any layout."""
    products: list[int] = []
    others: list[int] = []
    for op in ops:
        texts = [(n, str(a)) for n, a in op.attributes.items() if "layout" in n]
        if op.name in _MAKES_DESCS:
            texts.append(("", UpstreamTensorDesc.of(op.results[0]).layout))
        for name, text in texts:
            if PREFIX not in text or not text.startswith((Layout.mnemonic(), Slice.mnemonic())):
                continue
            count = subgroups_of(layout_of(text))
            if count:
                (products if name == "layout_cd" else others).append(count)
    return max(products or others or [1])


@lru_cache(maxsize=1024)
def _tile(desc: UpstreamTensorDesc, wg_map: WgMap | None) -> Tile:
    """The tile for a descriptor."""
    space = SHARED if block_attr(desc).memory_space.value == "slm" else GLOBAL
    return Tile(_tile_shape(desc.shape), desc.element, TileAttr(wg_map=wg_map, memory_space=space))


def _tile_shape(shape: Shape) -> Shape:
    """The innermost two dimensions of a block; a line is a row."""
    return (1, *shape)[-2:]
