"""Files of Python whose passes a tool loads, as mlir-opt loads those of shared libraries (`--load-pass-plugin`)."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source, decode_utf8

_LOADED: dict[str, Source] = {}
"""The files that are loaded, by path."""


def load_pass_plugin(path: str) -> None:
    """Execute a file that registers passes with `register_pass`.

    Raises:
        DiagnosticError: if the file cannot be read or executed, at the line of the file.
    """
    try:
        with open(path, "rb") as f:
            source = decode_utf8(f.read(), path)
    except OSError as e:
        message = f"cannot open pass plugin '{path}': {e.strerror}"
        raise DiagnosticError([Diagnostic("error", message, Position(path))]) from None
    # Dataclasses look up the module of a class, for annotations that are text.
    module = ModuleType(path)
    module.__file__ = path
    _LOADED[path], sys.modules[path] = source, module
    with plugin_errors():
        exec(compile(source.text, path, "exec"), module.__dict__)


@contextmanager
def plugin_errors() -> Iterator[None]:
    """Python's errors in files that are loaded become diagnostics at the innermost line of such a file."""
    try:
        yield
    except DiagnosticError:
        raise
    except Exception as e:
        if isinstance(e, SyntaxError) and e.filename in _LOADED:
            position = Position(e.filename, e.lineno or 0, e.offset or 0)
            raise DiagnosticError([Diagnostic("error", e.msg, position)], [_LOADED[e.filename]]) from None
        lines = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(e.__traceback__) if f.filename in _LOADED]
        if not lines:
            raise
        path, line = lines[-1]
        text = _LOADED[path].line(line) or ""
        position = Position(path, line, len(text) - len(text.lstrip()) + 1)
        message = f"{type(e).__name__}: {' '.join(str(e).split())}"
        raise DiagnosticError([Diagnostic("error", message, position)], [_LOADED[path]]) from None
