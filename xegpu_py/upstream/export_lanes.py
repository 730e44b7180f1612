"""Exporting kernels of work items: which of our fragments exist at upstream's lane level, which has no maps.

At lane level a block is a vector of one dimension. Its elements are in the order in which the message leaves them in
registers.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
from mlir import ir

from xegpu_py.dialects import xegpu as ours
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.passes.common.fragments import Placements, coordinates, of_registers
from xegpu_py.passes.common.values import shape_of
from xegpu_py.upstream.rebuilding import LANES, element_of


def refuse_export(op: ir.Operation | ir.OpView, reason: str, *notes: str) -> NoReturn:
    """Raise the diagnostic that an op cannot be exported.

    Raises:
        DiagnosticError: always.
    """
    emit_error(op, f"cannot be exported: {reason}", *notes)


class LaneExport:
    """The fragments of blocks in a kernel of work items."""

    def __init__(self, func: ir.Operation) -> None:
        self.placements = Placements(func)

    def load(self, view: Any) -> tuple[dict[str, Any], tuple[int, ...]]:
        """The attributes of upstream's load, and the shape of the elements of each block.

        Raises:
            DiagnosticError: if lanes have other elements than any load of upstream's leaves them.
        """
        desc = _mapped(view)
        rows, columns = _fragment(desc)
        if view.transpose is not None and tuple(view.transpose) == (1, 0):
            if desc.bits != 32 or view.vnni_axis is not None or not _is(desc, (LANES, 1), (1, 1)):
                self.refuse(view, desc)
            return {"transpose": (1, 0)}, (columns, rows)
        if view.vnni_axis == 1:
            self.refuse(view, desc)
        side = max(16 // desc.bits, 1)
        if view.vnni_axis is None and _is(desc, (1, LANES), (1, side)):
            return {}, (rows, columns) if len(desc.shape) > 1 else (columns,)
        if desc.bits >= 32 or len(desc.shape) == 1 or desc.shape[1] != LANES or not _is(desc, (1, LANES), (1, 1)):
            self.refuse(view, desc)
        factor = 32 // desc.bits
        return {"packed": True}, (rows, columns) if view.vnni_axis is None else (rows // factor, columns, factor)

    def store(self, view: Any) -> None:
        """Check the fragments that lanes store.

        Raises:
            DiagnosticError: if they have other elements than upstream's store takes from them.
        """
        desc = _mapped(view)
        if not _is(desc, (1, LANES), (1, max(16 // desc.bits, 1))):
            self.refuse(view, desc)

    def refuse(self, view: Any, desc: ours.TensorDesc) -> NoReturn:
        """Raise that lanes have other elements than upstream's lane level gives them."""
        refuse_export(
            view,
            f"its {desc.attr.map} does not leave elements where upstream's lane level has them",
            f"there wi_layout is [1, {LANES}], with units of 16 bits or more of each row, or with columns of what is "
            f"packed; or [{LANES}, 1] of what is transposed",
        )

    def check_product(self, view: Any) -> None:
        """Check that the fragments of a product lie as dpas's registers have them.

        Raises:
            DiagnosticError: if the maps of their defining ops give another layout.
        """
        a, b, d = (math.prod(shape_of(v)) * LANES for v in (view.lhs, view.rhs, view.result))
        bits = bit_width(element_of(view.rhs))
        factor = max(32 // bits, 1)
        rows, depth = d // LANES, b // LANES
        shapes = {
            "lhs": (view.lhs, (rows, depth)),
            "rhs": (view.rhs, (depth // factor, LANES, factor) if factor > 1 else (depth, LANES)),
            "result": (view.result, (rows, LANES)),
        }
        for role, (value, shape) in shapes.items():
            for found in self.placements.of(value):
                expected = of_registers(shape, LANES, bit_width(element_of(value)))
                if not found.same(expected):
                    refuse_export(view, f"its {role} does not lie as dpas's registers have it")
        if a != rows * depth:
            refuse_export(view, f"its lhs has {a} elements in a subgroup, which are not {rows} rows of {depth}")


def _mapped(view: Any) -> ours.TensorDesc:
    """The descriptor of an op on a block that lanes divide."""
    desc = ours.TensorDesc.of(view.tdesc)
    if desc.attr.map is None:
        refuse_export(view, "all work items have the whole block, as its descriptor has no sg_map", "give it an sg_map")
    if math.prod(desc.attr.map.wi_layout) != LANES:
        refuse_export(view, f"its sg_map is of {math.prod(desc.attr.map.wi_layout)} work items, not {LANES}")
    return desc


def _fragment(desc: ours.TensorDesc) -> tuple[int, int]:
    """The rows and columns of a lane's part of a block."""
    found = desc.fragment()[-2:]
    return (1, found[-1]) if len(desc.shape) == 1 else (found[0], found[1])


def _is(desc: ours.TensorDesc, layout: tuple[int, int], data: tuple[int, int]) -> bool:
    """Whether a descriptor's map gives lanes the same elements as another map."""
    rows, columns = (1, *desc.shape) if len(desc.shape) == 1 else desc.shape
    if rows % layout[0] or columns % (layout[1] * data[1]) or desc.attr.map is None:
        return False
    wanted = coordinates(desc.shape, ours.SgMap(layout, data))
    return np.array_equal(coordinates(desc.shape, desc.attr.map), wanted)
