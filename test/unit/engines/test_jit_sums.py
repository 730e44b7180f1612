"""Sums that the models `stage` and `exact` round once: native code adds in f64, exactly or with the errors of sums."""

from __future__ import annotations

import random

import numpy as np
import pytest
from msgspec.structs import replace
from visa.programs import general, random_instruction

from xegpu_py.numerics.dpas import Model, ops_per_channel, pack_a, pack_b
from xegpu_py.numerics.formats import PRECISIONS
from xegpu_py.target import TARGETS
from xegpu_py.visa.operands import Raw

from .machine import Machine, State
from .test_jit import compare

PVC = TARGETS["pvcxt"]
ROWS, COLUMNS, DEPTH = 8, 16, 8
THREADS = 768

# Bits of a significand, and the least and greatest exponents of normal numbers.
FORMATS = {
    "bf": (8, -126, 127),
    "hf": (11, -14, 15),
    "tf32": (11, -126, 127),
    "bf8": (3, -14, 15),
    "hf8": (4, -6, 8),
}


def matrix(rng: np.random.Generator, name: str, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix for each thread, f64[threads, rows, columns]: exponents from a number on that is the thread's, spread
    more or less far; and the least exponent of each."""
    bits, low, high = FORMATS[name]
    spread = rng.integers(0, min(high - low, 30) + 1, (THREADS, 1, 1))
    first = rng.choice((low, low + 2, -30, -8, -1, 20, high - 3), (THREADS, 1, 1)).clip(low, high)
    exponents = np.minimum(first + rng.integers(0, spread + 1, (THREADS, rows, columns)), high)
    significands = rng.integers(1 << (bits - 1), 1 << bits, exponents.shape)
    if name == "hf8":
        significands[(exponents == high) & (significands == 15)] = 14
    values = np.ldexp(significands * rng.choice((-1.0, 1.0), exponents.shape), exponents - (bits - 1))
    # Some zeros, of both signs, and a thread whose matrix is zero.
    values *= rng.random(values.shape) < rng.choice((0.5, 0.9, 1.0), (THREADS, 1, 1))
    values[0] = 0.0
    return values, exponents.min(axis=(1, 2))


def cancel(rng: np.random.Generator, left: np.ndarray, right: np.ndarray) -> None:
    """Let pairs of products take each other away, in most places and a third of the threads: what f64 has lost in
    between is missed then."""
    some = slice(1, THREADS // 3)
    left[some, :, 1::2] = left[some, :, ::2]
    same = rng.random(right[some, ::2].shape) < 0.95
    right[some, 1::2] = np.where(same, -right[some, ::2], right[some, 1::2])


def ties(rng: np.random.Generator, w: str, a: str, left: np.ndarray, right: np.ndarray, held: np.ndarray) -> None:
    """Let the first product lie half way between two f32 sums, and a much smaller one decide, in a third of the
    threads: if f64 has lost that, it decides no more."""
    w_bits, a_bits = FORMATS[w][0], FORMATS[a][0]
    for thread in range(THREADS // 3, 2 * THREADS // 3):
        left[thread], right[thread] = 0.0, 0.0
        least = [max(FORMATS[n][1], -8) for n in (a, w)]
        last = sum(least) - (a_bits - 1) - (w_bits - 1)
        apart = int(rng.integers(-6, 8))
        greatest = 53 + apart
        # So far above the least exponents as is left of a tie's 24 bits.
        above = greatest - 24 - (a_bits - 1) - (w_bits - 1)
        half = max(0, min(above // 2, FORMATS[a][2] - least[0]))
        rest = min(above - half, FORMATS[w][2] - least[1])
        left[thread, :, 0], right[thread, 0] = 2.0 ** (least[0] + half), 2.0 ** (least[1] + rest)
        left[thread, :, 1] = np.ldexp((1 << a_bits) - 1.0, least[0] - (a_bits - 1))
        right[thread, 1] = np.ldexp((1 << w_bits) - 1.0, least[1] - (w_bits - 1)) * rng.choice((-1, 1), COLUMNS)
        held[thread] = np.ldexp(1.0 + rng.integers(0, 2, held[thread].shape) * 2.0**-23, last + greatest)


def accumulators(rng: np.random.Generator, sums: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Accumulators of six kinds, f32[threads, rows, columns].

    Args:
        sums: of products, which some of them take away but for little.
        unit: int[threads], the exponent of the last bit of products.
    """
    shape = sums.shape
    signs = rng.choice((-1.0, 1.0), shape)
    near = rng.integers(-6, 5, (THREADS, 1, 1))
    at = unit[:, None, None]
    patterns = rng.integers(0, 1 << 32, shape, np.uint32).view(np.float32)
    kinds = [
        sums * rng.standard_normal(shape),
        -sums,
        np.ldexp(signs * rng.integers(1, 8, shape), at + near),
        np.ldexp(signs * (1 + rng.integers(0, 2, shape) * 2.0**-23), at + 51 + near // 4),
        0.0 * signs,
    ]
    chosen = rng.integers(0, len(kinds) + 1, THREADS)
    # Among products that take each other away, those that are small.
    chosen[1 : THREADS // 4] = 2
    with np.errstate(all="ignore"):
        kinds.append(patterns.astype(np.float64))
        return np.choose(chosen[:, None, None], kinds).astype(np.float32)


@pytest.mark.each_value
@pytest.mark.parametrize("model", ["stage", "exact"])
@pytest.mark.parametrize(("w", "a"), [("bf", "bf"), ("hf", "hf"), ("tf32", "tf32"), ("bf8", "hf8"), ("hf8", "hf8")])
def test_sums_at_the_edge_of_f64(w: str, a: str, model: Model) -> None:
    rng = np.random.default_rng(len(w) + len(model))
    target = PVC if PRECISIONS[w].bits > 8 else TARGETS["any"]
    machine = Machine(target)
    variables = {v.name: v for v in general(target)}
    inst = random_instruction("dpas", random.Random(0), target)
    acc, b, a_place = (variables[n] for n in ("F1", "D0", "UD0"))
    values = {"W": w, "A": a, "SD": DEPTH, "RC": ROWS, "dst": Raw(variables["F0"], 0), "src0": Raw(acc, 0)}
    values |= {"src1": Raw(b, 0), "src2": replace(inst["src2"], var=a_place, row=0, col=0)}
    inst = inst.replaced(values=dict(inst.values) | values, mask="M1_NM", guard=None)
    k = DEPTH * ops_per_channel(w, a)
    left, a_least = matrix(rng, a, ROWS, k)
    right, b_least = matrix(rng, w, k, COLUMNS)
    unit = a_least + b_least - (FORMATS[a][0] - 1) - (FORMATS[w][0] - 1)
    cancel(rng, left, right)
    held = accumulators(rng, left @ right, unit)
    ties(rng, w, a, left, right, held)
    left[-40:-20, 3, 1], right[-20:, 1, 3] = np.nan, np.nan
    if w not in ("bf8", "hf8"):
        left[-30:-20, 3, 1], right[-10:, 1, 3] = np.inf, -np.inf
    before = machine.state(1, random.Random(0))
    state = State(*(np.repeat(x, THREADS, axis=0) for x in (before.regs, before.flags, before.active)))
    for var, data in (
        (a_place, pack_a(left.astype(PRECISIONS[a].dtype), a)),
        (b, pack_b(right.astype(PRECISIONS[w].dtype), w)),
        (acc, held.view(np.uint8).reshape(THREADS, -1)),
    ):
        state.regs[:, machine.offsets[var] : machine.offsets[var] + data.shape[1]] = data
    compare([inst], state, machine, model=model)
