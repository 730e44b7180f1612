"""`gpu`: ids, barriers, and the exchange of values between the work items of a subgroup.

Source: MLIR's documentation of the dialect, and docs/simt.md where it is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xegpu_py.numerics.formats import Array
from xegpu_py.reference.machine import Frame, Lane, Lanes, Steps, Subgroup
from xegpu_py.reference.memory import Fault
from xegpu_py.reference.program import Node, controls, evaluates_in, together
from xegpu_py.reference.vector import COMBINING_KINDS, combine, identity_of, reduced
from xegpu_py.visa.program import Dim, place_in

_WORKGROUP = -1


def _index(value: int) -> Array:
    return np.asarray(value, np.int64)


def _of_items(lane: Lane) -> None:
    """Refuse ids that differ within a workgroup in kernels at workgroup level."""
    if lane.launch.whole:
        raise Fault(
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
    first: str = next(iter(node.op.regions[0].blocks[0].operations)).operation.name.removeprefix("arith.")
    return COMBINING_KINDS.get(first, first)


def _meet(subgroup: Subgroup, node: Node) -> Steps:
    found = subgroup.workgroup.barrier(_WORKGROUP)
    found.signal(len(subgroup.workgroup.subgroups))
    yield from found.wait(subgroup, node)


@evaluates_in("gpu.printf")
def printf(lane: Lane, node: Node, *operands: Any) -> None:
    """Print to standard output, once for each lane, or once for the workgroup at workgroup level."""
    elements = [node.operand_kind(i).element.name for i in range(len(operands))]
    lane.subgroup.prints(node.attribute("format"), elements, [np.asarray(v).item() for v in operands])
