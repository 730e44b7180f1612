"""`bisect`: find the first pass that changes what a kernel computes.

The kernel is evaluated before the first pass and after each pass: by the reference evaluator above vISA, and by the
interpreter at vISA. docs/reference.md explains the output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir as mlir
from msgspec import Struct, structs

from xegpu_py import reference
from xegpu_py.argument_types import checked
from xegpu_py.dialects import visa
from xegpu_py.engines.operands import Batch
from xegpu_py.ir.diagnostics import DiagnosticError, position_of
from xegpu_py.ir.module import Module, argument_names, is_program, parse, print_op
from xegpu_py.ir.passes import Listener, Runner, Step, parse_pipeline
from xegpu_py.lower_kernel import chosen_kernel, executable_of, mark_unaligned, pipelines, program_steps
from xegpu_py.numerics.differences import unlike
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.device_memory import BASE
from xegpu_py.runtime.host_arrays import copy_of
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.options import Options
from xegpu_py.runtime.parameters import beyond, parameters_of
from xegpu_py.target import target as target_of
from xegpu_py.visa.assembly import write_statement

_OPTIONS = ("target", "model", "registers", "optimize", "prefetch", "load_ahead")

_MARK = "bisect.mark"

_MARKED = re.compile(rf"(, )?{_MARK} = \d+ : i64(, )?")

_MOST_OPS = 24

_COLUMNS = 160

_AROUND = 8


@dataclass(frozen=True)
class Written:
    """The last write of an element.

    Attributes:
        where: the op or instruction, its source position, workgroup and subgroup; empty if nothing wrote the element.
        text: the lines of the IR that computes the written value; the line of the op itself begins with `>`.
    """

    where: str
    text: str


@dataclass(frozen=True)
class Bisection:
    """The result of `bisect`.

    Attributes:
        steps: the passes that changed the kernel but not its results, in order.
        skipped: the passes after which the kernel could not be evaluated, and why.
        step: the first pass after which a byte differs; None if no byte differs.
        message: the difference, or the error of the kernel after the pass.
        argument: the number of the argument that differs; None if nothing differs, or after an error.
        index: the first element that differs.
        before, after: the last write of that element before the pass, and after it.
    """

    steps: tuple[str, ...]
    skipped: tuple[str, ...]
    step: str | None = None
    message: str = ""
    argument: int | None = None
    index: tuple[int, ...] = ()
    before: Written | None = None
    after: Written | None = None

    def report(self) -> str:
        """The text that `xegpu-bisect` prints."""
        lines = [f"not evaluated after {s}" for s in self.skipped]
        if self.step is None:
            return "\n".join([*lines, f"no difference: {len(self.steps)} passes that changed the kernel"])
        follows = f", which follows '{self.steps[-1]}'," if self.steps else ""
        lines.append(f"after '{self.step}'{follows} {self.message}")
        for name, side in (("before", self.before), ("after", self.after)):
            if side is not None:
                lines += ["", f"{name} it: {side.where}", *([side.text] if side.text else [])]
        return "\n".join(lines)


@checked
def bisect(
    module: Module | str | Path,
    kernel: str | None = None,
    arguments: Sequence[Any] = (),
    *,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] = 1,
    pipeline: str | None = None,
    ulps: int = 0,
    **options: Any,
) -> Bisection:
    """Find the first pass after which a kernel writes other bytes to its arrays.

    Args:
        module, kernel: see `compile`.
        arguments: the kernel's arguments, which are not changed.
        grid, block: see `Kernel`.
        pipeline: the passes; by default those that `compile` runs for these arguments.
        ulps: the allowed difference of floats in units in the last place, because passes may reorder sums.
        options: target, model, registers, optimize, prefetch, load_ahead: see `compile`.

    Raises:
        TypeError, ValueError: if an argument or an option does not fit.
        DiagnosticError: if the module cannot be parsed or evaluated before the first pass, or a pass fails.
    """
    for option in options:
        if option not in _OPTIONS:
            raise TypeError(f"bisect() got an unexpected keyword argument '{option}'")
    engine_options = Options(**options)
    parsed = parse(module) if isinstance(module, (str, Path)) else module
    name = chosen_kernel(parsed, kernel)
    launch = _Launch(name, arguments, grid, block, engine_options)
    lowered = parsed.copy()
    is_triton = is_program(launch.func(lowered)) and pipeline is None
    texts = (pipeline,) if pipeline else () if is_triton else _pipelines(lowered, launch)
    watcher = _Watcher(launch, lowered, ulps)
    try:
        if is_triton:
            Runner(listeners=[watcher]).run(parse_pipeline(program_steps(engine_options.target)), lowered)
            texts = _pipelines(lowered, launch)
        for text in texts:
            Runner(listeners=[watcher]).run(parse_pipeline(text), lowered)
    except _Found as found:
        return Bisection(tuple(watcher.steps), tuple(watcher.skipped), **found.facts)
    return Bisection(tuple(watcher.steps), tuple(watcher.skipped))


def _pipelines(module: Module, launch: _Launch) -> tuple[str, ...]:
    """The pipelines that `compile` runs for the arguments of a launch, on a module that is marked for them."""
    parameters = parameters_of(reference.types_of(reference.kernel_of(module, launch.name)))
    limits = target_of(launch.options.target).block2d
    unaligned = tuple(i for i, (p, a) in enumerate(zip(parameters, launch.arguments)) if p.misfits(a, limits))
    large = beyond(parameters, launch.arguments, launch.grid) is not None
    texts = pipelines(module, launch.name, structs.replace(launch.options, unaligned=unaligned, large=large))
    if unaligned:
        mark_unaligned(module, launch.name, unaligned)
    return texts


class _Found(Exception):
    """Raised when the pass is found; `facts` are attributes of `Bisection`."""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        super().__init__()


@dataclass
class _Launch:
    """A launch that can be repeated on the module at any level."""

    name: str
    arguments: Sequence[Any]
    grid: int | Sequence[int]
    block: int | Sequence[int]
    options: Options

    @property
    def _launched(self) -> dict[str, Any]:
        return {"grid": self.grid, "block": self.block, "model": self.options.model}

    def func(self, module: Module) -> mlir.Operation:
        """The kernel."""
        return visa.kernel_named(module.operation, self.name)

    def _copies(self) -> list[Any]:
        return [copy_of(a) if isinstance(a, np.ndarray) else a for a in self.arguments]

    def run(self, module: Module) -> list[Any]:
        """The arguments after the kernel has run."""
        arguments = self._copies()
        if visa.is_lowered(self.func(module)):
            self._lowered(module)(*arguments, grid=self.grid, block=self.block)
        else:
            reference.run(module, self.name, arguments, **self._launched)
        return arguments

    def _lowered(self, module: Module) -> Kernel:
        options = structs.replace(self.options, engine="interpreter", progress=False)
        return Kernel(executable_of(module, self.func(module)), options)

    def written(self, module: Module, argument: int, byte_range: range) -> Written:
        """The last write of bytes of an argument."""
        arguments = self._copies()
        if not visa.is_lowered(self.func(module)):
            writes = reference.run(module, self.name, arguments, **self._launched, watch=(argument, byte_range))
            if not writes:
                return Written("nothing writes the element", "")
            op, position = writes[-1]
            return Written(f"written by '{op.name}' at {position_of(op.location)} ({position})", _slice_of(module, op))
        kernel = self._lowered(module)
        observer = _Observer(kernel.memory_name(argument), byte_range)
        kernel.executor.observer = observer
        kernel(*arguments, grid=self.grid, block=self.block)
        if observer.last is None:
            return Written("no instruction changes the element", "")
        instructions = kernel.program.instructions
        at = observer.last
        lines = [
            f"{'>' if i == at else ' '} {write_statement(instructions[i])}" for i in range(max(at - _AROUND, 0), at + 1)
        ]
        where = f"written by '{instructions[at].name}', of {instructions[at].where}"
        return Written(where, "\n".join(line[:_COLUMNS] for line in lines))


@dataclass
class _Observer:
    """Notes the last instruction that changed bytes of an array."""

    name: str
    byte_range: range
    last: int | None = None
    _held: bytes | None = None

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        """See `engines.interpreter.Observer`."""
        memory: Any = batch.memory
        buffer = next(b for b in memory.buffers if self.name in b.name.split(", "))
        start = buffer.address - BASE + self.byte_range.start
        now = memory.data[start : start + len(self.byte_range)].tobytes()
        if self._held is not None and now != self._held:
            self.last = index
        self._held = now


@dataclass
class _Watcher(Listener):
    """Evaluates the module after each pass, and stops at the first difference."""

    launch: _Launch
    module: Module
    ulps: int
    steps: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names = argument_names(self.launch.func(self.module), self.module.sources)
        self._expected = self.launch.run(self.module)
        self._previous = self.module.copy()
        self._text = str(self.module)

    def after(self, step: Step, op: mlir.Operation, seconds: float) -> None:
        """See `Listener`."""
        text = str(self.module)
        if text == self._text:
            return
        self._text = text
        try:
            results = self.launch.run(self.module)
        except reference.NotEvaluated as e:
            self.skipped.append(f"'{step}': {e.diagnostics[0].message}")
            return
        except DiagnosticError as e:
            raise _Found(step=str(step), message=f"the kernel fails: {e.diagnostics[0].message}") from None
        self._compare(step, results)
        self.steps.append(str(step))
        self._previous = self.module.copy()

    def _compare(self, step: Step, results: Sequence[Any]) -> None:
        unlike = difference(self._expected, results, self._names, self.ulps)
        if unlike is None:
            return
        before, after = (
            self.launch.written(m, unlike.argument, unlike.byte_range) for m in (self._previous, self.module)
        )
        raise _Found(
            step=str(step),
            message=unlike.message,
            argument=unlike.argument,
            index=unlike.index,
            before=before,
            after=after,
        )


class Difference(Struct, frozen=True):
    """The first element in which arguments after two runs differ.

    Attributes:
        argument: the number of the argument.
        index: the element.
        byte_range: its bytes, relative to the first element.
        message: both values, and how many elements differ.
    """

    argument: int
    index: tuple[int, ...]
    byte_range: range
    message: str


def difference(
    expected: Sequence[Any], actual: Sequence[Any], names: Sequence[str], ulps: int = 0
) -> Difference | None:
    """The first difference of two runs' arguments; None if there is none.

    Args:
        names: those of the arguments in the kernel's text, or "".
        ulps: the allowed difference of floats in units in the last place.
    """
    for number, (a, b) in enumerate(zip(expected, actual)):
        if not isinstance(a, np.ndarray):
            continue
        apart = unlike(a, b, ulps)
        if not apart:
            continue
        index = apart.index
        start = sum(i * s for i, s in zip(index, a.strides))
        name = names[number] or f"argument {number}"
        message = f"{name} differs first at {list(index)}: {apart.before} before, {apart.after} after ({apart.extent})"
        return Difference(number, index, range(start, start + a.itemsize), message)
    return None


def _slice_of(module: Module, op: mlir.Operation) -> str:
    """The lines of a module with an op and the nearest of the ops that its operands are computed from."""
    slice_ops, pending = [op], list(op.operands)
    while pending and len(slice_ops) < _MOST_OPS:
        owner = pending.pop(0).owner
        if isinstance(owner, mlir.Block):
            owner = owner.owner
        inner = owner.operation
        if inner in slice_ops or inner.name in ("gpu.func", "func.func"):
            continue
        if not len(inner.regions):
            slice_ops.append(inner)
        pending += list(inner.operands)
    i64 = mlir.IntegerType.get_signless(64, module.context)
    for i, one in enumerate(slice_ops):
        one.attributes[_MARK] = mlir.IntegerAttr.get(i64, i)
    try:
        lines = print_op(module.operation, verified=True).splitlines()
    finally:
        for one in slice_ops:
            del one.attributes[_MARK]
    shown_lines, last = [], None
    for number, line in enumerate(lines):
        if _MARK not in line:
            continue
        if last is not None and number > last + 1:
            shown_lines.append("    ...")
        is_own = f"{_MARK} = 0 : i64" in line
        clean = _MARKED.sub(lambda m: ", " if m[1] and m[2] else "", line).replace(" {}", "").strip()
        shown_lines.append(f"{'>' if is_own else ' '}   {clean}"[:_COLUMNS])
        last = number
    return "\n".join(shown_lines)
