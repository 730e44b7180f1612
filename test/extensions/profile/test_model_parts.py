"""The parts of the model of the time, each alone, for workgroups whose accesses are written by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from extensions.profile.test_instruction_times import B580, operation, program
from xegpu_py.engines.jit.checks import Records
from xegpu_py.extensions.profile import time_model
from xegpu_py.extensions.profile.caches import WAYS, hits
from xegpu_py.extensions.profile.counts import segments_of
from xegpu_py.extensions.profile.launches import without_effect
from xegpu_py.extensions.profile.time_model import FITTED, Fitted, Prediction, _Model
from xegpu_py.target import target
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import BlockShape


@pytest.mark.parametrize("capacity", [1, 3, 16, 40])
@pytest.mark.parametrize("seed", range(4))
def test_how_probably_a_cache_has_a_line(seed: int, capacity: int) -> None:
    """Stretches of the trace are looked at one by one, and the terms of Poisson are summed as they are written."""
    rng = np.random.default_rng(seed)
    lines = rng.integers(0, 25, 60) if seed < 3 else np.r_[rng.integers(0, 25, 20), np.zeros(20, int), np.arange(20)]
    footprint = [
        np.mean([len({*lines[at : at + length]}) for at in range(len(lines) - length + 1)])
        for length in range(1, len(lines) + 1)
    ]
    expected = []
    for at, line in enumerate(lines):
        before = np.flatnonzero(lines[:at] == line)
        distance = at - before[-1] if len(before) else 0
        ways = min(WAYS, capacity)
        mean = max(footprint[:distance], default=0.0) * ways / capacity
        terms = sum(math.exp(-mean) * mean**n / math.factorial(n) for n in range(ways))
        expected.append(terms if distance else 0.0)
    assert hits(lines, capacity).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("size", [8, 16, 32, 64])
@pytest.mark.parametrize(("count", "width", "height"), [(1, 4, 3), (2, 3, 2)])
def test_bytes_of_blocks(size: int, count: int, width: int, height: int) -> None:
    """Elements that are wholly within the surface, one by one; the others are counted as beyond it."""
    each, across, rng = size // 8, count * width, np.random.default_rng(size)
    rows, operands = 40, []
    for _ in range(rows):
        extent = int(rng.integers(1, 60))
        operands.append(
            [int(rng.integers(1000)), extent, int(rng.integers(1, 6)), 64, *rng.integers(-4, 9, 2).tolist()]
        )
    acts = rng.integers(0, 2, rows)
    inst = Instruction("lsc_load_block2d", values={"block": BlockShape(size, count, width, height)})
    found = segments_of(inst, Records(acts, acts * 0, np.zeros((rows, 3), int), acts * 0, np.array(operands)))
    inside = 0
    for at, (base, extent, surface, pitch, x, y) in enumerate(operands):
        expected = {
            base + row * pitch + byte
            for row in range(max(y, 0), min(y + height, surface))
            for column in range(max(x, 0), x + across)
            for byte in range(column * each, (column + 1) * each)
            if acts[at] and (column + 1) * each <= extent
        }
        touched = [
            byte
            for start, end, valid in zip(found.starts[at], found.ends[at], found.valid[at])
            if valid
            for byte in range(start, end)
        ]
        assert sorted(expected) == sorted(touched)
        inside += len(touched)
    assert found.beyond == int(acts.sum()) * across * height * each - inside


def test_the_parts_of_a_sum_that_are_shown() -> None:
    """Those of a thousandth of the time or more, the greatest first."""
    parts = {"L1": 1e-3 / 1000, "float": 400e-6, "int": 0.9e-6, "waiting": 600e-6}
    found = Prediction("b580", 1e-3, "float", {}, parts, 1.0, 1, 1, [], {}, 0.0)
    assert found.sum_text() == "waiting 600 + float 400 + L1 1"


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((2, 0, 6), (4, 4)),
        ((0, 3, 5), (4, 4)),
        ((1, 7, 2), (3, 7)),
        ((7, 1, 2), (7, 3)),
        ((0, 0, 6), (3, 3)),
        ((2, 5, 0), (2, 5)),
    ],
)
def test_short_integers_go_to_the_pipe_with_less_to_do(
    counts: tuple[int, int, int], expected: tuple[float, float]
) -> None:
    texts = (operation("add", 16, *(f"{kind}{n}" for n in range(3))) for kind in "FDW")
    chosen = program("\n".join(texts))
    model: Any = SimpleNamespace(program=chosen, on=B580, runs=np.array([*counts, 1.0]))
    assert _Model._pipes(model) == {"float": expected[0], "int": expected[1], "math": 0, "dpas": 0}
    assert _Model._issued(model) == sum(counts) + 1


MESSAGES = """
    lsc_load.ugm (M1_NM, 1) D0:d32x16t flat[A]:a64
    lsc_load.ugm (M1_NM, 16) D1:d32 flat[Q0]:a64
    lsc_store.ugm (M1_NM, 16) flat[Q0]:a64 D1:d32
    lsc_load.slm (M1_NM, 16) D1:d32 flat[U0]:a32
    lsc_load.slm (M1_NM, 32) D2:d32 flat[U0]:a32
    lsc_load.slm (M1_NM, 1) D3:d32x16t flat[U0]:a32
    lsc_load.ugm (M1_NM, 1) D0:d32x16t flat[A]:a64
"""


def model_of(text: str, **fields: Any) -> Any:
    """A model of a program whose first instructions run, and with the given quantities."""
    chosen = program(text)
    model = SimpleNamespace(program=chosen, on=B580, fitted=FITTED, runs=np.ones(len(chosen.instructions)))
    model._messages = lambda: _Model._messages(model)
    for name, value in fields.items():
        setattr(model, name, value)
    return model


def test_the_latency_of_each_message() -> None:
    """Cycles from IGC's table, or of the caches; what is loaded behind the first level waits, by its share."""
    model = model_of(MESSAGES, fitted=Fitted(l1_latency=40, l2_latency=100e-9, memory_latency=200e-9))
    model.runs[6] = 0
    share = np.array([1.0, 0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    # The clock of a B580 is 2.85 GHz; half of the accesses of the L2 miss it, and wait for 200 ns.
    beyond = 200 * 2.85
    wanted = [40, 40 + beyond / 4, 40 + beyond, 28, 45, 28, 0, 0]
    assert _Model._latencies(model, share, 0.5).tolist() == pytest.approx(wanted)


def test_the_cycles_of_a_cache() -> None:
    """Lines of 64 bytes at 256 bytes a cycle, and look-ups of lines of which lanes access little, for two groups."""
    columns = {
        "executions": [4, 2, 10, 4, 8, 2, 0, 1],
        "lines": [40, 8, 4, 0, 0, 0, 9, 0],
        "bytes": [64, 128, 640, 999, 999, 999, 9, 0],
        "slm_cycles": [0, 0, 0, 12, 4, 6, 0, 0],
    }
    tables = {name: np.array(values) for name, values in columns.items()}
    model = model_of(
        MESSAGES, counts=SimpleNamespace(tables=tables), sampled=2, _beyond=set(),
        fitted=Fitted(gather_cycles=2, message_cycles=0.5),
    )  # fmt: skip
    model.runs[6] = 0
    total, sends = _Model._cache_cycles(model)
    # A block of 40 lines; 8 lines of which 2 would do; and 10 messages, of half a cycle each at least.
    assert total == (40 / 4 + 8 / 4 + (8 - 2) * 2 + 10 * 0.5) / 2
    assert sends.tolist() == [2.5, 7, 1, 3, 1, 3, 1, 1]


def test_variables_in_memory_cross_the_cache() -> None:
    """Each of three threads of each of two workgroups reads 64 bytes and writes 64 bytes of one, five times."""
    model = model_of(operation("add", 16, "D0", "D0", "D1"), threads=3, sampled=2)
    model.counts = SimpleNamespace(tables={})
    model._beyond = {model.program.instructions[0]["dst"].var}
    model.runs[0] = 5
    assert _Model._cache_cycles(model)[0] == 3 * 5 * 128 / 256


def level_of(accesses: list[tuple[int, int, int, int]], **fields: Any) -> Any:
    """A model of workgroups of two threads: each access has a workgroup, a time, an instruction and a line."""
    groups, times, instructions, lines = np.array(accesses).T
    trace = SimpleNamespace(lines=lines, threads=2 * groups + 1, times=times, instructions=instructions)
    counted = np.bincount(instructions, minlength=3)
    tables = {"lines": counted, "halves": np.array([0, 2 * counted[1], 0])}
    model = SimpleNamespace(
        on=structs.replace(B580, cores=10, l1_bytes=0, part_store=2.0), threads=2, groups=100, resident=4,
        counts=SimpleNamespace(trace=trace, tables=tables), program=SimpleNamespace(instructions=[0] * 3, slm_bytes=0),
        done=SimpleNamespace(groups=[5, 25, 40, 12, 14]), _writes=np.array([False, True, False]),
    )  # fmt: skip
    for name, value in fields.items():
        setattr(model, name, value)
    return model


def test_lines_that_a_workgroup_loads_without_a_cache() -> None:
    """Three loads, and two stores, of whole lines, of halves, or of one whole line and a half of one."""
    accesses = [(5, 1, 0, 1), (5, 2, 0, 2), (5, 3, 0, 1), (5, 4, 1, 1), (5, 5, 1, 9)]
    for halves, expected in ((4, 5), (2, 7), (3, 6)):
        model = level_of(accesses)
        model.counts.tables["halves"][1] = halves
        lines, share = _Model._first_level(model)
        assert lines == expected and share.tolist() == [0, 0, 1]
    # Of the accesses half are in the trace, or fewer are counted than there are.
    model.counts.tables["lines"] = np.array([3, 2, 5])
    model.counts.tables["halves"][1] = 4
    assert _Model._first_level(model)[0] == 10
    model.counts.tables["lines"] = np.array([0, 2, 0])
    assert _Model._first_level(model)[0] == 5


def test_lines_that_workgroups_far_away_load_too() -> None:
    """One of the four workgroups of a core misses lines that all load; those within ten workgroups do not count."""
    own = [(5, 1, 0, 1), (5, 2, 0, 2), (5, 3, 0, 3), (5, 4, 1, 1)]
    others = [(25, 1, 0, 1), (40, 1, 0, 1), (25, 1, 0, 2), (12, 1, 0, 3), (14, 2, 0, 3)]
    lines, share = _Model._first_level(level_of(own + others))
    assert lines == 0.25 + 0.625 + 1 + 1
    assert share.tolist() == [pytest.approx(1 - (0.25 + 0.625 + 1) / 3), 0, 1]
    # A launch of 11 workgroups has two on a core.
    assert _Model._first_level(level_of(own + others, groups=11))[0] == 0.5 + 0.75 + 1 + 1
    near = SimpleNamespace(groups=[5, 12, 14])
    assert _Model._first_level(level_of(own + others, done=near))[0] == 4
    # A workgroup that is as far as there are cores counts; of very many, every other one.
    edge = SimpleNamespace(groups=[5, 15])
    assert _Model._first_level(level_of([*own, (15, 1, 0, 3)], done=edge))[0] == 1 + 1 + 0.25 + 1
    many = SimpleNamespace(groups=[5, *range(20, 52)])
    of_many = [(group, 1, 0, 1) for group in range(20, 52) if group % 2]
    assert _Model._first_level(level_of(own + of_many, done=many))[0] == 4


def test_the_room_of_a_workgroup_in_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of what shared local memory leaves, for more lines if other workgroups load them too."""
    given = []
    monkeypatch.setattr(time_model, "hits", lambda lines, room: given.append(room) or np.zeros(len(lines)))
    own = [(5, 1, 0, 1), (5, 2, 0, 2), (5, 3, 0, 3), (5, 4, 0, 3)]
    shared = [(25, 1, 0, 1), (40, 1, 0, 1), (25, 1, 0, 2)]
    everything = [(group, 1, 0, line) for group in (25, 40) for line in (1, 2, 3)]
    for others, room in ((shared, int(200 / 0.625)), (everything, 800), ([], 200)):
        model = level_of(own + others)
        model.on = structs.replace(model.on, l1_bytes=64 * 1000)
        model.program.slm_bytes = 64 * 50
        _Model._first_level(model)
        assert given.pop() == room
        model.program.slm_bytes = 64 * 300
        _Model._first_level(model)
        assert given.pop() == 0


def test_threads_that_access_a_line_at_once_wait_for_it() -> None:
    """The second access of a line hits; but if it comes at the time of the first, its thread waits as long."""
    for times, waits in (((1, 2), 1), ((1, 1), 2)):
        accesses = [(5, times[0], 0, 1), (5, times[1], 0, 1), (5, 3, 2, 7)]
        model = level_of(accesses)
        model.on = structs.replace(model.on, l1_bytes=1 << 20)
        lines, share = _Model._first_level(model)
        assert lines == pytest.approx(2, abs=0.01)
        assert share.tolist() == pytest.approx([1 - waits / 2, 1, 0], abs=0.01)


@pytest.mark.parametrize(("shared", "seconds"), [(False, 7 * 2e-9), (True, 7 * 100 / 5 * 2e-9)])
def test_the_line_with_most_atomics_of_all_workgroups(shared: bool, seconds: float) -> None:
    counts = SimpleNamespace(hottest_line=(7, shared))
    model: Any = SimpleNamespace(counts=counts, groups=100, sampled=5, fitted=Fitted(atomic=2e-9))
    assert _Model._atomics(model) == pytest.approx(seconds)


def test_registers_at_addresses_are_read_and_written_to_be_checked() -> None:
    """What computes their addresses remains; a copy between variables with names, and a sum, do not."""
    lines = """
        mov (M1_NM, 16) D0(0,0)<1> D1(0,0)<1;1,0>
        addr_add (M1_NM, 1) R(0)<1> &D0 S0(0,0)<0;1,0>
        mov (M1_NM, 1) D2(0,0)<1> r[R(0),0]<0;1,0>:d
        add (M1_NM, 1) D3(0,0)<1> D2(0,0)<0;1,0> D2(0,0)<0;1,0>
        mov (M1_NM, 1) r[R(0),4]<1>:d 0x1:d
    """
    chosen = program(lines)
    assert {at for at in without_effect(chosen, target("bmg")) if at > 0} == {3}
    assert 0 in without_effect(program(lines.split("addr_add")[0].strip()), target("bmg"))
