"""The elements of a matrix in a work item's fragment, for the operands of a dpas in SIMT mode (docs/simt.md).

A fragment has the sg_map of the load that produces it, or of the store that uses it, also through elementwise ops and
control flow, whose operands and results correspond element by element.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.shapes import loaded_shapes, vnni_factor
from xegpu_py.ir.builtin import bit_width, vector_of
from xegpu_py.ir.verifier import walk
from xegpu_py.layout import from_sg_map
from xegpu_py.numerics.formats import Array
from xegpu_py.reference.memory import Fault


@dataclass(frozen=True, eq=False)
class Placement:
    """The positions of the elements of fragments in the subgroup's vector.

    Attributes:
        shape: the shape of the subgroup's vector.
        order: int64[lanes, elements]: row-major positions in it of each lane's elements in row-major order.
    """

    shape: tuple[int, ...]
    order: Array


def placement_of(op: ir.Operation) -> Placement:
    """The placement of the result of a load_nd, or the value of a store_nd, in SIMT mode with an sg_map."""
    view = op.opview
    desc = TensorDesc.of(view.tdesc)
    assert desc.attr.map
    count, size = desc.attr.array_length, math.prod(desc.shape)
    numbers = np.arange(count * size).reshape(count, *desc.shape)
    layout = from_sg_map(desc.attr.map.wi_layout, desc.attr.map.wi_data, desc.shape)
    owned = layout.fragment(layout.distribute(np.arange(size).reshape(desc.shape))[0])
    parts = [np.stack([lane + b * size for b in range(count)]) for lane in owned]
    if op.name == "xegpu.load_nd":
        given = (view.transpose, None, view.vnni_axis)
        shapes = loaded_shapes(desc, Mode.SIMT, *given)
        side_by_side = count > 1 and shapes.index(vector_of(str(view.value.type))[0]) == 1
        shape = loaded_shapes(desc, Mode.VC, *given)[int(side_by_side)]
        numbers, *parts = (arranged(n, desc, side_by_side, *given) for n in (numbers, *parts))
    else:
        shape = desc.shape if count == 1 else (count, *desc.shape)
    place = np.empty(count * size, np.int64)
    place[numbers.ravel()] = np.arange(count * size)
    return Placement(tuple(shape), np.stack([place[p.ravel()] for p in parts]))


def arranged(
    blocks: Array,
    desc: TensorDesc,
    side_by_side: bool,
    transpose: Sequence[int] | None,
    width: int | None,
    axis: int | None,
) -> Array:
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


def _alike(op: ir.Operation) -> Iterator[list[ir.Value]]:
    """Groups of an op's values whose elements correspond one by one."""
    results, operands = list(op.results), list(op.operands)
    bodies = [list(r.blocks) for r in op.regions]
    if op.name in ("scf.if", "scf.index_switch"):
        yields = [list(list(b[0].operations)[-1].operation.operands) for b in bodies if b]
        yield from (list(group) for group in zip(results, *yields))
    elif op.name == "scf.for":
        (body,) = bodies[0]
        ends = list(list(body.operations)[-1].operation.operands)
        yield from (list(group) for group in zip(results, operands[3:], list(body.arguments)[1:], ends))
    elif op.name == "scf.while":
        (before,), (after,) = bodies
        first, second = (list(list(b.operations)[-1].operation.operands) for b in (before, after))
        yield from (list(group) for group in zip(operands, before.arguments, second))
        yield from (list(group) for group in zip(results, after.arguments, first[1:]))
    elif op.name in ("xegpu.dpas", "xegpu.dpas_mx"):
        yield [v for v in (op.opview.acc, op.opview.result) if v is not None]
    elif op.name.startswith(("arith.", "math.")) or op.name == "vector.fma":
        shapes = {v: _shape(v) for v in (*results, *operands)}
        if results and shapes[results[0]] is not None:
            yield [v for v in (results[0], *operands) if shapes[v] == shapes[results[0]]]


def _is_mapped(op: ir.Operation) -> bool:
    return op.opview.mode == Mode.SIMT and TensorDesc.of(op.opview.tdesc).attr.map is not None


def _shape(value: ir.Value) -> tuple[int, ...] | None:
    text = str(value.type)
    return vector_of(text)[0] if text.startswith("vector<") else None


class Maps:
    """The placements that the loads and stores of a function determine for its fragments."""

    def __init__(self, func: ir.Operation) -> None:
        self._class: dict[ir.Value, set[ir.Value]] = {}
        self._found: list[tuple[ir.Value, Placement]] = []
        for op in walk(func):
            for group in _alike(op):
                joined = set().union(*(self._class.get(v, {v}) for v in group))
                self._class |= dict.fromkeys(joined, joined)
            if op.name in ("xegpu.load_nd", "xegpu.store_nd") and _is_mapped(op):
                self._found.append((op.opview.value, placement_of(op)))

    def find(self, value: ir.Value) -> list[Placement]:
        """The different placements that a fragment has."""
        same = self._class.get(value, {value})
        found: list[Placement] = []
        for owner, placement in self._found:
            if owner in same and not any(np.array_equal(placement.order, f.order) for f in found):
                found.append(placement)
        return found

    def only(self, value: ir.Value, role: str, shape: tuple[int, ...], lanes: int) -> Placement:
        """The placement of an operand or result of a dpas; that of dpas's registers if none is determined.

        Raises:
            Fault: if there are several, or none is possible.
        """
        found = self.find(value)
        if len(found) > 1:
            raise Fault(
                f"has a {role} whose elements are distributed in {len(found)} different ways",
                "its loads and stores have different sg_maps, so the fragment's distribution is ambiguous",
            )
        if found:
            return found[0]
        # The layout of dpas's registers: a lane has 16 bits of each row, or the 32 bits that VNNI packs.
        bits = bit_width(str(ir.VectorType(value.type).element_type))
        unit = math.prod(shape[2:]) if len(shape) > 2 else max(16 // bits, 1)
        if math.prod(shape) % (lanes * unit):
            raise Fault(f"cannot infer the sg_map of its {role} from a descriptor")
        order = np.arange(math.prod(shape)).reshape(-1, lanes, unit)
        return Placement(shape, order.transpose(1, 0, 2).reshape(lanes, -1))


def maps_of(func: ir.Operation) -> Maps:
    """The placements of a function's fragments."""
    return Maps(func)
