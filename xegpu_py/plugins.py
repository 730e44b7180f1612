"""Extensions by name: the objects that entry points of the group `xegpu_py.plugins` name.

The core calls an extension, and `xegpu_py` has the public names of extensions, only through this module. Another
distribution adds a name by an entry point of its own.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any

GROUP = "xegpu_py.plugins"


class MissingExtra(ImportError):
    """A package of an extra of xegpu-py is not installed."""


@functools.cache
def installed() -> dict[str, EntryPoint]:
    """The entry points of all installed distributions, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


@functools.cache
def plugin(name: str) -> Any:
    """The object of this name, whose module is imported now.

    Raises:
        LookupError: if no installed distribution has such an entry point.
        ImportError: if the extension needs a package that is not installed.
    """
    if name not in installed():
        raise LookupError(
            f"no installed distribution has the entry point '{name}' of the group '{GROUP}'; "
            "the installation of xegpu-py is incomplete or of another version: install it again"
        )
    return installed()[name].load()
