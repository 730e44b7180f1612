"""Checks whether a target has a message or instruction for an op.

The limits are those in the table of `xegpu_py.visa.instructions`, so that these checks agree with the verifier of vISA.
"""

from __future__ import annotations

from typing import Any

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.common.messages import atomic_shape, chunk_messages

from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import BlockShape, Problem


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
