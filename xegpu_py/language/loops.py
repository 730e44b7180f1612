"""Loops: the iterables of `for` statements, and the values that a loop carries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir import ir as mlir
from mlir.dialects import scf

from xegpu_py.language import math, types
from xegpu_py.language.functions import where
from xegpu_py.language.held import Handle
from xegpu_py.language.scopes import (
    BREAK,
    CONTINUE,
    RESULT,
    RETURN,
    Containers,
    Item,
    Scope,
    Tree,
    Undefined,
    described,
    dynamic,
)
from xegpu_py.language.values import Product, Value, constant, value_of


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
    return math.maximum(count, 0)


class Retyped(Exception):
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


class Uncarried(Exception):
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
            Retyped: if a variable has another type than before the loop.
            Uncarried: if elements of lists or dictionaries have been assigned that the loop does not carry.
        """
        changes = self._containers.changes(self._contents, self._scopes[::-1])
        if not changes.keys() <= self._items.keys():
            raise Uncarried(changes, functools.partial(self.erase, loop))
        yielded: list[mlir.Value] = []
        for name, tree in self._trees.items():
            item = self._items.get(name)
            now = self._like(self._before[name], item.get() if item else self._scope.variables.get(name))
            new = Tree(now) if not isinstance(now, Undefined) else None
            if new is None or not new.has_types_of(tree) or not new.agrees(tree):
                raise Retyped(name, self._before[name], now, functools.partial(self.erase, loop))
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
            wide = types.promote(now.dtype, before.dtype)
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


def without_unchanged(loop: scf.ForOp, kept: Sequence[int]) -> scf.ForOp:
    """The loop without the carried values that do not change; `kept` are the positions of the others."""
    initial = list(loop.initArgs)
    with mlir.InsertionPoint(loop), loop.operation.location:
        made = scf.ForOp(loop.lowerBound, loop.upperBound, loop.step, [initial[i] for i in kept])
    for name in loop.operation.attributes:
        made.operation.attributes[name] = loop.operation.attributes[name]
    arguments = list(loop.inner_iter_args)
    loop.induction_variable.replace_all_uses_with(made.induction_variable)
    for i, argument in enumerate(arguments):
        argument.replace_all_uses_with(made.inner_iter_args[kept.index(i)] if i in kept else initial[i])
    old = list(loop.body.operations)[-1]
    yielded = [old.operands[i] for i in kept]
    with mlir.InsertionPoint(made.body), loop.operation.location:
        end = scf.YieldOp(yielded)
    for op in list(loop.body.operations)[:-1]:
        op.operation.move_before(end.operation)
    loop.operation.erase()
    return made
