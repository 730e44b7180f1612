"""The functions that a program becomes: its blocks, and the control flow between them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from xegpu_py.engines.jit.checks import emit_checks, emit_record
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.ir_text import PTR, Code, Value
from xegpu_py.engines.jit.llvm import function_of, functions_of
from xegpu_py.engines.jit.native_launch_struct import ENDED_PC, SLICE, Frame, Status, context_offset
from xegpu_py.engines.jit.operands import Emitter, RegisterPromotion, by_semantics, freedom_of, rounds_directed
from xegpu_py.engines.jit.packed_operand_cache import WORDS, found_matrices
from xegpu_py.engines.jit.rules import CONTROL, RULES, RUNS
from xegpu_py.engines.jit.rules.alu import emit_arithmetic, emit_directed, emit_flag_logic
from xegpu_py.engines.jit.rules.block2d import surface
from xegpu_py.engines.jit.rules.memory import addresses
from xegpu_py.engines.operands import MAX_CALLS, RETURNED, Layout
from xegpu_py.numerics.dpas import Model, ops_per_channel
from xegpu_py.numerics.formats import PRECISIONS
from xegpu_py.visa.dataflow import accesses, divergent_lanes, has_calls, liveness_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import HEADER, STATE, Flag, Instruction, Program, Variable
from xegpu_py.visa.spec import LANES

if TYPE_CHECKING:
    from xegpu_py.engines.jit.packed_operand_cache import Matrices


# A program as functions of LLVM IR. The function `thread` runs one hardware thread.


def frame_of(program: Program, layout: Layout) -> Frame:
    """The layout of a thread's state."""
    size = max(layout.allocation.bytes, layout.target.grf_bytes)
    barriers = 1 + int(program.attributes.get("NBarrierCnt", 0))
    predicates = max(len(program.predicates), 1)
    return Frame(-(-size // 64) * 64, predicates, barriers, layout.watch, layout.races, layout.logs, has_calls(program))


def given_bytes(program: Program, layout: Layout, keep: bool) -> int:
    """Bytes of the register file, from the first on, that a thread may read before it has written them.

    These are the header and the inputs, or all registers if they are to be looked at, or if the program may read a
    variable that it has not written.
    """
    if keep:
        return frame_of(program, layout).registers
    given = {item.var.root[0] for item in program.inputs}
    given |= {var for var in liveness_of(program, layout.target).entering(0) if isinstance(var, Variable)}
    return max([layout.target.grf_bytes, *(layout.offset(var) + var.bytes for var in given - {*HEADER.values()})])


def matrices_of(
    program: Program, layout: Layout, model: Model, host: Host, divergent: bool, keep: bool
) -> Matrices | None:
    """The matrices that are loaded as dpas multiplies them; see `functions_of_program` for the arguments."""
    flushes = any(inst.flushed for inst in program.instructions if inst.name == "dpas")
    if keep or divergent or layout.logs or model != "fma" or flushes or not _multiplies(program):
        return None

    byte_bits = 0 if host.dots_bytes else 16 if host.dots_words else 32
    return found_matrices(program, layout.target, tuple(block_starts(program)), byte_bits)


def functions_of_program(
    program: Program, layout: Layout, model: Model, host: Host, divergent: bool, keep: bool
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
    within = not (divergent or layout.watch)
    freedom = RegisterPromotion() if keep else freedom_of(program, layout.target, blocks.starts, within_blocks=within)
    functions = [] if host.converts_halves else functions_of("halves.ll")
    helpers: dict[str, str] = {}
    if layout.races:
        functions += [*functions_of("race_clocks.ll"), *functions_of("races.ll")]
        helpers["find"] = function_of("addresses.ll", "find", attributes=host.attributes)
    if layout.logs:
        functions += functions_of("log.ll", clock=frame.clock)
    for number, part in enumerate(blocks.parts):
        code = _function("thread" if len(blocks.parts) == 1 else f"thread_{number}", host)
        emitter = Emitter(
            program, layout, frame, model, code, host, helpers, live=live, matrices=matrices, freedom=freedom
        )
        control = Control(emitter, divergent, blocks, part)
        control.enter()
        _write_blocks(emitter, control, blocks, part)
        functions.append(emitter.finish())
    if len(blocks.parts) > 1:
        functions.append(_dispatcher(emitter, blocks))
    return [*functions, *helpers.values()]


def _multiplies(program: Program) -> bool:
    return any(inst.name == "dpas" for inst in program.instructions)


def _function(name: str, host: Host) -> Code:
    """A function that takes the context and the thread's block, and gives a status."""
    return host.function(name, [PTR, f"{PTR} noalias align 64"], "i32", alignment=64)


def _dispatcher(emitter: Emitter, blocks: Blocks) -> str:
    """The function that calls the part of a thread's function that has the program counter, until a part stops."""
    parts, offset, counter = blocks.parts, emitter.frame.pc, "load i32, ptr %counter.at"
    if emitter.active is not None:
        least = emitter.template("lanes.ll", "least", divergent=blocks.divergent)
        offset, counter = emitter.frame.lane_pc, f"call i32 @{least}(ptr %counter.at)"
    return function_of(
        "parts.ll",
        "thread",
        attributes=emitter.host.attributes,
        count=len(parts),
        starts=", ".join(f"i32 {part.start}" for part in parts),
        parts=", ".join(f"ptr @thread_{number}" for number in range(len(parts))),
        counter_offset=offset,
        counter=counter,
        places=(1 << emitter.program.frame_bits) - 1 if emitter.frame.calls else -1,
    )


def _write_blocks(emitter: Emitter, control: Control, blocks: Blocks, part: range) -> None:
    code, numbers, order = emitter.code, blocks.numbers, _order(emitter, blocks, part)
    instructions = [emitter.program.instructions[at] for at in order]
    place, ended = 0, True
    while place < len(order):
        at, inst = order[place], instructions[place]
        if at in numbers:
            if not ended:
                control.go(at - 1, at)
            emitter.queue, emitter.loop = None, loop_at(emitter.program, blocks.at(at))
            code.begin(control.block(at))
            # Threads come to a barrier again while they wait: it is counted when they pass it.
            if INSTRUCTIONS[inst.name].barrier not in ("wait", "both"):
                control.count(at)
        end = CONTROL.get(inst.name)
        ended = end is not None
        if end is not None:
            _check(emitter, [(at, inst)])
            end(control, inst, at)
            place += 1
            continue
        run, emit, together = [(at, inst)], None, RUNS.get(inst.name)
        if together:
            most, count, emit = together
            past, last = place + 1, min(place + most, len(order))
            while past < last and order[past] not in numbers and instructions[past].name == inst.name:
                past += 1
            past = place + max(1, count(emitter, instructions[place:past]))
            run = list(zip(order[place:past], instructions[place:past]))
        _check(emitter, run)
        if emit and len(run) > 1:
            emit(emitter, run)
        else:
            _write(emitter, inst, at)
        place += len(run)
    if not ended:
        control.go(part.stop - 1, part.stop)


def _order(emitter: Emitter, blocks: Blocks, part: range) -> list[int]:
    """The order in which instructions are written: loads of panels between products come before these, which are then
    one run. Nothing sees the difference: the products access registers only, and the loads do not access them."""
    matrices, target = emitter.matrices, emitter.layout.target
    if matrices is None or not matrices.panel_bytes or emitter.frame.watch:
        return list(part)
    order: list[int] = []
    run: list[int] = []
    touched: dict[Variable, bool] = {}  # the variables that the products of `run` access, and whether one writes them
    for at in part:
        inst = emitter.program.instructions[at]
        follows = at not in blocks.numbers
        if follows and inst.name == "dpas":
            run.append(at)
            for access in accesses(inst, target):
                touched[access.var] = access.writes or touched.get(access.var, False)
            continue
        own = accesses(inst, target) if follows and matrices.shares(inst) else None
        if own is None or any(a.var in touched and (a.writes or touched[a.var]) for a in own):
            order += run
            run, touched = [], {}
        order.append(at)
    return order + run


def _check(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> None:
    """Write the checks and records of instructions that come next."""
    for at, inst in run:
        emitter.require_places(inst, at)
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
    place = emit_record(
        emitter.code, at, sum(max(operand.lanes, 1) for operand in operands), code.resize(bits, 64, False)
    )
    for number, operand in enumerate(operands):
        code.store(code.resize(operand, 64, True), code.at(place, 8 * number), 8)


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
    alone: set[int] = set()
    for start, end in zip(ordered, [*ordered[1:], length]):
        pieces = _pieces(start, end, _LONGEST)
        starts.update(pieces)
        if len(pieces) > 1:
            for first, last in zip(pieces, [*pieces[1:], end]):
                # Products that follow each other are queued in one block.
                if not any(INSTRUCTIONS[i.name].category == "dpas" for i in program.instructions[first:last]):
                    alone.update(_pieces(first, last, _PIECE), [last])
    return sorted(s for s in starts | alone if s < length), alone


def _pieces(start: int, end: int, longest: int) -> list[int]:
    """The beginnings of pieces of similar length of a block, each of at most `longest` instructions."""
    count = -(-(end - start) // longest)
    return [start + (end - start) * n // count for n in range(count)]


def parts_of(starts: Sequence[int], length: int, alone: Collection[int] = ()) -> list[range]:
    """The instructions of each function of a program, in whole blocks.

    LLVM's compile time grows faster than linearly with the length of a function: 500 moves of bytes in a block take six
    times as long as in eight functions.

    Args:
        alone: blocks that begin a function.
    """
    firsts = [0]
    for start, end in zip(starts, [*starts[1:], length]):
        if (end - firsts[-1] > _LONGEST or start in alone) and start > firsts[-1]:
            firsts.append(start)
    return [range(first, end) for first, end in zip(firsts, [*firsts[1:], length])]


def loop_at(program: Program, block: range) -> range | None:
    """A block that ends with a jump to itself, or to the block of a label directly before it."""
    last = program.instructions[block.stop - 1]
    spec = INSTRUCTIONS[last.name]
    if not spec.jumps or spec.diverges(last):
        return None
    to = program.labels[last["label"]]
    return block if to == block.start or to + 1 == block.start else None


def _work(inst: Instruction) -> int:
    """The approximate cost of an instruction."""
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
        self.starts, alone = _starts(program)
        self.numbers = {start: number for number, start in enumerate(self.starts)}
        self.parts = parts_of(self.starts, len(program.instructions), alone)
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

    def __init__(self, emitter: Emitter, divergent: bool, blocks: Blocks, part: range) -> None:
        """Begin a function.

        Args:
            divergent: whether each lane has its own program counter.
            part: the function's instructions.
        """
        self.emitter, self.blocks = emitter, blocks
        self.labels, self._divergent = blocks.labels, blocks.divergent
        self._part, self._whole = part, len(blocks.parts) == 1
        starts = blocks.starts
        self._starts = starts[bisect_left(starts, part.start) : bisect_left(starts, part.stop)]
        code = emitter.code
        self._stop = code.alloca(4, 4)
        # In a function, what program counters have more than the indices of instructions: a negative number.
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
        found = code.call(schedule, self._counters(), result="{ i32, i32, i32 }")
        first, stop, enabled = (code.op(f"extractvalue {found}, {n}", "i32") for n in range(3))
        if self._depth:
            ended, mask = code.icmp("eq", first, ENDED_PC), (1 << self.frame_bits) - 1
            depth = code.select(ended, code.const(0, "i32"), code.sub(first, code.mask(first, mask)))
            code.store(depth, self._depth, 4)
            first, stop = code.sub(first, depth), code.sub(stop, depth)
        code.store(stop, self._stop, 4)
        code.store(enabled, emitter.active, 4)
        done = code.label()
        code.switch(first, done, [(s, self.block(s)) for s in self._starts])
        code.begin(done)
        status = code.const(Status.ENDED, "i32")
        if not self._whole:
            status = code.select(code.icmp("eq", first, ENDED_PC), status, code.const(Status.MOVED, "i32"))
        code.ret(status)
        (to,) = code.begin_with(_PARK, "i32")
        self._move(self._enabled(), to)
        code.br(_SCHEDULE)

    def count(self, at: int) -> None:
        """Count an execution of the block that an instruction begins."""
        emitter, code, one = self.emitter, self.emitter.code, self.emitter.code.const(1, "i64")
        code.count(code.at(emitter.context("executed", PTR), 8 * self.blocks.numbers[at]), one)
        if emitter.frame.logs:
            length = code.const(len(self.blocks.at(at)), "i64")
            code.count(code.at(emitter.thread, emitter.frame.clock), length)
            left = code.at(emitter.ctx, context_offset("path"))
            with code.when(code.icmp("ne", code.load(left, "i64", 8), 0)):
                code.count(left, code.const(-1, "i64"))
                emit_record(code, len(emitter.program.instructions), 0, code.const(at, "i64"))

    @staticmethod
    def block(index: int) -> str:
        """The label of the block that an instruction begins."""
        return f"i{index}"

    def _counters(self) -> Value:
        return self.emitter.code.at(self.emitter.thread, self.emitter.frame.lane_pc)

    def _enabled(self) -> Value:
        assert self.emitter.active
        return self.emitter.code.load(self.emitter.active, "i32", 4)

    def _move(self, lanes: Value, to: Value) -> None:
        """Set the program counters of lanes, which are bits of an i32, to an instruction or to `ENDED_PC`."""
        self._set(self._counters(), lanes, self._counter(to))

    def _set(self, counters: Value, lanes: Value, to: Value) -> None:
        self.emitter.code.call(self.emitter.template("lanes.ll", "move"), counters, lanes, to)

    def _counter(self, to: Value) -> Value:
        """The program counter of lanes at an instruction."""
        code = self.emitter.code
        if not self._depth:
            return to
        within = code.add(to, code.load(self._depth, "i32", 4))
        return code.select(code.icmp("eq", to, ENDED_PC), to, within)

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
            alone = code.icmp("sgt", code.load(self._stop, "i32", 4), to)
            code.cond_br(alone, self.block(to), _PARK, code.const(to, "i32"))

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
        place = code.at(self.emitter.ctx, context_offset("budget"))
        left = code.sub(code.load(place, "i64", 8), work)
        code.store(left, place, 8)
        others = code.label()
        code.go_on_if(code.icmp("sgt", left, 0), others)
        self._jump(to)
        code.begin(others)
        self.leave(to, Status.YIELDED)

    def diverge(self, at: int, inst: Instruction, target: int) -> None:
        """Send the enabled lanes that the guard selects to the target, and the other lanes to the next instruction."""
        code, emitter = self.emitter.code, self.emitter
        active = self._enabled()
        own = (1 << inst.exec_size) - 1 << inst.first_lane
        acting = emitter.acting(inst)
        taken = code.const(own, "i32") if acting is None else code.shl(acting, inst.first_lane)
        taken = code.and_(taken, active)
        parting = code.mask(active, self._divergent)
        some, split = code.label(), code.label()
        code.go_on_if(code.icmp("eq", taken, 0), some)
        self.go(at, at + 1)
        code.begin(some)
        code.go_on_if(code.icmp("eq", code.mask(taken, self._divergent), parting), split)
        self.go(at, target)
        code.begin(split)
        self._move(active, code.const(at + 1, "i32"))
        self._move(taken, code.const(target, "i32"))
        code.br(_SCHEDULE)

    def _taken(self, inst: Instruction) -> Value:
        """The enabled lanes that an instruction of control flow chooses; with execution size 1 all or none."""
        code, emitter = self.emitter.code, self.emitter
        active, acting = self._enabled(), emitter.acting(inst)
        if inst.exec_size > 1:
            own = code.const((1 << inst.exec_size) - 1 << inst.first_lane, "i32")
            return code.and_(own if acting is None else code.shl(acting, inst.first_lane), active)
        if inst.guard is None:
            return active
        chosen = code.icmp("ne", code.mask(emitter.chosen(inst), 1), 0)
        return code.select(chosen, active, code.const(0, "i32"))

    def _levels(self) -> Value:
        """The number of calls that have not returned, i64."""
        code = self.emitter.code
        assert self._depth
        return code.resize(
            code.ashr(code.sub(code.const(0, "i32"), code.load(self._depth, "i32", 4)), self.frame_bits), 64, False
        )

    def call(self, at: int, inst: Instruction, targets: Value) -> None:
        """Send the enabled lanes that the guard selects to functions, and the other lanes to the next instruction.

        Args:
            targets: where the functions begin, i32 or i32[32]; negative if nowhere.
        """
        code, emitter = self.emitter.code, self.emitter
        taken, frame = self._taken(inst), emitter.frame
        some = code.label()
        code.go_on_if(code.icmp("ne", code.mask(taken, self._divergent), 0), some)
        levels = self._levels()
        emitter.require(code.icmp("ult", levels, MAX_CALLS), at)
        if targets.lanes:
            wrong = code.and_(code.mask_to_bits(code.icmp("slt", targets, 0)), taken)
            emitter.require(code.icmp("eq", wrong, 0), at)
        row = code.at(code.at(emitter.thread, frame.stack), code.mul(levels, 4 * LANES))
        self._set(row, taken, self._counter(code.const(at + 1, "i32")))
        if inst.name != "call":
            kept = self._caller(levels)
            code.call("llvm.memcpy.p0.p0.i64", kept, emitter.thread, code.const(frame.pc, "i64"), code.const(0, "i1"))
        self._move(self._enabled(), code.const(at + 1, "i32"))
        assert self._depth
        inner = code.sub(code.load(self._depth, "i32", 4), 1 << self.frame_bits)
        if targets.lanes:
            each = code.alloca(4 * LANES, 64)
            code.store(code.add(targets, code.splat(inner, LANES)), each, 64)
            code.call(emitter.template("lanes.ll", "restore"), self._counters(), taken, each)
        else:
            self._set(self._counters(), taken, code.add(targets, inner))
        code.br(_SCHEDULE)
        code.begin(some)
        self.go(at, at + 1)

    def _caller(self, levels: Value) -> Value:
        """Where the registers and predicates of a function's caller are kept."""
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
            outer = code.add(code.load(self._depth, "i32", 4), 1 << self.frame_bits)
            with code.when(code.op(f"icmp sge {least}, {outer.name}", "i1")):
                kept, start = self._caller(levels), 0
                held = [STATE[name] for name in RETURNED if STATE[name] in layout.allocation.offsets]
                spans = sorted((layout.offset(var), layout.offset(var) + var.bytes) for var in held)
                for first, end in [*spans, (frame.pc, frame.pc)]:
                    size, to = code.const(first - start, "i64"), code.at(emitter.thread, start)
                    code.call("llvm.memcpy.p0.p0.i64", to, code.at(kept, start), size, code.const(0, "i1"))
                    start = end
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
