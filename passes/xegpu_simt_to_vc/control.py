"""`scf` where lanes diverge: regions run under a mask of their lanes, and loops while any lane is active."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import binary, compare, constant, create, index_type
from xegpu_py.passes.common.ranges import bits_of, full
from xegpu_py.passes.xegpu_simt_to_vc.widen import Widener, pattern

_PURE = ("arith.", "math.", "index.", "vector.extract", "vector.insert", "vector.broadcast", "vector.shape_cast")
"""Ops that inactive lanes may execute."""


def _yield(values: Sequence[ir.Value]) -> None:
    create("scf.yield", [], values)


def _block(region: ir.Region, types: Sequence[ir.Type] = ()) -> ir.InsertionPoint:
    """An insertion point at the end of a new block of a region."""
    return ir.InsertionPoint(ir.Block.create_at_start(region, list(types)))


def _inverse(condition: ir.Value) -> ir.Value:
    return binary("xori", condition, True)


def both(condition: ir.Value, lanes: ir.Value | None) -> ir.Value:
    """The lanes of a condition that are also in a mask; None is all lanes."""
    return condition if lanes is None else binary("andi", condition, lanes)


def _bind(w: Widener, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
    """Let values stand for others."""
    for value, made in zip(old, new, strict=True):
        w.set(value, made)


def _loop(
    w: Widener,
    op: ir.Operation,
    state: Sequence[ir.Value],
    before: Callable[[Sequence[ir.Value]], tuple[ir.Value, Sequence[ir.Value]]],
    after: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """Build an scf.while: `before` gives the condition and the passed values, `after` the next state."""
    outer = w.diverged, w.mask
    w.diverged = op
    # The result types are known after the first region is built, so it is built in a temporary op.
    made = create("scf.while", [], state, regions=2)
    with _block(made.regions[0], [v.type for v in state]) as point:
        condition, passed = before(list(point.block.arguments))
        create("scf.condition", [], [condition, *passed])
    types = [v.type for v in passed]
    done = create("scf.while", types, state, regions=2)
    made.regions[0].blocks[0].append_to(done.regions[0])
    made.erase()
    with _block(done.regions[1], types) as point:
        _yield(after(list(point.block.arguments)))
    w.diverged, w.mask = outer
    return list(done.results)


def _may_wrap(w: Widener, op: ir.Operation) -> bool:
    """Whether the last addition of a step to the counter of an `scf.for` may wrap around."""
    assert w.ranges
    bounds = [w.ranges.of(v) for v in list(op.operands)[:3]]
    (_, most), step = bounds[1:]
    if "unsignedCmp" in op.attributes and min(low for low, _ in bounds) < 0:
        return step != (1, 1)
    return most - 1 + step[1] > full(bits_of(str(op.operands[0].type)))[1]


@pattern("scf.for")
def for_(w: Widener, op: ir.Operation) -> None:
    """A loop with varying bounds runs while any lane has iterations left."""
    lower, upper, step, *inits = op.operands
    body = op.regions[0].blocks[0]
    counter, *arguments = body.arguments
    w.require_numbers(arguments)
    w.erase(op)
    first, last, by = (w.wide(v) for v in (lower, upper, step))
    outer = w.mask

    order = "ult" if "unsignedCmp" in op.attributes else "slt"
    wraps = _may_wrap(w, op)

    def before(state: Sequence[ir.Value]) -> tuple[ir.Value, Sequence[ir.Value]]:
        return w.any(state[1]), state

    def after(state: Sequence[ir.Value]) -> Sequence[ir.Value]:
        at, lanes, *values = state
        _bind(w, (counter, *arguments), (at, *values))
        w.mask = lanes
        yields = [w.wide(v) for v in w.inline(body)]
        following = binary("addi", at, by)
        if wraps:
            # Test whether an iteration is left before the addition.
            more = compare("ugt", binary("subi", last, at), by)
        else:
            more = compare(order, following, last)
        return [following, both(more, lanes), *(w.choose(lanes, n, o) for n, o in zip(yields, values))]

    state = [first, both(compare(order, first, last), outer), *(w.wide(v) for v in inits)]
    _bind(w, op.results, _loop(w, op, state, before, after)[2:])


@pattern("scf.while")
def while_(w: Widener, op: ir.Operation) -> None:
    """Lanes that have left the loop keep their values."""
    first, second = (r.blocks[0] for r in op.regions)
    w.require_numbers((*first.arguments, *op.results))
    w.erase(op)
    count = len(op.operands)

    def before(state: Sequence[ir.Value]) -> tuple[ir.Value, Sequence[ir.Value]]:
        values, lanes, results = state[:count], state[count], state[count + 1 :]
        _bind(w, first.arguments, values)
        w.mask = lanes
        condition, *passed = (w.wide(v) for v in w.inline(first))
        results = [w.choose(lanes, p, r) for p, r in zip(passed, results)]
        going = binary("andi", lanes, condition)
        return w.any(going), [going, *results]

    def after(state: Sequence[ir.Value]) -> Sequence[ir.Value]:
        lanes, *results = state
        _bind(w, second.arguments, results)
        w.mask = lanes
        return [*(w.wide(v) for v in w.inline(second)), lanes, *results]

    nothing = [constant(w.with_lanes(r), 0) for r in op.results]
    state = [*(w.wide(v) for v in op.operands), w.active(), *nothing]
    _bind(w, op.results, _loop(w, op, state, before, after)[1:])


@pattern("scf.if")
def if_(w: Widener, op: ir.Operation) -> None:
    """Each region runs for the lanes that take it."""
    w.erase(op)
    condition = w.wide(op.operands[0])
    blocks = [r.blocks[0] for r in op.regions if len(r.blocks)]
    ways = [_way(w, op, b, c) for b, c in zip(blocks, (condition, _inverse(condition)))]
    _bind(w, op.results, [w.choose(condition, *values) for values in zip(*ways)] if len(op.results) else [])


def _way(w: Widener, op: ir.Operation, block: ir.Block, condition: ir.Value) -> list[ir.Value]:
    """Run a region for the lanes whose condition holds, if any; returns what it yields, with the lanes innermost."""
    w.require_numbers(op.results)
    outer = w.mask, w.diverged
    w.mask, w.diverged = condition if w.mask is None else binary("andi", w.mask, condition), op
    if all(o.operation.name.startswith(_PURE) for o in list(block.operations)[:-1]):
        found = [w.wide(v) for v in w.inline(block)]
    else:
        zeros = [constant(w.with_lanes(r), 0) for r in op.results]
        otherwise = (lambda: zeros) if zeros else None
        found = build.if_(
            w.any(w.mask), [z.type for z in zeros], lambda: [w.wide(v) for v in w.inline(block)], otherwise
        )
    w.mask, w.diverged = outer
    return found


@pattern("scf.index_switch")
def index_switch(w: Widener, op: ir.Operation) -> None:
    """Each case runs for the lanes that take it."""
    w.erase(op)
    blocks = [r.blocks[0] for r in op.regions]
    chosen = w.wide(op.operands[0])
    cases = ir.DenseI64ArrayAttr(op.attributes["cases"])
    conditions = [compare("eq", chosen, constant(w.vector(index_type()), c)) for c in cases]
    rest = w.truth(True)
    for condition in conditions:
        rest = binary("andi", rest, _inverse(condition))
    results = _way(w, op, blocks[0], rest)
    for condition, block in zip(conditions, blocks[1:]):
        results = [w.choose(condition, n, o) for n, o in zip(_way(w, op, block, condition), results)]
    _bind(w, op.results, results)


@pattern("func.call")
def call(w: Widener, op: ir.Operation) -> None:
    """Refuse calls: functions of work items must be inlined."""
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    w.fail(f"calls '{name}'", "run xegpu-inline first, which inlines functions that have a body")
