"""Native dpas and bdpas: which of a program are computed together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from xegpu_py.engines.jit.dpas_functions import (
    Extent,
    Shape,
    configure,
    correct_b,
    in_order,
    move_a,
    multiplier,
    queue_multiplier,
    summer,
    tile_multiplier,
    widen_a,
    widen_b,
)
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.ir_text import PTR, FunctionBody, LLVMValue, vector
from xegpu_py.engines.jit.operands import Emitter, Queue
from xegpu_py.engines.jit.packed_operand_cache import steps_of
from xegpu_py.numerics.block_scaled import BLOCK, COLUMNS, ROWS, SCALE_GROUP, scaled_depth
from xegpu_py.numerics.dpas import operand_bytes, ops_per_channel
from xegpu_py.numerics.formats import PRECISIONS, TYPES
from xegpu_py.numerics.systolic import Systolic
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import accesses
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Instruction, Program, analysis

# DPAS: operands are widened to f32, f64 or i32 once, and multiplied by functions that keep accumulators in registers.
#
# Consecutive instructions are taken together. Products of one accumulator become one chain. Chains that share their
# matrix A are multiplied together, so that each element of A is loaded once for two columns.

_SIDE_BY_SIDE = 4

_LONGEST_CHAIN = 4

_LONGEST_RUN = 64

_OperandRef = tuple[int, tuple[LLVMValue, int] | None]
"""The offset of an operand in the register file; and if its matrix is elsewhere, the pointer and the offset there."""


class _Chain(Struct):
    """Instructions that successively add to one accumulator. Places are offsets in the register file.

    Attributes:
        shape: the shape of each instruction.
        acc: the place of the first instruction's accumulator.
        dst: the place of each instruction's result.
        a, b: the places of each instruction's matrices.
        at: the instructions' indices.
    """

    shape: Shape
    acc: int
    dst: list[int] = field(default_factory=list)
    a: list[_OperandRef] = field(default_factory=list)
    b: list[_OperandRef] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Size of a result in bytes."""
        return self.shape.rows * self.shape.columns * TYPES[self.shape.dst].bytes

    def written(self) -> set[tuple[int, int]]:
        """The byte ranges that the chain writes."""
        return {(d, d + self.bytes) for d in self.dst}

    def needed(self) -> set[tuple[int, int]]:
        """The accumulator that it reads."""
        size = self.shape.rows * self.shape.columns * TYPES[self.shape.acc or "f"].bytes
        return {(self.acc, self.acc + size)} if self.shape.acc else set()


_Group = tuple[list[_Chain], tuple[bool, ...]]
"""Chains that share A, and for each of their instructions whether its result must be in registers."""


def shape_of(emitter: Emitter, inst: Instruction) -> Shape:
    """The shape of an instruction."""
    acc = inst["src0"].var
    depth = inst["SD"] * ops_per_channel(inst["W"], inst["A"])
    is_float, host = PRECISIONS[inst["W"]].is_float, emitter.host
    bytes_ = {inst["W"], inst["A"]} <= {"u8", "s8"}
    dot = 1 if is_float else 4 if bytes_ and host.dots_bytes else 2 if host.dots_words else 1
    terms = 1
    if is_float and not isinstance(emitter.model, Systolic):
        terms = {"fma": 1, "stage": depth // inst["SD"], "exact": depth}[emitter.model]
    return Shape(
        inst["W"],
        inst["A"],
        depth,
        inst["SD"],
        inst["RC"],
        inst.exec_size,
        inst["dst"].var.type,
        acc.type if acc else "",
        dot,
        terms,
        bytes_ and host.multiplies_tiles,
        terms == 1 and emitter.any_nan(inst["dst"]),
        inst.flushed,
    )


def dpas(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Multiply and add matrices (DPAS.md)."""
    emit_run(emitter, [(at, inst)])


def emit_run(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> None:
    """Write consecutive instructions, together if none reads the result of another one except as its accumulator."""
    if any(_by_semantics(emitter, inst) for _, inst in run):
        for at, inst in run:
            if _by_semantics(emitter, inst):
                emitter.call_semantics(at)
            else:
                emit_run(emitter, [(at, inst)])
        return
    if emitter.active is not None and not all(inst.no_mask for _, inst in run):
        for at, inst in run:
            _emit_masked(emitter, at, inst)
        return
    groups: list[list[tuple[int, Instruction]]] = [[]]
    links: dict[int, int] = {}
    for at, inst in run:
        acc, dst = (
            emitter.register_offset(inst["src0"]) if inst["src0"].var else -1,
            emitter.register_offset(inst["dst"]),
        )
        length = links.get(acc, 0) + 1
        if len(groups[-1]) == _LONGEST_RUN or length > _LONGEST_CHAIN:
            groups.append([])
            links, length = {}, 1
        links[dst] = length
        groups[-1].append((at, inst))
    for group in groups:
        _emit_group(emitter, group)


def _by_semantics(emitter: Emitter, inst: Instruction) -> bool:
    measured = isinstance(emitter.model, Systolic) and PRECISIONS[inst["W"]].is_float
    if inst.alternatives:
        return True
    return measured or any(inst[name].var and inst.flushes(inst[name].var.type) for name in ("dst", "src0"))


def _emit_masked(emitter: Emitter, at: int, inst: Instruction) -> None:
    """Write an instruction whose disabled lanes keep their columns."""
    code, mask = emitter.code, emitter.mask(inst)
    size, dst_offset = inst["dst"].var.format.bytes, emitter.register_offset(inst["dst"])
    row = vector(inst.exec_size, f"i{8 * size}")
    row_offsets = [dst_offset + r * inst.exec_size * size for r in range(inst["RC"])]
    old_rows = [code.fetch(emitter.thread, p, row) for p in row_offsets] if mask else []
    _emit_group(emitter, [(at, inst)])
    if mask is None:
        return
    for p, old_row in zip(row_offsets, old_rows):
        code.put(code.select(mask, code.fetch(emitter.thread, p, row), old_row), emitter.thread, p)


def _emit_group(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> None:
    chains = _chains(emitter, run)
    if len(run) > 1 and not _independent(emitter, run, chains):
        middle = len(run) // 2
        _emit_group(emitter, run[:middle])
        _emit_group(emitter, run[middle:])
        return
    groups: dict[tuple[object, ...], list[list[_Chain]]] = {}
    order: list[_Group] = []
    for chain in chains:
        result_mask = _results_in_registers(emitter, chain)
        chains_of_group = groups.setdefault((chain.shape, tuple(chain.a), result_mask), [])
        if not chains_of_group or len(chains_of_group[-1]) == _SIDE_BY_SIDE:
            chains_of_group.append([])
            order.append((chains_of_group[-1], result_mask))
        chains_of_group[-1].append(chain)
    if _defers(emitter, run, order):
        _defer(emitter, run, [group for group, _ in order])
        return
    scratch = _Scratch(emitter)
    for group, result_mask in order:
        if group[0].shape.terms == 1:
            _multiply(emitter, group, result_mask, scratch)
        else:
            for chain in group:
                _sum(emitter, chain, scratch)


def _defers(emitter: Emitter, run: Sequence[tuple[int, Instruction]], order: Sequence[_Group]) -> bool:
    """Whether products of several steps of a loop can be added together.

    This requires that no other instruction of the loop accesses their accumulators, that each result overwrites its
    accumulator, and that all matrices are panels.
    """
    loop = emitter.loop
    if loop is None or emitter.queue or emitter.frame.watch or emitter.active is not None:
        return False
    for group, result_mask in order:
        shape = group[0].shape
        accumulates = all(chain.acc == chain.dst[-1] for chain in group)
        if (
            shape.terms > 1
            or shape.acc != shape.dst
            or shape.dst not in ("f", "d", "ud")
            or not accumulates
            or any(result_mask[:-1])
        ):
            return False
    if not all(emitter.matrix(inst[name]) for _, inst in run for name in ("src1", "src2")):
        return False
    own_instructions = {at for at, _ in run}
    users = _users(emitter.program, emitter.layout.target, loop)
    return all(users[inst["dst"].var.root[0]] <= own_instructions for _, inst in run)


@analysis
def _users(program: Program, target: Target, loop: range) -> dict[Variable, set[int]]:
    """The instructions of a loop that access each variable."""
    users: dict[Variable, set[int]] = {}
    for at in loop:
        for access in accesses(program.instructions[at], target):
            users.setdefault(access.var, set()).add(at)
    return users


def _defer(emitter: Emitter, run: Sequence[tuple[int, Instruction]], groups: Sequence[list[_Chain]]) -> None:
    """Queue pointers to matrices, and multiply when the queue is full."""
    code, at = emitter.code, run[0][0]
    # Groups with the same matrices B, one below the other.
    stacks: dict[tuple[object, ...], list[list[_Chain]]] = {}
    for group in groups:
        stacks.setdefault((group[0].shape, len(group[0].a), *(tuple(chain.b) for chain in group)), []).append(group)
    assert emitter.matrices
    size, stacks_of_queue = 0, []
    count = LLVMValue(f"%queued{at}", PTR)
    queue_count = code.op(f"load i64, {count}, align 8", "i64")
    for stack in stacks.values():
        links = len(stack[0][0].a)
        pointers = [
            matrix_pointer
            for link in range(links)
            for operands in ([group[0].a[link] for group in stack], [chain.b[link] for chain in stack[0]])
            for _, matrix_pointer in operands
            if matrix_pointer
        ]
        entry = code.at(code.at(LLVMValue(f"%queue{at}", PTR), size), code.mul(queue_count, 8 * len(pointers)))
        for i, pointer in enumerate(pointers):
            code.store(code.at(*pointer), code.at(entry, 8 * i), 8)
        stacks_of_queue.append((size, stack))
        size += emitter.matrices.steps * 8 * len(pointers)
    flush = emitter.helper(f"flush_{at}", lambda: _flusher(emitter, f"flush_{at}", stacks_of_queue))
    queue = Queue(count, LLVMValue(f"%queue{at}", PTR), flush)
    emitter.new_queue(queue, size)
    new_count = code.add(queue_count, 1)
    code.store(new_count, queue.count, 8)
    with code.when(code.icmp("sge", new_count, steps_of(code, emitter.ctx))):
        emitter.flush(queue)


def _flusher(emitter: Emitter, name: str, queue_entries: Sequence[tuple[int, list[list[_Chain]]]]) -> str:
    """The function that multiplies what is queued; see `Queue`. A part is a place in the queue and what is there."""
    code = emitter.host.function(name, [PTR, PTR, PTR, "i64"])
    ctx, thread, memory, steps = code.arguments
    for queue_slot, stack in queue_entries:
        function_name, shape = f"{name}_{queue_slot}", stack[0][0].shape
        sums_at = [[chain.acc for chain in group] for group in stack]
        emitter.helper(function_name, partial(queue_multiplier, function_name, shape, sums_at, emitter.host))
        entries = code.mul(steps, len(stack[0][0].a))
        code.call(function_name, ctx, thread, code.at(memory, queue_slot), entries)
    code.ret()
    return code.text()


def _chains(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> list[_Chain]:
    """The chains of a run, in the order of their first instructions."""
    chains: list[_Chain] = []
    latest: dict[int, _Chain] = {}
    for at, inst in run:
        shape = shape_of(emitter, inst)
        acc = emitter.register_offset(inst["src0"]) if shape.acc else -1
        dst = emitter.register_offset(inst["dst"])
        chain = latest.pop(acc, None)
        # Instructions that round to a narrower accumulator in between form no chain.
        wide = shape.terms == 1 and shape.dst == shape.acc and shape.dst not in ("bf", "hf")
        # Only the first link may have no accumulator.
        if chain is None or not wide or replace(chain.shape, acc=shape.acc, any_nan=shape.any_nan) != shape:
            chain = _Chain(shape, acc)
            chains.append(chain)
        elif not shape.any_nan:
            chain.shape = replace(chain.shape, any_nan=False)
        chain.dst.append(dst)
        for matrices, operand in ((chain.a, inst["src2"]), (chain.b, inst["src1"])):
            matrices.append((emitter.register_offset(operand), emitter.panel_of(operand)))
        chain.at.append(at)
        latest[dst] = chain
    return chains


def _independent(emitter: Emitter, run: Sequence[tuple[int, Instruction]], chains: Sequence[_Chain]) -> bool:
    """Whether chains can run one after the other: none touches what another one writes, and none changes a matrix."""
    # Disjoint ranges, in order, that chains write: overlapping ranges of one chain are joined.
    starts: list[int] = []
    written_ranges: list[tuple[int, int]] = []
    for start, end, number in sorted(
        (*byte_range, n) for n, chain in enumerate(chains) for byte_range in chain.written()
    ):
        if not written_ranges or start >= written_ranges[-1][0]:
            starts.append(start)
            written_ranges.append((end, number))
        elif number == written_ranges[-1][1]:
            written_ranges[-1] = max(end, written_ranges[-1][0]), number
        else:
            return False
    read = [(*byte_range, n) for n, chain in enumerate(chains) for byte_range in chain.needed()]
    read += [(*byte_range, -1) for _, inst in run for byte_range in _matrices(emitter, inst)]
    return not any(
        writer != number and start < stop
        for start, end, number in read
        for stop, writer in written_ranges[max(bisect_right(starts, start) - 1, 0) : bisect_left(starts, end)]
    )


def _matrices(emitter: Emitter, inst: Instruction) -> list[tuple[int, int]]:
    """The byte ranges of the registers from which an instruction reads matrices."""
    sizes = operand_bytes(inst["W"], inst["A"], inst["SD"], inst["RC"], inst.exec_size)
    operands = inst["src1"], inst["src2"]
    starts = [(emitter.register_offset(o), size) for o, size in zip(operands, sizes) if emitter.matrix(o) is None]
    return [(start, start + size) for start, size in starts]


def _results_in_registers(emitter: Emitter, chain: _Chain) -> tuple[bool, ...]:
    """Return, for each result of a chain, whether it must be in registers: the last one, and those that others read."""
    result_mask = []
    for n, (at, dst) in enumerate(zip(chain.at, chain.dst)):
        overwritten = dst in chain.dst[n + 1 :]
        is_last = n + 1 == len(chain.at)
        result_mask.append(is_last or not (overwritten or emitter.forgotten(at, chain.at[n + 1])))
    return tuple(result_mask)


class _Scratch:
    """The widened operands of a run. Each operand is widened once."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self._offsets: dict[tuple[str, int], int] = {}
        self._bytes = 0

    def operand(self, function: str, where: _OperandRef, size: int) -> LLVMValue:
        """An operand widened by a function, which takes pointers to the destination and to the source."""
        code, scratch_offset = self.emitter.code, where[0]
        offset = self._offsets.get((function, scratch_offset))
        if offset is None:
            offset = self._offsets[function, scratch_offset] = self._bytes
            self._bytes += -(-size // 64) * 64
            target = code.at(self.emitter.scratch(self._bytes), offset)
            code.call(function, target, code.at(self.emitter.thread, scratch_offset))
        return code.at(self.emitter.scratch(self._bytes), offset)

    def a(self, shape: Shape, operand_ref: _OperandRef) -> LLVMValue:
        """Matrix A, widened, in row-major order."""
        if operand_ref[1] is not None:
            return self.emitter.code.at(*operand_ref[1])
        if shape.dot == 4:
            size = shape.rows * shape.depth
            if not shape.corrected:
                return self.emitter.code.at(self.emitter.thread, operand_ref[0])
            self.emitter.helper(f"move_a_{size}", lambda: move_a(f"move_a_{size}", size, self.emitter.host))
            return self.operand(f"move_a_{size}", operand_ref, size)
        count = shape.rows * shape.depth
        name = f"widen_a_{shape.A}{'_flushed' * (shape.A in shape.flushed)}_{shape.work}x{shape.dot}_{count}"
        self.emitter.helper(name, lambda: widen_a(name, shape, count, self.emitter.host))
        return self.operand(name, operand_ref, count * shape.size + Extent.BYTES)

    def correction(self, shape: Shape, operand_ref: _OperandRef) -> LLVMValue:
        """The excess of products with this matrix B of bytes, which is to be subtracted: see `correct_b`."""
        name = f"correct_b_{shape.W}_{shape.steps}_{shape.columns}"
        self.emitter.helper(name, lambda: correct_b(name, shape, self.emitter.host))
        return self.operand(name, operand_ref, shape.columns * 4)

    def b(self, shape: Shape, operand_ref: _OperandRef) -> LLVMValue:
        """Matrix B, widened, in row-major order."""
        if operand_ref[1] is not None:
            return self.emitter.code.at(*operand_ref[1])
        if shape.dot == 4:
            return self.emitter.code.at(self.emitter.thread, operand_ref[0])
        layout_name = f"{shape.W}{'_flushed' * (shape.W in shape.flushed)}_{shape.work}x{shape.dot}"
        name = f"widen_b_{layout_name}_{shape.depth}_{shape.columns}"
        self.emitter.helper(name, lambda: widen_b(name, shape, self.emitter.host))
        return self.operand(name, operand_ref, shape.steps * shape.b_row + Extent.BYTES)


def _multiply(emitter: Emitter, group: list[_Chain], result_mask: tuple[bool, ...], scratch: _Scratch) -> None:
    """Multiply chains that share A."""
    code, shape = emitter.code, group[0].shape
    result_flags = "".join("01"[k] for k in result_mask)
    work = f"{shape.A}_{shape.W}{'_tiles' * shape.tiles}" if shape.dot == 4 else f"{shape.work}x{shape.dot}"
    types = f"{work}_{shape.dst}{'_any_nan' * shape.any_nan}_{shape.acc or 'none'}"
    name = f"multiply_{types}_{shape.rows}x{shape.columns}x{shape.depth}_{len(group)}_{result_flags}"
    make = tile_multiplier if shape.tiles else multiplier
    if shape.tiles:
        configure_name = f"configure_tiles_{shape.rows}x{shape.columns}x{shape.depth}"
        emitter.configure_tiles(emitter.helper(configure_name, lambda: configure(configure_name, shape, emitter.host)))
    emitter.helper(name, lambda: make(name, shape, len(group), result_mask, emitter.host))
    operands = [code.at(emitter.thread, max(c.acc, 0)) for c in group]
    operands += [code.at(emitter.thread, d) for c in group for d, k in zip(c.dst, result_mask) if k]
    operands += [scratch.a(shape, operand_ref) for operand_ref in group[0].a]
    operands += [scratch.b(shape, operand_ref) for c in group for operand_ref in c.b]
    if shape.corrected:
        operands += [scratch.correction(shape, operand_ref) for c in group for operand_ref in c.b]
    code.call(name, *operands)


def _sum(emitter: Emitter, chain: _Chain, scratch: _Scratch) -> None:
    """Add in the models `stage` and `exact`; the semantic function does what f64 cannot."""
    code, shape = emitter.code, chain.shape
    (at,) = chain.at
    if shape.W == "df":
        emitter.call_semantics(at)
        return
    types = f"{shape.A}_{shape.W}_{shape.dst}_{shape.acc or 'none'}"
    name = f"sum_{shape.terms}_{types}_{shape.rows}x{shape.columns}x{shape.depth}"
    emitter.helper(name, lambda: summer(name, shape, emitter.host))
    fine = code.call(
        name,
        code.at(emitter.thread, max(chain.acc, 0)),
        code.at(emitter.thread, chain.dst[0]),
        scratch.a(shape, chain.a[0]),
        scratch.b(shape, chain.b[0]),
        result="i1",
    )
    with code.when(code.not_(fine)):
        emitter.call_semantics(at)


# BDPAS: elements are widened to f64 and scaled once. Their products are exact in f64, and are added as by `fma`.

_NAN64 = TYPES["df"].nan

_DOUBLE = 8
"""Bytes of an f64."""


def bdpas(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Multiply and add block-scaled matrices."""
    masked = emitter.active is not None and not inst.no_mask
    if emitter.model != "fma" or masked or inst.flushed or inst.alternatives:
        # These models and disabled lanes are rare.
        emitter.call_semantics(at)
        return
    code, acc, depth = emitter.code, inst["src0"].var, scaled_depth(inst["W"], inst["A"])
    # A shape with several terms widens its matrices to f64.
    shape = Shape(
        inst["W"], inst["A"], depth, inst["SD"], ROWS, COLUMNS, inst["dst"].var.type, acc.type if acc else "", terms=2
    )
    a_bytes = ROWS * depth * _DOUBLE + Extent.BYTES
    scratch = emitter.scratch(a_bytes + depth * COLUMNS * _DOUBLE + Extent.BYTES)
    a, b = scratch, code.at(scratch, a_bytes)
    a_name, b_name = f"widen_scaled_a_{shape.A}", f"widen_scaled_b_{shape.W}"
    emitter.helper(a_name, lambda: widen_a(a_name, shape, ROWS * depth, emitter.host))
    emitter.helper(b_name, lambda: widen_b(b_name, shape, emitter.host))
    code.call(a_name, a, code.at(emitter.thread, emitter.register_offset(inst["src2"])))
    code.call(b_name, b, code.at(emitter.thread, emitter.register_offset(inst["src1"])))
    for name, slot, matrix, write in (("a", "src4", a, scale_a), ("b", "src3", b, scale_b)):
        if inst[slot].var is not None:
            function = f"scale_{name}_{depth}"
            emitter.helper(function, lambda f=function, w=write: w(f, depth, emitter.host))  # type: ignore[misc]
            code.call(function, matrix, code.at(emitter.thread, emitter.register_offset(inst[slot])))
    function = f"multiply_scaled_{depth}_{shape.dst}_{shape.acc or 'none'}"
    emitter.helper(function, lambda: in_order(function, shape, emitter.host))
    accumulator = code.at(emitter.thread, emitter.register_offset(inst["src0"]) if acc else 0)
    code.call(function, accumulator, code.at(emitter.thread, emitter.register_offset(inst["dst"])), a, b)


def _power(code: FunctionBody, scales: LLVMValue) -> LLVMValue:
    """Scales of E8M0, i8, as f64."""
    wide = code.resize(scales, 64, False)
    bits = code.shl(code.add(wide, 1023 - 127), 52)
    nan = code.icmp("eq", wide, 0xFF)
    return code.cast("bitcast", code.select(nan, code.const(_NAN64, wide.type), bits), "f64")


def scale_a(name: str, depth: int, host: Host) -> str:
    """The function that multiplies A, rows of f64, with the scales of its rows."""
    code = host.function(name, [PTR, PTR])
    matrix, scales = code.arguments
    length = min(depth, BLOCK)
    lanes = min(host.lanes(_DOUBLE), length)
    for block in range(-(-depth // BLOCK)):
        powers = _power(code, code.load(code.at(scales, block * SCALE_GROUP), vector(ROWS, "i8")))
        for row in range(ROWS):
            factor = code.splat(code.extract(powers, row), lanes)
            for k in range(0, length, lanes):
                element_pointer = code.at(matrix, (row * depth + block * BLOCK + k) * _DOUBLE)
                code.store(code.bin("fmul", code.load(element_pointer, factor.type), factor), element_pointer)
    code.ret()
    return code.text()


def scale_b(name: str, depth: int, host: Host) -> str:
    """The function that multiplies B, rows of f64, with the scales of its columns."""
    code = host.function(name, [PTR, PTR])
    matrix, scales = code.arguments
    for block in range(-(-depth // BLOCK)):
        powers = _power(code, code.load(code.at(scales, block * SCALE_GROUP), vector(COLUMNS, "i8")))
        for k in range(min(depth, BLOCK)):
            element_pointer = code.at(matrix, (block * BLOCK + k) * COLUMNS * _DOUBLE)
            code.store(code.bin("fmul", code.load(element_pointer, powers.type), powers), element_pointer)
    code.ret()
    return code.text()
