"""Numbers of 2 and 4 bits in registers: arithmetic on bytes, and permutations of bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from xegpu_py.ir.combining import CombiningKind
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import constant as number
from xegpu_py.passes.common.builders import integer_type, make, shape_cast, with_element
from xegpu_py.passes.common.expansions import SCALING, expand_scaling, require_nearest
from xegpu_py.passes.common.values import attributes_of, element_of, integers, shape_of
from xegpu_py.passes.xegpu_emulate_narrow_types.emulation import (
    Emulation,
    bits_of,
    constant_bits,
    dense_bytes,
    pattern,
)

_SIGNS: dict[str, tuple[bool | None, bool | None]] = {
    **dict.fromkeys(("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"), (None, None)),
    **dict.fromkeys((f"arith.{n}si" for n in ("div", "rem", "floordiv", "ceildiv", "max", "min")), (True, True)),
    **dict.fromkeys((f"arith.{n}ui" for n in ("div", "rem", "ceildiv", "max", "min")), (False, False)),
    "arith.shli": (None, False), "arith.shrsi": (True, False), "arith.shrui": (False, False),
}  # fmt: skip
"""Whether each operand is sign-extended or zero-extended; None if the result's lowest bits depend only on the operands'
lowest bits.
"""
_MOVES = (
    "vector.broadcast", "vector.splat", "vector.insert", "vector.transpose", "vector.shuffle", "vector.interleave",
    "vector.deinterleave", "vector.from_elements", "vector.to_elements", "vector.extractelement",
    "vector.insertelement", "vector.extract", "vector.extract_strided_slice", "vector.insert_strided_slice",
    "vector.shape_cast", "arith.select", "ub.poison",
)  # fmt: skip
_WITHIN_ROWS = ("vector.extract", "vector.insert", "vector.broadcast", "vector.transpose", "arith.select")
"""Ops that keep rows whole, if all vectors have rows of the same length."""
_WIDENING = {"arith.extsi": True, "arith.sitofp": True, "arith.index_cast": True, "arith.extui": False,
             "arith.uitofp": False, "arith.index_castui": False}  # fmt: skip


def _bytes(kind: ir.Type) -> ir.Type:
    return with_element(kind, integer_type(8)) if bits_of(kind) else kind


def on_bytes(e: Emulation, op: ir.Operation, signs: Sequence[bool | None]) -> None:
    """Apply an op to operands with one element per byte.

    Args:
        signs: how each operand is extended.
    """
    operands = [e.unpacked(v, s) if bits_of(v.type) else e.one(v) for v, s in zip(op.operands, signs)]
    kinds = [_bytes(v.type) for v in op.results]
    e.give(op, *ir.Operation.create(op.name, kinds, operands, attributes_of(op)).results)


@pattern(*_SIGNS)
def arithmetic(e: Emulation, op: ir.Operation) -> None:
    """Apply the op to bytes."""
    on_bytes(e, op, _SIGNS[op.name])


@pattern("arith.addui_extended")
def add_with_carry(e: Emulation, op: ir.Operation) -> None:
    """Add bytes; the carry is set if the sum exceeds the narrow type."""
    bits = bits_of(op.results[0].type)
    total = build.binary("addi", *(e.unpacked(v, False) for v in op.operands))
    e.give(op, total, build.compare("ugt", total, number(total.type, (1 << bits) - 1)))


@pattern("arith.mulsi_extended", "arith.mului_extended")
def whole_product(e: Emulation, op: ir.Operation) -> None:
    """Extract both halves from a product of bytes, which contains the whole product."""
    signed = op.name == "arith.mulsi_extended"
    product = build.binary("muli", *(e.unpacked(v, signed) for v in op.operands))
    e.give(op, product, build.binary("shrui", product, bits_of(op.results[0].type)))


@pattern("arith.cmpi")
def compare(e: Emulation, op: ir.Operation) -> None:
    """Compare bytes; signed predicates compare sign-extended operands."""
    is_signed = 2 <= ir.IntegerAttr(op.attributes["predicate"]).value <= 5
    on_bytes(e, op, [is_signed, is_signed])


@pattern(*_MOVES)
def move(e: Emulation, op: ir.Operation) -> None:
    """Move elements. Ops that move whole bytes of rows are applied to packed vectors."""
    if not _moves_bytes(e, op):
        on_bytes(e, op, [None] * len(op.operands))


def _moves_bytes(e: Emulation, op: ir.Operation) -> bool:
    """Apply an op to packed vectors if it keeps bytes whole; returns whether it does."""
    numbers = [v for v in (*op.operands, *op.results) if bits_of(v.type)]
    if op.name == "ub.poison":
        made = make("ub.poison", e.held_type(op.results[0].type), value=op.attributes["value"])
        e.replace(op, (made,))
        return True
    if not all(e.is_packed(v.type) for v in numbers):
        return False
    each, attributes = e.each(numbers[0].type), attributes_of(op)
    last = {shape_of(v)[-1] for v in numbers}
    if op.name == "vector.shape_cast":
        e.replace(op, (shape_cast(e.packed(op.operands[0]), shape_of(e.held_type(op.results[0].type))),))
        return True
    if op.name == "vector.transpose" and integers(op.attributes["permutation"])[-1] != len(shape_of(op.results[0])) - 1:
        return False
    if op.name.endswith("strided_slice"):
        for name in ("offsets", "sizes"):
            if name not in attributes or len(integers(attributes[name])) < len(shape_of(op.results[0])):
                continue
            *outer, inner = integers(attributes[name])
            if inner % each:
                return False
            i64 = integer_type(64)
            found = [ir.IntegerAttr.get(i64, n) for n in (*outer, inner // each)]
            attributes[name] = ir.ArrayAttr.get(found)
    elif len(last) != 1 or op.name not in _WITHIN_ROWS or (op.name == "arith.select" and shape_of(op.operands[0])):
        return False
    operands = [e.packed(v) if bits_of(v.type) else e.one(v) for v in op.operands]
    kind = e.held_type(op.results[0].type)
    e.replace(op, (ir.Operation.create(op.name, [kind], operands, attributes).results[0],))
    return True


@pattern("arith.constant")
def constant(e: Emulation, op: ir.Operation) -> None:
    """Build the constant, packed if its rows fill bytes."""
    kind = op.results[0].type
    numbers = constant_bits(op)
    if e.is_packed(kind):
        each = e.each(kind)
        groups = numbers.reshape(*numbers.shape[:-1], numbers.shape[-1] // each, each)
        numbers = (groups << bits_of(kind) * np.arange(each)).sum(axis=-1)
    e.replace(op, (dense_bytes(numbers, kind),))


@pattern(*_WIDENING)
def widen(e: Emulation, op: ir.Operation) -> None:
    """Extend to a byte, with or without sign, and then to the result's type; index has more bits than a byte."""
    source, result = op.operands[0], op.results[0]
    if not bits_of(source.type):
        narrow(e, op)
        return
    numbers = e.unpacked(source, _WIDENING[op.name])
    same = bits_of(result.type) or numbers.type == result.type
    e.give(op, numbers if same else make(op.name, result.type, numbers))


@pattern("arith.trunci", "arith.fptosi", "arith.fptoui")
def narrow(e: Emulation, op: ir.Operation) -> None:
    """Convert to bytes, whose lowest bits contain the value."""
    source, result = op.operands[0], op.results[0]
    numbers = e.unpacked(source) if bits_of(source.type) else e.one(source)
    kind = _bytes(result.type)
    e.give(op, numbers if numbers.type == kind else make(op.name, kind, numbers))


@pattern("vector.bitcast")
def bitcast(e: Emulation, op: ir.Operation) -> None:
    """Keep the bytes."""
    source, result = op.operands[0], op.results[0]
    held = e.packed(source) if bits_of(source.type) else e.one(source)
    if bits_of(result.type) and not e.is_packed(result.type):
        e.fail(f"gives {result.type}, whose rows do not fill bytes")
    kind = e.held_type(result.type) if bits_of(result.type) else result.type
    e.replace(op, (held if held.type == kind else make("vector.bitcast", kind, held),))


@pattern("arith.bitcast")
def same_bits(e: Emulation, op: ir.Operation) -> None:
    """Convert to numbers with the same number of bits, in the bytes that contain them."""
    if bits_of(op.results[0].type):
        e.replace(op, e.get(op.operands[0]))
    else:
        e.keep(op)


@pattern("vector.reduction", "vector.multi_reduction")
def reduction(e: Emulation, op: ir.Operation) -> None:
    """Reduce bytes. Minima and maxima extend elements by their sign or by zeros."""
    kind = CombiningKind.of(op).value
    sign = kind.endswith("si") if kind.startswith(("min", "max")) else None
    on_bytes(e, op, [sign] * len(op.operands))


@pattern("xegpu.dpas", "xegpu.dpas_mx")
def dpas(e: Emulation, op: ir.Operation) -> None:
    """Cast the factors from bytes to elements."""
    for i, value in enumerate(op.operands):
        if bits_of(value.type):
            op.operands[i] = make("vector.bitcast", value.type, e.packed(value))
        elif value in e.values:
            op.operands[i] = e.one(value)


@pattern("arith.extf")
def extend(e: Emulation, op: ir.Operation) -> None:
    """Convert f4E2M1FN: place its bits as those of f16, whose exponent is then 14 too small, and multiply by 2^14."""
    source, result = op.operands[0], op.results[0]
    if not bits_of(source.type):
        e.keep(op)
        return
    word, half = (with_element(result.type, ir.Type.parse(name)) for name in ("i16", "f16"))
    code = make("arith.extui", word, e.unpacked(source, False))

    def placed(mask: int, by: int) -> ir.Value:
        return make("arith.shli", word, make("arith.andi", word, code, number(word, mask)), number(word, by))

    bits = make("arith.ori", word, placed(7, 9), placed(8, 12))
    found = make("arith.mulf", half, make("arith.bitcast", half, bits), number(half, 2.0**14))
    kind = str(element_of(result))
    if kind in ("bf16", "f32", "f64"):
        found = make("arith.extf", with_element(half, ir.Type.parse("f64" if kind == "f64" else "f32")), found)
    e.replace(op, found if found.type == result.type else make("arith.truncf", result.type, found))


@pattern("arith.truncf")
def round_narrow(e: Emulation, op: ir.Operation) -> None:
    """Saturate when rounding to f4E2M1FN, which has no infinity."""
    if not bits_of(op.results[0].type):
        e.keep(op)
        return
    require_nearest(op)
    made = make("xegpu.truncf", op.results[0].type, op.operands[0])
    e.op(made.owner)
    e.replace(op, e.get(made))


@pattern(*SCALING)
def scale(e: Emulation, op: ir.Operation) -> None:
    """Multiply or divide by a scale."""
    if not any(bits_of(v.type) for v in (*op.operands, *op.results)):
        e.keep(op)
        return
    made = expand_scaling(op)
    for inner in made:
        e.op(inner.owner)
    e.replace(op, e.get(made[-1]) if bits_of(made[-1].type) else made[-1])


@pattern("xegpu.truncf")
def truncate(e: Emulation, op: ir.Operation) -> None:
    """Convert to bytes."""
    result = op.results[0]
    made = ir.Operation.create(op.name, [result.type], [e.one(v) for v in op.operands], attributes_of(op)).results[0]
    if not e.is_packed(result.type):
        e.fail(f"gives {result.type}, whose rows do not fill bytes")
    e.replace(op, (make("vector.bitcast", e.held_type(result.type), made),))
