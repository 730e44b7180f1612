"""Running native code: workers, their memory, and their calls of the interpreter."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from xegpu_py.cache import NO_CACHE, Cache
from xegpu_py.deferred import deferred
from xegpu_py.engines.faults import AccessFault, LocalMemory, RuntimeFault, aligned
from xegpu_py.engines.jit.checks import LocalShadow, RaceSuspected
from xegpu_py.engines.jit.host import Host, chosen_host, take
from xegpu_py.engines.jit.native_code import driver, native_program, processors
from xegpu_py.engines.jit.native_launch import NativeLaunch, Outcome
from xegpu_py.engines.jit.native_launch_struct import (
    FULL_CALL,
    NOT_MISPLACED,
    SEMANTICS_CALL,
    TABLES,
    TRAFFIC,
    Context,
    Frame,
    Status,
)
from xegpu_py.engines.jit.packed_operand_cache import Panels
from xegpu_py.engines.jit.thread_function import frame_of
from xegpu_py.engines.operands import ENDED, MAX_CALLS, RegisterPositions, new_batch
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.elementary import table
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program
from xegpu_py.visa.spec import LANES

if TYPE_CHECKING:
    from concurrent.futures import Future

    from xegpu_py.engines import interpreter as interpreter_module
    from xegpu_py.engines.interpreter import Interpreter
    from xegpu_py.engines.jit.host import Helper
    from xegpu_py.engines.operands import Batch
else:
    interpreter_module = deferred("xegpu_py.engines.interpreter")

_POLL = 0.05
"""Seconds between checks for signals and updates of the progress bar."""

_PATIENCE = 32
"""Rounds of scheduling after which the caller's thread returns to Python, which checks for signals. A round of 32
threads that multiply takes about a millisecond; where rounds are shorter there are more of them."""

_MOST_PATIENCE = 16 * _PATIENCE

_FOREVER = 1 << 62

_LINE = 128
"""Bytes: at least the size of a cache line of every host."""

_ENOUGH = 32
"""Threads of a workgroup that share matrices well enough among themselves: more at once evict data from the caches."""

_TOGETHER = 64

_TOGETHER_BYTES = 1 << 20
"""The largest number of threads of several workgroups that run together, and their largest memory."""

BRIEF = 2e-4
"""The duration in seconds of a launch below which it uses no other threads. To wake them takes half as long, to start
the first ones milliseconds. At 0 all launches use them."""


class _WorkerSlot:
    """The memory of one running workgroup, or of several that run together."""

    def __init__(self, frame: Frame, threads: int, program: Program) -> None:
        self.threads = threads
        self.blocks = aligned(threads * frame.bytes)
        self.slm = aligned(max(program.slm_bytes, 8))
        self.barriers = aligned(16 * frame.barriers).view(np.int64)
        self.group = 0
        self.shadow: LocalShadow | None = None
        if frame.races:
            self.shadow = LocalShadow(program, threads, frame.barriers)
        self._addresses = [memory.ctypes.data for memory in (self.blocks, self.slm, self.barriers)]

    def use(self, context: Context) -> None:
        """Select it for native code."""
        context.blocks, context.slm, context.barriers = self._addresses
        if self.shadow:
            self.shadow.use(context)


class _Mailbox:
    """State that the workers of a launch share: the next workgroup, a stop flag, and the initial state of threads.

    All workers write `next` and often read `stop`, so that the two are in different cache lines.
    """

    def __init__(self, frame: Frame) -> None:
        cache_lines = aligned(2 * _LINE).view(np.int64)
        self.next, self.stop = cache_lines[:1], cache_lines[_LINE // 8 :]
        self.template = aligned(frame.initial_bytes)
        self.shared_at, self.template_at = cache_lines.ctypes.data, self.template.ctypes.data


class Jit:
    """A program as native code.

    Attributes:
        program: the program, which must be valid.
        layout: where its variables lie.
        model: the rounding model of dpas.
        code: its code.
    """

    def __init__(
        self,
        program: Program,
        layout: RegisterPositions,
        model: Model = "fma",
        *,
        divergent: bool | None = None,
        keep: bool = False,
        single_thread: bool = True,
        cache: Cache = NO_CACHE,
        quick: bool = True,
        host: Host | None = None,
    ) -> None:
        """Compile a program.

        Args:
            divergent: whether each lane has its own program counter; by default whether the program has a `goto`.
            keep: whether registers contain all results at the end, also those that the program does not read.
            single_thread: whether only this object uses the code; else equal programs share it.
            cache: the cache on disk for the code.
            quick: whether the code may be compiled quickly first.
            host: the CPU for which code is generated; this machine must be able to run that code. The default is the
                CPU that the environment names, or else this machine's CPU (see `chosen_host`).
        """
        self.program, self.layout, self.model = program, layout, model
        self.frame = frame_of(self.program, self.layout)
        native, self.code = native_program(
            program,
            layout,
            model,
            host or chosen_host(),
            divergent=divergent,
            keep=keep,
            single_thread=single_thread,
            cache=cache,
            quick=quick,
        )
        self.divergent, self.starts = native.divergent, native.starts
        self.panel_bytes, self.step_bytes = native.panel_bytes, native.step_bytes
        self.input_bytes, self.independent = native.input_bytes, native.independent
        self.driver = driver(cache)
        local_id_offsets = [self.layout.offset(i.var) for i in self.program.inputs if i.kind == "LOCAL_ID"]
        self.local_ids = np.array(local_id_offsets, np.int64)
        self._lengths = np.diff([*self.starts, len(program.instructions)])
        # Only the tables that the program uses are computed.
        self._tables = [table(n, "hf") if n in native.tables else np.zeros(0, np.uint16) for n in TABLES]
        self.tables = np.array([t.ctypes.data for t in self._tables], np.uint64)
        self._spare: list[_Worker] = []
        self._boards: list[_Mailbox] = []
        # Whether the calling thread alone would have ended the last launch, and so may the next one, within `BRIEF`.
        self._brief = BRIEF > 0

    @cached_property
    def interpreter(self) -> Interpreter:
        """The interpreter, which reports errors and computes rare cases."""
        return interpreter_module.Interpreter(self.program, self.layout, self.model)

    def worker(self, number: int) -> _Worker:
        """A worker with its memory, an unused one if possible, since the allocation of memory takes long."""
        try:
            spare_worker = self._spare.pop()
        except IndexError:
            return _Worker(self, number)
        spare_worker.context.worker = number
        return spare_worker

    def board(self) -> _Mailbox:
        """Shared state for a launch, reused where possible; all of it is zero."""
        try:
            spare_board = self._boards.pop()
        except IndexError:
            return _Mailbox(self.frame)
        spare_board.next[0] = spare_board.stop[0] = 0
        spare_board.template.fill(0)
        return spare_board

    def keep(self, workers: Sequence[_Worker], board: _Mailbox) -> None:
        """Keep the workers of a launch and their shared state for the next launch."""
        self._spare.extend(workers)
        self._boards.append(board)

    def _side_by_side(self, launch: NativeLaunch, workers: int) -> NativeLaunch:
        """The launch, in which adjacent workgroups run together if their threads load the same matrices.

        Their number is limited by the size of a second-level cache, and by the number of workers, which share the work.
        """
        while self.panel_bytes and self.independent and launch.group_size < _ENOUGH and launch.chosen is None:
            wider_launch, higher_launch = (
                replace(launch, across=2 * launch.across),
                replace(launch, down=2 * launch.down),
            )
            for candidate in (
                (wider_launch, higher_launch) if launch.across <= launch.down else (higher_launch, wider_launch)
            ):
                fits_cache = candidate.threads <= _TOGETHER and candidate.threads * self.frame.bytes <= _TOGETHER_BYTES
                even = candidate.grid[0] % candidate.across == candidate.grid[1] % candidate.down == 0
                if fits_cache and even and (candidate.groups % workers == 0 or candidate.groups >= 8 * workers):
                    launch = candidate
                    break
            else:
                break
        return launch

    def run(
        self, launch: NativeLaunch, threads: int | None = None, progress: Callable[[int], None] | None = None
    ) -> Outcome:
        """Run workgroups.

        Args:
            threads: threads of the operating system; by default one for each processor.
            progress: is called from time to time with the number of workgroups that have ended.

        Raises:
            RuntimeFault: if an access is refused, or in a deadlock.
            RaceSuspected: if races are looked for, and two accesses may race.
            KeyboardInterrupt: if the user interrupts the launch; the effects of instructions that ran remain.
        """
        self.code.optimize_if_hot()
        workers = threads or processors()
        launch = self._side_by_side(launch, workers)
        team = _ThreadTeam(self, launch, max(1, min(workers, launch.groups)))
        self._brief = team.run(progress, self._brief)
        executed, traffic = team.counts()
        self.keep(team.workers, team.board)
        counts = np.repeat(executed, self._lengths)
        misplaced = min(int(worker.traffic[-1]) for worker in team.workers)
        return Outcome(
            counts,
            Counter({k: int(n) for k, n in zip(TRAFFIC, traffic) if n}),
            None if misplaced == NOT_MISPLACED else misplaced,
        )


class _ThreadTeam(Struct, dict=True):
    """The workers of one launch."""

    jit: Jit
    launch: NativeLaunch
    size: int
    faults: list[tuple[int, BaseException]] = field(default_factory=list)
    stuck: dict[int, Array] = field(default_factory=dict)
    tasks: list[Future[None]] = field(default_factory=list)
    helpers: list[Helper] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        # Kept for the whole launch, since this one or another may replace it.
        self.codes = [self.jit.code.loaded]
        self.board = self.jit.board()
        self.next, self.stop, template = self.board.next, self.board.stop, self.board.template
        self.table = self.launch.table
        template[: len(self.launch.registers)] = self.launch.registers
        if self.launch.written is not None:
            start = self.jit.frame.written
            template[start : start + len(self.launch.written)] = self.launch.written
        template[self.jit.frame.status :].view(np.int32)[0] = Status.YIELDED
        self.next[0] = self.launch.first
        self.chunk = max(1, self.launch.groups // (16 * self.size))
        self.workers = [self.new_worker(0)]

    def new_worker(self, number: int) -> _Worker:
        """A worker of this launch."""
        worker = self.jit.worker(number)
        worker.begin(self)
        return worker

    def fail(self, group: int, error: BaseException) -> None:
        """Record a failure, and stop all workers."""
        with self._lock:
            self.faults.append((group, error))
        self.stop[0] = 1

    def run(self, progress: Callable[[int], None] | None, brief: bool) -> bool:
        """Run all workgroups, some of them on this thread.

        Args:
            brief: whether this thread begins alone.

        Returns:
            Whether this thread alone would have ended the launch within `BRIEF`.
        """
        own_worker = self.workers[0]
        start_time = time.perf_counter()
        try:
            if not brief and self.size > 1:
                self._start()
            own_start_time, self._counted = time.perf_counter(), time.thread_time()
            self._own_start = self._counted
            # This thread returns regularly to check for signals and to show progress.
            for _ in own_worker.steps(brief and self.size > 1):
                if not self.tasks and self.size > 1 and time.perf_counter() - start_time > BRIEF:
                    self._start()
                if self.jit.code.is_quick:
                    self._count_time()
                    self._optimize_if_hot()
                self._show(progress)
            if self.jit.code.is_quick:
                self._count_time(ends_launch=True)
            own_time = time.perf_counter() - own_start_time
            for task in self.tasks:
                # No work is left: a task that has not begun is not needed.
                while not (task.cancel() or task.done()):
                    with contextlib.suppress(TimeoutError):
                        task.result(_POLL)
                    self._show(progress)
        except BaseException:
            self.stop[0] = 1
            for task in self.tasks:
                if not task.cancel():
                    task.result()
            raise
        finally:
            for helper in self.helpers:
                helper.rest()
        if self.launch.log:
            own_worker.take()
        self.end()
        # This thread alone would have taken as much longer as it ran fewer workgroups.
        return own_time * self._ended() <= BRIEF * own_worker.context.ended

    def _count_time(self, ends_launch: bool = False) -> None:
        now = time.thread_time()
        self.jit.code.count(now - self._counted, ends_launch)
        self._counted = now

    def _optimize_if_hot(self) -> None:
        """Let workers run optimized code from their next workgroups on, if the launch takes long."""
        ended = self._ended()
        seconds_left = (self._counted - self._own_start) * (self.launch.groups - ended) / ended if ended else 0
        if self.jit.code.optimize_if_hot(seconds_left):
            self.codes.append(self.jit.code.loaded)
            for worker in self.workers:
                worker.context.thread = self.codes[-1].addresses[0]
            self._counted = time.thread_time()

    def _start(self) -> None:
        """Let other threads help."""
        self.helpers = take(self.size - 1)
        for number, helper in enumerate(self.helpers, 1):
            self.workers.append(self.new_worker(number))
            self.tasks.append(helper.submit(self.workers[-1].run))

    def _show(self, progress: Callable[[int], None] | None) -> None:
        if progress:
            progress(self._ended() * self.launch.across * self.launch.down)

    def _ended(self) -> int:
        """How many groups of workgroups have ended."""
        return sum(int(worker.context.ended) for worker in self.workers)

    def counts(self) -> tuple[Array, Array]:
        """Executions of each block and bytes moved, summed over all workers."""
        executed, traffic = (np.copy(x) for x in (self.workers[0].executed, self.workers[0].traffic))
        for worker in self.workers[1:]:
            executed += worker.executed
            traffic += worker.traffic
        return executed, traffic[: len(TRAFFIC)]

    def end(self) -> None:
        """Raise the error that was found; if there are several, that of the first workgroup."""
        if self.faults:
            raise min(self.faults, key=lambda f: f[0])[1]
        if self.stuck:
            raise self._deadlock()

    def _deadlock(self) -> RuntimeFault:

        size, groups = self.launch.threads, sorted(self.stuck)
        batch = new_batch(len(groups), size, 8, 1, 0, 0, self.launch.memory, divergent=False, watch=False)
        batch.pc = np.concatenate([self.stuck[g] for g in groups])
        name = self.launch.name
        return self.jit.interpreter.deadlock(batch, lambda thread: name(groups[thread // size], thread % size))


class _Worker:
    """One thread of the operating system, and its state for native code."""

    def __init__(self, jit: Jit, number: int) -> None:
        self.jit, frame = jit, jit.frame
        self._frame = frame
        self.executed = aligned(8 * len(jit.starts)).view(np.int64)
        self.traffic = aligned(8 * (len(TRAFFIC) + 1)).view(np.int64)
        self.slot: _WorkerSlot | None = None
        self._spare: list[_WorkerSlot] = []
        # Rounds after which a launch first returns to Python, as found by earlier ones, whose rounds may be shorter.
        self._patience = _PATIENCE
        self._panels: Panels | None = None
        if jit.panel_bytes:
            self._panels = Panels(jit.panel_bytes, jit.step_bytes)
        self._full_call = FULL_CALL(self.take)
        self._semantics_call = SEMANTICS_CALL(lambda _, at, block, active: self.call_semantics(at, block, active))
        self.context = Context.from_buffer(aligned(ctypes.sizeof(Context)).data)
        Context.__init__(
            self.context,
            semantics=ctypes.cast(self._semantics_call, ctypes.c_void_p).value,
            worker=number,
            executed=self.executed.ctypes.data,
            traffic=self.traffic.ctypes.data,
            slm_bytes=jit.program.slm_bytes,
            barrier_bytes=16 * frame.barriers,
            block_bytes=frame.bytes,
            initial_bytes=frame.initial_bytes,
            status_offset=frame.status,
            given=jit.input_bytes,
            registers=frame.registers,
            local_ids=jit.local_ids.ctypes.data,
            local_id_count=len(jit.local_ids),
            tables=jit.tables.ctypes.data,
            panels=self._panels.address if self._panels else 0,
        )

    def begin(self, team: _ThreadTeam) -> None:
        """Prepare for a launch."""
        self.team, self.launch = team, team.launch
        self.executed[:] = 0
        self.traffic[:] = 0
        self.traffic[-1] = NOT_MISPLACED
        launch, context = team.launch, self.context
        context.thread = team.codes[-1].addresses[0]
        if self.slot is None or self.own.threads != launch.threads or launch.shadow:
            self._spare.clear()
            self.slot, self._patience = self._new_slot(), _PATIENCE
        if launch.shadow:
            launch.shadow.use(self.context)
        if launch.log:
            launch.log.use(context, ctypes.cast(self._full_call, ctypes.c_void_p).value or 0)
        context.buffers, context.table = len(team.table), team.table.ctypes.data
        context.next, context.stop = team.board.shared_at, team.board.shared_at + _LINE
        context.groups = launch.first + launch.groups
        context.chunk, context.threads = team.chunk, launch.threads
        context.group_threads, context.across = launch.group_size, launch.across
        context.template = team.board.template_at
        context.grid_x, context.grid_y, _ = launch.grid
        context.items = launch.items
        context.block_x, context.block_y = launch.block
        context.first = context.last = context.ended = context.pause = 0
        context.idle, context.patience = 0, _FOREVER
        if self._panels:
            # A load that is recorded is one of the thread's own.
            self._panels.begin(launch.threads, not (launch.shadow and launch.shadow.records_loads))

    def _new_slot(self) -> _WorkerSlot:
        """Memory for a workgroup, which native code clears before it runs one."""
        return self._spare.pop() if self._spare else _WorkerSlot(self._frame, self.launch.threads, self.jit.program)

    def run(self) -> None:
        """Run workgroups until there are no more."""
        try:
            for _ in self._steps():
                pass
        except BaseException as error:
            self.team.fail(self.own.group, error)

    def steps(self, brief: bool) -> Iterator[None]:
        """Run workgroups until there are no more, in steps between which Python handles signals.

        Args:
            brief: whether the first step is a short one.

        Raises:
            KeyboardInterrupt: if the user interrupted the launch.
        """
        try:
            for _ in self._steps(_PATIENCE if brief else self._patience):
                yield
        except Exception as error:
            self.team.fail(self.own.group, error)

    @property
    def own(self) -> _WorkerSlot:
        """The memory of the running workgroup."""
        assert self.slot is not None
        return self.slot

    def _native(self, call: Callable[[Context], None], patience: int) -> Iterator[Status]:
        """Run native code, and resume a workgroup that it left before its end; return the last status."""
        self.context.patience = patience
        call(self.context)
        while (status := Status(self.context.status)) == Status.PAUSED:
            yield status
            self.context.patience = patience
            self.jit.driver.resume(self.context)
            if self.context.status == Status.ENDED and call == self.jit.driver.launch:
                self.context.first += 1
                self.context.ended += 1
        yield status

    def _steps(self, patience: int = _FOREVER) -> Iterator[None]:
        waiting: list[_WorkerSlot] = []
        context, driver = self.context, self.jit.driver
        while True:
            self.own.use(context)
            start_time, paused = time.perf_counter(), False
            for status in self._native(driver.launch, patience):
                if status == Status.PAUSED:
                    paused = True
                    yield
            # The time tells nothing if the launch ended before the last of these rounds.
            used_up = paused or context.patience <= 0
            if used_up and patience < _MOST_PATIENCE and time.perf_counter() - start_time < _POLL / 10:
                patience *= 2
                self._patience = min(patience, _MOST_PATIENCE // 4)
            if status == Status.YIELDED:
                # This workgroup waits for other workgroups, which run before it continues.
                self.own.group = context.first
                waiting.append(self.own)
                self.slot = self._new_slot()
                context.first += 1
                context.pause = 1
            elif status != Status.ENDED:
                self.own.group = context.first
                self._fine(status)
                # Other workgroups run although the threads of this one are stuck.
                if status != Status.DEADLOCK:
                    return
                context.first += 1
            if context.first < context.last:
                yield
                continue
            if not waiting and self.team.next[0] >= context.groups:
                return
            yield
            for slot in list(waiting):
                own_block, self.slot = self.own, slot
                slot.use(context)
                for status in self._native(driver.resume, patience):
                    if status == Status.PAUSED:
                        yield
                if status != Status.YIELDED:
                    waiting.remove(slot)
                    context.ended += 1
                    if not self._fine(status) and status != Status.DEADLOCK:
                        return
                    self._spare.append(slot)
                self.slot = own_block
            context.pause = bool(waiting)

    def _fine(self, status: Status) -> bool:
        """Whether to continue."""
        if status == Status.FAULT:
            self.team.fail(self.own.group, self._fault())
        elif status == Status.DEADLOCK:
            self.team.stuck[self.own.group] = self._program_counters()
        return status == Status.ENDED

    def take(self) -> None:
        """Take the records of the log."""
        try:
            assert self.launch.log
            self.launch.log.take()
        except Exception as error:
            self.team.fail(self.own.group, error)

    # Calls of the interpreter.

    def _batch(self, blocks: Array) -> Batch:
        """Threads of the workgroup as a batch of the interpreter, which shares the registers of native code."""

        frame, program = self._frame, self.jit.program
        threads = len(blocks)
        batch = new_batch(
            1, threads, 8, frame.predicates, frame.barriers - 1, 0, self.launch.memory, divergent=False, watch=False
        )
        batch.regs = blocks[:, : frame.registers]
        batch.__post_init__()
        batch.flags = unpacked(blocks[:, frame.flags : frame.pc])
        if frame.watch:
            batch.written = blocks[:, frame.written : frame.written + frame.registers] != 0
        batch.slm = LocalMemory(self.own.slm[: program.slm_bytes], program.slm_bytes)
        batch.numbers = blocks[:, 8:12].copy().view(np.uint32)[:, 0].astype(np.int64)
        batch.group_size = self.launch.group_size
        return batch

    def call_semantics(self, at: int, block: int, active: int) -> int:
        """Run an instruction of a thread with its semantic function; return 0 if it fails."""

        try:
            self._call_semantics(at, block, active)
        except (AccessFault, interpreter_module.UnwrittenFault):
            return 0
        return 1

    def _call_semantics(self, at: int, block: int, active: int) -> None:
        frame = self._frame
        memory = (ctypes.c_uint8 * frame.bytes).from_address(block)
        blocks = np.ctypeslib.as_array(memory).reshape(1, -1)
        batch = self._batch(blocks)
        lanes = unpacked(np.array([[active]], np.int32).view(np.uint8))[:, 0]
        if INSTRUCTIONS[self.jit.program.instructions[at].name].calls:
            # Its program counter tells how deep it is.
            batch.stack, batch.frames = np.zeros((1, MAX_CALLS, LANES), np.int64), [[]]
            counters = dwords(blocks, frame.lane_pc, LANES)[0][lanes[0]]
            at += int(counters[0]) >> self.jit.program.frame_bits << self.jit.program.frame_bits
        with np.errstate(all="ignore"):
            self.jit.interpreter.run_one(at, batch, None if lanes.all() else lanes)
        blocks[:, frame.flags : frame.pc] = packed(batch.flags)

    def _block(self, thread: int) -> Array:
        size = self._frame.bytes
        return self.own.blocks[thread * size : (thread + 1) * size]

    def _dword(self, thread: int, offset: int) -> int:
        return int(self._block(thread)[offset : offset + 4].view(np.int32)[0])

    def _name(self, thread: int) -> str:
        return self.launch.name(self.own.group, thread)

    def _fault(self) -> BaseException:
        """The error of the instruction before which native code stopped, as its semantic function reports it."""

        if self.context.race:
            return RaceSuspected()
        thread = int(self.context.faulty)
        at = self._dword(thread, self._frame.pc)
        active = self._dword(thread, self._frame.active) if self.jit.divergent else -1
        try:
            self._call_semantics(at, self._block(thread).ctypes.data, active)
        except AccessFault as fault:
            return self.jit.interpreter.access_fault(fault, at, np.zeros(1, np.int64), lambda _: self._name(thread))
        except interpreter_module.UnwrittenFault as fault:
            return self.jit.interpreter.unwritten_fault(fault, at, np.zeros(1, np.int64), lambda _: self._name(thread))
        return RuntimeError(f"native code refused instruction {at}, which the interpreter runs")

    def _program_counters(self) -> Array:
        blocks = self.own.blocks.reshape(-1, self._frame.bytes)
        pc, status = (dwords(blocks, p)[:, 0].astype(np.int64) for p in (self._frame.pc, self._frame.status))
        return np.where(status == Status.ENDED, ENDED, pc)


def dwords(blocks: Array, offset: int, count: int = 1) -> Array:
    """The dwords of threads' blocks from an offset on, int32[threads, count]."""
    return blocks[:, offset : offset + 4 * count].view(np.int32)


def packed(bits: Array) -> Array:
    """bool[threads, dwords, 32] as dwords, uint8[threads, 4 * dwords]."""
    return np.packbits(bits, axis=-1, bitorder="little").reshape(len(bits), -1)


def unpacked(dwords_of_bits: Array) -> Array:
    """Dwords, uint8[threads, 4 * dwords], as bool[threads, dwords, 32]."""
    bits = np.unpackbits(np.ascontiguousarray(dwords_of_bits), axis=-1, bitorder="little")
    return bits.astype(bool).reshape(len(dwords_of_bits), -1, LANES)
