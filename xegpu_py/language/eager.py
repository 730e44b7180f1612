"""Eager mode: Python runs a kernel op by op."""

from __future__ import annotations

import ast
import copy
import functools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
from mlir import ir as mlir
from msgspec import structs

from xegpu_py import build
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.language.expressions import COMPARE, NUMBERS, conjunction, is_users, replacements, static_items, truth_of
from xegpu_py.language.function_source import FunctionSource, assigned, assigned_by, assigned_items, code_of
from xegpu_py.language.scopes import Loop, dynamic, promoted
from xegpu_py.numerics.dpas import Model
from xegpu_py.reference.evaluate import bind, is_of_workgroup
from xegpu_py.reference.machine import Barrier, EvaluatedFunction, EvaluatedSubgroup, LaunchState, Stepper, Workgroup
from xegpu_py.reference.storage import BASE, AddressSpace
from xegpu_py.target import DEFAULT
from xegpu_py.tiles import element_types
from xegpu_py.tiles.tile_values import Product, Value, constant, value_of
from xegpu_py.tiles.value_base import BUILDING
from xegpu_py.visa.program import extent, place_in

# `engine="eager"`: Python runs a kernel's function, and each op is evaluated as soon as it is built.
#
# Functions of the language build the same ops as for a compiled kernel, in a scratch block. The reference evaluator
# runs each op at once, so `print`, debuggers and exceptions see the kernel's values. Workgroups run one after another;
# the subgroups of a workgroup also run one at a time and switch at barriers.

Make = Callable[[Sequence[mlir.Value]], Mapping[str, Any]]
"""Gives the function's arguments for the SSA values of the kernel's arguments."""

NO_RESULT = "a kernel returns no value; it stores its results in arrays"


def run(
    function: FunctionType,
    types: Sequence[str],
    arguments: Sequence[Any],
    make: Make,
    *,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
    model: Model = "fma",
    target: str = DEFAULT,
    names: Sequence[str] = (),
) -> None:
    """Run a kernel's function over a grid; arrays are changed in place.

    Args:
        types: MLIR's types of the kernel's arguments.
        arguments: an argument for each type.
        block: subgroups of a workgroup. A kernel with maps still runs once for each workgroup.
        model: how dpas rounds.
        target: the GPU for which the kernel is built.
        names: the names of the arguments, for error messages.

    Raises:
        TypeError, ValueError: if an argument does not fit.
        DiagnosticError: at the line of an op that cannot be evaluated.
        Exception: any exception that the function raises.
    """
    size, block_extent = extent(grid, "grid"), extent(1 if block is None else block, "block")
    memory = AddressSpace("global memory", BASE)
    python_semantics = PythonSemantics()
    rewritten = python_semantics.function(function)

    def body(kernel_values: Sequence[mlir.Value]) -> None:
        if rewritten(**make(kernel_values)) is not None:
            raise TypeError(NO_RESULT)

    try:
        with Context.from_pool() as context, mlir.Location.unknown(), np.errstate(all="ignore"):
            values = bind([mlir.Type.parse(t) for t in types], arguments, memory, names=names)
            scratch = _Scratch(function.__name__, types)
            launch = LaunchState(
                EvaluatedFunction(scratch.func),
                size,
                block_extent,
                1,
                1,
                False,
                model,
                values,
                memory,
                built_apart=True,
            )
            for number in range(math.prod(size)):
                group = Workgroup(launch, place_in(launch.grid, number))
                name = function.__name__
                _ThreadTeam(group, context, types, name, target, body).run()
    except DiagnosticError as e:
        e.diagnostics = [_from_one(d) for d in e.diagnostics]
        e.sources = [*e.sources, code_of(function).source]
        raise


def _from_one(diagnostic: Diagnostic) -> Diagnostic:
    """A diagnostic whose columns count from 1: those of Python's frames, at which ops are built, count from 0."""
    where = diagnostic.position
    where = structs.replace(where, column=where.column + 1) if where.line else where
    return structs.replace(diagnostic, position=where, notes=tuple(map(_from_one, diagnostic.notes)))


class _Scratch:
    """A kernel in which ops are built, and another function that takes the ops that have been evaluated."""

    def __init__(self, name: str, types: Sequence[str]) -> None:
        self.module = mlir.Module.create()
        with mlir.InsertionPoint(self.module.body), build.gpu_module("kernels"):
            with build.kernel(name, *types) as self.arguments:
                self.block = mlir.InsertionPoint.current.block
            with build.kernel(f"{name}_done"):
                scratch_block = mlir.InsertionPoint.current.block
        self.func = self.block.owner.operation
        self.end, self.done = (list(b.operations)[-1] for b in (self.block, scratch_block))


class Session:
    """One subgroup's run of the function: it evaluates the ops that the function builds."""

    def __init__(self, subgroup: EvaluatedSubgroup, scratch: _Scratch, pause: Callable[[Barrier | None], None]) -> None:
        """Begin a run.

        Args:
            pause: lets other subgroups run; at a barrier, until the barrier opens.
        """
        self._subgroup, self._scratch, self._pause = subgroup, scratch, pause
        self._stepper = Stepper(subgroup, scratch.func)
        self._asked = self._busy = False

    def built(self) -> None:
        """Evaluate the ops that have been built.

        Raises:
            DiagnosticError: at an op that cannot be evaluated.
        """
        if self._busy or mlir.InsertionPoint.current.block != self._scratch.block:
            # The op whose region is being built is not complete yet.
            return
        self._busy = True
        try:
            for op in list(self._scratch.block.operations)[:-1]:
                self._evaluate(op.operation)
        finally:
            self._busy = False

    def _evaluate(self, op: mlir.Operation) -> None:
        launch = self._subgroup.launch
        if not launch.whole and is_of_workgroup(op):
            launch.whole = True
            self._subgroup.workgroup.subgroups = [self._subgroup]
            if self._asked or self._subgroup.number:
                raise TypeError(
                    "a map divides a matrix among subgroups, but the kernel has asked for the subgroup's number"
                )
        self._asked |= op.name == "gpu.subgroup_id"
        op.move_before(self._scratch.done)
        for barrier in self._stepper.steps(op):
            self._pause(barrier)

    def value(self, value: mlir.Value) -> np.ndarray[Any, Any]:
        """The number or the elements of a value."""
        self.built()
        return np.asarray(self._stepper.value(value))


class _Stopped(BaseException):
    """Ends a subgroup because another one failed."""


class _ThreadTeam:
    """The subgroups of a workgroup, each on its own thread; one thread runs at a time."""

    def __init__(
        self,
        group: Workgroup,
        context: Context,
        types: Sequence[str],
        name: str,
        target: str,
        body: Callable[[Sequence[mlir.Value]], Any],
    ) -> None:
        self._group, self._context, self._types, self._name, self._body = group, context, types, name, body
        self._target = target
        self._paused = threading.Semaphore(0)
        self._resume = [threading.Semaphore(0) for _ in group.subgroups]
        self._waits: dict[int, Barrier | None] = {}
        self._failure: BaseException | None = None
        self._alone = len(group.subgroups) == 1

    def run(self) -> None:
        """Run all subgroups to their ends."""
        if self._alone:
            # Debuggers work best on the main thread.
            return self._subgroup(self._group.subgroups[0])
        threads: dict[int, threading.Thread] = {}
        try:
            while True:
                progress = False
                for subgroup in list(self._group.subgroups):
                    number = subgroup.number
                    if self._group.launch.whole and number:
                        continue
                    thread, barrier = threads.get(number), self._waits.get(number)
                    if thread is None:
                        thread = threading.Thread(target=self._thread, args=(subgroup,), daemon=True)
                        threads[number] = thread
                        thread.start()
                    elif not thread.is_alive() or (barrier is not None and not barrier.is_open(number)):
                        continue
                    else:
                        self._resume[number].release()
                    self._paused.acquire()
                    progress = True
                    if self._failure is not None:
                        raise self._failure
                    if number not in self._waits:
                        thread.join()
                alive = [s for s in self._group.subgroups if (t := threads.get(s.number)) and t.is_alive()]
                if not alive:
                    return None
                if not progress:
                    self._group.report_deadlock(alive)
        finally:
            self._failure = self._failure or _Stopped()
            for number, thread in threads.items():
                self._resume[number].release()
                thread.join()

    def _thread(self, subgroup: EvaluatedSubgroup) -> None:
        try:
            with np.errstate(all="ignore"):
                self._subgroup(subgroup)
        except _Stopped:
            return
        except BaseException as e:
            self._failure = self._failure or e
        finally:
            self._waits.pop(subgroup.number, None)
            self._paused.release()

    def _subgroup(self, subgroup: EvaluatedSubgroup) -> None:
        with self._context, mlir.Location.unknown(), mlir.loc_tracebacks():
            scratch = _Scratch(self._name, self._types)
            pause = self._never if self._alone else lambda barrier: self._pause(subgroup.number, barrier)
            session = Session(subgroup, scratch, pause)
            BUILDING.enter(session, self._target)
            try:
                with mlir.InsertionPoint(scratch.end):
                    self._body(scratch.arguments)
                    session.built()
            finally:
                BUILDING.leave()

    def _never(self, barrier: Barrier | None) -> None:
        if barrier is not None:
            self._group.report_deadlock(self._group.subgroups)

    def _pause(self, number: int, barrier: Barrier | None) -> None:
        self._waits[number] = barrier
        self._paused.release()
        self._resume[number].acquire()
        if self._failure is not None:
            raise _Stopped


# Rewrites Python functions so that Python runs them with the semantics of the compiler.
#
# Python itself executes a kernel of `engine="eager"`. Calls of methods of `PythonSemantics` replace the constructs that
# have another meaning in a kernel than in Python: loops over `range` have counters of type index, `and` and chained
# comparisons work on values, and numbers that a loop or branch assigns become values of the kernel. Lines and columns
# stay the same.

_MEANING = "__xegpu_meaning__"
"""The global variable of rewritten functions that holds a `PythonSemantics`."""


class PythonSemantics:
    """The methods that rewritten functions call."""

    def __init__(self) -> None:
        self._rewritten: dict[FunctionType, FunctionType] = {}
        self._codes: set[CodeType] = set()
        self._replacements = {replacement: f for replacement, f in replacements().items() if replacement not in NUMBERS}

    def function(self, function: FunctionType) -> FunctionType:
        """The rewritten form of a function."""
        if function.__code__ in self._codes:
            return function
        if function not in self._rewritten:
            rewritten = _rewritten(function, self)
            self._codes.update(_codes(rewritten.__code__))
            self._rewritten[function] = rewritten
        return self._rewritten[function]

    def called(self, function: Any) -> Any:
        """The function that a call of `function` calls."""
        inner = getattr(function, "__kernel_function__", None)
        if inner is not None:
            return self.function(inner)
        if function is range:
            return Loop
        if isinstance(function, functools.partial):
            return functools.partial(self.called(function.func), *function.args, **function.keywords)
        if getattr(function, "__takes_functions__", False):
            return functools.partial(self._with_functions, function)
        if isinstance(function, (BuiltinFunctionType, type)):
            try:
                instead = self._replacements.get(function)
            except TypeError:
                instead = None
            return functools.partial(_instead, function, instead) if instead else function
        if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
            if is_users(function.__func__):
                return MethodType(self.function(function.__func__), function.__self__)
        elif isinstance(function, FunctionType) and is_users(function):
            return self.function(function)
        return function

    def _with_functions(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """Call a function of the language with the rewritten forms of the functions among its arguments."""

        def meant(argument: Any) -> Any:
            return self.called(argument) if callable(argument) and not isinstance(argument, type) else argument

        return function(*map(meant, args), **{name: meant(keyword_value) for name, keyword_value in keywords.items()})

    @staticmethod
    def inverse(operand: Any) -> Any:
        """`not`."""
        truth = truth_of(operand)
        return ~truth if isinstance(truth, Value) else not truth

    def lazy(self, all_needed: bool, *operands: Callable[[], Any]) -> Any:
        """`and` and `or`."""
        first_operand = operands[0]()
        if len(operands) == 1:
            return first_operand
        truth = truth_of(first_operand)
        if not isinstance(truth, Value):
            return self.lazy(all_needed, *operands[1:]) if truth == all_needed else first_operand
        return promoted(first_operand if bool(truth) != all_needed else self.lazy(all_needed, *operands[1:]))

    @staticmethod
    def compared(*operands_and_names: Any) -> Any:
        """A chain of comparisons: operands, and between them the names of operators."""
        return conjunction(
            _BY_NAME[name](a, b)
            for a, name, b in zip(operands_and_names[::2], operands_and_names[1::2], operands_and_names[2::2])
        )

    def chosen(self, condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        """`a if c else b`."""
        truth = truth_of(condition)
        selected = yes() if truth else no()
        return promoted(selected) if isinstance(truth, Value) else selected

    @staticmethod
    def iterated(over: Any) -> Iterable[Any]:
        """The iterable of a `for` statement."""
        if isinstance(over, Loop) and not over.unrolled:
            return _Counted(over)
        return PythonSemantics.static(over)

    @staticmethod
    def static(over: Any) -> Iterable[Any]:
        """The iterable of a comprehension."""
        return static_items(over, "iterated over")

    @staticmethod
    def carries(over: Any) -> bool:
        """Whether a loop over this iterable is a loop of the kernel, which carries the variables that it assigns."""
        return isinstance(over, _Counted)

    @staticmethod
    def is_dynamic(condition: Any) -> bool:
        """Whether a condition is known only at run time."""
        return isinstance(condition, (Value, Product))

    promoted = staticmethod(promoted)

    @staticmethod
    def promote_item(container: Any, *keys: Any) -> None:
        """Make values of the kernel of the numbers at these keys of a list or dictionary, by default at all keys."""
        if isinstance(container, (list, dict)):
            for key in keys or (container if isinstance(container, dict) else range(len(container))):
                if isinstance(container, list) or key in container:
                    container[key] = promoted(container[key])

    @staticmethod
    def assigned(target: Any, new_value: Any) -> Any:
        """`x.assign(y)`: y in the type and shape of x, or an object that has a method of this name."""
        if not isinstance(target, Value):
            target.assign(new_value)
            return target
        return value_of(new_value, target.dtype).broadcast(target.shape)

    @classmethod
    def assign_item(cls, container: Any, key: Any, new_value: Any) -> None:
        """`container[key].assign(y)`."""
        target = container[key]
        if (stored := cls.assigned(target, new_value)) is not target:
            container[key] = stored


class _Counted:
    """The counters of a loop of the kernel, of type index."""

    def __init__(self, loop: Loop) -> None:
        for bound in (loop.start, loop.stop, loop.step):
            if isinstance(bound, float) or (isinstance(bound, Value) and (bound.shape or not bound.dtype.is_integer)):
                raise TypeError(f"'range' needs integers, not {bound!r}")
        start, stop, step = (int(bound) for bound in (loop.start, loop.stop, loop.step))
        # A step of 0 that is known only at run time gives no iteration, as in a compiled kernel.
        self._range = range(start, stop, step) if step else range(0)

    def __iter__(self) -> Iterator[Value]:
        return (constant(element_types.index, number) for number in self._range)


_BY_NAME = {node.__name__: function for node, function in COMPARE.items()}


def _instead(function: Callable[..., Any], instead: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call a built-in function, or its replacement if an argument is a value of the kernel."""
    return (instead if any(map(dynamic, (*args, *keywords.values()))) else function)(*args, **keywords)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for nested in code.co_consts:
        if isinstance(nested, CodeType):
            yield from _codes(nested)


def _rewritten(function: FunctionType, python_semantics: PythonSemantics) -> FunctionType:
    code = code_of(function)
    node = _Rewriter().visit(_moved(code))
    free_variables = function.__code__.co_freevars
    # A factory around the function makes the captured variables free variables.
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(node)]
    else:
        node.decorator_list = []
        # Its name is global, as in its file, unless it is captured.
        body = [node] if node.name in free_variables else [ast.Global([node.name]), node]
    parameters = ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in free_variables], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    factory = ast.FunctionDef("factory", parameters, body, [])
    if hasattr(ast, "TypeAlias"):
        factory.type_params = []  # type: ignore[attr-defined]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    compiled = compile(module, code.source.name, "exec")
    (outer_code,) = (c for c in compiled.co_consts if isinstance(c, CodeType))
    function_code = next(
        c for c in outer_code.co_consts if isinstance(c, CodeType) and c.co_name == function.__code__.co_name
    )
    cells = dict(zip(free_variables, function.__closure__ or ()))
    rewritten = FunctionType(
        function_code,
        {**function.__globals__, _MEANING: python_semantics},
        function.__name__,
        function.__defaults__,
        tuple(cells[n] for n in function_code.co_freevars),
    )
    rewritten.__kwdefaults__, rewritten.__qualname__ = function.__kwdefaults__, function.__qualname__
    return rewritten


def _moved(code: FunctionSource) -> Any:
    """A function's syntax tree with the lines and columns of its file."""
    node = copy.deepcopy(code.node)
    for child in ast.walk(node):
        if isinstance(child, (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.alias, ast.ExceptHandler)):
            child.lineno += code.first_line - 1
            child.col_offset += code.indent
            child.end_lineno = child.end_lineno and child.end_lineno + code.first_line - 1
            child.end_col_offset = child.end_col_offset and child.end_col_offset + code.indent
    return node


class _Rewriter(ast.NodeTransformer):
    """Replaces constructs whose meaning in a kernel differs from Python's by calls of `PythonSemantics`'s methods."""

    def __init__(self) -> None:
        self._names = 0

    def _new(self) -> str:
        self._names += 1
        return f"__xegpu_{self._names}__"

    def _call(self, method: str, at: ast.AST, *arguments: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name(_MEANING, ast.Load()), method, ast.Load())
        return ast.fix_missing_locations(ast.copy_location(ast.Call(function, list(arguments), []), at))

    def _deferred(self, node: ast.expr) -> ast.expr:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(nothing, node), node)

    def _promotions(self, names: Sequence[str], items: Sequence[ast.Subscript], at: ast.stmt) -> list[ast.stmt]:
        """Statements that make values of the kernel of the numbers in bound variables, and of elements of lists."""
        statements: list[ast.stmt] = []
        for name in names:
            value = self._call("promoted", at, ast.Name(name, ast.Load()))
            statements.append(ast.Assign([ast.Name(name, ast.Store())], value))
        for item in items:
            keys = [copy.deepcopy(item.slice)] if _is_constant(item.slice) else []
            container = ast.Name(item.value.id, ast.Load())  # type: ignore[attr-defined]
            statements.append(ast.Expr(self._call("promote_item", at, container, *keys)))
        unbound = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [ast.Pass()])
        guarded: list[ast.stmt] = [ast.Try([statement], [copy.deepcopy(unbound)], [], []) for statement in statements]
        return [ast.fix_missing_locations(ast.copy_location(s, at)) for s in guarded]

    def _keep(self, value: ast.expr, at: ast.stmt) -> tuple[ast.stmt, ast.expr]:
        """An assignment of a value to a new variable, and that variable."""
        name = self._new()
        assign = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), at)
        return ast.fix_missing_locations(assign), ast.copy_location(ast.Name(name, ast.Load()), at)

    # Statements.

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        names, items = assigned([node.target, *node.body]), assigned_items([node.target, *node.body])
        self.generic_visit(node)
        saved_iterable, over = self._keep(self._call("iterated", node.iter, node.iter), node)
        node.iter = over
        promotions = self._promotions(names, items, node)
        if not promotions:
            return [saved_iterable, node]
        test = self._call("carries", node, ast.Name(over.id, ast.Load()))  # type: ignore[attr-defined]
        return [saved_iterable, ast.copy_location(ast.If(test, promotions, []), node), node]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        names, items = assigned([*node.body, node.test]), assigned_items(node.body)
        self.generic_visit(node)
        return [*self._promotions(names, items, node), node]

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        names, items = assigned([*node.body, *node.orelse]), assigned_items([*node.body, *node.orelse])
        self.generic_visit(node)
        saved_test, condition = self._keep(node.test, node)
        node.test = condition
        promotions = self._promotions(names, items, node)
        if not promotions:
            return [saved_test, node]
        test = self._call("is_dynamic", node, ast.Name(condition.id, ast.Load()))  # type: ignore[attr-defined]
        return [saved_test, node, ast.copy_location(ast.If(test, promotions, []), node)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        assign_target = assigned_by(node.value)
        self.generic_visit(node)
        if not isinstance(node.value, ast.Call) or len(node.value.args) != 1 or node.value.keywords:
            return node
        if isinstance(assign_target, ast.Name):
            value = self._call("assigned", node, ast.Name(assign_target.id, ast.Load()), *node.value.args)
            return ast.copy_location(ast.Assign([ast.Name(assign_target.id, ast.Store())], value), node)
        if isinstance(assign_target, ast.Subscript) and not isinstance(assign_target.slice, (ast.Slice, ast.Tuple)):
            node.value = self._call("assign_item", node, assign_target.value, assign_target.slice, *node.value.args)
        return node

    # Expressions.

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        node.func = self._call("called", node.func, node.func)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        assigns = _assigns(node)
        self.generic_visit(node)
        if assigns:
            return node
        return self._call("chosen", node, node.test, self._deferred(node.body), self._deferred(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        assigns = _assigns(node)
        self.generic_visit(node)
        if assigns:
            return node
        is_and = ast.copy_location(ast.Constant(isinstance(node.op, ast.And)), node)
        return self._call("lazy", node, is_and, *map(self._deferred, node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return self._call("inverse", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1 and not isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return node
        call_operands = [node.left]
        for op, rhs in zip(node.ops, node.comparators):
            call_operands += [ast.copy_location(ast.Constant(type(op).__name__), node), rhs]
        return self._call("compared", node, *call_operands)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = self._call("static", node.iter, node.iter)
        return node


def _is_constant(key: ast.expr) -> bool:
    """Whether a key is a constant, such as 0 and -1."""
    return isinstance(key.operand if isinstance(key, ast.UnaryOp) else key, ast.Constant)


def _assigns(node: ast.AST) -> bool:
    """Whether an expression assigns a variable, which a lambda cannot do."""
    return any(isinstance(child, ast.NamedExpr) for child in ast.walk(node))
