"""Each rule of a program, broken once: by a line of assembly, or by a declaration."""

import itertools

import pytest

from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.verify import Issue, verify

DECLARED = """\
.decl F v_type=G type=f num_elts=128 align=GRF
.decl H v_type=G type=hf num_elts=256 align=GRF
.decl BF v_type=G type=bf num_elts=128 align=GRF
.decl DF v_type=G type=df num_elts=64 align=GRF
.decl D v_type=G type=d num_elts=128 align=GRF
.decl U v_type=G type=ud num_elts=512 align=GRF
.decl Q v_type=G type=uq num_elts=64 align=GRF
.decl W v_type=G type=uw num_elts=64 align=GRF
.decl B v_type=G type=ub num_elts=128 align=GRF
.decl L v_type=G type=d num_elts=64 align=dword
.decl O v_type=G type=d num_elts=16 align=dword alias=<D,8>
.decl S v_type=G type=uq num_elts=1 align=qword
.decl P v_type=P num_elts=16
.decl P1 v_type=P num_elts=1
"""


def issues(declared: str, body: str, gpu: str) -> list[Issue]:
    [program] = assembly.read(Source(f'.version 3.8\n.kernel "k"\n{DECLARED}{declared}{body}', "k.visaasm"))
    return verify(program, TARGETS[gpu])


def only(declared: str, body: str, gpu: str = "pvcxt") -> Issue:
    found = issues(declared, body, gpu)
    assert len(found) == 1, found
    return found[0]


BLOCK = "flat[Q(0,0),0x7ff,0x3ff,0x7ff,0x0,0x0]"
LEGAL = [
    "add (M1, 16) F(0,0)<1> F(1,0)<1;1,0> 0x0:f",
    "dpas.bf.bf.8.8 (M1, 16) F.0 %null.0 D.0 D(0,0)",
    "lsc_load.ugm (M1, 16) F.0:d32 flat[Q.0]:a64",
    f"lsc_load_block2d.ugm (M1, 1) F.0:d16.16x8nn {BLOCK}",
    "lsc_atomic_iinc.ugm (M1, 16) U.0:d32 flat[Q.0]:a64 %null.0 %null.0",
    "srnd (M1_NM, 16) H(0,0)<1> F(0,0)<1;1,0> F(1,0)<1;1,0>",
]

INSTRUCTIONS = [
    # Lanes and masks.
    ("add (M8, 16) F(0,0)<1> F(1,0)<1;1,0> 0x0:f", "of execution size 16 and mask M8 reaches over lane 31"),
    ("add (M2, 16) F(0,0)<1> F(1,0)<1;1,0> 0x0:f", "of execution size 16 has the mask M1, M5, not M2"),
    ("(P) add (M1, 32) H(0,0)<1> H(1,0)<1;1,0> H(1,0)<1;1,0>", "reaches lane 31, but the predicate 'P' has 16 bits"),
    ("(P) add (M5, 16) F(0,0)<1> F(1,0)<1;1,0> 0x0:f", "reaches lane 31, but the predicate 'P' has 16 bits"),
    ("cmp.lt (M1, 32) P H(0,0)<1;1,0> H(0,0)<1;1,0>", "reaches lane 31, but the predicate 'P' has 16 bits"),
    ("(F) add (M1, 16) F(0,0)<1> F(1,0)<1;1,0> 0x0:f", "is predicated by 'F', which is not a predicate"),
    ("sel (M1, 16) F(0,0)<1> F(1,0)<1;1,0> 0x0:f", "needs a predicate"),
    ("srnd (M1, 16) H(0,0)<1> F(0,0)<1;1,0> F(1,0)<1;1,0>", "must use NoMask"),
    ("fcvt (M1, 16) B(0,0)<1> H(0,0)<1;1,0>", "must use NoMask"),
    (
        "madw (M1, 16) D(7,0)<1> D(0,0)<1;1,0> D(0,0)<1;1,0> 0x0:d",
        "writes upper halves up to byte 576 of 'D', which has 512",
    ),
    ("madw (M1, 16) D(0,1)<1> D(0,0)<1;1,0> D(0,0)<1;1,0> 0x0:d", "has a result that begins at a register"),
    ("madw (M1, 8) D(0,0)<2> D(0,0)<1;1,0> D(0,0)<1;1,0> 0x0:d", "has a result that begins at a register"),
    ("mul (M1, 16) Q(0,0)<1> Q(0,0)<1;1,0> D(0,0)<1;1,0>", "cannot multiply uq"),
    # Types.
    ("add (M1, 16) BF(0,0)<1> BF(0,0)<1;1,0> 0x0:bf", "operand 'src1' cannot be a constant of bf"),
    ("mulh (M1, 16) D(0,0)<1> W(0,0)<1;1,0> D(0,0)<1;1,0>", "operand 'src0' must be of type ud or d, but got uw"),
    ("mulh (M1, 16) D(0,0)<1> D(0,0)<1;1,0> 0x0:w", "operand 'src1' must be of type ud or d, but got w"),
    ("mov (M1, 16) BF(0,0)<1> 0x0:bf", "operand 'src0' cannot be a constant of bf"),
    (
        "add (M1, 16) P(0,0)<1> F(0,0)<1;1,0> 0x0:f",
        "operand 'dst' is the predicate 'P', but must be a general variable",
    ),
    ("and (M1, 16) F D(0,0)<1;1,0> 0x0:d", "operand 'dst' is 'F', which is not a predicate"),
    ("mov (M1, 1) %r0(0,0)<1> 0x0:ud", "writes %r0, which can only be read"),
    ("add (M1, 16) F(0,0)<1> F(0,0)<1;1,0> D(0,0)<1;1,0>", "sources of f, d mix integers and floats"),
    ("add (M1, 8) DF(0,0)<1> DF(0,0)<1;1,0> F(0,0)<1;1,0>", "f64 cannot be combined with another type"),
    ("add (M1, 16) D(0,0)<1> F(0,0)<1;1,0> F(0,0)<1;1,0>", "result of f, f cannot have the type d"),
    ("add (M1, 16) F(0,0)<1> D(0,0)<1;1,0> D(0,0)<1;1,0>", "result of d, d cannot have the type f"),
    ("add (M1, 16) BF(0,0)<1> H(0,0)<1;1,0> H(0,0)<1;1,0>", "bf can be combined only with bf and f, not hf"),
    ("mul (M1, 8) Q(0,0)<1> Q(0,0)<1;1,0> Q(0,0)<1;1,0>", "cannot multiply uq"),
    ("mov (M1, 16) BF(0,0)<1> D(0,0)<1;1,0>", "cannot convert d to bf"),
    ("mov.sat (M1, 16) BF(0,0)<1> BF(0,0)<1;1,0>", "of bf to bf can neither saturate nor have a source modifier"),
    ("mov (M1, 16) D(0,0)<1> P", "of a predicate must have execution size 1 and a destination of 16 or 32 bits"),
    ("(P1) mov (M1, 1) D(0,0)<1> P", "of a predicate can neither be predicated nor saturate"),
    ("cmp.lt (M1, 16) P F(0,0)<1;1,0> D(0,0)<1;1,0>", "sources of f, d mix integers and floats"),
    ("cmp.lt (M1, 8) P DF(0,0)<1;1,0> F(0,0)<1;1,0>", "f64 cannot be combined with another type"),
    ("cmp.lt (M1, 16) P BF(0,0)<1;1,0> H(0,0)<1;1,0>", "bf can be combined only with bf and f"),
    ("and (M1, 16) P P D(0,0)<1;1,0>", "predicates can be combined only with predicates"),
    ("(P) and (M1, 16) P P P", "on predicates cannot be predicated"),
    (
        "and (M1, 16) H(0,0)<1> D(0,0)<1;1,0> D(0,0)<1;1,0>",
        "operand 'dst' must be of type ub, b, uw, w, ud, d, uq or q, but got hf",
    ),
    ("srnd (M1_NM, 16) H(0,0)<1> H(0,0)<1;1,0> F(0,0)<1;1,0>", "to hf has sources of f, not of hf"),
    ("fcvt (M1, 16) H(0,0)<1> F(0,0)<1;1,0>", "cannot convert f to hf; it converts hf to ub, ub to hf, f to ud"),
    ("mad.sat (M1, 16) D(0,0)<1> D(0,0)<1;1,0> D(0,0)<1;1,0> D(0,0)<1;1,0>", "of integers cannot saturate"),
    (
        "lsc_load_block2d.ugm (M1_NM, 1) F.0:d32.16x1nn flat[Q(0,0),0x3f,0x0,0x3f,D(0,0),0x0]",
        "has one coordinate in a register and the other immediate",
    ),
    ("div.sat (M1, 8) DF(0,0)<1> DF(1,0)<1;1,0> DF(1,0)<1;1,0>", "of f64 cannot saturate"),
    ("inv (M1, 8) DF(0,0)<1> DF(1,0)<0;1,0>", "of f64 has operands that begin at a register and lie side by side"),
    ("setp (M1, 16) F W(0,0)<0;1,0>", "operand 'dst' is 'F', which is not a predicate"),
    # Regions.
    ("mov (M1, 16) F(0,0)<1> F(0,0)<3;1,0>", "operand 'src0' has vertical stride 3"),
    ("mov (M1, 16) F(0,0)<1> F(0,0)<1;3,0>", "operand 'src0' has width 3"),
    ("mov (M1, 16) F(0,0)<1> F(0,0)<8;8,3>", "operand 'src0' has horizontal stride 3"),
    ("mov (M1, 16) F(0,0)<3> F(0,0)<1;1,0>", "operand 'dst' has stride 3; it can be 1, 2 or 4"),
    ("add (M1, 8) DF(0,0)<2> DF(0,0)<1;1,0> DF(1,0)<1;1,0>", "operand 'dst' of f64 must be packed"),
    ("mov (M1, 1) F(0,16)<1> F(0,0)<1;1,0>", "operand 'dst' begins at element 16 of a register, which has 16"),
    ("mov (M1, 16) F(7,1)<1> F(0,0)<1;1,0>", "operand 'dst' reaches to byte 516 of 'F', which has 512"),
    ("mov (M1, 16) F(0,0)<1> F(7,0)<2;1,0>", "operand 'src0' reaches to byte 572 of 'F', which has 512"),
    # DPAS.
    ("dpas.u1.u1.8.8 (M1, 16) D.0 D.0 D.0 D(0,0)", "target 'pvcxt' does not support precision u1"),
    ("dpas.bf.bf.4.8 (M1, 16) F.0 F.0 D.0 D(0,0)", "target 'pvcxt' supports systolic depth 8, but got 4"),
    ("dpas.bf.bf.8.8 (M1, 8) F.0 F.0 D.0 D(0,0)", "target 'pvcxt' supports execution size 16, but got 8"),
    ("dpas.bf.hf.8.8 (M1, 16) F.0 F.0 D.0 D(0,0)", "precisions W = bf and A = hf cannot be multiplied"),
    ("dpas.bf.bf.8.8 (M1, 16) H.0 F.0 D.0 D(0,0)", "must be f or bf with precision bf, but got 'hf'"),
    ("dpas.bf.bf.8.8 (M1, 16) F.0 F.0 DF.0 D(0,0)", "src1 of precision bf must be of type d or ud"),
    ("dpas.bf.bf.8.1 (M1, 16) F.32 F.0 D.0 D(0,0)", "dst must begin at a register, but is 32 bytes behind one"),
    ("dpas.bf.bf.8.1 (M1, 16) F.0 F.0 D.0 D(0,1)", "src2 must begin at a multiple of 32 bytes, but is at 4"),
    ("dpas.bf.bf.8.8 (M1, 16) F.0 F.0 D.64 D(0,0)", "operand 'src1' reaches to byte 576 of 'D', which has 512"),
    (
        "dpas.bf.bf.8.8 (M1, 16) F.0 F.0 L.0 D(0,0)",
        "operand 'src1' must begin at a register, but 'L' is aligned to dword",
    ),
    # Messages.
    ("lsc_atomic_iinc.ugm (M1, 16) U.0:d32x2 flat[Q.0]:a64 %null.0 %null.0", "moves one element a lane"),
    ("lsc_load.ugm (M1, 16) U.0:d8c32x2 flat[Q.0]:a64", "of d8c32 moves one element a lane"),
    ("lsc_load.ugm (M1, 16) U.0:d32x4t flat[Q.0]:a64", "of transposed data needs execution size 1, but has 16"),
    ("lsc_load.ugm (M1, 1) U.0:d16x4t flat[Q.0]:a64", "of d16 cannot move a vector"),
    ("lsc_load.ugm (M1, 16) U.0:d16x2 flat[Q.0]:a64", "of d16 cannot move a vector"),
    ("lsc_load.ugm (M1, 16) U.0:d32x5 flat[Q.0]:a64", "moves 1, 2, 3, 4 or 8 elements a lane, not 5"),
    ("lsc_load.ugm (M1, 16) U.0:d16 flat[Q.0]:a64", "of d16 needs transposed data"),
    ("lsc_load.slm (M1, 16) U.0:d32 flat[Q.0]:a64", "to slm has 32-bit addresses"),
    ("lsc_load.ugm (M1, 16) U.0:d32 flat[U.0]:a32", "to ugm has 64-bit addresses"),
    ("lsc_load.ugm (M1, 32) U.0:d32x8 flat[Q.0]:a64", "moves 16 registers, but target pvcxt moves at most 8"),
    ("lsc_load.ugm (M1, 1) U.0:d32x5t flat[Q.0]:a64", "moves 1, 2, 3, 4, 8, 16, 32 or 64 elements, not 5"),
    ("lsc_load.ugm (M1, 16) U.32:d32 flat[Q.0]:a64", "operand 'dst' must begin at a register, but is at byte 32"),
    ("lsc_load.ugm (M1, 16) U.0:d32 flat[Q.4]:a64", "operand 'address' is at byte 4, which is not a multiple of 8"),
    (
        "lsc_load.ugm (M1, 16) L.0:d32 flat[Q.0]:a64",
        "operand 'dst' must begin at a register, but 'L' is aligned to dword",
    ),
    ("lsc_load.ugm (M1, 16) O.0:d32 flat[Q.0]:a64", "operand 'dst' must begin at a register, but 'O' is an alias"),
    ("lsc_load.ugm (M1, 32) U.0:d32 flat[S.0]:a64", "operand 'address' must begin at a register"),
    ("lsc_load.ugm (M1, 16) D.0:d32 flat[Q.448]:a64", "operand 'address' reaches to byte 576 of 'Q', which has 512"),
    ("lsc_fence.slm.evict.group", "of slm must be none.group"),
    # Atomics.
    ("lsc_atomic_iadd.ugm (M1, 16) U.0:d32 flat[Q.0]:a64 %null.0 %null.0", "has 1 operand besides the address"),
    ("lsc_atomic_icas.ugm (M1, 16) U.0:d32 flat[Q.0]:a64 U.0 %null.0", "has 2 operands besides the address"),
    ("lsc_atomic_fadd.slm (M1, 16) U.0:d32 flat[U.0]:a32 U.0 %null.0", "is supported only by ugm"),
    ("lsc_atomic_iadd.slm (M1, 8) U.0:d64 flat[U.0]:a32 U.0 %null.0", "of d64 is supported only by ugm"),
    ("lsc_atomic_iadd.ugm (M1, 16) U.0:d8c32 flat[Q.0]:a64 U.0 %null.0", "is of d16c32, d32 and d64, not of d8c32"),
    ("lsc_atomic_fmin.ugm (M1, 8) U.0:d64 flat[Q.0]:a64 U.0 %null.0", "of floats is of d16c32 and d32"),
    # 2D blocks.
    (
        f"lsc_store_block2d.ugm (M1, 1) {BLOCK} F.0:d16.2x16x8nn",
        "can neither transpose, pack, nor store several blocks",
    ),
    (f"lsc_load_block2d.ugm (M1, 1) U.0:d32.8x8tt {BLOCK}", "cannot both transpose and pack"),
    (f"lsc_load_block2d.ugm (M1, 1) U.0:d32.8x8nt {BLOCK}", "cannot pack elements of 32 bits"),
    (f"lsc_load_block2d.ugm (M1, 1) U.0:d16.16x33nn {BLOCK}", "has 1 to 32 rows, not 33"),
    (f"lsc_store_block2d.ugm (M1, 1) {BLOCK} U.0:d16.16x9nn", "has 1 to 8 rows, not 9"),
    (f"lsc_load_block2d.ugm (M1, 1) U.0:d16.8x8tn {BLOCK}", "cannot transpose elements of 16 bits"),
    (f"lsc_load_block2d.ugm (M1, 1) U.0:d32.16x8tn {BLOCK}", "transposes one block of at most 8x32 elements"),
    (
        f"lsc_load_block2d.ugm (M1, 1) U.0:d64.4x4tn {BLOCK}",
        "transposes 64 bits in blocks of 1x8, 2x8 and 4x8, not 4x4",
    ),
    (f"lsc_load_block2d.ugm (M1, 1) U.0:d32.4x8x8nn {BLOCK}", "moves 1, 2 blocks of 32 bits, not 4"),
    (f"lsc_load_block2d.ugm (M1, 1) U.0:d16.64x8nn {BLOCK}", "has rows of 4 to 64 bytes over all its blocks, not 128"),
    (f"lsc_load_block2d.ugm (M1, 1) U.0:d8.5x8nn {BLOCK}", "has rows of a multiple of 4 bytes, not 5"),
    (
        f"lsc_load_block2d.ugm (M1, 1) F.0:d16.16x32nn {BLOCK}",
        "operand 'dst' reaches to byte 1024 of 'F', which has 512",
    ),
    # Control.
    ("jmp (M1, 1) L9", "jumps to undefined label 'L9'"),
    ("(P) goto (M1, 16) L9", "jumps to undefined label 'L9'"),
    ("nbarrier.wait 0x0:ub", "requires the kernel attribute NBarrierCnt"),
    ("nbarrier.wait 0x0:w", "operand 'id' must be of type ub, but got w"),
    # Messages of GPUs before Xe2.
    ("svm_block_ld (8) Q(0,0)<0;1,0> L.0", "operand 'dst' must begin at a register"),
    ("svm_gather.4.2 (M1, 4) Q.0 U.0", "of several blocks has execution size 8 or 16"),
    ("svm_gather.4.8 (M1, 16) Q.0 U.0", "of 8 blocks is of 4 bytes and execution size 8"),
    ("svm_gather.4.1 (M1, 8) U.0 U.0", "operand 'addresses' must be of type uq, but got ud"),
    ("svm_gather4scaled.RG (M1, 8) Q(0,0)<1;1,0> Q.0 U.0", "operand 'base' is one number, with the region <0;1,0>"),
    ("svm_gather4scaled.RG (M1, 8) U(0,0)<0;1,0> Q.0 U.0", "operand 'base' must be of type uq unless it is immediate"),
    ("svm_gather.8.4 (M1, 16) Q.0 B.0", "operand 'dst' reaches to byte 512 of 'B', which has 128"),
    ("svm_atomic.inc (M1, 8) Q.0 U.0 U.64 %null.0", "has 0 operands besides the address"),
    ("svm_atomic.add.64 (M1, 8) Q.0 %null.0 U.0 %null.0", "operand 'src0' must be of 64 bits, but got ud"),
    ("dword_atomic.fadd (M1, 8) %slm U.0 F.0 %null.0 %null.0", "is supported only by ugm"),
    ("dword_atomic.minsint (M1, 8) %slm U.0 U.0 %null.0 %null.0", "operand 'src0' must be of type d, but got ud"),
    ("dword_atomic.add.16 (M1, 8) %slm U.0 D.0 %null.0 %null.0", "operand 'src0' must be of type ud, but got d"),
    ("dword_atomic.cmpxchg.16 (M1, 8) %slm U.0 U.0 U.64 U.0", "of 16 bits does not support 'cmpxchg'"),
    ("oword_ld (4) %slm D(0,0)<0;1,0> U.0", "operand 'offset' must be of type ud, but got d"),
    ("switchjmp (M1, 1) U(0,0)<0;1,0> (L9)", "jumps to undefined label 'L9'"),
]


@pytest.mark.parametrize("line", LEGAL)
def test_legal(line: str) -> None:
    assert issues("", f"{line}\nret (M1, 1)\n", "pvcxt") == []


@pytest.mark.parametrize(("line", "message"), INSTRUCTIONS, ids=lambda v: v[:60])
def test_instructions(line: str, message: str) -> None:
    issue = only("", f"{line}\nret (M1, 1)\n")
    assert message in issue.message
    assert issue.where.line == 3 + DECLARED.count("\n")
    assert issue.instruction is not None
    assert issue.diagnostic().message == f"'{issue.instruction.name}' {issue.message}"


@pytest.mark.parametrize(
    ("gpu", "line", "message"),
    [
        ("pvc", "srnd (M1_NM, 16) H(0,0)<1> F(0,0)<1;1,0> F(1,0)<1;1,0>", "is not supported on target 'pvc'"),
        ("pvc", "fcvt (M1, 16) U(0,0)<1> F(0,0)<1;1,0>", "to tf32 is not supported on target 'pvc'"),
        ("dg2", f"lsc_load_block2d.ugm (M1, 1) F.0:d16.16x8nn {BLOCK}", "which has no 2D block messages"),
        ("dg2", "switchjmp (M1, 1) U(0,0)<0;1,0> (L9)", "is not supported on target 'dg2'"),
        ("dg2", "inv (M1, 4) DF(0,0)<1> DF(1,0)<1;1,0>", "target 'dg2' does not support inv of f64"),
        ("dg2", "dpas.bf.bf.8.1 (M1, 8) BF.0 BF.0 D.0 D(0,0)", "target 'dg2' supports only f accumulators for bf"),
        ("any", f"lsc_load_block2d.ugm (M1, 1) U.0:d64.2x4x8nn {BLOCK}", "moves 1 blocks of 64 bits, not 2"),
        ("pvc", "lsc_load.ugm (M1_NM, 1) U.0:d8x1t flat[Q.0]:a64", ""),
        ("pvc", "lsc_load.ugm (M1_NM, 1) U.0:d8x2t flat[Q.0]:a64", "of d8 cannot move a vector"),
        *(
            ("cri", f"lfsr.b32 (M1, 16) U(0,0)<{stride}> U(1,0)<{first}> U(2,0)<{second}>", message)
            for stride, first, second, message in (
                *((1, *regions, "") for regions in itertools.product(("1;1,0", "0;1,0"), repeat=2)),
                (2, "1;1,0", "1;1,0", "has a result of stride 1"),
                *(
                    (1, "1;1,0", wide, "and sources <1;1,0> or <0;1,0>")
                    for wide in ("2;1,0", "2;2,1", "0;2,1", "1;1,1")
                ),
            )
        ),
    ],
)
def test_targets(gpu: str, line: str, message: str) -> None:
    """A rule that a target breaks; without a message it breaks none."""
    found = issues("", f"{line}\nret (M1, 1)\n", gpu)
    assert len(found) == bool(message) and all(message in issue.message for issue in found)


@pytest.mark.parametrize("depth", range(1, 10))
def test_systolic_depths(depth: int) -> None:
    """DPAS: "SD can be encoded as 1, 2, 4, and 8. XEHP+ only supports a systolic depth of 8"."""
    text = f"dpas.bf.bf.{depth}.1 (M1, 16) F.0 F.0 D.0 D(0,0)\nret (M1, 1)\n"
    if depth not in (1, 2, 4, 8):
        with pytest.raises(DiagnosticError, match=rf"expected 'SD', one of 1, 2, 4, 8, but got '{depth}\."):
            issues("", text, "any")
        return
    assert issues("", text, "any") == []
    for gpu in ("pvc", "pvcxt", "cri"):
        found = [issue.message for issue in issues("", text, gpu)]
        assert found == ([] if depth == 8 else [f"target '{gpu}' supports systolic depth 8, but got {depth}"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (".decl X v_type=G type=d num_elts=99999", "variable 'X' has 399996 bytes, but a thread has 16384"),
        (".decl X v_type=G type=d num_elts=1 alias=<S,8>", "alias 'X' reaches from byte 8 to 12, but 'S' has 8 bytes"),
        (
            ".decl X v_type=G type=d num_elts=1 align=dword alias=<S,2>",
            "alias 'X' of type d is at byte 2, which is not a multiple",
        ),
        (".decl X v_type=G type=d num_elts=1 align=GRF alias=<S,0>", "alias 'X' is aligned to GRF, but lies at byte 0"),
        (".decl V0 v_type=G type=d num_elts=1", "variable 'V0' cannot have this name"),
        (".decl add v_type=P num_elts=1", "variable 'add' cannot have this name"),
        (".input S offset=64 size=4", "input 'S' has 4 bytes, but its variable has 8"),
        (".input S offset=68 size=8", "input 'S' is at 68, which is not a multiple of its element's size"),
        (".input S offset=0 size=8", "input 'S' is at 0, in the thread's header"),
        (".implicit_LOCAL_ID S offset=64 size=8", "input 'S' of kind LOCAL_ID must have 12 bytes"),
        (".input S offset=64 size=8\n.input S offset=64 size=8", "input 'S' overlaps input 'S'"),
        (".kernel_attr SimdSize=7", "kernel attribute SimdSize must be 8, 16 or 32, but got 7"),
        ('.kernel_attr SimdSize="x"', "kernel attribute SimdSize must be a number, but got 'x'"),
        (".kernel_attr SLMSize=-1", "kernel attribute SLMSize must be a number, but got -1"),
        (".kernel_attr SLMSize=999", "SLMSize is 999 KiB, but pvcxt has 128 KiB"),
        (".kernel_attr NBarrierCnt=33", "NBarrierCnt is 33, but pvcxt has 32"),
    ],
)
def test_declarations(line: str, message: str) -> None:
    issue = only(line + "\n", "ret (M1, 1)\n")
    assert message in issue.message
    assert issue.instruction is None
    if line.startswith((".decl", ".input", ".implicit")):
        assert issue.where.line == 3 + DECLARED.count("\n") + line.count("\n")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("L1:\nL1:\nret (M1, 1)\n", "redefinition of label 'L1'"),
        ("flat:\nret (M1, 1)\n", "'flat' cannot have this name"),
        ("", "kernel 'k' does not end with 'ret'"),
        ("barrier\n", "kernel 'k' does not end with 'ret'"),
    ],
)
def test_kernels(body: str, message: str) -> None:
    assert message in only("", body).message


def test_named_barriers_are_counted() -> None:
    body = "nbarrier.wait 0x3:ub\nret (M1, 1)\n"
    assert issues(".kernel_attr NBarrierCnt=4\n", body, "pvcxt") == []
    assert "uses named barrier 3, but the kernel allocates 2" in only(".kernel_attr NBarrierCnt=2\n", body).message
    assert "uses named barrier 3, but the kernel allocates 3" in only(".kernel_attr NBarrierCnt=3\n", body).message


SECOND = ".decl T v_type=G type=uq num_elts=1 align=qword\n"


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (".decl X v_type=G type=d num_elts=4096 align=GRF", ""),
        (".decl X v_type=G type=d num_elts=4097 align=GRF", "variable 'X' has 16388 bytes, but a thread has 16384"),
        (".decl X v_type=G type=d num_elts=1 alias=<D,508>", ""),
        (".decl X v_type=G type=d num_elts=1 alias=<D,512>", "reaches from byte 512 to 516, but 'D' has 512 bytes"),
        (".decl X v_type=G type=d num_elts=128 alias=<D,0>", ""),
        (".decl X v_type=G type=ub num_elts=1 align=byte alias=<D,511>", ""),
        (".decl X v_type=G type=ub num_elts=2 align=byte alias=<D,511>", "reaches from byte 511 to 513"),
        (".decl X v_type=G type=d num_elts=2 align=qword alias=<D,8>", ""),
        (".decl X v_type=G type=d num_elts=2 align=qword alias=<D,12>", "aligned to qword, but lies at byte 12 of 'D'"),
        (".decl X v_type=G type=d num_elts=1 align=qword alias=<L,8>", "of 'L', which is aligned to dword"),
        (".input S offset=32 size=8", ""),
        (".input S offset=24 size=8", "input 'S' is at 24, in the thread's header"),
        (f"{SECOND}.input S offset=64 size=8\n.input T offset=72 size=8", ""),
        (f"{SECOND}.input T offset=72 size=8\n.input S offset=64 size=8", ""),
        (f"{SECOND}.input D offset=64 size=512\n.input T offset=568 size=8", "input 'T' overlaps input 'D'"),
        (f"{SECOND}.input T offset=568 size=8\n.input D offset=64 size=512", "input 'D' overlaps input 'T'"),
        (f"{SECOND}.input D offset=64 size=512\n.input T offset=576 size=8", ""),
        *((f".kernel_attr SimdSize={n}", "") for n in (8, 16, 32)),
        (".kernel_attr SLMSize=128", ""), (".kernel_attr SLMSize=0", ""),
        (".kernel_attr SLMSize=129", "SLMSize is 129 KiB, but pvcxt has 128 KiB"),
        (".kernel_attr NBarrierCnt=32", ""), (".kernel_attr NBarrierCnt=0", ""),
    ],
)  # fmt: skip
def test_ends_of_what_declarations_may_be(declared: str, message: str) -> None:
    found = [issue.message for issue in issues(declared + "\n", "ret (M1, 1)\n", "pvcxt")]
    assert len(found) == bool(message) and message in "".join(found)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mov (M1, 1) F(0,15)<1> F(0,0)<0;1,0>", ""), ("mov (M1, 16) F(7,0)<1> F(0,0)<1;1,0>", ""),
        ("mov (M1, 16) F(0,0)<1> F(6,1)<2;1,0>", ""),
        ("mov (M1, 16) F(0,0)<1> F(6,2)<2;1,0>", "operand 'src0' reaches to byte 516 of 'F', which has 512"),
        ("mov (M1, 2) DF(0,0)<4> DF(1,0)<1;1,0>", "operand 'dst' of 64 bits has stride 4; it can be 1 or 2"),
        ("mov (M1, 1) DF(0,0)<4> DF(1,0)<1;1,0>", ""), ("mov (M1, 2) DF(0,0)<2> DF(1,0)<1;1,0>", ""),
        ("and (M1, 16) U(0,0)<1> (~)U(0,0)<1;1,0> (~)D(0,0)<1;1,0>", ""),
        ("cmp.lt (M1, 16) P F(0,0)<1;1,0> F(0,0)<1;1,0>", ""), ("(P) mov (M1, 16) F(0,0)<1> F(0,0)<1;1,0>", ""),
        ("cmp.lt (M1, 32) P F(0,0)<1;1,0> F(0,0)<1;1,0>", "reaches lane 31, but the predicate 'P' has 16 bits"),
        ("cmp.lt (M5, 16) P F(0,0)<1;1,0> F(0,0)<1;1,0>", "reaches lane 31, but the predicate 'P' has 16 bits"),
    ],
)  # fmt: skip
def test_ends_of_what_operands_may_be(line: str, message: str) -> None:
    found = [issue.message for issue in issues("", f"{line}\nret (M1, 1)\n", "pvcxt")]
    assert len(found) == bool(message) and message in "".join(found)
