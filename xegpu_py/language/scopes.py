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
from typing import TYPE_CHECKING, Any

import numpy as np
from mlir import ir as mlir

from xegpu_py.language.function_source import FunctionSource
from xegpu_py.tiles import element_types, functions
from xegpu_py.tiles.arrays import Array, ArrayTile, Memory, Pointers, assignable
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

    code: FunctionSource
    scope: Scope
    signature: inspect.Signature


class Scope:
    """The variables of a function that is being compiled, and a lookup for outer ones.

    Attributes:
        code: the function's source.
        variables: its variables.
        inner: the variables of the comprehension that is being evaluated, which functions made in it capture.
    """

    def __init__(self, code: FunctionSource, lookup_outer: Callable[[str], Any]) -> None:
        self.code = code
        self.variables: dict[str, Any] = {}
        self.inner: Scope | None = None
        self._outer = lookup_outer

    def get(self, name: str) -> Any:
        """A variable.

        Raises:
            NameError: if it is undefined, or undefined on some paths.
            LoopCarryRequired: if a loop must carry it.
        """
        variable = self.variables[name] if name in self.variables else self._outer(name)
        if isinstance(variable, Undefined):
            if variable.loop is not None:
                raise LoopCarryRequired(variable.loop, name, variable.outline)
            raise NameError(f"'{name}' {variable.why}")
        return variable


def surroundings(function: FunctionType) -> Callable[[str], Any]:
    """The lookup of a Python function's captured, global and built-in names."""
    closed = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}

    def find(name: str) -> Any:
        for namespace in (closed, function.__globals__, vars(builtins)):
            if name in namespace:
                return namespace[name]
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
        self._outside: dict[int, Any] = {}

    @contextmanager
    def inside(self) -> Iterator[None]:
        """In this context, a block of a loop or branch makes the containers."""
        self._levels.append({})
        try:
            yield
        finally:
            for container_left in self._levels.pop():
                self._names.pop(container_left, None)

    def note(self, container: Any) -> None:
        """Note that the innermost block has made an object."""
        if isinstance(container, (list, dict, set)) or hasattr(container, "__next__"):
            self._levels[-1][id(container)] = container

    def note_outside(self, value: Any) -> Any:
        """Note an object of the function's surroundings, and what it contains; returns the object."""
        if not isinstance(value, (int, float, str, bytes)) and id(value) not in self._outside:
            self._outside[id(value)] = value
            if isinstance(value, (list, dict, set, tuple)):
                for element in value.values() if isinstance(value, dict) else value:
                    self.note_outside(element)
        return value

    def is_outside(self, value: Any) -> bool:
        """Whether an object is one of the function's surroundings, not one that the kernel makes."""
        return id(value) in self._outside

    def is_made_here(self, container: Any) -> bool:
        """Whether the innermost block has made a container; objects that no block has made belong to the outermost."""
        return id(container) in self._levels[-1] or len(self._levels) == 1

    def carries(self, container: Any, key: Any) -> bool:
        """Whether loops and branches carry an element: it is one of a container of a surrounding block."""
        if isinstance(container, list):
            is_in_range = isinstance(key, int) and -len(container) <= key < len(container)
        else:
            is_in_range = isinstance(container, dict) and key in container
        return is_in_range and any(id(container) in level for level in self._levels)

    def name(self, container: Any, scopes: Iterable[Scope]) -> str:
        """A unique name of a container for diagnostics: a variable that holds it."""
        if id(container) not in self._names:
            holders = (name for scope in scopes for name, variable in scope.variables.items() if variable is container)
            name, number = next(holders, f"the {type(container).__name__}"), 1
            while f"{name}{' ' * (number > 1)}{number if number > 1 else ''}" in self._names.values():
                number += 1
            self._names[id(container)] = f"{name} {number}" if number > 1 else name
        return self._names[id(container)]

    def contents(self) -> dict[int, Any]:
        """Copies of all lists and dictionaries of the surrounding blocks."""
        containers = (
            container for level in self._levels for container in level.values() if isinstance(container, (list, dict))
        )
        return {id(container): (container, container.copy()) for container in containers}

    @staticmethod
    def restore(contents: Mapping[int, Any]) -> None:
        """Give lists and dictionaries the contents that they had."""
        for container, old_contents in contents.values():
            if isinstance(container, list):
                container[:] = old_contents
            else:
                container.clear()
                container.update(old_contents)

    def changes(self, contents: Mapping[int, Any], scopes: Iterable[Scope]) -> dict[str, Item]:
        """The elements that have been assigned since, by the names of their hidden variables.

        Raises:
            TypeError: if the number of elements has changed.
        """
        changed_items: dict[str, Item] = {}
        for container, old_contents in contents.values():
            keys: Any = container if isinstance(container, dict) else range(len(container))
            if len(container) != len(old_contents) or any(
                key not in old_contents for key in keys if isinstance(container, dict)
            ):
                raise TypeError(
                    f"'{self.name(container, scopes)}' has other elements after the loop or branch than before"
                )
            for key in keys:
                if container[key] is not old_contents[key]:
                    changed_items[f"{self.name(container, scopes)}[{key!r}]"] = Item(container, key)
        return changed_items


def dynamic(value: Any) -> bool:
    """Whether an object is known only at run time."""
    if isinstance(value, (tuple, list)):
        return any(map(dynamic, value))
    return isinstance(value, (Value, Product, Handle, Array, Memory, Pointers, ArrayTile))


def described(value: Any) -> str:
    """The description of an object in diagnostics."""
    if isinstance(value, Value):
        return value.describe()
    if isinstance(value, Product):
        return "a product of matrices"
    if isinstance(value, Closure):
        return "a function"
    if isinstance(value, FunctionType):
        return f"the function {value.__name__}"
    return repr(value)


def _pointers(indices: Value, array: Array | Memory) -> Pointers:
    return Pointers(array, indices)


class Tree:
    """The SSA values of an object, and how to rebuild the object from others.

    With `arrays` those of arrays are among them, so that control flow can choose one of several.
    """

    def __init__(self, value: Any, arrays: bool = False) -> None:
        self._arrays = arrays
        self.values: list[mlir.Value] = []
        self._shapes: list[tuple[int, ...]] = []
        self._fixed: list[Any] = []
        self._rebuild = self._take(value)

    def _take(self, value: Any) -> Callable[[Iterator[mlir.Value]], Any]:
        if isinstance(value, Product):
            value = value.value
        if isinstance(value, Value):
            self.values.append(value.ir)
            self._shapes.append(value.shape)
            return lambda new_values: value.with_ir(next(new_values))
        if isinstance(value, Pointers):
            indices, array = self._take(value.indices), self._take(value.array)
            return lambda new_values: _pointers(indices(new_values), array(new_values))
        if isinstance(value, Array) and self._arrays:
            self.values.append(value.ir)
            self._shapes.append(())
            self._fixed.append(value.dtype)
            return lambda new_values: Array(next(new_values), value.dtype)
        if isinstance(value, Memory):
            self.values.append(value.ir)
            self._shapes.append(())
            self._fixed.append(value.dtype)
            return lambda new_values: Memory(next(new_values), value.dtype)
        if isinstance(value, ArrayTile) and value.assignable:
            self.values += [handle.ir for handle in value.handles]
            self._shapes += [()] * len(value.handles)
            self._fixed += [type(value), value.shape, value.dtype]

            def moved(new_values: Iterator[mlir.Value]) -> ArrayTile:
                handle_copy = assignable(value.copy())
                for handle in handle_copy.handles:
                    handle.ir = next(new_values)
                return handle_copy

            return moved
        if isinstance(value, (tuple, list)):
            self._fixed += [type(value), len(value)]
            subtrees = [self._take(x) for x in value]
            if hasattr(value, "_fields"):
                return lambda new_values: type(value)(*(p(new_values) for p in subtrees))
            return lambda new_values: type(value)(p(new_values) for p in subtrees)
        self._fixed.append(value)
        return lambda new_values: value

    def has_types_of(self, other: Tree) -> bool:
        """Whether the SSA values of both have the same types, and the same shapes in the language."""
        own_types, other_types = (
            [(str(v.type), shape) for v, shape in zip(t.values, t._shapes)] for t in (self, other)
        )
        return own_types == other_types

    def agrees(self, other: Tree) -> bool:
        """Whether both differ in nothing but their SSA values: what is known at compile time is the same."""
        fixed_pairs = zip(self._fixed, other._fixed)
        return len(self._fixed) == len(other._fixed) and all(
            a is b or (type(a) is type(b) and not dynamic(a) and same(a, b)) for a, b in fixed_pairs
        )

    def rebuilt(self, values: Iterable[mlir.Value]) -> Any:
        """The object with other SSA values."""
        return self._rebuild(iter(values))


def promoted(value: Any) -> Any:
    """A Python number, or the numbers in a tuple, as scalars of the kernel; other objects are unchanged."""
    if isinstance(value, Product):
        return value.value
    if isinstance(value, (bool, int, float, np.generic)):
        return value_of(value)
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map(promoted, value))
    return value


def same(a: Any, b: Any) -> bool:
    """Whether two objects that are known at compile time are equal."""
    try:
        return bool(identity(a) == identity(b))
    except (TypeError, ValueError):
        return False


def outline(value: Any) -> Any:
    """The types and shapes of an object's numbers and values; `filled` makes such an object."""
    if isinstance(value, Product):
        value = value.value
    if isinstance(value, Value):
        return value.dtype, value.shape
    if isinstance(value, (bool, int, float)):
        return element_types.of_scalar(value), ()
    if isinstance(value, (tuple, list)):
        return type(value), [outline(x) for x in value]
    return None, value


def can_be_filled(outline: Any) -> bool:
    """Whether `filled` makes an object of an outline: a number, a value, or a tuple or list of them."""
    outline_kind, details = outline
    return isinstance(outline_kind, DType) or (outline_kind in (tuple, list) and all(map(can_be_filled, details)))


def fits_types(value: Any, outline: Any) -> bool:
    """Whether `in_types` can convert an object to other types without loss."""
    outline_kind, details = outline
    if isinstance(value, (tuple, list)):
        return outline_kind is type(value) and len(details) == len(value) and all(map(fits_types, value, details))
    if not isinstance(outline_kind, DType):
        return False
    if isinstance(value, (bool, int, float, np.generic)):
        return outline_kind.holds(value) and (outline_kind.kind == "bool") == isinstance(value, bool)
    if not isinstance(value, Value) or value.shape != details:
        return False
    return value.dtype == outline_kind or element_types.holds_all(outline_kind, value.dtype)


def in_types(value: Any, outline: Any) -> Any:
    """Convert an object to the types of an outline."""
    outline_kind, details = outline
    if isinstance(value, (tuple, list)):
        return outline_kind(map(in_types, value, details))
    return value.to(outline_kind) if isinstance(value, Value) else constant(outline_kind, value, details)


def filled(outline: Any) -> Any:
    """Zeros of the types of an outline."""
    outline_kind, details = outline
    if isinstance(outline_kind, element_types.DType):
        return constant(outline_kind, 0, details)
    if outline_kind in (tuple, list):
        return outline_kind(filled(x) for x in details)
    return details


def filler(value: Any, otherwise: Any) -> Any:
    """An object of the same types whose value nothing reads; `otherwise` if none can be made."""
    if isinstance(value, (Value, Product, bool, int, float)):
        return filled(outline(value))
    if isinstance(value, (tuple, list)):
        fillers = [filler(x, otherwise) for x in value]
        return otherwise if any(p is otherwise for p in fillers) else type(value)(fillers)
    return otherwise if dynamic(value) else value


# Loops: the iterables of `for` statements, and the values that a loop carries.


class Loop:
    """`range` and `static_range` in a kernel: the iterable of a `for` statement.

    Attributes:
        unrolled: whether the body is repeated at compile time.
        load_ahead: whether an iteration loads the blocks of the next one.
    """

    def __init__(
        self, start: Any, stop: Any = None, step: Any = 1, *, unrolled: bool = False, load_ahead: bool = False
    ) -> None:
        self.start: Any = 0 if stop is None else start
        self.stop: Any = start if stop is None else stop
        self.step, self.unrolled, self.ahead = 1 if step is None else step, unrolled, load_ahead
        if isinstance(step, int) and step == 0:
            raise ValueError("range() arg 3 must not be zero")

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Any]: ...


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
    return Loop(start, stop, step, load_ahead=num_stages is not None and num_stages > 1)


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

    def __init__(self, name: str, old_value: Any, now: Any, erase: Callable[[], None]) -> None:
        super().__init__(name)
        self.name, self.now, self.erase = name, now, erase
        rule = "a variable that a loop carries keeps its type" if dynamic(old_value) else "a loop carries values only"
        if isinstance(old_value, Value) and isinstance(now, Value):
            rule += f"; before the loop it can be xl.full({now.shape}, ..., xl.{now.dtype})"
        self.why = (
            f"{now.why}, but the loop carries it"
            if isinstance(now, Undefined)
            else f"is {described(old_value)} before the loop and {described(now)} after an iteration; {rule}"
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
        block_arguments = iter(arguments)
        variables = dict(self._before)
        for name, tree in self._trees.items():
            variables[name] = tree.rebuilt([next(block_arguments) for _ in tree.values])
        for handle in self._handles:
            handle.ir = next(block_arguments)
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
            current = self._like(self._before[name], item.get() if item else self._scope.variables.get(name))
            current_tree = Tree(current) if not isinstance(current, Undefined) else None
            if current_tree is None or not current_tree.has_types_of(tree) or not current_tree.agrees(tree):
                raise LoopTypeChanged(name, self._before[name], current, functools.partial(self.erase, loop))
            yielded += current_tree.values
        return yielded + [handle.ir for handle in self._handles]

    def erase(self, loop: mlir.Operation) -> None:
        """Erase the loop, and reset its handles and the lists and dictionaries that it changes."""
        self._containers.restore(self._contents)
        for handle, handle_before in zip(self._handles, self._places):
            handle.ir = handle_before
        loop.operation.erase()

    def _like(self, initial: Any, current: Any) -> Any:
        """A variable's value after an iteration, in its type before the loop if that type holds it."""
        if isinstance(current, Product):
            current = current.value
        if isinstance(initial, (tuple, list)) and isinstance(current, (tuple, list)) and len(initial) == len(current):
            return type(current)(map(self._like, initial, current)) if not hasattr(current, "_fields") else current
        if not isinstance(initial, Value):
            return current
        if isinstance(current, (bool, int, float)):
            if initial.dtype.holds(current) and (initial.dtype.kind == "bool") == isinstance(current, bool):
                return constant(initial.dtype, current, initial.shape)
            return value_of(current)
        if (
            isinstance(current, Value)
            and current.shape == initial.shape
            and current.dtype.is_integer
            and initial.dtype.is_integer
        ):
            wide = element_types.promote(current.dtype, initial.dtype)
            return current.to(wide)
        return current

    def finish(self, carried_indices: Sequence[int], results: Sequence[mlir.Value]) -> None:
        """Set the variables to the loop's results, which are those of the carried values at `carried_indices`."""
        result_by_index = dict(zip(carried_indices, results))
        loop_variables = self._scope.variables
        variables = dict(self._before)
        result_index = 0
        for name, tree in self._trees.items():
            values = [
                result_by_index.get(result_index + i, initial_value) for i, initial_value in enumerate(tree.values)
            ]
            result_index += len(values)
            variables[name] = tree.rebuilt(values)
        for handle, initial_value in zip(self._handles, self._places):
            handle.ir = result_by_index.get(result_index, initial_value)
            result_index += 1
        for name in loop_variables:
            if name not in variables and name not in (BREAK, CONTINUE, RETURN, RESULT):
                variables[name] = self._absent(name, loop_variables[name])
        self._set(variables)
