"""Random programs of work items: their MLIR, and what each work item computes, by plain Python integers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

MASK = 0xFFFFFFFF
SLOTS = 6
"""Words of memory that each work item writes."""
WORDS = 64
"""Words that all work items read."""


def signed(x: int) -> int:
    """The number that 32 bits stand for."""
    x &= MASK
    return x - (1 << 32) if x >> 31 else x


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": lambda a, b: min(signed(a), signed(b)),
    "arith.maxui": lambda a, b: max(a, b),
    "arith.divui": lambda a, b: a // (b | 1),
    "arith.remui": lambda a, b: a % (b | 1),
}
CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: signed(a) < signed(b),
    "sge": lambda a, b: signed(a) >= signed(b),
    "ult": lambda a, b: a < b,
    "ugt": lambda a, b: a > b,
}


@dataclass
class Item:
    """A work item as it runs.

    Attributes:
        values: its values by name.
        out: the words that it writes.
    """

    values: dict[str, int]
    out: list[int] = field(default_factory=lambda: [0] * SLOTS)


Step = Callable[[Item], None]


@dataclass
class Shared:
    """Memory of all work items: what they read, and counters to which they add."""

    words: list[int]
    counters: list[int] = field(default_factory=lambda: [0] * 8)


class Writer:
    """Writes a random program, and keeps what it does as steps that run for one work item each."""

    def __init__(self, rng: random.Random, shared: Shared, lanes: int) -> None:
        self.rng, self.shared, self.lanes = rng, shared, lanes
        self.lines: list[str] = []
        self.names = 0
        self.depth = 2

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def emit(self, text: str) -> None:
        self.lines.append(f"{'  ' * self.depth}{text}")

    def constant(self, steps: list[Step], value: int) -> str:
        result = self.name()
        self.emit(f"{result} = arith.constant {signed(value)} : i32")
        steps.append(lambda item: item.values.__setitem__(result, value & MASK))
        return result

    def binary(self, steps: list[Step], known: list[str]) -> str:
        name, rule = self.rng.choice(list(OPERATIONS.items()))
        a, b = self.rng.choice(known), self.rng.choice(known)
        if name in ("arith.divui", "arith.remui"):
            one = self.constant(steps, 1)
            odd = self.name()
            self.emit(f"{odd} = arith.ori {b}, {one} : i32")
            written = odd
        else:
            written = b
        result = self.name()
        self.emit(f"{result} = {name} {a}, {written} : i32")
        steps.append(lambda item: item.values.__setitem__(result, rule(item.values[a], item.values[b]) & MASK))
        return result

    def compare(self, steps: list[Step], known: list[str]) -> str:
        name, rule = self.rng.choice(list(CONDITIONS.items()))
        a, b = self.rng.choice(known), self.rng.choice(known)
        result = self.name()
        self.emit(f"{result} = arith.cmpi {name}, {a}, {b} : i32")
        steps.append(lambda item: item.values.__setitem__(result, int(rule(item.values[a], item.values[b]))))
        return result

    def select(self, steps: list[Step], known: list[str]) -> str:
        condition = self.compare(steps, known)
        a, b = self.rng.choice(known), self.rng.choice(known)
        result = self.name()
        self.emit(f"{result} = arith.select {condition}, {a}, {b} : i32")
        steps.append(lambda i: i.values.__setitem__(result, i.values[a] if i.values[condition] else i.values[b]))
        return result

    def index(self, steps: list[Step], known: list[str], limit: int) -> tuple[str, str]:
        """A number below a power of two: as i32 and as index."""
        mask = self.constant(steps, limit - 1)
        value = self.rng.choice(known)
        small, index = self.name(), self.name()
        self.emit(f"{small} = arith.andi {value}, {mask} : i32")
        self.emit(f"{index} = arith.index_cast {small} : i32 to index")
        steps.append(lambda item: item.values.__setitem__(small, item.values[value] & (limit - 1)))
        return small, index

    def load(self, steps: list[Step], known: list[str]) -> str:
        small, index = self.index(steps, known, WORDS)
        result = self.name()
        self.emit(f"{result} = memref.load %in[{index}] : memref<{WORDS}xi32>")
        steps.append(lambda item: item.values.__setitem__(result, self.shared.words[item.values[small]]))
        return result

    def store(self, steps: list[Step], known: list[str]) -> None:
        slot, value = self.rng.randrange(SLOTS), self.rng.choice(known)
        at = self.name()
        self.emit(f"{at} = arith.constant {slot} : index")
        self.emit(f"memref.store {value}, %out[%item, {at}] : memref<?x{SLOTS}xi32>")
        steps.append(lambda item: item.out.__setitem__(slot, item.values[value]))

    def count(self, steps: list[Step], known: list[str]) -> None:
        small, index = self.index(steps, known, 8)
        value = self.rng.choice(known)
        self.emit(f"{self.name()} = memref.atomic_rmw addi {value}, %counters[{index}] : (i32, memref<8xi32>) -> i32")

        def step(item: Item) -> None:
            self.shared.counters[item.values[small]] += item.values[value]

        steps.append(step)

    def body(self, known: list[str], depth: int) -> tuple[list[Step], str]:
        """A block; its steps, and a value to yield."""
        steps: list[Step] = []
        known = list(known)
        self.depth += 1
        for _ in range(self.rng.randint(1, 4)):
            self.statement(steps, known, depth)
        self.depth -= 1
        return steps, self.rng.choice(known[-3:])

    def statement(self, steps: list[Step], known: list[str], depth: int) -> None:
        kinds = [self.binary] * 4 + [self.select] * 2 + [self.load] * 2
        nested = [self.branch, self.counted, self.turning, self.switch] * 2 if depth else []
        kind = self.rng.choice([*kinds, self.store, self.count, *nested])
        if kind in nested:
            known.append(kind(steps, known, depth))
            return
        result = kind(steps, known)
        if result:
            known.append(result)

    def branch(self, steps: list[Step], known: list[str], depth: int) -> str:
        condition = self.compare(steps, known)
        result = self.name()
        self.emit(f"{result} = scf.if {condition} -> i32 {{")
        then, a = self.body(known, depth - 1)
        self.emit(f"  scf.yield {a} : i32")
        self.emit("} else {")
        other, b = self.body(known, depth - 1)
        self.emit(f"  scf.yield {b} : i32")
        self.emit("}")

        def step(item: Item) -> None:
            taken = item.values[condition]
            run(then if taken else other, item)
            item.values[result] = item.values[a if taken else b]

        steps.append(step)
        return result

    def counted(self, steps: list[Step], known: list[str], depth: int) -> str:
        small, index = self.index(steps, known, 4)
        init = self.rng.choice(known)
        zero, one, result, at, carried = (self.name() for _ in range(5))
        self.emit(f"{zero} = arith.constant 0 : index")
        self.emit(f"{one} = arith.constant 1 : index")
        self.emit(f"{result} = scf.for {at} = {zero} to {index} step {one} iter_args({carried} = {init}) -> (i32) {{")
        turn = self.name()
        self.emit(f"  {turn} = arith.index_cast {at} : index to i32")
        inner, value = self.body([*known, turn, carried], depth - 1)
        self.emit(f"  scf.yield {value} : i32")
        self.emit("}")

        def step(item: Item) -> None:
            item.values[carried] = item.values[init]
            for i in range(item.values[small]):
                item.values[turn] = i
                run(inner, item)
                item.values[carried] = item.values[value]
            item.values[result] = item.values[carried]

        steps.append(step)
        return result

    def turning(self, steps: list[Step], known: list[str], depth: int) -> str:
        small, _ = self.index(steps, known, 4)
        init = self.rng.choice(known)
        one, zero = self.constant(steps, 1), self.constant(steps, 0)
        result, left, value, more, left2, value2, less = (self.name() for _ in range(7))
        self.emit(f"{result}:2 = scf.while ({left} = {small}, {value} = {init}) : (i32, i32) -> (i32, i32) {{")
        first, passed = self.body([*known, left, value], depth - 1)
        self.emit(f"  {more} = arith.cmpi ugt, {left}, {zero} : i32")
        self.emit(f"  scf.condition({more}) {left}, {passed} : i32, i32")
        self.emit("} do {")
        self.emit(f"^bb0({left2}: i32, {value2}: i32):")
        second, yielded = self.body([*known, left2, value2], depth - 1)
        self.emit(f"  {less} = arith.subi {left2}, {one} : i32")
        self.emit(f"  scf.yield {less}, {yielded} : i32, i32")
        self.emit("}")

        def step(item: Item) -> None:
            item.values[left], item.values[value] = item.values[small], item.values[init]
            while True:
                run(first, item)
                found = item.values[passed]
                if not item.values[left]:
                    break
                item.values[left2], item.values[value2] = item.values[left], found
                run(second, item)
                item.values[left], item.values[value] = item.values[left2] - 1, item.values[yielded]
            item.values[f"{result}#1"] = found

        steps.append(step)
        return f"{result}#1"

    def switch(self, steps: list[Step], known: list[str], depth: int) -> str:
        small, index = self.index(steps, known, 4)
        result = self.name()
        self.emit(f"{result} = scf.index_switch {index} -> i32")
        ways: dict[int, tuple[list[Step], str]] = {}
        for case in (0, 2):
            self.emit(f"case {case} {{")
            ways[case] = self.body(known, depth - 1)
            self.emit(f"  scf.yield {ways[case][1]} : i32")
            self.emit("}")
        self.emit("default {")
        default = self.body(known, depth - 1)
        self.emit(f"  scf.yield {default[1]} : i32")
        self.emit("}")

        def step(item: Item) -> None:
            way, value = ways.get(item.values[small], default)
            run(way, item)
            item.values[result] = item.values[value]

        steps.append(step)
        return result


def run(steps: list[Step], item: Item) -> None:
    """Let a work item do steps."""
    for step in steps:
        step(item)


@dataclass
class Program:
    """A kernel of work items.

    Attributes:
        text: its MLIR.
        stages: steps that all work items do before any does the next.
    """

    text: str
    stages: list[Callable[[list[Item]], None]]


def program(
    rng: random.Random, shared: Shared, lanes: int, known_size: tuple[int, int, int] | None, tells: bool = True
) -> Program:
    """A random kernel of `%in`, `%out`, `%counters` and a number, that may let lanes tell each other something."""
    w = Writer(rng, shared, lanes)
    known = ["%number", "%x32", "%y32", "%group32", "%lane32"]
    stages: list[Callable[[list[Item]], None]] = []
    for _ in range(rng.randint(2, 5)):
        steps: list[Step] = []
        w.statement(steps, known, 2)
        stages.append(lambda items, steps=steps: [run(steps, i) for i in items] and None)
        if tells and rng.random() < 0.4:
            stages.append(tell(w, known))
    steps = []
    w.store(steps, known)
    stages.append(lambda items, steps=steps: [run(steps, i) for i in items] and None)
    size = f", known_block_size = array<i32: {', '.join(map(str, known_size))}>" if known_size else ""
    text = f"""gpu.module @kernels {{
  gpu.func @random(%in: memref<{WORDS}xi32>, %out: memref<?x{SLOTS}xi32>, %counters: memref<8xi32>, %number: i32)
      kernel attributes {{xegpu.subgroup_size = {lanes} : i32{size}}} {{
    %x = gpu.thread_id x
    %y = gpu.thread_id y
    %width = gpu.block_dim x
    %height = gpu.block_dim y
    %group = gpu.block_id x
    %lane = gpu.lane_id
    %row = arith.muli %group, %height : index
    %line = arith.addi %row, %y : index
    %begin = arith.muli %line, %width : index
    %item = arith.addi %begin, %x : index
    %x32 = arith.index_cast %x : index to i32
    %y32 = arith.index_cast %y : index to i32
    %group32 = arith.index_cast %group : index to i32
    %lane32 = arith.index_cast %lane : index to i32
{chr(10).join(w.lines)}
    gpu.return
  }}
}}
"""
    return Program(text, stages)


def tell(w: Writer, known: list[str]) -> Callable[[list[Item]], None]:
    """A shuffle or a reduction, of full subgroups."""
    value = w.rng.choice(known)
    result = w.name()
    width = w.rng.choice([n for n in (4, 8, 16, 32) if n <= w.lanes])
    kind = w.rng.choice(("xor", "up", "down", "idx", "add", "maxui"))
    known.append(result)
    if kind in ("add", "maxui"):
        w.emit(f"{result} = gpu.subgroup_reduce {kind} {value} : (i32) -> i32")

        def reduce(items: list[Item]) -> None:
            for at in range(0, len(items), w.lanes):
                group = items[at : at + w.lanes]
                values = [i.values[value] for i in group]
                found = sum(values) & MASK if kind == "add" else max(values)
                for item in group:
                    item.values[result] = found

        return reduce
    steps: list[Step] = []
    if w.rng.random() < 0.5:
        offset = w.constant(steps, w.rng.randrange(width))
    else:
        offset, _ = w.index(steps, known[:-1], width)
    size = w.constant(steps, width)
    valid = w.name()
    other = w.name()
    w.emit(f"{other}, {valid} = gpu.shuffle {kind} {value}, {offset}, {size} : i32")
    # The result of lanes outside of their segment is undefined.
    w.emit(f"{result} = arith.select {valid}, {other}, {value} : i32")

    def shuffle(items: list[Item]) -> None:
        for item in items:
            run(steps, item)
        for at, item in enumerate(items):
            lane = at % w.lanes
            first, place, by = lane // width * width, lane % width, item.values[offset]
            to = {"xor": place ^ by, "up": place - by, "down": place + by, "idx": by}[kind]
            there = 0 <= to < width
            item.values[result] = items[at - lane + first + to].values[value] if there else item.values[value]

    return shuffle
