"""The fidelity report: which rules a run exercises, what depends on them, and how often it runs."""

from __future__ import annotations

import json
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from effort import SHARE
from ml_dtypes import bfloat16, float8_e5m2, int4

import xegpu_py
from xegpu_py import language as xl
from xegpu_py import numerics
from xegpu_py.engines.jit.thread_function import block_starts
from xegpu_py.extensions.fidelity.report import Fidelity, Rule, Tried, _effects, _last_first
from xegpu_py.extensions.fidelity.traces import SumTrace
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.numerics.choices import CHOICES
from xegpu_py.numerics.differences import unlike
from xegpu_py.numerics.systolic import VARIANTS
from xegpu_py.runtime.executor import Executor
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Statistics
from xegpu_py.visa import assembly

ROOT = Path(__file__).parents[3]
GALLERY, PAGE = ROOT / "examples" / "gallery", ROOT / "docs" / "fidelity.md"


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Executor]:
    """The executors that ran, one entry for each launch."""
    found: list[Executor] = []
    run = Executor.run

    def noted(executor: Executor, launch: Any) -> Any:
        found.append(executor)
        return run(executor, launch)

    monkeypatch.setattr(Executor, "run", noted)
    return found


def rules(report: Fidelity) -> dict[str, Rule]:
    return {rule.choice: rule for rule in report.rules}


def tried(report: Fidelity) -> Iterator[tuple[str, Tried]]:
    for rule in report.rules:
        choice = CHOICES[rule.choice]
        meanings = {choice.default: choice.rule, **choice.alternatives}
        for one in rule.tried:
            assert one.meaning == meanings[one.alternative]
            yield f"{rule.choice}={one.alternative}", one


def effects(report: Fidelity) -> dict[str, dict[str, tuple[int, int | None]]]:
    return {name: {e.output: (e.count, e.ulps) for e in one.outputs} for name, one in tried(report)}


def between(usual: np.ndarray, other: np.ndarray) -> dict[str, tuple[int, int | None]]:
    found = unlike(usual, other)
    return {"C": (found.count, found.ulps)} if found else {}


def check_runs(report: Fidelity, launches: list[Executor]) -> None:
    """There is one run for each alternative of an exercised rule, and one more."""
    alternatives = sum(len(CHOICES[rule.choice].alternatives) for rule in report.rules)
    assert report.runs == len(launches) == alternatives + 1


@xegpu_py.jit(target="cri")
def gemm(A, B, C):
    m, n = xl.program_id(0) * 16, xl.program_id(1) * 16
    c = xl.zeros((16, 16))
    for k in range(0, A.shape[1], 32):
        c += A.tile((16, 32), at=(m, k)).load() @ B.tile((32, 16), at=(k, n)).load()
    C.tile((16, 16), at=(m, n)).store(c)


@pytest.mark.parametrize(("dtype", "precision"), [(bfloat16, "bf"), (float8_e5m2, "bf8")])
def test_gemm(dtype: Any, precision: str, launches: list[Executor]) -> None:
    """The differences are those of `numerics.multiply`, which knows nothing of kernels."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((32, 64)).astype(dtype), rng.standard_normal((64, 32)).astype(dtype))
    before, c = (a.tobytes(), b.tobytes()), np.zeros((32, 32), np.float32)
    report = gemm[2, 2].fidelity(a, b, c)
    check_runs(report, launches)
    types = {"W": precision, "A": precision, "dst_type": "f", "src0_type": "f"}
    products = {
        name: numerics.multiply(None, a, b, **types, model=VARIANTS.get(name, name))
        for name in CHOICES["dpas-sums"].values
    }
    assert (a.tobytes(), b.tobytes()) == before
    np.testing.assert_array_equal(c, products["fma"])
    found = effects(report)
    for name in CHOICES["dpas-sums"].alternatives:
        assert found[f"dpas-sums={name}"] == between(products["fma"], products[name]), name
    assert found["dpas-sums=stage-zero"] and found["nan-bits=negative"] == {}
    assert rules(report)["dpas-sums"].depends and not rules(report)["nan-bits"].depends
    [line] = rules(report)["dpas-sums"].lines
    assert (Path(line.file).name, line.instructions) == (Path(__file__).name, ("dpas",))
    assert line.executions == 4 * 2 * 2 * (2 if precision == "bf" else 1)
    # Kernels for cri keep all subnormal numbers by a bit of %cr0.
    assert "dpas-denormals" not in rules(report)


GALLERY_DEPENDS = {
    "softmax": {"exp-accuracy", "division", "reduction-order"},
    "layer_norm": {"sqrt-accuracy", "division", "reduction-order"},
    "attention": {"dpas-sums", "exp-accuracy", "division", "reduction-order"},
}


@pytest.mark.parametrize("name", GALLERY_DEPENDS)
def test_gallery(name: str, launches: list[Executor]) -> None:
    found = runpy.run_path(str(GALLERY / f"{name}.py"))
    arguments, launch = found["arguments"], found["launch"]
    output = next(a for a in reversed(arguments) if isinstance(a, np.ndarray))
    wanted = output.copy()
    output[:] = 0
    launches.clear()
    report = launch.fidelity(*arguments)
    np.testing.assert_array_equal(output, wanted)
    check_runs(report, launches)
    depends = {rule.choice for rule in report.rules if rule.depends}
    assert depends == GALLERY_DEPENDS[name]
    assert str(report) in PAGE.read_text(), f"docs/fidelity.md shows another report than\n{report}"
    assert "math-special" in rules(report) and not rules(report)["math-special"].tried
    for choice, one in tried(report):
        assert one.reaches == ("not compared" if choice == "reduction-order=sequential" else "-")
    # Each alternative is what the option of the same name gives; attention takes the longest to compile.
    for choice in ("division=inverse", "reduction-order=sequential")[: 0 if name == "attention" and SHARE < 1 else 2]:
        alternative = found[name].with_options(choices=choice)
        other = output.copy()
        alternative[4](*(other if a is output else a for a in arguments))
        difference = unlike(wanted, other)
        assert difference
        [(count, ulps)] = effects(report)[choice].values()
        assert (count, ulps) == (difference.count, difference.ulps), choice


def test_subnormal_factors_on_a_gpu_without_a_bit() -> None:
    """The data decides: the rule is exercised with any factors, and results depend on it with subnormal ones only."""
    for scale, depends in ((1.0, False), (2.0**-130, True)):
        a = np.full((16, 32), scale, bfloat16)
        b, c = np.full((32, 16), 2.0**100, bfloat16), np.zeros((16, 16), np.float32)
        report = gemm.with_options(target="pvc")[1, 1].fidelity(a, b, c, only=["dpas-denormals"])
        assert report.runs == 2
        assert rules(report)["dpas-denormals"].depends == depends
        assert (effects(report)["dpas-denormals=flush"] == {}) == (not depends)
        assert (c == 32 * scale * 2.0**100).all()
    with pytest.raises(ValueError, match="'only' must have names of dpas-sums, .*, but got 'dpas'"):
        gemm[1, 1].fidelity(a, b, c, only=["dpas"])


def test_nan_bits() -> None:
    @xegpu_py.jit
    def root(X, Y):
        Y.tile((16,), at=(0,)).store(xl.sqrt(X.tile((16,), at=(0,)).load()))

    x, y = np.linspace(-3, 12, 16, dtype=np.float32), np.zeros(16, np.float32)
    report = root[1].fidelity(x, y, only=["nan-bits", "sqrt-accuracy"])
    assert np.isnan(y).sum() == 3 and not np.signbit(y[:3]).any()
    assert effects(report)["nan-bits=negative"] == {"Y": (3, None)}
    assert "Y: 3 of 16, NaN bits" in str(report)
    for which in ("smaller", "greater"):
        # Exact roots stay: 0, 1, 4 and 9.
        assert effects(report)[f"sqrt-accuracy={which}"] == {"Y": (16 - 3 - 4, 1)}


GATHER = """
gpu.module @kernels {
  gpu.func @gather(%x: memref<16xf32>, %table: memref<64xf32>, %y: memref<16xf32>) kernel {
    %zero = arith.constant 0 : index
    %lanes = vector.step : vector<16xindex>
    %mask = arith.constant dense<true> : vector<16xi1>
    %rows = xegpu.create_tdesc %x, %lanes {mode = vc}
      : memref<16xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    %v = xegpu.load_gather %rows, %mask {mode = vc}
      : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
    %power = math.exp2 %v : vector<16xf32>
    %scale = arith.constant dense<SCALE> : vector<16xf32>
    %number = arith.mulf %power, %scale : vector<16xf32>
    %i = arith.fptosi %number : vector<16xf32> to vector<16xi32>
    %at = arith.index_cast %i : vector<16xi32> to vector<16xindex>
    %from = xegpu.create_tdesc %table, %at {mode = vc}
      : memref<64xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    %found = xegpu.load_gather %from, %mask {mode = vc}
      : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
    %to = xegpu.create_tdesc %y, %lanes {mode = vc}
      : memref<16xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    xegpu.store_scatter %found, %to, %mask {mode = vc}
      : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>
    gpu.return
  }
}
"""


def test_a_value_reaches_an_address() -> None:
    """2^x times a constant is a whole number by the default rule, and the next one toward zero is below it."""
    x = np.log2(np.arange(16, 32)).astype(np.float32)
    power = numerics.exp(x, "f")
    kernel = xegpu_py.compile(GATHER.replace("SCALE", "1.0"))
    table, y = np.arange(64, dtype=np.float32), np.zeros(16, np.float32)
    report = kernel.fidelity(x, table, y, only=["exp-accuracy"])
    np.testing.assert_array_equal(y, np.trunc(power))
    one = dict(tried(report))["exp-accuracy=smaller"]
    exact = x == np.rint(x)
    smaller = np.where(exact, power, np.nextafter(power, np.float32(0)))
    changed = int((np.trunc(smaller) != np.trunc(power)).sum())
    assert changed and [(e.output, e.count) for e in one.outputs] == [("%y", changed)]
    assert [line.instructions for line in one.addresses] == [("lsc_load",)]
    assert one.reaches.startswith("address (lsc_load at ") and not one.branches
    assert rules(report)["nan-bits"].tried == ()


def test_an_alternative_fails() -> None:
    """The greatest number of the table's places, from where the next number away from zero is out of bounds."""
    x = np.full(16, np.log2(np.float32(2.25)), np.float32)
    power = numerics.exp(x, "f")[0]
    # Of the numbers whose product with 2^x is just below 64, one for which the next number's is 64.
    scale = np.float32(64) / np.nextafter(power, np.float32(np.inf))
    while power * scale >= 64:
        scale = np.nextafter(scale, np.float32(0))
    assert np.nextafter(power, np.float32(np.inf)) * scale >= 64
    kernel = xegpu_py.compile(GATHER.replace("SCALE", f"0x{scale.view(np.uint32):08X}"))
    table, y = np.arange(64, dtype=np.float32), np.zeros(16, np.float32)
    report = kernel.fidelity(x, table, y, only=["exp-accuracy"])
    assert (y == 63).all()
    one = dict(tried(report))["exp-accuracy=greater"]
    assert one.depends and "over the end of '%table'" in one.failure
    assert one.reaches.startswith("fails: 'lsc_load' reads 4 bytes")


def test_a_value_reaches_a_branch() -> None:
    """The sum of two powers is the limit of a loop, which smaller powers reach one step later."""

    @xegpu_py.jit
    def steps(X, N, trips, limit: xl.float32):
        total, n = xl.zeros((1, 16)), 0
        x = X.tile((1, 16), at=(0, 0)).load()
        for _ in range(trips):
            x = x * 0.5
        while total.max() < limit:
            total += xl.exp2(x)
            n += 1
        N.tile((1, 16), at=(0, 0)).store(xl.full((1, 16), n, dtype=xl.int32))

    x = np.full((1, 16), -1.2, np.float32)
    limit = 2 * numerics.exp(x[0, :1] / 4, "f")[0]
    found = np.zeros((1, 16), np.int32)
    report = steps[1].fidelity(x, found, 2, float(limit), only=["exp-accuracy"])
    assert (found == 2).all()
    one = dict(tried(report))["exp-accuracy=smaller"]
    assert [(e.output, e.count, e.ulps) for e in one.outputs] == [("N", 16, None)]
    source = Path(__file__).read_text().splitlines()
    assert {source[line.line - 1].strip() for line in one.branches} == {"while total.max() < limit:"}
    assert not one.addresses and "branch (" in one.reaches


def test_order_of_atomic_additions() -> None:
    text = """
gpu.module @kernels {
  gpu.func @add(%x: memref<64xf32>, %sum: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %i = gpu.block_id x
    %value = memref.load %x[%i] : memref<64xf32>
    %old = memref.atomic_rmw addf %value, %sum[%c0] : (f32, memref<1xf32>) -> f32
    gpu.return
  }
}
"""
    x = np.random.default_rng(3).standard_normal(64).astype(np.float32)
    total, kernel = np.zeros(1, np.float32), xegpu_py.compile(text)
    report = kernel.fidelity(x, total, grid=64, only=["atomic-order"])
    sums = []
    for order in (x, x[::-1]):
        sums.append(np.float32(0))
        for number in order:
            sums[-1] = np.float32(sums[-1] + number)
    assert total[0] == sums[0] != sums[1]
    found = unlike(*(np.array([s]) for s in sums))
    assert found and effects(report)["atomic-order=last"] == {"%sum": (1, found.ulps)}


def test_options_of_the_kernel_are_the_default() -> None:
    a, b = np.random.default_rng(1).standard_normal((2, 32, 32)).astype(bfloat16)
    c = np.zeros((32, 32), np.float32)
    own = gemm.with_options(model="stage", choices=["nan-bits=negative"])
    report = own[2, 2].fidelity(a, b, c)
    assert report.runs == 1 + 4 + 1
    found = rules(report)
    assert (found["dpas-sums"].followed, found["nan-bits"].followed) == ("stage", "negative")
    assert [t.alternative for t in found["dpas-sums"].tried] == ["fma", "exact", "dot", "stage-zero"]
    assert [t.alternative for t in found["nan-bits"].tried] == ["canonical"]
    types = {"W": "bf", "A": "bf", "dst_type": "f", "src0_type": "f"}
    stage, fma = (numerics.multiply(None, a, b, **types, model=m) for m in ("stage", "fma"))
    np.testing.assert_array_equal(c, stage)
    assert effects(report)["dpas-sums=fma"] == between(stage, fma)
    measured = gemm.with_options(model=numerics.Systolic("all", join="tree"))[2, 2].fidelity(
        a, b, c, only=["dpas-sums"]
    )
    assert (rules(measured)["dpas-sums"].followed, measured.runs) == ("", 6)


def test_json_and_assembly() -> None:
    text = xegpu_py.compile(GATHER.replace("SCALE", "1.0")).asm
    x, table, y = np.zeros(16, np.float32), np.arange(64, dtype=np.float32), np.zeros(16, np.float32)
    report = Kernel.from_assembly(text).fidelity(x, table, y, only=["exp-accuracy"])
    found = json.loads(report.json())
    assert found["kernel"] == "gather" and found["runs"] == 3 == report.runs
    exp = next(rule for rule in found["rules"] if rule["choice"] == "exp-accuracy")
    assert [t["alternative"] for t in exp["tried"]] == ["smaller", "greater"]
    assert exp["lines"][0]["instructions"] == ["exp"]
    assert set(found["not_visible"]) == {n for n, c in CHOICES.items() if not c.is_visible}
    assert (y == 1).all()


def test_errors_are_those_of_a_call() -> None:
    kernel = xegpu_py.compile(GATHER.replace("SCALE", "1.0e9"))
    x, table, y = np.ones(16, np.float32), np.ones(64, np.float32), np.zeros(16, np.float32)
    with pytest.raises(DiagnosticError, match="'lsc_load' reads 4 bytes at"):
        kernel.fidelity(x, table, y)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        kernel.fidelity(x, table)


REDUCTIONS = """
gpu.module @kernels {
  gpu.func @other(%x: memref<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
    %s = vector.reduction <add>, %v : vector<16xf32> into f32
    memref.store %s, %x[%c0] : memref<16xf32>
    gpu.return
  }
  gpu.func @own(%x: memref<16xf32>, %i: memref<16xi32>) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
    %s = vector.reduction <mul>, %v : vector<16xf32> into f32
    %m = vector.reduction <maximumf>, %v : vector<16xf32> into f32
    %w = vector.load %i[%c0] : memref<16xi32>, vector<16xi32>
    %n = vector.reduction <add>, %w : vector<16xi32> into i32
    %a = arith.addf %s, %m : f32
    memref.store %a, %x[%c0] : memref<16xf32>
    memref.store %n, %i[%c0] : memref<16xi32>
    gpu.return
  }
}
"""


def test_orders_of_sums_are_named() -> None:
    """That of floats of the own kernel only; the exact ones depend on no order."""
    kernel = xegpu_py.compile(REDUCTIONS, "own")
    report = kernel.fidelity(np.ones(16, np.float32), np.ones(16, np.int32), only=["reduction-order"])
    rule = rules(report)["reduction-order"]
    place = REDUCTIONS[: REDUCTIONS.index("%s = vector.reduction <mul>")].count("\n") + 1
    assert [(line.line, line.instructions) for line in rule.lines] == [(place, ("vector.reduction",))]
    [other] = rule.tried
    assert (other.alternative, other.depends, other.reaches) == ("sequential", False, "not compared")
    assert report.runs == 2 and "reduction-order" not in report.not_visible
    assert re.search(r"reduction-order +halves +sequential +vector.reduction at \d+ +none +not compared", str(report))


def test_other_orders_of_sums() -> None:
    """The kernel is lowered again with the other order, whichever of the two it has, and other versions too."""
    x = np.ones((2, 16), np.float32)
    x[:, 0] = 2**24
    misplaced = np.ones((2, 17), np.float32)[:, 1:]
    misplaced[:] = x

    @xegpu_py.jit
    def total(X, Y):
        Y.tile((2, 1), at=(0, 0)).store(X.tile((2, 16), at=(0, 0)).load().sum(1, keep_dims=True))

    for choices, own, other, sums in (
        ((), "halves", "sequential", 2**24 + 14),
        (("reduction-order=sequential",), "sequential", "halves", 2**24),
    ):
        for source in (x, misplaced):
            y = np.zeros((2, 1), np.float32)
            report = total.with_options(choices=choices)[1].fidelity(source, y, only=["reduction-order"])
            assert (y == sums).all()
            rule = rules(report)["reduction-order"]
            assert (rule.followed, [t.alternative for t in rule.tried], report.runs) == (own, [other], 2)
            # Numbers above 2^24 are 2 apart.
            assert effects(report) == {f"reduction-order={other}": {"Y": (2, 7)}}
    report = total[1].fidelity(x, y, only=["nan-bits"])
    assert not rules(report)["reduction-order"].tried and "reduction-order  halves     not run" in str(report)


COLUMNS = """
gpu.module @kernels {
  gpu.func @columns(%x: memref<?x?xf32>, %y: memref<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = xegpu.create_nd_tdesc %x[0, 0] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<16x16xf32>
    %v = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<16x16xf32> -> vector<16x16xf32>
    %a = arith.constant dense<0.0> : vector<16xf32>
    %s = vector.multi_reduction <add>, %v, %a [0] : vector<16x16xf32> to vector<16xf32>
    vector.store %s, %y[%c0] : memref<16xf32>, vector<16xf32>
    gpu.return
  }
}
"""


def test_versions_are_lowered_again() -> None:
    """The version for an array that no 2D block message can address has other orders too."""
    kernel, x, y = xegpu_py.compile(COLUMNS), np.ones((16, 17), np.float32), np.zeros(16, np.float32)
    x[0] = 2**24
    assert kernel.version_for([x, y]) is not kernel
    report = kernel.fidelity(x, y, only=["reduction-order"])
    assert (y == 2**24 + 14).all() and effects(report) == {"reduction-order=sequential": {"%y": (16, 7)}}


BARRIERS = """
.version 4.2
.kernel "k"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=f num_elts=16 align=wordx32
.decl I v_type=G type=d num_elts=16 align=wordx32
.decl Name v_type=G type=ub num_elts=1 align=dword
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr NBarrierCnt=8
    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x4c0:ud
    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[In]:a64
    exp (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0>
    mov (M1_NM, 16) I(0,0)<1> X(0,0)<1;1,0>
    mov (M1_NM, 1) Name(0,0)<1> I(0,0)<0;1,0>
    nbarrier.signal Name(0,0)<0;1,0> 1:ub
    nbarrier.wait Name(0,0)<0;1,0>
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 X:d32x16t
    ret (M1, 1)
"""


def test_a_value_reaches_a_barrier() -> None:
    """The number of a barrier is 3, 5, 6 or 7 by the default rule, and one less by the next number toward zero."""
    near = np.log2(np.array([3, 5, 6, 7])).astype(np.float32)
    x = near[numerics.exp(near, "f") % 1 == 0][0]
    y = np.zeros(16, np.float32)
    report = Kernel.from_assembly(BARRIERS).fidelity(np.full(16, x), y, only=["exp-accuracy"])
    assert (y == np.rint(2.0**x)).all()
    found = dict(tried(report))
    assert [b.instructions for b in found["exp-accuracy=smaller"].barriers] == [("nbarrier.wait",)]
    assert "barrier (nbarrier.wait at" in found["exp-accuracy=smaller"].reaches
    assert not found["exp-accuracy=greater"].barriers and found["exp-accuracy=greater"].outputs


def test_prints_of_alternatives_are_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
gpu.module @kernels {
  gpu.func @show(%x: f32) kernel {
    %y = math.exp2 %x : f32
    gpu.printf "%f\\n", %y : f32
    gpu.return
  }
}
"""
    report = xegpu_py.compile(text).fidelity(np.float32(0.5), only=["exp-accuracy"])
    assert report.runs == 3 and capsys.readouterr().out == "1.414214\n"


def test_elements_of_four_bits_are_written_back() -> None:
    text = """
gpu.module @kernels {
  gpu.func @copy(%a: memref<8x32xi4>, %out: memref<8x32xi4>) kernel {
    %t = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<8x32xi4> -> !xegpu.tensor_desc<8x32xi4>
    %v = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x32xi4> -> vector<8x32xi4>
    %o = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<8x32xi4> -> !xegpu.tensor_desc<8x32xi4>
    xegpu.store_nd %v, %o {mode = vc} : vector<8x32xi4>, !xegpu.tensor_desc<8x32xi4>
    gpu.return
  }
}
"""
    a, out = (np.arange(256).reshape(8, 32) % 16 - 8).astype(int4), np.zeros((8, 32), int4)
    report = xegpu_py.compile(text).fidelity(a, out)
    np.testing.assert_array_equal(out, a)
    assert report.runs == 1 and not report.rules and "reduction-order" in report.not_visible


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 512, 513, 700, 1024, 1023])
def test_the_last_workgroups_run_first_and_each_of_them_once(count: int) -> None:
    parts: list[range] = []

    class Recorded:
        groups = range(0)

        def run(self, launch: Any) -> Statistics:
            parts.append(self.groups)
            return Statistics(1, np.full(3, len(self.groups)), Counter(), None)

    done = _last_first(Recorded(), SimpleNamespace(size=SimpleNamespace(grid=(count, 1, 1))))
    assert [group for part in reversed(parts) for group in part] == list(range(count))
    assert all(parts) and min(count, 129) <= len(parts) <= 256 and done.executed.tolist() == [count] * 3


def test_effects_on_outputs() -> None:
    """Elements differ by their bits; distances are of numbers only, or an element is a NaN in one run only."""
    nan = np.float32(np.nan)
    other_nan = np.array([0x7FC00001], np.uint32).view(np.float32)[0]
    usual = np.array([1, 2, nan, 4, 0], np.float32)
    cases = {
        "same": (usual, usual, None),
        "numbers": (usual, [1, np.nextafter(np.float32(2), np.float32(3)), nan, 4, 0], (1, 5, 1, False)),
        "other NaN": (usual, [1, 2, other_nan, 4, 0], (1, 5, None, False)),
        "other NaN and numbers": (usual, [1, 2, other_nan, 4, np.float32(1e-45)], (2, 5, 1, False)),
        "NaN and number": (usual, [nan, 2, nan, 4, 0], (1, 5, None, True)),
        "number and NaN": (usual, [1, 2, 3, 4, 0], (1, 5, None, True)),
        "zeros": (usual, [1, 2, nan, 4, -0.0], (1, 5, 1, False)),
        "ints": (np.arange(4, dtype=np.int16), [0, 1, 2, -1], (1, 4, None, False)),
        "A, B": (usual, [1, 2, nan, 4, 1], (2, 20, None, False)),
        "odd": (np.arange(3, dtype=np.uint8), [0, 1, 3], (1, 3, None, False)),
        "none": (usual, [9, 9, 9, 9, 9], None),
    }
    types = {name: before.dtype for name, (before, *_) in cases.items() if name not in ("A, B", "none", "odd")}
    types |= {"A": np.dtype(np.float32), "B": np.dtype(np.int32), "odd": np.dtype(np.float16)}
    buffers = [SimpleNamespace(name=name, bytes=before.nbytes) for name, (before, *_) in cases.items()]
    memories = [
        SimpleNamespace(buffers=buffers, bytes_of=lambda b, run=run: bytes_of(cases[b.name], run)) for run in range(2)
    ]
    found = {e.output: (e.count, e.size, e.ulps, e.number_or_nan) for e in _effects(*memories, types)}
    assert found == {name: expected for name, (*_, expected) in cases.items() if expected}


def bytes_of(case: Any, run: int) -> np.ndarray:
    return np.asarray(case[run], case[0].dtype).view(np.uint8)


BRANCHING = """.version 4.2
.kernel "k"
.decl P v_type=P num_elts=16
.decl A v_type=G type=d num_elts=16 align=GRF
.kernel_attr SimdSize=16
.function "_main_0"
_main_0:
cmp.lt (M1, 16) P A(0,0)<1;1,0> 3:d
(P) goto (M1, 16) first
add (M1, 16) A(0,0)<1> A(0,0)<1;1,0> 1:d
(P) add (M1, 16) A(0,0)<1> A(0,0)<1;1,0> 2:d
first:
mul (M1, 16) A(0,0)<1> A(0,0)<1;1,0> 5:d
(P) jmp (M1, 1) last
shl (M1, 16) A(0,0)<1> A(0,0)<1;1,0> 1:d
last:
ret (M1, 1)
"""


def test_branches_that_lead_other_threads():
    """A jump does if one of its ends has other threads, more of them, or other lanes, whatever a guard there does."""
    [program] = assembly.read(Source(BRANCHING, "k.visaasm"))
    names = [inst.name for inst in program.instructions]
    goto, jump, block = names.index("goto"), names.index("jmp"), program.labels["first"]
    add, guarded, shift, end = names.index("add"), names.index("add") + 1, names.index("shl"), len(names)
    start = {at: max(s for s in block_starts(program) if s <= at) for at in range(end)}

    def of(lanes=None, executed=None, blocks=None, path=0):
        trace = SumTrace(program)
        trace.stats = SimpleNamespace(executed=np.full(end, 4))
        trace.log.lanes = np.full(end, 64)
        if lanes is not None:
            trace.log.lanes[lanes] = 3
        if executed is not None:
            trace.stats.executed[executed] = 3
        if blocks is not None:
            trace._blocks[start[blocks]] = 1 << 64 | 5
        trace._path = path
        return trace

    usual = of()
    for other, jumps in (
        ({}, []), ({"lanes": add}, [goto]), ({"lanes": guarded}, []), ({"lanes": block}, [goto]),
        ({"lanes": shift}, [jump]), ({"lanes": goto}, []), ({"executed": add}, [goto]), ({"executed": block}, [goto]),
        ({"executed": shift}, [jump]), ({"blocks": add}, [goto]), ({"blocks": block}, [goto]),
        ({"blocks": shift}, [jump]), ({"path": 7}, [goto, jump]), ({"path": 1 << 64}, []),
        ({"path": 7, "lanes": shift}, [jump]), ({"executed": goto, "path": 7}, [goto, jump]),
    ):  # fmt: skip
        assert usual.branches(of(**other)) == jumps, other
    unused = of(path=7)
    unused.stats.executed[goto] = 0
    assert unused.branches(usual) == [jump], "a jump that no thread executed leads nowhere"


def test_operands_of_what_does_not_act_do_not_count():
    [program] = assembly.read(Source(BRANCHING, "k.visaasm"))
    at = [inst.name for inst in program.instructions].index("add")
    lanes = program.instructions[at].exec_size
    numbers = np.arange(2 * lanes).reshape(2, lanes) + 1
    for operands, acting, expected in (
        (numbers, [0b101, 0], np.stack([np.where(np.isin(numbers[0], (1, 3)), numbers[0], 0), 0 * numbers[0]])),
        (numbers[:, :3], [1, 0], [[1, 2, 3], [0, 0, 0]]),
        (numbers[:, :3], [0, 8], [[0, 0, 0], [lanes + 1, lanes + 2, lanes + 3]]),
    ):
        records = SimpleNamespace(operands=operands, values=np.array(acting))
        np.testing.assert_array_equal(SumTrace(program)._operands(at, records), expected)
