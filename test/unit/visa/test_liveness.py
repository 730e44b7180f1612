"""For how long variables keep their registers: each range by hand, and where a shorter one would give wrong results."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from xegpu_py.ir.diagnostics import Source
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.allocate import allocate
from xegpu_py.visa.dataflow import liveness_of, referenced_variables
from xegpu_py.visa.messages import written_back
from xegpu_py.visa.program import Program

PVC = TARGETS["pvcxt"]


def program(body: str, *names: str) -> Program:
    """A program on the variables A, B and so on of 16 floats, and an input In."""
    lines = [".version 3.8", '.kernel "live"', ".decl In v_type=G type=ud num_elts=1 align=dword"]
    lines += [f".decl {name} v_type=G type=ud num_elts=16 align=GRF" for name in names or "ABCD"]
    lines += [".decl Wide v_type=G type=ud num_elts=32 align=GRF"]
    lines += [".decl P v_type=P num_elts=16", ".decl Q v_type=P num_elts=1", ".input In offset=64 size=4"]
    lines += ['.kernel_attr Target="cm"', ".kernel_attr SimdSize=16", *body.strip("\n").split("\n"), ""]
    return assembly.read(Source("\n".join(lines), "live.visaasm"))[0]


def ranges(body: str) -> dict[str, tuple[int, int]]:
    return {v.name: r for v, r in liveness_of(program(body), PVC).ranges.items() if v.name != "In"}


def test_straight_line() -> None:
    found = ranges("""
    mov (M1_NM, 16) A(0,0)<1> 1:ud
    mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>
    mov (M1_NM, 16) C(0,0)<1> B(0,0)<1;1,0>
    mov (M1_NM, 16) A(0,0)<1> B(0,0)<1;1,0>
    ret (M1, 1)
""")
    assert found == {"A": (0, 3), "B": (1, 3), "C": (2, 2)}


def test_an_input_lives_from_the_start() -> None:
    found = liveness_of(
        program("    mov (M1_NM, 1) A(0,0)<1> 1:ud\n    mov (M1_NM, 1) B(0,0)<1> In(0,0)<0;1,0>"), PVC
    ).ranges
    assert {v.name: r for v, r in found.items()} == {"In": (0, 1), "A": (0, 0), "B": (1, 1)}


LOOP = """
    mov (M1_NM, 16) A(0,0)<1> 1:ud
Again:
    {first}
    mov (M1_NM, 16) C(0,0)<1> 2:ud
    cmp.lt (M1_NM, 1) Q C(0,0)<0;1,0> 3:ud
    (Q) jmp (M1, 1) Again
    ret (M1, 1)
"""


def test_what_each_turn_reads_lives_to_the_end_of_the_loop() -> None:
    assert ranges(LOOP.format(first="mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>"))["A"] == (0, 5)


def test_what_each_turn_writes_first_does_not() -> None:
    assert ranges(LOOP.format(first="mov (M1_NM, 16) A(0,0)<1> 5:ud"))["A"] == (0, 2)


def test_a_predicate_that_selects_keeps_no_lanes() -> None:
    assert ranges(LOOP.format(first="(P) sel (M1_NM, 16) A(0,0)<1> 5:ud 6:ud"))["A"] == (0, 2)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("mov (M1_NM, 8) A(0,0)<1> 5:ud", 5),
        ("(P) mov (M1_NM, 16) A(0,0)<1> 5:ud", 5),
        # Without a goto, no lane is ever disabled.
        ("mov (M1, 16) A(0,0)<1> 5:ud", 3),
        ("mov (M1_NM, 16) A(0,0)<1> 5:ud", 3),
        ("lsc_load.slm (M1_NM, 1) A:d32x16t flat[B]:a32", 3),
        ("(Q) lsc_load.slm (M1_NM, 1) A:d32x16t flat[B]:a32", 5),
        # Eight lanes fill half of each of the registers.
        ("lsc_load.slm (M1_NM, 8) A:d32 flat[B]:a32", 5),
    ],
)
def test_only_certain_writes_of_all_bytes_end_a_value(first: str, last: int) -> None:
    body = LOOP.format(first=f"{first}\n    mov (M1_NM, 16) D(0,0)<1> A(0,0)<1;1,0>")
    assert ranges(body)["A"] == (0, last + (last == 5))


@pytest.mark.parametrize(("lanes", "last"), [(8, 6), (16, 3)])
def test_vectors_of_few_lanes_leave_parts_of_registers_alone(lanes: int, last: int) -> None:
    load = f"lsc_load.slm (M1_NM, {lanes}) Wide:d32x2 flat[B]:a32"
    body = LOOP.format(first=f"{load}\n    mov (M1_NM, 16) D(0,0)<1> Wide(0,0)<1;1,0>")
    assert ranges(body)["Wide"] == (2 if lanes == 16 else 1, last)


def test_parts_written_one_by_one_end_a_value() -> None:
    parts = "\n".join(f"    mov (M1_NM, 4) A(0,{n})<1> 5:ud" for n in (8, 0, 12, 4))
    for missing, last in (("", 6), ("    mov (M1_NM, 4) A(0,8)<1> 5:ud\n", 8)):
        read = "    mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>"
        body = LOOP.format(first=f"{parts.replace(missing, '')}\n{read}".strip())
        assert ranges(body)["A"] == (0, last)


def test_branches() -> None:
    """A value is live across a branch that does not use it only if it is used after the branch."""
    body = """
    mov (M1_NM, 16) A(0,0)<1> 1:ud
    (Q) jmp (M1, 1) Else
    mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>
    jmp (M1, 1) End
Else:
    mov (M1_NM, 16) C(0,0)<1> 2:ud
    mov (M1_NM, 16) D(0,0)<1> C(0,0)<1;1,0>
End:
    {end}
    ret (M1, 1)
"""
    assert ranges(body.format(end="mov (M1_NM, 16) B(0,0)<1> 3:ud"))["A"] == (0, 2)
    assert ranges(body.format(end="mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>"))["A"] == (0, 8)


def test_an_input_lives_as_long_as_a_loop_that_reads_it() -> None:
    made = program(LOOP.format(first="mov (M1_NM, 16) B(0,0)<1> In(0,0)<0;1,0>"))
    assert {v.name: r for v, r in liveness_of(made, PVC).ranges.items()}["In"] == (0, 5)


def test_what_a_block_of_the_loop_writes_first_lives_from_there() -> None:
    found = ranges("""
Again:
    mov (M1_NM, 16) C(0,0)<1> 2:ud
    (Q) jmp (M1, 1) Middle
Middle:
    mov (M1_NM, 16) A(0,0)<1> 5:ud
    (Q) jmp (M1, 1) Next
Next:
    mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>
    (Q) jmp (M1, 1) Again
    ret (M1, 1)
""")
    assert found["A"] == (4, 7)


def test_nothing_lives_before_it_is_written() -> None:
    """A partly written variable is live from the start, but has no value yet."""
    found = ranges("""
    mov (M1_NM, 16) C(0,0)<1> 2:ud
    (Q) jmp (M1, 1) Write
Write:
    (P) mov (M1_NM, 16) A(0,0)<1> 5:ud
    mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>
    ret (M1, 1)
""")
    assert found["A"] == (3, 4)


def test_values_written_in_a_loop_may_be_read_in_the_next_turn() -> None:
    """The iteration's read is before the write in the text."""
    found = ranges("""
Again:
    (Q) jmp (M1, 1) Write
    mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>
    jmp (M1, 1) End
Write:
    mov (M1_NM, 16) C(0,0)<1> 2:ud
    mov (M1_NM, 16) A(0,0)<1> C(0,0)<1;1,0>
    jmp (M1, 1) Again
End:
    ret (M1, 1)
""")
    assert found["A"] == (0, 7)
    assert found["C"] == (5, 6)


def test_masked_writes_keep_the_values_of_lanes_that_wait() -> None:
    body = """
    mov (M1_NM, 16) A(0,0)<1> 1:ud
    {goto}
    mov (M1_NM, 16) C(0,0)<1> 2:ud
    mov (M1, 16) A(0,0)<1> C(0,0)<1;1,0>
Wait:
    mov (M1_NM, 16) D(0,0)<1> 7:ud
    mov (M1_NM, 16) B(0,0)<1> A(0,0)<1;1,0>
    cmp.lt (M1_NM, 1) Q B(0,0)<0;1,0> 3:ud
    (Q) jmp (M1, 1) Again
    ret (M1, 1)
"""
    together = body.format(goto="Again:").replace("Wait:", "    cmp.eq (M1_NM, 1) Q D(0,0)<0;1,0> 3:ud")
    apart = body.format(goto="Again:\n    (P) goto (M1, 16) Wait")
    assert ranges(together)["A"] == (0, 6)
    assert ranges(apart)["A"] == (0, 9)


WAITING = """\
.version 3.8
.kernel "waiting"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Turn v_type=G type=ud num_elts=1 align=dword
.decl Lane v_type=G type=ud num_elts=16 align=GRF
.decl Other v_type=G type=ud num_elts=16 align=GRF
.decl Kept v_type=G type=ud num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.decl Q v_type=P num_elts=1
.input Out offset=64 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1_NM, 1) Turn(0,0)<1> 0:ud
    mov (M1_NM, 16) Lane(0,0)<1> 0:ud
    mov (M1_NM, 1) Lane(0,3)<1> 1:ud
Again:
    mov (M1_NM, 16) Other(0,0)<1> 9:ud
    lsc_store.ugm (M1_NM, 1) flat[Out+64]:a64 Other.0:d32x16t
    cmp.eq (M1_NM, 1) Q Turn(0,0)<0;1,0> 1:ud
    {leave}
    mov ({mask}, 16) Kept(0,0)<1> 5:ud
    cmp.eq (M1, 16) P Lane(0,0)<1;1,0> 1:ud
    {wait}
    add (M1_NM, 1) Turn(0,0)<1> Turn(0,0)<0;1,0> 1:ud
    cmp.le (M1_NM, 1) Q Turn(0,0)<0;1,0> 1:ud
    (Q) jmp (M1, 1) Again
End:
    ret (M1, 1)
{between}
Wait:
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 Kept.0:d32x16t
    ret (M1, 1)
"""
NOBODY = "cmp.eq (M1, 16) P Lane(0,0)<1;1,0> 2:ud\n    (P) goto (M1, 16) Never\n    "


GOTO = "(P) goto (M1, 16) Wait"
JUMP = "(!P) goto (M1, 16) Rest\n    jmp (M1, 1) Wait\nRest:"


@pytest.mark.parametrize("wait", [GOTO, JUMP], ids=["goto", "jmp"])
@pytest.mark.parametrize(
    ("leave", "mask", "between"),
    [
        ("(Q) jmp (M1, 1) End", "M1_NM", ""),
        ("", "M1", ""),
        (NOBODY + "(Q) jmp (M1, 1) End", "M1_NM", "Never:\n    mov (M1_NM, 16) Kept(0,0)<1> 7:ud\n    ret (M1, 1)"),
    ],
    ids=["others end before they write", "others write their lanes only", "another place to wait lies between"],
)
def test_lanes_that_wait_keep_what_the_others_never_read(leave: str, mask: str, between: str, wait: str) -> None:
    """Lane 3 waits with `Kept` while the others begin their last iteration, which does not change lane 3 of it."""
    text = WAITING.format(leave=leave, mask=mask, between=between, wait=wait)
    out = np.zeros(32, np.uint32)
    Kernel.from_assembly(text)(out)
    assert out.tolist() == [5] * 16 + [9] * 16
    found = {v.name: r for v, r in liveness_of(assembly.read(Source(text, "waiting"))[0], PVC).ranges.items()}
    assert found["Kept"][0] <= found["Other"][0]


def chain(length: int, loop: bool) -> Program:
    """A program of `length` variables, each computed of two before it, in one block or in blocks of ten."""
    names = [f"Var{n}" for n in range(length)]
    lines = ["    mov (M1_NM, 16) Var0(0,0)<1> 1:ud"]
    for n in range(1, length):
        sources = f"Var{max(n - 7, 0)}(0,0)<1;1,0> Var{n - 1}(0,0)<1;1,0>"
        lines.append(f"    add (M1_NM, 16) Var{n}(0,0)<1> {sources}")
        if loop and n % 10 == 0:
            lines += [f"    (Q) jmp (M1, 1) Skip{n}", f"    mov (M1_NM, 16) Var{n}(0,0)<1> 2:ud", f"Skip{n}:"]
    return program("\n".join([*lines, "    ret (M1, 1)"]), *names)


@pytest.mark.parametrize("loop", [False, True])
def test_time_and_pressure_of_long_programs(loop: bool) -> None:
    """Ten times the program takes about ten times as long; a quadratic allocator takes a hundred times as long."""
    seconds = {}
    for length in (400, 4000):
        made = chain(length, loop)
        # Collections take the longer the more other objects there are.
        gc.disable()
        start = time.process_time()
        allocation = allocate(made, PVC)
        seconds[length] = time.process_time() - start
        gc.enable()
        assert allocation.pressure <= 10
    assert seconds[4000] < 25 * seconds[400]


def test_a_predicate_that_is_only_a_guard_is_referenced() -> None:
    body = """
    cmp.lt (M1_NM, 16) P A(0,0)<1;1,0> 3:ud
    (P) mov (M1_NM, 16) B(0,0)<1> 1:ud
    ret (M1, 1)
"""
    read = program(body)
    assert {v.name for v in referenced_variables(read.instructions[1:])} == {"P", "B"}


@pytest.mark.parametrize(
    ("message", "pvc", "dg2"),
    [
        ("lsc_load.ugm (M1_NM, 1) Wide:d32x16t flat[In]:a32", 0, 0),
        ("lsc_load.ugm (M1_NM, 16) A:d32 flat[A]:a32", 64, 64),
        ("lsc_load.ugm (M1_NM, 4) A:d32 flat[A]:a32", 64, 32),
        ("lsc_load.ugm (M1_NM, 16) Wide:d32x2 flat[A]:a32", 128, 128),
        ("lsc_load.ugm (M1_NM, 16) A:d16c32 flat[A]:a32", 64, 64),
        ("lsc_load.ugm (M1_NM, 16) Wide:d64 flat[A]:a32", 128, 128),
        ("lsc_load.ugm (M1_NM, 1) A:d64 flat[In]:a32", 128, 64),
        ("lsc_store.ugm (M1_NM, 16) flat[A]:a32 B:d32", 0, 0),
        ("mov (M1_NM, 16) A(0,0)<1> 1:ud", 0, 0),
    ],
)
def test_registers_of_a_messages_result(message: str, pvc: int, dg2: int) -> None:
    """Those of at least 16 lanes with GRFs of 64 bytes, and of 8 with GRFs of 32; none beyond a transposed load's."""
    inst = program("    " + message + "\n    ret (M1, 1)").instructions[0]
    assert [written_back(inst, TARGETS[name]) for name in ("pvcxt", "dg2")] == [pvc, dg2]
