"""Save what the project makes of many programs and how fast, and compare it after a change that must not change it.

    python benchmarks/replay.py SAVE before.json [--programs 100] [--only hashes,figures,sizes]
    python benchmarks/replay.py COMPARE before.json [after.json]

- Hashes of vISA text, of LLVM IR for three CPUs and of results: of all kernels of test/run, examples, docs, benchmarks
  and the tile language's suite, and of random programs of each level with fixed seeds; of the output of commands in
  docs. Diagnostics of the files test/**/invalid*.mlir.
- Figures: time to a first kernel, time of lowering, and ratios of GEMMs and row kernels to numpy, each by its own
  benchmark.
- Sizes: files, lines and imports of the product.

`COMPARE` without a second file saves this checkout's with the same options, and compares it. It lists by name what has
changed, prints a table of each part, and its exit status is 1 if a hash or a diagnostic has changed. All is reached by
public names, so that one file can be compared across moves of modules; only `native_texts` looks inside.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import functools
import hashlib
import io
import json
import os
import random
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import tokenize
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest import mock

from xegpu_py.tools import driver

ROOT = Path(__file__).parent.parent
HOSTS = {"avx2": "haswell", "avx512": "skylake-avx512", "neon": "neoverse-n1"}
"""The CPUs for which LLVM IR is made."""
PARTS = ("hashes", "figures", "sizes")
PRODUCT = ("xegpu_py", "dialects", "passes", "tools")
TOGETHER = 20
"""Random programs of a task."""
SECONDS = 120
"""The longest time of a case; one that takes longer is noted as an error."""

Row = dict[str, str]
"""What is kept of a case: a hash, or a text, by column."""


def digest(data: str | bytes) -> str:
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()[:16]


# Kernels that are launched, or only compiled.


def native_texts(kernel: Any) -> dict[str, str]:
    """The LLVM IR of a kernel for each of `HOSTS`. No public name gives it: this alone follows moves of modules."""
    from xegpu_py.engines.jit.host import host_by_name
    from xegpu_py.engines.jit.thread_function import functions_of_program
    from xegpu_py.visa.dataflow import flow_of

    # Before, a kernel had another object that ran it.
    # Of older commits the kernel has it, or its launcher.
    layout = getattr(kernel, "executor", getattr(kernel, "launcher", kernel)).layout
    program, divergent = kernel.program, flow_of(kernel.program).divergent
    model = kernel.options.model
    return {
        column: "\n".join(functions_of_program(program, layout, model, host_by_name(name), divergent, False))
        for column, name in HOSTS.items()
    }


_natives: dict[tuple[str, ...], Row] = {}


def hashes(compiled: Any) -> Row:
    """Hashes of a compiled kernel's vISA text and LLVM IR."""
    from xegpu_py.visa import assembly

    text, options = assembly.write([compiled.program]), compiled.options
    key = digest(text), options.model, str(options.registers), options.target
    if key not in _natives:
        _natives[key] = {"visa": key[0], **{column: digest(ir) for column, ir in native_texts(compiled).items()}}
    return _natives[key]


class Recorder:
    """Notes each launch of a kernel, while it is entered, and all rows of cases.

    Attributes:
        rows: by the name of a case, and the number of the launch if a case has several.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.case = ""
        self._inside = False

    def add(self, row: Row) -> None:
        name, number = self.case, 1
        while name in self.rows:
            number += 1
            name = f"{self.case} #{number}"
        self.rows[name] = row

    @contextlib.contextmanager
    def of(self, case: str) -> Iterator[None]:
        """Name the launches inside, and note an error."""
        import numpy as np

        self.case = case
        # Pages of docs take random numbers without a seed.
        np.random.seed(0)

        def late(*_: object) -> None:
            raise TimeoutError(f"takes longer than {SECONDS} s")

        signal.signal(signal.SIGALRM, late)
        signal.alarm(SECONDS)
        try:
            yield
        except (Exception, SystemExit) as error:  # programs for hardware that is missing exit
            self.add({"error": f"{type(error).__name__}: {error}".replace(str(ROOT), "").splitlines()[0]})
        finally:
            signal.alarm(0)

    def __enter__(self) -> Recorder:
        import xegpu_py

        self._replaced = [(kind, kind.__call__) for kind in (xegpu_py.Kernel,)]
        for kind, call in self._replaced:
            kind.__call__ = self._noting(call)
        return self

    def __exit__(self, *_: object) -> None:
        for kind, call in self._replaced:
            kind.__call__ = call

    def _noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        import numpy as np

        def launched(kernel: Any, *arguments: Any, **options: Any) -> Any:
            if self._inside:
                return call(kernel, *arguments, **options)
            self._inside = True
            try:
                done = call(kernel, *arguments, **options)
            finally:
                self._inside = False
            runs = kernel
            if hasattr(kernel, "version_for"):
                runs = kernel.version_for(arguments, options.get("grid", 1))
            left = b"".join(a.tobytes() for a in arguments if isinstance(a, np.ndarray))
            self.add({**hashes(runs), "results": digest(left)})
            return done

        return launched


# Cases: each function adds the rows of one task.


def random_programs(record: Recorder, level: str, first: int, end: int) -> None:
    """Random programs of a level; the text is kept too, to tell other programs from another lowering."""
    from generators.strategies import generator

    for seed in range(first, end):
        with record.of(f"random {level} {seed}"):
            program = generator(level)(random.Random(seed))
            program.launched(engine="jit")
        record.rows[record.case]["text"] = digest(program.text)


def suite(record: Recorder) -> None:
    """The tile language's suite of kernels."""
    import numpy as np
    from kernels import attention, elementwise, irregular, products, rows  # noqa: F401
    from kernels.suite import RUNS

    import xegpu_py

    for name, make in RUNS.items():
        with record.of(f"language {name}"):
            run = make(np.random.default_rng(zlib.crc32(name.encode())))
            xegpu_py.jit(run.kernel, engine="jit")(*run.arguments, grid=run.grid, **run.constants)


@functools.cache
def modules() -> dict[str, str]:
    """Texts of modules by name."""
    import kernel_sizes

    return dict(kernel_sizes.texts())


def module(record: Recorder, name: str) -> None:
    """Kernels that are only compiled, with as many registers as there are, and for unaligned arrays too."""
    import kernel_sizes

    with record.of(f"compiled {name}"):
        for title, compiled in kernel_sizes.kernels_of(name, modules()[name]):
            record.case = f"compiled {title}"
            record.add(hashes(compiled))


def example(record: Recorder, path: str) -> None:
    """A program of examples."""
    with record.of(path), contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(ROOT / path), run_name="__main__")


def page(record: Recorder, path: str) -> None:
    """The commands and the Python code of a page of docs."""
    from markdown import _COMMAND, blocks

    names: dict[str, Any] = {"__name__": "__main__"}
    modules_before = set(sys.modules)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        for number, block in enumerate(blocks((ROOT / path).read_text())):
            # The tile language reads the source of a function from its file.
            name = (block.file or f"block_{number}").rstrip("+")
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            with open(name, "a" if (block.file or "").endswith("+") else "w") as file:
                file.write(block.text)
            with record.of(f"{path} {number}"), contextlib.redirect_stdout(io.StringIO()):
                if block.language == "python":
                    exec(compile(block.text, f"{folder}/{name}", "exec"), names)
                elif block.language == "console":
                    for found in _COMMAND.finditer(block.text):
                        out, err = command(found[1].replace("\\\n", " "))
                        record.add({"output": digest((out + err).replace(folder, ""))})
        sys.path.remove(folder)
        os.chdir(ROOT)
    for name in sys.modules.keys() - modules_before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


def lit_lines(path: str, folder: str) -> list[str]:
    """The commands of a lit test, each run on one engine."""
    text = (ROOT / path).read_text()
    joined = re.sub(r"\\\n// RUN:", " ", "\n".join(re.findall(r"^// RUN:.*$", text, re.MULTILINE)))
    lines = [line.removeprefix("// RUN:").strip() for line in joined.splitlines()]
    lines = [re.sub(r"--engine[ =]both", "", line) for line in lines if not re.search("--engine[ =]reference", line)]
    for name, value in {"%s": str(ROOT / path), "%t": f"{folder}/t", "%S": str((ROOT / path).parent)}.items():
        lines = [line.replace(name, value) for line in lines]
    return lines


def lit_test(record: Recorder, path: str) -> None:
    """The kernels that a lit test runs."""
    with tempfile.TemporaryDirectory() as folder:
        for line in lit_lines(path, folder):
            with record.of(path):
                command(line)


def diagnostics(record: Recorder, path: str) -> None:
    """The diagnostics of a lit test of errors: its commands without the comparison with the expected ones."""
    with tempfile.TemporaryDirectory() as folder:
        for line in lit_lines(path, folder):
            with record.of(f"diagnostics {path}"):
                err = command(line.replace("--verify-diagnostics", ""))[1].replace(f"{ROOT}/", "")
                kept = [x for x in err.splitlines() if re.search(r"\b(error|warning|remark|note): ", x)]
                record.add({"diagnostics": "\n".join(kept)})


def command(line: str) -> tuple[str, str]:
    """What the project's tools print, of the first commands of a pipeline: standard output, and errors."""
    out, errors = "", ""
    for part in line.split(" | "):
        words = shlex.split(part)
        words = [w for w in words[words[:1] == ["not"] :] if w != "2>&1"]
        tool = entry_points(group="console_scripts", name=words[0]) if words else ()
        if not tool or not words[0].startswith("xegpu-"):
            break
        file = words[words.index(">") + 1] if ">" in words else None
        out, err = _called(tool[words[0]].load(), words[: words.index(">")] if file else words, out)
        errors += err
        if file:
            Path(file).write_text(out)
    return out, errors


def _called(main: Callable[[], object], words: list[str], given: str) -> tuple[str, str]:
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (given.encode(), b"", b"")]
    kept = sys.stdin, sys.stdout, sys.stderr, sys.argv
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.argv = words
    try:
        # A tool goes on in a fork of its process, which is a worker here.
        with mock.patch.object(driver.working_child, "step_of_child", return_value=bytearray(1024)):
            main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    finally:
        sys.stdin, sys.stdout, sys.stderr, sys.argv = kept
    for stream in streams[1:]:
        stream.flush()
    return streams[1].buffer.getvalue().decode(), streams[2].buffer.getvalue().decode()


def tasks(programs: int) -> Iterator[tuple[Any, ...]]:
    """Functions above with their arguments, those that take long first."""
    from generators.strategies import LEVELS

    yield (suite,)
    # Pages of dialects show signatures.
    for path in sorted({*ROOT.glob("docs/**/*.md"), ROOT / "README.md"} - {*ROOT.glob("docs/dialects/*")}):
        yield page, str(path.relative_to(ROOT))
    for path in sorted(ROOT.glob("examples/*.py")):
        yield example, str(path.relative_to(ROOT))
    for first in range(0, programs, TOGETHER):
        for level in LEVELS:
            yield random_programs, level, first, min(first + TOGETHER, programs)
    for name in modules():
        yield module, name
    for path in sorted(p for p in ROOT.glob("test/run/**/*") if p.suffix in (".mlir", ".visaasm")):
        yield lit_test, str(path.relative_to(ROOT))
    for path in sorted(ROOT.glob("test/**/invalid*.mlir")):
        yield diagnostics, str(path.relative_to(ROOT))


def work(task: tuple[Any, ...]) -> dict[str, Row]:
    """The rows of a task."""
    with Recorder() as record:
        task[0](record, *task[1:])
    return record.rows


def prepared() -> None:
    """Prepare a process for `work`."""
    os.environ["XEGPU_PY_CACHE"] = "off"
    for folder in ("test/unit/language", "examples", "test/unit", "test"):
        sys.path.insert(0, str(ROOT / folder))


def all_hashes(programs: int, workers: int) -> dict[str, Row]:
    """The rows of all tasks."""
    prepared()
    rows: dict[str, Row] = {}
    found = list(tasks(programs))
    with ProcessPoolExecutor(workers, initializer=prepared) as pool:
        running = {pool.submit(work, task): task for task in found}
        for number, done in enumerate(as_completed(running), 1):
            rows |= done.result()
            if sys.stderr.isatty():
                print(f"\r{number} of {len(found)} tasks", end="", file=sys.stderr)
    return dict(sorted(rows.items()))


# Figures and sizes.


def _printed(arguments: Sequence[str]) -> str:
    """What another benchmark prints."""
    env = {**os.environ, "XEGPU_PY_CACHE": "off", "OPENBLAS_NUM_THREADS": "1"}
    name, *more = arguments
    run = [sys.executable, str(ROOT / "benchmarks" / name), *more]
    return subprocess.run(run, env=env, check=True, capture_output=True, text=True, timeout=600).stdout


def figures() -> dict[str, float]:
    """The figures of other benchmarks: of seconds and microseconds the least of several runs, and ratios to numpy."""
    found: dict[str, float] = {}
    for arguments, times in ((["first_kernel.py"], 7), (["lowering.py", "--json=5000"], 2)):
        for _ in range(times):
            for name, taken in json.loads(_printed(arguments)).items():
                found[name] = min(taken, found.get(name, taken))
    for dtype in ("bf16", "f16", "i8", "f8E5M2"):
        text = _printed(["gemm.py", "--cpu-time", "--times=5", f"--dtype={dtype}"])
        found[f"gemm {dtype}: ratio"] = float(re.findall(r"ratio (\S+)", text)[-1])
    text = _printed(["row_kernels.py", "--cpu-time", "--times=5", "--rows=4096"])
    for name, ratio in re.findall(r"^(.*?)  +\S+ +\S+ ms.* (\S+) times as fast", text, re.MULTILINE):
        found[f"{name}: ratio"] = float(ratio)
    return found


def _without_comments(text: str) -> int:
    """The lines that have more than blanks, comments and docstrings."""
    tree, skipped = ast.parse(text), set()
    for node in ast.walk(tree):
        for child in getattr(node, "body", None) or () if not isinstance(node, (ast.Lambda, ast.IfExp)) else ():
            # Strings below assignments are documentation too.
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant) and type(child.value.value) is str:
                skipped.update(range(child.lineno, (child.end_lineno or 0) + 1))
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in nothing:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - skipped)


def sizes() -> dict[str, int]:
    """Files, lines and imports of the product."""
    found: Counter[str] = Counter()
    listed = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix != ".py" or path.is_symlink():
            continue
        text = path.read_text()
        tree = ast.parse(text)
        imports = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
        functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        local = {n for f in functions for n in ast.walk(f) if isinstance(n, (ast.Import, ast.ImportFrom))}
        found.update({"files": 1, "lines": text.count("\n"), "lines of code": _without_comments(text)})
        found.update({"imports": len(imports), "imports in functions": len(local)})
    return dict(found)


# Comparison.


def compare(old: dict[str, Any], new: dict[str, Any], most: int) -> bool:
    """Print what has changed. Returns whether a hash or a diagnostic has."""
    changed = False
    if "hashes" in old and "hashes" in new:
        changed = _compare_rows(old["hashes"], new["hashes"], most)
    for part in ("figures", "sizes"):
        if part in old and part in new:
            print(f"\n{part:44}{'before':>12}{'after':>12}{'ratio':>8}")
            for name in [*old[part], *(n for n in new[part] if n not in old[part])]:
                a, b = old[part].get(name), new[part].get(name)
                ratio = f"{b / a:8.3f}" if a and b is not None else ""
                print(f"  {name:42}{_number(a)}{_number(b)}{ratio}")
    return changed


def _number(value: float | None) -> str:
    if value is None:
        return f"{'-':>12}"
    return f"{value:12,}" if isinstance(value, int) else f"{value:12.4g}"


def _compare_rows(old: dict[str, Row], new: dict[str, Row], most: int) -> bool:
    counts: dict[str, Counter[str]] = {}
    listed = 0
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            unlike, what = list(before or after or {}), "gone" if after is None else "new"
        else:
            unlike = [c for c in {**before, **after} if before.get(c) != after.get(c)]
            what = "another program" if "text" in unlike else "changed"
        for column in {**(before or {}), **(after or {})}:
            counts.setdefault(column, Counter())[what if column in unlike else "same"] += 1
        if not unlike:
            continue
        listed += 1
        if listed <= most:
            print(f"{name}: {what}{': ' + ', '.join(unlike) if what == 'changed' else ''}")
            if before and after:
                for column in {"error", "diagnostics"} & set(unlike):
                    _print_difference(before.get(column, ""), after.get(column, ""))
    if listed > most:
        print(f"... and {listed - most} more; --most lists them")
    kinds = ("same", "changed", "another program", "gone", "new")
    print(f"\n{'hashes':14}" + "".join(f"{kind:>17}" for kind in kinds))
    for column, count in counts.items():
        print(f"  {column:12}" + "".join(f"{count[kind]:17,}" for kind in kinds))
    return bool(listed)


def _print_difference(before: str, after: str) -> None:
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            print(f"    {line}")


def saved(parts: Iterable[str], programs: int, workers: int) -> dict[str, Any]:
    """All parts of this checkout."""
    found: dict[str, Any] = {"programs": programs}
    # Figures first, while nothing else of this process uses the processors.
    if "figures" in parts:
        found["figures"] = figures()
    if "hashes" in parts:
        found["hashes"] = all_hashes(programs, workers)
    if "sizes" in parts:
        found["sizes"] = sizes()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # Optional, since `make bench` runs all benchmarks without arguments.
    parser.add_argument("action", choices=("SAVE", "COMPARE"), nargs="?")
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("other", type=Path, nargs="?", help="COMPARE: by default what this checkout makes")
    parser.add_argument("--programs", type=int, help="random programs of each level, by default 1,000, or as in FILE")
    parser.add_argument("--only", help=f"of {','.join(PARTS)}, by default all, or as in FILE")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--most", type=int, default=60, help="how many changes are listed by name")
    args = parser.parse_args()
    if args.action is None or args.file is None:
        print(f"{parser.prog}: skipped: needs arguments: {' '.join(parser.format_usage().split())}")
        return 0
    before = json.loads(args.file.read_text()) if args.action == "COMPARE" else {}
    parts = args.only.split(",") if args.only else [p for p in PARTS if p in before] or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only takes {','.join(PARTS)}, not {','.join(sorted(unknown))}")
    if args.other:
        after = json.loads(args.other.read_text())
    else:
        programs = args.programs if args.programs is not None else before.get("programs", 1000)
        after = saved(parts, programs, args.workers)
    if args.action == "SAVE":
        args.file.write_text(json.dumps(after, indent=1) + "\n")
        return 0
    return int(compare({p: before[p] for p in parts if p in before}, after, args.most))


if __name__ == "__main__":
    sys.exit(main())
