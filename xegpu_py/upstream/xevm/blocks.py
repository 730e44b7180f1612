"""`xevm`: messages of blocks, and products, which the lanes of a subgroup do together.

Sources: the descriptions of the ops in MLIR's documentation of the dialect; the layouts of OpenCL's
cl_intel_subgroup_2d_block_io and cl_intel_subgroup_matrix_multiply_accumulate, whose functions they become.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from xegpu_py.dialects import xegpu as ours
from xegpu_py.ir.builtin import bit_width
from xegpu_py.passes.common.builders import add, constant, index_type, integer_type, make, shape_cast
from xegpu_py.passes.common.values import constant_of, element_of, shape_of
from xegpu_py.upstream.rebuilding import LANES, refuse
from xegpu_py.upstream.xevm.pointers import place
from xegpu_py.upstream.xevm.state import SHARED, KernelImport, as_bits, as_index, bitcast, bits_of, first, rule


@dataclass(frozen=True)
class Tile:
    """The block of a message.

    Attributes:
        bits: of an element.
        rows, columns, blocks: elements of a block, and blocks side by side.
        transpose: whether the block is transposed as it is loaded.
        pack: whether elements of a column are packed into 32 bits as they are loaded.
    """

    bits: int
    rows: int
    columns: int
    blocks: int = 1
    transpose: bool = False
    pack: bool = False

    def map(self, op: ir.Operation) -> ours.SgMap:
        """Which elements a lane has.

        Units of 16 bits or more are distributed round robin, row by row; packed elements are those of one column.
        """
        if self.transpose:
            # A row of the result is a column of the block.
            if self.bits < 32 or self.rows % LANES:
                refuse(op, f"{LANES} lanes cannot divide a transposed block of {self}")
            return ours.SgMap((LANES, 1), (1, 1))
        unit = 1 if self.pack else max(16 // self.bits, 1)
        across = min(self.columns // unit, LANES)
        fits = across and LANES % across == 0 and self.columns % (across * unit) == 0
        if not fits or self.rows % (LANES // across) or (self.pack and self.columns != LANES):
            refuse(op, f"{LANES} lanes cannot divide a {'packed ' * self.pack}block of {self}")
        return ours.SgMap((LANES // across, across), (1, unit))

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns} elements of {self.bits} bits"


@dataclass(frozen=True)
class Surface:
    """The operands that say where a message's block lies: address, bytes of a row, rows, pitch, x and y."""

    address: ir.Value
    width: ir.Value
    height: ir.Value
    pitch: ir.Value
    x: ir.Value
    y: ir.Value


def tile_of(op: ir.Operation) -> Tile:
    """The block of an op of xevm."""
    given = {n: op.attributes[n].value for n in op.attributes if n not in ("cache_control",)}
    return Tile(
        int(given["elem_size_in_bits"]),
        int(given["tile_height"]),
        int(given["tile_width"]),
        int(given.get("v_blocks", 1)),
        bool(given.get("transpose", False)),
        bool(given.get("pack_register", False)),
    )


def _elements(value: ir.Value, size: int) -> ir.Value | int:
    """A number of bytes as one of elements."""
    known = constant_of(value)
    if known is not None:
        return known // size
    made = first(value)
    if size > 1:
        made = make("arith.shrui", made.type, made, constant(made.type, size.bit_length() - 1))
    return make("arith.index_castui", index_type(), made)


def _mixed(value: ir.Value) -> ir.Value | int:
    known = constant_of(value)
    return known if known is not None else as_index(first(value))


def descriptor(op: ir.Operation, where: Surface, tile: Tile, sg_map: ours.SgMap | None) -> ir.Value:
    """A descriptor of the block."""
    size = tile.bits // 8
    attr = ours.TdescAttr(array_length=tile.blocks, map=sg_map)
    kind = ours.TensorDesc((tile.rows, tile.columns), f"i{tile.bits}", attr)
    shape = [_mixed(where.height), _elements(where.width, size)]
    strides = [_elements(where.pitch, size), 1]
    made = ours.CreateNdTdescOp(
        first(where.address), [_mixed(where.y), _mixed(where.x)], shape, strides, tdesc=kind.to_ir()
    )
    return made.tdesc


def load(op: ir.Operation, where: Surface, tile: Tile, kind: ir.Type) -> ir.Value:
    """A lane's fragment of a block that is loaded, as a vector of this type."""
    tdesc = descriptor(op, where, tile, tile.map(op))
    made = ours.LoadNdOp(tdesc, mode=ours.Mode.SIMT, transpose=(1, 0) if tile.transpose else None).value
    count = bits_of(made) // tile.bits
    found = shape_cast(made, (count,))
    wanted = (shape_of(kind) or (1,))[0] * bit_width(str(element_of(kind)))
    if bits_of(found) != wanted:
        refuse(op, f"a lane has {bits_of(found)} bits of {tile.blocks} blocks of {tile}, not {kind}")
    return bitcast(found, kind)


def store(op: ir.Operation, where: Surface, tile: Tile, value: ir.Value) -> None:
    """Store what all lanes have as a block."""
    tdesc = descriptor(op, where, tile, tile.map(op))
    fragment = ours.TensorDesc.of(tdesc).fragment()
    count = fragment[0] * fragment[1]
    if bits_of(value) != count * tile.bits:
        refuse(op, f"a lane has {count * tile.bits} bits of a block of {tile}, not {value.type}")
    ours.StoreNdOp(shape_cast(as_bits(value, count, integer_type(tile.bits)), fragment), tdesc, mode=ours.Mode.SIMT)


def prefetch(op: ir.Operation, where: Surface, tile: Tile) -> None:
    """Bring a block into the cache."""
    ours.PrefetchNdOp(descriptor(op, where, tile, None), mode=ours.Mode.SIMT)


@rule("xevm.blockload2d")
def blockload2d(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A block."""
    return [load(op, Surface(*op.operands), tile_of(op), op.results[0].type)]


@rule("xevm.blockstore2d")
def blockstore2d(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A block."""
    *where, value = op.operands
    store(op, Surface(*where), tile_of(op), value)
    return []


@rule("xevm.blockprefetch2d")
def blockprefetch2d(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A block."""
    prefetch(op, Surface(*op.operands), tile_of(op))
    return []


# Consecutive elements.


def _line(k: KernelImport, op: ir.Operation, operand: int, kind: ir.Type) -> tuple[ir.Value, list[ir.Value]]:
    """The memory of a block of consecutive elements, and the places of a lane's: every sixteenth."""
    element = element_of(kind)
    memory = k.memory(element, SHARED if k.spaces[operand] == SHARED else 1)
    lane = make("gpu.lane_id", index_type())
    start = make("arith.addi", index_type(), place(first(op.operands[operand]), element), lane)
    count = (shape_of(kind) or (1,))[0]
    return memory, [start, *(_index(add(start, LANES * i)) for i in range(1, count))]


def _index(found: ir.Value | int) -> ir.Value:
    assert isinstance(found, ir.Value)
    return found


@rule("xevm.blockload")
def blockload(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Consecutive elements; a lane has every sixteenth one."""
    return [load_line(k, op, op.results[0].type)]


def load_line(k: KernelImport, op: ir.Operation, kind: ir.Type) -> ir.Value:
    """A lane's part of the consecutive elements at an op's address."""
    memory, places = _line(k, op, 0, kind)
    found = [make("memref.load", element_of(kind), memory, at) for at in places]
    return make("vector.from_elements", kind, *found) if shape_of(kind) else found[0]


@rule("xevm.blockstore")
def blockstore(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Consecutive elements; a lane has every sixteenth one."""
    value = op.operands[1]
    memory, places = _line(k, op, 0, value.type)
    for i, at in enumerate(places):
        static = ir.DenseI64ArrayAttr.get([i])
        one = make("vector.extract", element_of(value), value, static_position=static) if shape_of(value) else value
        ir.Operation.create("memref.store", operands=[one, memory, at])
    return []


# Products.

_FACTORS = {
    "f16": "f16", "bf16": "bf16", "tf32": "tf32", "s8": "i8", "u8": "ui8", "s4": "i4", "u4": "ui4",
}  # fmt: skip
"""Elements of factors, by their names in xevm and in OpenCL's functions, as ours are."""
_RESULTS = {"f32": "f32", "f16": "f16", "bf16": "bf16", "s32": "i32"}
_FIELD = re.compile(r"(\w+) = (\w+)")


@rule("xevm.mma")
def mma(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """d = a x b + c."""
    shape = {n: int(v) for n, v in _FIELD.findall(str(op.attributes["shape"]))}
    types = dict(_FIELD.findall(str(op.attributes["types"])))
    a, b, *acc = op.operands
    if shape["n"] != LANES:
        refuse(op, f"it makes {shape['n']} columns; the lanes of a subgroup, {LANES}, have one each")
    return [multiply(op, a, b, acc[0] if acc else None, types, shape["k"], op.results[0].type)]


def multiply(
    op: ir.Operation,
    a: ir.Value,
    b: ir.Value,
    acc: ir.Value | None,
    types: dict[str, str],
    depth: int,
    kind: ir.Type,
) -> ir.Value:
    """A product of the lanes' fragments of matrices in the layout of dpas's registers.

    Args:
        types: the names in xevm of the elements of `a`, `b` and `d`.
        depth: columns of the first factor.
        kind: the type of what a lane gets: its column.
    """
    for role in "ab":
        if types[role] not in _FACTORS:
            refuse(op, f"products of {types[role]} are not supported")
    first_type, second_type = (ir.Type.parse(_FACTORS[types[n]]) for n in "ab")
    bits = 32 if types["a"] == "tf32" else bit_width(str(first_type))
    result = ir.Type.parse(_RESULTS[types["d"]])
    rows = (shape_of(kind) or (1,))[0] * bit_width(str(element_of(kind))) // bit_width(str(result))
    if bits_of(a) * LANES != rows * depth * bits or bits_of(b) * LANES != depth * LANES * bits:
        refuse(op, f"its factors are not of {rows}x{depth} and {depth}x{LANES} elements of {bits} bits")
    count = bits_of(b) // bits
    left, right = _factor(a, bits_of(a) // bits, first_type), _factor(b, count, second_type)
    factor = max(32 // bits, 1)
    held = bits_of(a) // bits
    left = shape_cast(left, (rows, held // rows) if held % rows == 0 else (held, 1))
    right = shape_cast(right, (count // factor, 1, factor) if factor > 1 else (count, 1))
    if acc is not None:
        acc = shape_cast(bitcast(acc, ir.VectorType.get([rows], result)), (rows, 1))
    made = ours.DpasOp(left, right, acc, mode=ours.Mode.SIMT, result=ir.VectorType.get([rows, 1], result)).result
    return bitcast(shape_cast(made, (rows,)), kind)


def _factor(value: ir.Value, count: int, element: ir.Type) -> ir.Value:
    """The bits of a number or vector as elements of a factor. tf32 has 19 bits in MLIR, and 32 bits in registers."""
    if str(element) != "tf32":
        return as_bits(value, count, element)
    held = as_bits(value, count, ir.F32Type.get())
    return make("builtin.unrealized_conversion_cast", ir.VectorType.get([count], element), held)


# Order of accesses.


@rule("xevm.memfence")
def memfence(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A fence of one memory or of both."""
    space = re.findall(r"<(\w+)>", str(op.attributes["addrspace"]))[0] if "addrspace" in op.attributes else "generic"
    scope = re.findall(r"<(\w+)>", str(op.attributes["scope"]))[0]
    fence(op, space, scope)
    return []


def fence(op: ir.Operation, space: str, scope: str) -> None:
    """A fence: writes of a work item become visible to the others in a scope."""
    scopes = {"lane": None, "subgroup": None, "workgroup": "workgroup", "cluster": "gpu", "device": "gpu"}
    if scope not in scopes:
        refuse(op, f"fence scope {scope} is not supported")
    chosen = scopes[scope]
    if chosen is None:
        return
    for kind, spaces in (("shared", ("shared", "generic")), ("global", ("global", "generic"))):
        if space in spaces:
            ours.FenceOp(scope=chosen, memory_kind=kind)


@rule("xevm.prefetch")
def nothing(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Emit nothing: a prefetch of one work item changes no value."""
    return []
