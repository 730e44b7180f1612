"""Ops of arith and math on scalars and on vectors of any shape, and conversions between all elements."""

from __future__ import annotations

from collections.abc import Callable

from xegpu_py.ir.builtin import bit_width, is_float, vector_text

from .body import NUMBERS, SIGNLESS, Body, Value, most_exact

INTEGER_BINARY = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui")
SHIFTS = ("shli", "shrsi", "shrui")
DIVISIONS = ("divui", "divsi", "remui", "remsi", "floordivsi", "ceildivsi", "ceildivui")
FLOAT_BINARY = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf", "remf")
BIT_COUNTS = ("ctpop", "ctlz", "cttz")
EXTENDED = ("addui_extended", "mulsi_extended", "mului_extended")
ROUNDINGS = ("floor", "ceil", "round", "roundeven", "trunc")
INTEGER_CONDITIONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_CONDITIONS = (
    "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true", "false",
)  # fmt: skip
# The canonical NaN, infinities, the least and greatest numbers; NaNs: negative, signaling, with a payload.
SPECIAL = {
    "f16": ("0x7E00", "0x7C00", "0xFC00", "0x0001", "0x8000", "0x7BFF", "0xFE00", "0x7C01", "0x7E2A"),
    "bf16": ("0x7FC0", "0x7F80", "0xFF80", "0x0001", "0x8000", "0x7F7F", "0xFFC0", "0x7F81", "0x7FEA"),
    "f32": (
        "0x7FC00000", "0x7F800000", "0xFF800000", "0x00000001", "0x80000000", "0x7F7FFFFF", "0xFFC00000", "0xFF800001",
        "0x7FC12345",
    ),
    "f64": (
        "0x7FF8000000000000", "0x7FF0000000000000", "0x0000000000000001", "0x8000000000000000", "0xFFF8000000000000",
        "0x7FF0000000000001", "0xFFF8000012345678",
    ),
    "f8E5M2": ("0x7E", "0x7C", "0x01", "0x80", "0x7B", "0xFE", "0x7D", "0x7F"),
    "f8E4M3FN": ("0x7F", "0x01", "0x80", "0x7E", "0xFF"),
}  # fmt: skip


def constant(b: Body, shape: tuple[int, ...], element: str) -> Value:
    """A constant: a small number, or one at which rules change."""
    if b.r.random() < 0.7:
        return b.splat(b.r.randint(-4, 4), shape, element)
    if is_float(element):
        return b.splat(b.r.choice(SPECIAL[element]), shape, element)
    most = most_exact(element)
    return b.splat(b.r.choice([most, -most - 1, most >> 1, 0x55]), shape, element)


def other(b: Body, value: Value) -> Value:
    """A second operand: another value of the type, a constant, or the value itself."""
    found = b.pick(lambda v: v.type == value.type and v.name != value.name)
    if found and b.r.random() < 0.7:
        return found
    return constant(b, value.shape, value.element) if b.r.random() < 0.8 else value


def binary(b: Body, name: str, x: Value, y: Value) -> Value:
    """An op of arith on two values."""
    exact = None
    if x.exact is not None and y.exact is not None:
        kind = name[:-1]
        if kind in ("add", "sub"):
            exact = x.exact + y.exact
        elif kind == "mul":
            exact = x.exact * y.exact
        elif name[:3] in ("max", "min") and "u" not in name[3:5]:
            exact = max(x.exact, y.exact)
    return b.op(f"arith.{name} {x.name}, {y.name} : {x.type}", x.shape, x.element, exact)


def unary(b: Body, name: str, x: Value, exact: int | None = None) -> Value:
    """An op of one operand that keeps the type."""
    return b.op(f"{name} {x.name} : {x.type}", x.shape, x.element, exact)


def integer_op(b: Body, x: Value) -> Value:
    """Any op on integers."""
    how = b.r.random()
    if how < 0.04:
        return integer_power(b, x)
    if how < 0.12:
        return extended(b, x)
    if how < 0.6:
        return binary(b, b.r.choice(INTEGER_BINARY), x, other(b, x))
    if how < 0.75:
        bits = bit_width(x.element)
        amount = binary(b, "andi", other(b, x), b.splat(bits - 1, x.shape, x.element))
        return binary(b, b.r.choice(SHIFTS), x, amount)
    if how < 0.9:
        return division(b, x)
    if how < 0.96:
        return unary(b, f"math.{b.r.choice(BIT_COUNTS)}", x, bit_width(x.element))
    return unary(b, "math.absi", x, x.exact)


def integer_power(b: Body, x: Value) -> Value:
    """A power of an odd number, since 0 has no reciprocal."""
    odd = binary(b, "ori", x, b.splat(1, x.shape, x.element))
    return b.op(f"math.ipowi {odd.name}, {other(b, x).name} : {x.type}", x.shape, x.element)


def extended(b: Body, x: Value) -> Value:
    """The upper half of a sum or product; the lower half is kept as another value."""
    name, y = b.r.choice(EXTENDED), other(b, x)
    carries = name == "addui_extended"
    low, high = Value(b.name(), x.shape, x.element), Value(b.name(), x.shape, "i1" if carries else x.element)
    types = f"{x.type}, {high.type}" if carries else x.type
    b.line(f"{low.name}, {high.name} = arith.{name} {x.name}, {y.name} : {types}")
    b.keep(low)
    return b.op(f"arith.extui {high.name} : {high.type} to {x.type}", x.shape, x.element, 1) if carries else high


def division(b: Body, x: Value) -> Value:
    """A quotient or rest, by an odd number: of 1 to 63, or any that is not -1, with which the least number overflows."""
    mask = b.r.choice([0x3F, -3]) if bit_width(x.element) > 6 else -3
    odd = binary(b, "andi", other(b, x), b.splat(mask, x.shape, x.element))
    odd = binary(b, "ori", odd, b.splat(1, x.shape, x.element))
    return binary(b, b.r.choice(DIVISIONS), x, odd)


def float_op(b: Body, x: Value) -> Value:
    """Any op on floats."""
    how = b.r.random()
    if how < 0.05:
        # Folders compute with constants.
        x = constant(b, x.shape, x.element)
    elif how < 0.1 and x.element != "f64":
        return float_function(b, x)
    if how < 0.5:
        return binary(b, b.r.choice(FLOAT_BINARY), x, other(b, x))
    if how < 0.6:
        return unary(b, b.r.choice(["arith.negf", "math.absf"]), x, x.exact)
    if how < 0.75:
        y, z = other(b, x), other(b, x)
        name = b.r.choice(["math.fma", "vector.fma"]) if x.shape else "math.fma"
        exact = None if None in (x.exact, y.exact, z.exact) else x.exact * y.exact + z.exact  # type: ignore[operator]
        return b.op(f"{name} {x.name}, {y.name}, {z.name} : {x.type}", x.shape, x.element, exact)
    if how < 0.85:
        return unary(b, f"math.{b.r.choice(ROUNDINGS)}", x, x.exact)
    functions = ("sqrt", "rsqrt") if x.element == "f64" else b.functions
    return unary(b, f"math.{b.r.choice(functions)}", x)


def float_function(b: Body, x: Value) -> Value:
    """A function of several operands."""
    y, name = other(b, x), b.r.choice(["powf", "atan2", "clampf", "fpowi"])
    if name == "clampf":
        return b.op(f"math.clampf {x.name} to [{y.name}, {other(b, x).name}] : {x.type}", x.shape, x.element)
    if name == "fpowi":
        n = b.pick(lambda v: v.shape == x.shape and v.element in SIGNLESS) or b.splat(
            b.r.randint(-3, 3), x.shape, "i32"
        )
        return b.op(f"math.fpowi {x.name}, {n.name} : {x.type}, {n.type}", x.shape, x.element)
    return b.op(f"math.{name} {x.name}, {y.name} : {x.type}", x.shape, x.element)


def compare(b: Body, x: Value, y: Value) -> Value:
    """A comparison by any condition."""
    if is_float(x.element) and b.r.random() < 0.2:
        text = f"math.{b.r.choice(b.classes)} {x.name} : {x.type}"
    elif is_float(x.element):
        text = f"arith.cmpf {b.r.choice(FLOAT_CONDITIONS)}, {x.name}, {y.name} : {x.type}"
    else:
        text = f"arith.cmpi {b.r.choice(INTEGER_CONDITIONS)}, {x.name}, {y.name} : {x.type}"
    return b.op(text, x.shape, "i1")


def mask(b: Body, shape: tuple[int, ...]) -> Value:
    """Truth values of a shape."""
    x = b.pick(lambda v: v.shape == shape and v.element in NUMBERS)
    if x is None:
        text = f"dense<true> : {vector_text(shape, 'i1')}" if shape else "true"
        return b.op(f"arith.constant {text}", shape, "i1")
    found = compare(b, x, other(b, x))
    if b.r.random() < 0.2:
        more = compare(b, x, other(b, x))
        found = binary(b, b.r.choice(["andi", "ori", "xori"]), found, more)
    return found


def select(b: Body, x: Value) -> Value:
    """One of two values, element by element."""
    y, m = other(b, x), mask(b, x.shape)
    exact = None if None in (x.exact, y.exact) else max(x.exact, y.exact)  # type: ignore[type-var]
    return b.op(f"arith.select {m.name}, {x.name}, {y.name} : {m.type}, {x.type}", x.shape, x.element, exact)


def conversions(element: str) -> list[str]:
    """The elements that a conversion may give."""
    return [
        e
        for e in NUMBERS
        if e != element and not (is_float(e) and is_float(element) and bit_width(e) == bit_width(element))
    ]


def clamped(b: Body, x: Value, low: int, high: int) -> Value:
    """A float that an integer holds: between two numbers, the lower one for NaN."""
    up = binary(b, "maxnumf", x, b.splat(low, x.shape, x.element))
    return with_bound(binary(b, "minnumf", up, b.splat(high, x.shape, x.element)), None)


def with_bound(x: Value, exact: int | None) -> Value:
    """The value with a bound."""
    return Value(x.name, x.shape, x.element, exact)


def convert(b: Body, x: Value, to: str) -> Value:
    """The numbers in another element; numbers for which the conversion is undefined are clamped before."""
    real, wanted = is_float(x.element), is_float(to)
    old, new = bit_width(x.element), bit_width(to)
    exact = x.exact
    if real and wanted:
        name = "extf" if new > old else "truncf"
    elif real:
        name = b.r.choice(["fptosi", "fptosi", "fptoui"])
        low, high = (0, 100) if name == "fptoui" else (-100, 100)
        if x.exact is None or x.exact > 100 or name == "fptoui":
            x, exact = clamped(b, x, low, high), None
    elif wanted:
        name = b.r.choice(["sitofp", "sitofp", "uitofp"])
        exact = None if name == "uitofp" else exact
    else:
        name = b.r.choice(["extsi", "extui"]) if new > old else "trunci"
        exact = exact if name == "extsi" else None
    return b.op(f"arith.{name} {x.name} : {x.type} to {x.typed(to)}", x.shape, to, exact)


def bitcast(b: Body, x: Value) -> Value:
    """The same bits in another element of the same width."""
    found = [e for e in NUMBERS if e != x.element and bit_width(e) == bit_width(x.element)]
    to = b.r.choice(found)
    return b.op(f"arith.bitcast {x.name} : {x.type} to {x.typed(to)}", x.shape, to)


def truth(b: Body, x: Value) -> Value:
    """A comparison's truth values as integers."""
    m = mask(b, x.shape)
    to = b.r.choice(SIGNLESS)
    name = b.r.choice(["extui", "extsi"])
    return b.op(f"arith.{name} {m.name} : {m.type} to {x.typed(to)}", x.shape, to, 1)


def steps(b: Body, x: Value) -> None:
    """Some ops, each on what the one before it makes."""
    for _ in range(b.r.randint(1, 4)):
        x = step(b, x)
        if x.element not in NUMBERS:
            break


def step(b: Body, x: Value) -> Value:
    """Any op that makes a value of the same shape."""
    options: list[Callable[[], Value]] = [
        lambda: integer_op(b, x) if not is_float(x.element) else float_op(b, x),
        lambda: select(b, x),
        lambda: convert(b, x, b.r.choice(conversions(x.element))),
        lambda: truth(b, x),
        lambda: bitcast(b, x),
    ]
    (chosen,) = b.r.choices(options, weights=[12, 2, 4, 1, 1])
    return b.keep(chosen())
