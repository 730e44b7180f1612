"""Verification: whether the engines agree on all configurations of a space, on one machine or a Dask cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from xegpu_py.cache import digest
from xegpu_py.extensions.tuning.cluster import LIMIT, Cluster, TrialLimits
from xegpu_py.extensions.tuning.evaluation import ERRORS, TrialLaunch, arrays_of, copied, difference, launch_of
from xegpu_py.extensions.tuning.kernel_space import Subject, write_launch
from xegpu_py.extensions.tuning.space import Configuration, Space
from xegpu_py.runtime.options import REFERENCE

if TYPE_CHECKING:
    from distributed import Client

ENGINES = ("interpreter", "jit")
"""The engines that are compared with the reference evaluator, which knows nothing of the lowering."""


class VerificationResult(Struct):
    """The result of verifying a configuration.

    Attributes:
        configuration: the value of each parameter.
        state: "done" if all results have the same bytes; "refused" by the compiler; "failed" if all launches failed;
            "wrong" if results differ, or only some launches failed; "ended" by a limit or a crash.
        message: why it is not done.
        smallest: the configuration of the first values of parameters that is wrong too.
    """

    configuration: Configuration
    state: str
    message: str = ""
    smallest: Configuration = {}


class Verification(Struct):
    """The problem that workers solve: compare the results of the engines."""

    subject: Subject
    space: Space

    def run(self, configuration: Configuration) -> VerificationResult:
        """The verdict on a configuration; one that is wrong is made smaller."""
        state, message = self._judged(configuration)
        verdict, smaller = VerificationResult(configuration, state, message, configuration), state == "wrong"
        while smaller:
            smaller = False
            for candidate in self._smaller(verdict.smallest):
                state, message = self._judged(candidate)
                if state == "wrong":
                    verdict.smallest, verdict.message, smaller = candidate, message, True
                    break
        return verdict

    def _smaller(self, configuration: Configuration) -> Iterator[Configuration]:
        """The configurations in which one parameter has an earlier value."""
        for parameter in self.space.parameters:
            own = configuration[parameter.name]
            for value in parameter.choices[: parameter.choices.index(own) if own in parameter.choices else 0]:
                candidate = {**configuration, parameter.name: value}
                if self.space.refusal(candidate) is None:
                    yield candidate

    def launch(self, configuration: Configuration, engine: str) -> tuple[TrialLaunch, tuple[Any, ...]]:
        """The launch of a configuration by an engine, and its arguments.

        Raises:
            DiagnosticError, ValueError, TypeError, OverflowError: if there is none.
        """
        options = self.subject.own
        arguments = {name: value for name, value in configuration.items() if name not in options}
        launch = launch_of(self.subject.make_kernel, {**arguments, "engine": engine}, self.subject.grid)
        return launch, copied(self.subject.arguments_of(configuration), {})

    def _judged(self, configuration: Configuration) -> tuple[str, str]:
        """The state of a configuration, and why it is not done."""
        engines = [configuration["engine"]] if "engine" in configuration else ENGINES
        try:
            for engine in engines:
                launch, arguments = self.launch(configuration, engine)
                if launch.bound:
                    launch.bound(arguments)
        except ERRORS as e:
            return "refused", str(e)
        results: dict[str, list[np.ndarray[Any, Any]]] = {}
        failures: dict[str, str] = {}
        for engine in (REFERENCE, *engines):
            try:
                launch, arguments = self.launch(configuration, engine)
                launch.run(arguments)
                results[engine] = list(arrays_of(arguments))
            except ERRORS as e:
                failures[engine] = str(e)
        if failures:
            return "wrong" if results else "failed", "; ".join(f"by {name}: {why}" for name, why in failures.items())
        for engine in engines:
            wrong = difference(results[engine], results[REFERENCE], 0.0, f"the {REFERENCE}")
            if wrong:
                return "wrong", f"by {engine}: {wrong}"
        return "done", ""


def verify(
    subject: Subject,
    space: Space,
    budget: int | None = None,
    scheduler: Client | str | None = None,
    *,
    seed: int = 0,
    workers: int | None = None,
    limit: float = LIMIT,
    memory: int | None = None,
) -> Iterator[VerificationResult]:
    """Compare the results of the engines, byte for byte, on the configurations of a space, as they become known.

    Args:
        subject: the kernel with its arguments.
        space: the configurations.
        budget: how many configurations are drawn; None for all, in order.
        scheduler, workers, limit, memory: see `tune`.
        seed: of the draw.

    Raises:
        ValueError: if no configuration fulfils the constraints.
        MissingExtra: if the extra `tune` is not installed.
    """
    configurations = list(space)
    if not configurations:
        raise ValueError("no configuration of the space fulfils the constraints")
    if budget is not None and budget < len(configurations):
        configurations = random.Random(seed).sample(configurations, budget)
    with Cluster(scheduler, workers) as cluster:
        for number, report in cluster.map(Verification(subject, space), configurations, TrialLimits(limit, memory)):
            configuration = configurations[number]
            yield (
                report.result
                if report.state == "done"
                else VerificationResult(configuration, report.state, str(report.result), configuration)
            )


def write_failure(folder: Path, verification: Verification, verdict: VerificationResult) -> Path:
    """Write the smallest configuration of a failure as a module beside its arrays; its first line runs it.

    Raises:
        DiagnosticError, ValueError, TypeError: if the kernel cannot be compiled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{verdict.state}-{digest(repr(verdict.smallest))[:8]}.mlir"
    launch, arguments = verification.launch(verdict.smallest, "jit")
    head = [f"{name} = {value!r}" for name, value in verdict.smallest.items()]
    write_launch(path, launch, arguments, [*verdict.message.splitlines(), *head])
    return path
