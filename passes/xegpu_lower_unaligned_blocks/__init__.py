"""`xegpu-lower-unaligned-blocks`: blocks that no 2D message moves are moved by 1D messages, gathers and scatters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TdescAttr, TensorDesc
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, BlockLoad
from xegpu_py.dialects.xegpu.types import WARNS_OF_REPAIRS
from xegpu_py.ir.builtin import bit_width, element_type
from xegpu_py.ir.diagnostics import remark, warn
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import implements
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis import message_tiling as blocks
from xegpu_py.passes.analysis.affine_analysis import IndexForms, plus
from xegpu_py.passes.analysis.block_surfaces import (
    DescriptorForm,
    Surfaces,
    block_uses,
    find_surfaces,
    first_repaired,
    foreign_descriptors,
    tensor_of,
)
from xegpu_py.passes.analysis.ir_queries import (
    defining_op,
    element_of,
    is_desc,
    padding_select,
    shape_of,
    splat_of,
    subgroup_functions,
)
from xegpu_py.passes.analysis.message_tiling import box_shape, tiles
from xegpu_py.passes.analysis.target_messages import expand_load_transform, hints_of, merge_transposed_units
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import fold_index
from xegpu_py.passes.rewriting.memory_access import lane_offsets
from xegpu_py.passes.rewriting.rewriter import Conversion, Rule, Rules
from xegpu_py.passes.xegpu_lower_unaligned_blocks.block_access import (
    BlockPart,
    SplitAccess,
    StridedTensor,
    address_of,
    line_of,
    scattered_descriptor,
    viewed_tensor,
)
from xegpu_py.target import Target


@register_pass("xegpu-lower-unaligned-blocks")
class XeGPULowerUnalignedBlocks(Pass):
    """Replace block accesses without 2D messages.

    These are blocks of tensors that the messages cannot address, because of their alignment, extents or innermost
    stride, blocks in shared local memory, stores of rows of which a message cannot store the end, and all blocks if the
    target has no such messages. They become 1D messages if rows are known to be in bounds and aligned, and gathers and
    scatters otherwise. Their descriptors become offsets; those that control flow joins with descriptors of other
    tensors become addresses, extents, strides and offsets. A load with a transform becomes a plain load and a transform
    in registers, but if it transposes dwords and has no boundary check, gathers in which each lane loads several
    dwords of one row: registers have the columns. A remark (`--remarks`) reports the number of messages. `unaligned`,
    `max-bytes` and `marked` are those of xegpu-legalize.

        %d = xegpu.create_nd_tdesc %m[0, 4] {mode = vc} : memref<8x8xf32> -> !xegpu.tensor_desc<2x4xf32>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<2x4xf32> -> vector<2x4xf32>

    becomes

        %r0 = memref.reinterpret_cast %m to offset: [4], sizes: [4], strides: [1] : ... to memref<4xf32, ...>
        %d0 = xegpu.create_nd_tdesc %r0[0] {mode = vc} : memref<4xf32, ...> -> !xegpu.tensor_desc<4xf32>
        %x0 = xegpu.load_nd %d0 {mode = vc} : !xegpu.tensor_desc<4xf32> -> vector<4xf32>
        ...
        %y0 = vector.insert_strided_slice %x0, %undefined {offsets = [0, 0], strides = [1]} : ...
        %x = vector.insert_strided_slice %x1, %y0 {offsets = [1, 0], strides = [1]} : ...

    It is the third pass of xegpu-legalize; xegpu-unroll takes such vectors in their parts. Kernels with XeTile ops
    are not changed.
    """

    target: str = ""
    kernel: str = ""
    unaligned: bool = False
    marked: bool = False
    max_bytes: int = 0

    def run(self, op: ir.Operation) -> None:
        for func, ops, gpu in subgroup_functions(op, self.target, self.kernel, self.marked):
            surfaces = find_surfaces(func, ops, gpu, None if self.unaligned else (), self.max_bytes)
            if WARNS_OF_REPAIRS in func.attributes:
                del func.attributes[WARNS_OF_REPAIRS]
                if repaired := first_repaired(surfaces, ops, gpu, self.max_bytes):
                    warn(*repaired)
            loads = [inner for inner in ops if implements(inner, BlockLoad) and surfaces.problem(inner.operands[0])]
            for load in loads:
                _transform_in_registers(load, surfaces, gpu)
            conversion = Fallback(surfaces, walk(func) if loads else ops, gpu)
            if conversion.places:
                conversion.region(func.regions[0])
                conversion.finish()


def _transform_in_registers(op: ir.Operation, surfaces: Surfaces, target: Target) -> None:
    """Split a load into a plain load and its transform, unless gathers do both."""
    view: Any = merge_transposed_units(op).opview
    rank = len(TensorDesc.of(view.tdesc).shape)
    transforms = view.mode == Mode.VC and rank > 1 and (_transposes(view) or view.vnni_axis is not None)
    if transforms and not _is_gathered_transposed(view, surfaces, target):
        expand_load_transform(view)


def _transposes(view: Any) -> bool:
    """Whether a load permutes dimensions: a permutation that is given may be none."""
    return view.transpose is not None and tuple(view.transpose) != tuple(range(len(view.transpose)))


_DWORD = 32
"""The bits of the units that gathers of chunks transpose."""


def _register_dwords(target: Target) -> int:
    return 8 * target.grf_bytes // _DWORD


def _is_gathered_transposed(view: Any, surfaces: Surfaces, target: Target) -> bool:
    """Whether each lane of a gather loads dwords of one row of a block, so that registers have the columns."""
    desc = TensorDesc.of(view.tdesc)
    unit = view.transpose_bit_width or desc.bits
    if view.mode != Mode.VC or len(desc.shape) != 2 or desc.attr.array_length != 1:
        return False
    if view.vnni_axis is not None or tuple(view.transpose) != (1, 0) or unit != _DWORD or desc.attr.boundary_check:
        return False
    rows, dwords = desc.shape[0], desc.shape[1] * desc.bits // _DWORD
    fits = rows % _register_dwords(target) == dwords % 2 == 0
    strides = {tensor_of(made).strides[-1] for made in surfaces.creations_of(view.tdesc)}
    return fits and strides == {1} and surfaces.row_alignment(view.tdesc) % (_DWORD // 8) == 0


rule: Rules[Rule[Fallback]] = Rules()


_STORE = "xegpu.store_nd"


class Fallback(Conversion):
    """The conversion of one function.

    A descriptor becomes numbers, after the descriptor itself if other ops need it.

    Attributes:
        surfaces: the tensors of the function's descriptors.
        target: the GPU.
        places: by class of descriptors, the form of its numbers.
        row_alignment: by descriptor, the known alignment of its rows in bytes.
        indices: the function's indices.
    """

    rules = rule

    def __init__(self, surfaces: Surfaces, ops: Sequence[ir.Operation], target: Target) -> None:
        super().__init__()
        self.surfaces, self.target = surfaces, target
        self.places: dict[ir.Value, DescriptorForm] = {}
        self.row_alignment: dict[ir.Value, int] = {}
        self.indices = IndexForms(through_loops=False)
        self._kept: set[ir.Value] = set()
        accesses = [op for op in ops if implements(op, BlockAccess)]
        if not surfaces.problems:
            # 2D block messages address all surfaces, but may not have the shape of a store.
            accesses = [op for op in accesses if op.name == _STORE]
        descs = [*surfaces.problems, *(op.opview.tdesc for op in accesses if self._is_needed(op))]
        foreign = {surfaces.classes.find(v) for v in foreign_descriptors(surfaces.func, ops)} if descs else ()
        for desc in dict.fromkeys(descs):
            root = surfaces.classes.find(desc)
            if root not in foreign and bit_width(TensorDesc.of(desc).element) in (8, 16, 32, 64):
                form = self.places.get(root) or surfaces.descriptor_form(desc)
                if form is not None:
                    self.places[root] = form
                    self.row_alignment[desc] = surfaces.row_alignment(desc)
        for op in ops if self.places else ():
            self._kept.update(surfaces.classes.find(v) for v in block_uses(op) if not self._is_needed(op))

    def _is_needed(self, op: ir.Operation) -> bool:
        """Whether no 2D block message, and no 1D message of a line, does an access."""
        if not implements(op, BlockAccess) or op.opview.mode != Mode.VC:
            return False
        desc = TensorDesc.of(op.opview.tdesc)
        stores = op.name == _STORE and len(desc.shape) > 1 and blocks.store_spans(desc, self.target) is None
        return stores or self.surfaces.problem(op.opview.tdesc) is not None

    def place(self, value: ir.Value) -> DescriptorForm | None:
        """The form of a descriptor as numbers; None if it is not converted."""
        return self.places.get(self.surfaces.classes.find(value)) if is_desc(value) else None

    def is_kept(self, desc: ir.Value) -> bool:
        """Whether other ops need a descriptor."""
        return self.surfaces.classes.find(desc) in self._kept

    def numbers(self, desc: ir.Value) -> Sequence[ir.Value]:
        """The numbers that a descriptor has become."""
        return self.get(desc)[self.is_kept(desc) :]

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> list[ir.Type] | None:
        form = self.place(value)
        return None if form is None else [*([value.type] if self.is_kept(value) else []), *_types(form)]

    def is_legal(self, op: ir.Operation) -> bool:
        if implements(op, BlockAccess):
            return self.place(op.opview.tdesc) is None or not self._is_needed(op)
        return not any(map(self.place, op.results))

    def replacement(self, value: ir.Value) -> ir.Value:
        return (
            super().replacement(value) if self.place(value) is None or not self.is_kept(value) else self.get(value)[0]
        )

    def become(self, op: ir.Operation, numbers: Sequence[ir.Value]) -> None:
        """Set the numbers that an op's descriptor becomes."""
        (desc,) = op.results
        if self.is_kept(desc):
            self.keep(op)
            self.define(desc, [desc, *numbers])
        else:
            self.replace(op, numbers)


def _types(form: DescriptorForm) -> list[ir.Type]:
    index = [build.index_type()]
    tensor = [element_type(form.address), *index * (form.rank + form.strides)] if form.address else []
    return tensor + index * form.rank


# Descriptors as numbers.


@rule("xegpu.create_nd_tdesc")
def create(low: Fallback, op: ir.Operation) -> None:
    """The tensor, if it is not the same for all uses, and the offsets."""
    view: Any = op.opview
    form = low.places[low.surfaces.classes.find(view.tdesc)]
    numbers = [build.index(o) for o in view.offsets]
    if form.address:
        tensor = viewed_tensor(view)
        extents = [build.index(n) for n in (*tensor.extents, *tensor.strides[: form.strides])]
        numbers = [address_of(tensor, 0, TensorDesc.of(view.tdesc)), *extents, *numbers]
    low.become(op, numbers)


@rule("ub.poison")
def undefined(low: Fallback, op: ir.Operation) -> None:
    """Undefined numbers. Branches may carry them, but no access uses them."""
    low.become(op, [build.poison(kind) for kind in _types(low.places[low.surfaces.classes.find(op.results[0])])])


@rule("xegpu.update_nd_offset")
def update(low: Fallback, op: ir.Operation) -> None:
    """Add to the offsets."""
    view: Any = op.opview
    numbers, by = low.numbers(view.tdesc), list(view.offsets)
    fixed = len(numbers) - len(by)
    low.become(
        op,
        [
            *numbers[:fixed],
            *(build.index(build.add(fold_index(a), fold_index(b))) for a, b in zip(numbers[fixed:], by)),
        ],
    )


def _access(low: Fallback, op: ir.Operation, vector: tuple[int, ...]) -> SplitAccess:
    view: Any = op.opview
    form = low.places[low.surfaces.classes.find(view.tdesc)]
    desc = TensorDesc.of(view.tdesc)
    handles, rank = low.numbers(view.tdesc), form.rank
    offsets = tuple(map(fold_index, handles[-rank:]))
    if form.address:
        numbers = tuple(map(fold_index, handles[1:-rank]))
        tensor = StridedTensor(handles[0], 0, numbers[:rank], numbers[rank:] if form.stepped else (*numbers[rank:], 1))
    else:
        tensor = viewed_tensor(low.surfaces.creations_of(view.tdesc)[0])
    if rank == 1:
        # A line is a matrix of one row, and its accesses are not checked (RFC, create_nd_tdesc).
        desc = replace(desc, shape=(1, *desc.shape), attr=replace(desc.attr, boundary_check=False))
        tensor = StridedTensor(tensor.source, tensor.start, (1, *tensor.extents), (0, *tensor.strides))
        offsets, vector = (0, *offsets), (*vector[:-1], 1, vector[-1])
    alignment = low.row_alignment[view.tdesc]
    return SplitAccess(low.indices, low.target, alignment, desc, tensor, offsets, vector, rank == 1)


def _say(low: Fallback, op: ir.Operation, count: int, messages: str) -> None:
    why = low.surfaces.problem(op.opview.tdesc) or "has rows that 2D block messages cannot store"
    instead = "1D messages" if len(TensorDesc.of(op.opview.tdesc).shape) == 1 else "2D block messages"
    remark(op, f"takes {count} {messages}{'s' * (count != 1)} in place of {instead}: its tensor {why}")


@rule("xegpu.load_nd")
def load(low: Fallback, op: ir.Operation) -> None:
    """Load a block row by row, or by gathers, whose other lanes get the number that replaces elements out of bounds."""
    if _transposes(op.opview):
        _load_transposed(low, op)
        return
    access = _access(low, op, shape_of(op.results[0]))
    padded = _padded(op, access)
    padding = splat_of(padded.operands[2]) if padded else None
    hints, parts, count = hints_of(op.opview), [], 0
    bounds, lines = access.split("lsc_load")
    for box, part in access.parts(bounds):
        if lines:
            loaded = xegpu.load_nd(_line_desc(access, part, lines), mode="vc", **hints)
            count += 1
        else:
            mask, (positions, _, active) = access.mask(part), access.lanes(part)
            kind = build.vector_type((len(positions),), element_of(op.results[0]))
            others = build.constant(kind, padding or 0)
            if mask is None:
                loaded = others
            else:
                loaded = xegpu.load_gather(access.descriptor(part), mask, value=kind, mode="vc", **hints)
                loaded = build.select(mask, loaded, others) if padded else loaded
                count += 1
            loaded = build.extract_slice(loaded, [0], [active])
        parts.append(build.shape_cast(loaded, access.own(box_shape(box))))
    _say(low, op, count, "1D load" if lines else "gather")
    whole = build.poison(op.results[0].type)
    for box, part in zip(tiles(access.own(bounds)), parts):
        whole = build.insert_slice(part, whole, [first for first, _ in box])
    low.replace(op, whole)
    if padded:
        low.replace(padded, whole)


def _load_transposed(low: Fallback, op: ir.Operation) -> None:
    """Load a block so that each lane gets some dwords of its row: a register of the result is a column of dwords."""
    desc = TensorDesc.of(op.opview.tdesc)
    access = _access(low, op, desc.shape)
    per_dword = _DWORD // desc.bits
    rows, dwords = desc.shape[0], desc.shape[1] // per_dword
    chunk, count = math.gcd(dwords, 8), _register_dwords(low.target)
    dword = build.integer_type(_DWORD)
    kind = TensorDesc((count, chunk), dword, TdescAttr(memory_scope=desc.attr.memory_scope, scattered=True))
    pitch = access.tensor.strides[-2]
    # Rows of smaller elements are only known to begin at multiples of a dword if the pitch is known.
    pitch_dwords = pitch // per_dword if isinstance(pitch, int) else pitch
    # No constant, which MLIR would add to the offset of each message.
    step = build.make("vector.step", build.vector_type((count,), build.index_type()))
    lanes = build.binary("muli", step, build.index_splat(pitch_dwords, count))
    columns, whole = build.vector_type((chunk, count), dword), build.poison(build.vector_type((dwords, rows), dword))
    for row in range(0, rows, count):
        # Messages add constants.
        constant = row * pitch_dwords if isinstance(pitch_dwords, int) else 0
        if row == 0 or not isinstance(pitch_dwords, int):
            start = build.add(access.tensor.start, access.start(BlockPart((), row, count, 0, chunk * per_dword)))
            source = build.element_address(access.tensor.source, start, desc.bits)
        for first in range(0, dwords, chunk):
            offsets = build.binary("addi", lanes, build.index_splat(constant + first, count))
            tdesc = xegpu.create_tdesc(source, offsets, tdesc=kind, chunk_size_per_lane=chunk, mode="vc")
            loaded = xegpu.load_gather(tdesc, build.all_set(count), value=columns, mode="vc", **hints_of(op.opview))
            whole = build.insert_slice(loaded, whole, [first, row])
    _say(low, op, rows // count * (dwords // chunk), "gather")
    low.replace(op, build.make("vector.bitcast", op.results[0].type, whole))


def _padded(op: ir.Operation, access: SplitAccess) -> ir.Operation | None:
    """The only use of a loaded block, if it selects a number for the elements that are out of bounds."""
    select = padding_select(op)
    mask = None if select is None else defining_op(select.operands[0])
    if mask is None or mask.name != "vector.create_mask" or access.vector != access.desc.shape or not access.checked:
        return None
    indices = access.indices
    for at, extent, remaining in zip(access.offsets, access.tensor.extents, mask.operands, strict=True):
        first = indices.scalar(at)
        if plus(first, indices.scalar(remaining)) != indices.scalar(extent) or not indices.is_nonnegative(first):
            return None
    return select


@rule("xegpu.store_nd")
def store(low: Fallback, op: ir.Operation) -> None:
    """Store a block row by row, or by scatters."""
    view: Any = op.opview
    access = _access(low, op, shape_of(view.value))
    hints, count = hints_of(view), 0
    bounds, lines = access.split("lsc_store")
    for box, part in access.parts(bounds):
        mask = None if lines else access.mask(part)
        if not lines and mask is None:
            continue
        block_shape = access.own(box)
        value = build.flatten(
            build.extract_slice(view.value, [first for first, _ in block_shape], box_shape(block_shape))
        )
        if lines:
            xegpu.store_nd(value, _line_desc(access, part, lines), mode="vc", **hints)
        else:
            value = build.pad_with_zeros(value, (len(access.lanes(part)[0]),))
            xegpu.store_scatter(value, access.descriptor(part), mask, mode="vc", **hints)
        count += 1
    _say(low, op, count, "1D store" if lines else "scatter")
    low.erase(op)


@rule("xegpu.prefetch_nd")
def prefetch(low: Fallback, op: ir.Operation) -> None:
    """Prefetch each cache line of a block's rows. Out-of-bounds elements are clamped to the nearest one in bounds."""
    low.erase(op)
    access = _access(low, op, TensorDesc.of(op.opview.tdesc).shape)
    desc = access.desc
    if desc.in_slm:
        return
    across = access.desc.shape[-1] * desc.attr.array_length
    step = max(low.target.cache_line * 8 // desc.bits, 1)
    columns = [*range(0, across, step), *([across - 1] if (across - 1) % step else [])]
    positions = list(itertools.product(*map(range, desc.shape[:-1]), columns))
    most = blocks.most_lanes(desc, low.target, "lsc_load")
    count = 0
    for first in range(0, len(positions), most):
        batch = positions[first : first + most]
        batch += batch[-1:] * ((1 << (len(batch) - 1).bit_length()) - len(batch))
        lanes = len(batch)
        lines: list[ir.Value] = []
        for d in range(len(access.tensor.strides)):
            at = build.binary(
                "addi", build.index_vector([p[d] for p in batch]), build.index_splat(access.offsets[d], lanes)
            )
            if not access.is_inside(d, desc.shape[d] if d < len(desc.shape) - 1 else across):
                last = build.index_splat(build.add(access.tensor.extents[d], -1), lanes)
                at = build.binary("maxsi", build.binary("minsi", at, last), build.index_splat(0, lanes))
            lines.append(at)
        total = lane_offsets(lanes, lines, access.tensor.strides)
        source, rest = line_of(access.tensor, 0, 1, desc)
        xegpu.prefetch(scattered_descriptor(source, rest, total, desc), mode="vc", **hints_of(op.opview))
        count += 1
    _say(low, op, count, "scattered prefetch" if count == 1 else "scattered prefetche")


def _line_desc(access: SplitAccess, part: BlockPart, attr: TdescAttr) -> ir.Value:
    count = part.rows * part.columns
    source, rest = line_of(access.tensor, access.start(part), count, access.desc, True)
    kind = TensorDesc((count,), access.desc.element, attr)
    return xegpu.create_nd_tdesc(source, [rest], tdesc=kind, mode="vc")
