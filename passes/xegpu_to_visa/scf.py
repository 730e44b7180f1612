"""`scf`: loops and branches become labels and jumps; carried values have registers that iterations overwrite."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from xegpu_py.dialects.xegpu.interfaces import DescriptorUpdate
from xegpu_py.passes.common.control_flow import yielded
from xegpu_py.passes.common.registers import INDEX, unsigned
from xegpu_py.passes.xegpu_to_visa.emit import Emitter
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, parts_of, pattern, with_parts
from xegpu_py.passes.xegpu_to_visa.values import (
    NARROW,
    Block,
    Const,
    KnownMask,
    Mask,
    Reg,
    Undefined,
    Value,
    bounds_of,
)
from xegpu_py.visa.operands import Flag, Guard, Predicate, Variable


def carry(emit: Emitter, value: Value, fixed: Sequence[bool] = ()) -> Value:
    """New registers initialized with a value. Parts that are `fixed` keep their registers."""
    parts: list[Reg | Mask | Const | KnownMask] = []
    for i, part in enumerate(parts_of(value)):
        if fixed and fixed[i]:
            parts.append(part)
        elif isinstance(part, (Mask, KnownMask)):
            parts.append(emit.mask(part.count))
            assign(emit, parts[-1], part)
        else:
            parts.append(_like(emit, part))
            assign(emit, parts[-1], part)
    return with_parts(value, parts)


def _like(emit: Emitter, part: Reg | Const) -> Reg:
    """New registers of the size of the whole variable, so that both can be coalesced."""
    if isinstance(part, Reg) and part.first == 0 and part.var.alias is None:
        var = emit.variable(part.type, part.var.count)
        return Reg(var, 0, part.count)
    return emit.reg(part.type, part.count)


def assign(emit: Emitter, to: Value, value: Value) -> None:
    """Copy a value to carried registers."""
    pairs: list[tuple[Value, Value]] = [(t, v) for t, v in zip(parts_of(to), parts_of(value)) if t != v]
    # If a target is another one's source, as in a swap, all sources are read before any target is written.
    targets = [t.var.root[0] for t, _ in pairs if isinstance(t, Reg)]
    clash = any(isinstance(v, Reg) and v.var.root[0] in targets for _, v in pairs) and len(pairs) > 1
    if clash:
        pairs = [(t, carry(emit, v) if isinstance(v, Reg) else v) for t, v in pairs]
    for t, v in pairs:
        if isinstance(t, Mask):
            if isinstance(v, KnownMask):
                emit.set_flags(v, t)
            elif isinstance(v, Mask):
                for a, b in zip(t.predicates, v.predicates):
                    emit.emit("and", a.count, dst=Flag(a), src0=Flag(b), src1=Flag(b))
        elif isinstance(t, Reg) and isinstance(v, (Reg, Const)):
            emit.copy(t, v)


def _variables(value: Value) -> set[Variable | Predicate]:
    """The variables and predicates that hold a value."""
    parts = parts_of(value)
    held: set[Variable | Predicate] = {p.var.root[0] for p in parts if isinstance(p, Reg)}
    return held.union(*(p.predicates for p in parts if isinstance(p, Mask)))


def assign_all(emit: Emitter, to: Sequence[Value], values: Sequence[Value]) -> None:
    """Parallel copy of values to carried registers."""
    targets = {v for t in to for v in _variables(t)}
    held = []
    for t, v in zip(to, values):
        clash = not _variables(v).isdisjoint(targets - _variables(t))
        held.append(carry(emit, v) if clash else v)
    for t, v in zip(to, held):
        assign(emit, t, v)


def _unchanged(argument: ir.Value, out: ir.Value, value: Value) -> list[bool]:
    """The parts of a carried value that no iteration changes."""
    moved = False
    while isinstance(out.owner, ir.OpView | ir.Operation) and isinstance(out.owner.opview, DescriptorUpdate):
        moved = True
        out = out.owner.operation.operands[0]
    parts = parts_of(value)
    if out != argument:
        return [False] * len(parts)
    if not moved:
        return [True] * len(parts)
    if isinstance(value, Block):
        return [True] * (len(parts) - len(value.offsets)) + [False] * len(value.offsets)
    return [False] * len(parts)


@pattern("scf.for")
def for_(low: Lowering, op: ir.Operation) -> None:
    """A counted loop."""
    emit = low.emit
    body = op.regions[0].blocks[0]
    lower, upper, step = (low.numbers(v) for v in list(op.operands)[:3])
    yields = yielded(body)
    arguments = list(body.arguments)[1:]
    carried: list[Value] = []
    for init, argument, out in zip(list(op.operands)[3:], arguments, yields):
        carried.append(_carried(low, init, argument, out))
        low.values[argument] = low.bounded(carried[-1], argument)
    type_name = lower.type
    if isinstance(body.arguments[0].type, ir.IndexType):
        type_name = NARROW if {lower.type, upper.type, step.type} == {NARROW} else INDEX
    # What the last addition may reach.
    last = bounds_of(upper)[1] - 1 + bounds_of(step)[1]
    given = type_name
    if "unsignedCmp" in op.attributes and min(bounds_of(n)[0] for n in (lower, upper, step)) < 0:
        if isinstance(body.arguments[0].type, ir.IndexType):
            given = "q"
            lower, upper, step = (low.typed(n, given) for n in (lower, upper, step))
        type_name = unsigned(given)
        lower, upper, step = (emit.as_type(n, type_name) for n in (lower, upper, step))
        last = bounds_of(upper)[1] - 1 + bounds_of(step)[1]
    counter = Reg(emit.variable(type_name, 1), 0, 1)
    emit.copy(counter, lower)
    low.define(body.arguments[0], emit.as_type(counter, given))
    begin, end = emit.label("For"), emit.label("Done")
    runs = isinstance(lower, Const) and isinstance(upper, Const) and lower.value < upper.value
    if not runs:
        more = emit.compare("lt", 1, counter, upper)
        emit.jump(end, unless=more)
    emit.place(begin)
    low.block(body)
    assign_all(emit, carried, [low.value(y) for y in yields])
    beyond = last > bounds_of(counter)[1]
    if not beyond or counter.format.bytes < 8:
        # A counter that saturates is not below the limit, which has the same type.
        emit.apply("add", type_name, 1, counter, step, into=counter, saturate=beyond)
        more = emit.compare("lt", 1, counter, upper)
    else:
        # The counter may wrap around: test before the addition whether an iteration is left.
        left = emit.apply("add", type_name, 1, counter, upper, modifiers=("-",))
        more = emit.compare("gt", 1, emit.as_unsigned(left), emit.as_unsigned(step))
        emit.apply("add", type_name, 1, counter, step, into=counter)
    emit.jump(begin, when=more)
    emit.place(end)
    low.set(op, *(low.bounded(value, result) for value, result in zip(carried, op.results)))


def _carried(low: Lowering, init: ir.Value, argument: ir.Value, out: ir.Value | None = None) -> Value:
    """The registers that carry a value through a loop; parts that the yielded value does not change are fixed."""
    value = low.value(init)
    if isinstance(value, Undefined):
        low.fail(f"carries a value of type {init.type} that is not defined before the first iteration")
    fixed = _unchanged(argument, out, value) if out is not None else ()
    return carry(low.emit, low.fit(value, argument, fixed), fixed)


def join(low: Lowering, op: ir.Operation, results: list[Value], block: ir.Block) -> None:
    """Lower a region, and copy its yielded values to the op's results; the first region creates the registers."""
    with low.emit.scope(is_branch=True):
        low.block(block)
        values = [low.value(v) for v in yielded(block)]
        if not results:
            results += [Undefined()] * len(values)
        for i, value in enumerate(values):
            if isinstance(results[i], Undefined):
                results[i] = carry(low.emit, low.fit(value, op.results[i]))
            elif not isinstance(value, Undefined):
                assign(low.emit, results[i], value)


def choose(low: Lowering, op: ir.Operation) -> None:
    """`arith.select` of descriptors, memrefs and barriers: a branch."""
    condition, yes, no = op.operands
    result = carry(low.emit, low.fit(low.value(yes), op.results[0]))
    end = low.emit.label("EndSelect")
    low.emit.jump(end, when=low.mask(condition))
    assign(low.emit, result, low.value(no))
    low.emit.place(end)
    low.set(op, low.bounded(result, op.results[0]))


@pattern("scf.if")
def if_(low: Lowering, op: ir.Operation) -> None:
    """A branch on a uniform condition."""
    emit = low.emit
    condition = low.value(op.operands[0])
    regions = [r for r in op.regions if len(r.blocks)]
    if isinstance(condition, KnownMask):
        taken = 0 if condition.value else 1
        if taken < len(regions):
            block = regions[taken].blocks[0]
            low.block(block)
            low.set(op, *(low.value(v) for v in yielded(block)))
        return
    otherwise, end = emit.label("Else"), emit.label("EndIf")
    predicate = low.mask(op.operands[0]).predicates[0]
    emit.emit("jmp", guard=Guard(predicate, True), no_mask=False, label=otherwise)
    results: list[Value] = []
    join(low, op, results, regions[0].blocks[0])
    if len(regions) > 1:
        emit.jump(end)
        emit.place(otherwise)
        join(low, op, results, regions[1].blocks[0])
        emit.place(end)
    else:
        emit.place(otherwise)
    low.set(op, *(low.bounded(value, to) for value, to in zip(results, op.results)))


@pattern("scf.while")
def while_(low: Lowering, op: ir.Operation) -> None:
    """A loop on a uniform condition."""
    emit = low.emit
    before, after = (r.blocks[0] for r in op.regions)
    carried = [_carried(low, v, to) for v, to in zip(op.operands, before.arguments)]
    for argument, value in zip(before.arguments, carried):
        low.values[argument] = low.bounded(value, argument)
    begin, end = emit.label("While"), emit.label("Done")
    emit.place(begin)
    low.block(before)
    condition, *passed = yielded(before)
    results = [carry(emit, low.fit(low.value(v), to)) for v, to in zip(passed, op.results)]
    emit.jump(end, unless=low.mask(condition))
    for argument, value in zip(after.arguments, results):
        low.values[argument] = low.bounded(value, argument)
    low.block(after)
    assign_all(emit, carried, [low.value(v) for v in yielded(after)])
    emit.jump(begin)
    emit.place(end)
    low.set(op, *(low.bounded(value, to) for value, to in zip(results, op.results)))


@pattern("scf.index_switch")
def index_switch(low: Lowering, op: ir.Operation) -> None:
    """A choice among cases; the first region is the default."""
    emit = low.emit
    cases = ir.DenseI64ArrayAttr(op.attributes["cases"])
    chosen = low.numbers(op.operands[0])
    end = emit.label("EndSwitch")
    results: list[Value] = []

    regions = list(op.regions)
    for case, region in zip(cases, regions[1:]):
        following = emit.label("Case")
        same = emit.compare("eq", 1, low.emit.in_registers(chosen), low.index(case))
        emit.jump(following, unless=same)
        join(low, op, results, region.blocks[0])
        emit.jump(end)
        emit.place(following)
    join(low, op, results, regions[0].blocks[0])
    emit.place(end)
    low.set(op, *(low.bounded(value, to) for value, to in zip(results, op.results)))
