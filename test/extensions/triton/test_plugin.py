"""The backend in stock Triton: what launches compute, check and cache, and what it refuses."""

import gc
import itertools
import mmap
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

triton = pytest.importorskip("triton")

import triton_kernels as kernels  # noqa: E402  (after the skip)

import xegpu_py  # noqa: E402
from xegpu_py import lower_kernel  # noqa: E402
from xegpu_py.engines.jit.host import THREADS  # noqa: E402
from xegpu_py.extensions.triton import api as xe  # noqa: E402
from xegpu_py.extensions.triton import backend, compile_ahead, launches  # noqa: E402
from xegpu_py.ir.diagnostics import Position, error_at  # noqa: E402
from xegpu_py.runtime.executor import Executor  # noqa: E402


def vectors(count=1000, dtype=np.float32):
    rng = np.random.default_rng(count)
    return [rng.integers(-50, 50, count).astype(dtype) for _ in range(2)] + [np.zeros(count, dtype)]


def line_of(kernel, text):
    """The file and line of a kernel on which a text stands, as errors begin."""
    lines = Path(kernel.fn.__code__.co_filename).read_text().splitlines()
    first = kernel.fn.__code__.co_firstlineno
    return f"triton_kernels.py:{next(n for n in range(first, len(lines)) if text in lines[n - 1])}:"


@pytest.mark.parametrize("count", [1, 255, 256, 1000])
def test_arrays_are_added(count):
    x, y, z = vectors(count)
    kernels.add[(triton.cdiv(count, 256),)](*map(xe.wrap, (x, y, z)), count, BLOCK=256)
    np.testing.assert_array_equal(z, x + y)


def test_launches_are_remembered_by_address_and_numbers():
    x, y, z = vectors()
    wrapped = [xe.wrap(a) for a in (x, y, z)]
    for n in (1000, 10, 1000):
        z[:] = 0
        compiled = kernels.add[(4,)](*wrapped, n, BLOCK=256)
        np.testing.assert_array_equal(z, np.where(np.arange(1000) < n, x + y, 0))
    other = np.zeros_like(z)
    kernels.add[(4,)](*wrapped[:2], xe.wrap(other), 1000, BLOCK=256)
    np.testing.assert_array_equal(other, x + y)
    assert xe.kernel_of(compiled).stats.threads >= 4


def test_the_oldest_of_too_many_launches_is_forgotten(monkeypatch):
    prepared, prepare = [], launches.LoadedKernel._prepare
    monkeypatch.setattr(launches, "MOST_PREPARED", 2)
    monkeypatch.setattr(
        launches.LoadedKernel, "_prepare", lambda self, *a: prepared.append(a[-1][3]) or prepare(self, *a)
    )
    add = triton.jit(kernels.add.fn)  # no other test has launched this one
    x, y, z = vectors()
    for n in (100, 200, 100, 300, 200, 100):
        z[:] = 0
        add[(4,)](*map(xe.wrap, (x, y, z)), n, BLOCK=256)
        np.testing.assert_array_equal(z, np.where(np.arange(1000) < n, x + y, 0))
    assert prepared == [100, 200, 300, 100]


def test_only_the_version_that_a_launch_needs_is_lowered(monkeypatch):
    lowered = []
    own = lower_kernel.KernelLowering.executable
    monkeypatch.setattr(lower_kernel.KernelLowering, "executable", lambda self: lowered.append(self) or own(self))
    softmax = triton.jit(kernels.softmax.fn)  # no other test has launched this one

    def rows(columns):
        x = np.random.default_rng(columns).random((4, columns), np.float32)
        y = np.zeros_like(x)
        kernel = softmax[(4,)](xe.wrap(x), xe.wrap(y), columns, columns, BLOCK=128)
        e = np.exp(x - x.max(1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
        return len(lowered), xe.kernel_of(kernel).asm.count("block2d")

    # Triton compiles one kernel for all sizes that 16 does not divide.
    first, blocks = rows(77)
    assert (first, blocks) == (1, 0)
    second, blocks = rows(76)
    assert second == 2 and blocks > 0
    assert rows(77) == (2, 0)


def test_views_reach_the_whole_of_their_memory():
    memory = np.arange(64, dtype=np.float32)
    y = np.zeros(16, np.float32)
    kernels.previous[(1,)](xe.wrap(memory[32:]), xe.wrap(y), 20, BLOCK=16)
    np.testing.assert_array_equal(y, memory[12:28])
    with pytest.raises(xegpu_py.DiagnosticError, match="before 'X', which has 256 bytes"):
        kernels.previous[(1,)](xe.wrap(memory[32:]), xe.wrap(y), 40, BLOCK=16)


def test_arguments_may_be_parts_of_one_array():
    memory = np.arange(96, dtype=np.float32)
    kernels.add[(1,)](*(xe.wrap(memory[32 * i : 32 * i + 32]) for i in range(3)), 32, BLOCK=32)
    np.testing.assert_array_equal(memory[64:], memory[:32] + memory[32:64])


def test_accesses_out_of_bounds_are_errors_at_the_line_with_the_name_of_the_argument():
    x, y, _ = vectors(100)
    with pytest.raises(xegpu_py.DiagnosticError) as e:
        kernels.unmasked[(2,)](xe.wrap(x), xe.wrap(y), 100, BLOCK=64)
    assert line_of(kernels.unmasked, "tl.load") in str(e.value)
    assert "over the end of 'X', which has 400 bytes" in str(e.value) and "program (1, 0, 0)" in str(e.value)


def product(m, n, k, transposed=False, engine=None, check="bounds", **sizes):
    """Multiply matrices with a check, where the program is told other sizes than those of the arrays."""
    rng = np.random.default_rng(m)
    a, b = rng.integers(-4, 5, (m, k)).astype(np.float16), rng.integers(-4, 5, (k, n)).astype(np.float16)
    right, c = b.T.copy().T if transposed else b, np.zeros((m, n), np.float32)
    steps = [s // 2 for s in right.strides]
    given = {"M": m, "N": n, "K": k, **sizes}
    with xe.options(check=check, engine=engine):
        made = kernels.matmul[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
            *map(xe.wrap, (a, right, c)), *given.values(), k, 1, *steps, n, 1, BM=32, BN=32, BK=32
        )
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    return made


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_bounds_are_those_of_masks(engine):
    """Elements that a mask leaves out are not accessed, though their 2D block reaches beyond the array."""
    for transposed in (False, True):
        made = product(72, 80, 40, transposed, engine)
        assert made.function.last.asm.count("lsc_load_block2d") > 1
    x = np.random.default_rng(0).standard_normal((3, 100)).astype(np.float32)
    y, (a, b, c) = np.zeros_like(x), vectors(1000)
    with xe.options(check="all", engine=engine):
        kernels.softmax[(3,)](xe.wrap(x), xe.wrap(y), 100, 100, BLOCK=128)
        kernels.add[(4,)](*map(xe.wrap, (a, b, c)), 1000, BLOCK=256)
    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(c, a + b)


LOADS = {"A": "x = tl.load", "B": "y = tl.load"}


@pytest.mark.parametrize(("sizes", "engine", "name"), [
    ({"M": 73}, "jit", "A"), ({"M": 73}, "interpreter", "A"), ({"N": 88}, "jit", "B"), ({"N": 88}, "interpreter", "B"),
    ({"K": 48}, "jit", "B"), ({"K": 48}, "interpreter", "A"),
])  # fmt: skip
def test_masks_that_reach_beyond_an_array(sizes, engine, name):
    """With a large K both arrays end too early: A in the last program, which the interpreter runs beside the first."""
    with pytest.raises(xegpu_py.DiagnosticError, match=f"over the end of '{name}', which has") as e:
        product(72, 80, 40, engine=engine, **sizes)
    line = LOADS[name]
    assert line_of(kernels.matmul, line) in str(e.value) and "in program (" in str(e.value)


def test_blocks_of_descriptors_beyond_their_tensor_are_reported():
    """Also where a masked block of the same shape, on the same tensor, is not."""
    x, y = np.ones((40, 32), np.float32), np.zeros((40, 32), np.float32)
    run = lambda: kernels.bounded[(3,)](xe.wrap(x), xe.wrap(y), 40, BM=16, N=32)  # noqa: E731
    run()
    np.testing.assert_array_equal(y, 2 * x)
    for engine in ("jit", "interpreter"):
        with xe.options(check="bounds", engine=engine), pytest.raises(xegpu_py.DiagnosticError) as e:
            run()
        assert line_of(kernels.bounded, "d.load") in str(e.value) and "rows 32 to 47 of 40" in str(e.value)


def test_races_are_found_where_they_are_asked_for():
    x = np.zeros(1, np.int32)
    kernels.racing[(8,)](xe.wrap(x), 3)
    with xe.options(check="races"), pytest.raises(xegpu_py.DiagnosticError) as e:
        kernels.racing[(8,)](xe.wrap(x), 3)
    assert line_of(kernels.racing, "tl.load") in str(e.value) and "nothing orders the two" in str(e.value)

    @xe.options(check=["races", "bounds"])
    def checked():
        kernels.racing[(8,)](xe.wrap(x), 3)

    with pytest.raises(xegpu_py.DiagnosticError, match="nothing orders"):
        checked()
    kernels.racing[(8,)](xe.wrap(x), 3)


def test_assertions_hold_by_default_and_prints_are_shown(capfd):
    x = np.zeros(1, np.int32)
    kernels.asserting[(2,)](xe.wrap(x), 7)
    assert capfd.readouterr().out == "".join(f"pid ({p}, 0, 0) idx () n: 7\n" for p in range(2)) and x[0] == 7
    with pytest.raises(xegpu_py.DiagnosticError) as e:
        kernels.asserting[(2,)](xe.wrap(x), 3)
    assert line_of(kernels.asserting, "device_assert") in str(e.value) and "n is small" in str(e.value)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_prints_have_a_line_for_each_element_in_the_format_of_triton(engine, capfd):
    x, y = np.arange(-3, 13, dtype=np.int16), np.arange(32, dtype=np.float16) * 0.75
    with xe.options(engine=engine):
        kernels.printing[(1, 2)](xe.wrap(x), xe.wrap(y), 7, B=8)
    lines = []
    for p in range(2):
        pid = f"pid (0, {p}, 0)"
        own = [(i, int(v)) for i, v in enumerate(x[8 * p : 8 * p + 8])]
        pairs = [(i, j, float(y[8 * p + i + j])) for i in range(8) for j in range(2)]
        short = lambda v: re.sub(r"\.?0*p", "p", v.hex())  # noqa: E731 - as C prints it
        lines += [f"{pid} begins 100%", *(f"{pid} idx ({i}) x: {v}" for i, v in own)]
        lines += [f"{pid} idx ({i}): (operand 0) 0x{v & 0xFFFF:04x}" for i, v in own]
        lines += [f"{pid} idx (): (operand 1) 0x00000007", f"{pid} idx () sum: {sum(v for _, v in own)}"]
        lines += [f"{pid} idx ({i}) large: {int(v > 2)}" for i, v in own]
        lines += [f"{pid} idx ({i}) at: {2 * (8 * p + i):#x} bytes" for i, _ in own]
        lines += [f"{pid} idx ({i}, {j}) y: {v:.6f}" for i, j, v in pairs]
        lines += [f"{pid} idx ({i}, {j}) y: {short(v)}" for i, j, v in pairs]
    printed = capfd.readouterr().out
    start = int(re.search(r"idx \(0\) at: (\S+)", printed)[1], 16)
    printed = re.sub(r"(?<=at: )\S+", lambda m: f"{int(m[0], 16) - start:#x} bytes", printed)
    assert printed.splitlines() == lines


def test_subgroups_print_their_own_parts_of_a_matrix_once(capfd):
    x = np.arange(64 * 32, dtype=np.int32)
    kernels.printing_matrix[(1,)](xe.wrap(x), M=64, N=32)
    lines = [f"pid (0, 0, 0) idx ({n // 32:2}, {n % 32:2}) x: {n}" for n in x]
    lines += [f"pid (0, 0, 0) idx ({n % 32:2}, {n // 32 // 32}, {n // 32 % 32:2}) transposed: {n}" for n in x]
    lines += [f"pid (0, 0, 0) idx ({n:2}) sum: {total}" for n, total in enumerate(x.reshape(64, 32).sum(0))]
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(lines)


def test_overflows_are_found_where_programs_ask_for_it():
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    run = lambda n, **more: kernels.scaled[(1,)](xe.wrap(x), xe.wrap(y), n, BLOCK=16, **more)  # noqa: E731
    run(3, sanitize_overflow=True)
    np.testing.assert_array_equal(y, 3 * x)
    run(1 << 29)
    np.testing.assert_array_equal(y, (x.astype(np.int64) << 29).astype(np.int32))
    with pytest.raises(xegpu_py.DiagnosticError, match="int32 overflow detected for operation mul") as e:
        run(1 << 29, sanitize_overflow=True)
    assert line_of(kernels.scaled, "* n") in str(e.value) and "in program (0, 0, 0)" in str(e.value)


@pytest.mark.parametrize(
    ("divisors", "check", "line"),
    [
        ({}, "division", ""),
        ({"y": 0}, "races", ""),
        ({"y": 0}, "division", "quotient = x // y"),
        ({"y": 0}, "all", "quotient = x // y"),
        ({"n": 0}, "races,division", "position = tl"),
        ({"m": 0}, "division", "rest = x % m"),
    ],
)
def test_integers_that_are_divided_by_zero_are_found_where_that_is_asked_for(divisors, check, line):
    numbers = {"y": 3, "n": 2, "m": 5} | divisors
    x, y = np.arange(16, dtype=np.int32), np.full(16, 3, np.int32)
    y[13] = numbers["y"]

    def run():
        with xe.options(check=check):
            kernels.dividing[(1,)](xe.wrap(x.copy()), xe.wrap(y), numbers["n"], numbers["m"], B=16)

    if not line:
        run()
        return
    with pytest.raises(xegpu_py.DiagnosticError, match="integer division by zero") as e:
        run()
    assert line_of(kernels.dividing, line) in str(e.value) and "in program (0, 0, 0)" in str(e.value)


def test_unsigned_integers_are_checked_like_signed_ones():
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    with xe.options(check="division"), pytest.raises(xegpu_py.DiagnosticError) as e:
        kernels.unsigned_remainder[(1,)](xe.wrap(x), xe.wrap(y), B=16)
    assert line_of(kernels.unsigned_remainder, "%") in str(e.value)


def test_programs_read_no_register_that_was_not_written():
    product(72, 80, 40, check="uninit")
    x, y, z = vectors(300)
    with xe.options(check="uninit,races"):
        kernels.add[(2,)](*map(xe.wrap, (x, y, z)), 300, BLOCK=256)
    np.testing.assert_array_equal(z, x + y)


def test_lowered_modules_have_the_names_of_arguments():
    x, y, z = vectors()
    compiled = kernels.add[(4,)](*map(xe.wrap, (x, y, z)), 1000, BLOCK=256)
    for level in ("xetile", "xegpu"):
        assert "@add(%X: memref<?xf32>, %Y: memref<?xf32>, %Z: memref<?xf32>, %n: i32)" in compiled.asm[level]


def test_compiled_kernels_have_the_levels_below_ttir():
    x, y, z = vectors()
    compiled = kernels.add[(4,)](*map(xe.wrap, (x, y, z)), 1000, BLOCK=256)
    assert "tt.load" in compiled.asm["ttir"] and "xetile.load" in compiled.asm["xetile"]
    assert "xegpu.load_nd" in compiled.asm["xegpu"] and "lsc_load_block2d" in compiled.asm["visa"]
    with pytest.raises(KeyError, match="ttgir.*have ttir, xetile, xegpu, visa, zebin"):
        compiled.asm["ttgir"]


def test_profiles_count_each_launch():
    x, y, z = vectors()
    found = xe.profile(lambda: kernels.add[(4,)](*map(xe.wrap, (x, y, z)), 1000, BLOCK=256))
    assert [p.kernel for p in found] == ["add"]
    np.testing.assert_array_equal(z, x + y)


def test_fidelity_reports_name_the_arguments():
    x, y, z = vectors()
    x[3] = np.nan
    run = lambda: kernels.add[(4,)](*map(xe.wrap, (x, y, z)), 1000, BLOCK=256)  # noqa: E731
    [found] = xe.fidelity(run, only=["nan-bits"])
    rule = next(rule for rule in found.rules if rule.choice == "nan-bits")
    assert found.runs == 2 and [str(e) for e in rule.tried[0].outputs] == ["Z: 1 of 1000, NaN bits"]
    assert all(line.file.endswith("kernels.py") for line in rule.lines)
    np.testing.assert_array_equal(z, x + y)


def test_verdicts_of_launches():
    """Each target gets a copy of the whole memory of the tensors; the program goes on with one run."""
    memory, (x, y, _) = np.arange(64, dtype=np.float32), vectors()
    before = x.copy()

    def run():
        kernels.previous[(1,)](xe.wrap(memory[32:]), xe.wrap(memory[:16]), 20, BLOCK=16)
        kernels.add[(4,)](xe.wrap(x), xe.wrap(y), xe.wrap(x), 1000, BLOCK=256)

    moved, added = xe.portability(run, targets="pvc,dg2,bmg")
    assert (moved.kernel, added.kernel) == ("previous", "add")
    for found in (moved, added):
        assert [v.target for v in found.verdicts] == ["pvc", "dg2", "bmg"] and found.first == "pvc"
        assert all(v.accepted and v.equal for v in found.verdicts) and found["bmg"].seconds
    np.testing.assert_array_equal(memory, [*range(12, 28), *range(16, 64)])
    np.testing.assert_array_equal(x, before + y)
    with pytest.raises(ValueError, match="unknown target 'bgm'"):
        xe.portability(run, targets="bgm")


def test_verdicts_of_torch_tensors():
    torch = pytest.importorskip("torch")
    memory = torch.arange(96, dtype=torch.float32)
    [found] = xe.portability(
        lambda: kernels.add[(1,)](*(memory[32 * i : 32 * i + 32] for i in range(3)), 32, BLOCK=32), targets="bmg,cri"
    )
    assert found["cri"].equal and (memory[64:] == memory[:32] + memory[32:64]).all()


def test_programs_go_on_after_a_target_that_refuses_a_launch():
    x = np.full(16, 4.0)
    run = lambda: kernels.root[(1,)](xe.wrap(x), N=16)  # noqa: E731
    for target, left in (("dg2", 4), ("bmg", 2)):
        with xe.options(target=target):
            [found] = xe.portability(run, targets=["dg2", "bmg"])
        [problem] = found["dg2"].problems
        assert f"{Path(problem.file).name}:{problem.line}:" == line_of(kernels.root, "tl.sqrt")
        assert found.first == "bmg" and (x == left).all()
    with xe.options(target="dg2"), pytest.raises(xegpu_py.DiagnosticError, match="no f64 square root"):
        xe.portability(run, targets="bmg")


def test_numbers_that_overflow_run_the_exact_version():
    found = np.zeros(16, np.int32)
    for n in (3, 1 << 29, -(1 << 29), 3):
        compiled = kernels.wrapped_position[(1,)](xe.wrap(found), n, BLOCK=16)
        exact = (np.arange(16, dtype=np.int32) * np.int32(n)) > 0
        np.testing.assert_array_equal(found, exact)
    assert "index" in compiled.asm["xetile"]


@pytest.mark.parametrize("engine", ["jit", "interpreter", "both"])
def test_engines_and_hints_do_not_change_results(engine):
    x, y, z = vectors()
    with xe.options(engine=engine):
        kernels.add[(4,)](*map(xe.wrap, (x, y, z)), 1000, BLOCK=256, num_warps=8, num_stages=7, waves_per_eu=2, kpack=2)
    np.testing.assert_array_equal(z, x + y)


def test_wrong_options_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'cheque'"):
        xe.options(cheque="races")
    with pytest.raises(ValueError, match="'autotune' must be one of time, first, model, but got 'best'"):
        xe.options(autotune="best")
    with pytest.raises(ValueError, match="^unknown check 'divisions'; there are memory, .*, division, all$"):
        xe.options(check="races,divisions")
    x, y, z = vectors()
    with pytest.raises(KeyError, match="num_warp was specified but unrecognised"):
        kernels.add[(4,)](*map(xe.wrap, (x, y, z)), 1000, BLOCK=256, num_warp=4)


def test_what_is_no_array_is_refused():
    with pytest.raises(TypeError, match="wrap takes a numpy array, but got list"):
        xe.wrap([1, 2])
    with pytest.raises(TypeError, match="but got an array of complex64"):
        xe.wrap(np.zeros(3, np.complex64))
    with pytest.raises(TypeError, match="kernel_of takes a kernel"):
        xe.kernel_of(kernels.add)


def test_the_device_has_the_name_that_programs_need(monkeypatch):
    assert backend.device_name() == "xegpu"
    monkeypatch.setenv("XEGPU_PY_TRITON_DEVICE", "cpu")
    assert backend.XeDriver().get_current_target().backend == "cpu"
    monkeypatch.setenv("XEGPU_PY_TRITON_DEVICE", "cuda")
    with pytest.raises(ValueError, match="'XEGPU_PY_TRITON_DEVICE' must be xegpu or cpu, but got 'cuda'"):
        backend.device_name()


def test_another_release_of_triton_is_refused(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "4.0.1")
    with pytest.raises(backend.UnknownTriton, match=re.escape("runs kernels of Triton 3.9, but this is Triton 4.0.1")):
        backend.XeDriver()


def test_other_drivers_come_first(monkeypatch):
    class Gpu:
        class driver:
            @staticmethod
            def is_active():
                return True

    known = {**triton.backends.backends, "gpu": Gpu}
    monkeypatch.setattr(triton.backends, "backends", known)
    assert not backend.XeDriver.is_active()
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "xegpu")
    assert backend.XeDriver.is_active()
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND")
    monkeypatch.setattr(triton.backends, "backends", {"xegpu": known["xegpu"]})
    assert backend.XeDriver.is_active()


def test_properties_are_those_of_the_target():
    found = triton.runtime.driver.active.utils.get_device_properties("cpu")
    assert found["max_shared_mem"] == 128 << 10 and found["warpSize"] == 16
    with xe.options(target="pvc"):
        other = triton.runtime.driver.active.utils.get_device_properties("cpu")
    assert other["multiprocessor_count"] > found["multiprocessor_count"]
    assert all(n > 0 for n in (*found.values(), *other.values()))


def test_tuners_take_what_they_are_told(monkeypatch):
    import triton.language as tl

    measured, optimize = set(), Executor.optimize
    monkeypatch.setattr(Executor, "optimize", lambda self: measured.add(self) or optimize(self))
    configs = [triton.Config({"BLOCK": n}) for n in (64, 256)]
    x, y, z = vectors()
    for mode, best in (("first", {64}), ("model", {64, 256}), ("time", {64, 256})):
        tuned = triton.autotune(configs=configs, key=["n"])(kernels.add)
        measured.clear()
        with xe.options(autotune=mode):
            tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](*map(xe.wrap, (x, y, z)), 1000)
        assert tuned.best_config.kwargs["BLOCK"] in best
        # Times are those of optimized code.
        assert mode != "time" or len(measured) == 2
        np.testing.assert_array_equal(z, x + y)
    assert tl is not None


def test_tuners_compile_other_configurations_in_processes_of_their_own(monkeypatch, tmp_path):
    """The process itself lowers the first configuration only."""
    monkeypatch.setattr(compile_ahead, "processors", lambda: 2)
    monkeypatch.setattr(compile_ahead, "other_threads", lambda: False)
    lowered, whole = [], lower_kernel.KernelLowering.executable
    monkeypatch.setattr(lower_kernel.KernelLowering, "executable", lambda self: lowered.append(self) or whole(self))
    configs = [triton.Config({"BLOCK": n}) for n in (32, 128, 512)]
    for mode, is_first in (("model", False), ("time", False), ("time", True)):
        monkeypatch.setenv("XEGPU_PY_CACHE", str(tmp_path / f"{mode} {is_first}"))
        lowered.clear()
        x, y, z = vectors(333)
        tuned = triton.autotune(configs=configs, key=["n"])(triton.jit(kernels.add.fn))
        if is_first:
            # The first tuning of a process prunes before there is a driver, which records what is left.
            tuned.prune_configs = lambda _, tuned=tuned: tuned.configs
        with xe.options(autotune=mode):
            tuned[lambda meta: (triton.cdiv(333, meta["BLOCK"]),)](*map(xe.wrap, (x, y, z)), 333)
        assert len(lowered) == 1
        np.testing.assert_array_equal(z, x + y)


@pytest.mark.parametrize("prune", ["early_config_prune", "perf_model"])
def test_what_a_first_tuning_prunes_is_not_compiled_ahead(prune, monkeypatch):
    """It prunes before there is a driver, which records what is left."""
    ahead = []
    monkeypatch.setattr(backend, "compile_ahead", SimpleNamespace(compile_ahead=ahead.append))
    rules = {
        "early_config_prune": {"early_config_prune": lambda configs, *_, **__: configs[:2]},
        "perf_model": {"perf_model": lambda BLOCK, **_: BLOCK, "top_k": 2},
    }[prune]
    configs = [triton.Config({"BLOCK": n}) for n in (64, 128, 256)]
    for is_first, expected in ((True, [[]]), (False, [[128]])):
        ahead.clear()
        tuned = triton.autotune(configs, key=["n"], prune_configs_by=rules)(triton.jit(kernels.add.fn))
        if is_first:
            tuned.prune_configs = lambda _, tuned=tuned: tuned.configs[:2]
        x, y, z = vectors(100)
        with xe.options(autotune="model"):
            tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](*map(xe.wrap, (x, y, z)), 100)
        assert [[one.keywords["BLOCK"] for one in found] for found in ahead] == expected
        np.testing.assert_array_equal(z, x + y)


def test_kernels_that_are_compiled_ahead_do_not_run(monkeypatch, tmp_path):
    monkeypatch.setenv("XEGPU_PY_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_ahead, "processors", lambda: 2)
    monkeypatch.setattr(compile_ahead, "other_threads", lambda: False)
    add = triton.jit(kernels.add.fn)  # no other test has launched this one
    x, y, _ = vectors(64)
    z = np.frombuffer(mmap.mmap(-1, 64 * 4), np.float32)
    launches = [partial(add[(1,)], *map(xe.wrap, (x, y, z)), 64, BLOCK=size) for size in (64, 256)]
    compile_ahead.compile_ahead(launches)
    assert not z.any() and len(list(tmp_path.glob("*.lowered"))) == 2
    launches[0]()
    np.testing.assert_array_equal(z, x + y)


def test_nothing_is_compiled_ahead_beside_other_threads(monkeypatch, tmp_path):
    """A forked process would hold their locks for ever; those of the package that help launches hold none."""
    monkeypatch.setenv("XEGPU_PY_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_ahead, "processors", lambda: 2)
    done = mmap.mmap(-1, 2)
    launches = [partial(done.__setitem__, i, 1) for i in range(2)]
    own = threading.current_thread()
    for name, expected in (("other", b"\0\0"), (f"{THREADS}-1", b"\1\1")):
        other = threading.Thread(name=name)
        monkeypatch.setattr(threading, "enumerate", lambda other=other: [own, other])
        compile_ahead.compile_ahead(launches)
        assert done[:] == expected


def test_processes_that_do_not_end_are_ended(monkeypatch, tmp_path):
    monkeypatch.setenv("XEGPU_PY_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_ahead, "processors", lambda: 2)
    monkeypatch.setattr(compile_ahead, "other_threads", lambda: False)
    done = mmap.mmap(-1, 3)
    write = [partial(done.__setitem__, i, 1) for i in range(3)]
    waits = partial(time.sleep, 600)
    start = time.monotonic()
    compile_ahead.compile_ahead([write[0], waits, write[1], waits, write[2]], limit=2)
    assert done[:] == b"\1\1\1" and time.monotonic() - start < 60
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("metadata", [None, "metadata"])
def test_hooks_of_a_launch_get_its_metadata(metadata):
    calls = []
    launcher = object.__new__(backend.Launcher)
    launcher._signature = (("X", "*fp32"),)
    kernel = SimpleNamespace(launch=lambda *given: calls.append(given))
    launch = ((1, 2, 3), launcher._signature, ("argument",))
    launcher(1, 2, 3, None, kernel, None, metadata, None, None, "argument")
    assert calls == [launch]
    calls.clear()
    enter, leave = ((lambda given, name=name: calls.append((name, given))) for name in ("enter", "leave"))
    launcher(1, 2, 3, None, kernel, None, metadata, enter, leave, "argument")
    hooked = [("enter", metadata), launch, ("leave", metadata)]
    assert calls == ([launch] if metadata is None else hooked)


def test_calls_that_compile_are_not_timed():
    seconds = iter([0.2, 0.2])
    assert backend.do_bench(lambda: time.sleep(next(seconds, 0)), rep=20, return_mode="max") < 150


def test_times_are_milliseconds(monkeypatch):
    clock = itertools.count(0, 0.25)
    monkeypatch.setattr(backend, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert backend.do_bench(lambda: None, rep=1000, return_mode="all") == [250, 250]


@pytest.mark.parametrize("mode", ["first", "model", "time"])
def test_a_benchmark_that_no_tuner_asks_for_is_timed(mode, monkeypatch):
    monkeypatch.setattr(backend, "do_bench", lambda run, **options: (run(), options))
    with xe.options(autotune=mode):
        found = backend.benchmark(lambda: "done", quantiles=[0.5], rep=3)
    assert found == ("done", {"quantiles": [0.5], "rep": 3})


def test_tuners_skip_what_does_not_fit_shared_memory():
    n = 64
    x = np.random.default_rng(2).integers(-9, 9, (n, n)).astype(np.float32)
    out = np.zeros_like(x)
    configs = [triton.Config({"N": size}) for size in (256, n)]
    tuned = triton.autotune(configs=configs, key=[])(kernels.sums_of_columns)
    with xe.options(autotune="first"):
        tuned[(1,)](xe.wrap(x), xe.wrap(out))
    assert tuned.best_config.kwargs["N"] == n
    np.testing.assert_array_equal(out, x.T.cumsum(1))


def test_tuners_skip_what_does_not_fit_registers(monkeypatch):
    """A tile of such a size takes half a minute to compile."""
    compiled, tried = lower_kernel.KernelSource.for_call, []

    def refusing(self, options, arguments, grid):
        tried.append(options.subgroups)
        if len(tried) == 1:
            raise error_at(Position("k.py"), "variable 'v1' has 32768 bytes, but a thread has 16384")
        return compiled(self, options, arguments, grid)

    monkeypatch.setattr(lower_kernel.KernelSource, "for_call", refusing)
    x, y, z = vectors(300)
    tuned = triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (512, 128)], key=[])(kernels.add)
    with xe.options(autotune="first"):
        tuned[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](*map(xe.wrap, (x, y, z)), 300)
    assert tuned.best_config.kwargs["BLOCK"] == 128 and tried == [0, 0]
    np.testing.assert_array_equal(z, x + y)


def test_importing_triton_does_not_import_the_compiler():
    code = "import sys, triton, triton.backends; print('mlir' in sys.modules, 'xegpu_py.lower_kernel' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert found.stdout.split() == ["False", "False"]


def test_kernels_that_do_not_fit_shared_memory_are_divided_less(monkeypatch):
    tried, compiled = [], lower_kernel.KernelSource.for_call

    def refusing(self, options, arguments, grid):
        tried.append(options.subgroups)
        if options.subgroups == 0:
            text = "exchanges 172,544 bytes through shared local memory, but target bmg has 131,072"
            raise error_at(Position("k.py"), text)
        return compiled(self, options, arguments, grid)

    monkeypatch.setattr(lower_kernel.KernelSource, "for_call", refusing)
    x, y, z = vectors(300)
    kernels.add[(3,)](*map(xe.wrap, (x, y, z)), 300, BLOCK=128)
    np.testing.assert_array_equal(z, x + y)
    assert tried == [0, 4]


def test_kernels_that_fit_no_gpu_run_on_the_virtual_target():
    n = 256
    x = np.random.default_rng(1).integers(-9, 9, (n, n)).astype(np.float32)
    out = np.zeros_like(x)
    message = r"'sums_of_columns' needs 262,144 bytes of shared memory, but bmg has 131,072: .* target 'virtual'"
    with pytest.warns(UserWarning, match=message) as warned:
        for _ in range(2):
            kernels.sums_of_columns[(1,)](xe.wrap(x), xe.wrap(out), n)
    np.testing.assert_array_equal(out, x.T.cumsum(1))
    assert [w.filename for w in warned] == [__file__]
    # A verdict for all GPUs says that it does not fit.
    (found,) = xe.portability(lambda: kernels.sums_of_columns[(1,)](xe.wrap(x), xe.wrap(out), n), targets="bmg")
    assert not found["bmg"].accepted


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_tables_of_addresses_point_to_the_arrays_of_the_process(engine):
    # A launch looks for the arrays among all objects of the process, of which other tests have left millions.
    gc.freeze()
    n = 4
    whole = np.arange(100, dtype=np.float32)
    # Two groups are parts of one array, one begins within its own.
    groups = [xe.wrap(a) for a in (whole[:10], whole[50:53], np.ones(64, np.float32), np.full(40, 2, np.float32)[8:])]
    sizes = np.array([10, 3, 64, 32], np.int32)
    table, out = np.array([g.data_ptr() for g in groups], np.int64), np.zeros(n, np.float32)
    with xe.options(engine=engine):
        kernels.sums_of_groups[(n,)](*map(xe.wrap, (table, sizes, out)), BLOCK=64)
        np.testing.assert_array_equal(out, [45, 153, 64, 64])
        sizes[3] = 33
        with pytest.raises(xegpu_py.DiagnosticError, match=r"reaching 4 bytes over the end of 'tables\[3\]'"):
            kernels.sums_of_groups[(n,)](*map(xe.wrap, (table, sizes, out)), BLOCK=64)
        # An integer that is no address of an array makes the table one of integers.
        table[1] = 5
        with pytest.raises(xegpu_py.DiagnosticError, match="reads 4 bytes at 0x5, "):
            kernels.sums_of_groups[(n,)](*map(xe.wrap, (table, np.array([0, 1, 0, 0], np.int32), out)), BLOCK=64)
        # So do null pointers alone.
        table[:] = 0
        with pytest.raises(xegpu_py.DiagnosticError, match="reads 4 bytes at 0x0, "):
            kernels.sums_of_groups[(n,)](*map(xe.wrap, (table, np.array([0, 1, 0, 0], np.int32), out)), BLOCK=64)


def test_the_key_of_the_cache_follows_the_files_of_triton(tmp_path, monkeypatch):
    from triton.runtime import cache, driver

    assert driver.active.get_current_target().backend == "xegpu"
    assert cache.triton_key is backend.installed_triton
    for name in ("runtime/cache.py", "compiler/code.py", "language/extra/math.py", "_C/libtriton.so", "ops/unused.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(triton, "__file__", str(tmp_path / "__init__.py"))
    key = backend.installed_triton.__wrapped__
    before = key()
    (tmp_path / "ops" / "unused.py").write_text("longer than it was")
    assert key() == before
    for name in ("compiler/code.py", "language/extra/math.py", "_C/libtriton.so"):
        (tmp_path / name).write_text(f"another {name}")
        assert key() != before
        before = key()


def test_read_only_arrays_are_read_and_never_changed(tmp_path):
    def doubled(x, out):
        kernels.add[(1,)](xe.wrap(x), xe.wrap(x), xe.wrap(out), 64, BLOCK=64)

    numbers, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    numbers.tofile(tmp_path / "numbers")
    mapped = np.memmap(tmp_path / "numbers", np.float32, "r")
    doubled(mapped, out)
    np.testing.assert_array_equal(out, 2 * numbers)
    out.flags.writeable = False
    for target in (mapped, out):
        with pytest.raises(ValueError, match="argument 'Z' of kernel 'add' is read-only"):
            doubled(numbers + 1, target)
    np.testing.assert_array_equal(mapped, numbers)
    # The same memory, which may be written again.
    out.flags.writeable = True
    doubled(numbers + 1, out)
    np.testing.assert_array_equal(out, 2 * numbers + 2)


def test_wrapped_arrays_have_the_methods_of_tensors():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    wrapped = xe.wrap(array)
    assert (wrapped.shape, wrapped.numel(), wrapped.element_size()) == ((4, 3), 12, 4)
    assert (wrapped.stride(), wrapped.stride(0), wrapped.stride(1)) == ((6, 2), 6, 2)
    assert wrapped.data_ptr() == array.ctypes.data and repr(wrapped) == f"wrap({array!r})"
    copy = wrapped.clone()
    assert copy.dtype == wrapped.dtype and copy.data_ptr() != wrapped.data_ptr()
    assert wrapped.zero_() is wrapped and not array.any() and (copy.array[3] == [18, 20, 22]).all()
    assert wrapped.copy_(copy) is wrapped and (array[3] == [18, 20, 22]).all()
