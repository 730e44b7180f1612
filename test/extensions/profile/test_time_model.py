"""The model of the time gives sane bounds. How good it is, `benchmarks/model/judge.py` says."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import xegpu_py
from xegpu_py import Constexpr
from xegpu_py import language as xl
from xegpu_py.extensions.profile import gpus as gpu_module
from xegpu_py.extensions.profile.caches import WAYS, hits, new_lines
from xegpu_py.extensions.profile.gpus import GPUS, Gpu, gpu
from xegpu_py.extensions.profile.launches import sample_of
from xegpu_py.extensions.profile.time_model import (
    BRANCH,
    FITTED,
    PIPES,
    Prediction,
    _Scheduled,
    pipe_cycles,
    predict,
    scheduled,
    taken_out,
    thread_cycles,
)
from xegpu_py.runtime.device_memory import Buffer
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import target
from xegpu_py.visa.program import Instruction


@xegpu_py.jit(target="bmg")
def copied(X, Y, ROWS: Constexpr, COLUMNS: Constexpr):
    m, n = xl.program_id(0) * ROWS, xl.program_id(1) * COLUMNS
    Y.tile((ROWS, COLUMNS), at=(m, n)).store(X.tile((ROWS, COLUMNS), at=(m, n)).load())


@xegpu_py.jit(target="bmg")
def multiplied(A, B, C, TURNS: Constexpr):
    m, n = xl.program_id(0) * 32, xl.program_id(1) * 64
    a, b = A.tile((32, 32), at=(m, 0)).load(), B.tile((32, 64), at=(0, n)).load()
    c = xl.zeros((32, 64))
    for _ in range(TURNS):
        c += a @ b
    C.tile((32, 64), at=(m, n)).store(c)


def copying(rows: int, **options: bool) -> Prediction:
    x = np.empty((rows, 4096), np.float32)
    kernel = copied.compile(x, x.copy(), ROWS=32, COLUMNS=64)
    return predict(kernel, (x, np.empty_like(x)), (rows // 32, 64), "b580", **options)


def test_a_large_copy_takes_the_time_of_its_bytes() -> None:
    found = copying(8192)
    moved = 2 * 8192 * 4096 * 4
    assert found.bound == "memory"
    assert found.bytes["memory"] == pytest.approx(moved, rel=0.01)
    on = gpu("b580")
    least = moved / on.memory_rate
    assert least < found.seconds < 1.5 * least / on.memory_share
    assert copying(4096).seconds == pytest.approx(found.seconds / 2, rel=0.1)


def test_a_warm_cache_holds_a_small_copy() -> None:
    assert copying(256, warm=True).bytes["memory"] == 0 < copying(256).bytes["memory"]
    assert copying(8192, warm=True).bytes["memory"] > 0


@xegpu_py.jit
def chained(X, CHAINS: Constexpr, TURNS: Constexpr):
    first = xl.program_id(0) * (16 * CHAINS)
    xs = [X.tile((1, 16), at=(0, first + 16 * c)).load() for c in xl.static_range(CHAINS)]
    y = xs[0]
    for _ in range(TURNS):
        for _ in xl.static_range(64):
            for c in xl.static_range(CHAINS):
                xs[c] = xl.fma(xs[c], y, xs[c])
    for c in xl.static_range(CHAINS):
        X.tile((1, 16), at=(0, first + 16 * c)).store(xs[c])


@pytest.mark.parametrize(("name", "one", "four"), [("a770", 3, 4), ("b580", 1, 1)])
def test_products_of_three_registers(name: str, one: int, four: int) -> None:
    """A mad of 16 lanes: 2 cycles for 8 lanes of an A770, 1.5 if the next one needs its result, and 1 on Xe2."""
    for chains, cycles in ((1, one), (4, four)):
        x = np.empty((1, 16 * chains), np.float32)
        kernel = chained.with_options(target=gpu(name).target).compile(x, CHAINS=chains, TURNS=20)
        found = predict(kernel, (x,), 1, name)
        assert found.bounds["float"] * gpu(name).clock == pytest.approx(20 * 64 * chains * cycles, rel=0.02)


@xegpu_py.jit(target="bmg")
def added(X, TURNS: Constexpr):
    x = X.tile((1, 32), at=(0, 0)).load()
    for _ in range(TURNS):
        x = (x ^ 5) + x
    X.tile((1, 32), at=(0, 0)).store(x)


@pytest.mark.parametrize(("dtype", "integers", "floats"), [(np.int16, 2000, 2000), (np.int32, 6000, 0)])
def test_both_pipes_execute_integers_of_16_bits(dtype: type, integers: int, floats: int) -> None:
    """Two instructions of 32 lanes in a loop, which has two of its own, of one cycle each: of 16 bits they take a cycle
    in either pipe, of 32 bits two cycles in one."""
    x = np.empty((1, 32), dtype)
    found = predict(added.compile(x, TURNS=1000), (x,), 1, "b580")
    for pipe, cycles in (("int", integers), ("float", floats)):
        assert found.bounds[pipe] * gpu("b580").clock == pytest.approx(cycles, rel=0.02)


@pytest.mark.parametrize("name", ["b580", "b70", "140v"])
def test_products_take_the_time_of_their_pipe(name: str) -> None:
    a, b = np.empty((1024, 32), np.float16), np.empty((32, 8192), np.float16)
    c = np.empty((1024, 8192), np.float32)
    kernel = multiplied.compile(a, b, c, TURNS=100)
    found, on = predict(kernel, (a, b, c), (32, 128), name), gpu(name)
    assert found.operations == 2 * 32 * 64 * 32 * 100 * 32 * 128
    assert found.bound == "dpas"
    assert found.bounds["dpas"] >= found.operations / on.dpas_peak / on.dpas_share * 0.999
    assert found.seconds < 1.6 * found.bounds["dpas"]


def test_every_bound_is_below_the_time() -> None:
    found = copying(512)
    assert all(0 <= bound <= found.seconds for bound in found.bounds.values())
    assert found.seconds > gpu("b580").launch
    assert found.bound == max(found.bounds, key=lambda name: found.bounds[name])


@pytest.mark.parametrize("rows", [64, 512])
def test_the_parts_are_a_sum(rows: int) -> None:
    found = copying(rows)
    assert sum(found.parts.values()) == pytest.approx(found.seconds, rel=1e-9)
    assert all(part >= 0 for part in found.parts.values())
    assert f" us = {found.sum_text()}; bound by" in repr(found)
    # Written again: what is issued while a pipe is busy takes no time, and all that overlaps is a norm.
    at_once = {name: bound for name, bound in found.bounds.items() if name != "latency"}
    at_once["issue"] = max(0.0, at_once["issue"] - max(at_once[pipe] for pipe in PIPES))
    norm = sum(part**FITTED.overlap for part in (*at_once.values(), gpu("b580").launch)) ** (1 / FITTED.overlap)
    assert found.seconds == pytest.approx(max(norm + found.parts.get("waiting", 0.0), found.bounds["latency"]))


def test_what_is_issued_beside_a_busy_pipe() -> None:
    """A kernel whose parts but for the issue and one pipe are small."""
    a, b, c = (np.empty(shape, np.float16) for shape in ((32, 32), (32, 64), (32, 64)))
    kernel = multiplied.compile(a, b, c.astype(np.float32), TURNS=1024)
    found = predict(kernel, (a, b, c.astype(np.float32)), 1280, "b580")
    assert found.bound == "dpas" and 0 < found.bounds["issue"] < found.bounds["dpas"]
    assert found.parts["issue"] == 0 and found.parts["dpas"] > 0.9 * found.seconds


def test_gpus_of_names_and_targets() -> None:
    assert gpu("bmg") is GPUS["b580"]
    with pytest.raises(ValueError, match="there is no model of 'h100'; there are max1100, max1550"):
        gpu("h100")


RATES = {
    "max1550": (26.2, 17.5, 419.4, 512, 128, 512, 3.0, 0.5, 1, 0.65, 2.0, 6.0, 204),
    "b580": (14.59, 0.912, 116.7, 256, 128, 256, 1.228, 1, 1, 1.0, 0.5, 2.31, 18),
    "b570": (12.67, 0.792, 101.4, 256, 128, 256, 1.066, 1, 1, 1.0, 0.5, 2.31, 16.2),
    "a770": (19.66, 1.229, 157.3, 192, 64, 256, 2.0, 1, 2, 0.8, 1.0, 8.0, 16),
}
"""Tera-operations in a second of f32, f64 and 16-bit products; KB of L1 and shared memory of a core; bytes of L1 in a
cycle; TB/s of L2; the share of products of four bytes; cycles of a mad; the share of the products' peak; the cost of a
store to a part of a line; microseconds of a launch; MiB of L2."""


@pytest.fixture
def gpus() -> dict[str, Gpu]:
    """The GPUs, made again: mistakes that `make mutants` plants act in tests only, and not in imports."""
    spec = gpu_module.__spec__
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    table: dict[str, Gpu] = made.GPUS
    return table


@pytest.mark.parametrize(("name", "rate"), [("max1550", 1000), ("b580", 410), ("b70", 532), ("a770", 400)])
def test_rates_of_memory_that_programs_reach(name: str, rate: float, gpus: dict[str, Gpu]) -> None:
    """GB in a second, as others measured them."""
    assert gpus[name].memory_rate * gpus[name].memory_share / 1e9 == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize("name", RATES)
def test_published_rates(name: str, gpus: dict[str, Gpu]) -> None:
    on = gpus[name]
    assert on.name == name
    rate = 2 * on.cores * on.engines * on.clock / 1e12
    found = (on.lanes * rate, on.double_lanes * rate, on.dpas_peak / 1e12, on.l1_bytes >> 10, on.slm_bytes >> 10)
    found += (on.l1_rate, on.l2_rate / 1e12, on.dp4a_share, on.mad_cycles, on.dpas_share, on.part_store)
    assert (*found, on.launch * 1e6, on.l2_bytes / (1 << 20)) == pytest.approx(RATES[name], rel=2e-3)


@pytest.mark.parametrize("capacity", [32, 96, 160, 400])
@pytest.mark.parametrize("ordered", [False, True])
def test_hits_of_a_cache(capacity: int, ordered: bool) -> None:
    """A cache of sets, in which each line has a random one, run access by access."""
    random = np.random.default_rng(0)
    lines = np.arange(1500) % 120 if ordered else random.integers(0, 200, 1500)
    found = []
    for _ in range(20):
        where, sets = random.integers(0, capacity // WAYS, 200), dict[int, list[int]]()
        for line in lines.tolist():
            own = sets.setdefault(int(where[line]), [])
            found.append(line in own)
            own[:] = [*[other for other in own if other != line][1 - WAYS :], line]
    assert hits(lines, capacity).mean() == pytest.approx(np.mean(found), abs=0.05)


def test_lines_that_later_workgroups_use_again() -> None:
    """A workgroup loads a line, and the line four ahead: a neighbour shares none, but all load four lines more than one
    each. Seen of one neighbour, each loads two."""
    buffer = Buffer("x", 0, 1 << 20)
    for run, wanted in ((16, 1000 * (1 + 1 / 16 * 4)), (2, 2000)):
        each = {500 + n: np.array([500 + n, 504 + n]) for n in range(run)}
        found = new_lines(each, (1000, 1, 1), [buffer], 1000, 1e6, False)
        assert found == pytest.approx(wanted, rel=0.1)


@xegpu_py.jit(target="bmg")
def shared_row(X, Y, WIDTH: Constexpr, OWN: Constexpr):
    row = xl.program_id(0)
    x = X.tile((1, WIDTH), at=(row * OWN, 0)).load()
    Y.tile((1, 16), at=(row, 0)).store(x.sum(axis=1, keep_dims=True) + xl.zeros((1, 16)))


def test_caches_without_accesses_or_lines() -> None:
    assert hits(np.zeros(0, np.int64), 8).tolist() == []
    assert hits(np.zeros(3, np.int64), 0).tolist() == [0, 0, 0]
    assert hits(np.zeros(3, np.int64), 1)[1:].min() > 0.3


def test_workgroups_of_a_core_share_lines() -> None:
    """If all workgroups load one row, one of those that run together on a core misses its lines."""
    rows, x = 4096, np.empty((4096, 1024), np.float32)
    y = np.empty((rows, 16), np.float32)
    bytes_ = []
    for own in (0, 1):
        kernel = shared_row.compile(x, y, WIDTH=1024, OWN=own)
        found = predict(kernel, (x, y), rows, "b580")
        bytes_.append(found.bytes["l2"])
    stores = 64 * rows
    assert bytes_[1] == 4096 * rows + stores
    assert bytes_[0] == pytest.approx(4096 * rows / found.groups + stores, rel=0.01)


@xegpu_py.jit
def scattered(Y, STEP: Constexpr):
    lane = (xl.program_id(0) * 32 + xl.arange(0, 32)).reshape(1, 32)
    Y.at(lane * STEP).store(xl.full((1, 32), 1.0))


@pytest.mark.parametrize(("name", "times"), [("max1100", 2), ("b580", 0.5), ("a770", 1)])
def test_stores_to_parts_of_lines(name: str, times: float) -> None:
    y = np.empty(1 << 20, np.float32)
    for step, lines in ((1, 2), (16, 32 * times)):
        kernel = scattered.with_options(target=gpu(name).target).compile(y, STEP=step)
        assert predict(kernel, (y,), 1024, name).bytes["l2"] == 1024 * lines * 64


def test_lanes_that_are_spread_take_a_lookup_each() -> None:
    """32 lanes that write a line each write a sixteenth of it; those of two whole lines pay for the message."""
    on, y = gpu("b580"), np.empty(1 << 20, np.float32)
    cycles = {}
    for step in (1, 16):
        found = predict(scattered.with_options(target="bmg").compile(y, STEP=step), (y,), 1024, on)
        cycles[step] = found.bounds["L1"] * on.clock / -(-1024 // on.cores)
    # The lowering writes 16 or 32 lanes at a time.
    whole = 32 * 64 / on.l1_rate
    assert cycles[16] == pytest.approx(whole + (32 - 2) * FITTED.gather_cycles, rel=0.01)
    assert cycles[1] / FITTED.message_cycles in (pytest.approx(1), pytest.approx(2))


@xegpu_py.jit(target="bmg")
def walked(X, Y, TURNS: Constexpr):
    m, found = xl.program_id(0) * 8, xl.zeros((8, 16))
    for turn in range(TURNS):
        found += X.tile((8, 16), at=(m, turn * 16)).load()
    Y.tile((8, 16), at=(m, 0)).store(found)


def test_waiting_is_exposed() -> None:
    """Each turn of a loop waits for the memory; a share of that is added to what bounds the launch."""
    x, y = np.empty((20 * 64 * 8, 4096), np.float32), np.empty((20 * 64 * 8, 16), np.float32)
    kernel = walked.compile(x, y, TURNS=256)
    times = {
        share: predict(kernel, (x, y), 20 * 64, "b580", fitted=structs.replace(FITTED, exposed=share)).seconds
        for share in (0.0, 0.5, 1.0)
    }
    least = 256 * (FITTED.l2_latency + FITTED.memory_latency) / 4
    assert times[1.0] - times[0.5] == pytest.approx(times[0.5] - times[0.0], rel=0.01)
    assert times[1.0] - times[0.0] > least


@pytest.mark.parametrize("name", ["b580", "max1100"])
def test_what_the_l2_holds_does_not_wait_for_the_memory(name: str) -> None:
    """A turn of `walked` waits for the L2, and if this has not kept the line, for the memory too."""
    x, y = np.empty((1024, 512), np.float32), np.empty((1024, 16), np.float32)
    kernel = walked.with_options(target=gpu(name).target).compile(x, y, TURNS=32)
    cold, warm = (predict(kernel, (x, y), 128, name, warm=warm) for warm in (False, True))
    assert cold.bytes["memory"] == cold.bytes["l2"] == x.nbytes + y.nbytes and warm.bytes["memory"] == 0
    on = gpu(name)
    waits = np.array([max(found.cycles) for found in (cold, warm)])
    assert waits[0] - waits[1] == pytest.approx(FITTED.memory_latency * on.clock)
    assert waits[1] == pytest.approx(FITTED.l1_latency + FITTED.l2_latency * on.clock, abs=2)
    # A core has room for all of its workgroups.
    for found, wait in ((cold, waits[0]), (warm, waits[1])):
        assert 32 * wait < found.bounds["latency"] * on.clock < 32 * (wait + 100)
        assert found.bounds["L2"] == pytest.approx(found.bytes["l2"] / on.l2_rate)
        assert found.bounds["memory"] == found.bytes["memory"] / (on.memory_rate * on.memory_share)
        groups = -(-128 // on.cores)
        assert found.bounds["dispatch"] == pytest.approx(groups * FITTED.dispatch / on.clock)
        assert (
            found.groups == 1024 // kernel.executor.allocation.registers * on.engines
            and found.threads == groups / on.engines
        )


def test_a_launch_is_prepared_while_another_one_runs() -> None:
    on, x = gpu("b580"), np.empty((1024, 4096), np.float32)
    kernel = copied.compile(x, x.copy(), ROWS=32, COLUMNS=64)

    def seconds(launch: float) -> float:
        return predict(kernel, (x, np.empty_like(x)), (32, 64), structs.replace(on, launch=launch)).seconds

    alone = seconds(0.0)
    assert 1.1 * alone < seconds(alone) < 1.5 * alone
    assert seconds(10 * alone) < 10.1 * alone


@xegpu_py.jit(target="bmg")
def product_of_rows(A, B, C, K: Constexpr, SUBGROUPS: Constexpr):
    shared = xl.WgMap(sg_layout=(SUBGROUPS, 1), sg_data=(8, 32))
    m, c = xl.program_id(0) * (8 * SUBGROUPS), xl.zeros((8 * SUBGROUPS, 32), map=shared)
    a = A.tile((8 * SUBGROUPS, 16), at=(m, 0)).load()
    for k in range(0, K, 16):
        c = xl.dot(a, B.tile((16, 32), at=(k, 0)).load(), c)
    C.tile((8 * SUBGROUPS, 32), at=(m, 0)).store(c.to(C.dtype))


def test_threads_that_load_a_line_together_all_wait() -> None:
    """Eight threads that multiply by the same rows of B wait as long for them as one."""
    a, b, c = (np.empty(shape, np.float16) for shape in ((64, 32), (2048, 32), (64, 32)))
    waits = {}
    for subgroups in (1, 8):
        size = 8 * subgroups
        kernel = product_of_rows.compile(a, b, c, K=2048, SUBGROUPS=subgroups)
        waits[subgroups] = predict(kernel, (a, b, c), 64 // size, "b580").bounds["latency"]
    assert waits[8] > 0.95 * waits[1]


COPIES = """\
.version 3.8
.kernel "copies"
.decl A v_type=G type=d num_elts=16 align=GRF
.decl B v_type=G type=d num_elts=16 align=GRF
.decl C v_type=G type=ud num_elts=16 align=GRF
.decl D v_type=G type=f num_elts=16 align=GRF
.decl E v_type=G type=d num_elts=16 align=GRF
.decl F v_type=G type=f num_elts=16 align=GRF
.decl G v_type=G type=ud num_elts=16 align=GRF
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1, 16) A(0,0)<1> 0x1:d
    mul (M1, 16) B(0,0)<1> A(0,0)<1;1,0> 0x3:d
    mov (M1, 16) C(0,0)<1> B(0,0)<1;1,0>
    mov (M1, 16) D(0,0)<1> B(0,0)<1;1,0>
    mov (M1, 16) E(0,0)<1> A(0,0)<1;1,0>
    mov (M1, 16) E(0,0)<1> C(0,0)<1;1,0>
    mov (M1, 16) F(0,0)<1> D(0,0)<1;1,0>
    mov (M1, 16) G(0,0)<1> D(0,0)<1;1,0>
    ret (M1, 1)
"""


def test_copies_are_taken_out() -> None:
    """The second and the sixth `mov` copy a variable that is written once to another one, without a conversion."""
    program = Kernel.from_assembly(COPIES).program
    copies = [at for at, inst in enumerate(program.instructions) if inst.name == "mov"]
    assert taken_out(program, target("bmg")) == {copies[1], copies[5]}


WIDE = """\
.version 3.8
.kernel "wide"
.decl A v_type=G type=q num_elts=16 align=GRF
.decl B v_type=G type=d num_elts=16 align=GRF
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    add (M1, 16) A(0,0)<1> A(0,0)<1;1,0> A(0,0)<1;1,0>
    add (M1, 16) B(0,0)<1> B(0,0)<1;1,0> B(0,0)<1;1,0>
    ret (M1, 1)
"""


def test_sums_of_64_bits_take_two_passes() -> None:
    sums = [inst for inst in Kernel.from_assembly(WIDE).program.instructions if inst.name == "add"]
    assert [pipe_cycles(inst, gpu("b580")) for inst in sums] == [("int", 2.0), ("int", 1.0)]


LOADS = """\
.version 3.8
.kernel "loads"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=d num_elts=16 align=GRF
.decl Y v_type=G type=d num_elts=16 align=GRF
.input In offset=64 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[In]:a64
    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 0x1:d
    lsc_load.ugm (M1_NM, 1) Y:d32x16t flat[In]:a64
    add (M1, 16) Y(0,0)<1> Y(0,0)<1;1,0> 0x1:d
    ret (M1, 1)
"""


def test_loads_are_moved_only_within_the_window() -> None:
    """Two loads that do not depend on each other wait together, or one after the other."""
    program = Kernel.from_assembly(LOADS).program
    plan, count = scheduled(program, gpu("b580")), len(program.instructions)
    both, each = (thread_cycles(program, plan, [500.0] * count, [1.0] * count, n).sum() for n in (32, 1))
    assert both < 600 and each > 1000


LOOPS = """\
.version 3.8
.kernel "loops"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=d num_elts=16 align=GRF
.decl Y v_type=G type=d num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
First:
    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 0x1:d
    cmp.lt (M1_NM, 16) P X(0,0)<1;1,0> 0x4:d
    (P.any) jmp (M1, 1) First
Second:
    add (M1, 16) Y(0,0)<1> X(0,0)<1;1,0> 0x1:d
    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[In]:a64
    (P.any) jmp (M1, 1) Second
    ret (M1, 1)
"""


def test_a_loop_that_follows_another_counts_its_second_time() -> None:
    """Its sum then waits for what its first execution has loaded."""
    program = Kernel.from_assembly(LOOPS).program
    plan, count = scheduled(program, gpu("b580")), len(program.instructions)
    cycles = thread_cycles(program, plan, [500.0] * count, [1.0] * count)
    assert plan[1] == {0: 3, 4: 7} and cycles[5] > 400 > cycles[1]


JUMP = """\
.version 3.8
.kernel "jump"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=d num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[In]:a64
    cmp.gt (M1_NM, 16) P X(0,0)<1;1,0> 0x4:d
    (P.any) jmp (M1, 1) Done
    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 0x1:d
Done:
    lsc_store.ugm (M1_NM, 1) flat[In]:a64 X:d32x16t
    ret (M1, 1)
"""


def test_a_branch_that_is_not_taken_is_cheap() -> None:
    kernel, cycles = Kernel.from_assembly(JUMP), []
    jump = next(at for at, inst in enumerate(kernel.program.instructions) if inst.name == "jmp")
    for value in (0, 9):
        found = predict(kernel, (np.full(16, value, np.int32),), 1, "b580")
        cycles.append(found.cycles[jump])
    assert cycles[1] - cycles[0] == BRANCH - 1


def test_a_message_that_no_thread_sends_has_a_latency() -> None:
    """It loads after the branch; no access of it is in the trace."""
    load = "    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 0x1:d\n"
    text = JUMP.replace(load, "    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[In]:a64\n" + load)
    assert text != JUMP
    with np.errstate(invalid="raise", divide="raise"):
        found = predict(Kernel.from_assembly(text), (np.full(16, 9, np.int32),), 1, "b580")
    assert np.isfinite(found.cycles).all() and 0 < found.seconds < 1e-3


def test_products_of_four_bytes_take_xe_hpc_twice_as_long() -> None:
    inst = Instruction("dp4a", exec_size=16)
    assert [pipe_cycles(inst, gpu(name)) for name in ("max1100", "b580")] == [("int", 2.0), ("int", 1.0)]


@pytest.mark.parametrize("axes", [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_lines_of_waves_that_follow_some_axes(axes: tuple[int, ...]) -> None:
    """Each workgroup loads a line by its numbers along some axes: all distinct lines, once a wave without a cache."""
    grid = (8, 4, 3)
    numbers = np.indices(grid[::-1]).reshape(3, -1)[::-1]
    lines = sum((numbers[axis] * 100**axis for axis in axes), np.zeros(96, int)) + 3
    each = {n: lines[n : n + 1] for n in sample_of(grid, 1)}
    buffer = Buffer("x", 64, 64 << 20)
    whole = len(np.unique(lines))
    assert new_lines(each, grid, [Buffer("other", 0, 64), buffer], 8, whole, False) == whole
    assert new_lines(each, grid, [buffer], 8, whole, True) == 0
    assert new_lines(each, grid, [Buffer("other", 1 << 40, 64)], 8, 0, False) == 0
    for wave in (8, 32, 96):
        waves = lines.reshape(-1, wave)
        expected = sum(len(np.unique(wave)) for wave in waves)
        assert new_lines(each, grid, [buffer], wave, 0, True) == pytest.approx(expected), wave


@pytest.mark.parametrize(
    ("wave", "axes"), [(8, (0,)), (8, (1,)), (8, (0, 1)), *((32, a) for a in [(0,), (2,), (0, 2), (0, 1, 2)])]
)
def test_lines_that_a_wave_finds_in_the_cache(wave: int, axes: tuple[int, ...]) -> None:
    """Those of as many waves before it as fit; a workgroup loads a line by some axes, and one of its own."""
    grid = (8, 4, 3)
    numbers = np.indices(grid[::-1]).reshape(3, -1)[::-1]
    lines = np.stack([sum((numbers[a] * 100**a for a in axes), np.full(96, 3)), np.arange(96) + (1 << 20)], axis=1)
    each = {n: lines[n] for n in sample_of(grid, 1)}
    buffers = [Buffer("x", 64, 32 << 20), Buffer("y", 64 << 20, 1 << 20)]
    waves = 96 // wave
    distinct = [len(np.unique(lines[: n * wave])) for n in range(waves + 1)]
    for capacity in range(distinct[-1] + 2):
        fits = max(n for n in range(waves) if distinct[n] <= capacity)
        loaded = max(distinct[1] + (waves - 1) * (distinct[fits + 1] - distinct[fits]), distinct[-1])
        expected = distinct[-1] if distinct[-1] <= capacity else loaded
        assert new_lines(each, grid, buffers, wave, capacity, False) == pytest.approx(expected), capacity


@pytest.mark.parametrize(
    ("address", "size", "own"),
    [(64, 64, 1), (64, 65, 2), (64, 128, 2), (127, 1, 1), (127, 2, 2), (64, 0, 1), (63, 1, 0), (63, 2, 1), (192, 9, 0)],
)
def test_lines_of_a_buffer_that_begins_or_ends_within_one(address: int, size: int, own: int) -> None:
    assert new_lines({0: np.array([1, 2])}, (1, 1, 1), [Buffer("x", address, size)], 1, 9, False) == own


@pytest.mark.parametrize(
    ("product", "first", "second", "waits"),
    [
        (True, ((1, 2), (1,)), ((1, 2), (1,)), False),  # a sum in one accumulator
        (True, ((3, 2), (1,)), ((1, 2), (1,)), True),
        (True, ((1, 2), (1, 3)), ((3, 2), (3,)), True),
        (False, ((1, 2), (1,)), ((1, 2), (1,)), True),
        (True, ((3, 2), (1,)), ((4, 2), (4,)), False),
    ],
)
def test_instructions_wait_for_results(
    product: bool, first: tuple[Any, Any], second: tuple[Any, Any], waits: bool
) -> None:
    """Only a product that adds to the accumulator of the one before it begins before that ends."""
    plan = [
        _Scheduled(at, *map(frozenset, roots), 8.0, 20.0, False, product, False)
        for at, roots in enumerate((first, second))
    ]
    program: Any = SimpleNamespace(instructions=[Instruction("dpas")] * 2)
    cycles = thread_cycles(program, (plan, {}), [0, 0], [0, 0])
    assert cycles.tolist() == [8, 20 if waits else 8]


RESIDENT = """\
.version 3.8
.kernel "resident"
.decl X v_type=G type=d num_elts=16 align=GRF
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
{slm}
    mov (M1, 16) X(0,0)<1> 0x1:d
    {barrier}
    ret (M1, 1)
"""


@pytest.mark.parametrize(
    ("name", "registers", "threads", "slm", "barrier", "groups"),
    [
        # A core has 8 engines, or 16 on Xe-HPG, each with 8 threads of 128 registers or 4 of 256.
        ("max1100", 128, 1, 0, False, 64),
        ("max1100", 256, 1, 0, False, 32),
        ("max1100", 128, 3, 0, False, 21),
        ("max1100", 256, 64, 0, False, 1),
        ("a770", 128, 8, 0, False, 16),
        ("a770", 128, 3, 0, False, 42),
        # It has 128 KB of shared local memory, or 64 KB, 64 workgroups, and 32 barriers.
        ("max1100", 128, 1, 3, False, 42),
        ("b580", 128, 1, 128, False, 1),
        ("a770", 128, 1, 3, False, 21),
        ("a770", 128, 1, 0, False, 64),
        ("b580", 128, 1, 0, True, 32),
        ("b580", 128, 4, 0, True, 16),
    ],
)
def test_workgroups_of_a_core(name: str, registers: int, threads: int, slm: int, barrier: bool, groups: int) -> None:
    text = RESIDENT.format(slm=f".kernel_attr SLMSize={slm}", barrier="barrier" if barrier else "")
    kernel = Kernel.from_assembly(text, target=gpu(name).target, registers=registers)
    found = predict(kernel, (), 100 * gpu(name).cores, name, block=threads)
    assert found.groups == groups and found.threads == groups * threads / gpu(name).engines
