"""Barriers and control flow, of the table of instructions."""

from __future__ import annotations

from xegpu_py.visa.program import LABEL
from xegpu_py.visa.spec import InstructionSpec, Name, OperandSpec

_LABEL = {"label": Name()}


def _byte(name: str) -> OperandSpec:
    return OperandSpec(name, "src", types=("ub",), immediate=True)


def _barrier(name: str, doc: str, *operands: str, **facts: object) -> InstructionSpec:
    form = " ".join([name, *(f"{{{operand}}}" for operand in operands)])
    facts |= {"category": "sync", "exec_sizes": (), "source": "finalizer", "named_barrier": "id" in operands}
    return InstructionSpec(name, doc, form, tuple(map(_byte, operands)), **facts)  # type: ignore[arg-type]


CONTROL = (
    _barrier("barrier", "Waits until all threads of the workgroup have arrived.", barrier="both"),
    _barrier("sbarrier.signal", "Signals arrival at the workgroup's barrier without waiting.", barrier="signal"),
    _barrier("sbarrier.wait", "Waits until all threads of the workgroup have signalled.", barrier="wait"),
    _barrier(
        "nbarrier.signal",
        "Signals the arrival of one of `count` threads at the named barrier `id`, without waiting.",
        "id",
        "count",
        barrier="signal",
    ),
    _barrier("nbarrier.wait", "Waits until all threads of the named barrier `id` have arrived.", "id", barrier="wait"),
    InstructionSpec(
        LABEL,
        "Defines a label, the target of jumps.",
        "label {label}",
        attributes=_LABEL,
        category="control",
        exec_sizes=(),
    ),
    InstructionSpec(
        "jmp",
        "Jumps to the label with all enabled lanes if the predicate's first bit, any bit, or all its bits are set.",
        "jmp {exec} {label}",
        attributes=_LABEL,
        category="control",
        guard=True,
        exec_sizes=(1,),
        jumps=True,
        uniform=True,
    ),
    InstructionSpec(
        "goto",
        "Lanes whose predicate is set jump to the label, where they reconverge with the other lanes.",
        "goto {exec} {label}",
        attributes=_LABEL,
        category="control",
        guard=True,
        jumps=True,
    ),
    InstructionSpec(
        "ret",
        "Ends the enabled lanes; with its last lane the thread ends.",
        "ret {exec}",
        category="control",
        exec_sizes=(1,),
        ends=True,
    ),
)
