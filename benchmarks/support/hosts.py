"""Benchmarks on a CPU as if it were another one: the JIT and numpy's BLAS make use of no more than that one has."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

CORES = {
    "haswell": "Haswell",
    "znver3": "Zen",
    "skylake-avx512": "SkylakeX",
    "sapphirerapids": "SapphireRapids",
}
"""OpenBLAS's names of the CPUs that LLVM calls so."""


def choose_host(name: str) -> None:
    """Let this process, which has loaded neither numpy nor the JIT, make code for a CPU."""
    os.environ["XEGPU_PY_HOST"] = name
    os.environ["OPENBLAS_CORETYPE"] = CORES[name]


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
