"""The time of native compilation, and its growth with a kernel's length."""

from __future__ import annotations

import time
from collections.abc import Callable

from support import gemm_text

import xegpu_py
from xegpu_py.cache import NO_CACHE
from xegpu_py.engines.jit.engine import Jit
from xegpu_py.engines.jit.host import native_host
from xegpu_py.engines.jit.native_code import driver
from xegpu_py.engines.jit.thread_function import functions_of_program
from xegpu_py.runtime.kernel import Kernel

LENGTHS = (500, 2_000, 8_000)
"""The approximate number of instructions."""

VARIABLES = 100


def unrolled_gemm(length: int) -> Kernel:
    """An unrolled GEMM, lowered from XeGPU."""
    return xegpu_py.compile(gemm_text.ours(length * 13 // 8))


def chain(length: int, divergent: bool = False) -> Kernel:
    """Additions of two earlier results; with `divergent`, every tenth addition is for some lanes only."""
    lines = [".version 3.8", '.kernel "chain"', ".decl P v_type=P num_elts=16"]
    lines += [f".decl Sum{n} v_type=G type=f num_elts=16 align=GRF" for n in range(VARIABLES)]
    lines += ['.kernel_attr Target="cm"', ".kernel_attr SimdSize=16"]
    for n in range(length):
        to, one, other = (f"Sum{(n + i) % VARIABLES}(0,0)" for i in (0, 1, 7))
        if divergent and n % 10 == 0:
            lines += [f"    cmp.lt (M1, 16) P {one}<1;1,0> {other}<1;1,0>", f"    (P) goto (M1, 16) Skip{n}"]
        lines.append(f"    add (M1, 16) {to}<1> {one}<1;1,0> {other}<1;1,0>")
        if divergent and n % 10 == 0:
            lines.append(f"Skip{n}:")
    return Kernel.from_assembly("\n".join([*lines, "    ret (M1, 1)", ""]), cache="off")


def seconds(kernel: Kernel) -> tuple[int, float, float]:
    """The number of instructions, the processor time for the module's text, and the total processor time."""
    own = kernel.executor.interpreter
    parts = any(i.name == "goto" for i in own.program.instructions)
    start = time.process_time()
    functions_of_program(own.program, own.layout, own.model, native_host(), parts, False)
    text = time.process_time() - start
    Jit(own.program, own.layout, own.model)
    return len(own.program.instructions), text, time.process_time() - start - text


def main() -> None:
    start = time.process_time()
    driver(NO_CACHE)
    print(f"the loop over workgroups, once a process {time.process_time() - start:6.3f} s")
    kinds: dict[str, Callable[[int], Kernel]] = {
        "unrolled GEMM": unrolled_gemm,
        "additions": chain,
        "divergent lanes": lambda length: chain(length, divergent=True),
    }
    worst = 0.0
    for name, make in kinds.items():
        each = []
        for length in LENGTHS:
            count, text, whole = seconds(make(length))
            each.append(whole / count)
            print(
                f"{name:16}{count:7,} instructions {whole:8.3f} s, {1e3 * whole / count:6.3f} ms each, "
                f"of which text {1e3 * text / count:6.3f} ms"
            )
        worst = max(worst, each[-1] / each[0])
    print(f"time for each instruction, {LENGTHS[-1]:,} against {LENGTHS[0]:,}, at most: ratio {worst:.2f}")


if __name__ == "__main__":
    main()
