"""Arithmetic that elements do not have, by wider elements or step by step, with the bits that it would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from xegpu_py.passes.common.registers import shape_and_element

from xegpu_py.ir.builtin import vector_text
from xegpu_py.target import Target

_EXACT = {
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf", "arith.maxnumf",
    "arith.minnumf", "arith.remf",
}  # fmt: skip
"""Ops whose result, rounded first to f32 (or f16) and then to bf16 (or 8 bits), is that of one rounding.

The wider format has at least twice as many bits and two more, so that a sum, product or quotient that is no tie of the
narrow one is none of the wide one either.
"""
_FUNCTIONS = {
    "math.exp", "math.exp2", "math.expm1", "math.log", "math.log2", "math.log10", "math.log1p", "math.sqrt",
    "math.rsqrt", "math.sin", "math.cos", "math.tanh", "math.erf", "math.powf", "math.floor", "math.ceil", "math.round",
    "math.roundeven", "math.trunc",
}  # fmt: skip
_REDUCTIONS = ("vector.reduction", "vector.multi_reduction")
_WIDE = {"bf16": "f32", "f8E5M2": "f16", "f8E4M3FN": "f16"}


@dataclass
class Builder:
    """New ops in front of an op, with its location."""

    op: ir.Operation

    def emit(self, name: str, kind: str, /, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
        """An op of one result of type `kind`."""
        made = ir.Operation.create(
            name,
            results=[ir.Type.parse(kind, self.op.context)],
            operands=list(operands),
            attributes=attributes,
            loc=self.op.location,
            ip=ir.InsertionPoint(self.op),
        )
        return made.results[0]

    def convert(self, value: ir.Value, element: str) -> ir.Value:
        """A float in another format."""
        shape, own = shape_and_element(str(value.type))
        if own == element:
            return value
        if _BITS[own] < _BITS[element]:
            return self.emit("arith.extf", text_of(shape, element), value)
        if element in _STEPS and own in _STEPS[element]:
            return narrow(self, value, element)
        return self.emit("arith.truncf", text_of(shape, element), value)

    def constant(self, number: int | float, kind: str) -> ir.Value:
        """A number, for all elements."""
        text = f"dense<{number}> : {kind}" if kind.startswith("vector") else f"{number} : {kind}"
        return self.emit("arith.constant", kind, value=ir.Attribute.parse(text, self.op.context))

    def compare(self, predicate: int, a: ir.Value, b: ir.Value, name: str = "arith.cmpi") -> ir.Value:
        """Truth values of a comparison, by its number."""
        shape, _ = shape_and_element(str(a.type))
        i64 = ir.IntegerType.get_signless(64, self.op.context)
        return self.emit(name, text_of(shape, "i1"), a, b, predicate=ir.IntegerAttr.get(i64, predicate))

    def replace(self, *values: ir.Value) -> None:
        """Let values take the place of the op's results."""
        for result, value in zip(list(self.op.results), values):
            result.replace_all_uses_with(value)
        self.op.erase()


_EQ, _NE, _SLT, _SLE, _SGE, _UGE = 0, 1, 2, 3, 5, 9
"""Numbers of arith.cmpi's predicates."""
_OEQ, _OLT, _ONE = 1, 4, 6
"""Numbers of arith.cmpf's predicates."""
_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "f8E5M2": 8, "f8E4M3FN": 8}


def text_of(shape: Sequence[int], element: str) -> str:
    """The type of a vector; of a scalar if there is no shape."""
    return vector_text(tuple(shape), element) if shape else element


def rewrite_arithmetic(op: ir.Operation, target: Target) -> None:
    """Rewrite an op whose elements have no such arithmetic."""
    name = op.name
    if not op.operands or not op.results:
        return
    try:
        _, element = shape_and_element(str(op.operands[0].type))
    except ValueError:
        return
    if name in ("arith.sitofp", "arith.uitofp"):
        _from_integer(op)
    elif name == "arith.truncf":
        _narrow_once(op)
    elif element not in _WIDE:
        return
    elif name in ("arith.fptosi", "arith.fptoui") and _BITS.get(element) == 8:
        builder = Builder(op)
        builder.replace(builder.emit(name, str(op.results[0].type), builder.convert(op.operands[0], "f16")))
    elif name in _EXACT or name in _FUNCTIONS:
        _by_wider(op, "f32" if name in _FUNCTIONS else _WIDE[element])
    elif name == "arith.cmpf":
        builder = Builder(op)
        attributes = {n: op.attributes[n] for n in op.attributes}
        operands = [builder.convert(v, _WIDE[element]) for v in op.operands]
        builder.replace(builder.emit(name, str(op.results[0].type), *operands, **attributes))
    elif name in _REDUCTIONS:
        _by_wider(op, "f32")
    elif name in ("vector.fma", "math.fma"):
        _fma(op)


def _narrow_once(op: ir.Operation) -> None:
    """Conversions that the hardware makes in two steps, with the bits of one rounding."""
    _, source = shape_and_element(str(op.operands[0].type))
    _, element = shape_and_element(str(op.results[0].type))
    steps = _STEPS.get(element, ())
    if source in steps[:-2]:
        builder = Builder(op)
        builder.replace(narrow(builder, op.operands[0], element))


def _by_wider(op: ir.Operation, wide: str) -> None:
    builder = Builder(op)
    shape, element = shape_and_element(str(op.results[0].type))
    attributes = {n: op.attributes[n] for n in op.attributes}
    operands = [builder.convert(v, wide) for v in op.operands]
    made = builder.emit(op.name, text_of(shape, wide), *operands, **attributes)
    builder.replace(builder.convert(made, element))


def _fma(op: ir.Operation) -> None:
    """`a * b + c` rounded once: in f64, where the product is exact, and the sum with what it lost."""
    builder = Builder(op)
    shape, element = shape_and_element(str(op.results[0].type))
    double = text_of(shape, "f64")
    a, b, c = (builder.convert(v, "f64") for v in op.operands)
    product = builder.emit("arith.mulf", double, a, b)
    total = builder.emit("arith.addf", double, product, c)
    # What the sum lost, exactly.
    part = builder.emit("arith.subf", double, total, product)
    lost_c = builder.emit("arith.subf", double, c, part)
    lost_product = builder.emit("arith.subf", double, product, builder.emit("arith.subf", double, total, part))
    lost = builder.emit("arith.addf", double, lost_c, lost_product)
    builder.replace(narrow(builder, total, element, lost))


_STEPS = {
    "bf16": ("f64", "f32", "bf16"),
    "tf32": ("f64", "f32", "tf32"),
    "f8E5M2": ("f64", "f32", "f16", "f8E5M2"),
    "f8E4M3FN": ("f64", "f32", "f16", "f8E4M3FN"),
}
"""The formats by which a wide number becomes a narrow one: each is converted to the next by the hardware."""


def narrow(builder: Builder, value: ir.Value, element: str, lost: ir.Value | None = None) -> ir.Value:
    """A float in a format that is converted to from another, wider one, with the bits of one rounding.

    Args:
        lost: what `value` is less than the number that is meant, far less than its last bit.
    """
    shape, own = shape_and_element(str(value.type))
    steps = _STEPS[element]
    for wide, step in zip(steps[steps.index(own) :], steps[steps.index(own) + 1 : -1]):
        value, lost = _to_odd(builder, value, wide, step, lost), None
    return builder.emit("arith.truncf", text_of(shape, element), value)


def _to_odd(builder: Builder, value: ir.Value, wide: str, step: str, lost: ir.Value | None) -> ir.Value:
    """A float in fewer bits, of the two neighbours the one whose last bit is set if it is neither.

    What is then rounded to still fewer bits is rounded as the number itself, since no tie was made. The nearest
    neighbour is taken; what the number is more or less than it says where the other one lies.
    """
    shape, _ = shape_and_element(str(value.type))
    integer = {"f32": "i32", "f16": "i16"}[step]
    kind, bits, truth = text_of(shape, wide), text_of(shape, integer), text_of(shape, "i1")
    near = builder.emit("arith.truncf", text_of(shape, step), value)
    rest = builder.emit("arith.subf", kind, value, builder.emit("arith.extf", kind, near))
    zero = builder.constant(0.0, kind)
    if lost is not None:
        same = builder.compare(_OEQ, rest, zero, "arith.cmpf")
        rest = builder.emit("arith.select", kind, same, lost, rest)
    inexact = builder.compare(_ONE, rest, zero, "arith.cmpf")
    one, none = builder.constant(1, bits), builder.constant(0, bits)
    pattern = builder.emit("arith.bitcast", bits, near)
    # One more in the bits is away from zero; the other neighbour lies toward it where the rest has the other sign.
    toward = builder.emit(
        "arith.xori", truth, builder.compare(_OLT, rest, zero, "arith.cmpf"), builder.compare(_SLT, pattern, none)
    )
    by = builder.emit("arith.select", bits, toward, builder.constant(-1, bits), one)
    even = builder.compare(_EQ, builder.emit("arith.andi", bits, pattern, one), none)
    moves = builder.emit("arith.andi", truth, inexact, even)
    moved = builder.emit("arith.addi", bits, pattern, by)
    found = builder.emit("arith.select", bits, moves, moved, pattern)
    return builder.emit("arith.bitcast", text_of(shape, step), found)


def _from_integer(op: ir.Operation) -> None:
    """Integers of 32 bits to bf16, rounded once: those that f32 does not hold have what it would lose kept in a bit."""
    shape, source = shape_and_element(str(op.operands[0].type))
    _, element = shape_and_element(str(op.results[0].type))
    if _BITS.get(element) == 8:
        _small_from_integer(op, element)
    if element != "bf16" or source != "i32":
        return
    builder = Builder(op)
    kind, signed = text_of(shape, "i32"), op.name == "arith.sitofp"
    value = op.operands[0]
    one, none, low = (builder.constant(n, kind) for n in (256, 0, 255))
    lost = builder.compare(_NE, builder.emit("arith.andi", kind, value, low), none)
    kept = builder.emit("arith.andi", kind, value, builder.constant(-256, kind))
    sticky = builder.emit("arith.ori", kind, kept, builder.emit("arith.select", kind, lost, one, none))
    limit = builder.constant(1 << 24, kind)
    if signed:
        above = builder.compare(_SGE, value, limit)
        below = builder.compare(_SLE, value, builder.constant(-(1 << 24), kind))
        large = builder.emit("arith.ori", text_of(shape, "i1"), above, below)
    else:
        large = builder.compare(_UGE, value, limit)
    held = builder.emit("arith.select", kind, large, sticky, value)
    single = builder.emit(op.name, text_of(shape, "f32"), held)
    builder.replace(builder.convert(single, element))


def _small_from_integer(op: ir.Operation, element: str) -> None:
    """Integers to floats of 8 bits, rounded once, by f32: it holds all but those far beyond the greatest number."""
    builder = Builder(op)
    shape, source = shape_and_element(str(op.operands[0].type))
    value = op.operands[0]
    if source in ("i32", "i64"):
        kind, signed = text_of(shape, source), op.name == "arith.sitofp"
        value = builder.emit("arith.minsi" if signed else "arith.minui", kind, value, builder.constant(1 << 20, kind))
        if signed:
            value = builder.emit("arith.maxsi", kind, value, builder.constant(-(1 << 20), kind))
    builder.replace(builder.convert(builder.emit(op.name, text_of(shape, "f32"), value), element))
