"""Kernels of OpenCL C, compiled by ocloc for each target, on both engines, compared with numpy."""

from __future__ import annotations

import itertools
import math
import os
import re
import tracemalloc
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from effort import SHARE

from xegpu_py import opencl
from xegpu_py.extensions.opencl import compiler
from xegpu_py.extensions.opencl.abi import (
    Argument,
    Environment,
    KernelInfo,
    Parameter,
    ThreadMemory,
    array_for,
    dimensions,
    printed,
    value_bytes,
)
from xegpu_py.extensions.opencl.program import MAX_PRIVATE
from xegpu_py.extensions.profile.gpus import gpu
from xegpu_py.extensions.profile.time_model import predicted
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.target import TARGETS
from xegpu_py.visa.finalizer import DEVICES

needs_ocloc = pytest.mark.needs("ocloc")

SOURCE = r"""
__kernel void saxpy(__global float *x, __global float *y, float a) {
  size_t i = get_global_id(0);
  y[i] += a * x[i];
}
__kernel void ids(__global int *out) {
  size_t i = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
  out[i] = get_local_id(0) + 100 * get_local_id(1) + 10000 * get_local_id(2) + 1000000 * get_group_id(1);
}
__kernel void reduce(__global int *x, __global int *out, __local int *part) {
  __local int first;
  int l = get_local_id(0);
  part[l] = x[get_global_id(0)];
  if (!l) first = 1000;
  for (int s = get_local_size(0) / 2; s; s >>= 1) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < s) part[l] += part[l + s];
  }
  if (!l) out[get_group_id(0)] = part[0] + first;
}
__kernel void private_array(__global int *x, __global int *out) {
  int i = get_global_id(0);
  volatile int a[100];
  for (int k = 0; k < 100; k++) a[k] = x[i] + k;
  out[i] = a[x[i]];
}
__kernel void hello(int n) {
  if (get_global_id(0) == 3) printf("hi %d %s %.2f 100%%\n", n, "there", 1.5f);
}
__constant int table[5] = {3, 1, 4, 1, 5};
__kernel void lookup(__global int *out) { out[get_global_id(0)] = table[get_global_id(0) % 5]; }
struct pair { int a; float b; };
__kernel void swap(__global struct pair *p, struct pair by) {
  size_t i = get_global_id(0);
  p[i].a += by.a;
  p[i].b *= by.b;
}
int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__kernel void factorials(__global int *x) { x[get_global_id(0)] = factorial(get_local_id(0) & 15); }
__global int counter = 5;
__global int cleared[3];
__global int *where = &cleared[1];
__kernel void count(__global int *x) {
  if (atomic_inc(&counter) == 5) *where = 7;
  x[get_global_id(0)] = get_work_dim();
}
__kernel void counted(__global int *x) {
  x[0] = counter;
  for (int i = 0; i < 3; i++) x[i + 1] = cleared[i];
}
__kernel void out_of_bounds(__global int *x) { x[get_global_id(0) + 1] = 1; }
__kernel void beyond_array(__global int *x, __global int *out) {
  int t[8];
  for (int k = 0; k < 8; k++) t[k] = x[k];
  out[get_global_id(0)] = t[x[get_global_id(0)]];
}
__kernel void rotated(__global uint *x, __global ushort *y) {
  size_t i = get_global_id(0);
  y[i] = rotate(y[i], (ushort)-x[i]);
  x[i] = rotate(x[i], -x[i]);
}
"""


@pytest.fixture(scope="module", params=DEVICES if SHARE == 1 else ["cri", "dg2"])
def program(request: pytest.FixtureRequest) -> opencl.Program:
    return opencl.compile(SOURCE, target=request.param, engine="both")


@pytest.fixture(scope="module")
def on_bmg() -> opencl.Program:
    return opencl.compile(SOURCE, engine="jit", threads=1)


@needs_ocloc
@pytest.mark.parametrize(("count", "block"), [(256, 64), (150, 50), (7, 7)])
def test_workgroups_of_any_size(program: opencl.Program, count: int, block: int) -> None:
    x, y = np.arange(count, dtype=np.float32), np.ones(count, np.float32)
    done = program.saxpy[count, block](x, y, np.float32(2))
    np.testing.assert_array_equal(y, 2 * x + 1)
    assert done.threads >= count // 32


@needs_ocloc
def test_ids_in_three_dimensions(program: opencl.Program) -> None:
    found = np.zeros((4, 6, 10), np.int32)
    program.ids[(10, 6, 4), (5, 3, 2)](found)
    z, y, x = np.indices(found.shape)
    np.testing.assert_array_equal(found, x % 5 + 100 * (y % 3) + 10000 * (z % 2) + 1000000 * (y // 3))


@needs_ocloc
def test_negated_counts(program: opencl.Program) -> None:
    """IGC writes the sign into vISA, though not into its native code."""
    x, y = np.arange(64, dtype=np.uint32) * 0x1234567, np.arange(64, dtype=np.uint16) * 1001
    found, short = x.copy(), y.copy()
    program.rotated[64, 64](found, short)
    np.testing.assert_array_equal(found, (x >> (x & 31)) | (x << (-x.astype(np.int64) & 31).astype(np.uint32)))
    count = (x & 15).astype(np.uint16)
    np.testing.assert_array_equal(short, (y >> count) | (y << ((16 - count) & 15)))


@needs_ocloc
def test_local_memory_of_both_kinds(program: opencl.Program) -> None:
    x, found = np.arange(256, dtype=np.int32), np.zeros(4, np.int32)
    program.reduce[256, 64](x, found, opencl.local(256))
    np.testing.assert_array_equal(found, x.reshape(4, 64).sum(1) + 1000)


@needs_ocloc
def test_private_memory(program: opencl.Program) -> None:
    x, found = (np.arange(128) % 100).astype(np.int32), np.zeros(128, np.int32)
    program.private_array[128, 64](x, found)
    np.testing.assert_array_equal(found, 2 * x)


@needs_ocloc
def test_printf_and_constants(program: opencl.Program, capsys: pytest.CaptureFixture[str]) -> None:
    program.hello[16, 16](np.int32(7))
    assert capsys.readouterr().out == "hi 7 there 1.50 100%\n"
    found = np.zeros(20, np.int32)
    program.lookup[20, 20](found)
    np.testing.assert_array_equal(found, [3, 1, 4, 1, 5] * 4)


@needs_ocloc
def test_structures(program: opencl.Program) -> None:
    kind: Any = np.dtype([("a", np.int32), ("b", np.float32)])
    pairs = np.array([(n, n / 2) for n in range(32)], kind)
    program.swap[32, 32](pairs, np.array((5, 4.0), kind))
    np.testing.assert_array_equal(pairs["a"], np.arange(32) + 5)
    np.testing.assert_array_equal(pairs["b"], np.arange(32) * 2.0)


@needs_ocloc
def test_recursion_in_many_threads(program: opencl.Program) -> None:
    found = np.zeros(500, np.int32)
    program.factorials[500, 50](found)
    wanted = [math.factorial(n % 50 & 15) & 0xFFFFFFFF for n in range(500)]
    np.testing.assert_array_equal(found.view(np.uint32), wanted)


@needs_ocloc
def test_variables_of_the_program_keep_their_values(on_bmg: opencl.Program, tmp_path: Path) -> None:
    on_bmg.save(tmp_path / "program")
    program = opencl.load(tmp_path / "program", engine="jit", threads=1)
    dimensions, found = np.zeros(64, np.int32), np.zeros(4, np.int32)
    program.count[64, 32](dimensions)
    program.count[(64, 1), 32](dimensions)
    assert dimensions.tolist() == [2] * 64
    program.counted[1, 1](found)
    assert found.tolist() == [5 + 128, 0, 7, 0]


@needs_ocloc
def test_profiles_name_the_lines_of_the_source(program: opencl.Program) -> None:
    x, y = np.ones(256, np.float32), np.ones(256, np.float32)
    found = program.saxpy[256, 64].profile(x, y, np.float32(2))
    np.testing.assert_array_equal(y, 3)
    assert {line: counts["bytes"] for file, line, counts in found.lines if file == "<string>"}[4] == 3 * 1024
    assert {(t.buffer, t.kind): t.unique for t in found.traffic} == {
        ("x", "load"): 1024, ("y", "load"): 1024, ("y", "store"): 1024,
    }  # fmt: skip


@needs_ocloc
def test_fidelity_reports_name_the_arguments(program: opencl.Program) -> None:
    x, y = np.full(256, np.nan, np.float32), np.ones(256, np.float32)
    found = program.saxpy[256, 64].fidelity(x, y, np.float32(2), only=["nan-bits"])
    assert np.isnan(y).all() and not np.signbit(y).any()
    rule = next(rule for rule in found.rules if rule.choice == "nan-bits")
    assert found.runs == 2 and str(rule.tried[0].outputs[0]) == "y: 256 of 256, NaN bits"
    assert [(line.file, line.line) for line in rule.lines] == [("<string>", 4)]


@needs_ocloc
def test_a_sample_of_workgroups_predicts_the_time(on_bmg: opencl.Program) -> None:
    x, y = np.ones(1 << 24, np.float32), np.ones(1 << 24, np.float32)
    launch = on_bmg.saxpy[1 << 24, 256]
    found = predicted(launch.counted((x, y, np.float32(2)), "sample"), "b580")
    # `y` is loaded and stored.
    moved = 3 * x.nbytes
    assert y[0] == 1 and found.seconds > moved / gpu("b580").memory_rate
    assert found.bytes["memory"] == pytest.approx(moved, rel=0.01)


@needs_ocloc
def test_mistakes_are_told(on_bmg: opencl.Program) -> None:
    x = np.zeros(64, np.int32)
    with pytest.raises(DiagnosticError, match=r"<string>:51: error: .* over the end of 'x'"):
        on_bmg.out_of_bounds[64, 64](x)
    with pytest.raises(
        DiagnosticError, match=r"<string>:55: error: .* at byte 32 of register variable 'V\d+', which has 32 bytes"
    ):
        on_bmg.beyond_array[16, 16](x + 8, x)
    with pytest.raises(TypeError, match=r"takes 1 arguments \(int\* x\), but got 2"):
        on_bmg.out_of_bounds[64, 64](x, x)
    with pytest.raises(TypeError, match="argument 'a' of kernel 'saxpy' must be a number of numpy's"):
        on_bmg.saxpy[64, 64](np.zeros(64, np.float32), np.zeros(64, np.float32), 2)
    with pytest.raises(ValueError, match="must divide"):
        on_bmg.saxpy[64, 48]
    with pytest.raises(AttributeError, match="no kernel 'nothing'; there are beyond_array, count, counted, factorials"):
        _ = on_bmg.nothing
    with pytest.raises(
        TypeError, match=r"argument 'x' .* is float\*, an array of float32, but got an array of float64"
    ):
        on_bmg.saxpy[64, 64](np.zeros(64), np.zeros(64, np.float32), np.float32(2))
    with pytest.raises(
        TypeError, match=r"argument 'a' .* is float, a number of type float32, but got one of type float64"
    ):
        on_bmg.saxpy[64, 64](np.zeros(64, np.float32), np.zeros(64, np.float32), np.float64(2))
    with pytest.raises(TypeError, match="argument 'by' .* is struct pair, which has 8 bytes, but got 4 bytes"):
        on_bmg.swap[1, 1](np.zeros(8, np.uint8), np.zeros(4, np.uint8))
    with pytest.raises(ValueError, match="needs 10010.* bytes of local memory, more than 131072"):
        on_bmg.reduce[64, 64](x, x, opencl.local(10**6 + 1000))


@needs_ocloc
def test_mistakes_of_a_program(tmp_path: Path) -> None:
    file = tmp_path / "a b" / "wrong.cl"
    file.parent.mkdir()
    file.write_text("__kernel void k(flaot x) {}\n")
    with pytest.raises(opencl.CompileError) as caught:
        opencl.compile(file)
    assert str(caught.value) == (
        f"{file}:1:17: error: unknown type name 'flaot'\n__kernel void k(flaot x) {{}}\n                ^"
    )
    (file.parent / "included.h").write_text("int n = ;\n")
    file.write_text('#include "included.h"\n')
    with pytest.raises(opencl.CompileError, match=r"a b/included.h:1:9: error: expected expression"):
        opencl.compile(file)
    with pytest.raises(opencl.CompileError, match="Unrecognized build options: -nothing"):
        opencl.compile(SOURCE, options="-nothing")
    with pytest.raises(opencl.CompileError, match="the program has no kernel"):
        opencl.compile("int f(int n) { return n; }\n")
    with pytest.raises(opencl.CompileError, match="not a program that"):
        opencl.load(file)


def test_files_that_hold_more_than_a_program_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "bomb.clp"
    packer = zlib.compressobj(9)
    # Each of the equal parts can be read after any number of others.
    first, other = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    file.write_bytes(compiler._MAGIC + first + other * 1023)
    tracemalloc.start()
    try:
        with pytest.raises(opencl.CompileError, match=f"holds more than {compiler.LARGEST} bytes"):
            opencl.load(file)
        assert tracemalloc.get_traced_memory()[1] < 4 * compiler.LARGEST
    finally:
        tracemalloc.stop()
    pipe = tmp_path / "pipe.clp"
    os.mkfifo(pipe)
    with pytest.raises(opencl.CompileError, match="it is not a regular file"):
        opencl.load(pipe)


def test_programs_of_the_largest_size_are_read_again() -> None:
    made = compiler.CompiledProgram("a.cl", "", "pvc", compiler.abi.Info(), (), {"constant": b""}, {}, ())
    room = compiler.LARGEST - len(zlib.decompress(made.to_bytes()[len(compiler._MAGIC) :])) - 3
    largest = msgspec.structs.replace(made, memory={"constant": bytes(room)})
    assert compiler.CompiledProgram.from_bytes(largest.to_bytes(), "a.clp") == largest
    with pytest.raises(opencl.CompileError, match="files of programs hold at most"):
        msgspec.structs.replace(made, memory={"constant": bytes(room + 1)}).to_bytes()


@needs_ocloc
def test_races_are_told_at_the_line_of_the_source(tmp_path: Path) -> None:
    file = tmp_path / "race.cl"
    file.write_text(
        "__kernel void race(__global int *x, __local int *t) {\n  int l = get_local_id(0);\n  t[l] = l;\n"
        "  x[get_global_id(0)] = t[(l + 40) % 64];\n}\n"
    )
    program = opencl.compile(file, check="races")
    with pytest.raises(DiagnosticError, match="race.cl:4: error: 'lsc_load' reads byte 160 of the shared local memory"):
        program.race[64, 64](np.zeros(64, np.int32), opencl.local(256))


@pytest.mark.parametrize(
    ("kind", "element"),
    [
        ("uchar3", (np.dtype(np.uint8), 3)),
        ("half*", (np.dtype(np.float16), 1)),
        ("ulong16*", (np.dtype(np.uint64), 16)),
        ("double", (np.dtype(np.float64), 1)),
        ("point2", None),
        ("struct point*", None),
        ("", None),
    ],
)
def test_elements_of_types(kind: str, element: tuple[np.dtype, int] | None) -> None:
    assert Parameter(0, "x", f"{kind};8").element == element


@pytest.mark.parametrize("kind", ["char*", "uchar*", "uchar16*", "char3*"])
def test_pointers_to_bytes_take_any_array(kind: str) -> None:
    parameter = Parameter(0, "x", f"{kind};8")
    for array in (
        np.zeros(8, np.float32),
        np.zeros((2, 4), np.int64),
        np.zeros(16, np.uint8),
        np.zeros(4, np.complex64),
    ):
        assert array_for(array, parameter, "x") is array


@pytest.mark.parametrize(
    ("kind", "array", "message"),
    [
        ("char16*", np.zeros(3, np.float32), "x is char16*, elements of 16 bytes, but got an array of 12 bytes"),
        ("uchar3*", np.zeros(3, np.uint8), "x is uchar3*, elements of 4 bytes, but got an array of 3 bytes"),
        ("char*", np.array([None]), "x is char*, an array of int8, but got an array of object"),
        ("short*", np.zeros(2, np.int8), "x is short*, an array of int16, but got an array of int8"),
        ("int*", np.zeros(2, np.float32), "x is int*, an array of int32, but got an array of float32"),
    ],
)
def test_arrays_that_pointers_do_not_take(kind: str, array: np.ndarray, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        array_for(array, Parameter(0, "x", f"{kind};8"), "x")


@needs_ocloc
def test_buffers_of_bytes() -> None:
    text = "__kernel void f(__global char *x, ulong at) { ((__global float *)(x + at))[get_global_id(0)] += 1; }\n"
    x = np.zeros((8, 4), np.float32)
    opencl.compile(text, engine="both").f[16, 16](x, np.uint64(64))
    np.testing.assert_array_equal(x, np.repeat(np.array([0, 1], np.float32), 16).reshape(8, 4))


def test_where_ocloc_is(tmp_path: Path) -> None:
    """A path is of this folder, also where ocloc runs in another one; a name is looked for."""
    assert compiler._program(os.path.join("build", "ocloc")) == os.path.abspath("build/ocloc")
    assert compiler._program(tmp_path / "ocloc") == str(tmp_path / "ocloc")
    assert compiler._program("ocloc-8") == "ocloc-8"


def test_without_ocloc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XEGPU_PY_ORACLES", "off")
    for target in TARGETS.keys() - {"any", "virtual"}:
        with pytest.raises(opencl.CompileError, match="ocloc is not installed"):
            opencl.compile(SOURCE, target=target)
    with pytest.raises(ValueError, match="'target' must be one of pvc, pvcxt, dg2, bmg, lnl, ptl, cri, but got 'any'"):
        opencl.compile(SOURCE, target="any")


def test_addresses_in_the_memory_of_a_program() -> None:
    """An address is added to the offset that stands there: whole, or one of its halves, each modulo its size."""
    memory = {"constant": bytes(8) + (12).to_bytes(8, "little"), "global": bytes(4) + (19).to_bytes(4, "little")}
    symbols = {"a": ("constant", 4), "b": ("global", 8)}
    places = (("constant", 8, 1, "b"), ("constant", 0, 2, "a"), ("global", 0, 3, "b"), ("global", 4, 2, "b"))
    made = compiler.CompiledProgram(
        "a.cl", "", "pvc", compiler.abi.Info(), (), memory, symbols, tuple(compiler.Relocation(*p) for p in places)
    )
    found = compiler.relocated(made, {"constant": 0x12_0000_0000, "global": 0x34_FFFF_FFF0})
    assert found == {
        "constant": (4).to_bytes(8, "little") + (0x34_FFFF_FFF8 + 12).to_bytes(8, "little"),
        "global": (0x34).to_bytes(4, "little") + (11).to_bytes(4, "little"),
    }
    assert memory["constant"][0] == 0


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (
            "1:3:5: warning: unused\n1:3:6: warning: too\nk.cl:4:1: error: bad\nk.cl:2:1: note: here\n"
            "k.cl:1:1: note: there\nh.h:1:2: fatal error: worse\n"
            "Build failed with error code: -11\nk.cl:9:9: error: again",
            [("error", "bad", "f", 4, 1), ("error", "worse", "h.h", 1, 2), ("warning", "unused", "f", 3, 5),
             ("warning", "too", "f", 3, 6)],
        ),
        ("k.cl:2:1: note: here", [("error", "ocloc does not accept the program: k.cl:2:1: note: here", "f", 0, 0),
                                  ("note", "here", "f", 2, 1)]),
        ("k.cl:3:5: warning: unused", [("error", "ocloc does not accept the program: k.cl:3:5: warning: unused", "f",
                                        0, 0), ("warning", "unused", "f", 3, 5)]),
        ("", [("error", "ocloc does not accept the program: it printed nothing", "f", 0, 0)]),
    ],
)  # fmt: skip
def test_what_ocloc_prints_of_a_program_that_it_refuses(printed: str, expected: list[tuple[Any, ...]]) -> None:
    refusal = compiler._refusal(printed, "f", "k.cl", SOURCE)
    found = [(d.severity, d.message, d.position.file, d.position.line, d.position.column) for d in refusal.diagnostics]
    assert found == expected and refusal.sources == [Source(SOURCE, "f")]
    notes = [[note.message for note in d.notes] for d in refusal.diagnostics]
    assert notes == [["here", "there"] if d[1] == "bad" else [] for d in expected]


@pytest.mark.parametrize(
    ("required", "size", "expected"),
    [
        ((), 64, ((1, 1, 1), (64, 1, 1), 1)),
        ((), (96, 32), ((3, 1, 1), (32, 1, 1), 1)),
        ((), ((96, 4), (32, 2)), ((3, 2, 1), (32, 2, 1), 2)),
        ((), ((8, 8, 6), (4, 8, 3)), ((2, 1, 2), (4, 8, 3), 3)),
        ((), (2048, 1024), ((2, 1, 1), (1024, 1, 1), 1)),
        ((16, 2, 1), ((32, 4), None), ((2, 2, 1), (16, 2, 1), 2)),
        ((16, 2, 1), ((32, 4), (16, 2)), ((2, 2, 1), (16, 2, 1), 2)),
        ((16, 2, 1), ((32, 4), (32, 2)), "kernel 'f' requires local size (16, 2, 1), but got (32, 2, 1)"),
        ((16, 2, 1), ((8, 4), None), "local size (16, 2, 1) must divide global size (8, 4, 1)"),
        ((), (96, 36), "local size (36, 1, 1) must divide global size (96, 1, 1)"),
        ((), (2050, 1025), "local size (1025, 1, 1) has 1025 work items; a workgroup has at most 1024"),
        ((), (64, 32, 1), "kernel 'f' takes [global size, local size], but got (64, 32, 1)"),
        ((), (0, 1), "global size"),
        ((), (64, 0), "local size"),
    ],
)
def test_global_and_local_sizes(required: tuple[int, ...], size: Any, expected: Any) -> None:
    kernel = SimpleNamespace(name="f", info=KernelInfo("f", Environment(16, required_work_group_size=required)))
    if isinstance(expected, str):
        with pytest.raises((TypeError, ValueError), match=re.escape(expected)):
            opencl.Kernel.__getitem__(kernel, size)
        return
    launch = opencl.Kernel.__getitem__(kernel, size)
    assert msgspec.structs.astuple(launch)[1:4] == expected


BASE = Argument("private_base_stateless", 96, 8)
LANES_OWN = ThreadMemory("global", "private_space", 24, is_simt_thread=True)


@pytest.mark.parametrize(
    ("spilled", "arguments", "parts", "sizes"),
    [
        (None, (), (), {}),
        (0, (), (LANES_OWN,), {}),
        (320, (), (LANES_OWN,), {"%scratchloc": 320}),
        (None, (BASE,), (LANES_OWN,), {"base": 24 * 16}),
        (64, (BASE,), (LANES_OWN, ThreadMemory("global", "private_space", 100)), {"%scratchloc": 64, "base": 484}),
        (None, (BASE,), (ThreadMemory("slm", "private_space", 100),), {}),
    ],
)
def test_the_private_memory_of_threads(
    spilled: int | None, arguments: tuple[Argument, ...], parts: tuple[ThreadMemory, ...], sizes: dict[str, int]
) -> None:
    kernel = SimpleNamespace(
        name="f",
        program=SimpleNamespace(attributes={} if spilled is None else {"SpillMemOffset": spilled}),
        info=KernelInfo("f", Environment(16), arguments, parts),
        inputs={"base": 96, "other": 104},
    )
    memory = DeviceMemory()
    memories = opencl.Kernel.private(kernel, memory, 3)
    assert {m.input: m.bytes for m in memories} == sizes
    ranges = [range(m.address, m.address + 3 * m.bytes) for m in memories]
    assert all(a.stop <= b.start or b.stop <= a.start for a, b in itertools.combinations(ranges, 2))
    if sizes:
        most = MAX_PRIVATE // max(sizes.values())
        with pytest.raises(ValueError, match=rf"'f' needs {max(sizes.values())} bytes .* of {most + 1} threads, more"):
            opencl.Kernel.private(kernel, DeviceMemory(), most + 1)


RECORDS = [
    (b"%d", 1, "<i1", -5, "-5"),
    (b"%hhx", 1, "<i1", -1, "ff"),
    (b"%hu", 2, "<i2", -1, "65535"),
    (b"%hd", 3, "<i4", 0x18000, "-32768"),
    (b"%+5i", 3, "<i4", 7, "   +7"),
    (b"%o", 3, "<i4", 8, "10"),
    (b"%#o", 3, "<i4", 8, "010"),
    (b"%#.4o", 3, "<i4", 8, "0010"),
    (b"%#6o", 3, "<i4", 8, "   010"),
    (b"%#o", 3, "<i4", 0, "0"),
    (b"%#x", 3, "<i4", 0, "0"),
    (b"%#x", 3, "<i4", 255, "0xff"),
    (b"%d", 3, "<i4", 1 << 31, "-2147483648"),
    (b"%u", 3, "<i4", -(1 << 31), "2147483648"),
    (b"%llX", 6, "<i8", -2, "FFFFFFFFFFFFFFFE"),
    (b"%ld", 6, "<i8", 1 << 62, str(1 << 62)),
    (b"%p", 7, "<u8", 0xABC0, "0xabc0"),
    (b"%lu", 7, "<u8", (1 << 64) - 1, str((1 << 64) - 1)),
    (b"%c", 3, "<i4", 65, "A"),
    (b"%3c", 3, "<i4", 0x141, "  A"),
    (b"%.2f", 4, "<f4", 1.5, "1.50"),
    (b"%E", 8, "<f8", 1e300, "1.000000E+300"),
    (b"%g", 4, "<f4", 0.5, "0.5"),
    (b"%a", 8, "<f8", 1.0, "0x1.0000000000000p+0"),
    (b"%A", 8, "<f8", 10.0, "0X1.4000000000000P+3"),
    (b"%v2hhd", 9, "<i1", [1, -2], "1,-2"),
    (b"%v3hd", 10, "<i2", [1, -2, 3], "1,-2,3"),
    (b"%v4hlx", 11, "<i4", [1, 2, 3, 15], "1,2,3,f"),
    (b"%v2lld", 12, "<i8", [-1, 1 << 40], f"-1,{1 << 40}"),
    (b"%v2hlf", 13, "<f4", [0.5, 2], "0.500000,2.000000"),
    (b"%.1v8lf", 14, "<f8", range(8), ",".join(f"{n}.0" for n in range(8))),
]


def test_records_of_printf() -> None:
    """Each kind of number, in turn with the next ones; each kind of a number takes whole words of four bytes."""
    strings, data, expected = b"skipped\0", b"", ""
    for format, kind, dtype, value, text in RECORDS:
        data += np.uint64(0x1000 + len(strings)).tobytes() + np.uint32(kind).tobytes()
        strings += b"<" + format + b"%%>\0"
        values = np.array(value if kind < 9 else list(value)).astype(dtype)
        data += (np.uint32(values.size).tobytes() if kind >= 9 else b"") + values.tobytes()
        data += bytes(-values.nbytes % 4)
        expected += f"<{text}%>"
    for address, text in ((0x1000, "skipped"), (0x1000 + 5, "ed"), (0xFFF, "(null)"), (0x2000, "  (null)")):
        data += np.uint64(0x1000 + len(strings)).tobytes() + np.uint32(5).tobytes() + np.uint64(address).tobytes()
        strings += (b"%8s" if text[0] == " " else b"%s") + b"\0"
        expected += text
    data += np.uint64(0x1000 + len(strings)).tobytes()
    strings, expected = strings + b"end", expected + "end"
    memory = {0x900: b"other", 0x1000: strings}
    high = 0xFF << 56
    record = np.uint64(high + 1).tobytes()
    assert printed(np.uint32(12).tobytes() + record, {high: b"xhigh"}) == "high"
    whole = np.uint32(4 + len(data)).tobytes() + data
    assert printed(whole, memory) == expected
    # Bytes behind the offset of the next record are no record, and neither is a format without the end of its record.
    assert printed(whole + data, memory) == expected
    assert printed(np.uint32(1 << 30).tobytes() + data, memory) == expected
    first = RECORDS[0][-1]
    assert printed(np.uint32(4 + 16).tobytes() + data, memory) == f"<{first}%>"
    assert printed(np.uint32(4 + 7).tobytes() + data, memory) == printed(np.uint32(4).tobytes() + data, memory) == ""


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("char;1", np.int8(-1), b"\xff"),
        ("uint3;16", np.arange(3, dtype=np.uint32), np.array([0, 1, 2, 0], np.uint32).tobytes()),
        ("uint3;16", np.arange(4, dtype=np.uint32), np.arange(4, dtype=np.uint32).tobytes()),
        ("half2", np.ones(2, np.float16), b"\x00\x3c" * 2),
        ("struct pair;8", np.zeros(2, np.float32), bytes(8)),
        ("struct pair", np.zeros(3, np.uint8), bytes(3)),
        ("long;8", 3, "x must be a number of numpy's, such as np.float32(2), but got int"),
        ("long;8", np.int32(3), "x is long, a number of type int64, but got one of type int32"),
        ("int;4", np.zeros(2, np.int32), "x is int, a number of type int32, but got 2 of type int32"),
        ("int3;16", np.zeros(2, np.int32), "x is int3, 3 numbers of type int32, but got 2 of type int32"),
        ("int2;8", np.zeros(4, np.int32), "x is int2, 2 numbers of type int32, but got 4 of type int32"),
        ("struct pair;8", np.zeros(7, np.uint8), "x is struct pair, which has 8 bytes, but got 7 bytes"),
        ("struct pair;8", np.zeros((), "u1,u4"), "x is struct pair, which has 8 bytes, but got 5 bytes; "
         "np.dtype(..., align=True) pads structures as C does"),
    ],
)  # fmt: skip
def test_bytes_of_values(kind: str, value: Any, expected: bytes | str) -> None:
    parameter = Parameter(0, "x", kind)
    if isinstance(expected, bytes):
        assert value_bytes(value, parameter, "x") == expected
        return
    with pytest.raises(TypeError) as found:
        value_bytes(value, parameter, "x")
    assert str(found.value) == expected


def test_extents_of_a_launch() -> None:
    found = {
        kind: dimensions(kind, (2, 3, 4), (16, 5, 7), 3)
        for kind in ("global_id_offset", "enqueued_local_size", "local_size", "global_size", "group_count",
                     "work_dimensions", "indirect_data_pointer", "scratch_pointer", "buffer_offset", "arg_byvalue")
    }  # fmt: skip
    assert found.pop("arg_byvalue") is None
    assert {kind: np.frombuffer(value, np.uint32).tolist() for kind, value in found.items()} == {
        "global_id_offset": [0, 0, 0], "enqueued_local_size": [16, 5, 7], "local_size": [16, 5, 7],
        "global_size": [32, 15, 28], "group_count": [2, 3, 4], "work_dimensions": [3], "indirect_data_pointer": [0, 0],
        "scratch_pointer": [0, 0], "buffer_offset": [0],
    }  # fmt: skip
