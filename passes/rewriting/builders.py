"""Builders of common ops, and their copies, replacements and expansions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from mlir import ir

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.types import slm_space
from xegpu_py.ir.builtin import (
    CombiningKind,
    element_type,
    enum_attribute,
    number_attribute,
    rounding_problem,
    strides_of,
)
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.element_movement import View
from xegpu_py.ir.module import walk
from xegpu_py.numerics.formats import E8M0
from xegpu_py.passes.analysis.ir_queries import attributes_of, constant_of, defining_op, element_of, shape_of
from xegpu_py.target import TARGETS

if TYPE_CHECKING:
    from mlir.dialects import scf
else:
    scf = deferred("mlir.dialects.scf")

# Builders of common ops at the current insertion point and location.
#
# They fold constants: a constant index may be an int, and an op without an effect, such as x + 0, is not built.

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""The predicates of arith.cmpi and index.cmp, by their numbers."""

FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
"""The predicates of arith.cmpf, by their numbers."""

Index: TypeAlias = ir.Value | int
"""An index, or an int if it is constant."""


def create(
    name: str,
    results: Sequence[ir.Type],
    operands: Sequence[ir.Value],
    attributes: Mapping[str, ir.Attribute] | None = None,
    regions: int = 0,
) -> ir.Operation:
    """A new op."""
    return ir.Operation.create(name, results, operands, attributes, None, regions)


def make(name: str, result: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    """A new op's only result."""
    return ir.Operation.create(name, [result], operands, attributes).results[0]


def create_like(op: ir.Operation, results: Sequence[ir.Type], operands: Sequence[ir.Value]) -> ir.Operation:
    """An op of the same name and attributes."""
    return ir.Operation.create(op.name, results, operands, attributes_of(op))


# Types and attributes.


def integer_type(width: int) -> ir.IntegerType:
    """A signless integer type."""
    return ir.IntegerType.get_signless(width)


def index_type() -> ir.IndexType:
    """The type `index`."""
    return ir.IndexType.get()


def vector_type(shape: Sequence[int], element: ir.Type) -> ir.VectorType:
    """A vector type."""
    return ir.VectorType.get(shape, element)


def with_element(kind: ir.Type, element: ir.Type) -> ir.Type:
    """A vector type with another element type; for a scalar type, the element type itself."""
    return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element


def with_shape(kind: ir.Type, shape: Sequence[int]) -> ir.VectorType:
    """A vector type of this shape, with the element type of `kind`, or `kind` as element type."""
    return ir.VectorType.get(shape, element_of(kind))


def i64_array(numbers: Sequence[int] | npt.NDArray[np.int64]) -> ir.Attribute:
    """Integers as `array<i64: ...>`."""
    return ir.DenseI64ArrayAttr.get([int(n) for n in numbers])


def integer_array(numbers: Sequence[int]) -> ir.Attribute:
    """Integers as an array of integer attributes, `[0, 16]`."""
    i64 = integer_type(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, int(n)) for n in numbers])


# Constants.


def constant(kind: ir.Type, number: float | int | ir.Attribute) -> ir.Value:
    """A constant of a scalar type, or a splat of it."""
    if isinstance(number, ir.Attribute):
        value = ir.DenseElementsAttr.get_splat(kind, number) if isinstance(kind, ir.VectorType) else number
    else:
        value = number_attribute(kind, number)
    return make("arith.constant", kind, value=value)


def zero(kind: ir.Type) -> ir.Value:
    """The number 0, or a splat of it."""
    return constant(kind, 0)


def poison(kind: ir.Type) -> ir.Value:
    """An undefined value."""
    return make("ub.poison", kind, value=ir.Attribute.parse("#ub.poison"))


def dense_integers(numbers: npt.NDArray[Any], element: ir.Type) -> ir.Value:
    """A constant vector of integers, indices or truth values, of the shape of the numbers."""
    kind = vector_type(numbers.shape, element)
    if isinstance(element, ir.IntegerType) and element.width == 1:
        attributes = [number_attribute(element, bool(n)) for n in numbers.ravel()]
        return make("arith.constant", kind, value=ir.DenseElementsAttr.get(attributes, kind))
    bits = 64 if isinstance(element, ir.IndexType) else element.width
    array = np.ascontiguousarray(numbers.astype(f"i{bits // 8}"))
    return make("arith.constant", kind, value=ir.DenseElementsAttr.get(array, type=kind))


def all_set(count: int) -> ir.Value:
    """vector of i1 with all of its bits set."""
    return constant(vector_type((count,), integer_type(1)), True)


# Arithmetic.


def binary(name: str, a: ir.Value, b: ir.Value | int) -> ir.Value:
    """An op of arith on two numbers, or vectors, of one type; an integer is a constant of that type."""
    return make(f"arith.{name}", a.type, a, constant(a.type, b) if isinstance(b, int) else b)


# Arithmetic on indices.


def fold_index(number: Index) -> Index:
    """An index, as an int if it is constant."""
    folded = constant_of(number)
    return number if folded is None else folded


def index(number: Index) -> ir.Value:
    """An index as a value; numbers of more than 64 bits wrap around, as sums of values do."""
    return constant(index_type(), (number + (1 << 63)) % (1 << 64) - (1 << 63)) if isinstance(number, int) else number


def index_vector(numbers: Sequence[int] | npt.NDArray[np.int64]) -> ir.Value:
    """A constant vector of indices."""
    return dense_integers(np.asarray(numbers), index_type())


def index_splat(number: Index, count: int) -> ir.Value:
    """A splat of an index."""
    kind = vector_type((count,), index_type())
    return constant(kind, number) if isinstance(number, int) else broadcast(number, kind)


def add(*terms: Index) -> Index:
    """The sum of indices: first the values, then the constants."""
    constant_sum = sum(t for t in terms if isinstance(t, int))
    total: ir.Value | None = None
    for term in terms:
        if not isinstance(term, int):
            total = term if total is None else make("arith.addi", term.type, total, term)
    if total is None:
        return constant_sum
    return make("arith.addi", total.type, total, constant(total.type, constant_sum)) if constant_sum else total


def multiply(a: Index, b: Index) -> Index:
    """The product of two indices."""
    if isinstance(a, int):
        if isinstance(b, int):
            return a * b
        a, b = b, a
    if isinstance(b, int):
        return a if b == 1 else 0 if b == 0 else make("arith.muli", a.type, a, constant(a.type, b))
    return make("arith.muli", a.type, a, b)


def compare(predicate: str, a: ir.Value, b: ir.Value | int) -> ir.Value:
    """A comparison of numbers, or of vectors of them; an integer is a constant of the same type."""
    b = constant(a.type, b) if isinstance(b, int) else b
    floats = isinstance(element_of(a), ir.FloatType)
    number = (FLOAT_PREDICATES if floats else PREDICATES).index(predicate)
    attribute = ir.IntegerAttr.get(integer_type(64), number)
    name = "arith.cmpf" if floats else "arith.cmpi"
    return make(name, with_element(a.type, integer_type(1)), a, b, predicate=attribute)


def select(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """`a` where the condition holds, else `b`."""
    return make("arith.select", a.type, condition, a, b)


# Lanes.


def lane_shuffle(value: ir.Value, offset: ir.Value, mode: str, width: ir.Value) -> ir.Value:
    """A scalar of another lane of a subgroup of `width` lanes: `gpu.shuffle`, of this mode."""
    attributes = {"mode": enum_attribute("gpu.shuffle_mode", mode)}
    return create("gpu.shuffle", [value.type, integer_type(1)], [value, offset, width], attributes).results[0]


# Control flow.


def if_(
    condition: ir.Value,
    kinds: Sequence[ir.Type],
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]] | None = None,
) -> list[ir.Value]:
    """An scf.if, and its results.

    Args:
        kinds: the types of the results.
        then, otherwise: build the regions, and return the yielded values. Without results the second may be absent.
    """
    branch = create("scf.if", kinds, [condition], regions=2)
    for region, build in zip(branch.regions, (then, otherwise)):
        if build:
            with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
                create("scf.yield", [], build())
    return list(branch.results)


# Memrefs.


def atomic_update(
    memref: ir.Value, indices: Sequence[ir.Value], element: ir.Type, change: Callable[[ir.Value], ir.Value]
) -> ir.Value:
    """Build a memref.generic_atomic_rmw, and return the old element. `change` builds the new element from the old."""
    update = create("memref.generic_atomic_rmw", [element], [memref, *indices], regions=1)
    block = ir.Block.create_at_start(update.regions[0], [element])
    with ir.InsertionPoint(block):
        create("memref.atomic_yield", [], [change(block.arguments[0])])
    return update.results[0]


def shared_buffer(shape: Sequence[int], element: ir.Type) -> ir.Value:
    """A memref in shared local memory of the workgroup."""
    kind = ir.MemRefType.get(list(shape), element, memory_space=slm_space())
    return make("memref.alloc", kind, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))


def strided_layout(memref: ir.Value) -> tuple[Index, list[Index], list[Index]]:
    """The offset, extents and strides of a memref, in elements; ops compute the numbers that its type lacks."""
    kind = ir.MemRefType(memref.type)
    strides = strides_of(kind)
    static = [DYNAMIC] * (kind.rank + 1) if strides is None else [kind.get_strides_and_offset()[1], *strides]
    layout_numbers: list[Index] = list(static)
    if DYNAMIC in static:
        base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
        results = [base, *[index_type()] * (1 + 2 * kind.rank)]
        _, offset, *numbers = create("memref.extract_strided_metadata", results, [memref]).results
        layout_numbers = [v if n == DYNAMIC else n for n, v in zip(static, [offset, *numbers[kind.rank :]])]
    extents = [
        make("memref.dim", index_type(), memref, index(d)) if n == DYNAMIC else n for d, n in enumerate(kind.shape)
    ]
    return layout_numbers[0], extents, layout_numbers[1:]


def element_address(source: ir.Value, at: Index, bits: int) -> ir.Value:
    """The address of an element, i64; that of the first element at an address is this address, of its own type.

    Args:
        source: a memref or an address.
        at: the offset of the element from the beginning of the memref's buffer, in elements of `bits` bits.
    """
    if isinstance(source.type, ir.MemRefType):
        base = make("memref.extract_aligned_pointer_as_index", index_type(), source)
    elif at == 0:
        return source
    else:
        base = make("arith.index_cast", index_type(), source)
    if bits < 8:
        in_bytes: Index = at // (8 // bits) if isinstance(at, int) else binary("divui", at, 8 // bits)
    else:
        in_bytes = multiply(at, bits // 8)
    return make("arith.index_cast", integer_type(64), add(base, in_bytes))


def memref_view(
    name: str,
    memref: ir.Value,
    offsets: Sequence[Index],
    sizes: Sequence[Index],
    strides: Sequence[Index],
    kind: ir.MemRefType | None = None,
) -> ir.Value:
    """A `memref.subview` or `memref.reinterpret_cast`.

    Args:
        kind: its type; by default that of a reinterpret_cast with these numbers.
    """
    groups = {"offsets": offsets, "sizes": sizes, "strides": strides}
    static = {part: [n if isinstance(n, int) else DYNAMIC for n in group] for part, group in groups.items()}
    operands = [[n for n in group if not isinstance(n, int)] for group in groups.values()]
    if kind is None:
        source_type = ir.MemRefType(memref.type)
        layout = ir.StridedLayoutAttr.get(static["offsets"][0], static["strides"])
        kind = ir.MemRefType.get(static["sizes"], source_type.element_type, layout, source_type.memory_space)
    attributes = {f"static_{part}": i64_array(numbers) for part, numbers in static.items()}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, *map(len, operands)])
    return make(name, kind, memref, *(n for group in operands for n in group), **attributes)


def subview(memref: ir.Value, offsets: Sequence[ir.Value], sizes: Sequence[Index], rank: int) -> ir.Value:
    """A part of a memref, without the outermost dimensions, whose sizes are 1, down to `rank`."""
    source_type, outer = ir.MemRefType(memref.type), len(offsets) - rank
    static = [n if isinstance(n, int) else DYNAMIC for n in sizes[outer:]]
    layout = ir.StridedLayoutAttr.get(DYNAMIC, (strides_of(source_type) or [DYNAMIC] * len(offsets))[outer:])
    kind = ir.MemRefType.get(static, source_type.element_type, layout, source_type.memory_space)
    return memref_view("memref.subview", memref, offsets, sizes, [1] * len(offsets), kind)


def reinterpret_cast(
    memref: ir.Value,
    offset: Index,
    sizes: Sequence[Index],
    strides: Sequence[Index],
    kind: ir.MemRefType | None = None,
) -> ir.Value:
    """A view of a memref's memory with another offset, other extents and strides, in elements; see `memref_view`."""
    return memref_view("memref.reinterpret_cast", memref, [offset], sizes, strides, kind)


# Vectors.


def broadcast(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A scalar or vector broadcast along outer dimensions and dimensions of size 1."""
    return value if value.type == kind else make("vector.broadcast", kind, value)


def shape_cast(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The same elements in another shape."""
    if shape_of(value) == tuple(shape):
        return value
    return make("vector.shape_cast", with_shape(value.type, shape), value)


def flatten(value: ir.Value) -> ir.Value:
    """The elements of a vector in one dimension."""
    return shape_cast(value, (math.prod(shape_of(value)),))


def extract(value: ir.Value, position: Sequence[int]) -> ir.Value:
    """A part of a vector at indices of its outer dimensions; for a 0-d vector its element."""
    if not position and (shape_of(value) or not isinstance(value.type, ir.VectorType)):
        return value
    inner = shape_of(value)[len(position) :]
    kind = with_shape(value.type, inner) if inner else element_of(value)
    return make("vector.extract", kind, value, static_position=i64_array(position))


def extract_at(value: ir.Value, position: ir.Value) -> ir.Value:
    """A part of a vector at an index of its outermost dimension."""
    inner = shape_of(value)[1:]
    kind = with_shape(value.type, inner) if inner else element_of(value)
    return make("vector.extract", kind, value, position, static_position=i64_array([DYNAMIC]))


def insert(value: ir.Value, into: ir.Value, position: Sequence[int]) -> ir.Value:
    """A vector with the part at indices of its outer dimensions replaced."""
    return make("vector.insert", into.type, value, into, static_position=i64_array(position)) if position else value


def extract_slice(value: ir.Value, offsets: Sequence[int], sizes: Sequence[int]) -> ir.Value:
    """A slice of a vector; offsets and sizes are given for all dimensions."""
    if shape_of(value) == tuple(sizes):
        return value
    numbers = {"offsets": offsets, "sizes": sizes, "strides": [1] * len(sizes)}
    attributes = {name: integer_array(group) for name, group in numbers.items()}
    return make("vector.extract_strided_slice", with_shape(value.type, sizes), value, **attributes)


def insert_slice(value: ir.Value, into: ir.Value, offsets: Sequence[int]) -> ir.Value:
    """A vector with a slice replaced; offsets are given for all dimensions."""
    if shape_of(value) == shape_of(into):
        return value
    attributes = {"offsets": integer_array(offsets), "strides": integer_array([1] * len(shape_of(value)))}
    return make("vector.insert_strided_slice", into.type, value, into, **attributes)


def pad_with_zeros(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A vector extended to a shape by zeros at the end of each dimension."""
    if shape_of(value) == tuple(shape):
        return value
    return insert_slice(value, zero(with_shape(value.type, shape)), [0] * len(shape))


def shuffle(a: ir.Value, b: ir.Value, order: Sequence[int] | npt.NDArray[np.int64]) -> ir.Value:
    """Elements of the outermost dimension of two vectors; the second vector's are numbered after the first's."""
    kind = with_shape(a.type, (len(order), *shape_of(a)[1:]))
    return make("vector.shuffle", kind, a, b, mask=i64_array(order))


def permute(value: ir.Value, order: Sequence[int] | npt.NDArray[np.int64]) -> ir.Value:
    """Selected elements of a vector of one dimension, in this order."""
    size, rows = shape_of(value)[0], np.asarray(order)
    if np.array_equal(rows, np.arange(size)):
        return value
    narrow = 8 // min(getattr(element_of(value), "width", 8), 8)
    grouped = rows.reshape(-1, narrow) if narrow in (2, 4) and len(rows) % narrow == 0 else None
    if grouped is not None and np.array_equal(grouped, grouped[:, :1] + np.arange(narrow)):
        # Elements narrower than a byte that move together are moved as bytes, since registers have no such elements.
        packed_bytes = make("vector.bitcast", vector_type([size // narrow], integer_type(8)), value)
        permuted_bytes = permute(packed_bytes, grouped[:, 0] // narrow)
        return make("vector.bitcast", vector_type([len(rows)], element_of(value)), permuted_bytes)
    return shuffle(value, value, order)


def transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """A vector whose dimension `i` is dimension `permutation[i]` of the operand."""
    if list(permutation) == list(range(len(permutation))):
        return value
    shape = shape_of(value)
    kind = with_shape(value.type, [shape[i] for i in permutation])
    return make("vector.transpose", kind, value, permutation=i64_array(permutation))


def extract_view(value: ir.Value, view: View) -> ir.Value:
    """Build the op that extracts a view of a vector."""
    if not set(range(len(view.shape))) <= set(view.dims):
        return broadcast(value, with_shape(value.type, view.shape))
    if -1 in view.dims:
        return extract(value, view.first[: view.dims.count(-1)])
    if view.order != sorted(view.order):
        return transpose(value, view.order)
    return extract_slice(value, view.first, view.shape)


def from_elements(values: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """A vector of these scalars in row-major order."""
    return make("vector.from_elements", vector_type(shape, values[0].type), *values)


# Replacements and copies of ops.


def replace_op(op: ir.Operation, *values: ir.Value) -> None:
    """Replace the results of an op by values, and erase the op."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def loop_carrying(loop: scf.ForOp, carried: Sequence[int], added: Sequence[ir.Value] = ()) -> scf.ForOp:
    """Move a loop's body to a new loop that carries some of the loop's values, and `added` values.

    The caller builds the new yield, and replaces uses of values that are no longer carried. Then it erases the old
    loop, whose body contains only the terminator.
    """
    inits = list(loop.initArgs)
    with ir.InsertionPoint(loop), loop.operation.location:
        new_loop = scf.ForOp(loop.lowerBound, loop.upperBound, loop.step, [*(inits[i] for i in carried), *added])
    for name, value in attributes_of(loop.operation).items():
        new_loop.operation.attributes[name] = value
    loop.induction_variable.replace_all_uses_with(new_loop.induction_variable)
    for i, argument, result in zip(carried, new_loop.inner_iter_args, new_loop.results):
        loop.inner_iter_args[i].replace_all_uses_with(argument)
        loop.results[i].replace_all_uses_with(result)
    for op in list(loop.body.operations)[:-1]:
        new_loop.body.append(op.operation)
    return new_loop


def drop_loop_carried(loop: scf.ForOp, carried: Sequence[int]) -> scf.ForOp:
    """Drop loop-carried values that never change; `carried` are the numbers of the others."""
    new_loop = loop_carrying(loop, carried)
    for argument, initial in zip(loop.inner_iter_args, loop.initArgs):
        argument.replace_all_uses_with(initial)
    outs = list(loop.body.operations)[-1].operands
    with ir.InsertionPoint(new_loop.body), loop.operation.location:
        scf.YieldOp([outs[i] for i in carried])
    loop.operation.erase()
    return new_loop


def clone(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Clone an op and its regions with some values replaced. The replacements are extended by the clone's results."""
    cloned = op.clone()
    for inner in walk(cloned):
        for i, value in enumerate(inner.operands):
            if value in values:
                inner.operands[i] = values[value]
    values.update(zip(op.results, cloned.results))
    return cloned


def clone_with_operands(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Clone an op after clones of the ops of the same block that compute its operands."""
    for operand in op.operands:
        maker = defining_op(operand)
        if operand not in values and maker is not None and maker.block == op.block:
            clone_with_operands(maker, values)
    return clone(op, values)


# Expansions of upstream ops by their definitions in MLIR.

SCALING = ("arith.scaling_extf", "arith.scaling_truncf")


def require_nearest(op: ir.Operation) -> None:
    """Check that an op rounds to nearest even.

    Raises:
        DiagnosticError: if it does not.
    """
    problem = rounding_problem(op)
    if problem:
        emit_error(op, *problem)


def expand_scaling(op: ir.Operation) -> list[ir.Value]:
    """Build the expansion of an op in `SCALING` at the insertion point, and return the results of its ops.

    The scale is rounded to f8E8M0FNU and converted to the wider format, in which the number is multiplied or divided
    by it. Products in bf16 are computed in f32, since bf16 has all values of both factors.

    Raises:
        DiagnosticError: as `require_nearest`.
    """
    require_nearest(op)
    value, scale = op.operands
    widens = op.name == "arith.scaling_extf"
    result = op.results[0].type
    wide = element_of(result if widens else value)
    if widens and isinstance(wide, ir.BF16Type):
        wide = element_type("f32")
    values = []
    if str(element_of(scale)) != E8M0.mlir:
        scale = make("arith.truncf", with_element(scale.type, element_type(E8M0.mlir)), scale)
        values.append(scale)
    factor = make("arith.extf", with_element(scale.type, wide), scale)
    if widens:
        extended = make("arith.extf", with_element(result, wide), value)
        values += [factor, extended, binary("mulf", factor, extended)]
        if wide != element_of(result):
            values.append(make("arith.truncf", result, values[-1]))
    else:
        quotient = make("arith.divf", value.type, value, factor)
        values += [factor, quotient, make("arith.truncf", result, quotient)]
    return values


MOST_SUBGROUPS = max(t.threads for t in TARGETS.values())
"""The most subgroups of a workgroup on any target."""


def combining_kind(op: ir.Operation) -> CombiningKind:
    """The combining kind of a `gpu.all_reduce`.

    Raises:
        DiagnosticError: if its region is not one op of arith.
    """
    if "op" in op.attributes:
        return CombiningKind.of(op, "op")
    block = op.regions[0].blocks[0]
    inner = [o.operation for o in block.operations]
    element, combines = (
        element_of(block.arguments[0]),
        len(inner) == 2 and set(inner[0].operands) == set(block.arguments),
    )
    kind = next((kind for kind in CombiningKind if kind.scalar_op(element) == inner[0].name), None)
    if kind is None or not combines or list(inner[1].operands) != list(inner[0].results):
        note = "specify the operation, for example gpu.all_reduce add"
        emit_error(op, "region must be a single arith op on both arguments", note)
    return kind


def combine_subgroups(value: ir.Value, kind: CombiningKind, number: ir.Value, count: ir.Value) -> ir.Value:
    """The numbers of all subgroups combined in the order of the subgroups, at the current insertion point.

    Args:
        value: the subgroup's scalar.
        number, count: the subgroup's number, and the number of subgroups.
    """
    shared = shared_buffer([MOST_SUBGROUPS], value.type)
    create("memref.store", [], [value, shared, number])
    create("gpu.barrier", [], [])
    one_index = index(1)
    first = make("memref.load", value.type, shared, index(0))
    loop = create("scf.for", [value.type], [one_index, count, one_index, first], regions=1)
    body = ir.Block.create_at_start(loop.regions[0], [index_type(), value.type])
    with ir.InsertionPoint(body):
        partial = make("memref.load", value.type, shared, body.arguments[0])
        create("scf.yield", [], [kind.combine(body.arguments[1], partial)])
    # The next iteration of an enclosing loop may write the buffer again.
    create("gpu.barrier", [], [])
    return loop.results[0]


def index_from_memory(value: ir.Value, element: ir.Type) -> ir.Value:
    """Convert loaded values to a memref's element type, i64 to index; others are unchanged."""
    if not isinstance(element, ir.IndexType):
        return value
    return make("arith.index_cast", with_element(value.type, index_type()), value)


def index_to_memory(value: ir.Value) -> ir.Value:
    """Convert a value to its type in memory: index to i64."""
    if not isinstance(element_of(value), ir.IndexType):
        return value
    return make("arith.index_cast", with_element(value.type, integer_type(64)), value)
