"""Random programs of Triton's IR, with the arrays that numpy computes.

Positions are numbers of 32 bits that wrap around: they are computed with arguments of any size, compared and extended, and
brought into the bounds of an array only where they become addresses.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

from xegpu_py.runtime.host_arrays import parse_argument

from . import elementwise, ops
from .body import Value, twin
from .computed import TYPES, Computed
from .ops import Array, Op
from .program import Program

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "f32")
MOST = 256
"""The most elements of a tensor."""
SMALL = 1024.0
"""Floats are kept below this, so that sums and products are exact or rounded once, and never infinite."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Tensor(Value):
    """A value: its numbers in each program, which are the first axis."""

    data: Array = field(default_factory=lambda: np.zeros(0), compare=False)

    @cached_property
    def type(self) -> str:
        """The type in TTIR."""
        return text(self.shape, self.element)

    def typed(self, element: str) -> str:
        """The type of a tensor of this shape and of other elements."""
        return text(self.shape, element)


def text(shape: Shape, element: str) -> str:
    """A type in TTIR."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>" if shape else element


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
"""The numbers of four bits (OCP Microscaling Formats 1.0, section 5.3.3)."""

FAMILIES = (
    "arithmetic", "shift", "division", "extended", "sign", "rounding", "count", "power", "functions of two", *ops.TRUTH,
)  # fmt: skip
"""Families of the table's ops that programs have, but for quotients of floats, which may be infinite."""
COMPARED = ("eq", "ne", "slt", "sle", "sgt", "ult", "uge")
FOLDED = {
    "i": [*ops.reductions("i32").values()], "f": [ops.BY_NAME["maxnumf"], ops.BY_NAME["minnumf"]],
    "i1": [ops.BY_NAME[name] for name in ("xori", "andi", "ori")],
}  # fmt: skip
ATOMIC = {"add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "max": np.maximum,
          "min": np.minimum}  # fmt: skip


class Writer(Computed):
    """A program as it is written."""

    elements = ("i1", *INTEGERS, *FLOATS)
    special_floats = False
    bounding = False

    def __init__(self, r: Random, programs: int) -> None:
        super().__init__(r)
        self.programs, self.value, self.depth = programs, Tensor, 1
        self.helpers: list[str] = []
        self.values: list[Any] = []
        self.expected: dict[int, Array] = {}
        self.pid = self.put("tt.get_program_id x : i32", "i32", (), np.arange(programs, dtype=np.int32))
        count = np.full(programs, programs, np.int32)
        self.values.append(self.put("tt.get_num_programs x : i32", "i32", (), count))
        for _ in range(2):
            number = r.choice([r.randrange(1, 100), r.randrange(-(2**31), 2**31), 0x30000000, 2**31 - 1])
            self.values.append(self.number(number))

    # Text

    def put(self, op: str, element: str, shape: Shape, data: Array) -> Tensor:
        """Write an op with one result, whose numbers numpy has computed."""
        return self.known(self.op(op, shape, element).name, element, shape, data)

    def known(self, name: str, element: str, shape: Shape, data: Array) -> Tensor:
        """A value whose numbers numpy has computed."""
        made = Tensor(name, shape, element, data=np.asarray(data, TYPES.get(element)))
        assert made.data.shape == (self.programs, *shape), (name, made.data.shape)
        return made

    def computed(self, value: Value, function: Callable[..., Any], *operands: Any) -> Tensor:
        """A value that is written, by the function of an op on the numbers of its operands."""
        with np.errstate(all="ignore"):
            data = function(*(v.data for v in operands))
        made = self.known(value.name, value.element, value.shape, np.broadcast_to(data, (self.programs, *value.shape)))
        if made.element in FLOATS and np.abs(made.data).max() >= SMALL and not self.bounding:
            # The first of the two results may still have large negative numbers.
            self.bounding = True
            for name, limit in (("minnumf", 500), ("maxnumf", -500)):
                made = self.binary(name, made, self.constant(made.element, limit, made.shape))
            self.bounding = False
        return made

    def number(self, number: int) -> Tensor:
        """An argument of the kernel."""
        return self.known(self.argument("i32", f"i32:{number}"), "i32", (), np.full(self.programs, number))

    def constant(self, element: str, number: int, shape: Shape = ()) -> Any:
        """A number, or a tensor of it."""
        return self.splat(number, shape, element)

    # Ops of the table

    def allows(self, op: Op, x: Value) -> bool:
        """Ops that TTIR has; floats stay finite, and truth values are not added."""
        if op.compute is None or op.family not in FAMILIES or op.name == "arith.divf":
            return False
        return x.element != "i1" or op.kind in ("and", "or", "xor") or op.family in ops.TRUTH

    def targets(self, element: str) -> list[str]:
        """Floats are made of small integers only."""
        found = ["i1"] * (element in INTEGERS) + super().targets(element)
        return [e for e in found if e in INTEGERS or e == "i1" or element in ("i8", "i1", *FLOATS)]

    def bitcast(self, x: Any) -> Any:
        """The bits of floats."""
        if x.element not in FLOATS:
            return elementwise.number(self, x)
        other = twin(x.element)
        return self.put(
            f"tt.bitcast {x.name} : {x.type} -> {x.typed(other)}", other, x.shape, x.data.view(TYPES[other])
        )

    # Choices

    def some(self, fits: Callable[[Any], Any] = lambda v: True) -> Any:
        """A value that fits, which is loaded if there is none."""
        found = [v for v in self.values if fits(v)]
        elements = [*INTEGERS, *FLOATS]
        self.r.shuffle(elements)
        for element in itertools.cycle(elements):
            if found:
                break
            value = self.loaded(element)
            found = [value] if fits(value) else []
        return self.r.choice(found)

    def shape(self) -> Shape:
        rank = self.r.choice([1, 1, 2, 2, 3])
        while True:
            found = tuple(self.r.choice([2, 1, 4, 8, 16]) for _ in range(rank))
            if 2 <= np.prod(found) <= MOST:
                return found

    # Addresses

    def indices(self, shape: Shape, limit: int) -> Any:
        """Numbers below a limit, a power of two, made of positions that may wrap around."""
        total = self.spread(shape)
        position = self.some(lambda v: v.element == "i32" and not v.shape)
        if self.r.random() < 0.7:
            scaled = self.binary("muli", total, self.like(position, shape))
            total = self.binary(self.r.choice(["addi", "subi", "xori"]), scaled, self.like(self.pid, shape))
        return self.binary("andi", total, self.constant("i32", limit - 1, shape))

    def spread(self, shape: Shape) -> Any:
        """The number of each element in row-major order."""
        size = int(np.prod(shape))
        row = np.broadcast_to(np.arange(size, dtype=np.int32), (self.programs, size))
        line = self.put(
            f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>", "i32", (size,), row
        )
        return line if shape == (size,) else self.reshaped(line, shape)

    def like(self, scalar: Value, shape: Shape) -> Any:
        """A scalar, repeated in a shape if there is one."""
        if not shape:
            return scalar
        data = np.broadcast_to(scalar.data.reshape(-1, *[1] * len(shape)), (self.programs, *shape))
        return self.put(
            f"tt.splat {scalar.name} : {scalar.type} -> {text(shape, scalar.element)}", scalar.element, shape, data
        )

    def pointers(self, array: str, element: str, places: Value) -> tuple[str, str]:
        """Pointers to elements of an array; their name and type."""
        kind = text(places.shape, f"!tt.ptr<{element}>")
        base, moved = self.name(), self.name()
        if not places.shape:
            base = array
        else:
            self.line(f"{base} = tt.splat {array} : !tt.ptr<{element}> -> {kind}")
        self.line(f"{moved} = tt.addptr {base}, {places.name} : {kind}, {places.type}")
        return moved, kind

    def loaded(self, element: str, shape: Shape = ()) -> Any:
        """Numbers of an array at any of its places, some of them masked."""
        shape, size = shape or self.shape(), self.r.choice([32, 64, 256])
        how = "small" if element in FLOATS else self.r.choice(["small", "bits"])
        word = f"{how}:{element}:{size}:seed={self.r.randrange(1000)}"
        array = self.argument(f"!tt.ptr<{element}>", word)
        places = self.indices(shape, size)
        name, kind = self.pointers(array, element, places)
        contents, form = np.asarray(parse_argument(word))[places.data], f"tt.load {name}"
        if self.r.random() < 0.5:
            mask, other = self.mask(shape), self.constant(element, self.r.randrange(4), shape)
            form, contents = f"{form}, {mask.name}, {other.name}", np.where(mask.data, contents, other.data)
        made = self.put(f"{form} : {kind}", element, shape, contents)
        self.values.append(made)
        return made

    def ragged(self) -> Any:
        """A part of an array for each program, which a mask keeps below the array's size."""
        element, size = self.r.choice(["f16", "f32", "i32"]), self.r.choice([16, 32, 64, 256])
        count = self.r.randrange(1, size * self.programs + 1)
        if self.r.random() < 0.5:
            count = -(-count // 16) * 16
        word = f"small:{element}:{count}:seed={self.r.randrange(1000)}"
        array = self.argument(f"!tt.ptr<{element}>", word)
        start = self.binary("muli", self.pid, self.constant("i32", size))
        places = self.binary("addi", self.spread((size,)), self.like(start, (size,)))
        end = self.number(count)
        mask = self.compared("slt", places, self.like(end, (size,)))
        name, kind = self.pointers(array, element, places)
        other = self.constant(element, self.r.randrange(4), (size,))
        contents = np.asarray(parse_argument(word))[np.minimum(places.data, count - 1)]
        data = np.where(mask.data, contents, other.data)
        return self.put(f"tt.load {name}, {mask.name}, {other.name} : {kind}", element, (size,), data)

    def window(self) -> Any:
        """A block of a matrix under comparisons of its rows and columns with numbers of any size.

        The array has no elements but those that some program accesses and those between them. Another is stored in the
        same way.
        """
        shape = self.r.choice([(4, 16), (8, 16), (16, 8), (1, 64), (1, 128)])
        element, lines, masks = self.r.choice(["i8", "i32", "f16", "f32"]), [], []
        for axis, count in enumerate(shape):
            first = self.r.choice([self.binary("muli", self.pid, self.constant("i32", count)), self.bound(count)])
            line = self.binary("addi", self.spread((count,)), self.like(first, (count,)))
            lines.append(line)
            for _ in range(self.r.choice([0, 1, 1, 2])):
                limit = self.like(self.bound(count), (count,))
                name = self.r.choice(["slt"] * 5 + ["sge"] * 3 + [*COMPARED])
                swaps = self.r.random() < 0.2
                compared = self.compared(name, limit, line) if swaps else self.compared(name, line, limit)
                masks.append(self.along(compared, axis, shape))
        pitch = self.number(self.r.choice([shape[1], 16, 33, 64, 80]))
        row = self.binary("muli", lines[0], self.like(pitch, (shape[0],)))
        places = self.binary("addi", *(self.along(v, axis, shape) for axis, v in enumerate((row, lines[1]))))
        if self.r.random() < 0.3:
            # Each program has a matrix of its own, which no bound tells.
            apart = self.binary("muli", self.pid, self.binary("muli", pitch, self.number(self.r.choice([2, 4, 32]))))
            places = self.binary("addi", places, self.like(apart, shape))
        mask = functools.reduce(functools.partial(self.binary, "andi"), masks) if masks else self.mask(shape)
        chosen = places.data[mask.data].astype(np.int64)
        low = int(chosen.min()) if chosen.size else 0
        size = int(chosen.max()) - low + 1 if chosen.size else 1
        indices = np.clip(places.data - np.int64(low), 0, size - 1)
        names = []
        for word in (f"small:{element}:{size}:seed={self.r.randrange(1000)}", f"zeros:{element}:{size}"):
            array, base = self.argument(f"!tt.ptr<{element}>", word), self.name()
            start = self.constant("i32", -low)
            self.line(f"{base} = tt.addptr {array}, {start.name} : !tt.ptr<{element}>, i32")
            names.append(self.pointers(base, element, places))
        contents = np.asarray(parse_argument(self.words()[-2]))[indices]
        other, stored = (self.constant(element, n, shape) for n in (self.r.randrange(4), 3))
        (loaded, kind), (written, _) = names
        stores = np.zeros(size, TYPES[element])
        stores[chosen - low] = 3
        self.line(f"tt.store {written}, {stored.name}, {mask.name} : {kind}")
        self.expected[len(self.arguments) - 1] = stores
        data = np.where(mask.data, contents, other.data)
        return self.put(f"tt.load {loaded}, {mask.name}, {other.name} : {kind}", element, shape, data)

    def bound(self, count: int) -> Any:
        """The first or last row or column of a window: an argument, or a sum with it."""
        numbers = [0, 1, 3, count - 1, count, 2 * count, 40, 1000, -1, -count]
        number = self.r.choice(numbers)
        bound = self.number(number) if self.r.random() < 0.8 else self.constant("i32", number)
        if self.r.random() < 0.6:
            return bound
        return self.binary(self.r.choice(["addi", "subi", "minsi", "maxsi"]), bound, self.r.choice([self.pid, bound]))

    def mask(self, shape: Shape) -> Any:
        """A comparison of positions."""
        limit = self.like(self.some(lambda v: v.element == "i32" and not v.shape), shape)
        return self.compared(self.r.choice(COMPARED), self.binary("muli", self.spread(shape), limit), limit)

    # Ops

    def step(self) -> Any:
        """Any op of the table."""
        return elementwise.step(self, self.some())

    def binary(self, name: str, x: Value, y: Value) -> Any:
        return elementwise.binary(self, name, x, y)

    def compared(self, name: str, x: Tensor, y: Tensor) -> Any:
        return self.apply(ops.comparison(name), {"x": x, "y": y})

    def reshaped(self, x: Value, shape: Shape) -> Any:
        data = x.data.reshape(self.programs, *shape)
        return self.put(f"tt.reshape {x.name} : {x.type} -> {text(shape, x.element)}", x.element, shape, data)

    def partner(self, x: Value) -> Any:
        """Another value of the type of one."""
        found = [v for v in self.values if v.type == x.type]
        return self.r.choice(found) if len(found) > 1 else self.constant(x.element, self.r.randrange(2), x.shape)

    def rounded(self) -> Any:
        x = self.some(lambda v: v.element == "f32")
        op = f"tt.fp_to_fp {x.name}, rounding = rtne : {x.type} -> {text(x.shape, 'f16')}"
        return self.put(op, "f16", x.shape, x.data.astype(np.float16))

    def clamped(self) -> Any:
        x = self.some(lambda v: v.element in FLOATS)
        low, high = (self.constant(x.element, n, x.shape) for n in (-2, 3))
        op = f"tt.clampf {x.name}, {low.name}, {high.name}, propagateNan = {self.r.choice(['none', 'all'])} : {x.type}"
        return self.put(op, x.element, x.shape, np.clip(x.data, -2, 3))

    def tensor(self) -> Any:
        return self.some(lambda v: v.shape)

    def expanded(self, x: Value, axis: int) -> Any:
        """A value with one more dimension, of one element."""
        wanted = (*x.shape[:axis], 1, *x.shape[axis:])
        op = f"tt.expand_dims {x.name} {{axis = {axis} : i32}} : {x.type} -> {text(wanted, x.element)}"
        return self.put(op, x.element, wanted, np.expand_dims(x.data, axis + 1))

    def broadcast(self, x: Value, shape: Shape) -> Any:
        """A value whose dimensions of one element are repeated."""
        op = f"tt.broadcast {x.name} : {x.type} -> {text(shape, x.element)}"
        return self.put(op, x.element, shape, np.broadcast_to(x.data, (self.programs, *shape)))

    def along(self, line: Value, axis: int, shape: Shape) -> Any:
        """The elements of a line, along one dimension of a shape."""
        for other in range(len(shape)):
            line = line if other == axis else self.expanded(line, other)
        return line if line.shape == shape else self.broadcast(line, shape)

    def moved(self) -> Any | None:
        """An op that moves elements."""
        x = self.tensor()
        shape = x.shape
        data, rank, size = x.data, len(shape), int(np.prod(shape))
        how = self.r.choice(["trans", "reshape", "expand", "join", "split", "cat", "broadcast", "gather"])
        if how == "trans" and rank < 3 and size >= 8:
            # Orders of three dimensions need not be their own inverse.
            x = self.reshaped(x, (2, size // 4, 2))
            shape, data, rank = (2, size // 4, 2), x.data, 3
        if how == "trans":
            order = self.r.sample(range(rank), rank)
            wanted = tuple(shape[i] for i in order)
            op = f"tt.trans {x.name} {{order = array<i32: {', '.join(map(str, order))}>}}"
            return self.put(f"{op} : {x.type} -> {text(wanted, x.element)}", x.element, wanted,
                            data.transpose(0, *(i + 1 for i in order)))  # fmt: skip
        if how == "reshape" and (rank > 1 or size > 1):
            return self.reshaped(x, (size,) if rank > 1 else (size // 2, 2))
        if how == "expand" and rank < 4:
            return self.expanded(x, self.r.randrange(rank + 1))
        if how in ("join", "cat") and 2 * size <= MOST and rank < 4:
            y = self.partner(x)
            wanted = (*shape, 2) if how == "join" else (2 * shape[0], *shape[1:])
            made = np.stack([data, y.data], -1) if how == "join" else np.concatenate([data, y.data], 1)
            return self.put(
                f"tt.{how} {x.name}, {y.name} : {x.type} -> {text(wanted, x.element)}", x.element, wanted, made
            )
        if how == "split" and size >= 4:
            if rank == 1 or shape[-1] != 2:
                x = self.reshaped(x, (size // 2, 2))
                shape, data = (size // 2, 2), x.data
            first, second = self.name(), self.name()
            self.line(f"{first}, {second} = tt.split {x.name} : {x.type} -> {text(shape[:-1], x.element)}")
            self.values.append(self.known(second, x.element, shape[:-1], data[..., 1]))
            return self.known(first, x.element, shape[:-1], data[..., 0])
        if how == "broadcast" and 1 in shape and 4 * size <= MOST:
            return self.broadcast(x, tuple(4 if n == 1 and i == shape.index(1) else n for i, n in enumerate(shape)))
        if how == "gather" and x.element != "i1":
            axis = self.r.randrange(rank)
            places = self.indices(shape, shape[axis])
            op = f"tt.gather {x.name}[{places.name}] {{axis = {axis} : i32}} : ({x.type}, {places.type}) -> {x.type}"
            return self.put(op, x.element, shape, np.take_along_axis(data, places.data.astype(np.int64), axis + 1))
        return None

    def folded(self) -> Any:
        """A reduction or scan by one op."""
        x = self.some(lambda v: v.shape)
        if x.element in INTEGERS and self.r.random() < 0.2:
            x = self.compared(self.r.choice(COMPARED), x, self.partner(x))
        op = self.r.choice(FOLDED["i1" if x.element == "i1" else "f" if x.element in FLOATS else "i"])
        axis, scans = self.r.randrange(len(x.shape)), self.r.random() < 0.5
        end = f"tt.{'scan' if scans else 'reduce'}.return %c : {x.element}"
        region = f"({{\n^bb0(%x: {x.element}, %y: {x.element}):\n%c = {op.name} %x, %y : {x.element}\n{end}\n}})"
        function = functools.partial(ops.folded, op, axis=axis + 1)
        if scans:
            reverse = self.r.choice([True, False])
            data = np.flip(function(np.flip(x.data, axis + 1)), axis + 1) if reverse else function(x.data)
            attributes = f"<{{axis = {axis} : i32, reverse = {str(reverse).lower()}}}>"
            return self.put(
                f'"tt.scan"({x.name}) {attributes} {region} : ({x.type}) -> {x.type}', x.element, x.shape, data
            )
        left = (*x.shape[:axis], *x.shape[axis + 1 :])
        shape = left
        data = np.take(function(x.data), -1, axis + 1)
        line = f'"tt.reduce"({x.name}) <{{axis = {axis} : i32}}> {region} : ({x.type}) -> {text(shape, x.element)}'
        return self.put(line, x.element, shape, data)

    def greatest(self) -> Any:
        """The place of the greatest element along an axis, the first of several, by a region of two numbers."""
        x = self.some(lambda v: v.shape and v.element in INTEGERS)
        axis = self.r.randrange(len(x.shape))
        lines = self.along(self.spread((x.shape[axis],)), axis, x.shape)
        e, shape = x.element, (*x.shape[:axis], *x.shape[axis + 1 :])
        one, two = self.name(), self.name()
        self.line(
            f'{one}, {two} = "tt.reduce"({x.name}, {lines.name}) <{{axis = {axis} : i32}}> ({{\n'
            f"^bb0(%a: {e}, %i: i32, %b: {e}, %j: i32):\n%g = arith.cmpi sgt, %a, %b : {e}\n"
            f"%e = arith.cmpi eq, %a, %b : {e}\n%l = arith.cmpi slt, %i, %j : i32\n%f = arith.andi %e, %l : i1\n"
            f"%t = arith.ori %g, %f : i1\n%m = arith.select %t, %a, %b : {e}\n%n = arith.select %t, %i, %j : i32\n"
            f"tt.reduce.return %m, %n : {e}, i32\n}}) : ({x.type}, {lines.type}) -> ({text(shape, e)}, {text(shape, 'i32')})"
        )
        self.values.append(self.known(one, e, shape, x.data.max(axis + 1)))
        return self.known(two, "i32", shape, x.data.argmax(axis + 1).astype(np.int32))

    def counted(self) -> Any:
        x = self.some(lambda v: v.element == "i32" and v.shape and len(v.shape) == 1)
        few = self.binary("andi", x, self.constant("i32", 7, x.shape))
        data = np.stack([np.bincount(row, minlength=8) for row in few.data])
        return self.put(f"tt.histogram {few.name} : {few.type} -> tensor<8xi32>", "i32", (8,), data)

    def multiplied(self) -> Any:
        """A product of small numbers, which is exact in any order."""
        m, n, k = (self.r.choice([8, 16]) for _ in range(3))
        element, total = self.r.choice([("f16", "f32"), ("f32", "f32"), ("i8", "i32")])
        names, data = [], []
        for shape in ((m, k), (k, n)):
            word = f"small:{element}:{shape[0] * shape[1]}:seed={self.r.randrange(1000)}"
            array = self.argument(f"!tt.ptr<{element}>", word)
            name, kind = self.pointers(array, element, self.spread(shape))
            contents = np.broadcast_to(np.asarray(parse_argument(word)).reshape(shape), (self.programs, *shape))
            names.append(self.put(f"tt.load {name} : {kind}", element, shape, contents))
            data.append(contents.astype(TYPES[total]))
        acc = self.constant(total, 3, (m, n))
        how = ", inputPrecision = tf32" if element == "f32" and self.r.random() < 0.5 else ""
        op = f"tt.dot {names[0].name}, {names[1].name}, {acc.name}{how} : {names[0].type} * {names[1].type} -> {acc.type}"
        return self.put(op, total, (m, n), data[0] @ data[1] + acc.data)

    def divided(self) -> Any:
        """A quotient, or a square root, rounded once."""
        x = self.some(lambda v: v.element == "f32")
        square = self.binary("mulf", x, x)
        if self.r.random() < 0.5:
            return self.put(f"tt.precise_sqrt {square.name} : {x.type}", "f32", x.shape, np.sqrt(square.data))
        y = self.binary("addf", square, self.constant("f32", 1, x.shape))
        return self.put(f"tt.precise_divf {x.name}, {y.name} : {x.type}", "f32", x.shape, x.data / y.data)

    def scaled(self) -> Any:
        """A product of numbers of four bits times scales, which is exact in any order; some are of two matrices."""
        stack: Shape = self.r.choice([(), (), (2,)])
        m, n, k, group = 8, self.r.choice([8, 16]), 64, self.r.choice([16, 32])
        values, factors = [], []
        for shape, packed in (((*stack, m, k // 2), -1), ((*stack, k // 2, n), -2)):
            values.append(self.loaded("i8", shape))
            axis = values[-1].data.ndim + packed
            bits = ops.unsigned(values[-1].data)
            wide = list(bits.shape)
            wide[axis] *= 2
            factors.append(E2M1[np.stack([bits & 15, bits >> 4], axis + 1).reshape(wide)])
        words = [value.name for value in values]
        kinds = [value.type for value in values]
        for i, rows in enumerate((m, n)):
            if self.r.random() < 0.2:
                continue
            shape = (*stack, rows, k // group)
            small = self.binary("andi", self.loaded("i8", shape), self.constant("i8", 7, shape))
            if self.r.random() < 0.5:
                scale = self.binary("addi", small, self.constant("i8", 120, shape))
                powers = 2.0 ** (scale.data - 127.0)
            else:
                name, kind = self.name(), text(shape, "f8E4M3FN")
                self.line(f"{name}f = arith.sitofp {small.name} : {small.type} to {text(shape, 'f16')}")
                self.line(f"{name} = tt.fp_to_fp {name}f, rounding = rtne : {text(shape, 'f16')} -> {kind}")
                scale, powers = self.known(name, "f8E4M3FN", shape, small.data), small.data.astype(np.float64)
            words[i], kinds[i] = f"{words[i]} scale {scale.name}", f"{kinds[i]}, {scale.type}"
            factors[i] = factors[i] * np.moveaxis(np.repeat(powers, group, -1), -1, -1 if i == 0 else -2)
        acc = self.constant("f32", 3, (*stack, m, n))
        op = f"tt.dot_scaled {words[0]}, {words[1]}, {acc.name} lhs = e2m1 rhs = e2m1 {{fastMath = false}}"
        made = self.put(f"{op} : {kinds[0]} * {kinds[1]} -> {acc.type}", "f32", acc.shape, factors[0] @ factors[1] + 3)
        low, high = self.constant("f32", -500, acc.shape), self.constant("f32", 500, acc.shape)
        return self.binary("minnumf", self.binary("maxnumf", made, low), high)

    def unsplat(self) -> Any:
        """The element of a tensor that has one."""
        x = self.some(lambda v: not v.shape and v.element != "i1")
        y = self.like(x, (1,))
        return self.put(f"tt.unsplat {y.name} : {y.type}", x.element, (), y.data.reshape(-1))

    def branched(self) -> Any:
        """A value of one of two branches, by a number of the program."""
        x = self.some(lambda v: v.element in INTEGERS)
        y, left = self.partner(x), self.some(lambda v: not v.shape and v.element == "i32")
        test = self.compared(self.r.choice(COMPARED), left, self.pid)
        name = self.name()
        self.line(
            f"{name} = scf.if {test.name} -> ({x.type}) {{\n%s = arith.addi {x.name}, {y.name} : {x.type}\n"
            f"scf.yield %s : {x.type}\n}} else {{\nscf.yield {y.name} : {x.type}\n}}"
        )
        chosen = test.data.reshape(-1, *[1] * (x.data.ndim - 1))
        with np.errstate(over="ignore"):
            return self.known(name, x.element, x.shape, np.where(chosen, x.data + y.data, y.data))

    def looped(self) -> Any:
        """A sum over a loop whose bounds are those of the program, up to the greatest number."""
        x = self.some(lambda v: v.element == "i32")
        first = self.r.choice([0, -3, 2**31 - 9])
        lower = self.constant("i32", first)
        upper = self.binary(
            "addi", self.binary("andi", self.pid, self.constant("i32", 3)), self.constant("i32", first + 2)
        )
        step, name = self.constant("i32", self.r.choice([1, 2])), self.name()
        inner = f"%w = tt.splat %i : i32 -> {x.type}\n" if x.shape else ""
        self.line(
            f"{name} = scf.for %i = {lower.name} to {upper.name} step {step.name} iter_args(%t = {x.name}) -> ({x.type})"
            f" : i32 {{\n{inner}%m = arith.muli %t, {'%w' if inner else '%i'} : {x.type}\n"
            f"%n = arith.addi %m, {x.name} : {x.type}\nscf.yield %n : {x.type}\n}}"
        )
        total = np.array(x.data)
        for p in range(self.programs):
            for i in range(first, int(upper.data[p]), int(step.data[p])):
                with np.errstate(over="ignore"):
                    total[p] = total[p] * np.int32(i) + x.data[p]
        return self.known(name, "i32", x.shape, total)

    def called(self) -> Any:
        """A call of a function with an early return."""
        x, y = (self.some(lambda v: not v.shape and v.element == "i32") for _ in range(2))
        name, made = f"f{len(self.helpers)}", self.name()
        self.helpers.append(
            f"tt.func private @{name}(%x: i32, %y: i32) -> i32 attributes {{noinline = true}} {{\n"
            "%c = arith.cmpi slt, %x, %y : i32\ncf.cond_br %c, ^bb1, ^bb2\n^bb1:\n%s = arith.subi %x, %y : i32\n"
            "tt.return %s : i32\n^bb2:\n%m = arith.muli %x, %y : i32\ntt.return %m : i32\n}"
        )
        self.line(f"{made} = tt.call @{name}({x.name}, {y.name}) : (i32, i32) -> i32")
        with np.errstate(over="ignore"):
            return self.known(made, "i32", (), np.where(x.data < y.data, x.data - y.data, x.data * y.data))

    def mapped(self) -> Any:
        """A region of several blocks for each element."""
        x = self.some(lambda v: v.element == "i32" and v.shape)
        op = (
            f'"tt.map_elementwise"({x.name}) <{{pack = 1 : i32}}> ({{\n^bb0(%x: i32):\n%z = arith.constant 7 : i32\n'
            "%c = arith.cmpi slt, %x, %z : i32\ncf.cond_br %c, ^bb1, ^bb2(%x : i32)\n^bb1:\n%m = arith.muli %x, %z : i32\n"
            f"cf.br ^bb2(%m : i32)\n^bb2(%o: i32):\ntt.map_elementwise.return %o : i32\n}}) : ({x.type}) -> {x.type}"
        )
        with np.errstate(over="ignore"):
            return self.put(op, "i32", x.shape, np.where(x.data < 7, x.data * np.int32(7), x.data))

    def written(self) -> None:
        """Store a block of a matrix by a descriptor, each program its own, some of it outside."""
        rows, columns, shape = self.r.choice([5, 8]), self.r.choice([8, 12]), (8, 8)
        element = self.r.choice(["f32", "i32"])
        x = self.loaded(element, shape)
        word = f"zeros:{element}:{self.programs * rows * columns}"
        array = self.argument(f"!tt.ptr<{element}>", word)
        size = self.constant("i32", rows * columns)
        first = self.binary("muli", self.pid, size)
        # The integers of descriptors have signs.
        base, desc, signed = self.name(), self.name(), element.replace("i", "si")
        self.line(f"{base} = tt.addptr {array}, {first.name} : !tt.ptr<{element}>, i32")
        sizes = [self.constant("i32", n).name for n in (rows, columns)]
        strides = [self.constant("i64", n).name for n in (columns, 1)]
        self.line(
            f"{desc} = tt.make_tensor_descriptor {base}, [{sizes[0]}, {sizes[1]}], [{strides[0]}, {strides[1]}]"
            f" : <{element}>, <8x8x{signed}>"
        )
        places = [self.r.choice([0, 2, -3]), self.r.choice([0, 4])]
        names = [self.constant("i32", place).name for place in places]
        self.line(
            f"tt.descriptor_store {desc}[{names[0]}, {names[1]}], {x.name} : !tt.tensordesc<8x8x{signed}>, {x.type}"
        )
        contents = np.zeros((self.programs, rows, columns), TYPES[element])
        row, column = (np.arange(8) + place for place in places)
        y, z = (row >= 0) & (row < rows), column < columns
        contents[:, row[y][:, None], column[z]] = x.data[:, y][:, :, z]
        self.expected[len(self.arguments) - 1] = contents.ravel()

    def blocked(self) -> Any:
        """A block of a matrix by a descriptor, some of it outside."""
        rows, columns = self.r.choice([5, 8, 12]), self.r.choice([16, 20])
        word = f"small:f32:{rows * columns}:seed={self.r.randrange(1000)}"
        array = self.argument("!tt.ptr<f32>", word)
        pads = self.r.random() < 0.3
        sizes = [self.constant("i32", n) for n in (rows, columns)]
        strides = [self.constant("i64", n) for n in (columns, 1)]
        desc, shape = self.name(), (8, 16)
        self.line(
            f"{desc} = tt.make_tensor_descriptor {array}, [{sizes[0].name}, {sizes[1].name}], "
            f"[{strides[0].name}, {strides[1].name}]{' {padding = 2 : i32}' if pads else ''} : <f32>, <8x16xf32>"
        )
        first = self.binary("muli", self.pid, self.constant("i32", self.r.choice([-3, 2, 8])))
        second = self.constant("i32", self.r.choice([-8, 0, 8]))
        row, column = (v.data[:, None, None] + i for v, i in zip((first, second), np.indices(shape)))
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        contents = np.asarray(parse_argument(word)).reshape(rows, columns)
        data = np.where(
            inside, contents[np.clip(row, 0, rows - 1), np.clip(column, 0, columns - 1)], np.nan if pads else 0
        )
        op = f"tt.descriptor_load {desc}[{first.name}, {second.name}] : !tt.tensordesc<8x16xf32> -> tensor<8x16xf32>"
        made = self.put(op, "f32", shape, data)
        if not pads:
            return made
        # NaN goes no further than a choice.
        zero = self.constant("f32", 0, shape)
        test = self.put(f"arith.cmpf uno, {made.name}, {made.name} : {made.type}", "i1", shape, ~inside)
        op = f"arith.select {test.name}, {zero.name}, {made.name} : {test.type}, {made.type}"
        return self.put(op, "f32", shape, np.where(inside, data, 0))

    def exchanged(self) -> Any:
        """The numbers before an update of elements that no other program or element has, or a comparison and swap."""
        x = self.some(lambda v: v.element == "i32" and v.shape)
        size = int(np.prod(x.shape))
        word = f"small:i32:{size * self.programs}:seed={self.r.randrange(1000)}"
        array = self.argument("!tt.ptr<i32>", word)
        start = self.like(self.binary("muli", self.pid, self.constant("i32", size)), x.shape)
        name, kind = self.pointers(array, "i32", self.binary("addi", self.spread(x.shape), start))
        before = np.asarray(parse_argument(word)).reshape(x.data.shape)
        if self.r.random() < 0.5:
            mask = self.mask(x.shape)
            op = f"tt.atomic_rmw exch, acq_rel, sys, {name}, {x.name}, {mask.name} : ({kind}, {x.type}, {mask.type})"
            swaps, shown = mask.data, np.where(mask.data, before, 0)
            old = self.put(f"{op} -> {x.type}", "i32", x.shape, before)
            # Elements that the mask leaves out have no number.
            op = f"arith.andi {old.name}, {self.widened(mask).name} : {x.type}"
            made = self.put(op, "i32", x.shape, shown)
        else:
            wanted = self.constant("i32", 2, x.shape)
            op = f"tt.atomic_cas acquire, cta, {name}, {wanted.name}, {x.name} : ({kind}, {x.type}, {x.type}) -> {x.type}"
            made, swaps = self.put(op, "i32", x.shape, before), before == 2
        self.expected[len(self.arguments) - 1] = np.where(swaps, x.data, before).ravel()
        return made

    def widened(self, mask: Value) -> Any:
        """All bits of i32 where a mask is true."""
        op = f"arith.extsi {mask.name} : {mask.type} to {text(mask.shape, 'i32')}"
        return self.put(op, "i32", mask.shape, -mask.data.astype(np.int32))

    # Results

    def updated(self) -> None:
        """Update an array that all programs share."""
        x = self.some(lambda v: v.element == "i32" and v.shape)
        kind, word = self.r.choice([*ATOMIC]), "full:i32:32:5"
        array = self.argument("!tt.ptr<i32>", word)
        places, mask = self.indices(x.shape, 32), self.mask(x.shape)
        name, pointers = self.pointers(array, "i32", places)
        self.line(
            f"{self.name()} = tt.atomic_rmw {kind}, relaxed, gpu, {name}, {x.name}, {mask.name} : "
            f"({pointers}, {x.type}, {mask.type}) -> {x.type}"
        )
        contents = np.full(32, 5, np.int32)
        with np.errstate(over="ignore"):
            ATOMIC[kind].at(contents, places.data[mask.data], x.data[mask.data])
        self.expected[len(self.arguments) - 1] = contents

    def stored(self, x: Value) -> None:
        """Store a value, each program to a part of an array."""
        kind = "i8" if x.element == "i1" else x.element
        if x.element == "i1":
            x = self.put(f"arith.extui {x.name} : {x.type} to {text(x.shape, 'i8')}", "i8", x.shape, x.data)
        size = int(np.prod(x.shape))
        array = self.argument(f"!tt.ptr<{kind}>", f"zeros:{kind}:{size * self.programs}")
        start = self.binary("muli", self.pid, self.constant("i32", size))
        places = start if not x.shape else self.binary("addi", self.spread(x.shape), self.like(start, x.shape))
        name, pointers = self.pointers(array, kind, places)
        contents, form = x.data.ravel(), f"tt.store {name}, {x.name}"
        if x.shape and self.r.random() < 0.3:
            mask = self.mask(x.shape)
            form, contents = f"{form}, {mask.name}", np.where(mask.data.ravel(), contents, 0).astype(contents.dtype)
        self.line(f"{form} : {pointers}")
        self.expected[len(self.arguments) - 1] = contents


OPS = (
    *["step"] * 9, "rounded", "clamped", "moved", "moved", "moved", "folded", "folded", "greatest", "counted", "multiplied",
    "scaled", "divided", "unsplat", "branched", "looped", "called", "mapped", "blocked", "written", "exchanged", "ragged",
    "window",
)  # fmt: skip


def program(r: Random) -> Program:
    """A program of some ops, whose last values are stored."""
    writer = Writer(r, r.choice([1, 2, 3]))
    writer.loaded(r.choice([*INTEGERS, *FLOATS]))
    for _ in range(r.randrange(4, 24)):
        made = getattr(writer, r.choice(OPS))()
        if made is not None and made not in writer.values:
            writer.keep(made)
    if r.random() < 0.4:
        writer.updated()
    for value in writer.values[-r.randrange(2, 5) :]:
        writer.stored(value)
    body = "\n".join(["", *writer.lines, "tt.return"]).replace("\n", "\n  ")
    parameters = ", ".join(f"{name}: {kind}{_divisibility(word)}" for name, kind, word in writer.arguments)
    module = "\n".join([f"tt.func public @k({parameters}) {{{body}\n}}", *writer.helpers, ""])
    arrays = tuple(writer.expected.get(i, parse_argument(word)) for i, word in enumerate(writer.words()))
    return Program(module, writer.words(), (writer.programs,), expected=arrays)


def _divisibility(word: str) -> str:
    """What Triton notes of an integer that a launch passes."""
    kind, _, number = word.partition(":")
    return " {tt.divisibility = 16 : i32}" if kind == "i32" and number and int(number) % 16 == 0 else ""


def tour(r: Random, element: str | None, length: int) -> Program:
    """A program, for the coverage table; programs are not of one element."""
    return program(r)


def differences(program: Program, arrays: Sequence[Any]) -> list[str]:
    """The arguments whose bytes after a run are not those that numpy computes."""
    return [
        f"argument {i}: expected {wanted}, but got {found}"
        for i, (wanted, found) in enumerate(zip(program.expected, arrays))
        if isinstance(wanted, np.ndarray) and not np.array_equal(wanted, found)
    ]
