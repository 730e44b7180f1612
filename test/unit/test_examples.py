"""The examples run, and the two spellings of the GEMM are one module."""

import runpy
import subprocess
from pathlib import Path

import forked_tools
import pytest

from xegpu_py import DiagnosticError, build
from xegpu_py.dialects import xegpu
from xegpu_py.tools import xegpu_opt

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.mlir")), ids=lambda p: p.name)
def test_opens(path, capsys):
    assert xegpu_opt.run([str(path)]) == 0
    assert not capsys.readouterr().err


SHOWN = {"demo.py": ["== vISA assembly", "equal in every bit to the f32 model, one rounding a product: True"]}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_runs(path, capsys):
    ran = subprocess.run([forked_tools.folder() / "python", path], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert all(text in ran.stdout for text in SHOWN.get(path.name, ()))
    if path.name == "build_gemm.py":
        assert xegpu_opt.run([str(EXAMPLES / "gemm.mlir")]) == 0
        assert ran.stdout == capsys.readouterr().out, "the built GEMM is the written one"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("gallery/*.py")), ids=lambda p: p.name)
def test_the_gallery_agrees_with_numpy(path, capsys):
    runpy.run_path(str(path))
    text, _, found = capsys.readouterr().out.strip().rpartition(": ")
    assert found == "True" if text.startswith("equal") else float(found) < 1e-2


def test_every_op_has_a_building_function():
    # A submodule with the name of an op would hide the function.
    for name, op in xegpu.DIALECT.operations.items():
        assert getattr(xegpu, name) == op.build


def test_a_broken_rule_is_shown_in_the_python_code_that_built_the_op():
    with pytest.raises(DiagnosticError) as caught, build.module(), build.gpu_module("kernels"):
        with build.kernel("k", "memref<64x64xf16>") as (matrix,):
            desc = xegpu.create_nd_tdesc(matrix, [0, 0], tdesc=xegpu.TensorDesc((8, 16), "f16"), mode="vc")
            xegpu.prefetch_nd(desc, mode="vc", l1_hint="write_back")
    position = caught.value.diagnostics[0].position
    assert position.file == __file__
    assert "xegpu.prefetch_nd(desc" in str(caught.value)
