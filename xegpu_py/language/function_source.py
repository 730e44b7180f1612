"""The source of a function, and the fingerprint that tells whether it changed."""

from __future__ import annotations

import abc
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
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import ml_dtypes
import numpy as np

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source
from xegpu_py.tiles.element_types import DType

# The source of the functions that are compiled: their syntax trees, and queries on them.


@dataclass(frozen=True)
class FunctionSource:
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


def code_of(function: FunctionType) -> FunctionSource:
    """The source of a Python function.

    Raises:
        ValueError: if it cannot be read.
    """
    return _code_of(function, function.__code__)


@functools.lru_cache(maxsize=512)
def _code_of(function: FunctionType, _: CodeType) -> FunctionSource:
    # The code object leads to the function itself, and not to the one that a decorator wrapped.
    name, file = function.__qualname__, inspect.getsourcefile(function.__code__) or function.__code__.co_filename
    # `inspect.getsourcelines` looks through all modules, which takes longer than a kernel from the cache.
    linecache.checkcache(file)
    lines, first = linecache.getlines(file, function.__globals__), function.__code__.co_firstlineno
    if len(lines) < first:
        raise ValueError(f"the source of '{name}' cannot be read; define it in a file")
    whole_source = Source("".join(lines), file)
    if function.__name__ == "<lambda>":
        return FunctionSource(_lambda(function, whole_source.text), whole_source, 1, 0)
    block = inspect.getblock(lines[first - 1 :])
    indent = len(block[0]) - len(block[0].lstrip())
    (node,) = ast.parse(textwrap.dedent("".join(block))).body
    if not isinstance(node, ast.FunctionDef):
        where = Position(file, first + node.lineno - 1, indent + 1)
        raise DiagnosticError(
            [Diagnostic("error", f"{title(node)} cannot be compiled in a kernel", where)], [whole_source]
        )
    return FunctionSource(node, whole_source, first, indent)


@functools.lru_cache(maxsize=8)
def _lambdas(file_text: str) -> list[ast.Lambda]:
    return [node for node in ast.walk(ast.parse(file_text)) if isinstance(node, ast.Lambda)]


def _lambda(function: FunctionType, file_text: str) -> ast.Lambda:
    """The syntax tree of a lambda: among the lambdas on its line, the one with the same code."""
    code = function.__code__
    lambdas = _lambdas(file_text)
    same = [
        n
        for n in lambdas
        if n.lineno == code.co_firstlineno
        and [a.arg for a in n.args.args] == list(code.co_varnames[: code.co_argcount])
    ]
    for node in same if len(same) > 1 else []:
        constants = compile(ast.Expression(node), code.co_filename, "eval").co_consts
        if any(getattr(c, "co_code", None) == code.co_code and c.co_consts == code.co_consts for c in constants):
            return node
    if not same:
        raise ValueError("the source of a lambda cannot be found; use a function")
    return same[0]


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that statements assign, in order of their first assignment, without those of inner functions."""
    names: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            if isinstance(node, ast.FunctionDef):
                names[node.name] = None
            return
        assign_target = assigned_by(node)
        if isinstance(assign_target, ast.Name):
            names[assign_target.id] = None
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for node in nodes:
        visit(node)
    return list(names)


def assigned_items(nodes: Iterable[ast.AST]) -> list[ast.Subscript]:
    """The targets `name[key]` of assignments in statements, without those of inner functions."""
    targets: list[ast.Subscript] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            targets.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for child in ast.iter_child_nodes(node):
                visit(child)

    for node in nodes:
        visit(node)
    return targets


def escapes(nodes: Iterable[ast.AST], *statements: type[ast.stmt]) -> bool:
    """Whether a loop's body contains one of these statements, by default `break` and `return`, of this loop."""
    statement_types = statements or (ast.Break, ast.Return)

    def visit(node: ast.AST, in_own_loop: bool) -> bool:
        if isinstance(node, statement_types) and (in_own_loop or isinstance(node, ast.Return)):
            return True
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return False
        if isinstance(node, (ast.For, ast.While)):
            # A break in its else clause belongs to the loop around it.
            return any(visit(n, False) for n in node.body) or any(visit(n, in_own_loop) for n in node.orelse)
        return any(visit(child, in_own_loop) for child in ast.iter_child_nodes(node))

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
# that it uses, and the same for the functions that it calls. All of it is compared before a kernel is run again. Only
# what has no state but Python's attributes and the contents of lists, sets, dictionaries and arrays of numbers can be
# compared: a kernel that refers to anything else is compiled again for each call.

_INSTALLED = {"xegpu_py", "mlir", "numpy", "ml_dtypes"} | (sys.stdlib_module_names - {"__main__"})
"""Packages whose versions represent their content; the versions of this package, MLIR and Python are in every key."""

_PURE = {
    "xegpu_py", "mlir", "numpy", "ml_dtypes", "builtins", "math", "cmath", "operator", "functools", "itertools", "enum",
    "dataclasses", "typing", "types", "abc", "collections", "fractions", "decimal", "numbers", "statistics", "string",
    "_operator", "_functools", "_collections_abc", "typing_extensions",
}  # fmt: skip
"""Installed packages whose functions give equal results for equal arguments, but those of `_IMPURE`."""

_IMPURE = {"numpy.random", "builtins.open", "builtins.input", "builtins.globals", "builtins.locals", "builtins.vars"}

_METACLASSES = (type, abc.ABCMeta, enum.EnumMeta)
"""The classes of classes whose attributes are those in the class and its bases."""

_GENERATED = ("<string>", dataclasses.__file__, enum.__file__)
"""The files of methods that Python generates."""

_FIELDS = (MemberDescriptorType, type(inspect.FullArgSpec.args))
"""The classes of attributes that find a slot, or a field of a named tuple."""

_PLAIN = (bool, int, float, complex, str, bytes, DType)


class Uses:
    """The objects that a function compiled for given arguments refers to, also through the functions that it calls.

    Attributes:
        fingerprint: its fingerprint; empty if the content of an object is unknown.
        opaque: whether it refers to objects whose content cannot be compared.
    """

    def __init__(self, function: FunctionType, arguments: Mapping[str, Any]) -> None:
        """Look everything up.

        Args:
            arguments: the type of each parameter.
        """
        walk = _Walk()
        walk.function(function)
        for name, argument_type in arguments.items():
            walk.note(name)
            walk.value(argument_type)
        self._places, self._contents, self.opaque = walk.places, walk.contents, walk.opaque
        versions = ("kernel", np.__version__, ml_dtypes.__version__)
        self.fingerprint: tuple[str, ...] = () if walk.unknown else (*versions, *walk.texts)

    def is_same(self) -> bool:
        """Whether variables, attributes and the contents of containers are known to be those that were found."""
        return (
            not self.opaque
            and all(find() is looked_up for find, looked_up in self._places)
            and all(_same(_content(holder), contents) for holder, contents in self._contents)
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
    """An attribute as its module, class or object holds it, without calling descriptors but those of slots."""
    if isinstance(owner, enum.EnumMeta) and name in owner.__members__:
        return owner.__members__[name]
    for namespace_owner in (owner, *getattr(owner if isinstance(owner, type) else type(owner), "__mro__", ())):
        if name in getattr(namespace_owner, "__dict__", ()):
            found = vars(namespace_owner)[name]
            is_slot = isinstance(found, MemberDescriptorType) and not isinstance(owner, type)
            return getattr(owner, name, _NOTHING) if is_slot else found
    return _NOTHING


def _has_only_attributes(kind: type) -> bool:
    """Whether the objects of a class have no state but their attributes: no more bytes than these take."""
    slots = sum(isinstance(x, MemberDescriptorType) for cls in kind.__mro__ for x in vars(cls).values())
    own = slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    pointer = tuple.__itemsize__
    return not kind.__itemsize__ and kind.__basicsize__ <= object.__basicsize__ + pointer * own


def _attributes(holder: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots too."""
    slots = {
        name: getattr(holder, name)
        for cls in type(holder).__mro__
        for name, x in vars(cls).items()
        if isinstance(x, MemberDescriptorType) and hasattr(holder, name)
    }
    return {**slots, **getattr(holder, "__dict__", {})}


def _content(holder: Any) -> Any:
    """The objects in a container or in the attributes of an object; the elements of an array; a class's names."""
    if isinstance(holder, type):
        return [*vars(holder)]
    if isinstance(holder, np.ndarray):
        return [holder.dtype, holder.shape, holder.tobytes()]
    if isinstance(holder, (list, set)):
        return list(holder)
    return [x for item in (holder if isinstance(holder, dict) else _attributes(holder)).items() for x in item]


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(x is y or (type(x) in _COMPARED and x == y) for x, y in zip(a, b))


_COMPARED = (np.dtype, tuple, bytes)
"""Types of array properties that are compared by their values."""


class _Walk:
    """Collects the texts of functions and values, each function once.

    Attributes:
        texts: the texts.
        unknown: whether the content of an object is unknown.
        opaque: whether an object has state that cannot be compared.
        places: lookups of variables and attributes, with what they found.
        contents: objects that can change, with their contents.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.unknown = self.opaque = False
        self.places: list[tuple[Callable[[], Any], Any]] = []
        self.contents: list[tuple[Any, Any]] = []
        self._seen: set[FunctionType] = set()
        self._held: dict[int, Any] = {}

    def note(self, *texts: str) -> None:
        self.texts += texts

    def value(self, found: Any) -> None:
        """Note a value."""
        value_type = type(found)
        self.note(f"{value_type.__module__}.{value_type.__qualname__}")
        is_number = (
            isinstance(found, np.generic)
            and value_type.__module__ in ("numpy", "ml_dtypes")
            and value_type is not np.void
        )
        if found is None or found is Ellipsis or value_type in _PLAIN or is_number or isinstance(found, np.dtype):
            self.note(repr(found))
        elif value_type in (tuple, frozenset):
            self._items(found if value_type is tuple else sorted(found, key=repr))
        elif value_type in (list, set, dict):
            if self._hold(found):
                content = _content(found)
                self._items(sorted(content, key=repr) if value_type is set else content)
        elif isinstance(getattr(found, "__kernel_function__", None), FunctionType):
            self.function(found.__kernel_function__)
        elif value_type is FunctionType:
            self.function(found)
        elif value_type is MethodType:
            self._items((found.__self__, found.__func__))
        elif value_type is functools.partial:
            self._items((found.func, found.args, found.keywords))
        elif isinstance(found, (type, BuiltinFunctionType, ModuleType)):
            self._installed(found)
        elif isinstance(found, enum.Enum):
            self.note(str(found.name))
            self._items((found.value,))
            self._methods(value_type)
        elif isinstance(found, tuple) and hasattr(found, "_fields"):
            self._items(found)
            self._methods(value_type)
        elif value_type is np.ndarray and not found.dtype.hasobject:
            self.unknown = True
            self._hold(found)
        elif not _has_only_attributes(value_type) or type(value_type) not in _METACLASSES:
            self.unknown = self.opaque = True
        elif dataclasses.is_dataclass(found):
            if value_type.__dataclass_params__.frozen and id(found) in self._held:
                self.note(str([*self._held].index(id(found))))
            elif self._hold(found):
                self._items(_attributes(found).values())
                self._methods(value_type)
        else:
            self.unknown = True
            if self._hold(found):
                self._items(_attributes(found).values())
                self._methods(value_type)

    def _hold(self, holder: Any) -> bool:
        """Note the content of an object that can change; False if it was noted before."""
        if id(holder) in self._held:
            self.unknown = True
            return False
        self._held[id(holder)] = holder
        self.contents.append((holder, _content(holder)))
        self._place(functools.partial(type, holder))
        return True

    def _place(self, find: Callable[[], Any]) -> Any:
        value = find()
        self.places.append((find, value))
        return value

    def _methods(self, class_: type) -> None:
        """Note what users wrote in a class and its bases: methods, and other attributes."""
        self._place(functools.partial(getattr, class_, "__mro__"))
        for cls in class_.__mro__:
            if _is_installed(cls.__module__) or id(cls) in self._held:
                continue
            self._held[id(cls)] = cls
            self.contents.append((cls, _content(cls)))
            for name, member in sorted(vars(cls).items()):
                wrapped_functions = [
                    member,
                    *(getattr(member, wrapper_attribute, None) for wrapper_attribute in ("__func__", "fget", "func")),
                ]
                functions = [f for f in wrapped_functions if isinstance(f, FunctionType)]
                for function in functions:
                    if function.__code__.co_filename not in _GENERATED:
                        self.note(name)
                        self._place(functools.partial(vars(cls).get, name, _NOTHING))
                        self.function(function)
                if not functions and not isinstance(member, _FIELDS) and not _is_of_class(cls, name):
                    self.note(name)
                    self.value(self._place(functools.partial(vars(cls).get, name, _NOTHING)))

    def _items(self, members: Iterable[Any]) -> None:
        items = list(members)
        self.note(str(len(items)))
        for item in items:
            self.value(item)

    def _installed(self, value: Any) -> None:
        """Note a module, class or function of an installed package by its name."""
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__ or "builtins"
        name = getattr(value, "__qualname__", "")
        owner = getattr(value, "__self__", None)
        if _is_installed(module) and "<locals>" not in name and isinstance(owner, (ModuleType, type(None))):
            package = module.partition(".")[0]
            impure = {package, module, f"{module}.{name}", ".".join(module.split(".")[:2])} & _IMPURE
            if package not in _PURE or impure:
                self.opaque |= not isinstance(value, type)
            return self.note(f"{module}.{name}")
        self.unknown = True
        if isinstance(value, type) and type(value) in _METACLASSES:
            self._methods(value)
        else:
            # A module, whose attributes a function may look up by computed names, or a method of an object.
            self.opaque = True
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
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            self._place(functools.partial(getattr, function, part))
        self.note(str(code.position(code.node)), str(code.indent), ast.dump(code.node, include_attributes=True))
        self._items(function.__defaults__ or ())
        self.value(function.__kwdefaults__ or {})
        names = _outer_names(function.__code__)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for chain in sorted(set(_chains(code.node))):
            root_name = chain[0]
            if root_name not in names:
                continue
            self.note(".".join(chain))
            if root_name in cells:
                captured = self._place(functools.partial(_captured, cells[root_name]))
            else:
                captured = self._place(functools.partial(function.__globals__.get, root_name, _NOTHING))
                if captured is _NOTHING:
                    captured = self._place(functools.partial(vars(builtins).get, root_name, _NOTHING))
            self._reached(captured, chain[1:])
        return None

    def _reached(self, value: Any, names: tuple[str, ...]) -> None:
        """Note the attribute of a module, class or object, as far as it is looked up in these and in nothing else."""
        for name in names:
            if value is _NOTHING:
                break
            if isinstance(value, type):
                if _is_installed(value.__module__) or type(value) not in _METACLASSES:
                    break
                self.unknown = True
            elif not isinstance(value, ModuleType):
                kind = type(value)
                slot = next((vars(cls)[name] for cls in kind.__mro__ if name in vars(cls)), None)
                is_slot = isinstance(slot, MemberDescriptorType) and kind not in _PLAIN
                lookup: Any = kind.__getattribute__
                if lookup is not object.__getattribute__ or not (
                    is_slot or (name in getattr(value, "__dict__", ()) and not hasattr(type(slot), "__set__"))
                ):
                    break
                self.unknown = True
            value = self._place(functools.partial(_attribute, value, name))
            value = getattr(value, "__func__", value)
            if isinstance(value, ModuleType) and value.__name__ in _IMPURE:
                self.opaque = True
        if value is _NOTHING:
            # Nothing, or something that Python finds elsewhere, as by `__getattr__` of a module.
            self.opaque = True
            return self.note("undefined")
        return self.value(value)


def _is_of_class(cls: type, name: str) -> bool:
    """Whether an attribute is one that Python gives each class, or each enumeration."""
    return (name.startswith("__") and name.endswith("__")) or (issubclass(cls, enum.Enum) and name.startswith("_"))


def _is_installed(module: str) -> bool:
    return module.partition(".")[0] in _INSTALLED


def _outer_names(code: CodeType) -> set[str]:
    """The names that a function and those in it look up outside; also those of attributes."""
    nested_codes = (c for c in code.co_consts if isinstance(c, CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(_outer_names, nested_codes))


def _chains(root: ast.AST) -> Iterator[tuple[str, ...]]:
    """Names, each with the attributes that are taken of it: `a.b.c` as ("a", "b", "c")."""
    pending: list[ast.AST] = [root]
    while pending:
        node = pending.pop()
        names: list[str] = []
        base_node = node
        while isinstance(base_node, ast.Attribute):
            names.insert(0, base_node.attr)
            base_node = base_node.value
        if isinstance(base_node, ast.Name):
            yield (base_node.id, *names)
        else:
            pending += ast.iter_child_nodes(base_node if base_node is not node else node)
