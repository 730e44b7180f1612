"""bdpas as text, and its rules, which are those of Intel Graphics Compiler."""

import pytest

from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.target import TARGETS
from xegpu_py.visa.assembly import read, write
from xegpu_py.visa.verify import verify

KERNEL = """.version 3.8
.kernel "k"
.decl C v_type=G type=f num_elts=128 align=GRF
.decl H v_type=G type=bf num_elts=128 align=GRF
.decl B v_type=G type=ud num_elts=128 align=GRF
.decl A v_type=G type=ud num_elts=64 align=GRF
.decl SB v_type=G type=ub num_elts=128 align=GRF
.decl SA v_type=G type=ub num_elts=128 align=GRF
.decl LOOSE v_type=G type=ub num_elts=64 align=qword
.kernel_attr Target="cm"
    INSTRUCTION
    ret (M1, 1)
"""


def problems(instruction: str, target: str = "cri") -> list[str]:
    (program,) = read(Source(KERNEL.replace("INSTRUCTION", instruction), "k.visaasm"))
    return [issue.message for issue in verify(program, TARGETS[target])]


@pytest.mark.parametrize(
    "instruction",
    [
        "bdpas.bf8.bf8.8.8 (M1, 16) C.0 %null.0 B.0 A.0 SB(0,0) SA(0,0)",
        "bdpas.bf8.hf8.8.8 (M1, 16) C.0 %null.0 B.0 A.0 %null(0,0) SA(0,8)",
        "bdpas.hf8.bf8.8.8 (M1_NM, 16) H.0 C.0 B.0 A.0 SB(0,48) %null(0,0)",
        "bdpas.e2m1.e2m1.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,16) SA(0,24)",
        "bdpas.bf.bf.8.8 (M1, 16) H.0 H.0 B.0 A.0 SB(1,16) SA(0,56)",
        "bdpas.bf.bf.8.8 (M1, 16) C.0 H.0 B.0 A.0 %null(0,0) LOOSE(0,0)",
    ],
)
def test_what_is_read_is_written(instruction: str) -> None:
    assert problems(instruction) == []
    (program,) = read(Source(KERNEL.replace("INSTRUCTION", instruction), "k.visaasm"))
    assert f"    {instruction}\n" in write([program])


@pytest.mark.parametrize(
    ("instruction", "problem"),
    [
        ("bdpas.bf.hf.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,0) SA(0,0)", "W = bf and A = hf cannot be multiplied"),
        ("bdpas.bf8.e2m1.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,0) SA(0,0)", "W = bf8 and A = e2m1 cannot be multiplied"),
        ("bdpas.hf.hf.8.8 (M1, 16) H.0 C.0 B.0 A.0 SB(0,0) SA(0,0)", "must be f or hf with precision hf, but got 'bf'"),
        ("bdpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A.32 SB(0,0) SA(0,0)", "'src2' must begin at a register"),
        ("bdpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,8) SA(0,0)", "at byte 0, 16, 32, 48 of a register, not at 8"),
        ("bdpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,0) SA(0,4)", "0, 8, 16, 24, 32, 40, 48, 56 of a register"),
        ("bdpas.e2m1.e2m1.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,32) SA(0,0)", "at byte 0, 16 of a register, not at 32"),
        ("bdpas.e2m1.e2m1.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,0) SA(0,32)", "0, 8, 16, 24 of a register, not at 32"),
        ("bdpas.e2m1.e2m1.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,0) LOOSE(0,0)", "in a variable aligned to 64 bytes"),
        ("bdpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A.0 SA(2,0) SA(0,0)", "reaches to byte 144 of 'SA', which has 128"),
        ("bdpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A.0 B(0,0) SA(0,0)", "'src3' must be of type ub, but got ud"),
    ],
)
def test_what_is_refused(instruction: str, problem: str) -> None:
    (found,) = problems(instruction)
    assert problem in found


@pytest.mark.parametrize("target", TARGETS)
def test_which_targets_have_it(target: str) -> None:
    found = problems("bdpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A.0 SB(0,0) SA(0,0)", target)
    assert len(found) == (target not in ("cri", "any"))
    assert all("not supported on" in p and target in p for p in found), found


def test_one_execution_size() -> None:
    with pytest.raises(DiagnosticError, match="expected an execution size, 16"):
        problems("bdpas.bf.bf.8.8 (M1, 8) C.0 C.0 B.0 A.0 SB(0,0) SA(0,0)")
