"""Profiles: the exact counts of a launch, and samples of its workgroups."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, structs

from xegpu_py.numerics.formats import Array
from xegpu_py.profile.caches import reuse_of
from xegpu_py.profile.counts import SUMMED, Counts, Row, Traffic, by_line
from xegpu_py.runtime.device_memory import Buffer, HostMemory
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Grid
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import Root, effects
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Dim, Program, extent, variables


class SharedMemory(HostMemory):
    """Global memory whose allocations are arrays of the host, in place, which the interpreter accesses too."""

    _first = 0
    _shifts: Array = np.zeros(0, np.int64)

    def attach(self, name: str, array: Array) -> Buffer:
        """An allocation that is a contiguous array of bytes."""
        made = super().attach(name, array)
        places = [(self._host(i), b) for i, b in enumerate(self.buffers)]
        # Offsets count from an address at which a number of any type can begin. What is between arrays is never read.
        self._first = min(host for host, _ in places) // 8 * 8
        size = -(-(max(host + b.bytes for host, b in places) - self._first) // 8) * 8
        self.data = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self._first))
        self._shifts = np.array([host - self._first - b.address for host, b in places], np.int64)
        return made

    def _moved(self, addresses: Array) -> Array:
        starts = np.array([b.address for b in self.buffers], np.uint64)
        owner = np.clip(np.searchsorted(starts, addresses, "right") - 1, 0, max(len(starts) - 1, 0))
        moved: Array = addresses.astype(np.int64) + self._shifts[owner]
        return moved

    def locate(self, addresses: Array, size: int, verb: str, needed: Array | None = None) -> Array:
        """See `engines.faults.Memory`."""
        super().locate(addresses, size, verb, needed)
        return self._moved(addresses)

    def surface(self, bases: Array, extents: Array, verb: str) -> Array:
        """See `engines.faults.Memory`."""
        super().surface(bases, extents, verb)
        return self._moved(bases)

    def place(self, offset: int) -> str:
        """See `engines.faults.Memory`."""
        for i, buffer in enumerate(self.buffers):
            at = offset + self._first - self._host(i)
            if 0 <= at < max(buffer.bytes, 1):
                return f"byte {at} of '{buffer.name}'"
        return f"byte {offset}"


class Launched(Struct):
    """Workgroups of a launch that ran, and what they did.

    Attributes:
        kernel: the version of the kernel that ran.
        grid: workgroups of the launch in x, y, z.
        group_size: hardware threads of a workgroup.
        groups: the numbers of the workgroups that ran.
        counts: their counts.
    """

    kernel: Kernel
    grid: Dim
    group_size: int
    groups: Sequence[int]
    counts: Counts


_PLACES = ("address", "base", "width", "height", "pitch", "x", "y")
"""The operands of messages that say which memory they access."""


def without_effect(program: Program, target: Target) -> frozenset[int]:
    """The instructions on whose results neither control flow nor the addresses of messages depend."""
    found = [effects(inst, target) for inst in program.instructions]
    needed: set[Root | None] = set()
    kept: set[int] = set()
    for at, inst in enumerate(program.instructions):
        spec = INSTRUCTIONS[inst.name]
        if spec.decides or spec.category == "sync":
            needed.update(found[at].read)
            kept.add(at)
        elif spec.is_message:
            needed.update(var.root[0] for var in variables(inst.values.get(name) for name in _PLACES))
            needed.update(found[at].tests)
    changed = True
    while changed:
        changed = False
        memories = {
            inst.values.get("sfid", "ugm")
            for at, inst in enumerate(program.instructions)
            if at in kept and INSTRUCTIONS[inst.name].is_message
        }
        for at, inst in enumerate(program.instructions):
            spec = INSTRUCTIONS[inst.name]
            stores = spec.category in ("store", "atomic") and inst.values.get("sfid", "ugm") in memories
            if at not in kept and (stores or not needed.isdisjoint(found[at].written)):
                kept.add(at)
                needed.update(found[at].read)
                changed = True
    return frozenset(range(len(program.instructions))) - kept


def launched(
    kernel: Kernel,
    arguments: Sequence[Any],
    grid: int | Sequence[int],
    block: int | Sequence[int] | None = None,
    groups: Sequence[int] | None = None,
    trace_limit: int = 1 << 22,
) -> Launched:
    """Run a kernel on the interpreter, and count.

    Args:
        groups: the numbers of the workgroups that run. Of them, only instructions run on which control flow or
            addresses depend; stores are undone, and arrays are not copied. By default all workgroups run, and change
            the arrays as a call does.
        trace_limit: the number of lines after which the trace ends.

    Raises:
        TypeError, ValueError, DiagnosticError: as a call of the kernel.
    """
    version = kernel.version_for(arguments, grid)
    own = Kernel(version.executable, structs.replace(version.options, engine="interpreter", check=()))
    own.names = kernel.names
    launcher, whole = own.launcher, extent(grid, "grid")
    block = extent(own.block if block is None else block, "block")
    threads = Grid(whole, block).threads(own.program)
    chosen = range(math.prod(whole)) if groups is None else groups
    counts = Counts(own.program, launcher.layout, threads, chosen, trace_limit, sample=groups is not None)
    launcher.recorder, launcher.groups = counts, groups
    if groups is not None:
        launcher.new_memory = SharedMemory
        launcher.skipped = counts.skipped = without_effect(own.program, launcher.target)
    try:
        own(*arguments, grid=whole, block=block)
    finally:
        counts.restore()
    return Launched(own, whole, threads, chosen, counts)


# Profiles.


class Profile(Struct):
    """The profile of a launch.

    Attributes:
        kernel: the kernel's name.
        target: the GPU.
        grid: workgroups in x, y, z.
        threads: hardware threads of a workgroup.
        registers, pressure: registers of a thread, and the most that hold live values.
        rows: the counts of each instruction.
        traffic: what messages moved, by buffer and kind.
        reuse: by buffer, how many accesses of a line came after so many accesses of other lines: entry n counts the
            distances from 2^(n-1) to 2^n - 1, the last entry first accesses.
        hottest: the number of atomic operations on the location that has most.
        complete: whether the trace from which `reuse` is counted has all accesses.
    """

    kernel: str
    target: str
    grid: tuple[int, int, int]
    threads: int
    registers: int
    pressure: int
    rows: list[Row]
    traffic: list[Traffic]
    reuse: dict[str, list[int]]
    hottest: int
    complete: bool

    @property
    def lines(self) -> list[tuple[str, int, dict[str, int]]]:
        """The counts of each line of the source: its file, its number, and the sums of its instructions' counts."""
        return list(by_line(self.rows))

    def save(self, path: str | Path) -> None:
        """Write the profile to a file, as JSON or as a report in HTML, by the suffix of its name.

        Raises:
            ValueError: if the suffix is neither .json nor .html.
        """
        Path(path).write_text(self.text(str(path)), encoding="utf-8")

    def text(self, name: str) -> str:
        """The contents of a file of this name; see `save`."""
        if name.endswith(".json"):
            return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"
        if name.endswith(".html"):
            return self._repr_html_()
        raise ValueError(f"a profile is saved as .json or .html, but got '{Path(name).name}'")

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{r.index}</td><td><code>{escape(r.text)}</code></td>"
            + "".join(f"<td>{getattr(r, name):,}</td>" for name in SUMMED)
            + "</tr>"
            for r in self.rows
        ]
        head = "".join(f"<th>{name}</th>" for name in ("instruction", "", *SUMMED))
        return f"<table><caption>{escape(self.kernel)}</caption><tr>{head}</tr>{''.join(rows)}</table>"


def profile(
    kernel: Kernel, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None
) -> Profile:
    """Run a kernel, and count what it does.

    Args:
        kernel: the kernel.
        arguments: its arguments; arrays are changed as by a call.
        grid, block: as in a call of the kernel.

    Raises:
        TypeError, ValueError, DiagnosticError: as a call of the kernel.
    """
    done = launched(kernel, arguments, grid, block)
    kernel.stats = done.kernel.stats
    counts, own, trace = done.counts, done.kernel, done.counts.trace()
    allocation = own.launcher.allocation
    return Profile(
        own.name,
        own.options.target,
        done.grid,
        done.group_size,
        allocation.registers,
        allocation.pressure,
        counts.rows(),
        counts.moved(),
        reuse_of(trace, counts.buffers),
        counts.hottest,
        trace.complete,
    )


Kernel.profiler = staticmethod(profile)
