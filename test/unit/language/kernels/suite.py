"""The launches of the kernels of the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

BF16, F8, F16, F32 = ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float16, np.float32
I8, I16, I32, I64, U8, U32 = np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32


@dataclass
class Run:
    """A launch of a kernel.

    Attributes:
        kernel: the Python function.
        arguments: in order; the kernel writes arrays among them.
        expected: what numpy gives for arrays among the arguments, by number.
        grid: workgroups.
        constants: arguments by name.
        tolerance: absolute and relative, by which the kernel may differ from numpy; 0 for none.
    """

    kernel: Callable[..., Any]
    arguments: Sequence[Any]
    expected: Mapping[int, np.ndarray]
    grid: int | tuple[int, ...] = 1
    constants: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 0.0


RUNS: dict[str, Callable[[np.random.Generator], Run]] = {}


def run(make: Callable[[np.random.Generator], Run]) -> Callable[[np.random.Generator], Run]:
    """Registers a function that makes a run."""
    assert make.__name__ not in RUNS
    RUNS[make.__name__] = make
    return make


def normal(rng: np.random.Generator, *shape: int, dtype: Any = F32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def whole(rng: np.random.Generator, *shape: int, dtype: Any = F32, most: int = 3) -> np.ndarray:
    """Small whole numbers, of which sums of any order are exact."""
    return rng.integers(-most, most + 1, shape).astype(dtype)


def softmax_of(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
