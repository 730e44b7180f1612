"""The reference evaluator on every kernel of test/run: it meets their expectations.

Where an expectation is of statistics, or the numbers are random, or the sizes are ragged, it leaves the JIT's bytes
instead: lit holds the JIT against the expectations.
"""

import contextlib
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from filecheck import main as filecheck

import xegpu_py
from xegpu_py import reference
from xegpu_py.runtime.host_arrays import parse_argument
from xegpu_py.target import DEFAULT
from xegpu_py.tools import xegpu_run

RUN = Path(__file__).parents[2] / "run"
FILES = sorted(RUN.rglob("*.mlir"))

BYTES = {"attention.mlir", "gemm_slm.mlir", "softmax.mlir", "gather.mlir", "gemm_ragged.mlir"}
"""Kernels whose bytes are compared with the JIT's."""


@dataclass
class Line:
    """A RUN line: the words of `xegpu-run`, and the words behind `FileCheck %s`."""

    file: Path
    words: list[str]
    checks: list[str]


def lines() -> list[Line]:
    found = []
    for file in FILES:
        text = file.read_text().replace("\\\n// RUN:", "")
        for words, checks in re.findall(r"^// RUN: xegpu-run %s (.*?)\| FileCheck %s(.*)$", text, re.MULTILINE):
            found.append(Line(file, shlex.split(words), shlex.split(checks)))
    return found


LINES = lines()


EXAMPLES = RUN.parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "size", "launch"),
    [("gemm.mlir", 1024, {"grid": (128, 64)}), ("gemm_bf16.mlir", 512, {"grid": (4, 4), "block": (4, 4)})],
)
def test_the_examples_leave_the_bytes_of_the_jit(name, size, launch):
    """Two workgroups of each example."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((size, size)).astype(ml_dtypes.bfloat16) for _ in range(2))
    found, expected = np.zeros((size, size), np.float32), np.zeros((size, size), np.float32)
    reference.run(xegpu_py.parse(EXAMPLES / name), None, [a, b, found], groups=(0, 5), **launch)
    xegpu_py.compile(EXAMPLES / name, cache="off")(a, b, expected, **launch)
    written = found != 0
    assert written.sum() >= 250 and np.array_equal(found[written], expected[written])


def test_every_file_has_a_line():
    """Each file has a line, or compares the engines with the reference itself."""
    alone = {file for file in FILES if "--engine reference" in file.read_text()}
    assert set(FILES) - {line.file for line in LINES} <= alone


def names(line: Line) -> str:
    return f"{line.file.relative_to(RUN)}{'-' + line.checks[0].partition('=')[2] if line.checks else ''}"


@pytest.mark.parametrize("line", [x for x in LINES if x.file.name in BYTES], ids=names)
def test_it_leaves_the_bytes_of_the_jit(line):
    """Of many workgroups in a line, the first and the last one."""
    args = xegpu_run.argument_parser().parse_intermixed_args([str(line.file), *line.words])
    expected, given, before = ([parse_argument(a) for a in args.args] for _ in range(3))
    launch = {"grid": args.grid or (1,), "block": args.block or 1}
    groups = (0, launch["grid"][0] - 1) if launch["grid"][0] > 4 else None
    reference.run(xegpu_py.parse(line.file), args.kernel, given, groups=groups, **launch)
    kernel = xegpu_py.compile(
        line.file, args.kernel, target=args.target or DEFAULT, registers=args.registers, cache="off"
    )
    kernel(*expected, **launch)
    for a, b, old in zip(given, expected, before):
        if isinstance(a, np.ndarray):
            written = a != old if groups else slice(None)
            assert a[written].tobytes() == b[written].tobytes()
    assert any(np.any(a != old) for a, old in zip(given, before))


@pytest.mark.parametrize("line", [x for x in LINES if x.file.name not in BYTES], ids=names)
def test_it_meets_the_expectations(line, tmp_path):
    out = tmp_path / "out"
    with out.open("w") as file, contextlib.redirect_stdout(file):
        assert xegpu_run.run([str(line.file), *line.words, "--engine=reference"]) == 0
    with pytest.raises(SystemExit) as end:
        filecheck.main(["filecheck", str(line.file), *line.checks, f"--input-file={out}"])
    assert end.value.code == 0
