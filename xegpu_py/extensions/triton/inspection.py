"""The kernels of this package behind those of Triton: their IR at each level, profiles and fidelity reports."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xegpu_py.extensions.triton.launches import MEASUREMENT, LoadedKernel
from xegpu_py.runtime.kernel import Kernel


def kernel_of(compiled: Any) -> Kernel:
    """The kernel that the last launch of a Triton kernel ran, with its IR, registers and statistics.

    Args:
        compiled: what a launch returns, a `triton.compiler.CompiledKernel`.

    Raises:
        TypeError: if it is no kernel of this backend.
        ValueError: if it has not been launched.
    """
    loaded = getattr(compiled, "function", None)
    if not isinstance(loaded, LoadedKernel):
        raise TypeError(f"kernel_of takes a kernel that this backend has launched, but got {type(compiled).__name__}")
    if loaded.last is None:
        raise ValueError(f"kernel '{loaded.name}' has not been launched")
    return loaded.last


def profile(run: Callable[[], Any]) -> list[Any]:
    """Count what the Triton kernels do that a function launches; see `Kernel.profile`.

        (found,) = xegpu_py.triton.profile(lambda: add[(4,)](x, y, 1000, BLOCK=256))
        found.save("add.html")

    Args:
        run: launches kernels. Each launch runs once as usual, and once without effect to be counted.

    Returns:
        A profile for each launch, in order.
    """
    return _measured(run, Kernel.profile)


def fidelity(run: Callable[[], Any], only: Sequence[str] = ()) -> list[Any]:
    """Tell which chosen rules the Triton kernels depend on that a function launches; see `Kernel.fidelity`.

    Args:
        run: launches kernels. Each launch runs once as usual, and once for each alternative.
        only: the names of the choices of which the alternatives run; all by default.

    Returns:
        A report for each launch, in order.
    """
    return _measured(run, functools.partial(Kernel.fidelity, only=only))


def _measured(run: Callable[[], Any], measure: Callable[..., Any]) -> list[Any]:
    """The results of a method of kernels for each launch of a function."""
    found: list[Any] = []
    token = MEASUREMENT.set((measure, found))
    try:
        run()
    finally:
        MEASUREMENT.reset(token)
    return found
