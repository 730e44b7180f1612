"""Random kernels of subgroups: tensors, block loads and stores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random

from xegpu_py.ir.builtin import bit_width, by, vector_text
from xegpu_py.target import TARGETS

from . import vectors
from .body import Body, Value, attributes, dtype_of, filled
from .ops import NARROW, NUMBERS, STORED
from .views import view

ROWS = (1, 2, 3, 4, 5, 8, 16, 17, 32)
COLUMNS = (1, 2, 3, 4, 5, 8, 16, 24, 32, 64)


def spread(r: Random, count: int) -> tuple[int, ...]:
    """A grid or block of so many, mostly of one dimension."""
    if r.random() >= 0.25:
        return (count,)
    factor = r.choice([n for n in (1, 2, 3, 4, 5, 8) if count % n == 0])
    return r.choice([(1, count), (factor, count // factor), (1, 1, count), (factor, 1, count // factor)])


@dataclass(frozen=True)
class Matrix:
    """A tensor in memory.

    Attributes:
        source: what create_nd_tdesc takes: a memref, or an address.
        given: the shape and strides as they follow the offsets; nothing if the memref says them.
    """

    source: str
    kind: str
    shape: tuple[int, ...]
    element: str
    given: str = ""
    small: bool = False


@dataclass(frozen=True)
class Desc:
    """A descriptor and where it is: the first element of its block, or None if lanes have addresses of their own."""

    name: str
    type: str
    shape: tuple[int, ...]
    element: str
    small: bool = False


class Blocks(Body):
    """A kernel of `threads` subgroups, of which each has its number in `%tid`."""

    def __init__(self, r: Random, target: str, grid: int, block: int) -> None:
        super().__init__(r, target)
        self.gpu, self.threads, self.grid, self.block = TARGETS[target], grid * block, grid, block
        self.grid_size, self.block_size = spread(r, grid), spread(r, block)
        self.tid, self.local = self._ids()
        self.inputs: list[Matrix] = []
        self.ragged = 0.15

    def _ids(self) -> tuple[str, str]:
        x = self.number("thread_id", self.block_size)
        if len(self.grid_size) == len(self.block_size) == 1 and self.r.random() < 0.3:
            return self.op("gpu.global_id x", (), "index").name, x
        group = self.number("block_id", self.grid_size)
        size = self.index(self.block) if len(self.block_size) > 1 else self.op("gpu.block_dim x", (), "index").name
        first = self.op(f"arith.muli {group}, {size} : index", (), "index").name
        return self.op(f"arith.addi {first}, {x} : index", (), "index").name, x

    def number(self, op: str, size: tuple[int, ...]) -> str:
        """The number of a work item or workgroup, x fastest."""
        found = ""
        for dim, extent in list(zip("xyz", size))[::-1]:
            at = self.op(f"gpu.{op} {dim}", (), "index").name
            if found:
                rest = self.op(f"arith.muli {found}, {self.index(extent)} : index", (), "index").name
                at = self.op(f"arith.addi {at}, {rest} : index", (), "index").name
            found = at
        return found

    def row_of_thread(self, rows: int, at: int) -> str:
        """The index of a thread's rows, `at` rows further on."""
        first = self.op(f"arith.muli {self.tid}, {self.index(rows)} : index", (), "index").name
        return self.op(f"arith.addi {first}, {self.dynamic(at)} : index", (), "index").name if at else first

    # Memory

    def tensor(
        self, element: str, shape: tuple[int, ...], small: bool, zeros: bool = False, store: bool = False
    ) -> Matrix:
        """An argument that is a tensor, in one of the forms that a descriptor takes, that of a store to any column."""
        shape = (*shape[:-1], filled(shape[-1], element))
        word = f"zeros:{dtype_of(element)}:{by(shape)}" if zeros else self.data(element, shape, small)
        small = small or word.startswith("small")
        how = self.r.random()
        dims = [str(n) if how < 0.5 or self.r.random() < 0.3 else "?" for n in shape]
        plain = element in NARROW
        if self.r.random() < 0.15 and not plain and not zeros and self.ragged:
            of = view(self, element, shape, small=small, known=True)
            return Matrix(of.name, of.type, shape, element, small=small)
        kind = f"memref<{'x'.join([*dims, element])}>"
        name = self.argument(kind, word)
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        row = shape[-1] * bit_width(element) // 8
        # An extent or stride that a value says is taken to be one that messages can serve.
        written = self.place if row % 16 == 0 and row >= 64 else str
        # A row's extent and stride must be known to be whole bytes.
        step = str if plain else written

        def numbers() -> str:
            extents = [*map(written, shape[:-1]), step(shape[-1])]
            return f", [{', '.join(extents)}], [{', '.join([*map(step, strides[:-1]), '1'])}]"

        # Blocks of narrow elements at any column are stored to memrefs as they are.
        plain &= store
        if how < 0.8 or plain:
            given = ""
            if self.r.random() < 0.1 and len(shape) > 1 and not plain:
                given = numbers()
            return Matrix(name, kind, shape, element, given, small)
        base = self.op(f"memref.extract_aligned_pointer_as_index {name} : {kind} -> index", (), "index").name
        address = self.op(f"arith.index_cast {base} : index to i64", (), "i64").name
        return Matrix(address, "i64", shape, element, numbers(), small)

    def columns_for(self, element: str, least: int) -> int:
        """Columns of a matrix, mostly of one that 2D block messages can serve."""
        bits = bit_width(element)
        if self.r.random() < self.ragged:
            # Rows that no 2D block message can address.
            return filled(least + self.r.randint(0, 5), element)
        unit = 128 // bits
        return max(self.r.choice([64, 80, 96, 128]) * 8 // bits, -(-least // unit) * unit)

    def block_desc(self, tensor: Matrix, block: tuple[int, ...], offsets: list[str], extra: list[str]) -> Desc:
        """create_nd_tdesc."""
        # A mark for the check of bounds: results do not depend on it.
        extra = [*extra, *["clipped = true"] * (self.r.random() < 0.1)]
        settings = f", #xegpu.tdesc_attr<{', '.join(extra)}>" if extra else ""
        kind = f"!xegpu.tensor_desc<{by((*block, tensor.element))}{settings}>"
        found = self.op(
            f"xegpu.create_nd_tdesc {tensor.source}[{', '.join(offsets)}]{tensor.given} {{mode = vc}} : {tensor.kind} -> {kind}",
            (),
            "desc",
        )
        return Desc(found.name, kind, block, tensor.element, tensor.small)

    def offset(self, size: int, block: int, inside: bool) -> int:
        """Where a block begins along a dimension; unless it must lie inside, it may reach over either end."""
        most = max(size - block, 0)
        kinds = [0, self.r.randint(0, most), self.r.randint(0, most)]
        if not inside:
            kinds += [self.r.randint(-block - 1, 0), self.r.randint(most, size + 2)]
        return self.r.choice(kinds)

    # Blocks

    def load_block(self, element: str | None = None, small: bool | None = None) -> Value:
        """A block of one to three dimensions, with any transforms, from anywhere in and around a tensor."""
        element = element or self.element_of([*NUMBERS, *NUMBERS, *STORED, *NARROW])
        small = (element == "tf32" or self.r.random() < 0.4) if small is None else small
        bits = bit_width(element)
        rank = self.r.choice([2, 2, 2, 2, 1, 3])
        if rank == 1:
            return self.load_line(element, small)
        rows, columns = self.r.choice(ROWS), filled(self.r.choice(COLUMNS), element)
        while rows * columns > vectors.MOST:
            rows = max(rows // 2, 1)
            columns = filled(max(columns // 2, 1), element) if rows == 1 else columns
        outer = (self.r.choice([1, 2, 3]),) if rank == 3 else ()
        extra, length = [], 1
        if rank == 2 and self.r.random() < 0.25:
            length = self.r.choice([2, 4])
        inside = self.r.random() < 0.3
        if inside and self.r.random() < 0.5:
            extra.append("boundary_check = false")
        if length > 1:
            extra.insert(0, f"array_length = {length}")
        more = (self.r.randint(0, 4), self.r.randint(0, 20))
        wide = self.columns_for(element, columns * length + more[1])
        if outer:
            # Each matrix begins at a multiple of 64 bytes.
            wide = -(-wide * bits // 512) * 512 // bits
        shape = (*(n + 1 for n in outer), rows + more[0], wide)
        tensor = self.tensor(element, shape, small)
        block = (*outer, rows, columns)
        covered = (*outer, rows, columns * length)
        places = [self.offset(n, m, inside) for n, m in zip(shape, covered)]
        move = [0] * rank
        if self.r.random() < 0.3:
            move = [self.r.randint(-3, 3) for _ in places]
        offsets = [self.place(p - m) for p, m in zip(places, move)]
        desc = self.block_desc(tensor, block, offsets, extra)
        if any(move):
            desc = self.moved(desc, move)
        return self.load_desc(desc, length, bits)

    def moved(self, desc: Desc, by_: list[int]) -> Desc:
        """update_nd_offset."""
        offsets = ", ".join(map(self.place, by_))
        found = self.op(
            f"xegpu.update_nd_offset {desc.name}, [{offsets}] {{mode = vc}} : {desc.type} -> {desc.type}", (), "desc"
        )
        return replace(desc, name=found.name)

    def load_desc(self, desc: Desc, length: int, bits: int) -> Value:
        """load_nd with any transforms that fit."""
        if self.r.random() < (0.6 if self.only else 0.2):
            self.line(
                f"xegpu.prefetch_nd {desc.name}{attributes(['mode = vc', *self.scope(), *self.hints()])} : {desc.type}"
            )
        entries, shape = self.transformed(desc.shape, bits)
        if length > 1:
            whole = entries == ["mode = vc"] and self.r.random() < 0.4
            shape = (shape[0], length * shape[1]) if whole else (length, *shape)
        entries += self.hints()
        kind = vector_text(shape, desc.element)
        exact = 4 if desc.small else None
        return self.op(
            f"xegpu.load_nd {desc.name}{attributes(entries)} : {desc.type} -> {kind}", shape, desc.element, exact
        )

    def transformed(self, block: tuple[int, ...], bits: int) -> tuple[list[str], tuple[int, ...]]:
        """The attributes of a load of a block with any transform that fits, and the shape of its result."""
        entries = ["mode = vc"]
        rows, columns = block[-2:]
        rank, shape = len(block), block
        how = self.r.random()
        if how < (0.45 if self.only else 0.3):
            order = self.r.choice([[1, 0]] * 7 + [[0, 1]]) if rank == 2 else self.r.sample(range(rank), rank)
            units = [u for u in (8, 16, 32, 64) if u >= bits and columns * bits % u == 0]
            unit = bits
            if units and self.r.random() < (0.85 if self.only else 0.5):
                unit = self.r.choice(units)
                entries.append(f"transpose_bit_width = {unit}")
            entries.append(f"transpose = {order}")
            each = unit // bits
            in_units = (*block[:-1], columns // each)
            transposed = [in_units[i] for i in order]
            shape = (*transposed[:-1], transposed[-1] * each)
        elif how < 0.7 and rank == 2 and bits < 32:
            factor = 32 // bits
            axes = [axis for axis in (0, 1) if block[axis] % factor == 0]
            if axes:
                axis = self.r.choice(axes)
                entries.append(f"vnni_axis = {axis}")
                shape = (rows // factor, columns, factor) if axis == 0 else (rows, columns // factor, factor)
        return entries, shape

    def scope(self, slm: bool = False) -> list[str]:
        """The memory_scope that an op may repeat."""
        return [f"memory_scope = {'slm' if slm else 'global'}"] if self.r.random() < 0.3 else []

    def load_line(self, element: str, small: bool) -> Value:
        """A block of one dimension, which lies inside."""
        count = filled(self.r.choice([1, 2, 3, 4, 8, 16, 17, 32, 64, 128]), element)
        at = self.r.randint(0, 9)
        tensor = self.tensor(element, (self.threads * count + at + 3,), small)
        place = self.row_of_thread(count, at) if self.r.random() < 0.5 else self.place(at)
        extra = ["boundary_check = false"]
        desc = self.block_desc(tensor, (count,), [place], extra)
        entries = ["mode = vc", *self.hints()]
        exact = 4 if tensor.small else None
        text = f"xegpu.load_nd {desc.name}{attributes(entries)} : {desc.type} -> {vector_text((count,), element)}"
        return self.op(text, (count,), element, exact)

    def storable(self, x: Value) -> Value:
        """The value as a vector of bytes' multiples with one to three dimensions."""
        if x.element == "i1":
            x = self.op(f"arith.extui {x.name} : {x.type} to {x.typed('i32')}", x.shape, "i32")
        if not x.shape:
            x = self.op(f"vector.broadcast {x.name} : {x.type} to vector<1x{x.element}>", (1,), x.element, x.exact)
        return x

    def store(self, x: Value) -> None:
        """Store a value where no other thread does: as a block, a line, or lane by lane."""
        x = self.storable(x)
        bits = bit_width(x.element)
        if len(x.shape) == 2 and x.shape[1] * bits % 32 == 0 and self.r.random() < 0.8 and self.gpu.block2d:
            self.store_block(x)
        elif self.r.random() < 0.8 and filled(x.size, x.element) == x.size:
            self.store_line(x)
        else:
            self.store_elements(x)

    def store_block(self, x: Value) -> None:
        """A block of two dimensions, which may reach over the edges."""
        rows, columns = x.shape
        wide = self.columns_for(x.element, columns)
        alone = self.threads == 1
        cut = self.r.choice([0, 0, 0, self.r.randint(0, rows)])
        column = self.offset(wide, columns, False) if self.r.random() < 0.4 else 0
        if alone and self.r.random() < 0.3:
            tensor = self.tensor(x.element, (rows + 2, wide), False, store=True)
            offsets = [self.place(self.offset(rows + 2, rows, False)), self.place(column)]
        else:
            tensor = self.tensor(x.element, (max(self.threads * rows - cut, 1), wide), False, store=True)
            offsets = [self.row_of_thread(rows, 0), self.place(column)]
        extra = []
        if self.r.random() < 0.2 and columns % 2 == 0 and columns * bit_width(x.element) % 64 == 0:
            # An array of two blocks covers the same area.
            half = columns // 2
            desc = self.block_desc(tensor, (rows, half), offsets, ["array_length = 2"])
        else:
            desc = self.block_desc(tensor, (rows, columns), offsets, extra)
        entries = ["mode = vc", *self.hints(write=True)]
        self.line(f"xegpu.store_nd {x.name}, {desc.name}{attributes(entries)} : {x.type}, {desc.type}")

    def flat(self, x: Value) -> Value:
        """The elements in a row."""
        if len(x.shape) == 1:
            return x
        kind = vector_text((x.size,), x.element)
        return self.op(f"vector.shape_cast {x.name} : {x.type} to {kind}", (x.size,), x.element, x.exact)

    def store_line(self, x: Value) -> None:
        """A block of one dimension."""
        x = self.flat(x)
        tensor = self.tensor(x.element, (self.threads * x.size,), False, zeros=True, store=True)
        desc = self.block_desc(tensor, (x.size,), [self.row_of_thread(x.size, 0)], ["boundary_check = false"])
        entries = ["mode = vc", *self.hints(write=True)]
        self.line(f"xegpu.store_nd {x.name}, {desc.name}{attributes(entries)} : {x.type}, {desc.type}")

    def store_elements(self, x: Value) -> None:
        """Some elements by memref.store."""
        x = self.flat(x)
        places = self.r.sample(range(x.size), min(x.size, self.r.randint(1, 3)))
        wide = filled(3, x.element)
        kind = f"memref<?x{wide}x{x.element}>"
        name = self.argument(kind, self.data(x.element, (self.threads, wide)))
        for column, place in enumerate(places):
            one = self.op(f"vector.extract {x.name}[{place}] : {x.element} from {x.type}", (), x.element)
            self.line(f"memref.store {one.name}, {name}[{self.tid}, {self.index(column)}] : {kind}")
