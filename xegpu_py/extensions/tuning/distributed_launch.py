"""Large launches: the workgroups of one launch in chunks, on the workers of a Dask cluster.

Each chunk runs on private copies of the arrays. The bytes that it reads and writes are found by native code that
executes only the instructions on which addresses of messages depend, and records these. The arrays change when all
chunks have ended.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from xegpu_py.engines.faults import aligned
from xegpu_py.engines.jit.checks import Records
from xegpu_py.engines.semantics.memory import atomic_function
from xegpu_py.extensions.profile.counts import segments_of
from xegpu_py.extensions.profile.launches import Logged
from xegpu_py.extensions.tuning.cluster import LIMIT, Cluster, TrialLimits, needing
from xegpu_py.extensions.tuning.evaluation import Bound, bound
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Lines, error_at
from xegpu_py.lower_kernel import compile
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.host_arrays import memory_between, overlapping, span_of
from xegpu_py.runtime.kernel import CompiledKernel
from xegpu_py.runtime.launch import Prepared, Statistics
from xegpu_py.runtime.options import OPTIONS
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program, extent

if TYPE_CHECKING:
    from distributed import Client

CHUNKS = 4
"""Chunks for each worker: enough to balance them, few enough that their start does not count."""

_RULES = {
    **dict.fromkeys(("iadd", "isub", "iinc", "idec"), "iadd"),
    **{name: name for name in ("smin", "smax", "umin", "umax", "and", "or", "xor", "fmin", "fmax")},
}
"""Atomic operations whose results do not depend on their order, and the operation that combines those of chunks."""


_KINDS = ("load", "store", "atomic")

_NONE = np.zeros(0, np.int64)


class AddressLog:
    """Global memory that loads, stores and atomics access."""

    def __init__(self, kernel: CompiledKernel, prepared: Prepared, groups: range) -> None:
        """Run workgroups of a launch without changing memory; what they print is dropped."""
        # Ranges of addresses in the host's memory: the first bytes, and the ends, by the operation.
        self._found: dict[str, list[tuple[Array, Array]]] = {}
        self._instructions = kernel.program.instructions
        self._ranges = np.array(prepared.memory.ranges(), np.int64).reshape(-1, 3)
        Logged.of(kernel, prepared, _KINDS).run(self._receive, [groups])

    def _receive(self, taken: Mapping[int, Records]) -> None:
        """Note what messages access."""
        for index, records in taken.items():
            inst = self._instructions[index]
            spec = INSTRUCTIONS[inst.name]
            prefetches = spec.category == "load" and inst["dst"].var is None
            if spec.category not in _KINDS or inst["sfid"] == "slm" or prefetches:
                continue
            segments = segments_of(inst, records)
            starts, ends = segments.existing(segments.starts), segments.existing(segments.ends)
            owner = np.searchsorted(self._ranges[:, 0], starts, "right") - 1
            shifts, operation = self._ranges[owner, 2], spec.atomic or spec.category
            self._found.setdefault(operation, []).append((starts + shifts, ends + shifts))
            if not spec.atomic:
                self._found[operation] = [self._joined(operation)]

    def _joined(self, operation: str) -> tuple[Array, Array]:
        """The disjoint sorted ranges that have the same bytes as those of an operation."""
        starts, ends = (np.concatenate(parts) for parts in zip(*self._found.get(operation, [(_NONE, _NONE)])))
        order = np.argsort(starts, kind="stable")
        starts, reached = starts[order], np.maximum.accumulate(ends[order])
        first = np.flatnonzero(np.append(True, starts[1:] > reached[:-1])[: len(starts)])
        return starts[first], reached[np.append(first[1:] - 1, len(starts) - 1)[: len(first)]]

    def joined_in(self, array: Array, operation: str) -> tuple[Array, Array]:
        """Parts of an array of bytes that loads or stores access: disjoint sorted offsets from the first, and sizes."""
        (starts, ends), first, end = self._joined(operation), *_span(array)
        inside = (starts < end) & (ends > first)
        starts, ends = np.maximum(starts[inside], first), np.minimum(ends[inside], end)
        return starts - first, ends - starts

    def atomics_in(self, array: Array) -> dict[tuple[str, int], Array]:
        """Elements of an array of bytes that atomics change: their sorted offsets, by the rule and the size."""
        atomics, (first, end) = dict[tuple[str, int], Array](), _span(array)
        for operation in self._found.keys() - {"load", "store"}:
            starts, ends = (np.concatenate(parts) for parts in zip(*self._found[operation]))
            inside = (starts >= first) & (starts < end)
            if inside.any():
                key = _RULES[operation], int((ends - starts)[inside][0])
                atomics[key] = np.union1d(atomics.get(key, _NONE), starts[inside] - first)
        return atomics


def _span(array: Array) -> tuple[int, int]:
    """The address of an array of bytes, and that of its end."""
    return int(array.ctypes.data), int(array.ctypes.data) + len(array)


def _places(starts: Array, sizes: Array) -> Array:
    """The offsets of all bytes of ranges, in their order: int64[bytes]."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + sizes, sizes) + np.arange(total)


def _ranges(offsets: Array) -> tuple[Array, Array]:
    """The ranges of adjacent offsets among distinct sorted ones: their starts, and their sizes."""
    first = np.flatnonzero(np.diff(offsets, prepend=-2) != 1)
    return offsets[first], np.diff(first, append=len(offsets))


# Messages between processes.


class Mapped(Struct, frozen=True):
    """An array in a file, which workers map instead of receiving it."""

    path: str
    dtype: Any
    shape: tuple[int, ...]
    offset: int

    def private(self) -> Array:
        """The array; what is written to it does not reach the file.

        Raises:
            ValueError: if this machine has no such file.
        """
        try:
            copy: Array = np.memmap(self.path, self.dtype, "c", self.offset, self.shape)
        except OSError as e:
            raise ValueError(f"the worker cannot map '{self.path}': {e.strerror}") from None
        return copy


class ModuleCall(Struct, dict=True):
    """A kernel of a module, with its options."""

    text: str
    kernel: str
    options: dict[str, Any]

    @classmethod
    def of(cls, kernel: CompiledKernel) -> ModuleCall:
        """A compiled kernel as its module and options.

        Raises:
            ValueError: if it has no module.
        """
        if not kernel.levels:
            raise ValueError(f"kernel '{kernel.name}' has no module, which the workers could compile")
        options = {name: getattr(kernel.options, name) for name in OPTIONS}
        return cls(kernel.ir(kernel.levels[0]), kernel.name, options)

    @functools.cached_property
    def _compiled(self) -> CompiledKernel:
        return compile(self.text, self.kernel, **self.options)

    def bound(self, arguments: Sequence[Any], grid: Any, block: Any) -> Bound:
        """The call with these arguments."""
        return bound(self._compiled, arguments, {}, grid)


class FunctionCall(Struct):
    """A kernel of the tile language, with the names of the arguments that a call gives."""

    kernel: Any
    names: tuple[str, ...]

    def bound(self, arguments: Sequence[Any], grid: Any, block: Any) -> Bound:
        """The call with these arguments."""
        return bound(self.kernel, (), dict(zip(self.names, arguments)), grid, block)


class WrittenBytes(Struct):
    """Bytes that a chunk has written to an argument.

    Attributes:
        argument: its number among those that are passed.
        operation: the one of `_RULES` by which chunks are combined; "" for stores.
        starts, sizes: int64[n], ranges of offsets from its first byte, disjoint; of atomics one for each element.
        values: uint8[bytes], what is there; of atomics unsigned[n] the elements, of "iadd" and "xor" what changed.
    """

    argument: int
    operation: str
    starts: Array
    sizes: Array
    values: Array


class Done(Struct):
    """Outcome of a chunk: counts, printed text, bytes written and read; or the errors of its launch.

    `read` has, by the number of the argument, disjoint ranges of offsets from its first byte: starts and sizes.
    """

    statistics: Statistics | None = None
    printed: str = ""
    written: list[WrittenBytes] = field(default_factory=list)
    read: dict[int, tuple[Array, Array]] = field(default_factory=dict)
    errors: tuple[Sequence[Diagnostic], Sequence[Lines]] | None = None


class Chunks(Struct):
    """The problem that workers solve: run some workgroups of a launch."""

    call: ModuleCall | FunctionCall
    arguments: tuple[Any, ...]
    grid: Any
    block: Any

    def run(self, groups: range) -> Done:
        """Run the workgroups of these numbers."""
        before, call = (self.call.bound(_private(self.arguments, {}), self.grid, self.block) for _ in range(2))
        kernel = call.kernel.version_for(call.passed, call.grid)
        block = kernel.block if self.block is None else self.block
        out = io.StringIO()
        try:
            log = AddressLog(*kernel.prepared(before.passed, before.grid, block), groups)
            kernel.executor.groups = groups
            with contextlib.redirect_stdout(out):
                statistics = kernel(*call.passed, grid=call.grid, block=block)
        except DiagnosticError as e:
            return Done(errors=(e.diagnostics, e.sources))
        finally:
            kernel.executor.groups = None
        result = Done(statistics, out.getvalue())
        for i, (before_bytes, new) in enumerate(zip(*(map(_bytes_of, b.given) for b in (before, call)))):
            try:
                result.written += _written(log, i, before_bytes, new) if len(before_bytes) else []
            except ValueError as e:
                text = f"kernel '{kernel.name}' cannot be divided: {e} of argument {i}"
                return Done(errors=([Diagnostic("error", text, kernel.program.where)], ()))
            loads = log.joined_in(before_bytes, "load")
            if len(loads[0]):
                result.read[i] = loads
        return result


def _private(value: Any, copies: dict[int, Any]) -> Any:
    """Copies of arguments that kernels access in place; an array that is passed twice is one copy."""
    if isinstance(value, tuple):
        return tuple(_private(one, copies) for one in value)
    if isinstance(value, Mapped):
        return copies.setdefault(id(value), value.private())
    if not isinstance(value, np.ndarray):
        return value
    if id(value) not in copies:
        memory = aligned(len(_bytes_of(value)))
        memory[:] = _bytes_of(value)
        copies[id(value)] = np.ndarray(value.shape, value.dtype, memory, 0, value.strides)
    return copies[id(value)]


def _bytes_of(value: Any) -> Array:
    """The bytes from the first to the last element of an array, uint8, in place; none of another argument."""
    return memory_between(*span_of(value)) if isinstance(value, np.ndarray) else np.zeros(0, np.uint8)


def _written(log: AddressLog, argument: int, before: Array, after: Array) -> list[WrittenBytes]:
    """Bytes that a chunk has written to an argument, by the log of `before` and the differences of the array.

    Raises:
        ValueError: if atomics cannot be combined with what else is written.
    """
    writes, covered = [], np.zeros(len(before), bool)
    stored = _places(*log.joined_in(before, "store"))
    covered[stored] = True
    for (rule, size), starts in log.atomics_in(before).items():
        offsets = starts[:, None] + np.arange(size)
        if covered[offsets].any():
            raise ValueError(f"atomic {rule} and other operations write one element")
        covered[offsets] = True
        old, new = (x[offsets].view(f"u{size}")[:, 0] for x in (before, after))
        values = {"iadd": new - old, "xor": new ^ old}.get(rule, new)
        writes.append(WrittenBytes(argument, rule, starts, np.full(len(starts), size), values))
    # Arrays that are not used in place are not in the log: of these the bytes that changed are known.
    changed = np.flatnonzero((before != after) & ~covered)
    stored = np.union1d(stored, changed) if len(changed) else stored
    return [*writes, WrittenBytes(argument, "", *_ranges(stored), after[stored])] if len(stored) else writes


# The client's side.


class _Merged(Struct):
    """Bytes that the chunks have written to an argument.

    Attributes:
        title: the argument in messages.
        target: the user's bytes.
        values: the bytes that were written.
        owners: int32[bytes], for each byte the number of a chunk that has stored it, from 1 on; of bytes that atomics
            have changed its negative, or `SEVERAL`.
        atomics: the bytes of elements that atomics have changed, by their operation and size.
    """

    SEVERAL = np.iinfo(np.int32).min

    title: str
    target: Array
    values: Array
    owners: Array
    atomics: dict[tuple[str, int], Array] = field(default_factory=dict)

    @classmethod
    def of(cls, title: str, array: Array) -> _Merged:
        """Nothing that is written to an array."""
        target = _bytes_of(array)
        return cls(title, target, np.zeros(len(target), np.uint8), np.zeros(len(target), np.int32))

    def add(self, chunk: int, writes: WrittenBytes) -> tuple[int, int] | None:
        """Add what a chunk has written.

        Returns:
            If another chunk has written something else: the offset of the first such byte, and the number of the other
            chunk, -1 if it has atomically changed what this one stores, or the other way round.
        """
        offsets, values = writes.starts, writes.values
        if not writes.operation:
            offsets = _places(writes.starts, writes.sizes)
            for updated in self.atomics.values():
                if updated[offsets].any():
                    return int(offsets[updated[offsets]][0]), -1
            wrong = (self.owners[offsets] > 0) & (self.values[offsets] != values)
            if wrong.any():
                at = int(offsets[wrong][0])
                return at, int(self.owners[at]) - 1
            self.values[offsets], self.owners[offsets] = values, chunk + 1
            return None
        key = (writes.operation, values.itemsize)
        each = offsets[:, None] + np.arange(values.itemsize)
        stored = (self.owners[each] > 0).any(axis=1)
        for other, updated in self.atomics.items():
            stored |= updated[each].any(axis=1) & (other != key)
        if stored.any():
            return int(offsets[stored][0]), -1
        updated = self.atomics.setdefault(key, np.zeros(len(self.target), bool))
        old = self.values[each].view(values.dtype)[:, 0]
        new = np.where(updated[offsets], combined(writes.operation, old, values), values)
        updated[each], self.values[each] = True, new[:, None].view(np.uint8)
        self.owners[each] = np.where(np.isin(self.owners[each], (0, -1 - chunk)), -1 - chunk, self.SEVERAL)
        return None

    def read_by(self, chunk: int, starts: Array, sizes: Array) -> tuple[int, int] | None:
        """Bytes that a chunk has read and another one changes: as `add`. All chunks have been added."""
        others = (self.owners != 0) & (np.abs(self.owners) != chunk + 1)
        others &= (self.values != self.target) | (self.owners < 0)
        ends = np.stack([starts, starts + sizes], axis=1).ravel()
        hit = np.flatnonzero(np.logical_or.reduceat(np.append(others, False), ends)[::2])
        if not len(hit):
            return None
        start, size = int(starts[hit[0]]), int(sizes[hit[0]])
        at = start + int(np.argmax(others[start : start + size]))
        return at, max(int(self.owners[at]), 0) - 1

    def apply(self) -> None:
        """Write the user's array."""
        for (operation, size), updated in self.atomics.items():
            offsets = np.flatnonzero(updated).reshape(-1, size)
            old, new = (x[offsets].view(f"u{size}")[:, 0] for x in (self.target, self.values))
            self.target[offsets] = combined(operation, old, new)[:, None].view(np.uint8)
        stored = np.flatnonzero(self.owners > 0)
        self.target[stored] = self.values[stored]


def combined(operation: str, old: Array, new: Array) -> Array:
    """The elements after the atomic operations of two chunks, unsigned[n]."""
    dtype, function = atomic_function(operation, 8 * old.itemsize)
    return np.asarray(function(old.view(dtype), new.view(dtype)), dtype).view(old.dtype)


def refuse(program: Program) -> None:
    """Check that workgroups do not depend on each other by atomics.

    Raises:
        DiagnosticError: if they do, at the atomic.
    """
    for inst in program.instructions:
        operation = INSTRUCTIONS[inst.name].atomic
        if not operation or inst.values.get("sfid") == "slm":
            continue
        why = ""
        if operation not in _RULES:
            why = f"atomic {operation} gives results that depend on the order of workgroups"
        elif inst["dst"].var is not None:
            why = f"the kernel uses the value that atomic {operation} returns, which depends on the order of workgroups"
        if why:
            raise error_at(inst.where or program.where, f"kernel '{program.name}' cannot be divided: {why}")


class DistributedLaunch(Struct, frozen=True):
    """A large launch that ended.

    Attributes:
        statistics: the sums of those of its chunks.
        arrays: the contents of arguments that were Dask arrays, by their numbers or names, as Dask arrays.
        chunks: how many chunks ran.
    """

    statistics: Statistics
    arrays: dict[Any, Any]
    chunks: int


class LargeLaunch(Struct):
    """A launch that is divided.

    Attributes:
        problem: what workers run.
        kernel: the version of the kernel that runs.
        given: the user's arrays among the arguments that are passed.
        groups: the number of workgroups.
    """

    problem: Chunks
    kernel: CompiledKernel
    given: Sequence[Any]
    groups: int

    @classmethod
    def of(cls, kernel: Any, arguments: Sequence[Any], names: Sequence[str], grid: Any, block: Any) -> LargeLaunch:
        """Prepare a launch; see `launch_on`."""
        call = ModuleCall.of(kernel) if isinstance(kernel, CompiledKernel) else FunctionCall(kernel, tuple(names))
        bound_call = call.bound(arguments, grid, block)
        version = bound_call.kernel.version_for(bound_call.passed, bound_call.grid)
        refuse(version.program)
        spans = [span_of(a) for a in {id(a): a for a in bound_call.given if isinstance(a, np.ndarray)}.values()]
        if any(len(group) > 1 for group in overlapping([s for s in spans if s[0] < s[1]])):
            raise ValueError(f"arrays of kernel '{version.name}' share memory, which chunks of workgroups do not see")
        problem = Chunks(call, tuple(_travelling(a) for a in arguments), grid, block)
        return cls(problem, version, bound_call.given, math.prod(extent(bound_call.grid, "grid")))

    def chunks(self, size: int) -> list[range]:
        """The numbers of the workgroups of each chunk."""
        return [range(first, min(first + size, self.groups)) for first in range(0, self.groups, size)]

    def merge(self, chunks: Sequence[range], results: Iterable[tuple[int, Done]]) -> Statistics:
        """Write the user's arrays, and print, when all chunks have ended. Gives the sum of their statistics.

        Args:
            results: what became of each chunk, with its number, in any order.

        Raises:
            DiagnosticError: if one failed, two write different values to one byte, or one reads what another changes;
                arrays have not changed then.
            ValueError: if the kernel writes to a read-only array.
        """
        kernel, merged, done = self.kernel, dict[int, _Merged](), dict[int, Done]()

        def race(chunk: int, access: str, conflict: tuple[int, int] | None, title: str) -> None:
            if conflict:
                other = "others" if conflict[1] < 0 else _named(chunks[conflict[1]])
                text = f"{_named(chunks[chunk])} {access.format(other)} byte {conflict[0]} of '{title}'"
                raise error_at(kernel.program.where, f"a race of kernel '{kernel.name}': {text}")

        for number, result in results:
            if result.errors:
                raise DiagnosticError(*result.errors)
            done[number] = result
            for one in result.written:
                if one.argument not in merged:
                    merged[one.argument] = _Merged.of(kernel.memory_name(one.argument), self.given[one.argument])
                merged_array = merged[one.argument]
                race(number, "and {} write different values to", merged_array.add(number, one), merged_array.title)
        for number, result in done.items():
            for i in result.read.keys() & merged.keys():
                merged_array = merged[i]
                race(number, "read, and {} write,", merged_array.read_by(number, *result.read[i]), merged_array.title)
        for number, merged_array in merged.items():
            if not self.given[number].flags.writeable:
                raise ValueError(f"'{merged_array.title}' is read-only, but kernel '{kernel.name}' changes it")
        for merged_array in merged.values():
            merged_array.apply()
        print("".join(done[n].printed for n in sorted(done)), end="")
        return _sum([d.statistics for d in done.values() if d.statistics])


def launch_on(
    scheduler: Client | str | None,
    kernel: Any,
    arguments: Sequence[Any] | Mapping[str, Any],
    grid: Any = 1,
    block: Any = None,
    *,
    chunk: int | None = None,
    workers: int | None = None,
    limit: float = LIMIT,
    memory: int | None = None,
) -> DistributedLaunch:
    """Launch a kernel whose workgroups run on the workers of a Dask cluster, in chunks.

    The arrays change, when all chunks have ended, to the bytes that one machine computes. Arrays of `numpy.memmap` are
    mapped by the workers, which see the same file; other arrays travel once to each worker. Dask arrays are computed
    first, and their new contents are in the result.

    Args:
        scheduler: a Dask client, or the address of a scheduler; None for a cluster of this machine's processors.
        kernel: a kernel of the tile language, or one that was compiled from a module.
        arguments: as in a call; of a kernel of the tile language by name.
        grid, block: as in a call.
        chunk: the number of workgroups of a chunk; by default each worker gets `CHUNKS` chunks.
        workers, limit, memory: see `tune`.

    Raises:
        TypeError, ValueError, DiagnosticError: as in a call. DiagnosticError too if workgroups depend on each other by
            atomics, two chunks write different values to one element, or one reads what another changes.
        RuntimeError: if a chunk exceeds a limit, or its process ends.
    """
    if chunk is not None and chunk < 1:
        raise ValueError(f"'chunk' must be positive, but got {chunk}")
    named = dict(arguments if isinstance(arguments, Mapping) else enumerate(arguments))
    given = [_computed(a) for a in named.values()]
    launch = LargeLaunch.of(kernel, given, [*map(str, named)], grid, block)

    def results() -> Iterator[tuple[int, Done]]:
        for number, report in cluster.map(launch.problem, chunks, TrialLimits(limit, memory)):
            if report.state != "done":
                raise RuntimeError(f"{_named(chunks[number])} of kernel '{launch.kernel.name}': {report.result}")
            yield number, report.result

    with Cluster(scheduler, workers) as cluster:
        chunks = launch.chunks(chunk or max(1, -(-launch.groups // (CHUNKS * max(cluster.capacity, 1)))))
        statistics = launch.merge(chunks, results())
    arrays = {n: _as_dask(a, new) for (n, a), new in zip(named.items(), given) if _is_dask(a)}
    return DistributedLaunch(statistics, arrays, len(chunks))


def _named(chunk: range) -> str:
    return f"workgroups {chunk.start} to {chunk.stop - 1}"


def _sum(parts: Sequence[Statistics]) -> Statistics:
    total = parts[0]
    for one in parts[1:]:
        executed, traffic = total.executed + one.executed, total.traffic + one.traffic
        total = Statistics(total.threads + one.threads, executed, traffic, total.allocation)
    return total


def _is_dask(value: Any) -> bool:
    return hasattr(value, "dask") and hasattr(value, "chunks")


def _computed(value: Any) -> Any:
    return np.array(value) if _is_dask(value) else value


def _as_dask(before: Any, value: Array) -> Any:
    with needing("a Dask array"):
        import dask.array
    return dask.array.from_array(value, chunks=before.chunks)


def _travelling(value: Any) -> Any:
    """An argument as it travels: a whole array in a file as its place."""
    if isinstance(value, np.memmap) and isinstance(value.base, mmap.mmap) and value.flags.c_contiguous:
        value.flush()
        return Mapped(str(Path(str(value.filename)).resolve()), value.dtype, value.shape, value.offset)
    return np.asarray(value) if isinstance(value, np.memmap) else value
