"""Kernels of work items give the bits that each work item's own computation gives."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py

from .work_items import SLOTS, WORDS, Item, Shared, program

SHAPES = [((16, 1, 1), True), ((48, 1, 1), False), ((16, 3, 1), True), ((8, 4, 1), False), ((32, 2, 1), False)]
GROUPS = 3


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(SHAPES), st.sampled_from([8, 16, 32]))
def test_random_programs(seed: int, shape: tuple[tuple[int, int, int], bool], lanes: int) -> None:
    (width, height, depth), known = shape
    if width * height % lanes:
        lanes = 8
    rng = random.Random(seed)
    shared = Shared([rng.getrandbits(32) >> rng.choice((0, 28)) for _ in range(WORDS)])
    made = program(rng, shared, lanes, (width, height, depth) if known else None)
    number = rng.getrandbits(8)
    check(made.text, made.stages, shared, lanes, (width, height), number)


def check(text, stages, shared, lanes, block, number):
    width, height = block
    items = []
    for group in range(GROUPS):
        for i in range(width * height):
            y, x = divmod(i, width)
            place = i % lanes
            values = {"%number": number, "%x32": x, "%y32": y, "%group32": group, "%lane32": place}
            items.append(Item(values))
    for stage in stages:
        # Subgroups of different workgroups have nothing to tell each other.
        for at in range(0, len(items), width * height):
            stage(items[at : at + width * height])
    kernel = xegpu_py.compile(text)
    words = np.array(shared.words, np.uint32).view(np.int32)
    out = np.zeros((len(items), SLOTS), np.int32)
    counters = np.zeros(8, np.int32)
    kernel(words, out, counters, np.int32(number), grid=GROUPS, block=block)
    want = np.array([i.out for i in items], np.uint64).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(out, want, text)
    np.testing.assert_array_equal(counters.view(np.uint32), np.array(shared.counters) & 0xFFFFFFFF, text)
