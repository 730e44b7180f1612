"""Processor time of starts in new processes, printed as JSON: `import xegpu_py`, and `xegpu-opt` on a kernel."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

GEMM = Path(__file__).resolve().parents[1] / "examples" / "gemm.mlir"

RUNS = 5


def seconds(command: list[str]) -> float:
    """The least processor time of a command over several runs."""
    taken = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def main() -> None:
    opt = [sys.executable, "-m", "xegpu_py.tools.xegpu_opt", str(GEMM)]
    figures = {
        "import mlir.ir": seconds([sys.executable, "-c", "import mlir.ir"]),
        "import xegpu_py": seconds([sys.executable, "-c", "import xegpu_py"]),
        "xegpu-opt examples/gemm.mlir": seconds(opt),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
