"""Older XeTile text mixes integers and index: `scf.for %k = %c0 to %c64 step %c16` with an i32 among them.

MLIR's parser refuses such uses, and says which value, its type and the wanted one; `with_cast` casts the value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from xegpu_py.ir.diagnostics import Diagnostic
from xegpu_py.ir.source import Source

_MIXED = re.compile(
    r"use of value '(%[\w$.-]+)' expects different type than prior uses: '(index|i32|i64)' vs '(index|i32|i64)'"
)
_STATEMENT = re.compile(r"[ \t]*(?:%[^=\n]*=[ \t]*)?\"?[a-z_]\w*\.\w", re.MULTILINE)


def with_cast(source: Source, errors: Sequence[Diagnostic]) -> Source | None:
    """The text with a cast before the statement of the first error.

    Args:
        errors: what MLIR's parser says of the text.

    Returns:
        None if the text is not of XeTile, or the error is another one.
    """
    found = _MIXED.match(errors[0].message) if errors and "xetile." in source.text else None
    if not found or "index" not in found.groups():
        return None
    name, wanted, held = found.groups()
    where = errors[0].position
    at = source.offset(where.line - source.first_line + 1, where.column)
    use = re.compile(rf"{re.escape(name)}(?![\w$.-])").search(source.text, at)
    starts = [m.start() for m in _STATEMENT.finditer(source.text, 0, at + 1)] if use else []
    starts = [s for s in starts if s == 0 or source.text[s - 1] == "\n"]
    if not use or not starts:
        return None
    cast = f"%cast.{name[1:]}.{wanted}.{at}"
    before, between, after = source.text[: starts[-1]], source.text[starts[-1] : use.start()], source.text[use.end() :]
    return replace(source, text=f"{before}{cast} = arith.index_cast {name} : {held} to {wanted} {between}{cast}{after}")
