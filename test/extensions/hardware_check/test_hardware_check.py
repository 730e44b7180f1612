"""Checks of GPUs, with our own engine, or one with planted mistakes, in place of a GPU."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xegpu_py import hardware_check
from xegpu_py.extensions.hardware_check import Check, Engine, identify, products, run
from xegpu_py.ir.diagnostics import Source
from xegpu_py.numerics.systolic import Systolic, candidates, read_model
from xegpu_py.target import TARGETS, target
from xegpu_py.visa.assembly import read
from xegpu_py.visa.finalizer import FinalizerMissing, finalize, opencl
from xegpu_py.visa.verify import verify

PLANTED = [
    Systolic(),
    Systolic(order="down"),
    Systolic(rounding="zero"),
    Systolic(guard=2),
    Systolic("stage"),
    Systolic("stage", order="down"),
    Systolic("stage", join="last"),
    Systolic("stage", rounding="zero"),
    Systolic("stage", guard=0, rounding="zero"),
    Systolic("all"),
    Systolic("all", join="last"),
    Systolic("all", join="tree"),
    Systolic("all", guard=3, rounding="zero"),
    Systolic(flushed=("bf", "bf sums", "tf32")),
    Systolic("stage", flushed=("f sums",), nan=0x7FFFFFFF),
    Systolic(flushed=("hf",), nan=0xFFC00000),
]
"""Models that a GPU may have."""


def measured(model: Systolic, name: str) -> dict[int, np.ndarray]:
    device = Engine(name, engine="interpreter", model=model)
    return {n: device.run(product.check(target(name))) for n, product in enumerate(products(target(name)))}


@pytest.mark.parametrize("model", PLANTED, ids=range(len(PLANTED)))
def test_planted_models_are_identified(model: Systolic) -> None:
    assert identify(target("bmg"), measured(model, "bmg")) == [model]


def test_each_target_is_asked_all_that_it_has() -> None:
    sums = ["bf", "bf", "hf", "hf"]
    for name, conversions, doubles, blocks, count in (
        ("pvc", False, True, True, 84),
        ("bmg", True, True, True, 87),
        ("dg2", False, False, False, 61),
        ("cri", True, True, True, 89),
    ):
        names = [check.name for check in hardware_check.checks(target(name))]
        assert len(names) == len(set(names)) == count, name
        assert ("fcvt f to ud" in names) == conversions and ("mad df" in names) == doubles
        assert any("block2d" in check for check in names) == blocks
        assert "lsc_atomic_fcas f" in names and "lsc_atomic_fcas f of all threads" not in names
        narrow = ["bf8", "hf8"] if name == "cri" else []
        formats = ["bf", "hf", "tf32"] if name != "dg2" else ["bf", "hf"]
        of = {
            what: [p.precision for p in products(target(name)) if p.what.startswith(what)] for what in ("sums", "nan")
        }
        assert of == {"sums": sums + ["tf32"] * (2 * (name != "dg2")), "nan": ["bf", "hf"]}
        flushed = {p.what.removeprefix("flushed ") for p in products(target(name)) if p.what.startswith("flushed")}
        assert flushed >= {*formats, *narrow, "f sums"} and ("bf sums" in flushed) == (name != "dg2")


def test_the_edges_of_a_surface_are_crossed_and_touched() -> None:
    """A surface of 12 rows of 72 bytes."""
    blocks = [check for check in hardware_check.checks(target("bmg")) if "block2d" in check.name]
    assert len(blocks) == 9
    for check in blocks:
        message, shape = check.name.split()
        bits, *extents = map(int, re.findall(r"\d+", shape))
        width, rows = extents[-2] * bits // 8 * ([1, *extents][-3] if len(extents) > 2 else 1), extents[-1]
        [positions] = [array for array in check.arrays if array.ndim == 2 and array.shape[1] == 2]
        assert len(positions) == check.threads
        left, top = positions[:, 0] * bits // 8, positions[:, 1]
        for start, size, end in ((left, width, 72), (top, rows, 12)):
            assert (start < 0).any() and (start == 0).any() and (start >= end).any(), check.name
            assert ((start < end) & (start + size > end)).any(), check.name
        # The last row and the last column, each alone; the row above the first.
        assert (top == 11).any() and (left == 72 - max(bits // 8, 4)).any() and (top + 9 == 0).any(), check.name
        data = [array for array in check.arrays if array.dtype == np.uint8 and array.ndim == 3]
        assert [a.shape for a in data] == [(check.threads if "store" in message else 1, 16, 128)]


@pytest.mark.parametrize("precision", ["bf", "hf"])
def test_which_elements_are_no_numbers(precision: str) -> None:
    """Row 0 and column 1 have a NaN, row 1 infinity by the zero in column 5, row 2 both infinities, row 4 NaNs in C."""
    [product] = [p for p in products(target("bmg")) if (p.what, p.precision) == ("nan", precision)]
    expected = np.zeros((8, 16), bool)
    expected[[0, 2]] = expected[:, 1] = expected[1, 5] = expected[4, :4] = True
    result = product.result("fma")
    np.testing.assert_array_equal(np.isnan(result), expected)
    assert (result[1][~expected[1]] == np.inf).all()


def test_differing_elements_are_shown_with_their_operands() -> None:
    check = Check("add", "", (np.arange(100, dtype=np.int32), np.zeros(3, np.int32), np.zeros(100, np.int32)))
    here = np.arange(100, dtype=np.int32)
    there = here.copy()
    there[7::10] += 0x100
    outcome = hardware_check._compared(check, there, here)
    assert (outcome.elements, outcome.different, len(outcome.first)) == (100, 10, min(10, hardware_check.SHOWN))
    assert [d.index for d in outcome.first] == [7 + 10 * n for n in range(len(outcome.first))]
    first = outcome.first[1]
    assert (first.operands, first.there, first.here) == (["0x00000011"], "0x00000111", "0x00000011")
    assert hardware_check._compared(check, here, here.copy()) == hardware_check.CheckOutcome(100, 0, [])


@pytest.mark.parametrize("name", TARGETS)
def test_shapes_of_products(name: str) -> None:
    for product in products(target(name)):
        assert product.a.shape[0] == 8 and product.b.shape == (product.a.shape[1], 16)


def test_no_two_candidates_have_the_same_bits() -> None:
    sums = [p for p in products(target("bmg")) if p.what == "sums"]
    found = {b"".join(p.result(model).tobytes() for p in sums) for model in candidates()}
    assert len(found) == len(candidates())
    assert all(len(products(t)) <= 64 for t in TARGETS.values())


def test_the_line_of_the_probe_tells_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = target("bmg")
    bits = {hardware_check._telling(products(gpu)[0].result(model)) for model in candidates()}
    assert len(bits) == len(candidates())
    planted = Systolic("stage", guard=2)
    line = run(Engine("bmg", engine="interpreter", model=planted), gpu, "dpas").line()
    number, own = candidates().index(planted), hardware_check._telling(products(gpu)[0].result(planted))
    assert f"as bmg: dpas model {number} of 82; group stage, " in line and line.endswith(f"; bits {own}")

    class Unknown(Engine):
        def run(self, check: Check) -> Any:
            return (super().run(check).view(np.uint16) ^ 1).view(check.arrays[-1].dtype)

    line = run(Unknown("bmg", engine="interpreter"), gpu, "dpas").line()
    assert "dpas no known model; not all products agree with one; bits " in line and not line.endswith("unknown")

    def refuse(self: Engine, check: Check) -> Any:
        raise hardware_check.FinalizerError("does not\naccept it")

    monkeypatch.setattr(Engine, "run", refuse)
    report = run(Engine("bmg"), gpu, "dpas")
    assert report.line().endswith("not all products agree with one; bits unknown; does not accept it")


def test_the_models_of_old_names() -> None:
    for product in products(target("bmg")):
        for name, model in (("fma", Systolic()), ("stage", Systolic("stage")), ("exact", Systolic("all"))):
            np.testing.assert_array_equal(product.result(name).view(np.uint16), product.result(model).view(np.uint16))


class Wrong(Engine):
    """A GPU whose logarithms are one bit too great, which loses an increment and a byte at an edge, and refuses one
    kernel."""

    def run(self, check: Check) -> Any:
        if check.name == "sin f":
            raise hardware_check.FinalizerError("does not accept it")
        found = super().run(check)
        if check.name == "lsc_atomic_iinc ud of all threads":
            found[2] -= 1
        if check.name == "lsc_store_block2d d16.16x8nn":
            found[7, 0, 71] ^= 1
        return (found.view(np.uint32) + np.uint32(1)).view(np.float32) if check.name == "log f" else found


def test_differences_are_reported(tmp_path: Any) -> None:
    report = run(Wrong("bmg", engine="interpreter", model=Systolic("stage")), target("bmg"))
    assert len(report.checks) >= 60
    wrong = {name for name, own in report.checks.items() if own.different}
    planted = {"log f", "lsc_atomic_iinc ud of all threads", "lsc_store_block2d d16.16x8nn"}
    assert planted < wrong and all(name.startswith("dpas") for name in wrong - planted)
    assert report.checks["log f"].first[0].there != report.checks["log f"].first[0].here
    assert report.checks["sin f"].error == "does not accept it"
    assert "log f" in report.table() and "group stage" in report.table()
    file = tmp_path / "gpu.json"
    file.write_bytes(hardware_check.msgspec.json.encode(report))
    assert read_model(str(file)) == Systolic("stage")
    report.models.append(Systolic())
    file.write_bytes(hardware_check.msgspec.json.encode(report))
    with pytest.raises(ValueError, match="tells 2 models"):
        read_model(str(file))


@pytest.mark.parametrize("name", ["pvc", "pvcxt", "bmg", "cri"])
def test_kernels_are_legal(name: str) -> None:
    gpu = target(name)
    for check in (*hardware_check.checks(gpu), *(p.check(gpu) for p in products(gpu))):
        [program] = read(Source(check.text, check.name))
        assert verify(program, gpu) == [], check.text


@pytest.mark.needs("ocloc")
@pytest.mark.parametrize("name", ["lsc_load_block2d d8", "lsc_store_block2d d64", "fcas", "dpas tf32 f: nan"])
def test_kernels_become_binaries(name: str) -> None:
    gpu = target("bmg")
    for check in (*hardware_check.checks(gpu), *(p.check(gpu) for p in products(gpu))):
        if name in check.name:
            assert finalize(check.text, "bmg", finalizer="ocloc").binary
            return


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Any) -> None:
    """A driver in place of pyopencl, whose kernels our engine runs."""

    class Context:
        def __init__(self, devices: Any) -> None: ...

    class Buffer:
        def __init__(self, context: Any, flags: int, hostbuf: Any) -> None:
            assert flags == driver.mem_flags.READ_WRITE | driver.mem_flags.COPY_HOST_PTR
            self.array = hostbuf.copy()

    class Program:
        """The text is that of a check; the driver's own compiler gets it as OpenCL C."""

        def __init__(self, context: Any, devices: Any, binaries: Any = None) -> None:
            self.text = checks[devices] if binaries is None else binaries[0].decode()

        def build(self, options: Any = ()) -> Any:
            if refused:
                raise RuntimeError("no inline assembly")
            return self

        def check(self, queue: Any, size: Any, local: Any, *buffers: Any) -> None:
            assert local == (16,)
            kernel = hardware_check.Kernel.from_assembly(self.text, target="bmg", engine="interpreter")
            kernel(*(b.array for b in buffers), grid=size[0] // 16)

    def copy(queue: Any, to: Any, buffer: Any) -> None:
        to[...] = buffer.array

    refused: list[bool] = []
    every = (*hardware_check.checks(target("bmg")), *(p.check(target("bmg")) for p in products(target("bmg"))))
    checks = {opencl(check.text, 64)[0]: check.text for check in every}
    gpu = SimpleNamespace(vendor="Intel(R) Corporation", type=4, name="a GPU", driver_version="1.0")
    devices = [gpu]
    driver = SimpleNamespace(
        get_platforms=lambda: [SimpleNamespace(get_devices=lambda: devices)],
        LogicError=RuntimeError,
        RuntimeError=RuntimeError,
        device_type=SimpleNamespace(GPU=4),
        mem_flags=SimpleNamespace(READ_WRITE=1, COPY_HOST_PTR=2),
        Context=Context,
        CommandQueue=lambda context: None,
        Buffer=Buffer,
        Program=Program,
        enqueue_copy=copy,
    )
    monkeypatch.setattr(hardware_check, "cl", driver)
    monkeypatch.setattr(hardware_check, "finalize", lambda text, *_, **__: SimpleNamespace(binary=text.encode()))
    file = tmp_path / "gpu.json"
    assert hardware_check.main(["--target", "bmg", "--only", "dpas", "-o", str(file)]) == 0
    assert "a GPU, driver 1.0, as bmg" in capsys.readouterr().out
    assert not any(own["different"] for own in json.loads(file.read_text())["checks"].values())
    assert read_model(str(file)) == Systolic()

    def missing(*_: Any, **__: Any) -> Any:
        raise FinalizerMissing("ocloc is not installed")

    monkeypatch.setattr(hardware_check, "finalize", missing)
    assert hardware_check.main(["--target", "bmg", "--probe"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("a GPU, driver 1.0, as bmg: dpas model 0 of 82; group product, ")
    refused.append(True)
    assert hardware_check.main(["--target", "bmg", "--probe"]) == 0
    assert capsys.readouterr().out.endswith("bits unknown; the driver does not accept it: no inline assembly\n")
    devices.clear()
    assert hardware_check.main(["--target", "bmg"]) == 1
    assert capsys.readouterr().err == "error: there is no GPU 0: OpenCL knows 0 GPUs of Intel's\n"


SPECIAL = {
    "hf": [0, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7E00],
    "f": [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000],
    "df": [0, 1, (1 << 52) - 1, 1 << 52, 1023 << 52, (2047 << 52) - 1, 2047 << 52, 0xFFF << 51],
}
"""Zero, the least and the greatest subnormal number, the least normal one, 1, the greatest one, infinity and NaN."""


@pytest.mark.parametrize("kind", SPECIAL)
def test_numbers_that_are_asked_for(kind: str) -> None:
    """Half of them have a usual size, a quarter any bits, and a quarter are special numbers of both signs."""
    [check] = (c for c in hardware_check.checks(target("bmg")) if c.name == f"mad {kind}")
    *operands, result = check.arrays
    assert len(operands) == 3 and not result.any()
    size = operands[0].itemsize
    for array in operands:
        assert array.size == 1024 and array.dtype == result.dtype
        bits = array.view(f"u{size}")
        special = np.array([*SPECIAL[kind], *(n | 1 << (8 * size - 1) for n in SPECIAL[kind])], bits.dtype)
        assert np.isin(special, bits).all()
        is_special = np.isin(bits, special)
        assert 200 < is_special.sum() < 312
        with np.errstate(all="ignore"):
            usual = ~is_special & (np.abs(array.astype(np.float64)) < 64) & (np.abs(array.astype(np.float64)) > 1e-3)
        assert 420 < usual.sum() < 700 and 4 < array[usual].astype(np.float64).std() < 12
        assert len(np.unique(bits[~is_special])) > (700 if size > 2 else 600)
    assert len({array.tobytes() for array in operands}) == 3


def test_numbers_of_contended_atomics() -> None:
    """Whole numbers of both signs, whose sums are exact in any order; without contention any numbers."""
    checks = {c.name: c for c in hardware_check.checks(target("bmg")) if c.name.startswith("lsc_atomic")}
    for name, check in checks.items():
        assert len(check.arrays) == 3 and all(array.size == 1024 for array in check.arrays)
        assert check.text.count("0xc:ud") == (4 if "all threads" in name else 1) and "%null.0:d32" in check.text
        for array in check.arrays:
            signed = array.view(np.int32) if array.dtype == np.uint32 else array
            if "all threads" in name:
                assert np.abs(signed.astype(np.float64)).max() < 1000 and (signed < 0).any() and (signed > 0).any()
                assert (signed == np.rint(signed)).all()
            else:
                assert len(np.unique(array.view(np.uint32))) > 700
    assert sum("all threads" in name for name in checks) == 7 and len(checks) == 15


def test_without_pyopencl_a_gpu_cannot_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware_check, "cl", None)
    with pytest.raises(RuntimeError, match="pyopencl is not installed: `pip install pyopencl`"):
        hardware_check.OpenCLDevice("bmg")
