"""Instructions before and after their values are rewritten, one pattern each."""

import re

import pytest

from xegpu_py.ir.diagnostics import Source
from xegpu_py.passes.visa_optimize import VisaOptimize
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.verify import verify

DECLARED = """\
.version 3.8
.kernel "k"
.decl A v_type=G type=uq num_elts=1 align=qword
.decl I v_type=G type=ud num_elts=2 align=GRF
.decl B v_type=G type=uq num_elts=1 align=qword
.decl C v_type=G type=uq num_elts=1 align=qword
.decl F v_type=G type=f num_elts=16 align=GRF
.decl N v_type=G type=ud num_elts=32 align=GRF
.decl O v_type=G type=ud num_elts=32 align=GRF
.decl S v_type=G type=ud num_elts=1 align=dword
.decl T v_type=G type=ud num_elts=1 align=dword
.decl W v_type=G type=uw num_elts=32 align=GRF
.decl X v_type=G type=d num_elts=16 align=GRF
.decl Y v_type=G type=d num_elts=16 align=GRF
.input A offset=64 size=8
.input I offset=72 size=8
.kernel_attr Target="cm"
"""
LOAD = "lsc_load.ugm (M1_NM, 1) X:d32x16t flat[A]:a64"
STORE = "lsc_store.ugm (M1_NM, 1) flat[A]:a64 X:d32x16t"


def rewritten(body, *steps):
    """The instructions of a kernel after these steps, without the masks and with the spaces of the printer."""
    text = DECLARED + "".join(f"    {line}\n" for line in [*body, "ret (M1, 1)"])
    [program] = assembly.read(Source(text, "k.visaasm"))
    target = TARGETS["pvcxt"]
    assert verify(program, target) == []
    options = dict.fromkeys(("fold", "copies", "addresses", "hoist", "dead", "schedule"), False)
    new = VisaOptimize(**options | dict.fromkeys(steps, True)).optimize(program, target)
    assert verify(new, target) == []
    lines = [line.strip() for line in assembly.write([new]).splitlines()]
    return [line.replace("(M1_NM, ", "(") for line in lines if line and line[0] not in "./"][:-1]


def plus(to, of, number):
    """A sum of scalars."""
    return f"add (M1_NM, 1) {to}(0,0)<1> {of}(0,0)<0;1,0> {number}"


def address_of(lines):
    """The address of the message that is the last instruction."""
    return re.search(r"flat\[(.*?)\]", lines[-1])[1]


@pytest.mark.parametrize(
    ("sums", "address", "expected"),
    [
        ([plus("B", "A", "256:ud")], "B", "A.0+0x100"),
        ([plus("B", "A", "256:ud")], "B+64", "A.0+0x140"),
        ([plus("B", "A", "-64:d")], "B", "A.0-0x40"),
        ([plus("B", "A", "-64:d")], "B-8", "A.0-0x48"),
        ([plus("B", "A", "-64:d")], "B+64", "A.0"),
        # Sums of sums.
        ([plus("B", "A", "64:ud"), plus("C", "B", "8:ud")], "C", "A.0+0x48"),
        ([plus("B", "A", "-64:d"), plus("C", "B", "72:ud")], "C", "A.0+0x8"),
        # Offsets of a message have 20 bits.
        ([plus("B", "A", "0x7ffff:ud")], "B", "A.0+0x7ffff"),
        ([plus("B", "A", "0x7ffff:ud")], "B+1", None),
        ([plus("B", "A", "-524288:d")], "B", "A.0-0x80000"),
        ([plus("B", "A", "-524288:d")], "B-1", None),
        # The sum has another width than the address, saturates, negates it, or is read by another instruction too.
        (["add.sat (M1_NM, 1) B(0,0)<1> A(0,0)<0;1,0> 256:ud"], "B", None),
        (["add (M1_NM, 1) B(0,0)<1> (-)A(0,0)<0;1,0> 256:ud"], "B", None),
        ([plus("B", "I", "256:ud")], "B", None),
        (["add (M1_NM, 1) B(0,0)<1> A(0,0)<0;1,0> I(0,0)<0;1,0>"], "B", None),
        (["shl (M1_NM, 1) B(0,0)<1> A(0,0)<0;1,0> 2:ud"], "B", None),
        ([plus("B", "A", "256:ud"), "mov (M1_NM, 1) C(0,0)<1> B(0,0)<0;1,0>"], "B", None),
        # The sum, or its operand, is written again.
        ([plus("B", "A", "256:ud"), plus("A", "A", "1:ud")], "B", None),
    ],
)
def test_offsets_of_messages(sums, address, expected):
    lines = [LOAD, *sums, f"lsc_store.ugm (M1_NM, 1) flat[{address}]:a64 X:d32x16t"]
    assert address_of(rewritten(lines, "addresses")) == (expected or address_of(rewritten(lines)))


LANES = ["mov (M1_NM, 16) N(0,0)<1> W(0,0)<1;1,0>", "mov (M1_NM, 16) N(1,0)<1> W(0,16)<1;1,0>"]


@pytest.mark.parametrize(
    ("sums", "expected"),
    [
        (["add (M1_NM, 16) O(0,0)<1> N(0,0)<1;1,0> 64:ud"], "N.0+0x40"),
        (["add (M1_NM, 16) O(0,0)<1> N(1,0)<1;1,0> 64:ud"], "N.64+0x40"),
        (["add (M1_NM, 8) O(0,0)<1> N(0,0)<1;1,0> 64:ud", "add (M1_NM, 8) O(0,8)<1> N(0,8)<1;1,0> 64:ud"], "N.0+0x40"),
        (["add (M1_NM, 16) O(0,0)<1> N(0,0)<1;1,0> -64:d"], "N.0-0x40"),
        (["add (M1_NM, 16) O(0,0)<1> N(0,0)<1;1,0> -64:d", "add (M1_NM, 16) O(0,0)<1> O(0,0)<1;1,0> -64:d"], None),
        (["add (M1_NM, 16) N(1,0)<1> N(0,0)<1;1,0> -64:d", "add (M1_NM, 16) O(0,0)<1> N(1,0)<1;1,0> -8:d"], "N.0-0x48"),
        (["add (M1_NM, 16) O(0,0)<1> %group_id_x(0,0)<0;1,0> 64:ud"], None),
        # Each lane must have the element of its own, and the same constant.
        (["add (M1_NM, 8) O(0,0)<1> N(0,0)<1;1,0> 64:ud", "add (M1_NM, 8) O(0,8)<1> N(0,8)<1;1,0> 68:ud"], None),
        (["add (M1_NM, 8) O(0,0)<1> N(0,0)<1;1,0> 64:ud", "add (M1_NM, 8) O(0,8)<1> N(1,8)<1;1,0> 64:ud"], None),
        (["add (M1_NM, 8) O(0,0)<1> N(0,8)<1;1,0> 64:ud", "add (M1_NM, 8) O(0,8)<1> N(0,0)<1;1,0> 64:ud"], None),
        (["add (M1_NM, 8) O(0,0)<1> N(0,0)<1;1,0> 64:ud", "mov (M1_NM, 8) O(0,8)<1> N(0,8)<1;1,0>"], None),
        (["add (M1_NM, 16) O(0,0)<1> N(0,0)<0;1,0> 64:ud"], None),
        (["add (M1_NM, 16) O(0,0)<1> N(0,0)<2;1,0> 64:ud"], None),
    ],
)  # fmt: skip
def test_offsets_of_lanes(sums, expected):
    lines = [LOAD, *LANES, *sums, "lsc_store.slm (M1_NM, 16) flat[O]:a32 X:d32"]
    assert address_of(rewritten(lines, "addresses")) == (expected or "O.0")


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("mul (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0> 2:d", "shl (16) X(0,0)<1> X(0,0)<1;1,0> 0x1:ud"),
        ("mul (M1_NM, 16) X(0,0)<1> N(0,0)<1;1,0> 64:ud", "shl (16) X(0,0)<1> N(0,0)<1;1,0> 0x6:ud"),
        ("mul (M1_NM, 16) X(0,0)<1> N(0,0)<1;1,0> 64:uw", "shl (16) X(0,0)<1> N(0,0)<1;1,0> 0x6:ud"),
        ("mul (M1_NM, 16) X(0,0)<1> N(0,0)<1;1,0> 0x80000000:ud", None),
        ("mul (M1_NM, 16) X(0,0)<1> N(0,0)<1;1,0> 0x40000000:ud", "shl (16) X(0,0)<1> N(0,0)<1;1,0> 0x1e:ud"),
        # Factors that are no powers of two, or negative; one and zero are folded elsewhere.
        ("mul (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0> 6:d", None),
        ("mul (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0> -2:d", None),
        ("mul (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0> 1:d", None),
        ("mul (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0> 0:d", None),
        ("mul (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0> -32768:w", None),
        # Other widths and types, and what a shift does not do.
        ("mul (M1_NM, 16) F(0,0)<1> F(0,0)<1;1,0> 2.0:f", None),
        ("mul (M1_NM, 16) W(0,0)<1> W(0,0)<1;1,0> 2:uw", None),
        ("mul (M1_NM, 16) X(0,0)<1> W(0,0)<1;1,0> 2:uw", None),
        ("mul (M1_NM, 16) W(0,0)<1> X(0,0)<1;1,0> 2:d", None),
        ("mul.sat (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0> 2:d", None),
        ("mul (M1_NM, 16) X(0,0)<1> (-)X(0,0)<1;1,0> 2:d", None),
        ("mul (M1_NM, 16) X(0,0)<1> X(0,0)<1;1,0> Y(0,0)<1;1,0>", None),
        ("mul (M1_NM, 1) X(0,0)<1> 6:d 2:d", None),
    ],
)  # fmt: skip
def test_products_that_are_shifts(product, expected):
    [last] = rewritten([product], "addresses")
    assert last == (expected or rewritten([product])[0])


MOVED = "mov (M1_NM, 16) Y(0,0)<1> X(0,0)<1;1,0>"


@pytest.mark.parametrize(
    ("moves", "use", "expected"),
    [
        # A use of a copy reads the original, with its own region, modifier and position.
        ([MOVED], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", "X(0,0)<1;1,0>"),
        ([MOVED], "add (M1_NM, 16) Y(0,0)<1> Y(0,0)<1;1,0> 1:d", "X(0,0)<1;1,0>"),
        ([MOVED], "add (M1_NM, 8) N(0,0)<1> Y(0,8)<1;1,0> 1:d", "X(0,8)<1;1,0>"),
        ([MOVED], "add (M1_NM, 16) N(0,0)<1> Y(0,3)<0;1,0> 1:d", "X(0,3)<0;1,0>"),
        ([MOVED], "add (M1_NM, 16) N(0,0)<1> (-)Y(0,0)<1;1,0> 1:d", "(-)X(0,0)<1;1,0>"),
        ([MOVED], "mov (M1_NM, 16) F(0,0)<1> Y(0,0)<1;1,0>", "X(0,0)<1;1,0>"),
        (["mov (M1_NM, 16) Y(0,0)<1> X(0,2)<0;1,0>"], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", "X(0,2)<0;1,0>"),
        # Of another type of as many bits, it reads an alias.
        (["mov (M1_NM, 16) Y(0,0)<1> N(0,0)<1;1,0>"], "add (M1_NM, 16) O(0,0)<1> Y(0,0)<1;1,0> 1:d", "N_d(0,0)<1;1,0>"),
        # The result overwrites the original; moves that change bits, or are of fewer elements than are read; an
        # original that is written in between.
        ([MOVED], "add (M1_NM, 16) X(0,0)<1> Y(0,0)<1;1,0> 1:d", None),
        (["mov.sat (M1_NM, 16) Y(0,0)<1> X(0,0)<1;1,0>"], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", None),
        (["mov (M1_NM, 16) Y(0,0)<1> (-)X(0,0)<1;1,0>"], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", None),
        (["mov (M1_NM, 8) Y(0,0)<1> X(0,0)<1;1,0>"], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", None),
        (["mov (M1_NM, 8) Y(0,0)<2> X(0,0)<1;1,0>"], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", None),
        (["mov (M1_NM, 16) F(0,0)<1> X(0,0)<1;1,0>"], "add (M1_NM, 16) F(0,0)<1> F(0,0)<1;1,0> 1.0:f", None),
        (["mov (M1_NM, 16) W(0,0)<1> X(0,0)<1;1,0>"], "add (M1_NM, 16) N(0,0)<1> W(0,0)<1;1,0> 1:d", None),
        ([MOVED, "mov (M1_NM, 16) X(0,0)<1> 5:d"], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", None),
        ([MOVED, "mov (M1_NM, 1) X(0,4)<1> 5:d"], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", None),
        ([MOVED, "mov (M1_NM, 1) Y(0,4)<1> 5:d"], "add (M1_NM, 16) N(0,0)<1> Y(0,0)<1;1,0> 1:d", None),
    ],
)
def test_uses_of_copies(moves, use, expected):
    last = rewritten([LOAD, *moves, use], "copies")[-1]
    [unchanged] = rewritten([use])
    source = unchanged.split()[3]
    assert last == (unchanged if expected is None else unchanged.replace(f" {source}", f" {expected}"))


@pytest.mark.parametrize(
    ("moves", "store", "expected"),
    [
        ([MOVED], "Y:d32x16t", "X.0"),
        # A payload begins at a register.
        (["mov (M1_NM, 8) Y(0,0)<1> X(0,8)<1;1,0>"], "Y:d32x8t", "Y.0"),
        # The bytes of a payload must follow each other in the original, too.
        (["mov (M1_NM, 8) Y(0,0)<1> X(0,8)<1;1,0>", "mov (M1_NM, 8) Y(0,8)<1> X(0,0)<1;1,0>"], "Y:d32x16t", "Y.0"),
        (["mov (M1_NM, 8) Y(0,0)<1> X(0,0)<1;1,0>", "mov (M1_NM, 8) Y(0,8)<1> N(0,8)<1;1,0>"], "Y:d32x16t", "Y.0"),
        (["mov (M1_NM, 8) Y(0,0)<1> X(0,0)<1;1,0>"], "Y:d32x16t", "Y.0"),
        (["mov (M1_NM, 16) Y(0,0)<1> X(0,0)<0;1,0>"], "Y:d32x16t", "Y.0"),
    ],
)
def test_payloads_that_are_copies(moves, store, expected):
    last = rewritten([LOAD, *moves, f"lsc_store.ugm (M1_NM, 1) flat[A]:a64 {store}"], "copies")[-1]
    assert last == f"lsc_store.ugm (1) flat[A.0]:a64 {expected}:{store.partition(':')[2]}"


def test_a_load_writes_what_is_copied_as_a_whole():
    halves = ["mov (M1_NM, 8) Y(0,0)<1> X(0,0)<1;1,0>", "mov (M1_NM, 8) Y(0,8)<1> X(0,8)<1;1,0>"]
    store = "lsc_store.ugm (M1_NM, 1) flat[A]:a64 Y:d32x16t"
    assert rewritten([LOAD, *halves, store], "copies") == [
        "lsc_load.ugm (1) Y.0:d32x16t flat[A.0]:a64",
        "lsc_store.ugm (1) flat[A.0]:a64 Y.0:d32x16t",
    ]
    assert len(rewritten([LOAD, *halves[:1], store], "copies")) == 3


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        # The number that changes nothing, and the one that decides the result.
        ("add", "X(0,0)<1> X(0,0)<1;1,0> 0:d", "X(0,0)<1> X(0,0)<1;1,0>"),
        ("or", "X(0,0)<1> X(0,0)<1;1,0> 0:d", "X(0,0)<1> X(0,0)<1;1,0>"),
        ("xor", "X(0,0)<1> X(0,0)<1;1,0> 0:d", "X(0,0)<1> X(0,0)<1;1,0>"),
        ("shl", "X(0,0)<1> X(0,0)<1;1,0> 0:d", "X(0,0)<1> X(0,0)<1;1,0>"),
        ("asr", "X(0,0)<1> X(0,0)<1;1,0> 0:d", "X(0,0)<1> X(0,0)<1;1,0>"),
        ("mul", "X(0,0)<1> X(0,0)<1;1,0> 1:d", "X(0,0)<1> X(0,0)<1;1,0>"),
        ("and", "X(0,0)<1> X(0,0)<1;1,0> -1:d", "X(0,0)<1> X(0,0)<1;1,0>"),
        ("mul", "X(0,0)<1> X(0,0)<1;1,0> 0:d", "X(0,0)<1> 0x0:d"),
        ("and", "X(0,0)<1> X(0,0)<1;1,0> 0:d", "X(0,0)<1> 0x0:d"),
        # To other variables, types and elements.
        ("add", "X(0,0)<1> Y(0,0)<1;1,0> 0:d", "X(0,0)<1> Y(0,0)<1;1,0>"),
        ("add", "N(0,0)<1> X(0,0)<1;1,0> 0:d", "N(0,0)<1> X(0,0)<1;1,0>"),
        ("add", "W(0,0)<1> X(0,0)<1;1,0> 0:d", "W(0,0)<1> X(0,0)<1;1,0>"),
        ("add", "X(0,0)<1> X(0,3)<0;1,0> 0:d", "X(0,0)<1> X(0,3)<0;1,0>"),
        # Other numbers, and floats, of which a zero has two signs and a NaN many payloads.
        ("add", "X(0,0)<1> X(0,0)<1;1,0> 1:d", None),
        ("mul", "X(0,0)<1> X(0,0)<1;1,0> 2:d", None),
        ("and", "X(0,0)<1> X(0,0)<1;1,0> 1:d", None),
        ("and", "N(0,0)<1> N(0,0)<1;1,0> 0xffff:ud", None),
        ("shr", "N(0,0)<1> N(0,0)<1;1,0> 32:ud", None),
        ("mul", "F(0,0)<1> F(0,0)<1;1,0> 1.0:f", None),
        ("add", "F(0,0)<1> F(0,0)<1;1,0> 0.0:f", None),
        ("add", "X(0,0)<1> (-)X(0,0)<1;1,0> 0:d", None),
        ("min", "X(0,0)<1> X(0,0)<1;1,0> X(0,0)<1;1,0>", None),
    ],
)
def test_operations_with_a_neutral_number(name, operands, expected):
    instruction = f"{name} (M1_NM, 16) {operands}"
    assert rewritten([instruction], "fold") == ([f"mov (16) {expected}"] if expected else rewritten([instruction]))
