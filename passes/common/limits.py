"""Checks whether a target has a message or instruction for an op.

The limits are those in the table of `xegpu_py.visa.instructions`, so that these checks agree with the verifier of vISA.
"""

from __future__ import annotations

from typing import Any

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.common.messages import READ, WRITE, atomic_shape, caches_of, chunk_messages
from xegpu_py.passes.common.registers import register_type

from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import BlockShape, Caches, Problem

REWRITTEN_OF_F64 = ("math.trunc", "math.floor", "math.ceil", "math.round", "math.roundeven", "math.rsqrt")
"""Functions without f64 instructions on any target, which `xegpu-legalize` expands to arithmetic."""


def element_problem(element: str) -> Problem:
    """The reason why registers cannot hold elements of a type; None if they can."""
    try:
        register_type(element)
    except ValueError as e:
        return (str(e), "there are 8, 16, 32 and 64 bits; pack narrower elements")
    return None


def caches_problem(view: Any, instruction: str, write: bool = False) -> Problem:
    """Why a message has no such pair of cache hints; None if it has."""
    pair = caches_of(view, write)
    declared = INSTRUCTIONS[instruction].attributes["caches"]
    assert isinstance(declared, Caches)
    if not pair or pair in declared.pairs:
        return None
    words = {word: hint.value for hint, word in (WRITE if write else READ).items()}
    known = [p.split(".") for p in declared.pairs if p != "df.df"]
    pairs = ", ".join(f"{words[a]}/{words.get(b, b)}" for a, b in known if a in words)
    a, b = pair.split(".")
    return (
        f"has no message with cache hints {words[a]}/{words[b]} for L1/L3",
        f"there are {pairs}; a level without a hint is {'written back' if write else 'cached'}",
    )


def block_problem(block: BlockShape, target: Target, store: bool = False) -> Problem:
    """The reason why a 2D block message cannot move a block; None if one can."""
    name = "lsc_store_block2d" if store else "lsc_load_block2d"
    problem = INSTRUCTIONS[name].check(Instruction(name, {"block": block}), target)
    if problem is None:
        return None
    if target.block2d is None:
        return (f"needs 2D block messages, which target {target.name} lacks", "use 1D or scattered descriptors")
    return (f"a 2D block {'store' if store else 'load'} {problem[0]}", *problem[1:])


def lanes_problem(desc: TensorDesc, target: Target, name: str, **values: Any) -> Problem:
    """The reason why no gather or scatter message supports a descriptor's lanes; None if one does."""
    slm = desc.in_slm
    size = desc.bits // 8
    # An atomic message moves one element per lane.
    shapes = (
        [atomic_shape(desc.bits)] if name.startswith("lsc_atomic") else [s for _, s in chunk_messages(desc.chunk, size)]
    )
    common = {"sfid": "slm" if slm else "ugm", "address_size": "a32" if slm else "a64"}
    for shape in dict.fromkeys(shapes):
        inst = Instruction(name, {**common, "data": shape, **values}, desc.lanes)
        problem = INSTRUCTIONS[name].check(inst, target)
        if problem:
            return (f"as '{name}' {problem[0]}", *problem[1:])
    most = 32 if target.grf_bytes == 64 else 16
    if desc.lanes > most:
        return (f"has {desc.lanes} lanes, but a message of target {target.name} has at most {most}",)
    return None


def dpas_step(w: str, a: str, target: Target) -> int:
    """The elements of K that one dpas or bdpas multiplies."""
    return max(target.dpas_depths) * ops_per_channel(w, a)


def scaled_problem(target: Target) -> Problem:
    """The reason why a target cannot multiply block-scaled matrices; None if it can."""
    if "bdpas" not in target.absent:
        return None
    return (
        f"needs bdpas, which target {target.name} lacks",
        "target cri has it; elsewhere bring the scales into bf16 factors, and use xegpu.dpas",
    )
