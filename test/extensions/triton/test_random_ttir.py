"""Random programs of Triton's IR, lowered, leave what numpy computes."""

import random

from effort import examples
from generators import triton

import xegpu_py


def test_lowered_programs_compute_as_numpy_does() -> None:
    for seed in range(examples(200)):
        program = triton.program(random.Random(seed))
        arrays = program.arrays()
        xegpu_py.compile(program.text, target="bmg", cache="off", progress=False)(*arrays, grid=program.grid)
        assert triton.differences(program, arrays) == [], f"seed {seed}:\n{program.text}"
