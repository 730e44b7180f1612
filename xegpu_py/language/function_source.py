"""The source of a function, and the fingerprint that tells whether it changed."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import functools
import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source
from xegpu_py.tiles.element_types import DType

# The source of the functions that are compiled: their syntax trees, and queries on them.


@dataclass(frozen=True)
class Code:
    """A function's source.

    Attributes:
        node: its syntax tree, a function or a lambda.
        source: the text of its file.
        first_line, indent: the offsets of the tree's lines and columns in the file.
    """

    node: ast.FunctionDef | ast.Lambda
    source: Source
    first_line: int
    indent: int

    def position(self, node: ast.AST) -> Position:
        """The position of a node in the user's file."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return Position(self.source.name, line + self.first_line - 1, column + self.indent + 1)


@functools.lru_cache(maxsize=512)
def code_of(function: FunctionType) -> Code:
    """The source of a Python function.

    Raises:
        ValueError: if it cannot be read.
    """
    # The code object leads to the function itself, and not to the one that a decorator wrapped.
    name, file = function.__qualname__, inspect.getsourcefile(function.__code__) or function.__code__.co_filename
    # `inspect.getsourcelines` looks through all modules, which takes longer than a kernel from the cache.
    linecache.checkcache(file)
    lines, first = linecache.getlines(file, function.__globals__), function.__code__.co_firstlineno
    if len(lines) < first:
        raise ValueError(f"the source of '{name}' cannot be read; define it in a file")
    whole, block = "".join(lines), inspect.getblock(lines[first - 1 :])
    indent = len(block[0]) - len(block[0].lstrip())
    whole_source = Source(whole, file)
    if function.__name__ == "<lambda>":
        return Code(_lambda(function, whole), whole_source, 1, 0)
    (node,) = ast.parse(textwrap.dedent("".join(block))).body
    if not isinstance(node, ast.FunctionDef):
        where = Position(file, first + node.lineno - 1, indent + 1)
        raise DiagnosticError(
            [Diagnostic("error", f"{title(node)} cannot be compiled in a kernel", where)], [whole_source]
        )
    return Code(node, whole_source, first, indent)


def _lambda(function: FunctionType, whole: str) -> ast.Lambda:
    """The syntax tree of a lambda: among the lambdas on its line, the one with the same code."""
    code = function.__code__
    found = [n for n in ast.walk(ast.parse(whole)) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno]
    same = [n for n in found if [a.arg for a in n.args.args] == list(code.co_varnames[: code.co_argcount])]
    for node in same if len(same) > 1 else []:
        made = compile(ast.Expression(node), code.co_filename, "eval").co_consts
        if any(getattr(c, "co_code", None) == code.co_code and c.co_consts == code.co_consts for c in made):
            return node
    if not same:
        raise ValueError("the source of a lambda cannot be found; use a function")
    return same[0]


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that statements assign, in order of their first assignment, without those of inner functions."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            if isinstance(node, ast.FunctionDef):
                found[node.name] = None
            return
        held = assigned_by(node)
        if isinstance(held, ast.Name):
            found[held.id] = None
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for node in nodes:
        visit(node)
    return list(found)


def assigned_items(nodes: Iterable[ast.AST]) -> list[ast.Subscript]:
    """The targets `name[key]` of assignments in statements, without those of inner functions."""
    found: list[ast.Subscript] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for child in ast.iter_child_nodes(node):
                visit(child)

    for node in nodes:
        visit(node)
    return found


def escapes(nodes: Iterable[ast.AST], *statements: type[ast.stmt]) -> bool:
    """Whether a loop's body contains one of these statements, by default `break` and `return`, of this loop."""
    wanted = statements or (ast.Break, ast.Return)

    def visit(node: ast.AST, own: bool) -> bool:
        if isinstance(node, wanted) and (own or isinstance(node, ast.Return)):
            return True
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return False
        if isinstance(node, (ast.For, ast.While)):
            # A break in its else clause belongs to the loop around it.
            return any(visit(n, False) for n in node.body) or any(visit(n, own) for n in node.orelse)
        return any(visit(child, own) for child in ast.iter_child_nodes(node))

    return any(visit(node, True) for node in nodes)


def assigned_by(node: ast.AST) -> ast.expr | None:
    """The target `x` of `x.assign(y)`, the older spelling of `x = y`; None for other nodes."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "assign":
        return node.func.value
    return None


def as_store(node: ast.expr) -> ast.expr:
    """An expression as the target of an assignment."""
    return ast.Name(node.id, ast.Store()) if isinstance(node, ast.Name) else node


def as_load(target: ast.expr) -> ast.expr:
    """The target of an augmented assignment as the expression that reads it."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())


_TITLES = {
    "With": "'with'",
    "Try": "'try'",
    "Raise": "'raise'",
    "Import": "'import'",
    "ImportFrom": "'import'",
    "Global": "'global'",
    "Nonlocal": "'nonlocal'",
    "ClassDef": "a class",
    "Delete": "'del'",
    "Yield": "'yield'",
    "YieldFrom": "'yield'",
    "Await": "'await'",
    "AsyncFor": "'async for'",
    "AsyncWith": "'async with'",
    "AsyncFunctionDef": "'async def'",
    "Match": "'match'",
    "Set": "a set",
    "SetComp": "a set",
    "Attribute": "an attribute",
    "Starred": "a starred expression",
}


def title(node: ast.AST) -> str:
    """The name of a Python construct in diagnostics."""
    name = type(node).__name__
    return _TITLES.get(name, name)


# Fingerprints of kernels: two kernels with the same fingerprint compile to the same module.
#
# A fingerprint is found without compiling. It holds the text and the position of the function, the values of the names
# that it uses, and the same for the functions that it calls.

_INSTALLED = {"xegpu_py", "mlir", "numpy", "ml_dtypes"} | (sys.stdlib_module_names - {"__main__"})
"""Packages whose versions represent their content; the versions of this package, MLIR and Python are in every key."""

_GENERATED = ("<string>", dataclasses.__file__, enum.__file__)
"""The files of methods that Python generates."""

_PLAIN = (bool, int, float, complex, str, bytes, DType)


class Uses:
    """What a function that is compiled for given arguments refers to, also through the functions that it calls.

    Attributes:
        fingerprint: its fingerprint; empty if the content of an object is unknown.
    """

    def __init__(self, function: FunctionType, arguments: Mapping[str, Any]) -> None:
        """Look everything up.

        Args:
            arguments: the type of each parameter.
        """
        known = _Walk()
        known.function(function)
        for name, kind in arguments.items():
            known.note(name)
            known.value(kind)
        self._places, self._contents = known.places, known.contents
        versions = ("kernel", np.__version__, ml_dtypes.__version__)
        self.fingerprint: tuple[str, ...] = () if known.unknown else (*versions, *known.texts)

    def is_same(self) -> bool:
        """Whether variables, attributes and the contents of containers are those that were found."""
        return all(find() is found for find, found in self._places) and all(
            _same(_content(holder), held) for holder, held in self._contents
        )


def fingerprint(function: FunctionType, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The fingerprint of a function that is compiled for arguments of these types; see `Uses`."""
    return Uses(function, arguments).fingerprint


_NOTHING = object()


def _captured(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


def _attribute(owner: Any, name: str) -> Any:
    """An attribute as its module, class or object holds it, without calling descriptors."""
    for place in (owner, *getattr(owner if isinstance(owner, type) else type(owner), "__mro__", ())):
        if name in getattr(place, "__dict__", ()):
            return vars(place)[name]
    return _NOTHING


def _content(holder: Any) -> Any:
    """The objects in a container or in the attributes of an object; the elements of an array."""
    if isinstance(holder, np.ndarray):
        return [holder.dtype, holder.shape, holder.tobytes()]
    if isinstance(holder, (list, set)):
        return list(holder)
    return [x for pair in (holder if isinstance(holder, dict) else vars(holder)).items() for x in pair]


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(x is y or (type(x) in _COMPARED and x == y) for x, y in zip(a, b))


_COMPARED = (np.dtype, tuple, bytes)
"""Types of array properties that are compared by their values."""


class _Walk:
    """Collects the texts of functions and values, each function once.

    Attributes:
        texts: the texts.
        unknown: whether the content of an object is unknown.
        places: lookups of variables and attributes, with what they found.
        contents: objects that can change, with their contents.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.unknown = False
        self.places: list[tuple[Callable[[], Any], Any]] = []
        self.contents: list[tuple[Any, Any]] = []
        self._seen: set[FunctionType] = set()
        self._held: set[int] = set()
        self._names: set[str] = set()

    def note(self, *texts: str) -> None:
        self.texts += texts

    def value(self, found: Any) -> None:
        """Note a value."""
        kind = type(found)
        self.note(f"{kind.__module__}.{kind.__qualname__}")
        if found is None or found is Ellipsis or kind in _PLAIN or isinstance(found, (np.generic, np.dtype)):
            self.note(repr(found))
        elif kind in (tuple, frozenset):
            self._items(found if kind is tuple else sorted(found, key=repr))
        elif kind in (list, set, dict):
            if self._hold(found):
                content = _content(found)
                self._items(sorted(content, key=repr) if kind is set else content)
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
            if kind.__dataclass_params__.frozen or self._hold(found):
                self._items(getattr(found, f.name) for f in dataclasses.fields(found))
                self._methods(kind)
        else:
            self.unknown = True
            if (hasattr(found, "__dict__") or isinstance(found, np.ndarray)) and self._hold(found):
                if not _is_installed(kind.__module__) or kind is SimpleNamespace:
                    self._items(vars(found).values())
                self._methods(kind)

    def _hold(self, holder: Any) -> bool:
        """Note the content of an object that can change; False if it was noted before."""
        if id(holder) in self._held:
            self.unknown = True
            return False
        self._held.add(id(holder))
        self.contents.append((holder, _content(holder)))
        return True

    def _place(self, find: Callable[[], Any]) -> Any:
        found = find()
        self.places.append((find, found))
        return found

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
                        self._place(functools.partial(_attribute, cls, name))
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
        if _is_installed(module) and "<locals>" not in name and isinstance(owner, (ModuleType, type(None))):
            return self.note(f"{module}.{name}")
        self.unknown = True
        if isinstance(found, type):
            self._methods(found)
        elif isinstance(found, ModuleType) and not _is_installed(module) and id(found) not in self._held:
            # The function may take any attribute that it names.
            self._held.add(id(found))
            for name in sorted(self._names & vars(found).keys()):
                self.value(self._place(functools.partial(_attribute, found, name)))
        return None

    def function(self, function: FunctionType) -> None:
        """Note a function's text and the values of its names."""
        if _is_installed(function.__module__ or ""):
            return self._installed(function)
        self.note(f"{function.__module__}.{function.__qualname__}")
        if function in self._seen:
            return None
        self._seen.add(function)
        try:
            code = code_of(function)
        except ValueError:
            # A function without source cannot be compiled; the compiler reports this at the call.
            self.unknown = True
            return None
        self.note(str(code.position(code.node)), str(code.indent), ast.dump(code.node, include_attributes=True))
        self._items(function.__defaults__ or ())
        self.value(function.__kwdefaults__ or {})
        names = _outer_names(function.__code__)
        self._names |= names
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for chain in sorted(set(_chains(code.node))):
            first = chain[0]
            if first not in names:
                continue
            self.note(".".join(chain))
            if first in cells:
                found = self._place(functools.partial(_captured, cells[first]))
            else:
                found = self._place(functools.partial(function.__globals__.get, first, _NOTHING))
                if found is _NOTHING:
                    found = getattr(builtins, first, _NOTHING)
            self._reached(found, chain[1:])
        return None

    def _reached(self, found: Any, names: tuple[str, ...]) -> None:
        """Note the attribute of a module, class or object; the name suffices in an installed package."""
        for name in names:
            if found is _NOTHING:
                break
            if isinstance(found, (ModuleType, type)):
                if _is_installed(getattr(found, "__module__", found.__name__)):
                    break
            elif name in getattr(found, "__dict__", ()):
                self.unknown = True
            else:
                break
            found = self._place(functools.partial(_attribute, found, name))
            found = getattr(found, "__func__", found)
        return self.note("undefined") if found is _NOTHING else self.value(found)


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
