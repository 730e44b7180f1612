"""Checks of GPUs, with our own engine, or one with planted mistakes, in place of a GPU."""

from __future__ import annotations

import json
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
