"""`vector`: shapes and positions of elements, reductions, and memory accesses.

Source: MLIR's documentation of the dialect, and docs/reference.md for the order of reductions.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.ir.builtin import CombiningKind
from xegpu_py.ir.element_movement import MOVES
from xegpu_py.numerics.formats import Array
from xegpu_py.reference import arith_math
from xegpu_py.reference.machine import RULES, CallFrame, EvaluatedSubgroup, Lanes, Node, Steps, controls, evaluates
from xegpu_py.reference.storage import ElementType, MemRef, UnsupportedOp, element_of, to_float

for _name, _move in MOVES.items():
    evaluates(_name)(_move)


@evaluates("vector.bitcast")
def bitcast(node: Node, a: Array) -> Array:
    """The same bits as elements of another width, along the innermost dimension; the lowest bits come first."""
    source, target = node.operand_kind(0).element, node.element
    if 8 in (source.bits % 8 + 8, target.bits % 8 + 8) and source.bits % 8 == 0 and target.bits % 8 == 0:
        return np.ascontiguousarray(a).view(target.dtype).reshape(node.shape)
    bits = _to_bits(np.asarray(a), source)
    return _from_bits(bits.reshape(*node.shape, target.bits), target)


def _to_bits(values: Array, element: ElementType) -> Array:
    patterns = element.unsigned(values) if not element.is_float else values.view(f"u{element.dtype.itemsize}")
    return np.asarray(patterns.astype(np.uint64)[..., None] >> np.arange(element.bits, dtype=np.uint64) & np.uint64(1))


def _from_bits(bits: Array, element: ElementType) -> Array:
    total = (bits << np.arange(element.bits, dtype=np.uint64)).sum(axis=-1, dtype=np.uint64)
    if element.is_float:
        return np.asarray(total.astype(f"u{element.dtype.itemsize}")).view(element.dtype)
    return element.wrap(np.asarray(total))


@evaluates("vector.step")
def step(node: Node) -> Array:
    """0, 1, 2, ..."""
    return np.arange(*node.shape, dtype=np.int64)


@evaluates("vector.create_mask")
def create_mask(node: Node, *bounds: Array) -> Array:
    """True where every index is less than its bound."""
    return _mask(node.shape, [int(b) for b in bounds])


@evaluates("vector.constant_mask")
def constant_mask(node: Node) -> Array:
    """True where every index is less than its constant bound."""
    return _mask(node.shape, node.attribute("mask_dim_sizes"))


def _mask(shape: Sequence[int], bounds: Sequence[int]) -> Array:
    mask_elements = np.ones(tuple(shape), bool)
    for index, bound in zip(np.indices(tuple(shape)), bounds):
        mask_elements &= index < bound
    return mask_elements


@evaluates("vector.outerproduct")
def outerproduct(node: Node, a: Array, b: Array, *acc: Array) -> Array:
    """All products of elements of two vectors, added to the accumulator by fma as `vector.contract` does."""
    column = np.asarray(a)[:, None] if np.ndim(b) else np.asarray(a)
    x, y = np.broadcast_to(column, node.shape), np.broadcast_to(np.asarray(b), node.shape)
    if not acc:
        return combine("mul", node.element, x, y)
    return multiply_add(node.word("kind") if "kind" in node.op.attributes else "add", node, x, y, acc[0])


def combine(combining_kind: str, element: ElementType, a: Array, b: Array) -> Array:
    """Combine two vectors element by element by a combining kind."""
    suffix = ("f" if element.is_float else "i") if combining_kind in ("add", "mul", "and", "or", "xor") else ""
    return arith_math.binary(combining_kind + suffix, element, a, b)


def by_halves(combining_kind: str, element: ElementType, rows: Array) -> Array:
    """Combine n rows: row i with row i + n/2, and so on; an odd last row is combined with the first of the result.

    This is the order of all reductions (docs/reference.md), unless the choice `reduction-order` is another one.
    """
    while len(rows) > 1:
        half = len(rows) // 2
        combined = combine(combining_kind, element, rows[:half], rows[half : 2 * half])
        if len(rows) % 2:
            combined = np.array(combined)
            combined[0] = combine(combining_kind, element, combined[0], rows[-1])
        rows = combined
    return np.asarray(rows[0])


def is_sequential(node: Node, combining_kind: str) -> bool:
    """Whether a reduction combines by increasing index, as its module may say."""
    return bool(node.memo("is_sequential", lambda: CombiningKind(combining_kind).is_sequential(node.op)))


def reduced(node: Node, combining_kind: str, element: ElementType, rows: Array, acc: Array | None = None) -> Array:
    """Combine rows by halves, and then with an accumulator. bf16 and 8-bit floats are summed in f32.

    A row alone keeps its bits, those of a NaN too. `node` is the op; its module may say that rows are combined by
    increasing index, beginning with the accumulator.
    """
    if len(rows) == 1 and acc is None:
        return np.asarray(rows[0])
    working = element
    if element.is_float and (element.name == "bf16" or element.bits < 16):
        working = element_of("f32")
        rows = to_float(rows, element, working)
        acc = None if acc is None else to_float(acc, element, working)
    if is_sequential(node, combining_kind):
        terms = [*([] if acc is None else [np.asarray(acc)]), *rows]
        result = np.asarray(functools.reduce(functools.partial(combine, combining_kind, working), terms))
        return to_float(result, working, element) if working != element else result
    result = np.asarray(by_halves(combining_kind, working, rows))
    if acc is not None:
        result = combine(combining_kind, working, np.asarray(acc), result)
    return to_float(result, working, element) if working != element else result


@evaluates("vector.reduction")
def reduction(node: Node, a: Array, *acc: Array) -> Array:
    """Combine all elements by halves, and then with the accumulator."""
    return reduced(node, node.word("kind"), node.element, a.reshape(-1), acc[0] if acc else None)


@evaluates("vector.multi_reduction")
def multi_reduction(node: Node, a: Array, acc: Array) -> Array:
    """Reduce some dimensions: combine their elements, in row-major order, by halves."""
    dims = node.attribute("reduction_dims")
    kept_dims = [d for d in range(a.ndim) if d not in dims]
    rows = np.transpose(a, (*dims, *kept_dims)).reshape(-1, *(a.shape[d] for d in kept_dims))
    return reduced(node, node.word("kind"), node.element, rows, acc)


def identity_of(combining_kind: str, element: ElementType) -> Array:
    """The identity of a combining kind."""
    return np.asarray(
        arith_math.number_of(CombiningKind(combining_kind).identity(ir.Type.parse(element.name)), element)
    )


def multiply_add(combining_kind: str, node: Node, a: Array, b: Array, c: Array) -> Array:
    """Combine `c` with `a * b`; floating-point addition is an fma."""
    if node.element.is_float and combining_kind == "add":
        return np.asarray(arith_math.fma(node, a, b, c))
    return combine(combining_kind, node.element, c, combine("mul", node.element, a, b))


@evaluates("vector.contract")
def contract(node: Node, a: Array, b: Array, acc: Array, *, mask: Array | None = None) -> Array:
    """Add products in row-major order of the reduced dimensions, as vector-lower-contract does."""
    maps = [[e.position for e in m.results] for m in node.attribute("indexing_maps")]
    result_dims = maps[2]
    sizes = {d: n for dims, v in zip(maps, (a, b)) for d, n in zip(dims, v.shape)}
    reduced_dims = sorted({d for dims in maps[:2] for d in dims} - set(result_dims))
    element, combining_kind = node.element, node.word("kind") if "kind" in node.op.attributes else "add"
    factors = []
    for dims, value, index in ((maps[0], a, 0), (maps[1], b, 1)):
        operand_element = node.operand_kind(index).element
        wide = (
            to_float(value, operand_element, element)
            if element.is_float
            else element.wrap(operand_element.signed(value))
        )
        factors.append((dims, wide))
    if mask is not None:
        factors.append((list(range(len(sizes))), mask))
    total = np.asarray(acc)
    for place in itertools.product(*(range(sizes[d]) for d in reduced_dims)):
        at = dict(zip(reduced_dims, place))
        x, y, *active = (_aligned(value, dims, at, result_dims, sizes) for dims, value in factors)
        total_ = multiply_add(combining_kind, node, x, y, total)
        total = np.where(active[0], total_, total) if active else total_
    return total


def _aligned(
    value: Array, dims: Sequence[int], at: dict[int, int], result_dims: Sequence[int], sizes: dict[int, int]
) -> Array:
    """An operand at one index of the reduced dimensions, broadcast to the shape of the result."""
    slice_of_value = value[tuple(at.get(d, slice(None)) for d in dims)]
    remaining_dims = [d for d in dims if d not in at]
    ordered = np.transpose(slice_of_value, [remaining_dims.index(d) for d in result_dims if d in remaining_dims])
    spread = ordered.reshape([sizes[d] if d in remaining_dims else 1 for d in result_dims])
    return np.broadcast_to(spread, [sizes[d] for d in result_dims])


def _element_indices(indices: Sequence[Any], shape: Sequence[int]) -> list[Array]:
    lead = len(indices) - len(shape)
    element_indices = np.indices(tuple(shape))
    return [np.asarray(int(i)) for i in indices[:lead]] + [
        int(i) + element_indices[d] for d, i in enumerate(indices[lead:])
    ]


@evaluates("vector.load")
def load(node: Node, memref: MemRef, *indices: Any) -> Array:
    """Consecutive elements."""
    return memref.load(_element_indices(indices, node.shape))


@evaluates("vector.store")
def store(node: Node, value: Array, memref: MemRef, *indices: Any) -> None:
    """Write consecutive elements."""
    memref.store(value, _element_indices(indices, value.shape))


def _access(memref: MemRef, indices: Sequence[Array], mask: Array) -> list[Array]:
    return [np.broadcast_to(p, mask.shape)[mask] for p in indices]


def read_masked(memref: MemRef, indices: Sequence[Array], mask: Array, otherwise: Array) -> Array:
    """The elements of a memref where a mask is set, and given elements elsewhere."""
    elements = np.array(np.broadcast_to(otherwise, mask.shape))
    elements[mask] = memref.load(_access(memref, indices, mask))
    return elements


def write_masked(memref: MemRef, indices: Sequence[Array], mask: Array, value: Array) -> None:
    """Write elements of a memref where a mask is set."""
    memref.store(value[mask], _access(memref, indices, mask))


@evaluates("vector.maskedload")
def maskedload(node: Node, memref: MemRef, *operands: Any) -> Array:
    """Load consecutive elements where the mask is set; the others are given."""
    *indices, mask, otherwise = operands
    return read_masked(memref, _element_indices(indices, node.shape), mask, otherwise)


@evaluates("vector.maskedstore")
def maskedstore(node: Node, memref: MemRef, *operands: Any) -> None:
    """Write consecutive elements where the mask is set."""
    *indices, mask, value = operands
    write_masked(memref, _element_indices(indices, value.shape), mask, value)


def _with_index_vector(indices: Sequence[Any], places: Array) -> list[Array]:
    return [np.asarray(int(i)) for i in indices[:-1]] + [int(indices[-1]) + np.asarray(places, np.int64)]


@evaluates("vector.gather")
def gather(node: Node, memref: MemRef, *operands: Any) -> Array:
    """Load elements at indices along the innermost dimension; where the mask is clear they are given."""
    *indices, index_vector, mask, otherwise = operands
    return read_masked(memref, _with_index_vector(indices, index_vector), mask, otherwise)


@evaluates("vector.scatter")
def scatter(node: Node, memref: MemRef, *operands: Any) -> None:
    """Write elements, in order, at indices along the innermost dimension where the mask is set."""
    *indices, index_vector, mask, value = operands
    write_masked(memref, _with_index_vector(indices, index_vector), mask, value)


@evaluates("vector.scan")
def scan(node: Node, values: Array, initial: Array) -> tuple[Array, Array]:
    """Each slice along a dimension combined with those before it, and the last result."""
    slices = list(np.moveaxis(np.asarray(values), node.attribute("reduction_dim"), 0))
    if not node.attribute("inclusive"):
        slices = [np.asarray(initial), *slices[:-1]]
    prefixes = slices[:1]
    for slice_ in slices[1:]:
        prefixes.append(combine(node.word("kind"), node.element, prefixes[-1], slice_))
    return np.moveaxis(np.stack(prefixes), 0, node.attribute("reduction_dim")), prefixes[-1]


@evaluates("vector.expandload")
def expandload(node: Node, memref: MemRef, *operands: Any) -> Array:
    """Load consecutive elements into the positions whose mask bit is set."""
    *indices, mask, otherwise = operands
    return read_masked(memref, _with_index_vector(indices, np.cumsum(mask) - 1), mask, otherwise)


@evaluates("vector.compressstore")
def compressstore(node: Node, memref: MemRef, *operands: Any) -> None:
    """Write the elements whose mask bit is set, contiguously."""
    *indices, mask, value = operands
    write_masked(memref, _with_index_vector(indices, np.cumsum(mask) - 1), mask, value)


def _transfer(
    node: Node, memref: MemRef, indices: Sequence[Any], shape: Sequence[int], mask: Array | None
) -> tuple[list[Array], Array]:
    """The indices of a transfer's elements in a memref, and which of them are accessed."""
    dims = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in node.attribute("permutation_map").results]
    bounded = node.attribute("in_bounds", [False] * len(dims))
    coordinates = [np.asarray(int(i)) for i in indices]
    active = np.ones(tuple(shape), bool)
    for i, (d, index) in enumerate(zip(dims, np.indices(tuple(shape)))):
        if d is None:
            continue
        coordinates[d] = int(indices[d]) + index
        if not bounded[i]:
            active &= (coordinates[d] >= 0) & (coordinates[d] < memref.shape[d])
    if mask is not None:
        active &= _in_vector(node, mask, shape)
    return coordinates, active


def _in_vector(node: Node, mask: Array, shape: Sequence[int]) -> Array:
    """A transfer's mask, whose dimensions are ordered as in memory, in the order of the vector's dimensions."""
    dims = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in node.attribute("permutation_map").results]
    order = [i for _, i in sorted((d, i) for i, d in enumerate(dims) if d is not None)]
    transposed = np.transpose(mask.reshape([shape[i] for i in order]), np.argsort(order)) if order else mask.reshape(())
    return transposed.reshape([n if i in order else 1 for i, n in enumerate(shape)])


@evaluates("vector.transfer_read")
def transfer_read(node: Node, *operands: Any, mask: Array | None = None) -> Array:
    """Read a part of a memref; out-of-bounds and masked elements are padding."""
    (memref,), indices, (padding,), masks = node.groups(operands)
    coordinates, active = _transfer(
        node, memref, indices, node.shape, mask if mask is not None else (masks or [None])[0]
    )
    return read_masked(memref, coordinates, active, padding)


@evaluates("vector.transfer_write")
def transfer_write(node: Node, *operands: Any, mask: Array | None = None) -> None:
    """Write a part of a memref; out-of-bounds and masked elements are not written."""
    (value,), (memref,), indices, masks = node.groups(operands)
    coordinates, active = _transfer(
        node, memref, indices, value.shape, mask if mask is not None else (masks or [None])[0]
    )
    write_masked(memref, coordinates, active, np.asarray(value))


@controls("vector.mask")
def mask(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """Evaluate one op for the masked elements; the others of its result are passed through, or left out."""
    body = node.regions[0][0]
    for lane in lanes:
        mask_value, *passthru = [frame.values[p][lane] for p in node.operands]
        result: Any = None
        for masked_node in body.nodes:
            operands = [frame.values[p][lane] for p in masked_node.operands]
            result = _masked(masked_node, operands, mask_value)
            if passthru:
                element_mask = (
                    _in_vector(masked_node, mask_value, masked_node.shape)
                    if masked_node.name == "vector.transfer_read"
                    else mask_value
                )
                result = np.where(element_mask, result, passthru[0])
            frame.set(masked_node.results, result, lane)
        if node.results:
            frame.give(node.results, body.end.operands, (lane,))
    return
    yield


def _masked(node: Node, operands: list[Any], mask: Array) -> Any:
    if node.name in ("vector.transfer_read", "vector.transfer_write", "vector.contract"):
        return RULES[node.name][1](node, *operands, mask=mask)
    if node.name == "vector.outerproduct":
        accumulated = outerproduct(node, *operands)
        return np.where(mask, accumulated, operands[2]) if len(operands) > 2 else accumulated
    if node.name in ("vector.multi_reduction", "vector.reduction"):
        source, *operands_left = operands
        identity = identity_of(node.word("kind"), node.operand_kind(0).element)
        rule = multi_reduction if node.name == "vector.multi_reduction" else reduction
        return rule(node, np.where(mask, source, identity), *operands_left)
    if node.name == "vector.gather":
        memref, *operands_left = operands
        *indices, index_vector, own_mask, otherwise = operands_left
        return read_masked(memref, _with_index_vector(indices, index_vector), own_mask & mask, otherwise)
    raise UnsupportedOp(f"has no rule for '{node.name}' in it")
