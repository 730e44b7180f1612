"""Plans the shuffles that convert a vector from one layout to another."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

import numpy as np
from msgspec import Struct

from xegpu_py.layout import NestedLayout
from xegpu_py.layout.ids import Ints

MOST_ROUNDS = 16
"""The most shuffles of a change of layout; one that needs more goes through shared local memory.

A transpose over 16 lanes takes 15 shuffles, and 2.5 times the instructions of the exchange through memory, but no
barrier.
"""

_MOST_PLACES = 1 << 22
"""The greatest product of lanes and registers for which moves are planned."""

_MOST_NEEDS = 1 << 13
"""The most elements of one subgroup that may change lanes in a plan."""


class Moves(Struct, frozen=True, eq=False):
    """The moves that give the lanes of a subgroup their parts in another layout, in rounds of one shuffle each.

    Attributes:
        sends: int64[rounds, lanes], the register that each lane offers in a round.
        reads: int64[rounds, lanes], the lane that each lane reads in a round.
        takes: int64[lanes, positions], for each position of the new part the lane's register that holds the element,
            or the number of registers plus the round that provides it.
    """

    sends: Ints
    reads: Ints
    takes: Ints

    @property
    def rounds(self) -> int:
        """Shuffles."""
        return len(self.sends)


@lru_cache(maxsize=1024)
def moves(source: NestedLayout, target: NestedLayout, lanes: int) -> Moves | None:
    """The moves from one layout to another within subgroups.

    The number of rounds is at most the largest number of elements that a lane sends or receives: the edges of a
    bipartite graph of senders and receivers can be coloured with as many colours as its largest degree. It is lower
    if several lanes read the same element in a round.

    Args:
        source: the present layout.
        target: the wanted layout. Elements correspond by their row-major number.
        lanes: lanes of a subgroup, a multiple of what the layouts need.

    Returns:
        None if elements move to other subgroups, or the change needs too many shuffles.
    """
    subgroups = math.lcm(source.subgroups.period, target.subgroups.period)
    size = max(math.prod(x.distributed_shape) for x in (source, target))
    if subgroups * lanes * size > _MOST_PLACES:
        return None
    have, want = (_held(x, subgroups, lanes) for x in (source, target))
    uniform = _same_in_all_lanes(have, want)
    if uniform is not None:
        none = np.zeros((0, lanes), np.int64)
        return Moves(none, none, np.tile(uniform, (lanes, 1)))
    return planned(have, want) if lanes * size <= _MOST_NEEDS else None


def _held(layout: NestedLayout, subgroups: int, lanes: int) -> Ints:
    """int64[subgroups, lanes, registers], the row-major number of the element in each register."""
    if not layout.rank:
        return np.zeros((subgroups, lanes, 1), np.int64)
    s, t = np.ogrid[:subgroups, :lanes]
    found: Ints = np.ravel_multi_index(layout.indices(s, t, subgroups=subgroups, threads=lanes), layout.shape)
    return found


def _same_in_all_lanes(have: Ints, want: Ints) -> Ints | None:
    """For each wanted position the register that holds its element in every lane, if one does."""
    order = np.argsort(have[0, 0])
    places = np.searchsorted(have[0, 0][order], want[0, 0])
    if (places >= order.size).any():
        return None
    found: Ints = order[places]
    return found if np.array_equal(have[..., found], want) else None


def planned(have: Ints, want: Ints) -> Moves | None:
    """Plan the moves by which lanes get the elements that they want.

    Args:
        have: int64[subgroups, lanes, registers], elements by their number.
        want: int64[subgroups, lanes, positions].

    Returns:
        The moves, which are the same in all subgroups; None if no such moves exist, or they take too many rounds.
    """
    _, lanes, registers = have.shape
    positions = want.shape[2]
    owners: dict[bytes, list[tuple[int, int]]] = {}
    for lane in range(lanes):
        for register in range(registers):
            owners.setdefault(have[:, lane, register].tobytes(), []).append((lane, register))
    takes = np.zeros((lanes, positions), np.int64)
    wants: _Wants = []
    for position in range(positions):
        for lane in range(lanes):
            found = owners.get(want[:, lane, position].tobytes())
            if found is None:
                return None
            own = [register for owner, register in found if owner == lane]
            if own:
                takes[lane, position] = own[0]
            else:
                wants.append((lane, position, found))
    chosen, rounds = _alike(wants)
    evenly, fewer = _evenly(wants)
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
        # A lane that nobody reads offers the register that most lanes offer.
        row[row < 0] = Counter(row[row >= 0].tolist()).most_common(1)[0][0]
    _take_alike(sends, reads, takes, registers)
    return Moves(sends, reads, takes)


def _take_alike(sends: Ints, reads: Ints, takes: Ints, registers: int) -> None:
    """Let lanes that hold an element read it from themselves in a round that provides it to other lanes."""
    for column in takes.T:
        most = Counter(column.tolist()).most_common(1)[0][0]
        at = most - registers
        if at >= 0:
            lane = np.arange(len(column))
            column[(reads[at] == lane) & (sends[at] == column)] = most


class _Need(Struct, frozen=True):
    """A register of one lane that another lane needs at a position of its part."""

    owner: int
    register: int
    lane: int
    position: int

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """The sender and the receiver."""
        return ("sends", self.owner), ("receives", self.lane)


_Wants = list[tuple[int, int, list[tuple[int, int]]]]
"""Receiving lanes, positions in their parts, and the elements' owners: lanes and registers."""


def _alike(wants: _Wants) -> tuple[dict[_Need, int], int]:
    """Read each element from the first lane that holds it, in one round if possible; also counts the rounds."""
    sending: dict[tuple[int, int], int] = {}
    receiving: set[tuple[int, int]] = set()
    chosen: dict[_Need, int] = {}
    for lane, position, found in wants:
        owner, register = found[0]
        at = 0
        while (lane, at) in receiving or sending.get((owner, at), register) != register:
            at += 1
        sending[owner, at] = register
        receiving.add((lane, at))
        chosen[_Need(owner, register, lane, position)] = at
    return chosen, max(chosen.values(), default=-1) + 1


def _evenly(wants: _Wants) -> tuple[dict[_Need, int], int]:
    """Distribute the sends of an element evenly among its owners; also counts the rounds, the fewest possible."""
    sent, received = Counter[int](), Counter[int]()
    needs = []
    for lane, position, found in wants:
        owner, register = min(found, key=lambda o: (sent[o[0]], o[0] ^ lane))
        needs.append(_Need(owner, register, lane, position))
        sent[owner] += 1
        received[lane] += 1
    rounds = max((*sent.values(), *received.values()), default=0)
    return _coloured(needs, rounds), rounds


def _coloured(needs: list[_Need], rounds: int) -> dict[_Need, int]:
    """Assign rounds to needs such that no lane sends or receives twice in a round (possible by König's theorem)."""
    at: dict[tuple[str, int], dict[int, _Need]] = {end: {} for need in needs for end in need.ends}
    chosen: dict[_Need, int] = {}

    def put(need: _Need, colour: int) -> None:
        chosen[need] = colour
        for end in need.ends:
            at[end][colour] = need

    for need in needs:
        sender, receiver = (at[end] for end in need.ends)
        # The first round that is free in both lanes keeps corresponding moves of lanes in one round.
        free = next((c for c in range(rounds) if c not in sender and c not in receiver), None)
        if free is None:
            free = next(c for c in range(rounds) if c not in sender)
            other = next(c for c in range(rounds) if c not in receiver)
            _exchange(at, chosen, need.ends[1], free, other)
        put(need, free)
    return chosen


def _exchange(
    at: dict[tuple[str, int], dict[int, _Need]], chosen: dict[_Need, int], end: tuple[str, int], one: int, other: int
) -> None:
    """Swap two colours along the path that starts at a lane with the first colour, which becomes free there."""
    path, colour, node = [], one, end
    while colour in at[node]:
        need = at[node][colour]
        path.append(need)
        node = need.ends[0] if node == need.ends[1] else need.ends[1]
        colour = other if colour == one else one
    for need in path:
        for node in need.ends:
            if at[node].get(chosen[need]) is need:
                del at[node][chosen[need]]
    for need in path:
        chosen[need] = other if chosen[need] == one else one
        for node in need.ends:
            at[node][chosen[need]] = need
