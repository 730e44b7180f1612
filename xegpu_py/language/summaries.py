"""Reductions as functions: `xl.sum(x, axis)` is `x.sum(axis)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xegpu_py.language.values import Value, value_of


def _reduction(name: str) -> Callable[..., Any]:
    def reduce(value: Any, axis: Any = None, **options: Any) -> Any:
        return getattr(value_of(value), name)(axis, **options)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = getattr(Value, name).__doc__
    return reduce


sum_, prod, max_, min_, any_, all_, mean = map(_reduction, ("sum", "prod", "max", "min", "any", "all", "mean"))
argmax, argmin, xor_sum, reduce_or = map(_reduction, ("argmax", "argmin", "xor_sum", "reduce_or"))
