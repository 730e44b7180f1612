"""`xegpu-join-blocks`: joins adjacent blocks with the same uses into one block of twice the array_length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cmp_to_key, lru_cache
from typing import Any

from mlir import ir
from msgspec import Struct, field

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.control_flow import terminator, yielded
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import field_of, implements
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.affine_analysis import IndexForms
from xegpu_py.passes.analysis.ir_queries import attributes_of, defining_op, is_used, shape_of, subgroup_functions
from xegpu_py.passes.analysis.memory_effects import only_reads
from xegpu_py.passes.analysis.message_tiling import is_1d
from xegpu_py.passes.analysis.target_messages import block_load, block_problem, load_like
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.target import Target

_ROUNDS = 2
"""Rounds of joining; each doubles the blocks of a message, which has at most four."""


class _Pair(Struct):
    """Two descriptors and their uses.

    Attributes:
        loads, prefetches: the ops of both, left and right.
        values: both descriptors at each op that makes, moves or carries them.
        loops: the loops that carry them, and their positions among the carried values.
        stretches: see `_stretches`.
    """

    stretches: dict[ir.Value, int]
    loads: list[tuple[ir.Operation, ir.Operation]] = field(default_factory=list)
    prefetches: list[tuple[ir.Operation, ir.Operation]] = field(default_factory=list)
    values: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)
    loops: list[tuple[ir.Operation, int, int]] = field(default_factory=list)


@register_pass("xegpu-join-blocks")
class XeGPUJoinBlocks(Pass):
    """Join adjacent blocks that one message loads.

    Two descriptors of adjacent blocks with the same uses become one of twice the array_length. With `marked` only
    kernels that have a loop with the attribute `xetile.load_ahead` are changed.

        %d0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
        %d1 = xegpu.create_nd_tdesc %m[0, 16] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
        %x0 = xegpu.load_nd %d0 {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
        %x1 = xegpu.load_nd %d1 {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>

    becomes

        %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16>
          -> !xegpu.tensor_desc<16x16xf16, #xegpu.tdesc_attr<array_length = 2>>
        %x = xegpu.load_nd %d {mode = vc} : ... -> vector<2x16x16xf16>
        %x0 = vector.extract %x[0] : vector<16x16xf16> from vector<2x16x16xf16>
        %x1 = vector.extract %x[1] : vector<16x16xf16> from vector<2x16x16xf16>

    It is the second pass of xegpu-legalize. Kernels with XeTile ops are not changed.
    """

    target: str = ""
    kernel: str = ""
    marked: bool = False

    def run(self, op: ir.Operation) -> None:
        for func, ops, gpu in subgroup_functions(op, self.target, self.kernel, self.marked):
            if gpu.block2d is not None and _join_once(ops, gpu):
                for _ in range(_ROUNDS - 1):
                    if not _join_once(walk(func), gpu):
                        break


def _join_once(ops: Sequence[ir.Operation], target: Target) -> bool:
    accesses: dict[Any, ir.Operation] = {}
    used_values: set[ir.Value] = set()
    joined = False
    stretches, forms = _stretches(ops), IndexForms()
    for op in [op for op in ops if op.name == "xegpu.create_nd_tdesc"]:
        if field_of(op, "mode") != Mode.VC:
            continue
        desc = TensorDesc.of(op.results[0])
        if is_1d(desc) or desc.in_slm or desc.attr.message or bit_width(desc.element) not in (8, 16, 32):
            continue
        key, at = _place(op, forms)
        accesses[key, at] = op
        left = accesses.get((key, at - desc.shape[-1] * desc.attr.array_length))
        if left is None or left.results[0] in used_values or len(desc.shape) != 2:
            continue
        pair = _Pair(stretches)
        wide = _doubled(desc)
        if _match(pair, left.results[0], op.results[0]) and pair.loads and _fits(pair, wide, target):
            used_values.add(left.results[0])
            del accesses[key, at]
            _join(pair, wide)
            joined = True
    return joined


@lru_cache
def _doubled(desc: TensorDesc) -> TensorDesc:
    """The descriptor of twice as many blocks; many are of few types, and a copy takes 15 us."""
    return replace(desc, attr=replace(desc.attr, array_length=2 * desc.attr.array_length))


def _place(op: ir.Operation, forms: IndexForms) -> tuple[Any, int]:
    """A key that adjacent blocks share, and the constant part of the block's column."""
    view: Any = op.opview
    *outer, last = view.offsets
    column = forms.scalar(last)
    base = frozenset((scalars, factor) for scalars, factor in column.items() if scalars)
    common = (op.block, view.source, *outer, base, op.results[0].type)
    return (*common, tuple(view.shape), tuple(view.strides)), column.get((), 0)


def _match(pair: _Pair, left: ir.Value, right: ir.Value) -> bool:
    """Whether both descriptors have the same uses."""
    pair.values.append((left, right))
    ours, theirs = ([(use.owner.operation, use.operand_number) for use in v.uses] for v in (left, right))
    if len(ours) != len(theirs):
        return False
    order = _in_order([*ours])
    for (a, i), (b, j) in zip(order, _in_order([*theirs])):
        if a.name != b.name or a.block != b.block:
            return False
        is_load = implements(a, BlockLoad)
        if is_load or a.name == "xegpu.prefetch_nd":
            same = attributes_of(a) == attributes_of(b) and all(x.type == y.type for x, y in zip(a.results, b.results))
            if not same or (is_load and not _can_join(pair, a.results[0], b.results[0])):
                return False
            (pair.loads if is_load else pair.prefetches).append((a, b))
        elif a.name == "xegpu.update_nd_offset":
            if attributes_of(a) != attributes_of(b) or list(a.operands)[1:] != list(b.operands)[1:]:
                return False
            if not _match(pair, a.results[0], b.results[0]):
                return False
        elif a.name == "scf.for" and a == b and i >= 3 and j >= 3:
            pair.loops.append((a, i - 3, j - 3))
            arguments = list(a.regions[0].blocks[0].arguments)
            if not _match(pair, arguments[i - 2], arguments[j - 2]) or not _match(
                pair, a.results[i - 3], a.results[j - 3]
            ):
                return False
            yields = yielded(a.regions[0].blocks[0])
            if (yields[i - 3], yields[j - 3]) not in pair.values:
                return False
        elif a.name != "scf.yield" or a != b:
            return False
    return True


def _can_join(pair: _Pair, left: ir.Value, right: ir.Value) -> bool:
    """Whether one message can load both values: no op between prevents it, and the results need no moves."""
    # A value that control flow passes on has a variable of its own, so a joined load would add moves.
    handed_on = any(use.owner.operation.name.startswith("scf.") for v in (left, right) for use in v.uses)
    return pair.stretches[left] == pair.stretches[right] and not handed_on


def _in_order(uses: list[tuple[ir.Operation, int]]) -> list[tuple[ir.Operation, int]]:
    """Uses in the order of their block; MLIR's order is unspecified."""
    return sorted(uses, key=lambda u: (u[0].name, cmp_to_key(_order)(u[0])))


def _order(a: ir.Operation, b: ir.Operation) -> int:
    """-1 if an op precedes another one of its block, else 1."""
    return -1 if a.block == b.block and a.is_before_in_block(b) else 1


def _stretches(ops: Sequence[ir.Operation]) -> dict[ir.Value, int]:
    """The number of each load's stretch. A stretch has no op that writes memory, synchronizes, or prevents motion."""
    stretches: dict[ir.Value, int] = {}
    stretch = 0
    for op in ops:
        if not only_reads(op):
            stretch += 1
        elif implements(op, BlockLoad):
            stretches[op.results[0]] = stretch
    return stretches


def _fits(pair: _Pair, wide: TensorDesc, target: Target) -> bool:
    for load, _ in pair.loads:
        view: Any = load.opview
        if view.transpose is not None or block_problem(block_load(wide, False, None, view.vnni_axis), target):
            return False
        count = wide.attr.array_length // 2
        rank = 2 + (view.vnni_axis is not None) + (count > 1)
        if len(shape_of(load.results[0])) != rank:
            return False
    return all(block_problem(block_load(wide, False, None, None), target) is None for _ in pair.prefetches)


def _join(pair: _Pair, wide: TensorDesc) -> None:
    """Make the left descriptor that of both blocks, and remove the ops on the right one."""
    kind = wide.to_ir()
    for loop, _, j in pair.loops:
        body = loop.regions[0].blocks[0]
        # The right descriptor is now loop-invariant, and canonicalization removes it from the loop.
        terminator(body).operands[j] = body.arguments[j + 1]
    for left, _ in pair.values:
        left.set_type(kind)
    for a, b in pair.loads:
        _join_loads(a, b, wide.attr.array_length // 2)
    for _, b in pair.prefetches:
        b.erase()
    for _, right in reversed(pair.values):
        op = defining_op(right)
        if op is not None and op.name.startswith("xegpu.") and not is_used(right):
            op.erase()


def _join_loads(a: ir.Operation, b: ir.Operation, count: int) -> None:
    view: Any = a.opview
    first = a if a.is_before_in_block(b) else b
    shape, point = shape_of(a.results[0]), ir.InsertionPoint(first)
    inner = shape[1:] if count > 1 else shape
    kind = build.with_shape(a.results[0].type, (2 * count, *inner))
    with first.location, point:
        both = load_like(view, view.tdesc, value=kind, vnni_axis=view.vnni_axis)
    for half, load in enumerate((a, b)):
        with load.location, point:
            start = [half * count, *[0] * len(inner)]
            part = build.extract(both, [half]) if count == 1 else build.extract_slice(both, start, [count, *inner])
        load.results[0].replace_all_uses_with(part)
    a.erase()
    b.erase()
