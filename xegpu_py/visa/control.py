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
    _barrier("barrier", "Waits until all threads of the workgroup are there.", barrier="both"),
    _barrier("sbarrier.signal", "Tells the workgroup's threads that this one is there, and goes on.", barrier="signal"),
    _barrier("sbarrier.wait", "Waits until all threads of the workgroup have signalled.", barrier="wait"),
    _barrier(
        "nbarrier.signal",
        "Tells the named barrier `id` that one of `count` threads is there, and goes on.",
        "id",
        "count",
        barrier="signal",
    ),
    _barrier("nbarrier.wait", "Waits until the named barrier `id` has all its threads.", "id", barrier="wait"),
    InstructionSpec(
        LABEL,
        "A place that jumps name.",
        "label {label}",
        attributes=_LABEL,
        category="control",
        exec_sizes=(),
    ),
    InstructionSpec(
        "jmp",
        "Goes on at the label with all enabled lanes, where the predicate's first bit, or any or all of it, says so.",
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
        "Lanes whose predicate is set go on at the label; they meet the others again where those get there.",
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
