"""Records which functions of the package each test executes, and how long it takes, for `make check`.

With the environment variable `RECORD` the package's modules are compiled with one more statement at the start of each
function, which sets a byte. This costs two percent of a run; a tracer would double it. Tools that tests run in forks
(`forked_tools.py`) add to the record of the test that runs them. The process of a program's host code may write no
file: its marks are in memory that the test's process has too.
"""

from __future__ import annotations

import ast
import fcntl
import marshal
import mmap
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.machinery import SourceFileLoader
from itertools import compress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import unexecuted

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "build" / "recorded" / "tests.db"
RUN = "RECORD"
"""The environment variable that names the run: what a test executed in earlier runs is replaced."""

LIT_TEST = "LIT_TEST"
"""The environment variable with the path of the lit test that runs a tool."""

_modules: dict[str, tuple[bytearray, list[str]]] = {}
"""For each file: a byte for each function, set once it was executed, and the functions' names behind the file's."""

_of_forks: list[tuple[mmap.mmap, list[str]]] = []
"""The bytes of functions of forks of this process, during a test, and the functions' names."""


class _Mark(ast.NodeTransformer):
    """Adds `__executed__[n] = 1` to the start of each function."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._scope: list[str] = []

    def _visit(self, node: Any) -> Any:
        self._scope.append(node.name)
        self.generic_visit(node)
        if not isinstance(node, ast.ClassDef):
            at = 1 if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1 else 0
            mark = ast.parse(f"__executed__[{len(self.names)}] = 1").body[0]
            for part in ast.walk(mark):
                ast.copy_location(part, node.body[at])
            # A function of nothing but a docstring keeps it.
            node.body.insert(at if at or ast.get_docstring(node) is None else 1, mark)
            self.names.append(".".join(self._scope))
        self._scope.pop()
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit

    def generic_visit(self, node: ast.AST) -> ast.AST:
        # No expression contains a function with a name.
        return node if isinstance(node, ast.expr) else super().generic_visit(node)


def _stored(kept: Path) -> tuple[CodeType, list[str]] | None:
    with suppress(OSError, ValueError, EOFError, TypeError):
        found: tuple[CodeType, list[str]] = marshal.loads(kept.read_bytes())
        return found
    return None


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for the other processes that mark modules: those of a first run start together, and would all mark each."""
    with ExitStack() as stack:
        with suppress(OSError):
            (FILE.parent / "code").mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((FILE.parent / "lock").open("w")), fcntl.LOCK_EX)
        yield


class _Loader(SourceFileLoader):
    """Loads a module with marks, which are kept below build."""

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.path).resolve()
        about = path.stat()
        name = path.relative_to(ROOT).as_posix()
        key = f"{name.replace('/', '-')}-{about.st_mtime_ns}-{about.st_size}-{sys.implementation.cache_tag}"
        kept = FILE.parent / "code" / key
        found = _stored(kept)
        if found is None:
            with _alone():
                found = _stored(kept) or self._marked(path, name, kept)
        code, names = found
        _modules.setdefault(name, (bytearray(len(names)), [f"{name}:{function}" for function in names]))
        return code

    def _marked(self, path: Path, name: str, kept: Path) -> tuple[CodeType, list[str]]:
        mark = _Mark()
        tree = mark.visit(ast.parse(path.read_bytes(), self.path))
        marked = compile(tree, self.path, "exec", dont_inherit=True), mark.names
        # The process of host code may write nothing.
        with suppress(OSError):
            for old in kept.parent.glob(f"{name.replace('/', '-')}-*"):
                old.unlink(missing_ok=True)
            new = kept.with_suffix(f".{os.getpid()}")
            new.write_bytes(marshal.dumps(marked))
            new.replace(kept)
        return marked

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        module.__dict__["__executed__"] = _modules[Path(self.path).resolve().relative_to(ROOT).as_posix()][0]
        exec(code, module.__dict__)


class Recorder:
    """The tests of this process: the functions that they executed."""

    def __init__(self) -> None:
        self._found: list[tuple[str, float, list[str]]] = []

    @contextmanager
    def test(self, name: str) -> Iterator[None]:
        """Record what is executed meanwhile as a test."""
        for executed, _ in _modules.values():
            executed[:] = bytes(len(executed))
        start = _seconds()
        try:
            yield
        finally:
            if _modules and name:
                self._found.append((name, _seconds() - start, [*_executed()]))
            _of_forks.clear()

    def write(self) -> None:
        """Write the records."""
        run = os.environ.get(RUN)
        if not self._found or not run:
            return
        with closing(_open()) as db, db:
            db.execute("BEGIN IMMEDIATE")
            _read_new_numbers(db)
            for name, seconds, functions in self._found:
                for function in functions:
                    if function not in _numbers:
                        _numbers[function] = db.execute("INSERT INTO functions VALUES (?)", [function]).lastrowid
                found = {_numbers[f] for f in functions}
                before = db.execute("SELECT seconds, functions FROM tests WHERE name = ? AND run = ?", (name, run))
                for old, data in before:
                    seconds, found = seconds + old, found | set(np.frombuffer(data, np.uint32).tolist())
                record = np.array(sorted(found), np.uint32).tobytes()
                db.execute("INSERT OR REPLACE INTO tests VALUES (?, ?, ?, ?)", (name, run, seconds, record))
        self._found.clear()


_numbers: dict[str, Any] = {}
"""The numbers of functions, which count from 1, as far as this process has read them."""


def _read_new_numbers(db: sqlite3.Connection) -> None:
    _numbers.update(db.execute("SELECT name, rowid FROM functions WHERE rowid > ?", [len(_numbers)]))


def read_new_numbers() -> None:
    """Read the numbers of functions for the forks of this process, each of which would read all of them."""
    if os.environ.get(RUN):
        with closing(_open()) as db:
            _read_new_numbers(db)


def _executed() -> Iterator[str]:
    for executed, names in _modules.values():
        if 1 in executed:
            yield from compress(names, executed)
    for memory, names in _of_forks:
        yield from compress(names, memory[:])


def marks_of_fork() -> Callable[[], None]:
    """Memory for the marks of a fork of this process, which the test that runs has too; the fork calls the result."""
    names = [name for _, of_module in _modules.values() for name in of_module]
    memory = mmap.mmap(-1, len(names) or 1)
    _of_forks.append((memory, names))

    def use() -> None:
        at, marks = 0, {}
        for executed, of_module in _modules.values():
            marks[id(executed)] = memoryview(memory)[at : at + len(of_module)]
            at += len(of_module)
        for module in [*sys.modules.values()]:
            executed = getattr(module, "__dict__", {}).get("__executed__")
            if id(executed) in marks:
                module.__dict__["__executed__"] = marks[id(executed)]

    return use


def _seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _open() -> sqlite3.Connection:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(FILE, timeout=120, isolation_level=None)
    # A record is not worth waiting for the disk.
    db.execute("PRAGMA synchronous = OFF")
    db.execute("CREATE TABLE IF NOT EXISTS functions (name TEXT UNIQUE)")
    db.execute("CREATE TABLE IF NOT EXISTS tests (name TEXT PRIMARY KEY, run TEXT, seconds REAL, functions BLOB)")
    return db


def read() -> tuple[dict[str, int], dict[str, tuple[float, Any]]]:
    """The numbers of functions, and for each test its seconds and the functions it executed."""
    if not FILE.exists():
        return {}, {}
    with closing(_open()) as db:
        numbers = dict(db.execute("SELECT name, rowid FROM functions"))
        tests = db.execute("SELECT name, seconds, functions FROM tests")
        return numbers, {name: (seconds, np.frombuffer(data, np.uint32)) for name, seconds, data in tests}


# Tests import this module before the package. Processes that they start may import it later, and record nothing.
if os.environ.get(RUN) and "xegpu_py" not in sys.modules:
    sys.meta_path.insert(0, unexecuted.Finder(_Loader))
if os.environ.get(unexecuted.VARIABLE) and "xegpu_py" not in sys.modules:
    sys.meta_path.insert(0, unexecuted.Finder())
