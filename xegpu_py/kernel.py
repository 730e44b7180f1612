"""`Kernel`: a compiled kernel that runs on numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py.engines.faults import RuntimeFault
from xegpu_py.engines.jit.llvm import LLVMError
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source, decode_utf8
from xegpu_py.numerics.dpas import MODELS, Model
from xegpu_py.runtime.device_memory import DeviceMemory, HostMemory
from xegpu_py.runtime.host_arrays import Staged
from xegpu_py.runtime.launch import ENGINES, Engine, EngineMismatch, Grid, Launcher, Statistics, default_engine
from xegpu_py.target import DEFAULT
from xegpu_py.target import target as target_of
from xegpu_py.visa import assembly
from xegpu_py.visa.program import Input, Program, chosen, extent
from xegpu_py.visa.verify import verify

CHECKS = ("memory", "uninit", "races", "bounds")
"""The checks of a running kernel. `memory` finds accesses outside of allocations; both engines always check them.
`uninit` finds reads of registers that were never written. `races` finds unordered accesses of one byte by two threads.
`bounds` finds loads and stores of 2D blocks that are not within their surface, whose other elements read as zero.
"""


class Prepared(Struct, frozen=True):
    """The arguments of a launch.

    Attributes:
        size: the grid.
        values: the bytes of each argument, by the name of its input.
        memory: global memory with the arrays.
        staged: the arrays, if some are copies; otherwise the kernel accesses all in place, and the caller keeps them.
    """

    size: Grid
    values: dict[str, bytes]
    memory: DeviceMemory
    staged: Staged | None


class Kernel:
    """A kernel, ready to be launched on numpy arrays.

        kernel = Kernel.from_assembly(text)
        kernel(a, b, c, grid=(4, 4), block=(8,))

    Attributes:
        program: the decoded kernel.
        launcher: the kernel with its registers allocated.
    """

    def __init__(
        self,
        program: Program,
        *,
        target: str = DEFAULT,
        model: Model = "fma",
        check: str | Sequence[str] = (),
        registers: int | None = None,
        strict_grf: bool = False,
        engine: Engine | None = None,
        threads: int | None = None,
        cache: str | PathLike[str] | None = None,
        progress: bool = True,
        source: Source | None = None,
    ) -> None:
        """Make a kernel of a program.

        Args:
            target: the GPU's name.
            model: how dpas rounds: "fma", "stage" or "exact" (docs/numerics.md).
            check: one or several of the checks in `CHECKS`.
            registers: registers of a thread, 128 or 256; by default the target's usual number.
            strict_grf: whether it is an error if the variables do not fit into the registers.
            engine: "jit" (native code), "interpreter" (the golden model), or "both", which runs both and compares all
                memory. The default is the JIT, or the interpreter with `uninit`, because it reports the first
                uninitialised read of all threads, where the JIT reports the first one of a thread. If the JIT finds a
                race, the interpreter runs the launch again and reports it.
            threads: the number of operating system threads of the JIT; by default one for each processor.
            cache: the folder where the JIT caches native code, or "off"; by default the value of the environment
                variable XEGPU_PY_CACHE, otherwise a folder in the user's cache directory.
            progress: whether runs of more than a second show a progress bar if standard error is a terminal.
            source: the text from which the program was read, which errors quote.

        Raises:
            ValueError: if an argument is not legal.
            DiagnosticError: if the program breaks a rule, or does not fit with `strict_grf`.
        """
        gpu = target_of(target)
        if model not in MODELS:
            raise ValueError(f"'model' must be one of {', '.join(MODELS)}, but got {model!r}")
        checks = (check,) if isinstance(check, str) else tuple(check)
        for name in checks:
            if name not in CHECKS:
                raise ValueError(f"unknown check '{name}'; there are {', '.join(CHECKS)}")
        if engine is not None and engine not in ENGINES:
            raise ValueError(f"'engine' must be one of {', '.join(ENGINES)}, but got {engine!r}")
        if threads is not None and threads < 1:
            raise ValueError(f"'threads' must be positive, but got {threads}")
        if registers is not None and registers not in gpu.grf_counts:
            raise ValueError(f"target {target} has {' or '.join(map(str, gpu.grf_counts))} registers, not {registers}")
        self.program = program
        self._sources = [source] if source else []
        issues = verify(program, gpu)
        if issues:
            raise DiagnosticError([i.diagnostic() for i in issues], self._sources)
        watch, races, bounds = (name in checks for name in CHECKS[1:])
        named = engine or ("interpreter" if watch else default_engine())
        self.launcher = Launcher(
            program,
            gpu,
            model,
            watch,
            races,
            bounds,
            registers,
            engine=named,
            threads=threads,
            cache=cache,
            progress=progress,
        )
        if strict_grf and self.launcher.allocation.beyond:
            message = f"kernel '{program.name}' does not fit: {self.launcher.allocation.report()}"
            raise DiagnosticError([Diagnostic("error", message, program.where)], self._sources)

    @classmethod
    def from_assembly(cls, text: str, *, name: str | None = None, file: str = "<string>", **options: Any) -> Kernel:
        """Read a kernel from vISA assembly.

        Args:
            name: the kernel's name; optional if the text has one kernel.
            file: the name of the text in errors.
            options: the options of `Kernel`.

        Raises:
            ValueError: if there is no such kernel.
            DiagnosticError: if the text cannot be parsed, or the kernel is not valid.
        """
        source = Source(text, file)
        # Imported only for assembly, which kernels of MLIR are not.

        return cls(choose(assembly.read(source), name), source=source, **options)

    @classmethod
    def from_file(cls, path: str | Path, *, name: str | None = None, **options: Any) -> Kernel:
        """Read a kernel from a file of vISA assembly; see `from_assembly`."""
        source = decode_utf8(Path(path).read_bytes(), str(path))
        return cls.from_assembly(source.text, name=name, file=str(path), **options)

    def _repr_html_(self) -> str:
        return self.program._repr_html_()

    def __call__(self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] = 1) -> Statistics:
        """Run the kernel over a grid. Arrays are changed in place.

        Args:
            arguments: one for each input, in order: for a `uq` of one element a numpy array, whose address is passed;
                otherwise a number, or one number for each element of the input.
            grid: the number of workgroups in x, or in x, y and z.
            block: the number of work items of a workgroup in x, or in x, y and z (see `runtime.launch.Grid`).

        Returns:
            Counts of executed instructions and of the bytes that messages moved.

        Raises:
            TypeError: if the number of arguments or the type of an argument is wrong.
            ValueError: if an argument does not fit its input.
            DiagnosticError: if the kernel fails while it runs; arrays may contain what it wrote before.
        """
        inputs = self.program.arguments
        if len(arguments) != len(inputs):
            names = ", ".join(i.var.name for i in inputs)
            raise TypeError(
                f"kernel '{self.program.name}' takes {len(inputs)} arguments ({names}), but got {len(arguments)}"
            )
        titles = [f"argument '{i.var.name}'" for i in inputs]
        return self.run(self.prepare(arguments, titles, grid, block, packed=True))

    def prepare(
        self,
        arguments: Sequence[Any],
        titles: Sequence[str],
        grid: int | Sequence[int] = 1,
        block: int | Sequence[int] = 1,
        packed: bool = False,
    ) -> Prepared:
        """Check the arguments of a launch, and move them to device memory; arguments and errors as in `__call__`.

        Args:
            titles: the name of each argument in messages.
            packed: whether the kernel accesses the elements of strided arrays as contiguous.
        """
        size = Grid(extent(grid, "grid"), extent(block, "block"))
        self._check_block(size)
        in_place = self.launcher.engine == "jit" and not self.launcher.races
        memory = HostMemory() if in_place else DeviceMemory()
        staged = Staged(memory)
        values = {}
        for item, argument, title in zip(self.program.arguments, arguments, titles):
            if _is_pointer(item) and isinstance(argument, np.ndarray) and argument.ndim:
                staged.add(item.var.name, argument, title, packed)
            else:
                values[item.var.name] = _by_value(item, argument, title)
        values |= staged.addresses()
        return Prepared(size, values, memory, None if staged.in_place else staged)

    def run(self, prepared: Prepared) -> Statistics:
        """Launch the kernel on prepared arguments; errors as in `__call__`."""
        try:
            done = self.launcher.run(prepared.size, prepared.values, prepared.memory)
        except RuntimeFault as fault:
            raise DiagnosticError([_diagnostic(fault)], self._sources) from None
        except EngineMismatch as mismatch:
            message = f"kernel '{self.program.name}': {mismatch}"
            raise DiagnosticError([Diagnostic("error", message, self.program.where)], self._sources) from None
        except LLVMError as failure:
            where = self.program.where
            note = Diagnostic("note", "the interpreter runs it: engine='interpreter', or --engine=interpreter", where)
            message = f"kernel '{self.program.name}' has no native code: {failure}"
            raise DiagnosticError([Diagnostic("error", message, where, (note,))], self._sources) from None
        if prepared.staged:
            prepared.staged.write_back(self.program.name)
        return done

    def _check_block(self, size: Grid) -> None:
        threads, limit = size.threads(self.program), self.launcher.target.threads
        if threads > limit:
            raise ValueError(
                f"'block' makes workgroups of {threads} hardware threads; "
                f"on target {self.launcher.target.name} they have at most {limit}"
            )


def choose(programs: Sequence[Program], name: str | None) -> Program:
    """The kernel of a name; without a name the only kernel.

    Raises:
        ValueError: if there is no such kernel, or the name is missing and there are several.
    """
    return programs[chosen([p.name for p in programs], name)]


def _is_pointer(item: Input) -> bool:
    return item.var.type == "uq" and item.var.count == 1


def _by_value(item: Input, argument: Any, title: str) -> bytes:
    fmt, count = item.var.format, item.var.count
    kind = "number" if fmt.is_float else "integer"
    wanted = f"{count} {kind}s" if count > 1 else f"a{'n' * (kind == 'integer')} {kind}"
    what = f"{title} must be {wanted} of type {fmt.name}"
    if _is_pointer(item):
        what = f"{title} must be a numpy array, or an integer as its address"
    try:
        array = np.asarray(argument)
    except ValueError:
        raise TypeError(f"{what}, but got {argument!r}") from None
    if array.dtype == bool and not _is_pointer(item):
        array = array.astype(np.uint8)
    if array.dtype == fmt.dtype and array.size == count:
        return array.tobytes()
    fits = np.issubdtype(array.dtype, np.integer) or (fmt.is_float and np.issubdtype(array.dtype, np.floating))
    # numpy represents integers of more than 64 bits as objects.
    if not fits and not (array.dtype == object and all(isinstance(v, int) for v in array.ravel())):
        given = array.dtype if isinstance(argument, (np.ndarray, np.generic)) else type(argument).__name__
        raise TypeError(f"{what}, but got {given}")
    if array.size != count:
        raise ValueError(f"{what}, but got {array.size} of them")
    if not fmt.is_float:
        info = np.iinfo(fmt.dtype)
        if any(not info.min <= int(v) <= info.max for v in array.ravel()):
            raise ValueError(f"{what}, from {info.min} to {info.max}, but got {argument!r}")
    return array.astype(fmt.dtype).tobytes()


def _diagnostic(fault: RuntimeFault) -> Diagnostic:
    where = fault.position if isinstance(fault.position, Position) else Position("<unknown>")
    notes = [Diagnostic("note", n, where) for n in fault.notes]
    if fault.elsewhere:
        text, place = fault.elsewhere
        notes.append(Diagnostic("note", text, place if isinstance(place, Position) else where))
    return Diagnostic("error", fault.message, where, tuple(notes))
