"""What a kernel's source depends on, as text: two kernels with one fingerprint compile to the same module.

It is found without compiling: the text of the function and where it stands, and whatever its names stand for, functions
that it calls likewise.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from xegpu_py.language.scopes import surroundings
from xegpu_py.language.source import code_of
from xegpu_py.language.types import DType

_INSTALLED = {"xegpu_py", "mlir", "numpy", "ml_dtypes"} | (sys.stdlib_module_names - {"__main__"})
"""Packages whose version stands for what is in them; those of this one, MLIR and Python are part of every key."""

_GENERATED = ("<string>", dataclasses.__file__, enum.__file__)
"""Where methods come from that nobody has written."""

_PLAIN = (bool, int, float, complex, str, bytes, DType)


class Unknown(Exception):
    """Something whose content cannot be told."""


def fingerprint(function: FunctionType, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The fingerprint of a function that is compiled for these arguments; empty if it cannot be told.

    Args:
        arguments: what each parameter is compiled for.
    """
    try:
        known = _Walk()
        known.function(function)
        for name, kind in arguments.items():
            known.note(name)
            known.value(kind)
        return ("kernel", np.__version__, ml_dtypes.__version__, *known.texts)
    except (Unknown, ValueError, RecursionError):
        return ()


class Outer:
    """What a function and the user's functions that it names see beyond their own variables, as it is now.

    Contents of modules, classes and containers are not looked at.
    """

    def __init__(self, function: FunctionType) -> None:
        self._globals: list[tuple[dict[str, Any], str, Any]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._note(function, set())

    def _note(self, function: FunctionType, seen: set[FunctionType]) -> None:
        seen.add(function)
        try:
            names = {chain[0] for chain in _chains(code_of(function).node)} & _outer_names(function.__code__)
        except ValueError:
            # A function without source cannot be compiled, which is said where it is called.
            return
        found = []
        for name in sorted(names):
            if name in function.__globals__:
                found.append(function.__globals__[name])
                self._globals.append((function.__globals__, name, found[-1]))
        for cell in function.__closure__ or ():
            found.append(_content(cell))
            self._cells.append((cell, found[-1]))
        for value in found:
            inner = getattr(value, "__kernel_function__", value)
            if isinstance(inner, FunctionType) and inner not in seen and not _is_installed(inner.__module__ or ""):
                self._note(inner, seen)

    def is_same(self) -> bool:
        """Whether all names stand for what they stood for."""
        return all(names.get(name, _NOTHING) is value for names, name, value in self._globals) and all(
            _content(cell) is value for cell, value in self._cells
        )


_NOTHING = object()


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


class _Walk:
    """Notes texts of functions and values; each function once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._seen: set[FunctionType] = set()

    def note(self, *texts: str) -> None:
        self.texts += texts

    def value(self, found: Any) -> None:
        """Note a value.

        Raises:
            Unknown: if its content cannot be told.
        """
        kind = type(found)
        self.note(f"{kind.__module__}.{kind.__qualname__}")
        if found is None or found is Ellipsis or kind in _PLAIN or isinstance(found, (np.generic, np.dtype)):
            self.note(repr(found))
        elif kind in (tuple, list):
            self._items(found)
        elif kind in (set, frozenset):
            self._items(sorted(found, key=repr))
        elif kind is dict:
            self._items(x for pair in found.items() for x in pair)
        elif isinstance(getattr(found, "__kernel_function__", None), FunctionType):
            self.function(found.__kernel_function__)
        elif kind is FunctionType:
            self.function(found)
        elif kind is MethodType:
            self._items((found.__self__, found.__func__))
        elif kind is functools.partial:
            self._items((found.func, found.args, found.keywords))
        elif isinstance(found, (type, BuiltinFunctionType, ModuleType)):
            self._installed(found)
        elif isinstance(found, enum.Enum):
            self.note(found.name)
            self._items((found.value,))
            self._methods(kind)
        elif isinstance(found, tuple) and hasattr(found, "_fields"):
            self._items(found)
            self._methods(kind)
        elif dataclasses.is_dataclass(found):
            self._items(getattr(found, f.name) for f in dataclasses.fields(found))
            self._methods(kind)
        else:
            raise Unknown

    def _methods(self, kind: type) -> None:
        """Note what users have written in the classes of an object."""
        for cls in kind.__mro__:
            if _is_installed(cls.__module__):
                continue
            for name, found in sorted(vars(cls).items()):
                parts = (getattr(found, part, None) for part in ("__func__", "fget", "func"))
                for function in (found, *parts):
                    if isinstance(function, FunctionType) and function.__code__.co_filename not in _GENERATED:
                        self.note(name)
                        self.function(function)

    def _items(self, found: Iterable[Any]) -> None:
        items = list(found)
        self.note(str(len(items)))
        for item in items:
            self.value(item)

    def _installed(self, found: Any) -> None:
        """Note a module, class or function whose package's version stands for what it is."""
        module = found.__name__ if isinstance(found, ModuleType) else found.__module__ or "builtins"
        name = getattr(found, "__qualname__", "")
        owner = getattr(found, "__self__", None)
        if not _is_installed(module) or "<locals>" in name or not isinstance(owner, (ModuleType, type(None))):
            raise Unknown
        self.note(f"{module}.{name}")

    def function(self, function: FunctionType) -> None:
        """Note a function's text, and what its names stand for."""
        if _is_installed(function.__module__ or ""):
            return self._installed(function)
        self.note(f"{function.__module__}.{function.__qualname__}")
        if function in self._seen:
            return None
        self._seen.add(function)
        code = code_of(function)
        self.note(str(code.position(code.node)), str(code.indent), ast.dump(code.node, include_attributes=True))
        self._items(function.__defaults__ or ())
        self.value(function.__kwdefaults__ or {})
        outer = _outer_names(function.__code__)
        find = surroundings(function)
        for chain in sorted(set(_chains(code.node))):
            if chain[0] not in outer:
                continue
            self.note(".".join(chain))
            try:
                found = find(chain[0])
            except NameError:
                self.note("undefined")
                continue
            self._reached(found, chain[1:])
        return None

    def _reached(self, found: Any, names: tuple[str, ...]) -> None:
        """Note what attributes of a module or object lead to; of what the language or numpy has, their names do."""
        for name in names:
            if not isinstance(found, (ModuleType, type)) or _is_installed(getattr(found, "__module__", found.__name__)):
                break
            if not hasattr(found, name):
                return self.note("undefined")
            found = getattr(found, name)
        return self.value(found)


def _is_installed(module: str) -> bool:
    return module.partition(".")[0] in _INSTALLED


def _outer_names(code: CodeType) -> set[str]:
    """The names that a function and those in it look up outside; also those of attributes."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(_outer_names, inner))


def _chains(root: ast.AST) -> Iterator[tuple[str, ...]]:
    """Names, each with the attributes that are taken of it: `a.b.c` as ("a", "b", "c")."""
    pending: list[ast.AST] = [root]
    while pending:
        node = pending.pop()
        names: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            names.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield (inner.id, *names)
        else:
            pending += ast.iter_child_nodes(inner if inner is not node else node)
