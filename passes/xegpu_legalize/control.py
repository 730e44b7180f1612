"""`scf`: what is carried in pieces is carried piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from xegpu_py.passes.xegpu_legalize import boxes
from xegpu_py.passes.xegpu_legalize.plan import carried, is_desc, shape_of
from xegpu_py.passes.xegpu_legalize.rewrite import Rewriter, rewrites
from xegpu_py.passes.xegpu_legalize.shapes import types_of


def _is_split(low: Rewriter, value: ir.Value) -> bool:
    if is_desc(value):
        return bool(low.plan.layouts_of(value))
    return shape_of(value) is not None and low.plan.bounds(value) is not None


def _expand(low: Rewriter, values: Sequence[ir.Value]) -> list[ir.Value]:
    """The pieces of values that are in pieces, the others as they are."""
    found: list[ir.Value] = []
    for value in values:
        bounds = low.plan.bounds(value) if shape_of(value) else None
        if bounds is not None:
            found += [low.part(value, box) for box in boxes.grid(bounds)]
        elif is_desc(value):
            if low.plan.is_kept(value):
                found.append(value)
            for layout in low.plan.layouts_of(value):
                found += low.pieces[value, layout]
        else:
            found.append(low.whole(value))
    return found


def _types(low: Rewriter, values: Sequence[ir.Value]) -> list[ir.Type]:
    """The types of the pieces."""
    found: list[ir.Type] = []
    for value in values:
        bounds = low.plan.bounds(value) if shape_of(value) else None
        if bounds is not None:
            found += [ir.Type.parse(low.vector(boxes.sizes(box), value)) for box in boxes.grid(bounds)]
        elif is_desc(value):
            if low.plan.is_kept(value):
                found.append(value.type)
            for layout in low.plan.layouts_of(value):
                found += types_of(layout)
        else:
            found.append(value.type)
    return found


def _bind(low: Rewriter, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
    """Say what old values are in pieces; what is whole takes the old one's place."""
    rest = iter(new)
    for value in old:
        bounds = low.plan.bounds(value) if shape_of(value) else None
        if bounds is not None:
            low.set(value, bounds, [next(rest) for _ in boxes.grid(bounds)])
            continue
        if not is_desc(value):
            value.replace_all_uses_with(next(rest))
            continue
        layouts = low.plan.layouts_of(value)
        own = value
        if low.plan.is_kept(value):
            own = next(rest)
            low.plan.descs.join([value, own])
            value.replace_all_uses_with(own)
        for layout in layouts:
            low.pieces[own, layout] = tuple(next(rest) for _ in types_of(layout))


def _take_body(low: Rewriter, region: ir.Region, new: ir.Region, fixed: int) -> None:
    """Move a region's block, with its arguments from number `fixed` on in pieces, and rewrite what is in it."""
    block = region.blocks[0]
    block.append_to(new)
    old = list(block.arguments)[fixed:]
    place = ir.Location.unknown(block.owner.context) if not old else old[0].location
    added = [block.add_argument(t, place) for t in _types(low, old)]
    _bind(low, old, added)
    low.old_arguments += old
    low.block(block)


def _end(low: Rewriter, op: ir.Operation, first: int) -> bool:
    """A terminator whose operands from number `first` on are given in pieces."""
    operands = list(op.operands)
    if not any(_is_split(low, v) for v in operands[first:]):
        return False
    attributes = {name: op.attributes[name] for name in op.attributes}
    low.emit(op.name, [], [*map(low.whole, operands[:first]), *_expand(low, operands[first:])], attributes)
    return True


@rewrites("scf.yield")
def yield_(low: Rewriter, op: ir.Operation) -> bool:
    """What is carried in pieces is yielded in pieces."""
    return _end(low, op, 0)


@rewrites("scf.condition")
def condition(low: Rewriter, op: ir.Operation) -> bool:
    """Likewise, behind the condition."""
    return _end(low, op, 1)


@rewrites("scf.for", "scf.while", "scf.if", "scf.index_switch")
def structured(low: Rewriter, op: ir.Operation) -> bool:
    """A loop or branch made anew, with more arguments and results."""
    groups = carried(op)
    if not any(_is_split(low, group[0]) for group in groups):
        return False
    fixed = {"scf.for": 3, "scf.while": 0}.get(op.name, len(op.operands))
    operands = list(op.operands)
    results = list(op.results)
    new = ir.Operation.create(
        op.name,
        results=_types(low, results),
        operands=[*operands[:fixed], *_expand(low, operands[fixed:])],
        attributes={name: op.attributes[name] for name in op.attributes},
        regions=len(op.regions),
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    arguments = 1 if op.name == "scf.for" else 0
    for old, region in zip(list(op.regions), new.regions):
        if len(old.blocks):
            _take_body(low, old, region, arguments)
    low.at(op)
    _bind(low, results, list(new.results))
    return True
