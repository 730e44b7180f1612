"""Kernels of test/opencl as IGC 2.40 prints them, run by one hardware thread on both engines and compared with numpy.

The payload is written by hand: local ids 0, 1, 2, ...; of the triples the first is the global offset, the others the
local size. Variables from V0034 on hold the kernel's arguments, in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xegpu_py.ir.diagnostics import Source
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.executable import Options
from xegpu_py.runtime.launch import Grid, Launcher
from xegpu_py.target import target
from xegpu_py.visa.assembly import read
from xegpu_py.visa.linking import link
from xegpu_py.visa.program import Program
from xegpu_py.visa.verify import verify

FOLDER = Path(__file__).parents[2] / "opencl" / "recorded"
TARGETS = {"pvc": "pvcxt", "bmg": "bmg", "cri": "cri"}
Array = np.ndarray[Any, np.dtype[Any]]


def recorded(name: str) -> Program:
    path = FOLDER / f"{name}.visaasm"
    [found] = read(Source(path.read_text(), path.name))
    return found


def run(name: str, *arguments: Array | np.generic, functions: Sequence[str] = (), slm: int = 0) -> list[Array]:
    """Run a recorded kernel; the arrays as they are afterwards."""
    program = link(recorded(name), [recorded(f) for f in functions])
    program = replace(program, attributes={**program.attributes, "SLMSize": slm})
    gpu = TARGETS[name.partition("-")[0]]
    assert verify(program, target(gpu)) == []
    memory = DeviceMemory()
    buffers = []
    values: dict[str, bytes] = {}
    for item in program.inputs:
        if item.var.type == "w":
            values[item.var.name] = np.arange(item.var.count, dtype=np.int16).tobytes()
        elif item.var.count == 3:
            first = not any(v for v in values if len(values[v]) == 12)
            values[item.var.name] = np.array([0, 0, 0] if first else [program.simd_size, 1, 1], np.int32).tobytes()
        else:
            values[item.var.name] = bytes(item.size)
    for number, argument in enumerate(arguments):
        data = argument.tobytes()
        if isinstance(argument, np.ndarray):
            buffer = memory.allocate(f"argument{number}", argument.nbytes)
            memory.bytes_of(buffer)[:] = argument.reshape(-1).view(np.uint8)
            buffers.append((buffer, argument))
            data = buffer.address.to_bytes(8, "little")
        values[f"V00{34 + number}"] = data
    grid = Grid((1, 1, 1), (program.simd_size, 1, 1))
    given = {item.var.name: values[item.var.name] for item in program.inputs}
    Launcher(program, Options(engine="both", target=gpu, cache=None)).run(grid, given, memory)
    return [memory.bytes_of(buffer).view(argument.dtype).reshape(argument.shape) for buffer, argument in buffers]


def numbers(low: int, high: int, count: int = 32, kind: Any = np.int32) -> Array:
    return np.random.default_rng(count).integers(low, high, count).astype(kind)


@pytest.mark.parametrize("name", ["pvc-saxpy", "bmg-saxpy"])
def test_saxpy(name: str) -> None:
    x, y = numbers(-99, 99, 32, np.float32), numbers(0, 9, 32, np.float32)
    np.testing.assert_array_equal(run(name, x, y, np.float32(2.5))[1], 2.5 * x + y)


def test_saxpy_with_a_bound() -> None:
    """cri: addresses of a base, a scale and signed offsets."""
    x, y = numbers(-99, 99, 20, np.float32), numbers(0, 9, 20, np.float32)
    found = run("cri-saxpy_bounded", x, y, np.float32(2.5), np.int32(20))
    np.testing.assert_array_equal(found[1], 2.5 * x + y)


def test_loops_with_divergence() -> None:
    def steps(n: int) -> int:
        count = 0
        while n != 1:
            n, count = 3 * n + 1 if n & 1 else n // 2, count + 1
        return count

    given = numbers(1, 300)
    assert run("pvc-collatz", given, np.zeros(32, np.int32))[1].tolist() == [steps(int(n)) for n in given]


def test_switch_with_loop_and_early_return() -> None:
    def result(x: int, given: list[int], before: int) -> int:
        case = int(math.fmod(x, 7))
        if case == 3:
            return before
        if case in (1, 2):
            return x ^ 0x55
        if case == 4:
            return sum(k * given[k] for k in range(min(x, 10)) if k != 5)
        return 3 * x if case == 0 else -x

    given = numbers(-20, 30)
    given[:10] = np.abs(given[:10])
    found = run("bmg-classify", given, np.full(32, 77, np.int32))[1]
    assert found.tolist() == [result(int(x), given.tolist(), 77) for x in given]


def test_division_by_floats_that_are_rounded_toward_zero() -> None:
    a, b = numbers(-(2**31), 2**31), numbers(-1000, 1000) | 1
    out = np.zeros(32, np.int32)
    _, _, quotient, rest = run("bmg-divide", a, b, out, out)
    wanted = np.trunc(a / b.astype(np.float64)).astype(np.int32)
    np.testing.assert_array_equal(quotient, wanted)
    np.testing.assert_array_equal(rest, a - wanted * b)


def test_shuffles_by_registers_that_each_lane_chooses() -> None:
    x = numbers(0, 1000, 16)
    found = run("bmg-exchange", x, np.zeros(160, np.int32))[1].reshape(16, 10).T
    np.testing.assert_array_equal(found[0], np.roll(x, -3))
    np.testing.assert_array_equal(found[1], x[np.arange(16) ^ 5])
    np.testing.assert_array_equal(found[2], [*x[2:], 100, 100])
    np.testing.assert_array_equal(found[3:5], np.broadcast_to([[x[7]], [x.sum()]], (2, 16)))
    np.testing.assert_array_equal(found[5], np.cumsum(x) - x)
    np.testing.assert_array_equal(found[6], np.maximum.accumulate(x))


def test_shuffles_among_lanes_that_have_not_left_a_loop() -> None:
    x = numbers(0, 10, 16)
    found = run("cri-divergent_shuffle", x, np.zeros(16, np.int32))[1]
    assert found.tolist() == [sum(x[n ^ (k & 15)] for k in range(x[n])) for n in range(16)]


def test_arrays_in_registers() -> None:
    x = numbers(0, 16)
    wanted = []
    for i, n in enumerate(x):
        held = [int(x[k]) for k in range(4)]
        held[n & 3] += i
        wanted.append(held[n >> 2 & 3] * 10 + held[n >> 1 & 3])
    assert run("pvc-small_table", x, np.zeros(32, np.int32))[1].tolist() == wanted


@pytest.mark.parametrize("name", ["bmg-reduce_sum", "cri-reduce_sum"])
def test_local_memory_and_barriers(name: str) -> None:
    x = numbers(-1000, 1000)
    assert run(name, x, np.zeros(1, np.int32), slm=1)[1] == x.sum()


def test_vectors_of_three() -> None:
    x = numbers(-1000, 1000, 96, np.int16).reshape(32, 3)
    found = run("bmg-three", x, np.zeros_like(x))[1]
    np.testing.assert_array_equal(found, x[:, [2, 0, 1]] * np.int16(5))


def test_halves() -> None:
    a, b = numbers(-99, 99, 32, np.float16), numbers(1, 64, 32, np.float16)
    found = run("pvc-math_half", a, b, np.zeros(256, np.float16))[2].reshape(32, 8).T
    once = (a.astype(np.float64) * b + a).astype(np.float16)
    np.testing.assert_array_equal(found[:5], [a + b, a * b, once, np.maximum(a, b), np.floor(a)])
    np.testing.assert_allclose(found[5:7].astype(np.float64), [a / b, np.sqrt(b)], rtol=2**-10)
    np.testing.assert_array_equal(found[7], (a < b).astype(np.float16))


def test_matrices() -> None:
    a, b = numbers(-128, 127, 16 * 8 * 2, np.int8), numbers(-127, 128, 16 * 8 * 4, np.int8)
    c = run("pvc-multiply_s8", a, b, np.zeros(128, np.int32))[2].reshape(16, 8)
    # Lane l holds bytes 2 l and 2 l + 1 of each row of A, and rows 4 k to 4 k + 3 of column l of B.
    rows = a.reshape(16, 8, 2).transpose(1, 0, 2).reshape(8, 32).astype(int)
    columns = b.reshape(16, 32).T.astype(int)
    np.testing.assert_array_equal(c.T, rows @ columns + 1)


def test_atomics() -> None:
    x = numbers(-1000, 1000)
    _, out, old = run("cri-atomics_int", x, np.zeros(40, np.int32), np.zeros(64, np.int32))
    wanted = [x.sum(), -x.sum(), min(0, x.min()), max(0, x.max()), 0, np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]
    assert out[:8].tolist() == [*wanted, 0]
    np.testing.assert_array_equal(out[8:], np.resize(np.arange(32), 32))
    np.testing.assert_array_equal(old.reshape(32, 2), np.stack([np.zeros(32), x], axis=1))


def test_subroutines() -> None:
    def poly(x: int, y: int) -> int:
        return (x * 3 + y) ^ (y << 2)

    x = numbers(0, 16, 16)
    wanted = []
    for i, n in enumerate(map(int, x)):
        once = poly(n, i)
        wanted.append(once + poly(once, n) if n > 5 else once)
    assert run("bmg-subroutine", x, np.zeros(16, np.int32))[1].tolist() == wanted
