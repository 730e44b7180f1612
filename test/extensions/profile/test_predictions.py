"""The model of the time gives what it gave when it was judged.

A change of these numbers is a change of the model, whose errors docs/model.md publishes.
"""

from __future__ import annotations

import numpy as np
import pytest

from xegpu_py.extensions.profile.launches import launched
from xegpu_py.extensions.profile.time_model import predict
from xegpu_py.runtime.kernel import Kernel

MIXED = """\
.version 3.8
.kernel "mixed"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Id v_type=G type=ud num_elts=3 align=dword
.decl Row v_type=G type=ud num_elts=1 align=dword
.decl At v_type=G type=uq num_elts=1 align=qword
.decl Lanes v_type=G type=ud num_elts=16 align=GRF
.decl Far v_type=G type=uq num_elts=16 align=GRF
.decl I v_type=G type=ud num_elts=1 align=dword
.decl X v_type=G type=f num_elts=64 align=GRF
.decl Y v_type=G type=f num_elts=16 align=GRF
.decl H v_type=G type=hf num_elts=16 align=GRF
.decl W v_type=G type=w num_elts=16 align=GRF
.decl D v_type=G type=d num_elts=16 align=GRF
.decl Q v_type=G type=q num_elts=16 align=GRF
.decl F v_type=G type=df num_elts=16 align=GRF
.decl A v_type=G type=d num_elts=64 align=GRF
.decl B v_type=G type=d num_elts=128 align=GRF
.decl C v_type=G type=f num_elts=128 align=GRF
.decl Place v_type=G type=ud num_elts=16 align=GRF
.decl P v_type=P num_elts=1
.input In offset=64 size=8
.input Out offset=72 size=8
.implicit_LOCAL_ID Id offset=80 size=12
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
.kernel_attr SLMSize=4
    mul (M1_NM, 1) Row(0,0)<1> %group_id_x(0,0)<0;1,0> 0x800:ud
    mad (M1_NM, 1) Row(0,0)<1> Id(0,0)<0;1,0> 0x200:ud Row(0,0)<0;1,0>
    add (M1_NM, 1) At(0,0)<1> In(0,0)<0;1,0> Row(0,0)<0;1,0>
    mov (M1_NM, 8) Lanes(0,0)<1> 0x76543210:uv
    add (M1_NM, 8) Lanes(0,8)<1> Lanes(0,0)<1;1,0> 0x8:ud
    mul (M1_NM, 16) Lanes(0,0)<1> Lanes(0,0)<1;1,0> 0x24:ud
    add (M1_NM, 16) Far(0,0)<1> In(0,0)<0;1,0> Lanes(0,0)<1;1,0>
    mov (M1_NM, 1) I(0,0)<1> 0x0:ud
Loop:
    lsc_load.ugm (M1_NM, 1) X:d32x64t flat[At]:a64
    lsc_load.ugm (M1_NM, 16) Y:d32 flat[Far]:a64
    mad (M1, 16) Y(0,0)<1> Y(0,0)<1;1,0> X(0,0)<1;1,0> X(1,0)<1;1,0>
    add (M1, 16) H(0,0)<1> H(0,0)<1;1,0> H(0,0)<1;1,0>
    add (M1, 16) W(0,0)<1> W(0,0)<1;1,0> W(0,0)<1;1,0>
    mul (M1, 16) D(0,0)<1> D(0,0)<1;1,0> D(0,0)<1;1,0>
    add (M1, 16) Q(0,0)<1> Q(0,0)<1;1,0> D(0,0)<1;1,0>
    mul (M1, 16) F(0,0)<1> F(0,0)<1;1,0> F(0,0)<1;1,0>
    inv (M1, 16) Y(0,0)<1> Y(0,0)<1;1,0>
    sqrt (M1, 16) Y(0,0)<1> Y(0,0)<1;1,0>
    mov (M1, 16) X(2,0)<1> D(0,0)<1;1,0>
    dpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A(0,0)
    dp4a (M1, 16) D(0,0)<1> D(0,0)<1;1,0> D(0,0)<1;1,0> D(0,0)<1;1,0>
    lsc_store.slm (M1_NM, 16) flat[Lanes]:a32 Y:d32
    lsc_fence.slm.none.group
    barrier
    lsc_load.slm (M1_NM, 16) Y:d32 flat[Place]:a32
    lsc_atomic_iadd.ugm (M1_NM, 16) D:d32 flat[Far]:a64 D %null
    add (M1_NM, 1) I(0,0)<1> I(0,0)<0;1,0> 0x1:ud
    add (M1_NM, 1) At(0,0)<1> At(0,0)<0;1,0> 0x40:ud
    cmp.lt (M1_NM, 1) P I(0,0)<0;1,0> 0x5:ud
    (P) jmp (M1, 1) Loop
    add (M1_NM, 1) At(0,0)<1> Out(0,0)<0;1,0> Row(0,0)<0;1,0>
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 Y:d32x16t
    ret (M1, 1)
"""
"""Five turns of each kind of instruction, in workgroups of four threads."""

PREDICTED = [
    ("b580", False,
     "480710 266.67 157.19 112.28 224.56 226.43 1315.8 2954.1 210.53 3073.9 1688.7 480000 1321.8",
     "8.5248e+06 3.77472e+06 692352",
     "1 3 6 1 5 4 2 1 0 1 13.45 242.68 1 1 257.24 7 16 10 21 1 16 1 18 1 30 1 13.45 1 1 9 33.6 1 10 1"),
    ("b580", True,
     "480490 266.67 157.19 112.28 224.56 226.43 1315.8 2954.1 210.53 3073.9 0 480000 1046.7",
     "8.5248e+06 3.77472e+06 0",
     "1 3 6 1 5 4 2 1 0 1 13.45 179.95 1 1 163.15 7 16 10 21 1 16 1 18 1 30 1 13.45 1 1 9 33.6 1 10 1"),
    ("max1100", False,
     "480550 53.226 108.39 77.419 202.37 156.13 967.74 1984.6 154.84 1883.4 923.14 480000 1466.8",
     "8.5248e+06 4.944e+06 692352",
     "1 3 6 1 5 4 2 1 0 1 12.325 146.42 1 1 78.546 7 1.5 10 21 1 8 2 18 1 30 1 12.325 1 1 9 33.6 1 10 1"),
    ("max1100", True,
     "480380 53.226 108.39 77.419 202.37 156.13 967.74 1984.6 154.84 1883.4 0 480000 1256.8",
     "8.5248e+06 4.944e+06 0",
     "1 3 6 1 5 4 2 1 0 1 12.325 120.38 1 1 39.475 7 1.5 10 21 1 8 2 18 1 30 1 12.325 1 1 9 33.6 1 10 1"),
    ("a770", False,
     "480660 243.75 106.25 100 125 100.83 1041.7 2338.7 166.67 2082.2 1730.9 480000 1351.5",
     "8.5248e+06 4.16448e+06 692352",
     "1 3 4 1 5 6 4 1 0 1 13.45 186.03 1 1 193.77 7 32 11 21 2 16 2 14 1 30 1 13.45 1 1 9 33.6 1 10 1"),
    ("a770", True,
     "480460 243.75 106.25 100 125 100.83 1041.7 2338.7 166.67 2082.2 0 480000 1102.1",
     "8.5248e+06 4.16448e+06 0",
     "1 3 4 1 5 6 4 1 0 1 13.45 138.15 1 1 121.95 7 32 11 21 2 16 2 14 1 30 1 13.45 1 1 9 33.6 1 10 1"),
]  # fmt: skip
"""By GPU, and whether the caches are warm: nanoseconds of the launch and of each bound, in their order; bytes of each
level; cycles of each instruction."""


def numbers(text: str) -> list[float]:
    return [*map(float, text.split())]


@pytest.mark.parametrize(("name", "warm", "times", "moved", "cycles"), PREDICTED, ids=range(len(PREDICTED)))
def test_each_kind_of_instruction(name: str, warm: bool, times: str, moved: str, cycles: str) -> None:
    arrays = [np.zeros(300 * 512 + 4096, np.uint32) for _ in range(2)]
    found = predict(Kernel.from_assembly(MIXED), arrays, 300, name, block=4, warm=warm)
    assert [1e9 * t for t in (found.seconds, *found.bounds.values())] == pytest.approx(numbers(times), rel=1e-4)
    assert [*found.bytes.values()] == pytest.approx(numbers(moved), rel=1e-5)
    assert found.cycles == pytest.approx(numbers(cycles), rel=1e-4)
    assert found.operations == 2 * 8 * 16 * 16 * 5 * 4 * 300


def test_counts_of_each_kind_of_instruction() -> None:
    """Of 300 workgroups; lanes that are 36 bytes apart lie in 9 lines, each in half a line of its own."""
    arrays = [np.zeros(300 * 512 + 4096, np.uint32) for _ in range(2)]
    launch = launched(Kernel.from_assembly(MIXED), arrays, 300, 4)
    instructions, tables = launch.kernel.program.instructions, launch.counts.tables
    names = [inst.name for inst in instructions]
    jump = names.index("jmp")
    executions = np.full(len(names), 1200)
    executions[names.index("label") : jump + 1] *= 5
    possible = executions * [inst.exec_size for inst in instructions]
    lanes = possible.copy()
    lanes[jump] -= 1200
    block, gather, store_slm, load_slm, atomic, store = (
        at for at, n in enumerate(names) if "lsc" in n and "fence" not in n
    )
    expected = {
        "executions": executions,
        "lanes": lanes,
        "possible": possible,
        "messages": {block: 6000, gather: 6000, store_slm: 6000, load_slm: 6000, atomic: 6000, store: 1200},
        "bytes": dict.fromkeys((gather, store_slm, load_slm, atomic), 6000 * 64)
        | {block: 6000 * 256, store: 1200 * 64},
        "lines": {block: 6000 * 4, gather: 6000 * 9, atomic: 6000 * 9, store: 1200},
        "halves": {atomic: 6000 * 16, store: 2400},
        "slm_cycles": {store_slm: 6000, load_slm: 6000},
    }
    assert {*tables} - {*expected} == {"beyond", "conflicts", "collisions", "waited"}
    for name in tables:
        table = expected.get(name, {})
        wanted = [table.get(at, 0) for at in range(len(names))] if isinstance(table, dict) else table.tolist()
        assert tables[name].tolist() == wanted, name
    assert launch.counts.hottest_line == (5 * 1200 * 2, True)
