"""`make check`: the tests that execute the functions which the working tree changes, the most specific ones first.

`make test` records which functions each test executes (`recorder.py`). A change is the difference of the working tree
from the branch that it follows, or else from the last commit. Tests come in the order of the share of the changed
files' functions among all that they execute, and take no more processor time than `--seconds`. Tests that were changed
themselves always run. Without a record, as in a fresh clone, tests are chosen that name the changed module.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import recorder
from recorder import ROOT

PRODUCT = ("xegpu_py/", "dialects/", "passes/", "tools/")
LIT = (".mlir", ".visaasm", ".test")
UNRECORDED = 30
"""At most so many files of tests are chosen by name."""

IMPORTING = 8
"""At most so many files of tests run for a module of theirs that changed."""


def git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def changes(base: str) -> dict[str, set[int]]:
    """The changed files, with their changed lines; of a deletion the line before it."""
    found: dict[str, set[int]] = {name: set() for name in git("ls-files", "--others", "--exclude-standard").split("\n")}
    found.pop("", None)
    for name, path in ((name, ROOT / name) for name in found):
        found[name] = {*range(1, path.read_bytes().count(b"\n") + 2)}
    name = ""
    for line in git("diff", "-U0", "--no-color", "--no-ext-diff", "--no-prefix", base).splitlines():
        if line.startswith("+++ "):
            name = line[4:].rstrip("\t")
        elif line.startswith("--- "):
            name = ""
        elif name and (m := re.match(r"@@ .* \+(\d+)(?:,(\d+))? @@", line)):
            first, count = int(m[1]), int(m[2] or 1)
            found.setdefault(name, set()).update(range(first, first + max(count, 1)))
    return {name: lines for name, lines in found.items() if name != "/dev/null" and (ROOT / name).is_file()}


def scopes(file: str, lines: set[int]) -> set[str]:
    """The innermost functions or classes that contain lines; "" for the module."""
    spans: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, scope: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{scope}.{child.name}".lstrip(".")
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                spans.append((first, child.end_lineno or first, inner))
            visit(child, inner)

    text = (ROOT / file).read_text()
    visit(ast.parse(text), "")
    code = {n for n, line in enumerate(text.splitlines(), 1) if n in lines and line.strip() and line.strip()[0] != "#"}
    return {max(((first, name) for first, last, name in spans if first <= n <= last), default=(0, ""))[1] for n in code}


def recorded(changed: dict[str, set[int]]) -> tuple[list[str], set[str], dict[str, float]]:
    """The tests that execute what changed, the most specific first; the files of which there is no record; seconds."""
    numbers, tests = recorder.read()
    of_files: dict[str, list[str]] = {}
    for function in numbers:
        of_files.setdefault(function.partition(":")[0], []).append(function)
    wanted, near, unknown = set[int](), set[int](), set[str]()
    for file, lines in changed.items():
        own = of_files.get(file, [])
        for scope in scopes(file, lines):
            name = f"{file}:{scope}".rstrip(":")
            within = [f for f in own if f == name or f.startswith(f"{name}.")] if scope else own
            # Of a new function there is no record: it is called by others of its file.
            wanted |= {numbers[f] for f in within or own}
        near |= {numbers[f] for f in own}
        if not own:
            unknown.add(file)
    order = []
    for test, (seconds, functions) in tests.items():
        if np.isin(functions, [*wanted]).any():
            share = np.isin(functions, [*near]).sum() / len(functions)
            order.append((-round(float(share), 2), seconds, test))
    return [test for _, _, test in sorted(order)], unknown, {test: found[0] for test, found in tests.items()}


def naming(file: str) -> list[str]:
    """Tests whose text names the module of a file, or the pass, or the dialect in whose folder it is, in this order."""
    path = Path(file)
    stem = path.parent.name if path.stem == "__init__" else path.stem
    words = rf"\b(?:{stem}|{stem.replace('_', '-')})\b"
    folder = rf"\b{path.parent.name}\."
    found = []
    for test in git("ls-files", "test").split():
        is_lit = test.endswith(LIT) and "/Inputs/" not in test
        if is_lit or re.search(r"/unit/.*test_\w+\.py$|/extensions/.*test_\w+\.py$", test):
            text = (ROOT / test).read_text(errors="replace")
            if count := len(re.findall(words, text)):
                found.append((0, -count, test))
            elif is_lit and re.search(folder, text):
                found.append((1, 0, test))
            elif f"/{path.parent.name}/" in test:
                found.append((2, 0, test))
    return [test for *_, test in sorted(found)[:UNRECORDED]]


def of_tests(changed: dict[str, set[int]]) -> Iterator[str]:
    """Tests that a change of files which are not the product's can affect."""
    names = [f for f in git("ls-files", "test/unit", "test/extensions").split() if "/test_" in f]
    texts = {name: (ROOT / name).read_text() for name in names}
    pages = (ROOT / "test/repository/test_pages.py").read_text()
    for file in changed:
        path = Path(file)
        is_lit = path.suffix in LIT and "Inputs" not in path.parts
        if is_lit or (path.name.startswith("test_") and path.suffix == ".py"):
            yield file
        elif file.startswith("test/") and path.suffix == ".py":
            imported = re.compile(rf"import .*\b{path.stem}\b|\b{path.stem} import")
            yield from [name for name, text in texts.items() if imported.search(text)][:IMPORTING]
        elif m := re.search(rf'\("{file}", (\d+)\)', pages):
            yield f"test/repository/test_pages.py::test_outputs_are_true[{file}-{m[1]}]"


def chosen(changed: dict[str, set[int]], limit: float) -> tuple[list[str], list[str]]:
    """The tests to run, and those that are left out for their time."""
    product = {f: lines for f, lines in changed.items() if f.startswith(PRODUCT) and f.endswith(".py")}
    order, unknown, seconds = recorded(product)
    always = [*of_tests({f: lines for f, lines in changed.items() if f not in product})]
    always += [test for file in sorted(unknown) for test in naming(file)]
    left_out, total = [], 0.0
    run = []
    for test in order:
        if total + seconds[test] <= limit or not limit:
            total += seconds[test]
            run.append(test)
        else:
            left_out.append(test)
    return [*dict.fromkeys([*always, *run])], left_out


def main() -> int:
    """Run the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", help="the commit to compare with; by default where the branch left its upstream")
    parser.add_argument("--seconds", type=float, default=60, help="processor time of the tests; 0 for all")
    parser.add_argument("--list", action="store_true", help="list the tests only")
    options = parser.parse_args()
    try:
        base = options.base or git("merge-base", "HEAD", "@{upstream}").strip()
    except subprocess.CalledProcessError:
        base = "HEAD"
    changed = changes(base)
    tests, left_out = chosen(changed, options.seconds)
    if options.list:
        print(*tests, sep="\n")
        return 0
    print(
        f"{len(changed)} changed files; {len(tests)} tests or files of tests, {len(left_out)} left out for their time"
    )
    if not recorder.FILE.exists():
        print("no record of which test executes what: `make test` makes it")
    os.environ.setdefault(recorder.RUN, f"check {time.time()}")
    lit = sorted({t for t in tests if t.endswith(LIT) and (ROOT / t).exists()})
    pytest = {t for t in tests if t not in lit and (ROOT / t.partition("::")[0]).exists()}
    status = 0
    tools = Path(sys.executable).parent
    if lit:
        status |= subprocess.run([tools / "lit", "-s", *lit], cwd=ROOT).returncode
    if pytest:
        listed = ROOT / "build" / "recorded" / "check"
        listed.parent.mkdir(parents=True, exist_ok=True)
        listed.write_text("\n".join(sorted(pytest)))
        files = sorted({t.partition("::")[0] for t in pytest})
        several = ["-n", "auto", "--dist", "worksteal"] if len(pytest) > 20 else []
        found = subprocess.run([tools / "pytest", "-q", "--listed", listed, *several, *files], cwd=ROOT).returncode
        # Tests that no longer exist are no failure.
        status |= found if found != 5 else 0
    return status


if __name__ == "__main__":
    sys.exit(main())
