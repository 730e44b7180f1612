"""What the description in a binary for GPUs says of the kernel: its name, arguments, memory, barriers and registers."""

import io
import subprocess
import sys
from typing import Any

import pytest
import yaml
from elftools.elf.elffile import ELFFile

import xegpu_py
from xegpu_py.visa.finalizer import FinalizerMissing

pytestmark = pytest.mark.needs("ocloc")

NAMED = """
gpu.module @kernels {
  gpu.func @exp(%A: memref<?x64xf32, strided<[?, 1], offset: ?>>, %n: index, %x: f32, %h: f16, %b: i8)
      workgroup(%buffer: memref<512xf32, 3>) kernel {
    %c0 = arith.constant 0 : index
    %id = gpu.thread_id x
    gpu.barrier
    %v = memref.load %A[%id, %n] : memref<?x64xf32, strided<[?, 1], offset: ?>>
    %w = arith.addf %v, %x : f32
    %h1 = arith.extf %h : f16 to f32
    %b1 = arith.sitofp %b : i8 to f32
    %y = arith.addf %w, %h1 : f32
    %z = arith.addf %y, %b1 : f32
    memref.store %z, %buffer[%id] : memref<512xf32, 3>
    memref.store %z, %A[%id, %n] : memref<?x64xf32, strided<[?, 1], offset: ?>>
    gpu.return
  }
}
"""


def described(binary: bytes) -> dict[str, Any]:
    data = ELFFile(io.BytesIO(binary)).get_section_by_name(".ze_info").data()
    [kernel] = yaml.safe_load(data)["kernels"]
    found: dict[str, Any] = kernel
    return found


@pytest.mark.parametrize(("large", "index_bytes"), [(None, 4), (True, 8)])
def test_the_name_and_arguments_are_the_kernels(large: bool | None, index_bytes: int) -> None:
    kernel = xegpu_py.compile(NAMED, target="bmg", large=large)
    found = described(kernel.binary())
    assert found["name"] == "exp"
    assert found["execution_env"]["simd_size"] == 16
    assert found["execution_env"]["barrier_count"] == 1
    assert found["execution_env"]["slm_size"] == 2048
    assert found["execution_env"]["grf_count"] == 128
    given = [a for a in found["payload_arguments"] if "arg_index" in a]
    assert [(a["arg_index"], a["arg_type"], a["size"]) for a in given] == [
        (0, "arg_bypointer", 8),
        *((i, "arg_byvalue", index_bytes) for i in range(1, 5)),
        (5, "arg_byvalue", 4),
        (6, "arg_byvalue", 2),
        (7, "arg_byvalue", 1),
    ]
    inputs = [i.var.name for i in kernel.program.arguments]
    assert inputs == ["in0", "in0_size0", "in0_stride0", "in0_offset", "in1", "in2", "in3", "in4"]


def test_another_target_and_registers() -> None:
    kernel = xegpu_py.compile(NAMED, target="bmg", registers=256)
    ours, other = kernel.binary(), kernel.binary("cri")
    assert described(ours)["execution_env"]["grf_count"] == 256
    assert ELFFile(io.BytesIO(ours)).header["e_machine"] == ELFFile(io.BytesIO(other)).header["e_machine"]
    assert ours != other
    with pytest.raises(ValueError, match="assembly for bmg, not cri"):
        xegpu_py.Kernel.from_assembly(kernel.asm, target="bmg").binary("cri")


def test_products_and_named_barriers() -> None:
    kernel = xegpu_py.compile("test/run/gemm_nbarriers.mlir", target="bmg")
    found = described(kernel.binary())["execution_env"]
    assert found["has_dpas"] and found["barrier_count"] > 2


def test_without_ocloc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XEGPU_PY_ORACLES", "off")
    with pytest.raises(FinalizerMissing, match="ocloc is not installed"):
        xegpu_py.compile(NAMED, target="bmg").binary()


def test_the_tool_writes_the_binary(tmp_path: Any) -> None:
    (tmp_path / "k.mlir").write_text(NAMED)
    command = [sys.executable, "-m", "xegpu_py.tools.xegpu_translate", "k.mlir", "--mlir-to-zebin", "--target", "bmg"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    subprocess.run([*command, "-o", "k.bin"], cwd=tmp_path, check=True)
    assert described(printed) == described((tmp_path / "k.bin").read_bytes())
