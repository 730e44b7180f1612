"""A function as the evaluator walks it: ops with their rules, operands and results as places in a frame.

Each dialect's file registers one function for each op, by the op's name:

- `evaluates`: gets the node and its operands, and gives its result, or a tuple of results. It runs once for each lane.
- `evaluates_in`: the same, after a `Lane`: where in the launch it runs.
- `together`: runs once for all lanes of a subgroup. It gets the subgroup, the node, and the operands of each lane, and
  gives the results of each lane.
- `controls`: a generator that runs regions, or waits; see `machine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from mlir import ir

from xegpu_py.ir.dense import dense_elements
from xegpu_py.ir.fields import STATIC
from xegpu_py.ir.operation import group_sizes
from xegpu_py.reference.elements import Element, Kind, kind_of
from xegpu_py.reference.memory import Unknown

Style = Literal["each", "in", "together", "control"]

RULES: dict[str, tuple[Style, Callable[..., Any]]] = {}
"""How each op is evaluated, by its name."""

DYNAMIC = -(2**63)
"""What stands in a static list in the place of an operand; MLIR's own sentinel."""

Register = Callable[[Callable[..., Any]], Callable[..., Any]]


def _registers(style: Style, names: Sequence[str]) -> Register:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RULES[name] = (style, function)
        return function

    return register


def evaluates(*names: str) -> Register:
    """Register a function of a node and its operands for ops of these names."""
    return _registers("each", names)


def evaluates_in(*names: str) -> Register:
    """Register a function of a lane, a node and its operands."""
    return _registers("in", names)


def together(*names: str) -> Register:
    """Register a function of a subgroup, a node, and the operands of each of its lanes."""
    return _registers("together", names)


def controls(*names: str) -> Register:
    """Register a generator function of a subgroup, a frame, a node and the active lanes."""
    return _registers("control", names)


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
        self.regions: list[list[Block]] = []
        self.successors: tuple[int, ...] = ()
        self.style: Style = "each"
        self.rule: Callable[..., Any] | None = None
        if self.name in RULES:
            self.style, self.rule = RULES[self.name]
        self._memo: dict[Any, Any] = {}

    def memo(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, kept under a key: what a rule derives of the op's types and attributes."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    def kind(self, result: int = 0) -> Kind:
        """The kind of a result that is a number or a vector."""
        found: Kind = self.memo(("kind", result), lambda: _kind(self.op.results[result].type))
        return found

    def operand_kind(self, index: int) -> Kind:
        """The kind of an operand that is a number or a vector."""
        found: Kind = self.memo(("operand", index), lambda: _kind(self.op.operands[index].type))
        return found

    @property
    def element(self) -> Element:
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
        return str(
            self.memo(("word", name), lambda: str(self.op.attributes[name]).rstrip(">").replace("<", " ").split()[-1])
        )

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
        found, start = {}, 0
        for name, size in zip(names, sizes):
            found[name] = list(operands[start : start + size])
            start += size
        return found

    def index_list(self, name: str, dynamic: Sequence[Any]) -> list[int]:
        """A list of operands and constants mixed, such as offsets, as integers."""
        return mixed(self.attribute(STATIC + name, []), dynamic)


def mixed(static: Sequence[int], dynamic: Sequence[Any]) -> list[int]:
    """A static list with operands in the place of the sentinel."""
    waiting = iter(dynamic)
    return [int(next(waiting)) if n == DYNAMIC else int(n) for n in static]


def _kind(kind: ir.Type) -> Kind:
    try:
        return kind_of(str(kind))
    except ValueError as e:
        message = str(e)
        raise Unknown(message if message.startswith("has ") else f"has no rule for {kind}") from None


def decoded(attribute: ir.Attribute) -> Any:
    """An attribute as a Python value; see `Node.attribute`."""
    for kind, read in (
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
        if isinstance(attribute, kind):
            return read(attribute)
    return str(attribute)


class Block:
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


class Function:
    """A function to be evaluated.

    Attributes:
        op: the function.
        blocks: its body's.
    """

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self._places: dict[ir.Value, int] = {}
        self.blocks = self._region(op.regions[0])
        self._memo: dict[Any, Any] = {}

    def memo(self, find: Callable[[ir.Operation], Any]) -> Any:
        """What a function finds of the op, found once."""
        if find not in self._memo:
            self._memo[find] = find(self.op)
        return self._memo[find]

    @property
    def size(self) -> int:
        """The places in a frame that its values take."""
        return len(self._places)

    def place(self, value: ir.Value) -> int:
        """The place of a value."""
        return self._places.setdefault(value, len(self._places))

    def _region(self, region: ir.Region) -> list[Block]:
        given = list(region.blocks)
        numbers = {block: i for i, block in enumerate(given)}
        made = [Block(tuple(self.place(a) for a in block.arguments)) for block in given]
        for block, found in zip(given, made):
            nodes = [self.node(inner.operation, numbers) for inner in block.operations]
            found.nodes = nodes
            if nodes and (not nodes[-1].results or nodes[-1].successors):
                found.nodes, found.end = nodes[:-1], nodes[-1]
        return made

    def node(self, op: ir.Operation, numbers: Mapping[ir.Block, int] = MappingProxyType({})) -> Node:
        """An op of the function; `numbers` are those of the blocks of its region."""
        operands = tuple([self.place(v) for v in op.operands])
        node = Node(op, operands, tuple([self.place(v) for v in op.results]))
        node.regions = [self._region(region) for region in op.regions]
        node.successors = tuple([numbers[b] for b in op.successors])
        return node
