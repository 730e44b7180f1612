"""Modules that are imported when one of their names is first used.

Most runs of a tool need no highlighting, no metadata of packages and no finalizer. Their imports are deferred here and
nowhere else; the imported names are checked as those of any import:

    if TYPE_CHECKING:
        from xegpu_py import highlighting
    else:
        highlighting = deferred("xegpu_py.highlighting")
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


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
