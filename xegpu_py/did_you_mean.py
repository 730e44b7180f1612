"""The ends of messages that suggest a name which exists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xegpu_py.deferred import deferred

if TYPE_CHECKING:
    import difflib
else:
    difflib = deferred("difflib")


def closest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """The name that is most like another; empty if none is like it.

    Args:
        cutoff: the least similarity, from 0 to 1; see `difflib.get_close_matches`.
    """
    return next(iter(difflib.get_close_matches(name, list(names), 1, cutoff)), "")


def did_you_mean(name: str, names: Iterable[str], prefix: str = "", cutoff: float = 0.6) -> str:
    """A suggestion of the name that is most like an unknown one, as the end of a message; empty if none is.

    Args:
        name: the unknown name.
        names: those that exist.
        prefix: begins each of these names where it is printed.
        cutoff: as for `closest`.
    """
    similar = closest(name, names, cutoff)
    return f"; did you mean '{prefix}{similar}'?" if similar else ""
