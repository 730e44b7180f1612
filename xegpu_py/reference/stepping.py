"""Evaluating ops one after the other as they are built, rather than a function that is complete."""

from __future__ import annotations

from typing import Any

from mlir import ir

from xegpu_py.reference.machine import Frame, Steps, Subgroup
from xegpu_py.reference.program import Block, Function


class Stepper:
    """A subgroup's run of a function whose ops are being built.

    Attributes:
        subgroup: the subgroup.
    """

    def __init__(self, subgroup: Subgroup, func: ir.Operation) -> None:
        """Begin a run.

        Args:
            func: a function with the kernel's arguments, whose ops will be given one by one.
        """
        self.subgroup = subgroup
        self._function = Function(func)
        self._frame = Frame(0, len(subgroup.lanes))
        self._grow()
        for place, value in zip(self._function.blocks[0].arguments, subgroup.launch.arguments):
            self._frame.values[place] = [value] * len(subgroup.lanes)

    def _grow(self) -> None:
        more = self._function.size - len(self._frame.values)
        self._frame.values += [[None] * len(self.subgroup.lanes) for _ in range(more)]

    def steps(self, op: ir.Operation) -> Steps:
        """Evaluate an op whose operands have been evaluated; yields where it waits.

        Raises:
            DiagnosticError: at the op, if it cannot be evaluated.
        """
        block = Block(())
        block.nodes = [self._function.node(op)]
        self._grow()
        yield from self.subgroup.block(self._frame, block, self.subgroup.present)

    def value(self, value: ir.Value) -> Any:
        """What the first lane has for a value that has been evaluated."""
        return self._frame.values[self._function.place(value)][0]
