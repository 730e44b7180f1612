"""Two compilations of a program compared: by two versions of Intel's compiler, or with two sets of its options."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field, structs

from xegpu_py.argument_types import checked
from xegpu_py.engines.operands import Batch
from xegpu_py.extensions.opencl.compiler import DEFAULT, CompiledProgram, CompileError, compiled, failed
from xegpu_py.extensions.opencl.program import Launch, LocalMemory, PreparedLaunch, Program, options_of
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source
from xegpu_py.numerics.differences import Unlike, unlike
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.device_memory import BASE, DeviceMemory
from xegpu_py.runtime.host_arrays import copy_of, parse_argument
from xegpu_py.runtime.options import Options
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction

_RUN = re.compile(r"^[ \t]*// RUN (\w+)(.*)$", re.MULTILINE)

_LIMITS = ("ulp", "close")


class Call(Struct, frozen=True):
    """A launch of a kernel.

    Attributes:
        kernel: its name.
        arguments: as in a call of the kernel; a launch changes copies of arrays.
        items, local: the global and the local size, as in `kernel[global, local]`.
        limits: by how much floats of other implementations may differ: `ulp` in units in the last place, `close`
            relatively. `compare` does not use them.
    """

    kernel: str
    arguments: tuple[Any, ...]
    items: int | tuple[int, ...]
    local: int | tuple[int, ...] | None = None
    limits: dict[str, float] = {}


def stated_calls(text: str, file: str = "<string>") -> list[Call]:
    """The launches that comments `// RUN kernel ARG... global=X,Y,Z local=X,Y,Z` of a program state.

    ARG is as for `xegpu-run`. `ulp=N` and `close=X` are limits, see `Call`.

    Raises:
        CompileError: if a comment is not of this form.
    """
    calls = []
    for m in _RUN.finditer(text):
        where = Position(file, text.count("\n", 0, m.start(1)) + 1)
        sizes: dict[str, tuple[int, ...]] = {}
        limits: dict[str, float] = {}
        arguments: list[Any] = []
        try:
            for word in m[2].split():
                name, equals, value = word.partition("=")
                if equals and name in ("global", "local"):
                    sizes[name] = tuple(map(int, value.split(",")))
                elif re.fullmatch(r"local:\d+", word):
                    arguments.append(LocalMemory(int(word[6:])))
                elif equals and name in _LIMITS:
                    limits[name] = float(value)
                else:
                    arguments.append(parse_argument(word))
        except (OSError, ValueError) as e:
            raise CompileError([Diagnostic("error", f"comment RUN: {e}", where)], [Source(text, file)]) from None
        if "global" not in sizes:
            wrong = f"comment RUN: kernel '{m[1]}' needs global=X,Y,Z, the number of its work items"
            raise CompileError([Diagnostic("error", wrong, where)], [Source(text, file)])
        calls.append(Call(m[1], tuple(arguments), sizes["global"], sizes.get("local"), limits))
    return calls


class Comparison(Struct, frozen=True):
    """The results of a launch with the code of two compilations.

    Attributes:
        kernel: the kernel's name.
        versions: the compilations: the compilers, options or both, where they differ.
        arrays: how the arrays of arguments differ, by the names of the parameters; without those of equal bytes.
        printed: whether the kernel prints other lines.
        failures: the error with each version; None where the kernel ends.
        stores: the line that stores a differing value first, with each version; None where it is not known.
        source: the program's text.
    """

    kernel: str
    versions: tuple[str, str]
    arrays: dict[str, Unlike] = {}
    printed: bool = False
    failures: tuple[DiagnosticError | None, DiagnosticError | None] = (None, None)
    stores: tuple[Position | None, Position | None] = (None, None)
    source: Source = field(default_factory=lambda: Source("", ""))

    @property
    def equal(self) -> bool:
        """Whether both versions end with the same bytes, and print the same lines."""
        return not self.arrays and not self.printed and self.failures == (None, None)

    @property
    def summary(self) -> str:
        """The result in one line."""
        failed_with = [name for name, failure in zip(self.versions, self.failures) if failure]
        parts = [f"fails with {' and with '.join(failed_with)}"] if failed_with else []
        parts += [f"'{name}': {difference.extent}" for name, difference in self.arrays.items()]
        parts += ["the printed lines differ"] if self.printed else []
        return "; ".join(parts) or "equal"

    def diagnostics(self) -> list[Diagnostic]:
        """The difference at the lines of the source; none if there is no difference."""
        first, second = self.versions
        differences = []
        for version, failure in zip(self.versions, self.failures):
            for d in failure.diagnostics if failure else ():
                note = Diagnostic("note", f"kernel '{self.kernel}' with {version}", d.position)
                differences.append(structs.replace(d, notes=(*d.notes, note)))
        if not self.arrays and not self.printed:
            return differences
        where = next(filter(None, self.stores), Position(self.source.name))
        notes = []
        for version, store in zip(self.versions, self.stores):
            if store and store != where:
                notes.append(Diagnostic("note", f"with {version} the store is here", store))
        for name, array in self.arrays.items():
            values = f"{array.values[0]} with {first}, {array.values[1]} with {second}"
            notes.append(Diagnostic("note", f"'{name}': {array.extent}, first {list(array.index)}: {values}", where))
        verb = "stores other values" if self.arrays else "prints other lines"
        message = f"kernel '{self.kernel}' {verb} with {second} than with {first}{', first here' * bool(self.arrays)}"
        return [*differences, Diagnostic("error", message, where, tuple(notes))]

    def __str__(self) -> str:
        text = "\n".join(d.render([self.source]) for d in self.diagnostics())
        return text or f"kernel '{self.kernel}': {self.summary}"


@checked
def compare(
    source: str | Path,
    calls: Sequence[Call] | None = None,
    target: str = DEFAULT,
    ocloc: Sequence[str | Path] = (),
    options: str | Sequence[str] = "",
    **others: Any,
) -> list[Comparison]:
    """Compile a program twice, by two compilers or with two sets of options, and compare what its kernels store.

    Each launch begins with the initial values of the program's variables. Launches run on one thread, so that atomics
    have one order.

    Args:
        source: the program, as for `compile`.
        calls: the launches; by default those that comments `// RUN` of the program state, see `stated_calls`.
        target: the GPU.
        ocloc: two compilers: paths, or names on PATH; one or none if the options differ.
        options: two sets of options of the compiler, or one for both.
        others: options of kernels, as for `compile`.

    Returns:
        One for each launch.

    Raises:
        CompileError: if one of the compilers does not accept the program or is missing, or no launch is stated.
        TypeError, ValueError: if a launch does not fit its kernel, or there are not two compilations.
    """
    launch_options = options_of(target, {"threads": 1, **others})
    compilers, texts = [*ocloc], [options] if isinstance(options, str) else [*options]
    if max(len(compilers), len(texts)) != 2 or not texts:
        raise ValueError("'ocloc' or 'options' must be two that are compared, and the other one at most two")
    names = _names(compilers, texts)
    compilations = [
        (texts[min(n, len(texts) - 1)], compilers[min(n, len(compilers) - 1)] if compilers else None) for n in (0, 1)
    ]
    programs = [_compiled(source, target, *one, name) for one, name in zip(compilations, names)]
    first = programs[0]
    if calls is None:
        calls = stated_calls(first.source, first.file)
        if not calls:
            raise failed(first.file, "no comment '// RUN kernel ARG... global=X,Y,Z' states a launch")
    return [_compared(call, programs, names, launch_options) for call in calls]


def _names(compilers: Sequence[str | Path], options: Sequence[str]) -> tuple[str, str]:
    """The two compilations in messages: what differs between them."""

    def name(number: int) -> str:
        compiler_name = [str(compilers[number])] if len(compilers) == 2 else []
        compiler_name += [options[number] or "default options"] if len(options) == 2 else []
        return ", ".join(compiler_name)

    return name(0), name(1)


def _compiled(source: str | Path, target: str, options: str, ocloc: str | Path | None, name: str) -> CompiledProgram:
    try:
        return compiled(source, target, options, ocloc)
    except CompileError as e:
        first, *rest = e.diagnostics
        note = Diagnostic("note", f"with {name}", first.position)
        raise CompileError([structs.replace(first, notes=(*first.notes, note)), *rest], e.sources) from None


class _Run(Struct):
    """A launch.

    Attributes:
        arrays: copies of the arrays, by the names of their parameters.
        launch, ready: the launch, and its arguments in memory.
        printed: its lines, in any order, after it has run.
    """

    arrays: Mapping[str, Array]
    launch: Launch
    ready: PreparedLaunch
    printed: list[str] = []

    @property
    def memory(self) -> DeviceMemory:
        return self.ready.prepared.memory

    def elements_of_arrays(self) -> tuple[Array, Array]:
        """The offsets in memory of all bytes of arrays, and the number of the element of each byte."""
        offsets, elements, count = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        for buffer in self.memory.buffers:
            names = buffer.name.split(", ")
            if set(names) <= set(self.arrays):
                size, positions = min(self.arrays[n].itemsize for n in names), np.arange(buffer.bytes)
                offsets.append(positions + (buffer.address - BASE))
                elements.append(positions // size + count)
                count += -(-buffer.bytes // size)
        return np.concatenate(offsets), np.concatenate(elements)


def _ready(call: Call, compiled: CompiledProgram, options: Options) -> _Run:
    """A launch with copies of the arrays; an array that is passed twice is one copy."""
    copies: dict[int, Array] = {}
    arguments = [copies.setdefault(id(a), copy_of(a)) if isinstance(a, np.ndarray) else a for a in call.arguments]
    program = Program(compiled, options)
    if call.kernel not in program.kernels:
        raise ValueError(f"there is no kernel '{call.kernel}'; there are {', '.join(program.kernels)}")
    kernel = program.kernels[call.kernel]
    launch = kernel[call.items, call.local]
    ready = launch.ready(arguments, DeviceMemory())
    return _Run({n: a for n, a in zip(kernel.names, arguments) if isinstance(a, np.ndarray)}, launch, ready)


def _run(call: Call, program: CompiledProgram, options: Options) -> _Run | DiagnosticError:
    """A launch that has run, or its error: also that of vISA that is not supported."""
    printed = io.StringIO()
    try:
        run = _ready(call, program, options)
        with contextlib.redirect_stdout(printed):
            run.launch.run(run.ready)
    except DiagnosticError as failure:
        return failure
    run.printed = sorted(printed.getvalue().splitlines())
    return run


def _compared(call: Call, programs: Sequence[CompiledProgram], names: tuple[str, str], options: Options) -> Comparison:
    one, other = (_run(call, program, options) for program in programs)
    source = Source(programs[0].source, programs[0].file)
    result = Comparison(call.kernel, names, source=source)
    if not isinstance(one, _Run) or not isinstance(other, _Run):
        failures = [run if isinstance(run, DiagnosticError) else None for run in (one, other)]
        return structs.replace(result, failures=(failures[0], failures[1]))
    differing = {n: unlike(a, other.arrays[n]) for n, a in one.arrays.items()}
    arrays = {n: difference for n, difference in differing.items() if difference}
    stores: tuple[Position | None, Position | None] = (None, None)
    if arrays:
        stores = _first_stores(call, programs, (one, other), options)
    return structs.replace(result, arrays=arrays, printed=one.printed != other.printed, stores=stores)


class _LastStores:
    """Observes which instructions give elements of memory their last values.

    Args:
        watched: the offsets of their bytes in memory.
        elements: the number of the element of each byte.
        values: the bytes before.

    Attributes:
        time: by element, how many stores had run before its last change; -1 for elements that do not change.
        index: by element, the instruction.
    """

    def __init__(self, instructions: Sequence[Instruction], watched: Array, elements: Array, values: Array) -> None:
        specs = [INSTRUCTIONS[inst.name] for inst in instructions]
        self._stores = [s.category in ("store", "atomic") for s in specs]
        self._watched, self._elements, self._values, self._count = watched, elements, values, 0
        self.time, self.index = (np.full(elements.max(initial=-1) + 1, -1) for _ in range(2))

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        """See `engines.interpreter.Observer`."""
        if not self._stores[index]:
            return
        values = batch.memory.data[self._watched]
        changed = self._elements[values != self._values]
        self.time[changed], self.index[changed] = self._count, index
        self._values, self._count = values, self._count + 1


def _first_stores(
    call: Call, programs: Sequence[CompiledProgram], runs: tuple[_Run, _Run], options: Options
) -> tuple[Position | None, Position | None]:
    """The stores, in both versions, that leave the element which differs and is stored first in the first version."""
    (one_at, elements), (other_at, _) = (run.elements_of_arrays() for run in runs)
    unlike_bytes = runs[0].memory.data[one_at] != runs[1].memory.data[other_at]
    differs = np.isin(elements, elements[unlike_bytes])
    numbers = np.unique(elements[differs], return_inverse=True)[1].ravel()
    observed = []
    for program, at in zip(programs, (one_at, other_at)):
        run, watched = _ready(call, program, options), at[differs]
        kernel = run.ready.version.with_engine("interpreter")
        stores = _LastStores(kernel.executor.runnable.instructions, watched, numbers, run.memory.data[watched])
        kernel.executor.observer = stores
        with contextlib.redirect_stdout(io.StringIO()):
            kernel.executor.run(run.ready.prepared)
        observed.append((kernel.executor.runnable.instructions, stores))
    # An element that only the second version stores comes after all that the first one stores.
    time, later = (np.where(s.time < 0, np.iinfo(np.int64).max, s.time) for _, s in observed)
    first = np.lexsort((later, time))[0]
    one, other = (
        instructions[stores.index[first]].where if stores.index[first] >= 0 else None
        for instructions, stores in observed
    )
    return one, other
