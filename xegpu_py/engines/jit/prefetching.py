"""Prefetches of the host's memory that messages access, and of what they access the next time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from xegpu_py.engines.jit.ir_text import FunctionBody, LLVMValue
from xegpu_py.engines.jit.native_launch_struct import STRIDE_BYTES, STRIDES
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program, analysis


@analysis
def _messages(program: Program) -> list[int]:
    return [at for at, inst in enumerate(program.instructions) if INSTRUCTIONS[inst.name].is_message]


def stride_offset(program: Program, at: int) -> int:
    """The byte of `Frame.strides` at which those of message `at` begin. Messages that share them are not prefetched."""
    return STRIDE_BYTES * (bisect_left(_messages(program), at) % STRIDES)


def prefetch_next(
    code: FunctionBody, strides: LLVMValue, pointer: LLVMValue, prefetch: Callable[[LLVMValue], None]
) -> None:
    """Prefetch what a thread's message accesses the next time it is sent, in a loop or in another workgroup, if the
    last two of its strides were the same.

    Args:
        strides: see `Emitter.strides`.
        pointer: a pointer to the memory that the message accesses now.
        prefetch: a function that emits prefetches of the memory at a pointer.
    """
    address = code.cast("ptrtoint", pointer, "i64")
    stride_fields = [code.at(strides, at) for at in (0, 8)]
    last_address, last_stride = (code.load(at, "i64", 8) for at in stride_fields)
    stride = code.sub(address, last_address)
    code.store(address, stride_fields[0], 8)
    code.store(stride, stride_fields[1], 8)
    with code.when(code.and_(code.icmp("eq", stride, last_stride), code.icmp("ne", stride, 0))):
        prefetch(code.at(pointer, stride))


def prefetch_line(code: FunctionBody, pointer: LLVMValue, category: str) -> None:
    """Prefetch a line of memory into all levels of the cache of data, for a message of category `load` or `store`."""
    code.call("llvm.prefetch.p0", pointer, *(code.const(n, "i32") for n in (int(category == "store"), 3, 1)))
