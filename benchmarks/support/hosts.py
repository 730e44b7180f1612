"""Benchmark as on another CPU: the JIT and numpy's BLAS use only the features of that CPU."""

from __future__ import annotations

import argparse
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
"""OpenBLAS's name of each of these CPUs, by LLVM's name."""


WIDER_THAN_AVX2 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
"""numpy's names of the CPU features that CPUs with only AVX2 lack."""


def choose_host(name: str) -> None:
    """Let this process, which must have loaded neither numpy nor the JIT, generate code for a CPU."""
    os.environ["XEGPU_PY_HOST"] = name
    os.environ["OPENBLAS_CORETYPE"] = CORES[name]
    if name in ("haswell", "znver3"):
        os.environ["NPY_DISABLE_CPU_FEATURES"] = WIDER_THAN_AVX2


def prepare(arguments: Sequence[str]) -> None:
    """Prepare this process for a benchmark's options. It must have loaded neither numpy nor the JIT.

    `--cpu-time` measures processor time with one thread each; `--host NAME` generates code for another CPU.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--host")
    found, _ = parser.parse_known_args(arguments)
    if found.cpu_time:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if found.host in CORES:
        choose_host(found.host)


def clock(arguments: Sequence[str]) -> Callable[[], float]:
    """The clock for a benchmark's options, in seconds."""
    return time.process_time if "--cpu-time" in arguments else time.perf_counter


def blas_core() -> str:
    """The CPU for which numpy's OpenBLAS has selected its kernels, by its own report; "?" for another BLAS."""
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
