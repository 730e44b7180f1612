"""How many subgroups the tiles of a kernel without maps are divided among, and when they may be."""

from __future__ import annotations

import math

from mlir import ir

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import InitTileOp, TileMmaOp
from xegpu_py.dialects.xetile.types import TileStore
from xegpu_py.ir.control_flow import UnionFind
from xegpu_py.ir.module import walk
from xegpu_py.passes.facts.element_moves import ACROSS
from xegpu_py.passes.facts.surfaces import buffer_of
from xegpu_py.passes.facts.tile_maps import is_elementwise, is_splat, value_classes
from xegpu_py.passes.facts.value_facts import bits_of, defining_op, element_of, is_vector, shape_of

_SUBGROUP_OPS = ("gpu.subgroup_id", "gpu.thread_id", "gpu.lane_id", "xegpu.", "func.call", "llvm.")
"""The beginnings of names of ops that say what one subgroup does, or order its writes alone."""

_DIVIDED = (
    "vector.step", "vector.create_mask", "vector.broadcast", "vector.shape_cast", "vector.transpose",
    "vector.multi_reduction", "vector.extract", "vector.bitcast", "arith.constant", *ACROSS,
)  # fmt: skip

_LARGEST_PRODUCTS, _LARGEST, _LARGEST_MOVED = 8 << 10, 2 << 10, 512
"""The most bytes that one subgroup has of all products, half of 256 registers, of any other vector, and of one whose
elements move along a dimension, as in scans and sorts, of which many ops have one more."""

_MOST = 32
"""The most subgroups that are chosen: as many as a core of PVC executes with 256 registers each."""


def can_be_divided(func: ir.Operation) -> bool:
    """Whether a kernel has no maps, and no ops that say what one subgroup does."""
    ops = walk(func)
    if not any(op.name.startswith("xetile.") for op in ops) or xetile.subgroups_of(func) is not None:
        return False
    return not any(op.name.startswith(_SUBGROUP_OPS) and not is_elementwise(op) for op in ops)


def stored_arguments(func: ir.Operation) -> tuple[int, ...]:
    """The numbers of the arguments to which a kernel stores; of all, if it stores to what is not known to be one."""
    ops, arguments = walk(func), list(func.regions[0].blocks[0].arguments)
    classes: UnionFind[ir.Value] = value_classes(ops)
    sources: dict[ir.Value, list[ir.Value]] = {}
    stored: list[ir.Value] = []
    for op in ops:
        if isinstance(op.opview, InitTileOp):
            sources.setdefault(classes.find(op.opview.tile), []).append(op.opview.source)
    for op in ops:
        if isinstance(op.opview, TileStore):
            stored += sources.get(classes.find(op.opview.tile), [])
        elif op.name in ("memref.store", "memref.atomic_rmw"):
            stored.append(op.operands[1])
    found = [buffer_of(source) for source in stored]
    own = [b for b in found if not (made := defining_op(b)) or made.name != "memref.alloc"]
    if any(b not in arguments for b in own):
        return tuple(range(len(arguments)))
    return tuple(sorted({arguments.index(b) for b in own}))


def suitable_subgroups(func: ir.Operation) -> int:
    """The number of subgroups, a power of two, among which the tiles of a kernel without maps should be divided.

    It is 1 if parts of them would be whole in each subgroup, or if subgroups could follow different control flow.
    """
    ops = walk(func)
    classes: UnionFind[ir.Value] = value_classes(ops)
    products: dict[ir.Value, int] = {}
    largest, most = 0, _LARGEST
    for op in ops:
        if op.name == "scf.while":
            return 1
        for value in op.results:
            if not is_vector(value):
                continue
            known = op.name.startswith("xetile.") or op.name in _DIVIDED or is_elementwise(op) or is_splat(op)
            if op.name in ACROSS:
                most = _LARGEST_MOVED
            if len(shape_of(value)) > 2 or not (known or op.name.startswith("scf.")):
                return 1
            element = element_of(value)
            if isinstance(element, ir.IndexType) or bits_of(element) == 1:
                continue
            size = math.prod(shape_of(value)) * bits_of(element) // 8
            if isinstance(op.opview, TileMmaOp):
                products[classes.find(value)] = size
            largest = max(largest, size)
    wanted = largest / most
    if products:
        wanted = max(sum(products.values()) / _LARGEST_PRODUCTS, largest / _LARGEST if most < _LARGEST else 1)
    return min(1 << max(math.ceil(math.log2(max(wanted, 1))), 0), _MOST)
