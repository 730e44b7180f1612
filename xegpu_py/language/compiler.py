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

CONTAINER, KEY = "container of an element", "key of an element"
"""Hidden variables, while an element is read and assigned."""

LOAD_AHEAD = "xetile.load_ahead"
"""The attribute of loops that load ahead."""

_MERGED = object()
"""Marks a variable that has values of the same types on both sides of a branch."""


class Compiler(Expressions):
    """Compiles one kernel, and inlines all functions that it calls."""

    def __init__(self, carried_types: Mapping[ast.AST, Mapping[str, Any]] | None = None) -> None:
        """Begin a kernel.

        Args:
            carried_types: variables that loops carry although they only assign them, with the outlines of their types.
        """
        super().__init__()
        self._needed = carried_types or {}
        self._assigning: dict[ast.AST, bool] = {}
        self._carried: dict[str, Item] = {}

    # Statements.

    def _block(self, statements: Sequence[ast.stmt]) -> Flow:
        for i, statement in enumerate(statements):
            flow = self._statement(statement)
            if flow is Flow.ESCAPED:
                return flow
            if flow is Flow.MAYBE:
                following_statements = statements[i + 1 :]
                return self._guarded(following_statements) if following_statements else flow
        return Flow.NEXT

    def _guarded(self, following_statements: Sequence[ast.stmt]) -> Flow:
        """The rest of a block, executed unless a flag is set."""
        with self._at(following_statements[0]):
            flags = [f for n in (BREAK, CONTINUE, RETURN) if (f := self.scope.variables.get(n, False)) is not False]
            running = ~functools.reduce(operator.or_, (value_of(f) for f in flags))
            return self._branch(running, lambda: self._block(following_statements), lambda: Flow.ESCAPED)

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
            assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            with self._evaluated_once(assigned_to) as place:
                target_value = self._value(place)
                if isinstance(target_value, Value):
                    # The older spelling of an assignment: `x.assign(y)` is `x = y` in the type and shape of x.
                    (assigned_value,) = self._elements(call.args)
                    stored = value_of(assigned_value, target_value.dtype).broadcast(target_value.shape)
                    self._assign(as_store(place), stored)
                else:
                    method = ast.copy_location(ast.Attribute(place, call.func.attr, ast.Load()), call.func)
                    self._value(ast.copy_location(ast.Call(method, call.args, call.keywords), call))
        elif not isinstance(call, ast.Constant):
            self._value(call)

    @contextmanager
    def _evaluated_once(self, target: ast.expr) -> Iterator[ast.expr]:
        """A target that is read and assigned: the container and the key of an element become variables."""
        if not isinstance(target, ast.Subscript):
            yield target
            return
        variables = self.scope.variables
        variables[CONTAINER], variables[KEY] = self._value(target.value), self._key(target.slice)
        container, key = (ast.copy_location(ast.Name(name, ast.Load()), target) for name in (CONTAINER, KEY))
        try:
            yield ast.copy_location(ast.Subscript(container, key, target.ctx), target)
        finally:
            del variables[CONTAINER], variables[KEY]

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
        with self._evaluated_once(node.target) as place:
            old_value = self._value(ast.copy_location(as_load(place), place))
            operand = self._value(node.value)
            combine = BINARY[type(node.op)]
            if isinstance(old_value, (list, dict, set)):
                # Other variables that hold the list see the change, as in Python.
                self._check_changes(old_value, "an augmented assignment")
                combine = getattr(operator, f"i{combine.__name__.rstrip('_')}")
            self._assign(place, combine(old_value, operand))

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.scope.variables[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            elements = self._unpacked(target, value)
            for element_target, element in zip(target.elts, elements):
                self._assign(
                    element_target.value if isinstance(element_target, ast.Starred) else element_target, element
                )
        elif isinstance(target, ast.Subscript):
            container, key = self._value(target.value), self._key(target.slice)
            if isinstance(container, Value):
                self._fail(
                    f"elements of {described(container)} cannot be assigned in a kernel",
                    "where(mask, value, x) replaces some",
                )
            if not isinstance(container, (Array, list, dict)):
                self._fail(f"elements of {described(container)} cannot be assigned in a kernel")
            if not isinstance(container, Array):
                self._check_key(container, key)
                if not self._containers.carries(container, key):
                    self._check_changes(container, "an assignment of an element")
            container[key] = value
        else:
            self._fail(f"{title(target)} cannot be assigned in a kernel")

    def _unpacked(self, target: ast.Tuple | ast.List, value: Any) -> list[Any]:
        elements = list(self._items(value, "unpacked"))
        starred = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        target_count = len(target.elts)
        if starred:
            at, extra = starred[0], len(elements) - target_count + 1
            if extra < 0:
                self._fail(f"not enough values to unpack (expected at least {target_count - 1}, got {len(elements)})")
            return [*elements[:at], elements[at : at + extra], *elements[at + extra :]]
        if len(elements) != target_count:
            few = "not enough" if len(elements) < target_count else "too many"
            self._fail(f"{few} values to unpack (expected {target_count}, got {len(elements)})")
        return elements

    def _do_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self._fail("a function in a kernel has no decorators")
        self.scope.variables[node.name] = self._closure(node)

    def _do_Assert(self, node: ast.Assert) -> None:
        condition = self._value(node.test)
        if dynamic(condition):
            self._fail("an assertion of a kernel must be known at compile time")
        if not condition:
            message = self._value(node.msg) if node.msg else ast.unparse(node.test)
            self._fail(f"assertion failed: {message}")

    def _do_Return(self, node: ast.Return) -> Flow:
        if node.value is not None:
            value = self._value(node.value)
            self.scope.variables[RESULT] = value.value if isinstance(value, Product) else value
        elif any(isinstance(statement, ast.Return) and statement.value for statement in ast.walk(self.scope.code.node)):
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
        variables_before, contents = dict(self.scope.variables), self._containers.contents()
        items: dict[str, Item] = {}
        live_handles = {id(handle): handle for handle in BUILDING.handles}
        handle_ir = {key: handle.ir for key, handle in live_handles.items()}
        draft = scf.IfOp(condition.ir, has_else=True)
        branches = []
        for block, run in ((draft.then_block, yes), (draft.else_block, no)):
            self.scope.variables = dict(variables_before)
            with self._inside(block):
                flow = run()
            for name, item in self._containers.changes(contents, self._scopes[::-1]).items():
                self.scope.variables[name] = item.get()
                items[name] = item
            self._containers.restore(contents)
            handle_values = {key: handle.ir for key, handle in live_handles.items()}
            branches.append((flow, self.scope.variables, handle_values, block))
            for key, handle in live_handles.items():
                handle.ir = handle_ir[key]
        (then_flow, then_variables, left_places, _), (else_flow, else_variables, right_places, _) = branches
        for name, item in items.items():
            then_variables.setdefault(name, item.get())
            else_variables.setdefault(name, item.get())
        merged: dict[str, Any] = {}
        pairs: list[tuple[list[mlir.Value], list[mlir.Value]]] = []
        pending: list[tuple[str, Tree, int]] = []
        for name in dict.fromkeys((*then_variables, *else_variables)):
            merged_variable = self._merge(
                name, then_variables, else_variables, (then_flow, else_flow), (draft.then_block, draft.else_block)
            )
            if isinstance(merged_variable, tuple) and merged_variable and merged_variable[0] is _MERGED:
                tree, else_tree = merged_variable[1], merged_variable[2]
                pending.append((name, tree, len(tree.values)))
                pairs.append((tree.values, else_tree.values))
            else:
                merged[name] = merged_variable
        changed_handles = [
            key for key in live_handles if left_places[key] != right_places[key] or left_places[key] != handle_ir[key]
        ]
        ours = [v for then_value, _ in pairs for v in then_value] + [left_places[key] for key in changed_handles]
        else_yields = [v for _, else_values in pairs for v in else_values] + [
            right_places[key] for key in changed_handles
        ]
        op = scf.IfOp(condition.ir, [v.type for v in ours], has_else=True)
        for block, drafted, yielded in (
            (op.then_block, draft.then_block, ours),
            (op.else_block, draft.else_block, else_yields),
        ):
            with mlir.InsertionPoint(block):
                yield_op = scf.YieldOp(yielded)
            for drafted_op in list(drafted.operations):
                drafted_op.operation.move_before(yield_op.operation)
        draft.operation.erase()
        results = iter(op.results)
        for name, tree, count in pending:
            merged[name] = tree.rebuilt([next(results) for _ in range(count)])
        for key in changed_handles:
            live_handles[key].ir = next(results)
        for name, item in items.items():
            element = merged.pop(name)
            if isinstance(element, Undefined):
                raise TypeError(f"'{name}' {element.why}")
            item.set(element)
        self.scope.variables = merged
        if then_flow is else_flow:
            return then_flow
        return Flow.MAYBE

    def _merge(
        self,
        name: str,
        then_variables: dict[str, Any],
        else_variables: dict[str, Any],
        flows: tuple[Flow, Flow],
        blocks: tuple[mlir.Block, mlir.Block],
    ) -> Any:
        """Merge a variable of both sides: unchanged, SSA values to yield (`_MERGED`), or undefined."""
        absent = Undefined("is assigned in one branch only")
        flag = name in (BREAK, CONTINUE, RETURN)
        a, b = then_variables.get(name, False if flag else absent), else_variables.get(name, False if flag else absent)
        if a is b:
            return a
        if isinstance(a, Undefined) and isinstance(b, Undefined):
            return a
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            # After an escape nothing reads the variable: any value of its type will do.
            undefined_side = 0 if isinstance(a, Undefined) else 1
            present = b if undefined_side == 0 else a
            if name != RESULT and flows[undefined_side] is Flow.NEXT:
                return absent
            with mlir.InsertionPoint(blocks[undefined_side]):
                dummy = filler(present, absent)
            if dummy is absent:
                return absent
            a, b = (dummy, b) if undefined_side == 0 else (a, dummy)
        if not dynamic(a) and not dynamic(b) and type(a) is type(b) and same(a, b):
            return a
        a, b = self._joined(a, b, blocks)
        then_tree, else_tree = Tree(a), Tree(b)
        if not then_tree.agrees(else_tree):
            then_tree, else_tree = Tree(a, arrays=True), Tree(b, arrays=True)
        if not then_tree.has_types_of(else_tree) or not then_tree.agrees(else_tree) or not then_tree.values:
            if name == RESULT:
                raise TypeError(f"the function returns {described(a)} in one case and {described(b)} in another")
            return Undefined(f"is {described(a)} in one branch and {described(b)} in the other")
        return _MERGED, then_tree, else_tree

    def _joined(self, a: Any, b: Any, blocks: tuple[mlir.Block, mlir.Block]) -> tuple[Any, Any]:
        """Convert numbers and values of two sides to one type, if one of their types holds the other."""
        if isinstance(a, (tuple, list)) and type(a) is type(b) and len(a) == len(b) and not hasattr(a, "_fields"):
            joined_elements = [self._joined(x, y, blocks) for x, y in zip(a, b)]
            return type(a)(x for x, _ in joined_elements), type(a)(y for _, y in joined_elements)
        operands = [v.value if isinstance(v, Product) else v for v in (a, b)]
        numbers = [isinstance(v, (bool, int, float, np.generic)) for v in operands]
        if not all(n or isinstance(v, Value) for n, v in zip(numbers, operands)):
            return a, b
        dtypes = [element_types.of_scalar(v) if n else v.dtype for n, v in zip(numbers, operands)]
        if all(numbers) and dtypes[0] == dtypes[1] and same(a, b):
            return a, b
        if dtypes[0] == dtypes[1] or (numbers[0] == numbers[1] and not all(k.is_integer for k in dtypes)):
            joined_dtypes = (
                dtypes
                if not all(numbers)
                else [element_types.promote(*dtypes)] * 2
                if dtypes[0] != dtypes[1]
                else dtypes
            )
        elif numbers[0] != numbers[1]:
            constant_side = numbers.index(True)
            joined_dtypes = [element_types.with_scalar(dtypes[1 - constant_side], operands[constant_side])] * 2
        else:
            joined_dtypes = [element_types.promote(*dtypes)] * 2
        shapes = [() if n else v.shape for n, v in zip(numbers, operands)]
        converted_values: list[Value] = []
        for block, operand, dtype, shape in zip(blocks, operands, joined_dtypes, shapes[::-1]):
            with mlir.InsertionPoint(block):
                converted_values.append(
                    operand.to(dtype) if isinstance(operand, Value) else constant(dtype, operand, shape)
                )
        return converted_values[0], converted_values[1]

    # Loops.

    @contextmanager
    def _own_flags(self) -> Iterator[None]:
        """Hide the `break` and `continue` flags of the surrounding loop."""
        outer_flags = {n: self.scope.variables.pop(n) for n in (BREAK, CONTINUE) if n in self.scope.variables}
        yield
        for name in (BREAK, CONTINUE):
            self.scope.variables.pop(name, None)
        self.scope.variables.update(outer_flags)

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
            exit_flags = [f for n in (BREAK, RETURN) if isinstance(f := variables.get(n), Value)]
            if exit_flags:
                running = ~functools.reduce(operator.or_, exit_flags)
                return self._branch(running, lambda: self._unrolled(node, items), lambda: Flow.ESCAPED)
        return Flow.NEXT

    def _left(self, node: ast.For | ast.While, broke: Any) -> Flow:
        """Compile the `else` clause of a loop, which runs unless the loop was left.

        Args:
            broke: whether `break` left the loop, known at compile time or not.
        """
        returned = self.scope.variables.get(RETURN, False)
        flow = Flow.MAYBE if isinstance(returned, Value) else Flow.ESCAPED if returned is True else Flow.NEXT
        if flow is Flow.ESCAPED or broke is True or not node.orelse:
            return flow
        stopped = [f for f in (broke, returned) if isinstance(f, Value)]
        if not stopped:
            return self._block(node.orelse)
        completed = ~functools.reduce(operator.or_, stopped)
        else_flow = self._branch(completed, lambda: self._block(node.orelse), lambda: Flow.NEXT)
        return flow if else_flow is Flow.NEXT else Flow.MAYBE

    def _loop(self, node: ast.For, over: Loop) -> Flow:
        """Compile a loop that runs at run time."""
        if isinstance(over.step, int) and over.step > 0:
            start, stop, step = (self._bound(b) for b in (over.start, over.stop, over.step))
            lower_bound: Value | None = None
        else:
            # scf.for counts up: for other steps it counts iterations.
            lower_bound, upper_bound, stride = (self._bound(b) for b in (over.start, over.stop, over.step))
            count = iterations(lower_bound, upper_bound, stride, over.step)
            start, stop, step = self._bound(0), count, self._bound(1)

        def element(counter: Value) -> Value:
            return counter if lower_bound is None else lower_bound + counter * stride

        self._leave_others(node.target)
        numbers = (over.start, over.stop, over.step)
        runs = all(isinstance(n, (int, np.integer)) for n in numbers) and len(range(*map(int, numbers))) > 0
        self._assigning[node] = runs
        for name, type_outline in self._needed.get(node, {}).items():
            # A statement after the loop reads this variable. The loop runs, so that nothing reads the zero.
            self.scope.variables[name] = filled(type_outline)
        if escapes(node.body):
            return self._while(node, None, (start, stop, step, element))
        with self._own_flags():
            self._until_types_agree(lambda: self._try_for(node, start, stop, step, element, over.ahead))
        return self._block(node.orelse)

    def _leave_others(self, target: ast.expr) -> None:
        """Make a loop's counter undefined if it held another type before: the loop may run zero times."""
        variables = self.scope.variables
        for name in assigned([target]):
            old_value = variables.get(name)
            number = isinstance(old_value, int) and not isinstance(old_value, bool)
            if isinstance(old_value, Value):
                number = not old_value.shape and element_types.holds_all(element_types.index, old_value.dtype)
            if name in variables and not number and not isinstance(old_value, Undefined):
                variables[name] = Undefined(f"is {described(old_value)} before the loop, and its counter afterwards")

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
        type_outline = outline(value)
        if not self._assigning.get(node):
            return Undefined("is assigned only in a loop, which may not run at all")
        if not can_be_filled(type_outline):
            return Undefined(f"is {described(value)} in a loop, which does not carry it")
        return Undefined("", node, type_outline)

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
        self, node: ast.For, start: Value, stop: Value, step: Value, element: Callable[[Value], Value], load_ahead: bool
    ) -> None:
        state = self._state(node, [node.target, *node.body])
        loop = scf.ForOp(start.ir, stop.ir, step.ir, state.initial)
        if load_ahead:
            loop.operation.attributes[LOAD_AHEAD] = mlir.UnitAttr.get()
        with self._inside(loop.body):
            state.enter(loop.inner_iter_args)
            self._assign(node.target, element(Value(loop.induction_variable, element_types.index)))
            self._block(node.body)
            self.scope.variables.pop(CONTINUE, None)
            yielded = state.leave(loop.operation)
            scf.YieldOp(yielded)
        carried_indices = [
            i
            for i, (before_iteration, after_iteration) in enumerate(zip(loop.inner_iter_args, yielded))
            if before_iteration != after_iteration
        ]
        if len(carried_indices) != len(yielded):
            loop = drop_loop_carried(loop, carried_indices)
        state.finish(carried_indices, loop.results)

    def _do_While(self, node: ast.While) -> Flow:
        test = node.test
        if isinstance(test, ast.Constant) and not test.value:
            return self._block(node.orelse)
        flow = self._while(node, test, None)
        # Statements after an endless loop are never executed.
        return flow if not isinstance(test, ast.Constant) or escapes(node.body, ast.Break) else Flow.ESCAPED

    def _while(self, node: ast.For | ast.While, test: ast.expr | None, counted_range: Any) -> Flow:
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
                variables_before = dict(self.scope.variables)
                for name, value in hidden.items():
                    self.scope.variables[name] = promoted(value() if callable(value) else value)
                build = functools.partial(self._try_while, node, test, counted_range, list(hidden))
                hidden_carries = self._until_types_agree(build)
                if not isinstance(hidden_carries, dict):
                    break
                self.scope.variables = variables_before
                hidden |= hidden_carries
            broke = self.scope.variables.get(BREAK, False)
        return self._left(node, broke)

    def _try_while(
        self, node: ast.For | ast.While, test: ast.expr | None, counted_range: Any, hidden: list[str]
    ) -> Flow | dict[str, Any]:
        """Build the loop, or give the further hidden variables that it must carry."""
        head = test if isinstance(node, ast.While) else node.target
        assert head is not None
        scope = self.scope
        handle_values: list[mlir.Value] = []
        if counted_range:
            start, stop, step, element = counted_range
            handle_values = [start.ir]
        state = self._state(node, [head, *node.body], hidden)
        initial = [*handle_values, *state.initial]
        carried_types = [v.type for v in initial]
        loop = scf.WhileOp(carried_types, initial)
        where = mlir.Location.current
        before_block = loop.before.blocks.append(*carried_types, arg_locs=[where] * len(carried_types))
        after_block = loop.after.blocks.append(*carried_types, arg_locs=[where] * len(carried_types))
        with self._inside(before_block):
            arguments = list(before_block.arguments)
            state.enter(arguments[len(handle_values) :])
            if counted_range:
                condition: Any = Value(arith.cmpi(arith.CmpIPredicate.slt, arguments[0], stop.ir), element_types.bool_)
            else:
                assert test is not None
                condition = self._stopping(hidden, lambda: self._condition(test))
            if counted_range and hidden:
                condition = condition & ~self._flag(hidden)
            yielded = state.leave(loop.operation)
            scf.ConditionOp(value_of(condition).ir, [*arguments[: len(handle_values)], *yielded])
        with self._inside(after_block):
            arguments = list(after_block.arguments)
            state.enter(arguments[len(handle_values) :])
            if counted_range:
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
            next_counter = [] if not counted_range else [arith.addi(arguments[0], step.ir)]
            scf.YieldOp([*next_counter, *yielded])
        state.finish(list(range(len(yielded))), list(loop.results)[len(handle_values) :])
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
        variables_before = dict(self.scope.variables)
        changed_types: dict[str, Any] = {}
        items: dict[str, Item] = {}
        while True:
            self._carried = items
            self.scope.variables = dict(variables_before)
            for name, type_outline in changed_types.items():
                self.scope.variables[name] = in_types(variables_before[name], type_outline)
            try:
                return build()
            except NotLoopCarried as e:
                e.erase()
                items |= e.items
                variables_before |= {name: item.get() for name, item in e.items.items()}
            except LoopTypeChanged as e:
                e.erase()
                self.scope.variables = variables_before
                new_outline = outline(e.now)
                stays_converted = isinstance(e.now, Undefined) or e.name in items
                if not stays_converted and not (can_be_filled(new_outline) and dynamic(variables_before[e.name])):
                    # An object that is known at compile time, such as a function or a tile: the variable can be
                    # assigned again in each iteration, but not carried to the next one.
                    changed_types.pop(e.name, None)
                    variables_before[e.name] = Undefined(e.why)
                    continue
                if (
                    e.name in changed_types
                    or isinstance(e.now, Undefined)
                    or not fits_types(variables_before[e.name], new_outline)
                ):
                    raise e.error from None
                changed_types[e.name] = new_outline
