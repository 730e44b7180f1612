"""The generators as hypothesis' strategies, whose failures shrink."""

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from .program import Program

LEVELS = ("xetile", "xegpu_vc", "xegpu_simt", "nested", "visa", "host", "core", "upstream", "triton")
"""The levels, each a module of this package with a function `program`."""


def generator(level: str) -> Callable[[random.Random], Program]:
    """The function that makes a program of a level from random numbers."""
    written: Callable[[random.Random], Program] = importlib.import_module(f"{__package__}.{level}").program
    return lambda r: with_options(r, with_order(r, written(r)))


def with_order(r: random.Random, program: Program) -> Program:
    """The program; some programs with reductions add by increasing index, as their module says."""
    if program.is_assembly or program.host or program.upstream or "reduc" not in program.text or r.random() < 0.75:
        return program
    module = re.compile(r"(gpu\.module @\w+) \{")
    return replace(program, text=module.sub(r'\1 attributes {xegpu.reduction_order = "sequential"} {', program.text))


def with_options(r: random.Random, program: Program) -> Program:
    """The program; some programs are lowered in advance, with options that `compile` does not use by default.

    These are: no visa-optimize, prefetches or loads an iteration ahead, 256 registers, and arrays of any size and
    alignment.
    """
    if program.is_assembly or program.passes or program.upstream or "tt.func" in program.text or r.random() < 0.75:
        return program
    grf = program.registers or r.choice([128, 256])
    options = f"target={program.target} grf={grf} unaligned=true optimize={r.choice(['true', 'false', 'false'])}"
    passes = f"xegpu-to-visa-pipeline{{{options}}}"
    if "xetile." in program.text:
        ahead = f"prefetch-distance={r.choice([0, 1, 3])} load-ahead={r.choice(['true', 'false'])}"
        passes = f"xetile-to-xegpu-pipeline{{target={program.target} grf={grf} {ahead}}},{passes}"
    return replace(program, passes=passes)


class Drawn(random.Random):
    """Random numbers that hypothesis draws. It shrinks to smaller ones: the first choices, and no rare cases."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        super().__init__(0)
        self._draw = draw

    def _randbelow(self, n: int) -> int:
        return int(self._draw(st.integers(0, n - 1)))

    def getrandbits(self, k: int) -> int:
        return int(self._draw(st.integers(0, (1 << k) - 1)))

    def random(self) -> float:
        # Rare cases are tested with `random() < ...`.
        return 1 - int(self._draw(st.integers(1, 1000))) / 1001

    def choices(
        self, population: Sequence[Any], weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        """As `random.Random.choices`, for weights that are integers."""
        found = []
        for _ in range(k):
            rest = self._randbelow(sum(weights))
            for item, weight in zip(population, weights):
                rest -= weight
                if rest < 0:
                    found.append(item)
                    break
        return found


@st.composite
def programs(draw: Any, level: str) -> Program:
    """Programs of a level."""
    return generator(level)(Drawn(draw))
