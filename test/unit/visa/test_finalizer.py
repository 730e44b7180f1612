"""Intel's finalizer accepts printed assembly, and rejects instructions that a target lacks by our tables."""

import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from xegpu_py.target import TARGETS, Target
from xegpu_py.visa import assembly, finalizer
from xegpu_py.visa.finalizer import FinalizerError, finalize
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.legacy_messages import OLDER
from xegpu_py.visa.operands import Address, Destination, Raw, Region, Variable
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import BlockShape, DataShape
from xegpu_py.visa.verify import instruction_problem, verify

from .programs import STRAIGHT, program_of, random_instruction, random_program

GPUS = [TARGETS[name] for name in finalizer.GPUS]
FORMS_EACH = examples(8, 1 / 2)


CRASHING = {"svm_gather4scaled", "gather", "scatter", "gather_scaled", "scatter_scaled"}

UNREAD = {
    "GenX_IR": {"invm", "rsqtm", "svm_block_ld", "svm_block_st"},
    "GenX_IR-2024": CRASHING,
    "ocloc": CRASHING,
}
"""Instructions of which a finalizer cannot read all forms: words that came later, or sizes at which it crashes."""

ALONE = {spec.name for spec in OLDER}
"""Instructions of which several in one program keep GenX_IR of 2022 busy without end."""


def known(target: Target, finalizer: str) -> list[str]:
    """The instructions that a target has and a finalizer reads."""
    without = target.absent | UNREAD.get(finalizer, set())
    return [n for n in STRAIGHT if n not in without and (target.block2d or not n.endswith("block2d"))]


def beyond_2022(inst: Instruction) -> bool:
    """Whether GenX_IR of 2022 crashes or refuses what that of 2024 accepts: f64 under a predicate whose destination
    has gaps, and transposed blocks of more than 64 bytes in a column.
    """
    dst, block = inst.values.get("dst"), inst.values.get("block")
    gaps = isinstance(dst, Destination) and dst.var.type == "df" and dst.stride > 1
    long = isinstance(block, BlockShape) and block.transpose and block.height * block.size > 512
    return long or (gaps and inst.guard is not None)


def fault(program: Program, target: Target, native_of: Any, registers: int | None = None) -> str | None:
    try:
        native_of(assembly.write([program]), target.name, registers)
    except FinalizerError as e:
        return str(e)
    return None


@pytest.mark.each_value
@pytest.mark.parametrize("target", GPUS, ids=lambda t: t.name)
def test_every_form_is_accepted(target: Target, native_of: Any) -> None:
    cases = [
        [random_instruction(name, random.Random(f"{target.name} {name} {n}"), target) for n in range(FORMS_EACH)]
        for name in known(target, native_of.name)
    ]

    def refused(forms: list[Instruction]) -> list[str]:
        # Most of the time is the finalizer's start: all forms at once, and halves of those that it refuses.
        why = fault(program_of(forms, target), target, native_of, 256)
        if why is None or len(forms) == 1:
            return [f"{assembly.write_statement(form)}: {why}" for form in forms if why]
        return [*refused(forms[: len(forms) // 2]), *refused(forms[len(forms) // 2 :])]

    if native_of.name == "GenX_IR":
        cases = [[i for i in forms if not beyond_2022(i)] for forms in cases]
    if native_of.name == "ocloc":
        # It crashes (an internal error) on some fences that discard.
        cases = [[i for i in forms if "discard" not in assembly.write_statement(i)] for forms in cases]
    hanging = ALONE if native_of.name == "GenX_IR" else ()
    alone = [[i] for forms in cases for i in forms if i.name in hanging]
    together = [i for forms in cases for i in forms if i.name not in hanging]
    with ThreadPoolExecutor(2) as pool:
        assert not [why for found in pool.map(refused, [together, *alone]) for why in found]


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("target", "name"),
    [(t, n) for t in GPUS for n in sorted(t.absent & set(STRAIGHT))],
    ids=lambda v: getattr(v, "name", v),
)
def test_what_is_absent_is_refused(target: Target, name: str, native_of: Any) -> None:
    try:
        inst = random_instruction(name, random.Random(0), replace(target, absent=frozenset()))
    except AssertionError:
        # No form of it fits the target otherwise either, as of bdpas, which has 16 lanes.
        inst = random_instruction(name, random.Random(0), TARGETS["any"])
    assert instruction_problem(inst, target) == (f"is not supported on target '{target.name}'",)
    refusal = fault(program_of([inst], target), target, native_of)
    assert refusal and "does not accept it" in refusal


# With 128 registers the newer finalizers crash on some programs whose variables hardly fit, and ocloc does on fences
# that discard. For cri it also crashes on loads that read and invalidate.
@pytest.mark.parametrize(
    ("native_of", "name"),
    [("GenX_IR-2024", "pvcxt"), ("GenX_IR-2024", "bmg"), ("ocloc", "pvcxt"), ("ocloc", "bmg"), ("ocloc", "cri")],
    indirect=["native_of"],
)
def test_random_programs_are_accepted_by_newer_ones(name: str, native_of: Any) -> None:
    target = TARGETS[name]
    names = known(target, native_of.name)
    for seed in range(examples(8 if native_of.name == "ocloc" else 32)):
        rng = random.Random(f"{name} {seed}")
        program = random_program(rng.choices(names, k=rng.randrange(5, 200)), rng, target)
        crashing = ("discard", ".ri.ca") if name == "cri" else ("discard",)
        kept = [i for i in program.instructions if not any(w in assembly.write_statement(i) for w in crashing)]
        assert verify(program, target) == []
        native_of(assembly.write([program.with_instructions(kept)]), name, 256)


@pytest.mark.parametrize("native_of", ["GenX_IR"], indirect=True)
@pytest.mark.parametrize("target", GPUS, ids=lambda t: t.name)
@settings(max_examples=examples(110, 0.1))
@given(data=st.data())
def test_random_programs_are_accepted(target: Target, native_of: Any, data: st.DataObject) -> None:
    names = [name for name in known(target, native_of.name) if name not in ALONE]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=5, max_size=200))
    program = random_program(chosen, random.Random(data.draw(st.integers(0, 1 << 32))), target)
    assert verify(program, target) == []
    accepted = program.with_instructions([i for i in program.instructions if not beyond_2022(i)])
    assert fault(accepted, target, native_of) is None


def test_control_flow_is_accepted(native_of: Any) -> None:
    text = """\
.version 3.8
.kernel "loop"
.decl I v_type=G type=d num_elts=16 align=GRF
.decl P v_type=P num_elts=16
.decl Q v_type=P num_elts=1
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1, 16) I(0,0)<1> 0x0:d
L0:
    add (M1, 16) I(0,0)<1> I(0,0)<1;1,0> 0x1:d
    cmp.lt (M1, 16) P I(0,0)<1;1,0> 0x10:d
    (!P) goto (M1, 16) L1
    cmp.lt (M1_NM, 1) Q I(0,0)<0;1,0> 0x5:d
    (Q) jmp (M1, 1) L0
L1:
    (P.any) jmp (M1, 1) L2
    (!P.all) add (M1, 16) I(0,0)<1> I(0,0)<1;1,0> 0x1:d
L2:
    ret (M1, 1)
"""
    from xegpu_py.ir.diagnostics import Source

    [program] = assembly.read(Source(text, "loop"))
    for target in GPUS:
        assert verify(program, target) == []
        assert fault(program, target, native_of) is None


NATIVE = """\
//.kernel k
//.thread_config numGRF=128, numAcc=4, numSWSB=16
//.declare BuiltInR0 (0)  rf=r size=64 type=ud align=32 words (r0.0)
//.declare V32 (1)  rf=r size=130 type=f align=32 words (r10.0)
//.declare V33 (2)  rf=r size=8 type=uq align=4 words (r14.1)
//.declare V34 (3)  rf=r size=4 type=w align=2 words (r15.31)
//.declare V35 (4)  rf=f16 size=4 type=uw align=2 words (f0.0)
// .inst 3 (r99.0)
        add (16|M0)  r20.0<1>:f  r21.0<8;8,1>:f  r22.3<0;1,0>:f // r98.0
        send.ugm (16|M0)  r30:4  r40:1  null:0  0x0  0x0800
        sync.nop  null
//.instCount 3
"""


@pytest.mark.parametrize(
    ("grf_bytes", "declared"), [(32, [10, 11, 12, 13, 14, 16, 17]), (64, [10, 11, 12, 14, 15, 16])]
)
def test_registers_of_native_code(grf_bytes: int, declared: list[int]) -> None:
    """Those of variables with a byte in them, but not of what the finalizer always declares, and those of operands."""
    assert finalizer._registers(NATIVE, grf_bytes) == {*declared, 20, 21, 22, *range(30, 34), 40}


def test_counts_are_read(native_of: Any) -> None:
    rng = random.Random(0)
    program = program_of([random_instruction("add", rng, TARGETS["pvc"])])
    native = native_of(assembly.write([program]), "pvc")
    assert native.instructions >= 2
    assert "add" in native.text
    assert 1 <= native.registers <= native.total_registers == 128
    assert native.spill_bytes == 0


@pytest.mark.parametrize(
    "name", ["V0", "V20", "T1", "S31", "add", "flat", "lsc_load", "V21", "V22", "T0", "S0", "label", "any"]
)
def test_names_that_the_finalizer_keeps(name: str, native_of: Any) -> None:
    program = Program(
        "k", (Variable(name, "d", 1),), attributes={"SimdSize": 16, "Target": "cm"}, instructions=(Instruction("ret"),)
    )
    refused = fault(program, TARGETS["pvc"], native_of) is not None
    # Older ones keep fewer names.
    keeps = not refused if name == "V21" and native_of.name != "ocloc" else refused
    assert keeps == bool(verify(program, TARGETS["pvc"]))


def test_a_crash_is_told(native_of: Any) -> None:
    registers = [Variable(f"R{n}", "d", 32, "GRF") for n in range(70)]
    address = Variable("A", "uq", 16, "GRF")
    loads = [
        Instruction(
            "lsc_load",
            {
                "sfid": "ugm",
                "caches": "",
                "dst": Raw(v),
                "data": DataShape("d32", 2),
                "address": Address(address),
                "address_size": "a64",
            },
            16,
        )
        for v in registers
    ]
    sums = [
        Instruction("add", {"dst": Destination(v), "src0": Region(v), "src1": Region(w)}, 32)
        for v, w in zip(registers, reversed(registers))
    ]
    program = Program("k", (*registers, address), instructions=(*loads, *sums, *sums, Instruction("ret")))
    assert verify(program, TARGETS["pvc"]) == []
    reason = fault(program, TARGETS["pvc"], native_of)
    assert reason is None or "crashed (signal 11)" in reason


def test_a_refusal_says_why(native_of: Any) -> None:
    bad = program_of([Instruction("barrier")])
    text = assembly.write([bad]).replace("barrier", "barier")
    with pytest.raises(FinalizerError, match="syntax error"):
        native_of(text, "pvc")


LONG = program_of([Instruction("barrier")] * 40000)


@pytest.mark.needs("ocloc")
def test_ocloc_takes_kernels_of_256_kib() -> None:
    text = assembly.write([LONG])
    message = "ocloc takes kernels of at most 256 KiB of assembly, but this one has 313 KiB; "
    with pytest.raises(FinalizerError, match=message + "GenX_IR-2024 takes longer ones"):
        finalize(text, "bmg", finalizer="ocloc", seconds=300)
    with pytest.raises(FinalizerError, match=message + "no other finalizer knows target cri"):
        finalize(text, "cri", seconds=300)


def test_kernels_too_long_for_a_finalizer_go_to_the_next_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = {
        "ocloc": 'echo "InvalidWordCount: Can\'t encode instruction with word count greater than 65535:"; exit 1',
        "GenX_IR-2024": "echo '//.instCount 7' > kernel.asm",
        "GenX_IR": "echo 'not asked'; exit 1",
    }
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("XEGPU_PY_ORACLES", str(tmp_path))
    text = assembly.write([program_of([Instruction("barrier")])])
    assert finalize(text, "pvc").instructions == 7
    # Another error of the first one is told, and so is the limit if a finalizer is named.
    with pytest.raises(FinalizerError, match="at most 256 KiB .*; GenX_IR-2024 and GenX_IR take longer ones"):
        finalize(text, "pvc", finalizer="ocloc")
    (tmp_path / "ocloc").write_text("#!/bin/sh\necho 'error: broken'; exit 1\n")
    with pytest.raises(FinalizerError, match="ocloc does not accept it: error: broken"):
        finalize(text, "pvc")


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Violating Instruction: barrier ///$4:&12", 3),
        ("Violating Instruction: fence_global", None),
        ("error near line 4: syntax error", 4),
        ("error without a line", None),
    ],
)
def test_the_line_that_a_finalizer_refuses(
    output: str, line: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "GenX_IR").write_text(f"#!/bin/sh\necho '{output}'; exit 1\n")
    (tmp_path / "GenX_IR").chmod(0o755)
    monkeypatch.setenv("XEGPU_PY_ORACLES", str(tmp_path))
    with pytest.raises(FinalizerError, match="GenX_IR does not accept it") as refused:
        finalize('.version 3.8\n.kernel "k"\n  barrier  \nret (M1, 1)\n', "pvc", finalizer="GenX_IR")
    assert refused.value.line == line


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("sleep 60", "GenX_IR did not end within 0.2 s"),
        ("echo '<<error formatting instruction>>' > kernel.asm",
         "GenX_IR does not accept it: it makes an instruction that the GPU does not have"),
        ("echo '//.instCount 7' > kernel.asm; echo 'error: no' > a.errors.txt",
         "GenX_IR does not accept it: error: no"),
        ("echo '//.instCount 7' > kernel.asm; cp kernel.asm other.asm", "GenX_IR does not accept it"),
    ],
)  # fmt: skip
def test_finalizers_that_fail(script: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "GenX_IR").write_text(f"#!/bin/sh\nexec 2>&1\n{script}\n".replace("sleep", "exec sleep"))
    (tmp_path / "GenX_IR").chmod(0o755)
    monkeypatch.setenv("XEGPU_PY_ORACLES", str(tmp_path))
    with pytest.raises(FinalizerError, match=re.escape(message)):
        finalize('.version 3.8\n.kernel "k"\nret (M1, 1)\n', "pvc", None, "GenX_IR", 0.2 if "sleep" in script else 60)


ENTRY = """.version 3.8
.kernel "k"
.decl A v_type=G type=uq num_elts=1 align=qword
.decl N v_type=G type=d num_elts=1 align=dword
.decl V v_type=G type=f num_elts=2 align=dword
.decl L v_type=G type=ud num_elts=3 align=dword
.decl G v_type=G type=ud num_elts=3 align=dword
.decl I v_type=G type=ud num_elts=3 align=dword
.input V offset=96 size=8
.input A offset=64 size=8
.input N offset=72 size=4
.implicit_LOCAL_SIZE L offset=32 size=12
.implicit_GROUP_COUNT G offset=44 size=12
.implicit_LOCAL_ID I offset=56 size=8
.kernel_attr Target="{kind}"
.kernel_attr SimdSize=8
.kernel_attr SLMSize={slm}
// a comment
    add (M1_NM, 1) N(0,0)<1> N(0,0)<0;1,0> %group_id_x(0,0)<0;1,0>
    ret (M1, 1)
"""


@pytest.mark.parametrize(("kind", "slm"), [("cm", 2), ("cm", 0), ("", 0)])
def test_a_kernel_as_opencl_c(kind: str, slm: int) -> None:
    """Arguments by their offsets. Sizes and ids in x count subgroups of eight work items, numbers of groups do not."""
    text, lines = finalizer.opencl(ENTRY.format(kind=kind, slm=slm), 32)
    per = " / 8" if kind else ""
    operands = [f"(uint)get_local_size(0){per}", "(uint)get_local_size(1)", "(uint)get_local_size(2)"]
    operands += [f"(uint)get_num_groups({n})" for n in range(3)]
    operands += [f"(uint)sub_group_broadcast(get_local_id(0), 0){per}", "(uint)sub_group_broadcast(get_local_id(1), 0)"]
    operands += ["arg0", "(uint)arg1", "as_uint(arg2)", "as_uint(arg3)", *["slm"] * bool(slm)]
    assert ", ".join(f'"rw.u"({operand})' for operand in operands) in text
    assert "__global char *arg0 /* A */,\n    int arg1 /* N */,\n    float arg2 /* V[0] */,\n" in text
    assert (f"__local char slm[{slm << 10}];" in text) == bool(slm) and "reqd_sub_group_size(8)" in text
    # Declarations, for each argument one more and a copy of each number, and the instruction with its line.
    assert [n for n in lines if n] == [3, 4, 5, 6, 7, 8, 19] and lines[-1] == 19
    assert lines.count(0) == 6 + 12 and "%%group_id_x" in text and "a comment" not in text
    assert "mov (M1_NM, 1) V_bits(0,1)<1> %11(0,0)<0;1,0>" in text


def test_without_the_finalizer_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XEGPU_PY_ORACLES", "off")
    with pytest.raises(FinalizerError, match="Debian has GenX_IR in the package libigc-tools"):
        finalize("", "pvc")


def test_every_instruction_is_tried() -> None:
    assert set(INSTRUCTIONS) - set(STRAIGHT) == {
        *("label", "jmp", "goto", "ret", "call", "fcall", "ifcall", "fret", "addr_add", "faddr", "switchjmp"),
    }


@pytest.mark.parametrize(
    ("status", "output", "reason"),
    [
        (-11, "", "crashed (signal 11), for example because variables exceed the registers"),
        (-6, "bad operand", "crashed (signal 6), for example because variables exceed the registers"),
        (139, "", "crashed (signal 11), for example because variables exceed the registers"),
        (0, "", "does not accept it: it ended with status 0"),
        (1, "\n  \n", "does not accept it: it ended with status 1"),
        (138, "", "does not accept it: it ended with status 138"),
        (0, "\t/* bad operand */\nother\n bad operand\n", "does not accept it: bad operand; other"),
    ],
)
def test_why_a_finalizer_failed(status: int, output: str, reason: str) -> None:
    assert finalizer._reason("GenX_IR", output, status) == f"GenX_IR {reason}"


def test_the_newest_finalizer_that_knows_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    for installed in (set(), {"GenX_IR"}, {"GenX_IR", "GenX_IR-2024"}, set(finalizer.FINALIZERS)):
        monkeypatch.setattr(finalizer.external_tools, "find", lambda name, installed=installed: name in installed)
        for target in TARGETS:
            names = [n for n, f in finalizer.FINALIZERS.items() if n in installed and target in f.platforms]
            assert finalizer.available(target) == (names[0] if names else None)
    assert finalizer.available("no such target") is None
