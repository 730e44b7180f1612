"""Whole kernels: lowered, run, compared with numpy, and assembled by Intel's finalizer."""

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.numerics import srnd
from xegpu_py.numerics.rounding import fma_f32
from xegpu_py.runtime.host_arrays import DTYPES
from xegpu_py.visa.operands import Region

from .gemms import Gemm

FOLDER = Path(__file__).parents[2] / "run"
BF16, BF8 = ml_dtypes.bfloat16, ml_dtypes.float8_e5m2
RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def zeros(shape, dtype="f4"):
    return np.zeros(shape, dtype)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def wide(x):
    return x.astype(np.float64)


def gelu(z):
    return z / 2 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))


def whole(dtype, *shape):
    """Small whole numbers, with which every sum of products is exact."""
    return RNG.integers(-8, 9, shape).astype(dtype)


def exact(a, b):
    return wide(a) @ wide(b)


def random_bytes(seed, count):
    """What @stochastic of quantise.mlir rounds by."""
    spread = (np.arange(count, dtype=np.uint32) ^ np.uint32(seed)) * np.uint32(0x7FEB352D)
    return (((spread ^ (spread >> np.uint32(15))) * np.uint32(0x46CA68B5)) >> np.uint32(24)).astype(np.uint16)


def layer_norm(x, gamma, beta):
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * gamma + beta


def picked(rows, index):
    return np.where(index[:, None] < 0, 0, rows[np.maximum(index, 0)]).ravel()


@dataclass(frozen=True)
class Case:
    """A kernel's launch.

    Attributes:
        inputs: its arguments but the last.
        out: the last, as it is before.
        expected: what it is afterwards.
        grid, block: workgroups, and subgroups of one.
        tolerance: relative and absolute; 0 for all bits.
        grf: registers of a thread.
        target: a GPU that has all it takes.
    """

    inputs: list[Any]
    out: Any
    expected: Any
    grid: Any = 1
    block: Any = 1
    tolerance: float = 0
    grf: int = 128
    target: str = "pvc"


def _cases():
    rows, queries, keys, values = normal(32, 1024), *(normal(n, 64, dtype=BF16) for n in (64, 1024, 1024))
    made = {}
    made["softmax"] = Case([rows], zeros(rows.shape), softmax(wide(rows)), 32, tolerance=1e-6, grf=256)
    attention = softmax(wide(queries) @ wide(keys).T / 8) @ wide(values)
    made["attention"] = Case([queries, keys, values], zeros((64, 64)), attention, 8, tolerance=2e-3)
    numbers = RNG.integers(-128, 128, 1003).astype(np.int8)
    counts = np.bincount(numbers.view(np.uint8), minlength=256)
    made["histogram"] = Case([numbers], zeros(256, "i4"), counts, 5)
    line, relayed, matrix = normal(8192), normal(4, 64), normal(64, 48)
    made["slm_sum"] = Case([line], zeros(8), wide(line).reshape(8, 1024).sum(1), 8, 4, tolerance=1e-4)
    made["nbarrier"] = Case([relayed], zeros((4, 64)), 2 * relayed, 1, 2)
    made["collatz"] = Case([], zeros(30, "i4"), [collatz(n) for n in range(1, 31)], 30)
    made["transpose"] = Case([matrix], zeros((48, 64)), matrix.T, (4, 6))
    left, right, bias = normal(100, 104, dtype=BF16), (normal(104, 136) / 10).astype(BF16), normal(144)
    made["gelu"] = Case(
        [left, right, bias], zeros((100, 136), BF16), gelu(exact(left, right) + bias[:136]), (13, 9), tolerance=2e-2
    )
    x, gamma, beta = normal(4, 1000) * 3 + 1, normal(1000), normal(1000)
    made["layer_norm"] = Case(
        [x, gamma, beta], zeros((4, 1000)), layer_norm(wide(x), gamma, beta), 4, tolerance=1e-5, grf=256
    )
    scale = np.float32(0.37)
    half = (line[:256] * scale).astype(np.float16)
    made["quantise:nearest"] = Case([line[:256], scale], zeros(256, BF8), half.astype(BF8), 2)
    rounded = srnd(half, random_bytes(77, 256), "bf8")
    made["quantise:stochastic"] = Case([line[:256], scale, 77], zeros(256, BF8), rounded, 2, target="pvcxt")
    for chunk in (1, 2, 3, 4, 8):
        table, index = normal(64, chunk), RNG.integers(-20, 64, 16).astype(np.int32)
        made[f"gather_scatter:rows_of_{chunk}"] = Case(
            [table.ravel(), index], zeros(16 * chunk), picked(table, index).astype(np.float32)
        )
    walked = np.arange(30, dtype=np.float32).reshape(6, 5)
    ends = np.array([0.5 + walked[::2, 1:].sum(), walked[::2, 1:].max()])
    made["parallel_loops"] = Case([walked, zeros(walked.shape), np.int64(5)], zeros(2), ends)
    numbers = np.arange(32, dtype=np.float32).reshape(4, 8)
    swapped = numbers + np.tile([1.0, -1.0], 4)
    swapped[:2, 1::2] = 0
    made["affine_loops"] = Case([numbers, np.int64(2)], zeros(numbers.shape), swapped)
    block = normal(8, 32, dtype=np.float16)
    made["call"] = Case([block], zeros((8, 32), "f2"), 2 * block)
    return made | _gemm_cases()


def _gemm_cases():
    made = {}

    def add(name, a, b, dtype, grid, *, block=1, grf=128, before=0):
        expected = exact(a, b) + before
        made[name] = Case([a, b], np.full(expected.shape, before, dtype), expected, grid, block, grf=grf)

    add("gemm_ragged", whole(BF16, 104, 72), whole(BF16, 72, 120), "f4", (4, 4))
    add("gemm_batched", whole("f2", 4, 40, 48), whole("f2", 4, 48, 80), "f4", (5, 5, 4))
    add("gemm_slm", whole(BF16, 64, 128), whole(BF16, 128, 48), "f4", (2, 3), block=4)
    add("gemm_nbarriers", whole(BF16, 16, 96), whole(BF16, 96, 32), "f4", (1, 2), block=3)
    for kernel in ("moved", "fresh"):
        add(f"gemm_prefetch:{kernel}", whole(BF16, 64, 80), whole(BF16, 80, 48), "f4", (8, 3))
    add("gemm_split_k", whole(BF16, 16, 256), whole(BF16, 256, 32), "f4", (2, 2, 4), before=5)
    add("gemm_tf32", whole("f4", 32, 40), whole("f4", 40, 64), "f4", (2, 2))
    add("gemm_i8:signed", whole("i1", 32, 96), whole("i1", 96, 64), "i4", (2, 2))
    add("gemm_i8:mixed", whole("i1", 32, 96).view("u1"), whole("i1", 96, 64), "i4", (2, 2))
    add("gemm_f16_32x64", whole("f2", 64, 48), whole("f2", 48, 128), "f4", (2, 2), grf=256)
    a, b = whole(BF16, 32, 64), whole(BF16, 64, 64)
    made["gemm_transposed_b"] = Case([a, b], zeros((32, 64)), exact(a, b.T), (2, 2))
    return made


CASES = _cases()


def source(name):
    """The file of a case, and the name of its kernel where the file has several."""
    file, _, kernel = name.partition(":")
    return FOLDER / f"{file}.mlir", kernel or None


def compiled(name, **options):
    case = CASES[name]
    return xegpu_py.compile(*source(name), **{"target": case.target, "registers": case.grf} | options)


@functools.cache
def checked(name):
    return compiled(name, check=["uninit", "races"])


def test_every_file_is_tried():
    # Files that compare the engines with the reference by themselves need no case here.
    files = {
        p.stem
        for p in FOLDER.glob("*.mlir")
        if not p.stem.startswith("xetile_") and not re.search("engine[ =]reference", p.read_text())
    }
    assert files == {name.partition(":")[0] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_kernel(name):
    case = CASES[name]
    out = case.out.copy()
    checked(name)(*case.inputs, out, grid=case.grid, block=case.block)
    if case.tolerance:
        np.testing.assert_allclose(out.astype(float), case.expected, rtol=case.tolerance, atol=case.tolerance)
    else:
        np.testing.assert_array_equal(out, np.asarray(case.expected, out.dtype))


@pytest.mark.parametrize("name", CASES)
def test_kernel_assembles(name, native_of):
    case = CASES[name]
    native = native_of(checked(name).asm, case.target, case.grf)
    assert native.instructions > 0
    assert native.total_registers == case.grf
    if "gemm" in name:
        assert native.spill_bytes == 0


GEMMS = [
    Gemm("bf16", "bf16", "f32"),
    Gemm("bf16", "bf16", "f32", rows=32, columns=32),
    Gemm("bf16", "bf16", "f32", rows=16, columns=48, m=96, n=96, fresh=True),
    Gemm("bf16", "bf16", "f32", rows=16, columns=32, transposed=True),
    Gemm("bf16", "bf16", "f32", m=100, n=104, k=88),
    Gemm("f16", "f16", "f32", rows=16, columns=16),
    Gemm("tf32", "tf32", "f32", rows=16, columns=32),
    Gemm("i8", "i8", "i32", rows=16, columns=32),
    Gemm("ui8", "i8", "i32", columns=64),
    Gemm("bf16", "bf16", "f32", rows=32, columns=64),
]


def operand(element, shape):
    dtype = DTYPES["f32" if element == "tf32" else element]
    if "i" in element:
        info = np.iinfo(dtype)
        return RNG.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    found = RNG.standard_normal(shape).astype(dtype)
    return (found.view("u4") & 0xFFFFE000).view("f4") if element == "tf32" else found


@pytest.mark.parametrize("gemm", GEMMS, ids=str)
def test_gemm(gemm):
    a = operand(gemm.a, (gemm.m, gemm.k))
    b = operand(gemm.b, (gemm.n, gemm.k) if gemm.transposed else (gemm.k, gemm.n))
    c = np.zeros((gemm.m, gemm.n), DTYPES[gemm.c])
    kernel = xegpu_py.compile(gemm.text(), registers=256, check=["uninit"], strict_grf=True)
    kernel(a, b, c, grid=(-(-gemm.m // gemm.rows), -(-gemm.n // gemm.columns)))
    right = b.T if gemm.transposed else b
    if gemm.c == "i32":
        expected = a.astype(np.int64) @ right.astype(np.int64)
    else:
        # Each product is added in increasing k with one rounding.
        expected = np.zeros((gemm.m, gemm.n), np.float32)
        for k in range(gemm.k):
            expected = fma_f32(np.outer(wide(a[:, k]), wide(right[k])), expected)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("gemm", GEMMS, ids=str)
def test_gemms_do_not_spill(gemm, native_of):
    grf = 256 if gemm.rows * gemm.columns > 32 * 32 else 128
    kernel = xegpu_py.compile(gemm.text(), target="pvc", registers=grf)
    native = native_of(kernel.asm, "pvc", grf)
    assert native.spill_bytes == 0


@pytest.mark.parametrize("gemm", GEMMS, ids=str)
def test_gemms_move_nothing_in_their_loops(gemm):
    instructions = xegpu_py.compile(gemm.text()).program.instructions
    names = [i.name for i in instructions]
    start, end = names.index("label"), names.index("jmp")
    inside = instructions[start:end]
    assert "dpas" in names[start:end]
    assert not [i for i in inside if i.name == "mov"]


def renames(program):
    """Moves that give numbers another name and nothing else: of one type, side by side, for all lanes."""
    found = 0
    for inst in program.instructions:
        if inst.name == "mov" and not inst.guard and isinstance(inst["src0"], Region):
            to, source = inst["dst"], inst["src0"]
            in_order = inst.exec_size == 1 or (source.vstride, source.width, source.hstride, to.stride) == (1, 1, 0, 1)
            found += source.var.type == to.var.type and not source.modifier and in_order
    return found


# Addresses, which a message takes from the start of a register, but which are arguments, or are computed with other
# numbers; results of the iteration before.
NEEDED = {"slm_sum": 2, "collatz": 2, "attention": 1, "parallel_loops": 3, "nbarrier": 2, "gemm_slm": 2}
NEEDED |= {"gemm_nbarriers": 4} | {f"gather_scatter:rows_of_{n}": 1 for n in (1, 2, 3, 4, 8)}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_moved_to_be_renamed(name):
    assert renames(checked(name).program) <= NEEDED.get(name, 0)
