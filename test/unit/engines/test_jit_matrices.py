"""Matrices that only dpas reads are loaded in the layout that it multiplies; all others are loaded to registers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from xegpu_py.engines.jit import thread_function
from xegpu_py.engines.jit.host import VARIABLE, chosen_host, host_by_name
from xegpu_py.engines.jit.thread_function import functions_of_program
from xegpu_py.runtime.kernel import Kernel

HEAD = """\
.version 3.8
.kernel "matrices"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl A v_type=G type=ud num_elts=64 align=GRF
.decl B v_type=G type=ud num_elts=128 align=GRF
.decl AlsoA v_type=G type=ud num_elts=64 align=GRF alias=<A,0>
.decl AlsoB v_type=G type=ud num_elts=128 align=GRF alias=<B,0>
.decl SumB v_type=G type=f num_elts=128 align=GRF alias=<B,0>
.decl C v_type=G type=f num_elts=128 align=GRF
.decl S v_type=G type=d num_elts=128 align=GRF alias=<C,0>
.decl X v_type=G type=ud num_elts=16 align=GRF
.decl P v_type=P num_elts=1
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
"""
ROWS, BYTES = 40, 128
BITS = {"bf": 16, "hf": 16, "tf32": 32, "bf8": 8, "hf8": 8}


def load(name: str, block: str, rng: random.Random, guard: str = "") -> str:
    """A message for a block that may reach out of its surface."""
    # Columns are multiples of 4 bytes.
    step = max(32 // int(block[1:].partition(".")[0]), 1)
    x, y = step * rng.choice([0, 1, 2, -1, 5]), rng.choice([0, 1, 5, -3, 36])
    place = f"0x{BYTES - 1:x},0x{ROWS - 1:x},0x{BYTES - 1:x},0x{x & 0xFFFFFFFF:x},0x{y & 0xFFFFFFFF:x}"
    return f"    {guard}lsc_load_block2d.ugm (M1, 1) {name}:{block} flat[In,{place}]\n"


def blocks(kind: str) -> tuple[list[str], list[str]]:
    """Blocks that fill A, and blocks that fill B."""
    bits = BITS[kind]
    a, b = ["d32.8x8nn"], ["d32.16x8nn", "d32.8x16tn"]
    if bits < 32:
        a.append(f"d{bits}.{256 // bits}x8nn")
        b.append(f"d{bits}.16x{256 // bits}nt")
    return a, b


def run(body: str, wanted: set[str]) -> None:
    """Run a program on both engines, which must agree, and check which matrices are loaded so."""
    out_of = "    lsc_store_block2d.ugm (M1, 1) flat[Out,0x3f,0x7,0x3f,0x0,0x0] C.0:d32.16x8nn\n"
    kernel = Kernel.from_assembly(HEAD + body + out_of + "    ret (M1, 1)\n", target="any", engine="both")
    rng = np.random.default_rng(0)
    kernel(rng.integers(0, 256, (ROWS, BYTES), np.uint8), np.zeros((8, 16), np.float32))
    own = kernel.executor.interpreter
    text = "".join(functions_of_program(own.program, own.layout, own.model, chosen_host(), False, False))
    assert {name for name, mark in (("A", "_as_a_"), ("B", "_as_b16_")) if mark in text} == wanted, body


def dpas(kind: str, b: str = "B", a: str = "A", acc: str = "%null.0") -> str:
    return f"    dpas.{kind}.{kind}.8.8 (M1, 16) C.0 {acc} {b}.0 {a}(0,0)\n"


@pytest.mark.parametrize("kind", BITS)
def test_what_only_dpas_reads(kind: str) -> None:
    rng = random.Random(kind)
    for a in blocks(kind)[0]:
        for b in blocks(kind)[1]:
            body = load("A.0", a, rng) + load("B.0", b, rng) + dpas(kind)
            body += load("B.0", b, rng) + dpas(kind, acc="C.0")
            body += load("A.0", a, rng) + dpas(kind, "AlsoB", "AlsoA", "C.0")
            run(body, {"A", "B"})


@pytest.mark.skipif(not host_by_name("haswell").runs_here, reason="the machine does not run this code")
@pytest.mark.parametrize("kinds", ["s8.s8", "s8.u8", "u8.s8"])
def test_bytes_as_words(kinds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts that multiply words load bytes as words."""
    monkeypatch.setenv(VARIABLE, "haswell")
    rng = random.Random(kinds)
    for a in blocks("bf8")[0]:
        for b in blocks("bf8")[1]:
            product = f"    dpas.{kinds}.8.8 (M1, 16) S.0 {{}} B.0 A(0,0)\n"
            body = load("A.0", a, rng) + load("B.0", b, rng) + product.format("%null.0")
            run(body + load("B.0", b, rng) + product.format("S.0"), {"A", "B"})


def test_parts() -> None:
    """Several instructions read parts of a matrix; one that several messages fill stays as it is."""
    rng = random.Random(0)
    halves = load("B.0", "d32.16x4nn", rng) + load("B.256", "d32.16x4nn", rng)
    rows = "    dpas.bf.bf.8.4 (M1, 16) C.256 %null.0 B.0 A(2,0)\n"
    run(load("A.0", "d32.8x8nn", rng) + halves + dpas("bf") + rows, {"A"})


SOUND = [("A.0", "d16.16x8nn"), ("B.0", "d16.16x16nt")]


@pytest.mark.parametrize(
    ("between", "behind", "wanted"),
    [
        ("", "    mov (M1, 16) X(0,0)<1> A(0,0)<1;1,0>\n", {"B"}),
        ("", "    mov (M1, 16) X(0,0)<1> AlsoB(3,0)<1;1,0>\n", {"A"}),
        ("    mov (M1, 16) A(1,0)<1> 0x3f803f80:ud\n", "", {"B"}),
        ("    (P) lsc_load_block2d.ugm (M1, 1) B.0:d16.16x16nt flat[In,0x7f,0x27,0x7f,0x0,0x0]\n", "", {"A"}),
        ("Here:\n", "", set()),
        ("    barrier\n", "", set()),
        ("", dpas("hf", acc="C.0"), set()),
        ("", dpas("bf", a="B", acc="C.0"), {"A"}),
        ("", dpas("bf", acc="SumB.0"), {"A"}),
        ("", "    jmp (M1, 1) Here\nHere:\n" + dpas("bf", acc="C.0"), set()),
    ],
    ids=["A read", "B read", "A written", "guarded", "label", "barrier", "another type", "B as A", "B as sum", "jump"],
)
def test_what_lies_in_registers(between: str, behind: str, wanted: set[str]) -> None:
    rng = random.Random(0)
    run("".join(load(*m, rng) for m in SOUND) + between + dpas("bf") + behind, wanted)


def test_what_is_not_loaded_is_zero() -> None:
    rng = random.Random(0)
    run(load("A.0", "d16.16x8nn", rng) + load("B.0", "d16.16x8nt", rng) + dpas("bf"), {"A"})


@pytest.mark.usefixtures("own_code")
def test_blocks_that_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long native code is several functions, between which matrices are in registers."""
    monkeypatch.setattr(thread_function, "_LONGEST", 2)
    rng = random.Random(0)
    run(load("A.0", "d16.16x8nn", rng) + load("B.0", "d16.16x16nt", rng) + 2 * dpas("bf", acc="C.0"), set())


def test_lines_that_are_no_rows() -> None:
    """Rows of 8 channels, of which dpas reads 16."""
    rng = random.Random(0)
    run(load("A.0", "d16.16x8nn", rng) + load("B.0", "d32.8x16nn", rng) + dpas("bf"), {"A"})
