"""The table of Triton's own tests: each failure has a reason, and none is a wrong number."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "conformance"
sys.path.insert(0, str(FOLDER))

import programs  # noqa: E402
import run  # noqa: E402

ROWS = [line.split("\t") for line in (FOLDER / "results.tsv").read_text().splitlines()]


def test_every_failure_has_a_reason() -> None:
    known = {reason for reason, _ in run.REASONS} | {*run.JUDGED.values()}
    failures = {name: reason.partition(":")[0] for name, outcome, reason in ROWS if outcome == "failed"}
    assert set(failures.values()) <= known - {"gives other numbers"}
    passed = sum(outcome == "passed" for _, outcome, _ in ROWS)
    for_any_device = [reason for reason in failures.values() if reason not in run.BY_CONSTRUCTION]
    assert passed > 1000 and len(for_any_device) <= 0.03 * (passed + len(for_any_device))


@pytest.mark.parametrize("name", programs.PROJECTS)
def test_programs_of_others(name: str) -> None:
    """The page has the row of each project, and no test that fails has another reason than the known ones."""
    page = (FOLDER.parents[3] / "docs" / "triton.md").read_text()
    assert programs.row(name) in page
    rows = run.table(programs.RESULTS / f"{name}.tsv").values()
    failures = {reason.partition(":")[0] for _, outcome, reason in rows if outcome == "failed"}
    assert failures <= {reason for reason, _ in run.REASONS} - {"gives other numbers"} | {
        "ends the process",
        *run.JUDGED.values(),
    }


def test_reasons_of_reports() -> None:
    assert run.reason_of("E   KeyError: \"Unknown key: 'llir'\"").startswith("reads the IR of another target: ")
    assert run.reason_of("E   AssertionError: \nE   Not equal\nE   Mismatched elements: 1 / 4").startswith(
        "gives other"
    )
    assert run.reason_of("    assert x.is_cuda\nE   AssertionError").startswith("asks for CUDA")
    assert run.reason_of("E   ValueError: x\n").startswith("fails: ValueError: x")


def test_summary(tmp_path: Path) -> None:
    out = tmp_path / "results.tsv"
    out.write_text("a/test_x.py::f\tpassed\t\na/test_x.py::g[1]\tfailed\tis refused: no\n")
    out.write_text(out.read_text() + "a/test_x.py::h\tfailed\tasks for CUDA, HIP or XPU: no\n")
    assert run.summary(out).splitlines() == [
        f"{'test_x.py':32} {{'passed': 1, 'failed': 2}}",
        "     1 is refused",
        "     1 asks for CUDA, HIP or XPU",
        "1 of 2 that are for any device pass: 50.0%",
    ]


TESTS = """
import os, pytest, signal

@pytest.mark.parametrize("n", range(4))
def test_numbers(n):
    assert n != 2

def test_end():
    os.kill(os.getpid(), signal.SIGKILL)

def test_after_the_end():
    pass
"""


def test_tables_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run adds tests that the table has not, goes on after one that ends the process, and repeats those named."""
    pytest.importorskip("triton")
    # None of the tests uses torch, whose import takes longer than they do.
    (tmp_path / "torch.py").write_text("class cuda:\n    is_available = bool\n\n\nTensor = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = tmp_path / run.FOLDERS[0]
    folder.mkdir(parents=True)
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--device')\n")
    (folder / "test_x.py").write_text(TESTS)
    out, name = tmp_path / "results.tsv", f"{run.FOLDERS[0]}/test_x.py::test"
    out.write_text(f"{name}_numbers[1]\tskipped\told\n{name}_numbers[3]\tfailed\told\n")

    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path), "--out", str(out), "--again", "failed\told"])
    assert run.main() == 0
    rows = run.table(out)
    assert {key.removeprefix(name): row[1] for key, row in rows.items()} == {
        "_after_the_end": "passed", "_end": "failed", "_numbers[0]": "passed", "_numbers[1]": "skipped",
        "_numbers[2]": "failed", "_numbers[3]": "passed",
    }  # fmt: skip
    assert rows[f"{name}_end"][2] == "ends the process: signal 9"
