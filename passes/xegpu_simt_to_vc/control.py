"""`scf`: where lanes part, each way is gone with the lanes that go it, and loops turn while any lane does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from xegpu_py.passes.xegpu_simt_to_vc.fragments import Placement, natural
from xegpu_py.passes.xegpu_simt_to_vc.widen import Held, Widener, element_of, shape_of, vector_text, widens

_PURE = ("arith.", "math.", "index.", "vector.extract", "vector.insert", "vector.broadcast", "vector.shape_cast")
"""Ops that lanes may do though they have not come there."""


def _form(w: Widener, result: ir.Value, init: ir.Value | None = None) -> Placement | None:
    """The placement in which a value is carried; None for a uniform one."""
    if not w.uniformity.varies(result):
        return None
    known = w.placements.of(result)
    if len(known) == 1 and shape_of(result.type):
        return known[0]
    found = w.held[init].placement if init is not None else None
    return found or natural(shape_of(result.type), w.lanes)


def _type(form: Placement | None, kind: ir.Type) -> ir.Type:
    return kind if form is None else ir.Type.parse(vector_text(form.shape, element_of(kind)))


def _given(w: Widener, value: ir.Value, form: Placement | None) -> ir.Value:
    return w.uniform(value) if form is None else w.at(value, form)


def _hold(w: Widener, olds: Sequence[ir.Value], news: Sequence[ir.Value], forms: Sequence[Placement | None]) -> None:
    for old, new, form in zip(olds, news, forms):
        w.held[old] = Held(new, form)


def _yield(w: Widener, values: Sequence[ir.Value]) -> None:
    w.create("scf.yield", [], values)


def _carried(w: Widener, value: ir.Value) -> None:
    """Refuse what cannot differ from lane to lane."""
    kind = str(value.type)
    if kind.startswith(("!", "memref<")):
        w.fail(f"carries a value of type {kind} where work items part", "descriptors and memrefs must be uniform")


@widens("scf.for")
def for_(w: Widener, op: ir.Operation) -> None:
    """A loop with the same bounds in all lanes stays one; else it turns as long as any lane has turns left."""
    lower, upper, step, *inits = op.operands
    if any(w.varies(v) for v in (lower, upper, step)):
        _parted_for(w, op)
        return
    body = op.regions[0].blocks[0]
    counter, *arguments = body.arguments
    forms = [_form(w, a, i) for a, i in zip(arguments, inits)]
    given = [_given(w, v, f) for v, f in zip(inits, forms)]
    made = w.create("scf.for", [v.type for v in given], [*(w.uniform(v) for v in (lower, upper, step)), *given], {}, 1)
    block = ir.Block.create_at_start(made.regions[0], [counter.type, *(v.type for v in given)])
    w.held[counter] = Held(block.arguments[0])
    _hold(w, arguments, list(block.arguments)[1:], forms)
    with ir.InsertionPoint(block):
        yields = w.block(body)
        _yield(w, [_given(w, v, f) for v, f in zip(yields, forms)])
    _hold(w, op.results, made.results, forms)


def _loop(
    w: Widener,
    op: ir.Operation,
    state: Sequence[ir.Value],
    before: Callable[[Sequence[ir.Value]], tuple[ir.Value, Sequence[ir.Value]]],
    after: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """An scf.while. `before` gives the condition and what is passed, `after` the next state; the results."""
    outer = w.diverged, w.mask
    w.diverged = op
    # The results' types are known once the first region is there, so it is made in a block of its own.
    made = w.create("scf.while", [], state, {}, 2)
    block = ir.Block.create_at_start(made.regions[0], [v.type for v in state])
    with ir.InsertionPoint(block):
        condition, passed = before(list(block.arguments))
        w.create("scf.condition", [], [condition, *passed])
    types = [v.type for v in passed]
    done = w.create("scf.while", types, state, {}, 2)
    block.append_to(done.regions[0])
    made.erase()
    block = ir.Block.create_at_start(done.regions[1], types)
    with ir.InsertionPoint(block):
        _yield(w, after(list(block.arguments)))
    w.diverged, w.mask = outer
    return list(done.results)


def _parted_for(w: Widener, op: ir.Operation) -> None:
    lower, upper, step, *inits = op.operands
    body = op.regions[0].blocks[0]
    counter, *arguments = body.arguments
    for value in arguments:
        _carried(w, value)
    first, last, by = (w.wide(v) for v in (lower, upper, step))
    outer = w.mask
    less = "2 : i64"

    def turns(at: ir.Value, lanes: ir.Value | None) -> ir.Value:
        more = w.make("arith.cmpi", f"vector<{w.lanes}xi1>", at, last, predicate=less)
        return more if lanes is None else w.make("arith.andi", more.type, more, lanes)

    def before(state: Sequence[ir.Value]) -> tuple[ir.Value, Sequence[ir.Value]]:
        return w.any(state[1]), state

    def after(state: Sequence[ir.Value]) -> Sequence[ir.Value]:
        at, lanes, *values = state
        w.held[counter] = Held(at, natural((), w.lanes))
        for argument, value in zip(arguments, values):
            w.set(argument, value)
        w.mask = lanes
        yields = [w.wide(v) for v in w.block(body)]
        following = w.make("arith.addi", at.type, at, by)
        return [following, turns(following, lanes), *(w.choose(lanes, n, o) for n, o in zip(yields, values))]

    state = [first, turns(first, outer), *(w.wide(v) for v in inits)]
    for result, value in zip(op.results, _loop(w, op, state, before, after)[2:]):
        w.set(result, value)


@widens("scf.while")
def while_(w: Widener, op: ir.Operation) -> None:
    """A loop whose condition is the same in all lanes stays one; else lanes that leave keep what they leave with."""
    before, after = (r.blocks[0] for r in op.regions)
    if w.uniformity.varies(list(before.operations)[-1].operation.operands[0]):
        _parted_while(w, op)
        return
    forms = [_form(w, a, i) for a, i in zip(before.arguments, op.operands)]
    given = [_given(w, v, f) for v, f in zip(op.operands, forms)]
    out = [_form(w, r) for r in op.results]
    types = [_type(f, r.type) for f, r in zip(out, op.results)]
    made = w.create("scf.while", types, given, {}, 2)
    block = ir.Block.create_at_start(made.regions[0], [v.type for v in given])
    _hold(w, list(before.arguments), list(block.arguments), forms)
    with ir.InsertionPoint(block):
        values = w.block(before)
        w.create("scf.condition", [], [w.uniform(values[0]), *(_given(w, v, f) for v, f in zip(values[1:], out))])
    block = ir.Block.create_at_start(made.regions[1], types)
    _hold(w, list(after.arguments), list(block.arguments), out)
    with ir.InsertionPoint(block):
        values = w.block(after)
        _yield(w, [_given(w, v, f) for v, f in zip(values, forms)])
    _hold(w, list(op.results), list(made.results), out)


def _parted_while(w: Widener, op: ir.Operation) -> None:
    first, second = (r.blocks[0] for r in op.regions)
    for value in (*first.arguments, *op.results):
        _carried(w, value)
    count = len(op.operands)

    def before(state: Sequence[ir.Value]) -> tuple[ir.Value, Sequence[ir.Value]]:
        values, lanes, results = state[:count], state[count], state[count + 1 :]
        for argument, value in zip(first.arguments, values):
            w.set(argument, value)
        w.mask = lanes
        condition, *passed = (w.wide(v) for v in w.block(first))
        results = [w.choose(lanes, p, r) for p, r in zip(passed, results)]
        going = w.make("arith.andi", lanes.type, lanes, condition)
        return w.any(going), [going, *results]

    def after(state: Sequence[ir.Value]) -> Sequence[ir.Value]:
        lanes, *results = state
        for argument, value in zip(second.arguments, results):
            w.set(argument, value)
        w.mask = lanes
        return [*(w.wide(v) for v in w.block(second)), lanes, *results]

    nothing = [_zero(w, r.type) for r in op.results]
    state = [*(w.wide(v) for v in op.operands), w.active(), *nothing]
    for result, value in zip(op.results, _loop(w, op, state, before, after)[1:]):
        w.set(result, value)


def _zero(w: Widener, kind: ir.Type) -> ir.Value:
    """Zeros for all lanes."""
    element = element_of(kind)
    name = vector_text((*shape_of(kind), w.lanes), element)
    zero = "false" if element == "i1" else "0" if element == "index" or element[0] in "isu" else "0.0"
    return w.make("arith.constant", name, value=f"dense<{zero}> : {name}")


@widens("scf.if")
def if_(w: Widener, op: ir.Operation) -> None:
    """A branch that all lanes take together stays one; else the lanes of each way go it together."""
    blocks = [r.blocks[0] for r in op.regions if len(r.blocks)]
    if w.varies(op.operands[0]):
        condition = w.wide(op.operands[0])
        other = w.make("arith.xori", condition.type, condition, w.splat(True, "i1"))
        ways = [_way(w, op, b, c) for b, c in zip(blocks, (condition, other))]
        for i, result in enumerate(op.results):
            w.set(result, w.choose(condition, ways[0][i], ways[1][i]))
        return
    forms = [_form(w, r) for r in op.results]
    types = [_type(f, r.type) for f, r in zip(forms, op.results)]
    made = w.create("scf.if", types, [w.uniform(op.operands[0])], {}, 2)
    for region, block in zip(made.regions, blocks):
        with ir.InsertionPoint(ir.Block.create_at_start(region)):
            yields = w.block(block)
            _yield(w, [_given(w, v, f) for v, f in zip(yields, forms)])
    _hold(w, list(op.results), list(made.results), forms)


def _way(w: Widener, op: ir.Operation, block: ir.Block, condition: ir.Value) -> list[ir.Value]:
    """What the lanes whose condition holds do, if there are any; what it yields, with the lanes innermost."""
    for result in op.results:
        _carried(w, result)
    outer = w.mask, w.diverged
    w.mask = condition if w.mask is None else w.make("arith.andi", condition.type, w.mask, condition)
    w.diverged = op
    if all(o.operation.name.startswith(_PURE) for o in list(block.operations)[:-1]):
        found = [w.wide(v) for v in w.block(block)]
    else:
        zeros = [_zero(w, r.type) for r in op.results]
        made = w.create("scf.if", [z.type for z in zeros], [w.any(w.mask)], {}, 2)
        with ir.InsertionPoint(ir.Block.create_at_start(made.regions[0])):
            _yield(w, [w.wide(v) for v in w.block(block)])
        if zeros:
            with ir.InsertionPoint(ir.Block.create_at_start(made.regions[1])):
                _yield(w, zeros)
        found = list(made.results)
    w.mask, w.diverged = outer
    return found


@widens("scf.index_switch")
def index_switch(w: Widener, op: ir.Operation) -> None:
    """A choice that all lanes make together stays one; else the lanes of each case go its way together."""
    blocks = [r.blocks[0] for r in op.regions]
    chosen = op.operands[0]
    if not w.varies(chosen):
        forms = [_form(w, r) for r in op.results]
        types = [_type(f, r.type) for f, r in zip(forms, op.results)]
        made = w.create("scf.index_switch", types, [w.uniform(chosen)], {"cases": op.attributes["cases"]}, len(blocks))
        for region, block in zip(made.regions, blocks):
            with ir.InsertionPoint(ir.Block.create_at_start(region)):
                yields = w.block(block)
                _yield(w, [_given(w, v, f) for v, f in zip(yields, forms)])
        _hold(w, list(op.results), list(made.results), forms)
        return
    lanes = f"vector<{w.lanes}xi1>"
    index = w.wide(chosen)
    conditions = [
        w.make("arith.cmpi", lanes, index, w.splat(c, "index"), predicate="0 : i64")
        for c in ir.DenseI64ArrayAttr(op.attributes["cases"])
    ]
    rest = w.splat(True, "i1")
    for condition in conditions:
        no = w.make("arith.xori", lanes, condition, w.splat(True, "i1"))
        rest = w.make("arith.andi", lanes, rest, no)
    results = _way(w, op, blocks[0], rest)
    for condition, block in zip(conditions, blocks[1:]):
        results = [w.choose(condition, n, o) for n, o in zip(_way(w, op, block, condition), results)]
    for result, value in zip(op.results, results):
        w.set(result, value)


@widens("func.call")
def call(w: Widener, op: ir.Operation) -> None:
    """Functions of work items have to be in the kernel."""
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    w.fail(f"calls '{name}'", "xegpu-inline puts into a kernel what it calls, where that has a body")
