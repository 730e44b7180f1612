"""Compiles the source of a Python function to MLIR: Python's statements become scf ops, its expressions values.

The compiler walks the function's syntax tree. Python computes with objects that are known at compile time (numbers,
strings, tuples, shapes): conditions on them choose a branch, and loops over them are unrolled. Operators on values of
the kernel build ops. The scf op of a loop or branch carries the variables that it assigns and the handles that it
moves.

`break`, `continue` and `return` under a condition that is known only at run time set flags: hidden variables that
guard the rest of the block and end the loop.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, scf

from xegpu_py.language.expressions import BINARY, Expressions, Flow
from xegpu_py.language.function_source import as_load, as_store, assigned, assigned_by, escapes, title
from xegpu_py.language.scopes import (
    BREAK,
    CONTINUE,
    RESULT,
    RETURN,
    Item,
    Loop,
    LoopState,
    LoopTypeChanged,
    NotLoopCarried,
    Tree,
    Undefined,
    can_be_filled,
    described,
    dynamic,
    filled,
    filler,
    fits_types,
    in_types,
    iterations,
    outline,
    promoted,
    same,
)
from xegpu_py.passes.rewriting.builders import drop_loop_carried
from xegpu_py.tiles import element_types
from xegpu_py.tiles.arrays import Array
from xegpu_py.tiles.tile_values import Product, Value, constant, value_of
from xegpu_py.tiles.value_base import BUILDING

LOAD_AHEAD = "xetile.load_ahead"
"""The attribute of loops that load ahead."""

_MERGED = object()
"""Marks a variable that has values of the same types on both sides of a branch."""


class Compiler(Expressions):
    """Compiles one kernel, and inlines all functions that it calls."""

    def __init__(self, needed: Mapping[ast.AST, Mapping[str, Any]] | None = None) -> None:
        """Begin a kernel.

        Args:
            needed: variables that loops carry although they only assign them, with the outlines of their types.
        """
        super().__init__()
        self._needed = needed or {}
        self._assigning: dict[ast.AST, bool] = {}
        self._carried: dict[str, Item] = {}

    # Statements.

    def _block(self, statements: Sequence[ast.stmt]) -> Flow:
        for i, statement in enumerate(statements):
            flow = self._statement(statement)
            if flow is Flow.ESCAPED:
                return flow
            if flow is Flow.MAYBE:
                rest = statements[i + 1 :]
                return self._guarded(rest) if rest else flow
        return Flow.NEXT

    def _guarded(self, rest: Sequence[ast.stmt]) -> Flow:
        """The rest of a block, executed unless a flag is set."""
        with self._at(rest[0]):
            flags = [f for n in (BREAK, CONTINUE, RETURN) if (f := self.scope.variables.get(n, False)) is not False]
            running = ~functools.reduce(operator.or_, (value_of(f) for f in flags))
            return self._branch(running, lambda: self._block(rest), lambda: Flow.ESCAPED)

    def _statement(self, node: ast.stmt) -> Flow:
        with self._at(node):
            method = getattr(self, f"_do_{type(node).__name__}", None)
            if method is None:
                self._fail(f"{title(node)} cannot be compiled in a kernel")
            flow: Flow | None = method(node)
            return flow or Flow.NEXT
        raise AssertionError

    def _do_Expr(self, node: ast.Expr) -> None:
        call = node.value
        assigned_to = assigned_by(call)
        if assigned_to is not None:
            held = self._value(assigned_to)
            if isinstance(held, Value):
                # The older spelling of an assignment: `x.assign(y)` is `x = y` in the type and shape of x.
                assert isinstance(call, ast.Call)
                (given,) = self._elements(call.args)
                self._assign(as_store(assigned_to), value_of(given, held.dtype).broadcast(held.shape))
                return
        if not isinstance(call, ast.Constant):
            self._value(call)

    def _do_Pass(self, node: ast.Pass) -> None:
        pass

    def _do_Assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._assign(target, value)

    def _do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self._value(node.value))

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        load = ast.copy_location(as_load(node.target), node.target)
        held, given = self._value(load), self._value(node.value)
        combine = BINARY[type(node.op)]
        if isinstance(held, (list, dict, set)):
            # Other variables that hold the list see the change, as in Python.
            self._check_changes(held, "an augmented assignment")
            combine = getattr(operator, f"i{combine.__name__.rstrip('_')}")
        self._assign(node.target, combine(held, given))

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.scope.variables[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = self._unpacked(target, value)
            for part, one in zip(target.elts, parts):
                self._assign(part.value if isinstance(part, ast.Starred) else part, one)
        elif isinstance(target, ast.Subscript):
            held, key = self._value(target.value), self._key(target.slice)
            if isinstance(held, Value):
                self._fail(
                    f"elements of {described(held)} cannot be assigned in a kernel",
                    "where(mask, value, x) replaces some",
                )
            if not isinstance(held, (Array, list, dict)):
                self._fail(f"elements of {described(held)} cannot be assigned in a kernel")
            if not isinstance(held, Array):
                self._check_key(held, key)
                if not self._containers.carries(held, key):
                    self._check_changes(held, "an assignment of an element")
            held[key] = value
        else:
            self._fail(f"{title(target)} cannot be assigned in a kernel")

    def _unpacked(self, target: ast.Tuple | ast.List, value: Any) -> list[Any]:
        parts = list(self._items(value, "unpacked"))
        starred = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        wanted = len(target.elts)
        if starred:
            at, extra = starred[0], len(parts) - wanted + 1
            if extra < 0:
                self._fail(f"not enough values to unpack (expected at least {wanted - 1}, got {len(parts)})")
            return [*parts[:at], parts[at : at + extra], *parts[at + extra :]]
        if len(parts) != wanted:
            few = "not enough" if len(parts) < wanted else "too many"
            self._fail(f"{few} values to unpack (expected {wanted}, got {len(parts)})")
        return parts

    def _do_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self._fail("a function in a kernel has no decorators")
        self.scope.variables[node.name] = self._closure(node)

    def _do_Assert(self, node: ast.Assert) -> None:
        condition = self._value(node.test)
        if dynamic(condition):
            self._fail("an assertion of a kernel must be known at compile time")
        if not condition:
            shown = self._value(node.msg) if node.msg else ast.unparse(node.test)
            self._fail(f"assertion failed: {shown}")

    def _do_Return(self, node: ast.Return) -> Flow:
        if node.value is not None:
            value = self._value(node.value)
            self.scope.variables[RESULT] = value.value if isinstance(value, Product) else value
        elif any(isinstance(inner, ast.Return) and inner.value for inner in ast.walk(self.scope.code.node)):
            self.scope.variables[RESULT] = None
        self.scope.variables[RETURN] = True
        return Flow.ESCAPED

    def _do_Break(self, node: ast.Break) -> Flow:
        self.scope.variables[BREAK] = True
        return Flow.ESCAPED

    def _do_Continue(self, node: ast.Continue) -> Flow:
        self.scope.variables[CONTINUE] = True
        return Flow.ESCAPED

    # Branches.

    def _do_If(self, node: ast.If) -> Flow:
        condition = self._condition(node.test)
        if not isinstance(condition, Value):
            return self._block(node.body if condition else node.orelse)
        return self._branch(condition, lambda: self._block(node.body), lambda: self._block(node.orelse))

    def _branch(self, condition: Value, yes: Callable[[], Flow], no: Callable[[], Flow]) -> Flow:
        """Compile both sides of a condition that is known only at run time, and merge their variables."""
        before, contents = dict(self.scope.variables), self._containers.contents()
        items: dict[str, Item] = {}
        reached = {id(handle): handle for handle in BUILDING.handles}
        old = {key: handle.ir for key, handle in reached.items()}
        draft = scf.IfOp(condition.ir, has_else=True)
        sides = []
        for block, run in ((draft.then_block, yes), (draft.else_block, no)):
            self.scope.variables = dict(before)
            with self._inside(block):
                flow = run()
            for name, item in self._containers.changes(contents, self._scopes[::-1]).items():
                self.scope.variables[name] = item.get()
                items[name] = item
            self._containers.restore(contents)
            places = {key: handle.ir for key, handle in reached.items()}
            sides.append((flow, self.scope.variables, places, block))
            for key, handle in reached.items():
                handle.ir = old[key]
        (first, left, left_places, _), (second, right, right_places, _) = sides
        for name, item in items.items():
            left.setdefault(name, item.get())
            right.setdefault(name, item.get())
        merged: dict[str, Any] = {}
        pairs: list[tuple[list[mlir.Value], list[mlir.Value]]] = []
        pending: list[tuple[str, Tree, int]] = []
        for name in dict.fromkeys((*left, *right)):
            made = self._merge(name, left, right, (first, second), (draft.then_block, draft.else_block))
            if isinstance(made, tuple) and made and made[0] is _MERGED:
                tree, other = made[1], made[2]
                pending.append((name, tree, len(tree.values)))
                pairs.append((tree.values, other.values))
            else:
                merged[name] = made
        moved = [key for key in reached if left_places[key] != right_places[key] or left_places[key] != old[key]]
        ours = [v for mine, _ in pairs for v in mine] + [left_places[key] for key in moved]
        theirs = [v for _, others in pairs for v in others] + [right_places[key] for key in moved]
        op = scf.IfOp(condition.ir, [v.type for v in ours], has_else=True)
        for block, drafted, yielded in (
            (op.then_block, draft.then_block, ours),
            (op.else_block, draft.else_block, theirs),
        ):
            with mlir.InsertionPoint(block):
                end = scf.YieldOp(yielded)
            for inner in list(drafted.operations):
                inner.operation.move_before(end.operation)
        draft.operation.erase()
        results = iter(op.results)
        for name, tree, count in pending:
            merged[name] = tree.rebuilt([next(results) for _ in range(count)])
        for key in moved:
            reached[key].ir = next(results)
        for name, item in items.items():
            element = merged.pop(name)
            if isinstance(element, Undefined):
                raise TypeError(f"'{name}' {element.why}")
            item.set(element)
        self.scope.variables = merged
        if first is second:
            return first
        return Flow.MAYBE

    def _merge(
        self,
        name: str,
        left: dict[str, Any],
        right: dict[str, Any],
        flows: tuple[Flow, Flow],
        blocks: tuple[mlir.Block, mlir.Block],
    ) -> Any:
        """Merge a variable of both sides: unchanged, SSA values to yield (`_MERGED`), or undefined."""
        absent = Undefined("is assigned in one branch only")
        flag = name in (BREAK, CONTINUE, RETURN)
        a, b = left.get(name, False if flag else absent), right.get(name, False if flag else absent)
        if a is b:
            return a
        if isinstance(a, Undefined) and isinstance(b, Undefined):
            return a
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            # After an escape nothing reads the variable: any value of its type will do.
            missing = 0 if isinstance(a, Undefined) else 1
            present = b if missing == 0 else a
            if name != RESULT and flows[missing] is Flow.NEXT:
                return absent
            with mlir.InsertionPoint(blocks[missing]):
                dummy = filler(present, absent)
            if dummy is absent:
                return absent
            a, b = (dummy, b) if missing == 0 else (a, dummy)
        if not dynamic(a) and not dynamic(b) and type(a) is type(b) and same(a, b):
            return a
        a, b = self._joined(a, b, blocks)
        one, other = Tree(a), Tree(b)
        if not one.agrees(other):
            one, other = Tree(a, arrays=True), Tree(b, arrays=True)
        if not one.has_types_of(other) or not one.agrees(other) or not one.values:
            if name == RESULT:
                raise TypeError(f"the function returns {described(a)} in one case and {described(b)} in another")
            return Undefined(f"is {described(a)} in one branch and {described(b)} in the other")
        return _MERGED, one, other

    def _joined(self, a: Any, b: Any, blocks: tuple[mlir.Block, mlir.Block]) -> tuple[Any, Any]:
        """Convert numbers and values of two sides to one type, if one of their types holds the other."""
        if isinstance(a, (tuple, list)) and type(a) is type(b) and len(a) == len(b) and not hasattr(a, "_fields"):
            pairs = [self._joined(x, y, blocks) for x, y in zip(a, b)]
            return type(a)(x for x, _ in pairs), type(a)(y for _, y in pairs)
        sides = [v.value if isinstance(v, Product) else v for v in (a, b)]
        numbers = [isinstance(v, (bool, int, float, np.generic)) for v in sides]
        if not all(n or isinstance(v, Value) for n, v in zip(numbers, sides)):
            return a, b
        kinds = [element_types.of_scalar(v) if n else v.dtype for n, v in zip(numbers, sides)]
        if all(numbers) and kinds[0] == kinds[1] and same(a, b):
            return a, b
        if kinds[0] == kinds[1] or (numbers[0] == numbers[1] and not all(k.is_integer for k in kinds)):
            wanted = (
                kinds if not all(numbers) else [element_types.promote(*kinds)] * 2 if kinds[0] != kinds[1] else kinds
            )
        elif numbers[0] != numbers[1]:
            known = numbers.index(True)
            wanted = [element_types.with_scalar(kinds[1 - known], sides[known])] * 2
        else:
            wanted = [element_types.promote(*kinds)] * 2
        shapes = [() if n else v.shape for n, v in zip(numbers, sides)]
        made: list[Value] = []
        for block, side, dtype, shape in zip(blocks, sides, wanted, shapes[::-1]):
            with mlir.InsertionPoint(block):
                made.append(side.to(dtype) if isinstance(side, Value) else constant(dtype, side, shape))
        return made[0], made[1]

    # Loops.

    @contextmanager
    def _own_flags(self) -> Iterator[None]:
        """Hide the `break` and `continue` flags of the surrounding loop."""
        outer = {n: self.scope.variables.pop(n) for n in (BREAK, CONTINUE) if n in self.scope.variables}
        yield
        for name in (BREAK, CONTINUE):
            self.scope.variables.pop(name, None)
        self.scope.variables.update(outer)

    def _do_For(self, node: ast.For) -> Flow:
        over = self._value(node.iter)
        if isinstance(over, Loop) and not over.unrolled:
            return self._loop(node, over)
        items = self._items(over, "iterated over")
        with self._own_flags():
            self._unrolled(node, iter(items))
            broke = self.scope.variables.get(BREAK, False)
        return self._left(node, broke)

    def _unrolled(self, node: ast.For, items: Iterator[Any]) -> Flow:
        """Repeat the body until an iteration leaves the loop; if it may, the further ones are guarded."""
        for item in items:
            self._assign(node.target, item)
            flow = self._block(node.body)
            variables = self.scope.variables
            continued = variables.pop(CONTINUE, False)
            if flow is Flow.ESCAPED and continued is False:
                return flow
            left = [f for n in (BREAK, RETURN) if isinstance(f := variables.get(n), Value)]
            if left:
                running = ~functools.reduce(operator.or_, left)
                return self._branch(running, lambda: self._unrolled(node, items), lambda: Flow.ESCAPED)
        return Flow.NEXT

    def _left(self, node: ast.For | ast.While, broke: Any) -> Flow:
        """Compile the `else` clause of a loop, which runs unless the loop was left.

        Args:
            broke: whether `break` left the loop, known at compile time or not.
        """
        left = self.scope.variables.get(RETURN, False)
        flow = Flow.MAYBE if isinstance(left, Value) else Flow.ESCAPED if left is True else Flow.NEXT
        if flow is Flow.ESCAPED or broke is True or not node.orelse:
            return flow
        stopped = [f for f in (broke, left) if isinstance(f, Value)]
        if not stopped:
            return self._block(node.orelse)
        completed = ~functools.reduce(operator.or_, stopped)
        inner = self._branch(completed, lambda: self._block(node.orelse), lambda: Flow.NEXT)
        return flow if inner is Flow.NEXT else Flow.MAYBE

    def _loop(self, node: ast.For, over: Loop) -> Flow:
        """Compile a loop that runs at run time."""
        if isinstance(over.step, int) and over.step > 0:
            start, stop, step = (self._bound(b) for b in (over.start, over.stop, over.step))
            first: Value | None = None
        else:
            # scf.for counts up: for other steps it counts iterations.
            first, last, stride = (self._bound(b) for b in (over.start, over.stop, over.step))
            count = iterations(first, last, stride, over.step)
            start, stop, step = self._bound(0), count, self._bound(1)

        def element(place: Value) -> Value:
            return place if first is None else first + place * stride

        self._leave_others(node.target)
        numbers = (over.start, over.stop, over.step)
        runs = all(isinstance(n, (int, np.integer)) for n in numbers) and len(range(*map(int, numbers))) > 0
        self._assigning[node] = runs
        for name, kinds in self._needed.get(node, {}).items():
            # A statement after the loop reads this variable. The loop runs, so that nothing reads the zero.
            self.scope.variables[name] = filled(kinds)
        if escapes(node.body):
            return self._while(node, None, (start, stop, step, element))
        with self._own_flags():
            self._until_types_agree(lambda: self._try_for(node, start, stop, step, element, over.ahead))
        return self._block(node.orelse)

    def _leave_others(self, target: ast.expr) -> None:
        """Make a loop's counter undefined if it held another type before: the loop may run zero times."""
        variables = self.scope.variables
        for name in assigned([target]):
            old = variables.get(name)
            number = isinstance(old, int) and not isinstance(old, bool)
            if isinstance(old, Value):
                number = not old.shape and element_types.holds_all(element_types.index, old.dtype)
            if name in variables and not number and not isinstance(old, Undefined):
                variables[name] = Undefined(f"is {described(old)} before the loop, and its counter afterwards")

    def _absent(self, node: ast.For | ast.While, name: str, value: Any) -> Undefined:
        """A variable after the only loop that assigns it.

        Args:
            value: its value in the loop.
        """
        if isinstance(value, Undefined):
            return value
        always = isinstance(node, ast.For) and name in assigned([node.target])
        if not always and (escapes(node.body) or escapes(node.body, ast.Continue)):
            return Undefined("is assigned only in a loop, which may be left before")
        kinds = outline(value)
        if not self._assigning.get(node):
            return Undefined("is assigned only in a loop, which may not run at all")
        if not can_be_filled(kinds):
            return Undefined(f"is {described(value)} in a loop, which does not carry it")
        return Undefined("", node, kinds)

    def _bound(self, bound: Any) -> Value:
        if isinstance(bound, float) or (isinstance(bound, Value) and (bound.shape or not bound.dtype.is_integer)):
            raise TypeError(f"'range' needs integers, not {described(bound)}")
        return value_of(bound, element_types.index).to(element_types.index)

    def _state(self, node: ast.For | ast.While, body: Sequence[ast.AST], hidden: Sequence[str] = ()) -> LoopState:
        """The values before a loop: of the variables that it may assign, and of the handles that it may move.

        Args:
            hidden: further variables that it carries.
        """
        variables, items = self.scope.variables, self._carried
        names = [n for n in assigned(body) if n in variables and not isinstance(variables[n], Undefined)]
        # Python numbers that a loop assigns become scalars of the kernel.
        for name in (*names, *items):
            variables[name] = promoted(variables[name])
        names = [*names, *hidden, *items]
        absent = functools.partial(self._absent, node)
        return LoopState(self._scopes, names, items, self._containers, BUILDING.handles, absent)

    def _try_for(
        self, node: ast.For, start: Value, stop: Value, step: Value, element: Callable[[Value], Value], ahead: bool
    ) -> None:
        state = self._state(node, [node.target, *node.body])
        loop = scf.ForOp(start.ir, stop.ir, step.ir, state.initial)
        if ahead:
            loop.operation.attributes[LOAD_AHEAD] = mlir.UnitAttr.get()
        with self._inside(loop.body):
            state.enter(loop.inner_iter_args)
            self._assign(node.target, element(Value(loop.induction_variable, element_types.index)))
            self._block(node.body)
            self.scope.variables.pop(CONTINUE, None)
            yielded = state.leave(loop.operation)
            scf.YieldOp(yielded)
        kept = [i for i, (old, new) in enumerate(zip(loop.inner_iter_args, yielded)) if old != new]
        if len(kept) != len(yielded):
            loop = drop_loop_carried(loop, kept)
        state.finish(kept, loop.results)

    def _do_While(self, node: ast.While) -> Flow:
        test = node.test
        if isinstance(test, ast.Constant) and not test.value:
            return self._block(node.orelse)
        flow = self._while(node, test, None)
        # What follows an endless loop is never executed.
        return flow if not isinstance(test, ast.Constant) or escapes(node.body, ast.Break) else Flow.ESCAPED

    def _while(self, node: ast.For | ast.While, test: ast.expr | None, counted: Any) -> Flow:
        """Compile a `while` loop, or a `for` loop with `break` or `return`: it runs while no flag is set."""
        broke: Any = False
        with self._own_flags():
            hidden: dict[str, Any] = {}
            if escapes(node.body):
                variables = self.scope.variables
                hidden = {BREAK: False, RETURN: variables.get(RETURN, False)}
                hidden |= {RESULT: variables[RESULT]} if RESULT in variables else {}
            # Compiling the body gives the type of its return value; it is compiled again to carry this value.
            while True:
                before = dict(self.scope.variables)
                for name, value in hidden.items():
                    self.scope.variables[name] = promoted(value() if callable(value) else value)
                build = functools.partial(self._try_while, node, test, counted, list(hidden))
                found = self._until_types_agree(build)
                if not isinstance(found, dict):
                    break
                self.scope.variables = before
                hidden |= found
            broke = self.scope.variables.get(BREAK, False)
        return self._left(node, broke)

    def _try_while(
        self, node: ast.For | ast.While, test: ast.expr | None, counted: Any, hidden: list[str]
    ) -> Flow | dict[str, Any]:
        """Build the loop, or give the further hidden variables that it must carry."""
        head = test if isinstance(node, ast.While) else node.target
        assert head is not None
        scope = self.scope
        places: list[mlir.Value] = []
        if counted:
            start, stop, step, element = counted
            places = [start.ir]
        state = self._state(node, [head, *node.body], hidden)
        initial = [*places, *state.initial]
        kinds = [v.type for v in initial]
        loop = scf.WhileOp(kinds, initial)
        where = mlir.Location.current
        before = loop.before.blocks.append(*kinds, arg_locs=[where] * len(kinds))
        after = loop.after.blocks.append(*kinds, arg_locs=[where] * len(kinds))
        with self._inside(before):
            arguments = list(before.arguments)
            state.enter(arguments[len(places) :])
            if counted:
                condition: Any = Value(arith.cmpi(arith.CmpIPredicate.slt, arguments[0], stop.ir), element_types.bool_)
            else:
                assert test is not None
                condition = self._stopping(hidden, lambda: self._condition(test))
            if counted and hidden:
                condition = condition & ~self._flag(hidden)
            yielded = state.leave(loop.operation)
            scf.ConditionOp(value_of(condition).ir, [*arguments[: len(places)], *yielded])
        with self._inside(after):
            arguments = list(after.arguments)
            state.enter(arguments[len(places) :])
            if counted:
                assert isinstance(node, ast.For)
                self._assign(node.target, element(Value(arguments[0], element_types.index)))
            self._block(node.body)
            scope.variables.pop(CONTINUE, None)
            result = scope.variables.get(RESULT)
            if hidden and RESULT in scope.variables and RESULT not in hidden:
                # This pass was needed only for the types of the return value.
                shape = outline(result)
                state.erase(loop.operation)
                return {RESULT: lambda: filled(shape)}
            yielded = state.leave(loop.operation)
            following = [] if not counted else [arith.addi(arguments[0], step.ir)]
            scf.YieldOp([*following, *yielded])
        state.finish(list(range(len(yielded))), list(loop.results)[len(places) :])
        return Flow.NEXT

    def _flag(self, hidden: Sequence[str]) -> Value:
        flags = (value_of(self.scope.variables[n]) for n in (BREAK, RETURN) if n in hidden)
        return functools.reduce(operator.or_, flags)

    def _stopping(self, hidden: Sequence[str], condition: Callable[[], Any]) -> Any:
        """A loop's condition, evaluated only if no flag is set."""
        if not hidden:
            return value_of(condition())
        running = ~self._flag(hidden)
        op = scf.IfOp(running.ir, [running.ir.type], has_else=True)
        with self._inside(op.then_block):
            scf.YieldOp([value_of(condition()).ir])
        with mlir.InsertionPoint(op.else_block):
            scf.YieldOp([constant(element_types.bool_, False).ir])
        return Value(op.results[0], element_types.bool_)

    def _until_types_agree(self, build: Callable[[], Any]) -> Any:
        """Build a loop. If an iteration changes types of variables, convert these before the loop and build again.

        Elements of lists and dictionaries that it assigns are carried when it is built again.
        """
        before = dict(self.scope.variables)
        changed: dict[str, Any] = {}
        items: dict[str, Item] = {}
        while True:
            self._carried = items
            self.scope.variables = dict(before)
            for name, kinds in changed.items():
                self.scope.variables[name] = in_types(before[name], kinds)
            try:
                return build()
            except NotLoopCarried as e:
                e.erase()
                items |= e.items
                before |= {name: item.get() for name, item in e.items.items()}
            except LoopTypeChanged as e:
                e.erase()
                self.scope.variables = before
                wanted = outline(e.now)
                kept = isinstance(e.now, Undefined) or e.name in items
                if not kept and not (can_be_filled(wanted) and dynamic(before[e.name])):
                    # An object that is known at compile time, such as a function or a tile: the variable can be
                    # assigned again in each iteration, but not carried to the next one.
                    changed.pop(e.name, None)
                    before[e.name] = Undefined(e.why)
                    continue
                if e.name in changed or isinstance(e.now, Undefined) or not fits_types(before[e.name], wanted):
                    raise e.error from None
                changed[e.name] = wanted
