"""The trace of a thread, and the statistics of a launch."""

from __future__ import annotations

import numpy as np
import pytest

from xegpu_py import Kernel
from xegpu_py.engines.operands import Batch
from xegpu_py.runtime.launch import Tracer, statistics_table
from xegpu_py.runtime.options import Engine

from .programs import SCALE


def traced(group: int, text: str = SCALE) -> list[str]:
    kernel, lines = Kernel.from_assembly(text, engine="interpreter"), []
    kernel.executor.observer = Tracer(kernel.program, kernel.executor.layout, (group, 0, 0), 0, lines.append)
    kernel(np.arange(32, dtype=np.float32), np.zeros(32, np.float32), 2.0, (0, 1), grid=2)
    return lines


def test_each_instruction_with_what_it_changed() -> None:
    for group in range(2):
        lines = traced(group)
        numbers = [int(line[:5]) for line in lines if line[:5].strip()]
        assert numbers == list(range(11))
        load = next(n for n, line in enumerate(lines) if "lsc_load" in line)
        start = 16 * group
        assert lines[load + 1].strip() == "X: " + ", ".join(f"[{i}] = {start + i}.0" for i in range(16) if start + i)


def test_only_what_changed_is_shown() -> None:
    lines = traced(1)
    at = next(n for n, line in enumerate(lines) if "(P) mov" in line)
    assert lines[at - 1].strip() == "P: 0000111111111111"
    assert lines[at + 1].strip() == "X: " + ", ".join(f"[{i}] = 40.0" for i in range(4, 16))


def test_long_changes_are_cut() -> None:
    text = SCALE.replace(".decl P", ".decl Wide v_type=G type=ub num_elts=32 align=GRF\n.decl P")
    lines = traced(0, text.replace("    ret", "    mov (M1_NM, 32) Wide(0,0)<1> 255:ub\n    ret"))
    shown = next(line for line in lines if "Wide:" in line).split(", ")
    assert len(shown) == 17
    assert shown[-1] == "and 16 more"


@pytest.mark.parametrize(
    ("alias", "inst", "expected"),
    [
        ("type=d num_elts=16 alias=<X,0>", "mov (M1_NM, 4) V(0,2)<1> 0x7:d", "V: [2] = 7, [3] = 7, [4] = 7, [5] = 7"),
        ("type=uw num_elts=8 alias=<X,32>", "mov (M1_NM, 1) V(0,3)<1> 0x9:uw", "V: [3] = 9"),
        ("type=hf num_elts=8 alias=<X,16>", "mov (M1_NM, 2) V(0,1)<2> 0x3c00:hf", "V: [1] = 1.0, [3] = 1.0"),
        ("type=ub num_elts=4 alias=<Shifted,0>", "mov (M1_NM, 1) V(0,0)<1> 0x5:ub", "V: [0] = 5"),
    ],
)
def test_changes_through_an_alias_are_shown_in_its_type(alias: str, inst: str, expected: str) -> None:
    text = SCALE.replace(".decl P", f".decl V v_type=G {alias}\n.decl P").replace("    ret", f"    {inst}\n    ret")
    lines = traced(0, text)
    assert lines[next(n for n, line in enumerate(lines) if line.endswith(inst)) + 1].strip() == expected


class Rows:
    """Counts the statistics independently."""

    def __init__(self) -> None:
        self.executed: dict[int, int] = {}

    def ran(self, index: int, batch: Batch, rows: np.ndarray) -> None:
        self.executed[index] = self.executed.get(index, 0) + len(rows)


def test_statistics_count_threads_and_bytes() -> None:
    kernel, counted = Kernel.from_assembly(SCALE, engine="interpreter"), Rows()
    kernel.executor.observer = counted
    x = np.zeros(48, np.float32)
    done = kernel(x, np.zeros(48, np.float32), 2, (0, 1), grid=3)
    assert done.threads == 3
    assert dict(enumerate(done.executed)) == counted.executed == dict.fromkeys(range(11), 3)
    assert done.traffic == {("ugm", "load"): 192, ("ugm", "store"): 192}
    table = [line.split() for line in statistics_table(kernel.program, done).split("\n")]
    assert table[0] == ["kernel", "'scale':", "3", "hardware", "threads"]
    assert ["instructions", "33"] in table
    assert [row[1] for row in table if row[0] in ("alu", "load", "store", "control")] == ["24", "3", "3", "3"]
    assert table[-1] == ["register", "pressure", str(done.allocation.pressure), "of", "128", "GRFs"]
    again = kernel(x, np.zeros(48, np.float32), 2, (0, 1), grid=1)
    assert again.executed.sum() == 11
    assert again.traffic == {("ugm", "load"): 64, ("ugm", "store"): 64}


@pytest.mark.parametrize("engine", ["jit", "both"])
def test_engines_that_tell_nothing_are_refused(engine: Engine) -> None:
    kernel = Kernel.from_assembly(SCALE, engine=engine)
    kernel.executor.observer = Rows()
    with pytest.raises(ValueError, match=f"only the interpreter tells an observer what ran, not the engine '{engine}'"):
        kernel(np.zeros(16, np.float32), np.zeros(16, np.float32), 2, (0, 1))


def test_more_workgroups_than_run_at_once() -> None:
    count = 3000
    x, y = np.arange(16 * count, dtype=np.float32) % 7, np.zeros(16 * count, np.float32)
    done = Kernel.from_assembly(SCALE)(x, y, 2, (0, 1), grid=(10, 20, 15))
    assert done.threads == count
    # The kernel uses only the workgroup's x.
    np.testing.assert_array_equal(y[:160], x[:160] * 2 + 1)
    assert not y[160:].any()
