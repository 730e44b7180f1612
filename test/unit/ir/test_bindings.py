"""`ir/bindings.py` is the only module that depends on the release of the MLIR bindings."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from mlir.dialects import gpu

import xegpu_py
from xegpu_py.ir import bindings
from xegpu_py.ir.module import walk

ROOT = Path(__file__).parents[3]
FILES = [f for top in ("xegpu_py", "dialects", "passes", "tools") for f in (ROOT / top).rglob("*.py")]
IMPORT = re.compile(r"^ *from (mlir[\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)


def imports(text: str) -> dict[str, str]:
    """The names below `mlir` that a module imports, by the module's names for them."""
    found = {}
    for module, many, one in IMPORT.findall(text):
        for item in (many or one).split("#")[0].split(","):
            name, _, other = item.strip().partition(" as ")
            if name:
                found[other or name] = f"{module}.{name}"
    return found


@cache
def used() -> list[str]:
    """Every name below `mlir` that the package uses, except in `bindings.py`."""
    found = set()
    for file in FILES:
        text = re.sub(r'"{3}.*?"{3}|"[^"\n]*"|#[^\n]*', "", file.read_text(), flags=re.DOTALL)
        own = imports(text) if file.name != "bindings.py" else {}
        for name, full in own.items():
            found |= {
                full + rest for rest in re.findall(rf"(?<![\w.])(?<!from ){name}((?:\.[A-Z]\w*)*(?:\.\w+)?)", text)
            }
    return sorted(found)


LACKING = """
import importlib, inspect, sys

for name in sys.argv[2:]:
    found, path = importlib.import_module(sys.argv[1]), sys.argv[1]
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        try:
            found = inspect.getattr_static(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(path)
            except ImportError:
                print(name)
                break
"""


def lacking(package: str) -> list[str]:
    """The used names that bindings which are imported as `package` lack."""
    command = [sys.executable, "-c", "import xegpu_py.ir.bindings" * (package == "mlir") + LACKING, package, *used()]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_every_name_exists():
    assert len(used()) > 100
    assert lacking("mlir") == []


def test_every_name_exists_in_a_later_release():
    """IREE's compiler contains the bindings of a recent commit of LLVM, without the execution engine."""
    if not list(Path(np.__file__).parents[1].glob("iree/compiler/ir.py")):
        pytest.skip("iree-base-compiler is not installed")
    assert lacking("iree.compiler") == ["mlir.execution_engine.ExecutionEngine"]


def alternatives(file: Path) -> list[str]:
    """The places where a module looks for names that a release may lack."""
    text = file.read_text()
    found = re.findall(r"try:\n +from mlir.*", text)
    for name in imports(text):
        found += re.findall(rf"(?:has|get)attr\({name}(?:\.[A-Z]\w*)*, f?\".*", text)
    return found


def test_other_modules_look_for_no_alternatives():
    found = {file.name: alternatives(file) for file in FILES}
    assert found.pop("bindings.py")
    assert not any(found.values())


def test_locations_of_diagnostics_get_the_class_of_their_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """After LLVM 22 each kind of location has a class, whose constructor refuses other kinds."""

    def refusing(location: object) -> object:
        raise ValueError("Cannot cast location")

    with xegpu_py.Context():
        location = bindings.ir.Location.file("a.mlir", 1, 2)
        assert bindings.narrowed(location) is location
        monkeypatch.setattr(bindings, "_LOCATIONS", (refusing, lambda held: ("narrowed", held)))
        assert bindings.narrowed(location) == ("narrowed", location)


def test_kernels_of_later_releases_have_another_attribute() -> None:
    module = xegpu_py.parse("gpu.module @m {\n  gpu.func @f() {\n    gpu.return\n  }\n}")
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    assert not bindings.is_kernel(func)
    for name in ("kernel", gpu.GPUFuncOp.KERNEL_ATTR_NAME):
        func.attributes[name] = bindings.ir.UnitAttr.get(func.context)
        assert bindings.is_kernel(func)
        del func.attributes[name]


VIEWS = """
import sys, xegpu_py
module = xegpu_py.parse("gpu.module @m { gpu.func @f() kernel { gpu.return } }", name="m.mlir")
xegpu_py.run_pipeline(module, "builtin.module(xegpu-dce)")
print("mlir.dialects.gpu" in sys.modules)
if PASS:
    @xegpu_py.register_pass("named")
    class Named(xegpu_py.Pass):
        def run(self, op):
            for inner in op.regions[0].blocks[0].operations:
                print(type(inner).__name__)
    xegpu_py.run_pipeline(module, "builtin.module(named)")
else:
    print(type(module.body.operations[0]).__name__)
"""


@pytest.mark.parametrize("by_pass", (True, False))
def test_ops_of_upstream_dialects_have_accessors_where_others_see_them(by_pass: bool):
    """Our own passes do not need the accessors of gpu's and arith's ops, whose modules take long to import."""
    code = VIEWS.replace("PASS", str(by_pass))
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["False", "GPUModuleOp"]
