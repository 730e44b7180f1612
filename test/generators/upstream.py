"""Random programs in upstream's XeGPU, which `test/fuzz_upstream.py` generates, too."""

from __future__ import annotations

from random import Random
from typing import get_args

from generators.upstream_kernels import ELEMENTS, PRODUCTS, SCALED, WRITTEN, RandomKernel
from generators.upstream_lanes import random_kernel
from xegpu_py.upstream.levels import LANES, Level

from .program import Program


def program(r: Random) -> Program:
    """A random program."""
    return _finished(_kernel(r))


def tour(r: Random, element: str, length: int) -> Program:
    """A program of an element's ops."""
    kernel = _kernel(r)
    if element not in SCALED:
        kernel.elements = (element,)
    return _finished(kernel, length)


def _kernel(r: Random) -> RandomKernel:
    return random_kernel(r, r.choice(get_args(Level)))


def _finished(kernel: RandomKernel, length: int | None = None) -> Program:
    made = kernel.program(length)
    block = LANES if made.level == "lane" else made.subgroups
    # Only one GPU multiplies block-scaled matrices.
    target = "cri" if "xegpu.dpas_mx" in made.text else "pvcxt"
    return Program(made.text, made.words, block=(block,), target=target, upstream=made.level, expected=made.expected)


__all__ = ["ELEMENTS", "PRODUCTS", "SCALED", "WRITTEN", "program", "tour"]
