"""`dataclass` as in the standard library, except that it generates code only for `__init__`, and at the first call.

The standard library's compiles up to eight methods of each class when a module is loaded, 0.2 to 0.4 ms. Of the time in
which a process compiles its first small kernel, that was a third.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "fields", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, *, eq: bool = True, frozen: bool = False) -> Any:
        """The standard library's decorator, with those of its options that this package needs."""
        if cls is None:
            return lambda cls: dataclass(cls, eq=eq, frozen=frozen)
        own = {name for name, method in vars(cls).items() if (name, method) != ("__hash__", None)}
        dataclasses.dataclass(cls, init=False, repr=False, eq=False)
        found = {"__repr__": _repr}
        if "__init__" not in own:
            found["__init__"] = _init(cls, frozen)
        if eq:
            found |= _comparison(cls, frozen)
        if frozen:
            found |= {"__setattr__": _refused, "__delattr__": _refused}
        for name, method in found.items():
            if name not in own:
                setattr(cls, name, method)
        return cls


def _init(cls: type, frozen: bool) -> Callable[..., None]:
    """An `__init__` that replaces itself by generated code."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
        parameters, body = ["self"], []
        for f in fields(cls):
            value, default = f.name, f"_default_{f.name}"
            if f.default_factory is not MISSING:
                names[default] = f.default_factory
                value = f"{default}() if {f.name} is _missing else {f.name}" if f.init else f"{default}()"
            elif f.default is not MISSING:
                names[default] = f.default
            elif not f.init:
                continue
            if f.init:
                given = "" if default not in names else "=_missing" if f.default is MISSING else f"={default}"
                parameters.append(f.name + given)
            elif f.default is not MISSING:
                value = default
            body.append(f"_set(self, '{f.name}', {value})" if frozen else f"self.{f.name} = {value}")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"]), names)
        made = names["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        setattr(cls, "__init__", made)  # noqa: B010  (mypy takes no assignment to a method)
        made(self, *args, **kwargs)

    return __init__


def _comparison(cls: type, frozen: bool) -> dict[str, Any]:
    """`__eq__` and `__hash__`: of the fields that are compared, as a tuple."""
    names = [f.name for f in fields(cls) if f.compare]
    values: Callable[[Any], Any]
    if len(names) > 1:
        values = attrgetter(*names)
    else:

        def values(record: Any) -> Any:
            return tuple([getattr(record, name) for name in names])

    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    # As in the standard library, what can change has no hash.
    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refused(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")
