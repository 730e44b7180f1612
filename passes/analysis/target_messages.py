"""The messages and instructions of a target, and the shapes of their blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mlir import ir

from xegpu_py.dialects.xegpu import CacheHint, Mode, TensorDesc
from xegpu_py.dialects.xegpu.matrix_ops import block_shapes, vnni_factor
from xegpu_py.ir.builtin import bit_width, is_integer, signedness
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.numerics.formats import FLOATS
from xegpu_py.passes.analysis.integer_analysis import divisor
from xegpu_py.passes.analysis.ir_queries import is_desc, shape_of
from xegpu_py.passes.rewriting.builders import create_like, replace_op, shape_cast, transpose, with_shape
from xegpu_py.target import Target
from xegpu_py.target.message_rules import Block2DLimits
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Raw, Variable
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import BlockShape, DataShape, Problem

# The messages of XeGPU ops: their cache options, data shapes and operations.

HINTS = ("l1_hint", "l2_hint", "l3_hint")


def hints_of(view: Any) -> dict[str, Any]:
    """The cache hints of an op, as keyword arguments for the ops that replace it."""
    return {name: getattr(view, name) for name in HINTS}


def transposes_in_message(view: Any, desc: TensorDesc, limits: Block2DLimits) -> bool:
    """Return whether a message can transpose a load: its first column is a multiple of the message's unit."""
    unit = limits.transposed_unit(view.transpose_bit_width or desc.bits)
    first = divisor(view.tdesc)
    if desc.attr.array_length > 1:
        first = math.gcd(first, desc.shape[-1])
    return unit is not None and first * desc.bits % unit == 0


def load_like(view: Any, tdesc: ir.Value, **fields: Any) -> ir.Value:
    """Load a block as another load does: with its mode and its cache hints, and these fields."""
    loaded: ir.Value = type(view)(tdesc, mode=view.mode, **hints_of(view), **fields).value
    return loaded


READ_CACHE_WORDS = {
    CacheHint.CACHED: "ca",
    CacheHint.UNCACHED: "uc",
    CacheHint.STREAMING: "st",
    CacheHint.READ_INVALIDATE: "ri",
}
"""The words of vISA assembly for the hints of reads."""

WRITE_CACHE_WORDS = {
    CacheHint.UNCACHED: "uc",
    CacheHint.WRITE_THROUGH: "wt",
    CacheHint.WRITE_BACK: "wb",
    CacheHint.STREAMING: "st",
}
"""The words of vISA assembly for the hints of writes."""

ATOMIC_MESSAGES = {
    "addf": "fadd",
    "addi": "iadd",
    "assign": "store",
    "maxnumf": "fmax",
    "maxs": "smax",
    "maxu": "umax",
    "minnumf": "fmin",
    "mins": "smin",
    "minu": "umin",
    "ori": "or",
    "andi": "and",
    "xori": "xor",
}
"""The atomic messages by arith's kinds.

fmin and fmax are minnumf and maxnumf, which prefer a number to NaN. Intel's compilers emit them for LLVM's `atomicrmw
fmin` and `fmax`, which have this definition.
"""


def atomic_shape(bits: int) -> DataShape:
    """The data shape of an atomic message for elements of 16, 32 or 64 bits; for 8 bits, the enclosing 32-bit word."""
    if bits == 8:
        return DataShape("d32")
    return DataShape(f"d{bits}c32" if bits < 32 else f"d{bits}")


def atomic_message_of(op: Any, element: str, slm: bool, target: Target) -> str:
    """The atomic message of an `atomic_rmw`: that of its kind, or `icas` if it is a compare and swap."""
    return "icas" if op.expected is not None else atomic_message(op.kind.name, element, slm, target)


def atomic_message(kind: str, element: str, slm: bool, target: Target) -> str:
    """The atomic message that updates elements, such as `fadd`; `icas` if the update is a compare-and-swap loop.

    Args:
        kind: one of arith's `AtomicRMWKind`.
        element: MLIR's type of the elements, of 16, 32 or 64 bits.
        slm: whether they are in shared local memory.
    """
    operation = ATOMIC_MESSAGES.get(kind)
    if operation is None or element == "bf16" or bit_width(element) == 8:
        return "icas"
    address = {"sfid": "slm", "address_size": "a32"} if slm else {"sfid": "ugm", "address_size": "a64"}
    data = Raw(Variable("data", "ud", 1))
    values = {**address, "data": atomic_shape(bit_width(element)), "src0": data, "src1": Raw(None)}
    name = f"lsc_atomic_{operation}"
    problem = INSTRUCTIONS[name].check(Instruction(name, values), target)
    return "icas" if problem else operation


def caches_of(view: Any, write: bool = False) -> str:
    """The pair of cache options for L1 and L3 that an op's hints mean; a level without one is cached, or written back.

    Without any hint the pair is "", the hardware's own choice. L3 takes the hint for L2 where it has none.
    """
    names, default = (WRITE_CACHE_WORDS, "wb") if write else (READ_CACHE_WORDS, "ca")
    l1, l3 = view.l1_hint, view.l3_hint or view.l2_hint
    if l1 is None and l3 is None:
        return ""
    first = names[l1] if l1 else default
    return f"{first}.{names[l3] if l3 else ('uc' if first == 'uc' else default)}"


def block_load(desc: TensorDesc, transposed: bool, unit: int | None, vnni_axis: int | None) -> BlockShape:
    """The shape of the 2D block message that loads a descriptor's innermost two dimensions.

    Args:
        transposed: whether it transposes.
        unit: transpose_bit_width.
        vnni_axis: along which axis elements are packed; along rows they lie packed in any case.
    """
    rows, columns = desc.shape[-2:]
    bits = bit_width(desc.element)
    if transposed and unit:
        bits, columns = unit, columns * bits // unit
    return BlockShape(bits, desc.attr.array_length, columns, rows, transposed, vnni_axis == 0)


def message_sizes(count: int, sizes: Iterable[int]) -> list[tuple[int, int]]:
    """(first element, elements) of the messages that move `count` elements; each has the largest size that fits."""
    result, first = [], 0
    while first < count:
        size = max(n for n in sizes if n <= count - first)
        result.append((first, size))
        first += size
    return result


def line_messages(total: int) -> list[tuple[int, DataShape]]:
    """(first byte, shape) of the messages that move a line of bytes."""
    dwords = message_sizes(total // 4, (64, 32, 16, 8, 4, 3, 2, 1))
    rest = [(total // 4 * 4 + at, DataShape(f"d{8 * size}c32")) for at, size in message_sizes(total % 4, (2, 1))]
    return [*((4 * at, DataShape("d32", count, True)) for at, count in dwords), *rest]


def chunk_messages(chunk: int, size: int) -> list[tuple[int, DataShape]]:
    """(first element, shape) of the messages that move a lane's `chunk` elements, of `size` bytes."""
    if size < 4:
        return [(i, DataShape(f"d{8 * size}c32")) for i in range(chunk)]
    vectors = message_sizes(chunk, (8, 4, 3, 2, 1) if size == 4 else (4, 3, 2, 1))
    return [(at, DataShape(f"d{8 * size}", count)) for at, count in vectors]


def precision_of(element: str) -> str:
    """The dpas precision of an MLIR type."""
    if is_integer(element):
        return f"{'u' if signedness(element) == 'u' else 's'}{bit_width(element)}"
    return FLOATS[element].name


def block_problem(block: BlockShape, target: Target, store: bool = False, exact: bool = False) -> Problem:
    """The reason why a 2D block message cannot move a block; None if one can.

    Args:
        exact: whether the message is as its author wrote it; otherwise a load transposes no more rows than a register
            has for each column.
    """
    name = "lsc_store_block2d" if store else "lsc_load_block2d"
    problem = INSTRUCTIONS[name].check(Instruction(name, {"block": block}), target)
    limits = target.block2d
    if problem is None and limits and block.transpose and block.height > limits.tile_height and not exact:
        width, _ = limits.transposed[block.size]
        problem = (f"transposes one block of at most {width}x{limits.tile_height} elements, not {block}",)
    if problem is None:
        return None
    if target.block2d is None:
        return (
            f"requires 2D block messages, which target '{target.name}' does not support",
            "use 1D or scattered descriptors",
        )
    return (f"a 2D block {'store' if store else 'load'} {problem[0]}", *problem[1:])


def lanes_problem(desc: TensorDesc, target: Target, name: str, **values: Any) -> Problem:
    """The reason why no gather or scatter message supports a descriptor's lanes; None if one does."""
    slm = desc.in_slm
    size = desc.bits // 8
    # An atomic message moves one element per lane.
    shapes = (
        [atomic_shape(desc.bits)] if name.startswith("lsc_atomic") else [s for _, s in chunk_messages(desc.chunk, size)]
    )
    common = {"sfid": "slm" if slm else "ugm", "address_size": "a32" if slm else "a64"}
    for shape in dict.fromkeys(shapes):
        inst = Instruction(name, {**common, "data": shape, **values}, desc.lanes)
        problem = INSTRUCTIONS[name].check(inst, target)
        if problem:
            return (f"as '{name}' {problem[0]}", *problem[1:])
    most = 32 if target.grf_bytes == 64 else 16
    if desc.lanes > most:
        return (f"has {desc.lanes} lanes, but a message on target '{target.name}' supports at most {most}",)
    return None


def dpas_step(w: str, a: str, target: Target) -> int:
    """The elements of K that one dpas or bdpas multiplies."""
    return max(target.dpas_depths) * ops_per_channel(w, a)


def scaled_problem(target: Target) -> Problem:
    """The reason why a target cannot multiply block-scaled matrices; None if it can."""
    if "bdpas" not in target.absent:
        return None
    return (
        f"requires bdpas, which target '{target.name}' does not support",
        "target 'cri' supports it (--target=cri); on others multiply bf16 factors by their scales, and use xegpu.dpas",
    )


# The transforms of block loads, in registers: transposition, and VNNI packing.


def untransformed_shape(view: Any) -> tuple[int, ...]:
    """The shape of a load without its transform. The blocks of an array are a dimension if the result has it."""
    desc, rank = TensorDesc.of(view.tdesc), len(shape_of(view.value))
    # The result may have a dimension for packed elements, or for the elements of a transposed unit of one block.
    further = view.vnni_axis is not None or (desc.attr.array_length == 1 and rank > len(desc.shape))
    return next(s for s in block_shapes(desc, Mode.VC) if len(s) == rank - further)


def apply_load_transform(view: Any, plain: ir.Value) -> ir.Value:
    """The result of a load from the block that was loaded without the load's transform."""
    desc, shape = TensorDesc.of(view.tdesc), shape_of(plain)
    lead = len(shape) - len(desc.shape)
    if view.vnni_axis is not None:
        return vnni_packed(plain, lead + view.vnni_axis, vnni_factor(desc.bits))
    # Units of several elements keep their order.
    unit = (view.transpose_bit_width or desc.bits) // desc.bits
    order = [*range(lead), *(lead + i for i in view.transpose)]
    if unit > 1:
        plain = shape_cast(plain, (*shape[:-1], shape[-1] // unit, unit))
        order.append(len(shape))
    return shape_cast(transpose(plain, order), shape_of(view.value))


def expand_load_transform(view: Any) -> None:
    """Replace a load by a plain load and its transform in registers."""
    op: ir.Operation = view.operation
    with op.location, ir.InsertionPoint(op):
        kind = with_shape(view.value.type, untransformed_shape(view))
        loaded = load_like(view, view.tdesc, value=kind)
        replace_op(op, apply_load_transform(view, loaded))


def merge_transposed_units(op: ir.Operation) -> ir.Operation:
    """Rewrite a load whose result has a dimension for the elements of a transposed unit as one without it."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    shape = shape_of(view.value)
    if view.transpose_bit_width is None or len(shape) == len(desc.shape) or desc.attr.array_length > 1:
        return op
    with op.location, ir.InsertionPoint(op):
        load = create_like(op, [with_shape(view.value.type, (*shape[:-2], shape[-2] * shape[-1]))], op.operands)
        replace_op(op, shape_cast(load.results[0], shape))
    return load


def vnni_packed(value: ir.Value, axis: int, factor: int) -> ir.Value:
    """Move groups of `factor` elements along an axis to a new innermost dimension."""
    shape = shape_of(value)
    split = (*shape[:axis], shape[axis] // factor, factor, *shape[axis + 1 :])
    order = [i for i in range(len(split)) if i != axis + 1]
    return transpose(shape_cast(value, split), [*order, axis + 1])


def without_sg_map(kind: ir.Type) -> ir.Type:
    """The type of a descriptor without its `sg_map`; any other type unchanged."""
    if not is_desc(kind):
        return kind
    desc = TensorDesc.of(kind)
    return replace(desc, attr=replace(desc.attr, map=None)).to_ir()
