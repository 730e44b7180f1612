"""Random kernels in upstream's XeGPU at lane level, and what numpy says that they compute."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

import numpy as np

from generators.upstream_kernels import (
    PRODUCTS,
    SCALED,
    Array,
    RandomKernel,
    Shape,
    Source,
    Value,
    literal,
    numbers,
    typed,
    wrapped,
)
from xegpu_py.ir.builtin import bit_width, is_float, vector_text
from xegpu_py.numerics.formats import E2M1
from xegpu_py.upstream.levels import LANES, Level


class RandomLanes(RandomKernel):
    """A kernel of lanes under construction: a subgroup has as many."""

    def __init__(self, r: Random, released: bool = False) -> None:
        super().__init__(r, "lane", released)
        self.lane = self.emit(r.choice(["gpu.lane_id", "gpu.thread_id x"]))

    def properties(self, shape: Shape, likely: float = 0.5) -> str:
        """Lanes have no layouts."""
        return ""

    def block(self, element: str) -> tuple[Shape, str]:
        """The shape of a block, and how it is loaded: each lane has columns of what is loaded."""
        way = self.r.choice(["plain", "packed", "transposed"])
        rows = self.r.choice([2, 4, 8, 16, 32])
        if way == "transposed" and bit_width(element) == 32:
            return (LANES, self.r.choice([1, 2, 4, 8])), way
        if way == "packed" and bit_width(element) < 32:
            return (max(rows, 32 // bit_width(element)), LANES), way
        # Of 16 columns of bytes LLVM 22.1.8 gives a lane others than LLVM's main branch (docs/upstream.md).
        return (rows, LANES * (2 if bit_width(element) == 8 else 1)), "plain"

    def fragments(self, array: Array, way: str) -> Array:
        """The elements that each lane has of a block."""
        if way == "transposed":
            return array
        side = array.shape[1] // LANES
        return array.reshape(-1, LANES, side).transpose(1, 0, 2).reshape(LANES, -1)

    def load(self) -> None:
        """The fragments of a block, which may reach over the edges of its memory."""
        element = self.r.choice(self.elements)
        shape, way = self.block(element)
        extent = (shape[0] * self.r.choice([1, 2]), shape[1] * self.r.choice([4, 8]))
        extent = (extent[0], max(extent[1], 64))
        offsets = [self.r.choice([0, e - n, e - n // 2]) for n, e in zip(shape, extent)]
        offsets[1] -= offsets[1] % (4 * 8 // bit_width(element) or 1)
        source = self.source(extent, element)
        desc, kind = self.descriptor(source, shape, element, offsets)
        padded = np.pad(numbers(source.array), [(0, n) for n in shape])
        held = self.fragments(padded[tuple(slice(o, o + n) for o, n in zip(offsets, shape))], way)
        more = {"plain": "", "packed": " <{packed}>", "transposed": " <{transpose = array<i64: 1, 0>}>"}[way]
        to = vector_text(held.shape[1:], element)
        self.keep(f"xegpu.load_nd {desc}{more} : {kind} -> {to}", element, held)

    def numbered(self, count: int) -> tuple[str, Array]:
        """An offset of each lane, so far from the others' that it is that of `count` elements."""
        backwards = self.r.random() < 0.4
        line, at = self.lane, np.arange(LANES)
        if backwards:
            line, at = self.emit(f"arith.subi {self.emit('arith.constant 15 : index')}, {line} : index"), at[::-1]
        if count > 1:
            line = self.emit(f"arith.muli {line}, {self.emit(f'arith.constant {count} : index')} : index")
        return line, at * count

    def lanes_mask(self) -> tuple[str, Array]:
        """A mask of each lane."""
        if self.r.random() < 0.5:
            return self.emit("arith.constant true"), np.ones(LANES, bool)
        limit = self.r.randrange(LANES + 1)
        bound = self.emit(f"arith.constant {limit} : index")
        return self.emit(f"arith.cmpi ult, {self.lane}, {bound} : index"), np.arange(LANES) < limit

    def line(self, count: int, element: str, fill: str) -> tuple[str, str, Array]:
        """Memory that lanes access by one offset: one dimension, a view, or an address."""
        way = self.r.choice(["whole", "view", "address", *([] if self.released else ["rows"])])
        if way == "view":
            name, kind, array = self.argument((count + 8,), element, fill)
            to = f"memref<{count}x{element}, strided<[1], offset: 8>>"
            return self.emit(f"memref.subview {name}[8] [{count}] [1] : {kind} to {to}"), to, array[8:]
        if way == "rows":
            name, kind, array = self.argument((3, count), element, fill)
            to = f"memref<{count}x{element}, strided<[1], offset: {count}>>"
            return self.emit(f"memref.subview {name}[1, 0] [1, {count}] [1, 1] : {kind} to {to}"), to, array[1]
        name, kind, array = self.argument((count,), element, fill)
        if way == "address":
            place = self.emit(f"memref.extract_aligned_pointer_as_index {name} : {kind} -> index")
            return self.emit(f"arith.index_cast {place} : index to i64"), "i64", array
        return name, kind, array

    def gather(self) -> None:
        """Elements at an offset of each lane; zeros in lanes that are masked off."""
        element, count = self.r.choice(self.elements), self.r.choice([1, 1, 2, 4, 8])
        name, kind, array = self.line(LANES * count, element, "small")
        (at, first), (mask, held) = self.numbered(count), self.lanes_mask()
        shape = (count,) if count > 1 else ()
        found = numbers(array)[first[:, None] + np.arange(count)].reshape(LANES, *shape)
        found = np.where(held.reshape(LANES, *[1] * len(shape)), found, 0)
        chunk = f" <{{chunk_size = {count} : i64}}>" if count > 1 else ""
        text = f"xegpu.load {name}[{at}], {mask}{chunk} : {kind}, index, i1 -> {typed(shape, element)}"
        if not held.all():
            loaded, to, zero = self.emit(text), typed(shape, element), literal(0, element)
            none = self.emit(f"arith.constant {f'dense<{zero}>' if shape else zero} : {to}")
            text = f"arith.select {mask}, {loaded}, {none} : {to}"
        self.keep(text, element, found)

    def store(self, value: Value) -> None:
        """Store the fragments of a block, or elements at an offset of each lane."""
        count = math.prod(value.shape)
        side = 2 if bit_width(value.element) == 8 else 1
        if (
            len(value.shape) == 1
            and count in (2, 4, 8, 16)
            and self.r.random() < 0.6
            and count % side == 0
            and count // side <= 8
        ):
            shape = (count // side, LANES * side)
            extent = (shape[0] * self.r.choice([1, 2]), 128)
            row, column = self.r.choice([0, extent[0] - shape[0]]), self.r.choice([0, 32, 128 - shape[1]])
            source = self.source(extent, value.element, "zeros")
            desc, kind = self.descriptor(source, shape, value.element, (row, column))
            block = value.array.reshape(LANES, -1, side).transpose(1, 0, 2).reshape(shape)
            source.array[row : row + shape[0], column : column + shape[1]] = block
            self.do(f"xegpu.store_nd {value.name}, {desc} : {value.type}, {kind}")
            return
        name = value.name
        if len(value.shape) > 1:
            name = self.emit(f"vector.shape_cast {name} : {value.type} to {vector_text((count,), value.element)}")
        memory, kind, array = self.line(LANES * count, value.element, "zeros")
        (at, first), (mask, held) = self.numbered(count), self.lanes_mask()
        array[(first[:, None] + np.arange(count))[held]] = value.array.reshape(LANES, count)[held]
        chunk = f" <{{chunk_size = {count} : i64}}>" if count > 1 else ""
        to = typed((count,) if value.shape else (), value.element)
        if value.shape and count == 1:
            name, to = self.emit(f"vector.extract {name}[0] : {value.element} from {to}"), value.element
        self.do(f"xegpu.store {name}, {memory}[{at}], {mask}{chunk} : {to}, {kind}, index, i1")

    def matrix(self) -> None:
        """Numbers of lanes by way of a row or column of a matrix in shared local memory."""
        value = self.pick(lambda v: v.shape == () or len(v.shape) == 1)
        if value is None:
            return
        count = math.prod(value.shape)
        size = LANES * count * bit_width(value.element) // 8
        buffer = self.emit(f"memref.alloca() : memref<{size}xi8, 3>")
        # A lane's vector lies side by side in memory.
        placed = self.r.choice(["", f", #xegpu.mem_layout<stride = [1, {LANES}]>"]) if count == 1 else ""
        kind = f"!xegpu.mem_desc<{LANES}x{count}x{value.element}{placed}>"
        desc = self.emit(f"xegpu.create_mem_desc {buffer} : memref<{size}xi8, 3> -> {kind}")
        self.do(f"xegpu.store_matrix {value.name}, {desc}[{self.lane}, 0] : {value.type}, {kind}, index")
        self.do("gpu.barrier")
        at, rows = self.numbered(1)
        text = f"xegpu.load_matrix {desc}[{at}, 0] : {kind}, index -> {value.type}"
        self.keep(text, value.element, value.array[rows])

    def cast(self) -> None:
        """A lane's elements in another shape."""
        value = self.pick(lambda v: len(v.shape) > 0)
        if value is None:
            return
        count = math.prod(value.shape)
        if len(value.shape) == 1 and count % 2 == 0:
            shape: Shape = self.r.choice([(count // 2, 2), (2, count // 2), (count, 1)])
        else:
            shape = (count,)
        self.reshaped(f"vector.shape_cast {value.name}", value, value.array.reshape(LANES, *shape))

    def transpose(self) -> None:
        """A lane's elements in another order."""
        value = self.pick(lambda v: len(v.shape) == 2)
        if value is not None:
            self.transposed(value, [1, 0])

    def broadcast(self) -> None:
        """A lane's number, repeated."""
        value = self.pick(lambda v: v.shape == ())
        if value is not None:
            array = np.repeat(value.array[:, None], self.r.choice([2, 4, 8]), 1)
            self.reshaped(f"vector.broadcast {value.name}", value, array)

    def part(self) -> None:
        """One of a lane's elements, or half of them."""
        value = self.pick(lambda v: len(v.shape) == 1)
        if value is None:
            return
        count = value.shape[0]
        at = self.r.randrange(count)
        if self.r.random() < 0.5 or count == 1:
            text = f"vector.extract {value.name}[{at}] : {value.element} from {value.type}"
            self.keep(text, value.element, value.array[:, at])
            return
        size = count // 2
        at = self.r.choice([0, count - size])
        pair = f"{{offsets = [{at}], sizes = [{size}], strides = [1]}}"
        self.reshaped(f"vector.extract_strided_slice {value.name} {pair}", value, value.array[:, at : at + size])

    def reduction(self) -> None:
        """The sum of a lane's elements."""
        value = self.pick(lambda v: len(v.shape) == 1)
        if value is None:
            return
        array = wrapped(value.array.sum(1) + 0, value.element)
        if array is None or wrapped(np.abs(value.array).sum(1), value.element) is None or not array.all():
            return
        self.keep(f"vector.reduction <add>, {value.name} : {value.type} into {value.element}", value.element, array)

    def constant(self) -> None:
        """Numbers that lanes compute of their own number."""
        number = self.emit(f"arith.index_cast {self.lane} : index to i32")
        self.keep(f"arith.muli {number}, {number} : i32", "i32", np.arange(LANES) ** 2)

    def update(self) -> None:
        """An atomic update of an element of each lane."""
        value = self.pick(lambda v: v.shape == () and v.element in ("i32", "f32"))
        if value is None:
            return
        name, kind, array = self.line(LANES, value.element, "small")
        (at, first), (mask, held) = self.numbered(1), self.lanes_mask()
        after = wrapped(numbers(array)[first] + value.array, value.element)
        if after is None or kind == "i64":
            return
        array[first[held]] = after[held]
        op = f"xegpu.atomic_rmw add{'f' if is_float(value.element) else 'i'} {name}[{at}], {mask}, {value.name}"
        self.emit(f"{op} : {kind}, index, i1, {value.type} -> {value.type}")

    def convert(self) -> None:
        """Nothing: lanes have no layouts."""

    def product(self) -> None:
        """The product of fragments."""
        pairs = [p for p in PRODUCTS if not set(p).isdisjoint(self.elements)]
        if not pairs:
            return
        element, out = self.r.choice(pairs)
        depth, rows = 256 // bit_width(element), self.r.choice([1, 2, 4, 8])
        a, b = self.factor((rows, depth), element), self.factor((depth, LANES), element, is_second=True)
        self.multiplied("dpas", a, b, out, a.array @ b.array)

    def scaled_product(self) -> None:
        """The product of fragments of block-scaled matrices: a lane has the scale of a row and that of its column."""
        element = self.r.choice(SCALED)
        k = 64 if element == E2M1.mlir else 32
        a, b = self.factor((8, k), element), self.factor((k, LANES), element, is_second=True)
        given = self.given_scales(element, (k // 32,), (k // 32,))
        left = a.array * (given["scale_a"].array[:8].repeat(32, 1) if "scale_a" in given else 1)
        right = b.array * (given["scale_b"].array.T.repeat(32, 0) if "scale_b" in given else 1)
        self.multiplied("dpas_mx", a, b, "f32", left @ right, given)

    def scales(self, shape: Shape, least: int) -> Value:
        """Scales of `least` and twice that, by the lane's number."""
        names, arrays = [], []
        for _ in range(shape[0]):
            stride, by_bits = self.r.choice([1, 3, 5]), self.r.randrange(3)
            arrays.append(np.arange(LANES) * stride >> by_bits & 1)
            shift, one, bias = (self.emit(f"arith.constant {n} : i8") for n in (by_bits, 1, 126 + least))
            number = self.emit(f"arith.index_cast {self.lane} : index to i8")
            number = self.emit(f"arith.muli {number}, {self.emit(f'arith.constant {stride} : i8')} : i8")
            low = self.emit(f"arith.andi {self.emit(f'arith.shrui {number}, {shift} : i8')}, {one} : i8")
            exponent = self.emit(f"arith.addi {low}, {bias} : i8")
            names.append(self.emit(f"arith.bitcast {exponent} : i8 to f8E8M0FNU"))
        kind = typed(shape, "f8E8M0FNU")
        name = self.emit(f"vector.from_elements {', '.join(names)} : {kind}")
        return Value(name, "f8E8M0FNU", least * 2.0 ** np.stack(arrays, 1), True)

    def unpacked(self, pairs: Value, is_second: bool) -> str:
        """The numbers in a lane's bytes of two, which follow each other in fragments of both factors."""
        count = pairs.array.size // LANES
        return self.emit(f"vector.bitcast {pairs.name} : vector<{count}xi8> to vector<{2 * count}x{E2M1.mlir}>")

    def factor(self, shape: Shape, element: str, is_second: bool = False) -> Value:
        """The fragments of a matrix that is loaded to be multiplied, which no other op uses; its array is all of it."""
        if element == E2M1.mlir:
            return self.pairs(shape, is_second)
        name, kind, array = self.argument((shape[0], 64), element)
        desc, kind = self.descriptor(Source(name, kind, "", array), shape, element, (0, 0))
        to = vector_text((math.prod(shape) // LANES,), element)
        how = " <{packed}>" if is_second else ""
        loaded = self.emit(f"xegpu.load_nd {desc}{how} : {kind} -> {to}")
        return Value(loaded, element, numbers(array)[:, : shape[1]])

    def multiplied(
        self, op: str, a: Value, b: Value, out: str, array: Array, scales: Mapping[str, Value] | None = None
    ) -> None:
        rows = len(array)
        acc = self.pick(
            lambda v: (
                v.shape == (rows,)
                and v.element == out
                and np.abs(v.array).min() > 0
                and np.abs(v.array).max() < 1 << 20
            )
        )
        given = {} if scales is None else scales
        words = [f", {acc.name}" if acc else "", *(f" {name} = {value.name}" for name, value in given.items())]
        to = vector_text((rows,), out)
        kinds = [typed((v.array.size // LANES,), v.element) for v in (a, b)]
        kinds += [to] * bool(acc) + [v.type for v in given.values()]
        types = ", ".join(kinds) if scales is None else f"({', '.join(kinds)})"
        found = self.fragments(array, "plain") + (acc.array if acc else 0)
        self.keep(f"xegpu.{op} {a.name}, {b.name}{''.join(words)} : {types} -> {to}", out, found)

    def condition(self) -> tuple[str, Array]:
        """A truth value of each lane."""
        return self.lanes_mask()


def random_kernel(r: Random, level: Level, released: bool = False) -> RandomKernel:
    """A kernel without ops yet."""
    return RandomLanes(r, released) if level == "lane" else RandomKernel(r, level, released)
