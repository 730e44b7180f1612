"""Instructions on whole registers, on formats that are not register types, and on predicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from xegpu_py import numerics
from xegpu_py.engines.access import Layout, Read, flag_reader, masker, raw_reader, raw_writer, reader, writer
from xegpu_py.engines.arithmetic import Step, arithmetic_step, conversion, flag_logic_step, flag_writer
from xegpu_py.engines.batch import Batch, Rows, count_of
from xegpu_py.engines.table import Table
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.formats import Array, bits_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Flag
from xegpu_py.visa.program import Instruction

STEPS = Table()
"""Functions that build the step of an instruction."""


def register_step(inst: Instruction, layout: Layout, model: Model) -> Step:
    """The step of an instruction that accesses no memory and is not control flow."""
    if inst.name in STEPS:
        step: Step = STEPS[inst.name](inst, layout, model)
        return step
    on_predicates = isinstance(inst["dst"], Flag) and not INSTRUCTIONS[inst.name].compares
    return (flag_logic_step if on_predicates else arithmetic_step)(inst, layout)


def _raw_reader(inst: Instruction, name: str, layout: Layout) -> Read | None:
    """Reads the bytes of an operand; None for the null operand."""
    if inst[name].var is None:
        return None
    return raw_reader(inst[name], INSTRUCTIONS[inst.name].size(name, inst, layout.target), layout)


@STEPS.of("dpas")
def dpas(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Multiply and add matrices (DPAS.md)."""
    multiply = partial(numerics.dpas, SD=inst["SD"], RC=inst["RC"], exec_size=inst.exec_size, model=model)
    return _product(inst, layout, ("src0", "src1", "src2"), multiply)


@STEPS.of("bdpas")
def bdpas(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Multiply and add block-scaled matrices."""
    return _product(inst, layout, ("src0", "src1", "src2", "src3", "src4"), partial(numerics.bdpas, model=model))


def _product(inst: Instruction, layout: Layout, sources: Sequence[str], multiply: Callable[..., Array]) -> Step:
    """The step of a product of the sources' bytes; each enabled lane's column of all rows is written."""
    reads = [_raw_reader(inst, name, layout) for name in sources]
    write, mask = raw_writer(inst["dst"], layout), masker(inst, layout)
    dst_type, acc = inst["dst"].var.type, inst["src0"].var
    types = {"W": inst["W"], "A": inst["A"], "dst_type": dst_type, "src0_type": acc.type if acc else dst_type}

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        result = multiply(*(read(batch, rows) if read else None for read in reads), **types)
        size = result.shape[-1] // (inst["RC"] * inst.exec_size)
        lanes = mask(batch, rows, active)
        columns = None if lanes is None else np.tile(np.repeat(lanes, size, axis=1), inst["RC"])
        write(batch, rows, np.broadcast_to(result, (count_of(batch, rows), result.shape[-1])), columns)

    return step


@STEPS.of("mov")
def mov(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Copy with conversion to the destination's type; or copy a predicate's bits."""
    source, dst = inst["src0"], inst["dst"]
    target = dst.var.format
    write, mask = writer(dst, inst.exec_size, layout), masker(inst, layout)
    if isinstance(source, Flag):
        index, count = layout.predicates[source.var], source.var.count
        weights = np.uint64(1) << np.arange(count, dtype=np.uint64)

        def step_flag(batch: Batch, rows: Rows, active: Array | None) -> None:
            bits = batch.flags[rows, index, :count].astype(np.uint64) @ weights
            write(batch, rows, bits[:, None].astype(target.dtype), mask(batch, rows, active))

        return step_flag
    read = reader(source, inst.exec_size, layout)
    change = conversion(source, target, inst.saturate)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        write(batch, rows, change(read(batch, rows)), mask(batch, rows, active))

    return step


@STEPS.of("sel")
def sel(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Select by the predicate; all enabled lanes are written."""
    target = inst["dst"].var.format
    write, mask, chosen = writer(inst["dst"], inst.exec_size, layout), masker(inst, layout), flag_reader(inst, layout)
    reads: list[tuple[Callable[[Array], Array], Read]] = [
        (conversion(inst[n], target, inst.saturate), reader(inst[n], inst.exec_size, layout)) for n in ("src0", "src1")
    ]

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        (change0, read0), (change1, read1) = reads
        values = np.where(chosen(batch, rows), change0(read0(batch, rows)), change1(read1(batch, rows)))
        write(batch, rows, values, mask(batch, rows, active))

    return step


@STEPS.of("srnd")
def srnd(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Round stochastically (SRND.md)."""
    return _converting(inst, layout, lambda a, r: numerics.srnd(a, r, "bf8" if inst["dst"].var.type == "ub" else "hf"))


@STEPS.of("fcvt")
def fcvt(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Convert to and from formats that are not types of vISA (FCVT.md)."""
    names: dict[str, Literal["bf8", "hf", "tf32"]] = {"ub": "bf8", "hf": "hf", "ud": "tf32"}
    name = names[inst["dst"].var.type]
    return _converting(inst, layout, lambda a: numerics.fcvt(a, name))


def _converting(inst: Instruction, layout: Layout, function: Callable[..., Array]) -> Step:
    reads = [reader(source, inst.exec_size, layout) for source in inst.sources]
    write, mask = writer(inst["dst"], inst.exec_size, layout), masker(inst, layout)
    dtype = inst["dst"].var.format.dtype

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        # The instruction's formats differ from the registers' types, so operands are bit patterns.
        result = function(*(bits_of(np.ascontiguousarray(r(batch, rows))) for r in reads))
        write(batch, rows, bits_of(result).view(dtype), mask(batch, rows, active))

    return step


@STEPS.of("setp")
def setp(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Set a predicate to the lowest bits of a scalar."""
    source = inst["src0"]
    read, write, mask = reader(source, 1, layout), flag_writer(inst, layout), masker(inst, layout)
    places = np.arange(inst.exec_size, dtype=np.uint64)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        pattern = read(batch, rows).view(f"u{source.format.bytes}").astype(np.uint64)
        write(batch, rows, (pattern >> places) & np.uint64(1) == 1, mask(batch, rows, active))

    return step
