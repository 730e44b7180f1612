"""Distribution of vectors among lanes by nested layouts, and conversion between layouts by shuffles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from mlir import ir
from msgspec import Struct

from xegpu_py.dialects import iree_vector_ext
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.layout import NestedLayout
from xegpu_py.layout.nested import Ints
from xegpu_py.passes.analysis.ir_queries import SUBGROUP_SIZE, element_of, shape_of
from xegpu_py.passes.analysis.vector_layouts import Layouts, infer_layouts, relation
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import make
from xegpu_py.passes.rewriting.rewriter import Conversion, Rule, Rules

# The conversion of a function: the rules by op, and the builders that rules share.

distribution_rule: Rules[Rule[Distributor]] = Rules()
"""The distribution rules by op name."""


def distribute(func: ir.Operation, subgroup_size: int) -> None:
    """Distribute a function.

    Raises:
        DiagnosticError: at an op that cannot be distributed.
    """
    layouts = infer_layouts(func)
    if not layouts:
        return
    d = Distributor(func, layouts, subgroup_size)
    d.region(func.regions[0])
    d.finish()
    if func.name == "gpu.func":
        i32 = ir.IntegerType.get_signless(32, func.context)
        func.attributes[SUBGROUP_SIZE] = ir.IntegerAttr.get(i32, subgroup_size)


@distribution_rule("vector.fma", "vector.gather")
def elementwise(d: Distributor, op: ir.Operation) -> None:
    """Apply the same op to parts."""
    if relation(op) is None:
        d.fail("cannot be distributed", "its vectors must have the same shape")
    types = [d.part_type(d.layout(op, r), element_of(r)) if r in d.layouts else r.type for r in op.results]
    d.replace_parts(op, *build.create_like(op, types, [d.part(v) for v in op.operands]).results)


@distribution_rule("func.return", "gpu.return")
def return_whole_vectors(d: Distributor, op: ir.Operation) -> None:
    """Convert the returned parts to whole vectors."""
    for i, value in enumerate(list(op.operands)):
        if value in d.layouts:
            op.operands[i] = iree_vector_ext.ToSimdOp(d.part(value), output=value.type).operation.results[0]


class Distributor(Conversion):
    """The conversion of a function: vectors with layouts become a lane's parts.

    Attributes:
        layouts: of the whole vectors.
        subgroup_size: the number of lanes.
        subgroups: the number of subgroups, if the function has it as an attribute.
        first: the first op of the original function.
    """

    rules = distribution_rule

    def __init__(self, func: ir.Operation, layouts: Layouts, subgroup_size: int) -> None:
        super().__init__()
        self.func = func
        self.layouts = layouts
        self.subgroup_size = subgroup_size
        self.subgroups = self._subgroups()
        self._entry: dict[Any, ir.Value] = {}
        self.first = next(iter(func.regions[0].blocks[0]), None)
        self._checked_layouts: set[NestedLayout] = set()

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> list[ir.Type] | None:
        return [self.part_type(self.layouts[value], element_of(value))] if value in self.layouts else None

    def get(self, value: ir.Value) -> list[ir.Value]:
        return [self.part(value)]

    def is_legal(self, op: ir.Operation) -> bool:
        for value in op.results:
            if value in self.layouts:
                self._check(op, self.layouts[value])
        return not any(v in self.layouts for v in (*op.operands, *op.results))

    def convert_without_rule(self, op: ir.Operation) -> None:
        if op.name.startswith(("arith.", "math.")):
            elementwise(self, op)
        else:
            notes = [f"there is no rule for {op.name} on vectors with layouts"]
            if op.name == "vector.outerproduct":
                notes.append("vector-lower-contract lowers it to ops that have one")
            self.fail("cannot be distributed", *notes)

    def _check(self, op: ir.Operation, layout: NestedLayout) -> None:
        """Check that a layout gives each lane and subgroup one part."""
        if layout in self._checked_layouts:
            return
        size = self.subgroup_size
        for ids, present in ((layout.subgroups, self.subgroups), (layout.threads, size)):
            if ids.whole:
                i = ids.whole[0]
                message = f"has a layout with {ids.tile[i]} {ids.what} tiles in dimension {i}, but a stride of 0"
                emit_error(op, message, "a distributed vector holds one tile")
            if present is None and ids.period > 1 and self.func.name == "gpu.func":
                message = f"has a layout over {ids.period} subgroups, but the number of subgroups is not known"
                emit_error(op, message, "set known_block_size, the number of work items in a workgroup")
            if present and present % ids.period:
                owners = "lanes" if ids.what == "thread" else "subgroups"
                emit_error(op, f"has a layout over {ids.period} {owners}, but there are {present}", str(layout))
        self._checked_layouts.add(layout)

    def _subgroups(self) -> int | None:
        """The number of subgroups, from the size of the workgroup."""
        if "known_block_size" not in self.func.attributes:
            return None
        total = math.prod(int(n) for n in ir.DenseI32ArrayAttr(self.func.attributes["known_block_size"]))
        if total % self.subgroup_size:
            message = f"workgroup size {total} must be a multiple of the subgroup size {self.subgroup_size}"
            emit_error(self.func, message, "every lane holds a part of each vector")
        return total // self.subgroup_size

    def layout(self, op: ir.Operation, value: ir.Value) -> NestedLayout:
        """The layout of a vector that an op uses or defines.

        Raises:
            DiagnosticError: at the op, if the vector has none.
        """
        vector_layout = self.layouts.get(value)
        if vector_layout is None:
            message = f"cannot be distributed because the layout of its {value.type} is not known"
            emit_error(op, message, "set the layout with iree_vector_ext.to_layout")
        return vector_layout

    def part_type(self, layout: NestedLayout, element: ir.Type) -> ir.Type:
        """The type of a lane's part of a vector."""
        return ir.VectorType.get(layout.distributed_shape, element)

    def part(self, value: ir.Value) -> ir.Value:
        """A lane's part of a vector with a layout; any other value unchanged."""
        if value not in self.layouts:
            return value
        if value not in self.values:
            # The value is an argument, or the result of an op that is not distributed.
            kind = self.part_type(self.layouts[value], element_of(value))
            conversion = iree_vector_ext.ToSimtOp(value, output=kind).operation.results[0]
            if not isinstance(value.owner, ir.Block):
                return conversion
            self.define(value, [conversion])
            conversion.owner.move_before(self.first)
        return self.values[value][0]

    def replace_parts(self, op: ir.Operation, *parts: ir.Value) -> None:
        """Replace an op's results: vectors with layouts by parts, others by the values themselves."""
        self.replace(op, *([new] if old in self.layouts else new for old, new in zip(op.results, parts, strict=True)))

    def at_entry(self, key: Any, make: Callable[[], ir.Value]) -> ir.Value:
        """The value of a key, computed once at the function's entry."""
        if key not in self._entry:
            with ir.InsertionPoint(self.first), self.func.location:
                self._entry[key] = make()
        return self._entry[key]

    def virtual_id(self, level: str, stride: int, n: int) -> build.Index:
        """`(id / stride) mod n` of this lane or subgroup."""
        if n == 1:
            return 0

        def built() -> ir.Value:
            name = "gpu.subgroup_id" if level == "subgroup" else "gpu.lane_id"
            virtual = self.at_entry(name, lambda: make(name, build.index_type()))
            if stride > 1:
                virtual = build.binary("divui", virtual, stride)
            total = self.subgroup_size if level == "thread" else self.subgroups
            return build.binary("remui", virtual, n) if total is None or stride * n < total else virtual

        return self.at_entry((level, stride, n), built)

    def virtual_ids(self, layout: NestedLayout, dim: int) -> tuple[build.Index, build.Index]:
        """The virtual subgroup and thread id in a dimension."""
        return (
            self.virtual_id("subgroup", layout.subgroup_strides[dim], layout.subgroup_tile[dim]),
            self.virtual_id("thread", layout.thread_strides[dim], layout.thread_tile[dim]),
        )

    def base(self, layout: NestedLayout, dim: int) -> build.Index:
        """The index in a dimension of this lane's first element."""
        subgroup, thread = self.virtual_ids(layout, dim)
        size, step = layout.shape[dim] // layout.subgroup_tile[dim], layout.element_tile[dim]
        if isinstance(subgroup, int) and isinstance(thread, int):
            return 0
        key = ("base", subgroup, thread, size, step)
        return self.at_entry(
            key, lambda: build.index(build.add(build.multiply(subgroup, size), build.multiply(thread, step)))
        )


# Constants that depend on the lane, and exchange between lanes by shuffles.


def shuffle_scalar(d: Distributor, value: ir.Value, mode: str, offset: ir.Value) -> ir.Value:
    """A scalar of another lane: of lane `offset` (mode `idx`), or of lane `own xor offset` (mode `xor`)."""
    width = build.constant(build.integer_type(32), d.subgroup_size)
    return from_shuffle_type(build.lane_shuffle(to_shuffle_type(value), offset, mode, width), value.type)


def to_shuffle_type(value: ir.Value) -> ir.Value:
    """Convert a scalar or a vector to a type that shuffles support."""
    element = element_of(value)
    if isinstance(element, ir.IndexType):
        return build.make("arith.index_cast", build.with_element(value.type, build.integer_type(32)), value)
    if isinstance(element, ir.IntegerType) and element.width < 8:
        return build.make("arith.extui", build.with_element(value.type, build.integer_type(32)), value)
    return value


def from_shuffle_type(value: ir.Value, kind: ir.Type) -> ir.Value:
    """Convert the result of `to_shuffle_type` back to this type."""
    if value.type == kind:
        return value
    return build.make("arith.index_cast" if isinstance(element_of(kind), ir.IndexType) else "arith.trunci", kind, value)


def _lane(d: Distributor) -> ir.Value:
    return build.index(d.virtual_id("thread", 1, d.subgroup_size))


def _lane_table_row(d: Distributor, rows: Sequence[Sequence[ir.Attribute]]) -> ir.Value:
    """The row of a table for this lane; a plain constant if all rows are equal."""
    kind = ir.VectorType.get([len(rows[0])], rows[0][0].type)
    if all(row == rows[0] for row in rows):
        return build.make("arith.constant", kind, value=ir.DenseElementsAttr.get(list(rows[0]), kind))
    whole = ir.VectorType.get([len(rows), len(rows[0])], kind.element_type)
    table = ir.DenseElementsAttr.get([a for row in rows for a in row], whole)
    return d.at_entry(
        ("table", table), lambda: build.extract_at(build.make("arith.constant", whole, value=table), _lane(d))
    )


def _lane_number(d: Distributor, numbers: Ints, kind: ir.Type) -> ir.Value:
    """An integer that depends on the lane."""
    if (numbers == numbers[0]).all():
        return build.constant(kind, int(numbers[0]))
    key = ("number", kind, *numbers.tolist())
    return d.at_entry(key, lambda: build.extract_at(build.dense_integers(numbers, kind), _lane(d)))


def constant_part(d: Distributor, layout: NestedLayout, elements: Sequence[ir.Attribute]) -> ir.Value:
    """A lane's part of a constant, from tables with a row for each lane; distinct subgroups have a table each."""
    subgroups, lanes = layout.subgroups.period, d.subgroup_size
    positions = np.arange(math.prod(layout.shape)).reshape(layout.shape)
    parts = layout.distribute(positions, subgroups=subgroups, threads=lanes).reshape(subgroups, lanes, -1)
    tables = [[[elements[i] for i in row] for row in rows] for rows in parts.tolist()]
    part = _lane_table_row(d, tables[0])
    subgroup = d.virtual_id("subgroup", 1, subgroups)
    for number, table in enumerate(tables):
        if table != tables[0]:
            is_this_subgroup = build.compare("eq", build.index(subgroup), build.index(number))
            part = build.select(is_this_subgroup, _lane_table_row(d, table), part)
    return build.shape_cast(part, layout.distributed_shape)


def apply_moves(d: Distributor, part: ir.Value, plan: Moves, kind: ir.Type) -> ir.Value:
    """A lane's part after moves between registers and shuffles between lanes."""
    registers, element = math.prod(shape_of(part)), element_of(part)
    if not plan.rounds and (plan.takes == plan.takes[0]).all():
        order = plan.takes[0].tolist()
        if order != list(range(registers)):
            part = build.permute(build.shape_cast(part, [registers]), order)
        return build.shape_cast(part, shape_of(kind))
    flat = build.shape_cast(to_shuffle_type(part), [registers])
    sources: dict[int, ir.Value] = {}

    def register(number: int) -> ir.Value:
        if number not in sources:
            sources[number] = build.extract(flat, [number])
        return sources[number]

    def chosen(numbers: Ints) -> ir.Value:
        """The register or the shuffle result that the number selects for each lane."""
        several = np.unique(numbers)
        values = [register(int(n)) for n in several]
        if len(values) == 1:
            return values[0]
        which = _lane_number(d, np.searchsorted(several, numbers), ir.IndexType.get())
        return build.extract_at(build.from_elements(values, [len(values)]), which)

    for i, (sends, reads) in enumerate(zip(plan.sends, plan.reads)):
        sources[registers + i] = shuffle_scalar(d, chosen(sends), "idx", _lane_number(d, reads, build.integer_type(32)))
    elements = build.from_elements([chosen(column) for column in plan.takes.T], shape_of(kind))
    return from_shuffle_type(elements, build.with_element(kind, element))


# Plans the shuffles that convert a vector from one layout to another.

MOST_ROUNDS = 16
"""The most shuffles of a change of layout; one that needs more goes through shared local memory.

A transpose over 16 lanes takes 15 shuffles, and 2.5 times the instructions of the exchange through memory, but no
barrier.
"""

_MOST_PLAN_ENTRIES = 1 << 22
"""The greatest product of lanes and registers for which moves are planned."""

_MOST_TRANSFERS = 1 << 13
"""The most elements of one subgroup that may change lanes in a plan."""


class Moves(Struct, frozen=True, eq=False):
    """A plan that moves elements between the lanes of a subgroup, in rounds of one shuffle each.

    Attributes:
        sends: int64[rounds, lanes], the register that each lane offers in a round.
        reads: int64[rounds, lanes], the lane that each lane reads in a round.
        takes: int64[lanes, positions], for each position of the new part the lane's register with the element, or the
            number of registers plus the round that provides it.
    """

    sends: Ints
    reads: Ints
    takes: Ints

    @property
    def rounds(self) -> int:
        """Shuffles."""
        return len(self.sends)


@lru_cache(maxsize=1024)
def plan_layout_moves(source: NestedLayout, target: NestedLayout, lanes: int) -> Moves | None:
    """The moves from one layout to another within subgroups.

    The number of rounds is at most the largest number of elements that a lane sends or receives: the edges of a
    bipartite graph of senders and receivers can be coloured with as many colours as its largest degree. It is lower
    if several lanes read the same element in a round.

    Args:
        source: the layout of the operand.
        target: the layout of the result. Elements correspond by their row-major number.
        lanes: lanes of a subgroup, a multiple of the layouts' lanes.

    Returns:
        None if elements move to other subgroups, or the change needs too many shuffles.
    """
    subgroups = math.lcm(source.subgroups.period, target.subgroups.period)
    size = max(math.prod(x.distributed_shape) for x in (source, target))
    if subgroups * lanes * size > _MOST_PLAN_ENTRIES:
        return None
    source_elements, target_elements = (_elements_by_register(x, subgroups, lanes) for x in (source, target))
    uniform = _same_in_all_lanes(source_elements, target_elements)
    if uniform is not None:
        none = np.zeros((0, lanes), np.int64)
        return Moves(none, none, np.tile(uniform, (lanes, 1)))
    return plan_moves(source_elements, target_elements) if lanes * size <= _MOST_TRANSFERS else None


def _elements_by_register(layout: NestedLayout, subgroups: int, lanes: int) -> Ints:
    """int64[subgroups, lanes, registers], the row-major number of the element in each register."""
    if not layout.rank:
        return np.zeros((subgroups, lanes, 1), np.int64)
    s, t = np.ogrid[:subgroups, :lanes]
    return np.ravel_multi_index(layout.indices(s, t, subgroups=subgroups, threads=lanes), layout.shape)


def _same_in_all_lanes(source: Ints, target: Ints) -> Ints | None:
    """int64[positions], the register with the element in every lane; None if lanes differ."""
    order = np.argsort(source[0, 0])
    sorted_positions = np.searchsorted(source[0, 0][order], target[0, 0])
    if (sorted_positions >= order.size).any():
        return None
    registers: Ints = order[sorted_positions]
    return registers if np.array_equal(source[..., registers], target) else None


def plan_moves(source: Ints, target: Ints) -> Moves | None:
    """Plan the moves that give each lane the elements of its target part.

    Args:
        source: int64[subgroups, lanes, registers], elements by their number.
        target: int64[subgroups, lanes, positions].

    Returns:
        The moves, which are the same in all subgroups; None if no such moves exist, or they take too many rounds.
    """
    _, lanes, registers = source.shape
    positions = target.shape[2]
    owners: dict[bytes, list[tuple[int, int]]] = {}
    for lane in range(lanes):
        for register in range(registers):
            owners.setdefault(source[:, lane, register].tobytes(), []).append((lane, register))
    takes = np.zeros((lanes, positions), np.int64)
    requests: _Requests = []
    for position in range(positions):
        for lane in range(lanes):
            holders = owners.get(target[:, lane, position].tobytes())
            if holders is None:
                return None
            own_registers = [register for owner, register in holders if owner == lane]
            if own_registers:
                takes[lane, position] = own_registers[0]
            else:
                requests.append((lane, position, holders))
    chosen, rounds = _first_owner_plan(requests)
    evenly, fewer = _balanced_plan(requests)
    if fewer < rounds:
        chosen, rounds = evenly, fewer
    if rounds > MOST_ROUNDS:
        return None
    sends = np.full((rounds, lanes), -1, np.int64)
    reads = np.tile(np.arange(lanes), (rounds, 1))
    for need, at in chosen.items():
        sends[at, need.owner], reads[at, need.lane] = need.register, need.owner
        takes[need.lane, need.position] = registers + at
    for row in sends:
        # A lane whose value is not read sends the register that most lanes send.
        row[row < 0] = Counter(row[row >= 0].tolist()).most_common(1)[0][0]
    _take_from_self(sends, reads, takes, registers)
    return Moves(sends, reads, takes)


def _take_from_self(sends: Ints, reads: Ints, takes: Ints, registers: int) -> None:
    """Let a lane that has an element read it from itself in a round that provides it to other lanes."""
    for column in takes.T:
        most = Counter(column.tolist()).most_common(1)[0][0]
        at = most - registers
        if at >= 0:
            lane = np.arange(len(column))
            column[(reads[at] == lane) & (sends[at] == column)] = most


class _Transfer(Struct, frozen=True):
    """The transfer of a register of one lane to a position of another lane's part."""

    owner: int
    register: int
    lane: int
    position: int

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """The sender and the receiver."""
        return ("sends", self.owner), ("receives", self.lane)


_Requests = list[tuple[int, int, list[tuple[int, int]]]]
"""Receiving lanes, positions in their parts, and the (lane, register) pairs that have the element."""


def _first_owner_plan(requests: _Requests) -> tuple[dict[_Transfer, int], int]:
    """Plan to read each element from its first owner, in one round if possible; return the number of rounds, too."""
    sending: dict[tuple[int, int], int] = {}
    receiving: set[tuple[int, int]] = set()
    chosen: dict[_Transfer, int] = {}
    for lane, position, holders in requests:
        owner, register = holders[0]
        round_ = 0
        while (lane, round_) in receiving or sending.get((owner, round_), register) != register:
            round_ += 1
        sending[owner, round_] = register
        receiving.add((lane, round_))
        chosen[_Transfer(owner, register, lane, position)] = round_
    return chosen, max(chosen.values(), default=-1) + 1


def _balanced_plan(requests: _Requests) -> tuple[dict[_Transfer, int], int]:
    """Plan sends evenly among the owners of each element; return the number of rounds, too, the fewest possible."""
    sent, received = Counter[int](), Counter[int]()
    needs = []
    for lane, position, holders in requests:
        owner, register = min(holders, key=lambda o: (sent[o[0]], o[0] ^ lane))
        needs.append(_Transfer(owner, register, lane, position))
        sent[owner] += 1
        received[lane] += 1
    rounds = max((*sent.values(), *received.values()), default=0)
    return _edge_colouring(needs, rounds), rounds


def _edge_colouring(needs: list[_Transfer], rounds: int) -> dict[_Transfer, int]:
    """Assign rounds to needs such that no lane sends or receives twice in a round (possible by König's theorem)."""
    at: dict[tuple[str, int], dict[int, _Transfer]] = {end: {} for need in needs for end in need.ends}
    chosen: dict[_Transfer, int] = {}

    def put(need: _Transfer, colour: int) -> None:
        chosen[need] = colour
        for end in need.ends:
            at[end][colour] = need

    for need in needs:
        sender, receiver = (at[end] for end in need.ends)
        # The first round that is free in both lanes keeps corresponding moves of lanes in one round.
        free = next((c for c in range(rounds) if c not in sender and c not in receiver), None)
        if free is None:
            free = next(c for c in range(rounds) if c not in sender)
            second = next(c for c in range(rounds) if c not in receiver)
            _swap_colours(at, chosen, need.ends[1], free, second)
        put(need, free)
    return chosen


def _swap_colours(
    at: dict[tuple[str, int], dict[int, _Transfer]],
    chosen: dict[_Transfer, int],
    end: tuple[str, int],
    first: int,
    second: int,
) -> None:
    """Swap two colours along the path that starts at a lane with the first colour, which becomes free there."""
    path, colour, node = [], first, end
    while colour in at[node]:
        need = at[node][colour]
        path.append(need)
        node = need.ends[0] if node == need.ends[1] else need.ends[1]
        colour = second if colour == first else first
    for need in path:
        for node in need.ends:
            if at[node].get(chosen[need]) is need:
                del at[node][chosen[need]]
    for need in path:
        chosen[need] = second if chosen[need] == first else first
        for node in need.ends:
            at[node][chosen[need]] = need
