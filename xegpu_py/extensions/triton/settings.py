"""How Triton programs run: the GPU, the checks and the autotuner, by environment variables and `options`."""

from __future__ import annotations

import os
from contextlib import ContextDecorator
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from xegpu_py.deferred import deferred

if TYPE_CHECKING:
    from xegpu_py.runtime import options as kernel_options
else:
    # Triton imports this module at its start.
    kernel_options = deferred("xegpu_py.runtime.options")

AUTOTUNE = ("time", "first", "model")
"""How an autotuner finds its configuration: by the time of native code on this machine, the first one that fits, or by
the model of the kernel's time on the GPU."""

NUM_WARPS = "ttg.num-warps"
"""The attribute of modules of TTIR with Triton's `num_warps`, by the name that it has in TritonGPU's IR."""

DIVISION = "division"
"""The check that finds integers that are divided by zero."""


class Settings(Struct, frozen=True):
    """How kernels are compiled and run.

    Attributes:
        target: the GPU's name.
        check: checks of the launch: `memory`, which is always on, `bounds`, `races`, `uninit` and `DIVISION`, or `all`.
        engine: "jit", "interpreter" or "both"; None for the default.
        threads: operating system threads of a launch; None for one for each processor.
        autotune: one of `AUTOTUNE`.
    """

    target: str
    check: tuple[str, ...] = ()
    engine: str | None = None
    threads: int | None = None
    autotune: str = "time"

    def __post_init__(self) -> None:
        if self.autotune not in AUTOTUNE:
            raise ValueError(f"'autotune' must be one of {', '.join(AUTOTUNE)}, but got {self.autotune!r}")
        legal = (*kernel_options.CHECKS, DIVISION, kernel_options.ALL_CHECKS)
        for name in self.check:
            if name not in legal:
                raise ValueError(f"unknown check '{name}'; there are {', '.join(legal)}")

    @property
    def of_launch(self) -> tuple[str, ...]:
        """The checks that the engines make."""
        return tuple(name for name in self.check if name != DIVISION)

    @property
    def divisions(self) -> bool:
        """Whether integers that are divided by zero are found, by assertions that are compiled into the kernel."""
        return DIVISION in self.check or kernel_options.ALL_CHECKS in self.check


def of_environment() -> Settings:
    """The settings that environment variables give: `XEGPU_PY_CHECK` and `XEGPU_PY_AUTOTUNE`.

    Raises:
        ValueError: if one of them has a value that is not legal.
    """
    check = os.environ.get("XEGPU_PY_CHECK", "")
    return Settings("bmg", _checks(check), autotune=os.environ.get("XEGPU_PY_AUTOTUNE") or "time")


def _checks(given: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    names = given.split(",") if isinstance(given, str) else given
    return tuple(name.strip() for name in names if name.strip())


TUNING: ContextVar[bool] = ContextVar("xegpu_py.triton.tuning", default=False)
"""Whether an autotuner is trying a configuration, which it skips if that does not fit the GPU."""

_CHANGED: ContextVar[Settings | None] = ContextVar("xegpu_py.triton.options", default=None)

_DEFAULT: list[Settings] = []


def current() -> Settings:
    """The settings of a launch: those of the innermost `options`, and else those of the environment."""
    changed = _CHANGED.get()
    if changed is not None:
        return changed
    if not _DEFAULT:
        _DEFAULT.append(of_environment())
    return _DEFAULT[0]


class options(ContextDecorator):
    """Change how Triton kernels run, in a `with` block or in a function.

        with xegpu_py.triton.options(check="races,uninit"):
            kernel[grid](x, y)

        @xegpu_py.triton.options(engine="interpreter")
        def test(): ...

    Args:
        changes: the fields of `Settings`: target, check, engine, threads, autotune. `check` is a name, several with
            commas between, or a list.

    Raises:
        TypeError: if there is no such option.
        ValueError: if a value is not legal.
    """

    def __init__(self, **changes: Any) -> None:
        for name in changes:
            if name not in Settings.__struct_fields__:
                raise TypeError(f"options() got an unexpected keyword argument '{name}'")
        if "check" in changes:
            changes["check"] = _checks(changes["check"])
        self._changes = changes
        structs.replace(of_environment(), **changes)
        self._tokens: list[Token[Settings | None]] = []

    def __enter__(self) -> Settings:
        settings = structs.replace(current(), **self._changes)
        self._tokens.append(_CHANGED.set(settings))
        return settings

    def __exit__(self, *raised: object) -> None:
        _CHANGED.reset(self._tokens.pop())
