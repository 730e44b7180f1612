"""The rules of messages at both ends of what they allow, and what errors say of GPUs."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from xegpu_py.target import TARGETS, target, verdict
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
    for gpu, good, bad in (("bmg", kept, broken), ("cri", kept_on_cri, broken_on_cri)):
        limits = TARGETS[gpu].block2d
        assert limits and not RULES[name].breaks(limits, {**LEGAL, **good})
        assert RULES[name].breaks(limits, {**LEGAL, **bad}) and RULES[name] in broken_rules(limits, {**LEGAL, **bad})


def test_each_rule_of_operands_is_tried() -> None:
    assert {name for name, *_ in EDGES} == {rule.name for rule in SURFACE_RULES}
    for gpu in TARGETS.values():
        assert gpu.block2d is None or broken_rules(gpu.block2d, LEGAL) == []


def test_rules_of_2d_blocks_are_of_targets_that_have_them() -> None:
    others = {"lsc-transposed-align", "lsc-vector-align", "atomic-align", "slm-bounds", "dpas-uninitialized"}
    for gpu in TARGETS.values():
        names = {rule.name for rule in gpu.message_rules}
        assert names == (RULES.keys() if gpu.block2d else others)
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


@pytest.mark.parametrize(("size", "granule"), [(1, 4), (4, 4), (8, 8)])
def test_rows_are_multiples_of_an_element_too(size: int, granule: int) -> None:
    limits = TARGETS["bmg"].block2d
    assert limits
    assert f"multiple of {granule} " in RULES["block2d-width-multiple"].at_fault(limits, size)


@pytest.mark.parametrize(
    ("name", "usual", "of_columns"),
    [
        ("bmg", 16, {16: 16, 8: None, 24: None, 48: 16}),
        ("dg2", 8, {16: 8, 8: 8, 24: 8, 12: None}),
        ("any", 16, {16: 16, 8: 8, 24: 8, 48: 16, 12: None}),
    ],
)
def test_lanes_of_dpas(name: str, usual: int, of_columns: dict) -> None:
    gpu = target(name)
    assert gpu.dpas_exec_size == usual and {n: gpu.dpas_columns(n) for n in of_columns} == of_columns


def test_targets_are_named() -> None:
    assert all(target(name) is gpu for name, gpu in TARGETS.items())
    with pytest.raises(ValueError, match=r"unknown target 'xe9'; there are pvc, .*cri"):
        target("xe9")


MEMORY = np.zeros(1 << 16, np.uint8)


def strided(shape: tuple[int, ...], strides: tuple[int, ...], dtype: type = np.uint8) -> np.ndarray:
    array: np.ndarray = np.lib.stride_tricks.as_strided(MEMORY.view(dtype), shape, strides)
    return array


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (strided((64,), (1,)), ""),
        (strided((8, 64), (64, 1)), ""),
        (strided((8, 63), (64, 1)), "has rows of 63 bytes, but 2D block messages need 64"),
        (strided((8, 66), (80, 1)), "has rows of 66 bytes, but 2D block messages need a multiple of 4"),
        (strided((8, 64), (72, 1)), "has a pitch of 72 bytes, but 2D block messages need a multiple of 16"),
        (strided((8, 68), (64, 1)), "has a pitch of 64 bytes, less than its rows' 68"),
        (strided((0, 64), (64, 1)), "has no rows, but 2D block messages need 1"),
        (strided((8, 16), (64, 4), np.float32), ""),
        (strided((8, 15), (64, 4), np.float32), "has rows of 60 bytes, but 2D block messages need 64"),
        # Column-major: a row of the surface is a column.
        (strided((64, 8), (1, 64)), ""),
        (strided((32, 8), (1, 64)), "has rows of 32 bytes, but 2D block messages need 64"),
        (strided((16, 8), (4, 80), np.float32), ""),
        # Matrices behind each other.
        (strided((2, 8, 64), (512, 64, 1)), ""),
        (strided((2, 8, 64), (544, 64, 1)), "has matrices that begin 544 bytes behind each other, but 2D block "
         "messages need a multiple of 64"),
        (strided((1, 8, 64), (544, 64, 1)), ""),
        (strided((3, 1, 8, 64), (1024, 544, 64, 1)), ""),
        (strided((1, 3, 8, 64), (1024, 544, 64, 1)), "has matrices that begin 544 bytes behind each other"),
        (strided((3, 1, 8, 64), (1000, 512, 64, 1)), "has matrices that begin 1000 bytes behind each other"),
    ],
)  # fmt: skip
def test_which_arrays_messages_can_address(array: np.ndarray, problem: str) -> None:
    limits = TARGETS["bmg"].block2d
    assert limits
    found = limits.array_problem(array)
    assert found is None if not problem else found is not None and found.startswith(problem)


def test_what_is_not_known_breaks_no_rule() -> None:
    limits = TARGETS["bmg"].block2d
    assert limits and limits.surface_problem(None, None, None, None) is None
    assert limits.surface_problem(64, 8, None, 0) is None and limits.surface_problem(None, 8, 64, 64) is None
    assert limits.surface_problem(None, 8, 64, 32) == (
        "begins 32 bytes behind its buffer, but 2D block messages need a multiple of 64"
    )
    assert limits.surface_problem(60, None, None, None) == "has rows of 60 bytes, but 2D block messages need 64"
    assert limits.outer_problem([None, 64, 0]) is None and limits.outer_problem([None, 64, 65])


def test_units_that_messages_transpose() -> None:
    limits = TARGETS["bmg"].block2d
    assert limits and [limits.transposed_unit(bits) for bits in (8, 16, 32, 64, 128)] == [32, 32, 32, 64, None]


def test_limits_of_messages_as_they_are_executed() -> None:
    """Triton saw right data on Xe-HPC beyond some limits that Intel's documents state."""
    pvc, bmg = TARGETS["pvc"].block2d, TARGETS["bmg"].block2d
    assert pvc and bmg and structs.asdict(bmg.executed) == structs.asdict(bmg)
    assert (pvc.least_bytes, pvc.pitch_granule, pvc.executed.least_bytes, pvc.executed.pitch_granule) == (64, 16, 4, 4)
    operands = {**LEGAL, "width": 52, "pitch": 52}
    assert [rule.name for rule in broken_rules(pvc, operands)] == [
        "block2d-pitch-least", "block2d-pitch-multiple", "block2d-width-least"
    ]  # fmt: skip
    assert broken_rules(pvc.executed, operands) == []
