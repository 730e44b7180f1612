"""Arguments of a kernel that a wrapper chooses: `heuristics` by rule."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

from xegpu_py.argument_types import checked
from xegpu_py.language.jit_function import Kernel, Named, OnGrid
from xegpu_py.runtime.kernel import CompiledKernel
from xegpu_py.runtime.launch import NO_GRID


class Tunable(ABC):
    """A wrapper that chooses arguments of a kernel. Other attributes are those of the kernel."""

    def __init__(self, kernel: Kernel | Tunable) -> None:
        functools.update_wrapper(self, kernel, updated=())
        self._kernel = kernel
        self.__signature__ = inspect.signature(kernel)

    @property
    def __kernel_function__(self) -> FunctionType:
        function: Any = self._kernel.__kernel_function__
        return cast(FunctionType, function)

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

    @abstractmethod
    def __reduce_by_value__(self) -> tuple[Any, tuple[Any, ...]]:
        """For processes that cannot import its module; such as workers of a cluster."""

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The kernel with a grid; see `Kernel`."""
        return OnGrid(self, grid=grid)

    @abstractmethod
    def _launch(self, method: str, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any, block: Any) -> Any:
        """Choose, and call this method of the kernel."""

    def __call__(self, *arguments: Any, grid: Any = NO_GRID, block: Any = None, **keywords: Any) -> Any:
        """Choose, and run the kernel; see `Kernel`."""
        return self._launch("__call__", arguments, keywords, grid, block)

    def profile(self, *arguments: Any, grid: Any = 1, block: Any = None, **keywords: Any) -> Any:
        """Choose, run the kernel, and count what it does; see `Kernel.profile`."""
        return self._launch("profile", arguments, keywords, grid, block)

    def fidelity(self, *arguments: Any, grid: Any = 1, block: Any = None, **keywords: Any) -> Any:
        """Choose, run the kernel, and tell which chosen rules it depends on; see `Kernel.fidelity`."""
        return self._launch("fidelity", arguments, keywords, grid, block)

    def compile(self, *arguments: Any, grid: Any = 1, block: Any = None, **keywords: Any) -> CompiledKernel:
        """Choose, and compile the kernel; see `Kernel.compile`."""
        kernel, bound_arguments = self.chosen(arguments, keywords, grid, block)
        return kernel.compile(**bound_arguments)

    @abstractmethod
    def with_options(self, **options: Any) -> Kernel | Tunable:
        """The same with other options of `xegpu_py.compile`."""

    @abstractmethod
    def chosen(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any = 1, block: Any = None
    ) -> tuple[Kernel, dict[str, Any]]:
        """The kernel that a call runs, with its options, and all arguments by name."""


class Heuristics(Tunable):
    """A kernel with arguments that are computed from others; see `heuristics`."""

    def __init__(self, kernel: Kernel | Tunable, rules: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        super().__init__(kernel)
        self._rules = rules

    def _ruled(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        bound_arguments: dict[str, Any] = self._kernel.bound(*arguments, **keywords)
        for name, rule in self._rules.items():
            if name not in keywords:
                bound_arguments[name] = rule(Named(self.__name__, bound_arguments))
        return bound_arguments

    def chosen(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any = 1, block: Any = None
    ) -> tuple[Kernel, dict[str, Any]]:
        return self._kernel.chosen((), self._ruled(arguments, keywords), grid, block)

    def _launch(self, method: str, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any, block: Any) -> Any:
        return getattr(self._kernel, method)(grid=grid, block=block, **self._ruled(arguments, keywords))

    def with_options(self, **options: Any) -> Heuristics:
        return Heuristics(self._kernel.with_options(**options), self._rules)

    def __reduce_by_value__(self) -> tuple[Any, tuple[Any, ...]]:
        return Heuristics, (self._kernel, self._rules)

    def __repr__(self) -> str:
        return f"<{', '.join(self._rules)} by heuristics of {self._kernel!r}>"


@checked
def heuristics(
    rules: Mapping[str, Callable[[dict[str, Any]], Any]],
) -> Callable[[Kernel | Tunable], Heuristics]:
    """Compute arguments that a call does not give from the others, which each rule gets by name.

    @xegpu_py.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
    """
    return lambda kernel: Heuristics(kernel, rules)
