"""Arithmetic of integers: the functions of MLIR's arith and index, of numpy arrays and of Python's integers.

A division by zero gives zero, and so does its remainder (docs/numerics.md). Callers keep the lowest bits of a result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Integers = Callable[[Any, Any], Any]


def floordiv(a: Any, b: Any) -> Any:
    """The quotient, rounded toward minus infinity."""
    return a // (b + (b == 0)) * (b != 0)


def floormod(a: Any, b: Any) -> Any:
    """The remainder of `floordiv`."""
    return (a - floordiv(a, b) * b) * (b != 0)


def ceildiv(a: Any, b: Any) -> Any:
    """The quotient, rounded toward plus infinity."""
    return floordiv(a, b) + (floormod(a, b) != 0)


def truncdiv(a: Any, b: Any) -> Any:
    """The quotient, rounded toward zero."""
    return floordiv(a, b) + (((a < 0) != (b < 0)) & (floormod(a, b) != 0))


def truncmod(a: Any, b: Any) -> Any:
    """The remainder of `truncdiv`, which has the sign of the dividend."""
    return (a - truncdiv(a, b) * b) * (b != 0)


SIGNED: dict[str, Integers] = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "andi": operator.and_, "ori": operator.or_,
    "xori": operator.xor, "maxsi": np.maximum, "minsi": np.minimum, "ceildivsi": ceildiv, "floordivsi": floordiv,
    "divsi": truncdiv, "remsi": truncmod,
}  # fmt: skip
"""The functions of signed numbers, or of any, by the names of arith; index has the same names without the last `i`."""

UNSIGNED: dict[str, Integers] = {
    "maxui": np.maximum, "minui": np.minimum, "divui": floordiv, "remui": floormod, "ceildivui": ceildiv,
}  # fmt: skip
"""The functions of unsigned numbers."""
