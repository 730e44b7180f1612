"""Division of tiles: whether a kernel without maps can be divided among subgroups, and among how many.

The number of subgroups follows from the largest vectors and from the length of the code.
"""

from __future__ import annotations

import math

from mlir import ir

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import InitTileOp, TileMmaOp
from xegpu_py.dialects.xetile.types import TileStore
from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.control_flow import STRUCTURED, UnionFind
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.block_surfaces import buffer_of
from xegpu_py.passes.analysis.ir_queries import (
    FLOAT_FUNCTIONS,
    bits_of,
    defining_op,
    element_of,
    is_used,
    is_vector,
    shape_of,
)
from xegpu_py.passes.analysis.memory_effects import effects_of
from xegpu_py.passes.analysis.shuffle_distribution import SHUFFLE_OPS
from xegpu_py.passes.analysis.tile_layout_inference import is_elementwise, is_splat, product_operands, value_classes

_SUBGROUP_OPS = ("gpu.subgroup_id", "gpu.thread_id", "gpu.lane_id", "xegpu.", "func.call", "llvm.")
"""Prefixes of the names of ops whose effect depends on the subgroup, or that order only its writes."""

_DIVISIBLE_OPS = (
    "vector.step", "vector.create_mask", "vector.broadcast", "vector.shape_cast", "vector.transpose",
    "vector.multi_reduction", "vector.extract", "vector.bitcast", "arith.constant", *SHUFFLE_OPS,
)  # fmt: skip

_LARGEST_PRODUCTS, _LARGEST_VECTOR, _LARGEST_SHUFFLED = 8 << 10, 2 << 10, 512
"""The most bytes in one subgroup: of all products (half of 256 registers), of any other vector, and of one whose
elements move along a dimension. The last limit is low because scans and sorts have many such vectors."""

PREFERRED_SUBGROUPS = "xetile.preferred_subgroups"
"""The attribute of a kernel with the number of subgroups that its author prefers for products."""

_LEAST_PRODUCTS = 4 << 10
"""The least bytes of all products in one subgroup of a preferred number: smaller ones load more than they compute."""

_LONG_CODE, _LARGEST_IN_LONG_CODE = 256, 512
"""The instructions from which a kernel without products is divided further, and the least bytes of its largest vector:
more threads cost less than lowering long code."""

LONG_OPS = frozenset((
    *FLOAT_FUNCTIONS, "math.tan", "math.atan2", "arith.divf", "arith.remf", "arith.divsi", "arith.divui", "arith.remsi",
    "arith.remui", "func.call",
))  # fmt: skip
"""Ops that become about 16 instructions for each register of their results; others become about one."""

_MOST_SUBGROUPS = 32
"""The most subgroups of a chosen number: those that a core of PVC executes with 256 registers each."""


def can_be_divided(func: ir.Operation) -> bool:
    """Return whether a kernel has no maps, and no ops whose effect depends on the subgroup."""
    ops = walk(func)
    if not any(op.name.startswith("xetile.") for op in ops) or xetile.subgroups_of(func) is not None:
        return False
    return not any(op.name.startswith(_SUBGROUP_OPS) and not is_elementwise(op) for op in ops)


def stored_arguments(func: ir.Operation) -> tuple[int, ...]:
    """The numbers of the arguments to which a kernel stores; all numbers, if it stores to unknown memory."""
    ops, arguments = walk(func), list(func.regions[0].blocks[0].arguments)
    classes: UnionFind[ir.Value] = value_classes(ops)
    sources: dict[ir.Value, list[ir.Value]] = {}
    stored: list[ir.Value] = []
    for op in ops:
        if isinstance(op.opview, InitTileOp):
            sources.setdefault(classes.find(op.opview.tile), []).append(op.opview.source)
    for op in ops:
        if op == func or op.name in STRUCTURED or "write" not in effects_of(op):
            continue
        if isinstance(op.opview, TileStore):
            stored += sources.get(classes.find(op.opview.tile), [])
        elif memrefs := [v for v in op.operands if isinstance(v.type, ir.MemRefType)]:
            stored += memrefs
        else:
            return tuple(range(len(arguments)))
    buffers = [buffer_of(source) for source in stored]
    global_buffers = [b for b in buffers if not (made := defining_op(b)) or made.name != "memref.alloc"]
    if any(b not in arguments for b in global_buffers):
        return tuple(range(len(arguments)))
    return tuple(sorted({arguments.index(b) for b in global_buffers}))


def _reads_its_condition(loop: ir.Operation) -> bool:
    """Return whether the condition of a while loop may depend on memory that the loop reads, and so diverge."""
    before, after = (region.blocks[0] for region in loop.regions)
    end, repeated = before.operations[len(before.operations) - 1], after.operations[len(after.operations) - 1]
    worklist, visited = [end.operands[0]], set[ir.Value]()
    while worklist:
        value = worklist.pop()
        if value in visited:
            continue
        visited.add(value)
        op = defining_op(value)
        if op is None:
            block, number = value.owner, ir.BlockArgument(value).arg_number
            if block == before:
                worklist.append(repeated.operands[number])
            elif block == after:
                worklist.append(end.operands[1 + number])
            elif _is_inside(block, loop):
                return True
        elif _is_inside(op.block, loop):
            if "read" in effects_of(op) or (op.regions and op.name != "scf.if"):
                return True
            worklist += op.operands
            for inner in blocks_in(op):
                worklist += inner.operations[len(inner.operations) - 1].operands
    return False


def _is_inside(block: ir.Block, loop: ir.Operation) -> bool:
    while (op := block.owner.operation) != loop and op.name != "gpu.func":
        block = op.block
    return bool(op == loop)


def suitable_subgroups(func: ir.Operation) -> int:
    """The number of subgroups, a power of two, among which the tiles of a kernel without maps should be divided.

    It is 1 if some vectors cannot be divided, or if control flow could diverge among subgroups.
    """
    ops = walk(func)
    classes: UnionFind[ir.Value] = value_classes(ops)
    products: dict[ir.Value, int] = {}
    largest, most, instructions = 0, _LARGEST_VECTOR, 0.0
    for op in ops:
        if op.name == "scf.while" and _reads_its_condition(op):
            return 1
        for value in op.results:
            if not is_vector(value):
                continue
            is_divisible = (
                op.name.startswith("xetile.") or op.name in _DIVISIBLE_OPS or is_elementwise(op) or is_splat(op)
            ) or product_operands(op)
            if op.name in SHUFFLE_OPS:
                most = _LARGEST_SHUFFLED
            if len(shape_of(value)) > 2 or not (is_divisible or op.name.startswith("scf.")):
                return 1
            element = element_of(value)
            if isinstance(element, ir.IndexType) or bits_of(element) == 1:
                continue
            size = math.prod(shape_of(value)) * bits_of(element) // 8
            if isinstance(op.opview, TileMmaOp):
                products[classes.find(value)] = size
            elif product_operands(op):
                instructions += size / 64 * (shape_of(op.operands[0])[1] - 1)
            largest = max(largest, size)
            if is_used(value) and not is_splat(op):
                instructions += size / 64 * (16 if op.name in LONG_OPS else 1)
    ideal = max(largest / most, min(instructions / _LONG_CODE, largest / _LARGEST_IN_LONG_CODE))
    if products:
        total = sum(products.values())
        attributes = func.attributes
        preferred = ir.IntegerAttr(attributes[PREFERRED_SUBGROUPS]).value if PREFERRED_SUBGROUPS in attributes else 1
        ideal = max(
            total / _LARGEST_PRODUCTS,
            min(preferred, total / _LEAST_PRODUCTS),
            largest / _LARGEST_VECTOR if most < _LARGEST_VECTOR else 1,
        )
    return min(1 << max(math.ceil(math.log2(max(ideal, 1))), 0), _MOST_SUBGROUPS)
