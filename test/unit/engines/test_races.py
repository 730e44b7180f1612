"""Races: random programs against a model that compares all pairs of accesses, and kernels with and without races."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.engines.jit import checks as native_races
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.executor import Executor
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.visa.dataflow import polls

HEAD = """\
.version 3.8
.kernel "races"
.decl Table v_type=G type=uq num_elts=1 align=qword
.decl Data v_type=G type=uq num_elts=1 align=qword
.decl Id v_type=G type=ud num_elts=3 align=dword
.decl Thread v_type=G type=ud num_elts=1 align=dword
.decl At v_type=G type=uq num_elts=1 align=qword
.decl Place v_type=G type=d num_elts=1 align=dword
.decl Global v_type=G type=uq num_elts=8 align=GRF
.decl Local v_type=G type=ud num_elts=16 align=GRF
.decl X v_type=G type=ud num_elts=16 align=GRF
.decl Y v_type=G type=ud num_elts=16 align=GRF
.decl P v_type=P num_elts=1
.input Table offset=64 size=8
.input Data offset=72 size=8
.implicit_LOCAL_ID Id offset=80 size=12
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
.kernel_attr SLMSize=1
.kernel_attr NBarrierCnt=2
"""
THREADS, GROUPS = 4, 2
FENCES = {"ugm": "lsc_fence.ugm.none.group", "slm": "lsc_fence.slm.none.group"}
MESSAGES = {
    "load": "lsc_load.{memory} (M1_NM, 1) Y:{data} {address}",
    "store": "lsc_store.{memory} (M1_NM, 1) {address} X:{data}",
    "atomic": "lsc_atomic_iadd.{memory} (M1_NM, 1) Y:{data} {address} X %null",
}


@dataclass(frozen=True)
class Access:
    """A statement of all threads: each accesses its own place, or nothing if the place is negative."""

    kind: str
    memory: str
    size: int
    places: tuple[int, ...]


def text_of(statements: list[Access | str]) -> str:
    """A kernel of these statements; strings are assembly."""
    row = 4 * len(statements)
    lines = [
        f"mul (M1_NM, 1) Thread(0,0)<1> %group_id_x(0,0)<0;1,0> {THREADS}:ud",
        "add (M1_NM, 1) Thread(0,0)<1> Thread(0,0)<0;1,0> Id(0,0)<0;1,0>",
        f"mul (M1_NM, 1) Thread(0,0)<1> Thread(0,0)<0;1,0> {row}:ud",
        "add (M1_NM, 1) At(0,0)<1> Table(0,0)<0;1,0> Thread(0,0)<0;1,0>",
        # All threads write different numbers, in both halves.
        "add (M1_NM, 1) X(0,0)<1> Thread(0,0)<0;1,0> 1:ud",
        "mul (M1_NM, 1) X(0,0)<1> X(0,0)<0;1,0> 0x10001:ud",
    ]
    for n, each in enumerate(statements):
        if isinstance(each, str):
            lines.append(each)
            continue
        data = {2: "d16c32", 4: "d32"}[each.size]
        address = "flat[Global]:a64" if each.memory == "ugm" else "flat[Local]:a32"
        message = MESSAGES[each.kind].format(memory=each.memory, data=data, address=address)
        lines += [
            f"lsc_load.ugm (M1_NM, 1) Local:d32 flat[At+{4 * n}]:a64",
            "mov (M1_NM, 1) Place(0,0)<1> Local(0,0)<0;1,0>",
            "cmp.ge (M1_NM, 1) P Place(0,0)<0;1,0> 0:d",
            "add (M1_NM, 1) Global(0,0)<1> Data(0,0)<0;1,0> Local(0,0)<0;1,0>",
            f"(P) {message}",
        ]
    return HEAD + "".join(f"    {line}\n" for line in [*lines, "ret (M1, 1)"])


def run(statements: list[Access | str], engine: str = "interpreter") -> str:
    """The message about a program; empty if there is no race."""
    table = np.full((GROUPS * THREADS, len(statements)), -1, np.int32)
    for n, each in enumerate(statements):
        if isinstance(each, Access):
            table[:, n] = each.places
    kernel = Kernel.from_assembly(text_of(statements), check="races", engine=engine, cache="off")
    try:
        kernel(table, np.zeros(64, np.uint32), grid=GROUPS, block=THREADS)
    except DiagnosticError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Event:
    """The accesses of one thread in the statement `at`."""

    access: Access
    thread: int
    place: int
    at: int


def races(statements: list[Access | str]) -> bool:
    """Whether any two accesses race, found by comparing all pairs."""
    events = [
        Event(each, thread, place, n)
        for n, each in enumerate(statements)
        if isinstance(each, Access)
        for thread, place in enumerate(each.places)
        if place >= 0
    ]
    return any(race(a, b, statements) for a, b in combinations(events, 2))


def race(first: Event, second: Event, statements: list[Access | str]) -> bool:
    a, b = first.access, second.access
    together = first.thread // THREADS == second.thread // THREADS
    if first.thread == second.thread or a.memory != b.memory or (a.memory == "slm" and not together):
        return False
    if {a.kind, b.kind} == {"load"} or {a.kind, b.kind} == {"atomic"}:
        return False
    if first.place >= second.place + b.size or second.place >= first.place + a.size:
        return False
    between = [s for s in statements[first.at + 1 : second.at] if isinstance(s, str)]
    if a.kind != "load":
        fence = FENCES[a.memory]
        between = between[between.index(fence) :] if fence in between else []
    return not (together and "barrier" in between)


def random_statements(rng: random.Random, kinds: tuple[str, ...]) -> list[Access | str]:
    made: list[Access | str] = []
    apart = rng.random() < 0.7
    for _ in range(rng.randint(2, 8)):
        if rng.random() < 0.4:
            made += rng.choice(([*FENCES.values(), "barrier"], ["barrier"], [FENCES["slm"]]))
            continue
        kind, memory = rng.choice(kinds), rng.choice(("ugm", "slm"))
        size = 4 if kind == "atomic" else rng.choice((2, 4))
        places = []
        for thread in range(GROUPS * THREADS):
            place = rng.randrange(4) * size
            if memory == "ugm" and apart:
                place += 64 * (thread // THREADS)
            places.append(place if rng.random() < 0.3 else -1)
        made.append(Access(kind, memory, size, tuple(places)))
    return made


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that the interpreter has run."""
    names: list[str] = []
    own = Executor._run_interpreted

    def spy(executor: Executor, *arguments: object) -> object:
        names.append(executor.program.name)
        return own(executor, *arguments)

    monkeypatch.setattr(Executor, "_run_interpreted", spy)
    return names


@pytest.mark.parametrize("seed", range(examples(24)))
def test_random_programs_in_native_code(seed: int, interpreted: list[str]) -> None:
    """For fences, barriers and single accesses, races are found, and the interpreter runs for nothing else."""
    kinds = ("load", "store") if seed < 14 else ("load", "store", "atomic")
    statements = random_statements(random.Random(seed), kinds)
    said = run(statements, "jit")
    assert len(interpreted) == races(statements)
    assert said == (run(statements) if interpreted else "")


@settings(max_examples=examples(250))
@given(st.integers(0, 1 << 32))
def test_random_programs(seed: int) -> None:
    statements = random_statements(random.Random(seed), ("load", "store"))
    assert bool(run(statements)) == races(statements)


def without_shared_atomics(statements: list[Access | str]) -> list[Access | str]:
    """The statements without atomics of places of which another thread has atomics: those would order threads."""
    owners: dict[tuple[str, int], int] = {}
    made: list[Access | str] = []
    for each in statements:
        if isinstance(each, Access) and each.kind == "atomic":
            places = [
                place if owners.setdefault((each.memory, place), thread) == thread else -1
                for thread, place in enumerate(each.places)
            ]
            each = replace(each, places=tuple(places))
        made.append(each)
    return made


@settings(max_examples=examples(250))
@given(st.integers(0, 1 << 32))
def test_random_programs_with_atomics_of_own_places(seed: int) -> None:
    """An atomic orders nothing if no other thread has an atomic of its place: a load before it races with it."""
    statements = without_shared_atomics(random_statements(random.Random(seed), ("load", "store", "atomic")))
    assert bool(run(statements)) == races(statements)


def is_ordered(statements: list[Access | str]) -> bool:
    """Whether barriers, fences, and atomics of one place, in the order in which they are executed, order all accesses.

    A thread knows of each thread how many of its reads, and of its writes to each memory, have happened before.
    """
    threads, kinds = range(GROUPS * THREADS), ("load", *FENCES)
    group = [range(t - t % THREADS, t - t % THREADS + THREADS) for t in threads]
    known = {(t, kind): [0] * len(threads) for t in threads for kind in kinds}
    released: dict[tuple[str, int, int], dict[str, list[int]]] = {}
    past: list[tuple[int, Access, int, int]] = []
    for n, each in enumerate(statements, 1):
        if each == "barrier":
            for one in group[::THREADS]:
                for t in one:
                    known[t, "load"][t] = n
                for kind in kinds:
                    all_know = [max(values) for values in zip(*(known[t, kind] for t in one))]
                    for t in one:
                        known[t, kind] = list(all_know)
        elif isinstance(each, str):
            for t in threads:
                known[t, next(memory for memory, fence in FENCES.items() if fence == each)][t] = n
        if not isinstance(each, Access):
            continue
        kind = "load" if each.kind == "load" else each.memory
        for t, place in enumerate(each.places):
            where = (each.memory, place, t // THREADS if each.memory == "slm" else 0)
            if place < 0:
                continue
            if each.kind == "atomic":
                for of, values in released.get(where, {}).items():
                    known[t, of] = [max(pair) for pair in zip(known[t, of], values)]
            for other, access, at, when in past:
                event, earlier = Event(each, t, place, n - 1), Event(access, other, at, when - 1)
                knows = known[t, "load" if access.kind == "load" else access.memory][other] >= when
                if not knows and race(earlier, event, statements[:0]):
                    return False
            if each.kind == "atomic":
                # Fences of these programs are for a workgroup: only reads are released to others.
                known[t, "load"][t] = n
                of_place = released.setdefault(where, {})
                of_place["load"] = [max(p) for p in zip(of_place.get("load", [0] * len(threads)), known[t, "load"])]
            past.append((t, each, place, n))
    return True


@settings(max_examples=examples(400))
@given(st.integers(0, 1 << 32))
def test_nothing_is_found_where_nothing_is(seed: int) -> None:
    statements = random_statements(random.Random(seed), ("load", "store", "atomic", "atomic"))
    if not races(statements) or is_ordered(statements):
        assert run(statements) == ""


def everyone(kind: str, memory: str, *places: int) -> Access:
    return Access(kind, memory, 4, places * GROUPS)


NEIGHBOURS = [everyone("store", "slm", 0, 4, 8, 12), "{between}", everyone("load", "slm", 4, 8, 12, 0)]


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize(
    ("between", "hint"),
    [
        (["lsc_fence.slm.none.group", "barrier"], None),
        (["barrier"], "a barrier orders writes of slm only behind a fence (lsc_fence.slm, xegpu.fence)"),
        (["lsc_fence.ugm.none.group", "barrier"], "a barrier orders writes of slm only behind a fence"),
        (["lsc_fence.slm.none.group"], ""),
        (["fence_local.E", "barrier"], None),
        (["fence_global.EL1", "barrier"], "a barrier orders writes of slm only behind a fence"),
        (["lsc_fence.slm.none.group", "sbarrier.signal", "sbarrier.wait"], None),
        (["lsc_fence.slm.none.group", "sbarrier.signal"], ""),
        (["lsc_fence.slm.none.group", "nbarrier.signal 1:ub 4:ub", "nbarrier.wait 1:ub"], None),
        (["lsc_fence.slm.none.group", "nbarrier.signal 1:ub 4:ub", "nbarrier.wait 0:ub"], "deadlock"),
    ],
)
def test_neighbours(between: list[str], hint: str | None, engine: str, interpreted: list[str]) -> None:
    said = run([NEIGHBOURS[0], *between, NEIGHBOURS[2]], engine)
    if hint is None:
        assert said == "" and bool(interpreted) == (engine == "interpreter")
    else:
        assert hint in said and ("deadlock" in said or "reads byte 4 of the shared local memory, which another" in said)


def test_what_is_said() -> None:
    """The message names the thread, the place, and the other access."""
    said = run([everyone("store", "ugm", 0, 4, 8, 12)])
    assert "'lsc_store' writes byte 0 of 'Data', which another thread has written, and nothing orders the two" in said
    assert "note: in workgroup (" in said
    assert "note: 'lsc_store' in workgroup (" in said


def test_reads_before_a_write() -> None:
    """The write is concurrent with the read of one of many threads."""
    read, write = everyone("load", "slm", 0, 0, 0, 0), everyone("store", "slm", -1, 0, -1, -1)
    assert "writes byte 0 of the shared local memory, which another thread has read" in run([read, write])
    assert run([read, "barrier", write]) == ""


SAME = """
gpu.module @m {{
  gpu.func @same(%value: i32, %out: memref<1xi32>) kernel {{
    %c0 = arith.constant 0 : index
    %thread = gpu.thread_id x
    %group = gpu.block_id x
    %i = arith.index_cast %{differs} : index to i32
    %x = arith.addi %i, %value : i32
    memref.store %x, %out[%c0] : memref<1xi32>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize(
    ("differs", "block", "grid"), [("thread", 2, 1), ("group", 2, 1), ("group", 1, 2), ("c0", 9, 9), ("c0", 1, 1500)]
)
def test_writes_of_one_value_do_no_harm(
    differs: str, block: int, grid: int, engine: str, interpreted: list[str]
) -> None:
    """All threads, or those of a workgroup, store one number, at once or later."""
    out = np.zeros(1, np.int32)
    kernel = xegpu_py.compile(SAME.format(differs=differs), check="races", engine=engine)
    if differs == "thread" or (differs == "group" and grid > 1):
        with pytest.raises(DiagnosticError, match="writes byte 0 of '%out', which another thread has written"):
            kernel(5, out, grid=grid, block=block)
    else:
        kernel(5, out, grid=grid, block=block)
        assert out[0] == 5
        assert bool(interpreted) == (engine == "interpreter")


LAST = """
gpu.module @m {{
  gpu.func @last(%data: memref<?xi32>, %count: memref<1xi32>, %out: memref<1xi32>) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %group = gpu.block_id x
    %groups = gpu.grid_dim x
    %value = arith.index_cast %group : index to i32
    memref.store %value, %data[%group] : memref<?xi32>
    {fence}
    %one = arith.constant 1 : i32
    %before = memref.atomic_rmw addi %one, %count[%c0] : (i32, memref<1xi32>) -> i32
    %i = arith.index_cast %before : i32 to index
    %rest = arith.subi %groups, %c1 : index
    %is_last = arith.cmpi eq, %i, %rest : index
    scf.if %is_last {{
      %zero = arith.constant 0 : i32
      %sum = scf.for %g = %c0 to %groups step %c1 iter_args(%s = %zero) -> (i32) {{
        %x = memref.load %data[%g] : memref<?xi32>
        %t = arith.addi %s, %x : i32
        scf.yield %t : i32
      }}
      memref.store %sum, %out[%c0] : memref<1xi32>
    }}
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("scope", ["", "workgroup", "gpu"])
def test_the_last_workgroup_sums_up(scope: str) -> None:
    """Atomics after a fence of the whole GPU order workgroups, of which there are more than run at once."""
    fence = f"xegpu.fence {{scope = {scope}, memory_kind = global}}" if scope else ""
    kernel = xegpu_py.compile(LAST.format(fence=fence), check="races")
    groups = 1500
    data, count, out = np.zeros(groups, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    if scope == "gpu":
        kernel(data, count, out, grid=groups)
        assert out[0] == groups * (groups - 1) // 2
    else:
        with pytest.raises(DiagnosticError, match="reads byte 0 of '%data', which another thread has written"):
            kernel(data, count, out, grid=groups)


def both(statements: list[Access | str]) -> str:
    """The message of both engines, which must be equal."""
    said = run(statements, "jit")
    assert said == run(statements)
    return said


def test_loads_of_three_threads_before_a_store() -> None:
    """The store is behind a named barrier that one of them has not signalled."""
    read, write = everyone("load", "slm", 0, 0, 0, -1), everyone("store", "slm", -1, -1, -1, 0)
    two = ["nbarrier.signal 1:ub 4:ub", "nbarrier.wait 1:ub"]
    assert both([read, *two, write]) == ""
    assert "writes byte 0 of the shared local memory, which another thread has read" in both([read, write])


@pytest.mark.parametrize("memory", ["ugm", "slm"])
def test_atomics_of_all_threads_before_a_load(memory: str, interpreted: list[str]) -> None:
    """A sum of a workgroup, which one thread reads."""
    places = (0, 0, 0, 0, 16, 16, 16, 16)
    add = Access("atomic", memory, 4, places)
    read = Access("load", memory, 4, (0, -1, -1, -1, 16, -1, -1, -1))
    assert run([add, FENCES[memory], "barrier", read], "jit") == "" and not interpreted
    assert "which another thread has changed" in both([add, "barrier", read])


@pytest.mark.parametrize("memory", ["ugm", "slm"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_load_before_an_atomic_of_another_thread(memory: str, shared: bool, interpreted: list[str]) -> None:
    """Atomics of another place do not order the two; those of one place do."""
    read, add = everyone("load", memory, 4, -1, -1, -1), everyone("atomic", memory, 0, 4, -1, -1)
    meet = [everyone("atomic", memory, 32, -1, -1, -1), everyone("atomic", memory, -1, 32, -1, -1)]
    said = both([Access("load", memory, 4, read.places[:4] + (-1,) * 4), *meet * shared, add])
    assert said == "" if shared else "which another thread has read" in said
    assert interpreted


@pytest.mark.parametrize("met", [False, True])
def test_order_through_atomics_of_a_third_thread_only_is_not_refuted(met: bool) -> None:
    """A limit that docs/visa.md states: what a thread has acquired is one time, not one for each other thread.

    Threads 0 and 1 have no place in common, so thread 1 loads what nothing orders. Once it has met thread 2, what
    thread 0 released before counts as acquired.
    """

    write = [of_thread(0, "store", 4), GPU_FENCE, of_thread(0, "atomic", 32)]
    meet = [*([of_thread(2, "atomic", 64)] if met else []), of_thread(1, "atomic", 64)]
    said = both([*write, *meet, of_thread(1, "load", 4)])
    assert said == "" if met else "which another thread has written" in said


def of_thread(thread: int, kind: str, place: int, memory: str = "ugm") -> Access:
    return Access(kind, memory, 4, tuple(place if t == thread else -1 for t in range(THREADS * GROUPS)))


GPU_FENCE = FENCES["ugm"].replace("group", "gpu")
CHAINS = {
    "to a thread": [of_thread(0, "store", 4), GPU_FENCE, of_thread(0, "atomic", 32), of_thread(4, "atomic", 32)],
    "behind a barrier": [
        of_thread(0, "store", 4), FENCES["ugm"], "barrier", GPU_FENCE, of_thread(1, "atomic", 32),
        of_thread(4, "atomic", 32),
    ],
    "before a barrier": [
        of_thread(0, "store", 4), GPU_FENCE, of_thread(0, "atomic", 32), of_thread(5, "atomic", 32), "barrier"
    ],
    "between barriers": [
        of_thread(0, "store", 4), FENCES["ugm"], "barrier", GPU_FENCE, of_thread(3, "atomic", 32),
        of_thread(7, "atomic", 32), "barrier",
    ],
    "of reads": [of_thread(0, "load", 4), of_thread(0, "atomic", 32), of_thread(4, "atomic", 32)],
    "of reads over barriers": [
        of_thread(0, "load", 4), "barrier", of_thread(2, "atomic", 32), of_thread(6, "atomic", 32), "barrier"
    ],
}  # fmt: skip
"""Each link is needed to order the first access before one by thread 4, of the other workgroup."""


@pytest.mark.parametrize("chain", CHAINS)
def test_order_by_chains_of_atomics_and_barriers(chain: str) -> None:
    links = CHAINS[chain]
    last = of_thread(4, "store" if links[0].kind == "load" else "load", 4)
    assert run([*links, last]) == ""
    for link in range(1, len(links)):
        said = run([*links[:link], *links[link + 1 :], last])
        verb = "read" if links[0].kind == "load" else "written"
        assert f"which another thread has {verb}" in said, link
    if GPU_FENCE in links:
        assert run([FENCES["ugm"] if link is GPU_FENCE else link for link in links] + [last])


def test_threads_that_are_ahead_at_a_barrier() -> None:
    """Those that ran first complete a second phase, by signals without a wait, before others wait for the first one."""
    store = everyone("store", "slm", -1, 4, -1, 4)
    signal = [FENCES["slm"], "sbarrier.signal"]
    assert "writes byte 4 of" in both(["barrier", store, *signal, FENCES["slm"], "barrier", "sbarrier.wait"])


AGAIN = """
    %chosen = arith.constant {thread} : index
    %is_chosen = arith.cmpi eq, %thread, %chosen : index
    scf.if %is_chosen {{
      %seven = arith.constant 7 : i32
      memref.store %seven, %out[%c0] : memref<1xi32>
    }}
    gpu.return"""


@pytest.mark.parametrize("thread", range(3))
def test_a_thread_stores_another_number_after_one_that_all_store(thread: int, interpreted: list[str]) -> None:
    text = SAME.format(differs="c0").replace("gpu.return", AGAIN.format(thread=thread))
    said = []
    for engine in ("interpreter", "jit"):
        interpreted.clear()
        try:
            xegpu_py.compile(text, check="races", engine=engine)(5, np.zeros(1, np.int32), block=3)
            said.append("")
        except DiagnosticError as error:
            said.append(str(error))
    assert said[0] == said[1] and interpreted
    # The interpreter knows the latest of those that stored the first number, who is the last thread.
    assert ("writes byte 0 of '%out', which another thread has written" in said[0]) == (thread != 2)


BLOCKS = """
gpu.module @m {
  gpu.func @shift(%m: memref<64x64xf32>, %out: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %group = gpu.block_id x
    %y = arith.muli %group, %c8 : index
    %in = xegpu.create_nd_tdesc %m[%c0, %c0] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %from = xegpu.update_nd_offset %in, [%y, %c8] : !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %from : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %to = xegpu.create_nd_tdesc %TARGET[%y, %c0] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %x, %to : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("grid", [8, 9, 16])
def test_2d_blocks(grid: int, interpreted: list[str]) -> None:
    """Each workgroup moves a block of its own rows, and workgroups beyond the last row move nothing."""
    m, out = np.arange(64 * 64, dtype=np.float32).reshape(64, 64), np.zeros((64, 64), np.float32)
    xegpu_py.compile(BLOCKS.replace("TARGET", "out"), check="races", engine="jit", target="pvcxt")(m, out, grid=grid)
    assert not interpreted and (out[:, :16] == m[:, 8:24]).all()


def test_2d_blocks_that_race() -> None:
    said = []
    for engine in ("interpreter", "jit"):
        m = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
        kernel = xegpu_py.compile(
            BLOCKS.replace("TARGET", "m").replace("%y, %c0]", "%c0, %c0]"), check="races", engine=engine, target="pvcxt"
        )
        with pytest.raises(DiagnosticError) as error:
            kernel(m, m, grid=8)
        said.append(str(error.value))
        assert (m == np.arange(64 * 64).reshape(64, 64)).all()
    assert said[0] == said[1] and "of 'm', which another thread has" in said[0].replace("%m, %out", "m")


PAIRS = """
gpu.module @m {
  gpu.func @pairs(%out: memref<500xi32>) kernel {
    %group = gpu.block_id x
    %c500 = arith.constant 500 : index
    %place = arith.remui %group, %c500 : index
    %value = arith.index_cast %group : index to i32
    memref.store %value, %out[%place] : memref<500xi32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("grid", [500, 501])
def test_workers_see_each_other(grid: int, interpreted: list[str]) -> None:
    """Two workgroups, the first and the last, store to one place, on different threads of the operating system."""
    kernel = xegpu_py.compile(PAIRS, check="races", engine="jit", threads=4)
    if grid == 500:
        kernel(np.zeros(500, np.int32), grid=grid)
        assert not interpreted
        return
    with pytest.raises(DiagnosticError, match="writes byte 0 of '%out', which another thread has written"):
        kernel(np.zeros(500, np.int32), grid=grid)


IN_PLACE = """
gpu.module @m {
  gpu.func @increment(%x: memref<?xi32>, %kept: memref<?xi32>) kernel {
    %group = gpu.block_id x
    %one = arith.constant 1 : i32
    %old = memref.load %x[%group] : memref<?xi32>
    %new = arith.addi %old, %one : i32
    memref.store %new, %x[%group] : memref<?xi32>
    memref.store %old, %kept[%group] : memref<?xi32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("threads", [1, 4])
def test_an_array_that_is_loaded_and_stored(threads: int, interpreted: list[str]) -> None:
    """The launch begins without records of loads, and is repeated with them; each launch counts once."""
    kernel = xegpu_py.compile(IN_PLACE, check="races", engine="jit", threads=threads)
    for groups in (3000, 40, 3000):
        x, kept = np.arange(groups, dtype=np.int32), np.zeros(groups, np.int32)
        kernel(x, kept, grid=groups)
        assert (x == np.arange(1, groups + 1)).all() and (kept == np.arange(groups)).all()
    # An array that is passed twice is one allocation: the second store of each place follows the first in its thread.
    kernel(x, x, grid=groups)
    assert (x == np.arange(1, groups + 1)).all() and not interpreted


def test_memory_after_a_race(interpreted: list[str]) -> None:
    """Arrays keep what they had before a launch that fails; a kernel then runs as if there had been none."""
    kernel = xegpu_py.compile(
        IN_PLACE.replace("%x[%group]", "%x[%c0]").replace("%one", "%c0 = arith.constant 0 : index\n%one", 1),
        check="races",
        engine="jit",
    )
    x, kept = np.full(1, 7, np.int32), np.full(9, 5, np.int32)
    with pytest.raises(DiagnosticError, match="of '%x', which another thread has"):
        kernel(x, kept, grid=9)
    assert x[0] == 7 and (kept == 5).all() and interpreted
    kernel(x, kept, grid=1)
    assert x[0] == 8 and kept[0] == 7


def test_shadow_memory_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two entries of 8 bytes for each 2 of 8448: two pages of the table and the gap behind it, and the numbers."""
    statements = [everyone("load", "ugm", -1, -1, -1, -1), Access("store", "ugm", 2, (-1,) * 8)]
    monkeypatch.setattr(native_races, "physical_memory", lambda: 67584 + 8448)
    assert run(statements, "jit") == ""
    monkeypatch.setattr(native_races, "physical_memory", lambda: 67584 + 8447)
    said = run(statements, "jit")
    assert "error: the check 'races' of kernel 'races' needs 67584 bytes of shadow memory" in said
    assert "note: that is 16 bytes for each 2 of the 8448 bytes of its arrays; the machine has 76031 bytes" in said


def test_more_threads_than_shadow_memory_names(monkeypatch: pytest.MonkeyPatch) -> None:
    statements = [everyone("load", "ugm", -1, -1, -1, -1)]
    monkeypatch.setattr(native_races, "_MOST_THREADS", 0)
    refused = run(statements, "jit")
    assert "error: the check 'races' of kernel 'races' is for fewer than 2^31 threads, not 8" in refused
    for most, said in ((9, refused), (10, "")):
        monkeypatch.setattr(native_races, "_MOST_THREADS", most)
        assert run(statements, "jit") == said


def test_engines() -> None:
    """Native code looks for races unless registers never written are looked for too; both engines may."""
    for engine, chosen in ((None, "jit"), ("jit", "jit"), ("both", "both"), ("interpreter", "interpreter")):
        kernel = Kernel.from_assembly(text_of([]), check="races", engine=engine)
        assert kernel.executor.engine == chosen
        kernel(np.zeros(8, np.int32), np.zeros(8, np.int32), block=4)
    assert Kernel.from_assembly(text_of([]), check=("races", "uninit")).executor.engine == "interpreter"


NEXT_PLACES = """gpu.module @m {
  gpu.func @neighbours(%A: memref<32x16xf16>, %I: memref<16x16xf16>, %C: memref<64x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %id = gpu.thread_id x
    %row = arith.muli %id, %c8 : index
    %n = arith.addi %id, %c1 : index
    %next = arith.andi %n, %c3 : index
    %other = arith.muli %next, %c8 : index
    %number = arith.index_cast %id : index to i32
    %value = arith.sitofp %number : i32 to f16
    %two = arith.constant 2.0 : f16
    %new = arith.addf %value, %two : f16
    %block = vector.broadcast %new : f16 to vector<8x16xf16>
    %i = xegpu.create_nd_tdesc %I[%c0, %c0] {mode = vc} : memref<16x16xf16> -> !xegpu.tensor_desc<16x16xf16>
    %unit = xegpu.load_nd %i {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    %from = xegpu.create_nd_tdesc %A[%other, %c0] {mode = vc} : memref<32x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    %to = xegpu.create_nd_tdesc %A[%row, %c0] {mode = vc} : memref<32x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    %x = xegpu.load_nd %from {mode = vc, vnni_axis = 1} : !xegpu.tensor_desc<8x16xf16> -> vector<8x8x2xf16>
    SYNC
    xegpu.store_nd %block, %to {mode = vc} : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>
    SYNC
    %y = xegpu.load_nd %from {mode = vc, vnni_axis = 1} : !xegpu.tensor_desc<8x16xf16> -> vector<8x8x2xf16>
    %first = xegpu.dpas %x, %unit, %zero {mode = vc}
      : vector<8x8x2xf16>, vector<8x16x2xf16>, vector<8x16xf32> -> vector<8x16xf32>
    %second = xegpu.dpas %y, %unit, %zero {mode = vc}
      : vector<8x8x2xf16>, vector<8x16x2xf16>, vector<8x16xf32> -> vector<8x16xf32>
    %lower = arith.addi %row, %c32 : index
    %c = xegpu.create_nd_tdesc %C[%row, %c0] {mode = vc} : memref<64x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %d = xegpu.create_nd_tdesc %C[%lower, %c0] {mode = vc} : memref<64x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %first, %c {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %second, %d {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}"""
"""Each thread reads the block of the next one, writes its own, and reads that of the next one again."""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("groups", [1, 8])
def test_what_docs_say_of_unordered_accesses(engine: str, groups: int) -> None:
    """A racing read sees one of the values that its place has had; without races there is one result.

    No panel is made of these loads; `test_jit_panels` has stores of other threads behind panels.
    """
    new = np.arange(2, 6, dtype=np.float32).repeat(8)[:, None]
    for sync in ("", "xegpu.fence {memory_kind = global, scope = workgroup}\n    gpu.barrier"):
        a, c = np.ones((32, 16), np.float16), np.zeros((64, 16), np.float32)
        text = NEXT_PLACES.replace("SYNC", sync)
        options = {"engine": engine, "cache": "off"}
        xegpu_py.compile(text, **options)(a, np.eye(16, dtype=np.float16), c, grid=groups if not sync else 1, block=4)
        assert (a == new).all()
        seen = c.reshape(2, 32, 16)
        if sync:
            assert (seen[0] == 1).all()
            assert (seen[1] == np.roll(new, -8, 0)).all()
        assert ((seen == 1) | (seen == np.roll(new, -8, 0))).all()
        check = xegpu_py.compile(text, check="races", **options)
        arguments = np.ones((32, 16), np.float16), np.eye(16, dtype=np.float16), c
        if sync:
            check(*arguments, block=4)
        else:
            with pytest.raises(DiagnosticError, match="and nothing orders the two"):
                check(*arguments, block=4)


def test_workgroups_that_wait_for_others_run_together() -> None:
    """The check begins with one workgroup, unless it may wait for one that has not begun."""
    atomic = "lsc_atomic_iadd.ugm (M1_NM, 1) Y:d32 flat[Global]:a64"
    lines = [
        "mov (M1_NM, 1) Global(0,0)<1> Data(0,0)<0;1,0>",
        "mov (M1_NM, 1) X(0,0)<1> %group_id_x(0,0)<0;1,0>",
        "cmp.eq (M1_NM, 1) P X(0,0)<0;1,0> 1:ud",
        "(P) goto (M1, 1) Other",
        "Again:",
        f"{atomic} X.0 %null.0",
        "cmp.eq (M1_NM, 1) P Y(0,0)<0;1,0> 0:ud",
        "(P) goto (M1, 1) Again",
        "ret (M1, 1)",
        "Other:",
        f"{atomic} X.0 %null.0",
        "ret (M1, 1)",
    ]
    kernel = Kernel.from_assembly(HEAD + "\n".join(lines) + "\n", check="races", engine="interpreter", cache="off")
    assert polls(kernel.program)
    data = np.zeros(1, np.uint32)
    kernel(np.zeros(1, np.uint32), data, grid=2)
    assert data[0] == 1
    slm = [line.replace(".ugm", ".slm").replace("Global]:a64", "Local]:a32") for line in lines]
    assert not polls(Kernel.from_assembly(HEAD + "\n".join(slm) + "\n").program)
