"""A random program: its text, its arguments, and its evaluation on engines and reference evaluator."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import xegpu_py
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.host_arrays import parse_argument
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.upstream import import_upstream

from . import hosted


class Failure(AssertionError):
    """A program was refused, failed while it ran, or two evaluations of it differ in a byte."""


@dataclass(frozen=True)
class Program:
    """A kernel and a launch of it.

    Attributes:
        text: MLIR, or vISA assembly.
        arguments: its arguments, as words of `xegpu-run`.
        passes: a pipeline that runs before the module is compiled, but not before the reference evaluates it.
        host: whether it consists of MLIR's own ops, so that MLIR's lowering to LLVM runs it too.
        upstream: the level of a program in upstream's XeGPU; empty for others.
        expected: the arrays after the run as numpy computes them; empty if it does not.
    """

    text: str
    arguments: tuple[str, ...]
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (1,)
    target: str = "pvcxt"
    registers: int | None = None
    model: str = "fma"
    passes: str = ""
    host: bool = False
    upstream: Any = ""
    expected: tuple[Any, ...] = field(default=(), compare=False)

    @property
    def is_assembly(self) -> bool:
        """Whether it is vISA assembly, which the reference evaluator does not run."""
        return self.text.lstrip().startswith(".version")

    def arrays(self) -> list[Any]:
        """New copies of the arguments."""
        return [parse_argument(word) for word in self.arguments]

    def module(self, verify: bool = True) -> Any:
        """The program in our dialects."""
        if self.upstream:
            return import_upstream(self.text, level=self.upstream, verify=verify)
        return xegpu_py.parse(self.text, verify=verify)

    def launched(self, **options: Any) -> list[Any]:
        """Compile and run the program. Returns its arguments after the run.

        Raises:
            DiagnosticError: if it is refused, or fails.
        """
        arguments = self.arrays()
        options |= {"target": self.target, "registers": self.registers, "model": self.model}
        options |= {"threads": 1, "cache": "off", "progress": False}
        if self.is_assembly:
            Kernel.from_assembly(self.text, **options)(*arguments, grid=self.grid, block=self.block)
            return arguments
        module = self.module()
        if self.passes:
            xegpu_py.run_pipeline(module, f"builtin.module({self.passes})")
        xegpu_py.compile(module, **options)(*arguments, grid=self.grid, block=self.block)
        return arguments

    def evaluated(self) -> list[Any]:
        """Run the program on the reference evaluator. Returns its arguments after the run.

        Raises:
            DiagnosticError: if it fails.
        """
        from xegpu_py import reference

        arguments = self.arrays()
        module = self.module()
        with module.context:
            reference.run(module, None, arguments, grid=self.grid, block=self.block, model=self.model)
        return arguments

    def by_upstream(self) -> list[Any]:
        """Run the program as upstream's own passes lower it, in stock mlir-opt. Returns its arguments after the run.

        Raises:
            DiagnosticError: if they do not lower it.
        """
        arguments = self.arrays()
        module = import_upstream(self.text, level=self.upstream, via="upstream")
        lanes = 1 if self.upstream == "lane" else 16
        options = {"target": self.target, "engine": "interpreter", "cache": "off"}
        xegpu_py.compile(module, **options)(*arguments, grid=self.grid, block=(self.block[0] * lanes,))
        return arguments

    def hosted(self) -> list[Any]:
        """Run the program as MLIR lowers it to LLVM. Returns its arguments after the run."""
        arguments = self.arrays()
        hosted.run(self.text, arguments, self.grid, self.block)
        return arguments

    def command(self, file: str = "%s", engine: str = "") -> str:
        """The call of `xegpu-run` that runs it."""
        words = [file, *self.arguments]
        words += [f"--grid {','.join(map(str, self.grid))}"] if self.grid != (1,) else []
        words += [f"--block {','.join(map(str, self.block))}"] if self.block != (1,) else []
        words += [f"--target {self.target}"] if self.target != "pvcxt" else []
        words += [f"--registers {self.registers}"] if self.registers else []
        words += [f"--model {self.model}"] if self.model != "fma" else []
        words += ["--import-upstream"] if self.upstream else []
        words += [f"--engine {engine}"] if engine else []
        return "xegpu-run " + " ".join(words)

    def lit(self, why: str = "") -> str:
        """The text of a lit test that compares the engines and the reference evaluator."""
        names = [str(i) for i, word in enumerate(self.arguments) if not re.match(r"(u?i|b?f)\d+:", word)]
        if self.is_assembly:
            return _comment(why) + f"// RUN: {self.command(engine='both')}\n\n{self.text}"
        first = f"xegpu-opt --pass-pipeline='builtin.module({self.passes})' %s | " if self.passes else ""
        lines = []
        for engine, start in (("both", first), ("reference", "")):
            file = "-" if start else "%s"
            outputs = " ".join(f"-o {n}=%t.{engine}.{n}.npy" for n in names)
            lines.append(f"{start}{self.command(file, engine)} {outputs}")
        lines += [f"cmp %t.both.{n}.npy %t.reference.{n}.npy" for n in names]
        return _comment(why) + "".join(f"// RUN: {line}\n" for line in lines) + "\n" + self.text


def _comment(text: str) -> str:
    return "".join(f"// {line}".rstrip() + "\n" for line in text.splitlines()) + ("\n" if text else "")


FOLDED = re.compile(r"arith\.(addf|subf|mulf|divf|(min|max)(imum|num)f)|<(add|mul|(min|max)(imum|num)f)>")
"""Ops, and kinds of reductions, that MLIR's folder replaces by an operand if they change no number: a NaN keeps its bits.

The reference evaluator does not fold, and so has the canonical NaN there."""


def difference(wanted: Sequence[Any], found: Sequence[Any], names: tuple[str, str], nans: str = "") -> str | None:
    """The first difference between the arrays of two runs; None if there is none.

    Args:
        nans: which NaNs compare equal: "any", or with "folded" any that was found and the wanted canonical one, whose
            sign may have been changed.
    """
    for number, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if not isinstance(a, np.ndarray) or a.tobytes() == b.tobytes():
            continue
        unlike = a.reshape(-1).view(np.uint8).reshape(a.size, -1) != b.reshape(-1).view(np.uint8).reshape(a.size, -1)
        places = np.flatnonzero(unlike.any(axis=1))
        if nans and a.dtype.kind not in "iu":
            x, y = a.reshape(-1)[places], b.reshape(-1)[places]
            canonical = np.array([np.nan, -np.nan]).astype(a.dtype).view(f"u{a.itemsize}")
            equal = np.isin(x.view(canonical.dtype), canonical) if nans == "folded" else True
            places = places[~(np.isnan(x) & np.isnan(y) & equal)]
            if not places.size:
                continue
        at = np.unravel_index(places[0], a.shape)
        bits = [x[at].tobytes()[::-1].hex() for x in (a, b)]
        where = ", ".join(map(str, at))
        return (
            f"argument {number} at [{where}]: {a[at]} (0x{bits[0]}) by {names[0]}, {b[at]} (0x{bits[1]}) by {names[1]}; "
            f"{len(places)} of {a.size} elements differ"
        )
    return None


LIMITS: dict[str, str] = {
    r"target 'dg2' does not divide f64": "dg2 has no division of f64",
    r"target 'dg2' has no f64 square root": "dg2 has no square roots of f64",
    r"variable '\w+' has \d+ bytes, but a thread has \d+": "a vector that each lane has whole exceeds the registers",
}
"""Diagnostics by which a valid program may be refused, as regular expressions, and why: limits of a target."""


def limit_of(error: DiagnosticError) -> str | None:
    """The limit of a target that an error names; None if it names none."""
    text = error.diagnostics[0].message if error.diagnostics else str(error)
    return next((why for pattern, why in LIMITS.items() if re.search(pattern, text)), None)


def check(program: Program, evaluators: Sequence[str] = ("reference",)) -> str:
    """Compare the interpreter with the JIT and with further evaluators.

    Args:
        evaluators: of "reference", "plain" (the interpreter, without visa-optimize) and "upstream" (the passes of stock
            mlir-opt). A program of MLIR's own ops is also compared with MLIR's lowering to LLVM ("host").

    Returns:
        "ran", or why the program was refused, if a target may refuse it.

    Raises:
        Failure: if results differ, or the program was refused for another reason.
    """
    try:
        found = program.launched(engine="both")
    except DiagnosticError as error:
        limit = limit_of(error)
        if limit:
            return limit
        raise Failure(f"{error}") from error
    runs: dict[str, Callable[[], list[Any]]] = {
        "numpy": lambda: list(program.expected),
        "reference": program.evaluated,
        "plain": lambda: program.launched(engine="interpreter", optimize=False),
        "host": program.hosted,
        "upstream": program.by_upstream,
    }
    further = [name for name, given in (("numpy", program.expected), ("host", program.host)) if given]
    for name in (*evaluators, *further):
        if program.is_assembly or (name == "upstream" and not program.upstream):
            continue
        try:
            wanted = runs[name]()
        except DiagnosticError as error:
            if name == "upstream":
                # Upstream's passes do not lower every program that means something.
                continue
            raise Failure(f"{name}: {error}") from error
        folded = name == "reference" and FOLDED.search(program.text) is not None
        nans = "any" if name in ("host", "numpy") else "folded" if folded else ""
        unlike = difference(wanted, found, (name, "the engines"), nans)
        if unlike:
            raise Failure(unlike)
    return "ran"
