"""How IGC passes a launch to a thread: the payload that `.ze_info` describes, local ids, and the mask of lanes.

Sources: documentation/visa and IGC/ZEBinWriter/zebin/spec of intel-graphics-compiler, and kernels that were compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py.visa.program import Dim, Input, Program

GRF_BYTES = 64
"""Size of a register of the targets that are supported, and of `%r0` in the payload."""

INLINE_BYTES = {"bmg": 32}
"""Bytes of arguments in the first register of arguments, where they are fewer than its size."""

_DISPATCH_MASK = "%sr0(0,2)"
"""The lanes with which a thread begins, as vISA names them."""


# `.ze_info`, as the specification of zebin has it. What is not read is left out.


class Argument(Struct, frozen=True):
    """A part of a thread's payload."""

    arg_type: str
    offset: int
    size: int
    arg_index: int = -1
    addrmode: str = ""
    addrspace: str = ""
    source_offset: int = 0
    slm_alignment: int = 1


class Environment(Struct, frozen=True):
    """What a kernel needs of a hardware thread and of its workgroup."""

    simd_size: int
    slm_size: int = 0
    barrier_count: int = 0
    required_work_group_size: tuple[int, ...] = ()


class ThreadMemory(Struct, frozen=True):
    """Memory of each hardware thread; of each of its lanes if `is_simt_thread`."""

    type: str
    usage: str
    size: int
    is_simt_thread: bool = False


class KernelInfo(Struct, frozen=True):
    """A kernel."""

    name: str
    execution_env: Environment
    payload_arguments: tuple[Argument, ...] = ()
    per_thread_memory_buffers: tuple[ThreadMemory, ...] = ()


_SCALAR = re.compile(r"(u?)(char|short|int|long)|half|float|double")

_VECTOR = re.compile(r"(\w+?)(2|3|4|8|16)?")


class Parameter(Struct, frozen=True):
    """A parameter of a kernel in its source."""

    index: int
    name: str
    type_name: str = ""
    address_qualifier: str = ""

    @property
    def type(self) -> str:
        """Its type in the source, such as `float4*`."""
        return self.type_name.partition(";")[0]

    @property
    def bytes(self) -> int | None:
        """The bytes of a value; None if they are not known."""
        return int(self.type_name.partition(";")[2] or 0) or None

    @property
    def element(self) -> tuple[np.dtype[Any], int] | None:
        """The type of the elements of a value, or of those to which it points, and how many a vector has; None if it is
        no type of OpenCL C."""
        whole = _VECTOR.fullmatch(self.type.rstrip("*"))
        scalar = whole and _SCALAR.fullmatch(whole[1])
        if not whole or not scalar:
            return None
        bits = {"char": 8, "short": 16, "half": 16, "int": 32, "float": 32, "long": 64, "double": 64}
        kind = f"{scalar[1]}int" if scalar[2] else "float"
        return np.dtype(f"{kind}{bits[scalar[2] or scalar[0]]}"), int(whole[2] or 1)


class Parameters(Struct, frozen=True):
    """The parameters of a kernel."""

    name: str
    args_info: tuple[Parameter, ...] = ()


class Info(Struct, frozen=True):
    """`.ze_info`."""

    kernels: tuple[KernelInfo, ...] = ()
    kernels_misc_info: tuple[Parameters, ...] = ()


# The payload.


def payload_base(program: Program) -> int:
    """Where the arguments begin in the payload: after `%r0` and the local ids."""
    return GRF_BYTES + int(program.attributes.get("PerThreadInputSize", 0))


def is_local_id(program: Program, item: Input) -> bool:
    """Whether an input holds local ids, and no argument."""
    return item.offset < payload_base(program)


def payload_offset(program: Program, item: Input, target: str) -> int:
    """The offset of an input that is no local id, as `.ze_info` counts them.

    Args:
        target: the name of the GPU.
    """
    at = item.offset - payload_base(program)
    return at if at < GRF_BYTES else at + INLINE_BYTES.get(target, GRF_BYTES) - GRF_BYTES


def dimensions(kind: str, groups: Dim, block: Dim, count: int) -> bytes | None:
    """The bytes of an argument that says the extents of a launch, of `count` dimensions; None for other kinds."""
    size = [g * b for g, b in zip(groups, block)]
    values: Mapping[str, Sequence[int]] = {
        "global_id_offset": (0, 0, 0),
        "enqueued_local_size": block,
        "local_size": block,
        "global_size": size,
        "group_count": groups,
        "work_dimensions": (count,),
        "indirect_data_pointer": (0, 0),
        "scratch_pointer": (0, 0),
        "buffer_offset": (0,),
    }
    return np.array(values[kind], np.uint32).tobytes() if kind in values else None


class Private(Struct, frozen=True):
    """Memory of each hardware thread of a launch.

    Attributes:
        address: its address.
        bytes: the bytes of each thread.
        input: the name of the variable that holds the address of a thread's part; `%scratchloc` for scratch memory.
    """

    address: int
    bytes: int
    input: str


def prologue(text: str, program: Program, block: Dim, groups: Dim, private: Sequence[Private]) -> str:
    """The assembly of a kernel that computes the local ids itself, and enables only the lanes of work items.

    A thread finds its part of private memory by its number in the launch, so that the number of the hardware thread,
    from which kernels compute it, is 0.

    Args:
        text: the kernel's assembly; `program` is what it says.
        block: work items of a workgroup.
        groups: workgroups.
        private: the memory of each thread.
    """
    lanes, items = program.simd_size, math.prod(block)
    declared = [
        f".decl Own_{n} v_type=G type=ud num_elts={lanes} align=wordx32" for n in ("item", "x", "y", "z", "row")
    ]
    declared.append(f".decl Own_lane v_type=G type=uw num_elts={max(lanes, 8)} align=wordx32")
    declared += [f".decl Own_{n} v_type=G type=ud num_elts=1 align=dword" for n in ("first", "thread")]
    body = ["mov (M1_NM, 8) Own_lane(0,0)<1> 0x76543210:v"]

    def each(operation: str, to: str, a: str, b: str = "") -> None:
        body.append(f"{operation} (M1_NM, {lanes}) {to}(0,0)<1> {a} {b}".rstrip())

    def once(operation: str, to: str, a: str, b: str = "") -> None:
        body.append(f"{operation} (M1_NM, 1) {to}(0,0)<1> {a}(0,0)<0;1,0> {b}".rstrip())

    at = 8
    while at < lanes:
        body.append(f"add (M1_NM, {at}) Own_lane(0,{at})<1> Own_lane(0,0)<1;1,0> {at:#x}:uw")
        at *= 2
    body.append(f"mul (M1_NM, 1) Own_first(0,0)<1> %r0(0,2)<0;1,0> {lanes:#x}:ud")
    each("add", "Own_item", "Own_lane(0,0)<1;1,0>", "Own_first(0,0)<0;1,0>")

    def divided(source: str, by: int, quotient: str, rest: str) -> None:
        if by == 1:
            each("mov", quotient, f"{source}(0,0)<1;1,0>")
            each("mov", rest, "0x0:ud")
            return
        # Exact for numbers and divisors of 11 bits.
        each("mul", quotient, f"{source}(0,0)<1;1,0>", f"{-(-(1 << 22) // by):#x}:ud")
        each("shr", quotient, f"{quotient}(0,0)<1;1,0>", "0x16:ud")
        each("mul", rest, f"{quotient}(0,0)<1;1,0>", f"{2**32 - by:#x}:ud")
        each("add", rest, f"{rest}(0,0)<1;1,0>", f"{source}(0,0)<1;1,0>")

    divided("Own_item", block[0], "Own_row", "Own_x")
    divided("Own_row", block[1], "Own_z", "Own_y")
    for item in program.inputs:
        if is_local_id(program, item):
            number = "xyz"[(item.offset - GRF_BYTES) // GRF_BYTES]
            each("mov", item.var.name, f"Own_{number}(0,0)<1;1,0>")
    if private:
        declared.append(".decl Own_place v_type=G type=uq num_elts=1 align=qword")
        once("mul", "Own_thread", "%group_id_z", f"{groups[1]:#x}:ud")
        once("add", "Own_thread", "Own_thread", "%group_id_y(0,0)<0;1,0>")
        once("mul", "Own_thread", "Own_thread", f"{groups[0]:#x}:ud")
        once("add", "Own_thread", "Own_thread", "%group_id_x(0,0)<0;1,0>")
        once("mul", "Own_thread", "Own_thread", f"{-(-items // lanes):#x}:ud")
        once("add", "Own_thread", "Own_thread", "%r0(0,2)<0;1,0>")
    for part in private:
        once("mul", "Own_place", "Own_thread", f"{part.bytes:#x}:ud")
        once("add", "Own_place", "Own_place", f"{part.address:#x}:uq")
        once("mov", part.input, "Own_place")
    if _DISPATCH_MASK in text:
        # Engines have no such register: the kernel reads a variable.
        text = text.replace(_DISPATCH_MASK, "Own_mask(0,0)")
        declared.append(".decl Own_mask v_type=G type=ud num_elts=1 align=dword")
        declared.append(f".decl Own_busy v_type=P num_elts={lanes}")
        body.append(f"cmp.lt (M1_NM, {lanes}) Own_busy Own_item(0,0)<1;1,0> {items:#x}:ud")
        body.append("mov (M1_NM, 1) Own_mask(0,0)<1> Own_busy")
    lines = text.split("\n")
    if items % lanes:
        declared.append(f".decl Own_idle v_type=P num_elts={lanes}")
        body.append(f"cmp.ge (M1_NM, {lanes}) Own_idle Own_item(0,0)<1;1,0> {items:#x}:ud")
        body.append(f"(Own_idle) goto (M1, {lanes}) Own_end")
        end = next(i for i, line in enumerate(lines) if line.split("/")[0].strip() == "ret (M1, 1)")
        lines[end] = f"Own_end:\n{lines[end]}"
    entry = program.functions[0]
    start = next(i for i, line in enumerate(lines) if line.strip() == f"{entry}:")
    # Counted with the kernel's first line, and in the modes that the kernel sets in its first instruction.
    while lines[start + 1].split()[:1] in ([], ["FILE"], ["LOC"]) or "%cr0(0,0)<1>" in lines[start + 1]:
        start += 1
    lines[start] = "\n".join([lines[start], *(f"    {line}" for line in body)])
    first = next(i for i, line in enumerate(lines) if line.startswith((".input", ".kernel_attr")))
    lines[first] = "\n".join([*declared, lines[first]])
    return "\n".join(lines)


# Arguments.


def _fits(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether elements of a type are passed for those of another: of its size, and no float for an integer.

    Unsigned integers stand for any bits.
    """
    swapped = (wanted.kind == "f" and given.kind == "i") or (wanted.kind != "f" and given.kind == "f")
    return given.itemsize == wanted.itemsize and not swapped


def array_for(argument: Any, parameter: Parameter, title: str) -> np.ndarray[Any, Any]:
    """The array for a pointer; structures as bytes.

    Raises:
        TypeError: if it is no array, or its elements are not those to which the pointer points.
    """
    if not isinstance(argument, np.ndarray):
        raise TypeError(f"{title} must be a numpy array, but got {type(argument).__name__}")
    if argument.dtype.fields:
        return np.atleast_1d(argument.view(np.uint8) if argument.ndim else argument.reshape(1).view(np.uint8))
    element = parameter.element
    plain = argument.real if argument.dtype.kind == "c" else argument
    if element and not _fits(plain.dtype, element[0]):
        raise TypeError(f"{title} is {parameter.type}, an array of {element[0]}, but got an array of {argument.dtype}")
    return np.atleast_1d(argument)


def value_bytes(argument: Any, parameter: Parameter, title: str) -> bytes:
    """The bytes of a number, a vector or a structure.

    Raises:
        TypeError: if it has other elements or another size than the parameter, or no size, as Python's numbers.
    """
    if not isinstance(argument, (np.generic, np.ndarray)):
        raise TypeError(
            f"{title} must be a number of numpy's, such as np.float32(2), but got {type(argument).__name__}"
        )
    data, element, size = argument.tobytes(), parameter.element, parameter.bytes
    if element:
        kind, count = element
        if not _fits(argument.dtype, kind) or argument.size not in (count, 4 if count == 3 else count):
            wanted = f"{count} numbers" if count > 1 else "a number"
            got = f"{argument.size} of type {argument.dtype}" if argument.ndim else f"one of type {argument.dtype}"
            raise TypeError(f"{title} is {parameter.type}, {wanted} of type {kind}, but got {got}")
        return data.ljust(size or len(data), b"\0")
    if size is not None and len(data) != size:
        hint = "; np.dtype(..., align=True) pads structures as C does" if argument.dtype.fields else ""
        raise TypeError(f"{title} is {parameter.type}, which has {size} bytes, but got {len(data)} bytes{hint}")
    return data
