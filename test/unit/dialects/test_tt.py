"""TTIR: the ops are Triton's, and what libtriton prints is read and printed the same, both ways."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import xegpu_py
from xegpu_py.dialects.tt import Tt
from xegpu_py.ir.module import parse, print_op

DUMPED = sorted((Path(__file__).parents[2] / "dialects/tt/dumped").glob("*.ttir"))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub("(LHS|RHS)$", lambda m: m[0].capitalize(), name)).lower()


def _definitions() -> dict[str, set[str]]:
    """The ops of the installed Triton, and the names of their operands, attributes, results and regions."""
    triton = pytest.importorskip("triton")
    text = (Path(triton.__file__).parent / "include/triton/Dialect/Triton/IR/TritonOps.td").read_text()
    text = re.sub(r"//[^\n]*|\[\{.*?\}\]", "", text, flags=re.DOTALL)
    starts = [m.start() for m in re.finditer(r"^def ", text, re.MULTILINE)] + [len(text)]
    found = {}
    for start, end in pairwise(starts):
        m = re.search(r'TT_Op\s*<\s*"([\w.]+)"', text[start:end])
        if m:
            body = re.sub(r"let builders = \[.*?\];", "", text[start:end], flags=re.DOTALL)
            fields = re.findall(r"let (?:arguments|results|regions) = \(\s*\w+(.*?)\);", body, re.DOTALL)
            found[m[1]] = {_snake(name) for name in re.findall(r"\$(\w+)", " ".join(fields))}
    return found


def test_the_ops_are_those_of_the_installed_triton():
    theirs = _definitions()
    assert len(theirs) > 50
    assert theirs.keys() == Tt.operations.keys() | Tt.carried.keys()
    for name, op in Tt.operations.items():
        spec = op.spec
        ours = {f.name for f in (*spec.operands, *spec.results, *spec.regions)} | spec.attributes.keys()
        assert {_snake(n) for n in ours} == theirs[name], name


@pytest.mark.parametrize("path", DUMPED, ids=lambda p: p.stem)
def test_dumped_ttir_is_printed_as_it_was(path: Path):
    text = path.read_text()
    module = parse(path)
    printed = module.text(debuginfo=True)
    # Names that only the printer of another process knew, those of loops' arguments, are numbered.
    assert _anonymous(printed) == _anonymous(text)
    assert parse(printed).text(debuginfo=True) == printed
    module.check_roundtrip()
    generic = print_op(module.operation, generic=True)
    assert _anonymous(parse(generic).text()) == _anonymous(module.text())


def _anonymous(text: str) -> list[str]:
    return re.sub(r"%[\w$.-]+", "%", text).split("\n")


@pytest.mark.parametrize("passes", [True, False])
def test_libtriton_prints_the_same(passes: bool, tmp_path: Path):
    pytest.importorskip("triton")
    from generators import triton_kernels as kernels

    theirs, ours = tmp_path / "theirs.ttir", tmp_path / "ours.ttir"
    for kernel in kernels.KERNELS:
        theirs.write_text(kernels.dumped(kernel, passes))
        wanted = kernels.reprinted(theirs)
        ours.write_text(parse(theirs).text(debuginfo=True))
        assert kernels.reprinted(ours) == wanted, kernel
        # The two results of a split have names of their own in libtriton.
        if "tt.split" not in wanted:
            assert ours.read_text() == wanted, kernel


def test_every_op_is_among_the_dumped_ones():
    text = "".join(path.read_text() for path in DUMPED)
    met = set(re.findall(r"\btt\.(\w+(?:\.return)?)", text))
    # Triton's passes fold these, or no function of its language makes them.
    rare = {"split", "cat", "unsplat", "approx_divf"}
    assert (Tt.operations.keys() | Tt.carried.keys()) - met <= rare


NAN = """module { tt.func public @nan(%x: !tt.ptr<f32>, %o: !tt.ptr<i64>) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %v = tt.load %q : tensor<16x!tt.ptr<f32>>
  %a = tt.extern_elementwise %v {libname = "", libpath = "", pure = true, symbol = "__nv_isnanf"}
    : (tensor<16xf32>) -> tensor<16xi32>
  %b = arith.extsi %a : tensor<16xi32> to tensor<16xi64>
  %s = tt.splat %o : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %t = tt.addptr %s, %r : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %t, %b : tensor<16x!tt.ptr<i64>>
  tt.return } }"""


def test_results_of_a_library_have_the_type_of_the_op():
    """Those of isnan are numbers in CUDA's library, and truth values in ours."""
    x, found = np.arange(16, dtype=np.float32), np.full(16, 7, np.int64)
    x[::3] = np.nan
    xegpu_py.compile(NAN)(x, found)
    np.testing.assert_array_equal(found, np.isnan(x))
