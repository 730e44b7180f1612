"""The types in which arithmetic instructions compute, for all engines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from xegpu_py.numerics.formats import IEEE, TYPES
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Flag
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import Span


def execution_format(inst: Instruction, sources: Sequence[str]) -> str:
    """The type in which floats are computed: the widest of the operands' types, with bf as f; "" for integers.

    Args:
        sources: types of the sources.
    """
    dst = inst["dst"]
    has_numbers = not INSTRUCTIONS[inst.name].compares and not isinstance(dst, Flag)
    types = [*sources, dst.var.type] if has_numbers else sources
    floats = [t for t in types if TYPES[t].is_float]
    if not floats:
        return ""
    return IEEE[max(32 if t == "bf" else TYPES[t].bits for t in floats)].name


def execution_bits(inst: Instruction, sources: Sequence[str]) -> int:
    """The width of shifts: 64 if the first source or the result has 64 bits, otherwise 32."""
    dst = inst["dst"]
    return 64 if TYPES[sources[0]].bits == 64 or (not isinstance(dst, Flag) and dst.var.format.bits == 64) else 32


@cache
def span(name: str, modifier: str = "") -> Span:
    """The minimum and maximum of an integer source."""
    info = np.iinfo(TYPES[name].dtype)
    ends = [int(info.min), int(info.max)]
    if "abs" in modifier:
        ends = [0, max(map(abs, ends))]
    if modifier.startswith("-"):
        ends = [-e for e in ends]
    return min(ends), max(ends)
