"""Fragments: which elements of a subgroup's matrix each work item has (docs/simt.md).

A fragment has the sg_map of the load that produces it, or of the store that uses it, also through elementwise ops and
control flow, whose operands and results correspond element by element.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from mlir import ir
from msgspec import Struct

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.matrix_ops import loaded_shapes, vnni_factor
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, BlockLoad, MatrixProduct, Prefetch
from xegpu_py.dialects.xegpu.types import Mode, SgMap, TensorDesc
from xegpu_py.ir.builtin import bit_width, shape_and_element, shape_of
from xegpu_py.ir.control_flow import UnionFind, carried
from xegpu_py.ir.element_movement import is_elementwise
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import implements

if TYPE_CHECKING:
    from xegpu_py import layout as layouts
else:
    layouts = deferred("xegpu_py.layout")

Order = npt.NDArray[np.int64]


class Placement(Struct, frozen=True, eq=False):
    """The positions of all lanes' fragments in a block.

    Attributes:
        shape: shape of the block as the subgroup holds it in a vector.
        order: int64[elements of a fragment, lanes], the row-major position of each element in the block.
    """

    shape: tuple[int, ...]
    order: Order

    @property
    def lanes(self) -> int:
        """Work items of the subgroup."""
        return int(self.order.shape[1])

    def same(self, other: Placement) -> bool:
        """Whether all elements have the same positions."""
        return self.order.shape == other.order.shape and bool(np.array_equal(self.order, other.order))


@lru_cache(maxsize=256)
def coordinates(shape: tuple[int, ...], sg_map: SgMap) -> Order:
    """int64[lanes, *fragment]: the row-major position in a block of each element of each lane (RFC, sg_map)."""
    layout = layouts.from_sg_map(sg_map.wi_layout, sg_map.wi_data, shape)
    return layout.fragment(layout.distribute(np.arange(math.prod(shape)).reshape(shape))[0])


def arranged(
    blocks: Order,
    desc: TensorDesc,
    side_by_side: bool,
    transpose: Sequence[int] | None,
    width: int | None,
    axis: int | None,
) -> Order:
    """Blocks, or a work item's fragments of them, [array_length, ...], after the transforms of a load.

    - RFC: transpose "specifies the dimensions to be transposed during the load". transpose_bit_width "overrides the
      element data type size for the transpose".
    - RFC: vnni_axis 0 "effectively splits a 2D matrix [col, row] to be 3-d matrix [col/vnni_factor, row, vnni_factor]";
      axis 1 "doesn't change the layout but splits the VNNI axis to 2 axes".

    Args:
        side_by_side: whether the result is the area that the neighbouring blocks cover.
    """
    found = np.concatenate(list(blocks), axis=-1)[None] if side_by_side else blocks
    if transpose is not None:
        unit = (width or desc.bits) // desc.bits
        units = found.reshape(*found.shape[:-1], found.shape[-1] // unit, unit)
        moved = units.transpose(0, *(1 + t for t in transpose), units.ndim - 1)
        found = moved.reshape(*moved.shape[:-2], moved.shape[-2] * unit)
    if axis is not None:
        factor = vnni_factor(desc.bits)
        outer, rows, columns = found.shape
        if axis == 0:
            found = found.reshape(outer, rows // factor, factor, columns).transpose(0, 1, 3, 2)
        else:
            found = found.reshape(outer, rows, columns // factor, factor)
    return found


def placement_of(op: ir.Operation) -> Placement:
    """The placement of the result of a load_nd, or the value of a store_nd, in SIMT mode with an sg_map."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    assert desc.attr.map
    count, size = desc.attr.array_length, math.prod(desc.shape)
    numbers = np.arange(count * size).reshape(count, *desc.shape)
    owned = coordinates(desc.shape, desc.attr.map)
    parts = [np.stack([lane + b * size for b in range(count)]) for lane in owned]
    if implements(op, BlockLoad):
        given = (view.transpose, None, view.vnni_axis)
        side_by_side = count > 1 and loaded_shapes(desc, Mode.SIMT, *given).index(shape_of(view.value)) == 1
        shape = loaded_shapes(desc, Mode.VC, *given)[int(side_by_side)]
        numbers, *parts = (arranged(n, desc, side_by_side, *given) for n in (numbers, *parts))
    else:
        shape = desc.shape if count == 1 else (count, *desc.shape)
    place = np.empty(count * size, np.int64)
    place[numbers.ravel()] = np.arange(count * size)
    return Placement(tuple(shape), np.stack([place[p.ravel()] for p in parts], axis=-1))


def natural(shape: Sequence[int], lanes: int) -> Placement:
    """The placement with the lanes as the innermost dimension of the subgroup's vector."""
    count = math.prod(shape)
    return Placement((*shape, lanes), np.arange(count * lanes, dtype=np.int64).reshape(count, lanes))


def _joins(op: ir.Operation) -> Iterator[list[ir.Value]]:
    """Groups of an op's values whose elements correspond one to one."""
    yield from carried(op)
    if isinstance(op.opview, MatrixProduct):
        if op.opview.acc is not None:
            yield [op.opview.acc, op.opview.result]
    elif is_elementwise(op):
        yield [op.results[0], *filter(shape_of, op.operands)]


def moves_block(op: ir.Operation) -> bool:
    """Whether an op, in either spelling, loads or stores a block."""
    return implements(op, BlockAccess) and not implements(op, Prefetch)


class Placements:
    """The placements of fragments in kernels, from the descriptors of their loads and stores.

    The elements of a fragment correspond to those of the fragments that it is computed from, so that all of them have
    one placement if their loads and stores agree. `xegpu.dpas` depends on it.
    """

    def __init__(self, root: ir.Operation) -> None:
        self._alike: UnionFind[ir.Value] = UnionFind()
        self._found: dict[ir.Value, list[Placement]] = {}
        ops = walk(root)
        for op in ops:
            for values in _joins(op):
                self._alike.join(values)
        for op in ops:
            if moves_block(op) and mapped(op):
                self._found.setdefault(self._alike.find(op.opview.value), []).append(placement_of(op))

    def of(self, value: ir.Value) -> list[Placement]:
        """The distinct placements of a fragment's loads and stores."""
        found: list[Placement] = []
        for placement in self._found.get(self._alike.find(value), []):
            if not any(placement.same(f) for f in found):
                found.append(placement)
        return found

    def only(self, value: ir.Value, role: str, shape: tuple[int, ...], lanes: int) -> Placement:
        """The placement of an operand or result of a dpas; that of dpas's registers if none is determined.

        Raises:
            ValueError: if there are several, or none is possible. Its arguments are a clause that follows an op's name,
                and a note if there is one.
        """
        found = self.of(value)
        if len(found) > 1:
            raise ValueError(
                f"has a {role} whose elements are distributed in {len(found)} different ways",
                "its loads and stores have different sg_maps, so the fragment's distribution is ambiguous",
            )
        return found[0] if found else of_registers(value, role, shape, lanes)


def of_registers(value: ir.Value, role: str, shape: tuple[int, ...], lanes: int) -> Placement:
    """The placement of a matrix in dpas's registers: units of its rows are distributed round robin to the lanes.

    This is the layout of OpenCL's cl_intel_subgroup_matrix_multiply_accumulate. A unit has 16 bits in the first
    factor, or the 32 bits that VNNI packs. A row shorter than the subgroup's lanes is followed by the next row.

    Args:
        shape: of the matrix; packed by VNNI if it has three dimensions.

    Raises:
        ValueError: if the lanes cannot have equal parts.
    """
    bits = bit_width(shape_and_element(value)[1])
    unit = math.prod(shape[2:]) if len(shape) > 2 else max(16 // bits, 1)
    if math.prod(shape) % (lanes * unit):
        raise ValueError(f"cannot infer the sg_map of its {role} {value.type} from a descriptor")
    order = np.arange(math.prod(shape)).reshape(-1, lanes, unit)
    return Placement(shape, order.transpose(0, 2, 1).reshape(-1, lanes))


def mapped(op: ir.Operation) -> bool:
    """Whether an op on a block works in SIMT mode, with a descriptor that distributes its elements."""
    return op.opview.mode == Mode.SIMT and TensorDesc.of(op.opview.tdesc).attr.map is not None
