"""Launches of native code: threads of the operating system, both engines at once, interruption."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py import cache as disk
from xegpu_py.engines.jit import engine as engine_module
from xegpu_py.engines.jit import host, tiered_code
from xegpu_py.engines.jit.llvm import LLVMError
from xegpu_py.engines.jit.native_launch_struct import ALLOCATION, STRIDE_BYTES
from xegpu_py.engines.jit.rules.alu import ARITHMETIC
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.executor import Executor
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.options import ENGINES

from .structured import HEAD, thread_number
from .test_control import ADDRESS

if TYPE_CHECKING:
    from xegpu_py.engines.jit.llvm import Loaded

pytestmark = pytest.mark.native

ENDLESS = "    mov (M1_NM, 1) S(0,0)<1> 1:ud\nAgain:\n    jmp (M1, 1) Again\n"
STORE = "    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32\n    ret (M1, 1)\n"
NUMBERS = thread_number(3) + ADDRESS + "    mul (M1_NM, 1) S(0,0)<1> Thread(0,0)<0;1,0> 7:ud\n" + STORE


def kernel(body: str, **options: object) -> Kernel:
    return Kernel.from_assembly(HEAD.format(declarations="") + body, file="launch.visaasm", **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("brief", [0, 60])
def test_each_thread_runs_once(engine: str, threads: int, brief: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "BRIEF", brief)
    out, helping = np.zeros(303, np.uint32), []
    monkeypatch.setattr(engine_module, "take", lambda count: helping.append(count) or host.take(count))
    done = kernel(NUMBERS, engine=engine, threads=threads)(out, grid=101, block=3)
    assert helping == ([] if brief or engine == "interpreter" or threads == 1 else [threads - 1])
    assert out.tolist() == [7 * i for i in range(303)]
    assert done.threads == 303 and done.executed[-1] == 303
    assert done.traffic == {("ugm", "store"): 4 * 303}


def test_a_launch_of_few_rounds_that_is_not_brief_is_helped_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calling thread does not look at the clock before it has run some rounds of all threads."""
    monkeypatch.setattr(engine_module, "BRIEF", 1e-9)
    out, helping = np.zeros(60, np.uint32), []
    monkeypatch.setattr(engine_module, "take", lambda count: helping.append(count) or host.take(count))
    made = kernel(NUMBERS, threads=2)
    for helped in ([], [1], [1, 1]):
        made(out, grid=20, block=3)
        assert helping == helped


def test_a_launch_that_is_brief_with_help_has_none_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its own work counts: to wake other threads takes longer."""
    monkeypatch.setattr(engine_module, "BRIEF", 0.05)
    out, helping = np.zeros(60, np.uint32), []
    monkeypatch.setattr(engine_module, "take", lambda count: time.sleep(0.06) or helping.append(count) or [])
    launched = kernel(NUMBERS, threads=2)
    launched.executor.jit._brief = False
    for _ in range(3):
        launched(out, grid=20, block=3)
    assert helping == [1]


def test_a_launch_that_others_ran_is_not_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calling thread, which had nothing to do, would have taken longer alone."""
    monkeypatch.setattr(engine_module, "BRIEF", 60)
    out, helping = np.zeros(60, np.uint32), []

    def take(count: int) -> list[SimpleNamespace]:
        helping.append(count)
        return [SimpleNamespace(submit=lambda task: task() or SimpleNamespace(cancel=lambda: True), rest=lambda: None)]

    monkeypatch.setattr(engine_module, "take", take)
    launched = kernel(NUMBERS, threads=2)
    launched.executor.jit._brief = False
    for _ in range(2):
        launched(out, grid=20, block=3)
    assert helping == [1, 1] and out.tolist() == [7 * i for i in range(60)]


def test_helping_threads_wait_for_the_next_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "BRIEF", 0)
    made, out = kernel(NUMBERS, threads=3), np.zeros(303, np.uint32)
    made(out, grid=101, block=3)
    before = {t.ident for t in threading.enumerate()}
    for _ in range(5):
        made(out, grid=101, block=3)
    assert {t.ident for t in threading.enumerate()} == before


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be placed")
def test_helping_threads_begin_on_other_processors_and_may_use_all() -> None:
    places: list[tuple[int, set[int]]] = []
    used, own = os.sched_getaffinity(0), host._processor()
    found = host.take(3)
    seen = [h.submit(lambda: places.append((host._processor(), os.sched_getaffinity(0)))) for h in found]
    for task in seen:
        task.result()
    assert [allowed for _, allowed in places] == [used] * 3
    if len(used) > 1 and host._processor() == own:
        assert own not in {at for at, _ in places}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_helping_threads_of_its_own() -> None:
    code = """
import os, sys, numpy as np
from engines.test_jit_launch import NUMBERS, host, kernel
made = kernel(NUMBERS, threads=2)
def right():
    out = np.zeros(303, np.uint32)
    made.executor.jit._brief = False
    made(out, grid=101, block=3)
    return out.tolist() == [7 * i for i in range(303)]
assert right()
sys.stdout.flush()
child = os.fork()
if child == 0:
    try:
        host.take(1)[0].submit(right).result(20)
        os._exit(0 if right() else 1)
    finally:
        os._exit(2)
sys.exit(os.waitpid(child, 0)[1] != 0 or not right())
"""
    folder = Path(__file__).parents[1]
    paths = os.pathsep.join([str(folder), str(folder.parent)])
    subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, cwd=folder, env=os.environ | {"PYTHONPATH": paths}
    )


PLACES = """
gpu.module @m {
  gpu.func @k(%o: memref<?x4xi32>) kernel ATTRIBUTES {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %x = gpu.global_id x
    %y = gpu.global_id y
    %z = gpu.global_id z
    %bx = gpu.block_dim x
    %by = gpu.block_dim y
    %gx = gpu.grid_dim x
    %gy = gpu.grid_dim y
    %gz = gpu.grid_dim z
    %width = arith.muli %bx, %gx : index
    %height = arith.muli %by, %gy : index
    %plane = arith.muli %z, %height : index
    %row = arith.addi %plane, %y : index
    %start = arith.muli %row, %width : index
    %i = arith.addi %start, %x : index
    %thread = gpu.thread_id y
    %group = gpu.block_id z
    %n0 = arith.index_cast %i : index to i32
    %n1 = arith.index_cast %thread : index to i32
    %n2 = arith.index_cast %group : index to i32
    %n3 = arith.index_cast %gz : index to i32
    memref.store %n0, %o[%i, %c0] : memref<?x4xi32>
    memref.store %n1, %o[%i, %c1] : memref<?x4xi32>
    memref.store %n2, %o[%i, %c2] : memref<?x4xi32>
    memref.store %n3, %o[%i, %c3] : memref<?x4xi32>
    gpu.return
  }
}
"""


@pytest.mark.each_value
@pytest.mark.parametrize("attributes", ["", "attributes {xegpu.subgroup_size = 16 : i32}"], ids=["threads", "items"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_grids_of_three_dimensions(attributes: str, threads: int) -> None:
    """Each thread, or work item, of any grid finds its place."""
    launched = xegpu_py.compile(PLACES.replace("ATTRIBUTES", attributes), engine="jit", threads=threads)
    for grid, block in (((3, 1, 7), (1, 2, 2)), ((1, 5, 2), (3, 1, 1)), ((2, 3, 4), (5, 3, 2)), ((1, 1, 6), (1, 1, 3))):
        width, height, depth = (g * b for g, b in zip(grid, block))
        out = np.full((width * height * depth, 4), -1, np.int32)
        launched(out, grid=grid, block=block)
        z, y, _ = (n.ravel() for n in np.indices((depth, height, width)))
        expected = [np.arange(len(out)), y % block[1], z // block[2], np.full(len(out), grid[2])]
        np.testing.assert_array_equal(out, np.stack(expected, axis=1))


@pytest.mark.parametrize(("limit", "spent", "quick"), [(60, 25, [1, 1, 0, 0]), (0.05, 0.1, [1, 0, 0, 0])])
def test_code_is_optimized_once_it_has_run_for_long(
    limit: float, spent: float, quick: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first launch may take as long as the optimization: it may be the last one."""
    monkeypatch.setattr(tiered_code, "QUICK_SECONDS", limit)
    # A program of its own: the process keeps the optimized code of the others.
    factor = 9 + int(spent)
    body = NUMBERS.replace("7:ud", f"{factor}:ud")
    launched, out, found = kernel(body, threads=2), np.zeros(9, np.uint32), []
    code = launched.executor.jit.code
    assert 0 < code._optimization_seconds < 60
    code._optimization_seconds = spent + 1
    for n in range(4):
        out[:] = n
        code.count(spent)
        done = launched(out, grid=3, block=3)
        assert out.tolist() == [factor * i for i in range(9)] and done.executed[-1] == 9
        found.append(code.is_quick)
        assert n or code._busy_seconds > spent
    assert found == quick
    # Another launcher of an equal program uses the optimized code, which the process keeps.
    again = kernel(body, threads=1)
    again(out, grid=3, block=3)
    assert not again.executor.jit.code.is_quick and again.executor.jit.code.loaded is code.loaded


LOOP = """    mov (M1_NM, 1) S(0,0)<1> 0:ud
Again:
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> Thread(0,0)<0;1,0>
    cmp.lt (M1_NM, 1) P S(0,0)<0;1,0> LIMIT:ud
    (P) jmp (M1, 1) Again
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("groups", [1, 200])
def test_a_long_launch_goes_on_in_optimized_code(threads: int, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calling thread optimizes the code when it returns to Python; workgroups that have begun continue in it."""
    monkeypatch.setattr(tiered_code, "QUICK_SECONDS", 1e-9)
    limit = (1_000_000 if groups == 1 else 5000) + threads
    head, out = thread_number(3) + ADDRESS, np.zeros(3 * groups, np.uint32)
    counted = LOOP.replace("LIMIT", str(limit))
    start = "    add (M1_NM, 1) Thread(0,0)<1> Thread(0,0)<0;1,0> 1:ud\n"
    launched = kernel(head + start + counted + STORE, threads=threads, engine="jit")
    launched.executor.jit.code._optimization_seconds = 0
    used: list[int] = []
    optimize = engine_module._ThreadTeam._optimize_if_hot

    def optimize_if_hot(team: Any) -> None:
        optimize(team)
        used.append(len(team.codes))
        assert {worker.context.thread for worker in team.workers} == {team.codes[-1].addresses[0]}

    monkeypatch.setattr(engine_module._ThreadTeam, "_optimize_if_hot", optimize_if_hot)
    done = launched(out, grid=groups, block=3)
    steps = np.arange(1, 3 * groups + 1)
    assert out.tolist() == (-(-limit // steps) * steps).tolist()
    assert done.executed[-1] == 3 * groups and max(used) == 2 and not launched.executor.jit.code.is_quick


def test_a_first_launch_that_will_take_long_is_optimized_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a launch takes as long as its beginning did."""
    monkeypatch.setattr(tiered_code, "QUICK_SECONDS", 1e-9)
    rests: list[float] = []
    monkeypatch.setattr(tiered_code.TieredCode, "optimize_if_hot", lambda code, rest=0: rests.append(rest))
    launched, out = kernel(NUMBERS.replace("7:ud", "23:ud"), threads=1, engine="jit"), np.zeros(12_000, np.uint32)
    launched(out, grid=4000, block=3)
    first, *_, last = rests[1:]
    busy_seconds = launched.executor.jit.code._busy_seconds
    assert rests[0] == 0 and first > last >= 0 and first > busy_seconds / len(rests)


@pytest.mark.parametrize(
    ("is_launched", "busy_seconds", "seconds_left", "is_optimized"),
    [
        (False, 1.1, 0, False),
        (False, 2.1, 0, True),
        (False, 1.1, 1, True),
        (True, 0.9, 0, False),
        (True, 1.1, 0, True),
        (True, 0.9, 0.2, True),
    ],
)
def test_when_code_is_optimized(
    is_launched: bool, busy_seconds: float, seconds_left: float, is_optimized: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second, but in the first launch after the two seconds that the optimization takes."""
    monkeypatch.setattr(tiered_code, "QUICK_SECONDS", 1)
    quick, optimized = (cast("Loaded", object()) for _ in range(2))
    code = tiered_code.TieredCode(quick, lambda: optimized, 2)
    code.count(busy_seconds, is_launched)
    assert code.optimize_if_hot(seconds_left) == is_optimized
    assert code.loaded is (optimized if is_optimized else quick) and code.is_quick != is_optimized


def test_code_that_llvm_fails_to_optimize_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiered_code, "QUICK_SECONDS", 60)
    launched, out = kernel(NUMBERS.replace("7:ud", "13:ud"), threads=2), np.zeros(9, np.uint32)
    launched(out, grid=3, block=3)
    code = launched.executor.jit.code

    def fail() -> None:
        raise LLVMError("LLVM failed")

    quick, code._compile_optimized = code.loaded, fail
    code.count(60)
    for n in range(2):
        out[:] = n
        launched(out, grid=3, block=3)
        assert out.tolist() == [13 * i for i in range(9)]
    assert code.loaded is quick and not code.is_quick


@pytest.mark.parametrize("ran", [False, True])
def test_kernels_that_are_measured_run_optimized_code(ran: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiered_code, "QUICK_SECONDS", 60)
    launched, out = kernel(NUMBERS.replace("7:ud", f"{19 + ran}:ud")), np.zeros(9, np.uint32)
    if ran:
        launched(out, grid=3, block=3)
        assert launched.executor.jit.code.is_quick
    for _ in range(2):
        launched.executor.optimize()
        launched(out, grid=3, block=3)
        assert not launched.executor.jit.code.is_quick and out[1] == 19 + ran


@pytest.mark.parametrize("seconds", [0, 60])
def test_only_code_that_no_cache_keeps_is_compiled_quickly(
    seconds: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tiered_code, "QUICK_SECONDS", seconds)
    for cache in ("off", tmp_path):
        launched = kernel(NUMBERS.replace("7:ud", f"{seconds + 3}:ud"), cache=cache)
        out = np.zeros(9, np.uint32)
        launched(out, grid=3, block=3)
        assert out.tolist() == [(seconds + 3) * i for i in range(9)]
        assert launched.executor.jit.code.is_quick == (seconds > 0 and cache == "off")


@pytest.mark.parametrize("barriers", [0, 2])
def test_short_rounds_return_to_python_less_often(barriers: int) -> None:
    """Native code counts rounds until it returns, also within a workgroup. A later launch begins with more."""
    made, out, returns = kernel("    barrier\n" * barriers + NUMBERS, threads=1), np.zeros(3000, np.uint32), []
    launch = made.executor.jit.driver.launch
    made.executor.jit.driver = SimpleNamespace(
        launch=lambda context: returns.append(int(context.patience)) or launch(context),
        resume=made.executor.jit.driver.resume,
    )
    for _ in range(2):
        returns.append(0)
        made(out, grid=1000, block=3)
    second = returns.index(0, 1)
    assert returns[1:5] == [32, 64, 128, 256]
    assert second < 15 and returns[second + 1] == 128


@pytest.mark.parametrize("groups", [4, 100])
def test_workgroups_may_wait_for_later_ones(groups: int) -> None:
    """The first workgroup polls a number that the last one stores."""
    body = f"""\
    mov (M1_NM, 1) At(0,0)<1> Out(0,0)<0;1,0>
    mov (M1_NM, 1) S(0,0)<1> 5:ud
    cmp.eq (M1_NM, 1) P %group_id_x(0,0)<0;1,0> {groups - 1}:ud
    (P) jmp (M1, 1) Set
    cmp.ne (M1_NM, 1) P %group_id_x(0,0)<0;1,0> 0:ud
    (P) jmp (M1, 1) End
Poll:
    lsc_load.ugm (M1_NM, 1) T.0:d32 flat[At]:a64
    cmp.eq (M1_NM, 1) P T(0,0)<0;1,0> 0:ud
    (P) jmp (M1, 1) Poll
    lsc_store.ugm (M1_NM, 1) flat[At+0x4]:a64 T.0:d32
    jmp (M1, 1) End
Set:
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32
End:
    ret (M1, 1)
"""
    for threads in (1, 2):
        out = np.zeros(2, np.uint32)
        kernel(body, engine="jit", threads=threads)(out, grid=groups)
        assert out.tolist() == [5, 5]


def test_workgroups_that_wait_go_on_before_many_others_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second workgroup polls a number that the second next one stores. Each waiting one needs its own memory."""
    made: list[int] = []
    own = engine_module._WorkerSlot.__init__

    def spy(slot: engine_module._WorkerSlot, *arguments: object) -> None:
        made.append(1)
        own(slot, *arguments)

    monkeypatch.setattr(engine_module._WorkerSlot, "__init__", spy)
    body = """\
    mov (M1_NM, 1) S(0,0)<1> 5:ud
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32
    cmp.ge (M1_NM, 1) P %group_id_x(0,0)<0;1,0> 30:ud
    (P) jmp (M1, 1) End
    and (M1_NM, 1) T(0,0)<1> %group_id_x(0,0)<0;1,0> 1:ud
    cmp.ne (M1_NM, 1) P T(0,0)<0;1,0> 0:ud
    (P) jmp (M1, 1) End
Poll:
    lsc_load.ugm (M1_NM, 1) T.0:d32 flat[At+0x8]:a64
    cmp.eq (M1_NM, 1) P T(0,0)<0;1,0> 0:ud
    (P) jmp (M1, 1) Poll
End:
    ret (M1, 1)
"""
    out = np.zeros(32, np.uint32)
    kernel(thread_number(1) + ADDRESS + body, engine="jit", threads=1)(out, grid=32)
    assert (out == 5).all()
    assert len(made) < 8


@pytest.mark.parametrize("engine", ENGINES)
def test_each_launch_begins_anew(engine: str) -> None:
    """Neither local memory nor registers that are read before they are written have data of earlier workgroups."""
    body = """\
    mov (M1_NM, 1) Local(0,0)<1> 0:ud
    lsc_load.slm (M1_NM, 1) T.0:d32 flat[Local]:a32
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> 5:ud
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> T(0,0)<0;1,0>
    barrier
    lsc_store.slm (M1_NM, 1) flat[Local]:a32 S.0:d32
"""
    local = kernel(thread_number(2) + body + ADDRESS + STORE, engine=engine, threads=2)
    for block in (2, 1, 2):
        out = np.zeros(6, np.uint32)
        local(out, grid=3, block=block)
        assert out[: 2 * 3 : 3 - block].tolist() == [5] * (3 * block)


def test_registers_that_a_program_writes_first_are_not_cleared() -> None:
    first, later = "    add (M1_NM, 1) S(0,0)<1> T(0,0)<0;1,0> 1:ud\n", "    mov (M1_NM, 1) T(0,0)<1> 2:ud\n"
    for body, some in ((later + first, True), (first + later, False)):
        jit = kernel(body + thread_number(1) + ADDRESS + STORE, engine="jit").executor.jit
        assert (jit.input_bytes < jit.frame.registers) == some


@pytest.fixture
def interruptible() -> Iterator[None]:
    """The test runner may have set interrupts to be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interruption() -> None:
    """The user interrupts a kernel that never ends; the process continues."""
    endless = kernel(ENDLESS + "    ret (M1, 1)\n", engine="jit")
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        endless(np.zeros(1, np.uint32), grid=64)
    assert time.monotonic() - start < 3
    out = np.zeros(3, np.uint32)
    kernel(NUMBERS, engine="jit")(out, block=3)
    assert out.tolist() == [0, 7, 14]


def test_both_engines_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    both = kernel(NUMBERS, engine="both")
    both(np.zeros(3, np.uint32), block=3)
    monkeypatch.setitem(ARITHMETIC, "mul", ARITHMETIC["add"])
    monkeypatch.setattr(disk, "_memory", OrderedDict())
    with pytest.raises(DiagnosticError, match="the engines differ in 3 bytes of 'Out', first in byte 0: 0x00 of"):
        kernel(NUMBERS, engine="both")(np.zeros(3, np.uint32), block=3)


def test_options() -> None:
    with pytest.raises(ValueError, match="'engine' must be one of jit, interpreter, both, but got 'fast'"):
        kernel(NUMBERS, engine="fast")
    assert kernel(NUMBERS, engine="jit", check=("uninit", "races")).executor.engine == "jit"
    assert kernel(NUMBERS, engine="jit", check="uninit").executor.engine == "jit"
    with pytest.raises(ValueError, match="'threads' must be 1 to [0-9]+, but got 0"):
        kernel(NUMBERS, threads=0)
    assert kernel(NUMBERS).executor.engine == "jit"
    assert kernel(NUMBERS, check="uninit").executor.engine == "interpreter"


@pytest.mark.parametrize(
    "make", [lambda: np.zeros((3, 2), np.uint32)[:, 0], lambda: np.zeros(16, np.uint8)[4:].view(np.uint32)]
)
def test_arrays_that_are_copied(make: Callable[[], np.ndarray]) -> None:
    """Arrays with gaps, and arrays that do not begin at a multiple of 8 bytes."""
    out = make()
    kernel(NUMBERS, engine="jit")(out, block=3)
    assert out.tolist() == [0, 7, 14]


def test_read_only_arrays() -> None:
    out = np.zeros(3, np.uint32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernel(NUMBERS, engine="jit")(out, block=3)
    assert not out.any()


def test_gemm_of_both_engines() -> None:
    """The measured kernel, with a size that its tiles do not divide into equal rows of the caches."""
    from passes.gemms import Gemm

    rng = np.random.default_rng(0)
    for kind, dtype in (("bf16", ml_dtypes.bfloat16), ("f16", np.float16), ("i8", np.int8)):
        gemm = Gemm(kind, kind, "i32" if kind == "i8" else "f32", 32, 32, 96, 96, 64)
        a, b = (rng.integers(-100, 100, s).astype(dtype) for s in ((96, 64), (64, 96)))
        c = np.zeros((96, 96), np.int32 if kind == "i8" else np.float32)
        xegpu_py.compile(gemm.text(), engine="both")(a, b, c, grid=(3, 3))
        assert (c == a.astype(np.float64) @ b.astype(np.float64)).all()


def test_strides_of_blocks_are_kept_from_workgroup_to_workgroup() -> None:
    """Each of two threads moves a block of 8 rows. Their next blocks, 16 rows further down, are prefetched."""
    surface = "flat[{},0x7f,0x3ff,0x7f,X(0,0),Y(0,0)]"
    text = f"""\
.version 3.8
.kernel "rows"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=d num_elts=1 align=dword
.decl Y v_type=G type=d num_elts=1 align=dword
.decl A v_type=G type=ud num_elts=128 align=GRF
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1_NM, 1) X(0,0)<1> 0x0:d
    mul (M1_NM, 1) Y(0,0)<1> %group_id_x(0,0)<0;1,0> 0x10:ud
    mad (M1_NM, 1) Y(0,0)<1> %r0(0,2)<0;1,0> 0x8:ud Y(0,0)<0;1,0>
    lsc_load_block2d.ugm (M1_NM, 1) A.0:d32.16x8nn {surface.format("In(0,0)")}
    lsc_store_block2d.ugm (M1_NM, 1) {surface.format("Out(0,0)")} A.0:d32.16x8nn
    ret (M1, 1)
"""
    rows = Kernel.from_assembly(text, file="rows.visaasm", threads=1)
    given, out = (xegpu_py.zeros_aligned((1024, 32), np.uint32) for _ in range(2))
    given[...] = np.arange(given.size).reshape(given.shape)
    rows(given, out, grid=5, block=2)
    assert np.array_equal(out[:80, :16], given[:80, :16]) and not out[80:].any() and not out[:, 16:].any()
    jit = rows.executor.jit
    (worker,) = jit._spare
    blocks = worker.own.blocks.reshape(2, -1)[:, jit.frame.strides :].view(np.int64)
    blocks = blocks.reshape(2, -1, STRIDE_BYTES // 8)[:, :, :2]
    for thread, entries in enumerate(blocks):
        found = {tuple(entry) for entry in entries.tolist() if any(entry)}
        assert found == {(array.ctypes.data + 128 * (64 + 8 * thread), 128 * 16) for array in (given, out)}


@pytest.mark.parametrize("lanes", [1, 16])
def test_messages_look_first_in_the_allocation_of_the_one_before(lanes: int) -> None:
    """In other launches there are fewer allocations, or others, and what lies beyond one is refused as ever."""
    address, data = ("At", "d32x16t") if lanes == 1 else ("Each", "d32")
    steps = "\n".join(f"    mov (M1_NM, 1) Steps(0,{n})<1> {4 * n:#x}:uw" for n in range(16))
    text = f"""\
.version 3.8
.kernel "lines"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Line v_type=G type=uq num_elts=1 align=qword
.decl At v_type=G type=uq num_elts=1 align=GRF
.decl Steps v_type=G type=uw num_elts=16 align=GRF
.decl Each v_type=G type=uq num_elts=16 align=GRF
.decl A v_type=G type=ud num_elts=16 align=GRF
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mul (M1_NM, 1) Line(0,0)<1> %group_id_x(0,0)<0;1,0> 0x40:ud
{steps}
    add (M1_NM, 1) At(0,0)<1> In(0,0)<0;1,0> Line(0,0)<0;1,0>
    add (M1_NM, 16) Each(0,0)<1> At(0,0)<0;1,0> Steps(0,0)<1;1,0>
    lsc_load.ugm (M1_NM, {lanes}) A.0:{data} flat[{address}.0]:a64
    add (M1_NM, 1) At(0,0)<1> Out(0,0)<0;1,0> Line(0,0)<0;1,0>
    add (M1_NM, 16) Each(0,0)<1> At(0,0)<0;1,0> Steps(0,0)<1;1,0>
    lsc_store.ugm (M1_NM, {lanes}) flat[{address}.0]:a64 A.0:{data}
    ret (M1, 1)
"""
    lines = Kernel.from_assembly(text, file="lines.visaasm", threads=1)
    given, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    lines(given, out, grid=4)
    assert (out == given).all()
    jit = lines.executor.jit
    (worker,) = jit._spare
    kept = worker.own.blocks[jit.frame.strides : jit.frame.bytes].view(np.int64).reshape(-1, STRIDE_BYTES // 8)
    assert kept[:2, ALLOCATION // 8].tolist() == [0, 1]
    # Before the allocation of the load, and beyond that of the store.
    kept[:2, ALLOCATION // 8], out[:] = (1, 0), 0
    lines(given, out, grid=4)
    assert (out == given).all()
    lines(out, out, grid=4)
    assert (out == given).all()
    shorter = np.full(48, 7, np.uint32)
    lines(shorter, out, grid=3)
    assert (out == np.where(given < 48, 7, given)).all()
    errors = []
    for engine in ("jit", "interpreter"):
        other = Kernel.from_assembly(text, file="lines.visaasm", threads=1, engine=engine) if engine != "jit" else lines
        with pytest.raises(DiagnosticError, match="reads") as error:
            other(shorter, out, grid=4)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


def test_engines_that_print_different_texts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = xegpu_py.compile('gpu.module @m { gpu.func @k() kernel { gpu.printf "here" gpu.return } }', engine="both")
    kernel()
    assert capsys.readouterr().out == "here"
    monkeypatch.setattr(Executor, "_run_interpreted", lambda *_: None)
    with pytest.raises(DiagnosticError, match="kernel 'k': the engines print different texts"):
        kernel()
