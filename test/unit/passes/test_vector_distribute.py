"""Each lane of distributed code computes its part, by the layouts, of the undistributed code's results."""

import math

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.passes.rewriting.lane_layout_conversion import MOST_ROUNDS

from .iree import distributed
from .lanes import Workgroup
from .layout_programs import (
    OWN,
    SHARED,
    conflict,
    contract,
    conversion,
    make,
    masked_transfer,
    reshaped,
    unit_dims,
    within_subgroups,
    writes,
)


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
@settings(max_examples=examples(12))
@given(st.integers(0, 1 << 30))
def test_each_lane_has_its_part(kind, seed):
    program = make(kind, seed)
    module = xegpu_py.parse(program.text)
    xegpu_py.run_pipeline(module, f"builtin.module(vector-distribute{{subgroup-size={program.lanes}}})")
    assert "to_layout" not in str(module) and "to_simt" not in str(module)
    check(program, module)


@settings(max_examples=examples(20))
@given(st.integers(0, 1 << 30))
def test_what_stays_in_a_subgroup_needs_no_memory(seed):
    program = make(within_subgroups, seed)
    module = xegpu_py.parse(program.text)
    xegpu_py.run_pipeline(module, f"builtin.module(vector-distribute{{subgroup-size={program.lanes}}})")
    workgroup = Workgroup(program.subgroups, program.lanes)
    (func,) = functions(module)
    workgroup.run(func, [a.copy() for a in program.arrays])
    size = math.prod(program.result.distributed_shape)
    assert workgroup.shuffles <= MOST_ROUNDS
    assert not workgroup.barriers or size > MOST_ROUNDS


# Where iree-opt 3.13 itself computes something else than the undistributed program does.
LIMITS_OF_IREE = {contract: {"subgroups": 1}, masked_transfer: {"outers": False}}


def written(module, program):
    """What a run leaves in the last memory, and which lanes have written which of its places."""
    arrays = [a.copy() for a in program.arrays]
    workgroup = Workgroup(program.subgroups, program.lanes)
    (func,) = functions(module)
    workgroup.run(func, arrays)
    return arrays[-1], workgroup.written[id(arrays[-1])]


# How many of each kind of program are compared.
PEER = dict.fromkeys(SHARED, examples(8)) | dict.fromkeys(
    (conversion, conflict, reshaped, unit_dims, writes), examples(4)
)


@pytest.mark.needs("iree-opt")
@pytest.mark.parametrize(("kind", "cases"), PEER.items(), ids=lambda x: getattr(x, "__name__", str(x)))
def test_lanes_compute_what_they_do_by_iree_opt(kind, cases):
    compared = 0
    for seed in range(8 * cases):
        if compared == cases:
            break
        program = make(kind, seed, writes_result=True, gaps=False, **LIMITS_OF_IREE.get(kind, {}))
        peer = distributed(program)
        if peer is None:
            # It does not reduce to a scalar over some of its dimensions, nor move elements to other lanes.
            continue
        module = xegpu_py.parse(program.text)
        xegpu_py.run_pipeline(module, f"builtin.module(vector-distribute{{subgroup-size={program.lanes}}})")
        (ours, by), (theirs, by_theirs) = written(module, program), written(peer, program)
        assert np.array_equal(ours, theirs)
        for mine, other in zip(by, by_theirs):
            # If several lanes hold the same element, iree-opt lets one of them write.
            assert np.array_equal(mine, other) or not other.any()
        compared += 1
    assert compared == cases
