"""Conditions on the arguments of a launch under which a kernel was lowered, as plain data without MLIR."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from xegpu_py.numerics import integers
from xegpu_py.target.message_rules import Block2DLimits

Expression: TypeAlias = "int | tuple[Any, ...]"
"""A number; ("argument", i); ("extent", i, d), of an array; or an op's name and its operands."""

OPERATIONS: dict[str, integers.Integers] = {
    **integers.SIGNED,
    **integers.UNSIGNED,
    "shli": lambda a, b: a << b if b < 64 else 0,
    "shrui": lambda a, b: a >> b,
}
"""Ops of arith on extents, which do not wrap around."""

_OF_ANY_SIGN = ("addi", "subi", "muli", "minsi", "maxsi")
"""The ops whose operands may be negative."""


class Surface(Struct, frozen=True):
    """The surface of a descriptor or tile. It is plain data, as parameters are.

    Attributes:
        argument: the number of the argument whose memory contains the surface.
        size: bytes of an element.
        width, rows, pitch: elements of a row, number of rows, and elements from one row to the next; None if it is not
            computed from arguments alone.
    """

    argument: int
    size: int
    width: Expression | None
    rows: Expression | None
    pitch: Expression | None

    def misfits(self, arguments: Sequence[Any], limits: Block2DLimits) -> bool:
        """Whether 2D block messages cannot address it in a call."""
        width, rows, pitch = (evaluated(e, arguments) for e in (self.width, self.rows, self.pitch))
        in_bytes = [None if n is None else n * self.size for n in (width, pitch)]
        address = arguments[self.argument]
        start = int(address) if isinstance(address, (int, np.integer)) else None
        return limits.surface_problem(in_bytes[0], rows, in_bytes[1], start) is not None


class Multiple(Struct, frozen=True):
    """A number that a kernel assumes to be a positive multiple of another.

    Attributes:
        argument: the number of the array that is accessed as if it were; a version for which the array is unaligned
            assumes nothing.
        number: the number.
        of: of what it is a multiple.
    """

    argument: int
    number: Expression
    of: int

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether it is one in a call."""
        number = evaluated(self.number, arguments)
        return number is not None and number > 0 and number % self.of == 0


class Sum(Struct, frozen=True):
    """A sum of products of numbers that a kernel assumes to fit 32 bits.

    Attributes:
        argument: the number of the array that is accessed as if it did; see `Multiple`.
        terms: of each product, its factor and its numbers.
    """

    argument: int
    terms: tuple[tuple[int, tuple[Expression, ...]], ...]

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether it fits in a call."""
        terms = (n * math.prod(evaluated(e, arguments) or 0 for e in numbers) for n, numbers in self.terms)
        return -(1 << 31) <= sum(terms) < 1 << 31


class Product(Struct, frozen=True):
    """A product of matrices that are loaded from surfaces.

    Attributes:
        where: the product's place in the source.
        columns, rows: the inner sizes of its surfaces: columns of the left one, and rows of the right one.
    """

    where: str
    columns: Expression
    rows: Expression

    def unlike(self, arguments: Sequence[Any]) -> str | None:
        """A warning of inner sizes that do not fit in a call; None if they do.

        Sizes of which one is a multiple of the other are not reported: matrices stacked in one array have them.
        """
        columns, rows = evaluated(self.columns, arguments), evaluated(self.rows, arguments)
        if not columns or not rows or max(columns, rows) % min(columns, rows) == 0:
            return None
        return (
            f"{self.where}: the left matrix is loaded from rows of {columns} elements, but the right one from "
            f"{rows} rows; out-of-bounds elements are zero, and check='bounds' finds the first load of them"
        )


def evaluated(expression: Expression | None, arguments: Sequence[Any]) -> int | None:
    """The value of an expression for the arguments of a call; None if it is not known."""
    if expression is None or isinstance(expression, int):
        return expression
    operator, *operands = expression
    if operator == "argument":
        argument = arguments[operands[0]]
        return int(argument) if isinstance(argument, (int, np.integer)) else None
    if operator == "extent":
        shape = np.shape(arguments[operands[0]])
        return shape[operands[1]] if operands[1] < len(shape) else None
    numbers = [evaluated(e, arguments) for e in operands]
    if None in numbers or (operator not in _OF_ANY_SIGN and min(n for n in numbers if n is not None) < 0):
        return None
    a, b = (n for n in numbers if n is not None)
    return int(OPERATIONS[operator](a, b))
