"""Code imports only from the layers below its own, which CONTRIBUTING.md lists."""

import ast
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

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
    table = text[text.index("| Layer |") :].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.+`) \| .* \|$", table, re.MULTILINE)
    found = []
    for row in rows:
        packages = [p.strip("/").replace("/", ".") for p in re.findall(r"`([^`]+)`", row)]
        found.append({p if p.startswith("xegpu_py") else f"xegpu_py.{p}" for p in packages})
    return found[::-1]


LAYERS = layers()


def layer_of(module: str) -> int:
    found = [(len(p), n) for n, packages in enumerate(LAYERS) for p in packages if f"{module}.".startswith(f"{p}.")]
    return max(found)[1]


class Import(NamedTuple):
    """A module that another one imports: at its start, in a function, for types only, or by a computed name."""

    module: str
    name: str
    line: int
    kind: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.name}"


def imports(module: str, tree: ast.AST, kind: str = "start") -> Iterator[Import]:
    """The package's modules that a module imports, and calls that import by a computed name."""
    for node in ast.iter_child_nodes(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{module}:{node.lineno} has a relative import"
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names = list(dict.fromkeys(name if name in MODULES else node.module for name in full))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            yield Import(module, ast.unparse(node), node.lineno, "by name")
        yield from (Import(module, name, node.lineno, kind) for name in names if name in MODULES)
        inner = kind
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            inner = "in a function"
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            inner = "for types"
        yield from imports(module, node, inner)


IMPORTS = [found for file in SOURCES for found in imports(module_of(file), ast.parse(file.read_text()))]


def package_of(module: str) -> str:
    """The folder of a module below `xegpu_py`; "xegpu_py" for a file there."""
    folder = ".".join(module.split(".")[:2])
    return folder if any(m.startswith(f"{folder}.") for m in MODULES) else "xegpu_py"


def expand_legacy(found: Iterable[Import], today: Mapping[str, int]) -> None:
    """Imports are no more than the exceptions of today, and no fewer: where there are fewer, `today` has to say so."""
    by_package: dict[str, list[Import]] = {}
    for one in found:
        by_package.setdefault(package_of(one.module), []).append(one)
    for package in sorted({*by_package, *today}):
        have, may = by_package.get(package, []), today.get(package, 0)
        assert len(have) <= may, f"{package} may have {may}, but has {len(have)}:\n" + "\n".join(map(str, have))
        assert len(have) >= may, f"{package} has only {len(have)} now: lower its number, which is {may}"


def test_layers_are_read():
    assert len(LAYERS) == 13
    assert layer_of("xegpu_py.ir.module") < layer_of("xegpu_py.dialects.xegpu") < layer_of("xegpu_py.passes")
    assert (
        layer_of("xegpu_py.runtime.launch")
        < layer_of("xegpu_py.extensions.programs.load")
        < layer_of("xegpu_py.tools.driver")
    )


UPWARD: dict[str, int] = {}
"""Imports from higher layers, by package. This table and those below hold the exceptions of today, and only shrink."""

IN_FUNCTIONS = {"xegpu_py.dialects": 3, "xegpu_py.extensions": 1, "xegpu_py.tools": 1}
"""Imports in functions, by package."""

BY_NAME = {
    "xegpu_py": 2,
    "xegpu_py.dialects": 1,
    "xegpu_py.ir": 4,
    "xegpu_py.language": 1,
    "xegpu_py.upstream": 1,
}
"""Calls that import a module whose name is computed, such as tables that say which module an op's rules are in."""

RINGS = [
    ["engines.jit.rules", "engines.jit.rules.control", "engines.jit.thread_function"],
    ["layout.nested", "layout.pictures"],
]
"""Modules that import each other, if imports for annotations count; without these there is no ring."""

CROSSING: dict[str, int] = {}
"""Imports from one pass to another."""


def test_imports_go_down():
    down = [i for i in IMPORTS if i.kind != "by name"]
    expand_legacy([i for i in down if layer_of(i.name) > layer_of(i.module)], UPWARD)


EXTENSIONS = "xegpu_py.extensions."


def test_the_core_imports_no_extension():
    """Also not for types; the public names and the tools of extensions are no part of the core."""
    outside = ("xegpu_py", *(f"xegpu_py.tools.xegpu_{name}" for name in ("lsp", "test", "tune")))
    core = [i for i in IMPORTS if not i.module.startswith(EXTENSIONS) and i.module not in outside]
    assert not [str(i) for i in core if i.name.startswith(EXTENSIONS)]


def test_an_extension_imports_those_that_it_names():
    for one in IMPORTS:
        if one.module.startswith(EXTENSIONS) and one.name.startswith(EXTENSIONS):
            own, other = one.module.split(".")[2], one.name.split(".")[2]
            about = importlib.import_module(f"{EXTENSIONS}{own}").__doc__
            assert own == other or f"Imports the extension `{other}`" in about, str(one)


SHARED_NAMES = frozenset(
    (
        # The thing itself in several front ends, dialects and engines.
        "Compiler", "Context", "Emitter", "Kernel", "Lowering", "Parameter", "Program", "Runner",
        "I32", "MemRef", "Number", "NumberCodec", "Pointer", "Range", "SgMap", "TensorDesc", "Tile", "Vector",
        "Address", "Difference", "Format", "Guard", "LocalMemory", "Product", "Reading", "Region",
    )
)  # fmt: skip
"""The names of several public classes. A name that no class shares any more is to be removed here; none is added."""


def test_one_class_name_means_one_thing():
    """Ops and private classes are left out: their dialect or module tells them apart."""
    modules = defaultdict(set)
    for file in SOURCES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not node.name.endswith("Op"):
                modules[node.name].add(module_of(file))
    assert {name for name, where in modules.items() if len(where) > 1} == SHARED_NAMES


def test_the_core_needs_no_extra():
    """Importing every module of the core imports no package that only an extra has."""
    core = [m for m in MODULES if not m.startswith(("xegpu_py.extensions", "xegpu_py.__main__"))]
    code = f"import importlib, sys\nfor m in {core!r}: importlib.import_module(m)\nprint(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    extras = ("optuna", "dask", "distributed", "bokeh", "elftools", "yaml", "pygls", "torch", "triton", "pandas")
    assert not {m.split(".")[0] for m in loaded} & {*extras, "cloudpickle", "psutil", "pyarrow", "matplotlib"}


def test_imports_stand_at_the_start():
    expand_legacy([i for i in IMPORTS if i.kind == "in a function"], IN_FUNCTIONS)


def test_imports_name_their_modules():
    expand_legacy([i for i in IMPORTS if i.kind == "by name"], BY_NAME)


def rings(kinds: Container[str]) -> list[list[str]]:
    """The sets of modules that import each other by imports of these kinds."""
    uses: dict[str, set[str]] = {module: set() for module in MODULES}
    for one in IMPORTS:
        if one.kind in kinds and one.name != one.module:
            uses[one.module].add(one.name)
    reached = {}
    for module in MODULES:
        pending, reached[module] = [*uses[module]], set[str]()
        while pending:
            if (name := pending.pop()) not in reached[module]:
                reached[module].add(name)
                pending += uses[name]
    found = {frozenset(n for n in reached[m] if m in reached[n]) for m in MODULES if m in reached[m]}
    return sorted(sorted(m.removeprefix("xegpu_py.") for m in ring) for ring in found)


def test_modules_do_not_import_each_other():
    assert rings(("start", "in a function")) == []
    assert rings(("start", "in a function", "for types")) == RINGS


def test_what_is_imported_is_found():
    """All ways to import, of which each adds to one of the tables."""
    text = """
from typing import TYPE_CHECKING
import xegpu_py.target
from xegpu_py.ir import module, passes
if TYPE_CHECKING:
    from xegpu_py.runtime.kernel import Kernel
class C:
    def f(self):
        if True:
            from xegpu_py.runtime.kernel import Kernel
        return importlib.import_module(f"xegpu_py.{self}")
"""
    found = [(i.name.removeprefix("xegpu_py."), i.kind) for i in imports("xegpu_py.own", ast.parse(text))]
    assert found == [
        ("target", "start"),
        ("ir.module", "start"),
        ("ir.passes", "start"),
        ("runtime.kernel", "for types"),
        ("runtime.kernel", "in a function"),
        ("importlib.import_module(f'xegpu_py.{self}')", "by name"),
    ]
    own = Import("xegpu_py.visa.own", "xegpu_py.runtime.kernel", 1, "in a function")
    expand_legacy([own], {"xegpu_py.visa": 1})
    with pytest.raises(
        AssertionError, match=r"may have 0, but has 1:\s+xegpu_py.visa.own:1 imports xegpu_py.runtime.kernel"
    ):
        expand_legacy([own], {})
    with pytest.raises(AssertionError, match="has only 1 now: lower its number, which is 2"):
        expand_legacy([own], {"xegpu_py.visa": 2})


SHARED = ("xegpu_py.passes.rewriting", "xegpu_py.passes.analysis")
"""The modules that several passes share."""


def test_passes_share_code_only_where_it_says_so():
    crossing = []
    for one in IMPORTS:
        if one.name.startswith("xegpu_py.passes.") and one.module != "xegpu_py.passes":
            inside = one.module.startswith("xegpu_py.passes.")
            allowed = (".".join(one.module.split(".")[:3]), *SHARED) if inside else SHARED
            if not f"{one.name}.".startswith(tuple(f"{a}." for a in allowed)):
                crossing.append(one)
    expand_legacy(crossing, CROSSING)


def test_tools_start_without_what_they_may_not_need():
    code = "import sys, xegpu_py.tools.xegpu_opt; print(*sys.modules, sep='\\n')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    packages = ("engines.jit", "language", "tiles", "extensions", "reference")
    assert not [m for m in found if m.startswith(tuple(f"xegpu_py.{p}" for p in packages))]
    # The metadata of all installed distributions take a fifth of the time.
    assert "importlib.metadata" not in found


def test_a_first_kernel_imports_only_what_it_needs():
    path = ROOT / "benchmarks/first_kernel.py"
    code = f"import runpy, sys; runpy.run_path({str(path)!r}, run_name='__main__'); print(*sys.modules, sep='\\n')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    needless = {
        "difflib",
        "fractions",
        "mlir.dialects.arith",
        "mlir.dialects.builtin",
        "mlir.dialects.gpu",
        "mlir.dialects.scf",
        "mlir.dialects.vector",
        "xegpu_py.engines.interpreter",
        "xegpu_py.engines.jit.dpas_functions",
        "xegpu_py.engines.jit.rules.dpas",
        "xegpu_py.engines.jit.rules.elementary",
        "xegpu_py.engines.races",
        "xegpu_py.ir.printer",
        "xegpu_py.visa.assembly",
    }
    assert not needless & {*found}
    assert "xegpu_py.engines.jit.rules.block2d" in found


LOOKUPS = """
import os, sys, xegpu_py
class Finder:
    def find_spec(name, path, target=None):
        if name == "mlir._mlir_libs._mlir":
            print(sys.getdlopenflags() & (os.RTLD_NOW | os.RTLD_LAZY) == os.RTLD_LAZY)
sys.meta_path.insert(0, Finder)
before = sys.getdlopenflags()
xegpu_py.parse
print(sys.getdlopenflags() == before)
"""


def test_functions_of_mlir_are_looked_up_when_they_are_called():
    """And other libraries are loaded as Python loads them."""
    found = subprocess.run([sys.executable, "-c", LOOKUPS], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["True", "True"]
