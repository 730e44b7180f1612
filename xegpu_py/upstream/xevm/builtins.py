"""`llvm.call` of the functions of OpenCL C and SPIR-V that upstream's passes call, by their mangled names.

Sources: OpenCL C's specification, sections 6.15.1 and 6.15.19; cl_khr_subgroups, cl_intel_subgroups,
cl_intel_subgroup_2d_block_io, cl_intel_subgroup_matrix_multiply_accumulate; the Itanium C++ ABI for names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlir import ir

from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import constant, index_type, integer_type, make
from xegpu_py.passes.common.kernels import symbol_of
from xegpu_py.passes.common.values import constant_of, element_of
from xegpu_py.upstream.rebuilding import LANES, refuse, within
from xegpu_py.upstream.xevm import blocks
from xegpu_py.upstream.xevm.arithmetic import put
from xegpu_py.upstream.xevm.state import KernelImport, bitcast, resized, rule, space_of

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

_MATH = {n: n for n in (
    "exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "ceil", "floor",
    "trunc", "round", "fma", "atan", "atan2", "sinh", "cosh", "asin", "acos", "cbrt", "expm1", "log1p",
)} | {"fabs": "absf", "pow": "powf", "powr": "powf", "rint": "roundeven", "mad": "fma"}  # fmt: skip
_NATIVE = {"divide": "arith.divf"} | {f"{n}": f"math.{m}" for n, m in _MATH.items()}

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
def call(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """The meaning of the function."""
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
            return blocks.blockstore(k, op)
        return [blocks.load_line(k, op, kind)]
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
    return f"math.{_MATH[name]}" if name in _MATH else None


def _place(op: ir.Operation, name: str, kind: ir.Type) -> ir.Value:
    """An id or an extent of a dimension."""
    number = constant_of(op.operands[0])
    if number not in (0, 1, 2):
        refuse(op, "its dimension is not 0, 1 or 2")
    dimension = ir.Attribute.parse(f"#gpu<dim {'xyz'[number]}>")
    return make("arith.index_castui", kind, make(_IDS[name], index_type(), dimension=dimension))


@rule(*(f"xevm.{n}.{d}" for n in ("local_id", "local_size", "group_id", "group_count") for d in "xyz"))
def special(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """An id or an extent of a dimension."""
    name, _, dim = op.name.removeprefix("xevm.").partition(".")
    of = {"local_id": "thread_id", "local_size": "block_dim", "group_id": "block_id", "group_count": "grid_dim"}[name]
    found = make(f"gpu.{of}", index_type(), dimension=ir.Attribute.parse(f"#gpu<dim {dim}>"))
    return [make("arith.index_castui", op.results[0].type, found)]


@rule("xevm.lane_id", "xevm.subgroup_id", "xevm.subgroup_size")
def subgroup(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """The lane, the subgroup, or the lanes of a subgroup."""
    found = make(f"gpu.{op.name.removeprefix('xevm.')}", index_type())
    return [make("arith.index_castui", op.results[0].type, found)]


def _block(k: KernelImport, op: ir.Operation, name: re.Match[str]) -> Sequence[ir.Value]:
    """A block message, whose data are in private memory."""
    what, how, *numbers = name.groups()
    bits, rows, columns, count = map(int, numbers)
    tile = blocks.Tile(bits, rows, columns, count, how == "transpose", how == "transform")
    address, width, height, pitch, xy, *data = op.operands
    x, y = (_coordinate(xy, i) for i in range(2))
    where = blocks.Surface(address, width, height, pitch, x, y)
    if what == "prefetch":
        blocks.prefetch(op, where, tile)
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
        k.private[data[0]] = blocks.load(op, where, tile, kind)
    elif (held := k.private[data[0]]) is None:
        refuse(op, "the value that it stores was never initialized")
    else:
        blocks.store(op, where, tile, held)
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
    return blocks.multiply(op, a, b, acc, types, int(name[3]), kind)


def shuffled(value: ir.Value, offset: ir.Value, mode: str) -> ir.Value:
    """The values of other lanes: integers of any size, and floats."""
    kind = value.type
    bits = ir.IntegerType(kind).width if isinstance(kind, ir.IntegerType) else ir.FloatType(kind).width
    held = bitcast(value, integer_type(bits)) if isinstance(kind, ir.FloatType) else value
    part = resized(held, 32, signed=False) if bits < 32 else held
    width = constant(integer_type(32), LANES)
    moved = build.shuffled(part, resized(offset, 32, signed=False), mode, width)
    return bitcast(resized(moved, bits), kind)


def _fence(op: ir.Operation) -> None:
    """OpenCL's fence: flags of the memories, an order, and a scope."""
    flags, _, scope = (constant_of(v) for v in op.operands)
    scopes = {0: "lane", 1: "workgroup", 2: "device", 4: "subgroup"}
    if flags is None or scope not in scopes:
        refuse(op, "its memories or its scope are not known")
    space = {1: "shared", 2: "global", 3: "generic"}.get(flags & 3)
    if space is not None:
        blocks.fence(op, space, scopes[scope])
