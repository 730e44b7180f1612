"""`cf`: branches between blocks. A rule returns the number of the successor, and the operands for its arguments."""

from __future__ import annotations

from typing import Any

from xegpu_py.reference.memory import Fault
from xegpu_py.reference.program import Node, evaluates

Taken = tuple[int, slice]


@evaluates("cf.br")
def br(node: Node, operands: list[Any]) -> Taken:
    """Branch to the successor."""
    return 0, slice(0, None)


@evaluates("cf.cond_br")
def cond_br(node: Node, operands: list[Any]) -> Taken:
    """Branch to the first successor if the condition holds, otherwise to the second."""
    one, yes, no = node.attribute("operandSegmentSizes")
    return (0, slice(one, one + yes)) if operands[0] else (1, slice(one + yes, one + yes + no))


@evaluates("cf.switch")
def switch(node: Node, operands: list[Any]) -> Taken:
    """Branch to the successor of the case that equals the flag, otherwise to the first successor, the default."""
    element = node.operand_kind(0).element
    cases = [int(element.wrap(a.value)) for a in node.attribute("case_values", [])]
    sizes = node.attribute("case_operand_segments", [])
    default = node.attribute("operandSegmentSizes")[1]
    flag = int(operands[0])
    if flag not in cases:
        return 0, slice(1, 1 + default)
    chosen = cases.index(flag)
    start = 1 + default + sum(sizes[:chosen])
    return 1 + chosen, slice(start, start + sizes[chosen])


@evaluates("cf.assert")
def assert_(node: Node, condition: Any) -> None:
    """A fault if the condition does not hold."""
    if not condition:
        raise Fault(f"does not hold: {node.attribute('msg')}")
