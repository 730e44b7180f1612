"""The source of the functions that are compiled: their syntax trees, and queries on them."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from types import FunctionType

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position
from xegpu_py.ir.source import Source


@dataclass(frozen=True)
class Code:
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


@functools.lru_cache(maxsize=512)
def code_of(function: FunctionType) -> Code:
    """The source of a Python function.

    Raises:
        ValueError: if it cannot be read.
    """
    # The code object leads to the function itself, and not to the one that a decorator wrapped.
    name, file = function.__qualname__, inspect.getsourcefile(function.__code__) or function.__code__.co_filename
    # `inspect.getsourcelines` looks through all modules, which takes longer than a kernel from the cache.
    linecache.checkcache(file)
    lines, first = linecache.getlines(file, function.__globals__), function.__code__.co_firstlineno
    if len(lines) < first:
        raise ValueError(f"the source of '{name}' cannot be read; define it in a file")
    whole, block = "".join(lines), inspect.getblock(lines[first - 1 :])
    indent = len(block[0]) - len(block[0].lstrip())
    whole_source = Source(whole, file)
    if function.__name__ == "<lambda>":
        return Code(_lambda(function, whole), whole_source, 1, 0)
    (node,) = ast.parse(textwrap.dedent("".join(block))).body
    if not isinstance(node, ast.FunctionDef):
        where = Position(file, first + node.lineno - 1, indent + 1)
        raise DiagnosticError(
            [Diagnostic("error", f"{title(node)} cannot be compiled in a kernel", where)], [whole_source]
        )
    return Code(node, whole_source, first, indent)


def _lambda(function: FunctionType, whole: str) -> ast.Lambda:
    """The syntax tree of a lambda: among the lambdas on its line, the one with the same code."""
    code = function.__code__
    found = [n for n in ast.walk(ast.parse(whole)) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno]
    same = [n for n in found if [a.arg for a in n.args.args] == list(code.co_varnames[: code.co_argcount])]
    for node in same if len(same) > 1 else []:
        made = compile(ast.Expression(node), code.co_filename, "eval").co_consts
        if any(getattr(c, "co_code", None) == code.co_code and c.co_consts == code.co_consts for c in made):
            return node
    if not same:
        raise ValueError("the source of a lambda cannot be found; use a function")
    return same[0]


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that statements assign, in order of their first assignment, without those of inner functions."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            if isinstance(node, ast.FunctionDef):
                found[node.name] = None
            return
        held = assigned_by(node)
        if isinstance(held, ast.Name):
            found[held.id] = None
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for node in nodes:
        visit(node)
    return list(found)


def assigned_items(nodes: Iterable[ast.AST]) -> list[ast.Subscript]:
    """The targets `name[key]` of assignments in statements, without those of inner functions."""
    found: list[ast.Subscript] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for child in ast.iter_child_nodes(node):
                visit(child)

    for node in nodes:
        visit(node)
    return found


def escapes(nodes: Iterable[ast.AST], *statements: type[ast.stmt]) -> bool:
    """Whether a loop's body contains one of these statements, by default `break` and `return`, of this loop."""
    wanted = statements or (ast.Break, ast.Return)

    def visit(node: ast.AST, own: bool) -> bool:
        if isinstance(node, wanted) and (own or isinstance(node, ast.Return)):
            return True
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return False
        if isinstance(node, (ast.For, ast.While)):
            # A break in its else clause belongs to the loop around it.
            return any(visit(n, False) for n in node.body) or any(visit(n, own) for n in node.orelse)
        return any(visit(child, own) for child in ast.iter_child_nodes(node))

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
