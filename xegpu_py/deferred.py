"""Modules that are imported, patterns that are compiled, and functions of libraries that are found when first used.

Most runs of a tool need no highlighting, no metadata of packages and no finalizer. Their imports are deferred here and
nowhere else; the imported names are checked as those of any import:

    if TYPE_CHECKING:
        from xegpu_py import highlighting
    else:
        highlighting = deferred("xegpu_py.highlighting")
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


def bind_lazily() -> None:
    """From now on, look up what a library calls at the first call, where the system can do so.

    By default Python looks up all functions of a library when it loads it. MLIR's has 23,000, which takes 12 ms.
    """
    if hasattr(sys, "setdlopenflags"):
        sys.setdlopenflags(sys.getdlopenflags() & ~os.RTLD_NOW | os.RTLD_LAZY)


@contextmanager
def lazy_binding() -> Iterator[None]:
    """A context manager for imports; see `bind_lazily`."""
    flags = sys.getdlopenflags() if hasattr(sys, "getdlopenflags") else 0
    bind_lazily()
    try:
        yield
    finally:
        if flags:
            sys.setdlopenflags(flags)
