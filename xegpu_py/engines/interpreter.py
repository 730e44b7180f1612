"""The interpreter: hardware threads at the same instruction run as one numpy operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct, structs

from xegpu_py.deferred import deferred
from xegpu_py.engines.faults import AccessFault, RuntimeFault
from xegpu_py.engines.operands import (
    ENDED,
    Batch,
    DelayedStores,
    RegisterPositions,
    Rows,
    data_offsets,
    indirect_offsets,
    masker,
    new_batch,
)
from xegpu_py.engines.races import RaceFault
from xegpu_py.engines.semantics import memory
from xegpu_py.engines.semantics.alu import Step, register_step
from xegpu_py.engines.semantics.control import CONTROL, STAY, Next
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.formats import Array
from xegpu_py.target import Target, verdict
from xegpu_py.target.message_rules import RULES
from xegpu_py.visa.allocate import Allocation
from xegpu_py.visa.dataflow import FACTORS, divergent_lanes, factors, has_calls
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import (
    Address,
    AddressOf,
    Destination,
    Flag,
    Indirect,
    Predicate,
    Region,
    Variable,
    first_byte,
)
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import LANES, BlockShape, DataShape, OperandSpec

if TYPE_CHECKING:
    from xegpu_py.visa import assembly
else:
    assembly = deferred("xegpu_py.visa.assembly")

# The interpreter: the definition of how a program runs.
#
# All threads of a batch that are at the same instruction run it at once. Divergent threads and lanes are grouped by
# program counter, and the group with the lowest program counter runs first, so that it converges with the others again.
# Lanes in functions run before their callers: each call makes their program counters less by a power of two.

_PATIENCE = 256
"""The number of runs of the threads farthest behind after which others run once; it is halved each time."""


class Observer(Protocol):
    """Is called after each instruction."""

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        """Instruction `index` ran for the threads `rows`."""


class Interpreter(Struct, dict=True):
    """A program that is prepared to run.

    Attributes:
        program: the program, which must be valid.
        layout: the positions of its variables.
        model: the rounding model of dpas.
        observer: an object that is called after each instruction, or None.
        order: chooses which threads run next; without it those that are farthest behind do. With it, threads run
            alone or a few together, and others may run after each message and at each barrier.
        delays: whether stores are delayed, with an `order`; see `DelayedStores`.
        tolerated: takes the first fault of each instruction that breaks a rule of the target, by its index. Such
            instructions run nevertheless. If it is None, the first fault ends the run.
    """

    program: Program
    layout: RegisterPositions
    model: Model = "fma"
    observer: Observer | None = None
    order: np.random.Generator | None = None
    delays: bool = False
    tolerated: dict[int, RuntimeFault] | None = None

    def __post_init__(self) -> None:
        self._prepared: dict[int, tuple[Step | None, Next | None]] = {}

    @cached_property
    def _frame(self) -> int:
        """The distance of the program counters of a function's lanes from those of its callers."""
        return 1 << self.program.frame_bits if has_calls(self.program) else ENDED

    @cached_property
    def _divergent(self) -> slice:
        """The number of lanes that can diverge. Other lanes run with the thread."""
        lanes = divergent_lanes(self.program)
        return slice(lanes.start, lanes.stop)

    def _prepare(self, at: int) -> tuple[Step | None, Next | None]:
        """The step of an instruction, or for control flow its `Next`, built on demand: native code needs few."""
        cached_step = self._prepared.get(at)
        if cached_step is None:
            inst, layout = self.program.instructions[at], self.layout
            if self.tolerated and at in self.tolerated:
                layout = structs.replace(layout, lenient=True)
            decide = CONTROL[inst.name](inst, self.program, layout) if inst.name in CONTROL else None
            step = None if decide else self._step(inst, layout)
            if layout.watch:
                decide = decide and watched_next(decide, inst, layout)
                step = step and watched_step(step, inst, layout)
            if step and inst.indirect:
                step = bounded_step(step, inst, layout)
            cached_step = self._prepared[at] = (step, decide)
        return cached_step

    @cached_property
    def _steps(self) -> list[Step | None]:
        return [self._prepare(at)[0] for at in range(len(self.program.instructions))]

    def _step(self, inst: Instruction, layout: RegisterPositions) -> Step:
        if inst.name in memory.STEPS:
            return memory.STEPS[inst.name](inst, layout, self.model)
        return register_step(inst, layout, self.model)

    def run(self, batch: Batch, name_thread: Callable[[int], str] = str) -> None:
        """Run a batch's threads until they end.

        Args:
            name_thread: names a thread in messages, from its index in the batch.

        Raises:
            RuntimeFault: if an access is refused, or in a deadlock.
        """
        runs, patience, favours = 0, _PATIENCE, 0
        batch.delayed = DelayedStores() if self.delays else None
        with np.errstate(all="ignore"):
            while True:
                runnable = (batch.pc < ENDED) & ~batch.waiting
                if not runnable.any():
                    if (batch.pc < ENDED).any():
                        raise self.deadlock(batch, name_thread)
                    if batch.delayed:
                        batch.delayed.end()
                    return
                if self.order is not None:
                    self._run_some(batch, runnable, self.order, name_thread)
                    continue
                counters = batch.pc[runnable]
                at = int(counters.min())
                runs = runs + 1 if (counters != at).any() else 0
                if runs > patience:
                    # The threads farthest behind may poll memory that others write.
                    distinct_counters = np.unique(counters)
                    at = int(distinct_counters[favours % len(distinct_counters)])
                    runs, patience, favours = 0, max(patience // 2, 1), favours + 1
                self._run_group(batch, runnable, at, name_thread)

    @cached_property
    def _pauses(self) -> Array:
        """The indices behind messages, at which other threads may run: int64[messages]."""
        specs = [INSTRUCTIONS[inst.name] for inst in self.program.instructions]
        return np.array([at + 1 for at, spec in enumerate(specs) if spec.is_message] + [ENDED])

    def _run_some(
        self, batch: Batch, runnable: Array, order: np.random.Generator, name_thread: Callable[[int], str]
    ) -> None:
        """Run some threads that are at one instruction until they have executed a message."""
        at = int(order.choice(batch.pc[runnable]))
        threads = np.flatnonzero(runnable & (batch.pc == at))
        some = np.zeros(batch.threads, bool)
        selected_threads = order.choice(
            threads, 1 if batch.delayed else order.integers(1, len(threads) + 1), replace=False
        )
        some[selected_threads] = True
        if batch.delayed:
            batch.delayed.thread = int(selected_threads[0])
        self._run_group(batch, some, at, name_thread, int(self._pauses[np.searchsorted(self._pauses, at, "right")]))

    def _run_group(
        self, batch: Batch, runnable: Array, at: int, name_thread: Callable[[int], str], pause: int = ENDED
    ) -> None:
        """Run the threads that are at an instruction until they diverge, converge with others or reach `pause`."""
        selected_threads = runnable & (batch.pc == at)
        rows = np.nonzero(selected_threads)[0]
        batch_rows: Rows = slice(None) if len(rows) == batch.threads else rows
        stop = min(int(batch.pc[runnable & (batch.pc > at)].min(initial=ENDED)), pause)
        active = None
        if batch.lane_pc is not None:
            lanes = batch.lane_pc[rows, self._divergent]
            enabled_lanes = lanes == at
            stop = min(stop, int(lanes[~enabled_lanes].min(initial=ENDED)))
            if not enabled_lanes.all():
                active = np.ones((len(rows), LANES), bool)
                active[:, self._divergent] = enabled_lanes
        steps, observer = self._steps, self.observer
        while at != stop:
            index = at % self._frame
            step = steps[index]
            try:
                if step is None:
                    to = self._decide(batch, rows, at, active)
                else:
                    step(batch, batch_rows, active)
            except AccessFault as fault:
                error = self.access_fault(fault, index, rows, name_thread)
                if self.tolerated is None or not fault.notes:
                    raise error from None
                self.tolerated[index] = error
                del self._prepared[index]
                step = steps[index] = self._prepare(index)[0]
                continue
            except UnwrittenFault as fault:
                error = self.unwritten_fault(fault, index, rows, name_thread)
                if self.tolerated is None or not self.layout.watch_products:
                    raise error from None
                assert batch.written is not None
                start = self.layout.offset(fault.var)
                batch.written[rows, start : start + fault.var.bytes] = True
                self.tolerated.setdefault(index, error)
                continue
            except RaceFault as fault:
                raise self._race_fault(fault, index, batch) from None
            if observer:
                observer.ran(index, batch, rows)
            if step is not None:
                at += 1
                continue
            if isinstance(to, int):
                if not at <= to <= stop:
                    # Threads that are ahead of other threads wait for them.
                    self._move(batch, rows, active, to)
                    return
                at = to
                continue
            self._diverge(batch, rows, active, to, at)
            return
        self._move(batch, rows, active, at)

    def run_one(self, at: int, batch: Batch, active: Array | None) -> None:
        """Run one instruction for all threads of a batch; program counters do not change.

        Args:
            active: their enabled lanes, bool[threads, 32]; None for all.

        Raises:
            AccessFault: if an access is refused.
        """
        step, decide = self._prepare(at % self._frame)
        if step:
            step(batch, slice(None), active)
        elif decide:
            decide(batch, np.arange(batch.threads), at, active)

    def _decide(self, batch: Batch, rows: Array, at: int, active: Array | None) -> int | Array:
        """The next program counter: one for all threads, one for each thread, or one for each lane."""
        _, function = self._prepare(at % self._frame)
        assert function
        to = function(batch, rows, at, active)
        decisive = to if to.ndim == 1 else to[:, self._divergent]
        next_pc = int(decisive.flat[0])
        return next_pc if next_pc not in (STAY, ENDED) and (decisive == next_pc).all() else to

    def _move(self, batch: Batch, rows: Array, active: Array | None, at: int) -> None:
        if batch.lane_pc is None:
            batch.pc[rows] = at
        else:
            self._diverge(batch, rows, active, np.full(len(rows), at), at)

    def _diverge(self, batch: Batch, rows: Array, active: Array | None, to: Array, at: int) -> None:
        """Set the program counters of threads, or of their enabled lanes."""
        waiting = to == STAY
        if batch.lane_pc is None:
            batch.waiting[rows] = waiting
            batch.pc[rows] = np.where(waiting, at, to)
            return
        lanes = batch.lane_pc[rows]
        wide = np.broadcast_to(
            np.where(waiting, at, to) if to.ndim == 2 else np.where(waiting, at, to)[:, None], lanes.shape
        )
        lanes = wide if active is None else np.where(active, wide, lanes)
        batch.lane_pc[rows] = lanes
        batch.pc[rows] = lanes[:, self._divergent].min(axis=1)
        batch.waiting[rows] = waiting.any(axis=1) if to.ndim == 2 else waiting

    def _fault(self, message: str, at: int, notes: list[str]) -> RuntimeFault:
        inst = self.program.instructions[at].written
        text = assembly.write_statement(inst, self.program.modern)
        return RuntimeFault(
            f"'{inst.name}' {message}",
            [*notes, f"instruction {at} of kernel '{self.program.name}': {text}"],
            inst.where,
        )

    def access_fault(self, fault: AccessFault, at: int, rows: Array, name_thread: Callable[[int], str]) -> RuntimeFault:
        """The failure of an access of instruction `at` that threads `rows` made."""
        inst = self.program.instructions[at]
        lanes = inst.exec_size if "address" in inst.values or inst.indirect else 1
        thread, lane = divmod(fault.index, lanes)
        name = name_thread(int(rows[thread]))
        where = f"in {name}"
        if lanes > 1:
            where += f", lane {inst.first_lane + lane}"
        error = self._fault(fault.reason, at, [where, *fault.notes])
        error.thread = name
        return error

    def unwritten_fault(
        self, fault: UnwrittenFault, at: int, rows: Array, name_thread: Callable[[int], str]
    ) -> RuntimeFault:
        """The error for a read of an unwritten register by instruction `at` in threads `rows`."""
        message = f"reads byte {fault.byte} of '{fault.var.name}', which was never written"
        notes = [f"in {name_thread(int(rows[fault.thread]))}"]
        inst, target = self.program.instructions[at], self.layout.target
        if target.strict_dpas and fault.var in factors(inst):
            notes.append(verdict(RULES["dpas-uninitialized"], target))
        return self._fault(message, at, notes)

    def _race_fault(self, fault: RaceFault, at: int, batch: Batch) -> RuntimeFault:
        assert batch.races
        thread_name, other_name = (batch.races.name_thread(thread) for thread in (fault.thread, fault.other))
        byte_name = batch.memory.byte_name(fault.offset)
        if fault.slm:
            byte_name = f"byte {fault.offset % batch.slm.bytes} of the shared local memory"
        verb, past = (
            {"load": verbs[0], "store": verbs[1], "atomic": verbs[2]}[INSTRUCTIONS[inst.name].category]
            for inst, verbs in (
                (self.program.instructions[at], ("reads", "writes", "changes")),
                (fault.earlier, ("read", "written", "changed")),
            )
        )
        error = self._fault(f"{verb} {byte_name}, which another thread has {past}, and nothing orders the two", at, [])
        error.notes = [f"in {thread_name}", *error.notes]
        if fault.unfenced:
            memory = "slm" if fault.slm else "ugm"
            error.notes.append(
                f"a barrier orders writes of {memory} only behind a fence (lsc_fence.{memory}, xegpu.fence)"
            )
        earlier_text = fault.earlier.written
        text = f"'{earlier_text.name}' in {other_name}: {assembly.write_statement(earlier_text, self.program.modern)}"
        error.elsewhere = (text, earlier_text.where)
        return error

    def deadlock(self, batch: Batch, name_thread: Callable[[int], str]) -> RuntimeFault:
        """The error for a batch whose threads all wait or have ended."""
        stuck = np.nonzero(batch.pc < ENDED)[0]
        notes = []
        for counter in np.unique(batch.pc[stuck]):
            threads, at = stuck[batch.pc[stuck] == counter], int(counter) % self._frame
            others = f" and {len(threads) - 1} more" if len(threads) > 1 else ""
            text = assembly.write_statement(self.program.instructions[at], self.program.modern)
            notes.append(f"{name_thread(int(threads[0]))}{others} wait{'s' * (not others)} at instruction {at}: {text}")
        ended_count = int(((batch.pc >= ENDED) & np.isin(batch.groups, batch.groups[stuck])).sum())
        if ended_count:
            notes.append(f"{ended_count} threads of these workgroups have ended")
        at = int(batch.pc[stuck].min()) % self._frame
        return RuntimeFault(
            f"deadlock: {len(stuck)} threads of kernel '{self.program.name}' wait for signals that never come",
            notes,
            self.program.instructions[at].where,
        )


# Constant evaluation: runs the interpreter's step of one instruction on a thread whose registers are the operands.

_SLOT_BYTES = LANES * 8
"""The size in bytes of an operand of all lanes."""

_NO_MEMORY: Any = None
"""Arithmetic does not access memory."""


def evaluate(inst: Instruction, sources: Mapping[str, tuple[int, ...]], target: Target) -> tuple[int, ...]:
    """The bit patterns of an arithmetic instruction's result, one for each lane; for a predicate its bits.

    Args:
        inst: the instruction; all lanes are assumed to be enabled, and the predicate to be set.
        sources: the bit patterns of the operands that are not immediates, by name, one for each lane; for a predicate
            the bits of the instruction's lanes, or all bits for `mov`.
    """
    # Operands that differ only in their position are one case.
    values = tuple([(name, _placeless(value)) for name, value in inst.values.items()])
    return _evaluate(inst.name, inst.exec_size, inst.saturate, values, tuple(sorted(sources.items())), target)


def _placeless(value: Any) -> Any:
    """An operand's class, type and modifier, without its position; an immediate or attribute itself."""
    if isinstance(value, Region):
        return Region, value.var.type, value.modifier
    if isinstance(value, Destination):
        return Destination, value.var.type
    return (Flag, value.var.count) if isinstance(value, Flag) else value


@lru_cache(maxsize=65536)
def _evaluate(
    name: str,
    lanes: int,
    saturate: bool,
    values: tuple[tuple[str, Any], ...],
    sources: tuple[tuple[str, tuple[int, ...]], ...],
    target: Target,
) -> tuple[int, ...]:
    operands: dict[str, Any] = {}
    for key, value in values:
        match value:
            case (kind, count) if kind is Flag:
                operands[key] = Flag(Predicate(key, count))
            case (kind, type_name, *modifier):
                operands[key] = kind(Variable(key, type_name, lanes, "GRF"), **dict(zip(["modifier"], modifier)))
            case _:
                operands[key] = value
    inst = Instruction(name, operands, lanes, "M1_NM", None, saturate)
    variables = [v.var for v in inst.values.values() if isinstance(v, (Region, Destination))]
    offsets = {var: _SLOT_BYTES * (1 + at) for at, var in enumerate(variables)}
    flags = [v.var for v in inst.values.values() if isinstance(v, Flag)]
    predicates = {predicate: at for at, predicate in enumerate(flags)}
    size = _SLOT_BYTES * (1 + len(offsets))
    layout = RegisterPositions(target, Allocation(offsets, size, target.grf_bytes, 0, 0, 0, ()), predicates)
    batch = new_batch(1, 1, size, len(flags), 0, 0, _NO_MEMORY, divergent=False, watch=False)
    for name, bits in sources:
        var = inst[name].var
        if isinstance(var, Predicate):
            batch.flags[0, predicates[var], : len(bits)] = bits
        else:
            data = b"".join(b.to_bytes(var.format.bytes, "little") for b in bits)
            batch.regs[0, offsets[var] : offsets[var] + len(data)] = np.frombuffer(data, np.uint8)
    with np.errstate(all="ignore"):
        register_step(inst, layout, "fma")(batch, slice(None), None)
    result = inst["dst"].var
    if isinstance(result, Predicate):
        return tuple(int(b) for b in batch.flags[0, predicates[result], : inst.exec_size])
    width = result.format.bytes
    result_bits = batch.regs[0, offsets[result] : offsets[result] + inst.exec_size * width].view(f"u{width}")
    return tuple(int(b) for b in result_bits)


# Detection of accesses by address variables that are outside of the variables whose addresses these hold.


def bounded_step(step: Step, inst: Instruction, layout: RegisterPositions) -> Step:
    """The step of an instruction, which checks where the registers are that it finds by addresses.

    Raises:
        AccessFault: when the step runs, if a lane that acts has an element that is not within one of the variables.
    """
    mask, lane_offsets = masker(inst, layout), [indirect_offsets(o, inst.exec_size, layout) for o in inst.indirect]

    def bounded(batch: Batch, rows: Rows, active: Array | None) -> None:
        acting = mask(batch, rows, active)
        for operand, element_offsets in zip(inst.indirect, lane_offsets):
            at, size = element_offsets(batch, rows), operand.format.bytes
            outside = np.ones(at.shape, bool) if acting is None else np.broadcast_to(acting, at.shape)
            for base in operand.bases:
                start = layout.offset(base)
                outside = outside & ((at < start) | (at + size > start + base.bytes))
            if outside.any():
                index = int(np.argmax(outside))
                base, distance = nearest_base(operand, int(at.flat[index]), layout)
                verb = "writes" if operand is inst["dst"] else "reads"
                where = f"byte {distance} of register variable '{base.name}', which has {base.bytes} bytes"
                raise AccessFault(index, f"{verb} {size} bytes at {where}")
        step(batch, rows, active)

    return bounded


def nearest_base(operand: Indirect, register_offset: int, layout: RegisterPositions) -> tuple[Variable, int]:
    """The variable of an indirect operand that a place of the register file is nearest to, and its byte there."""
    distances = [(base, register_offset - layout.offset(base)) for base in operand.bases]
    return min(distances, key=lambda candidate: max(-candidate[1], candidate[1] - candidate[0].bytes))


# Detection of reads of unwritten registers, lane by lane.


class UnwrittenFault(Exception):
    """A read of an unwritten register.

    Attributes:
        thread: index among the threads that read.
        byte: its offset in the operand's variable.
        var: the variable.
    """

    def __init__(self, thread: int, byte: int, var: Variable) -> None:
        self.thread, self.byte, self.var = thread, byte, var
        super().__init__(thread, byte, var)


class OperandBytes(Struct, frozen=True, dict=True):
    """Positions in the register file of an operand's bytes, [lanes, bytes]; one lane for scalar operands."""

    var: Variable
    byte_offsets: Array

    @cached_property
    def span(self) -> slice:
        """The positions from the first byte to the last."""
        return slice(int(self.byte_offsets.min()), int(self.byte_offsets.max()) + 1)

    @cached_property
    def is_dense(self) -> bool:
        """Whether the operand has all bytes of the span."""
        return bool(np.unique(self.byte_offsets).size == self.span.stop - self.span.start)


def watched_step(step: Step, inst: Instruction, layout: RegisterPositions) -> Step:
    """The step of an instruction, which checks the bytes that it reads and marks those that it writes.

    Raises:
        UnwrittenFault: when the step runs, if a lane that acts reads unwritten bytes.
    """
    reads, writes = watched_reads(inst, layout), operand_bytes(inst, "write", layout)
    mask = masker(inst, layout)
    indirect_operands = [(indirect, indirect_offsets(indirect, inst.exec_size, layout)) for indirect in inst.indirect]
    checks_all = not layout.watch_products

    def watching(batch: Batch, rows: Rows, active: Array | None) -> None:
        acting = mask(batch, rows, active)
        _look(batch, rows, acting, reads, layout)
        assert batch.written is not None
        for indirect, element_offsets in indirect_operands:
            at = element_offsets(batch, rows)[:, :, None] + np.arange(indirect.format.bytes)
            lanes = np.ones(at.shape[:2], bool) if acting is None else np.broadcast_to(acting, at.shape[:2])
            thread, lane = np.nonzero(lanes)
            thread_bytes = np.arange(batch.threads)[rows][thread][:, None], at[thread, lane]
            if indirect is inst["dst"]:
                batch.written[thread_bytes] = True
            elif checks_all and not batch.written[thread_bytes].all():
                lane_index, byte = np.argwhere(~batch.written[thread_bytes])[0]
                base, distance = nearest_base(indirect, int(thread_bytes[1][lane_index, byte]), layout)
                raise UnwrittenFault(int(thread[lane_index]), distance, base)
        step(batch, rows, active)
        for operand in writes:
            count = len(operand.byte_offsets)
            lanes = np.ones((1, count), bool) if acting is None else _lanes(acting, count)
            if operand.is_dense and lanes.all():
                batch.written[rows, operand.span] = True
            else:
                threads = np.arange(batch.threads)[rows]
                thread, lane = np.nonzero(np.broadcast_to(lanes, (len(threads), count)))
                batch.written[threads[thread][:, None], operand.byte_offsets[lane]] = True

    return watching


def watched_next(decide: Next, inst: Instruction, layout: RegisterPositions) -> Next:
    """The `Next` of an instruction, which checks the registers that it reads."""
    reads, mask = watched_reads(inst, layout), masker(inst, layout)

    def watching(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        _look(batch, rows, mask(batch, rows, active), reads, layout)
        return decide(batch, rows, at, active)

    return watching


def _look(batch: Batch, rows: Rows, acting: Array | None, reads: list[OperandBytes], layout: RegisterPositions) -> None:
    for operand in reads:
        assert batch.written is not None
        if batch.written[rows, operand.span].all():
            continue
        unwritten = ~batch.written[rows][:, operand.byte_offsets]
        if acting is not None:
            unwritten &= _lanes(acting, len(operand.byte_offsets))[:, :, None]
        if unwritten.any():
            thread, lane, byte = (int(i) for i in np.argwhere(unwritten)[0])
            register_byte = int(operand.byte_offsets[lane, byte])
            raise UnwrittenFault(thread, register_byte - layout.offset(operand.var), operand.var)


def watched_reads(inst: Instruction, layout: RegisterPositions) -> list[OperandBytes]:
    """The bytes of registers that an instruction reads and that must have been written."""
    if not layout.watch_products:
        return operand_bytes(inst, "read", layout)
    slots = [s for s in INSTRUCTIONS[inst.name].slots if factors(inst) and s.name in FACTORS]
    return [b for b in (_bytes(s, inst, layout) for s in slots) if b and b.byte_offsets.size]


def operand_bytes(inst: Instruction, use: str, layout: RegisterPositions) -> list[OperandBytes]:
    """The bytes of registers that the operands of an instruction access.

    Args:
        use: "read" or "write".
    """
    slots = [s for s in INSTRUCTIONS[inst.name].slots if s.use == use]
    return [b for b in (_bytes(s, inst, layout) for s in slots) if b and b.byte_offsets.size]


def _lanes(acting: Array, count: int) -> Array:
    return np.any(acting, axis=1, keepdims=True) if count == 1 else acting


def _bytes(slot: OperandSpec, inst: Instruction, layout: RegisterPositions) -> OperandBytes | None:
    operand = inst[slot.name]
    var = getattr(operand, "var", None)
    if not isinstance(var, Variable) or isinstance(operand, (Indirect, AddressOf)):
        return None
    start, size = layout.offset(var) + first_byte(operand, layout.target.grf_bytes), var.format.bytes
    if isinstance(operand, (Region, Destination)):
        elements = np.array(operand.elements(1 if slot.kind == "scalar" else inst.exec_size))
        return OperandBytes(var, start + elements[:, None] * size + np.arange(size))
    assert slot.bytes
    total = slot.bytes(inst, layout.target)
    if slot.lane_bytes:
        return OperandBytes(var, start + slot.lane_bytes(inst, layout.target))
    if isinstance(operand, Address):
        return OperandBytes(var, start + np.arange(total).reshape(inst.exec_size, -1))
    if "data" in inst.values:
        shape: DataShape = inst["data"]
        element_bytes = shape.register_bytes if slot.use == "write" else shape.memory_bytes
        byte_offsets = data_offsets(shape, inst.exec_size, layout.target.grf_bytes)[:, :, None] + np.arange(
            element_bytes
        )
        return OperandBytes(var, start + byte_offsets.reshape(len(byte_offsets), -1))
    if "block" in inst.values and slot.use == "read":
        # Padding of rows and the rest of the last register are not written.
        block: BlockShape = inst["block"]
        lines, columns, _ = block.register_shape()
        row = np.arange(block.width * block.size // 8)
        byte_offsets = np.arange(lines)[:, None] * (columns * block.size // 8) + row
        return OperandBytes(var, start + byte_offsets.reshape(1, -1))
    return OperandBytes(var, start + np.arange(total)[None, :])
