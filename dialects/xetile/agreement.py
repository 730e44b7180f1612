"""Agreement of maps between the op that makes a value and those that use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects.xetile.compute import (
    BroadcastOp,
    ConvertLayoutOp,
    ReductionOp,
    TileMmaOp,
    TransposeOp,
    subgroups,
)
from xegpu_py.dialects.xetile.scattered import AtomicRmwOp, LoadOp, StoreOp
from xegpu_py.dialects.xetile.tiles import LoadTileOp, StoreTileOp
from xegpu_py.dialects.xetile.types import Tile, WgMap, XeTile
from xegpu_py.ir.bodies import Bodies
from xegpu_py.ir.diagnostics import Diagnostic, op_error, position_of
from xegpu_py.ir.operation import Operation
from xegpu_py.ir.verifier import walk

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
        found: WgMap | None = view.wg_map_c
        return found
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


def subgroups_of(func: ir.Operation) -> int | None:
    """The number of subgroups of a kernel's maps; None if it has no maps, and is a kernel of one subgroup."""
    for op in walk(func):
        given = [Tile.of(v).wg_map for v in op.results if Tile.accepts(str(v.type))]
        texts = [str(op.attributes[name]) for name in op.attributes]
        given += [WgMap.decode(t) for t in texts if t.startswith(f"{WgMap.mnemonic()}<")]
        for wg_map in given:
            if wg_map:
                return subgroups(wg_map)
    return None


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
def disagreements(ops: Sequence[Operation], bodies: Bodies) -> list[Diagnostic]:
    """Operands for which an op requires another map than their defining op gives them."""
    found = []
    for view in ops:
        for name, operand, wanted in wanted_maps(view):
            given = given_map(operand)
            if given and given != wanted:
                made = position_of(operand.owner.location)
                message = f"requires '{name}' to have the map {wanted}, but got {given}"
                origin = Diagnostic("note", f"'{operand.owner.name}' gives the operand this map", made)
                found.append(op_error(view, message, origin, "use xetile.convert_layout to change the map of a value"))
    return found
