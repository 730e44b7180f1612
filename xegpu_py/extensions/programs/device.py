"""The GPU of a running program: its memory, and the kernels that are launched on it."""

from __future__ import annotations

import ctypes
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from mlir import ir
from msgspec import structs

from xegpu_py.dialects import visa
from xegpu_py.extensions.programs.host_libraries import ELEMENTS, HostMemRef
from xegpu_py.extensions.programs.host_lowering import LaunchFunc, Site
from xegpu_py.extensions.programs.load import Job
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, error_at, position_of
from xegpu_py.ir.module import Module, walk
from xegpu_py.lower_kernel import ModuleSource, compile
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Tracer, statistics_json, statistics_table
from xegpu_py.runtime.parameters import Parameter
from xegpu_py.visa.program import PRINT_BUFFER, Dim, Program

MANY = 100
"""A program that launches one kernel at least this often is assumed to measure time, and gets a note."""

COUNTS_SUBGROUPS = "xegpu.counts_subgroups"
"""Attribute of a kernel of work items whose launches give the block in subgroups. Its value is the subgroup size."""

LANES = "xegpu.lanes_per_subgroup"
"""Attribute of a kernel of subgroups whose launches give the block in work items. Its value is the subgroup size."""

KEPT = 1 << 28
"""The largest number of bytes of freed memory that are kept."""

LONG = 0.2
"""Seconds. A launch that took longer and changed nothing is not executed again on the same memory."""

_IDS = ("gpu.subgroup_id", "gpu.thread_id", "gpu.global_id")

_free = ctypes.CDLL(None).free

_free.argtypes, _free.restype = [ctypes.c_void_p], None

DYNAMIC = "gpu.dynamic_shared_memory"


@dataclass
class Steady:
    """A launch that took long, for those after it.

    Attributes:
        key: the kernel, the size of the launch, and its arguments.
        copies: copies of its arrays when it ended.
        is_done: whether it began with the same bytes, so that another one changes nothing.
    """

    key: Any
    copies: Sequence[np.ndarray[Any, Any]]
    is_done: bool = False


@dataclass
class Device:
    """Executes the GPU operations of host code: one method for each kind of call.

    Attributes:
        kernels: the program's `gpu.module`s by name.
        job: the run, with the options of `xegpu_py.compile` and of what is printed.
        say: prints a message or diagnostic on standard error.
        reached: called with each launch before it runs (False) and after it has ended (True).
        launches: the number of launches so far, by module and kernel.
    """

    kernels: dict[str, Module]
    job: Job
    say: Callable[[str | Diagnostic], None]
    reached: Callable[[int, LaunchFunc, bool], None]
    launches: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._live: dict[int, int] = {}
        self._freed: dict[int, int] = {}
        self._compiled: dict[tuple[str, str, int, tuple[str, ...]], Any] = {}
        self._misfits: set[tuple[str, str]] = set()
        self._steady: Steady | None = None

    def callback(self, site: Site, guard: Callable[[Callable[[], Any]], Any]) -> Any:
        """The function that compiled code calls at a site."""
        action = getattr(self, site.action)

        def called(*words: int) -> None:
            arguments = [HostMemRef.unranked(w) if t == "memref" else w for w, t in zip(words, site.words)]
            guard(partial(action, site, *arguments))

        types = [ctypes.c_void_p if t == "memref" else ctypes.c_int64 for t in site.words]
        return ctypes.CFUNCTYPE(None, *types)(called)

    def allocate(self, site: Site, memref: HostMemRef) -> None:
        """Register new memory, and fill it with zeros."""
        array = memref.array(site.element)
        ctypes.memset(memref.aligned, 0, array.nbytes)
        self._live[memref.allocated] = array.nbytes

    def deallocate(self, site: Site, memref: HostMemRef) -> None:
        """Free memory, at the latest when `KEPT` bytes are waiting.

        A freed address is not reused at once, so that freeing it a second time is an error and does not free memory
        that has been allocated since.
        """
        size = self._live.pop(memref.allocated, None)
        if size is not None:
            self._freed[memref.allocated] = size
        elif memref.allocated in self._freed:
            raise error_at(
                site.where, "'gpu.dealloc' op frees memory that is not allocated", "it has been freed before"
            )
        else:
            message = "'gpu.dealloc' op frees memory that gpu.alloc has not allocated; it stays allocated"
            self.say(Diagnostic("warning", message, site.where))
        while sum(self._freed.values()) > KEPT:
            oldest = next(iter(self._freed))
            del self._freed[oldest]
            _free(oldest)

    def copy(self, site: Site, to: HostMemRef, source: HostMemRef) -> None:
        if to.sizes != source.sizes:
            raise error_at(site.where, f"'gpu.memcpy' op copies an array of sizes {source.sizes} to one of {to.sizes}")
        np.copyto(to.array(site.element), source.array(site.element))

    def fill(self, site: Site, to: HostMemRef, value: HostMemRef) -> None:
        to.array(site.element)[...] = value.array(site.element)[0]

    def refute(self, site: Site) -> None:
        """Report a failed assertion."""
        raise error_at(site.where, f"assertion failed: {site.message}")

    def launch(self, site: Site, *given: Any) -> None:
        """Run a kernel to its end."""
        launch = site.launch
        assert launch is not None
        number = sum(self.launches.values()) + 1
        self.launches[launch.module, launch.kernel] += 1
        self.reached(number, launch, False)
        (grid, block), shared, memrefs = (given[:3], given[3:6]), given[6], given[7:]
        try:
            self._run(number, launch, grid, block, shared, memrefs)
        except DiagnosticError as e:
            note = Diagnostic("note", f"in launch {number} of the program, of kernel '{launch.kernel}'", launch.where)
            first = e.diagnostics[0]
            e.diagnostics[0] = structs.replace(first, notes=(*first.notes, note))
            raise
        except (TypeError, ValueError) as e:
            raise error_at(launch.where, f"launch {number}, of kernel '{launch.kernel}': {e}") from None
        except Exception as e:
            message = f"launch {number}, of kernel '{launch.kernel}': internal error: {type(e).__name__}: {e}"
            raise error_at(launch.where, message) from e
        self.reached(number, launch, True)

    def _run(
        self,
        number: int,
        launch: LaunchFunc,
        grid: Dim,
        block: Dim,
        shared: int,
        memrefs: Sequence[HostMemRef],
    ) -> None:
        kernel = self._kernel(launch, shared, self._broken(launch, grid, block))
        arguments = [_argument(t, m) for t, m in zip(launch.parameters, memrefs)]
        if min(grid) == 0:
            return
        size = self._block(launch, kernel, block)
        if not isinstance(kernel, Kernel):
            kernel(*arguments, grid=grid, block=size)
            return
        version = kernel.version_for(arguments, grid)
        program = version.program
        if self.job.trace:
            self._observe(number, version)
        key = (launch.module, launch.kernel, shared, tuple(grid), tuple(size), tuple(memrefs))
        if not self._observes(program) and all(map(_is_data, arguments)):
            self.steadily(key, arguments, lambda: version(*arguments, grid=grid, block=size))
            return
        stats = version(*arguments, grid=grid, block=size)
        if self.job.statistics == "json":
            self.say(statistics_json(program, stats, launch=number))
        elif self.job.statistics:
            self.say(f"launch {number}: {statistics_table(program, stats)}")

    def _observes(self, program: Program) -> bool:
        """Whether a launch does more than to change memory."""
        prints = any(i.var.name == PRINT_BUFFER for i in program.inputs)
        return bool(prints or self.job.trace or self.job.statistics or self.job.options.get("check"))

    def steadily(self, key: Any, arguments: Sequence[Any], run: Callable[[], Any]) -> None:
        """Run a launch, unless the same one changed nothing and the memory is as it was then.

        Programs that measure time launch a kernel a hundred times on the same arrays. A launch depends on its arguments
        and the arrays' bytes alone.
        """
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        values = [a for a in arguments if not isinstance(a, np.ndarray)]
        key = (key, values)
        steady = self._steady
        steady = steady if steady and steady.key == key and _equal(steady.copies, arrays) else None
        if steady and steady.is_done:
            return
        start = time.monotonic()
        run()
        if steady:
            steady.is_done = _equal(steady.copies, arrays)
        if not steady or not steady.is_done:
            long = time.monotonic() - start > LONG
            self._steady = Steady(key, [a.copy() for a in arrays]) if long else None

    def _observe(self, number: int, version: Kernel) -> None:
        assert self.job.trace is not None
        group, thread = self.job.trace
        self.say(f"launch {number}: kernel '{version.name}', workgroup {group}, subgroup {thread}")
        version.executor.observer = Tracer(version.program, version.executor.layout, group, thread, self.say)

    def _block(self, launch: LaunchFunc, kernel: Any, block: Dim) -> Sequence[int]:
        """The block of a launch in the unit of its kernel: subgroups, or work items (see `COUNTS_SUBGROUPS`, `LANES`).

        Raises:
            ValueError: if the work items do not fill whole subgroups.
        """
        func = self._func(launch)
        if COUNTS_SUBGROUPS in func.attributes:
            return (block[0] * int(ir.IntegerAttr(func.attributes[COUNTS_SUBGROUPS]).value), *block[1:])
        if LANES not in func.attributes:
            return block
        lanes = int(ir.IntegerAttr(func.attributes[LANES]).value)
        items = math.prod(block)
        if kernel.subgroups:
            self._check_threads(launch, int(kernel.subgroups), lanes, items)
            return (int(kernel.subgroups),)
        if items > lanes and not any(op.name in _IDS for op in walk(func)):
            text = f"has neither layouts nor ids of subgroups, so that all {items // lanes} subgroups of a workgroup do"
            note = Diagnostic("note", "--level=workgroup divides the kernel's vectors among them", launch.where)
            self._warn_once(launch, f"{text} the same", note)
        if items % lanes:
            raise ValueError(
                f"its workgroups have {items} work items, which is not a multiple of the subgroup size {lanes}"
            )
        # Work items are numbered along x first: rows that consist of whole subgroups keep the block's shape.
        return (items // lanes,) if block[0] % lanes else (block[0] // lanes, *block[1:])

    def _check_threads(self, launch: LaunchFunc, subgroups: int, lanes: int, threads: int) -> None:
        """Warn once of a launch whose threads are neither the subgroups of a kernel's layouts nor their lanes."""
        if threads not in (subgroups, subgroups * lanes):
            text = f"has layouts for {subgroups} subgroups, but is launched with {threads} threads"
            self._warn_once(launch, f"{text}; it runs with {subgroups} subgroups")

    def _warn_once(self, launch: LaunchFunc, text: str, *notes: Diagnostic) -> None:
        if (launch.module, launch.kernel) not in self._misfits:
            self._misfits.add((launch.module, launch.kernel))
            self.say(Diagnostic("warning", f"kernel '{launch.kernel}' {text}", launch.where, notes))

    def _func(self, launch: LaunchFunc) -> ir.Operation:
        return visa.kernel_named(self.kernels[launch.module].operation, launch.kernel)

    def _broken(self, launch: LaunchFunc, grid: Dim, block: Dim) -> tuple[str, ...]:
        """The attributes of a kernel whose sizes differ from those of the launch. The launch ignores them."""
        func = self._func(launch)
        broken = []
        for name, size in (("known_grid_size", grid), ("known_block_size", block)):
            if name not in func.attributes:
                continue
            block_size = tuple(ir.DenseI32ArrayAttr(func.attributes[name]))
            # The importer divides the block of a kernel of subgroups by the lanes, in which launches count.
            counts = LANES in func.attributes and name == "known_block_size"
            lanes = int(ir.IntegerAttr(func.attributes[LANES]).value) if counts else 1
            promised = (block_size[0] * lanes, *block_size[1:])
            if size in (block_size, promised):
                continue
            broken.append(name)
            if self.launches[launch.module, launch.kernel] == 1:
                text = f"{name} {promised}, but is launched with {size}"
                message = f"kernel '{launch.kernel}' promises a {text}; the promise is ignored"
                self.say(Diagnostic("warning", message, launch.where))
        return tuple(broken)

    def _kernel(self, launch: LaunchFunc, shared: int, broken: tuple[str, ...]) -> Any:
        key = launch.module, launch.kernel, shared, broken
        kernel = self._compiled.get(key)
        if kernel is None:
            kernel = self._compiled[key] = self._compile(launch, shared, broken)
        return kernel

    def _compile(self, launch: LaunchFunc, shared: int, broken: tuple[str, ...]) -> Any:
        module = self.kernels[launch.module]
        if any(op.name == DYNAMIC for op in walk(module.operation)):
            module = with_shared_memory(module, shared)
        if broken:
            module = module.copy()
            for func in visa.kernels(module.operation):
                if visa.name_of(func) == launch.kernel:
                    for name in broken:
                        del func.attributes[name]
        source = self.job.source
        key = ("program", source.name, source.text, str(self.job.imported), launch.module, str(shared), *broken)
        kernel = compile(ModuleSource(lambda: module, key), launch.kernel, **self.job.options)
        if self.job.remarks and isinstance(kernel, Kernel):
            for remark in kernel.remarks:
                self.say(remark)
        return kernel

    def close(self) -> None:
        """Print the notes that are due at the end of the program."""
        for (_, kernel), count in self.launches.items():
            if count >= MANY:
                self.say(
                    f"note: kernel '{kernel}' was launched {count} times; times that the program measures are those of "
                    "this simulation, which executes a long launch that changes nothing only once, and not of a GPU"
                )


def _is_data(argument: Any) -> bool:
    """Whether an argument holds no address of other memory."""
    return np.asarray(argument).dtype not in (np.int64, np.uint64)


def _equal(some: Sequence[np.ndarray[Any, Any]], others: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Whether arrays have the same bytes."""
    pairs = ([np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in pair] for pair in zip(some, others))
    return all(np.array_equal(a, b) for a, b in pairs)


def with_shared_memory(module: Module, size: int) -> Module:
    """A copy of a module whose dynamic shared memory has a fixed size in bytes, that of a launch."""
    copy = module.copy()
    with copy.context:
        for op in [op for op in walk(copy.operation) if op.name == DYNAMIC]:
            if not size:
                raise error_at(
                    position_of(op.location),
                    "'gpu.dynamic_shared_memory' op is in a kernel that is launched without any",
                )
            with ir.InsertionPoint.at_block_begin(_kernel_of(op).regions[0].blocks[0]), op.location:
                space = ir.MemRefType(op.results[0].type).memory_space
                kind = ir.MemRefType.get([size], ir.IntegerType.get_signless(8), memory_space=space)
                buffer = ir.Operation.create("memref.alloca", [kind], [], {
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])
                }).result  # fmt: skip
                cast = ir.Operation.create("memref.cast", [op.results[0].type], [buffer]).result
            op.results[0].replace_all_uses_with(cast)
            op.erase()
    copy.verify()
    return copy


def _kernel_of(op: ir.Operation) -> ir.Operation:
    while op.name != "gpu.func":
        op = op.parent.operation
    return op


def _argument(kind: Parameter, memref: HostMemRef) -> Any:
    """An argument of a kernel: the array of a memref parameter; otherwise the number or vector stored at the memref."""
    if kind.element not in ELEMENTS:
        raise TypeError(f"has an argument with elements of {kind.element}, which host code cannot pass")
    if kind.is_memref:
        return memref.array(kind.element)
    shape = tuple(n for n in kind.shape if n is not None)
    array = HostMemRef.contiguous(memref.aligned, shape).array(kind.element)
    return array if shape else array[()]
