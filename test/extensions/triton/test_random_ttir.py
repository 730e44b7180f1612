"""Random programs of Triton's IR, lowered, leave what numpy computes."""

import random

from effort import examples
from generators import triton

import xegpu_py


def test_lowered_programs_compute_as_numpy_does() -> None:
    for seed in range(examples(200)):
        program = triton.program(random.Random(seed))
        arrays = program.arrays()
        # Elements that a mask leaves out are not out of bounds, but those around a descriptor's tensor are.
        check = ("bounds",) if seed % 2 and "tt.descriptor" not in program.text else ()
        kernel = xegpu_py.compile(program.text, target="bmg", check=check, cache="off", progress=False)
        kernel(*arrays, grid=program.grid)
        assert triton.differences(program, arrays) == [], f"seed {seed}:\n{program.text}"
