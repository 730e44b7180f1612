"""The transforms of block loads, in registers: transposition, and VNNI packing."""

from __future__ import annotations

from typing import Any

from mlir import ir

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.shapes import block_shapes, vnni_factor
from xegpu_py.passes.common.builders import shape_cast, transpose
from xegpu_py.passes.common.values import shape_of


def plain_shape(view: Any) -> tuple[int, ...]:
    """The shape of a load without its transform. The blocks of an array are a dimension if the result has it."""
    desc, rank = TensorDesc.of(view.tdesc), len(shape_of(view.value))
    # The result may have a dimension for packed elements, or for the elements of a transposed unit of one block.
    further = view.vnni_axis is not None or (desc.attr.array_length == 1 and rank > len(desc.shape))
    return next(s for s in block_shapes(desc, Mode.VC) if len(s) == rank - further)


def transformed(view: Any, plain: ir.Value) -> ir.Value:
    """The result of a load from the block that was loaded without the load's transform."""
    desc, shape = TensorDesc.of(view.tdesc), shape_of(plain)
    lead = len(shape) - len(desc.shape)
    if view.vnni_axis is not None:
        return vnni_packed(plain, lead + view.vnni_axis, vnni_factor(desc.bits))
    # Units of several elements keep their order.
    unit = (view.transpose_bit_width or desc.bits) // desc.bits
    order = [*range(lead), *(lead + i for i in view.transpose)]
    if unit > 1:
        plain = shape_cast(plain, (*shape[:-1], shape[-1] // unit, unit))
        order.append(len(shape))
    return shape_cast(transpose(plain, order), shape_of(view.value))


def vnni_packed(value: ir.Value, axis: int, factor: int) -> ir.Value:
    """Move groups of `factor` elements along an axis to a new innermost dimension."""
    shape = shape_of(value)
    split = (*shape[:axis], shape[axis] // factor, factor, *shape[axis + 1 :])
    order = [i for i in range(len(split)) if i != axis + 1]
    return transpose(shape_cast(value, split), [*order, axis + 1])
