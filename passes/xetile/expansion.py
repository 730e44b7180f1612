"""Rewriting of a kernel in which one value becomes several, control flow included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from mlir import ir
from mlir.dialects import arith
from xegpu_py.dialects.xetile import Tile
from xegpu_py.passes.common.control_flow import STRUCTURED

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.verifier import walk

Method = TypeVar("Method", bound=Callable[..., Any])

_REBUILT: dict[Callable[..., Any], tuple[str, ...]] = {}
"""By method of an `Expansion` the names of the ops that it rebuilds."""


def rebuilds(*names: str) -> Callable[[Method], Method]:
    """Let a method of an `Expansion`, which gets an op's view and gives what `op` gives, rebuild ops of these names."""

    def mark(method: Method) -> Method:
        _REBUILT[method] = names
        return method

    return mark


def kernels(root: ir.Operation) -> list[ir.Operation]:
    """The kernels in an op, or it, that hold XeTile."""
    found = []
    for op in walk(root):
        if op.name in ("gpu.func", "func.func") and len(op.regions) and len(op.regions[0].blocks):
            inside = walk(op)
            if any(o.name.startswith("xetile.") for o in inside):
                if len(op.regions[0].blocks) != 1:
                    emit_error(
                        op,
                        "has unstructured control flow, in which tiles cannot be lowered",
                        "xegpu-lift-cf makes scf ops of branches between blocks",
                    )
                found.append(op)
    return found


class Expansion:
    """Rebuilds the body of a function op by op. Subclasses say what becomes of the ops that concern them.

    Attributes:
        values: for each value of the old body those that stand for it in the new one.
        func: the function.
    """

    _rules: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls) -> None:
        methods = {name: m for name, m in vars(cls).items() if isinstance(m, FunctionType)}
        cls._rules = {op: name for name, method in methods.items() for op in _REBUILT.get(method, ())}

    def __init__(self, func: ir.Operation) -> None:
        self.func = func
        self.values: dict[ir.Value, list[ir.Value]] = {}

    def types(self, value: ir.Value) -> list[ir.Type]:
        """The types of what stands for an old value that control flow passes on."""
        return [value.type]

    def op(self, op: Any) -> Sequence[ir.Value] | None:
        """Rebuild one op at the current insertion point, by the method that `rebuilds` ops of its name.

        Returns:
            What stands for its results, of all of them in a row where each stays one; None to have it cloned.
        """
        rule = self._rules.get(op.name)
        if rule:
            found: Sequence[ir.Value] | None = getattr(self, rule)(op.opview)
            return found
        found = self._tiles(op)
        return self.other(op) if found is None else found

    def other(self, op: Any) -> Sequence[ir.Value] | None:
        """The same for ops that no method rebuilds."""
        return None

    def _tiles(self, op: ir.Operation) -> Sequence[ir.Value] | None:
        """The same for tiles that control flow has made: undefined ones, and choices of two."""
        if len(op.results) != 1 or not Tile.accepts(str(op.results[0].type)):
            return None
        if op.name == "ub.poison":
            attributes = {name: op.attributes[name] for name in op.attributes}
            return [ir.Operation.create(op.name, [t], [], attributes).result for t in self.types(op.results[0])]
        if op.name == "arith.select":
            condition, yes, no = op.operands
            return [arith.select(self.one(condition), a, b) for a, b in zip(self.get(yes), self.get(no), strict=True)]
        return None

    def argument(self, argument: ir.Value) -> list[ir.Value]:
        """What stands for an argument of the function."""
        return [argument]

    def run(self) -> None:
        """Rebuild the function."""
        block = self.func.regions[0].blocks[0]
        old = list(block.operations)
        with ir.InsertionPoint(old[0]):
            for argument in block.arguments:
                self.values[argument] = self.argument(argument)
            self._ops(old)
        for op in reversed(old):
            op.operation.erase()

    def get(self, value: ir.Value) -> list[ir.Value]:
        """What stands for an old value."""
        return self.values[value]

    def one(self, value: ir.Value) -> ir.Value:
        """The one value that stands for an old one."""
        (found,) = self.values[value]
        return found

    def set(self, op: Any, *groups: Sequence[ir.Value]) -> None:
        """Say what stands for each of an op's results."""
        for result, group in zip(op.operation.results, groups, strict=True):
            self.values[result] = list(group)

    def clone(self, op: Any) -> ir.Operation:
        """The same op on new operands."""
        made = op.operation.clone()
        for i, operand in enumerate(op.operation.operands):
            made.operands[i] = self.one(operand)
        return made

    def _ops(self, ops: Iterable[Any]) -> None:
        for op in ops:
            with op.operation.location:
                self._rebuild(op.operation)

    def _rebuild(self, op: ir.Operation) -> None:
        if op.name in STRUCTURED:
            self._control(op)
            return
        found = self.op(op)
        if found is None:
            if any(len(self.values[v]) != 1 for v in op.operands):
                emit_error(op, "cannot take a tile, or a vector that is divided")
            if len(op.regions):
                note = ["gpu-kernel-outlining makes a kernel of it"] if op.name == "gpu.launch" else []
                emit_error(op, "cannot stand in a kernel of tiles", *note)
            found = list(self.clone(op).results)
        if len(op.results) == 1:
            self.values[op.results[0]] = list(found)
        elif len(op.results):
            self.set(op, *([v] for v in found))

    def _flat(self, values: Iterable[ir.Value]) -> list[ir.Value]:
        return [new for old in values for new in self.values[old]]

    def _split(self, olds: Iterable[ir.Value], news: Iterator[ir.Value]) -> None:
        for old in olds:
            self.values[old] = [next(news) for _ in self.types(old)]

    def more(self, loop: ir.Operation) -> list[ir.Value]:
        """What a loop shall carry besides what it does: the values that it begins with."""
        return []

    def more_yielded(self, loop: ir.Operation, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """What is carried on of that, built at the end of the loop's body."""
        return []

    def _control(self, op: ir.Operation) -> None:
        more = self.more(op) if op.name == "scf.for" else []
        results = [*(t for r in op.results for t in self.types(r)), *(v.type for v in more)]
        operands = [*self._flat(op.operands), *more]
        attributes = {name: op.attributes[name] for name in op.attributes}
        made = ir.Operation.create(
            op.name, results=results, operands=operands, attributes=attributes, regions=len(op.regions)
        )
        for old_region, region in zip(op.regions, made.regions):
            for old in old_region.blocks:
                arguments = list(old.arguments)
                types = [*(t for a in arguments for t in self.types(a)), *(v.type for v in more)]
                block = region.blocks.append(*types, arg_locs=[op.location] * len(types))
                self._split(arguments, iter(block.arguments))
                *body, last = old.operations
                with ir.InsertionPoint(block):
                    self._ops(body)
                    with last.operation.location:
                        own = list(block.arguments)[len(types) - len(more) :] if more else []
                        also = self.more_yielded(op, own) if op.name == "scf.for" else []
                        ir.Operation.create(
                            last.operation.name,
                            operands=[*self._flat(last.operation.operands), *also],
                            attributes={n: last.operation.attributes[n] for n in last.operation.attributes},
                        )
        self._split(op.results, iter(made.results))
