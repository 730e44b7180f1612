"""Kernels of test/opencl on both engines give what another implementation of OpenCL computes."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import recordings
from effort import SHARE

from xegpu_py import opencl, oracles
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.opencl.compiler import DEVICES
from xegpu_py.runtime.executable import Options

RECORDED = recordings.read()
TARGETS = list(DEVICES) if SHARE == 1 and oracles.find("ocloc") else ["recorded"]
"""Programs for all targets are compiled in `make sweep`."""

WRONG = {("cri", "builtins_long"), ("cri", "builtins_ulong")}
"""IGC 2.40 stores the register of mul_hi of 64 bits before it is written."""


@functools.cache
def program(target: str, file: str) -> opencl.Program:
    # One thread orders what atomics return.
    if target != "recorded":
        return opencl.compile(recordings.FOLDER / file, target=target, engine="both", threads=1)
    made = RECORDED.programs[file]
    return opencl.Program(made, Options(target=made.target, engine="both", threads=1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", recordings.cases(), ids=lambda case: case.name)
def test_kernel(target: str, case: recordings.Case, capsys: pytest.CaptureFixture[str]) -> None:
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
