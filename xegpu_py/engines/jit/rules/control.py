"""Control flow and barriers: rules that end blocks of code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xegpu_py.engines.jit.checks import emit_record
from xegpu_py.engines.jit.ir_text import LLVMValue, vector
from xegpu_py.engines.jit.native_launch_struct import Status
from xegpu_py.engines.semantics import Table
from xegpu_py.visa.dataflow import returns
from xegpu_py.visa.operands import Immediate
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import LANES

if TYPE_CHECKING:
    from xegpu_py.engines.jit.thread_function import Control

CONTROL = Table()
"""The rule of each instruction that ends a block."""


@CONTROL.of("label")
def label(control: Control, inst: Instruction, at: int) -> None:
    """Continue with the next block."""
    control.go(at, at + 1)


@CONTROL.of("jmp")
def jmp(control: Control, inst: Instruction, at: int) -> None:
    """All enabled lanes jump to the label if the predicate is true."""
    target = control.labels[inst["label"]]
    if inst.guard is None:
        control.go(at, target)
        return
    emitter = control.emitter
    code = emitter.code
    no = code.label()
    code.go_on_if(code.icmp("ne", code.mask(emitter.chosen(inst), 1), 0), no)
    control.go(at, target)
    code.begin(no)
    control.go(at, at + 1)


@CONTROL.of("goto")
def goto(control: Control, inst: Instruction, at: int) -> None:
    """Enabled lanes whose predicate bit is set jump to the label; of execution size 1 all or none."""
    if inst.exec_size == 1:
        jmp(control, inst, at)
        return
    control.diverge(at, inst, control.labels[inst["label"]])


@CONTROL.of("ret", "fret")
def ret(control: Control, inst: Instruction, at: int) -> None:
    """End the enabled lanes; in a function they return to the caller."""
    if control.emitter.frame.calls and returns(control.emitter.program, at):
        control.give_back(inst)
    else:
        control.end()


@CONTROL.of("call", "fcall")
def call(control: Control, inst: Instruction, at: int) -> None:
    """Enabled lanes continue in a function."""
    target = control.labels[inst.values.get("label") or inst["callee"]]
    control.call(at, inst, control.emitter.code.const(target, "i32"))


@CONTROL.of("ifcall")
def ifcall(control: Control, inst: Instruction, at: int) -> None:
    """Enabled lanes continue in the functions whose addresses they have."""
    emitter, program = control.emitter, control.emitter.program
    code, lanes, lanes_type = emitter.code, inst.exec_size, vector(inst.exec_size, "i32")
    callee_addresses = code.resize(emitter.read(inst["src0"], lanes), 64, False)
    targets = code.const(-1, lanes_type)
    for name in program.functions[1:]:
        calls_function = code.icmp("eq", callee_addresses, program.function_address(name))
        targets = code.select(calls_function, code.const(program.labels[name], lanes_type), targets)
    # The thread has 32 lanes, of which the instruction's begin at `first_lane`.
    picks = [min(max(lane - inst.first_lane, 0), lanes - 1) for lane in range(LANES)]
    control.call(at, inst, code.shuffle(targets, targets, picks))


def _wait(control: Control, number: LLVMValue, at: int) -> None:
    """Continue if the barrier has a complete phase that the thread has not yet waited for; else return and retry."""
    emitter, code = control.emitter, control.emitter.code
    operands = emitter.ctx, code.at(emitter.thread, emitter.frame.passed), number
    stay, pass_on = code.label(), code.label()
    passes = code.call(emitter.template("barriers.ll", "pass"), *operands, result="i1")
    code.cond_br(passes, pass_on, stay)
    code.begin(stay)
    control.leave(at, Status.WAITING)
    code.begin(pass_on)
    if emitter.frame.races:
        code.call("race_pass", *operands)
    control.count(at)
    if emitter.frame.logs:
        emit_record(code, at, 0, number)


def _signal(control: Control, number: LLVMValue, expected: LLVMValue) -> None:
    """Count a signal."""
    emitter, code = control.emitter, control.emitter.code
    phases = code.call(emitter.template("barriers.ll", "signal"), emitter.ctx, number, expected, result="i64")
    if emitter.frame.races:
        code.call("race_signal", emitter.ctx, number, phases)


def _barrier_of(control: Control, inst: Instruction, at: int) -> tuple[LLVMValue, LLVMValue]:
    """The index of an instruction's barrier among those of the workgroup, and how many signals it expects, each i64."""
    code, emitter = control.emitter.code, control.emitter
    if "id" not in inst.values:
        return code.const(0, "i64"), emitter.context("threads")
    # Waits expect no signals of their own.
    operands = (inst["id"], inst.values.get("count", Immediate(0, "ub")))
    number, count = (code.resize(emitter.scalar(operand), 64, False) for operand in operands)
    emitter.require(code.icmp("ult", number, emitter.frame.barriers - 1), at)
    return code.add(number, 1), count


@CONTROL.of("sbarrier.signal", "nbarrier.signal")
def signal(control: Control, inst: Instruction, at: int) -> None:
    """Count a signal at the barrier."""
    _signal(control, *_barrier_of(control, inst, at))
    control.go(at, at + 1)


@CONTROL.of("sbarrier.wait", "nbarrier.wait")
def wait(control: Control, inst: Instruction, at: int) -> None:
    """Wait for the phase of the barrier that the thread has not yet waited for."""
    _wait(control, _barrier_of(control, inst, at)[0], at)
    control.go(at, at + 1)


@CONTROL.of("barrier")
def signal_and_wait(control: Control, inst: Instruction, at: int) -> None:
    """Signal the barrier, then wait for it."""
    code, emitter = control.emitter.code, control.emitter
    has_signalled = code.fetch(emitter.thread, emitter.frame.signalled, "i32")
    with code.when(code.icmp("eq", has_signalled, 0)):
        _signal(control, *_barrier_of(control, inst, at))
        code.put(code.const(1, "i32"), emitter.thread, emitter.frame.signalled)
    _wait(control, _barrier_of(control, inst, at)[0], at)
    code.put(code.const(0, "i32"), emitter.thread, emitter.frame.signalled)
    control.go(at, at + 1)
