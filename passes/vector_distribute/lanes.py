"""Constants that depend on the lane, and exchange between lanes by shuffles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from mlir import ir

from xegpu_py.layout import NestedLayout
from xegpu_py.layout.ids import Ints
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.values import element_of, shape_of
from xegpu_py.passes.vector_distribute.distributor import Distributor
from xegpu_py.passes.vector_distribute.moves import Moves


def shuffled(d: Distributor, value: ir.Value, mode: str, offset: ir.Value) -> ir.Value:
    """A scalar of another lane: of lane `offset` (mode `idx`), or of lane `own xor offset` (mode `xor`)."""
    width = build.constant(build.integer_type(32), d.subgroup_size)
    return restored(build.shuffled(carried(value), offset, mode, width), value.type)


def carried(value: ir.Value) -> ir.Value:
    """Convert a scalar or a vector to a type that shuffles support."""
    element = element_of(value)
    if isinstance(element, ir.IndexType):
        return build.make("arith.index_cast", build.with_element(value.type, build.integer_type(32)), value)
    if isinstance(element, ir.IntegerType) and element.width < 8:
        return build.make("arith.extui", build.with_element(value.type, build.integer_type(32)), value)
    return value


def restored(value: ir.Value, kind: ir.Type) -> ir.Value:
    """Convert the result of `carried` back to this type."""
    if value.type == kind:
        return value
    return build.make("arith.index_cast" if isinstance(element_of(kind), ir.IndexType) else "arith.trunci", kind, value)


def _lane(d: Distributor) -> ir.Value:
    return build.index(d.virtual_id("thread", 1, d.subgroup_size))


def _looked_up(d: Distributor, rows: Sequence[Sequence[ir.Attribute]]) -> ir.Value:
    """The row of a table for this lane; a plain constant if all rows are equal."""
    kind = ir.VectorType.get([len(rows[0])], rows[0][0].type)
    if all(row == rows[0] for row in rows):
        return build.make("arith.constant", kind, value=ir.DenseElementsAttr.get(list(rows[0]), kind))
    whole = ir.VectorType.get([len(rows), len(rows[0])], kind.element_type)
    table = ir.DenseElementsAttr.get([a for row in rows for a in row], whole)
    return d.once(
        ("table", table), lambda: build.extract_at(build.make("arith.constant", whole, value=table), _lane(d))
    )


def _number(d: Distributor, numbers: Ints, kind: ir.Type) -> ir.Value:
    """An integer that depends on the lane."""
    if (numbers == numbers[0]).all():
        return build.constant(kind, int(numbers[0]))
    key = ("number", kind, *numbers.tolist())
    return d.once(key, lambda: build.extract_at(build.dense_integers(numbers, kind), _lane(d)))


def constant_part(d: Distributor, layout: NestedLayout, elements: Sequence[ir.Attribute]) -> ir.Value:
    """A lane's part of a constant, from tables with a row for each lane; distinct subgroups have a table each."""
    subgroups, lanes = layout.subgroups.period, d.subgroup_size
    places = np.arange(math.prod(layout.shape)).reshape(layout.shape)
    parts = layout.distribute(places, subgroups=subgroups, threads=lanes).reshape(subgroups, lanes, -1)
    tables = [[[elements[i] for i in row] for row in rows] for rows in parts.tolist()]
    found = _looked_up(d, tables[0])
    own = d.virtual_id("subgroup", 1, subgroups)
    for number, table in enumerate(tables):
        if table != tables[0]:
            here = build.compare("eq", build.index(own), build.index(number))
            found = build.select(here, _looked_up(d, table), found)
    return build.shape_cast(found, layout.distributed_shape)


def moved(d: Distributor, part: ir.Value, how: Moves, kind: ir.Type) -> ir.Value:
    """A lane's part after moves between registers and shuffles between lanes."""
    registers, given = math.prod(shape_of(part)), element_of(part)
    if not how.rounds and (how.takes == how.takes[0]).all():
        places = how.takes[0].tolist()
        if places != list(range(registers)):
            part = build.permute(build.shape_cast(part, [registers]), places)
        return build.shape_cast(part, shape_of(kind))
    flat = build.shape_cast(carried(part), [registers])
    found: dict[int, ir.Value] = {}

    def register(number: int) -> ir.Value:
        if number not in found:
            found[number] = build.extract(flat, [number])
        return found[number]

    def chosen(numbers: Ints) -> ir.Value:
        """The register or the shuffle result that the number selects for each lane."""
        several = np.unique(numbers)
        values = [register(int(n)) for n in several]
        if len(values) == 1:
            return values[0]
        which = _number(d, np.searchsorted(several, numbers), ir.IndexType.get())
        return build.extract_at(build.from_elements(values, [len(values)]), which)

    for i, (sends, reads) in enumerate(zip(how.sends, how.reads)):
        found[registers + i] = shuffled(d, chosen(sends), "idx", _number(d, reads, build.integer_type(32)))
    made = build.from_elements([chosen(column) for column in how.takes.T], shape_of(kind))
    return restored(made, build.with_element(kind, given))
