"""The rules of messages at both ends of what they allow, and what errors say of GPUs."""

from __future__ import annotations

import pytest

from xegpu_py.target import TARGETS, verdict
from xegpu_py.target.message_rules import RULES, SURFACE_RULES, broken_rules

M = 1 << 24
LEGAL = {"base": 128, "width": 64, "height": 8, "pitch": 64, "x": 0, "size": 4}

EDGES = [
    ("block2d-base", {"base": 64}, {"base": 32}, {"base": 4}, {"base": 2}),
    ("block2d-pitch-least", {"pitch": 64}, {"pitch": 48, "width": 64},
     {"pitch": 4, "width": 4}, {"pitch": 0, "width": 4}),
    ("block2d-pitch-multiple", {"pitch": 80}, {"pitch": 72}, {"pitch": 68}, {"pitch": 66}),
    ("block2d-pitch-most", {"pitch": M - 16}, {"pitch": M}, {"pitch": M}, {"pitch": M + 4}),
    ("block2d-width-least", {"width": 64}, {"width": 60}, {"width": 4}, {"width": 0}),
    ("block2d-width-multiple", {"width": 68, "pitch": 80}, {"width": 66, "pitch": 80}, {"width": 8}, {"width": 6}),
    ("block2d-width-multiple", {"width": 72, "pitch": 80, "size": 8}, {"width": 68, "pitch": 80, "size": 8},
     {"width": 8, "size": 8}, {"width": 12, "size": 8}),
    ("block2d-width-most", {"width": M, "pitch": M}, {"width": M + 4, "pitch": M}, {"width": M, "pitch": M},
     {"width": M + 4, "pitch": M}),
    ("block2d-pitch-width", {"pitch": 64, "width": 64}, {"pitch": 64, "width": 68}, {"pitch": 4, "width": 4},
     {"pitch": 4, "width": 8}),
    ("block2d-height-least", {"height": 1}, {"height": 0}, {"height": 1}, {"height": 0}),
    ("block2d-height-most", {"height": M}, {"height": M + 1}, {"height": M}, {"height": M + 1}),
    ("block2d-x-multiple", {"x": 2, "size": 2}, {"x": 3, "size": 2}, {"x": 4, "size": 1}, {"x": 2, "size": 1}),
]  # fmt: skip
"""A rule; operands of a 2D block message that keep it on bmg, and that break it; the same on cri."""


@pytest.mark.parametrize(("name", "kept", "broken", "kept_on_cri", "broken_on_cri"), EDGES)
def test_the_ends_of_each_rule(name: str, kept: dict, broken: dict, kept_on_cri: dict, broken_on_cri: dict) -> None:
    for target, good, bad in (("bmg", kept, broken), ("cri", kept_on_cri, broken_on_cri)):
        limits = TARGETS[target].block2d
        assert limits and not RULES[name].breaks(limits, {**LEGAL, **good})
        assert RULES[name].breaks(limits, {**LEGAL, **bad}) and RULES[name] in broken_rules(limits, {**LEGAL, **bad})


def test_each_rule_of_operands_is_tried() -> None:
    assert {name for name, *_ in EDGES} == {rule.name for rule in SURFACE_RULES}
    for target in TARGETS.values():
        assert target.block2d is None or broken_rules(target.block2d, LEGAL) == []


def test_rules_of_2d_blocks_are_of_targets_that_have_them() -> None:
    others = {"lsc-transposed-align", "lsc-vector-align", "atomic-align", "slm-bounds", "dpas-uninitialized"}
    for target in TARGETS.values():
        names = {rule.name for rule in target.message_rules}
        assert names == (RULES.keys() if target.block2d else others)
    assert TARGETS["dg2"].block2d is None and others < RULES.keys()


@pytest.mark.parametrize(
    ("name", "on", "operands", "said"),
    [
        ("block2d-pitch-least", "bmg", {**LEGAL, "pitch": 48},
         "rule block2d-pitch-least: the pitch of a 2D block message is at least 64 bytes; bmg and lnl return undefined "
         "data; pvc and pvcxt accept it; ptl leaves the outcome undefined; cri allows it"),
        ("block2d-pitch-most", "cri", {**LEGAL, "pitch": M},
         "rule block2d-pitch-most: the pitch of a 2D block message is at most 16777216 bytes; cri, pvc and pvcxt allow "
         "it; bmg, lnl and ptl return undefined data"),
        ("slm-bounds", "dg2", None,
         "rule slm-bounds: an access to shared local memory lies within what the kernel allocates; dg2, pvc, pvcxt, "
         "bmg, lnl, ptl and cri are not known to accept it"),
        ("dpas-uninitialized", "ptl", None,
         "rule dpas-uninitialized: src1 and src2 of dpas are in registers that were written; ptl returns undefined "
         "data (in other threads too); pvc, pvcxt, dg2, bmg, lnl and cri leave the outcome undefined"),
    ],
)  # fmt: skip
def test_verdicts_on_broken_rules(name: str, on: str, operands: dict | None, said: str) -> None:
    assert verdict(RULES[name], TARGETS[on], operands) == said
