"""A kernel lowered for each GPU, run, and judged: rules that it breaks, registers, bytes, Intel's finalizers, time."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np
from msgspec import Struct, structs

from xegpu_py import external_tools
from xegpu_py.argument_types import checked
from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.extensions.profile.gpus import USUAL
from xegpu_py.extensions.profile.launches import counted
from xegpu_py.extensions.profile.time_model import predicted
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Lines
from xegpu_py.language.jit_function import LAUNCH_HINTS, Named, OnGrid, TileKernel, hinted_options
from xegpu_py.numerics.differences import Unlike, unlike
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.host_arrays import PointerTable, Span, Window, copy_of, memory_between, overlapping, span_of
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Prepared
from xegpu_py.target import TARGETS
from xegpu_py.target import target as target_of
from xegpu_py.tiles.element_types import as_argument
from xegpu_py.visa import assembly
from xegpu_py.visa.allocate import engine_allocation
from xegpu_py.visa.finalizer import FINALIZERS, FinalizerError, finalize

GPUS = tuple(name for name, target in TARGETS.items() if target.generation)
"""The names of the targets that are GPUs."""


def targets_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of targets: "all", names with commas between them, or a list.

    Raises:
        ValueError: if one is no target's, with the name that is most like it.
    """
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else list(names)
    found: dict[str, None] = {}
    for word in words:
        if word != "all" and word not in TARGETS:
            suggestion = did_you_mean(word, TARGETS) or ";"
            raise ValueError(f"unknown target '{word}'{suggestion} there are all, {', '.join(TARGETS)}")
        found |= dict.fromkeys(GPUS if word == "all" else [word])
    return tuple(found)


class Problem(Struct, frozen=True):
    """A reason why a target does not take a kernel: a rule that it breaks, or an error as it runs.

    Attributes:
        message: the message. Rules that one message of the kernel breaks have the same one.
        file, line, column: its place in the source; 0 where it is not known.
        notes: further messages.
        rule: the name of the rule of messages that it breaks; empty for other reasons.
    """

    message: str
    file: str
    line: int
    column: int
    notes: tuple[str, ...] = ()
    rule: str = ""


class Difference(Struct, frozen=True):
    """How an array differs from that of the first target.

    Attributes:
        array: its name.
        count, size: how many elements differ, and how many there are.
        ulps: the largest distance of floats in units in the last place; None for integers, and if a number is NaN.
        index: the first element that differs.
        first, here: it on the first target, and on this one.
        extent: all of that in words.
    """

    array: str
    count: int
    size: int
    ulps: int | None
    index: tuple[int, ...]
    first: str
    here: str
    extent: str

    @classmethod
    def of(cls, array: str, unlike_elements: Unlike) -> Difference:
        """The difference of an array."""
        ulps = None if unlike_elements.mixed else unlike_elements.ulps
        return cls(
            array,
            unlike_elements.count,
            unlike_elements.size,
            ulps,
            unlike_elements.index,
            *unlike_elements.values,
            unlike_elements.extent,
        )


class Finalized(Struct, frozen=True):
    """The answer of one of Intel's finalizers.

    Attributes:
        accepted: whether it makes native code.
        message: why not.
        spill_bytes: the bytes that it spills to memory.
    """

    accepted: bool
    message: str = ""
    spill_bytes: int = 0


class Verdict(Struct):
    """A kernel on one target.

    Attributes:
        target: the target.
        accepted: whether it is lowered, and ends.
        problems: why not: all rules that the lowering finds broken, or that messages break as they run, and the error
            with which execution ends.
        fits: by the number of registers of a thread, whether its variables fit them.
        pressure: the registers that hold values at once, at most.
        equal: whether all arrays have the bytes of the first target; None where it does not run.
        differences: how they differ.
        finalizers: the answers of the finalizers that are installed and know the target, by name.
        gpu: the GPU of the model of the time; None if there is none for the target.
        seconds, bound: the time by the model, and the part of the GPU that binds it.
    """

    target: str
    accepted: bool = False
    problems: list[Problem] = []
    fits: dict[int, bool] = {}
    pressure: int | None = None
    equal: bool | None = None
    differences: list[Difference] = []
    finalizers: dict[str, Finalized] = {}
    gpu: str | None = None
    seconds: float | None = None
    bound: str | None = None


class Portability(Struct, dict=True):
    """The verdicts on a kernel; printing it shows them as a table.

    Attributes:
        kernel: its name.
        first: the first target on which it runs, with whose bytes those of others are compared; None if there is none.
        verdicts: one for each target.
    """

    kernel: str
    first: str | None
    verdicts: list[Verdict]

    def __getitem__(self, target: str) -> Verdict:
        return next(v for v in self.verdicts if v.target == target)

    def json(self) -> str:
        """The verdicts as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        counts = sorted({n for v in self.verdicts for n in v.fits})
        tools = [n for n in FINALIZERS if any(n in v.finalizers for v in self.verdicts)]
        head = ["target", "accepted", *(f"{n} registers" for n in counts), "bytes", *tools, "time by the model"]
        rows = []
        for v in self.verdicts:
            bytes_ = "" if v.equal is None else "first" if v.target == self.first else "equal" if v.equal else "differ"
            rules = f"no, {len(v.problems)} error{'s' * (len(v.problems) > 1)}"
            accepted = {name: "yes" if result.accepted else "no" for name, result in v.finalizers.items()}
            accepted |= {n: f"yes, {f.spill_bytes} B spilled" for n, f in v.finalizers.items() if f.spill_bytes}
            time = "" if v.seconds is None else f"{v.seconds * 1e6:.4g} us ({v.gpu}, {v.bound})"
            fits = [{True: "fits", False: "no"}.get(v.fits.get(n), "") for n in counts]  # type: ignore[arg-type]
            rows.append(
                [v.target, "yes" if v.accepted else rules, *fits, bytes_, *(accepted.get(n, "") for n in tools), time]
            )
        return head, rows

    def _details(self) -> list[str]:
        """The lines below the table: differences, refusals of finalizers."""
        lines = []
        for v in self.verdicts:
            for d in v.differences:
                lines.append(
                    f"{v.target}: '{d.array}': {d.extent}; first {list(d.index)}: {d.here}, on {self.first} {d.first}"
                )
            lines += [f"{v.target}: {f.message}" for f in v.finalizers.values() if not f.accepted]
        return lines

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The errors of all targets, at the lines of the source; a note names the targets that have one."""
        by: dict[Diagnostic, list[str]] = {}
        for target, failure in self._failures.items():
            for d in failure.diagnostics:
                by.setdefault(d, []).append(target)
        return [
            msgspec.structs.replace(d, notes=(*d.notes, Diagnostic("note", f"on {', '.join(targets)}", d.position)))
            for d, targets in by.items()
        ]

    @property
    def sources(self) -> list[Lines]:
        """The texts that these name."""
        return [source for failure in self._failures.values() for source in failure.sources]

    @property
    def _failures(self) -> dict[str, DiagnosticError]:
        return self.__dict__.get("failures", {})

    @property
    def table(self) -> str:
        """The verdicts as a table, with a line for each difference and each refusal of a finalizer below."""
        head, rows = self._rows()
        widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in (head, *rows)]
        title = [f"kernel '{self.kernel}'"] if self.kernel else []
        return "\n".join([*title, *lines, *self._details()])

    def __str__(self) -> str:
        return "\n".join([self.table, *(d.render(self.sources) for d in self.diagnostics)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, rows = self._rows()
        cells = "".join(
            f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>"
            for tag, row in (("th", head), *(("td", row) for row in rows))
        )
        lines = [*self._details(), *(d.render(self.sources) for d in self.diagnostics)]
        return f"<table>{cells}</table>" + f"<pre>{escape(chr(10).join(lines))}</pre>" * bool(lines)

    @property
    def views(self) -> dict[str, str]:
        """The table as a view of the report of a profile; see `Profile.save`."""
        return {"Targets": self._repr_html_()}


class LoweredLaunch(Struct):
    """A kernel that is lowered for a target, with its arguments in memory.

    Attributes:
        kernel: the version that runs.
        prepared: the arguments.
        arrays: the arrays that it may change, by name: copies.
    """

    kernel: Kernel
    prepared: Prepared
    arrays: dict[str, Array]


@runtime_checkable
class Launchable(Protocol):
    """A kernel with the extents of a launch, such as those of OpenCL C."""

    def for_target(self, target: str) -> Launchable:
        """The same for another target."""

    def prepared(self, arguments: Sequence[Any]) -> tuple[Kernel, Prepared]:
        """The version that runs, and the arguments with which it does."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the parameters."""


@checked
def portability(
    kernel: Any,
    *arguments: Any,
    targets: str | Sequence[str] = "all",
    grid: Any = 1,
    block: Any = None,
    **keywords: Any,
) -> Portability:
    """Lower a kernel for each GPU, run it on copies of the arguments, and judge it.

        print(xegpu_py.portability(kernel, a, b, c, grid=(8, 8), targets="bmg,pvc"))

    Args:
        kernel: a kernel of `compile` or `Kernel.from_file`, of the tile language (also `kernel[grid]`), or of OpenCL
            C with its sizes (`program.saxpy[1024, 64]`); or a function that makes one of these for a target, which it
            gets by name.
        arguments, grid, block, keywords: as in a call of the kernel.
        targets: "all", names with commas between them, or a list of names.

    Raises:
        TypeError, ValueError: if an argument does not fit, or there is no such target.
    """
    target_names = targets_of(targets)
    lowered = partial(_launch, kernel, arguments, keywords, grid, block)
    result = Portability(getattr(kernel, "name", ""), None, [])
    result.__dict__["failures"] = failures = {}
    base: dict[str, Array] = {}
    for name in target_names:
        verdict = Verdict(name)
        result.verdicts.append(verdict)
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                # The table says what does not fit.
                warnings.simplefilter("ignore")
                launch = lowered(name)
                result.kernel = launch.kernel.name
                _judge_text(verdict, launch)
                failure = _run(launch)
        except DiagnosticError as refused:
            failure = refused
        if failure:
            failures[name] = failure
            verdict.problems = [p for d in failure.diagnostics if d.severity == "error" for p in _problems(d)]
            continue
        verdict.accepted = True
        if result.first is None:
            result.first, base = name, launch.arrays
        differences = {n: unlike(base[n], a) for n, a in launch.arrays.items()}
        verdict.differences = [Difference.of(n, one) for n, one in differences.items() if one]
        verdict.equal = not verdict.differences
    return result


_RULE = re.compile(r"rule ([\w-]+): ")


def _problems(d: Diagnostic) -> list[Problem]:
    """One problem for each rule of messages that an error names in its notes, or one for the error."""
    where, notes = d.position, [note.message for note in d.notes]
    rules = [match[1] for match in map(_RULE.match, notes) if match]
    others = [note for note in notes if not _RULE.match(note)]
    return [
        Problem(
            d.message,
            where.file,
            where.line,
            where.column,
            (*(note for note in notes if note.startswith(f"rule {rule}: ")), *others),
            rule,
        )
        for rule in rules or [""]
    ]


def _run(launch: LoweredLaunch) -> DiagnosticError | None:
    """Run a kernel; the errors of all messages that break rules, and that with which it ends."""
    memory = launch.prepared.memory.copy()
    try:
        launch.kernel.executor.run(launch.prepared)
    except DiagnosticError as failure:
        return launch.kernel.broken_rules(structs.replace(launch.prepared, memory=memory)) or failure
    return None


def _judge_text(verdict: Verdict, launch: LoweredLaunch) -> None:
    """Judge a lowered kernel before it runs."""
    kernel, target = launch.kernel, target_of(verdict.target)
    allocations = {n: engine_allocation(kernel.program, target, n) for n in target.grf_counts}
    verdict.fits = {n: not allocation.beyond for n, allocation in allocations.items()}
    verdict.pressure = kernel.executor.allocation.pressure
    for name, finalizer in FINALIZERS.items():
        # IGC has made the vISA of OpenCL C itself.
        if verdict.target in finalizer.platforms and external_tools.find(name) and not kernel.program.modern:
            verdict.finalizers[name] = _finalized(kernel, verdict.target, name)
    if verdict.target in USUAL:
        # The errors of the run are those of the kernel.
        with contextlib.suppress(DiagnosticError):
            prediction = predicted(counted(kernel, launch.prepared, "sample"))
            verdict.gpu, verdict.seconds, verdict.bound = prediction.gpu, prediction.seconds, prediction.bound


def _finalized(kernel: Kernel, target: str, finalizer: str) -> Finalized:
    try:
        text = assembly.write([kernel.executable.program])
        native = finalize(text, target, kernel.options.registers, finalizer)
    except FinalizerError as refused:
        return Finalized(False, str(refused))
    return Finalized(True, "", native.spill_bytes)


# Kernels of each front end, lowered for a target.


class _Copies:
    """Copies of arguments. Memory in which several of them lie is copied once, so that their copies overlap too."""

    def __init__(self, arguments: Iterable[Any]) -> None:
        self._made: dict[int, Array] = {}
        arrays: dict[int, Array] = {}
        for argument in arguments:
            self._collect(argument, arrays)
        placed = {key: a for key, a in arrays.items() if a.size and min(a.strides, default=0) >= 0}
        self._made |= {key: copy_of(np.ascontiguousarray(a)) for key, a in arrays.items() if key not in placed}
        keys, spans = [*placed], [_memory_of(a) for a in placed.values()]
        for group in overlapping(spans):
            self._copy({keys[n]: placed[keys[n]] for n in group}, [spans[n] for n in group])

    def _collect(self, argument: Any, arrays: dict[int, Array]) -> None:
        array = _as_array(argument)
        if isinstance(array, (PointerTable, tuple)):
            for member in array.arrays if isinstance(array, PointerTable) else array:
                self._collect(member, arrays)
        elif isinstance(array, np.ndarray):
            arrays[id(argument)] = array

    def _copy(self, arrays: Mapping[int, Array], spans: Sequence[Span]) -> None:
        """Copy arrays of which each overlaps another one."""
        if len(arrays) == 1 and not any(isinstance(a, Window) for a in arrays.values()):
            self._made |= {key: copy_of(a) for key, a in arrays.items()}
            return
        start, end = min(s for s, _ in spans), max(e for _, e in spans)
        memory = np.zeros(end - start + _ALIGNMENT, np.uint8)
        offset = (start - memory.ctypes.data) % _ALIGNMENT
        memory[offset : offset + end - start] = memory_between(start, end)
        distance = int(memory.ctypes.data) + offset - start
        for key, array in arrays.items():
            at = offset + int(array.ctypes.data) - start
            copy: Array = np.ndarray(array.shape, array.dtype, memory, at, array.strides)
            if isinstance(array, Window):
                window = copy.view(Window)
                window.span = array.span[0] + distance, array.span[1] + distance
                copy = window
            self._made[key] = copy

    def of(self, argument: Any) -> Any:
        array = _as_array(argument)
        if isinstance(array, PointerTable):
            return PointerTable([self.of(a) for a in array.arrays])
        if isinstance(array, tuple):
            return tuple(map(self.of, array))
        return self._made[id(argument)] if isinstance(array, np.ndarray) else argument


_ALIGNMENT = 64
"""Copies begin at addresses that are the same modulo this number of bytes, so that a kernel has the same version."""


def _as_array(argument: Any) -> Any:
    """An argument as a numpy array, if it is an array of any library."""
    return argument if isinstance(argument, Window) else as_argument(argument)


def _memory_of(array: Array) -> Span:
    """The addresses of an array, or of all that a kernel may access with it."""
    return array.span if isinstance(array, Window) else span_of(array)


def _arrays(names: Sequence[str], arguments: Sequence[Any]) -> dict[str, Array]:
    """The arrays among arguments, by name; those of tables and tuples with their numbers.

    Memory that a kernel may access before an array is an array of bytes.
    """
    arrays: dict[str, Array] = {}
    for name, argument in zip(names, arguments):
        if isinstance(argument, (PointerTable, tuple)):
            members = argument.arrays if isinstance(argument, PointerTable) else argument
            arrays |= _arrays([f"{name}[{i}]" for i in range(len(members))], members)
        elif isinstance(argument, np.ndarray):
            arrays[name] = argument
            if isinstance(argument, Window) and argument.span[0] < argument.ctypes.data:
                arrays[f"memory before {name}"] = memory_between(argument.span[0], int(argument.ctypes.data))
    return arrays


def _launch(
    kernel: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any, block: Any, target: str
) -> LoweredLaunch:
    """A launch of a kernel on copies of the arguments.

    Raises:
        TypeError, ValueError: if they do not fit, or the kernel is of no known kind.
        DiagnosticError: if it cannot be lowered for the target.
    """
    if isinstance(kernel, FunctionType):
        return _launch(kernel(target), arguments, keywords, grid, block, target)
    if isinstance(kernel, OnGrid):
        return _launch(kernel.func, arguments, keywords, kernel.keywords["grid"], block, target)
    if hasattr(kernel, "chosen"):
        return _tile_launch(kernel, arguments, keywords, grid, block, target)
    if keywords:
        raise TypeError(f"portability() got an unexpected keyword argument '{next(iter(keywords))}'")
    copies = _Copies(arguments)
    copied_arguments = [copies.of(a) for a in arguments]
    if isinstance(kernel, TileKernel):
        tile_kernel = TileKernel(kernel.function, kernel.arguments, {**kernel.options, "target": target})
        return _of_kernel(tile_kernel.compiled, tile_kernel.converted(copied_arguments), grid, block)
    if isinstance(kernel, Kernel):
        return _of_kernel(kernel.for_target(target), copied_arguments, grid, block)
    if isinstance(kernel, Launchable):
        on = kernel.for_target(target)
        return LoweredLaunch(*on.prepared(copied_arguments), _arrays(on.names, copied_arguments))
    raise TypeError(f"'kernel' must be a kernel, or a function that makes one for a target, but got {kernel!r}")


def _of_kernel(kernel: Kernel, arguments: Sequence[Any], grid: Any, block: Any) -> LoweredLaunch:
    version, prepared = kernel.prepared(arguments, grid, block)
    return LoweredLaunch(version, prepared, _arrays([kernel.memory_name(i) for i in range(len(arguments))], arguments))


def _tile_launch(
    kernel: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    grid: Any,
    block: Any,
    target: str,
) -> LoweredLaunch:
    """A launch of a kernel of the tile language, or of what chooses its options and arguments."""
    hints = {name: value for name, value in keywords.items() if name in LAUNCH_HINTS}
    others = {name: value for name, value in keywords.items() if name not in hints}
    tile_kernel, bound = kernel.chosen(arguments, others, grid, block)
    copies = _Copies(bound.values())
    targeted = tile_kernel.with_options(target=target, **hinted_options(hints))
    version, passed, values = targeted.bind(**{name: copies.of(value) for name, value in bound.items()})
    size = grid(Named(targeted.__name__, values)) if callable(grid) else grid
    version = version.for_block(block)
    return _of_kernel(version.compiled, version.converted(passed), size, block)
