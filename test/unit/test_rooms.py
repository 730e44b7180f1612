"""Code imports only from the floors below its own, which README.md lists."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [f for top in ("xegpu_py", "dialects", "passes", "tools") for f in sorted((ROOT / top).rglob("*.py"))]


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts if parts[0] == "xegpu_py" else ("xegpu_py", *parts))
    return name.removesuffix(".__init__")


MODULES = {module_of(f) for f in SOURCES}


def floors() -> list[set[str]]:
    """The rooms of each floor, the lowest first."""
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| (`.+`) \| .* \|$", readme[readme.index("Code lies on floors") :], re.MULTILINE)
    found = []
    for row in rows:
        rooms = [room.strip("/").replace("/", ".") for room in re.findall(r"`([^`]+)`", row)]
        found.append({room if room.startswith("xegpu_py") else f"xegpu_py.{room}" for room in rooms})
    return found[::-1]


FLOORS = floors()


def floor_of(module: str) -> int:
    rooms = [(len(room), n) for n, floor in enumerate(FLOORS) for room in floor if f"{module}.".startswith(f"{room}.")]
    return max(rooms)[1]


def imported(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in names)


def test_floors_are_read():
    assert len(FLOORS) == 7
    assert floor_of("xegpu_py.ir.module") < floor_of("xegpu_py.dialects.xegpu") < floor_of("xegpu_py.passes.xetile")
    assert floor_of("xegpu_py.runtime.launch") < floor_of("xegpu_py.kernel") < floor_of("xegpu_py.tools.driver")


def test_imports_go_down():
    upward = []
    for file in SOURCES:
        own = module_of(file)
        names = [n for n in imported(file) if n.startswith("xegpu_py.")]
        upward += [f"{own} imports {n}" for n in names if floor_of(n) > floor_of(own)]
    assert upward == []


def test_tools_start_without_what_they_may_not_need():
    code = "import sys, xegpu_py.tools.xegpu_opt; print(*sys.modules, sep='\\n')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    rooms = ("dialects.", "engines", "runtime", "visa", "numerics", "layout")
    assert not [m for m in found if m.startswith(tuple(f"xegpu_py.{room}" for room in rooms))]
