"""The fidelity report of a launch: it is repeated with each alternative of the chosen rules that it exercised."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from mlir import ir
from msgspec import Struct, structs, to_builtins

from xegpu_py.argument_types import checked
from xegpu_py.extensions.fidelity.traces import SumTrace
from xegpu_py.ir.bindings import is_kernel
from xegpu_py.ir.diagnostics import DiagnosticError, Position, position_of
from xegpu_py.ir.module import walk
from xegpu_py.numerics.choices import CHOICES, Choice
from xegpu_py.numerics.differences import APART, unlike
from xegpu_py.numerics.formats import Array
from xegpu_py.numerics.systolic import VARIANTS
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.executor import Executor
from xegpu_py.runtime.host_arrays import PackedArrays, PointerTable
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Prepared, Statistics
from xegpu_py.runtime.options import Options
from xegpu_py.visa.choices import governed
from xegpu_py.visa.dataflow import polls
from xegpu_py.visa.instructions import INSTRUCTIONS

NOT_MODELLED = "no alternative modelled"

_CHUNKS = 256
"""The number of parts of a grid that run one after the other, the last one first."""


class Line(Struct, frozen=True):
    """A line of the source, or of assembly, with instructions that a choice governs.

    Attributes:
        file, line: the line; 0 if it is not known.
        instructions: the names of its instructions.
        executions: how many hardware threads executed them, in all; 0 for ops, whose executions are not counted.
    """

    file: str
    line: int
    instructions: tuple[str, ...]
    executions: int


class Effect(Struct, frozen=True):
    """How an output differs.

    Attributes:
        output: the user's name of the argument.
        count, size: the number of elements that differ, and of all.
        ulps: the largest distance of floats in units in the last place; None for elements that are no floats, and
            where only bits of NaNs differ.
        number_or_nan: whether an element is a NaN in one of the runs only.
    """

    output: str
    count: int
    size: int
    ulps: int | None
    number_or_nan: bool

    def __str__(self) -> str:
        most = "NaN bits" if self.ulps is None else f"{self.ulps} ulp"
        most = "a number or NaN" if self.number_or_nan else most
        return f"{self.output}: {self.count} of {self.size}, {most}"


class Tried(Struct, frozen=True):
    """A run with an alternative, compared with the run by the default rules.

    Attributes:
        alternative: its name.
        meaning: the rule.
        outputs: the outputs that differ.
        addresses, branches, barriers: where a message accesses other addresses or lanes, a jump goes elsewhere, or a
            barrier is another one: values that depend on the choice reach them.
        failure: the error with which the run failed; empty if it did not.
        is_lowered_again: whether the alternative has a program of its own, so that addresses, branches and barriers are
            not compared.
    """

    alternative: str
    meaning: str
    outputs: tuple[Effect, ...] = ()
    addresses: tuple[Line, ...] = ()
    branches: tuple[Line, ...] = ()
    barriers: tuple[Line, ...] = ()
    failure: str = ""
    is_lowered_again: bool = False

    @property
    def depends(self) -> bool:
        """Whether the run depends on the choice."""
        return bool(self.outputs or self.addresses or self.branches or self.barriers or self.failure)

    @property
    def reaches(self) -> str:
        """The addresses, branches and barriers that values depending on the choice reach, in words."""
        parts = (("address", self.addresses), ("branch", self.branches), ("barrier", self.barriers))
        parts_text = [f"{name} ({'; '.join(_places(lines))})" for name, lines in parts if lines]
        parts_text += [f"fails: {self.failure}"] * bool(self.failure) + ["not compared"] * self.is_lowered_again
        return "; ".join(parts_text) or "-"


class Rule(Struct, frozen=True):
    """A chosen rule that a run exercised.

    Attributes:
        choice: its name.
        followed: the name of the rule that the run followed, and what it says.
        lines: where.
        tried: the alternatives, of which each is a run.
        is_modelled: whether there are alternatives, although a caller may not want them, or a kernel may wait for other
            workgroups.
    """

    choice: str
    followed: str
    rule: str
    lines: tuple[Line, ...]
    tried: tuple[Tried, ...]
    is_modelled: bool

    @property
    def depends(self) -> bool:
        """Whether the run depends on it; False also if no alternative is modelled."""
        return any(t.depends for t in self.tried)


class Fidelity(Struct, frozen=True, eq=False):
    """The chosen rules that a run exercised, and whether it depends on them.

    Attributes:
        kernel, target: the kernel, and the GPU for which it is lowered.
        runs: how often it ran.
        rules: the rules that it exercised.
        not_visible: the names of other chosen rules, which no instruction shows.
        stats: statistics of the run by the kernel's own rules.
    """

    kernel: str
    target: str
    runs: int
    rules: tuple[Rule, ...]
    not_visible: tuple[str, ...]
    stats: Statistics

    def json(self) -> str:
        """The report as one line of JSON, without the statistics."""
        return json.dumps({f: to_builtins(getattr(self, f)) for f in self.__struct_fields__ if f != "stats"})

    def __str__(self) -> str:
        depends = [rule.choice for rule in self.rules if rule.depends]
        head = (
            f"fidelity of kernel '{self.kernel}' for {self.target}: {len(self.rules)} chosen rules exercised, "
            f"{self.runs} runs; depends on {', '.join(depends) or 'none of the alternatives'}"
        )
        rows = [("choice", "followed", "alternative", "instructions", "outputs that differ", "reaches")]
        for rule in self.rules:
            choice_key = rule.choice, rule.followed
            where = "; ".join(_places(rule.lines))
            if not rule.tried:
                rows.append((*choice_key, "not run" if rule.is_modelled else NOT_MODELLED, where, "", ""))
            for tried in rule.tried:
                outputs = "; ".join(map(str, tried.outputs)) or "none"
                rows.append((*choice_key, tried.alternative, where, outputs, tried.reaches))
                choice_key, where = ("", ""), ""
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
        text = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths)), row[-1]]).rstrip() for row in rows]
        return "\n".join([head, *text])


def _places(lines: Sequence[Line]) -> Iterator[str]:
    """Lines with the same instructions in one text, such as `exp, inv at 3-5, 9`."""
    by_names: dict[tuple[str, ...], list[int]] = {}
    for line in lines:
        by_names.setdefault(line.instructions, []).append(line.line)
    for names, numbers in by_names.items():
        yield f"{', '.join(names)} at {_ranges(numbers)}" if any(numbers) else ", ".join(names)


def _ranges(numbers: Iterable[int]) -> str:
    """Line numbers in words: `3-5, 9`."""
    spans: list[list[int]] = []
    for number in sorted({*numbers}):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in spans)


@checked
def fidelity(
    kernel: Kernel,
    *arguments: Any,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
    only: Sequence[str] = (),
) -> Fidelity:
    """Run a kernel, and again with each alternative of the chosen rules that it exercised.

    Args:
        kernel: the kernel.
        arguments: its arguments. The run by the kernel's own rules changes arrays as a call does, the others do not.
        grid, block: as in a call of the kernel.
        only: the names of the choices of which the alternatives run; all by default.

    Raises:
        TypeError, ValueError, DiagnosticError: as a call of the kernel.
    """
    packed = PackedArrays()
    version, prepared = kernel.prepared(arguments, grid, block, packed)
    types = array_types({version.memory_name(number): argument for number, argument in enumerate(arguments)})
    for number, parameter in enumerate(version.executable.parameters):
        if parameter.is_packed:
            types[version.memory_name(number)] = np.dtype(np.uint8)
    try:
        report = measured(version, prepared, types, lambda own: own.executor.run(prepared), only)
    finally:
        packed.write_back()
    return report


def array_types(arguments: Mapping[str, Any]) -> dict[str, np.dtype[Any]]:
    """The types of the elements of arrays by their names; those of pointer tables have an index."""
    types: dict[str, np.dtype[Any]] = {}
    for name, argument in arguments.items():
        if isinstance(argument, PointerTable):
            types |= {f"{name}[{i}]": array.dtype for i, array in enumerate(argument.arrays)}
        elif isinstance(argument, np.ndarray) and argument.ndim:
            types[name] = argument.dtype
    return types


class _Runs(Struct):
    """Runs of a launch, which begin with the same memory.

    Attributes:
        version: the version of the kernel.
        prepared: its arguments.
        initial: the memory before the first run.
        count: how many runs there were.
    """

    version: Kernel
    prepared: Prepared
    initial: DeviceMemory
    count: int = 0

    def traced(self, run: Callable[[Kernel], Statistics], **options: Any) -> SumTrace:
        """Run the kernel with other options, and record where it goes."""
        self.count += 1
        traced_kernel = self.version.with_engine("jit", threads=1, **options)
        traced_kernel.executor.layout = structs.replace(traced_kernel.executor.layout, logs=True)
        trace = SumTrace(traced_kernel.executor.runnable)
        traced_kernel.executor.log = trace.log
        trace.stats = run(traced_kernel)
        return trace

    def alternative(self, choice: Choice, name: str) -> tuple[SumTrace, DeviceMemory]:
        """Run an alternative on a copy of the memory; what it prints is dropped."""
        memory = self.initial.copy()
        launch = structs.replace(self.prepared, memory=memory, staged=None)
        run: Callable[[Kernel], Statistics] = lambda own: own.executor.run(launch)  # noqa: E731
        options: dict[str, Any] = {}
        if choice.option == "model":
            options["model"] = VARIANTS.get(name) or name
        elif choice.option == "dpas_denormals":
            options["dpas_denormals"] = name
        elif choice.option == "choices":
            others = [c for c in self.version.options.choices if not c.startswith(f"{choice.name}=")]
            options["choices"] = (*others, f"{choice.name}={name}")
        else:
            run = lambda own: _last_first(own.executor, launch)  # noqa: E731
        with contextlib.redirect_stdout(io.StringIO()):
            return self.traced(run, **options), memory

    def lowered_again(self, version: Kernel) -> DeviceMemory:
        """Run a version with a program of its own on a copy of the memory; what it prints is dropped."""
        memory = self.initial.copy()
        launch = structs.replace(self.prepared, memory=memory, staged=None)
        self.count += 1
        with contextlib.redirect_stdout(io.StringIO()):
            version.with_engine("jit", threads=1).executor.run(launch)
        return memory


def _last_first(executor: Executor, launch: Prepared) -> Statistics:
    """Run the workgroups in parts, the last part first."""
    count = math.prod(launch.size.grid)
    step = -(-count // min(count, _CHUNKS))
    parts = []
    for start in range(count - 1 - (count - 1) % step, -1, -step):
        executor.groups = range(start, min(start + step, count))
        parts.append(executor.run(launch))
    return structs.replace(parts[0], executed=sum(part.executed for part in parts))


def followed(choice: Choice, options: Options) -> str:
    """The name of the rule that a kernel with these options follows; empty for a model that has none."""
    if choice.option == "model":
        names = [name for name, model in VARIANTS.items() if model == options.model]
        return str(options.model) if options.model in choice.values else "".join(names)
    if choice.option == "dpas_denormals":
        return options.dpas_denormals
    return dict(c.split("=", 1) for c in options.choices).get(choice.name, choice.default)


def measured(
    version: Kernel,
    prepared: Prepared,
    types: Mapping[str, np.dtype[Any]],
    run: Callable[[Kernel], Statistics],
    only: Sequence[str] = (),
) -> Fidelity:
    """The report of a launch that is ready to run.

    Args:
        version, prepared: see `Kernel.prepared`.
        types: the types of the elements of its arrays, by their names in memory.
        run: launches a version of the kernel on the arguments; it is called once.
        only: see `fidelity`.
    """
    unknown = [name for name in only if name not in CHOICES]
    if unknown:
        raise ValueError(f"'only' must have names of {', '.join(CHOICES)}, but got '{unknown[0]}'")
    runs = _Runs(version, prepared, prepared.memory.copy())
    usual = runs.traced(run)
    rules = []
    for name, ats in governed(version.program, version.target).items():
        executed = [at for at in ats if usual.executed[at]]
        if not executed:
            continue
        choice = CHOICES[name]
        selected = followed(choice, version.options)
        others = [value for value in choice.values if value != selected] if choice.option else []
        if (only and name not in only) or (choice.option == "order" and polls(version.program)):
            others = []
        tried = tuple(_tried(runs, usual, choice, other, types) for other in others)
        text = choice.rule if selected == choice.default else choice.alternatives.get(selected, "as measured")
        rules.append(Rule(name, selected, text, _lines(usual, executed), tried, bool(choice.option)))
    sums = _reductions(version)
    if sums:
        rules.append(_order_of_sums(runs, sums, types, not only or _REDUCTIONS in only))
    reported = {rule.choice for rule in rules}
    hidden = tuple(name for name, choice in CHOICES.items() if not choice.is_visible and name not in reported)
    return Fidelity(version.name, version.options.target, runs.count, tuple(rules), hidden, usual.stats)


def _order_of_sums(runs: _Runs, lines: tuple[Line, ...], types: Mapping[str, np.dtype[Any]], is_wanted: bool) -> Rule:
    """The order of the kernel's reductions. The kernel is lowered again with each other one."""
    version, choice = runs.version, CHOICES[_REDUCTIONS]
    selected = followed(choice, version.options)
    other_choices = [c for c in version.options.choices if not c.startswith(f"{choice.name}=")]
    tried = []
    for name in (value for value in choice.values if value != selected and is_wanted):
        meaning = choice.alternatives.get(name, choice.rule)
        try:
            other = version.with_choices([*other_choices, f"{choice.name}={name}"])
            if other is None:
                continue
            effects = tuple(_effects(runs.prepared.memory, runs.lowered_again(other), types))
            tried.append(Tried(name, meaning, effects, is_lowered_again=True))
        except DiagnosticError as error:
            tried.append(Tried(name, meaning, failure=error.diagnostics[0].message, is_lowered_again=True))
    return Rule(choice.name, selected, choice.alternatives.get(selected, choice.rule), lines, tuple(tried), True)


def _tried(runs: _Runs, usual: SumTrace, choice: Choice, name: str, types: Mapping[str, np.dtype[Any]]) -> Tried:
    meaning = choice.alternatives.get(name, choice.rule)
    try:
        trace, memory = runs.alternative(choice, name)
    except DiagnosticError as error:
        return Tried(name, meaning, failure=error.diagnostics[0].message)
    reached: dict[bool, list[int]] = {True: [], False: []}
    for at in usual.addresses(trace):
        reached[INSTRUCTIONS[usual.program.instructions[at].name].is_message].append(at)
    effects = tuple(_effects(runs.prepared.memory, memory, types))
    messages, jumps, waits = (_lines(usual, ats) for ats in (reached[True], usual.branches(trace), reached[False]))
    return Tried(name, meaning, effects, messages, jumps, waits)


def _effects(usual: DeviceMemory, other: DeviceMemory, types: Mapping[str, np.dtype[Any]]) -> Iterator[Effect]:
    for buffer in usual.buffers:
        # Arrays that overlap share a buffer, whose name has all of theirs.
        output_types = {types[name] for name in buffer.name.split(", ") if name in types}
        if not output_types:
            continue
        dtype = output_types.pop() if len(output_types) == 1 else np.dtype(np.uint8)
        dtype = np.dtype(np.uint8) if buffer.bytes % dtype.itemsize else dtype
        before, after = (np.ascontiguousarray(memory.bytes_of(buffer)).view(dtype) for memory in (usual, other))
        difference = unlike(before, after)
        if difference is None:
            continue
        both = _is_nan(before) & _is_nan(after)
        numbers = unlike(np.where(both, dtype.type(0), before), np.where(both, dtype.type(0), after))
        ulps = numbers.ulps if numbers else None
        yield Effect(buffer.name, difference.count, difference.size, None if ulps == APART else ulps, ulps == APART)


def _is_nan(values: Array) -> Array:
    try:
        return np.isnan(values)
    except TypeError:
        return np.zeros(values.shape, bool)


def _lines(trace: SumTrace, ats: Sequence[int]) -> tuple[Line, ...]:
    """The lines of instructions, in order."""
    instructions = [trace.program.instructions[at] for at in ats]
    return _by_line((inst.written.where, inst.name, int(trace.executed[at])) for at, inst in zip(ats, instructions))


def _by_line(ops: Iterable[tuple[Position, str, int]]) -> tuple[Line, ...]:
    """The lines of instructions or ops, from their places, names and executions."""
    by_place: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for where, name, executions in ops:
        by_place.setdefault((where.file, where.line), []).append((name, executions))
    return tuple(
        Line(file, line, tuple(dict.fromkeys(name for name, _ in line_ops)), sum(count for _, count in line_ops))
        for (file, line), line_ops in sorted(by_place.items())
    )


_REDUCTIONS = "reduction-order"

_REDUCING = {
    **dict.fromkeys(("xetile.reduction", "vector.reduction", "vector.multi_reduction"), "kind"),
    **dict.fromkeys(("gpu.subgroup_reduce", "gpu.all_reduce"), "op"),
}
"""The attribute that tells what a reduction combines by, by the name of the op."""


def _reductions(version: Kernel) -> tuple[Line, ...]:
    """The lines of a kernel's reductions whose order of sums or products of floats is chosen, at its highest level."""
    if not version.levels:
        return ()
    reductions = []
    for op in walk(version.module(version.levels[0]).operation):
        attribute = _REDUCING.get(op.name, "")
        if attribute in op.attributes and not _is_of_another_kernel(op, version.name):
            rounds, result_type = re.search(r"\b(add|mul)\b", str(op.attributes[attribute])), op.results[0].type
            element = ir.ShapedType(result_type).element_type if isinstance(result_type, ir.ShapedType) else result_type
            if rounds and isinstance(element, ir.FloatType):
                reductions.append((position_of(op.location), op.name, 0))
    return _by_line(reductions)


def _is_of_another_kernel(op: ir.Operation, name: str) -> bool:
    while op.name not in ("gpu.func", "func.func", "builtin.module"):
        op = op.parent.operation
    return op.name == "gpu.func" and is_kernel(op) and ir.StringAttr(op.attributes["sym_name"]).value != name
