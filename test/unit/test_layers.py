"""Code imports only from the layers below its own, which CONTRIBUTING.md lists."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [f for top in ("xegpu_py", "dialects", "passes", "tools") for f in sorted((ROOT / top).rglob("*.py"))]


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts if parts[0] == "xegpu_py" else ("xegpu_py", *parts))
    return name.removesuffix(".__init__")


MODULES = {module_of(f) for f in SOURCES}


def layers() -> list[set[str]]:
    """The packages of each layer, the lowest first."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    text = text[text.index("Code imports only from lower layers") :]
    rows = re.findall(r"^\| (`.+`) \| .* \|$", text, re.MULTILINE)
    found = []
    for row in rows:
        packages = [p.strip("/").replace("/", ".") for p in re.findall(r"`([^`]+)`", row)]
        found.append({p if p.startswith("xegpu_py") else f"xegpu_py.{p}" for p in packages})
    return found[::-1]


LAYERS = layers()


def layer_of(module: str) -> int:
    found = [(len(p), n) for n, packages in enumerate(LAYERS) for p in packages if f"{module}.".startswith(f"{p}.")]
    return max(found)[1]


def imported(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in names)


def test_layers_are_read():
    assert len(LAYERS) == 8
    assert layer_of("xegpu_py.ir.module") < layer_of("xegpu_py.dialects.xegpu") < layer_of("xegpu_py.passes.xetile")
    assert layer_of("xegpu_py.runtime.launch") < layer_of("xegpu_py.kernel") < layer_of("xegpu_py.tools.driver")


def test_imports_go_down():
    upward = []
    for file in SOURCES:
        own = module_of(file)
        names = [n for n in imported(file) if n.startswith("xegpu_py.")]
        upward += [f"{own} imports {n}" for n in names if layer_of(n) > layer_of(own)]
    assert upward == []


SHARED = ("xegpu_py.passes.common", "xegpu_py.passes.xetile")
"""The modules that several passes share."""


def test_passes_share_code_only_where_it_says_so():
    crossing = []
    for file in SOURCES:
        own = module_of(file)
        if own.startswith("xegpu_py.passes."):
            names = [n for n in imported(file) if n.startswith("xegpu_py.passes.")]
            allowed = (".".join(own.split(".")[:3]), *SHARED)
            if own.startswith(SHARED[0]):
                allowed = SHARED[:1]
            crossing += [f"{own} imports {n}" for n in names if not f"{n}.".startswith(tuple(f"{a}." for a in allowed))]
    assert crossing == []


def test_what_is_not_a_pass_imports_from_none():
    inside = []
    for file in SOURCES:
        own = module_of(file)
        if not own.startswith("xegpu_py.passes."):
            names = [n for n in imported(file) if n.startswith("xegpu_py.passes.")]
            inside += [f"{own} imports {n}" for n in names if not n.startswith(SHARED)]
    assert inside == []


IR_ORDER = (
    "bindings builtin combining calls cursor decoded dense diagnostics printf numbers folding slices source mixed",
    "bodies expected constraints codecs definition type_reader fields operation",
    "assembly generic reader printer formatting verifier irdl context docs module passes",
)
"""The modules of `ir`, the lowest first: facts about MLIR's objects and text; declarations; objects made from them."""


def test_ir_is_a_line():
    order = [f"xegpu_py.ir.{name}" for row in IR_ORDER for name in row.split()]
    files = {module_of(file): file for file in SOURCES if module_of(file).startswith("xegpu_py.ir.")}
    assert sorted(order) == sorted(files)
    upward = []
    for own, file in files.items():
        upward += [f"{own} imports {n}" for n in imported(file) if n in files and order.index(n) >= order.index(own)]
    assert upward == []


LINES = ("dialects", "engines", "numerics", "reference", "runtime", "visa")
"""Packages whose modules import each other without cycles."""


@pytest.mark.parametrize("package", LINES)
def test_packages_have_no_circles(package):
    files = {module_of(file): file for file in SOURCES if module_of(file).startswith(f"xegpu_py.{package}.")}
    graph = {own: {n for n in imported(file) if n in files and n != own} for own, file in files.items()}
    assert len([*TopologicalSorter(graph).static_order()]) == len(files) > 1


def test_tools_start_without_what_they_may_not_need():
    code = "import sys, xegpu_py.tools.xegpu_opt; print(*sys.modules, sep='\\n')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    packages = ("dialects.", "engines", "runtime", "visa", "numerics", "layout")
    assert not [m for m in found if m.startswith(tuple(f"xegpu_py.{p}" for p in packages))]
