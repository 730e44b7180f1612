"""Modules that are imported when one of their names is first used, and patterns compiled when they are first used.

Most runs of a tool need no highlighting, no metadata of packages and no finalizer. Their imports are deferred here and
nowhere else; the imported names are checked as those of any import:

    if TYPE_CHECKING:
        from xegpu_py import highlighting
    else:
        highlighting = deferred("xegpu_py.highlighting")
"""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType
from typing import Any, cast


class _Deferred(ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def deferred(name: str) -> ModuleType:
    """A stand-in for a module, which imports it when an attribute is read.

    Args:
        name: the module's full name.
    """
    return _Deferred(name)


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._arguments = text, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._arguments), name)
        setattr(self, name, value)
        return value


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """A stand-in for a compiled regular expression that few runs need; long ones take a millisecond to compile.

    Args:
        text: the expression.
        flags: those of `re.compile`.
    """
    return cast(re.Pattern[str], _Pattern(text, flags))
