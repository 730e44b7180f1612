"""Planted mistakes: lowering rules broken one at a time, and how long the generators take to find each.

    PYTHONPATH=unit:. python -m generators.mistakes --seconds 30 --workers 2

Each mistake replaces a line in a copy of the repository. The generators run programs with the copy until one fails, and
report the number of programs; failures are not shrunken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mistake:
    """A line to replace.

    Attributes:
        what: the effect of the mistake.
        level: the level whose programs have to find it.
    """

    what: str
    level: str
    file: str
    old: str
    new: str


MISTAKES = (
    Mistake("update_nd_offset forgets where the block was", "xegpu_vc", "passes/xegpu_to_visa/memory_messages.py",
            "moved = tuple(low.add(a, b) if i < inner else low.add_clamped(a, b) for", "moved = tuple(b for"),
    Mistake("a surface is one byte less wide", "xegpu_vc", "passes/xegpu_to_visa/memory_messages.py",
            "surface = (across, rows,", "surface = (_less_one(low, low.add(width, low.index(-1)), size), rows,"),
    Mistake("subi has its operands swapped", "xegpu_vc", "passes/xegpu_to_visa/arith.py",
            'apply("add", name, count, b, a, modifiers=("-",))', 'apply("add", name, count, a, b, modifiers=("-",))'),
    Mistake("shrsi shifts zeros in", "xegpu_vc", "passes/xegpu_to_visa/arith.py",
            '"shrs": "asr"', '"shrs": "shr"'),
    Mistake("comparisons of unsigned integers have a sign", "xegpu_vc", "passes/xegpu_to_visa/arith.py",
            'if predicate.startswith("u"):', "if False:"),
    Mistake("select has its operands swapped", "xegpu_vc", "passes/xegpu_to_visa/arith.py",
            "low.emit.select(mask, name, count, a, b)", "low.emit.select(mask, name, count, b, a)"),
    Mistake("floordivsi rounds toward zero", "xegpu_vc", "passes/xegpu_to_visa/arith.py",
            '"floordivs": ("floor", True)', '"floordivs": ("div", True)'),
    Mistake("update_offset moves by bytes", "xegpu_vc", "passes/xegpu_to_visa/memory_messages.py",
            "lanes.addresses, low.in_bytes(deltas, size)", "lanes.addresses, low.in_bytes(deltas, 1)"),
    Mistake("masks of scatters beyond 16 lanes are those of the first 16", "xegpu_vc", "passes/xegpu_to_visa/memory_messages.py",
            "Guard(p)) for i, p in enumerate(mask.predicates)]", "Guard(mask.predicates[0])) for i, p in enumerate(mask.predicates)]"),
    Mistake("vnni_axis = 0 does not pack", "xegpu_vc", "passes/analysis/target_messages.py",
            "transposed, vnni_axis == 0)", "transposed, False)"),
    Mistake("atomic maxs has no sign", "xegpu_vc", "passes/analysis/target_messages.py",
            '"maxs": "smax"', '"maxs": "umax"'),
    Mistake("the last bytes of a line are dropped", "xegpu_vc", "passes/analysis/target_messages.py",
            "message_sizes(total % 4, (2, 1))]", "message_sizes(total % 4 // 2 * 2, (2,))]"),
    Mistake("elements that vector ops move come in reverse", "xegpu_vc", "passes/xegpu_to_visa/vector.py",
            "return gather(low, low.reg(op.operands[0]), order)", "return gather(low, low.reg(op.operands[0]), order.ravel()[::-1])"),
    Mistake("loops of scf.for take a step more", "xegpu_vc", "passes/xegpu_to_visa/control_and_gpu.py",
            'saturate=overflows)\n        continues = emit.compare("lt"', 'saturate=overflows)\n        continues = emit.compare("le"'),
    Mistake("a split dpas takes the first columns of B for all", "xegpu_vc", "passes/xegpu_unroll/unroll_patterns.py",
            "b = factor(view.rhs, (k, blocks.step), column, 0)", "b = factor(view.rhs, (k, blocks.step), (0, column[1]), 0)"),
    Mistake("parts distributed round robin lie side by side", "xetile", "passes/rewriting/subgroup_layout_conversion.py",
            "add(first, r * grid * data)", "add(first, r * data)"),
    Mistake("padding is left out where blocks are loaded", "xetile", "passes/xetile_to_xegpu.py",
            "kind, remaining), loaded, padding)", "kind, remaining), loaded, loaded)"),
    Mistake("the other branch of a divergent scf.if is taken by the lanes of the first", "xegpu_simt", "passes/xegpu_simt_to_vc/simt_vectorization.py",
            'return build.binary("xori", condition, True)', "return condition"),
    Mistake("gpu.shuffle up goes down", "xegpu_simt", "passes/xegpu_simt_to_vc/gpu_ops.py",
            '"up": lane_in_row - offset, "down"', '"up": lane_in_row + offset, "down"'),
    Mistake("distributed transposes leave registers where they are", "nested", "passes/vector_distribute.py",
            "for level in range(3) for k in order])", "for level in range(3) for k in range(count)])"),
    Mistake("a cast gives its operand another shape", "upstream", "xegpu_py/upstream/rank_reduction.py",
            "if made in self.shapes and (self.shapes[made], self.splits[made]) != known:", "if False:"),
    Mistake("an imported transposition is dropped", "upstream", "xegpu_py/upstream/rank_reduction.py",
            "if order == sorted(order):", "if True:"),
)  # fmt: skip
"""The rules that are broken."""


def search(level: str, seconds: float, first: int) -> dict[str, object]:
    """Run random programs of a level until one fails, or this process has taken so many seconds of processor time.

    Returns:
        Whether one was found, after how many programs and seconds, and the message.
    """
    from .program import Failure, check
    from .strategies import generator

    generate = generator(level)
    start, cpu = time.monotonic(), time.process_time()
    number, message = 0, ""
    while time.process_time() - cpu < seconds:
        number += 1
        try:
            check(generate(random.Random(first + number)))
        except Failure as error:
            message = str(error).splitlines()[0]
        except Exception as error:  # A mistake may break anything.
            message = f"{type(error).__name__}: {error}"
        if message:
            break
    took = {"seconds": time.monotonic() - start, "cpu": time.process_time() - cpu}
    return {"found": bool(message), "programs": number, "message": message, **took}


def planted(mistake: Mistake, copy: Path) -> None:
    """Copy the package, and plant a mistake in the copy."""
    package = copy / "xegpu_py"
    shutil.copytree(ROOT / "xegpu_py", package, ignore=shutil.ignore_patterns("__pycache__"))
    path = package / mistake.file
    text = path.read_text()
    if text.count(mistake.old) != 1:
        raise ValueError(f"'{mistake.old}' is {text.count(mistake.old)} times in {mistake.file}")
    path.write_text(text.replace(mistake.old, mistake.new))


def try_out(mistake: Mistake, seconds: float, workers: int, first: int) -> dict[str, object]:
    """Let several processes look for a mistake. Returns the report of the first one that finds it."""
    with tempfile.TemporaryDirectory() as folder:
        planted(mistake, Path(folder))
        paths = [folder, str(ROOT / "test" / "unit"), str(ROOT / "test")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "XEGPU_PY_CACHE": "off"}
        running = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "generators.mistakes",
                    "--search",
                    mistake.level,
                    str(first + 100_000 * n),
                    str(seconds),
                ],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=folder,
            )
            for n in range(workers)
        ]
        found: dict[str, object] = {"found": False, "programs": 0, "seconds": seconds, "cpu": 0, "message": ""}
        while any(p.poll() is None for p in running):
            time.sleep(0.1)
            done = [p for p in running if p.poll() is not None]
            if any(p.returncode == 0 for p in done):
                break
        for process in running:
            if process.poll() is None:
                process.terminate()
            text, _ = process.communicate()
            if process.returncode == 0 and text:
                result = json.loads(text)
                found = result if result["found"] or not found["found"] else found
            elif process.returncode not in (0, -15):
                found |= {"found": True, "message": f"exit status {process.returncode}"}
        return found


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        "mistakes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30, help="processor time of each process for each mistake")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of mistakes, from 0")
    parser.add_argument("--search", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.search:
        level, first, seconds = args.search
        print(json.dumps(search(level, float(seconds), int(first))))
        return 0
    total = 0
    numbers = args.only if args.only is not None else range(len(MISTAKES))
    for number in numbers:
        mistake = MISTAKES[number]
        found = try_out(mistake, args.seconds, args.workers, args.seed)
        total += bool(found["found"])
        how = f"{found['programs']:5} programs, {found['seconds']:6.1f} s, {found['cpu']:6.1f} s CPU"
        print(
            f"{number:2} {'found ' if found['found'] else 'MISSED'} {how}: {mistake.what}: {str(found['message'])[:110]}",
            flush=True,
        )
    print(f"{total} of {len(numbers)} found")
    return 0 if total >= 0.95 * len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
