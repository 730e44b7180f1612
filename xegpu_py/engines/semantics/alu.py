"""Arithmetic, moves and predicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from xegpu_py import numerics
from xegpu_py.engines.faults import AccessFault
from xegpu_py.engines.operands import (
    AluOp,
    Batch,
    Mask,
    Read,
    RegisterPositions,
    Rows,
    Write,
    count_of,
    flag_reader,
    masker,
    raw_reader,
    raw_writer,
    reader,
    span,
    writer,
)
from xegpu_py.engines.semantics import ROUNDED, Table
from xegpu_py.numerics.alternatives import negative_nans, neighbour
from xegpu_py.numerics.directed import Direction, convert_directed
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.formats import TYPES, Array, Format, bits_of, canonical, flush
from xegpu_py.numerics.rounding import convert, narrow_integers
from xegpu_py.visa.fp_modes import READ_WHOLE
from xegpu_py.visa.instructions import INSTRUCTIONS, TABLE
from xegpu_py.visa.operands import Destination, Flag, Immediate, Region
from xegpu_py.visa.program import Instruction

# Arithmetic, logic and math: functions of numbers.
#
# Integers are passed as numbers, in an array type that holds the exact result or at least its lowest 64 bits. Floats
# are passed in the execution type, to which the result is rounded once (docs/numerics.md).


def _rounded(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of `numerics`, which takes the format and rounds correctly."""
    return lambda op, *sources: function(*sources, op.format)


ARITHMETIC = Table(
    {
        "add": lambda op, a, b: a + b,
        "addr_add": lambda op, a, b: a + b,
        "add3": lambda op, a, b, c: a + b + c,
        "mul": lambda op, a, b: a * b,
        "mulh": lambda op, a, b: np.right_shift(a * b, 32),
        "div": _rounded(numerics.div),
        "inv": _rounded(numerics.inv),
        "sqrt": _rounded(numerics.sqrt),
        "divm": _rounded(numerics.div),
        "sqrtm": _rounded(numerics.sqrt),
        "rsqrt": _rounded(numerics.rsqrt),
        "tanh": _rounded(numerics.tanh),
        "sigm": _rounded(numerics.sigm),
        "exp": _rounded(numerics.exp),
        "log": _rounded(numerics.log),
        "sin": _rounded(numerics.sin),
        "cos": _rounded(numerics.cos),
        "avg": lambda op, a, b: np.right_shift(a + b + 1, 1),
        "lrp": lambda op, a, b, c: numerics.fma(a, b, c * (1 - a), op.format),
        "frc": lambda op, a: a - numerics.round_down(a, op.format),
        "rndd": _rounded(numerics.round_down),
        "rndu": _rounded(numerics.round_up),
        "rnde": _rounded(numerics.round_even),
        "rndz": _rounded(numerics.round_zero),
        "and": lambda op, a, b: a & b,
        "or": lambda op, a, b: a | b,
        "xor": lambda op, a, b: a ^ b,
        "not": lambda op, a: ~a,
    }
)
"""The function of numbers that each instruction computes."""

_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


@ARITHMETIC.of("mad")
def mad(op: AluOp, a: Array, b: Array, c: Array) -> Array:
    """Product and sum; for floats with one rounding."""
    return numerics.fma(a, b, c, op.format) if op.format else a * b + c


@ARITHMETIC.of("min")
def min_(op: AluOp, a: Array, b: Array) -> Array:
    """The minimum; -0 is less than +0, and a number is preferred to a NaN."""
    return numerics.minimum_number(a, b) if op.format else np.minimum(a, b)


@ARITHMETIC.of("max")
def max_(op: AluOp, a: Array, b: Array) -> Array:
    """The maximum; +0 is greater than -0, and a number is preferred to a NaN."""
    return numerics.maximum_number(a, b) if op.format else np.maximum(a, b)


@ARITHMETIC.of("bfn")
def bfn(op: AluOp, a: Array, b: Array, c: Array) -> Array:
    """A function of three bits, for each bit."""
    result = np.zeros_like(a)
    for number in range(8):
        if op.function >> number & 1:
            result = result | ((a if number & 1 else ~a) & (b if number & 2 else ~b) & (c if number & 4 else ~c))
    return result


@ARITHMETIC.of("bfe")
def bfe(op: AluOp, width: Array, start: Array, a: Array) -> Array:
    """A field of bits, extended by its sign if the numbers are signed; so are the numbers, beyond bit 31."""
    width, start = width & 31, start & 31
    whole = a.astype(np.int64) if op.signs[-1] else a.astype(np.int64) & 0xFFFFFFFF
    field = whole >> start.astype(np.int64) & ((1 << width.astype(np.int64)) - 1)
    sign = np.where(op.signs[-1] & (width > 0), field >> np.maximum(width.astype(np.int64) - 1, 0) & 1, 0)
    return field - (sign << width.astype(np.int64))


@ARITHMETIC.of("bfi")
def bfi(op: AluOp, width: Array, start: Array, a: Array, into: Array) -> Array:
    """A number with a field of bits put into it."""
    width, start = width.astype(np.int64) & 31, start.astype(np.int64) & 31
    mask = ((1 << width) - 1) << start
    return (a.astype(np.int64) << start & mask) | (into.astype(np.int64) & ~mask)


@ARITHMETIC.of("dp4a")
def dp4a(op: AluOp, total: Array, a: Array, b: Array) -> Array:
    """A sum of four products of bytes."""
    result = total.astype(np.int64)
    for n in range(0, 32, 8):
        x, y = (np.asarray(v).astype(np.int64) >> n & 0xFF for v in (a, b))
        x, y = (v - ((v & 0x80) << 1) if signed else v for v, signed in zip((x, y), op.signs[1:]))
        result = result + x * y
    return result


@ARITHMETIC.of("bfrev")
def bfrev(op: AluOp, a: Array) -> Array:
    """The 32 bits in reverse order."""
    bits = np.unpackbits(np.ascontiguousarray(a.astype(">u4"))[..., None].view(np.uint8), axis=-1)
    return np.packbits(bits[..., ::-1], axis=-1).view(">u4")[..., 0].astype(a.dtype)


@ARITHMETIC.of("fbl")
def fbl(op: AluOp, a: Array) -> Array:
    """The number of the lowest set bit of 32, from the exponent in f64 of that bit alone."""
    low = (a & -a.astype(np.int64).astype(a.dtype)).astype(np.uint32)
    return np.where(low == 0, 0xFFFFFFFF, np.frexp(low.astype(np.float64))[1] - 1).astype(a.dtype)


@ARITHMETIC.of("pow")
def pow_(op: AluOp, a: Array, b: Array) -> Array:
    """A power as IGC expands it: logarithm, product and exponential, each rounded."""
    exponent = canonical(numerics.log(np.abs(a), op.format) * b, TYPES[op.format])
    return numerics.exp(exponent, op.format)


@ARITHMETIC.of("lfsr")
def lfsr(op: AluOp, a: Array, polynomial: Array) -> Array:
    """Each field shifted right, and the polynomial added where a one was shifted out."""
    lowest = np.uint64(sum(1 << n for n in range(0, 32, op.field_bits)))
    state = a.astype(np.uint64)
    out = (state & lowest) * np.uint64((1 << op.field_bits) - 1)
    return (state >> np.uint64(1) & ~(lowest << np.uint64(op.field_bits - 1))) ^ (out & polynomial.astype(np.uint64))


@ARITHMETIC.of("rol")
def rol(op: AluOp, a: Array, count: Array) -> Array:
    """Rotate left in the width of the first source."""
    pattern = a.astype(np.uint64) & np.uint64((1 << op.size) - 1)
    by = count.astype(np.uint64) & np.uint64(op.size - 1)
    return (pattern << by) | (pattern >> (np.uint64(op.size) - by) % np.uint64(op.size))


@ARITHMETIC.of("ror")
def ror(op: AluOp, a: Array, count: Array) -> Array:
    """Rotate right in the width of the first source."""
    return rol(op, a, op.size - (count & (op.size - 1)))


@ARITHMETIC.of("cbit")
def cbit(op: AluOp, a: Array) -> Array:
    """The number of bits that are set."""
    return np.unpackbits(a.astype(np.uint32)[..., None].view(np.uint8), axis=-1).sum(axis=-1, dtype=a.dtype)


@ARITHMETIC.of("lzd")
def lzd(op: AluOp, a: Array) -> Array:
    """The number of leading zeros of 32 bits, from the exponent in f64."""
    return (32 - np.frexp(a.astype(np.uint32).astype(np.float64))[1]).astype(a.dtype)


@ARITHMETIC.of("shl")
def shl(op: AluOp, a: Array, count: Array) -> Array:
    """Shift left by the lowest bits of the count: 6 with an execution width of 64, otherwise 5."""
    return np.left_shift(a, (count & (op.bits - 1)).astype(a.dtype))


@ARITHMETIC.of("shr")
def shr(op: AluOp, a: Array, count: Array) -> Array:
    """Logical shift right of the bit pattern in the execution width."""
    pattern = a.astype(np.uint64) & np.uint64((1 << op.bits) - 1)
    return np.right_shift(pattern, (count & (op.bits - 1)).astype(np.uint64))


@ARITHMETIC.of("asr")
def asr(op: AluOp, a: Array, count: Array) -> Array:
    """Arithmetic shift right: the number divided by a power of two, rounded down."""
    return np.right_shift(a, (count & (op.bits - 1)).astype(a.dtype))


@ARITHMETIC.of("cmp")
def cmp(op: AluOp, a: Array, b: Array) -> Array:
    """The result of the comparison; a NaN is unequal to all numbers, and neither less nor greater."""
    return _COMPARISONS[op.condition](a, b)


# Instructions on whole registers, on formats that are not register types, and on predicates.

STEPS = Table()
"""Functions that build the step of an instruction."""


def register_step(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """The step of an instruction that accesses no memory and is not control flow."""
    if inst.name in STEPS:
        return STEPS[inst.name](inst, layout, model)
    on_predicates = isinstance(inst["dst"], Flag) and not INSTRUCTIONS[inst.name].compares
    return (flag_logic_step if on_predicates else arithmetic_step)(inst, layout)


def _raw_reader(inst: Instruction, name: str, layout: RegisterPositions) -> Read | None:
    """Reads the bytes of an operand; None for the null operand."""
    if inst[name].var is None:
        return None
    return raw_reader(inst[name], INSTRUCTIONS[inst.name].size(name, inst, layout.target), layout)


@STEPS.of("dpas")
def dpas(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Multiply and add matrices (DPAS.md)."""
    sizes = {"SD": inst["SD"], "RC": inst["RC"], "exec_size": inst.exec_size}
    rounds = inst.follows("dpas-tf32") == "rounded"
    multiply = partial(numerics.dpas, **sizes, model=model, flushed=inst.flushed, rounds_tf32=rounds)
    return _product(inst, layout, ("src0", "src1", "src2"), multiply)


@STEPS.of("bdpas")
def bdpas(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Multiply and add block-scaled matrices."""
    return _product(
        inst,
        layout,
        ("src0", "src1", "src2", "src3", "src4"),
        partial(numerics.bdpas, model=model, flushed=inst.flushed, rounds=inst.follows("bdpas-products") == "f"),
    )


def _product(
    inst: Instruction, layout: RegisterPositions, sources: Sequence[str], multiply: Callable[..., Array]
) -> Step:
    """The step of a product of the sources' bytes; each enabled lane's column of all rows is written."""
    reads = [_raw_reader(inst, name, layout) for name in sources]
    write, mask = raw_writer(inst["dst"], layout), masker(inst, layout)
    dst_type, acc = inst["dst"].var.type, inst["src0"].var
    types = {"W": inst["W"], "A": inst["A"], "dst_type": dst_type, "src0_type": acc.type if acc else dst_type}

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        result = multiply(*(read(batch, rows) if read else None for read in reads), **types)
        if inst.follows("nan-bits"):
            fmt = TYPES[dst_type]
            result = negative_nans(result.view(fmt.dtype), fmt).view(np.uint8)
        size = result.shape[-1] // (inst["RC"] * inst.exec_size)
        lanes = mask(batch, rows, active)
        columns = None if lanes is None else np.tile(np.repeat(lanes, size, axis=1), inst["RC"])
        write(batch, rows, np.broadcast_to(result, (count_of(batch, rows), result.shape[-1])), columns)

    return step


@STEPS.of("mov")
def mov(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Copy with conversion to the destination's type; or copy a predicate's bits."""
    source, dst = inst["src0"], inst["dst"]
    target = dst.format
    write, mask = writer(dst, inst.exec_size, layout), masker(inst, layout)
    if isinstance(source, Flag):
        index, count = layout.predicates[source.var], source.var.count
        weights = np.uint64(1) << np.arange(count, dtype=np.uint64)

        def step_flag(batch: Batch, rows: Rows, active: Array | None) -> None:
            bits = batch.flags[rows, index, :count].astype(np.uint64) @ weights
            write(batch, rows, bits[:, None].astype(target.dtype), mask(batch, rows, active))

        return step_flag
    read = reader(source, inst.exec_size, layout)
    change = conversion(inst, source, target)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        write(batch, rows, change(read(batch, rows)), mask(batch, rows, active))

    return step


@STEPS.of("sel")
def sel(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Select by the predicate; all enabled lanes are written."""
    target = inst["dst"].var.format
    write, mask, predicate = (
        writer(inst["dst"], inst.exec_size, layout),
        masker(inst, layout),
        flag_reader(inst, layout),
    )
    reads: list[tuple[Callable[[Array], Array], Read]] = [
        (conversion(inst, inst[n], target), reader(inst[n], inst.exec_size, layout)) for n in ("src0", "src1")
    ]

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        (change0, read0), (change1, read1) = reads
        values = np.where(predicate(batch, rows), change0(read0(batch, rows)), change1(read1(batch, rows)))
        write(batch, rows, values, mask(batch, rows, active))

    return step


@STEPS.of("srnd")
def srnd(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Round stochastically (SRND.md)."""
    return _converting(inst, layout, lambda a, r: numerics.srnd(a, r, "bf8" if inst["dst"].var.type == "ub" else "hf"))


@STEPS.of("fcvt")
def fcvt(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Convert to and from formats that are not types of vISA (FCVT.md)."""
    names: dict[str, Literal["bf8", "hf", "tf32"]] = {"ub": "bf8", "hf": "hf", "ud": "tf32"}
    name = names[inst["dst"].var.type]
    return _converting(inst, layout, lambda a: numerics.fcvt(a, name))


def _converting(inst: Instruction, layout: RegisterPositions, function: Callable[..., Array]) -> Step:
    reads = [reader(source, inst.exec_size, layout) for source in inst.sources]
    write, mask = writer(inst["dst"], inst.exec_size, layout), masker(inst, layout)
    dtype = inst["dst"].var.format.dtype

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        # The instruction's formats differ from the registers' types, so operands are bit patterns.
        result = function(*(bits_of(np.ascontiguousarray(r(batch, rows))) for r in reads))
        write(batch, rows, bits_of(result).view(dtype), mask(batch, rows, active))

    return step


@STEPS.of("addc", "subb")
def with_carry(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Add or subtract 32 bits; the carry or borrow is a second result."""
    reads = [reader(source, inst.exec_size, layout) for source in inst.sources]
    write, write_carry = (writer(inst[name], inst.exec_size, layout) for name in ("dst", "carry"))
    mask, subtracts = masker(inst, layout), inst.name == "subb"
    changes = [conversion(inst, source, TYPES["ud"]) for source in inst.sources]

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        a, b = (change(read(batch, rows)).astype(np.int64) for change, read in zip(changes, reads))
        total, lanes = a - b if subtracts else a + b, mask(batch, rows, active)
        write(batch, rows, total.astype(np.uint32), lanes)
        write_carry(batch, rows, (total >> 32 & 1).astype(np.uint32), lanes)

    return step


@STEPS.of("madw")
def madw(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Multiply and add in 64 bits; the halves are two results."""
    reads = [reader(source, inst.exec_size, layout) for source in inst.sources]
    low, high = (writer(to, inst.exec_size, layout) for to in (inst["dst"], _second(inst, layout)))
    mask, dtype = masker(inst, layout), inst["dst"].format.dtype

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        # A negated product can need more than 64 bits, whose lowest 64 are the result.
        a, b, c = (
            apply_modifier(read(batch, rows).astype(object), source.modifier)
            for read, source in zip(reads, inst.sources)
        )
        total, lanes = np.asarray(a * b + c), mask(batch, rows, active)
        for write, shift in ((low, 0), (high, 32)):
            write(batch, rows, (total >> shift & 0xFFFFFFFF).astype(np.uint32).view(dtype), lanes)

    return step


@STEPS.of("shfl_idx4")
def shfl_idx4(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Look up the parts of each dword in a table of 16; a part comes from the same part of an entry."""
    table, indices = (reader(inst[name], count, layout) for name, count in (("src0", TABLE), ("src1", inst.exec_size)))
    write, mask = raw_writer(inst["dst"], layout), masker(inst, layout)
    part_count = 2 * inst["src1"].format.bytes
    shifts = 4 * np.arange(part_count)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        threads = count_of(batch, rows)
        entries = np.ascontiguousarray(table(batch, rows)).view(f"u{4 // part_count}").reshape(-1, TABLE, part_count)
        indexes = indices(batch, rows).astype(np.int64)[:, :, None] >> shifts & 0xF
        selected = entries[np.arange(threads)[:, None, None], indexes, np.arange(part_count)]
        lanes = mask(batch, rows, active)
        data = np.ascontiguousarray(selected).view(np.uint8).reshape(threads, -1)
        write(batch, rows, data, None if lanes is None else np.repeat(lanes, 4, axis=1))

    return step


def _second(inst: Instruction, layout: RegisterPositions) -> Destination:
    second = INSTRUCTIONS[inst.name].second
    assert second
    return second(inst, layout.target)


@STEPS.of("invm", "rsqtm")
def with_special(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """A quotient or root; a predicate is set where it is a NaN, an infinity or a zero."""
    fmt = inst["dst"].format
    rounded: Callable[..., Array] = numerics.div if inst.name == "invm" else numerics.rsqrt
    function = _alternative(inst, fmt.name, lambda *sources: rounded(*sources, fmt.name))
    reads = [reader(source, inst.exec_size, layout) for source in inst.sources]
    prepare = _float_preparations(inst, [fmt.name] * len(reads), [s.modifier for s in inst.sources], fmt.name)
    write, write_flag, mask = (
        writer(inst["dst"], inst.exec_size, layout),
        flag_writer(inst, layout, "special"),
        masker(inst, layout),
    )

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        values = function(*(np.array(p(r(batch, rows))) for p, r in zip(prepare, reads)))
        values = flush(values, fmt) if inst.flushes(fmt.name) else values
        values = negative_nans(values, fmt) if inst.follows("nan-bits") else values
        lanes = mask(batch, rows, active)
        write(batch, rows, values, lanes)
        write_flag(batch, rows, ~np.isfinite(values) | (values == 0), lanes)

    return step


@STEPS.of("faddr")
def faddr(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Refuse: who loads a program replaces its symbols by addresses."""

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        raise AccessFault(0, f"takes the address of '{inst['symbol']}', which nothing defines")

    return step


@STEPS.of("setp")
def setp(inst: Instruction, layout: RegisterPositions, model: Model) -> Step:
    """Set a predicate to the lowest bits of a scalar."""
    source = inst["src0"]
    read, write, mask = reader(source, 1, layout), flag_writer(inst, layout), masker(inst, layout)
    lane_bits = np.arange(inst.exec_size, dtype=np.uint64)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        pattern = read(batch, rows).view(f"u{source.format.bytes}").astype(np.uint64)
        write(batch, rows, (pattern >> lane_bits) & np.uint64(1) == 1, mask(batch, rows, active))

    return step


# Execution of arithmetic instructions: read and widen the sources, call the semantic function, narrow the result.

Step = Callable[[Batch, Rows, "Array | None"], None]
"""Runs an instruction for some threads; the last argument is their enabled lanes, None for all."""


def _integer_dtype(inst: Instruction, types: list[str], modifiers: list[str]) -> type:
    """An array type that holds sources and result exactly or, if this is sufficient, their lowest 64 bits.

    If neither of numpy's is wide enough, Python's integers are used.
    """
    spec = INSTRUCTIONS[inst.name]
    if not (inst.saturate or spec.ordered or any("abs" in m for m in modifiers)):
        return np.int64
    spans = [span(t, m) for t, m in zip(types, modifiers)]
    results = [spec.interval(*spans)] if spec.interval else []
    bounds_list = [bound for bounds in (*spans, *results, *map(span, types)) for bound in bounds]
    for dtype in (np.uint64, np.int64):
        info = np.iinfo(dtype)
        if int(info.min) <= min(bounds_list) and max(bounds_list) <= int(info.max):
            return dtype
    return object


def apply_modifier(values: Array, modifier: str) -> Array:
    """Apply a source modifier."""
    if modifier == "-":
        return -values
    if modifier == "abs":
        return np.abs(values)
    if modifier == "-abs":
        return -np.abs(values)
    return ~values if modifier == "~" else values


def arithmetic_step(inst: Instruction, layout: RegisterPositions) -> Step:
    """Runs an instruction whose semantic function maps numbers to numbers."""
    operands = inst.sources
    types = [o.format.name for o in operands]
    dst = inst["dst"]
    function: Callable[..., Array] = ARITHMETIC[inst.name]
    mask = masker(inst, layout)
    reads = [reader(o, inst.exec_size, layout) for o in operands]
    modifiers = [o.modifier for o in operands]
    op = AluOp.of(inst)
    fmt = op.format
    prepare = _float_preparations(inst, types, modifiers, fmt) if fmt else _integer_preparations(inst, types, modifiers)
    rounding = inst.rounding
    if fmt and rounding != "even" and inst.name in ROUNDED:

        def function(op: AluOp, *sources: Array) -> Array:
            return numerics.directed(ROUNDED[inst.name], sources, fmt, rounding)

    evaluate = _alternative(inst, fmt, partial(function, op))

    def compute(batch: Batch, rows: Rows) -> Array:
        return evaluate(*(p(r(batch, rows)) for p, r in zip(prepare, reads)))

    if INSTRUCTIONS[inst.name].compares:
        return _comparison(inst, compute, mask, layout)
    target = dst.var.format
    write, saturate = writer(dst, inst.exec_size, layout), inst.saturate
    if fmt:
        plain = target.name == fmt and not saturate
        zeros, end_zeros = inst.flushes(fmt), not plain and inst.flushes(target.name)
        other_nans = bool(inst.follows("nan-bits"))

        def finish(values: Array) -> Array:
            values = canonical(values, TYPES[fmt])
            values = flush(values, TYPES[fmt]) if zeros else values
            values = values if plain else _convert(values, fmt, target.name, saturate, rounding)
            values = flush(values, target) if end_zeros else values
            return negative_nans(values, target) if other_nans else values

    else:

        def finish(values: Array) -> Array:
            return narrow_integers(values, target, saturate)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        write(batch, rows, finish(compute(batch, rows)), mask(batch, rows, active))

    return step


def _alternative(inst: Instruction, fmt: str, function: Callable[..., Array]) -> Callable[..., Array]:
    """The function of numbers in the execution type, or the alternative of it that an instruction follows."""
    which = inst.follows(f"{inst.name}-accuracy")
    if fmt and which:
        return lambda *sources: neighbour(inst.name, sources, canonical(function(*sources), TYPES[fmt]), fmt, which)
    if inst.follows("division"):
        return lambda a, b: np.multiply(a, numerics.inv(b, fmt), dtype=TYPES[fmt].dtype)
    return function


def _float_preparations(
    inst: Instruction, types: list[str], modifiers: list[str], fmt: str
) -> list[Callable[[Array], Array]]:
    def prepare(name: str, modifier: str) -> Callable[[Array], Array]:
        dtype = TYPES[fmt].dtype
        if inst.flushes(name) and inst.name not in READ_WHOLE:
            return lambda values: apply_modifier(flush(values, TYPES[name]).astype(dtype), modifier)
        if name == fmt:
            return (lambda values: apply_modifier(values, modifier)) if modifier else (lambda values: values)
        return lambda values: apply_modifier(values.astype(dtype), modifier)

    return [prepare(t, m) for t, m in zip(types, modifiers)]


def _integer_preparations(inst: Instruction, types: list[str], modifiers: list[str]) -> list[Callable[[Array], Array]]:
    dtype = _integer_dtype(inst, types, modifiers)

    def prepare(modifier: str) -> Callable[[Array], Array]:
        if modifier:
            return lambda values: apply_modifier(values.astype(dtype), modifier)
        return lambda values: values.astype(dtype)

    return [prepare(m) for m in modifiers]


def _comparison(
    inst: Instruction, compute: Callable[[Batch, Rows], Array], mask: Mask, layout: RegisterPositions
) -> Step:
    dst = inst["dst"]
    if isinstance(dst, Flag):
        write_flag = flag_writer(inst, layout)

        def step(batch: Batch, rows: Rows, active: Array | None) -> None:
            write_flag(batch, rows, compute(batch, rows), mask(batch, rows, active))

        return step
    write, target = writer(dst, inst.exec_size, layout), dst.var.format
    patterns = np.array([0, (1 << target.bits) - 1], f"u{target.bytes}").view(target.dtype)

    def step_all_bits(batch: Batch, rows: Rows, active: Array | None) -> None:
        write(batch, rows, patterns[compute(batch, rows).astype(np.intp)], mask(batch, rows, active))

    return step_all_bits


def flag_writer(inst: Instruction, layout: RegisterPositions, name: str = "dst") -> Write:
    """Writes bits bool[threads, lanes] to the predicate that is the destination, or another operand."""
    index = layout.predicates[inst[name].var]
    first_lane, lane_count = inst.first_lane, inst.exec_size

    def write(batch: Batch, rows: Rows, values: Array, mask: Array | None) -> None:
        if mask is not None:
            values = np.where(mask, values, batch.flags[rows, index, first_lane : first_lane + lane_count])
        batch.flags[rows, index, first_lane : first_lane + lane_count] = values

    return write


def _convert(values: Array, src: str, dst: str, saturate: bool, rounding: Direction) -> Array:
    if rounding == "even":
        return convert(values, src, dst, saturate=saturate)
    return convert_directed(values, src, dst, rounding, saturate=saturate)


def conversion(inst: Instruction, source: Region | Immediate, target: Format) -> Callable[[Array], Array]:
    """The function that applies a source's modifier and converts its elements to another type, as mov does."""
    fmt, change = source.format, _conversion(inst, source, target)
    if inst.follows("nan-bits"):
        plain = inst.replaced(alternatives=())
        return lambda values: negative_nans(conversion(plain, source, target)(values), target)
    if not inst.flushed:
        return change

    def flushing(values: Array) -> Array:
        converted_values = change(flush(values, fmt) if inst.flushes(fmt.name) else values)
        return flush(converted_values, target) if inst.flushes(target.name) else converted_values

    return flushing


def _conversion(inst: Instruction, source: Region | Immediate, target: Format) -> Callable[[Array], Array]:
    fmt, modifier, saturate, rounding = source.format, source.modifier, inst.saturate, inst.rounding
    name = fmt.name
    if not modifier:
        if name == target.name and not saturate:
            return lambda values: values
        return lambda values: _convert(values, name, target.name, saturate, rounding)
    if fmt.is_float:
        return lambda values: _convert(_modify_bits(values, fmt, modifier), name, target.name, saturate, rounding)
    if target.is_float:
        # A negated integer can need one bit more than its type has.
        dtype = object if fmt.bits == 64 else np.int64
        return lambda values: _to_float(apply_modifier(values.astype(dtype), modifier), target, saturate, rounding)
    dtype = object if fmt.bits == 64 and (saturate or fmt.kind == "u") else np.int64
    return lambda values: narrow_integers(apply_modifier(values.astype(dtype), modifier), target, saturate)


def _modify_bits(values: Array, fmt: Format, modifier: str) -> Array:
    """Source modifiers of floats change only the sign bit of a NaN."""
    bits = bits_of(np.array(values))
    sign = bits.dtype.type(1 << (fmt.bits - 1))
    if "abs" in modifier:
        bits &= ~sign
    if modifier.startswith("-"):
        bits ^= sign
    return bits.view(fmt.dtype)


_MIRRORED: dict[Direction, Direction] = {"even": "even", "zero": "zero", "up": "down", "down": "up"}


def _to_float(values: Array, target: Format, saturate: bool, rounding: Direction) -> Array:
    if values.dtype == object:
        # A source of 64 bits and a sign: the magnitude is rounded, then the sign is applied.
        magnitude = np.abs(values).astype(np.uint64)
        positive, negative = (
            _convert(magnitude, "uq", target.name, False, mode) for mode in (rounding, _MIRRORED[rounding])
        )
        signed = np.where(values < 0, -negative, positive).astype(target.dtype)
        return convert(signed, target.name, target.name, saturate=saturate)
    return _convert(values, "q", target.name, saturate, rounding)


def flag_logic_step(inst: Instruction, layout: RegisterPositions) -> Step:
    """Runs `and`, `or`, `xor` and `not` of predicates."""
    sources = [layout.predicates[source.var] for source in inst.sources]
    function, mask, write = ARITHMETIC[inst.name], masker(inst, layout), flag_writer(inst, layout)
    op, first_lane, lane_count = AluOp(name=inst.name), inst.first_lane, inst.exec_size

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        bits = (batch.flags[rows, index, first_lane : first_lane + lane_count] for index in sources)
        write(batch, rows, function(op, *bits), mask(batch, rows, active))

    return step
