"""The conversion of a work item's program to that of a subgroup, and the helpers that patterns share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from xegpu_py.ir.builtin import enumerator
from xegpu_py.ir.combining import CombiningKind
from xegpu_py.ir.diagnostics import Diagnostic, position_of
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import PREDICATES
from xegpu_py.passes.common.control_flow import STRUCTURED
from xegpu_py.passes.common.conversion import Conversion
from xegpu_py.passes.common.fragments import Placement, Placements, natural, unmapped
from xegpu_py.passes.common.patterns import PatternSet
from xegpu_py.passes.common.ranges import Limits, Ranges
from xegpu_py.passes.common.values import attributes_of, element_of, shape_of, splat_of
from xegpu_py.passes.xegpu_simt_to_vc.known import Known
from xegpu_py.passes.xegpu_simt_to_vc.uniformity import Uniformity


@dataclass(frozen=True, eq=False)
class Held:
    """The representation of a work item's value in the subgroup's program.

    Attributes:
        value: the value itself if it is uniform; else a vector of the elements of all work items.
        placement: the positions of each lane's elements in the vector; None if the value is uniform. By default the
            lanes are a new innermost dimension.
    """

    value: ir.Value
    placement: Placement | None = None


Pattern = Callable[["Widener", ir.Operation], None]
pattern: PatternSet[Pattern] = PatternSet(
    __package__,
    {
        "blocks": "xegpu arith.select",
        "control": "scf func",
        "lanes": "gpu cf",
        "memory": "memref vector builtin",
        "transfers": "vector",
        "vectors": "vector xegpu",
    },
)
"""The patterns by op name; ops without a pattern are elementwise."""


class Widener(Conversion):
    """The conversion of one kernel. Uniform values do not change.

    Attributes:
        lanes: work items of a subgroup.
        because: the op that identifies the kernel as one of work items.
        held: the representations of the values that change.
        mask: vector of i1, the active lanes; None if all are.
        diverged: the op that may make lanes inactive.
        block_size: work items of a workgroup, if the kernel has them as an attribute.
        known: the numbers of lanes that are known at compile time.
        ranges: the ranges of its integers before the conversion, if a loop diverges.
    """

    patterns = pattern

    def __init__(
        self,
        func: ir.Operation,
        lanes: int,
        placements: Placements,
        because: ir.Operation,
        block_size: tuple[int, ...] | None,
        limits: Limits,
    ) -> None:
        super().__init__()
        self.lanes, self.placements, self.because, self.block_size = lanes, placements, because, block_size
        self.uniformity = Uniformity(func, lanes)
        diverges = any(op.name == "scf.for" and self.uniformity.diverges(op) for op in walk(func))
        self.ranges = Ranges(func, limits) if diverges else None
        self.held: dict[ir.Value, Held] = {}
        self.mask: ir.Value | None = None
        self.diverged: ir.Operation | None = None
        self.known = Known(lanes)
        self._forms: dict[ir.Value, Placement | None] = {}

    # What control flow passes on.

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> Sequence[ir.Type] | None:
        form = None
        if self.uniformity.varies(value):
            known = self.placements.of(value)
            if len(known) == 1 and shape_of(value):
                form = known[0]
            else:
                form = self.held[init].placement if init in self.held else None
                form = form or natural(shape_of(value), self.lanes)
        self._forms[value] = form
        if form is not None:
            return [build.vector_type(form.shape, element_of(value))]
        kind = unmapped(value.type)
        return None if kind == value.type else [kind]

    def forward(self, value: ir.Value, to: ir.Value) -> list[ir.Value]:
        form = self._forms[to]
        return [self.uniform(value) if form is None else self.at(value, form)]

    def define(self, value: ir.Value, replacement: Sequence[ir.Value]) -> None:
        self.held[value] = Held(replacement[0], self._forms[value])

    def one(self, value: ir.Value) -> ir.Value:
        return self.uniform(value)

    def is_legal(self, op: ir.Operation) -> bool:
        """Ops on uniform vectors, and control flow that all lanes follow, do not change."""
        if op.name in STRUCTURED:
            return not self.uniformity.diverges(op)
        vectors = op.name.startswith("vector.") or op.name == "xegpu.truncf"
        return vectors and not any(self.varies(v) or self.uniformity.varies(v) for v in op.operands)

    def no_pattern(self, op: ir.Operation) -> None:
        if any(self.uniformity.varies(v) for v in (*op.operands, *op.results)):
            elementwise(self, op)
        else:
            self.keep(op)

    def keep(self, op: ir.Operation) -> None:
        """Leave an op on uniform values."""
        for i, value in enumerate(op.operands):
            held = self.uniform(value)
            if held != value:
                op.operands[i] = held
        super().keep(op)

    def kept(self, op: ir.Operation) -> bool:
        """Leave an op if all its operands are uniform; returns whether they are."""
        if any(self.varies(v) for v in op.operands):
            return False
        self.keep(op)
        return True

    # Values of all lanes.

    def varies(self, value: ir.Value) -> bool:
        """Whether the representation of a value varies among work items."""
        return value in self.held and self.held[value].placement is not None

    def uniform(self, value: ir.Value) -> ir.Value:
        """A value that must be uniform."""
        if self.varies(value):
            self.fail(
                f"requires a uniform value of type {value.type} across the subgroup",
                "this value depends on the lane, or on a block distributed by an sg_map",
            )
        return self.held[value].value if value in self.held else value

    def require_numbers(self, values: Iterable[ir.Value]) -> None:
        """Refuse varying values of types that must be uniform: descriptors and memrefs."""
        for kind in (str(v.type) for v in values):
            if kind.startswith(("!", "memref<")):
                note = "descriptors and memrefs must be uniform"
                self.fail(f"has a divergent value of type {kind}", note)

    def wide(self, value: ir.Value) -> ir.Value:
        """The vector of all lanes' values, with the lanes as the innermost dimension."""
        return self.at(value, natural(shape_of(value), self.lanes))

    def at(self, value: ir.Value, placement: Placement) -> ir.Value:
        """The vector of all lanes' values with this placement."""
        return self.placed(self.held.get(value) or Held(value), placement, value.type)

    def placed(self, held: Held, placement: Placement, kind: ir.Type) -> ir.Value:
        """Convert a representation to this placement; `kind` is the work item's type."""
        if held.placement is None:
            return self._spread(held.value, kind, placement)
        value = held.value
        if not held.placement.same(placement):
            count = placement.order.size
            chosen = np.empty(count, np.int64)
            chosen[placement.order.ravel()] = held.placement.order.ravel()
            if not np.array_equal(chosen, np.arange(count)):
                value = build.permute(build.shape_cast(value, (count,)), chosen)
        return build.shape_cast(value, placement.shape)

    def _spread(self, value: ir.Value, kind: ir.Type, placement: Placement) -> ir.Value:
        """Broadcast a uniform value to all lanes."""
        shape, element = shape_of(kind), element_of(kind)
        made = build.vector_type(placement.shape, element)
        known = splat_of(value) if shape else None
        if known is not None:
            return build.constant(made, known)
        if not shape:
            return build.broadcast(value, made)
        # A broadcast adds the lanes as the outermost dimension.
        outer = build.broadcast(value, build.vector_type((self.lanes, *shape), element))
        return self.placed(Held(outer, self._lanes_first(shape)), placement, kind)

    def _lanes_first(self, shape: Sequence[int]) -> Placement:
        count = math.prod(shape)
        return Placement((self.lanes, *shape), np.arange(count * self.lanes).reshape(self.lanes, count).T)

    def value_of_lane(self, value: ir.Value, lane: int) -> ir.Value:
        """One lane's value."""
        return build.extract(self.at(value, self._lanes_first(shape_of(value))), [lane])

    def set(self, result: ir.Value, value: ir.Value, placement: Placement | None = None) -> None:
        """Set the representation of a varying value: by default a vector with the lanes as the innermost dimension."""
        self.held[result] = Held(value, placement or natural(shape_of(result), self.lanes))

    def widen(self, op: ir.Operation, value: ir.Value, placement: Placement | None = None) -> None:
        """Replace an op with one varying result; see `set`."""
        self.set(op.results[0], value, placement)
        self.erase(op)

    def vector(self, element: ir.Type) -> ir.Type:
        """The type of vectors with an element for each lane."""
        return build.vector_type((self.lanes,), element)

    def with_lanes(self, value: ir.Value) -> ir.Type:
        """The type of a value of all lanes, with the lanes as the innermost dimension."""
        return build.vector_type((*shape_of(value), self.lanes), element_of(value))

    def stacked(self, parts: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
        """A vector of all lanes of a type, from the vectors of all lanes of its elements."""
        found = build.constant(build.vector_type((len(parts), self.lanes), element_of(kind)), 0)
        for i, part in enumerate(parts):
            found = build.insert(part, found, [i])
        return build.shape_cast(found, (*shape_of(kind), self.lanes))

    def truth(self, value: bool) -> ir.Value:
        """vector of i1 with the same element for each lane."""
        return build.constant(self.vector(build.integer_type(1)), value)

    # Lanes that are here.

    def active(self) -> ir.Value:
        """vector of i1: the active lanes."""
        return self.truth(True) if self.mask is None else self.mask

    def any(self, mask: ir.Value) -> ir.Value:
        """Whether any lane's bit is set."""
        return CombiningKind.OR.reduce(mask)

    def choose(self, mask: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """Of two vectors with the lanes innermost, `a` in the lanes whose bit is set."""
        return build.select(build.broadcast(mask, build.vector_type(shape_of(a), build.integer_type(1))), a, b)

    def require_convergence(self, what: str) -> None:
        """Refuse an op of the whole subgroup where lanes may be inactive."""
        if self.diverged is not None:
            diverge = Diagnostic("note", "they diverge here", position_of(self.diverged.location))
            self.fail(f"{what} where work items of a subgroup may have diverged", diverge)


_PER_ELEMENT = ("arith.", "math.", "index.", "xegpu.truncf")
_ALSO_PER_ELEMENT = ("vector.fma", "vector.bitcast", "builtin.unrealized_conversion_cast")
_INDEX_OPS = (
    "add", "sub", "mul", "divs", "divu", "ceildivs", "ceildivu", "floordivs", "rems", "remu", "maxs", "maxu", "mins",
    "minu", "shl", "shrs", "shru", "and", "or", "xor",
)  # fmt: skip
"""Ops of index that arith has too, also on vectors, by the same names with an `i` at the end."""
_INDEX_CASTS = {"index.casts": "arith.index_cast", "index.castu": "arith.index_castui"}


def elementwise(w: Widener, op: ir.Operation) -> None:
    """Apply an elementwise op to vectors of all lanes, with the operands' placement if they agree."""
    if not (op.name.startswith(_PER_ELEMENT) or op.name in _ALSO_PER_ELEMENT):
        w.fail("is not supported in SIMT kernels", f"there is no lowering of '{op.name}' in SIMT mode")
    name, attributes = op.name, attributes_of(op)
    if name == "index.cmp":
        predicate = PREDICATES.index(enumerator(attributes.pop("pred")))
        name, attributes["predicate"] = "arith.cmpi", build.number_attribute(build.integer_type(64), predicate)
    elif name.startswith("index."):
        kind = name.removeprefix("index.")
        if kind not in _INDEX_OPS and name not in _INDEX_CASTS:
            w.fail("is not supported in SIMT kernels", "write it with arith")
        name = _INDEX_CASTS.get(name, f"arith.{kind}i")
    result = op.results[0]
    w.require_numbers(op.results)
    shape = shape_of(result)
    placement = _common(w, [v for v in op.operands if w.varies(v)], shape)
    operands = []
    for i, value in enumerate(op.operands):
        scalar = not w.varies(value) and not shape_of(value)
        if name == "arith.select" and i == 0 and scalar and element_of(result) != build.integer_type(1):
            operands.append(value)
        elif shape and not shape_of(value) and w.varies(value):
            # Each lane's condition selects all of its elements.
            operands.append(build.broadcast(w.wide(value), build.vector_type((*shape, w.lanes), build.integer_type(1))))
        else:
            operands.append(w.at(value, placement))
    made = build.create(
        name, [build.vector_type(placement.shape, element_of(r)) for r in op.results], operands, attributes
    )
    for old, new in zip(op.results, made.results):
        w.set(old, new, placement)
    w.erase(op)


def _common(w: Widener, values: Sequence[ir.Value], shape: tuple[int, ...]) -> Placement:
    """The common placement of these values; the natural one if they differ."""
    found: Placement | None = None
    for value in values:
        placement = w.held[value].placement
        assert placement is not None
        if shape_of(value) != shape or (found is not None and not found.same(placement)):
            return natural(shape, w.lanes)
        found = found or placement
    return found or natural(shape, w.lanes)
