"""The search: objectives, trials and their journal, and the table, pictures and file that come out of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from msgspec import Struct, field, structs

from xegpu_py.argument_types import Range, checked
from xegpu_py.cache import digest
from xegpu_py.extensions.tuning.cluster import LIMIT, Cluster, TrialLimits, TrialReport, needing, packed
from xegpu_py.extensions.tuning.evaluation import (
    Objective,
    ObjectiveName,
    TrialOutcome,
    Trials,
    copied,
    launch_of,
    named_objectives,
)
from xegpu_py.extensions.tuning.kernel_space import module_text
from xegpu_py.extensions.tuning.space import Configuration, Space
from xegpu_py.runtime.kernel import CompiledKernel

if TYPE_CHECKING:
    import pandas
    from distributed import Client
    from optuna.trial import Trial as OptunaTrial

# The journal.


class Trial(Struct):
    """A trial of a search.

    Attributes:
        number: its number in the journal.
        configuration: the value of each parameter.
        state: that of `TrialOutcome`; "excluded" by a constraint; "ended" by a limit or with its process;
            "interrupted".
        values: the value of each objective.
        counts: the exact counts, if there are any.
        message: why there is no value.
        seconds: the time that the trial took.
        host, cpu: the machine, and its processor.
    """

    number: int
    configuration: Configuration
    state: str
    values: tuple[float, ...] = ()
    counts: dict[str, float] = {}
    message: str = ""
    seconds: float = 0.0
    host: str = ""
    cpu: str = ""


REPEATED = "repeated"
"""The state of a trial of which the journal has the result already."""

_RECORD, _OWNER = "xegpu_py:trial", "xegpu_py:owner"


class Journal:
    """Optuna's study, in memory or in a file of SQLite, which other searches may use at the same time.

    Attributes:
        path: the file; None for memory.
        tried: the number of trials that ended by themselves or by a limit.
        best: the trial with the least value of the first objective.
        taken: the configurations of all trials, by their keys; None for trials that run.
    """

    def __init__(self, path: Path | None, name: str, space: Space, objectives: int, sampler: Any) -> None:
        """Open it.

        Raises:
            ValueError: if the file is the journal of something else.
        """
        import optuna
        from sqlalchemy.exc import SQLAlchemyError

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._errors = (SQLAlchemyError, optuna.exceptions.StorageInternalError)
        self._optuna, self._name, self._space, self._sampler, self.path = optuna, name, space, sampler, path
        self._directions = ["minimize"] * objectives
        storage = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                storage = optuna.storages.RDBStorage(
                    f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}}
                )
            except (SQLAlchemyError, RuntimeError) as e:
                raise ValueError(f"'{path}' is no journal that can be opened: {_first_line(e)}") from None
        self._study = self._opened(storage)
        self._known: dict[int, Trial] = {}
        self._looked = 0.0
        self.tried = 0
        self.best: Trial | None = None
        self.taken: dict[str, Trial | None] = {}
        # The study in memory that replaces a file counts from 0 again, but trials of the file may still run.
        self._offset, self._last = 0, -1
        self._kept: dict[int, OptunaTrial] = {}
        self._own = f"{platform.node()}:{os.getpid()}"
        self._adopt()
        self.look()
        if self._known:
            # A search that goes on must not propose what it began with.
            self._sampler.reseed_rng()

    def _opened(self, storage: Any) -> Any:
        return self._optuna.create_study(
            storage=storage, study_name=self._name, load_if_exists=True, directions=self._directions,
            sampler=self._sampler,
        )  # fmt: skip

    def _adopt(self) -> None:
        """End the trials of searches of this machine that were killed."""
        states = self._optuna.trial.TrialState
        for trial in self._study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            host, _, pid = str(trial.user_attrs.get(_OWNER, "")).rpartition(":")
            if host == platform.node() and not _alive(int(pid)):
                with contextlib.suppress(*self._errors, ValueError):
                    self._study.tell(trial.number, state=states.FAIL)

    def trials(self) -> list[Trial]:
        """All trials that ended, also those of other searches; of repeated ones the first."""
        self.look()
        return [self._known[n] for n in sorted(self._known) if self._known[n].state != REPEATED]

    def look(self) -> None:
        """Read what other searches have added to the file, and which of their trials run."""
        self._looked = time.monotonic()
        for trial in self._study.get_trials(deepcopy=False):
            record = trial.user_attrs.get(_RECORD)
            number = trial.number + self._offset
            if number in self._known:
                continue
            if record is not None and trial.state.is_finished():
                self._note(_trial_of(number, self._space.read(trial.params), record))
            elif not trial.state.is_finished() and len(trial.params) == len(self._space.parameters):
                self.taken.setdefault(_key(self._space.read(trial.params)), None)

    def _note(self, trial: Trial) -> None:
        """Remember a trial that ended. A journal of thousands of trials is not read again for each."""
        self._known[trial.number] = trial
        key = _key(trial.configuration)
        if trial.state in ("interrupted", "excluded"):
            if self.taken.get(key, trial) is None:
                del self.taken[key]
        elif trial.state != REPEATED:
            self.tried += 1
            self.taken[key] = trial
            if trial.state == "done" and (self.best is None or trial.values[0] < self.best.values[0]):
                self.best = trial

    def ask(self, configuration: Configuration | None = None) -> tuple[int, Configuration]:
        """Begin a trial: of a configuration, or of one that the sampler chooses."""
        try:
            if configuration is not None:
                self._study.enqueue_trial(self._space.kept(configuration))
            trial = self._study.ask()
            chosen = self._space.suggested(trial)
            trial.set_user_attr(_OWNER, self._own)
        except self._errors as e:
            self._to_memory(e)
            return self.ask(configuration)
        if self.path is not None and time.monotonic() - self._looked > 1:
            self.look()
        number = trial.number + self._offset
        self._last = max(self._last, number)
        self._kept[number] = trial
        return number, chosen

    def tell(self, number: int, trial: Trial) -> None:
        """End a trial."""
        states = self._optuna.trial.TrialState
        state = {"done": states.COMPLETE, "interrupted": states.FAIL}.get(trial.state, states.PRUNED)
        if trial.state == REPEATED and trial.values:
            state = states.COMPLETE
        if state == states.PRUNED and len(self._directions) > 1:
            state = states.FAIL  # Optuna prunes only where there is one objective.
        optuna_trial = self._kept.pop(number, None)
        try:
            if optuna_trial is None:
                raise KeyError(number)
            optuna_trial.set_user_attr(_RECORD, _record_of(trial))
            self._study.tell(optuna_trial, list(trial.values) if state == states.COMPLETE else None, state=state)
        except KeyError:
            self._add(trial, state)
        except self._errors as e:
            self._to_memory(e)
            self._add(trial, state)
        self._note(structs.replace(trial, number=number))

    def _add(self, trial: Trial, state: Any) -> None:
        distributions = {
            p.name: self._optuna.distributions.CategoricalDistribution([p.kept(v) for v in p.choices])
            if p.choices
            else self._optuna.distributions.FloatDistribution(p.low, p.high, log=p.log)
            for p in self._space.parameters
        }
        values = list(trial.values) if state == self._optuna.trial.TrialState.COMPLETE else None
        self._study.add_trial(
            self._optuna.trial.create_trial(
                params=self._space.kept(trial.configuration), distributions=distributions, values=values, state=state
            )
        )

    def _to_memory(self, error: Exception) -> None:
        """Go on without the file, whose disk may be full. The finished trials stay in both."""
        if self.path is None:
            raise error
        warnings.warn(
            f"the journal '{self.path}' cannot be written: {_first_line(error)}; the search goes on, and its further "
            "trials are in its result only",
            stacklevel=3,
        )
        self.path, trials = None, list(self._known.values())
        self._study = self._opened(None)
        states = self._optuna.trial.TrialState
        for trial in trials:
            self._add(trial, {"done": states.COMPLETE}.get(trial.state, states.FAIL))
        self._kept.clear()
        self._offset = max(self._last, *self._known, 0) + 1


def _first_line(error: BaseException) -> str:
    cause = error.__cause__ or error
    return str(cause).strip().splitlines()[0]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _record_of(trial: Trial) -> str:
    return json.dumps(
        {n: getattr(trial, n) for n in ("state", "values", "counts", "message", "seconds", "host", "cpu")}
    )


def _trial_of(number: int, configuration: Configuration, record: str) -> Trial:
    fields = json.loads(record)
    return Trial(number, configuration, **{**fields, "values": tuple(fields["values"])})


def _key(configuration: Mapping[str, Any]) -> str:
    return repr(sorted(configuration.items()))


# The search.

Sampler = Literal["tpe", "nsga2", "grid", "random"]

SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)

_FRUITLESS = 25
"""How many configurations in a row a sampler may propose that were tried or are excluded; then one is drawn."""


@checked
def tune(
    make_kernel: Any,
    space: Space | Mapping[str, Any] | str | Path,
    arguments: Sequence[Any],
    objective: ObjectiveName | Objective | Sequence[ObjectiveName | Objective] = "model",
    budget: Annotated[int, Range(1)] = 100,
    scheduler: Client | str | None = None,
    *,
    grid: Any = None,
    sampler: Sampler | None = None,
    seed: int = 0,
    journal: str | Path | None = None,
    workers: Annotated[int, Range(1)] | None = None,
    limit: Annotated[float, Range(0)] = LIMIT,
    memory: Annotated[int, Range(1)] | None = None,
    expected: Sequence[np.ndarray[Any, Any]] | None = None,
    tolerance: float | None = None,
    spills: bool = False,
    progress: bool = True,
    each: Callable[[Trial], None] | None = None,
) -> Tuning:
    """Search a space of configurations for the best kernel, on this machine or on a Dask cluster.

        found = xegpu_py.tune(gemm, {"BM": [64, 128], "BN": [64, 128], "prefetch": range(3)}, (a, b, c), "jit", 10,
                              grid=lambda v: (m // v["BM"], n // v["BN"]))
        found.best.configuration

    Each configuration runs once on copies of the arguments, and its results must be those of the first one.
    Configurations that a constraint excludes are not compiled. Configurations that the compiler refuses, that fail
    or that give another result are data: the table has them, with the reason.

    Args:
        make_kernel: a kernel of the tile language, whose parameters and options of `compile` the space names; or a
            function that takes the parameters by name, and gives `kernel[grid]` (with further arguments in a
            `functools.partial`), a module, its text or a file with the grid and options as a tuple, or a function that
            launches.
        space: a `Space`, its parameters, or the path of a space file.
        arguments: the arguments of a launch; arrays are not changed.
        objective: what to minimize: "model", seconds on the target's usual GPU by the model of time; "jit", seconds of
            the native code, the best of 3; "instructions", "messages" or "lines", exact counts; "dpas", the negative
            share of dpas; or a function of a `Run`. Several make a search for the front of the best.
        budget: the number of configurations to try, with those that the journal has.
        scheduler: a Dask client, or the address of a scheduler; by default a cluster of this machine's processors.
        grid: the workgroups, or a function of the arguments by name, if `make_kernel` is a kernel of the tile language.
        sampler: "tpe", "nsga2", "grid" (all, in order) or "random"; by default "tpe", with several objectives "nsga2".
        seed: of the sampler.
        journal: a file of SQLite that keeps each trial as soon as it ends. A search continues what it has, and several
            may share one.
        workers: the number of workers of the cluster of this machine.
        limit: seconds of a trial.
        memory: bytes of a trial; by default its share of 80 % of the machine's memory.
        expected: the arrays that results are compared with, instead of those of the first trial.
        tolerance: see `difference`; 0 for equal bytes.
        spills: whether kernels are tried whose variables do not fit into the registers. By default they are refused,
            except by the objective "jit", since the native code has registers enough.
        progress: whether to show a progress bar with the best value so far if standard error is a terminal.
        each: called with each trial as it ends.

    Raises:
        MissingExtra: if the extra `tune` is not installed.
        ValueError: if an argument is not legal, or no configuration fulfils the constraints.
        KeyboardInterrupt: if the user interrupts it; the journal has all trials that ended.
    """
    with needing("tune"):
        import optuna  # noqa: F401

    space, objectives = Space.of(space), named_objectives(objective)
    if budget < 1:
        raise ValueError(f"'budget' must be positive, but got {budget}")
    problem = Trials(make_kernel, tuple(arguments), grid, objectives, list(expected) if expected else None, tolerance)
    problem.fits = not spills and "jit" not in objectives
    # The journal knows a search by its code and data.
    name = digest("tune 1", hashlib.sha256(packed(problem)).hexdigest(), space.key(), *objectives)
    kind = sampler or ("tpe" if len(objectives) == 1 else "nsga2")
    made = Journal(
        Path(journal) if journal else None, name, space, len(objectives), _sampler(kind, seed, len(objectives))
    )
    search = _Search(problem, space, made, budget, kind, seed, TrialLimits(limit, memory), each)
    with Cluster(scheduler, workers) as cluster, _bar(progress, budget) as bar:
        search.run(cluster, bar)
    if not made.trials():
        raise ValueError("no configuration of the space fulfils the constraints")
    refused = tuple(cluster.refused.values())
    return Tuning(tuple(made.trials()), tuple(objectives), space, problem, refused, name)


def _sampler(kind: str, seed: int, objectives: int) -> Any:
    import optuna

    if kind == "tpe":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # Of 24 candidates, Optuna's default, too few are new in a space of some hundred configurations.
            settings = {"multivariate": objectives == 1, "constant_liar": True, "n_ei_candidates": 128}
            return optuna.samplers.TPESampler(seed=seed, **settings)
    if kind == "nsga2":
        return optuna.samplers.NSGAIISampler(seed=seed, population_size=20)
    return optuna.samplers.RandomSampler(seed=seed)


@contextlib.contextmanager
def _bar(is_shown: bool, total: int) -> Iterator[Any]:
    from tqdm import tqdm

    shown = is_shown and sys.stderr is not None and sys.stderr.isatty()
    with tqdm(total=total, desc="tune", unit=" trials", disable=not shown, dynamic_ncols=True) as bar:
        yield bar


class _Search(Struct, dict=True):
    """A running search."""

    problem: Trials
    space: Space
    journal: Journal
    budget: int
    kind: str
    seed: int
    limits: TrialLimits
    each: Callable[[Trial], None] | None
    running: dict[int, Configuration] = field(default_factory=dict)

    def run(self, cluster: Cluster, bar: Any) -> None:
        """Run trials until the budget is used up, or the space is."""
        self.bar, self.cluster, self.ended = bar, cluster, 0
        self.listed: Iterator[Configuration] | None = None
        try:
            if self.problem.reference is None:
                self._find_reference()
            self.key = self.cluster.load(self.problem)
            bar.update(self.journal.tried)
            while True:
                # Trials that need no results of others wait at the workers, so that none is idle.
                most = int(self.cluster.capacity * (2 if self.kind in ("grid", "random") else 1.25))
                while len(self.running) < most and self.journal.tried + len(self.running) < self.budget:
                    if not self._begin(self.key):
                        break
                if not self.running:
                    return
                for number, report in self.cluster.finished():
                    self._end(number, report)
        except BaseException:
            for number, configuration in self.running.items():
                with contextlib.suppress(Exception):
                    self.journal.tell(number, Trial(number, configuration, "interrupted"))
            raise

    def _find_reference(self) -> None:
        """Run trials one by one until one succeeds: its results are those that the others must have."""
        first = next((t for t in self.journal.trials() if t.state == "done"), None)
        key = self.cluster.load(self.problem)
        if first is not None:
            self.cluster.submit(-1, key, (first.configuration, True), self.limits)
            while not (finished := list(self.cluster.finished())):
                pass
            outcome = finished[0][1].result
            if not isinstance(outcome, TrialOutcome) or outcome.state != "done":
                raise ValueError(
                    f"the first trial of the journal cannot be repeated: {getattr(outcome, 'message', outcome)}"
                )
            self.problem = structs.replace(self.problem, reference=outcome.outputs)
            return
        while self.problem.reference is None and self.journal.tried < self.budget:
            if not self._begin(key, True):
                return
            while self.running:
                for number, report in self.cluster.finished():
                    self._end(number, report)
                    self.bar.update(-1)
                    if isinstance(report.result, TrialOutcome) and report.result.outputs:
                        self.problem = structs.replace(self.problem, reference=report.result.outputs)

    def _begin(self, key: str, with_output: bool = False) -> bool:
        """Begin a trial; False if all configurations are tried."""
        taken = self.journal.taken
        for _ in range(_FRUITLESS if self.kind != "grid" else 0):
            number, configuration = self.journal.ask()
            why = self.space.refusal(configuration)
            before = taken.get(_key(configuration))
            if why is None and _key(configuration) not in taken:
                self._submit(number, configuration, key, with_output)
                return True
            if before is not None and before.state == "done":
                # The sampler learns it again; the table has it once.
                self.journal.tell(number, structs.replace(before, number=number, state=REPEATED))
            else:
                self.journal.tell(
                    number, Trial(number, configuration, "excluded" if why else REPEATED, message=why or "")
                )
        if self.listed is None:
            self.listed = self._all()
        for configuration in self.listed:
            if _key(configuration) not in taken:
                self._submit(*self.journal.ask(configuration), key, with_output)
                return True
        return False

    def _all(self) -> Iterator[Configuration]:
        """All configurations: in order, or for a sampler that finds no further ones in a random order."""
        if self.kind == "grid":
            return iter(self.space)
        drawn = list(self.space) if self.space.is_finite else []
        random.Random(self.seed).shuffle(drawn)
        return reversed(drawn)

    def _submit(self, number: int, configuration: Configuration, key: str, with_output: bool) -> None:
        self.running[number] = configuration
        self.journal.taken.setdefault(_key(configuration), None)
        self.cluster.submit(number, key, (configuration, with_output), self.limits)

    def _end(self, number: int, report: TrialReport) -> None:
        configuration = self.running.pop(number)
        outcome = report.result
        if report.state != "done":
            state = "ended" if report.state in ("ended", "lost") else "failed"
            outcome = TrialOutcome(state, message=str(report.result))
        trial = Trial(
            number, configuration, outcome.state, outcome.values, outcome.counts, outcome.message, report.seconds,
            report.host, report.cpu,
        )  # fmt: skip
        self.journal.tell(number, trial)
        if self.each:
            self.each(trial)
        self.bar.update(1)
        if self.journal.best is not None:
            self.bar.set_postfix_str(f"best {self.journal.best.values[0]:.6g}")


# Results.


class Tuning(Struct, frozen=True):
    """The result of a search.

    Attributes:
        trials: all trials in the order of the journal, also those that failed.
        objectives: the names of the objectives.
        space: the space.
        problem: what was tuned.
        refused: the sentences about workers that could not take part.
        name: the name of the study in the journal.
    """

    trials: tuple[Trial, ...]
    objectives: tuple[str, ...]
    space: Space
    problem: Trials
    refused: tuple[str, ...] = ()
    name: str = ""

    @property
    def done(self) -> list[Trial]:
        """The trials with values."""
        return [t for t in self.trials if t.state == "done"]

    @property
    def best(self) -> Trial:
        """The trial with the least value of the first objective.

        Times of several machines are not compared: with "jit" it is the best of the machine with the most trials.

        Raises:
            ValueError: if no trial succeeded; with the reasons.
        """
        done = self.done
        if not done:
            reasons = sorted({t.message.splitlines()[0] for t in self.trials if t.message})
            raise ValueError(f"none of {len(self.trials)} configurations succeeded: {'; '.join(reasons[:5])}")
        if self.objectives[0] == "jit":
            hosts = [(t.host, t.cpu) for t in done]
            most = max(dict.fromkeys(hosts), key=hosts.count)
            done = [t for t in done if (t.host, t.cpu) == most]
        return min(done, key=lambda t: t.values[0])

    @property
    def front(self) -> list[Trial]:
        """The trials that no other one surpasses in all objectives, by the first objective."""

        def surpassed(one: Trial) -> bool:
            return any(
                all(a <= b for a, b in zip(other.values, one.values)) and other.values != one.values
                for other in self.done
            )

        return sorted((t for t in self.done if not surpassed(t)), key=lambda t: t.values)

    def table(self) -> pandas.DataFrame:
        """All trials, one a row: the parameters, the objectives, the counts, and what became of the trial."""
        with needing("the table of a search"):
            import pandas

        rows = [
            {
                "number": t.number, **self.space.kept(t.configuration), "state": t.state,
                **dict(zip((f"objective:{name}" for name in self.objectives), t.values)), **t.counts,
                "seconds": t.seconds, "host": t.host, "cpu": t.cpu, "message": t.message,
            }
            for t in self.trials
        ]  # fmt: skip
        return pandas.DataFrame(rows)

    def save(self, path: str | Path) -> None:
        """Write the table: `.parquet`, otherwise as CSV."""
        with needing("a table in parquet"):
            import pyarrow  # noqa: F401
        table = self.table()
        if str(path).endswith(".parquet"):
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False)

    def plot(self, path: str | Path) -> None:
        """Draw the search, and with several objectives the front of the first two, in a file of SVG, PNG or PDF."""
        with needing("a plot of a search"):
            from matplotlib.figure import Figure

        several = len(self.objectives) > 1
        figure = Figure(figsize=(11 if several else 6, 4), layout="constrained")
        axes = figure.subplots(1, 2 if several else 1, squeeze=False)[0]
        values = [t.values[0] for t in self.done]
        axes[0].plot(range(1, len(values) + 1), values, ".", color="#9aa7b8", label="trial")
        best: Any = np.minimum.accumulate(values) if values else []
        axes[0].step(range(1, len(values) + 1), best, where="post", color="#c0392b", label="best so far")
        axes[0].set(xlabel="trial", ylabel=self.objectives[0], yscale="log" if values and min(values) > 0 else "linear")
        axes[0].legend()
        if several:
            tried, front = (np.array([t.values[:2] for t in ts]).reshape(-1, 2) for ts in (self.done, self.front))
            axes[1].plot(*tried.T, ".", color="#9aa7b8", label="trial")
            axes[1].step(*front.T, where="post", color="#c0392b", marker="o", label="front")
            axes[1].set(xlabel=self.objectives[0], ylabel=self.objectives[1])
            axes[1].legend()
        figure.savefig(path)

    def best_kernel(self) -> CompiledKernel:
        """The kernel of the best configuration.

        Raises:
            ValueError: if a function of the user's hides it.
        """
        launch = launch_of(self.problem.make_kernel, self.best.configuration, self.problem.grid)
        if launch.bound is None:
            raise ValueError("the kernel is hidden by a function that launches it")
        return launch.bound(copied(self.problem.arguments, {})).kernel

    def save_best(self, path: str | Path) -> None:
        """Write the best kernel as a module, which `compile` takes. It holds the options with which it was compiled."""
        head = [f"The best of {len(self.done)} configurations by {', '.join(self.objectives)}: {self.best.values}."]
        head += [f"{name} = {value!r}" for name, value in self.best.configuration.items()]
        Path(path).write_text(module_text(self.best_kernel(), head))
