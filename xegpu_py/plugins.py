"""Extensions by name: the objects that entry points of the group `xegpu_py.plugins` name.

The core calls an extension, and `xegpu_py` has the public names of extensions, only through this module. Another
distribution adds a name by an entry point of its own, and passes by entry points of the group `xegpu_py.passes`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from xegpu_py.deferred import deferred

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = deferred("importlib.metadata")

GROUP = "xegpu_py.plugins"

PASSES = "xegpu_py.passes"


class MissingExtra(ImportError):
    """A package of an extra of xegpu-py is not installed."""


def _entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=group)}


@functools.cache
def installed() -> dict[str, Any]:
    """The entry points of all installed distributions, by name."""
    return _entry_points(GROUP)


@functools.cache
def plugin_passes() -> dict[str, str]:
    """The modules that register passes of extensions, by the names of these."""
    return {name: point.value for name, point in _entry_points(PASSES).items()}


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
