"""Execution of arithmetic instructions: read and widen the sources, call the golden function, narrow the result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xegpu_py.engines.access import Layout, Mask, Write, masker, reader, writer
from xegpu_py.engines.batch import Batch, Rows
from xegpu_py.engines.execution import execution_bits, execution_format, span
from xegpu_py.engines.golden.alu import ARITHMETIC, AluOp
from xegpu_py.numerics.convert import convert, narrow_integers
from xegpu_py.numerics.formats import TYPES, Array, Format, bits_of, canonical
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Flag, Immediate, Region
from xegpu_py.visa.program import Instruction

Step = Callable[[Batch, Rows, "Array | None"], None]
"""Runs an instruction for some threads; the last argument is their enabled lanes, None for all."""


def _integer_dtype(inst: Instruction, types: list[str], modifiers: list[str]) -> type:
    """An array type that holds sources and result exactly or, if this is sufficient, their lowest 64 bits.

    If neither of numpy's is wide enough, Python's integers are used.
    """
    spec = INSTRUCTIONS[inst.name]
    if not (inst.saturate or spec.ordered or any("abs" in m for m in modifiers)):
        unsigned = all(TYPES[t].kind == "u" for t in types) and not any(modifiers)
        return np.uint64 if unsigned else np.int64
    spans = [span(t, m) for t, m in zip(types, modifiers)]
    results = [spec.interval(*spans)] if spec.interval else []
    ends = [end for bounds in (*spans, *results, *map(span, types)) for end in bounds]
    for dtype in (np.uint64, np.int64):
        info = np.iinfo(dtype)
        if int(info.min) <= min(ends) and max(ends) <= int(info.max):
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


def arithmetic_step(inst: Instruction, layout: Layout) -> Step:
    """Runs an instruction whose golden function maps numbers to numbers."""
    operands = inst.sources
    types = [o.format.name for o in operands]
    dst = inst["dst"]
    function, mask = ARITHMETIC[inst.name], masker(inst, layout)
    reads = [reader(o, inst.exec_size, layout) for o in operands]
    modifiers = [o.modifier for o in operands]
    fmt, bits = execution_format(inst, types), execution_bits(inst, types)
    op = AluOp(fmt, bits, inst.values.get("condition", ""))
    prepare = _float_preparations(types, modifiers, fmt) if fmt else _integer_preparations(inst, types, modifiers)

    def compute(batch: Batch, rows: Rows) -> Array:
        result: Array = function(op, *(p(r(batch, rows)) for p, r in zip(prepare, reads)))
        return result

    if INSTRUCTIONS[inst.name].compares:
        return _comparison(inst, compute, mask, layout)
    target = dst.var.format
    write, saturate = writer(dst, inst.exec_size, layout), inst.saturate
    if fmt:
        plain = target.name == fmt and not saturate

        def finish(values: Array) -> Array:
            values = canonical(values, TYPES[fmt])
            return values if plain else convert(values, fmt, target.name, saturate=saturate)

    else:

        def finish(values: Array) -> Array:
            return narrow_integers(values, target, saturate)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        write(batch, rows, finish(compute(batch, rows)), mask(batch, rows, active))

    return step


def _float_preparations(types: list[str], modifiers: list[str], fmt: str) -> list[Callable[[Array], Array]]:
    def prepare(name: str, modifier: str) -> Callable[[Array], Array]:
        dtype = TYPES[fmt].dtype
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


def _comparison(inst: Instruction, compute: Callable[[Batch, Rows], Array], mask: Mask, layout: Layout) -> Step:
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


def flag_writer(inst: Instruction, layout: Layout) -> Write:
    """Writes bits bool[threads, lanes] to the predicate that is the destination."""
    index = layout.predicates[inst["dst"].var]
    first, count = inst.first_lane, inst.exec_size

    def write(batch: Batch, rows: Rows, values: Array, mask: Array | None) -> None:
        if mask is not None:
            values = np.where(mask, values, batch.flags[rows, index, first : first + count])
        batch.flags[rows, index, first : first + count] = values

    return write


def conversion(source: Region | Immediate, target: Format, saturate: bool) -> Callable[[Array], Array]:
    """The function that applies a source's modifier and converts its elements to another type, as mov does."""
    fmt, modifier = source.format, source.modifier
    name = fmt.name
    if not modifier:
        if name == target.name and not saturate:
            return lambda values: values
        return lambda values: convert(values, name, target.name, saturate=saturate)
    if fmt.is_float:
        return lambda values: convert(_modify_bits(values, fmt, modifier), name, target.name, saturate=saturate)
    if target.is_float:
        # A negated integer can need one bit more than its type has.
        dtype = object if fmt.bits == 64 else np.int64
        return lambda values: _to_float(apply_modifier(values.astype(dtype), modifier), target, saturate)
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


def _to_float(values: Array, target: Format, saturate: bool) -> Array:
    if values.dtype == object:
        # A source of 64 bits and a sign: the magnitude is rounded, then the sign is applied.
        magnitude = convert(np.abs(values).astype(np.uint64), "uq", target.name)
        signed = np.where(values < 0, -magnitude, magnitude).astype(target.dtype)
        return convert(signed, target.name, target.name, saturate=saturate)
    return convert(values, "q", target.name, saturate=saturate)


def flag_logic_step(inst: Instruction, layout: Layout) -> Step:
    """Runs `and`, `or`, `xor` and `not` of predicates."""
    sources = [layout.predicates[source.var] for source in inst.sources]
    function, mask, write = ARITHMETIC[inst.name], masker(inst, layout), flag_writer(inst, layout)
    op, first, count = AluOp("", 32), inst.first_lane, inst.exec_size

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        bits = (batch.flags[rows, index, first : first + count] for index in sources)
        write(batch, rows, function(op, *bits), mask(batch, rows, active))

    return step
