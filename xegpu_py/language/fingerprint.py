"""Fingerprints of kernels: two kernels with the same fingerprint compile to the same module.

A fingerprint is found without compiling. It holds the text and the position of the function, the values of the names
that it uses, and the same for the functions that it calls.
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
"""Packages whose versions represent their content; the versions of this package, MLIR and Python are in every key."""

_GENERATED = ("<string>", dataclasses.__file__, enum.__file__)
"""The files of methods that Python generates."""

_PLAIN = (bool, int, float, complex, str, bytes, DType)


class Unknown(Exception):
    """An object whose content cannot be fingerprinted."""


def fingerprint(function: FunctionType, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The fingerprint of a function that is compiled for these arguments; empty if an object cannot be fingerprinted.

    Args:
        arguments: the type of each parameter.
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
    """The current values of the global and captured variables of a function and of the user's functions that it calls.

    The contents of modules, classes and containers are not compared.
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
            # A function without source cannot be compiled; the compiler reports this at the call.
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
        """Whether all variables still hold the same objects."""
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
    """Collects the texts of functions and values; each function once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._seen: set[FunctionType] = set()

    def note(self, *texts: str) -> None:
        self.texts += texts

    def value(self, found: Any) -> None:
        """Note a value.

        Raises:
            Unknown: if it cannot be fingerprinted.
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
        """Note the methods that users wrote in the classes of an object."""
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
        """Note a module, class or function of an installed package by its name."""
        module = found.__name__ if isinstance(found, ModuleType) else found.__module__ or "builtins"
        name = getattr(found, "__qualname__", "")
        owner = getattr(found, "__self__", None)
        if not _is_installed(module) or "<locals>" in name or not isinstance(owner, (ModuleType, type(None))):
            raise Unknown
        self.note(f"{module}.{name}")

    def function(self, function: FunctionType) -> None:
        """Note a function's text and the values of its names."""
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
        """Note the attribute of a module or class; the name suffices in an installed package."""
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
