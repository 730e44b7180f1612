"""The host: the vectors of its CPU, and the threads that help a launch."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xegpu_py.deferred import deferred
from xegpu_py.engines.jit.ir_text import FunctionBody
from xegpu_py.engines.jit.llvm import Machine, machine

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = deferred("concurrent.futures")

# Host CPUs: the only module that knows their vector widths and instructions.
#
# Rules and micro-kernels ask a `Host`; LLVM gets its name and features, and chooses instructions by them.

VARIABLE = "XEGPU_PY_HOST"
"""The environment variable that names another CPU than this one: one of `KNOWN`, or `NATIVE`."""

NATIVE = "native"

_AVX2 = frozenset({"sse2", "avx2", "fma", "f16c"})

_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}

_TILES = frozenset({"amx-tile", "amx-int8"})

KNOWN: dict[str, tuple[str, frozenset[str]]] = {
    "x86-64": ("x86_64", frozenset({"sse2"})),
    "haswell": ("x86_64", _AVX2),
    "znver3": ("x86_64", _AVX2),
    "skylake-avx512": ("x86_64", _AVX512),
    "sapphirerapids": ("x86_64", _AVX512 | {"avx512vnni", "avxvnni", "avx512bf16", "avx512fp16"} | _TILES),
    "neoverse-n1": ("aarch64", frozenset({"neon", "fullfp16", "dotprod"})),
    "apple-m1": ("aarch64", frozenset({"neon", "fullfp16", "dotprod"})),
}
"""CPUs by LLVM's names: their architecture, and the features that matter here. LLVM knows the others itself."""

LINE_BYTES = 64
"""The size of a cache line, of x86 and of most others."""

_REGISTERS_ABOVE_16 = ("avx512vl", "neon")

_BY_LANES = {
    "dot_bytes": {n: f"avx512.vpdpbusd.{32 * n}" for n in (4, 8, 16)},
    "dot_words": {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"},
    "permute_singles": {8: "avx2.permps", 16: "avx512.permvar.sf.512"},
}
"""LLVM's names of instructions, by the lanes of 32 bits of their results."""


def intrinsic_of(operation: str, lanes: int) -> str:
    """The intrinsic of x86 for a kind of `_BY_LANES` and so many lanes."""
    return f"llvm.x86.{_BY_LANES[operation][lanes]}"


class AccumulatorTile(Struct, frozen=True):
    """The accumulators that a micro-kernel holds in vector registers.

    Attributes:
        rows: of the result.
        vectors: of each row, side by side.
    """

    rows: int
    vectors: int


class Host(Struct, frozen=True):
    """A CPU for which code is made.

    Attributes:
        machine: its name in LLVM.
        features: its features by LLVM's names; for a CPU other than this one, only those that matter here.
    """

    machine: Machine
    features: frozenset[str]

    @property
    def key(self) -> tuple[str, str]:
        """The key of the CPU in caches of code."""
        return repr(self.machine), repr(sorted(self.features))

    @property
    def is_arm(self) -> bool:
        """Whether its architecture is AArch64."""
        return self.machine.triple.startswith(("aarch64", "arm64"))

    @property
    def vector_bytes(self) -> int:
        """Width of a vector register."""
        return 64 if "avx512vl" in self.features else 32 if "avx2" in self.features else 16

    @property
    def has_masks(self) -> bool:
        """Whether comparisons write mask registers, which have one bit for each lane, and not vectors."""
        return "avx512vl" in self.features

    @property
    def vector_registers(self) -> int:
        """The number of vector registers."""
        return 32 if self.features.intersection(_REGISTERS_ABOVE_16) else 16

    @property
    def converts_halves(self) -> bool:
        """Whether it has instructions between f16 and f32, which are exact and round to nearest even."""
        return self.is_arm or "f16c" in self.features

    @property
    def dots_bytes(self) -> bool:
        """Whether one instruction adds four products of an unsigned byte and a signed one to an i32 (VNNI)."""
        return {"avx512vnni", "avx512vl"} <= self.features or ("avxvnni" in self.features and self.vector_bytes == 32)

    @property
    def multiplies_tiles(self) -> bool:
        """Whether one instruction multiplies matrices of bytes (AMX)."""
        return self.features >= _TILES

    @property
    def dots_words(self) -> bool:
        """Whether one instruction adds two products of signed words; the sum is an i32."""
        return not self.is_arm

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether multiplications can use one lane of a vector for all lanes; otherwise scalars are broadcast first."""
        return self.is_arm

    @property
    def permuted_singles(self) -> int:
        """The number of f32 elements from which one instruction selects any for each lane; 0 if none does."""
        return 0 if self.is_arm or self.vector_bytes < 32 else self.lanes(4)

    @property
    def attributes(self) -> str:
        """LLVM's attributes of functions that work on vectors as wide as registers are."""
        width = 8 * self.vector_bytes
        return f'noinline nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'

    def function(self, name: str, arguments: Sequence[str], result: str = "", alignment: int = 1) -> FunctionBody:
        """A function that works on vectors as wide as registers are; see `Code`."""
        return FunctionBody(name, arguments, result, self.attributes, alignment)

    @property
    def runs_here(self) -> bool:
        """Whether this machine can run code for the CPU."""
        native = native_host()
        return self.is_arm == native.is_arm and self.features <= native.features

    def lanes(self, element_bytes: int) -> int:
        """Elements of a vector register."""
        return self.vector_bytes // element_bytes

    def tile(self, rows: int, vectors: int, temporaries: int = 0) -> AccumulatorTile:
        """The tile of accumulators that are held in registers at once.

        Besides the accumulators, the registers hold a row of B and one element of A, or one vector of B and an element
        of each row of A. On hosts that multiply by a lane, they hold a row of B and a vector of each row of A. Among
        the tiles that fit, the result has the fewest loads for each multiplication of the whole matrix. A load of B
        counts more than a load of A. The following elements of A are in the same cache line, and hosts that multiply by
        a lane load several at once. Among equal tiles, the result has the fewest loads for each multiplication of the
        tile.

        If the tile does not divide the rows or vectors, some tiles are smaller; see `even_parts`.

        Args:
            rows: rows of the whole matrix of accumulators.
            vectors: vectors of each row.
            temporaries: additional registers that a multiplication needs.
        """

        def fits(tile: AccumulatorTile) -> bool:
            beside = tile.rows + tile.vectors if self.multiplies_by_lane else min(tile.rows, tile.vectors) + 1
            return tile.rows * tile.vectors + beside + temporaries <= self.vector_registers

        def loads(tile: AccumulatorTile) -> float:
            """Loads for each multiplication of the whole, in passes of about the same width."""
            of_b = len(even_parts(rows, tile.rows)) / rows
            return len(even_parts(vectors, tile.vectors)) / vectors + (2 if self.multiplies_by_lane else 1.25) * of_b

        def own_loads(tile: AccumulatorTile) -> float:
            """Loads for each multiplication of the tile."""
            of_a = tile.rows / self.lanes(4) if self.multiplies_by_lane else tile.rows
            return (of_a + tile.vectors) / (tile.rows * tile.vectors)

        sizes = {
            AccumulatorTile(max(map(len, even_parts(rows, r))), max(map(len, even_parts(vectors, v))))
            for r in range(1, rows + 1)
            for v in range(1, vectors + 1)
        }
        return min(
            filter(fits, sizes),
            key=lambda tile: (loads(tile), own_loads(tile), -tile.rows),
            default=AccumulatorTile(1, 1),
        )


def even_parts(count: int, limit: int) -> list[range]:
    """The smallest number of parts of about the same size that have at most `limit` elements each."""
    part_count = -(-count // limit)
    return [range(count * n // part_count, count * (n + 1) // part_count) for n in range(part_count)]


@lru_cache
def native_host() -> Host:
    """The CPU on which this runs.

    Raises:
        RuntimeError: if LLVM's library is not found.
    """
    detected = machine()
    features = frozenset(f[1:] for f in detected.tuning.split(",") if f.startswith("+"))
    return Host(detected, features if features >= _TILES and _tiles_allowed() else features - _TILES)


def _tiles_allowed() -> bool:
    """Ask Linux to let this process use tile registers, whose state it saves only on request; whether it does.

    Source: Linux, Documentation/arch/x86/xstate.rst.
    """
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data) == 0)


def host_by_name(name: str) -> Host:
    """A CPU by LLVM's name.

    Raises:
        ValueError: if it is not known here.
    """
    if name == NATIVE:
        return native_host()
    if name not in KNOWN:
        raise ValueError(f"unknown host CPU '{name}'; there are {', '.join((NATIVE, *KNOWN))}")
    architecture, features = KNOWN[name]
    native = machine()
    if not native_host().multiplies_tiles:
        # The operating system has to permit their use too.
        features -= _TILES
    if (architecture == "x86_64") != (platform.machine().lower() in ("x86_64", "amd64")):
        return Host(replace(native, cpu=name, tuning="", triple=f"{architecture}-unknown-linux-gnu"), features)
    # Features that only the other CPU has, such as AMD's SSE4a, are left out, since the code has to run here.
    missing_features = ",".join(f for f in native.tuning.split(",") if f.startswith("-") and f[1:] not in features)
    return Host(replace(native, cpu=name, tuning=missing_features), features)


def chosen_host() -> Host:
    """The CPU that the environment names; by default this one.

    Raises:
        ValueError: if it is not known here, or this machine does not run its code.
    """
    host = host_by_name(os.environ.get(VARIABLE) or NATIVE)
    if not host.runs_here:
        raise ValueError(f"{VARIABLE}: this machine does not run code for '{host.machine.cpu}'")
    return host


# Threads of the operating system that help the caller's thread with a launch, and then wait for the next one.

_idle: list[Helper] = []
"""Helpers that no launch uses."""

THREADS = "xegpu-py"
"""The beginning of the names of the threads that help a launch."""

_CAN_PIN = hasattr(os, "sched_setaffinity")
"""Whether threads can be told which processors to use, as on Linux."""

if hasattr(os, "register_at_fork"):
    # A forked process has only the thread that forked.
    os.register_at_fork(after_in_child=_idle.clear)


class Helper:
    """One thread."""

    def __init__(self) -> None:
        """Start the thread."""
        self._pool = futures.ThreadPoolExecutor(1, THREADS)
        self._id = self._pool.submit(threading.get_native_id).result()
        self._processors: set[int] = set()

    def pin(self, processor: int, processors: set[int]) -> None:
        """Let the next task begin on one of the processors. It may move to the others.

        Linux often wakes a thread on the processor that wakes it, even if others are idle. It separates the two only
        after some milliseconds: as long as a GEMM of 1024^3 takes.
        """
        # A processor may have gone since the caller asked which there are.
        with suppress(OSError):
            os.sched_setaffinity(self._id, {processor})
        self._processors = processors

    def submit(self, task: Callable[[], None]) -> futures.Future[None]:
        """Run a task."""
        return self._pool.submit(self._run, task)

    def _run(self, task: Callable[[], None]) -> None:
        # The thread holds the interpreter lock now, and does not sleep again before it runs native code.
        if self._processors:
            with suppress(OSError):
                os.sched_setaffinity(0, self._processors)
        task()

    def rest(self) -> None:
        """Wait for another launch. All tasks must have ended."""
        _idle.append(self)


def take(count: int) -> list[Helper]:
    """Some helpers, each placed on a processor that the caller's thread does not use, as far as there are such."""
    helpers = []
    for _ in range(count):
        # Another thread may launch at the same time.
        try:
            helpers.append(_idle.pop())
        except IndexError:
            helpers.append(Helper())
    if _CAN_PIN:
        processors = os.sched_getaffinity(0)
        processors_left = sorted(processors - {_processor()})
        for at, helper in enumerate(helpers if processors_left else ()):
            helper.pin(processors_left[at % len(processors_left)], processors)
    return helpers


def _processor() -> int:
    """The number of the processor that runs this thread; -1 if the C library does not tell."""
    current = _processor_function()
    return int(current()) if current else -1


@lru_cache(1)
def _processor_function() -> Callable[[], int] | None:
    """The C library's `sched_getcpu`. To look it up takes a third of the time of waking a thread."""
    function: Callable[[], int] | None = getattr(ctypes.PyDLL(None), "sched_getcpu", None)
    return function
