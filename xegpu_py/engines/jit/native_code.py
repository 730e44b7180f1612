"""Compilation of programs to native code, its cache, and loading."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, msgpack

from xegpu_py.cache import NO_CACHE, Cache, digest, recalled, remembered
from xegpu_py.collector import collector_paused
from xegpu_py.deferred import deferred
from xegpu_py.engines.jit import tiered_code
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.llvm import (
    FIXED,
    Loaded,
    compiled,
    fixed_code,
    fixed_functions,
    fixed_text,
    machine,
)
from xegpu_py.engines.jit.native_launch_struct import TABLES, Context
from xegpu_py.engines.jit.thread_function import block_starts, functions_of_program, input_bytes, matrices_of
from xegpu_py.engines.jit.tiered_code import TieredCode
from xegpu_py.engines.operands import RegisterPositions
from xegpu_py.numerics.dpas import Model
from xegpu_py.visa.dataflow import flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program, digest_of

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = deferred("concurrent.futures")

# Native code of LLVM IR functions: compiled for a host on all processors, or loaded from a cache.

_PASSES = "function(sroa,early-cse<memssa>)"
"""Passes before code generation. The rest of `-O1` makes this code no faster, and takes as long again."""

_LEVEL = 2
"""The level of code generation."""

QUICK_LEVEL = 0
"""The level of programs that have not run for long."""

QUICK_SHARE = 0.4
"""The time of `QUICK_LEVEL` as a share of that of `_LEVEL`."""

_SMALLEST_MODULE = 1 << 16
"""The minimum length of LLVM IR text, in characters, that is worth compiling on another processor."""

_HEAD = re.compile(r"^define (.*@(\w+)\(.*) {$", re.MULTILINE)

_drivers: list[Driver] = []

_lock = threading.Lock()


def processors() -> int:
    """The number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Driver:
    """The loop over workgroups and their threads."""

    def __init__(self, cache: Cache) -> None:
        """Compile the driver, or load it from a cache."""
        self._code = cache.kept(
            "driver",
            digest(fixed_text(), repr(machine().baseline)),
            fixed_functions,
            read=lambda code: Loaded([code], FIXED),
            write=lambda _: fixed_code(),
        )
        entry_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._launch, self._resume = (entry_type(address) for address in self._code.addresses[1:])

    def launch(self, context: Context) -> None:
        """Run the workgroups of a context without holding the interpreter lock."""
        self._launch(ctypes.addressof(context))

    def resume(self, context: Context) -> None:
        """Resume the workgroup of a context."""
        self._resume(ctypes.addressof(context))


def driver(cache: Cache) -> Driver:
    """The driver of the process, created at the first call."""
    with _lock:
        if not _drivers:
            _drivers.append(Driver(cache))
        return _drivers[0]


def objects(functions: Sequence[str], host: Host, level: int = _LEVEL) -> list[bytes]:
    """Object code of functions that call each other: of about as many modules as there are processors."""
    texts = modules(functions, processors())
    if len(texts) == 1:
        return [compiled(texts[0], host.machine, _PASSES, level)]
    # The threads need them, and each of the first ones would compile them.
    fixed_functions()
    with futures.ThreadPoolExecutor(len(texts)) as pool:
        return list(pool.map(lambda text: compiled(text, host.machine, _PASSES, level), texts))


def modules(functions: Sequence[str], module_limit: int) -> list[str]:
    """Distribute functions over at most `module_limit` modules of similar length, with declarations of callees."""
    total_length = sum(map(len, functions))
    count = max(1, min(module_limit, total_length // _SMALLEST_MODULE, len(functions)))
    heads = {head[2]: head[1] for head in map(_head, functions)}
    module_functions: list[list[str]] = [[] for _ in range(count)]
    for function in sorted(functions, key=len, reverse=True):
        min(module_functions, key=lambda members: sum(map(len, members))).append(function)
    return [_module(members, heads) for members in module_functions]


def _module(functions: Sequence[str], heads: dict[str, str]) -> str:
    text = "\n\n".join(functions)
    defined = {_head(function)[2] for function in functions}
    called_names = sorted(set(re.findall(r"@(\w+)", text)) - defined)
    declared = [f"declare {heads[name]}" for name in called_names if name in heads]
    return "\n".join([*declared, text, ""])


def _head(function: str) -> re.Match[str]:
    """From a function's text: what follows the word `define` in its head, and in this the name."""
    match = _HEAD.search(function)
    assert match
    return match


class NativeProgram(Struct, frozen=True):
    """A program as object code, and the facts about it that running the code needs.

    Attributes:
        objects: object files; their function `thread` is that of a thread.
        divergent: whether each lane has its program counter.
        starts: the instructions that begin basic blocks.
        tables: names of the tables that the code looks into.
        independent: see `is_independent`.
        input_bytes: bytes of the register file, from the first on, that threads may read before they write them.
        panel_bytes, step_bytes: the size of panels, and of those of a step of a loop; see `Panels`.
    """

    objects: Sequence[bytes]
    divergent: bool
    starts: Sequence[int]
    tables: Sequence[str]
    independent: bool
    input_bytes: int
    panel_bytes: int
    step_bytes: int

    def loaded(self) -> tuple[NativeProgram, Loaded]:
        """The program, and its code, ready to run."""
        return self, Loaded(self.objects, ("thread",))


@collector_paused()
def native_program(
    program: Program,
    layout: RegisterPositions,
    model: Model,
    host: Host,
    *,
    divergent: bool | None = None,
    keep: bool = False,
    single_thread: bool = True,
    cache: Cache = NO_CACHE,
    quick: bool = False,
) -> tuple[NativeProgram, TieredCode]:
    """A program and its code, of the process or the cache if one has it; see `engine.Jit`."""

    @functools.cache
    def functions() -> tuple[bool, list[str]]:
        divergent_lanes = flow_of(program).divergent if divergent is None else divergent
        return divergent_lanes, functions_of_program(program, layout, model, host, divergent_lanes, keep)

    def made(level: int = _LEVEL) -> tuple[NativeProgram, Loaded]:
        thread_parts, texts = functions()
        matrices = matrices_of(program, layout, model, host, thread_parts, keep)
        return NativeProgram(
            objects(texts, host, level),
            thread_parts,
            block_starts(program),
            sorted({i.name for i in program.instructions} & set(TABLES)),
            is_independent(program),
            input_bytes(program, layout, keep),
            matrices.panel_bytes if matrices else 0,
            matrices.step_bytes if matrices else 0,
        ).loaded()

    def optimized() -> tuple[NativeProgram, Loaded]:
        object_code = cache.kept(
            "native",
            key,
            made,
            read=lambda data: msgpack.decode(data, type=NativeProgram).loaded(),
            write=lambda object_code: msgpack.encode(object_code[0]),
        )
        return object_code if single_thread else remembered(key, object_code)

    checks = (
        layout.watch,
        layout.races,
        layout.bounds,
        layout.exact,
        layout.logs,
        layout.watch_products,
        layout.exact_addresses,
        layout.watches_columns,
    )
    how = (layout.target.name, layout.allocation.registers, *checks, model, divergent, keep)
    key = "" if single_thread and not cache.folder else digest(digest_of(program), repr(how), *host.key)
    cached_program = None if single_thread else recalled(key)
    if cached_program:
        native, code = remembered(key, cached_program)
        return native, TieredCode(code)
    if quick and tiered_code.QUICK_SECONDS > 0 and not cache.folder and not host.is_arm:
        functions()
        start_time = time.perf_counter()
        native, code = made(QUICK_LEVEL)
        seconds = (time.perf_counter() - start_time) / QUICK_SHARE
        return native, TieredCode(code, lambda: optimized()[1], seconds)
    native, code = optimized()
    return native, TieredCode(code)


def is_independent(program: Program) -> bool:
    """Whether threads can run in any order; they have no local memory, barriers or atomics."""
    specs = [INSTRUCTIONS[inst.name] for inst in program.instructions]
    return not program.slm_bytes and not any(s.barrier or s.category in ("atomic", "sync") for s in specs)
