"""Format strings of `gpu.printf`: those of C's printf, for integers and floating-point numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from xegpu_py.ir.builtin import bit_width, is_float

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d*)?(?:hh|h|ll|l|j|z|t|L)?(?P<kind>[a-zA-Z%])?"
)
_INTEGERS, _FLOATS = "diouxXcp", "eEfFgGaA"


def check_format(text: str, elements: Sequence[str]) -> None:
    """Check that a format fits its operands.

    Args:
        text: the format.
        elements: MLIR's types of the operands.

    Raises:
        ValueError: if it does not.
    """
    conversions = [m for m in _CONVERSION.finditer(text) if m["kind"] != "%"]
    for m in conversions:
        if m["kind"] is None or m["kind"] not in _INTEGERS + _FLOATS:
            known = ", ".join(f"%{c}" for c in _INTEGERS + _FLOATS)
            raise ValueError(f"'{m[0]}' is not a supported conversion; expected one of {known}")
    if len(conversions) != len(elements):
        raise ValueError(f"the format has {len(conversions)} conversions, but there are {len(elements)} operands")
    for m, element in zip(conversions, elements):
        if is_float(element) != (m["kind"] in _FLOATS):
            wanted = "a floating-point number" if m["kind"] in _FLOATS else "an integer"
            raise ValueError(f"'{m[0]}' requires {wanted}, but got {element}")


def formatted(text: str, elements: Sequence[str], values: Sequence[int | float]) -> str:
    """The text that a format makes of numbers.

    Args:
        text: a format that fits, see `check_format`.
        elements: MLIR's types of the numbers; integers of 64 bits for `index`.
        values: the numbers; integers may have any sign.
    """
    given = iter(zip(elements, values))
    return _CONVERSION.sub(lambda m: "%" if m["kind"] == "%" else _one(m, given), text)


def _one(match: re.Match[str], given: Iterator[tuple[str, int | float]]) -> str:
    element, value = next(given)
    flags, kind = match["flags"], match["kind"]
    if kind in _FLOATS and not math.isfinite(value):
        # Unlike Python, C pads infinities and NaNs with spaces.
        flags = flags.replace("0", "")
    form = f"%{flags}{match['width']}{match['precision'] or ''}"
    if kind in _FLOATS:
        number = float(value)
        if kind in "aA":
            text = number.hex()
            return f"%{flags.replace('0', '')}{match['width']}s" % (text.upper() if kind == "A" else text)
        return (form + kind) % number
    bits = 64 if element == "index" else bit_width(element)
    unsigned = int(value) & ((1 << bits) - 1)
    if kind == "c":
        return f"%{flags}{match['width']}s" % chr(unsigned & 0xFF)
    if kind == "p":
        return f"%{flags}{match['width']}s" % f"{unsigned:#x}"
    signed = unsigned - ((unsigned >> (bits - 1)) << bits) if bits > 1 else unsigned
    if kind in "di":
        return (form + "d") % signed
    # Python signs these too.
    unsigned_flags = flags.replace("+", "").replace(" ", "")
    return f"%{unsigned_flags}{match['width']}{match['precision'] or ''}{'d' if kind == 'u' else kind}" % unsigned
