"""Owners and indices of a whole 4096x4096 layout, against numpy's own `unravel_index` and `ravel_multi_index`."""

from __future__ import annotations

import numpy as np
from support.calls import median_seconds

from xegpu_py.layout import from_maps

SHAPE = (4096, 4096)
LAYOUT = from_maps((8, 4), (512, 1024), (2, 8), (1, 2), SHAPE)
"""32 subgroups of 16 lanes, each a 512x1024 tile."""


def numpy_owners() -> object:
    """The same by numpy alone: each index is split into its five digits, and the digits are combined again."""
    levels = (LAYOUT.subgroup_tile, LAYOUT.batch_tile, LAYOUT.outer_tile, LAYOUT.thread_tile, LAYOUT.element_tile)
    row, column = np.indices(SHAPE)
    rows, columns = (
        np.unravel_index(x, tuple(tile[i] for tile in levels)) for i, x in enumerate((row.ravel(), column.ravel()))
    )
    subgroup = rows[0] * 4 + columns[0]
    thread = rows[3] * 8 + columns[3]
    digits = [digit for level in (1, 2, 4) for digit in (rows[level], columns[level])]
    return subgroup, thread, np.ravel_multi_index(digits, LAYOUT.distributed_shape)


def main() -> None:
    subgroup, thread = np.ogrid[: LAYOUT.subgroups.period, : LAYOUT.threads.period]
    index = np.indices(SHAPE)
    array = np.zeros(SHAPE, np.float32)
    parts = LAYOUT.distribute(array)
    peer = median_seconds(numpy_owners, 3)
    owners = median_seconds(lambda: LAYOUT.owners(index))
    cases = [
        ("owners, all elements", lambda: LAYOUT.owners()),
        ("indices, all registers", lambda: LAYOUT.indices(subgroup, thread)),
        ("distribute f32", lambda: LAYOUT.distribute(array)),
        ("collect f32, checked", lambda: LAYOUT.collect(parts)),
    ]
    print(f"{'numpy unravel and ravel':28}{peer:8.3f} s")
    print(f"{'owners of np.indices':28}{owners:8.3f} s")
    for name, run in cases:
        print(f"{name:28}{median_seconds(run):8.3f} s")
    print(f"owners against numpy unravel and ravel: ratio {owners / peer:.2f}")


if __name__ == "__main__":
    main()
