"""Messages to memory: gathers and scatters, and atomics. Every access is checked before it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from xegpu_py.engines.faults import SLM, UGM
from xegpu_py.engines.jit.checks import emit_notes, emit_values
from xegpu_py.engines.jit.ir_text import PTR, FunctionBody, LLVMValue, bits_of, narrow, vector, widen
from xegpu_py.engines.jit.native_launch_struct import ALLOCATION, context_offset, traffic_offset
from xegpu_py.engines.jit.operands import Emitter
from xegpu_py.engines.jit.prefetching import prefetch_line, prefetch_next
from xegpu_py.engines.operands import data_offsets
from xegpu_py.engines.semantics import Table
from xegpu_py.numerics.formats import IEEE
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.messages import ATOMICS, address_base, alignment
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import DataShape

RULES = Table()
"""The rule of each instruction."""


def locate(emitter: Emitter, lanes: int) -> str:
    """The name of the function that converts the addresses of lanes to addresses of the host; see `addresses.ll`."""
    if lanes == 1:
        return emitter.template("addresses.ll", "locate_1")
    return emitter.template("addresses.ll", "locate_$lanes", lanes=lanes)


def addresses(emitter: Emitter, inst: Instruction) -> LLVMValue:
    """Compute each lane's address, i64. The widths of sums are those of `semantics.memory`."""
    code, operand, base_operand = emitter.code, inst["address"], address_base(inst)
    bits = 64 if inst["address_size"] == "a64" else 32
    offsets = code.fetch(emitter.base(operand), emitter.register_offset(operand), vector(inst.exec_size, f"i{bits}"))
    if base_operand and inst["sfid"] != "slm":
        offsets = code.resize(offsets, 64, inst["address_size"] == "a32s")
    if operand.scale != 1:
        offsets = code.mul(offsets, operand.scale)
    if operand.plus:
        offsets = code.add(offsets, operand.plus)
    if base_operand:
        offsets = code.add(
            offsets,
            code.splat(code.resize(emitter.scalar(base_operand), bits_of(offsets.element), False), inst.exec_size),
        )
    if inst["sfid"] == "slm":
        offsets = code.and_(offsets, emitter.program.local_bits)
    return code.resize(offsets, 64, False)


class _Message(Struct):
    """The body of the function that executes a kind of message.

    Attributes:
        code: the function.
        shape: the data of a lane.
        element_offsets: where the elements of each lane lie in an operand.
        hosts: host addresses i64[lanes], which have been checked.
        bits: lanes that act, as bits of an i32.
        operands: pointers to the operands in registers, by name; absent operands have null pointers.
        first_pointer: a pointer to the first lane's place if those of all lanes are adjacent, else None.
    """

    code: FunctionBody
    shape: DataShape
    element_offsets: list[list[int]]
    hosts: LLVMValue
    bits: LLVMValue
    operands: dict[str, LLVMValue]
    first_pointer: LLVMValue | None = None

    @property
    def lanes(self) -> int:
        return self.hosts.lanes

    @property
    def all_act(self) -> LLVMValue:
        """Whether all lanes act, an i1."""
        return self.code.icmp("eq", self.bits, (1 << self.lanes) - 1)

    def each_lane(self) -> Iterator[tuple[int, LLVMValue]]:
        """The lanes, one after the other, with a pointer to each; what is written for one is done if it acts."""
        for lane in range(self.lanes):
            with self.code.when(self.code.icmp("ne", self.code.mask(self.bits, 1 << lane), 0)):
                yield lane, _pointer(self.code, self.code.extract(self.hosts, lane))


def _send(emitter: Emitter, inst: Instruction, at: int, names: Sequence[str], body: Callable[[_Message], None]) -> None:
    """Execute a message by the function for its kind, which fails if an access is refused.

    Args:
        names: of its operands in registers.
    """
    code, shape, lanes, acting = emitter.code, inst["data"], inst.exec_size, emitter.acting(inst)
    operand_names = [name for name in names if inst[name].var is not None]
    is_consecutive = at in emitter.promotion.addresses
    function = "_".join(
        [
            *(["consecutive"] if is_consecutive else []),
            inst.name,
            inst["sfid"],
            str(lanes),
            str(shape),
            f"by{alignment(inst, emitter.layout.exact_addresses)[0]}",
            *operand_names,
        ]
    )
    emitter.helper(function, lambda: _sender(emitter, inst, function, operand_names, body, is_consecutive))
    bits = code.const((1 << lanes) - 1, "i32") if acting is None else acting
    pointers = [emitter.pointer(inst[name]) for name in operand_names]
    if is_consecutive:
        address, address_pointer = emitter.first_address(at), emitter.pointer(inst["address"])
        operands = [emitter.ctx, address, bits, emitter.strides(at), address_pointer, *pointers]
    else:
        operands = [emitter.ctx, addresses(emitter, inst), bits, emitter.strides(at), *pointers]
    emitter.require(code.call(function, *operands, result="i1"), at)


def _sender(
    emitter: Emitter,
    inst: Instruction,
    name: str,
    operand_names: Sequence[str],
    body: Callable[[_Message], None],
    is_consecutive: bool,
) -> str:
    """The text of a function that executes messages like this one.

    The function takes the context, the addresses, the lanes that act, the strides of the message, and pointers to the
    operands. It returns an i1: whether the message is legal. If the message is not legal, the function has no effect.

    If the lanes' addresses are known to be consecutive, it takes the first one, and a pointer to the registers of
    addresses. It writes them if the message is not legal, for its semantic function.
    """
    lanes, shape = inst.exec_size, inst["data"]
    argument = ["i64", "i32", PTR, PTR] if is_consecutive else [vector(lanes, "i64"), "i32", PTR]
    code = emitter.host.function(name, [PTR, *argument, *[PTR for _ in operand_names]], "i1")
    ctx, addresses, bits, strides, *pointers = code.arguments
    size, aligned = shape.memory_bytes * shape.vector, alignment(inst, emitter.layout.exact_addresses)[0]
    memory, category = inst["sfid"], INSTRUCTIONS[inst.name].category
    element_offsets = [[int(p) for p in lane] for lane in data_offsets(shape, lanes, emitter.layout.target.grf_bytes)]
    refuse = code.label()

    def located(sought: LLVMValue, count: int, acting: LLVMValue) -> tuple[LLVMValue, LLVMValue]:
        """Whether `count` bytes at each lane's address are within one allocation, an i1; and the host addresses."""
        if memory == "slm":
            outside = code.icmp("sgt", sought, code.const(emitter.program.slm_bytes - count, sought.type))
            base = code.splat(code.load(code.at(ctx, context_offset("slm")), "i64", 8), sought.lanes)
            return code.icmp("eq", code.and_(acting, code.mask_to_bits(outside)), 0), code.add(sought, base)
        host_slots, function = code.alloca(8 * sought.lanes, 64), locate(emitter, sought.lanes)
        fine = code.call(function, ctx, sought, code.const(count, "i64"), acting, host_slots, result="i1")
        return fine, code.load(host_slots, sought.type, 8)

    def do(hosts: LLVMValue, first_pointer: LLVMValue | None = None) -> None:
        counter = code.at(code.load(code.at(ctx, context_offset("traffic")), PTR, 8), traffic_offset(memory, category))
        bytes_moved = code.mul(code.resize(code.intrinsic("ctpop", bits), 64, False), size)
        code.count(counter, bytes_moved)
        if emitter.frame.races:
            values = (
                emit_values(code, pointers[0], element_offsets, shape.memory_bytes) if category == "store" else None
            )
            code.go_on_if(
                emit_notes(code, memory, category, (addresses, hosts, bits), size, values, first_pointer), refuse
            )
        body(_Message(code, shape, element_offsets, hosts, bits, dict(zip(operand_names, pointers)), first_pointer))
        code.ret(code.const(1, "i1"))

    # Ragged edges of large tiles are many messages without a lane that acts.
    code.return_unless(code.icmp("ne", bits, 0), code.const(1, "i1"))
    steps = code.consts([size * n for n in range(lanes)], "i64")
    if is_consecutive or (lanes > 1 and shape.vector == 1 and aligned == 1):
        # CPUs load and store a vector faster than its elements, and many have no instruction for the latter. It is also
        # one place to look for, unless the allocation ends behind the last lane that acts.
        lane_label = code.label()
        if is_consecutive:
            start, address_pointer = addresses, pointers.pop(0)
        else:
            start = code.extract(addresses, 0)
            others = code.mask_to_bits(code.icmp("ne", addresses, code.add(code.splat(start, lanes), steps)))
            code.go_on_if(code.icmp("eq", code.and_(others, bits), 0), lane_label)
        if memory == "slm":
            fine, host_addresses = located(code.recast(start, vector(1, "i64")), size * lanes, code.const(1, "i32"))
            code.go_on_if(fine, lane_label)
            host = code.extract(host_addresses, 0)
        else:
            host = _located_in_last_allocation(emitter, code, strides, start, size * lanes, lane_label)
            prefetch_next(
                code, strides, _pointer(code, host), lambda next_pointer: prefetch_line(code, next_pointer, category)
            )
        do(code.add(code.splat(host, lanes), steps), _pointer(code, host))
        code.begin(lane_label)
        if is_consecutive:
            addresses = code.add(code.splat(start, lanes), steps)
    if lanes == 1 and memory != "slm" and category != "atomic":
        if aligned > 1:
            odd = code.mask(code.extract(addresses, 0), aligned - 1)
            code.return_unless(code.icmp("eq", odd, 0), code.const(0, "i1"))
        host = _located_in_last_allocation(emitter, code, strides, code.extract(addresses, 0), size, refuse)
        do(code.splat(host, 1))
    else:
        swaps = INSTRUCTIONS[inst.name].atomic == "icas" and size == 4 and memory != "slm"
        last_byte = (
            _last_swapped_byte(code, lanes, *(pointers[operand_names.index(n)] for n in ("src0", "src1")))
            if swaps
            else None
        )
        fine, hosts = located(
            code.add(addresses, last_byte) if last_byte else addresses, 1 if last_byte else size, bits
        )
        if aligned > 1:
            odd = code.mask_to_bits(code.icmp("ne", code.mask(addresses, aligned - 1), 0))
            fine = code.and_(fine, code.icmp("eq", code.and_(odd, bits), 0))
        code.go_on_if(fine, refuse)
        do(code.sub(hosts, last_byte) if last_byte else hosts)
    code.begin(refuse)
    if is_consecutive:
        code.store(addresses, address_pointer, 8)
    code.ret(code.const(0, "i1"))
    return code.text()


def _located_in_last_allocation(
    emitter: Emitter, code: FunctionBody, strides: LLVMValue, address: LLVMValue, size: int, elsewhere: str
) -> LLVMValue:
    """The host address of `size` bytes at an address, which are mostly in the allocation of the message before.

    Branches to `elsewhere` if they do not lie within one allocation.
    """
    ctx, last_allocation, count = code.arguments[0], code.at(strides, ALLOCATION), code.const(size, "i64")
    table = code.load(code.at(ctx, context_offset("table")), PTR, 8)
    index, search, found_label = code.load(last_allocation, "i64", 8), code.label(), code.label()

    def entry(index: LLVMValue, field_index: int) -> LLVMValue:
        return code.load(code.at(code.at(table, code.mul(index, 24)), 8 * field_index), "i64", 8)

    # The index of an earlier launch may be beyond the allocations of this one.
    code.go_on_if(code.icmp("ult", index, code.load(code.at(ctx, context_offset("buffers")), "i64", 8)), search)
    distance = code.sub(address, entry(index, 0))
    # Signed: an allocation may be smaller than the access.
    in_bounds = code.icmp("sle", distance, code.sub(entry(index, 1), count))
    code.cond_br(code.and_(in_bounds, code.icmp("sge", distance, 0)), found_label, search)
    code.begin(search)
    code.go_on_if(
        code.call(emitter.template("addresses.ll", "find"), ctx, address, count, last_allocation, result="i1"),
        elsewhere,
    )
    code.br(found_label)
    code.begin(found_label)
    return code.add(address, entry(code.load(last_allocation, "i64", 8), 2))


def _last_swapped_byte(code: FunctionBody, lanes: int, expected: LLVMValue, new: LLVMValue) -> LLVMValue:
    """The last of the four bytes that a compare and swap changes: all that is beyond may lie outside of an allocation.

    See `engines.semantics.memory`.
    """
    dwords = [code.load(pointer, vector(lanes, "i32")) for pointer in (expected, new)]
    changed_bits = code.or_(code.xor(*dwords), 1)
    zeros = code.lshr(code.intrinsic("ctlz", changed_bits, LLVMValue("false", "i1")), 3)
    return code.resize(code.sub(code.const(3, zeros.type), zeros), 64, False)


def _pointer(code: FunctionBody, address: LLVMValue) -> LLVMValue:
    return code.op(f"inttoptr {address} to ptr", PTR)


def _pointers(code: FunctionBody, addresses: LLVMValue) -> LLVMValue:
    return code.cast("inttoptr", addresses, PTR)


@RULES.of("lsc_load")
def lsc_load(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Load from each lane's address."""
    if inst["dst"].var is not None:
        _send(emitter, inst, at, ["dst"], _load_one if inst.exec_size == 1 else _load)


def _load(message: _Message) -> None:
    """Load the elements of all lanes: all first ones, then the second, and so on. All are loaded before one is written,
    since addresses may lie where results go."""
    code, shape, lanes, to = message.code, message.shape, message.lanes, message.operands["dst"]
    size, wide = shape.memory_bytes, 8 * shape.register_bytes
    mask = code.bits_to_mask(message.bits, lanes)
    rows = message.element_offsets[0]
    old_rows = [code.load(code.at(to, row), vector(lanes, f"i{wide}")) for row in rows]

    def write(row: int, old_row: LLVMValue, loaded_row: LLVMValue) -> None:
        if wide != 8 * size:
            loaded_row = code.select(mask, code.resize(loaded_row, wide, False), old_row)
        code.store(loaded_row, code.at(to, row))

    def gather() -> None:
        loaded_rows = []
        for e, old_row in enumerate(old_rows):
            hosts = code.add(message.hosts, e * size) if e else message.hosts
            loaded_rows.append(code.gather(_pointers(code, hosts), mask, code.resize(old_row, 8 * size, False)))
        for row, old_row, loaded_row in zip(rows, old_rows, loaded_rows):
            write(row, old_row, loaded_row)

    def load_lanes() -> None:
        """Load the vectors of as many lanes as a vector has elements, transpose them, and write their part of rows."""
        pointers = [_pointer(code, code.extract(message.hosts, lane)) for lane in range(lanes)]
        count = shape.vector
        vectors = [code.load(pointer, vector(count, f"i{wide}")) for pointer in pointers]
        for first in range(0, lanes, count):
            for row, part in zip(rows, _transposed(code, vectors[first : first + count])):
                code.store(part, code.at(to, row + first * size))

    if message.first_pointer is None:
        if shape.vector in (2, 4, 8) and lanes % shape.vector == 0:
            # CPUs load vectors faster than they gather elements.
            code.choose(message.all_act, load_lanes, gather)
        else:
            gather()
        return
    first_pointer, old_row = message.first_pointer, code.resize(old_rows[0], 8 * size, False)
    code.choose(
        message.all_act,
        lambda: write(rows[0], old_rows[0], code.load(first_pointer, old_row.type)),
        lambda: write(rows[0], old_rows[0], code.masked_load(first_pointer, mask, old_row)),
    )


def _transposed(code: FunctionBody, rows: Sequence[LLVMValue]) -> list[LLVMValue]:
    """The columns of as many rows as each has elements, a power of two: rows exchange blocks of ever smaller size."""
    columns, count = list(rows), len(rows)
    distance = count // 2
    while distance:
        for i in range(count):
            if i & distance == 0:
                upper, lower = columns[i], columns[i + distance]
                columns[i] = code.shuffle(
                    upper, lower, [n + count - distance if n & distance else n for n in range(count)]
                )
                columns[i + distance] = code.shuffle(
                    upper, lower, [n + count if n & distance else n + distance for n in range(count)]
                )
        distance //= 2
    return columns


def _load_one(message: _Message) -> None:
    """Load the elements of one lane, which lie side by side in memory."""
    code, shape, to = message.code, message.shape, message.operands["dst"]
    size, (element_offsets,) = shape.memory_bytes, message.element_offsets

    pointer = _pointer(code, code.extract(message.hosts, 0))
    if shape.vector > 1 and element_offsets == [i * size for i in range(shape.vector)]:
        code.store(code.load(pointer, vector(shape.vector, f"i{8 * size}")), to)
        return
    for e, register_offset in enumerate(element_offsets):
        element = code.load(code.at(pointer, e * size), f"i{8 * size}")
        code.store(code.resize(element, 8 * shape.register_bytes, False), code.at(to, register_offset))


@RULES.of("lsc_store")
def lsc_store(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Store to each lane's address. If lanes share an address, the last lane's value remains."""
    _send(emitter, inst, at, ["src0"], _store)


def _store(message: _Message) -> None:
    code, shape, lanes, source = message.code, message.shape, message.lanes, message.operands["src0"]
    size = shape.memory_bytes
    if lanes > 1 and shape.vector == 1:
        values = code.load(source, vector(lanes, f"i{8 * shape.register_bytes}"))
        values, mask = code.resize(values, 8 * size, False), code.bits_to_mask(message.bits, lanes)
        first_pointer = message.first_pointer
        if first_pointer:
            code.choose(
                message.all_act,
                lambda: code.store(values, first_pointer),
                lambda: code.masked_store(values, first_pointer, mask),
            )
        else:
            code.scatter(values, _pointers(code, message.hosts), mask)
        return
    # Where the elements of several lanes overlap, the later lane's are to stay.
    for lane, pointer in message.each_lane():
        element_offsets = message.element_offsets[lane]
        if element_offsets == [element_offsets[0] + i * size for i in range(len(element_offsets))]:
            code.store(
                code.load(code.at(source, element_offsets[0]), vector(len(element_offsets), f"i{8 * size}")), pointer
            )
            continue
        for e, register_offset in enumerate(element_offsets):
            code.store(code.load(code.at(source, register_offset), f"i{8 * size}"), code.at(pointer, e * size))


_RMW = {
    "iinc": "add", "idec": "sub", "load": "or", "store": "xchg", "iadd": "add", "isub": "sub", "smin": "min",
    "smax": "max", "umin": "umin", "umax": "umax", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
"""LLVM's atomic operations; `load` changes nothing by an or with zero."""


def _exchanged(
    code: FunctionBody, pointer: LLVMValue, expected_value: LLVMValue, new_value: LLVMValue
) -> tuple[LLVMValue, LLVMValue]:
    """Write a number atomically if memory has an expected one; the old number, and an i1, whether they were equal."""
    align = bits_of(expected_value.type) // 8
    cmpxchg = code.op(
        f"cmpxchg {pointer}, {expected_value}, {new_value} seq_cst seq_cst, align {align}",
        f"{{ {expected_value.type}, i1 }}",
    )
    return code.op(f"extractvalue {cmpxchg}, 0", expected_value.type), code.op(f"extractvalue {cmpxchg}, 1", "i1")


def _atomic_float(emitter: Emitter, operation: str, bits: int) -> str:
    """The name of the function that changes a float atomically; see `atomics.ll`."""
    code = FunctionBody("", [])
    new_value = _updated_float(code, operation, bits, *(LLVMValue(name, f"i{bits}") for name in ("%old", "%a", "%b")))
    template_words = {
        "operation": operation,
        "bits": bits,
        "bytes": bits // 8,
        "change": code.body(),
        "new": new_value.name,
    }
    return emitter.template("atomics.ll", "atomic_${operation}_$bits", **template_words)


def _updated_float(
    code: FunctionBody, operation: str, bits: int, old_bits: LLVMValue, a: LLVMValue, b: LLVMValue
) -> LLVMValue:
    """The new bit pattern of a float in memory."""
    fmt = IEEE[bits]
    x, y = widen(code, old_bits, fmt), widen(code, a, fmt)
    if operation == "fcas":
        return code.select(code.fcmp("oeq", x, y), b, old_bits)
    if operation in ("fadd", "fsub"):
        return narrow(code, code.bin(operation, x, y), fmt)
    is_minimum = operation == "fmin"
    sign = code.icmp("slt" if is_minimum else "sge", old_bits, 0)
    takes_x = code.or_(code.fcmp("olt" if is_minimum else "ogt", x, y), code.and_(code.fcmp("oeq", x, y), sign))
    return narrow(code, code.select(code.or_(takes_x, code.fcmp("uno", y, y)), x, y), fmt)


@RULES.of(*(f"lsc_atomic_{name}" for name in ATOMICS))
def lsc_atomic(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Change the location of each lane, in the order of lanes."""
    body = partial(_change_all, emitter, INSTRUCTIONS[inst.name].atomic)
    _send(emitter, inst, at, ["dst", "src0", "src1"], body)


def _change_all(emitter: Emitter, operation: str, message: _Message) -> None:
    code, shape, lanes = message.code, message.shape, message.lanes
    bits, wide = 8 * shape.memory_bytes, 8 * shape.register_bytes
    # All operands are read before the first result is written.
    operands = [
        code.resize(code.load(message.operands[name], vector(lanes, f"i{wide}")), bits, False)
        for name in ("src0", "src1")
        if name in message.operands
    ]

    for lane, pointer in message.each_lane():
        lane_operands = [code.extract(operand, lane) for operand in operands]
        old_value = _change(emitter, code, operation, f"i{bits}", pointer, lane_operands)
        if "dst" in message.operands:
            code.store(
                code.resize(old_value, wide, False), code.at(message.operands["dst"], message.element_offsets[lane][0])
            )


def _change(
    emitter: Emitter,
    code: FunctionBody,
    operation: str,
    element: str,
    pointer: LLVMValue,
    operands: Sequence[LLVMValue],
) -> LLVMValue:
    """Change one location; returns its old value."""
    bits = int(element[1:])
    if operation in _RMW:
        identity = code.const(0 if operation == "load" else 1, element)
        operand = operands[0] if operands else identity
        return code.op(f"atomicrmw {_RMW[operation]} {pointer}, {operand} seq_cst, align {bits // 8}", element)
    if operation == "icas":
        return _exchanged(code, pointer, operands[0], operands[1])[0]
    function = _atomic_float(emitter, operation, bits)
    second_operand = operands[1] if len(operands) > 1 else code.const(0, element)
    return code.call(function, pointer, operands[0], second_operand, result=element)


@RULES.of("lsc_fence")
def lsc_fence(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Order memory for other workers; a workgroup's threads run on one, where LLVM alone has to keep the order."""
    sync_scope = 'syncscope("singlethread") ' if inst["scope"] == "group" else ""
    emitter.code.line(f"fence {sync_scope}seq_cst")
    if emitter.frame.races:
        memory = SLM if inst["sfid"] == "slm" else UGM
        emitter.code.call("race_fence", emitter.ctx, emitter.code.const(memory, "i64"))


@RULES.of("fence_sw")
def fence_sw(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Do nothing: instructions run in program order."""
