"""The vISA that IGC 2.40 prints of recorded OpenCL kernels: read, verified, and printed as it was."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from effort import some

from xegpu_py.dialects.visa import module_of, program_of
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.ir.module import kernels
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import target
from xegpu_py.tools import xegpu_opt, xegpu_translate
from xegpu_py.visa.assembly import read, write
from xegpu_py.visa.linking import linked
from xegpu_py.visa.operands import HEADER, Immediate, Indirect, Variable
from xegpu_py.visa.program import Program
from xegpu_py.visa.verify import verify

FOLDER = Path(__file__).parents[2] / "extensions/opencl/recorded"

RECORDED = msgspec.msgpack.decode(lzma.decompress((FOLDER / "recorded").read_bytes()))["programs"]

CALLERS = (("parity", "even"), ("factorials", "factorial"))
"""Recorded kernels, and the function that each calls."""

COMMENT = re.compile(r" *//.*")

HEAD = """
.version 4.2
.kernel "k"
.decl V0032 v_type=G type=d num_elts=32 align=wordx32
.decl V0033 v_type=G type=d num_elts=16 align=wordx32 alias=<%r0, 0>
.decl V0034 v_type=G type=uq num_elts=1 align=qword
.decl A0 v_type=A num_elts=16
.decl P1 v_type=P num_elts=32
.kernel_attr SimdSize=32
.kernel_attr Extern
.function "_main_0"
_main_0:
"""


def program(*lines: str) -> Program:
    [found] = read(Source("\n".join([HEAD.strip(), *(f"    {line}" for line in lines)]) + "\n", "k.visaasm"))
    return found


def words(text: str) -> list[str]:
    """The lines, without the spaces that do not count; of LOC those before instructions that change the line."""
    found: list[str] = []
    held = pending = ""
    for line in (" ".join(line.split()) for line in text.splitlines()):
        if line.startswith("LOC"):
            pending = line
            continue
        if pending != held and not line.endswith(":") and not line.startswith("FILE"):
            held = pending
            found.append(pending)
        found.append(line)
        if line.startswith("FILE"):
            # No line of the file yet.
            held = pending = "LOC 0"
    return found


def recorded() -> dict[str, tuple[str, str]]:
    """The target and the text of a kernel or function of each file."""
    found = {file: (made["target"], min(made["texts"], key=len)) for file, made in RECORDED.items()}
    # Address variables, calls, and private memory.
    for file, kernel in (
        ("subgroups.cl", "exchange"),
        ("calls.cl", "factorials"),
        ("private_memory.cl", "small_table"),
    ):
        made = RECORDED[file]
        found[kernel] = made["target"], next(t for t in made["texts"] if f'"{kernel}"' in t)
    return found


@pytest.mark.parametrize(("gpu", "text"), recorded().values(), ids=list(recorded()))
def test_recorded_texts(gpu: str, text: str) -> None:
    text = "".join(f"{line}\n" for line in COMMENT.sub("", text).split("\n") if line.strip())
    [found] = read(Source(text, "k.visaasm"))
    assert words(write([found])) == words(text)
    issues = [issue.message for issue in verify(found, target(gpu))]
    # Calls of functions of other texts are to be linked.
    called = [inst["callee"] for inst in found.instructions if inst.name == "fcall"]
    assert issues == [f"calls '{name}', which the program does not have" for name in called]


NO_FORM = {
    "is a function, and the text has no kernel that calls it",
    "which the program does not have",
}
"""Ends of the errors of texts that are a part of a program: a function, or a kernel without those that it calls."""


def whole() -> dict[str, tuple[str, str]]:
    """Further texts, of kernels with the functions that they call, in one file and in several."""
    made = RECORDED["calls.cl"]
    text_of = {re.search(r'"(\w+)"', text)[1]: text for text in made["texts"]}  # type: ignore[index]
    together = {f"{kernel} with {name}": text_of[kernel] + text_of[name] for kernel, name in CALLERS}
    return {name: (made["target"], text) for name, text in {**together, "subroutine": text_of["subroutine"]}.items()}


@pytest.mark.parametrize("name", some(recorded() | whole(), 1 / 2))
def test_recorded_texts_go_through_the_tools(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To MLIR, through xegpu-opt, and back; a part of a program is one error."""
    gpu, text = (recorded() | whole())[name]
    paths = [str(tmp_path / name) for name in ("k.visaasm", "k.mlir", "opt.mlir", "back.visaasm")]
    Path(paths[0]).write_text(text)
    programs = read(Source(text, "k.visaasm"))
    status = xegpu_translate.run([paths[0], "--visaasm-to-mlir", "--target", gpu, "-o", paths[1]])
    errors = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
    if status:
        [program] = programs
        assert program.is_function or any("callee" in inst.values for inst in program.instructions)
        assert (status, len(errors)) == (1, 1) and any(errors[0].endswith(end) for end in NO_FORM), errors
        return
    assert not errors
    assert xegpu_opt.run([paths[1], "-o", paths[2]]) == 0
    assert xegpu_translate.run([paths[2], "--mlir-to-visaasm", "-o", paths[3]]) == 0
    # The dialect has neither surfaces, which no engine has, nor lines of other files.
    other = re.compile(r"\.decl \w+ v_type=[ST]|FILE|LOC")
    found, given = (
        sorted(
            (line for line in words(part) if not other.match(line)),
            key=lambda line: line if line.startswith(".kernel_attr") else "",
        )
        for part in (Path(paths[3]).read_text(), write(linked(programs)))
    )
    assert found == given


@pytest.mark.parametrize("name", [*HEADER, "%cr0", "%arg"])
def test_aliases_of_builtins_in_mlir(name: str) -> None:
    """No instruction names the builtin itself."""
    text = f'.version 4.2\n.kernel "k"\n.decl A v_type=G type=ud num_elts=1 alias=<{name}, 0>\n'
    text += ".decl B v_type=G type=uw num_elts=2 alias=<A, 0>\n.decl C v_type=G type=uw num_elts=1\n"
    text += "    mov (M1, 1) C(0,0)<1> B(0,1)<0;1,0>\n    ret (M1, 1)\n"
    programs = read(Source(text, "k.visaasm"))
    module = module_of(programs, context=Context())
    assert write([program_of(kernels(module.operation)[0])]) == write(programs)


LINES = (
    "mov (M1_NM, 8) V0032(0,0)<1> 0x76543210:v",
    "add (M1, 16) V0032(0,0)<1> V0032(1,0)<1;1,0> 0xffffffff:w",
    "and (M1_NM, 1) V0034(0,0)<1> V0034(0,0)<0;1,0> 0xfffffffffffffffc:q",
    "mov (M1_NM, 16) A0(0)<1> 0x0:uw",
    "addr_add (M5, 16) A0(0)<1> &V0032[64] V0032(1,0)<1;1,0>",
    "mov (M1, 16) V0032(0,0)<1> r[A0(0),0]<1,0>:d",
    "mov (M1, 16) V0032(0,0)<1> r[A0(3),0]<0;1,0>:d",
    "(P1) mov (M1, 16) r[A0(9),0]<1>:d V0032(0,9)<0;1,0>",
    "lsc_load.ugm.ca.ca.uc (M1, 32) V0032:d32 surf(V0033)[V0032]:a32u",
    "lsc_load.ugm.ca.cc (M1_NM, 1) V0032:d32x8t flat[V0034+0x10]:a64",
    "lsc_store.ugm (M1, 32) flat(V0034)[0x4*V0032+0x10]:a32s V0032:d16u32",
    "lsc_store.slm (M1_NM, 1) flat[V0032.64]:a32 V0032.64:d32t",
    "lsc_atomic_iinc.slm (M1, 32) %null:d32 flat[V0032]:a32 %null %null",
    "bfn.x0d (M1, 16) V0032(0,0)<1> V0032(0,0)<1;1,0> V0032(1,0)<1;1,0> 0xffffffc0:d",
    'faddr ".str.2" V0034(0,0)<1>',
    "(!P1) goto (M1, 1) _main_0",
    "lsc_load.ugm.ca.ca.uc.ov (M1, 16) V0032:d32 flat[V0032]:a64",
    "lsc_store.ugm.wb.wb.uc (M1, 32) flat(0x4)[V0032+0x4]:a64 V0032:d32",
)


@pytest.mark.parametrize("line", LINES)
def test_lines(line: str) -> None:
    assert words(write([program(line)]))[-1] == line


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_constant_base(engine: str) -> None:
    """IGC's native code adds it to the address: `[s0.16+src0+0x4]`."""
    lines = [
        "mov (M1_NM, 8) V0032(0,0)<1> 0x76543210:v",
        "lsc_store.ugm (M1_NM, 1) flat(0x40)[V0034+0x8]:a64 V0032.0:d32x8t",
        "ret (M1, 1)",
    ]
    text = "\n".join([HEAD.strip().replace(".kernel_attr", ".input V0034 offset=64 size=8\n.kernel_attr", 1), *lines])
    out = np.zeros(32, np.int32)
    Kernel.from_assembly(text, target="cri", engine=engine)(out)
    assert list(out) == [*[0] * 18, *range(8), *[0] * 6]


def test_versions_below_4_are_printed_for_the_finalizers_that_are_programs() -> None:
    found = program("add (M1, 16) V0032(0,0)<1> V0032(1,0)<1;1,0> 0xffffffff:w", LINES[11])
    text = write([found]).replace(".version 4.2", ".version 3.8")
    text = write(read(Source(text, "k.visaasm")))
    assert "V0032(1,0)<1;1,0> -1:w" in text
    assert "flat[V0032.64]:a32 V0032.64:d32x1t" in text
    assert "alias=<%r0,0>" in text


def test_attributes_of_variables() -> None:
    line = ".decl V0043 v_type=G type=uq num_elts=1 align=qword attrs={Output}"
    text = HEAD.strip().replace(".decl A0", f"{line}\n.decl A0") + "\n"
    assert line in write(read(Source(text, "k.visaasm"))).splitlines()


def test_locations() -> None:
    found = program("mov (M1, 1) V0032(0,0)<1> 0x0:d", 'FILE "dir/k.cl"', "LOC 3", *2 * (LINES[0],), "LOC 0", LINES[1])
    assert [str(inst.where) for inst in found.instructions[1:]] == [
        "k.visaasm:12:5", "dir/k.cl:3", "dir/k.cl:3", "dir/k.cl",
    ]  # fmt: skip
    text = write([found])
    assert text.count("FILE") == 1
    assert re.findall(r"LOC (\d+)", text) == ["3", "0"]


def test_packed_constants() -> None:
    assert Immediate(0x9876543F, "v").elements(10) == [0xFFFF, 3, 4, 5, 6, 7, 0xFFF8, 0xFFF9, 0xFFFF, 3]
    assert Immediate(0x9876543F, "uv").elements(8) == [15, 3, 4, 5, 6, 7, 8, 9]
    # 0.0, 1.0, -2.0 and the greatest, 31: 1.1111 times 2**4.
    assert Immediate(0x7FC03000, "vf").elements(5) == [0, 0x3F800000, 0xC0000000, 0x41F80000, 0]


def test_bases_of_addresses() -> None:
    found = program(LINES[4], LINES[5])
    operand = found.instructions[-1]["src0"]
    assert isinstance(operand, Indirect)
    assert [var.name for var in operand.bases] == ["V0032"]
    [address] = [var for var in found.variables if var.kind == "A"]
    assert address == Variable("A0", "ud", 16, "dword", kind="A")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LINES[5], "at addresses in 'A0', which get no variable's place"),
        ("add (M1, 16) V0032(0,0)<1> A0(0)<1;1,0> 0x1:d", "is the address variable 'A0', but must be a general"),
        ("mov (M1, 16) %sr0(0,0)<1> 0x0:d", "writes %sr0, which can only be read"),
        ("lsc_load.ugm (M1, 32) V0032:d32 arg[V0032]:a32", "addresses memory by 'arg'"),
        ("lsc_load.ugm (M1, 32) V0032:d32 flat(V0033)[V0032]:a32u", "adds a base of type d"),
        ("add3 (M1, 8) V0032(0,0)<1> V0032(0,0)<1;1,0> 0x1:d 0x76543210:v", "cannot be a packed constant of type v"),
        ("add (M1, 8) V0032(0,0)<1> V0032(0,0)<1;1,0> 0x30303030:vf", "cannot be a packed constant of type vf"),
    ],
)
def test_rules(line: str, message: str) -> None:
    issues = verify(program(line, "ret (M1, 1)"), target("pvcxt"))
    assert any(message in issue.message for issue in issues), issues


def test_labels_behind_the_last_instruction() -> None:
    end = program("ret (M1, 1)", "", "_0_001:")
    assert verify(end, target("pvcxt")) == []
    [issue] = verify(program("(P1) goto (M1, 32) _0_001", "ret (M1, 1)", "", "_0_001:"), target("pvcxt"))
    assert "does not end with 'ret'" in issue.message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("media_ld.nomod (16, 8) T6 0x0:ud 0x0:ud V0032.0", "'media_ld' is not supported: no engine has samplers"),
        ("oword_ld (4) T6 0x0:ud V0032.0", "'T6' is not supported: no engine has a table of surfaces"),
        ("sample_lz.RGBA (M1, 16) 0x0:ud S31 T6 V0032.0", "'sample_lz' is not supported: no engine has samplers"),
        ("mov (M1, 1) V0032(0,0)<1> %hw_id(0,0)<0;1,0>", "'%hw_id' is not supported"),
        ("mov (M1, 1) V0032(0,0)<1> 0xfffffff0:uw", "does not fit type uw"),
        ("mov (M1, 1) V0032(0,0)<1> r[V0032(0),0]<0;1,0>:d", "'V0032' is no address variable"),
    ],
)
def test_refused(line: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=re.escape(message)):
        program(line)
