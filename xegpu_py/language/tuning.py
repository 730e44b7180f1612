"""Choose the values of `Constexpr` parameters and options: `autotune` by trial, `heuristics` by rule."""

from __future__ import annotations

import functools
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Literal, cast

import numpy as np

from xegpu_py.compiled import CompiledKernel
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.language.kernel import Kernel
from xegpu_py.numerics.arrays import copy_of
from xegpu_py.runtime.launch import Statistics

RUNS = 3
"""The number of timed runs of a candidate; the best time counts."""


@dataclass(frozen=True)
class Config:
    """A candidate of `autotune`.

    Attributes:
        values: arguments of the kernel by name.
        options: of `xegpu_py.compile`, such as `prefetch` and `registers`.
    """

    values: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in (*self.values.items(), *self.options.items()))


@dataclass(frozen=True)
class Trial:
    """A candidate with the arguments of a call: the argument of an objective.

    Attributes:
        config: the candidate.
        kernel: the kernel compiled for it.
        run: launches it on copies of the arrays.
    """

    config: Config
    kernel: CompiledKernel
    run: Callable[[], Statistics]


Objective = Callable[[Trial], float]
"""Gives the cost of a trial, which tuning minimizes."""


def _time(trial: Trial) -> float:
    """The seconds of a run of the engine, the best of `RUNS`."""
    trial.run()
    found = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        trial.run()
        found.append(time.perf_counter() - begun)
    return min(found)


OBJECTIVES: dict[str, Objective] = {
    "time": _time,
    "executed": lambda trial: float(trial.run().executed.sum()),
    "size": lambda trial: float(len(trial.kernel.kernel.program.instructions)),
}
"""Objectives by name; `autotune` says what they are."""

ObjectiveName = Literal["time", "executed", "size"]


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
        prune: Callable[[Sequence[Config], dict[str, Any]], Sequence[Config]] | None,
    ) -> None:
        super().__init__(kernel)
        if not configs:
            raise ValueError("autotune needs a Config")
        self.configs, self._key, self._objective, self._prune = tuple(configs), tuple(key), objective, prune
        self.best: dict[tuple[Any, ...], Config] = {}
        self.costs: dict[tuple[Any, ...], list[tuple[Config, float]]] = {}
        self._variants: dict[tuple[tuple[str, Any], ...], Kernel | Tunable] = {}

    def completed(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._kernel.bound(*arguments, **keywords)
        return self._kernel.completed(**found | dict(self._chosen(found, 1, None).values))

    def __call__(self, *arguments: Any, grid: Any = 1, block: Any = None, **keywords: Any) -> Any:
        given: dict[str, Any] = self._kernel.bound(*arguments, **keywords)
        config = self._chosen(given, grid, block)
        return self._variant(config)(grid=grid, block=block, **{**given, **config.values})

    def _variant(self, config: Config) -> Kernel | Tunable:
        key = tuple(sorted(config.options.items()))
        if key not in self._variants:
            self._variants[key] = self._kernel.with_options(**config.options) if key else self._kernel
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
        failure: Exception | None = None
        for config in configs:
            try:
                costs.append((config, self._objective(self._trial(config, given, grid, block))))
            except (DiagnosticError, ValueError) as e:
                failure = failure or e
        if not costs:
            raise failure or ValueError("no Config is left to be tried")
        self.costs[key] = costs
        return min(costs, key=lambda pair: pair[1])[0]

    def _trial(self, config: Config, given: dict[str, Any], grid: Any, block: Any) -> Trial:
        kernel = self._variant(config)
        arguments = {**given, **config.values}
        full = kernel.completed(**arguments)
        arrays = {id(value): copy_of(value) for value in full.values() if isinstance(value, np.ndarray)}
        copies = {name: arrays.get(id(value), value) for name, value in full.items()}
        compiled: CompiledKernel = kernel.compile(**copies)
        run = functools.partial(kernel, grid=grid, block=block, **copies)
        return Trial(config, compiled, run)

    def with_options(self, **options: Any) -> Autotuner:
        inner = self._kernel.with_options(**options)
        return Autotuner(inner, self.configs, self._key, self._objective, self._prune)

    def __repr__(self) -> str:
        return f"<{len(self.configs)} configs of {self._kernel!r}>"


def _hashable(value: Any) -> Any:
    return value.shape if isinstance(value, np.ndarray) else value


def autotune(
    configs: Sequence[Config],
    key: Sequence[str] = (),
    *,
    objective: Objective | ObjectiveName = "time",
    prune: Callable[[Sequence[Config], dict[str, Any]], Sequence[Config]] | None = None,
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
        objective: the cost to minimize: "time", seconds of the engine; "executed", instructions that run; "size",
            instructions of the program, without a run; or a function of a `Trial`.
        prune: selects the candidates to try, from all candidates and the arguments by name.

    Raises:
        ValueError: if the objective's name is unknown.
    """
    chosen = OBJECTIVES.get(objective) if isinstance(objective, str) else objective
    if chosen is None:
        raise ValueError(f"'objective' must be one of {', '.join(OBJECTIVES)}, but got {objective!r}")
    return lambda kernel: Autotuner(kernel, configs, key, chosen, prune)


def heuristics(
    rules: Mapping[str, Callable[[dict[str, Any]], Any]],
) -> Callable[[Kernel | Tunable], Heuristics]:
    """Compute arguments that a call does not give from the others, which each rule gets by name.

    @xegpu_py.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
    """
    return lambda kernel: Heuristics(kernel, rules)
