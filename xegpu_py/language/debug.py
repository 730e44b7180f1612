"""Assertions, printing, and hints to the compiler."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from mlir.dialects import cf, gpu

from xegpu_py.language import types
from xegpu_py.language.held import BUILDING
from xegpu_py.language.values import Product, Value, value_of

PRINTED = 64
"""Most elements that `device_print` shows of a value."""


def static_assert(condition: Any, message: str = "") -> None:
    """Reject the kernel unless a condition holds that is known at compile time.

    Raises:
        ValueError: if it does not hold.
        TypeError: if it is known only at run time.
    """
    if isinstance(condition, (Value, Product)):
        raise TypeError("static_assert needs a condition that is known at compile time; see device_assert")
    if not condition:
        raise ValueError(f"static assertion failed: {message}" if message else "static assertion failed")


def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Python's `print` at compile time. Values that are known only at run time show their type."""
    shown = [v.describe() if isinstance(v, Value) else v for v in values]
    builtins.print(*shown, sep=sep, end=end, file=file, flush=flush)


def device_assert(condition: Any, message: str = "", mask: Any = None) -> None:
    """Stop the run with an error at this line unless a condition holds for each element.

    Args:
        condition: truth values, or numbers, where zero is false.
        message: the error message.
        mask: which elements to check; by default all.
    """
    BUILDING.check()
    held = value_of(condition).to(types.bool_)
    if mask is not None:
        held = held | ~value_of(mask).to(types.bool_)
    cf.assert_((held.all() if held.shape else held).ir, message or "assertion failed")
    BUILDING.built()


def device_print(prefix: str, *values: Any, hex: bool = False) -> None:
    """Print a text and values as the kernel runs, once for each workgroup; compiled kernels print at their end.

    Args:
        prefix: the text, which is known at compile time.
        values: scalars, or values of up to 64 elements.
        hex: whether to print integers in base 16.

    Raises:
        TypeError: if the prefix is not a string.
        ValueError: for values of more elements.
    """
    BUILDING.check()
    if not isinstance(prefix, str):
        raise TypeError(f"device_print needs a text first, not {prefix!r}")
    form, operands = prefix.replace("%", "%%"), []
    for given in values:
        value = value_of(given)
        if value.size > PRINTED:
            raise ValueError(f"device_print shows values of up to {PRINTED} elements, not {value.describe()}")
        value = value.to(types.int32) if value.dtype.kind == "bool" else value
        if value.dtype.is_float and value.dtype.bits < 32:
            value = value.to(types.float32)
        one = " %f" if value.dtype.is_float else " %x" if hex else " %u" if value.dtype.kind == "uint" else " %d"
        line = value.ravel() if value.shape else value
        parts = [line[i] for i in range(value.size)] if value.shape else [line]
        form += one * len(parts)
        operands += [p.ir for p in parts]
    gpu.printf(form + "\n", *operands)
    BUILDING.built()


# Hints.


def _hinted(value: Any, numbers: Any, name: str) -> Any:
    given = numbers if isinstance(numbers, Sequence) else [numbers]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given):
        raise TypeError(f"{name} needs positive integers that are known at compile time, not {numbers!r}")
    return value


def multiple_of(value: Any, values: Any) -> Any:
    """Triton's hint that a value is a multiple of a number. It has no effect: the compiler derives this itself."""
    return _hinted(value, values, "multiple_of")


def max_contiguous(value: Any, values: Any) -> Any:
    """Triton's hint that groups of `values` elements are consecutive numbers. It has no effect."""
    return _hinted(value, values, "max_contiguous")


def max_constancy(value: Any, values: Any) -> Any:
    """Triton's hint that groups of `values` elements are equal. It has no effect."""
    return _hinted(value, values, "max_constancy")


def assume(condition: Any) -> None:
    """Promise that a condition holds. The engines check it as `device_assert` does.

    Raises:
        ValueError: if it is known to be false when the kernel is compiled.
    """
    if isinstance(condition, (Value, Product)):
        device_assert(condition, "assumption does not hold")
    elif not condition:
        raise ValueError("assumption does not hold")


def expect_zero(value: Any, mask: Any) -> Any:
    """Promise that a value is zero wherever a mask is set; gives the value. `device_assert` checks it."""
    given = value_of(value)
    device_assert(
        (given == 0) | ~value_of(mask).to(types.bool_), "expect_zero: a value is not zero where the mask is set"
    )
    return value
