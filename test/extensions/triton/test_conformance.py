"""The table of Triton's own tests: each failure has a reason, and none is a wrong number."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "conformance"
sys.path.insert(0, str(FOLDER))

import run  # noqa: E402

ROWS = [line.split("\t") for line in (FOLDER / "results.tsv").read_text().splitlines()]


def test_every_failure_has_a_reason() -> None:
    known = {reason for reason, _ in run.REASONS}
    failures = {name: reason.partition(":")[0] for name, outcome, reason in ROWS if outcome == "failed"}
    assert set(failures.values()) <= known - {"gives other numbers"}
    assert len(failures) * 10 < len(ROWS)


def test_reasons_of_reports() -> None:
    assert run.reason_of("E   KeyError: \"Unknown key: 'llir'\"").startswith("reads the IR of another target: ")
    assert run.reason_of("E   AssertionError: \nE   Not equal\nE   Mismatched elements: 1 / 4").startswith(
        "gives other"
    )
    assert run.reason_of("E   ValueError: x\n").startswith("fails: ValueError: x")


def test_summary(tmp_path: Path) -> None:
    out = tmp_path / "results.tsv"
    out.write_text("a/test_x.py::f\tpassed\t\na/test_x.py::g[1]\tfailed\tis refused: no\n")
    assert run.summary(out).splitlines() == [f"{'test_x.py':32} {{'passed': 1, 'failed': 1}}", "     1 is refused"]
