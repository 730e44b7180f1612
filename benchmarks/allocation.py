"""Registers for straight-line programs and for programs of many blocks: processor time, and how it grows."""

from __future__ import annotations

import time

from xegpu_py.ir.diagnostics import Source
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.allocate import allocate
from xegpu_py.visa.program import Program

SIZES = (5_000, 50_000)


def program(count: int, blocks: bool) -> Program:
    """Each variable is computed from two earlier ones. With blocks, a jump may skip every tenth one."""
    lines = [".version 3.8", '.kernel "chain"', ".decl P v_type=P num_elts=1"]
    lines += [f".decl Var{n} v_type=G type=f num_elts=16 align=GRF" for n in range(count)]
    lines += ['.kernel_attr Target="cm"', "    mov (M1_NM, 16) Var0(0,0)<1> 0x0:f"]
    for n in range(1, count):
        sources = f"Var{max(0, n - 7)}(0,0)<1;1,0> Var{n - 1}(0,0)<1;1,0>"
        lines.append(f"    add (M1_NM, 16) Var{n}(0,0)<1> {sources}")
        if blocks and n % 10 == 0:
            lines += [f"    (P) jmp (M1, 1) Skip{n}", f"    mov (M1_NM, 16) Var{n}(0,0)<1> 0x0:f", f"Skip{n}:"]
    return assembly.read(Source("\n".join([*lines, "    ret (M1, 1)", ""]), "chain"))[0]


def main() -> None:
    gpu = TARGETS["pvcxt"]
    for name, blocks in (("straight line", False), ("blocks of ten", True)):
        found = []
        for count in SIZES:
            seconds = []
            for _ in range(3):
                made = program(count, blocks)  # a new one, since a program remembers its allocation
                start = time.process_time()
                allocate(made, gpu)
                seconds.append(time.process_time() - start)
            found.append(min(seconds))
            print(f"{name:16}{count:8,} variables {found[-1]:8.3f} s {found[-1] / count * 1e6:8.1f} us a variable")
        print(f"{name}: {SIZES[1] // SIZES[0]} times the variables take longer by ratio {found[1] / found[0]:.2f}")


if __name__ == "__main__":
    main()
