"""The block of a launch in the unit of its kernel: threads, subgroups, or lanes of these."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from xegpu_py.extensions.programs.device import Device
from xegpu_py.extensions.programs.host_lowering import LaunchFunc
from xegpu_py.ir.diagnostics import Position
from xegpu_py.ir.module import parse

LANES, COUNTS = "xegpu.lanes_per_subgroup = 16 : i32", "xegpu.counts_subgroups = 16 : i32"
SAME = "has neither layouts nor ids of subgroups, so that all 2 subgroups of a workgroup do the same"


@pytest.mark.parametrize(
    ("attribute", "has_ids", "subgroups", "block", "expected", "said"),
    [
        ("", False, None, (64, 2, 3), (64, 2, 3), ""), (COUNTS, False, None, (2, 3, 4), (32, 3, 4), ""),
        (LANES, True, None, (16, 1, 1), (1, 1, 1), ""), (LANES, True, None, (64, 2, 3), (4, 2, 3), ""),
        (LANES, True, None, (8, 4, 1), (2,), ""), (LANES, True, None, (24, 2, 1), (3,), ""),
        (LANES, True, None, (4, 4, 3), (3,), ""), (LANES, True, None, (24, 1, 1), ValueError, ""),
        (LANES, True, None, (8, 1, 1), ValueError, ""), (LANES, False, None, (16, 1, 1), (1, 1, 1), ""),
        (LANES, False, None, (32, 1, 1), (2, 1, 1), SAME), (LANES, False, None, (16, 2, 1), (1, 2, 1), SAME),
        (LANES, False, 4, (64, 1, 1), (4,), ""), (LANES, False, 4, (4, 1, 1), (4,), ""),
        (LANES, False, 4, (8, 4, 2), (4,), ""),
        (LANES, False, 4, (32, 1, 1), (4,), "4 subgroups, but is launched with 32 threads; it runs with 4 subgroups"),
        (LANES, False, 4, (3, 1, 1), (4,), "4 subgroups, but is launched with 3 threads; it runs with 4 subgroups"),
    ],
)  # fmt: skip
def test_blocks(attribute: str, has_ids: bool, subgroups: Any, block: Any, expected: Any, said: str) -> None:
    ids = "%s = gpu.subgroup_id : index" if has_ids else ""
    attributes = f"attributes {{{attribute}}}" if attribute else ""
    module = parse(f"gpu.module @m {{ gpu.func @k() kernel {attributes} {{ {ids} gpu.return }} }}")
    messages: list[Any] = []
    device = Device({"m": module}, SimpleNamespace(), messages.append, lambda *_: None)  # type: ignore[arg-type]
    launch, kernel = LaunchFunc("m", "k", Position("a.mlir", 1, 1), ()), SimpleNamespace(subgroups=subgroups)
    for _ in range(2):
        if expected is ValueError:
            with pytest.raises(ValueError, match="work items, which is not a multiple of the subgroup size 16"):
                device._block(launch, kernel, block)
        else:
            assert tuple(device._block(launch, kernel, block)) == expected
    assert len(messages) == bool(said) and all(said in message.message for message in messages)
