"""The positions of fragments' elements in the subgroup's block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import Mode, SgMap, TensorDesc
from xegpu_py.dialects.xegpu.interfaces import MatrixProduct
from xegpu_py.dialects.xegpu.shapes import loaded_shapes, vnni_factor
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.control_flow import carried
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.passes.common.values import is_desc, is_elementwise, shape_of

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


def coordinates(shape: Sequence[int], sg_map: SgMap) -> Order:
    """The row-major position in a block of each element of a lane, distributed round robin (RFC, sg_map).

    Returns:
        int64[rows of a fragment, columns of a fragment, lanes].
    """
    rows, columns = (1, *shape) if len(shape) == 1 else shape[-2:]
    (lane_rows, lane_columns), (data_rows, data_columns) = sg_map.wi_layout, sg_map.wi_data
    lane = np.arange(lane_rows * lane_columns)

    def along(extent: int, layout: int, data: int, place: Order) -> Order:
        step = layout * data
        element = np.arange(extent // layout)
        return (element // data * step + element % data)[:, None] + place[None, :] * data

    row = along(rows, lane_rows, data_rows, lane // lane_columns)
    column = along(columns, lane_columns, data_columns, lane % lane_columns)
    return row[:, None, :] * columns + column[None, :, :]


class _Transform(Struct, frozen=True):
    """The transform of blocks to a vector by a load.

    Attributes:
        count: blocks, either side by side along the innermost dimension or along an outer one.
        factor: elements along `axis` that VNNI packing combines.
    """

    count: int
    side_by_side: bool = False
    transpose: Sequence[int] | None = None
    axis: int | None = None
    factor: int = 1

    def apply(self, numbers: Order, shape: Sequence[int]) -> Order:
        """Numbered elements of blocks of this shape in the order that the vector has them."""
        found = numbers.reshape(self.count, *shape)
        if self.side_by_side:
            found = np.concatenate(list(found), axis=-1)[None]
        if self.transpose is not None:
            found = found.transpose(0, *(1 + t for t in self.transpose))
        if self.axis is not None:
            outer, rows, columns = found.shape
            if self.axis == 0:
                found = found.reshape(outer, rows // self.factor, self.factor, columns).transpose(0, 1, 3, 2)
            else:
                found = found.reshape(outer, rows, columns // self.factor, self.factor)
        return found.ravel()


def loaded(op: ir.Operation) -> Placement:
    """The placement of a load_nd's result in SIMT mode; its descriptor has an `sg_map`."""
    view = op.opview
    desc = TensorDesc.of(view.tdesc)
    shape = shape_of(view.value)
    choice = loaded_shapes(desc, Mode.SIMT, view.transpose, None, view.vnni_axis).index(shape)
    block = loaded_shapes(desc, Mode.VC, view.transpose, None, view.vnni_axis)[choice]
    factor = 1 if view.vnni_axis is None else vnni_factor(desc.bits)
    count = desc.attr.array_length
    side_by_side = count > 1 and choice == 1
    return _placement(desc, block, _Transform(count, side_by_side, view.transpose, view.vnni_axis, factor))


def stored(op: ir.Operation) -> Placement:
    """The placement that a store_nd in SIMT mode requires; its descriptor has an `sg_map`."""
    desc = TensorDesc.of(op.opview.tdesc)
    return _placement(desc, desc.shape, _Transform(1))


def _placement(desc: TensorDesc, block: tuple[int, ...], transform: _Transform) -> Placement:
    """Map each element of the descriptor's blocks to its position in the subgroup's vector."""
    assert desc.attr.map is not None
    size = math.prod(desc.shape)
    places = np.empty(transform.count * size, np.int64)
    places[transform.apply(np.arange(transform.count * size), desc.shape)] = np.arange(transform.count * size)
    owned = coordinates(desc.shape, desc.attr.map)
    lanes = owned.shape[2]
    fragment = owned.shape[:2] if len(desc.shape) > 1 else owned.shape[1:2]
    numbers = np.concatenate([(owned + b * size).reshape(-1, lanes) for b in range(transform.count)])
    # The fragment's elements have the same transform.
    return Placement(block, places[numbers[transform.apply(np.arange(len(numbers)), fragment)]])


def natural(shape: Sequence[int], lanes: int) -> Placement:
    """The placement with the lanes as the innermost dimension of the subgroup's vector."""
    count = math.prod(shape)
    return Placement((*shape, lanes), np.arange(count * lanes, dtype=np.int64).reshape(count, lanes))


def of_registers(shape: Sequence[int], lanes: int, bits: int) -> Placement:
    """The placement of a matrix in dpas's registers: units of its rows are distributed round robin to the lanes.

    This is the layout of OpenCL's cl_intel_subgroup_matrix_multiply_accumulate. A unit has 16 bits in the first
    factor, or the 32 bits that VNNI packs. A row shorter than the subgroup's lanes is followed by the next row.

    Args:
        shape: of the matrix; packed by VNNI if it has three dimensions.
        bits: of an element.

    Raises:
        ValueError: if the lanes cannot have equal parts.
    """
    unit = math.prod(shape[2:]) if len(shape) > 2 else max(16 // bits, 1)
    if math.prod(shape) % (lanes * unit):
        raise ValueError(f"{lanes} lanes cannot divide {shape} elements of {bits} bits")
    order = np.arange(math.prod(shape)).reshape(-1, lanes, unit)
    return Placement(tuple(shape), order.transpose(0, 2, 1).reshape(-1, lanes))


def _joins(op: ir.Operation) -> Iterator[list[ir.Value]]:
    """Groups of an op's values whose elements correspond one to one."""
    yield from carried(op)
    if isinstance(op.opview, MatrixProduct):
        if op.opview.acc is not None:
            yield [op.opview.acc, op.opview.result]
    elif is_elementwise(op):
        yield [op.results[0], *filter(shape_of, op.operands)]


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
            if op.name == "xegpu.load_nd" and mapped(op):
                self._found.setdefault(self._alike.find(op.results[0]), []).append(loaded(op))
            elif op.name == "xegpu.store_nd" and mapped(op):
                self._found.setdefault(self._alike.find(op.opview.value), []).append(stored(op))

    def of(self, value: ir.Value) -> list[Placement]:
        """The distinct placements of a fragment's loads and stores."""
        found: list[Placement] = []
        for placement in self._found.get(self._alike.find(value), []):
            if not any(placement.same(f) for f in found):
                found.append(placement)
        return found


def mapped(op: ir.Operation) -> bool:
    """Whether an op on a block works in SIMT mode, with a descriptor that distributes its elements."""
    return op.opview.mode == Mode.SIMT and TensorDesc.of(op.opview.tdesc).attr.map is not None


def unmapped(kind: ir.Type) -> ir.Type:
    """The type of a descriptor without its `sg_map`; any other type unchanged."""
    if not is_desc(kind):
        return kind
    desc = TensorDesc.decode(str(kind))
    return ir.Type.parse(replace(desc, attr=replace(desc.attr, map=None)).encode())
