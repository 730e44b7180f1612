"""The reference evaluator on every kernel of test/run: it meets their expectations.

Where an expectation is of statistics, or the numbers are random, or there are too many workgroups, it leaves the JIT's
bytes instead: lit holds the JIT against the expectations.
"""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xegpu_py.tools import xegpu_run

import xegpu_py
from xegpu_py import reference
from xegpu_py.runtime.arguments import parse_argument

RUN = Path(__file__).parents[2] / "run"
FILES = sorted(RUN.rglob("*.mlir"))

SAMPLES = {
    # 1024 workgroups: the first, one inside, and those at the edges.
    "gemm_ragged.mlir": (0, 500, 31, 992, 1023),
}
"""Workgroups of kernels that have too many to run all."""

BYTES = {"attention.mlir", "gemm_slm.mlir", "softmax.mlir", "gather.mlir", *SAMPLES}
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


def test_every_file_has_a_line():
    assert {line.file for line in LINES} == set(FILES)


def names(line: Line) -> str:
    return f"{line.file.relative_to(RUN)}{'-' + line.checks[0].partition('=')[2] if line.checks else ''}"


@pytest.mark.parametrize("line", [x for x in LINES if x.file.name in BYTES], ids=names)
def test_it_leaves_the_bytes_of_the_jit(line):
    args = xegpu_run.argument_parser().parse_intermixed_args([str(line.file), *line.words])
    expected, given = ([parse_argument(a) for a in args.args] for _ in range(2))
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
    launch = {"grid": args.grid, "block": args.block}
    sample = SAMPLES.get(line.file.name)
    reference.run(xegpu_py.parse(line.file), args.kernel, given, groups=sample, **launch)
    kernel = xegpu_py.compile(line.file, args.kernel, target=args.target, registers=args.registers, cache="off")
    kernel(*expected, **launch)
    for start, a, b in zip(before, given, expected):
        if isinstance(a, np.ndarray):
            a, b, start = (np.ascontiguousarray(v).view(f"u{v.dtype.itemsize}") for v in (a, b, start))
            changed = a != start if sample else np.ones(a.shape, bool)
            assert np.array_equal(a[changed], b[changed])
            if sample and (b != start).any():
                assert changed.sum() > 10


@pytest.mark.parametrize("line", [x for x in LINES if x.file.name not in BYTES], ids=names)
def test_it_meets_the_expectations(line):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert xegpu_run.run([str(line.file), *line.words, "--engine=reference"]) == 0
    filecheck = Path(sys.executable).with_name("filecheck")
    done = subprocess.run([filecheck, line.file, *line.checks], input=out.getvalue(), text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
