"""GPUs that are sold: what the model of their time knows of each, with the source of every number.

The numbers are of three kinds: those of makers and of device queries, those that others measured and published, and
those of Intel's compiler, IGC, whose scheduler has a table of latencies. docs/model.md lists the sources.
"""

from __future__ import annotations

from msgspec import Struct


class Gpu(Struct, frozen=True):
    """One GPU, or one of the two stacks of a Max 1550.

    Attributes:
        name: its name.
        target: the name of its `target.Target`.
        cores: Xe cores.
        engines: vector engines of a core.
        clock: the clock in Hz that it holds.
        lanes: lanes of 32-bit floats that a vector engine computes in a cycle; of 16-bit floats twice as many.
        double_lanes: lanes of 64-bit floats.
        mad_cycles: how many times as long as others a multiplication and addition of floats takes, which reads three
            registers.
        dp4a_share: the rate of products of four bytes, of that of 32-bit floats.
        dpas_cycles: cycles of a matrix engine for a row (repeat count 1) of dpas of systolic depth 8.
        dpas_share: the share of the peak of products that a long run keeps, because the clock falls.
        l1_bytes: bytes of the cache of a core, of which shared local memory is a part.
        slm_bytes: bytes of shared local memory of a core.
        l1_rate: bytes that a core's cache gives in a cycle.
        part_store: how many times as long a store to half of a line, or less, takes the L2 as one to a whole line.
        l2_bytes: bytes of the cache that all cores share.
        l2_rate: bytes that it gives in a second.
        memory_rate: peak bytes of the memory in a second.
        memory_share: the share of that peak that programs reach.
        launch: seconds from one kernel's end to the next one's begin.
    """

    name: str
    target: str
    cores: int
    engines: int
    clock: float
    lanes: int
    double_lanes: float
    mad_cycles: float
    dp4a_share: float
    dpas_cycles: float
    dpas_share: float
    l1_bytes: int
    slm_bytes: int
    l1_rate: float
    part_store: float
    l2_bytes: int
    l2_rate: float
    memory_rate: float
    memory_share: float
    launch: float

    @property
    def dpas_peak(self) -> float:
        """Operations of 16-bit dpas in a second at the full clock."""
        # A row has as many lanes as an engine, each of 16 products of depth.
        row = 2 * self.lanes * 16
        return self.cores * self.engines * self.clock * row / self.dpas_cycles


def _xe_hpc(name: str, cores: int, clock: float, l2_mib: float, memory_rate: float, dpas_share: float = 0.65) -> Gpu:
    # Sources: 512 KB of L1 and 4096 operations of bf16 in a cycle of a core: Intel Architecture Day 2021; f64 at two
    # thirds of f32, dp4a at half: ProjectPhysX/OpenCL-Benchmark; the L2's 3 TB/s, the memory's 1000 of 1638 GB/s, and 6
    # us of a launch: oneDNN's model of batch normalization (src/gpu/intel/bnorm/model.cpp); the L1's 512 bytes in a
    # cycle: Intel, Hot Chips 33; the share of dpas: Argonne's BF16GEMM of 256 of 393 TFLOPS; stores to parts of lines:
    # OpenCL-Benchmark's misaligned writes, which take 2.8 times as long as aligned ones, and on a B580 1.2 times.
    rate = 3e12 * cores / 64
    return Gpu(
        name, "pvcxt", cores, 8, clock, 16, 32 / 3, 1, 0.5, 1, dpas_share, 512 << 10, 128 << 10, 512, 2,
        int(l2_mib * (1 << 20)), rate, memory_rate, 1000 / 1638.4, 6e-6,
    )  # fmt: skip


def _xe2(name: str, cores: int, clock: float, l2_mib: float, memory_rate: float, memory_share: float) -> Gpu:
    # Sources: 256 KB of L1: Intel's oneAPI GPU Optimization Guide 2025.2; 2048 operations of f16 in a cycle of a core:
    # vkpeak; f64 at 1/16: ProjectPhysX/OpenCL-Benchmark; the L2's rate: clpeak's 1228 GB/s of a B580, which is above
    # its memory's; a launch of 2.31 us: clpeak; dpas keeps its peak: vkpeak; the share of the memory's rate:
    # intel/torch-xpu-ops, hardware_specs.yaml; stores in parts of lines: its PR 3496. The L1's rate is of Xe-HPC's, as
    # its matrix engines' is (an assumption).
    rate = 1228e9 * cores / 20 * clock / 2.85e9
    return Gpu(
        name, "bmg", cores, 8, clock, 16, 1, 1, 1, 2, 1.0, 256 << 10, 128 << 10, 256, 0.5, int(l2_mib * (1 << 20)),
        rate, memory_rate, memory_share, 2.31e-6,
    )  # fmt: skip


def _xe_hpg(name: str, cores: int, clock: float, l2_mib: float, memory_rate: float) -> Gpu:
    # Sources: 192 KB of L1: Intel Architecture Day 2021; 400 of 560 GB/s, 2 TB/s of the L2 and 8 us of a launch:
    # oneDNN's model of batch normalization. The L1's rate is as that of Xe2, of which a core has as many lanes. Twice
    # the time of a mad of floats: clpeak's longest vectors reach 0.49 of an A770's peak, and one chain 0.66.
    rate = 2e12 * cores / 32
    return Gpu(
        name, "dg2", cores, 16, clock, 8, 0.5, 2, 1, 2, 0.8, 192 << 10, 64 << 10, 256, 1, int(l2_mib * (1 << 20)), rate,
        memory_rate, 400 / 560, 8e-6,
    )  # fmt: skip


_B580, _B70 = 410 / 456, 532 / 608

GPUS = {
    gpu.name: gpu
    for gpu in (
        # Cores, clocks, caches and memory: device queries of ProjectPhysX/OpenCL-Benchmark and FluidX3D, chipsandcheese
        # and glennklockwood.com.
        # The share of dpas of a Max 1100: oneDNN's 136 of 355 TFLOPS (intel-xpu-backend-for-triton, issue 3328).
        _xe_hpc("max1100", 56, 1.55e9, 108, 1228.8e9, 136 / 355.5),
        _xe_hpc("max1550", 64, 1.6e9, 204, 1638.4e9),
        # Argonne's user guide: a stack of Aurora's Max 1550 holds 1.5 GHz.
        _xe_hpc("aurora", 64, 1.5e9, 204, 1638.4e9),
        _xe2("b580", 20, 2.85e9, 18, 456e9, _B580),
        _xe2("b60", 20, 2.4e9, 18, 456e9, _B580),
        # The L2 of the following is in proportion to the cores of others (an assumption), except for the 140V.
        _xe2("b570", 18, 2.75e9, 16.2, 380e9, _B580),
        _xe2("b50", 16, 2.6e9, 14.4, 224e9, _B580),
        _xe2("b70", 32, 2.8e9, 28.8, 608e9, _B70),
        _xe2("140v", 8, 1.95e9, 8, 137e9, _B580),
        _xe_hpg("a770", 32, 2.4e9, 16, 560e9),
        _xe_hpg("a750", 28, 2.4e9, 16, 512e9),
        _xe_hpg("a580", 24, 2e9, 12, 512e9),
        _xe_hpg("a380", 8, 2.05e9, 4, 186e9),
        _xe_hpg("185h", 8, 2.35e9, 4, 90e9),
    )
}
"""The GPUs by name."""

USUAL = {"pvc": "max1100", "pvcxt": "max1100", "bmg": "b580", "lnl": "140v", "dg2": "a770"}
"""The GPU that stands for a target if none is named."""


def gpu(name: str) -> Gpu:
    """The GPU of a name, or the usual one of a target.

    Raises:
        ValueError: if there is none; the message lists the GPUs.
    """
    record = GPUS.get(USUAL.get(name, name))
    if record is None:
        raise ValueError(f"there is no model of '{name}'; there are {', '.join(GPUS)}")
    return record
