"""Kernels of test/extensions/opencl/recorded on both engines give what another implementation of OpenCL computes."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
import recordings
from effort import SHARE

from xegpu_py import external_tools, opencl
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.executable import Options

RECORDED = recordings.read()
SWEPT = SHARE == 1 and external_tools.find("ocloc")
"""Programs for all targets are compiled in `make sweep`."""

CASES = [(case, target) for case in recordings.cases() for target in (recordings.targets(case.file) if SWEPT else [""])]
"""Each kernel, and the targets for which it is compiled; none for what is recorded."""

WRONG = {("cri", "builtins_long"), ("cri", "builtins_ulong")}
"""IGC 2.40 stores the register of mul_hi of 64 bits before it is written."""


@functools.cache
def program(target: str, file: str) -> opencl.Program:
    # One thread orders what atomics return.
    if target:
        return opencl.compile(recordings.FOLDER / file, target=target, engine="both", threads=1)
    made = RECORDED.programs[file]
    return opencl.Program(made, Options(target=made.target, engine="both", threads=1))


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
