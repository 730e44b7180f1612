"""The fixed parts of native code: functions in LLVM IR files of this folder, with placeholders."""

from __future__ import annotations

import pkgutil
import re
from functools import lru_cache
from string import Template

from xegpu_py.engines.access import BUILTIN_OFFSETS
from xegpu_py.engines.jit.frame import ENDED_PC, SLICE, Context, Status

_ROUNDS = 1 << 14
"""Rounds in which no thread of a workgroup gets to its end or past a barrier before other workgroups may run."""

_WORDS = {
    **{name: getattr(Context, name).offset for name, *_ in Context._fields_},
    **{status.name: int(status) for status in Status},
    **{name.lstrip("%"): offset for name, offset in BUILTIN_OFFSETS.items()},
    "ENDED_PC": ENDED_PC,
    "slice": SLICE,
    "rounds": _ROUNDS,
}
"""The placeholders that all functions may use: the fields of `Context`, which stand for their offsets in bytes, the
members of `Status`, the built-in variables, which stand for their offsets in a thread's block, and some limits."""


@lru_cache
def _texts(file: str) -> dict[str, Template]:
    """The functions in a file of this folder by name, each with the global constants directly before it."""
    text = (pkgutil.get_data(__package__, file) or b"").decode()
    found = re.finditer(r"^(?:@[^\n]*\n)*define .*?@(.*?)\(.*?^}$", text, re.MULTILINE | re.DOTALL)
    return {match[1]: Template(match[0]) for match in found}


def function_of(file: str, name: str, **words: object) -> str:
    """A function of a file, with all placeholders replaced.

    Args:
        name: its name in the file, with placeholders.
        words: the text for placeholders that are not in `_WORDS`.
    """
    return _texts(file)[name].substitute(_WORDS, **words)


def functions_of(file: str, **words: object) -> list[str]:
    """All functions of a file, with all placeholders replaced."""
    return [function_of(file, name, **words) for name in _texts(file)]
