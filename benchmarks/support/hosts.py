"""Benchmarks on a CPU as if it were another one: the JIT and numpy's BLAS make use of no more than that one has."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

CORES = {
    "haswell": "Haswell",
    "znver3": "Zen",
    "skylake-avx512": "SkylakeX",
    "sapphirerapids": "SapphireRapids",
}
"""OpenBLAS's names of the CPUs that LLVM calls so."""


WIDER_THAN_AVX2 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
"""numpy's names of what it has code for that CPUs with AVX2 alone do not run."""


def choose_host(name: str) -> None:
    """Let this process, which has loaded neither numpy nor the JIT, make code for a CPU."""
    os.environ["XEGPU_PY_HOST"] = name
    os.environ["OPENBLAS_CORETYPE"] = CORES[name]
    if name in ("haswell", "znver3"):
        os.environ["NPY_DISABLE_CPU_FEATURES"] = WIDER_THAN_AVX2


def prepare(arguments: Sequence[str]) -> None:
    """Make this process ready for a benchmark's options; it must have loaded neither numpy nor the JIT.

    `--cpu-time` has both use one thread, and counts the time that it spends on a processor; `--host NAME` makes code
    for another CPU.
    """
    if "--cpu-time" in arguments:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if "--host" in arguments:
        choose_host(arguments[list(arguments).index("--host") + 1])


def clock(arguments: Sequence[str]) -> Callable[[], float]:
    """What measures seconds with a benchmark's options."""
    return time.process_time if "--cpu-time" in arguments else time.perf_counter


def blas_core() -> str:
    """The CPU for which numpy's OpenBLAS has chosen its kernels, as it says itself; "?" if it is another BLAS."""
    import numpy as np

    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for file in folder.glob("libscipy_openblas*"):
        library = ctypes.CDLL(str(file))
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename"):
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype = ctypes.c_char_p
                return str(function().decode())
    return "?"
