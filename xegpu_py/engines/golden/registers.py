"""Instructions on whole registers, on formats of their own, and on predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from xegpu_py import numerics
from xegpu_py.engines.access import Layout, masker, raw_reader, raw_writer, reader, writer
from xegpu_py.engines.arithmetic import Step, flag_writer
from xegpu_py.engines.batch import Batch, Rows
from xegpu_py.engines.golden import golden
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.formats import TYPES, Array, bits_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Immediate
from xegpu_py.visa.program import Instruction


def _size(inst: Instruction, name: str, layout: Layout) -> int:
    size = INSTRUCTIONS[inst.name].slot(name).bytes
    assert size
    return size(inst, layout.target)


@golden("dpas")
def dpas(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Multiply and add matrices (DPAS.md); columns of disabled lanes keep what they hold."""
    acc = inst["src0"]
    read_acc = raw_reader(acc, _size(inst, "src0", layout), layout) if acc.var else None
    read_b = raw_reader(inst["src1"], _size(inst, "src1", layout), layout)
    read_a = raw_reader(inst["src2"], _size(inst, "src2", layout), layout)
    write, mask = raw_writer(inst["dst"], layout), masker(inst, layout)
    dst_type = inst["dst"].var.type
    acc_type = acc.var.type if acc.var else dst_type

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        result = numerics.dpas(
            read_acc(batch, rows) if read_acc else None,
            read_b(batch, rows),
            read_a(batch, rows),
            W=inst["W"],
            A=inst["A"],
            SD=inst["SD"],
            RC=inst["RC"],
            exec_size=inst.exec_size,
            dst_type=dst_type,
            src0_type=acc_type,
            model=model,
        )
        _write_columns(inst, result, batch, rows, mask(batch, rows, active), write)

    return step


@golden("bdpas")
def bdpas(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Multiply and add block-scaled matrices; columns of disabled lanes keep what they hold."""
    names = ("src0", "src1", "src2", "src3", "src4")
    reads = [raw_reader(inst[n], _size(inst, n, layout), layout) if inst[n].var else None for n in names]
    write, mask = raw_writer(inst["dst"], layout), masker(inst, layout)
    dst_type, acc = inst["dst"].var.type, inst["src0"].var

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        acc_bytes, b, a, scale_b, scale_a = (read(batch, rows) if read else None for read in reads)
        assert a is not None and b is not None
        result = numerics.bdpas(
            acc_bytes,
            b,
            a,
            scale_b,
            scale_a,
            W=inst["W"],
            A=inst["A"],
            dst_type=dst_type,
            src0_type=acc.type if acc else dst_type,
            model=model,
        )
        _write_columns(inst, result, batch, rows, mask(batch, rows, active), write)

    return step


def _write_columns(
    inst: Instruction, result: Array, batch: Batch, rows: Rows, lanes: Array | None, write: Callable[..., None]
) -> None:
    """Write a product's bytes: each lane's column of all rows."""
    size = result.shape[-1] // (inst["RC"] * inst.exec_size)
    columns = None if lanes is None else np.tile(np.repeat(lanes, size, axis=1), inst["RC"])
    write(batch, rows, np.broadcast_to(result, (_count(batch, rows), result.shape[-1])), columns)


def _count(batch: Batch, rows: Rows) -> int:
    return batch.threads if isinstance(rows, slice) else len(rows)


@golden("srnd")
def srnd(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Round stochastically (SRND.md)."""
    return _converting(inst, layout, lambda a, r: numerics.srnd(a, r, "bf8" if inst["dst"].var.type == "ub" else "hf"))


@golden("fcvt")
def fcvt(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Convert to and from formats that vISA has no type of (FCVT.md)."""
    names: dict[str, Literal["bf8", "hf", "tf32"]] = {"ub": "bf8", "hf": "hf", "ud": "tf32"}
    name = names[inst["dst"].var.type]
    return _converting(inst, layout, lambda a: numerics.fcvt(a, name))


def _converting(inst: Instruction, layout: Layout, function: Callable[..., Array]) -> Step:
    reads = [reader(v, inst.exec_size, layout) for n, v in inst.values.items() if n.startswith("src")]
    write, mask = writer(inst["dst"], inst.exec_size, layout), masker(inst, layout)
    dtype = inst["dst"].var.format.dtype

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        # The instruction's formats differ from the registers' types, so that bit patterns go in and come out.
        result = function(*(bits_of(np.ascontiguousarray(r(batch, rows))) for r in reads))
        write(batch, rows, bits_of(result).view(dtype), mask(batch, rows, active))

    return step


@golden("setp")
def setp(inst: Instruction, layout: Layout, model: Model) -> Step:
    """Set a predicate to the lowest bits of a scalar."""
    source = inst["src0"]
    read, write, mask = reader(source, 1, layout), flag_writer(inst, layout), masker(inst, layout)
    fmt = TYPES[source.type if isinstance(source, Immediate) else source.var.type]
    places = np.arange(inst.exec_size, dtype=np.uint64)

    def step(batch: Batch, rows: Rows, active: Array | None) -> None:
        pattern = read(batch, rows).view(f"u{fmt.bytes}").astype(np.uint64)
        write(batch, rows, (pattern >> places) & np.uint64(1) == 1, mask(batch, rows, active))

    return step
