"""Mistakes that `make mutants` plants in the package: one changed expression or statement each, behind a switch.

All chosen mistakes of a module are compiled into one version of it: `(changed if __mutant__[0] == 7 else original)`.
The number in `__mutant__` says which of them is active, so that one warm process judges them all in forks.
"""

from __future__ import annotations

import ast
import copy
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ACTIVE = [0]
"""The number of the active mistake, which all modules share; 0 for none."""

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutation:
    """A mistake at one place of a file.

    Attributes:
        file: the path in the repository.
        function: the qualified name of the innermost function, as the recorder has it.
        original: the text of the expression or statement.
        changed: its text with the mistake, empty if it is left out.
        site: the position among all mistakes that the file can have.
    """

    file: str
    function: str
    line: int
    original: str
    changed: str
    site: int


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """The mistakes that one expression can have."""
    match node:
        case ast.Compare(ops=[operation]):
            yield _with(node, ops=[COMPARISONS[type(operation)]()])
        case ast.BinOp(op=operation) if type(operation) in OPERATORS and not _is_text(node):
            yield _with(node, op=OPERATORS[type(operation)]())
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
            for dropped in range(len(node.values)):
                kept = [v for i, v in enumerate(node.values) if i != dropped]
                yield kept[0] if len(kept) == 1 else _with(node, values=kept)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.IfExp():
            yield _with(node, body=node.orelse, orelse=node.body)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield ast.Constant(value + 1)
            if value > 0:
                yield ast.Constant(value - 1)
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            yield _with(node, func=ast.Name(FUNCTIONS[name], ast.Load()))
        case ast.Call(func=ast.Name(id="reversed"), args=[argument]):
            yield argument
        case ast.Call(args=[first, second]) if not node.keywords and not isinstance(second, ast.Starred):
            if ast.dump(first) != ast.dump(second) and not isinstance(first, ast.Starred):
                yield _with(node, args=[second, first])


def _with(node: Any, **fields: Any) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


class Planter(ast.NodeTransformer):
    """Finds every mistake that a module can have, and plants the chosen ones.

    Args:
        chosen: the number to plant for a site.
    """

    def __init__(self, chosen: dict[int, int] | None = None) -> None:
        self.chosen = chosen or {}
        self.sites: list[tuple[str, int]] = []
        """The function and line of each mistake."""
        self.texts: dict[int, tuple[str, str]] = {}
        """Of planted ones the original and the changed text."""
        self._scope: list[str] = []
        self._in_function = 0

    def _plant(self, node: Any, changed: Any) -> int | None:
        """Record a site; return its number if it is to be planted."""
        site = len(self.sites)
        self.sites.append((".".join(self._scope), node.lineno))
        if site in self.chosen:
            self.texts[site] = (ast.unparse(node), ast.unparse(changed) if changed else "")
        return self.chosen.get(site)

    def visit(self, node: ast.AST) -> Any:
        """Plant mistakes in a statement or an expression."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._scope.append(node.name)
            self._in_function += 1
            # Defaults, annotations and decorators are of the module, which is executed once.
            node.body = [self.visit(statement) for statement in node.body]
            self._in_function -= 1
            self._scope.pop()
            return node
        if isinstance(node, ast.ClassDef):
            self._scope.append(node.name)
            inside, self._in_function = self._in_function, 0
            node.body = [self.visit(statement) for statement in node.body]
            self._in_function = inside
            self._scope.pop()
            return node
        # Patterns and formats hold expressions that cannot be replaced; annotations are not executed.
        if isinstance(node, (ast.pattern, ast.JoinedStr, ast.Assert, ast.Raise)):
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = node.value and self.visit(node.value)
            return node
        if not self._in_function:
            return self.generic_visit(node)
        if isinstance(node, ast.expr):
            return self._expression(node)
        if isinstance(node, (ast.Expr, ast.AugAssign, ast.Continue)) and not _is_docstring(node):
            return self._statement(node)
        return self.generic_visit(node)

    def _expression(self, node: Any) -> Any:
        original = copy.deepcopy(node)
        numbered = [(self._plant(original, changed), changed) for changed in map(copy.deepcopy, _changed(node))]
        result = self.generic_visit(node)
        for number, changed in numbered:
            if number is not None:
                result = ast.copy_location(ast.IfExp(_is_active(number), changed, result), node)
        return result

    def _statement(self, node: Any) -> Any:
        number = self._plant(node, None)
        node = self.generic_visit(node)
        if number is None:
            return node
        return ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), _is_active(number)), [node], []), node)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_active(number: int) -> ast.expr:
    return ast.parse(f"__mutant__[0] == {number}", mode="eval").body


def choose(files: dict[str, set[str]], number: int, seed: int) -> list[Mutation]:
    """Random mistakes, as many of each area as of any other, each in another function as far as there are.

    Args:
        files: for each file the functions in which a mistake may be, by qualified name.
    """
    drawn = random.Random(seed)
    areas: dict[str, list[tuple[str, int]]] = {}
    for file, functions in sorted(files.items()):
        sites = planted(file).sites
        areas.setdefault(area(file), []).extend((file, i) for i, (name, _) in enumerate(sites) if name in functions)
    chosen: dict[str, list[int]] = {}
    for of_area in areas.values():
        drawn.shuffle(of_area)
    turns = [place for turn in zip_longest(*areas.values()) for place in turn if place]
    for file, site in turns[:number]:
        chosen.setdefault(file, []).append(site)
    mutations = []
    for file, sites in chosen.items():
        planter = planted(file, dict.fromkeys(sites, 0))
        mutations += [Mutation(file, *planter.sites[i], *planter.texts[i], i) for i in sites]
    drawn.shuffle(mutations)
    return mutations


def found_again(earlier: Mutation) -> list[Mutation]:
    """A mistake of an earlier version of its file, in this one: the nearest of the same text; none if it is gone."""
    if not (ROOT / earlier.file).exists():
        return []
    sites = planted(earlier.file).sites
    texts = planted(earlier.file, dict.fromkeys(range(len(sites)), 0)).texts
    same = [
        Mutation(earlier.file, *sites[i], *texts[i], i)
        for i in texts
        if (sites[i][0], *texts[i]) == (earlier.function, earlier.original, earlier.changed)
    ]
    return sorted(same, key=lambda mutation: abs(mutation.line - earlier.line))[:1]


def planted(file: str, chosen: dict[int, int] | None = None) -> Planter:
    """The mistakes that a file can have, and the texts of chosen ones."""
    planter = Planter(chosen)
    planter.visit(ast.parse((ROOT / file).read_bytes()))
    return planter


def area(file: str) -> str:
    """The part of the package to which a file belongs."""
    parts = Path(file).parts
    if parts[0] != "xegpu_py":
        return parts[0]
    if len(parts) == 2:
        return "top level"
    return "/".join(parts[1:3] if parts[1] in ("extensions", "engines") and len(parts) > 3 else parts[1:2])


class _Loader(SourceFileLoader):
    """Loads a module with its mistakes."""

    def __init__(self, name: str, path: str, chosen: dict[int, int]) -> None:
        super().__init__(name, path)
        self._chosen = chosen

    def get_code(self, fullname: str) -> CodeType:
        tree = Planter(self._chosen).visit(ast.parse(Path(self.path).read_bytes(), self.path))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__mutant__"] = ACTIVE
        exec(self.get_code(module.__name__), module.__dict__)


class Finder(MetaPathFinder):
    """Finds modules of the package, with the chosen mistakes numbered from 1."""

    def __init__(self, chosen: list[Mutation]) -> None:
        self._sites: dict[str, dict[int, int]] = {}
        for number, mutation in enumerate(chosen, 1):
            self._sites.setdefault(mutation.file, {})[mutation.site] = number

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "xegpu_py":
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)):
                loader = spec.loader
                if isinstance(loader, SourceFileLoader) and Path(loader.path).resolve().is_relative_to(ROOT):
                    file = Path(loader.path).resolve().relative_to(ROOT).as_posix()
                    if sites := self._sites.get(file):
                        spec.loader = _Loader(loader.name, loader.path, sites)
                return spec
        return None
