"""The cycles of single instructions, by hand from the rates that makers and measurements give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xegpu_py.extensions.profile.gpus import gpu
from xegpu_py.extensions.profile.time_model import (
    BRANCH,
    _joined_products,
    forwarded,
    latency,
    pipe_cycles,
    scheduled,
    taken_out,
    thread_cycles,
)
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import target
from xegpu_py.visa.program import Program

FORMATS = {"F": "f", "H": "hf", "D": "d", "U": "ud", "W": "w", "S": "uw", "Q": "q", "E": "df"}


def program(text: str) -> Program:
    """A program of a few instructions; variables have the letter of their format, and a number."""
    declared = [f".decl {letter}{n} v_type=G type={FORMATS[letter]} num_elts=128 align=GRF"
                for letter in FORMATS for n in range(4)]  # fmt: skip
    lines = "\n".join(f"    {line.strip()}" for line in text.strip().split("\n"))
    head = '.version 3.8\n.kernel "k"\n.decl P v_type=P num_elts=32\n.decl R v_type=A num_elts=4\n'
    head += ".decl A v_type=G type=uq num_elts=1 align=qword\n"
    attributes = '.input A offset=64 size=8\n.kernel_attr Target="cm"\n.kernel_attr SimdSize=16\n'
    return Kernel.from_assembly(f"{head}{chr(10).join(declared)}\n{attributes}{lines}\n    ret (M1, 1)\n").program


def operation(name: str, lanes: int, *names: str) -> str:
    destination, *sources = (f"{n}(0,0)" for n in names)
    region = "<0;1,0>" if lanes == 1 else "<1;1,0>"
    return f"{name} (M1_NM, {lanes}) {destination}<1> {' '.join(source + region for source in sources)}"


B580, MAX1100, A770 = (gpu(name) for name in ("b580", "max1100", "a770"))


@pytest.mark.parametrize(
    ("text", "pipe", "cycles"),
    [
        # An engine of Xe2 and of Xe-HPC computes 16 floats in a cycle, and one of Xe-HPG 8; of 16 bits twice as many.
        (operation("add", 1, "F0", "F1", "F2"), "float", (1, 1, 1)),
        (operation("add", 8, "F0", "F1", "F2"), "float", (1, 1, 1)),
        (operation("add", 16, "F0", "F1", "F2"), "float", (1, 1, 2)),
        (operation("add", 32, "F0", "F1", "F2"), "float", (2, 2, 4)),
        (operation("add", 16, "H0", "H1", "H2"), "float", (1, 1, 1)),
        (operation("add", 32, "H0", "H1", "H2"), "float", (1, 1, 2)),
        (operation("mov", 32, "H0", "H1"), "float", (2, 2, 4)),
        (operation("mov", 32, "F0", "D0"), "float", (2, 2, 4)),
        (operation("mov", 32, "D0", "H0"), "float", (2, 2, 4)),
        # Products and sums of floats read three registers, for which Xe-HPG needs a second cycle.
        (operation("mad", 16, "F0", "F1", "F2", "F3"), "float", (1, 1, 4)),
        (operation("mul", 16, "F0", "F1", "F2"), "float", (1, 1, 2)),
        # Doubles: 1 a cycle, 32/3, and 1 in two cycles.
        (operation("add", 16, "E0", "E1", "E2"), "float", (16, 1.5, 32)),
        (operation("add", 8, "E0", "E1", "E2"), "float", (8, 0.75, 16)),
        (operation("add", 1, "E0", "E1", "E2"), "float", (1, 1, 2)),
        # Integers: products of 32 bits at half of the rate, with a sum at a third; 64 bits take two passes.
        (operation("add", 16, "D0", "D1", "D2"), "int", (1, 1, 2)),
        (operation("mul", 16, "D0", "D1", "D2"), "int", (2, 2, 4)),
        (operation("mulh", 16, "D0", "D1", "D2"), "int", (2, 2, 4)),
        (operation("mul", 16, "D0", "W1", "W2"), "int", (2, 2, 4)),
        (operation("mad", 16, "D0", "D1", "D2", "D3"), "int", (3, 3, 6)),
        (operation("add", 16, "Q0", "Q1", "Q2"), "int", (2, 2, 4)),
        (operation("add", 8, "Q0", "Q1", "Q2"), "int", (1, 1, 2)),
        (operation("mov", 32, "W0", "W1"), "int", (2, 2, 4)),
        # Integers of 16 bits in either pipe.
        (operation("add", 16, "W0", "W1", "W2"), "short", (1, 1, 1)),
        (operation("mul", 32, "W0", "W1", "S2"), "short", (1, 1, 2)),
        ("cmp.lt (M1_NM, 32) P W0(0,0)<1;1,0> W1(0,0)<1;1,0>", "short", (1, 1, 2)),
        ("cmp.lt (M1_NM, 32) P D0(0,0)<1;1,0> D1(0,0)<1;1,0>", "int", (2, 2, 4)),
        # Functions: four cycles for as many lanes as an engine has.
        (operation("inv", 1, "F0", "F1"), "math", (4, 4, 4)),
        (operation("inv", 8, "F0", "F1"), "math", (4, 4, 4)),
        (operation("sqrt", 16, "F0", "F1"), "math", (4, 4, 8)),
        (operation("exp", 32, "F0", "F1"), "math", (8, 8, 16)),
        ("dpas.bf.bf.8.8 (M1, 16) F0.0 F0.0 D1.0 D2(0,0)", "dpas", (16, 8, 16)),
        ("dpas.bf.bf.8.3 (M1, 16) F0.0 F0.0 D1.0 D2(0,0)", "dpas", (6, 3, 6)),
        ("lsc_load.ugm (M1_NM, 1) D0:d32x16t flat[A]:a64", "", (0, 0, 0)),
        ("barrier", "", (0, 0, 0)),
    ],
)  # fmt: skip
def test_cycles_of_a_pipe(text: str, pipe: str, cycles: tuple[float, ...]) -> None:
    inst = program(text).instructions[0]
    assert [pipe_cycles(inst, on) for on in (B580, MAX1100, A770)] == [(pipe, pytest.approx(n)) for n in cycles]


def test_cycles_of_a_sum_that_finds_a_result_in_an_accumulator() -> None:
    inst = program(operation("mad", 16, "F0", "F1", "F2", "F3")).instructions[0]
    assert [pipe_cycles(inst, on, True)[1] for on in (B580, MAX1100, A770)] == [1, 1, pytest.approx(3)]
    inst = program(operation("add", 16, "F0", "F1", "F2")).instructions[0]
    assert [pipe_cycles(inst, on, True)[1] for on in (B580, MAX1100, A770)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        (operation("add", 1, "F0", "F1", "F2"), 10),
        (operation("add", 2, "F0", "F1", "F2"), 6),
        (operation("add", 8, "F0", "F1", "F2"), 6),
        (operation("add", 16, "F0", "F1", "F2"), 7),
        (operation("add", 32, "F0", "F1", "F2"), 9),
        ("cmp.lt (M1_NM, 8) P D0(0,0)<1;1,0> D1(0,0)<1;1,0>", 16),
        ("cmp.lt (M1_NM, 16) P D0(0,0)<1;1,0> D1(0,0)<1;1,0>", 17),
        ("cmp.lt (M1_NM, 32) P D0(0,0)<1;1,0> D1(0,0)<1;1,0>", 19),
        (operation("inv", 1, "F0", "F1"), 17),
        (operation("inv", 8, "F0", "F1"), 17),
        (operation("inv", 16, "F0", "F1"), 21),
        (operation("inv", 32, "F0", "F1"), 25),
        ("dpas.bf.bf.8.8 (M1, 16) F0.0 F0.0 D1.0 D2(0,0)", 37),
        ("dpas.bf.bf.8.1 (M1, 16) F0.0 F0.0 D1.0 D2(0,0)", 23),
    ],
)
def test_cycles_until_a_result_can_be_read(text: str, cycles: float) -> None:
    assert latency(program(text).instructions[0], B580) == cycles


def test_instructions_that_read_the_result_of_the_one_before() -> None:
    text = """
        mov (M1_NM, 16) F0(0,0)<1> F3(0,0)<1;1,0>
        add (M1_NM, 16) F1(0,0)<1> F0(0,0)<1;1,0> F3(0,0)<1;1,0>
        add (M1_NM, 16) F2(0,0)<1> F3(0,0)<1;1,0> F1(0,0)<1;1,0>
        add (M1_NM, 16) F2(0,0)<1> F1(0,0)<1;1,0> F1(0,0)<1;1,0>
        cmp.lt (M1_NM, 16) P F2(0,0)<1;1,0> F3(0,0)<1;1,0>
        mov (M1_NM, 16) F3(0,0)<1> F2(0,0)<1;1,0>
    """
    assert forwarded(program(text)) == {1, 2, 4}


PLACE = "addr_add (M1_NM, 1) R(0)<1> &W0 0x0:uw"
PRODUCT, SUM = operation("mul", 16, "W0", "W1", "W2"), operation("add", 16, "D0", "W0", "D1")


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        ([PRODUCT, SUM], {0}),
        ([SUM, PRODUCT, SUM], set()),  # two uses
        ([SUM, PRODUCT], set()),  # only an earlier one
        ([PRODUCT, PRODUCT, SUM], set()),
        (["(P) " + PRODUCT, SUM], set()),
        ([PRODUCT, operation("mov", 16, "D0", "W0"), SUM], set()),
        ([PRODUCT, SUM, operation("mov", 16, "D2", "W0")], set()),
        ([PRODUCT, operation("mov", 16, "D0", "W0")], set()),
        ([PRODUCT, operation("add", 8, "D0", "W0", "D1")], set()),
        ([operation("mul", 16, "D2", "W1", "W2"), operation("add", 16, "D0", "D2", "D1")], set()),
        ([operation("mul", 16, "H0", "H1", "H2"), operation("add", 16, "F0", "H0", "F1")], set()),
        ([operation("add", 16, "W0", "W1", "W2"), SUM], set()),
        ([operation("mov", 16, "D3", "D2"), PRODUCT, operation("mov", 16, "F3", "F2"), SUM], {1}),
    ],
)
def test_products_that_are_joined_with_a_sum(lines: list[str], joined: set[int]) -> None:
    """A product of 16 bits which is written once, and used once, later, by a sum of as many lanes."""
    joining = program("\n".join(lines))
    assert _joined_products(joining) == joined
    assert joined <= taken_out(joining, target("bmg"))


@pytest.mark.parametrize(
    ("line", "copies"),
    [
        ("mov (M1_NM, 16) D0(0,0)<1> D1(0,0)<1;1,0>", True),
        ("mov (M1_NM, 16) U0(0,0)<1> D1(0,0)<1;1,0>", True),
        ("mov (M1_NM, 16) F0(0,0)<1> F1(0,0)<1;1,0>", True),
        ("(P) mov (M1_NM, 16) D0(0,0)<1> D1(0,0)<1;1,0>", False),
        ("mov.sat (M1_NM, 16) F0(0,0)<1> F1(0,0)<1;1,0>", False),
        ("mov (M1_NM, 16) F0(0,0)<1> (-)F1(0,0)<1;1,0>", False),
        ("mov (M1_NM, 16) D0(0,0)<1> 0x1:d", False),
        ("mov (M1_NM, 1) r[R(0),0]<1>:d D1(0,0)<0;1,0>\n" + PLACE, False),
        ("mov (M1_NM, 16) D0(0,0)<1> W1(0,0)<1;1,0>", False),
        ("mov (M1_NM, 16) D0(0,0)<1> F1(0,0)<1;1,0>", False),
        ("mov (M1_NM, 16) F0(0,0)<1> U1(0,0)<1;1,0>", False),
        ("add (M1_NM, 16) D0(0,0)<1> D1(0,0)<1;1,0> D1(0,0)<1;1,0>", False),
    ],
)
def test_copies_without_a_conversion_are_taken_out(line: str, copies: bool) -> None:
    assert taken_out(program(line), target("bmg")) == ({0} if copies else set())


LOOP = """
    add (M1, 16) D0(0,0)<1> D1(0,0)<1;1,0> 0x1:d
    lsc_load.ugm (M1_NM, 1) D1:d32x16t flat[A]:a64
    (P.any) jmp (M1, 1) First
"""


@pytest.mark.parametrize("before", range(4))
def test_a_loop_counts_its_second_time_wherever_it_begins(before: int) -> None:
    """Its sum waits for what the time before has loaded, but for the jump between them."""
    first = "\n".join([operation("add", 16, "F0", "F1", "F2")] * before)
    looping = program(f"{first}\nFirst:{LOOP}".strip())
    plan, count = scheduled(looping, B580), len(looping.instructions)
    cycles = thread_cycles(looping, plan, [500.0] * count, [1.0] * count)
    assert plan[1] == {before: before + 3} and cycles[before + 1] == 500 - BRANCH and cycles[:before].sum() == before


Tree = list[Any]
"""A program: texts of instructions, "skip" for a jump to its end, and loops, which are such lists."""


def random_tree(rng: np.random.Generator, depth: int) -> Tree:
    kinds = ["sum", "short", "load", "inv", "mov", "dpas", "barrier", "loop", "compare", "skip"]
    tree: Tree = []
    for kind in rng.choice(kinds, 7, p=[0.15, 0.1, 0.15, 0.1, 0.05, 0.1, 0.05, 0.15, 0.1, 0.05]):
        a, b, c = (f"D{n}" for n in rng.integers(0, 4, 3))
        texts = {
            "sum": operation("add", 16, a, b, c), "short": operation("add", 1, a, b, c), "barrier": "barrier",
            "skip": "skip",
            "mov": operation("mov", 16, f"F{a[1]}", f"F{b[1]}"), "inv": operation("inv", 16, f"F{a[1]}", f"F{b[1]}"),
            "compare": f"cmp.lt (M1_NM, 16) P {a}(0,0)<1;1,0> {b}(0,0)<1;1,0>",
            "load": f"lsc_load.ugm (M1_NM, 1) {a}:d32x16t flat[A]:a64",
            "dpas": f"dpas.bf.bf.8.8 (M1, 16) F{a[1]}.0 F{rng.choice([a, b])[1]}.0 {b}.0 {c}(0,0)",
        }  # fmt: skip
        if kind != "loop":
            tree.append(texts[kind])
        elif depth:
            tree.append(random_tree(rng, depth - 1))
    return tree


def written(tree: Tree) -> tuple[list[str], list[list[int]]]:
    """The lines of a program, and the instructions that are executed if each loop runs twice, by blocks.

    The instructions of a block may change places.
    """
    lines: list[str] = []

    def write(tree: Tree) -> list[list[int]]:
        blocks: list[list[int]] = [[]]
        behind = f"Behind{len(lines)}"
        for part in tree:
            if isinstance(part, list):
                start = len(lines)
                lines.append(f"L{start}:")
                body = write(part)
                lines.append(f"(P.any) jmp (M1, 1) L{start}")
                blocks += [*body, [len(lines) - 1], *body, [len(lines) - 1], []]
            elif part in ("barrier", "skip"):
                lines.append(part if part == "barrier" else f"(P.any) jmp (M1, 1) {behind}")
                blocks += [[len(lines) - 1], []]
            else:
                lines.append(part)
                blocks[-1].append(len(lines) - 1)
        lines.append(f"{behind}:")
        return blocks

    return lines, write(tree)


@pytest.mark.parametrize("window", [1, 3, 32])
@pytest.mark.parametrize("seed", range(16))
def test_a_thread_that_is_followed_step_by_step(seed: int, window: int) -> None:
    """Of the next instructions of a block, of those that depend on none before them, the first is next that waits
    least; the cycles of the last time count."""
    rng = np.random.default_rng(seed)
    lines, blocks = written(random_tree(rng, 2))
    followed = program("\n".join(lines))
    plan, count = scheduled(followed, B580), len(followed.instructions)
    latencies, sends = rng.integers(20, 300, count).tolist(), rng.integers(1, 9, count).tolist()
    ready: dict[int, float] = {}
    expected, now = [0.0] * count, 0.0
    for block in [*blocks, [count - 1]]:
        pending = [plan[0][at] for at in block]
        while pending:
            starts = {}
            for n, step in enumerate(pending[:window]):
                before = pending[:n]
                if not any(b.writes & (step.reads | step.writes) or b.reads & step.writes for b in before):
                    operands = [ready.get(root, 0.0) for root in step.reads]
                    starts[n] = max([now, *operands]) if not step.out else now
            step = pending.pop(min(starts, key=lambda n: (starts[n], n)))
            operands = [ready.get(root, 0.0) for root in step.reads]
            if step.out:
                ready.update(dict.fromkeys(step.writes, max(operands, default=0.0)))
                continue
            start, cycles, wait = max([now, *operands]), step.cycles, step.wait
            if step.message:
                cycles, wait = sends[step.at], latencies[step.at]
            for root in step.writes:
                ready[root] = start + (cycles if step.product and root in step.reads else max(wait, cycles))
            expected[step.at], now = start + cycles - now, start + cycles
    assert thread_cycles(followed, plan, latencies, sends, window).tolist() == expected
