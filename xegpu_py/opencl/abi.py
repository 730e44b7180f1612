"""How IGC passes a launch to a thread: the payload that `.ze_info` describes, local ids, and the mask of lanes.

Sources: documentation/visa and IGC/ZEBinWriter/zebin/spec of intel-graphics-compiler, and kernels that were compiled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xegpu_py.visa.program import Dim, Input, Program

GRF_BYTES = 64
"""Size of a register of the targets that are supported, and of `%r0` in the payload."""

INLINE_BYTES = {"bmg": 32}
"""Bytes of arguments in the first register of arguments, where they are fewer than its size."""

IDS = 1 << 11
"""Local ids, and work items of a workgroup, are less."""


def payload_base(program: Program) -> int:
    """Where the arguments begin in the payload: after `%r0` and the local ids."""
    return GRF_BYTES + int(program.attributes.get("PerThreadInputSize", 0))


def is_local_id(program: Program, item: Input) -> bool:
    """Whether an input holds local ids, and no argument."""
    return item.offset < payload_base(program)


def argument_bytes(program: Program, item: Input, payload: bytes, target: str) -> bytes:
    """The bytes of an input that is no local id.

    Args:
        payload: the arguments by the offsets of `.ze_info`.
        target: the name of the GPU.
    """
    at = item.offset - payload_base(program)
    inline = INLINE_BYTES.get(target, GRF_BYTES)
    if at >= GRF_BYTES:
        at += inline - GRF_BYTES
    return payload[at : at + item.size].ljust(item.size, b"\0")


def dimensions(kind: str, groups: Dim, block: Dim) -> bytes | None:
    """The bytes of an argument that says the extents of a launch; None for other kinds."""
    size = [g * b for g, b in zip(groups, block)]
    values: Mapping[str, Sequence[int]] = {
        "global_id_offset": (0, 0, 0),
        "enqueued_local_size": block,
        "local_size": block,
        "global_size": size,
        "group_count": groups,
        "work_dimensions": (3 if size[2] > 1 else 2 if size[1] > 1 else 1,),
        "indirect_data_pointer": (0, 0),
        "scratch_pointer": (0, 0),
        "buffer_offset": (0,),
    }
    return np.array(values[kind], np.uint32).tobytes() if kind in values else None


def prologue(text: str, program: Program, block: Dim, groups: Dim, scratch: tuple[int, int] | None) -> str:
    """The assembly of a kernel that computes the local ids itself, and enables only the lanes of work items.

    Args:
        text: the kernel's assembly; `program` is what it says.
        block: work items of a workgroup.
        groups: workgroups.
        scratch: the address of scratch memory and the bytes of it for each thread; None without it.
    """
    lanes = program.simd_size
    wide = [f".decl Own_{n} v_type=G type=ud num_elts={lanes} align=wordx32" for n in ("item", "x", "y", "z", "part")]
    declared = [*wide, f".decl Own_lane v_type=G type=uw num_elts={max(lanes, 8)} align=wordx32"]
    declared.append(".decl Own_first v_type=G type=ud num_elts=1 align=dword")
    body = ["mov (M1_NM, 8) Own_lane(0,0)<1> 0x76543210:v"]
    at = 8
    while at < lanes:
        body.append(f"add (M1_NM, {at}) Own_lane(0,{at})<1> Own_lane(0,0)<1;1,0> {at:#x}:uw")
        at *= 2
    body.append(f"mul (M1_NM, 1) Own_first(0,0)<1> %r0(0,2)<0;1,0> {lanes:#x}:ud")
    body.append(f"add (M1_NM, {lanes}) Own_item(0,0)<1> Own_lane(0,0)<1;1,0> Own_first(0,0)<0;1,0>")

    def divided(source: str, by: int, quotient: str, rest: str) -> None:
        if by == 1:
            body.append(f"mov (M1_NM, {lanes}) {quotient}(0,0)<1> {source}(0,0)<1;1,0>")
            body.append(f"mov (M1_NM, {lanes}) {rest}(0,0)<1> 0x0:ud")
            return
        # Exact for numbers and divisors of 11 bits.
        inverse = -(-(1 << 22) // by)
        body.append(f"mul (M1_NM, {lanes}) {quotient}(0,0)<1> {source}(0,0)<1;1,0> {inverse:#x}:ud")
        body.append(f"shr (M1_NM, {lanes}) {quotient}(0,0)<1> {quotient}(0,0)<1;1,0> 0x16:ud")
        body.append(f"mul (M1_NM, {lanes}) Own_part(0,0)<1> {quotient}(0,0)<1;1,0> {2**32 - by:#x}:ud")
        body.append(f"add (M1_NM, {lanes}) {rest}(0,0)<1> {source}(0,0)<1;1,0> Own_part(0,0)<1;1,0>")

    divided("Own_item", block[0], "Own_y", "Own_x")
    # Own_z is the quotient, Own_y the rest; both come from the number of the row.
    body.append(f"mov (M1_NM, {lanes}) Own_z(0,0)<1> Own_y(0,0)<1;1,0>")
    declared.append(f".decl Own_row v_type=G type=ud num_elts={lanes} align=wordx32")
    body.append(f"mov (M1_NM, {lanes}) Own_row(0,0)<1> Own_z(0,0)<1;1,0>")
    divided("Own_row", block[1], "Own_z", "Own_y")
    for item in program.inputs:
        if is_local_id(program, item):
            number = "xyz"[(item.offset - GRF_BYTES) // GRF_BYTES]
            body.append(f"mov (M1_NM, {lanes}) {item.var.name}(0,0)<1> Own_{number}(0,0)<1;1,0>")
    if scratch:
        declared.append(".decl Own_scratch v_type=G type=uq num_elts=1 align=qword")
        threads = -(-math.prod(block) // lanes)
        body.append(f"mul (M1_NM, 1) Own_first(0,0)<1> %group_id_z(0,0)<0;1,0> {groups[1]:#x}:ud")
        body.append("add (M1_NM, 1) Own_first(0,0)<1> Own_first(0,0)<0;1,0> %group_id_y(0,0)<0;1,0>")
        body.append(f"mul (M1_NM, 1) Own_first(0,0)<1> Own_first(0,0)<0;1,0> {groups[0]:#x}:ud")
        body.append("add (M1_NM, 1) Own_first(0,0)<1> Own_first(0,0)<0;1,0> %group_id_x(0,0)<0;1,0>")
        body.append(f"mul (M1_NM, 1) Own_first(0,0)<1> Own_first(0,0)<0;1,0> {threads:#x}:ud")
        body.append("add (M1_NM, 1) Own_first(0,0)<1> Own_first(0,0)<0;1,0> %r0(0,2)<0;1,0>")
        body.append(f"mul (M1_NM, 1) Own_first(0,0)<1> Own_first(0,0)<0;1,0> {scratch[1]:#x}:ud")
        body.append("mov (M1_NM, 1) Own_scratch(0,0)<1> Own_first(0,0)<0;1,0>")
        body.append(f"add (M1_NM, 1) Own_scratch(0,0)<1> Own_scratch(0,0)<0;1,0> {scratch[0]:#x}:uq")
        body.append("mov (M1_NM, 1) %scratchloc(0,0)<1> Own_scratch(0,0)<0;1,0>")
    lines = text.split("\n")
    if math.prod(block) % lanes:
        declared.append(f".decl Own_idle v_type=P num_elts={lanes}")
        body.append(f"cmp.ge (M1_NM, {lanes}) Own_idle Own_item(0,0)<1;1,0> {math.prod(block):#x}:ud")
        body.append(f"(Own_idle) goto (M1, {lanes}) Own_end")
        end = next(i for i, line in enumerate(lines) if line.split("/")[0].strip() == "ret (M1, 1)")
        lines[end] = f"Own_end:\n{lines[end]}"
    entry = program.functions[0]
    start = next(i for i, line in enumerate(lines) if line.strip() == f"{entry}:")
    lines[start] = "\n".join([lines[start], *(f"    {line}" for line in body)])
    first = next(i for i, line in enumerate(lines) if line.startswith((".input", ".kernel_attr")))
    lines[first] = "\n".join([*declared, lines[first]])
    return "\n".join(lines)


def by_value(argument: Any, size: int, start: int, title: str) -> bytes:
    """The bytes of a number, a vector or a structure from `start` on.

    Raises:
        TypeError: if it has fewer bytes, or no bytes of a known size, as Python's numbers.
    """
    if not isinstance(argument, (np.generic, np.ndarray)):
        raise TypeError(
            f"{title} must be a number of numpy's, such as np.float32(2), but got {type(argument).__name__}"
        )
    data = argument.tobytes()
    if len(data) < start + size:
        raise TypeError(f"{title} must have at least {start + size} bytes, but {argument.dtype} has {len(data)}")
    return data[start : start + size]
