"""Passes that are registered again under one name, as in a notebook."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from mlir import ir
from mlir.dialects import arith, scf

import xegpu_py
from xegpu_py.ir import passes
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.ir.upstream_pass_names import UPSTREAM_PASSES

PIPELINE = "builtin.module(test-mark{value=1})"


@pytest.fixture(autouse=True)
def all_passes() -> None:
    """A pass that is first imported while a test has another registry would be missing after it."""
    passes.registered()


def test_a_pass_that_is_registered_again_is_the_new_one(monkeypatch):
    monkeypatch.setattr(passes, "_REGISTRY", dict(passes._REGISTRY))

    @register_pass("test-mark")
    @dataclass
    class Mark(Pass):
        """Mark the module."""

        value: int = 0

        def run(self, op: ir.Operation) -> None:
            with op.context:
                op.attributes["test.mark"] = ir.Attribute.parse(str(self.value))

    module = xegpu_py.parse("module {}")
    xegpu_py.run_pipeline(module, PIPELINE)
    assert "test.mark = 1 " in str(module)

    @register_pass("test-mark")
    @dataclass
    class Other(Pass):
        """Mark the module without options."""

        def run(self, op: ir.Operation) -> None:
            with op.context:
                op.attributes["test.other"] = ir.UnitAttr.get()

    with pytest.raises(xegpu_py.DiagnosticError, match="has no option 'value'"):
        xegpu_py.run_pipeline(module, PIPELINE)
    xegpu_py.run_pipeline(module, "builtin.module(test-mark)")
    assert "test.other" in str(module)


def test_a_pass_on_the_ir_sees_and_changes_lowered_functions(monkeypatch):
    """Whose ops are built for it, and read again after it."""
    monkeypatch.setattr(passes, "_REGISTRY", dict(passes._REGISTRY))
    names = []

    @register_pass("test-drop")
    @dataclass
    class Drop(Pass):
        """Erase the first instruction."""

        def run(self, op: ir.Operation) -> None:
            instructions = [o for o in walk(op) if o.name in ("visa.mov", "visa.add")]
            names.append(len(instructions))
            instructions[0].erase()

    kernel = """gpu.module @m { gpu.func @k(%n: i32) kernel {
        %a = arith.addi %n, %n : i32
        %b = arith.muli %a, %n : i32
        gpu.printf "%d", %b : i32
        gpu.return } }"""
    module = xegpu_py.parse(kernel)
    xegpu_py.run_pipeline(module, "builtin.module(xegpu-to-visa,test-drop,test-drop)")
    assert names[0] > 1 and names[1] == names[0] - 1


def test_the_bindings_have_every_listed_pass_of_mlir() -> None:
    assert passes.upstream_pass_names() == sorted(UPSTREAM_PASSES)


def test_an_entry_point_whose_module_registers_no_such_pass(monkeypatch) -> None:
    monkeypatch.setattr(passes, "plugin_passes", lambda: {"test-absent": "json"})
    with pytest.raises(xegpu_py.DiagnosticError, match="^json: error: the module registers no pass 'test-absent'"):
        passes.pass_named("test-absent")


@pytest.mark.parametrize("option", ["--help", "--list-passes"])
def test_a_broken_distribution_does_not_stop_others(tmp_path, option) -> None:
    """One line names it, and all other passes are there."""
    (tmp_path / "broken_plugin.py").write_text("raise RuntimeError('it is broken')\n")
    metadata = tmp_path / "broken_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[xegpu_py.passes]\ntest-broken = broken_plugin\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [Path(sys.executable).with_name("xegpu-opt"), option]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.stderr == "warning: broken_plugin: pass 'test-broken': RuntimeError: it is broken\n"
    assert ran.returncode == 0 and "xegpu-dce" in ran.stdout and "test-broken" not in ran.stdout


def test_a_pass_that_ends_the_process_is_named(tmp_path) -> None:
    """MLIR ends the process when an op with uses is erased."""
    (tmp_path / "eraser.py").write_text(
        "import dataclasses, xegpu_py\nfrom xegpu_py.ir.module import walk\n\n"
        "@xegpu_py.register_pass('test-eraser')\n@dataclasses.dataclass\nclass Eraser(xegpu_py.Pass):\n"
        "    def run(self, op):\n"
        "        next(o for o in walk(op) if o.name == 'arith.constant').erase()\n"
    )
    ran = subprocess.run(
        [Path(sys.executable).with_name("xegpu-opt"), "--load-pass-plugin=eraser.py", "--test-eraser"],
        input="func.func @f() -> i32 { %x = arith.constant 1 : i32 return %x : i32 }",
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert ran.stderr.endswith("<stdin>:1:1: error: pass 'test-eraser' ended the process (SIGABRT)\n")


PLUGIN = """
import dataclasses, xegpu_py

@xegpu_py.register_pass("test-rename")
@dataclasses.dataclass
class Rename(xegpu_py.Pass):
    to: str = "renamed"

    def run(self, op):
        from mlir import ir
        op.regions[0].blocks[0].operations[0].attributes["sym_name"] = ir.StringAttr.get(self.to)
"""


@pytest.mark.parametrize(
    ("text", "status", "shown"),
    [
        (PLUGIN, 0, "func.func @other()"),
        (
            PLUGIN + "\nimport no_such_package",
            1,
            "rename_plugin: error: pass 'test-rename': ModuleNotFoundError: No module named",
        ),
    ],
)
def test_another_distribution_adds_a_pass_by_an_entry_point(tmp_path, text, status, shown) -> None:
    (tmp_path / "rename_plugin.py").write_text(text)
    metadata = tmp_path / "rename_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rename-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[xegpu_py.passes]\ntest-rename = rename_plugin\n")
    ran = subprocess.run(
        [Path(sys.executable).with_name("xegpu-opt"), "--test-rename=to=other"],
        input="func.func @f() { return }",
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (status, False), ran.stderr
    assert shown in ran.stdout + ran.stderr


def test_a_pipeline_leaves_out_passes_that_ops_do_not_concern(monkeypatch):
    monkeypatch.setattr(passes, "_REGISTRY", dict(passes._REGISTRY))
    ran = []

    @register_pass("test-adds-loop")
    class AddsLoop(Pass):
        """Add a loop."""

        def run(self, op):
            ran.append("adds")
            block = next(inner for inner in walk(op) if inner.name == "gpu.func").regions[0].blocks[0]
            with ir.InsertionPoint.at_block_begin(block), op.location:
                bound = arith.constant(ir.IndexType.get(), 1)
                with ir.InsertionPoint(scf.ForOp(bound, bound, bound).body):
                    scf.yield_([])

    @register_pass("test-loops")
    class Loops(Pass):
        """Note that there are loops."""

        def concerns(self, contents):
            assert contents.ops == walk(contents.root)
            return "scf.for" in contents.names

        def run(self, op):
            ran.append("loops")

    module = xegpu_py.parse("gpu.module @m { gpu.func @k() kernel { gpu.return } }")
    steps = "test-loops,canonicalize,test-loops,test-adds-loop,test-loops,test-loops,canonicalize,test-loops"
    xegpu_py.run_pipeline(module, f"builtin.module({steps})")
    # The loop runs no time, and canonicalization removes it.
    assert ran == ["adds", "loops", "loops"]
