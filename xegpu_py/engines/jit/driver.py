"""The fixed parts of native code: LLVM IR files with placeholders."""

from __future__ import annotations

import pkgutil
import re
from functools import lru_cache
from string import Template

from xegpu_py.engines.access import BUILTIN_OFFSETS
from xegpu_py.engines.jit.frame import SLICE, Context, Status

_ROUNDS = 1 << 14
"""Rounds in which no thread of a workgroup gets to its end or past a barrier before other workgroups may run."""


@lru_cache
def functions_of(file: str) -> dict[str, str]:
    """The functions in a file of this folder, with all placeholders replaced, by name.

    The placeholders are the fields of `Context`, which stand for their offsets in bytes, the members of `Status`, and
    those of `driver_functions`.
    """
    words: dict[str, int] = {name: getattr(Context, name).offset for name, *_ in Context._fields_}
    words |= {status.name: int(status) for status in Status}
    words |= {name.lstrip("%"): offset for name, offset in BUILTIN_OFFSETS.items()}
    words |= {"slice": SLICE, "rounds": _ROUNDS}
    data = pkgutil.get_data(__package__, file) or b""
    text = Template(data.decode()).substitute(words)
    found = re.findall(r"^define .*?^}$", text, re.MULTILINE | re.DOTALL)
    return {function[function.index("@") + 1 : function.index("(")]: function for function in found}


def driver_functions() -> list[str]:
    """`launch`, which runs workgroups, `resume`, which continues a workgroup, and the functions that they call."""
    return list(functions_of("driver.ll").values())
