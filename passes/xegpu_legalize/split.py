"""The legalization of a function: its steps, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from xegpu_py.passes.common.elements import check_elements
from xegpu_py.passes.xegpu_legalize.conversion import Legalization
from xegpu_py.passes.xegpu_legalize.forms import Forms, branch_among_descriptors, combine_subgroups_through_memory
from xegpu_py.passes.xegpu_legalize.pairs import join_pairs
from xegpu_py.passes.xegpu_legalize.planning import make_plan
from xegpu_py.passes.xegpu_legalize.surfaces import find_surfaces

from xegpu_py.target import Target


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
    combine_subgroups_through_memory(func)
    surfaces = find_surfaces(func, target, unaligned)
    forms = Forms(target, surfaces)
    forms.run(func)
    if join_pairs(func, target) or forms.replaced_loads:
        surfaces = find_surfaces(func, target, unaligned)
    conversion = Legalization(make_plan(func, target, surfaces, ahead))
    conversion.region(func.regions[0])
    conversion.finish()
