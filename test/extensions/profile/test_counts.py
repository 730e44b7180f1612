"""Counts of kernels whose numbers are known by hand."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from effort import some
from ml_dtypes import bfloat16
from msgspec import structs

import xegpu_py
from xegpu_py import Constexpr
from xegpu_py import language as xl
from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.engines.jit import checks
from xegpu_py.engines.jit.checks import Records
from xegpu_py.engines.operands import BUILTIN_OFFSETS, Batch, count_of, masker, reader
from xegpu_py.engines.semantics.memory import lane_addresses
from xegpu_py.extensions.profile import counts as counts_module
from xegpu_py.extensions.profile import launches
from xegpu_py.extensions.profile.caches import FIRST, reuse_distances, reuse_of
from xegpu_py.extensions.profile.counts import LINE, Counts, Segments, Trace, lines_of
from xegpu_py.extensions.profile.launches import counted, launched, sample_of
from xegpu_py.extensions.profile.profiles import Profile, profile
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.plugins import MissingExtra
from xegpu_py.runtime.device_memory import Buffer
from xegpu_py.runtime.host_arrays import parse_argument
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Prepared
from xegpu_py.target import target
from xegpu_py.tools import xegpu_run
from xegpu_py.visa import assembly
from xegpu_py.visa.instructions import INSTRUCTIONS

GATHER = """
gpu.module @kernels {{
  gpu.func @gather(%in: memref<4096xf32>, %out: memref<64xf32>) kernel {{
    %group = gpu.block_id x
    %c16 = arith.constant 16 : index
    %first = arith.muli %group, %c16 : index
    %step = arith.constant dense<{stride}> : vector<16xindex>
    %lanes = vector.step : vector<16xindex>
    %places = arith.muli %lanes, %step : vector<16xindex>
    %mask = arith.constant dense<{mask}> : vector<16xi1>
    %from = xegpu.create_tdesc %in, %places {{mode = vc}}
      : memref<4096xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    %x = xegpu.load_gather %from, %mask {{mode = vc}}
      : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
    %bases = vector.broadcast %first : index to vector<16xindex>
    %there = arith.addi %lanes, %bases : vector<16xindex>
    %to = xegpu.create_tdesc %out, %there {{mode = vc}}
      : memref<64xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    xegpu.store_scatter %x, %to, %mask {{mode = vc}}
      : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>
    gpu.return
  }}
}}
"""


def profiled(text: str, *arguments: object, **launch: object) -> Profile:
    return profile(xegpu_py.compile(text), *arguments, **launch)  # type: ignore[arg-type]


def moved(found: Profile, buffer: str, kind: str) -> tuple[int, int, int, int]:
    (entry,) = [t for t in found.traffic if (t.buffer, t.kind) == (buffer, kind)]
    return entry.messages, entry.bytes, entry.lines, entry.unique


@pytest.mark.parametrize(("stride", "lines"), [(1, 1), (2, 2), (8, 8), (16, 16), (64, 16)])
def test_lines_of_a_strided_gather(stride: int, lines: int) -> None:
    text = GATHER.format(stride=stride, mask="true")
    found = profiled(text, np.zeros(4096, np.float32), np.zeros(64, np.float32), grid=4)
    # Each of 4 workgroups reads the same 16 numbers, and writes 16 of its own.
    assert moved(found, "%in", "load") == (4, 256, 4 * lines, 64)
    assert moved(found, "%out", "store") == (4, 256, 4, 256)


def test_masked_lanes_do_not_act() -> None:
    mask = str([lane % 4 == 0 for lane in range(16)]).lower()
    found = profiled(GATHER.format(stride=16, mask=mask), np.zeros(4096, np.float32), np.zeros(64, np.float32), grid=2)
    assert moved(found, "%in", "load") == (2, 32, 8, 16)
    (load,) = [row for row in found.rows if row.category == "load" and row.messages and row.lines]
    assert (load.executions, load.lanes, load.possible) == (2, 8, 32)


SLM = """
gpu.module @kernels {{
  gpu.func @shared(%out: memref<16xf32>) kernel {{
    %memory = memref.alloc() : memref<1024xf32, 3>
    %lanes = vector.step : vector<16xindex>
    %step = arith.constant dense<{stride}> : vector<16xindex>
    %places = arith.muli %lanes, %step : vector<16xindex>
    %mask = arith.constant dense<true> : vector<16xi1>
    %ones = arith.constant dense<1.0> : vector<16xf32>
    %to = xegpu.create_tdesc %memory, %places {{mode = vc}}
      : memref<1024xf32, 3>, vector<16xindex>
      -> !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>
    xegpu.store_scatter %ones, %to, %mask {{mode = vc}} : vector<16xf32>,
      !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>, vector<16xi1>
    gpu.barrier
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize(("stride", "cycles"), [(0, 1), (1, 1), (2, 2), (3, 1), (8, 8), (16, 16), (17, 1)])
def test_bank_conflicts(stride: int, cycles: int) -> None:
    found = profiled(SLM.format(stride=stride), np.zeros(16, np.float32), grid=3)
    (store,) = [row for row in found.rows if row.slm_cycles]
    assert (store.slm_cycles, store.conflicts) == (3 * cycles, 3 * (cycles - 1))
    assert moved(found, "slm", "store")[:2] == (3, 192)


@xegpu_py.jit
def copied(X, Y, ROWS: Constexpr, COLUMNS: Constexpr):
    m, n = xl.program_id(0) * ROWS, xl.program_id(1) * COLUMNS
    Y.tile((ROWS, COLUMNS), at=(m, n)).store(X.tile((ROWS, COLUMNS), at=(m, n)).load())


def test_blocks_beyond_the_edge() -> None:
    x, y = np.ones((20, 48), np.float32), np.zeros((20, 48), np.float32)
    found = copied[3, 3].profile(x, y, ROWS=8, COLUMNS=32)
    assert y.all()
    # The grid covers 24 x 96 elements: 2304 in all, of which 20 * 48 = 960 exist.
    for kind, buffer in (("load", "X"), ("store", "Y")):
        assert moved(found, buffer, kind)[1::2] == (3840, 3840)
        assert sum(r.beyond for r in found.rows if r.category == kind) == 4 * (2304 - 960)


HISTOGRAM = Path(__file__).parents[2] / "run" / "histogram.mlir"


def test_colliding_atomics() -> None:
    found = profiled(HISTOGRAM.read_text(), np.full(64, 7, np.int8), np.zeros(256, np.int32), grid=2)
    (atomic,) = [row for row in found.rows if row.category == "atomic"]
    # 4 messages of 16 lanes, which all change one bin.
    assert (atomic.messages, atomic.bytes, atomic.lines, atomic.collisions) == (4, 256, 4, 60)
    assert found.hottest == 64
    assert moved(found, "%bins", "atomic") == (4, 256, 4, 4)


@pytest.mark.parametrize(("groups", "expected"), [(1, (32, False)), (2, (64, True))])
def test_whether_workgroups_share_the_hottest_line(groups: int, expected: tuple[int, bool]) -> None:
    kernel = xegpu_py.compile(HISTOGRAM.read_text())
    given = np.full(32 * groups, 7, np.int8), np.zeros(256, np.int32)
    assert launched(kernel, given, groups).counts.hottest_line == expected


def test_the_workgroup_of_an_access() -> None:
    """Workgroups are counted through x, then y, then z; here each of z loads the same rows of 64 bytes."""
    x = np.zeros((2 * 4, 3 * 16), np.float32)
    kernel = copied.compile(x, x.copy(), ROWS=4, COLUMNS=16)
    counts = launched(kernel, (x, x.copy()), (2, 3, 2)).counts
    (source, _), trace = counts.buffers, counts.trace
    assert trace.complete
    for group in range(12):
        m, n = group % 2 * 4, group // 2 % 3
        own = {source.address // 64 + row * 3 + n for row in range(m, m + 4)}
        lines = trace.lines[trace.threads == group]
        assert set(lines[lines < (source.address + source.bytes) // 64].tolist()) == own


def test_the_workgroups_that_stand_for_all() -> None:
    """The middle, its neighbours in x, y and z, some at shares of the grid, and those that follow the middle."""
    for grid, lines, expected in (
        ((1, 1, 1), 0, [0]),
        ((2, 1, 1), 1 << 20, [0, 1]),
        ((8, 4, 2), 1 << 20, [11, 12, 19, 43, 59, 8]),
        ((4, 3, 5), 1 << 20, [13, 14, 17, 25, 55, 7]),
        ((8, 4, 2), 4096, [11, 12, 19, 43, 59, 8, 13]),
        ((8, 4, 2), 0, [11, 12, 19, 43, 59, 8, 13, 14, 15]),
        ((100, 1, 1), 8192, [49, 50, 93, 13, 31, 71]),
        ((100, 1, 1), 1, [49, 50, 93, 13, 31, 71, *(n for n in range(51, 81) if n != 71)]),
    ):
        assert sample_of(grid, lines) == expected, (grid, lines)


def test_loops_and_products_of_a_gemm() -> None:
    kernel = xegpu_py.compile(Path(__file__).parents[3] / "examples" / "gemm_bf16.mlir")
    a, b = (np.zeros((512, 512), bfloat16) for _ in range(2))
    c = np.zeros((512, 512), np.float32)
    found = kernel.profile(a, b, c, grid=(2, 1))
    # Two subgroups multiply 32 x 16 by 16 x 32 elements in each of 32 iterations: 8 dpas of 8 x 16 x 16.
    products = [row for row in found.rows if row.category == "dpas"]
    assert sum(row.executions for row in products) == 2 * 32 * 8
    assert {row.lanes for row in products} == {16 * 64}
    # A row of a block of A has 32 bytes, half of a line. Both subgroups read the same columns of B.
    assert moved(found, "%A", "load") == (64, 65536, 2048, 65536)
    assert moved(found, "%A", "prefetch") == (62, 63488, 1984, 63488)
    assert moved(found, "%B", "load") == (64, 65536, 1024, 65536 // 2)
    assert moved(found, "%C", "store") == (16, 8192, 128, 8192)
    executed = kernel(a, b, c, grid=(2, 1)).executed
    assert [row.executions for row in found.rows] == [int(executed[row.index]) for row in found.rows]


def test_reuse_distances() -> None:
    lines = np.random.default_rng(0).integers(0, 40, 300)
    found = reuse_distances(lines)
    for at, line in enumerate(lines):
        before = np.flatnonzero(lines[:at] == line)
        expected = len(set(lines[before[-1] + 1 : at])) if len(before) else FIRST
        assert found[at] == expected


def test_reuse_is_of_the_buffer_that_has_the_line() -> None:
    """Three buffers that follow each other, of which two share a line, and one that no access touches."""
    buffers = [Buffer("a", 640, 128), Buffer("b", 768, 32), Buffer("c", 800, 96), Buffer("far", 6400, 64)]
    lines = np.array([10, 11, 12, 13, 10, 14, 12, 12])
    none = np.zeros(len(lines), np.int32)
    found = reuse_of(Trace(lines, none, none, none, True), buffers)
    # By distance: none, 1, 2 or 3, and first accesses. Of line 10 the distance is 3, of line 12 it is 3 and none.
    assert found == {"a": [0, 0, 1, 2], "b": [1, 0, 1, 1], "c": [1, 0, 1, 2]}


def test_a_sample_changes_nothing() -> None:
    x, y = np.ones((64, 64), np.float32), np.full((64, 64), 5, np.float32)
    kernel = copied.compile(x, y, ROWS=16, COLUMNS=32)
    whole = profile(kernel, x, np.zeros_like(y), grid=(4, 2))
    sample = launched(kernel, (x, y), (4, 2), groups=[1, 6])
    assert (y == 5).all()
    loaded = sum(row.bytes for row in sample.counts.rows())
    assert 4 * loaded == sum(row.bytes for row in whole.rows)


def test_waits_at_a_barrier() -> None:
    text = (Path(__file__).parents[2] / "run" / "slm_sum.mlir").read_text()
    found = profiled(text, np.ones(8192, np.float32), np.zeros(8, np.float32), grid=8, block=4)
    (barrier,) = [row for row in found.rows if row.name == "barrier"]
    assert barrier.executions == 32 and barrier.waited == 0


@pytest.mark.parametrize("name", ["gemm_nbarriers", "nbarrier", "slm_sum"])
def test_engines_count_alike(name: str) -> None:
    text = (Path(__file__).parents[2] / "run" / f"{name}.mlir").read_text()
    words = re.search(r"RUN: xegpu-run %s (.*?)(?: --grid (\S+))? --block (\S+)", text)
    assert words
    given = [parse_argument(word) for word in words[1].split()]
    grid, block = (tuple(map(int, (words[n] or "1").split(","))) for n in (2, 3))
    kernel = xegpu_py.compile(text)
    found = kernel.profile(*given, grid=grid, block=block)
    for engine in ("jit", "interpreter"):
        executed = xegpu_py.compile(text, engine=engine)(*given, grid=grid, block=block).executed
        assert [row.executions for row in found.rows] == [int(executed[row.index]) for row in found.rows]


GUARDED = """\
.version 3.8
.kernel "guarded"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Unused v_type=G type=d num_elts=64 align=GRF
.decl X v_type=G type=d num_elts=16 align=GRF
.decl Y v_type=G type=d num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1, 16) Unused(0,0)<1> 0x1:d
    mov (M1, 16) Y(0,0)<1> 0x0:d
    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[In]:a64
    cmp.gt (M1, 16) P X(0,0)<1;1,0> 0x4:d
    (P) add (M1, 16) Y(0,0)<1> X(0,0)<1;1,0> 0x1:d
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 Y:d32x16t
    ret (M1, 1)
"""


def test_lanes_that_data_select() -> None:
    """A guard is computed although the instruction itself has no effect on what is counted."""
    kernel, out = Kernel.from_assembly(GUARDED), np.zeros(16, np.int32)
    found = kernel.profile(np.arange(16, dtype=np.int32), out)
    (add,) = [row for row in found.rows if row.name == "add"]
    assert (add.executions, add.lanes, add.possible) == (1, 11, 16)
    assert (out == np.where(np.arange(16) > 4, np.arange(16) + 1, 0)).all()


DIVERGENT = GUARDED.replace(
    "    (P) add (M1, 16) Y(0,0)<1> X(0,0)<1;1,0> 0x1:d\n",
    """\
    (P) goto (M1, 16) Over
    add (M1, 16) Y(0,0)<1> X(0,0)<1;1,0> 0x1:d
    add (M1_NM, 16) Unused(0,0)<1> X(0,0)<1;1,0> 0x1:d
Over:
""",
)


def test_lanes_that_branches_leave_out() -> None:
    """An instruction that ignores the mask acts on all lanes."""
    kernel, out = Kernel.from_assembly(DIVERGENT), np.zeros(16, np.int32)
    found = kernel.profile(np.arange(16, dtype=np.int32), out)
    masked, unmasked = (row for row in found.rows if row.name == "add")
    assert (masked.executions, masked.lanes, masked.possible) == (1, 5, 16)
    assert (unmasked.executions, unmasked.lanes, unmasked.possible) == (1, 16, 16)
    assert out.tolist() == [1, 2, 3, 4, 5, *[0] * 11]


CHAINED = """.kernel "chained"
.decl In v_type=G type=uq num_elts=1 align=GRF
.decl At v_type=G type=uq num_elts=1 align=GRF
.decl Slot v_type=G type=ud num_elts=1 align=GRF
.decl X v_type=G type=uq num_elts=8 align=GRF
.decl Y v_type=G type=d num_elts=16 align=GRF
.decl Z v_type=G type=d num_elts=16 align=GRF
.kernel_attr SLMSize=1
.input In offset=64 size=8
    mov (M1, 16) Y(0,0)<1> 0x1:d
    mov (M1, 16) Z(0,0)<1> 0x2:d
    mov (M1, 1) Slot(0,0)<1> 0x0:ud
    lsc_store.ugm (M1_NM, 1) flat[In]:a64 Y:d32x16t
    lsc_store.slm (M1_NM, 1) flat[Slot]:a32 Z:d32x16t
    lsc_load.ugm (M1_NM, 1) X:d64x1t flat[In]:a64
    add (M1, 1) At(0,0)<1> In(0,0)<0;1,0> X(0,0)<0;1,0>
    lsc_load.ugm (M1_NM, 1) Y:d32x16t flat[At]:a64
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 Y:d32x16t
    ret (M1, 1)
"""


def test_what_is_skipped() -> None:
    """Stores to memory from which no address is loaded, what they store, and loads of what is only stored there."""
    kernel = Kernel.from_assembly(CHAINED)
    program = kernel.program
    skipped = launches.without_effect(program, kernel.target)
    assert [program.instructions[at].name for at in sorted(skipped)] == ["mov", "lsc_store"]
    assert sorted(skipped) == [1, 4]


def test_stores_from_which_addresses_are_loaded_change_no_array() -> None:
    """The kernel writes zeros, and loads one as an offset; a run that is only counted has memory of its own."""
    kernel, x = Kernel.from_assembly(CHAINED.replace("0x1:d", "0x0:d")), np.full(64, 9, np.int32)
    counts = launched(kernel, (x,), 1).counts
    assert (x == 9).all() and {t.bytes for t in counts.moved() if t.kind == "store" and t.buffer != "slm"} == {128}
    kernel(x)
    assert x.tolist() == [0] * 16 + [9] * 48


@pytest.mark.parametrize("logged", [1, checks._RECORDED_LANES])
def test_what_is_skipped_is_counted(logged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts and the order of accesses are those of a run of all instructions, however many are counted at once."""
    kernel = xegpu_py.compile(Path(__file__).parents[3] / "examples" / "gemm_bf16.mlir")
    arrays = *(np.zeros((512, 512), bfloat16) for _ in range(2)), np.zeros((512, 512), np.float32)
    monkeypatch.setattr(checks, "_RECORDED_LANES", logged)
    assert launches.reduced(kernel.program, kernel.target) != kernel.program
    found = []
    for whole in (False, True):
        if whole:
            monkeypatch.setattr(launches, "reduced", lambda program, *_: program)
        done = launched(kernel, arrays, (2, 2)).counts
        found.append((done.rows(), done.moved(), [column.tolist() for column in structs.astuple(done.trace)[:3]]))
    assert found[0] == found[1]


def test_accesses_outside_of_arrays_are_refused() -> None:
    kernel = Kernel.from_assembly(GUARDED)
    with pytest.raises(
        DiagnosticError, match="'lsc_load' reads 64 bytes at .*, reaching 32 bytes over the end of 'In'"
    ):
        launched(kernel, (np.arange(8, dtype=np.int32), np.zeros(16, np.int32)), 1)


class Interpreted:
    """Counts what the interpreter executes, as its semantic functions read registers: not the time of barriers."""

    def __init__(self, kernel: Kernel, prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program, self.layout = kernel.program, kernel.executor.layout
        memory, target = prepared.memory.copy(), kernel.target
        self.counts = Counts(self.program, target, memory, prepared.size, [0])
        self.lanes = np.zeros(len(self.program.instructions), np.int64)
        prepare = Interpreter._prepare

        def watched(interpreter: Interpreter, at: int) -> tuple[Any, Any]:
            step, decide = prepare(interpreter, at)

            def before(batch: Batch, rows: Any, active: Any) -> None:
                self._look(at, batch, rows, active)
                if step:
                    step(batch, rows, active)

            def deciding(batch: Batch, rows: Any, place: int, active: Any) -> Any:
                self._look(at, batch, rows, active)
                return decide(batch, rows, place, active)

            return (before, None) if step else (None, deciding)

        monkeypatch.setattr(Interpreter, "_prepare", watched)
        executed = (
            kernel.with_engine("interpreter")
            .executor.run(structs.replace(prepared, memory=memory, staged=None))
            .executed
        )
        monkeypatch.undo()
        self.counts.end(executed, self.lanes)

    def _look(self, at: int, batch: Batch, rows: Any, active: Any) -> None:
        inst = self.program.instructions[at]
        spec, count = INSTRUCTIONS[inst.name], count_of(batch, rows)
        mask = masker(inst, self.layout)(batch, rows, active)
        bits = np.broadcast_to(np.ones(1, bool) if mask is None else mask, (count, inst.exec_size))
        self.lanes[at] += bits.sum()
        if not spec.is_message:
            return
        if "block" in inst.values:
            read = [reader(inst[name], 1, self.layout)(batch, rows) for name in ("base", "width", "height", "pitch")]
            places = [reader(inst[name], 1, self.layout)(batch, rows).astype(np.int32) for name in ("x", "y")]
            columns = [read[0], *(extent.astype(np.int64) + 1 for extent in read[1:]), *places]
        else:
            columns = list(lane_addresses(inst, self.layout)(batch, rows).T[:, :, None])
        operands = np.concatenate([np.broadcast_to(c, (count, 1)).astype(np.int64) for c in columns], axis=1)
        words = batch.regs[rows, :32].view(np.uint32).astype(np.int64)
        values = (bits * (1 << np.arange(inst.exec_size))).sum(axis=1)
        places = np.stack([words[:, BUILTIN_OFFSETS[f"%group_id_{axis}"] // 4] for axis in "xyz"], axis=1)
        self.counts.receive({at: Records(values, 0 * values, places, batch.numbers[rows], operands)})


def runs() -> Iterator[tuple[Path, str]]:
    """The runs of kernels that test/run has, without what is done with the results."""
    for file in sorted((Path(__file__).parents[2] / "run").rglob("*.mlir")):
        lines = re.findall(r"RUN: xegpu-run %s ([^|\n]*)", file.read_text())
        shortened = (re.sub(r"--(engine|print)[ =]\S+|--stats|--strict-grf|-o \S+|\\", "", line) for line in lines)
        yield from dict.fromkeys((file, " ".join(line.split())) for line in shortened)


@pytest.mark.parametrize(("file", "line"), some(some(runs())), ids=lambda given: getattr(given, "stem", ""))
def test_native_code_counts_what_the_interpreter_does(file: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {name: value.split(",") for name, value in re.findall(r"--(\w+)[ =](\S+)", line)}
    grid, block = (tuple(map(int, options.pop(name, ["1"]))) for name in ("grid", "block"))
    kernel = xegpu_py.compile(file, **{name: int(v) if v.isdigit() else v for name, (v,) in options.items()})
    given = [parse_argument(word) for word in re.sub(r"--\w+[ =]\S+", "", line).split()]
    version, prepared = kernel.prepared(given, grid, block if "--block" in line else None)
    if version.program.prints:
        pytest.skip("the interpreter's buffer of prints is not among the counted ones")
    wanted = Interpreted(version, prepared, monkeypatch).counts
    found = counted(version, prepared).counts
    for one in (found, wanted):
        one.tables["waited"][:] = 0
    assert found.rows() == wanted.rows()
    assert (found.moved(), found.hottest) == (wanted.moved(), wanted.hottest)


def test_a_trace_that_ends_has_the_first_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_RECORDED_LANES", 1)
    kernel = xegpu_py.compile(Path(__file__).parents[3] / "examples" / "gemm_bf16.mlir")
    arrays = *(np.zeros((512, 512), bfloat16) for _ in range(2)), np.zeros((512, 512), np.float32)
    whole, part = (launched(kernel, arrays, 1, trace_limit=limit).counts.trace for limit in (1 << 20, 100))
    assert whole.complete and not part.complete and 100 <= len(part.lines) < len(whole.lines)
    assert (part.lines == whole.lines[: len(part.lines)]).all()
    assert (part.instructions == whole.instructions[: len(part.lines)]).all()


UNEVEN = """
gpu.module @kernels {
  gpu.func @uneven(%out: memref<16xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c10 = arith.constant 10 : index
    %one = arith.constant 1 : i32
    %thread = gpu.thread_id x
    %turns = arith.muli %thread, %c10 : index
    scf.for %i = %c0 to %turns step %c1 {
      memref.store %one, %out[%thread] : memref<16xi32>
    }
    gpu.barrier
    gpu.return
  }
}
"""


@pytest.mark.parametrize(("threads", "together"), [(8, 2), (11, 2), (12, 3), (64, 6)])
def test_workgroups_that_run_at_the_same_time(threads: int, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The accesses of as many workgroups as have so many threads are in the order of their times, then of threads."""
    monkeypatch.setattr(counts_module, "THREADS", threads)
    launch = launched(xegpu_py.compile(UNEVEN), (np.zeros(16, np.int32),), 6, 4)
    trace = launch.counts.trace
    found = [*zip((trace.threads // 4 // together).tolist(), trace.times.tolist(), trace.threads.tolist())]
    assert found == sorted(found) and len(found) == 6 * 60
    assert len({group for group, *_ in found}) == -(-6 // together)


def test_who_waits() -> None:
    found = profiled(UNEVEN, np.zeros(16, np.int32), block=4)
    (barrier,) = [row for row in found.rows if row.name == "barrier"]
    (store,) = [row for row in found.rows if row.category == "store"]
    turn = sum(r.executions == store.executions for r in found.rows if store.index - 9 < r.index < store.index + 9)
    # The last of four threads has 30 turns, the others 0, 10 and 20.
    assert store.executions == 60 and barrier.executions == 4
    assert 60 * (turn - 1) <= barrier.waited <= 60 * (turn + 2)


def test_a_profile_is_saved(tmp_path: Path) -> None:
    found = profiled(GATHER.format(stride=1, mask="true"), np.zeros(4096, np.float32), np.zeros(64, np.float32))
    found.save(tmp_path / "p.json")
    read = json.loads((tmp_path / "p.json").read_text())
    assert read["kernel"] == "gather"
    assert len(read["rows"]) == len(found.rows)
    with pytest.raises(ValueError, match=r"a profile is saved as \.json or \.html, but got 'p\.txt'"):
        found.save(tmp_path / "p.txt")
    # What the report shows of the launch is not in the file.
    restored = msgspec.json.decode((tmp_path / "p.json").read_bytes(), type=Profile, strict=False)
    with pytest.raises(ValueError, match="only the process that ran the kernel makes the report of its profile"):
        restored.html()


@xegpu_py.jit
def printing(X):
    xl.device_print("x", X[xl.program_id(0)])


def test_a_kernel_that_prints(capfd: pytest.CaptureFixture[str]) -> None:
    found = printing[2].profile(np.arange(2, dtype=np.int32))
    output, errors = capfd.readouterr()
    assert output.count("x") == 2 and errors == ""
    assert {row.executions for row in found.rows if row.category == "atomic"} == {2}


def test_without_bokeh_there_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.embed", None)
    found = profiled(GATHER.format(stride=1, mask="true"), np.zeros(4096, np.float32), np.zeros(64, np.float32))
    with pytest.raises(MissingExtra, match=r"the report needs 'bokeh': pip install 'xegpu-py\[profile\]'"):
        found.html()
    assert found._repr_html_().startswith("<table><caption>gather</caption>")


def test_the_tool_says_before_the_run_that_bokeh_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(SystemExit):
        xegpu_run.run(["no-such-file.mlir", "--profile", "x.html"])
    assert "--profile FILE.html needs 'bokeh': pip install 'xegpu-py[profile]'" in capsys.readouterr().err


@pytest.mark.parametrize(("threads", "shared"), [([0, 3], False), ([3, 4], True), ([4, 7, 5], False), ([0, 8], True)])
def test_the_line_with_most_atomics(threads: list[int], shared: bool) -> None:
    """Of two buffers, the second with three lines and a part of one; workgroups have four threads."""
    atomics = {"A": np.array([5, 0]), "B": np.zeros(50, int)}
    atomics["B"][[16, 31]] = 3, 4
    buffers = [Buffer("A", 64, 8), Buffer("none", 128, 8), Buffer("B", 256, 200)]
    # The line before has accesses of all, and so have the first lines.
    lines = np.r_[np.full(len(threads), 5), np.full(9, 4), np.full(9, 0), np.full(9, 1)]
    trace = SimpleNamespace(lines=lines, threads=np.r_[threads, np.arange(9), np.arange(9), np.arange(9)])
    counts = SimpleNamespace(buffers=buffers, _atomics=atomics, trace=trace, _group_size=4)
    assert Counts.hottest_line.fget(counts) == (7, shared)
    assert Counts.hottest_line.fget(SimpleNamespace(**{**vars(counts), "_atomics": {}})) == (0, False)


@pytest.mark.parametrize("seed", range(4))
def test_waits_at_barriers(seed: int) -> None:
    """Between two barriers a thread waits as long as the last of its workgroup takes longer; if all come to both."""
    rng = np.random.default_rng(seed)
    size, arrivals = 3, []
    waited = np.zeros(5, np.int64)
    paths = {}
    for group in (0, 1, 4):
        for thread in range(3 * group, 3 * group + size):
            clocks = np.cumsum(rng.integers(1, 50, rng.integers(1, 4)))
            paths[thread] = clocks
            arrivals += [(int(rng.integers(5)), thread, int(clock)) for clock in clocks]
    number = {(thread, clock): index for index, thread, clock in arrivals}
    for group in (0, 1, 4):
        own = [paths[thread] for thread in range(3 * group, 3 * group + size)]
        for phase in range(min(map(len, own))):
            took = [int(clocks[phase] - (clocks[phase - 1] if phase else 0)) for clocks in own]
            for thread, cycles in enumerate(took, 3 * group):
                waited[number[thread, int(paths[thread][phase])]] += max(took) - cycles
    columns = (np.array(column) for column in zip(*(arrivals[i] for i in rng.permutation(len(arrivals)))))
    counts = SimpleNamespace(_group_size=size, tables={"waited": np.zeros(5, np.int64)})
    Counts._wait(counts, *columns)
    assert counts.tables["waited"].tolist() == waited.tolist() and waited.any()


SEVERAL = """\
.version 3.8
.kernel "several"
.decl Table v_type=G type=uq num_elts=1 align=qword
.decl Places v_type=G type=uq num_elts=1 align=qword
.decl T v_type=G type=uq num_elts=8 align=GRF
.decl P v_type=G type=uq num_elts=16 align=GRF
.decl A v_type=G type=uq num_elts=16 align=GRF
.decl X v_type=G type=d num_elts=16 align=GRF
.input Table offset=64 size=8
.input Places offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    lsc_load.ugm (M1_NM, 1) T:d64x2t flat[Table]:a64
    lsc_load.ugm (M1_NM, 1) P:d64x16t flat[Places]:a64
    add (M1_NM, 8) A(0,0)<1> P(0,0)<1;1,0> T(0,0)<0;1,0>
    add (M1_NM, 8) A(1,0)<1> P(1,0)<1;1,0> T(0,1)<0;1,0>
    lsc_load.ugm (M1_NM, 16) X:d32 flat[A]:a64
    lsc_store.ugm (M1_NM, 16) flat[A]:a64 X:d32
    ret (M1, 1)
"""


def test_a_message_that_accesses_several_buffers() -> None:
    """Half of the lanes access one array, and half another one: each has its bytes, lines and distinct bytes."""
    kernel = Kernel.from_assembly(SEVERAL, target="bmg")
    x, y = np.arange(64, dtype=np.int32), np.arange(256, dtype=np.int32)
    table = xegpu_py.PointerTable([x, y])
    places = np.array([0, 4, 8, 8, 60, 64, 68, 252, *range(0, 1024, 128)])
    counts = launched(kernel, (table, places), 1).counts
    traffic = {(t.buffer, t.kind): (t.messages, t.bytes, t.lines, t.unique) for t in counts.moved()}
    of = {name.rpartition("[")[2]: name for name, _ in traffic if "[" in name}
    for kind in ("load", "store"):
        assert traffic[of["0]"], kind] == (1, 32, 3, 28)
        assert traffic[of["1]"], kind] == (1, 32, 8, 32)
    places[3] = 256
    with pytest.raises(DiagnosticError, match="'lsc_load' reads 4 bytes at .* over the end of"):
        launched(kernel, (table, places), 1)


@pytest.mark.parametrize("sizes", [(64,), (128,), (4,), (16,), (12,), (64, 4), (100,), (1, 2, 64)])
@pytest.mark.parametrize("step", [1, 4, 64])
def test_distinct_bytes_of_messages(sizes: tuple[int, ...], step: int) -> None:
    """Bytes of lines that are touched as a whole, and others, count once."""
    rng = np.random.default_rng(len(sizes) * step)
    buffer, touched = Buffer("x", 128, 1024), np.zeros(1024, bool)
    counts = Counts.__new__(Counts)
    counts._sample, counts._lines, counts._touched, counts._atomics, counts.traffic = False, {}, {}, {}, {}
    for _ in range(3):
        size = rng.choice(sizes, 6)
        start = rng.integers(0, (1024 - 128) // step, 6) * step
        for at, end in zip(start, start + size):
            touched[at:end] = True
        counts._touch(buffer, "load", 128 + start, 128 + start + size)
    found = np.zeros((16, 64), bool)
    found |= counts._lines.get(("x", "load"), np.zeros(16, bool))[:, None]
    found |= counts._touched.get(("x", "load"), found)
    assert np.flatnonzero(found).tolist() == np.flatnonzero(touched).tolist()
    counts._entry("x", "load")
    assert counts.moved()[0].unique == touched.sum()


def test_distinct_bytes_of_one_message() -> None:
    for size, at in itertools.product((1, 4, 8, 12, 16, 64, 72, 128), range(0, 72, 2)):
        counts = Counts.__new__(Counts)
        counts._sample, counts._lines, counts._touched, counts._atomics, counts.traffic = False, {}, {}, {}, {}
        counts._touch(Buffer("x", 128, 256), "load", *(np.array([128 + end]) for end in (at, at + size)))
        touched = np.zeros((4, 64), bool)
        touched |= counts._lines.get(("x", "load"), np.zeros(4, bool))[:, None]
        touched |= counts._touched.get(("x", "load"), touched)
        assert np.flatnonzero(touched).tolist() == [*range(at, at + size)]


@pytest.mark.parametrize("step", [1, 8, 64])
def test_atomics_on_each_dword(step: int) -> None:
    counts = Counts.__new__(Counts)
    counts._sample, counts._atomics = True, {}
    starts = 64 + np.array([0, 4, 4, 8, 1020, 4])
    counts._touch(Buffer("x", 64, 1022), "atomic", starts, starts + 4)
    found = counts._atomics["x"]
    assert len(found) == 256 and {n: found[n] for n in np.flatnonzero(found).tolist()} == {0: 1, 1: 3, 2: 1, 255: 1}


@pytest.mark.parametrize("size", [4, 64])
@pytest.mark.parametrize("length", [1, 4, 64, 100])
@pytest.mark.parametrize("kind", ["in order", "alike", "any", "masked"])
def test_lines_of_messages(size: int, length: int, kind: str) -> None:
    """Each line of each message once, in order."""
    rng = np.random.default_rng(length)
    starts = rng.integers(0, 1000, (5, 6))
    if kind in ("in order", "alike"):
        starts = np.cumsum(rng.integers(length, length + 9, (5, 6)), axis=1)
    if kind == "alike":
        starts = starts[0] + rng.integers(0, 9, (5, 1)) * 64
    valid = rng.random((5, 6)) < 0.6 if kind == "masked" else np.ones((5, 6), bool)
    found = lines_of(Segments(starts, starts + length, valid), size)
    expected = [
        sorted(
            {
                line
                for at, there in zip(row, shown)
                if there
                for line in range(at // size, (at + length - 1) // size + 1)
            }
        )
        for row, shown in zip(starts.tolist(), valid.tolist())
    ]
    assert found.counts.tolist() == [len(lines) for lines in expected]
    assert found.numbers.tolist() == [line for lines in expected for line in lines]
    # Messages that are alike but for their first lines are looked at once, and no more lines of a segment than it has.
    assert kind != "alike" or len(found.offsets) == 1
    widest = max((end - 1) // size - at // size for at, end in zip(starts[valid], (starts + length)[valid])) + 1
    assert found.offsets.shape[1] == 6 * widest
    assert size != LINE or lines_of(Segments(starts, starts + length, valid)).numbers.tolist() == found.numbers.tolist()


REDUCED = """\
.version 3.8
.kernel "k"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl At v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=d num_elts=16 align=GRF
.decl Y v_type=G type=d num_elts=16 align=GRF
.decl N v_type=G type=d num_elts=1 align=dword
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.input N offset=72 size=4
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    add (M1_NM, 1) At(0,0)<1> In(0,0)<0;1,0> 0x40:ud
    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[In]:a64
    cmp.lt (M1_NM, 16) P N(0,0)<0;1,0> 0x8:d
    add (M1_NM, 16) Y(0,0)<1> X(0,0)<1;1,0> 0x1:d
    (P) add (M1_NM, 16) Y(0,0)<1> Y(0,0)<1;1,0> 0x1:d
    (P) sel (M1_NM, 16) Y(0,0)<1> Y(0,0)<1;1,0> 0x0:d
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 Y:d32x16t
    ret (M1, 1)
"""


def test_instructions_that_counts_need() -> None:
    """Addresses, messages as loads of nothing, and arithmetic of the lanes that a predicate selects."""
    [program] = assembly.read(Source(REDUCED, "k.visaasm"))
    instructions = launches.reduced(program, target("pvcxt")).instructions
    assert [inst.name for inst in instructions] == [
        "add", "lsc_load", "cmp", "fence_sw", "add", "fence_sw", "lsc_load", "ret"
    ]  # fmt: skip
    assert [inst["dst"].var for inst in instructions if inst.name == "lsc_load"] == [None, None]
