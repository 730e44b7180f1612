"""Kernels of work items in workgroups of any shape compute what numpy computes for each work item."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples
from generators.work_items import Program

import xegpu_py


@pytest.mark.parametrize("seed", range(examples(40)))
def test_random_kernels(seed: int) -> None:
    program = Program(seed)
    wanted = program.results()
    for engine in ("jit", "interpreter"):
        found = {n: a.copy() for n, a in program.arrays.items()}
        xegpu_py.compile(program.text, engine=engine)(*found.values(), grid=program.grid, block=program.block)
        for name, array in found.items():
            np.testing.assert_array_equal(array, wanted[name], f"{name} on the {engine}", strict=True)
