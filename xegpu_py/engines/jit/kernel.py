"""A program as functions of LLVM IR. The function `thread` runs one hardware thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xegpu_py.engines.access import Layout
from xegpu_py.engines.jit.arithmetic import emit_arithmetic, emit_flag_logic
from xegpu_py.engines.jit.code import PTR, Code
from xegpu_py.engines.jit.control import Blocks, Control, block_starts, loop_at
from xegpu_py.engines.jit.emitter import Emitter
from xegpu_py.engines.jit.frame import Frame
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.rules import entry
from xegpu_py.engines.jit.templates import function_of, functions_of
from xegpu_py.engines.jit.temporaries import Freedom, freedom_of
from xegpu_py.numerics.dpas import Model
from xegpu_py.visa.accesses import accesses
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.liveness import live_ranges, liveness_of
from xegpu_py.visa.operands import BUILTINS, Flag, Variable
from xegpu_py.visa.program import Instruction, Program

if TYPE_CHECKING:
    from xegpu_py.engines.jit.matrices import Matrices


def frame_of(program: Program, layout: Layout) -> Frame:
    """The layout of a thread's state."""
    size = max(layout.allocation.bytes, layout.target.grf_bytes)
    barriers = 1 + int(program.attributes.get("NBarrierCnt", 0))
    return Frame(-(-size // 64) * 64, max(len(program.predicates), 1), barriers, layout.watch, layout.races)


def given_bytes(program: Program, layout: Layout, keep: bool) -> int:
    """Bytes of the register file, from the first on, that a thread may read before it has written them.

    These are the header and the inputs, or all registers if they are to be looked at, or if the program may read a
    variable that it has not written.
    """
    inputs = {item.var.root[0] for item in program.inputs}
    known = inputs.union(BUILTINS.values())
    live = liveness_of(program, layout.target).entering(0)
    if keep or any(isinstance(var, Variable) and var not in known for var in live):
        return frame_of(program, layout).registers
    return max([layout.target.grf_bytes, *(layout.offset(var) + var.bytes for var in inputs)])


def matrices_of(
    program: Program, layout: Layout, model: Model, host: Host, divergent: bool, keep: bool
) -> Matrices | None:
    """The matrices that are loaded as dpas multiplies them; see `functions_of_program` for the arguments."""
    if keep or divergent or model != "fma" or not _multiplies(program):
        return None
    from xegpu_py.engines.jit.matrices import found_matrices

    # Threads share no panels if races are detected: each thread's own accesses are checked.
    byte_bits = 0 if host.dots_bytes else 16 if host.dots_words else 32
    return found_matrices(program, layout.target, tuple(block_starts(program)), not layout.races, byte_bits)


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
    live = live_ranges(program, layout.target) if _multiplies(program) and not keep else None
    matrices = matrices_of(program, layout, model, host, divergent, keep)
    # The checks of registers never written, and divergent lanes, look at registers between instructions.
    within = not (divergent or layout.watch)
    freedom = Freedom() if keep else freedom_of(program, layout.target, blocks.starts, within_blocks=within)
    functions = [] if host.converts_halves else functions_of("halves.ll")
    if layout.races:
        functions += functions_of("races.ll")
    helpers: dict[str, str] = {}
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
    )


def _write_blocks(emitter: Emitter, control: Control, blocks: Blocks, part: range) -> None:
    code, instructions, numbers = emitter.code, emitter.program.instructions, blocks.numbers
    order = _order(emitter, blocks, part)
    place, ended = 0, True
    while place < len(order):
        at = order[place]
        inst = instructions[at]
        if at in numbers:
            if not ended:
                control.go(at - 1, at)
            emitter.queue, emitter.loop = None, loop_at(emitter.program, blocks.at(at))
            code.begin(control.block(at))
            _count(emitter, numbers[at])
        end = entry("CONTROL", inst.name)
        ended = end is not None
        if ended:
            _check(emitter, [(at, inst)])
            end(control, inst, at)
            place += 1
            continue
        run, emit, together = [(at, inst)], None, entry("RUNS", inst.name)
        if together:
            most, count, emit = together
            for other in order[place + 1 : place + most]:
                if other in numbers or instructions[other].name != inst.name:
                    break
                run.append((other, instructions[other]))
            run = run[: max(1, count(emitter, [inst for _, inst in run]))]
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
    order, matrices, target = list(part), emitter.matrices, emitter.layout.target
    if matrices is None or not matrices.panel_bytes or emitter.frame.watch:
        return order
    instructions = emitter.program.instructions
    run: list[int] = []
    for place, at in enumerate(order):
        inst = instructions[at]
        if at in blocks.numbers or not (inst.name == "dpas" or matrices.shares(inst)):
            run = []
        elif inst.name == "dpas":
            run.append(at)
        elif run:
            own, first = accesses(inst, target), place - len(run)
            others = [access for product in run for access in accesses(instructions[product], target)]
            if any(a.var is b.var and (a.writes or b.writes) for a in own for b in others):
                run = []
            else:
                order[first : place + 1] = [at, *run]
    return order


def _check(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> None:
    """Write the checks of instructions that come next."""
    if emitter.frame.watch:
        from xegpu_py.engines.jit.unwritten import emit_checks

        for at, inst in run:
            emit_checks(emitter, inst, at)


def _count(emitter: Emitter, block: int) -> None:
    code = emitter.code
    place = code.at(emitter.context("executed", PTR), 8 * block)
    code.store(code.add(code.load(place, "i64", 8), code.const(1, "i64")), place, 8)


def _write(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Write one instruction that does not end a block."""
    if emitter.matrices and emitter.matrices.panel_bytes and _outdates_panels(emitter.matrices, inst):
        from xegpu_py.engines.jit.panels import WORDS

        forget = emitter.template("panels.ll", "forget_panels", **WORDS)
        emitter.code.call(forget, emitter.ctx, emitter.code.const(-1, "i64"))
    rule = entry("RULES", inst.name)
    if rule:
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
