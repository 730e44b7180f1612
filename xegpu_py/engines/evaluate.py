"""Constant evaluation: runs the interpreter's step of one instruction on a thread whose registers are the operands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from xegpu_py.engines.access import Layout
from xegpu_py.engines.batch import new_batch
from xegpu_py.engines.golden.registers import register_step
from xegpu_py.target import Target
from xegpu_py.visa.allocate import Allocation
from xegpu_py.visa.operands import Destination, Flag, Predicate, Region, Variable
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import LANES

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
    layout = Layout(target, Allocation(offsets, size, target.grf_bytes, 0, 0, 0, ()), predicates)
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
    found = batch.regs[0, offsets[result] : offsets[result] + inst.exec_size * width].view(f"u{width}")
    return tuple(int(b) for b in found)
