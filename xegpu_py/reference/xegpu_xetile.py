"""The meaning of xegpu in both modes, of xetile, and of iree_vector_ext.to_layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.dialects.xegpu import DpasMxOp, LaneShuffleMode, MemoryScope, Mode, TensorDesc
from xegpu_py.dialects.xegpu.fragments import Placement, Placements, arranged, coordinates
from xegpu_py.dialects.xegpu.matrix_ops import SCALE_BLOCK, loaded_shapes, vnni_factor
from xegpu_py.dialects.xegpu.op_interfaces import MatrixProduct
from xegpu_py.dialects.xegpu.types import XeGPU
from xegpu_py.dialects.xetile import Tile
from xegpu_py.dialects.xetile.ops import reduced_block
from xegpu_py.ir.element_movement import MOVES
from xegpu_py.numerics import multiply, multiply_scaled, truncate
from xegpu_py.numerics.formats import FLOATS, Array
from xegpu_py.reference.machine import (
    CallFrame,
    EvaluatedSubgroup,
    Lane,
    Lanes,
    Node,
    Steps,
    controls,
    evaluates,
    evaluates_in,
    together,
)
from xegpu_py.reference.memref import atomic
from xegpu_py.reference.storage import AddressSpace, ElementType, Fault, MemRef, element_of, to_float
from xegpu_py.reference.vector import combine, is_sequential, reduced

# `xegpu`: blocks, scattered elements, dpas and barriers, in VC mode and in SIMT mode.
#
# Source: the XeGPU RFC, quoted in the docstring of each op, and docs/xegpu.md and docs/simt.md where it is silent.


@dataclass(frozen=True)
class EvaluatedBlock:
    """A descriptor of a block.

    Attributes:
        memory: the memory of the tensor.
        base: the address of its first element.
        extents: the tensor's shape, for bounds checks; None for no bounds.
        strides: in elements.
        offsets: the indices of the block's first element.
        element: the element type.
    """

    memory: AddressSpace
    base: int
    extents: tuple[int, ...] | None
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    element: ElementType

    def element_offsets(self, shape: Sequence[int], block: int = 0) -> tuple[Array, Array]:
        """The offsets of a block's elements from the tensor's first element, and which of them are in bounds.

        Args:
            block: the index in an array of blocks, which are neighbours along the innermost dimension.
        """
        index = np.indices(tuple(shape))
        coordinates = [o + i for o, i in zip(self.offsets, index)]
        coordinates[-1] = coordinates[-1] + block * shape[-1]
        inside = np.ones(tuple(shape), bool)
        for coordinate, extent in zip(coordinates, self.extents or ()):
            inside &= (coordinate >= 0) & (coordinate < extent)
        total = sum((p * s for p, s in zip(coordinates, self.strides)), np.zeros(tuple(shape), np.int64))
        return total, inside

    def load(self, shape: Sequence[int], block: int = 0) -> Array:
        """A block's elements. RFC: "pads with zero for out-of-boundary access"."""
        offsets, inside = self.element_offsets(shape, block)
        elements = np.zeros(tuple(shape), self.element.dtype)
        elements[inside] = self.memory.elements(self.base, offsets[inside], self.element)
        return elements

    def store(self, values: Array, block: int = 0) -> None:
        """Write a block's elements; out-of-bounds elements are not written."""
        offsets, inside = self.element_offsets(values.shape, block)
        self.memory.set_elements(self.base, offsets[inside], values[inside], self.element)


@dataclass(frozen=True)
class ScatteredElements:
    """The addresses of elements, int64, and what lies there.

    Those of a descriptor with an address for each lane have the shape of its value: chunk, if there is one, and lanes.
    """

    memory: AddressSpace
    addresses: Array
    element: ElementType


def _desc(node: Node) -> TensorDesc:
    return node.memo("desc", lambda: TensorDesc.of(node.op.opview.tdesc))


def _source(lane: Lane, source: Any, desc: TensorDesc) -> tuple[AddressSpace, int]:
    """The memory and the address of a descriptor's source."""
    if isinstance(source, MemRef):
        return source.memory, source.address
    is_slm = desc.attr.memory_scope == MemoryScope.SLM
    return (lane.workgroup.shared if is_slm else lane.launch.memory), int(source)


@evaluates_in("xegpu.create_nd_tdesc")
def create_nd_tdesc(lane: Lane, node: Node, *operands: Any) -> EvaluatedBlock:
    """RFC: "creates a tensor descriptor for an n-dimensional tensor, which describes a subview of an n-dimensional base
    tensor"; "also accepts a memref as input instead of a memory address, shapes, and sizes"."""
    operand_values, desc = node.named(operands), _desc(node)
    offsets, shape, strides = (node.index_list(n, operand_values[n]) for n in ("offsets", "shape", "strides"))
    (source,) = operand_values["source"]
    memory, address = _source(lane, source, desc)
    if isinstance(source, MemRef):
        shape, strides = shape or list(source.shape), strides or list(source.strides)
    if desc.attr.message:
        size = element_of(desc.element).bytes
        if strides[0] % size:
            raise Fault(f"has a pitch of {strides[0]} bytes, which is not a multiple of its elements' {size}")
        shape, strides = [shape[0], shape[1] // size], [strides[0] // size, 1]
    # RFC: "For 1D tensor description, the base_shape and base_stride are optional, the attribute boundary_check must be
    # false".
    bounded = len(desc.shape) > 1
    element = source.element if isinstance(source, MemRef) else element_of(desc.element)
    return EvaluatedBlock(
        memory, address, tuple(shape) if bounded else None, tuple(strides or [1]), tuple(offsets), element
    )


@evaluates("xegpu.update_nd_offset", "xegpu.update_offset", "xetile.update_tile_offset")
def update_offset(
    node: Node, descriptor: EvaluatedBlock | ScatteredElements, *operands: Any
) -> EvaluatedBlock | ScatteredElements:
    """RFC: "updates the subtensor's offsets for the tensor descriptor. These offsets are relative offset to the current
    position in the number of elements"; scattered elements have an offset each, in elements too."""
    if isinstance(descriptor, ScatteredElements):
        return replace(
            descriptor, addresses=descriptor.addresses + _indices(node, operands[0]) * descriptor.element.bytes
        )
    deltas = node.index_list("offsets", operands)
    return replace(descriptor, offsets=tuple(a + b for a, b in zip(descriptor.offsets, deltas)))


def _indices(node: Node, indices: Array) -> Array:
    """The last operand, indices or offsets in elements, as int64."""
    return node.operand_kind(len(node.operands) - 1).element.numbers(indices)


@evaluates("xegpu.prefetch_nd", "xegpu.prefetch", "xetile.prefetch_tile", "xegpu.compile_hint", "xegpu.fence")
def nothing(node: Node, *operands: Any) -> None:
    """Prefetches and hints change no value. Accesses are in order, so fences have no effect."""


def _blocks(block: EvaluatedBlock, desc: TensorDesc) -> Array:
    """The blocks of a descriptor, [array_length, *shape]."""
    return np.stack([block.load(desc.shape, i) for i in range(desc.attr.array_length)])


def _transformed(node: Node, desc: TensorDesc, blocks: Array, mode: Mode) -> Array:
    """Blocks, or a work item's fragments of them, [array_length, *shape], in the shape that a load gives them."""
    transforms = tuple(node.field(n) for n in ("transpose", "transpose_bit_width", "vnni_axis"))
    choices = node.memo(("shapes", mode), lambda: loaded_shapes(desc, mode, *transforms))
    legal_shapes = node.memo("own shapes", lambda: loaded_shapes(desc, node.field("mode"), *transforms))
    shape_index = legal_shapes.index(node.shape)
    loaded_blocks = arranged(blocks, desc, len(blocks) > 1 and shape_index == 1, *transforms)
    shape: tuple[int, ...] = choices[shape_index]
    return np.ascontiguousarray(loaded_blocks).reshape(shape)


@together("xegpu.load_nd")
def load_nd(subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]]) -> list[Array]:
    """RFC: "loads the memory specified by tensor_desc to a multi-dimension vector"."""
    desc, mode = _desc(node), node.field("mode")
    blocks = _blocks(lane_operands[0][0], desc)
    if mode == Mode.VC or desc.attr.map is None:
        return [_transformed(node, desc, blocks, mode)] * len(lane_operands)
    _check_lanes(subgroup, desc)
    lane_fragments = [np.stack([block[owned] for block in blocks]) for owned in fragments(desc)]
    return [_transformed(node, desc, fragment, mode) for fragment in lane_fragments]


def _check_lanes(subgroup: EvaluatedSubgroup, desc: TensorDesc) -> None:
    assert desc.attr.map
    lanes = math.prod(desc.attr.map.wi_layout)
    if lanes != len(subgroup.lanes):
        raise Fault(f"distributes its block to {lanes} work items, but a subgroup has {len(subgroup.lanes)}")
    if len(subgroup.present) != lanes:
        raise Fault(
            f"works on a block of {lanes} work items, but the subgroup has {len(subgroup.present)}",
            "launch workgroups of whole subgroups",
        )


@lru_cache(maxsize=256)
def fragments(desc: TensorDesc) -> list[tuple[Array, ...]]:
    """The indices in the block of each work item's fragment.

    RFC: "the size of the 2D subtensor must be divisible by wi_layout x wi_data"; "when the 2D subtensor size is larger
    than the sg_map size, it is distributed to WI threads in a round-robin fashion".
    """
    assert desc.attr.map
    return [np.unravel_index(lane, desc.shape) for lane in coordinates(desc.shape, desc.attr.map)]


@together("xegpu.store_nd")
def store_nd(subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]]) -> list[None]:
    """RFC: "stores a vector to memory specified by tensor_desc"."""
    desc, mode = _desc(node), node.field("mode")
    block = lane_operands[0][1]
    count = desc.attr.array_length
    if mode == Mode.VC or desc.attr.map is None:
        blocks = _by_blocks(np.asarray(lane_operands[0][0]), desc, desc.shape)
    else:
        _check_lanes(subgroup, desc)
        blocks = np.zeros((count, *desc.shape), node.operand_kind(0).element.dtype)
        for (value, _), owned in zip(lane_operands, fragments(desc)):
            for i, fragment in enumerate(_by_blocks(np.asarray(value), desc, desc.fragment())):
                blocks[i][owned] = fragment
    for i in range(count):
        block.store(blocks[i], i)
    return [None] * len(lane_operands)


def _by_blocks(value: Array, desc: TensorDesc, shape: tuple[int, ...]) -> Array:
    """An array of blocks, or the area that they cover, as [array_length, *shape]."""
    count = desc.attr.array_length
    if value.shape in ((count, *shape), shape):
        return value.reshape(count, *shape)
    return np.stack(np.split(value, count, axis=-1))


@evaluates_in("xegpu.create_tdesc")
def create_tdesc(lane: Lane, node: Node, source: Any, offsets: Array) -> ScatteredElements:
    """RFC: "creates a tensor descriptor for a scattered load. It accepts a memory address and a vector of offsets";
    "Each WI thread may load a consecutive chunk of data elements from the memory but put them along the column
    dimension"."""
    desc = _desc(node)
    memory, address = _source(lane, source, desc)
    element = source.element if isinstance(source, MemRef) else element_of(desc.element)
    element_offsets = _indices(node, offsets) + np.arange(desc.chunk)[:, None]
    return ScatteredElements(memory, (address + element_offsets * element.bytes).reshape(desc.shape[::-1]), element)


def precision(element: str) -> str:
    """vISA's name of an element type as a precision of DPAS."""
    if element in FLOATS:
        return FLOATS[element].name
    return f"{'u' if element.startswith('u') else 's'}{element.lstrip('sui')}"


def product(
    node: Node,
    acc: Array | None,
    a: Array,
    b: Array,
    names: tuple[str, str],
    model: Any,
    scales: dict[str, Array],
) -> Array:
    """`acc + a x b` of matrices of any size, with the bits of dpas, or of bdpas for scales or a `DpasMxOp`."""
    if scales or isinstance(node.op.opview, DpasMxOp):
        scale_a, scale_b = scales.get("scale_a"), scales.get("scale_b")
        return multiply_scaled(acc, a, b, scale_a, scale_b, **_precisions(node, acc, names), model=model)
    return multiplied(node, acc, a, b, names, model)


def multiplied(node: Node, acc: Array | None, a: Array, b: Array, names: tuple[str, str], model: Any) -> Array:
    """`acc + a x b` of matrices with the bits of dpas, in the type of the op's result."""
    a_bits, b_bits = (_unsigned(v, n) for v, n in zip((a, b), names))
    product = multiply(acc, a_bits, b_bits, **_precisions(node, acc, names), model=model)
    return product.astype(node.kind().element.dtype, copy=False)


def _precisions(node: Node, acc: Array | None, names: tuple[str, str]) -> dict[str, str]:
    """The precisions and types of a product by vISA's names."""
    dst_name = node.kind().element.name
    # The accumulator may be of another type than the result.
    acc_name = None if acc is None else next((f.name for f in FLOATS.values() if f.dtype == acc.dtype), None)
    dst_type = FLOATS[dst_name].name if dst_name in FLOATS else "d"
    return {
        "W": precision(names[1]),
        "A": precision(names[0]),
        "dst_type": dst_type,
        "src0_type": acc_name or dst_type,
    }


def _unsigned(values: Array, name: str) -> Array:
    element = element_of(name)
    return element.unsigned(values) if name.startswith("u") else values


def unpacked(b: Array) -> Array:
    """A matrix in VNNI layout, [K/v, N, v], as [K, N]."""
    return b if b.ndim == 2 else b.transpose(0, 2, 1).reshape(-1, b.shape[1])


@together(*XeGPU.implementing(MatrixProduct))
def dpas(subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]]) -> list[Array]:
    """RFC: "does the matrix multiplication on the 2D matrix represented as 2D or 3D vectors"; with scales that of
    blocks of 32 elements of K (OCP Microscaling Formats 1.0)."""
    names = node.memo("factors", lambda: _factors(node))
    if node.field("mode") != Mode.VC:
        return _dpas_of_fragments(subgroup, node, lane_operands, names)
    groups = {name: operand[0] for name, operand in node.named(lane_operands[0]).items() if operand}
    acc, a, b = groups.pop("acc", None), groups.pop("lhs"), groups.pop("rhs")
    operand = product(node, acc, a.reshape(a.shape[0], -1), unpacked(b), names, subgroup.launch.model, groups)
    return [operand] * len(lane_operands)


def _factors(node: Node) -> tuple[str, str]:
    view = node.op.opview
    element_names = [str(v.type).rstrip(">").rpartition("x")[2] for v in (view.lhs, view.rhs)]
    return element_names[0], element_names[1]


def _dpas_of_fragments(
    subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]], names: tuple[str, str]
) -> list[Array]:
    """RFC: "WI mapping for vector_a, vector_b, vector_c refer to the sg_mapping associated with tensor_desc"."""
    lanes = len(subgroup.lanes)
    if len(lane_operands) != lanes:
        raise Fault(f"multiplies fragments of {lanes} work items, but the subgroup has {len(lane_operands)}")
    groups = [node.named(row) for row in lane_operands]
    view = node.op.opview
    sizes = [math.prod(np.shape(groups[0][n][0])) * lanes for n in ("lhs", "rhs")]
    result = math.prod(node.shape) * lanes
    maps: Placements = subgroup.launch.function.memo(Placements)
    layout_of_b = maps.of(view.rhs)
    factor = max(vnni_factor(element_of(names[1]).bits), 1)
    columns = layout_of_b[0].shape[1] if layout_of_b else lanes
    rows, depth = result // columns, sizes[1] // columns
    b_shape = (depth // factor, columns, factor) if factor > 1 else (depth, columns)

    def placed(value: ir.Value, role: str, shape: tuple[int, ...]) -> Placement:
        try:
            return maps.only(value, role, shape, lanes)
        except ValueError as e:
            raise Fault(*e.args) from None

    def matrix(name: str, value: Any, shape: tuple[int, ...]) -> Array:
        fragments = [np.asarray(g[name][0]) for g in groups]
        placement = placed(value, name, shape)
        elements = np.zeros(math.prod(shape), fragments[0].dtype)
        for lane, fragment in enumerate(fragments):
            elements[placement.order[:, lane]] = fragment.ravel()
        return elements.reshape(shape)

    a = matrix("lhs", view.lhs, (rows, depth))
    b = unpacked(matrix("rhs", view.rhs, b_shape))
    acc = matrix("acc", view.result, (rows, columns)) if view.acc is not None else None
    scales = {
        name: _scales_of_lanes(np.stack([np.ravel(g[name][0]) for g in groups]), name, count, -(-depth // SCALE_BLOCK))
        for name, count in (("scale_a", rows), ("scale_b", columns))
        if groups[0].get(name)
    }
    product_elements = product(node, acc, a, b, names, subgroup.launch.model, scales).ravel()
    placement = placed(view.result, "result", (rows, columns))
    return [product_elements[placement.order[:, lane]].reshape(node.shape) for lane in range(lanes)]


def _scales_of_lanes(lane_scales: Array, name: str, count: int, blocks: int) -> Array:
    """The matrix of scales from those of the lanes, [lanes, elements]; `count` rows of A or columns of B."""
    lanes = len(lane_scales)
    if lane_scales.shape[1] != max(count // lanes, 1) * blocks:
        raise Fault(
            f"has {lane_scales.shape[1]} elements of {name} in a work item, not {max(count // lanes, 1) * blocks}"
        )
    if name == "scale_b":
        return np.reshape(lane_scales.reshape(lanes, blocks, -1).transpose(1, 2, 0), (blocks, count))
    rows = lane_scales[:count].reshape(min(lanes, count), -1, blocks)
    return np.reshape(rows.transpose(1, 0, 2), (count, blocks))


@evaluates("xegpu.truncf")
def truncf(node: Node, values: Array) -> Array:
    """Round to nearest even and saturate (OCP Microscaling Formats 1.0, section 6.3)."""
    source, target = node.operand_kind(0).element, node.element
    assert source.format and target.format
    return truncate(values, source.format.name, target.format.name)


@together("xegpu.lane_shuffle")
def lane_shuffle(subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]]) -> list[Array]:
    """Upstream: `pack` moves element j of lane i from position j * S + i to i * N + j; `unpack` is the reverse."""
    lanes = len(subgroup.lanes)
    if len(lane_operands) != lanes:
        raise Fault(f"exchanges elements of {lanes} work items, but the subgroup has {len(lane_operands)}")
    lane_vectors = np.stack([np.asarray(vector) for (vector,) in lane_operands])
    pack = node.field("shuffle") == LaneShuffleMode.PACK
    shuffled = lane_vectors.T.reshape(lane_vectors.shape) if pack else lane_vectors.reshape(lane_vectors.shape[::-1]).T
    return list(np.ascontiguousarray(shuffled))


@evaluates_in("xegpu.alloc_nbarrier")
def alloc_nbarrier(lane: Lane, node: Node, *count: Any) -> None:
    """RFC: "allocates a set of named barriers with the specified number"."""
    barrier_count = (
        int(node.operand_kind(0).element.unsigned(np.asarray(count[0]))) if count else node.field("nbarrier_num")
    )
    lane.workgroup.named_barriers = max(lane.workgroup.named_barriers, barrier_count)


@dataclass(frozen=True)
class NamedBarrierValue:
    """A named barrier: its number, and the number of participating subgroups."""

    number: int
    participants: int


@evaluates("xegpu.init_nbarrier")
def init_nbarrier(node: Node, number: Any, participants: Any) -> NamedBarrierValue:
    """RFC: "returns one named barrier with the specified barrier ID"; "the input specifies the number of total
    participant threads"."""
    return NamedBarrierValue(int(number) & 0xFF, int(participants) & 0xFF)


@evaluates("xegpu.create_nbarrier")
def create_nbarrier(node: Node, number: Any, role: Any) -> NamedBarrierValue:
    """The older name of `init_nbarrier`, with threads that all arrive and wait."""
    return NamedBarrierValue(int(number) & 0xFF, node.field("num_producers"))


def _check_named(subgroup: EvaluatedSubgroup, barrier: NamedBarrierValue) -> None:
    count = subgroup.workgroup.named_barriers
    if barrier.number >= max(count, 1):
        raise Fault(f"uses named barrier {barrier.number}, but the kernel allocates {count}")


@controls("xegpu.nbarrier_arrive")
def nbarrier_arrive(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """RFC: "notifies other threads sharing the same named barrier that it has arrived"."""
    subgroup.check_together(lanes)
    barrier = frame.values[node.operands[0]][lanes[0]]
    _check_named(subgroup, barrier)
    subgroup.workgroup.barrier(barrier.number).signal(barrier.participants)
    return
    yield


@controls("xegpu.nbarrier_wait")
def nbarrier_wait(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """RFC: "waits until all other threads sharing the same named barrier have signaled the arrival"."""
    subgroup.check_together(lanes)
    barrier = frame.values[node.operands[0]][lanes[0]]
    yield from subgroup.workgroup.barrier(barrier.number).wait(subgroup, node)


# `xetile`: tiles of matrices, as whole arrays. Maps distribute tiles to subgroups, and never change a value.
#
# Source: docs/xetile.md, and the docstrings of the ops in `dialects/xetile`.


@evaluates_in("xetile.init_tile")
def init_tile(lane: Lane, node: Node, *operands: Any) -> EvaluatedBlock | ScatteredElements:
    """A tile of the innermost two dimensions of a memref or of a matrix at an address, or scattered elements."""
    operand_values = node.named(operands)
    tile: Tile = node.memo("tile", lambda: Tile.of(node.op.opview.tile))
    (source,) = operand_values["source"]
    if isinstance(source, MemRef):
        memory, address, element = source.memory, source.address, source.element
    else:
        memory, address, element = lane.launch.memory, int(source), element_of(tile.element)
    if tile.scattered:
        return ScatteredElements(
            memory, address + _indices(node, operand_values["indices"][0]) * element.bytes, element
        )
    offsets, shape, strides = (node.index_list(n, operand_values[n]) for n in ("offsets", "shape", "strides"))
    if isinstance(source, MemRef):
        shape, strides = shape or list(source.shape), strides or list(source.strides)
    base = address + sum(o * s for o, s in zip(offsets[:-2], strides[:-2])) * element.bytes
    return EvaluatedBlock(memory, base, tuple(shape[-2:]), tuple(strides[-2:]), tuple(offsets[-2:]), element)


def _padding(node: Node) -> Array:
    """The value of elements that are not accessed: the attribute's number, or zero."""
    element = node.element
    if "padding" not in node.op.attributes:
        return np.zeros((), element.dtype)
    number, _, element_name = node.field("padding").rpartition(" : ")
    if not element.is_float:
        return np.asarray(element.wrap(np.asarray(int(number, 0), np.int64)))
    if number.startswith("0x"):
        padding_element = element_of(element_name)
        bits = np.asarray(int(number, 16), f"u{padding_element.dtype.itemsize}").view(padding_element.dtype)
        return to_float(bits, padding_element, element)
    return to_float(np.asarray(float(number)), element_of("f64"), element)


def _accessed(
    tile: EvaluatedBlock | ScatteredElements, shape: tuple[int, ...], mask: Sequence[Array]
) -> tuple[Array, Array]:
    """The addresses of a tile's elements, and which of them are accessed: those in bounds, or where a mask is set.

    RFC: "the mask applies to the first dimension in memory and not the second dimension (Chunk Size)".
    """
    if isinstance(tile, EvaluatedBlock):
        offsets, inside = tile.element_offsets(shape)
        return tile.base + offsets * tile.element.bytes, inside
    return tile.addresses, np.broadcast_to(mask[0] if mask else True, shape)


@evaluates("xetile.load_tile", "xetile.load", "xegpu.load_gather")
def load(node: Node, tile: EvaluatedBlock | ScatteredElements, *mask: Array) -> Array:
    """Load a tile; out-of-bounds and masked elements are padding. RFC: "load data per each work item"; "the mask
    operand masks out memory access"."""
    addresses, active = _accessed(tile, node.shape, mask)
    elements = np.full(addresses.shape, _padding(node), tile.element.dtype)
    elements[active] = tile.element.from_memory(tile.memory.read(addresses[active], tile.element.memory))
    return elements


@evaluates("xetile.store_tile", "xetile.store", "xegpu.store_scatter")
def store(node: Node, value: Array, tile: EvaluatedBlock | ScatteredElements, *mask: Array) -> None:
    """Store a tile; out-of-bounds and masked elements are not written."""
    addresses, active = _accessed(tile, np.shape(value), mask)
    tile.memory.write(addresses[active], tile.element.to_memory(np.asarray(value)[active]))


@evaluates("xetile.atomic_rmw", "xegpu.atomic_rmw")
def atomic_rmw(node: Node, value: Array, tile: EvaluatedBlock | ScatteredElements, *operands_and_mask: Array) -> Array:
    """RFC: "atomically reads, modifies, and writes back data to the memory specified by the tensor_desc". Elements are
    updated in row-major order; those that are not accessed are zero in the result."""
    masked = node.op.opview.mask is not None
    addresses, active = _accessed(tile, np.shape(value), operands_and_mask[:masked])
    old_elements = np.zeros(addresses.shape, tile.element.dtype)
    update_operands = [np.asarray(e)[active] for e in operands_and_mask[masked:]]
    kind_name = node.field("kind").name.lower()
    old_elements[active] = atomic(
        tile.memory, addresses[active], kind_name, tile.element, np.asarray(value)[active], *update_operands
    )
    return old_elements


@evaluates_in("xetile.tile_mma")
def tile_mma(lane: Lane, node: Node, *operands: Array) -> Array:
    """`d = a x b`, or `d = a x b + c`, with the bits of dpas; with scales those of bdpas."""
    names = node.memo("factors", lambda: tuple(node.operand_kind(i).element.name for i in (0, 1)))
    groups = {name: np.asarray(operand[0]) for name, operand in node.named(operands).items() if operand}
    a, b, acc = groups.pop("a"), groups.pop("b"), groups.pop("c", None)
    return product(node, acc, a, b, names, lane.launch.model, groups)


evaluates("xetile.transpose")(MOVES["vector.transpose"])


@evaluates("xetile.convert_layout", "iree_vector_ext.to_layout")
def layout(node: Node, a: Array) -> Array:
    """The same value: a layout says who holds which element."""
    return a


@evaluates("xetile.reduction")
def reduction(node: Node, a: Array) -> Array:
    """Combine the elements along a dimension: each group of `reduction_size` consecutive ones, or all, block by block.

    Blocks of one size are combined element by element, neighbours first; then the elements of the result by halves.
    Lowered kernels use this order, unless a map divides the dimension among subgroups (docs/numerics.md).
    """
    (dim,) = node.field("dims")
    a, combining_kind, element = np.asarray(a), node.field("kind").value, node.element
    if node.shape[dim] > 1:
        size = a.shape[dim] // node.shape[dim]
        grouped = a.reshape(*a.shape[:dim], node.shape[dim], size, *a.shape[dim + 1 :])
        return reduced(node, combining_kind, element, np.moveaxis(grouped, dim + 1, 0))
    return reduced_along(node, combining_kind, element, a, dim)


def reduced_along(node: Node, combining_kind: str, element: ElementType, a: Array, dim: int) -> Array:
    """Combine all elements along a dimension, of which one is left, in the order of `xetile.reduction`."""
    lines, block = np.moveaxis(a, dim, 0), reduced_block(dim, element.bits)
    if is_sequential(node, combining_kind):
        return np.expand_dims(reduced(node, combining_kind, element, lines), dim)
    blocks = [lines[i : i + block] for i in range(0, len(lines), block)]
    full_blocks = [b for b in blocks if len(b) == len(blocks[0])]
    partials = [reduced(node, combining_kind, element, _tree(combining_kind, element, full_blocks))]
    partials += [reduced(node, combining_kind, element, b) for b in blocks[len(full_blocks) :]]
    return np.expand_dims(_tree(combining_kind, element, partials), dim)


def _tree(combining_kind: str, element: ElementType, values: Sequence[Array]) -> Array:
    """Combine all values, neighbours first."""
    partials = list(values)
    while len(partials) > 1:
        combined = [combine(combining_kind, element, a, b) for a, b in zip(partials[::2], partials[1::2])]
        partials = combined + ([partials[-1]] if len(partials) % 2 else [])
    return partials[0]


@evaluates("xetile.broadcast")
def broadcast(node: Node, a: Array) -> Array:
    """A matrix repeated along a dimension of size 1, or each of its elements repeated."""
    (dim,) = node.field("dims")
    repeats = node.shape[dim] // np.shape(a)[dim]
    return np.repeat(a, repeats, axis=dim)
