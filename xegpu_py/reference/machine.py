"""The reference evaluator: how a function is walked op by op, with frames, lanes and barriers."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NoReturn

from mlir import ir

from xegpu_py.ir.builtin import check_format, dense_elements, enumerator, formatted
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, position_of
from xegpu_py.ir.operation import STATIC, group_sizes
from xegpu_py.numerics.dpas import Model
from xegpu_py.reference.storage import (
    AddressSpace,
    ElementType,
    FailedAssertion,
    Fault,
    MemRef,
    UnsupportedOp,
    ValueKind,
    allocated,
    kind_of,
)
from xegpu_py.visa.program import Dim

# The machine on which functions are evaluated: workgroups of subgroups of lanes.
#
# Lanes of a subgroup run in lockstep: an op is evaluated for all active lanes before the next op. If lanes
# diverge, each branch runs for the lanes that take it. A kernel in VC mode, or at workgroup level, has
# one lane. Subgroups are generators, which yield when they wait; a workgroup resumes them round robin.

Lanes = tuple[int, ...]
"""The active lanes of a subgroup, in increasing order."""

Steps = Generator["Barrier | None", None, Any]
"""An execution: it yields a barrier to wait for, or None to let other subgroups continue, and returns a result."""


@dataclass
class LaunchState:
    """The state that all workgroups share.

    Attributes:
        function: the kernel.
        grid, block: workgroups, and work items of a workgroup, in x, y and z.
        lanes: work items that are lanes of a subgroup; 1 in VC mode.
        items: work items of the launch that a subgroup executes.
        whole: whether the kernel is at workgroup level: its values belong to a whole workgroup.
        model: rounding model of dpas.
        arguments: the kernel's arguments.
        memory: global memory.
        writers: the ops that wrote watched bytes of it, in order, each with its workgroup and subgroup.
        built_apart: whether each subgroup builds its own ops, and ops at one location correspond (eager execution).
    """

    function: EvaluatedFunction
    grid: Dim
    block: Dim
    lanes: int
    items: int
    whole: bool
    model: Model
    arguments: Sequence[Any]
    memory: AddressSpace
    functions: dict[str, EvaluatedFunction | None] = field(default_factory=dict)
    writers: list[tuple[ir.Operation, str]] = field(default_factory=list)
    built_apart: bool = False

    def callee(self, node: Node, name: str) -> EvaluatedFunction | None:
        """The function that a call names; None if it has no body."""
        if name not in self.functions:
            function = symbol(node.op, name)
            self.functions[name] = EvaluatedFunction(function) if len(function.regions[0].blocks) else None
        return self.functions[name]

    @property
    def block_items(self) -> int:
        """Work items of a workgroup."""
        return math.prod(self.block)


def symbol(op: ir.Operation, name: str) -> ir.Operation:
    """The op that defines a symbol in the module around an op."""
    module = op.parent.operation
    while module.name not in ("gpu.module", "builtin.module"):
        module = module.parent.operation
    return ir.SymbolTable(module)[name].operation


class NotEvaluated(DiagnosticError):
    """An op that the evaluator does not support; the kernel may be valid."""


class Barrier:
    """A barrier. A phase is complete when all have signalled; a subgroup waits for its next phase."""

    def __init__(self) -> None:
        self.arrived = self.phases = 0
        self.passed: dict[int, int] = {}

    def signal(self, arrivals: int) -> None:
        """Count an arrival."""
        self.arrived += 1
        if self.arrived == arrivals:
            self.arrived, self.phases = 0, self.phases + 1

    def is_open(self, subgroup: int) -> bool:
        """Whether the phase that a subgroup waits for is complete."""
        return self.phases > self.passed.get(subgroup, 0)

    def wait(self, subgroup: EvaluatedSubgroup, node: Node) -> Steps:
        """Wait for the next phase."""
        subgroup.waits_at = node
        while not self.is_open(subgroup.number):
            yield self
        self.passed[subgroup.number] = self.passed.get(subgroup.number, 0) + 1


class Workgroup:
    """A workgroup.

    Attributes:
        position: its position in the grid.
        shared: shared local memory.
        barriers: by number; -1 is the barrier of the whole workgroup.
        allocated: shared memrefs, by the op that allocates them.
        told: the operands of each subgroup for an op of the whole workgroup, by the op and the subgroup's number.
    """

    def __init__(self, launch: LaunchState, position: Dim) -> None:
        self.launch, self.position = launch, position
        self.shared = AddressSpace("shared local memory")
        self.barriers: dict[int, Barrier] = {}
        self.allocated: dict[Any, MemRef] = {}
        self.told: dict[Any, dict[int, Any]] = {}
        self.named_barriers = 0
        count = 1 if launch.whole else -(-launch.block_items // launch.items)
        self.subgroups = [EvaluatedSubgroup(self, n) for n in range(count)]

    def barrier(self, number: int) -> Barrier:
        """The barrier with a number."""
        return self.barriers.setdefault(number, Barrier())

    def shared_memref(self, key: Any, memref_type: ir.MemRefType) -> MemRef:
        """The memref in shared local memory of an op or attribution, the same for all subgroups."""
        if key not in self.allocated:
            self.allocated[key] = allocated(self.shared, memref_type, f"shared {len(self.allocated)}")
        return self.allocated[key]

    def run(self) -> None:
        """Run all subgroups to their ends; then print their output in the order of subgroups.

        Raises:
            DiagnosticError: if an op cannot be evaluated, or all remaining subgroups wait forever.
        """
        try:
            self._run()
        finally:
            for subgroup in self.subgroups:
                print("".join(subgroup.printed), end="")

    def _run(self) -> None:
        alive = [(s, s.run()) for s in self.subgroups]
        waiting: dict[int, Barrier] = {}
        while alive:
            unfinished, progress = [], False
            for subgroup, steps in alive:
                barrier = waiting.get(subgroup.number)
                if barrier is None or barrier.is_open(subgroup.number):
                    waiting.pop(subgroup.number, None)
                    progress = True
                    try:
                        event = next(steps)
                    except StopIteration:
                        continue
                    if event is not None:
                        waiting[subgroup.number] = event
                unfinished.append((subgroup, steps))
            alive = unfinished
            if not progress:
                self.report_deadlock([s for s, _ in alive])

    def report_deadlock(self, waiting: Sequence[EvaluatedSubgroup]) -> NoReturn:
        """Report the subgroups that wait forever.

        Raises:
            DiagnosticError: at the barrier of the first.
        """
        first_waiting = waiting[0]
        numbers = ", ".join(str(s.number) for s in waiting)
        note = f"subgroup{'s' * (len(waiting) > 1)} {numbers} of {len(self.subgroups)} wait; the others have ended"
        raise first_waiting.error(first_waiting.waits_at, Fault("waits forever at a barrier", note), None)


class CallFrame:
    """The values of one call of a function: a list of the lanes' values for each place."""

    __slots__ = ("values",)

    def __init__(self, size: int, lanes: int) -> None:
        self.values: list[list[Any]] = [[None] * lanes for _ in range(size)]

    def give(self, targets: Sequence[int], sources: Sequence[int], lanes: Lanes) -> None:
        """Copy values between places, all at the same time."""
        for lane in lanes:
            moved_values = [self.values[s][lane] for s in sources]
            for target, value in zip(targets, moved_values):
                self.values[target][lane] = value

    def set(self, slots: Sequence[int], results: Any, lane: int) -> None:
        """Set the results of an op: one value, or a tuple of several."""
        if len(slots) == 1:
            self.values[slots[0]][lane] = results
        else:
            for slot, value in zip(slots, results or ()):
                self.values[slot][lane] = value


@dataclass(frozen=True)
class Lane:
    """A lane of a subgroup, as rules see it."""

    subgroup: EvaluatedSubgroup
    number: int

    @property
    def workgroup(self) -> Workgroup:
        """Its workgroup."""
        return self.subgroup.workgroup

    @property
    def launch(self) -> LaunchState:
        """The launch."""
        return self.subgroup.workgroup.launch

    @property
    def item(self) -> int:
        """The number of its work item in the workgroup, or of the first work item of its subgroup."""
        return self.subgroup.number * self.launch.items + self.number


class EvaluatedSubgroup:
    """A subgroup, or the whole workgroup if the kernel is at workgroup level.

    Attributes:
        number: its number in the workgroup.
        lanes: its lanes.
        present: the lanes that have a work item: the last subgroup of a workgroup may have fewer.
        printed: its output.
    """

    def __init__(self, workgroup: Workgroup, number: int) -> None:
        launch = workgroup.launch
        self.workgroup, self.number = workgroup, number
        self.launch = launch
        self.lanes = [Lane(self, i) for i in range(launch.lanes)]
        first_item = number * launch.items
        lanes_present = launch.block_items - first_item if launch.lanes > 1 else 1
        self.present: Lanes = tuple(range(min(launch.lanes, lanes_present)))
        self.waits_at: Any = None
        self.printed: list[str] = []

    def prints(self, form: str, elements: Sequence[str], values: Sequence[int | float]) -> None:
        """Print numbers by a format: immediately in eager execution, otherwise when the workgroup has ended.

        Raises:
            Fault: if the format does not match the values.
        """
        try:
            check_format(form, elements)
        except ValueError as e:
            raise Fault(f"cannot print: {e}") from None
        text = formatted(form, elements, values)
        if self.launch.built_apart:
            print(text, end="")
        else:
            self.printed.append(text)

    def run(self) -> Steps:
        """Run the kernel."""
        function = self.launch.function
        frame = CallFrame(function.size, len(self.lanes))
        entry = function.blocks[0].arguments
        arguments = list(self.launch.arguments)
        for op_argument in range(len(arguments), len(entry)):
            arguments.append(self._attribution(op_argument))
        for lane in range(len(self.lanes)):
            for slot, value in zip(entry, arguments):
                frame.values[slot][lane] = value
        yield from self.region(frame, function.blocks, self.present)

    def _attribution(self, argument: int) -> MemRef:
        block = self.launch.function.op.regions[0].blocks[0]
        return self.workgroup.shared_memref(argument, ir.MemRefType(block.arguments[argument].type))

    def region(self, frame: CallFrame, blocks: list[RegionBlock], lanes: Lanes) -> Steps:
        """Run a region. Lanes in the first of several blocks continue first, so that divergent lanes reconverge.

        Returns:
            The terminator at which each lane left, by lane.
        """
        terminators: dict[int, Node] = {}
        block_of_lane = dict.fromkeys(lanes, 0)
        while block_of_lane:
            first_block = min(block_of_lane.values())
            block_lanes = tuple([lane for lane in lanes if block_of_lane.get(lane) == first_block])
            terminator = yield from self.block(frame, blocks[first_block], block_lanes)
            if terminator is None or not terminator.successors:
                for lane in block_lanes:
                    terminators[lane] = terminator
                    del block_of_lane[lane]
                continue
            for lane in block_lanes:
                successor, forwarded = terminator.rule(terminator, [frame.values[p][lane] for p in terminator.operands])
                block_of_lane[lane] = terminator.successors[successor]
                sources = terminator.operands[forwarded]
                frame.give(blocks[block_of_lane[lane]].arguments, sources, (lane,))
        return terminators

    def block(self, frame: CallFrame, block: RegionBlock, lanes: Lanes) -> Steps:
        """Run the ops of a block up to its terminator, which is returned."""
        values, memory = frame.values, self.launch.memory
        for node in block.nodes:
            style, rule = node.style, node.rule
            if rule is None:
                raise self.error(node, UnsupportedOp("has no rule in the reference evaluator"), None)
            lane: int | None = None
            try:
                if style == "each":
                    for lane in lanes:
                        frame.set(node.results, rule(node, *[values[p][lane] for p in node.operands]), lane)
                elif style == "in":
                    for lane in lanes:
                        operands = [values[p][lane] for p in node.operands]
                        frame.set(node.results, rule(self.lanes[lane], node, *operands), lane)
                elif style == "control":
                    yield from rule(self, frame, node, lanes)
                else:
                    self.check_together(lanes)
                    operand_values = [[values[p][i] for p in node.operands] for i in lanes]
                    for lane, results in zip(lanes, rule(self, node, operand_values)):
                        frame.set(node.results, results, lane)
            except Fault as fault:
                raise self.error(node, fault, lane) from None
            if memory.is_touched:
                memory.is_touched = False
                self.launch.writers.append((node.op, f"workgroup {self.workgroup.position}, subgroup {self.number}"))
        return block.end

    def check_together(self, lanes: Lanes) -> None:
        """Check that all lanes of the subgroup are active.

        Raises:
            Fault: if they are not.
        """
        if len(lanes) != len(self.present):
            inactive = ", ".join(str(i) for i in self.present if i not in lanes)
            raise Fault(
                f"must be executed by the whole subgroup, but lanes {inactive} do not reach it",
                "block accesses, dpas and barriers must not be in divergent control flow",
            )

    def error(self, node: Node, fault: Fault, lane: int | None) -> DiagnosticError:
        """The diagnostic of a fault at an op."""
        where = position_of(node.op.location)
        x, y, z = self.workgroup.position
        name = ir.StringAttr(self.launch.function.op.attributes["sym_name"]).value
        at = f"in kernel '{name}', workgroup ({x}, {y}, {z})"
        if not self.launch.whole:
            at += f", subgroup {self.number}"
        if lane is not None and len(self.lanes) > 1:
            at += f", lane {lane}"
        notes = tuple(Diagnostic("note", n, where) for n in (*fault.notes, at))
        error_class = NotEvaluated if isinstance(fault, UnsupportedOp) else DiagnosticError
        op = "" if isinstance(fault, FailedAssertion) else f"'{node.name}' op "
        return error_class([Diagnostic("error", f"{op}{fault.message}", where, notes)])


# A function as the evaluator walks it: ops with their rules, operands and results as places in a frame.
#
# Each dialect's file registers one function for each op, by the op's name:
#
# - `evaluates`: gets the node and its operands, and gives its result, or a tuple of results. It runs once for each
#   lane.
# - `evaluates_in`: the same, after a `Lane`: where in the launch it runs.
# - `together`: runs once for all lanes of a subgroup. It gets the subgroup, the node, and the operands of each lane,
#   and gives the results of each lane.
# - `controls`: a generator of a subgroup, a frame, a node and the active lanes, which runs regions, or waits.

Style = Literal["each", "in", "together", "control"]

RULES: dict[str, tuple[Style, Callable[..., Any]]] = {}
"""How each op is evaluated, by its name."""

Register = Callable[[Callable[..., Any]], Callable[..., Any]]


def _registers(style: Style) -> Callable[..., Register]:
    """A decorator of rules, which takes the names of the ops."""

    def named(*names: str) -> Register:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            RULES.update(dict.fromkeys(names, (style, function)))
            return function

        return register

    return named


evaluates, evaluates_in = _registers("each"), _registers("in")
together, controls = _registers("together"), _registers("control")


class Node:
    """An op of a function.

    Attributes:
        op: the op.
        name: its name.
        operands, results: places in the frame.
        regions: its regions, each a list of blocks.
        successors: of a branch the numbers of the blocks in its region.
        style, rule: how it is evaluated; `rule` is None if nothing is registered for it.
    """

    __slots__ = ("_memo", "name", "op", "operands", "regions", "results", "rule", "style", "successors")

    def __init__(self, op: ir.Operation, operands: tuple[int, ...], results: tuple[int, ...]) -> None:
        self.op, self.name = op, op.name
        self.operands, self.results = operands, results
        self.regions: list[list[RegionBlock]] = []
        self.successors: tuple[int, ...] = ()
        self.style: Style = "each"
        self.rule: Callable[..., Any] | None = None
        if self.name in RULES:
            self.style, self.rule = RULES[self.name]
        self._memo: dict[Any, Any] = {}

    def memo(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, cached under a key: properties that a rule derives of the op's types and
        attributes.
        """
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    def kind(self, result: int = 0) -> ValueKind:
        """The kind of a result that is a number or a vector."""
        return self.memo(("kind", result), lambda: kind_of(str(self.op.results[result].type)))

    def operand_kind(self, index: int) -> ValueKind:
        """The kind of an operand that is a number or a vector."""
        return self.memo(("operand", index), lambda: kind_of(str(self.op.operands[index].type)))

    @property
    def element(self) -> ElementType:
        """The element type of the first result."""
        return self.kind().element

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.kind().shape

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value: numbers, strings and lists of these; otherwise its text."""
        return self.memo(
            ("attribute", name),
            lambda: decoded(self.op.attributes[name]) if name in self.op.attributes else default,
        )

    def field(self, name: str) -> Any:
        """An attribute of an op of our dialects, as its class declares it."""
        return self.memo(("field", name), lambda: getattr(self.op.opview, name))

    def word(self, name: str) -> str:
        """The case of an enum attribute: the last word of its text."""
        return str(self.memo(("word", name), lambda: enumerator(self.op.attributes[name])))

    def groups(self, operands: Sequence[Any]) -> list[list[Any]]:
        """Operands divided as `operandSegmentSizes` says."""
        found, start = [], 0
        for size in self.attribute("operandSegmentSizes"):
            found.append(list(operands[start : start + size]))
            start += size
        return found

    def named(self, operands: Sequence[Any]) -> dict[str, list[Any]]:
        """Operands of an op of our dialects by the names of its fields, each a list."""
        sizes = self.memo("sizes", lambda: group_sizes(self.op.opview, "operand"))
        names = self.memo("names", lambda: [g.name for g in self.op.opview.spec.operands])
        operands_by_name, start = {}, 0
        for name, size in zip(names, sizes):
            operands_by_name[name] = list(operands[start : start + size])
            start += size
        return operands_by_name

    def index_list(self, name: str, dynamic: Sequence[Any]) -> list[int]:
        """A list of operands and constants mixed, such as offsets, as integers."""
        return mixed(self.attribute(STATIC + name, []), dynamic)


def mixed(static: Sequence[int], dynamic: Sequence[Any]) -> list[int]:
    """A static list with operands in the place of the sentinel."""
    waiting = iter(dynamic)
    return [int(next(waiting)) if n == DYNAMIC else int(n) for n in static]


def decoded(attribute: ir.Attribute) -> Any:
    """An attribute as a Python value; see `Node.attribute`."""
    for attribute_class, read in (
        (ir.BoolAttr, lambda a: bool(a.value)),
        (ir.IntegerAttr, lambda a: int(a.value)),
        (ir.FloatAttr, lambda a: float(a.value)),
        (ir.FlatSymbolRefAttr, lambda a: str(a.value)),
        (ir.StringAttr, lambda a: str(a.value)),
        (ir.ArrayAttr, lambda a: [decoded(e) for e in a]),
        (ir.DenseI64ArrayAttr, list),
        (ir.DenseI32ArrayAttr, list),
        (ir.DenseBoolArrayAttr, list),
        (ir.AffineMapAttr, lambda a: a.value),
        (ir.DenseElementsAttr, dense_elements),
        (ir.UnitAttr, lambda a: True),
    ):
        if isinstance(attribute, attribute_class):
            return read(attribute)
    return str(attribute)


class RegionBlock:
    """A block of a region.

    Attributes:
        arguments: places in the frame.
        nodes: its ops but the last.
        end: its terminator.
    """

    __slots__ = ("arguments", "end", "nodes")

    def __init__(self, arguments: tuple[int, ...]) -> None:
        self.arguments = arguments
        self.nodes: list[Node] = []
        self.end: Node = None  # type: ignore[assignment]


class EvaluatedFunction:
    """A function to be evaluated.

    Attributes:
        op: the function.
        blocks: its body's.
    """

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self._slots: dict[ir.Value, int] = {}
        self.blocks = self._region(op.regions[0])
        self._memo: dict[Any, Any] = {}

    def memo(self, find: Callable[[ir.Operation], Any]) -> Any:
        """Return the result of a function of the op, computed once."""
        if find not in self._memo:
            self._memo[find] = find(self.op)
        return self._memo[find]

    @property
    def size(self) -> int:
        """The places in a frame that its values take."""
        return len(self._slots)

    def slot_of(self, value: ir.Value) -> int:
        """The place of a value."""
        return self._slots.setdefault(value, len(self._slots))

    def _region(self, region: ir.Region) -> list[RegionBlock]:
        mlir_blocks = list(region.blocks)
        numbers = {block: i for i, block in enumerate(mlir_blocks)}
        blocks = [RegionBlock(tuple(self.slot_of(a) for a in block.arguments)) for block in mlir_blocks]
        for block, block_nodes in zip(mlir_blocks, blocks):
            nodes = [self.node(op.operation, numbers) for op in block.operations]
            block_nodes.nodes = nodes
            if nodes and (not nodes[-1].results or nodes[-1].successors):
                block_nodes.nodes, block_nodes.end = nodes[:-1], nodes[-1]
        return blocks

    def node(self, op: ir.Operation, numbers: Mapping[ir.Block, int] = MappingProxyType({})) -> Node:
        """An op of the function; `numbers` are those of the blocks of its region."""
        operands = tuple([self.slot_of(v) for v in op.operands])
        node = Node(op, operands, tuple([self.slot_of(v) for v in op.results]))
        node.regions = [self._region(region) for region in op.regions]
        node.successors = tuple([numbers[b] for b in op.successors])
        return node


# Evaluating ops one after the other as they are built, rather than a function that is complete.


class Stepper:
    """A subgroup's run of a function whose ops are being built.

    Attributes:
        subgroup: the subgroup.
    """

    def __init__(self, subgroup: EvaluatedSubgroup, func: ir.Operation) -> None:
        """Begin a run.

        Args:
            func: a function with the kernel's arguments, whose ops will be given one by one.
        """
        self.subgroup = subgroup
        self._function = EvaluatedFunction(func)
        self._frame = CallFrame(0, len(subgroup.lanes))
        self._grow()
        for slot, value in zip(self._function.blocks[0].arguments, subgroup.launch.arguments):
            self._frame.values[slot] = [value] * len(subgroup.lanes)

    def _grow(self) -> None:
        new_slots = self._function.size - len(self._frame.values)
        self._frame.values += [[None] * len(self.subgroup.lanes) for _ in range(new_slots)]

    def steps(self, op: ir.Operation) -> Steps:
        """Evaluate an op whose operands have been evaluated; yields where it waits.

        Raises:
            DiagnosticError: at the op, if it cannot be evaluated.
        """
        block = RegionBlock(())
        block.nodes = [self._function.node(op)]
        self._grow()
        yield from self.subgroup.block(self._frame, block, self.subgroup.present)

    def value(self, value: ir.Value) -> Any:
        """Return the first lane's contents of an evaluated value."""
        return self._frame.values[self._function.slot_of(value)][0]
