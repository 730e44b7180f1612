"""The bar of long runs, at a terminal and elsewhere."""

from __future__ import annotations

import io
import sys
import time

import pytest

from xegpu_py.runtime import launch
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import progress_bar

# Each workgroup counts to a given number.
TEXT = """
.version 3.8
.kernel "count"
.decl Times v_type=G type=ud num_elts=1 align=GRF
.decl S v_type=G type=ud num_elts=1 align=GRF
.decl P v_type=P num_elts=1
.input Times offset=64 size=4
    mov (M1_NM, 1) S(0,0)<1> 0:ud
Again:
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> 1:ud
    cmp.lt (M1_NM, 1) P S(0,0)<0;1,0> Times(0,0)<0;1,0>
    (P) jmp (M1, 1) Again
    ret (M1, 1)
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "PATIENCE", 0.0)


def opened(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as standard error. Not a fixture: pytest has its own standard error in tests."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    return found


def run(engine: str, **options: object) -> None:
    native = engine == "jit"
    kernel = Kernel.from_assembly(TEXT, engine=engine, threads=1 if native else None, **options)
    kernel(200_000 if native else 3, grid=1500)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_long_runs_show_how_far_they_are(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    run(engine)
    shown = terminal.getvalue()
    assert "count:" in shown and "/1500 [" in shown and " workgroups/s]" in shown
    # An empty line remains.
    assert shown.endswith("\r") and not shown.split("\r")[-2].strip() and "\n" not in shown


def test_it_is_not_shown_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    run("interpreter", progress=False)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(launch, "PATIENCE", 1.0)
    run("interpreter")
    assert terminal.getvalue() == ""
    monkeypatch.setattr(launch, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    run("interpreter")
    assert pipe.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", None)
    run("interpreter")


def test_its_time_goes_on_while_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_REFRESH", 0.05)
    terminal = opened(monkeypatch)
    with progress_bar("kernel", 10, unit="trials"):
        time.sleep(1.3)
    shown = terminal.getvalue()
    assert "0/10 [00:00<" in shown and "0/10 [00:01<" in shown and "trials/s" in shown


def test_it_goes_away_if_the_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    with pytest.raises(KeyboardInterrupt), progress_bar("kernel", 10) as shown:
        # tqdm shows no more than ten numbers a second.
        time.sleep(0.1)
        shown(3)
        raise KeyboardInterrupt
    assert "3/10" in terminal.getvalue() and not terminal.getvalue().split("\r")[-2].strip()
