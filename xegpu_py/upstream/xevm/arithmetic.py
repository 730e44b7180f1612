"""`llvm`: numbers, vectors, aggregates and branches, as ops of `arith`, `math`, `vector` and `cf`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.dense import integer_elements
from xegpu_py.passes.common.builders import (
    constant,
    create,
    dense_integers,
    index_type,
    integer_type,
    make,
    number_attribute,
    reinterpret_cast,
    strided_metadata,
)
from xegpu_py.passes.common.values import attributes_of, constant_of, defining_op, element_of, integers, shape_of
from xegpu_py.upstream.rebuilding import refuse
from xegpu_py.upstream.xevm.state import KernelImport, as_index, bitcast, first, resized, rule, zero_of

_SAME = {
    "add": "addi", "sub": "subi", "mul": "muli", "sdiv": "divsi", "udiv": "divui", "srem": "remsi", "urem": "remui",
    "shl": "shli", "lshr": "shrui", "ashr": "shrsi", "and": "andi", "or": "ori", "xor": "xori",
    "fadd": "addf", "fsub": "subf", "fmul": "mulf", "fdiv": "divf", "frem": "remf", "fneg": "negf",
    "trunc": "trunci", "zext": "extui", "sext": "extsi", "fptrunc": "truncf", "fpext": "extf",
    "sitofp": "sitofp", "uitofp": "uitofp", "fptosi": "fptosi", "fptoui": "fptoui", "select": "select",
    "intr.smax": "maxsi", "intr.smin": "minsi", "intr.umax": "maxui", "intr.umin": "minui",
    "intr.maximum": "maximumf", "intr.minimum": "minimumf", "intr.maxnum": "maxnumf", "intr.minnum": "minnumf",
}  # fmt: skip
"""Ops of llvm, and those of arith with the same operands and the same meaning."""

_MATH = {
    "fma": "fma", "fmuladd": "fma", "fabs": "absf", "ctpop": "ctpop", "powi": "fpowi", "pow": "powf",
    **{n: n for n in (
        "exp", "exp2", "log", "log2", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh",
        "cosh", "tanh", "ceil", "floor", "round", "roundeven", "trunc", "copysign",
    )},
}  # fmt: skip
"""Intrinsics, and ops of math."""


@rule(*(f"llvm.{n}" for n in _SAME))
def same(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """The op of arith."""
    return [make(f"arith.{_SAME[op.name.removeprefix('llvm.')]}", op.results[0].type, *op.operands)]


@rule(*(f"llvm.intr.{n}" for n in _MATH))
def function(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """The op of math."""
    return [make(f"math.{_MATH[op.name.removeprefix('llvm.intr.')]}", op.results[0].type, *op.operands)]


@rule("llvm.intr.abs", "llvm.intr.ctlz", "llvm.intr.cttz")
def counted(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Where LLVM's result is poison, the result is that of the op of math."""
    name = op.name.removeprefix("llvm.intr.").replace("abs", "absi")
    return [make(f"math.{name}", op.results[0].type, op.operands[0])]


@rule("llvm.icmp", "llvm.fcmp")
def compare(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """The predicates have the same numbers."""
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    name = "arith.cmpi" if op.name == "llvm.icmp" else "arith.cmpf"
    return [make(name, op.results[0].type, *op.operands, predicate=number_attribute(integer_type(64), number))]


@rule("llvm.bitcast", "llvm.freeze")
def cast(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """The same bits."""
    return [op.operands[0] if op.name == "llvm.freeze" else bitcast(op.operands[0], op.results[0].type)]


@rule("llvm.mlir.constant")
def known(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A number, or a vector of them."""
    kind, value = op.results[0].type, op.attributes["value"]
    if isinstance(kind, ir.VectorType) and isinstance(value, ir.DenseElementsAttr):
        element = element_of(kind)
        if element_of(value.type) != element:
            # Indices are integers in LLVM.
            numbers = np.array(integer_elements(ir.DenseIntElementsAttr(value)), np.int64)
            return [dense_integers(numbers.reshape(shape_of(kind)), element)]
        return [make("arith.constant", kind, value=value)]
    if isinstance(value, (ir.IntegerAttr, ir.BoolAttr)):
        return [constant(kind, int(value.value))]
    if not isinstance(value, ir.FloatAttr) or value.type != kind:
        refuse(op, f"its value is {value}")
    return [make("arith.constant", kind, value=value)]


@rule("llvm.mlir.undef", "llvm.mlir.poison", "llvm.mlir.zero")
def undefined(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Zero is as good as any value."""
    kind = op.results[0].type
    text = str(kind)
    if text.startswith("!llvm.ptr"):
        return [zero_of(integer_type(64))]
    if text.startswith("!llvm."):
        k.aggregates[op.results[0]] = {}
        return [op.results[0]]
    return [zero_of(kind)]


# Vectors.


def _position(op: ir.Operation, at: ir.Value, size: int) -> tuple[ir.Attribute, list[ir.Value]]:
    """The position of an element, as attribute and operand of vector.extract and vector.insert."""
    number = constant_of(at)
    if number is not None:
        if not 0 <= number < size:
            refuse(op, f"its position is {number}, in a vector of {size}")
        return ir.DenseI64ArrayAttr.get([number]), []
    return ir.DenseI64ArrayAttr.get([ir.ShapedType.get_dynamic_size()]), [as_index(resized(at, 64, signed=False))]


@rule("llvm.extractelement")
def extract(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """An element; if it was inserted by a visible op, the inserted value."""
    source, at = op.operands
    number = constant_of(at)
    found = None if number is None else put(source, number, op.results[0].type)
    if found is not None:
        return [found]
    static, dynamic = _position(op, at, shape_of(source)[0])
    return [make("vector.extract", op.results[0].type, source, *dynamic, static_position=static)]


def put(vector: ir.Value, place: int, kind: ir.Type) -> ir.Value | None:
    """The value that insertions have put at a place, through casts to elements of other sizes; None if none is seen.

    This reads payloads of block messages, which upstream keeps in a vector of 8 x i32.
    """
    width = ir.IntegerType(kind).width if isinstance(kind, ir.IntegerType) else 0
    start = place * width
    while width and (op := defining_op(vector)) is not None:
        if op.name == "vector.bitcast":
            vector = op.operands[0]
            continue
        if op.name == "arith.constant" and isinstance(element_of(vector), ir.IntegerType):
            splat = ir.DenseElementsAttr(op.attributes["value"])
            zero = splat.is_splat and int(splat.get_splat_value().value) == 0
            return constant(kind, 0) if zero else None
        if op.name != "vector.insert" or len(op.operands) != 2 or len(shape_of(vector)) != 1:
            return None
        value = op.operands[0]
        if not isinstance(value.type, ir.IntegerType):
            return None
        own = ir.IntegerType(value.type).width
        at = integers(op.attributes["static_position"])[0] * own
        if at == start and own == width:
            return value
        if at < start + width and start < at + own:
            return None
        vector = op.operands[1]
    return None


@rule("llvm.insertelement")
def insert(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A vector with one element replaced."""
    vector, value, at = op.operands
    static, dynamic = _position(op, at, shape_of(vector)[0])
    return [make("vector.insert", op.results[0].type, value, vector, *dynamic, static_position=static)]


@rule("vector.extract")
def of_vector(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """As it is, unless it reads a payload."""
    at = integers(op.attributes["static_position"])
    if len(op.operands) == 1 and len(at) == 1:
        found = put(op.operands[0], at[0], op.results[0].type)
        if found is not None:
            return [found]
    return [op.clone(ip=ir.InsertionPoint(op)).results[0]]


@rule("llvm.shufflevector")
def shuffle(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Elements of two vectors; poison is the first element."""
    order = [max(int(n), 0) for n in ir.DenseI32ArrayAttr(op.attributes["mask"])]
    return [make("vector.shuffle", op.results[0].type, *op.operands, mask=ir.DenseI64ArrayAttr.get(order))]


_REDUCTIONS = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "smax": "maxsi", "smin": "minsi",
    "umax": "maxui", "umin": "minui", "fmax": "maxnumf", "fmin": "minnumf", "fmaximum": "maximumf",
    "fminimum": "minimumf", "fadd": "add", "fmul": "mul",
}  # fmt: skip


@rule(*(f"llvm.intr.vector.reduce.{n}" for n in _REDUCTIONS))
def reduction(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """All elements combined; the start value of a float sum comes first."""
    kind = ir.Attribute.parse(f"#vector.kind<{_REDUCTIONS[op.name.rpartition('.')[2]]}>")
    *start, vector = op.operands
    return [make("vector.reduction", op.results[0].type, vector, *start, kind=kind)]


# Structs and arrays: only their parts are kept.


def _parts(k: KernelImport, op: ir.Operation, value: ir.Value) -> Any:
    if value not in k.aggregates:
        refuse(op, f"its {value.type} is not made where it can be seen")
    return k.aggregates[value]


@rule("llvm.insertvalue")
def insert_value(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """An aggregate with one part replaced."""
    container, value = op.operands
    path = tuple(ir.DenseI64ArrayAttr(op.attributes["position"]))
    found = {p: v for p, v in _parts(k, op, container).items() if p[: len(path)] != path}
    inner = k.aggregates.get(value)
    found |= {path: value} if inner is None else {path + p: v for p, v in inner.items()}
    k.aggregates[op.results[0]] = found
    return [op.results[0]]


@rule("llvm.extractvalue")
def extract_value(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A part of an aggregate."""
    path = tuple(ir.DenseI64ArrayAttr(op.attributes["position"]))
    known = _parts(k, op, op.operands[0])
    if path in known:
        return [known[path]]
    kind = op.results[0].type
    if str(kind).startswith("!llvm."):
        k.aggregates[op.results[0]] = {p[len(path) :]: v for p, v in known.items() if p[: len(path)] == path}
        return [op.results[0]]
    return [zero_of(kind)]


# Control flow.


@rule("llvm.br", "llvm.cond_br", "llvm.switch")
def branch(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A branch of cf, which `xegpu-lift-cf` makes structured, without LLVM's hints."""
    _check_passed(k, op)
    attributes = {n: a for n, a in attributes_of(op).items() if n not in ("branch_weights", "loop_annotation")}
    name = op.name.replace("llvm.", "cf.")
    ir.Operation.create(name, operands=list(op.operands), successors=list(op.successors), attributes=attributes)
    return []


def _check_passed(k: KernelImport, op: ir.Operation) -> None:
    for value in op.operands:
        if value in k.aggregates:
            refuse(op, f"it passes on a {value.type}")


@rule("llvm.return")
def return_(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """The end of a kernel, or of a function that it calls."""
    _check_passed(k, op)
    create("func.return" if k.func.name == "func.func" else "gpu.return", [], list(op.operands))
    return []


@rule(
    "llvm.intr.assume",
    "llvm.intr.lifetime.start",
    "llvm.intr.lifetime.end",
    "llvm.intr.experimental.noalias.scope.decl",
)
def hint(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Emit nothing: the op changes no value."""
    return []


@rule("builtin.unrealized_conversion_cast")
def conversion(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Casts between the types of two dialects: of index, i64, pointers, and memrefs as LLVM's descriptors."""
    if len(op.operands) != 1 or len(op.results) != 1:
        refuse(op, "it casts several values")
    value, result = op.operands[0], op.results[0]
    if isinstance(value.type, ir.MemRefType) and str(result.type).startswith("!llvm.struct"):
        return [describe(k, value, result)]
    if value in k.aggregates and isinstance(result.type, ir.MemRefType):
        return [memref_of(k, op, value, result.type)]
    wanted = integer_type(64) if str(result.type).startswith("!llvm.ptr") else result.type
    if value.type == wanted:
        return [value]
    if {str(value.type), str(wanted)} != {"index", "i64"}:
        refuse(op, f"it casts {value.type} to {result.type}")
    return [make("arith.index_cast", wanted, value)]


def describe(k: KernelImport, memref: ir.Value, into: ir.Value) -> ir.Value:
    """A memref as the parts of LLVM's descriptor of it."""
    rank = ir.MemRefType(memref.type).rank
    k.aggregates[into] = {
        (n,) if n < 3 else (3 + (n - 3) // rank, (n - 3) % rank): value for n, value in enumerate(descriptor(memref))
    }
    return into


def descriptor(memref: ir.Value) -> list[ir.Value]:
    """Base address, address of the first byte, offset, extents and strides of a memref, i64 each."""
    kind = ir.MemRefType(memref.type)
    i64 = integer_type(64)
    place = make("memref.extract_aligned_pointer_as_index", index_type(), memref)
    address = make("arith.index_cast", i64, place)
    strides, offset = kind.get_strides_and_offset()
    numbers = [offset, *kind.shape, *strides]
    values = strided_metadata(memref) if DYNAMIC in numbers else []
    made = [
        constant(i64, n) if n != DYNAMIC else make("arith.index_cast", i64, values[i]) for i, n in enumerate(numbers)
    ]
    return [address, address, *made]


def memref_of(k: KernelImport, op: ir.Operation, value: ir.Value, kind: ir.Type) -> ir.Value:
    """The memref that LLVM's descriptor describes."""
    parts, memref = k.aggregates[value], ir.MemRefType(kind)
    paths = [(1,), (2,), *((n, d) for n in (3, 4) for d in range(memref.rank))]
    if not all(p in parts for p in paths):
        refuse(op, "the descriptor that it uses as a memref is incomplete")
    address, *numbers = (first(parts[p]) for p in paths)
    space = f", {memref.memory_space}" if memref.memory_space is not None else ""
    line = ir.Type.parse(f"memref<?x{memref.element_type}{space}>")
    whole = make("builtin.unrealized_conversion_cast", line, address)
    strides, offset = memref.get_strides_and_offset()
    known = [offset, *memref.shape, *strides]
    start, *rest = (as_index(v) if n == DYNAMIC else n for v, n in zip(numbers, known))
    return reinterpret_cast(whole, start, rest[: memref.rank], rest[memref.rank :], memref)
