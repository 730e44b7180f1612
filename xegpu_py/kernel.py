"""`Kernel`: a compiled kernel that runs on numpy arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from xegpu_py.engines.memory import RuntimeFault
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position
from xegpu_py.ir.source import Source, decode_utf8
from xegpu_py.numerics.dpas import MODELS, Model
from xegpu_py.runtime.launch import ENGINES, Dim, Engine, EngineMismatch, Grid, Launcher, Statistics, default_engine
from xegpu_py.runtime.memory import DeviceMemory, HostMemory
from xegpu_py.runtime.staging import Staged
from xegpu_py.target import DEFAULT
from xegpu_py.target import target as target_of
from xegpu_py.visa import assembly
from xegpu_py.visa.program import Input, Program
from xegpu_py.visa.verify import verify

CHECKS = ("memory", "uninit", "races")
"""What can be looked for while a kernel runs: `memory`, accesses outside of allocations, which both engines always look
for; `uninit`, reads of registers never written; `races`, accesses of one place by two threads that nothing orders."""


class Kernel:
    """A kernel, ready to be launched on numpy arrays.

        kernel = Kernel.from_assembly(text)
        kernel(a, b, c, grid=(4, 4), block=(8,))

    Attributes:
        program: the decoded kernel.
        launcher: it with its registers allocated.
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
            check: what to look for, of `CHECKS`: one name or several.
            registers: registers of a thread, 128 or 256; by default the target's usual number.
            strict_grf: whether variables that do not fit the registers are an error.
            engine: what runs it: "jit", native code; "interpreter", the golden model; "both", which compares all that
                they leave. By default the JIT; the interpreter with `uninit`, of which it finds the first read of all
                threads, the JIT the first of a thread. With `races` the JIT leaves it to the interpreter to say what
                is wrong.
            threads: threads of the operating system that the JIT uses; by default one for each processor.
            cache: the folder where the JIT keeps native code between processes, or "off"; by default what the
                environment variable XEGPU_PY_CACHE says, or else a folder among the user's caches.
            progress: whether runs of more than a second show a bar, where standard error is a terminal.
            source: the text from which the program was read, to be shown in errors.

        Raises:
            ValueError: if an argument is not legal.
            DiagnosticError: if the program breaks a rule, or does not fit with `strict_grf`.
        """
        gpu = target_of(target)
        if model not in MODELS:
            raise ValueError(f"'model' must be one of {', '.join(MODELS)}, not {model!r}")
        checks = (check,) if isinstance(check, str) else tuple(check)
        for name in checks:
            if name not in CHECKS:
                raise ValueError(f"unknown check '{name}'; there are {', '.join(CHECKS)}")
        if engine is not None and engine not in ENGINES:
            raise ValueError(f"'engine' must be one of {', '.join(ENGINES)}, not {engine!r}")
        if threads is not None and threads < 1:
            raise ValueError(f"'threads' must be positive, not {threads}")
        if registers is not None and registers not in gpu.grf_counts:
            raise ValueError(f"target {target} has {' or '.join(map(str, gpu.grf_counts))} registers, not {registers}")
        self.program = program
        self._sources = [source] if source else []
        issues = verify(program, gpu)
        if issues:
            raise DiagnosticError([i.diagnostic() for i in issues], self._sources)
        watch, races = (name in checks for name in ("uninit", "races"))
        chosen = engine or ("interpreter" if watch else default_engine())
        self.launcher = Launcher(
            program,
            gpu,
            model,
            watch,
            races,
            registers,
            engine=chosen,
            threads=threads,
            cache=cache,
            progress=progress,
        )
        if strict_grf and self.launcher.allocation.beyond:
            message = f"kernel '{program.name}' does not fit: {self.launcher.allocation.report()}"
            raise DiagnosticError([Diagnostic("error", message, program.where)], self._sources)

    @classmethod
    def from_assembly(cls, text: str, *, name: str | None = None, file: str = "<string>", **options: Any) -> Kernel:
        """A kernel of a vISA assembly text.

        Args:
            name: which kernel of the text; it may be left out where there is one.
            file: what to call the text in errors.
            options: those of `Kernel`.

        Raises:
            ValueError: if there is no such kernel.
            DiagnosticError: if the text does not read, or the kernel breaks a rule.
        """
        source = Source(text, file)
        return cls(choose(assembly.read(source), name), source=source, **options)

    @classmethod
    def from_file(cls, path: str | Path, *, name: str | None = None, **options: Any) -> Kernel:
        """A kernel of a file of vISA assembly; see `from_assembly`."""
        source = decode_utf8(Path(path).read_bytes(), str(path))
        return cls.from_assembly(source.text, name=name, file=str(path), **options)

    def _repr_html_(self) -> str:
        return self.program._repr_html_()

    def __call__(self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] = 1) -> Statistics:
        """Run the kernel over a grid, and write what it changes back into the arrays.

        Args:
            arguments: one for each input, in order: for a `uq` of one element a numpy array, whose address the kernel
                gets; else a number, or as many as the input has elements.
            grid: workgroups in x, or in x, y and z.
            block: work items of a workgroup likewise (see `runtime.launch.Grid`).

        Returns:
            What ran, and how often.

        Raises:
            TypeError: if the number of arguments, or one's type, is wrong.
            ValueError: if an argument does not fit its input.
            DiagnosticError: if the kernel fails as it runs; arrays may hold what it had written by then.
        """
        inputs = self.program.arguments
        if len(arguments) != len(inputs):
            names = ", ".join(i.var.name for i in inputs)
            raise TypeError(
                f"kernel '{self.program.name}' takes {len(inputs)} arguments ({names}), not {len(arguments)}"
            )
        titles = [f"argument '{i.var.name}'" for i in inputs]
        return self.launch(arguments, titles, grid, block, packed=True)

    def launch(
        self,
        arguments: Sequence[Any],
        titles: Sequence[str],
        grid: int | Sequence[int] = 1,
        block: int | Sequence[int] = 1,
        packed: bool = False,
    ) -> Statistics:
        """Run the kernel as a call does.

        Args:
            titles: what to call each argument in messages.
            packed: whether the kernel has the elements of strided arrays side by side.
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
        try:
            done = self.launcher.run(size, values, memory)
        except RuntimeFault as fault:
            raise DiagnosticError([_diagnostic(fault)], self._sources) from None
        except EngineMismatch as mismatch:
            message = f"kernel '{self.program.name}': {mismatch.message}"
            raise DiagnosticError([Diagnostic("error", message, self.program.where)], self._sources) from None
        staged.write_back(self.program.name)
        return done

    def _check_block(self, size: Grid) -> None:
        threads, limit = size.threads(self.program), self.launcher.target.threads
        if threads > limit:
            raise ValueError(
                f"'block' makes workgroups of {threads} hardware threads; "
                f"on target {self.launcher.target.name} they have at most {limit}"
            )


def choose(programs: Sequence[Program], name: str | None) -> Program:
    """The kernel of a name, or the one that there is.

    Raises:
        ValueError: if there is none, or a name is needed.
    """
    names = ", ".join(p.name for p in programs)
    if name is None:
        if len(programs) != 1:
            raise ValueError(f"there are several kernels, of which one must be named: {names}")
        return programs[0]
    for program in programs:
        if program.name == name:
            return program
    raise ValueError(f"there is no kernel '{name}'; there are {names}")


def extent(given: int | Sequence[int], name: str) -> Dim:
    """A grid or block in x, y and z.

    Raises:
        TypeError, ValueError: if it is none; `name` is what the message calls it.
    """
    try:
        values = [operator.index(v) for v in (given if isinstance(given, (Sequence, np.ndarray)) else (given,))]
    except TypeError:
        raise TypeError(f"'{name}' must be one to three positive integers, not {given!r}") from None
    if not 1 <= len(values) <= 3 or not all(1 <= v < 1 << 32 for v in values):
        raise ValueError(f"'{name}' must be one to three positive integers of 32 bits, not {given!r}")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


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
        raise TypeError(f"{what}, not {argument!r}") from None
    if array.dtype == fmt.dtype and array.size == count:
        return array.tobytes()
    fits = np.issubdtype(array.dtype, np.integer) or (fmt.is_float and np.issubdtype(array.dtype, np.floating))
    # numpy has integers of more than 64 bits as objects.
    if not fits and not (array.dtype == object and all(isinstance(v, int) for v in array.ravel())):
        given = array.dtype if isinstance(argument, (np.ndarray, np.generic)) else type(argument).__name__
        raise TypeError(f"{what}, not {given}")
    if array.size != count:
        raise ValueError(f"{what}, not {array.size} of them")
    if not fmt.is_float:
        info = np.iinfo(fmt.dtype)
        if any(not info.min <= int(v) <= info.max for v in array.ravel()):
            raise ValueError(f"{what}, which holds {info.min} to {info.max}, not {argument!r}")
    return array.astype(fmt.dtype).tobytes()


def _diagnostic(fault: RuntimeFault) -> Diagnostic:
    where = fault.position if isinstance(fault.position, Position) else Position("<unknown>")
    notes = [Diagnostic("note", n, where) for n in fault.notes]
    if fault.elsewhere:
        text, place = fault.elsewhere
        notes.append(Diagnostic("note", text, place if isinstance(place, Position) else where))
    return Diagnostic("error", fault.message, where, tuple(notes))
