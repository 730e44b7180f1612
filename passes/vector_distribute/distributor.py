"""The rewriting of a function: which op is distributed by which rule, and what rules build with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mlir import ir
from xegpu_py.dialects import iree_vector_ext
from xegpu_py.passes.vector_layout_analysis.flow import Layouts, analyze
from xegpu_py.passes.vector_layout_analysis.relations import is_vector

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, position_of
from xegpu_py.layout import NestedLayout

SUBGROUP_SIZE = "xegpu.subgroup_size"

Rule = Callable[["Distributor", ir.Operation], None]
_RULES: dict[str, Rule] = {}


def distributes(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule for ops of these names."""

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def distribute(func: ir.Operation, subgroup_size: int) -> None:
    """Distribute a function.

    Raises:
        DiagnosticError: at an op that cannot be distributed.
    """
    _load_rules()
    layouts = analyze(func)
    if not layouts:
        return
    d = Distributor(func, layouts, subgroup_size)
    d.block(func.regions[0].blocks[0])
    for op in reversed(d.dead):
        op.erase()
    if func.name == "gpu.func":
        i32 = ir.IntegerType.get_signless(32, func.context)
        func.attributes[SUBGROUP_SIZE] = ir.IntegerAttr.get(i32, subgroup_size)


def _load_rules() -> None:
    from xegpu_py.passes.vector_distribute import control, conversions, masks, memory, reductions, shapes

    assert all((control, conversions, masks, memory, reductions, shapes))


class Distributor:
    """A function that is being distributed.

    Attributes:
        layouts: of the whole vectors.
        subgroup_size: the number of lanes.
        subgroups: the number of subgroups, if the function says it.
        first: where the function began.
        dead: ops that are replaced, to be erased in reverse.
    """

    def __init__(self, func: ir.Operation, layouts: Layouts, subgroup_size: int) -> None:
        self.func = func
        self.layouts = layouts
        self.subgroup_size = subgroup_size
        self.subgroups = self._subgroups()
        self.dead: list[ir.Operation] = []
        self._parts: dict[ir.Value, ir.Value] = {}
        self._entry: dict[Any, ir.Value] = {}
        self.first = next(iter(func.regions[0].blocks[0]), None)
        self._fits: set[NestedLayout] = set()

    def block(self, block: ir.Block) -> None:
        """Distribute the ops of a block."""
        for view in list(block.operations):
            self.op(view.operation)

    def op(self, op: ir.Operation) -> None:
        """Distribute an op and what is in it, if it has to do with vectors that have layouts."""
        concerned = any(v in self.layouts for v in (*op.operands, *op.results))
        for value in op.results:
            if value in self.layouts:
                self._check(op, self.layouts[value])
        rule = _RULES.get(op.name)
        if rule is None and concerned and op.name.partition(".")[0] in ("arith", "math"):
            rule = _RULES["elementwise"]
        with ir.InsertionPoint(op), op.location:
            if rule and (concerned or op.name.startswith("scf.")):
                rule(self, op)
            elif concerned:
                self.fail(op, "cannot be distributed", f"there is no rule for {op.name} on vectors with layouts")
            else:
                for region in op.regions:
                    for block in region:
                        self.block(block)

    def _check(self, op: ir.Operation, layout: NestedLayout) -> None:
        """Whether lanes and subgroups have one part each of a layout."""
        if layout in self._fits:
            return
        size = self.subgroup_size
        for ids, present in ((layout.subgroups, self.subgroups), (layout.threads, size)):
            if ids.whole:
                i = ids.whole[0]
                message = f"has a layout with {ids.tile[i]} {ids.what} tiles in dimension {i}, but a stride of 0"
                self.fail(op, message, "there is no room for more than one tile in a distributed vector")
            if present is None and ids.period > 1 and self.func.name == "gpu.func":
                message = f"has a layout over {ids.period} subgroups, but the kernel does not say how many it has"
                self.fail(op, message, "say it by known_block_size, the work items of a workgroup")
            if present and present % ids.period:
                what = "lanes" if ids.what == "thread" else "subgroups"
                self.fail(op, f"has a layout over {ids.period} {what}, but there are {present}", str(layout))
        self._fits.add(layout)

    def _subgroups(self) -> int | None:
        """The number of subgroups, from the size of the workgroup."""
        if "known_block_size" not in self.func.attributes:
            return None
        total = math.prod(int(n) for n in ir.DenseI32ArrayAttr(self.func.attributes["known_block_size"]))
        if total % self.subgroup_size:
            message = f"has workgroups of {total} work items, which are no whole subgroups of {self.subgroup_size}"
            self.fail(self.func, message, "every lane has a part of each vector, so none may be missing")
        return total // self.subgroup_size

    def fail(self, op: ir.Operation, message: str, *notes: str) -> NoReturn:
        """Raise a diagnostic at an op."""
        where = position_of(op.location)
        attached = tuple(Diagnostic("note", n, where) for n in notes)
        raise DiagnosticError([Diagnostic("error", f"'{op.name}' op {message}", where, attached)])

    def layout(self, op: ir.Operation, value: ir.Value) -> NestedLayout:
        """The layout of a vector that an op uses or makes.

        Raises:
            DiagnosticError: if it has none.
        """
        found = self.layouts.get(value)
        if found is None:
            self.fail(
                op,
                f"cannot be distributed, as no layout is known for its {value.type}",
                "give it one with iree_vector_ext.to_layout",
            )
        return found

    def part_type(self, layout: NestedLayout, element: ir.Type) -> ir.Type:
        """The type of a lane's part of a vector."""
        return ir.VectorType.get(layout.distributed_shape, element)

    def part(self, value: ir.Value) -> ir.Value:
        """A lane's part of a vector with a layout; any other value as it is."""
        if value not in self.layouts:
            return value
        if value not in self._parts:
            # It comes from outside, or from an op that is not distributed.
            kind = self.part_type(self.layouts[value], ir.VectorType(value.type).element_type)
            made = iree_vector_ext.ToSimtOp(value, output=kind).operation.results[0]
            if not isinstance(value, ir.BlockArgument):
                return made
            self._parts[value] = made
            made.owner.move_before(self.first)
        return self._parts[value]

    def set(self, value: ir.Value, part: ir.Value) -> None:
        """Say what a lane's part of a vector is."""
        self._parts[value] = part

    def replace(self, op: ir.Operation, *parts: ir.Value) -> None:
        """Replace an op: vectors with layouts by parts, all else by the values themselves."""
        for old, new in zip(op.results, parts):
            if old in self.layouts:
                self.set(old, new)
            else:
                old.replace_all_uses_with(new)
        self.dead.append(op)

    def create(
        self, name: str, types: Sequence[ir.Type], operands: Sequence[ir.Value], attributes: Any = None
    ) -> ir.Value:
        """Build an op; its first result, if it has any."""
        made = ir.Operation.create(name, list(types), list(operands), dict(attributes or {}))
        return made.results[0] if types else None

    def constant(self, attribute: ir.Attribute) -> ir.Value:
        """A constant where the function begins, made once."""
        return self.once(
            ("constant", attribute),
            lambda: self.create("arith.constant", [attribute.type], [], {"value": attribute}),
        )

    def splat(self, kind: ir.Type, element: ir.Attribute) -> ir.Value:
        """A constant with the same element everywhere; `kind` may be a scalar's."""
        if isinstance(kind, ir.VectorType):
            return self.constant(ir.DenseElementsAttr.get_splat(kind, element))
        return self.constant(element)

    def once(self, key: Any, make: Callable[[], ir.Value]) -> ir.Value:
        """A value that is made where the function begins, once for each key."""
        if key not in self._entry:
            with ir.InsertionPoint(self.first), self.func.location:
                self._entry[key] = make()
        return self._entry[key]

    def index(self, n: int) -> ir.Value:
        """A constant of type index."""
        return self.constant(ir.IntegerAttr.get(ir.IndexType.get(), n))

    def add(self, value: ir.Value | None, n: int) -> ir.Value:
        """An index plus a number; no value stands for 0."""
        if value is None:
            return self.index(n)
        return self.create("arith.addi", [value.type], [value, self.index(n)]) if n else value

    def sum(self, *values: ir.Value | None) -> ir.Value | None:
        """The sum of indices; no value stands for 0."""
        total = None
        for value in values:
            if value is not None:
                total = value if total is None else self.create("arith.addi", [value.type], [total, value])
        return total

    def virtual_id(self, level: str, stride: int, n: int) -> ir.Value | None:
        """`(id / stride) mod n` of this lane or subgroup; None where that is always 0."""
        if n == 1:
            return None

        def make() -> ir.Value:
            kind = ir.IndexType.get()
            name = "gpu.subgroup_id" if level == "subgroup" else "gpu.lane_id"
            found = self.once(name, lambda: self.create(name, [kind], []))
            if stride > 1:
                found = self.create("arith.divui", [kind], [found, self.index(stride)])
            total = self.subgroup_size if level == "thread" else self.subgroups
            if total is None or stride * n < total:
                found = self.create("arith.remui", [kind], [found, self.index(n)])
            return found

        return self.once((level, stride, n), make)

    def virtual_ids(self, layout: NestedLayout, dim: int) -> tuple[ir.Value | None, ir.Value | None]:
        """The virtual subgroup and thread id in a dimension."""
        return (
            self.virtual_id("subgroup", layout.subgroup_strides[dim], layout.subgroup_tile[dim]),
            self.virtual_id("thread", layout.thread_strides[dim], layout.thread_tile[dim]),
        )

    def base(self, layout: NestedLayout, dim: int) -> ir.Value | None:
        """The index in a dimension of the first element that this lane has; None where that is always 0."""
        subgroup, thread = self.virtual_ids(layout, dim)
        if subgroup is None and thread is None:
            return None
        size = layout.shape[dim] // layout.subgroup_tile[dim]
        steps = ((subgroup, size), (thread, layout.element_tile[dim]))
        key = ("base", subgroup, thread, *(n for _, n in steps))

        def scaled(value: ir.Value | None, n: int) -> ir.Value | None:
            if value is None or n == 1:
                return value
            return self.create("arith.muli", [value.type], [value, self.index(n)])

        return self.once(key, lambda: self.sum(*(scaled(v, n) for v, n in steps)))


def attributes_of(op: ir.Operation) -> dict[str, ir.Attribute]:
    """An op's attributes."""
    return {name: op.attributes[name] for name in op.attributes}


def element_of(value: ir.Value) -> ir.Type:
    """The element type of a vector, or the type of a scalar."""
    return ir.VectorType(value.type).element_type if is_vector(value) else value.type
