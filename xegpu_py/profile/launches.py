"""Launches that are counted: all workgroups of a grid, or a sample of them."""

from __future__ import annotations

import contextlib
import ctypes
import io
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, structs

from xegpu_py.engines.operands import Layout
from xegpu_py.numerics.formats import Array
from xegpu_py.profile.counts import KINDS, Counts
from xegpu_py.runtime.device_memory import Buffer, HostMemory
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Grid
from xegpu_py.target import Target
from xegpu_py.visa.allocate import HEADER_BYTES, Allocation
from xegpu_py.visa.dataflow import Root, accesses, effects
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import (
    STATE,
    AddressOf,
    Dim,
    Indirect,
    Instruction,
    Program,
    Variable,
    analysis,
    extent,
    variables,
)


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
        pitches: bytes from one row of each array to the next, by the names of their buffers.
    """

    kernel: Kernel
    grid: Dim
    group_size: int
    groups: Sequence[int]
    counts: Counts
    pitches: dict[str, int] = {}


_PLACES = ("address", "base", "width", "height", "pitch", "x", "y")
"""The operands of messages that say which memory they access."""


def _placing(inst: Instruction) -> set[Variable]:
    """The variables that say which memory a message accesses."""
    return {var.root[0] for var in variables(inst.values.get(name) for name in _PLACES)}


@analysis
def without_effect(program: Program, target: Target, counted: Collection[str] = KINDS) -> frozenset[int]:
    """The instructions on whose results neither control flow, nor the lanes that act, nor addresses depend.

    Args:
        counted: the categories of the messages whose addresses these are.
    """
    found = [effects(inst, target) for inst in program.instructions]
    needed: set[Root | None] = set()
    kept: set[int] = set()
    for at, inst in enumerate(program.instructions):
        spec = INSTRUCTIONS[inst.name]
        if spec.decides or spec.category == "sync":
            needed.update(found[at].read)
            kept.add(at)
        elif spec.is_message and spec.category in counted:
            needed.update(_placing(inst))
        if inst.guard is not None and not spec.selects and not (spec.is_message and spec.category not in counted):
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


def _compact(program: Program, layout: Layout, skipped: Collection[int]) -> Allocation:
    """Registers for those variables alone that are accessed if instructions are skipped: caches hold more threads."""
    before, size = layout.allocation, layout.target.grf_bytes
    used = {item.var.root[0] for item in program.inputs} | {var.root[0] for var in STATE.values()}
    for at, inst in enumerate(program.instructions):
        if any(isinstance(value, (Indirect, AddressOf)) for value in inst.values.values()):
            return before
        if at not in skipped:
            used.update(access.var for access in accesses(inst, layout.target))
        elif INSTRUCTIONS[inst.name].is_message:
            used.update(_placing(inst))
    offsets, end = {}, HEADER_BYTES
    for var in sorted(used & before.offsets.keys(), key=before.offset):
        offsets[var] = -(-end // size) * size
        end = offsets[var] + var.bytes
    return structs.replace(before, offsets=offsets, bytes=-(-end // size) * size)


@contextlib.contextmanager
def counting(
    own: Kernel, grid: Dim, block: Dim, groups: Sequence[int] | None = None, trace_limit: int = 1 << 20
) -> Iterator[Launched]:
    """Count what a kernel does that is run in the `with` block: only instructions on which control flow or addresses
    depend, on memory of `SharedMemory`. At its end stores are undone; what is printed is dropped.

    Args:
        own: a kernel on the interpreter, which is for this launch only.
        groups: the numbers of the workgroups that run; all by default. Of a sample, distinct bytes are not counted.
        trace_limit: the number of lines after which the trace ends.
    """
    launcher, threads = own.launcher, Grid(grid, block).threads(own.program)
    chosen = range(math.prod(grid)) if groups is None else groups
    counts = Counts(own.program, launcher.layout, threads, chosen, trace_limit, sample=groups is not None)
    launcher.recorder, launcher.groups, launcher.new_memory = counts, groups, SharedMemory
    if not own.program.prints:
        launcher.skipped = counts.skipped = without_effect(own.program, launcher.target)
        launcher.allocation = _compact(own.program, launcher.layout, launcher.skipped)
        launcher.layout = counts.layout = structs.replace(launcher.layout, allocation=launcher.allocation)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield Launched(own, grid, threads, chosen, counts)
        counts.count()
    finally:
        counts.restore()


def launched(
    kernel: Kernel,
    arguments: Sequence[Any],
    grid: int | Sequence[int],
    block: int | Sequence[int] | None = None,
    groups: Sequence[int] | None = None,
    trace_limit: int = 1 << 22,
) -> Launched:
    """Count what workgroups do, by the interpreter; see `counting`. Arrays are not copied.

    Raises:
        TypeError, ValueError, DiagnosticError: as a call of the kernel.
    """
    own, whole = kernel.version_for(arguments, grid).on_interpreter(), extent(grid, "grid")
    block = extent(own.block if block is None else block, "block")
    with counting(own, whole, block, groups, trace_limit) as found:
        own(*arguments, grid=whole, block=block)
    arrays = [a for a in arguments if isinstance(a, np.ndarray) and a.ndim]
    found.pitches = {b.name: a.strides[0] for b, a in zip(found.counts.buffers, arrays) if a.ndim > 1}
    return found
