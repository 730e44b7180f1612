"""What lanes look up by their number, and what they hand each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from mlir import ir
from xegpu_py.passes.vector_distribute.distributor import Distributor
from xegpu_py.passes.vector_distribute.moves import Moves

from xegpu_py.layout import NestedLayout
from xegpu_py.layout.ids import Ints


def shuffled(d: Distributor, value: ir.Value, mode: str, offset: ir.Value) -> ir.Value:
    """What another lane has of a scalar: the one whose number is the offset (`idx`), or differs in its bits (`xor`)."""
    given = value.type
    value = carried(d, value)
    width = d.constant(ir.IntegerAttr.get(ir.IntegerType.get_signless(32), d.subgroup_size))
    types = [value.type, ir.IntegerType.get_signless(1)]
    attributes = {"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")}
    return restored(d, d.create("gpu.shuffle", types, [value, offset, width], attributes), given)


def _with_element(kind: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(ir.VectorType(kind).shape, element) if isinstance(kind, ir.VectorType) else element


def _element(kind: ir.Type) -> ir.Type:
    return ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind


def carried(d: Distributor, value: ir.Value) -> ir.Value:
    """A scalar, or a vector, as one of a type that shuffles take."""
    element = _element(value.type)
    if isinstance(element, ir.IndexType):
        wide = _with_element(value.type, ir.IntegerType.get_signless(32))
        return d.create("arith.index_cast", [wide], [value])
    if isinstance(element, ir.IntegerType) and element.width < 8:
        wide = _with_element(value.type, ir.IntegerType.get_signless(32))
        return d.create("arith.extui", [wide], [value])
    return value


def restored(d: Distributor, value: ir.Value, kind: ir.Type) -> ir.Value:
    """What `carried` was given, of this type."""
    if value.type == kind:
        return value
    return d.create("arith.index_cast" if isinstance(_element(kind), ir.IndexType) else "arith.trunci", [kind], [value])


def _lane(d: Distributor) -> ir.Value:
    found = d.virtual_id("thread", 1, d.subgroup_size)
    assert found is not None
    return found


def _looked_up(d: Distributor, rows: Sequence[Sequence[ir.Attribute]]) -> ir.Value:
    """The row of a table that has the lane's number; a plain constant if all are alike."""
    kind = ir.VectorType.get([len(rows[0])], rows[0][0].type)
    if all(row == rows[0] for row in rows):
        return d.constant(ir.DenseElementsAttr.get(list(rows[0]), kind))
    whole = ir.VectorType.get([len(rows), len(rows[0])], kind.element_type)
    table = ir.DenseElementsAttr.get([a for row in rows for a in row], whole)
    position = {"static_position": ir.DenseI64ArrayAttr.get([ir.ShapedType.get_dynamic_size()])}

    def make() -> ir.Value:
        return d.create("vector.extract", [kind], [d.constant(table), _lane(d)], position)

    return d.once(("table", table), make)


def _number(d: Distributor, numbers: Ints, kind: ir.Type) -> ir.Value:
    """An integer of the lane's own."""
    if (numbers == numbers[0]).all():
        return d.constant(ir.IntegerAttr.get(kind, int(numbers[0])))
    row = [ir.IntegerAttr.get(kind, int(n)) for n in numbers]
    table = d.constant(ir.DenseElementsAttr.get(row, ir.VectorType.get([len(row)], kind)))
    position = {"static_position": ir.DenseI64ArrayAttr.get([ir.ShapedType.get_dynamic_size()])}
    key = ("number", kind, *numbers.tolist())
    return d.once(key, lambda: d.create("vector.extract", [kind], [table, _lane(d)], position))


def constant_part(d: Distributor, layout: NestedLayout, elements: Sequence[ir.Attribute]) -> ir.Value:
    """A lane's part of a constant, from tables with a row for each lane, one of them for each subgroup that differs."""
    subgroups, lanes = layout.subgroups.period, d.subgroup_size
    places = np.arange(math.prod(layout.shape)).reshape(layout.shape)
    parts = layout.distribute(places, subgroups=subgroups, threads=lanes).reshape(subgroups, lanes, -1)
    tables = [[[elements[i] for i in row] for row in rows] for rows in parts.tolist()]
    found = _looked_up(d, tables[0])
    own = d.virtual_id("subgroup", 1, subgroups)
    for number, table in enumerate(tables):
        if table != tables[0]:
            equal = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
            i1 = ir.IntegerType.get_signless(1)
            assert own is not None
            mine = d.create("arith.cmpi", [i1], [own, d.index(number)], equal)
            found = d.create("arith.select", [found.type], [mine, _looked_up(d, table), found])
    kind = d.part_type(layout, elements[0].type)
    return found if found.type == kind else d.create("vector.shape_cast", [kind], [found])


def moved(d: Distributor, part: ir.Value, how: Moves, kind: ir.Type) -> ir.Value:
    """A lane's part after its elements have been moved to other registers, and handed to other lanes."""
    registers = math.prod(ir.VectorType(part.type).shape)
    if not how.rounds and (how.takes == how.takes[0]).all():
        return _reordered(d, part, how.takes[0].tolist(), kind)
    given = _element(part.type)
    part = carried(d, part)
    element = _element(part.type)
    flat_kind = ir.VectorType.get([registers], element)
    flat = part if part.type == flat_kind else d.create("vector.shape_cast", [flat_kind], [part])
    found: dict[int, ir.Value] = {}
    i32 = ir.IntegerType.get_signless(32)

    def register(number: int) -> ir.Value:
        if number not in found:
            at = {"static_position": ir.DenseI64ArrayAttr.get([number])}
            found[number] = d.create("vector.extract", [element], [flat], at)
        return found[number]

    def chosen(numbers: Ints) -> ir.Value:
        """The register, or what a round has brought, that each lane's number says."""
        several = np.unique(numbers)
        values = [register(int(n)) for n in several]
        if len(values) == 1:
            return values[0]
        together = d.create("vector.from_elements", [ir.VectorType.get([len(values)], element)], values)
        which = _number(d, np.searchsorted(several, numbers), ir.IndexType.get())
        at = {"static_position": ir.DenseI64ArrayAttr.get([ir.ShapedType.get_dynamic_size()])}
        return d.create("vector.extract", [element], [together, which], at)

    for i, (sends, reads) in enumerate(zip(how.sends, how.reads)):
        found[registers + i] = shuffled(d, chosen(sends), "idx", _number(d, reads, i32))
    values = [chosen(column) for column in how.takes.T]
    made = d.create("vector.from_elements", [_with_element(kind, element)], values)
    return restored(d, made, _with_element(kind, given))


def _reordered(d: Distributor, part: ir.Value, places: list[int], kind: ir.Type) -> ir.Value:
    """The lane's own registers in another order."""
    size = math.prod(ir.VectorType(part.type).shape)
    if places != list(range(size)):
        element = _element(part.type)
        flat = d.create("vector.shape_cast", [ir.VectorType.get([size], element)], [part])
        attributes = {"mask": ir.DenseI64ArrayAttr.get(places)}
        part = d.create("vector.shuffle", [ir.VectorType.get([len(places)], element)], [flat, flat], attributes)
    return part if part.type == kind else d.create("vector.shape_cast", [kind], [part])
