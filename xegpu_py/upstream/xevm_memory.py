"""Kernels in llvm and xevm: pointers, block messages, and the state that rules share."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from mlir import ir

from xegpu_py.dialects import xegpu as ours
from xegpu_py.dialects.xegpu.matrix_ops import NARROW_FLOATS, SCALE, SCALE_BLOCK
from xegpu_py.dialects.xegpu.types import slm_space
from xegpu_py.ir.bindings import AtomicRMWKind
from xegpu_py.ir.builtin import bit_width, element_type, number_attribute, vector_of
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.passes.analysis.ir_queries import constant_of, element_of, shape_of, symbol_of
from xegpu_py.passes.rewriting.builders import (
    atomic_update,
    compare,
    constant,
    element_address,
    index_type,
    integer_type,
    make,
    select,
    shape_cast,
    shared_buffer,
)
from xegpu_py.passes.rewriting.rewriter import Rewriter, Rule, Rules
from xegpu_py.upstream.import_common import of_first_lane, parts, product_of_lanes, refuse, within
from xegpu_py.upstream.levels import LANES
from xegpu_py.upstream.xevm_dialect import PREFIX

# The state that the rules of ops share while a kernel in `xevm` and `llvm` is rebuilt.

PRIVATE, GLOBAL, CONSTANT, SHARED, GENERIC = range(5)
"""Address spaces of `llvm.ptr`, as OpenCL and SPIR-V number them."""

_UNUSED = (
    "vector.insert", "vector.extract", "memref.extract_strided_metadata", "memref.extract_aligned_pointer_as_index",
)  # fmt: skip
"""Ops that go where nothing uses them, as those of arith do: what blocks took of payloads was taken from elsewhere."""

rule: Rules[Rule[KernelImport]] = Rules()
"""The rules by op name. A rule replaces the results, or sets the parts of an aggregate. Ops of other dialects stay."""


def space_of(kind: ir.Type) -> int | None:
    """The address space of a pointer type; None for other types."""
    text = str(kind)
    if not text.startswith("!llvm.ptr"):
        return None
    return int(text[len("!llvm.ptr<") : -1]) if text.endswith(">") else PRIVATE


class KernelImport(Rewriter):
    """Rebuilds one kernel, in place. A pointer becomes the address, i64; in shared local memory the offset there.

    Attributes:
        func: the kernel, a `gpu.func`.
        spaces: the address space of each operand of the op that is rebuilt; None for operands that are not pointers.
        private: the content of private memory by its address; None before it is written.
        aggregates: the parts of each value of an LLVM struct or array.
    """

    rules = rule

    def __init__(self, func: ir.Operation) -> None:
        self.func = func
        self.spaces: list[int | None] = []
        self.private: dict[ir.Value, ir.Value | None] = {}
        self.aggregates: dict[ir.Value, Any] = {}
        self._memories: dict[tuple[str, int], ir.Value] = {}
        self._shared: dict[str, ir.Value] = {}

    def run(self) -> None:
        """Rebuild all ops.

        Raises:
            DiagnosticError: at an op that cannot be rebuilt.
        """
        ops = parts(self.func)
        spaces = [[space_of(v.type) for v in op.operands] for op in ops]
        address = integer_type(64)
        for op in (self.func, *ops):
            for argument in (a for region in op.regions for block in region for a in block.arguments):
                if space_of(argument.type) is not None:
                    argument.set_type(address)
        for op, self.spaces in zip(ops, spaces):
            self.op(op)
            if op.name in rule:
                continue
            if op.name.startswith(("llvm.", PREFIX)):
                refuse(op, "no op of vector or XeGPU does the same")
            for result in op.results:
                if space_of(result.type) is not None:
                    result.set_type(address)
        for op in reversed([o for o in ops if o.name in rule]):
            op.erase()
        for op in reversed(parts(self.func)):
            is_used = any(next(iter(r.uses), None) for r in op.results)
            if op.results and not is_used and (op.name in _UNUSED or op.name.startswith(("arith.", "vector.b"))):
                op.erase()

    # Helpers for the rules.

    def replace(self, op: ir.Operation, *results: ir.Value) -> None:
        """Replace each result of an op by a value. The op is erased at the end, since other rules read it."""
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)

    def at_entry(self) -> ir.InsertionPoint:
        """The kernel's beginning."""
        return ir.InsertionPoint.at_block_begin(self.func.regions[0].blocks[0])

    def memory(self, element: ir.Type, space: int) -> ir.Value:
        """All of an address space as a memref of these elements, whose index is the address by their size."""
        key = (str(element), space)
        if key not in self._memories:
            with self.at_entry(), self.func.location:
                kind = ir.MemRefType.get([DYNAMIC], element, memory_space=slm_space() if space == SHARED else None)
                zero = constant(integer_type(64), 0)
                self._memories[key] = make("builtin.unrealized_conversion_cast", kind, zero)
        return self._memories[key]

    def allocate_shared(self, name: str, count: int, element: ir.Type) -> ir.Value:
        """The address of a buffer in shared local memory, the same one for the same name."""
        if name not in self._shared:
            with self.at_entry(), self.func.location:
                made = shared_buffer([count * bit_width(str(element)) // 8], integer_type(8))
                self._shared[name] = element_address(made, 0, 8)
        return self._shared[name]


def first(value: ir.Value) -> ir.Value:
    """The first lane's value, which messages of the whole subgroup take."""
    return value if constant_of(value) is not None else of_first_lane(value)


def as_index(value: ir.Value) -> ir.Value:
    """An integer as an index, by its sign."""
    if isinstance(value.type, ir.IndexType):
        return value
    known = constant_of(value)
    return constant(index_type(), known) if known is not None else make("arith.index_cast", index_type(), value)


def resized(value: ir.Value, width: int, signed: bool = True) -> ir.Value:
    """An integer with another number of bits."""
    own = ir.IntegerType(value.type).width
    if own == width:
        return value
    name = "arith.trunci" if own > width else "arith.extsi" if signed else "arith.extui"
    return make(name, integer_type(width), value)


def bits_of(value: ir.Value) -> int:
    """The bits of a number or vector."""
    return math.prod(shape_of(value)) * bit_width(str(element_of(value)))


def as_bits(value: ir.Value, count: int, element: ir.Type) -> ir.Value:
    """The bits of a number or vector of one dimension as a vector of `count` elements."""
    own = element_of(value)
    if not shape_of(value):
        value = make("vector.broadcast", ir.VectorType.get([1], own), value)
    if own == element:
        return value
    return make("vector.bitcast", ir.VectorType.get([count], element), value)


def bitcast(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The bits of a number or vector as another type."""
    if value.type == kind:
        return value
    shape, element = shape_of(kind), element_of(kind)
    if not shape and not shape_of(value):
        return make("arith.bitcast", kind, value)
    made = as_bits(value, shape[0] if shape else 1, element)
    return made if shape else make("vector.extract", kind, made, static_position=ir.DenseI64ArrayAttr.get([0]))


# `llvm`: pointers, which become addresses, and accesses by pointers.

_ARRAY = re.compile(r"(?:!llvm\.)?array<(\d+) x (.+)>")

_DYNAMIC = -(1 << 31)


def size_of(op: ir.Operation, text: str) -> int:
    """The bytes from one element of a type to the next, as LLVM lays them out."""
    array = _ARRAY.fullmatch(text)
    if array:
        return int(array[1]) * size_of(op, array[2])
    if text.startswith(("!llvm.ptr", "ptr")):
        return 8
    if text.startswith("vector<"):
        shape, element = vector_of(text)
        size = -(-shape[0] * bit_width(element) // 8)
        return 1 << (size - 1).bit_length()
    if "llvm" in text or text.startswith("struct"):
        refuse(op, f"the layout of {text} is unknown")
    return 1 << (max(-(-bit_width(text) // 8), 1) - 1).bit_length()


@rule("llvm.ptrtoint", "llvm.inttoptr")
def number(k: KernelImport, op: ir.Operation) -> None:
    """The address as it is; of integers of other sizes without its sign."""
    kind = op.results[0].type
    width = ir.IntegerType(kind).width if isinstance(kind, ir.IntegerType) else 64
    k.replace(op, resized(op.operands[0], width, signed=False))


@rule("llvm.addrspacecast")
def other_space(k: KernelImport, op: ir.Operation) -> None:
    """Generic addresses are addresses of global memory, since no other memory has generic addresses."""
    spaces = {k.spaces[0], space_of(op.results[0].type)}
    if len(spaces) > 1 and not spaces <= {GLOBAL, GENERIC, CONSTANT}:
        refuse(op, "only addresses of global memory can be cast to generic addresses")
    k.replace(op, op.operands[0])


@rule("llvm.getelementptr")
def element_pointer(k: KernelImport, op: ir.Operation) -> None:
    """An address plus each index times the size of its elements."""
    total, *dynamic = op.operands
    waiting = iter(dynamic)
    i64 = integer_type(64)
    kind = str(ir.TypeAttr(op.attributes["elem_type"]).value)
    for n, place in enumerate(ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"])):
        if n:
            array = _ARRAY.fullmatch(kind)
            if not array and not kind.startswith("vector<"):
                refuse(op, f"the layout of {kind} is unknown")
            kind = array[2] if array else vector_of(kind)[1]
        size = size_of(op, kind)
        given: ir.Value | int = next(waiting) if place == _DYNAMIC else int(place)
        known = given if isinstance(given, int) else constant_of(given)
        if known is not None:
            offset = constant(i64, known * size)
        else:
            assert isinstance(given, ir.Value)
            offset = resized(given, 64)
            if size > 1:
                offset = make("arith.muli", i64, offset, constant(i64, size))
        if known != 0:
            total = make("arith.addi", i64, total, offset)
    k.replace(op, total)


# Memory of a work item.


@rule("llvm.alloca")
def allocate(k: KernelImport, op: ir.Operation) -> None:
    """Shared local memory; or a variable of the work item whose uses are all in one block."""
    result = op.results[0]
    if space_of(result.type) == SHARED:
        count = constant_of(op.operands[0])
        if count is None:
            refuse(op, "its size is not known")
        element = ir.TypeAttr(op.attributes["elem_type"]).value
        k.replace(op, k.allocate_shared(f"%{id(op)}", count, element))
        return
    for use in result.uses:
        user = use.owner.operation
        if user.name not in ("llvm.load", "llvm.store", "llvm.call") or user.block != op.operation.block:
            refuse(op, f"private memory can be accessed at constant offsets only; '{user.name}' uses it otherwise")
    made = constant(integer_type(64), 0)
    k.private[made] = None
    k.replace(op, made)


@rule("llvm.mlir.addressof")
def global_(k: KernelImport, op: ir.Operation) -> None:
    """A buffer of the workgroup."""
    name = ir.FlatSymbolRefAttr(op.attributes["global_name"]).value
    found = next((g for g in within(k.func.parent, "llvm.mlir.global") if symbol_of(g) == name), None)
    if found is None or space_of(op.results[0].type) != SHARED:
        refuse(op, f"@{name} is not a global in shared local memory")
    kind = str(ir.TypeAttr(found.attributes["global_type"]).value)
    k.replace(op, k.allocate_shared(name, size_of(op, kind), integer_type(8)))


# Accesses.


def _memory(k: KernelImport, op: ir.Operation, operand: int, element: ir.Type) -> ir.Value:
    """The memref of all elements of the address space of an operand."""
    space = k.spaces[operand]
    if space == PRIVATE:
        refuse(op, "private memory can be accessed at constant offsets only")
    return k.memory(element, SHARED if space == SHARED else GLOBAL)


def place(address: ir.Value, element: ir.Type) -> ir.Value:
    """The number of the element at an address, which is kept if it is not a multiple of the element's size."""
    size = bit_width(str(element)) // 8
    if size > 1:
        by = constant(address.type, size.bit_length() - 1)
        address = make("arith.shrui", address.type, address, by, isExact=ir.UnitAttr.get())
    return as_index(address)


_WORD = 32


def _accessed(op: ir.Operation, kind: ir.Type) -> ir.Type:
    """The type of single accesses, which are those that IGC makes (VectorPreProcess.cpp).

    These are elements, or parts of them if the op's alignment is smaller. Vectors of smaller elements are accessed by
    words of 32 bits where the op's alignment, or that of its type, is at least that of a word.
    """
    element = element_of(kind)
    if str(element).startswith("!"):
        refuse(op, f"it accesses a value of {kind}", "let it access the parts of an aggregate")
    bits = bit_width(str(element))
    if bits == 1 and not shape_of(kind):
        return integer_type(8)
    if bits not in (8, 16, 32, 64):
        refuse(op, f"it accesses elements of {bits} bits")
    stated = 8 * int(ir.IntegerAttr(op.attributes["alignment"]).value) if "alignment" in op.attributes else 0
    if 0 < stated < bits:
        return integer_type(stated)
    count = (shape_of(kind) or (1,))[0]
    by_words = bits < _WORD and count * bits % _WORD == 0 and (not stated or stated >= _WORD)
    return integer_type(_WORD) if by_words else element


@rule("llvm.load")
def llvm_load(k: KernelImport, op: ir.Operation) -> None:
    """Elements of memory, which lie side by side."""
    address, kind = op.operands[0], op.results[0].type
    if address not in k.private:
        k.replace(op, read(k, op, 0, kind if space_of(kind) is None else integer_type(64)))
        return
    held = k.private[address]
    if held is not None and bits_of(held) != bits_of(op.results[0]):
        refuse(op, f"it loads {kind} from memory that holds {held.type}")
    k.replace(op, constant(kind, 0) if held is None else bitcast(held, kind))


def read(k: KernelImport, op: ir.Operation, operand: int, kind: ir.Type) -> ir.Value:
    """A number or vector at an op's address."""
    element = _accessed(op, kind)
    memory = _memory(k, op, operand, element)
    at = place(op.operands[operand], element)
    if str(element_of(kind)) == "i1":
        return make("arith.trunci", kind, make("memref.load", element, memory, at))
    bits = bit_width(str(element_of(kind)))
    count = (shape_of(kind) or (1,))[0] * bits // bit_width(str(element))
    if count == 1:
        found = make("memref.load", element, memory, at)
        return bitcast(found, kind)
    return bitcast(make("vector.load", ir.VectorType.get([count], element), memory, at), kind)


@rule("llvm.store")
def llvm_store(k: KernelImport, op: ir.Operation) -> None:
    """Elements into memory, side by side."""
    value, address = op.operands
    if address in k.private:
        k.private[address] = value
        return
    if str(value.type) == "i1":
        value = make("arith.extui", integer_type(8), value)
    element = _accessed(op, value.type)
    memory, at = _memory(k, op, 1, element), place(address, element)
    count = bits_of(value) // bit_width(str(element))
    shaped = bool(shape_of(value)) or count > 1
    value = bitcast(value, ir.VectorType.get([count], element) if shaped else element)
    ir.Operation.create("vector.store" if shaped else "memref.store", operands=[value, memory, at])


_ATOMICS = {
    0: "assign", 1: "addi", 2: "addi", 3: "andi", 5: "ori", 6: "xori", 7: "maxs", 8: "mins", 9: "maxu", 10: "minu",
    11: "addf", 12: "addf", 13: "maxnumf", 14: "minnumf", 15: "maximumf", 16: "minimumf",
}  # fmt: skip
"""`llvm.atomicrmw`'s kinds by their numbers; those that subtract add the negated number."""

_SUBTRACTS = {2: "arith.subi", 12: "arith.negf"}


@rule("llvm.atomicrmw")
def atomic(k: KernelImport, op: ir.Operation) -> None:
    """An atomic update of an element."""
    address, value = op.operands
    kind = int(ir.IntegerAttr(op.attributes["bin_op"]).value)
    if kind not in _ATOMICS or shape_of(value):
        refuse(op, "this update of an element of memory is not supported")
    if kind in _SUBTRACTS:
        zero = [constant(value.type, 0)] if kind == 2 else []
        value = make(_SUBTRACTS[kind], value.type, *zero, value)
    memory = _memory(k, op, 0, value.type)
    number = AtomicRMWKind[_ATOMICS[kind]].value
    attribute = number_attribute(integer_type(64), number)
    k.replace(op, make("memref.atomic_rmw", value.type, value, memory, place(address, value.type), kind=attribute))


@rule("llvm.cmpxchg")
def exchange(k: KernelImport, op: ir.Operation) -> None:
    """Compare and swap; gives the old element, and whether it was replaced."""
    address, expected, value = op.operands
    memory = _memory(k, op, 0, value.type)
    where = [place(address, value.type)]
    old = atomic_update(memory, where, value.type, lambda held: select(compare("eq", held, expected), value, held))
    k.aggregates[op.results[0]] = {(0,): old, (1,): compare("eq", old, expected)}


# `xevm`: messages of blocks, and products, which the lanes of a subgroup do together.
#
# Sources: the descriptions of the ops in MLIR's documentation of the dialect; the layouts of OpenCL's
# cl_intel_subgroup_2d_block_io and cl_intel_subgroup_matrix_multiply_accumulate, whose functions they become.


@dataclass(frozen=True)
class MessageBlock:
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
        """The elements of a lane.

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
class MessageSurface:
    """The operands that say where a message's block lies: address, bytes of a row, rows, pitch, x and y."""

    address: ir.Value
    width: ir.Value
    height: ir.Value
    pitch: ir.Value
    x: ir.Value
    y: ir.Value


def tile_of(op: ir.Operation) -> MessageBlock:
    """The block of an op of xevm."""
    view = op.opview
    blocks, transpose, pack = (getattr(view, name, 0) for name in ("v_blocks", "transpose", "pack_register"))
    return MessageBlock(
        view.elem_size_in_bits, view.tile_height, view.tile_width, blocks or 1, bool(transpose), bool(pack)
    )


def _mixed(value: ir.Value) -> ir.Value | int:
    known = constant_of(value)
    return known if known is not None else as_index(first(value))


def _extent(value: ir.Value) -> ir.Value | int:
    """An extent, an i32 without sign, as an index."""
    known = constant_of(value)
    return known % (1 << 32) if known is not None else make("arith.index_castui", index_type(), first(value))


def descriptor(op: ir.Operation, where: MessageSurface, tile: MessageBlock, sg_map: ours.SgMap | None) -> ir.Value:
    """A descriptor of the block, whose accesses are the messages of XeVM."""
    attr = ours.TdescAttr(array_length=tile.blocks, map=sg_map, message=True)
    kind = ours.TensorDesc((tile.rows, tile.columns), f"i{tile.bits}", attr)
    shape, strides = [_extent(where.height), _extent(where.width)], [_extent(where.pitch), 1]
    made = ours.CreateNdTdescOp(
        first(where.address), [_mixed(where.y), _mixed(where.x)], shape, strides, tdesc=kind.to_ir()
    )
    return made.tdesc


def load(op: ir.Operation, where: MessageSurface, tile: MessageBlock, kind: ir.Type) -> ir.Value:
    """A lane's fragment of a block that is loaded, as a vector of this type."""
    tdesc = descriptor(op, where, tile, tile.map(op))
    made = ours.LoadNdOp(tdesc, mode=ours.Mode.SIMT, transpose=(1, 0) if tile.transpose else None).value
    count = bits_of(made) // tile.bits
    found = shape_cast(made, (count,))
    wanted = (shape_of(kind) or (1,))[0] * bit_width(str(element_of(kind)))
    if bits_of(found) != wanted:
        refuse(op, f"a lane has {bits_of(found)} bits of {tile.blocks} blocks of {tile}, not {kind}")
    return bitcast(found, kind)


def store(op: ir.Operation, where: MessageSurface, tile: MessageBlock, value: ir.Value) -> None:
    """Store what all lanes have as a block."""
    tdesc = descriptor(op, where, tile, tile.map(op))
    fragment = ours.TensorDesc.of(tdesc).fragment()
    count = fragment[0] * fragment[1]
    if bits_of(value) != count * tile.bits:
        refuse(op, f"a lane has {count * tile.bits} bits of a block of {tile}, not {value.type}")
    ours.StoreNdOp(shape_cast(as_bits(value, count, integer_type(tile.bits)), fragment), tdesc, mode=ours.Mode.SIMT)


def prefetch(op: ir.Operation, where: MessageSurface, tile: MessageBlock) -> None:
    """Bring a block into the cache."""
    ours.PrefetchNdOp(descriptor(op, where, tile, None), mode=ours.Mode.SIMT)


@rule(PREFIX + "blockload2d")
def blockload2d(k: KernelImport, op: ir.Operation) -> None:
    """A block."""
    k.replace(op, load(op, MessageSurface(*op.operands), tile_of(op), op.results[0].type))


@rule(PREFIX + "blockstore2d")
def blockstore2d(k: KernelImport, op: ir.Operation) -> None:
    """A block."""
    *where, value = op.operands
    store(op, MessageSurface(*where), tile_of(op), value)


@rule(PREFIX + "blockprefetch2d")
def blockprefetch2d(k: KernelImport, op: ir.Operation) -> None:
    """A block."""
    prefetch(op, MessageSurface(*op.operands), tile_of(op))


# Consecutive elements.


def _line(k: KernelImport, op: ir.Operation, operand: int, kind: ir.Type) -> ir.Value:
    """The descriptor of a block of consecutive elements, of which a lane has every sixteenth."""
    element, count = element_of(kind), (shape_of(kind) or (1,))[0] * LANES
    shared = k.spaces[operand] == SHARED
    scope = ours.MemoryScope.SLM if shared else ours.MemoryScope.GLOBAL
    attr = ours.TdescAttr(memory_scope=scope, boundary_check=False, map=ours.SgMap((1, LANES), (1, 1)))
    tdesc = ours.TensorDesc((count,), str(element), attr).to_ir()
    memory = k.memory(element, SHARED if shared else GLOBAL)
    return ours.CreateNdTdescOp(memory, [place(first(op.operands[operand]), element)], tdesc=tdesc).tdesc


@rule(PREFIX + "blockload")
def blockload(k: KernelImport, op: ir.Operation) -> None:
    """Consecutive elements; a lane has every sixteenth one."""
    k.replace(op, load_line(k, op, op.results[0].type))


def load_line(k: KernelImport, op: ir.Operation, kind: ir.Type) -> ir.Value:
    """A lane's part of the consecutive elements at an op's address."""
    return bitcast(ours.LoadNdOp(_line(k, op, 0, kind), mode=ours.Mode.SIMT).value, kind)


@rule(PREFIX + "blockstore")
def blockstore(k: KernelImport, op: ir.Operation) -> None:
    """Consecutive elements; a lane has every sixteenth one."""
    value = op.operands[1]
    count = (shape_of(value) or (1,))[0]
    ours.StoreNdOp(as_bits(value, count, element_of(value)), _line(k, op, 0, value.type), mode=ours.Mode.SIMT)


# Products.

_FACTORS = {
    "f16": "f16", "bf16": "bf16", "tf32": "tf32", "s8": "i8", "u8": "ui8", "s4": "i4", "u4": "ui4",
    "bf8": "f8E5M2", "f8": "f8E4M3FN", "e2m1": "f4E2M1FN",
}  # fmt: skip
"""Elements of factors, by their names in xevm and in OpenCL's functions, as ours are."""

_RESULTS = {"f32": "f32", "f16": "f16", "bf16": "bf16", "s32": "i32"}

_FIELD = re.compile(r"(\w+) = (\w+)")


@rule(PREFIX + "mma", PREFIX + "mma_mx")
def mma(k: KernelImport, op: ir.Operation) -> None:
    """d = a x b + c, of block-scaled factors too."""
    view = op.opview
    types = {role: getattr(view.types, role).value for role in "dab"}
    if view.shape.n != LANES:
        refuse(op, f"it makes {view.shape.n} columns; the lanes of a subgroup, {LANES}, have one each")
    scales = {}
    if op.name == PREFIX + "mma_mx":
        blocks = -(-view.shape.k // SCALE_BLOCK)
        for name, given in (("scale_a", view.scale_a), ("scale_b", view.scale_b)):
            if bits_of(given) != 8 * blocks:
                refuse(op, f"{name} must have {blocks} numbers of 8 bits, one for {SCALE_BLOCK} elements of K")
            scales[name] = as_bits(given, blocks, element_type(SCALE))
    k.replace(op, multiply(op, view.a, view.b, view.c, types, view.shape.k, op.results[0].type, **scales))


def multiply(
    op: ir.Operation,
    a: ir.Value,
    b: ir.Value,
    acc: ir.Value | None,
    types: dict[str, str],
    depth: int,
    kind: ir.Type,
    **scales: ir.Value,
) -> ir.Value:
    """A product of the lanes' fragments of matrices in the layout of dpas's registers.

    Args:
        types: the names in xevm of the elements of `a`, `b` and `d`.
        depth: columns of the first factor.
        kind: the type of what a lane gets: its column.
        scales: `scale_a` and `scale_b` of a block-scaled product.
    """
    for role in "ab":
        if types[role] not in _FACTORS:
            refuse(op, f"products of {types[role]} are not supported")
    if types["d"] not in _RESULTS:
        refuse(op, f"products in {types['d']} are not supported")
    first_type, second_type = (element_type(_FACTORS[types[n]]) for n in "ab")
    bits = 32 if types["a"] == "tf32" else bit_width(str(first_type))
    result = element_type(_RESULTS[types["d"]])
    rows = (shape_of(kind) or (1,))[0] * bit_width(str(element_of(kind))) // bit_width(str(result))
    if bits_of(a) * LANES != rows * depth * bits or bits_of(b) * LANES != depth * LANES * bits:
        refuse(op, f"its factors are not of {rows}x{depth} and {depth}x{LANES} elements of {bits} bits")
    left, right = (_factor(v, bits_of(v) // bits, element) for v, element in ((a, first_type), (b, second_type)))
    if acc is not None:
        acc = bitcast(acc, ir.VectorType.get([rows], result))
    made = product_of_lanes(left, right, acc, rows, result, scales or None)
    return bitcast(shape_cast(made, (rows,)), kind)


def _factor(value: ir.Value, count: int, element: ir.Type) -> ir.Value:
    """The bits of a number or vector as elements of a factor. tf32 has 19 bits in MLIR, and 32 bits in registers."""
    if str(element) != "tf32":
        return as_bits(value, count, element)
    held = as_bits(value, count, ir.F32Type.get())
    return make("builtin.unrealized_conversion_cast", ir.VectorType.get([count], element), held)


@rule(PREFIX + "truncf", PREFIX + "extf")
def convert(k: KernelImport, op: ir.Operation) -> None:
    """Elements of a lane in another format. The last byte of an odd number of packed elements is filled with zero."""
    view, kind = op.opview, op.results[0].type
    formats = [view.src_etype.value, view.dst_etype.value]
    narrow_name, wide_name = formats[::-1] if op.name == PREFIX + "truncf" else formats
    if _FACTORS.get(narrow_name) not in NARROW_FLOATS or wide_name not in ("f16", "bf16"):
        refuse(op, f"cannot convert {formats[0]} to {formats[1]}")
    source, wanted = (element_type(_FACTORS[f]) for f in formats)
    narrow, wide = (wanted, source) if op.name == PREFIX + "truncf" else (source, wanted)
    lanes = kind if wide is wanted else view.arg.type
    count = (shape_of(lanes) or (1,))[0]
    packed = -(-count * bit_width(str(narrow)) // 8) * 8 // bit_width(str(narrow))
    if bits_of(view.arg) != (count if wide is source else packed) * bit_width(str(source)):
        refuse(op, f"{view.arg.type} does not hold {count} elements of {source}")
    if bits_of(op.results[0]) != (count if wide is wanted else packed) * bit_width(str(wanted)):
        refuse(op, f"{kind} does not hold {count} elements of {wanted}")
    if wide is source:
        value = _resized(as_bits(view.arg, count, wide), packed)
        made = ours.TruncfOp(value, result=ir.VectorType.get([packed], narrow)).result
    else:
        value = make("arith.extf", ir.VectorType.get([packed], wide), as_bits(view.arg, packed, narrow))
        made = _resized(value, count)
    k.replace(op, bitcast(made, kind))


def _resized(value: ir.Value, count: int) -> ir.Value:
    """The first elements of a vector, or all and zeros."""
    held, element = shape_of(value)[0], element_of(value)
    if count == held:
        return value
    indices = ir.DenseI64ArrayAttr.get([min(i, held) for i in range(count)])
    kind = ir.VectorType.get([count], element)
    return make("vector.shuffle", kind, value, constant(ir.VectorType.get([1], element), 0), mask=indices)


@rule(PREFIX + "bitcast_shuffle")
def bitcast_shuffle(k: KernelImport, op: ir.Operation) -> None:
    """The bits of all lanes, a component of all lanes after the other, as components of another width."""
    value, kind = op.operands[0], op.results[0].type
    if bits_of(value) != bits_of(op.results[0]):
        refuse(op, f"{value.type} and {kind} have different numbers of bits")
    # Components that are consecutive bits of a lane, then those of the result, then each across the lanes.
    if shape_of(value):
        value = ours.LaneShuffleOp(value, shuffle="pack").result
    value = bitcast(value, kind)
    k.replace(op, ours.LaneShuffleOp(value, shuffle="unpack").result if shape_of(kind) else value)


# Order of accesses.


@rule(PREFIX + "memfence")
def memfence(k: KernelImport, op: ir.Operation) -> None:
    """A fence of one memory or of both."""
    fence(op, op.opview.addrspace.value, op.opview.scope.value)


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


@rule(PREFIX + "prefetch")
def nothing(k: KernelImport, op: ir.Operation) -> None:
    """Emit nothing: a prefetch of one work item changes no value."""
