"""Splits gathers and scatters into those of at most the lanes of one message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.passes.common.messages import hints_of
from xegpu_py.passes.common.values import shape_of
from xegpu_py.passes.xegpu_legalize.boxes import whole
from xegpu_py.passes.xegpu_legalize.conversion import Legalization, pattern
from xegpu_py.passes.xegpu_legalize.shapes import Layout, pieces_of


@pattern("xegpu.create_tdesc")
def create_tdesc(low: Legalization, op: ir.Operation) -> None:
    """A descriptor for each group of lanes."""
    view: Any = op.opview

    def make(layout: Layout) -> Iterator[ir.Value]:
        for (lane,), desc in pieces_of(layout):
            offsets, chunk = low.part(view.offsets, ((lane, desc.lanes),)), view.chunk_size_per_lane
            yield xegpu.create_tdesc(view.source, offsets, tdesc=desc, mode=view.mode, chunk_size_per_lane=chunk)

    low.in_pieces(op, make)


@pattern("xegpu.update_offset")
def update_offset(low: Legalization, op: ir.Operation) -> None:
    """Move the lanes of each piece."""
    view: Any = op.opview

    def make(layout: Layout) -> Iterator[ir.Value]:
        for ((lane,), desc), piece in zip(pieces_of(layout), low.pieces[view.tdesc, layout]):
            yield xegpu.update_offset(piece, low.part(view.offsets, ((lane, desc.lanes),)), mode=view.mode)

    low.in_pieces(op, make)


def _pieces(low: Legalization, op: ir.Operation) -> Iterator[tuple[ir.Value, Callable[[ir.Value], ir.Value]]]:
    """For each message of an access, its descriptor and a function that takes its lanes' part of a vector."""
    layout = low.layout
    for ((lane,), desc), piece in zip(pieces_of(layout), low.pieces[op.opview.tdesc, layout]):

        def part(value: ir.Value, lanes: tuple[int, int] = (lane, desc.lanes)) -> ir.Value:
            return low.part(value, (*whole(shape_of(value)[:-1]), lanes))

        yield piece, part


def _replace(low: Legalization, op: ir.Operation, parts: list[ir.Value]) -> None:
    """Replace the result of an access by the results of its messages."""
    outer, lanes = shape_of(op.results[0])[:-1], tuple(shape_of(part)[-1] for part in parts)
    low.divide(op, (*((n,) for n in outer), lanes), parts)


@pattern("xegpu.load_gather")
def load_gather(low: Legalization, op: ir.Operation) -> None:
    """A gather of each piece."""
    view: Any = op.opview
    given = {"mode": view.mode, "transpose": view.transpose, **hints_of(view)}
    _replace(low, op, [xegpu.load_gather(piece, part(view.mask), **given) for piece, part in _pieces(low, op)])


@pattern("xegpu.store_scatter")
def store_scatter(low: Legalization, op: ir.Operation) -> None:
    """A scatter of each piece."""
    view: Any = op.opview
    given = {"mode": view.mode, "memory_scope": view.memory_scope, **hints_of(view)}
    for piece, part in _pieces(low, op):
        xegpu.store_scatter(part(view.value), piece, part(view.mask), **given)
    low.erase(op)


@pattern("xegpu.atomic_rmw")
def atomic_rmw(low: Legalization, op: ir.Operation) -> None:
    """Atomic operations on the lanes of each piece."""
    view: Any = op.opview
    parts = []
    for piece, part in _pieces(low, op):
        value, mask = part(view.value), part(view.mask)
        expected = None if view.expected is None else part(view.expected)
        parts.append(xegpu.atomic_rmw(view.kind, value, piece, mask, expected, mode=view.mode))
    _replace(low, op, parts)


@pattern("xegpu.prefetch")
def prefetch(low: Legalization, op: ir.Operation) -> None:
    """A prefetch of each piece."""
    for piece, _ in _pieces(low, op):
        xegpu.prefetch(piece, mode=op.opview.mode, **hints_of(op.opview))
    low.erase(op)
