"""The meaning of tt, Triton's dialect: a program is a workgroup of one lane, tensors are arrays, pointers addresses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xegpu_py.dialects.tt import (
    PACKED,
    DescriptorReduceKind,
    InputPrecision,
    PaddingOption,
    PropagateNan,
    RMWOp,
    RoundingMode,
    ScaleDotElemType,
    TensorDesc,
)
from xegpu_py.ir.builtin import CombiningKind
from xegpu_py.numerics.formats import Array
from xegpu_py.numerics.libdevice import LIBDEVICE_OPS
from xegpu_py.reference import arith_math
from xegpu_py.reference.arith_math import apply, multiply_add
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
)
from xegpu_py.reference.memref import atomic
from xegpu_py.reference.storage import (
    AddressSpace,
    ElementType,
    FailedAssertion,
    Fault,
    UnsupportedOp,
    element_of,
    to_float,
)
from xegpu_py.reference.xegpu_xetile import multiplied, reduced_along

# Conversions and arithmetic. Integers wrap around; addresses have 64 bits.


@evaluates("tt.int_to_ptr", "tt.ptr_to_int")
def same(node: Node, a: Array) -> Array:
    """The same numbers: a pointer is an address."""
    return a


@evaluates("tt.bitcast")
def bitcast(node: Node, a: Array) -> Array:
    """The same bits as numbers of another type."""
    source, target = node.operand_kind(0).element, node.element
    if source.bits == 1 or target.bits == 1:
        return target.wrap(np.asarray(a).astype(np.int8))
    return np.ascontiguousarray(a).view(target.dtype).reshape(np.shape(a))


@evaluates("tt.fp_to_fp")
def fp_to_fp(node: Node, a: Array) -> Array:
    """Rounded to nearest even or toward zero; numbers too great for 8 bits, and infinity, become the greatest."""
    source, target = node.operand_kind(0).element, node.element
    found = to_float(a, source, target)
    wide, back = (to_float(v, kind, element_of("f64")) for v, kind in ((a, source), (found, target)))
    assert target.format
    if node.field("rounding") == RoundingMode.rtz:
        # The next number toward zero, where the nearest one is farther from zero: the pattern before.
        over = np.abs(back) > np.abs(wide)
        bits = np.ascontiguousarray(found).view(f"u{target.dtype.itemsize}")
        found = (bits - over.astype(bits.dtype)).view(target.dtype)
        back = to_float(found, target, element_of("f64"))
    if target.bits == 8:
        most = target.format.finite
        lost = ~np.isnan(wide) & ~(np.abs(back) <= most)
        limit = to_float(np.where(np.signbit(wide), -most, most), element_of("f64"), target)
        found = np.where(lost, limit, found).astype(target.dtype)
    return np.asarray(found).reshape(np.shape(a))


@evaluates("tt.clampf")
def clampf(node: Node, x: Array, least: Array, most: Array) -> Array:
    """The number, or the nearer end of the range; NaN only where it is asked for."""
    low, high = ("maximumf", "minimumf") if node.field("propagateNan") == PropagateNan.all else ("maxnumf", "minnumf")
    return arith_math.binary(high, node.element, arith_math.binary(low, node.element, x, least), most)


@evaluates("tt.precise_sqrt")
def precise_sqrt(node: Node, x: Array) -> Array:
    """The square root, rounded once."""
    return apply("math.sqrt", node.element, x)


@evaluates("tt.precise_divf", "tt.approx_divf")
def divf(node: Node, x: Array, y: Array) -> Array:
    """The quotient, rounded once."""
    return arith_math.binary("divf", node.element, x, y)


@evaluates("tt.mulhiui")
def mulhiui(node: Node, x: Array, y: Array) -> Array:
    """The upper half of the product of unsigned numbers."""
    product = np.asarray(node.element.unsigned(x), object) * np.asarray(node.element.unsigned(y), object)
    return node.element.wrap(np.asarray(product >> node.element.bits).astype(np.uint64))


@evaluates("tt.addptr")
def addptr(node: Node, pointers: Array, offset: Array) -> Array:
    """Addresses moved by signed offsets, in elements of the pointee."""
    pointee = pointee_of(node, node.op.results[0])
    return np.asarray(pointers + node.operand_kind(1).element.signed(offset).astype(np.int64) * pointee.bytes)


def pointee_of(node: Node, value: Any) -> ElementType:
    """The element that pointers point to."""
    return node.memo(("pointee", value), lambda: element_of(re.findall(r"!tt\.ptr<([^,>]+)", str(value.type))[0]))


_SYMBOL = re.compile(r"__nv_(?:fast_)?(\w+)\Z")

_OPS = {**LIBDEVICE_OPS, "sqrt_rn": "math.sqrt", "div_rn": "arith.divf", "fdiv": "arith.divf", "fdividef": "arith.divf"}


@evaluates("tt.extern_elementwise")
def extern_elementwise(node: Node, *operands: Array) -> Array:
    """A function of libdevice by its symbol, with the bits of the function of MLIR's `math` that it is."""
    symbol = node.field("symbol")
    m = _SYMBOL.match(symbol)
    name = m[1] if m else ""
    for spelled in (name, name.removesuffix("f")):
        op = _OPS.get(spelled, "")
        if arith_math.is_function(op):
            return apply(op, node.element, *operands)
    raise UnsupportedOp(f"calls '{symbol}', which the reference evaluator does not know")


@evaluates("tt.elementwise_inline_asm")
def inline_asm(node: Node, *operands: Array) -> Array:
    """Assembly of another machine has no meaning here."""
    raise UnsupportedOp("is assembly of another machine, which the reference evaluator does not implement")


# Sources.


@evaluates("tt.make_range")
def make_range(node: Node) -> Array:
    """Consecutive integers."""
    return np.arange(node.field("start"), node.field("end"), dtype=np.int32)


@evaluates_in("tt.get_program_id")
def get_program_id(lane: Lane, node: Node) -> Array:
    """The workgroup's place in the grid."""
    return np.asarray(lane.workgroup.position[node.field("axis")], np.int32)


@evaluates_in("tt.get_num_programs")
def get_num_programs(lane: Lane, node: Node) -> Array:
    """The number of workgroups."""
    return np.asarray(lane.launch.grid[node.field("axis")], np.int32)


# Elements that move.


@evaluates("tt.splat", "tt.broadcast")
def repeated(node: Node, a: Array) -> Array:
    """Repeated in the result's shape."""
    return np.broadcast_to(a, node.shape)


@evaluates("tt.unsplat", "tt.expand_dims", "tt.reshape")
def reshaped(node: Node, a: Array) -> Array:
    """The same elements in row-major order."""
    return np.reshape(a, node.shape)


@evaluates("tt.cat")
def cat(node: Node, a: Array, b: Array) -> Array:
    """One after the other along the first dimension."""
    return np.concatenate([a, b])


@evaluates("tt.join")
def join(node: Node, a: Array, b: Array) -> Array:
    """Pairs along a new last dimension."""
    return np.stack([a, b], -1)


@evaluates("tt.split")
def split(node: Node, a: Array) -> tuple[Array, Array]:
    """The first and the second of all pairs."""
    return a[..., 0], a[..., 1]


@evaluates("tt.trans")
def trans(node: Node, a: Array) -> Array:
    """Dimensions in another order."""
    return np.transpose(a, node.field("order"))


@evaluates("tt.gather")
def gather(node: Node, a: Array, indices: Array) -> Array:
    """The elements that indices name along an axis."""
    axis, size = node.field("axis"), a.shape[node.field("axis")]
    if ((indices < 0) | (indices >= size)).any():
        raise Fault(f"has an index outside of 0 to {size - 1}")
    place: list[Array] = list(np.indices(indices.shape, sparse=True))
    place[axis] = indices
    return a[tuple(place)]


@evaluates("tt.histogram")
def histogram(node: Node, a: Array, mask: Array | None = None) -> Array:
    """The number of elements of each value; those outside of the bins are not counted."""
    (bins,) = node.shape
    chosen = a.ravel() if mask is None else a[mask]
    return node.element.wrap(np.bincount(chosen[(chosen >= 0) & (chosen < bins)], minlength=bins))


# Memory.


def _masked(mask: Array | None, shape: tuple[int, ...]) -> Array:
    return np.ones(shape, bool) if mask is None else np.broadcast_to(np.asarray(mask, bool), shape)


@evaluates_in("tt.load", "tt.atomic_load")
def load(lane: Lane, node: Node, *operands: Array) -> Array:
    """The elements in memory; where the mask is false those of `other`, or zeros."""
    given = node.named(operands)
    (pointers,), element = given["ptr"], node.element
    mask = _masked(next(iter(given["mask"]), None), np.shape(pointers))
    other = given.get("other") or [np.zeros((), element.dtype)]
    found = np.array(np.broadcast_to(other[0], np.shape(pointers)), element.dtype)
    found[mask] = element.from_memory(lane.launch.memory.read(np.asarray(pointers)[mask], element.memory))
    return found


@evaluates_in("tt.store", "tt.atomic_store")
def store(lane: Lane, node: Node, *operands: Array) -> None:
    """Write elements in order, where the mask is true."""
    given = node.named(operands)
    (pointers,), (value,) = given["ptr"], given["value"]
    mask = _masked(next(iter(given["mask"]), None), np.shape(pointers))
    element = node.operand_kind(1).element
    lane.launch.memory.write(np.asarray(pointers)[mask], element.to_memory(np.asarray(value)[mask]))


_UPDATES = {
    RMWOp["and"]: "andi", RMWOp["or"]: "ori", RMWOp["xor"]: "xori", RMWOp.add: "addi", RMWOp.fadd: "addf",
    RMWOp.max: "maxs", RMWOp.min: "mins", RMWOp.umax: "maxu", RMWOp.umin: "minu", RMWOp.exch: "assign",
}  # fmt: skip


@evaluates_in("tt.atomic_rmw")
def atomic_rmw(lane: Lane, node: Node, pointers: Array, value: Array, mask: Array | None = None) -> Array:
    """Update elements in order, where the mask is true; the result is the old elements, or zeros."""
    chosen, element = _masked(mask, np.shape(pointers)), node.element
    found = np.zeros(np.shape(pointers), element.dtype)
    kind = _UPDATES[node.field("atomic_rmw_op")]
    found[chosen] = atomic(lane.launch.memory, np.asarray(pointers)[chosen], kind, element, np.asarray(value)[chosen])
    return found


@evaluates_in("tt.atomic_cas")
def atomic_cas(lane: Lane, node: Node, pointers: Array, expected: Array, value: Array) -> Array:
    """Write elements in order where memory has the expected bits; the result is the old elements."""
    addresses = np.asarray(pointers)
    return atomic(lane.launch.memory, addresses, "assign", node.element, np.asarray(value), np.asarray(expected))


@evaluates_in("tt.atomic_poll")
def atomic_poll(lane: Lane, node: Node, pointers: Array, expected: Array, timeout: Array | None = None) -> Array:
    """Whether memory has the expected numbers. Workgroups run one after the other: none comes while this one waits."""
    element = node.operand_kind(1).element
    found = element.from_memory(lane.launch.memory.read(np.asarray(pointers), element.memory)) == expected
    if timeout is None and not np.all(found):
        raise Fault("waits forever for a number that no workgroup before this one has written")
    return np.asarray(found)


@evaluates("tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents", "ttg.barrier")
def nothing(node: Node) -> None:
    """Orders nothing: launches, and all threads of a program, run in order."""


@dataclass(frozen=True)
class DescriptorValue:
    """A descriptor of a tensor in memory: its first address, shape, strides in elements, and what is outside of it."""

    memory: AddressSpace
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: ElementType
    outside: Any = 0

    def element_offsets(self, indices: Sequence[Any]) -> tuple[Array, Array]:
        """The addresses of elements, and which of them are inside; an array of indices for each dimension."""
        inside: Any = np.asarray(True)
        address: Any = np.int64(self.address)
        for index, extent, stride in zip(indices, self.shape, self.strides):
            inside = inside & (index >= 0) & (index < extent)
            address = address + np.asarray(index, np.int64) * (stride * self.element.bytes)
        return address, inside

    def load(self, indices: Sequence[Any]) -> Array:
        """The elements at indices; outside of the shape the padding."""
        addresses, inside = self.element_offsets(indices)
        found = np.full(inside.shape, self.outside, self.element.dtype)
        found[inside] = self.element.from_memory(self.memory.read(addresses[inside], self.element.memory))
        return found

    def store(self, indices: Sequence[Any], values: Array) -> None:
        """Write the elements at indices that are inside of the shape."""
        addresses, inside = self.element_offsets(indices)
        self.memory.write(addresses[inside], self.element.to_memory(values[inside]))


@evaluates_in("tt.make_tensor_descriptor")
def make_tensor_descriptor(lane: Lane, node: Node, *operands: Array) -> DescriptorValue:
    """A descriptor of a tensor at a pointer."""
    given = node.named(operands)
    shape, strides = (tuple(int(n) for n in given[name]) for name in ("shape", "strides"))
    element = element_of(TensorDesc.of(node.op.results[0]).element)
    outside = np.nan if node.field("padding") == PaddingOption.nan and element.is_float else 0
    return DescriptorValue(lane.launch.memory, int(given["base"][0]), shape, strides, element, outside)


def _block(node: Node, first: Sequence[Array]) -> list[Array]:
    shape = node.memo("block", lambda: TensorDesc.of(node.op.opview.desc).shape)
    return [int(start) + index for start, index in zip(first, np.indices(shape))]


@evaluates("tt.descriptor_load")
def descriptor_load(node: Node, desc: DescriptorValue, *indices: Array) -> Array:
    """A block."""
    return desc.load(_block(node, indices)).reshape(node.shape)


@evaluates("tt.descriptor_store")
def descriptor_store(node: Node, desc: DescriptorValue, value: Array, *indices: Array) -> None:
    """Write a block."""
    places = _block(node, indices)
    desc.store(places, np.reshape(value, places[0].shape))


@evaluates("tt.descriptor_reduce")
def descriptor_reduce(node: Node, desc: DescriptorValue, value: Array, *indices: Array) -> None:
    """Update a block's elements that are inside of the shape, in order."""
    places, kind = _block(node, indices), node.field("kind")
    addresses, inside = desc.element_offsets(places)
    values = np.reshape(value, inside.shape)[inside]
    name = kind.name
    if kind in (DescriptorReduceKind.inc, DescriptorReduceKind.dec):
        raise UnsupportedOp(f"updates by '{name}', which the reference evaluator does not implement")
    element = desc.element
    letter = "f" if element.is_float else "i" if name in ("add", "and", "or", "xor") else ""
    suffix = "numf" if letter == "f" and name in ("min", "max") else letter or ("u" if element.name[0] == "u" else "s")
    atomic(desc.memory, addresses[inside], name + suffix, element, values)


@evaluates("tt.descriptor_gather")
def descriptor_gather(node: Node, desc: DescriptorValue, rows: Array, column: Array) -> Array:
    """Rows of a matrix, from a column on."""
    return desc.load(_rows(node.shape, rows, column))


@evaluates("tt.descriptor_scatter")
def descriptor_scatter(node: Node, desc: DescriptorValue, rows: Array, column: Array, value: Array) -> None:
    """Write rows of a matrix, from a column on."""
    desc.store(_rows(value.shape, rows, column), value)


def _rows(shape: tuple[int, ...], rows: Array, column: Array) -> list[Array]:
    row, offset = np.indices(shape)
    return [np.asarray(rows, np.int64)[row], int(column) + offset]


# Regions that combine numbers.

_BY_ELEMENT = ("arith.", "math.", "tt.bitcast", "tt.fp_to_fp", "tt.clampf", "tt.precise_", "tt.mulhiui")


def _run_region(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lane: int, given: Sequence[Array]) -> Steps:
    """Run a region for numbers, or for all elements of arrays at once where its ops allow that; what it returns."""
    blocks = node.regions[0]
    at_once = node.memo(
        "at once", lambda: len(blocks) == 1 and all(n.name.startswith(_BY_ELEMENT) for n in blocks[0].nodes)
    )
    arrays = np.broadcast_arrays(*given)
    shape = arrays[0].shape
    places = [()] if at_once or not shape else list(np.ndindex(shape))
    found: list[list[Array]] = []
    for place in places:
        for argument, array in zip(blocks[0].arguments, given if at_once else [a[place] for a in arrays]):
            frame.values[argument][lane] = np.asarray(array)
        ends = yield from subgroup.region(frame, blocks, (lane,))
        found.append([np.asarray(frame.values[p][lane]) for p in ends[lane].operands])
    if at_once:
        return [np.broadcast_to(v, shape) for v in found[0]]
    return [np.array([row[i] for row in found]).reshape(shape) for i in range(len(found[0]))]


def _single_kind(node: Node) -> str | None:
    """The kind of a region that is one op of arith on its two arguments."""
    (block,) = node.regions[0]
    if len(block.nodes) != 1 or tuple(block.nodes[0].operands) != block.arguments:
        return None
    name = block.nodes[0].name.removeprefix("arith.")
    try:
        return CombiningKind.of_atomic(name).value
    except ValueError:
        return None


@controls("tt.reduce")
def reduce(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """Combine elements as xetile.reduction does, if the region is one op; otherwise by halves."""
    (lane,), axis = lanes, node.field("axis")
    sources = [np.moveaxis(frame.values[p][lane], axis, 0) for p in node.operands]
    kind = node.memo("kind", lambda: _single_kind(node))
    if kind is not None:
        found = [np.squeeze(reduced_along(node, kind, node.element, frame.values[node.operands[0]][lane], axis), axis)]
    else:
        while len(sources[0]) > 1:
            half = len(sources[0]) // 2
            pairs = [*(s[:half] for s in sources), *(s[half:] for s in sources)]
            sources = yield from _run_region(subgroup, frame, node, lane, pairs)
        found = [s[0] for s in sources]
    frame.set(node.results, found[0] if len(found) == 1 else tuple(found), lane)


@controls("tt.scan")
def scan(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """Combine each element with the result before it."""
    (lane,), axis = lanes, node.field("axis")
    sources = [np.moveaxis(frame.values[p][lane], axis, 0) for p in node.operands]
    order = range(len(sources[0]))
    if node.field("reverse"):
        order = order[::-1]
    found = [np.array(s) for s in sources]
    for before, place in itertools.pairwise(order):
        pairs = [*(f[before] for f in found), *(s[place] for s in sources)]
        for result, value in zip(found, (yield from _run_region(subgroup, frame, node, lane, pairs))):
            result[place] = value
    results = [np.moveaxis(f, 0, axis) for f in found]
    frame.set(node.results, results[0] if len(results) == 1 else tuple(results), lane)


@controls("tt.map_elementwise")
def map_elementwise(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """Run the region for each pack of neighbours along the last dimension."""
    (lane,), pack = lanes, node.field("pack")
    sources = [np.asarray(frame.values[p][lane]) for p in node.operands]
    shape = sources[0].shape
    given = [s.reshape(-1, pack)[:, i] for s in sources for i in range(pack)]
    made = yield from _run_region(subgroup, frame, node, lane, given)
    results = [np.stack(made[i : i + pack], -1).reshape(shape) for i in range(0, len(made), pack)]
    frame.set(node.results, results[0] if len(results) == 1 else tuple(results), lane)


# Products of matrices.


@evaluates_in("tt.dot")
def dot(lane: Lane, node: Node, a: Array, b: Array, c: Array) -> Array:
    """The product added to `c`: f32 and f64 by one fma each in the order of K, or as the precision says."""
    elements = node.memo("factors", lambda: tuple(node.operand_kind(i).element for i in (0, 1)))
    precision = node.field("inputPrecision")
    return _batched(lambda x, y, z: _product(node, elements, precision, lane.launch.model, x, y, z), a, b, c)


def _batched(multiply: Callable[..., Array], *operands: Array) -> Array:
    if operands[0].ndim == 2:
        return multiply(*operands)
    return np.stack([multiply(*matrices) for matrices in zip(*operands)])


_SPLIT = {
    InputPrecision.tf32: ("tf32", 1), InputPrecision.tf32x3: ("tf32", 2),
    InputPrecision.bf16x3: ("bf16", 2), InputPrecision.bf16x6: ("bf16", 3),
}  # fmt: skip
"""The type of the parts of a f32, and their number."""


def _product(
    node: Node, elements: tuple[ElementType, ElementType], precision: Any, model: Any, a: Array, b: Array, c: Array
) -> Array:
    one, other = elements
    if one.name == "f64" or (one.name == "f32" and precision not in _SPLIT):
        for k in range(a.shape[1]):
            c = multiply_add(one, a[:, k, None], b[k, None, :], c)
        return c
    if one.name == "f32":
        name, count = _SPLIT[precision]
        left, right = (_parts(v, one, element_of(name), count) for v in (a, b))
        # The smallest products first.
        for level in range(count - 1, -1, -1):
            for i in range(level, -1, -1):
                c = multiplied(node, c, left[i], right[level - i], (name, name), model)
        return c
    return multiplied(node, c, a, b, (one.name, other.name), model)


def _parts(value: Array, element: ElementType, narrow: ElementType, count: int) -> list[Array]:
    """A sum of numbers of a narrower type, the greatest first."""
    found = []
    for _ in range(count):
        found.append(to_float(value, element, narrow))
        value = value - to_float(found[-1], narrow, element)
    return found


_FORMATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "e2m1": "f4E2M1FN", "bf16": "bf16", "fp16": "f16"}


@evaluates_in("tt.dot_scaled")
def dot_scaled(lane: Lane, node: Node, *operands: Array) -> Array:
    """The product of elements times their scales, in bf16, or in tf32 where one factor is fp16; added in f32."""
    given = node.named(operands)
    (a,), (b,), (c,) = given["a"], given["b"], given["c"]
    kinds = node.field("a_elem_type"), node.field("b_elem_type")
    scaled = bool(given["a_scale"] or given["b_scale"])
    halves = ScaleDotElemType.fp16 in kinds
    wide = "tf32" if halves and (scaled or ScaleDotElemType.bf16 in kinds) else "f16" if halves else "bf16"
    left = _factor(a, kinds[0], -1 if node.field("lhs_k_pack") else -2)
    right = _factor(b, kinds[1], -2 if node.field("rhs_k_pack") else -1)
    if given["a_scale"]:
        left = _times(left, given["a_scale"][0], node.operand_kind(3).element)
    if given["b_scale"]:
        scale, element = given["b_scale"][0], node.operand_kind(len(operands) - 1).element
        right = np.swapaxes(_times(np.swapaxes(right, -1, -2), scale, element), -1, -2)
    one, other = (to_float(v, element_of("f64"), element_of(wide)) for v in (left, right))
    model = lane.launch.model
    return _batched(lambda x, y, z: multiplied(node, z, x, y, (wide, wide), model), one, other, c)


def _factor(values: Array, kind: ScaleDotElemType, packed: int) -> Array:
    """The elements of a factor as f64; two of e2m1 are in a byte, the first one in the low bits."""
    if kind.name not in _FORMATS:
        raise UnsupportedOp(f"has factors of type {kind.name}, which the reference evaluator does not implement")
    element = element_of(_FORMATS[kind.name])
    values = np.ascontiguousarray(values)
    if kind in PACKED:
        bits = values.view(np.uint8)
        shape = list(bits.shape)
        shape[packed] *= 2
        values = np.stack([bits & 15, bits >> 4], packed).reshape(shape)
    return to_float(np.ascontiguousarray(values).view(element.dtype), element, element_of("f64"))


def _times(values: Array, scales: Array, element: ElementType) -> Array:
    """Elements times the scales of their rows: numbers, or bytes of powers of two 2^(s - 127), NaN where s is 255."""
    if element.name.startswith("f"):
        factors = to_float(scales, element, element_of("f64"))
    else:
        bytes_ = np.asarray(scales).view(np.uint8)
        factors = np.where(bytes_ == 255, np.nan, np.exp2(bytes_.astype(np.float64) - 127))
    return values * np.repeat(factors, values.shape[-1] // factors.shape[-1], -1)


# Output.


@evaluates_in("tt.print")
def print_(lane: Lane, node: Node, *operands: Array) -> None:
    """A line for each element, with the program's place and the element's."""
    place, prefix = lane.workgroup.position, node.field("prefix")
    lines = [] if operands else [f"pid {place}{prefix}"]
    for i, value in enumerate(operands):
        element = node.operand_kind(i).element
        for index in np.ndindex(np.shape(value)):
            number = np.asarray(value)[index]
            at = f" idx ({', '.join(map(str, index))})" if index else ""
            operand = f"(operand {i}) " if len(operands) > 1 else ""
            lines.append(f"pid {place}{at}{prefix}{operand}{_shown(node, i, element, number)}")
    lane.subgroup.printed.append("".join(f"{line}\n" for line in lines))


def _shown(node: Node, operand: int, element: ElementType, number: Any) -> str:
    if element.is_float:
        return f"{float(to_float(np.asarray(number), element, element_of('f64'))):f}"
    signed = node.field("isSigned")[operand]
    value = int((element.signed if signed else element.unsigned)(np.asarray(number)))
    if node.field("hex"):
        return f"{value & (1 << element.bits) - 1:#0{element.bits // 4 + 2}x}"
    return str(value)


@evaluates("tt.assert")
def assert_(node: Node, condition: Array) -> None:
    """A fault if the condition is false anywhere."""
    if not np.all(condition):
        raise FailedAssertion(node.field("message"))


@evaluates("llvm.intr.assume")
def assume(node: Node, condition: Array) -> None:
    """A fault if the assumption is wrong: optimisations may rely on it."""
    if not condition:
        raise Fault("assumes what does not hold")
