"""docs/visa.md is true."""

import re

import pytest
from markdown import ROOT

from xegpu_py.target import TARGETS, Target

PAGE = (ROOT / "docs" / "visa.md").read_text()


def row(title: str) -> dict[str, str]:
    # Titles may be links to the glossary.
    page = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", PAGE)
    cells = next(line for line in page.split("\n") if line.startswith(f"| {title} |"))
    return dict(zip(TARGETS, (c.strip() for c in cells.split("|")[2:-1])))


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda t: t.name)
def test_the_table_of_targets(target: Target) -> None:
    def yes(truth: bool) -> str:
        return "yes" if truth else "no"

    name = target.name
    depths = ", ".join(map(str, target.dpas_depths))
    assert row("GRF")[name] == f"{target.grf_bytes} bytes, {' or '.join(map(str, target.grf_counts))}"
    assert row("dpas")[name] == f"SIMD{target.dpas_exec_size}, depth {depths}"
    assert row("srnd")[name] == yes("srnd" not in target.absent)
    assert row("fcvt, named barriers")[name] == yes("fcvt" not in target.absent) == yes(target.named_barriers > 0)
    assert row("bdpas")[name] == yes("bdpas" not in target.absent)
    if limits := target.block2d:
        numbers = (limits.base_alignment, limits.least_bytes, limits.pitch_granule)
        assert row("2D surfaces: base; least width; pitch")[name] == "; ".join(map(str, numbers))
    assert row("fcvt to tf32")[name] == yes(target.tf32_conversion)
    assert row("2D block messages")[name] == yes(target.block2d is not None)
    assert row("f64 div, inv, sqrt")[name] == yes(target.double_math)
    assert row("bf and hf accumulators")[name] == yes(target.dpas_half_accumulators)
    assert row("shared local memory")[name] == f"{target.slm_bytes >> 10} KiB"
    for precision in ("bf8", "hf8", "e2m1"):
        assert (precision in target.dpas_precisions) == (precision in row("precisions")[name] or name == "any")
    assert ("tf32" in target.dpas_precisions) == ("tf32" in row("precisions")[name] or name == "any")
