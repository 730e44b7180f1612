"""The kernels of this package behind those of Triton: their IR at each level, profiles, reports and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xegpu_py.deferred import deferred
from xegpu_py.extensions.triton.launches import MEASUREMENT, LoadedKernel, Measure
from xegpu_py.extensions.triton.settings import current
from xegpu_py.runtime.kernel import Kernel

if TYPE_CHECKING:
    from xegpu_py.extensions.portability import verdicts
    from xegpu_py.extensions.portability.verdicts import Portability
else:
    verdicts = deferred("xegpu_py.extensions.portability.verdicts")


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
    return _measured(run, lambda on, arguments, grid: on("").profile(*arguments, grid=grid))


def fidelity(run: Callable[[], Any], only: Sequence[str] = ()) -> list[Any]:
    """Tell which chosen rules the Triton kernels depend on that a function launches; see `Kernel.fidelity`.

    Args:
        run: launches kernels. Each launch runs once as usual, and once for each alternative.
        only: the names of the choices of which the alternatives run; all by default.

    Returns:
        A report for each launch, in order.
    """
    return _measured(run, lambda on, arguments, grid: on("").fidelity(*arguments, grid=grid, only=only))


def portability(run: Callable[[], Any], targets: str | Sequence[str] = "all") -> list[Portability]:
    """Judge for each GPU the Triton kernels that a function launches; see `xegpu_py.portability`.

        (found,) = xegpu_py.triton.portability(lambda: add[(4,)](x, y, 1000, BLOCK=256), targets="bmg,pvc")
        print(found)

    Args:
        run: launches kernels. Each launch runs on copies of the memory of its tensors for each target, and then once as
            usual. If its own target refuses it, and is one of those judged, the program goes on without it.
        targets: "all", names with commas between them, or a list of names.

    Returns:
        The verdicts for each launch, in order.

    Raises:
        ValueError: if there is no such target.
    """
    chosen = verdicts.targets_of(targets)

    def judge(on: Callable[[str], Kernel], arguments: Sequence[Any], grid: tuple[int, int, int]) -> Portability:
        found = verdicts.portability(on, *arguments, targets=chosen, grid=grid)
        usual = current().target
        if usual not in chosen or found[usual].accepted:
            on("")(*arguments, grid=grid)
        return found

    return _measured(run, judge)


def _measured(run: Callable[[], Any], measure: Measure) -> list[Any]:
    """The results of a measurement for each launch of a function."""
    found: list[Any] = []
    token = MEASUREMENT.set((measure, found))
    try:
        run()
    finally:
        MEASUREMENT.reset(token)
    return found
