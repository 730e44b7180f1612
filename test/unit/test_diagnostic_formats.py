"""`--diagnostics-format`: JSON and SARIF of the tools, and their exit status."""

import json
import os
import subprocess
from pathlib import Path

import forked_tools
import pytest

TOOLS = ("xegpu-opt", "xegpu-run", "xegpu-translate")

WRONG = """\
gpu.module @kernels {
  gpu.func @wrong(%a: memref<8x16xf32>) kernel {

    gpu.printf "columns count characters: é" xegpu.nothing
    gpu.return
  }
}
"""

RACE = """\
gpu.module @kernels {
  gpu.func @race(%a: memref<8xi32>) kernel {
    %zero = arith.constant 0 : index
    %id = gpu.thread_id x
    %value = arith.index_cast %id : index to i32
    memref.store %value, %a[%zero] : memref<8xi32>
    gpu.return
  }
}
"""


def ran(tool: str, *words: str, folder: Path, form: str) -> tuple[int, str]:
    environment = {**os.environ, "PATH": os.pathsep.join([str(forked_tools.folder()), os.environ["PATH"]])}
    command = [tool, *words, f"--diagnostics-format={form}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a b.mlir").write_text(WRONG)
    (tmp_path / "race.mlir").write_text(RACE)
    return tmp_path


@pytest.mark.parametrize("tool", TOOLS)
def test_json_has_a_line_for_each_diagnostic(folder, tool):
    words = ("--mlir-to-visaasm",) if tool == "xegpu-translate" else ()
    status, text = ran(tool, "a b.mlir", *words, folder=folder, form="json")
    (line,) = text.splitlines()
    record = json.loads(line)
    assert status == 1
    assert record.keys() == {"severity", "message", "file", "line", "column", "notes"}
    assert (record["severity"], record["file"], record["line"]) == ("error", "a b.mlir", 4)
    assert record["column"] == WRONG.splitlines()[3].index("xegpu") + 1


def test_notes_are_related_locations(folder):
    words = ("race.mlir", "zeros:i32:8", "--block", "2", "--check=races")
    status, text = ran("xegpu-run", *words, folder=folder, form="json")
    notes = json.loads(text)["notes"]
    assert status == 1 and notes and {note["line"] for note in notes} == {6}
    status, text = ran("xegpu-run", *words, folder=folder, form="sarif")
    log = json.loads(text)
    assert (status, log["version"]) == (1, "2.1.0")
    (run,) = log["runs"]
    assert (run["tool"]["driver"]["name"], run["columnKind"]) == ("xegpu-run", "unicodeCodePoints")
    (result,) = run["results"]
    place = {"artifactLocation": {"uri": "race.mlir"}, "region": {"startLine": 6, "startColumn": 5}}
    assert (result["level"], result["locations"]) == ("error", [{"physicalLocation": place}])
    assert "which another thread has written" in result["message"]["text"]
    assert all("text" in location["message"] for location in result["relatedLocations"])


def test_sarif_is_one_document_also_without_results(folder):
    status, text = ran("xegpu-opt", "race.mlir", folder=folder, form="sarif")
    assert status == 0 and json.loads(text)["runs"][0]["results"] == []
    status, text = ran("xegpu-opt", "a b.mlir", folder=folder, form="sarif")
    (result,) = json.loads(text)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.mlir"


def test_warnings_have_no_location(folder):
    """A kernel that reads block ids runs in one workgroup if no grid is given, and says so."""
    (folder / "ids.mlir").write_text(RACE.replace("thread_id", "block_id"))
    status, text = ran("xegpu-run", "ids.mlir", "zeros:i32:8", folder=folder, form="json")
    record = json.loads(text)
    assert (status, record["severity"], record["file"], record["line"]) == (0, "warning", "", None)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("race.mlir", "--nothing"), 2),
        (("none.mlir",), 2),
        (("race.mlir", "--color=blue"), 2),
        (("a b.mlir",), 1),
        (("race.mlir",), 0),
    ],
)
def test_exit_status(folder, words, status):
    assert ran("xegpu-opt", *words, folder=folder, form="text")[0] == status
