"""Executions of barriers: engines execute one again when they find that a thread may continue."""

import numpy as np
import pytest

from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import without_waits

PROGRAM = """.version 3.8
.kernel "k"
.decl X v_type=G type=d num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    {}
    ret (M1, 1)
"""
MOV = "mov (M1, 16) X(0,0)<1> 0x1:d"


@pytest.mark.parametrize(
    ("lines", "counted_as"),
    [
        # As often as the next instruction,
        (["barrier", MOV], [1, 1]),
        (["barrier", "barrier", MOV], [2, 2, 2]),
        (["L:", "barrier", MOV], [0, 2, 2]),
        # or the one before it, if threads come to the next one from elsewhere too.
        ([MOV, "barrier", "L:", MOV], [0, 0, 2, 3]),
        ([MOV, "barrier", "barrier", "L:", MOV], [0, 0, 0, 3, 4]),
        # Nothing is known of it behind a jump and before a label, or at the start.
        (["(P.any) jmp (M1, 1) L", "barrier", "L:", MOV], [0, 1, 2, 3]),
        (["barrier", "L:", MOV], [0, 1, 2]),
        # A jump is no label.
        (["L:", "barrier", "(P.any) jmp (M1, 1) L"], [0, 2, 2]),
    ],
)
def test_executions_without_waits(lines, counted_as):
    program = Kernel.from_assembly(PROGRAM.format("\n    ".join(lines))).program
    executed = np.arange(len(program.instructions)) * 10 + 5
    found = without_waits(program, executed.copy())
    assert found.tolist() == [10 * n + 5 for n in (*counted_as, len(lines))]
