"""The functions that a program becomes: its blocks, and the control flow between them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from xegpu_py.engines.jit.checks import emit_checks, emit_record
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.ir_text import PTR, FunctionBody, LLVMValue
from xegpu_py.engines.jit.llvm import function_of, functions_of
from xegpu_py.engines.jit.native_launch_struct import ENDED_PC, SLICE, Frame, Status, context_offset
from xegpu_py.engines.jit.operands import Emitter
from xegpu_py.engines.jit.packed_operand_cache import WORDS, find_matrices
from xegpu_py.engines.jit.register_promotion import RegisterPromotion, by_semantics, promotion_of, rounds_directed
from xegpu_py.engines.jit.repeated_instructions import with_repeats
from xegpu_py.engines.jit.rules import CONTROL, RULES, RUNS
from xegpu_py.engines.jit.rules.alu import emit_arithmetic, emit_directed, emit_flag_logic
from xegpu_py.engines.jit.rules.block2d import surface
from xegpu_py.engines.jit.rules.memory import addresses
from xegpu_py.engines.operands import MAX_CALLS, RETURNED, RegisterPositions
from xegpu_py.numerics.dpas import Model, ops_per_channel
from xegpu_py.numerics.formats import PRECISIONS
from xegpu_py.visa.dataflow import accesses, divergent_lanes, has_calls, liveness_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import HEADER, STATE, Flag, Variable
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import LANES

if TYPE_CHECKING:
    from xegpu_py.engines.jit.packed_operand_cache import Matrices


# A program as functions of LLVM IR. The function `thread` runs one hardware thread.


def frame_of(program: Program, layout: RegisterPositions) -> Frame:
    """The layout of a thread's state."""
    size = max(layout.allocation.bytes, layout.target.grf_bytes)
    barriers = 1 + int(program.attributes.get("NBarrierCnt", 0))
    predicates = max(len(program.predicates), 1)
    return Frame(-(-size // 64) * 64, predicates, barriers, layout.watch, layout.races, layout.logs, has_calls(program))


def input_bytes(program: Program, layout: RegisterPositions, keep: bool) -> int:
    """Bytes of the register file, from the first on, that a thread may read before it has written them.

    These are the header and the inputs, or all registers if they are to be looked at, or if the program may read a
    variable that it has not written.
    """
    if keep:
        return frame_of(program, layout).registers
    input_variables = {item.var.root[0] for item in program.inputs}
    input_variables |= {var for var in liveness_of(program, layout.target).entering(0) if isinstance(var, Variable)}
    return max(
        [layout.target.grf_bytes, *(layout.offset(var) + var.bytes for var in input_variables - {*HEADER.values()})]
    )


def matrices_of(
    program: Program, layout: RegisterPositions, model: Model, host: Host, divergent: bool, keep: bool
) -> Matrices | None:
    """The matrices that are loaded as dpas multiplies them; see `functions_of_program` for the arguments."""
    other_rules = any(inst.flushed or inst.alternatives for inst in program.instructions if inst.name == "dpas")
    if keep or divergent or layout.logs or model != "fma" or other_rules or not _multiplies(program):
        return None

    byte_bits = 0 if host.dots_bytes else 16 if host.dots_words else 32
    return find_matrices(program, layout.target, tuple(block_starts(program)), byte_bits)


def functions_of_program(
    program: Program, layout: RegisterPositions, model: Model, host: Host, divergent: bool, keep: bool
) -> list[str]:
    """The functions of a program. Its function `thread` is that of a thread.

    It takes the worker's context and the thread's block, and gives the `Status` with which the thread has stopped.

    Args:
        host: the CPU for which code is made.
        divergent: whether each lane has its program counter.
        keep: whether registers hold all results at the end, and not only those that the program needs.
    """
    frame, blocks = frame_of(program, layout), Blocks(program)
    # Only products use live ranges.
    live = liveness_of(program, layout.target).ranges if _multiplies(program) and not keep else None
    matrices = matrices_of(program, layout, model, host, divergent, keep)
    # The checks of registers never written, and divergent lanes, look at registers between instructions.
    can_inline = not (divergent or layout.watch)
    promotion = RegisterPromotion()
    if not keep:
        records = layout.races or layout.logs
        promotion = promotion_of(program, layout.target, blocks.starts, within_blocks=can_inline, records=records)
        if can_inline and not records and not _multiplies(program):
            promotion = with_repeats(program, layout, promotion, blocks.starts)
    functions = [] if host.converts_halves else functions_of("halves.ll")
    helpers: dict[str, str] = {}
    if layout.races:
        functions += [*functions_of("race_clocks.ll"), *functions_of("races.ll")]
        helpers["find"] = function_of("addresses.ll", "find", attributes=host.attributes)
    if layout.logs:
        functions += functions_of("log.ll", clock=frame.clock)
    for number, block_range in enumerate(blocks.parts):
        code = _function("thread" if len(blocks.parts) == 1 else f"thread_{number}", host)
        emitter = Emitter(
            program, layout, frame, model, code, host, helpers, live=live, matrices=matrices, promotion=promotion
        )
        control = Control(emitter, divergent, blocks, block_range)
        control.enter()
        _write_blocks(emitter, control, blocks, block_range)
        functions.append(emitter.finish())
    if len(blocks.parts) > 1:
        functions.append(_dispatcher(emitter, blocks))
    return [*functions, *helpers.values()]


def _multiplies(program: Program) -> bool:
    return any(inst.name == "dpas" for inst in program.instructions)


def _function(name: str, host: Host) -> FunctionBody:
    return host.function(name, [PTR, f"{PTR} noalias align 64"], "i32", alignment=64)


def _dispatcher(emitter: Emitter, blocks: Blocks) -> str:
    """The function that calls the part of a thread's function that has the program counter, until a part stops."""
    functions, offset, counter = blocks.parts, emitter.frame.pc, "load i32, ptr %counter.at"
    if emitter.active is not None:
        least = emitter.template("lanes.ll", "least", divergent=blocks.divergent)
        offset, counter = emitter.frame.lane_pc, f"call i32 @{least}(ptr %counter.at)"
    return function_of(
        "parts.ll",
        "thread",
        attributes=emitter.host.attributes,
        count=len(functions),
        starts=", ".join(f"i32 {function.start}" for function in functions),
        parts=", ".join(f"ptr @thread_{number}" for number in range(len(functions))),
        counter_offset=offset,
        counter=counter,
        places=(1 << emitter.program.frame_bits) - 1 if emitter.frame.calls else -1,
    )


def _write_blocks(emitter: Emitter, control: Control, blocks: Blocks, block_range: range) -> None:
    code, numbers, order = emitter.code, blocks.numbers, _order(emitter, blocks, block_range)
    instructions = [emitter.program.instructions[at] for at in order]
    index, is_terminated = 0, True
    while index < len(order):
        at, inst = order[index], instructions[index]
        if at in numbers:
            if not is_terminated:
                control.go(at - 1, at)
            emitter.queue, emitter.loop = None, loop_at(emitter.program, blocks.at(at))
            code.begin(control.block(at))
            emitter.surfaces.clear()
            # Threads come to a barrier again while they wait: it is counted when they pass it.
            if INSTRUCTIONS[inst.name].barrier not in ("wait", "both"):
                control.count(at)
        terminator = CONTROL.get(inst.name)
        is_terminated = terminator is not None
        if terminator is not None:
            _check(emitter, [(at, inst)])
            terminator(control, inst, at)
            index += 1
            continue
        repeat = emitter.promotion.repeats.get(at)
        if repeat:
            emitter.repeat(repeat, partial(_write_once, emitter, repeat.first))
            last = index + repeat.period * repeat.count
            for past_inst in instructions[index:last]:
                emitter.forget(past_inst)
            index = last
            continue
        run, emit, fused_rule = [(at, inst)], None, RUNS.get(inst.name)
        if fused_rule:
            run_limit, count, emit = fused_rule
            past, run_end = index + 1, min(index + run_limit, len(order))
            while past < run_end and order[past] not in numbers and instructions[past].name == inst.name:
                past += 1
            past = index + max(1, count(emitter, instructions[index:past]))
            run = list(zip(order[index:past], instructions[index:past]))
        _check(emitter, run)
        for number, _ in run:
            emitter.note_numbers(number)
        if emit and len(run) > 1:
            emit(emitter, run)
        else:
            _write(emitter, inst, at)
        for _, inst in run:
            emitter.forget(inst)
        index += len(run)
    if not is_terminated:
        control.go(block_range.stop - 1, block_range.stop)


def _write_once(emitter: Emitter, numbers: range) -> None:
    """Write instructions that do not end a block."""
    for at in numbers:
        emitter.note_numbers(at)
        _write(emitter, emitter.program.instructions[at], at)


def _order(emitter: Emitter, blocks: Blocks, block_range: range) -> list[int]:
    """The order in which instructions are written: loads of panels between products come before these, which are then
    one run. Nothing sees the difference: the products access registers only, and the loads do not access them."""
    matrices, target = emitter.matrices, emitter.layout.target
    if matrices is None or not matrices.panel_bytes or emitter.frame.watch:
        return list(block_range)
    order: list[int] = []
    run: list[int] = []
    touched_variables: dict[
        Variable, bool
    ] = {}  # the variables that the products of `run` access, and whether one writes them
    for at in block_range:
        inst = emitter.program.instructions[at]
        follows = at not in blocks.numbers
        if follows and inst.name == "dpas":
            run.append(at)
            for access in accesses(inst, target):
                touched_variables[access.var] = access.writes or touched_variables.get(access.var, False)
            continue
        inst_accesses = accesses(inst, target) if follows and matrices.shares(inst) else None
        if inst_accesses is None or any(
            a.var in touched_variables and (a.writes or touched_variables[a.var]) for a in inst_accesses
        ):
            order += run
            run, touched_variables = [], {}
        order.append(at)
    return order + run


def _check(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> None:
    """Write the checks and records of instructions that come next."""
    for at, inst in run:
        emitter.require_in_bounds(inst, at)
        if emitter.frame.watch:
            emit_checks(emitter, inst, at)
        if emitter.frame.logs:
            _log(emitter, inst, at)


def _log(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Count the lanes in which an instruction acts, and record the places that a message accesses."""
    code, acting = emitter.code, emitter.acting(inst)
    if acting is not None:
        code.count(
            code.at(emitter.context("lanes", PTR), 8 * at), code.resize(code.intrinsic("ctpop", acting), 64, False)
        )
    if not INSTRUCTIONS[inst.name].is_message:
        return
    bits = code.const((1 << inst.exec_size) - 1, "i32") if acting is None else acting
    block = "block" in inst.values
    operands = surface(emitter, inst) if block else [addresses(emitter, inst)]
    record_pointer = emit_record(
        emitter.code, at, sum(max(operand.lanes, 1) for operand in operands), code.resize(bits, 64, False)
    )
    for number, operand in enumerate(operands):
        code.store(code.resize(operand, 64, True), code.at(record_pointer, 8 * number), 8)


def _write(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Write one instruction that does not end a block."""
    if emitter.matrices and emitter.matrices.panel_bytes and _outdates_panels(emitter.matrices, inst):
        forget = emitter.template("packed_operand_cache.ll", "forget_panels", **WORDS)
        emitter.code.call(forget, emitter.ctx, emitter.code.const(-1, "i64"))
    rule = RULES.get(inst.name)
    if by_semantics(inst):
        emitter.call_semantics(at)
    elif rounds_directed(inst):
        emit_directed(emitter, inst)
    elif rule:
        rule(emitter, inst, at)
    elif isinstance(inst["dst"], Flag) and not INSTRUCTIONS[inst.name].compares:
        emit_flag_logic(emitter, inst)
    else:
        emit_arithmetic(emitter, inst, at)


def _outdates_panels(matrices: Matrices, inst: Instruction) -> bool:
    """Whether panels must not be found after an instruction that loads from memory, changes it, or orders accesses."""
    spec = INSTRUCTIONS[inst.name]
    if not spec.is_message and spec.category != "sync":
        return False
    # Stores of blocks look themselves which panels these are.
    if "block" in inst.values and spec.category == "store":
        return False
    prefetches = "block" in inst.values and inst["dst"].var is None
    return not prefetches and not matrices.shares(inst)


# Blocks of a thread's function: branches, divergence and convergence of lanes, and exits.
#
# Without `goto` a thread has one program counter, and jumps are branches. With `goto` each lane has its own program
# counter, in the thread's block. The lanes with the lowest counter run until they reach other lanes: `stop` is the
# lowest counter ahead of them.

_LONG = 16
"""The approximate cost of a 2D block message, or a product of matrices of bf; that of other instructions is 1."""

_LONGEST = 500
"""The approximate number of instructions of a function."""

_SCHEDULE = "schedule"

_PARK = "park"


_PIECE = 64
"""The number of instructions of a function that has a piece of a long block."""


def block_starts(program: Program) -> list[int]:
    """Indices of the instructions that begin blocks; long blocks are split."""
    return _starts(program)[0]


def _starts(program: Program) -> tuple[list[int], set[int]]:
    """Indices of the instructions that begin blocks, and those of blocks that begin a function."""
    length = len(program.instructions)
    starts = {0}
    for i, inst in enumerate(program.instructions):
        spec = INSTRUCTIONS[inst.name]
        if spec.decides:
            starts.add(i + 1)
        if spec.is_label or spec.barrier:
            starts.add(i)
    ordered = sorted(s for s in starts if s < length)
    function_starts: set[int] = set()
    for start, block_end in zip(ordered, [*ordered[1:], length]):
        piece_starts = _pieces(start, block_end, _LONGEST)
        starts.update(piece_starts)
        if len(piece_starts) > 1:
            for piece_start, piece_end in zip(piece_starts, [*piece_starts[1:], block_end]):
                # Products that follow each other are queued in one block.
                if not any(
                    INSTRUCTIONS[i.name].category == "dpas" for i in program.instructions[piece_start:piece_end]
                ):
                    function_starts.update(_pieces(piece_start, piece_end, _PIECE), [piece_end])
    return sorted(s for s in starts | function_starts if s < length), function_starts


def _pieces(start: int, block_end: int, longest: int) -> list[int]:
    """The beginnings of pieces of similar length of a block, each of at most `longest` instructions."""
    count = -(-(block_end - start) // longest)
    return [start + (block_end - start) * n // count for n in range(count)]


def parts_of(starts: Sequence[int], length: int, function_starts: Collection[int] = ()) -> list[range]:
    """The instructions of each function of a program, in whole blocks.

    LLVM's compile time grows faster than linearly with the length of a function: 500 moves of bytes in a block take six
    times as long as in eight functions.

    Args:
        function_starts: blocks that begin a function.
    """
    firsts = [0]
    for start, block_end in zip(starts, [*starts[1:], length]):
        if (block_end - firsts[-1] > _LONGEST or start in function_starts) and start > firsts[-1]:
            firsts.append(start)
    return [range(first_block, block_end) for first_block, block_end in zip(firsts, [*firsts[1:], length])]


def loop_at(program: Program, block: range) -> range | None:
    """A block that ends with a jump to itself, or to the block of a label directly before it."""
    last_inst = program.instructions[block.stop - 1]
    spec = INSTRUCTIONS[last_inst.name]
    if not spec.jumps or spec.diverges(last_inst):
        return None
    to = program.labels[last_inst["label"]]
    return block if to == block.start or to + 1 == block.start else None


def _work(inst: Instruction) -> int:
    if inst.name == "dpas" and PRECISIONS[inst["W"]].is_float:
        return _LONG * ops_per_channel(inst["W"], inst["A"]) // ops_per_channel("bf", "bf")
    return _LONG if INSTRUCTIONS[inst.name].category == "dpas" or "block" in inst.values else 1


class Blocks:
    """A program's blocks, and the functions that contain them.

    Attributes:
        starts: indices of instructions that begin blocks, in order.
        numbers: the number of the block that begins at each of these instructions.
        parts: the instructions of each function.
        labels: index of the instruction of each label.
        divergent: the lanes in which threads can diverge, as bits. Other lanes run whenever the thread runs.
    """

    def __init__(self, program: Program) -> None:
        """Find the blocks and parts of a program."""
        self.starts, function_starts = _starts(program)
        self.numbers = {start: number for number, start in enumerate(self.starts)}
        self.parts = parts_of(self.starts, len(program.instructions), function_starts)
        self.labels: Mapping[str, int] = program.labels
        lanes = divergent_lanes(program)
        self.divergent = (1 << lanes.stop) - (1 << lanes.start)
        self._ends = [*self.starts[1:], len(program.instructions)]

    def at(self, start: int) -> range:
        """The block that an instruction begins."""
        return range(start, self._ends[self.numbers[start]])


class Control:
    """The blocks of a function: a whole program or a part of one.

    Attributes:
        emitter: the writer of the function's code.
        labels: index of the instruction of each label.
        blocks: the program's blocks.
    """

    def __init__(self, emitter: Emitter, divergent: bool, blocks: Blocks, block_range: range) -> None:
        """Begin a function.

        Args:
            divergent: whether each lane has its own program counter.
            block_range: the function's instructions.
        """
        self.emitter, self.blocks = emitter, blocks
        self.labels, self._divergent = blocks.labels, blocks.divergent
        self._part, self._whole = block_range, len(blocks.parts) == 1
        starts = blocks.starts
        self._starts = starts[bisect_left(starts, block_range.start) : bisect_left(starts, block_range.stop)]
        code = emitter.code
        self._stop = code.alloca(4, 4)
        # In a function, a program counter is the index of an instruction plus this negative depth.
        self._depth = code.alloca(4, 4) if emitter.frame.calls else None
        self.frame_bits = emitter.program.frame_bits if emitter.frame.calls else 0
        if divergent:
            emitter.active = code.alloca(4, 4)

    def enter(self) -> None:
        """Write the entry of the function: a branch to the thread's program counter."""
        code, emitter = self.emitter.code, self.emitter
        if emitter.active is None:
            pc = code.fetch(emitter.thread, emitter.frame.pc, "i32")
            code.switch(pc, self.block(self._part.start), [(s, self.block(s)) for s in self._starts[1:]])
            return
        code.br(_SCHEDULE)
        code.begin(_SCHEDULE)
        schedule = emitter.template("lanes.ll", "schedule", divergent=self._divergent)
        schedule_result = code.call(schedule, self._counters(), result="{ i32, i32, i32 }")
        first_pc, stop, enabled = (code.op(f"extractvalue {schedule_result}, {n}", "i32") for n in range(3))
        if self._depth:
            all_ended, mask = code.icmp("eq", first_pc, ENDED_PC), (1 << self.frame_bits) - 1
            depth = code.select(all_ended, code.const(0, "i32"), code.sub(first_pc, code.mask(first_pc, mask)))
            code.store(depth, self._depth, 4)
            first_pc, stop = code.sub(first_pc, depth), code.sub(stop, depth)
        code.store(stop, self._stop, 4)
        code.store(enabled, emitter.active, 4)
        done_label = code.label()
        code.switch(first_pc, done_label, [(s, self.block(s)) for s in self._starts])
        code.begin(done_label)
        status = code.const(Status.ENDED, "i32")
        if not self._whole:
            status = code.select(code.icmp("eq", first_pc, ENDED_PC), status, code.const(Status.MOVED, "i32"))
        code.ret(status)
        (to,) = code.begin_with(_PARK, "i32")
        self._move(self._enabled(), to)
        code.br(_SCHEDULE)

    def count(self, at: int) -> None:
        """Count an execution of the block that an instruction begins."""
        emitter, code, one_i64 = self.emitter, self.emitter.code, self.emitter.code.const(1, "i64")
        code.count(code.at(emitter.context("executed", PTR), 8 * self.blocks.numbers[at]), one_i64)
        if emitter.frame.logs:
            length = code.const(len(self.blocks.at(at)), "i64")
            code.count(code.at(emitter.thread, emitter.frame.clock), length)
            path_pointer = code.at(emitter.ctx, context_offset("path"))
            with code.when(code.icmp("ne", code.load(path_pointer, "i64", 8), 0)):
                code.count(path_pointer, code.const(-1, "i64"))
                emit_record(code, len(emitter.program.instructions), 0, code.const(at, "i64"))

    @staticmethod
    def block(index: int) -> str:
        """The label of the block that an instruction begins."""
        return f"i{index}"

    def _counters(self) -> LLVMValue:
        return self.emitter.code.at(self.emitter.thread, self.emitter.frame.lane_pc)

    def _enabled(self) -> LLVMValue:
        assert self.emitter.active
        return self.emitter.code.load(self.emitter.active, "i32", 4)

    def _move(self, lanes: LLVMValue, to: LLVMValue) -> None:
        """Set the program counters of lanes, which are bits of an i32, to an instruction or to `ENDED_PC`."""
        self._set(self._counters(), lanes, self._counter(to))

    def _set(self, counters: LLVMValue, lanes: LLVMValue, to: LLVMValue) -> None:
        self.emitter.code.call(self.emitter.template("lanes.ll", "move"), counters, lanes, to)

    def _counter(self, to: LLVMValue) -> LLVMValue:
        """The program counter of lanes at an instruction."""
        code = self.emitter.code
        if not self._depth:
            return to
        pc_in_function = code.add(to, code.load(self._depth, "i32", 4))
        return code.select(code.icmp("eq", to, ENDED_PC), to, pc_in_function)

    def go(self, at: int, to: int) -> None:
        """Continue from one instruction at another."""
        code, emitter = self.emitter.code, self.emitter
        if to > at:
            emitter.flush(emitter.queue)
        if to >= len(emitter.program.instructions):
            self.end()
            return
        if to <= at:
            self._go_back(at, to)
        elif emitter.active is None:
            self._jump(to)
        elif to not in self._part:
            code.br(_PARK, code.const(to, "i32"))
        else:
            only_lanes = code.icmp("sgt", code.load(self._stop, "i32", 4), to)
            code.cond_br(only_lanes, self.block(to), _PARK, code.const(to, "i32"))

    def _jump(self, to: int) -> None:
        """Continue at an instruction, also if lanes wait there."""
        code = self.emitter.code
        if to in self._part:
            code.br(self.block(to))
        elif self.emitter.active is None:
            self.emitter.leave(to, Status.MOVED)
        else:
            code.br(_PARK, code.const(to, "i32"))

    def _go_back(self, at: int, to: int) -> None:
        """Jump back; after a number of iterations other threads run first, since the loop may wait for them."""
        code = self.emitter.code
        work = sum(map(_work, self.emitter.program.instructions[to : at + 1]))
        if self.emitter.queue and self.emitter.matrices:
            # Other threads run only when the queue is empty.
            steps = self.emitter.matrices.steps
            work = SLICE // (max(round(SLICE / work / steps), 1) * steps)
        budget_pointer = code.at(self.emitter.ctx, context_offset("budget"))
        budget = code.sub(code.load(budget_pointer, "i64", 8), work)
        code.store(budget, budget_pointer, 8)
        yield_label = code.label()
        code.go_on_if(code.icmp("sgt", budget, 0), yield_label)
        self._jump(to)
        code.begin(yield_label)
        self.leave(to, Status.YIELDED)

    def diverge(self, at: int, inst: Instruction, target: int) -> None:
        """Send the enabled lanes that the guard selects to the target, and the other lanes to the next instruction."""
        code, emitter = self.emitter.code, self.emitter
        active = self._enabled()
        lane_mask = (1 << inst.exec_size) - 1 << inst.first_lane
        acting = emitter.acting(inst)
        taken_lanes = code.const(lane_mask, "i32") if acting is None else code.shl(acting, inst.first_lane)
        taken_lanes = code.and_(taken_lanes, active)
        parting = code.mask(active, self._divergent)
        some_label, split_label = code.label(), code.label()
        code.go_on_if(code.icmp("eq", taken_lanes, 0), some_label)
        self.go(at, at + 1)
        code.begin(some_label)
        code.go_on_if(code.icmp("eq", code.mask(taken_lanes, self._divergent), parting), split_label)
        self.go(at, target)
        code.begin(split_label)
        self._move(active, code.const(at + 1, "i32"))
        self._move(taken_lanes, code.const(target, "i32"))
        code.br(_SCHEDULE)

    def _taken(self, inst: Instruction) -> LLVMValue:
        """The enabled lanes that an instruction of control flow chooses; with execution size 1 all or none."""
        code, emitter = self.emitter.code, self.emitter
        active, acting = self._enabled(), emitter.acting(inst)
        if inst.exec_size > 1:
            lane_mask = code.const((1 << inst.exec_size) - 1 << inst.first_lane, "i32")
            return code.and_(lane_mask if acting is None else code.shl(acting, inst.first_lane), active)
        if inst.guard is None:
            return active
        is_taken = code.icmp("ne", code.mask(emitter.chosen(inst), 1), 0)
        return code.select(is_taken, active, code.const(0, "i32"))

    def _levels(self) -> LLVMValue:
        """The number of calls that have not returned, i64."""
        code = self.emitter.code
        assert self._depth
        return code.resize(
            code.ashr(code.sub(code.const(0, "i32"), code.load(self._depth, "i32", 4)), self.frame_bits), 64, False
        )

    def call(self, at: int, inst: Instruction, targets: LLVMValue) -> None:
        """Send the enabled lanes that the guard selects to functions, and the other lanes to the next instruction.

        Args:
            targets: where the functions begin, i32 or i32[32]; negative if nowhere.
        """
        code, emitter = self.emitter.code, self.emitter
        calling_lanes, frame = self._taken(inst), emitter.frame
        some = code.label()
        code.go_on_if(code.icmp("ne", code.mask(calling_lanes, self._divergent), 0), some)
        levels = self._levels()
        emitter.require(code.icmp("ult", levels, MAX_CALLS), at)
        if targets.lanes:
            invalid_lanes = code.and_(code.mask_to_bits(code.icmp("slt", targets, 0)), calling_lanes)
            emitter.require(code.icmp("eq", invalid_lanes, 0), at)
        row = code.at(code.at(emitter.thread, frame.stack), code.mul(levels, 4 * LANES))
        self._set(row, calling_lanes, self._counter(code.const(at + 1, "i32")))
        if inst.name != "call":
            saved_registers = self._caller(levels)
            code.call(
                "llvm.memcpy.p0.p0.i64",
                saved_registers,
                emitter.thread,
                code.const(frame.pc, "i64"),
                code.const(0, "i1"),
            )
        self._move(self._enabled(), code.const(at + 1, "i32"))
        assert self._depth
        callee_depth = code.sub(code.load(self._depth, "i32", 4), 1 << self.frame_bits)
        if targets.lanes:
            lane_targets = code.alloca(4 * LANES, 64)
            code.store(code.add(targets, code.splat(callee_depth, LANES)), lane_targets, 64)
            code.call(emitter.template("lanes.ll", "restore"), self._counters(), calling_lanes, lane_targets)
        else:
            self._set(self._counters(), calling_lanes, code.add(targets, callee_depth))
        code.br(_SCHEDULE)
        code.begin(some)
        self.go(at, at + 1)

    def _caller(self, levels: LLVMValue) -> LLVMValue:
        """Return the pointer to the saved registers and predicates of a function's caller."""
        code, frame = self.emitter.code, self.emitter.frame
        return code.at(code.at(self.emitter.thread, frame.callers), code.mul(levels, frame.caller_bytes))

    def give_back(self, inst: Instruction) -> None:
        """Return the enabled lanes to their callers; with the last lane of a function the caller's registers return."""
        code, emitter = self.emitter.code, self.emitter
        frame, layout = emitter.frame, emitter.layout
        levels = code.sub(self._levels(), 1)
        row = code.at(code.at(emitter.thread, frame.stack), code.mul(levels, 4 * LANES))
        code.call(emitter.template("lanes.ll", "restore"), self._counters(), self._enabled(), row)
        if inst.name == "fret":
            assert self._depth
            least = code.call(
                emitter.template("lanes.ll", "least", divergent=self._divergent), self._counters(), result="i32"
            )
            caller_depth = code.add(code.load(self._depth, "i32", 4), 1 << self.frame_bits)
            with code.when(code.op(f"icmp sge {least}, {caller_depth.name}", "i1")):
                saved_registers, start = self._caller(levels), 0
                state_variables = [STATE[name] for name in RETURNED if STATE[name] in layout.allocation.offsets]
                spans = sorted((layout.offset(var), layout.offset(var) + var.bytes) for var in state_variables)
                for span_start, span_end in [*spans, (frame.pc, frame.pc)]:
                    size, to = code.const(span_start - start, "i64"), code.at(emitter.thread, start)
                    code.call("llvm.memcpy.p0.p0.i64", to, code.at(saved_registers, start), size, code.const(0, "i1"))
                    start = span_end
        code.br(_SCHEDULE)

    def end(self) -> None:
        """End the enabled lanes."""
        code = self.emitter.code
        if self.emitter.active is None:
            self.emitter.release_tiles()
            code.ret(code.const(Status.ENDED, "i32"))
            return
        code.br(_PARK, code.const(ENDED_PC, "i32"))

    def leave(self, at: int, status: Status) -> None:
        """Return; the next call continues at an instruction."""
        if self.emitter.active is not None:
            self._move(self._enabled(), self.emitter.code.const(at, "i32"))
        self.emitter.leave(at, status)
