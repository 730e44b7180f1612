"""Kernels give the same bits when they are optimised."""

from __future__ import annotations

import random

import numpy as np
from engines.structured import SIZES, kernel, lanes_of, statements, thread_number
from hypothesis import given, settings
from hypothesis import strategies as st
from visa.mixtures import REGISTERS, SCRATCH, Mixture
from xegpu_py.passes.visa_optimize import VisaOptimize

from xegpu_py.kernel import Kernel
from xegpu_py.target import TARGETS
from xegpu_py.visa.program import Program
from xegpu_py.visa.verify import verify

TARGET = TARGETS["pvcxt"]
OPTIONS = ("fold", "copies", "common", "addresses", "hoist", "dead", "schedule")


def optimized(program: Program, **options: bool) -> Program:
    new = VisaOptimize(**options).optimize(program, TARGET)
    assert verify(new, TARGET) == []
    return new


def memory_after(program: Program, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    contents = rng.integers(0, 256, 7 * REGISTERS * TARGET.grf_bytes, np.uint8)
    out, scratch = np.zeros(len(contents) + 64, np.uint8), rng.integers(0, 256, SCRATCH, np.uint8)
    Kernel(program, registers=256, check=["uninit"])(contents, out, scratch)
    return out, scratch


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 60), st.sets(st.sampled_from(OPTIONS), max_size=3))
def test_random_kernels(seed: int, lanes_part: bool, length: int, left_out: set[str]) -> None:
    program = Mixture(random.Random(seed), lanes_part=lanes_part).program(length)
    assert verify(program, TARGET) == []
    new = optimized(program, **dict.fromkeys(left_out, False))
    for before, after in zip(memory_after(program, seed), memory_after(new, seed)):
        np.testing.assert_array_equal(before, after)


@settings(max_examples=60, deadline=None)
@given(statements(3), st.sampled_from(sorted(SIZES)), st.integers(0, 1000))
def test_structured_programs(program: list[object], size: str, seed: int) -> None:
    body, declarations, values = lanes_of(program, size, 4, seed)
    old = kernel(thread_number(2) + body, declarations).program
    found = []
    for each in (old, optimized(old)):
        out = values.copy()
        Kernel(each)(out, grid=2, block=2)
        found.append(out)
    np.testing.assert_array_equal(*found)
