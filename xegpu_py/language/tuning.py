"""Choose the values of `Constexpr` parameters and options: `autotune` by trial, `heuristics` by rule."""

from __future__ import annotations

import functools
import inspect
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Literal, cast

import numpy as np

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.language.element_types import has_arrays, is_reversed
from xegpu_py.language.function_source import code_of
from xegpu_py.language.jit_function import LAUNCH_HINTS, Kernel, check_hints
from xegpu_py.runtime.host_arrays import copy_of
from xegpu_py.runtime.kernel import CompiledKernel
from xegpu_py.runtime.launch import Statistics

RUNS = 3
"""The number of timed runs of a candidate; the best time counts."""


@dataclass(frozen=True)
class Config:
    """A candidate of `autotune`.

    Attributes:
        values: arguments of the kernel by name.
        options: of `xegpu_py.compile`, such as `prefetch` and `registers`.
        num_warps, num_stages, num_ctas, maxnreg: Triton's; see `LAUNCH_HINTS`. They are passed to parameters of these
            names.
        pre_hook: called with the arguments by name before each run with this candidate.

    Raises:
        ValueError: if one of Triton's numbers is not a positive integer.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    num_warps: int | None = None
    num_stages: int | None = None
    num_ctas: int | None = None
    maxnreg: int | None = None
    pre_hook: Callable[[dict[str, Any]], Any] | None = None

    def __post_init__(self) -> None:
        check_hints(self.hints)

    @property
    def hints(self) -> dict[str, int]:
        """Triton's launch options that are given."""
        return {name: found for name in LAUNCH_HINTS if (found := getattr(self, name)) is not None}

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


@dataclass(frozen=True)
class Trial:
    """A candidate with the arguments of a call: the argument of an objective.

    Attributes:
        config: the candidate.
        compile: gives the kernel compiled for it.
        run: launches it on copies of the arrays.
        counted: launches it compiled, also where Python runs the kernel, and gives what the launch has counted.
    """

    config: Config
    compile: Callable[[], CompiledKernel]
    run: Callable[[], Any]
    counted: Callable[[], Statistics]

    @property
    def kernel(self) -> CompiledKernel:
        """The kernel compiled for the candidate."""
        return self.compile()


Objective = Callable[[Trial], float]
"""Gives the cost of a trial, which tuning minimizes."""


def _time(trial: Trial) -> float:
    """The seconds of a run of the engine, the best of `RUNS`."""
    trial.run()
    return min(_seconds(trial.run) for _ in range(RUNS))


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
        ValueError: for another mode.
    """
    if return_mode not in _SUMMARIES:
        raise ValueError(f"'return_mode' must be one of {', '.join(_SUMMARIES)}, but got {return_mode!r}")
    # The first call compiles the kernel.
    fn()
    found: list[float] = []
    for budget in (warmup, rep):
        found, begun = [], time.perf_counter()
        while not found or (time.perf_counter() - begun) * 1e3 < budget:
            found.append(_seconds(fn) * 1e3)
    if quantiles is not None:
        return np.quantile(found, quantiles).tolist()
    return _SUMMARIES[return_mode](found)


class testing:
    """The functions of `triton.testing`."""

    do_bench = staticmethod(do_bench)


OBJECTIVES: dict[str, Objective] = {
    "time": _time,
    "executed": lambda trial: float(trial.counted().executed.sum()),
    "size": lambda trial: float(len(trial.kernel.program.instructions)),
}
"""Objectives by name; `autotune` says what they are."""

ObjectiveName = Literal["time", "executed", "size"]

Hook = Callable[..., Any]

Prune = Callable[[Sequence[Config], dict[str, Any]], Sequence[Config]]


class Tunable(ABC):
    """A wrapper that chooses arguments of a kernel. Other attributes are those of the kernel."""

    def __init__(self, kernel: Kernel | Tunable) -> None:
        functools.update_wrapper(self, kernel, updated=())
        self._kernel = kernel
        self.__signature__ = inspect.signature(kernel)

    @property
    def __kernel_function__(self) -> FunctionType:
        found: Any = self._kernel.__kernel_function__
        return cast(FunctionType, found)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._kernel, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._kernel)})

    def __get__(self, instance: Any, owner: type | None = None) -> Tunable:
        return self

    def __reduce__(self) -> str:
        return str(self.__qualname__)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The kernel with a grid; see `Kernel`."""
        return functools.partial(self, grid=grid)

    @abstractmethod
    def __call__(self, *arguments: Any, grid: Any = 1, **keywords: Any) -> Any:
        """Choose, and run the kernel; see `Kernel`."""

    @abstractmethod
    def with_options(self, **options: Any) -> Kernel | Tunable:
        """The same with other options of `xegpu_py.compile`."""

    @abstractmethod
    def completed(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        """The arguments of a call by name, with the chosen ones."""


class Heuristics(Tunable):
    """A kernel with arguments that are computed from others; see `heuristics`."""

    def __init__(self, kernel: Kernel | Tunable, rules: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        super().__init__(kernel)
        self._rules = rules

    def _ruled(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self._kernel.bound(*arguments, **keywords)
        for name, rule in self._rules.items():
            if name not in keywords:
                found[name] = rule(found)
        return found

    def completed(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        return self._kernel.completed(**self._ruled(arguments, keywords))

    def __call__(self, *arguments: Any, grid: Any = 1, block: Any = None, **keywords: Any) -> Any:
        return self._kernel(grid=grid, block=block, **self._ruled(arguments, keywords))

    def with_options(self, **options: Any) -> Heuristics:
        return Heuristics(self._kernel.with_options(**options), self._rules)

    def __repr__(self) -> str:
        return f"<{', '.join(self._rules)} by heuristics of {self._kernel!r}>"


class Autotuner(Tunable):
    """A kernel with candidates to try; see `autotune`.

    Attributes:
        configs: the candidates.
        best: the chosen candidate, by the values of the key.
        costs: each candidate with its cost, by the values of the key.
    """

    def __init__(
        self,
        kernel: Kernel | Tunable,
        configs: Sequence[Config],
        key: Sequence[str],
        objective: Objective,
        prune: Prune | None,
        before: Hook | None = None,
        after: Hook | None = None,
        zeroed: Sequence[str] = (),
        restored: Sequence[str] = (),
    ) -> None:
        """Make one; see `autotune`.

        Args:
            before, after: `pre_hook` and `post_hook`.
            zeroed, restored: `reset_to_zero` and `restore_value`.

        Raises:
            TypeError: if there is no such parameter, or a candidate is no `Config`.
            ValueError: if there is no candidate.
        """
        super().__init__(kernel)
        if not configs:
            raise ValueError("autotune needs a Config")
        name, known = self.__name__, self.__signature__.parameters
        for config in configs:
            if not isinstance(config, Config):
                raise TypeError(f"autotune of kernel '{name}' takes Configs, but got {config!r}")
        named = ((one, f"Config({config})") for config in configs for one in config.values)
        for one, what in (*named, *((n, "autotune") for n in (*key, *zeroed, *restored))):
            if one not in known:
                raise TypeError(f"{what} names '{one}', but kernel '{name}' has no such parameter")
        self.configs, self._key, self._objective, self._prune = tuple(configs), tuple(key), objective, prune
        self._before, self._after, self._zeroed, self._restored = before, after, tuple(zeroed), tuple(restored)
        self.best: dict[tuple[Any, ...], Config] = {}
        self.costs: dict[tuple[Any, ...], list[tuple[Config, float]]] = {}
        self._variants: dict[tuple[tuple[str, Any], ...], Kernel | Tunable] = {}

    def completed(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._kernel.bound(*arguments, **keywords)
        return self._kernel.completed(**found | self._values(self._chosen(found, 1, None)))

    def __call__(self, *arguments: Any, grid: Any = 1, block: Any = None, **keywords: Any) -> Any:
        given: dict[str, Any] = self._kernel.bound(*arguments, **keywords)
        config = self._chosen(given, grid, block)
        full = {**given, **self._values(config)}
        return self._run(self._variant(config), config, full, grid, block)

    def _values(self, config: Config) -> dict[str, Any]:
        """The arguments that a candidate gives."""
        known = self.__signature__.parameters
        return {**config.values, **{name: n for name, n in config.hints.items() if name in known}}

    def _run(self, kernel: Any, config: Config, full: dict[str, Any], grid: Any, block: Any) -> Any:
        """Run the kernel for a candidate between its hooks."""
        for hook in (self._before, config.pre_hook):
            if hook is not None:
                hook(full)
        found = kernel(grid=grid, block=block, **full)
        if self._after is not None:
            self._after(full)
        return found

    def _variant(self, config: Config) -> Kernel | Tunable:
        options = dict(config.options)
        if (config.num_stages or 1) > 1:
            options.setdefault("load_ahead", True)
        key = tuple(sorted(options.items()))
        if key not in self._variants:
            self._variants[key] = self._kernel.with_options(**options) if key else self._kernel
        return self._variants[key]

    def _chosen(self, given: dict[str, Any], grid: Any, block: Any) -> Config:
        missing = [name for name in self._key if name not in given]
        if missing:
            raise TypeError(f"the key of autotune names {', '.join(missing)}, which the call does not give")
        kinds = [str(getattr(value, "dtype", "")) for value in given.values()]
        values = (_hashable(given[name]) for name in self._key)
        key = (*values, *(kind for kind in kinds if kind))
        if key not in self.best:
            self.best[key] = self._tried(key, given, grid, block)
        return self.best[key]

    def _tried(self, key: tuple[Any, ...], given: dict[str, Any], grid: Any, block: Any) -> Config:
        configs = self._prune(self.configs, given) if self._prune else self.configs
        costs: list[tuple[Config, float]] = []
        failures: list[tuple[Config, Exception]] = []
        for config in configs:
            try:
                costs.append((config, self._objective(self._trial(config, given, grid, block))))
            except (DiagnosticError, ValueError) as e:
                failures.append((config, e))
        if not costs:
            raise self._failed(failures)
        self.costs[key] = costs
        return min(costs, key=lambda pair: pair[1])[0]

    def _failed(self, failures: Sequence[tuple[Config, Exception]]) -> Exception:
        """The error if no candidate is left: with one its own, with several the reason of each."""
        if not failures:
            return ValueError(f"autotune of kernel '{self.__name__}': no Config is left to be tried")
        if len(failures) == 1:
            return failures[0][1].with_traceback(None)
        code = code_of(self.__kernel_function__)
        where = code.position(code.node)
        found = [Diagnostic("error", f"all configurations of kernel '{self.__name__}' failed", where)]
        sources: list[Any] = [code.source]
        for config, e in failures:
            known = e.diagnostics if isinstance(e, DiagnosticError) else [Diagnostic("error", str(e), where)]
            found += [Diagnostic(d.severity, f"Config({config}): {d.message}", d.position, d.notes) for d in known]
            sources += e.sources if isinstance(e, DiagnosticError) else []
        return DiagnosticError(found, sources)

    def _trial(self, config: Config, given: dict[str, Any], grid: Any, block: Any) -> Trial:
        kernel: Any = self._variant(config)
        full = kernel.completed(**{**given, **self._values(config)})
        arrays: dict[int, Any] = {}

        def copied(value: Any) -> Any:
            if isinstance(value, tuple) and has_arrays(value):
                return tuple(map(copied, value))
            if not isinstance(value, np.ndarray):
                return value
            return arrays.setdefault(id(value), np.ascontiguousarray(value) if is_reversed(value) else copy_of(value))

        copies = {name: copied(value) for name, value in full.items()}

        def reset() -> None:
            for name in self._zeroed:
                copies[name][...] = 0
            for name in self._restored:
                copies[name][...] = full[name]

        def run(**copies: Any) -> Any:
            reset()
            return self._run(kernel, config, copies, grid, block)

        def counted() -> Any:
            def launch(grid: Any, block: Any, **full: Any) -> Any:
                version, passed, values = kernel.bind(**full)
                return version(*passed, grid=grid(values) if callable(grid) else grid, block=block, counted=True)

            reset()
            return self._run(launch, config, copies, grid, block)

        return Trial(config, functools.partial(kernel.compile, **copies), functools.partial(run, **copies), counted)

    def with_options(self, **options: Any) -> Autotuner:
        inner = self._kernel.with_options(**options)
        more = (self._before, self._after, self._zeroed, self._restored)
        return Autotuner(inner, self.configs, self._key, self._objective, self._prune, *more)

    def __repr__(self) -> str:
        return f"<{len(self.configs)} configs of {self._kernel!r}>"


def _hashable(value: Any) -> Any:
    return value.shape if isinstance(value, np.ndarray) else value


def _by_triton(rules: Mapping[str, Any]) -> Prune:
    """The candidates that Triton's `prune_configs_by` leaves: an early choice, and the `top_k` of a model's times."""
    unknown = rules.keys() - {"early_config_prune", "perf_model", "top_k"}
    if unknown:
        raise ValueError(f"'prune_configs_by' has early_config_prune, perf_model and top_k, not {', '.join(unknown)}")
    early, model, most = (rules.get(name) for name in ("early_config_prune", "perf_model", "top_k"))

    def prune(configs: Sequence[Config], given: dict[str, Any]) -> Sequence[Config]:
        left = list(early(list(configs), given, **given)) if early else list(configs)
        count = len(left) if most is None else int(len(left) * most) if isinstance(most, float) else most
        if model is None or count >= len(left):
            return left
        return sorted(left, key=lambda config: model(**{**given, **config.all_kwargs()}))[:count]

    return prune


def autotune(
    configs: Sequence[Config],
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
) -> Callable[[Kernel | Tunable], Autotuner]:
    """Try candidates for arguments and options of a kernel, and keep the best.

        @xegpu_py.autotune([Config({"BLOCK": 64}), Config({"BLOCK": 128}, {"prefetch": 1})], key=["n"])
        @xegpu_py.jit
        def scale(X, Y, n, BLOCK: Constexpr): ...

    Candidates are tried when the kernel is first called with new values of the key or new element types. Trials run on
    copies of the arrays. Candidates that cannot be compiled are skipped.

    Args:
        configs: the candidates.
        key: names of arguments; numbers count by their values, arrays by their shapes.
        prune_configs_by: Triton's dictionary with `early_config_prune`, `perf_model` and `top_k`.
        reset_to_zero: arrays whose copies are set to zero before each run of a trial.
        restore_value: arrays whose copies are restored before each run of a trial.
        pre_hook, post_hook: called with the arguments by name before and after each run.
        warmup, rep: the milliseconds of the objective "time", as of `testing.do_bench`.
        use_cuda_graph, cache_results: Triton's, without effect.
        do_bench: times a function, called with it and `quantiles`, instead of an objective.
        objective: the cost to minimize: "time", seconds of the engine; "executed", instructions that run; "size",
            instructions of the program, without a run; or a function of a `Trial`.
        prune: selects the candidates to try, from all candidates and the arguments by name.

    Raises:
        ValueError: if the objective's name is unknown.
        TypeError: if a candidate or a list names a parameter that the kernel does not have.
    """
    chosen = OBJECTIVES.get(objective) if isinstance(objective, str) else objective
    if chosen is None:
        raise ValueError(f"'objective' must be one of {', '.join(OBJECTIVES)}, but got {objective!r}")
    if do_bench is not None or (objective == "time" and (warmup is not None or rep is not None)):
        bench = do_bench or functools.partial(testing.do_bench, warmup=warmup or 25, rep=rep or 100)

        def chosen(trial: Trial) -> float:
            return float(bench(trial.run, quantiles=(0.5, 0.2, 0.8))[0])

    prune = prune if prune_configs_by is None else _by_triton(prune_configs_by)
    zeroed, restored = tuple(reset_to_zero or ()), tuple(restore_value or ())
    return lambda kernel: Autotuner(kernel, configs, key, chosen, prune, pre_hook, post_hook, zeroed, restored)


def heuristics(
    rules: Mapping[str, Callable[[dict[str, Any]], Any]],
) -> Callable[[Kernel | Tunable], Heuristics]:
    """Compute arguments that a call does not give from the others, which each rule gets by name.

    @xegpu_py.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
    """
    return lambda kernel: Heuristics(kernel, rules)
