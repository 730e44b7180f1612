"""The meaning of gpu, scf, cf and func."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xegpu_py import numerics
from xegpu_py.ir.builtin import PRINT, TEXT, CombiningKind
from xegpu_py.numerics.formats import Array
from xegpu_py.numerics.rounding import SOURCES
from xegpu_py.reference.machine import (
    Block,
    Frame,
    Lane,
    Lanes,
    Node,
    Steps,
    Subgroup,
    controls,
    evaluates,
    evaluates_in,
    together,
)
from xegpu_py.reference.storage import Fault, Unknown
from xegpu_py.reference.vector import combine, identity_of, reduced
from xegpu_py.visa.program import Dim, place_in

# `gpu`: ids, barriers, and the exchange of values between the work items of a subgroup.
#
# Source: MLIR's documentation of the dialect, and docs/simt.md where it is silent.

_WORKGROUP = -1


def _index(value: int) -> Array:
    return np.asarray(value, np.int64)


def _of_items(lane: Lane) -> None:
    """Refuse ids that differ within a workgroup in kernels at workgroup level."""
    if lane.launch.whole:
        raise Unknown(
            "differs within a workgroup, but the kernel's vectors belong to the whole workgroup",
            "its tiles have a wg_map, or its vectors a layout; lower it to subgroups first",
        )


def _dimension(names: str, find: Callable[[Lane], Dim]) -> None:
    @evaluates_in(names)
    def rule(lane: Lane, node: Node) -> Array:
        return _index(find(lane)["xyz".index(node.word("dimension"))])


def _thread(lane: Lane) -> Dim:
    _of_items(lane)
    return place_in(lane.launch.block, lane.item)


def _global(lane: Lane) -> Dim:
    x, y, z = (g * b + t for g, b, t in zip(lane.workgroup.place, lane.launch.block, _thread(lane)))
    return x, y, z


_dimension("gpu.thread_id", _thread)

_dimension("gpu.global_id", _global)

_dimension("gpu.block_id", lambda lane: lane.workgroup.place)

_dimension("gpu.block_dim", lambda lane: lane.launch.block)

_dimension("gpu.grid_dim", lambda lane: lane.launch.grid)


@evaluates_in("gpu.lane_id")
def lane_id(lane: Lane, node: Node) -> Array:
    """The lane's number; 0 in VC mode."""
    _of_items(lane)
    return _index(lane.number)


@evaluates_in("gpu.subgroup_id")
def subgroup_id(lane: Lane, node: Node) -> Array:
    """The subgroup's number in its workgroup."""
    _of_items(lane)
    return _index(lane.subgroup.number)


@evaluates_in("gpu.num_subgroups")
def num_subgroups(lane: Lane, node: Node) -> Array:
    """The number of subgroups in a workgroup."""
    launch = lane.launch
    # After xegpu-simt-to-vc the work items of a hardware thread are the former lanes.
    return _index(-(-launch.block_items // launch.lanes) if launch.items == launch.lanes else launch.block_items)


@evaluates_in("gpu.subgroup_size")
def subgroup_size(lane: Lane, node: Node) -> Array:
    """The number of lanes in a subgroup; 1 in VC mode."""
    return _index(lane.launch.lanes)


@controls("gpu.barrier")
def barrier(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """Wait until all subgroups of the workgroup have arrived."""
    subgroup.check_together(lanes)
    yield from _meet(subgroup, node)


@together("gpu.shuffle")
def shuffle(subgroup: Subgroup, node: Node, given: Sequence[Sequence[Any]]) -> list[Any]:
    """Each lane gets the value of another lane of its segment of `width` lanes, or its own if that is outside of it."""
    mode, found = node.word("mode"), []
    for lane, (own, offset, width) in enumerate(given):
        o, w = int(np.uint32(np.int32(offset))), int(width)
        place = lane % w
        other = {"xor": place ^ o, "up": place - o, "down": place + o, "idx": o}[mode]
        valid = 0 <= other < w
        source = lane // w * w + other if valid else lane
        # Lanes without a work item have no value.
        found.append((given[source][0] if source < len(given) else np.zeros_like(own), np.asarray(valid)))
    return found


@together("gpu.rotate")
def rotate(subgroup: Subgroup, node: Node, given: Sequence[Sequence[Any]]) -> list[Any]:
    """Each lane gets the value of the lane `offset` higher, modulo its segment."""
    offset, width = node.attribute("offset"), node.attribute("width")
    found = []
    for lane, (own,) in enumerate(given):
        source = lane // width * width + (lane % width + offset) % width
        found.append((given[source][0] if source < len(given) else np.zeros_like(own), np.asarray(lane < width)))
    return found


@together("gpu.subgroup_broadcast")
def subgroup_broadcast(subgroup: Subgroup, node: Node, given: Sequence[Sequence[Any]]) -> list[Any]:
    """One lane's value for all: that of a given lane, or of the first."""
    chosen = int(given[0][1]) if len(given[0]) > 1 else 0
    return [given[chosen][0]] * len(given)


@together("gpu.subgroup_reduce")
def subgroup_reduce(subgroup: Subgroup, node: Node, given: Sequence[Sequence[Any]]) -> list[Any]:
    """Combine lane i with lane i + n/2, then with lane i + n/4, and so on; missing lanes have the identity."""
    kind, element = node.word("op"), node.element
    rows = np.array([row[0] for row in given], element.dtype)
    count = len(subgroup.lanes)
    if len(rows) < count:
        missing = np.broadcast_to(identity_of(kind, element), (count - len(rows), *rows.shape[1:]))
        rows = np.concatenate([rows, missing])
    size = node.attribute("cluster_size")
    if size is None:
        return [reduced(kind, element, rows, None)] * len(given)
    stride = node.attribute("cluster_stride", 1)
    step = size * stride // 2
    while step >= stride:
        rows = combine(kind, element, rows, rows[np.arange(count) ^ step])
        step //= 2
    return [np.asarray(row) for row in rows[: len(given)]]


@controls("gpu.all_reduce")
def all_reduce(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """Combine lanes as gpu.subgroup_reduce does, then the results of the subgroups from the first to the last."""
    _of_items(subgroup.lanes[lanes[0]])
    subgroup.check_together(lanes)
    element, group = node.element, subgroup.workgroup
    kind = node.word("op") if "op" in node.op.attributes else _kind_of_region(node)
    rows = np.array([frame.values[node.operands[0]][lane] for lane in lanes], element.dtype)
    missing = len(subgroup.lanes) - len(rows)
    rows = np.concatenate([rows, np.broadcast_to(identity_of(kind, element), (missing, *rows.shape[1:]))])
    group.told.setdefault(node.op, {})[subgroup.number] = reduced(kind, element, rows, None)
    yield from _meet(subgroup, node)
    told = group.told[node.op]
    total = told[0]
    for number in range(1, len(group.subgroups)):
        total = combine(kind, element, total, told[number])
    for lane in lanes:
        frame.set(node.results, np.asarray(total), lane)
    yield from _meet(subgroup, node)


def _kind_of_region(node: Node) -> str:
    """The kind of a region that is one op of arith, such as addf."""
    first = next(iter(node.op.regions[0].blocks[0].operations)).operation
    return CombiningKind.of_atomic(first.name.removeprefix("arith.")).value


def _meet(subgroup: Subgroup, node: Node) -> Steps:
    found = subgroup.workgroup.barrier(_WORKGROUP)
    found.signal(len(subgroup.workgroup.subgroups))
    yield from found.wait(subgroup, node)


@evaluates_in("gpu.printf")
def printf(lane: Lane, node: Node, *operands: Any) -> None:
    """Print to standard output, once for each lane, or once for the workgroup at workgroup level."""
    elements = [node.operand_kind(i).element.name for i in range(len(operands))]
    lane.subgroup.prints(node.attribute("format"), elements, [np.asarray(v).item() for v in operands])


# `scf`: loops and branches. If lanes diverge, each branch runs for the lanes that take it (docs/simt.md).


@controls("scf.for")
def for_(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """A counted loop. Each lane has its own bounds."""
    (block,) = node.regions[0]
    counter, *arguments = block.arguments
    lower, upper, step = node.operands[:3]
    element = node.memo("counter", lambda: node.operand_kind(0).element)
    unsigned = node.attribute("unsignedCmp", False)

    read = element.unsigned if unsigned else element.signed

    def number(value: int, lane: int) -> int:
        return int(read(frame.values[value][lane]))

    # Python's integers, since the counter does not wrap around.
    counts = {lane: number(lower, lane) for lane in lanes}
    frame.give(block.arguments, (lower, *node.operands[3:]), lanes)
    going = tuple([lane for lane in lanes if counts[lane] < number(upper, lane)])
    while going:
        end = yield from subgroup.block(frame, block, going)
        frame.give(arguments, end.operands, going)
        counts = {lane: counts[lane] + number(step, lane) for lane in going}
        going = tuple([lane for lane in going if counts[lane] < number(upper, lane)])
        for lane in going:
            frame.values[counter][lane] = element.wrap(np.asarray(counts[lane]))
    frame.give(node.results, arguments, lanes)


@controls("scf.parallel")
def parallel(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """Nested loops, whose iterations run in row-major order; reductions combine in that order too."""
    (block,) = node.regions[0]
    lower, upper, step, first = node.groups(node.operands)
    values = frame.values
    frame.give(node.results, first, lanes)

    def loop(depth: int, going: Lanes) -> Steps:
        if depth == len(block.arguments):
            end = yield from subgroup.block(frame, block, going)
            for result, value, (combine,) in zip(node.results, end.operands, end.regions):
                frame.give(combine.arguments, (result, value), going)
                last = yield from subgroup.block(frame, combine, going)
                frame.give((result,), last.operands, going)
            return end
        counter = block.arguments[depth]
        frame.give((counter,), (lower[depth],), going)
        end = None
        while going := tuple(lane for lane in going if values[counter][lane] < values[upper[depth]][lane]):
            end = yield from loop(depth + 1, going)
            for lane in going:
                values[counter][lane] = values[counter][lane] + values[step[depth]][lane]
        return end

    yield from loop(0, lanes)


@controls("scf.if")
def if_(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """A branch."""
    condition = frame.values[node.operands[0]]
    for wanted, region in zip((True, False), node.regions):
        going = tuple([lane for lane in lanes if bool(condition[lane]) == wanted])
        if going and region:
            end = yield from subgroup.block(frame, region[0], going)
            frame.give(node.results, end.operands, going)


@controls("scf.while")
def while_(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """A loop while its condition holds; a lane that has left the loop keeps its values."""
    (before,), (after,) = node.regions
    frame.give(before.arguments, node.operands, lanes)
    going = lanes
    while going:
        end = yield from subgroup.block(frame, before, going)
        condition, *passed = end.operands
        frame.give(node.results, passed, going)
        going = tuple([lane for lane in going if frame.values[condition][lane]])
        frame.give(after.arguments, passed, going)
        if going:
            end = yield from subgroup.block(frame, after, going)
            frame.give(before.arguments, end.operands, going)
        # Other subgroups may have to write the memory on which this loop waits.
        yield None


@controls("scf.index_switch")
def index_switch(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """A choice among cases; the first region is the default."""
    cases = node.attribute("cases")
    chosen: dict[int, list[int]] = {}
    for lane in lanes:
        value = int(frame.values[node.operands[0]][lane])
        chosen.setdefault(cases.index(value) + 1 if value in cases else 0, []).append(lane)
    for number in sorted(chosen):
        yield from _way(subgroup, frame, node, node.regions[number][0], tuple(chosen[number]))


@controls("scf.execute_region")
def execute_region(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """A region of several blocks."""
    ends = yield from subgroup.region(frame, node.regions[0], lanes)
    for lane, end in ends.items():
        frame.give(node.results, end.operands, (lane,))


def _way(subgroup: Subgroup, frame: Frame, node: Node, block: Block, lanes: Lanes) -> Steps:
    end = yield from subgroup.block(frame, block, lanes)
    frame.give(node.results, end.operands, lanes)


# `cf`: branches between blocks. A rule returns the number of the successor, and the operands for its arguments.

Taken = tuple[int, slice]


@evaluates("cf.br")
def br(node: Node, operands: list[Any]) -> Taken:
    """Branch to the successor."""
    return 0, slice(0, None)


@evaluates("cf.cond_br")
def cond_br(node: Node, operands: list[Any]) -> Taken:
    """Branch to the first successor if the condition holds, otherwise to the second."""
    one, yes, no = node.attribute("operandSegmentSizes")
    return (0, slice(one, one + yes)) if operands[0] else (1, slice(one + yes, one + yes + no))


@evaluates("cf.switch")
def switch(node: Node, operands: list[Any]) -> Taken:
    """Branch to the successor of the case that equals the flag, otherwise to the first successor, the default."""
    element = node.operand_kind(0).element
    cases = [int(element.wrap(a.value)) for a in node.attribute("case_values", [])]
    sizes = node.attribute("case_operand_segments", [])
    default = node.attribute("operandSegmentSizes")[1]
    flag = int(operands[0])
    if flag not in cases:
        return 0, slice(1, 1 + default)
    chosen = cases.index(flag)
    start = 1 + default + sum(sizes[:chosen])
    return 1 + chosen, slice(start, start + sizes[chosen])


@evaluates("cf.assert")
def assert_(node: Node, condition: Any) -> None:
    """A fault if the condition does not hold."""
    if not condition:
        raise Fault(f"does not hold: {node.attribute('msg')}")


# `func`: calls of functions, and of intrinsics, which are functions without a body.


@controls("func.call")
def call(subgroup: Subgroup, frame: Frame, node: Node, lanes: Lanes) -> Steps:
    """Run the body of a function in its own frame."""
    name = node.attribute("callee")
    function = subgroup.launch.callee(node, name)
    if function is None:
        if name.startswith(f"{PRINT}."):
            return _print(subgroup, node, [frame.values[p][lanes[0]] for p in node.operands])
        for lane in lanes:
            operands = [frame.values[p][lane] for p in node.operands]
            frame.set(node.results, _intrinsic(node, name, operands), lane)
        return
    inner = Frame(function.size, len(subgroup.lanes))
    for lane in lanes:
        for argument, place in zip(function.blocks[0].arguments, node.operands):
            inner.values[argument][lane] = frame.values[place][lane]
    ends = yield from subgroup.region(inner, function.blocks, lanes)
    for lane, end in ends.items():
        for place, result in zip(node.results, end.operands):
            frame.values[place][lane] = inner.values[result][lane]


def _print(subgroup: Subgroup, node: Node, operands: list[Any]) -> None:
    """`visa.print`: each lane of the mask prints."""
    mask, *values = (np.asarray(v) for v in operands)
    elements = [node.operand_kind(i + 1).element.name for i in range(len(values))]
    for lane in np.flatnonzero(mask):
        subgroup.prints(node.attribute(TEXT), elements, [v[lane].item() for v in values])


_ROUNDED = {(source.mlir, target.mlir): target.name for target, source in SOURCES.items()}


def _intrinsic(node: Node, name: str, operands: list[Any]) -> Array:
    """`llvm.genx.srnd`: stochastic rounding (docs/lowering.md)."""
    if name.startswith("visa.inline."):
        raise Fault(
            "is an instruction of vISA, which the reference evaluator does not implement",
            "run it on the interpreter or the JIT",
        )
    if not f"{name}.".startswith("llvm.genx.srnd."):
        raise Fault(f"calls undefined function '{name}' and stands for no instruction")
    numbers, random = (np.asarray(v) for v in operands)
    pair = (node.operand_kind(0).element.name, node.element.name)
    if pair not in _ROUNDED:
        raise Fault(f"cannot round {pair[0]} to {pair[1]}")
    bits = random.view(f"u{random.dtype.itemsize}").astype(f"u{numbers.dtype.itemsize}")
    return numerics.srnd(numbers, bits, _ROUNDED[pair])  # type: ignore[arg-type]
