"""Parse + verify + print of an unrolled GEMM: each step's time per op, growth with size, and mlir-opt next to it."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from mlir import ir
from support import gemm_text
from support.processes import BIN, medians, mlir_opt, processor_time

from xegpu_py.ir import module as modules
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Source
from xegpu_py.ir.module import verify
from xegpu_py.ir.printer import Printer
from xegpu_py.ir.reader import Reader

SMALL, LARGE = 2_000, 20_000
RUNS = 5


def steps(text: str) -> dict[str, float]:
    """The seconds that each step takes for a module text."""
    taken: dict[str, float] = {}

    def timed(name: str, step: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = step()
        taken[name] = time.process_time() - start
        return found

    source = Source(text, "gemm.mlir")
    with Context() as context:
        timed("check nesting", source.check_nesting)
        rewritten = timed("rewrite", Reader(source, context.irdl_dialects).rewrite)
        module = timed("MLIR parse", lambda: ir.Module.parse(rewritten.text))
        timed("relocate", lambda: modules._relocate(module.operation, rewritten))
        timed("MLIR verify", module.operation.verify)
        assert not timed("our verify", lambda: verify(module.operation))
        printed = timed("MLIR print", lambda: module.operation.get_asm(assume_verified=True))
        timed("print in dialect syntax", lambda: Printer(context.irdl_dialects).rewrite(printed))
    return taken


def per_op(size: int) -> dict[str, float]:
    """The median microseconds per op of each step at a size."""
    text = gemm_text.ours(size)
    runs = [steps(text) for _ in range(RUNS)]
    return {name: median(run[name] for run in runs) / size * 1e6 for name in runs[0]}


def whole_process() -> dict[str, float]:
    """Microseconds of processor time per op of each tool: the difference between the larger and the smaller module."""
    with tempfile.TemporaryDirectory() as folder:
        commands = {}
        for name, tool, text in (
            ("xegpu-opt", BIN / "xegpu-opt", gemm_text.ours),
            ("mlir-opt", mlir_opt(), gemm_text.upstream),
        ):
            for size in (SMALL, LARGE):
                path = Path(folder) / f"{name}-{size}.mlir"
                path.write_text(text(size))
                commands[f"{name} {size}"] = [tool, path]
        found = medians(commands, RUNS, processor_time)
    return {
        name: (found[f"{name} {LARGE}"] - found[f"{name} {SMALL}"]) / (LARGE - SMALL) * 1e6
        for name in ("xegpu-opt", "mlir-opt")
    }


def main() -> None:
    mlir_opt()
    small, large = per_op(SMALL), per_op(LARGE)
    print(f"{'microseconds per op':<24} {SMALL:>9,} ops {LARGE:>9,} ops")
    for name in large:
        print(f"  {name:<22} {small[name]:13.2f} {large[name]:13.2f}")
    total_small, total_large = sum(small.values()), sum(large.values())
    print(f"  {'all steps':<22} {total_small:13.2f} {total_large:13.2f}")
    print(f"time grows by {total_large * LARGE / (total_small * SMALL):.1f} when ops grow by {LARGE // SMALL}")
    tools = whole_process()
    for name, microseconds in tools.items():
        print(f"{name:<10} whole process {microseconds:9.2f} microseconds per op")
    print(f"xegpu-opt against mlir-opt per op: ratio {tools['xegpu-opt'] / tools['mlir-opt']:.2f}")


if __name__ == "__main__":
    main()
