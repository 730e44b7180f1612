"""Gathers and scatters of no more lanes than a message serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.xegpu_legalize.blocks import hints_of
from xegpu_py.passes.xegpu_legalize.boxes import Box, whole
from xegpu_py.passes.xegpu_legalize.plan import shape_of
from xegpu_py.passes.xegpu_legalize.rewrite import Rewriter, rewrites


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
            for (lane,), desc in layout
        )
    return not low.plan.is_kept(op.results[0])


@rewrites("xegpu.update_offset")
def update_offset(low: Rewriter, op: ir.Operation) -> bool:
    """The lanes of each piece moved."""
    view: Any = op.opview
    for layout in low.plan.layouts_of(op.results[0]):
        low.pieces[op.results[0], layout] = tuple(
            low.build(xegpu.update_offset, piece, low.part(view.offsets, ((lane, desc.lanes),)), mode=view.mode)
            for ((lane,), desc), piece in zip(layout, low.pieces[view.tdesc, layout])
        )
    return not low.plan.is_kept(op.results[0])


def _lanes(low: Rewriter, op: ir.Operation) -> Iterator[tuple[int, TensorDesc, ir.Value]]:
    """(first lane, descriptor's type, descriptor) of each piece."""
    layout = low.plan.uses[op]
    for ((lane,), desc), piece in zip(layout, low.pieces[op.opview.tdesc, layout]):
        yield lane, desc, piece


def _values(value: ir.Value, lane: int, desc: TensorDesc) -> Box:
    shape = shape_of(value)
    assert shape
    return (*whole(shape[:-1]), (lane, desc.lanes))


@rewrites("xegpu.load_gather")
def load_gather(low: Rewriter, op: ir.Operation) -> bool:
    """A gather of each piece."""
    if op not in low.plan.uses:
        return False
    view: Any = op.opview
    parts = [
        low.build(
            xegpu.load_gather,
            piece,
            low.part(view.mask, ((lane, desc.lanes),)),
            mode=view.mode,
            transpose=view.transpose,
            **hints_of(view),
        )
        for lane, desc, piece in _lanes(low, op)
    ]
    _set(low, op, view.value, parts)
    return True


def _set(low: Rewriter, op: ir.Operation, value: ir.Value, parts: list[ir.Value]) -> None:
    shape = shape_of(value)
    assert shape
    lanes = tuple(desc.lanes for _, desc, _ in _lanes(low, op))
    low.set(op.results[0], (*((n,) for n in shape[:-1]), lanes), parts)


@rewrites("xegpu.store_scatter")
def store_scatter(low: Rewriter, op: ir.Operation) -> bool:
    """A scatter of each piece."""
    if op not in low.plan.uses:
        return False
    view: Any = op.opview
    for lane, desc, piece in _lanes(low, op):
        low.build(
            xegpu.store_scatter,
            low.part(view.value, _values(view.value, lane, desc)),
            piece,
            low.part(view.mask, ((lane, desc.lanes),)),
            mode=view.mode,
            memory_scope=view.memory_scope,
            **hints_of(view),
        )
    return True


@rewrites("xegpu.atomic_rmw")
def atomic_rmw(low: Rewriter, op: ir.Operation) -> bool:
    """Atomic operations on the lanes of each piece."""
    if op not in low.plan.uses:
        return False
    view: Any = op.opview
    parts = [
        low.build(
            xegpu.atomic_rmw,
            view.kind,
            low.part(view.value, _values(view.value, lane, desc)),
            piece,
            low.part(view.mask, ((lane, desc.lanes),)),
            mode=view.mode,
        )
        for lane, desc, piece in _lanes(low, op)
    ]
    _set(low, op, view.value, parts)
    return True


@rewrites("xegpu.prefetch")
def prefetch(low: Rewriter, op: ir.Operation) -> bool:
    """A prefetch of each piece."""
    if op not in low.plan.uses:
        return False
    for _, _, piece in _lanes(low, op):
        low.build(xegpu.prefetch, piece, mode=op.opview.mode, **hints_of(op.opview))
    return True
