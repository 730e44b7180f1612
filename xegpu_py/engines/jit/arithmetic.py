"""Native code of arithmetic instructions: read and widen the sources, apply the rule, narrow the result."""

from __future__ import annotations

from collections.abc import Callable

from xegpu_py.engines.execution import execution_bits, execution_format, span
from xegpu_py.engines.jit.code import Value, vector
from xegpu_py.engines.jit.emitter import Emitter
from xegpu_py.engines.jit.numbers import Width, clamped, modified, narrow, widen, width_of
from xegpu_py.engines.jit.rules import entry
from xegpu_py.engines.jit.rules.alu import Alu
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Flag
from xegpu_py.visa.program import Instruction


def _width(inst: Instruction, types: list[str], modifiers: list[str], bits: int) -> Width:
    """The integer type in which an instruction is computed."""
    spec = INSTRUCTIONS[inst.name]
    dst = None if spec.compares else inst["dst"].var.format
    if inst.name in _WIDTHS:
        return _WIDTHS[inst.name](types[0], modifiers[0], bits)
    if dst and spec.low_bits and not inst.saturate:
        # A magnitude depends on all bits of its source.
        own = [TYPES[t].bits for t, m in zip(types, modifiers) if "abs" in m]
        return Width(max(dst.bits, *own, 0), dst.kind == "s")
    sources = [span(t, m) for t, m in zip(types, modifiers)]
    spans = [*sources, *map(span, types)]
    if dst and inst.saturate:
        spans.append(span(dst.name))
    if spec.interval:
        spans.append(spec.interval(*sources))
    else:
        # Wide enough for the sum of two sources and one.
        spans += [(2 * low, 2 * high + 1) for low, high in sources]
    return width_of(spans)


def _shifted(name: str, modifier: str, bits: int) -> Width:
    """The width of shifts: at least the execution width for signed numbers."""
    found = width_of([span(name, modifier), span(name)])
    return found if found.bits >= bits else Width(bits, True)


_WIDTHS: dict[str, Callable[[str, str, int], Width]] = {
    "mulh": lambda name, modifier, bits: Width(64, False),
    "shl": lambda name, modifier, bits: Width(bits, False),
    "shr": lambda name, modifier, bits: Width(bits, False),
    "asr": _shifted,
}
"""Widths of instructions that work on bit patterns, from type and modifier of `src0` and the execution width."""


def emit_arithmetic(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Write an instruction whose rule maps numbers to numbers."""
    code, operands, dst = emitter.code, inst.sources, inst["dst"]
    formats, modifiers = [o.format for o in operands], [o.modifier for o in operands]
    types = [f.name for f in formats]
    fmt, bits = execution_format(inst, types), execution_bits(inst, types)
    op = Alu(code, emitter, inst.name, fmt, bits, inst.values.get("condition", ""))
    patterns = [emitter.read(o, inst.exec_size) for o in operands]
    if fmt:
        values = [modified(code, widen(code, p, f), m) for p, f, m in zip(patterns, formats, modifiers)]
    else:
        op.width = _width(inst, types, modifiers, op.bits)
        values = []
        for pattern, form, modifier in zip(patterns, formats, modifiers):
            signed = form.kind == "s"
            values.append(modified(code, code.resize(pattern, op.width.bits, signed), modifier, signed))
    result = entry("ARITHMETIC", inst.name)(op, *values)

    def write() -> None:
        if INSTRUCTIONS[inst.name].compares:
            _write_truth(emitter, inst, result)
            return
        target = dst.var.format
        if fmt:
            found = narrow(code, result, target, inst.saturate, emitter.any_nan(dst))
        elif inst.saturate:
            found = clamped(code, result, op.width, target)
        else:
            found = code.resize(result, target.bits, op.width.signed)
        emitter.write(dst, found, emitter.mask(inst))

    if op.doubtful is None:
        write()
        return
    doubtful, acting = code.mask_to_bits(op.doubtful), emitter.acting(inst)
    doubtful = doubtful if acting is None else code.and_(doubtful, acting)
    code.choose(code.icmp("eq", doubtful, 0), write, lambda: emitter.golden(at))


def _write_truth(emitter: Emitter, inst: Instruction, truth: Value) -> None:
    code, dst = emitter.code, inst["dst"]
    if isinstance(dst, Flag):
        emitter.write_truth(inst, truth)
        return
    kind = vector(inst.exec_size, f"i{dst.var.format.bits}")
    emitter.write(dst, code.select(truth, code.const(-1, kind), code.const(0, kind)), emitter.mask(inst))


def emit_flag_logic(emitter: Emitter, inst: Instruction) -> None:
    """Write `and`, `or`, `xor` and `not` of predicates."""
    code = emitter.code
    op = Alu(code, emitter, inst.name, "", 32, "")
    truths = [emitter.truth(o.var) for o in inst.sources]
    if None not in truths:
        emitter.write_truth(inst, entry("ARITHMETIC", inst.name)(op, *truths))
        return
    bits = [
        code.lshr(emitter.flag(o.var), inst.first_lane) if truth is None else code.mask_to_bits(truth)
        for o, truth in zip(inst.sources, truths)
    ]
    result = entry("ARITHMETIC", inst.name)(op, *bits)
    if inst["dst"].var in emitter.freedom.predicates:
        emitter.write_truth(inst, code.bits_to_mask(result, inst.exec_size))
    else:
        emitter.write_flag(inst, result)
