"""`make unexecuted` runs all tests, and lists the statements in functions of the package that none of them executes.

The package's modules are compiled with one more statement before each, which sets a byte of a file that all processes
and their forks share. What programs of others start is not seen.
"""

from __future__ import annotations

import ast
import mmap
import os
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "executed"
VARIABLE = "UNEXECUTED"
"""The environment variable that asks for marks."""

MOST_LINES = 4096

_BODIES = ("body", "orelse", "finalbody")


def _blocks(tree: ast.AST) -> Iterator[list[Any]]:
    """The lists of statements in functions, without docstrings."""
    seen: set[int] = set()
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(function):
            for block in (getattr(node, name, None) for name in _BODIES):
                is_new = isinstance(block, list) and block and id(block) not in seen
                if is_new and isinstance(block[0], ast.stmt) and not isinstance(node, ast.ClassDef):
                    seen.add(id(block))
                    yield block


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def statements(source: bytes, path: str) -> dict[int, ast.stmt]:
    """The statements in functions by their lines."""
    tree = ast.parse(source, path)
    return {s.lineno: s for block in _blocks(tree) for s in block if not _is_docstring(s)}


def marked(source: bytes, path: str) -> CodeType:
    """The code of a module that notes which lines of functions it executes."""
    tree = ast.parse(source, path)
    for block in [*_blocks(tree)]:
        for statement in [*block]:
            if not _is_docstring(statement):
                mark = ast.parse(f"__lines__[{statement.lineno}] = 1").body[0]
                for part in ast.walk(mark):
                    ast.copy_location(part, statement)
                block.insert(block.index(statement), mark)
    return compile(tree, path, "exec", dont_inherit=True)


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        path = Path(self.path).resolve()
        module.__dict__["__lines__"] = _lines(path.relative_to(ROOT).as_posix())
        exec(marked(path.read_bytes(), self.path), module.__dict__)


def _lines(name: str) -> Any:
    """A byte for each line of a file, which all processes share."""
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(FOLDER / name.replace("/", "--"), os.O_RDWR | os.O_CREAT), "r+b") as file:
            file.truncate(MOST_LINES)
            return mmap.mmap(file.fileno(), MOST_LINES)
    except OSError:
        # The process of host code may open no file; its parent has imported what both share.
        return bytearray(MOST_LINES)


class Finder(MetaPathFinder):
    """Finds the package's modules, and loads them by a loader that adds marks."""

    def __init__(self, loader: type[SourceFileLoader] = _Loader) -> None:
        self._loader = loader

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The specification of a module of the package."""
        if name.partition(".")[0] != "xegpu_py":
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)):
                if type(spec.loader) is SourceFileLoader and Path(spec.loader.path).resolve().is_relative_to(ROOT):
                    spec.loader = self._loader(spec.loader.name, spec.loader.path)
                return spec
        return None


def main() -> None:
    """Print the statements that were not executed, and their share in each part of the package."""
    counts: dict[str, list[int]] = {}
    for file in sorted(FOLDER.iterdir()):
        name, executed = file.name.replace("--", "/"), file.read_bytes()
        source = (ROOT / name).read_bytes()
        text = source.decode().splitlines()
        lines = sorted(statements(source, name))
        missing = [line for line in lines if not executed[line]]
        for line in missing:
            print(f"{name}:{line}: {text[line - 1].strip()}")
        count = counts.setdefault("/".join(name.split("/")[:2]), [0, 0])
        count[0] += len(missing)
        count[1] += len(lines)
    for part, (missing_count, count) in counts.items():
        if count:
            print(f"{part:32} {missing_count:5} of {count:5} statements are not executed")


if __name__ == "__main__":
    main()
