"""Data that native code and Python share: the layout of a hardware thread's state, and the context of a worker."""

from __future__ import annotations

import ctypes
from enum import IntEnum

from msgspec import Struct

from xegpu_py.engines.operands import MAX_CALLS
from xegpu_py.visa.spec import LANES


class Status(IntEnum):
    """The reasons why native code returns."""

    ENDED = 0
    WAITING = 1
    """The thread waits at a barrier that is not complete."""
    YIELDED = 2
    """The thread has used its time slice in a loop: other threads run next."""
    FAULT = 3
    """The access of the next instruction is refused."""
    STOPPED = 4
    """The stop flag is set."""
    DEADLOCK = 5
    """Deadlock: all threads of a workgroup wait for signals that no thread sends."""
    MOVED = 6
    """The thread continues in another part of its function."""
    PAUSED = 7
    """The driver returns in the middle of a workgroup, so that Python can check for signals."""


STRIDES = 256
"""The number of messages whose strides are kept, a power of two."""

STRIDE_BYTES, ALLOCATION = 24, 16
"""The bytes that are kept of a message, and the offset of the number of its allocation; see `Frame.strides`."""

ENDED_PC = 1 << 30
"""The program counter of a lane that has ended."""

SLICE = 1 << 11
"""The time slice of a thread: the work in loops, as `control` counts it, after which others of its workgroup run. It is
small enough that they find matrices that they share in the caches, and large enough that changing threads costs little.
"""


class Frame(Struct, dict=True):
    """The layout of a thread's state: offsets in bytes in its block, which begins with the registers.

    Attributes:
        registers: bytes of its register file, a multiple of 64.
        predicates: number of predicates, each a dword.
        barriers: the number of barriers of a workgroup. The first one is for all of its threads.
        watch: whether reads of registers that were never written are detected.
        races: whether races are detected.
        logs: whether messages are recorded.
        calls: whether the program calls functions.
        flags: the predicates.
        pc: i32, the instruction at which the thread continues.
        status: i32, the last `Status`.
        signalled: i32, whether it has signalled the `barrier` at which it is.
        active: i32, the lanes that are enabled.
        lane_pc: i32[32], the instruction at which each lane continues.
        passed: i64[barriers], phases of each barrier that the thread has waited for.
        clock: i64, the instructions of the blocks that it has entered; only where messages are recorded.
        written: u8[registers], whether each byte of the registers was ever written; only where that is watched.
        stack: i32[MAX_CALLS, 32], where each lane continues after each of its calls; only in a program with calls.
        callers: the registers and predicates of the callers of each function, MAX_CALLS times; likewise.
        initial_bytes: bytes of the block that are initialized for each thread; the others keep earlier contents.
        strides: i64[`STRIDES`, 3], the last address of each message, its distance from the address before, and the
            number of the allocation in which a message was found last.
        bytes: size of the whole block.
    """

    registers: int
    predicates: int
    barriers: int
    watch: bool = False
    races: bool = False
    logs: bool = False
    calls: bool = False

    def __post_init__(self) -> None:
        self.flags = self.registers
        self.pc = self.flags + 4 * self.predicates
        self.status, self.signalled, self.active, self.lane_pc = (self.pc + 4 * n for n in range(1, 5))
        self.passed = -(-(self.lane_pc + 4 * LANES) // 8) * 8
        self.clock = self.passed + 8 * self.barriers
        self.written = -(-(self.clock + 8) // 64) * 64
        self.strides = self.initial_bytes = self.written + self.registers * self.watch
        self.stack = -(-(self.strides + STRIDE_BYTES * STRIDES) // 64) * 64
        self.callers = self.stack + 4 * LANES * MAX_CALLS * self.calls
        self.bytes = self.callers + self.caller_bytes * MAX_CALLS * self.calls

    @property
    def caller_bytes(self) -> int:
        """The bytes of the registers and predicates of a caller."""
        return -(-self.pc // 64) * 64


SEMANTICS_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)
"""Runs one instruction by its semantic function: the worker, the instruction's index, the thread's block and the
enabled lanes; whether it succeeded."""


COPY_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)
"""Copies an allocation, given by its number, before a launch changes it; whether it succeeded."""


FULL_CALL = ctypes.CFUNCTYPE(None)
"""Takes the records of a log that is full."""


class Context(ctypes.Structure):
    """The argument of native code: the state of a worker. Pointers are host addresses."""

    _fields_ = [
        ("buffers", ctypes.c_int64),  # number of allocations
        ("table", ctypes.c_void_p),  # i64[buffers, 3]: the result of `GlobalMemory.ranges`
        ("semantics", ctypes.c_void_p),  # a SEMANTICS_CALL
        ("worker", ctypes.c_int64),
        ("stop", ctypes.c_void_p),  # i32: not zero if all workers are to stop
        ("executed", ctypes.c_void_p),  # i64 for each basic block: the number of its executions
        ("traffic", ctypes.c_void_p),  # i64[7]: bytes of ugm loads, stores, atomics, and of slm; see NOT_MISPLACED
        ("slm", ctypes.c_void_p),  # the workgroup's shared local memory
        ("slm_bytes", ctypes.c_int64),
        ("barriers", ctypes.c_void_p),  # i64[barriers, 2]: signals towards the phase, and phases complete
        ("barrier_bytes", ctypes.c_int64),
        ("thread", ctypes.c_void_p),  # the function of a hardware thread
        ("threads", ctypes.c_int64),  # hardware threads of the workgroups that run together, which count as one
        ("group_threads", ctypes.c_int64),  # hardware threads of each of these workgroups
        ("across", ctypes.c_int64),  # number of workgroups that run together in each row, along x
        ("blocks", ctypes.c_void_p),  # the blocks of the workgroup's threads, one after the other
        ("block_bytes", ctypes.c_int64),
        ("initial_bytes", ctypes.c_int64),  # the value of `Frame.initial_bytes`
        ("status_offset", ctypes.c_int64),  # the offset of `Frame.status`
        ("template", ctypes.c_void_p),  # the block with which each thread starts
        ("given", ctypes.c_int64),  # bytes of the template's registers that threads may read before they write them
        ("registers", ctypes.c_int64),  # the value of `Frame.registers`
        ("local_ids", ctypes.c_void_p),  # i64[local_id_count]: offsets of the local ids in a thread's block
        ("local_id_count", ctypes.c_int64),
        ("next", ctypes.c_void_p),  # i64: the first workgroup that no worker has taken
        ("groups", ctypes.c_int64),  # number of workgroups
        ("chunk", ctypes.c_int64),  # number of workgroups that a worker takes at once
        ("first", ctypes.c_int64),  # the next one to run of the workgroups that this worker has taken
        ("last", ctypes.c_int64),  # the end of these workgroups, at which the worker takes others
        ("ended", ctypes.c_int64),  # number of workgroups that have ended
        ("pause", ctypes.c_int64),  # not zero if native code is to return before it takes other workgroups
        ("faulty", ctypes.c_int64),  # the thread of the workgroup that failed
        ("budget", ctypes.c_int64),  # work that a thread may still do in loops before others run
        ("patience", ctypes.c_int64),  # rounds of scheduling after which native code returns
        ("idle", ctypes.c_int64),  # rounds without progress of a workgroup before whose end native code returned
        ("progress", ctypes.c_int64),  # not zero if a thread has passed a barrier
        ("status", ctypes.c_int64),  # a `Status`: why native code returned
        ("grid_x", ctypes.c_int64),
        ("grid_y", ctypes.c_int64),
        ("items", ctypes.c_int64),  # work items of a thread
        ("block_x", ctypes.c_int64),
        ("block_y", ctypes.c_int64),
        ("tables", ctypes.c_void_p),  # pointers to the tables of 16-bit functions
        ("panels", ctypes.c_void_p),  # the worker's `Panels`
        ("current", ctypes.c_int64),  # the thread of the workgroup that runs
        # The state of race detection (`races`); null without --check=races.
        ("clocks", ctypes.c_void_p),  # of the workgroup
        ("clock_bytes", ctypes.c_int64),  # of these, what is zero when a workgroup begins
        ("local_shadow", ctypes.c_void_p),  # i64[3, granules]: stores, loads and atomics of shared local memory
        ("local_stride", ctypes.c_int64),  # bytes from those of stores to those of loads
        ("local_granule", ctypes.c_int64),  # binary logarithm of a granule's bytes
        ("shadow", ctypes.c_void_p),  # the same of global memory
        ("shadow_stride", ctypes.c_int64),
        ("granule", ctypes.c_int64),
        ("shadow_base", ctypes.c_int64),  # the address of global memory's first byte
        ("atomics", ctypes.c_int64),  # bits of memories that the program has atomics of: 2 global, 4 shared local
        ("plain", ctypes.c_int64),  # not zero if each signal at a barrier is a wait too
        ("locks", ctypes.c_void_p),  # i32 at each 64 bytes, for parts of global memory; null for one worker
        ("yield_", ctypes.c_void_p),  # lets other threads of the operating system run
        ("seen", ctypes.c_void_p),  # u8[buffers, 4]: see `checks.Shadow.seen`
        ("accessed", ctypes.c_int64),  # the allocation that the worker accessed last
        ("copy_", ctypes.c_void_p),  # a COPY_CALL
        ("race", ctypes.c_int64),  # not zero if two accesses may race
        # The log of messages (`checks.Log`).
        ("log", ctypes.c_void_p),  # i64[instructions + 1, 2]: the address of the next record, and how many fit
        ("full", ctypes.c_void_p),  # a FULL_CALL
        ("lanes", ctypes.c_void_p),  # i64[instructions]: lanes that acted
        ("path", ctypes.c_int64),  # how many more blocks are recorded that threads enter
    ]


def context_offset(name: str) -> int:
    """The offset of a field of `Context`."""
    return getattr(Context, name).offset


TRAFFIC = tuple((memory, category) for memory in ("ugm", "slm") for category in ("load", "store", "atomic"))
"""The memory and category of messages that each counter of `Context.traffic` counts."""


NOT_MISPLACED = (1 << 63) - 1
"""The number behind the counters of `Context.traffic` while no message is misplaced, and then the least number of
those that are (see `Layout.watches_columns`)."""


def traffic_offset(memory: str, category: str) -> int:
    """The index in `Context.traffic` of the counter of such messages."""
    return 8 * TRAFFIC.index((memory, category))


TABLES = ("rsqrt", "exp", "log", "sin", "cos")
"""The functions of 16-bit numbers whose results are tables in `Context.tables`."""
