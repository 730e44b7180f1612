"""`ir/bindings.py` is the only module that depends on the release of the MLIR bindings."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import xegpu_py
from xegpu_py.ir import bindings
from xegpu_py.ir.verifier import walk
from xegpu_py.upstream import import_upstream, threads

ROOT = Path(__file__).parents[3]
FILES = [f for top in ("xegpu_py", "dialects", "passes", "tools") for f in (ROOT / top).rglob("*.py")]
IMPORT = re.compile(r"^ *from (mlir[\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)

RENAMES = """
import mlir._mlir_libs._mlirDialectsIRDL
import mlir.ir
from enum import IntEnum
from mlir.dialects import arith, scf

del mlir._mlir_libs._mlirDialectsIRDL.load_dialects
del mlir.ir.loc_tracebacks

kinds = arith.AtomicRMWKind
arith.AtomicRMWKind = IntEnum("AtomicRMWKind", {k.name: k.value for k in kinds if k.name != "xori"})

init = scf.IfOp.__init__
def renamed(self, cond, results_=None, *, hasElse=False, loc=None, ip=None):
    init(self, cond, results_, has_else=hasElse, loc=loc, ip=ip)
scf.IfOp.__init__ = renamed
"""

SMOKE = """
import numpy as np
import xegpu_py
import xegpu_py.language as xl


def kernel(X, Y, n):
    i = xl.arange(0, 16)
    x = xl.load(X + i)
    if n > 1:
        y = x + 1
    else:
        y = x - 1
    xl.atomic_xor(Y + i, y)


x, y, z = np.arange(16, dtype=np.int32), np.zeros(16, np.int32), np.zeros(16, np.int32)
xegpu_py.jit(kernel, engine="interpreter")[1](x, y, 3)
xegpu_py.jit(kernel, engine="eager")[1](x, z, 3)
print((y == x + 1).all() and (z == y).all())
"""


def test_a_kernel_runs_where_names_are_missing_or_spelled_differently(tmp_path):
    path = tmp_path / "smoke.py"
    path.write_text(RENAMES + SMOKE)
    pytest.importorskip("mlir.dialects.irdl")
    ran = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert ran.stdout == "True\n", ran.stderr


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
        found += re.findall(rf"(?:has|get)attr\({name}(?:\.[A-Z]\w*)*, \".*", text)
    return found


def test_other_modules_look_for_no_alternatives():
    found = {file.name: alternatives(file) for file in FILES}
    assert len(found.pop("bindings.py")) >= 4
    assert not any(found.values())


LANES = """
gpu.module @kernels {
  gpu.func @rows(%a: memref<64x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c16 = arith.constant 16 : index
    %c8 = arith.constant 8 : index
    %x = gpu.thread_id x
    %subgroup = arith.divui %x, %c16 : index
    %row = arith.muli %subgroup, %c8 : index
    %t = xegpu.create_nd_tdesc %a : memref<64x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %t[%row, 0] : !xegpu.tensor_desc<8x16xf32> -> vector<8xf32>
    %w = arith.addf %v, %v : vector<8xf32>
    xegpu.store_nd %w, %t[%row, 0] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("op", ["gpu.subgroup_broadcast", "gpu.shuffle"])
def test_lanes_share_a_number_with_and_without_a_broadcast(op, monkeypatch):
    if op == "gpu.shuffle":
        monkeypatch.setattr(threads, "has_subgroup_broadcast", lambda: False)
    elif not threads.has_subgroup_broadcast():
        pytest.skip("these bindings have no gpu.subgroup_broadcast")
    module = import_upstream(LANES)
    assert op in str(module)
    for engine in ("reference", "interpreter"):
        a = np.arange(1024, dtype=np.float32).reshape(64, 16)
        expected = np.where(np.arange(64)[:, None] < 32, 2 * a, a)
        xegpu_py.compile(module, engine=engine)(a, block=64)
        np.testing.assert_array_equal(a, expected)


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
    for name in ("kernel", bindings.kernel_attribute()):
        func.attributes[name] = bindings.ir.UnitAttr.get(func.context)
        assert bindings.is_kernel(func)
        del func.attributes[name]
