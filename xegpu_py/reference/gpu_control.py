"""The meaning of gpu, scf, cf and func."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xegpu_py import numerics
from xegpu_py.ir.builtin import FORMULA, PRINT, TEXT, CombiningKind
from xegpu_py.numerics.double_functions import evaluate_formula
from xegpu_py.numerics.formats import Array
from xegpu_py.numerics.rounding import SOURCES
from xegpu_py.numerics.special_functions import formula_of
from xegpu_py.reference.machine import (
    CallFrame,
    EvaluatedSubgroup,
    Lane,
    Lanes,
    Node,
    RegionBlock,
    Steps,
    controls,
    evaluates,
    evaluates_in,
    together,
)
from xegpu_py.reference.storage import FailedAssertion, Fault, UnsupportedOp
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
        raise UnsupportedOp(
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
    x, y, z = (g * b + t for g, b, t in zip(lane.workgroup.position, lane.launch.block, _thread(lane)))
    return x, y, z


_dimension("gpu.thread_id", _thread)

_dimension("gpu.global_id", _global)

_dimension("gpu.block_id", lambda lane: lane.workgroup.position)

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
def barrier(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """Wait until all subgroups of the workgroup have arrived."""
    subgroup.check_together(lanes)
    yield from _wait_at_barrier(subgroup, node)


@together("gpu.shuffle")
def shuffle(subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]]) -> list[Any]:
    """Each lane gets the value of another lane of its segment of `width` lanes, or its own if that is outside of it."""
    mode, results = node.word("mode"), []
    for lane, (value, offset, width) in enumerate(lane_operands):
        o, w = int(offset), int(width)
        lane_in_segment = lane % w
        source_lane = {"xor": lane_in_segment ^ o, "up": lane_in_segment - o, "down": lane_in_segment + o, "idx": o}[
            mode
        ]
        valid = 0 <= source_lane < w
        source = lane // w * w + source_lane if valid else lane
        # Lanes without a work item have no value.
        results.append(
            (lane_operands[source][0] if source < len(lane_operands) else np.zeros_like(value), np.asarray(valid))
        )
    return results


@together("gpu.rotate")
def rotate(subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]]) -> list[Any]:
    """Each lane gets the value of the lane `offset` higher, modulo its segment."""
    offset, width = node.attribute("offset"), node.attribute("width")
    results = []
    for lane, (value,) in enumerate(lane_operands):
        source = lane // width * width + (lane % width + offset) % width
        results.append(
            (
                lane_operands[source][0] if source < len(lane_operands) else np.zeros_like(value),
                np.asarray(lane < width),
            )
        )
    return results


@together("gpu.subgroup_broadcast")
def subgroup_broadcast(subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]]) -> list[Any]:
    """One lane's value for all: that of a given lane, or of the first."""
    source_lane = int(lane_operands[0][1]) if len(lane_operands[0]) > 1 else 0
    return [lane_operands[source_lane][0]] * len(lane_operands)


@together("gpu.subgroup_reduce")
def subgroup_reduce(subgroup: EvaluatedSubgroup, node: Node, lane_operands: Sequence[Sequence[Any]]) -> list[Any]:
    """Combine lane i with lane i + n/2, then with lane i + n/4, and so on; missing lanes have the identity."""
    combining_kind, element = node.word("op"), node.element
    rows = np.array([row[0] for row in lane_operands], element.dtype)
    count = len(subgroup.lanes)
    if len(rows) < count:
        identities = np.broadcast_to(identity_of(combining_kind, element), (count - len(rows), *rows.shape[1:]))
        rows = np.concatenate([rows, identities])
    size = node.attribute("cluster_size")
    if size is None:
        return [reduced(node, combining_kind, element, rows)] * len(lane_operands)
    stride = node.attribute("cluster_stride", 1)
    step = size * stride // 2
    while step >= stride:
        rows = combine(combining_kind, element, rows, rows[np.arange(count) ^ step])
        step //= 2
    return [np.asarray(row) for row in rows[: len(lane_operands)]]


@controls("gpu.all_reduce")
def all_reduce(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """Combine lanes as gpu.subgroup_reduce does, then the results of the subgroups from the first to the last."""
    _of_items(subgroup.lanes[lanes[0]])
    subgroup.check_together(lanes)
    element, group = node.element, subgroup.workgroup
    combining_kind = node.word("op") if "op" in node.op.attributes else _kind_of_region(node)
    rows = np.array([frame.values[node.operands[0]][lane] for lane in lanes], element.dtype)
    absent_lanes = len(subgroup.lanes) - len(rows)
    rows = np.concatenate(
        [rows, np.broadcast_to(identity_of(combining_kind, element), (absent_lanes, *rows.shape[1:]))]
    )
    group.told.setdefault(node.op, {})[subgroup.number] = reduced(node, combining_kind, element, rows)
    yield from _wait_at_barrier(subgroup, node)
    told = group.told[node.op]
    total = told[0]
    for number in range(1, len(group.subgroups)):
        total = combine(combining_kind, element, total, told[number])
    for lane in lanes:
        frame.set(node.results, np.asarray(total), lane)
    yield from _wait_at_barrier(subgroup, node)


def _kind_of_region(node: Node) -> str:
    region_op = next(iter(node.op.regions[0].blocks[0].operations)).operation
    return CombiningKind.of_atomic(region_op.name.removeprefix("arith.")).value


def _wait_at_barrier(subgroup: EvaluatedSubgroup, node: Node) -> Steps:
    barrier = subgroup.workgroup.barrier(_WORKGROUP)
    barrier.signal(len(subgroup.workgroup.subgroups))
    yield from barrier.wait(subgroup, node)


@evaluates_in("gpu.printf")
def printf(lane: Lane, node: Node, *operands: Any) -> None:
    """Print to standard output, once for each lane, or once for the workgroup at workgroup level."""
    elements = [node.operand_kind(i).element.name for i in range(len(operands))]
    lane.subgroup.prints(node.attribute("format"), elements, [np.asarray(v).item() for v in operands])


# `scf`: loops and branches. If lanes diverge, each branch runs for the lanes that take it (docs/simt.md).


@controls("scf.for")
def for_(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
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
    active = tuple([lane for lane in lanes if counts[lane] < number(upper, lane)])
    while active:
        yield_node = yield from subgroup.block(frame, block, active)
        frame.give(arguments, yield_node.operands, active)
        counts = {lane: counts[lane] + number(step, lane) for lane in active}
        active = tuple([lane for lane in active if counts[lane] < number(upper, lane)])
        for lane in active:
            frame.values[counter][lane] = element.wrap(np.asarray(counts[lane]))
    frame.give(node.results, arguments, lanes)


@controls("scf.parallel")
def parallel(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """Nested loops, whose iterations run in row-major order; reductions combine in that order too."""
    (block,) = node.regions[0]
    lower, upper, step, initial_values = node.groups(node.operands)
    values = frame.values
    frame.give(node.results, initial_values, lanes)

    def loop(depth: int, active: Lanes) -> Steps:
        if depth == len(block.arguments):
            yield_node = yield from subgroup.block(frame, block, active)
            for result, value, (combine,) in zip(node.results, yield_node.operands, yield_node.regions):
                frame.give(combine.arguments, (result, value), active)
                combine_node = yield from subgroup.block(frame, combine, active)
                frame.give((result,), combine_node.operands, active)
            return yield_node
        counter = block.arguments[depth]
        frame.give((counter,), (lower[depth],), active)
        yield_node = None
        while active := tuple(lane for lane in active if values[counter][lane] < values[upper[depth]][lane]):
            yield_node = yield from loop(depth + 1, active)
            for lane in active:
                values[counter][lane] = values[counter][lane] + values[step[depth]][lane]
        return yield_node

    yield from loop(0, lanes)


@controls("scf.if")
def if_(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """A branch."""
    condition = frame.values[node.operands[0]]
    for branch, region in zip((True, False), node.regions):
        active = tuple([lane for lane in lanes if bool(condition[lane]) == branch])
        if active and region:
            yield_node = yield from subgroup.block(frame, region[0], active)
            frame.give(node.results, yield_node.operands, active)


@controls("scf.while")
def while_(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """A loop while its condition holds; a lane that has left the loop keeps its values."""
    (before_block,), (after_block,) = node.regions
    frame.give(before_block.arguments, node.operands, lanes)
    active = lanes
    while active:
        condition_node = yield from subgroup.block(frame, before_block, active)
        condition, *forwarded = condition_node.operands
        frame.give(node.results, forwarded, active)
        active = tuple([lane for lane in active if frame.values[condition][lane]])
        frame.give(after_block.arguments, forwarded, active)
        if active:
            condition_node = yield from subgroup.block(frame, after_block, active)
            frame.give(before_block.arguments, condition_node.operands, active)
        # Other subgroups may have to write the memory on which this loop waits.
        yield None


@controls("scf.index_switch")
def index_switch(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """A choice among cases; the first region is the default."""
    cases = node.attribute("cases")
    lanes_of_case: dict[int, list[int]] = {}
    for lane in lanes:
        value = int(frame.values[node.operands[0]][lane])
        lanes_of_case.setdefault(cases.index(value) + 1 if value in cases else 0, []).append(lane)
    for number in sorted(lanes_of_case):
        yield from _branch_to(subgroup, frame, node, node.regions[number][0], tuple(lanes_of_case[number]))


@controls("scf.execute_region")
def execute_region(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
    """A region of several blocks."""
    yields = yield from subgroup.region(frame, node.regions[0], lanes)
    for lane, yield_node in yields.items():
        frame.give(node.results, yield_node.operands, (lane,))


def _branch_to(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, block: RegionBlock, lanes: Lanes) -> Steps:
    yield_node = yield from subgroup.block(frame, block, lanes)
    frame.give(node.results, yield_node.operands, lanes)


# `cf`: branches between blocks. A rule returns the number of the successor, and the operands for its arguments.

Taken = tuple[int, slice]


@evaluates("cf.br")
def br(node: Node, operands: list[Any]) -> Taken:
    """Branch to the successor."""
    return 0, slice(0, None)


@evaluates("cf.cond_br")
def cond_br(node: Node, operands: list[Any]) -> Taken:
    """Branch to the first successor if the condition holds, otherwise to the second."""
    condition_size, yes, no = node.attribute("operandSegmentSizes")
    return (
        (0, slice(condition_size, condition_size + yes))
        if operands[0]
        else (1, slice(condition_size + yes, condition_size + yes + no))
    )


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
    case_index = cases.index(flag)
    start = 1 + default + sum(sizes[:case_index])
    return 1 + case_index, slice(start, start + sizes[case_index])


@evaluates("cf.assert")
def assert_(node: Node, condition: Any) -> None:
    """A fault if the condition does not hold."""
    if not condition:
        raise FailedAssertion(node.attribute("msg"))


# `func`: calls of functions, and of intrinsics, which are functions without a body.


@controls("func.call")
def call(subgroup: EvaluatedSubgroup, frame: CallFrame, node: Node, lanes: Lanes) -> Steps:
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
    callee_frame = CallFrame(function.size, len(subgroup.lanes))
    for lane in lanes:
        for argument, source in zip(function.blocks[0].arguments, node.operands):
            callee_frame.values[argument][lane] = frame.values[source][lane]
    returns = yield from subgroup.region(callee_frame, function.blocks, lanes)
    for lane, return_node in returns.items():
        for source, result in zip(node.results, return_node.operands):
            frame.values[source][lane] = callee_frame.values[result][lane]


def _print(subgroup: EvaluatedSubgroup, node: Node, operands: list[Any]) -> None:
    """`visa.print`: each lane or element of the mask prints."""
    mask = np.asarray(operands[0])
    values = [np.broadcast_to(v, mask.shape).ravel() for v in operands[1:]]
    elements = [node.operand_kind(i + 1).element.name for i in range(len(values))]
    for lane in np.flatnonzero(mask):
        subgroup.prints(node.attribute(TEXT), elements, [v[lane].item() for v in values])


_ROUNDED = {(source.mlir, target.mlir): target.name for target, source in SOURCES.items()}


def _intrinsic(node: Node, name: str, operands: list[Any]) -> Array:
    """`llvm.genx.srnd`: stochastic rounding (docs/lowering.md); the formulas of f64."""
    if name.startswith("visa.inline."):
        raise Fault(
            "is an instruction of vISA, which the reference evaluator does not implement",
            "run it on the interpreter or the JIT",
        )
    if name.startswith(f"{FORMULA}."):
        formula = formula_of(
            name.removeprefix(f"{FORMULA}."), [node.operand_kind(i).element.name for i in range(len(operands))]
        )
        if formula is None or node.element.name != "f64":
            raise Fault(f"calls '{name}', which is no function of f64")
        return evaluate_formula(formula, *operands)
    if not f"{name}.".startswith("llvm.genx.srnd."):
        raise Fault(f"calls undefined function '{name}' and stands for no instruction")
    numbers, random = (np.asarray(v) for v in operands)
    element_names = (node.operand_kind(0).element.name, node.element.name)
    if element_names not in _ROUNDED:
        raise Fault(f"cannot round {element_names[0]} to {element_names[1]}")
    bits = random.view(f"u{random.dtype.itemsize}").astype(f"u{numbers.dtype.itemsize}")
    return numerics.srnd(numbers, bits, _ROUNDED[element_names])
