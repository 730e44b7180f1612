"""Reading and writing vISA assembly."""

import random

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.program import Program

from .programs import STRAIGHT, random_program

HEADER = """\
.version 3.8
.kernel "k"
.decl X v_type=G type=f num_elts=64 align=GRF
.decl Y v_type=G type=f num_elts=16 align=GRF alias=<X,64>
.decl P v_type=P num_elts=16
"""


def read(text: str) -> list[Program]:
    return assembly.read(Source(text, "k.visaasm"))


@settings(max_examples=examples(100))
@given(names=st.lists(st.sampled_from(STRAIGHT), min_size=1, max_size=40), seed=st.integers(0, 1 << 32))
def test_what_is_written_reads_as_the_same_program(names: list[str], seed: int) -> None:
    program = random_program(names, random.Random(seed), TARGETS["pvcxt"])
    text = assembly.write([program])
    assert read(text) == [program]
    assert assembly.write(read(text)) == text


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("add (16) X(0,0)<1> X(0,0)<1;1,0> 1.5:f", "add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 0x3fc00000:f"),
        ("mov (M1,16) X<1> X(0,0)<1;1,0> // end", "mov (M1, 16) X(0,0)<1> X(0,0)<1;1,0>"),
        ("mov /* c */ (M1, 1) X(0x0,0)<1> -1.5:f", "mov (M1, 1) X(0,0)<1> 0xbfc00000:f"),
        ("(!P.any) mov (M1, 16) X(0,0)<1> Y(0,0)<1;1,0>", "(!P.any) mov (M1, 16) X(0,0)<1> Y(0,0)<1;1,0>"),
        ("lsc_load.slm (M1, 16) X:d8u32 flat[Y]:a32", "lsc_load.slm (M1, 16) X.0:d8c32 flat[Y.0]:a32"),
        (
            "lsc_store.slm (M1, 16) flat[Y-0x10]:a32 X.64:d32",
            "lsc_store.slm (M1, 16) flat[Y.0-0x10]:a32 X.64:d32",
        ),
        ("L1:", "L1:"),
    ],
)
def test_spellings(written: str, canonical: str) -> None:
    [program] = read(HEADER + written + "\n")
    assert assembly.write_statement(program.instructions[0]) == canonical


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("add (M1, 16) Z(0,0)<1> X(0,0)<1;1,0> 0x0:d", 14, "'Z' is not declared"),
        ("ad (M1, 16) X(0,0)<1>", 1, "unknown instruction 'ad'; did you mean 'mad'?"),
        ("add (M1, 7) X(0,0)<1>", 10, "expected an execution size, 1, 2, 4, 8, 16, 32, such as in '(M1, 32)'"),
        ("add (M1, 16) X(0,0) X(0,0)<1;1,0>", 21, "expected the destination's region, such as '<1>', but got 'X'"),
        ("add (M1, 16) X(0,0)<1> X(0,0)<1;1> 0x0:d", 30, "expected the source's region, such as '(0,0)<1;1,0>'"),
        ("add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 5", 39, "expected the type of the constant, such as ':d'"),
        ("add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 0x1ff:ub", 38, "511 does not fit type ub"),
        ("add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 1:zz", 40, "unknown type 'zz'"),
        ("and (M1, 16) X(0,0)<1> (-)X(0,0)<1;1,0> 1:d", 24, "'src0' cannot have modifier (-); it can have (~)"),
        ("cmp.lo (M1, 16) P X(0,0)<1;1,0> X(0,0)<1;1,0>", 5, "expected 'condition', one of eq, ne, gt, ge, lt, le"),
        ("lsc_load.ugm.ca (M1, 16) X:d32 flat[X]:a64", 13, "expected cache options of L1 and L3, such as '.ca.ca'"),
        ("lsc_load.ugm.wb.wb (M1, 16) X:d32 flat[X]:a64", 13, "caches 'wb.wb' cannot be; there are df.df"),
        (
            "lsc_load.ugm (M1, 16) X:f32 flat[X]:a64",
            25,
            "expected the data's shape, such as 'd32', 'd32x4', 'd64x16t' or 'd8c32', but got 'f32'",
        ),
        ("lsc_store.ugm (M1, 16) flat[X]:a64 %null:d32", 41, "'src0' cannot be null"),
        (
            "lsc_load_block2d.ugm (M1, 1) X:d16 flat[X,1,1,1,1,1]",
            32,
            "expected the block's shape, such as 'd16.2x16x16nt', but got 'd16'",
        ),
        ("dpas.bf.bf.8.9 (M1, 16) X.0 X.0 X.0 X(0,0)", 14, "expected 'RC', 1 to 8, but got '9'"),
        ("dpas.bf.bf.3.8 (M1, 16) X.0 X.0 X.0 X(0,0)", 12, "expected 'SD', one of 1, 2, 4, 8, but got '3.8'"),
        ("(P) dpas.bf.bf.8.8 (M1, 16) X.0 X.0 X.0 X(0,0)", 1, "'dpas' cannot be predicated"),
        ("barrier X", 9, "unexpected 'X' after the statement"),
        (".decl X v_type=G type=f num_elts=1", 7, "redefinition of 'X'"),
        (".decl Q v_type=P num_elts=3", 27, "a predicate has 1, 2, 4, 8, 16 or 32 bits, not 3"),
        (".decl Q v_type=G type=x num_elts=3", 23, "'type' must be one of"),
        (".decl Q v_type=G type=f num_elts=0", 34, "'num_elts' must be a positive number"),
        (".decl Q v_type=G type=f num_elts=1 align=no", 42, "'align' must be one of"),
        (".decl Q v_type=B num_elts=1", 16, "'v_type' must be G, a general variable, A, an address variable, P, a"),
        (".decl Q v_type=G type=f num_elts=1 alias=<P,0>", 43, "an alias is of a general variable"),
        (".input P offset=0", 8, "an input is a general variable"),
        (".implicit_FOO X", 1, "unknown implicit input 'FOO'"),
        (".function x", 11, "expected the function's name in quotes"),
        (".functions x", 1, "unknown directive '.functions'"),
        (".decl 1 v_type=G", 7, "expected the variable's name, but got '1'"),
        (".decl Q v_type=G type=f type=f num_elts=1", 25, "unknown or repeated 'type' in .decl"),
        (".decl Q v_type=G kind=f num_elts=1", 18, "unknown or repeated 'kind' in .decl"),
        (".input X offset=x", 10, "expected 'offset=' and 'size=' with numbers"),
        (".input X place=4", 10, "expected 'offset=' and 'size=' with numbers"),
        (".kernel_attr =1", 14, "expected the attribute's name, but got '='"),
        (".kernel_attr Target=cm", 21, "expected a string or an integer, but got 'cm'"),
        (".version 3.8.1", 13, "expected a version, such as 3.8, but got '.1'"),
        ("mov (M1, 16) X(0,0)<1> %color(0,0)<0;1,0>", 24, "'%color' is not supported; there are %"),
        ("add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> 1.5:hf", 38, "a constant of type hf is written by its bits"),
        ("lsc_load.ugm (M1, 16) X:d32 [X]:a64", 29, "expected an address, such as 'flat[V]', but got '['"),
        ("lsc_load.ugm (M1, 16) X:d32 flat[X]", 36, "expected ':', but got end of input"),
        ("lsc_load_block2d.ugm (M1, 1) X:d16.8x8nn flat[X,0x100000000,1,1,1,1]", 49, "4294967296 does not fit 32 bits"),
        (
            "lsc_load_block2d.ugm (M1, 1) X:d16.8x8nn flat[X,-2147483649,1,1,1,1]",
            49,
            "-2147483649 does not fit 32 bits",
        ),
        ("lsc_load_block2d.ugm (M1, 1) X:d16.8x8nn flat[1,1,1,1,1,1]", 47, "expected a variable, but got '1'"),
        ("lsc_load_block2d.ugm (M1, 1) X:d16.8x8nn flat[X,?,1,1,1,1]", 49, "expected a variable or an integer, but"),
        ("gather_scaled.4 (M1, 16) 0x0:ud T6 X.0 X.0", 26, "expected a surface, such as '%slm', but got '0x0'"),
        ("oword_ld (2) X 0x0:ud Y.0", 14, "'X' is not supported: no engine has a table of surfaces"),
    ],
)
def test_faults_are_located(line: str, column: int, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read(HEADER + line + "\n")
    [diagnostic] = caught.value.diagnostics
    assert (diagnostic.position.line, diagnostic.position.column) == (6, column)
    assert message in diagnostic.message


@pytest.mark.parametrize(
    ("operand", "column", "message"),
    [
        ("r[Y(0),0]<1;1,0>:f", 26, "'Y' is no address variable"),
        ("r[5]<1;1,0>:f", 26, "expected an address variable, but got '5'"),
        ("r[A0(0),x]<1;1,0>:f", 32, "expected an integer, but got 'x'"),
        ("r[A0(0),0 <1;1,0>:f", 34, "expected ']', but got '<'"),
        ("r[A0(0),0]:f", 34, "expected a region, but got ':'"),
        ("r[A0(0),0]<1;1,0>:zz", 41, "expected ':' and the type, one of ub, b, uw, w, ud, d, uq, q, hf, bf, f, df"),
        ("r[A0(0),0]<1;1,0>", 41, "expected ':' and the type, one of "),
    ],
)
def test_faults_of_indirect_operands(operand: str, column: int, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read(f"{HEADER}.decl A0 v_type=A num_elts=4\nmov (M1, 16) X(0,0)<1> {operand}\n")
    [diagnostic] = caught.value.diagnostics
    assert message in diagnostic.message
    assert (diagnostic.position.line, diagnostic.position.column) == (7, column)


def test_a_text_without_a_kernel_is_refused() -> None:
    with pytest.raises(DiagnosticError, match="there is no .kernel"):
        read(".version 3.8\n")
    with pytest.raises(DiagnosticError, match="expected .version or .kernel"):
        read("    ret (M1, 1)\n")


def test_several_kernels() -> None:
    programs = read(HEADER + "    ret (M1, 1)\n" + HEADER.replace('"k"', '"l"') + "    ret (M1, 1)\n")
    assert [p.name for p in programs] == ["k", "l"]


@pytest.mark.parametrize(("name", "bits"), [(sign + "bwdq"[n], 8 << n) for n in range(4) for sign in ("", "u")])
def test_constants_at_both_ends_of_their_types(name: str, bits: int) -> None:
    """Numbers with or without a sign; IGC writes negative ones of 8 and 16 bits with 32."""

    def constant(value: int) -> int:
        [program] = read(f"{HEADER}mov (M1, 1) X(0,0)<1> {value:#x}:{name}\n")
        return program.instructions[0]["src0"].bits

    fits = [-(1 << bits - 1), -1, 0, (1 << bits) - 1]
    misfits = [-(1 << bits - 1) - 1, 1 << bits]
    if name in ("b", "w"):
        fits += [(1 << 32) - (1 << bits - 1), (1 << 32) - 1]
        misfits += [(1 << 32) - (1 << bits - 1) - 1, 1 << 32]
    for value in fits:
        assert constant(value) == value % (1 << bits)
    for value in misfits:
        with pytest.raises(DiagnosticError, match=f"{value} does not fit type {name}"):
            constant(value)
