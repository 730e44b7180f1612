"""Kernels of test/extensions/opencl/recorded on both engines give what another implementation of OpenCL computes."""

from __future__ import annotations

import functools
import math
import re

import numpy as np
import pytest
import recordings
from effort import SHARE
from msgspec import structs

from xegpu_py import external_tools, opencl
from xegpu_py.extensions.opencl import abi, comparison
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.executable import Options
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import target as target_of

RECORDED = recordings.read()
SWEPT = SHARE == 1 and external_tools.find("ocloc")
"""Programs for all targets are compiled in `make sweep`."""

CASES = [(case, target) for case in recordings.cases() for target in (recordings.targets(case.file) if SWEPT else [""])]
"""Each kernel, and the targets for which it is compiled; none for what is recorded."""

WRONG = {("cri", "builtins_long"), ("cri", "builtins_ulong")}
"""IGC 2.40 stores the register of mul_hi of 64 bits before it is written."""


REPEATED = """
    arithmetic:operators_char arithmetic:operators_char16 arithmetic:operators_int arithmetic:operators_int4
    arithmetic:operators_long arithmetic:operators_long2 arithmetic:operators_short arithmetic:operators_uchar
    arithmetic:operators_uchar2 arithmetic:operators_uint8 arithmetic:operators_ulong arithmetic:operators_ulong4
    arithmetic:operators_ushort arithmetic:operators_ushort2 atomics:atomics_int atomics:histogram
    builtins:builtins_char builtins:builtins_int builtins:builtins_long builtins:builtins_short
    builtins:builtins_short4 builtins:builtins_uchar builtins:builtins_uint2 builtins:builtins_ulong
    builtins:builtins_ushort builtins:upsampled control_flow:classify control_flow:collatz
    conversions:between_vectors conversions:from_char conversions:from_double conversions:from_float
    conversions:from_half conversions:from_int conversions:from_long conversions:from_short conversions:from_uint
    conversions:from_ulong conversions:from_ushort float_functions:exact_float float_functions:exact_float4
    float_functions:extremes float_functions:geometry float_functions:near_float float_functions:parts floats:sines
    integers:divide_long integers:divide_unsigned private_memory:large_array private_memory:sorted
    reduction:reduce_sum subgroup_functions:group_double subgroup_functions:group_float
    subgroup_functions:group_half subgroup_functions:group_long tiles:matmul tiles:stencil vectors:shuffle_vectors
    vectors:swap_bytes work_items:ids workgroups:copied workgroups:duff workgroups:group_functions
    workgroups:records workgroups:sort_in_local_memory workgroups:two_arrays
"""
"""Kernels that execute no function of the package which the others do not: `make sweep` runs them."""


@functools.cache
def program(target: str, file: str) -> opencl.Program:
    # One thread orders what atomics return.
    if target:
        return opencl.compile(recordings.FOLDER / file, target=target, engine="both", threads=1)
    made = RECORDED.programs[file]
    return opencl.Program(made, Options(target=made.target, engine="both", threads=1))


@pytest.mark.sweep(*[f"{name}-recorded" for name in REPEATED.split()])
@pytest.mark.parametrize(("case", "target"), CASES, ids=[f"{c.name}-{t or 'recorded'}" for c, t in CASES])
def test_kernel(case: recordings.Case, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    made, arguments = program(target, case.file), case.arguments()
    if (made.compiled.target, case.kernel) in WRONG:
        made = opencl.Program(made.compiled, Options(target="cri", check=("uninit",)))
        with pytest.raises(DiagnosticError, match="never written"):
            made.kernels[case.kernel][case.items, case.block](*arguments)
        return
    made.kernels[case.kernel][case.items, case.block](*arguments)
    results = RECORDED.results[case.name]
    for array, data in zip(recordings.arrays_of(arguments, made, case), results):
        assert not case.differs(array, np.frombuffer(data, array.dtype).reshape(array.shape))
    if printed := capsys.readouterr().out:
        assert sorted(printed.splitlines()) == sorted(results[-1].decode().splitlines())


def test_a_call_without_sizes_is_an_error():
    made = program("", "saxpy.cl")
    with pytest.raises(TypeError, match=re.escape("kernel 'saxpy' needs sizes: saxpy[global size, local size](...)")):
        made.kernels["saxpy"](np.zeros(64, np.float32), np.zeros(64, np.float32), np.float32(2))


COUNTING = """.version 3.8
.kernel "counting"
.decl Base v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl At v_type=G type=uq num_elts=1 align=GRF
.input Base offset={}
.input Out offset={}
.kernel_attr SimdSize=16
.function "_main_0"
_main_0:
mov (M1, 1) At(0,0)<1> Base(0,0)<0;1,0>
shl (M1, 1) At(0,0)<1> At(0,0)<0;1,0> 0x2:ud
add (M1, 1) At(0,0)<1> At(0,0)<0;1,0> Out(0,0)<0;1,0>
lsc_atomic_iinc.ugm (M1_NM, 1) %null.0:d32 flat[At]:a64 %null.0 %null.0
ret (M1, 1)
"""


@pytest.mark.parametrize("groups", [(1, 1, 1), (5, 1, 1), (1, 4, 1), (1, 1, 3), (2, 3, 4)])
@pytest.mark.parametrize("block", [(16, 1, 1), (40, 1, 1), (8, 3, 2)])
def test_each_thread_of_a_grid_has_private_memory_of_its_own(groups, block):
    """Each counts at its part of memory of one byte for each thread."""
    grf = target_of("bmg").grf_bytes
    program = Kernel.from_assembly(COUNTING.format(f"{grf} size=8", f"{grf + 8} size=8"), target="bmg").program
    counting = abi.prologue(program, target_of("bmg"), block, groups, [abi.Private(0, 1, "Base")])
    threads = -(-math.prod(block) // 16)
    counts = np.zeros(threads * math.prod(groups) + 8, np.int32)
    Kernel(counting, target="bmg")(0, counts, grid=groups, block=math.prod(block))
    assert counts.tolist() == [1] * (counts.size - 8) + [0] * 8


def test_programs_are_compared_without_ocloc():
    """A recorded program and itself, or itself with another instruction, which the comparison finds by its line."""
    whole = RECORDED.programs["saxpy.cl"]
    a = np.arange(64, dtype=np.float32)
    call = comparison.Call("saxpy", (a, np.ones(64, np.float32), np.float32(2)), 64)
    options = Options(target=whole.target)
    for old, new, arrays, failures in (
        ("mad", "mad", [], [False, False]),
        ("mad (M1, 32) V0072(0,0)<1> V0036(0,0)<0;1,0>", "mad (M1, 32) V0072(0,0)<1> (-)V0036(0,0)<0;1,0>", ["y"],
         [False, False]),
        ("shl (M1, 32)", "shl.nothing (M1, 32)", [], [False, True]),
    ):  # fmt: skip
        assert all(old in text for text in whole.texts if '"saxpy"' in text)
        other = structs.replace(whole, texts=tuple(text.replace(old, new) for text in whole.texts))
        found = comparison._compared(call, [whole, other], ("one", "other"), options)
        assert [*found.arrays] == arrays and [f is not None for f in found.failures or (None, None)] == failures
        assert [s and s.line for s in found.stores] == ([3, 3] if arrays else [None, None])
    assert (a == np.arange(64)).all(), "copies of arrays are compared"
    with pytest.raises(ValueError, match="there is no kernel 'no'; there are saxpy"):
        comparison._compared(structs.replace(call, kernel="no"), [whole, whole], ("one", "other"), options)
