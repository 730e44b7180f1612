"""How arithmetic becomes native code: sources are read and widened, the rule works, the result is narrowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xegpu_py.engines.arithmetic import execution_format
from xegpu_py.engines.jit.code import Code, Value, vector
from xegpu_py.engines.jit.emitter import Emitter, format_of, modifier_of
from xegpu_py.engines.jit.numbers import Width, clamped, modified, narrow, span, widen, width_of
from xegpu_py.engines.jit.rules import RULES
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa.operands import Flag
from xegpu_py.visa.program import Instruction

_LOWEST_BITS = ("add", "mul", "mad", "and", "or", "xor", "not")
"""Instructions of whose result the lowest bits depend on the lowest bits of integer sources alone."""

_CHOOSING = ("cmp", "min", "max", "asr")
"""Instructions that need what integers are worth, but nothing greater."""


@dataclass
class Alu:
    """What a rule of arithmetic may ask of its instruction.

    Attributes:
        code: the function that is written.
        emitter: what writes it.
        name: the instruction's name.
        format: execution type of floats, "hf", "f" or "df"; "" for integers. hf is worked on in f32.
        bits: execution width of shifts.
        condition: of `cmp`.
        width: how integers are worked on.
        doubtful: lanes whose result may be wrong, i1; the golden function then does the instruction. None for no lane.
    """

    code: Code
    emitter: Emitter
    name: str
    format: str
    bits: int
    condition: str
    width: Width = field(default_factory=lambda: Width(32, True))
    doubtful: Value | None = None


def _sources(inst: Instruction) -> list[Any]:
    return [v for n, v in inst.values.items() if n.startswith("src")]


def _width(inst: Instruction, types: list[str], modifiers: list[str], bits: int) -> Width:
    """How integer sources and their result are worked on."""
    spans = [span(t, m) for t, m in zip(types, modifiers)]
    spans += [span(t) for t in types[: len(modifiers)]]
    dst = None if isinstance(inst["dst"], Flag) or inst.name == "cmp" else inst["dst"].var.format
    if inst.name in ("shl", "shr"):
        return Width(max(bits, dst.bits if dst else 0), False)
    if inst.name == "mulh":
        return Width(64, False)
    if inst.name == "asr":
        found = width_of(spans[:1] + spans[2:3])
        return found if found.bits >= bits else Width(bits, True)
    if inst.name in _LOWEST_BITS and not inst.saturate:
        assert dst
        # A magnitude depends on all bits of its source.
        own = [TYPES[t].bits for t, m in zip(types, modifiers) if "abs" in m]
        return Width(max(dst.bits, *own, 0), dst.kind == "s")
    if inst.saturate:
        assert dst
        spans.append(span(dst.name))
    if inst.name == "add":
        spans.append((spans[0][0] + spans[1][0], spans[0][1] + spans[1][1]))
    elif inst.name in ("mul", "mad"):
        products = [a * b for a in spans[0] for b in spans[1]]
        low, high = spans[2] if len(modifiers) > 2 else (0, 0)
        spans += [(min(products), max(products)), (min(products) + low, max(products) + high)]
    elif inst.name not in _CHOOSING:
        # Wide enough for the sum of two sources and one.
        spans += [(2 * low, 2 * high + 1) for low, high in spans[: len(modifiers)]]
    return width_of(spans)


def emit_arithmetic(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Write an instruction whose rule takes and gives numbers."""
    code, operands, dst = emitter.code, _sources(inst), inst["dst"]
    formats, modifiers = [format_of(o) for o in operands], [modifier_of(o) for o in operands]
    types = [f.name for f in formats]
    to_flag = isinstance(dst, Flag)
    fmt = execution_format(types if inst.name == "cmp" else [*types, dst.var.type])
    wide = any(TYPES[t].bits == 64 for t in (types[0], *([] if to_flag else [dst.var.type])))
    op = Alu(code, emitter, inst.name, fmt, 64 if wide else 32, inst.values.get("condition", ""))
    patterns = [emitter.read(o, inst.exec_size) for o in operands]
    if fmt:
        values = [modified(code, widen(code, p, f), m) for p, f, m in zip(patterns, formats, modifiers)]
    else:
        op.width = _width(inst, types, modifiers, op.bits)
        values = []
        for pattern, form, modifier in zip(patterns, formats, modifiers):
            signed = form.kind == "s"
            values.append(modified(code, code.resize(pattern, op.width.bits, signed), modifier, signed))
    result = RULES[inst.name](op, *values)
    done = _ask_golden(emitter, op, inst, at) if op.doubtful is not None else None
    if inst.name == "cmp":
        _write_truth(emitter, inst, result)
    else:
        target = dst.var.format
        if fmt:
            found = narrow(code, result, target, inst.saturate)
        elif inst.saturate:
            found = clamped(code, result, op.width, target)
        else:
            found = code.resize(result, target.bits, op.width.signed)
        emitter.write(dst, found, emitter.mask(inst))
    if done:
        code.br(done)
        code.begin(done)


def _ask_golden(emitter: Emitter, op: Alu, inst: Instruction, at: int) -> str:
    """Let the golden function do the instruction if lanes that act are in doubt; the block after it."""
    code = emitter.code
    assert op.doubtful is not None
    bits, acting = code.mask_to_bits(op.doubtful), emitter.acting(inst)
    if acting is not None:
        bits = code.and_(bits, acting)
    ask, go_on, done = code.label(), code.label(), code.label()
    code.cond_br(code.icmp("eq", bits, 0), go_on, ask)
    code.begin(ask)
    emitter.golden(at)
    code.br(done)
    code.begin(go_on)
    return done


def _write_truth(emitter: Emitter, inst: Instruction, truth: Value) -> None:
    code, dst = emitter.code, inst["dst"]
    if isinstance(dst, Flag):
        emitter.write_flag(inst, code.mask_to_bits(truth))
        return
    kind = vector(inst.exec_size, f"i{dst.var.format.bits}")
    emitter.write(dst, code.select(truth, code.const(-1, kind), code.const(0, kind)), emitter.mask(inst))


def emit_flag_logic(emitter: Emitter, inst: Instruction) -> None:
    """Write `and`, `or`, `xor` and `not` of predicates."""
    code = emitter.code
    bits = [code.lshr(emitter.flag(o.var), inst.first_lane) for o in _sources(inst)]
    op = Alu(code, emitter, inst.name, "", 32, "")
    emitter.write_flag(inst, RULES[inst.name](op, *bits))
