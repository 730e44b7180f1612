"""Expressions and calls: Python computes objects that are known at compile time; for the others, ops are built."""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import inspect
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np
from mlir import ir as mlir

from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.language.function_source import FunctionSource, assigned, code_of, title
from xegpu_py.language.scopes import (
    RESULT,
    Closure,
    Containers,
    Loop,
    Scope,
    Undefined,
    described,
    dynamic,
    range_,
    surroundings,
)
from xegpu_py.tiles import element_types, functions
from xegpu_py.tiles.arrays import Array, ArrayTile, Pointers
from xegpu_py.tiles.element_types import DType
from xegpu_py.tiles.tile_values import Product, Value, value_of
from xegpu_py.tiles.value_base import BUILDING, Handle

MOST_INLINED = 64
"""The deepest nesting of calls. Inlining a recursive function would not end."""

MOST_SHOWN = 8
"""The most calls that a diagnostic shows: half of them innermost, half outermost."""

_RECURSION = "calls are nested too deep; functions are inlined, so a recursion must end at compile time"

_Parameter = inspect.Parameter

_LANGUAGE = __name__.rpartition(".")[0]


class Flow(enum.Enum):
    """Whether the statements after a statement are executed."""

    NEXT = "always"
    MAYBE = "unless a flag is set"
    ESCAPED = "never"


BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def contained(a: Any, b: Any) -> Any:
    """`a in b`; with values of the kernel, whether `a` equals an element of the tuple or list `b`."""
    if not isinstance(b, (tuple, list)) or not (dynamic(a) or dynamic(b)):
        return a in b
    is_contained: Any = value_of(False)
    for x in b:
        is_contained = is_contained | value_of(a == x)
    return is_contained


def conjunction(comparisons: Iterable[Any]) -> Any:
    """A chain of comparisons; none is evaluated after one that is known to be false."""
    truth: Any = True
    for comparison in comparisons:
        truth = truth & comparison if isinstance(truth, Value) else truth and comparison
        if isinstance(truth, (bool, np.bool_)) and not truth:
            break
    return truth


def truth_of(condition: Any) -> Any:
    """A condition: a Python bool, or a scalar of type bool.

    Raises:
        TypeError: if it is not a scalar.
    """
    if isinstance(condition, Product):
        condition = condition.value
    if isinstance(condition, Value):
        if condition.shape:
            raise TypeError(
                f"the truth value of {condition.describe()} is ambiguous; use .any() or .all(), or & and | and where()"
            )
        return condition.to(element_types.bool_)
    if dynamic(condition):
        raise TypeError(f"{described(condition)} has no truth value")
    return bool(condition)


COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: contained,
    ast.NotIn: lambda a, b: ~found if isinstance(found := contained(a, b), Value) else not found,
}

_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}

_CHANGING = {
    *("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"),
    *("update", "setdefault", "popitem", "add", "discard"),
}
"""Methods of lists, dictionaries and sets that change them."""

_STRUCTURAL: tuple[Any, ...] = (tuple, list, dict, len, isinstance, type, getattr, hasattr, zip, enumerate, reversed)
"""Python functions that do not look at the values of their arguments' elements."""


class Expressions(ABC):
    """Compiles expressions, and inlines the functions that they call. A subclass compiles statements."""

    def __init__(self) -> None:
        self._scopes: list[Scope] = []
        self._node: ast.AST | None = None
        self._calls: list[tuple[Scope, ast.AST]] = []
        self._builtins = replacements()
        self._containers = Containers()

    # Statements.

    @abstractmethod
    def _block(self, statements: Sequence[ast.stmt]) -> Flow:
        """Compile statements."""

    @abstractmethod
    def _assign(self, target: ast.expr, value: Any) -> None:
        """Assign a value to a target."""

    @abstractmethod
    def _branch(self, condition: Value, yes: Callable[[], Flow], no: Callable[[], Flow]) -> Flow:
        """Compile both sides of a condition that is known only at run time."""

    def _closure(self, node: ast.FunctionDef | ast.Lambda) -> Closure:
        args = node.args
        positional = [*args.posonlyargs, *args.args]
        without: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
        parameter_kinds = (
            (_Parameter.POSITIONAL_ONLY, args.posonlyargs, [*without, *args.defaults]),
            (_Parameter.POSITIONAL_OR_KEYWORD, args.args, [*without, *args.defaults][len(args.posonlyargs) :]),
            (_Parameter.VAR_POSITIONAL, [args.vararg] if args.vararg else [], [None]),
            (_Parameter.KEYWORD_ONLY, args.kwonlyargs, args.kw_defaults),
            (_Parameter.VAR_KEYWORD, [args.kwarg] if args.kwarg else [], [None]),
        )
        parameters = [
            _Parameter(a.arg, parameter_kind, default=_Parameter.empty if default is None else self._value(default))
            for parameter_kind, names, defaults in parameter_kinds
            for a, default in zip(names, defaults)
        ]
        code, scope = self.scope.code, self.scope.inner or self.scope
        closure_code = FunctionSource(node, code.source, code.first_line, code.indent)
        return Closure(closure_code, scope, inspect.Signature(parameters))

    # Functions.

    def run(self, function: FunctionType, arguments: Sequence[Any], keywords: Mapping[str, Any] | None = None) -> Any:
        """Compile a function's body here, for these arguments.

        Raises:
            DiagnosticError: at the line of the user's file that cannot be compiled.
        """
        signature = inspect.signature(function, follow_wrapped=False)
        find = surroundings(function)

        def outer(name: str) -> Any:
            return self._containers.note_outside(find(name))

        return self._inline(code_of(function), signature, arguments, keywords or {}, outer)

    def _inline(
        self,
        code: FunctionSource,
        signature: inspect.Signature,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        enclosing_scope: Callable[[str], Any],
    ) -> Any:
        """Compile the body of a function for these arguments."""
        if len(self._scopes) >= MOST_INLINED:
            self._fail(_RECURSION)
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as e:
            message = f"{getattr(code.node, 'name', '<lambda>')}(): {e}"
            if self._node is not None:
                self._fail(message)
            raise DiagnosticError([Diagnostic("error", message, code.position(code.node))], [code.source]) from None
        bound.apply_defaults()
        scope = Scope(code, enclosing_scope)
        scope.variables.update(bound.arguments)
        node = self._node
        if self._scopes:
            assert node is not None
            self._calls.append((self.scope, node))
        self._scopes.append(scope)
        self._node = None
        try:
            if isinstance(code.node, ast.Lambda):
                return self._value(code.node.body)
            flow = self._block(code.node.body)
            result = scope.variables.get(RESULT)
            if isinstance(result, Undefined) or (result is not None and flow is not Flow.ESCAPED):
                self._fail("the function returns a value in some cases only")
            return result
        finally:
            self._scopes.pop()
            if self._scopes:
                self._calls.pop()
            self._node = node

    @property
    def scope(self) -> Scope:
        """The variables of the function that is being compiled."""
        return self._scopes[-1]

    # Diagnostics and locations.

    def _error(self, message: str, *notes: str) -> DiagnosticError:
        """A diagnostic at the current node, with a note for each call that led there."""
        code = self.scope.code
        where = code.position(self._node or code.node)
        attached = [Diagnostic("note", n, where) for n in notes]
        sources = [code.source]
        calls = self._calls[::-1]
        for scope, node in calls if len(calls) <= MOST_SHOWN else calls[: MOST_SHOWN // 2] + calls[-MOST_SHOWN // 2 :]:
            attached.append(Diagnostic("note", "called from here", scope.code.position(node)))
            sources.append(scope.code.source)
        return DiagnosticError([Diagnostic("error", message, where, tuple(attached))], sources)

    def _fail(self, message: str, *notes: str) -> NoReturn:
        """Reject the current node.

        Raises:
            DiagnosticError: at it.
        """
        raise self._error(message, *notes)

    @contextmanager
    def _at(self, node: ast.AST) -> Iterator[None]:
        """In this context, ops get the location of a node, and Python's exceptions become diagnostics there."""
        outer_node, self._node = self._node, node
        where = self.scope.code.position(node)
        depth = len(self._scopes)
        try:
            with mlir.Location.file(where.file, where.line, where.column):
                yield
        except DiagnosticError:
            raise
        except (TypeError, ValueError, OverflowError, NameError, AttributeError, LookupError, ZeroDivisionError) as e:
            assert len(self._scopes) == depth
            raise self._error(str(e) if not isinstance(e, KeyError) else f"key {e}") from None
        except RecursionError:
            raise self._error(_RECURSION) from None
        except (RuntimeError, mlir.MLIRError) as e:
            raise self._error(str(e)) from None
        finally:
            self._node = outer_node

    # Expressions.

    def _value(self, node: ast.expr) -> Any:
        with self._at(node):
            method = getattr(self, f"_get_{type(node).__name__}", None)
            if method is None:
                self._fail(f"{title(node)} cannot be compiled in a kernel")
            return method(node)
        raise AssertionError

    def _get_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def _get_Name(self, node: ast.Name) -> Any:
        return self.scope.get(node.id)

    def _get_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._elements(node.elts))

    def _get_List(self, node: ast.List) -> list[Any]:
        return self._noted(self._elements(node.elts))

    def _get_Dict(self, node: ast.Dict) -> dict[Any, Any]:
        dictionary: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values):
            dictionary |= self._value(value) if key is None else {self._value(key): self._value(value)}
        return self._noted(dictionary)

    def _noted(self, container: Any) -> Any:
        """Record the block in which a list, dictionary, set or iterator is made."""
        self._containers.note(container)
        return container

    @contextmanager
    def _inside(self, block: mlir.Block) -> Iterator[None]:
        """Build a block of a loop or branch."""
        with BUILDING.inside(block), self._containers.inside():
            yield

    def _check_changes(self, container: Any, change: str) -> None:
        """Reject a change of a list, dictionary or iterator in a loop or branch of the kernel that did not make it.

        The change would be made once, at compile time, however often the loop or branch runs.

        Args:
            change: what changes it, for the error message.
        """
        container_type = type(container).__name__
        if self._containers.is_outside(container):
            self._fail(
                f"{change} acts once, as the kernel is compiled, on a {container_type} that the kernel did not make",
                f"copy the {container_type} in the kernel, and change the copy",
            )
        if not self._containers.is_made_here(container):
            also = ""
            if isinstance(container, (list, dict)):
                also = f", or all its elements before: loops and branches carry assigned elements of a {container_type}"
            self._fail(
                f"{change} acts at compile time, however often this loop or branch runs",
                f"make the {container_type} in the same loop or branch{also}",
            )

    def _items(self, value: Any, use: str) -> Iterable[Any]:
        """The items of an iterable that is known at compile time; see `static_items`."""
        if hasattr(value, "__next__"):
            self._check_changes(value, "an iterator")
        return static_items(value, use)

    def _elements(self, nodes: Sequence[ast.expr]) -> list[Any]:
        elements = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                elements += list(self._items(self._value(node.value), "unpacked"))
            else:
                elements.append(self._value(node))
        return elements

    def _get_BinOp(self, node: ast.BinOp) -> Any:
        a, b = self._value(node.left), self._value(node.right)
        try:
            return BINARY[type(node.op)](a, b)
        except TypeError as e:
            if any(
                message_part in str(e)
                for message_part in ("unsupported operand", "not support ufuncs", "can only concatenate")
            ):
                raise TypeError(f"cannot combine {described(a)} and {described(b)}") from None
            raise

    def _get_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            truth = self._condition(node.operand)
            return ~truth if isinstance(truth, Value) else not truth
        return _UNARY[type(node.op)](self._value(node.operand))

    def _get_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and` and `or`: later operands are evaluated only if they are needed."""
        return self._lazy(node.values, isinstance(node.op, ast.And), self._value)

    def _condition(self, node: ast.expr) -> Any:
        """The truth of an expression: a Python bool, or a scalar of type bool."""
        if isinstance(node, ast.BoolOp):
            with self._at(node):
                return truth_of(self._lazy(node.values, isinstance(node.op, ast.And), self._condition))
        return truth_of(self._value(node))

    def _lazy(self, nodes: Sequence[ast.expr], all_needed: bool, value: Callable[[ast.expr], Any]) -> Any:
        """The operand that `and` or `or` gives, as Python does.

        Args:
            value: evaluates an operand; in a condition only its truth matters.
        """
        first_operand = value(nodes[0])
        if len(nodes) == 1:
            return first_operand
        truth = truth_of(first_operand)
        if not isinstance(truth, Value):
            return self._lazy(nodes[1:], all_needed, value) if truth == all_needed else first_operand
        short_circuit = truth if all_needed else ~truth
        return self._chosen(short_circuit, lambda: self._lazy(nodes[1:], all_needed, value), lambda: first_operand)

    def _get_Compare(self, node: ast.Compare) -> Any:
        def compared() -> Iterator[Any]:
            lhs = self._value(node.left)
            for op, comparator in zip(node.ops, node.comparators):
                rhs = self._value(comparator)
                yield COMPARE[type(op)](lhs, rhs)
                lhs = rhs

        return conjunction(compared())

    def _get_IfExp(self, node: ast.IfExp) -> Any:
        condition = self._condition(node.test)
        if not isinstance(condition, Value):
            return self._value(node.body if condition else node.orelse)
        return self._chosen(condition, lambda: self._value(node.body), lambda: self._value(node.orelse))

    def _chosen(self, condition: Value, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        """The value of one of two expressions, by a condition that is known only at run time."""
        name = f"choice {len(self.scope.variables)}"

        def side(value: Callable[[], Any]) -> Callable[[], Flow]:
            def run() -> Flow:
                self.scope.variables[name] = value()
                return Flow.NEXT

            return run

        self._branch(condition, side(yes), side(no))
        selected = self.scope.variables.pop(name)
        if isinstance(selected, Undefined):
            raise TypeError(f"the expression {selected.why}")
        return selected

    def _get_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self._value(node.value)
        self._assign(node.target, value)
        return value

    def _get_Lambda(self, node: ast.Lambda) -> Closure:
        return self._closure(node)

    def _get_Attribute(self, node: ast.Attribute) -> Any:
        owner = self._value(node.value)
        try:
            value = getattr(owner, node.attr)
            return self._containers.note_outside(value) if self._containers.is_outside(owner) else value
        except AttributeError as e:
            of_language = isinstance(owner, ModuleType) and owner.__name__ == _LANGUAGE
            message = f"the tile language has no '{node.attr}'" if of_language else str(e)
            raise AttributeError(message + did_you_mean(node.attr, dir(owner))) from None

    def _key(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            return slice(*(None if n is None else self._value(n) for n in (node.lower, node.upper, node.step)))
        if isinstance(node, ast.Tuple):
            return tuple(self._key(n) for n in node.elts)
        return self._value(node)

    def _get_Slice(self, node: ast.Slice) -> Any:
        return self._key(node)

    def _get_Subscript(self, node: ast.Subscript) -> Any:
        container, key = self._value(node.value), self._key(node.slice)
        self._check_key(container, key)
        return container[key]

    def _check_key(self, container: Any, key: Any) -> None:
        if isinstance(key, Value) and isinstance(container, (tuple, list, dict, str)):
            self._fail(f"{type(container).__name__} is indexed by what is known at compile time")

    def _get_ListComp(self, node: ast.ListComp) -> list[Any]:
        elements: list[Any] = []
        self._comprehension(node.generators, lambda: elements.append(self._value(node.elt)))
        return self._noted(elements)

    _get_GeneratorExp = _get_ListComp

    def _get_DictComp(self, node: ast.DictComp) -> dict[Any, Any]:
        items: dict[Any, Any] = {}
        self._comprehension(node.generators, lambda: items.update({self._value(node.key): self._value(node.value)}))
        return self._noted(items)

    def _comprehension(self, generators: Sequence[ast.comprehension], add: Callable[[], None]) -> None:
        if not generators:
            return add()
        first_generator, *inner_generators = generators
        scope = self.scope
        saved_variables, outer_inner, names = dict(scope.variables), scope.inner, assigned([first_generator.target])
        items = self._items(self._value(first_generator.iter), "iterated over")
        scope.inner = Scope(scope.code, (outer_inner or scope).get)
        for item in items:
            self._assign(first_generator.target, item)
            scope.inner.variables.update((name, scope.variables[name]) for name in names)
            conditions = [self._condition(c) for c in first_generator.ifs]
            if any(isinstance(c, Value) for c in conditions):
                self._fail("the condition of a comprehension must be known at compile time")
            if all(conditions):
                self._comprehension(inner_generators, add)
        scope.inner = outer_inner
        for name in names:
            scope.variables.pop(name, None)
            if name in saved_variables:
                scope.variables[name] = saved_variables[name]
        return None

    def _get_JoinedStr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self._value(v)) for v in node.values)

    def _get_FormattedValue(self, node: ast.FormattedValue) -> str:
        form = self._value(node.format_spec) if node.format_spec else ""
        value = self._value(node.value)
        if node.conversion == ord("r"):
            return format(repr(value), form)
        if dynamic(value):
            self._fail(
                f"the text of {described(value)}, which is known only at run time",
                'device_print("x =", x) prints the value, and {x!r} is its type',
            )
        return format(value, form)

    def _get_Call(self, node: ast.Call) -> Any:
        callee = self._value(node.func)
        args = self._elements(node.args)
        keywords: dict[str, Any] = {}
        for k in node.keywords:
            unpacked = self._value(k.value)
            keywords |= unpacked if k.arg is None else {k.arg: unpacked}
        return self._call(callee, args, keywords)

    def _call(self, callee: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        if isinstance(callee, Closure):
            return self._inline(callee.code, callee.signature, args, keywords, callee.scope.get)
        if isinstance(callee, functools.partial):
            return self._call(callee.func, [*callee.args, *args], {**callee.keywords, **keywords})
        kernel_function = getattr(callee, "__kernel_function__", None)
        if kernel_function is not None:
            return self.run(kernel_function, args, keywords)
        if getattr(callee, "__takes_functions__", False):
            args, keywords = [self._callable(a) for a in args], {k: self._callable(v) for k, v in keywords.items()}
        if any(map(dynamic, (*args, *keywords.values()))) or callee is range:
            replacement = self._builtins.get(callee) if _hashable(callee) else None
            if replacement is not None:
                return replacement(*args, **keywords)
        if isinstance(callee, MethodType) and isinstance(callee.__func__, FunctionType) and is_users(callee.__func__):
            return self.run(callee.__func__, [callee.__self__, *args], keywords)
        if isinstance(callee, FunctionType) and is_users(callee):
            return self.run(callee, args, keywords)
        if callee is print:
            self._fail(
                "print() shows nothing while a kernel runs", "device_print does, and static_print as it is compiled"
            )
        if callee is breakpoint or getattr(callee, "__module__", None) == "pdb":
            self._fail(
                "a debugger cannot stop a kernel that runs",
                "engine='eager' or XEGPU_PY_INTERPRET=1 runs the kernel in Python, where breakpoint() stops",
            )
        if not callable(callee):
            raise TypeError(f"{described(callee)} is not callable")
        if not _is_ours(callee) and any(map(dynamic, (*args, *keywords.values()))) and callee not in _STRUCTURAL:
            self._fail(
                f"{getattr(callee, '__name__', callee)}() takes no value that is known only at run time",
                "the functions of xegpu_py.language do",
            )
        receiver = getattr(callee, "__self__", None)
        if isinstance(receiver, (list, dict, set)) and callee.__name__ in _CHANGING:
            self._check_changes(receiver, f"{type(receiver).__name__}.{callee.__name__}()")
        for argument in args:
            if hasattr(argument, "__next__"):
                self._check_changes(argument, "an iterator")
        return self._noted(callee(*args, **keywords))

    def _callable(self, callee: Any) -> Any:
        """A function that the language can call: a function of the user is compiled at each call."""
        compiled = isinstance(callee, (Closure, functools.partial)) or hasattr(callee, "__kernel_function__")
        function = callee.__func__ if isinstance(callee, MethodType) else callee
        if compiled or (isinstance(function, FunctionType) and is_users(function)):
            return lambda *args: self._call(callee, list(args), {})
        return callee


def replacements() -> dict[Any, Callable[..., Any]]:
    """The functions that replace Python's built-in functions in kernels."""
    return {
        range: range_,
        builtins.min: functions.minimum_of,
        builtins.max: functions.maximum_of,
        builtins.abs: abs,
        builtins.pow: operator.pow,
        builtins.round: functions.round_,
        builtins.sum: _sum_of,
        builtins.float: lambda v: v.to(element_types.float32),
        **{number_type: functools.partial(_no_number, number_type) for number_type in NUMBERS},
        builtins.str: _no_text,
        builtins.format: _no_text,
    }


NUMBERS: dict[Any, DType] = {builtins.bool: element_types.bool_, builtins.int: element_types.int32}
"""Python's conversions that only values of a kernel that runs as it is built have, and types that are similar."""


def _no_number(number_type: type, value: Any, *extra_arguments: Any) -> NoReturn:
    hint = f"to({NUMBERS[number_type]}) converts it in the kernel"
    raise TypeError(f"{number_type.__name__}() of {described(value)}, which is known only at run time; {hint}")


def _no_text(value: Any, *form: Any) -> NoReturn:
    raise TypeError(
        f"the text of {described(value)}, which is known only at run time; device_print prints it, repr() is its type"
    )


def _sum_of(values: Any, start: Any = 0) -> Any:
    """Python's `sum` of the values in a tuple or list."""
    total = start
    for value in static_items(values, "added up; see its method sum()"):
        total = total + value
    return total


def static_items(value: Any, what: str) -> Iterable[Any]:
    """The items of an iterable that is known at compile time.

    Args:
        what: the participle for the error message: "iterated over", "unpacked".

    Raises:
        TypeError: if it is known only at run time.
    """
    if isinstance(value, Loop):
        if any(dynamic(x) for x in (value.start, value.stop, value.step)):
            raise TypeError(f"a range that is known only at run time cannot be {what}")
        return range(value.start, value.stop, value.step)
    if dynamic(value) and not isinstance(value, (tuple, list)):
        raise TypeError(f"{described(value)} cannot be {what}")
    return iter(value)


def _hashable(callee: Any) -> bool:
    try:
        hash(callee)
    except TypeError:
        return False
    return True


def _is_ours(callee: Any) -> bool:
    """Whether a function belongs to this package, to MLIR, or to an object of the kernel."""
    owner = getattr(callee, "__self__", None)
    if isinstance(owner, (Value, Product, Handle, Array, Pointers, ArrayTile, list, dict)):
        return True
    module = getattr(callee, "__module__", None) or ""
    return module.startswith(("xegpu_py.", "mlir.")) or isinstance(callee, type)


def is_users(function: FunctionType) -> bool:
    """Whether a function is compiled from its source when a kernel calls it."""
    module = function.__module__ or ""
    return not module.startswith(("xegpu_py.", "mlir", "numpy", "ml_dtypes")) and not _is_standard(function)


@functools.lru_cache(maxsize=1024)
def _is_standard(function: FunctionType) -> bool:

    return (function.__module__ or "").partition(".")[0] in sys.stdlib_module_names - {"__main__"}
