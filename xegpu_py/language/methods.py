"""Methods of values as functions: `xl.sum(x, axis)` is `x.sum(axis)`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from xegpu_py.language.values import Value, value_of

P = ParamSpec("P")
R = TypeVar("R")


def _function(method: Callable[Concatenate[Value, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A function of anything that `value_of` takes."""

    def function(value: Any, /, *args: P.args, **keywords: P.kwargs) -> R:
        return method(value_of(value), *args, **keywords)

    functools.update_wrapper(function, method)
    return function


sum_, prod, max_, min_ = _function(Value.sum), _function(Value.prod), _function(Value.max), _function(Value.min)
any_, all_, mean, argmax = _function(Value.any), _function(Value.all), _function(Value.mean), _function(Value.argmax)
argmin, xor_sum, reduce_or = _function(Value.argmin), _function(Value.xor_sum), _function(Value.reduce_or)
reshape, ravel, permute = _function(Value.reshape), _function(Value.ravel), _function(Value.permute)
expand_dims, broadcast_to = _function(Value.expand_dims), _function(Value.broadcast_to)
view, unsqueeze = reshape, expand_dims
