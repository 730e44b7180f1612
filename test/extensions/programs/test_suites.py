"""`xegpu-test` runs directories of programs, and its reports name what failed and where; statistics in JSON."""

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import forked_tools
import numpy as np
import pytest

from xegpu_py.extensions.programs import suite as suites
from xegpu_py.extensions.programs.suite import FileResult, sarif
from xegpu_py.tools import xegpu_run, xegpu_test

MAIN = "func.func @main() {\n  %x = arith.constant 7 : i64\n  call @printI64(%x) : (i64) -> ()\n  return\n}\n"

FILES = {
    "good.mlir": MAIN + "func.func private @printI64(i64)\n// CHECK: 7\n",
    "wrong.mlir": MAIN + "func.func private @printI64(i64)\n// CHECK: 8\n",
    "refused.mlir": "func.func @main() {\n  %x = arith.constant\n  return\n}\n",
}

KERNEL = """gpu.module @k {
  gpu.func @f(%a: memref<4xf32>) kernel {
    %x = arith.constant 1.0 : f32
    %c0 = arith.constant 0 : index
    memref.store %x, %a[%c0] : memref<4xf32>
    gpu.return
  }
}
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A directory of programs, below the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite").mkdir()
    for name, text in FILES.items():
        (tmp_path / "suite" / name).write_text(text)
    return tmp_path


def test_reports(suite, capsys):
    assert xegpu_test.run(["suite", "--report", "all.xml", "--report", "bad.sarif"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["passed", "refused", "wrong"]
    assert lines[-3] == "| suite | files | passed | wrong | refused |"
    assert lines[-1] == "| suite | 3 | 1 | 1 | 1 |"
    (folder,) = ElementTree.parse("all.xml").getroot()
    assert (folder.get("name"), folder.get("tests"), folder.get("failures")) == ("suite", "3", "2")
    assert (folder.get("errors"), folder.get("skipped")) == ("0", "0")
    good, refused, wrong = folder
    assert [case.get("name") for case in folder] == ["good.mlir", "refused.mlir", "wrong.mlir"]
    assert len(good) == 0
    assert refused[0].get("type") == "refused" and "suite/refused.mlir:" in refused[0].text
    assert wrong[0].get("type") == "wrong" and "the program printed:\n7" in wrong[0].text
    (log,) = json.loads((suite / "bad.sarif").read_text())["runs"]
    found = {r["ruleId"]: r["locations"][0]["physicalLocation"] for r in log["results"]}
    assert found.keys() == {"refused", "wrong"}
    assert found["refused"]["artifactLocation"]["uri"] == "suite/refused.mlir"
    assert found["refused"]["region"]["startLine"] in (2, 3)
    assert found["wrong"]["artifactLocation"]["uri"] == "suite/wrong.mlir"
    assert found["wrong"]["region"]["startLine"] == FILES["wrong.mlir"].splitlines().index("// CHECK: 8") + 1
    (message,) = [r["message"]["text"] for r in log["results"] if r["ruleId"] == "wrong"]
    assert message.endswith("Couldn't match \"8\".; the program printed: '7'")
    assert found.keys() <= {rule["id"] for rule in log["tool"]["driver"]["rules"]}


def _forked(module, *words):
    """As `module_command`, but in a fork of a process that has imported the tools."""
    return [forked_tools.folder() / module.rpartition(".")[2].replace("_", "-"), *words]


def test_known_failures(suite, capsys, monkeypatch):
    monkeypatch.setattr(suites, "module_command", _forked)
    (suite / "known.txt").write_text("refused.mlir  # no value\n\n*/good.mlir\n")
    assert xegpu_test.run(["suite/refused.mlir", "--known-failures", "known.txt", "--report", "all.xml"]) == 0
    assert capsys.readouterr().out.startswith("known")
    (folder,) = ElementTree.parse("all.xml").getroot()
    assert (folder.get("failures"), folder.get("skipped")) == ("0", "1")
    assert folder[0][0].get("message") == "no value"
    assert xegpu_test.run(["suite/good.mlir", "--known-failures", "known.txt"]) == 1
    assert "fixed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none"], "cannot open 'none': No such file or directory"),
        (["suite", "--report", "a.txt"], "'a.txt' ends neither in .xml (JUnit) nor in .sarif"),
        (["suite", "--known-failures", "none"], "cannot open 'none': No such file"),
        ([os.curdir + "/empty"], "there is no .mlir file"),
    ],
)
def test_mistakes(suite, words, message, capsys):
    (suite / "empty").mkdir()
    with pytest.raises(SystemExit) as e:
        xegpu_test.run(words)
    assert e.value.code == 2
    assert message in capsys.readouterr().err


def test_statistics_in_json(tmp_path, capsys):
    file = tmp_path / "kernel.mlir"
    file.write_text(KERNEL)
    assert xegpu_run.run([str(file), "zeros:f32:4", "--stats", "--json", "--grid", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kernel"], found["threads"]) == ("f", 3)
    assert found["bytes"] == {"ugm store": 12}
    assert found["instructions"]["all"] == sum(n for name, n in found["instructions"].items() if name != "all")
    assert found["registers"]["available"] == 128
    with pytest.raises(SystemExit):
        xegpu_run.run([str(file), "zeros:f32:4", "--json"])
    assert "--json is the form of --stats" in capsys.readouterr().err


def test_arguments_are_called_by_their_number_or_their_name(tmp_path, capsys):
    file, out = tmp_path / "kernel.mlir", tmp_path / "a.npy"
    file.write_text(KERNEL)
    assert xegpu_run.run([str(file), "zeros:f32:4", "--print", "%a", "--print", "0", "-o", f"%a={out}"]) == 0
    assert capsys.readouterr().out == "a =\n[1. 0. 0. 0.]\n0 =\n[1. 0. 0. 0.]\n"
    assert np.load(out).tolist() == [1, 0, 0, 0]
    for words, message in (
        (["zeros:f32:4", "--print", "b"], "'b' is not an array among the kernel's arguments 0, a"),
        (["--print", "a"], "takes 1 argument"),
        (["zeros:f32:4", "--grid", "8", "4"], "a number has its type, i32:4, and a grid its commas, --grid 8,4"),
        (["zeros:f32:4", "zeros:f32:4", "--print", "a"], "takes 1 argument"),
    ):
        with pytest.raises(SystemExit):
            xegpu_run.run([str(file), *words])
        assert message in capsys.readouterr().err


def test_the_place_of_a_bad_result():
    """That which the error names, in the file itself or in another; otherwise the start of the file."""
    results = [
        FileResult(Path("a.mlir"), "passed", "no word"),
        FileResult(Path("b.mlir"), "wrong", "8 is missing", 1, "other.mlir", 7, 3, "x\nthe program printed:\n9\n"),
        FileResult(Path("c.mlir"), "refused", ""),
        FileResult(Path("d.mlir"), "refused", "no", 1, "d.mlir", 2),
        FileResult(Path("e.mlir"), "known", "known"),
    ]
    (log,) = json.loads(sarif(results))["runs"]
    places = [r["locations"][0]["physicalLocation"] for r in log["results"]]
    found = [(p["artifactLocation"]["uri"], p["region"]["startLine"], p["region"]["startColumn"]) for p in places]
    assert found == [("other.mlir", 7, 3), ("c.mlir", 1, 1), ("d.mlir", 2, 1)]
    assert [r["ruleId"] for r in log["results"]] == ["wrong", "refused", "refused"]
    wrong, refused, last = (r["message"]["text"] for r in log["results"])
    assert (
        wrong.startswith("8 is missing; the program printed: ") and "9" in wrong and last == "no" and len(refused) > 5
    )


CRI = "// RUN: mlir-opt --pass=chip=cri\n"
OTHER = "x.mlir:3:7: error: 'f' op is wrong\n"


@pytest.mark.parametrize(
    ("text", "options", "ended", "words", "outcome"),
    [
        # A file without a main function is lowered, for the target of the options or for any.
        (KERNEL, [], (0, "", ""), ["xegpu_opt", "any"], "lowered"),
        (KERNEL, ["--target=bmg", "--x"], (0, "", ""), ["xegpu_opt", "bmg"], "lowered"),
        (CRI + KERNEL, [], (0, "", ""), ["xegpu_opt", "cri"], "lowered"),
        (CRI + KERNEL, ["--target=bmg"], (0, "", ""), ["xegpu_opt", "bmg"], "lowered"),
        (KERNEL, ["--import-upstream"], (1, "", OTHER), ["xegpu_opt", "any", "--import-upstream"], "refused"),
        # Others run; what they print is compared if they have CHECK lines.
        (MAIN, ["--x"], (0, "7\n", ""), ["xegpu_run", "--x"], "ran"),
        (CRI + MAIN, ["--x"], (0, "7\n", ""), ["xegpu_run", "--x", "--target=cri"], "ran"),
        (CRI + MAIN, ["--target=bmg"], (0, "7\n", ""), ["xegpu_run", "--target=bmg"], "ran"),
        (MAIN, [], (1, "", OTHER), ["xegpu_run"], "refused"),
        (MAIN, [], (1, "", "in launch of k\n" + OTHER), ["xegpu_run"], "failed"),
        (MAIN + "// CHECKED: 8\n", [], (0, "7\n", ""), ["xegpu_run"], "ran"),
        (MAIN + "// CHECK-NEXT: 8\n", [], (0, "7\n", ""), ["xegpu_run"], "wrong"),
        (MAIN + "// CHECK: 7\n", [], (0, "7\n", ""), ["xegpu_run"], "passed"),
        (MAIN + "// RUN: --check-prefix=P\n// P: 7\n// CHECK: 8\n", [], (0, "7\n", ""), ["xegpu_run"], "passed"),
    ],
)
def test_the_outcome_of_a_file(text, options, ended, words, outcome, tmp_path, monkeypatch):
    file, called = tmp_path / "x.mlir", []
    file.write_text(text)

    def call(own, seconds):
        called.append(own)
        assert seconds == 9
        return subprocess.CompletedProcess(own, *ended)

    monkeypatch.setattr(suites, "_call", call)
    [found] = suites.run([file], options, seconds=9)
    [[tool, name, *own]] = called
    if tool == "xegpu_opt":
        passes = f"--xetile-to-visa-pipeline=target={words[1]}"
        assert own == ["--split-input-file", *words[2:], passes, "-o", os.devnull] and words[0] == tool
    else:
        assert [tool, *own] == [words[0], "-e", "main", *words[1:]]
    assert (name, found.outcome) == (str(file), outcome)
    if ended[0]:
        place = found.file_of_error, found.line, found.column
        assert place == ("x.mlir", 3, 7) and found.message == "'f' op is wrong" and found.output == ended[2]


@pytest.mark.parametrize(
    ("printed", "message", "place"),
    [
        ("x.mlir:3: error: bad\nmore", "bad", ("x.mlir", 3, 0)),
        ("", "no message", ("", 0, 0)),
        ("first\nthe last\n", "the last", ("", 0, 0)),
        ("first\nan error here\nthe last\n", "an error here", ("", 0, 0)),
        ("terrors\nthe last " + "x" * 300, "the last " + "x" * 231, ("", 0, 0)),
    ],
)
def test_the_first_line_of_an_error(printed, message, place):
    found = suites._error(Path("f"), "refused", printed)
    assert (found.message, (found.file_of_error, found.line, found.column)) == (message, place)
    assert found.output == printed and found.outcome == "refused"
