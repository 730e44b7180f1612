"""Distributed code computes, lane by lane, what the layouts say of the undistributed code's results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py

from .lanes import Workgroup
from .layout_programs import OWN, SHARED, make


def functions(module):
    return [op.operation for op in module.ops() if op.operation.name == "func.func"]


def run(module, program, *, subgroups, lanes):
    """The memory after a run, and what each lane has of the result."""
    arrays = [a.copy() for a in program.arrays]
    workgroup = Workgroup(subgroups, lanes)
    (func,) = functions(module)
    found = workgroup.run(func, arrays)
    return arrays, (workgroup.simd or found)


def check(program, module):
    """Run a distributed module beside the program."""
    original = xegpu_py.parse(program.text)
    expected, whole = run(original, program, subgroups=1, lanes=1)
    arrays, parts = run(module, program, subgroups=program.subgroups, lanes=program.lanes)
    for a, b in zip(expected, arrays):
        assert np.array_equal(a, b)
    if program.result:
        dealt = program.result.distribute(whole[0][0], subgroups=program.subgroups, threads=program.lanes)
        assert np.array_equal(parts[0].reshape(dealt.shape), dealt)
    return parts


@pytest.mark.parametrize("kind", [*SHARED, *OWN], ids=lambda kind: kind.__name__)
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1 << 30))
def test_each_lane_has_its_part(kind, seed):
    program = make(kind, seed)
    module = xegpu_py.parse(program.text)
    xegpu_py.run_pipeline(module, f"builtin.module(vector-distribute{{subgroup-size={program.lanes}}})")
    assert "to_layout" not in str(module) and "to_simt" not in str(module)
    check(program, module)
