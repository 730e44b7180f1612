"""The rebuilding of a workgroup's kernel for one of its subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, scf, vector
from xegpu_py.dialects.xetile import BroadcastOp, InitTileOp, ReductionOp, Tile, TileMmaOp, TransposeOp
from xegpu_py.dialects.xetile.agreement import MAP
from xegpu_py.dialects.xetile.compute import subgroups
from xegpu_py.passes.common.builders import Index, add, index
from xegpu_py.passes.xetile.expansion import Expansion, rebuilds
from xegpu_py.passes.xetile.layouts import ACROSS, Layouts, across, check_counts, is_tile
from xegpu_py.passes.xetile.vector_ops import use_tile_ops
from xegpu_py.passes.xetile.vectors import (
    combine,
    element_of,
    is_elementwise,
    is_splat,
    is_vector,
    reshaped,
    resized,
    shape_of,
    splat_of,
)
from xegpu_py.passes.xetile_wg_to_sg.exchange import Subgroup

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.layout import WgTiles
from xegpu_py.layout.tiles import dealing_problem
from xegpu_py.target import Target


class Distribution(Expansion):
    """Rebuilds a kernel with the parts of its vectors and tiles that a subgroup owns, round by round."""

    def __init__(self, func: ir.Operation, target: Target) -> None:
        super().__init__(func)
        self.target = target
        use_tile_ops(func)
        self.layouts = Layouts(func)
        check_counts(func, self.layouts)
        self._subgroup: Subgroup | None = None

    def run(self) -> None:
        super().run()
        if self.subgroup.slm_bytes > self.target.slm_bytes:
            emit_error(
                self.func,
                f"exchanges {self.subgroup.slm_bytes} bytes through shared local memory, of which target "
                f"{self.target.name} has {self.target.slm_bytes}",
                "choose maps by which subgroups have more of what they need, or smaller tiles",
            )

    @property
    def subgroup(self) -> Subgroup:
        """The subgroup that runs."""
        if self._subgroup is None:
            self._subgroup = Subgroup()
        return self._subgroup

    def argument(self, argument: ir.Value) -> list[ir.Value]:
        # The first thing to be built: what is computed of the subgroup's number must stand before its uses.
        assert self.subgroup
        if is_vector(argument) or is_tile(argument):
            emit_error(self.func, f"has an argument of type {argument.type}, which cannot be divided among subgroups")
        return [argument]

    def own(self, given: ir.Value) -> WgTiles:
        """Which subgroup owns which part of an old value."""
        wg_map = self.layouts.get(given)
        shape = Tile.of(given).shape if is_tile(given) else shape_of(given)
        if wg_map is None:
            return WgTiles.of(shape, [1] * len(shape), shape)
        return WgTiles.of(shape, wg_map.sg_layout, wg_map.sg_data)

    def types(self, value: ir.Value) -> list[ir.Type]:
        if not (is_vector(value) or is_tile(value)):
            return [value.type]
        own = self.own(value)
        count = own.own_count
        if is_tile(value):
            return [Tile.of(value).part(own.data).to_ir()] * count
        return [reshaped(value.type, own.data)] * count

    def other(self, op: Any) -> Sequence[ir.Value] | None:
        vectors = [v for v in (*op.operands, *op.results) if is_vector(v)]
        if not vectors:
            return None
        if len(op.results) == 1 and is_splat(op):
            own = self.own(op.results[0])
            return [splat_of(op, [self.one(v) for v in op.operands], own.data)] * own.own_count
        if is_elementwise(op) and len(op.results) == 1:
            return self._elementwise(op)
        if op.name in ("vector.step", "vector.create_mask"):
            return self._placed(op)
        if len(op.results) != 1 or not op.name.startswith(("vector.", "arith.constant")):
            emit_error(op, "on vectors cannot be divided among subgroups")
        return self._undivided(op)

    def _undivided(self, op: ir.Operation) -> list[ir.Value]:
        """An op that works on whole vectors: each subgroup gets all of its operands, and computes all of it."""
        operands = []
        for old in op.operands:
            if is_vector(old) and self.layouts.get(old) is not None:
                operands += self.parts(old, self._everywhere(old), op)
            else:
                operands.append(self.one(old))
        made = op.clone()
        for i, operand in enumerate(operands):
            made.operands[i] = operand
        if MAP in made.attributes:
            del made.attributes[MAP]
        (old,) = op.results
        if not is_vector(old) or self.layouts.get(old) is None:
            return [made.results[0]]
        return self.subgroup.exchange([made.results[0]], self._everywhere(old), self.own(old), op)

    def _everywhere(self, given: ir.Value) -> WgTiles:
        """The division of an old vector by which each subgroup has all of it."""
        shape, wg_map = shape_of(given), self.layouts.get(given)
        assert wg_map is not None
        grid = [subgroups(wg_map), *[1] * (len(shape) - 1)]
        return WgTiles.of(shape, grid, shape)

    @rebuilds("vector.shape_cast")
    def _shape_cast(self, view: Any) -> list[ir.Value]:
        old, new = view.operation.operands[0], view.operation.results[0]
        if self.layouts.get(old) is None or self.layouts.get(new) is None:
            return self._undivided(view.operation)
        return self.subgroup.reshape(self.get(old), self.own(old), self.own(new), view.operation)

    @rebuilds(*ACROSS)
    def _across(self, view: Any) -> list[ir.Value]:
        """Ops that move elements along a dimension of which each subgroup has all."""
        op = view.operation
        (old,) = op.results
        known = self.layouts.get(old)
        if known is None or any(self.layouts.get(v) is None for v in op.operands):
            return self._undivided(op)
        operands = []
        for operand in op.operands:
            operands += self.parts(operand, self._own_across(op, operand, known), view)
        own = self._own_across(op, old, known)
        made = ir.Operation.create(
            op.name,
            results=[reshaped(old.type, own.data)],
            operands=operands,
            attributes={n: op.attributes[n] for n in op.attributes if n != MAP},
        )
        if op.name == "vector.extract_strided_slice":
            made.attributes["sizes"] = ir.ArrayAttr.get(
                [ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n) for n in own.data]
            )
        return self.subgroup.exchange([made.results[0]], own, self.own(old), op)

    def _own_across(self, op: ir.Operation, value: ir.Value, known: Any) -> WgTiles:
        wg_map = across(op, value, known)
        assert wg_map is not None
        return WgTiles.of(shape_of(value), wg_map.sg_layout, wg_map.sg_data)

    def parts(self, old: ir.Value, want: WgTiles, user: Any) -> list[ir.Value]:
        """The parts of an old vector that the subgroup needs."""
        return self.subgroup.exchange(self.get(old), self.own(old), want, user.operation)

    def _elementwise(self, op: ir.Operation) -> list[ir.Value]:
        own = self.own(op.results[0])
        groups = [self.parts(v, own, op) if is_vector(v) else None for v in op.operands]
        found = []
        for i in range(own.own_count):
            operands = [self.one(v) if g is None else g[i] for v, g in zip(op.operands, groups)]
            found += resized(op, operands, own.data)
        return found

    def _placed(self, op: ir.Operation) -> list[ir.Value]:
        """Vectors whose elements depend on where they are: `vector.step` and `vector.create_mask`."""
        own = self.own(op.results[0])
        kind = reshaped(op.results[0].type, own.data)
        found = []
        for start in self.subgroup.starts(own):
            if op.name == "vector.step":
                first = vector.broadcast(kind, index(start[0]))
                found.append(arith.addi(vector.step(kind), first))
                continue
            bounds = [arith.subi(self.one(b), index(s)) for b, s in zip(op.operands, start)]
            found.append(vector.create_mask(kind, bounds))
        return found

    @rebuilds("xetile.init_tile")
    def _init_tile(self, view: InitTileOp) -> list[ir.Value]:
        tile, own = Tile.of(view.tile), self.own(view.tile)
        kind = tile.part(own.data).to_ir()
        source = self.one(view.source)
        if view.indices is not None:
            parts = self.parts(view.indices, own, view)
            return [InitTileOp(source, [], indices=p, tile=kind).tile for p in parts]
        offsets, shape, strides = (
            [v if isinstance(v, int) else self.one(v) for v in group]
            for group in (view.offsets, view.shape, view.strides)
        )
        made = []
        for start in self.subgroup.starts(own):
            moved: list[Index] = [*offsets[:-2], *(add(a, b) for a, b in zip(offsets[-2:], start))]
            made.append(
                InitTileOp(source, moved, shape or None, strides or None, tile=kind, in_bounds=view.in_bounds).tile
            )
        return made

    @rebuilds("xetile.update_tile_offset")
    def _update(self, view: Any) -> list[ir.Value]:
        tiles = self.get(view.tile)
        if view.indices is not None:
            parts = self.parts(view.indices, self.own(view.tile), view)
            return [type(view)(t, [], indices=p, result=t.type).result for t, p in zip(tiles, parts, strict=True)]
        offsets = [v if isinstance(v, int) else self.one(v) for v in view.offsets]
        return [type(view)(t, offsets, result=t.type).result for t in tiles]

    @rebuilds("xetile.prefetch_tile")
    def _prefetch(self, view: Any) -> list[ir.Value]:
        for tile in self.get(view.tile):
            type(view)(tile, l1_hint=view.l1_hint, l2_hint=view.l2_hint, l3_hint=view.l3_hint)
        return []

    @rebuilds("xetile.load_tile", "xetile.load")
    def _load(self, view: Any) -> list[ir.Value]:
        own = self.own(view.value)
        masks: Sequence[ir.Value | None] = [None] * own.own_count
        scattered = view.operation.name == "xetile.load"
        if scattered and view.mask is not None:
            masks = self.parts(view.mask, own, view)
        hints = {n: getattr(view, n) for n in ("padding", "l1_hint", "l2_hint", "l3_hint")}
        kind = reshaped(view.value.type, own.data)
        return [
            type(view)(t, *([m] if scattered else []), value=kind, **hints).value
            for t, m in zip(self.get(view.tile), masks, strict=True)
        ]

    @rebuilds("xetile.store_tile", "xetile.store", "xetile.atomic_rmw")
    def _store(self, view: Any) -> list[ir.Value]:
        """Stores and atomic ops: of the subgroups that share a part the first one does it."""
        own = self.own(view.tile)
        first = self.subgroup.is_first(own)
        name = view.operation.name
        values = self.parts(view.value, own, view)
        masks: Sequence[ir.Value | None] = [None] * len(values)
        if name != "xetile.store_tile" and view.mask is not None:
            masks = self.parts(view.mask, own, view)
        updates = name == "xetile.atomic_rmw"
        expected: Sequence[ir.Value | None] = [None] * len(values)
        if updates and view.expected is not None:
            expected = self.parts(view.expected, own, view)

        def act() -> list[ir.Value]:
            found = []
            for part, tile, mask, wanted in zip(values, self.get(view.tile), masks, expected, strict=True):
                if updates:
                    found.append(type(view)(view.kind, part, tile, mask, wanted, result=part.type).result)
                    continue
                hints = {n: getattr(view, n) for n in ("l1_hint", "l2_hint", "l3_hint")}
                type(view)(part, tile, *([mask] if name == "xetile.store" else []), **hints)
            return found

        if first is None:
            return act()
        if updates and next(iter(view.result.uses), None) is not None:
            return self.subgroup.by_first(act, element_of(view.value), own, view.operation)
        branch = scf.IfOp(first)
        with ir.InsertionPoint(branch.then_block):
            act()
            scf.yield_([])
        return values if updates else []

    @rebuilds("gpu.printf")
    def _printf(self, view: Any) -> list[ir.Value]:
        """A workgroup prints once."""
        op = view.operation
        first = arith.cmpi(arith.CmpIPredicate.eq, self.subgroup.id, index(0))
        branch = scf.IfOp(first)
        with ir.InsertionPoint(branch.then_block):
            made = op.clone()
            for i, value in enumerate(op.operands):
                made.operands[i] = self.one(value)
            scf.yield_([])
        return []

    @rebuilds("xetile.tile_mma")
    def _mma(self, view: TileMmaOp) -> list[ir.Value]:
        own = self.own(view.d)
        rows, columns = own.data
        depth = shape_of(view.b)[0]
        a_own = WgTiles.of(shape_of(view.a), own.grid, (rows, depth))
        b_own = WgTiles.of(shape_of(view.b), own.grid, (depth, columns))
        a, b = self.parts(view.a, a_own, view), self.parts(view.b, b_own, view)
        count = own.own_count
        c: Sequence[ir.Value | None] = [None] * count if view.c is None else self.parts(view.c, own, view)
        kind = reshaped(view.d.type, own.data)
        across = own.rounds[1]
        return [TileMmaOp(a[i // across], b[i % across], c[i], d=kind).d for i in range(count)]

    @rebuilds("xetile.convert_layout")
    def _convert(self, view: Any) -> list[ir.Value]:
        return self.parts(view.value, self.own(view.result), view)

    @rebuilds("xetile.transpose")
    def _transpose(self, view: TransposeOp) -> list[ir.Value]:
        own = self.own(view.result)
        if view.permutation == (0, 1):
            return self.parts(view.value, own, view)
        parts = self.parts(view.value, own.transposed(), view)
        kind = reshaped(view.result.type, own.data)
        made = [TransposeOp(p, (1, 0), result=kind).result for p in parts]
        down, across = own.rounds
        return [made[c * down + r] for r in range(down) for c in range(across)]

    @rebuilds("xetile.broadcast")
    def _broadcast(self, view: BroadcastOp) -> list[ir.Value]:
        (dim,) = view.dims
        times = view.broadcast_size
        given = self.own(view.result)
        own = _in_groups(given, dim, times or 1)
        want = own.replaced(dim, own.shape[dim] // times, own.data[dim] // times) if times else own.replaced(dim, 1, 1)
        parts = self.parts(view.value, want, view)
        kind = reshaped(view.result.type, own.data)
        across = own.rounds[1]
        found = []
        for i in range(own.own_count):
            row, column = divmod(i, across)
            place = column if times is None and dim == 0 else row if times is None else i
            if times is not None and want.data[dim] == 1:
                found.append(BroadcastOp(parts[place], view.dims, result=kind).result)
            else:
                found.append(BroadcastOp(parts[place], view.dims, result=kind, broadcast_size=times).result)
        return self.subgroup.exchange(found, own, given, view.operation)

    @rebuilds("xetile.reduction")
    def _reduction(self, view: ReductionOp) -> list[ir.Value]:
        (dim,) = view.dims
        given, want = self.own(view.value), self.own(view.result)
        size = view.reduction_size or given.shape[dim]
        have = _in_groups(given, dim, size) if size < given.shape[dim] else given
        parts = self.subgroup.exchange(self.get(view.value), given, have, view.operation)
        data, owners = have.data[dim], have.owners[dim]
        if data % size == 0:
            local = have.replaced(dim, have.shape[dim] // size, data // size)
            parts = [self._reduced(view, p, size) for p in parts]
            return self.subgroup.exchange(parts, local, want, view.operation)
        parts = self._combined(view, have)
        # What is left of each subgroup, side by side.
        partial = have.replaced(dim, owners, 1)
        whole = want.replaced(dim, owners, owners)
        gathered = self.subgroup.exchange(parts, partial, whole, view.operation)
        return [self._reduced(view, p, owners) for p in gathered]

    def _combined(self, view: ReductionOp, have: WgTiles) -> list[ir.Value]:
        """The parts of a subgroup that lie one behind the other along the dimension, combined and reduced."""
        (dim,) = view.dims
        down, across = have.rounds
        parts = self.get(view.value)
        lines = (
            [parts[c::across] for c in range(across)]
            if dim == 0
            else [parts[r * across : (r + 1) * across] for r in range(down)]
        )
        found = []
        for line in lines:
            total = line[0]
            for part in line[1:]:
                total = combine(view.kind.value, total, part)
            found.append(self._reduced(view, total, have.data[dim]))
        return found

    @staticmethod
    def _reduced(view: ReductionOp, part: ir.Value, size: int) -> ir.Value:
        (dim,) = view.dims
        if size == 1:
            return part
        shape = tuple(n // size if i == dim else n for i, n in enumerate(shape_of(part)))
        given = size if shape[dim] > 1 else None
        made: ir.Value = ReductionOp(
            view.kind, part, view.dims, result=reshaped(part.type, shape), reduction_size=given
        ).result
        return made


def _in_groups(own: WgTiles, dim: int, size: int) -> WgTiles:
    """A division like this one whose parts hold whole groups of `size` elements along a dimension."""
    whole = own.shape[dim]
    fitting = [n for n in range(size, whole + 1, size) if dealing_problem(whole, own.grid[dim], n) is None]
    return own if own.data[dim] % size == 0 else own.replaced(dim, whole, fitting[0])
