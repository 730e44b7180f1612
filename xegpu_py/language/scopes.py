"""The variables of functions that are being compiled, and operations on the objects that they hold."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from mlir import ir as mlir

from xegpu_py.language import types
from xegpu_py.language.arguments import identity
from xegpu_py.language.arrays import Array, Pointers
from xegpu_py.language.held import Handle
from xegpu_py.language.source import Code
from xegpu_py.language.tiles import Block, assignable
from xegpu_py.language.types import DType
from xegpu_py.language.values import Product, Value, constant, value_of

BREAK, CONTINUE, RETURN, RESULT = "break", "continue", "return", "return value"
"""Hidden variables. Their names are Python keywords or have spaces, so they cannot clash with the user's."""


@dataclass(frozen=True)
class Undefined:
    """A variable that is assigned on some paths through the program only.

    Attributes:
        why: the error message of a use, without its subject.
        loop: the loop that assigns it in each iteration, and has at least one iteration.
        outline: the types that it has after such an iteration.
    """

    why: str
    loop: ast.AST | None = None
    outline: Any = None


class Needed(Exception):
    """A variable that a loop assigns is read after the loop, which therefore must carry it.

    Attributes:
        loop, name, outline: the loop, the variable, and its types.
    """

    def __init__(self, loop: ast.AST, name: str, outline: Any) -> None:
        super().__init__(name)
        self.loop, self.name, self.outline = loop, name, outline


@dataclass
class Closure:
    """A function that is defined in a kernel.

    Attributes:
        code: its source.
        scope: the variables of the function around it.
        signature: its parameters.
    """

    code: Code
    scope: Scope
    signature: inspect.Signature


class Scope:
    """The variables of a function that is being compiled, and a lookup for outer ones.

    Attributes:
        code: the function's source.
        variables: its variables.
        inner: the variables of the comprehension that is being evaluated, which functions made in it capture.
    """

    def __init__(self, code: Code, outer: Callable[[str], Any]) -> None:
        self.code = code
        self.variables: dict[str, Any] = {}
        self.inner: Scope | None = None
        self._outer = outer

    def get(self, name: str) -> Any:
        """A variable.

        Raises:
            NameError: if it is undefined, or undefined on some paths.
            Needed: if a loop must carry it.
        """
        found = self.variables[name] if name in self.variables else self._outer(name)
        if isinstance(found, Undefined):
            if found.loop is not None:
                raise Needed(found.loop, name, found.outline)
            raise NameError(f"'{name}' {found.why}")
        return found


def surroundings(function: FunctionType) -> Callable[[str], Any]:
    """The lookup of a Python function's captured, global and built-in names."""
    closed = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}

    def find(name: str) -> Any:
        for place in (closed, function.__globals__, vars(builtins)):
            if name in place:
                return place[name]
        raise NameError(f"name '{name}' is not defined")

    return find


@dataclass(frozen=True)
class Item:
    """An element of a list or dictionary.

    Attributes:
        held, key: the list or dictionary, and the element's place in it.
    """

    held: Any
    key: Any

    def get(self) -> Any:
        """The element."""
        return self.held[self.key]

    def set(self, value: Any) -> None:
        """Replace the element."""
        self.held[self.key] = value


class Containers:
    """The lists, dictionaries, sets and iterators that a kernel makes, by the block in which it makes them.

    Loops and branches carry the elements that they assign in the lists and dictionaries of surrounding blocks. They
    treat each such element as a hidden variable, whose name is that of `item`.
    """

    def __init__(self) -> None:
        self._levels: list[dict[int, Any]] = [{}]
        self._names: dict[int, str] = {}

    @contextmanager
    def inside(self) -> Iterator[None]:
        """In this context, a block of a loop or branch makes the containers."""
        self._levels.append({})
        try:
            yield
        finally:
            for left in self._levels.pop():
                self._names.pop(left, None)

    def note(self, made: Any) -> None:
        """Note that the innermost block has made an object."""
        if isinstance(made, (list, dict, set)) or hasattr(made, "__next__"):
            self._levels[-1][id(made)] = made

    def is_made_here(self, held: Any) -> bool:
        """Whether the innermost block has made a container; objects that no block has made belong to the outermost."""
        known = any(id(held) in level for level in self._levels)
        return id(held) in self._levels[-1] or not (known or len(self._levels) > 1)

    def carries(self, held: Any, key: Any) -> bool:
        """Whether loops and branches carry an element: it is one of a container of a surrounding block."""
        if isinstance(held, list):
            known = isinstance(key, int) and -len(held) <= key < len(held)
        else:
            known = isinstance(held, dict) and key in held
        return known and any(id(held) in level for level in self._levels)

    def name(self, held: Any, scopes: Iterable[Scope]) -> str:
        """A unique name of a container for diagnostics: a variable that holds it."""
        if id(held) not in self._names:
            holders = (name for scope in scopes for name, found in scope.variables.items() if found is held)
            name, number = next(holders, f"the {type(held).__name__}"), 1
            while f"{name}{' ' * (number > 1)}{number if number > 1 else ''}" in self._names.values():
                number += 1
            self._names[id(held)] = f"{name} {number}" if number > 1 else name
        return self._names[id(held)]

    def contents(self) -> dict[int, Any]:
        """Copies of all lists and dictionaries of the surrounding blocks."""
        held = (found for level in self._levels for found in level.values() if isinstance(found, (list, dict)))
        return {id(found): (found, found.copy()) for found in held}

    @staticmethod
    def restore(contents: Mapping[int, Any]) -> None:
        """Give lists and dictionaries the contents that they had."""
        for held, old in contents.values():
            if isinstance(held, list):
                held[:] = old
            else:
                held.clear()
                held.update(old)

    def changes(self, contents: Mapping[int, Any], scopes: Iterable[Scope]) -> dict[str, Item]:
        """The elements that have been assigned since, by the names of their hidden variables.

        Raises:
            TypeError: if the number of elements has changed.
        """
        found: dict[str, Item] = {}
        for held, old in contents.values():
            keys: Any = held if isinstance(held, dict) else range(len(held))
            if len(held) != len(old) or any(key not in old for key in keys if isinstance(held, dict)):
                raise TypeError(f"'{self.name(held, scopes)}' has other elements after the loop or branch than before")
            for key in keys:
                if held[key] is not old[key]:
                    found[f"{self.name(held, scopes)}[{key!r}]"] = Item(held, key)
        return found


def dynamic(found: Any) -> bool:
    """Whether an object is known only at run time."""
    if isinstance(found, (tuple, list)):
        return any(map(dynamic, found))
    return isinstance(found, (Value, Product, Handle, Array, Pointers, Block))


def described(found: Any) -> str:
    """The description of an object in diagnostics."""
    if isinstance(found, Value):
        return found.describe()
    if isinstance(found, Product):
        return "a product of matrices"
    if isinstance(found, Closure):
        return "a function"
    if isinstance(found, FunctionType):
        return f"the function {found.__name__}"
    return repr(found)


class Tree:
    """The SSA values of an object, and how to rebuild the object from others."""

    def __init__(self, found: Any) -> None:
        self.values: list[mlir.Value] = []
        self._shapes: list[tuple[int, ...]] = []
        self._fixed: list[Any] = []
        self._rebuild = self._take(found)

    def _take(self, found: Any) -> Callable[[Iterator[mlir.Value]], Any]:
        if isinstance(found, Product):
            found = found.value
        if isinstance(found, Value):
            self.values.append(found.ir)
            self._shapes.append(found.shape)
            return lambda new: found.with_ir(next(new))
        if isinstance(found, Pointers):
            self.values.append(found.indices.ir)
            self._shapes.append(found.indices.shape)
            self._fixed.append(found.array)
            return lambda new: Pointers(found.array, found.indices.with_ir(next(new)))
        if isinstance(found, Block) and found.assignable:
            self.values += [handle.ir for handle in found.handles]
            self._shapes += [()] * len(found.handles)
            self._fixed += [type(found), found.shape, found.dtype]

            def moved(new: Iterator[mlir.Value]) -> Block:
                made = assignable(found.copy())
                for handle in made.handles:
                    handle.ir = next(new)
                return made

            return moved
        if isinstance(found, (tuple, list)):
            self._fixed += [type(found), len(found)]
            parts = [self._take(x) for x in found]
            if hasattr(found, "_fields"):
                return lambda new: type(found)(*(p(new) for p in parts))
            return lambda new: type(found)(p(new) for p in parts)
        self._fixed.append(found)
        return lambda new: found

    def has_types_of(self, other: Tree) -> bool:
        """Whether the SSA values of both have the same types, and the same shapes in the language."""
        mine, others = ([(str(v.type), shape) for v, shape in zip(t.values, t._shapes)] for t in (self, other))
        return mine == others

    def agrees(self, other: Tree) -> bool:
        """Whether both differ in nothing but their SSA values: what is known at compile time is the same."""
        pairs = zip(self._fixed, other._fixed)
        return len(self._fixed) == len(other._fixed) and all(
            a is b or (type(a) is type(b) and not dynamic(a) and same(a, b)) for a, b in pairs
        )

    def rebuilt(self, values: Iterable[mlir.Value]) -> Any:
        """The object with other SSA values."""
        return self._rebuild(iter(values))


def promoted(found: Any) -> Any:
    """A Python number, or the numbers in a tuple, as scalars of the kernel; other objects are unchanged."""
    if isinstance(found, Product):
        return found.value
    if isinstance(found, (bool, int, float, np.generic)):
        return value_of(found)
    if isinstance(found, (tuple, list)) and not hasattr(found, "_fields"):
        return type(found)(map(promoted, found))
    return found


def same(a: Any, b: Any) -> bool:
    """Whether two objects that are known at compile time are equal."""
    try:
        return bool(identity(a) == identity(b))
    except (TypeError, ValueError):
        return False


def outline(found: Any) -> Any:
    """The types and shapes of an object's numbers and values; `filled` makes such an object."""
    if isinstance(found, Product):
        found = found.value
    if isinstance(found, Value):
        return found.dtype, found.shape
    if isinstance(found, (bool, int, float)):
        return types.of_scalar(found), ()
    if isinstance(found, (tuple, list)):
        return type(found), [outline(x) for x in found]
    return None, found


def can_be_filled(outline: Any) -> bool:
    """Whether `filled` makes an object of an outline: a number, a value, or a tuple or list of them."""
    kind, rest = outline
    return isinstance(kind, DType) or (kind in (tuple, list) and all(map(can_be_filled, rest)))


def fits_types(found: Any, outline: Any) -> bool:
    """Whether `in_types` can convert an object to other types without loss."""
    kind, rest = outline
    if isinstance(found, (tuple, list)):
        return kind is type(found) and len(rest) == len(found) and all(map(fits_types, found, rest))
    if not isinstance(kind, DType):
        return False
    if isinstance(found, (bool, int, float, np.generic)):
        return kind.holds(found) and (kind.kind == "bool") == isinstance(found, bool)
    if not isinstance(found, Value) or found.shape != rest:
        return False
    return found.dtype == kind or types.holds_all(kind, found.dtype)


def in_types(found: Any, outline: Any) -> Any:
    """Convert an object to the types of an outline."""
    kind, rest = outline
    if isinstance(found, (tuple, list)):
        return kind(map(in_types, found, rest))
    return found.to(kind) if isinstance(found, Value) else constant(kind, found, rest)


def filled(outline: Any) -> Any:
    """Zeros of the types of an outline."""
    kind, rest = outline
    if isinstance(kind, types.DType):
        return constant(kind, 0, rest)
    if kind in (tuple, list):
        return kind(filled(x) for x in rest)
    return rest


def filler(found: Any, otherwise: Any) -> Any:
    """An object of the same types whose value nothing reads; `otherwise` if none can be made."""
    if isinstance(found, (Value, Product, bool, int, float)):
        return filled(outline(found))
    if isinstance(found, (tuple, list)):
        parts = [filler(x, otherwise) for x in found]
        return otherwise if any(p is otherwise for p in parts) else type(found)(parts)
    return otherwise if dynamic(found) else found
