"""One verdict on a kernel for all GPUs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py.extensions.portability import verdicts
from xegpu_py.extensions.portability.verdicts import GPUS, Portability, targets_of
from xegpu_py.language.jit_function import tile_kernel
from xegpu_py.numerics.differences import unlike
from xegpu_py.runtime.host_arrays import PointerTable, Window
from xegpu_py.runtime.launch import NO_GRID
from xegpu_py.target import TARGETS
from xegpu_py.tools import xegpu_run
from xegpu_py.visa.finalizer import FINALIZERS, FinalizerError, Native

TEST = Path(__file__).parents[2]

BF16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True)
def without_finalizers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.node.get_closest_marker("needs"):
        monkeypatch.setenv("XEGPU_PY_ORACLES", "off")


@xegpu_py.jit
def doubled(x: Any, y: Any, scale: xl.float32 = 2.0, N: xl.Constexpr = 16) -> None:
    at = (xl.program_id(0) * N,)
    y.tile((N,), at=at).store(x.tile((N,), at=at).load() * scale)


def test_a_kernel_that_all_targets_accept() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    found = xegpu_py.portability(doubled[lambda given: 64 // given["N"]], x, y, scale=3.0)
    assert found.kernel == "doubled" and found.first == "pvc"
    assert [v.target for v in found.verdicts] == list(GPUS)
    assert {"pvc", "pvcxt", "dg2", "bmg", "cri"} <= {*GPUS} < {*TARGETS}
    for verdict in found.verdicts:
        assert verdict.accepted and verdict.equal and not verdict.problems and not verdict.differences
        assert verdict.fits == {128: True, 256: True} and 0 < (verdict.pressure or 0) < 128
        assert not verdict.finalizers
    assert found["bmg"].gpu == "b580" and 1e-6 < (found["bmg"].seconds or 0) < 1e-4 and found["bmg"].bound
    assert found["cri"].gpu is found["cri"].seconds is None
    # Arguments do not change.
    assert not y.any() and x[5] == 5
    head, *rows = found.table.splitlines()[1:]
    assert head.split("  ")[0] == "target" and len(rows) == len(GPUS)
    assert re.fullmatch(r"bmg +yes +fits +fits +equal +\S+ us \(b580, \w+\)", rows[list(GPUS).index("bmg")])
    assert str(found) == repr(found) == found.table


def test_a_rule_that_one_target_has() -> None:
    """The error names the line and the rules that the message breaks; other targets are judged after it."""
    file = TEST / "upstream" / "xevm-messages.mlir"
    a, out = np.zeros(4096, np.int8), np.zeros(4096, np.int8)
    kernel = xegpu_py.compile(file, "pitch_52", target="pvc")
    found = xegpu_py.portability(kernel, a, out, block=16, targets=["bmg", "pvc", "pvcxt"])
    problems = found["bmg"].problems
    assert [p.rule for p in problems] == ["block2d-pitch-least", "block2d-pitch-multiple", "block2d-width-least"]
    line = file.read_text().splitlines()[problems[0].line - 1]
    assert "xevm.blockload2d" in line
    for problem in problems:
        assert (problem.file, problem.line) == (str(file), problems[0].line)
        assert "accesses a surface whose pitch is below 64 bytes" in problem.message
        assert [n.startswith(f"rule {problem.rule}: ") for n in problem.notes if n.startswith("rule ")] == [True]
    assert not found["bmg"].accepted and found["bmg"].equal is None
    assert found.first == "pvc" and found["pvcxt"].equal
    assert re.search(r"^bmg +no, 3 errors ", found.table, re.MULTILINE)
    assert [d.notes[-1].message for d in found.diagnostics] == ["on bmg"]
    assert line.strip()[:60] in str(found)


TWICE = """
.version 3.8
.kernel "twice"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=df num_elts=16 align=GRF
.input Out offset=64 size=8
.kernel_attr Target="cm"
    lsc_load.ugm (M1_NM, 1) X:d64x16t flat[Out]:a64
    divm (M1, 8) X(0,0)<1> X(0,0)<1;1,0> X(1,0)<1;1,0>
    sqrtm (M1, 8) X(0,0)<1> X(0,0)<1;1,0>
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 X:d64x16t
    ret (M1, 1)
"""


SEVERAL = """
gpu.module @kernels {
llvm.func @several(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
  %height = llvm.mlir.constant(7 : i32) : i32
  %narrow = llvm.mlir.constant(52 : i32) : i32
  %wide = llvm.mlir.constant(64 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %far = llvm.mlir.constant(1073741824 : i64) : i64
  %b = llvm.getelementptr %a[8] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  %v = BLOCK %a, %narrow, %height, %narrow, %zero, %zero SHAPE
  %w = BLOCK %b, %wide, %height, %wide, %zero, %one SHAPE
  %x = BLOCK %a, %wide, %height, %wide, %zero, %one SHAPE
  llvm.store %v, %o : vector<2xi32>, !llvm.ptr<1>
  llvm.store %w, %o : vector<2xi32>, !llvm.ptr<1>
  %end = llvm.getelementptr %o[%far] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  llvm.store %x, %end : vector<2xi32>, !llvm.ptr<1>
  llvm.return
}
}
""".replace("BLOCK", "xevm.blockload2d").replace(
    "SHAPE",
    "<{elem_size_in_bits = 32 : i32, tile_width = 16 : i32, tile_height = 2 : i32, v_blocks = 1 : i32, "
    "transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<2xi32>",
)


def test_all_messages_that_break_rules_as_they_run() -> None:
    """Two messages break rules, one does not, and a store beyond the array ends the run."""
    a, out = np.zeros(4096, np.int8), np.zeros(4096, np.int8)
    kernel = xegpu_py.compile(SEVERAL, target="pvc")
    found = xegpu_py.portability(kernel, a, out, block=16, targets="bmg")
    assert [(p.line, p.rule) for p in found["bmg"].problems] == [
        (11, "block2d-pitch-least"),
        (11, "block2d-pitch-multiple"),
        (11, "block2d-width-least"),
        (12, "block2d-base"),
        (17, ""),
    ]
    assert "writes 8 bytes" in found["bmg"].problems[-1].message
    # A call ends at the first of them.
    with pytest.raises(xegpu_py.DiagnosticError, match="pitch is below 64 bytes"):
        kernel.for_target("bmg")(a, out, block=16)


def test_all_rules_that_assembly_breaks() -> None:
    kernel = xegpu_py.Kernel.from_assembly(TWICE, file="twice.visaasm", target="bmg")
    x = np.arange(16, dtype=np.float64) + 1
    found = xegpu_py.portability(kernel, x, targets="dg2,bmg")
    assert [(p.file, p.line) for p in found["dg2"].problems] == [("twice.visaasm", 9), ("twice.visaasm", 10)]
    assert all("dg2" in p.message for p in found["dg2"].problems)
    assert found["bmg"].accepted and x[0] == 1
    assert "no, 2 errors" in found.table


def test_registers() -> None:
    text = (TEST / "run" / "xetile_gemm.mlir").read_text()
    kernel = xegpu_py.compile(text, registers=256)
    arrays = np.ones((256, 64), BF16), np.ones((64, 256), BF16), np.zeros((256, 256), np.float32)
    found = xegpu_py.portability(kernel, *arrays, block=32, targets="bmg")
    assert found["bmg"].fits == {128: False, 256: True} and 128 < found["bmg"].pressure <= 256
    assert re.search(r"^bmg +yes +no +fits +first ", found.table, re.MULTILINE)


def test_bytes_that_differ() -> None:
    """No source decides what pvc does with subnormal numbers of bf16: an option says it."""
    text = (TEST / "run" / "xetile_gemm.mlir").read_text()

    def kernel(target: str) -> xegpu_py.Kernel:
        denormals = {"dpas_denormals": "flush"} if target == "pvc" else {}
        return xegpu_py.compile(text, registers=256, target=target, **denormals)

    a, b = np.ones((256, 64), BF16), np.full((64, 256), 1, BF16)
    a[3, 5] = a[200, 1] = 1e-39
    b *= BF16(2**20)
    a[3, :5] = a[3, 6:] = a[200, 0] = a[200, 2:] = 0
    c = np.zeros((256, 256), np.float32)
    found = xegpu_py.portability(kernel, a, b, c, block=32, targets="bmg,lnl,pvc")
    assert found.first == "bmg" and found["lnl"].equal and not found["pvc"].equal
    [difference] = found["pvc"].differences
    assert (difference.count, difference.size, difference.index) == (512, 65536, (3, 0))
    assert difference.here == "0.0" and float(difference.first) > 1e-34 and difference.ulps
    assert f"pvc: '%C': {difference.extent}; first [3, 0]: 0.0, on bmg {difference.first}" in found.table
    assert not c.any()


def test_json() -> None:
    x = np.zeros(16, np.float32)
    found = xegpu_py.portability(doubled, x, np.ones(16, np.float32), targets="bmg")
    read = msgspec.json.decode(found.json(), type=Portability, strict=True)
    assert read == found and found.json().startswith('{\n "kernel": ')
    data = msgspec.json.decode(found.json())
    assert {*data} == {"kernel", "first", "verdicts"}
    assert {*data["verdicts"][0]} == {
        "target", "accepted", "problems", "fits", "pressure", "equal", "differences", "finalizers", "gpu", "seconds",
        "bound",
    }  # fmt: skip
    assert {*msgspec.json.schema(Portability)["$defs"]} == {
        "Portability", "Verdict", "Problem", "Difference", "Finalized",
    }  # fmt: skip


def test_names_of_targets() -> None:
    assert targets_of("all") == GPUS and "any" not in GPUS
    assert targets_of("bmg, pvc,bmg") == ("bmg", "pvc") and targets_of(["dg2", "all"])[0] == "dg2"
    with pytest.raises(ValueError, match=r"unknown target 'bgm'; did you mean 'bmg'\? there are all, pvc, "):
        targets_of("pvc,bgm")
    with pytest.raises(ValueError, match="unknown target 'zzzzz'; there are all"):
        xegpu_py.portability(doubled, targets=["zzzzz"])


# Kernels of each front end.


def test_tile_kernels() -> None:
    """Options by Triton's names, heuristics, views with negative strides, an array that is passed twice."""
    x = np.arange(32, dtype=np.float32)
    twice = xegpu_py.portability(doubled[2], x, x, num_warps=1, targets="dg2,bmg")
    assert twice["bmg"].accepted and twice["bmg"].equal and x[1] == 1
    y = np.zeros(32, np.float32)
    found = xegpu_py.portability(doubled, x[::-1], y, grid=2, targets="bmg")
    assert found["bmg"].accepted and not y.any()
    chosen = xegpu_py.heuristics({"N": lambda given: 8})(doubled)
    assert xegpu_py.portability(chosen[4], x, y, targets="bmg")["bmg"].accepted
    assert xegpu_py.portability(doubled, x, y, targets="bmg", block=1)["bmg"].accepted

    @tile_kernel((np.float32, (None,)), (np.float32, (None,)))
    def typed(X: Any, Y: Any) -> None:
        Y.tile((16,), at=(0,)).store(X.tile((16,), at=(0,)).load())

    assert xegpu_py.portability(typed, x, y, targets="dg2,bmg")["bmg"].equal


@xegpu_py.jit
def first_of(tables: Any, out: Any) -> None:
    out.tile((16,), at=(0,)).store(tables[0].tile((16,), at=(0,)).load())
    tables[1].tile((16,), at=(0,)).store(tables[0].tile((16,), at=(0,)).load() + 1)


def test_arrays_of_tuples() -> None:
    a, b, out = (np.full(16, n, np.float32) for n in (1, 2, 3))
    found = xegpu_py.portability(first_of, (a, b), out, targets="bmg")
    assert found["bmg"].accepted and b[0] == 2 and out[0] == 3


def test_memory_that_a_launch_may_change() -> None:
    """The arrays, also those of tuples and tables, and what a window may access before its first element."""
    x = np.arange(8, dtype=np.float32)
    start = x.ctypes.data
    later = Window.at(start + 8, start, start + 32, x.dtype)
    found = verdicts._arrays(["a", "b", "c", "d", "e"], [Window.of(x), later, (x, x), PointerTable([x]), 5])
    assert {name: a.nbytes for name, a in found.items()} == {
        "a": 32, "b": 24, "memory before b": 8, "c[0]": 32, "c[1]": 32, "d[0]": 32,
    }  # fmt: skip
    assert found["memory before b"].ctypes.data == start


def test_programs_of_triton() -> None:
    file = TEST / "dialects" / "tt" / "dumped" / "add.ttir"
    x, y, out = np.ones(300, np.float32), np.ones(300, np.float32), np.zeros(300, np.float32)
    found = xegpu_py.portability(xegpu_py.compile(file), x, y, out, 300, grid=2, targets="pvc,dg2,bmg")
    assert all(v.accepted and v.equal for v in found.verdicts)
    found = xegpu_py.portability(xegpu_py.compile(file), x, y, out[:3], 300, grid=2, targets="bmg")
    assert found["bmg"].problems[0].file.endswith("kernels.py")


def test_kernels_of_the_rfc() -> None:
    """A kernel with named barriers, which dg2 does not have."""
    file = TEST / "run" / "nbarrier.mlir"
    x, y = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    found = xegpu_py.portability(xegpu_py.compile(file), x, y, block=2, targets="dg2,pvc,bmg")
    assert found.first == "pvc" and found["bmg"].equal and not y.any()
    [problem, *_] = found["dg2"].problems
    assert problem.file == str(file) and "nbarrier" in file.read_text().splitlines()[problem.line - 1]


UPSTREAM = """
gpu.module @m {
  gpu.func @negated(%a: memref<8x16xf32>, %b: memref<8x16xf32>) kernel {
    %s = xegpu.create_nd_tdesc %a : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %d = xegpu.create_nd_tdesc %b : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %s[0, 0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %n = arith.negf %v : vector<8x16xf32>
    xegpu.store_nd %n, %d[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""


def test_kernels_of_upstream() -> None:
    """Blocks that a target has no message for are repaired, and `surfaces` makes an error of that."""
    a, b = np.arange(128, dtype=np.float32).reshape(8, 16), np.zeros((8, 16), np.float32)
    found = xegpu_py.portability(xegpu_py.compile(UPSTREAM), a, b, targets="dg2,pvc,bmg,cri")
    assert found.first == "dg2" and all(v.accepted and v.equal for v in found.verdicts) and not b.any()
    narrow = UPSTREAM.replace("8x16", "8x13")
    kernel = xegpu_py.compile(narrow, check="surfaces")
    a, b = np.ascontiguousarray(a[:, :13]), np.zeros((8, 13), np.float32)
    found = xegpu_py.portability(kernel, a, b, targets="pvc,bmg")
    assert {p.rule for p in found["bmg"].problems} >= {"block2d-pitch-least", "block2d-width-least"}
    assert "load_nd" in narrow.splitlines()[found["bmg"].problems[0].line - 1]


def test_arrays_that_overlap_do_so_in_the_copies() -> None:
    memory = np.arange(64, dtype=np.float32)
    x, y, other = memory[:32], memory[16:48], np.zeros(4, np.int16)
    window = Window.at(memory[32:].ctypes.data, memory.ctypes.data, memory.ctypes.data + 256, memory.dtype)
    arguments = x, y, (other, x), window, memory[::-1], 3
    copies = verdicts._Copies(arguments)
    a, b, (c, again), w, backwards, number = map(copies.of, arguments)
    assert (
        again is a and number == 3 and (a == x).all() and (w == memory[32:]).all() and (backwards == memory[::-1]).all()
    )
    a[16], w[0], c[:] = -1, -2, 5
    assert b[0] == -1 and b[16] == -2 and w.is_aligned(128) and not w.is_aligned(256)
    assert w.span[1] - w.span[0] == 256 and w.span[0] == a.ctypes.data and a.ctypes.data % 64 == x.ctypes.data % 64
    assert memory[16] == 16 and memory[32] == 32 and not other.any()
    arrays = verdicts._arrays(["a", "w"], [a, w])
    x, y, alone = *map(verdicts._Copies((x, y)).of, (x, y)), verdicts._Copies((window,)).of(window)
    assert (alone == memory[32:]).all() and not np.shares_memory(alone, memory)
    assert np.subtract(alone.span, alone.ctypes.data).tolist() == [-128, 128]
    x[16:] = 9
    assert (y[:16] == 9).all() and memory[16] == 16
    assert [*arrays] == ["a", "w", "memory before w"] and (arrays["memory before w"][:128].view(np.float32) == a).all()


@pytest.mark.needs("ocloc")
def test_opencl() -> None:
    text = "__kernel void f(__global double *x) {\n x[get_global_id(0)] *= N;\n}"
    program = xegpu_py.opencl.compile(text, target="bmg", options="-DN=2")
    x = np.ones(32)
    found = xegpu_py.portability(program.f[32, 16], x, targets="dg2,bmg,cri")
    assert not found["dg2"].accepted and found["dg2"].problems[0].line == 1
    assert found["cri"].accepted and found["cri"].equal and found.first == "bmg" and x[0] == 1
    loaded = xegpu_py.opencl.Program(program.compiled, program.options)
    with pytest.raises(ValueError, match="was compiled for bmg, not dg2"):
        xegpu_py.portability(loaded.f[32, 16], x, targets="bmg,dg2")


def test_a_function_that_makes_the_kernel() -> None:
    """Also of kernels that their own target refuses."""
    made: list[str] = []

    def on(target: str) -> xegpu_py.Kernel:
        made.append(target)
        return xegpu_py.Kernel.from_assembly(TWICE, target=target)

    found = xegpu_py.portability(on, np.ones(16), targets="dg2,bmg")
    assert made == ["dg2", "bmg"] and found.first == "bmg" and len(found["dg2"].problems) == 2


def test_wrong_kernels_and_arguments() -> None:
    with pytest.raises(TypeError, match="'kernel' must be a kernel, or a function"):
        xegpu_py.portability(3)
    kernel = xegpu_py.Kernel.from_assembly(TWICE, target="bmg")
    with pytest.raises(TypeError, match="unexpected keyword argument 'gird'"):
        xegpu_py.portability(kernel, np.ones(16), gird=2, targets="bmg")
    with pytest.raises(TypeError, match="takes 1 argument"):
        xegpu_py.portability(kernel, targets="bmg")


def test_versions_keep_their_target() -> None:
    """A version for arrays that break assumptions is of one target; the kernel of it makes others for each."""
    text = (TEST / "run" / "xetile_softmax.mlir").read_text()
    kernel = xegpu_py.compile(text.replace("x128x", "x64x").replace("[8, 64]", "[8, 32]"), target="dg2")
    arrays = np.ones((32, 33), np.float32), np.zeros((32, 33), np.float32)
    found = xegpu_py.portability(kernel, *arrays, block=8, targets="bmg,dg2")
    assert found["bmg"].accepted and found["dg2"].equal
    version = kernel.for_target("bmg").version_for(arrays)
    assert version.options.unaligned and version.target.name == "bmg"
    with pytest.raises(ValueError, match="is a version for certain arguments, of target bmg"):
        version.for_target("pvc")


# Finalizers, the report, the tool.


@pytest.mark.needs("GenX_IR-2024")
@pytest.mark.needs("GenX_IR")
def test_finalizers() -> None:
    x = np.zeros(16, np.float32)
    found = xegpu_py.portability(doubled, x, x.copy(), targets="dg2,bmg,pvc")
    assert {*found["dg2"].finalizers} == {"GenX_IR"} and "GenX_IR-2024" in found["bmg"].finalizers
    assert all(f.accepted for v in found.verdicts for f in v.finalizers.values())
    assert re.search(r"^target.* GenX_IR-2024  GenX_IR  time", found.table, re.MULTILINE)


def test_a_finalizer_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(text: str, target: str, registers: int | None, name: str) -> Native:
        assert '.kernel "twice"' in text and registers is None
        if name == "ocloc":
            raise FinalizerError("ocloc does not accept it: too long")
        return Native("", 1, 1, 128, spill_bytes=64)

    monkeypatch.setattr(verdicts, "finalize", refusing)
    monkeypatch.setattr(verdicts.external_tools, "find", lambda name: name)
    kernel = xegpu_py.Kernel.from_assembly(TWICE, target="bmg")
    found = xegpu_py.portability(kernel, np.ones(16), targets="bmg")
    assert found["bmg"].accepted and not found["bmg"].finalizers["ocloc"].accepted
    assert (
        {*found["bmg"].finalizers} == {f for f, asked in FINALIZERS.items() if "bmg" in asked.platforms} < {*FINALIZERS}
    )
    assert re.search(r"^bmg .* no +yes, 64 B spilled ", found.table, re.MULTILINE)
    assert "bmg: ocloc does not accept it: too long" in found.table


def test_the_report(tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    kernel = xegpu_py.Kernel.from_assembly(TWICE, target="bmg")
    found = xegpu_py.portability(kernel, np.ones(16), targets="dg2,bmg")
    profile = kernel.profile(np.ones(16))
    profile.save(tmp_path / "report.html", found.views)
    page = (tmp_path / "report.html").read_text()
    assert ">Targets</button>" in page and "<td>no, 2 errors</td>" in page
    profile.save(tmp_path / "plain.html")
    assert ">Targets</button>" not in (tmp_path / "plain.html").read_text()


def test_the_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "twice.visaasm"
    file.write_text(TWICE)
    assert xegpu_run.run([str(file), "ones:f64:16", "--targets=dg2,bmg"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("kernel 'twice'\ntarget  accepted ") and re.search("^bmg +yes", out, re.MULTILINE)
    assert f"{file}:9:5: error: 'divm' is not supported on target 'dg2'" in err and "note: on dg2" in err
    assert xegpu_run.run([str(file), "ones:f64:16", "--targets=bmg,lnl", "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=Portability).first == "bmg"
    for option, said in {
        "--stats": "--stats is for one target",
        "--engine=reference": "--engine=reference is for one target",
        "--profile=a.json": "--profile FILE.json is for one target",
        "--targets=bgm": "did you mean 'bmg'",
    }.items():
        with pytest.raises(SystemExit):
            xegpu_run.run([str(file), "ones:f64:16", "--targets=bmg", option])
        assert said in capsys.readouterr().err


def test_the_exit_status_tells_of_targets_with_other_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "twice.visaasm"
    file.write_text(TWICE)
    whole = xegpu_py.portability(xegpu_py.Kernel.from_assembly(TWICE), np.ones(16), targets="bmg,lnl")
    for accepted, equal, status in ((True, True, 0), (True, False, 1), (False, False, 1), (False, True, 1)):
        other = msgspec.structs.replace(whole.verdicts[1], accepted=accepted, equal=equal)
        found = msgspec.structs.replace(whole, verdicts=[whole.verdicts[0], other])
        monkeypatch.setattr(xegpu_run, "plugin", lambda name, found=found: lambda *_, **__: found)
        assert xegpu_run.run([str(file), "ones:f64:16", "--targets=bmg,lnl"]) == status
    capsys.readouterr()


def test_the_size_of_a_launch_of_the_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, sizes = tmp_path / "twice.visaasm", []
    file.write_text(TWICE)
    whole = xegpu_py.portability(xegpu_py.Kernel.from_assembly(TWICE), np.ones(16), targets="bmg")
    monkeypatch.setattr(xegpu_run, "plugin", lambda _: lambda *_, **size: sizes.append(size) or whole)
    for options in ([], ["--grid", "2,3"], ["--block", "4"], ["--grid", "1", "--block", "4,2"]):
        xegpu_run.run([str(file), "ones:f64:16", "--targets=bmg", *options])
    assert [(size["grid"], size["block"]) for size in sizes] == [
        (1, None), ((2, 3), None), (1, (4,)), ((1,), (4, 2))
    ]  # fmt: skip
    assert sizes[0]["grid"] is NO_GRID and sizes[2]["grid"] is NO_GRID
    capsys.readouterr()


NANS = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("first", "here", "ulps"),
    [
        (np.array([1, 2]), np.array([1, 3]), None),
        (np.float32([1, 2]), np.nextafter(np.float32([1, 2]), np.float32([9, 2])), 1),
        (np.float32([1, np.nan]), np.float32([1, 2]), None),
        (np.float32([1, 2]), np.float32([1.5, np.nan]), None),
        (NANS[:1], NANS[1:], 0),
    ],
)
def test_the_distance_of_floats(first: Any, here: Any, ulps: int | None) -> None:
    assert verdicts.Difference.of("x", unlike(first, here)).ulps == ulps
