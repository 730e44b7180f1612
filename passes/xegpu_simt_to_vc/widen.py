"""The subgroup's program, op by op from a work item's: the driver, and what the ops' rules share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from mlir import ir
from xegpu_py.passes.xegpu_simt_to_vc.fragments import Order, Placement, Placements, natural
from xegpu_py.passes.xegpu_simt_to_vc.known import Known
from xegpu_py.passes.xegpu_simt_to_vc.uniformity import Uniformity

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, position_of


@dataclass(frozen=True, eq=False)
class Held:
    """What a value of the work items is in the program of the subgroup.

    Attributes:
        value: of a uniform value the same as the work items have; else a vector of all work items' elements.
        placement: where a lane's elements are in it; None if it is uniform. By default the lanes are a new innermost
            dimension.
    """

    value: ir.Value
    placement: Placement | None = None


Rule = Callable[["Widener", ir.Operation], None]
RULES: dict[str, Rule] = {}
"""What rewrites each op, by its name; the others work on elements one by one."""


def widens(*names: str) -> Callable[[Rule], Rule]:
    """Register a function that rewrites these ops."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


@dataclass
class Widener:
    """One kernel as it is rewritten. New ops go to the insertion point that is current.

    Attributes:
        lanes: work items of a subgroup.
        because: the op that makes the kernel one of work items.
        held: what each value of the work items is.
        mask: vector of i1, the lanes that have come here; None where all have.
        diverged: the op on whose account not all lanes may have come here.
        block_size: work items of a workgroup, where the kernel says so.
        known: the numbers that lanes have whatever the kernel is given.
    """

    lanes: int
    uniformity: Uniformity
    placements: Placements
    because: ir.Operation
    held: dict[ir.Value, Held] = field(default_factory=dict)
    mask: ir.Value | None = None
    diverged: ir.Operation | None = None
    block_size: tuple[int, ...] | None = None
    known: Known = field(init=False)
    _op: ir.Operation | None = None

    def __post_init__(self) -> None:
        self.known = Known(self.lanes)

    def fail(self, message: str, *notes: str) -> NoReturn:
        """Refuse the op that is being rewritten.

        Raises:
            DiagnosticError: at the op.
        """
        assert self._op is not None
        where = position_of(self._op.location)
        attached = tuple(Diagnostic("note", n, where) for n in notes)
        raise DiagnosticError([Diagnostic("error", f"'{self._op.name}' op {message}", where, attached)])

    def block(self, block: ir.Block) -> list[ir.Value]:
        """Rewrite the ops of a block except its terminator, whose operands are returned."""
        ops = [o.operation for o in block.operations]
        for op in ops[:-1]:
            self.op(op)
        return list(ops[-1].operands)

    def op(self, op: ir.Operation) -> None:
        """Rewrite one op."""
        outer, self._op = self._op, op
        with op.location:
            rule = RULES.get(op.name)
            if rule:
                rule(self, op)
            elif not any(self.uniformity.varies(v) for v in (*op.operands, *op.results)):
                self.keep(op)
            else:
                elementwise(self, op)
        self._op = outer

    def keep(self, op: ir.Operation) -> ir.Operation:
        """The op as it is, on uniform values."""
        operands = [self.uniform(v) for v in op.operands]
        made = self.create(op.name, [r.type for r in op.results], operands, attributes_of(op))
        for old, new in zip(op.results, made.results):
            self.held[old] = Held(new)
        return made

    def create(
        self,
        name: str,
        results: Sequence[ir.Type],
        operands: Sequence[ir.Value],
        attributes: dict[str, ir.Attribute] | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        """A new op at the current place."""
        return ir.Operation.create(name, list(results), list(operands), attributes or {}, regions=regions)

    def make(self, name: str, result: ir.Type | str, *operands: ir.Value, **attributes: Any) -> ir.Value:
        """A new op's only result. Attributes are MLIR's, or their text."""
        kind = ir.Type.parse(result) if isinstance(result, str) else result
        parsed = {k: ir.Attribute.parse(v) if isinstance(v, str) else v for k, v in attributes.items()}
        return self.create(name, [kind], operands, parsed).results[0]

    def constant(self, value: int | float | bool, kind: str) -> ir.Value:
        """A constant of a scalar type."""
        text = str(value).lower() if kind == "i1" else f"{value} : {kind}"
        return self.make("arith.constant", kind, value=text)

    def splat(self, value: int | float | bool, kind: str, count: int | None = None) -> ir.Value:
        """A constant vector, by default with an element for each lane."""
        name = f"vector<{count or self.lanes}x{kind}>"
        return self.make("arith.constant", name, value=f"dense<{str(value).lower()}> : {name}")

    def integers(self, values: npt.NDArray[Any], kind: str) -> ir.Value:
        """A constant vector of integers or truth values."""
        name = f"vector<{len(values)}x{kind}>"
        return self.make("arith.constant", name, value=f"dense<{values.astype(np.int64).tolist()}> : {name}")

    def varies(self, value: ir.Value) -> bool:
        """Whether a value of the work items differs among them, as it is held."""
        return self.held[value].placement is not None

    def uniform(self, value: ir.Value) -> ir.Value:
        """A value that must be the same in all work items."""
        held = self.held[value]
        if held.placement is not None:
            self.fail(
                f"needs a value of type {value.type} that is the same in all work items of the subgroup",
                "this one depends on the work item's place in the subgroup, or on a block dealt out by an sg_map",
            )
        return held.value

    def wide(self, value: ir.Value) -> ir.Value:
        """The value of all lanes, with the lanes as the innermost dimension."""
        return self.at(value, natural(shape_of(value.type), self.lanes))

    def at(self, value: ir.Value, placement: Placement) -> ir.Value:
        """The value of all lanes as a vector that has the elements at these places."""
        return self.placed(self.held[value], placement, value.type)

    def placed(self, held: Held, placement: Placement, kind: ir.Type) -> ir.Value:
        """What is held, as a vector that has the elements at these places; `kind` is the work item's type."""
        element = element_of(kind)
        if held.placement is None:
            return self._spread(held.value, kind, placement)
        if held.placement.same(placement):
            return self.reshape(held.value, placement.shape, element)
        count = placement.order.size
        chosen = np.empty(count, np.int64)
        chosen[placement.order.ravel()] = held.placement.order.ravel()
        value = held.value
        if not np.array_equal(chosen, np.arange(count)):
            flat = self.reshape(value, (count,), element)
            value = self.make("vector.shuffle", f"vector<{count}x{element}>", flat, flat, mask=ordered(chosen))
        return self.reshape(value, placement.shape, element)

    def _spread(self, value: ir.Value, kind: ir.Type, placement: Placement) -> ir.Value:
        """A uniform value for all lanes."""
        shape, element = shape_of(kind), element_of(kind)
        if not shape:
            return self.make("vector.broadcast", vector_text(placement.shape, element), value)
        known = splat_of(value)
        if known is not None:
            made = vector_text(placement.shape, element)
            return self.make("arith.constant", made, value=f"dense<{known}> : {made}")
        # Broadcasting gives the lanes as the outer dimension.
        outer = self.make("vector.broadcast", vector_text((self.lanes, *shape), element), value)
        count = math.prod(shape)
        lanes_first = Placement((self.lanes, *shape), np.arange(count * self.lanes).reshape(self.lanes, count).T)
        return self.placed(Held(outer, lanes_first), placement, kind)

    def reshape(self, value: ir.Value, shape: Sequence[int], element: str) -> ir.Value:
        """The same elements in another shape."""
        text = vector_text(shape, element)
        return value if str(value.type) == text else self.make("vector.shape_cast", text, value)

    def set(self, result: ir.Value, value: ir.Value, placement: Placement | None = None) -> None:
        """Say what a varying result is: by default a vector with the lanes as the innermost dimension."""
        self.held[result] = Held(value, placement or natural(shape_of(result.type), self.lanes))

    def active(self) -> ir.Value:
        """vector of i1: the lanes that have come here."""
        return self.splat(True, "i1") if self.mask is None else self.mask

    def any(self, mask: ir.Value) -> ir.Value:
        """Whether any lane's bit is set."""
        return self.make("vector.reduction", "i1", mask, kind="#vector.kind<or>")

    def choose(self, mask: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """Of two vectors with the lanes innermost, `a` in the lanes whose bit is set."""
        shape = shape_of(a.type)
        if len(shape) > 1:
            mask = self.make("vector.broadcast", vector_text(shape, "i1"), mask)
        return self.make("arith.select", a.type, mask, a, b)

    def together(self, what: str) -> None:
        """Refuse an op that the whole subgroup does, where some lanes may not have come."""
        if self.diverged is not None:
            assert self._op is not None
            parting = Diagnostic("note", "they part here", position_of(self.diverged.location))
            text = f"'{self._op.name}' op {what} where work items of a subgroup may have parted"
            raise DiagnosticError([Diagnostic("error", text, position_of(self._op.location), (parting,))])


def attributes_of(op: ir.Operation) -> dict[str, ir.Attribute]:
    """An op's attributes."""
    return {name: op.attributes[name] for name in op.attributes}


def shape_of(kind: ir.Type) -> tuple[int, ...]:
    """The shape of a vector type; () of others."""
    return tuple(ir.VectorType(kind).shape) if isinstance(kind, ir.VectorType) else ()


def element_of(kind: ir.Type) -> str:
    """The element type of a vector type; a scalar type itself."""
    return str(ir.VectorType(kind).element_type) if isinstance(kind, ir.VectorType) else str(kind)


def vector_text(shape: Sequence[int], element: str) -> str:
    """A vector type."""
    return f"vector<{'x'.join(map(str, shape))}x{element}>"


def splat_of(value: ir.Value) -> str | None:
    """The element of a constant vector whose elements are all the same, as text."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    attribute = owner.operation.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    return str(attribute.get_splat_value()).split(" : ")[0]


_PER_ELEMENT = ("arith.", "math.", "index.")
_ARITH_NAMES = {
    "index.add": "arith.addi",
    "index.sub": "arith.subi",
    "index.mul": "arith.muli",
    "index.divs": "arith.divsi",
    "index.divu": "arith.divui",
    "index.ceildivs": "arith.ceildivsi",
    "index.ceildivu": "arith.ceildivui",
    "index.floordivs": "arith.floordivsi",
    "index.rems": "arith.remsi",
    "index.remu": "arith.remui",
    "index.maxs": "arith.maxsi",
    "index.maxu": "arith.maxui",
    "index.mins": "arith.minsi",
    "index.minu": "arith.minui",
    "index.shl": "arith.shli",
    "index.shrs": "arith.shrsi",
    "index.shru": "arith.shrui",
    "index.and": "arith.andi",
    "index.or": "arith.ori",
    "index.xor": "arith.xori",
    "index.casts": "arith.index_cast",
    "index.castu": "arith.index_castui",
}
"""What does on vectors what ops of index do on scalars."""
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def elementwise(w: Widener, op: ir.Operation) -> None:
    """An op on elements one by one: on whole vectors, with the elements where they are if the operands agree."""
    if not (op.name.startswith(_PER_ELEMENT) or op.name == "vector.fma"):
        w.fail("cannot be done by work items of a subgroup", f"op '{op.name}' is none that SIMT kernels may contain")
    name, attributes = op.name, attributes_of(op)
    if name == "index.cmp":
        predicate = str(attributes.pop("pred")).split("(")[-1].rstrip(")>")
        name, attributes["predicate"] = "arith.cmpi", ir.Attribute.parse(f"{_PREDICATES.index(predicate)} : i64")
    elif name.startswith("index."):
        if name not in _ARITH_NAMES:
            w.fail("cannot be done by work items of a subgroup", "write it with arith")
        name = _ARITH_NAMES[name]
    result = op.results[0]
    shape = shape_of(result.type)
    placement = _common(w, [v for v in op.operands if w.varies(v)], shape)
    operands = []
    for i, value in enumerate(op.operands):
        scalar = not w.varies(value) and not shape_of(value.type)
        if name == "arith.select" and i == 0 and scalar and element_of(result.type) != "i1":
            operands.append(w.uniform(value))
        elif shape and not shape_of(value.type) and w.varies(value):
            # Each lane's condition chooses among all of its elements.
            operands.append(w.make("vector.broadcast", vector_text((*shape, w.lanes), "i1"), w.wide(value)))
        else:
            operands.append(w.at(value, placement))
    kind = ir.Type.parse(vector_text(placement.shape, element_of(result.type)))
    made = w.create(name, [kind], operands, attributes)
    w.set(result, made.results[0], placement)


def _common(w: Widener, values: Sequence[ir.Value], shape: tuple[int, ...]) -> Placement:
    """The placement that all of these have, or else the natural one."""
    found: Placement | None = None
    for value in values:
        placement = w.held[value].placement
        assert placement is not None
        if shape_of(value.type) != shape or (found is not None and not found.same(placement)):
            return natural(shape, w.lanes)
        found = found or placement
    return found or natural(shape, w.lanes)


def ordered(values: Order) -> str:
    """Integers as an MLIR array attribute."""
    return f"array<i64: {', '.join(map(str, values))}>"
