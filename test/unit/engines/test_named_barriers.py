"""Random kernels with named barriers: which threads meet, in which order, and what they read of each other."""

from __future__ import annotations

import random

import numpy as np
import pytest
from effort import examples

import xegpu_py


class Meetings:
    """A kernel whose threads exchange numbers through shared local memory, and what each of them has in the end.

    Attributes:
        threads: threads of a workgroup.
        values: the number of each thread.
    """

    def __init__(self, r: random.Random, threads: int, barriers: int) -> None:
        self.r, self.threads, self.barriers = r, threads, barriers
        self.lines: list[str] = []
        self.values = list(range(threads))
        self.name = "%t"
        self.members = [sorted(r.sample(range(threads), r.randint(2, threads))) for _ in range(barriers)]

    def op(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value: int, kind: str = "i32") -> str:
        return self.op(f"arith.constant {value} : {kind}")

    def pairs(self) -> tuple[str, dict[int, int], str, str]:
        """Each thread meets its neighbour, at a barrier whose number it computes."""
        one = self.constant(1)
        pair = self.op(f"arith.shrui %t, {one} : i32")
        number = self.op(f"arith.addi {pair}, {self.constant(self.barriers)} : i32")
        barrier = self.barrier(self.op(f"arith.trunci {number} : i32 to i8"), 2)
        return barrier, {t: t ^ 1 for t in range(self.threads)}, self.op(f"arith.xori %t, {one} : i32"), ""

    def some(self) -> tuple[str, dict[int, int], str, str]:
        """Some threads meet, each of which reads of another of them; the others do not know the barrier."""
        number = self.r.randrange(self.barriers)
        members = self.members[number]
        barrier, step = self.barrier(self.constant(number, "i8"), len(members)), self.r.randrange(1, len(members))
        partner = {t: members[(i + step) % len(members)] for i, t in enumerate(members)}
        source, is_member = self.constant(0), self.op("arith.constant false")
        for t, other in partner.items():
            equal = self.op(f"arith.cmpi eq, %t, {self.constant(t)} : i32")
            source = self.op(f"arith.select {equal}, {self.constant(other)}, {source} : i32")
            is_member = self.op(f"arith.ori {is_member}, {equal} : i1")
        return barrier, partner, source, is_member

    def barrier(self, number: str, count: int) -> str:
        return self.op(f"xegpu.init_nbarrier {number}, {self.constant(count, 'i8')} : i8, i8 -> !xegpu.nbarrier")

    def meet(self) -> None:
        """Threads store their numbers, meet, read those of others, and meet again, some times."""
        is_paired = self.threads % 2 == 0 and self.r.random() < 0.3
        barrier, partner, source, is_member = self.pairs() if is_paired else self.some()
        rounds, factor = self.r.randint(1, 3), self.r.choice([3, 5, -7])
        place = self.op(f"arith.index_cast {source} : i32 to index")
        bounds = [self.constant(n, "index") for n in (0, rounds, 1)]
        times, kind = self.constant(factor), f"memref<{self.threads}xi32, 3>"
        loop = f"""scf.for %i = {bounds[0]} to {bounds[1]} step {bounds[2]} iter_args(%x = {self.name}) -> (i32) {{
          memref.store %x, %slm[%thread] : {kind}
          xegpu.fence {{scope = workgroup, memory_kind = shared}}
          xegpu.nbarrier_arrive {barrier}
          %own = arith.muli %x, {times} : i32
          xegpu.nbarrier_wait {barrier}
          %theirs = memref.load %slm[{place}] : {kind}
          %sum = arith.addi %own, %theirs : i32
          xegpu.nbarrier_arrive {barrier}
          xegpu.nbarrier_wait {barrier}
          scf.yield %sum : i32
        }}"""
        if is_member:
            inner = f"%found = {loop}\n scf.yield %found : i32"
            loop = f"scf.if {is_member} -> (i32) {{\n {inner}\n }} else {{\n scf.yield {self.name} : i32\n }}"
        self.name = self.op(loop)
        for _ in range(rounds):
            self.values = [
                (x * factor + self.values[partner[t]] + 2**31) % 2**32 - 2**31 if t in partner else x
                for t, x in enumerate(self.values)
            ]

    def text(self) -> str:
        body = "\n    ".join(self.lines)
        return f"""gpu.module @kernels {{
  gpu.func @meetings(%out: memref<?xi32>) kernel {{
    xegpu.alloc_nbarrier {self.barriers + self.threads // 2}
    %slm = memref.alloc() : memref<{self.threads}xi32, 3>
    %thread = gpu.thread_id x
    %t = arith.index_cast %thread : index to i32
    {body}
    memref.store {self.name}, %out[%thread] : memref<?xi32>
    gpu.return
  }}
}}"""


@pytest.mark.parametrize("seed", range(examples(16)))
def test_random_meetings(seed: int) -> None:
    r = random.Random(seed)
    made = Meetings(r, r.choice([2, 3, 4, 6, 8, 16]), r.randint(1, 6))
    for _ in range(r.randint(1, 5)):
        made.meet()
        if r.random() < 0.3:
            made.lines.append("gpu.barrier")
    options: list[dict[str, object]] = [{"engine": "both"}, {"engine": "jit", "check": ("races",)}]
    for given in (*options, {"engine": "interpreter", "check": ("races", "uninit")}, {"engine": "reference"}):
        out = np.zeros(made.threads, np.int32)
        xegpu_py.compile(made.text(), **given)(out, block=made.threads)
        np.testing.assert_array_equal(out, made.values)
