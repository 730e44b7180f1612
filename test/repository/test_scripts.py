"""Every script of the repository starts on a machine with nothing but the package: it runs, or says what it needs."""

import ast
import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]

SCRIPTS = sorted(
    path
    for folder in ("benchmarks", "docs", "editors", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if "__main__" in path.read_text()
)

ARGUMENTS = re.compile(r"\w+\.py: skipped: needs (a|the) folder|\w+\.py: skipped: needs arguments: usage")
PACKAGE = re.compile(r"\w+\.py: skipped: needs '[\w-]+': .+")

SKIPPED = {
    "compare.py": ARGUMENTS, "replay.py": ARGUMENTS, "map.py": ARGUMENTS, "pictures.py": ARGUMENTS,
    "triton_names.py": ARGUMENTS, "options.py": ARGUMENTS, "grammars.py": ARGUMENTS, "judge.py": PACKAGE,
    "lowering.py": PACKAGE, "opencl_kernels.py": PACKAGE, "parse_verify_print.py": PACKAGE,
    "search_quality.py": PACKAGE, "search_scaling.py": PACKAGE, "triton_kernels.py": PACKAGE,
}  # fmt: skip
"""The scripts that need more than the package or their defaults. Only these are run to their end."""

# All scripts in one process, since the imports of each take most of the time. Modules of other distributions than those
# that the package requires cannot be imported.
START = """
import contextlib, io, json, os, runpy, sys, traceback
from pathlib import Path

hidden, scripts = json.load(sys.stdin)

class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder)
path, found = list(sys.path), {}
for script, name in scripts:
    sys.path[:] = [str(Path(script).parent), *path]
    sys.argv[:] = [script]
    for module in [m for m in sys.modules if m.partition(".")[0] in ("support", "cases", "kernels")]:
        del sys.modules[module]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_path(script, run_name=name)
        status = 0
    except SystemExit as e:
        status = e.code or 0
    except BaseException:
        status = traceback.format_exc()
    found[script] = [status, output.getvalue()]
print(json.dumps(found))
"""


def closure(name: str) -> set[str]:
    """The distributions that one requires, without extras."""
    found, waiting = set(), [name]
    while waiting:
        one = waiting.pop().lower().replace("_", "-")
        if one in found:
            continue
        found.add(one)
        try:
            required = map(Requirement, metadata.requires(one) or ())
        except metadata.PackageNotFoundError:
            continue
        waiting += [r.name for r in required if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def hidden() -> list[str]:
    """The installed modules that the package does not require."""
    allowed = closure("xegpu-py")
    found = [
        module
        for module, owners in metadata.packages_distributions().items()
        if not {owner.lower().replace("_", "-") for owner in owners} & allowed
    ]
    assert "pytest" in found
    assert not {"numpy", "mlir", "xegpu_py"} & set(found)
    return found


@pytest.fixture(scope="module")
def started(hidden: list[str]) -> dict[str, tuple[object, str]]:
    """The exit status and the output of each script."""
    scripts = [(str(s), "__main__" if s.name in SKIPPED else "script") for s in SCRIPTS]
    done = subprocess.run(
        [sys.executable, "-c", START],
        input=json.dumps([hidden, scripts]),
        capture_output=True,
        text=True,
        env={**os.environ, "XEGPU_PY_ORACLES": "off"},
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, tuple[object, str]] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_start_with_the_package_alone(script: Path, started: dict[str, tuple[object, str]]) -> None:
    status, output = started[str(script)]
    assert status == 0, status
    if script.name in SKIPPED:
        assert SKIPPED[script.name].match(output), output
        assert len(output.splitlines()) == 1


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_of_other_packages_say_what_they_need(script: Path, hidden: list[str]) -> None:
    """Also those in functions, which the start of a script does not reach."""
    own = {file.stem for file in (ROOT / "test/unit").glob("*.py")}

    def imported(root: ast.AST) -> set[str]:
        nodes = list(ast.walk(root))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        return {name.partition(".")[0] for name in names} & set(hidden) - own

    tree = ast.parse(script.read_text())
    tried = [imported(node) for node in ast.walk(tree) if isinstance(node, ast.Try)]
    assert imported(tree) == set().union(*tried)


def test_all_benchmarks_are_run_and_what_was_skipped_or_failed_is_listed(tmp_path: Path) -> None:
    texts = {"good": "print('ratio 1.00')", "lacks": "print(\"lacks.py: skipped: needs 'x': y\")", "bad": "1 / 0"}
    files = [tmp_path / f"{name}.py" for name in texts]
    for file in files:
        file.write_text(texts[file.stem])
    command = [sys.executable, ROOT / "benchmarks/support/run_all.py", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert done.stdout.endswith(
        f"3 benchmarks, 1 skipped, 1 failed\nlacks.py: skipped: needs 'x': y\n{files[2]}: exit status 1\n"
    )
    assert subprocess.run(command[:-1], capture_output=True).returncode == 0
