"""The work of a search's worker: launch a configuration, compare its results, and judge it by the objectives."""

from __future__ import annotations

import functools
import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
from msgspec import Struct

from xegpu_py.extensions.profile.time_model import predict
from xegpu_py.extensions.tuning.space import Configuration
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import Module
from xegpu_py.lower_kernel import compile
from xegpu_py.runtime.host_arrays import PointerTable, copy_of
from xegpu_py.runtime.kernel import CompiledKernel
from xegpu_py.runtime.launch import Statistics
from xegpu_py.runtime.options import OPTIONS
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program

RUNS = 3
"""The number of timed runs of the objective "jit"; the best time counts."""

LINE = 64
"""The bytes of a cache line."""

# A kernel with its launch.


class Bound(Struct, frozen=True):
    """A call of a compiled kernel.

    Attributes:
        kernel: the kernel.
        passed: its arguments.
        grid: its workgroups.
        given: the user's arrays among the arguments, which the kernel may get as another type.
    """

    kernel: CompiledKernel
    passed: Sequence[Any]
    grid: Any
    given: Sequence[Any]


def bound(kernel: Any, leading: Sequence[Any], named: Mapping[str, Any], grid: Any, block: Any = None) -> Bound:
    """A call of a kernel of the tile language, with its version for these arguments, or of a compiled one.

    Args:
        leading, named: the arguments, without names and with names.
        grid, block: as in a call; None for one workgroup, and for the kernel's block.
    """
    size = 1 if grid is None else grid
    if isinstance(kernel, CompiledKernel):
        return Bound(kernel, leading, size, leading)
    own_arguments, full = kernel.chosen(leading, named, size, block)
    version, passed, values = own_arguments.bind(**full)
    version = version.for_block(block)
    return Bound(version.compiled, version.converted(passed), size(values) if callable(size) else size, passed)


class TrialLaunch(Struct):
    """A kernel of a configuration, ready to be launched.

    Attributes:
        run: launches it on arguments, whose arrays it changes.
        bound: gives the call of the compiled kernel for arguments; None if it is a function of the user's.
        configuration: what objectives see as the configuration; by default that of the search.
    """

    run: Callable[[Sequence[Any]], Any]
    bound: Callable[[Sequence[Any]], Bound] | None = None
    configuration: Any = None


def launch_of(make_kernel: Any, configuration: Mapping[str, Any], grid: Any = None) -> TrialLaunch:
    """The launch of a configuration; see `tune`.

    Raises:
        TypeError: if a parameter is neither one of the kernel nor an option, or what was made cannot be launched.
    """
    if not hasattr(make_kernel, "__kernel_function__") or not hasattr(make_kernel, "with_options"):
        return _launch_of_made(make_kernel(**configuration), grid)
    parameters = inspect.signature(make_kernel).parameters
    values = {name: value for name, value in configuration.items() if name in parameters}
    options = {name: value for name, value in configuration.items() if name not in parameters}
    for name in options:
        if name not in OPTIONS:
            raise TypeError(
                f"kernel '{make_kernel.__name__}' has no parameter '{name}', and it is no option of compile"
            )
    kernel = make_kernel.with_options(**options) if options else make_kernel
    free = [name for name in parameters if name not in values]

    def named(arguments: Sequence[Any]) -> dict[str, Any]:
        if len(arguments) > len(free):
            raise TypeError(
                f"kernel '{make_kernel.__name__}' takes {len(free)} further arguments, not {len(arguments)}"
            )
        return {**dict(zip(free, arguments)), **values}

    def run(arguments: Sequence[Any]) -> Any:
        return kernel(grid=1 if grid is None else grid, **named(arguments))

    return TrialLaunch(run, lambda arguments: bound(kernel, (), named(arguments), grid))


def _launch_of_made(made: Any, grid: Any) -> TrialLaunch:
    if isinstance(made, TrialLaunch):
        return made
    if isinstance(made, (str, Path, Module)):
        made = (made, grid)
    if isinstance(made, tuple):
        source, grid, options = made if len(made) == 3 else (*made, {})
        kernel = compile(source, **options) if isinstance(source, (str, Path, Module)) else source
        run = functools.partial(kernel, grid=1 if grid is None else grid)
        return TrialLaunch(lambda arguments: run(*arguments), lambda arguments: bound(kernel, arguments, {}, grid))
    if isinstance(made, CompiledKernel):
        return _launch_of_made((made, grid), grid)
    inner, keywords, leading = made, dict[str, Any](), list[Any]()
    while isinstance(inner, functools.partial):
        keywords, leading, inner = {**inner.keywords, **keywords}, [*inner.args, *leading], inner.func
    if not callable(made):
        raise TypeError(
            f"a kernel to tune must be a launch such as kernel[grid], a module with a grid, or callable: {made!r}"
        )
    size = keywords.pop("grid", grid)
    if not hasattr(inner, "bind"):
        return TrialLaunch(lambda arguments: made(*arguments))
    return TrialLaunch(
        lambda arguments: inner(*leading, *arguments, grid=1 if size is None else size, **keywords),
        lambda arguments: bound(inner, [*leading, *arguments], keywords, size),
    )


# Objectives.


class Run(Struct):
    """A launch that is judged: the argument of an objective.

    Attributes:
        configuration: the value of each parameter; in `autotune` the `Config`.
        bound: the call of the compiled kernel; None if the user's function hides it.
        statistics: what the launch counted; None if the user's function hides it.
        again: launches it once more, on the arrays as the last launch left them.
        arguments: the arguments, with the results.
    """

    configuration: Any
    bound: Bound | None
    statistics: Statistics | None
    again: Callable[[], Any]
    arguments: Sequence[Any]

    @property
    def kernel(self) -> CompiledKernel | None:
        """The compiled kernel; None if the user's function hides it."""
        return self.bound.kernel if self.bound else None

    def counts(self) -> dict[str, float]:
        """The exact counts of the launch: `instructions`, `messages`, `lines` and `dpas`; see `counts_of`.

        Raises:
            TypeError: if the launch counted nothing.
        """
        if self.bound is None or not isinstance(self.statistics, Statistics):
            raise TypeError(
                "only launches of kernels are counted, and not those of Python or of the reference evaluator"
            )
        # The call may have chosen another version.
        kernel = self.bound.kernel
        last = kernel.version_for(self.bound.passed)
        fits = len(last.program.instructions) == len(self.statistics.executed)
        return counts_of(last.program if fits else kernel.program, self.statistics)


def counts_of(program: Program, statistics: Statistics) -> dict[str, float]:
    """The exact counts of a launch.

    `instructions` are those that hardware threads executed, `messages` those of them to memory, `lines` the bytes that
    messages to global memory moved in lines of 64, and `dpas` the share of dpas among the instructions.
    """
    instructions = messages = multiplied = 0
    for inst, times in zip(program.instructions, statistics.executed):
        spec = INSTRUCTIONS[inst.name]
        instructions += 0 if spec.is_label else int(times)
        messages += int(times) if spec.category in ("load", "store", "atomic") else 0
        multiplied += int(times) if "SD" in inst.values else 0
    bytes_moved = sum(n for (memory, _), n in statistics.traffic.items() if memory == "ugm")
    return {
        "instructions": float(instructions),
        "messages": float(messages),
        "lines": float(-(-bytes_moved // LINE)),
        "dpas": multiplied / max(instructions, 1),
    }


def _seconds(run: Run) -> float:
    """The seconds of a launch on the engine, the best of `RUNS`; a launch before has compiled optimized code."""
    if run.kernel:
        run.kernel.executor.optimize()
        run.again()
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        run.again()
        times.append(time.perf_counter() - begun)
    return min(times)


def _model(run: Run) -> float:
    """The seconds that the launch takes on the target's usual GPU by the model of time (`profile.time_model`)."""
    if run.bound is None:
        raise TypeError("the model predicts launches of kernels, and not those of a function of the user's")
    return predict(run.bound.kernel, run.bound.passed, run.bound.grid).seconds


Objective = Callable[[Run], float]

OBJECTIVES: dict[str, Objective] = {
    "model": _model,
    "jit": _seconds,
    **{
        name: functools.partial(lambda run, name: run.counts()[name], name=name)
        for name in ("instructions", "messages", "lines")
    },
    "dpas": lambda run: -run.counts()["dpas"],
}
"""Objectives by name, all to be minimized; `tune` says what they are."""

UNITS = {
    "model": "us", "jit": "us", "instructions": "instructions", "messages": "messages", "lines": "lines of 64 bytes",
    "dpas": "x -1 dpas an instruction", "size": "instructions", "milliseconds": "ms",
}  # fmt: skip
"""The units in which values of objectives are shown. Times are seconds, and shown in microseconds."""


def with_unit(objective: str, value: float, width: int = 0) -> str:
    """The value of an objective, for people; without a unit if the objective is a function of the user's."""
    unit = UNITS.get(objective, "")
    return f"{value * 1e6 if unit == 'us' else value:>{width}.6g} {unit}".rstrip()


ObjectiveName = Literal["model", "jit", "instructions", "messages", "lines", "dpas"]


def named_objectives(objectives: Any) -> dict[str, Objective]:
    """The objectives by their names.

    Raises:
        ValueError: if there is none of a name.
    """
    by_name: dict[str, Objective] = {}
    for one in objectives if isinstance(objectives, (list, tuple)) else [objectives]:
        if isinstance(one, str) and one not in OBJECTIVES:
            raise ValueError(f"'objective' must be one of {', '.join(OBJECTIVES)}, or a function, but got {one!r}")
        by_name[one if isinstance(one, str) else getattr(one, "__name__", "objective")] = (
            OBJECTIVES[one] if isinstance(one, str) else one
        )
    if not by_name:
        raise ValueError("a search needs an objective")
    return by_name


# The work of a worker.


class TrialOutcome(Struct):
    """The results of a worker for a configuration.

    Attributes:
        state: "done"; "refused" by the compiler; "failed" as it ran; "wrong" if its result differs from the first's.
        values: the value of each objective.
        counts: the exact counts, if there are any.
        message: why it was refused, failed, or is wrong.
        outputs: the arrays after the launch, if they were wanted.
    """

    state: str
    values: tuple[float, ...] = ()
    counts: dict[str, float] = {}
    message: str = ""
    outputs: list[np.ndarray[Any, Any]] | None = None


ERRORS = (DiagnosticError, ValueError, TypeError, OverflowError)
"""Errors that make a configuration refused or failed; other errors are ours."""


class PreparedTrial(Struct):
    """A configuration with its launch, the call of its kernel, None if it is hidden, and copies of the arguments."""

    configuration: Configuration
    launch: TrialLaunch
    bound: Bound | None
    arguments: tuple[Any, ...]


class Trials(Struct):
    """The problem that workers of a search solve: judge a configuration. See `tune` for what it consists of."""

    make_kernel: Any
    arguments: tuple[Any, ...]
    grid: Any
    objectives: dict[str, Objective]
    reference: list[np.ndarray[Any, Any]] | None = None
    tolerance: float | None = None
    fits: bool = False

    def run(self, argument: tuple[Configuration, bool]) -> TrialOutcome:
        """Judge a configuration; the second element is whether the outputs are wanted."""
        configuration, wanted = argument
        try:
            ready = self.prepared(configuration)
        except ERRORS as e:
            return TrialOutcome("refused", message=str(e))
        try:
            return self.judged(ready, wanted)
        except ERRORS as e:
            return TrialOutcome("failed", message=str(e))

    def prepared(self, configuration: Configuration) -> PreparedTrial:
        """Compile a configuration for copies of the arguments.

        Raises:
            DiagnosticError, ValueError, TypeError, OverflowError: if it cannot be compiled, or does not fit.
        """
        launch = launch_of(self.make_kernel, configuration, self.grid)
        copies = copied(self.arguments, {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bound = launch.bound(copies) if launch.bound else None
        if self.fits and bound is not None and bound.kernel.executor.allocation.beyond:
            raise ValueError(f"it does not fit: {bound.kernel.executor.allocation.report()}")
        return PreparedTrial(configuration, launch, bound, copies)

    def judged(self, ready: PreparedTrial, wanted: bool = False) -> TrialOutcome:
        """Launch a configuration, compare its results, and judge it by the objectives.

        Raises:
            DiagnosticError, ValueError, TypeError, OverflowError: if the launch or an objective fails.
        """
        launch, copies = ready.launch, ready.arguments
        statistics = launch.run(copies)
        outputs = [np.array(a) for a in arrays_of(copies)] if wanted or self.reference else None
        wrong = self.reference and outputs and difference(outputs, self.reference, self.tolerance)
        if wrong:
            return TrialOutcome("wrong", message=wrong)
        configuration = launch.configuration or ready.configuration
        run = Run(configuration, ready.bound, statistics, lambda: launch.run(copies), copies)
        counted = run.counts() if ready.bound is not None and isinstance(statistics, Statistics) else {}
        try:
            values = tuple(float(objective(run)) for objective in self.objectives.values())
        except (DiagnosticError, ValueError, TypeError) as e:
            raise ValueError(f"the objective failed: {e}") from e
        if not all(map(math.isfinite, values)):
            raise ValueError(f"the objective is not finite: {values}")
        return TrialOutcome("done", values, counted, outputs=outputs if wanted else None)


def copied(value: Any, copies: dict[int, Any]) -> Any:
    """A copy of arguments, in which arrays in tuples and tables are copies too, and one that is passed twice is one.

    Args:
        copies: the copies by the identity of their arrays.
    """
    if isinstance(value, tuple):
        return tuple(copied(one, copies) for one in value)
    if isinstance(value, PointerTable) and value.arrays:
        return copies.setdefault(id(value), PointerTable(copied(value.arrays, copies)))
    if not isinstance(value, np.ndarray):
        return value
    return copies.setdefault(id(value), copy_of(value))


def arrays_of(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays among arguments, also those in tuples and tables of pointers."""
    if isinstance(value, PointerTable) and value.arrays:
        yield from value.arrays
    elif isinstance(value, tuple):
        for one in value:
            yield from arrays_of(one)
    elif isinstance(value, np.ndarray):
        yield value


def difference(
    outputs: Sequence[Any], reference: Sequence[Any], tolerance: float | None, title: str = "the first trial"
) -> str | None:
    """How results differ from those of another run, whose title is given, as a sentence; None if they do not.

    Integers must be equal. Floats may differ by `tolerance` times the greatest absolute value of the array, by default
    twice the format's epsilon times 64, since tiles of another size sum in another order.
    """
    for i, (output, first) in enumerate(zip(outputs, reference)):
        if output.tobytes() == first.tobytes():
            continue
        try:
            epsilon = float(_finfo(output.dtype).eps)
        except (ValueError, TypeError):
            epsilon = 0.0
        allowed = 128 * epsilon if tolerance is None else tolerance
        if not allowed or not epsilon:
            at = int(
                np.flatnonzero(output.ravel().view(f"V{output.itemsize}") != first.ravel().view(f"V{output.itemsize}"))[
                    0
                ]
            )
        else:
            a, b = output.astype(np.float64).ravel(), first.astype(np.float64).ravel()
            scale = float(np.nanmax(np.where(np.isfinite(b), np.abs(b), 0), initial=0.0))
            with np.errstate(invalid="ignore"):
                bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed * scale))
            if not bad.any():
                continue
            at = int(np.argmax(bad))
        index = tuple(int(n) for n in np.unravel_index(at, output.shape))
        return f"array {i} differs from that of {title} at {index}: {output[index]} instead of {first[index]}"
    return None


def _finfo(dtype: np.dtype[Any]) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
