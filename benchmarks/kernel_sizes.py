"""Sizes of compiled kernels of test/run, examples and benchmarks: instructions, registers, loads and dpas in loops."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from mlir import ir
from support import gemm_text
from support.gemm_kernel import BITS, GemmKernel

import xegpu_py
from xegpu_py.dialects import visa
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program

ROOT = Path(__file__).parent.parent
TARGETS = ("pvcxt", "pvc", "any")
COLUMNS = ("instructions", "registers", "loads in loops", "dpas in loops")


def texts() -> Iterator[tuple[str, str]]:
    """The modules by name."""
    for path in [*sorted((ROOT / "test" / "run").rglob("*.mlir")), *sorted((ROOT / "examples").glob("*.mlir"))]:
        yield str(path.relative_to(ROOT)), path.read_text()
    sys.path.append(str(ROOT / "examples"))
    from gemm_xetile import gemm

    yield "examples/gemm_xetile.py", str(gemm.module)
    for dtype in BITS:
        yield f"benchmarks/gemm.py {dtype}", GemmKernel(dtype, 512).text()
    yield "benchmarks/lowering.py", gemm_text.ours(2_000)


def kernels(lenient: bool = False) -> Iterator[tuple[str, xegpu_py.CompiledKernel]]:
    """Each kernel of the modules; one of XeTile also for arrays that are not aligned.

    Args:
        lenient: whether to leave out modules with errors, as older checkouts do not know all ops.
    """
    for name, text in texts():
        try:
            yield from kernels_of(name, text)
        except DiagnosticError:
            if not lenient:
                raise


def kernels_of(name: str, text: str) -> Iterator[tuple[str, xegpu_py.CompiledKernel]]:
    """The kernels of a module, with their titles; see `kernels`."""
    module = xegpu_py.parse(text)
    found = visa.kernels(module.operation)
    for func in found:
        title = f"{name} @{visa.name_of(func)}" if len(found) > 1 else name
        yield title, _compiled(module, func, None)
        if "xetile." in text:
            count = len(func.regions[0].blocks[0].arguments)
            yield f"{title}, unaligned", _compiled(module, func, range(count))


def _compiled(module: xegpu_py.Module, func: ir.Operation, unaligned: range | None) -> xegpu_py.CompiledKernel:
    """A kernel lowered for the first target that supports it."""
    for target in TARGETS:
        try:
            return xegpu_py.compile(
                module, visa.name_of(func), target=target, registers=256, cache="off", unaligned=unaligned
            )
        except DiagnosticError:
            if target == TARGETS[-1]:
                raise
    raise AssertionError


def in_loops(program: Program, category: str) -> int:
    """Instructions of a category between a label and a jump back to it."""
    labels = program.labels
    inside: set[int] = set()
    for at, inst in enumerate(program.instructions):
        to = labels.get(inst.values.get("label", ""))
        if inst.name in ("jmp", "goto") and to is not None and to <= at:
            inside.update(range(to, at))
    return sum(INSTRUCTIONS[program.instructions[at].name].category == category for at in inside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--json", action="store_true", help="print JSON: by name the columns, and a hash of the assembly"
    )
    parser.add_argument("--seconds", action="store_true", help="print JSON: by name processor seconds of lowering")
    args = parser.parse_args()
    if args.seconds:
        next(kernels(lenient=True))
        taken, start = {}, time.process_time()
        for name, _ in kernels(lenient=True):
            now = time.process_time()
            taken[name], start = now - start, now
        print(json.dumps(taken))
        return
    rows = {}
    for name, compiled in kernels(lenient=args.json):
        # Of older commits the kernel has the allocation.
        allocation = getattr(compiled, "executor", compiled).allocation
        program, pressure = compiled.program, allocation.pressure
        counts = [len(program.instructions), pressure, in_loops(program, "load"), in_loops(program, "dpas")]
        rows[name] = [*counts, hashlib.sha256(compiled.asm.encode()).hexdigest()[:16]]
    if args.json:
        print(json.dumps(rows))
        return
    print(f"{'':52}" + "".join(f"{c:>16}" for c in COLUMNS))
    for name, row in rows.items():
        print(f"{name:52}" + "".join(f"{n:16,}" for n in row[:-1]))


if __name__ == "__main__":
    main()
