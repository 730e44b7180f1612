"""A function cut by its plan."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from xegpu_py.passes.common.elements import check_elements
from xegpu_py.passes.xegpu_legalize import blocks, control, matrix, reductions, scattered
from xegpu_py.passes.xegpu_legalize.cuts import make_plan
from xegpu_py.passes.xegpu_legalize.forms import branch_among_descriptors, rewrite_forms
from xegpu_py.passes.xegpu_legalize.pairs import join_pairs
from xegpu_py.passes.xegpu_legalize.rewrite import Rewriter
from xegpu_py.passes.xegpu_legalize.surfaces import find_surfaces

from xegpu_py.target import Target

MODULES = (blocks, control, matrix, reductions, scattered)
"""The modules that register rules."""


def split_function(
    func: ir.Operation, target: Target, unaligned: Sequence[int] | None = (), ahead: bool = False
) -> None:
    """Split what no message or instruction of a target can do in a function.

    Args:
        unaligned: numbers of arguments of which nothing that is not known is taken to be aligned; None for all memory.
        ahead: whether loads are to come an iteration of their loop ahead.
    """
    if len(func.regions[0].blocks) != 1:
        return
    check_elements(func)
    branch_among_descriptors(func)
    rewrite_forms(func, target, find_surfaces(func, target, unaligned))
    join_pairs(func, target)
    rewriter = Rewriter(make_plan(func, target, find_surfaces(func, target, unaligned), ahead))
    rewriter.block(func.regions[0].blocks[0])
    rewriter.finish()
