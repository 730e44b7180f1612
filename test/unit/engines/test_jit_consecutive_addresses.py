"""Messages whose lanes' addresses are known to be consecutive, and those that only look like that."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

import xegpu_py
from xegpu_py.engines.jit.consecutive_addresses import (
    SharedNumber,
    _computed,
    _Sequence,
    consecutive_addresses,
)
from xegpu_py.engines.jit.register_promotion import temporaries
from xegpu_py.engines.jit.thread_function import block_starts
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.kernel import Kernel

pytestmark = pytest.mark.native

HEAD = """\
.version 3.8
.kernel "consecutive"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl In v_type=G type=uq num_elts=1 align=qword
.decl N v_type=G type=d num_elts=1 align=dword
.decl Base v_type=G type=q num_elts=1 align=qword
.decl Packed v_type=G type=q num_elts=2 align=GRF
.decl Bytes v_type=G type=b num_elts=16 align=GRF alias=<Packed,0>
.decl Lanes v_type=G type=d num_elts=16 align=GRF
.decl Steps v_type=G type=d num_elts=16 align=GRF
.decl A v_type=G type=q num_elts=16 align=GRF
.decl To v_type=G type=q num_elts=16 align=GRF
.decl Data v_type=G type=ud num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.decl Again v_type=P num_elts=1
.input Out offset=64 size=8
.input In offset=72 size=8
.input N offset=80 size=4
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
"""
LANES = """\
    mov (M1, 1) Packed(0,0)<1> 0x706050403020100:q
    mov (M1, 1) Packed(0,1)<1> 0xf0e0d0c0b0a0908:q
    mov (M1, 16) Lanes(0,0)<1> Bytes(0,0)<1;1,0>
"""
HALVES = """\
    mov (M1, 1) Packed(0,0)<1> 0x706050403020100:q
    mov (M1, 8) Lanes(0,0)<1> Bytes(0,0)<1;1,0>
    add (M1, 8) Lanes(0,8)<1> Lanes(0,0)<1;1,0> 0x8:d
"""
STEPS = "    shl (M1, 16) Steps(0,0)<1> Lanes(0,0)<1;1,0> 0x2:uw\n"
BASE = "    add (M1, 1) Base(0,0)<1> In(0,0)<0;1,0> 0x8:d\n"
SUM = "    add (M1, 16) A(0,0)<1> Steps(0,0)<1;1,0> Base(0,0)<0;1,0>\n"
TO = "    add (M1, 16) To(0,0)<1> Steps(0,0)<1;1,0> Out(0,0)<0;1,0>\n"
MASK = "    cmp.lt (M1, 16) P Lanes(0,0)<1;1,0> N(0,0)<0;1,0>\n    mov (M1, 16) Data(0,0)<1> 0x7:ud\n"
LOAD = "    (P) lsc_load.ugm (M1, 16) Data:d32 flat[A]:a64\n"
STORE = "    lsc_store.ugm (M1, 16) flat[To]:a64 Data:d32\n"
BEGIN = LANES + STEPS + BASE + SUM + TO + MASK

CASES = {
    "a row": (BEGIN + LOAD + STORE, 2, {"A", "To"}),
    "lanes in two parts": (HALVES + STEPS + BASE + SUM + TO + MASK + LOAD + STORE, 2, {"A", "To"}),
    "steps by a product": (
        LANES + STEPS.replace("shl", "mul").replace("0x2:uw", "0x4:d") + BASE + SUM + TO + MASK + LOAD + STORE,
        2,
        {"A", "To"},
    ),
    "the number changes afterwards": (
        BEGIN + "    mov (M1, 1) Base(0,0)<1> 0x1:q\n" + LOAD + STORE,
        2,
        {"A", "To"},
    ),
    "steps in another block": (LANES + STEPS + "Next:\n" + BASE + SUM + TO + MASK + LOAD + STORE, 2, {"A", "To"}),
    "addresses in another block": (BEGIN + "Next:\n" + LOAD + STORE, 0, set()),
    "steps that another block changes": (
        LANES + STEPS + "Next:\n" + BASE + SUM + TO + MASK + LOAD + STORE + "    mov (M1, 1) Steps(0,1)<1> 0x3:d\n",
        0,
        set(),
    ),
    "a lane is changed": (BEGIN + "    mov (M1, 1) A(0,3)<1> In(0,0)<0;1,0>\n" + LOAD + STORE, 1, {"To"}),
    "a lane of the steps is changed": (
        LANES + STEPS + "    mov (M1, 1) Steps(0,3)<1> 0x8:d\n" + BASE + SUM + TO + MASK + LOAD + STORE,
        0,
        set(),
    ),
    "masked steps": (
        LANES + MASK + STEPS.replace("shl", "(P) shl") + BASE + SUM + TO + LOAD + STORE,
        0,
        set(),
    ),
    "wide steps": (BEGIN.replace("0x2:uw", "0x3:uw") + LOAD + STORE, 0, set()),
    "negative steps": (
        LANES
        + STEPS
        + TO
        + "    add (M1, 16) Steps(0,0)<1> Steps(0,0)<1;1,0> -4:d\n"
        + BASE
        + SUM
        + MASK
        + LOAD
        + STORE,
        1,
        {"To"},
    ),
    "a negative constant is added": (
        BEGIN + "    add (M1, 16) A(0,0)<1> A(0,0)<1;1,0> -8:d\n" + LOAD + STORE,
        1,
        {"To"},
    ),
    "the number is another one later": (
        BEGIN + LOAD + "    or (M1, 1) In(0,0)<1> In(0,0)<0;1,0> 0x20:q\n" + SUM.replace("Base", "In") + LOAD + STORE,
        3,
        {"A", "To"},
    ),
    "steps that overflow and come back": (
        LANES
        + STEPS
        + TO
        + 2 * "    add (M1, 16) Steps(0,0)<1> Steps(0,0)<1;1,0> 0x7ffffff0:d\n"
        + "    add (M1, 16) Steps(0,0)<1> Steps(0,0)<1;1,0> 0x20:d\n"
        + BASE
        + SUM
        + MASK
        + LOAD
        + STORE,
        1,
        {"To"},
    ),
    "sums of 32 bits": (
        LANES
        + STEPS
        + BASE
        + TO
        + SUM.replace("A(", "Steps(")
        + "    mov (M1, 16) A(0,0)<1> Steps(0,0)<1;1,0>\n"
        + MASK
        + LOAD
        + STORE,
        1,
        {"To"},
    ),
    "two lanes": (
        BEGIN + (SUM + LOAD + TO + STORE).replace("(M1, 16)", "(M1, 2)"),
        2,
        {"A", "To"},
    ),
    "a message that adds a constant": (BEGIN + LOAD.replace("[A]", "[A+0x8]") + STORE, 1, {"To"}),
    "a loop changes the number": (
        BEGIN
        + SUM.replace("Base", "In")
        + LOAD
        + "Next:\n"
        + SUM.replace("Base", "In")
        + LOAD
        + "    or (M1, 1) In(0,0)<1> In(0,0)<0;1,0> 0x20:q\n"
        + "    add (M1, 1) N(0,0)<1> N(0,0)<0;1,0> -10:d\n"
        + "    cmp.gt (M1, 1) Again N(0,0)<0;1,0> 0x0:d\n"
        + "    (Again) jmp (M1, 1) Next\n"
        + STORE,
        2,
        set(),
    ),
    "addresses that are used otherwise": (
        BEGIN + LOAD + "    mov (M1, 1) N(0,0)<1> A(0,0)<0;1,0>\n" + STORE,
        2,
        {"A", "To"},
    ),
    "addresses that a message stores": (
        BEGIN + LOAD + STORE + "    lsc_store.ugm (M1, 1) flat[Out]:a64 A:d32x8t\n",
        2,
        {"To"},
    ),
}


def kernel_of(body: str, engine: str = "both", target: str = "any") -> Kernel:
    return Kernel.from_assembly(HEAD + body + "    ret (M1, 1)\n", target=target, engine=engine)


@pytest.mark.parametrize("name", CASES)
def test_which_are(name: str) -> None:
    body, count, promoted = CASES[name]
    kernel = kernel_of(body)
    program, target = kernel.program, kernel.executor.interpreter.layout.target
    starts = tuple(block_starts(program))
    addresses = consecutive_addresses(program, target, starts)
    assert len(addresses) == count
    assert {var.name for var in temporaries(program, target, starts, addresses)} & {"A", "To"} == promoted
    for lanes in (16, 5, 0):
        kernel(np.zeros(64, np.uint32), np.arange(100, 164, dtype=np.uint32), lanes)


@pytest.mark.parametrize(
    ("size", "lanes", "reason"),
    [(18, 16, ""), (17, 16, "lane 15"), (17, 15, ""), (9, 7, ""), (9, 8, "lane 7")],
)
def test_lanes_beyond_the_allocation(size: int, lanes: int, reason: str) -> None:
    numbers = np.arange(100, 100 + size, dtype=np.uint32)
    texts = []
    for engine in ("jit", "interpreter"):
        kernel, out = kernel_of(BEGIN + LOAD + STORE, engine), np.zeros(16, np.uint32)
        if reason:
            with pytest.raises(DiagnosticError, match=reason) as refused:
                kernel(out, numbers, lanes)
            texts.append(str(refused.value))
        else:
            kernel(out, numbers, lanes)
            assert out.tolist() == [102 + n if n < lanes else 7 for n in range(16)]
    assert len({*texts}) == bool(reason)


WIDTH = "    mov (M1, 1) Lanes(0,0)<1> {}\n"
BLOCK = "    lsc_load_block2d.ugm (M1, 1) Data:d32.16x1nn flat[In,Lanes(0,0),0x0,0xff,0x0,0x0]\n"
SHOW = "    lsc_store.ugm (M1, 1) flat[Out]:a64 Data:d32x16t\n"


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        pytest.param(WIDTH.format("0x7f:d") + BLOCK + WIDTH.format("N(0,0)<0;1,0>") + BLOCK, 0x7F, id="changed"),
        pytest.param(
            "    cmp.lt (M1, 16) P N(0,0)<0;1,0> 0x80:d\n"
            + WIDTH.format("N(0,0)<0;1,0>")
            + "    (!P.any) jmp (M1, 1) Next\n"
            + BLOCK
            + "Next:\n"
            + BLOCK,
            0x7F,
            id="in another block",
        ),
    ],
)
def test_a_surface_is_checked_again(body: str, limit: int) -> None:
    """Where an operand has changed, and in another block. Surfaces of kernels that are lowered are checked once."""
    written = kernel_of(body + SHOW, target="bmg")
    kernel = Kernel(structs.replace(written.executable, exact_messages=False), written.options)
    out, numbers = np.zeros(16, np.uint32), xegpu_py.zeros_aligned((32,), np.uint32)
    numbers[:] = range(100, 132)
    kernel(out, numbers, limit)
    assert out.tolist() == list(range(100, 116))
    with pytest.raises(DiagnosticError, match="over the end"):
        Kernel(kernel.executable, structs.replace(kernel.options, engine="jit"))(out, numbers, limit + 64)


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        # The number that is shared, the first constant, and the step.
        ("mov", ("x", 3, 2), None, ("x", 3, 2)),
        ("add", ("x", 3, 2), (None, 5, 1), ("x", 8, 3)),
        ("add", (None, 3, 2), ("x", 5, 0), ("x", 8, 2)),
        ("add", (None, 3, 2), (None, 5, 1), (None, 8, 3)),
        ("add", ("x", 3, 2), ("y", 5, 1), None),
        ("mul", (None, 3, 2), (None, 5, 0), (None, 15, 10)),
        ("mul", (None, 3, 2), (None, 40, 0), (None, 120, 80)),
        ("shl", (None, 3, 2), (None, 5, 0), (None, 96, 64)),
        ("shl", (None, 3, 2), (None, 31, 0), (None, 3 << 31, 2 << 31)),
        # Counts of shifts are taken modulo the width; what is multiplied has no shared number, and by the same for all.
        ("shl", (None, 3, 2), (None, 32, 0), None),
        ("shl", (None, 3, 2), (None, 40, 0), None),
        ("mul", ("x", 3, 2), (None, 5, 0), None),
        ("mul", (None, 3, 2), ("x", 5, 0), None),
        ("mul", (None, 3, 2), (None, 5, 1), None),
        ("shl", (None, 3, 2), (None, 5, 1), None),
    ],
)
def test_numbers_of_a_result(name, a, b, expected):
    shared = {key: SharedNumber(n, None) for n, key in enumerate("xy")}
    sources = [_Sequence(0, 64, 4, shared.get(number), first, step) for number, first, step in filter(None, (a, b))]
    assert _computed(name, sources) == (expected and (shared.get(expected[0]), *expected[1:]))
