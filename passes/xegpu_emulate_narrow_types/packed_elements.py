"""Elements of 2 and 4 bits in registers: how bytes represent them, and arithmetic on them.

A vector whose rows fill bytes is represented as packed: a vector of i8 whose rows have as many bytes. In all other
vectors, and for scalars, each element has a byte of its own, whose upper bits are arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from mlir import ir

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.dialects.xegpu.op_interfaces import MatrixProduct
from xegpu_py.dialects.xegpu.types import XeGPU
from xegpu_py.ir.builtin import CombiningKind, dense_elements, element_type
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.element_movement import MOVES, view_of
from xegpu_py.ir.module import walk
from xegpu_py.numerics.formats import E2M1, FLOATS, Array
from xegpu_py.numerics.narrow_floats import half_of
from xegpu_py.passes.analysis.integer_analysis import divisor
from xegpu_py.passes.analysis.ir_queries import (
    attributes_of,
    byte_memref,
    defining_op,
    desc_bits,
    element_of,
    integers,
    memref_bits,
    narrow_bits,
    shape_of,
)
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import constant as number
from xegpu_py.passes.rewriting.rewriter import Conversion, Rule, Rules

rule: Rules[Rule[Emulation]] = Rules()


def emulate(func: ir.Operation) -> None:
    """Rewrite a kernel that has elements of 2 or 4 bits.

    Raises:
        DiagnosticError: at the op that cannot be rewritten.
    """
    body = func.regions[0].blocks[0]
    for argument in body.arguments:
        if bits_of(argument.type):
            note = "pass bytes, and extract the elements with vector.bitcast"
            emit_error(func, f"argument of type {argument.type} is not supported", note)
    conversion = Emulation(func)
    ops = list(body.operations)
    for argument in body.arguments:
        if memref_bits(argument.type):
            with ir.InsertionPoint.at_block_begin(body), func.location:
                cast = build.make(
                    "builtin.unrealized_conversion_cast", conversion.memref(argument.type, func), argument
                )
            conversion.define(argument, (cast,))
    for op in ops:
        conversion.op(op.operation)
    conversion.finish()


def bits_of(kind: ir.Type) -> int:
    """The bits of a scalar or of a vector's elements if they are 2 or 4; otherwise 0."""
    return narrow_bits(element_of(kind))


def is_narrow(kind: ir.Type) -> bool:
    """Whether a type has elements of 2 or 4 bits."""
    return bool(bits_of(kind) or memref_bits(kind) or desc_bits(kind))


class Emulation(Conversion):
    """The conversion of a kernel that replaces elements of 2 and 4 bits by bytes.

    Attributes:
        shifted: whether blocks may begin within a byte. A descriptor is then replaced by three values: the descriptor
            of the bytes in which the rows of a block begin, the descriptor of the bytes after these, and an index, the
            number of the first element in its byte. If the block begins at a byte, both descriptors are the same.
        within_bytes: the descriptors whose blocks may begin within a byte.
    """

    # The elements of a packed vector that were packed, one per byte. Packing is dead code if all uses take these.
    _numbers: dict[ir.Value, ir.Value]

    rules = rule

    def __init__(self, func: ir.Operation) -> None:
        super().__init__()
        self._numbers = {}
        descs = {v for op in walk(func) for v in (*op.operands, *op.results) if desc_bits(v.type)}
        self.within_bytes = {d for d in descs if divisor(d) % (8 // desc_bits(d.type))}
        self.shifted = bool(self.within_bytes)

    # Types.

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> Sequence[ir.Type] | None:
        kind = value.type
        if bits_of(kind):
            return (self.held_type(kind),)
        if memref_bits(kind):
            return (self.memref(kind),)
        if desc_bits(kind):
            desc = self.desc_type(kind)
            return (desc, desc, build.index_type()) if self.shifted else (desc,)
        return None

    @staticmethod
    def each(kind: ir.Type) -> int:
        """The number of elements in a byte."""
        return 8 // (bits_of(kind) or memref_bits(kind) or desc_bits(kind))

    def is_packed(self, kind: ir.Type) -> bool:
        """Whether the rows of a vector type fill bytes."""
        shape = shape_of(kind)
        return bool(shape) and shape[-1] % self.each(kind) == 0

    def held_type(self, kind: ir.Type) -> ir.Type:
        """The type of the replacement of a value of this type."""
        shape, byte = shape_of(kind), build.integer_type(8)
        if not isinstance(kind, ir.VectorType):
            return byte
        if self.is_packed(kind):
            shape = (*shape[:-1], shape[-1] // self.each(kind))
        return ir.VectorType.get(shape, byte)

    def memref(self, kind: ir.Type, op: ir.Operation | None = None) -> ir.MemRefType:
        """The type of the memref of bytes that replaces a memref."""
        try:
            return byte_memref(ir.MemRefType(kind))
        except ValueError as e:
            emit_error(op or self._at(), *e.args)

    def _at(self) -> ir.Operation:
        assert self._op is not None
        return self._op

    def desc_type(self, kind: ir.Type) -> ir.Type:
        """The type of the descriptor of bytes that replaces a descriptor."""
        desc = TensorDesc.of(kind)
        each, attr = self.each(kind), desc.attr
        if desc.shape[-1] % each:
            self.fail(f"has rows of {desc.shape[-1]} elements of {desc.element}, which do not fill bytes")
        if attr.map is not None:
            rows, columns = attr.map.wi_data
            if columns % each:
                subject = f"a work item's {rows}x{columns} elements of {desc.element}, which do not fill bytes"
                self.fail(f"takes {subject}", "set wi_data to whole bytes of a row")
            attr = replace(attr, map=replace(attr.map, wi_data=(rows, columns // each)))
        return TensorDesc((*desc.shape[:-1], desc.shape[-1] // each), "i8", attr).to_ir()

    # Numbers.

    def packed(self, value: ir.Value) -> ir.Value:
        """The bytes of a packed vector.

        Raises:
            DiagnosticError: if the vector's rows do not fill bytes.
        """
        if not self.is_packed(value.type):
            self.fail(f"requires whole bytes, but got {value.type}")
        return self.replacement(value)

    def unpacked(self, value: ir.Value, signed: bool | None = None) -> ir.Value:
        """The elements of a value, one per byte.

        Args:
            signed: whether the upper bits are copies of the sign bit, or zero; if None, they are arbitrary.
        """
        bits, kind = bits_of(value.type), value.type
        op = defining_op(value)
        if op is not None and op.name == "arith.constant":
            return self._bytes_constant(op, signed)
        packed = self.replacement(value)
        numbers = self._numbers.get(packed) or (self.spread(packed, bits) if self.is_packed(kind) else packed)
        return extended(numbers, bits, signed)

    @staticmethod
    def spread(packed: ir.Value, bits: int) -> ir.Value:
        """The elements of a packed vector, one per byte; the upper bits are arbitrary."""
        parts = [shifted(packed, "shrui", bits * j) for j in range(8 // bits)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [interleaved(a, b) for a, b in zip(parts[:half], parts[half:])]
        return parts[0]

    def _bytes_constant(self, op: ir.Operation, signed: bool | None) -> ir.Value:
        kind = op.results[0].type
        numbers = constant_bits(op)
        if signed:
            top = 1 << bits_of(kind) - 1
            numbers = (numbers ^ top) - top
        return dense_bytes(numbers, kind)

    def replace(self, op: ir.Operation, *results: ir.Value | Sequence[ir.Value]) -> None:
        pairs = zip(op.results, results, strict=True)
        super().replace(op, *((v,) if isinstance(v, ir.Value) and is_narrow(r.type) else v for r, v in pairs))

    def give(self, op: ir.Operation, *values: ir.Value) -> None:
        """Replace an op's results. Elements of 2 and 4 bits are given one per byte, with arbitrary upper bits."""
        for result, value in zip(op.results, values):
            if not bits_of(result.type):
                result.replace_all_uses_with(value)
            else:
                packed = self.pack(value, bits_of(result.type)) if self.is_packed(result.type) else value
                self.define(result, (packed,))
        self.erase(op)

    def pack(self, value: ir.Value, bits: int) -> ir.Value:
        """Pack numbers, which are given one per byte with arbitrary upper bits, into the bytes that they fill."""
        parts = [value]
        while len(parts) < 8 // bits:
            split = [deinterleaved(p) for p in parts]
            parts = [a for a, _ in split] + [b for _, b in split]
        total = masked(parts[0], bits)
        for j, part in enumerate(parts[1:], 1):
            low = part if j == len(parts) - 1 else masked(part, bits)
            total = build.binary("ori", total, shifted(low, "shli", bits * j))
        self._numbers[total] = value
        return total

    # The driver.

    def is_legal(self, op: ir.Operation) -> bool:
        return not any(is_narrow(v.type) for v in (*op.operands, *op.results))

    def convert_without_rule(self, op: ir.Operation) -> None:
        kinds = dict.fromkeys(str(v.type) for v in (*op.operands, *op.results) if is_narrow(v.type))
        note = "extend the elements to i8, or load i8 and extract the elements with vector.bitcast"
        self.fail(f"is not supported for {', '.join(kinds)}", note)


def shifted(value: ir.Value, name: str, by: int) -> ir.Value:
    """Shift bytes by this number of bits."""
    return build.binary(name, value, by) if by else value


def masked(value: ir.Value, bits: int) -> ir.Value:
    """Clear all but the lowest bits of bytes."""
    return build.binary("andi", value, (1 << bits) - 1)


def signed_of(kind: CombiningKind) -> bool | None:
    """Whether a kind combines elements that are extended by their sign or by zeros; None if by either."""
    return kind.value.endswith("si") if kind.value.startswith(("min", "max")) else None


def extended(value: ir.Value, bits: int, signed: bool | None) -> ir.Value:
    """Set the upper bits of bytes to the sign of the lower bits or to zero; keep them if `signed` is None."""
    if signed is None:
        return value
    if not signed:
        return masked(value, bits)
    return shifted(shifted(value, "shli", 8 - bits), "shrsi", 8 - bits)


def interleaved(a: ir.Value, b: ir.Value) -> ir.Value:
    """Interleave the elements of two vectors along rows."""
    shape = shape_of(a)
    return build.make("vector.interleave", build.with_shape(a.type, (*shape[:-1], 2 * shape[-1])), a, b)


def deinterleaved(value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The elements with even and with odd numbers in each row."""
    shape = shape_of(value)
    kind = build.with_shape(value.type, (*shape[:-1], shape[-1] // 2))
    even, odd = ir.Operation.create("vector.deinterleave", [kind, kind], [value]).results
    return even, odd


def constant_bits(op: ir.Operation) -> Array:
    """The elements of a constant as unsigned numbers, in the shape of its type."""
    kind, attribute = op.results[0].type, op.attributes["value"]
    elements = dense_elements(attribute) if isinstance(attribute, ir.DenseElementsAttr) else [attribute]
    mask = (1 << bits_of(kind)) - 1
    patterns = [_pattern(e) & mask for e in elements]
    return np.array(patterns, np.int64).reshape(shape_of(kind))


def _pattern(element: ir.Attribute) -> int:
    if isinstance(element, ir.IntegerAttr):
        return int(element.value)
    number = np.array(float(ir.FloatAttr(element).value), E2M1.dtype)
    return int(number.view(np.uint8))


def dense_bytes(numbers: Array, kind: ir.Type) -> ir.Value:
    """A constant of bytes in the shape of the numbers; a scalar if the type is scalar."""
    wrapped = (numbers & 0xFF).astype(np.uint8).view(np.int8)
    if not isinstance(kind, ir.VectorType):
        return build.constant(build.integer_type(8), int(wrapped))
    if wrapped.size and (wrapped == wrapped.flat[0]).all():
        return build.constant(ir.VectorType.get(wrapped.shape, build.integer_type(8)), int(wrapped.flat[0]))
    return build.dense_integers(wrapped, build.integer_type(8))


# Numbers of 2 and 4 bits in registers: arithmetic on bytes, and permutations of bytes.

_SIGNS: dict[str, tuple[bool | None, bool | None]] = {
    **dict.fromkeys(("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"), (None, None)),
    **dict.fromkeys((f"arith.{n}si" for n in ("div", "rem", "floordiv", "ceildiv", "max", "min")), (True, True)),
    **dict.fromkeys((f"arith.{n}ui" for n in ("div", "rem", "ceildiv", "max", "min")), (False, False)),
    "arith.shli": (None, False), "arith.shrsi": (True, False), "arith.shrui": (False, False),
}  # fmt: skip
"""Whether each operand is sign-extended or zero-extended; None if the result's lowest bits depend only on the operands'
lowest bits.
"""

_MOVES = (*MOVES, "arith.select", "ub.poison")

_WITHIN_ROWS = ("vector.extract", "vector.insert", "arith.select")
"""Ops that keep rows whole, if all vectors have rows of the same length."""

_WIDENING = {"arith.extsi": True, "arith.sitofp": True, "arith.index_cast": True, "arith.extui": False,
             "arith.uitofp": False, "arith.index_castui": False}  # fmt: skip


def _bytes(kind: ir.Type) -> ir.Type:
    return build.with_element(kind, build.integer_type(8)) if bits_of(kind) else kind


def on_bytes(e: Emulation, op: ir.Operation, signs: Sequence[bool | None]) -> None:
    """Apply an op to operands with one element per byte.

    Args:
        signs: how each operand is extended.
    """
    operands = [e.unpacked(v, s) if bits_of(v.type) else e.replacement(v) for v, s in zip(op.operands, signs)]
    kinds = [_bytes(v.type) for v in op.results]
    e.give(op, *build.create_like(op, kinds, operands).results)


@rule(*_SIGNS)
def arithmetic(e: Emulation, op: ir.Operation) -> None:
    """Apply the op to bytes."""
    on_bytes(e, op, _SIGNS[op.name])


@rule("arith.addui_extended")
def add_with_carry(e: Emulation, op: ir.Operation) -> None:
    """Add bytes; the carry is set if the sum exceeds the narrow type."""
    bits = bits_of(op.results[0].type)
    total = build.binary("addi", *(e.unpacked(v, False) for v in op.operands))
    e.give(op, total, build.compare("ugt", total, number(total.type, (1 << bits) - 1)))


@rule("arith.mulsi_extended", "arith.mului_extended")
def whole_product(e: Emulation, op: ir.Operation) -> None:
    """Extract both halves from a product of bytes, which contains the whole product."""
    signed = op.name == "arith.mulsi_extended"
    product = build.binary("muli", *(e.unpacked(v, signed) for v in op.operands))
    e.give(op, product, build.binary("shrui", product, bits_of(op.results[0].type)))


@rule("arith.cmpi")
def compare(e: Emulation, op: ir.Operation) -> None:
    """Compare bytes; signed predicates compare sign-extended operands."""
    is_signed = 2 <= ir.IntegerAttr(op.attributes["predicate"]).value <= 5
    on_bytes(e, op, [is_signed, is_signed])


@rule(*_MOVES)
def move(e: Emulation, op: ir.Operation) -> None:
    """Move elements. Ops that move whole bytes of rows are applied to packed vectors."""
    if not _moves_bytes(e, op):
        on_bytes(e, op, [None] * len(op.operands))


def _moves_bytes(e: Emulation, op: ir.Operation) -> bool:
    """Apply an op to packed vectors if it keeps bytes whole; returns whether it does."""
    numbers = [v for v in (*op.operands, *op.results) if bits_of(v.type)]
    if op.name == "ub.poison":
        e.replace(op, [build.poison(kind) for kind in e.convert_types(op.results[0]) or ()])
        return True
    if not numbers:
        # It chooses a memref or a descriptor.
        condition, *choices = op.operands
        e.replace(op, [build.select(condition, *both) for both in zip(*map(e.get, choices))])
        return True
    if not all(e.is_packed(v.type) for v in numbers):
        return False
    each, attributes = e.each(numbers[0].type), attributes_of(op)
    last = {shape_of(v)[-1] for v in numbers}
    if op.name == "vector.shape_cast":
        e.replace(op, (build.shape_cast(e.packed(op.operands[0]), shape_of(e.held_type(op.results[0].type))),))
        return True
    if view := view_of(op):
        if (rows := view.grouped(each)) is None:
            return False
        e.replace(op, (build.extract_view(e.packed(op.operands[0]), rows),))
        return True
    if op.name == "vector.insert_strided_slice":
        *outer, inner = integers(attributes["offsets"])
        if inner % each:
            return False
        attributes["offsets"] = build.integer_array([*outer, inner // each])
    elif len(last) != 1 or op.name not in _WITHIN_ROWS or (op.name == "arith.select" and shape_of(op.operands[0])):
        return False
    operands = [e.packed(v) if bits_of(v.type) else e.replacement(v) for v in op.operands]
    kind = e.held_type(op.results[0].type)
    e.replace(op, (build.create(op.name, [kind], operands, attributes).results[0],))
    return True


@rule("arith.constant")
def constant(e: Emulation, op: ir.Operation) -> ir.Value:
    """Build the constant, packed if its rows fill bytes."""
    kind = op.results[0].type
    numbers = constant_bits(op)
    if e.is_packed(kind):
        each = e.each(kind)
        groups = numbers.reshape(*numbers.shape[:-1], numbers.shape[-1] // each, each)
        numbers = (groups << bits_of(kind) * np.arange(each)).sum(axis=-1)
    return dense_bytes(numbers, kind)


@rule(*_WIDENING)
def widen(e: Emulation, op: ir.Operation) -> None:
    """Extend to a byte, with or without sign, and then to the result's type; index has more bits than a byte."""
    source, result = op.operands[0], op.results[0]
    if not bits_of(source.type):
        narrow(e, op)
        return
    numbers = e.unpacked(source, _WIDENING[op.name])
    same = bits_of(result.type) or numbers.type == result.type
    e.give(op, numbers if same else build.make(op.name, result.type, numbers))


@rule("arith.trunci", "arith.fptosi", "arith.fptoui")
def narrow(e: Emulation, op: ir.Operation) -> None:
    """Convert to bytes, whose lowest bits contain the value."""
    source, result = op.operands[0], op.results[0]
    numbers = e.unpacked(source) if bits_of(source.type) else e.replacement(source)
    kind = _bytes(result.type)
    e.give(op, numbers if numbers.type == kind else build.make(op.name, kind, numbers))


@rule("vector.bitcast")
def bitcast(e: Emulation, op: ir.Operation) -> ir.Value:
    """Keep the bytes."""
    source, result = op.operands[0], op.results[0]
    packed = e.packed(source) if bits_of(source.type) else e.replacement(source)
    kind = e.held_type(result.type) if bits_of(result.type) else result.type
    return packed if packed.type == kind else build.make("vector.bitcast", kind, packed)


@rule("arith.bitcast")
def same_bits(e: Emulation, op: ir.Operation) -> ir.Value:
    """Convert to numbers with the same number of bits, in the bytes that contain them."""
    return e.replacement(op.operands[0])


@rule("vector.reduction", "vector.multi_reduction")
def reduction(e: Emulation, op: ir.Operation) -> None:
    """Reduce bytes. Minima and maxima extend elements by their sign or by zeros."""
    on_bytes(e, op, [signed_of(CombiningKind.of(op))] * len(op.operands))


@rule(*XeGPU.implementing(MatrixProduct))
def dpas(e: Emulation, op: ir.Operation) -> None:
    """Cast the factors from bytes to elements."""
    for i, value in enumerate(op.operands):
        if bits_of(value.type):
            op.operands[i] = build.make("vector.bitcast", value.type, e.packed(value))


@rule("arith.extf")
def extend(e: Emulation, op: ir.Operation) -> ir.Value:
    """Convert f4E2M1FN, by f16."""
    source, result = op.operands[0], op.results[0]
    word, half = (build.with_element(result.type, element_type(name)) for name in ("i16", "f16"))
    ops: dict[str, Callable[..., ir.Value]] = {
        **{f"arith.{name}": partial(build.binary, name) for name in ("andi", "ori", "shli")},
        "number": partial(build.make, "arith.bitcast", half),
        "arith.mulf": lambda a, factor: build.binary("mulf", a, number(half, factor)),
    }
    code = build.make("arith.extui", word, e.unpacked(source, False))
    product = half_of(code, FLOATS[str(element_of(source))], ops)
    kind = str(element_of(result))
    if kind in ("bf16", "f32", "f64"):
        wide = build.with_element(half, element_type("f64" if kind == "f64" else "f32"))
        product = build.make("arith.extf", wide, product)
    return product if product.type == result.type else build.make("arith.truncf", result.type, product)


@rule("arith.truncf")
def round_narrow(e: Emulation, op: ir.Operation) -> ir.Value:
    """Saturate when rounding to f4E2M1FN, which has no infinity."""
    build.require_nearest(op)
    rounded = build.make("xegpu.truncf", op.results[0].type, op.operands[0])
    e.op(rounded.owner)
    return e.replacement(rounded)


@rule(*build.SCALING)
def scale(e: Emulation, op: ir.Operation) -> ir.Value:
    """Multiply or divide by a scale."""
    scaled = build.expand_scaling(op)
    for inner in scaled:
        e.op(inner.owner)
    return e.replacement(scaled[-1]) if bits_of(scaled[-1].type) else scaled[-1]


@rule("xegpu.truncf")
def truncate(e: Emulation, op: ir.Operation) -> ir.Value:
    """Convert to bytes."""
    result = op.results[0]
    truncated = build.create_like(op, [result.type], [e.replacement(v) for v in op.operands]).results[0]
    return build.make("vector.bitcast", e.held_type(result.type), truncated)
