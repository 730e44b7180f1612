"""Random kernels in upstream's XeGPU, at workgroup and subgroup level, and what numpy says that they compute.

No comparison of engines can see an import error: all of them run what was imported. Each value is therefore computed in
numpy as its op is written. Floats are integers that no op rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py.bisection.upstream_stages import UpstreamLaunch
from xegpu_py.dialects.xegpu.upstream_types import Layout
from xegpu_py.ir.builtin import bit_width, by, is_float, vector_text
from xegpu_py.numerics.formats import E2M1, FLOATS, unpack_bytes
from xegpu_py.runtime.host_arrays import parse_argument
from xegpu_py.upstream.levels import LANES, Level

ELEMENTS = ("i32", "f32", "f16", "i16", "bf16", "i8")

_BOTH = ("xegpu.create_nd_tdesc", "xegpu.load_nd", "xegpu.store_nd", "xegpu.load", "xegpu.store", "xegpu.atomic_rmw",
         "xegpu.dpas", "xegpu.dpas_mx", "xegpu.load_matrix", "xegpu.store_matrix", "scf.if", "vector.shape_cast",
         "vector.broadcast", "vector.transpose", "vector.extract", "vector.extract_strided_slice")  # fmt: skip
_WHOLE = (*_BOTH, "xegpu.convert_layout", "vector.multi_reduction", "vector.insert_strided_slice")
_SCATTERED = ("xegpu.create_tdesc", "xegpu.update_offset")
WRITTEN = {"workgroup": _WHOLE, "subgroup": (*_WHOLE, *_SCATTERED), "lane": (*_BOTH, *_SCATTERED)}
"""The ops that programs of a level have, which are rows of the coverage table."""

PRODUCTS = (("f16", "f32"), ("bf16", "f32"), ("i8", "i32"))
SCALED = ("f8E5M2", "f8E4M3FN", E2M1.mlir)
"""The elements of products of block-scaled matrices, which are exact as well. Memory has two of 4 bits in a byte."""

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]


class Value(Struct, frozen=True):
    """An SSA value and what it is in numpy, int64 or float64.

    At lane level the array has one more dimension first: lanes.
    """

    name: str
    element: str
    array: Array
    of_lanes: bool = False

    @property
    def shape(self) -> Shape:
        """The shape of the vector; () for a number of a lane."""
        return tuple(self.array.shape[self.of_lanes :])

    @property
    def type(self) -> str:
        """MLIR's type."""
        return typed(self.shape, self.element)


class Source(Struct, frozen=True):
    """Where a block is: an SSA value, its type, what `create_nd_tdesc` is given besides, and the elements in numpy."""

    name: str
    type: str
    given: str
    array: Array
    lead: tuple[int, ...] = ()
    """Offsets of outer dimensions."""


def typed(shape: Sequence[int], element: str) -> str:
    """The type of a vector, or of a number if there are no dimensions."""
    return vector_text(shape, element) if len(shape) else element


def literal(number: int, element: str) -> str:
    """A number, as constants of an element spell it."""
    return f"{number}{'.0' if is_float(element) else ''}"


def wrapped(array: Array, element: str) -> Array | None:
    """Numbers as an element has them; None if a float would be rounded."""
    if is_float(element):
        return array if not array.size or np.abs(array).max() <= 1 << FLOATS[element].mantissa + 1 else None
    bits = bit_width(element)
    return (array.astype(np.int64) + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def numbers(array: Array) -> Array:
    """The elements of an array of any type, exactly."""
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def larger(a: Array, b: Array) -> Array:
    """The larger numbers; zeros of both signs give the positive one, as in `arith.maximumf`."""
    found: Array = np.maximum(a, b)
    return (
        np.where((found == 0) & ~(np.signbit(a) & np.signbit(b)), found * 0 + 0, found)
        if found.dtype == float
        else found
    )


class RandomProgram(Struct, frozen=True):
    """A kernel and a launch of it.

    Attributes:
        text: the module.
        words: the kernel's arguments, as `xegpu-run` reads them.
        subgroups: the number of subgroups of its workgroup, of which there is one.
        level: the level of the kernel.
        expected: the arguments after the kernel, as numpy computes them.
    """

    text: str
    words: tuple[str, ...]
    subgroups: int
    level: Level
    expected: tuple[Array, ...]

    def launch(self) -> UpstreamLaunch:
        """The launch of the kernel on new arrays."""
        arguments = [parse_argument(word) for word in self.words]
        return UpstreamLaunch(self.text, arguments, block=(LANES * self.subgroups,), level=self.level, words=self.words)


class RandomKernel:
    """A kernel of workgroups or subgroups under construction.

    Args:
        released: whether it has only what LLVM 22.1.8 reads, and each shape has one layout, which is what upstream's
            passes expect. Otherwise it has also what LLVM's main branch reads.
    """

    def __init__(self, r: Random, level: Level, released: bool = False) -> None:
        self.r, self.level, self.released = r, level, released
        self._layouts: dict[Shape, str] = {}
        self.lines: list[str] = []
        self.arguments: list[tuple[str, str, str]] = []
        self.expected: list[Array] = []
        self.values: list[Value] = []
        self.subgroups = r.choice([1, 2, 4]) if level == "workgroup" else 1
        self.names = 0
        self.elements: tuple[str, ...] = ELEMENTS

    # Text.

    def emit(self, text: str, results: int = 1) -> str:
        """An op, whose result's name is returned."""
        self.names += 1
        self.lines.append(f"%v{self.names}{f':{results}' * (results > 1)} = {text}")
        return f"%v{self.names}"

    def do(self, text: str) -> None:
        """An op without a result."""
        self.lines.append(text)

    def keep(self, text: str, element: str, array: Array) -> Value:
        """An op whose result later ops may use."""
        value = Value(self.emit(text), element, array, self.level == "lane")
        self.values.append(value)
        return value

    def reshaped(self, op: str, value: Value, array: Array) -> Value:
        """An op that gives elements of a value in another shape."""
        to = typed(array.shape[value.of_lanes :], value.element)
        return self.keep(f"{op} : {value.type} to {to}", value.element, array)

    def index(self, number: int) -> str:
        """A constant offset, as a number or as a value."""
        return str(number) if self.r.random() < 0.7 else self.emit(f"arith.constant {number} : index")

    def argument(self, shape: Shape, element: str, fill: str = "small") -> tuple[str, str, Array]:
        """A new argument: its name, its type and its array."""
        name, kind = f"%a{len(self.arguments)}", f"memref<{by(shape)}x{element}>"
        seed = f":seed={self.r.randrange(1000)}" if fill == "small" else ""
        word = f"{fill}:{element}:{by(shape)}{seed}"
        self.arguments.append((name, kind, word))
        self.expected.append(parse_argument(word))
        return name, kind, self.expected[-1]

    def layout(self, shape: Shape) -> str:
        """A layout of a vector for the kernel's subgroups, or for the lanes of one."""
        if not self.released:
            return self._new_layout(shape)
        return self._layouts.setdefault(shape, self._new_layout(shape))

    def _new_layout(self, shape: Shape) -> str:
        if self.level == "subgroup":
            lanes = [1] * (len(shape) - 1) + [LANES]
            return f"#xegpu.layout<lane_layout = {lanes}, lane_data = {[1] * len(shape)}>"
        # Upstream refuses layouts that do not divide equally; few shapes have none that does.
        for _ in range(20):
            grid, left = [], self.subgroups
            for n in shape:
                fits = [d for d in range(1, left + 1) if left % d == 0 and n % d == 0]
                grid.append(self.r.choice(fits))
                left //= grid[-1]
            grid[-1] *= left
            data = [max(1, n // g) for n, g in zip(shape, grid)]
            if self.r.random() < 0.2:
                data = [d // 2 if d % 2 == 0 else d for d in data]
            if Layout(sg_layout=tuple(grid), sg_data=tuple(data)).distributes(shape):
                break
        parts = [f"sg_layout = {grid}", f"sg_data = {data}"]
        if self.r.random() < 0.2:
            parts.append(f"order = {self.r.sample(range(len(shape)), len(shape))}")
        return f"#xegpu.layout<{', '.join(parts)}>"

    def properties(self, shape: Shape, likely: float = 0.5) -> str:
        """The properties of an op on a vector: perhaps a layout."""
        return f" <{{layout = {self.layout(shape)}}}>" if self.r.random() < likely and self.divides(shape) else ""

    def divides(self, shape: Shape) -> bool:
        """Whether `layout` divides a shape equally; lanes have no layouts."""
        return self.level == "workgroup" or (self.level == "subgroup" and shape[-1] % LANES == 0)

    # Memory.

    def shape(self, rank: int | None = None) -> Shape:
        """The shape of a block; its last dimension is at least 64 bytes of any element."""
        rank = rank or self.r.choice([2, 2, 2, 1] if self.released else [2, 2, 2, 1, 3])
        return (
            *([self.r.choice([2, 4])] if rank == 3 else []),
            *[self.r.choice([8, 16, 32])] * (rank > 1),
            self.r.choice([64, 32] if rank > 1 else [64, 128]),
        )

    def source(self, shape: Shape, element: str, fill: str = "small") -> Source:
        """Memory of an extent, as an argument, a view of one, an address, or a part of one of more dimensions."""
        way = self.r.choice(["whole", "view", "address", "dynamic", *([] if self.released else ["outer"])])
        if way == "view":
            pad = [self.r.choice([0, 8]) for _ in shape[:-1]] + [self.r.choice([0, 64])]
            name, kind, array = self.argument(tuple(n + 2 * p for n, p in zip(shape, pad)), element, fill)
            strides = [s // array.itemsize for s in array.strides]
            offset = sum(s * p for s, p in zip(strides, pad))
            to = f"memref<{by(shape)}x{element}, strided<{strides}, offset: {offset}>>"
            ones = [1] * len(shape)
            name = self.emit(f"memref.subview {name}{pad} {list(shape)} {ones} : {kind} to {to}")
            return Source(name, to, "", array[tuple(slice(p, p + n) for p, n in zip(pad, shape))])
        if way == "outer" and len(shape) < 4:
            outer = [3, 2][: self.r.randrange(1, 5 - len(shape))]
            name, kind, array = self.argument((*outer, *shape), element, fill)
            at = tuple(self.r.randrange(n) for n in outer)
            return Source(name, kind, "", array[at], at)
        name, kind, array = self.argument(shape, element, fill)
        strides = [s // array.itemsize for s in array.strides]
        given = f", shape : {list(shape)}, strides : {strides}"
        if way == "address":
            place = self.emit(f"memref.extract_aligned_pointer_as_index {name} : {kind} -> index")
            return Source(self.emit(f"arith.index_cast {place} : index to i64"), "i64", given, array)
        if way == "dynamic":
            to = f"memref<{'x'.join('?' * len(shape))}x{element}>"
            return Source(self.emit(f"memref.cast {name} : {kind} to {to}"), to, given, array)
        return Source(name, kind, "", array)

    def descriptor(self, source: Source, shape: Shape, element: str, offsets: Sequence[int]) -> tuple[str, str]:
        """A descriptor of a block of memory with its offsets, as an op has them, and its type.

        Offsets of more dimensions than the block has are those of the descriptor.
        """
        layout = f", {self.layout(shape)}" if self.r.random() < 0.3 and self.divides(shape) else ""
        kind = f"!xegpu.tensor_desc<{by(shape)}x{element}{layout}>"
        at = f"[{', '.join(map(self.index, (*source.lead, *offsets)))}]"
        own, there = (at, "") if source.lead else ("", at)
        made = self.emit(f"xegpu.create_nd_tdesc {source.name}{own}{source.given} : {source.type} -> {kind}")
        return f"{made}{there}", kind

    def around(self, shape: Shape) -> tuple[Shape, list[int]]:
        """An extent of memory, and the offsets there of a block, which may reach over edges if it has several rows."""
        extent = tuple(n * self.r.choice([1, 1, 2]) for n in shape)
        offsets = [self.r.choice([0, n // 2, e - n]) for n, e in zip(shape, extent)]
        return extent, offsets if len(shape) > 1 else [min(offsets[0], extent[0] - shape[0])]

    def load(self) -> None:
        """A block, which may reach over the edges of its memory."""
        element, shape = self.r.choice(self.elements), self.shape()
        extent, offsets = self.around(shape)
        source = self.source(extent, element)
        desc, kind = self.descriptor(source, shape, element, offsets)
        padded = np.pad(numbers(source.array), [(0, n) for n in shape])
        array = padded[tuple(slice(o, o + n) for o, n in zip(offsets, shape))]
        where, to = self.properties(shape), vector_text(shape, element)
        self.keep(f"xegpu.load_nd {desc}{where} : {kind} -> {to}", element, array)

    def store(self, value: Value) -> None:
        """Store a vector as a block, or element by element."""
        if (
            len(value.shape) in ((1, 2) if self.released else (1, 2, 3))
            and value.shape[-1] >= 16
            and value.shape[-1] * bit_width(value.element) >= 512
        ):
            self.store_block(value)
        else:
            self.scatter(value)

    def store_block(self, value: Value) -> None:
        """Store a vector as a block; what reaches over an edge is dropped."""
        extent, offsets = self.around(value.shape)
        source = self.source(extent, value.element, "zeros")
        desc, kind = self.descriptor(source, value.shape, value.element, offsets)
        held = source.array[tuple(slice(o, o + n) for o, n in zip(offsets, value.shape))]
        held[...] = value.array[tuple(slice(0, n) for n in held.shape)]
        where = self.properties(value.shape, 1)
        self.do(f"xegpu.store_nd {value.name}, {desc}{where} : {value.type}, {kind}")

    def places(self, shape: Shape) -> tuple[str, Array]:
        """Offsets in memory of as many elements: each has one of its own."""
        count = math.prod(shape)
        line = self.emit(f"vector.step : vector<{count}xindex>")
        at = np.arange(count)
        if self.r.random() < 0.4 and not (self.released and self.level == "workgroup"):
            most = self.emit(f"arith.constant dense<{count - 1}> : vector<{count}xindex>")
            line, at = self.emit(f"arith.subi {most}, {line} : vector<{count}xindex>"), count - 1 - at
        if len(shape) > 1:
            line = self.emit(f"vector.shape_cast {line} : vector<{count}xindex> to {vector_text(shape, 'index')}")
        return line, at.reshape(shape)

    def mask(self, shape: Shape) -> tuple[str, Array]:
        """A mask, of all elements or of some."""
        kind = vector_text(shape, "i1")
        if self.r.random() < 0.6:
            return self.emit(f"arith.constant dense<true> : {kind}"), np.ones(shape, bool)
        line, at = self.places(shape)
        limit = self.r.randrange(math.prod(shape) + 1)
        bound = self.emit(f"arith.constant dense<{limit}> : {vector_text(shape, 'index')}")
        return self.emit(f"arith.cmpi ult, {line}, {bound} : {vector_text(shape, 'index')}"), at < limit

    def gather(self) -> None:
        """Elements at an offset each; those that are masked off become zero by a selection."""
        element, shape = self.r.choice(self.elements), self.shape()
        name, kind, array = self.argument((math.prod(shape),), element)
        (line, at), (mask, held) = self.places(shape), self.mask(shape)
        types = f"{kind}, {vector_text(shape, 'index')}, {vector_text(shape, 'i1')} -> {vector_text(shape, element)}"
        found = self.emit(f"xegpu.load {name}[{line}], {mask}{self.properties(shape)} : {types}")
        zero = self.emit(f"arith.constant dense<{literal(0, element)}> : {vector_text(shape, element)}")
        kinds = f"{vector_text(shape, 'i1')}, {vector_text(shape, element)}"
        self.keep(f"arith.select {mask}, {found}, {zero} : {kinds}", element, np.where(held, numbers(array)[at], 0))

    def scatter(self, value: Value) -> None:
        """Store elements at an offset each."""
        name, kind, array = self.argument((math.prod(value.shape),), value.element, "zeros")
        (line, at), (mask, held) = self.places(value.shape), self.mask(value.shape)
        array[at[held]] = value.array[held]
        types = f"{value.type}, {kind}, {vector_text(value.shape, 'index')}, {vector_text(value.shape, 'i1')}"
        self.do(f"xegpu.store {value.name}, {name}[{line}], {mask}{self.properties(value.shape, 1)} : {types}")

    def matrix(self) -> None:
        """A vector by way of a matrix in shared local memory."""
        value = self.pick(lambda v: len(v.shape) == 2)
        if value is None:
            return
        size = math.prod(value.shape) * bit_width(value.element) // 8
        buffer = self.emit(f"memref.alloca() : memref<{size}xi8, 3>")
        rows, columns = value.shape
        placed = self.r.choice(
            ["", f", #xegpu.mem_layout<stride = [1, {rows}]>", ", #xegpu.mem_layout<block = [8, 16]>"]
        )
        if columns % 16 or rows % 8:
            placed = ""
        kind = f"!xegpu.mem_desc<{by(value.shape)}x{value.element}{placed}>"
        desc = self.emit(f"xegpu.create_mem_desc {buffer} : memref<{size}xi8, 3> -> {kind}")
        self.do(f"xegpu.store_matrix {value.name}, {desc}[0, 0]{self.properties(value.shape)} : {value.type}, {kind}")
        self.do("gpu.barrier")
        part = (rows // self.r.choice([1, 2]), columns) if rows % 16 == 0 else value.shape
        first = self.r.choice([0, rows - part[0]])
        to = vector_text(part, value.element)
        text = f"xegpu.load_matrix {desc}[{first}, 0]{self.properties(part)} : {kind} -> {to}"
        self.keep(text, value.element, value.array[first : first + part[0]])

    # Vectors.

    def pick(self, fits: Callable[[Value], bool]) -> Value | None:
        """A value that fits, mostly one of the last; None if there is none."""
        return self.last(found) if (found := [v for v in self.values if fits(v)]) else None

    def last(self, values: Sequence[Value] = ()) -> Value:
        """One of some values, or of all, mostly one of the last."""
        found = values or self.values
        return found[-1 - min(self.r.randrange(len(found)), self.r.randrange(len(found)))]

    def like(self, value: Value) -> Value:
        """A value of the same type, perhaps the same one."""
        return self.last([v for v in self.values if v.type == value.type])

    def arithmetic(self) -> None:
        """An op on elements of two vectors of one shape."""
        a = self.last()
        b = self.like(a)
        ops: dict[str, Callable[[Array, Array], Array]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
        name = self.r.choice([*ops, "max"])
        array = wrapped(ops.get(name, larger)(a.array, b.array), a.element)
        if array is None:
            return
        suffix = "f" if is_float(a.element) else "i"
        op = f"arith.{name}{suffix}" if name != "max" else f"arith.max{'imumf' if suffix == 'f' else 'si'}"
        self.keep(f"{op} {a.name}, {b.name} : {a.type}", a.element, array)

    def cast(self) -> None:
        """The elements in another shape: some dimensions become one, or one becomes two, or gets a neighbour of 1."""
        value = self.last()
        shape, way = list(value.shape), self.r.choice(["join", "split", "unit", "unit"])
        at = self.r.randrange(len(shape))
        if way == "join" and len(shape) > 1:
            at = min(at, len(shape) - 2)
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        elif way == "split" and shape[at] % 4 == 0 and len(shape) < 4:
            shape[at : at + 1] = [shape[at] // 4, 4] if self.r.random() < 0.5 else [2, shape[at] // 2]
        elif 1 in shape and self.r.random() < 0.5 and len(shape) > 1:
            shape.remove(1)
        elif len(shape) < 4:
            shape.insert(self.r.randrange(len(shape) + 1), 1)
        else:
            return
        self.reshaped(f"vector.shape_cast {value.name}", value, value.array.reshape(shape))

    def broadcast(self) -> None:
        """A vector repeated along a unit or a new dimension."""
        value = self.pick(lambda v: v.array.size <= 1024)
        if value is None:
            return
        shape = list(value.shape)
        if 1 in shape and self.r.random() < 0.6:
            at = self.r.choice([i for i, n in enumerate(shape) if n == 1])
            shape[at] = self.r.choice([16, 32, 4])
        if len(shape) < 4 and (shape == list(value.shape) or self.r.random() < 0.3):
            shape.insert(0, self.r.choice([1, 4, 32]))
        if math.prod(shape) > 4096 or shape == list(value.shape):
            return
        self.reshaped(f"vector.broadcast {value.name}", value, np.broadcast_to(value.array, shape))

    def transpose(self) -> None:
        """The dimensions in another order."""
        value = self.pick(lambda v: len(v.shape) > 1)
        if value is None:
            return
        order = self.r.sample(range(len(value.shape)), len(value.shape))
        if self.r.random() < 0.5:
            order = list(range(len(order)))
            order[-2:] = order[:-3:-1]
        self.transposed(value, order)

    def transposed(self, value: Value, order: Sequence[int]) -> None:
        """The dimensions of a vector in an order."""
        lanes = range(value.of_lanes)
        array = value.array.transpose([*lanes, *(i + value.of_lanes for i in order)])
        self.reshaped(f"vector.transpose {value.name}, {order}", value, array)

    def reduction(self) -> None:
        """A sum or a largest number along some dimensions."""
        value = self.last()
        rank = len(value.shape)
        dims = tuple(sorted(self.r.sample(range(rank), self.r.randrange(1, rank + 1))))
        start, suffix = self.r.choice([0, 3]), ".0" if is_float(value.element) else ""
        if self.r.random() < 0.6:
            kind, array = "add", value.array.sum(dims) + start
            fits = not suffix or wrapped(np.abs(value.array).sum(dims) + start, value.element) is not None
        else:
            kind, array = "maximumf" if suffix else "maxsi", np.maximum(value.array.max(dims), start) + 0
            fits = True
        found = wrapped(array, value.element)
        if found is None or not fits:
            return
        to = typed(found.shape, value.element)
        acc = self.emit(f"arith.constant {f'dense<{start}{suffix}>' if found.shape else f'{start}{suffix}'} : {to}")
        text = f"vector.multi_reduction <{kind}>, {value.name}, {acc} {list(dims)} : {value.type} to {to}"
        self.keep_wide(text, value.element, found)

    def part(self) -> None:
        """A slice of a vector, which may be put into another place, or what is at an index of outer dimensions."""
        value = self.last()
        if self.r.random() < 0.4:
            depth = self.r.randrange(1, len(value.shape) + 1)
            at = [self.r.randrange(n) for n in value.shape[:depth]]
            left = value.array[tuple(at)]
            text = f"vector.extract {value.name}{at} : {typed(left.shape, value.element)} from {value.type}"
            self.keep_wide(text, value.element, left)
            return
        sizes = [self.r.choice([n, max(n // 2, 1)]) for n in value.shape]
        at = [self.r.choice([0, n - size, (n - size) // 2]) for n, size in zip(value.shape, sizes)]
        ones = [1] * len(sizes)
        array = value.array[tuple(slice(a, a + n) for a, n in zip(at, sizes))]
        pair = f"{{offsets = {at}, sizes = {sizes}, strides = {ones}}}"
        made = self.reshaped(f"vector.extract_strided_slice {value.name} {pair}", value, array)
        if self.r.random() < 0.3:
            there = [self.r.choice([0, n - size, (n - size) // 2]) for n, size in zip(value.shape, sizes)]
            array = value.array.copy()
            array[tuple(slice(a, a + n) for a, n in zip(there, sizes))] = made.array
            pair = f"{{offsets = {there}, strides = {ones}}}"
            text = f"vector.insert_strided_slice {made.name}, {value.name} {pair} : {made.type} into {value.type}"
            self.keep(text, value.element, array)

    def keep_wide(self, text: str, element: str, array: Array) -> None:
        """An op whose result later ops may use, as a vector if it is a number."""
        if not array.shape:
            name, shape = self.emit(text), self.shape(2)
            text = f"vector.broadcast {name} : {element} to {vector_text(shape, element)}"
            array = np.full(shape, array)
        self.keep(text, element, array)

    def choice(self) -> None:
        """The larger of two vectors by a comparison and a selection."""
        a = self.last()
        b = self.like(a)
        op = "arith.cmpf olt" if is_float(a.element) else "arith.cmpi slt"
        less = self.emit(f"{op}, {a.name}, {b.name} : {a.type}")
        kinds = f"{typed(a.shape, 'i1')}, {a.type}"
        array = np.where(a.array < b.array, b.array, a.array)
        self.keep(f"arith.select {less}, {b.name}, {a.name} : {kinds}", a.element, array)

    def widened(self) -> None:
        """A vector with elements of another type."""
        value = self.last()
        wide = {"i8": "i32", "i16": "i32", "f16": "f32", "bf16": "f32", "i32": "f32", "f32": "i32"}[value.element]
        op = {"i8": "extsi", "i16": "extsi", "i32": "sitofp", "f32": "fptosi"}.get(value.element, "extf")
        array = value.array.astype(float if is_float(wide) else np.int64)
        if wrapped(array, wide) is not None and np.abs(array).max() < 1 << 24:
            to = typed(value.shape, wide)
            self.keep(f"arith.{op} {value.name} : {value.type} to {to}", wide, array)

    def update(self) -> None:
        """Atomic updates of an element each, and the elements before."""
        value = self.pick(lambda v: v.element in ("i32", "f32") and v.array.size <= 1024)
        if value is None:
            return
        name, kind, array = self.argument((value.array.size,), value.element)
        (line, at), (mask, held) = self.places(value.shape), self.mask(value.shape)
        before = numbers(array)[at]
        after = wrapped(before + value.array, value.element)
        if after is None:
            return
        array[at[held]] = after[held]
        i, i1 = (vector_text(value.shape, e) for e in ("index", "i1"))
        op = f"xegpu.atomic_rmw add{'f' if is_float(value.element) else 'i'} {name}[{line}], {mask}, {value.name}"
        found = self.emit(f"{op} : {kind}, {i}, {i1}, {value.type} -> {value.type}")
        text = f"arith.select {mask}, {found}, {value.name} : {i1}, {value.type}"
        self.keep(text, value.element, np.where(held, before, value.array))

    def constant(self) -> None:
        """A vector of one number, or of several."""
        element, shape = self.r.choice(self.elements), self.shape()
        number = self.r.randrange(-3, 4)
        kind = np.float64 if is_float(element) else np.int64
        if self.r.random() < 0.7:
            array, text = np.full(shape, number, kind), literal(number, element)
        else:
            shape = (self.r.choice([16, 32]),)
            array = (np.arange(shape[0]) % 5 + number).astype(kind)
            text = f"[{', '.join(literal(int(n), element) for n in array)}]"
        self.keep(f"arith.constant dense<{text}> : {vector_text(shape, element)}", element, array)

    def convert(self) -> None:
        """The same vector in another layout."""
        value = self.last()
        if len(value.shape) <= 3 and self.divides(value.shape):
            pair = f"input_layout = {self.layout(value.shape)}, target_layout = {self.layout(value.shape)}"
            self.keep(f"xegpu.convert_layout {value.name} <{{{pair}}}> : {value.type}", value.element, value.array)

    def loop(self) -> None:
        """A loop that carries a vector."""
        value = self.last()
        added = self.like(value)
        times = self.r.randrange(1, 4)
        array = wrapped(value.array + times * added.array, value.element)
        if array is None or wrapped(np.abs(value.array) + times * np.abs(added.array), value.element) is None:
            return
        zero, one, end = (self.emit(f"arith.constant {n} : index") for n in (0, 1, times))
        suffix = "f" if is_float(value.element) else "i"
        head = f"scf.for %i = {zero} to {end} step {one} iter_args(%x = {value.name}) -> ({value.type}) {{"
        result = self.emit(head)
        self.do(f"  %y = arith.add{suffix} %x, {added.name} : {value.type}")
        self.do(f"  scf.yield %y : {value.type}")
        self.do("}")
        self.values.append(Value(result, value.element, array, value.of_lanes))

    def branch(self) -> None:
        """One of two vectors, by a condition that is known when the kernel runs."""
        value = self.last()
        other = self.like(value)
        array = wrapped(value.array + other.array, value.element)
        if array is None:
            return
        condition, holds = self.condition()
        result = self.emit(f"scf.if {condition} -> ({value.type}) {{")
        self.do(f"  %y = arith.add{'f' if is_float(value.element) else 'i'} {value.name}, {other.name} : {value.type}")
        self.do(f"  scf.yield %y : {value.type}")
        self.do("} else {")
        self.do(f"  scf.yield {other.name} : {value.type}")
        self.do("}")
        held = holds.reshape(holds.shape + (1,) * (array.ndim - holds.ndim))
        self.values.append(Value(result, value.element, np.where(held, array, other.array), value.of_lanes))

    def condition(self) -> tuple[str, Array]:
        """A truth value of the workgroup."""
        block, number = self.emit("gpu.block_id x"), self.r.randrange(2)
        other = self.emit(f"arith.constant {number} : index")
        return self.emit(f"arith.cmpi eq, {block}, {other} : index"), np.array(number == 0)

    def product(self) -> None:
        """A product of two matrices, plus one."""
        pairs = [p for p in PRODUCTS if not set(p).isdisjoint(self.elements)]
        if not pairs:
            return
        element, out = self.r.choice(pairs)
        m, n, k = (8, 16, 256 // bit_width(element)) if self.level == "subgroup" else (32, 32, 32)
        a, b = (self.factor(shape, element) for shape in ((m, k), (k, n)))
        self.multiplied("dpas", a, b, out, a.array @ b.array)

    def scaled_product(self) -> None:
        """A product of two block-scaled matrices, plus one."""
        element = self.r.choice(SCALED)
        k = 64 if element == E2M1.mlir else 32
        m, n, k = (8, 16, k) if self.level == "subgroup" else (32, 32, self.r.choice([k, 64]))
        a, b = self.factor((m, k), element), self.factor((k, n), element, is_second=True)
        given = self.given_scales(element, (m, k // 32), (k // 32, n))
        left = a.array * (given["scale_a"].array.repeat(32, 1) if "scale_a" in given else 1)
        right = b.array * (given["scale_b"].array.repeat(32, 0) if "scale_b" in given else 1)
        self.multiplied("dpas_mx", a, b, "f32", left @ right, given)

    def given_scales(self, element: str, of_a: Shape, of_b: Shape) -> dict[str, Value]:
        """The scales that a product of an element is given. Those of 4 bits make integers of halves."""
        least = 2 if element == E2M1.mlir else 1
        shapes = {"scale_a": of_a, "scale_b": of_b}
        return {name: self.scales(shape, least) for name, shape in shapes.items() if least > 1 or self.r.random() < 0.8}

    def factor(self, shape: Shape, element: str, is_second: bool = False) -> Value:
        """A matrix that is loaded to be multiplied, which no other op uses."""
        if element == E2M1.mlir:
            return self.pairs(shape, is_second)
        name, kind, array = self.argument((shape[0], max(shape[1], 64)), element)
        source = Source(name, kind, "", array)
        desc, kind = self.descriptor(source, shape, element, (0, 0))
        to = vector_text(shape, element)
        loaded = self.emit(f"xegpu.load_nd {desc}{self.properties(shape, 0.2)} : {kind} -> {to}")
        return Value(loaded, element, numbers(array)[: shape[0], : shape[1]])

    def pairs(self, shape: Shape, is_second: bool) -> Value:
        """A factor of numbers of 4 bits: bytes of two, adjacent along the dimension that is summed over."""
        rows, columns = (shape[0] // 2, shape[1]) if is_second else (shape[0], shape[1] // 2)
        bytes_ = self.factor((rows, columns), "i8", is_second)
        array = unpack_bytes(bytes_.array.astype(np.uint8), 4).view(E2M1.dtype).astype(np.float64)
        if is_second:
            array = array.reshape(rows, columns, 2).swapaxes(1, 2)
        return Value(self.unpacked(bytes_, is_second), E2M1.mlir, array.reshape(shape))

    def unpacked(self, pairs: Value, is_second: bool) -> str:
        """The numbers in bytes of two; those of the second factor belong into two rows."""
        rows, columns = pairs.shape
        both, one, across, joined, whole = (
            typed(shape, E2M1.mlir)
            for shape in (
                (rows, 2 * columns), (rows, columns), (columns, rows), (columns, 2 * rows), (2 * rows, columns)
            )
        )  # fmt: skip
        name = self.emit(f"vector.bitcast {pairs.name} : {pairs.type} to {both}")
        if not is_second:
            return name
        halves = self.emit(f"vector.deinterleave {name} : {both} -> {one}", 2)
        transposed = [self.emit(f"vector.transpose {halves}#{i}, [1, 0] : {one} to {across}") for i in range(2)]
        name = self.emit(f"vector.interleave {', '.join(transposed)} : {across} -> {joined}")
        return self.emit(f"vector.transpose {name}, [1, 0] : {joined} to {whole}")

    def scales(self, shape: Shape, least: int) -> Value:
        """Scales of `least` and twice that: the exponents of bytes that are loaded."""
        bytes_ = self.factor(shape, "i8")
        one, bias = (self.emit(f"arith.constant dense<{n}> : {bytes_.type}") for n in (1, 126 + least))
        low = self.emit(f"arith.andi {bytes_.name}, {one} : {bytes_.type}")
        exponents = self.emit(f"arith.addi {low}, {bias} : {bytes_.type}")
        to = vector_text(shape, "f8E8M0FNU")
        name = self.emit(f"arith.bitcast {exponents} : {bytes_.type} to {to}")
        return Value(name, "f8E8M0FNU", least * 2.0 ** (bytes_.array & 1))

    def multiplied(
        self, op: str, a: Value, b: Value, out: str, array: Array, scales: Mapping[str, Value] | None = None
    ) -> None:
        """A product of matrices, and perhaps a value that is added to it, of which no sum is rounded."""
        (m, k), n = a.shape, b.shape[1]
        acc = self.pick(
            lambda v: (
                v.shape == (m, n) and v.element == out and np.abs(v.array).min() > 0 and np.abs(v.array).max() < 1 << 20
            )
        )
        attrs, more = "", f", {acc.name}" if acc else ""
        if self.level == "workgroup":
            given = [("layout_a", (m, k)), ("layout_b", (k, n))] if self.released else []
            given.append(("layout_cd", (m, n)))
            attrs = f" {{{', '.join(f'{name} = {self.layout(shape)}' for name, shape in given)}}}"
        types, to = ", ".join(v.type for v in (a, b, *([acc] if acc else ()))), vector_text((m, n), out)
        if scales is not None:
            more += "".join(f" {name} = {value.name}" for name, value in scales.items())
            types = f"({', '.join([types, *(v.type for v in scales.values())])})"
        found = wrapped(array + (acc.array if acc else 0), out)
        assert found is not None
        self.keep(f"xegpu.{op} {a.name}, {b.name}{more}{attrs} : {types} -> {to}", out, found)

    def scattered(self) -> None:
        """Elements at the offsets of a scattered descriptor, which may be moved, and the same elements stored so."""
        if self.level == "workgroup":
            return
        element, count = self.r.choice(self.elements), self.r.choice([1, 2, 4, 8])
        count = max(count, 32 // bit_width(element)) if count > 1 else 1
        moved = self.r.choice([0, 8])
        at = self.r.choice([np.arange(LANES), np.arange(LANES)[::-1]]) * count
        index = f"vector<{LANES}xindex>"
        line, (mask, held) = self.emit(f"arith.constant dense<{at.tolist()}> : {index}"), self.mask((LANES,))
        each = (at[:, None] + np.arange(count) + moved).reshape(LANES, *([count] if count > 1 else []))
        desc = f"!xegpu.tensor_desc<{by(each.shape)}x{element}, #xegpu.scatter_tdesc_attr<chunk_size = {count}>>"
        (name, kind, array), (to, _, left) = (
            self.argument((LANES * count + moved,), element, fill) for fill in ("small", "zeros")
        )
        made = []
        for memory in (name, to):
            made.append(self.emit(f"xegpu.create_tdesc {memory}, {line} : {kind}, {index} -> {desc}"))
            if moved:
                step = self.emit(f"arith.constant dense<{moved}> : {index}")
                made[-1] = self.emit(f"xegpu.update_offset {made[-1]}, {step} : {desc}, {index}")
        if self.level == "lane":
            # A lane has its own chunk, also of one element.
            each = each.reshape(LANES, count)
        vector, truth = typed(each.shape[self.level == "lane" :], element), f"vector<{LANES}xi1>"
        loaded = self.emit(f"xegpu.load {made[0]}, {mask} : {desc}, {truth} -> {vector}")
        self.do(f"xegpu.store {loaded}, {made[1]}, {mask} : {vector}, {desc}, {truth}")
        left[each[held]] = array[each[held]]
        if held.all():
            self.values.append(Value(loaded, element, numbers(array)[each], self.level == "lane"))

    def statement(self) -> None:
        """A random op."""
        loads = [self.load, self.load, self.gather, self.constant]
        if not self.values:
            self.r.choice(loads)()
            return
        others = [self.arithmetic, self.cast, self.broadcast, self.transpose, self.reduction, self.convert, self.loop]
        others += [self.part, self.choice, self.widened]
        rare = [self.matrix, self.product]
        if not self.released:
            rare += [self.update, self.branch, self.scattered, self.scaled_product]
        self.r.choice([*loads, *others, *others, *others, *rare])()

    def program(self, length: int | None = None) -> RandomProgram:
        """The program: its ops, and stores of the last value and some others."""
        for _ in range(length or self.r.choice([1, 3, 6, 10, 14])):
            self.statement()
        while not self.values:
            self.load()
        self.store(self.values[-1])
        for value in self.values[:-1]:
            if self.r.random() < 0.2:
                self.store(value)
        arguments = ", ".join(f"{name}: {kind}" for name, kind, _ in self.arguments)
        body = "".join(f"    {line}\n" for line in self.lines)
        text = f"gpu.module @k {{\n  gpu.func @f({arguments}) kernel {{\n{body}    gpu.return\n  }}\n}}\n"
        words = tuple(word for _, _, word in self.arguments)
        return RandomProgram(text, words, self.subgroups, self.level, tuple(self.expected))
