"""Variables that are SSA values of LLVM, and those that must be in the thread's block."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import forked_tools
import numpy as np
import pytest

from xegpu_py.engines.jit import native_code
from xegpu_py.engines.jit.host import native_host
from xegpu_py.engines.jit.llvm import LLVMAbort, major_version
from xegpu_py.engines.jit.register_promotion import free_nans, temporaries, temporary_predicates
from xegpu_py.engines.jit.thread_function import block_starts, functions_of_program
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.kernel import Kernel

pytestmark = pytest.mark.native

HEAD = """\
.version 3.8
.kernel "temporaries"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl In v_type=G type=ud num_elts=1 align=dword
.decl T v_type=G type=ud num_elts=16 align=GRF
.decl AlsoT v_type=G type=uw num_elts=32 align=GRF alias=<T,0>
.decl F v_type=G type=f num_elts=16 align=GRF alias=<T,0>
.decl Sum v_type=G type=ud num_elts=16 align=GRF
.decl SumF v_type=G type=f num_elts=16 align=GRF alias=<Sum,0>
.decl P v_type=P num_elts=16
.input Out offset=64 size=8
.input In offset=72 size=4
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
"""
SET = "    mov (M1, 16) Sum(0,0)<1> 0x1:ud\n    add (M1, 16) T(0,0)<1> Sum(0,0)<1;1,0> In(0,0)<0;1,0>\n"
USE = "    add (M1, 16) Sum(0,0)<1> T(0,0)<1;1,0> 0x5:ud\n"
TEST = "    cmp.lt (M1, 16) P Sum(0,0)<1;1,0> In(0,0)<0;1,0>\n"
END = "    lsc_store.ugm (M1, 1) flat[Out]:a64 Sum:d32x16t\n    ret (M1, 1)\n"

CASES = {
    "arithmetic": (SET + USE, True),
    "parts by an alias": (SET + "    add (M1, 16) Sum(0,0)<1> AlsoT(0,1)<2;1,0> 0x5:ud\n", True),
    "apart from each other": (SET + "    add (M1, 8) AlsoT(0,0)<2> AlsoT(0,1)<2;1,0> 0x5:uw\n" + USE, True),
    "masked after a whole write": (SET + TEST + "    (P) mov (M1, 16) T(0,0)<1> 0x9:ud\n" + USE, True),
    "in another block": (SET + "Next:\n" + USE, False),
    "masked alone": (
        "    mov (M1, 16) Sum(0,0)<1> 0x1:ud\n" + TEST + "    (P) mov (M1, 16) T(0,0)<1> 0x9:ud\n" + USE,
        False,
    ),
    "half": ("    mov (M1, 8) T(0,0)<1> 0x9:ud\n" + USE, False),
    "before": (USE + SET, False),
    "by a message": (SET + USE + "    lsc_store.ugm (M1, 1) flat[Out]:a64 T:d32x16t\n", False),
    "by the semantic function": (SET + "    exp (M1, 16) SumF(0,0)<1> F(0,0)<1;1,0>\n", False),
}


@pytest.mark.parametrize("name", CASES)
def test_which_are(name: str) -> None:
    body, wanted = CASES[name]
    kernel = Kernel.from_assembly(HEAD + body + END, target="any", engine="both")
    program = kernel.program
    found = temporaries(program, kernel.executor.interpreter.layout.target, block_starts(program))
    assert {var.name for var in found} == ({"T"} if wanted else set())
    kernel(np.zeros(16, np.uint32), 7)


@pytest.mark.parametrize(("last", "promoted"), [("W(3,0)", True), ("W(2,8)", False)])
def test_parts_of_wide_variables_are_not_joined(last: str, promoted: bool) -> None:
    head = HEAD.replace(".input Out", ".decl W v_type=G type=ud num_elts=64 align=GRF\n.input Out")
    moves = "".join(f"    add (M1, 16) W({row},0)<1> In(0,0)<0;1,0> {row}:ud\n" for row in range(4))
    use = f"    add (M1, 16) Sum(0,0)<1> W(0,0)<1;1,0> {last}<1;1,0>\n"
    kernel = Kernel.from_assembly(head + moves + use + END, target="pvc", engine="both")
    found = temporaries(kernel.program, kernel.executor.interpreter.layout.target, block_starts(kernel.program))
    assert ("W" in {var.name for var in found}) == promoted
    kernel(np.zeros(16, np.uint32), 7)


def test_moves_that_interleave_are_one_write() -> None:
    """Each of 16 moves reads an element of one of the halves."""
    moves = "".join(f"    mov (M1_NM, 2) U(0,{2 * i})<1> AlsoT(0,{i})<16;1,0>\n" for i in range(16))
    head = HEAD.replace(".input Out", ".decl U v_type=G type=uw num_elts=32 align=GRF\n.input Out")
    body = SET + moves + "    add (M1, 16) Sum(0,0)<1> U(0,0)<2;1,0> U(0,1)<2;1,0>\n"
    kernel = Kernel.from_assembly(head + body + END, target="any", engine="both")
    out = np.zeros(16, np.uint32)
    kernel(out, 0x70003)
    # Element i of T is 0x70004: of its halves those of the first eight are in the lower half of U.
    assert out.tolist() == [8, 14] * 8
    interpreter = kernel.executor.interpreter
    text = "\n".join(
        functions_of_program(kernel.program, interpreter.layout, "fma", native_host(), divergent=False, keep=False)
    )
    assert text.count("<32 x i16>") and "<17 x i16>" not in text


def test_loads_of_few_elements_are_no_larger() -> None:
    """Pairs of elements that lie in several registers: a larger load would wait for what stored the pairs."""
    names = "UVWX"
    declared = "".join(f".decl {v} v_type=G type=ud num_elts=16 align=GRF\n" for v in names)
    head = HEAD.replace(".input Out", declared + ".input Out")
    stores = "".join(f"    lsc_load.ugm (M1, 1) {v}.0:d32x2t flat[Out]:a64\n" for v in names)
    pairs = "".join(f"    mov (M1_NM, 2) T(0,{2 * i})<1> {v}(0,0)<1;1,0>\n" for i, v in enumerate(names))
    total = "    mov (M1, 16) Sum(0,0)<1> 0x1:ud\n    add (M1, 4) Sum(0,0)<1> T(0,0)<2;1,0> T(0,1)<2;1,0>\n"
    kernel = Kernel.from_assembly(head + stores + pairs + total + END, target="any", engine="both")
    out = np.arange(3, 19, dtype=np.uint32)
    kernel(out, 0)
    assert out.tolist() == [7] * 4 + [1] * 12
    interpreter = kernel.executor.interpreter
    text = "\n".join(
        functions_of_program(kernel.program, interpreter.layout, "fma", native_host(), divergent=False, keep=False)
    )
    thread = text[text.index("@thread(") :].partition("\n}")[0]
    loads = re.findall(r"load (<\d+ x i32>), ptr %\w+, align (\d+)", thread)
    assert loads.count(("<2 x i32>", "8")) == 4
    assert all(kind == "<16 x i32>" for kind, align in loads if align != "8")


PARTS = (
    f"HEAD, END = {HEAD!r}, {END!r}\n"
    + """
import numpy as np
from xegpu_py.runtime.kernel import Kernel

DECLARED = ".decl U v_type=G type=ud num_elts=32 align=GRF\\n.decl X v_type=G type=ud num_elts=16 align=GRF\\n"
ADD = "    add (M1_NM, {0}) U({1},{2})<1> X(0,0)<1;1,0> In(0,0)<0;1,0>\\n    mov (M1_NM, 16) X(0,0)<1> 0x7:ud\\n"
USE = "    mov (M1_NM, 32) Y(0,0)<1> U(0,0)<1;1,0>\\n    add (M1, 16) Sum(0,0)<1> Y(0,0)<1;1,0> Y(1,0)<1;1,0>\\n"
HALVES = [(16, 1, 0), (16, 0, 0)]
QUARTERS = [(8, 1, 8), (8, 0, 0), (8, 1, 0), (8, 0, 8)]
for parts in (HALVES, QUARTERS):
    declared = DECLARED + DECLARED.partition("\\n")[0].replace("U", "Y") + "\\n.input Out"
    body = "    mov (M1_NM, 16) X(0,0)<1> 0x3:ud\\n" + "".join(ADD.format(*part) for part in parts) + USE
    out = np.zeros(16, np.uint32)
    Kernel.from_assembly(HEAD.replace(".input Out", declared) + body + END, target="any", engine="both")(out, 10)
    print(out.tolist())
"""
)


def forked(code: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run code of Python in a process that may crash, and has imported the package."""
    (folder / "code.py").write_text(code)
    return subprocess.run(
        [forked_tools.folder() / "python", folder / "code.py", *words], capture_output=True, text=True
    )


def test_parts_may_be_computed_in_any_order(tmp_path: Path) -> None:
    """LLVM 22 aborts the process where the last part of a variable is computed before others (see `Code.reserve`)."""
    ran = forked(PARTS, tmp_path)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [str([30] * 16), str([34] * 8 + [30] * 8)]


def test_failures_of_llvm_are_diagnostics() -> None:
    """The same program without the workarounds for LLVM 22."""
    if major_version() != 22:
        pytest.skip("later versions compile it")
    unkept = "from xegpu_py.engines.jit import ir_text, llvm\nir_text.major_version = lambda: 23\n"
    unkept += "llvm._with_whole_loads = lambda text: text\n"
    ran = subprocess.run([sys.executable, "-c", unkept + PARTS], capture_output=True, text=True)
    assert "Assertion" in ran.stderr and ran.returncode == 1
    assert re.search(r"error: kernel 'temporaries' has no native code: LLVM 22\S+ failed: .*Assertion", ran.stderr)
    assert "note: the interpreter runs it: engine='interpreter'" in ran.stderr


TRANSPOSED = """
import sys
import warnings
import numpy as np
import xegpu_py
from xegpu_py.engines.jit import tiered_code

warnings.simplefilter("ignore")  # Hardware takes no such surface.
if sys.argv[1] == "optimized":
    tiered_code.QUICK_SECONDS = 0
TEXT = '''gpu.module @k { gpu.func @f(%a: memref<40x1xTYPE>, %o: memref<256xTYPE>) kernel {
  %c0 = arith.constant 0 : index
  %t = xegpu.create_nd_tdesc %a[-3, 0] {mode = vc} : memref<40x1xTYPE> -> !xegpu.tensor_desc<ROWSxCOLUMNSxTYPE>
  %v = xegpu.load_nd %t {transpose = [1, 0], mode = vc}
    : !xegpu.tensor_desc<ROWSxCOLUMNSxTYPE> -> vector<COLUMNSxROWSxTYPE>
  %f = vector.shape_cast %v : vector<COLUMNSxROWSxTYPE> to vector<256xTYPE>
  vector.store %f, %o[%c0] : memref<256xTYPE>, vector<256xTYPE>
  gpu.return } }'''
for element, dtype, rows in (("i8", np.int8, 8), ("i16", np.int16, 4)):
    text = TEXT.replace("TYPE", element).replace("ROWS", str(rows)).replace("COLUMNS", str(256 // rows))
    for target in ("pvcxt", "dg2"):
        out, expected = np.full(256, -1, dtype), np.zeros(256, dtype)
        expected[3:rows] = np.arange(rows - 3)
        kernel = xegpu_py.compile(text, target=target, engine="both", cache="off")
        kernel(np.arange(40, dtype=dtype).reshape(40, 1), out)
        print((out == expected).all())
"""


@pytest.mark.parametrize("level", ["quick", "optimized"])
def test_loads_are_not_narrowed(level: str, tmp_path: Path) -> None:
    """LLVM 22 aborts where it narrows the loads of values that are truncated and transposed, at level 0."""
    ran = forked(TRANSPOSED, tmp_path, level)
    assert (ran.stderr, ran.stdout.split()) == ("", ["True"] * 4)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, own_code: None) -> None:
    """LLVM compiles no program."""

    def fail(*_: object) -> bytes:
        raise LLVMAbort("LLVM failed")

    monkeypatch.setattr(native_code, "compiled", fail)


def test_the_interpreter_runs_programs_that_llvm_fails_to_compile(failing: None) -> None:
    """With one warning for several launches; what needs native code is refused."""
    text, out = HEAD + SET + USE + END, np.zeros(16, np.uint32)
    kernel = Kernel.from_assembly(text, target="any", engine="jit", cache="off")
    with pytest.warns(UserWarning, match="kernel 'temporaries' runs on the interpreter.*: LLVM failed") as warned:
        kernel(out, 10)
        kernel(out, 10)
    assert len(warned) == 1 and warned[0].filename == __file__
    expected = np.zeros(16, np.uint32)
    Kernel.from_assembly(text, target="any", engine="interpreter")(expected, 10)
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(DiagnosticError, match="'temporaries' has no native code: LLVM failed"):
        Kernel.from_assembly(text, target="any", engine="both", cache="off")(out, 10)


FLOATS = """\
.version 3.8
.kernel "floats"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl In v_type=G type=f num_elts=16 align=GRF
.decl X v_type=G type=f num_elts=16 align=GRF
.decl Bits v_type=G type=ud num_elts=16 align=GRF alias=<X,0>
.decl Y v_type=G type=f num_elts=16 align=GRF
.decl Sum v_type=G type=f num_elts=16 align=GRF
.decl SumD v_type=G type=ud num_elts=16 align=GRF alias=<Sum,0>
.decl P v_type=P num_elts=16
.decl Q v_type=P num_elts=16
.input Out offset=64 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    lsc_load.ugm (M1, 1) In:d32x16t flat[Out]:a64
    mov (M1, 16) Sum(0,0)<1> 0x3f800000:f
    mul (M1, 16) X(0,0)<1> In(0,0)<1;1,0> 0xbf800000:f
    cmp.gt (M1, 16) P In(0,0)<1;1,0> 0x0:f
"""
TOTAL = "    add (M1, 16) Sum(0,0)<1> X(0,0)<1;1,0> 0x3f800000:f\n"
COPY = "    mov (M1, 16) Y(0,0)<1> X(0,0)<1;1,0>\n"

NANS = {
    "computed with": (TOTAL, {"In", "X"}),
    "copied, and computed with": (COPY + TOTAL.replace("X", "Y"), {"In", "X", "Y"}),
    "chosen, and computed with": (
        "    (P) sel (M1, 16) Y(0,0)<1> X(0,0)<1;1,0> 0x0:f\n" + TOTAL.replace("X", "Y"),
        {"In", "X", "Y"},
    ),
    "by the semantic function too": ("    sin (M1, 16) Sum(0,0)<1> X(0,0)<1;1,0>\n", {"In", "X"}),
    "copied, and stored": (COPY + "    mov (M1, 16) Sum(0,0)<1> (-)Y(0,0)<1;1,0>\n", {"In"}),
    "clamped": ("    mov.sat (M1, 16) Sum(0,0)<1> X(0,0)<1;1,0>\n", {"In", "X"}),
    "converted": ("    mov (M1, 16) SumD(0,0)<1> X(0,0)<1;1,0>\n", {"In", "X"}),
    "as integers": ("    add (M1, 16) SumD(0,0)<1> Bits(0,0)<1;1,0> 0x1:ud\n", {"In"}),
}


def awkward() -> np.ndarray:
    """Numbers of f32, and NaNs that are not canonical."""
    bits = [0x7F800001, 0xFFC12345, 0x7FC00000, 0xFF800001, 0x7F800000, 0xFF800000, 0x80000000, 0, 0x3F800000]
    return np.resize(np.array(bits, np.uint32), 16).view(np.float32)


@pytest.mark.parametrize("name", NANS)
def test_of_which_any_nan_will_do(name: str) -> None:
    body, wanted = NANS[name]
    kernel = Kernel.from_assembly(FLOATS + body + END, target="any", engine="both")
    assert {var.name for var in free_nans(kernel.program)} == wanted
    kernel(awkward())


CHOOSE = "    (P) sel (M1, 16) Sum(0,0)<1> In(0,0)<1;1,0> X(0,0)<1;1,0>\n"
TEST_X = "    cmp.le (M1, 16) Q X(0,0)<1;1,0> 0x40000000:f\n"

PREDICATES = {
    "chooses": (CHOOSE, {"P"}),
    "inverted": (CHOOSE.replace("(P)", "(!P)"), {"P"}),
    "guards": ("    (!P) mul (M1, 16) Sum(0,0)<1> X(0,0)<1;1,0> 0x40000000:f\n", {"P"}),
    "joined": (TEST_X + "    and (M1, 16) P P Q\n    not (M1, 16) Q P\n" + CHOOSE.replace("P", "Q"), {"P", "Q"}),
    "joined with one in memory": (
        "    setp (M1, 16) Q 0x5555:ud\n    or (M1, 16) P P Q\n" + CHOOSE,
        {"P"},
    ),
    "joined to one in memory": (
        TEST_X + "    xor (M1, 16) Q P Q\n    mov (M1, 1) SumD(0,0)<1> Q\n",
        {"P"},
    ),
    "in other lanes": (CHOOSE.replace("(M1, 16)", "(M1, 8)"), set()),
    "any of them": (CHOOSE.replace("(P)", "(P.any)"), set()),
    "in another block": ("Next:\n" + CHOOSE, set()),
    "guards a message": ("    (P) lsc_store.ugm (M1, 1) flat[Out]:a64 X:d32x16t\n", set()),
    "guards what semantic functions do": ("    (P) exp (M1, 16) Sum(0,0)<1> X(0,0)<1;1,0>\n", set()),
}


@pytest.mark.parametrize("name", PREDICATES)
def test_which_predicates_are(name: str) -> None:
    body, wanted = PREDICATES[name]
    kernel = Kernel.from_assembly(FLOATS + body + END, target="any", engine="both")
    program = kernel.program
    found = temporary_predicates(program, kernel.executor.interpreter.layout.target, block_starts(program))
    assert {predicate.name for predicate in found} == wanted
    kernel(awkward())


@pytest.mark.parametrize("name", ["min", "max"])
def test_choices(name: str) -> None:
    """All pairs of special numbers."""
    body = "".join(
        f"    {name} (M1, 16) X(0,0)<1> In(0,0)<1;1,0> In(0,{i})<0;1,0>\n"
        f"    lsc_store.ugm (M1, 1) flat[Out+0x{64 * (i + 1):x}]:a64 X:d32x16t\n"
        for i in range(9)
    )
    kernel = Kernel.from_assembly(FLOATS + body + END, target="any", engine="both")
    kernel(np.concatenate([awkward(), np.zeros(144, np.float32)]))
