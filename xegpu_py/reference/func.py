"""`func`: calls of functions, and of intrinsics, which are functions without a body."""

from __future__ import annotations

from typing import Any

import numpy as np

from xegpu_py import numerics
from xegpu_py.ir.calls import PRINT, TEXT
from xegpu_py.numerics.formats import Array
from xegpu_py.numerics.srnd import SOURCES
from xegpu_py.reference.machine import Frame, Lanes, Steps, Subgroup
from xegpu_py.reference.memory import Fault
from xegpu_py.reference.program import Node, controls


@controls("func.call")
def call(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """Run the body of a function in its own frame."""
    name = node.attribute("callee")
    function = subgroup.launch.callee(node, name)
    if function is None:
        if name.startswith(f"{PRINT}."):
            return _print(subgroup, node, [frame.values[p][lanes[0]] for p in node.operands])
        for lane in lanes:
            operands = [frame.values[p][lane] for p in node.operands]
            frame.set(node.results, _intrinsic(node, name, operands), lane)
        return
    inner = Frame(function.size, len(subgroup.lanes))
    for lane in lanes:
        for argument, place in zip(function.blocks[0].arguments, node.operands):
            inner.values[argument][lane] = frame.values[place][lane]
    ends = yield from subgroup.region(inner, function.blocks, lanes)
    for lane, end in ends.items():
        for place, result in zip(node.results, end.operands):
            frame.values[place][lane] = inner.values[result][lane]


def _print(subgroup: Subgroup, node: Node, operands: list[Any]) -> None:
    """`visa.print`: each lane of the mask prints."""
    mask, *values = (np.asarray(v) for v in operands)
    elements = [node.operand_kind(i + 1).element.name for i in range(len(values))]
    for lane in np.flatnonzero(mask):
        subgroup.prints(node.attribute(TEXT), elements, [v[lane].item() for v in values])


_ROUNDED = {(source.mlir, target.mlir): target.name for target, source in SOURCES.items()}


def _intrinsic(node: Node, name: str, operands: list[Any]) -> Array:
    """`llvm.genx.srnd`: stochastic rounding (docs/lowering.md)."""
    if name.startswith("visa.inline."):
        raise Fault(
            "is an instruction of vISA, which the reference evaluator does not implement",
            "run it on the interpreter or the JIT",
        )
    if not f"{name}.".startswith("llvm.genx.srnd."):
        raise Fault(f"calls undefined function '{name}' and stands for no instruction")
    numbers, random = (np.asarray(v) for v in operands)
    pair = (node.operand_kind(0).element.name, node.element.name)
    if pair not in _ROUNDED:
        raise Fault(f"cannot round {pair[0]} to {pair[1]}")
    bits = random.view(f"u{random.dtype.itemsize}").astype(f"u{numbers.dtype.itemsize}")
    return numerics.srnd(numbers, bits, _ROUNDED[pair])  # type: ignore[arg-type]
