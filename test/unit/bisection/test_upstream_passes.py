"""Mistakes of mlir-opt's passes are found, named and reduced: those of the release, and those of a tool made for it."""

import random
import shlex
import stat
import sys
from pathlib import Path

import fuzz_upstream
import numpy as np
import pytest
from generators import upstream_campaign as campaign
from generators.upstream_lanes import random_kernel
from markdown import ROOT

from xegpu_py import external_tools
from xegpu_py.bisection import reduction
from xegpu_py.bisection.reduction import reduced
from xegpu_py.bisection.upstream_stages import UpstreamLaunch, check, stages, tool_named
from xegpu_py.tools import xegpu_bisect

LAYOUT = "#xegpu.layout<sg_layout = [4, 1], sg_data = [1, 32]>"

ROUND_ROBIN = f"""gpu.module @k {{
  gpu.func @f(%a: memref<8x64xf32>, %b: memref<8x64xf32>) kernel {{
    %c = arith.constant dense<2.0> : vector<8x64xf32>
    %s = xegpu.create_nd_tdesc %a : memref<8x64xf32> -> !xegpu.tensor_desc<8x64xf32>
    %x = xegpu.load_nd %s[0, 0] <{{layout = {LAYOUT}}}> : !xegpu.tensor_desc<8x64xf32> -> vector<8x64xf32>
    %y = arith.mulf %x, %x : vector<8x64xf32>
    %z = arith.addf %y, %c : vector<8x64xf32>
    %t = xegpu.create_nd_tdesc %b : memref<8x64xf32> -> !xegpu.tensor_desc<8x64xf32>
    xegpu.store_nd %z, %t[0, 0] <{{layout = {LAYOUT}}}> : vector<8x64xf32>, !xegpu.tensor_desc<8x64xf32>
    gpu.return
  }}
}}
"""

WORDS = ("small:f32:8x64:seed=3", "zeros:f32:8x64")

ENDS = {
    "unreachable": ("UNREACHABLE executed at a.cpp:7!\n", 0),
    "fatal": ("LLVM ERROR: out of order\n", 0),
    "silent": ("", 0),
    "refuses": ("<stdin>:2:3: error: 'gpu.func' op is too long\n", 1),
    "mute": ("", 3),
    "unknown": ("no such pass pipeline\n", 1),
    "unparsed": ("<unknown>:0: error: pass-pipeline 'x' does not parse\n", 1),
}
"""By the name of a pass, what the tool says in it and its exit status, or 0 if it aborts."""

TOOL = """#!{python}
# An mlir-opt with the passes of its pipeline, of which some are wrong.
import os, sys, time
ENDS = {ends}
text = sys.stdin.read()
passes = next(a for a in sys.argv if a.startswith("--pass-pipeline=")).partition("(")[2][:-1].split(",")
before = "--mlir-print-ir-before-all" in sys.argv
if "error" in text:
    sys.exit("<stdin>:1:1: error: custom op 'error' is unknown")
for name in passes:
    head = f"// -----// IR Dump %s Made ({{name}}) //----- //\\n"
    if before:
        sys.stderr.write(head % "Before")
    if name == "endless":
        time.sleep(60)
    if name == "abort" and "mulf" in text:
        sys.stderr.write("mlir-opt: a.cpp:1: Assertion `no mulf' failed.\\n")
        sys.stderr.flush()
        os.abort()
    if name in ENDS:
        sys.stderr.write(ENDS[name][0])
        sys.stderr.flush()
        sys.exit(ENDS[name][1]) if ENDS[name][1] else os.abort()
    made = text.replace("addf", "subf") if name == "wrong" else text + "\\n"
    if name == "lost":
        made = "".join(line for line in text.splitlines(True) if "xegpu.store" not in line)
    if not before:
        sys.stderr.write(head % "After" + made)
    sys.stderr.flush()
    text = made
"""


@pytest.fixture
def made(tmp_path):
    """The path of an mlir-opt that is wrong on purpose."""
    file = tmp_path / "mlir-opt"
    file.write_text(TOOL.format(python=sys.executable, ends=ENDS))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def launch(text=ROUND_ROBIN, block=64):
    a = np.arange(512, dtype=np.float32).reshape(8, 64)
    return UpstreamLaunch(text, [a, np.zeros_like(a)], block=(block,), level="workgroup", words=WORDS)


def test_a_wrong_pass_is_named_after_right_ones(made):
    found = check(launch(), "builtin.module(right,wrong,right)", made)
    assert (found.outcome, found.passed, found.step) == ("differs", ("right",), "wrong")
    assert found.message.startswith("%b differs first at [0, 0]: 2.0 before, -2.0 after (512 of 512")
    assert check(launch(), "builtin.module(right)", made).report() == "no difference: 1 passes that changed the kernel"


def test_branches_of_single_subgroups_of_a_workgroup():
    """The evaluator has no subgroups at workgroup level; the interpreter runs such kernels."""
    layout = "<{layout = #xegpu.layout<sg_layout = [4], sg_data = [16]>}>"
    text = f"""gpu.module @k {{
      gpu.func @f(%a: memref<128xf32>, %b: memref<64xf32>) kernel {{
        %c2 = arith.constant 2 : index
        %id = gpu.subgroup_id : index
        %first = arith.cmpi ult, %id, %c2 : index
        %d = xegpu.create_nd_tdesc %a : memref<128xf32> -> !xegpu.tensor_desc<64xf32>
        %v = scf.if %first -> (vector<64xf32>) {{
          %x = xegpu.load_nd %d[0] {layout} : !xegpu.tensor_desc<64xf32> -> vector<64xf32>
          scf.yield %x : vector<64xf32>
        }} else {{
          %x = xegpu.load_nd %d[64] {layout} : !xegpu.tensor_desc<64xf32> -> vector<64xf32>
          scf.yield %x : vector<64xf32>
        }}
        %e = xegpu.create_nd_tdesc %b : memref<64xf32> -> !xegpu.tensor_desc<64xf32>
        xegpu.store_nd %v, %e[0] {layout} : vector<64xf32>, !xegpu.tensor_desc<64xf32>
        gpu.return
      }}
    }}"""
    a = np.arange(128, dtype=np.float32)
    (_, b), _ = UpstreamLaunch(text, [a, np.zeros(64, np.float32)], block=(64,)).evaluated(text)
    assert (b == np.r_[a[:32], a[96:]]).all()


@pytest.mark.parametrize(("block", "subgroups"), [((16,), 1), ((32,), 2), ((16, 3), 3)])
def test_work_items_of_a_block_are_lanes_of_subgroups(block, subgroups):
    text = """gpu.module @k [#xevm.target<chip = "pvc">] {
      gpu.func @f(%a: memref<8x16xi32>) kernel {
        %s = gpu.subgroup_id : index
        %row = arith.constant dense<1> : vector<1xi32>
        %d = xegpu.create_nd_tdesc %a : memref<8x16xi32> -> !xegpu.tensor_desc<1x16xi32>
        xegpu.store_nd %row, %d[%s, 0] : vector<1xi32>, !xegpu.tensor_desc<1x16xi32>
        gpu.return
      }
    }"""
    (a,), _ = UpstreamLaunch(text, [np.zeros((8, 16), np.int32)], block=block, level="lane").evaluated(text, "lane")
    assert a.sum(1).tolist() == [16] * subgroups + [0] * (8 - subgroups)


def test_passes_are_named_as_llvm_23_prints_them(made):
    """The pass is behind a colon, with all its options. Without a name that is known there is no verdict."""
    file = Path(made)
    text = file.read_text()
    file.write_text(text.replace("Made ({name})", "Made: {name} ('gpu.module' operation: @k)"))
    found = check(launch(), "builtin.module(right,wrong)", made)
    assert (found.outcome, found.passed, found.step) == ("differs", ("right",), "wrong")
    file.write_text(text.replace("Made ({name})", "Made"))
    with pytest.raises(ValueError, match="does not print modules before passes"):
        check(launch(), "builtin.module(right,wrong)", made)


def test_an_abort_names_its_pass_and_is_reduced_to_what_it_needs(made):
    found = check(launch(), "builtin.module(right,abort,right)", made)
    assert (found.outcome, found.step, found.message) == ("aborts", "abort", "no mulf")
    small, again = reduced(launch(), "builtin.module(right,abort,right)", made, found)
    assert again == found
    ops = [line.split(" = ")[-1].split()[0] for line in small.text.splitlines()[2:-3]]
    assert ops == ["xegpu.create_nd_tdesc", "xegpu.load_nd", "arith.mulf"]
    assert len(small.arguments) == len(small.words) == 1
    assert "layout" not in small.text


def test_a_reduction_tries_no_more_candidates_than_asked(made, monkeypatch):
    """A kernel of the same text is none: each candidate is checked once, and none after the last one."""
    tried = []

    def counted(candidate, *args):
        tried.append(candidate.text)
        return check(candidate, *args)

    monkeypatch.setattr(reduction, "check", counted)
    found = check(launch(), "builtin.module(abort)", made)
    sizes = []
    for most in (0, 1, 5, 400):
        tried.clear()
        small, again = reduced(launch(), "builtin.module(abort)", made, found, most)
        assert again == found and len(tried) == min(most, len(tried)) and (most == 400) == (len(tried) < most)
        assert small.text in (ROUND_ROBIN, *tried) and ROUND_ROBIN not in tried
        sizes.append(len(small.text))
    assert sizes[0] == len(ROUND_ROBIN) and sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0]


def test_a_reduced_kernel_aborts_for_the_same_reason(made):
    """Without its multiplication it would abort for another one."""
    file = Path(made)
    second = """    if name == "abort" and "load_nd" in text:
        sys.stderr.write("mlir-opt: a.cpp:2: Assertion `no loads' failed.\\n")
        sys.stderr.flush()
        os.abort()
    made ="""
    file.write_text(file.read_text().replace("    made =", second, 1))
    found = check(launch(), "builtin.module(abort)", made)
    assert found.message == "no mulf"
    small, again = reduced(launch(), "builtin.module(abort)", made, found)
    assert again.message == "no mulf" and "mulf" in small.text


def test_a_pass_that_does_not_end_is_named(made):
    found = stages(ROUND_ROBIN, "builtin.module(right,endless)", made, 4)
    assert (found.ended, found.step, found.message) == ("aborts", "endless", "it does not end within 4 seconds")
    assert [stage.step for stage in found.stages] == ["right"]


@pytest.mark.parametrize(
    ("name", "ended", "message"),
    [
        ("unreachable", "aborts", "UNREACHABLE executed at a.cpp:7!"),
        ("fatal", "aborts", "LLVM ERROR: out of order"),
        ("silent", "aborts", "SIGABRT"),
        ("refuses", "refuses", "'gpu.func' op is too long"),
        ("mute", "refuses", "// -----// IR Dump After Made (right)"),
    ],
)
def test_what_a_tool_says_as_it_ends(made, name, ended, message):
    found = stages(ROUND_ROBIN, f"builtin.module(right,{name},right)", made)
    assert (found.ended, found.step) == (ended, name) and found.message.startswith(message)
    assert [stage.step for stage in found.stages] == ["right"]


@pytest.mark.parametrize(
    ("name", "message"), [("unknown", "no such pass pipeline"), ("unparsed", "pass-pipeline 'x' does not parse")]
)
def test_pipelines_that_a_tool_does_not_know(made, name, message):
    with pytest.raises(ValueError, match=rf"mlir-opt does not run 'builtin.module\({name}\)': {message}$"):
        stages(ROUND_ROBIN, f"builtin.module({name})", made)


def test_the_lines_of_each_op():
    """Ops with regions have all lines up to their end; ends of regions, terminators and heads are left out."""
    text = ("gpu.module @m {|gpu.func @f() kernel {|%a = one|scf.for {|%b = two // {|scf.if {|three|} else {|four|"
            "scf.yield|}|} // loop||five|gpu.return|}|}")  # fmt: skip
    lines = text.split("|")
    # What ends outside of the lines that are looked at is left out.
    assert [(r.start, r.stop) for r in reduction._ops(["}", "three", "}"])] == [(1, 2)]
    found = ["|".join(lines[i] for i in r) for r in reduction._ops(lines)]
    loop = "scf.for {|%b = two // {|scf.if {|three|} else {|four|scf.yield|}|} // loop"
    otherwise = "} else {|four|scf.yield|}"
    assert found == ["five", "four", otherwise, "three", "scf.if {|three|} else {", "%b = two // {", loop, "%a = one"]


def test_ops_whose_results_are_used():
    """By ops outside of them: those in an op's own regions do not count, and a result may be one of several."""
    lines = ["%a = one", "%b:2 = two %a {", "%c = three %b#1", "}", "%d = four %b#0", "five %e.1", "%e = six", "%f"]
    used = [lines[r.start][:2] for r in reduction._ops(lines) if reduction._is_used(lines, r)]
    assert used == ["%b", "%a"]


def test_what_the_tool_cannot_read_is_no_mistake_of_a_pass(made):
    found = check(launch(ROUND_ROBIN + "// error\n"), "builtin.module(right)", made)
    assert (found.outcome, found.step) == ("not read", "")


def test_a_kernel_whose_own_result_is_unexpected_stops_at_once(made):
    with pytest.raises(Exception, match="the kernel's result is not the expected one: %b"):
        check(launch(), "builtin.module(right)", made, expected=launch().arguments)


def test_a_campaign_finds_a_wrong_pass(made, tmp_path):
    said = []
    number = min(range(40), key=lambda n: len(random_kernel(random.Random(n), "lane", True).program().text))
    done = campaign.run(["lane"], "builtin.module(lost)", made, tmp_path / "out", seconds=99, programs=1, seed=number,
                        say=said.append)  # fmt: skip
    assert done.outcomes == {"differs": 1}
    (file,) = (tmp_path / "out").iterdir()
    assert "xegpu.store" in file.read_text()
    assert str(file) in said[0]
    assert "| lost | 1 | 1 | 0 | 0 |" in done.table()


def test_tools(made, tmp_path, capsys):
    file = tmp_path / "kernel.mlir"
    file.write_text(ROUND_ROBIN)
    passes = "--pass-pipeline=builtin.module(right,wrong)"
    call = ["--upstream", str(file), *WORDS, "--block", "64", "--mlir-opt", made]
    assert xegpu_bisect.run([*call, passes, "--reduce", str(tmp_path / "small.mlir")]) == 1
    assert capsys.readouterr().out.startswith("after 'wrong', which follows 'right', %b differs")
    assert "mulf" not in (tmp_path / "small.mlir").read_text()
    assert xegpu_bisect.run([*call, "--pass-pipeline=builtin.module(right)"]) == 0
    for wrong, message in (
        (call, "--upstream needs --pass-pipeline, or --level"),
        ([str(file), "--level", "lane"], "--level is for --upstream"),
        ([*call[:-1], str(tmp_path / "none"), passes], "does not run: No such file"),
    ):
        with pytest.raises(SystemExit) as e:
            xegpu_bisect.run(wrong)
        assert e.value.code == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        fuzz_upstream.run(["--level", "thread"])
    assert "'thread' is not a list of subgroup, lane, workgroup" in capsys.readouterr().err


def test_without_mlir_opt(monkeypatch):
    monkeypatch.setenv(external_tools.VARIABLE, "off")
    with pytest.raises(ValueError, match="there is no mlir-opt: pip install"):
        tool_named()


@pytest.mark.needs("mlir-opt")
def test_stock_passes():
    """LLVM 22.1.8 stores one part of a constant that is distributed round robin."""
    first = "xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=subgroup}"
    passes = f"builtin.module(cse,{first},xegpu-wg-to-sg-distribute))"
    unused = ("%s = ", "%x = ", "%y = ", "%z = ")
    text = "".join(x for x in ROUND_ROBIN.splitlines(True) if not x.strip().startswith(unused)).replace("%z", "%c")
    found = check(launch(text), passes, tool_named())
    assert (found.outcome, found.step) == ("differs", "xegpu-wg-to-sg-distribute")
    small, _ = reduced(launch(text), passes, tool_named(), found)
    assert len(small.text.splitlines()) <= 9
    whole = text.replace("sg_data = [1, 32]", "sg_data = [2, 64]")
    assert (
        "xegpu-wg-to-sg-distribute" in check(launch(whole), campaign.default_passes("workgroup"), tool_named()).passed
    )


@pytest.mark.needs("mlir-opt")
def test_an_unknown_pass_is_an_error_and_not_an_outcome():
    with pytest.raises(ValueError, match="'none' does not refer to a registered pass"):
        stages(ROUND_ROBIN, "builtin.module(none)", tool_named())


BUGS = sorted((ROOT / "docs" / "upstream-bugs").glob("*.mlir"))


@pytest.mark.needs("mlir-opt")
@pytest.mark.parametrize("file", BUGS, ids=lambda f: f.stem)
def test_mistakes_that_are_documented_are_those_of_the_release(file, capsys):
    command, said, *_ = (line.removeprefix("// ") for line in file.read_text().splitlines())
    words = shlex.split(command.removeprefix("RUN: not xegpu-bisect ").replace("%s", str(file)))
    assert xegpu_bisect.run(words) == 1
    assert capsys.readouterr().out.splitlines()[0] == said
    assert f"[{file.stem}]({file.name})" in (file.parent / "README.md").read_text()
