"""The variables of a kernel, and those that loops carry."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from mlir import ir as mlir

from xegpu_py.language.function_source import Code
from xegpu_py.tiles import element_types, functions
from xegpu_py.tiles.arrays import Array, Block, Memory, Pointers, assignable
from xegpu_py.tiles.element_types import DType, identity
from xegpu_py.tiles.functions import where
from xegpu_py.tiles.tile_values import Product, Value, constant, value_of
from xegpu_py.tiles.value_base import Handle

# The variables of functions that are being compiled, and operations on the objects that they hold.

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


class LoopCarryRequired(Exception):
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
            LoopCarryRequired: if a loop must carry it.
        """
        found = self.variables[name] if name in self.variables else self._outer(name)
        if isinstance(found, Undefined):
            if found.loop is not None:
                raise LoopCarryRequired(found.loop, name, found.outline)
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
    return isinstance(found, (Value, Product, Handle, Array, Memory, Pointers, Block))


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


def _pointers(indices: Value, array: Array | Memory) -> Pointers:
    return Pointers(array, indices)


class Tree:
    """The SSA values of an object, and how to rebuild the object from others.

    With `arrays` those of arrays are among them, so that control flow can choose one of several.
    """

    def __init__(self, found: Any, arrays: bool = False) -> None:
        self._arrays = arrays
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
            indices, array = self._take(found.indices), self._take(found.array)
            return lambda new: _pointers(indices(new), array(new))
        if isinstance(found, Array) and self._arrays:
            self.values.append(found.ir)
            self._shapes.append(())
            self._fixed.append(found.dtype)
            return lambda new: Array(next(new), found.dtype)
        if isinstance(found, Memory):
            self.values.append(found.ir)
            self._shapes.append(())
            self._fixed.append(found.dtype)
            return lambda new: Memory(next(new), found.dtype)
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
        return element_types.of_scalar(found), ()
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
    return found.dtype == kind or element_types.holds_all(kind, found.dtype)


def in_types(found: Any, outline: Any) -> Any:
    """Convert an object to the types of an outline."""
    kind, rest = outline
    if isinstance(found, (tuple, list)):
        return kind(map(in_types, found, rest))
    return found.to(kind) if isinstance(found, Value) else constant(kind, found, rest)


def filled(outline: Any) -> Any:
    """Zeros of the types of an outline."""
    kind, rest = outline
    if isinstance(kind, element_types.DType):
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


# Loops: the iterables of `for` statements, and the values that a loop carries.


class Loop:
    """`range` and `static_range` in a kernel: the iterable of a `for` statement.

    Attributes:
        unrolled: whether the body is repeated at compile time.
        ahead: whether an iteration loads the blocks of the next one.
    """

    def __init__(
        self, start: Any, stop: Any = None, step: Any = 1, *, unrolled: bool = False, ahead: bool = False
    ) -> None:
        self.start: Any = 0 if stop is None else start
        self.stop: Any = start if stop is None else stop
        self.step, self.unrolled, self.ahead = 1 if step is None else step, unrolled, ahead
        if isinstance(step, int) and step == 0:
            raise ValueError("range() arg 3 must not be zero")


_HINTS = ("loop_unroll_factor", "disallow_acc_multi_buffer", "flatten", "warp_specialize", "disable_licm")
"""Triton's hints to its compiler."""


def range_(start: Any, stop: Any = None, step: Any = 1, num_stages: int | None = None, **hints: Any) -> Loop:
    """A loop of the kernel: `range` in a `for` statement is the same.

    Args:
        start, stop, step: as of `range`.
        num_stages: with 2 and more an iteration loads the blocks of the next one (`xegpu-load-ahead`); 1 by default.
        hints: Triton's hints to its compiler, which change no result.

    Raises:
        ValueError: if `num_stages` is not a positive integer, or the step is 0.
        TypeError: for an unknown hint.
    """
    unknown = [name for name in hints if name not in _HINTS]
    if unknown:
        raise TypeError(f"range() got an unexpected keyword argument '{unknown[0]}'")
    if num_stages is not None and (not isinstance(num_stages, int) or num_stages < 1):
        raise ValueError(f"num_stages is a positive integer, not {num_stages!r}")
    return Loop(start, stop, step, ahead=num_stages is not None and num_stages > 1)


def static_range(start: int, stop: int | None = None, step: int = 1) -> Loop:
    """A loop that is unrolled at compile time; its bounds are known then."""
    return Loop(start, stop, step, unrolled=True)


def iterations(first: Value, last: Value, step: Value, known: Any) -> Value:
    """The number of iterations of range(first, last, step), for a step of either sign.

    Args:
        known: the step, an integer if it is known at compile time.
    """
    up, down = (last - first + step - 1) // step, (first - last - step - 1) // (-step)
    if isinstance(known, int):
        count = down if known < 0 else up
    elif not step.dtype.is_signed:
        count = up
    else:
        count = where(step > 0, up, down)
    return functions.maximum(count, 0)


class LoopTypeChanged(Exception):
    """An iteration of a loop gives a variable another type than it had before the loop.

    Attributes:
        name: the variable's name.
        now: its value after an iteration.
        why: what is wrong, without the variable's name.
        error: the error if the loop cannot be built with the new type.
        erase: erases the loop as far as it is built.
    """

    def __init__(self, name: str, before: Any, now: Any, erase: Callable[[], None]) -> None:
        super().__init__(name)
        self.name, self.now, self.erase = name, now, erase
        rule = "a variable that a loop carries keeps its type" if dynamic(before) else "a loop carries values only"
        self.why = (
            f"{now.why}, but the loop carries it"
            if isinstance(now, Undefined)
            else f"is {described(before)} before the loop and {described(now)} after an iteration; {rule}"
        )
        self.error = TypeError(f"'{name}' {self.why}")


class NotLoopCarried(Exception):
    """A loop assigns elements of lists or dictionaries that it does not carry.

    Attributes:
        items: the elements, by the names of their hidden variables.
        erase: erases the loop as far as it is built.
    """

    def __init__(self, items: Mapping[str, Item], erase: Callable[[], None]) -> None:
        super().__init__(*items)
        self.items, self.erase = items, erase


class LoopState:
    """The loop-carried values: variables of the functions that are being compiled, elements of lists, and handles."""

    def __init__(
        self,
        scopes: Sequence[Scope],
        names: Sequence[str],
        items: Mapping[str, Item],
        containers: Containers,
        handles: Sequence[Handle],
        absent: Callable[[str, Any], Undefined],
    ) -> None:
        """Read the values before the loop.

        Args:
            scopes: the functions that are being compiled, the innermost last.
            names: the variables that the loop carries, also the hidden ones of `items`.
            items: the elements of lists and dictionaries that the loop carries.
            absent: for a variable that the loop assigns and does not carry, and its value in the loop, the variable
                after the loop.
        """
        self._scope, self._absent, self._scopes = scopes[-1], absent, scopes
        self._items, self._containers, self._contents = items, containers, containers.contents()
        self._before = dict(self._scope.variables)
        self._names, self._handles = list(names), list(handles)
        self._trees = {name: Tree(self._before[name]) for name in names}
        self._places = [handle.ir for handle in handles]
        self.initial = [v for tree in self._trees.values() for v in tree.values] + self._places

    def enter(self, arguments: Sequence[mlir.Value]) -> None:
        """Set the variables to the loop's block arguments."""
        given = iter(arguments)
        variables = dict(self._before)
        for name, tree in self._trees.items():
            variables[name] = tree.rebuilt([next(given) for _ in tree.values])
        for handle in self._handles:
            handle.ir = next(given)
        self._set(variables)

    def _set(self, variables: dict[str, Any]) -> None:
        """Set the variables, and the elements of lists and dictionaries that hidden ones stand for."""
        for name, item in self._items.items():
            item.set(variables.pop(name))
        self._scope.variables = variables

    def leave(self, loop: mlir.Operation) -> list[mlir.Value]:
        """The values that the loop yields: the current ones of its variables.

        Raises:
            LoopTypeChanged: if a variable has another type than before the loop.
            NotLoopCarried: if elements of lists or dictionaries have been assigned that the loop does not carry.
        """
        changes = self._containers.changes(self._contents, self._scopes[::-1])
        if not changes.keys() <= self._items.keys():
            raise NotLoopCarried(changes, functools.partial(self.erase, loop))
        yielded: list[mlir.Value] = []
        for name, tree in self._trees.items():
            item = self._items.get(name)
            now = self._like(self._before[name], item.get() if item else self._scope.variables.get(name))
            new = Tree(now) if not isinstance(now, Undefined) else None
            if new is None or not new.has_types_of(tree) or not new.agrees(tree):
                raise LoopTypeChanged(name, self._before[name], now, functools.partial(self.erase, loop))
            yielded += new.values
        return yielded + [handle.ir for handle in self._handles]

    def erase(self, loop: mlir.Operation) -> None:
        """Erase the loop, and reset its handles and the lists and dictionaries that it changes."""
        self._containers.restore(self._contents)
        for handle, old in zip(self._handles, self._places):
            handle.ir = old
        loop.operation.erase()

    def _like(self, before: Any, now: Any) -> Any:
        """A variable's value after an iteration, in its type before the loop if that type holds it."""
        if isinstance(now, Product):
            now = now.value
        if isinstance(before, (tuple, list)) and isinstance(now, (tuple, list)) and len(before) == len(now):
            return type(now)(map(self._like, before, now)) if not hasattr(now, "_fields") else now
        if not isinstance(before, Value):
            return now
        if isinstance(now, (bool, int, float)):
            if before.dtype.holds(now) and (before.dtype.kind == "bool") == isinstance(now, bool):
                return constant(before.dtype, now, before.shape)
            return value_of(now)
        if isinstance(now, Value) and now.shape == before.shape and now.dtype.is_integer and before.dtype.is_integer:
            wide = element_types.promote(now.dtype, before.dtype)
            return now.to(wide)
        return now

    def finish(self, kept: Sequence[int], results: Sequence[mlir.Value]) -> None:
        """Set the variables to the loop's results, which are those of the carried values at `kept`."""
        after = dict(zip(kept, results))
        inner = self._scope.variables
        variables = dict(self._before)
        place = 0
        for name, tree in self._trees.items():
            values = [after.get(place + i, old) for i, old in enumerate(tree.values)]
            place += len(values)
            variables[name] = tree.rebuilt(values)
        for handle, old in zip(self._handles, self._places):
            handle.ir = after.get(place, old)
            place += 1
        for name in inner:
            if name not in variables and name not in (BREAK, CONTINUE, RETURN, RESULT):
                variables[name] = self._absent(name, inner[name])
        self._set(variables)
