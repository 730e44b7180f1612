"""The types of arguments of public functions, checked at the door by the functions' annotations."""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from msgspec import Struct

from xegpu_py.did_you_mean import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


class Range(Struct, frozen=True):
    """The values of a number, both ends included: `Annotated[int, Range(1, 64)]`."""

    low: float
    high: float = float("inf")

    def __str__(self) -> str:
        return f"{self.low} to {self.high}" if self.high < float("inf") else f"at least {self.low}"


def unknown_option(name: str, known: Iterable[str]) -> str:
    """The message for a keyword that is no option of a kernel, which follows the function's name."""
    suggestion = did_you_mean(name, known, cutoff=0.7) or "."
    return f"got an unexpected keyword argument '{name}'{suggestion} The options are in docs/options.md"


_SCALARS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((numbers.Integral,), "an integer"),
    float: ((numbers.Real,), "a number"),
    str: ((str,), "a string"),
    types.NoneType: ((types.NoneType,), "None"),
}
"""The classes of the values of a type, and its name. True is no number."""

_NOTHING = object()

_LISTS = (collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection, list, tuple)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _is_of_numpy(value: object, *names: str) -> bool:
    """Whether a value is of one of numpy's classes; numpy is not imported for this."""
    return any(kind.__module__ == "numpy" and kind.__name__ in names for kind in type(value).__mro__)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type. Types that say nothing here, such as variables of types and protocols, fit all."""
    if hint is Any or getattr(typing.get_origin(hint) or hint, "_is_protocol", False):
        return True
    if _is_union(hint):
        return any(_fits(value, member) for member in typing.get_args(hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _fits(value, arguments[0])
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if hint in _SCALARS:
        if isinstance(value, bool) or _is_of_numpy(value, "bool", "bool_"):
            return hint is bool
        return isinstance(value, _SCALARS[hint][0])
    if origin in _LISTS:
        items: Any = value
        if _is_of_numpy(value, "ndarray"):
            return (
                origin is not tuple and value.ndim > 0 and (not arguments or all(_fits(v, arguments[0]) for v in items))
            )
        if isinstance(value, (str, bytes)) or not isinstance(value, origin):
            return False
        if origin is tuple and Ellipsis not in arguments:
            return len(items) == len(arguments) and all(map(_fits, items, arguments))
        # An iterable without a length is iterated by the function itself, once.
        return not hasattr(items, "__len__") or all(_fits(item, arguments[0]) for item in items)
    found = origin or hint
    return not isinstance(found, type) or isinstance(value, found)


def _has_names(hint: Any) -> bool:
    """Whether some strings are of a type."""
    members = typing.get_args(hint) if _is_union(hint) else (hint,)
    return any(typing.get_origin(member) is Literal for member in members)


def _described(hint: Any) -> str:
    """A type in a message."""
    if _is_union(hint):
        members = list(dict.fromkeys(_described(member) for member in typing.get_args(hint)))
        return " or ".join([", ".join(members[:-1]), members[-1]] if members[1:] else members)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _described(arguments[0])
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if hint in _SCALARS:
        return _SCALARS[hint][1]
    if origin in _LISTS:
        return "a list" + (f" of which each element is {_described(arguments[0])}" if arguments else "")
    name = {"PathLike": "Path", "Callable": "function"}.get(
        getattr(origin or hint, "__name__", str(hint)), getattr(origin or hint, "__name__", str(hint))
    )
    return f"a{'n' * (name[0] in 'AEIOU')} {name}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"


def check(name: str, value: Any, hint: Any) -> None:
    """Check that an argument has the type of its annotation, and is in its `Range`.

    Raises:
        TypeError: if it is of another type.
        ValueError: if it is out of range, or no name of a `Literal`.
    """
    if not _fits(value, hint):
        is_name = isinstance(value, str) and _has_names(hint)
        raise (ValueError if is_name else TypeError)(f"'{name}' must be {_described(hint)}, but got {_shown(value)}")
    for member in typing.get_args(hint) if _is_union(hint) else (hint,):
        for limits in getattr(member, "__metadata__", ()):
            if isinstance(limits, Range) and value is not None and not limits.low <= value <= limits.high:
                raise ValueError(f"'{name}' must be {limits}, but got {_shown(value)}")


def check_fields(record: Struct, leave_out: Collection[str] = ()) -> None:
    """Check all fields of a record but some; see `check`."""
    for name, hint in _hints(type(record)).items():
        if name not in leave_out:
            check(name, getattr(record, name), hint)


def checked(function: Callable[P, R], leave_out: Collection[str] = ()) -> Callable[P, R]:
    """Decorates a public function: its arguments, but some, must have the types of their annotations; see `check`."""
    # `inspect.signature` takes ten times as long, for dozens of functions of each import.
    code = inspect.unwrap(function).__code__
    count, keyword_count = code.co_argcount, code.co_kwonlyargcount
    names, others = code.co_varnames[:count], code.co_varnames[count : count + keyword_count]
    rest = code.co_varnames[count + keyword_count] if code.co_flags & inspect.CO_VARARGS else None

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        hints = _hints(function, tuple(leave_out))
        for name, value in zip(names, arguments):
            if name in hints and type(value) is not hints[name]:
                check(name, value, hints[name])
        if rest in hints:
            for number, value in enumerate(arguments[len(names) :], len(names)):
                check(f"argument {number}", value, hints[rest])
        for name, value in keywords.items():
            if name in hints and type(value) is not hints[name] and (name in names or name in others):
                check(name, value, hints[name])
        return function(*arguments, **keywords)

    return call


@functools.cache
def _hints(annotated: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """The types of a function's parameters or a class's fields, but those that fit all values, and those of names that
    only type checkers import."""
    names: dict[str, Any] = vars(sys.modules[annotated.__module__])
    hints = {}
    for name, text in annotated.__annotations__.items():
        with contextlib.suppress(NameError):
            # The type of the result is not checked, and may be of a module whose import is deferred.
            if name not in ("return", *leave_out):
                hint = eval(text, {**names}) if isinstance(text, str) else text
                if not _fits(_NOTHING, hint):
                    hints[name] = hint
    return hints
