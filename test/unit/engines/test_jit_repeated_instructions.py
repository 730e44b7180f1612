"""Instructions that repeat with other registers and constants, and those that only look like that."""

from __future__ import annotations

import numpy as np
import pytest

from xegpu_py.engines.jit.register_promotion import RegisterPromotion, Repeat, promotion_of
from xegpu_py.engines.jit.repeated_instructions import with_repeats
from xegpu_py.engines.jit.thread_function import block_starts
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.kernel import Kernel

pytestmark = pytest.mark.native

COUNT = 8

PARTS = range(COUNT)

HEAD = "\n".join(
    [
        ".version 3.8",
        '.kernel "repeats"',
        ".decl Out v_type=G type=uq num_elts=1 align=qword",
        ".decl In v_type=G type=uq num_elts=1 align=qword",
        ".decl N v_type=G type=d num_elts=1 align=dword",
        ".decl To v_type=G type=uq num_elts=1 align=qword",
        ".decl One v_type=G type=d num_elts=16 align=GRF",
        ".decl Q v_type=P num_elts=16",
        ".decl Again v_type=P num_elts=1",
        *[f".decl A{n} v_type=G type=d num_elts=16 align=GRF" for n in range(COUNT + 2)],
        *[f".decl X{n} v_type=G type=d num_elts=16 align=GRF" for n in PARTS],
        *[f".decl S{n} v_type=G type=d num_elts={16 * (n % 3 + 1)} align=GRF" for n in PARTS],
        *[f".decl F{n} v_type=G type=uq num_elts=1 align=qword" for n in PARTS],
        *[f".decl P{n} v_type=P num_elts=16" for n in PARTS],
        ".input Out offset=64 size=8",
        ".input In offset=72 size=8",
        ".input N offset=80 size=4",
        '.kernel_attr Target="cm"',
        ".kernel_attr SimdSize=16",
        "",
    ]
)


def add(to: str, a: str, b: str, guard: str = "") -> str:
    texts = [o if o.endswith(":d") else f"{o}(0,0)<1;1,0>" for o in (a, b)]
    return f"    {guard}add (M1, 16) {to}(0,0)<1> {' '.join(texts)}\n"


def load(to: str, n: int) -> str:
    """Load 16 numbers from the row after the nth of the array."""
    address = f"    add (M1, 1) F{n}(0,0)<1> In(0,0)<0;1,0> {64 * n + 64}:d\n"
    return address + f"    lsc_load.ugm (M1, 1) {to}:d32x16t flat[F{n}]:a64\n"


def store(what: str, n: int) -> str:
    address = f"    add (M1, 1) To(0,0)<1> Out(0,0)<0;1,0> {64 * n + 64}:d\n"
    return address + f"    lsc_store.ugm (M1, 1) flat[To]:a64 {what}:d32x16t\n"


BEGIN = load("A0", 0) + load("A1", 1) + add("One", "A0", "A1")

CASES = {
    "loads, constants and stores": (
        "".join(load(f"A{n}", n) + add(f"A{n}", f"A{n}", f"{3 * n * n + 1}:d") + store(f"A{n}", n) for n in PARTS),
        [(5, COUNT)],
    ),
    "results of their own": (
        BEGIN
        + "".join(
            add(f"X{n}", "One", f"{n + 1}:d")
            + add(f"X{n}", f"X{n}", f"X{n}")
            + add("One", "One", f"X{n}")
            + store("One", n)
            for n in PARTS
        ),
        [(5, COUNT)],
    ),
    "results that are read later": (
        BEGIN
        + "".join(add(f"S{n}", "One", f"{n + 1}:d") + add(f"X{n}", f"S{n}", "A0") + store(f"X{n}", n) for n in PARTS)
        + "    mul (M1, 16) One(0,0)<1> One(0,0)<1;1,0> 0x3:d\n"
        + "".join(store(f"S{n}", COUNT + n) for n in PARTS),
        [(4, COUNT), (4, COUNT // 2)],
    ),
    "a result that the next iteration reads": (
        BEGIN
        + "".join(
            add(f"A{n + 2}", f"A{n + 1}", f"A{n}") + add(f"X{n}", f"A{n + 2}", "One") + store(f"X{n}", n) for n in PARTS
        ),
        [(4, COUNT - 2)],
    ),
    "predicates of their own": (
        BEGIN
        + "".join(
            f"    cmp.lt (M1, 16) P{n} A0(0,0)<1;1,0> {n + 1}:d\n"
            + add("One", "One", "A1", f"(P{n}) ")
            + add(f"X{n}", "One", f"{n + 1}:d")
            + store(f"X{n}", n)
            for n in PARTS
        ),
        [(5, COUNT)],
    ),
    "predicates that are read later": (
        BEGIN
        + "".join(
            f"    cmp.lt (M1, 16) P{n} A0(0,0)<1;1,0> {n + 1}:d\n"
            + add(f"X{n}", "One", f"{n + 1}:d")
            + store(f"X{n}", n)
            for n in PARTS
        )
        + "".join(add("One", "One", "A1", f"(P{n}) ") for n in PARTS)
        + store("One", 0),
        [(4, COUNT)],
    ),
    "a predicate that the next iteration reads": (
        BEGIN
        + "    cmp.lt (M1, 16) Q A0(0,0)<1;1,0> 0x3:d\n"
        + "".join(
            add("One", "One", "A1", "(Q) ")
            + f"    cmp.lt (M1, 16) Q One(0,0)<1;1,0> {40 * n + 40}:d\n"
            + add(f"X{n}", "One", f"{n + 1}:d")
            + store(f"X{n}", n)
            for n in PARTS
        ),
        [(5, COUNT)],
    ),
    "equal operands of the first that differ in others": (
        BEGIN
        + "".join(
            add(f"X{n}", f"A{n % 2}", "A0") + add(f"X{n}", f"X{n}", f"A{n // 2 % 2}") + store(f"X{n}", n) for n in PARTS
        ),
        [],
    ),
    "two results that are one in others": (
        BEGIN
        + "".join(
            add(f"X{n}", "One", f"{n + 1}:d")
            + add(f"A{n + 2}" if n < 2 else f"X{n}", "One", f"{n + 20}:d")
            + add("One", "One", f"X{n}")
            + store("One", n)
            for n in PARTS
        ),
        [(5, COUNT)],
    ),
    "one result that is two in others": (
        BEGIN
        + "".join(
            add(f"X{n}", "One", f"{n + 1}:d")
            + add(f"A{n + 2}" if n >= 2 else f"X{n}", "One", f"{n + 20}:d")
            + add("One", "One", f"X{n}")
            + store("One", n)
            for n in PARTS
        ),
        [],
    ),
    "in a loop": (
        BEGIN
        + "Next:\n"
        + "".join(add(f"X{n}", "One", f"{n + 1}:d") + add("One", "One", f"X{n}") + store("One", n) for n in PARTS)
        + "    add (M1, 1) N(0,0)<1> N(0,0)<0;1,0> -1:d\n"
        + "    cmp.gt (M1, 1) Again N(0,0)<0;1,0> 0x0:d\n"
        + "    (Again) jmp (M1, 1) Next\n",
        [(4, COUNT)],
    ),
}


def kernel_of(body: str, engine: str = "both") -> Kernel:
    return Kernel.from_assembly(HEAD + body + "    ret (M1, 1)\n", target="any", engine=engine)


def repeats_of(kernel: Kernel) -> list[Repeat]:
    program, layout = kernel.program, kernel.executor.layout
    starts = block_starts(program)
    promotion: RegisterPromotion = promotion_of(program, layout.target, starts, within_blocks=True, records=False)
    return [*with_repeats(program, layout, promotion, starts).repeats.values()]


@pytest.mark.parametrize("name", CASES)
def test_which_are(name: str) -> None:
    body, expected = CASES[name]
    kernel = kernel_of(body)
    assert [(repeat.period, repeat.count) for repeat in repeats_of(kernel)] == expected
    out = np.zeros(16 * (2 * COUNT + 1), np.int32)
    kernel(out, np.arange(16 * (COUNT + 1), dtype=np.int32), 3)
    assert out.any()


@pytest.mark.parametrize("rows", range(COUNT))
def test_an_error_is_that_of_its_iteration(rows: int) -> None:
    body = "".join(load(f"A{n}", n) + add(f"A{n}", f"A{n}", f"{n + 1}:d") + store(f"A{n}", n) for n in PARTS)
    texts = []
    for engine in ("jit", "interpreter"):
        kernel, out = kernel_of(body, engine), np.zeros(16 * (COUNT + 1), np.int32)
        assert len(repeats_of(kernel)) == 1
        with pytest.raises(DiagnosticError, match=f"{64 * rows + 64} bytes") as refused:
            kernel(out, np.arange(16 * rows + 16, dtype=np.int32), 0)
        texts.append(str(refused.value))
    assert texts[0] == texts[1]
