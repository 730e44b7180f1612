"""The walk over a kernel of TTIR: each op builds what the function of tiles of the same meaning builds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir as mlir

from xegpu_py.extensions.triton.lowering.positions import Positions
from xegpu_py.extensions.triton.lowering.types import kind_of
from xegpu_py.extensions.triton.lowering.values import Constant, Descriptor, Pointer, signed
from xegpu_py.ir.bindings import narrowed
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.tiles import element_types
from xegpu_py.tiles.tile_values import Product, Value, value_of
from xegpu_py.tiles.value_base import BUILDING

Item = Value | Constant | Pointer | Descriptor
"""The representation of a value of TTIR."""

Rule = Callable[["Lowering", mlir.Operation], Any]
"""Builds what an op becomes, and gives its result, a sequence of several results, or None."""

TERMINATORS = (
    "func.return", "vector.yield", "scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return",
    "tt.map_elementwise.return",
)  # fmt: skip


class Lowering:
    """Builds one kernel.

    Attributes:
        functions: the functions of the module, by name.
        values: what the values of TTIR have become.
        elementwise: whether the ops at hand work on each element of values, as those of a reduction do.
        divisions: whether divisors are checked.
    """

    def __init__(
        self,
        rules: Mapping[str, Rule],
        functions: Mapping[str, mlir.Operation],
        positions: Positions,
        divisions: bool = False,
    ) -> None:
        self._rules, self.functions, self._positions, self.divisions = rules, functions, positions, divisions
        self.values: dict[mlir.Value, Item] = {}
        self.elementwise = False
        self._calls: list[str] = []

    # Values.

    def item(self, value: mlir.Value) -> Item:
        """The representation of a value."""
        return self.values[value]

    def is_position(self, value: mlir.Value) -> bool:
        """Whether a value is an integer that becomes a value of type index."""
        return value in self._positions

    def value(self, value: mlir.Value) -> Value:
        """A value in its own type, of integers signed ones."""
        item = self.values[value]
        if isinstance(item, Constant):
            return item.value(kind_of(value).dtype, () if self.elementwise else None)
        if not isinstance(item, Value):
            raise TypeError(f"takes numbers, but got {value.type}")
        return item.to(kind_of(value).dtype) if item.dtype == element_types.index else signed(item)

    def position(self, value: mlir.Value) -> Value:
        """An integer as a value of type index."""
        item = self.values[value]
        if isinstance(item, Constant):
            return item.value(element_types.index)
        assert isinstance(item, Value)
        return signed(item).to(element_types.index)

    def integers(self, values: Sequence[mlir.Value], positions: bool) -> list[Value]:
        """Integers, as values of type index or in their own types."""
        return [self.position(v) if positions else self.value(v) for v in values]

    def pointer(self, value: mlir.Value) -> Pointer:
        """A value that is a pointer, or pointers."""
        item = self.values[value]
        assert isinstance(item, Pointer)
        return item

    def same(self, value: mlir.Value) -> Value | Pointer | Descriptor:
        """A value in the type in which it is kept: positions as values of type index."""
        item = self.values[value]
        if isinstance(item, Constant):
            return self.position(value) if self.is_position(value) else self.value(value)
        return item

    # Ops.

    def block_up_to(self, block: mlir.Block, end: mlir.Operation) -> None:
        """Build the ops of a block that precede its terminator."""
        for op in block.operations:
            if op.operation == end:
                return
            self.op(op.operation)

    def block(self, block: mlir.Block) -> list[mlir.Value]:
        """Build the ops of a block up to its terminator; gives the operands of that."""
        for op in block.operations:
            one = op.operation
            if one.name in TERMINATORS:
                return list(one.operands)
            self.op(one)
        return []

    def op(self, op: mlir.Operation) -> None:
        """Build what an op becomes.

        Raises:
            DiagnosticError: at the op, if it cannot be lowered.
        """
        rule = self._rules.get(op.name)
        if rule is None:
            emit_error(op, "has no meaning on this target")
        with user_location(op):
            try:
                made = rule(self, op)
            except (TypeError, ValueError, OverflowError, ZeroDivisionError) as e:
                emit_error(op, f"cannot be lowered: {e}")
        results = list(op.results)
        if not results:
            return
        items = made if isinstance(made, (list, tuple)) else [made]
        for value, item in zip(results, items, strict=True):
            self.values[value] = value_of(item) if isinstance(item, Product) else item

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget the values that are defined in the block."""
        outer = dict(self.values)
        try:
            yield
        finally:
            self.values = outer

    @contextmanager
    def call(self, op: mlir.Operation, name: str) -> Iterator[mlir.Operation]:
        """The function of a name, which is inlined in the block.

        Raises:
            DiagnosticError: if it calls itself.
        """
        if name in self._calls:
            emit_error(op, f"calls '{name}', which calls itself", "a GPU has no stack for calls of unknown depth")
        self._calls.append(name)
        try:
            yield self.functions[name]
        finally:
            self._calls.pop()

    def combining(self, block: mlir.Block) -> Callable[..., Any]:
        """The block of a reduction or a scan as a function of values."""

        def combine(*given: Value) -> Any:
            outer, self.elementwise = self.elementwise, True
            try:
                with self.scope():
                    self.values |= dict(zip(block.arguments, given))
                    results = [self.value(v) for v in self.block(block)]
            finally:
                self.elementwise = outer
            return tuple(results) if len(results) > 1 else results[0]

        return combine


@contextmanager
def user_location(op: mlir.Operation) -> Iterator[None]:
    """Build ops at the user's line; errors of the ops that are built name it too."""
    with place_of(op.location):
        yield
    BUILDING.built()


def place_of(location: mlir.Location) -> mlir.Location:
    """The innermost place in a program that is not in Triton's own library."""
    files = [*_files(location)]
    user_frames = [f for f in files if "/triton/language/" not in f.filename]
    return (user_frames or files or [location])[0]


def _files(location: mlir.Location) -> Iterator[Any]:
    loc = narrowed(location)
    if loc.is_a_file():
        yield loc
    elif loc.is_a_name():
        yield from _files(loc.child_loc)
    elif loc.is_a_callsite():
        yield from _files(loc.callee)
        yield from _files(loc.caller)
    elif loc.is_a_fused():
        for one in loc.locations:
            yield from _files(one)
