"""Native arithmetic, moves and predicates; mirrors semantics/alu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import field

from xegpu_py.engines.jit.ir_text import (
    ONE,
    FunctionBody,
    LLVMValue,
    Width,
    clamped,
    converted,
    flushed,
    integer_to_float,
    modified,
    narrow,
    odd_sum,
    to_odd,
    vector,
    widen,
    width_of,
)
from xegpu_py.engines.jit.operands import Emitter
from xegpu_py.engines.jit.register_promotion import BY_SEMANTICS
from xegpu_py.engines.operands import AluOp, span
from xegpu_py.engines.semantics import Table
from xegpu_py.numerics.alternatives import negative_nan
from xegpu_py.numerics.formats import BF8, HF, TYPES, F, Format
from xegpu_py.numerics.narrow_floats import round_to, tf32_of
from xegpu_py.visa.fp_modes import READ_WHOLE
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Flag, Immediate, Indirect, Region
from xegpu_py.visa.program import Instruction

# Arithmetic, logic and math: rules on vectors of numbers.

_CONDITIONS = {"eq": "oeq", "ne": "une", "gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole"}


class Alu(AluOp, kw_only=True):
    """Properties of an instruction that its arithmetic rule may use. Numbers of hf are f32.

    Attributes:
        code: the function to which the rule appends code.
        emitter: the emitter of this function.
        width: the integer type of the computation.
        doubtful: lanes whose result may be wrong, i1; the semantic function then executes the instruction. None if all
            results are correct.
    """

    code: FunctionBody
    emitter: Emitter
    width: Width = field(default_factory=lambda: Width(32, True))
    doubtful: LLVMValue | None = None


def _binary(name: str) -> Callable[[Alu, LLVMValue, LLVMValue], LLVMValue]:
    """The rule that emits one instruction of LLVM, whose name for floats differs."""
    return lambda op, a, b: op.code.bin(f"{'f' if op.format else ''}{name}", a, b)


def _intrinsic(name: str) -> Callable[[Alu, LLVMValue], LLVMValue]:
    return lambda op, a: op.code.intrinsic(name, a)


ARITHMETIC = Table(
    {
        "add": _binary("add"),
        "addr_add": _binary("add"),
        "add3": lambda op, a, b, c: op.code.add(op.code.add(a, b), c),
        "mul": _binary("mul"),
        "mulh": lambda op, a, b: op.code.lshr(op.code.mul(a, b), 32),
        # For hf, rounding the f32 quotient again is correct: f32 has more than twice as many bits.
        "div": lambda op, a, b: op.code.bin("fdiv", a, b),
        "inv": lambda op, a: op.code.bin("fdiv", op.code.const(ONE[a.element], a.type), a),
        "sqrt": _intrinsic("sqrt"),
        "divm": lambda op, a, b: op.code.bin("fdiv", a, b),
        "sqrtm": _intrinsic("sqrt"),
        "frc": lambda op, a: op.code.bin("fsub", a, op.code.intrinsic("floor", a)),
        "rndd": _intrinsic("floor"),
        "rndu": _intrinsic("ceil"),
        "rnde": _intrinsic("roundeven"),
        "rndz": _intrinsic("trunc"),
        "and": lambda op, a, b: op.code.and_(a, b),
        "or": lambda op, a, b: op.code.or_(a, b),
        "xor": lambda op, a, b: op.code.xor(a, b),
        "not": lambda op, a: op.code.not_(a),
        "cbit": _intrinsic("ctpop"),
        "bfrev": _intrinsic("bitreverse"),
        "shl": lambda op, a, count: op.code.shl(a, op.code.mask(count, op.bits - 1)),
    }
)
"""The rule of each instruction."""


@ARITHMETIC.of("mad")
def mad(op: Alu, a: LLVMValue, b: LLVMValue, c: LLVMValue) -> LLVMValue:
    """Product and sum; for floats with one rounding."""
    code = op.code
    if not op.format:
        return code.add(code.mul(a, b), c)
    if op.format != "hf":
        return code.intrinsic("fma", a, b, c)
    # The product is exact in f64. The sum is rounded to odd in f64, so that rounding it again equals rounding once.
    x, y, z = (code.cast("fpext", v, "f64") for v in (a, b, c))
    product = code.bin("fmul", x, y)
    return to_odd(code, odd_sum(code, product, z))


@ARITHMETIC.of("min")
def min_(op: Alu, a: LLVMValue, b: LLVMValue) -> LLVMValue:
    """The smaller; -0 is smaller than +0, and a number is chosen over a NaN."""
    if not op.format:
        return op.code.intrinsic("smin" if op.width.signed else "umin", a, b)
    return _choice(op, a, b, "olt", "or")


@ARITHMETIC.of("max")
def max_(op: Alu, a: LLVMValue, b: LLVMValue) -> LLVMValue:
    """The greater; +0 is greater than -0, and a number is chosen over a NaN."""
    if not op.format:
        return op.code.intrinsic("smax" if op.width.signed else "umax", a, b)
    return _choice(op, a, b, "ogt", "and")


def _choice(op: Alu, a: LLVMValue, b: LLVMValue, predicate: str, join: str) -> LLVMValue:
    """The better number. Equal numbers differ only in the signs of zeros, which `join` combines."""
    code, bits = op.code, f"i{a.element[1:]}"
    preferred = code.select(code.fcmp(predicate, a, b), a, b)
    if op.emitter.host.has_masks:
        number = code.select(code.fcmp("uno", b, b), a, preferred)
        same = code.bin(join, code.cast("bitcast", a, bits), code.cast("bitcast", b, bits))
        return code.select(code.fcmp("oeq", a, b), code.cast("bitcast", same, a.element), number)
    # Hosts with vector selections execute logic faster. The second comparison prefers a number to a NaN.
    candidates = [code.cast("bitcast", v, bits) for v in (preferred, code.select(code.fcmp(predicate, b, a), b, a))]
    nans = [code.cast("sext", code.fcmp("uno", v, v), bits) for v in (b, a)]
    if join == "and":
        nan_result = code.and_(*(code.or_(value, nan) for value, nan in zip(candidates, nans)))
    else:
        numbers = [code.and_(value, code.not_(nan)) for value, nan in zip(candidates, nans)]
        nan_result = code.or_(code.or_(*numbers), code.and_(*nans))
    return code.cast("bitcast", nan_result, a.element)


@ARITHMETIC.of("bfn")
def bfn(op: Alu, a: LLVMValue, b: LLVMValue, c: LLVMValue) -> LLVMValue:
    """A function of three bits, for each bit; LLVM finds the CPU's instruction for it."""
    code, result = op.code, op.code.const(0, a.type)
    for number in range(8):
        if op.function >> number & 1:
            x, y, z = (v if number >> n & 1 else code.not_(v) for n, v in enumerate((a, b, c)))
            result = code.or_(result, code.and_(code.and_(x, y), z))
    return result


@ARITHMETIC.of("bfe")
def bfe(op: Alu, width: LLVMValue, start: LLVMValue, a: LLVMValue) -> LLVMValue:
    """A field of bits, those of the number's sign beyond bit 31: moved to the top, then back with zeros or its sign."""
    code = op.code
    width, start = code.mask(width, 31), code.mask(start, 31)
    field = code.and_(
        code.ashr(a, start) if op.signs[-1] else code.lshr(code.mask(a, 0xFFFFFFFF), start),
        code.sub(code.shl(code.const(1, a.type), width), 1),
    )
    shift_to_top = code.sub(code.const(op.width.bits, a.type), width)
    if not op.signs[-1]:
        return field
    # Of no bits the field is zero, and a shift by the whole width would be undefined.
    shift_to_top = code.select(code.icmp("eq", width, 0), code.const(0, a.type), shift_to_top)
    return code.ashr(code.shl(field, shift_to_top), shift_to_top)


@ARITHMETIC.of("bfi")
def bfi(op: Alu, width: LLVMValue, start: LLVMValue, a: LLVMValue, into: LLVMValue) -> LLVMValue:
    """A number with a field of bits put into it."""
    code, ones = op.code, op.code.const(1, a.type)
    width, start = code.mask(width, 31), code.mask(start, 31)
    mask = code.shl(code.sub(code.shl(ones, width), ones), start)
    return code.or_(code.and_(code.shl(a, start), mask), code.and_(into, code.not_(mask)))


@ARITHMETIC.of("dp4a")
def dp4a(op: Alu, total: LLVMValue, a: LLVMValue, b: LLVMValue) -> LLVMValue:
    """A sum of four products of bytes, in 64 bits."""
    code, bits = op.code, op.width.bits
    for n in range(0, 32, 8):
        x, y = (
            code.resize(code.resize(code.lshr(v, n), 8, False), bits, signed) for v, signed in zip((a, b), op.signs[1:])
        )
        total = code.add(total, code.mul(x, y))
    return total


@ARITHMETIC.of("fbl")
def fbl(op: Alu, a: LLVMValue) -> LLVMValue:
    """The number of the lowest set bit of 32; all ones if none is set."""
    zeros = op.code.intrinsic("cttz", a, LLVMValue("false", "i1"))
    return op.code.select(op.code.icmp("eq", a, 0), op.code.const(0xFFFFFFFF, a.type), zeros)


def _rotate(op: Alu, a: LLVMValue, count: LLVMValue, intrinsic: str) -> LLVMValue:
    code = op.code
    pattern, by = (code.resize(v, op.size, False) for v in (a, count))
    rotated = code.intrinsic(intrinsic, pattern, pattern, by)
    return code.resize(rotated, op.width.bits, False)


@ARITHMETIC.of("rol")
def rol(op: Alu, a: LLVMValue, count: LLVMValue) -> LLVMValue:
    """The bits rotated left in the width of the first source."""
    return _rotate(op, a, count, "fshl")


@ARITHMETIC.of("ror")
def ror(op: Alu, a: LLVMValue, count: LLVMValue) -> LLVMValue:
    """The bits rotated right in the width of the first source."""
    return _rotate(op, a, count, "fshr")


@ARITHMETIC.of("avg")
def avg(op: Alu, a: LLVMValue, b: LLVMValue) -> LLVMValue:
    """The average, halves rounded up."""
    total = op.code.add(op.code.add(a, b), 1)
    return op.code.ashr(total, 1) if op.width.signed else op.code.lshr(total, 1)


@ARITHMETIC.of("lfsr")
def lfsr(op: Alu, a: LLVMValue, polynomial: LLVMValue) -> LLVMValue:
    """Each field shifted right, and the polynomial added where a one was shifted out."""
    code, lowest = op.code, sum(1 << n for n in range(0, 32, op.field_bits))
    out = code.mul(code.mask(a, lowest), (1 << op.field_bits) - 1)
    shifted_fields = code.mask(code.lshr(a, 1), 0xFFFFFFFF ^ lowest << op.field_bits - 1)
    return code.xor(shifted_fields, code.and_(out, polynomial))


@ARITHMETIC.of("lzd")
def lzd(op: Alu, a: LLVMValue) -> LLVMValue:
    """The number of zeros above the highest set bit of 32, for numbers of any width."""
    zeros = op.code.intrinsic("ctlz", a, LLVMValue("false", "i1"))
    return op.code.sub(zeros, op.width.bits - 32)


@ARITHMETIC.of("shr")
def shr(op: Alu, a: LLVMValue, count: LLVMValue) -> LLVMValue:
    """The bit pattern, as wide as the execution width, shifted right, zeros shifted in."""
    pattern = op.code.mask(a, (1 << op.bits) - 1) if op.bits < op.width.bits else a
    return op.code.lshr(pattern, op.code.mask(count, op.bits - 1))


@ARITHMETIC.of("asr")
def asr(op: Alu, a: LLVMValue, count: LLVMValue) -> LLVMValue:
    """The number divided by a power of two and rounded down."""
    by = op.code.mask(count, op.bits - 1)
    return op.code.ashr(a, by) if op.width.signed else op.code.lshr(a, by)


@ARITHMETIC.of("cmp")
def cmp(op: Alu, a: LLVMValue, b: LLVMValue) -> LLVMValue:
    """The truth of the comparison; a NaN is unequal to all, and neither smaller nor greater."""
    if op.format:
        return op.code.fcmp(_CONDITIONS[op.condition], a, b)
    how = op.condition if op.condition in ("eq", "ne") else f"{'s' if op.width.signed else 'u'}{op.condition}"
    return op.code.icmp(how, a, b)


# Moves, conversions (also of formats for which vISA has no type), and predicates.

RULES = Table()
"""The rule of each instruction."""


@RULES.of("mov")
def mov(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Copy, converted to the destination's type; or a predicate's bits."""
    code, source, dst = emitter.code, inst["src0"], inst["dst"]
    target = dst.format
    if isinstance(source, Flag):
        bits = code.mask(emitter.flag(source.var), (1 << source.var.count) - 1)
        emitter.write(dst, code.splat(code.resize(bits, target.bits, False), 1), emitter.mask(inst))
        return
    emitter.write(dst, _converted(emitter, inst, source), emitter.mask(inst))


def _converted(emitter: Emitter, inst: Instruction, source: Region | Immediate | Indirect) -> LLVMValue:
    """A source of mov or sel, converted to the type of the destination."""
    code, fmt, target = emitter.code, source.format, inst["dst"].format
    pattern = emitter.read(source, inst.exec_size)
    if inst.flushes(fmt.name):
        pattern = flushed(code, pattern, fmt)
    converted_value = converted(
        code, pattern, fmt, source.modifier, target, inst.saturate, emitter.any_nan(inst["dst"])
    )
    converted_value = flushed(code, converted_value, target) if inst.flushes(target.name) else converted_value
    return _with_nans(code, inst, converted_value)


def _with_nans(code: FunctionBody, inst: Instruction, pattern: LLVMValue) -> LLVMValue:
    """The patterns of a result, with the NaN that an instruction follows as an alternative in place of each NaN."""
    if not inst.follows("nan-bits"):
        return pattern
    fmt = inst["dst"].format
    is_nan = code.icmp("ugt", code.mask(pattern, (1 << (fmt.bits - 1)) - 1), fmt.infinity)
    return code.select(is_nan, code.const(negative_nan(fmt), pattern.type), pattern)


@RULES.of("sel")
def sel(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Select by the predicate, which does not disable lanes."""
    code, target = emitter.code, inst["dst"].var.format
    any_nan = emitter.any_nan(inst["dst"])
    src0_value, src1_value = (_converted(emitter, inst, inst[name]) for name in ("src0", "src1"))
    predicate = emitter.chosen_lanes(inst)
    if predicate is None:
        predicate = code.bits_to_mask(emitter.chosen(inst), inst.exec_size)
    second_source = inst["src1"]
    if (
        any_nan
        and not inst.saturate
        and isinstance(second_source, Immediate)
        and second_source == Immediate(target.nan, target.name)
    ):
        # A NaN that is chosen by an or.
        src1_value = code.const(-1, src1_value.type)
    emitter.write(inst["dst"], code.merge(predicate, src0_value, src1_value), emitter.mask(inst))


@RULES.of("addc", "subb")
def with_carry(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Add or subtract 32 bits in 64; the carry or borrow is a second result."""
    code = emitter.code
    a, b = (
        code.resize(
            converted(code, emitter.read(o, inst.exec_size), o.format, o.modifier, TYPES["ud"], False, False), 64, False
        )
        for o in inst.sources
    )
    total = code.add(a, b) if inst.name == "addc" else code.sub(a, b)
    mask = emitter.mask(inst)
    emitter.write(inst["dst"], code.resize(total, 32, False), mask)
    emitter.write(inst["carry"], code.resize(code.mask(code.lshr(total, 32), 1), 32, False), mask)


@RULES.of(*BY_SEMANTICS)
def by_semantics(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Run the semantic function."""
    emitter.call_semantics(at)


@RULES.of("setp")
def setp(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Set a predicate to the lowest bits of a scalar."""
    code, source = emitter.code, inst["src0"]
    if isinstance(source, Immediate):
        bits = emitter.scalar(source)
    else:
        # See `write_flag`: what instructions do with numbers is not to be moved to mask registers.
        source_pointer = code.at(emitter.thread, emitter.register_offset(source))
        bits = code.load(source_pointer, f"i{source.var.format.bits}", volatile=True)
    emitter.write_flag(inst, code.resize(bits, 32, False))


@RULES.of("srnd")
def srnd(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Round stochastically (SRND.md): random bits are added to the mantissa, and the sum is cut off."""
    code = emitter.code
    source, random = (emitter.read(inst[n], inst.exec_size) for n in ("src0", "src1"))
    to_bf8 = inst["dst"].var.type == "ub"
    rounded = _srnd_bf8(code, source, random) if to_bf8 else _srnd_hf(code, source, random)
    emitter.write(inst["dst"], rounded, emitter.mask(inst))


def _moved(code: FunctionBody, magnitude: LLVMValue, random: LLVMValue, bits: int, infinity: int) -> LLVMValue:
    """The magnitude with the random bits added; infinity from there on."""
    total = code.add(magnitude, code.mask(random, (1 << bits) - 1))
    total = code.intrinsic("umin", total, code.const(infinity, total.type))
    return code.select(code.icmp("uge", magnitude, infinity), code.const(infinity, total.type), total)


def _srnd_bf8(code: FunctionBody, source: LLVMValue, random: LLVMValue) -> LLVMValue:
    magnitude = code.mask(source, 0x7FFF)
    # bf8 is hf without its lowest byte, subnormal numbers too.
    truncated = code.lshr(_moved(code, magnitude, random, 8, HF.infinity), 8)
    signed = code.or_(truncated, code.mask(code.lshr(source, 8), 0x80))
    nan = code.icmp("ugt", magnitude, HF.infinity)
    return code.resize(code.select(nan, code.const(BF8.nan, signed.type), signed), 8, False)


def _srnd_hf(code: FunctionBody, source: LLVMValue, random: LLVMValue) -> LLVMValue:
    magnitude = code.mask(source, 0x7FFFFFFF)
    sum_bits = _moved(code, magnitude, random, 13, F.infinity)
    # The least normal number of hf has f32's exponent 113. From twice the greatest power of two on it is infinity.
    normal = code.lshr(code.sub(sum_bits, 112 << 23), 13)
    normal = code.select(code.icmp("uge", sum_bits, 143 << 23), code.const(HF.infinity, sum_bits.type), normal)
    # Of subnormal numbers the hidden bit is made explicit, and moved to where hf's last bit is worth 2**-24.
    explicit = code.or_(code.mask(sum_bits, 0x7FFFFF), 1 << 23)
    shift_count = code.sub(code.const(126, sum_bits.type), code.lshr(sum_bits, 23))
    shift_count = code.intrinsic("umin", shift_count, code.const(31, sum_bits.type))
    subnormal = code.lshr(explicit, shift_count)
    truncated = code.select(code.icmp("uge", sum_bits, 113 << 23), normal, subnormal)
    signed = code.or_(truncated, code.mask(code.lshr(source, 16), 0x8000))
    nan = code.icmp("ugt", magnitude, F.infinity)
    return code.resize(code.select(nan, code.const(HF.nan, signed.type), signed), 16, False)


@RULES.of("fcvt")
def fcvt(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Convert to and from formats for which vISA has no type (FCVT.md)."""
    source = emitter.read(inst["src0"], inst.exec_size)
    change = {"ub": _to_bf8, "hf": _from_bf8, "ud": _to_tf32}[inst["dst"].var.type]
    emitter.write(inst["dst"], change(emitter.code, source), emitter.mask(inst))


def _rounding(code: FunctionBody, fmt: Format) -> dict[str, Callable[..., LLVMValue]]:
    """The ops of `round_to` on patterns of a format."""

    def select(truth: LLVMValue, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        return code.select(truth, a, code.const(b, a.type) if isinstance(b, int) else b)

    return {
        "arith.andi": code.mask,
        "arith.shrui": code.lshr,
        "arith.addi": code.add,
        "arith.select": select,
        "ne": partial(code.icmp, "ne"),
        "ord": lambda bits: code.icmp("ule", code.mask(bits, (1 << fmt.bits - 1) - 1), fmt.infinity),
    }


def _to_bf8(code: FunctionBody, source: LLVMValue) -> LLVMValue:
    return code.resize(round_to(source, HF, BF8, _rounding(code, HF)), 8, False)


def _from_bf8(code: FunctionBody, source: LLVMValue) -> LLVMValue:
    wide = code.shl(code.resize(source, 16, False), 8)
    nan = code.icmp("ugt", code.mask(wide, 0x7FFF), HF.infinity)
    return code.select(nan, code.const(HF.nan, wide.type), wide)


def _to_tf32(code: FunctionBody, source: LLVMValue) -> LLVMValue:
    return tf32_of(source, _rounding(code, F))


# Native code of arithmetic instructions: read and widen the sources, apply the rule, narrow the result.


def _width(inst: Instruction, types: list[str], modifiers: list[str], bits: int) -> Width:
    """The integer type in which an instruction is computed."""
    spec = INSTRUCTIONS[inst.name]
    dst = None if spec.compares else inst["dst"].var.format
    if inst.name in _WIDTHS:
        return _WIDTHS[inst.name](types[0], modifiers[0], bits)
    if dst and spec.low_bits and not inst.saturate:
        # A magnitude depends on all bits of its source.
        abs_widths = [TYPES[t].bits for t, m in zip(types, modifiers) if "abs" in m]
        return Width(max(dst.bits, *abs_widths, 0), dst.kind == "s")
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
    width = width_of([span(name, modifier), span(name)])
    return width if width.bits >= bits else Width(bits, True)


_WIDTHS: dict[str, Callable[[str, str, int], Width]] = {
    "mulh": lambda name, modifier, bits: Width(64, False),
    "rol": lambda name, modifier, bits: Width(bits, False),
    "ror": lambda name, modifier, bits: Width(bits, False),
    "fbl": lambda name, modifier, bits: Width(32, False),
    "bfe": lambda name, modifier, bits: Width(64, True),
    "bfi": lambda name, modifier, bits: Width(64, False),
    "dp4a": lambda name, modifier, bits: Width(64, True),
    "lfsr": lambda name, modifier, bits: Width(32, False),
    "bfrev": lambda name, modifier, bits: Width(32, False),
    "shl": lambda name, modifier, bits: Width(bits, False),
    "shr": lambda name, modifier, bits: Width(bits, False),
    "asr": _shifted,
}
"""Widths of instructions that work on bit patterns, from type and modifier of `src0` and the execution width."""


def emit_arithmetic(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Write an instruction whose rule maps numbers to numbers."""
    code, operands, dst = emitter.code, inst.sources, inst["dst"]
    formats, modifiers = [o.format for o in operands], [o.modifier for o in operands]
    op = Alu.of(inst, code=code, emitter=emitter)
    fmt = op.format
    patterns = [emitter.read(o, inst.exec_size) for o in operands]
    if inst.name not in READ_WHOLE:
        patterns = [flushed(code, p, f) if inst.flushes(f.name) else p for p, f in zip(patterns, formats)]
    if fmt:
        values = [modified(code, widen(code, p, f), m) for p, f, m in zip(patterns, formats, modifiers)]
    else:
        op.width = _width(inst, [f.name for f in formats], modifiers, op.bits)
        values = []
        for pattern, form, modifier in zip(patterns, formats, modifiers):
            signed = form.kind == "s"
            values.append(modified(code, code.resize(pattern, op.width.bits, signed), modifier, signed))
    result = ARITHMETIC[inst.name](op, *values)

    def write() -> None:
        if INSTRUCTIONS[inst.name].compares:
            _write_truth(emitter, inst, result)
            return
        target = dst.var.format
        if fmt:
            narrow_result = _narrowed(emitter, inst, result, fmt)
        elif inst.saturate:
            narrow_result = clamped(code, result, op.width, target)
        else:
            narrow_result = code.resize(result, target.bits, op.width.signed)
        emitter.write(dst, narrow_result, emitter.mask(inst))

    if op.doubtful is None:
        write()
        return
    doubtful, acting = code.mask_to_bits(op.doubtful), emitter.acting(inst)
    doubtful = doubtful if acting is None else code.and_(doubtful, acting)
    code.choose(code.icmp("eq", doubtful, 0), write, lambda: emitter.call_semantics(at))


def _narrowed(emitter: Emitter, inst: Instruction, result: LLVMValue, fmt: str) -> LLVMValue:
    """The patterns of a result in the execution format, hf in f32."""
    code, target = emitter.code, inst["dst"].format
    if fmt != "hf" and fmt != target.name and inst.flushes(fmt):
        bits = code.cast("bitcast", result, f"i{TYPES[fmt].bits}")
        result = code.cast("bitcast", flushed(code, bits, TYPES[fmt]), result.element)
    narrow_result = narrow(code, result, target, inst.saturate, emitter.any_nan(inst["dst"]))
    narrow_result = flushed(code, narrow_result, target) if inst.flushes(target.name) else narrow_result
    return _with_nans(code, inst, narrow_result)


_HOST_MODES = {"zero": 0, "even": 1, "up": 2, "down": 3}
"""LLVM's numbers of rounding modes."""

_HOST_OPERATIONS = {"add": "fadd", "mul": "fmul", "mad": "fma", "divm": "fdiv", "sqrtm": "sqrt"}
"""LLVM's operations that follow the host's rounding mode."""


def emit_directed(emitter: Emitter, inst: Instruction) -> None:
    """Write an instruction that rounds in a direction, by the host's operations in its mode."""
    code, target = emitter.code, inst["dst"].format
    operation, values = _HOST_OPERATIONS.get(inst.name, ""), []
    for source in inst.sources:
        pattern, fmt = emitter.read(source, inst.exec_size), source.format
        if inst.flushes(fmt.name) and inst.name not in READ_WHOLE:
            pattern = flushed(code, pattern, fmt)
        if fmt.is_float:
            values.append(modified(code, widen(code, pattern, fmt), source.modifier))
        elif fmt.bits < 64:
            values.append(integer_to_float(code, pattern, fmt, source.modifier, TYPES["df"]))
        else:
            # The sum of two numbers.
            operation, halves = "fadd", [code.resize(code.lshr(pattern, by), 32, False) for by in (32, 0)]
            upper = code.cast("sitofp" if fmt.kind == "s" else "uitofp", halves[0], "f64")
            scaled = code.bin("fmul", upper, code.const(0x41F << 52, upper.type))
            values += [scaled, code.cast("uitofp", halves[1], "f64")]
    element = "f32" if target.name == "f" else "f64"
    function_key = [operation, inst.rounding, values[0].element, element, str(inst.exec_size)]
    function = "_".join(["directed", *function_key])
    emitter.helper(function, lambda: _directed(emitter, function, operation, inst.rounding, values, element))
    rounded = code.call(function, *values, result=vector(inst.exec_size, element))
    pattern = code.cast("bitcast", rounded, f"i{target.bits}")
    pattern = code.select(code.fcmp("uno", rounded, rounded), code.const(target.nan, pattern.type), pattern)
    if inst.flushes(target.name):
        pattern = flushed(code, pattern, target)
    emitter.write(inst["dst"], _with_nans(code, inst, pattern), emitter.mask(inst))


def _directed(emitter: Emitter, name: str, operation: str, rounding: str, values: Sequence[LLVMValue], to: str) -> str:
    """The text of a function that computes in a rounding mode of the host."""
    argument_types, lanes = [value.type for value in values], values[0].lanes
    code = FunctionBody(name, argument_types, vector(lanes, to), f"{emitter.host.attributes} noinline strictfp")

    def constrained(operation: str, operands: Sequence[LLVMValue], ty: str, overloads: Sequence[str]) -> LLVMValue:
        modes = [LLVMValue('!"round.dynamic"', "metadata"), LLVMValue('!"fpexcept.strict"', "metadata")]
        name = f"experimental.constrained.{operation}"
        return code.intrinsic(name, *operands, *modes, ty=ty, overloads=overloads)

    code.call("llvm.set.rounding", code.const(_HOST_MODES[rounding], "i32"))
    converted_value = code.arguments[0]
    if operation:
        converted_value = constrained(operation, code.arguments, argument_types[0], [argument_types[0]])
    if converted_value.element != to:
        converted_value = constrained(
            "fptrunc", [converted_value], vector(lanes, to), [vector(lanes, to), argument_types[0]]
        )
    code.call("llvm.set.rounding", code.const(_HOST_MODES["even"], "i32"))
    code.ret(converted_value)
    return code.text()


def _write_truth(emitter: Emitter, inst: Instruction, truth: LLVMValue) -> None:
    code, dst = emitter.code, inst["dst"]
    if isinstance(dst, Flag):
        emitter.write_truth(inst, truth)
        return
    lanes_type = vector(inst.exec_size, f"i{dst.var.format.bits}")
    emitter.write(dst, code.select(truth, code.const(-1, lanes_type), code.const(0, lanes_type)), emitter.mask(inst))


def emit_flag_logic(emitter: Emitter, inst: Instruction) -> None:
    """Write `and`, `or`, `xor` and `not` of predicates."""
    code = emitter.code
    op = Alu(name=inst.name, code=code, emitter=emitter)
    truths = [emitter.truth(o.var) for o in inst.sources]
    if None not in truths:
        emitter.write_truth(inst, ARITHMETIC[inst.name](op, *truths))
        return
    bits = [
        code.lshr(emitter.flag(o.var), inst.first_lane) if truth is None else code.mask_to_bits(truth)
        for o, truth in zip(inst.sources, truths)
    ]
    result = ARITHMETIC[inst.name](op, *bits)
    if inst["dst"].var in emitter.promotion.predicates:
        emitter.write_truth(inst, code.bits_to_mask(result, inst.exec_size))
    else:
        emitter.write_flag(inst, result)
