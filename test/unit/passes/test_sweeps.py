"""Sweeps over changed rules find the same as sweeps over all rules, in the same order, with few visits."""

import random

from hypothesis import given
from hypothesis import strategies as st

from xegpu_py.passes.analysis.sweeps import Sweeps


def rules(r, count):
    """Rules: the numbers that each one needs, and the numbers that it gives."""
    pick = [(r.randint(0, min(2, count)), r.randint(0, min(3, count))) for _ in range(count)]
    return [(r.sample(range(count), needs), r.sample(range(count), gives)) for needs, gives in pick]


def apply(rule, found):
    needs, gives = rule
    new = [g for g in gives if g not in found] if all(n in found for n in needs) else []
    found += new
    return new


@given(st.integers(0, 1 << 30), st.integers(1, 30), st.booleans())
def test_as_sweeps_over_everything(seed, count, backward):
    made = rules(random.Random(seed), count)
    wanted, sweeps_wanted = [], 0
    while True:
        before = len(wanted)
        for rule in made[::-1] if backward else made:
            apply(rule, wanted)
        sweeps_wanted += 1
        if len(wanted) == before:
            break

    found, sweeps_found, visits = [], 0, 0
    sweeps = Sweeps(count, backward=backward)
    while True:
        before = len(found)
        for i in sweeps.sweep():
            visits += 1
            for value in apply(made[i], found):
                for j, (needs, _) in enumerate(made):
                    if value in needs:
                        sweeps.add(j)
        sweeps_found += 1
        if len(found) == before:
            break
    assert found == wanted and sweeps_found <= sweeps_wanted
    # Each is visited once at first, and once for each of its needs.
    assert visits <= count + sum(len(needs) for needs, _ in made)


def test_the_number_in_process_waits_for_the_next_sweep():
    for backward in (False, True):
        sweeps = Sweeps(3, backward=backward)
        visited = []
        for i in sweeps.sweep():
            visited.append(i)
            if len(visited) < 6:
                sweeps.add(i)
        assert visited == [*range(3)][:: -1 if backward else 1] and [*sweeps.sweep()] == visited
