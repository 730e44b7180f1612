"""Drivers of rewrite rules: rules by op name, and the conversion of functions with 1:N types through control flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, ClassVar, NoReturn, TypeAlias, TypeVar

from mlir import ir

from xegpu_py.ir.control_flow import FIXED_OPERANDS, STRUCTURED, successor_operands
from xegpu_py.ir.diagnostics import Diagnostic, emit_error
from xegpu_py.passes.analysis.ir_queries import attributes_of, is_used
from xegpu_py.passes.rewriting.builders import replace_op

# Rules: functions that rewrite ops, registered by the names of the ops.

T = TypeVar("T", contravariant=True)
F = TypeVar("F", bound=Callable[..., Any])

Results: TypeAlias = ir.Value | list[ir.Value] | tuple[ir.Value | list[ir.Value], ...] | None
"""The replacement of an op's result: a value, or a list of values; for several results a tuple of these. None if the
rule has replaced the op itself."""

Rule = Callable[[T, ir.Operation], Results]
"""A function of a rewriter and an op, with the insertion point before the op."""


class Rules(dict[str, F]):
    """Functions by op name. Such a table is also the decorator that registers them.

    rule: Rules[Rule[Conversion]] = Rules()

    @rule("vector.step")
    def step(conversion: Conversion, op: ir.Operation) -> Results: ...
    """

    def __call__(self, *names: str) -> Callable[[F], F]:
        """Register a function for the ops of these names."""

        def register(function: F) -> F:
            self.update(dict.fromkeys(names, function))
            return function

        return register


class Rewriter:
    """A driver that applies rules to ops, and reports errors of rules at the current op.

    Attributes:
        rules: the rules by op name.
    """

    rules: ClassVar[Rules[Any]]
    _op: ir.Operation | None = None

    def op(self, op: ir.Operation) -> None:
        """Apply an op's rule, if there is one."""
        rule = self.rules.get(op.name)
        if rule is None:
            return
        outer, self._op = self._op, op
        with ir.InsertionPoint(op), op.location:
            self.apply(rule, op)
        self._op = outer

    def apply(self, rule: Callable[[Any, ir.Operation], Any], op: ir.Operation) -> None:
        """Apply a rule to an op, and replace the op's results by the values that it returns."""
        results = rule(self, op)
        if results is not None:
            self.replace(op, *(results if isinstance(results, tuple) else (results,)))

    def replace(self, op: ir.Operation, *results: ir.Value) -> None:
        """Replace each result of an op by a value."""
        replace_op(op, *results)

    def fail(self, message: str, *notes: str | Diagnostic) -> NoReturn:
        """Report an error at the op that is being rewritten.

        Raises:
            DiagnosticError: at the op.
        """
        assert self._op is not None
        emit_error(self._op, message, *notes)


# Conversion of functions: rules rewrite ops in place, and a value may become several values.
#
# This corresponds to MLIR's dialect conversion. A pass derives from `Conversion`, defines the types of converted values
# (`convert_types`), and has rules that rewrite ops. Ops without a rule are kept. Structured and unstructured
# control flow is converted to forward the converted values.


class Conversion(Rewriter):
    """The conversion of a function.

    A rule calls `replace`, `define` and `erase`, or `keep`. Ops and their results are erased at the end, so that rules
    can inspect the original ops.

    Attributes:
        values: the replacements of each converted value.
    """

    def __init__(self) -> None:
        self.values: dict[ir.Value, Sequence[ir.Value]] = {}
        self._dead: list[ir.Operation] = []
        self._dead_arguments: list[ir.Value] = []
        self._replaced: dict[ir.Block, list[ir.Value]] = {}

    # Hooks of subclasses.

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> Sequence[ir.Type] | None:
        """The types of the replacements of a block's argument or of a control-flow op's result; None to keep it.

        Args:
            value: the argument or result.
            init: the initial value if a loop carries it.
        """
        return None

    def forward(self, value: ir.Value, to: ir.Value) -> Sequence[ir.Value]:
        """The replacements of a value that control flow forwards."""
        return self.get(value)

    def define(self, value: ir.Value, replacement: Sequence[ir.Value]) -> None:
        """Set the replacements of a value."""
        self.values[value] = replacement

    def is_legal(self, op: ir.Operation) -> bool:
        """Return whether an op is kept, or converted as control flow, even if it has a rule."""
        return False

    def convert_without_rule(self, op: ir.Operation) -> None:
        """Convert an op without a rule: by default keep it, with its operands replaced."""
        self.keep(op)

    def before_terminator(self, op: ir.Operation) -> None:
        """Called at the end of a block, before its terminator."""

    # Helpers of rules.

    def get(self, value: ir.Value) -> Sequence[ir.Value]:
        """The replacements of a value."""
        replacements = self.values.get(value)
        return (value,) if replacements is None else replacements

    def replacement(self, value: ir.Value) -> ir.Value:
        """The only replacement of a value."""
        replacements = self.get(value)
        if len(replacements) != 1:
            self.fail(f"cannot take a value of type {value.type}, which has been divided")
        return replacements[0]

    def replace(self, op: ir.Operation, *results: ir.Value | Sequence[ir.Value]) -> None:
        """Replace each result of an op by one or several values."""
        for old, new in zip(op.results, results, strict=True):
            if isinstance(new, ir.Value):
                old.replace_all_uses_with(new)
            else:
                self.define(old, new)
        self._dead.append(op)

    def erase(self, op: ir.Operation) -> None:
        """Erase an op at the end of the conversion; its results have been defined by `define`."""
        self._dead.append(op)

    def keep(self, op: ir.Operation) -> None:
        """Keep an op with its operands replaced, and convert its regions."""
        for i, value in enumerate(op.operands):
            replacement = self.replacement(value)
            if replacement is not value:
                op.operands[i] = replacement
        if len(op.regions):
            for region in op.regions:
                self.region(region)

    # The driver.

    def region(self, region: ir.Region) -> None:
        """Convert the blocks of a region; the caller converts the arguments of the first one."""
        blocks = list(region.blocks)
        for block in blocks[1:]:
            self._convert_arguments(block)
        for block in blocks:
            self.block(block)

    def block(self, block: ir.Block) -> None:
        """Convert the ops of a block."""
        ops = [op.operation for op in block.operations]
        for i, op in enumerate(ops, 1):
            if i == len(ops):
                self.before_terminator(op)
            self.op(op)

    def op(self, op: ir.Operation) -> None:
        """Convert an op and its regions."""
        outer, self._op = self._op, op
        name = op.name
        rule = self.rules.get(name)
        with ir.InsertionPoint(op), op.location:
            if name in STRUCTURED and (rule is None or self.is_legal(op)):
                self.structured(op)
            elif len(op.successors):
                self._convert_branch(op)
            elif self.is_legal(op):
                self.keep(op)
            elif rule is not None:
                self.apply(rule, op)
            else:
                self.convert_without_rule(op)
        self._op = outer

    def inline(self, block: ir.Block) -> list[ir.Value]:
        """Move the ops of a block to the insertion point and convert them; returns the terminator's operands."""
        point = ir.InsertionPoint.current
        before, into = point.ref_operation, point.block
        *ops, end = (op.operation for op in block.operations)
        for op in ops:
            if before is None:
                into.append(op)
            else:
                op.move_before(before)
            self.op(op)
        operands = list(end.operands)
        end.erase()
        return operands

    def finish(self) -> None:
        """Erase the replaced ops that have no uses."""
        for op in reversed(self._dead):
            if not any(map(is_used, op.results)):
                op.erase()
        for argument in reversed(self._dead_arguments):
            argument.owner.erase_argument(argument.arg_number)
        self._dead, self._dead_arguments = [], []

    # Control flow.

    def structured(self, op: ir.Operation) -> None:
        """Convert a structured loop or branch: its operands, results and block arguments."""
        blocks = [list(region.blocks) for region in op.regions]
        fixed, first = FIXED_OPERANDS.get(op.name, len(op.operands)), int(op.name == "scf.for")
        inits, results = list(op.operands)[fixed:], list(op.results)
        arguments = self._convert_arguments(blocks[0][0], first, inits)
        for block in (b for number, region_blocks in enumerate(blocks) for b in region_blocks[not number :]):
            self._convert_arguments(block)
        operands = [self.replacement(v) for v in list(op.operands)[:fixed]]
        operands += [v for value, to in zip(inits, arguments) for v in self.forward(value, to)]
        self._convert_operands_and_results(op, operands, inits if first else (), blocks)
        for number, region_blocks in enumerate(blocks):
            targets = arguments if first or (op.name == "scf.while" and number) else results
            for block in region_blocks:
                self._convert_body(block, targets)

    def _convert_operands_and_results(
        self, op: ir.Operation, operands: list[ir.Value], inits: Sequence[ir.Value], blocks: list[list[ir.Block]]
    ) -> None:
        """Set the operands of a structured op; rebuild it if its results are converted."""
        results = list(op.results)
        types = [self.convert_types(*pair) for pair in zip_longest(results, inits)]
        if all(t is None for t in types) and len(operands) == len(op.operands):
            for i, value in enumerate(operands):
                op.operands[i] = value
            return
        new_op = ir.Operation.create(op.name, _flat(results, types), operands, attributes_of(op), None, len(blocks))
        for region_blocks, region in zip(blocks, new_op.regions):
            for block in region_blocks:
                block.append_to(region)
        # Recorded before the ops inside it, because replaced ops are erased from last to first.
        self._dead.append(op)
        self._define_replacements(results, types, new_op.results)

    def _convert_arguments(self, block: ir.Block, first: int = 0, inits: Sequence[ir.Value] = ()) -> list[ir.Value]:
        """Replace a block's arguments from number `first` on by their converted types.

        Returns:
            The old arguments.
        """
        old = list(block.arguments)[first:]
        types = [self.convert_types(*pair) for pair in zip_longest(old, inits)]
        if any(t is not None for t in types):
            location = ir.Location.current
            self._define_replacements(old, types, [block.add_argument(kind, location) for kind in _flat(old, types)])
            self._dead_arguments += old
            self._replaced[block] = old
        return old

    def _define_replacements(
        self, olds: Sequence[ir.Value], types: Sequence[Sequence[ir.Type] | None], news: Iterable[ir.Value]
    ) -> None:
        """Set the replacements of arguments or results from a flat list of values."""
        values = iter(news)
        for old, new_types in zip(olds, types):
            if new_types is None:
                old.replace_all_uses_with(next(values))
            else:
                self.define(old, [next(values) for _ in new_types])

    def _convert_body(self, block: ir.Block, targets: Sequence[ir.Value]) -> None:
        """Convert a block of a structured op whose terminator forwards values to these arguments or results."""
        *ops, last = (o.operation for o in block.operations)
        for inner in ops:
            self.op(inner)
        self.before_terminator(last)
        if len(last.successors):
            self.op(last)
            return
        outer, self._op = self._op, last
        with ir.InsertionPoint(last), last.location:
            operands = list(last.operands)
            first = len(operands) - len(targets)
            passed = [self.replacement(v) for v in operands[:first]]
            passed += [v for value, to in zip(operands[first:], targets) for v in self.forward(value, to)]
            if passed != operands:
                ir.Operation.create(last.name, [], passed, attributes_of(last))
                last.erase()
        self._op = outer

    def _convert_branch(self, op: ir.Operation) -> None:
        """Convert a terminator of `cf`, which forwards values to the arguments of its successors."""
        operands, successors = list(op.operands), successor_operands(op)
        fixed = successors[0][1].start
        groups = []
        for block, numbers in successors:
            old = self._replaced.get(block) or list(block.arguments)
            groups.append([v for n, to in zip(numbers, old) for v in self.forward(operands[n], to)])
        passed = [*map(self.replacement, operands[:fixed]), *(v for group in groups for v in group)]
        if passed == operands:
            return
        attributes, sizes = attributes_of(op), [len(group) for group in groups]
        if op.name == "cf.cond_br":
            attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, *sizes])
        elif op.name == "cf.switch":
            attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, sizes[0], sum(sizes[1:])])
            attributes["case_operand_segments"] = ir.DenseI32ArrayAttr.get(sizes[1:])
        ir.Operation.create(op.name, [], passed, attributes, [block for block, _ in successors])
        op.erase()


def _flat(values: Sequence[ir.Value], types: Sequence[Sequence[ir.Type] | None]) -> list[ir.Type]:
    return [t for value, kinds in zip(values, types) for t in ([value.type] if kinds is None else kinds)]
