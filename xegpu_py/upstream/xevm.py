"""Kernels in llvm and xevm: functions, arithmetic, built-in functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import gpu
from mlir.passmanager import PassManager

from xegpu_py.dialects.xegpu.types import EXACT_ADDRESSES
from xegpu_py.ir.builtin import CombiningKind, enum_attribute, integer_elements, number_attribute
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.passes.analysis.ir_queries import (
    SUBGROUP_SIZE,
    attributes_of,
    constant_of,
    defining_op,
    element_of,
    integers,
    shape_of,
    symbol_of,
)
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import (
    constant,
    create,
    dense_integers,
    index_type,
    integer_type,
    make,
    reinterpret_cast,
)
from xegpu_py.upstream import xevm_memory
from xegpu_py.upstream.classification import is_entry
from xegpu_py.upstream.import_common import parts, refuse, within
from xegpu_py.upstream.levels import LANES
from xegpu_py.upstream.xevm_dialect import PREFIX
from xegpu_py.upstream.xevm_memory import (
    PRIVATE,
    SHARED,
    KernelImport,
    as_index,
    bitcast,
    first,
    resized,
    rule,
    space_of,
)

# Kernels in MLIR's dialects `xevm` and `llvm`, as upstream's passes make them of XeGPU: rebuilt in our dialects.
#
# A kernel is a `gpu.func`, or an `llvm.func` that is an entry point; it may have ops of both dialects at any stage of
# upstream's lowering, among ops of `arith`, `math`, `vector`, `memref`, `scf`, `cf` and `gpu`. It becomes one of work
# items, 16 a subgroup: blocks are those of `xegpu` in SIMT mode, pointers are addresses.

_KEPT = ("known_block_size", "known_grid_size", "xegpu.lanes_per_subgroup")


def import_kernel(
    func: ir.Operation, parameters: Sequence[ir.Type] | None = None, buffers: Sequence[ir.Type | None] = ()
) -> ir.Operation:
    """Rebuild a kernel, in place.

    Args:
        func: a `gpu.func` or an `llvm.func`.
        parameters: the types of the arguments of the kernel that the `llvm.func` was lowered from. Without them all
            arguments but pointers stay as they are.
        buffers: for each argument the type of the memref that replaces a pointer; by default one of bytes.

    Returns:
        The new kernel, a `gpu.func` of work items.

    Raises:
        DiagnosticError: at the op that cannot be rebuilt.
    """
    with func.location:
        _promote(func)
        made = _as_gpu_func(func, parameters, buffers)
        KernelImport(made).run()
    return made


def import_functions(module: ir.Operation) -> list[ir.Operation]:
    """Rebuild the functions of a `gpu.module` that kernels call, in place, as `func.func`.

    Raises:
        DiagnosticError: at the op that cannot be rebuilt.
    """
    found = within(module, "llvm.func")
    return [_import_function(func) for func in found if len(func.regions[0].blocks) and not is_entry(func)]


def _promote(func: ir.Operation) -> None:
    """Replace private memory by values if all its accesses are to known parts."""
    if any(op.name == "llvm.alloca" and space_of(op.results[0].type) == PRIVATE for op in parts(func)):
        PassManager.parse("any(sroa,mem2reg)", func.context).run(func)


def _import_function(func: ir.Operation) -> ir.Operation:
    _promote(func)
    address = integer_type(64)
    ends = [op for op in parts(func) if op.name == "llvm.return"]
    inputs, results = (
        [address if space_of(v.type) is not None else v.type for v in values]
        for values in (func.regions[0].blocks[0].arguments, ends[0].operands if ends else [])
    )
    attributes = {
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, results)),
        "sym_name": func.attributes["sym_name"],
        "sym_visibility": ir.StringAttr.get("private"),
    }
    with ir.InsertionPoint(func), func.location:
        made = ir.Operation.create("func.func", attributes=attributes, regions=1)
        for block in list(func.regions[0].blocks):
            block.append_to(made.regions[0])
        KernelImport(made).run()
    func.erase()
    return made


def drop_lowered(root: ir.Operation) -> None:
    """Remove declarations, globals and targets, which only `llvm` functions use, from modules of kernels."""
    for module in within(root, "gpu.module"):
        for op in within(module, "llvm.func", "llvm.mlir.global"):
            op.erase()
        if "targets" in module.attributes:
            del module.attributes["targets"]


def _as_gpu_func(
    func: ir.Operation, parameters: Sequence[ir.Type] | None, buffers: Sequence[ir.Type | None]
) -> ir.Operation:
    """A kernel with the parameters that it had before it was lowered."""
    entry = func.regions[0].blocks[0]
    old = list(entry.arguments)
    size = func.attributes.get("intel_reqd_sub_group_size")
    if size is not None and int(ir.IntegerAttr(size).value) != LANES:
        refuse(func, f"its subgroups have {ir.IntegerAttr(size).value} work items; its blocks require {LANES}")
    if parameters is None:
        # A pointer without a known buffer becomes a memref of bytes.
        found = ((a.type, b or ir.MemRefType.get([DYNAMIC], integer_type(8))) for a, b in zip_longest(old, buffers))
        types = [kind if space_of(kind) is None else buffer for kind, buffer in found]
    else:
        types = list(parameters)
    attributes: dict[str, ir.Attribute] = {
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
        "sym_name": func.attributes["sym_name"],
        gpu.GPUFuncOp.KERNEL_ATTR_NAME: ir.UnitAttr.get(),
        SUBGROUP_SIZE: ir.IntegerAttr.get(integer_type(32), LANES),
        EXACT_ADDRESSES: ir.UnitAttr.get(),
        **{n: func.attributes[n] for n in _KEPT if n in func.attributes},
    }
    with ir.InsertionPoint(func):
        made = ir.Operation.create("gpu.func", attributes=attributes, regions=1)
    for block in list(func.regions[0].blocks):
        block.append_to(made.regions[0])
    entry = made.regions[0].blocks[0]
    given = [entry.add_argument(kind, func.location) for kind in types]
    with ir.InsertionPoint.at_block_begin(entry):
        if parameters is None:
            values = [descriptor(v)[0] if space_of(o.type) is not None else v for v, o in zip(given, old)]
        else:
            values = [v for value in given for v in _lowered(value)]
    if len(values) != len(old):
        emit_error(func, f"has {len(old)} arguments, but {', '.join(map(str, types))} require others")
    for argument in old:
        if space_of(argument.type) == SHARED:
            refuse(func, "it has an argument in shared local memory, whose size is known only at launch")
    for argument, value in zip(old, values):
        argument.replace_all_uses_with(value)
    for _ in old:
        entry.erase_argument(0)
    func.erase()
    return made


def pass_buffers(launches: Sequence[ir.Operation], func: ir.Operation) -> list[ir.Type | None]:
    """Let launches of a kernel pass memrefs in place of pointers. Returns their types; None for other arguments.

    Raises:
        DiagnosticError: at a launch whose pointer comes from no memref, or from one of another type than before.
    """
    found: list[ir.Type | None] = [None] * len(func.regions[0].blocks[0].arguments)
    wanted = [symbol_of(f) for f in (func.parent, func)]
    for op in launches:
        if ir.SymbolRefAttr(op.attributes["kernel"]).value != wanted:
            continue
        # An async object comes last.
        start = len(op.operands) - len(found) - list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-1]
        for i, value in enumerate(list(op.operands)[start : start + len(found)]):
            if space_of(value.type) is None:
                continue
            memref = _memref_of(value)
            if memref is None or found[i] not in (None, memref.type):
                refuse(op, f"its argument {i} is a pointer that is not that of {found[i] or 'a memref'}")
            found[i] = memref.type
            op.operands[start + i] = memref
    return found


_POINTERS = ("llvm.addrspacecast", "llvm.inttoptr", "arith.index_cast", "arith.index_castui")


def _memref_of(value: ir.Value) -> ir.Value | None:
    """The memref to whose buffer a pointer points; None if it cannot be determined."""
    op = defining_op(value)
    while op is not None and op.name in _POINTERS:
        op = defining_op(op.operands[0])
    return op.operands[0] if op is not None and op.name == "memref.extract_aligned_pointer_as_index" else None


def _lowered(value: ir.Value) -> list[ir.Value]:
    """The arguments of the lowered `llvm.func` for a kernel's argument: of a memref, its descriptor's parts."""
    if isinstance(value.type, ir.MemRefType):
        return descriptor(value)
    if isinstance(value.type, ir.IndexType):
        return [make("arith.index_cast", integer_type(64), value)]
    return [value]


__all__ = ["drop_lowered", "import_functions", "import_kernel", "pass_buffers"]


# `llvm`: numbers, vectors, aggregates and branches, as ops of `arith`, `math`, `vector` and `cf`.

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
def same(k: KernelImport, op: ir.Operation) -> None:
    """The op of arith."""
    k.replace(op, make(f"arith.{_SAME[op.name.removeprefix('llvm.')]}", op.results[0].type, *op.operands))


@rule(*(f"llvm.intr.{n}" for n in _MATH))
def function(k: KernelImport, op: ir.Operation) -> None:
    """The op of math."""
    k.replace(op, make(f"math.{_MATH[op.name.removeprefix('llvm.intr.')]}", op.results[0].type, *op.operands))


@rule("llvm.intr.abs", "llvm.intr.ctlz", "llvm.intr.cttz")
def counted(k: KernelImport, op: ir.Operation) -> None:
    """Where LLVM's result is poison, the result is that of the op of math."""
    name = op.name.removeprefix("llvm.intr.").replace("abs", "absi")
    k.replace(op, make(f"math.{name}", op.results[0].type, op.operands[0]))


@rule("llvm.icmp", "llvm.fcmp")
def compare(k: KernelImport, op: ir.Operation) -> None:
    """The predicates have the same numbers."""
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    name = "arith.cmpi" if op.name == "llvm.icmp" else "arith.cmpf"
    k.replace(op, make(name, op.results[0].type, *op.operands, predicate=number_attribute(integer_type(64), number)))


@rule("llvm.bitcast", "llvm.freeze")
def cast(k: KernelImport, op: ir.Operation) -> None:
    """The same bits."""
    k.replace(op, op.operands[0] if op.name == "llvm.freeze" else bitcast(op.operands[0], op.results[0].type))


@rule("llvm.mlir.constant")
def known(k: KernelImport, op: ir.Operation) -> None:
    """A number, or a vector of them."""
    kind, value = op.results[0].type, op.attributes["value"]
    if isinstance(kind, ir.VectorType) and isinstance(value, ir.DenseElementsAttr):
        made = make("arith.constant", kind, value=value) if element_of(value.type) == element_of(kind) else None
        if made is None:
            # Indices are integers in LLVM.
            numbers = np.array(integer_elements(ir.DenseIntElementsAttr(value)), np.int64)
            made = dense_integers(numbers.reshape(shape_of(kind)), element_of(kind))
    elif isinstance(value, (ir.IntegerAttr, ir.BoolAttr)):
        made = constant(kind, int(value.value))
    elif isinstance(value, ir.FloatAttr) and value.type == kind:
        made = make("arith.constant", kind, value=value)
    else:
        refuse(op, f"its value is {value}")
    k.replace(op, made)


@rule("llvm.mlir.undef", "llvm.mlir.poison", "llvm.mlir.zero")
def undefined(k: KernelImport, op: ir.Operation) -> None:
    """Zero is as good as any value."""
    kind = op.results[0].type
    text = str(kind)
    if text.startswith("!llvm.") and not text.startswith("!llvm.ptr"):
        k.aggregates[op.results[0]] = {}
    else:
        k.replace(op, constant(integer_type(64) if text.startswith("!llvm.") else kind, 0))


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
def extract(k: KernelImport, op: ir.Operation) -> None:
    """An element; if it was inserted by a visible op, the inserted value."""
    source, at = op.operands
    number = constant_of(at)
    found = None if number is None else put(source, number, op.results[0].type)
    if found is None:
        static, dynamic = _position(op, at, shape_of(source)[0])
        found = make("vector.extract", op.results[0].type, source, *dynamic, static_position=static)
    k.replace(op, found)


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
def insert(k: KernelImport, op: ir.Operation) -> None:
    """A vector with one element replaced."""
    vector, value, at = op.operands
    static, dynamic = _position(op, at, shape_of(vector)[0])
    k.replace(op, make("vector.insert", op.results[0].type, value, vector, *dynamic, static_position=static))


@rule("vector.extract")
def of_vector(k: KernelImport, op: ir.Operation) -> None:
    """As it is, unless it reads a payload."""
    at = integers(op.attributes["static_position"])
    is_one = len(op.operands) == 1 and len(at) == 1
    found = put(op.operands[0], at[0], op.results[0].type) if is_one else None
    k.replace(op, op.clone(ip=ir.InsertionPoint(op)).results[0] if found is None else found)


@rule("llvm.shufflevector")
def shuffle(k: KernelImport, op: ir.Operation) -> None:
    """Elements of two vectors; poison is the first element."""
    order = [max(int(n), 0) for n in ir.DenseI32ArrayAttr(op.attributes["mask"])]
    k.replace(op, make("vector.shuffle", op.results[0].type, *op.operands, mask=ir.DenseI64ArrayAttr.get(order)))


_REDUCTIONS = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "smax": "maxsi", "smin": "minsi",
    "umax": "maxui", "umin": "minui", "fmax": "maxnumf", "fmin": "minnumf", "fmaximum": "maximumf",
    "fminimum": "minimumf", "fadd": "add", "fmul": "mul",
}  # fmt: skip


@rule(*(f"llvm.intr.vector.reduce.{n}" for n in _REDUCTIONS))
def reduction(k: KernelImport, op: ir.Operation) -> None:
    """All elements combined; the start value of a float sum comes first."""
    kind = CombiningKind(_REDUCTIONS[op.name.rpartition(".")[2]]).attribute
    *start, vector = op.operands
    k.replace(op, make("vector.reduction", op.results[0].type, vector, *start, kind=kind))


# Structs and arrays: only their parts are kept.


def _parts(k: KernelImport, op: ir.Operation, value: ir.Value) -> Any:
    if value not in k.aggregates:
        refuse(op, f"its {value.type} is not made where it can be seen")
    return k.aggregates[value]


@rule("llvm.insertvalue")
def insert_value(k: KernelImport, op: ir.Operation) -> None:
    """An aggregate with one part replaced."""
    container, value = op.operands
    path = tuple(ir.DenseI64ArrayAttr(op.attributes["position"]))
    found = {p: v for p, v in _parts(k, op, container).items() if p[: len(path)] != path}
    inner = k.aggregates.get(value)
    found |= {path: value} if inner is None else {path + p: v for p, v in inner.items()}
    k.aggregates[op.results[0]] = found


@rule("llvm.extractvalue")
def extract_value(k: KernelImport, op: ir.Operation) -> None:
    """A part of an aggregate."""
    path = tuple(ir.DenseI64ArrayAttr(op.attributes["position"]))
    known, kind = _parts(k, op, op.operands[0]), op.results[0].type
    if path not in known and str(kind).startswith("!llvm."):
        k.aggregates[op.results[0]] = {p[len(path) :]: v for p, v in known.items() if p[: len(path)] == path}
    else:
        k.replace(op, known[path] if path in known else constant(kind, 0))


# Control flow.


@rule("llvm.br", "llvm.cond_br", "llvm.switch")
def branch(k: KernelImport, op: ir.Operation) -> None:
    """A branch of cf, which `xegpu-lift-cf` makes structured, without LLVM's hints."""
    _check_passed(k, op)
    attributes = {n: a for n, a in attributes_of(op).items() if n not in ("branch_weights", "loop_annotation")}
    name = op.name.replace("llvm.", "cf.")
    ir.Operation.create(name, operands=list(op.operands), successors=list(op.successors), attributes=attributes)


def _check_passed(k: KernelImport, op: ir.Operation) -> None:
    for value in op.operands:
        if value in k.aggregates:
            refuse(op, f"it passes on a {value.type}")


@rule("llvm.return")
def return_(k: KernelImport, op: ir.Operation) -> None:
    """The end of a kernel, or of a function that it calls."""
    _check_passed(k, op)
    create("func.return" if k.func.name == "func.func" else "gpu.return", [], list(op.operands))


@rule(
    "llvm.intr.assume",
    "llvm.intr.lifetime.start",
    "llvm.intr.lifetime.end",
    "llvm.intr.experimental.noalias.scope.decl",
)
def hint(k: KernelImport, op: ir.Operation) -> None:
    """Emit nothing: the op changes no value."""


@rule("builtin.unrealized_conversion_cast")
def conversion(k: KernelImport, op: ir.Operation) -> None:
    """Casts between the types of two dialects: of index, i64, pointers, and memrefs as LLVM's descriptors."""
    if len(op.operands) != 1 or len(op.results) != 1:
        refuse(op, "it casts several values")
    value, result = op.operands[0], op.results[0]
    wanted = integer_type(64) if str(result.type).startswith("!llvm.ptr") else result.type
    if isinstance(value.type, ir.MemRefType) and str(result.type).startswith("!llvm.struct"):
        rank = ir.MemRefType(value.type).rank
        k.aggregates[result] = {
            (n,) if n < 3 else (3 + (n - 3) // rank, (n - 3) % rank): v for n, v in enumerate(descriptor(value))
        }
    elif value in k.aggregates and isinstance(result.type, ir.MemRefType):
        k.replace(op, memref_of(k, op, value, result.type))
    elif value.type == wanted or {str(value.type), str(wanted)} == {"index", "i64"}:
        k.replace(op, value if value.type == wanted else make("arith.index_cast", wanted, value))
    else:
        refuse(op, f"it casts {value.type} to {result.type}")


def descriptor(memref: ir.Value) -> list[ir.Value]:
    """Base address, address of the first byte, offset, extents and strides of a memref, i64 each."""
    i64 = integer_type(64)
    address = build.element_address(memref, 0, 8)
    start, extents, strides = build.strided_layout(memref)
    numbers = (
        constant(i64, n) if isinstance(n, int) else make("arith.index_cast", i64, n)
        for n in (start, *extents, *strides)
    )
    return [address, address, *numbers]


def memref_of(k: KernelImport, op: ir.Operation, value: ir.Value, kind: ir.Type) -> ir.Value:
    """The memref that LLVM's descriptor describes."""
    parts, memref = k.aggregates[value], ir.MemRefType(kind)
    paths = [(1,), (2,), *((n, d) for n in (3, 4) for d in range(memref.rank))]
    if not all(p in parts for p in paths):
        refuse(op, "the descriptor that it uses as a memref is incomplete")
    address, *numbers = (first(parts[p]) for p in paths)
    line = ir.MemRefType.get([DYNAMIC], memref.element_type, memory_space=memref.memory_space)
    whole = make("builtin.unrealized_conversion_cast", line, address)
    strides, offset = memref.get_strides_and_offset()
    known = [offset, *memref.shape, *strides]
    start, *rest = (as_index(v) if n == DYNAMIC else n for v, n in zip(numbers, known))
    return reinterpret_cast(whole, start, rest[: memref.rank], rest[memref.rank :], memref)


# `llvm.call` of the functions of OpenCL C and SPIR-V that upstream's passes call, by their mangled names.
#
# Sources: OpenCL C's specification, sections 6.15.1 and 6.15.19; cl_khr_subgroups, cl_intel_subgroups,
# cl_intel_subgroup_2d_block_io, cl_intel_subgroup_matrix_multiply_accumulate; the Itanium C++ ABI for names.

_IDS = {
    "get_local_id": "gpu.thread_id",
    "get_group_id": "gpu.block_id",
    "get_local_size": "gpu.block_dim",
    "get_enqueued_local_size": "gpu.block_dim",
    "get_num_groups": "gpu.grid_dim",
    "get_global_id": "gpu.global_id",
}
"""Functions of a dimension, and ops of gpu."""

_NUMBERS = {
    "get_sub_group_local_id": "gpu.lane_id",
    "get_sub_group_id": "gpu.subgroup_id",
    "get_num_sub_groups": "gpu.num_subgroups",
    "get_sub_group_size": "gpu.subgroup_size",
    "get_max_sub_group_size": "gpu.subgroup_size",
}

_SHUFFLES = {"sub_group_shuffle": "idx", "sub_group_shuffle_xor": "xor", "sub_group_shuffle_up": "up",
             "sub_group_shuffle_down": "down"}  # fmt: skip

_BUILTIN_MATH = {n: n for n in (
    "exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "ceil", "floor",
    "trunc", "round", "fma", "atan", "atan2", "sinh", "cosh", "asin", "acos", "cbrt", "expm1", "log1p",
)} | {"fabs": "absf", "pow": "powf", "powr": "powf", "rint": "roundeven", "mad": "fma"}  # fmt: skip

_NATIVE = {"divide": "arith.divf"} | {f"{n}": f"math.{m}" for n, m in _BUILTIN_MATH.items()}

_BLOCK = re.compile(
    r"intel_sub_group_2d_block_(read|write|prefetch)(?:_(transform|transpose))?_(\d+)b_(\d+)r(\d+)x(\d+)c"
)

_MAD = re.compile(r"intel_sub_group_(\w+?)_(\w+?)_matrix_mad_k(\d+)")

_LINE = re.compile(r"intel_sub_group_block_(read|write)\w*")


def plain(name: str) -> str:
    """A function's name without the mangling of the Itanium C++ ABI."""
    found = re.match(r"_Z(\d+)", name)
    return name[found.end() : found.end() + int(found[1])] if found else name


@rule("llvm.call")
def call(k: KernelImport, op: ir.Operation) -> None:
    """The meaning of the function."""
    k.replace(op, *_called(k, op))


def _called(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    if "callee" not in op.attributes:
        refuse(op, "it calls a function through a pointer")
    symbol = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    name = plain(symbol)
    kind = op.results[0].type if len(op.results) else None
    if _is_defined(k, symbol):
        return _call(op, symbol)
    if name in _IDS and kind is not None:
        return [_place(op, name, kind)]
    if name in _NUMBERS and kind is not None:
        found = make(_NUMBERS[name], index_type())
        return [make("arith.index_castui", kind, found)]
    block, product = _BLOCK.fullmatch(name), _MAD.fullmatch(name)
    if block:
        return _block(k, op, block)
    if product and kind is not None:
        return [_product(op, product, kind)]
    if _LINE.fullmatch(name):
        if kind is None:
            xevm_memory.blockstore(k, op)
            return []
        return [xevm_memory.load_line(k, op, kind)]
    for prefix in ("intel_", ""):
        mode = _SHUFFLES.get(name.removeprefix(prefix))
        if mode and kind is not None and len(op.operands) == 2:
            return [shuffled(op.operands[0], op.operands[1], mode)]
    if name in ("barrier", "work_group_barrier"):
        ir.Operation.create("gpu.barrier")
        return []
    if name == "atomic_work_item_fence":
        _fence(op)
        return []
    if name in ("prefetch", "sub_group_barrier"):
        return []
    math = _math(name)
    if math is None or kind is None:
        refuse(op, f"@{symbol} is not a known function")
    return [make(math, kind, *op.operands)]


def _is_defined(k: KernelImport, symbol: str) -> bool:
    """Whether the kernel's module has the function's body."""
    functions = within(k.func.parent, "llvm.func", "func.func")
    return any(len(f.regions[0].blocks) > 0 for f in functions if symbol_of(f) == symbol)


def _call(op: ir.Operation, symbol: str) -> Sequence[ir.Value]:
    """A call of a function that is rebuilt too."""
    types = [integer_type(64) if space_of(r.type) is not None else r.type for r in op.results]
    callee = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
    return list(ir.Operation.create("func.call", results=types, operands=list(op.operands), attributes=callee).results)


def _math(name: str) -> str | None:
    """The op of a function of numbers; of SPIR-V's also those that need not be exact."""
    native = re.fullmatch(r"__spirv_ocl_(?:native_)?(\w+)|native_(\w+)", name)
    if native:
        return _NATIVE.get(native[1] or native[2])
    return f"math.{_BUILTIN_MATH[name]}" if name in _BUILTIN_MATH else None


def _place(op: ir.Operation, name: str, kind: ir.Type) -> ir.Value:
    """An id or an extent of a dimension."""
    number = constant_of(op.operands[0])
    if number not in (0, 1, 2):
        refuse(op, "its dimension is not 0, 1 or 2")
    dimension = enum_attribute("gpu.dim", "xyz"[number])
    return make("arith.index_castui", kind, make(_IDS[name], index_type(), dimension=dimension))


_OF_DIMENSION = {"local_id": "thread_id", "local_size": "block_dim", "group_id": "block_id", "group_count": "grid_dim"}


@rule(*(PREFIX + name for name in _OF_DIMENSION))
def special(k: KernelImport, op: ir.Operation) -> None:
    """An id or an extent of a dimension."""
    of = _OF_DIMENSION[op.name.removeprefix(PREFIX)]
    dimension = enum_attribute("gpu.dim", op.opview.dimension.value)
    k.replace(op, make("arith.index_castui", op.results[0].type, make(f"gpu.{of}", index_type(), dimension=dimension)))


@rule(*(PREFIX + name for name in ("lane_id", "subgroup_id", "subgroup_size")))
def subgroup(k: KernelImport, op: ir.Operation) -> None:
    """The lane, the subgroup, or the lanes of a subgroup."""
    found = make(f"gpu.{op.name.removeprefix(PREFIX)}", index_type())
    k.replace(op, make("arith.index_castui", op.results[0].type, found))


def _block(k: KernelImport, op: ir.Operation, name: re.Match[str]) -> Sequence[ir.Value]:
    """A block message, whose data are in private memory."""
    what, how, *numbers = name.groups()
    bits, rows, columns, count = map(int, numbers)
    tile = xevm_memory.MessageBlock(bits, rows, columns, count, how == "transpose", how == "transform")
    address, width, height, pitch, xy, *data = op.operands
    x, y = (_coordinate(xy, i) for i in range(2))
    where = xevm_memory.MessageSurface(address, width, height, pitch, x, y)
    if what == "prefetch":
        xevm_memory.prefetch(op, where, tile)
        return []
    if not data or data[0] not in k.private:
        refuse(op, "its source or destination is not in private memory")
    if what == "read":
        # A lane has as many bits as all of them by the lanes.
        element = integer_type(32 if tile.pack else bits)
        size = bits * rows * columns * count // LANES
        if size % ir.IntegerType(element).width:
            element = integer_type(bits)
        kind = ir.VectorType.get([size // ir.IntegerType(element).width], element)
        k.private[data[0]] = xevm_memory.load(op, where, tile, kind)
    elif (held := k.private[data[0]]) is None:
        refuse(op, "the value that it stores was never initialized")
    else:
        xevm_memory.store(op, where, tile, held)
    return []


def _coordinate(xy: ir.Value, i: int) -> ir.Value:
    kind = integer_type(32)
    found = put(xy, i, kind)
    if found is not None:
        return found
    return make("vector.extract", kind, xy, static_position=ir.DenseI64ArrayAttr.get([i]))


_NAMES = {"i8": "s8", "i4": "s4"}


def _product(op: ir.Operation, name: re.Match[str], kind: ir.Type) -> ir.Value:
    """A product of the lanes' fragments of matrices."""
    a, b, acc = op.operands
    types = {"a": _NAMES.get(name[1], name[1]), "b": _NAMES.get(name[2], name[2])}
    element = str(element_of(kind))
    # A result of bf16 is one of short.
    types["d"] = {"i32": "s32", "i16": "bf16"}.get(element, element)
    return xevm_memory.multiply(op, a, b, acc, types, int(name[3]), kind)


def shuffled(value: ir.Value, offset: ir.Value, mode: str) -> ir.Value:
    """The values of other lanes: integers of any size, and floats."""
    kind = value.type
    bits = ir.IntegerType(kind).width if isinstance(kind, ir.IntegerType) else ir.FloatType(kind).width
    held = bitcast(value, integer_type(bits)) if isinstance(kind, ir.FloatType) else value
    part = resized(held, 32, signed=False) if bits < 32 else held
    width = constant(integer_type(32), LANES)
    moved = build.lane_shuffle(part, resized(offset, 32, signed=False), mode, width)
    return bitcast(resized(moved, bits), kind)


def _fence(op: ir.Operation) -> None:
    """OpenCL's fence: flags of the memories, an order, and a scope."""
    flags, _, scope = (constant_of(v) for v in op.operands)
    scopes = {0: "lane", 1: "workgroup", 2: "device", 4: "subgroup"}
    if flags is None or scope not in scopes:
        refuse(op, "its memories or its scope are not known")
    space = {1: "shared", 2: "global", 3: "generic"}.get(flags & 3)
    if space is not None:
        xevm_memory.fence(op, space, scopes[scope])
