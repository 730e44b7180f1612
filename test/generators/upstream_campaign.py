"""A campaign: random kernels through a pipeline of MLIR's passes, and a reduced kernel of each kind of mistake."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field

from generators.upstream_lanes import random_kernel
from xegpu_py.bisection.reduction import kind_of, reduced, repeated
from xegpu_py.bisection.upstream_stages import Found, check, default_passes
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.upstream.levels import Level

COLUMNS = {"same": "changed", "differs": "differs", "aborts": "aborts", "refuses": "refuses"}
"""The outcomes of which the table has a column, and its title: "changed" has the kernels compared after a pass."""

_OP = re.compile(r"\b(?:arith|math|vector|xegpu|scf|gpu)\.(?!func|return|module|yield|layout|constant)\w+")


class Campaign(Struct):
    """What came of the kernels so far.

    Attributes:
        outcomes: the number of kernels by outcome.
        passes: the number of kernels by pass and outcome; by "same" those whose result the pass did not change.
        found: the kinds of mistakes, each with the number of kernels and the file of a reduced one.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    passes: dict[str, Counter[str]] = field(default_factory=dict)
    found: dict[tuple[str, str, str], tuple[int, Path]] = field(default_factory=dict)

    def add(self, outcome: Found) -> None:
        """Count a kernel."""
        self.outcomes[outcome.outcome] += 1
        for step in dict.fromkeys(outcome.passed):
            self.passes.setdefault(step, Counter())["same"] += 1
        if outcome.step:
            self.passes.setdefault(outcome.step, Counter())[outcome.outcome] += 1

    def table(self) -> str:
        """The passes with the numbers of kernels, and the kinds of mistakes, in Markdown."""
        lines = [f"| pass | {' | '.join(COLUMNS.values())} |", "| --- |" + " ---: |" * len(COLUMNS)]
        for step, counts in self.passes.items():
            numbers = {**counts, "same": counts["same"] + counts["differs"]}
            lines.append(f"| {step} | {' | '.join(str(numbers.get(name, 0)) for name in COLUMNS)} |")
        lines += ["", f"{self.outcomes.total()} kernels: " + ", ".join(f"{n} {o}" for o, n in self.outcomes.items())]
        for (outcome, step, message), (count, file) in self.found.items():
            lines.append(f"{count} times: '{step}' {outcome}: {message}\n    reduced: {file}")
        return "\n".join(lines)


def run(
    levels: Sequence[Level],
    passes: str,
    tool: str,
    out: Path,
    *,
    seconds: float,
    programs: int,
    seed: int,
    say: Callable[[str], None],
) -> Campaign:
    """Send random kernels through a pipeline until the time or their number is up.

    Each kind of difference and abort is reduced once, and written to a file that says how to repeat it.

    Args:
        levels: the levels of the kernels, in turn.
        passes: the pipeline; "" for `default_passes` of each level.
        tool: the path of mlir-opt.
        out: the folder of the reduced kernels.
        seed: the first kernel's number; the kernel of a number is always the same.
        say: called with a line for each new kind of mistake, and for each kernel that cannot be run.

    Raises:
        ValueError: if mlir-opt does not run.
    """
    done, end = Campaign(), time.monotonic() + seconds
    for number in range(seed, seed + programs):
        if time.monotonic() > end:
            break
        level = levels[number % len(levels)]
        made = random_kernel(random.Random(number), level, released=True).program()
        launch, own = made.launch(), passes or default_passes(level)
        try:
            outcome = check(launch, own, tool, expected=made.expected)
        except DiagnosticError as e:
            say(f"kernel {number} of {level} level is not run: {e.diagnostics[0].message}")
            outcome = Found("not imported")
        done.add(outcome)
        if outcome.outcome not in ("differs", "aborts"):
            continue
        key = (outcome.outcome, outcome.step, kind_of(outcome))
        small = launch
        if outcome.outcome == "differs" or key not in done.found:
            small, outcome = reduced(launch, own, tool, outcome)
        if outcome.outcome == "differs":
            # The ops that a wrong result needs are its kind.
            key = (*key[:2], " ".join(sorted(set(_OP.findall(small.text)))))
        count, file = done.found.get(key, (0, out / f"{outcome.outcome}-{number}.mlir"))
        done.found[key] = count + 1, file
        if count == 0:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(repeated(small, own, outcome))
            say(f"kernel {number}: {outcome.report()}\n    reduced: {file}")
    return done
