"""The levels of upstream's kernels, and the lanes of a subgroup."""

from typing import Literal

Level = Literal["subgroup", "lane", "workgroup"]

LANES = 16
"""Lanes of a subgroup: what upstream's lowering takes for these GPUs, and `intel_reqd_sub_group_size` says."""

LANES_ATTR = "xegpu.lanes_per_subgroup"
"""An attribute of kernels of subgroups: `gpu.launch_func` counts lanes, this many a subgroup, and x is the fastest."""
