"""Gathers and scatters of no more lanes than a message serves."""

from __future__ import annotations

from typing import Any

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.xegpu_legalize.blocks import hints_of
from xegpu_py.passes.xegpu_legalize.boxes import Box, whole
from xegpu_py.passes.xegpu_legalize.layouts import layout_of
from xegpu_py.passes.xegpu_legalize.plan import shape_of
from xegpu_py.passes.xegpu_legalize.rewrite import Rewriter, rewrites
from xegpu_py.passes.xegpu_legalize.shapes import pieces_of


@rewrites("xegpu.create_tdesc")
def create_tdesc(low: Rewriter, op: ir.Operation) -> bool:
    """A descriptor for some of the lanes each."""
    view: Any = op.opview
    for layout in low.plan.layouts_of(op.results[0]):
        low.pieces[op.results[0], layout] = tuple(
            low.build(
                xegpu.create_tdesc,
                view.source,
                low.part(view.offsets, ((lane, desc.lanes),)),
                tdesc=desc,
                mode=view.mode,
                chunk_size_per_lane=view.chunk_size_per_lane,
            )
            for (lane,), desc in pieces_of(layout)
        )
    return not low.plan.is_kept(op.results[0])


@rewrites("xegpu.update_offset")
def update_offset(low: Rewriter, op: ir.Operation) -> bool:
    """The lanes of each piece moved."""
    view: Any = op.opview
    for layout in low.plan.layouts_of(op.results[0]):
        low.pieces[op.results[0], layout] = tuple(
            low.build(xegpu.update_offset, piece, low.part(view.offsets, ((lane, desc.lanes),)), mode=view.mode)
            for ((lane,), desc), piece in zip(pieces_of(layout), low.pieces[view.tdesc, layout])
        )
    return not low.plan.is_kept(op.results[0])


Piece = tuple[int, TensorDesc, ir.Value]


def _lanes(low: Rewriter, op: ir.Operation) -> list[Piece]:
    """(first lane, descriptor's type, descriptor) of each piece; nothing if the op is left as it is."""
    layout = layout_of(low.plan, op)
    if layout is None:
        return []
    found = low.pieces[op.opview.tdesc, layout]
    return [(lane, desc, piece) for ((lane,), desc), piece in zip(pieces_of(layout), found)]


def _values(value: ir.Value, lane: int, desc: TensorDesc) -> Box:
    shape = shape_of(value)
    assert shape
    return (*whole(shape[:-1]), (lane, desc.lanes))


@rewrites("xegpu.load_gather")
def load_gather(low: Rewriter, op: ir.Operation) -> bool:
    """A gather of each piece."""
    view: Any = op.opview
    pieces = _lanes(low, op)
    parts = [
        low.build(
            xegpu.load_gather,
            piece,
            low.part(view.mask, ((lane, desc.lanes),)),
            mode=view.mode,
            transpose=view.transpose,
            **hints_of(view),
        )
        for lane, desc, piece in pieces
    ]
    _set(low, op, view.value, pieces, parts)
    return bool(pieces)


def _set(low: Rewriter, op: ir.Operation, value: ir.Value, pieces: list[Piece], parts: list[ir.Value]) -> None:
    if not pieces:
        return
    shape = shape_of(value)
    assert shape
    lanes = tuple(desc.lanes for _, desc, _ in pieces)
    low.set(op.results[0], (*((n,) for n in shape[:-1]), lanes), parts)


@rewrites("xegpu.store_scatter")
def store_scatter(low: Rewriter, op: ir.Operation) -> bool:
    """A scatter of each piece."""
    view: Any = op.opview
    pieces = _lanes(low, op)
    for lane, desc, piece in pieces:
        low.build(
            xegpu.store_scatter,
            low.part(view.value, _values(view.value, lane, desc)),
            piece,
            low.part(view.mask, ((lane, desc.lanes),)),
            mode=view.mode,
            memory_scope=view.memory_scope,
            **hints_of(view),
        )
    return bool(pieces)


@rewrites("xegpu.atomic_rmw")
def atomic_rmw(low: Rewriter, op: ir.Operation) -> bool:
    """Atomic operations on the lanes of each piece."""
    view: Any = op.opview
    pieces = _lanes(low, op)
    parts = [
        low.build(
            xegpu.atomic_rmw,
            view.kind,
            low.part(view.value, _values(view.value, lane, desc)),
            piece,
            low.part(view.mask, ((lane, desc.lanes),)),
            None if view.expected is None else low.part(view.expected, _values(view.value, lane, desc)),
            mode=view.mode,
        )
        for lane, desc, piece in pieces
    ]
    _set(low, op, view.value, pieces, parts)
    return bool(pieces)


@rewrites("xegpu.prefetch")
def prefetch(low: Rewriter, op: ir.Operation) -> bool:
    """A prefetch of each piece."""
    pieces = _lanes(low, op)
    for _, _, piece in pieces:
        low.build(xegpu.prefetch, piece, mode=op.opview.mode, **hints_of(op.opview))
    return bool(pieces)
