"""A fixed small share of the random programs of `make fuzz`: the engines and the reference leave the same bytes."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import forked_tools
import numpy as np
import pytest
from effort import examples
from generators import coverage
from generators.program import Failure, Program, check, limit_of
from generators.strategies import LEVELS, generator, programs
from hypothesis import HealthCheck, Phase, find, given, settings

import xegpu_py
from xegpu_py.dialects import visa
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.visa import assembly

pytestmark = pytest.mark.native

PROGRAMS = {
    "xetile": 40,
    "xegpu_vc": 50,
    "xegpu_simt": 50,
    "nested": 20,
    "visa": 60,
    "host": 40,
    "core": 60,
    "upstream": 80,
    "triton": 60,
}
"""Programs of each level in `make sweep`; `make test` runs a twentieth."""


@pytest.mark.parametrize("level", LEVELS)
def test_all_evaluators_agree(level: str) -> None:
    @settings(
        # The first one is the simplest one.
        max_examples=1 + examples(PROGRAMS[level]),
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(level))
    def run(program: Program) -> None:
        check(program)

    run()


@pytest.mark.parametrize("level", ["xetile", "xegpu_vc", "xegpu_simt", "host", "core"])
def test_assembly_reads_back(level: str) -> None:
    """The assembly of lowered programs has their instructions, variables and inputs, and is printed as it was."""
    for seed in range(1, 3):
        program = generator(level)(random.Random(seed))
        module = xegpu_py.parse(program.text)
        pipeline = f"{'xetile' if level == 'xetile' else 'xegpu'}-to-visa-pipeline{{target={program.target}}}"
        try:
            xegpu_py.run_pipeline(module, f"builtin.module({pipeline})")
        except DiagnosticError as error:
            assert limit_of(error)
            continue
        lowered = [visa.program_of(func) for func in visa.kernels(module.operation)]
        text = assembly.write(lowered)
        found = assembly.read(Source(text, "random.visaasm"))
        assert assembly.write(found) == text
        for a, b in zip(found, lowered, strict=True):
            assert list(a.instructions) == list(b.instructions)
            assert (a.variables, a.predicates) == (b.variables, b.predicates)
            assert [(i.var, i.offset, i.size) for i in a.inputs] == [(i.var, i.offset, i.size) for i in b.inputs]


def test_visa_programs_in_mlir() -> None:
    """Random programs of vISA, and those with address variables among them, are the same as ops of the dialect."""
    has_addresses = False
    for seed in range(12):
        program = generator("visa")(random.Random(seed))
        [written] = assembly.read(Source(program.text, "random.visaasm"))
        module = xegpu_py.parse(visa.module_of([written], program.target).text())
        assert [visa.program_of(func) for func in visa.kernels(module.operation)] == [written]
        has_addresses |= any(inst.indirect for inst in written.instructions)
    assert has_addresses


@pytest.mark.parametrize("level", LEVELS)
def test_a_seed_gives_one_program(level: str) -> None:
    first, second = (generator(level)(random.Random(7)) for _ in range(2))
    assert first == second


def test_cells_that_a_program_reaches() -> None:
    text = (
        "gpu.module @k {\n  gpu.func @f(%m: memref<64x64xf16>) kernel {\n"
        "    %t = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>\n"
        "    %x = xegpu.load_nd %t {mode = vc, vnni_axis = 0, l1_hint = cached, l3_hint = uncached} :\n"
        "      !xegpu.tensor_desc<8x16xf16> -> vector<4x16x2xf16>\n    gpu.return\n  }\n}\n"
    )
    found = coverage.cells(Program(text, ()))
    assert {"xegpu.load_nd | f16", "xegpu.load_nd vnni_axis = 0 | f16", "xegpu.load_nd l1_hint = cached | f16"} <= found
    assert not any("vnni_axis = 1" in cell or "| bf16" in cell for cell in found)


@pytest.mark.parametrize("level", LEVELS)
def test_the_simplest_program_is_small(level: str) -> None:
    """The program to which hypothesis shrinks if every program fails."""
    # The first example that hypothesis tries is the one of the smallest choices.
    first = settings(max_examples=1, phases=[Phase.generate], database=None)
    found = find(programs(level), lambda p: True, settings=first)
    assert found.text.count("\n") < (40 if level != "visa" else 90)


def test_differences_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference with other results is detected."""
    program = Program(
        "gpu.module @k {\n  gpu.func @f(%m: memref<4xi32>) kernel {\n    %i = arith.constant 2 : index\n"
        "    %x = memref.load %m[%i] : memref<4xi32>\n    %y = arith.addi %x, %x : i32\n"
        "    memref.store %y, %m[%i] : memref<4xi32>\n    gpu.return\n  }\n}\n",
        ("arange:i32:4",),
    )
    assert check(program) == "ran"
    right = program.evaluated()
    right[0][3] += 1
    monkeypatch.setattr(Program, "evaluated", lambda self: right)
    with pytest.raises(
        Failure, match=r"argument 0 at \[3\]: 4 \(0x00000004\) by reference, 3 \(0x00000003\) by the engines"
    ):
        check(program)


def test_a_folded_op_keeps_the_bits_of_a_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLIR makes `%x` of `%x * 1`: of a NaN any bits are right, where the program has such an op, and nowhere else."""
    kernel = (
        "gpu.module @k {{\n  gpu.func @f(%m: memref<4xf32>) kernel {{\n    %i = arith.constant 2 : index\n"
        "    %x = memref.load %m[%i] : memref<4xf32>\n    %c = arith.constant 1.0 : f32\n    %y = {} : f32\n"
        "    memref.store %y, %m[%i] : memref<4xf32>\n    gpu.return\n  }}\n}}\n"
    )
    negative = np.full(4, 0xFFC00000, np.uint32).view(np.float32)
    monkeypatch.setattr(Program, "arrays", lambda self: [negative.copy()])
    folded = Program(kernel.format("arith.mulf %x, %c"), ("zeros:f32:4",))
    assert check(folded) == "ran"
    payload = np.full(4, 0x7F800001, np.uint32).view(np.float32)
    with monkeypatch.context() as m, pytest.raises(Failure, match=r"nan \(0x7f800001\) by reference"):
        # The reference evaluator gives canonical NaNs.
        m.setattr(Program, "evaluated", lambda self: [payload.copy()])
        check(folded)
    program = Program(kernel.format("arith.negf %x"), ("zeros:f32:4",))
    monkeypatch.setattr(Program, "evaluated", lambda self: [negative.copy()])
    with pytest.raises(Failure, match=r"nan \(0xffc00000\) by reference, nan \(0x7fc00000\) by the engines"):
        check(program)


@pytest.mark.parametrize("level", ["nested", "xegpu_vc"])
def test_a_written_failure_is_a_lit_test(level: str, tmp_path: Path) -> None:
    text = generator(level)(random.Random(3)).lit("what differs")
    file = tmp_path / "failure.mlir"
    file.write_text(text)
    assert text.startswith("// what differs\n")
    environment = {**os.environ, "PATH": os.pathsep.join([str(forked_tools.folder()), os.environ["PATH"]])}
    lines = [line.removeprefix("// RUN: ") for line in text.splitlines() if line.startswith("// RUN: ")]
    assert "--engine both" in lines[0] and "--engine reference" in lines[1] and lines[2].startswith("cmp ")
    for line in lines:
        command = line.replace("%s", str(file)).replace("%t", str(tmp_path / "t"))
        subprocess.run(command, shell=True, check=True, env=environment)


def test_a_refused_program_is_a_failure() -> None:
    text = 'gpu.module @k {\n  gpu.func @f() kernel {\n    "arith.nothing"() : () -> ()\n    gpu.return\n  }\n}\n'
    with pytest.raises(Failure, match="unregistered operation"):
        check(Program(text, ()))
