"""Changes of layout."""

from __future__ import annotations

import math

import numpy as np
from mlir import ir
from xegpu_py.passes.vector_distribute.distributor import Distributor, distributes, element_of
from xegpu_py.passes.vector_distribute.memory import through_memory

from xegpu_py.layout import NestedLayout

_MOST_PLACES = 1 << 22
"""Lanes times registers up to which it is worth finding out whether a change moves nothing between lanes."""


def within_lanes(source: NestedLayout, target: NestedLayout) -> list[int] | None:
    """For each position of the target, the position of the source in the same lane; None if lanes differ in that."""
    subgroups = math.lcm(source.subgroups.period, target.subgroups.period)
    threads = math.lcm(source.threads.period, target.threads.period)
    if subgroups * threads * math.prod(target.distributed_shape) > _MOST_PLACES:
        return None
    s, t = np.ogrid[:subgroups, :threads]
    have, want = (
        np.ravel_multi_index(x.indices(s, t, subgroups=subgroups, threads=threads), x.shape) if x.rank else None
        for x in (source, target)
    )
    if have is None or want is None:
        return [0]
    order = np.argsort(have[0, 0])
    places = np.searchsorted(have[0, 0][order], want[0, 0])
    if (places >= order.size).any():
        return None
    found = order[places]
    return found.tolist() if np.array_equal(have[..., found], want) else None


@distributes("iree_vector_ext.to_layout")
def to_layout(d: Distributor, op: ir.Operation) -> None:
    """Nothing where lanes have what they need already, a shuffle of registers, or a way through shared local memory."""
    value, result = op.operands[0], op.results[0]
    source, target = d.layouts.get(value), d.layout(op, result)
    if source is None:
        source = target
    part = d.part(value)
    kind = d.part_type(target, element_of(result))
    places = within_lanes(source, target)
    if places is None:
        d.replace(op, *through_memory(d, part, source, target))
        return
    size = math.prod(source.distributed_shape)
    if places != list(range(size)):
        element = element_of(result)
        flat = d.create("vector.shape_cast", [ir.VectorType.get([size], element)], [part])
        attributes = {"mask": ir.DenseI64ArrayAttr.get(places)}
        part = d.create("vector.shuffle", [ir.VectorType.get([len(places)], element)], [flat, flat], attributes)
    d.replace(op, part if part.type == kind else d.create("vector.shape_cast", [kind], [part]))
