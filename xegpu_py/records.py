"""`record`: a dataclass that is cheap to define, for classes of which inner loops test instances.

Other records are classes of msgspec, of which `isinstance` takes three times as long.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from typing import TYPE_CHECKING, Any

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(cls=None, *, frozen=False, eq=True):
        """`dataclass`, which compiles up to seven methods one by one, in a fifth to a third of its time.

        Methods that the class defines by itself are kept.
        """
        if cls is None:
            return lambda found: record(found, frozen=frozen, eq=eq)
        own = set(vars(cls))
        made = dataclass(init=False, repr=False, eq=False)(cls)
        methods = _compiled(made, eq, frozen) | {"__repr__": _text}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        elif eq:
            methods["__hash__"] = None
        for name in methods.keys() - own:
            setattr(made, name, methods[name])
        return made


def _compiled(cls: type, eq: bool, frozen: bool) -> dict[str, Any]:
    """The constructor and the comparison."""
    methods: dict[str, Any] = {}
    scope: dict[str, Any] = {"_absent": object(), "_set": object.__setattr__}
    parameters, lines = [], []
    for f in fields(cls):
        made, value = f.default_factory is not MISSING, f.name
        if made:
            scope |= {f"_make_{f.name}": f.default_factory, f"_default_{f.name}": scope["_absent"]}
            value = f"_make_{f.name}()" + (f" if {f.name} is _absent else {f.name}" if f.init else "")
        elif f.default is not MISSING:
            scope[f"_default_{f.name}"] = f.default
        if f.init:
            parameters.append(f.name + (f"=_default_{f.name}" if f"_default_{f.name}" in scope else ""))
        if f.init or made:
            lines.append(f" _set(self, {f.name!r}, {value})" if frozen else f" self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    text = [f"def __init__({', '.join(['self', *parameters])}):", *(lines or [" pass"])]
    if eq:
        own, other = (
            "".join(f"{object_}.{f.name}, " for f in fields(cls) if f.compare) for object_ in ("self", "other")
        )
        text += ["def __eq__(self, other):", " if self is other: return True"]
        text += [f" return ({own}) == ({other}) if other.__class__ is self.__class__ else NotImplemented"]
        text += ["def __hash__(self):", f" return hash(({own}))"] if frozen else []
    exec("\n".join(text), scope, methods)
    return methods


def _text(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"the field '{name}' of {type(self).__qualname__} cannot be changed")
