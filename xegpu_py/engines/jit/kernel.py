"""A program as a module of native code: the function of a thread."""

from __future__ import annotations

import platform

from xegpu_py.engines.access import Layout
from xegpu_py.engines.jit import rules
from xegpu_py.engines.jit.arithmetic import emit_arithmetic, emit_flag_logic
from xegpu_py.engines.jit.code import PTR, Code
from xegpu_py.engines.jit.control import CONTROL, Control
from xegpu_py.engines.jit.emitter import Emitter
from xegpu_py.engines.jit.frame import Frame
from xegpu_py.engines.jit.halves import half_functions
from xegpu_py.engines.jit.matrices import Matrices
from xegpu_py.engines.jit.rules import RULES
from xegpu_py.engines.jit.rules.matrix import emit_run
from xegpu_py.numerics.dpas import Model
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.liveness import live_ranges
from xegpu_py.visa.operands import Flag
from xegpu_py.visa.program import Instruction, Program

rules.load()

_OWN = ("mov", "sel", "srnd", "fcvt", "setp")
_ATTRIBUTES = '"noinline", "nounwind", ["prefer-vector-width", "512"]'


def frame_of(program: Program, layout: Layout) -> Frame:
    """Where a thread's state lies."""
    size = max(layout.allocation.bytes, layout.target.grf_bytes)
    barriers = 1 + int(program.attributes.get("NBarrierCnt", 0))
    return Frame(-(-size // 64) * 64, max(len(program.predicates), 1), barriers)


def module_text(
    program: Program, layout: Layout, model: Model, features: frozenset[str], lanes_part: bool, keep: bool
) -> str:
    """The MLIR module of a program. It has a function `entry`, which gives the address of the function of a thread.

    That takes the worker's context and the thread's block, and gives the `Status` with which the thread has stopped.

    Args:
        features: what the host's CPU has.
        lanes_part: whether each lane has its program counter.
        keep: whether registers hold all results at the end, and not only those that the program needs.
    """
    frame = frame_of(program, layout)
    code = Code("thread", [PTR, f"{PTR} {{llvm.noalias, llvm.align = 64 : i64}}"], "i32", _ATTRIBUTES, alignment=64)
    emitter = Emitter(program, layout, frame, model, code, features)
    emitter.live = None if keep else live_ranges(program, layout.target)
    if emitter.live and model == "fma" and not lanes_part:
        emitter.matrices = Matrices(program, layout.target, emitter.live, CONTROL)
    control = Control(emitter, lanes_part)
    control.enter()
    _write_blocks(emitter, control)
    # Other CPUs than x86 that wheels are made for have these conversions.
    halves = [] if "f16c" in features or platform.machine().lower() not in ("x86_64", "amd64") else [half_functions()]
    functions = [*halves, emitter.finish(), *emitter.helpers.values(), _entry()]
    return "module {\n" + "\n".join(functions) + "\n}\n"


def _entry() -> str:
    """The function that gives the address of the thread's function."""
    code = Code("entry", [], PTR)
    code.ret(code.op(f"llvm.mlir.addressof @thread : {PTR}", PTR))
    return code.text("")


def _write_blocks(emitter: Emitter, control: Control) -> None:
    code, instructions = emitter.code, emitter.program.instructions
    starts = {s: n for n, s in enumerate(control.starts)}
    at, ended = 0, True
    while at < len(instructions):
        inst = instructions[at]
        if at in starts:
            if not ended:
                control.go(at - 1, at)
            code.begin(control.block(at))
            _count(emitter, starts[at])
        ended = inst.name in CONTROL
        if ended:
            RULES[inst.name](control, inst, at)
            at += 1
            continue
        run = [at]
        while inst.name == "dpas" and run[-1] + 1 < len(instructions) and instructions[run[-1] + 1].name == "dpas":
            run.append(run[-1] + 1)
        if len(run) > 1:
            emit_run(emitter, [(i, instructions[i]) for i in run])
        else:
            _write(emitter, inst, at)
        at = run[-1] + 1
    if not ended:
        control.end()


def _count(emitter: Emitter, block: int) -> None:
    code = emitter.code
    place = code.at(emitter.context("executed", PTR), 8 * block)
    code.store(code.add(code.load(place, "i64", 8), code.const(1, "i64")), place, 8)


def _write(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Write one instruction that does not end a block."""
    if INSTRUCTIONS[inst.name].category in ("alu", "math") and inst.name not in _OWN:
        if inst.name != "cmp" and isinstance(inst["dst"], Flag):
            emit_flag_logic(emitter, inst)
        else:
            emit_arithmetic(emitter, inst, at)
        return
    RULES[inst.name](emitter, inst, at)


def missing_rules() -> list[str]:
    """Instructions of the table that have no rule; an empty list if all is well."""
    return [name for name in INSTRUCTIONS if name not in RULES]
