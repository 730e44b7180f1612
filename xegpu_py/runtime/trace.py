"""A trace of one hardware thread, and the table of a launch's statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from msgspec import Struct, field

from xegpu_py.engines.batch import Batch
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.launch import Statistics
from xegpu_py.target import Target
from xegpu_py.visa.accesses import accesses
from xegpu_py.visa.allocate import Allocation
from xegpu_py.visa.assembly import write_statement
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Predicate
from xegpu_py.visa.program import Dim, Program

_SHOWN = 16


class Tracer(Struct):
    """Prints each instruction of one thread, with the registers that it changed.

    Attributes:
        program: the kernel.
        target: the GPU.
        allocation: the registers of its variables.
        group: the traced workgroup.
        thread: the traced thread of the workgroup.
        emit: prints a line.
    """

    program: Program
    target: Target
    allocation: Allocation
    group: Dim
    thread: int
    emit: Callable[[str], None]
    _regs: Array = field(default_factory=lambda: np.zeros(0, np.uint8))

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        """See `engines.interpreter.Observer`."""
        for row in self._watched(batch, rows):
            self.emit(f"{index:5d}: {write_statement(self.program.instructions[index])}")
            for line in self._changes(index, batch, row):
                self.emit(f"         {line}")
            self._regs = batch.regs[row].copy()

    def _watched(self, batch: Batch, rows: Array) -> Iterator[int]:
        words = batch.regs[rows, :32].view(np.uint32)
        x, y, z = self.group
        match = (words[:, 1] == x) & (words[:, 6] == y) & (words[:, 7] == z) & (batch.numbers[rows] == self.thread)
        yield from (int(r) for r in rows[match])

    def _changes(self, index: int, batch: Batch, row: int) -> Iterator[str]:
        inst = self.program.instructions[index]
        for access in accesses(inst, self.target):
            if not access.writes:
                continue
            # If the instruction names an alias of the variable, its type is the one to print.
            named = inst.values.get("dst")
            var = named.var if named is not None and getattr(named, "var", None) is not None else access.var
            size = var.format.bytes
            base = self.allocation.offset(access.var)
            start, end = access.start // size * size, -(-access.end // size) * size
            now = batch.regs[row, base + start : base + end]
            before = self._regs[base + start : base + end] if len(self._regs) else np.zeros_like(now)
            changed = (now != before).reshape(-1, size).any(axis=1)
            values = np.ascontiguousarray(now).view(var.format.dtype)
            root = var.root[1]
            shown = [f"[{(start - root) // size + i}] = {values[i]}" for i in np.nonzero(changed)[0][:_SHOWN]]
            more = f", and {int(changed.sum()) - _SHOWN} more" if changed.sum() > _SHOWN else ""
            if shown:
                yield f"{var.name}: {', '.join(shown)}{more}"
        flag = inst.values.get("dst")
        if flag is not None and isinstance(getattr(flag, "var", None), Predicate):
            at = self.program.predicates.index(flag.var)
            bits = "".join("1" if b else "0" for b in batch.flags[row, at, : flag.var.count])
            yield f"{flag.var.name}: {bits}"


def statistics_table(program: Program, done: Statistics) -> str:
    """The table of a launch's statistics: instructions by category, bytes moved, register pressure."""
    counts: Counter[str] = Counter()
    for inst, times in zip(program.instructions, done.executed):
        spec = INSTRUCTIONS[inst.name]
        if not spec.is_label:
            counts[spec.category] += int(times)
    out = [f"kernel '{program.name}': {done.threads} hardware threads"]
    out.append(f"  instructions    {sum(counts.values()):>14}")
    out += [f"    {name:<13} {count:>14}" for name, count in sorted(counts.items())]
    for (memory, category), moved in sorted(done.traffic.items()):
        out.append(f"  {memory} {category + ' bytes':<13} {moved:>12}")
    out.append(f"  {done.allocation.report()}")
    return "\n".join(out)


def summary(program: Program, done: Statistics, engine: str, seconds: float) -> str:
    """A summary of a launch in one line: kernel, time, and the speed of its matrix products if it has any.

    Args:
        seconds: the time of the call.
    """
    operations = sum(
        2 * inst["RC"] * inst.exec_size * inst["SD"] * ops_per_channel(inst["W"], inst["A"]) * int(times)
        for inst, times in zip(program.instructions, done.executed)
        if "SD" in inst.values
    )
    speed = f", {operations / seconds / 1e9:.3g} GFLOP/s in dpas" if operations else ""
    return f"{program.name}: {done.threads} hardware threads in {seconds:.3g} s on the {engine} engine{speed}"
