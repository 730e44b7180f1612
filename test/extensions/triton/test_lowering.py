"""Ops of TTIR, lowered and run, against numpy."""

import math
import re

import ml_dtypes
import numpy as np
import pytest

triton = pytest.importorskip("triton")

import triton_kernels as kernels  # noqa: E402  (after the skip)
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

import xegpu_py  # noqa: E402
from xegpu_py.extensions.triton.api import options, wrap  # noqa: E402


def integers(*shape, low=-50, high=50, dtype=np.int32, seed=0):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def run(kernel, *arguments, grid=(1,), **constants):
    return kernel[grid](*(wrap(a) if isinstance(a, np.ndarray) else a for a in arguments), **constants)


@pytest.mark.parametrize("first", [0, 5])
def test_a_store_to_memory_that_is_loaded_waits_for_the_loads(first):
    memory = integers(2048 + first)
    x, y = memory[first : 2048 + first], memory[:2048]
    reads = x[::-1].copy()
    with options(check="races"):
        compiled = run(kernels.reversed_copy, x, y, 2048)
    np.testing.assert_array_equal(y, reads)
    assert compiled.function.last.options.aliased


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize(("transposed_a", "transposed_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_products_of_any_layout(dtype, transposed_a, transposed_b):
    m, n, k = 72, 80, 96
    a, b = integers(m, k, low=-4, high=5, dtype=dtype), integers(k, n, low=-4, high=5, dtype=dtype, seed=1)
    left = a.T.copy().T if transposed_a else a
    right = b.T.copy().T if transposed_b else b
    c = np.zeros((m, n), np.float32)
    strides = [s // v.itemsize for v in (left, right, c) for s in v.strides]
    run(kernels.matmul, left, right, c, m, n, k, *strides, grid=(3, 3), BM=32, BN=32, BK=32)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(("rows", "loads"), [(64, 2), (128, 3)])
def test_ragged_products_are_blocks_as_whole_ones_are(rows, loads):
    m, n, k = 200, 152, 104
    a, b = integers(m, k, low=-4, high=5, dtype=np.float16), integers(k, n, low=-4, high=5, dtype=np.float16, seed=1)
    c = np.zeros((m, n), np.float32)
    made = run(kernels.matmul, a, b, c, m, n, k, k, 1, n, 1, n, 1, grid=(4, 3), BM=rows, BN=64, BK=32)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    kernel = made.function.last
    assert kernel.asm.count("lsc_load_block2d") == loads and "lsc_load." not in kernel.asm
    assert not kernel.executor.allocation.beyond


def test_the_number_of_warps_is_that_of_subgroups_of_large_products():
    n = 64
    a = np.random.default_rng(3).standard_normal((n, n)).astype(np.float16)
    results, subgroups = [], []
    for count in (1, 4, 8):
        c = np.zeros((n, n), np.float32)
        compiled = run(kernels.matmul, a, a, c, n, n, n, n, 1, n, 1, n, 1, BM=n, BN=n, BK=32, num_warps=count)
        results.append(c)
        subgroups.append(compiled.function.last.subgroups)
    assert subgroups == [2, 4, 4]
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"])
def test_precisions_of_products(precision):
    n = 16
    a = np.random.default_rng(3).standard_normal((n, n)).astype(np.float32)
    c = np.zeros((n, n), np.float32)
    run(kernels.matmul, a, a, c, n, n, n, n, 1, n, 1, n, 1, BM=n, BN=n, BK=n, PRECISION=precision)
    error = np.abs(c - a.astype(np.float64) @ a.astype(np.float64)).max()
    assert error < {"tf32": 2e-2, "bf16x3": 1e-3}.get(precision, 2e-5)
    assert precision != "tf32" or error > 1e-4


def test_products_are_exact_by_default():
    x = np.random.default_rng(4).standard_normal((16, 16)).astype(np.float32)
    found = np.zeros_like(x)
    made = run(kernels.cubed, x, found, N=16)
    assert np.abs(found - np.linalg.matrix_power(x.astype(np.float64), 3)).max() < 1e-4
    # Neither product is in pieces of single columns. Two subgroups loop over halves of K.
    assert re.findall(r"mad \(M1_NM, (\d+)\)", made.function.last.asm) == ["32"] * 64


@pytest.mark.parametrize("n", [7, 64, 100])
def test_softmax_of_rows(n):
    x = np.random.default_rng(n).standard_normal((5, n)).astype(np.float32)
    y = np.zeros_like(x)
    run(kernels.softmax, x, y, n, n, grid=(5,), BLOCK=128)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("n", "loads"), [(1008, 2), (16, 2), (1 << 22, 2), (1000, 32), (0, 0)])
def test_lines_of_whole_registers_are_few_messages(n, loads):
    """A matrix of rows of 64 bytes has any length, and one row of 4 million elements is too long for a message.

    No matrix has no rows: the elements are scattered then.
    """
    x, y, z = (integers(n + 32, seed=i) for i in range(3))
    expected = np.concatenate([x[:n] + y[:n], z[n:]])
    compiled = run(kernels.add, x, y, z, n, grid=(triton.cdiv(n, 256) or 1,), BLOCK=256)
    np.testing.assert_array_equal(z, expected)
    asm = compiled.function.last.asm
    assert asm.count("lsc_load_block2d") == loads and ("lsc_load.ugm" in asm) == (n == 0)


@pytest.mark.parametrize(("kernel", "arrays"), [(kernels.add, 3), (kernels.softmax, 2)])
def test_the_finalizer_accepts_messages_of_many_rows(kernel, arrays, native_of):
    numbers = (1024,) if kernel is kernels.add else (1024, 1024)
    memory = [np.zeros(1024, np.float32) for _ in range(arrays)]
    compiled = run(kernel, *memory, *numbers, BLOCK=1024, num_warps=1)
    assert compiled.function.last.asm.count("lsc_load_block2d") == arrays - 1
    assert native_of(compiled.function.last.asm, "bmg").spill_bytes == 0


@pytest.mark.parametrize(("pitch", "messages"), [(128, 1), (136, 8)])
def test_rows_of_whole_registers_are_one_message(pitch, messages):
    x, y = integers(6, pitch, low=-4, high=5, dtype=np.float32), np.zeros((6, pitch), np.float32)
    compiled = run(kernels.softmax, x, y, pitch, 112, grid=(6,), BLOCK=128, num_warps=1)
    e = np.exp(x[:, :112].astype(np.float64) - x[:, :112].max(1, keepdims=True))
    np.testing.assert_allclose(y[:, :112], e / e.sum(1, keepdims=True), rtol=1e-5)
    assert not y[:, 112:].any()
    assert compiled.function.last.asm.count("lsc_load_block2d") == messages


def test_loops_carry_pointers_to_several_arrays():
    x, y, z = (np.arange(i, i + 16, dtype=np.float32) for i in (0, 100, 0))
    run(kernels.swapped, x, y, z, 3, BLOCK=16)
    np.testing.assert_array_equal(z, (x * 2 + y) * 2 + x)


def test_pointers_to_several_arrays_are_chosen_by_element():
    x, y, z = (np.arange(i, i + 64, dtype=np.float32) for i in (0, 100, 0))
    run(kernels.chosen_pointers, x, y, z, BLOCK=64)
    np.testing.assert_array_equal(z, np.where(np.arange(64) % 3 == 0, x, y))


def test_early_returns():
    x, y = integers(8), np.zeros(8, np.int32)
    run(kernels.returns_early, x, y, 6, grid=(8,))
    np.testing.assert_array_equal(y, np.where(np.arange(8) >= 6, 0, np.where(x < 0, -x, x + 100)))


def test_functions_that_are_not_inlined_by_triton():
    x, y, z = integers(5), integers(5, seed=1), np.zeros(5, np.int32)
    run(kernels.calls, x, y, z, grid=(5,))
    w = np.arange(5)
    np.testing.assert_array_equal(z, np.where(w > 2, x * w, x + y) + y * 5)


def test_while_loops():
    x, y = np.arange(1, 17, dtype=np.int32), np.zeros(16, np.int32)
    run(kernels.collatz, x, y, grid=(16,))

    def steps(n):
        return 0 if n <= 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert y.tolist() == [steps(int(n)) for n in x]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_atomic_updates(dtype):
    low = -50 if dtype == np.int32 else 0
    x, v, old = integers(8, 32, low=low, dtype=dtype), integers(32, low=low, dtype=dtype, seed=1), np.zeros(32, dtype)
    if dtype == np.uint32:
        x[0, 0], v[1], x[1, 2] = 1 << 31, 1 << 31, (1 << 32) - 1
    x[7, :4] = v[:4]
    want = x.copy()
    run(kernels.atomics, x, v, old, BLOCK=32)
    np.testing.assert_array_equal(old, want[0])
    even = np.arange(32) % 2 == 0
    for row, result in enumerate((
        np.maximum(want[0], v), np.minimum(want[1], v), np.where(even, want[2] + v, want[2]), v, want[4] & v,
        want[5] | v, want[6] ^ v, np.where(want[7] == v, v + 1, want[7]),
    )):  # fmt: skip
        np.testing.assert_array_equal(x[row], result)


@pytest.mark.parametrize("block", [16, 1024])
def test_atomic_updates_order_other_accesses(block):
    """A release comes after the earlier accesses of its program, and an acquire before the later ones."""
    x, flag, y = np.zeros(block, np.int32), np.zeros(1, np.int32), np.zeros(block, np.int32)
    with options(check="races"):
        run(kernels.published, x, flag, y, grid=(2,), BLOCK=block, SEM="release")
        np.testing.assert_array_equal(y, np.arange(block) + 5)
        flag[:] = 0
        run(kernels.locked, x, flag, grid=(4,), BLOCK=block)
        np.testing.assert_array_equal(x, np.arange(block) + 9)
        with pytest.raises(xegpu_py.DiagnosticError, match="byte 0 of 'X', which another thread has written"):
            run(kernels.published, x, flag, y, grid=(2,), BLOCK=block, SEM="relaxed")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_positions_that_a_loop_has_computed(count):
    x, out = np.arange(64, dtype=np.int32), np.zeros(16, np.int32)
    run(kernels.behind_a_loop, x, out, count, BLOCK=16)
    np.testing.assert_array_equal(out, x[16 * sum(range(count)) :][:16])


def test_polls_end_after_their_time():
    flags, out = integers(16, low=0, high=2), np.zeros(16, np.int8)
    run(kernels.polled, flags, out, BLOCK=16)
    np.testing.assert_array_equal(out, flags)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.uint64, np.float16])
def test_reductions_into_blocks_of_descriptors(dtype):
    kinds = {"add": np.add, "min": np.minimum, "max": np.maximum, "xor": np.bitwise_xor}
    for kind in kinds if dtype != np.float16 else ("add",):
        low = -50 if np.issubdtype(dtype, np.signedinteger) else 0
        x, y = integers(8, 16, low=low, dtype=dtype), integers(9, 32, low=low, dtype=dtype, seed=1)
        if dtype in (np.uint32, np.uint64):
            x[0] = np.iinfo(dtype).max
            y[3] = np.iinfo(dtype).max
        want = y.copy()
        want[2:9, 16:] = kinds[kind](want[2:9, 16:], x[:7])
        run(kernels.reduced_block, x, y, 9, 32, BM=8, BN=16, KIND=kind)
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("n", [4, -4, -2])
@pytest.mark.parametrize("masked", [False, True])
def test_quotients_by_negative_numbers(n, masked):
    """Rows before the first one of a matrix are elements of its buffer, if the mask does not exclude them."""
    x, o = np.arange(128 * 16, dtype=np.float32).reshape(128, 16), np.zeros((64, 16), np.float32)
    kernel = kernels.rows_of_quotients[(8,)](wrap(x[64:]), wrap(o), n, 12, 16, 8, 16, masked)
    quotients = (np.arange(8) / n).astype(int)
    rows = (8 * quotients[:, None] + np.arange(8)).ravel()
    np.testing.assert_array_equal(o, np.where(masked & (rows >= 12)[:, None], -1, x[64 + rows]))
    # The version for positive numbers is the first one.
    assert "lsc_load_block2d" in kernel.asm["visa"] and "lsc_load.ugm" not in kernel.asm["visa"]


def test_rows_of_descriptors_are_scattered():
    x, rows, y = integers(8, 16, dtype=np.float32), np.array([3, 0, 19, 25, -1, 7, 6, 1], np.int32), np.zeros((20, 32))
    y = y.astype(np.float32)
    run(kernels.scattered_rows, x, rows, y, 20, 32, ROWS=8, BN=16)
    want = np.zeros_like(y)
    inside = (rows >= 0) & (rows < 20)
    want[rows[inside], 8:24] = x[inside]
    np.testing.assert_array_equal(y, want)


def test_descriptors_of_kernels():
    x, y = integers(40, 48, dtype=np.float32), np.zeros((40, 48), np.float32)
    run(kernels.descriptors, x, y, 40, 48, grid=(3, 2), BM=16, BN=32)
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize(
    ("dtype", "padding"),
    [(np.float32, "zero"), (np.float32, "nan"), (np.int8, "zero"), (np.int32, "zero"), (np.uint16, "zero")],
)
def test_descriptors_of_the_host(dtype, padding):
    x, y = integers(10, 32, low=0, dtype=dtype), np.zeros((16, 32), dtype)
    # Triton asks the tensor's type for the bytes of an element.
    base = wrap(x)
    descriptor = TensorDescriptor.__new__(TensorDescriptor)
    descriptor.base, descriptor.shape, descriptor.strides = base, [10, 32], [32, 1]
    descriptor.block_shape, descriptor.padding, descriptor.round_f32_to_tf32 = [16, 32], padding, False
    kernels.host_descriptor[(1,)](descriptor, wrap(y), BM=16, BN=32)
    want = np.full((16, 32), math.nan if padding == "nan" else 0, dtype)
    want[:6, :16] = x[4:, 16:]
    np.testing.assert_array_equal(y, want)


def test_rows_of_descriptors_are_gathered():
    x, rows, y = integers(20, 32, dtype=np.float32), np.array([3, 0, 19, 25, -1, 7, 7, 1], np.int32), np.zeros((8, 16))
    y = y.astype(np.float32)
    run(kernels.gathered_rows, x, rows, y, 20, 32, ROWS=8, BN=16)
    inside = (rows >= 0) & (rows < 20)
    np.testing.assert_array_equal(y, np.where(inside[:, None], x[np.clip(rows, 0, 19), 8:24], 0))


@pytest.mark.parametrize("reverse", [False, True])
def test_sums_up_to_each_element(reverse):
    x, y = integers(4, 64), np.zeros((4, 64), np.int32)
    run(kernels.scanned, x, y, M=4, N=64, REVERSE=reverse)
    np.testing.assert_array_equal(y, x[:, ::-1].cumsum(1)[:, ::-1] if reverse else x.cumsum(1))


def test_reductions_of_several_values():
    x, v, p = integers(8, 32, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.int32)
    run(kernels.largest, x, v, p, M=8, N=32)
    np.testing.assert_array_equal(v, x.max(1))
    np.testing.assert_array_equal(p, x.argmax(1))


def test_sorting():
    x, y = integers(4, 32), np.zeros((4, 32), np.int32)
    run(kernels.sorted_rows, x, y, M=4, N=32)
    np.testing.assert_array_equal(y, np.sort(x, 1))


def test_functions_of_elements_may_branch():
    x, y = integers(64), integers(64, seed=1)
    v, s = np.zeros(64, np.int32), np.zeros(64, np.int32)
    run(kernels.mapped, x, y, v, s, BLOCK=64)
    np.testing.assert_array_equal(v, np.minimum(x, y))
    np.testing.assert_array_equal(s, np.where(x < y, -1, 1))


def test_unsigned_arithmetic():
    x = integers(32, low=0, high=1 << 32, dtype=np.uint32)
    y = integers(32, low=1, high=1 << 32, dtype=np.uint32, seed=1)
    z = np.zeros((4, 32), np.uint32)
    run(kernels.unsigned, x, y, z, BLOCK=32)
    high = (x.astype(np.uint64) * y >> np.uint64(32)).astype(np.uint32)
    np.testing.assert_array_equal(z, [x // y, x % y, high, (x < y) + (x >> 3)])


CONVERSIONS = [
    (np.float32, ml_dtypes.float8_e4m3fn), (np.float32, ml_dtypes.float8_e5m2), (ml_dtypes.float8_e4m3fn, np.float16),
    (np.float32, ml_dtypes.bfloat16), (np.float16, np.int8), (np.int64, np.float32), (np.uint8, np.float16),
]  # fmt: skip


@pytest.mark.parametrize(("source", "to"), CONVERSIONS)
def test_conversions_saturate_to_types_of_8_bits(source, to):
    numbers = np.array([0, 1, 1.5, 3, 17, 100, 5, 2] * 2 + [100, 7, 0, 1] * 4, np.float64)
    x, y = numbers.astype(source), np.zeros(32, to)
    if np.dtype(to).itemsize == 1 and np.dtype(to).kind != "i":
        x[:2] = 1e6, -1e6
    run(kernels.converted, x, y, 32, BLOCK=32)
    want = x.astype(np.float64).astype(to) if np.dtype(to).kind != "i" else x.astype(to)
    if np.dtype(to).itemsize == 1 and np.dtype(to).kind != "i":
        most = float(ml_dtypes.finfo(to).max)
        want[:2] = most, -most
    np.testing.assert_array_equal(y.astype(np.float64), want.astype(np.float64))


def test_instructions_of_ptx_that_compute():
    x, y = (integers(32, low=0, high=1 << 32, dtype=np.uint32, seed=i).view(np.int32) for i in range(2))
    s, z, w = np.arange(32, dtype=np.int32), np.zeros((3, 32), np.int32), np.zeros(32, np.float32)
    run(kernels.assembled, x, y, s, z, w, BLOCK=32)
    both = y.view(np.uint32).astype(np.uint64) << np.uint64(32) | x.view(np.uint32)
    high = (both << s.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)
    np.testing.assert_array_equal(
        z.view(np.uint32), [high, (x & 0x1F1F1F1F).view(np.uint32) << 3, (y - x).view(np.uint32)]
    )
    np.testing.assert_array_equal(w, np.exp2(s.astype(np.float32)))


def test_other_instructions_of_ptx_are_refused():
    x = integers(32)
    with pytest.raises(xegpu_py.DiagnosticError, match=r"triton_kernels.py:\d+:\d+: error: .*'vadd.u32.u32.u32 \$0"):
        run(kernels.assembled_otherwise, x, np.zeros_like(x), BLOCK=32)


def test_recursion_is_refused():
    with pytest.raises((xegpu_py.DiagnosticError, triton.CompilationError)):
        run(kernels.calls_itself, np.zeros(1, np.int32), 3)


# Positions that wrap around: random expressions of positions, lowered for launches in which they fit, and in which they
# overflow.

OPS = {"arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply}

BLOCK = 16


def expression(rng, lines, values, vector):
    """Append an op on two earlier values to the lines of a program, and its result to the values."""
    name = list(OPS)[rng.integers(len(OPS))]
    (a, left), (b, right) = (values[rng.integers(len(values))] for _ in range(2))
    result = f"%v{len(lines)}"
    lines.append(f"{result} = {name} {a}, {b} : {vector}")
    with np.errstate(over="ignore"):
        values.append((result, OPS[name](left, right)))


def program(seed):
    """TTIR that stores whether a random expression of positions is less than another, and what numpy says.

    Returns:
        The text, and a function of the argument `n` and of the program's number that gives the expected elements.
    """
    vector = f"tensor<{BLOCK}xi32>"

    def built(n, pid):
        rng = np.random.default_rng(seed)
        number = int(rng.integers(-1000, 1000))
        lines = []
        step = np.arange(BLOCK, dtype=np.int32)
        values = [
            ("%r", step),
            ("%n", np.full(BLOCK, n, np.int32)),
            ("%p", np.full(BLOCK, pid, np.int32)),
            ("%c", np.full(BLOCK, number, np.int32)),
        ]
        for _ in range(6):
            expression(rng, lines, values, vector)
        (a, left), (b, right) = values[-1], values[rng.integers(len(values) - 1)]
        text = f"""
tt.func public @k(%out: !tt.ptr<i8>, %scalar: i32) {{
  %r = tt.make_range {{end = {BLOCK} : i32, start = 0 : i32}} : {vector}
  %n = tt.splat %scalar : i32 -> {vector}
  %pid = tt.get_program_id x : i32
  %p = tt.splat %pid : i32 -> {vector}
  %c = arith.constant dense<{number}> : {vector}
  {chr(10).join(lines)}
  %less = arith.cmpi slt, {a}, {b} : {vector}
  %byte = arith.extui %less : tensor<{BLOCK}xi1> to tensor<{BLOCK}xi8>
  %size = arith.constant {BLOCK} : i32
  %first = arith.muli %pid, %size : i32
  %start = tt.addptr %out, %first : !tt.ptr<i8>, i32
  %all = tt.splat %start : !tt.ptr<i8> -> tensor<{BLOCK}x!tt.ptr<i8>>
  %places = tt.addptr %all, %r : tensor<{BLOCK}x!tt.ptr<i8>>, {vector}
  tt.store %places, %byte : tensor<{BLOCK}x!tt.ptr<i8>>
  tt.return
}}
"""
        return text, left < right

    return built(0, 0)[0], lambda n, pid: built(n, pid)[1]


@pytest.mark.parametrize("seed", range(12))
def test_positions_wrap_around(seed):
    from xegpu_py.extensions.triton.launches import LoadedKernel

    text, expected = program(seed)
    kernel = LoadedKernel("k", text)
    signature = [("out", "*i8"), ("scalar", "i32")]
    for n in (5, -7, 70000, 1 << 30, -(1 << 31)):
        out = np.zeros(3 * BLOCK, np.int8)
        kernel.launch((3, 1, 1), signature, [wrap(out), n])
        want = np.concatenate([expected(n, pid) for pid in range(3)])
        np.testing.assert_array_equal(out.astype(bool), want, err_msg=f"n = {n}")


@pytest.mark.sweep("0-True")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_truth_values_are_scanned_chosen_and_gathered(axis, reverse):
    x, flags = integers(8, 32), integers(8, 32, low=0, high=2, dtype=np.int8)
    out, sums, begun = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, bool)
    run(kernels.truth_values, x, flags, out, M=8, N=32, AXIS=axis, REVERSE=reverse)
    lines = [np.moveaxis(v, axis, 0)[:: -1 if reverse else 1] for v in (x, flags, sums, begun)]
    for i, (number, flag, total, seen) in enumerate(zip(*lines)):
        total[:] = np.where(flag, number, number + lines[2][i - 1] * (i > 0))
        seen[:] = (flag != 0) | (lines[3][i - 1] & (i > 0))
    either = np.take_along_axis(np.where(x > 0, flags != 0, begun), np.abs(x) % 8, axis)
    np.testing.assert_array_equal(out, sums + either * 1000)
