"""Kernels that Python runs op by op: the same bytes as compiled, and what only they can do."""

from __future__ import annotations

import functools
import io
import pdb
import threading

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr, DiagnosticError

F32, I8, I32, I64, U8 = np.float32, np.int8, np.int32, np.int64, np.uint8


def on_all(function, launch, outputs):
    """The outputs of a kernel, which have the same bytes on each engine."""
    found = []
    for engine in ("eager", "reference", "both"):
        made = [np.zeros_like(o) for o in outputs]
        launch(xegpu_py.jit(function, engine=engine), *made)
        found.append(made)
    for other in found[1:]:
        for mine, theirs in zip(found[0], other):
            assert mine.tobytes() == theirs.tobytes()
    return found[0]


def numbers(X, OUT, n, scale):
    """Python numbers in loops and branches are values of the kernel: float32 and index, not Python's."""
    total, count, product = 0.0, 0, 1.0
    for i in range(3, n, 2):
        total += 0.1
        count += i
        product = product * scale if i % 3 == 0 else 1.1
        if total > 0.35:
            product *= 0.7
    OUT[0] = total
    OUT[1] = product
    OUT[2] = float(count)
    OUT[3] = (X[0] + 0.1) * count / 7
    OUT[4] = 1.0 if 2 < n <= 11 and not scale > 1 else 0.1
    OUT[5] = max(min(n, 5), count) + abs(X[1])
    for k in xl.static_range(2):
        OUT[6 + k] = sum([X[j] * (j + k) for j in range(3)])
    parts, held = [0.0, 0.0], {"x": 0.0}
    for i in range(n):
        parts[-2] += 0.1
        for k in xl.static_range(1):
            parts[k + 1] = parts[k + 1] * 1.1 + 0.3
        if i % 3 == 1:
            held["x"] += 0.7
    OUT[9], OUT[10], OUT[11] = parts[0], parts[1], held["x"]
    while count > 10:
        if count % 7 == 3:
            break
        count -= 1
    else:
        count = -1
    OUT[8] = float(count)


def sum(parts):
    found = 0.0
    for part in parts:
        found = found + part
    return found


@pytest.mark.parametrize(("n", "scale"), [(11, 0.9), (12, 1.5), (2, 0.1), (51, 0.999)])
def test_numbers_are_those_of_the_kernel(n, scale):
    x = np.array([0.3, -5.7, 1e-3], F32)
    on_all(numbers, lambda kernel, out: kernel(x, out, n, scale), [np.zeros(12, F32)])


def narrow(X, OUT):
    x = X.tile((2, 16), at=(0, 0)).load()
    for i in range(2):
        # The counter has type index, so that the product is not one of bytes.
        OUT.tile((2, 16), at=(2 * i, 0)).store((x * (i + 50)).to(I64))


def test_counters_have_type_index():
    x = np.arange(-16, 16, dtype=I8).reshape(2, 16)
    (out,) = on_all(narrow, lambda kernel, out: kernel(x, out), [np.zeros((4, 16), I64)])
    np.testing.assert_array_equal(out, np.concatenate([x.astype(I64) * 50, x.astype(I64) * 51]))


def helper(x, *, shift=1):
    return x + shift


def functions(X, OUT, f: Constexpr):
    inner = lambda v: helper(v) * 2  # noqa: E731

    def twice(g, v):
        for _ in range(2):
            v = g(v)
        return v

    OUT[0] = twice(inner, X[0]) + f(X[1])
    OUT[1] = helper(X[0], shift=3)


def test_functions_and_closures():
    x = np.array([3, 4], I32)
    (out,) = on_all(functions, lambda k, out: k(x, out, f=lambda v: v - 1 if v > 3 else v), [np.zeros(2, I64)])
    assert out.tolist() == [18 + 3, 6]


def shows(X, Y):
    x = X.tile((1, 4), at=(0, 0)).load()
    total = x.sum()
    print("total", total, f"{total:.1f}", int(total), bool(total > 5), x)
    if total > 100:
        raise ValueError(f"too much: {total}")
    Y.tile((1, 4), at=(0, 0)).store(x / total)


def test_print_and_exceptions(capsys):
    kernel = xegpu_py.jit(shows, engine="eager")
    x, y = np.arange(4, dtype=F32).reshape(1, 4), np.zeros((1, 4), F32)
    kernel(x, y)
    assert y[0, 3] == 0.5
    shown = capsys.readouterr().out
    assert shown == "total float32(6.0) 6.0 6 True float32[1, 4] [[0. 1. 2. 3.]]\n"
    with pytest.raises(ValueError, match="too much: 600.0") as error:
        kernel(x * 100, y)
    last = error.traceback[-1]
    assert (last.path.name, last.name) == ("test_eager.py", "shows")
    assert str(last.statement).strip().startswith("raise ValueError")


def stops(X, OUT, debugger: Constexpr):
    total = X[0] + X[1]
    debugger()
    OUT[0] = total


def test_debuggers_see_values():
    shown = io.StringIO()
    commands = "p total\np X\nn\np int(total) * 2\nc\n"
    debugger = pdb.Pdb(stdin=io.StringIO(commands), stdout=shown, nosigint=True)
    debugger.use_rawinput = False
    out = np.zeros(1, I32)
    xegpu_py.jit(stops, engine="eager")(np.array([3, 4], I32), out, debugger=debugger.set_trace)
    assert out[0] == 7
    assert "int32(7)" in shown.getvalue() and "14" in shown.getvalue()
    assert "OUT[0] = total" in shown.getvalue() and "<array of int32[2]>" in shown.getvalue().replace("?", "2")


def beyond(X, OUT, n):
    i = xl.arange(0, 16)
    OUT[0] = 1
    xl.store(OUT + i, xl.load(X + i, mask=i < n))
    OUT[0] = 2


def test_faults_are_at_their_line():
    out = np.zeros(16, F32)
    with pytest.raises(DiagnosticError) as error:
        xegpu_py.jit(beyond, engine="eager")(np.zeros(4, F32), out, 16)
    text = str(error.value)
    assert "test_eager.py" in text and "xl.load(X + i, mask=i < n)" in text and "reads 4 bytes" in text
    assert out[0] == 1
    assert error.traceback[-1].path.name == "machine.py" or "beyond" in [t.name for t in error.traceback]


def exchange(X, OUT):
    """Each subgroup has the element of the next one, twice."""
    sg = xl.subgroup_id()
    slots = xl.shared((8,), np.int32)
    value = X[xl.program_id(0) * 8 + sg]
    for _ in range(2):
        slots[sg] = value
        xl.barrier()
        value = slots[(sg + 1) % 8]
        xl.barrier()
    OUT[xl.program_id(0) * 8 + sg] = value


def test_subgroups_meet_at_barriers():
    x = np.arange(24, dtype=I32)
    (out,) = on_all(exchange, lambda kernel, out: kernel[3](x, out, block=8), [x])
    np.testing.assert_array_equal(out, np.roll(x.reshape(3, 8), -2, axis=1).ravel())


def fails(X):
    sg = xl.subgroup_id()
    X[sg] = 1
    xl.barrier()
    if sg == 2:
        raise KeyError("two")
    X[sg] = 2


def leaves(X):
    if xl.subgroup_id() > 0:
        xl.barrier()


def test_a_subgroup_that_fails_or_leaves_ends_the_launch():
    before = threading.active_count()
    x = np.zeros(4, I32)
    with pytest.raises(KeyError, match="two"):
        xegpu_py.jit(fails, engine="eager")(x, block=4)
    # The last subgroup to reach the barrier does not wait.
    assert x.tolist() == [2, 2, 1, 2]
    with pytest.raises(DiagnosticError, match="waits forever at a barrier"):
        xegpu_py.jit(leaves, engine="eager")(x, block=4)
    assert threading.active_count() == before


def mapped(X, Y):
    m = xl.WgMap((2, 2), (8, 16))
    Y.tile((16, 32), at=(0, 0), map=m).store(X.tile((16, 32), at=(0, 0), map=m).load() + 1)


def test_kernels_with_maps_run_once_for_a_workgroup():
    x = np.zeros((16, 32), F32)
    (out,) = on_all(mapped, lambda kernel, out: kernel(x, out, block=4), [x])
    assert (out == 1).all()


def test_the_environment_lets_python_run_all_kernels(monkeypatch, capsys):
    monkeypatch.setenv("XEGPU_PY_INTERPRET", "1")
    y = np.zeros((1, 4), F32)
    xegpu_py.jit(shows)(np.arange(4, dtype=F32).reshape(1, 4), y)
    assert capsys.readouterr().out.startswith("total float32(6.0)")

    @xegpu_py.language.tile_kernel((np.float32, (1, 4)))
    def prints(X):
        print("here", X[0, 1])

    prints(y)
    assert capsys.readouterr().out == f"here float32({y[0, 1]})\n"


def test_unsigned_values_are_shown_as_such(capsys):
    def kernel(X):
        print(X[0] + 1, X.tile((1, 4), at=(0, 0)).load() if False else X[1])

    xegpu_py.jit(kernel, engine="eager")(np.array([254, 200], U8))
    assert capsys.readouterr().out == "uint8(255) uint8(200)\n"


def test_many_numbers_have_no_truth_value():
    def kernel(X):
        if X.tile((1, 4), at=(0, 0)).load() > 0:
            X[0, 0] = 1

    with pytest.raises(TypeError, match=r"the truth value of .* is ambiguous; use \.any\(\) or \.all\(\)"):
        xegpu_py.jit(kernel, engine="eager")(np.ones((1, 4), F32))


def test_a_compiled_kernel_knows_no_numbers():
    def kernel(X):
        X[0] = X[0].numpy()[0]

    with pytest.raises(DiagnosticError, match=r"numpy\(\) of a value that is known only at run time"):
        xegpu_py.jit(kernel)(np.zeros(1, F32))


SUMS = [(13, 37, None), (40, 16, None), (32, 48, xl.WgMap((4, 1), (8, 48))), (9, 64, xl.WgMap((1, 4), (9, 16)))]


@pytest.mark.parametrize(
    ("dtype", "first"), [(np.float16, 0), (ml_dtypes.bfloat16, 1), (np.float32, 0), (np.float64, 1)]
)
def test_float_sums_have_the_same_bits(dtype, first):
    """Sums of random numbers, which are rounded, along all dimensions that no map divides."""

    @xegpu_py.jit
    def sums(X, OUT, M: Constexpr, N: Constexpr, MAP: Constexpr):
        x = X.tile((M, N), at=(0, 0), map=MAP).load()
        divided = (1, 1) if MAP is None else MAP.sg_layout
        if divided[0] == 1:
            OUT.tile((1, N), at=(0, 0)).store(x.sum(axis=0))
        if divided[1] == 1:
            OUT.tile((M, 1), at=(1, 0)).store(x.sum(axis=1, keep_dims=True))

    rng = np.random.default_rng(0)
    for m, n, found_by in SUMS[first::2]:
        x = (rng.standard_normal((m, n)) * 3).astype(dtype)
        eager, compiled = (np.zeros((m + 1, n), dtype) for _ in range(2))
        for out, engine in ((eager, "eager"), (compiled, "both")):
            sums.with_options(engine=engine, subgroups=None)(x, out, M=m, N=n, MAP=found_by)
        assert eager.tobytes() == compiled.tobytes() and eager.any()


def gathered(X, INDEX, OUT):
    found = xl.gather(X.tile((1, 16), at=(0, 0)).load(), INDEX.tile((1, 16), at=(0, 0)).load(), 1)
    OUT.tile((1, 16), at=(0, 0)).store(found)


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["eager", "reference", "both"])
@pytest.mark.parametrize(("place", "dtype"), [(15, U8), (16, I32), (-1, I64), (255, U8), (-1, I8)])
def test_gathers_stay_within_their_elements(engine, place, dtype):
    x, out, index = np.arange(16, dtype=F32)[None], np.zeros((1, 16), F32), np.full((1, 16), place, dtype)
    kernel = xegpu_py.jit(gathered, engine=engine)
    if place == 15:
        kernel(x, index, out)
        assert (out == 15).all()
        return
    with pytest.raises(DiagnosticError, match="gather: an index is not 0 to 15") as caught:
        kernel(x, index, out)
    assert "found = xl.gather(" in str(caught.value)


def steps(OUT, step):
    """The iterations of three loops with a step that is known only at run time."""
    count = [0, 0, 0]
    for _ in range(0, 10, step):
        count[0] += 1
    for _ in range(10, 0, step):
        count[1] += 1
    for _ in xl.range(0, 10, step):
        count[2] += 1
        if count[2] > 3:
            break
    for k in xl.static_range(3):
        OUT[k] = count[k]


@pytest.mark.parametrize(("step", "wanted"), [(4, [3, 0, 3]), (-4, [0, 3, 0]), (2, [5, 0, 4]), (0, [0, 0, 0])])
def test_a_step_of_0_gives_no_iteration(step, wanted):
    (out,) = on_all(steps, lambda kernel, out: kernel(out, step), [np.zeros(3, I64)])
    assert out.tolist() == wanted


def divided(X, D, OUT, d, n: xl.uint32):
    i = xl.arange(0, 16)
    x, y = xl.load(X + i), xl.load(D + i)
    OUT.tile((1, 16), at=(0, 0)).store((x // y)[None, :])
    OUT.tile((1, 16), at=(1, 0)).store((x % y)[None, :])
    OUT.tile((1, 16), at=(2, 0)).store((x // d)[None, :])
    OUT.tile((1, 16), at=(3, 0)).store((x % d)[None, :])
    OUT[4, 0], OUT[4, 1], OUT[4, 2], OUT[4, 3] = 7 // d, -7 % d, 7 // n, 7 % n


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [I8, np.int16, I32, I64])
@pytest.mark.parametrize("divisor", [0, -1])
def test_divisions_that_hardware_leaves_undefined(dtype, divisor):
    low = np.iinfo(dtype).min
    x, y = np.full(16, low, dtype), np.array([0, -1] * 8, dtype)
    (out,) = on_all(divided, lambda kernel, out: kernel(x, y, out, divisor, 0), [np.zeros((5, 16), I64)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out[:2], [x // y, x % y])
        wide = x.astype(np.promote_types(dtype, I32))
        np.testing.assert_array_equal(out[2:4], [wide // wide.dtype.type(divisor), wide * 0])
    assert out[4, :4].tolist() == [7 * divisor, 0, 0, 0]


@xegpu_py.jit
def greater(a, b):
    if a.dtype == xl.float32:
        return xl.where(a > b, a, b)
    return b


def with_greater(X, OUT):
    x = X.tile((4, 16), at=(0, 0)).load()
    scan = xl.associative_scan(x, 1, greater)
    OUT.tile((4, 16), at=(0, 0)).store(xl.map_elementwise(functools.partial(greater, 3.0 + 0 * x), scan))
    OUT.tile((4, 1), at=(4, 0)).store(xl.reduce(x, 1, combine_fn=greater, keep_dims=True))


def test_kernels_are_functions_of_scans():
    x = np.random.default_rng(0).permutation(64).reshape(4, 16).astype(F32)
    (out,) = on_all(with_greater, lambda kernel, out: kernel(x, out), [np.zeros((8, 16), F32)])
    np.testing.assert_array_equal(out[:4], np.maximum(np.maximum.accumulate(x, 1), 3))
    np.testing.assert_array_equal(out[4:, 0], x.max(1))


@pytest.mark.parametrize("engine", ["eager", "reference"])
def test_checks_that_an_evaluator_cannot_make_are_refused(engine):
    x, y = np.ones((1, 4), F32), np.zeros((1, 4), F32)

    def double(X, Y):
        Y.tile((1, 4), at=(0, 0)).store(X.tile((1, 4), at=(0, 0)).load() * 2)

    xegpu_py.jit(double, engine=engine, check=["memory"])(x, y)
    assert (y == 2).all()
    with pytest.raises(ValueError, match=f"engine '{engine}' does not support the checks uninit, races"):
        xegpu_py.jit(double, engine=engine, check=["uninit", "races"])(x, y)
    with pytest.raises(ValueError, match="unknown check 'nothing'; there are memory, uninit"):
        xegpu_py.jit(double, engine=engine, check=["nothing"])(x, y)
