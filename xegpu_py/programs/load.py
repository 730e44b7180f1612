"""Programs: text, its key, its kernels, and its host functions, which run in a child process."""

from __future__ import annotations

import functools
import math
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, overload

import numpy as np
from mlir import ir
from msgspec import Struct

from xegpu_py.cache import Cache, digest, folder_of
from xegpu_py.dialects import visa
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source, error_at
from xegpu_py.ir.module import Context, Module, parse_source, source_of, walk
from xegpu_py.ir.passes import collector_paused
from xegpu_py.lower_kernel import chosen_kernel, levels_of, lower
from xegpu_py.profile import profiles  # noqa: F401  (provides `Kernel.profile`)
from xegpu_py.programs.host_lowering import own_module
from xegpu_py.reference.evaluate import ReferenceKernel
from xegpu_py.runtime.executable import REFERENCE, Executable, Options
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import TARGETS
from xegpu_py.target import target as target_of
from xegpu_py.upstream import Level, import_upstream, looks_upstream, looks_xevm
from xegpu_py.visa.allocate import placed
from xegpu_py.visa.program import Dim, digest_of
from xegpu_py.visa.verify import verify

# `compile`: kernels of a module.


class ModuleSource(Struct, frozen=True):
    """The source of a module.

    Attributes:
        read: returns the module, the same one in each call.
        key: everything that the module depends on, the key of its lowered kernels in the cache on disk; empty if the
            dependencies are not known, which disables the cache.
    """

    read: Callable[[], Module]
    key: tuple[str, ...] = ()

    def executable(self, kernel: str | None, options: Options) -> Executable:
        """A kernel lowered to vISA, from the cache on disk; if it is not there, it is lowered and stored there.

        Raises:
            ValueError: if there is no such kernel.
            DiagnosticError: if the module cannot be parsed, or the kernel cannot be lowered.
        """

        def write(made: Executable) -> bytes | None:
            # Each launch needs the results of verification and register allocation: they are kept with the program.
            if verify(made.program, target_of(options.target)):
                return None
            placed(made.program, target_of(options.target), options.registers)
            digest_of(made.program)
            return pickle.dumps(made, pickle.HIGHEST_PROTOCOL)

        cache = Cache(folder_of(options.cache) if self.key else None)
        key = digest(options.key(), *self.key, str(kernel))
        read: Callable[[bytes], Executable] = pickle.loads
        return cache.kept("lowered", key, lambda: self._lowered(kernel, options), read=read, write=write)

    def _lowered(self, kernel: str | None, options: Options) -> Executable:
        module = self.read()
        return lower(module, chosen_kernel(module, kernel), options)

    @collector_paused()
    def kernel(self, name: str | None, options: Options, versions: bool = True) -> Kernel:
        """A kernel, ready to be called; errors as in `executable`.

        Args:
            versions: whether calls that violate the assumptions of `options` compile another version.
        """

        def levels() -> dict[str, Module]:
            module = self.read()
            found = levels_of(module, chosen_kernel(module, name), options)
            return {level: at if level == "visa" else at.copy() for level, at in found}

        remake = (lambda other: self.kernel(name, other, versions=False)) if versions else None
        return Kernel(self.executable(name, options), options, remake=remake, levels=levels)


def text_of(module: Module | str | Path) -> ModuleSource:
    """The source of a module, a text or a file.

    Of a module in memory it is a copy, which later edits do not change. It has no key, because its locations have no
    text.

    Raises:
        DiagnosticError, OSError: if the text cannot be read.
    """
    if isinstance(module, Module):
        held = module.copy()
        return ModuleSource(lambda: held)
    source = source_of(module)
    read = functools.cache(functools.partial(_read, source))
    return ModuleSource(read, ("module", source.name, source.text))


def _read(source: Source) -> Module:
    """Parse a module in our dialects, or in upstream's dialects, which is imported.

    Raises:
        DiagnosticError: if neither succeeds. The errors are those of the dialect that the text resembles.
    """
    try:
        module = parse_source(source)
        return _imported_xevm(source) or module if "llvm." in source.text else module
    except DiagnosticError:
        if "xegpu." not in source.text:
            raise
        try:
            return import_upstream(source)
        except DiagnosticError:
            if looks_upstream(source.text):
                raise
        raise


OPTIONS_ATTRIBUTE = "xegpu.options"
"""The attribute of a module that gives the options with which its kernels are compiled by default."""

_CHIP = re.compile(r'#xevm\.target<[^>]*\bchip = "(\w+)"')


def stated_target(text: str) -> str | None:
    """The target that upstream's `#xevm.target` names in a program; None if that is `pvc` or `bmg`, or none of ours.

    The default target runs what is written for `pvc` and `bmg`.
    """
    chips = set(_CHIP.findall(text))
    return chips.pop() if len(chips) == 1 and chips <= TARGETS.keys() - {"pvc", "bmg"} else None


def stated_options(source: ModuleSource) -> dict[str, Any]:
    """The options that a module states; texts that state none are not parsed for them."""
    if source.key and not any(OPTIONS_ATTRIBUTE in part or "#xevm.target" in part for part in source.key):
        return {}
    root = source.read().operation
    modules = [op for op in walk(root) if op.name == "gpu.module" and "targets" in op.attributes]
    target = stated_target(" ".join(str(op.attributes["targets"]) for op in modules))
    stated = {"target": target} if target else {}
    if OPTIONS_ATTRIBUTE in root.attributes:
        stated |= {item.name: item.attr.value for item in ir.DictAttr(root.attributes[OPTIONS_ATTRIBUTE])}
    return stated


def _imported_xevm(source: Source) -> Module | None:
    """Import a module with kernels in `xevm` or `llvm`; None for any other module."""
    return import_upstream(source) if looks_xevm(source.text) else None


@overload
def compile(
    module: Module | ModuleSource | str | Path,
    kernel: str | None = None,
    *,
    engine: Literal["reference"],
    **options: Any,
) -> ReferenceKernel: ...


@overload
def compile(module: Module | ModuleSource | str | Path, kernel: str | None = None, **options: Any) -> Kernel: ...


def compile(
    module: Module | ModuleSource | str | Path, kernel: str | None = None, **options: Any
) -> Kernel | ReferenceKernel:
    """Lower a kernel of XeTile or XeGPU to vISA.

    With `engine="reference"` the kernel is not lowered, but evaluated at its own level. Of the other options only
    `model` then has an effect, and `check` is refused.

    Args:
        module: a module, its text, the path of a file with its text, or a `ModuleSource`. The module is not changed.
            Text in upstream MLIR's dialect `xegpu` is imported (see `import_upstream`).
        kernel: the name of the `gpu.func`; optional if the module has one kernel.
        options: target, registers, optimize, prefetch, load_ahead, subgroups, unaligned, large, model, check,
            strict_grf, engine, threads, cache, progress: see `Options`. A module's attribute `xegpu.options` gives the
            defaults, and `#xevm.target` of its `gpu.module`s the target.

    Raises:
        TypeError: if there is no such option.
        ValueError: if there is no such kernel, or a value of an option is not legal.
        DiagnosticError: if the module cannot be parsed, or the kernel cannot be lowered.
    """
    source = module if isinstance(module, ModuleSource) else text_of(module)
    own = Options.from_keywords(**{**stated_options(source), **options})
    if own.engine == REFERENCE:
        found = source.read()
        return ReferenceKernel(found, chosen_kernel(found, kernel), own.model)
    return source.kernel(kernel, own)


# `load_program`: modules with host code, whose host functions and kernels can be called.


def read(source: Source, imported: Imported, context: Context) -> Module:
    """Read a program.

    Args:
        imported: whether its kernels are in upstream's dialects and are imported; also the level of all kernels, or
            "upstream" if upstream's own passes lower them first.

    Raises:
        DiagnosticError: if it cannot be parsed, or is not valid.
    """
    if isinstance(imported, bool):
        return import_upstream(source) if imported else parse_source(source, context=context)
    if imported == "upstream":
        return import_upstream(source, via=imported)
    return import_upstream(source, level=imported)


class Kernels(Mapping[str, Any]):
    """A program's kernels by name, or by "module::name" if it is ambiguous. Kernels are compiled when first used."""

    def __init__(self, program: Program) -> None:
        self._program = program
        funcs = visa.kernels(program.module.operation)
        names = [visa.name_of(f) for f in funcs]
        self._funcs = {
            name if names.count(name) == 1 else f"{visa.name_of(f.parent)}::{name}": f for name, f in zip(names, funcs)
        }

    def __getitem__(self, name: str) -> Any:
        func = self._funcs[name]
        module = own_module(func.parent.operation, self._program.module)
        return compile(module, visa.name_of(func), **self._program.options)

    def __iter__(self) -> Iterator[str]:
        return iter(self._funcs)

    def __len__(self) -> int:
        return len(self._funcs)


class Program:
    """A program: `program.main()` calls its host function `main`, and `program.kernels["name"]` is one of its kernels.

    Attributes:
        module: its module.
        options: the options of `xegpu_py.compile` for all its kernels.
        kernels: its kernels; see `Kernels`.
        functions: the names of its host functions.
    """

    def __init__(self, module: Module, source: Source, imported: Imported, seed: int, options: dict[str, Any]) -> None:
        """Make a program of a parsed module; see `load_program`."""
        self.module, self.options = module, options
        self._source, self._imported, self._seed = source, imported, seed
        self.kernels = Kernels(self)
        self.functions = tuple(
            str(ir.StringAttr(op.attributes["sym_name"]).value)
            for op in walk(module.operation)
            if op.name == "func.func" and len(op.regions[0].blocks)
        )

    def __getattr__(self, name: str) -> functools.partial[Any]:
        if name in self.__dict__.get("functions", ()):
            return functools.partial(self.call, name)
        raise AttributeError(f"the program has no host function '{name}'; it has {', '.join(self.functions) or 'none'}")

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a host function, in a new child process, from the program's initial state.

        Its output goes to this process's standard output.

        Args:
            arguments: a numpy array for each memref, which is changed in place when the function returns; otherwise a
                number.

        Returns:
            Its result, or a tuple of its results. Memrefs are returned as arrays.

        Raises:
            TypeError, ValueError: if an argument does not fit.
            DiagnosticError: if the program cannot be lowered, a launch fails, or host code crashes.
        """
        job = Job(self._source, self._imported, name, options=self.options, seed=self._seed)
        results = run(job, arguments)
        return None if not results else results[0] if len(results) == 1 else tuple(results)


def load_program(
    program: Module | str | Path,
    *,
    import_upstream: bool = False,
    via: Literal["upstream"] | None = None,
    level: Level | None = None,
    seed: int = 0,
    **options: Any,
) -> Program:
    """Read a program: kernels, and host code that launches them.

        program = xegpu_py.load_program("gemm.mlir")
        program.main()
        c = program.test(a, b)
        program.kernels["gemm"](a, b, c, grid=(4, 4))

    Args:
        program: a module, its text, or the path of a file that holds it.
        import_upstream: whether its kernels are in the dialects of upstream MLIR or IMEX.
        via: "upstream" for kernels that upstream's own passes lower first; see `import_upstream`.
        level: the level of all kernels in upstream's dialects; without it each kernel's is found from its ops.
        seed: the seed of the random numbers with which the program fills arrays.
        options: the options of `xegpu_py.compile`.

    Raises:
        DiagnosticError: if it cannot be parsed, or is not valid.
        OSError: if the file cannot be read.
    """
    if isinstance(program, Module):
        name = program.sources[0].name if program.sources else "<module>"
        source = Source(program.text(debuginfo=True), name)
    else:
        source = source_of(program)
    imported: Imported = via or level or import_upstream
    module = read(source, imported, Context())
    return Program(module, source, imported, seed, options)


# The child process in which a program's host code runs, since compiled code can crash.
#
# The parent starts `python -m xegpu_py.programs` with one end of a socket pair, sends a `Job`, and receives a tuple
# for each event: its name and its data.


@dataclass(frozen=True)
class SharedArray:
    """An array argument in the file that parent and child share.

    Attributes:
        dtype, shape: numpy's dtype and shape.
        start: offset of its first byte in the file.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int

    def of(self, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A numpy view of the array in the file's bytes."""
        size = math.prod(self.shape) * self.dtype.itemsize
        return memory[self.start : self.start + size].view(self.dtype).reshape(self.shape)


Imported = bool | Literal["upstream"] | Level
"""Whether kernels are in upstream's dialects, or their level; "upstream" if upstream's own passes lower them first."""


@dataclass
class Job:
    """The description of a run.

    Attributes:
        source: the program.
        imported: see `read`.
        entry: the host function.
        arguments: arrays and numbers; `run` sets them.
        shared: descriptor of the file with the arrays; None if there are no arrays.
        options: the options of `xegpu_py.compile`.
        seed: the seed of random numbers.
        trace: the workgroup and thread whose instructions are printed on standard error in each launch; None for none.
        statistics: whether to print the statistics of each launch on standard error, as a table or in JSON.
        remarks: whether to print the remarks of the lowering on standard error.
    """

    source: Source
    imported: Imported
    entry: str
    arguments: list[Any] = field(default_factory=list)
    shared: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    trace: tuple[Dim, int] | None = None
    statistics: bool | Literal["json"] = False
    remarks: bool = False


def run(job: Job, arguments: Sequence[Any] = ()) -> list[Any]:
    """Run a job in a child process, wait for its end, and return the function's results.

    Messages about launches are printed on standard error while it runs.

    Args:
        job: the job, to which the arguments are added.
        arguments: a numpy array for each memref, which is changed in place; otherwise a number.

    Raises:
        DiagnosticError: if the program cannot be lowered, a launch fails, or the host code crashes.
        TypeError, ValueError: if arguments do not fit.
        BrokenPipeError: if the reader of the program's output has closed the pipe.
    """
    with tempfile.TemporaryFile() as file:
        end = 0
        for argument in arguments:
            if isinstance(argument, np.ndarray) and argument.ndim:
                job.arguments.append(SharedArray(argument.dtype, argument.shape, end))
                end += -(-argument.nbytes // _PAGE) * _PAGE
            else:
                job.arguments.append(argument)
        if not end:
            return _run(job)
        file.truncate(end)
        memory, job.shared = np.memmap(file, np.uint8, "r+", shape=(end,)), file.fileno()
        pairs = [(a, p.of(memory)) for a, p in zip(arguments, job.arguments) if isinstance(p, SharedArray)]
        for array, place in pairs:
            place[...] = array
        results = _run(job)
        for array, place in pairs:
            if array.flags.writeable:
                array[...] = place
        return results


_PAGE = 4096
"""Alignment of the arrays that parent and child share."""


def _run(job: Job) -> list[Any]:
    own, childs = Pipe()
    with own, childs:
        files = [childs.fileno(), *([job.shared] if job.shared is not None else [])]
        command = [sys.executable, "-m", "xegpu_py.programs", str(childs.fileno())]
        sys.stdout.flush()
        output = _descriptor(sys.stdout)
        child = subprocess.Popen(command, pass_fds=files, stdin=subprocess.DEVNULL, stdout=output)
        copier = threading.Thread(target=_copy, args=(child.stdout,), daemon=True)
        if output == subprocess.PIPE:
            copier.start()
        try:
            childs.close()
            own.send(job)
            return _watch(own, child, job)
        finally:
            child.kill()
            child.wait()
            if output == subprocess.PIPE:
                copier.join()


def _descriptor(stream: TextIO) -> int:
    """The file descriptor of a stream. A stream without one, as in notebooks, gets a pipe."""
    try:
        return stream.fileno()
    except (AttributeError, OSError):
        return subprocess.PIPE


def _copy(pipe: BinaryIO) -> None:
    for line in pipe:
        sys.stdout.write(line.decode("utf-8", "replace"))


def _watch(pipe: Connection, child: subprocess.Popen[bytes], job: Job) -> list[Any]:
    last, position = "", Position(job.source.name, job.source.first_line, 1)
    while True:
        try:
            event, *details = pipe.recv()
        except (EOFError, ConnectionResetError):
            raise _crash(child.wait(), last, job, position) from None
        if event == "say":
            said = details[0]
            print(said.render([job.source]) if isinstance(said, Diagnostic) else said, file=sys.stderr)
        elif event == "launch":
            number, kernel, ended = details
            last = (
                f"after launch {number}, of kernel '{kernel}'" if ended else f"in launch {number}, of kernel '{kernel}'"
            )
        elif event == "place":
            position = details[0]
        elif event == "raise":
            raise details[0]
        else:
            return details[0]


def _crash(status: int, last: str, job: Job, position: Position) -> DiagnosticError:
    """The error for a child that ended without a result."""
    if status < 0:
        try:
            reason = f"{signal.Signals(-status).name} ({(signal.strsignal(-status) or '').lower()})"
        except ValueError:
            reason = f"signal {-status}"
    else:
        reason = f"exit status {status}"
    message = f"host function '{job.entry}' crashed with {reason}{' ' if last else ''}{last}"
    note = "compiled host code is not checked: look for accesses outside of memrefs, or to freed memory"
    return error_at(position, message, note)
