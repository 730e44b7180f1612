"""Attributes with what a kernel assumes of its launches: launches check it, and otherwise take another version."""

from __future__ import annotations

import math

from mlir import ir

from xegpu_py.dialects.xegpu.types import UNALIGNED
from xegpu_py.ir.diagnostics import emit_error

ASSUMED_MULTIPLES = "xetile.divided"
"""The attribute with the numbers that a kernel assumes to be multiples of others; see xetile-scattered-to-tiles."""

LIKELY_MULTIPLES = "xetile.likely_multiples"
"""The attribute with pairs: an argument's number, and a power of two of which Triton has seen that it is a multiple."""

ASSUMED_32_BIT = "xetile.narrow"
"""The attribute with the sums of products that a kernel assumes to fit 32 bits; see xetile-scattered-to-tiles."""

WINDOWS = "xetile.windows"
"""The attribute of a kernel whose arrays are windows of memory: it may access memory before their first elements."""

EXPANDED = "xegpu.expanded"
"""The attribute with the numbers of arrays that are assumed to be aligned, since their rows are divided; see
xegpu-expand-rows."""

AssumedMultiple = tuple[int, int, int, int]
"""An assumption about launches: the numbers of an array and of an argument, a dimension if that is an array and else
-1, and of what its extent or value is assumed to be a positive multiple."""


def assumed_multiples(func: ir.Operation) -> list[AssumedMultiple]:
    """The assumptions in a kernel's attribute `ASSUMED_MULTIPLES`.

    Raises:
        DiagnosticError: if the attribute does not consist of them.
    """
    numbers = _numbers(func, ASSUMED_MULTIPLES, 4)
    return list(zip(numbers[::4], numbers[1::4], numbers[2::4], numbers[3::4]))


def assumed_divisor(func: ir.Operation, number: int) -> int:
    """A number that a kernel assumes to divide an argument, which is positive then; 1 if it assumes nothing."""
    return math.lcm(*(of for _, giver, dim, of in assumed_multiples(func) if giver == number and dim < 0))


def is_assumed_positive(func: ir.Operation, number: int) -> bool:
    """Whether launches check that an argument is positive."""
    return any(giver == number and dim < 0 for _, giver, dim, _ in assumed_multiples(func))


def likely_multiples(func: ir.Operation) -> dict[int, int]:
    """The pairs in a kernel's attribute `LIKELY_MULTIPLES`.

    Raises:
        DiagnosticError: if the attribute does not consist of pairs.
    """
    numbers = _numbers(func, LIKELY_MULTIPLES, 2)
    return dict(zip(numbers[::2], numbers[1::2]))


def unaligned_arguments(func: ir.Operation, name: str = UNALIGNED) -> tuple[int, ...]:
    """The argument numbers in a kernel's `xegpu.unaligned`, or in another attribute of this form.

    Raises:
        DiagnosticError: if the attribute is not a list of numbers of the kernel's arguments.
    """
    attribute = func.attributes.get(name)
    if attribute is None:
        return ()
    count = len(func.regions[0].blocks[0].arguments)
    numbers = tuple(attribute) if isinstance(attribute, ir.DenseI64ArrayAttr) else (-1,)
    if not all(0 <= n < count for n in numbers):
        note = f"write '{name} = array<i64: 0, 2>', of its {count} arguments from 0"
        emit_error(func, f"has {name} = {attribute}, which does not count arguments", note)
    return numbers


def _numbers(func: ir.Operation, name: str, length: int) -> list[int]:
    """The numbers of an attribute, in groups of a length; none if the function does not have it."""
    attribute = func.attributes.get(name)
    if attribute is None:
        return []
    numbers = [*attribute] if isinstance(attribute, ir.DenseI64ArrayAttr) else [0]
    count = len(func.regions[0].blocks[0].arguments)
    # Each group begins with numbers of arguments, and ends with a divisor.
    arguments = [n for first in range(length // 2) for n in numbers[first::length]]
    divisors = numbers[length - 1 :: length]
    if len(numbers) % length or not all(0 <= n < count for n in arguments) or not all(n > 0 for n in divisors):
        emit_error(func, f"has {name} = {attribute}, which is not made of groups of {length} numbers")
    return numbers
