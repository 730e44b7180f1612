"""Other orders of threads: kernels whose results depend on the order are found, and others are not reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xegpu_py
from xegpu_py import DiagnosticError
from xegpu_py.engines.operands import DelayedStores
from xegpu_py.runtime.kernel import Kernel

RUN = Path(__file__).parents[2] / "run"

LAST = """
gpu.module @kernels {
  gpu.func @last(%out: memref<16xi32>) kernel {
    %c0 = arith.constant 0 : index
    %zeros = arith.constant dense<0> : vector<1xindex>
    %mask = arith.constant dense<true> : vector<1xi1>
    %thread = gpu.thread_id x
    %number = arith.index_cast %thread : index to i32
    %value = vector.broadcast %number : i32 to vector<1xi32>
    %to = xegpu.create_tdesc %out, %zeros {mode = vc}
      : memref<16xi32>, vector<1xindex> -> !xegpu.tensor_desc<1xi32, #xegpu.scattered>
    %old = xegpu.atomic_rmw assign, %value, %to, %mask {mode = vc}
      : vector<1xi32>, !xegpu.tensor_desc<1xi32, #xegpu.scattered>, vector<1xi1> -> vector<1xi32>
    gpu.return
  }
}
"""


def test_the_last_of_several_exchanges_wins() -> None:
    kernel = xegpu_py.compile(LAST, check="races", schedules=20)
    with pytest.raises(DiagnosticError) as error:
        kernel(np.zeros(16, np.int32), block=8)
    (found,) = error.value.diagnostics
    assert "the results of kernel 'last' depend on the order of threads" in found.message
    assert "first byte 0: 0x07 or " in found.message
    assert found.notes[0].message.startswith("in the order of threads of seed ")
    seed = int(re.findall(r"\d+", found.notes[0].message)[0])
    # The same seeds give the same orders.
    fewer = xegpu_py.compile(LAST, check="races", schedules=seed)
    with pytest.raises(DiagnosticError, match=f"seed {seed}|depend on the order"):
        fewer(np.zeros(16, np.int32), block=8)
    if seed > 1:
        xegpu_py.compile(LAST, check="races", schedules=seed - 1)(np.zeros(16, np.int32), block=8)


def test_without_other_orders_it_is_right_by_luck() -> None:
    out = np.zeros(16, np.int32)
    xegpu_py.compile(LAST, check="races")(out, block=8)
    assert out[0] == 7


def test_ordered_kernels_are_not_reported() -> None:
    sums = xegpu_py.compile(RUN / "slm_sum.mlir", check="races", schedules=3)
    out = np.zeros(8, np.float32)
    sums(np.ones(8192, np.float32), out, grid=8, block=4)
    assert (out == 1024).all()
    counts = xegpu_py.compile(RUN / "histogram.mlir", check="races", schedules=3)
    bins = np.zeros(256, np.int32)
    counts(np.full(100, 7, np.int8), bins, grid=3)
    assert bins[7] == 100


OWN = """
gpu.module @kernels {
  gpu.func @own(%out: memref<64xi32>) kernel {
    %thread = gpu.thread_id x
    %number = arith.index_cast %thread : index to i32
    memref.store %number, %out[%thread] : memref<64xi32>
    %again = memref.load %out[%thread] : memref<64xi32>
    %more = arith.addi %again, %number : i32
    memref.store %more, %out[%thread] : memref<64xi32>
    gpu.return
  }
}
"""


def test_threads_see_their_own_stores_at_once() -> None:
    out = np.full(64, -1, np.int32)
    xegpu_py.compile(OWN, check="races", schedules=3)(out, block=8)
    assert out[:8].tolist() == list(range(0, 16, 2))


LOOKS = """\
    lsc_atomic_iadd.ugm (M1_NM, 1) F:d32 flat[Flag]:a64 None %null
"""
MESSAGE = f"""\
.version 3.8
.kernel "message"
.decl Data v_type=G type=uq num_elts=1 align=qword
.decl Flag v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Id v_type=G type=ud num_elts=3 align=dword
.decl Seven v_type=G type=ud num_elts=16 align=GRF
.decl One v_type=G type=ud num_elts=16 align=GRF
.decl None v_type=G type=ud num_elts=16 align=GRF
.decl Y v_type=G type=ud num_elts=16 align=GRF
.decl F v_type=G type=ud num_elts=16 align=GRF
.decl P v_type=P num_elts=1
.decl First v_type=P num_elts=1
.input Data offset=64 size=8
.input Flag offset=72 size=8
.input Out offset=80 size=8
.implicit_LOCAL_ID Id offset=96 size=12
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1_NM, 16) Seven(0,0)<1> 0x7:ud
    mov (M1_NM, 16) Y(0,0)<1> 0x7:ud
    mov (M1_NM, 16) One(0,0)<1> 0x1:ud
    mov (M1_NM, 16) None(0,0)<1> 0x0:ud
    cmp.eq (M1_NM, 1) First Id(0,0)<0;1,0> 0x0:ud
    cmp.eq (M1_NM, 1) P %group_id_x(0,0)<0;1,0> 0x0:ud
    (!P) jmp (M1, 1) Reader
    (!First) lsc_store.ugm (M1_NM, 1) flat[Data]:a64 Seven:d32
    OWN
    barrier
    (!First) jmp (M1, 1) Wait
    lsc_fence.ugm.none.gpu
Wait:
    barrier
    (!First) lsc_atomic_iadd.ugm (M1_NM, 1) %null:d32 flat[Flag]:a64 One %null
    ret (M1, 1)
Reader:
{LOOKS * 12}    cmp.eq (M1_NM, 1) P F(0,0)<0;1,0> 0x1:ud
    (P) lsc_load.ugm (M1_NM, 1) Y:d32 flat[Data]:a64
    (First) lsc_store.ugm (M1_NM, 1) flat[Out]:a64 Y:d32
    ret (M1, 1)
"""


@pytest.mark.parametrize("fenced", [False, True])
def test_a_store_that_only_another_thread_fences(fenced: bool) -> None:
    """A workgroup passes a number by an atomic. The thread that stored it must fence: that of another is not enough."""
    text = MESSAGE.replace("OWN", "lsc_fence.ugm.none.gpu" if fenced else "")
    kernel = Kernel.from_assembly(text, check="races", schedules=12)
    data, flag, out = (np.zeros(1, np.uint32) for _ in range(3))
    if fenced:
        kernel(data, flag, out, grid=2, block=2)
        assert out[0] == 7
        return
    with pytest.raises(DiagnosticError, match=r"byte 0 of .Data., which another thread has written, and nothing"):
        kernel(data, flag, out, grid=2, block=2)


FENCES = """\
.version 3.8
.kernel "fences"
.decl Data v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=ud num_elts=16 align=GRF
.input Data offset=64 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1_NM, 16) X(0,0)<1> 0x7:ud
    lsc_store.ugm (M1_NM, 1) flat[Data]:a64 X:d32
    lsc_fence.ugm.none.gpu
    lsc_fence.slm.none.group
    lsc_fence.ugm.none.group
    ret (M1, 1)
"""


def test_a_fence_makes_the_stores_to_its_memory_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    release = DelayedStores.release

    def released(self: DelayedStores, slm: bool, *places: Any) -> None:
        seen.append((slm, places, bool(self.pending)))
        release(self, slm, *places)

    monkeypatch.setattr(DelayedStores, "release", released)
    Kernel.from_assembly(FENCES, check="races", schedules=2)(np.zeros(1, np.uint32))
    assert seen == [(False, (), True), (True, (), False), (False, (), False)] * 2


def notes_of(error: DiagnosticError) -> list[str]:
    return [note.message for note in error.diagnostics[0].notes]


def test_what_a_thread_sees_of_its_own_stores() -> None:
    """Its stores are in program order, whether others see them or not."""
    stores, memory = DelayedStores(), np.zeros(16, np.uint8)
    bytes_of = np.arange(8)
    stores.add(False, memory, bytes_of[:4], np.array([1, 2, 3, 4], np.uint8))
    stores.add(False, memory, bytes_of[2:6], np.array([5, 6, 7, 8], np.uint8))
    stores.add(True, memory, bytes_of[:1], np.array([9], np.uint8))
    assert stores.read(False, memory, bytes_of).tolist() == [1, 2, 5, 6, 7, 8, 0, 0] and not memory.any()
    stores.thread = 1
    assert not stores.read(False, memory, bytes_of).any()
    stores.thread = 0
    stores.release(False, bytes_of[3:5])
    assert memory.tolist()[:8] == [0, 0, 0, 6, 7, 0, 0, 0]
    assert stores.read(False, memory, bytes_of).tolist() == [1, 2, 5, 6, 7, 8, 0, 0]
    stores.release(False)
    assert memory.tolist()[:8] == [1, 2, 5, 6, 7, 8, 0, 0]
    stores.end()
    assert memory[0] == 9


def test_schedules_need_the_check() -> None:
    with pytest.raises(ValueError, match="'schedules' must be a number of orders for the check races, but got 3"):
        xegpu_py.compile(LAST, schedules=3)


BLOCKS = """
gpu.module @kernels {
  gpu.func @blocks(%A: memref<8x16xTYPE>, %B: memref<10x20xTYPE>, %C: memref<8x16xTYPE>) kernel {
    %c0 = arith.constant 0 : index
    %row = arith.constant 4 : index
    %column = arith.constant 8 : index
    %a = xegpu.create_nd_tdesc %A[%c0, %c0] {mode = vc} : memref<8x16xTYPE> -> !xegpu.tensor_desc<8x16xTYPE>
    %b = xegpu.create_nd_tdesc %B[%row, %column] {mode = vc} : memref<10x20xTYPE> -> !xegpu.tensor_desc<8x16xTYPE>
    %c = xegpu.create_nd_tdesc %C[%c0, %c0] {mode = vc} : memref<8x16xTYPE> -> !xegpu.tensor_desc<8x16xTYPE>
    %x = xegpu.load_nd %a {mode = vc} : !xegpu.tensor_desc<8x16xTYPE> -> vector<8x16xTYPE>
    xegpu.store_nd %x, %b {mode = vc} : vector<8x16xTYPE>, !xegpu.tensor_desc<8x16xTYPE>
    %y = xegpu.load_nd %b {mode = vc} : !xegpu.tensor_desc<8x16xTYPE> -> vector<8x16xTYPE>
    xegpu.store_nd %y, %c {mode = vc} : vector<8x16xTYPE>, !xegpu.tensor_desc<8x16xTYPE>
    gpu.return
  }
}
"""


@pytest.mark.parametrize(("kind", "dtype"), [("i16", np.int16), ("i32", np.int32)])
def test_a_thread_sees_the_blocks_that_it_has_stored(kind: str, dtype: type) -> None:
    """Also while its stores are delayed; a block at the edge has zeros beyond it."""
    kernel = xegpu_py.compile(BLOCKS.replace("TYPE", kind), check="races", schedules=2)
    a = np.arange(1, 129, dtype=dtype).reshape(8, 16)
    b, c = np.full((10, 20), -1, dtype), np.full((8, 16), -1, dtype)
    kernel(a, b, c)
    assert (c[:6, :12] == a[:6, :12]).all() and not c[6:].any() and not c[:, 12:].any()
    assert (b[4:, 8:] == a[:6, :12]).all() and (b[:4] == -1).all() and (b[:, :8] == -1).all()
