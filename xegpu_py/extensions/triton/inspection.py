"""The kernels of this package behind those of Triton: their IR at each level, and their profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xegpu_py.extensions.triton.launches import PROFILES, LoadedKernel
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
    found: list[Any] = []
    token = PROFILES.set(found)
    try:
        run()
    finally:
        PROFILES.reset(token)
    return found
