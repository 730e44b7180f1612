"""`llvm`: pointers, which become addresses, and accesses by pointers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.ir.builtin import bit_width, vector_of
from xegpu_py.passes.common.builders import (
    atomic_update,
    compare,
    constant,
    integer_type,
    make,
    number_attribute,
    select,
)
from xegpu_py.passes.common.kernels import symbol_of
from xegpu_py.passes.common.values import constant_of, element_of, shape_of
from xegpu_py.upstream.rebuilding import refuse, within
from xegpu_py.upstream.xevm.state import (
    CONSTANT,
    GENERIC,
    GLOBAL,
    PRIVATE,
    SHARED,
    KernelImport,
    as_index,
    bitcast,
    bits_of,
    resized,
    rule,
    space_of,
    zero_of,
)

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
def number(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """The address as it is; of integers of other sizes without its sign."""
    kind = op.results[0].type
    width = ir.IntegerType(kind).width if isinstance(kind, ir.IntegerType) else 64
    return [resized(op.operands[0], width, signed=False)]


@rule("llvm.addrspacecast")
def other_space(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Generic addresses are addresses of global memory, since no other memory has generic addresses."""
    spaces = {k.spaces[0], space_of(op.results[0].type)}
    if len(spaces) > 1 and not spaces <= {GLOBAL, GENERIC, CONSTANT}:
        refuse(op, "only addresses of global memory can be cast to generic addresses")
    return [op.operands[0]]


@rule("llvm.getelementptr")
def element_pointer(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
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
    return [total]


# Memory of a work item.


@rule("llvm.alloca")
def allocate(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Shared local memory; or a variable of the work item whose uses are all in one block."""
    result = op.results[0]
    if space_of(result.type) == SHARED:
        count = constant_of(op.operands[0])
        if count is None:
            refuse(op, "its size is not known")
        element = ir.TypeAttr(op.attributes["elem_type"]).value
        return [k.allocate_shared(f"%{id(op)}", count, element)]
    for use in result.uses:
        user = use.owner.operation
        if user.name not in ("llvm.load", "llvm.store", "llvm.call") or user.block != op.operation.block:
            refuse(op, f"private memory can be accessed at constant offsets only; '{user.name}' uses it otherwise")
    made = zero_of(integer_type(64))
    k.private[made] = None
    return [made]


@rule("llvm.mlir.addressof")
def global_(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """A buffer of the workgroup."""
    name = ir.FlatSymbolRefAttr(op.attributes["global_name"]).value
    found = next((g for g in within(k.func.parent, "llvm.mlir.global") if symbol_of(g) == name), None)
    if found is None or space_of(op.results[0].type) != SHARED:
        refuse(op, f"@{name} is not a global in shared local memory")
    kind = str(ir.TypeAttr(found.attributes["global_type"]).value)
    return [k.allocate_shared(name, size_of(op, kind), integer_type(8))]


# Accesses.


def _memory(k: KernelImport, op: ir.Operation, operand: int, element: ir.Type) -> ir.Value:
    """The memref of all elements of the address space of an operand."""
    space = k.spaces[operand]
    if space == PRIVATE:
        refuse(op, "private memory can be accessed at constant offsets only")
    return k.memory(element, SHARED if space == SHARED else GLOBAL)


def place(address: ir.Value, element: ir.Type) -> ir.Value:
    """The number of the element at an address."""
    size = bit_width(str(element)) // 8
    if size > 1:
        address = make("arith.shrui", address.type, address, constant(address.type, size.bit_length() - 1))
    return as_index(address)


def _accessed(op: ir.Operation, kind: ir.Type) -> ir.Type:
    """The type of single accesses: elements, or parts of them if the op's alignment is smaller."""
    element = element_of(kind)
    if str(element).startswith("!"):
        element = integer_type(64)
    bits = bit_width(str(element))
    if bits == 1 and not shape_of(kind):
        return integer_type(8)
    if bits not in (8, 16, 32, 64):
        refuse(op, f"it accesses elements of {bits} bits")
    if "alignment" in op.attributes:
        aligned = 8 * int(ir.IntegerAttr(op.attributes["alignment"]).value)
        if 0 < aligned < bits:
            return integer_type(aligned)
    return element


@rule("llvm.load")
def load(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Elements of memory, which lie side by side."""
    address, kind = op.operands[0], op.results[0].type
    if address in k.private:
        held = k.private[address]
        if held is None:
            return [zero_of(kind)]
        if bits_of(held) != bits_of(op.results[0]):
            refuse(op, f"it loads {kind} from memory that holds {held.type}")
        return [bitcast(held, kind)]
    if space_of(kind) is not None:
        kind = integer_type(64)
    return [read(k, op, 0, kind)]


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
def store(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Elements into memory, side by side."""
    value, address = op.operands
    if address in k.private:
        k.private[address] = value
        return []
    if str(value.type) == "i1":
        value = make("arith.extui", integer_type(8), value)
    element = _accessed(op, value.type)
    memory, at = _memory(k, op, 1, element), place(address, element)
    count = bits_of(value) // bit_width(str(element))
    shaped = bool(shape_of(value)) or count > 1
    value = bitcast(value, ir.VectorType.get([count], element) if shaped else element)
    ir.Operation.create("vector.store" if shaped else "memref.store", operands=[value, memory, at])
    return []


_ATOMICS = {
    0: "assign", 1: "addi", 2: "addi", 3: "andi", 5: "ori", 6: "xori", 7: "maxs", 8: "mins", 9: "maxu", 10: "minu",
    11: "addf", 12: "addf", 13: "maxnumf", 14: "minnumf", 15: "maximumf", 16: "minimumf",
}  # fmt: skip
"""`llvm.atomicrmw`'s kinds by their numbers; those that subtract add the negated number."""
_SUBTRACTS = {2: "arith.subi", 12: "arith.negf"}


@rule("llvm.atomicrmw")
def atomic(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """An atomic update of an element."""
    address, value = op.operands
    kind = int(ir.IntegerAttr(op.attributes["bin_op"]).value)
    if kind not in _ATOMICS or shape_of(value):
        refuse(op, "this update of an element of memory is not supported")
    if kind in _SUBTRACTS:
        zero = [zero_of(value.type)] if kind == 2 else []
        value = make(_SUBTRACTS[kind], value.type, *zero, value)
    memory = _memory(k, op, 0, value.type)
    number = AtomicRMWKind[_ATOMICS[kind]].value
    attribute = number_attribute(integer_type(64), number)
    return [make("memref.atomic_rmw", value.type, value, memory, place(address, value.type), kind=attribute)]


@rule("llvm.cmpxchg")
def exchange(k: KernelImport, op: ir.Operation) -> Sequence[ir.Value]:
    """Compare and swap; gives the old element, and whether it was replaced."""
    address, expected, value = op.operands
    memory = _memory(k, op, 0, value.type)
    where = [place(address, value.type)]
    old = atomic_update(memory, where, value.type, lambda held: select(compare("eq", held, expected), value, held))
    k.aggregates[op.results[0]] = {(0,): old, (1,): compare("eq", old, expected)}
    return [op.results[0]]
