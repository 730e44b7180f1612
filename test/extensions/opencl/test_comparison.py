"""Programs compiled twice: by two compilers, or with two sets of options."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xegpu_py import opencl
from xegpu_py.extensions.opencl import comparison
from xegpu_py.extensions.opencl.comparison import _LastStores
from xegpu_py.extensions.opencl.program import LocalMemory
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source
from xegpu_py.numerics.differences import Unlike
from xegpu_py.runtime.device_memory import BASE, DeviceMemory
from xegpu_py.tools import xegpu_run
from xegpu_py.visa.program import Instruction

SOURCE = """
// RUN overwritten arange:f32:64 zeros:f32:64 global=64 local=32
__kernel void overwritten(__global float *x, __global float *y) {
  size_t i = get_global_id(0);
  y[i] = x[i] * 1.1f + 0.3f;
  if (i == 40) y[3] = N;
}
// RUN later zeros:i32:96 zeros:i32:96 global=96 local=32
__kernel void later(__global int *a, __global int *b) {
  size_t i = get_global_id(0);
  b[i] = i * (i > 90 ? N : 1);
  a[i] = i > 3 ? N : 7;
}
// RUN same arange:i32:64 local:128 global=64 local=32
__kernel void same(__global int *x, __local int *t) {
  int l = get_local_id(0);
  t[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  x[get_global_id(0)] = t[31 - l];
}
// RUN beyond zeros:i32:8 global=8
__kernel void beyond(__global int *x) {
  x[get_global_id(0) + N - 1] = 1;
}
// RUN prints global=4
__kernel void prints(void) {
  printf("%d\\n", (int)get_global_id(0) / N);
}
// RUN once zeros:i32:8 global=8 local=8
__global int counter = 3;
__kernel void once(__global int *x) {
  x[get_global_id(0)] = atomic_inc(&counter);
}
"""


@pytest.fixture(scope="module")
def compared() -> dict[str, opencl.Comparison]:
    found = opencl.compare(SOURCE, options=("-DN=1", "-DN=2 -cl-opt-disable"))
    return {c.kernel: c for c in found}


@pytest.mark.needs("ocloc")
def test_the_first_line_whose_value_differs(compared: dict[str, opencl.Comparison]) -> None:
    """The store that leaves the value, though an earlier one has stored some of its bytes."""
    found = compared["overwritten"]
    assert [s and s.line for s in found.stores] == [6, 6]
    assert found.versions == ("-DN=1", "-DN=2 -cl-opt-disable")
    array = found.arrays["y"]
    assert (list(found.arrays), array.count, array.index, array.values) == (["y"], 1, (3,), ("1.0", "2.0"))
    [error] = found.diagnostics()
    assert str(error.position) == "<string>:6"
    assert error.message == (
        "kernel 'overwritten' stores other values with -DN=2 -cl-opt-disable than with -DN=1, first here"
    )
    assert [n.message for n in error.notes] == [
        "'y': 1 of 64 elements differ, by up to 8388608 units in the last place, "
        "first [3]: 1.0 with -DN=1, 2.0 with -DN=2 -cl-opt-disable"
    ]
    # Of two arrays the one that is stored first, though the other one differs at a lower index.
    found = compared["later"]
    assert [s and s.line for s in found.stores] == [11, 11]
    assert {n: (a.count, a.index) for n, a in found.arrays.items()} == {"a": (92, (4,)), "b": (5, (91,))}
    assert "  b[i] = i" in str(found)


@pytest.mark.needs("ocloc")
def test_equal_results(compared: dict[str, opencl.Comparison]) -> None:
    for name in ("same", "once"):
        found = compared[name]
        assert found.equal and found.summary == "equal" and str(found) == f"kernel '{name}': equal"


@pytest.mark.needs("ocloc")
def test_other_ends(compared: dict[str, opencl.Comparison]) -> None:
    found = compared["beyond"]
    assert not found.equal and found.summary == "fails with -DN=2 -cl-opt-disable"
    [error] = found.diagnostics()
    assert error.position.line == 23 and "over the end of 'x'" in error.message
    assert error.notes[-1].message == "kernel 'beyond' with -DN=2 -cl-opt-disable"
    found = compared["prints"]
    assert found.summary == "the printed lines differ"
    assert found.diagnostics()[0].message.startswith("kernel 'prints' prints other lines with")


@pytest.mark.needs("ocloc")
def test_calls() -> None:
    """Launches that the caller states; their arrays do not change."""
    text = "__kernel void add(__global int *x, __global int *y) { x[get_global_id(0)] += y[get_global_id(0)] * N; }"
    x = np.arange(16, dtype=np.int32)
    strided, ones = np.arange(32, dtype=np.int32).reshape(2, 16)[:, ::2], np.ones(16, np.int32)
    pairs = [(x, x), (strided, ones), (x, np.zeros(16, np.int32))]
    calls = [opencl.Call("add", pair, 16) for pair in pairs]
    twice, gaps, zero = opencl.compare(text, calls, target="dg2", options=["-DN=1", "-DN=3"])
    assert x.tolist() == list(range(16)) and strided.ravel().tolist() == list(range(0, 32, 2))
    assert (twice.arrays["x"].count, twice.arrays["x"].before, twice.arrays["x"].after) == (15, 2, 4)
    assert (gaps.arrays["x"].count, gaps.arrays["x"].index, gaps.stores[0].line) == (16, (0, 0), 1)
    assert zero.equal
    with pytest.raises(ValueError, match="there is no kernel 'sub'; there are add"):
        opencl.compare(text, [opencl.Call("sub", (), 1)], options=["-DN=1", "-DN=3"])
    with pytest.raises(opencl.CompileError, match="no comment '// RUN kernel ARG"):
        opencl.compare(text, options=["-DN=1", "-DN=3"])


@pytest.mark.needs("ocloc")
def test_errors_of_a_compiler() -> None:
    with pytest.raises(opencl.CompileError, match="undeclared identifier 'N'") as refused:
        opencl.compare("// RUN f global=1\n__kernel void f() { int n = N; }", options=("-DN=1", ""))
    assert refused.value.diagnostics[0].notes[-1].message == "with default options"
    with pytest.raises(opencl.CompileError, match="cannot run '/none/ocloc': No such file") as missing:
        opencl.compare("__kernel void f() { }", ocloc=("/none/ocloc", "ocloc"))
    assert missing.value.diagnostics[0].notes[-1].message == "with /none/ocloc"


@pytest.mark.needs("ocloc")
@pytest.mark.needs("ocloc-2022")
def test_two_versions_of_the_compiler() -> None:
    """IGC of 2022 writes another binary by default, and its vISA has no modern notation."""
    text = SOURCE.partition("// RUN beyond")[0]
    found = opencl.compare(text, target="dg2", ocloc=("ocloc-2022", "ocloc"), options="-DN=2")
    assert [c.versions for c in found] == [("ocloc-2022", "ocloc")] * 3
    assert all(c.equal for c in found), [c.summary for c in found]
    first, _, _ = opencl.compare(text, target="dg2", ocloc=("ocloc-2022", "ocloc"), options=("-DN=2", "-DN=1"))
    assert first.versions == ("ocloc-2022, -DN=2", "ocloc, -DN=1")
    assert [s and s.line for s in first.stores] == [6, 6]


@pytest.mark.needs("ocloc")
def test_a_kernel_that_is_not_supported() -> None:
    """It fails with both versions; other kernels are compared."""
    text = """
// RUN copy arange:i32:64 zeros:i32:64 global=16
__kernel void copy(__global int4 *x, __global int4 *y) { y[get_global_id(0)] = x[get_global_id(0)]; }
// RUN sample zeros:i32:4 global=4
__kernel void sample(__read_only image2d_t x) {}
"""
    copy, sample = opencl.compare(text, options=("", "-cl-opt-disable"))
    assert copy.equal and sample.summary == "fails with default options and with -cl-opt-disable"
    assert all(failure and "which no engine has" in str(failure) for failure in sample.failures)


NOWHERE = DiagnosticError([Diagnostic("error", "it stops", Position("k.cl", 3))])
DIFFERS = Unlike(1, 64, 0, 5, (3,), np.float32(1), np.float32(2))
COMPARISONS: list[tuple[dict[str, Any], str, list[str]]] = [
    ({}, "equal", []),
    (
        {"arrays": {"y": DIFFERS}, "printed": True},
        "'y': 1 of 64 elements differ, by up to 5 units in the last place; the printed lines differ",
        [
            "k.cl: error: kernel 'k' stores other values with new than with old, first here",
            "k.cl: note: 'y': 1 of 64 elements differ, by up to 5 units in the last place, "
            "first [3]: 1.0 with old, 2.0 with new",
        ],
    ),
    (
        {"arrays": {"y": DIFFERS}, "stores": (None, Position("k.cl", 2))},
        "'y': 1 of 64 elements differ, by up to 5 units in the last place",
        ["k.cl:2: error: kernel 'k' stores other values with new than with old, first here"],
    ),
    (
        {"arrays": {"y": DIFFERS}, "stores": (Position("k.cl", 1), Position("k.cl", 2))},
        "'y': 1 of 64 elements differ, by up to 5 units in the last place",
        [
            "k.cl:1: error: kernel 'k' stores other values with new than with old, first here",
            "k.cl:2: note: with new the store is here",
        ],
    ),
    (
        {"printed": True},
        "the printed lines differ",
        ["k.cl: error: kernel 'k' prints other lines with new than with old"],
    ),
    (
        {"failures": (NOWHERE, None)},
        "fails with old",
        ["k.cl:3: error: it stops", "k.cl:3: note: kernel 'k' with old"],
    ),
    ({"failures": (NOWHERE, NOWHERE)}, "fails with old and with new", ["k.cl:3: note: kernel 'k' with new"]),
]


@pytest.mark.parametrize(("differing", "summary", "lines"), COMPARISONS)
def test_texts_of_comparisons(differing: dict[str, Any], summary: str, lines: list[str]) -> None:
    found = opencl.Comparison("k", ("old", "new"), source=Source("", "k.cl"), **differing)
    assert found.summary == summary and found.equal == (not differing)
    text = str(found)
    assert [line for line in text.splitlines() if line in lines] == lines
    assert text.count("error:") == len(found.diagnostics())
    assert ("stores" in text, "prints" in text) == ("arrays" in differing, found.printed and "arrays" not in differing)
    if not differing:
        assert text == "kernel 'k': equal"


FAILURE = DiagnosticError([Diagnostic("error", "out of bounds", Position("k.cl", 3))])


@pytest.mark.parametrize(
    ("one", "other", "summary", "stores"),
    [
        (([1, 2], ["a"]), ([1, 2], ["a"]), "equal", None),
        (([1, 2], ["a"]), ([1, 2], ["b"]), "the printed lines differ", None),
        (([1, 2], ["a"]), ([1, 3], ["a"]), "'y': 1 of 2 elements differ", 5),
        (FAILURE, ([1, 2], ["a"]), "fails with old", None),
        (([1, 2], ["a"]), FAILURE, "fails with new", None),
        (FAILURE, FAILURE, "fails with old and with new", None),
    ],
)
def test_what_two_runs_leave(one: Any, other: Any, summary: str, stores: int | None, monkeypatch: Any) -> None:
    runs = [
        run if run is FAILURE else comparison._Run({"y": np.array(run[0], np.int32)}, None, None, run[1])  # type: ignore[arg-type]
        for run in (one, other)
    ]
    at = Position("k.cl", 5)
    monkeypatch.setattr(comparison, "_run", lambda call, program, options: runs[program.number])
    monkeypatch.setattr(comparison, "_first_stores", lambda *args: (at, at))
    programs: Any = [SimpleNamespace(number=n, source="a\n" * 9, file="k.cl") for n in range(2)]
    call: Any = SimpleNamespace(kernel="k")
    found = comparison._compared(call, programs, ("old", "new"), None)  # type: ignore[arg-type]
    assert summary in found.summary and found.equal == (summary == "equal")
    assert found.stores == (((at, at)) if stores else (None, None))


def test_the_last_change_of_each_element() -> None:
    """Elements 0 and 1 of two bytes each, and element 2; only stores and atomics are looked at."""
    instructions = [Instruction(name) for name in ("mov", "lsc_store", "lsc_atomic_iadd")]
    data = np.zeros(8, np.uint8)
    batch = SimpleNamespace(memory=SimpleNamespace(data=data))
    watched, elements = np.array([2, 3, 4, 5, 6]), np.array([0, 0, 1, 1, 2])
    stores = _LastStores(instructions, watched, elements, data[watched])
    assert stores.time.tolist() == stores.index.tolist() == [-1, -1, -1]
    for index, changes in ((0, {6: 1}), (1, {3: 1}), (2, {0: 9}), (1, {4: 5, 2: 1}), (2, {4: 5}), (2, {5: 5})):
        for at, value in changes.items():
            data[at] = value
        stores.ran(index, batch, np.zeros(0))
    # A store sees all that changed since the last one.
    assert stores.time.tolist() == [2, 4, 0]
    assert stores.index.tolist() == [1, 2, 1]
    assert _LastStores(instructions, watched[:0], elements[:0], data[:0]).time.size == 0


@pytest.mark.parametrize("given", [{}, {"ocloc": ("a",)}, {"options": ("a", "b", "c")}, {"options": ()}])
def test_not_two(given: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match="'ocloc' or 'options' must be two that are compared"):
        opencl.compare("", **given)


@pytest.mark.parametrize(
    ("given", "compilations", "names"),
    [
        ({"options": ("-a", "-b")}, [("-a", None), ("-b", None)], ("-a", "-b")),
        ({"options": ("", "-b"), "ocloc": ("x",)}, [("", "x"), ("-b", "x")], ("default options", "-b")),
        ({"ocloc": ("x", "y")}, [("", "x"), ("", "y")], ("x", "y")),
        ({"ocloc": ("x", "y"), "options": "-a"}, [("-a", "x"), ("-a", "y")], ("x", "y")),
        ({"ocloc": ("x", "y"), "options": ["-a", "-b"]}, [("-a", "x"), ("-b", "y")], ("x, -a", "y, -b")),
    ],
)
def test_two_compilations(
    given: dict[str, Any], compilations: list[Any], names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []
    program = SimpleNamespace(source="// RUN f global=1", file="k.cl")
    monkeypatch.setattr(comparison, "_compiled", lambda source, target, *one: compiled.append(one) or program)
    monkeypatch.setattr(comparison, "_compared", lambda call, programs, names, options: (call.kernel, names, options))
    [(kernel, found, options)] = opencl.compare("", target="bmg", registers=256, **given)
    assert [one[:2] for one in compiled] == compilations and (kernel, found) == ("f", names)
    assert (options.target, options.registers, options.threads) == ("bmg", 256, 1)
    program.source = ""
    with pytest.raises(opencl.CompileError, match="no comment .* states a launch"):
        opencl.compare("", **given)


def test_elements_of_arrays_in_memory() -> None:
    """The bytes of a buffer belong to the elements of the array that it holds, which no two buffers share."""
    memory = DeviceMemory()
    arrays = {"x": np.zeros(3, np.int16), "y": np.zeros(2, np.float64)}
    for array in arrays.values():
        memory.allocate("other", 24)
        memory.allocate(next(n for n, a in arrays.items() if a is array), array.nbytes)
    run = comparison._Run(arrays, None, SimpleNamespace(prepared=SimpleNamespace(memory=memory)))  # type: ignore[arg-type]
    at, elements = run.elements_of_arrays()
    assert elements.tolist() == [n for n, size in ((0, 2), (1, 2), (2, 2), (3, 8), (4, 8)) for _ in range(size)]
    buffers = [b for b in memory.buffers if b.name != "other"]
    assert at.tolist() == [b.address - BASE + n for b in buffers for n in range(b.bytes)]


def test_stated_calls() -> None:
    one, two = opencl.stated_calls(
        "// RUN f full:i32:4:7 local:16 f32:2 global=8,4 local=2 ulp=3 close=1e-3\n// RUN(g)\n  // RUN g global=3\n"
    )
    assert (one.kernel, one.items, one.local, one.limits) == ("f", (8, 4), (2,), {"ulp": 3, "close": 1e-3})
    array, local, number = one.arguments
    assert array.tolist() == [7] * 4 and local == LocalMemory(16) and number == np.float32(2)
    assert (two.kernel, two.arguments, two.items, two.local) == ("g", (), (3,), None)


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("f zeros:f32:4", "kernel 'f' needs global=X,Y,Z"),
        ("f zeros:f23:4 global=4", "f23"),
        ("f global=4 locla=4", "locla=4"),
        ("f global=4,x", "invalid literal"),
        ("f global=4 ulp", "argument 'ulp' is neither"),
        ("f global=4 global", "argument 'global' is neither"),
        ("f global=4 close=near", "could not convert string to float: 'near'"),
        ("f none.npy global=4", "none.npy"),
    ],
)
def test_comments_of_another_form(comment: str, message: str) -> None:
    with pytest.raises(opencl.CompileError, match=message) as refused:
        opencl.stated_calls(f"\n// RUN {comment}\n", "a.cl")
    assert str(refused.value).startswith("a.cl:2: error: comment RUN: ")


def test_the_tool_tells_where_compilations_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its exit status says whether any of them differ."""
    source = Source("first line\nx[0] = N;\n", "k.cl")
    differs = Diagnostic("error", "array 0 differs at (0,)", Position("k.cl", 2, 1))
    results = [
        SimpleNamespace(
            kernel=name, summary=summary, equal=not found, source=source, diagnostics=lambda found=found: found
        )
        for name, summary, found in (("same", "equal", []), ("other", "different", [differs]))
    ]
    for shown, status in ((results, 1), (results[:1], 0)):
        monkeypatch.setattr(opencl, "compare", lambda *_, shown=shown, **__: shown)
        assert xegpu_run.run(["k.cl", "--build-options=-DN=1", "--build-options=-DN=2"]) == status
    out, err = capsys.readouterr()
    assert out == "same: equal\nother: different\nsame: equal\n"
    assert err == "k.cl:2:1: error: array 0 differs at (0,)\nx[0] = N;\n^\n"
