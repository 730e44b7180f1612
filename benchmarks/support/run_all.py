"""Run all benchmarks, or the named ones, and list those that were skipped and those that failed.

    python benchmarks/support/run_all.py [FILE...]

A benchmark that needs what this machine lacks says so in one line, and ends with status 0; see `processes.missing`. The
exit status is 1 if one failed.
"""

import subprocess
import sys
from pathlib import Path

SKIPPED = ": skipped: "


def run(file: Path) -> tuple[int, str]:
    """Run a benchmark, whose output is printed as it comes; its status, and the line that says why it was skipped."""
    why = ""
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            if line.startswith(file.name + SKIPPED):
                why = line.strip()
    return running.returncode, why


def main(files: list[Path]) -> int:
    """Run the files one after the other; the exit status."""
    skipped, failed = [], []
    for file in files:
        print(f"== {file}", flush=True)
        status, why = run(file)
        if status:
            failed.append(f"{file}: exit status {status}")
        elif why:
            skipped.append(why)
    print(f"{len(files)} benchmarks, {len(skipped)} skipped, {len(failed)} failed")
    print("".join(f"{line}\n" for line in (*skipped, *failed)), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    named = [Path(word) for word in sys.argv[1:]]
    sys.exit(main(named or sorted(Path(__file__).parents[1].glob("*.py"))))
