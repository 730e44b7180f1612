"""Programs as values: equality, copies and pickles."""

import gc
import pickle
import sys

import pytest
from msgspec import structs

from xegpu_py.ir.diagnostics import Source
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.allocate import engine_allocation
from xegpu_py.visa.dataflow import divergent_lanes, flow_of, liveness_of
from xegpu_py.visa.program import Input, Instruction, Program, analysis, digest_of, pickled_analysis

TEXT = """
.version 4.2
.kernel "doubled"
.decl V1 v_type=G type=f num_elts=16 align=GRF
.decl P1 v_type=P num_elts=16
.decl B v_type=G type=uq num_elts=1
.input B offset=32 size=8
.kernel_attr SimdSize=16
mov (M1, 16) V1(0,0)<1> 0x3f800000:f
add (M1, 16) V1(0,0)<1> V1(0,0)<1;1,0> V1(0,0)<1;1,0>
ret (M1, 1)
"""


def read(text: str = TEXT) -> Program:
    [program] = assembly.read(Source(text, "doubled.visaasm"))
    return program


def unlike(a: object, b: object) -> bool:
    """Whether values differ, by both operators."""
    assert (a == b) is not (a != b)
    return a != b


def test_positions_are_not_compared():
    program, moved = read(), read("\n\n" + TEXT)
    assert not unlike(program, moved) and program.where != moved.where
    assert not unlike(program.inputs[0], moved.inputs[0]) and hash(program.inputs[0]) == hash(moved.inputs[0])
    assert digest_of(program) == digest_of(moved)


@pytest.mark.parametrize("name", [n for n in Program.__struct_fields__ if n not in ("where", "declared")])
def test_all_that_runs_is_compared(name: str):
    program = read()
    value = getattr(program, name)
    others = {bool: True, str: "other", dict: {"SimdSize": 8}, tuple: () if value else ("other",)}
    other = structs.replace(program, **{name: others[type(value)]})
    assert unlike(program, other) and digest_of(program) != digest_of(other)
    assert not unlike(program, structs.replace(other, **{name: value}))


@pytest.mark.parametrize(("name", "other"), [("offset", 64), ("size", 4), ("kind", "LOCAL_SIZE")])
def test_inputs(name: str, other: object):
    item = read().inputs[0]
    assert unlike(item, structs.replace(item, **{name: other})) and unlike(item, "B")


@pytest.mark.parametrize("value", [read(), read().inputs[0], read().instructions[0]], ids=lambda v: type(v).__name__)
def test_pickles(value: Program | Input | Instruction):
    assert not unlike(pickle.loads(pickle.dumps(value)), value)


@analysis
def counted(program: Program) -> list[str]:
    return [program.name]


@pickled_analysis
def kept(program: Program) -> list[str]:
    return [program.name]


def test_results_of_analyses_belong_to_one_program():
    """A changed copy has none, and of a pickle those that are worth their bytes."""
    program = read()
    assert counted(program) is counted(program) and kept(program) is kept(program)
    other = structs.replace(program, name="other")
    assert counted(other) == ["other"] == kept(other) and flow_of(other) is not flow_of(program)
    again = pickle.loads(pickle.dumps(program))
    assert {key[0].__name__ for key in again.known} == {"kept"}


@analysis
def same(program: Program) -> Program:
    return program


def test_results_of_analyses_end_with_their_program():
    """Not with the next garbage collection: they are in no cycle."""
    program, target = read(), TARGETS["bmg"]
    assert same(program) is same(program) is program
    liveness_of(program, target)
    engine_allocation(program, target)
    held = flow_of(program)
    gc.collect()
    gc.disable()
    try:
        references = sys.getrefcount(held)
        del program
        assert sys.getrefcount(held) < references
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("body", "lanes", "diverges"),
    [
        ("", (0, 32), False),
        ("(P1) jmp (M1, 1) End", (0, 32), False),
        ("(P1) goto (M1, 16) End", (0, 16), True),
        ("(P1) goto (M5, 16) End", (16, 32), True),
        ("(P1) goto (M1, 16) End\n(P1) goto (M5, 8) End", (0, 24), True),
        ("call (M2, 8) Square", (4, 12), True),
        ("call (M1, 4) Square\n(P1) goto (M3, 8) End", (0, 16), True),
    ],
)
def test_lanes_that_diverge(body: str, lanes: tuple[int, int], diverges: bool):
    """Those of branches of lanes and of calls, as far as they reach."""
    function = '.function "Square"\nSquare:\nret (M1, 1)\n' if "call" in body else ""
    program = read(TEXT.replace("ret", f"{body}\nEnd:\nret") + function)
    assert (divergent_lanes(program), flow_of(program).divergent) == (range(*lanes), diverges)


@pytest.mark.parametrize(("version", "bits"), [("3.8", 0xFFFFFFFF), ("4.0", 0xEFFFFFFF), ("4.2", 0xEFFFFFFF)])
def test_bits_of_local_addresses(version: str, bits: int):
    """IGC sets bit 28 of local addresses, which is no part of them."""
    assert read(TEXT.replace("4.2", version)).local_bits == bits
