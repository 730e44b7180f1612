"""The space of a search: parameters with their values, and the constraints that exclude configurations."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import numbers
import operator
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from xegpu_py.argument_types import checked
from xegpu_py.cache import digest
from xegpu_py.ir.diagnostics import Position, error_at

if sys.version_info >= (3, 11):
    import tomllib as tomli
else:
    import tomli

if TYPE_CHECKING:
    from optuna.trial import Trial

Configuration = dict[str, Any]
"""The value of each parameter by name."""

_FUNCTIONS: dict[str, Any] = {"min": min, "max": max, "abs": abs, "cdiv": lambda a, b: -(-a // b)}
"""Functions that expressions of constraints may call."""

_BITS = 4096
"""The size of the largest integer that an expression may compute: `9**9**9` would take all time and memory."""


def _bounded(left: Any, right: Any, operation: Callable[[Any, Any], Any], bits: Callable[[Any, Any], float]) -> Any:
    """The result of an operation on numbers, whose size is known before.

    Raises:
        ValueError: if an operand is no number, or the result has more than `_BITS` bits.
    """
    if not (isinstance(left, numbers.Number) and isinstance(right, numbers.Number)):
        raise ValueError("multiplies, shifts or raises other values than numbers")
    if isinstance(left, int) and isinstance(right, int) and bits(left, right) > _BITS:
        raise ValueError(f"computes a number of more than {_BITS} bits")
    return operation(left, right)


_BOUNDED: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Pow: lambda a, b: _bounded(a, b, operator.pow, lambda a, b: abs(a).bit_length() * abs(b)),
    ast.LShift: lambda a, b: _bounded(a, b, operator.lshift, lambda a, b: a.bit_length() + b),
    ast.Mult: lambda a, b: _bounded(a, b, operator.mul, lambda a, b: a.bit_length() + b.bit_length()),
    ast.Mod: lambda a, b: _bounded(a, b, operator.mod, lambda a, b: 0),
}
"""The operations whose result can be much larger than their operands. `%` is also the formatting of strings."""


class _Bounded(ast.NodeTransformer):
    """Replaces these operations by calls of their bounded forms."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in _BOUNDED:
            return node
        function = ast.Name(f"<{type(node.op).__name__}>", ast.Load())
        return ast.copy_location(ast.Call(function, [node.left, node.right], []), node)


_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.operator, ast.Compare,
    ast.cmpop, ast.Call, ast.Name, ast.Load, ast.Constant, ast.IfExp, ast.Tuple, ast.List,
)  # fmt: skip


class Parameter(Struct, frozen=True):
    """A parameter: choices, or a range.

    Attributes:
        name: its name.
        choices: its values; empty for a range.
        low, high: the ends of a range, both included.
        step: the distance of the values of a range; None for a continuous range of floats.
        log: whether a range is sampled on a logarithmic scale; with integers each value is twice the one before.
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False

    @classmethod
    def declared(cls, name: str, declaration: Any) -> Parameter:
        """A parameter of a declaration: a list of values, a Python range, one value, or a table of `low` and `high`.

        Raises:
            ValueError: if the declaration is not legal.
        """
        if not isinstance(declaration, Mapping):
            several = isinstance(declaration, Sequence) and not isinstance(declaration, str)
            choices = tuple(tuple(v) if isinstance(v, list) else v for v in (declaration if several else [declaration]))
            if not choices:
                raise ValueError(f"parameter '{name}' has no values")
            if len(set(map(repr, choices))) < len(choices):
                raise ValueError(f"parameter '{name}' has a value twice: {list(choices)}")
            return cls(name, choices)
        unknown = sorted(declaration.keys() - {"low", "high", "step", "log"})
        if unknown or not {"low", "high"} <= declaration.keys():
            more = f", but got {', '.join(unknown)}" if unknown else ""
            raise ValueError(f"the range of parameter '{name}' must have low and high, and may have step and log{more}")
        low, high, log = declaration["low"], declaration["high"], bool(declaration.get("log", False))
        whole = isinstance(low, int) and isinstance(high, int)
        step = declaration.get("step", 1 if whole and not log else None)
        ends = (low, high, 1 if step is None else step)
        is_legal = all(isinstance(n, (int, float)) and math.isfinite(n) for n in ends)
        if not is_legal or low > high or (log and low <= 0) or (step is not None and (step <= 0 or log)):
            raise ValueError(f"the range of parameter '{name}' is not legal: {dict(declaration)}")
        if whole and log:
            return cls(name, tuple(itertools.takewhile(lambda n: n <= high, (low << i for i in itertools.count()))))
        if step is not None:
            count = int((high - low) / step + 1e-9) + 1
            return cls(name, tuple(low + i * step for i in range(count)))
        return cls(name, (), float(low), float(high), None, log)

    def suggested(self, trial: Trial) -> Any:
        """The value that Optuna's sampler chooses. Values that its journal cannot hold are chosen by their text."""
        if not self.choices:
            return trial.suggest_float(self.name, self.low, self.high, log=self.log)
        return self.of(trial.suggest_categorical(self.name, [self.kept(value) for value in self.choices]))

    @staticmethod
    def kept(value: Any) -> Any:
        """A value as a journal holds it."""
        return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)

    def of(self, stored: Any) -> Any:
        """The value that a journal holds."""
        return next((v for v in self.choices if self.kept(v) == stored and type(self.kept(v)) is type(stored)), stored)


class Constraint(Struct, frozen=True):
    """A condition that configurations must fulfil.

    Attributes:
        text: it, in messages.
        names: the parameters and constants that it reads.
        holds: gives its truth value for the values of these names.
    """

    text: str
    names: frozenset[str]
    holds: Callable[[Mapping[str, Any]], bool]


def expression(
    text: str, known: Container[str], what: str
) -> tuple[frozenset[str], Callable[[Mapping[str, Any]], Any]]:
    """The names that a Python expression of numbers reads, and what gives its value for them.

    It has no attributes and calls only `_FUNCTIONS`.

    Args:
        known: the names that it may read.
        what: what it is, in messages.

    Raises:
        ValueError: if it is no such expression.
    """
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise ValueError(f"{what} '{text}' is no expression: {getattr(e, 'msg', e)}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Call) and not isinstance(node.func, ast.Name)):
            raise ValueError(f"{what} '{text}' has '{ast.unparse(node)}', which a {what} may not have")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name in sorted(names - _FUNCTIONS.keys()):
        if name not in known:
            raise ValueError(f"{what} '{text}' names '{name}', which is neither a parameter nor a constant")
    code: CodeType = compile(ast.fix_missing_locations(_Bounded().visit(tree)), f"<{what}>", "eval")
    bounded = {f"<{operation.__name__}>": function for operation, function in _BOUNDED.items()}
    functions = {"__builtins__": {}, **_FUNCTIONS, **bounded}

    def value(values: Mapping[str, Any]) -> Any:
        try:
            return eval(code, {**functions, **values})
        except (TypeError, ValueError) as e:
            arguments = {name: value for name, value in values.items() if name in names}
            raise ValueError(f"{what} '{text}' has no value for {arguments}: {e}") from None

    return frozenset(n for n in names if n in known), value


def _expression(text: str, known: Mapping[str, Any]) -> Constraint:
    """A constraint that is an expression. One that divides by zero or exceeds the floats does not hold."""
    names, value = expression(text, known, "constraint")

    def holds(values: Mapping[str, Any]) -> bool:
        try:
            return bool(value(values))
        except ArithmeticError:
            return False

    return Constraint(text, names, holds)


def _function(rule: Callable[..., Any], known: Mapping[str, Any]) -> Constraint:
    """A constraint that is a function whose parameters are parameters or constants of the space."""
    names = list(inspect.signature(rule).parameters)
    title = f"{getattr(rule, '__name__', 'constraint')}({', '.join(names)})"
    for name in names:
        if name not in known:
            raise ValueError(f"constraint '{title}' takes '{name}', which is neither a parameter nor a constant")
    return Constraint(title, frozenset(names), lambda values: bool(rule(**{name: values[name] for name in names})))


class Space:
    """A space of configurations.

        Space({"BM": [64, 128, 256], "BN": [64, 128], "prefetch": range(4)}, ["BM * BN <= 16384"])

    Attributes:
        parameters: its parameters.
        constants: values that constraints read.
        constraints: the conditions that configurations fulfil.
    """

    @checked
    def __init__(
        self,
        parameters: Mapping[str, Any],
        constraints: Sequence[str | Callable[..., Any]] = (),
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a space.

        Args:
            parameters: for each a list of values, a range, or a mapping with `low`, `high`, and `step` or `log`.
            constraints: Python expressions of the names, with numbers, comparisons, and, or, not, min, max, abs and
                cdiv; or functions that take parameters by their names.
            constants: further names of constraints.

        Raises:
            ValueError: if a declaration is not legal.
        """
        if not parameters:
            raise ValueError("a space needs a parameter")
        self.parameters = tuple(Parameter.declared(name, declaration) for name, declaration in parameters.items())
        self.constants = dict(constants or {})
        names = {**self.constants, **parameters}
        self.constraints = tuple(
            _expression(rule, names) if isinstance(rule, str) else _function(rule, names) for rule in constraints
        )

    @classmethod
    def of(cls, declaration: Space | Mapping[str, Any] | str | Path) -> Space:
        """A space, a mapping of parameters, or the path of a space file.

        Raises:
            ValueError, OSError, DiagnosticError: if it is not legal, or cannot be read.
        """
        if isinstance(declaration, Space):
            return declaration
        return cls(declaration) if isinstance(declaration, Mapping) else cls.from_file(declaration)

    @classmethod
    def from_file(cls, path: str | Path) -> Space:
        """Read a space file: TOML with the tables `parameters` and `constants`, and the list `constraints`.

        Raises:
            OSError: if it cannot be read.
            DiagnosticError: if it is not TOML, or its declarations are not legal.
        """
        return cls.from_tables(read_toml(path), path)

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], path: str | Path) -> Space:
        """The space of the tables of a space file; see `from_file`."""
        try:
            return cls(tables.get("parameters", {}), tables.get("constraints", ()), tables.get("constants", {}))
        except ValueError as e:
            raise error_at(Position(str(path), 1, 1), str(e)) from None

    @property
    def is_finite(self) -> bool:
        """Whether its configurations can be enumerated."""
        return all(parameter.choices for parameter in self.parameters)

    @property
    def combinations(self) -> float:
        """The number of combinations of values, also of those that constraints exclude; infinite with floats."""
        return math.prod(len(p.choices) for p in self.parameters) if self.is_finite else math.inf

    def refusal(self, configuration: Mapping[str, Any]) -> str | None:
        """The first constraint that a configuration violates, as a sentence; None if there is none."""
        values = {**self.constants, **configuration}
        broken = next((c for c in self.constraints if not c.holds(values)), None)
        return None if broken is None else f"the constraint '{broken.text}' does not hold"

    def __iter__(self) -> Iterator[Configuration]:
        """The configurations that fulfil the constraints, the last parameter varying fastest.

        A constraint is evaluated as soon as its parameters have values, so that it excludes all that would follow.
        """
        if not self.is_finite:
            endless = next(p.name for p in self.parameters if not p.choices)
            raise ValueError(f"the space cannot be enumerated: parameter '{endless}' is a continuous range")
        order = {parameter.name: i for i, parameter in enumerate(self.parameters)}
        due: list[list[Constraint]] = [[] for _ in self.parameters]
        for constraint in self.constraints:
            due[max((order[n] for n in constraint.names if n in order), default=0)].append(constraint)
        values: dict[str, Any] = dict(self.constants)

        def extended(depth: int) -> Iterator[Configuration]:
            if depth == len(self.parameters):
                yield {name: values[name] for name in order}
                return
            parameter = self.parameters[depth]
            for value in parameter.choices:
                values[parameter.name] = value
                if all(c.holds(values) for c in due[depth]):
                    yield from extended(depth + 1)

        return extended(0)

    def suggested(self, trial: Trial) -> Configuration:
        """The configuration that Optuna's sampler chooses; it may violate constraints."""
        return {parameter.name: parameter.suggested(trial) for parameter in self.parameters}

    def kept(self, configuration: Mapping[str, Any]) -> Configuration:
        """A configuration as a journal holds it."""
        return {name: Parameter.kept(value) for name, value in configuration.items()}

    def read(self, stored: Mapping[str, Any]) -> Configuration:
        """The configuration that a journal holds."""
        return {p.name: p.of(stored[p.name]) for p in self.parameters}

    def key(self) -> str:
        """A digest of its declarations, by which journals know it."""
        return digest(repr(self.parameters), repr(self.constants), *(c.text for c in self.constraints))

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters)
        return f"<space of {names}: {self.combinations:,} combinations, {len(self.constraints)} constraints>"


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        OSError: if it cannot be read.
        DiagnosticError: at the place where it is not TOML.
    """
    text = Path(path).read_bytes()
    try:
        return tomli.loads(text.decode())
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as e:
        line, column = getattr(e, "lineno", None) or 1, getattr(e, "colno", None) or 1
        raise error_at(Position(str(path), line, column), f"the space file is not TOML: {e}") from None
