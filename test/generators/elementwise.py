"""Ops of the op table on scalars and on vectors of any shape, and conversions between all elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from xegpu_py.ir.builtin import is_float

from . import ops
from .body import Body, Value, most_exact
from .ops import NUMBERS, SIGNLESS, Op

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


INDICES = (0, 1, 3, 16, -1, 255, 1 << 31, (1 << 32) - 1, 1 << 40)
"""Indices at which it changes whether they are computed in 32 bits."""


def constant(b: Body, shape: tuple[int, ...], element: str) -> Value:
    """A constant: a small number, or one at which rules change."""
    if b.r.random() < 0.7:
        return b.splat(b.r.randint(-4, 4), shape, element)
    if is_float(element):
        return b.splat(b.r.choice(SPECIAL[element]) if b.special_floats else 5, shape, element)
    if element == "index":
        return b.splat(b.r.choice([*INDICES, b.r.randint(-9, 99)]), shape, element)
    most = most_exact(element)
    return b.splat(b.r.choice([most, -most - 1, most >> 1, 0x55]), shape, element)


def other(b: Body, value: Value) -> Value:
    """A second operand: another value of the type, a constant, or the value itself."""
    found = b.pick(lambda v: v.type == value.type and v.name != value.name)
    if found and b.r.random() < 0.7:
        return found
    return constant(b, value.shape, value.element) if b.r.random() < 0.8 else value


# Ops of the table.


def binary(b: Body, name: str, x: Value, y: Value) -> Value:
    """An op of arith on two values."""
    return b.apply(ops.BY_NAME[name], {"x": x, "y": y})


def names(element: str) -> list[str]:
    """The names of arithmetic of two operands on an element, as `binary` takes them."""
    return [name for name, op in ops.BY_NAME.items() if element in op.elements]


def _odd(b: Body, x: Value) -> Value:
    """An odd number, since 0 has no reciprocal."""
    return binary(b, "ori", x, b.splat(1, x.shape, x.element))


def _divisor(b: Body, x: Value) -> Value:
    """An odd number: a constant, one of 1 to 63, or any that is not -1, with which the least number overflows."""
    wide = ops.width(x.element) > 6
    if wide and b.r.random() < 0.2:
        return b.splat(b.r.choice([3, 5, 7, 100]), x.shape, x.element)
    small = x.element == "index" or (wide and b.r.random() < 0.5)
    return _odd(b, binary(b, "andi", other(b, x), b.splat(0x3E if small else -3, x.shape, x.element)))


def _amount(b: Body, x: Value) -> Value:
    """A number of bits below the width."""
    return binary(b, "andi", other(b, x), b.splat(ops.width(x.element) - 1, x.shape, x.element))


def _integer(b: Body, x: Value) -> Value:
    """An exponent: an integer of any width."""
    found = b.pick(lambda v: v.shape == x.shape and v.element in SIGNLESS)
    return found or b.splat(b.r.randint(-3, 3), x.shape, "i32")


OPERANDS: dict[str, Callable[[Body, Value], Value]] = {
    "x": lambda b, x: x, "y": other, "z": other, "odd": _odd, "divisor": _divisor, "amount": _amount, "integer": _integer,
}  # fmt: skip
"""The operands of the table's ops, by their places in a text."""


def apply(b: Body, op: Op, x: Value) -> Value:
    """An op of the table on a value and on other operands that it takes."""
    places = [p for p in dict.fromkeys(re.findall(r"{(\w+)}", op.text)) if p in OPERANDS]
    return b.apply(op, {place: OPERANDS[place](b, x) for place in places})


def draw(b: Body, x: Value, families: Sequence[str] = ()) -> Value | None:
    """Any op on a value that the kernel may have, of some families or of those whose results are numbers."""
    fits = [
        op for op in ops.on(x.element)
        if (op.family in families if families else op.family not in ops.TRUTH) and op.shaped in (None, bool(x.shape))
        and b.allows(op, x)
    ]  # fmt: skip
    if not fits:
        return None
    known = list(dict.fromkeys(op.family for op in fits))
    (family,) = b.r.choices(known, weights=[ops.FAMILIES[f] for f in known])
    return apply(b, b.r.choice([op for op in fits if op.family == family]), x)


def number(b: Body, x: Value) -> Value:
    """Any op whose result is a number."""
    if is_float(x.element) and b.r.random() < 0.05:
        # Folders compute with constants.
        x = constant(b, x.shape, x.element)
    return draw(b, x) or x


def compare(b: Body, x: Value) -> Value:
    """A comparison by any condition, or a class of floats."""
    found = draw(b, x, ops.TRUTH)
    assert found
    return found


def mask(b: Body, shape: tuple[int, ...]) -> Value:
    """Truth values of a shape."""
    x = b.pick(lambda v: v.shape == shape and v.element in NUMBERS)
    if x is None:
        return b.splat("true", shape, "i1")
    found = compare(b, x)
    if b.r.random() < 0.2:
        found = binary(b, b.r.choice(["andi", "ori", "xori"]), found, compare(b, x))
    return found


def select(b: Body, x: Value) -> Value:
    """One of two values, element by element."""
    y = other(b, x)
    return b.selected(mask(b, x.shape), x, y)


def convert(b: Body, x: Value, to: str) -> Value:
    """The numbers in another element; numbers for which the conversion is undefined are clamped before."""
    conversion = b.r.choice(ops.conversions(x.element, to))
    exact = x.exact if conversion.keeps else None
    if conversion.limited and (x.exact is None or x.exact > conversion.limits(to)[1] or not conversion.keeps):
        # The lower limit for NaN.
        for name, limit in zip(("maxnumf", "minnumf"), conversion.limits(to)):
            x = binary(b, name, x, b.splat(limit, x.shape, x.element))
        exact = None
    return b.conversion(conversion, x, to, exact)


def truth(b: Body, x: Value) -> Value:
    """A comparison's truth values as integers."""
    return replace(convert(b, mask(b, x.shape), b.r.choice(SIGNLESS)), exact=1)


def steps(b: Body, x: Value) -> None:
    """Some ops, each on what the one before it makes."""
    for _ in range(b.r.randint(1, 4)):
        x = step(b, x)
        if x.element not in NUMBERS:
            break


def step(b: Body, x: Value) -> Value:
    """Any op that makes a value of the same shape."""
    targets = b.targets(x.element)
    options: list[tuple[int, Callable[[], Value]]] = [
        (12, lambda: number(b, x)),
        (2, lambda: select(b, x)),
        (4 if targets else 0, lambda: convert(b, x, b.r.choice(targets))),
        (1, lambda: truth(b, x)),
        (1 if x.element in NUMBERS else 0, lambda: b.bitcast(x)),
    ]
    (chosen,) = b.r.choices([option for _, option in options], weights=[weight for weight, _ in options])
    return b.keep(chosen())
