"""Runs Triton programs of others, unmodified, from checkouts outside of the repository, and prints a table of results.

    python test/extensions/triton/run_programs.py ~/triton/python/tutorials

The tutorials are those of github.com/triton-lang/triton at the commit below. Their calls of benchmarks, which measure a
GPU, are left out, and of those that only define their test it is called, on a small shape.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

COMMIT = "910ba2e98 of github.com/triton-lang/triton-cpu, which has a copy of Triton's"

CALLS = {
    "05-layer-norm": "test_layer_norm(115, 640, torch.float16)",
    "06-fused-attention": 'test_op(1, 2, 256, 64, True, False, "bwd", "triton-fp16", torch.float16)',
}
"""What is called of a tutorial that only defines its test."""


def text_of(path: Path) -> str:
    """A tutorial without the runs of its benchmarks, which calls its test."""
    call_of_benchmark = r"^([ \t]*)\w*bench\w*\.run\((?:[^()]|\([^()]*\))*\)"
    text = re.sub(call_of_benchmark, r"\1pass", path.read_text(), flags=re.MULTILINE)
    call = next((call for name, call in CALLS.items() if path.stem.startswith(name)), "")
    return f"{text}\n{call}\n"


def run(path: Path, folder: Path, limit: float) -> tuple[str, float, str]:
    """Whether a tutorial ran, its processor time, and the last line that it printed."""
    copy = folder / path.name
    copy.write_text(text_of(path))
    defaults = {"XEGPU_PY_AUTOTUNE": "first", "XEGPU_PY_TRITON_DEVICE": "cpu", "MPLBACKEND": "agg"}
    environment = {**defaults, **os.environ}
    start = os.times()
    try:
        done = subprocess.run(
            [sys.executable, copy], capture_output=True, text=True, timeout=limit, cwd=path.parent, env=environment
        )
    except subprocess.TimeoutExpired:
        return "timeout", limit, ""
    end = os.times()
    seconds = end.children_user + end.children_system - start.children_user - start.children_system
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return "ran" if done.returncode == 0 else "failed", seconds, lines[-1] if lines else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tutorials", type=Path, help=f"the folder of the tutorials, tried at {COMMIT}")
    parser.add_argument("--only", default="", help="a regular expression of their names")
    parser.add_argument("--limit", type=float, default=900, help="seconds for each")
    parser.add_argument("--folder", type=Path, default=Path("/tmp") / f"triton-programs-{time.time_ns()}")
    args = parser.parse_args()
    args.folder.mkdir(parents=True)
    print(f"{'program':34} {'result':8} {'seconds':>8}  last line")
    for path in sorted(args.tutorials.glob("[0-9]*.py")):
        if re.search(args.only, path.stem):
            result, seconds, line = run(path, args.folder, args.limit)
            print(f"{path.stem:34} {result:8} {seconds:8.1f}  {line[:100]}", flush=True)


if __name__ == "__main__":
    main()
