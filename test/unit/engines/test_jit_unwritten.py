"""Reads of registers that were never written: native code finds those that the interpreter finds, and no others."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
from visa.programs import random_instruction

from xegpu_py import DiagnosticError, Kernel
from xegpu_py.engines.faults import RuntimeFault
from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.engines.jit.engine import Jit
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.target import TARGETS

from .machine import Machine, run_batch, varied
from .test_jit import REGISTERS

ANY = TARGETS["any"]


def outcome(run: object, batch: object) -> tuple[str, list[str]] | np.ndarray:
    """The error of a run; if there is none, the bytes that are marked as written after it."""
    try:
        run(batch)
    except RuntimeFault as fault:
        return fault.message, fault.notes
    return batch.written


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int) -> None:
    """One thread with some registers that were never written: the same error, or the same bytes written."""
    faults = 0
    for seed in range(part, 60, 4):
        rng, machine = random.Random(seed), Machine(ANY)
        instructions = [varied(random_instruction(n, rng, ANY), rng, ANY) for n in rng.choices(REGISTERS, k=6)]
        interpreter = Interpreter(machine.program(instructions), machine.layout(watch=True))
        before, written = machine.state(1, rng), np.random.default_rng(seed).random((1, machine.bytes))
        share = rng.choice((0.0, 0.0005, 0.01, 0.9))
        found = []
        for run in (
            interpreter.run,
            partial(
                run_batch, Jit(interpreter.program, interpreter.layout, interpreter.model, divergent=True, keep=True)
            ),
        ):
            batch = machine.batch(before, DeviceMemory())
            batch.written = written >= share
            found.append(outcome(run, batch))
        golden, native = found
        if isinstance(golden, tuple):
            assert golden == native, seed
            faults += 1
        else:
            assert (golden == native).all(), seed
    assert 2 <= faults <= 13


TEXT = """
.version 3.8
.kernel "sums"
.decl In v_type=G type=uq num_elts=1 align=GRF
.decl Out v_type=G type=uq num_elts=1 align=GRF
.decl At v_type=G type=uq num_elts=16 align=GRF
.decl X v_type=G type=d num_elts=16 align=GRF
.decl Y v_type=G type=d num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
    add (M1_NM, 16) At(0,0)<1> In(0,0)<0;1,0> 4:ud
    setp (M1_NM, 16) P LANES:ud
    (P) lsc_load.ugm (M1_NM, 16) X.0:d32 flat[At.0]:a64
    (USED) add (M1_NM, 16) Y(0,0)<1> X(0,0)<1;1,0> 1:d
    ret (M1, 1)
"""


@pytest.mark.parametrize("engine", ["jit", "interpreter", "both"])
def test_lanes_of_a_message(engine: str) -> None:
    """The registers that a predicated message writes, and the reads of those lanes, in all launches of a kernel."""
    data, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    fine = Kernel.from_assembly(TEXT.replace("LANES", "0xff").replace("USED", "P"), check="uninit", engine=engine)
    for _ in range(2):
        fine(data, out)
    wrong = Kernel.from_assembly(TEXT.replace("LANES", "0xff").replace("(USED) ", ""), check="uninit", engine=engine)
    for _ in range(2):
        with pytest.raises(DiagnosticError, match="reads byte 32 of 'X', which was never written"):
            wrong(data, out)


PLACES = """
.version 4.2
.kernel "places"
.decl In v_type=G type=uq num_elts=1 align=wordx32
.decl Out v_type=G type=uq num_elts=1 align=wordx32
.decl At v_type=G type=d num_elts=16 align=wordx32
.decl Before v_type=G type=d num_elts=16 align=wordx32
.decl X v_type=G type=d num_elts=16 align=wordx32
.decl Y v_type=G type=d num_elts=16 align=wordx32
.decl Whole v_type=G type=uw num_elts=16 align=wordx32
.decl A0 v_type=A num_elts=16
.decl P1 v_type=P num_elts=16
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
.function "_main_0"
_main_0:
    lsc_load.ugm (M1_NM, 1) At:d32x16t flat[In]:a64
    mov (M1_NM, 16) Whole(0,0)<1> At(0,0)<1;1,0>
    setp (M1_NM, 16) P1 0xfffe:ud
    mov (M1_NM, 16) Before(0,0)<1> 0x7:d
    mov (M1_NM, 8) X(0,0)<1> 0x76543210:v
    mov (M1_NM, 16) Y(0,0)<1> 0x0:d
    addr_add (M1_NM, 16) A0(0)<1> &X Whole(0,0)<1;1,0>
    (P1) mov (M1_NM, 16) Y(0,0)<1> r[A0(0),0]<1,0>:d
    mov (M1_NM, 1) r[A0(2),4]<1>:d 0x9:d
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 Y:d32x16t
    ret (M1, 1)
"""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("lane", "place", "checks", "message"),
    [
        # The predicate disables the first lane.
        (0, 64, (), ""),
        (3, 28, ("uninit",), ""),
        (3, 32, (), ""),
        (3, 32, ("uninit",), "reads byte 32 of 'X', which was never written"),
        (3, 61, (), "reads 4 bytes at byte 61 of register variable 'X', which has 64 bytes"),
        (15, -4, (), "reads 4 bytes at byte 65532 of register variable 'X', which has 64 bytes"),
        (2, 60, (), "writes 4 bytes at byte 64 of register variable 'X', which has 64 bytes"),
    ],
)
def test_places_outside_of_their_variable(
    engine: str, lane: int, place: int, checks: tuple[str, ...], message: str
) -> None:
    """Registers that an address variable names: errors, and the lane, in each engine; else their values."""
    data, out = np.arange(16, dtype=np.int32) % 8 * 4, np.zeros(16, np.int32)
    data[lane] = place
    kernel = Kernel.from_assembly(PLACES, target="pvcxt", check=checks, engine=engine)
    if message:
        with pytest.raises(DiagnosticError, match=message) as raised:
            kernel(data, out)
        where = "" if "never" in message or lane == 2 else f", lane {lane}"
        assert f"subgroup 0{where}\n" in str(raised.value)
        return
    kernel(data, out)
    expected = np.where(data < 32, data // 4, 0)
    expected[0] = 0
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_places_that_all_lanes_name(engine: str) -> None:
    """Without a predicate the first lane's place counts too; what is written by address is written."""
    text = PLACES.replace("(P1) mov", "mov")
    data, out = np.arange(16, dtype=np.int32) % 8 * 4, np.zeros(16, np.int32)
    kernel = Kernel.from_assembly(text, target="pvcxt", check="uninit", engine=engine)
    kernel(data, out)
    np.testing.assert_array_equal(out, data // 4)
    data[0] = 32
    with pytest.raises(DiagnosticError, match="reads byte 32 of 'X', which was never written"):
        kernel(data, out)
    # The store by address, of the last of the bytes that are read, comes first.
    lines = text.split("\n")
    read, write = (next(n for n, line in enumerate(lines) if part in line) for part in ("r[A0(0),0]", "r[A0(2),4]"))
    lines[read], lines[write] = lines[write].replace("A0(2),4", "A0(0),0"), lines[read]
    Kernel.from_assembly("\n".join(lines), target="pvcxt", check="uninit", engine=engine)(data, out)
    assert out[0] == 9 and (out[1:] == data[1:] // 4).all()


PRODUCT = """\
.version 3.8
.kernel "product"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Skip v_type=G type=ud num_elts=1 align=dword
.decl Addr v_type=G type=uq num_elts=16 align=GRF
.decl Acc v_type=G type=f num_elts=16 align=GRF
.decl B v_type=G type=ud num_elts=128 align=GRF
.decl A v_type=G type=ud num_elts=8 align=GRF
.decl Spare v_type=G type=ud num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.input Out offset=64 size=8
.input Skip offset=72 size=4
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    cmp.ne (M1, 1) P Skip(0,0)<0;1,0> 0:ud
    (P) jmp (M1, 1) Behind
{fill}
Behind:
    add (M1_NM, 16) Spare(0,0)<1> Spare(0,0)<1;1,0> 1:ud
    dpas.bf.bf.8.1 (M1, 16) Acc.0 %null.0 B.0 A(0,0)
    mov (M1_NM, 16) Addr(0,0)<1> Out(0,0)<0;1,0>
    lsc_store.ugm (M1_NM, 1) flat[Addr]:a64 Acc:d32x16t
    ret (M1, 1)
"""


def filled(name: str, registers: int) -> str:
    return "\n".join(f"    mov (M1_NM, 16) {name}({r},0)<1> 0x3f803f80:ud" for r in range(registers))


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("matrix", ["A", "B"])
def test_xe3_multiplies_only_what_was_written(matrix: str, engine: str) -> None:
    """Without a check: more than the product itself is lost there. Other reads, and other targets, are no error."""
    a, b = "    mov (M1_NM, 8) A(0,0)<1> 0x3f803f80:ud", filled("B", 8)
    # One register of B is missing, or all of A.
    fill = b if matrix == "A" else f"{a}\n{filled('B', 7)}"
    for target in ("ptl", "lnl", "bmg", "pvcxt"):
        for text in (fill, f"{a}\n{b}"):
            kernel = Kernel.from_assembly(PRODUCT.format(fill=text), target=target, engine=engine, cache="off")
            for skip in (0, 1):
                out = np.zeros(16, np.float32)
                if target != "ptl" or (text is not fill and not skip):
                    kernel(out, np.uint32(skip))
                    assert (out == 16).all() == (text is not fill and not skip)
                    continue
                with pytest.raises(DiagnosticError) as caught:
                    kernel(out, np.uint32(skip))
                (error,) = caught.value.diagnostics
                at = 0 if skip or matrix == "A" else 448
                name = matrix if not skip else "B"
                assert error.message == f"'dpas' reads byte {at} of '{name}', which was never written"
                assert error.notes[1].message == (
                    "rule dpas-uninitialized: src1 and src2 of dpas are in registers that were written; ptl returns "
                    "undefined data (in other threads too); pvc, pvcxt, dg2, bmg, lnl and cri leave the outcome "
                    "undefined"
                )


def test_products_of_unwritten_registers_run_where_rules_are_collected() -> None:
    """The first missing factor of each product is an error, and the product runs."""
    kernel = Kernel.from_assembly(PRODUCT.format(fill=filled("B", 8)), target="ptl", cache="off")
    out = np.zeros(16, np.float32)
    version, launch = kernel.prepared([out, np.uint32(1)], 1, None)
    found = version.broken_rules(launch)
    assert found
    assert [d.message for d in found.diagnostics] == ["'dpas' reads byte 0 of 'B', which was never written"]
    version, launch = kernel.prepared([out, np.uint32(0)], 1, None)
    found = version.broken_rules(launch)
    assert found
    assert [d.message for d in found.diagnostics] == ["'dpas' reads byte 0 of 'A', which was never written"]
    written = Kernel.from_assembly(
        PRODUCT.format(fill=f"    mov (M1_NM, 8) A(0,0)<1> 0x3f803f80:ud\n{filled('B', 8)}"), target="ptl", cache="off"
    )
    version, launch = written.prepared([out, np.uint32(0)], 1, None)
    assert version.broken_rules(launch) is None and not out.any()
