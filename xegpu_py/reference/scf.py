"""`scf`: loops and branches. If lanes diverge, each branch runs for the lanes that take it (docs/simt.md)."""

from __future__ import annotations

import numpy as np

from xegpu_py.reference.machine import Frame, Lanes, Steps, Subgroup
from xegpu_py.reference.program import Block, Node, controls


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
