"""Gathers and scatters of no more lanes than a message serves."""

from __future__ import annotations

from typing import Any

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.passes.common.messages import hints_of
from xegpu_py.passes.common.values import shape_of
from xegpu_py.passes.xegpu_legalize.boxes import whole
from xegpu_py.passes.xegpu_legalize.conversion import Legalization, pattern
from xegpu_py.passes.xegpu_legalize.layouts import layout_of
from xegpu_py.passes.xegpu_legalize.shapes import pieces_of


@pattern("xegpu.create_tdesc")
def create_tdesc(low: Legalization, op: ir.Operation) -> None:
    """A descriptor for some of the lanes each."""
    view: Any = op.opview
    for layout in low.plan.layouts_of(op.results[0]):
        low.pieces[op.results[0], layout] = tuple(
            xegpu.create_tdesc(
                view.source,
                low.part(view.offsets, ((lane, desc.lanes),)),
                tdesc=desc,
                mode=view.mode,
                chunk_size_per_lane=view.chunk_size_per_lane,
            )
            for (lane,), desc in pieces_of(layout)
        )
    low.keep_if_needed(op)


@pattern("xegpu.update_offset")
def update_offset(low: Legalization, op: ir.Operation) -> None:
    """The lanes of each piece moved."""
    view: Any = op.opview
    for layout in low.plan.layouts_of(op.results[0]):
        low.pieces[op.results[0], layout] = tuple(
            xegpu.update_offset(piece, low.part(view.offsets, ((lane, desc.lanes),)), mode=view.mode)
            for ((lane,), desc), piece in zip(pieces_of(layout), low.pieces[view.tdesc, layout])
        )
    low.keep_if_needed(op)


Piece = tuple[int, int, ir.Value]
"""The first of the lanes of an access that a message serves, how many it serves, and their descriptor."""


def _lanes(low: Legalization, op: ir.Operation) -> list[Piece]:
    """The pieces of an access; none if it stays as it is."""
    layout = layout_of(low.plan, op)
    if layout is None:
        return []
    pieces = zip(pieces_of(layout), low.pieces[op.opview.tdesc, layout])
    return [(lane, desc.lanes, piece) for ((lane,), desc), piece in pieces]


def _part(low: Legalization, value: ir.Value, lane: int, lanes: int) -> ir.Value:
    """The elements of some of the lanes, which are the innermost dimension."""
    return low.part(value, (*whole(shape_of(value)[:-1]), (lane, lanes)))


def _replace(low: Legalization, op: ir.Operation, pieces: list[Piece], parts: list[ir.Value]) -> None:
    """Replace an access by those of its pieces, and its result, if it has one, by theirs."""
    if not pieces:
        low.keep(op)
    elif op.results:
        outer = shape_of(op.results[0])[:-1]
        low.divide(op, (*((n,) for n in outer), tuple(lanes for _, lanes, _ in pieces)), parts)
    else:
        low.erase(op)


@pattern("xegpu.load_gather")
def load_gather(low: Legalization, op: ir.Operation) -> None:
    """A gather of each piece."""
    view: Any = op.opview
    given = {"mode": view.mode, "transpose": view.transpose, **hints_of(view)}
    pieces = _lanes(low, op)
    parts = [xegpu.load_gather(piece, _part(low, view.mask, lane, n), **given) for lane, n, piece in pieces]
    _replace(low, op, pieces, parts)


@pattern("xegpu.store_scatter")
def store_scatter(low: Legalization, op: ir.Operation) -> None:
    """A scatter of each piece."""
    view: Any = op.opview
    given = {"mode": view.mode, "memory_scope": view.memory_scope, **hints_of(view)}
    pieces = _lanes(low, op)
    for lane, n, piece in pieces:
        xegpu.store_scatter(_part(low, view.value, lane, n), piece, _part(low, view.mask, lane, n), **given)
    _replace(low, op, pieces, [])


@pattern("xegpu.atomic_rmw")
def atomic_rmw(low: Legalization, op: ir.Operation) -> None:
    """Atomic operations on the lanes of each piece."""
    view: Any = op.opview
    pieces, parts = _lanes(low, op), []
    for lane, n, piece in pieces:
        value, mask = (_part(low, v, lane, n) for v in (view.value, view.mask))
        expected = None if view.expected is None else _part(low, view.expected, lane, n)
        parts.append(xegpu.atomic_rmw(view.kind, value, piece, mask, expected, mode=view.mode))
    _replace(low, op, pieces, parts)


@pattern("xegpu.prefetch")
def prefetch(low: Legalization, op: ir.Operation) -> None:
    """A prefetch of each piece."""
    pieces = _lanes(low, op)
    for _, _, piece in pieces:
        xegpu.prefetch(piece, mode=op.opview.mode, **hints_of(op.opview))
    _replace(low, op, pieces, [])
