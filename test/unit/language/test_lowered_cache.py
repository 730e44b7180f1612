"""Lowered kernels on disk: what a second process finds, what makes it compile again, and damaged entries."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import forked_tools
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import lower_kernel
from xegpu_py.language.function_source import Uses, fingerprint
from xegpu_py.language.jit_function import _warn_of_pressure

SCRIPT = """
import sys
import time
import numpy as np
import xegpu_py
import xegpu_py.language as xl
from xegpu_py import lower_kernel
import helpers

if sys.argv[1] == "found":
    def refuse(*arguments):
        raise AssertionError("lowered once more")
    lower_kernel.KernelLowering = refuse

@xegpu_py.jit
def scale(X, Y, n, BLOCK: xegpu_py.Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    xl.store(Y + i, helpers.scaled(xl.load(X + i, mask=i < n)), mask=i < n)

x = np.arange(100, dtype=np.float32)
y = np.zeros_like(x)
begun = time.process_time()
scale[4](x, y, 100, BLOCK=32)
seconds = time.process_time() - begun
(version,) = scale.versions.values()
print(y[99])
print(len(version.compiled.asm) > 100, "visa.ret" in version.compiled.ir("visa") if sys.argv[1] != "found" else True)
if sys.argv[1] == "found" and seconds > 0.1:
    sys.exit(f"the first call takes {seconds} s of processor time")
"""

HELPERS = "FACTOR = {factor}\ndef scaled(x):\n    return x * FACTOR\n"


def run(folder: Path, factor: int, state: str, python: Path = Path(sys.executable)) -> list[str]:
    (folder / "helpers.py").write_text(HELPERS.format(factor=factor))
    (folder / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "XEGPU_PY_CACHE": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([python, "script.py", state], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_second_process_neither_compiles_nor_lowers(tmp_path: Path) -> None:
    assert run(tmp_path, 2, "new") == ["198.0", "True", "True"]
    assert run(tmp_path, 2, "found") == ["198.0", "True", "True"]
    # A constant of a function that the kernel calls in another file.
    forked = forked_tools.folder() / "python"
    assert run(tmp_path, 3, "new", forked) == ["297.0", "True", "True"]
    assert run(tmp_path, 3, "found", forked) == ["297.0", "True", "True"]


MLIR = """
gpu.module @kernels {
  gpu.func @double(%x: memref<16xf32>) kernel {
    %block = xegpu.create_nd_tdesc %x[0] {mode = vc} : memref<16xf32> -> !xegpu.tensor_desc<16xf32>
    %v = xegpu.load_nd %block {mode = vc} : !xegpu.tensor_desc<16xf32> -> vector<16xf32>
    %w = arith.addf %v, %v : vector<16xf32>
    xegpu.store_nd %w, %block {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32>
    gpu.return
  }
}
"""


@pytest.fixture
def lowerings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are lowered."""
    found: list[str] = []
    own = lower_kernel.KernelLowering

    def spy(module, name, options):
        found.append(name)
        return own(module, name, options)

    monkeypatch.setattr("xegpu_py.lower_kernel.KernelLowering", spy)
    return found


def doubled(folder: Path, text: str = MLIR, **options: object) -> float:
    x = np.full(16, 3, np.float32)
    xegpu_py.compile(text, cache=folder, **options)(x)
    return float(x[5])


def test_kernels_of_mlir_are_kept(tmp_path: Path, lowerings: list[str]) -> None:
    assert doubled(tmp_path) == doubled(tmp_path) == doubled(tmp_path, engine="interpreter") == 6
    assert lowerings == ["double"]
    assert doubled(tmp_path, target="pvc") == doubled(tmp_path, optimize=False) == doubled(tmp_path, registers=256) == 6
    assert doubled(tmp_path, MLIR.replace("addf", "mulf")) == 9
    assert doubled(tmp_path, kernel="double") == 6
    assert len(lowerings) == 6


def test_remarks_and_levels_are_those_of_the_first_process(tmp_path: Path, lowerings: list[str]) -> None:
    first, second = (xegpu_py.compile(MLIR, cache=tmp_path) for _ in range(2))
    assert lowerings == ["double"]
    assert (first.remarks, first.asm, str(first.types[0])) == (second.remarks, second.asm, "memref<16xf32>")
    assert first.levels == second.levels == ("xegpu", "visa")
    assert first.ir("visa") == second.ir("visa")


@pytest.mark.parametrize("harm", ["cut", "garbage", "other pickle", "empty"])
def test_damaged_entries_are_written_anew(tmp_path: Path, lowerings: list[str], harm: str) -> None:
    assert doubled(tmp_path) == 6
    (entry,) = tmp_path.glob("*.lowered")
    whole = entry.read_bytes()
    if harm == "other pickle":
        # The digest is right, but the data cannot be read.
        code = b"\x80\x05cxegpu_py.gone\nNothing\n."
        head = whole[: whole.index(entry.stem.encode()) + len(entry.stem) + 1]
        entry.write_bytes(head + hashlib.sha256(code).digest() + code)
    else:
        entry.write_bytes({"cut": whole[:-1], "garbage": bytes(len(whole)), "empty": b""}[harm])
    assert doubled(tmp_path) == doubled(tmp_path) == 6
    assert len(lowerings) == 2
    assert len(entry.read_bytes()) == len(whole)


def test_a_fault_is_shown_at_its_line(tmp_path: Path) -> None:
    """Also if the kernel was read from disk."""
    text = MLIR.replace("%x[0]", "%x[8]")
    text = text.replace("tensor_desc<16xf32>", "tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>")
    shown = []
    for _ in range(2):
        with pytest.raises(xegpu_py.DiagnosticError) as error:
            doubled(tmp_path, text)
        shown.append(str(error.value))
    assert shown[0] == shown[1] and "%v = xegpu.load_nd" in shown[0]


def test_a_kept_kernel_warns_of_registers_too(tmp_path: Path) -> None:
    def crowded(X, Y):
        a, b = X.tile((64, 64), at=(0, 0)).load(), X.tile((64, 64), at=(64, 0)).load()
        Y.tile((64, 64), at=(0, 0)).store(xl.maximum(a, b) + a)
        Y.tile((64, 64), at=(64, 0)).store(a - b)

    x, y = np.ones((2, 128, 64), np.float32)
    shown = []
    for _ in range(2):
        kernel = xegpu_py.jit(crowded, registers=128, cache=tmp_path, subgroups=1)
        with pytest.warns(UserWarning, match="kernel 'crowded' does not fit") as found:
            version = kernel.compile(x, y)
        shown.append((found[0].filename, found[0].lineno, str(found[0].message)))
    assert shown[0] == shown[1] and "smaller tiles, or more subgroups than 1, by num_warps" in shown[0][2]
    with pytest.warns(UserWarning, match="more subgroups than 1, by"):
        _warn_of_pressure(SimpleNamespace(executor=version.executor, subgroups=None, name="x"))


# The dependencies of a kernel.

LIMIT = 4


def helper(x):
    return x + LIMIT


def calls(X):
    X[0] = helper(X[0])


def other(X):
    X[0] = X[0] * 2


def takes(X, f):
    X[0] = f(X[0])


class Colour(enum.Enum):
    RED = 1

    def wave(self):
        return 600


@dataclasses.dataclass(frozen=True)
class Sizes:
    rows: int = 3

    def twice(self):
        return 2 * self.rows


class Extents(NamedTuple):
    rows: int = 3

    def twice(self):
        return 2 * self.rows


def closed(number):
    def kernel(X):
        X[0] = X[0] + number

    return kernel


def test_fingerprints_tell_kernels_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        (calls, {}), (other, {}), (takes, {"f": helper}), (takes, {"f": other}), (closed(1), {}), (closed(2), {}),
        (closed(1.0), {}), (closed(True), {}), (closed("1"), {}), (closed(Sizes()), {}), (closed(Sizes(4)), {}),
        (closed(Colour.RED), {}), (closed((1, 2)), {}), (closed([1, 2]), {}), (closed(xl.float32), {}),
        (closed(Extents()), {}), (closed(Extents(4)), {}),
        (closed(np.float32(1)), {}), (closed(xl.exp), {}), (closed(xl.exp2), {}), (closed(None), {}),
    ]  # fmt: skip
    found = [fingerprint(function, arguments) for function, arguments in cases]
    assert all(found) and len(set(found)) == len(cases)
    assert found == [fingerprint(function, arguments) for function, arguments in cases]
    before = fingerprint(calls, {})
    monkeypatch.setitem(globals(), "LIMIT", 5)
    assert fingerprint(calls, {}) != before


def test_methods_of_constants_are_part_of_a_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, name in ((Sizes(), "twice"), (Colour.RED, "wave"), (Extents(), "twice")):
        before = Uses(closed(value), {})
        assert before.is_same() and before.fingerprint
        monkeypatch.setattr(type(value), name, lambda self: 7)
        assert not before.is_same() and fingerprint(closed(value), {}) != before.fingerprint


@pytest.mark.parametrize(
    "value",
    [
        *(object(), np.zeros(3), iter("abc"), [object()], sys.modules[__name__]),
        # Methods bound to objects, which may change.
        *(np.random.RandomState(1).normal, [1].index, np.zeros(3).sum),
    ],
)
def test_what_cannot_be_told_is_not_kept(value) -> None:
    assert fingerprint(closed(value), {}) == ()
    assert fingerprint(calls, {"X": value}) == ()


def with_default(number, named):
    def scaled(v, by=number, *, more=named):
        return v * by + more

    return scaled


def test_defaults_are_part_of_a_function():
    """Functions of one text differ by their defaults, in the fingerprint and in what kernels of them compute."""
    made = [with_default(2, 1), with_default(2, 1), with_default(5, 1), with_default(2, 3)]
    first, same, *others = (fingerprint(function, {}) for function in made)
    assert first == same and len({first, *others}) == 3
    x = np.arange(16, dtype=np.int32)
    for function, expected in zip(made, (2 * x + 1, 2 * x + 1, 5 * x + 1, 2 * x + 3)):

        @xegpu_py.jit
        def kernel(X, Y, N: xegpu_py.Constexpr):
            i = xl.arange(0, N)
            xl.store(Y + i, function(xl.load(X + i)))  # noqa: B023

        y = np.zeros(16, np.int32)
        kernel(x, y, N=16)
        np.testing.assert_array_equal(y, expected)
