"""The common parts of the importers of all levels: dialect and level, types, values, positions, ids and refusals."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
from mlir import ir
from mlir.dialects import arith, memref, vector

from xegpu_py.dialects import xegpu as ours
from xegpu_py.dialects.xegpu.op_interfaces import MatrixProduct
from xegpu_py.dialects.xegpu.spelling import UPSTREAM_NAME
from xegpu_py.dialects.xegpu.types import READ_HINTS, WRITE_HINTS, UpstreamXeGPU, is_slm
from xegpu_py.dialects.xegpu.upstream_types import BlockTdescAttr, MemDesc, UpstreamNBarrier, UpstreamTensorDesc
from xegpu_py.ir.builtin import bit_width, element_type, enum_attribute
from xegpu_py.ir.context import Context
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.diagnostics import Source, error_at, position_of, remark
from xegpu_py.ir.module import Module, parse_source, walk
from xegpu_py.passes.analysis.integer_analysis import divisor
from xegpu_py.passes.analysis.ir_queries import constant_of, defining_op, integer_op, shape_of
from xegpu_py.passes.analysis.ir_queries import element_of as element_type_of
from xegpu_py.passes.analysis.target_messages import hints_of
from xegpu_py.passes.analysis.target_rules import caches_problem
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import (
    Index,
    constant,
    dense_integers,
    element_address,
    i64_array,
    index,
    integer_array,
    integer_type,
    make,
    reinterpret_cast,
    shape_cast,
    strided_layout,
)
from xegpu_py.upstream.levels import LANES, LANES_ATTR
from xegpu_py.upstream.xevm_dialect import UpstreamXeVM

# Reading upstream programs: which dialect a text is in, and at which level each kernel is written.


def read_upstream(source: Source, context: Context) -> Module:
    """A program with kernels in upstream's dialect, in a context that has ours too."""
    theirs = (UpstreamXeGPU, UpstreamXeVM)
    context.load(("xegpu", "xetile"))
    context.define(theirs)
    return parse_source(source, context=context, dialects=theirs)


# Helpers for rebuilding a kernel at every level: types, values, refusals.

PREFIX = UPSTREAM_NAME + "."

PRODUCTS = UpstreamXeGPU.implementing(MatrixProduct)
"""The ops that multiply matrices."""


def drop_layouts(root: ir.Operation) -> None:
    """Remove upstream's attributes from ops of other dialects, when all kernels are rebuilt.

    Raises:
        DiagnosticError: if an op or a function of upstream's dialect is left, which no kernel is.
    """
    for op in walk(root):
        if op.name.startswith(PREFIX) or PREFIX in str(op.attributes.get("function_type", "")):
            refuse(op, "kernels are functions of a gpu.module, and other functions have a body")
        if op.name.startswith(("xegpu.", "xetile.")) or not op.attributes:
            continue
        for name in [n for n, attr in op.attributes.items() if PREFIX in str(attr)]:
            del op.attributes[name]


def refuse(op: ir.Operation | ir.OpView, reason: str, *notes: str) -> NoReturn:
    """Raise the diagnostic that an op cannot be imported.

    Raises:
        DiagnosticError: always.
    """
    op = op.operation
    where = position_of(op.location)
    raise error_at(where, f"'{op.name}' op cannot be imported: {reason}", *notes)


@lru_cache(maxsize=4096)
def _is_kind(text: str) -> str:
    for cls in (UpstreamTensorDesc, MemDesc, UpstreamNBarrier):
        if cls.accepts(text):
            return cls.name
    return ""


def is_desc(kind: ir.Type) -> bool:
    """Whether this is the type of a tensor descriptor of upstream's."""
    return _is_kind(str(kind)) == UpstreamTensorDesc.name


def parts(op: ir.Operation) -> list[ir.Operation]:
    """All ops within an op, outer ones before inner ones."""
    return walk(op)[1:]


def within(op: ir.Operation, *names: str) -> list[ir.Operation]:
    """The ops directly in a module, all or those of some names."""
    found = [inner.operation for inner in op.regions[0].blocks[0].operations]
    return [inner for inner in found if not names or inner.name in names]


def values_of(op: ir.Operation) -> Iterable[ir.Value]:
    """The results of an op, and the arguments of its regions' blocks."""
    yield from op.results
    for region in op.regions:
        for block in region:
            yield from block.arguments


def mixed(entries: Sequence[Index]) -> list[ir.Value]:
    """The values of a list of index values and constants."""
    return [index(e) for e in entries]


def element_of(value: ir.Value) -> str:
    """The type of a vector's elements, or of a number."""
    return str(element_type_of(value))


def vector_type(shape: Sequence[int], element: str | ir.Type) -> ir.Type:
    """A vector type; without dimensions its element type."""
    kind = element_type(element) if isinstance(element, str) else element
    return ir.VectorType.get(shape, kind) if shape else kind


def extents_of(source: ir.Value, given: Sequence[Index] = ()) -> list[Index]:
    """The extents of a memref; those that its type does not have are given, or else computed."""
    return [
        n if n != DYNAMIC else given[i] if given else memref.dim(source, index(i))
        for i, n in enumerate(ir.MemRefType(source.type).shape)
    ]


def long_address(source: ir.Value) -> ir.Value:
    """An address of 32 bits as one of 64 bits; other addresses and memrefs are unchanged."""
    if isinstance(source.type, ir.MemRefType) or str(source.type) in ("i64", "ui64", "si64"):
        return source
    return arith.extui(integer_type(64), signless(source))


def signless(value: ir.Value) -> ir.Value:
    """An integer as one of a signless type."""
    kind = ir.IntegerType(value.type)
    return value if kind.is_signless else make("builtin.unrealized_conversion_cast", integer_type(kind.width), value)


def cast(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The elements of a vector in another shape."""
    op = defining_op(value)
    if op is not None and op.name == "vector.shape_cast" and shape_of(op.operands[0]) == tuple(shape):
        return op.operands[0]
    return shape_cast(value, shape)


def product_of_lanes(
    a: ir.Value,
    b: ir.Value,
    acc: ir.Value | None,
    rows: int,
    element: str | ir.Type,
    scales: Mapping[str, ir.Value] | None = None,
) -> ir.Value:
    """The product of the matrices whose fragments lanes have: each has a column of the second factor and of the result.

    Args:
        rows, element: the rows of the result, and the type of its elements.
        scales: the scales of a product of block-scaled matrices, by the names of the operands.
    """
    held, count = (math.prod(shape_of(v)) for v in (a, b))
    factor = max(32 // bit_width(element_of(b)), 1)
    left = cast(a, (rows, held // rows) if held % rows == 0 else (held, 1))
    right = cast(b, (count // factor, 1, factor) if factor > 1 else (count, 1))
    acc = None if acc is None else cast(acc, (rows, 1))
    build: Any = ours.DpasOp if scales is None else ours.DpasMxOp
    kind = vector_type((rows, 1), element)
    return build(left, right, acc=acc, mode=ours.Mode.SIMT, result=kind, **scales or {}).result


def block_attr(desc: UpstreamTensorDesc) -> BlockTdescAttr:
    """The attribute of a descriptor that is known to be of a block."""
    found = desc.block
    assert found is not None
    return found


def scope_of(desc: UpstreamTensorDesc) -> str:
    """Our name for the memory space of a descriptor."""
    attr = desc.scatter or block_attr(desc)
    return str(attr.memory_space.value)


def given_hints(view: Any) -> dict[str, Any]:
    """The cache hints that an op has."""
    return {name: hint for name, hint in hints_of(view).items() if hint is not None}


def put_hints(made: ir.Operation | ir.OpView, source: Any) -> None:
    """Give an access of ours the cache hints of upstream's, unless no message has such a pair."""
    given = given_hints(source)
    if not given:
        return
    operation = made.operation
    name, write = operation.name, ".store" in operation.name
    is_block = name.endswith("_tile") or (
        name.endswith("_nd") and len(ours.TensorDesc.of(operation.opview.tdesc).shape) > 1
    )
    message = f"lsc_{'store' if write else 'load'}{'_block2d' if is_block else ''}"
    known = WRITE_HINTS if write else READ_HINTS
    foreign = next((h.value for h in given.values() if h not in known), None)
    if foreign:
        remark(
            operation,
            f"is imported without its cache hints: {foreign} is not a hint of a {'write' if write else 'read'}",
        )
        return
    for name, hint in given.items():
        operation.attributes[name] = ours.XeGPU.enums["cache_hint"].to_ir(hint)
    problem = _hint_problem(operation.opview, message, write)
    if problem:
        for name in given:
            del operation.attributes[name]
        remark(operation, f"is imported without its cache hints: {problem}")


_HINT_PROBLEMS: dict[Any, str | None] = {}


def _hint_problem(view: Any, message: str, write: bool) -> str | None:
    key = (message, write, view.l1_hint, view.l2_hint, view.l3_hint)
    if key not in _HINT_PROBLEMS:
        found = caches_problem(view, message, write)
        _HINT_PROBLEMS[key] = found[0] if found else None
    return _HINT_PROBLEMS[key]


def is_true(value: ir.Value) -> bool:
    """Whether a value is the constant true, or a vector in which all elements are true."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name in ("vector.broadcast", "vector.extract", "vector.shape_cast"):
        return is_true(op.operands[0])
    if op.name != "arith.constant":
        return False
    text = str(op.attributes["value"])
    return text.startswith(("true", "dense<true>", "1 : i1"))


# Ids of work items: upstream's launches count lanes, ours count subgroups in kernels of subgroups.

COUNTS_SUBGROUPS = "xegpu.counts_subgroups"
"""An attribute of kernels of work items, this many a subgroup: `gpu.launch_func` counts subgroups."""

KNOWN = "known_block_size"

COUNTED = ("gpu.thread_id", "gpu.block_dim", "gpu.global_id")
"""Ids and sizes that launches count in lanes."""

_VARYING = ("gpu.thread_id", "gpu.global_id")

_KEEPING = ("arith.index_cast", "arith.index_castui", "index.castu", "index.casts", "arith.trunci", "arith.extui")

_WHOLE = {"gpu.block_dim": LANES}
"""Extents of workgroups are multiples of the lanes."""


def count_lanes(ops: Sequence[ir.Operation]) -> None:
    """Make ids and sizes in x, which count lanes, of ours, which count subgroups.

    At subgroup level, values that differ between the lanes of a subgroup have no meaning; such ids are those of lane 0.

    Raises:
        DiagnosticError: at a use of an id by which lanes would differ.
    """
    for op in ops:
        if op.name == "gpu.lane_id":
            refuse(op, "lanes have no number of their own at subgroup level", "is this a kernel of lanes? see --level")
        if op.name == "gpu.subgroup_size":
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(index(LANES))
            continue
        if op.name not in COUNTED or not counts_x(op):
            continue
        if op.name in _VARYING:
            _check_uniform(op, op.results[0])
        with ir.InsertionPoint.after(op), op.location:
            scaled = arith.muli(op.results[0], index(LANES))
        op.results[0].replace_all_uses_except(scaled, scaled.owner.operation)


def counts_x(op: ir.Operation) -> bool:
    """Whether an id or size is that along x, where the lanes of a subgroup lie."""
    return str(op.attributes["dimension"]).endswith("x>")


def count_workgroup(func: ir.Operation, ops: Sequence[ir.Operation]) -> None:
    """Replace the sizes and trivial ids of a workgroup kernel, whose maps determine the number of subgroups.

    Raises:
        DiagnosticError: at the use of one that depends on how the launch's block is shaped, which is not known here.
    """
    known = list(ir.DenseI32ArrayAttr(func.attributes[KNOWN])) if KNOWN in func.attributes else None
    for op in ops:
        if op.name not in COUNTED or next(iter(op.results[0].uses), None) is None:
            continue
        dim = "xyz".index(str(op.attributes["dimension"]).rstrip(">")[-1])
        is_row = known is not None and known[1:] == [1, 1]
        if op.name == "gpu.block_dim" and known is not None:
            value = known[dim]
        elif op.name == "gpu.thread_id" and dim and known is not None and known[dim] == 1:
            value = 0
        elif op.name == "gpu.thread_id" and not dim and (is_row or known is None):
            continue
        else:
            refuse(
                op,
                "layouts determine the subgroups of a workgroup, and the shape of the launch's blocks is unknown",
                f"set {KNOWN}, or use gpu.subgroup_id",
            )
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(index(value))


def mark_lanes(func: ir.Operation) -> None:
    """Mark a kernel of subgroups as one whose launches count lanes.

    Raises:
        DiagnosticError: if its known block is not one of whole subgroups.
    """
    mark_workgroup(func)
    if KNOWN in func.attributes:
        x, *rest = ir.DenseI32ArrayAttr(func.attributes[KNOWN])
        if x % LANES:
            refuse(func, f"{KNOWN} has {x} work items in x, which is not a multiple of the subgroup size {LANES}")
        func.attributes[KNOWN] = ir.DenseI32ArrayAttr.get([x // LANES, *rest])


def mark_workgroup(func: ir.Operation) -> None:
    """Mark a kernel of workgroups as one whose launches count lanes; its maps define the number of subgroups."""
    func.attributes[LANES_ATTR] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LANES)


def _check_uniform(op: ir.Operation, value: ir.Value) -> None:
    """The lanes of a subgroup, which have successive numbers, see the same wherever the number is used."""
    for user in _followed(value)[1]:
        # Block messages take the first lane's value.
        if not user.name.startswith(PREFIX):
            refuse(
                op,
                f"'{user.name}' uses it, which would differ between the lanes of a subgroup",
                f"divide it by a multiple of {LANES}, or use gpu.subgroup_id",
            )


def _followed(value: ir.Value) -> tuple[list[ir.Operation], list[ir.Operation]]:
    """The users of a lane's number by which all lanes of a subgroup compute the same value, and the other users."""
    same: list[ir.Operation] = []
    others: list[ir.Operation] = []
    seen, waiting = set[tuple[ir.Value, ir.Operation]](), [value]
    while waiting:
        value = waiting.pop(0)
        for user in (use.owner.operation for use in value.uses):
            if (value, user) in seen:
                continue
            seen.add((value, user))
            kind = integer_op(user)
            first = len(user.operands) == 2 and user.operands[0] == value
            constant = constant_of(user.operands[1]) if first else None
            if (kind in ("divu", "divs", "floordivs") and constant and constant % LANES == 0) or (
                kind in ("shru", "shrs") and constant is not None and 1 << constant >= LANES
            ):
                same.append(user)
            elif (
                user.name in _KEEPING
                or (kind in ("remu", "rems") and constant and constant % LANES == 0)
                or (kind == "add" and any(divisor(v, _WHOLE) % LANES == 0 for v in user.operands if v != value))
            ):
                waiting.append(user.results[0])
            else:
                others.append(user)
    return same, others


def share_divided(ops: Sequence[ir.Operation]) -> None:
    """Mark values as uniform in a subgroup if a division makes them equal.

    That is so where a row of a block of work items is of whole subgroups, or is all of it, as it is of such kernels.
    """
    for op in ops:
        if op.name in _VARYING and counts_x(op):
            for user in _followed(op.results[0])[0]:
                uses = [*user.results[0].uses]
                with ir.InsertionPoint.after(user), user.location:
                    shared = of_first_lane(user.results[0])
                for use in uses:
                    use.owner.operands[use.operand_number] = shared


def of_first_lane(value: ir.Value) -> ir.Value:
    """The first active lane's value."""
    kind = enum_attribute("gpu.broadcast", "first_active_lane")
    return build.make("gpu.subgroup_broadcast", value.type, value, broadcast_type=kind)


# Matrices in shared local memory (`!xegpu.mem_desc`): where their elements lie.


def strides_of(desc: MemDesc) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The block of a matrix, the strides from block to block and those in a block, in elements.

    A matrix without blocks has blocks of one element. The rule is MemDescType::getStrideShape's: what lies side by
    side in a block is what has the smaller stride, and so it is from block to block.
    """
    placed, shape = desc.placed, desc.shape
    rank = len(shape)
    strides = placed.stride or tuple(math.prod(shape[i + 1 :]) for i in range(rank))
    if not placed.block:
        return (1,) * rank, strides, (0,) * rank
    block = placed.block
    order = sorted(range(rank), key=lambda i: strides[i])
    inner, outer = [0] * rank, [0] * rank
    inner[order[0]], outer[order[0]] = 1, math.prod(block)
    for before, dim in itertools.pairwise(order):
        inner[dim] = inner[before] * block[before]
        outer[dim] = outer[before] * (strides[dim] // strides[before] // block[before])
    return block, tuple(outer), tuple(inner)


def buffer_of(view: Any, element: str) -> ir.Value:
    """The buffer of a matrix in shared local memory, as one dimension of elements."""
    source = view.source
    kind = ir.MemRefType(source.type)
    start, _, _ = strided_layout(source)
    count = math.prod(kind.shape)

    def contiguous(size: Index, of: ir.Type) -> ir.MemRefType:
        return ir.MemRefType.get([size if isinstance(size, int) else DYNAMIC], of, memory_space=kind.memory_space)

    if str(kind.element_type) == element:
        if start != 0:
            return reinterpret_cast(source, start, [count], [1])
        whole = contiguous(count, kind.element_type)
        return source if kind == whole else reinterpret_cast(source, 0, [count], [1], whole)
    if bit_width(str(kind.element_type)) != 8:
        refuse(view, f"a matrix of {element} lies in bytes, or in elements of its own, but got {kind}")
    size = build.add(count, start)
    whole = contiguous(size, kind.element_type)
    if kind != whole:
        source = reinterpret_cast(source, 0, [size], [1], whole)
    return memref.view(contiguous(count * 8 // bit_width(element), element_type(element)), source, index(start), [])


def places(desc: MemDesc, offsets: Sequence[ir.Value | int], shape: Sequence[int]) -> ir.Value:
    """The places of the elements of a block of a matrix, row by row, as a vector of one dimension."""
    count = math.prod(shape)
    grids = np.indices((1,) * (len(desc.shape) - len(shape)) + tuple(shape)).reshape(len(desc.shape), count)
    indices = [dense_integers(grid, ir.IndexType.get()) for grid in grids]
    return functools.reduce(arith.addi, (place_along(desc, d, o, i) for d, (o, i) in enumerate(zip(offsets, indices))))


def place_along(desc: MemDesc, dim: int, offset: ir.Value | int, index: ir.Value) -> ir.Value:
    """The part of the places of elements that is due to one dimension of a matrix.

    Args:
        offset: where the block begins along this dimension.
        index: the elements' indices in the block, a vector.
    """
    kind = index.type
    block, outer, inner = (values[dim] for values in strides_of(desc))
    at = arith.addi(vector.broadcast(kind, *mixed([offset])), index)
    if block == 1:
        return arith.muli(at, constant(kind, outer))
    side = constant(kind, block)
    return arith.addi(
        arith.muli(arith.divui(at, side), constant(kind, outer)),
        arith.muli(arith.remui(at, side), constant(kind, inner)),
    )


# Tensors in memory as the addresses, memrefs and numbers that tiles are made of.


def tensor_of(source: ir.Value, shape: list[Any], strides: list[Any]) -> tuple[ir.Value, list[Any], list[Any]]:
    """The address of a tensor's first element, its extents and its strides."""
    if not isinstance(source.type, ir.MemRefType):
        return source, shape, strides
    start, extents, found = strided_layout(source)
    bits = bit_width(str(ir.MemRefType(source.type).element_type))
    return element_address(source, start, bits), extents, found


def as_row(source: ir.Value) -> ir.Value:
    """A memref of one dimension as a matrix of one row."""
    kind = ir.MemRefType(source.type)
    size = kind.shape[0]
    strides, offset = kind.get_strides_and_offset()
    if strides[0] != 1:
        return source
    sizes = [memref.dim(source, index(0))] if size == DYNAMIC else []
    # MLIR expands a memref without a layout to one without a layout.
    layout = ir.StridedLayoutAttr.get(offset, [size, 1]) if offset else None
    result = ir.MemRefType.get([1, size], kind.element_type, layout, kind.memory_space)
    return expanded(source, result, *sizes)


def expanded(source: ir.Value, kind: ir.MemRefType, *sizes: ir.Value) -> ir.Value:
    """A memref of one dimension as one of two; `sizes` are those of its extents that are not known."""
    pairs = ir.ArrayAttr.get([integer_array([0, 1])])
    return make(
        "memref.expand_shape", kind, source, *sizes, reassociation=pairs, static_output_shape=i64_array(kind.shape)
    )


def first_elements(buffer: ir.Value, size: int) -> ir.Value:
    """The first elements of a buffer of one dimension."""
    kind = ir.MemRefType(buffer.type)
    if kind.shape[0] == size:
        return buffer
    result = ir.MemRefType.get([size], kind.element_type, memory_space=kind.memory_space)
    return reinterpret_cast(buffer, 0, [size], [1], result)


def address_of(source: ir.Value) -> ir.Value | None:
    """The address of a memref's first element, or an address; None if it is in shared local memory."""
    if not isinstance(source.type, ir.MemRefType):
        return source if str(source.type) in ("i64", "ui64", "si64") else None
    kind = ir.MemRefType(source.type)
    if is_slm(kind.memory_space) or kind.get_strides_and_offset() != ([1], 0):
        return None
    return element_address(source, 0, 8)
