"""Rules for scf, func and gpu: labels, calls, ids, barriers, prints."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence

from mlir import ir
from msgspec.structs import replace

from xegpu_py.deferred import pattern
from xegpu_py.dialects.xegpu.op_interfaces import DescriptorUpdate
from xegpu_py.dialects.xegpu.types import FenceScope, MemoryKind
from xegpu_py.ir.builtin import INLINE, PRINT, TEXT, check_format, enumerator
from xegpu_py.ir.control_flow import yielded
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.analysis.ir_queries import INDEX, Functions, element_of, shape_and_element, shape_of, unsigned
from xegpu_py.passes.analysis.target_messages import atomic_shape
from xegpu_py.passes.xegpu_to_visa.addresses import store_line
from xegpu_py.passes.xegpu_to_visa.arith_expansion import assign, copy_to_new_registers
from xegpu_py.passes.xegpu_to_visa.emitter import THREAD_WORD, Emitter
from xegpu_py.passes.xegpu_to_visa.lowering import Lowering, LoweringRule, Results, result_of, vc_lowering_rule
from xegpu_py.passes.xegpu_to_visa.register_values import (
    MASK_LANES,
    NARROW,
    BlockDescriptor,
    Const,
    KnownMask,
    Mask,
    NamedBarrierNumbers,
    Numbers,
    Reg,
    UndefinedHandle,
    Value,
    bounds_of,
    const,
    index_type,
    value_parts,
)
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import BUILTINS, Guard, Predicate, Raw, Variable
from xegpu_py.visa.print_records import HEADER_WORDS, STOPS, text_bytes, text_words
from xegpu_py.visa.spec import DataShape

# `scf`: loops and branches become labels and jumps; carried values have registers that iterations overwrite.


def _value_variables(value: Value) -> set[Variable | Predicate]:
    parts = value_parts(value)
    variables: set[Variable | Predicate] = {p.var.root[0] for p in parts if isinstance(p, Reg)}
    return variables.union(*(p.predicates for p in parts if isinstance(p, Mask)))


def assign_all(emit: Emitter, targets_: Sequence[Value], values: Sequence[Value]) -> None:
    """Parallel copy of values to carried registers."""
    targets = {v for t in targets_ for v in _value_variables(t)}
    sources = []
    for t, v in zip(targets_, values):
        clash = not _value_variables(v).isdisjoint(targets - _value_variables(t))
        sources.append(copy_to_new_registers(emit, v) if clash else v)
    for t, v in zip(targets_, sources):
        assign(emit, t, v)


def _unchanged_parts(argument: ir.Value, out: ir.Value, value: Value) -> list[bool]:
    """The parts of a carried value that no iteration changes."""
    moved = False
    while isinstance(out.owner, ir.OpView | ir.Operation) and isinstance(out.owner.opview, DescriptorUpdate):
        moved = True
        out = out.owner.operation.operands[0]
    parts = value_parts(value)
    if out != argument:
        return [False] * len(parts)
    if not moved:
        return [True] * len(parts)
    if isinstance(value, BlockDescriptor):
        return [True] * (len(parts) - len(value.offsets)) + [False] * len(value.offsets)
    return [False] * len(parts)


@vc_lowering_rule("scf.for")
def for_(low: Lowering, op: ir.Operation) -> tuple[Value, ...]:
    """A counted loop."""
    emit = low.emit
    body = op.regions[0].blocks[0]
    lower, upper, step = (low.numbers(v) for v in list(op.operands)[:3])
    yields = yielded(body)
    arguments = list(body.arguments)[1:]
    carried: list[Value] = []
    for init, argument, out in zip(list(op.operands)[3:], arguments, yields):
        carried.append(_loop_registers(low, init, argument, out))
        low.values[argument] = low.with_range(carried[-1], argument)
    type_name = lower.type
    if isinstance(body.arguments[0].type, ir.IndexType):
        type_name = NARROW if {lower.type, upper.type, step.type} == {NARROW} else INDEX
    counter_type = type_name
    if "unsignedCmp" in op.attributes and min(bounds_of(n)[0] for n in (lower, upper, step)) < 0:
        if isinstance(body.arguments[0].type, ir.IndexType):
            counter_type = "q"
            lower, upper, step = (low.cast(n, counter_type) for n in (lower, upper, step))
        type_name = unsigned(counter_type)
        lower, upper, step = (emit.as_type(n, type_name) for n in (lower, upper, step))
    counter = Reg(emit.variable(type_name, 1), 0, 1)
    emit.copy(counter, lower)
    low.define(body.arguments[0], emit.as_type(counter, counter_type))
    begin, end = emit.label("For"), emit.label("Done")
    runs = isinstance(lower, Const) and isinstance(upper, Const) and lower.value < upper.value
    if not runs:
        continues = emit.compare("lt", 1, counter, upper)
        emit.jump(end, unless=continues)
    emit.emit_label(begin)
    low.block(body)
    assign_all(emit, carried, [low.value(y) for y in yields])
    # The last addition may overflow the counter.
    overflows = bounds_of(upper)[1] - 1 + bounds_of(step)[1] > bounds_of(counter)[1]
    if not overflows or counter.format.bytes < 8:
        # A counter that saturates is not below the limit, which has the same type.
        emit.apply("add", type_name, 1, counter, step, into=counter, saturate=overflows)
        continues = emit.compare("lt", 1, counter, upper)
    else:
        # The counter may wrap around: test before the addition whether an iteration is left.
        remaining = emit.apply("add", type_name, 1, counter, upper, modifiers=("-",))
        continues = emit.compare("gt", 1, emit.as_unsigned(remaining), emit.as_unsigned(step))
        emit.apply("add", type_name, 1, counter, step, into=counter)
    emit.jump(begin, when=continues)
    emit.emit_label(end)
    return tuple(low.with_range(value, result) for value, result in zip(carried, op.results))


def _loop_registers(low: Lowering, init: ir.Value, argument: ir.Value, out: ir.Value | None = None) -> Value:
    """The registers that carry a value through a loop; parts that the yielded value does not change are fixed."""
    value = low.value(init)
    if isinstance(value, UndefinedHandle):
        low.fail(f"carries a value of type {init.type} that is not defined before the first iteration")
    fixed = _unchanged_parts(argument, out, value) if out is not None else ()
    return copy_to_new_registers(low.emit, low.cast_to_merge_type(value, argument, fixed), fixed)


def lower_branch_region(low: Lowering, op: ir.Operation, results: list[Value], block: ir.Block) -> None:
    """Lower a region, and copy its yielded values to the op's results; the first region creates the registers."""
    with low.emit.scope(is_branch=True):
        low.block(block)
        values = [low.value(v) for v in yielded(block)]
        if not results:
            results += [UndefinedHandle()] * len(values)
        for i, value in enumerate(values):
            if isinstance(results[i], UndefinedHandle):
                results[i] = copy_to_new_registers(low.emit, low.cast_to_merge_type(value, op.results[i]))
            elif not isinstance(value, UndefinedHandle):
                assign(low.emit, results[i], value)


@vc_lowering_rule("scf.if")
def if_(low: Lowering, op: ir.Operation) -> tuple[Value, ...]:
    """A branch on a uniform condition."""
    emit = low.emit
    condition = low.value(op.operands[0])
    regions = [r for r in op.regions if len(r.blocks)]
    if isinstance(condition, KnownMask):
        region_number = 0 if condition.value else 1
        if region_number < len(regions):
            block = regions[region_number].blocks[0]
            low.block(block)
            return tuple(low.value(v) for v in yielded(block))
        return ()
    otherwise, end = emit.label("Else"), emit.label("EndIf")
    predicate = low.mask(op.operands[0]).predicates[0]
    emit.emit("jmp", guard=Guard(predicate, True), no_mask=False, label=otherwise)
    results: list[Value] = []
    lower_branch_region(low, op, results, regions[0].blocks[0])
    if len(regions) > 1:
        emit.jump(end)
        emit.emit_label(otherwise)
        lower_branch_region(low, op, results, regions[1].blocks[0])
        emit.emit_label(end)
    else:
        emit.emit_label(otherwise)
    return tuple(low.with_range(value, to) for value, to in zip(results, op.results))


@vc_lowering_rule("scf.while")
def while_(low: Lowering, op: ir.Operation) -> tuple[Value, ...]:
    """A loop on a uniform condition."""
    emit = low.emit
    before, after = (r.blocks[0] for r in op.regions)
    carried = [_loop_registers(low, v, to) for v, to in zip(op.operands, before.arguments)]
    for argument, value in zip(before.arguments, carried):
        low.values[argument] = low.with_range(value, argument)
    begin, end = emit.label("While"), emit.label("Done")
    emit.emit_label(begin)
    low.block(before)
    condition, *passed = yielded(before)
    results = [
        copy_to_new_registers(emit, low.cast_to_merge_type(low.value(v), to)) for v, to in zip(passed, op.results)
    ]
    emit.jump(end, unless=low.mask(condition))
    for argument, value in zip(after.arguments, results):
        low.values[argument] = low.with_range(value, argument)
    low.block(after)
    assign_all(emit, carried, [low.value(v) for v in yielded(after)])
    emit.jump(begin)
    emit.emit_label(end)
    return tuple(low.with_range(value, to) for value, to in zip(results, op.results))


@vc_lowering_rule("scf.index_switch")
def index_switch(low: Lowering, op: ir.Operation) -> tuple[Value, ...]:
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
        lower_branch_region(low, op, results, region.blocks[0])
        emit.jump(end)
        emit.emit_label(following)
    lower_branch_region(low, op, results, regions[0].blocks[0])
    emit.emit_label(end)
    return tuple(low.with_range(value, to) for value, to in zip(results, op.results))


# `func.call` of intrinsics: functions without a body that are lowered to instructions.

INTRINSICS: dict[str, LoweringRule] = {}
"""The rules of intrinsics by name. A function's name may have a suffix after a dot."""


@vc_lowering_rule("func.call")
def call(low: Lowering, op: ir.Operation) -> Results:
    """Lower a call of an intrinsic."""
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    rule = next((r for n, r in INTRINSICS.items() if f"{name}.".startswith(f"{n}.")), None)
    if rule is None:
        if len(Functions(op).called(op).regions[0].blocks):
            low.fail(f"calls '{name}'", "run xegpu-inline first")
        intrinsics = ", ".join(INTRINSICS)
        low.fail(f"calls undefined function '{name}'", f"functions that need no body are {intrinsics}")
    return rule(low, op)


_SRND_TYPES = {"f32": ("f16", ("f32", "i32", "i16")), "f16": ("f8E5M2", ("f16", "i16", "i8"))}
"""The source and result types of srnd, and the types of its random bits."""


def srnd(low: Lowering, op: ir.Operation) -> Value:
    """Stochastic rounding: of f32 to f16 by the lowest 13 bits of random numbers, of f16 to f8E5M2 by the lowest 8."""
    rule = "; ".join(f"{a} to {b} with random bits of {', '.join(r)}" for a, (b, r) in _SRND_TYPES.items())
    types = [str(element_of(v)) for v in (*op.operands, *op.results)]
    if len(types) != 3 or len(set(map(shape_of, (*op.operands, *op.results)))) != 1:
        low.fail("values, random bits and result must have the same shape")
    source, random, narrow = types
    result_type, allowed = _SRND_TYPES.get(source, ("", ()))
    if narrow != result_type or random not in allowed:
        low.fail(f"cannot round {source} to {narrow} with random bits of {random}", f"srnd rounds {rule}")
    if "srnd" in low.target.absent:
        low.fail(
            f"requires srnd, which target '{low.target.name}' does not support", "arith.truncf rounds to nearest even"
        )
    emit = low.emit
    count, _, name = result_of(low, op)
    numbers = low.reg(op.operands[0])
    bits = emit.as_unsigned(low.reg(op.operands[1]))
    wide = unsigned(numbers.type)
    if TYPES[bits.type].bytes < TYPES[wide].bytes:
        bits = emit.apply("mov", wide, count, bits)
    return emit.apply("srnd", name, count, numbers, emit.as_type(bits, numbers.type), most=16)


INTRINSICS["llvm.genx.srnd"] = srnd


def print_lanes(low: Lowering, op: ir.Operation) -> None:
    """A record for each lane of the mask, the first operand."""
    mask, *values = op.operands
    text = ir.StringAttr(op.attributes[TEXT]).value
    print_record(low, text, [str(element_of(v)) for v in values], values, math.prod(shape_of(mask)), mask)


# `cf.assert` and `gpu.printf`: records in the print buffer.


def print_record(
    low: Lowering,
    text: str,
    elements: Sequence[str],
    values: Sequence[ir.Value],
    lanes: int = 1,
    mask: ir.Value | None = None,
    stops: bool = False,
) -> None:
    """Write a record for each lane; `print_records` defines its format.

    Args:
        text: the format.
        elements: MLIR's types of the numbers.
        values: for each type a number, or a vector with a number for each lane.
        lanes: the number of lanes.
        mask: vector of i1, the lanes that print; None for all.
        stops: whether this is the message of an assertion.

    Raises:
        ValueError: if the format does not match the elements.
    """
    check_format(text, elements)
    emit, buffer = low.emit, low.print_buffer()
    words, length = text_words(elements, text), len(text_bytes(elements, text))
    size = 8 * (HEADER_WORDS + len(words) + len(values))
    numbers = [_bits_as_uq(low, v, lanes) for v in values]
    last = emit.grf_reg("ud", 1)
    base = emit.apply("mov", "uq", 1, buffer, into=emit.grf_reg("uq", 1))
    emit.message("lsc_load", DataShape("d32"), base, offset=4, dst=emit.raw(last))
    # Signed: negative if the record is larger than the buffer.
    last = emit.apply("add", "d", 1, emit.as_type(last, "d"), const(-size, "d"))
    group = [Reg(BUILTINS[f"%group_id_{d}"], 0, 1) for d in "xyz"]
    thread = _thread_number(low, "ud")
    for first in range(0, lanes, MASK_LANES):
        count = min(MASK_LANES, lanes - first)
        mask_value = None if mask is None else low.value(mask)
        if isinstance(mask_value, KnownMask) and not mask_value.value:
            continue
        predicate = mask_value.predicates[first // MASK_LANES] if isinstance(mask_value, Mask) else None
        buffers = emit.apply("mov", "uq", count, buffer, into=emit.grf_reg("uq", count))
        used, sizes = emit.grf_reg("ud", count), emit.grf_reg("ud", count)
        emit.apply("mov", "ud", count, const(size, "ud"), into=sizes)
        emit.apply("mov", "ud", count, const(0, "ud"), into=used)
        guard, none = Guard(predicate) if predicate else None, Raw(None)
        old, added = emit.raw(used), emit.raw(sizes)
        emit.message(
            "lsc_atomic_iadd", atomic_shape(32), buffers, lanes=count, guard=guard, dst=old, src0=added, src1=none
        )
        fits = emit.compare("le", count, emit.as_type(used, "d"), last)
        if predicate:
            fits = emit.flags("and", count, fits, Mask((predicate,), count))
        addresses = emit.apply("add", "uq", count, buffers, used, into=emit.grf_reg("uq", count))
        writes = Guard(fits.predicates[0])
        header: list[Numbers] = [const(size, "ud"), thread, *group]
        header += [_lane_numbers(low, first, count, stops), const(length, "ud"), const(0, "ud")]
        words_: list[Numbers] = [const(w, "uq") for w in words]
        words_ += [n if isinstance(n, Const) or n.count == 1 else n.slice(first, count) for n in numbers]
        if lanes == 1:
            _store_line(low, addresses, writes, header, words_)
            continue
        for i, number in enumerate(header):
            payload = emit.apply("mov", "ud", count, number, into=emit.grf_reg("ud", count))
            _store_lanes(low, addresses, 4 * i, payload, writes)
        for i, number in enumerate(words_):
            payload = emit.apply("mov", "uq", count, number, into=emit.grf_reg("uq", count))
            _store_lanes(low, addresses, 8 * (HEADER_WORDS + i), payload, writes)


def _lane_numbers(low: Lowering, first: int, count: int, stops: bool) -> Numbers:
    """Write the dwords of the records that are not the lanes' numbers, each by its own instruction."""
    numbers = [const(first + lane | (STOPS if stops else 0), "ud") for lane in range(count)]
    if count == 1:
        return numbers[0]
    lane_dwords = low.emit.grf_reg("ud", count)
    for lane, number in enumerate(numbers):
        low.emit.apply("mov", "ud", 1, number, into=Reg(lane_dwords.var, lane, 1))
    return lane_dwords


def _store_line(low: Lowering, address: Reg, guard: Guard, header: Sequence[Numbers], words: Sequence[Numbers]) -> None:
    """Store a record of one lane, which is contiguous in registers and in memory."""
    emit, count = low.emit, HEADER_WORDS + len(words)
    whole = emit.grf_reg("uq", count)
    halves = emit.as_type(whole, "ud")
    for i, number in enumerate(header):
        emit.apply("mov", "ud", 1, number, into=halves.slice(i, 1))
    for i, number in enumerate(words):
        emit.apply("mov", "uq", 1, number, into=Reg(whole.var, HEADER_WORDS + i, 1))
    store_line(low, (address, 0), False, "", whole, guard)


def _bits_as_uq(low: Lowering, value: ir.Value, lanes: int) -> Numbers:
    """The bits of numbers as uq; an index is sign-extended."""
    emit, operand = low.emit, low.value(value)
    if isinstance(operand, (Mask, KnownMask)):
        return emit.select(low.mask(value), "uq", operand.count, const(1, "uq"), const(0, "uq"))
    numbers = low.numbers(value)
    if isinstance(numbers, Const):
        bits = numbers.bits
        if shape_and_element(value)[1] == "index":
            bits = int.from_bytes(struct.pack("<q", numbers.value), "little")
        return const(bits, "uq")
    if shape_and_element(value)[1] == "index":
        return emit.as_type(low.cast(numbers, "q"), "uq")
    return emit.in_registers(emit.as_type(numbers, unsigned(numbers.type)), "uq")


def _store_lanes(low: Lowering, addresses: Reg, offset: int, numbers: Reg, guard: Guard | None = None) -> None:
    """Store a number for each lane."""
    data, source = DataShape("d64" if numbers.type == "uq" else "d32"), low.emit.raw(numbers)
    low.emit.message("lsc_store", data, addresses, lanes=addresses.count, offset=offset, guard=guard, src0=source)


INTRINSICS[PRINT] = print_lanes

_OPERAND = pattern(r"(?P<sign>-?)(?P<name>\$\d+|%\w+|[\w.+]+):(?P<type>\w+)")
"""An operand of `inline_visa` with its type: the result or an argument, a name, or a number."""


def inline_visa(low: Lowering, op: ir.Operation) -> Value:
    """Emit instructions given as text for all elements."""
    count, _, name = result_of(low, op)
    registers: dict[str, Reg] = {}
    for i, value in enumerate(op.operands):
        registers[f"${i + 1}"] = low.reg(value)
    for line in ir.StringAttr(op.attributes[TEXT]).value.split("\n"):
        if line.strip():
            _inline_instruction(low, line.replace(",", " ").split(), registers, count)
    if "$0" not in registers:
        low.fail("has no instruction that writes $0")
    return low.emit.as_type(registers["$0"], name)


_ACCESS = (
    "its message would be sent by each subgroup that has a part, with addresses of its own: see load, store and tiles"
)

_REFUSED_CATEGORIES = {
    "load": _ACCESS,
    "store": _ACCESS,
    "atomic": "subgroups that share a part would each update it: see atomic_add, atomic_cas and the others",
    "sync": "it has no elements: see barrier, fence and named_barrier",
    "control": "a jump would leave the ops around it: the kernel's own if, while and for become jumps",
    "dpas": "its operands are blocks of matrices: see dot and dot_scaled",
}
"""The reason why `inline_visa` refuses a category of instructions, and the alternative."""


def _inline_instruction(low: Lowering, words: list[str], registers: dict[str, Reg], count: int) -> None:
    name, _, suffix = words[0].partition(".")
    spec = INSTRUCTIONS.get(name)
    instruction = spec or INSTRUCTIONS.get(words[0])
    if instruction is not None and instruction.category in _REFUSED_CATEGORIES:
        low.fail(
            f"cannot take '{words[0]}': it works on {count} elements, one by one",
            _REFUSED_CATEGORIES[instruction.category],
        )
    if spec is None or spec.category not in ("alu", "math") or suffix not in ("", "sat"):
        low.fail(f"has no instruction '{words[0]}'", "arithmetic instructions of vISA are taken, with .sat or without")
    operands = [_OPERAND.fullmatch(w) for w in words[1:]]
    operand_slots = [slot for slot in spec.slots if slot.name == "dst" or slot.name.startswith("src")]
    if len(operand_slots) < len(spec.slots) or spec.second:
        low.fail(f"cannot take '{words[0]}': it has two results")
    if spec.attributes:
        low.fail(f"cannot take '{words[0]}': it has more than operands", f"its text is '{spec.form}'")
    if len(operands) != len(operand_slots) or None in operands:
        low.fail(
            f"cannot take '{' '.join(words)}'",
            f"'{name}' has {len(operand_slots)} operands, such as $0:ud, %t:f and 3:d",
        )
    target, *sources = (m for m in operands if m)
    for match, slot in zip((target, *sources), operand_slots):
        if match["type"] not in slot.types:
            low.fail(f"'{name}' has no operand of type {match['type']}", f"it has {', '.join(slot.types)}")
    numbers = [_inline_operand(low, m, registers) for m in sources]
    signs = [m["sign"] for m in sources]
    result = low.emit.apply(name, target["type"], count, *numbers, modifiers=signs, saturate=suffix == "sat")
    registers[target["name"]] = result


def _inline_operand(low: Lowering, match: re.Match[str], registers: dict[str, Reg]) -> Numbers:
    name, kind = match["name"], match["type"]
    if name in registers:
        if registers[name].format.bytes != TYPES[kind].bytes:
            low.fail(f"cannot take {name}, of type {registers[name].type}, as {kind}", "the widths must be the same")
        return low.emit.as_type(registers[name], kind)
    try:
        return const(float(name) if TYPES[kind].is_float else int(name, 0), kind)
    except ValueError:
        low.fail(
            f"knows no operand '{name}'",
            "operands are $0 for the result, $1, ..., names that begin with %, and numbers",
        )


INTRINSICS[INLINE] = inline_visa


# `gpu`: ids and extents of the grid, and barriers.


def _dimension(op: ir.Operation) -> int:
    return "xyz".index(enumerator(op.attributes["dimension"]))


def _group_id(low: Lowering, dimension: int) -> Reg:
    bounds = low.limits.launch_range("block_id", dimension)
    group = Reg(BUILTINS[f"%group_id_{'xyz'[dimension]}"], 0, 1)
    return replace(low.emit.apply("mov", index_type(bounds), 1, group), bounds=bounds)


@vc_lowering_rule("gpu.block_id")
def block_id(low: Lowering, op: ir.Operation) -> Value:
    """The workgroup's place in the grid."""
    return _group_id(low, _dimension(op))


_IMPLICIT = {"gpu.thread_id": "LOCAL_ID", "gpu.block_dim": "LOCAL_SIZE", "gpu.grid_dim": "GROUP_COUNT"}


@vc_lowering_rule(*_IMPLICIT)
def implicit_input(low: Lowering, op: ir.Operation) -> Value:
    """A thread's place in its workgroup, and extents; in vector compute mode a work item is a hardware thread."""
    return low.implicit_input(_IMPLICIT[op.name], _dimension(op))


@vc_lowering_rule("gpu.global_id")
def global_id(low: Lowering, op: ir.Operation) -> Value:
    """The thread's place among all threads."""
    d = _dimension(op)
    first = low.multiply(_group_id(low, d), low.implicit_input("LOCAL_SIZE", d))
    return low.add(first, low.implicit_input("LOCAL_ID", d))


@vc_lowering_rule("gpu.subgroup_id")
def subgroup_id(low: Lowering, op: ir.Operation) -> Value:
    """The thread's number within its workgroup."""
    return _thread_number(low, NARROW)


def _thread_number(low: Lowering, kind: str) -> Numbers:
    """The thread's number within its workgroup: the low byte of the dword, above which hardware has other numbers."""
    return low.emit.apply("and", kind, 1, Reg(BUILTINS["%r0"], THREAD_WORD, 1), const(0xFF, "ud"))


@vc_lowering_rule("gpu.num_subgroups")
def num_subgroups(low: Lowering, op: ir.Operation) -> Value:
    """Threads of a workgroup."""
    within = low.limits.launch_range("num_subgroups")
    x, y, z = (low.implicit_input("LOCAL_SIZE", d) for d in range(3))
    return low.multiply(low.multiply(x, y, within), z, within)


@vc_lowering_rule("gpu.lane_id", "gpu.subgroup_size")
def one_work_item(low: Lowering, op: ir.Operation) -> Value:
    """In vector compute mode a thread is one work item."""
    return low.index(int(op.name == "gpu.subgroup_size"))


@vc_lowering_rule("gpu.barrier")
def barrier(low: Lowering, op: ir.Operation) -> None:
    """Barrier with a fence: writes of the workgroup before it are visible after it."""
    for memory in ("slm", "ugm"):
        low.emit.emit("lsc_fence", no_mask=False, sfid=memory, flush="none", scope="group")
    low.emit.emit("barrier", no_mask=False)


# `xegpu`: named barriers, fences and hints.


@vc_lowering_rule("xegpu.alloc_nbarrier")
def alloc_nbarrier(low: Lowering, op: ir.Operation) -> None:
    """Set the kernel's number of named barriers; the target's maximum if the number is dynamic."""
    view = op.opview
    count = view.nbarrier_num
    if count is None:
        number = low.numbers(view.count)
        count = number.value if isinstance(number, Const) else low.target.named_barriers - low.has_workgroup_barrier
    low.barriers = max(low.barriers, count + low.has_workgroup_barrier)


def _as_byte(low: Lowering, value: ir.Value) -> Numbers:
    number = low.numbers(value)
    return const(number.value, "ub") if isinstance(number, Const) else low.emit.in_registers(number, "ub")


@vc_lowering_rule("xegpu.init_nbarrier", "xegpu.create_nbarrier")
def init_nbarrier(low: Lowering, op: ir.Operation) -> Value:
    """A barrier's number, and the number of its threads."""
    view = op.opview
    creates = op.name == "xegpu.create_nbarrier"
    count = const(view.num_producers, "ub") if creates else _as_byte(low, view.participant_thread_num)
    number = _as_byte(low, view.nbarrier_id)
    if low.has_workgroup_barrier:
        following = const(number.value + 1, "ub") if isinstance(number, Const) else None
        number = following or low.emit.apply("add", "ub", 1, number, const(1, "ub"))
    return NamedBarrierNumbers(number, count)


@vc_lowering_rule("xegpu.nbarrier_arrive")
def nbarrier_arrive(low: Lowering, op: ir.Operation) -> None:
    """Signal."""
    barrier = low.handle(op.operands[0], NamedBarrierNumbers)
    low.emit.emit(
        "nbarrier.signal", no_mask=False, id=low.emit.source(barrier.id, 0), count=low.emit.source(barrier.count, 0)
    )


@vc_lowering_rule("xegpu.nbarrier_wait")
def nbarrier_wait(low: Lowering, op: ir.Operation) -> None:
    """Wait."""
    barrier = low.handle(op.operands[0], NamedBarrierNumbers)
    low.emit.emit("nbarrier.wait", no_mask=False, id=low.emit.source(barrier.id, 0))


@vc_lowering_rule("xegpu.fence")
def fence(low: Lowering, op: ir.Operation) -> None:
    """A fence of one memory, or of both."""
    view = op.opview
    for kind in (view.memory_kind,) if view.memory_kind else MemoryKind:
        shared = kind == MemoryKind.SHARED
        scope = "group" if shared or view.scope == FenceScope.WORKGROUP else "gpu"
        low.emit.emit("lsc_fence", no_mask=False, sfid="slm" if shared else "ugm", flush="none", scope=scope)


@vc_lowering_rule("xegpu.compile_hint")
def compile_hint(low: Lowering, op: ir.Operation) -> None:
    """Emit a software fence, across which `visa-optimize` and Intel's finalizer do not move instructions."""
    low.emit.emit("fence_sw", no_mask=False)


_NOWHERE = 0
"""An address outside all arrays: an access to it stops the kernel with an error."""


@vc_lowering_rule("cf.assert")
def assert_(low: Lowering, op: ir.Operation) -> None:
    """If the condition is false, write a record with the message, and stop by a store to an invalid address."""
    condition = low.value(op.operands[0])
    if isinstance(condition, KnownMask) and condition.value:
        return
    emit, end = low.emit, low.emit.label("Holds")
    message = ir.StringAttr(op.attributes["msg"]).value.replace("%", "%%")
    with emit.scope():
        if isinstance(condition, Mask):
            emit.jump(end, when=condition)
        print_record(low, message, [], [], stops=True)
        address, number = emit.grf_reg("uq", 1), emit.grf_reg("ud", 1)
        for register in (address, number):
            emit.apply("mov", register.type, 1, const(_NOWHERE, register.type), into=register)
        _store_lanes(low, address, 0, number)
    emit.emit_label(end)


@vc_lowering_rule("gpu.printf")
def printf(low: Lowering, op: ir.Operation) -> None:
    """A record."""
    text, elements = ir.StringAttr(op.attributes["format"]).value, [str(v.type) for v in op.operands]
    print_record(low, text, elements, list(op.operands))
