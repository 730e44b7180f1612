"""The interface of IGC and a launch: the payload that `.ze_info` describes, local ids, the mask of lanes, and printf.

Sources: documentation/visa and IGC/ZEBinWriter/zebin/spec of intel-graphics-compiler, the printf formatter of
intel/compute-runtime, and kernels that were compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, structs

from xegpu_py.target import Target
from xegpu_py.visa.operands import HEADER, STATE, Destination, Flag, Guard, Immediate, Predicate, Region, Variable
from xegpu_py.visa.program import LABEL, Dim, Input, Instruction, Program

INLINE_BYTES = {"bmg": 32, "lnl": 32, "ptl": 32}
"""Bytes of arguments in the first register of arguments, where they are fewer than its size."""


# `.ze_info`, as the specification of zebin has it. Fields that are not read are left out.


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
    """A kernel's requirements on hardware threads and workgroups."""

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


def payload_base(program: Program, target: Target) -> int:
    """Where the arguments begin in the payload: after `%r0`, which is a register, and the local ids."""
    return target.grf_bytes + int(program.attributes.get("PerThreadInputSize", 0))


def is_local_id(program: Program, item: Input, target: Target) -> bool:
    """Whether an input holds local ids, and no argument."""
    return item.offset < payload_base(program, target)


def payload_offset(program: Program, item: Input, target: Target) -> int:
    """The offset of an input that is no local id, as `.ze_info` counts them."""
    at, grf = item.offset - payload_base(program, target), target.grf_bytes
    return at if at < grf else at + INLINE_BYTES.get(target.name, grf) - grf


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


def prologue(program: Program, target: Target, block: Dim, groups: Dim, private: Sequence[Private]) -> Program:
    """The kernel, which computes the local ids itself, and enables only the lanes of work items.

    A thread finds its part of private memory by its number in the launch, so that the number of the hardware thread,
    from which kernels compute it, is 0.

    Args:
        program: the kernel as IGC printed it.
        target: the GPU.
        block: work items of a workgroup.
        groups: workgroups.
        private: the memory of each thread.
    """
    lanes, items, grf = program.simd_size, math.prod(block), target.grf_bytes
    item, x, y, z, row = (Variable(f"Own_{n}", "ud", lanes, "wordx32") for n in ("item", "x", "y", "z", "row"))
    lane = Variable("Own_lane", "uw", max(lanes, 8), "wordx32")
    first, thread, mask = (Variable(f"Own_{n}", "ud", 1, "dword") for n in ("first", "thread", "mask"))
    private_address = Variable("Own_place", "uq", 1, "qword")
    busy, idle = Predicate("Own_busy", lanes), Predicate("Own_idle", lanes)
    at = program.labels[program.functions[0]] + 1
    # In the modes that the kernel sets in its first instruction.
    at += getattr(program.instructions[at].values.get("dst"), "var", None) is STATE["%cr0"]
    where, body = program.instructions[at].where, list[Instruction]()

    def each(name: str, to: Variable | Flag, *sources: Any, size: int = lanes, first: int = 0, **others: Any) -> None:
        dst = Destination(to, *_place(to, first, grf)) if isinstance(to, Variable) else to
        values = {**others, "dst": dst, **{f"src{n}": source for n, source in enumerate(sources)}}
        body.append(Instruction(name, values, size, "M1_NM", where=where))

    def once(name: str, to: Variable, source: Region, *others: Any) -> None:
        each(name, to, source, *others, size=1)

    def divided(source: Variable, by: int, quotient: Variable, rest: Variable) -> None:
        if by == 1:
            each("mov", quotient, Region(source))
            each("mov", rest, Immediate(0, "ud"))
            return
        # Exact for numbers and divisors of 11 bits.
        each("mul", quotient, Region(source), Immediate(-(-(1 << 22) // by), "ud"))
        each("shr", quotient, Region(quotient), Immediate(22, "ud"))
        each("mul", rest, Region(quotient), Immediate(2**32 - by, "ud"))
        each("add", rest, Region(rest), Region(source))

    each("mov", lane, Immediate(0x76543210, "v"), size=8)
    for half in (8, 16)[: lanes.bit_length() - 4]:
        each("add", lane, Region(lane), Immediate(half, "uw"), size=half, first=half)
    number = _scalar(HEADER["%r0"], 2)
    once("mul", first, number, Immediate(lanes, "ud"))
    each("add", item, Region(lane), _scalar(first))
    divided(item, block[0], row, x)
    divided(row, block[1], z, y)
    # Those of 16 bits of all lanes in each dimension begin at a register.
    plane = -(-2 * lanes // grf) * grf
    for entry in program.inputs:
        if is_local_id(program, entry, target):
            dimension, byte = divmod(entry.offset - grf, plane)
            source = (x, y, z)[dimension]
            each(
                "mov",
                entry.var,
                Region(source, *_place(source, byte // 2, grf)),
                size=min(lanes, entry.var.count),
            )
    if private:
        once("mul", thread, _scalar(HEADER["%group_id_z"]), Immediate(groups[1], "ud"))
        once("add", thread, _scalar(thread), _scalar(HEADER["%group_id_y"]))
        once("mul", thread, _scalar(thread), Immediate(groups[0], "ud"))
        once("add", thread, _scalar(thread), _scalar(HEADER["%group_id_x"]))
        once("mul", thread, _scalar(thread), Immediate(-(-items // lanes), "ud"))
        once("add", thread, _scalar(thread), number)
    input_variables = {entry.var.name: entry.var for entry in program.inputs} | STATE
    for part in private:
        once("mul", private_address, _scalar(thread), Immediate(part.bytes, "ud"))
        once("add", private_address, _scalar(private_address), Immediate(part.address, "uq"))
        once("mov", input_variables[part.input], _scalar(private_address))
    # The lanes with which a thread begins. Engines have no such register: the kernel reads a variable.
    begun, rest = _scalar(STATE["%sr0"], 2), list(program.instructions[at:])
    reading = [n for n, inst in enumerate(rest) if begun in inst.sources]
    if reading:
        each("cmp", Flag(busy), Region(item), Immediate(items, "ud"), condition="lt")
        each("mov", mask, Flag(busy), size=1)
    for n in reading:
        values = {name: _scalar(mask) if value == begun else value for name, value in rest[n].values.items()}
        rest[n] = rest[n].replaced(values=values)
    if items % lanes:
        each("cmp", Flag(idle), Region(item), Immediate(items, "ud"), condition="ge")
        body.append(Instruction("goto", {"label": "Own_end"}, lanes, "M1", Guard(idle), where=where))
        end = next(n for n, inst in enumerate(rest) if inst.name == "ret" and (inst.mask, inst.exec_size) == ("M1", 1))
        rest.insert(end, Instruction(LABEL, {"label": "Own_end"}, where=rest[end].where))
    return structs.replace(
        program,
        variables=(*program.variables, item, x, y, z, row, lane, first, thread, mask, private_address),
        predicates=(*program.predicates, busy, idle),
        instructions=(*program.instructions[:at], *body, *rest),
    )


def _place(var: Variable, element: int, grf_bytes: int) -> tuple[int, int]:
    """The row and the column of an element."""
    row, at = divmod(element * var.format.bytes, grf_bytes)
    return row, at // var.format.bytes


def _scalar(var: Variable, col: int = 0) -> Region:
    return Region(var, 0, col, 0, 1, 0)


# Arguments.


def _fits(actual: np.dtype[Any], expected: np.dtype[Any]) -> bool:
    """Whether elements of a type are passed for those of another: of its size, and no float for an integer.

    Unsigned integers stand for any bits.
    """
    swapped = (expected.kind == "f" and actual.kind == "i") or (expected.kind != "f" and actual.kind == "f")
    return actual.itemsize == expected.itemsize and not swapped


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
    if element and element[0].itemsize == 1 and not argument.dtype.hasobject:
        # C programs declare buffers of any elements so.
        bytes_each = 4 if element[1] == 3 else element[1]
        if argument.nbytes % bytes_each:
            raise TypeError(
                f"{title} is {parameter.type}, elements of {bytes_each} bytes, but got an array of {argument.nbytes} "
                "bytes"
            )
    elif element and not _fits(plain.dtype, element[0]):
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
            expected = f"{count} numbers" if count > 1 else "a number"
            actual = f"{argument.size} of type {argument.dtype}" if argument.ndim else f"one of type {argument.dtype}"
            raise TypeError(f"{title} is {parameter.type}, {expected} of type {kind}, but got {actual}")
        return data.ljust(size or len(data), b"\0")
    if size is not None and len(data) != size:
        hint = "; np.dtype(..., align=True) pads structures as C does" if argument.dtype.fields else ""
        raise TypeError(f"{title} is {parameter.type}, which has {size} bytes, but got {len(data)} bytes{hint}")
    return data


# printf of OpenCL C: the buffer into which kernels write records, and the text that they say.


BUFFER_BYTES = 1 << 22
"""The size of the buffer."""

FIRST_RECORD = 4
"""Where the first record begins: after the offset of the next one."""

_SCALARS = {1: "<i1", 2: "<i2", 3: "<i4", 4: "<f4", 6: "<i8", 7: "<u8", 8: "<f8"}

_VECTORS = {9: "<i1", 10: "<i2", 11: "<i4", 12: "<i8", 13: "<f4", 14: "<f8"}

_STRING = 5

_CONVERSION = re.compile(rb"%(?:%|([-+ #0]*\d*(?:\.\d+)?)(?:v\d+)?(hh|hl|h|ll|l|j|z|t)?([a-zA-Z]))")


def printed(data: bytes, strings: Mapping[int, bytes]) -> str:
    """The text of a buffer of printf.

    Args:
        data: the buffer: the offset after the last record, then records: the address of the format, then for each
            argument its kind and value.
        strings: memory in which strings lie, by its address.
    """

    def string(address: int) -> bytes:
        for base, data in strings.items():
            if base <= address < base + len(data):
                return data[address - base :].split(b"\0", 1)[0]
        return b"(null)"

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little")

    out, at, end = [], FIRST_RECORD, min(number(0, 4), len(data))
    while at + 8 <= end:
        text = string(number(at, 8))
        at, last = at + 8, 0
        for m in _CONVERSION.finditer(text):
            out.append(text[last : m.start()])
            last = m.end()
            if m[0] == b"%%":
                out.append(b"%")
                continue
            kind, at = number(at, 4), at + 4
            if kind == _STRING:
                out.append((b"%" + m[1] + b"s") % string(number(at, 8)))
                at += 8
                continue
            count = 1
            if kind in _VECTORS:
                count, at = number(at, 4), at + 4
            dtype = np.dtype({**_SCALARS, **_VECTORS}[kind])
            values = np.frombuffer(data, dtype, count, at)
            at += -(-count * dtype.itemsize // 4) * 4
            out.append(b",".join(_formatted(m[1], m[2], m[3], v) for v in values))
        out.append(text[last:])
    return b"".join(out).decode(errors="replace")


def _formatted(flags: bytes, length: bytes | None, conversion: bytes, value: Any) -> bytes:
    """A number as a conversion of C's printf shows it."""
    if conversion in b"aA":
        shown = float(value).hex().encode()
        return shown.upper() if conversion == b"A" else shown
    if conversion in b"eEfFgG":
        return bytes((b"%" + flags + conversion) % float(value))
    bits = {b"hh": 8, b"h": 16}.get(length or b"", 8 * value.dtype.itemsize)
    whole = int(value) & (1 << bits) - 1
    if conversion == b"c":
        return bytes((b"%" + flags + b"c") % (whole & 0xFF))
    if conversion == b"p":
        return b"%#x" % whole
    if b"#" in flags and (conversion == b"o" or not whole):
        # C writes octal numbers with one zero before them, and no prefix of zero.
        digits = len(b"%o" % whole) + 1 if whole else 1
        flags = flags.replace(b"#", b"") + (b"" if b"." in flags else b".%d" % digits)
    if conversion in b"di" and whole >> bits - 1:
        whole -= 1 << bits
    return bytes((b"%" + flags + (conversion if conversion in b"xXo" else b"d")) % whole)
