"""`autotune`: choose the values of `Constexpr` parameters and options of a tile kernel by trial."""

from __future__ import annotations

import functools
import inspect
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from msgspec import Struct

from xegpu_py.argument_types import check_fields, checked
from xegpu_py.extensions.tuning import evaluation
from xegpu_py.extensions.tuning.evaluation import Objective, Run, TrialLaunch, Trials, bound
from xegpu_py.extensions.tuning.search import tune
from xegpu_py.extensions.tuning.space import Space
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.language.function_source import code_of
from xegpu_py.language.jit_function import LAUNCH_HINTS, Kernel, check_hints, hinted_options
from xegpu_py.language.tunable import Tunable
from xegpu_py.runtime.kernel import CompiledKernel
from xegpu_py.runtime.launch import progress_bar

PRINTS = "TRITON_PRINT_AUTOTUNING"
"""Triton's variable, which lets `autotune` print its table."""


class Config(Struct, frozen=True):
    """A candidate of `autotune`.

    Attributes:
        values: arguments of the kernel by name.
        options: of `xegpu_py.compile`, such as `prefetch` and `registers`.
        num_warps, num_stages, num_ctas, maxnreg: Triton's; see `LAUNCH_HINTS`. They are passed to parameters of these
            names.
        pre_hook: called with the arguments by name before each run with this candidate.

    Raises:
        TypeError: if `values` or `options` is no dictionary.
        ValueError: if one of Triton's numbers is not a positive integer.
    """

    values: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    num_warps: int | None = None
    num_stages: int | None = None
    num_ctas: int | None = None
    maxnreg: int | None = None
    pre_hook: Callable[[dict[str, Any]], Any] | None = None

    def __post_init__(self) -> None:
        for names in (self.values, self.options):
            if not isinstance(names, Mapping):
                raise TypeError(f"Config takes dictionaries of arguments and of options by name, but got {names!r}")
        check_fields(self)
        try:
            check_hints(self.hints)
        except ValueError as e:
            # The caller's line is the place of the mistake.
            raise e.with_traceback(None) from None

    @property
    def hints(self) -> dict[str, int]:
        """Triton's launch options that are given."""
        return {name: hint for name in LAUNCH_HINTS if (hint := getattr(self, name)) is not None}

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The values, by Triton's name."""
        return self.values

    def all_kwargs(self) -> dict[str, Any]:
        """The values and Triton's launch options."""
        return {**self.values, **self.hints}

    def __str__(self) -> str:
        shown = (*self.values.items(), *self.options.items(), *self.hints.items())
        return ", ".join(f"{name}={value!r}" for name, value in shown)


def _seconds(function: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


_SUMMARIES: dict[str, Callable[[list[float]], Any]] = {
    "min": min, "max": max, "mean": statistics.fmean, "median": statistics.median, "all": list,
}  # fmt: skip


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """The milliseconds that a call of a function takes by the clock: those of the engine, not of a GPU.

    Args:
        fn: the function.
        warmup: the milliseconds for which it is called first.
        rep: the milliseconds for which it is called and timed, at least once.
        grad_to_none: Triton's, without effect.
        quantiles: which quantiles of the times to give, as a list.
        return_mode: what to give otherwise: "min", "max", "mean", "median", or "all", the list of the times.

    Raises:
        TypeError: if it is no function.
        ValueError: for another mode.
    """
    if return_mode not in _SUMMARIES:
        raise ValueError(f"'return_mode' must be one of {', '.join(_SUMMARIES)}, but got {return_mode!r}")
    if not callable(fn):
        raise TypeError(f"'fn' must be a function, but got {fn!r}")
    # The first call compiles the kernel.
    fn()
    times: list[float] = []
    for budget in (warmup, rep):
        times, begun = [], time.perf_counter()
        while not times or (time.perf_counter() - begun) * 1e3 < budget:
            times.append(_seconds(fn) * 1e3)
    if quantiles is not None:
        return np.quantile(times, quantiles).tolist()
    return _SUMMARIES[return_mode](times)


class testing:
    """The functions of `triton.testing`."""

    do_bench = staticmethod(do_bench)


OBJECTIVES: dict[str, Objective] = {
    **evaluation.OBJECTIVES,
    "time": evaluation.OBJECTIVES["jit"],
    "executed": evaluation.OBJECTIVES["instructions"],
    "size": lambda run: float(len(cast(CompiledKernel, run.kernel).program.instructions)),
}
"""Objectives by name: those of `tune`, and `autotune` says what the others are."""

ObjectiveName = evaluation.ObjectiveName | Literal["time", "executed", "size"]

_TIMED = ("time", "jit")
"""Objectives for which Python runs the kernel if its engine is "eager"; the others need what engines count."""

Hook = Callable[..., Any]

Prune = Callable[[Sequence[Config], dict[str, Any]], Sequence[Config]]


@dataclass(frozen=True)
class Candidates:
    """The launches of candidates for the arguments of a call: what `tune` calls to make a kernel.

    Attributes:
        kernel: the kernel.
        configs: the candidates, which the parameter `config` of the search numbers; empty if it has a space.
        names: the names of the arguments that are given.
        grid, block: as in a call.
        before, after, zeroed, restored: see `autotune`.
        counted: whether also a kernel that Python would run is compiled, since its instructions are counted.
        variants: the kernels with other options, by these.
    """

    kernel: Kernel | Tunable
    configs: tuple[Config, ...]
    names: tuple[str, ...] = ()
    grid: Any = 1
    block: Any = None
    before: Hook | None = None
    after: Hook | None = None
    zeroed: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    counted: bool = False
    variants: dict[tuple[Any, ...], Kernel | Tunable] = field(default_factory=dict)

    def config(self, configuration: Mapping[str, Any]) -> Config:
        """The candidate of a configuration of the search."""
        if self.configs:
            return self.configs[configuration["config"]]
        parameters = inspect.signature(self.kernel).parameters
        options = {name: value for name, value in configuration.items() if name not in parameters}
        return Config({name: value for name, value in configuration.items() if name in parameters}, options)

    def values(self, config: Config) -> dict[str, Any]:
        """The arguments that a candidate gives."""
        parameters = inspect.signature(self.kernel).parameters
        return {**config.values, **{name: n for name, n in config.hints.items() if name in parameters}}

    def variant(self, config: Config) -> Kernel | Tunable:
        """The kernel with the options of a candidate."""
        options = {**hinted_options(config.hints), **config.options}
        key = tuple(sorted(options.items()))
        if key not in self.variants:
            self.variants[key] = self.kernel.with_options(**options) if key else self.kernel
        return self.variants[key]

    def run(self, kernel: Callable[..., Any], config: Config, full: dict[str, Any]) -> Any:
        """Run the kernel for a candidate between its hooks."""
        for hook in (self.before, config.pre_hook):
            if hook is not None:
                hook(full)
        statistics = kernel(grid=self.grid, block=self.block, **full)
        if self.after is not None:
            self.after(full)
        return statistics

    def __call__(self, **configuration: Any) -> TrialLaunch:
        config = self.config(configuration)
        kernel: Any = self.variant(config)
        full: dict[str, Any] = {}
        saved: dict[str, Any] = {}

        def named(arguments: Sequence[Any]) -> dict[str, Any]:
            if not full:
                given = {**dict(zip(self.names, arguments)), **self.values(config)}
                full.update(kernel.chosen((), given, self.grid, self.block)[1])
                saved.update({name: full[name].copy() for name in self.restored})
            return full

        def counted(grid: Any, block: Any, **full: Any) -> Any:
            version, passed, values = kernel.bind(**full)
            return version(*passed, grid=grid(values) if callable(grid) else grid, block=block, counted=True)

        def run(arguments: Sequence[Any]) -> Any:
            values = named(arguments)
            for name in self.zeroed:
                values[name][...] = 0
            for name in self.restored:
                values[name][...] = saved[name]
            return self.run(counted if self.counted else kernel, config, values)

        return TrialLaunch(run, lambda arguments: bound(kernel, (), named(arguments), self.grid, self.block), config)


class Autotuner(Tunable):
    """A kernel with candidates to try; see `autotune`.

    Attributes:
        configs: the candidates; empty if there is a space.
        best: the chosen candidate, by the values of the key.
        costs: each candidate that has a cost, with it, by the values of the key; `table` shows them.
    """

    def __init__(
        self,
        kernel: Kernel | Tunable,
        configs: Sequence[Config] | Space,
        key: Sequence[str],
        objective: Objective,
        prune: Prune | None = None,
        hooks: Mapping[str, Any] | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> None:
        """Make one; see `autotune`.

        Args:
            hooks: the fields `before`, `after`, `zeroed`, `restored` and `counted` of `Candidates`.
            search: arguments of `tune`; None if this process tries all candidates.

        Raises:
            TypeError: if there is no such parameter, or a candidate is no `Config`.
            ValueError: if there is no candidate.
        """
        super().__init__(kernel)
        if isinstance(key, str) or not (hasattr(key, "__len__") and all(isinstance(name, str) for name in key)):
            raise TypeError(f"'key' must be a list of names, but got {key!r}")
        self._space = configs if isinstance(configs, Space) else None
        self.configs: tuple[Config, ...] = () if isinstance(configs, Space) else tuple(configs)
        if not self.configs and self._space is None:
            raise ValueError("autotune needs a Config")
        name, parameters = self.__name__, self.__signature__.parameters
        self._hooks, self._search = dict(hooks or {}), search
        named = ((one, f"Config({config})") for config in self.configs for one in config.values)
        lists = (*key, *self._hooks.get("zeroed", ()), *self._hooks.get("restored", ()))
        for one, option in (*named, *((n, "autotune") for n in lists)):
            if one not in parameters:
                raise TypeError(f"{option} names '{one}', but kernel '{name}' has no such parameter")
        if prune and self._space:
            raise TypeError("the space of autotune has constraints instead of a function that prunes")
        self._key, self._objective, self._prune = tuple(key), objective, prune
        self.best: dict[tuple[Any, ...], Config] = {}
        self.costs: dict[tuple[Any, ...], list[tuple[Config, float]]] = {}
        self._variants: dict[tuple[tuple[str, Any], ...], Kernel | Tunable] = {}

    def _configured(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any, block: Any
    ) -> tuple[Candidates, Config, dict[str, Any]]:
        """The function that launches candidates, the best one, and the arguments of a call with its values."""
        bound_arguments: dict[str, Any] = self._kernel.bound(*arguments, **keywords)
        twice = sorted(name for config in self.configs for name in config.values if name in bound_arguments)
        if twice:
            raise TypeError(f"autotune of kernel '{self.__name__}' chooses '{twice[0]}', which the call gives too")
        config = self._best(bound_arguments, grid, block)
        candidates = self._candidates((), grid, block)
        return candidates, config, {**bound_arguments, **candidates.values(config)}

    def chosen(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any = 1, block: Any = None
    ) -> tuple[Kernel, dict[str, Any]]:
        candidates, config, bound_arguments = self._configured(arguments, keywords, grid, block)
        return candidates.variant(config).chosen((), bound_arguments, grid, block)

    def _launch(self, method: str, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any, block: Any) -> Any:
        candidates, config, bound_arguments = self._configured(arguments, keywords, grid, block)
        return candidates.run(getattr(candidates.variant(config), method), config, bound_arguments)

    def _candidates(self, configs: Sequence[Config], grid: Any, block: Any, names: Iterable[str] = ()) -> Candidates:
        return Candidates(
            self._kernel, tuple(configs), tuple(names), grid, block, **self._hooks, variants=self._variants
        )

    def _best(self, bound_arguments: dict[str, Any], grid: Any, block: Any) -> Config:
        missing = [name for name in self._key if name not in bound_arguments]
        if missing:
            raise TypeError(f"the key of autotune names {', '.join(missing)}, which the call does not give")
        kinds = [str(getattr(value, "dtype", "")) for value in bound_arguments.values()]
        values = (_hashable(bound_arguments[name]) for name in self._key)
        key = (*values, *(kind for kind in kinds if kind))
        if key not in self.best:
            configs = self._prune(self.configs, bound_arguments) if self._prune else self.configs
            if not configs and self._space is None:
                raise ValueError(f"autotune of kernel '{self.__name__}': no Config is left to be tried")
            candidates = self._candidates(configs, grid, block, bound_arguments)
            tried = self._tried if self._search is None else self._searched
            self.best[key], self.costs[key] = tried(candidates, tuple(bound_arguments.values()))
            if os.environ.get(PRINTS, "0") not in ("", "0"):
                print(self.table(key), file=sys.stderr)
        return self.best[key]

    def table(self, key: tuple[Any, ...] | None = None) -> str:
        """The candidates with their costs as text, the best one first; of one key, by default of all."""
        lines = []
        for one, costs in self.costs.items():
            if key in (None, one):
                named = ", ".join(f"{name}={value}" for name, value in zip(self._key, one))
                lines.append(f"{self.__name__}({named}): the cost of {len(costs)} candidates")
                ranked = sorted(costs, key=lambda pair: pair[1])
                lines += [
                    f"{evaluation.with_unit(self._objective_name, cost, 12)}  {config}" for config, cost in ranked
                ]
        return "\n".join(lines)

    @property
    def _objective_name(self) -> str:
        """The name of the objective in `evaluation.UNITS`."""
        names = (name for name, function in OBJECTIVES.items() if function is self._objective)
        return next(names, getattr(self._objective, "__name__", ""))

    def _tried(self, candidates: Candidates, arguments: tuple[Any, ...]) -> tuple[Config, list[tuple[Config, float]]]:
        """The best candidate and the costs of all, tried in this process."""
        problem = Trials(candidates, arguments, candidates.grid, {"objective": self._objective})
        costs: list[tuple[Config, float]] = []
        failures: list[tuple[Config, Exception]] = []
        with progress_bar(f"autotune {self.__name__}", len(candidates.configs), unit="trials") as progress:
            for number, config in enumerate(candidates.configs):
                try:
                    costs.append((config, problem.judged(problem.prepared({"config": number})).values[0]))
                except (DiagnosticError, ValueError) as e:
                    failures.append((config, e))
                progress(number + 1)
        if not costs:
            raise self._failed(failures)
        return min(costs, key=lambda pair: pair[1])[0], costs

    def _searched(
        self, candidates: Candidates, arguments: tuple[Any, ...]
    ) -> tuple[Config, list[tuple[Config, float]]]:
        """The best candidate and the costs of all that a search by `tune` has tried."""
        space, search_options = self._space, dict(self._search or {})
        if space is None:
            space = Space({"config": range(len(candidates.configs))})
            search_options = {"sampler": "grid", "budget": len(candidates.configs), **search_options}
        tuning = tune(replace(candidates, variants={}), space, arguments, self._objective, **search_options)
        return candidates.config(tuning.best.configuration), [
            (candidates.config(t.configuration), t.values[0]) for t in tuning.done
        ]

    def _failed(self, failures: Sequence[tuple[Config, Exception]]) -> Exception:
        """The error if all candidates failed: with one its own, with several the reason of each."""
        if len(failures) == 1:
            return failures[0][1].with_traceback(None)
        kernel: Any = self
        code = code_of(kernel.__kernel_function__)
        where = code.position(code.node)
        diagnostics = [Diagnostic("error", f"all configurations of kernel '{self.__name__}' failed", where)]
        sources: list[Any] = [code.source]
        for config, e in failures:
            causes = e.diagnostics if isinstance(e, DiagnosticError) else [Diagnostic("error", str(e), where)]
            diagnostics += [
                Diagnostic(d.severity, f"Config({config}): {d.message}", d.position, d.notes) for d in causes
            ]
            sources += e.sources if isinstance(e, DiagnosticError) else []
        return DiagnosticError(diagnostics, sources)

    def with_options(self, **options: Any) -> Autotuner:
        return Autotuner(self._kernel.with_options(**options), *self._made_of())

    def _made_of(self) -> tuple[Any, ...]:
        return (self._space or self.configs, self._key, self._objective, self._prune, self._hooks, self._search)

    def __reduce_by_value__(self) -> tuple[Any, tuple[Any, ...]]:
        return Autotuner, (self._kernel, *self._made_of())

    def __repr__(self) -> str:
        return f"<{self._space or f'{len(self.configs)} configs'} of {self._kernel!r}>"


def _hashable(value: Any) -> Any:
    return value.shape if isinstance(value, np.ndarray) else value


def _by_triton(rules: Mapping[str, Any]) -> Prune:
    """The candidates that Triton's `prune_configs_by` leaves: an early choice, and the `top_k` of a model's times."""
    if unknown := sorted(rules.keys() - {"early_config_prune", "perf_model", "top_k"}):
        raise ValueError(f"'prune_configs_by' has early_config_prune, perf_model and top_k, not {', '.join(unknown)}")
    early, model, most = (rules.get(name) for name in ("early_config_prune", "perf_model", "top_k"))

    def prune(configs: Sequence[Config], bound_arguments: dict[str, Any]) -> Sequence[Config]:
        remaining = list(early(list(configs), bound_arguments, **bound_arguments)) if early else list(configs)
        count = len(remaining) if most is None else int(len(remaining) * most) if isinstance(most, float) else most
        if model is None or count >= len(remaining):
            return remaining
        return sorted(remaining, key=lambda config: model(**{**bound_arguments, **config.all_kwargs()}))[:count]

    return prune


@functools.partial(checked, leave_out=["key"])
def autotune(
    configs: Sequence[Config] | Space,
    key: Sequence[str] = (),
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
    *,
    objective: Objective | ObjectiveName = "time",
    prune: Prune | None = None,
    **search: Any,
) -> Callable[[Kernel | Tunable], Autotuner]:
    """Try candidates for arguments and options of a kernel, and keep the best.

        @xegpu_py.autotune([Config({"BLOCK": 64}), Config({"BLOCK": 128}, {"prefetch": 1})], key=["n"])
        @xegpu_py.jit
        def scale(X, Y, n, BLOCK: Constexpr): ...

    Candidates are tried when the kernel is first called with new values of the key or new element types. Trials run on
    copies of the arrays. Candidates that cannot be compiled are skipped. This process tries all candidates of a list;
    with a space, or with an argument of `tune`, that is what tries them.

    Args:
        configs: the candidates, or a `Space` of parameters and options, which `tune` searches.
        key: names of arguments; numbers count by their values, arrays by their shapes.
        prune_configs_by: Triton's dictionary with `early_config_prune`, `perf_model` and `top_k`.
        reset_to_zero: arrays whose copies are set to zero before each run of a trial.
        restore_value: arrays whose copies are restored before each run of a trial.
        pre_hook, post_hook: called with the arguments by name before and after each run.
        warmup, rep: the milliseconds of the objective "time", as of `testing.do_bench`.
        use_cuda_graph, cache_results: Triton's, without effect.
        do_bench: times a function, called with it and `quantiles`, instead of an objective.
        objective: the cost to minimize: "time", seconds of the engine; "executed", instructions that run; "size",
            instructions of the program; another one of `tune`; or a function of a `tuning.trials.Run`.
        prune: selects the candidates to try, from all candidates and the arguments by name.
        search: `budget`, `scheduler`, `journal` and other arguments of `tune`.

    Raises:
        ValueError: if the objective's name is unknown.
        TypeError: if a candidate or a list names a parameter that the kernel does not have, or `tune` has no such
            argument.
    """
    search_options = inspect.signature(tune).parameters.keys() - {
        "make_kernel",
        "space",
        "arguments",
        "objective",
        "grid",
    }
    for name in search.keys() - search_options:
        raise TypeError(f"autotune() got an unexpected keyword argument '{name}'")
    objective_function = OBJECTIVES.get(objective) if isinstance(objective, str) else objective
    if objective_function is None:
        raise ValueError(f"'objective' must be one of {', '.join(OBJECTIVES)}, but got {objective!r}")
    if do_bench is not None or (objective == "time" and (warmup is not None or rep is not None)):
        bench = do_bench or functools.partial(testing.do_bench, warmup=warmup or 25, rep=rep or 100)

        def milliseconds(run: Run) -> float:
            return float(bench(run.again, quantiles=(0.5, 0.2, 0.8))[0])

        objective_function = milliseconds

    prune = prune if prune_configs_by is None else _by_triton(prune_configs_by)
    counted = do_bench is None and isinstance(objective, str) and objective not in _TIMED
    hooks: dict[str, Any] = {"before": pre_hook, "after": post_hook, "counted": counted}
    hooks |= {"zeroed": tuple(reset_to_zero or ()), "restored": tuple(restore_value or ())}
    searched = search if search or isinstance(configs, Space) else None
    return lambda kernel: Autotuner(kernel, configs, key, objective_function, prune, hooks, searched)
