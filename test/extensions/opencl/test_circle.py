"""The whole circle: what our passes make is wrapped as OpenCL C with inline assembly and compiled by IGC. The vISA that
IGC prints gives the same bytes here as the kernel itself."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import SHARE

from xegpu_py import opencl
from xegpu_py.runtime.device_memory import zeros_aligned
from xegpu_py.runtime.executor import Executor
from xegpu_py.runtime.launch import Prepared, Statistics
from xegpu_py.target import target as target_of
from xegpu_py.tools import xegpu_run
from xegpu_py.visa import assembly, finalizer

FOLDER = Path(__file__).parents[2] / "run"
FEW = ("gemm_slm.mlir", "histogram.mlir", "nbarrier.mlir", "xetile_softmax.mlir")
"""The files of a test run; `make sweep` takes all."""


def commands() -> Iterator[Any]:
    """The arguments of the first run of `xegpu-run` in each file that lowers a kernel for a GPU of Intel's."""
    for path in sorted(FOLDER.glob("*.*")):
        runs = [line.partition("RUN: xegpu-run %s")[2] for line in path.read_text().splitlines()]
        found = [line for line in runs if line and "reference" not in line and "any" not in line]
        if found and (SHARE == 1 or path.name in FEW):
            words = shlex.split(found[0].partition("|")[0].rstrip("\\ "))
            yield pytest.param([str(path), *(w for w in words if not w.startswith("--trace"))], id=path.name)


class Circle:
    """Runs each launch a second time, as IGC prints the kernel.

    Attributes:
        launches: how many launches were compared.
    """

    def __init__(self, run: Any) -> None:
        self._run, self.launches = run, 0

    def __call__(self, executor: Executor, prepared: Prepared) -> Statistics:
        program, target = executor.program, executor.options.target
        memory = prepared.memory
        copies = []
        for buffer in memory.buffers:
            copies.append(zeros_aligned(buffer.bytes, np.uint8))
            copies[-1][:] = memory.bytes_of(buffer)
        arguments: list[Any] = []
        for item in sorted(program.arguments, key=lambda i: i.offset):
            data = prepared.values[item.var.name]
            if item.var.type == "uq" and item.var.count == 1:
                address = int.from_bytes(data, "little")
                number = next(n for n, b in enumerate(memory.buffers) if b.address <= address <= b.address + b.bytes)
                arguments.append(copies[number][address - memory.buffers[number].address :])
            else:
                arguments += list(np.frombuffer(data, item.var.format.dtype))
        text, _ = finalizer.opencl(assembly.write([program]), target_of(target).grf_bytes)
        [own] = opencl.compile(text, target=target, model=executor.options.model).kernels.values()
        lanes = program.simd_size if program.attributes.get("Target") == "cm" else 1
        block = (prepared.size.block[0] * lanes, *prepared.size.block[1:])
        items = tuple(g * b for g, b in zip(prepared.size.grid, block))
        done: Statistics = self._run(executor, prepared)
        # A launch of the kernel that came back is a launch too.
        launch = own[items, block]
        ready = launch.ready(arguments)
        self._run(ready.version.executor, ready.prepared)
        for buffer, copy in zip(memory.buffers, copies):
            np.testing.assert_array_equal(copy, memory.bytes_of(buffer), f"{buffer.name} of {executor.name}")
        self.launches += math.prod(prepared.size.grid) > 0
        return done


@pytest.mark.needs("ocloc")
@pytest.mark.parametrize("words", list(commands()))
def test_kernels_of_test_run(words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    circle = Circle(Executor.run)
    monkeypatch.setattr(Executor, "run", lambda executor, prepared: circle(executor, prepared))
    assert xegpu_run.run(words) == 0
    assert circle.launches
