"""`arith` and `index`: constants, arithmetic, comparisons and casts, of scalars and vectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from mlir import ir

from xegpu_py.ir.builtin import CombiningKind, dense_elements, enumerator, integer_elements, is_float
from xegpu_py.numerics import integers
from xegpu_py.numerics.formats import FLOATS, TYPES
from xegpu_py.passes.analysis.integer_analysis import contains
from xegpu_py.passes.analysis.ir_queries import (
    INDEX,
    defining_op,
    gather_padding,
    integer_op,
    shape_and_element,
    unsigned,
)
from xegpu_py.passes.rewriting.builders import FLOAT_PREDICATES, PREDICATES
from xegpu_py.passes.xegpu_to_visa.arith_expansion import (
    combiner,
    high_product,
    low_half,
    product,
)
from xegpu_py.passes.xegpu_to_visa.arith_expansion import divide as divide_integers
from xegpu_py.passes.xegpu_to_visa.lowering import (
    Lowering,
    LoweringRule,
    Results,
    result_of,
    select_handle,
    sources_of,
    vc_lowering_rule,
)
from xegpu_py.passes.xegpu_to_visa.register_values import (
    NARROW,
    Const,
    Dense,
    KnownMask,
    Mask,
    Numbers,
    Reg,
    Value,
    bounds_of,
    const,
    is_handle,
)
from xegpu_py.visa.operands import Flag, Immediate


@vc_lowering_rule("arith.constant", "index.constant")
def constant(low: Lowering, op: ir.Operation) -> Value:
    """Lower scalars and splats to immediates; other vectors are moved to registers at their first use."""
    count, element, name = result_of(low, op)
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if element == "i1":
            bits = [bool(b) for b in ir.DenseIntElementsAttr(attribute)]
            return _constant_mask(low, bits)
        if not attribute.is_splat:
            return _dense(attribute, element, name)
        attribute = attribute.get_splat_value()
    if element == "i1":
        return KnownMask(str(attribute).split(" ")[0] in ("true", "1", "-1"), count)
    if is_float(element):
        return _float_constant(attribute, element, name, count)
    return const(ir.IntegerAttr(attribute).value, name, count)


def _float_constant(attribute: ir.Attribute, element: str, name: str, count: int = 1) -> Const:
    """A number as one of vISA's type `name`, which may hold its bits as bytes. A NaN keeps its bits."""
    value = float(ir.FloatAttr(attribute).value)
    if value != value and element != "tf32" and (text := str(attribute)).startswith("0x"):
        return Const(int(text.split()[0], 16), name, count)
    if TYPES[name].is_float:
        return const(value, name, count)
    return const(int(np.array(value).astype(FLOATS[element].dtype).view(np.uint8)), name, count)


def _constant_mask(low: Lowering, bits: list[bool]) -> Mask | KnownMask:
    if len(set(bits)) == 1:
        return KnownMask(bits[0], len(bits))
    mask = low.emit.mask(len(bits))
    for i, predicate in enumerate(mask.predicates):
        pattern = sum(b << k for k, b in enumerate(bits[16 * i : 16 * i + 16]))
        low.emit.emit("setp", predicate.count, dst=Flag(predicate), src0=Immediate(pattern, "ud"))
    return mask


def _dense(attribute: ir.DenseElementsAttr, element: str, name: str) -> Dense:
    if is_float(element):
        values = [_float_constant(v, element, name) for v in dense_elements(attribute)]
    else:
        values = [const(v, name) for v in integer_elements(ir.DenseIntElementsAttr(attribute))]
    return Dense(tuple(values))


_I1_LOGIC = {
    "add": "xor", "sub": "xor", "mul": "and", "and": "and", "or": "or", "xor": "xor",
    "maxs": "and", "mins": "or", "maxu": "or", "minu": "and",
}  # fmt: skip
"""Logic operations for arithmetic on i1, where true is 1 unsigned and -1 signed."""


def with_i1_as_logic(rule: LoweringRule) -> LoweringRule:
    """Extend the rule of an op on integers to i1, where it becomes a logic operation."""

    def lowered(low: Lowering, op: ir.Operation) -> Results:
        if shape_and_element(op.operands[0])[1] != "i1":
            return rule(low, op)
        count, kind = result_of(low, op)[0], integer_op(op)
        a, b = (low.mask(v) for v in op.operands)
        if kind in _I1_LOGIC:
            return low.emit.flags(_I1_LOGIC[kind], count, a, b)
        if kind.startswith("rem"):
            return KnownMask(False, count)
        # Only a shift by 0 and a division by a true divisor are defined; they give the first operand.
        return a

    return lowered


def _binary(instruction: str) -> LoweringRule:
    @with_i1_as_logic
    def rule(low: Lowering, op: ir.Operation) -> Value:
        count, element, name = result_of(low, op)
        a, b = sources_of(low, op)
        if element == "index" and count == 1 and instruction in ("add", "mul"):
            # Shared with the indices of addresses, and computed before loops that do not change it.
            combine = low.add if instruction == "add" else low.multiply
            return combine(a, b, low.integers.bounds(op.results[0]))
        if (
            isinstance(a, Const)
            and isinstance(b, Const)
            and not TYPES[name].is_float
            and instruction in _FOLDED_INSTRUCTIONS
        ):
            return const(integers.SIGNED[f"{instruction}i"](a.value, b.value), name, count)
        if instruction == "mul" and name == "q":
            return product(low.emit, a, b, count)
        if {a.type, b.type, name} == {"d", "q"}:
            a, b, name = _to_common_width(low, a, b, name, instruction)
        a, b = _constant_last(low, a, b)
        return low.emit.apply(instruction, name, count, a, b)

    return rule


def _whole_operands(low: Lowering, op: ir.Operation) -> Iterator[Reg]:
    """The operands in registers of all their bits; some indices have 32 bits in registers."""
    count, element, name = result_of(low, op)
    for numbers in sources_of(low, op):
        widened = low.cast(numbers, name) if element == "index" else numbers
        yield low.emit.broadcast(low.emit.in_registers(widened), count)


@vc_lowering_rule("arith.addui_extended")
def add_with_carry(low: Lowering, op: ir.Operation) -> tuple[Value, ...]:
    """A sum, and the mask of overflow, where the sum is less than an operand."""
    count, element, name = result_of(low, op)
    if element == "i1":
        a, b = (low.mask(v) for v in op.operands)
        return low.emit.flags("xor", count, a, b), low.emit.flags("and", count, a, b)
    x, y = _whole_operands(low, op)
    total = low.emit.apply("add", name, count, x, y)
    return total, low.emit.compare("lt", count, low.emit.as_unsigned(total), low.emit.as_unsigned(x))


@vc_lowering_rule("arith.mulsi_extended", "arith.mului_extended")
def whole_product(low: Lowering, op: ir.Operation) -> tuple[Value, ...]:
    """The lower and the upper half of a product; halves of 8 and 16 bits from a product of 32 bits."""
    count, element, name = result_of(low, op)
    if element == "i1":
        # (-1) * (-1) and 1 * 1 are 1 in two bits.
        return low.emit.flags("and", count, *(low.mask(v) for v in op.operands)), KnownMask(False, count)
    emit, bits, is_signed = low.emit, TYPES[name].bits, op.name == "arith.mulsi_extended"
    a, b = _whole_operands(low, op)
    x, y = (a, b) if is_signed else (emit.as_unsigned(a), emit.as_unsigned(b))
    wide = "d" if is_signed else "ud"
    if bits < 32:
        whole = emit.apply("mul", wide, count, *(emit.in_registers(n, wide) for n in (x, y)))
        upper = emit.apply("shr", "ud", count, emit.as_unsigned(whole), const(bits, "uw"))
        return emit.in_registers(whole, name), emit.in_registers(upper, name)
    if bits == 32:
        upper = emit.apply("mulh", wide, count, x, y)
        return emit.apply("mul", name, count, a, b), emit.as_type(upper, name)
    upper = emit.as_type(high_product(emit, emit.as_unsigned(a), emit.as_unsigned(b), count), name)
    for factor, other_factor in ((a, b), (b, a)) if is_signed else ():
        # Read as unsigned, a negative number is 2^64 greater.
        sign = emit.apply("asr", name, count, factor, const(bits - 1, "uw"))
        excess = emit.apply("and", name, count, sign, other_factor)
        upper = emit.apply("add", name, count, excess, upper, modifiers=("-",))
    return product(emit, a, b, count), upper


_FOLDED_INSTRUCTIONS = ("mul", "and", "or", "xor")


def _to_common_width(
    low: Lowering, a: Numbers, b: Numbers, name: str, instruction: str
) -> tuple[Numbers, Numbers, str]:
    """Convert indices of 32 and 64 bits to operands of one instruction; also returns the type of its result."""
    if instruction == "add" and name == "q":
        return *low.widen_for_64_bit_sum(*((b, a) if isinstance(a, Const) else (a, b))), name
    if instruction in ("min", "max"):
        name = "q"
    # The low bits of sums, products and logic operations depend only on the operands' low bits.
    return low.cast(a, name), low.cast(b, name), name


def _constant_last(low: Lowering, a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    if isinstance(a, Const) and isinstance(b, Const):
        a = low.emit.in_registers(a)
    return (b, a) if isinstance(a, Const) else (a, b)


def _arith_and_index(*names: str) -> list[str]:
    return [*(f"arith.{name}i" for name in names), *(f"index.{name}" for name in names)]


for _instruction, _floats, _integers in (
    ("add", ["arith.addf"], ["add"]), ("mul", ["arith.mulf"], ["mul"]), ("and", [], ["and"]), ("or", [], ["or"]),
    ("xor", [], ["xor"]), ("max", ["arith.maxnumf"], ["maxs"]), ("min", ["arith.minnumf"], ["mins"]),
):  # fmt: skip
    vc_lowering_rule(*_floats, *_arith_and_index(*_integers))(_binary(_instruction))


@vc_lowering_rule("arith.subf", *_arith_and_index("sub"))
@with_i1_as_logic
def sub(low: Lowering, op: ir.Operation) -> Value:
    """Addition of the negated second operand."""
    count, _, name = result_of(low, op)
    a, b = sources_of(low, op)
    if {a.type, b.type, name} == {"d", "q"}:
        a, b = low.cast(a, name), low.cast(b, name)
    if isinstance(a, Const) and isinstance(b, Const) and not TYPES[name].is_float:
        return const(a.value - b.value, name, count)
    if isinstance(b, Const):
        bits = b.bits ^ (1 << (b.format.bits - 1)) if b.format.is_float else -b.value
        negated = Const(bits & ((1 << b.format.bits) - 1), b.type, b.count)
        return low.emit.apply("add", name, count, *_constant_last(low, a, negated))
    # The negated operand is the first, which cannot be a constant.
    return low.emit.apply("add", name, count, b, a, modifiers=("-",))


SIGNS = {"bf": 0x8000, "ub": 0x80}
"""The sign bits of floats without a negate modifier: bf16, and f8E5M2, which is held in bytes."""


def apply_to_bits(low: Lowering, instruction: str, numbers: Reg, pattern: int) -> Numbers:
    """Apply a logic instruction to the bits of floats and a pattern."""
    name = {1: "ub", 2: "uw"}[numbers.format.bytes]
    bits = low.emit.as_type(numbers, name)
    result = low.emit.apply(instruction, name, numbers.count, bits, const(pattern, name))
    return low.emit.as_type(result, numbers.type)


@vc_lowering_rule("arith.negf")
def negf(low: Lowering, op: ir.Operation) -> Value:
    """Flip the sign, also of NaN."""
    count, _, name = result_of(low, op)
    if name in SIGNS:
        return apply_to_bits(low, "xor", low.reg(op.operands[0]), SIGNS[name])
    return low.emit.apply("mov", name, count, low.numbers(op.operands[0]), modifiers=("-",))


@vc_lowering_rule("arith.divf")
def divf(low: Lowering, op: ir.Operation) -> Value:
    """Division."""
    count, _, name = result_of(low, op)
    a, b = sources_of(low, op)
    if name == "df":
        return low.emit.double_math("div", count, a, b)
    return low.emit.apply("div", name, count, *map(low.emit.in_registers, (a, b)), most=16)


@vc_lowering_rule(*_arith_and_index("maxu", "minu"))
@with_i1_as_logic
def min_max_unsigned(low: Lowering, op: ir.Operation) -> Value:
    """Minimum and maximum of unsigned integers."""
    count, _, name = result_of(low, op)
    sources = sources_of(low, op)
    if {n.type for n in sources} == {"d", "q"}:
        name = "q"
        sources = [low.cast(n, name) for n in sources]
    a, b = _constant_last(low, *(low.emit.as_unsigned(n) for n in sources))
    result = low.emit.apply("max" if "max" in op.name else "min", unsigned(name), count, a, b)
    return low.emit.as_type(result, name)


@vc_lowering_rule("arith.maximumf", "arith.minimumf")
def minimum_maximum(low: Lowering, op: ir.Operation) -> Value:
    """Minimum and maximum whose result is NaN if either operand is NaN."""
    combine = combiner(low.emit, CombiningKind(op.name.removeprefix("arith.")), result_of(low, op)[2])
    return combine(*(low.reg(v) for v in op.operands))


@vc_lowering_rule(*_arith_and_index("shl", "shrs", "shru"))
@with_i1_as_logic
def shift(low: Lowering, op: ir.Operation) -> Value:
    """Shifts."""
    count, element, name = result_of(low, op)
    a, b = sources_of(low, op)
    instruction = {"shl": "shl", "shrs": "asr", "shru": "shr"}[integer_op(op)]
    if element == "index":
        # 32 bits suffice only if the result equals the low half of the 64-bit shift.
        narrow = name == NARROW and contains(bounds_of(b), (0, 31)) and (instruction == "shl" or a.type == NARROW)
        narrow = narrow and (instruction != "shr" or bounds_of(a)[0] >= 0)
        name = NARROW if narrow else INDEX
        a, b = low.cast(a, name), low_half(low.emit, b, count)
    if isinstance(a, Const):
        a = low.emit.in_registers(a)
    kind = name
    if instruction == "shr":
        a, kind = low.emit.as_unsigned(a), unsigned(name)
    result = low.emit.apply(instruction, kind, count, a, low.emit.as_unsigned(b))
    if instruction == "shr" and "isExact" in op.attributes and isinstance(b, Const):
        low.note_exact_shift(result, a, b.value)
    return low.emit.as_type(result, name)


_DIVISIONS = {
    "divs": ("div", True), "divu": ("div", False), "rems": ("rem", True), "remu": ("rem", False),
    "floordivs": ("floor", True), "ceildivs": ("ceil", True), "ceildivu": ("ceil", False),
}  # fmt: skip


@vc_lowering_rule(*_arith_and_index(*_DIVISIONS))
@with_i1_as_logic
def divide(low: Lowering, op: ir.Operation) -> Value:
    """Integer division: by shifts where the divisor is a known power of two, else by way of floats, exactly.

    Integers of up to 32 bits are divided as f64 by targets that divide f64.
    """
    count, element, name = result_of(low, op)
    kind, signed = _DIVISIONS[integer_op(op)]
    a, b = (low.numbers(v) for v in op.operands)
    if element == "index":
        natural = bounds_of(a)[0] >= 0 and bounds_of(b)[0] >= 0
        # The quotient must fit too; the quotient of the least 32-bit number and -1 does not.
        fits = bounds_of(a)[0] > -(1 << 31) or not contains((-1, -1), bounds_of(b))
        narrow = a.type == b.type == name == NARROW and (fits if signed else natural)
        name = NARROW if narrow else INDEX
        a, b = low.cast(a, name), low.cast(b, name)
    if isinstance(a, Const) and isinstance(b, Const) and b.value:
        return const(_fold_division(a, b, kind, signed), name, count)
    if isinstance(b, Const) and b.value > 0 and b.value & (b.value - 1) == 0:
        quotient = _divide_by_power(low, a, b.value, name, count, kind, signed)
        if quotient is not None:
            return quotient
    if TYPES[name].bits < 64 and low.target.double_math:
        return _divide_in_f64(low, a, b, name, count, kind, signed)
    if TYPES[name].bits < 32:
        wide = "d" if signed else "ud"
        a, b = (low.emit.in_registers(n if signed else low.emit.as_unsigned(n), wide) for n in (a, b))
    result = divide_integers(low.emit, a, b, count, kind, signed)
    return low.emit.in_registers(result, name)


def _fold_division(a: Const, b: Const, kind: str, signed: bool) -> int:
    mask = (1 << a.format.bits) - 1
    x, y = (a.value, b.value) if signed else (a.bits & mask, b.bits & mask)
    name = {"div": "divsi", "rem": "remsi", "floor": "floordivsi", "ceil": "ceildivsi"}[kind]
    return int(integers.SIGNED[name](x, y))


def _divide_by_power(
    low: Lowering, a: Numbers, divisor: int, name: str, count: int, kind: str, signed: bool
) -> Numbers | None:
    bits = const(divisor.bit_length() - 1, "uw")
    a = low.emit.in_registers(a)
    if not signed and kind in ("div", "rem"):
        plain = low.emit.as_unsigned(a)
        if kind == "div":
            return low.emit.as_type(low.emit.apply("shr", unsigned(name), count, plain, bits), name)
        return low.emit.as_type(
            low.emit.apply("and", unsigned(name), count, plain, const(divisor - 1, unsigned(name))), name
        )
    if kind == "floor":
        return low.emit.apply("asr", name, count, a, bits)
    if signed and kind in ("div", "rem", "ceil"):
        # To round toward zero, add the divisor less one to negative numbers before the shift.
        if kind == "ceil" and not contains(bounds_of(a), (-(1 << 63), (1 << TYPES[name].bits - 1) - divisor)):
            # The sum might overflow.
            remainder = low.emit.apply("and", name, count, a, const(divisor - 1, name))
            round_up = low.emit.apply("min", name, count, remainder, const(1, name))
            return low.emit.apply("add", name, count, low.emit.apply("asr", name, count, a, bits), round_up)
        if kind == "ceil":
            biased: Numbers = low.emit.apply("add", name, count, a, const(divisor - 1, name))
        else:
            sign = low.emit.apply("asr", name, count, a, const(TYPES[name].bits - 1, "uw"))
            bias = low.emit.apply("and", name, count, sign, const(divisor - 1, name))
            biased = low.emit.apply("add", name, count, a, bias)
        quotient = low.emit.apply("asr", name, count, biased, bits)
        if kind != "rem":
            return quotient
        multiple = low.emit.apply("shl", name, count, quotient, bits)
        return low.emit.apply("add", name, count, multiple, a, modifiers=("-",))
    return None


def _divide_in_f64(low: Lowering, a: Numbers, b: Numbers, name: str, count: int, kind: str, signed: bool) -> Numbers:
    emit = low.emit
    type_name = name if signed else unsigned(name)
    x, y = (low.emit.as_type(emit.in_registers(n), type_name) for n in (a, b))
    quotient = emit.double_math("div", count, *(emit.in_registers(n, "df") for n in (x, y)))
    # An inexact quotient of 32-bit integers differs from every integer by more than the rounding error of f64.
    quotient_int = emit.in_registers(quotient, type_name)
    if kind == "div":
        return low.emit.as_type(quotient_int, name)
    product = emit.apply("mul", type_name, count, quotient_int, y)
    remainder = emit.apply("add", type_name, count, product, x, modifiers=("-",))
    if kind == "rem":
        return low.emit.as_type(remainder, name)
    inexact = emit.compare("ne", count, remainder, const(0, type_name))
    if signed:
        opposite = emit.compare("lt", count, emit.apply("xor", type_name, count, remainder, y), const(0, type_name))
        inexact = emit.flags("and", count, inexact, opposite if kind == "floor" else emit.flags("not", count, opposite))
    step = emit.select(inexact, type_name, count, const(-1 if kind == "floor" else 1, type_name), const(0, type_name))
    return low.emit.as_type(emit.apply("add", type_name, count, quotient_int, step), name)


@vc_lowering_rule("arith.cmpi", "index.cmp")
def cmpi(low: Lowering, op: ir.Operation) -> Value:
    """Comparisons of integers."""
    count = result_of(low, op)[0]
    if op.name == "index.cmp":
        predicate = enumerator(op.attributes["pred"])
    else:
        predicate = PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
    operand = low.value(op.operands[0])
    if isinstance(operand, (Mask, KnownMask)):
        return _compare_truth(low, predicate, count, *(low.mask(v) for v in op.operands))
    a, b = sources_of(low, op)
    if {a.type, b.type} == {"d", "q"}:
        a, b = low.cast(a, "q"), low.cast(b, "q")
    if predicate.startswith("u"):
        # Sign-extended numbers have the same unsigned order as their lower halves.
        a, b = low.emit.as_unsigned(a), low.emit.as_unsigned(b)
    return _compare(low, predicate.lstrip("su") if predicate not in ("eq", "ne") else predicate, count, a, b)


def _compare_truth(low: Lowering, predicate: str, count: int, a: Mask, b: Mask) -> Mask:
    """Comparisons of i1: true is 1, and signed -1."""
    emit = low.emit
    if predicate in ("eq", "ne"):
        differ = emit.flags("xor", count, a, b)
        return differ if predicate == "ne" else emit.flags("not", count, differ)
    if (predicate[0] == "s") != (predicate[1] == "l"):
        a, b = b, a
    # The comparison holds if `a` is true and `b` is false.
    if predicate.endswith("e"):
        return emit.flags("or", count, a, emit.flags("not", count, b))
    return emit.flags("and", count, a, emit.flags("not", count, b))


def _compare(low: Lowering, condition: str, count: int, a: Numbers, b: Numbers) -> Mask:
    return low.emit.compare(condition, count, low.emit.in_registers(a) if isinstance(a, Const) else a, b)


@vc_lowering_rule("arith.cmpf")
def cmpf(low: Lowering, op: ir.Operation) -> Value:
    """Comparisons of floats, ordered and unordered."""
    count = result_of(low, op)[0]
    predicate = FLOAT_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
    if predicate in ("false", "true"):
        return KnownMask(predicate == "true", count)
    a, b = sources_of(low, op)
    emit = low.emit
    # vISA's comparisons with NaN are false, except that `ne` is true.
    negated = {"ult": "ge", "ule": "gt", "ugt": "le", "uge": "lt"}
    if predicate in negated:
        return emit.flags("not", count, _compare(low, negated[predicate], count, a, b))
    if predicate in ("oeq", "olt", "ole", "ogt", "oge"):
        return _compare(low, predicate[1:], count, a, b)
    if predicate == "une":
        return _compare(low, "ne", count, a, b)
    if predicate in ("one", "ueq"):
        less, greater = (_compare(low, c, count, a, b) for c in ("lt", "gt"))
        either = emit.flags("or", count, less, greater)
        return either if predicate == "one" else emit.flags("not", count, either)
    ordered = emit.flags("and", count, _compare(low, "eq", count, a, a), _compare(low, "eq", count, b, b))
    return ordered if predicate == "ord" else emit.flags("not", count, ordered)


@vc_lowering_rule("arith.select")
def select(low: Lowering, op: ir.Operation) -> Value | None:
    """Select by a scalar condition or lane by lane."""
    condition = low.value(op.operands[0])
    if isinstance(condition, KnownMask):
        return low.value(op.operands[1 if condition.value else 2])
    load = defining_op(op.operands[1])
    if load is not None and load.name == "xegpu.load_gather" and gather_padding(load) is not None:
        return low.value(op.operands[1])
    if is_handle(str(op.results[0].type)):
        return select_handle(low, op)
    count, _, name = result_of(low, op)
    mask = low.mask(op.operands[0])
    if not name:
        yes, no = low.mask(op.operands[1]), low.mask(op.operands[2])
        if mask.count != count:
            chosen = low.emit.select(mask, "w", count, const(1, "w"), const(0, "w"))
            mask = low.emit.compare("ne", count, chosen, const(0, "w"))
        from_yes = low.emit.flags("and", count, mask, yes)
        from_no = low.emit.flags("and", count, low.emit.flags("not", count, mask), no)
        return low.emit.flags("or", count, from_yes, from_no)
    a, b = (low.numbers(v) for v in list(op.operands)[1:])
    if name == "q":
        return low.emit.select(mask, name, count, low.cast(a, name), low.cast(b, name))
    if name == "bf" and (isinstance(a, Const) or isinstance(b, Const)):
        # vISA has no bf immediates, and to choose in f would make all NaNs the canonical one.
        words = low.emit.select(mask, "w", count, low.emit.as_type(a, "w"), low.emit.as_type(b, "w"))
        return low.emit.as_type(words, name)
    return low.emit.select(mask, name, count, a, b)


@vc_lowering_rule("arith.bitcast")
def bitcast(low: Lowering, op: ir.Operation) -> Value:
    """The same bits as another type."""
    return low.emit.as_type(low.numbers(op.operands[0]), result_of(low, op)[2])


@vc_lowering_rule("index.sizeof")
def sizeof(low: Lowering, op: ir.Operation) -> Value:
    """The bits of an index."""
    return low.index(TYPES[INDEX].bits)
